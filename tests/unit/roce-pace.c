/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rate limits of QPs and static rates of paths: QPs with a limit keep to it,
 * and QPs without one are not affected.
 */
#include <string.h>
#include "roce-link.h"

#define GRH 40
/* Codes of static rates (IBTA 15.2.5.16) */
#define RATE_2_5_GBPS 2
#define RATE_100_GBPS 16

typedef struct Meter {
    uint64_t bytes[2];              /* by node, payload frames only */
    int64_t last[2];                /* ns, the last of them */
} Meter;

static bool meter(RoceLink *l, unsigned from, const uint8_t *frame,
                  size_t len, void *opaque)
{
    Meter *m = opaque;

    if (len > 200) {
        m->bytes[from] += len;
        m->last[from] = l->now;
    }
    return true;
}

static void attach_meter(LinkPair *p, Meter *m)
{
    memset(m, 0, sizeof(*m));
    p->l->filter = meter;
    p->l->filter_opaque = m;
}

static void set_limit(LinkNode *n, uint32_t qpn, uint32_t kbps)
{
    RdmaQpAttr attr = { .rate_limit = kbps }, got;

    g_assert_cmpint(roce_qp_modify(n->e, qpn, RDMA_QP_RATE_LIMIT, &attr),
                    ==, 0);
    g_assert_cmpint(roce_qp_query(n->e, qpn, &got), ==, 0);
    g_assert_cmpuint(got.rate_limit, ==, kbps);
}

/* The time in ns that @bytes take at @kbps */
static int64_t duration(uint64_t bytes, uint32_t kbps)
{
    return bytes * 8 * 1000000 / kbps;
}

/*
 * Did node @side need the time that its bytes take at @kbps? It may make up a
 * millisecond, does not pause after the last frame, and the link adds its
 * delay.
 */
static void check_rate(const Meter *m, unsigned side, int64_t start,
                       uint32_t kbps)
{
    int64_t want = duration(m->bytes[side], kbps);
    int64_t took = m->last[side] - start;

    g_assert_cmpint(took, >=, want - 2 * LINK_MS - duration(4200, kbps));
    g_assert_cmpint(took, <=, want + want / 50 + LINK_MS);
}

static LinkPair typed_pair(RdmaQpType type)
{
    LinkQpSpec spec = link_spec();

    spec.type = type;
    return link_pair(&spec);
}

static void test_connected(gconstpointer data)
{
    static const uint32_t limits[] = { 3000, 40000, 400000 };
    RdmaQpType type = GPOINTER_TO_UINT(data);
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(limits); i++) {
        LinkPair p = typed_pair(type);
        int64_t start = p.l->now;
        Meter m;

        attach_meter(&p, &m);
        set_limit(p.a, p.aq, limits[i]);
        link_fill(p.amr, i);
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LINK_PAIR_MEM);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        g_assert_true(link_same(p.amr, 0, p.bmr, 0, LINK_PAIR_MEM));
        g_assert_cmpuint(m.bytes[0], >, LINK_PAIR_MEM);
        check_rate(&m, 0, start, limits[i]);
        /* A slow requester has no timeouts. */
        g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 0);
        link_pair_free(&p);
    }
}

static void test_datagrams(void)
{
    LinkPair p = typed_pair(RDMA_QPT_UD);
    int64_t start = p.l->now;
    unsigned i;
    Meter m;

    attach_meter(&p, &m);
    set_limit(p.a, p.aq, 20000);
    for (i = 0; i < 60; i++) {
        RdmaSge sge = link_sge(p.amr, 0, 1000);
        RdmaSendWr wr = link_wr(RDMA_WR_SEND, i, &sge);

        wr.wr.ud.remote_qpn = p.bq;
        wr.wr.ud.remote_qkey = 0x1234;
        wr.wr.ud.av = link_av(p.a, p.b, false);
        link_post(p.a, p.aq, &wr);
        link_pair_recv(&p, 100 + i, 0, 1000 + GRH);
    }
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 0; i < 60; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
        link_expect(p.b, 100 + i, RDMA_WC_SUCCESS);
    }
    check_rate(&m, 0, start, 20000);
    link_pair_free(&p);
}

