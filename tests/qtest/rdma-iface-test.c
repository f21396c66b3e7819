/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of verbs, each of which runs on all guest interfaces. The tests are in
 * tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/net-test.h"

static void add_tests(const IfaceTest *tests)
{
    for (; tests->name; tests++) {
        iface_add_test("rdma-iface/virtio-rdma/", &iface_virtio[NET_HUB],
                       tests);
        iface_add_test("rdma-iface/virtio-rdma-direct/",
                       &iface_virtio[NET_DIRECT], tests);
        iface_add_test("rdma-iface/pvrdma/", &iface_pvrdma, tests);
        iface_add_test("rdma-iface/virtio-net-roce/", &iface_net_roce, tests);
    }
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    add_tests(iface_rc_tests);
    add_tests(iface_error_tests);
    add_tests(iface_ud_tests);
    ret = g_test_run();
    net_shared_quit();
    return ret;
}
