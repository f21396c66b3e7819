/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of rdma-verbs over a double of libibverbs, which fails and delays calls
 * on request, as no real adapter does. The tests are in tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/verbs-test.h"

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qrdma_add_tests("/rdma-verbs/attach/", verbs_attach_tests);
    qrdma_add_tests("/rdma-verbs/counters/", verbs_counters_tests);
    qrdma_add_tests("/rdma-verbs/mcast/", verbs_mcast_tests);
    qrdma_add_tests("/rdma-verbs/queue/", verbs_queue_tests);
    qrdma_add_tests("/rdma-verbs/traffic/", verbs_traffic_tests);
    qrdma_add_tests("/rdma-verbs/errno/", verbs_errno_tests);
    qrdma_add_tests("/rdma-verbs/late/", verbs_late_tests);
    qrdma_add_tests("/rdma-verbs/again/", verbs_again_tests);
    qrdma_add_tests("/rdma-verbs/event/", verbs_event_tests);
    qrdma_add_tests("/rdma-verbs/gid/", verbs_gid_tests);
    qrdma_add_tests("/rdma-verbs/mem/", verbs_mem_tests);
    qrdma_add_tests("/rdma-verbs/address/", verbs_address_tests);
    qrdma_add_tests("/rdma-verbs/wqe/", verbs_wqe_tests);
#ifdef HAVE_FAKE_IBUMAD
    qrdma_add_tests("/rdma-verbs/gsi/", verbs_gsi_tests);
    qrdma_add_tests("/rdma-verbs/cm/", verbs_cm_tests);
#endif
    qrdma_add_tests("/rdma-verbs/modify/", verbs_modify_tests);
    qrdma_add_tests("/rdma-verbs/mr/", verbs_mr_tests);
    qrdma_add_tests("/rdma-verbs/pvrdma/", pvrdma_verbs_tests);
    qrdma_add_tests("/rdma-verbs/", verbs_cq_tests);
    return g_test_run();
}
