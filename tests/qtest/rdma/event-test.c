/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: asynchronous events.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_ring.h"

static QRdmaRing *event_ring(QRdma *d)
{
    return qrdma_ring(d, VIRTIO_RDMA_EVENT_VQ(d->max_cq, d->max_qp));
}

/* A connected pair that has @buffers for events. */
static TestPair event_pair(unsigned buffers)
{
    TestPair t = test_pair_on(test_device(), RDMA_QPT_RC, 64,
                              NULL);

    if (buffers) {
        qrdma_add_event_buffers(t.dev, buffers);
    }
    return t;
}

/* A WRITE of @a that @b must refuse: b has an event, a a completion. */
static void bad_write(TestPair *t)
{
    RdmaSge sge = qrdma_sge(t->mr_a, 0, 8);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, t->mr_b, 0);

    wr.wr.rdma.rkey ^= 1;
    qrdma_post_expect(t->a, wr, RDMA_WC_REM_ACCESS_ERR);
}

static void set_link(QRdma *d, bool up)
{
    qtest_qmp_assert_success(d->host->qts, "{'execute': 'set_link', "
                             "'arguments': {'name': 'n0', 'up': %i}}", up);
}

/* Post @n signalled sends without data that need no receiver. */
static void post_writes(QRdmaQp *qp, int n)
{
    for (int i = 0; i < n; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, i, NULL));
    }
}

static void test_access_error(void)
{
    TestPair t = event_pair(4);

    bad_write(&t);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_ACCESS_ERR, t.b->qpn);
    g_assert_true(qrdma_ring_irq(event_ring(t.dev)));
    qrdma_expect_no_event(t.dev);
}

static void test_request_error(void)
{
    TestPair t = event_pair(4);
    QRdmaPath path = { .access = RDMA_ACCESS_LOCAL_WRITE };
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 8);

    /* the QP's own access flags do not permit the WRITE */
    qrdma_reconnect(t.a, t.b, &path);
    qrdma_post_expect(t.a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, t.mr_b,
                                         0), RDMA_WC_REM_INV_REQ_ERR);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_REQ_ERR, t.b->qpn);
    qrdma_expect_no_event(t.dev);
}

static void test_communication_established(void)
{
    TestPair t = event_pair(4);
    RdmaQpAttr attr;

    assert_ok(qrdma_modify_qp_state(t.a, RDMA_QPS_RESET));
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_RESET));
    assert_ok(qrdma_modify_init(t.a, TEST_ACCESS_ALL));
    assert_ok(qrdma_modify_init(t.b, TEST_ACCESS_ALL));
    assert_ok(qrdma_modify_rtr(t.a, t.b, &(QRdmaPath) {
        .mtu = RDMA_MTU_1024, .access = TEST_ACCESS_ALL,
    }, 0));
    assert_ok(qrdma_modify_rtr(t.b, t.a, &(QRdmaPath) {
        .mtu = RDMA_MTU_1024, .access = TEST_ACCESS_ALL,
    }, 0));
    assert_ok(qrdma_modify_rts(t.a, &(QRdmaPath) { .timeout = 14 }, 0));
    g_assert_cmpint(qrdma_qp_state(t.b), ==, RDMA_QPS_RTR);
    post_writes(t.a, 1);
    qrdma_expect(t.cq_a, 0, RDMA_WC_SUCCESS);
    qrdma_expect_event(t.dev, RDMA_EVENT_COMM_EST, t.b->qpn);
    qrdma_expect_no_event(t.dev);
    assert_ok(qrdma_query_qp(t.b, &attr));
}

