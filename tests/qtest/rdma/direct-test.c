/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: queue pairs whose queues the device reads in memory, and hostile
 * writes of a process that has them mapped.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_pci.h"

#define DIRECT QRDMA_DIRECT_QPS
#define DEPTH (1u << QRDMA_DIRECT_DEPTH_SHIFT)
#define SLOT (1u << QRDMA_DIRECT_SLOT_SHIFT)
#define QUEUE_PAGES (DEPTH * SLOT / 4096)
#define PAGES (1 + 2 * QUEUE_PAGES)
#define RECV_SLOT_SHIFT 5
#define RECV_SLOT (1u << RECV_SLOT_SHIFT)

static TestPair direct_pair(void)
{
    TestPair t = test_pair_on(test_device_with(DIRECT), RDMA_QPT_RC,
                              64, NULL);

    qrdma_add_event_buffers(t.dev, 8);
    return t;
}

/* A WRITE as a process writes it to the next slot, without a doorbell. */
static void put_write(TestPair *t, uint64_t wr_id)
{
    RdmaSge sge = qrdma_sge(t->mr_a, 0, 64);

    qrdma_put_send(t->a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge,
                                       t->mr_b, 0));
}

static void ring(QRdmaQp *qp)
{
    qrdma_doorbell(qp->dev, QRDMA_DIRECT_DOORBELL, qp->qpn);
}

static void expect_works(TestPair *t)
{
    put_write(t, 0x600d);
    ring(t->a);
    qrdma_expect(t->cq_a, 0x600d, RDMA_WC_SUCCESS);
}

/* The device does not poll an idle queue. */
static void test_idle_queue_needs_a_doorbell(void)
{
    TestPair t = direct_pair();

    qrdma_settle(t.dev);
    g_assert_false(qrdma_direct_awake(t.dev, &t.a->sq));
    put_write(&t, 1);
    qrdma_expect_none(t.cq_a);
    ring(t.a);
    qrdma_expect(t.cq_a, 1, RDMA_WC_SUCCESS);
    qrdma_settle(t.dev);
    g_assert_false(qrdma_direct_awake(t.dev, &t.a->sq));
}

static void test_one_doorbell_for_many(void)
{
    TestPair t = direct_pair();

    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 20; i++) {
            put_write(&t, i);
        }
        ring(t.a);
        qrdma_expect_many(t.cq_a, 0, 20, RDMA_WC_SUCCESS);
    }
}

/* WQEs that wait for the QP to be ready are taken as soon as it is. */
static void test_posts_wait_for_the_state(void)
{
    TestPair t = direct_pair();

    assert_ok(qrdma_modify_qp_state(t.a, RDMA_QPS_RESET));
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_RESET));
    put_write(&t, 7);
    ring(t.a);
    qrdma_expect_none(t.cq_a);
    /* the QP that has something to send comes last */
    qrdma_connect(t.b, t.a, NULL);
    qrdma_expect(t.cq_a, 7, RDMA_WC_SUCCESS);
}

/* A stopped machine takes no doorbells. It polls its queues when it goes on. */
static void test_posts_to_a_stopped_machine(void)
{
    TestPair t = direct_pair();
    QTestState *qts = t.dev->host->qts;

    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    qtest_qmp_eventwait(qts, "STOP");
    put_write(&t, 3);
    ring(t.a);
    qrdma_expect_none(t.cq_a);
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qtest_qmp_eventwait(qts, "RESUME");
    qrdma_expect(t.cq_a, 3, RDMA_WC_SUCCESS);
}

/*
 * Errors of the device's QPs as the monitor reports them, including QPs that
 * are gone
 */
static int64_t qp_errors(QRdma *d)
{
    g_autoptr(QDict) info = qrdma_query(d->host->qts, "'objects': []");

    return qdict_get_int(info, "qp-errors");
}

