/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadows of pages of doorbells: marks that stand for doorbells, and what a
 * process that has one mapped can write there.
 *
 * A shadow without marks falls asleep before a test could read it. So tests
 * mark first, and then wake it. While it is awake, queue pairs read the shadow
 * and write to it for the test.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "rdma-test.h"

#define FEATURES QRDMA_DIRECT_QPS
#define PAGE QRDMA_DIRECT_DOORBELL
#define OTHER_PAGE 255
#define NO_PAGE 256
#define QPS 3
#define WORDS VIRTIO_RDMA_SHADOW_WORDS
#define AT(field) offsetof(struct virtio_rdma_shadow_page, field)
/* Enough doorbells that some follow each other fast, even on a busy machine */
#define IN_A_ROW 32
/* The local APIC, where no RAM is */
#define NO_RAM 0xfee00000ull

typedef struct Bench {
    QRdma *d;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaMr *dma;
    QRdmaMr *mr;                    /* a page */
    QRdmaQp *idle[2];               /* get doorbells, never have work */
    QRdmaQp *qp[QPS];               /* write to themselves */
    uint64_t shadow;
} Bench;

/* A QP that is connected to itself */
static QRdmaQp *qp_on(Bench *b, uint16_t page)
{
    struct virtio_rdma_create_qp_req req;
    QRdmaQp *qp = qrdma_describe_qp(b->pd, b->cq, &req);

    req.doorbell = cpu_to_le16(page);
    assert_ok(qrdma_create_described_qp(qp, &req));
    qrdma_connect(qp, qp, NULL);
    return qp;
}

static Bench bench_on(QRdma *d)
{
    Bench b = { .d = d };

    qrdma_setup_gids(d, 1);
    qrdma_add_event_buffers(d, 8);
    b.pd = qrdma_alloc_pd(d);
    b.cq = qrdma_create_cq(d, 64);
    b.dma = qrdma_get_dma_mr(b.pd, RDMA_ACCESS_LOCAL_WRITE);
    b.mr = qrdma_reg_mr(b.pd, 0, 4096, TEST_ACCESS_ALL);
    b.idle[0] = qp_on(&b, PAGE);
    b.idle[1] = qp_on(&b, PAGE);
    for (int i = 0; i < QPS; i++) {
        b.qp[i] = qp_on(&b, PAGE);
    }
    return b;
}

static Bench bench_without_shadow(void)
{
    return bench_on(test_device_with(FEATURES));
}

static void add_shadow(Bench *b)
{
    b->shadow = qrdma_alloc(b->d, 4096);
    assert_ok(qrdma_set_shadow(b->d, PAGE, b->shadow));
}

static Bench bench_new(void)
{
    Bench b = bench_without_shadow();

    add_shadow(&b);
    return b;
}

/*
 * Put a WRITE without a doorbell, from guest address @from to offset @at of
 * @to.
 */
static void put_copy(Bench *b, QRdmaQp *qp, uint64_t from, uint32_t len,
                     QRdmaMr *to, uint64_t at, uint64_t wr_id)
{
    RdmaSge sge = { qrdma_dma(b->d, from), len, b->dma->lkey };

    qrdma_put_send(qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge, to, at));
}

static void ring(QRdmaQp *qp)
{
    qrdma_doorbell(qp->dev, PAGE, qp->qpn);
}

static void mark(Bench *b, uint32_t qpn)
{
    qrdma_shadow_mark(b->d, b->shadow, qpn);
}

static void mark_all(Bench *b)
{
    QTestState *qts = b->d->host->qts;

    qtest_memset(qts, b->shadow + AT(marked), 0xff, WORDS * 4);
    qtest_memset(qts, b->shadow + AT(summary), 0xff, WORDS / 8);
}

/* Is any bit set, of words or of their summary? */
static bool has_marks(Bench *b)
{
    struct virtio_rdma_shadow_page page;
    uint32_t bits = 0;

    qrdma_read(b->d, b->shadow, &page, sizeof(page));
    for (int i = 0; i < WORDS / 32; i++) {
        bits |= page.summary[i];
    }
    for (int i = 0; i < WORDS; i++) {
        bits |= page.marked[i];
    }
    return bits;
}

