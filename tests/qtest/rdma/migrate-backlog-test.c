/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the backlogs of completions and events, and of bad streams.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "migrate-test.h"
#include "move.h"

#define DEPTH 150
#define BACKLOG 100
#define WR_ID 0x1122334455660000ull

/* Work queues are virtqueues, whose rings these tests look at. */
static Trip *trip_of_rings(void)
{
    Trip *t = trip_new(NULL);

    t->net.dev[0]->direct = false;
    return t;
}

static void post_writes(QRdmaQp *qp, uint64_t first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, first + i, NULL));
    }
}

/*
 * Make a QP of side 0 that is connected to itself, with a CQ of DEPTH. BACKLOG
 * completions wait for buffers, and so do the two events of @failed.
 */
static QRdmaQp *make_backlog(Trip *t, uint32_t failed[2])
{
    QRdma *d = t->net.dev[0];
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp, *bad;

    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    pd = t->p.a.pd;
    cq = qrdma_create_cq(d, 1000);
    cq->no_refill = true;
    qp = qrdma_create_loop(pd, cq, cq);
    assert_ok(qrdma_resize_cq(cq, DEPTH, 0));
    assert_ok(qrdma_req_notify_cq(cq, VIRTIO_RDMA_NOTIFY_SOLICITED));
    post_writes(qp, WR_ID, QRDMA_RING_SIZE + BACKLOG);
    qrdma_reap_all(d, &qp->sq);
    qrdma_expect_many(cq, WR_ID, QRDMA_RING_SIZE, RDMA_WC_SUCCESS);
    qrdma_expect_none(cq);

    for (int i = 0; i < 2; i++) {
        bad = qrdma_create_loop(pd, t->p.a.scq, t->p.a.scq);
        qrdma_ring_reset(bad->rq.ring);
        failed[i] = bad->qpn;
    }
    return qp;
}

static void test_backlog(void)
{
    g_autoptr(Trip) t = trip_of_rings();
    uint32_t failed[2];
    QRdmaQp *qp = make_backlog(t, failed);
    QRdmaCq *cq = qp->send_cq;
    QRdma *d = qp->dev;
    uint64_t before[VIRTIO_RDMA_NUM_COUNTERS];
    uint64_t after[VIRTIO_RDMA_NUM_COUNTERS];

    assert_ok(qrdma_query_counters(d, 1, before));
    g_assert_cmpuint(before[VIRTIO_RDMA_LOOPBACK_PACKETS], !=, 0);
    trip_move(t, 0, NULL);
    assert_ok(qrdma_query_counters(d, 1, after));
    /* The connection sends frames to its peer, itself, after the migration. */
    for (int i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        g_assert_cmpuint(after[i], >=, before[i]);
        g_assert_cmpuint(after[i], <=, before[i] + 1);
    }
    qrdma_add_event_buffers(d, 8);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, failed[0]);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, failed[1]);
    qrdma_expect_no_event(d);

    /* none of these is solicited, and the arm mode has migrated */
    qrdma_refill_cq(cq, 10);
    qrdma_expect_many(cq, WR_ID + QRDMA_RING_SIZE, 10, RDMA_WC_SUCCESS);
    qrdma_expect_none(cq);
    g_assert_false(qrdma_ring_irq(cq->ring));
    /* the depth has migrated, too */
    post_writes(qp, WR_ID + QRDMA_RING_SIZE + BACKLOG, DEPTH - BACKLOG + 10);
    qrdma_expect_no_event(d);
    g_assert_cmpint(qrdma_qp_state(qp), ==, RDMA_QPS_RTS);
    trip_move_by_file(t, 0);
    cq->no_refill = false;
    qrdma_refill_cq(cq, QRDMA_RING_SIZE);
    qrdma_expect_many(cq, WR_ID + QRDMA_RING_SIZE + 10, DEPTH,
                      RDMA_WC_SUCCESS);
    cq->no_refill = true;
    post_writes(qp, WR_ID, QRDMA_RING_SIZE);
    qrdma_reap_all(d, &qp->sq);
    post_writes(qp, WR_ID, DEPTH + 1);
    qrdma_expect_event(d, RDMA_EVENT_CQ_ERR, cq->cqn);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, qp->qpn);
}