/* A producer that jumps breaks its own QP, and no other. */
static void test_jump_of_the_producer(void)
{
    const uint32_t jumps[] = { DEPTH + 1, -1, INT32_MAX, 0x80000000 };
    TestPair t = direct_pair();
    int64_t errors = qp_errors(t.dev);
    uint32_t posted;

    for (int i = 0; i < ARRAY_SIZE(jumps); i++) {
        expect_works(&t);
        posted = t.a->sq.posted;
        qrdma_direct_set_producer(t.dev, &t.a->sq, posted + jumps[i]);
        ring(t.a);
        qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, t.a->qpn);
        g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_ERR);
        g_assert_cmpint(qrdma_qp_state(t.b), !=, RDMA_QPS_ERR);
        /* More doorbells raise no more errors. */
        ring(t.a);
        qrdma_expect_no_event(t.dev);
        g_assert_cmpint(qp_errors(t.dev), ==, ++errors);
        g_assert_false(qrdma_needs_reset(t.dev));
        /* After RESET the device takes the counter from the process. */
        qrdma_direct_set_producer(t.dev, &t.a->sq, posted);
        test_reconnect(&t);
    }
    expect_works(&t);
}

/* A process may write to slots whose WQEs are in flight. */
static void test_more_than_the_queue_holds(void)
{
    TestPair t = direct_pair();
    uint32_t posted;

    /* Nothing is acknowledged. */
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_RESET));
    for (int i = 0; i < DEPTH; i++) {
        put_write(&t, i);
    }
    ring(t.a);
    qrdma_settle(t.dev);
    posted = t.a->sq.posted;
    qrdma_direct_set_producer(t.dev, &t.a->sq, posted + DEPTH);
    ring(t.a);
    qrdma_settle(t.dev);
    g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_RTS);
    qrdma_direct_set_producer(t.dev, &t.a->sq, posted);
    test_reconnect(&t);
    expect_works(&t);
}

static void test_jump_of_receives(void)
{
    TestPair t = direct_pair();
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 64);

    qrdma_direct_set_producer(t.dev, &t.b->rq, 2 * DEPTH);
    qrdma_post(t.a, qrdma_wr(RDMA_WR_SEND, 1, &sge));
    /* The message finds no receive, but a broken QP. */
    qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, t.b->qpn);
    g_assert_cmpint(qrdma_qp_state(t.b), ==, RDMA_QPS_ERR);
}

/* A bad length in a slot is an error of that WQE. */
static void test_bad_lengths(void)
{
    const uint32_t lengths[] = {
        0, 1, VIRTIO_RDMA_CQE_EMPTY, SLOT - 3, SLOT, 0x7fffffff, UINT32_MAX,
    };
    TestPair t = direct_pair();

    for (int i = 0; i < ARRAY_SIZE(lengths); i++) {
        uint32_t at = t.a->sq.posted % DEPTH;
        uint32_t le = cpu_to_le32(lengths[i]);
        RdmaWc wc;

        put_write(&t, 0xbad);
        if (lengths[i] == VIRTIO_RDMA_CQE_EMPTY) {
            /* This length is valid: bytes after the SGEs are ignored. */
            qrdma_write(t.dev, t.a->sq.buf + at * SLOT, &le, sizeof(le));
            ring(t.a);
            qrdma_expect(t.cq_a, 0xbad, RDMA_WC_SUCCESS);
            continue;
        }
        qrdma_write(t.dev, t.a->sq.buf + at * SLOT, &le, sizeof(le));
        ring(t.a);
        qrdma_wait_cq(t.cq_a, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_LOC_QP_OP_ERR);
        test_reconnect(&t);
    }
    expect_works(&t);
}

