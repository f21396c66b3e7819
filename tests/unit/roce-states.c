/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pair states: the transitions and attributes that Modify QP accepts, and
 * the effect of RESET, SQD, SQE and ERR on work.
 */
#include <errno.h>
#include <string.h>
#include "roce-link.h"
#include "rdma/qp-check.h"

#define A(name) RDMA_QP_##name
#define ALL_ATTRS 0x3fffffu
#define NUM_STATES (RDMA_QPS_ERR + 1)

static const RdmaQpType types[] = {
    RDMA_QPT_RC, RDMA_QPT_UC, RDMA_QPT_UD, RDMA_QPT_GSI,
};

/*
 * Table 91, written independently of the engine's table: required and optional
 * attributes for each type, in the order of types[]
 */
typedef struct Legal {
    uint8_t from, to;
    uint32_t required[4];
    uint32_t optional[4];
} Legal;

static const Legal legal[] = {
    { RDMA_QPS_RESET, RDMA_QPS_INIT,
      { A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
        A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
        A(PKEY_INDEX) | A(PORT) | A(QKEY),
        A(PKEY_INDEX) | A(QKEY) },
      { 0, 0, 0, A(PORT) } },
    { RDMA_QPS_INIT, RDMA_QPS_INIT,
      { 0 },
      { A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
        A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
        A(PKEY_INDEX) | A(PORT) | A(QKEY),
        A(PKEY_INDEX) | A(QKEY) } },
    { RDMA_QPS_INIT, RDMA_QPS_RTR,
      { A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) |
        A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
        A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN), 0, 0 },
      { A(PKEY_INDEX) | A(ACCESS_FLAGS), A(PKEY_INDEX) | A(ACCESS_FLAGS),
        A(PKEY_INDEX) | A(QKEY), A(PKEY_INDEX) | A(QKEY) } },
    { RDMA_QPS_RTR, RDMA_QPS_RTS,
      { A(SQ_PSN) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) |
        A(MAX_QP_RD_ATOMIC), A(SQ_PSN), A(SQ_PSN), A(SQ_PSN) },
      { A(CUR_STATE) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) |
        A(PATH_MIG_STATE) | A(RATE_LIMIT),
        A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(RATE_LIMIT),
        A(CUR_STATE) | A(QKEY) | A(RATE_LIMIT),
        A(CUR_STATE) | A(QKEY) | A(RATE_LIMIT) } },
    { RDMA_QPS_RTS, RDMA_QPS_RTS,
      { 0 },
      { A(CUR_STATE) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) |
        A(PATH_MIG_STATE) | A(RATE_LIMIT),
        A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(RATE_LIMIT),
        A(CUR_STATE) | A(QKEY) | A(RATE_LIMIT),
        A(CUR_STATE) | A(QKEY) | A(RATE_LIMIT) } },
    { RDMA_QPS_RTS, RDMA_QPS_SQD,
      { 0 },
      { A(EN_SQD_ASYNC_NOTIFY), A(EN_SQD_ASYNC_NOTIFY),
        A(EN_SQD_ASYNC_NOTIFY), A(EN_SQD_ASYNC_NOTIFY) } },
    { RDMA_QPS_SQD, RDMA_QPS_RTS,
      { 0 },
      { A(CUR_STATE) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) |
        A(PATH_MIG_STATE) | A(RATE_LIMIT),
        A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(RATE_LIMIT),
        A(CUR_STATE) | A(QKEY) | A(RATE_LIMIT),
        A(CUR_STATE) | A(QKEY) | A(RATE_LIMIT) } },
    { RDMA_QPS_SQD, RDMA_QPS_SQD,
      { 0 },
      { A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) |
        A(MAX_QP_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) | A(ACCESS_FLAGS) |
        A(PKEY_INDEX) | A(MIN_RNR_TIMER) | A(PATH_MIG_STATE),
        A(AV) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(PATH_MIG_STATE),
        A(PKEY_INDEX) | A(QKEY), A(PKEY_INDEX) | A(QKEY) } },
    { RDMA_QPS_SQE, RDMA_QPS_RTS,
      { 0 },
      { 0, A(CUR_STATE) | A(ACCESS_FLAGS), A(CUR_STATE) | A(QKEY),
        A(CUR_STATE) | A(QKEY) } },
};

