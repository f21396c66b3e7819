/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of virtio-rdma devices that migrate while their queue pairs work.
 */
#include "qemu/osdep.h"
#include "rdma/net-test.h"

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_migrate_tests();
    add_migrate_backlog_tests();
    add_migrate_direct_tests();
    add_migrate_shadow_tests();
    add_migrate_counters_tests();
    add_migrate_objects_tests();
    add_migrate_points_tests();
    add_migrate_stored_tests();
    add_migrate_turn_tests();
    return g_test_run();
}