static void test_send_queue_drained(void)
{
    TestPair t = event_pair(4);

    for (int notify = 0; notify < 2; notify++) {
        assert_ok(qrdma_modify_qp(t.a, RDMA_QP_STATE |
                                  RDMA_QP_EN_SQD_ASYNC_NOTIFY,
                                  &(RdmaQpAttr) {
                                      .qp_state = RDMA_QPS_SQD,
                                      .en_sqd_async_notify = notify,
                                  }));
        if (notify) {
            qrdma_expect_event(t.dev, RDMA_EVENT_SQ_DRAINED, t.a->qpn);
        }
        qrdma_expect_no_event(t.dev);
        assert_ok(qrdma_modify_qp_state(t.a, RDMA_QPS_RTS));
    }
}

static void test_overrun(void)
{
    TestPair t = event_pair(8);

    t.cq_a->no_refill = true;
    /* 64 have a buffer, and 64 more may wait for one */
    for (int i = 0; i < 4; i++) {
        post_writes(t.a, 32);
        qrdma_reap_all(t.dev, &t.a->sq);
    }
    qrdma_expect_no_event(t.dev);
    post_writes(t.a, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_CQ_ERR, t.cq_a->cqn);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, t.a->qpn);
    qrdma_expect_no_event(t.dev);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_ERR);
    g_assert_cmpint(qrdma_qp_state(t.b), ==, RDMA_QPS_RTS);
}

static void test_short_completion_buffer(void)
{
    TestPair t = event_pair(8);
    QRdmaDesc desc = { qrdma_alloc(t.dev, 64), 47, true };
    QRdmaCq *cq = qrdma_own(t.dev, sizeof(*cq));
    QRdmaQp *qp;

    cq->dev = t.dev;
    assert_ok(qrdma_try_create_cq(t.dev, 4, &cq->cqn));
    cq->ring = qrdma_ring(t.dev, VIRTIO_RDMA_CQ_VQ(cq->cqn));
    qrdma_ring_add(cq->ring, &desc, 1);
    qp = qrdma_create_loop(t.pd, cq, cq);
    post_writes(qp, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_CQ_ERR, cq->cqn);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, qp->qpn);
    qrdma_expect_no_event(t.dev);
    g_assert_cmpint(qrdma_ring_used_idx(cq->ring), ==, 0);
}

static void test_ring_reset_under_cq(void)
{
    TestPair t = event_pair(8);

    qrdma_ring_reset(t.cq_b->ring);
    qrdma_expect_event(t.dev, RDMA_EVENT_CQ_ERR, t.cq_b->cqn);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, t.b->qpn);
    qrdma_expect_no_event(t.dev);
    g_assert_cmpint(qrdma_qp_state(t.b), ==, RDMA_QPS_ERR);
}

/* The first QP puts the CQ in error, and the CQ the second QP. */
static void test_ring_reset_under_cq_of_two(void)
{
    TestPair t = event_pair(8);
    QRdmaQp *qp = qrdma_create_loop(t.pd, t.cq_b, t.cq_b);

    qrdma_recv(t.b, 1, NULL);
    qrdma_recv(qp, 2, NULL);
    qrdma_settle(t.dev);
    qrdma_ring_reset(t.cq_b->ring);
    qrdma_expect_event(t.dev, RDMA_EVENT_CQ_ERR, t.cq_b->cqn);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, MAX(qp->qpn, t.b->qpn));
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, MIN(qp->qpn, t.b->qpn));
    qrdma_expect_no_event(t.dev);
}

static void test_ring_reset_under_qp(void)
{
    TestPair t = event_pair(8);

    qrdma_ring_reset(t.a->sq.ring);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, t.a->qpn);
    qrdma_expect_no_event(t.dev);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_ERR);
}

static void test_port(void)
{
    QRdma *d = test_device();

    qrdma_add_event_buffers(d, 8);
    set_link(d, true);
    qrdma_expect_no_event(d);
    set_link(d, false);
    qrdma_expect_event(d, RDMA_EVENT_PORT_ERR, 1);
    set_link(d, false);
    qrdma_expect_no_event(d);
    set_link(d, true);
    qrdma_expect_event(d, RDMA_EVENT_PORT_ACTIVE, 1);
    qrdma_expect_no_event(d);
}

