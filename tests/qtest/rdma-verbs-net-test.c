/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tests of two virtio-rdma devices, joined by rdma-verbs and the double of
 * libibverbs: a guest sees the same behaviour as with rdma-roce. The tests are
 * in tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "tests/fake-ibverbs/fake-ibverbs.h"
#include "rdma/net-test.h"
#include "fake-ibverbs-dir.h"

/* Tests that need more than an adapter of the host gives. */
static const struct {
    const char *tests;              /* a regular expression */
    const char *why;
} left_out[] = {
    { "^mr/(fast|a-valid-mr|reg-mr|(send|read)-with-invalidate)",
      "verbs of user space register no memory by a work request" },
    { "receives-without-a-kick$",
      "the host cannot ask for WQEs that the driver did not kick" },
    { "^cqe-ex/datagrams", "completions of the host have no MAC, no VLAN" },
    { "^vlan/", "a VLAN is a net device of the host" },
    { "^gsi/", "QP 1 is the host's" },
    { "^ud/wrong-qkey|^counters/", "the host counts for all its users" },
    { "^ud/from-empty-gid-entry",
      "the host does not see such a WQE: it ends in ERR, not in SQE" },
    { "^change/gid-goes-away", "the GID is still the host's" },
    { "^query/silent-peer", "the host retries, and reports nothing" },
};

/* Both devices are in one process, as the double is. */
static bool choose(NetKind kind, const char *name)
{
    if (kind != NET_HUB && kind != NET_DIRECT) {
        return false;
    }
    for (int i = 0; i < ARRAY_SIZE(left_out); i++) {
        if (g_regex_match_simple(left_out[i].tests, name, 0, 0)) {
            g_test_message("without %s: %s", name, left_out[i].why);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    g_setenv("LD_LIBRARY_PATH", FAKE_IBVERBS_DIR, true);
    /* Those of qrdma_setup_gids() for both devices */
    g_setenv(FAKE_IBVERBS_SCRIPT, "gid 0 fe80::5054:ff:fe12:3401; "
             "gid 1 10.0.0.1; gid 2 fe80::5054:ff:fe12:3402; gid 3 10.0.0.2",
             true);
    g_setenv(QRDMA_IBDEV, FAKE_IBVERBS_DEVICE, true);
    net_choose(choose);
    net_add_iface_tests(iface_rc_tests);
    net_add_iface_tests(iface_error_tests);
    net_add_iface_tests(iface_ud_tests);
    net_add_tests(net_rc_tests);
    net_add_tests(net_mr_tests);
    net_add_tests(net_mr_table_tests);
    net_add_tests(net_mw_tests);
    net_add_tests(net_srq_tests);
    net_add_tests(net_mcast_tests);
    net_add_tests(net_error_tests);
    net_add_tests(net_ud_tests);
    net_add_tests(net_ext_tests);
    net_add_tests(net_life_tests);
    net_add_tests(net_many_tests);
    net_add_tests(net_query_tests);
    net_add_tests(net_fault_tests);
    net_add_tests(net_fault_life_tests);
    ret = g_test_run();
    net_shared_quit();
    return ret;
}
