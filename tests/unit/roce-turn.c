/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The work that the engine does in one call. The rest follows in later calls,
 * whatever happens in between.
 */
#include <string.h>
#include "roce-link.h"

#define NRECV 64
#define NSEND 200
/* WQEs that the call which moves QPs to ERR may flush */
#define FEW 32
#define NQP 60
/* QPs that one call moves to ERR when their CQ fails */
#define FEW_QPS 32
/* Work of one roce_poll_tx(), without its last operation */
#define BUDGET (384 * 1024)

static LinkPair deep_pair(RdmaQpType type)
{
    LinkQpSpec spec = link_spec();

    spec.type = type;
    spec.cap.max_recv_wr = NRECV;
    spec.cap.max_send_wr = NSEND;
    return link_pair(&spec);
}

static void fill_recv(LinkPair *p)
{
    for (unsigned i = 0; i < NRECV; i++) {
        link_post_recv(p->a, p->aq, i, link_sge(p->amr, 0, 100));
    }
}

static unsigned flushed(LinkPair *p)
{
    return p->a->retired[p->aq][RDMA_RQ];
}

static void expect_flushed(LinkPair *p, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        link_expect(p->a, i, RDMA_WC_WR_FLUSH_ERR);
    }
}

static void test_err_flushes_few_at_once(void)
{
    LinkPair p = deep_pair(RDMA_QPT_RC);

    fill_recv(&p);
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    g_assert_cmpuint(flushed(&p), <=, FEW);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(flushed(&p), ==, NRECV);
    expect_flushed(&p, 0, NRECV);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    /* The next receive is flushed as soon as it is posted. */
    link_post_recv(p.a, p.aq, 5000, link_sge(p.amr, 0, 100));
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 5000, RDMA_WC_WR_FLUSH_ERR);
    link_pair_free(&p);
}

/* Requests in progress at the time of the error are flushed as well. */
static void test_flush_goes_on_after_migration(void)
{
    LinkPair p = deep_pair(RDMA_QPT_RC);

    fill_recv(&p);
    p.l->hold = true;
    for (unsigned i = 0; i < NSEND; i++) {
        link_pair_post(&p, i % 3 ? RDMA_WR_RDMA_WRITE : RDMA_WR_RDMA_READ,
                       10000 + i, 0, 3000);
    }
    link_pump(p.l);
    p.l->hold = false;
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    g_assert_cmpuint(p.a->retired[p.aq][RDMA_SQ], <=, FEW);
    link_move(p.a);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (unsigned i = 0; i < NSEND; i++) {
        link_expect(p.a, 10000 + i, RDMA_WC_WR_FLUSH_ERR);
    }
    expect_flushed(&p, 0, NRECV);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    link_pair_free(&p);
}

static void test_reset_during_a_flush(void)
{
    LinkPair p = deep_pair(RDMA_QPT_RC);
    unsigned n;

    fill_recv(&p);
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    n = link_wcs(p.a);
    g_assert_cmpuint(n, <=, FEW);
    link_modify(p.a, p.aq, RDMA_QPS_RESET);
    /* WRs that were not pulled stay with the consumer. */
    g_assert_cmpuint(flushed(&p), ==, n);
    g_assert_cmpuint(consumer_recvs(p.a->consumer, RDMA_RQ, p.aq), ==,
                     NRECV - n);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(link_wcs(p.a), ==, n);
    expect_flushed(&p, 0, n);
    link_pair_free(&p);
}

static void test_destroy_during_a_flush(void)
{
    LinkPair p = deep_pair(RDMA_QPT_RC);
    unsigned n;

    fill_recv(&p);
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    n = link_wcs(p.a);
    g_assert_cmpuint(n, <=, FEW);
    g_assert_cmpint(roce_qp_destroy(p.a->e, p.aq), ==, 0);
    link_pump(p.l);
    g_assert_cmpuint(link_wcs(p.a), ==, n);
    expect_flushed(&p, 0, n);
    link_pair_free(&p);
}

/*
 * Sends that were posted in SQE must not be sent after the transition to RTS.
 */
static void test_sqe_is_flushed_before_rts(void)
{
    LinkPair p = deep_pair(RDMA_QPT_UC);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr bad = link_wr(99, 0, &sge);
    uint64_t sent;

    link_post(p.a, p.aq, &bad);
    for (unsigned i = 1; i < NSEND; i++) {
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, i, 0, 100);
    }
    p.a->link->hold = true;
    link_pump(p.l);
    p.a->link->hold = false;
    sent = p.l->sent[0];
    while (link_state(p.a, p.aq) != RDMA_QPS_SQE) {
        link_pump(p.l);
    }
    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 0, RDMA_WC_LOC_QP_OP_ERR);
    expect_flushed(&p, 1, NSEND);
    g_assert_cmpuint(p.l->sent[0], ==, sent);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 100);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* Other QPs have their turns while one QP is flushed. */