/* Changes before DRIVER_OK raise no events: the driver queries the port. */
static void test_port_before_driver_ok(void)
{
    QRdma *d = test_device_reset();

    qrdma_prepare(d, 0, 0);
    qrdma_add_event_buffers(d, 8);
    set_link(d, false);
    qrdma_driver_ok(d);
    qrdma_expect_no_event(d);
    set_link(d, true);
    qrdma_expect_event(d, RDMA_EVENT_PORT_ACTIVE, 1);
    qrdma_expect_no_event(d);
}

static void test_events_wait_for_buffers(void)
{
    TestPair t = event_pair(0);

    set_link(t.dev, false);
    set_link(t.dev, true);
    qrdma_ring_reset(t.cq_b->ring);
    qrdma_expect_no_event(t.dev);
    qrdma_add_event_buffers(t.dev, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ERR, 1);
    qrdma_expect_no_event(t.dev);
    qrdma_add_event_buffers(t.dev, 8);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ACTIVE, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_CQ_ERR, t.cq_b->cqn);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, t.b->qpn);
    qrdma_expect_no_event(t.dev);
}

static void test_each_is_pending_once_and_the_last_one_is_last(void)
{
    TestPair t = event_pair(0);

    for (int i = 0; i < 50; i++) {
        set_link(t.dev, false);
        set_link(t.dev, true);
    }
    set_link(t.dev, false);
    qrdma_add_event_buffers(t.dev, 8);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ACTIVE, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ERR, 1);
    qrdma_expect_no_event(t.dev);
    set_link(t.dev, true);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ACTIVE, 1);
}

static void test_none_about_what_was_destroyed(void)
{
    TestPair t = event_pair(0);

    qrdma_ring_reset(t.cq_b->ring);
    qrdma_expect_no_event(t.dev);
    assert_ok(qrdma_destroy_qp(t.b));
    assert_ok(qrdma_destroy_qp(t.a));
    qrdma_add_event_buffers(t.dev, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_CQ_ERR, t.cq_b->cqn);
    qrdma_ring_setup(t.cq_b->ring, 64);
    assert_ok(qrdma_destroy_cq(t.cq_b));
    qrdma_add_event_buffers(t.dev, 8);
    qrdma_expect_no_event(t.dev);
}

/* The event virtqueue is there, and has buffers. */
static void test_none_for_a_driver_of_the_rfc(void)
{
    QRdma *d = test_device_reset();
    TestPair t;

    qrdma_prepare(d, QRDMA_RFC_FEATURES, 0);
    qrdma_ring_setup(event_ring(d), QRDMA_RING_SIZE);
    qrdma_driver_ok(d);
    qrdma_add_event_buffers(d, 8);
    t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
    bad_write(&t);
    set_link(d, false);
    set_link(d, true);
    qrdma_expect_no_event(d);
}

static void test_device_reset_forgets_events(void)
{
    TestPair t = event_pair(0);

    bad_write(&t);
    qrdma_expect_no_event(t.dev);
    qrdma_start(t.dev, 0, 0);
    qrdma_add_event_buffers(t.dev, 8);
    qrdma_expect_no_event(t.dev);
}

static void test_events_pending_over_ring_reset(void)
{
    TestPair t = event_pair(0);
    QRdmaRing *ring = event_ring(t.dev);

    bad_write(&t);
    qrdma_ring_reset(ring);
    set_link(t.dev, false);
    set_link(t.dev, true);
    qrdma_ring_setup(ring, 32);
    qrdma_expect_no_event(t.dev);
    qrdma_add_event_buffers(t.dev, 8);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_ACCESS_ERR, t.b->qpn);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ERR, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ACTIVE, 1);
    qrdma_expect_no_event(t.dev);
}