static void test_slot_is_read_once(void)
{
    QRdmaPath path = { .min_rnr_timer = 12 };
    TestPair t = test_pair_on(test_device_with(DIRECT), RDMA_QPT_RC, 64,
                              &path);
    RdmaSge from = qrdma_sge(t.mr_a, 0, 64);
    RdmaSge to = qrdma_sge(t.mr_b, 0, 64);

    qrdma_mr_fill(t.mr_a, 0, 64, 3);
    qrdma_post(t.a, qrdma_wr(RDMA_WR_SEND, 0x600d, &from));
    /* the send waits for a receive */
    qrdma_expect_none(t.cq_a);
    qtest_memset(t.dev->host->qts, t.a->sq.buf, 0xff, DEPTH * SLOT);
    qrdma_recv(t.b, 1, &to);
    ring(t.b);
    qrdma_settle(t.dev);
    qtest_memset(t.dev->host->qts, t.b->rq.buf, 0xff, DEPTH * SLOT);
    /* RNR timer code 12: 0.64 ms */
    qrdma_clock_step(t.dev, 10 * QRDMA_MS);
    qrdma_expect_wc(t.cq_a, 0x600d, RDMA_WC_SEND, NULL);
    qrdma_expect_wc(t.cq_b, 1, RDMA_WC_RECV, NULL);
    qrdma_mr_check(t.mr_b, 0, 64, 3);
}

static void test_foreign_doorbells(void)
{
    const uint32_t numbers[] = { 0, 1, TEST_MAX_QP, 0x10000, UINT32_MAX };
    TestPair t = direct_pair();

    put_write(&t, 1);
    /* The page of another process, and the kernel's */
    qrdma_doorbell(t.dev, QRDMA_DIRECT_DOORBELL + 1, t.a->qpn);
    qrdma_doorbell(t.dev, 0, t.a->qpn);
    for (int i = 0; i < ARRAY_SIZE(numbers); i++) {
        qrdma_doorbell(t.dev, QRDMA_DIRECT_DOORBELL, numbers[i]);
    }
    qrdma_expect_none(t.cq_a);
    ring(t.a);
    qrdma_expect(t.cq_a, 1, RDMA_WC_SUCCESS);
}

static void test_doorbell_after_destroy(void)
{
    TestPair t = direct_pair();

    put_write(&t, 1);
    assert_ok(qrdma_destroy_qp(t.a));
    ring(t.a);
    qrdma_expect_none(t.cq_a);
    g_assert_false(qrdma_needs_reset(t.dev));
}

/* A storm of doorbells for idle queues does not stop commands and other QPs. */
static void test_storm_of_doorbells(void)
{
    TestPair t = direct_pair();

    for (int i = 0; i < 2000; i++) {
        ring(t.b);
    }
    expect_works(&t);
    g_assert_cmpint(qrdma_qp_state(t.b), ==, RDMA_QPS_RTS);
}

/* Fields of CREATE_QP that make no sense */

typedef struct Create {
    QRdma *d;
    QRdmaQp *qp;
    struct virtio_rdma_create_qp_req req;
} Create;

static Create create_on(QRdma *d)
{
    Create c = { .d = d };

    c.qp = qrdma_describe_qp(qrdma_alloc_pd(d), qrdma_create_cq(d, 8), &c.req);
    return c;
}

static Create create_new(uint64_t features)
{
    return create_on(test_device_with(features));
}

static uint8_t create(Create *c)
{
    return qrdma_create_described_qp(c->qp, &c->req);
}

#define CHECK(field, value, want) \
    assert_field(create(&c), c.req, field, value, want)

static void test_rules_of_create(void)
{
    Create c = create_new(DIRECT);
    uint32_t npages = le32_to_cpu(c.req.queue_npages);

    CHECK(sq_depth_shift, 16, INVAL);
    CHECK(sq_depth_shift, 0xff, INVAL);
    CHECK(rq_depth_shift, 16, INVAL);
    /* fewer slots than work requests */
    CHECK(sq_depth_shift, 4, INVAL);
    CHECK(rq_depth_shift, 4, INVAL);
    /* a slot in which the longest WQE has no room */
    CHECK(sq_slot_shift, 7, INVAL);
    CHECK(rq_slot_shift, 6, INVAL);
    CHECK(sq_slot_shift, 14, INVAL);
    CHECK(rq_slot_shift, 0xff, INVAL);
    CHECK(queue_npages, cpu_to_le32(npages - 1), INVAL);
    CHECK(queue_npages, cpu_to_le32(npages + 1), INVAL);
    CHECK(queue_npages, 0, INVAL);
    CHECK(queue_npages, UINT32_MAX, INVAL);
    CHECK(queue_levels, 4, INVAL);
    CHECK(queue_pages, cpu_to_le64(le64_to_cpu(c.req.queue_pages) + 1),
          INVAL);
    CHECK(queue_pages, UINT64_MAX, INVAL);
    CHECK(doorbell, cpu_to_le16(0xffff), INVAL);
    assert_ok(create(&c));
}

