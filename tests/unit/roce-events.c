/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asynchronous events of QPs: when they are raised, and that each is raised
 * once.
 */
#include <string.h>
#include "roce-link.h"

static LinkPair typed_pair(RdmaQpType type)
{
    LinkQpSpec spec = link_spec();

    spec.type = type;
    return link_pair(&spec);
}

static void run(LinkPair *p)
{
    g_assert_true(link_run(p->l, LINK_FOREVER));
}

/* Node @n has raised this event once, for @qpn, and no other event since. */
static void expect_event(LinkNode *n, RdmaEventType type, uint32_t qpn)
{
    const RdmaEvent *event;

    g_assert_cmpuint(n->events->len, ==, 1);
    event = &g_array_index(n->events, RdmaEvent, 0);
    g_assert_cmpint(event->type, ==, type);
    g_assert_cmpuint(event->id, ==, qpn);
    g_array_set_size(n->events, 0);
}

static void to_sqd(LinkNode *n, uint32_t qpn, uint32_t mask, uint8_t notify)
{
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_SQD,
        .en_sqd_async_notify = notify,
    };

    g_assert_cmpint(roce_qp_modify(n->e, qpn, RDMA_QP_STATE | mask, &attr),
                    ==, 0);
}

/* SQ_DRAINED is raised only if the transition to SQD asks for it. */
static void test_sq_drained_on_demand(gconstpointer data)
{
    LinkPair p = typed_pair(GPOINTER_TO_UINT(data));

    to_sqd(p.a, p.aq, 0, 1);
    g_assert_cmpuint(p.a->events->len, ==, 0);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);

    to_sqd(p.a, p.aq, RDMA_QP_EN_SQD_ASYNC_NOTIFY, 1);
    expect_event(p.a, RDMA_EVENT_SQ_DRAINED, p.aq);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    to_sqd(p.a, p.aq, 0, 0);
    g_assert_cmpuint(p.a->events->len, ==, 0);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);

    to_sqd(p.a, p.aq, RDMA_QP_EN_SQD_ASYNC_NOTIFY, 0);
    to_sqd(p.a, p.aq, 0, 0);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    to_sqd(p.a, p.aq, 0, 0);
    run(&p);
    g_assert_cmpuint(p.a->events->len, ==, 0);
    link_pair_free(&p);
}

/* A QP that leaves SQD before it has drained raises no event. */
static void test_sqd_left_before_it_drained(gconstpointer data)
{
    RdmaQpState to = GPOINTER_TO_UINT(data);
    LinkPair p = typed_pair(RDMA_QPT_RC);

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 1000);
    link_pump(p.l);
    to_sqd(p.a, p.aq, RDMA_QP_EN_SQD_ASYNC_NOTIFY, 1);
    link_modify(p.a, p.aq, to);
    run(&p);
    g_assert_cmpuint(p.a->events->len, ==, 0);
    link_pair_free(&p);
}

static void start(LinkPair *p, RdmaQpType type, unsigned side, RdmaQpState to)
{
    LinkQpSpec spec = link_spec();
    LinkNode *n = side ? p->b : p->a;
    unsigned s;

    spec.type = type;
    for (s = RDMA_QPS_INIT; s <= to; s++) {
        RdmaQpAttr attr;
        uint32_t mask = link_attr(p->l, &spec, side, s, &attr);

        g_assert_cmpint(roce_qp_modify(n->e, spec.qpn[side], mask, &attr),
                        ==, 0);
    }
}

/* COMM_EST is raised once each time that the QP is in RTR, and never in RTS. */
static void test_comm_est(gconstpointer data)
{
    RdmaQpType type = GPOINTER_TO_UINT(data);
    LinkPair p = typed_pair(type);
    unsigned i;

    for (i = 0; i < 3; i++) {
        link_modify(p.a, p.aq, RDMA_QPS_RESET);
        link_modify(p.b, p.bq, RDMA_QPS_RESET);
        start(&p, type, 0, RDMA_QPS_RTS);
        start(&p, type, 1, RDMA_QPS_RTR);
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 5000);
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 5000);
        run(&p);
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        link_expect(p.a, 2, RDMA_WC_SUCCESS);
        expect_event(p.b, RDMA_EVENT_COMM_EST, p.bq);
    }
    link_modify(p.b, p.bq, RDMA_QPS_RESET);
    link_modify(p.a, p.aq, RDMA_QPS_RESET);
    start(&p, type, 0, RDMA_QPS_RTS);
    start(&p, type, 1, RDMA_QPS_RTS);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 5000);
    run(&p);
    g_assert_cmpuint(p.b->events->len, ==, 0);
    g_assert_cmpuint(p.a->events->len, ==, 0);
    link_pair_free(&p);
}

