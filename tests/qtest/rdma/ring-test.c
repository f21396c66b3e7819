/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: malformed rings, rings that are reset, rings without owner.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_ring.h"

static void expect_alive(QRdma *d)
{
    uint32_t pdn;

    g_assert_false(qrdma_device_status(d) & VIRTIO_CONFIG_S_NEEDS_RESET);
    assert_ok(qrdma_try_alloc_pd(d, &pdn));
}

/* The device says that it is broken, and a reset heals it. */
static void expect_broken(QRdma *d)
{
    qrdma_wait_until(d, qrdma_device_status(d) & VIRTIO_CONFIG_S_NEEDS_RESET);
    qrdma_start(d, 0, 0);
    expect_alive(d);
}

/* Whatever it thinks of that: it lives on, at the latest after a reset. */
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

/* The device will soon look at this ring, or does when it is kicked. */
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
        /* one without buffers: what comes next is what the device sees */
        assert_ok(qrdma_try_create_cq(v.pair.dev, 16, &v.cq.cqn));
        v.cq.dev = v.pair.dev;
        v.ring = qrdma_ring(v.pair.dev, VIRTIO_RDMA_CQ_VQ(v.cq.cqn));
        v.qp = qrdma_create_qp(v.pair.pd, &v.cq, &v.cq, RDMA_QPT_RC);
        qrdma_connect(v.qp, v.qp, NULL);
        break;
    }
    return v;
}

static void victim_go(Victim *v)
{
    if (v->kind == RING_CQ) {
        qrdma_post_send(v->qp, &(RdmaSendWr) {
            .opcode = 99,
            .send_flags = RDMA_SEND_SIGNALED,
        });
    }
    qrdma_ring_kick(v->ring);
    if (v->kind == RING_RQ) {
        /* Only a message has the device look for receives. */
        qrdma_post_send(v->pair.b, &(RdmaSendWr) { .opcode = RDMA_WR_SEND });
    }
}

/* The next free position of @ring holds @head. */
static void make_available(QRdmaRing *ring, uint16_t head)
{
    qrdma_ring_set_avail(ring, ring->avail_idx, head);
    qrdma_ring_set_avail_idx(ring, ring->avail_idx + 1);
}

static void test_descriptor_loop(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        Victim v = victim_new(kind);
        uint16_t flags = VRING_DESC_F_NEXT;

        if (kind == RING_CQ) {
            flags |= VRING_DESC_F_WRITE;
        }
        qrdma_ring_set_desc(v.ring, 40, v.pair.dev->ctrl_req, 16, flags, 41);
        qrdma_ring_set_desc(v.ring, 41, v.pair.dev->ctrl_req, 16, flags, 40);
        make_available(v.ring, 40);
        victim_go(&v);
        expect_broken(v.pair.dev);
    }
}

static void test_head_out_of_range(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        Victim v = victim_new(kind);

        make_available(v.ring, v.ring->pci.vq.size);
        victim_go(&v);
        expect_broken(v.pair.dev);
        v = victim_new(kind);
        make_available(v.ring, 0xffff);
        victim_go(&v);
        expect_broken(v.pair.dev);
    }
}

static void test_next_out_of_range(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        Victim v = victim_new(kind);
        uint16_t flags = VRING_DESC_F_NEXT;

        if (kind == RING_CQ) {
            flags |= VRING_DESC_F_WRITE;
        }
        qrdma_ring_set_desc(v.ring, 40, v.pair.dev->ctrl_req, 16, flags,
                            v.ring->pci.vq.size);
        make_available(v.ring, 40);
        victim_go(&v);
        expect_broken(v.pair.dev);
    }
}

static void test_avail_index_jump(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        const uint16_t jumps[] = { 1, 5000, 0x8000, 0xf000 };

        for (int i = 0; i < ARRAY_SIZE(jumps); i++) {
            Victim v = victim_new(kind);

            qrdma_ring_set_avail_idx(v.ring, v.ring->avail_idx +
                                             v.ring->pci.vq.size + jumps[i]);
            victim_go(&v);
            expect_broken(v.pair.dev);
        }
    }
}

static void test_avail_index_goes_back(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        Victim v = victim_new(kind);

        qrdma_ring_set_avail_idx(v.ring, v.ring->avail_idx - 1);
        victim_go(&v);
        expect_broken(v.pair.dev);
    }
}