/* A receive queue of @depth slots, as small as they may be, of @c. */
static void deepen_rq(Create *c, uint8_t depth_shift)
{
    uint32_t npages = 1 + QUEUE_PAGES +
                      (RECV_SLOT << depth_shift) / 4096;
    uint64_t mem = qrdma_alloc(c->d, npages * 4096);
    g_autofree uint64_t *pages = g_new(uint64_t, npages);
    uint64_t list;

    for (uint32_t i = 0; i < npages; i++) {
        pages[i] = mem + i * 4096ull;
    }
    list = qrdma_write_pages(c->d, pages, npages);
    c->qp->sq.counters = mem;
    c->qp->rq.counters = mem + offsetof(struct virtio_rdma_direct_page,
                                       rq_producer);
    c->qp->rq.buf = mem + 4096 + DEPTH * SLOT;
    c->req.queue_pages = cpu_to_le64(qrdma_dma(c->d, list));
    c->req.queue_npages = cpu_to_le32(npages);
    c->req.rq_depth_shift = depth_shift;
    c->req.rq_slot_shift = RECV_SLOT_SHIFT;
    c->req.max_recv_wr = cpu_to_le32(1u << depth_shift);
    c->req.max_recv_sge = cpu_to_le32(1);
}

/* Receives without memory, their numbers as wr_id. */
static void fill_rq(Create *c, uint32_t count)
{
    g_autofree uint8_t *slots = g_malloc0(count * RECV_SLOT);

    for (uint32_t i = 0; i < count; i++) {
        stl_le_p(slots + i * RECV_SLOT,
                 sizeof(struct virtio_rdma_rq_wqe));
        stq_le_p(slots + i * RECV_SLOT +
                 sizeof(struct virtio_rdma_direct_slot) +
                 offsetof(struct virtio_rdma_rq_wqe, wr_id), i);
    }
    qrdma_write(c->d, c->qp->rq.buf, slots, count * RECV_SLOT);
    qrdma_direct_set_producer(c->d, &c->qp->rq, count);
    ring(c->qp);
}