static bool is_awake(Bench *b)
{
    return qtest_readl(b->d->host->qts, b->shadow + AT(awake));
}

static void ring_in_a_row(Bench *b)
{
    uint32_t qpn[] = { b->idle[0]->qpn, b->idle[1]->qpn };

    qrdma_doorbell_in_a_row(b->d, PAGE, qpn, IN_A_ROW);
}

/*
 * Wake the shadow, and wait until the mark of @qpn is taken. Others may be
 * left.
 */
static void wake_for(Bench *b, uint32_t qpn)
{
    uint64_t at = b->shadow + AT(marked[qpn / 32]);

    qrdma_wait_until(b->d, (ring_in_a_row(b),
                            !(qtest_readl(b->d->host->qts, at) &
                              1u << qpn % 32)));
}

/* Wake the shadow, and wait until all marks are taken. */
static void wake(Bench *b)
{
    qrdma_wait_until(b->d, (ring_in_a_row(b), !has_marks(b)));
}

static void expect_asleep(Bench *b)
{
    qrdma_wait_until(b->d, !is_awake(b));
}

/* Marks are enough for all queue pairs. */
static void expect_works(Bench *b)
{
    /* In any order */
    for (int i = 0; i < QPS; i++) {
        qrdma_put_send(b->qp[i], qrdma_wr(RDMA_WR_RDMA_WRITE, 0x600d, NULL));
        mark(b, b->qp[i]->qpn);
    }
    wake(b);
    for (int i = 0; i < QPS; i++) {
        qrdma_expect(b->cq, 0x600d, RDMA_WC_SUCCESS);
    }
    g_assert_false(qrdma_needs_reset(b->d));
}

static void test_marked_qps_need_no_doorbell(void)
{
    Bench b = bench_new();

    for (uint64_t round = 0; round < 5; round++) {
        for (int i = 0; i < QPS; i++) {
            qrdma_put_send(b.qp[i], qrdma_wr(RDMA_WR_RDMA_WRITE, round, NULL));
            mark(&b, b.qp[i]->qpn);
        }
        wake(&b);
        for (int i = 0; i < QPS; i++) {
            qrdma_expect(b.cq, round, RDMA_WC_SUCCESS);
        }
        qrdma_expect_none(b.cq);
    }
}

/* The device reads marks only after doorbells of several QPs in a row. */
static void test_marks_wait_while_it_is_asleep(void)
{
    Bench b = bench_new();
    uint32_t one[] = { b.idle[0]->qpn, b.idle[0]->qpn };

    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    mark(&b, b.qp[0]->qpn);
    qrdma_expect_none(b.cq);
    qrdma_doorbell_in_a_row(b.d, PAGE, one, IN_A_ROW);
    for (int i = 0; i < 20; i++) {
        ring(b.idle[i % 2]);
        g_usleep(1000);
        g_assert_false(is_awake(&b));
    }
    qrdma_expect_none(b.cq);
    g_assert_true(has_marks(&b));
    /* One doorbell is enough. */
    ring(b.qp[0]);
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 2, NULL));
    wake(&b);
    qrdma_expect(b.cq, 2, RDMA_WC_SUCCESS);
}

/* Send the shadow's word by a queue pair, while the device serves it. */
static uint32_t word_seen(Bench *b, uint64_t wr_id)
{
    uint32_t le = -1;

    qrdma_mr_write(b->mr, 0, &le, sizeof(le));
    put_copy(b, b->qp[0], b->shadow + AT(awake), sizeof(le), b->mr, 0, wr_id);
    mark(b, b->qp[0]->qpn);
    if (wr_id % 2) {
        ring(b->qp[0]);
    } else {
        wake(b);
    }
    qrdma_expect(b->cq, wr_id, RDMA_WC_SUCCESS);
    qrdma_mr_read(b->mr, 0, &le, sizeof(le));
    return le32_to_cpu(le);
}

