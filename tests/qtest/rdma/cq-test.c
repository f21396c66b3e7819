/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: completion queues that are deeper than their virtqueue,
 * completion queues that are armed by virtio alone, and extended completions.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_ring.h"

#define EVENT_IDX QRDMA_F(VIRTIO_RING_F_EVENT_IDX)
#define PACKED QRDMA_F(VIRTIO_F_RING_PACKED)

#define SLOT 5
/* Entries of a CQ's virtqueue in most tests. */
#define RING 8
#define MAX_CQE 32768

static bool irq(QRdmaCq *cq)
{
    qrdma_settle(cq->dev);
    return qrdma_ring_irq(cq->ring);
}

/* A pair on the shared device, whose virtqueues have @size entries. */
static TestPair pair_with_rings(uint32_t size, uint32_t cqe)
{
    QRdma *d = test_device_reset();

    qrdma_start(d, 0, size);
    return test_pair_on(d, RDMA_QPT_RC, cqe, NULL);
}

static TestPair small_pair(uint32_t cqe)
{
    return pair_with_rings(RING, cqe);
}

/*
 * QPs of small_pair() have short queues: WRs that complete at once need no
 * receiver, and go in twos.
 */
static void post_writes(QRdmaQp *qp, uint64_t first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, first + i, NULL));
        qrdma_reap_all(qp->dev, &qp->sq);
    }
}

static void expect_writes(QRdmaCq *cq, uint64_t first, unsigned n)
{
    qrdma_expect_many(cq, first, n, RDMA_WC_SUCCESS);
}

/* Deep CQs */

static void test_depth_is_checked(void)
{
    QRdma *d = test_device_reset();
    uint32_t cqn;

    g_assert_cmpuint(qrdma_config_le32(d, max_cqe_deep), ==, MAX_CQE);
    qrdma_start(d, 0, RING);
    assert_status(qrdma_try_create_cq(d, 0, &cqn), INVAL);
    assert_status(qrdma_try_create_cq(d, MAX_CQE + 1, &cqn), INVAL);
    assert_status(qrdma_try_create_cq(d, UINT32_MAX, &cqn), INVAL);
    assert_ok(qrdma_try_create_cq(d, RING + 1, &cqn));
    assert_ok(qrdma_try_create_cq(d, MAX_CQE, &cqn));
    /* for a driver of the RFC the ring is the limit */
    qrdma_start(d, QRDMA_RFC_FEATURES, RING);
    assert_status(qrdma_try_create_cq(d, RING + 1, &cqn), ERR);
    assert_ok(qrdma_try_create_cq(d, RING, &cqn));
}

static void test_depth_is_a_property(void)
{
    QRdma *d = test_own_device("max-qp=4,max-cq=4,max-cqe=100");
    uint32_t cqn;

    qrdma_start(d, 0, 1024);
    assert_status(qrdma_try_create_cq(d, 101, &cqn), INVAL);
    assert_ok(qrdma_try_create_cq(d, 100, &cqn));
    qrdma_host_stop(d->host);
}

static void test_backlog_keeps_its_order(void)
{
    TestPair t = small_pair(100);

    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 50);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_RTS);
    expect_writes(t.cq_a, 0, RING);
    qrdma_expect_none(t.cq_a);
    for (int i = 0; i < 5; i++) {
        qrdma_refill_cq(t.cq_a, 2);
        expect_writes(t.cq_a, RING + 2 * i, 2);
        qrdma_expect_none(t.cq_a);
    }
    /* new completions come after the backlog */
    post_writes(t.a, RING + 50, 10);
    t.cq_a->no_refill = false;
    qrdma_refill_cq(t.cq_a, RING);
    expect_writes(t.cq_a, RING + 10, 50);
    post_writes(t.a, 1000, 3);
    expect_writes(t.cq_a, 1000, 3);
    qrdma_expect_none(t.cq_a);
}