static void test_zero_length_descriptor(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        Victim v = victim_new(kind);

        qrdma_ring_set_desc(v.ring, 40, v.pair.dev->ctrl_req, 0,
                            kind == RING_CQ ? VRING_DESC_F_WRITE : 0, 0);
        make_available(v.ring, 40);
        victim_go(&v);
        expect_broken(v.pair.dev);
    }
}

static void test_readable_behind_writable(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        Victim v = victim_new(kind);

        qrdma_ring_set_desc(v.ring, 40, v.pair.dev->ctrl_rsp, 64,
                            VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 41);
        qrdma_ring_set_desc(v.ring, 41, v.pair.dev->ctrl_req, 64, 0, 0);
        make_available(v.ring, 40);
        victim_go(&v);
        expect_broken(v.pair.dev);
    }
}

static void test_wrong_direction(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        Victim v = victim_new(kind);

        qrdma_ring_set_desc(v.ring, 40, v.pair.dev->ctrl_rsp, 128,
                            kind == RING_CQ ? 0 : VRING_DESC_F_WRITE, 0);
        make_available(v.ring, 40);
        victim_go(&v);
        expect_survived(v.pair.dev);
    }
}

static void test_buffer_outside_ram(void)
{
    const uint64_t bad[] = {
        0xfed00000, 1ull << 40, UINT64_MAX - 15, UINT64_MAX,
        64 * 1024 * 1024 - 8,
        /* the device's own registers: status, and notifications */
        test_device()->pci->bar.addr + 0x14,
        test_device()->pci->bar.addr + test_device()->pci->notify_cfg_offset,
    };

    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        g_test_message("kind %d", kind);
        for (int i = 0; i < ARRAY_SIZE(bad); i++) {
            Victim v = victim_new(kind);

            qrdma_ring_set_desc(v.ring, 40, bad[i], 128,
                                kind == RING_CQ ? VRING_DESC_F_WRITE : 0, 0);
            make_available(v.ring, 40);
            victim_go(&v);
            expect_survived(v.pair.dev);
        }
    }
}

/* The rings themselves are in registers, or nowhere. */
static void test_ring_outside_ram(void)
{
    for (RingKind kind = 0; kind < RING_KINDS; kind++) {
        for (int i = 0; i < 3; i++) {
            Victim v = victim_new(kind);
            QRdma *d = v.pair.dev;
            const uint64_t bad[] = {
                d->pci->bar.addr, 1ull << 40, 64 * 1024 * 1024 - 4096,
            };
            uint64_t mem = v.ring->mem;

            qrdma_ring_reset(v.ring);
            v.ring->mem = bad[i];
            qrdma_ring_setup(v.ring, QRDMA_RING_SIZE);
            v.ring->mem = mem;
            qrdma_ring_kick(v.ring);
            victim_go(&v);
            expect_survived(d);
        }
    }
}

