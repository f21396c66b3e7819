/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration with live queue pairs: two QEMUs on a hub, which is a third one,
 * and more that take their places. The hub loses frames; virtual time stands
 * still while a side migrates, so what is lost waits for its timer.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "net-test.h"

#define DEVICE "virtio-rdma-pci,max-qp=8,max-cq=6,max-mr=32,max-pd=8"
#define TIMEOUT_CODE 8
#define TIMEOUT_NS (4096ll << TIMEOUT_CODE)

/*
 * How long nothing may come before virtual time moves on: a busy machine
 * shall not look like a peer that has gone.
 */
#define STEP_USEC 20000

/* Regions of each side's memory; a region has one use. */
#define LEN 16000
#define SRC 0
#define RECV 16384
#define TARGET 32768
#define READ_TO 49152
#define READ_FROM 65536
#define OLD 81920
#define COUNTER 90112

typedef struct Trip {
    Net net;
    QTestState *hub;
    unsigned moves[2];              /* of each side */
    int64_t now[2];                 /* virtual time when it left */
    NetPair p;
} Trip;

static char *host_args(Trip *t, int side, const char *device)
{
    /* Source and destination take turns; the hub may not listen yet */
    return g_strdup_printf(
        "-netdev stream,id=n0,server=off,addr.type=unix,addr.path=%s/port%u,"
        "reconnect-ms=50 -device %s,netdev=n0,addr=4,mac=52:54:00:12:34:%02d",
        t->net.dir, 2 * side + t->moves[side] % 2, device, side + 1);
}

static void wait_connected(Trip *t)
{
    qtest_qmp_eventwait(t->hub, "NETDEV_STREAM_CONNECTED");
}

static Trip *trip_new(const char *lossy)
{
    g_autoptr(GString) ports = g_string_new(NULL);
    Trip *t = g_new0(Trip, 1);

    t->net.kind = NET_STREAM;
    t->net.dir = g_dir_make_tmp("rdma-migrate-XXXXXX", NULL);
    g_assert_nonnull(t->net.dir);
    for (int i = 0; i < 4; i++) {
        g_string_append_printf(ports,
            "-netdev stream,id=s%d,server=on,addr.type=unix,"
            "addr.path=%s/port%d "
            "-netdev hubport,id=h%d,hubid=0,netdev=s%d ",
            i, t->net.dir, i, i, i);
        if (lossy) {
            g_string_append_printf(ports,
                "-object filter-lossy,id=l%d,netdev=h%d,seed=%d,%s ",
                i, i, i + 1, lossy);
        }
    }
    t->hub = qtest_initf("-machine none -nodefaults %s", ports->str);
    for (int i = 0; i < 2; i++) {
        g_autofree char *args = host_args(t, i, DEVICE);

        t->net.host[i] = qrdma_host_start("%s", args);
        t->net.dev[i] = qrdma_open(t->net.host[i], QPCI_DEVFN(4, 0));
        wait_connected(t);
    }
    return t;
}

static void trip_free(Trip *t)
{
    for (int i = 0; i < 2; i++) {
        qrdma_close(t->net.dev[i]);
        qrdma_host_stop(t->net.host[i]);
    }
    qtest_quit(t->hub);
    for (int i = 0; i < 4; i++) {
        g_autofree char *path = g_strdup_printf("%s/port%d", t->net.dir, i);

        g_unlink(path);
    }
    g_rmdir(t->net.dir);
    g_free(t->net.dir);
    g_free(t);
}

/* Wait for the end of an outgoing migration. */
static bool migration_done(QTestState *qts)
{
    for (int i = 0; ; i++) {
        g_autoptr(QDict) rsp = NULL;
        const char *status;

        g_assert_cmpint(i, <, 60000);
        rsp = qtest_qmp_assert_success_ref(qts,
                                           "{'execute': 'query-migrate'}");
        status = qdict_get_try_str(rsp, "status") ?: "none";
        if (g_str_equal(status, "completed")) {
            return true;
        }
        if (g_str_equal(status, "failed")) {
            return false;
        }
        g_usleep(1000);
    }
}

