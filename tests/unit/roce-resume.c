/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resumption: an engine continues after a pause in which frames were lost, or
 * another engine continues with its state.
 */
#include <errno.h>
#include "roce-link.h"

/*
 * After a pause, neither side waits for timers: all posted work completes
 * within the time of a few frames.
 */
static void resume_after_pause(bool a, bool b, uint32_t opcode, unsigned n,
                               bool move)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned i;

    /* A WRITE that completes before the pause */
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 0, 0, 100);
    link_run(p.l, LINK_FOREVER);
    link_expect(p.a, 0, RDMA_WC_SUCCESS);

    for (i = 1; i <= n; i++) {
        link_pair_post(&p, opcode, i, 0, 3000);
    }
    /* The requests are sent, and they or their responses are lost. */
    if (b) {
        p.b->stopped = true;
    } else {
        link_run(p.l, LINK_DELAY / 2);
    }
    p.a->stopped = a;
    link_run(p.l, 3 * LINK_DELAY);
    if (move && a) {
        link_move(p.a);
    }
    if (move && b) {
        link_move(p.b);
    }
    p.a->stopped = p.b->stopped = false;
    if (a) {
        roce_resume(p.a->e, p.l->now);
    }
    if (b) {
        roce_resume(p.b->e, p.l->now);
    }
    link_run(p.l, 20 * LINK_DELAY);
    for (i = 1; i <= n; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 0);
    link_pair_free(&p);
}

static void test_retransmits_at_once(void)
{
    static const uint32_t opcodes[] = {
        RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ,
    };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(opcodes); i++) {
        for (unsigned n = 1; n <= 4; n += 3) {
            resume_after_pause(true, false, opcodes[i / 2], n, i % 2);
            resume_after_pause(false, true, opcodes[i / 2], n, i % 2);
            resume_after_pause(true, true, opcodes[i / 2], n, i % 2);
        }
    }
}

/*
 * A frame may arrive long after it was sent, if it stood in a queue while the
 * guest migrated. A duplicate READ of a region that was invalidated since is no
 * error.
 */
static void test_late_duplicate(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    g_autofree uint8_t *late = NULL;
    LinkFrame *f;
    RdmaQpAttr attr;
    size_t len;

    link_pair_post(&p, RDMA_WR_RDMA_READ, 1, 0, 3000);
    link_run(p.l, LINK_DELAY / 2);
    f = g_queue_peek_head(&p.l->frames);
    len = f->len;
    late = g_memdup2(f->data, len);
    link_run(p.l, LINK_FOREVER);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    roce_mr_destroy(p.b->e, p.bmr->attr.mrn);
    roce_rx(p.b->e, late, len, p.l->now);
    link_run(p.l, LINK_FOREVER);
    g_assert_cmpint(roce_qp_query(p.b->e, p.bq, &attr), ==, 0);
    g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_RTS);
    g_assert_cmpuint(roce_stats(p.b->e)->naks_sent, ==, 0);
    link_pair_free(&p);
}

/* A READ that was answered before RESET is not the last request after RESET. */
static void test_resume_after_reset(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaQpAttr attr;

    link_pair_post(&p, RDMA_WR_RDMA_READ, 1, 0, 3000);
    link_run(p.l, LINK_FOREVER);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    for (unsigned side = 0; side < 2; side++) {
        LinkNode *n = &p.l->node[side];

        link_modify(n, spec.qpn[side], RDMA_QPS_RESET);
        for (unsigned s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
            uint32_t mask = link_attr(p.l, &spec, side, s, &attr);

            g_assert_cmpint(roce_qp_modify(n->e, spec.qpn[side], mask, &attr),
                            ==, 0);
        }
    }
    p.b->stopped = true;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 3000);
    link_run(p.l, 3 * LINK_DELAY);
    p.b->stopped = false;
    roce_resume(p.b->e, p.l->now);
    link_run(p.l, 20 * LINK_DELAY);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 0);
    link_pair_free(&p);
}

