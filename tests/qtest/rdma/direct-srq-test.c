/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct SRQs: guarantees to drivers, and hostile writes of a process that has
 * one mapped.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define DIRECT QRDMA_DIRECT_SRQS
#define DEPTH (1u << QRDMA_DIRECT_DEPTH_SHIFT)
#define MAX_WR 32
/* The local APIC, where no RAM is */
#define NO_RAM 0xfee00000ull

static QRdma *start(void)
{
    QRdma *d = test_device_with(DIRECT);

    qrdma_setup_gids(d, 1);
    qrdma_add_event_buffers(d, 8);
    return d;
}

static TestSrqPair pair_new(uint32_t max_wr)
{
    QRdmaPd *pd = qrdma_alloc_pd(start());

    return test_srq_pair(pd, qrdma_create_srq(pd, max_wr, 2), RDMA_QPT_RC);
}

/* To the next slot, without a doorbell */
static void put_recv(TestSrqPair *p, uint64_t wr_id)
{
    RdmaSge sge = test_srq_sge(p, wr_id);

    qrdma_put_recv(p->dev, &p->srq->wq, wr_id, &sge);
}

static void ring(TestSrqPair *p)
{
    qrdma_doorbell(p->dev, QRDMA_DIRECT_DOORBELL, p->srq->wq.bell);
}

/* Expect that the SRQ is in error, and its QP with it, but no other QP. */
static void expect_end(TestSrqPair *p)
{
    RdmaQpInitAttr init = test_srq_init(p->srq, RDMA_QPT_RC);
    RdmaEvent event;
    uint32_t qpn;

    qrdma_expect_event(p->dev, RDMA_EVENT_SRQ_ERR, p->srq->srqn);
    for (int i = 0; i < 2; i++) {
        qrdma_wait_until(p->dev, qrdma_poll_event(p->dev, &event));
        g_assert_true(event.type == RDMA_EVENT_QP_FATAL ||
                      event.type == RDMA_EVENT_LAST_WQE_REACHED);
        g_assert_cmpuint(event.id, ==, p->b->qpn);
    }
    qrdma_expect_no_event(p->dev);
    g_assert_cmpint(qrdma_qp_state(p->b), ==, RDMA_QPS_ERR);
    g_assert_false(qrdma_needs_reset(p->dev));
    /* No new QP can use the SRQ any more, and there is only one event. */
    init.pdn = p->pd->pdn;
    init.send_cqn = init.recv_cqn = p->cq_b->cqn;
    assert_status(qrdma_try_create_qp(p->dev, &init, &qpn), INVAL);
    ring(p);
    qrdma_expect_no_event(p->dev);
    assert_status(qrdma_destroy_srq(p->srq), BUSY);
    assert_ok(qrdma_destroy_qp(p->b));
    assert_ok(qrdma_destroy_srq(p->srq));
}

/* The engine fetches receives when messages come, without a doorbell. */
static void test_posts_and_messages(void)
{
    TestSrqPair p = pair_new(MAX_WR);

    qrdma_settle(p.dev);
    g_assert_true(qrdma_direct_awake(p.dev, &p.srq->wq));
    for (unsigned i = 0; i < 3 * DEPTH; i++) {
        put_recv(&p, i);
        test_srq_transfer(&p, i);
    }
    g_assert_true(qrdma_direct_awake(p.dev, &p.srq->wq));
    qrdma_expect_none(p.cq_b);
    qrdma_expect_no_event(p.dev);
}

/* A process holds back receives that have no slot yet. */
static void test_slots_beyond_the_depth(void)
{
    TestSrqPair p = pair_new(4);
    unsigned posted = 0;

    for (unsigned i = 0; i < 300; i++) {
        while (posted < 300 && posted < i + DEPTH) {
            put_recv(&p, posted++);
        }
        if (i % 7 == 0) {
            ring(&p);
        }
        test_srq_transfer(&p, i);
    }
    qrdma_expect_no_event(p.dev);
}

/* By a doorbell, and by a message that asks for a receive */
static void test_jump_of_the_producer(void)
{
    static const uint32_t jumps[] = { DEPTH + 1, -1u, INT32_MAX, 0x80000000 };

    for (int i = 0; i < 2 * ARRAY_SIZE(jumps); i++) {
        TestSrqPair p = pair_new(MAX_WR);

        put_recv(&p, 1);
        test_srq_transfer(&p, 1);
        qrdma_direct_set_producer(p.dev, &p.srq->wq, 1 + jumps[i / 2]);
        if (i % 2) {
            test_srq_send(&p, 2, TEST_MSG);
        } else {
            ring(&p);
        }
        expect_end(&p);
    }
}

/*
 * Doorbells on the page of another process, or with the number of another
 * object
 */