static void wait_loaded(QTestState *qts)
{
    for (int i = 0; ; i++) {
        g_autoptr(QDict) rsp = NULL;

        g_assert_cmpint(i, <, 60000);
        rsp = qtest_qmp_assert_success_ref(qts, "{'execute': 'query-status'}");
        if (!g_str_equal(qdict_get_str(rsp, "status"), "inmigrate")) {
            return;
        }
        g_usleep(1000);
    }
}

static void migrate_to(Trip *t, int side, const char *uri)
{
    QTestState *from = t->net.host[side]->qts;

    /* The least step tells the time */
    t->now[side] = qtest_clock_step(from, 1);
    qtest_qmp_assert_success(from, "{'execute': 'migrate', "
                             "'arguments': {'uri': %s}}", uri);
}

static void migrate_from(QTestState *to, const char *uri)
{
    qtest_qmp_assert_success(to, "{'execute': 'migrate-incoming', "
                             "'arguments': {'uri': %s}}", uri);
}

static QTestState *start_destination(Trip *t, int side, const char *device,
                                     const char *more)
{
    g_autofree char *args = NULL;
    QTestState *qts;

    t->moves[side]++;
    args = host_args(t, side, device);
    qts = qtest_initf("-machine pc -nodefaults -m 64 %s -S -incoming defer "
                      "%s", args, more);
    wait_connected(t);
    return qts;
}

/* The destination goes on in the source's place, and at its time. */
static void take_over(Trip *t, int side, QTestState *to)
{
    QRdmaHost *host = t->net.host[side];

    wait_loaded(to);
    qtest_clock_set(to, t->now[side]);
    qtest_quit(host->qts);
    host->qts = to;
    host->bus->qts = to;
    qtest_qmp_assert_success(to, "{'execute': 'cont'}");
}

static void move(Trip *t, int side)
{
    g_autofree char *path = g_strdup_printf("%s/migrate", t->net.dir);
    g_autofree char *uri = g_strdup_printf("unix:%s", path);
    QTestState *to = start_destination(t, side, DEVICE, "");

    migrate_from(to, uri);
    migrate_to(t, side, uri);
    g_assert_true(migration_done(t->net.host[side]->qts));
    take_over(t, side, to);
    g_unlink(path);
}

/* Both leave before either arrives. */
static void move_both(Trip *t)
{
    QTestState *to[2];
    char *path[2];

    for (int i = 0; i < 2; i++) {
        g_autofree char *uri = NULL;

        path[i] = g_strdup_printf("%s/migrate%d", t->net.dir, i);
        uri = g_strdup_printf("unix:%s", path[i]);
        to[i] = start_destination(t, i, DEVICE, "");
        migrate_from(to[i], uri);
        migrate_to(t, i, uri);
    }
    for (int i = 0; i < 2; i++) {
        g_assert_true(migration_done(t->net.host[i]->qts));
    }
    for (int i = 0; i < 2; i++) {
        take_over(t, i, to[i]);
        g_unlink(path[i]);
        g_free(path[i]);
    }
}

/* Into a file; the source is gone before the destination starts. */
static void move_by_file(Trip *t, int side)
{
    g_autofree char *path = g_strdup_printf("%s/state", t->net.dir);
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    QTestState *to;

    migrate_to(t, side, uri);
    g_assert_true(migration_done(t->net.host[side]->qts));
    to = start_destination(t, side, DEVICE, "");
    migrate_from(to, uri);
    take_over(t, side, to);
    g_unlink(path);
}

/* Traffic */

static void trip_connect(Trip *t)
{
    QRdmaPath path = { .timeout = TIMEOUT_CODE };

    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    qrdma_connect(t->p.a.qp, t->p.b.qp, &path);
}