static void test_says_when_it_is_awake(void)
{
    Bench b = bench_new();

    for (int i = 0; i < 6; i += 2) {
        /*
         * A QP served for a doorbell reads "asleep", one served for a mark
         * "awake".
         */
        g_usleep(1000);
        g_assert_cmpuint(word_seen(&b, i + 1), ==, 0);
        g_assert_cmpuint(word_seen(&b, i + 2), ==, 1);
        qrdma_settle(b.d);
        g_assert_false(is_awake(&b));
    }
}

/* The first queue pair marks the second one, and that the third one. */
static void test_looks_again_while_it_is_awake(void)
{
    Bench b = bench_new();
    QRdmaMr *shadow = qrdma_reg_mr_at(b.pd, 0, 4096, TEST_ACCESS_ALL,
                                      b.shadow);
    uint64_t mem = qrdma_alloc(b.d, 4096);

    for (int i = 0; i < QPS - 1; i++) {
        uint32_t qpn = b.qp[i + 1]->qpn;
        uint64_t bit = mem + i * 8;

        qtest_writel(b.d->host->qts, bit, 1u << qpn % 32);
        qtest_writel(b.d->host->qts, bit + 4, 1u << qpn / 32 % 32);
        put_copy(&b, b.qp[i], bit, 4, shadow, AT(marked[qpn / 32]), i);
        put_copy(&b, b.qp[i], bit + 4, 4, shadow, AT(summary[qpn / 1024]), i);
    }
    qrdma_put_send(b.qp[QPS - 1], qrdma_wr(RDMA_WR_RDMA_WRITE, QPS - 1, NULL));
    mark(&b, b.qp[0]->qpn);
    wake_for(&b, b.qp[0]->qpn);
    for (int i = 0; i < QPS; i++) {
        qrdma_expect(b.cq, i, RDMA_WC_SUCCESS);
        if (i < QPS - 1) {
            qrdma_expect(b.cq, i, RDMA_WC_SUCCESS);
        }
    }
}

