/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of direct queues, and of event queues.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "migrate-test.h"

#define NEXT VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
#define DEPTH 32
#define DEPTH_SHIFT 5

/* A QP of side 0 that writes to itself, and its CQ */
static QRdmaQp *loop_new(Trip *t, QRdmaEq *eq)
{
    QRdmaPd *pd = t->p.a.pd;
    QRdmaCq *cq = qrdma_create_direct_cq(pd->dev, DEPTH, eq);
    QRdmaQp *qp = qrdma_create_loop(pd, cq, cq);

    return qp;
}

static void write_n(QRdmaQp *qp, uint64_t first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, first + i, NULL));
    }
    qrdma_settle(qp->dev);
    qrdma_reap(&qp->sq);
}

static void expect_event(QRdmaCq *cq)
{
    uint32_t cqn;

    qrdma_wait_until(cq->dev, qrdma_eq_get(cq->eq, &cqn));
    g_assert_cmpuint(cqn, ==, cq->cqn);
}

static void expect_no_event(QRdmaEq *eq)
{
    uint32_t cqn;

    qrdma_settle(eq->dev);
    g_assert_false(qrdma_eq_get(eq, &cqn));
}

/* One CQ has an event that waits, one had its event, one is armed. */
static void test_event_queues(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    QRdmaQp *waits, *had, *armed;
    QRdmaEq *eq = qrdma_create_eq(t->net.dev[0], 0);

    had = loop_new(t, eq);
    waits = loop_new(t, eq);
    armed = loop_new(t, eq);

    qrdma_arm_direct_cq(had->send_cq, NEXT);
    write_n(had, 0, 3);
    qrdma_refill_eq(eq, 1);
    expect_event(had->send_cq);
    qrdma_arm_direct_cq(waits->send_cq, NEXT);
    write_n(waits, 0, 1);
    qrdma_arm_direct_cq(armed->send_cq, NEXT);

    for (int i = 0; i < 2; i++) {
        trip_move(t, 0, NULL);
    }
    expect_no_event(eq);
    write_n(had, 3, 1);
    write_n(armed, 0, 1);
    qrdma_refill_eq(eq, 4);
    expect_event(waits->send_cq);
    expect_event(armed->send_cq);
    expect_no_event(eq);
    qrdma_expect_many(had->send_cq, 0, 4, RDMA_WC_SUCCESS);
    assert_status(qrdma_destroy_eq(eq), BUSY);
}

/*
 * The destination must mark queues as asleep: a driver that reads that the
 * source polls them would never ring.
 */
static void test_queues_tell_that_they_sleep(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    QRdma *d = t->net.dev[0];
    QRdmaQp *qp = loop_new(t, NULL);

    for (int i = 0; i < 2; i++) {
        qtest_writel(d->host->qts, qp->sq.counters +
                     offsetof(struct virtio_rdma_direct_page, sq_awake), 1);
        trip_move(t, 0, NULL);
        qrdma_wait_until(d, !qrdma_direct_awake(d, &qp->sq));
        g_assert_true(qrdma_direct_awake(d, &qp->rq));
        write_n(qp, i, 1);
        qrdma_expect(qp->send_cq, i, RDMA_WC_SUCCESS);
    }
}

/* The device goes on with its own counts, whatever memory has by then. */
static void test_counts_of_a_cq(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    QRdmaQp *qp;

    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    qrdma_add_event_buffers(t->net.dev[0], 4);
    qp = loop_new(t, NULL);
    qp->send_cq->no_refill = true;
    write_n(qp, 0, DEPTH - 1);
    qrdma_expect_many(qp->send_cq, 0, 5, RDMA_WC_SUCCESS);
    qrdma_direct_cq_set_consumer(qp->send_cq, 5);
    trip_move_by_file(t, 0);
    write_n(qp, DEPTH - 1, 6);
    qrdma_expect_no_event(qp->dev);
    qrdma_expect_many(qp->send_cq, 5, DEPTH, RDMA_WC_SUCCESS);
    write_n(qp, 0, 1);
    qrdma_expect_event(qp->dev, RDMA_EVENT_CQ_ERR, qp->send_cq->cqn);
    qrdma_expect_event(qp->dev, RDMA_EVENT_QP_FATAL, qp->qpn);
}

