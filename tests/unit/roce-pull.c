/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine pulls work requests from its consumer: sends when the QP has its
 * turn, receives when a message needs one, and not earlier.
 */
#include <string.h>
#include "roce-link.h"

#define LEN 600

static void run(LinkPair *p)
{
    g_assert_true(link_run(p->l, LINK_FOREVER));
}

static void post_recv_silently(LinkPair *p, uint64_t wr_id, size_t off)
{
    link_post_recv_silently(p->b, p->bq, wr_id, link_sge(p->bmr, off, 2 * LEN));
}

static unsigned count_naks(LinkPair *p)
{
    return roce_stats(p->b->e)->rnr_naks_sent;
}

static void test_message_takes_one_receive(gconstpointer data)
{
    uint32_t opcode = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    post_recv_silently(&p, 50, 0);
    post_recv_silently(&p, 51, 4096);
    link_pair_post(&p, opcode, 1, 0, LEN);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    g_assert_cmpuint(consumer_recvs(p.b->consumer, RDMA_RQ, p.bq), ==, 1);
    g_assert_false(p.b->recv_flush);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, LEN));

    link_pair_post(&p, opcode, 2, 4096, LEN);
    run(&p);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_expect(p.b, 51, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 4096, p.bmr, 4096, LEN));
    g_assert_cmpuint(count_naks(&p), ==, 0);
    g_assert_cmpuint(p.b->retired[p.bq][RDMA_RQ], ==, 2);
    link_pair_free(&p);
}

static void test_posting_order_is_kept(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned i;

    link_pair_recv(&p, 50, 0, LEN);
    post_recv_silently(&p, 51, 4096);
    for (i = 0; i < 2; i++) {
        link_pair_post(&p, RDMA_WR_SEND, i, 0, LEN);
    }
    run(&p);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_expect(p.b, 51, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_no_receive_is_an_rnr_nak(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.min_rnr_timer = 5;
    p = link_pair(&spec);
    /* A receive of another QP is not used. */
    link_post_recv_silently(p.b, p.bq + 1, 49, link_sge(p.bmr, 0, LEN));
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, LEN);
    link_run(p.l, LINK_MS);
    g_assert_cmpuint(count_naks(&p), >, 0);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    post_recv_silently(&p, 50, 0);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* Plain WRITEs pull no receive. */
static void test_write_pulls_no_receive(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    post_recv_silently(&p, 50, 0);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LEN);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(consumer_recvs(p.b->consumer, RDMA_RQ, p.bq), ==, 1);
    link_pair_free(&p);
}

static void test_datagram(void)
{
    LinkQpSpec spec = link_spec();
    RdmaSendWr wr;
    LinkPair p;
    RdmaSge sge;

    spec.type = RDMA_QPT_UD;
    p = link_pair(&spec);
    sge = link_sge(p.amr, 0, LEN);
    wr = link_wr(RDMA_WR_SEND, 1, &sge);
    wr.wr.ud.remote_qpn = p.bq;
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(p.a, p.b, false);
    post_recv_silently(&p, 50, 0);
    link_post(p.a, p.aq, &wr);
    link_post(p.a, p.aq, &wr);
    run(&p);
    g_assert_cmpuint(link_expect(p.b, 50, RDMA_WC_SUCCESS).byte_len, ==,
                     LEN + 40);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==, 1);
    link_pair_free(&p);
}

/*
 * A WR that the consumer could not decode completes with its error, in order.
 */
static void test_bad_wr_fails_in_order(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.bmr, 0, LEN);

    sge.lkey ^= 1;
    link_post_recv_silently(p.b, p.bq, 50, sge);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, LEN);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_REM_OP_ERR);
    link_expect(p.b, 50, RDMA_WC_LOC_PROT_ERR);
    link_pair_free(&p);
}

static LinkPair srq_pair(uint32_t max_wr)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = { .l = link_new(1), .aq = 2, .bq = 3 };

    p.a = &p.l->node[0];
    p.b = &p.l->node[1];
    link_srq(p.b, max_wr, LINK_PDN);
    spec.srq[1] = true;
    link_connect(p.l, &spec);
    p.amr = link_mr(p.a, LINK_PAIR_MEM, LINK_ALL_ACCESS);
    p.bmr = link_mr(p.b, LINK_PAIR_MEM, LINK_ALL_ACCESS);
    link_fill(p.amr, 1);
    return p;
}