/* Marks of a QP with another page, of a QP that is gone, and of no QP */
static void test_foreign_marks(void)
{
    Bench b = bench_new();
    const uint32_t unused[] = { 0, 1, TEST_MAX_QP, WORDS * 32 - 1 };
    QRdmaQp *other;

    assert_ok(qrdma_destroy_qp(b.qp[0]));
    other = qp_on(&b, OTHER_PAGE);
    qrdma_put_send(other, qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    mark(&b, other->qpn);
    for (int i = 0; i < ARRAY_SIZE(unused); i++) {
        mark(&b, unused[i]);
    }
    wake(&b);
    expect_asleep(&b);
    qrdma_expect_none(b.cq);
    assert_ok(qrdma_destroy_qp(b.qp[1]));
    mark(&b, b.qp[1]->qpn);
    wake(&b);
    expect_asleep(&b);
    qrdma_doorbell(b.d, OTHER_PAGE, other->qpn);
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
    qrdma_put_send(b.qp[2], qrdma_wr(RDMA_WR_RDMA_WRITE, 2, NULL));
    mark(&b, b.qp[2]->qpn);
    wake(&b);
    qrdma_expect(b.cq, 2, RDMA_WC_SUCCESS);
}

/* The word of a mark has no bit in the summary, or a bit there has no mark. */
static void test_summary_that_is_wrong(void)
{
    Bench b = bench_new();
    uint32_t qpn = b.qp[0]->qpn;

    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    qtest_writel(b.d->host->qts, b.shadow + AT(marked) + qpn / 32 * 4,
                 1u << qpn % 32);
    for (int i = 0; i < 10; i++) {
        ring_in_a_row(&b);
        expect_asleep(&b);
    }
    qrdma_expect_none(b.cq);
    qtest_memset(b.d->host->qts, b.shadow + AT(summary), 0xff, WORDS / 8);
    wake(&b);
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
    expect_asleep(&b);
}

/* The device ignores a driver's writes to the word "awake". */
static void test_awake_by_the_driver(void)
{
    Bench b = bench_new();

    qtest_writel(b.d->host->qts, b.shadow + AT(awake), 1);
    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    mark(&b, b.qp[0]->qpn);
    qrdma_expect_none(b.cq);
    qtest_writel(b.d->host->qts, b.shadow + AT(awake), 0);
    wake(&b);
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
}

/*
 * The maximum of marks is more than a turn serves. QPs whose marks are found
 * first do not wait for the rest: one of them sends the shadow. The device
 * clears the summary before, because a driver could write to it meanwhile.
 */
static void test_storm_of_marks(void)
{
    struct virtio_rdma_shadow_page page;
    Bench b = bench_new();

    for (int i = 0; i < 10; i++) {
        uint32_t marked = 0;

        qrdma_mr_fill(b.mr, 0, sizeof(page), 0xff);
        put_copy(&b, b.qp[0], b.shadow, sizeof(page), b.mr, 0, 1);
        mark_all(&b);
        wake(&b);
        qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
        qrdma_mr_read(b.mr, 0, &page, sizeof(page));
        for (int n = 0; n < WORDS; n++) {
            marked |= page.marked[n];
        }
        g_assert_cmphex(marked, !=, 0);
        for (int n = 0; n < WORDS / 32; n++) {
            g_assert_cmphex(page.summary[n], ==, 0);
        }
        expect_asleep(&b);
        expect_works(&b);
    }
    qrdma_expect_none(b.cq);
}

/* Traffic by doorbells goes on during the storm. */
static void test_doorbells_during_a_storm(void)
{
    Bench b = bench_new();

    for (int i = 0; i < 200; i++) {
        mark_all(&b);
        ring_in_a_row(&b);
        qrdma_put_send(b.qp[i % QPS], qrdma_wr(RDMA_WR_RDMA_WRITE, i, NULL));
        ring(b.qp[i % QPS]);
        qrdma_expect(b.cq, i, RDMA_WC_SUCCESS);
    }
    wake(&b);
    expect_works(&b);
}

/* The last number that a queue pair can have is the last mark. */
static void test_last_mark(void)
{
    QRdma *d = test_own_device("max-qp=%d,max-cq=4", WORDS * 32);
    struct virtio_rdma_create_qp_req req;
    QRdmaQp *qp;
    Bench b;

    qrdma_start(d, QRDMA_FEATURES | FEATURES, 0);
    b = bench_on(d);
    add_shadow(&b);
    qp = qrdma_describe_qp(b.pd, b.cq, &req);
    assert_ok(qrdma_create_described_qp(qp, &req));
    while (qp->qpn != WORDS * 32 - 1) {
        assert_ok(qrdma_destroy_qp(qp));
        assert_ok(qrdma_create_described_qp(qp, &req));
    }
    qrdma_connect(qp, qp, NULL);
    qrdma_put_send(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    qtest_writel(d->host->qts, b.shadow + AT(marked[WORDS - 1]), 1u << 31);
    qtest_writel(d->host->qts, b.shadow + AT(summary[WORDS / 32 - 1]),
                 1u << 31);
    wake(&b);
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
    qrdma_host_stop(d->host);
}

static uint8_t set_shadow(Bench *b, uint16_t page, uint16_t flags,
                          uint64_t addr)
{
    struct virtio_rdma_set_shadow_req req = {
        .doorbell = cpu_to_le16(page),
        .flags = cpu_to_le16(flags),
        .reserved = UINT32_MAX,     /* has no meaning */
        .addr = cpu_to_le64(addr),
    };

    return qrdma_call_void(b->d, SET_SHADOW, &req);
}

/* A command that fails leaves the shadow where it is. */
static void test_rules_of_set_shadow(void)
{
    Bench b = bench_new();
    const uint16_t on = VIRTIO_RDMA_SHADOW_ON;
    uint64_t addr = qrdma_dma(b.d, b.shadow);
    const struct {
        uint16_t page;
        uint16_t flags;
        uint64_t addr;
    } bad[] = {
        { NO_PAGE, on, addr }, { 0xffff, on, addr }, { NO_PAGE, 0, 0 },
        { PAGE, 2, addr }, { PAGE, on | 2, addr }, { PAGE, on | 0x8000, addr },
        { PAGE, on, addr + 1 }, { PAGE, on, addr + 4 },
        { PAGE, on, addr + 2048 }, { PAGE, on, addr - 4 },
        { PAGE, on, NO_RAM }, { PAGE, on, 1ull << 40 },
        { PAGE, on, -4096ull },
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_status(set_shadow(&b, bad[i].page, bad[i].flags, bad[i].addr),
                      INVAL);
        expect_works(&b);
    }
    assert_ok(set_shadow(&b, OTHER_PAGE, on, addr));
    assert_ok(set_shadow(&b, OTHER_PAGE, 0, 0));
    assert_ok(set_shadow(&b, PAGE, on, addr));
    expect_works(&b);
}

static void test_feature_is_needed(void)
{
    QRdma *d = test_device();
    uint64_t shadow = qrdma_alloc(d, 4096);

    assert_status(qrdma_set_shadow(d, PAGE, shadow), NOTSUPP);
    assert_status(qrdma_set_shadow(d, PAGE, 0), NOTSUPP);
}

/* The device neither reads nor writes the old shadow. */
static void test_another_takes_its_place(void)
{
    Bench b = bench_new();
    uint64_t old = b.shadow;

    add_shadow(&b);
    g_assert_cmphex(b.shadow, !=, old);
    qtest_memset(b.d->host->qts, old, 0xff, 4096);
    expect_works(&b);
    b.shadow = old;
    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    ring_in_a_row(&b);
    qrdma_expect_none(b.cq);
    for (int i = 0; i < 4096; i += 8) {
        g_assert_cmphex(qtest_readq(b.d->host->qts, old + i), ==, ~0ull);
    }
}

/* Doorbells still work, and a new shadow can be set. */
static void test_taken_away(void)
{
    Bench b = bench_new();

    expect_works(&b);
    for (int i = 0; i < 2; i++) {
        assert_ok(qrdma_set_shadow(b.d, PAGE, 0));
    }
    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    mark(&b, b.qp[0]->qpn);
    ring_in_a_row(&b);
    qrdma_expect_none(b.cq);
    g_assert_true(has_marks(&b));
    g_assert_false(is_awake(&b));
    ring(b.qp[0]);
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
    assert_ok(qrdma_set_shadow(b.d, PAGE, b.shadow));
    wake(&b);
    expect_works(&b);
}

/* After the reset another driver may own the memory. */
static void test_reset_forgets_it(void)
{
    Bench b = bench_without_shadow();
    QRdmaHost *host = b.d->host;
    uint64_t old = guest_alloc(&host->alloc, 4096);

    qtest_memset(host->qts, old, 0, 4096);
    assert_ok(qrdma_set_shadow(b.d, PAGE, old));
    b.shadow = old;
    expect_works(&b);
    mark_all(&b);
    ring_in_a_row(&b);
    b = bench_without_shadow();
    qtest_memset(host->qts, old, 0xff, 4096);
    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    ring_in_a_row(&b);
    qrdma_expect_none(b.cq);
    for (int i = 0; i < 4096; i += 8) {
        g_assert_cmphex(qtest_readq(host->qts, old + i), ==, ~0ull);
    }
    guest_free(&host->alloc, old);
    ring(b.qp[0]);
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
    add_shadow(&b);
    expect_works(&b);
}

/* The queue pairs go on by doorbells. */
static void test_memory_goes_away(void)
{
    g_autofree char *path = NULL;
    g_autofree char *said = g_strdup_printf(
        "virtio-rdma: the shadow of page %u of the doorbells is not in RAM\n",
        PAGE);
    int fd = g_file_open_tmp("rdma-log-XXXXXX", &path, NULL);
    QRdmaHost *host = qrdma_host_start(
        "-d guest_errors -D %s -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=8,max-cq=4", path,
        TEST_SLOT);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(TEST_SLOT, 0));
    g_autofree char *log = NULL;
    Bench b;

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    qrdma_start(d, QRDMA_FEATURES | FEATURES, 0);
    b = bench_on(d);
    qrdma_host_set_legacy_ram(host, true);
    qtest_memset(host->qts, QRDMA_LEGACY_ADDR, 0, 4096);
    b.shadow = QRDMA_LEGACY_ADDR;
    assert_ok(qrdma_set_shadow(d, PAGE, b.shadow));
    expect_works(&b);

    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    mark(&b, b.qp[0]->qpn);
    qrdma_host_set_legacy_ram(host, false);
    ring_in_a_row(&b);
    ring_in_a_row(&b);
    qrdma_expect_none(b.cq);
    g_assert_true(g_file_get_contents(path, &log, NULL, NULL));
    g_assert_cmpstr(log, ==, said);
    ring(b.qp[0]);
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
    /* The shadow does not come back with the memory. */
    qrdma_host_set_legacy_ram(host, true);
    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 2, NULL));
    ring_in_a_row(&b);
    qrdma_expect_none(b.cq);
    g_assert_true(has_marks(&b));
    assert_ok(qrdma_set_shadow(d, PAGE, b.shadow));
    wake(&b);
    qrdma_expect(b.cq, 2, RDMA_WC_SUCCESS);
    qrdma_host_stop(host);
    g_unlink(path);
}