/* On a connection that lost nothing, resumption changes nothing. */
static void test_resume_without_loss(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.timeout = 0;
    p = link_pair(&spec);
    for (unsigned i = 0; i < 3; i++) {
        roce_resume(p.a->e, p.l->now);
        roce_resume(p.b->e, p.l->now);
        link_run(p.l, LINK_FOREVER);
        link_pair_post(&p, i % 2 ? RDMA_WR_RDMA_READ : RDMA_WR_RDMA_WRITE,
                       i, 0, 3000);
        link_run(p.l, LINK_FOREVER);
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 0);
    link_pair_free(&p);
}

/* A response that a migration interrupts continues where it was. */
static void test_pending_response_is_kept(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    link_pair_post(&p, RDMA_WR_RDMA_READ, 1, 0, 5000);
    roce_set_tx_blocked(p.b->e, true);
    link_run(p.l, 3 * LINK_DELAY);
    g_assert_cmpuint(p.l->sent[1], ==, 0);
    link_move(p.b);
    roce_resume(p.b->e, p.l->now);
    link_run(p.l, 6 * LINK_DELAY);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, 5000));
    g_assert_cmpuint(p.l->sent[1], ==, 5);
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 0);
    link_pair_free(&p);
}

/*
 * A pending NAK stays, because it has more information than the NAK of
 * resumption.
 */
static void test_pending_nak_is_kept(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.min_rnr_timer = 14;
    p = link_pair(&spec);
    roce_set_tx_blocked(p.b->e, true);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 100);
    link_run(p.l, 3 * LINK_DELAY);
    g_assert_cmpuint(roce_stats(p.a->e)->rnr_naks_received, ==, 0);
    roce_resume(p.b->e, p.l->now);
    roce_set_tx_blocked(p.b->e, false);
    link_run(p.l, 6 * LINK_DELAY);
    g_assert_cmpuint(roce_stats(p.a->e)->rnr_naks_received, ==, 1);
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 0);

    link_pair_recv(&p, 2, 0, 100);
    link_run(p.l, LINK_FOREVER);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 2, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/*
 * An engine continues with the state of one whose clock is hours ahead. It
 * waits neither for the end of the RNR NAK timer, nor for that of an ACK, until
 * its own clock is as late.
 */
static void test_clock_is_behind(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.min_rnr_timer = 14;
    p = link_pair(&spec);
    p.l->now += LINK_FOREVER;
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 100);
    link_run(p.l, 3 * LINK_DELAY);
    g_assert_cmpuint(roce_stats(p.a->e)->rnr_naks_received, ==, 1);
    p.a->stopped = true;
    link_pair_recv(&p, 2, 0, 100);
    link_run(p.l, 3 * LINK_DELAY);
    link_move(p.a);
    p.a->stopped = false;
    p.l->now = 1;
    roce_resume(p.a->e, p.l->now);
    link_run(p.l, 700 * LINK_MS);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 2, RDMA_WC_SUCCESS);

    /* A lost request */
    p.l->now += LINK_FOREVER;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 3, 0, 100);
    link_run(p.l, LINK_MS);
    link_expect(p.a, 3, RDMA_WC_SUCCESS);
    link_move(p.a);
    p.l->now = 1;
    roce_resume(p.a->e, p.l->now);
    p.b->stopped = true;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 4, 0, 100);
    link_run(p.l, LINK_MS);
    p.b->stopped = false;
    link_run(p.l, 2 * (INT64_C(4096) << spec.timeout));
    link_expect(p.a, 4, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/resume/retransmits-at-once",
                    test_retransmits_at_once);
    g_test_add_func("/roce/resume/late-duplicate", test_late_duplicate);
    g_test_add_func("/roce/resume/resume-after-reset",
                    test_resume_after_reset);
    g_test_add_func("/roce/resume/resume-without-loss",
                    test_resume_without_loss);
    g_test_add_func("/roce/resume/pending-response-is-kept",
                    test_pending_response_is_kept);
    g_test_add_func("/roce/resume/pending-nak-is-kept",
                    test_pending_nak_is_kept);
    g_test_add_func("/roce/resume/clock-is-behind", test_clock_is_behind);
    return g_test_run();
}
