/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct CQs and event queues: guarantees to drivers, and hostile writes of a
 * process to their memory.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "rdma-test.h"

#define DIRECT QRDMA_DIRECT_CQS
#define NEXT VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
#define SOLICITED VIRTIO_RDMA_NOTIFY_SOLICITED
#define DEPTH 8
/* The local APIC, where no RAM is */
#define NO_RAM 0xfee00000ull
/* More events than RDMA_QUEUE_BUDGET allows in a turn */
#define MANY 80

/* A QP that writes to itself, and its CQ */
typedef struct Loop {
    QRdma *d;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp;
} Loop;

static Loop loop_on(QRdma *d, QRdmaCq *cq)
{
    Loop l = { .d = d, .cq = cq, .pd = qrdma_alloc_pd(d) };

    qrdma_setup_gids(d, 1);
    l.qp = qrdma_create_loop(l.pd, cq, cq);
    return l;
}

static Loop loop_new(void)
{
    QRdma *d = test_device_with(DIRECT);

    qrdma_add_event_buffers(d, 8);
    return loop_on(d, qrdma_create_direct_cq(d, DEPTH, NULL));
}

static Loop loop_with_events(uint32_t buffers)
{
    QRdma *d = test_device_with(DIRECT);
    QRdmaEq *eq = qrdma_create_eq(d, buffers);

    qrdma_add_event_buffers(d, 8);
    return loop_on(d, qrdma_create_direct_cq(d, DEPTH, eq));
}

static void post(Loop *l, uint64_t wr_id, uint32_t flags)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, wr_id, NULL);

    wr.send_flags |= flags;
    qrdma_post_send(l->qp, &wr);
}

/* A SEND to itself has two completions, of which the receive's is solicited. */
static void send_solicited(Loop *l, uint64_t wr_id)
{
    qrdma_recv(l->qp, wr_id, NULL);
    post(l, wr_id, RDMA_SEND_SOLICITED);
}

/* One completion each */
static void write_n(Loop *l, unsigned n)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 0, NULL);

    for (unsigned i = 0; i < n; i++) {
        wr.wr_id = i;
        qrdma_post_send(l->qp, &wr);
    }
    qrdma_settle(l->d);
    qrdma_reap(&l->qp->sq);
}

static void expect_writes(Loop *l, unsigned n)
{
    qrdma_expect_many(l->cq, 0, n, RDMA_WC_SUCCESS);
}

static void expect_event(QRdmaCq *cq)
{
    uint32_t cqn;

    qrdma_wait_until(cq->dev, qrdma_eq_get(cq->eq, &cqn));
    g_assert_cmpuint(cqn, ==, cq->cqn);
    g_assert_true(qrdma_ring_irq(cq->eq->ring));
    qrdma_refill_eq(cq->eq, 1);
}

static void expect_no_event(QRdmaEq *eq)
{
    uint32_t cqn;

    qrdma_settle(eq->dev);
    g_assert_false(qrdma_eq_get(eq, &cqn));
    g_assert_false(qrdma_ring_irq(eq->ring));
}

/* Expect that the CQ is in error, and its QP with it. */
static void expect_end(Loop *l)
{
    qrdma_expect_event(l->d, RDMA_EVENT_CQ_ERR, l->cq->cqn);
    qrdma_expect_event(l->d, RDMA_EVENT_QP_FATAL, l->qp->qpn);
    qrdma_expect_no_event(l->d);
    g_assert_cmpint(qrdma_qp_state(l->qp), ==, RDMA_QPS_ERR);
}

static void test_rounds(void)
{
    Loop l = loop_new();

    for (int i = 0; i < 5; i++) {
        write_n(&l, DEPTH - 1);
        expect_writes(&l, DEPTH - 1);
        qrdma_expect_none(l.cq);
    }
    qrdma_expect_no_event(l.d);
}