/* Requests of every kind from @from to @to, some of them unsignalled. */
static void post_all(NetEnd *from, NetEnd *to, unsigned round)
{
    static const uint8_t note[16] = "written inline";
    RdmaSge src = net_sge(from, SRC, LEN);
    RdmaSge read_to = net_sge(from, READ_TO, LEN);
    RdmaSge old = net_sge(from, OLD, 8);
    RdmaSendWr wr;

    qrdma_mr_fill(from->mr, SRC, LEN, round);
    qrdma_mr_fill(to->mr, READ_FROM, LEN, round + 100);

    wr = net_wr(RDMA_WR_SEND_WITH_IMM, 1, &src);
    memcpy(wr.ex.imm_data, &round, sizeof(wr.ex.imm_data));
    qrdma_post_send(from->qp, &wr);
    wr = net_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &src, to, TARGET);
    wr.send_flags = 0;
    qrdma_post_send(from->qp, &wr);
    wr = net_rdma_wr(RDMA_WR_RDMA_READ, 3, &read_to, to, READ_FROM);
    qrdma_post_send(from->qp, &wr);
    wr = net_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, 4, &old);
    wr.wr.atomic.remote_addr = to->mr->iova + COUNTER;
    wr.wr.atomic.compare_add = 3;
    wr.wr.atomic.rkey = to->mr->rkey;
    qrdma_post_send(from->qp, &wr);
    wr = net_wr(RDMA_WR_SEND, 5, NULL);
    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = note;
    wr.inline_len = sizeof(note);
    qrdma_post_send(from->qp, &wr);
}

static void post_receives(NetEnd *to, unsigned round)
{
    net_post_recv(to, 2 * round, RECV, LEN);
    net_post_recv(to, 2 * round + 1, TARGET + LEN, 64);
}

/* The next completion, with as many timeouts as that takes. */
static void wait_wc(Trip *t, QRdmaCq *cq, uint64_t wr_id, RdmaWc *wc)
{
    gint64 start = g_get_monotonic_time();
    gint64 step = start + STEP_USEC;

    while (!qrdma_poll_cq(cq, wc)) {
        gint64 now = g_get_monotonic_time();

        g_assert_cmpint(now - start, <, 60 * G_USEC_PER_SEC);
        if (now > step) {
            net_clock_step(&t->net, TIMEOUT_NS / 2);
            step = g_get_monotonic_time() + STEP_USEC;
        }
        g_usleep(100);
    }
    g_assert_cmpint(wc->status, ==, RDMA_WC_SUCCESS);
    g_assert_cmphex(wc->wr_id, ==, wr_id);
}

static void check_all(Trip *t, NetEnd *from, NetEnd *to, unsigned round)
{
    static const int sent[] = { 1, 3, 4, 5 };
    uint64_t count = 0;
    uint8_t note[16];
    RdmaWc wc;

    for (int i = 0; i < ARRAY_SIZE(sent); i++) {
        wait_wc(t, from->scq, sent[i], &wc);
    }
    wait_wc(t, to->rcq, 2 * round, &wc);
    g_assert_cmpuint(wc.byte_len, ==, LEN);
    g_assert_cmpmem(wc.ex.imm_data, 4, &round, 4);
    wait_wc(t, to->rcq, 2 * round + 1, &wc);
    g_assert_cmpuint(wc.byte_len, ==, sizeof(note));
    qrdma_mr_check(to->mr, RECV, LEN, round);
    qrdma_mr_check(to->mr, TARGET, LEN, round);
    qrdma_mr_check(from->mr, READ_TO, LEN, round + 100);
    qrdma_mr_read(to->mr, TARGET + LEN, note, sizeof(note));
    g_assert_cmpmem(note, sizeof(note), "written inline\0", sizeof(note));
    qrdma_mr_read(from->mr, OLD, &count, 8);
    g_assert_cmpuint(le64_to_cpu(count), ==, 3 * round);
    qrdma_mr_read(to->mr, COUNTER, &count, 8);
    g_assert_cmpuint(le64_to_cpu(count), ==, 3 * (round + 1));
}

static void check_silence(Trip *t)
{
    net_clock_step(&t->net, 100 * TIMEOUT_NS);
    qrdma_expect_none(t->p.a.scq);
    qrdma_expect_none(t->p.a.rcq);
    qrdma_expect_none(t->p.b.scq);
    qrdma_expect_none(t->p.b.rcq);
}

/* Traffic both ways, @journey amid it, and all of it ends well. */
static void travel(const char *lossy, unsigned rounds,
                   void (*journey)(Trip *t, unsigned round))
{
    Trip *t = trip_new(lossy);

    trip_connect(t);
    for (unsigned round = 0; round < rounds; round++) {
        /* In turns: receivers that are ready, and such that are not */
        if (round % 2) {
            post_receives(&t->p.a, round);
            post_receives(&t->p.b, round);
        }
        post_all(&t->p.a, &t->p.b, round);
        post_all(&t->p.b, &t->p.a, round);
        journey(t, round);
        if (round % 2 == 0) {
            post_receives(&t->p.a, round);
            post_receives(&t->p.b, round);
        }
        check_all(t, &t->p.a, &t->p.b, round);
        check_all(t, &t->p.b, &t->p.a, round);
        check_silence(t);
    }
    trip_free(t);
}