static void test_spoilt_direct_cqs(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    /* log2 of the depth, and the number of pages */
    const uint32_t shift = DEPTH_SHIFT << 24, pages = 2 << 24;
    /*
     * the counts of CQEs produced and consumed, fired requests, the event queue
     */
    enum { PRODUCED = 11, CONSUMED = 0, FIRED = 1 << 2 | NEXT };
    TripSpoilt cases[] = {
        { "depth", { 0, shift, pages }, 3, 1, shift - (1 << 24),
          "has pages=2, which must be as many" },
        { "depth", { 0, shift, pages }, 3, 1, 0xff000000,
          "has pages=2, which must be as many" },
        { "more pages", { 0, shift, pages }, 3, 1, shift | 0xffffff,
          "a queue in the migration stream has 4294967042 pages" },
        { "produced", { PRODUCED, CONSUMED, FIRED }, 4, 0, DEPTH + 1,
          "CQEs that are not consumed=33, but at most 32 is" },
        { "consumed", { PRODUCED, CONSUMED, FIRED }, 4, 1, PRODUCED + 1,
          "CQEs that are not consumed=4294967295, but" },
        { "event queue", { PRODUCED, CONSUMED, FIRED }, 4, 3, 99,
          "has eqn=99, which must be an event queue" },
        { "event queue", { PRODUCED, CONSUMED, FIRED }, 4, 3, 0,
          "has eqn=0, which must be an event queue" },
    };
    QRdmaEq *eq = qrdma_create_eq(t->net.dev[0], 1);
    QRdmaQp *qp = loop_new(t, eq);

    qrdma_arm_direct_cq(qp->send_cq, NEXT);
    write_n(qp, 0, PRODUCED);
    expect_event(qp->send_cq);
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        if (cases[i].words == 4) {
            cases[i].find[3] = eq->eqn;
        }
    }
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

/* A CQ that was refused halfway can be queried, and is reset. */
static void test_refused_direct_cq_is_looked_at(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    const uint32_t shift = DEPTH_SHIFT << 24, pages = 2 << 24;
    const TripSpoilt bad = { "depth", { 0, shift, pages }, 3, 1,
                             shift - (1 << 24), "" };

    loop_new(t, qrdma_create_eq(t->net.dev[0], 1));
    trip_look_at_refused(t, 0, &bad);
}

/* The backend refuses what the device has loaded. */
static void test_refused_by_the_backend(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    TripSpoilt bad = { "GID index", { 0 }, 3, 0, 999, "", 1 };
    const uint8_t *gid = t->net.dev[0]->gid[0];

    bad.find[1] = ldl_be_p(gid);
    bad.find[2] = ldl_be_p(gid + 4);
    trip_look_at_refused(t, 0, &bad);
}

/* All parts load, but contradict each other. */
static void test_refused_at_the_end(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    TripSpoilt bad;

    bad = trip_without_feature(t->net.dev[0], VIRTIO_RDMA_F_DIRECT, "");
    trip_look_at_refused(t, 0, &bad);
}

/* A stream that breaks off leaves no objects, wherever it does. */
static void test_cut(void)
{
    static const TripCut cuts[] = {
        { "rdma-hca/backend", -900 },
        { "rdma-hca/backend", -400 },
        { "rdma-hca/backend", -2 },
        { "rdma-hca/backend", 30 },
        { "virtio-rdma-device/shadows", -40 },
        { "virtio-rdma-device/shadows", 38 },
    };
    g_autoptr(Trip) t = trip_connected(NULL);
    QRdma *d = t->net.dev[0];

    loop_new(t, qrdma_create_eq(d, 1));
    assert_ok(qrdma_set_shadow(d, QRDMA_DIRECT_DOORBELL,
                               qrdma_alloc(d, 4096)));
    trip_look_at_cut(t, 0, cuts, ARRAY_SIZE(cuts));
}