static LinkQpSpec typed_spec(RdmaQpType type)
{
    LinkQpSpec spec = link_spec();

    spec.type = type;
    if (type == RDMA_QPT_GSI) {
        spec.qpn[0] = spec.qpn[1] = RDMA_QPN_GSI;
    }
    return spec;
}

static void step(RoceLink *l, const LinkQpSpec *spec, RdmaQpState to)
{
    RdmaQpAttr attr;
    uint32_t mask = link_attr(l, spec, 0, to, &attr);

    g_assert_cmpint(roce_qp_modify(l->node[0].e, spec->qpn[0], mask, &attr),
                    ==, 0);
}

/* Create a QP in @state. Returns false if its type does not have that state. */
static bool bring_to(RoceLink *l, const LinkQpSpec *spec, RdmaQpState state)
{
    LinkNode *n = &l->node[0];
    unsigned s;

    roce_qp_destroy(n->e, spec->qpn[0]);
    link_create(n, spec, 0);
    if (state == RDMA_QPS_ERR) {
        step(l, spec, RDMA_QPS_INIT);
        link_modify(n, spec->qpn[0], RDMA_QPS_ERR);
        return true;
    }
    for (s = RDMA_QPS_INIT; s <= MIN(state, RDMA_QPS_RTS); s++) {
        step(l, spec, s);
    }
    if (state == RDMA_QPS_SQD) {
        link_modify(n, spec->qpn[0], RDMA_QPS_SQD);
    }
    if (state == RDMA_QPS_SQE) {
        RdmaSendWr wr = { .wr_id = 1, .status = RDMA_WC_LOC_QP_OP_ERR };

        if (spec->type == RDMA_QPT_RC) {
            return false;
        }
        link_post(n, spec->qpn[0], &wr);
        link_pump(l);
        link_expect(n, 1, RDMA_WC_LOC_QP_OP_ERR);
    }
    g_assert_cmpint(link_state(n, spec->qpn[0]), ==, state);
    return true;
}

static int try_modify(RoceLink *l, const LinkQpSpec *spec, RdmaQpState from,
                      RdmaQpState to, uint32_t mask)
{
    RdmaQpAttr attr, before, after;
    LinkNode *n = &l->node[0];
    int ret;

    link_attr(l, spec, 0, to, &attr);
    attr.cur_qp_state = from;
    roce_qp_query(n->e, spec->qpn[0], &before);
    ret = roce_qp_modify(n->e, spec->qpn[0], mask, &attr);
    roce_qp_query(n->e, spec->qpn[0], &after);
    if (ret) {
        g_assert_cmpint(ret, ==, -EINVAL);
        g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
    } else {
        g_assert_cmpint(after.qp_state, ==, to);
    }
    return ret;
}

static const Legal *find_legal(RdmaQpState from, RdmaQpState to)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(legal); i++) {
        if (legal[i].from == from && legal[i].to == to) {
            return &legal[i];
        }
    }
    return NULL;
}

/*
 * Try a transition with each required attribute missing, and with each
 * attribute that is not allowed.
 */