static void stay(Trip *t, unsigned round)
{
}

static void leave_in_turns(Trip *t, unsigned round)
{
    move(t, round / 2 % 2);
}

static void leave_together(Trip *t, unsigned round)
{
    move_both(t);
}

static void leave_by_file(Trip *t, unsigned round)
{
    move_by_file(t, round / 2 % 2);
}

static void test_stay(void)
{
    travel("drop=300", 3, stay);
}

static void test_live(void)
{
    travel(NULL, 4, leave_in_turns);
}

static void test_live_with_loss(void)
{
    travel("drop=300,dup=200,reorder=300", 8, leave_in_turns);
}

static void test_both(void)
{
    travel("drop=300", 4, leave_together);
}

static void test_file(void)
{
    travel("drop=300", 4, leave_by_file);
}

/* What the device keeps for its driver */

#define KEEPING (QRDMA_F(VIRTIO_RDMA_F_EVENTS) | \
                 QRDMA_F(VIRTIO_RDMA_F_CQ_DEEP) | \
                 QRDMA_F(VIRTIO_RDMA_F_CQ_RING_ARM) | \
                 QRDMA_F(VIRTIO_RDMA_F_CQE_EX) | \
                 QRDMA_F(VIRTIO_RDMA_F_COUNTERS))
#define DEPTH 150
#define KEPT 100
#define WR_ID 0x1122334455660000ull

static void post_writes(QRdmaQp *qp, uint64_t first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        qrdma_post_send(qp, &(RdmaSendWr) {
            .wr_id = first + i,
            .opcode = RDMA_WR_RDMA_WRITE,
            .send_flags = RDMA_SEND_SIGNALED,
        });
    }
}

/*
 * A QP of side 0 that talks to itself, with a CQ of DEPTH where KEPT
 * completions wait, and two events that wait likewise.
 */
static QRdmaQp *make_kept(Trip *t)
{
    QRdma *d = t->net.dev[0];
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp, *bad;

    t->p = net_pair_new_with(&t->net, RDMA_QPT_RC, KEEPING);
    pd = t->p.a.pd;
    cq = qrdma_create_cq(d, 1000);
    cq->no_refill = true;
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    qrdma_connect(qp, qp, NULL);
    assert_ok(qrdma_resize_cq(cq, DEPTH, 0));
    assert_ok(qrdma_req_notify_cq(cq, VIRTIO_RDMA_NOTIFY_SOLICITED));
    post_writes(qp, WR_ID, QRDMA_RING_SIZE + KEPT);
    qrdma_wait_until(d, (qrdma_reap(&qp->sq),
                         qp->sq.retired == qp->sq.posted));
    for (int i = 0; i < QRDMA_RING_SIZE; i++) {
        qrdma_expect(cq, WR_ID + i, RDMA_WC_SUCCESS);
    }
    qrdma_expect_none(cq);

    for (int i = 0; i < 2; i++) {
        bad = qrdma_create_qp(pd, t->p.a.scq, t->p.a.scq, RDMA_QPT_RC);
        qrdma_connect(bad, bad, NULL);
        qrdma_ring_reset(bad->rq.ring);
    }
    return qp;
}

