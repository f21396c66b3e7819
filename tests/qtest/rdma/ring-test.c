/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: malformed rings, rings that are reset, rings without an object.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_ring.h"

static void expect_alive(QRdma *d)
{
    uint32_t pdn;

    g_assert_false(qrdma_needs_reset(d));
    assert_ok(qrdma_try_alloc_pd(d, &pdn));
}

/* Expect that the device needs a reset, and works after it. */
static void expect_broken(QRdma *d)
{
    qrdma_wait_until(d, qrdma_needs_reset(d));
    qrdma_start(d, 0, 0);
    expect_alive(d);
}

/* Expect that the device works, at the latest after a reset. */
static void expect_survived(QRdma *d)
{
    qrdma_settle(d);
    qrdma_device_status(d);
    qrdma_start(d, 0, 0);
    expect_alive(d);
}

typedef enum RingKind {
    RING_CTRL,
    RING_SQ,
    RING_RQ,
    RING_CQ,
    RING_KINDS,
} RingKind;

/* A ring that the device reads soon, or when it is kicked */
typedef struct Victim {
    TestPair pair;
    QRdmaRing *ring;
    RingKind kind;
    QRdmaCq cq;                     /* RING_CQ */
    QRdmaQp *qp;
} Victim;

static Victim victim_new(RingKind kind)
{
    Victim v = { .kind = kind };

    v.pair = test_loopback_pair(RDMA_QPT_RC, NULL);
    switch (kind) {
    case RING_CTRL:
        v.ring = qrdma_ring(v.pair.dev, VIRTIO_RDMA_CTRL_VQ);
        break;
    case RING_SQ:
        v.ring = v.pair.a->sq.ring;
        break;
    case RING_RQ:
        v.ring = v.pair.a->rq.ring;
        break;
    default:
        /* a CQ without buffers: the device sees the next buffer first */
        assert_ok(qrdma_try_create_cq(v.pair.dev, 16, &v.cq.cqn));
        v.cq.dev = v.pair.dev;
        v.ring = qrdma_ring(v.pair.dev, VIRTIO_RDMA_CQ_VQ(v.cq.cqn));
        v.qp = qrdma_create_loop(v.pair.pd, &v.cq, &v.cq);
        break;
    }
    return v;
}

static void victim_go(Victim *v)
{
    if (v->kind == RING_CQ) {
        qrdma_post(v->qp, qrdma_wr(99, 0, NULL));
    }
    qrdma_ring_kick(v->ring);
    if (v->kind == RING_RQ) {
        /* The device reads receives only for a message. */
        qrdma_post_send(v->pair.b, &(RdmaSendWr) { .opcode = RDMA_WR_SEND });
    }
}

/* The next free position of @ring holds @head. */
static void make_available(QRdmaRing *ring, uint16_t head)
{
    qrdma_ring_set_avail(ring, ring->avail_idx, head);
    qrdma_ring_set_avail_idx(ring, ring->avail_idx + 1);
}

static uint16_t write_flag(const Victim *v)
{
    return v->kind == RING_CQ ? VRING_DESC_F_WRITE : 0;
}

/* Make one descriptor available that no driver would. */
static void put_desc(Victim *v, uint64_t addr, uint32_t len, uint16_t flags,
                     uint16_t next)
{
    qrdma_ring_set_desc(v->ring, 40, addr, len, flags, next);
    make_available(v->ring, 40);
}

static void make_descriptor_loop(Victim *v, int i)
{
    uint64_t addr = v->pair.dev->ctrl_req;
    uint16_t flags = VRING_DESC_F_NEXT | write_flag(v);

    qrdma_ring_set_desc(v->ring, 41, addr, 16, flags, 40);
    put_desc(v, addr, 16, flags, 41);
}

static void put_head_out_of_range(Victim *v, int i)
{
    make_available(v->ring, i ? 0xffff : v->ring->pci.vq.size);
}

