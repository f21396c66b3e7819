/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: receivers that are not ready, peers that are
 * gone, links that lose frames. Time is the virtual clock's, so the number
 * of timeouts is exact.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "net-test.h"

/* Local ACK timeout (IBTA 9.7.6.1.3): 4.096 us * 2^code */
#define TIMEOUT_CODE 8
#define TIMEOUT_NS (4096ll << TIMEOUT_CODE)

/* RNR NAK timer code 14 (IBTA table 45): 1 ms */
#define RNR_CODE 14
#define RNR_NS (1 * QRDMA_MS)

/* Step time in small steps, so that both sides see what the other sends. */
static void pass_time(Net *net, int64_t ns)
{
    int64_t step = MAX(ns / 16, 1);

    for (int64_t done = 0; done < ns; done += step) {
        net_clock_step(net, MIN(step, ns - done));
        g_usleep(500);
    }
}

/*
 * Step until @cq has a completion. How much time that takes depends on how
 * quickly the two processes answer each other between the steps.
 */
static void step_until_completion(Net *net, QRdmaCq *cq, int64_t period)
{
    for (int i = 0; i < 200; i++) {
        if (qrdma_cq_has_cqe(cq)) {
            return;
        }
        pass_time(net, period);
    }
    g_assert_not_reached();
}

static void test_rnr_is_waited_for(NetKind kind)
{
    QRdmaPath path = { .min_rnr_timer = RNR_CODE, .timeout = 20 };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    RdmaSge sge = net_sge(&p.a, 0, 3000);

    qrdma_mr_fill(p.a.mr, 0, 3000, 0x33);
    qrdma_post(p.a.qp, qrdma_wr(RDMA_WR_SEND, 1, &sge));
    /* long, and still not given up: rnr_retry 7 is endless */
    pass_time(p.net, 20 * RNR_NS);
    qrdma_expect_none(p.a.scq);
    /* A receive ends the retries: no time passes from here on. */
    net_post_recv(&p.b, 2, 0, 3000);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, NULL);
    qrdma_expect_wc(p.a.scq, 1, RDMA_WC_SEND, NULL);
    qrdma_mr_check(p.b.mr, 0, 3000, 0x33);
    qrdma_expect_none(p.b.rcq);
}

static NetPair pair_with_counters(NetKind kind)
{
    QRdmaPath path = { .min_rnr_timer = RNR_CODE, .timeout = 20 };
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);

    qrdma_connect(p.a.qp, p.b.qp, &path);
    return p;
}

static uint64_t naks_received(NetPair *p)
{
    qrdma_settle(p->b.dev);
    qrdma_settle(p->a.dev);
    return qrdma_counter(p->a.dev, VIRTIO_RDMA_RNR_NAKS_RECEIVED);
}

static void test_rnr_timer_is_honoured(NetKind kind)
{
    NetPair p = pair_with_counters(kind);

    qrdma_post(p.a.qp, qrdma_wr(RDMA_WR_SEND, 1, NULL));
    qrdma_wait_until(p.a.dev, naks_received(&p) == 1);
    net_clock_step(p.net, RNR_NS - 1000);
    g_assert_cmpuint(naks_received(&p), ==, 1);
    pass_time(p.net, RNR_NS);
    g_assert_cmpuint(naks_received(&p), >, 1);
}

/*
 * The ACK of the first message reports that no receives are left. One more
 * message may be refused. The others wait for receives, and no time passes.
 */
static void test_slow_receiver_costs_no_naks(NetKind kind)
{
    NetPair p = pair_with_counters(kind);
    /* With rdma-verbs, the counter is that of the host's port. */
    uint64_t naks_before = naks_received(&p);

    net_post_recv(&p.b, 0, 0, 0);
    for (int i = 0; i < 10; i++) {
        if (i == 1) {
            qrdma_expect_wc(p.a.scq, 0, RDMA_WC_SEND, NULL);
        }
        qrdma_post(p.a.qp, qrdma_wr(RDMA_WR_SEND, i, NULL));
    }
    qrdma_expect_wc(p.b.rcq, 0, RDMA_WC_RECV, NULL);
    for (int i = 1; i < 10; i++) {
        qrdma_settle(p.a.dev);
        qrdma_expect_none(p.a.scq);
        net_post_recv(&p.b, i, 0, 0);
        qrdma_expect_wc(p.b.rcq, i, RDMA_WC_RECV, NULL);
        qrdma_expect_wc(p.a.scq, i, RDMA_WC_SEND, NULL);
    }
    g_assert_cmpuint(naks_received(&p) - naks_before, <=, 1);
}

