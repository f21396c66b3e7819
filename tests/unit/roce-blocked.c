/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A blocked wire: while the owner cannot send, work inside the engine
 * continues. Packets for the wire wait and keep their order.
 */
#include <string.h>
#include "roce-link.h"

#define GRH 40
#define SELF_A 20                   /* connected to each other, on node a */
#define SELF_B 21

static void connect_to_itself(LinkNode *n)
{
    LinkQpSpec spec = link_spec();
    unsigned side, s;

    spec.qpn[0] = SELF_A;
    spec.qpn[1] = SELF_B;
    for (side = 0; side < 2; side++) {
        link_create(n, &spec, side);
        for (s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
            RdmaQpAttr attr;
            uint32_t mask = link_attr(n->link, &spec, side, s, &attr);

            attr.ah_attr = link_av(n, n, false);
            g_assert_cmpint(roce_qp_modify(n->e, spec.qpn[side], mask, &attr),
                            ==, 0);
        }
    }
}

static LinkPair blocked_pair(RdmaQpType type)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.type = type;
    p = link_pair(&spec);
    connect_to_itself(p.a);
    roce_set_tx_blocked(p.a->e, true);
    return p;
}

static void unblock(LinkPair *p)
{
    p->a->woken = false;
    roce_set_tx_blocked(p->a->e, false);
    g_assert_true(p->a->woken);
    g_assert_true(link_run(p->l, LINK_FOREVER));
}

static void write_to_itself(LinkPair *p, uint64_t wr_id, uint32_t len)
{
    RdmaSge sge = link_sge(p->amr, 0, len);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge);

    wr.wr.rdma.remote_addr = p->amr->attr.iova + LINK_PAIR_MEM / 2;
    wr.wr.rdma.rkey = p->amr->attr.rkey;
    link_post(p->a, SELF_A, &wr);
}

static void test_loopback_goes_on(void)
{
    LinkPair p = blocked_pair(RDMA_QPT_RC);

    link_fill(p.amr, 4);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 50000);
    write_to_itself(&p, 2, 60000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_true(link_same(p.amr, 0, p.amr, LINK_PAIR_MEM / 2, 60000));
    g_assert_cmpuint(p.l->sent[0], ==, 0);

    unblock(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, 50000));
    /* The frame was not lost, so it was not sent twice. */
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 0);
    link_pair_free(&p);
}

static void post_datagram(LinkPair *p, LinkNode *to, uint64_t wr_id)
{
    RdmaSge sge = link_sge(p->amr, 0, 100);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, wr_id, &sge);

    wr.wr.ud.remote_qpn = to == p->a ? p->aq : p->bq;
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(p->a, to, false);
    link_post(p->a, p->aq, &wr);
}

/* Datagrams after one that waits for the wire wait as well. */
static void test_datagrams_keep_their_order(void)
{
    LinkPair p = blocked_pair(RDMA_QPT_UD);
    unsigned i;

    for (i = 0; i < 3; i++) {
        link_post_recv(p.a, p.aq, 60 + i, link_sge(p.amr, 8192, 1000));
        link_pair_recv(&p, 70 + i, 0, 1000);
    }
    post_datagram(&p, p.a, 1);
    post_datagram(&p, p.b, 2);
    post_datagram(&p, p.a, 3);
    post_datagram(&p, p.b, 4);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 60, RDMA_WC_SUCCESS);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    unblock(&p);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_expect(p.a, 61, RDMA_WC_SUCCESS);
    link_expect(p.a, 3, RDMA_WC_SUCCESS);
    link_expect(p.a, 4, RDMA_WC_SUCCESS);
    link_expect(p.b, 70, RDMA_WC_SUCCESS);
    link_expect(p.b, 71, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_flush_goes_on(void)
{
    LinkPair p = blocked_pair(RDMA_QPT_RC);

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 5000);
    link_pump(p.l);
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    link_expect(p.a, 1, RDMA_WC_WR_FLUSH_ERR);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 5000);
    link_post_recv(p.a, p.aq, 3, link_sge(p.amr, 0, 10));
    link_pump(p.l);
    link_expect(p.a, 2, RDMA_WC_WR_FLUSH_ERR);
    link_expect(p.a, 3, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(p.l->sent[0], ==, 0);
    link_pair_free(&p);
}