static void test_spoilt_direct_queues(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    /* log2 of depth and slot of each queue; page of doorbells; then pages */
    const uint32_t shifts = QRDMA_DIRECT_DEPTH_SHIFT << 24 |
                            QRDMA_DIRECT_SLOT_SHIFT << 16 |
                            QRDMA_DIRECT_DEPTH_SHIFT << 8 |
                            QRDMA_DIRECT_SLOT_SHIFT;
    const uint32_t page = QRDMA_DIRECT_DOORBELL << 16;
    const TripSpoilt cases[] = {
        { "depth", { shifts, page }, 2, 0, shifts + (1 << 24),
          "pages of its queues=65, which must be" },
        { "depth", { shifts, page }, 2, 0, shifts | 0xff000000,
          "pages of its queues=65, which must be" },
        { "slots", { shifts, page }, 2, 0, shifts - (5 << 16),
          "pages of its queues=65, which must be" },
        { "slots", { shifts, page }, 2, 0, shifts | 0xff,
          "pages of its queues=65, which must be" },
        { "page of doorbells", { shifts, page }, 2, 1, 0xffff0000,
          "pages of its queues=65, which must be" },
        { "more pages", { shifts, page }, 2, 1, page | 0xffff,
          "a queue in the migration stream has 4294901825 pages" },
    };

    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

/* A direct SRQ of side 0, and a QP there that receives from it */
static QRdmaSrq *srq_new(Trip *t, uint32_t max_wr, QRdmaQp **from)
{
    QRdmaPd *pd = t->p.a.pd;
    QRdmaSrq *srq = qrdma_create_srq(pd, max_wr, 2);
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .has_srq = true,
        .srqn = srq->srqn,
        .cap = { .max_send_wr = 8, .max_send_sge = 1 },
    };
    QRdmaQp *to = qrdma_create_qp_attr(pd, t->p.a.scq, t->p.a.rcq, &init);

    *from = qrdma_create_qp(pd, t->p.a.scq, t->p.a.scq, RDMA_QPT_RC);
    qrdma_connect(*from, to, NULL);
    return srq;
}

static void connect_with_srqs(Trip *t)
{
    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    qrdma_add_event_buffers(t->net.dev[0], 8);
}

static void send_to_srq(Trip *t, QRdmaQp *from, uint64_t wr_id)
{
    qrdma_post(from, qrdma_wr(RDMA_WR_SEND, wr_id, NULL));
    qrdma_expect(t->p.a.scq, wr_id, RDMA_WC_SUCCESS);
    qrdma_expect(t->p.a.rcq, wr_id, RDMA_WC_SUCCESS);
}

/*
 * The device has copied some WQEs, others are in slots. The limit counts both.
 */
static void test_slots_of_an_srq(void)
{
    enum { WR = 4, ALL = 12, LIMIT = 3 };
    g_autoptr(Trip) t = trip_new(NULL);
    QRdma *d;
    QRdmaQp *from;
    QRdmaSrq *srq;

    connect_with_srqs(t);
    d = t->net.dev[0];
    srq = srq_new(t, WR, &from);
    for (int i = 0; i < ALL; i++) {
        qrdma_put_recv(srq->dev, &srq->wq, i, NULL);
    }
    qrdma_doorbell(d, QRDMA_DIRECT_DOORBELL, srq->wq.bell);
    send_to_srq(t, from, 0);
    assert_ok(qrdma_modify_srq(srq, LIMIT));
    for (int i = 0; i < 2; i++) {
        trip_move(t, 0, NULL);
        qrdma_expect_no_event(d);
        g_assert_true(qrdma_direct_awake(d, &srq->wq));
    }
    for (int i = 1; i < ALL - LIMIT; i++) {
        send_to_srq(t, from, i);
    }
    qrdma_expect_no_event(d);
    send_to_srq(t, from, ALL - LIMIT);
    qrdma_expect_event(d, RDMA_EVENT_SRQ_LIMIT_REACHED, srq->srqn);
    for (int i = ALL - LIMIT + 1; i < ALL; i++) {
        send_to_srq(t, from, i);
    }
    /* The device goes on with its own count. */
    trip_move(t, 0, NULL);
    qrdma_direct_set_producer(d, &srq->wq, ALL - 1);
    qrdma_doorbell(d, QRDMA_DIRECT_DOORBELL, srq->wq.bell);
    qrdma_expect_event(d, RDMA_EVENT_SRQ_ERR, srq->srqn);
    /* An SRQ in error migrates, too. */
    trip_move(t, 0, NULL);
    qrdma_put_recv(srq->dev, &srq->wq, ALL, NULL);
    qrdma_doorbell(d, QRDMA_DIRECT_DOORBELL, srq->wq.bell);
}

