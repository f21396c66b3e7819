/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of what the device keeps for its driver, and of what is spoilt.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "migrate-test.h"

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
    trip_move(t, 0, NULL);
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
    trip_move_by_file(t, 0);
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

    trip_migrate_to(t, 0, uri);
    g_assert_true(trip_migration_done(t->net.host[0]->qts));
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *data = NULL;
        g_autofree char *said = NULL;
        size_t size;

        g_test_message("%s becomes %u", cases[i].what, cases[i].by);
        g_assert_true(g_file_get_contents(path, &data, &size, NULL));
        g_assert_true(g_file_set_contents(copy, data, size, NULL));
        spoil(copy, &cases[i]);
        to = trip_start_destination(t, 0, MIGRATE_DEVICE, redirect);
        t->moves[0]--;
        qtest_set_expected_status(to, 1);
        trip_migrate_from(to, copy_uri);
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

void add_migrate_kept_tests(void)
{
    qtest_add_func("virtio-rdma-migration/kept", test_kept);
    qtest_add_func("virtio-rdma-migration/spoilt", test_spoilt);
}
