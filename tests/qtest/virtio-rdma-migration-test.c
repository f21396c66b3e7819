/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of virtio-rdma devices that migrate while their queue pairs work.
 */
#include "qemu/osdep.h"
#include "rdma/net-test.h"

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qrdma_add_tests("virtio-rdma-migration/", migrate_tests);
    qrdma_add_tests("virtio-rdma-migration/", migrate_backlog_tests);
    qrdma_add_tests("virtio-rdma-migration/", migrate_direct_tests);
    qrdma_add_tests("virtio-rdma-migration/", migrate_shadow_tests);
    qrdma_add_tests("virtio-rdma-migration/", migrate_counters_tests);
    qrdma_add_tests("virtio-rdma-migration/", migrate_objects_tests);
    qrdma_add_tests("virtio-rdma-migration/", migrate_points_tests);
    qrdma_add_tests("virtio-rdma-migration/", migrate_served_tests);
    qrdma_add_tests("virtio-rdma-migration/", migrate_served_end_tests);
    add_migrate_stored_tests();
    qrdma_add_tests("virtio-rdma-migration/", migrate_turn_tests);
    return g_test_run();
}
