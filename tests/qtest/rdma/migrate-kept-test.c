/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of what the device keeps for its driver, and of what is spoilt.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "migrate-test.h"

#define KEEPING (QRDMA_F(VIRTIO_RDMA_F_EVENTS) | \
                 QRDMA_F(VIRTIO_RDMA_F_CQ_DEEP) | \
                 QRDMA_F(VIRTIO_RDMA_F_CQ_RING_ARM) | \
                 QRDMA_F(VIRTIO_RDMA_F_CQE_EX) | \
                 QRDMA_F(VIRTIO_RDMA_F_COUNTERS))
#define DEPTH 150
#define KEPT 100
#define WR_ID 0x1122334455660000ull

static void post_writes(QRdmaQp *qp, uint64_t first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        qrdma_post_send(qp, &(RdmaSendWr) {
            .wr_id = first + i,
            .opcode = RDMA_WR_RDMA_WRITE,
            .send_flags = RDMA_SEND_SIGNALED,
        });
    }
}

/*
 * A QP of side 0 that talks to itself, with a CQ of DEPTH where KEPT
 * completions wait, and two events that wait likewise.
 */
static QRdmaQp *make_kept(Trip *t)
{
    QRdma *d = t->net.dev[0];
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp, *bad;

    t->p = net_pair_new_with(&t->net, RDMA_QPT_RC, KEEPING);
    pd = t->p.a.pd;
    cq = qrdma_create_cq(d, 1000);
    cq->no_refill = true;
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    qrdma_connect(qp, qp, NULL);
    assert_ok(qrdma_resize_cq(cq, DEPTH, 0));
    assert_ok(qrdma_req_notify_cq(cq, VIRTIO_RDMA_NOTIFY_SOLICITED));
    post_writes(qp, WR_ID, QRDMA_RING_SIZE + KEPT);
    qrdma_wait_until(d, (qrdma_reap(&qp->sq),
                         qp->sq.retired == qp->sq.posted));
    for (int i = 0; i < QRDMA_RING_SIZE; i++) {
        qrdma_expect(cq, WR_ID + i, RDMA_WC_SUCCESS);
    }
    qrdma_expect_none(cq);

    for (int i = 0; i < 2; i++) {
        bad = qrdma_create_qp(pd, t->p.a.scq, t->p.a.scq, RDMA_QPT_RC);
        qrdma_connect(bad, bad, NULL);
        qrdma_ring_reset(bad->rq.ring);
    }
    return qp;
}

static void test_kept(void)
{
    Trip *t = trip_new(NULL);
    QRdmaQp *qp = make_kept(t);
    QRdmaCq *cq = qp->send_cq;
    QRdma *d = qp->dev;
    uint64_t before[VIRTIO_RDMA_NUM_COUNTERS];
    uint64_t after[VIRTIO_RDMA_NUM_COUNTERS];
    RdmaQpAttr attr;

    assert_ok(qrdma_query_counters(d, 1, before));
    g_assert_cmpuint(before[VIRTIO_RDMA_LOOPBACK_PACKETS], !=, 0);
    trip_move(t, 0, NULL);
    assert_ok(qrdma_query_counters(d, 1, after));
    /* The connection has a word with its peer, itself, on coming back. */
    for (int i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        g_assert_cmpuint(after[i], >=, before[i]);
        g_assert_cmpuint(after[i], <=, before[i] + 1);
    }
    qrdma_add_event_buffers(d, 8);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, qp->qpn + 1);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, qp->qpn + 2);
    qrdma_expect_no_event(d);

    /* none of these is solicited, and the mode came along */
    qrdma_refill_cq(cq, 10);
    for (int i = 0; i < 10; i++) {
        qrdma_expect(cq, WR_ID + QRDMA_RING_SIZE + i, RDMA_WC_SUCCESS);
    }
    qrdma_expect_none(cq);
    g_assert_false(qrdma_ring_irq(cq->ring));
    /* and so did the depth */
    post_writes(qp, WR_ID + QRDMA_RING_SIZE + KEPT, DEPTH - KEPT + 10);
    qrdma_expect_no_event(d);
    assert_ok(qrdma_query_qp(qp, &attr));
    g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_RTS);
    trip_move_by_file(t, 0);
    cq->no_refill = false;
    qrdma_refill_cq(cq, QRDMA_RING_SIZE);
    for (int i = 10; i < DEPTH + 10; i++) {
        qrdma_expect(cq, WR_ID + QRDMA_RING_SIZE + i, RDMA_WC_SUCCESS);
    }
    cq->no_refill = true;
    post_writes(qp, WR_ID, QRDMA_RING_SIZE);
    qrdma_wait_until(d, (qrdma_reap(&qp->sq),
                         qp->sq.retired == qp->sq.posted));
    post_writes(qp, WR_ID, DEPTH + 1);
    qrdma_expect_event(d, RDMA_EVENT_CQ_ERR, cq->cqn);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, qp->qpn);
    trip_free(t);
}