/* Virtqueues have 1024 entries. */
static void test_deeper_than_a_virtqueue(void)
{
    const uint8_t shift = 12;
    Create c = create_new(DIRECT);
    QRdmaCq *cq = qrdma_create_cq(c.d, 1u << shift);

    deepen_rq(&c, shift);
    c.req.recv_cqn = cpu_to_le32(cq->cqn);
    assert_ok(create(&c));
    assert_ok(qrdma_modify_init(c.qp, 0));
    fill_rq(&c, 1u << shift);
    qrdma_expect_none(cq);
    assert_ok(qrdma_modify_qp_state(c.qp, RDMA_QPS_ERR));
    qrdma_expect_many(cq, 0, 1u << shift, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(cq);
}

static void test_depth_has_a_limit(void)
{
    QRdma *d = test_own_device("max-qp-wr=2000");
    Create c;

    g_assert_cmpuint(qrdma_config_le32(d, max_qp_wr_direct), ==, 2000);
    qrdma_start(d, QRDMA_FEATURES | DIRECT, 0);
    c = create_on(d);
    deepen_rq(&c, 12);
    assert_status(create(&c), INVAL);
    CHECK(max_recv_wr, cpu_to_le32(2001), INVAL);
    c.req.max_recv_wr = cpu_to_le32(2000);
    CHECK(max_send_wr, cpu_to_le32(2001), INVAL);
    assert_ok(create(&c));
    qrdma_host_stop(d->host);
}

/* There are more QP numbers than virtqueues for them. */
static void test_more_than_there_are_virtqueues_for(void)
{
    QRdma *d = test_own_device("max-qp=300");
    bool seen[300] = {};
    TestPair t;
    Create c;

    g_assert_cmpuint(qrdma_config_le32(d, max_qp), ==, 128);
    g_assert_cmpuint(qrdma_config_le32(d, max_qp_direct), ==, 300);
    d->direct = true;
    qrdma_start(d, QRDMA_FEATURES | DIRECT, 0);
    t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
    seen[t.a->qpn] = seen[t.b->qpn] = true;
    expect_works(&t);
    c = create_on(d);
    for (int i = 4; i < 300; i++) {
        assert_ok(create(&c));
        g_assert_cmpuint(c.qp->qpn, <, 300);
        g_assert_false(seen[c.qp->qpn]);
        seen[c.qp->qpn] = true;
    }
    assert_status(create(&c), NOMEM);
    /* A notification of a virtqueue above those of QPs belongs to no QP. */
    qrdma_ring_kick(qrdma_ring(d, VIRTIO_RDMA_SQ_VQ(d->max_cq, d->max_qp)));
    expect_works(&t);
    c.req.flags = 0;
    assert_status(create(&c), NOMEM);
    qrdma_reset(d);
    d->direct = false;
    qrdma_start(d, 0, 0);
    c = create_on(d);
    c.req.flags = 0;
    for (int i = 2; i < 128; i++) {
        assert_ok(create(&c));
    }
    assert_status(create(&c), NOMEM);
    qrdma_host_stop(d->host);
}

/*
 * Peers see the numbers: those of one guest tell nothing about another guest.
 */
static void test_first_number_with_virtqueues_is_any(void)
{
    QRdma *d = test_own_device("max-qp=16384");
    uint32_t first = 0;
    bool differs = false;

    for (int i = 0; i < 10; i++) {
        QRdmaCq *cq;
        QRdmaQp *qp;

        qrdma_start(d, 0, 0);
        cq = qrdma_create_cq(d, 8);
        qp = qrdma_create_qp(qrdma_alloc_pd(d), cq, cq, RDMA_QPT_RC);
        first = first ?: qp->qpn;
        differs |= qp->qpn != first;
    }
    g_assert_true(differs);
    qrdma_host_stop(d->host);
}

static void test_feature_is_needed(void)
{
    Create c = create_new(0);

    assert_status(create(&c), NOTSUPP);
    c.req.flags = 0;
    assert_ok(create(&c));
}

/* With modern-pio-notify, I/O ports take the BAR of the doorbells. */
static void test_not_without_doorbells(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=4,modern-pio-notify=on");
    QPCIDevice *dev = qpci_device_find(host->bus, QPCI_DEVFN(4, 0));
    uint8_t cap = 0;

    g_assert_nonnull(dev);
    g_assert_cmphex(qpci_config_readl(dev, PCI_BASE_ADDRESS_2) &
                    PCI_BASE_ADDRESS_SPACE, ==, PCI_BASE_ADDRESS_SPACE_IO);
    while ((cap = qpci_find_capability(dev, PCI_CAP_ID_VNDR, cap))) {
        g_assert_cmpuint(qpci_config_readb(dev, cap +
                             offsetof(struct virtio_pci_cap, cfg_type)), !=,
                         VIRTIO_PCI_CAP_SHARED_MEMORY_CFG);
    }
    g_free(dev);
}

/* Lists of pages take no memory that is not given back. */
static void test_pages_are_given_back(void)
{
    Create c = create_new(DIRECT);

    for (int i = 0; i < 3000; i++) {
        assert_ok(create(&c));
        assert_ok(qrdma_destroy_qp(c.qp));
    }
}

/* Pages that are not RAM: the QP breaks, or its WQEs complete in error. */
static void test_queues_in_no_ram(void)
{
    TestPair t = direct_pair();
    uint64_t none = cpu_to_le64(0xfee00000);
    QRdmaQp *qp;
    RdmaWc wc;

    for (int page = 0; page < 2; page++) {
        struct virtio_rdma_create_qp_req req;

        qp = qrdma_describe_qp(t.pd, t.cq_a, &req);
        qrdma_write(t.dev, le64_to_cpu(req.queue_pages) + page * 8, &none,
                    sizeof(none));
        if (page) {
            /* the first page of the receives, too */
            qrdma_write(t.dev, le64_to_cpu(req.queue_pages) +
                        (1 + QUEUE_PAGES) * 8, &none, sizeof(none));
        }
        assert_ok(qrdma_create_described_qp(qp, &req));
        if (page) {
            assert_ok(qrdma_modify_init(qp, 0));
            qrdma_direct_set_producer(t.dev, &qp->rq, 1);
        } else {
            qrdma_connect(qp, qp, NULL);
        }
        ring(qp);
        if (page) {
            assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_ERR));
            qrdma_wait_cq(t.cq_a, &wc);
            g_assert_cmpint(wc.status, !=, RDMA_WC_SUCCESS);
        } else {
            qrdma_expect_event(t.dev, RDMA_EVENT_QP_FATAL, qp->qpn);
        }
        expect_works(&t);
        assert_ok(qrdma_destroy_qp(qp));
    }
}

