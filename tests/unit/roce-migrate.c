/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of engines while they work: peers and applications see only a
 * pause. State that no engine could have exported is refused.
 */
#include <errno.h>
#include <string.h>
#include "roce-flow.h"
#include "rdma/roce-state.h"

#define MAX_DOWNTIME 250000         /* ns; the peer retries for 4 ms */

/* Exchanges continue */

static void pause_and_move(RoceLink *l, bool a, bool b)
{
    l->node[0].stopped = a;
    l->node[1].stopped = b;
    link_run(l, g_rand_int_range(l->rand, 0, MAX_DOWNTIME));
    if (a) {
        link_move(&l->node[0]);
    }
    if (b) {
        link_move(&l->node[1]);
    }
    l->node[0].stopped = false;
    l->node[1].stopped = false;
    if (a && g_rand_boolean(l->rand)) {
        roce_resume(l->node[0].e, l->now);
    }
    if (b && g_rand_boolean(l->rand)) {
        roce_resume(l->node[1].e, l->now);
    }
}

static bool move_sometimes(RoceLink *l)
{
    return g_rand_int_range(l->rand, 0, 30) == 0;
}

static void move_first(RoceLink *l)
{
    if (move_sometimes(l)) {
        pause_and_move(l, true, false);
    }
}

static void move_second(RoceLink *l)
{
    if (move_sometimes(l)) {
        pause_and_move(l, false, true);
    }
}

static void move_both(RoceLink *l)
{
    if (move_sometimes(l)) {
        pause_and_move(l, true, true);
    }
}

static void move_any(RoceLink *l)
{
    unsigned which = g_rand_int_range(l->rand, 0, 90);

    if (which < 3) {
        pause_and_move(l, which != 1, which != 2);
    }
}

typedef struct MoveCase {
    const char *name;
    LinkFaults faults;
    void (*disturb)(RoceLink *l);
    bool shared;                    /* SRQs and windows */
} MoveCase;

static const MoveCase move_cases[] = {
    { "one", { 0 }, move_first },
    { "other", { 0 }, move_second },
    { "both", { 0 }, move_both },
    { "any", { 0 }, move_any },
    { "any-with-loss", { .loss = 200 }, move_any },
    { "any-on-bad-link", { 300, 300, 300, 300 }, move_any },
    { "srq-mw", { 0 }, move_any, true },
    { "srq-mw-on-bad-link", { 300, 300, 300, 300 }, move_any, true },
};

static void test_exchange(gconstpointer data)
{
    const MoveCase *j = data;
    LinkFaults faulty = { 0 };
    unsigned seed;

    for (seed = 0; seed < 40; seed++) {
        RdmaMtu mtu = RDMA_MTU_256 + seed % 5;
        const FlowSpec spec = {
            .seed = seed,
            .faults = j->faults,
            .faulty = &faulty,
            .mtu = mtu,
            .max_len = 5 * rdma_mtu_bytes(MIN(mtu, 3)) + 3,
            .timeout = 7,           /* 524 us */
            .srq = j->shared,
            .windows = j->shared,
            .round = 7000 + 500 * (seed % 7),
            .disturb = j->disturb,
        };

        flow_exchange(&spec);
    }
    link_assert_faults(&j->faults, &faulty);
}

/* A pending retransmission happens at the same time as without migration. */
static void test_timer_keeps_its_time(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    int64_t deadline;

    p.b->stopped = true;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 100);
    link_run(p.l, LINK_MS);
    deadline = roce_next_deadline(p.a->e);
    g_assert_cmpint(deadline, !=, ROCE_NO_DEADLINE);
    link_move(p.a);
    g_assert_cmpint(roce_next_deadline(p.a->e), ==, deadline);
    p.b->stopped = false;
    link_run(p.l, LINK_FOREVER);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 1);
    link_pair_free(&p);
}