static void test_rnr_retry_runs_out(NetKind kind)
{
    for (int retries = 0; retries < 7; retries += 3) {
        QRdmaPath path = {
            .min_rnr_timer = RNR_CODE, .timeout = 20, .retry_cnt = 7,
            .rnr_retry = retries, .no_retry = true,
        };
        NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
        RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, NULL);

        qrdma_post_send(p.a.qp, &wr);
        wr.wr_id = 2;
        qrdma_post_send(p.a.qp, &wr);
        if (retries) {
            qrdma_settle(p.a.dev);
            pass_time(p.net, retries * RNR_NS - 1000);
            qrdma_expect_none(p.a.scq);
        }
        step_until_completion(p.net, p.a.scq, RNR_NS);
        qrdma_expect(p.a.scq, 1, RDMA_WC_RNR_RETRY_EXC_ERR);
        qrdma_expect(p.a.scq, 2, RDMA_WC_WR_FLUSH_ERR);
    }
}

/* The peer's QP is gone, so there are no answers. */
static void test_retries_run_out(NetKind kind)
{
    for (int retries = 0; retries <= 7; retries += 7) {
        QRdmaPath path = {
            .timeout = TIMEOUT_CODE, .retry_cnt = retries, .rnr_retry = 7,
            .no_retry = true,
        };
        NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
        RdmaSge sge = net_sge(&p.a, 0, 3000);
        RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0);

        assert_ok(qrdma_destroy_qp(p.b.qp));
        qrdma_post_send(p.a.qp, &wr);
        wr.wr_id = 2;
        qrdma_post_send(p.a.qp, &wr);
        net_post_recv(&p.a, 3, 0, 8);
        qrdma_settle(p.a.dev);
        /* one timeout for each attempt, 1 + retry_cnt in all */
        pass_time(p.net, (1 + retries) * TIMEOUT_NS - 100000);
        qrdma_expect_none(p.a.scq);
        /* a timer may run up to four times as long */
        pass_time(p.net, 3 * (1 + retries) * TIMEOUT_NS + 200000);
        g_assert_true(qrdma_cq_has_cqe(p.a.scq));
        qrdma_expect(p.a.scq, 1, RDMA_WC_RETRY_EXC_ERR);
        qrdma_expect(p.a.scq, 2, RDMA_WC_WR_FLUSH_ERR);
        qrdma_expect(p.a.rcq, 3, RDMA_WC_WR_FLUSH_ERR);
    }
}

static void test_timeout_0_is_endless(NetKind kind)
{
    QRdmaPath path = { .timeout = TIMEOUT_CODE };
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_SQD };

    qrdma_connect(p.a.qp, p.b.qp, &path);
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_SQD));
    attr.timeout = 0;
    assert_ok(qrdma_modify_qp(p.a.qp, RDMA_QP_STATE | RDMA_QP_TIMEOUT,
                              &attr));
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_RTS));
    assert_ok(qrdma_destroy_qp(p.b.qp));
    qrdma_post(p.a.qp, qrdma_wr(RDMA_WR_SEND, 1, NULL));
    pass_time(p.net, 10000 * QRDMA_MS);
    qrdma_expect_none(p.a.scq);
}

/* Requests that wait while the link is down are sent when it is up again. */
static void test_link_down_and_up(NetKind kind)
{
    QRdmaPath path = { .timeout = TIMEOUT_CODE };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    QTestState *qts = p.a.dev->host->qts;
    RdmaSge sge = net_sge(&p.a, 0, 3000);

    qrdma_mr_fill(p.a.mr, 0, 3000, 0x21);
    qtest_qmp_assert_success(qts, "{'execute': 'set_link', "
                             "'arguments': {'name': 'n0', 'up': false}}");
    qrdma_post(p.a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0));
    pass_time(p.net, 2 * TIMEOUT_NS);
    qrdma_expect_none(p.a.scq);
    qtest_qmp_assert_success(qts, "{'execute': 'set_link', "
                             "'arguments': {'name': 'n0', 'up': true}}");
    step_until_completion(p.net, p.a.scq, TIMEOUT_NS / 4);
    qrdma_expect_wc(p.a.scq, 1, RDMA_WC_RDMA_WRITE, NULL);
    qrdma_mr_check(p.b.mr, 0, 3000, 0x21);
}