static void test_overrun_is_one_more_than_the_depth(void)
{
    TestPair t = small_pair(20);
    RdmaWc wc;

    qrdma_add_event_buffers(t.dev, 4);
    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 20);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_RTS);
    qrdma_expect_no_event(t.dev);
    post_writes(t.a, 28, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_CQ_ERR, t.cq_a->cqn);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, t.a->qpn);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_ERR);
    g_assert_cmpint(qrdma_qp_state(t.b), ==, RDMA_QPS_RTS);
    /* the CQ is in error: it does not write its backlog any more */
    expect_writes(t.cq_a, 0, RING);
    qrdma_refill_cq(t.cq_a, RING);
    qrdma_ring_kick(t.cq_a->ring);
    qrdma_settle(t.dev);
    g_assert_false(qrdma_poll_cq(t.cq_a, &wc));
}

static void test_depth_below_the_ring(void)
{
    TestPair t = small_pair(3);

    /* the ring takes what it can, and the backlog has three more */
    qrdma_refill_cq(t.cq_a, RING - 3);
    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 3);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_RTS);
    expect_writes(t.cq_a, 0, RING);
    qrdma_refill_cq(t.cq_a, 3);
    expect_writes(t.cq_a, RING, 3);
}

/* Split and packed rings, with and without the event index */
static void for_each_ring(void (*check)(QRdma *d, uint64_t features))
{
    static const uint64_t features[] = {
        0, EVENT_IDX, PACKED, PACKED | EVENT_IDX,
    };
    QRdma *d = test_own_device("max-qp=4,max-cq=4,packed=on");

    for (int i = 0; i < ARRAY_SIZE(features); i++) {
        check(d, features[i]);
    }
    qrdma_host_stop(d->host);
}

/*
 * The driver need not notify unless completions wait for its buffers. Then the
 * device asks for it (qrdma_refill_cq() notifies only on request). With the
 * event index the device may ask once more than needed.
 */
static void check_notifications(QRdma *d, uint64_t features)
{
    TestPair t;
    uint16_t old;

    qrdma_start(d, QRDMA_FEATURES | features, RING);
    t = test_pair_on(d, RDMA_QPT_RC, 100, NULL);
    t.cq_a->no_refill = true;
    for (int lap = 0; lap < 5; lap++) {
        post_writes(t.a, 0, 5);
        expect_writes(t.cq_a, 0, 5);
        old = t.cq_a->ring->avail_idx;
        qrdma_refill_cq(t.cq_a, 5);
        if (lap) {
            g_assert_false(qrdma_ring_wants_kick(t.cq_a->ring, old));
        }
        /* fill the ring, and post three more */
        post_writes(t.a, 0, RING + 3);
        expect_writes(t.cq_a, 0, RING);
        for (int i = 0; i < 3; i++) {
            qrdma_refill_cq(t.cq_a, 1);
            expect_writes(t.cq_a, RING + i, 1);
            qrdma_expect_none(t.cq_a);
        }
        qrdma_refill_cq(t.cq_a, 1);
        old = t.cq_a->ring->avail_idx;
        qrdma_refill_cq(t.cq_a, RING - 1);
        g_assert_false(qrdma_ring_wants_kick(t.cq_a->ring, old));
    }
}

static void test_notifications(void)
{
    for_each_ring(check_notifications);
}

/* A ring full of buffers comes at once, and the backlog is larger than that. */
static void test_backlog_larger_than_the_ring(void)
{
    const unsigned ring = 1024, backlog = ring + 20;
    QRdma *d = test_own_device("max-qp=4,max-cq=2,max-srq=1,queue-size=%u",
                               ring);
    TestPair t;

    qrdma_start(d, 0, ring);
    t = test_pair_on(d, RDMA_QPT_RC, 2 * ring, NULL);
    t.cq_a->no_refill = true;
    post_writes(t.a, 0, ring + backlog);
    expect_writes(t.cq_a, 0, ring);
    qrdma_expect_none(t.cq_a);
    qrdma_refill_cq(t.cq_a, ring);
    expect_writes(t.cq_a, ring, ring);
    qrdma_expect_none(t.cq_a);
    /* completions that are left make the device look for buffers again */
    qrdma_refill_cq(t.cq_a, ring);
    expect_writes(t.cq_a, 2 * ring, backlog - ring);
    qrdma_expect_none(t.cq_a);
    qrdma_host_stop(d->host);
}