/* The most resources, whose responses may be requested again */
static void test_all_resources_move(void)
{
    LinkQpSpec spec = link_spec();
    RoceQpImage image;
    LinkPair p;

    spec.rd_atomic[0] = spec.dest_rd_atomic[1] = LINK_MAX_RD_ATOMIC;
    p = link_pair(&spec);
    for (unsigned i = 0; i <= LINK_MAX_RD_ATOMIC; i++) {
        g_assert_cmpint(roce_export_qp(p.b->e, p.bq, &image), ==, 0);
        g_assert_cmpuint(image.n_res, ==, MIN(i, LINK_MAX_RD_ATOMIC));
        roce_qp_image_clear(&image);
        link_pair_post(&p, RDMA_WR_RDMA_READ, i, 0, 10);
        link_run(p.l, LINK_FOREVER);
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    link_pair_free(&p);
}

/* Refusals */

typedef struct Victim {
    LinkPair p;
    RoceQpImage qp;
    RoceMrImage mr;
    RdmaQpCap cap;
} Victim;

/* Set up an engine with READs, SENDs and WRITEs, posted and in progress. */
static void victim_init(Victim *v)
{
    LinkQpSpec spec = link_spec();
    unsigned i;

    v->cap = spec.cap;
    v->p = link_pair(&spec);
    for (i = 0; i < 3; i++) {
        link_pair_post(&v->p, RDMA_WR_RDMA_READ, i, i * 8192, 5000);
        link_pair_post(&v->p, RDMA_WR_RDMA_WRITE, i, 65536, 9000);
    }
    link_post_recv(v->p.a, v->p.aq, 1, link_sge(v->p.amr, 0, 100));
    link_run(v->p.l, LINK_DELAY + 1);
    g_assert_cmpint(roce_export_qp(v->p.a->e, v->p.aq, &v->qp), ==, 0);
    g_assert_cmpint(roce_export_mr(v->p.a->e, v->p.amr->attr.mrn, &v->mr),
                    ==, 0);
    g_assert_cmpuint(v->qp.s.sq.started - v->qp.s.sq.cons, >, 2);
}

static void victim_free(Victim *v)
{
    roce_qp_image_clear(&v->qp);
    roce_mr_image_clear(&v->mr);
    link_pair_free(&v->p);
}

static void expect_refusal(Victim *v, const RoceConfig *config, uint32_t mtu,
                           const char *text)
{
    RoceEngine *e = roce_new(config, &link_ops, v->p.a);
    g_autofree char *why = NULL;
    RdmaQpAttr attr;
    int ret;

    roce_set_link_mtu(e, mtu);
    ret = roce_import_mr(e, &v->mr, &why);
    if (!ret) {
        ret = roce_import_qp(e, &v->qp, &v->cap, &why);
        g_assert_cmpint(roce_qp_query(e, v->qp.init.qpn, &attr), ==,
                        text ? -ENOENT : 0);
    }
    g_assert_cmpint(ret, ==, text ? -EINVAL : 0);
    g_assert_cmpstr(why, ==, text);
    roce_free(e);
}

static void test_refuse_smaller_engine(void)
{
    RoceConfig config = link_config;
    Victim v;

    victim_init(&v);
    expect_refusal(&v, &config, 4200, NULL);
    expect_refusal(&v, &config, 600, "path_mtu 3 (1024 bytes) exceeds 2 (512 "
                   "bytes), the largest for the link's MTU of 600 bytes");
    config.max_qp = 2;
    expect_refusal(&v, &config, 4200, "qpn 2 is not below 2");
    config = link_config;
    config.max_rd_atomic = 2;
    expect_refusal(&v, &config, 4200, "max_rd_atomic 4 exceeds 2");
    config = link_config;
    config.max_mr = 1;
    v.mr.attr.mrn = 2;
    expect_refusal(&v, &config, 4200, "mrn 2 is not in 1..1");
    victim_free(&v);
}

static void test_refuse_bad_fields(void)
{
    Victim v;
    RoceSqState *sq;
    RoceSqState good;

    victim_init(&v);
    sq = &v.qp.s.sq;
    good = *sq;

#define REFUSE(change, text) do {                               \
        change;                                                 \
        expect_refusal(&v, &link_config, 4200, text);           \
        *sq = good;                                             \
    } while (0)

    REFUSE(sq->cons--, "n_send 6 is not 7, the requests from cons "
           "4294967295 to prod 6");
    REFUSE(sq->cur = sq->cons - 1, "queue cursors not in order: cons 0, cur "
           "4294967295, started 6, prod 6");
    REFUSE(sq->started = sq->prod + 1, "queue cursors not in order: cons 0, "
           "cur 6, started 7, prod 6");
    REFUSE(sq->sent = sq->una - 1, "PSN cursors not in order: una 16777200, "
           "psn 26, sent 16777199, end 26");
    REFUSE(sq->end = sq->una + (1 << 24),
           "end 0x1fffff0 has more than 24 bits");
    REFUSE(sq->rd_atomic++,
           "rd_atomic 4 is not 3, the READs and ATOMICs under way");
    REFUSE(sq->rnr_wait = 1, "rnr_wait is 1, but there is no rnr_deadline");
#undef REFUSE

    v.qp.send[0].wqe.length++;
    expect_refusal(&v, &link_config, 4200,
                   "send request 0: length 5001 is not 5000, the sum of its "
                   "SGEs");
    v.qp.send[0].wqe.length--;
    v.mr.attr.npages--;
    expect_refusal(&v, &link_config, 4200,
                   "npages 32 is not 33, the pages of 4096 bytes that cover "
                   "length 131072 from iova 0x7f0010000148");
    v.mr.attr.npages++;
    v.mr.attr.lkey ^= 0x100;
    expect_refusal(&v, &link_config, 4200,
                   "lkey 0x5a is one of mrn 0, not of 1");
    v.mr.attr.lkey ^= 0x100;
    expect_refusal(&v, &link_config, 4200, NULL);
    victim_free(&v);
}