static void check_transition(RoceLink *l, unsigned t, RdmaQpState from,
                             RdmaQpState to)
{
    LinkQpSpec spec = typed_spec(types[t]);
    const Legal *legal_here = find_legal(from, to);
    uint32_t required = 0, optional = 0;
    bool ok = legal_here ||
              to == RDMA_QPS_RESET ||
              (to == RDMA_QPS_ERR && from != RDMA_QPS_RESET);
    unsigned bit;

    if (legal_here) {
        required = legal_here->required[t];
        optional = legal_here->optional[t];
    }
    if (!bring_to(l, &spec, from)) {
        return;
    }
    g_assert_cmpint(try_modify(l, &spec, from, to, A(STATE) | required),
                    ==, ok ? 0 : -EINVAL);
    bring_to(l, &spec, from);
    g_assert_cmpint(try_modify(l, &spec, from, to,
                               A(STATE) | required | optional),
                    ==, ok ? 0 : -EINVAL);
    if (!ok) {
        bring_to(l, &spec, from);
        g_assert_cmpint(try_modify(l, &spec, from, to, ALL_ATTRS),
                        ==, -EINVAL);
    }
    for (bit = 1; bit < 26; bit++) {
        const RdmaQpRefusal *r = &l->node[0].refusal;
        uint32_t mask = A(STATE) | required;

        bring_to(l, &spec, from);
        if (required & 1u << bit) {
            g_assert_cmpint(try_modify(l, &spec, from, to,
                                       mask & ~(1u << bit)), ==, -EINVAL);
            g_assert_cmpint(r->type, ==, RDMA_QP_REFUSED_MISSING);
        } else if (!(optional & 1u << bit)) {
            g_assert_cmpint(try_modify(l, &spec, from, to,
                                       mask | 1u << bit), ==, -EINVAL);
            if (!ok) {
                continue;
            }
            g_assert_cmpint(r->type, ==, RDMA_QP_REFUSED_EXTRA);
        } else {
            continue;
        }
        g_assert_cmpstr(r->attr, ==, rdma_qp_attr_name(1u << bit));
        g_assert_cmphex(r->value, ==, mask ^ 1u << bit);
        g_assert_cmphex(r->min, ==, required);
        g_assert_cmphex(r->max, ==, mask | optional);
    }
}

/* The names of libibverbs */
static void test_names(void)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {
        { A(STATE), "qp_state" }, { A(CUR_STATE), "cur_qp_state" },
        { A(EN_SQD_ASYNC_NOTIFY), "en_sqd_async_notify" },
        { A(ACCESS_FLAGS), "qp_access_flags" },
        { A(PKEY_INDEX), "pkey_index" }, { A(PORT), "port_num" },
        { A(QKEY), "qkey" }, { A(AV), "ah_attr" },
        { A(PATH_MTU), "path_mtu" }, { A(TIMEOUT), "timeout" },
        { A(RETRY_CNT), "retry_cnt" }, { A(RNR_RETRY), "rnr_retry" },
        { A(RQ_PSN), "rq_psn" }, { A(MAX_QP_RD_ATOMIC), "max_rd_atomic" },
        { A(ALT_PATH), "alt_ah_attr" }, { A(MIN_RNR_TIMER), "min_rnr_timer" },
        { A(SQ_PSN), "sq_psn" },
        { A(MAX_DEST_RD_ATOMIC), "max_dest_rd_atomic" },
        { A(PATH_MIG_STATE), "path_mig_state" }, { A(CAP), "cap" },
        { A(DEST_QPN), "dest_qp_num" }, { A(RATE_LIMIT), "rate_limit" },
        { 1u << 31, "attr_mask" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_cmpstr(rdma_qp_attr_name(names[i].bit), ==, names[i].name);
    }
}

static void test_transitions(gconstpointer data)
{
    unsigned t = GPOINTER_TO_UINT(data);
    RoceLink *l = link_new(1);
    unsigned from, to;

    for (from = 0; from < NUM_STATES; from++) {
        for (to = 0; to < NUM_STATES; to++) {
            check_transition(l, t, from, to);
        }
    }
    link_free(l);
}

/*
 * Each row has an attribute value that must be refused. The reason names the
 * attribute and the value.
 */
static void test_values(void)
{
    RoceLink *l = link_new(1);
    LinkQpSpec spec = link_spec();
    LinkNode *n = &l->node[0];
    static const uint32_t peers[] = { 0, 1, 0xffffff };
    RdmaQpAttr good[3], attr;
    uint32_t mask[3];
    unsigned i;

#define REFUSED_AS(i, field, given, name) do { \
        attr = good[i]; \
        attr.field = (given); \
        g_assert_cmpint(roce_qp_modify(n->e, 2, mask[i], &attr), ==, \
                        -EINVAL); \
        g_assert_cmpstr(n->refusal.attr, ==, name); \
        g_assert_cmphex(n->refusal.value, ==, attr.field); \
    } while (0)