static void test_spoilt(void)
{
    Trip *t = trip_new(NULL);
    QRdmaQp *qp = make_kept(t);
    const uint32_t cqn = qp->send_cq->cqn;
    const uint32_t bad = qp->qpn + 1;
    /* "virtio/64bit_features", its version, and what the driver accepted */
    const uint32_t high = qp->dev->features >> 32;
    const uint32_t low = qp->dev->features;
    const uint32_t no_events = low & ~(1u << VIRTIO_RDMA_F_EVENTS);
    const uint32_t not_deep = low & ~(1u << VIRTIO_RDMA_F_CQ_DEEP);
    const TripSpoilt cases[] = {
        { "depth", { cqn, DEPTH }, 2, 1, KEPT - 1, "than a CQ keeps" },
        { "depth", { cqn, DEPTH }, 2, 1, UINT32_MAX, "than a CQ keeps" },
        { "depth", { cqn, DEPTH }, 2, 1, 1048576, "record 2 of cqs" },
        { "number", { cqn, DEPTH }, 2, 0, 6, "record 2 of cqs" },
        { "type", { 1, bad, 1, bad + 1 }, 4, 0, 77, "record 0 of events" },
        { "type", { 1, bad, 1, bad + 1 }, 4, 0, 0xff, "record 0 of events" },
        { "id", { 1, bad, 1, bad + 1 }, 4, 1, 7, "record 0 of events" },
        { "twice", { 1, bad, 1, bad + 1 }, 4, 3, bad, "record 1 of events" },
        { "features", { 0x75726573, 1, high, low }, 4, 3, no_events,
          "did not accept events" },
        { "features", { 0x75726573, 1, high, low }, 4, 3, not_deep,
          "too deep" },
    };

    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
    trip_free(t);
}

/*
 * The first QP's way into ERR ends its CQ, and with that the others of the
 * CQ, while they wait for their turn.
 */
static void test_qps_that_fail_on_arrival(void)
{
    Trip *t = trip_new(NULL);
    QRdmaQp *qp[3];
    QRdmaPd *pd;
    QRdmaCq *cq;
    RdmaQpAttr attr;
    TripSpoilt cases[3];

    t->p = net_pair_new_with(&t->net, RDMA_QPT_RC,
                             QRDMA_F(VIRTIO_RDMA_F_EVENTS));
    pd = t->p.a.pd;
    cq = qrdma_create_cq(pd->dev, 1);
    cq->no_refill = true;
    for (int i = 0; i < 3; i++) {
        qp[i] = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
        assert_ok(qrdma_modify_init(qp[i], 0));
        qrdma_post_recv(qp[i], &(RdmaRecvWr) { .wr_id = 2 * i });
        qrdma_post_recv(qp[i], &(RdmaRecvWr) { .wr_id = 2 * i + 1 });
    }
    qrdma_settle(pd->dev);

    for (int i = 0; i < 3; i++) {
        cases[i] = (TripSpoilt) {
            "to_err", { cq->cqn, cq->cqn, 0, 0 }, 4, 3, 1, .copies = 2 - i,
        };
    }
    trip_move_spoilt(t, 0, cases, ARRAY_SIZE(cases));
    qrdma_settle(pd->dev);
    qrdma_expect(cq, 0, RDMA_WC_WR_FLUSH_ERR);
    for (int i = 0; i < 3; i++) {
        assert_ok(qrdma_query_qp(qp[i], &attr));
        g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_ERR);
        qrdma_reap(&qp[i]->rq);
        g_assert_cmpuint(qp[i]->rq.retired, ==, 2);
    }
    trip_free(t);
}

void add_migrate_kept_tests(void)
{
    qtest_add_func("virtio-rdma-migration/fail-on-arrival",
                   test_qps_that_fail_on_arrival);
    qtest_add_func("virtio-rdma-migration/kept", test_kept);
    qtest_add_func("virtio-rdma-migration/spoilt", test_spoilt);
}