static void test_foreign_doorbells(void)
{
    TestSrqPair p = pair_new(MAX_WR);
    const uint32_t numbers[] = {
        p.srq->srqn, (p.srq->srqn ? 0 : 1) | VIRTIO_RDMA_DOORBELL_SRQ,
        TEST_MAX_SRQ | VIRTIO_RDMA_DOORBELL_SRQ, UINT32_MAX,
        p.b->qpn | VIRTIO_RDMA_DOORBELL_SRQ,
    };

    /* A valid doorbell would break the SRQ. */
    qrdma_settle(p.dev);
    qrdma_direct_set_producer(p.dev, &p.srq->wq, DEPTH + 1);
    qrdma_doorbell(p.dev, QRDMA_DIRECT_DOORBELL + 1, p.srq->wq.bell);
    qrdma_doorbell(p.dev, 0, p.srq->wq.bell);
    for (int i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (numbers[i] != p.srq->wq.bell) {
            qrdma_doorbell(p.dev, QRDMA_DIRECT_DOORBELL, numbers[i]);
        }
    }
    qrdma_expect_no_event(p.dev);
    ring(&p);
    expect_end(&p);
    /* Nor the number of an SRQ that is gone */
    ring(&p);
    qrdma_expect_no_event(p.dev);
}

/* A WQE of length 0 is an error when a message takes it. */
static void test_bad_lengths(void)
{
    static const uint32_t lengths[] = { 0, 1, 11, 61, 0x7fffffff, UINT32_MAX };

    for (int i = 0; i < ARRAY_SIZE(lengths); i++) {
        TestSrqPair p = pair_new(MAX_WR);
        uint32_t le = cpu_to_le32(lengths[i]);
        RdmaWc wc;

        g_assert_cmpuint(p.srq->wq.slot, ==, 64);
        put_recv(&p, 1);
        qrdma_write(p.dev, p.srq->wq.buf, &le, sizeof(le));
        test_srq_send(&p, 1, TEST_MSG);
        qrdma_wait_cq(p.cq_b, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_LOC_QP_OP_ERR);
        g_assert_cmpint(qrdma_qp_state(p.b), ==, RDMA_QPS_ERR);
        /* The SRQ has no error. */
        assert_ok(qrdma_destroy_qp(p.b));
        p = test_srq_pair(p.pd, p.srq, RDMA_QPT_RC);
        put_recv(&p, 2);
        test_srq_transfer(&p, 2);
    }
}

/* Fields of CREATE_SRQ that make no sense */

typedef struct Create {
    QRdmaSrq srq;
    QRdmaPd *pd;
    struct virtio_rdma_create_srq_req req;
} Create;

static Create create_new(uint64_t features)
{
    Create c = { .srq.dev = test_device_with(features) };

    qrdma_setup_gids(c.srq.dev, 1);
    c.pd = qrdma_alloc_pd(c.srq.dev);
    c.req = (struct virtio_rdma_create_srq_req) {
        .pdn = cpu_to_le32(c.pd->pdn),
        .max_wr = cpu_to_le32(MAX_WR),
        .max_sge = cpu_to_le32(2),
    };
    qrdma_direct_srq_init(&c.srq, &c.req);
    return c;
}

static uint8_t create(Create *c)
{
    struct virtio_rdma_srqn rsp;
    uint8_t status = qrdma_call(c->srq.dev, CREATE_SRQ, &c->req, &rsp);

    if (status == VIRTIO_RDMA_S_OK) {
        c->srq.srqn = le32_to_cpu(rsp.srqn);
        c->srq.wq.bell = c->srq.srqn | VIRTIO_RDMA_DOORBELL_SRQ;
    }
    return status;
}

#define CHECK(field, value, want) \
    assert_field(create(&c), c.req, field, value, want)

static void test_rules_of_create(void)
{
    Create c = create_new(DIRECT);
    uint32_t npages = le32_to_cpu(c.req.queue_npages);

    CHECK(flags, cpu_to_le32(VIRTIO_RDMA_SRQ_DIRECT | 2), INVAL);
    CHECK(flags, cpu_to_le32(0x80000000), INVAL);
    CHECK(depth_shift, 17, INVAL);
    CHECK(depth_shift, 0xff, INVAL);
    /* fewer slots than work requests */
    CHECK(depth_shift, 4, INVAL);
    CHECK(max_wr, cpu_to_le32(DEPTH + 1), INVAL);
    /* a slot in which the longest WQE has no room */
    CHECK(slot_shift, 4, INVAL);
    CHECK(slot_shift, 5, INVAL);
    CHECK(slot_shift, 14, INVAL);
    CHECK(slot_shift, 0xff, INVAL);
    CHECK(max_sge, cpu_to_le32(4), INVAL);
    CHECK(queue_npages, cpu_to_le32(npages - 1), INVAL);
    CHECK(queue_npages, cpu_to_le32(npages + 1), INVAL);
    CHECK(queue_npages, 0, INVAL);
    CHECK(queue_npages, UINT32_MAX, INVAL);
    CHECK(queue_levels, 4, INVAL);
    CHECK(queue_pages, cpu_to_le64(le64_to_cpu(c.req.queue_pages) + 1),
          INVAL);
    CHECK(queue_pages, UINT64_MAX, INVAL);
    CHECK(doorbell, cpu_to_le16(0xffff), INVAL);
    CHECK(pdn, cpu_to_le32(99), NOENT);
    CHECK(max_wr, 0, INVAL);
    assert_ok(create(&c));
    /* with a virtqueue these fields have no meaning */
    c.req.flags = 0;
    c.req.depth_shift = 99;
    assert_ok(create(&c));
}