#define REFUSED(i, field, given) REFUSED_AS(i, field, given, #field)

    for (i = 0; i < 3; i++) {
        mask[i] = link_attr(l, &spec, 0, RDMA_QPS_INIT + i, &good[i]);
    }
    bring_to(l, &spec, RDMA_QPS_RESET);
    REFUSED(0, port_num, 0);
    REFUSED(0, port_num, 2);
    REFUSED(0, pkey_index, 1);
    REFUSED(0, qp_state, 7);
    REFUSED(0, qp_state, 255);

    bring_to(l, &spec, RDMA_QPS_INIT);
    REFUSED(1, path_mtu, 0);
    REFUSED(1, path_mtu, 6);
    REFUSED(1, dest_qp_num, 0x1000000);
    REFUSED(1, max_dest_rd_atomic, LINK_MAX_RD_ATOMIC + 1);
    REFUSED(1, min_rnr_timer, 32);
    REFUSED_AS(1, ah_attr.sgid_index, 2, "ah_attr.grh.sgid_index");
    REFUSED_AS(1, ah_attr.sgid_index, 255, "ah_attr.grh.sgid_index");
    /* The source GID is IPv6, dgid is IPv4. */
    REFUSED_AS(1, ah_attr.sgid_index, 1, "ah_attr.grh.sgid_index");
    REFUSED(1, ah_attr.port_num, 0);
    REFUSED_AS(1, ah_attr.flow_label, 0x100000, "ah_attr.grh.flow_label");
    good[1].ah_attr.dgid[12] = 0xe0;            /* multicast */
    REFUSED_AS(1, ah_attr.dgid[0], 0, "ah_attr.grh.dgid");
    memset(good[1].ah_attr.dgid, 0, RDMA_GID_LEN);
    REFUSED_AS(1, ah_attr.dgid[0], 0, "ah_attr.grh.dgid");
    g_assert_cmpstr(n->refusal.why, ==, "is the zero address");
    link_attr(l, &spec, 0, RDMA_QPS_RTR, &good[1]);
    link_set_mtu(n, 1500);
    REFUSED(1, path_mtu, RDMA_MTU_2048);
    link_set_mtu(n, 4200);
    /* A peer may have any QPN of 24 bits. */
    for (i = 0; i < G_N_ELEMENTS(peers); i++) {
        good[1].dest_qp_num = peers[i];
        bring_to(l, &spec, RDMA_QPS_INIT);
        g_assert_cmpint(roce_qp_modify(n->e, 2, mask[1], &good[1]), ==, 0);
    }

    bring_to(l, &spec, RDMA_QPS_RTR);
    REFUSED(2, timeout, 32);
    REFUSED(2, retry_cnt, 8);
    REFUSED(2, rnr_retry, 8);
    REFUSED(2, max_rd_atomic, LINK_MAX_RD_ATOMIC + 1);
    mask[2] |= A(CUR_STATE);
    REFUSED(2, cur_qp_state, RDMA_QPS_RTS);
    mask[2] |= A(PATH_MIG_STATE);
    good[2].cur_qp_state = RDMA_QPS_RTR;
    REFUSED(2, path_mig_state, 1);
    REFUSED(2, path_mig_state, 2);
    g_assert_cmpint(roce_qp_modify(n->e, 2, mask[2], &good[2]), ==, 0);
    g_assert_cmpint(roce_qp_modify(n->e, 5, mask[2], &good[2]), ==,
                    -ENOENT);
#undef REFUSED
#undef REFUSED_AS
    link_free(l);
}