static void test_spoilt(void)
{
    g_autoptr(Trip) t = trip_of_rings();
    uint32_t bad[2];
    QRdmaQp *qp = make_backlog(t, bad);
    const uint32_t cqn = qp->send_cq->cqn;
    const TripSpoilt cases[] = {
        { "depth", { cqn, DEPTH }, 2, 1, BACKLOG - 1,
          "has n_backlog=100, but at most 99" },
        /* Refused before the backlog is read */
        { "depth", { cqn, DEPTH }, 2, 1, UINT32_MAX,
          "has cqe=4294967295, but at most 32768" },
        { "depth", { cqn, DEPTH }, 2, 1, 1048576,
          "has cqe=1048576, but at most 32768" },
        { "number", { cqn, DEPTH }, 2, 0, 7, "CQ 7 in the migration" },
        { "type", { 1, bad[0], 1, bad[1] }, 4, 0, 77, "type=77, id=" },
        { "type", { 1, bad[0], 1, bad[1] }, 4, 0, 0xff, "type=255, id=" },
        { "id", { 1, bad[0], 1, bad[1] }, 4, 1, 8, "type=1, id=8," },
        { "twice", { 1, bad[0], 1, bad[1] }, 4, 3, bad[0], "and come once" },
        trip_without_feature(qp->dev, VIRTIO_RDMA_F_VERSION_1,
                             "events in the migration stream, but the driver "
                             "did not accept version-1"),
    };

    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

/* No events wait, and the CQ is not too deep for a driver of the RFC. */
static void test_spoilt_backlog_without_version_1(void)
{
    g_autoptr(Trip) t = trip_of_rings();
    QRdma *d = t->net.dev[0];
    QRdmaCq *cq;
    QRdmaQp *qp;
    TripSpoilt it;

    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    qrdma_add_event_buffers(d, 8);
    cq = qrdma_create_cq(d, 1000);
    cq->no_refill = true;
    qp = qrdma_create_loop(t->p.a.pd, cq, cq);
    assert_ok(qrdma_resize_cq(cq, 20, 0));
    post_writes(qp, WR_ID, QRDMA_RING_SIZE + 10);
    qrdma_reap_all(d, &qp->sq);
    qrdma_expect_many(cq, WR_ID, QRDMA_RING_SIZE, RDMA_WC_SUCCESS);
    qrdma_expect_none(cq);
    it = trip_without_feature(d, VIRTIO_RDMA_F_VERSION_1,
                              "n_backlog=10, but at most 0");
    trip_refuse_spoilt(t, 0, &it, 1);
}

/* Returning buffers that the source had popped must not leave the ring. */
static void test_spoilt_rings(void)
{
    g_autoptr(Trip) t = trip_of_rings();
    /* stale, count; index and ndescs of the first one; npages and so on */
    const uint32_t first[] = { 0, 13, 0 << 16 | 1, 0 };
    const TripSpoilt cases[] = {
        { "descriptors", { first[0], first[1], first[2], first[3] }, 4, 2,
          QRDMA_RING_SIZE - 11, "has ndescs of all WQEs=65, but at most 64" },
        { "descriptors", { first[0], first[1], first[2], first[3] }, 4, 2, 0,
          "has ndescs=0," },
        { "index", { first[0], first[1], first[2], first[3] }, 4, 2,
          QRDMA_RING_SIZE << 16 | 1, "has index=64," },
    };

    trip_connect(t);
    /* Nothing answers, and time stands still. */
    assert_ok(qrdma_modify_qp_state(t->p.b.qp, RDMA_QPS_RESET));
    for (int i = 0; i < first[1]; i++) {
        qrdma_post_send(t->p.a.qp, &(RdmaSendWr) {
            .wr_id = i, .opcode = RDMA_WR_RDMA_WRITE,
        });
    }
    qrdma_settle(t->p.a.dev);
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

/*
 * QEMU must not leave its arrays, and the ring. From 11.1 on, QEMU itself
 * refuses sizes above the device's.
 */
static void test_spoilt_ring_sizes(void)
{
    g_autoptr(Trip) t = trip_of_rings();
    const QVirtQueue *vq;
    TripSpoilt cases[] = {
        { "size", {}, 3, 0, 0, "has size=0, which" },
        { "size", {}, 3, 0, 1025, "1025" },
        { "size", {}, 3, 0, UINT32_MAX, "4294967295" },
    };

    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    vq = &t->p.a.qp->rq.ring->pci.vq;
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        cases[i].find[0] = vq->size;
        cases[i].find[1] = vq->desc >> 32;
        cases[i].find[2] = vq->desc;
    }
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

static void test_spoilt_ring_indices(void)
{
    g_autoptr(Trip) t = trip_of_rings();
    /* "virtio/packed_virtqueues", its version, and then the control queue */
    const TripSpoilt cases[] = {
        { "available", { 0x645f7669, 0x72747175, 0x65756573, 1 }, 4, 4,
          0x7fff << 16, "has last_avail_idx=32767, but at most" },
        { "used", { 0x645f7669, 0x72747175, 0x65756573, 1 }, 4, 4,
          0x7f, "has used_idx=32" },
    };

    t->p = net_pair_new_with(&t->net, RDMA_QPT_RC,
                             QRDMA_F(VIRTIO_F_RING_PACKED));
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

/*
 * The QPs still share their CQ: when one enters ERR its flushed receives
 * overrun the CQ, and with that the others enter ERR.
 */
static void test_qps_that_fail_after_arrival(void)
{
    g_autoptr(Trip) t = trip_of_rings();
    QRdmaQp *qp[3];
    QRdmaPd *pd;
    QRdmaCq *cq;

    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    pd = t->p.a.pd;
    cq = qrdma_create_cq(pd->dev, 1);
    cq->no_refill = true;
    for (int i = 0; i < 3; i++) {
        qp[i] = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
        assert_ok(qrdma_modify_init(qp[i], 0));
        /* one finds a buffer, one waits for another, one is too many */
        for (int j = 0; j < 3; j++) {
            qrdma_recv(qp[i], 3 * i + j, NULL);
        }
    }
    qrdma_settle(pd->dev);

    trip_move_by_file(t, 0);
    qrdma_settle(pd->dev);
    for (int i = 0; i < 3; i++) {
        g_assert_cmpint(qrdma_qp_state(qp[i]), ==, RDMA_QPS_INIT);
    }
    assert_ok(qrdma_modify_qp_state(qp[0], RDMA_QPS_ERR));
    qrdma_settle(pd->dev);
    qrdma_expect(cq, 0, RDMA_WC_WR_FLUSH_ERR);
    for (int i = 0; i < 3; i++) {
        g_assert_cmpint(qrdma_qp_state(qp[i]), ==, RDMA_QPS_ERR);
        qrdma_reap(&qp[i]->rq);
        g_assert_cmpuint(qp[i]->rq.retired, ==, 3);
    }
}

/* WQEs in flight at the source go back to the ring at the destination. */
static void test_rings_of_all_kinds(void)
{
    static const struct {
        uint64_t features;
        bool rfc;
    } kinds[] = {
        { QRDMA_F(VIRTIO_F_RING_PACKED) },
        { QRDMA_F(VIRTIO_F_IN_ORDER) },
        { QRDMA_F(VIRTIO_F_RING_PACKED) | QRDMA_F(VIRTIO_F_IN_ORDER) },
        { QRDMA_F(VIRTIO_F_IN_ORDER), .rfc = true },
    };
    const QRdmaPath path = { .timeout = MIGRATE_TIMEOUT_CODE };
    uint8_t wqe[QRDMA_WQE_ROOM];

    for (int i = 0; i < ARRAY_SIZE(kinds); i++) {
        uint64_t features = kinds[i].features;
        g_autoptr(Trip) t = trip_of_rings();
        QRdmaQp *a, *b;
        RdmaWc wc;

        t->p = kinds[i].rfc ? net_pair_rfc(&t->net, RDMA_QPT_RC, features)
                            : net_pair_new_with(&t->net, RDMA_QPT_RC, features);
        a = t->p.a.qp;
        b = t->p.b.qp;
        qrdma_connect(a, b, &path);
        for (int move = 0; move < 3; move++) {
            /* One descriptor each, or several */
            for (int j = 0; j < 20; j++) {
                qrdma_post_raw(b, &b->rq, wqe, qrdma_encode_recv(
                    &(RdmaRecvWr) { .wr_id = j }, wqe), j % 3 ? 0 : 6, true);
            }
            qrdma_settle(b->dev);
            trip_move(t, 1, NULL);
            for (int j = 0; j < 20; j++) {
                qrdma_post(a, qrdma_wr(RDMA_WR_SEND, 1, NULL));
                trip_wait_wc(t, t->p.b.rcq, j, &wc);
                trip_wait_wc(t, t->p.a.scq, 1, &wc);
            }
            qrdma_reap_all(b->dev, &b->rq);
        }
    }
}

/* Buffers in flight have to come back in their order. */
static void test_ring_in_another_order(void)
{
    g_autoptr(Trip) t = trip_of_rings();
    QRdmaQp *a;

    t->p = net_pair_new_with(&t->net, RDMA_QPT_RC, QRDMA_F(VIRTIO_F_IN_ORDER));
    a = t->p.a.qp;
    qrdma_connect(a, t->p.b.qp, NULL);
    assert_ok(qrdma_modify_qp_state(t->p.b.qp, RDMA_QPS_RESET));
    for (int i = 0; i < 2; i++) {
        qrdma_post(a, qrdma_wr(RDMA_WR_SEND, i, NULL));
    }
    qrdma_settle(a->dev);
    qrdma_ring_set_avail(a->sq.ring, 0, 1);
    trip_move(t, 0, NULL);
    qrdma_wait_until(a->dev, qrdma_needs_reset(a->dev));
}

/* The destination's port may differ from the source's. */
static void test_configuration_is_read_again(void)
{
    static const char *const args = "-netdev hubport,id=n0,hubid=0 "
                                    "-device virtio-rdma-pci,netdev=n0,addr=4";
    g_autoptr(QRdmaHost) host = qrdma_host_start("%s", args);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(4, 0));

    qrdma_start(d, QRDMA_FEATURES, 0);
    qvirtio_pci_set_msix_configuration_vector(d->pci, &host->alloc, 0);
    g_array_append_val(d->mem, d->pci->config_msix_addr);
    qtest_writel(host->qts, d->pci->config_msix_addr, 0);
    move_host(host, args);
    qvirtio_wait_config_isr(&d->pci->vdev, qrdma_patience());
}

const QRdmaTest migrate_backlog_tests[] = {
    { "rings-of-all-kinds", test_rings_of_all_kinds },
    { "ring-in-another-order", test_ring_in_another_order },
    { "configuration-is-read-again", test_configuration_is_read_again },
    { "fail-after-arrival", test_qps_that_fail_after_arrival },
    { "backlog", test_backlog },
    { "spoilt", test_spoilt },
    { "spoilt-backlog-without-version-1",
      test_spoilt_backlog_without_version_1 },
    { "spoilt-rings", test_spoilt_rings },
    { "spoilt-ring-sizes", test_spoilt_ring_sizes },
    { "spoilt-ring-indices", test_spoilt_ring_indices },
    {}
};