static void test_full(void)
{
    Loop l = loop_new();

    write_n(&l, DEPTH);
    qrdma_expect_no_event(l.d);
    expect_writes(&l, DEPTH);
}

static void test_overrun(void)
{
    Loop l = loop_new();

    write_n(&l, DEPTH);
    write_n(&l, 1);
    expect_end(&l);
    /* CQEs from before the overrun can be read. */
    expect_writes(&l, DEPTH);
    qrdma_expect_none(l.cq);
}

static void test_consumer_out_of_range(void)
{
    static const uint32_t jumps[] = { 1, 1000, 0x80000000, -1u, -1000u };

    for (int i = 0; i < ARRAY_SIZE(jumps); i++) {
        Loop l = loop_new();

        l.cq->no_refill = true;
        write_n(&l, DEPTH);
        qrdma_direct_cq_set_consumer(l.cq, DEPTH + jumps[i]);
        write_n(&l, 1);
        if (-jumps[i] > 0 && -jumps[i] < DEPTH) {
            /* A consumer index one slot back is valid. */
            qrdma_expect_no_event(l.d);
        } else {
            expect_end(&l);
        }
    }
}

/* A CQ that is described, but not created yet */
typedef struct Create {
    QRdmaCq cq;
    struct virtio_rdma_create_cq_req req;
} Create;

static Create create_new(uint64_t features, uint32_t cqe)
{
    QRdma *d = test_device_with(features);
    Create c = {
        .cq = { .dev = d, .cqe = cqe },
        .req = { .cqe = cpu_to_le32(cqe) },
    };

    qrdma_add_event_buffers(d, 8);
    if (features & DIRECT) {
        c.cq.eq = qrdma_create_eq(d, 1);
    }
    qrdma_direct_cq_init(&c.cq, &c.req);
    return c;
}

static uint8_t create(Create *c)
{
    struct virtio_rdma_cqn rsp;
    uint8_t status = qrdma_call(c->cq.dev, CREATE_CQ, &c->req, &rsp);

    c->cq.cqn = le32_to_cpu(rsp.cqn);
    return status;
}

/* Write @n @pages to the list, from the one with number @first on. */
static void set_pages(Create *c, uint32_t first, const uint64_t *pages,
                      uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t le = cpu_to_le64(qrdma_dma(c->cq.dev, pages[i]));

        qrdma_write(c->cq.dev, le64_to_cpu(c->req.queue_pages) +
                    (first + i) * sizeof(le), &le, sizeof(le));
    }
}

static Loop loop_of(Create *c)
{
    assert_ok(create(c));
    return loop_on(c->cq.dev, &c->cq);
}

/* The pages of slots are apart: the first of them is the last in memory. */
static void test_pages_apart(void)
{
    enum { CQE = 256, A_PAGE = 4096 / sizeof(struct virtio_rdma_direct_cqe) };
    Create c = create_new(DIRECT, CQE);
    uint64_t mem = c.cq.buf, pages[CQE / A_PAGE];
    Loop l;

    for (uint32_t i = 0; i < ARRAY_SIZE(pages); i++) {
        pages[i] = mem + (ARRAY_SIZE(pages) - 1 - i) * 4096;
    }
    set_pages(&c, 1, pages, ARRAY_SIZE(pages));
    l = loop_of(&c);
    /* A lap, and the first page again */
    for (uint32_t i = 0; i < CQE + A_PAGE; i++) {
        uint32_t page = c.cq.consumed % CQE / A_PAGE;

        c.cq.buf = mem + (ARRAY_SIZE(pages) - 1 - 2 * (uint64_t)page) * 4096;
        write_n(&l, 1);
        qrdma_expect(&c.cq, 0, RDMA_WC_SUCCESS);
    }
}

static void test_slots_in_no_ram(void)
{
    Create c = create_new(DIRECT, DEPTH);
    Loop l;

    set_pages(&c, 0, (uint64_t[]) { NO_RAM, NO_RAM + 4096 }, 2);
    l = loop_of(&c);
    write_n(&l, 1);
    expect_end(&l);
}