/* The WQE would complete without being sent, and move the cursors. */
static void test_refuse_done_before_started(void)
{
    LinkQpSpec spec = link_spec();
    Victim v = { .cap = spec.cap };

    spec.rd_atomic[0] = 1;
    v.p = link_pair(&spec);
    link_pair_post(&v.p, RDMA_WR_RDMA_READ, 1, 0, 5000);
    link_pair_post(&v.p, RDMA_WR_RDMA_READ, 2, 8192, 5000);
    link_pump(v.p.l);
    g_assert_cmpint(roce_export_qp(v.p.a->e, v.p.aq, &v.qp), ==, 0);
    g_assert_cmpint(roce_export_mr(v.p.a->e, v.p.amr->attr.mrn, &v.mr), ==,
                    0);
    expect_refusal(&v, &link_config, 4200, NULL);
    v.qp.send[1].wqe.done = true;
    expect_refusal(&v, &link_config, 4200,
                   "send request 1: done is 1, but it was not started");
    victim_free(&v);
}

static void test_no_export_with_a_frame_out(void)
{
    g_autofree RoceTxFrame *frame = g_new(RoceTxFrame, 1);
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RoceQpImage image;

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 100);
    g_assert_true(roce_poll_tx(p.a->e, p.l->now, frame));
    g_assert_cmpint(roce_export_qp(p.a->e, p.aq, &image), ==, -EBUSY);
    roce_tx_done(p.a->e, frame);
    g_assert_cmpint(roce_export_qp(p.a->e, p.aq, &image), ==, 0);
    roce_qp_image_clear(&image);
    g_assert_cmpint(roce_export_qp(p.a->e, 40, &image), ==, -ENOENT);
    link_pair_free(&p);
}

/* Mutations */

/* The memory of mutants: all DMA addresses map to it. */
static uint8_t scratch[8192];

static void *ops_map(void *opaque, uint64_t addr, uint64_t *len, bool write)
{
    *len = MIN(*len, sizeof(scratch) - addr % 4096);
    return scratch + addr % 4096;
}

