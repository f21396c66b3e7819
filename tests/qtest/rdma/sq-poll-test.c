/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: direct SQs that the device polls while a driver keeps posting.
 *
 * An interval is shorter than a step of a test. Tests of sends without a
 * doorbell set poll-max-ns, so that polling does not end between two steps. The
 * test shares the machine's RAM, so it posts while the device polls.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "rdma-test.h"

#define LONG ",poll-max-ns=60000000000"
/* Enough doorbells that some follow each other fast, even on a busy machine */
#define IN_A_ROW 32
#define ROUNDS 2000

typedef struct Case {
    RdmaQpType type;
    bool iothread;
} Case;

typedef struct Bench {
    QRdmaHost *host;
    char *log;                      /* with trace events, or NULL */
    TestPair t;
} Bench;

static Bench bench_new(Case c, const char *more)
{
    Bench b = { .log = g_strdup_printf("%s/sq-poll-%d.log", g_get_tmp_dir(),
                                       getpid()) };
    QRdma *d;

    b.host = qrdma_host_start_shared(
        "-d trace:virtio_rdma_sq_poll -D %s -object iothread,id=io0 "
        "-netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,id=d,netdev=n0,addr=%d%s%s", b.log, TEST_SLOT,
        c.iothread ? ",iothread=io0" : "", more);
    d = qrdma_open(b.host, QPCI_DEVFN(TEST_SLOT, 0));
    qrdma_start(d, QRDMA_FEATURES |
                   (c.iothread ? QRDMA_DIRECT : QRDMA_DIRECT_QPS), 0);
    b.t = test_pair_on(d, c.type, 64, NULL);
    return b;
}

static void bench_end(Bench *b)
{
    qrdma_host_stop(b->host);
    g_unlink(b->log);
    g_free(b->log);
}

/* How many times has the device begun to poll an SQ? */
static unsigned begins(Bench *b)
{
    g_autofree char *said = NULL;
    unsigned n = 0;

    g_assert_true(g_file_get_contents(b->log, &said, NULL, NULL));
    for (char *at = said; (at = strstr(at, ": on 1")); at++) {
        n++;
    }
    return n;
}

static void ring(Bench *b)
{
    qrdma_doorbell(b->t.dev, QRDMA_DIRECT_DOORBELL, b->t.a->qpn);
}

/* Put a SEND without data into the queue of a, without a doorbell. */
static void put(Bench *b, uint64_t wr_id)
{
    qrdma_put_send(b->t.a, b->t.a->type == RDMA_QPT_UD
                   ? qrdma_ud_wr(wr_id, NULL, b->t.b, 0)
                   : qrdma_wr(RDMA_WR_SEND, wr_id, NULL));
}

static bool is_polled(Bench *b)
{
    return qrdma_direct_awake(b->t.dev, &b->t.a->sq);
}

static void recv_for(Bench *b, uint64_t wr_id)
{
    qrdma_recv(b->t.b, wr_id, NULL);
}

/*
 * Ring fast for these two QPs by turns, until polling begins for @queues of
 * them. It does not while the iothread has the lock, or if QEMU waits for a
 * processor between two doorbells.
 */
static void ring_fast(Bench *b, const uint32_t qpn[2], unsigned queues)
{
    unsigned before = begins(b);

    qrdma_wait_until(b->t.dev, (
        qrdma_doorbell_in_a_row(b->t.dev, QRDMA_DIRECT_DOORBELL, qpn, IN_A_ROW),
        begins(b) - before >= queues));
}

/*
 * The driver rings for a again, while its first SEND is in flight, because b
 * has no receive for it. Other types than RC have none in flight, but ring
 * fast.
 */
static void begin(Bench *b)
{
    uint32_t qpn[] = { b->t.a->qpn, b->t.a->qpn };
    unsigned before = begins(b);

    put(b, 1);
    ring(b);
    g_assert_false(is_polled(b));
    put(b, 2);
    if (b->t.a->type == RDMA_QPT_RC) {
        /* Not while the iothread has the lock */
        qrdma_wait_until(b->t.dev, (ring(b), begins(b) > before));
        recv_for(b, 1);
        recv_for(b, 2);
    } else {
        ring_fast(b, qpn, 1);
    }
    qrdma_expect_many(b->t.cq_a, 1, 2, RDMA_WC_SUCCESS);
}

/* Sends of a work without a doorbell. */
static void expect_polled(Bench *b, uint64_t wr_id)
{
    g_assert_true(is_polled(b));
    recv_for(b, wr_id);
    put(b, wr_id);
    qrdma_expect(b->t.cq_a, wr_id, RDMA_WC_SUCCESS);
}

