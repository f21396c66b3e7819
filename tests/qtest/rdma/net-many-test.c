/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two virtio-rdma devices: many objects, and changes while traffic runs. */
#include "qemu/osdep.h"
#include "net-test.h"

#define N_QPS 5

/* Wait for a completion of side a, and let time pass in steps meanwhile. */
static void wait_stepping(NetPair *p, int64_t step_ns, RdmaWc *wc)
{
    for (int i = 0; !qrdma_poll_cq(p->a.scq, wc); i++) {
        g_assert_cmpint(i, <, 5000);
        net_clock_step(p->net, step_ns);
        g_usleep(100);
    }
}

/* The completions of each QP are in order, independent of other QPs. */
static void test_many_qps_share_a_cq(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    QRdmaQp *a[N_QPS], *b[N_QPS];
    uint64_t next[N_QPS] = {};
    RdmaWc wc;

    for (int i = 0; i < N_QPS; i++) {
        QRdmaPath path = { .gid_index = i % 2, .psn_a = 100 * (i + 1) };

        a[i] = qrdma_create_qp(p.a.pd, p.a.scq, p.a.rcq, RDMA_QPT_RC);
        b[i] = qrdma_create_qp(p.b.pd, p.b.scq, p.b.rcq, RDMA_QPT_RC);
        qrdma_connect(a[i], b[i], &path);
        qrdma_mr_fill(p.a.mr, i * 8000, 8000, i);
    }
    for (int n = 0; n < 8; n++) {
        for (int i = 0; i < N_QPS; i++) {
            RdmaSge sge = net_sge(&p.a, i * 8000 + n * 1000, 1000);

            qrdma_post(a[i], qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, n, &sge, p.b.mr,
                                           60000 + i * 8000 + n * 1000));
        }
    }
    for (int n = 0; n < 8 * N_QPS; n++) {
        int i;

        qrdma_wait_cq(p.a.scq, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
        for (i = 0; a[i]->qpn != wc.qp_num; i++) {
            g_assert_cmpint(i, <, N_QPS - 1);
        }
        g_assert_cmpuint(wc.wr_id, ==, next[i]);
        next[i]++;
    }
    for (int i = 0; i < N_QPS; i++) {
        qrdma_mr_check(p.b.mr, 60000 + i * 8000, 8000, i);
    }
}

/*
 * The ring holds more WQEs than the QP has room for. The rest waits in the
 * ring.
 */
static void test_more_wqes_than_the_qp_takes(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .cap = { 3, 2, 1, 1, 0 },
    };
    QRdmaPath path = { .min_rnr_timer = 1, .timeout = 20 };
    QRdmaQp *a = qrdma_create_qp_attr(p.a.pd, p.a.scq, p.a.rcq, &init);
    QRdmaQp *b = qrdma_create_qp_attr(p.b.pd, p.b.scq, p.b.rcq, &init);
    RdmaWc wc;

    qrdma_connect(a, b, &path);
    for (int i = 0; i < 40; i++) {
        RdmaSge sge = net_sge(&p.a, i * 100, 100);

        qrdma_post(a, qrdma_wr(RDMA_WR_SEND, i, &sge));
    }
    qrdma_expect_none(p.a.scq);
    qrdma_mr_fill(p.a.mr, 0, 4000, 0x31);
    for (int i = 0; i < 40; i++) {
        RdmaSge sge = net_sge(&p.b, i * 100, 100);

        qrdma_recv(b, i, &sge);
    }
    for (int i = 0; i < 40; i++) {
        wait_stepping(&p, QRDMA_MS / 100, &wc);
        g_assert_cmpuint(wc.wr_id, ==, i);
        g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
        qrdma_expect_wc(p.b.rcq, i, RDMA_WC_RECV, &wc);
    }
    qrdma_mr_check(p.b.mr, 0, 4000, 0x31);
    qrdma_reap(&a->sq);
    qrdma_reap(&b->rq);
    g_assert_cmpuint(a->sq.retired, ==, 40);
    g_assert_cmpuint(b->rq.retired, ==, 40);
}

/* The responder's resources shrink while they are in use. */
static void test_max_dest_rd_atomic_under_reads(NetKind kind)
{
    const uint8_t values[] = { 1, 4, 2, 0 };

    for (int i = 0; i < ARRAY_SIZE(values); i++) {
        NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
        RdmaQpAttr attr = {
            .qp_state = RDMA_QPS_SQD, .max_dest_rd_atomic = values[i],
        };
        RdmaWc wc;

        for (int n = 0; n < 12; n++) {
            RdmaSge sge = net_sge(&p.a, n * 8000, 8000);

            qrdma_post(p.a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_READ, n, &sge, p.b.mr,
                                             0));
        }
        assert_ok(qrdma_modify_qp_state(p.b.qp, RDMA_QPS_SQD));
        assert_ok(qrdma_modify_qp(p.b.qp, RDMA_QP_STATE |
                                  RDMA_QP_MAX_DEST_RD_ATOMIC, &attr));
        /* the peer must get an answer: an error is right, silence is wrong */
        for (int n = 0; n < 12; n++) {
            wait_stepping(&p, 50 * QRDMA_MS, &wc);
            g_assert_cmpuint(wc.wr_id, ==, n);
            if (values[i] >= 4) {
                g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
            }
        }
        assert_ok(qrdma_query_qp(p.b.qp, &attr));
        g_assert_cmpint(attr.max_dest_rd_atomic, ==, values[i]);
    }
}

