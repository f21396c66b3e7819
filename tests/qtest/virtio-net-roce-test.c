/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of the virtio-net-roce device. The tests are in tests/qtest/rdma; those
 * of verbs that run on all guest interfaces are in rdma-iface-test.
 */
#include "qemu/osdep.h"
#include "rdma/net-roce-test.h"

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qrdma_add_tests("virtio-net-roce/nic/", net_roce_nic_tests);
    qrdma_add_tests("virtio-net-roce/work/", net_roce_work_tests);
    qrdma_add_tests("virtio-net-roce/ud/", net_roce_ud_tests);
    qrdma_add_tests("virtio-net-roce/command/", net_roce_command_tests);
    qrdma_add_tests("virtio-net-roce/hostile/", net_roce_hostile_tests);
    qrdma_add_tests("virtio-net-roce/migrate/", net_roce_migrate_tests);
    return g_test_run();
}