static void test_backlog_interrupts(void)
{
    TestPair t = small_pair(100);

    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 4);
    g_assert_true(irq(t.cq_a));
    assert_ok(qrdma_req_notify_cq(t.cq_a, VIRTIO_RDMA_NOTIFY_SOLICITED));
    expect_writes(t.cq_a, 0, RING);
    qrdma_refill_cq(t.cq_a, 1);
    expect_writes(t.cq_a, RING, 1);
    /* not a solicited one */
    g_assert_false(irq(t.cq_a));
    assert_ok(qrdma_req_notify_cq(t.cq_a,
                                  VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION));
    g_assert_false(irq(t.cq_a));
    for (int i = 1; i < 4; i++) {
        qrdma_refill_cq(t.cq_a, 1);
        expect_writes(t.cq_a, RING + i, 1);
        g_assert_true(irq(t.cq_a));
    }
}

static void test_errors_in_backlog_are_solicited(void)
{
    TestPair t = small_pair(100);

    t.cq_b->no_refill = true;
    post_writes(t.b, 0, RING);
    qrdma_recv(t.b, 77, NULL);
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_ERR));
    expect_writes(t.cq_b, 0, RING);
    qrdma_expect_none(t.cq_b);
    irq(t.cq_b);
    assert_ok(qrdma_req_notify_cq(t.cq_b, VIRTIO_RDMA_NOTIFY_SOLICITED));
    g_assert_false(irq(t.cq_b));
    qrdma_refill_cq(t.cq_b, 1);
    qrdma_expect(t.cq_b, 77, RDMA_WC_WR_FLUSH_ERR);
    g_assert_true(irq(t.cq_b));
}

static void test_leave_without_completions(const void *data)
{
    bool destroy = GPOINTER_TO_INT(data);
    TestPair t = small_pair(100);
    QRdmaQp *c = qrdma_create_loop(t.pd, t.cq_a, t.cq_a);

    t.cq_a->no_refill = true;
    post_writes(c, 0, RING);
    for (int i = 0; i < 10; i++) {
        post_writes(t.a, 100 + i, 1);
        post_writes(c, 200 + i, 1);
    }
    if (destroy) {
        assert_ok(qrdma_destroy_qp(c));
    } else {
        assert_ok(qrdma_modify_qp_state(c, RDMA_QPS_RESET));
    }
    expect_writes(t.cq_a, 0, RING);
    t.cq_a->no_refill = false;
    qrdma_refill_cq(t.cq_a, RING);
    expect_writes(t.cq_a, 100, 10);
    qrdma_expect_none(t.cq_a);
}

/* A buffer of @count descriptors with @len bytes each fails the CQ. */
static void expect_bad_buffer(uint32_t count, uint32_t len)
{
    const uint32_t size = 32;
    TestPair t = pair_with_rings(size, 100);
    g_autofree QRdmaDesc *desc = g_new(QRdmaDesc, count);

    for (uint32_t i = 0; i < count; i++) {
        desc[i] = (QRdmaDesc) { qrdma_alloc(t.dev, 64), len, true };
    }
    qrdma_add_event_buffers(t.dev, 4);
    t.cq_a->no_refill = true;
    post_writes(t.a, 0, size + 4);
    expect_writes(t.cq_a, 0, size);
    qrdma_ring_add(t.cq_a->ring, desc, count);
    qrdma_ring_kick(t.cq_a->ring);
    qrdma_expect_event(t.dev, RDMA_EVENT_CQ_ERR, t.cq_a->cqn);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, t.a->qpn);
    qrdma_expect_no_event(t.dev);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_ERR);
    assert_ok(qrdma_destroy_qp(t.a));
    assert_ok(qrdma_destroy_cq(t.cq_a));
}