/* Datagrams do not raise COMM_EST. */
static void test_datagrams_raise_nothing(void)
{
    LinkPair p = typed_pair(RDMA_QPT_UD);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, &sge);

    link_modify(p.b, p.bq, RDMA_QPS_RESET);
    start(&p, RDMA_QPT_UD, 1, RDMA_QPS_RTR);
    link_pair_recv(&p, 50, 0, 500);
    wr.wr.ud.remote_qpn = p.bq;
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(p.a, p.b, false);
    link_post(p.a, p.aq, &wr);
    wr.wr.ud.remote_qkey++;
    link_post(p.a, p.aq, &wr);
    run(&p);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    g_assert_cmpuint(p.b->events->len, ==, 0);
    link_pair_free(&p);
}

/* The responder reports an invalid request by one event, whatever follows. */
static void bad_requests(uint32_t access, RdmaEventType want)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);
    LinkMr *mr = link_mr(p.b, 4096, LINK_ALL_ACCESS & ~access);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);
    RdmaQpAttr attr = { .qp_access_flags = 0 };
    unsigned i;

    if (!access) {
        g_assert_cmpint(roce_qp_modify(p.b->e, p.bq, RDMA_QP_ACCESS_FLAGS,
                                       &attr), ==, 0);
    }
    wr.wr.rdma.remote_addr = mr->attr.iova;
    wr.wr.rdma.rkey = mr->attr.rkey;
    for (i = 0; i < 5; i++) {
        link_post(p.a, p.aq, &wr);
    }
    run(&p);
    expect_event(p.b, want, p.bq);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    /* The requester has a completion and needs no event. */
    g_assert_cmpuint(p.a->events->len, ==, 0);
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_ERR);
    link_modify(p.b, p.bq, RDMA_QPS_ERR);
    link_modify(p.b, p.bq, RDMA_QPS_RESET);
    g_assert_cmpuint(p.b->events->len, ==, 0);
    link_mr_free(mr);
    link_pair_free(&p);
}

static void test_access_error(void)
{
    bad_requests(RDMA_ACCESS_REMOTE_WRITE, RDMA_EVENT_QP_ACCESS_ERR);
}

static void test_invalid_request(void)
{
    bad_requests(0, RDMA_EVENT_QP_REQ_ERR);
}

/* A completion reports the error, so there is no event. */
static void test_bad_receive_buffer(void)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);

    link_pair_recv(&p, 50, 0, 10);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 11);
    run(&p);
    link_expect(p.b, 50, RDMA_WC_LOC_LEN_ERR);
    g_assert_cmpuint(p.a->events->len, ==, 0);
    g_assert_cmpuint(p.b->events->len, ==, 0);
    link_pair_free(&p);
}

static void test_retries_exceeded(void)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);

    p.b->stopped = true;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 11);
    run(&p);
    link_expect(p.a, 1, RDMA_WC_RETRY_EXC_ERR);
    g_assert_cmpuint(p.a->events->len, ==, 0);
    link_pair_free(&p);
}

/*
 * Two failed CQs of a QP raise one event. The failed CQ of a QP in ERR raises
 * none.
 */
static void test_failed_cqs(void)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);

    p.b->cq_room[LINK_SEND_CQ(p.bq)] = 0;
    p.b->cq_room[LINK_RECV_CQ(p.bq)] = 0;
    link_pair_recv(&p, 50, 0, 100);
    link_pair_recv(&p, 51, 0, 100);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 11);
    {
        RdmaSendWr wr = link_wr(RDMA_WR_SEND, 2, NULL);

        link_post(p.b, p.bq, &wr);
    }
    run(&p);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    expect_event(p.b, RDMA_EVENT_QP_FATAL, p.bq);

    p.a->cq_room[LINK_SEND_CQ(p.aq)] = 0;
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    link_pair_post(&p, RDMA_WR_SEND, 3, 0, 11);
    run(&p);
    g_assert_cmpuint(p.a->events->len, ==, 0);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/events/sq-drained-on-demand/rc",
                         GUINT_TO_POINTER(RDMA_QPT_RC),
                         test_sq_drained_on_demand);
    g_test_add_data_func("/events/sq-drained-on-demand/ud",
                         GUINT_TO_POINTER(RDMA_QPT_UD),
                         test_sq_drained_on_demand);
    g_test_add_data_func("/events/sqd-left-before-it-drained/rts",
                         GUINT_TO_POINTER(RDMA_QPS_RTS),
                         test_sqd_left_before_it_drained);
    g_test_add_data_func("/events/sqd-left-before-it-drained/err",
                         GUINT_TO_POINTER(RDMA_QPS_ERR),
                         test_sqd_left_before_it_drained);
    g_test_add_data_func("/events/comm-est/rc", GUINT_TO_POINTER(RDMA_QPT_RC),
                         test_comm_est);
    g_test_add_data_func("/events/comm-est/uc", GUINT_TO_POINTER(RDMA_QPT_UC),
                         test_comm_est);
    g_test_add_func("/events/datagrams-raise-nothing",
                    test_datagrams_raise_nothing);
    g_test_add_func("/events/access-error", test_access_error);
    g_test_add_func("/events/invalid-request", test_invalid_request);
    g_test_add_func("/events/bad-receive-buffer", test_bad_receive_buffer);
    g_test_add_func("/events/retries-exceeded", test_retries_exceeded);
    g_test_add_func("/events/failed-cqs", test_failed_cqs);
    return g_test_run();
}
