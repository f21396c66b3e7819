/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices, one of which has faults that the user has added:
 * each kind of fault, and each way to select the affected work.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "fault-test.h"

/* Timeouts while the port is down are fewer than the retries. */
#define TIMEOUT_CODE 12
#define TIMEOUT_NS (4096ll << TIMEOUT_CODE)

static NetPair fault_pair(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);

    fault_remove_all(p.a.dev);
    qrdma_connect(p.a.qp, p.b.qp, &(QRdmaPath) { .timeout = TIMEOUT_CODE });
    qrdma_add_event_buffers(p.a.dev, 8);
    qrdma_add_event_buffers(p.b.dev, 8);
    return p;
}

static void reconnect(NetPair *p)
{
    qrdma_reconnect(p->a.qp, p->b.qp, &(QRdmaPath) { .timeout = TIMEOUT_CODE });
}

static void post(NetPair *p, RdmaWrOpcode opcode, uint64_t wr_id)
{
    RdmaSge sge = net_sge(&p->a, wr_id * 64, 64);
    RdmaSendWr wr = qrdma_rdma_wr(opcode, wr_id, &sge, p->b.mr, wr_id * 64);

    qrdma_mr_fill(p->a.mr, wr_id * 64, 64, wr_id);
    qrdma_post_send(p->a.qp, &wr);
}

static void post_write(NetPair *p, uint64_t wr_id)
{
    post(p, RDMA_WR_RDMA_WRITE, wr_id);
}

static void expect_state(QRdmaQp *qp, RdmaQpState state)
{
    g_assert_cmpint(qrdma_qp_state(qp), ==, state);
}

/* Check traffic, which must be as without faults. */
static void check_traffic(NetPair *p)
{
    net_post_recv(&p->b, 77, 0, 64);
    post_write(p, 20);
    post(p, RDMA_WR_SEND, 21);
    qrdma_expect(p->a.scq, 20, RDMA_WC_SUCCESS);
    qrdma_expect(p->a.scq, 21, RDMA_WC_SUCCESS);
    qrdma_expect(p->b.rcq, 77, RDMA_WC_SUCCESS);
    qrdma_mr_check(p->b.mr, 20 * 64, 64, 20);
}

/* Work requests that fail */

static void test_completion_error(NetKind kind)
{
    NetPair p = fault_pair(kind);

    qrdma_mr_fill(p.b.mr, 0, 1024, 99);
    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-error', 'qpn': %u, "
              "'opcode': 'rdma-write', 'after': 1, "
              "'status': 'retry-exc-err'", p.a.qp->qpn);
    fault_expect(p.a.dev, "f", 0, 0, true);
    for (int i = 1; i <= 3; i++) {
        post_write(&p, i);
    }
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    qrdma_expect(p.a.scq, 2, RDMA_WC_RETRY_EXC_ERR);
    qrdma_expect(p.a.scq, 3, RDMA_WC_WR_FLUSH_ERR);
    expect_state(p.a.qp, RDMA_QPS_ERR);
    qrdma_mr_check(p.b.mr, 64, 64, 1);
    /* Requests that failed were not executed. */
    for (int i = 2; i <= 3; i++) {
        uint8_t was[64], is[64];

        qrdma_mr_read(p.b.mr, i * 64, is, sizeof(is));
        qrdma_mr_read(p.a.mr, i * 64, was, sizeof(was));
        g_assert_cmpint(memcmp(is, was, sizeof(is)), !=, 0);
    }
    fault_expect(p.a.dev, "f", 2, 1, false);
    reconnect(&p);
    check_traffic(&p);
}