static void test_flush_lets_others_send(void)
{
    LinkPair p = deep_pair(RDMA_QPT_RC);
    LinkQpSpec spec = link_spec();
    bool flush_ended = false;
    LinkWc wc = {};

    spec.qpn[0] = 20;
    spec.qpn[1] = 21;
    link_connect(p.l, &spec);
    for (unsigned i = 0; i < NSEND; i++) {
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, i, 0, 10);
    }
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    p.aq = 20;
    link_pair_post(&p, 99, 4000, 0, 10);
    link_pump(p.l);
    while (link_wcs(p.a)) {
        wc = link_wc(p.a);
        if (wc.wc.wr_id == 4000) {
            break;
        }
        flush_ended |= wc.wc.wr_id == NSEND - 1;
    }
    g_assert_cmphex(wc.wc.wr_id, ==, 4000);
    g_assert_false(flush_ended);
    link_pair_free(&p);
}

/* Many QPs of node 0 with full receive queues and one send CQ */
static LinkMr *many_qps(RoceLink *l)
{
    LinkNode *n = &l->node[0];
    LinkMr *mr = link_mr(n, 4096, LINK_ALL_ACCESS);

    for (uint32_t q = 2; q < 2 + NQP; q++) {
        RdmaQpInitAttr init = {
            .qpn = q,
            .pdn = LINK_PDN,
            .qp_type = RDMA_QPT_RC,
            .send_cqn = LINK_SEND_CQ(2),
            .recv_cqn = LINK_RECV_CQ(q),
            .cap = {
                .max_send_wr = 16, .max_recv_wr = NRECV, .max_recv_sge = 1,
            },
        };
        LinkQpSpec spec = link_spec();

        g_assert_cmpint(roce_qp_create(n->e, &init), ==, 0);
        spec.qpn[0] = q;
        for (unsigned s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
            RdmaQpAttr attr;
            uint32_t mask = link_attr(l, &spec, 0, s, &attr);

            g_assert_cmpint(roce_qp_modify(n->e, q, mask, &attr), ==, 0);
        }
        for (unsigned i = 0; i < NRECV; i++) {
            link_post_recv(n, q, i, link_sge(mr, 0, 10));
        }
    }
    link_run(l, 0);
    return mr;
}

static unsigned retired_by_many(LinkNode *n)
{
    unsigned retired = 0;

    for (uint32_t q = 2; q < 2 + NQP; q++) {
        retired += n->retired[q][RDMA_RQ];
    }
    return retired;
}

/* A CQ that fails has many QPs. Only some of their WQEs are flushed at once. */
static void test_failed_cq_flushes_few_at_once(void)
{
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkMr *mr = many_qps(l);
    RdmaSge sge = link_sge(mr, 0, 10);
    RdmaSendWr bad = link_wr(99, 1, &sge);
    uint64_t before;
    RoceTxFrame tx;

    n->cq_room[LINK_SEND_CQ(2)] = 0;
    link_post(n, 2, &bad);
    before = roce_work(n->e);
    g_assert_false(roce_poll_tx(n->e, l->now, &tx));
    /* roce_poll_tx() flushes as much as its budget allows. */
    g_assert_cmpuint(roce_work(n->e) - before, <, BUDGET + 64 * 1024);
    for (uint32_t q = 2; q < 2 + NQP; q++) {
        g_assert_cmpint(link_state(n, q), ==, RDMA_QPS_ERR);
    }
    g_assert_cmpuint(retired_by_many(n), <, NQP * NRECV);
    g_assert_true(link_run(l, LINK_FOREVER));
    g_assert_cmpuint(retired_by_many(n), ==, NQP * NRECV);
    g_assert_cmpuint(link_events(n, RDMA_EVENT_QP_FATAL), ==, NQP - 1);
    link_mr_free(mr);
    link_free(l);
}

static unsigned qps_in_err(LinkNode *n)
{
    unsigned count = 0;

    for (uint32_t q = 2; q < 2 + NQP; q++) {
        count += link_state(n, q) == RDMA_QPS_ERR;
    }
    return count;
}

