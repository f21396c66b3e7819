/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace events, which explain the behaviour of QPs.
 */
#include <errno.h>
#include <string.h>
#include "roce-link.h"

static LinkPair pair_of(LinkQpSpec spec)
{
    LinkPair p = link_pair(&spec);

    p.a->traces = g_array_new(FALSE, FALSE, sizeof(RoceTrace));
    p.b->traces = g_array_new(FALSE, FALSE, sizeof(RoceTrace));
    return p;
}

static void pair_free(LinkPair *p)
{
    g_array_unref(p->a->traces);
    g_array_unref(p->b->traces);
    p->a->traces = p->b->traces = NULL;
    link_pair_free(p);
}

/* Take the oldest trace of node @n, which must have this type. */
static RoceTrace next(LinkNode *n, RoceTraceType type)
{
    RoceTrace t;

    g_assert_cmpuint(n->traces->len, >, 0);
    t = g_array_index(n->traces, RoceTrace, 0);
    g_array_remove_index(n->traces, 0);
    g_assert_cmpint(t.type, ==, type);
    return t;
}

static void test_states(void)
{
    LinkPair p = pair_of(link_spec());
    RoceTrace t;

    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    t = next(p.a, ROCE_TRACE_QP_STATE);
    g_assert_cmpuint(t.qpn, ==, p.aq);
    g_assert_cmpuint(t.old, ==, RDMA_QPS_RTS);
    g_assert_cmpuint(t.value, ==, RDMA_QPS_ERR);
    link_modify(p.a, p.aq, RDMA_QPS_RESET);
    t = next(p.a, ROCE_TRACE_QP_STATE);
    g_assert_cmpuint(t.old, ==, RDMA_QPS_ERR);
    g_assert_cmpuint(t.value, ==, RDMA_QPS_RESET);
    g_assert_cmpuint(p.a->traces->len, ==, 0);
    pair_free(&p);
}

static void test_traffic_traces_nothing(void)
{
    LinkPair p = pair_of(link_spec());

    link_pair_recv(&p, 50, 0, 4096);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 4096);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(p.a->traces->len, ==, 0);
    g_assert_cmpuint(p.b->traces->len, ==, 0);
    pair_free(&p);
}

static bool lose_all(RoceLink *l, unsigned from, const uint8_t *frame,
                     size_t len, void *opaque)
{
    return false;
}

static void test_timeouts_and_retransmissions(void)
{
    LinkQpSpec spec = link_spec();
    RoceTrace t;
    LinkPair p;

    spec.timeout = 8;
    spec.retry_cnt = 2;
    p = pair_of(spec);
    p.l->filter = lose_all;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 64);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_RETRY_EXC_ERR);
    for (unsigned left = 2; left > 0; left--) {
        t = next(p.a, ROCE_TRACE_TIMEOUT);
        g_assert_cmpuint(t.psn, ==, spec.psn[0]);
        g_assert_cmpuint(t.value, ==, left);
        t = next(p.a, ROCE_TRACE_RETRANSMIT);
        g_assert_cmpuint(t.psn, ==, spec.psn[0]);
        g_assert_cmpuint(t.value, ==, left - 1);
    }
    next(p.a, ROCE_TRACE_TIMEOUT);
    t = next(p.a, ROCE_TRACE_QP_STATE);
    g_assert_cmpuint(t.value, ==, RDMA_QPS_ERR);
    g_assert_cmpuint(p.a->traces->len, ==, 0);
    pair_free(&p);
}

static void test_naks_on_both_sides(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = pair_of(spec);
    RdmaSge sge = link_sge(p.amr, 0, 64);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);
    RoceTrace sent, got;

    wr.wr.rdma.remote_addr = p.bmr->attr.iova;
    wr.wr.rdma.rkey = p.bmr->attr.rkey ^ 1;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    next(p.b, ROCE_TRACE_QP_STATE);
    sent = next(p.b, ROCE_TRACE_NAK_SENT);
    got = next(p.a, ROCE_TRACE_NAK_RECEIVED);
    g_assert_cmpuint(sent.psn, ==, spec.psn[0]);
    g_assert_cmpuint(got.psn, ==, sent.psn);
    /* NAK, remote access error (IBTA 9.7.5.2.8) */
    g_assert_cmphex(sent.value, ==, 0x62);
    g_assert_cmphex(got.value, ==, 0x62);
    link_expect(p.a, 1, RDMA_WC_REM_ACCESS_ERR);
    pair_free(&p);
}