static void test_each_status(NetKind kind)
{
    static const struct {
        const char *name;
        RdmaWcStatus status;
    } all[] = {
        { "loc-len-err", RDMA_WC_LOC_LEN_ERR },
        { "loc-qp-op-err", RDMA_WC_LOC_QP_OP_ERR },
        { "loc-prot-err", RDMA_WC_LOC_PROT_ERR },
        { "mw-bind-err", RDMA_WC_MW_BIND_ERR },
        { "bad-resp-err", RDMA_WC_BAD_RESP_ERR },
        { "loc-access-err", RDMA_WC_LOC_ACCESS_ERR },
        { "rem-inv-req-err", RDMA_WC_REM_INV_REQ_ERR },
        { "rem-access-err", RDMA_WC_REM_ACCESS_ERR },
        { "rem-op-err", RDMA_WC_REM_OP_ERR },
        { "retry-exc-err", RDMA_WC_RETRY_EXC_ERR },
        { "rnr-retry-exc-err", RDMA_WC_RNR_RETRY_EXC_ERR },
        { "rem-abort-err", RDMA_WC_REM_ABORT_ERR },
        { "fatal-err", RDMA_WC_FATAL_ERR },
        { "resp-timeout-err", RDMA_WC_RESP_TIMEOUT_ERR },
        { "general-err", RDMA_WC_GENERAL_ERR },
    };
    NetPair p = fault_pair(kind);

    for (int i = 0; i < ARRAY_SIZE(all); i++) {
        fault_add(p.a.dev, "'id': 'f%d', 'kind': 'completion-error', "
                  "'status': '%s'", i, all[i].name);
        post_write(&p, 1);
        qrdma_expect(p.a.scq, 1, all[i].status);
        reconnect(&p);
    }
}

/* The peer gets an error, as for any receive that fails. */
static void test_receive_error(NetKind kind)
{
    NetPair p = fault_pair(kind);
    RdmaSge sge = net_sge(&p.b, 0, 64);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 5, &sge);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-error', "
              "'opcode': 'recv', 'after': 1, 'status': 'loc-prot-err'");
    net_post_recv(&p.a, 1, 0, 64);
    net_post_recv(&p.a, 2, 0, 64);
    qrdma_post_expect(p.b.qp, wr, RDMA_WC_SUCCESS);
    qrdma_expect(p.a.rcq, 1, RDMA_WC_SUCCESS);
    qrdma_post_expect(p.b.qp, wr, RDMA_WC_REM_OP_ERR);
    qrdma_expect(p.a.rcq, 2, RDMA_WC_LOC_PROT_ERR);
    expect_state(p.a.qp, RDMA_QPS_ERR);
}

static void test_local_access(NetKind kind)
{
    NetPair p = fault_pair(kind);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 5, NULL);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'local-access', 'after': 1");
    post_write(&p, 1);
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    post_write(&p, 2);
    qrdma_expect(p.a.scq, 2, RDMA_WC_LOC_PROT_ERR);
    reconnect(&p);
    fault_add(p.a.dev, "'id': 'r', 'kind': 'local-access', "
              "'opcode': 'recv'");
    net_post_recv(&p.a, 3, 0, 64);
    wr.sg_list = &(RdmaSge) { p.b.mr->iova, 64, p.b.mr->lkey };
    wr.num_sge = 1;
    qrdma_post_expect(p.b.qp, wr, RDMA_WC_REM_OP_ERR);
    qrdma_expect(p.a.rcq, 3, RDMA_WC_LOC_PROT_ERR);
}

/* The request is on the wire: the peer's QP is in error, too. */
static void test_remote_access(NetKind kind)
{
    static const RdmaWrOpcode opcodes[] = {
        RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ,
        RDMA_WR_RDMA_WRITE_WITH_IMM,
    };
    NetPair p = fault_pair(kind);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'remote-access', 'times': 0");
    for (int i = 0; i < ARRAY_SIZE(opcodes); i++) {
        /* A send has no key: it is not matched. */
        net_post_recv(&p.b, 7, 0, 64);
        post(&p, RDMA_WR_SEND, 8);
        qrdma_expect(p.a.scq, 8, RDMA_WC_SUCCESS);
        qrdma_expect(p.b.rcq, 7, RDMA_WC_SUCCESS);
        net_post_recv(&p.b, 7, 0, 64);
        post(&p, opcodes[i], 1);
        qrdma_expect(p.a.scq, 1, RDMA_WC_REM_ACCESS_ERR);
        qrdma_expect_event(p.b.dev, RDMA_EVENT_QP_ACCESS_ERR, p.b.qp->qpn);
        qrdma_expect(p.b.rcq, 7, RDMA_WC_WR_FLUSH_ERR);
        fault_expect(p.a.dev, "f", i + 1, i + 1, true);
        reconnect(&p);
    }
}