static void test_short_buffers_come_back_empty(void)
{
    TestPair t = event_pair(0);
    QRdmaRing *ring = event_ring(t.dev);
    uint64_t buf = qrdma_alloc(t.dev, 64);
    QRdmaDesc desc[] = {
        { buf, 7, true }, { buf, 64, false }, { buf, 1, true },
    };
    uint16_t head;
    uint32_t len;

    qtest_memset(t.dev->host->qts, buf, 0xcc, 64);
    for (int i = 0; i < ARRAY_SIZE(desc); i++) {
        qrdma_ring_add(ring, &desc[i], 1);
    }
    qrdma_ring_kick(ring);
    bad_write(&t);
    qrdma_settle(t.dev);
    for (int i = 0; i < ARRAY_SIZE(desc); i++) {
        g_assert_true(qrdma_ring_get(ring, &head, &len));
        g_assert_cmpuint(len, ==, 0);
    }
    for (int i = 0; i < 64; i++) {
        g_assert_cmphex(qtest_readb(t.dev->host->qts, buf + i), ==, 0xcc);
    }
    qrdma_add_event_buffers(t.dev, 1);
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_ACCESS_ERR, t.b->qpn);
}

#define BUFS 1024
#define DESCS 1024

/*
 * Give the device BUFS short buffers of DESCS descriptors. False if all of them
 * came back before one access to a register.
 */
static bool lets_others_in(QRdma *d)
{
    const uint32_t size = DESCS * sizeof(struct vring_desc);
    g_autofree struct vring_desc *table = g_malloc0(size);
    QRdmaRing *ring = event_ring(d);
    uint64_t at = qrdma_alloc(d, size);
    uint64_t buf = qrdma_alloc(d, 64);

    for (unsigned i = 0; i < DESCS; i++) {
        table[i].addr = cpu_to_le64(buf);
        table[i].len = cpu_to_le32(1);
        table[i].flags = cpu_to_le16(i < DESCS - 1 ? VRING_DESC_F_NEXT : 0);
        table[i].next = cpu_to_le16(i + 1);
    }
    qrdma_write(d, at, table, size);
    for (unsigned i = 0; i < BUFS; i++) {
        qrdma_ring_set_desc(ring, i, at, size, VRING_DESC_F_INDIRECT, 0);
        qrdma_ring_set_avail(ring, i, i);
    }
    qrdma_ring_set_avail_idx(ring, BUFS);
    qrdma_ring_kick(ring);
    g_assert_cmpuint(qrdma_config_read(d, 0, 4), ==, 1);
    if (qrdma_ring_used_idx(ring) == BUFS) {
        return false;
    }
    qrdma_wait_until(d, qrdma_ring_used_idx(ring) == BUFS);
    return true;
}

static void test_long_buffers_let_others_in(void)
{
    QRdma *d = test_own_device("queue-size=1024");
    int rounds = 0;

    /* On a busy machine the test may not run before they come back. */
    do {
        g_assert_cmpint(rounds++, <, 20);
        set_link(d, true);
        qrdma_start(d, QRDMA_FEATURES |
                       QRDMA_F(VIRTIO_RING_F_INDIRECT_DESC), BUFS);
        set_link(d, false);
    } while (!lets_others_in(d));
    qrdma_host_stop(d->host);
}

static void test_buffers_may_be_split_and_longer(void)
{
    TestPair t = event_pair(0);
    QRdmaRing *ring = event_ring(t.dev);
    uint64_t buf = qrdma_alloc(t.dev, 64);
    QRdmaDesc desc[] = {
        { buf, 3, true }, { buf + 3, 2, true }, { buf + 5, 59, true },
    };
    struct virtio_rdma_event e;
    uint16_t head;
    uint32_t len;

    qtest_memset(t.dev->host->qts, buf, 0xcc, 64);
    qrdma_ring_add(ring, desc, ARRAY_SIZE(desc));
    qrdma_ring_kick(ring);
    bad_write(&t);
    qrdma_wait_until(t.dev, qrdma_ring_get(ring, &head, &len));
    g_assert_cmpuint(len, ==, 8);
    qrdma_read(t.dev, buf, &e, sizeof(e));
    g_assert_cmpuint(le32_to_cpu(e.type), ==, RDMA_EVENT_QP_ACCESS_ERR);
    g_assert_cmpuint(le32_to_cpu(e.id), ==, t.b->qpn);
    g_assert_cmphex(qtest_readb(t.dev->host->qts, buf + 8), ==, 0xcc);
}