/* With poll-max-ns, the shadow stays awake between posts. */
static void test_poll_max_ns(void)
{
    QRdma *d = test_own_device("poll-max-ns=60000000000");
    QRdmaQp *qp;
    Bench b;

    qrdma_start(d, FEATURES | QRDMA_FEATURES, 0);
    b = bench_on(d);
    add_shadow(&b);
    qp = b.qp[0];
    expect_works(&b);
    for (uint64_t round = 0; round < 5; round++) {
        g_assert_true(is_awake(&b));
        qrdma_put_send(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, round, NULL));
        mark(&b, qp->qpn);
        qrdma_expect(b.cq, round, RDMA_WC_SUCCESS);
    }
    qrdma_host_stop(b.d->host);
}

/* Marks made while the machine stands still are served afterwards. */
static void test_machine_that_stands_still(void)
{
    Bench b = bench_new();
    QTestState *qts = b.d->host->qts;

    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    qtest_qmp_eventwait(qts, "STOP");
    qrdma_put_send(b.qp[0], qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    mark(&b, b.qp[0]->qpn);
    ring_in_a_row(&b);
    qrdma_expect_none(b.cq);
    g_assert_true(has_marks(&b));
    g_assert_false(is_awake(&b));
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qtest_qmp_eventwait(qts, "RESUME");
    qrdma_expect(b.cq, 1, RDMA_WC_SUCCESS);
    wake(&b);
    expect_works(&b);
}

static void test_not_without_direct_queues(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,direct=off "
        "-device virtio-rdma-pci,netdev=n1,addr=%d,version-1=off",
        TEST_SLOT, TEST_SLOT + 1);

    for (int i = 0; i < 2; i++) {
        QRdma *d = qrdma_open(host, QPCI_DEVFN(TEST_SLOT + i, 0));

        g_assert_cmphex(qvirtio_get_features(&d->pci->vdev) &
                        QRDMA_F(VIRTIO_RDMA_F_DIRECT), ==, 0);
        qrdma_close(d);
    }
}