static void ops_unmap(void *opaque, void *host, uint64_t len, bool write,
                      uint64_t access_len)
{
}

static bool ops_atomic(void *opaque, uint64_t addr, uint32_t opcode,
                       uint64_t compare_add, uint64_t swap, uint64_t *old)
{
    *old = addr;
    return true;
}

static bool ops_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                         bool solicited)
{
    return wc->wr_id % 16 != 0;
}

static void ops_retire(void *opaque, uint32_t qpn, RdmaQueue queue,
                       uint32_t count)
{
    g_assert_cmpuint(count, >, 0);
}

static void ops_event(void *opaque, const RdmaEvent *event)
{
}

static void ops_wake(void *opaque)
{
}

/* The number of sends that the consumer of any QP has posted */
static unsigned mutant_sends;

static RdmaNext ops_next_send(void *opaque, uint32_t qpn, bool flush,
                              RdmaSendWr *wr)
{
    if (!mutant_sends) {
        return RDMA_NEXT_NONE;
    }
    mutant_sends--;
    wr->opcode = RDMA_WR_SEND;
    return RDMA_NEXT_WR;
}

static void ops_put_back_send(void *opaque, uint32_t qpn, const RdmaSendWr *wr)
{
    mutant_sends++;
}

static const RoceOps mutant_ops = {
    .map = ops_map,
    .unmap = ops_unmap,
    .atomic = ops_atomic,
    .consumer = {
        .retire = ops_retire,
        .complete = ops_complete,
        .event = ops_event,
        .next_send = ops_next_send,
        .put_back_send = ops_put_back_send,
    },
    .wake = ops_wake,
};

typedef struct Span {
    void *at;
    size_t size;
} Span;

static void mutate_span(GRand *rand, const Span *span)
{
    static const uint32_t values[] = {
        0, 1, 2, 7, 8, 255, 256, 0xffff, 0x7fffff, 0x800000, 0xffffff,
        0x1000000, 0x7fffffff, 0x80000000, 0xffffffff,
    };
    size_t at = g_rand_int_range(rand, 0, span->size);
    uint8_t *p = span->at;
    uint32_t word;

    if (span->size < 4 || g_rand_boolean(rand)) {
        p[at] ^= 1 << g_rand_int_range(rand, 0, 8);
        return;
    }
    at = MIN(at & ~(size_t)3, span->size - 4);
    memcpy(&word, p + at, 4);
    switch (g_rand_int_range(rand, 0, 4)) {
    case 0:
        word++;
        break;
    case 1:
        word--;
        break;
    case 2:
        word = values[g_rand_int_range(rand, 0, G_N_ELEMENTS(values))];
        break;
    default:
        word = g_rand_int(rand);
        break;
    }
    memcpy(p + at, &word, 4);
}

static void mutate(GRand *rand, const Span *spans, unsigned nspans)
{
    unsigned n = g_rand_int_range(rand, 1, 4);

    while (n) {
        const Span *span = &spans[g_rand_int_range(rand, 0, nspans)];

        if (span->size) {
            mutate_span(rand, span);
            n--;
        }
    }
}