/* Progress of a connection when the other QEMU dies */
typedef enum Stage {
    UNCONNECTED,
    INITIALIZED,
    READY_TO_RECEIVE,
    READY,
    SENDING,                        /* the peer has no receives */
    READING,
    AFTER_TRAFFIC,
    STAGES,
} Stage;

#define TRIED 8

static void post_some(NetPair *p, Stage stage)
{
    RdmaSge sge = net_sge(&p->a, 0, 50000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 0, &sge, p->b.mr, 0);

    if (stage == SENDING) {
        wr = qrdma_wr(RDMA_WR_SEND, 0, &sge);
    } else if (stage == READING) {
        wr.opcode = RDMA_WR_RDMA_READ;
    }
    for (int i = 0; i < TRIED; i++) {
        wr.wr_id = 100 + i;
        qrdma_post_send(p->a.qp, &wr);
        net_post_recv(&p->a, 200 + i, 0, 8);
    }
}

static void connect_up_to(NetPair *p, const QRdmaPath *path, Stage stage)
{
    if (stage >= READY) {
        qrdma_connect(p->a.qp, p->b.qp, path);
    } else {
        if (stage >= INITIALIZED) {
            assert_ok(qrdma_modify_init(p->a.qp, RDMA_ACCESS_REMOTE));
            assert_ok(qrdma_modify_init(p->b.qp, RDMA_ACCESS_REMOTE));
        }
        if (stage >= READY_TO_RECEIVE) {
            assert_ok(qrdma_modify_rtr(p->a.qp, p->b.qp, path, 1));
        }
    }
    if (stage == SENDING || stage == READING) {
        /* The peer does not answer any more */
        qtest_qmp_assert_success(p->net->host[1]->qts, "{'execute': 'stop'}");
        post_some(p, stage);
    } else if (stage == AFTER_TRAFFIC) {
        post_some(p, stage);
        for (int i = 0; i < TRIED; i++) {
            qrdma_expect_wc(p->a.scq, 100 + i, RDMA_WC_RDMA_WRITE, NULL);
        }
    }
}

/* Do the steps that the dead peer cannot do any more. */
static void connect_the_rest(NetPair *p, const QRdmaPath *path, Stage stage)
{
    if (stage < INITIALIZED) {
        assert_ok(qrdma_modify_init(p->a.qp, RDMA_ACCESS_REMOTE));
    }
    if (stage < READY_TO_RECEIVE) {
        assert_ok(qrdma_modify_rtr(p->a.qp, p->b.qp, path, 1));
    }
    if (stage < READY) {
        assert_ok(qrdma_modify_rts(p->a.qp, path, 1));
    }
}

static void check_killed_peer(NetKind kind, Stage stage)
{
    QRdmaPath path = {
        .timeout = TIMEOUT_CODE, .retry_cnt = 3, .rnr_retry = 7,
        .min_rnr_timer = 1, .mtu = RDMA_MTU_1024,
    };
    Net *net = net_new(kind, "");
    NetPair p = net_pair_new(net, RDMA_QPT_RC);
    unsigned more = stage == AFTER_TRAFFIC ? TRIED : 0;
    QRdma far = *net->dev[1];
    QRdmaQp *loop;
    RdmaSge sge;
    RdmaSendWr wr;
    RdmaWc wc;

    connect_up_to(&p, &path, stage);
    qrdma_close(net->dev[1]);
    net->dev[1] = NULL;
    qrdma_host_kill(net->host[1]);
    net->host[1] = NULL;
    p.b.qp = &(QRdmaQp) { .dev = &far, .wire_qpn = 2 };
    p.b.mr = p.a.mr;
    connect_the_rest(&p, &path, stage);
    if (stage != SENDING && stage != READING) {
        post_some(&p, stage);
    }
    for (int i = 0; !qrdma_poll_cq(p.a.scq, &wc); i++) {
        g_assert_cmpint(i, <, 100);
        qtest_clock_step(net->host[0]->qts, TIMEOUT_NS);
        qrdma_settle(net->dev[0]);
    }
    g_assert_cmphex(wc.wr_id, ==, 100);
    g_assert_cmpint(wc.status, ==, RDMA_WC_RETRY_EXC_ERR);
    qrdma_expect_many(p.a.scq, 101, TRIED - 1, RDMA_WC_WR_FLUSH_ERR);
    for (int i = 0; i < TRIED + more; i++) {
        qrdma_expect(p.a.rcq, 200 + i % TRIED, RDMA_WC_WR_FLUSH_ERR);
    }

    loop = qrdma_create_loop(p.a.pd, p.a.scq, p.a.rcq);
    sge = net_sge(&p.a, 0, 5000);
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 7, &sge, p.a.mr, 60000);
    qrdma_mr_fill(p.a.mr, 0, 5000, 0x11);
    qrdma_post_send(loop, &wr);
    qrdma_expect_wc(p.a.scq, 7, RDMA_WC_RDMA_WRITE, &wc);
    qrdma_mr_check(p.a.mr, 60000, 5000, 0x11);
    net_free(net);
}