static void test_create(void)
{
    RoceLink *l = link_new(1);
    RoceEngine *e = l->node[0].e;
    RdmaQpInitAttr init = { .qpn = 2, .qp_type = RDMA_QPT_RC };
    RdmaQpAttr attr;

    g_assert_cmpint(roce_qp_create(e, &init), ==, 0);
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EEXIST);
    init.qpn = LINK_MAX_QP;
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EINVAL);
    init.qpn = 0;
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EINVAL);
    init.qpn = 1;
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EINVAL);
    init.qp_type = RDMA_QPT_GSI;
    init.qpn = 3;
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EINVAL);
    init.qp_type = RDMA_QPT_SMI;
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EINVAL);
    init.qp_type = RDMA_QPT_RC;
    init.cap.max_send_wr = UINT32_MAX;
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EINVAL);

    g_assert_cmpint(roce_qp_destroy(e, 2), ==, 0);
    g_assert_cmpint(roce_qp_destroy(e, 2), ==, -ENOENT);
    g_assert_cmpint(roce_qp_query(e, 2, &attr), ==, -ENOENT);
    link_free(l);
}

static void test_query(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaQpAttr attr;

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 3000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpint(roce_qp_query(p.a->e, p.aq, &attr), ==, 0);
    g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_RTS);
    g_assert_cmpint(attr.cur_qp_state, ==, RDMA_QPS_RTS);
    g_assert_cmpint(attr.path_mtu, ==, spec.mtu);
    g_assert_cmpuint(attr.dest_qp_num, ==, p.bq);
    g_assert_cmpuint(attr.qp_access_flags, ==, spec.access);
    g_assert_cmpuint(attr.sq_psn, ==, spec.psn[0] + 3);
    g_assert_cmpuint(attr.rq_psn, ==, spec.psn[1]);
    g_assert_cmpuint(attr.timeout, ==, spec.timeout);
    g_assert_cmpuint(attr.retry_cnt, ==, spec.retry_cnt);
    g_assert_cmpuint(attr.rnr_retry, ==, spec.rnr_retry);
    g_assert_cmpuint(attr.min_rnr_timer, ==, spec.min_rnr_timer);
    g_assert_cmpuint(attr.max_rd_atomic, ==, 4);
    g_assert_cmpuint(attr.max_dest_rd_atomic, ==, 4);
    g_assert_cmpuint(attr.cap.max_send_wr, ==, 64);
    g_assert_cmpuint(attr.port_num, ==, 1);
    g_assert_cmpmem(attr.ah_attr.dgid, 16, p.b->gid4, 16);
    g_assert_cmpint(roce_qp_query(p.b->e, p.bq, &attr), ==, 0);
    g_assert_cmpuint(attr.rq_psn, ==, spec.psn[0] + 3);
    link_pair_free(&p);
}

/* Sends stay with the consumer until the QP may send or must flush. */
static void test_pulls_sends(void)
{
    static const unsigned taken[NUM_STATES] = {
        [RDMA_QPS_RTS] = 1, [RDMA_QPS_SQE] = 1, [RDMA_QPS_ERR] = 1,
    };
    static const RdmaQpType two[] = { RDMA_QPT_RC, RDMA_QPT_UC };

    for (unsigned c = 0; c < 2 * NUM_STATES; c++) {
        RdmaQpState state = c / 2;
        LinkQpSpec spec = typed_spec(two[c % 2]);
        RoceLink *l = link_new(1);
        LinkNode *n = &l->node[0];
        RdmaSendWr wr = link_wr(RDMA_WR_SEND, 7, NULL);

        if (bring_to(l, &spec, state)) {
            l->node[1].stopped = true;
            link_post(n, 2, &wr);
            link_run(l, LINK_MS);
            g_assert_cmpuint(consumer_sends(n->consumer, 2), ==,
                             !taken[state]);
            g_assert_cmpuint(link_wcs(n), ==,
                             taken[state] && (state != RDMA_QPS_RTS || c % 2));
        }
        link_free(l);
    }
}

/*
 * Receives stay with the consumer until a message needs one or the QP is in
 * ERR.
 */
