/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of one virtio-rdma device: what a driver sees of it, and what it
 * does when a driver errs. The tests are in tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/rdma-test.h"

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    add_alloc_tests();
    add_bringup_tests();
    add_config_tests();
    add_ctrl_tests();
    add_object_tests();
    add_mcast_tests();
    add_mr_tests();
    add_mr_table_tests();
    add_memory_tests();
    add_mw_tests();
    add_reg_pages_tests();
    add_qp_tests();
    add_gid_tests();
    add_guest_error_tests();
    add_packed_tests();
    add_reset_tests();
    add_ring_tests();
    add_srq_tests();
    add_wqe_tests();
    add_direct_cq_tests();
    add_direct_srq_tests();
    add_direct_tests();
    add_direct_recv_tests();
    add_shadow_tests();
    add_qp_counters_tests();
    add_notify_tests();
    add_cq_tests();
    add_eject_tests();
    add_event_tests();
    add_iothread_tests();
    add_lifecycle_tests();
    add_random_tests();
    add_realize_tests();
    add_flavour_tests();
    add_turn_tests();
    add_nested_tests();
    add_nested_loop_tests();
    ret = g_test_run();
    test_device_quit();
    return ret;
}