static void test_empty_srq(void)
{
    LinkPair p = srq_pair(4);

    link_post_srq_silently(p.b, 50, link_sge(p.bmr, 0, LEN));
    link_post_srq_silently(p.b, 51, link_sge(p.bmr, 0, LEN));
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, LEN);
    run(&p);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    g_assert_cmpuint(consumer_recvs(p.b->consumer, RDMA_SRQ, LINK_SRQ), ==, 1);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, LEN));
    link_pair_free(&p);
}

/* The cost of a WR counts as work of the engine. */
static void test_cost_of_a_receive(gconstpointer data)
{
    enum { COST = 1 << 20 };
    bool srq = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = link_spec();
    LinkPair p = srq ? srq_pair(4) : link_pair(&spec);
    RdmaRecvWr wr = { .wr_id = 50, .cost = COST };
    uint64_t work;

    /* A new engine starts to count from 0. */
    p.l->moves = 0;
    if (srq) {
        consumer_post_srq_recv(p.b->consumer, LINK_SRQ, &wr);
    } else {
        consumer_post_recv(p.b->consumer, p.bq, &wr);
    }
    work = roce_work(p.b->e);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 0);
    run(&p);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    work = roce_work(p.b->e) - work;
    g_assert_cmpuint(work, >=, COST);
    g_assert_cmpuint(work, <, COST + COST / 2);
    link_pair_free(&p);
}

/* No event while WQEs are posted in time; one as soon as there are too few */
static void test_srq_limit_counts_posted_wqes(void)
{
    LinkPair p = srq_pair(8);
    unsigned i;

    for (i = 0; i < 5; i++) {
        link_post_srq_silently(p.b, 50 + i, link_sge(p.bmr, 0, LEN));
    }
    g_assert_cmpint(roce_srq_set_limit(p.b->e, LINK_SRQ, 5), ==, 0);
    g_assert_cmpuint(link_events(p.b, RDMA_EVENT_SRQ_LIMIT_REACHED), ==, 0);
    g_assert_cmpint(roce_srq_set_limit(p.b->e, LINK_SRQ, 3), ==, 0);
    for (i = 0; i < 2; i++) {
        link_pair_post(&p, RDMA_WR_SEND, i, 0, LEN);
        run(&p);
        link_expect(p.b, 50 + i, RDMA_WC_SUCCESS);
        g_assert_cmpuint(link_events(p.b, RDMA_EVENT_SRQ_LIMIT_REACHED), ==,
                         0);
        /* The check of the limit pulls no WQE, since a queue may be deep. */
        g_assert_cmpuint(consumer_recvs(p.b->consumer, RDMA_SRQ, LINK_SRQ), ==,
                         4 - i);
    }
    link_pair_post(&p, RDMA_WR_SEND, 2, 0, LEN);
    run(&p);
    link_expect(p.b, 52, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_events(p.b, RDMA_EVENT_SRQ_LIMIT_REACHED), ==, 1);
    link_pair_free(&p);
}

/* Post a WRITE without a kick. */
static void post_silently(LinkPair *p, uint64_t wr_id)
{
    RdmaSge sge = link_sge(p->amr, 0, LEN);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge);

    wr.wr.rdma.remote_addr = p->bmr->attr.iova;
    wr.wr.rdma.rkey = p->bmr->attr.rkey;
    link_post_silently(p->a, p->aq, &wr);
}

/* After an empty answer, the queue is not asked before the next kick. */
static void test_sends_wait_for_a_kick(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned asks;

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LEN);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    asks = p.a->next_send_calls;
    post_silently(&p, 2);
    run(&p);
    g_assert_cmpuint(p.a->next_send_calls, ==, asks);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    roce_kick(p.a->e, RDMA_SQ, p.aq);
    run(&p);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* A SEND of b, which gives the QP of a a turn */
static void message_for_a(LinkPair *p, uint64_t wr_id)
{
    RdmaSge sge = link_sge(p->bmr, 0, LEN);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, wr_id, &sge);

    link_post_recv(p->a, p->aq, wr_id, link_sge(p->amr, 4096, LEN));
    link_post(p->b, p->bq, &wr);
    run(p);
    link_expect(p->b, wr_id, RDMA_WC_SUCCESS);
    link_expect(p->a, wr_id, RDMA_WC_SUCCESS);
}