static void test_cqe_buffer_too_small(void)
{
    Victim v = victim_new(RING_CQ);
    RdmaQpAttr attr;
    uint8_t cqe[38];

    qtest_memset(v.pair.dev->host->qts, v.pair.dev->ctrl_rsp, 0xa5, 64);
    qrdma_ring_set_desc(v.ring, 40, v.pair.dev->ctrl_rsp, 37,
                        VRING_DESC_F_WRITE, 0);
    make_available(v.ring, 40);
    victim_go(&v);
    qrdma_settle(v.pair.dev);
    qrdma_read(v.pair.dev, v.pair.dev->ctrl_rsp, cqe, sizeof(cqe));
    g_assert_cmphex(cqe[37], ==, 0xa5);
    if (!(qrdma_device_status(v.pair.dev) & VIRTIO_CONFIG_S_NEEDS_RESET)) {
        /* an error of the CQ then, never a CQE that is lost in silence */
        assert_ok(qrdma_query_qp(v.qp, &attr));
        g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_ERR);
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
    qrdma_wait_until(d, qrdma_device_status(d) & VIRTIO_CONFIG_S_NEEDS_RESET);
    qrdma_post_send(v.pair.a, &(RdmaSendWr) {
        .opcode = RDMA_WR_SEND, .send_flags = RDMA_SEND_SIGNALED,
    });
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
        /* nothing to receive it: it stays */
        qrdma_post_send(t.a, &(RdmaSendWr) {
            .opcode = RDMA_WR_SEND,
            .send_flags = RDMA_SEND_SIGNALED,
            .sg_list = &sge,
            .num_sge = 1,
        });
        qrdma_post_recv(t.a, &(RdmaRecvWr) { .sg_list = &sge, .num_sge = 1 });
    }
    qrdma_settle(t.dev);
    qrdma_ring_reset(t.a->sq.ring);
    qrdma_ring_reset(t.a->rq.ring);
    qrdma_ring_setup(t.a->sq.ring, QRDMA_RING_SIZE);
    qrdma_ring_setup(t.a->rq.ring, QRDMA_RING_SIZE);
    qrdma_settle(t.dev);
    /* whatever the QP thinks of it, old buffers are not given back */
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
        qrdma_post_recv(t.a, &(RdmaRecvWr) { .sg_list = &sge, .num_sge = 1 });
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
    RdmaQpAttr attr;
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
    /* a CQ without a ring has no buffers: its QPs fail, nothing else */
    if (qrdma_try_create_cq(d, 8, &none.cqn) == VIRTIO_RDMA_S_OK) {
        qp = qrdma_create_qp(pd, &none, &none, RDMA_QPT_RC);
        g_assert_cmpuint(qp->qpn, ==, keep_qpn);
        qrdma_setup_gids(d, 1);
        qrdma_connect(qp, qp, NULL);
        qrdma_post_send(qp, &(RdmaSendWr) {
            .opcode = 99,
            .send_flags = RDMA_SEND_SIGNALED,
        });
        qrdma_settle(d);
        assert_ok(qrdma_query_qp(qp, &attr));
        g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_ERR);
    }
    expect_alive(d);
}

void add_ring_tests(void)
{
    qtest_add_func("virtio-rdma/ring/descriptor-loop", test_descriptor_loop);
    qtest_add_func("virtio-rdma/ring/head-out-of-range",
                   test_head_out_of_range);
    qtest_add_func("virtio-rdma/ring/next-out-of-range",
                   test_next_out_of_range);
    qtest_add_func("virtio-rdma/ring/avail-index-jump",
                   test_avail_index_jump);
    qtest_add_func("virtio-rdma/ring/avail-index-goes-back",
                   test_avail_index_goes_back);
    qtest_add_func("virtio-rdma/ring/zero-length-descriptor",
                   test_zero_length_descriptor);
    qtest_add_func("virtio-rdma/ring/readable-behind-writable",
                   test_readable_behind_writable);
    qtest_add_func("virtio-rdma/ring/wrong-direction", test_wrong_direction);
    qtest_add_func("virtio-rdma/ring/buffer-outside-ram",
                   test_buffer_outside_ram);
    qtest_add_func("virtio-rdma/ring/outside-ram", test_ring_outside_ram);
    qtest_add_func("virtio-rdma/ring/cqe-buffer-too-small",
                   test_cqe_buffer_too_small);
    qtest_add_func("virtio-rdma/ring/indirect", test_indirect);
    qtest_add_func("virtio-rdma/ring/malformed-indirect",
                   test_malformed_indirect);
    qtest_add_func("virtio-rdma/ring/broken-device-does-nothing",
                   test_broken_device_does_nothing);
    qtest_add_func("virtio-rdma/ring/control-ring-reset",
                   test_control_ring_reset);
    qtest_add_func("virtio-rdma/ring/reset-under-a-live-qp",
                   test_ring_reset_under_a_live_qp);
    qtest_add_func("virtio-rdma/ring/cq-reset-under-a-live-qp",
                   test_cq_ring_reset_under_a_live_qp);
    qtest_add_func("virtio-rdma/ring/what-lies-in-a-queue-waits-for-its-owner",
                   test_what_lies_in_a_queue_waits_for_its_owner);
    qtest_add_func("virtio-rdma/ring/kicks-of-queues-without-owner",
                   test_kicks_of_queues_without_owner);
    qtest_add_func("virtio-rdma/ring/queue-that-was-left-out",
                   test_queue_that_was_left_out);
}