static void test_fatal(NetKind kind)
{
    NetPair p = fault_pair(kind);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'qp-fatal', 'qpn': %u, "
              "'after': 1", p.a.qp->qpn);
    net_post_recv(&p.a, 9, 0, 64);
    post_write(&p, 1);
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    post_write(&p, 2);
    qrdma_expect_event(p.a.dev, RDMA_EVENT_QP_FATAL, p.a.qp->qpn);
    qrdma_expect(p.a.scq, 2, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p.a.rcq, 9, RDMA_WC_WR_FLUSH_ERR);
    expect_state(p.a.qp, RDMA_QPS_ERR);
    fault_expect(p.a.dev, "f", 2, 1, false);
    reconnect(&p);
    check_traffic(&p);
}

/* Queue pairs that are stuck */

static void stick(NetPair *p, const char *more)
{
    fault_add(p->a.dev, "'id': 'f', 'kind': 'qp-stuck', 'qpn': %u, "
              "'after': 1%s", p->a.qp->qpn, more);
    for (int i = 1; i <= 3; i++) {
        post_write(p, i);
    }
    qrdma_expect(p->a.scq, 1, RDMA_WC_SUCCESS);
    qrdma_expect_none(p->a.scq);
    fault_expect(p->a.dev, "f", 2, 1, true);
}

static void expect_unstuck(NetPair *p)
{
    qrdma_expect(p->a.scq, 2, RDMA_WC_SUCCESS);
    qrdma_expect(p->a.scq, 3, RDMA_WC_SUCCESS);
    qrdma_mr_check(p->b.mr, 3 * 64, 64, 3);
}

static void test_stuck_until_removed(NetKind kind)
{
    NetPair p = fault_pair(kind);

    stick(&p, "");
    net_clock_step(p.net, 3600000 * QRDMA_MS);
    qrdma_expect_none(p.a.scq);
    /* The stuck queue pair still receives. */
    net_post_recv(&p.a, 9, 0, 64);
    qrdma_post(p.b.qp, qrdma_wr(RDMA_WR_SEND, 8, NULL));
    qrdma_expect(p.a.rcq, 9, RDMA_WC_SUCCESS);
    qrdma_expect(p.b.scq, 8, RDMA_WC_SUCCESS);
    fault_remove(p.a.dev, "f");
    expect_unstuck(&p);
}

static void test_stuck_for_a_time(NetKind kind)
{
    NetPair p = fault_pair(kind);

    stick(&p, ", 'duration': 1000");
    net_clock_step(p.net, 999 * QRDMA_MS);
    qrdma_expect_none(p.a.scq);
    net_clock_step(p.net, QRDMA_MS);
    expect_unstuck(&p);
    fault_expect(p.a.dev, "f", 2, 1, false);
    check_traffic(&p);
}

/* In ERR work is flushed, because drivers wait for the flush. */
static void test_stuck_is_flushed(NetKind kind)
{
    NetPair p = fault_pair(kind);

    stick(&p, "");
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_ERR));
    qrdma_expect(p.a.scq, 2, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p.a.scq, 3, RDMA_WC_WR_FLUSH_ERR);
    reconnect(&p);
    check_traffic(&p);
}

static void test_stuck_by_peers_error(NetKind kind)
{
    NetPair p = fault_pair(kind);
    RdmaSge sge = net_sge(&p.b, 0, 8);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 4, &sge, p.a.mr, 0);

    stick(&p, "");
    wr.wr.rdma.rkey ^= 1;
    qrdma_post_expect(p.b.qp, wr, RDMA_WC_REM_ACCESS_ERR);
    qrdma_expect(p.a.scq, 2, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p.a.scq, 3, RDMA_WC_WR_FLUSH_ERR);
}

