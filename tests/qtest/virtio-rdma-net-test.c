/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of two virtio-rdma devices that are joined by a netdev: each
 * operation, and each way it can fail. The tests are in tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/net-test.h"

/* On a host's device, where tests take long, some tell enough. */
static bool choose(NetKind kind, const char *name)
{
    return !qrdma_ibdev() || kind != NET_DIRECT ||
           g_str_has_prefix(name, "rc/");
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    net_choose(choose);
    add_net_rc_tests();
    add_net_mr_tests();
    add_net_mr_table_tests();
    add_net_mw_tests();
    add_net_placement_tests();
    add_net_srq_tests();
    add_net_mcast_tests();
    add_net_error_tests();
    add_net_ud_tests();
    add_net_ext_tests();
    add_net_hotplug_tests();
    add_net_life_tests();
    add_net_many_tests();
    add_net_query_tests();
    add_net_fault_tests();
    add_net_fault_life_tests();
    add_net_loss_tests();
    ret = g_test_run();
    net_shared_quit();
    return ret;
}
