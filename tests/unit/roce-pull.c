/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receives that were posted but not given to the engine: it pulls them when a
 * message is there for them, and not before.
 */
#include <string.h>
#include "roce-link.h"

#define LEN 600

static void run(LinkPair *p)
{
    g_assert_true(link_run(p->l, LINK_FOREVER));
}

static void unseen(LinkPair *p, uint64_t wr_id, size_t off)
{
    link_unseen_recv(p->b, p->bq, wr_id, link_sge(p->bmr, off, 2 * LEN));
}

static unsigned naks(LinkPair *p)
{
    return roce_stats(p->b->e)->rnr_naks_sent;
}

static void test_message_takes_one(gconstpointer data)
{
    uint32_t opcode = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    unseen(&p, 50, 0);
    unseen(&p, 51, 4096);
    link_pair_post(&p, opcode, 1, 0, LEN);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    g_assert_cmpuint(g_queue_get_length(&p.b->unseen), ==, 1);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, LEN));

    link_pair_post(&p, opcode, 2, 4096, LEN);
    run(&p);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_expect(p.b, 51, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 4096, p.bmr, 4096, LEN));
    g_assert_cmpuint(naks(&p), ==, 0);
    g_assert_cmpuint(p.b->retired[p.bq][RDMA_RQ], ==, 2);
    link_pair_free(&p);
}

/* What the engine has comes first: it was posted first. */
static void test_order_is_that_of_posting(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned i;

    link_pair_recv(&p, 50, 0, LEN);
    unseen(&p, 51, 4096);
    for (i = 0; i < 2; i++) {
        link_pair_post(&p, RDMA_WR_SEND, i, 0, LEN);
    }
    run(&p);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_expect(p.b, 51, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_none_is_an_rnr_nak(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.min_rnr_timer = 5;
    p = link_pair(&spec);
    /* Another QP's is none */
    link_unseen_recv(p.b, p.bq + 1, 49, link_sge(p.bmr, 0, LEN));
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, LEN);
    link_run(p.l, LINK_MS);
    g_assert_cmpuint(naks(&p), >, 0);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    unseen(&p, 50, 0);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* Plain WRITEs need no receive, so none is pulled. */
static void test_write_pulls_none(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    unseen(&p, 50, 0);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LEN);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(g_queue_get_length(&p.b->unseen), ==, 1);
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
    unseen(&p, 50, 0);
    link_post(p.a, p.aq, &wr);
    link_post(p.a, p.aq, &wr);
    run(&p);
    g_assert_cmpuint(link_expect(p.b, 50, RDMA_WC_SUCCESS).byte_len, ==,
                     LEN + 40);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==, 1);
    link_pair_free(&p);
}

/* A WR that the owner could not decode completes like any other bad one. */
static void test_bad_one_fails_in_its_turn(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.bmr, 0, LEN);

    sge.lkey ^= 1;
    link_unseen_recv(p.b, p.bq, 50, sge);
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

    link_unseen_srq(p.b, 50, link_sge(p.bmr, 0, LEN));
    link_unseen_srq(p.b, 51, link_sge(p.bmr, 0, LEN));
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, LEN);
    run(&p);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    g_assert_cmpuint(g_queue_get_length(&p.b->unseen), ==, 1);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, LEN));
    link_pair_free(&p);
}

/* No event while WQEs were posted in time; one as soon as there are too few. */
static void test_srq_limit_counts_what_was_not_seen(void)
{
    LinkPair p = srq_pair(8);
    unsigned i;

    for (i = 0; i < 3; i++) {
        link_post_srq(p.b, 50 + i, link_sge(p.bmr, 0, LEN));
    }
    link_unseen_srq(p.b, 53, link_sge(p.bmr, 0, LEN));
    link_unseen_srq(p.b, 54, link_sge(p.bmr, 0, LEN));
    g_assert_cmpint(roce_srq_set_limit(p.b->e, LINK_SRQ, 5), ==, 0);
    g_assert_cmpuint(link_events(p.b, RDMA_EVENT_SRQ_LIMIT_REACHED), ==, 0);
    g_assert_cmpint(roce_srq_set_limit(p.b->e, LINK_SRQ, 3), ==, 0);
    for (i = 0; i < 2; i++) {
        link_pair_post(&p, RDMA_WR_SEND, i, 0, LEN);
        run(&p);
        link_expect(p.b, 50 + i, RDMA_WC_SUCCESS);
        g_assert_cmpuint(link_events(p.b, RDMA_EVENT_SRQ_LIMIT_REACHED), ==,
                         0);
        /* A limit copies none: there may be many. */
        g_assert_cmpuint(g_queue_get_length(&p.b->unseen), ==, 2);
    }
    link_pair_post(&p, RDMA_WR_SEND, 2, 0, LEN);
    run(&p);
    link_expect(p.b, 52, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_events(p.b, RDMA_EVENT_SRQ_LIMIT_REACHED), ==, 1);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/roce/pull/message-takes-one/send",
                         GUINT_TO_POINTER(RDMA_WR_SEND),
                         test_message_takes_one);
    g_test_add_data_func("/roce/pull/message-takes-one/write-with-imm",
                         GUINT_TO_POINTER(RDMA_WR_RDMA_WRITE_WITH_IMM),
                         test_message_takes_one);
    g_test_add_func("/roce/pull/order-is-that-of-posting",
                    test_order_is_that_of_posting);
    g_test_add_func("/roce/pull/none-is-an-rnr-nak", test_none_is_an_rnr_nak);
    g_test_add_func("/roce/pull/write-pulls-none", test_write_pulls_none);
    g_test_add_func("/roce/pull/datagram", test_datagram);
    g_test_add_func("/roce/pull/bad-one-fails-in-its-turn",
                    test_bad_one_fails_in_its_turn);
    g_test_add_func("/roce/pull/empty-srq", test_empty_srq);
    g_test_add_func("/roce/pull/srq-limit-counts-what-was-not-seen",
                    test_srq_limit_counts_what_was_not_seen);
    return g_test_run();
}