static void put_next_out_of_range(Victim *v, int i)
{
    put_desc(v, v->pair.dev->ctrl_req, 16, VRING_DESC_F_NEXT | write_flag(v),
             v->ring->pci.vq.size);
}

static void jump_with_avail_index(Victim *v, int i)
{
    const uint16_t jumps[] = { 1, 5000, 0x8000, 0xf000 };

    qrdma_ring_set_avail_idx(v->ring, v->ring->avail_idx +
                                      v->ring->pci.vq.size + jumps[i]);
}

static void go_back_with_avail_index(Victim *v, int i)
{
    qrdma_ring_set_avail_idx(v->ring, v->ring->avail_idx - 1);
}

static void put_zero_length(Victim *v, int i)
{
    put_desc(v, v->pair.dev->ctrl_req, 0, write_flag(v), 0);
}

static void put_readable_after_writable(Victim *v, int i)
{
    qrdma_ring_set_desc(v->ring, 41, v->pair.dev->ctrl_req, 64, 0, 0);
    put_desc(v, v->pair.dev->ctrl_rsp, 64,
             VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 41);
}

static void put_wrong_direction(Victim *v, int i)
{
    put_desc(v, v->pair.dev->ctrl_rsp, 128,
             write_flag(v) ^ VRING_DESC_F_WRITE, 0);
}

static void put_buffer_outside_ram(Victim *v, int i)
{
    QVirtioPCIDevice *pci = v->pair.dev->pci;
    const uint64_t bad[] = {
        0xfed00000, 1ull << 40, UINT64_MAX - 15, UINT64_MAX,
        64 * 1024 * 1024 - 8,
        /* the device's own registers: status, and notifications */
        pci->bar.addr + 0x14, pci->bar.addr + pci->notify_cfg_offset,
    };

    put_desc(v, bad[i], 128, write_flag(v), 0);
}

/* Put the rings themselves in registers, or where no memory is. */
static void put_ring_outside_ram(Victim *v, int i)
{
    const uint64_t bad[] = {
        v->pair.dev->pci->bar.addr, 1ull << 40, 64 * 1024 * 1024 - 4096,
    };
    uint64_t mem = v->ring->mem;

    qrdma_ring_reset(v->ring);
    v->ring->mem = bad[i];
    qrdma_ring_setup(v->ring, QRDMA_RING_SIZE);
    v->ring->mem = mem;
    qrdma_ring_kick(v->ring);
}

/* A driver's fault in a ring, in some variants, and the expected result */
typedef struct Malformed {
    void (*spoil)(Victim *v, int variant);
    int variants;
    void (*expect)(QRdma *d);
} Malformed;

static void test_malformed(const void *data)
{
    const Malformed *m = data;

    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        for (int i = 0; i < m->variants; i++) {
            Victim v = victim_new(kind);

            g_test_message("kind %d, variant %d", kind, i);
            m->spoil(&v, i);
            victim_go(&v);
            m->expect(v.pair.dev);
        }
    }
}

static void test_cqe_buffer_too_small(void)
{
    Victim v = victim_new(RING_CQ);
    uint8_t cqe[38];

    qtest_memset(v.pair.dev->host->qts, v.pair.dev->ctrl_rsp, 0xa5, 64);
    qrdma_ring_set_desc(v.ring, 40, v.pair.dev->ctrl_rsp, 37,
                        VRING_DESC_F_WRITE, 0);
    make_available(v.ring, 40);
    victim_go(&v);
    qrdma_settle(v.pair.dev);
    qrdma_read(v.pair.dev, v.pair.dev->ctrl_rsp, cqe, sizeof(cqe));
    g_assert_cmphex(cqe[37], ==, 0xa5);
    if (!(qrdma_needs_reset(v.pair.dev))) {
        /* an error of the CQ, never a CQE that is lost without an error */
        g_assert_cmpint(qrdma_qp_state(v.qp), ==, RDMA_QPS_ERR);
    }
    expect_survived(v.pair.dev);
}