/*
 * The static rate of a datagram's own address vector; unknown codes do not
 * limit
 */
static void test_static_rate_of_datagrams(void)
{
    static const struct {
        uint8_t rate;
        uint32_t limit;
        uint32_t kbps;
    } cases[] = {
        { RATE_2_5_GBPS, 0, 2500000 },
        { RATE_2_5_GBPS, 50000, 50000 },
        { RATE_2_5_GBPS, 4000000, 2500000 },
        { RATE_100_GBPS, 0, 0 },
        { 0, 0, 0 },
        { 1, 0, 0 },
        { 255, 0, 0 },
    };
    unsigned c, i;

    for (c = 0; c < G_N_ELEMENTS(cases); c++) {
        LinkPair p = typed_pair(RDMA_QPT_UD);
        int64_t start = p.l->now;
        Meter m;

        attach_meter(&p, &m);
        set_limit(p.a, p.aq, cases[c].limit);
        for (i = 0; i < 4000; i++) {
            RdmaSge sge = link_sge(p.amr, 0, 4096);
            RdmaSendWr wr = link_wr(RDMA_WR_SEND, i, &sge);

            wr.wr.ud.remote_qpn = p.bq;
            wr.wr.ud.remote_qkey = 0x1234;
            wr.wr.ud.av = link_av(p.a, p.b, false);
            wr.wr.ud.av.static_rate = cases[c].rate;
            if (!link_send_room(p.a, p.aq)) {
                link_run(p.l, 4 * LINK_MS);
            }
            while (link_wcs(p.a)) {
                link_wc(p.a);
            }
            link_post(p.a, p.aq, &wr);
            if (!cases[c].kbps) {
                link_pump(p.l);
                g_assert_cmpuint(p.l->sent[0], ==, i + 1);
            }
        }
        link_run(p.l, LINK_FOREVER);
        if (cases[c].kbps) {
            int64_t want = duration(m.bytes[0], cases[c].kbps);

            g_assert_cmpint(m.last[0] - start, >=, want - 2 * LINK_MS);
        }
        link_pair_free(&p);
    }
}

static void test_static_rate_of_a_connection(void)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);
    RdmaQpAttr attr = { .ah_attr = link_av(p.a, p.b, false) };
    int64_t start;
    unsigned i;
    Meter m;

    attr.ah_attr.static_rate = RATE_2_5_GBPS;
    link_modify(p.a, p.aq, RDMA_QPS_SQD);
    g_assert_cmpint(roce_qp_modify(p.a->e, p.aq, RDMA_QP_AV, &attr),
                    ==, 0);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    attach_meter(&p, &m);
    start = p.l->now;
    for (i = 0; i < 60; i++) {
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, i, 0, LINK_PAIR_MEM);
    }
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 0; i < 60; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    check_rate(&m, 0, start, 2500000);
    link_pair_free(&p);
}

/* The responder paces READ responses. */
static void test_read_responses(void)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);
    int64_t start = p.l->now;
    Meter m;

    attach_meter(&p, &m);
    set_limit(p.b, p.bq, 50000);
    link_fill(p.bmr, 9);
    link_pair_post(&p, RDMA_WR_RDMA_READ, 1, 0, LINK_PAIR_MEM);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, LINK_PAIR_MEM));
    check_rate(&m, 1, start, 50000);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 0);
    link_pair_free(&p);
}

static void connect_more(LinkPair *p, uint32_t aq, uint32_t bq)
{
    LinkQpSpec spec = link_spec();

    spec.qpn[0] = aq;
    spec.qpn[1] = bq;
    link_connect(p->l, &spec);
}

/*
 * A paused QP acknowledges requests without delay and does not delay other QPs.
 */