/* The pages of a QP: runs of @run pages, the last of them first in memory */
typedef struct Layout {
    uint32_t run;                   /* divides PAGES */
    uint8_t levels;
} Layout;

/* The offset in memory of page @n of the list */
static uint64_t page_at(const Layout *layout, uint32_t n)
{
    uint32_t run = PAGES / layout->run - 1 - n / layout->run;

    return (run * layout->run + n % layout->run) * 4096ull;
}

/* Have @wq->buf suit the next slot. The slots begin with page @base. */
static void aim(const Layout *layout, QRdmaWq *wq, uint64_t mem, uint32_t base)
{
    uint32_t offset = wq->posted % DEPTH * SLOT;

    wq->buf = mem + page_at(layout, base + offset / 4096) + offset % 4096 -
              offset;
}

/* Both queues go round, whatever the order of their pages. */
static void test_order_of_pages(const void *data)
{
    const Layout *layout = data;
    TestPair t = direct_pair();
    RdmaSge from = qrdma_sge(t.mr_a, 0, 64), to = qrdma_sge(t.mr_a, 4096, 64);
    struct virtio_rdma_create_qp_req req;
    QRdmaQp *qp = qrdma_describe_qp(t.pd, t.cq_a, &req);
    uint64_t mem = qp->sq.buf - 4096;
    uint64_t list = qrdma_alloc(t.dev, 4096);

    for (uint32_t i = 0; i < PAGES; i++) {
        uint64_t le = cpu_to_le64(qrdma_dma(t.dev, mem + page_at(layout, i)));

        qrdma_write(t.dev, list + i * sizeof(le), &le, sizeof(le));
    }
    req.queue_pages = cpu_to_le64(qrdma_dma(t.dev, list));
    req.queue_levels = layout->levels;
    qp->sq.counters += page_at(layout, 0);
    qp->rq.counters += page_at(layout, 0);
    assert_ok(qrdma_create_described_qp(qp, &req));
    qrdma_connect(qp, qp, NULL);
    for (uint32_t i = 0; i < 3 * DEPTH; i++) {
        aim(layout, &qp->rq, mem, 1 + QUEUE_PAGES);
        qrdma_put_recv(t.dev, &qp->rq, i, &to);
        aim(layout, &qp->sq, mem, 1);
        qrdma_put_send(qp, qrdma_wr(RDMA_WR_SEND, i, &from));
        ring(qp);
        qrdma_expect(t.cq_a, i, RDMA_WC_SUCCESS);
        qrdma_expect(t.cq_a, i, RDMA_WC_SUCCESS);
    }
}