static void start_with_indirect(QRdma *d)
{
    qrdma_start(d, QRDMA_FEATURES | QRDMA_F(VIRTIO_RING_F_INDIRECT_DESC), 0);
}

typedef struct IndirectTable {
    uint64_t addr;
    struct vring_desc desc[4];
} IndirectTable;

static IndirectTable indirect_create_pd(QRdma *d)
{
    IndirectTable t = { .addr = qrdma_alloc(d, 4096) };
    uint8_t cmd = VIRTIO_RDMA_CMD_CREATE_PD;

    qrdma_write(d, d->ctrl_req, &cmd, 1);
    t.desc[0].addr = cpu_to_le64(d->ctrl_req);
    t.desc[0].len = cpu_to_le32(1);
    t.desc[0].flags = cpu_to_le16(VRING_DESC_F_NEXT);
    t.desc[0].next = cpu_to_le16(1);
    t.desc[1].addr = cpu_to_le64(d->ctrl_rsp);
    t.desc[1].len = cpu_to_le32(5);
    t.desc[1].flags = cpu_to_le16(VRING_DESC_F_WRITE);
    return t;
}

static void indirect_go(QRdma *d, IndirectTable *t, uint32_t len)
{
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);

    qrdma_write(d, t->addr, t->desc, sizeof(t->desc));
    qrdma_ring_set_desc(ring, 0, t->addr, len, VRING_DESC_F_INDIRECT, 0);
    make_available(ring, 0);
    qrdma_ring_kick(ring);
}

static void test_indirect(void)
{
    QRdma *d = test_device_reset();
    QRdmaRing *ring;
    IndirectTable t;

    start_with_indirect(d);
    ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    t = indirect_create_pd(d);
    indirect_go(d, &t, 32);
    qrdma_wait_until(d, qrdma_ring_used_idx(ring) == 1);
    g_assert_cmpint(qtest_readb(d->host->qts, d->ctrl_rsp), ==, 0);
}

static void test_malformed_indirect(void)
{
    QRdma *d = test_device_reset();
    const uint32_t lengths[] = { 0, 1, 15, 17, 33 };
    IndirectTable t;

    for (int i = 0; i < ARRAY_SIZE(lengths); i++) {
        start_with_indirect(d);
        t = indirect_create_pd(d);
        indirect_go(d, &t, lengths[i]);
        expect_broken(d);
    }
    /* nested */
    start_with_indirect(d);
    t = indirect_create_pd(d);
    t.desc[1].addr = cpu_to_le64(t.addr);
    t.desc[1].flags = cpu_to_le16(VRING_DESC_F_INDIRECT);
    t.desc[1].len = cpu_to_le32(32);
    indirect_go(d, &t, 32);
    expect_survived(d);
    /* loop inside */
    start_with_indirect(d);
    t = indirect_create_pd(d);
    t.desc[0].next = 0;
    indirect_go(d, &t, 32);
    expect_broken(d);
    /* next beyond the table */
    start_with_indirect(d);
    t = indirect_create_pd(d);
    t.desc[0].next = cpu_to_le16(2);
    indirect_go(d, &t, 32);
    expect_broken(d);
}

static void test_broken_device_does_nothing(void)
{
    Victim v = victim_new(RING_CTRL);
    QRdma *d = v.pair.dev;
    QRdmaCq *cq = v.pair.cq_a;

    make_available(v.ring, v.ring->pci.vq.size);
    victim_go(&v);
    qrdma_wait_until(d, qrdma_needs_reset(d));
    qrdma_post(v.pair.a, qrdma_wr(RDMA_WR_SEND, 0, NULL));
    qrdma_expect_none(cq);
    qrdma_start(d, 0, 0);
    expect_alive(d);
}