static void test_counters_in_no_ram(void)
{
    Create c = create_new(DIRECT, DEPTH);
    Loop l;

    set_pages(&c, 0, &(uint64_t) { NO_RAM }, 1);
    l = loop_of(&c);
    write_n(&l, DEPTH);
    qrdma_expect_no_event(l.d);
    expect_no_event(c.cq.eq);
    write_n(&l, 1);
    expect_end(&l);
}

static uint32_t number_in_slot(QRdma *d, uint32_t slot)
{
    return qtest_readl(d->host->qts,
                       QRDMA_LEGACY_ADDR +
                       slot * sizeof(struct virtio_rdma_direct_cqe) +
                       offsetof(struct virtio_rdma_direct_cqe, number));
}

static void test_slots_that_leave_ram(void)
{
    Create c = create_new(DIRECT, DEPTH);
    QRdmaHost *host = c.cq.dev->host;
    Loop l;

    set_pages(&c, 1, &(uint64_t) { QRDMA_LEGACY_ADDR }, 1);
    qrdma_host_set_legacy_ram(host, true);
    qtest_memset(host->qts, QRDMA_LEGACY_ADDR, 0, 4096);
    l = loop_of(&c);
    write_n(&l, 1);
    g_assert_cmpuint(number_in_slot(l.d, 0), ==, 1);
    qrdma_expect_no_event(l.d);

    qrdma_host_set_legacy_ram(host, false);
    write_n(&l, 1);
    expect_end(&l);
    qrdma_host_set_legacy_ram(host, true);
    g_assert_cmpuint(number_in_slot(l.d, 1), ==, 0);
}

static void test_one_event_for_a_request(void)
{
    Loop l = loop_with_events(4);

    write_n(&l, 1);
    expect_no_event(l.cq->eq);
    qrdma_arm_direct_cq(l.cq, NEXT);
    expect_no_event(l.cq->eq);
    write_n(&l, 1);
    expect_event(l.cq);
    write_n(&l, 1);
    expect_no_event(l.cq->eq);
    /* Two requests before a completion count as one. */
    qrdma_arm_direct_cq(l.cq, NEXT);
    qrdma_arm_direct_cq(l.cq, NEXT);
    write_n(&l, 1);
    expect_event(l.cq);
    write_n(&l, 1);
    expect_no_event(l.cq->eq);
}

static void test_solicited_events(void)
{
    Loop l = loop_with_events(4);

    qrdma_arm_direct_cq(l.cq, SOLICITED);
    write_n(&l, 1);
    expect_no_event(l.cq->eq);
    send_solicited(&l, 1);
    expect_event(l.cq);
    send_solicited(&l, 2);
    expect_no_event(l.cq->eq);
    /* No request at all, but a new number */
    qrdma_arm_direct_cq(l.cq, 0);
    write_n(&l, 1);
    expect_no_event(l.cq->eq);
}

static void test_error_is_solicited(void)
{
    Loop l = loop_with_events(4);

    qrdma_arm_direct_cq(l.cq, SOLICITED);
    qrdma_recv(l.qp, 1, NULL);
    qrdma_settle(l.d);
    assert_ok(qrdma_modify_qp_state(l.qp, RDMA_QPS_ERR));
    expect_event(l.cq);
    qrdma_expect(l.cq, 1, RDMA_WC_WR_FLUSH_ERR);
}

static void test_cq_without_event_queue(void)
{
    Loop l = loop_new();

    qrdma_arm_direct_cq(l.cq, NEXT);
    write_n(&l, 1);
    expect_writes(&l, 1);
}

