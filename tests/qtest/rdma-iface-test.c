/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of verbs, each of which runs on all guest interfaces. The tests are in
 * tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/iface-test.h"
#include "rdma/net-test.h"

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    iface_add_tests("rc/", iface_rc_tests);
    iface_add_tests("error/", iface_error_tests);
    iface_add_tests("ud/", iface_ud_tests);
    ret = g_test_run();
    net_shared_quit();
    return ret;
}