/* The surviving QEMU's device works on. */
static void test_peer_is_killed_at_each_stage(NetKind kind)
{
    for (Stage stage = UNCONNECTED; stage < STAGES; stage++) {
        check_killed_peer(kind, stage);
    }
}

/* The next completion, with as many timeouts as that takes. */
static void wait_lossy(Net *net, QRdmaCq *cq, RdmaWc *wc)
{
    for (int i = 0; i < 20000; i++) {
        if (qrdma_poll_cq(cq, wc)) {
            return;
        }
        if (i % 4 == 3) {
            net_clock_step(net, TIMEOUT_NS / 2);
        } else {
            g_usleep(50);
        }
    }
    g_assert_not_reached();
}

/*
 * Loss, duplication, reordering and corruption: data is intact, and each
 * completion comes once and in order.
 */
static void test_bad_link(NetKind kind)
{
    QRdmaPath path = { .timeout = TIMEOUT_CODE };
    Net *net = net_new(kind, "");
    NetPair p = net_pair_new(net, RDMA_QPT_RC);
    RdmaWc wc;

    qtest_qmp_assert_success(net->host[0]->qts, "{'execute': 'object-add', "
        "'arguments': {'qom-type': 'filter-impair', 'id': 'lossy', "
        "'netdev': 'n0', 'drop': 200, 'dup': 200, 'reorder': 200, "
        "'corrupt': 100, 'seed': 7}}");
    qrdma_connect(p.a.qp, p.b.qp, &path);
    for (int round = 0; round < 12; round++) {
        RdmaSge sge = net_sge(&p.a, 0, 20000);
        RdmaSge back = net_sge(&p.a, 60000, 20000);
        RdmaSge old = net_sge(&p.a, 90000, 8);
        uint64_t count = 0;
        RdmaSendWr wr;

        qrdma_mr_fill(p.a.mr, 0, 20000, round);
        net_post_recv(&p.b, round, 0, 20000);
        qrdma_post(p.a.qp, qrdma_wr(RDMA_WR_SEND, 1, &sge));
        qrdma_post(p.a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &sge, p.b.mr,
                                         30000));
        qrdma_post(p.a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_READ, 3, &back, p.b.mr,
                                         30000));
        wr = qrdma_rdma_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, 4, &old, p.b.mr,
                           100000);
        wr.wr.atomic.compare_add = 1;
        qrdma_post_send(p.a.qp, &wr);
        for (int i = 1; i <= 4; i++) {
            wait_lossy(net, p.a.scq, &wc);
            g_assert_cmphex(wc.wr_id, ==, i);
            g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
        }
        qrdma_expect_wc(p.b.rcq, round, RDMA_WC_RECV, &wc);
        qrdma_mr_check(p.b.mr, 0, 20000, round);
        qrdma_mr_check(p.b.mr, 30000, 20000, round);
        qrdma_mr_check(p.a.mr, 60000, 20000, round);
        qrdma_mr_read(p.b.mr, 100000, &count, 8);
        g_assert_cmpuint(le64_to_cpu(count), ==, round + 1);
    }
    qrdma_expect_none(p.a.scq);
    qrdma_expect_none(p.b.rcq);
    net_free(net);
}

const NetTest net_loss_tests[] = {
    { "loss/rnr-is-waited-for", test_rnr_is_waited_for },
    { "loss/rnr-timer-is-honoured", test_rnr_timer_is_honoured },
    { "loss/slow-receiver-costs-no-naks", test_slow_receiver_costs_no_naks },
    { "loss/rnr-retry-runs-out", test_rnr_retry_runs_out },
    { "loss/retries-run-out", test_retries_run_out },
    { "loss/timeout-0-is-endless", test_timeout_0_is_endless },
    { "loss/link-down-and-up", test_link_down_and_up },
    { "loss/killed-peer", test_peer_is_killed_at_each_stage, NET_TWO_HOSTS },
    { "loss/bad-link", test_bad_link },
    {}
};