/* Two CQs raise more events than there are buffers. */
static void test_events_wait_for_buffers(void)
{
    Loop l = loop_with_events(0);
    Loop m = loop_on(l.d, qrdma_create_direct_cq(l.d, DEPTH, l.cq->eq));
    uint32_t cqn;

    for (int i = 0; i < 3; i++) {
        qrdma_arm_direct_cq(l.cq, NEXT);
        write_n(&l, 1);
        qrdma_arm_direct_cq(m.cq, NEXT);
        write_n(&m, 1);
    }
    g_assert_false(qrdma_eq_get(l.cq->eq, &cqn));
    qrdma_refill_eq(l.cq->eq, 1);
    expect_event(l.cq);
    expect_event(m.cq);
    expect_no_event(l.cq->eq);
}

static void test_destroyed_cq_has_no_event(void)
{
    Loop l = loop_with_events(0);
    QRdmaEq *eq = l.cq->eq;

    qrdma_arm_direct_cq(l.cq, NEXT);
    write_n(&l, 1);
    assert_status(qrdma_destroy_eq(eq), BUSY);
    assert_ok(qrdma_destroy_qp(l.qp));
    assert_ok(qrdma_destroy_cq(l.cq));
    qrdma_refill_eq(eq, 1);
    expect_no_event(eq);
    assert_ok(qrdma_destroy_eq(eq));
}

/* More CQs raise events than one turn writes. */
static void test_more_events_than_a_turn_writes(void)
{
    QRdma *d = test_own_device("max-qp=100,max-cq=100");
    QRdmaEq *eq;
    Loop l[MANY];
    uint32_t cqn;

    qrdma_start(d, QRDMA_FEATURES | DIRECT, 256);
    eq = qrdma_create_eq(d, 0);
    for (int i = 0; i < MANY; i++) {
        l[i] = loop_on(d, qrdma_create_direct_cq(d, DEPTH, eq));
        qrdma_arm_direct_cq(l[i].cq, NEXT);
        write_n(&l[i], 1);
    }
    qrdma_refill_eq(eq, MANY);
    for (int i = 0; i < MANY; i++) {
        qrdma_wait_until(d, qrdma_eq_get(eq, &cqn));
        g_assert_cmpuint(cqn, ==, l[i].cq->cqn);
    }
    qrdma_host_stop(d->host);
}

typedef struct EventBuffer {
    uint32_t count;                 /* of descriptors */
    uint32_t len;                   /* of each */
} EventBuffer;

static void test_bad_event_buffer(const void *data)
{
    const EventBuffer *bad = data;
    Loop l = loop_with_events(0);
    QRdmaEq *eq = l.cq->eq;
    g_autofree QRdmaDesc *desc = g_new(QRdmaDesc, bad->count);

    for (uint32_t i = 0; i < bad->count; i++) {
        desc[i] = (QRdmaDesc) { eq->buf, bad->len, true };
    }
    qrdma_arm_direct_cq(l.cq, NEXT);
    qrdma_ring_add(eq->ring, desc, bad->count);
    write_n(&l, 1);
    qrdma_expect_event(l.d, RDMA_EVENT_CQ_ERR, eq->eqn);
    qrdma_expect_no_event(l.d);
    /* Its CQs go on, but raise no events. */
    qrdma_arm_direct_cq(l.cq, NEXT);
    write_n(&l, 1);
    expect_no_event(eq);
    qrdma_expect(l.cq, 0, RDMA_WC_SUCCESS);
    qrdma_expect(l.cq, 0, RDMA_WC_SUCCESS);
    qrdma_expect_no_event(l.d);
}

static void test_reset_of_virtqueues(void)
{
    Loop l = loop_with_events(4);
    QRdmaEq *eq = l.cq->eq;

    /* The virtqueue of the same number is not that of the direct CQ. */
    g_assert_cmpuint(l.cq->cqn, <, l.d->max_cq);
    qrdma_ring_reset(qrdma_ring(l.d, VIRTIO_RDMA_CQ_VQ(l.cq->cqn)));
    qrdma_expect_no_event(l.d);
    write_n(&l, 1);
    expect_writes(&l, 1);
    qrdma_ring_reset(eq->ring);
    qrdma_expect_event(l.d, RDMA_EVENT_CQ_ERR, eq->eqn);
    qrdma_expect_no_event(l.d);
    qrdma_arm_direct_cq(l.cq, NEXT);
    write_n(&l, 1);
    expect_writes(&l, 1);
    g_assert_cmpint(qrdma_qp_state(l.qp), ==, RDMA_QPS_RTS);
}