static void mutate_qp(GRand *rand, RoceQpImage *image)
{
    const Span spans[] = {
        { &image->init, offsetof(RdmaQpInitAttr, sq_sig_all) },
        { &image->init.send_cqn, offsetof(RdmaQpInitAttr, has_srq) -
                                 offsetof(RdmaQpInitAttr, send_cqn) },
        { &image->init.srqn, sizeof(image->init.srqn) },
        { &image->s.attr, sizeof(image->s.attr) },
        { &image->s.sq, sizeof(image->s.sq) },
        { &image->s.sq, sizeof(image->s.sq) },
        { &image->s.rq, sizeof(image->s.rq) },
        { &image->s.resp, sizeof(image->s.resp) },
        { &image->send_cq_failed, 2 },
        { image->send, image->n_send * sizeof(RoceSendImage) },
        { image->send, image->n_send * sizeof(RoceSendImage) },
        { image->send_sges, image->n_send_sges * sizeof(RdmaSge) },
        { image->recv, image->n_recv * sizeof(RoceRecvWqe) },
        { image->recv_sges, image->n_recv_sges * sizeof(RdmaSge) },
        { image->res, image->n_res * sizeof(RoceResource) },
        { image->res, image->n_res * sizeof(RoceResource) },
    };
    uint32_t *counts[] = {
        &image->n_send, &image->n_send_sges, &image->n_recv,
        &image->n_recv_sges, &image->n_res,
    };
    uint32_t *count = counts[g_rand_int_range(rand, 0, 5)];

    mutate(rand, spans, G_N_ELEMENTS(spans));
    if (g_rand_int_range(rand, 0, 20) == 0) {
        image->init.has_srq = !image->init.has_srq;
    }
    if (*count && g_rand_int_range(rand, 0, 10) == 0) {
        *count -= 1;
    }
}

static void mutate_mr(GRand *rand, RoceMrImage *image)
{
    uint32_t npages = image->attr.npages;
    uint32_t pending_npages = image->pending_npages;
    uint64_t *pages = image->attr.pages;
    const Span spans[] = {
        { &image->attr, offsetof(RdmaMrAttr, pages) },
        { &image->attr.max_pages, sizeof(image->attr.max_pages) },
        { &image->valid, 2 },
        { &image->pending_iova, offsetof(RoceMrImage, pending_pages) -
                                offsetof(RoceMrImage, pending_iova) },
        { pages, npages * sizeof(*pages) },
    };

    mutate(rand, spans, G_N_ELEMENTS(spans));
    /* Do not let counts exceed the length of their arrays. */
    image->attr.npages = MIN(image->attr.npages, npages);
    image->pending_npages = MIN(image->pending_npages, pending_npages);
}

static void mutate_srq(GRand *rand, RoceSrqImage *image)
{
    const Span spans[] = {
        { &image->attr, sizeof(image->attr) },
        { image->recv, image->n_recv * sizeof(RoceRecvWqe) },
        { image->recv_sges, image->n_recv_sges * sizeof(RdmaSge) },
    };

    mutate(rand, spans, G_N_ELEMENTS(spans));
    if (image->n_recv && g_rand_boolean(rand)) {
        image->n_recv--;
    }
}

static void import_srq_mutant(RoceLink *l, LinkNode *n, RoceEngine *e)
{
    static const RdmaSrqAttr most = { .max_wr = 64, .max_sge = 4 };
    g_autofree char *why = NULL;
    RoceSrqImage image;

    if (roce_export_srq(n->e, LINK_SRQ, &image) == 0) {
        if (g_rand_boolean(l->rand)) {
            mutate_srq(l->rand, &image);
        }
        g_assert_true(!roce_import_srq(e, &image, &most, &why) == !why);
        roce_srq_image_clear(&image);
    }
}

/*
 * An engine with accepted state must work, and its objects be exported again.
 */
static void exercise(RoceLink *l, RoceEngine *e, unsigned side, uint32_t qpn)
{
    static RoceTxFrame frame;
    const RdmaQpState states[] = { RDMA_QPS_SQD, RDMA_QPS_ERR,
                                   RDMA_QPS_RESET };
    int64_t now = l->now;
    RoceQpImage image;
    unsigned i, n;
    GList *f;

    roce_export_qp(e, qpn, &image);
    roce_qp_image_clear(&image);
    for (i = 0; i < 4; i++) {
        mutant_sends = 1;
        roce_kick(e, RDMA_SQ, qpn);
        for (n = 0; n < 300 && roce_poll_tx(e, now, &frame); n++) {
            roce_tx_done(e, &frame);
        }
        for (f = l->frames.head; f; f = f->next) {
            const LinkFrame *lf = f->data;

            if (lf->to == side) {
                roce_rx(e, lf->data, lf->len, now);
            }
        }
        now += 300000;
        roce_expire(e, now, now);
    }
    for (i = 0; i < G_N_ELEMENTS(states); i++) {
        RdmaQpAttr attr = { .qp_state = states[i] };

        roce_qp_modify(e, qpn, RDMA_QP_STATE, &attr);
        for (n = 0; n < 300 && roce_poll_tx(e, now, &frame); n++) {
            roce_tx_done(e, &frame);
        }
    }
}

