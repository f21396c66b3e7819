/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of the pvrdma device, which drive it as its driver in Linux does. The
 * tests are in tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/pvrdma-test.h"

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qrdma_add_tests("pvrdma/probe/", pvrdma_probe_tests);
    qrdma_add_tests("pvrdma/rc/", pvrdma_rc_tests);
    qrdma_add_tests("pvrdma/ud/", pvrdma_ud_tests);
    qrdma_add_tests("pvrdma/mem/", pvrdma_mem_tests);
    qrdma_add_tests("pvrdma/srq/", pvrdma_srq_tests);
    qrdma_add_tests("pvrdma/life/", pvrdma_life_tests);
    qrdma_add_tests("pvrdma/host/", pvrdma_host_tests);
    qrdma_add_tests("pvrdma/command/", pvrdma_command_tests);
    qrdma_add_tests("pvrdma/handle/", pvrdma_handle_tests);
    qrdma_add_tests("pvrdma/pages/", pvrdma_pages_tests);
    qrdma_add_tests("pvrdma/hostile/", pvrdma_hostile_tests);
    qrdma_add_tests("pvrdma/nested/", pvrdma_nested_tests);
    qrdma_add_tests("pvrdma/migrate/", pvrdma_migrate_tests);
    return g_test_run();
}
