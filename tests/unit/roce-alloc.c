/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Allocations that fail: each allocation that may fail does so once. The
 * operation is refused, leaves nothing allocated, and succeeds when there is
 * memory again. The tests also check that the engine frees its memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "roce-window.h"
#include "rdma/roce-state.h"

#define QPN 2
#define NO_QUEUES "no memory for queues with max_send_sge 80, " \
                  "max_inline_data 3000 and max_recv_sge "

/* These functions replace those of GLib, also in the engine in this program. */
static unsigned fails_at;           /* the allocation that fails; 0: none */
static unsigned tries;              /* allocations that may fail */
static GHashTable *live;

static void *allocate(gsize n, gsize size)
{
    void *mem = n && size ? calloc(n, size) : NULL;

    if (mem) {
        g_hash_table_add(live, mem);
    }
    return mem;
}

gpointer g_try_malloc0_n(gsize n, gsize size)
{
    tries++;
    return fails_at && !--fails_at ? NULL : allocate(n, size);
}

gpointer g_try_malloc0(gsize size)
{
    return g_try_malloc0_n(1, size);
}

gpointer g_malloc0_n(gsize n, gsize size)
{
    return allocate(n, size);
}

gpointer g_malloc_n(gsize n, gsize size)
{
    return allocate(n, size);
}

gpointer g_malloc0(gsize size)
{
    return allocate(1, size);
}

gpointer g_malloc(gsize size)
{
    return allocate(1, size);
}

gpointer g_memdup2(gconstpointer from, gsize size)
{
    return from && size ? memcpy(allocate(1, size), from, size) : NULL;
}

void (g_free)(gpointer mem)
{
    g_hash_table_remove(live, mem);
    free(mem);
}

/* The objects of a case. Each run has a new @l. */
typedef struct Fixture {
    RoceLink *l;
    RoceEngine *e;
    RoceQpImage image;
    RoceSrqImage srq_image;
    const char *text;               /* the reason of a refused import */
} Fixture;

static RdmaQpInitAttr init_attr(RdmaQpType type, bool srq)
{
    return (RdmaQpInitAttr) {
        .qpn = type == RDMA_QPT_GSI ? RDMA_QPN_GSI : QPN,
        .pdn = LINK_PDN,
        .qp_type = type,
        .cap = link_spec().cap,
        .has_srq = srq,
        .srqn = LINK_SRQ,
    };
}

static int make_qp(Fixture *f)
{
    RdmaQpInitAttr init = init_attr(RDMA_QPT_RC, false);

    return roce_qp_create(f->e, &init);
}

static int make_srq(Fixture *f)
{
    RdmaSrqAttr attr = { .srqn = LINK_SRQ, .max_wr = 8, .max_sge = 4 };

    return roce_srq_create(f->e, &attr);
}

/*
 * Set up a QP of node 1 in RTS, with requests and a receive, to import to node
 * 0.
 */
static void setup_import(Fixture *f, RdmaQpType type, bool srq)
{
    RdmaQpInitAttr init = init_attr(type, srq);
    LinkNode *n = &f->l->node[1];
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, NULL);
    LinkQpSpec spec = link_spec();
    static RoceTxFrame frame;

    wr.wr.ud.av = link_av(n, &f->l->node[0], false);
    spec.type = type;
    for (unsigned i = 0; srq && i < 2; i++) {
        link_srq(&f->l->node[i], 8, LINK_PDN);
    }
    g_assert_cmpint(roce_qp_create(n->e, &init), ==, 0);
    for (unsigned state = RDMA_QPS_INIT; state <= RDMA_QPS_RTS; state++) {
        RdmaQpAttr attr;
        uint32_t mask = link_attr(f->l, &spec, 1, state, &attr);

        g_assert_cmpint(roce_qp_modify(n->e, init.qpn, mask, &attr), ==, 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        link_post(n, init.qpn, &wr);
    }
    /* Requests without an answer, or a datagram that waits for the wire */
    roce_set_tx_blocked(n->e, type != RDMA_QPT_RC);
    while (roce_poll_tx(n->e, f->l->now, &frame)) {
        roce_tx_done(n->e, &frame);
    }
    g_assert_cmpint(roce_export_qp(n->e, init.qpn, &f->image), ==, 0);
    f->text = srq ? NO_QUEUES "0" : NO_QUEUES "80";
}

static void setup_rc_srq(Fixture *f)
{
    setup_import(f, RDMA_QPT_RC, true);
}

static void setup_ud(Fixture *f)
{
    setup_import(f, RDMA_QPT_UD, false);
}

static void setup_gsi(Fixture *f)
{
    setup_import(f, RDMA_QPT_GSI, false);
}