static void test_peer_destroys_its_qp_in_the_middle(NetKind kind)
{
    /* 7 retries are endless to rxe, as they are of RNR NAKs */
    QRdmaPath path = { .timeout = 8, .retry_cnt = 6 };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    RdmaWc wc;

    for (int round = 0; round < 4; round++) {
        RdmaWrOpcode op = round % 2 ? RDMA_WR_RDMA_READ : RDMA_WR_RDMA_WRITE;
        int failed = 0;

        for (int n = 0; n < 8; n++) {
            RdmaSge sge = net_sge(&p.a, 0, 60000);

            qrdma_post(p.a.qp, qrdma_rdma_wr(op, n, &sge, p.b.mr, 0));
            if (n == round * 2) {
                assert_ok(qrdma_destroy_qp(p.b.qp));
            }
        }
        for (int n = 0; n < 8; n++) {
            wait_stepping(&p, QRDMA_MS, &wc);
            g_assert_cmpuint(wc.wr_id, ==, n);
            if (wc.status != RDMA_WC_SUCCESS) {
                g_assert_cmpint(wc.status, ==, failed ? RDMA_WC_WR_FLUSH_ERR :
                                               RDMA_WC_RETRY_EXC_ERR);
                failed++;
            } else {
                g_assert_cmpint(failed, ==, 0);
            }
        }
        g_assert_cmpint(failed, >, 0);
        p.b.qp = qrdma_create_qp(p.b.pd, p.b.scq, p.b.rcq, RDMA_QPT_RC);
        assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_RESET));
        qrdma_connect(p.a.qp, p.b.qp, &path);
    }
}

/* While a VM is stopped its memory does not change; then all goes on. */
static void test_peer_is_stopped_for_a_while(NetKind kind)
{
    QRdmaPath path = { .timeout = 8 };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    QTestState *qts = p.b.dev->host->qts;
    RdmaSge sge = net_sge(&p.a, 0, 20000);
    RdmaWc wc;

    qrdma_mr_fill(p.a.mr, 0, 20000, 0x61);
    qrdma_mr_fill(p.b.mr, 0, 20000, 0x16);
    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    qrdma_post(p.a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0));
    qrdma_settle(p.a.dev);
    qtest_clock_step(p.a.dev->host->qts, 3 * QRDMA_MS);
    qrdma_expect_none(p.a.scq);
    qrdma_mr_check(p.b.mr, 0, 20000, 0x16);
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    for (int k = 0; !qrdma_poll_cq(p.a.scq, &wc); k++) {
        g_assert_cmpint(k, <, 5000);
        net_clock_step(p.net, QRDMA_MS / 4);
        g_usleep(300);
    }
    g_assert_cmpuint(wc.wr_id, ==, 1);
    g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
    qrdma_mr_check(p.b.mr, 0, 20000, 0x61);
}

static void test_gid_goes_away_under_a_connection(NetKind kind)
{
    QRdmaPath path = { .timeout = 8, .retry_cnt = 2 };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    RdmaSge sge = net_sge(&p.a, 0, 20000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0);
    RdmaWc wc;

    assert_ok(qrdma_del_gid(p.b.dev, 0, 1));
    qrdma_post_send(p.a.qp, &wr);
    wait_stepping(&p, QRDMA_MS, &wc);
    g_assert_cmpint(wc.status, ==, RDMA_WC_RETRY_EXC_ERR);
    /* and the other way round */
    p = net_pair(kind, RDMA_QPT_RC, &path);
    assert_ok(qrdma_del_gid(p.a.dev, 0, 1));
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &sge, p.b.mr, 0);
    sge = net_sge(&p.a, 0, 20000);
    qrdma_post_send(p.a.qp, &wr);
    wait_stepping(&p, QRDMA_MS, &wc);
    g_assert_cmpuint(wc.wr_id, ==, 2);
    g_assert_cmpint(wc.status, !=, RDMA_WC_SUCCESS);
}

/*
 * Connect all QPs that a device may have. After a reset peers cannot write to
 * memory.
 */
static void test_reset_of_all_qps(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, &(QRdmaPath) { .timeout = 8 });
    RdmaSge sge = net_sge(&p.a, 0, 3000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 4000);

    for (unsigned n = 1; n < p.b.dev->max_qp - 2; n++) {
        QRdmaQp *a = qrdma_create_qp(p.a.pd, p.a.scq, p.a.rcq, RDMA_QPT_RC);
        QRdmaQp *b = qrdma_create_qp(p.b.pd, p.b.scq, p.b.rcq, RDMA_QPT_RC);

        qrdma_connect(a, b, NULL);
    }
    qrdma_mr_fill(p.a.mr, 0, 3000, 1);
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_SUCCESS);
    qvirtio_reset(&p.b.dev->pci->vdev);
    qrdma_mr_fill(p.a.mr, 0, 3000, 2);
    qrdma_post_send(p.a.qp, &wr);
    qrdma_settle(p.a.dev);
    net_clock_step(p.net, 100 * QRDMA_MS);
    qrdma_settle(p.b.dev);
    qrdma_mr_check(p.b.mr, 4000, 3000, 1);
}

const NetTest net_many_tests[] = {
    { "many/qps-share-a-cq", test_many_qps_share_a_cq },
    { "many/reset-of-all-qps", test_reset_of_all_qps },
    { "many/more-wqes-than-the-qp-takes", test_more_wqes_than_the_qp_takes },
    { "change/max-dest-rd-atomic-under-reads",
      test_max_dest_rd_atomic_under_reads },
    { "change/peer-destroys-its-qp-in-the-middle",
      test_peer_destroys_its_qp_in_the_middle },
    { "change/peer-is-stopped-for-a-while",
      test_peer_is_stopped_for_a_while, NET_TWO_HOSTS },
    { "change/gid-goes-away-under-a-connection",
      test_gid_goes_away_under_a_connection },
    {}
};