/* Without it these fields have no meaning. */
static void test_feature_is_needed(void)
{
    Create c = create_new(0);

    c.req.flags = cpu_to_le32(UINT32_MAX);
    c.req.depth_shift = 99;
    assert_ok(create(&c));
    g_assert_cmpuint(c.srq.srqn, <, c.srq.dev->max_srq);
    qrdma_ring_reset(qrdma_ring(c.srq.dev,
                                VIRTIO_RDMA_SRQ_VQ(c.srq.dev->max_cq,
                                                   c.srq.dev->max_qp,
                                                   c.srq.srqn)));
}

static void test_counters_in_no_ram(void)
{
    Create c = create_new(DIRECT);
    QRdma *d = c.srq.dev;
    uint64_t page = cpu_to_le64(NO_RAM);

    qrdma_add_event_buffers(d, 8);
    qrdma_write(d, le64_to_cpu(c.req.queue_pages), &page, sizeof(page));
    assert_ok(create(&c));
    /* The device checks the new SRQ at once. */
    qrdma_expect_event(d, RDMA_EVENT_SRQ_ERR, c.srq.srqn);
    qrdma_doorbell(d, QRDMA_DIRECT_DOORBELL, c.srq.wq.bell);
    qrdma_expect_no_event(d);
    assert_ok(qrdma_destroy_srq(&c.srq));
}

static void test_slots_in_no_ram(void)
{
    Create c = create_new(DIRECT);
    uint64_t page = cpu_to_le64(NO_RAM);
    TestSrqPair p;

    qrdma_write(c.srq.dev, le64_to_cpu(c.req.queue_pages) + sizeof(page),
                &page, sizeof(page));
    assert_ok(create(&c));
    p = test_srq_pair(c.pd, &c.srq, RDMA_QPT_RC);
    put_recv(&p, 1);
    test_srq_send(&p, 1, TEST_MSG);
    qrdma_expect(p.cq_b, 0, RDMA_WC_LOC_QP_OP_ERR);
}

/* WQEs in slots count as posted, whether the device has copied them or not. */
static void test_limit_counts_slots(void)
{
    TestSrqPair p = pair_new(8);
    RdmaSrqAttr attr;

    for (unsigned i = 0; i < 4; i++) {
        put_recv(&p, i);
    }
    assert_ok(qrdma_modify_srq(p.srq, 4));
    for (unsigned i = 0; i < 5; i++) {
        qrdma_expect_no_event(p.dev);
        assert_ok(qrdma_query_srq(p.srq, &attr));
        g_assert_cmpuint(attr.limit, ==, 4);
        if (i < 4) {
            put_recv(&p, 4 + i);
        }
        test_srq_transfer(&p, i);
    }
    qrdma_expect_event(p.dev, RDMA_EVENT_SRQ_LIMIT_REACHED, p.srq->srqn);
    /* armed while the count is below the limit already */
    assert_ok(qrdma_modify_srq(p.srq, 5));
    qrdma_expect_event(p.dev, RDMA_EVENT_SRQ_LIMIT_REACHED, p.srq->srqn);
    qrdma_expect_no_event(p.dev);
}

/* The device reads a WQE from its slot when a message needs it. */
static void test_limit_leaves_wqes_in_their_slots(void)
{
    TestSrqPair p = pair_new(8);

    qrdma_settle(p.dev);
    for (unsigned i = 0; i < 4; i++) {
        put_recv(&p, i);
    }
    assert_ok(qrdma_modify_srq(p.srq, 4));
    p.srq->wq.posted = 0;
    for (unsigned i = 10; i < 14; i++) {
        put_recv(&p, i);
    }
    test_srq_transfer(&p, 10);
    qrdma_expect_event(p.dev, RDMA_EVENT_SRQ_LIMIT_REACHED, p.srq->srqn);
}