static void test_stuck_is_reset(NetKind kind)
{
    NetPair p = fault_pair(kind);

    stick(&p, "");
    reconnect(&p);
    qrdma_expect_none(p.a.scq);
    fault_expect(p.a.dev, "f", 2, 1, false);
    check_traffic(&p);
    fault_remove(p.a.dev, "f");
    stick(&p, "");
    assert_ok(qrdma_destroy_qp(p.a.qp));
    fault_expect(p.a.dev, "f", 2, 1, false);
}

/* Completions */

static void test_overrun(NetKind kind)
{
    NetPair p = fault_pair(kind);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'cq-overrun', "
              "'opcode': 'rdma-read'");
    post_write(&p, 1);
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    post(&p, RDMA_WR_RDMA_READ, 2);
    qrdma_expect_event(p.a.dev, RDMA_EVENT_CQ_ERR, p.a.scq->cqn);
    qrdma_expect_event(p.a.dev, RDMA_EVENT_QP_FATAL, p.a.qp->qpn);
    qrdma_expect_none(p.a.scq);
    expect_state(p.a.qp, RDMA_QPS_ERR);
    fault_expect(p.a.dev, "f", 1, 1, false);
}

static void test_delay(NetKind kind)
{
    NetPair p = fault_pair(kind);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-delay', "
              "'opcode': 'rdma-write', 'delay': 100");
    post_write(&p, 1);
    post(&p, RDMA_WR_RDMA_READ, 2);
    /* The data is there, and other work queues go on. */
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "f") == 1);
    net_post_recv(&p.a, 9, 0, 64);
    qrdma_post(p.b.qp, qrdma_wr(RDMA_WR_SEND, 8, NULL));
    qrdma_expect(p.a.rcq, 9, RDMA_WC_SUCCESS);
    qrdma_mr_check(p.b.mr, 64, 64, 1);
    net_clock_step(p.net, 99 * QRDMA_MS);
    qrdma_expect_none(p.a.scq);
    net_clock_step(p.net, QRDMA_MS);
    /* Completions of one work queue stay in order. */
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    qrdma_expect(p.a.scq, 2, RDMA_WC_SUCCESS);
    check_traffic(&p);
}

static void hold_one(NetPair *p)
{
    fault_add(p->a.dev, "'id': 'f', 'kind': 'completion-delay', "
              "'opcode': 'rdma-write', 'delay': 600000");
    post_write(p, 1);
    qrdma_wait_until(p->a.dev, fault_hits(p->a.dev, "f") == 1);
}

static void test_delay_ends_in_err(NetKind kind)
{
    NetPair p = fault_pair(kind);

    hold_one(&p);
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_ERR));
    post_write(&p, 2);
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    qrdma_expect(p.a.scq, 2, RDMA_WC_WR_FLUSH_ERR);
    fault_remove(p.a.dev, "f");
    reconnect(&p);
    hold_one(&p);
    reconnect(&p);
    net_clock_step(p.net, 600000 * QRDMA_MS);
    qrdma_expect_none(p.a.scq);
    check_traffic(&p);
    fault_remove(p.a.dev, "f");
    hold_one(&p);
    assert_ok(qrdma_destroy_qp(p.a.qp));
    assert_ok(qrdma_destroy_cq(p.a.scq));
    net_clock_step(p.net, 600000 * QRDMA_MS);
}

static void hold_writes(NetPair *p, uint64_t first, uint64_t last)
{
    RdmaSge sge = net_sge(&p->a, 0, 64);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 0, &sge, p->b.mr, 0);

    for (wr.wr_id = first; wr.wr_id <= last; wr.wr_id++) {
        qrdma_post_send(p->a.qp, &wr);
        qrdma_wait_until(p->a.dev, fault_hits(p->a.dev, "f") == wr.wr_id);
    }
}

static void expect_writes(NetPair *p, uint64_t first, uint64_t last)
{
    qrdma_expect_many(p->a.scq, first, last - first + 1, RDMA_WC_SUCCESS);
}