static void test_pulls_receives(void)
{
    for (unsigned c = 0; c < 2 * NUM_STATES; c++) {
        bool err = c / 2 == RDMA_QPS_ERR;
        LinkQpSpec spec = typed_spec(c % 2 ? RDMA_QPT_UC : RDMA_QPT_RC);
        RoceLink *l = link_new(1);
        LinkNode *n = &l->node[0];
        RdmaSge none = { 0 };

        if (bring_to(l, &spec, c / 2)) {
            link_post_recv(n, 2, 7, none);
            link_run(l, LINK_MS);
            g_assert_cmpuint(consumer_recvs(n->consumer, RDMA_RQ, 2), ==, !err);
            g_assert_cmpuint(link_wcs(n), ==, err);
            g_assert_cmpuint(n->retired[2][RDMA_RQ], ==, err);
            g_assert_cmpint(n->recv_flush, ==, err);
        }
        link_free(l);
    }
}

/* A QP that does not exist, or has no send queue, pulls nothing. */
static void test_kick_without_a_queue(void)
{
    RoceLink *l = link_new(1);
    LinkQpSpec spec = link_spec();
    LinkNode *n = &l->node[0];

    spec.cap.max_send_wr = 0;
    link_connect(l, &spec);
    for (RdmaQueue queue = RDMA_SQ; queue <= RDMA_SRQ; queue++) {
        roce_kick(n->e, queue, 7);
        roce_kick(n->e, queue, LINK_MAX_QP);
        roce_kick(n->e, queue, 2);
    }
    link_pump(l);
    link_modify(n, 2, RDMA_QPS_ERR);
    link_pump(l);
    g_assert_cmpuint(n->next_send_calls, ==, 0);
    link_free(l);
}

static void test_reset_retires_silently(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned i, side, state;

    /* The peer has no receives, so all requests are in progress. */
    for (i = 0; i < 10; i++) {
        link_pair_post(&p, RDMA_WR_SEND, i, 0, 3000);
        link_post_recv(p.a, p.aq, 100 + i, link_sge(p.amr, 0, 10));
    }
    link_run(p.l, 3 * LINK_DELAY);
    link_modify(p.a, p.aq, RDMA_QPS_RESET);
    g_assert_cmpuint(p.a->retired[p.aq][RDMA_SQ], ==, 10);
    /* No message has pulled a receive. */
    g_assert_cmpuint(p.a->retired[p.aq][RDMA_RQ], ==, 0);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(link_wcs(p.a), ==, 0);

    /* The QPs can be connected again with other PSNs. */
    link_modify(p.b, p.bq, RDMA_QPS_RESET);
    spec.psn[0] = 77;
    for (side = 0; side < 2; side++) {
        for (state = RDMA_QPS_INIT; state <= RDMA_QPS_RTS; state++) {
            RdmaQpAttr attr;
            uint32_t mask = link_attr(p.l, &spec, side, state, &attr);

            g_assert_cmpint(roce_qp_modify(p.l->node[side].e, spec.qpn[side],
                                           mask, &attr), ==, 0);
        }
    }
    g_assert_cmpuint(link_send_room(p.a, p.aq), ==, 64);
    link_pair_recv(&p, 50, 0, 3000);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 3000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/*
 * RESET retires the receive of an incomplete message. Others were not pulled.
 */
static void test_reset_retires_the_receive_under_way(void)
{
    enum { LONG = 40000 };          /* more than a window of packets */
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.mtu = RDMA_MTU_256;
    p = link_pair(&spec);
    link_pair_recv(&p, 50, 0, LONG);
    link_pair_recv(&p, 51, 0, LONG);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, LONG);
    link_run(p.l, LINK_DELAY + 1);
    link_modify(p.b, p.bq, RDMA_QPS_RESET);
    g_assert_cmpuint(p.b->retired[p.bq][RDMA_RQ], ==, 1);
    g_assert_cmpuint(consumer_recvs(p.b->consumer, RDMA_RQ, p.bq), ==, 1);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    link_pair_free(&p);
}

