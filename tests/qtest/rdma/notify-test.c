/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: arming of completion queues, and interrupts.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_ring.h"

#define SOLICITED VIRTIO_RDMA_NOTIFY_SOLICITED
#define NEXT      VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION

static bool irq(QRdmaCq *cq)
{
    qrdma_settle(cq->dev);
    return qrdma_ring_irq(cq->ring);
}

static TestPair rfc_pair(void)
{
    return test_pair_on(test_rfc_device(), RDMA_QPT_RC, 64, NULL);
}

/* Send one message from a to b, and take both completions. */
static void message(TestPair *t, uint32_t flags)
{
    RdmaSge from = qrdma_sge(t->mr_a, 0, 32);
    RdmaSge to = qrdma_sge(t->mr_b, 0, 32);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, &from);

    wr.send_flags |= flags;
    qrdma_recv(t->b, 2, &to);
    qrdma_post_send(t->a, &wr);
    qrdma_expect_wc(t->cq_b, 2, RDMA_WC_RECV, NULL);
    qrdma_expect_wc(t->cq_a, 1, RDMA_WC_SEND, NULL);
}

static void test_no_interrupt_unless_armed(void)
{
    TestPair t = rfc_pair();

    message(&t, RDMA_SEND_SOLICITED);
    g_assert_false(irq(t.cq_a));
    g_assert_false(irq(t.cq_b));
}

static void test_next_fires_once(void)
{
    TestPair t = rfc_pair();

    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    g_assert_false(irq(t.cq_b));
    message(&t, 0);
    g_assert_true(irq(t.cq_b));
    g_assert_false(irq(t.cq_a));
    message(&t, 0);
    g_assert_false(irq(t.cq_b));
    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    message(&t, 0);
    g_assert_true(irq(t.cq_b));
}

static void test_next_fires_for_sends(void)
{
    TestPair t = rfc_pair();

    assert_ok(qrdma_req_notify_cq(t.cq_a, NEXT));
    message(&t, 0);
    g_assert_true(irq(t.cq_a));
}

static void test_solicited_fires_on_solicited_receive_only(void)
{
    TestPair t = rfc_pair();

    assert_ok(qrdma_req_notify_cq(t.cq_a, SOLICITED));
    assert_ok(qrdma_req_notify_cq(t.cq_b, SOLICITED));
    message(&t, 0);
    g_assert_false(irq(t.cq_b));
    message(&t, RDMA_SEND_SOLICITED);
    g_assert_true(irq(t.cq_b));
    /* the sender's completion is not a solicited one */
    g_assert_false(irq(t.cq_a));
    message(&t, RDMA_SEND_SOLICITED);
    g_assert_false(irq(t.cq_b));
}

static void test_solicited_fires_on_error(void)
{
    TestPair t = rfc_pair();

    assert_ok(qrdma_req_notify_cq(t.cq_b, SOLICITED));
    qrdma_recv(t.b, 3, NULL);
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_ERR));
    qrdma_expect(t.cq_b, 3, RDMA_WC_WR_FLUSH_ERR);
    g_assert_true(irq(t.cq_b));
}

static void test_next_wins_over_solicited(void)
{
    TestPair t = rfc_pair();

    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT | SOLICITED));
    message(&t, 0);
    g_assert_true(irq(t.cq_b));
    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    assert_ok(qrdma_req_notify_cq(t.cq_b, SOLICITED));
    message(&t, 0);
    g_assert_true(irq(t.cq_b));
    assert_ok(qrdma_req_notify_cq(t.cq_b, SOLICITED));
    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    message(&t, 0);
    g_assert_true(irq(t.cq_b));
}

static void test_what_arrived_before_does_not_fire(void)
{
    TestPair t = rfc_pair();

    qrdma_recv(t.b, 3, NULL);
    qrdma_post_send(t.a, &(RdmaSendWr) { .opcode = RDMA_WR_SEND });
    qrdma_wait_until(t.dev, qrdma_ring_used_idx(t.cq_b->ring) == 1);
    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    g_assert_false(irq(t.cq_b));
    qrdma_expect(t.cq_b, 3, RDMA_WC_SUCCESS);
    message(&t, 0);
    g_assert_true(irq(t.cq_b));
}

static void test_virtio_suppression_is_respected(void)
{
    TestPair t = rfc_pair();
    uint64_t flags = t.cq_b->ring->pci.vq.avail;

    qtest_writew(t.dev->host->qts, flags, VRING_AVAIL_F_NO_INTERRUPT);
    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    message(&t, 0);
    g_assert_false(irq(t.cq_b));
    qtest_writew(t.dev->host->qts, flags, 0);
    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    message(&t, 0);
    g_assert_true(irq(t.cq_b));
}

static void test_event_index(void)
{
    QRdma *d = test_device_reset();
    QRdmaRing *ring;
    uint64_t used_event;
    TestPair t;

    qrdma_start(d, QRDMA_RFC_FEATURES | QRDMA_F(VIRTIO_RING_F_EVENT_IDX), 0);
    t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
    ring = t.cq_b->ring;
    used_event = ring->pci.vq.avail + 4 + 2 * ring->pci.vq.size;
    /* the first notification of a queue is always sent */
    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    message(&t, 0);
    irq(t.cq_b);
    qtest_writew(d->host->qts, used_event, 3);
    for (int i = 1; i < 6; i++) {
        assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
        message(&t, 0);
        g_assert_cmpint(irq(t.cq_b), ==, i == 3);
    }
}