static void test_kept(void)
{
    Trip *t = trip_new(NULL);
    QRdmaQp *qp = make_kept(t);
    QRdmaCq *cq = qp->send_cq;
    QRdma *d = qp->dev;
    uint64_t before[VIRTIO_RDMA_NUM_COUNTERS];
    uint64_t after[VIRTIO_RDMA_NUM_COUNTERS];
    RdmaQpAttr attr;

    assert_ok(qrdma_query_counters(d, 1, before));
    g_assert_cmpuint(before[VIRTIO_RDMA_LOOPBACK_PACKETS], !=, 0);
    move(t, 0);
    assert_ok(qrdma_query_counters(d, 1, after));
    g_assert_cmpmem(before, sizeof(before), after, sizeof(after));
    qrdma_add_event_buffers(d, 8);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, qp->qpn + 1);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, qp->qpn + 2);
    qrdma_expect_no_event(d);

    /* none of these is solicited, and the mode came along */
    qrdma_refill_cq(cq, 10);
    for (int i = 0; i < 10; i++) {
        qrdma_expect(cq, WR_ID + QRDMA_RING_SIZE + i, RDMA_WC_SUCCESS);
    }
    qrdma_expect_none(cq);
    g_assert_false(qrdma_ring_irq(cq->ring));
    /* and so did the depth */
    post_writes(qp, WR_ID + QRDMA_RING_SIZE + KEPT, DEPTH - KEPT + 10);
    qrdma_expect_no_event(d);
    assert_ok(qrdma_query_qp(qp, &attr));
    g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_RTS);
    move_by_file(t, 0);
    cq->no_refill = false;
    qrdma_refill_cq(cq, QRDMA_RING_SIZE);
    for (int i = 10; i < DEPTH + 10; i++) {
        qrdma_expect(cq, WR_ID + QRDMA_RING_SIZE + i, RDMA_WC_SUCCESS);
    }
    cq->no_refill = true;
    post_writes(qp, WR_ID, QRDMA_RING_SIZE);
    qrdma_wait_until(d, (qrdma_reap(&qp->sq),
                         qp->sq.retired == qp->sq.posted));
    post_writes(qp, WR_ID, DEPTH + 1);
    qrdma_expect_event(d, RDMA_EVENT_CQ_ERR, cq->cqn);
    qrdma_expect_event(d, RDMA_EVENT_QP_FATAL, qp->qpn);
    trip_free(t);
}

/* What is saved is spoiled: nothing is loaded, and it is said why. */
typedef struct SpoilCase {
    const char *what;
    uint32_t find[4];
    unsigned words;                 /* of find */
    unsigned word;                  /* that is replaced */
    uint32_t by;
    const char *text;
} SpoilCase;

static void spoil(const char *path, const SpoilCase *c)
{
    g_autofree char *data = NULL;
    uint32_t find[4];
    uint32_t by = cpu_to_be32(c->by);
    size_t size, bytes = c->words * sizeof(find[0]);
    unsigned found = 0;

    for (unsigned i = 0; i < c->words; i++) {
        find[i] = cpu_to_be32(c->find[i]);
    }
    g_assert_true(g_file_get_contents(path, &data, &size, NULL));
    for (size_t at = 0; at + bytes <= size; at++) {
        if (!memcmp(data + at, find, bytes)) {
            memcpy(data + at + c->word * sizeof(by), &by, sizeof(by));
            found++;
        }
    }
    g_assert_cmpuint(found, ==, 1);
    g_assert_true(g_file_set_contents(path, data, size, NULL));
}

static void test_spoilt(void)
{
    Trip *t = trip_new(NULL);
    QRdmaQp *qp = make_kept(t);
    g_autofree char *path = g_strdup_printf("%s/state", t->net.dir);
    g_autofree char *copy = g_strdup_printf("%s/copy", t->net.dir);
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    g_autofree char *copy_uri = g_strdup_printf("file:%s", copy);
    g_autofree char *log = g_strdup_printf("%s/log", t->net.dir);
    g_autofree char *redirect = g_strdup_printf("2> %s", log);
    const uint32_t cqn = qp->send_cq->cqn;
    const uint32_t bad = qp->qpn + 1;
    const SpoilCase cases[] = {
        { "depth", { cqn, DEPTH }, 2, 1, KEPT - 1, "than a CQ keeps" },
        { "depth", { cqn, DEPTH }, 2, 1, UINT32_MAX, "than a CQ keeps" },
        { "depth", { cqn, DEPTH }, 2, 1, 16385, "record 2 of cqs" },
        { "number", { cqn, DEPTH }, 2, 0, 6, "record 2 of cqs" },
        { "type", { 1, bad, 1, bad + 1 }, 4, 0, 77, "record 0 of events" },
        { "type", { 1, bad, 1, bad + 1 }, 4, 0, 0xff, "record 0 of events" },
        { "id", { 1, bad, 1, bad + 1 }, 4, 1, 7, "record 0 of events" },
        { "twice", { 1, bad, 1, bad + 1 }, 4, 3, bad, "record 1 of events" },
    };
    QTestState *to;

    migrate_to(t, 0, uri);
    g_assert_true(migration_done(t->net.host[0]->qts));
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *data = NULL;
        g_autofree char *said = NULL;
        size_t size;

        g_test_message("%s becomes %u", cases[i].what, cases[i].by);
        g_assert_true(g_file_get_contents(path, &data, &size, NULL));
        g_assert_true(g_file_set_contents(copy, data, size, NULL));
        spoil(copy, &cases[i]);
        to = start_destination(t, 0, DEVICE, redirect);
        t->moves[0]--;
        qtest_set_expected_status(to, 1);
        migrate_from(to, copy_uri);
        qtest_wait_qemu(to);
        qtest_quit(to);
        g_assert_true(g_file_get_contents(log, &said, NULL, NULL));
        if (!strstr(said, cases[i].text)) {
            g_test_message("%s", said);
            g_assert_not_reached();
        }
    }
    g_unlink(path);
    g_unlink(copy);
    g_unlink(log);
    trip_free(t);
}