static void test_interrupt_may_be_suppressed(void)
{
    TestPair t = event_pair(4);
    QRdmaRing *ring = event_ring(t.dev);

    qtest_writew(t.dev->host->qts, ring->pci.vq.avail,
                 VRING_AVAIL_F_NO_INTERRUPT);
    set_link(t.dev, false);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ERR, 1);
    g_assert_false(qrdma_ring_irq(ring));
    qtest_writew(t.dev->host->qts, ring->pci.vq.avail, 0);
    set_link(t.dev, true);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ACTIVE, 1);
    qrdma_settle(t.dev);
    g_assert_true(qrdma_ring_irq(ring));
}

static void test_malformed_ring_breaks_the_device(void)
{
    TestPair t = event_pair(0);
    QRdmaRing *ring = event_ring(t.dev);
    uint64_t buf = qrdma_alloc(t.dev, 64);

    qrdma_ring_set_desc(ring, 0, buf, 64, VRING_DESC_F_WRITE |
                                          VRING_DESC_F_NEXT, 0);
    qrdma_ring_set_avail(ring, 0, 0);
    qrdma_ring_set_avail_idx(ring, 1);
    set_link(t.dev, false);
    qrdma_wait_until(t.dev, qrdma_needs_reset(t.dev));
    set_link(t.dev, true);
    qrdma_settle(t.dev);
    t.dev = test_device();
    assert_ok(qrdma_try_alloc_pd(t.dev, &(uint32_t) { 0 }));
}

/* While the VM is stopped guest memory is not touched. */
static void test_stopped_vm(void)
{
    TestPair t = event_pair(4);
    QTestState *qts = t.dev->host->qts;
    RdmaEvent event;

    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    set_link(t.dev, false);
    g_assert_false(qrdma_poll_event(t.dev, &event));
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ERR, 1);
    set_link(t.dev, true);
    qrdma_expect_event(t.dev, RDMA_EVENT_PORT_ACTIVE, 1);
}

const QRdmaTest event_tests[] = {
    { "access-error", test_access_error },
    { "request-error", test_request_error },
    { "communication-established", test_communication_established },
    { "send-queue-drained", test_send_queue_drained },
    { "overrun", test_overrun },
    { "short-completion-buffer", test_short_completion_buffer },
    { "ring-reset-under-cq", test_ring_reset_under_cq },
    { "ring-reset-under-cq-of-two", test_ring_reset_under_cq_of_two },
    { "ring-reset-under-qp", test_ring_reset_under_qp },
    { "port", test_port },
    { "port-before-driver-ok", test_port_before_driver_ok },
    { "wait-for-buffers", test_events_wait_for_buffers },
    { "each-is-pending-once-the-last-is-last",
      test_each_is_pending_once_and_the_last_one_is_last },
    { "none-about-what-was-destroyed", test_none_about_what_was_destroyed },
    { "none-for-a-driver-of-the-rfc", test_none_for_a_driver_of_the_rfc },
    { "device-reset-forgets-them", test_device_reset_forgets_events },
    { "pending-over-ring-reset", test_events_pending_over_ring_reset },
    { "short-buffers-come-back-empty", test_short_buffers_come_back_empty },
    { "long-buffers-let-others-in", test_long_buffers_let_others_in },
    { "buffers-may-be-split-and-longer", test_buffers_may_be_split_and_longer },
    { "interrupt-may-be-suppressed", test_interrupt_may_be_suppressed },
    { "malformed-ring-breaks-the-device",
      test_malformed_ring_breaks_the_device },
    { "stopped-vm", test_stopped_vm },
    {}
};