static void test_spoilt_direct_srqs(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    /* log2 of depth and slot, page of doorbells; then pages and addresses */
    const uint32_t queue = QRDMA_DIRECT_DEPTH_SHIFT << 24 | 6 << 16 |
                           QRDMA_DIRECT_DOORBELL;
    TripSpoilt cases[] = {
        { "depth", { queue, 2 }, 2, 0, queue + (1 << 24),
          "pages of its queue=2, which must be" },
        { "depth", { queue, 2 }, 2, 0, queue | 0xff000000,
          "pages of its queue=2, which must be" },
        { "fewer slots than receives", { queue, 2 }, 2, 0,
          queue - (2 << 24), "pages of its queue=2, which must be" },
        { "slots", { queue, 2 }, 2, 0, queue | 0xff0000,
          "pages of its queue=2, which must be" },
        { "page of doorbells", { queue, 2 }, 2, 0, queue | 0xffff,
          "pages of its queue=2, which must be" },
        { "no pages", { queue, 2 }, 2, 1, 0,
          "has depth_shift without pages=6, but at most 0" },
        { "more pages", { queue, 2 }, 2, 1, UINT32_MAX,
          "a queue in the migration stream has 4294967295 pages" },
    };
    QRdmaQp *from;
    QRdmaSrq *srq;

    connect_with_srqs(t);
    srq = srq_new(t, 32, &from);
    g_assert_cmpuint(srq->wq.slot, ==, 64);
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

static void test_spoilt_number_without_virtqueues(void)
{
    g_autoptr(Trip) t = trip_new_with(NULL, MIGRATE_DEVICE ",max-qp=130");
    TripSpoilt it = { "qpn", {}, 2, 0, 128,
                      "QP 128 in the migration stream has qpn, with "
                      "virtqueues=128, but at most 127 is possible",
                      .copies = 1 };

    t->net.dev[0]->direct = false;
    trip_connect(t);
    it.find[0] = t->p.a.qp->qpn;
    it.find[1] = t->p.a.qp->pd->pdn;
    trip_refuse_spoilt(t, 0, &it, 1);
}

/* A stream with direct queues whose driver did not negotiate them */
static void test_direct_queues_without_the_feature(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    TripSpoilt cases[2];
    QRdmaQp *from;
    QRdmaSrq *srq;

    connect_with_srqs(t);
    srq = srq_new(t, 8, &from);
    cases[0] = trip_without_feature(srq->dev, VIRTIO_RDMA_F_DIRECT,
                                    "direct queue pairs in the migration "
                                    "stream, but the driver did not accept "
                                    "direct");
    cases[1] = trip_without_feature(srq->dev, VIRTIO_RDMA_F_VERSION_1,
                                    "did not accept version-1");
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

const QRdmaTest migrate_direct_tests[] = {
    { "refused-direct-cq-is-looked-at",
      test_refused_direct_cq_is_looked_at },
    { "refused-by-the-backend", test_refused_by_the_backend },
    { "refused-at-the-end", test_refused_at_the_end },
    { "cut", test_cut },
    { "event-queues", test_event_queues },
    { "queues-tell-that-they-sleep", test_queues_tell_that_they_sleep },
    { "counts-of-a-cq", test_counts_of_a_cq },
    { "spoilt-direct-cqs", test_spoilt_direct_cqs },
    { "slots-of-an-srq", test_slots_of_an_srq },
    { "spoilt-direct-srqs", test_spoilt_direct_srqs },
    { "spoilt-direct-queues", test_spoilt_direct_queues },
    { "spoilt-number-without-virtqueues",
      test_spoilt_number_without_virtqueues },
    { "direct-queues-without-the-feature",
      test_direct_queues_without_the_feature },
    {}
};