static void test_short_buffer_for_backlog(void)
{
    expect_bad_buffer(1, 47);
}

static void test_buffer_with_many_descriptors(void)
{
    expect_bad_buffer(17, 64);
}

static void test_malformed_ring_with_backlog(void)
{
    TestPair t = small_pair(100);
    QRdmaRing *ring = t.cq_a->ring;

    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 4);
    expect_writes(t.cq_a, 0, RING);
    qrdma_ring_set_avail_idx(ring, ring->avail_idx + RING + 1);
    qrdma_ring_kick(ring);
    qrdma_wait_until(t.dev, qrdma_needs_reset(t.dev));
    t = small_pair(100);
    post_writes(t.a, 0, 2);
    expect_writes(t.cq_a, 0, 2);
}

static void test_device_reset_drops_backlog(void)
{
    TestPair t = small_pair(1000);

    t.cq_a->no_refill = true;
    post_writes(t.a, 0, 200);
    t = small_pair(1000);
    qrdma_expect_none(t.cq_a);
    post_writes(t.a, 0, 2);
    expect_writes(t.cq_a, 0, 2);
}

/* A reset of its ring fails a CQ. A new ring does not repair the CQ. */
static void test_ring_reset_fails_cq(void)
{
    TestPair t = small_pair(1000);
    QRdmaQp *c = qrdma_create_loop(t.pd, t.cq_b, t.cq_a);

    qrdma_ring_reset(t.cq_b->ring);
    qrdma_wait_until(t.dev, qrdma_qp_state(c) == RDMA_QPS_ERR);
    qrdma_ring_setup(t.cq_b->ring, RING);
    qrdma_refill_cq(t.cq_b, RING);
    qrdma_post_send(c, &(RdmaSendWr) { .opcode = RDMA_WR_RDMA_WRITE });
    qrdma_expect_none(t.cq_b);
}

static void test_resize(void)
{
    TestPair t = small_pair(20);
    QRdmaCq none = { .dev = t.dev, .cqn = t.cq_a->cqn + 77 };

    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 10);
    assert_status(qrdma_resize_cq(&none, 20, 0), NOENT);
    assert_status(qrdma_resize_cq(t.cq_a, 0, 0), INVAL);
    assert_status(qrdma_resize_cq(t.cq_a, MAX_CQE + 1, 0), INVAL);
    assert_status(qrdma_resize_cq(t.cq_a, UINT32_MAX, 0), INVAL);
    assert_status(qrdma_resize_cq(t.cq_a, 9, 0), INVAL);
    assert_status(qrdma_resize_cq(t.cq_a, RING + 9, RING), INVAL);
    assert_status(qrdma_resize_cq(t.cq_a, 20, UINT32_MAX), INVAL);
    assert_status(qrdma_resize_cq(t.cq_a, 20, UINT32_MAX - 9), INVAL);
    /* the failed command changed nothing: ten more fit */
    post_writes(t.a, RING + 10, 10);
    assert_ok(qrdma_resize_cq(t.cq_a, 200, RING));
    post_writes(t.a, RING + 20, 180);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_RTS);
    t.cq_a->no_refill = false;
    expect_writes(t.cq_a, 0, RING + 200);
    /* smaller again */
    assert_ok(qrdma_resize_cq(t.cq_a, 5, 0));
    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 5);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_RTS);
    post_writes(t.a, RING + 5, 1);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_ERR);
}

