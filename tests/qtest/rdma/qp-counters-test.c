/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-rdma: counters of queue pairs that the driver reads. */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "rdma-test.h"

#define MAX_QPS VIRTIO_RDMA_MAX_COUNTER_QPS

typedef struct Bench {
    QRdma *d;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp[2];                 /* each its own peer */
    QRdmaMr *mr;
} Bench;

static Bench bench_new(void)
{
    Bench b = { .d = test_device() };

    qrdma_setup_gids(b.d, 1);
    b.pd = qrdma_alloc_pd(b.d);
    b.cq = qrdma_create_cq(b.d, 32);
    b.mr = qrdma_reg_mr(b.pd, 0x10000, 4096, RDMA_ACCESS_LOCAL_WRITE |
                                             RDMA_ACCESS_REMOTE_WRITE);
    for (int i = 0; i < 2; i++) {
        b.qp[i] = qrdma_create_loop(b.pd, b.cq, b.cq);
    }
    return b;
}

/* QP @i writes to itself: the packet, and its acknowledgement. */
static void write_once(Bench *b, int i)
{
    RdmaSge sge = { .addr = 0x10000, .length = 8, .lkey = b->mr->lkey };
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, i, &sge);

    wr.wr.rdma.remote_addr = 0x10800;
    wr.wr.rdma.rkey = b->mr->rkey;
    qrdma_post_expect(b->qp[i], wr, RDMA_WC_SUCCESS);
}

static uint64_t loopback(Bench *b, uint32_t n, const uint32_t *qpns)
{
    uint64_t values[VIRTIO_RDMA_NUM_COUNTERS];

    assert_ok(qrdma_query_qp_counters(b->d, n, qpns, values));
    for (int i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        if (i != VIRTIO_RDMA_LOOPBACK_PACKETS) {
            g_assert_cmpuint(values[i], ==, 0);
        }
    }
    return values[VIRTIO_RDMA_LOOPBACK_PACKETS];
}

static void test_each_its_own(void)
{
    Bench b = bench_new();
    const uint32_t one = b.qp[0]->qpn, two = b.qp[1]->qpn;

    write_once(&b, 0);
    write_once(&b, 1);
    write_once(&b, 1);
    g_assert_cmpuint(loopback(&b, 1, &one), ==, 2);
    g_assert_cmpuint(loopback(&b, 1, &two), ==, 4);
}

static void test_sums(void)
{
    Bench b = bench_new();
    uint32_t qpns[MAX_QPS];

    write_once(&b, 0);
    write_once(&b, 1);
    write_once(&b, 1);
    for (int i = 0; i < MAX_QPS; i++) {
        qpns[i] = b.qp[i % 2]->qpn;
    }
    g_assert_cmpuint(loopback(&b, 2, qpns), ==, 6);
    g_assert_cmpuint(qrdma_counter(b.d, VIRTIO_RDMA_LOOPBACK_PACKETS), ==, 6);
    /* A QP named twice counts twice. */
    g_assert_cmpuint(loopback(&b, MAX_QPS, qpns), ==, MAX_QPS / 2 * 6);
}

/* The host sees the same. */
static void test_as_query_rdma(void)
{
    Bench b = bench_new();
    const uint32_t qpn = b.qp[0]->qpn;
    g_autoptr(QDict) info = NULL;
    const QListEntry *e;
    bool found = false;

    write_once(&b, 0);
    info = qrdma_query(b.d->host->qts, "'objects': ['qp'], 'detail': true");
    QLIST_FOREACH_ENTRY(qdict_get_qlist(info, "qps"), e) {
        QDict *qp = qobject_to(QDict, qlist_entry_obj(e));

        if (qdict_get_int(qp, "qpn") == qpn) {
            qp = qdict_get_qdict(qdict_get_qdict(qp, "detail"), "stats");
            g_assert_cmpint(qdict_get_int(qp, "loopback-packets"), ==,
                            loopback(&b, 1, &qpn));
            found = true;
        }
    }
    g_assert_true(found);
}

/* Counters last as long as their QP, and those of a new QP are 0. */
static void test_life(void)
{
    Bench b = bench_new();
    uint64_t values[VIRTIO_RDMA_NUM_COUNTERS];
    const uint32_t qpn = b.qp[0]->qpn;

    write_once(&b, 0);
    assert_ok(qrdma_modify_qp_state(b.qp[0], RDMA_QPS_RESET));
    g_assert_cmpuint(loopback(&b, 1, &qpn), ==, 2);
    assert_ok(qrdma_destroy_qp(b.qp[0]));
    assert_status(qrdma_query_qp_counters(b.d, 1, &qpn, values), NOENT);
    b.qp[0] = qrdma_create_qp(b.pd, b.cq, b.cq, RDMA_QPT_RC);
    g_assert_cmpuint(loopback(&b, 1, &b.qp[0]->qpn), ==, 0);
}

static void test_wrong_numbers(void)
{
    Bench b = bench_new();
    uint64_t values[VIRTIO_RDMA_NUM_COUNTERS];
    const uint32_t bad[] = { 0, 1, b.qp[1]->qpn + 1, 0xffffff, UINT32_MAX };
    const uint32_t counts[] = { 0, MAX_QPS + 1, 0x10001, UINT32_MAX };
    uint32_t qpns[MAX_QPS];

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        for (int at = 0; at < MAX_QPS; at += MAX_QPS - 1) {
            for (int n = 0; n < MAX_QPS; n++) {
                qpns[n] = b.qp[0]->qpn;
            }
            qpns[at] = bad[i];
            assert_status(qrdma_query_qp_counters(b.d, MAX_QPS, qpns, values),
                          NOENT);
        }
    }
    qpns[0] = b.qp[0]->qpn;
    for (int i = 0; i < ARRAY_SIZE(counts); i++) {
        assert_status(qrdma_query_qp_counters(b.d, counts[i], qpns, values),
                      INVAL);
    }
}

/* Numbers that a short request leaves out are 0, and there is no QP 0. */
static void test_short_list(void)
{
    Bench b = bench_new();
    uint64_t values[VIRTIO_RDMA_NUM_COUNTERS];
    struct virtio_rdma_query_qp_counters_req req = {
        .num_qps = cpu_to_le32(2),
        .qpn = { cpu_to_le32(b.qp[0]->qpn), cpu_to_le32(b.qp[1]->qpn) },
    };

    assert_ok(qrdma_cmd(b.d, VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS, &req, 12,
                        values, sizeof(values)));
    assert_status(qrdma_cmd(b.d, VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS, &req, 8,
                            values, sizeof(values)), NOENT);
    assert_status(qrdma_cmd(b.d, VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS, &req, 7,
                            values, sizeof(values)), INVAL);
    assert_status(qrdma_cmd(b.d, VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS, &req, 12,
                            values, sizeof(values) - 1), INVAL);
}

const QRdmaTest qp_counters_tests[] = {
    { "each-its-own", test_each_its_own },
    { "sums", test_sums },
    { "as-query-rdma", test_as_query_rdma },
    { "life", test_life },
    { "wrong-numbers", test_wrong_numbers },
    { "short-list", test_short_list },
    {}
};