const QRdmaTest shadow_tests[] = {
    { "marked-qps-need-no-doorbell", test_marked_qps_need_no_doorbell },
    { "marks-wait-while-it-is-asleep", test_marks_wait_while_it_is_asleep },
    { "says-when-it-is-awake", test_says_when_it_is_awake },
    { "looks-again-while-it-is-awake", test_looks_again_while_it_is_awake },
    { "last-mark", test_last_mark },
    { "foreign-marks", test_foreign_marks },
    { "summary-that-is-wrong", test_summary_that_is_wrong },
    { "awake-by-the-driver", test_awake_by_the_driver },
    { "storm-of-marks", test_storm_of_marks },
    { "doorbells-during-a-storm", test_doorbells_during_a_storm },
    { "rules-of-set-shadow", test_rules_of_set_shadow },
    { "feature-is-needed", test_feature_is_needed },
    { "another-takes-its-place", test_another_takes_its_place },
    { "taken-away", test_taken_away },
    { "reset-forgets-it", test_reset_forgets_it },
    { "memory-goes-away", test_memory_goes_away },
    { "machine-that-stands-still", test_machine_that_stands_still },
    { "poll-max-ns", test_poll_max_ns },
    { "not-without-direct-queues", test_not_without_direct_queues },
    {}
};