static unsigned mutants, accepted;

static void import_mutant(RoceLink *l, unsigned side, bool mrs)
{
    LinkNode *n = &l->node[side];
    LinkQpSpec spec = link_spec();
    RoceMrImage mr;
    RoceQpImage qp;
    RoceEngine *e;
    char *why;
    uint32_t i;

    e = roce_new(&link_config, &mutant_ops, n);
    roce_set_link_mtu(e, 4200);
    roce_add_gid(e, 0, n->gid4, RDMA_NO_VLAN);
    roce_add_gid(e, 1, n->gid6, RDMA_NO_VLAN);
    for (i = 1; i < n->next_mrn; i++) {
        if (roce_export_mr(n->e, i, &mr) == 0) {
            if (mrs) {
                mutate_mr(l->rand, &mr);
            }
            roce_import_mr(e, &mr, &why);
            g_free(why);
            roce_mr_image_clear(&mr);
        }
    }
    import_srq_mutant(l, n, e);
    g_assert_cmpint(roce_export_qp(n->e, spec.qpn[side], &qp), ==, 0);
    if (!mrs) {
        mutate_qp(l->rand, &qp);
    }
    mutants++;
    if (roce_import_qp(e, &qp, &spec.cap, &why) == 0) {
        accepted++;
        exercise(l, e, side, qp.init.qpn);
    } else {
        g_assert_nonnull(why);
        g_free(why);
    }
    roce_qp_image_clear(&qp);
    roce_free(e);
}

static void import_mutants(RoceLink *l)
{
    unsigned i;

    if (move_sometimes(l)) {
        for (i = 0; i < 20; i++) {
            import_mutant(l, g_rand_int_range(l->rand, 0, 2),
                          g_rand_int_range(l->rand, 0, 6) == 0);
        }
    }
}

static void test_mutants(void)
{
    const LinkFaults faults = { .loss = 300, .dup = 200, .reorder = 200 };
    LinkFaults faulty = { 0 };
    unsigned seed;

    for (seed = 0; seed < 60; seed++) {
        const FlowSpec spec = {
            .seed = seed,
            .faults = faults,
            .faulty = &faulty,
            .mtu = RDMA_MTU_256 + seed % 2,
            .max_len = 2000,
            .timeout = 6,
            .srq = seed % 4 == 3,
            .round = 6000,
            .disturb = import_mutants,
        };

        flow_exchange(&spec);
    }
    g_test_message("%u mutants, %u of them let in", mutants, accepted);
    g_assert_cmpuint(mutants, >, 3000);
    link_assert_faults(&faults, &faulty);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(move_cases); i++) {
        g_autofree char *path = g_strdup_printf("/roce/migrate/exchange/%s",
                                                move_cases[i].name);

        g_test_add_data_func(path, &move_cases[i], test_exchange);
    }
    g_test_add_func("/roce/migrate/timer-keeps-its-time",
                    test_timer_keeps_its_time);
    g_test_add_func("/roce/migrate/all-resources-move",
                    test_all_resources_move);
    g_test_add_func("/roce/migrate/refuse/smaller-engine",
                    test_refuse_smaller_engine);
    g_test_add_func("/roce/migrate/refuse/bad-fields",
                    test_refuse_bad_fields);
    g_test_add_func("/roce/migrate/refuse/done-before-started",
                    test_refuse_done_before_started);
    g_test_add_func("/roce/migrate/refuse/frame-out",
                    test_no_export_with_a_frame_out);
    g_test_add_func("/roce/migrate/mutants", test_mutants);
    return g_test_run();
}