static int import(Fixture *f)
{
    const RdmaQpCap most = link_spec().cap;
    g_autofree char *why = NULL;
    int ret = roce_import_qp(f->e, &f->image, &most, &why);

    g_assert_cmpstr(why, ==, ret ? f->text : NULL);
    return ret;
}

/* Set up an SRQ of node 1 with a receive that a datagram did not fit in. */
static void setup_srq(Fixture *f)
{
    LinkNode *n = &f->l->node[1];
    LinkQpSpec spec = link_spec();
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, NULL);
    RdmaSge none = { 0 };

    spec.type = RDMA_QPT_UD;
    spec.srq[1] = true;
    link_srq(n, 8, LINK_PDN);
    link_connect(f->l, &spec);
    link_post_srq_silently(n, 1, none);
    wr.wr.ud.remote_qpn = spec.qpn[1];
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(&f->l->node[0], n, false);
    link_post(&f->l->node[0], spec.qpn[0], &wr);
    g_assert_true(link_run(f->l, LINK_FOREVER));
    consumer_end_pull(n->consumer);
    g_assert_cmpint(roce_export_srq(n->e, LINK_SRQ, &f->srq_image), ==, 0);
    g_assert_cmpuint(f->srq_image.n_recv, ==, 1);
}

static int import_srq(Fixture *f)
{
    const RdmaSrqAttr most = { .max_wr = 8, .max_sge = 4 };
    g_autofree char *why = NULL;
    int ret = roce_import_srq(f->e, &f->srq_image, &most, &why);

    g_assert_cmpstr(why, ==, ret ? "no memory for a queue with max_wr 8 and "
                    "max_sge 4" : NULL);
    return ret;
}

/* A request that needs operands besides those in its WQE */
static RdmaSendWr flush_wr(void)
{
    RdmaSendWr wr = link_wr(RDMA_WR_FLUSH, 1, NULL);

    wr.wr.flush.type = RDMA_FLUSH_GLOBAL;
    wr.wr.flush.level = RDMA_FLUSH_MR;
    return wr;
}

/* The number of requests that the QP has sent and that have no answer */
static unsigned sends_under_way(Fixture *f)
{
    static RoceTxFrame frame;
    RdmaInspection in;

    while (roce_poll_tx(f->e, f->l->now, &frame)) {
        roce_tx_done(f->e, &frame);
    }
    g_assert_cmpint(roce_inspect(f->e, RDMA_OBJECT_QP, QPN, &in), ==, 0);
    return in.qp.sends;
}

/* Set up a send queue whose first ring is full with one WQE. */
static void setup_queue(Fixture *f)
{
    LinkQpSpec spec = link_spec();
    RdmaSendWr wr = flush_wr();

    link_connect(f->l, &spec);
    link_post(&f->l->node[0], QPN, &wr);
    g_assert_cmpuint(sends_under_way(f), ==, 1);
    consumer_end_pull(f->l->node[0].consumer);
    wr = link_wr(RDMA_WR_SEND, 2, NULL);
    link_post_silently(&f->l->node[0], QPN, &wr);
}

/* If there is no memory for the WQE, it stays with the consumer. */
static int send_one_more(Fixture *f)
{
    roce_kick(f->e, RDMA_SQ, QPN);
    return sends_under_way(f) == 2 ? 0 : -ENOSPC;
}

typedef struct Case {
    const char *name;
    void (*setup)(Fixture *f);
    int (*make)(Fixture *f);
    int error;
    unsigned allocations;
} Case;

static const Case cases[] = {
    { "qp", NULL, make_qp, -ENOMEM, 4 },
    { "srq", NULL, make_srq, -ENOMEM, 1 },
    { "import-srq", setup_srq, import_srq, -EINVAL, 1 },
    { "import-rc-srq", setup_rc_srq, import, -EINVAL, 5 },
    { "import-ud", setup_ud, import, -EINVAL, 5 },
    { "import-gsi", setup_gsi, import, -EINVAL, 5 },
    { "send-queue-grows", setup_queue, send_one_more, -ENOSPC, 4 },
};

/* Let allocation @nth fail. Returns true if there were so many allocations. */
static bool fail_nth(const Case *c, unsigned nth)
{
    Fixture f = { .l = link_new(1) };
    unsigned before;
    bool failed;
    int ret;

    f.e = f.l->node[0].e;
    if (c->setup) {
        c->setup(&f);
    }
    before = g_hash_table_size(live);
    fails_at = nth;
    ret = c->make(&f);
    failed = !fails_at;
    fails_at = 0;
    g_assert_cmpint(ret, ==, failed ? c->error : 0);
    if (failed) {
        g_assert_cmpuint(g_hash_table_size(live), ==, before);
        g_assert_cmpint(c->make(&f), ==, 0);
    }
    roce_qp_image_clear(&f.image);
    roce_srq_image_clear(&f.srq_image);
    link_free(f.l);
    return failed;
}