/* Only DESTROY_CQ takes an event queue for a CQ. */
static void test_event_queue_is_not_a_cq(void)
{
    QRdma *d = test_device_with(DIRECT);
    QRdmaEq *eq = qrdma_create_eq(d, 1);
    QRdmaCq *cq = qrdma_create_direct_cq(d, DEPTH, eq);
    QRdmaCq fake = { .dev = d, .cqn = eq->eqn };
    RdmaQpInitAttr init = {
        .pdn = qrdma_alloc_pd(d)->pdn,
        .qp_type = RDMA_QPT_RC,
        .send_cqn = cq->cqn,
        .recv_cqn = eq->eqn,
        .cap = { 4, 4, 1, 1, 0 },
    };
    uint32_t qpn;

    assert_status(qrdma_try_create_qp(d, &init, &qpn), NOENT);
    init.send_cqn = eq->eqn;
    init.recv_cqn = cq->cqn;
    assert_status(qrdma_try_create_qp(d, &init, &qpn), NOENT);
    init.send_cqn = cq->cqn;
    assert_ok(qrdma_try_create_qp(d, &init, &qpn));
    assert_status(qrdma_req_notify_cq(&fake, NEXT), NOENT);
    assert_status(qrdma_resize_cq(&fake, 4, 0), NOENT);
    assert_status(qrdma_req_notify_cq(cq, NEXT), INVAL);
    fake.cqn = cq->cqn;
    assert_status(qrdma_destroy_cq(&fake), BUSY);
}

#define CHECK(field, value, want) \
    assert_field(create(&c), c.req, field, value, want)

static void test_rules_of_create(void)
{
    Create c = create_new(DIRECT, DEPTH);
    uint32_t npages = le32_to_cpu(c.req.queue_npages);

    CHECK(cqe, 0, INVAL);
    CHECK(cqe, cpu_to_le32(32769), INVAL);
    /* fewer slots than CQEs */
    CHECK(cqe, cpu_to_le32(DEPTH + 1), INVAL);
    CHECK(depth_shift, 2, INVAL);
    CHECK(depth_shift, 21, INVAL);
    CHECK(depth_shift, 0xff, INVAL);
    CHECK(queue_npages, 0, INVAL);
    CHECK(queue_npages, cpu_to_le32(npages - 1), INVAL);
    CHECK(queue_npages, cpu_to_le32(npages + 1), INVAL);
    CHECK(queue_levels, 4, INVAL);
    CHECK(queue_pages, cpu_to_le64(NO_RAM), INVAL);
    CHECK(flags, cpu_to_le32(VIRTIO_RDMA_CQ_DIRECT | VIRTIO_RDMA_CQ_EVENTS),
          INVAL);
    CHECK(flags, cpu_to_le32(VIRTIO_RDMA_CQ_DIRECT | 4), INVAL);
    CHECK(eqn, cpu_to_le32(c.cq.eq->eqn + 1), NOENT);
    CHECK(eqn, cpu_to_le32(-2u), NOENT);
    CHECK(eqn, cpu_to_le32(VIRTIO_RDMA_EQN_NONE), OK);
    assert_ok(create(&c));
    c.req.flags = cpu_to_le32(VIRTIO_RDMA_CQ_EVENTS);
    CHECK(cqe, cpu_to_le32(1025), INVAL);
    CHECK(cqe, cpu_to_le32(QRDMA_RING_SIZE + 1), INVAL);
    CHECK(cqe, cpu_to_le32(QRDMA_RING_SIZE), OK);
}