/*
 * The command that sets the limit finds a producer that jumped: the SRQ is in
 * error.
 */
static void test_limit_of_a_broken_queue(void)
{
    TestSrqPair p = pair_new(8);

    qrdma_settle(p.dev);
    qrdma_direct_set_producer(p.dev, &p.srq->wq, DEPTH + 1);
    assert_ok(qrdma_modify_srq(p.srq, 2));
    qrdma_expect_event(p.dev, RDMA_EVENT_SRQ_LIMIT_REACHED, p.srq->srqn);
    expect_end(&p);
}

static void test_more_than_there_are_virtqueues_for(void)
{
    QRdma *d = test_own_device("max-qp=8,max-cq=16,max-srq=67");
    RdmaSrqAttr attr = { .max_wr = 4 };
    QRdmaPd *pd;
    uint32_t srqn;

    qrdma_start(d, QRDMA_FEATURES | DIRECT, 0);
    g_assert_cmpuint(d->max_srq, ==, 64);
    g_assert_cmpuint(d->max_srq_direct, ==, 67);
    qrdma_setup_gids(d, 1);
    pd = qrdma_alloc_pd(d);
    attr.pdn = pd->pdn;
    /* SRQs with virtqueues have the lower numbers. */
    assert_ok(qrdma_try_create_srq(d, &attr, &srqn));
    g_assert_cmpuint(srqn, <, 64);
    for (int i = 0; i < 62; i++) {
        qrdma_create_srq(pd, MAX_WR, 2);
    }
    for (int i = 0; i < 4; i++) {
        TestSrqPair p = test_srq_pair(pd, qrdma_create_srq(pd, MAX_WR, 2),
                                      RDMA_QPT_RC);

        put_recv(&p, i);
        test_srq_transfer(&p, i);
        assert_ok(qrdma_destroy_qp(p.a));
        assert_ok(qrdma_destroy_qp(p.b));
    }
    assert_status(qrdma_try_create_srq(d, &attr, &srqn), NOMEM);
    qrdma_host_stop(d->host);
}

/* The virtqueues at the number of a direct SRQ are not its own. */
static void test_reset_of_virtqueues(void)
{
    TestSrqPair p = pair_new(MAX_WR);

    for (uint32_t n = 0; n < p.dev->max_srq; n++) {
        QRdmaRing *r = qrdma_ring(p.dev, VIRTIO_RDMA_SRQ_VQ(p.dev->max_cq,
                                                            p.dev->max_qp, n));

        qrdma_ring_kick(r);
        qrdma_ring_reset(r);
        qrdma_ring_setup(r, QRDMA_RING_SIZE);
    }
    qrdma_expect_no_event(p.dev);
    put_recv(&p, 1);
    test_srq_transfer(&p, 1);
}

static void test_destroy_and_reset(void)
{
    TestSrqPair p = pair_new(MAX_WR);

    put_recv(&p, 1);
    ring(&p);
    put_recv(&p, 2);
    assert_ok(qrdma_destroy_qp(p.b));
    assert_ok(qrdma_destroy_srq(p.srq));
    ring(&p);
    qrdma_expect_no_event(p.dev);
    for (int i = 0; i < 3; i++) {
        p = pair_new(MAX_WR);
        put_recv(&p, i);
        test_srq_transfer(&p, i);
    }
}

/* Lists of pages take no memory that is not given back. */
static void test_pages_are_given_back(void)
{
    Create c = create_new(DIRECT);

    for (int i = 0; i < 3000; i++) {
        assert_ok(create(&c));
        assert_ok(qrdma_destroy_srq(&c.srq));
    }
}

const QRdmaTest direct_srq_tests[] = {
    { "posts-and-messages", test_posts_and_messages },
    { "slots-beyond-the-depth", test_slots_beyond_the_depth },
    { "jump-of-the-producer", test_jump_of_the_producer },
    { "foreign-doorbells", test_foreign_doorbells },
    { "bad-lengths", test_bad_lengths },
    { "rules-of-create", test_rules_of_create },
    { "feature-is-needed", test_feature_is_needed },
    { "counters-in-no-ram", test_counters_in_no_ram },
    { "slots-in-no-ram", test_slots_in_no_ram },
    { "limit-counts-slots", test_limit_counts_slots },
    { "limit-leaves-wqes-in-their-slots",
      test_limit_leaves_wqes_in_their_slots },
    { "limit-of-a-broken-queue", test_limit_of_a_broken_queue },
    { "more-than-there-are-virtqueues-for",
      test_more_than_there_are_virtqueues_for },
    { "reset-of-virtqueues", test_reset_of_virtqueues },
    { "destroy-and-reset", test_destroy_and_reset },
    { "pages-are-given-back", test_pages_are_given_back },
    {}
};