static void test_err_flushes_in_order(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    LinkWc entry;
    unsigned i;

    for (i = 0; i < 10; i++) {
        link_pair_post(&p, RDMA_WR_SEND, i, 0, 3000);
        link_post_recv(p.a, p.aq, 100 + i, link_sge(p.amr, 0, 10));
    }
    link_run(p.l, 3 * LINK_DELAY);
    link_modify(p.a, p.aq, RDMA_QPS_ERR);
    for (i = 0; i < 10; i++) {
        entry = link_wc(p.a);
        g_assert_cmpuint(entry.cqn, ==, LINK_SEND_CQ(p.aq));
        g_assert_cmpuint(entry.wc.wr_id, ==, i);
        g_assert_cmpint(entry.wc.status, ==, RDMA_WC_WR_FLUSH_ERR);
        g_assert_cmpuint(entry.wc.qp_num, ==, p.aq);
    }
    for (i = 0; i < 10; i++) {
        entry = link_wc(p.a);
        g_assert_cmpuint(entry.cqn, ==, LINK_RECV_CQ(p.aq));
        g_assert_cmpuint(entry.wc.wr_id, ==, 100 + i);
        g_assert_cmpint(entry.wc.status, ==, RDMA_WC_WR_FLUSH_ERR);
    }
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpuint(p.a->events->len, ==, 0);

    /* WRs posted in ERR are flushed, but not during the post. */
    link_pair_post(&p, RDMA_WR_SEND, 20, 0, 10);
    link_post_recv(p.a, p.aq, 120, link_sge(p.amr, 0, 10));
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_true(p.a->woken);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 20, RDMA_WC_WR_FLUSH_ERR);
    link_expect(p.a, 120, RDMA_WC_WR_FLUSH_ERR);
    link_pair_free(&p);
}

static bool draining(LinkPair *p)
{
    RdmaQpAttr attr;

    roce_qp_query(p->a->e, p->aq, &attr);
    return attr.sq_draining;
}

static void test_sqd_finishes_started_wqes(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned i;

    /* READs 1 and 2 are started; the READ limit holds the others. */
    for (i = 1; i <= 6; i++) {
        link_pair_post(&p, RDMA_WR_RDMA_READ, i, 0, 5000);
    }
    link_pump(p.l);
    link_modify(p.a, p.aq, RDMA_QPS_SQD);
    g_assert_true(draining(&p));
    g_assert_cmpuint(link_events(p.a, RDMA_EVENT_SQ_DRAINED), ==, 0);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_false(draining(&p));
    g_assert_cmpuint(link_events(p.a, RDMA_EVENT_SQ_DRAINED), ==, 1);
    for (i = 1; i <= 4; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(link_wcs(p.a), ==, 0);

    /*
     * In SQD, WRs may be posted, the QP receives, and WQEs with errors wait as
     * well.
     */
    link_pair_post(&p, RDMA_WR_SEND, 7, 0, 100);
    link_post_recv(p.a, p.aq, 99, link_sge(p.amr, 0, 10));
    {
        RdmaSendWr wr = link_wr(RDMA_WR_SEND, 55, NULL);

        link_post(p.b, p.bq, &wr);
    }
    link_pair_recv(&p, 50, 0, 100);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 99, RDMA_WC_SUCCESS);
    link_expect(p.b, 55, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);

    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 5; i <= 7; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(link_events(p.a, RDMA_EVENT_SQ_DRAINED), ==, 1);
    link_pair_free(&p);
}

/* In SQD the rest of a message is sent. */
static void test_sqd_during_a_message(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.mtu = RDMA_MTU_256;
    p = link_pair(&spec);
    link_fill(p.amr, 4);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, LINK_PAIR_MEM);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 10);
    link_pump(p.l);
    g_assert_cmpuint(p.l->sent[0], <, LINK_PAIR_MEM / 256);
    link_modify(p.a, p.aq, RDMA_QPS_SQD);
    g_assert_true(draining(&p));
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, LINK_PAIR_MEM));
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpuint(link_events(p.a, RDMA_EVENT_SQ_DRAINED), ==, 1);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_sqd_of_an_idle_queue(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    link_modify(p.a, p.aq, RDMA_QPS_SQD);
    g_assert_false(draining(&p));
    g_assert_cmpuint(link_events(p.a, RDMA_EVENT_SQ_DRAINED), ==, 1);
    link_pair_free(&p);
}