static void test_control_ring_reset(void)
{
    QRdma *d = test_device();
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    uint32_t pdn;

    for (int i = 0; i < 3; i++) {
        assert_ok(qrdma_try_alloc_pd(d, &pdn));
        qrdma_ring_reset(ring);
        qrdma_ring_setup(ring, 1024 >> i);
    }
    assert_ok(qrdma_try_alloc_pd(d, &pdn));
}

static void test_ring_reset_under_a_live_qp(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 64);

    for (int i = 0; i < 5; i++) {
        /* no receive: the send stays */
        qrdma_post(t.a, qrdma_wr(RDMA_WR_SEND, 0, &sge));
        qrdma_recv(t.a, 0, &sge);
    }
    qrdma_settle(t.dev);
    qrdma_ring_reset(t.a->sq.ring);
    qrdma_ring_reset(t.a->rq.ring);
    qrdma_ring_setup(t.a->sq.ring, QRDMA_RING_SIZE);
    qrdma_ring_setup(t.a->rq.ring, QRDMA_RING_SIZE);
    qrdma_settle(t.dev);
    /* in any state of the QP, old buffers are not given back */
    g_assert_cmpint(qrdma_ring_used_idx(t.a->sq.ring), ==, 0);
    assert_ok(qrdma_modify_qp_state(t.a, RDMA_QPS_ERR));
    qrdma_settle(t.dev);
    g_assert_cmpint(qrdma_ring_used_idx(t.a->sq.ring), ==, 0);
    g_assert_cmpint(qrdma_ring_used_idx(t.a->rq.ring), ==, 0);
    assert_ok(qrdma_destroy_qp(t.a));
    expect_alive(t.dev);
}

static void test_cq_ring_reset_under_a_live_qp(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 64);

    for (int i = 0; i < 5; i++) {
        qrdma_recv(t.a, 0, &sge);
    }
    qrdma_ring_reset(t.cq_a->ring);
    assert_ok(qrdma_modify_qp_state(t.a, RDMA_QPS_ERR));
    qrdma_settle(t.dev);
    qrdma_ring_setup(t.cq_a->ring, QRDMA_RING_SIZE);
    assert_ok(qrdma_destroy_qp(t.a));
    assert_ok(qrdma_destroy_cq(t.cq_a));
    expect_alive(t.dev);
}

static void test_what_lies_in_a_queue_waits_for_its_owner(void)
{
    QRdma *d = test_device();
    struct virtio_rdma_rq_wqe wqe = { .wr_id = cpu_to_le64(0x4711) };
    uint64_t buf = qrdma_alloc(d, 4096);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaQp *qp;

    qrdma_write(d, buf, &wqe, sizeof(wqe));
    for (uint32_t qpn = 2; qpn < d->max_qp; qpn++) {
        QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_RQ_VQ(d->max_cq, qpn));

        qrdma_ring_add(ring, &(QRdmaDesc) { buf, sizeof(wqe) }, 1);
        qrdma_ring_kick(ring);
    }
    qrdma_settle(d);
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    qrdma_settle(d);
    g_assert_cmpint(qrdma_ring_used_idx(qp->rq.ring), ==, 0);
    assert_ok(qrdma_modify_init(qp, 0));
    assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_ERR));
    qrdma_expect(cq, 0x4711, RDMA_WC_WR_FLUSH_ERR);
}

static void test_kicks_of_queues_without_owner(void)
{
    QRdma *d = test_device();

    for (uint32_t i = 1; i < d->n_rings; i++) {
        QRdmaRing *ring = qrdma_ring(d, i);

        if (ring->ready) {
            qrdma_ring_add(ring, &(QRdmaDesc) { d->ctrl_req, 64 }, 1);
            for (int n = 0; n < 3; n++) {
                qrdma_ring_kick(ring);
            }
        }
    }
    qrdma_settle(d);
    for (uint32_t i = 1; i < d->n_rings; i++) {
        if (qrdma_ring(d, i)->ready) {
            g_assert_cmpint(qrdma_ring_used_idx(qrdma_ring(d, i)), ==, 0);
        }
    }
    expect_alive(d);
}

