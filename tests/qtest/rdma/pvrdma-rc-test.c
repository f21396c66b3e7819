/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RC of pvrdma: rings, interrupts and attributes of QPs. The tests of
 * iface-*.c are those of operations.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "pvrdma-test.h"

#define LEN 5000                    /* five packets, and two pages */

static void send_some(PvPair *p, uint32_t opcode, uint32_t flags)
{
    PvrdmaSge sge = pv_sge(&p->a, 100, LEN);

    pv_fill(&p->a, 100, LEN, 1);
    pv_recv(&p->b, 22, 200, LEN + 100);
    qpvrdma_post_send(p->a.dev, &p->a.qp,
                      &(PvrdmaSendWqe) {
                          .wr_id = 11,
                          .num_sge = 1,
                          .opcode = opcode,
                          .send_flags = flags,
                          .ex.imm_data = { 1, 2, 3, 4 },
                      }, &sge);
}

static void test_send(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCqe cqe;

    /* Providers set the flag INLINE with SGEs: the device ignores the flag. */
    send_some(&p, RDMA_WR_SEND_WITH_IMM,
              RDMA_SEND_SIGNALED | RDMA_SEND_INLINE);
    cqe = pv_expect(&p.b, &p.b.rcq, 22, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    g_assert_cmpint(cqe.byte_len, ==, LEN);
    g_assert_cmphex(cqe.wc_flags, ==, RDMA_WC_WITH_IMM);
    g_assert_cmphex(ldl_be_p(cqe.ex.imm_data), ==, 0x01020304);
    pv_assert_filled(&p.b, 200, LEN, 1);
    pv_expect(&p.a, &p.a.scq, 11, RDMA_WC_SUCCESS, RDMA_WC_SEND);
    /* The driver may reuse the elements. */
    g_assert_cmpint(qpvrdma_ring_head(p.a.dev, &p.a.qp.sq), ==, 1);
    g_assert_cmpint(qpvrdma_ring_head(p.b.dev, &p.b.qp.rq), ==, 1);
}

/* The CQ that the ring of completions names, or -1 */
static int64_t next_completion(PvEnd *e)
{
    uint32_t handle;

    return qpvrdma_ring_pop(e->dev, &e->dev->completions, &handle)
           ? (int64_t)handle : -1;
}

/* One entry for each time that the CQ was armed, and none without */
static void test_interrupt(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    pv_arm(&p.b, &p.b.rcq);
    for (int i = 0; i < 2; i++) {
        send_some(&p, RDMA_WR_SEND, RDMA_SEND_SIGNALED);
        pv_expect(&p.b, &p.b.rcq, 22, RDMA_WC_SUCCESS, RDMA_WC_RECV);
        pv_expect(&p.a, &p.a.scq, 11, RDMA_WC_SUCCESS, RDMA_WC_SEND);
        g_assert_cmpint(qpvrdma_interrupted(p.b.dev,
                                            PVRDMA_VECTOR_COMPLETION), ==,
                        i == 0);
        g_assert_cmpint(next_completion(&p.b), ==,
                        i == 0 ? (int64_t)p.b.rcq.handle : -1);
    }
    g_assert_false(qpvrdma_interrupted(p.a.dev, PVRDMA_VECTOR_COMPLETION));
}

/* A message that asks for no event leaves the CQ armed. */
static void test_solicited(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    qpvrdma_ring_doorbell(p.b.dev, 0, PVRDMA_UAR_CQ,
                          p.b.rcq.handle | PVRDMA_UAR_CQ_ARM_SOLICITED);
    send_some(&p, RDMA_WR_SEND, RDMA_SEND_SIGNALED);
    pv_expect(&p.b, &p.b.rcq, 22, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    g_assert_false(qpvrdma_interrupted(p.b.dev, PVRDMA_VECTOR_COMPLETION));
    send_some(&p, RDMA_WR_SEND, RDMA_SEND_SOLICITED);
    pv_expect(&p.b, &p.b.rcq, 22, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    g_assert_true(qpvrdma_interrupted(p.b.dev, PVRDMA_VECTOR_COMPLETION));
    g_assert_cmpint(next_completion(&p.b), ==, p.b.rcq.handle);
}

/* The entry waits while IMR masks the vector. */
static void test_masked(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    pv_arm(&p.b, &p.b.rcq);
    qpvrdma_write(p.b.dev, PVRDMA_REG_IMR, 0xffffffff);
    send_some(&p, RDMA_WR_SEND, 0);
    pv_expect(&p.b, &p.b.rcq, 22, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    g_assert_cmpint(next_completion(&p.b), ==, -1);
    qpvrdma_write(p.b.dev, PVRDMA_REG_IMR, 0);
    qrdma_wait_until(p.b.dev, qpvrdma_interrupted(p.b.dev,
                                                  PVRDMA_VECTOR_COMPLETION));
    g_assert_cmpint(next_completion(&p.b), ==, p.b.rcq.handle);
}

/* The driver has consumed nothing for a long time: the entry is kept. */
static void test_full(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QTestState *qts = p.host->qts;
    QPvrdmaRing *ring = &p.b.dev->completions;
    uint64_t head = ring->state + offsetof(PvrdmaRingState, head);

    qtest_writel(qts, head, ring->size);
    pv_arm(&p.b, &p.b.rcq);
    send_some(&p, RDMA_WR_SEND, 0);
    pv_expect(&p.b, &p.b.rcq, 22, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    qtest_clock_step(qts, 20 * QRDMA_MS);
    g_assert_cmpint(next_completion(&p.b), ==, -1);
    g_assert_false(qpvrdma_interrupted(p.b.dev, PVRDMA_VECTOR_COMPLETION));
    qtest_writel(qts, head, 0);
    qtest_clock_step(qts, 20 * QRDMA_MS);
    qrdma_wait_until(p.b.dev, qpvrdma_interrupted(p.b.dev,
                                                  PVRDMA_VECTOR_COMPLETION));
    g_assert_cmpint(next_completion(&p.b), ==, p.b.rcq.handle);
}

/*
 * The driver counts 3072 entries, and computes with masks for that: the ring
 * behaves as one of 1024.
 */
static void test_completion_laps(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    g_assert_cmpint(p.a.dev->completions.size, ==, 1024);
    for (uint32_t i = 0; i < 2100; i++) {
        pv_arm(&p.a, &p.a.scq);
        pv_post(&p.a, RDMA_WR_RDMA_WRITE, i, 8, &p.b.mr);
        pv_expect(&p.a, &p.a.scq, i, RDMA_WC_SUCCESS, RDMA_WC_RDMA_WRITE);
        g_assert_cmpint(next_completion(&p.a), ==, p.a.scq.handle);
    }
}

/* Without MSI-X: reading ICR acknowledges. */
static void test_intx(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    qpci_msix_disable(p.b.dev->pci);
    pv_arm(&p.b, &p.b.rcq);
    send_some(&p, RDMA_WR_SEND, 0);
    pv_expect(&p.b, &p.b.rcq, 22, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    g_assert_cmphex(qpvrdma_read(p.b.dev, PVRDMA_REG_ICR), ==,
                    1u << PVRDMA_VECTOR_COMPLETION);
    assert_done(qpvrdma_read(p.b.dev, PVRDMA_REG_ICR));
}

/* Rings that go round many times, with more than they hold in flight */
static void test_laps(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    for (uint32_t i = 0; i < 100; i++) {
        uint32_t head = (i + 1) & (2 * p.a.qp.sq.size - 1);

        send_some(&p, RDMA_WR_SEND, RDMA_SEND_SIGNALED);
        pv_expect(&p.b, &p.b.rcq, 22, RDMA_WC_SUCCESS, RDMA_WC_RECV);
        pv_expect(&p.a, &p.a.scq, 11, RDMA_WC_SUCCESS, RDMA_WC_SEND);
        g_assert_cmpint(qpvrdma_ring_head(p.a.dev, &p.a.qp.sq), ==, head);
    }
}

static void test_query(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaQpAttr attr;

    qpvrdma_query_qp(p.a.dev, p.a.qp.handle, &attr);
    g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_RTS);
    g_assert_cmpint(attr.dest_qp_num, ==, p.b.qp.qpn);
    g_assert_cmpint(attr.path_mtu, ==, RDMA_MTU_1024);
    g_assert_cmpint(attr.timeout, ==, 14);
    g_assert_cmpint(attr.max_rd_atomic, ==, 4);
    g_assert_cmpint(attr.max_send_wr, ==, 16);
    g_assert_cmpint(attr.max_recv_sge, ==, 2);
    g_assert_cmpint(memcmp(attr.ah.dmac, p.b.dev->mac, RDMA_MAC_LEN), ==, 0);
}

/* An invalid transition fails by err of the reply, not by the register ERR. */
static void test_bad_modify(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaQpAttr attr = { .qp_state = RDMA_QPS_RTR };

    assert_fails(qpvrdma_modify_qp(p.a.dev, p.a.qp.handle, RDMA_QP_STATE,
                                   &attr));
    assert_fails(qpvrdma_modify_qp(p.a.dev, 9999, RDMA_QP_STATE, &attr));
}

const QRdmaTest pvrdma_rc_tests[] = {
    { "send", test_send },
    { "interrupt", test_interrupt },
    { "solicited", test_solicited },
    { "masked", test_masked },
    { "full", test_full },
    { "completion-laps", test_completion_laps },
    { "intx", test_intx },
    { "laps", test_laps },
    { "query", test_query },
    { "bad-modify", test_bad_modify },
    { }
};
