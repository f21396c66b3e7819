/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of queue pairs: each QP counts for itself, and their sums are the
 * counters of the engine.
 */
#include <errno.h>
#include "rdma/roce-state.h"
#include "roce-link.h"

static RdmaQpStats stats_of(LinkNode *n, uint32_t qpn)
{
    RdmaInspection in;

    g_assert_cmpint(roce_inspect(n->e, RDMA_OBJECT_QP, qpn, &in), ==, 0);
    g_assert_true(in.qp.has_stats);
    return in.qp.stats;
}

static void run(RoceLink *l)
{
    g_assert_true(link_run(l, LINK_FOREVER));
}

/* One end receives what the other end has sent. */
static void test_packets_and_bytes(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaQpStats a, b;

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 3000);
    run(p.l);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    a = stats_of(p.a, p.aq);
    b = stats_of(p.b, p.bq);
    /* The path MTU is 1024 */
    g_assert_cmpuint(a.tx_frames, ==, 3);
    g_assert_cmpuint(b.rx_frames, ==, 3);
    g_assert_cmpuint(a.tx_bytes, >, 3000);
    g_assert_cmpuint(b.rx_bytes, ==, a.tx_bytes);
    g_assert_cmpuint(b.tx_frames, ==, 1);
    g_assert_cmpuint(a.rx_frames, ==, 1);
    g_assert_cmpuint(a.rx_bytes, ==, b.tx_bytes);
    g_assert_cmpuint(a.loopback_frames + b.loopback_frames, ==, 0);
    link_pair_free(&p);
}

/* Two pairs on a link that loses and doubles frames */
static void test_sums_match_the_engine(void)
{
    static const uint32_t qpns[] = { 2, 4 };
    LinkQpSpec spec = link_spec(), other = link_spec();
    LinkPair p = link_pair(&spec);

    other.qpn[0] = other.qpn[1] = 4;
    link_connect(p.l, &other);
    p.l->faults = (LinkFaults) { .loss = 500, .dup = 500, .reorder = 500 };
    for (unsigned i = 0; i < 200; i++) {
        RdmaSge sge = link_sge(p.amr, 0, 4000);
        RdmaSendWr wr = link_wr(i & 1 ? RDMA_WR_RDMA_READ : RDMA_WR_RDMA_WRITE,
                                i, &sge);
        uint32_t qpn = qpns[i % 3 == 0];

        wr.wr.rdma.rkey = p.bmr->attr.rkey;
        wr.wr.rdma.remote_addr = p.bmr->attr.iova;
        link_post(p.a, qpn, &wr);
        run(p.l);
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    for (unsigned n = 0; n < 2; n++) {
        LinkNode *node = &p.l->node[n];
        const RoceStats *all = roce_stats(node->e);
        RdmaQpStats one = stats_of(node, n ? p.bq : p.aq);
        RdmaQpStats two = stats_of(node, 4);

        g_assert_cmpuint(one.tx_frames, >, 0);
        g_assert_cmpuint(two.tx_frames, >, 0);
#define SUM(field) g_assert_cmpuint(one.field + two.field, ==, all->field)
        SUM(tx_frames);
        SUM(tx_bytes);
        SUM(rx_frames);
        SUM(rx_bytes);
        SUM(retransmits);
        SUM(timeouts);
        SUM(naks_sent);
        SUM(naks_received);
        SUM(rx_duplicates);
        SUM(rx_out_of_sequence);
#undef SUM
        g_assert_cmpuint(all->rx_dropped, ==, 0);
    }
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, >, 0);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_duplicates, >, 0);
    link_assert_faults(&p.l->faults, &p.l->faulty);
    link_pair_free(&p);
}

/* A QP that is its own peer sends no frame to the wire. */
static void test_loopback(void)
{
    LinkQpSpec spec = link_spec();
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkMr *mr = link_mr(n, 4096, LINK_ALL_ACCESS);
    RdmaSge sge = link_sge(mr, 0, 2048);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);
    RdmaQpStats stats;

    link_create(n, &spec, 0);
    for (RdmaQpState to = RDMA_QPS_INIT; to <= RDMA_QPS_RTS; to++) {
        RdmaQpAttr attr;
        uint32_t mask = link_attr(l, &spec, 0, to, &attr);

        attr.dest_qp_num = spec.qpn[0];
        attr.ah_attr = link_av(n, n, false);
        attr.rq_psn = spec.psn[0];
        g_assert_cmpint(roce_qp_modify(n->e, spec.qpn[0], mask, &attr), ==, 0);
    }
    wr.wr.rdma.rkey = mr->attr.rkey;
    wr.wr.rdma.remote_addr = mr->attr.iova + 2048;
    link_post(n, spec.qpn[0], &wr);
    run(l);
    link_expect(n, 1, RDMA_WC_SUCCESS);
    stats = stats_of(n, spec.qpn[0]);
    /* Two packets of 1024 bytes, and an acknowledgement */
    g_assert_cmpuint(stats.loopback_frames, ==, 3);
    g_assert_cmpuint(stats.tx_frames + stats.rx_frames, ==, 0);
    link_mr_free(mr);
    link_free(l);
}

/* A datagram counts for its QP even if its Q_Key is wrong. */
static void test_wrong_qkey(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    RdmaSendWr wr;
    RdmaSge sge;

    spec.type = RDMA_QPT_UD;
    p = link_pair(&spec);
    sge = link_sge(p.amr, 0, 100);
    wr = link_wr(RDMA_WR_SEND, 1, &sge);
    wr.wr.ud.remote_qpn = p.bq;
    wr.wr.ud.remote_qkey = 0x4321;
    wr.wr.ud.av = link_av(p.a, p.b, false);
    link_post(p.a, p.aq, &wr);
    run(p.l);
    g_assert_cmpuint(stats_of(p.a, p.aq).tx_frames, ==, 1);
    g_assert_cmpuint(stats_of(p.b, p.bq).rx_frames, ==, 1);
    g_assert_cmpuint(stats_of(p.b, p.bq).bad_qkey, ==, 1);
    link_pair_free(&p);
}

/* RESET restores the state of a new QP, but keeps the counters. */
static void test_reset_keeps_counters(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 64);
    run(p.l);
    link_modify(p.a, p.aq, RDMA_QPS_RESET);
    g_assert_cmpuint(stats_of(p.a, p.aq).tx_frames, ==, 1);
    link_pair_free(&p);
}

static void test_no_such_qp(void)
{
    RoceLink *l = link_new(1);
    RdmaQpStats stats = {};

    g_assert_cmpint(roce_export_qp_stats(l->node[0].e, 9, &stats), ==,
                    -ENOENT);
    g_assert_cmpint(roce_import_qp_stats(l->node[0].e, UINT32_MAX, &stats), ==,
                    -ENOENT);
    link_free(l);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/qp-stats/packets-and-bytes",
                    test_packets_and_bytes);
    g_test_add_func("/roce/qp-stats/sums-match-the-engine",
                    test_sums_match_the_engine);
    g_test_add_func("/roce/qp-stats/loopback", test_loopback);
    g_test_add_func("/roce/qp-stats/wrong-qkey", test_wrong_qkey);
    g_test_add_func("/roce/qp-stats/reset-keeps-counters",
                    test_reset_keeps_counters);
    g_test_add_func("/roce/qp-stats/no-such-qp", test_no_such_qp);
    return g_test_run();
}