static void test_sends_need_no_doorbell(const void *data)
{
    const Case *c = data;
    Bench b = bench_new(*c, LONG);

    begin(&b);
    for (uint64_t wr_id = 10; wr_id < 20; wr_id++) {
        expect_polled(&b, wr_id);
    }
    g_assert_cmpuint(begins(&b), ==, 1);
    bench_end(&b);
}

/* One timer is enough for the queues of two QPs. */
static void test_two_queues(const void *data)
{
    const Case *c = data;
    Bench b = bench_new(*c, LONG);
    uint32_t qpn[] = { b.t.a->qpn, b.t.b->qpn };

    ring_fast(&b, qpn, 2);
    g_assert_true(qrdma_direct_awake(b.t.dev, &b.t.b->sq));
    for (uint64_t wr_id = 0; wr_id < 10; wr_id++) {
        expect_polled(&b, wr_id);
        qrdma_put_send(b.t.b, qrdma_ud_wr(wr_id, NULL, b.t.a, 0));
        qrdma_expect(b.t.cq_b, wr_id, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(begins(&b), ==, 2);
    bench_end(&b);
}

/* Without more sends the device stops polling. */
static void test_ends_without_sends(const void *data)
{
    const Case *c = data;
    Bench b = bench_new(*c, "");

    begin(&b);
    qrdma_wait_until(b.t.dev, !is_polled(&b));
    recv_for(&b, 3);
    put(&b, 3);
    qrdma_expect_none(b.t.cq_a);
    ring(&b);
    qrdma_expect(b.t.cq_a, 3, RDMA_WC_SUCCESS);
    bench_end(&b);
}

static void spin(unsigned us)
{
    gint64 end = g_get_monotonic_time() + us;

    while (g_get_monotonic_time() < end) {
        continue;
    }
}

static void post(Bench *b, uint64_t wr_id)
{
    put(b, wr_id);
    if (!is_polled(b)) {
        ring(b);
    }
}

/*
 * No send is lost that the driver posts while polling ends. That is after two
 * intervals, but the time varies, so there are many rounds.
 */
static void test_posts_race_with_the_end(const void *data)
{
    const Case *c = data;
    Bench b = bench_new(*c, "");
    const uint32_t qpn[] = { b.t.a->qpn, b.t.a->qpn };
    uint64_t wr_id = 0;

    for (int i = 0; i < ROUNDS; i++) {
        qrdma_doorbell_in_a_row(b.t.dev, QRDMA_DIRECT_DOORBELL, qpn, IN_A_ROW);
        /* Many sends, so that the next doorbells begin polling, too */
        for (int n = 0; n < 5; n++) {
            post(&b, wr_id + n);
        }
        spin(g_test_rand_int_range(40, 120));
        post(&b, wr_id + 5);
        qrdma_expect_many(b.t.cq_a, wr_id, 6, RDMA_WC_SUCCESS);
        wr_id += 6;
    }
    g_test_message("polling began in %u of %u rounds", begins(&b), ROUNDS);
    g_assert_cmpuint(begins(&b), >, ROUNDS / 100);
    bench_end(&b);
}

static const Case rc = { RDMA_QPT_RC };

/* A program that waits for each reply rings for each request. */
static void test_not_for_one_send_at_a_time(void)
{
    Bench b = bench_new(rc, LONG);

    for (uint64_t wr_id = 0; wr_id < 100; wr_id++) {
        recv_for(&b, wr_id);
        put(&b, wr_id);
        ring(&b);
        qrdma_expect(b.t.cq_a, wr_id, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(begins(&b), ==, 0);
    bench_end(&b);
}

/*
 * After polling that found too little, 1, 3, 7, 15 doorbells do not start it:
 * it begins with the first of those that find a send in flight, and with the
 * 3rd, 7th and 15th.
 */
static void test_backs_off(void)
{
    Bench b = bench_new(rc, "");

    /* No peer acknowledges a send, and the virtual clock stands still. */
    assert_ok(qrdma_destroy_qp(b.t.b));
    for (unsigned i = 0; i < 20; i++) {
        qrdma_put_send(b.t.a, qrdma_wr(RDMA_WR_RDMA_WRITE, i, NULL));
        ring(&b);
        qrdma_wait_until(b.t.dev, !is_polled(&b));
        g_assert_cmpuint(begins(&b), ==,
                         i < 1 ? 0 : i < 3 ? 1 : i < 7 ? 2 : i < 15 ? 3 : 4);
    }
    bench_end(&b);
}

/* A QP or a device that goes away leaves nothing behind. */
static void test_polled_qp_goes_away(const void *data)
{
    const Case *c = data;
    Bench b = bench_new(*c, LONG);

    begin(&b);
    assert_ok(qrdma_destroy_qp(b.t.a));
    b.t.a = qrdma_create_qp(b.t.pd, b.t.cq_a, b.t.cq_a, RDMA_QPT_RC);
    qrdma_reconnect(b.t.a, b.t.b, NULL);
    begin(&b);
    expect_polled(&b, 3);
    qrdma_reset(b.t.dev);
    g_usleep(1000);
    bench_end(&b);
}

/* Sends that come while the machine stands still are served afterwards. */
static void test_machine_that_stands_still(const void *data)
{
    const Case *c = data;
    Bench b = bench_new(*c, LONG);
    QTestState *qts = b.host->qts;

    begin(&b);
    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    qtest_qmp_eventwait(qts, "STOP");
    qrdma_put_send(b.t.a, qrdma_wr(RDMA_WR_RDMA_WRITE, 3, NULL));
    qrdma_expect_none(b.t.cq_a);
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qtest_qmp_eventwait(qts, "RESUME");
    qrdma_expect(b.t.cq_a, 3, RDMA_WC_SUCCESS);
    bench_end(&b);
}

/* Sends of a QP that fails are flushed, also those without a doorbell. */
static void test_polled_qp_fails(const void *data)
{
    const Case *c = data;
    Bench b = bench_new(*c, LONG);

    begin(&b);
    put(&b, 3);
    assert_ok(qrdma_modify_qp_state(b.t.a, RDMA_QPS_ERR));
    qrdma_expect(b.t.cq_a, 3, RDMA_WC_WR_FLUSH_ERR);
    put(&b, 4);
    qrdma_expect(b.t.cq_a, 4, RDMA_WC_WR_FLUSH_ERR);
    bench_end(&b);
}

/* The timer does not run after the device is gone. */
static void test_unplugged(const void *data)
{
    const Case *c = data;
    Bench b = bench_new(*c, LONG);

    begin(&b);
    qpci_unplug_acpi_device_test(b.host->qts, "d", TEST_SLOT);
    g_usleep(1000);
    qtest_qmp_assert_success(b.host->qts, "{'execute': 'object-del', "
                             "'arguments': {'id': 'io0'}}");
    bench_end(&b);
}

typedef struct CaseTest {
    const char *name;
    void (*run)(const void *c);
    RdmaQpType only;                /* 0: all types */
} CaseTest;

void add_sq_poll_tests(void)
{
    static const struct {
        const char *name;
        Case c;
    } cases[] = {
        { "rc", { RDMA_QPT_RC } },
        { "uc", { RDMA_QPT_UC } },
        { "ud", { RDMA_QPT_UD } },
        { "iothread/rc", { RDMA_QPT_RC, true } },
        { "iothread/ud", { RDMA_QPT_UD, true } },
    };
    static const CaseTest tests[] = {
        { "sends-need-no-doorbell", test_sends_need_no_doorbell },
        { "ends-without-sends", test_ends_without_sends },
        { "posts-race-with-the-end", test_posts_race_with_the_end,
          RDMA_QPT_UD },
        { "two-queues", test_two_queues, RDMA_QPT_UD },
        { "polled-qp-goes-away", test_polled_qp_goes_away, RDMA_QPT_RC },
        { "machine-that-stands-still", test_machine_that_stands_still,
          RDMA_QPT_RC },
        { "polled-qp-fails", test_polled_qp_fails, RDMA_QPT_RC },
        { "unplugged", test_unplugged, RDMA_QPT_RC },
    };
    static const QRdmaTest others[] = {
        { "not-for-one-send-at-a-time", test_not_for_one_send_at_a_time },
        { "backs-off", test_backs_off },
        {}
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (unsigned n = 0; n < G_N_ELEMENTS(tests); n++) {
            g_autofree char *path = g_strdup_printf(
                "virtio-rdma/sq-poll/%s/%s", cases[i].name, tests[n].name);

            if (!tests[n].only || tests[n].only == cases[i].c.type) {
                qtest_add_data_func(path, &cases[i].c, tests[n].run);
            }
        }
    }
    qrdma_add_tests("virtio-rdma/sq-poll/", others);
}
