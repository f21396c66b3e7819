/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of rdma-verbs over a double of libibverbs: what no adapter of a host
 * does when it is asked to. The tests are in tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/verbs-test.h"

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_verbs_attach_tests();
    add_verbs_counters_tests();
    add_verbs_mcast_tests();
    add_verbs_queue_tests();
    add_verbs_traffic_tests();
    add_verbs_errno_tests();
    add_verbs_late_tests();
    add_verbs_again_tests();
    add_verbs_event_tests();
    add_verbs_gid_tests();
    add_verbs_mem_tests();
    add_verbs_address_tests();
    add_verbs_wqe_tests();
#ifdef HAVE_FAKE_IBUMAD
    add_verbs_gsi_tests();
    add_verbs_cm_tests();
#endif
    add_verbs_modify_tests();
    add_verbs_mr_tests();
    add_verbs_cq_tests();
    return g_test_run();
}
