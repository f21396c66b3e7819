/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of two virtio-rdma devices that are joined by a netdev: each
 * operation, and each way it can fail. The tests are in tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/net-test.h"

/* On a host's device tests take long, so run only some of them. */
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
    net_add_iface_tests(iface_rc_tests);
    net_add_iface_tests(iface_error_tests);
    net_add_iface_tests(iface_ud_tests);
    net_add_tests(net_rc_tests);
    net_add_tests(net_mr_tests);
    net_add_tests(net_mr_table_tests);
    net_add_tests(net_mw_tests);
    net_add_tests(net_placement_tests);
    net_add_tests(net_srq_tests);
    net_add_tests(net_mcast_tests);
    net_add_tests(net_error_tests);
    net_add_tests(net_ud_tests);
    net_add_tests(net_ext_tests);
    qrdma_add_tests("virtio-rdma-net/hotplug/", net_hotplug_tests);
    net_add_tests(net_life_tests);
    net_add_tests(net_many_tests);
    net_add_tests(net_query_tests);
    net_add_tests(net_fault_tests);
    net_add_tests(net_fault_life_tests);
    net_add_tests(net_loss_tests);
    if (!qrdma_ibdev()) {
        qrdma_add_tests("virtio-rdma-net/fault/", net_fault_alone_tests);
    }
    ret = g_test_run();
    net_shared_quit();
    return ret;
}