static void test_each_fails(gconstpointer data)
{
    const Case *c = data;
    unsigned nth = 1;

    while (fail_nth(c, nth)) {
        nth++;
    }
    g_assert_cmpuint(nth - 1, ==, c->allocations);
}

/* A request without memory for its operands completes with an error. */
static void test_no_operands(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSendWr wr = flush_wr();

    link_post(p.a, p.aq, &wr);
    fails_at = 1;
    link_pump(p.l);
    g_assert_cmpuint(fails_at, ==, 0);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_GENERAL_ERR);
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_ERR);
    link_pair_free(&p);
}

/* A queue that holds one WQE at a time needs one slot only. */
static void test_queues_grow_on_demand(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned before = tries;

    for (unsigned i = 0; i < 100; i++) {
        link_pair_recv(&p, i, 0, 8);
        link_pair_post(&p, RDMA_WR_SEND, i, 0, 8);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, i, RDMA_WC_SUCCESS);
        link_expect(p.b, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(tries, ==, before);
    link_pair_free(&p);
}

/*
 * Use each kind of object, with work in progress, and move it to a new engine.
 */
static void use_all(bool moves)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_2);
    LinkNode *n = f.p.b;
    LinkMr *fast = link_fast_mr(n, 8192);
    static const uint8_t group[RDMA_GID_LEN] = { 0xff, 0x0e, [15] = 1 };
    LinkQpSpec spec = link_spec();
    uint8_t data[100] = { 0 };
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, NULL);
    RdmaSendWr reg = link_wr(RDMA_WR_REG_MR, 2, NULL);

    window_bind(&f, 0, 4096, RDMA_ACCESS_REMOTE);
    link_mr_map(fast);
    link_srq(n, 8, LINK_PDN);
    link_post_srq_silently(n, 1, link_sge(f.p.bmr, 0, 8));
    spec.type = RDMA_QPT_UD;
    spec.qpn[0] = spec.qpn[1] = 9;
    spec.srq[1] = true;
    link_connect(f.p.l, &spec);
    g_assert_cmpint(roce_mcast_attach(n->e, 9, group), ==, 0);

    link_pair_post(&f.p, RDMA_WR_RDMA_READ, 3, 0, 5000);
    link_pair_recv(&f.p, 4, 0, 100);
    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = data;
    wr.inline_len = sizeof(data);
    link_post(n, f.p.bq, &wr);
    reg.wr.reg.mrn = fast->attr.mrn;
    reg.wr.reg.key = fast->attr.lkey;
    reg.wr.reg.length = 8192;
    reg.wr.reg.npages = 2;
    reg.wr.reg.pages = g_new0(uint64_t, 2);
    reg.send_flags |= RDMA_SEND_FENCE;
    f.p.l->hold = true;
    link_pair_post(&f.p, RDMA_WR_RDMA_WRITE, 5, 0, 3000);
    link_post(n, f.p.bq, &reg);
    link_run(f.p.l, 2 * LINK_DELAY);
    if (moves) {
        link_move(f.p.a);
        link_move(f.p.b);
    }
    f.p.l->hold = false;
    link_run(f.p.l, LINK_DELAY);
    g_assert_cmpint(roce_qp_destroy(n->e, 9), ==, 0);
    g_assert_cmpint(roce_srq_destroy(n->e, LINK_SRQ), ==, 0);
    g_assert_cmpint(roce_mw_destroy(n->e, f.mwn), ==, 0);
    link_mr_free(fast);
    window_fix_free(&f);
}

static void test_no_leaks(void)
{
    guint before;

    /* Allocations that GLib makes once */
    use_all(true);
    before = g_hash_table_size(live);
    for (unsigned moves = 0; moves < 2; moves++) {
        use_all(moves);
        g_assert_cmpuint(g_hash_table_size(live), ==, before);
    }
}

int main(int argc, char **argv)
{
    live = g_hash_table_new(NULL, NULL);
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/roce/alloc/%s",
                                                cases[i].name);

        g_test_add_data_func(path, &cases[i], test_each_fails);
    }
    g_test_add_func("/roce/alloc/no-operands", test_no_operands);
    g_test_add_func("/roce/alloc/queues-grow-on-demand",
                    test_queues_grow_on_demand);
    g_test_add_func("/roce/alloc/no-leaks", test_no_leaks);
    return g_test_run();
}