/*
 * The device holds at most as many completions as the CQ has places, and writes
 * the oldest when another one comes. It writes all in order when their delay
 * ends, or before flushed completions.
 */
static void test_delay_of_many(NetKind kind)
{
    const int places = 64;
    NetPair p = fault_pair(kind);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-delay', 'times': 0, "
              "'opcode': 'rdma-write', 'delay': 600000");
    hold_writes(&p, 1, places + 6);
    expect_writes(&p, 1, 6);
    qrdma_expect_none(p.a.scq);
    net_clock_step(p.net, 600000 * QRDMA_MS);
    expect_writes(&p, 7, places + 6);
    hold_writes(&p, places + 7, places + 16);
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_ERR));
    post_write(&p, 1);
    expect_writes(&p, places + 7, places + 16);
    qrdma_expect(p.a.scq, 1, RDMA_WC_WR_FLUSH_ERR);
}

/* Connect a QP to that of @b. Its sends and receives complete in one CQ. */
static QRdmaQp *qp_with_one_cq(NetPair *p)
{
    QRdmaQp *qp = qrdma_create_qp(p->a.pd, p->a.scq, p->a.scq, RDMA_QPT_RC);

    assert_ok(qrdma_modify_qp_state(p->b.qp, RDMA_QPS_RESET));
    qrdma_connect(qp, p->b.qp, NULL);
    return qp;
}

/* A response overtakes the completion of its request. */
static void test_reorder(NetKind kind)
{
    NetPair p = fault_pair(kind);
    QRdmaQp *qp = qp_with_one_cq(&p);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, NULL);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-reorder', "
              "'opcode': 'send', 'delay': 1000");
    qrdma_recv(qp, 2, NULL);
    net_post_recv(&p.b, 3, 0, 64);
    qrdma_post_send(qp, &wr);
    qrdma_expect(p.b.rcq, 3, RDMA_WC_SUCCESS);
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "f") == 1);
    qrdma_expect_none(p.a.scq);
    qrdma_post_send(p.b.qp, &wr);
    qrdma_expect_wc(p.a.scq, 2, RDMA_WC_RECV, NULL);
    qrdma_expect_wc(p.a.scq, 1, RDMA_WC_SEND, NULL);
    /* A completion that waits for another one does not wait for ever. */
    fault_remove(p.a.dev, "f");
    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-reorder', "
              "'opcode': 'send', 'delay': 1000");
    net_post_recv(&p.b, 3, 0, 64);
    qrdma_post_send(qp, &wr);
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "f") == 1);
    qrdma_expect_none(p.a.scq);
    net_clock_step(p.net, 1000 * QRDMA_MS);
    qrdma_expect_wc(p.a.scq, 1, RDMA_WC_SEND, NULL);
}

/*
 * A reordered completion comes after the next one, even if a delay holds that
 * one.
 */
static void test_reorder_and_delay(NetKind kind)
{
    NetPair p = fault_pair(kind);
    QRdmaQp *qp = qp_with_one_cq(&p);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, NULL);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-reorder', "
              "'opcode': 'send', 'delay': 600000");
    fault_add(p.a.dev, "'id': 'g', 'kind': 'completion-delay', "
              "'opcode': 'recv', 'delay': 1000");
    qrdma_recv(qp, 2, NULL);
    net_post_recv(&p.b, 3, 0, 64);
    qrdma_post_send(qp, &wr);
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "f") == 1);
    qrdma_post_send(p.b.qp, &wr);
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "g") == 1);
    qrdma_expect_none(p.a.scq);
    net_clock_step(p.net, 1000 * QRDMA_MS);
    qrdma_expect_wc(p.a.scq, 2, RDMA_WC_RECV, NULL);
    qrdma_expect_wc(p.a.scq, 1, RDMA_WC_SEND, NULL);
}