/* A QP that waits for the wire can be reset and destroyed. */
static void test_waiting_qp_can_be_destroyed(void)
{
    LinkPair p = blocked_pair(RDMA_QPT_RC);
    LinkQpSpec spec = link_spec();

    spec.qpn[0] = 30;
    spec.qpn[1] = 31;
    link_connect(p.l, &spec);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 5000);
    p.aq = 30;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 5000);
    link_pump(p.l);
    g_assert_cmpint(roce_qp_destroy(p.a->e, 30), ==, 0);
    link_modify(p.a, 2, RDMA_QPS_RESET);
    roce_set_tx_blocked(p.a->e, false);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(p.l->sent[0], ==, 0);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    link_pair_free(&p);
}

/* While there is no link, nothing waits for the wire. */
static void test_link_down(void)
{
    LinkPair p = blocked_pair(RDMA_QPT_UD);

    link_set_up(p.a, false);
    post_datagram(&p, p.b, 1);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(p.l->sent[0], ==, 0);
    link_pair_free(&p);
}

/* The engine must have no deadline of now, which would make the owner spin. */
static void test_no_deadline_while_waiting(void)
{
    LinkPair p = blocked_pair(RDMA_QPT_RC);

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 5000);
    link_pump(p.l);
    g_assert_false(p.a->woken);
    g_assert_true(roce_next_deadline(p.a->e) == ROCE_NO_DEADLINE);
    unblock(&p);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/*
 * A QP in ERR still has to answer a READ. When it can send the answer, the
 * region is gone. The QP must not raise the events of ERR again.
 */
static void test_events_of_err_come_once(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = blocked_pair(RDMA_QPT_RC);
    RdmaSge sge = link_sge(p.amr, 0, 4096);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_READ, 1, &sge);
    LinkMr *mr = link_mr(p.b, 4096, LINK_ALL_ACCESS);

    roce_set_tx_blocked(p.a->e, false);
    link_srq(p.b, 1, LINK_PDN);
    spec.qpn[0] = 4;
    spec.qpn[1] = 5;
    spec.srq[1] = true;
    link_connect(p.l, &spec);
    roce_set_tx_blocked(p.b->e, true);
    wr.wr.rdma.remote_addr = mr->attr.iova;
    wr.wr.rdma.rkey = mr->attr.rkey;
    link_post(p.a, 4, &wr);
    wr.opcode = RDMA_WR_RDMA_WRITE;
    wr.wr.rdma.rkey ^= 1;
    link_post(p.a, 4, &wr);
    link_run(p.l, 2 * LINK_DELAY);
    g_assert_cmpint(link_state(p.b, 5), ==, RDMA_QPS_ERR);

    g_assert_cmpint(roce_mr_destroy(p.b->e, mr->attr.mrn), ==, 0);
    roce_set_tx_blocked(p.b->e, false);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_REM_ACCESS_ERR);
    g_assert_cmpuint(link_events(p.b, RDMA_EVENT_LAST_WQE_REACHED), ==, 1);
    g_assert_cmpuint(link_events(p.b, RDMA_EVENT_QP_ACCESS_ERR), ==, 1);
    g_assert_cmpuint(p.b->events->len, ==, 2);
    link_mr_free(mr);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/blocked/loopback-goes-on", test_loopback_goes_on);
    g_test_add_func("/blocked/datagrams-keep-their-order",
                    test_datagrams_keep_their_order);
    g_test_add_func("/blocked/flush-goes-on", test_flush_goes_on);
    g_test_add_func("/blocked/waiting-qp-can-be-destroyed",
                    test_waiting_qp_can_be_destroyed);
    g_test_add_func("/blocked/link-down", test_link_down);
    g_test_add_func("/blocked/no-deadline-while-waiting",
                    test_no_deadline_while_waiting);
    g_test_add_func("/blocked/events-of-err-come-once",
                    test_events_of_err_come_once);
    return g_test_run();
}