/* Queues that are set up are taken before those that are not. */
static void test_queue_that_was_left_out(void)
{
    QRdma *d = test_device();
    const uint32_t keep_cqn = TEST_MAX_CQ - 2, keep_qpn = TEST_MAX_QP - 2;
    QRdmaCq *cq, none = { .dev = d };
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaQp *qp;

    for (uint32_t i = 1; i < d->n_rings; i++) {
        if (qrdma_ring(d, i)->ready &&
            i != VIRTIO_RDMA_CQ_VQ(keep_cqn) &&
            i != VIRTIO_RDMA_SQ_VQ(d->max_cq, keep_qpn) &&
            i != VIRTIO_RDMA_RQ_VQ(d->max_cq, keep_qpn)) {
            qrdma_ring_reset(qrdma_ring(d, i));
        }
    }
    cq = qrdma_create_cq(d, 8);
    g_assert_cmpuint(cq->cqn, ==, keep_cqn);
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    g_assert_cmpuint(qp->qpn, ==, keep_qpn);
    assert_ok(qrdma_destroy_qp(qp));
    /* a CQ without a ring has no buffers: only its QPs fail */
    if (qrdma_try_create_cq(d, 8, &none.cqn) == VIRTIO_RDMA_S_OK) {
        qp = qrdma_create_qp(pd, &none, &none, RDMA_QPT_RC);
        g_assert_cmpuint(qp->qpn, ==, keep_qpn);
        qrdma_setup_gids(d, 1);
        qrdma_connect(qp, qp, NULL);
        qrdma_post(qp, qrdma_wr(99, 0, NULL));
        qrdma_settle(d);
        g_assert_cmpint(qrdma_qp_state(qp), ==, RDMA_QPS_ERR);
    }
    expect_alive(d);
}

#define MALFORMED(...) \
    .run_case = test_malformed, .data = &(const Malformed) { __VA_ARGS__ }

const QRdmaTest ring_tests[] = {
    { "descriptor-loop", MALFORMED(make_descriptor_loop, 1, expect_broken) },
    { "head-out-of-range", MALFORMED(put_head_out_of_range, 2, expect_broken) },
    { "next-out-of-range", MALFORMED(put_next_out_of_range, 1, expect_broken) },
    { "avail-index-jump", MALFORMED(jump_with_avail_index, 4, expect_broken) },
    { "avail-index-goes-back",
      MALFORMED(go_back_with_avail_index, 1, expect_broken) },
    { "zero-length-descriptor", MALFORMED(put_zero_length, 1, expect_broken) },
    { "readable-behind-writable",
      MALFORMED(put_readable_after_writable, 1, expect_broken) },
    { "wrong-direction", MALFORMED(put_wrong_direction, 1, expect_survived) },
    { "buffer-outside-ram",
      MALFORMED(put_buffer_outside_ram, 7, expect_survived) },
    { "outside-ram", MALFORMED(put_ring_outside_ram, 3, expect_survived) },
    { "cqe-buffer-too-small", test_cqe_buffer_too_small },
    { "indirect", test_indirect,
      .not_demo = true },
    { "malformed-indirect", test_malformed_indirect,
      .not_demo = true },
    { "broken-device-does-nothing", test_broken_device_does_nothing },
    { "control-ring-reset", test_control_ring_reset,
      .not_demo = true },
    { "reset-under-a-live-qp", test_ring_reset_under_a_live_qp,
      .not_demo = true },
    { "cq-reset-under-a-live-qp", test_cq_ring_reset_under_a_live_qp,
      .not_demo = true },
    { "what-lies-in-a-queue-waits-for-its-owner",
      test_what_lies_in_a_queue_waits_for_its_owner,
      .not_demo = true },
    { "kicks-of-queues-without-owner", test_kicks_of_queues_without_owner },
    { "queue-that-was-left-out", test_queue_that_was_left_out,
      .not_demo = true },
    {}
};