static void test_reorder_ends_for_all(NetKind kind)
{
    NetPair p = fault_pair(kind);
    QRdmaQp *qp = qp_with_one_cq(&p);
    const int n = 8;

    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-reorder', "
              "'opcode': 'send', 'times': 0, 'delay': 600000");
    for (int i = 0; i < n; i++) {
        net_post_recv(&p.b, i, 0, 64);
    }
    for (int i = 0; i < n; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_SEND, i, NULL));
    }
    qrdma_wait_until(p.a.dev, fault_hits(p.a.dev, "f") == n);
    qrdma_expect_none(p.a.scq);
    fault_remove(p.a.dev, "f");
    for (int i = 0; i < n; i++) {
        qrdma_expect_wc(p.a.scq, i, RDMA_WC_SEND, NULL);
    }
    net_post_recv(&p.b, n, 0, 64);
    qrdma_post(qp, qrdma_wr(RDMA_WR_SEND, n, NULL));
    qrdma_expect_wc(p.a.scq, n, RDMA_WC_SEND, NULL);
}

/* The port */

static void expect_port(NetEnd *e, RdmaPortState state)
{
    struct virtio_rdma_query_port_rsp port;

    assert_ok(qrdma_query_port(e->dev, 1, &port));
    g_assert_cmpint(port.state, ==, state);
}

static void test_port_down(NetKind kind)
{
    NetPair p = fault_pair(kind);

    if (qrdma_ibdev()) {
        fault_refused(p.a.dev, "'id': 'f', 'kind': 'port-down'",
                      "rdma-verbs");
        return;
    }
    fault_add(p.a.dev, "'id': 'f', 'kind': 'port-down', 'duration': 50");
    qrdma_expect_event(p.a.dev, RDMA_EVENT_PORT_ERR, 1);
    expect_port(&p.a, RDMA_PORT_DOWN);
    expect_port(&p.b, RDMA_PORT_ACTIVE);
    fault_refused(p.a.dev, "'id': 'g', 'kind': 'port-down'", "'f'");
    /* Lost frames are sent again. */
    post_write(&p, 1);
    net_clock_step(p.net, 2 * TIMEOUT_NS);
    qrdma_expect_none(p.a.scq);
    net_clock_step(p.net, 50 * QRDMA_MS - 2 * TIMEOUT_NS);
    qrdma_expect_event(p.a.dev, RDMA_EVENT_PORT_ACTIVE, 1);
    expect_port(&p.a, RDMA_PORT_ACTIVE);
    for (int i = 0; i < 200 && !qrdma_cq_has_cqe(p.a.scq); i++) {
        net_clock_step(p.net, TIMEOUT_NS);
        g_usleep(500);
    }
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    fault_remove(p.a.dev, "f");
    /* Until the user removes the fault */
    fault_add(p.a.dev, "'id': 'f', 'kind': 'port-down'");
    qrdma_expect_event(p.a.dev, RDMA_EVENT_PORT_ERR, 1);
    net_clock_step(p.net, 3600000 * QRDMA_MS);
    expect_port(&p.a, RDMA_PORT_DOWN);
    fault_remove(p.a.dev, "f");
    qrdma_expect_event(p.a.dev, RDMA_EVENT_PORT_ACTIVE, 1);
    check_traffic(&p);
}

/* Selection of the affected work */

static void expect_matches(NetPair *p, uint64_t matches, const char *selector)
{
    fault_add(p->a.dev, "'id': 'f', 'kind': 'completion-error', "
              "'status': 'fatal-err', 'after': 1000%s%s",
              *selector ? ", " : "", selector);
    net_post_recv(&p->b, 7, 0, 64);
    post_write(p, 1);
    post(p, RDMA_WR_RDMA_READ, 2);
    post(p, RDMA_WR_SEND, 3);
    qrdma_expect_many(p->a.scq, 1, 3, RDMA_WC_SUCCESS);
    qrdma_expect(p->b.rcq, 7, RDMA_WC_SUCCESS);
    fault_expect(p->a.dev, "f", matches, 0, true);
    fault_remove(p->a.dev, "f");
}