/* A fault delays the command. The device still checks the backlog. */
static void test_resize_after_a_delay(void)
{
    TestPair t = small_pair(20);
    QTestState *qts = t.dev->host->qts;
    struct virtio_rdma_resize_cq_req req = {
        .cqn = cpu_to_le32(t.cq_a->cqn),
        .cqe = cpu_to_le32(9),
    };
    QRdmaWaiting w;

    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 10);
    qtest_qmp_assert_success(qts, "{'execute': 'rdma-fault-add', 'arguments': "
                             "{'device': 'rdma0', 'id': 'f', 'kind': "
                             "'command-delay', 'command': 'resize-cq', "
                             "'delay': 1000}}");
    w = qrdma_enqueue(t.dev, VIRTIO_RDMA_CMD_RESIZE_CQ, &req,
                      offsetof(struct virtio_rdma_resize_cq_req, queue_pages),
                      0);
    qrdma_ring_kick(qrdma_ring(t.dev, VIRTIO_RDMA_CTRL_VQ));
    qrdma_settle(t.dev);
    g_assert_cmphex(qrdma_status_of(&w), ==, QRDMA_NO_STATUS);
    qtest_qmp_assert_success(qts, "{'execute': 'rdma-fault-remove', "
                             "'arguments': {'device': 'rdma0', 'id': 'f'}}");
    qrdma_reap_commands(t.dev, 1);
    assert_status(qrdma_status_of(&w), INVAL);
}

static void test_stopped_vm(void)
{
    TestPair t = small_pair(100);
    QTestState *qts = t.dev->host->qts;
    RdmaWc wc;

    t.cq_a->no_refill = true;
    post_writes(t.a, 0, RING + 4);
    expect_writes(t.cq_a, 0, RING);
    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    qrdma_refill_cq(t.cq_a, RING);
    qrdma_settle(t.dev);
    g_assert_false(qrdma_poll_cq(t.cq_a, &wc));
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    expect_writes(t.cq_a, RING, 4);
}

/* Arming by virtio's suppression alone */

#define SOLICITED VIRTIO_RDMA_NOTIFY_SOLICITED
#define NEXT      VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION

/* Send one message from a to b, and take both completions. */
static void message(TestPair *t, uint32_t flags)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, NULL);

    wr.send_flags |= flags;
    qrdma_recv(t->b, 2, NULL);
    qrdma_post_send(t->a, &wr);
    qrdma_expect_wc(t->cq_b, 2, RDMA_WC_RECV, NULL);
    qrdma_expect_wc(t->cq_a, 1, RDMA_WC_SEND, NULL);
}

/* Have the device interrupt from the next used buffer on, or not. */
static void permit(QRdmaCq *cq, bool yes)
{
    QTestState *qts = cq->dev->host->qts;
    QVirtQueue *vq = &cq->ring->pci.vq;
    bool event_idx = cq->dev->features & EVENT_IDX;

    if (cq->ring->packed) {
        uint16_t wrap = !cq->ring->used_lap;

        if (event_idx && yes) {
            qtest_writew(qts, vq->avail, cq->ring->used_at | wrap << 15);
        }
        qtest_writew(qts, vq->avail + 2,
                     !yes ? VRING_PACKED_EVENT_FLAG_DISABLE :
                     event_idx ? VRING_PACKED_EVENT_FLAG_DESC :
                                 VRING_PACKED_EVENT_FLAG_ENABLE);
    } else if (event_idx) {
        qtest_writew(qts, vq->avail + 4 + 2 * vq->size,
                     cq->ring->used_idx + (yes ? 0 : 0x8000));
    } else {
        qtest_writew(qts, vq->avail, yes ? 0 : VRING_AVAIL_F_NO_INTERRUPT);
    }
}