/* Refusals: the source goes on */

static void refuse(const char *device, const char *text)
{
    Trip *t = trip_new(NULL);
    g_autofree char *path = g_strdup_printf("%s/migrate", t->net.dir);
    g_autofree char *uri = g_strdup_printf("unix:%s", path);
    g_autofree char *log = g_strdup_printf("%s/log", t->net.dir);
    g_autofree char *redirect = g_strdup_printf("2> %s", log);
    g_autofree char *said = NULL;
    QTestState *from = t->net.host[0]->qts;
    QTestState *to;

    trip_connect(t);
    post_all(&t->p.a, &t->p.b, 0);
    to = start_destination(t, 0, device, redirect);
    qtest_set_expected_status(to, 1);
    for (int i = 0; i < 2; i++) {
        qtest_qmp_assert_success(i ? from : to,
            "{'execute': 'migrate-set-capabilities', 'arguments': "
            "{'capabilities': [{'capability': 'return-path', "
            "'state': true}]}}");
    }
    migrate_from(to, uri);
    migrate_to(t, 0, uri);
    g_assert_false(migration_done(from));
    qtest_wait_qemu(to);
    qtest_quit(to);
    g_assert_true(g_file_get_contents(log, &said, NULL, NULL));
    if (!strstr(said, text)) {
        g_test_message("%s", said);
        g_assert_not_reached();
    }
    post_receives(&t->p.b, 0);
    post_receives(&t->p.a, 0);
    post_all(&t->p.b, &t->p.a, 0);
    check_all(t, &t->p.a, &t->p.b, 0);
    check_all(t, &t->p.b, &t->p.a, 0);
    check_silence(t);
    g_unlink(path);
    g_unlink(log);
    trip_free(t);
}

static void test_refuse_limits(void)
{
    static const char *const cases[][2] = {
        { "max-pd=4", "max-pd=8" },
        { "max-mr=16", "max-mr=32" },
        { "max-rd-atomic=8", "max-rd-atomic=16" },
        { "gid-table-len=64", "gid-table-len=128" },
        { "max-sge=16", "max-sge=32" },
        { "max-inline=256", "max-inline=512" },
        { "max-cqe=1000", "max-cqe=16384" },
    };

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *device = g_strdup_printf("%s,%s", DEVICE,
                                                  cases[i][0]);

        refuse(device, cases[i][1]);
    }
}

void add_migrate_tests(void)
{
    qtest_add_func("virtio-rdma-migration/stay", test_stay);
    qtest_add_func("virtio-rdma-migration/live", test_live);
    qtest_add_func("virtio-rdma-migration/live-with-loss",
                   test_live_with_loss);
    qtest_add_func("virtio-rdma-migration/both", test_both);
    qtest_add_func("virtio-rdma-migration/file", test_file);
    qtest_add_func("virtio-rdma-migration/kept", test_kept);
    qtest_add_func("virtio-rdma-migration/spoilt", test_spoilt);
    qtest_add_func("virtio-rdma-migration/refuse-limits", test_refuse_limits);
}