/* A queue that answered LATER is asked in each turn, and gets none for that. */
static void test_later_waits_for_a_turn(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned asks;

    /* A new engine asks at once. */
    p.l->moves = 0;
    p.a->empty_answer = RDMA_NEXT_LATER;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LEN);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    for (unsigned i = 2; i < 5; i++) {
        asks = p.a->next_send_calls;
        post_silently(&p, i);
        run(&p);
        g_assert_cmpuint(p.a->next_send_calls, ==, asks);
        message_for_a(&p, 100 + i);
        g_assert_cmpuint(p.a->next_send_calls, >, asks);
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    p.a->empty_answer = RDMA_NEXT_NONE;
    message_for_a(&p, 5);
    asks = p.a->next_send_calls;
    post_silently(&p, 6);
    message_for_a(&p, 7);
    g_assert_cmpuint(p.a->next_send_calls, ==, asks);
    link_pair_free(&p);
}

/* An acknowledgement is such a turn. */
static void test_later_ends_with_an_acknowledgement(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned asks;

    p.l->moves = 0;
    p.a->empty_answer = RDMA_NEXT_LATER;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LEN);
    link_pump(p.l);
    asks = p.a->next_send_calls;
    post_silently(&p, 2);
    link_pump(p.l);
    g_assert_cmpuint(p.a->next_send_calls, ==, asks);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* When a QP enters ERR, the engine asks even if the last answer was LATER. */
static void test_later_before_err(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    p.a->empty_answer = RDMA_NEXT_LATER;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LEN);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    post_silently(&p, 2);
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    run(&p);
    link_expect(p.a, 2, RDMA_WC_WR_FLUSH_ERR);
    link_pair_free(&p);
}

/* A QP in ERR that answered LATER is asked after a kick, and is idle before. */
static void test_later_in_err(void)
{
    LinkQpSpec spec = link_spec();
    static RoceTxFrame frame;
    LinkPair p;

    spec.cap.max_recv_wr = 0;
    p = link_pair(&spec);
    run(&p);
    p.l->moves = 0;
    p.b->empty_answer = RDMA_NEXT_LATER;
    link_modify(p.b, p.bq, RDMA_QPS_ERR);
    run(&p);
    for (unsigned i = 0; i < 3; i++) {
        RdmaSendWr wr = link_wr(RDMA_WR_SEND, i, NULL);

        link_post_silently(p.b, p.bq, &wr);
        g_assert_false(roce_poll_tx(p.b->e, p.l->now, &frame));
        g_assert_cmpint(roce_next_deadline(p.b->e), ==, ROCE_NO_DEADLINE);
        g_assert_cmpuint(link_wcs(p.b), ==, 0);
        roce_kick(p.b->e, RDMA_SQ, p.bq);
        run(&p);
        link_expect(p.b, i, RDMA_WC_WR_FLUSH_ERR);
    }
    link_pair_free(&p);
}

/*
 * In ERR a receive may be posted after the engine has asked, and before it asks
 * for a kick. So no kick follows.
 */
static void test_receive_before_kick_request_in_err(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    run(&p);
    p.l->moves = 0;
    link_modify(p.b, p.bq, RDMA_QPS_ERR);
    run(&p);
    g_assert_cmpuint(p.b->kick_requests[p.bq], ==, 1);
    post_recv_silently(&p, 0, 0);
    p.b->hidden_recvs = 1;
    roce_kick(p.b->e, RDMA_RQ, p.bq);
    run(&p);
    link_expect(p.b, 0, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(p.b->hidden_recvs, ==, 0);
    g_assert_cmpuint(p.b->kick_requests[p.bq], ==, 3);
    link_pair_free(&p);
}

/* A QP does not flush the receives of its SRQ. */
static void test_later_in_err_leaves_srq_alone(void)
{
    LinkPair p = srq_pair(4);

    p.l->moves = 0;
    link_post_srq_silently(p.b, 50, link_sge(p.bmr, 0, LEN));
    p.b->empty_answer = RDMA_NEXT_LATER;
    link_modify(p.b, p.bq, RDMA_QPS_ERR);
    run(&p);
    roce_kick(p.b->e, RDMA_SQ, p.bq);
    run(&p);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(consumer_recvs(p.b->consumer, RDMA_SRQ, LINK_SRQ), ==, 1);
    link_pair_free(&p);
}

/* WRs without a packet, such as datagrams that are too long, use turns, too. */
static void test_work_without_packets_takes_turns(void)
{
    enum { LONG = 100 };
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    static RoceTxFrame frame;
    RdmaSendWr wr;
    RdmaSge sge;

    spec.type = RDMA_QPT_UD;
    spec.qpn[0] = spec.qpn[1] = 9;
    spec.cap.max_send_wr = LONG;
    link_connect(p.l, &spec);
    run(&p);
    sge = link_sge(p.amr, 0, 5000);
    wr = link_wr(RDMA_WR_SEND, 1, &sge);
    wr.wr.ud.av = link_av(p.a, p.b, false);
    for (unsigned i = 0; i < LONG; i++) {
        link_post(p.a, 9, &wr);
    }
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, LEN);
    g_assert_true(roce_poll_tx(p.a->e, p.l->now, &frame));
    roce_tx_done(p.a->e, &frame);
    g_assert_cmpuint(link_wcs(p.a), >, 0);
    g_assert_cmpuint(link_wcs(p.a), <, LONG / 2);
    run(&p);
    g_assert_cmpuint(link_wcs(p.a), ==, LONG + 1);
    link_pair_free(&p);
}