static char *gid_of(const QRdma *d)
{
    char text[INET6_ADDRSTRLEN];

    return g_strdup(inet_ntop(AF_INET6, d->gid[1], text, sizeof(text)));
}

static void test_selectors(NetKind kind)
{
    NetPair p = fault_pair(kind);
    g_autofree char *gid = gid_of(p.b.dev);
    g_autofree char *ipv4 = g_strdup_printf(
        "'dgid': '%u.%u.%u.%u'", p.b.dev->gid[1][12], p.b.dev->gid[1][13],
        p.b.dev->gid[1][14], p.b.dev->gid[1][15]);
    g_autofree char *yes = g_strdup_printf("'dgid': '%s', 'dest-qpn': %u", gid,
                                           p.b.qp->wire_qpn);
    g_autofree char *other_peer = g_strdup_printf(
        "'dgid': '%s', 'dest-qpn': %u", gid, p.b.qp->wire_qpn ^ 1);
    g_autofree char *other_qp = g_strdup_printf("'qpn': %u",
                                                p.a.qp->qpn ^ 1);
    g_autofree char *all = g_strdup_printf("'qpn': %u, %s, 'opcode': "
                                           "'rdma-read'", p.a.qp->qpn, yes);

    qrdma_reconnect(p.a.qp, p.b.qp, &(QRdmaPath) { .gid_index = 1 });
    expect_matches(&p, 3, "");
    expect_matches(&p, 1, "'opcode': 'send'");
    expect_matches(&p, 0, "'opcode': 'comp-swap'");
    expect_matches(&p, 0, other_qp);
    expect_matches(&p, 3, ipv4);
    expect_matches(&p, 3, yes);
    expect_matches(&p, 0, other_peer);
    expect_matches(&p, 0, "'dgid': 'fe80::1'");
    expect_matches(&p, 1, all);
    /* Receives match only with the opcode "recv": here no receive completes */
    expect_matches(&p, 0, "'opcode': 'recv'");
}

static void test_datagrams_by_peer(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, &sge);
    uint32_t dest = p.b.qp->wire_qpn;

    fault_remove_all(p.a.dev);
    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-error', "
              "'status': 'general-err', 'dest-qpn': %u", dest);
    wr.wr.ud.remote_qkey = QRDMA_QKEY;
    wr.wr.ud.av = qrdma_av(p.b.dev, 1);
    wr.wr.ud.remote_qpn = dest ^ 1;
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_SUCCESS);
    wr.wr.ud.remote_qpn = dest;
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_GENERAL_ERR);
    /* A datagram that cannot be sent does not end its QP (IBTA 10.3.1). */
    expect_state(p.a.qp, RDMA_QPS_SQE);
}

/* A fault affects QP 1 only by number, because RDMA CM needs QP 1. */
static void test_gsi(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_GSI, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, &sge);

    fault_remove_all(p.a.dev);
    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-error', "
              "'status': 'general-err'");
    wr.wr.ud.remote_qkey = RDMA_GSI_QKEY;
    wr.wr.ud.av = qrdma_av(p.b.dev, 1);
    wr.wr.ud.remote_qpn = RDMA_QPN_GSI;
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_SUCCESS);
    fault_expect(p.a.dev, "f", 0, 0, true);
    fault_add(p.a.dev, "'id': 'g', 'kind': 'completion-error', "
              "'status': 'general-err', 'qpn': 1");
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_GENERAL_ERR);
    fault_remove_all(p.a.dev);
}

static void test_times(NetKind kind)
{
    NetPair p = fault_pair(kind);

    fault_add(p.a.dev, "'id': 'f', 'kind': 'completion-error', "
              "'status': 'rem-op-err', 'after': 2, 'times': 3");
    for (int i = 1; i <= 2; i++) {
        post_write(&p, i);
        qrdma_expect(p.a.scq, i, RDMA_WC_SUCCESS);
    }
    for (int i = 1; i <= 3; i++) {
        fault_expect(p.a.dev, "f", i + 1, i - 1, true);
        post_write(&p, i);
        qrdma_expect(p.a.scq, i, RDMA_WC_REM_OP_ERR);
        reconnect(&p);
    }
    fault_expect(p.a.dev, "f", 5, 3, false);
    check_traffic(&p);
    fault_expect(p.a.dev, "f", 5, 3, false);
}