static void check_ring_arm(QRdma *d, uint64_t features)
{
    TestPair t;

    qrdma_start(d, QRDMA_FEATURES | features, 16);
    t = test_pair_on(d, RDMA_QPT_RC, 16, NULL);
    permit(t.cq_a, false);
    /* the first notification of a queue is always sent */
    message(&t, 0);
    irq(t.cq_a);
    irq(t.cq_b);
    /* laps around the ring, in either mode */
    for (int i = 0; i < 40; i++) {
        bool solicited = i % 3 == 0;
        bool mode_all = i < 10 || i >= 30;

        if (i == 10) {
            assert_ok(qrdma_req_notify_cq(t.cq_b, SOLICITED));
        } else if (i == 30) {
            assert_ok(qrdma_req_notify_cq(t.cq_b, NEXT));
        }
        permit(t.cq_b, true);
        message(&t, solicited ? RDMA_SEND_SOLICITED : 0);
        g_assert_cmpint(irq(t.cq_b), ==, mode_all || solicited);
        permit(t.cq_b, false);
        message(&t, RDMA_SEND_SOLICITED);
        g_assert_false(irq(t.cq_b));
        g_assert_false(irq(t.cq_a));
    }
    /* a failure counts as solicited */
    assert_ok(qrdma_req_notify_cq(t.cq_b, SOLICITED));
    permit(t.cq_b, true);
    message(&t, 0);
    g_assert_false(irq(t.cq_b));
    qrdma_recv(t.b, 3, NULL);
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_ERR));
    qrdma_expect(t.cq_b, 3, RDMA_WC_WR_FLUSH_ERR);
    g_assert_true(irq(t.cq_b));
    /* the broader of both requests counts */
    assert_ok(qrdma_req_notify_cq(t.cq_b, SOLICITED | NEXT));
    assert_status(qrdma_req_notify_cq(t.cq_b, 0), INVAL);
    assert_status(qrdma_req_notify_cq(t.cq_b, 4), INVAL);
}

static void test_ring_arm(void)
{
    for_each_ring(check_ring_arm);
}

static void test_mode_goes_with_the_cq(void)
{
    QRdma *d = test_device();
    TestPair t = test_pair_on(d, RDMA_QPT_RC, 16, NULL);

    assert_ok(qrdma_req_notify_cq(t.cq_b, SOLICITED));
    message(&t, 0);
    g_assert_false(irq(t.cq_b));
    test_renew_cq_b(&t);
    message(&t, 0);
    g_assert_true(irq(t.cq_b));
}

const QRdmaTest cq_tests[] = {
    { "cq-deep/depth-is-checked", test_depth_is_checked },
    { "cq-deep/depth-is-a-property", test_depth_is_a_property },
    { "cq-deep/backlog-keeps-its-order", test_backlog_keeps_its_order },
    { "cq-deep/overrun-is-one-more-than-the-depth",
      test_overrun_is_one_more_than_the_depth },
    { "cq-deep/depth-below-the-ring", test_depth_below_the_ring },
    { "cq-deep/notifications", test_notifications },
    { "cq-deep/backlog-larger-than-the-ring",
      test_backlog_larger_than_the_ring },
    { "cq-deep/backlog-interrupts", test_backlog_interrupts },
    { "cq-deep/errors-in-backlog-are-solicited",
      test_errors_in_backlog_are_solicited },
    { "cq-deep/destroyed-qp-takes-its-along",
      .run_case = test_leave_without_completions,
      .data = GINT_TO_POINTER(true) },
    { "cq-deep/reset-qp-takes-its-along",
      .run_case = test_leave_without_completions,
      .data = GINT_TO_POINTER(false) },
    { "cq-deep/short-buffer", test_short_buffer_for_backlog },
    { "cq-deep/buffer-with-many-descriptors",
      test_buffer_with_many_descriptors },
    { "cq-deep/malformed-ring", test_malformed_ring_with_backlog },
    { "cq-deep/device-reset", test_device_reset_drops_backlog },
    { "cq-deep/ring-reset", test_ring_reset_fails_cq },
    { "cq-deep/resize", test_resize },
    { "cq-deep/resize-after-a-delay", test_resize_after_a_delay },
    { "cq-deep/stopped-vm", test_stopped_vm },
    { "cq-ring-arm/modes-and-suppression", test_ring_arm },
    { "cq-ring-arm/mode-goes-with-the-cq", test_mode_goes_with_the_cq },
    {}
};