/* The other QPs follow, also in a new engine that imports the state. */
static void test_failed_cq_moves_few_qps_at_once(gconstpointer moves)
{
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkMr *mr = many_qps(l);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, NULL);

    l->moves = 0;
    n->cq_room[LINK_SEND_CQ(2)] = 0;
    link_post(n, 2, &wr);
    link_run(l, 0);
    n->woken = false;
    link_modify(n, 2, RDMA_QPS_ERR);
    g_assert_cmpuint(qps_in_err(n), ==, 1 + FEW_QPS);
    g_assert_true(n->woken);
    if (moves) {
        link_move(n);
        g_assert_true(n->woken);
    }
    g_assert_true(link_run(l, LINK_FOREVER));
    g_assert_cmpuint(qps_in_err(n), ==, NQP);
    g_assert_cmpuint(link_events(n, RDMA_EVENT_QP_FATAL), ==, NQP - 1);
    link_mr_free(mr);
    link_free(l);
}

#define NMEMBER 3
#define NSENT 64

/* Copies count as work, not datagrams. */
static void test_multicast_copies_count(void)
{
    static const uint8_t group[RDMA_GID_LEN] = { 0xff, 0x0e, [15] = 9 };
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkMr *mr = link_mr(n, 65536, LINK_ALL_ACCESS);
    RdmaSge sge = link_sge(mr, 0, 4000);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 0, &sge);
    LinkQpSpec spec = link_spec();
    unsigned calls = 0, copies = 0;
    RoceTxFrame tx;
    uint64_t most = 0;

    spec.type = RDMA_QPT_UD;
    spec.cap.max_recv_wr = NSENT;
    spec.cap.max_send_wr = NSENT;
    for (unsigned i = 0; i < NMEMBER; i++) {
        spec.qpn[0] = 2 + i;
        link_create(n, &spec, 0);
        for (unsigned s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
            RdmaQpAttr attr;
            uint32_t mask = link_attr(l, &spec, 0, s, &attr);

            g_assert_cmpint(roce_qp_modify(n->e, spec.qpn[0], mask, &attr),
                            ==, 0);
        }
        for (unsigned k = 0; k < NSENT; k++) {
            link_post_recv(n, spec.qpn[0], k, link_sge(mr, 8192, 8192));
        }
        g_assert_cmpint(roce_mcast_attach(n->e, spec.qpn[0], group), ==, 0);
    }
    link_run(l, 0);
    wr.wr.ud.remote_qpn = RDMA_QPN_MCAST;
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(n, &l->node[1], true);
    memcpy(wr.wr.ud.av.dgid, group, sizeof(group));
    link_set_up(n, false);          /* no frames for the wire */
    for (unsigned i = 0; i < NSENT; i++) {
        link_post(n, 2, &wr);
    }
    do {
        uint64_t before = roce_work(n->e);

        n->woken = false;
        g_assert_false(roce_poll_tx(n->e, l->now, &tx));
        most = MAX(most, roce_work(n->e) - before);
        calls++;
    } while (n->woken);
    for (unsigned i = 0; i < NMEMBER; i++) {
        copies += n->retired[2 + i][RDMA_RQ];
    }
    g_assert_cmpuint(copies, ==, NSENT * NMEMBER);
    /* The most work is the budget and the copies of one datagram. */
    g_assert_cmpuint(most, <, BUDGET + NMEMBER * 8192);
    g_assert_cmpuint(calls, >, 2);
    link_mr_free(mr);
    link_free(l);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/turn/err-flushes-few-at-once",
                    test_err_flushes_few_at_once);
    g_test_add_func("/turn/flush-goes-on-after-migration",
                    test_flush_goes_on_after_migration);
    g_test_add_func("/turn/reset-during-a-flush", test_reset_during_a_flush);
    g_test_add_func("/turn/destroy-during-a-flush",
                    test_destroy_during_a_flush);
    g_test_add_func("/turn/sqe-is-flushed-before-rts",
                    test_sqe_is_flushed_before_rts);
    g_test_add_func("/turn/flush-lets-others-send",
                    test_flush_lets_others_send);
    g_test_add_func("/turn/failed-cq-flushes-few-at-once",
                    test_failed_cq_flushes_few_at_once);
    g_test_add_data_func("/turn/failed-cq-moves-few-qps-at-once/here", NULL,
                         test_failed_cq_moves_few_qps_at_once);
    g_test_add_data_func("/turn/failed-cq-moves-few-qps-at-once/moved",
                         GINT_TO_POINTER(true),
                         test_failed_cq_moves_few_qps_at_once);
    g_test_add_func("/turn/multicast-copies-count",
                    test_multicast_copies_count);
    return g_test_run();
}