/* Returns a mask of the writes, out of 64, that a random sequence fails. */
static uint64_t draw(NetPair *p, unsigned seed)
{
    uint64_t pattern = 0;

    fault_add(p->a.dev, "'id': 'f', 'kind': 'completion-delay', 'delay': 1, "
              "'times': 0, 'probability': 0.5, 'seed': %u", seed);
    for (int i = 0; i < 64; i++) {
        uint64_t before = fault_hits(p->a.dev, "f");

        post_write(p, 1);
        qrdma_wait_until(p->a.dev, fault_matches(p->a.dev, "f") == i + 1);
        if (fault_hits(p->a.dev, "f") != before) {
            pattern |= 1ull << i;
            net_clock_step(p->net, QRDMA_MS);
        }
        qrdma_expect(p->a.scq, 1, RDMA_WC_SUCCESS);
    }
    fault_remove(p->a.dev, "f");
    return pattern;
}

static void test_probability_repeats(NetKind kind)
{
    NetPair p = fault_pair(kind);
    uint64_t one = draw(&p, 1);

    g_assert_cmpint(ctpop64(one), >=, 16);
    g_assert_cmpint(ctpop64(one), <=, 48);
    g_assert_cmphex(draw(&p, 1), ==, one);
    g_assert_cmphex(draw(&p, 2), !=, one);
}

static void test_first_of_several(NetKind kind)
{
    NetPair p = fault_pair(kind);

    fault_add(p.a.dev, "'id': 'f1', 'kind': 'completion-error', "
              "'status': 'rem-op-err', 'opcode': 'rdma-read'");
    fault_add(p.a.dev, "'id': 'f2', 'kind': 'completion-error', "
              "'status': 'rem-inv-req-err'");
    fault_add(p.a.dev, "'id': 'f3', 'kind': 'completion-error', "
              "'status': 'bad-resp-err'");
    post_write(&p, 1);
    qrdma_expect(p.a.scq, 1, RDMA_WC_REM_INV_REQ_ERR);
    reconnect(&p);
    post_write(&p, 1);
    qrdma_expect(p.a.scq, 1, RDMA_WC_BAD_RESP_ERR);
    fault_expect(p.a.dev, "f1", 0, 0, true);
    fault_expect(p.a.dev, "f2", 1, 1, false);
    fault_expect(p.a.dev, "f3", 1, 1, false);
}

const NetTest net_fault_tests[] = {
    { "fault/completion-error", test_completion_error },
    { "fault/each-status", test_each_status },
    { "fault/receive-error", test_receive_error },
    { "fault/local-access", test_local_access },
    { "fault/remote-access", test_remote_access },
    { "fault/fatal", test_fatal },
    { "fault/stuck-until-removed", test_stuck_until_removed },
    { "fault/stuck-for-a-time", test_stuck_for_a_time },
    { "fault/stuck-is-flushed", test_stuck_is_flushed },
    { "fault/stuck-by-peers-error", test_stuck_by_peers_error },
    { "fault/stuck-is-reset", test_stuck_is_reset },
    { "fault/overrun", test_overrun },
    { "fault/delay", test_delay },
    { "fault/delay-ends-in-err", test_delay_ends_in_err },
    { "fault/delay-of-many", test_delay_of_many },
    { "fault/reorder", test_reorder },
    { "fault/reorder-and-delay", test_reorder_and_delay },
    { "fault/reorder-ends-for-all", test_reorder_ends_for_all },
    { "fault/port-down", test_port_down },
    { "fault/selectors", test_selectors },
    { "fault/datagrams-by-peer", test_datagrams_by_peer },
    { "gsi/faults-of-others", test_gsi },
    { "fault/times", test_times },
    { "fault/probability-repeats", test_probability_repeats },
    { "fault/first-of-several", test_first_of_several },
    {}
};