static void test_comm_est_once(void)
{
    RoceLink *l = link_new(1);
    LinkQpSpec spec = link_spec();
    LinkMr *mr = link_mr(&l->node[1], 4096, LINK_ALL_ACCESS);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, NULL);
    RdmaQpAttr attr;
    uint32_t mask;
    unsigned s;

    bring_to(l, &spec, RDMA_QPS_RTS);
    link_create(&l->node[1], &spec, 1);
    for (s = RDMA_QPS_INIT; s <= RDMA_QPS_RTR; s++) {
        mask = link_attr(l, &spec, 1, s, &attr);
        roce_qp_modify(l->node[1].e, 3, mask, &attr);
    }
    wr.wr.rdma.remote_addr = mr->attr.iova;
    wr.wr.rdma.rkey = mr->attr.rkey;
    link_post(&l->node[0], 2, &wr);
    link_post(&l->node[0], 2, &wr);
    g_assert_true(link_run(l, LINK_FOREVER));
    link_expect(&l->node[0], 1, RDMA_WC_SUCCESS);
    link_expect(&l->node[0], 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_events(&l->node[1], RDMA_EVENT_COMM_EST), ==, 1);
    g_assert_cmpint(link_state(&l->node[1], 3), ==, RDMA_QPS_RTR);
    link_mr_free(mr);
    link_free(l);
}

static void test_engine_reset(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaQpAttr attr;

    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 3000);
    link_run(p.l, 3 * LINK_DELAY);
    roce_reset(p.a->e);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpuint(p.a->retired[p.aq][RDMA_SQ], ==, 0);
    g_assert_cmpint(roce_qp_query(p.a->e, p.aq, &attr), ==, -ENOENT);
    g_assert_cmpint(roce_del_gid(p.a->e, 0), ==, -ENOENT);
    g_assert_cmpint(roce_next_deadline(p.a->e), ==, ROCE_NO_DEADLINE);
    g_assert_cmpuint(roce_stats(p.a->e)->tx_frames, ==, 0);
    g_assert_cmpint(roce_port_mtu(p.a->e), ==, RDMA_MTU_4096);

    /* After the reset, a new QP works like the first one. */
    p.a->woken = false;
    g_assert_cmpint(roce_add_gid(p.a->e, 0, p.a->gid4, RDMA_NO_VLAN), ==, 0);
    link_create(p.a, &spec, 0);
    for (unsigned s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
        step(p.l, &spec, s);
    }
    g_assert_true(p.a->woken);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "rc", "uc", "ud", "gsi" };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree char *path = g_strdup_printf("/roce/states/table/%s",
                                                names[i]);

        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_transitions);
    }
    g_test_add_func("/roce/states/names", test_names);
    g_test_add_func("/roce/states/values", test_values);
    g_test_add_func("/roce/states/create", test_create);
    g_test_add_func("/roce/states/query", test_query);
    g_test_add_func("/roce/states/pulls-sends", test_pulls_sends);
    g_test_add_func("/roce/states/pulls-receives", test_pulls_receives);
    g_test_add_func("/roce/states/kick-without-a-queue",
                    test_kick_without_a_queue);
    g_test_add_func("/roce/states/reset-retires-silently",
                    test_reset_retires_silently);
    g_test_add_func("/roce/states/reset-retires-the-receive-under-way",
                    test_reset_retires_the_receive_under_way);
    g_test_add_func("/roce/states/err-flushes-in-order",
                    test_err_flushes_in_order);
    g_test_add_func("/roce/states/sqd-finishes-started-wqes",
                    test_sqd_finishes_started_wqes);
    g_test_add_func("/roce/states/sqd-during-a-message",
                    test_sqd_during_a_message);
    g_test_add_func("/roce/states/sqd-of-an-idle-queue",
                    test_sqd_of_an_idle_queue);
    g_test_add_func("/roce/states/comm-est-once", test_comm_est_once);
    g_test_add_func("/roce/states/engine-reset", test_engine_reset);
    return g_test_run();
}