static void test_flags_and_numbers_are_checked(void)
{
    QRdma *d = test_device();
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    const uint32_t flags[] = { 0, 4, 5, 8, 0x80000001, UINT32_MAX };
    const uint32_t cqns[] = { 1, TEST_MAX_CQ, 0x10000, UINT32_MAX };

    for (int i = 0; i < ARRAY_SIZE(flags); i++) {
        assert_status(qrdma_req_notify_cq(cq, flags[i]), INVAL);
    }
    for (int i = 0; i < ARRAY_SIZE(cqns); i++) {
        QRdmaCq none = { .dev = d, .cqn = cq->cqn + cqns[i] };

        assert_status(qrdma_req_notify_cq(&none, NEXT), NOENT);
    }
    assert_ok(qrdma_destroy_cq(cq));
    assert_status(qrdma_req_notify_cq(cq, NEXT), NOENT);
}

static void test_new_cq_is_not_armed(void)
{
    TestPair t = rfc_pair();

    assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
    test_renew_cq_b(&t);
    message(&t, 0);
    g_assert_false(irq(t.cq_b));
}

/*
 * Completions can be polled in their buffers, whatever descriptors these have.
 */
static void test_status_is_written_last(void)
{
    const uint32_t size = sizeof(struct virtio_rdma_cqe_ex);
    const unsigned cuts[] = { size, 1, 8, 9, 10, 37, size - 1 };
    QRdma *d = test_device();
    QRdmaCq *cq;
    QRdmaPd *pd;
    QRdmaQp *qp;
    uint64_t buf;

    qrdma_setup_gids(d, 1);
    pd = qrdma_alloc_pd(d);
    cq = qrdma_own(d, sizeof(*cq));
    cq->dev = d;
    assert_ok(qrdma_try_create_cq(d, 16, &cq->cqn));
    cq->ring = qrdma_ring(d, VIRTIO_RDMA_CQ_VQ(cq->cqn));
    qp = qrdma_create_loop(pd, cq, cq);
    buf = qrdma_alloc(d, 4096);
    for (int i = 0; i < ARRAY_SIZE(cuts); i++) {
        struct virtio_rdma_cqe cqe;
        uint64_t at = buf + 64 * i;
        QRdmaDesc desc[2] = {
            { at, cuts[i], true },
            { at + cuts[i], size - cuts[i], true },
        };

        qtest_memset(d->host->qts, at, VIRTIO_RDMA_CQE_EMPTY, 64);
        qrdma_ring_add(cq->ring, desc, desc[1].len ? 2 : 1);
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, 0x1122334455667700 + i,
                                NULL));
        qrdma_wait_until(d, qtest_readb(d->host->qts, at + 8) !=
                            VIRTIO_RDMA_CQE_EMPTY);
        qrdma_read(d, at, &cqe, sizeof(cqe));
        g_assert_cmpint(cqe.status, ==, RDMA_WC_SUCCESS);
        g_assert_cmpint(cqe.opcode, ==, RDMA_WC_RDMA_WRITE);
        g_assert_cmphex(le64_to_cpu(cqe.wr_id), ==, 0x1122334455667700 + i);
        g_assert_cmphex(le32_to_cpu(cqe.qp_num), ==, qp->qpn);
        g_assert_cmphex(qtest_readb(d->host->qts, at + size), ==, 0xff);
        qrdma_wait_until(d, qrdma_ring_used_idx(cq->ring) == i + 1);
    }
}

static void test_work_queues_interrupt_on_demand(void)
{
    TestPair t = rfc_pair();

    /* a driver that polls its CQs suppresses these */
    qtest_writew(t.dev->host->qts, t.a->sq.ring->pci.vq.avail,
                 VRING_AVAIL_F_NO_INTERRUPT);
    qtest_writew(t.dev->host->qts, t.b->rq.ring->pci.vq.avail,
                 VRING_AVAIL_F_NO_INTERRUPT);
    message(&t, 0);
    qrdma_settle(t.dev);
    g_assert_false(qrdma_ring_irq(t.a->sq.ring));
    g_assert_false(qrdma_ring_irq(t.b->rq.ring));
}

const QRdmaTest notify_tests[] = {
    { "no-interrupt-unless-armed", test_no_interrupt_unless_armed },
    { "next-fires-once", test_next_fires_once },
    { "next-fires-for-sends", test_next_fires_for_sends },
    { "solicited-fires-on-solicited-only",
      test_solicited_fires_on_solicited_receive_only },
    { "solicited-fires-on-error", test_solicited_fires_on_error },
    { "next-wins-over-solicited", test_next_wins_over_solicited },
    { "what-arrived-before-does-not-fire",
      test_what_arrived_before_does_not_fire },
    { "virtio-suppression-is-respected", test_virtio_suppression_is_respected },
    { "event-index", test_event_index,
      .not_demo = true },
    { "flags-and-numbers-are-checked", test_flags_and_numbers_are_checked },
    { "new-cq-is-not-armed", test_new_cq_is_not_armed },
    { "status-is-written-last", test_status_is_written_last,
      .not_demo = true },
    { "work-queues-interrupt-on-demand", test_work_queues_interrupt_on_demand },
    {}
};