static void test_others_do_not_wait(void)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);
    uint32_t aq = p.aq;
    unsigned i;

    connect_more(&p, 10, 11);
    set_limit(p.a, p.aq, 1000);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LINK_PAIR_MEM);
    g_assert_false(link_run(p.l, 5 * LINK_MS));
    p.aq = 10;
    for (i = 0; i < 60; i++) {
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 100 + i, 0, LINK_PAIR_MEM);
    }
    g_assert_false(link_run(p.l, 5 * LINK_MS));
    for (i = 0; i < 60; i++) {
        link_expect(p.a, 100 + i, RDMA_WC_SUCCESS);
    }
    p.aq = aq;

    link_post_recv(p.a, p.aq, 50, link_sge(p.amr, 0, 4096));
    {
        RdmaSge sge = link_sge(p.bmr, 0, 4096);
        RdmaSendWr wr = link_wr(RDMA_WR_SEND, 51, &sge);

        link_post(p.b, p.bq, &wr);
    }
    g_assert_false(link_run(p.l, LINK_MS));
    link_expect(p.a, 50, RDMA_WC_SUCCESS);
    link_expect(p.b, 51, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_limit_lifted_during_a_message(void)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);

    /* A packet takes 9 s. */
    set_limit(p.a, p.aq, 1);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LINK_PAIR_MEM);
    g_assert_false(link_run(p.l, 20 * LINK_MS));
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    set_limit(p.a, p.aq, 0);
    link_run(p.l, LINK_MS);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_end_during_a_pause(gconstpointer data)
{
    RdmaQpState to = GPOINTER_TO_UINT(data);
    LinkPair p = typed_pair(RDMA_QPT_RC);
    int64_t then;

    set_limit(p.a, p.aq, 1);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LINK_PAIR_MEM);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 10);
    g_assert_false(link_run(p.l, 20 * LINK_MS));
    link_modify(p.a, p.aq, to);
    if (to == RDMA_QPS_ERR) {
        link_expect(p.a, 1, RDMA_WC_WR_FLUSH_ERR);
        link_expect(p.a, 2, RDMA_WC_WR_FLUSH_ERR);
    }
    then = p.l->now;
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpint(p.l->now - then, <, LINK_MS);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpint(roce_qp_destroy(p.a->e, p.aq), ==, 0);
    link_pair_free(&p);
}

/* Retransmissions keep to the rate as well. */
static void test_lossy(void)
{
    LinkPair p = typed_pair(RDMA_QPT_RC);
    int64_t start = p.l->now;
    unsigned i;
    Meter m;

    attach_meter(&p, &m);
    p.l->faults = (LinkFaults) { .loss = 300, .dup = 300, .reorder = 300 };
    set_limit(p.a, p.aq, 100000);
    link_fill(p.amr, 3);
    for (i = 0; i < 8; i++) {
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, i, 0, LINK_PAIR_MEM);
    }
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 0; i < 8; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, LINK_PAIR_MEM));
    g_assert_cmpint(m.last[0] - start, >=,
                    duration(m.bytes[0], 100000) - 2 * LINK_MS);
    link_assert_faults(&p.l->faults, &p.l->faulty);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/pace/rc", GUINT_TO_POINTER(RDMA_QPT_RC),
                         test_connected);
    g_test_add_data_func("/pace/uc", GUINT_TO_POINTER(RDMA_QPT_UC),
                         test_connected);
    g_test_add_func("/pace/datagrams", test_datagrams);
    g_test_add_func("/pace/static-rate-of-datagrams",
                    test_static_rate_of_datagrams);
    g_test_add_func("/pace/static-rate-of-a-connection",
                    test_static_rate_of_a_connection);
    g_test_add_func("/pace/read-responses", test_read_responses);
    g_test_add_func("/pace/others-do-not-wait", test_others_do_not_wait);
    g_test_add_func("/pace/limit-lifted-during-a-message",
                    test_limit_lifted_during_a_message);
    g_test_add_data_func("/pace/err-during-a-pause",
                         GUINT_TO_POINTER(RDMA_QPS_ERR),
                         test_end_during_a_pause);
    g_test_add_data_func("/pace/reset-during-a-pause",
                         GUINT_TO_POINTER(RDMA_QPS_RESET),
                         test_end_during_a_pause);
    g_test_add_func("/pace/lossy", test_lossy);
    return g_test_run();
}