/* Without the feature these fields have no meaning, so any value is valid. */
static void test_feature_is_needed(void)
{
    Create c = create_new(0, DEPTH);

    CHECK(queue_npages, 0, OK);
    CHECK(eqn, cpu_to_le32(99), OK);
    CHECK(flags, cpu_to_le32(-1u), OK);
}

static void test_resize(void)
{
    Loop l = loop_new();

    write_n(&l, 5);
    assert_ok(qrdma_resize_direct_cq(l.cq, 4 * DEPTH));
    write_n(&l, 4 * DEPTH - 5);
    qrdma_expect_no_event(l.d);
    expect_writes(&l, 5);
    assert_status(qrdma_resize_direct_cq(l.cq, 4 * DEPTH - 6), INVAL);
    expect_writes(&l, 4 * DEPTH - 6);
    assert_ok(qrdma_resize_direct_cq(l.cq, 2));
    write_n(&l, 1);
    qrdma_expect(l.cq, 4 * DEPTH - 6, RDMA_WC_SUCCESS);
    expect_writes(&l, 1);
    qrdma_expect_none(l.cq);
    write_n(&l, 2);
    write_n(&l, 1);
    expect_end(&l);
}

static void test_resize_keeps_requests(void)
{
    Loop l = loop_with_events(4);

    qrdma_arm_direct_cq(l.cq, NEXT);
    assert_ok(qrdma_resize_direct_cq(l.cq, 2 * DEPTH));
    write_n(&l, 1);
    expect_event(l.cq);
    assert_ok(qrdma_resize_direct_cq(l.cq, DEPTH));
    write_n(&l, 1);
    expect_no_event(l.cq->eq);
}

static void test_rules_of_resize(void)
{
    Loop l = loop_new();
    struct virtio_rdma_resize_cq_req req = {
        .cqn = cpu_to_le32(l.cq->cqn),
        .cqe = cpu_to_le32(DEPTH),
        .depth_shift = 3,
    };
    uint32_t npages;
    uint64_t mem;

#define CHECK_RESIZE(field, value, want) \
    assert_field(qrdma_call_void(l.d, RESIZE_CQ, &req), req, field, value, \
                 want)
    req.queue_pages = cpu_to_le64(qrdma_direct_cq_alloc(l.d, 3, &npages,
                                                        &mem));
    req.queue_npages = cpu_to_le32(npages);
    CHECK_RESIZE(cqn, cpu_to_le32(99), NOENT);
    CHECK_RESIZE(cqe, 0, INVAL);
    CHECK_RESIZE(cqe, cpu_to_le32(DEPTH + 1), INVAL);
    CHECK_RESIZE(cqe, cpu_to_le32(32769), INVAL);
    CHECK_RESIZE(depth_shift, 21, INVAL);
    CHECK_RESIZE(queue_npages, cpu_to_le32(npages + 1), INVAL);
    CHECK_RESIZE(queue_pages, cpu_to_le64(NO_RAM), INVAL);
    /* A consumer index that leaves more CQEs than there are slots */
    qrdma_direct_cq_set_consumer(l.cq, -DEPTH - 1);
    assert_status(qrdma_resize_direct_cq(l.cq, 4 * DEPTH), INVAL);
    qrdma_direct_cq_set_consumer(l.cq, 0);
    write_n(&l, DEPTH);
    expect_writes(&l, DEPTH);
    qrdma_expect_no_event(l.d);
}

static void test_deeper_than_a_virtqueue(void)
{
    QRdma *d = test_device_with(DIRECT);
    Loop l = loop_on(d, qrdma_create_direct_cq(d, 32768, NULL));

    for (int i = 0; i < 100; i++) {
        write_n(&l, 30);
    }
    for (int i = 0; i < 100; i++) {
        expect_writes(&l, 30);
    }
}