/* A slot has two pages, which are apart, and the WQE is longer than one. */
static void test_wqe_in_two_pages(void)
{
    enum { LEN = 4096, N = 6 };
    QRdma *d = test_own_device("max-inline=%d", LEN);
    uint8_t slot[2 * 4096] = {}, got[LEN], *data;
    struct virtio_rdma_create_qp_req req;
    uint64_t mem, list;
    RdmaSendWr wr;
    TestPair t;
    QRdmaQp *qp;

    d->direct = true;
    qrdma_start(d, QRDMA_FEATURES | DIRECT, 0);
    t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
    qp = qrdma_describe_qp(t.pd, t.cq_a, &req);
    mem = qrdma_alloc(d, N * 4096);
    list = qrdma_alloc(d, 4096);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t le = cpu_to_le64(qrdma_dma(d, mem + (N - 1 - i) * 4096));

        qrdma_write(d, list + i * sizeof(le), &le, sizeof(le));
    }
    req.queue_pages = cpu_to_le64(qrdma_dma(d, list));
    req.queue_npages = cpu_to_le32(N);
    req.max_send_wr = cpu_to_le32(2);
    req.max_recv_wr = cpu_to_le32(1);
    req.max_recv_sge = cpu_to_le32(1);
    req.max_inline_data = cpu_to_le32(LEN);
    req.sq_depth_shift = 1;
    req.sq_slot_shift = 13;
    req.rq_depth_shift = 0;
    req.rq_slot_shift = RECV_SLOT_SHIFT;
    qp->sq.counters = mem + (N - 1) * 4096 +
                      offsetof(struct virtio_rdma_direct_page, sq_producer);
    assert_ok(qrdma_create_described_qp(qp, &req));
    qrdma_connect(qp, qp, NULL);

    wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL, t.mr_b, 0);
    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = slot;
    data = slot + 4 + qrdma_encode_send(qp, &wr, slot + 4);
    for (uint32_t i = 0; i < LEN; i++) {
        data[i] = 7 * i;
    }
    stl_le_p(slot, data + LEN - (slot + 4));
    qrdma_write(d, mem + (N - 2) * 4096, slot, 4096);
    qrdma_write(d, mem + (N - 3) * 4096, slot + 4096, 4096);
    qrdma_direct_set_producer(d, &qp->sq, 1);
    ring(qp);
    qrdma_expect(t.cq_a, 1, RDMA_WC_SUCCESS);
    qrdma_mr_read(t.mr_b, 0, got, LEN);
    g_assert_cmpmem(got, LEN, data, LEN);
    qrdma_host_stop(d->host);
}

const QRdmaTest direct_tests[] = {
    { "idle-queue-needs-a-doorbell", test_idle_queue_needs_a_doorbell },
    { "one-doorbell-for-many", test_one_doorbell_for_many },
    { "posts-wait-for-the-state", test_posts_wait_for_the_state },
    { "posts-to-a-stopped-machine", test_posts_to_a_stopped_machine },
    { "jump-of-the-producer", test_jump_of_the_producer },
    { "more-than-the-queue-holds", test_more_than_the_queue_holds },
    { "jump-of-receives", test_jump_of_receives },
    { "bad-lengths", test_bad_lengths },
    { "slot-is-read-once", test_slot_is_read_once },
    { "foreign-doorbells", test_foreign_doorbells },
    { "doorbell-after-destroy", test_doorbell_after_destroy },
    { "storm-of-doorbells", test_storm_of_doorbells },
    { "rules-of-create", test_rules_of_create },
    { "deeper-than-a-virtqueue", test_deeper_than_a_virtqueue },
    { "depth-has-a-limit", test_depth_has_a_limit },
    { "more-than-there-are-virtqueues-for",
      test_more_than_there_are_virtqueues_for },
    { "first-number-with-virtqueues-is-any",
      test_first_number_with_virtqueues_is_any },
    { "feature-is-needed", test_feature_is_needed },
    { "not-without-doorbells", test_not_without_doorbells },
    { "pages-are-given-back", test_pages_are_given_back },
    { "queues-in-no-ram", test_queues_in_no_ram },
    { "pages-in-order", .run_case = test_order_of_pages,
      .data = &(Layout) { PAGES, 0 } },
    { "pages-in-runs", .run_case = test_order_of_pages,
      .data = &(Layout) { 13, 0 } },
    { "pages-apart", .run_case = test_order_of_pages,
      .data = &(Layout) { 1, 0 } },
    { "wqe-in-two-pages", test_wqe_in_two_pages },
    { "pages-in-a-table", .run_case = test_order_of_pages,
      .data = &(Layout) { 13, 1 } },
    {}
};
