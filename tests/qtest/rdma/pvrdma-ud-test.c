/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Datagrams of pvrdma: UD and GSI.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"

#define GRH_LEN 40
#define LEN 200

static PvrdmaCqe exchange(PvPair *p, uint32_t qkey)
{
    PvrdmaSge sge = pv_sge(&p->a, 0, LEN);
    PvrdmaSge room = pv_sge(&p->b, 0, GRH_LEN + LEN);
    PvrdmaSendWqe wqe = {
        .wr_id = 1,
        .num_sge = 1,
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED,
    };
    PvrdmaCqe cqe;

    pv_fill(&p->a, 0, LEN, 5);
    qpvrdma_post_recv(p->b.dev, &p->b.qp, 2, &room);
    pv_ud_address(&wqe, &p->a, &p->b, qkey);
    qpvrdma_post_send(p->a.dev, &p->a.qp, &wqe, &sge);
    pv_expect(&p->a, &p->a.scq, 1, RDMA_WC_SUCCESS, RDMA_WC_SEND);
    cqe = pv_expect(&p->b, &p->b.rcq, 2, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    g_assert_cmpint(cqe.byte_len, ==, GRH_LEN + LEN);
    g_assert_cmpint(cqe.src_qp, ==, p->a.qp.qpn);
    g_assert_cmpint(cqe.port_num, ==, 1);
    pv_assert_filled(&p->b, GRH_LEN, LEN, 5);
    return cqe;
}

/*
 * A provider passes on flags unchanged, so processes see only flags of verbs.
 */
static void test_ud_of_a_process(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_UD);
    PvrdmaCqe cqe = exchange(&p, PV_QKEY);

    g_assert_cmphex(cqe.wc_flags, ==, RDMA_WC_GRH);
}

static void test_ud_of_the_kernel(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_UD);
    /* This value selects the Q_Key of the QP. */
    PvrdmaCqe cqe = exchange(&p, RDMA_QKEY_CONTROLLED);

    g_assert_cmphex(cqe.wc_flags, ==, RDMA_WC_GRH | RDMA_WC_WITH_HDR_TYPE);
    g_assert_cmpint(cqe.hdr_type, ==, PVRDMA_HDR_IPV4);
}

static void test_gsi(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_GSI);

    exchange(&p, RDMA_GSI_QKEY);
}

const QRdmaTest pvrdma_ud_tests[] = {
    { "process", test_ud_of_a_process },
    { "kernel", test_ud_of_the_kernel },
    { "gsi", test_gsi },
    { }
};