static void test_more_than_there_are_virtqueues_for(void)
{
    QRdma *d = test_own_device("max-qp=8,max-cq=137");
    QRdmaEq *eq;
    uint32_t cqn;

    qrdma_start(d, QRDMA_FEATURES | DIRECT, 0);
    g_assert_cmpuint(d->max_cq, ==, 128);
    g_assert_cmpuint(d->max_cq_direct, ==, 137);
    eq = qrdma_create_eq(d, 4);
    for (int i = 0; i < 136; i++) {
        Loop l = loop_on(d, qrdma_create_direct_cq(d, DEPTH, eq));

        qrdma_arm_direct_cq(l.cq, NEXT);
        write_n(&l, 3);
        expect_event(l.cq);
        expect_writes(&l, 3);
        assert_ok(qrdma_destroy_qp(l.qp));
    }
    /* The numbers with virtqueues are used up, too. */
    assert_status(qrdma_try_create_cq(d, 1, &cqn), NOMEM);
    qrdma_host_stop(d->host);
}

static void test_reset_forgets_requests(void)
{
    Loop l = loop_with_events(0);

    qrdma_arm_direct_cq(l.cq, NEXT);
    write_n(&l, 1);
    l = loop_with_events(4);
    write_n(&l, 1);
    expect_no_event(l.cq->eq);
    expect_writes(&l, 1);
}

/* An event queue has a virtqueue, and does not lie in memory of the guest. */
static void test_event_queue_is_not_direct(void)
{
    Loop l = loop_with_events(1);
    g_autoptr(QDict) info = qrdma_query(l.d->host->qts, "'objects': ['cq']");
    unsigned seen = 0;
    const QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(info, "cqs"), e) {
        QDict *cq = qobject_to(QDict, qlist_entry_obj(e));

        g_assert_true(qdict_get_bool(cq, "direct") !=
                      qdict_get_bool(cq, "event-queue"));
        seen++;
    }
    g_assert_cmpuint(seen, ==, 2);
}

const QRdmaTest direct_cq_tests[] = {
    { "event-queue-is-not-direct", test_event_queue_is_not_direct },
    { "rounds", test_rounds },
    { "full", test_full },
    { "overrun", test_overrun },
    { "consumer-out-of-range", test_consumer_out_of_range },
    { "pages-apart", test_pages_apart },
    { "slots-in-no-ram", test_slots_in_no_ram },
    { "counters-in-no-ram", test_counters_in_no_ram },
    { "slots-that-leave-ram", test_slots_that_leave_ram },
    { "one-event-for-a-request", test_one_event_for_a_request },
    { "solicited-events", test_solicited_events },
    { "error-is-solicited", test_error_is_solicited },
    { "cq-without-event-queue", test_cq_without_event_queue },
    { "events-wait-for-buffers", test_events_wait_for_buffers },
    { "destroyed-cq-has-no-event", test_destroyed_cq_has_no_event },
    { "more-events-than-a-turn-writes", test_more_events_than_a_turn_writes },
    { "short-event-buffer", .run_case = test_bad_event_buffer,
      .data = &(EventBuffer) { 1, 3 } },
    { "event-buffer-with-many-descriptors",
      .run_case = test_bad_event_buffer, .data = &(EventBuffer) { 17, 4 } },
    { "reset-of-virtqueues", test_reset_of_virtqueues },
    { "event-queue-is-not-a-cq", test_event_queue_is_not_a_cq },
    { "rules-of-create", test_rules_of_create },
    { "feature-is-needed", test_feature_is_needed },
    { "resize", test_resize },
    { "resize-keeps-requests", test_resize_keeps_requests },
    { "rules-of-resize", test_rules_of_resize },
    { "deeper-than-a-virtqueue", test_deeper_than_a_virtqueue },
    { "more-than-there-are-virtqueues-for",
      test_more_than_there_are_virtqueues_for },
    { "reset-forgets-requests", test_reset_forgets_requests },
    {}
};