static void test_drops_say_why(void)
{
    LinkPair p = pair_of(link_spec());
    RoceTrace t;

    link_modify(p.b, p.bq, RDMA_QPS_RESET);
    next(p.b, ROCE_TRACE_QP_STATE);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 64);
    link_run(p.l, 2 * LINK_DELAY);
    t = next(p.b, ROCE_TRACE_RX_DROP);
    g_assert_cmpuint(t.qpn, ==, p.bq);
    g_assert_cmpstr(t.why, ==, "QP does not receive in its state");

    link_inject(p.l, 1, "x", 1);
    link_run(p.l, 2 * LINK_DELAY);
    t = next(p.b, ROCE_TRACE_RX_DROP);
    g_assert_cmpuint(t.qpn, ==, 0);
    g_assert_cmpstr(t.why, ==, "malformed");
    pair_free(&p);
}

static void test_failed_cq_is_traced_once(void)
{
    LinkPair p = pair_of(link_spec());
    RoceTrace t;

    p.a->cq_room[LINK_SEND_CQ(p.aq)] = 0;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 64);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 64);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    t = next(p.a, ROCE_TRACE_CQ_FAILED);
    g_assert_cmpuint(t.qpn, ==, p.aq);
    g_assert_cmpuint(t.value, ==, LINK_SEND_CQ(p.aq));
    next(p.a, ROCE_TRACE_QP_STATE);
    g_assert_cmpuint(p.a->traces->len, ==, 0);
    pair_free(&p);
}

static void test_blocked_wire(void)
{
    LinkPair p = pair_of(link_spec());
    RoceTrace t;

    roce_set_tx_blocked(p.a->e, true);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 64);
    link_run(p.l, LINK_DELAY);
    t = next(p.a, ROCE_TRACE_TX_WAIT);
    g_assert_cmpuint(t.qpn, ==, p.aq);
    roce_set_tx_blocked(p.a->e, false);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    pair_free(&p);
}

static void test_refused_attribute_is_named(void)
{
    LinkPair p = pair_of(link_spec());
    const RdmaQpRefusal *r = &p.a->refusal;
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_RTS, .rate_limit = 1 };

    g_assert_cmpint(roce_qp_modify(p.a->e, p.aq, RDMA_QP_STATE |
                                   RDMA_QP_QKEY, &attr), ==, -EINVAL);
    g_assert_cmpuint(next(p.a, ROCE_TRACE_QP_REFUSED).qpn, ==, p.aq);
    g_assert_cmpint(r->type, ==, RDMA_QP_REFUSED_EXTRA);
    g_assert_cmpint(r->from, ==, RDMA_QPS_RTS);
    g_assert_cmpint(r->to, ==, RDMA_QPS_RTS);
    g_assert_cmpstr(r->attr, ==, "qkey");
    g_assert_cmphex(r->value, ==, RDMA_QP_STATE | RDMA_QP_QKEY);
    g_assert_cmphex(r->min, ==, 0);

    attr.min_rnr_timer = 32;
    g_assert_cmpint(roce_qp_modify(p.a->e, p.aq, RDMA_QP_MIN_RNR_TIMER,
                                   &attr), ==, -EINVAL);
    next(p.a, ROCE_TRACE_QP_REFUSED);
    g_assert_cmpint(r->type, ==, RDMA_QP_REFUSED_RANGE);
    g_assert_cmpstr(r->attr, ==, "min_rnr_timer");
    g_assert_cmpuint(r->value, ==, 32);
    g_assert_cmpuint(r->min, ==, 0);
    g_assert_cmpuint(r->max, ==, 31);

    g_assert_cmpint(roce_qp_modify(p.a->e, p.aq, RDMA_QP_RATE_LIMIT, &attr),
                    ==, 0);
    g_assert_cmpuint(p.a->traces->len, ==, 0);
    pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/trace/states", test_states);
    g_test_add_func("/roce/trace/traffic-traces-nothing",
                    test_traffic_traces_nothing);
    g_test_add_func("/roce/trace/timeouts-and-retransmissions",
                    test_timeouts_and_retransmissions);
    g_test_add_func("/roce/trace/naks-on-both-sides",
                    test_naks_on_both_sides);
    g_test_add_func("/roce/trace/drops-say-why", test_drops_say_why);
    g_test_add_func("/roce/trace/failed-cq-is-traced-once",
                    test_failed_cq_is_traced_once);
    g_test_add_func("/roce/trace/blocked-wire", test_blocked_wire);
    g_test_add_func("/roce/trace/refused-attribute-is-named",
                    test_refused_attribute_is_named);
    return g_test_run();
}