/*
 * The consumer posts a send in SQE without a kick, just before the engine asks
 * again. When the QP goes back to RTS, the send is flushed, not sent.
 */
static void test_later_send_of_sqe_is_flushed(void)
{
    LinkQpSpec spec = link_spec();
    RdmaSendWr bad = link_wr(RDMA_WR_RDMA_READ, 1, NULL);
    LinkPair p;

    spec.type = RDMA_QPT_UC;
    p = link_pair(&spec);
    p.l->moves = 0;
    p.a->empty_answer = RDMA_NEXT_LATER;
    link_post(p.a, p.aq, &bad);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_LOC_QP_OP_ERR);
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_SQE);
    post_silently(&p, 2);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    run(&p);
    link_expect(p.a, 2, RDMA_WC_WR_FLUSH_ERR);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/pull/later-send-of-sqe",
                    test_later_send_of_sqe_is_flushed);
    g_test_add_func("/roce/pull/sends-wait-for-a-kick",
                    test_sends_wait_for_a_kick);
    g_test_add_func("/roce/pull/later-waits-for-a-turn",
                    test_later_waits_for_a_turn);
    g_test_add_func("/roce/pull/later-ends-with-an-acknowledgement",
                    test_later_ends_with_an_acknowledgement);
    g_test_add_func("/roce/pull/later-before-err", test_later_before_err);
    g_test_add_func("/roce/pull/later-in-err", test_later_in_err);
    g_test_add_func("/roce/pull/receive-before-kick-request-in-err",
                    test_receive_before_kick_request_in_err);
    g_test_add_func("/roce/pull/later-in-err-leaves-srq-alone",
                    test_later_in_err_leaves_srq_alone);
    g_test_add_func("/roce/pull/work-without-packets-takes-turns",
                    test_work_without_packets_takes_turns);
    g_test_add_data_func("/roce/pull/message-takes-one-receive/send",
                         GUINT_TO_POINTER(RDMA_WR_SEND),
                         test_message_takes_one_receive);
    g_test_add_data_func("/roce/pull/message-takes-one-receive/write-with-imm",
                         GUINT_TO_POINTER(RDMA_WR_RDMA_WRITE_WITH_IMM),
                         test_message_takes_one_receive);
    g_test_add_func("/roce/pull/posting-order-is-kept",
                    test_posting_order_is_kept);
    g_test_add_func("/roce/pull/no-receive-is-an-rnr-nak",
                    test_no_receive_is_an_rnr_nak);
    g_test_add_func("/roce/pull/write-pulls-no-receive",
                    test_write_pulls_no_receive);
    g_test_add_func("/roce/pull/datagram", test_datagram);
    g_test_add_func("/roce/pull/bad-wr-fails-in-order",
                    test_bad_wr_fails_in_order);
    g_test_add_func("/roce/pull/empty-srq", test_empty_srq);
    g_test_add_data_func("/roce/pull/cost-of-a-receive/queue",
                         GUINT_TO_POINTER(false), test_cost_of_a_receive);
    g_test_add_data_func("/roce/pull/cost-of-a-receive/srq",
                         GUINT_TO_POINTER(true), test_cost_of_a_receive);
    g_test_add_func("/roce/pull/srq-limit-counts-posted-wqes",
                    test_srq_limit_counts_posted_wqes);
    return g_test_run();
}
