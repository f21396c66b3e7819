/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: states and attributes of queue pairs.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define PKEY    RDMA_QP_PKEY_INDEX
#define PORT    RDMA_QP_PORT
#define ACCESS  RDMA_QP_ACCESS_FLAGS
#define QKEY    RDMA_QP_QKEY
#define CUR     RDMA_QP_CUR_STATE
#define MIN_RNR RDMA_QP_MIN_RNR_TIMER
#define PATH    (RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN | \
                 RDMA_QP_RQ_PSN)
#define RETRY   (RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY | \
                 RDMA_QP_MAX_QP_RD_ATOMIC)

/* Linux leaves the port of a GSI QP out, other drivers may name it. */
#define GSI_EITHER_WAY PORT
/* Specifications disagree for which types these are valid. */
#define EITHER_WAY (RDMA_QP_PATH_MIG_STATE | RDMA_QP_RATE_LIMIT)

typedef struct Transition {
    RdmaQpState from;
    RdmaQpState to;
    struct {
        uint32_t required;
        uint32_t optional;
    } rc, uc, ud;                   /* ud: GSI too */
} Transition;

/* IBTA 11.2.5.2, table "QP State Transition Properties" */
static const Transition transitions[] = {
    { RDMA_QPS_RESET, RDMA_QPS_INIT,
      .rc = { PKEY | PORT | ACCESS },
      .uc = { PKEY | PORT | ACCESS },
      .ud = { PKEY | PORT | QKEY } },
    { RDMA_QPS_INIT, RDMA_QPS_INIT,
      .rc = { 0, PKEY | PORT | ACCESS },
      .uc = { 0, PKEY | PORT | ACCESS },
      .ud = { 0, PKEY | PORT | QKEY } },
    { RDMA_QPS_INIT, RDMA_QPS_RTR,
      .rc = { PATH | RDMA_QP_MAX_DEST_RD_ATOMIC | MIN_RNR, PKEY | ACCESS },
      .uc = { PATH, PKEY | ACCESS },
      .ud = { 0, PKEY | QKEY } },
    { RDMA_QPS_RTR, RDMA_QPS_RTS,
      .rc = { RDMA_QP_SQ_PSN | RETRY, CUR | ACCESS | MIN_RNR },
      .uc = { RDMA_QP_SQ_PSN, CUR | ACCESS },
      .ud = { RDMA_QP_SQ_PSN, CUR | QKEY } },
    { RDMA_QPS_RTS, RDMA_QPS_RTS,
      .rc = { 0, CUR | ACCESS | MIN_RNR },
      .uc = { 0, CUR | ACCESS },
      .ud = { 0, CUR | QKEY } },
    { RDMA_QPS_RTS, RDMA_QPS_SQD,
      .rc = { 0, RDMA_QP_EN_SQD_ASYNC_NOTIFY },
      .uc = { 0, RDMA_QP_EN_SQD_ASYNC_NOTIFY },
      .ud = { 0, RDMA_QP_EN_SQD_ASYNC_NOTIFY } },
    { RDMA_QPS_SQD, RDMA_QPS_RTS,
      .rc = { 0, CUR | ACCESS | MIN_RNR },
      .uc = { 0, CUR | ACCESS },
      .ud = { 0, CUR | QKEY } },
    { RDMA_QPS_SQD, RDMA_QPS_SQD,
      .rc = { 0, RDMA_QP_AV | RETRY | RDMA_QP_MAX_DEST_RD_ATOMIC | MIN_RNR |
                 ACCESS | PKEY | PORT },
      .uc = { 0, RDMA_QP_AV | ACCESS | PKEY },
      .ud = { 0, PKEY | QKEY } },
};

static const RdmaQpType qp_types[] = {
    RDMA_QPT_RC, RDMA_QPT_UC, RDMA_QPT_UD, RDMA_QPT_GSI,
};

static void masks_of(const Transition *t, RdmaQpType type,
                     uint32_t *required, uint32_t *optional)
{
    switch (type) {
    case RDMA_QPT_RC:
        *required = t->rc.required;
        *optional = t->rc.optional;
        break;
    case RDMA_QPT_UC:
        *required = t->uc.required;
        *optional = t->uc.optional;
        break;
    default:
        *required = t->ud.required;
        *optional = t->ud.optional;
        break;
    }
    if (type == RDMA_QPT_GSI) {
        *required &= ~GSI_EITHER_WAY;
        *optional &= ~GSI_EITHER_WAY;
    }
}

/* Valid attributes for any transition from @from to @to */
static RdmaQpAttr good_attr(QRdmaQp *qp, RdmaQpState from, RdmaQpState to)
{
    RdmaQpAttr attr = qrdma_good_attr(qp, to);

    attr.cur_qp_state = from;
    attr.qkey = qp->type == RDMA_QPT_GSI ? RDMA_GSI_QKEY : QRDMA_QKEY;
    attr.rq_psn = 0x111111;
    attr.sq_psn = 0x222222;
    attr.dest_qp_num = qp->qpn;
    attr.alt_port_num = 1;
    attr.alt_ah_attr = attr.ah_attr;
    return attr;
}

static uint8_t transit(QRdmaQp *qp, const Transition *t, uint32_t mask)
{
    RdmaQpAttr attr = good_attr(qp, t->from, t->to);

    return qrdma_modify_qp(qp, RDMA_QP_STATE | mask, &attr);
}

static void bring_to(QRdmaQp *qp, RdmaQpState state)
{
    uint32_t required, optional;

    assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_RESET));
    if (state == RDMA_QPS_ERR) {
        bring_to(qp, RDMA_QPS_INIT);
        assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_ERR));
        return;
    }
    for (int i = 0; i < ARRAY_SIZE(transitions); i++) {
        const Transition *t = &transitions[i];

        if (t->from >= state || t->to == t->from || t->to < t->from) {
            continue;
        }
        masks_of(t, qp->type, &required, &optional);
        assert_ok(transit(qp, t, required));
    }
    g_assert_cmpint(qrdma_qp_state(qp), ==, state);
}

typedef struct Qps {
    QRdma *d;
    QRdmaQp *qp[ARRAY_SIZE(qp_types)];
} Qps;

static Qps qps_new(void)
{
    Qps q = { .d = test_device() };
    QRdmaPd *pd = qrdma_alloc_pd(q.d);
    QRdmaCq *cq = qrdma_create_cq(q.d, 32);

    qrdma_setup_gids(q.d, 1);
    for (int i = 0; i < ARRAY_SIZE(qp_types); i++) {
        q.qp[i] = qrdma_create_qp(pd, cq, cq, qp_types[i]);
    }
    return q;
}

typedef void TryTransition(QRdmaQp *qp, const Transition *t,
                           uint32_t required, uint32_t optional);

/* Each transition of each type of QP, from the state that it begins in */
static void test_transitions(const void *data)
{
    TryTransition *const *try = data;
    Qps q = qps_new();
    uint32_t required, optional;

    for (int n = 0; n < ARRAY_SIZE(qp_types); n++) {
        for (int i = 0; i < ARRAY_SIZE(transitions); i++) {
            const Transition *t = &transitions[i];

            g_test_message("type %d, %d to %d", qp_types[n], t->from, t->to);
            masks_of(t, qp_types[n], &required, &optional);
            bring_to(q.qp[n], t->from);
            (*try)(q.qp[n], t, required, optional);
        }
    }
}

static void with_what_it_requires(QRdmaQp *qp, const Transition *t,
                                  uint32_t required, uint32_t optional)
{
    assert_ok(transit(qp, t, required));
    g_assert_cmpint(qrdma_qp_state(qp), ==, t->to);
}

static void without_what_it_requires(QRdmaQp *qp, const Transition *t,
                                     uint32_t required, uint32_t optional)
{
    for (int bit = 0; bit < 32; bit++) {
        if (required & (1u << bit)) {
            assert_status(transit(qp, t, required & ~(1u << bit)), INVAL);
            g_assert_cmpint(qrdma_qp_state(qp), ==, t->from);
        }
    }
}

static void with_what_it_allows(QRdmaQp *qp, const Transition *t,
                                uint32_t required, uint32_t optional)
{
    for (int bit = 0; bit < 32; bit++) {
        if (optional & (1u << bit)) {
            bring_to(qp, t->from);
            assert_ok(transit(qp, t, required | 1u << bit));
            g_assert_cmpint(qrdma_qp_state(qp), ==, t->to);
        }
    }
}

static void with_what_it_does_not_allow(QRdmaQp *qp, const Transition *t,
                                        uint32_t required, uint32_t optional)
{
    uint32_t either = EITHER_WAY |
                      (qp->type == RDMA_QPT_GSI ? GSI_EITHER_WAY : 0);

    for (int bit = 1; bit < 32; bit++) {
        if ((required | optional | either) & (1u << bit)) {
            continue;
        }
        g_test_message("bit %d", bit);
        g_assert_cmpint(transit(qp, t, required | 1u << bit), !=,
                        VIRTIO_RDMA_S_OK);
        g_assert_cmpint(qrdma_qp_state(qp), ==, t->from);
    }
}

static bool has_transition(RdmaQpState from, RdmaQpState to)
{
    if (to == RDMA_QPS_RESET) {
        return true;
    }
    if (to == RDMA_QPS_ERR) {
        /* nothing can fail in RESET */
        return from != RDMA_QPS_RESET;
    }
    for (int i = 0; i < ARRAY_SIZE(transitions); i++) {
        if (transitions[i].from == from && transitions[i].to == to) {
            return true;
        }
    }
    return false;
}

static void test_no_other_transition(void)
{
    Qps q = qps_new();
    const RdmaQpState from[] = {
        RDMA_QPS_RESET, RDMA_QPS_INIT, RDMA_QPS_RTR, RDMA_QPS_RTS,
        RDMA_QPS_SQD, RDMA_QPS_ERR,
    };

    for (int n = 0; n < ARRAY_SIZE(qp_types); n++) {
        for (int i = 0; i < ARRAY_SIZE(from); i++) {
            bring_to(q.qp[n], from[i]);
            for (int to = 0; to < 16; to++) {
                Transition t = { .from = from[i], .to = to };

                if (has_transition(from[i], to)) {
                    continue;
                }
                assert_status(transit(q.qp[n], &t, 0), INVAL);
                for (int k = 0; k < ARRAY_SIZE(transitions); k++) {
                    uint32_t required, optional;

                    masks_of(&transitions[k], qp_types[n], &required,
                             &optional);
                    assert_status(transit(q.qp[n], &t, required), INVAL);
                }
                g_assert_cmpint(qrdma_qp_state(q.qp[n]), ==, from[i]);
            }
        }
    }
}

static void test_reset_and_err_from_everywhere(void)
{
    Qps q = qps_new();

    for (int n = 0; n < ARRAY_SIZE(qp_types); n++) {
        for (RdmaQpState s = RDMA_QPS_RESET; s <= RDMA_QPS_ERR; s++) {
            if (s == RDMA_QPS_SQE) {
                continue;
            }
            bring_to(q.qp[n], s);
            if (s != RDMA_QPS_RESET) {
                assert_ok(qrdma_modify_qp_state(q.qp[n], RDMA_QPS_ERR));
                g_assert_cmpint(qrdma_qp_state(q.qp[n]), ==, RDMA_QPS_ERR);
                bring_to(q.qp[n], s);
            }
            assert_ok(qrdma_modify_qp_state(q.qp[n], RDMA_QPS_RESET));
            g_assert_cmpint(qrdma_qp_state(q.qp[n]), ==, RDMA_QPS_RESET);
        }
    }
}

static void test_current_state_is_verified(void)
{
    Qps q = qps_new();
    Transition t = { RDMA_QPS_RTR, RDMA_QPS_RTS };

    for (int n = 0; n < ARRAY_SIZE(qp_types); n++) {
        uint32_t required, optional;

        masks_of(&transitions[3], qp_types[n], &required, &optional);
        g_assert_cmpint(transitions[3].to, ==, RDMA_QPS_RTS);
        bring_to(q.qp[n], RDMA_QPS_RTR);
        for (int cur = 0; cur < 256; cur += cur < 8 ? 1 : 31) {
            if (cur != RDMA_QPS_RTR) {
                t.from = cur;
                assert_status(transit(q.qp[n], &t, required | CUR), INVAL);
            }
        }
        t.from = RDMA_QPS_RTR;
        assert_ok(transit(q.qp[n], &t, required | CUR));
    }
}

static void test_attributes_come_back(void)
{
    Qps q = qps_new();
    QRdmaQp *rc = q.qp[0];
    RdmaQpAttr want = good_attr(rc, RDMA_QPS_INIT, RDMA_QPS_RTR);
    RdmaQpAttr got;

    /* No field has the value of a field that is left out. */
    want.ah_attr = qrdma_av(q.d, 1);
    want.ah_attr.sl = 3;
    want.ah_attr.static_rate = 10;
    bring_to(rc, RDMA_QPS_INIT);
    assert_ok(qrdma_modify_qp(rc, RDMA_QP_STATE | transitions[2].rc.required,
                              &want));
    assert_ok(transit(rc, &transitions[3], transitions[3].rc.required));
    assert_ok(qrdma_query_qp(rc, &got));
    g_assert_cmpint(got.qp_state, ==, RDMA_QPS_RTS);
    g_assert_cmpint(got.cur_qp_state, ==, RDMA_QPS_RTS);
    g_assert_cmpint(got.path_mtu, ==, want.path_mtu);
    g_assert_cmphex(got.rq_psn, ==, want.rq_psn);
    g_assert_cmphex(got.sq_psn, ==, want.sq_psn);
    g_assert_cmphex(got.dest_qp_num, ==, rc->qpn);
    g_assert_cmpint(got.max_rd_atomic, ==, want.max_rd_atomic);
    g_assert_cmpint(got.max_dest_rd_atomic, ==, want.max_dest_rd_atomic);
    g_assert_cmpint(got.min_rnr_timer, ==, want.min_rnr_timer);
    g_assert_cmpint(got.timeout, ==, want.timeout);
    g_assert_cmpint(got.retry_cnt, ==, want.retry_cnt);
    g_assert_cmpint(got.rnr_retry, ==, want.rnr_retry);
    g_assert_cmpint(got.port_num, ==, 1);
    g_assert_cmpmem(got.ah_attr.dgid, 16, want.ah_attr.dgid, 16);
    g_assert_cmpmem(got.ah_attr.dmac, 6, want.ah_attr.dmac, 6);
    g_assert_cmphex(got.ah_attr.flow_label, ==, want.ah_attr.flow_label);
    g_assert_cmpint(got.ah_attr.sgid_index, ==, want.ah_attr.sgid_index);
    g_assert_cmpint(got.ah_attr.sl, ==, want.ah_attr.sl);
    g_assert_cmpint(got.ah_attr.static_rate, ==, want.ah_attr.static_rate);
    g_assert_cmpint(got.ah_attr.port_num, ==, want.ah_attr.port_num);
    g_assert_cmpint(got.ah_attr.ah_flags, ==, want.ah_attr.ah_flags);
    g_assert_cmpint(got.ah_attr.hop_limit, ==, want.ah_attr.hop_limit);
    g_assert_cmphex(got.ah_attr.traffic_class, ==,
                    want.ah_attr.traffic_class);
    g_assert_cmpuint(got.cap.max_send_wr, ==, 32);
    g_assert_cmpuint(got.cap.max_recv_wr, ==, 32);
    g_assert_cmpuint(got.cap.max_send_sge, ==, 4);
    g_assert_cmpuint(got.cap.max_recv_sge, ==, 4);
    g_assert_cmpuint(got.cap.max_inline_data, ==, 128);

    bring_to(q.qp[2], RDMA_QPS_RTS);
    assert_ok(qrdma_query_qp(q.qp[2], &got));
    g_assert_cmphex(got.qkey, ==, QRDMA_QKEY);
}

static void test_values_out_of_range(void)
{
    Qps q = qps_new();
    QRdmaQp *rc = q.qp[0];
    struct virtio_rdma_config c;
    RdmaQpAttr attr;

    qrdma_get_config(q.d, &c);
#define TRY(from_, to_, required_, field_, value_) do { \
    attr = good_attr(rc, from_, to_); \
    attr.field_ = (value_); \
    g_assert_cmpint(qrdma_modify_qp(rc, RDMA_QP_STATE | (required_), &attr), \
                    !=, VIRTIO_RDMA_S_OK); \
    g_assert_cmpint(qrdma_qp_state(rc), ==, from_); \
} while (0)
#define TO_INIT(field, value) \
    TRY(RDMA_QPS_RESET, RDMA_QPS_INIT, transitions[0].rc.required, field, \
        value)
#define TO_RTR(field, value) \
    TRY(RDMA_QPS_INIT, RDMA_QPS_RTR, transitions[2].rc.required, field, value)
#define TO_RTS(field, value) \
    TRY(RDMA_QPS_RTR, RDMA_QPS_RTS, transitions[3].rc.required, field, value)

    TO_INIT(port_num, 0);
    TO_INIT(port_num, 2);
    TO_INIT(pkey_index, 1);
    TO_INIT(pkey_index, 0xffff);
    bring_to(rc, RDMA_QPS_INIT);
    TO_RTR(path_mtu, 0);
    TO_RTR(path_mtu, 6);
    TO_RTR(path_mtu, 255);
    TO_RTR(max_dest_rd_atomic, le32_to_cpu(c.max_qp_rd_atom) + 1);
    TO_RTR(max_dest_rd_atomic, 255);
    TO_RTR(ah_attr.sgid_index, 2);
    TO_RTR(ah_attr.sgid_index, TEST_GIDS);
    TO_RTR(ah_attr.sgid_index, 255);
    bring_to(rc, RDMA_QPS_RTR);
    TO_RTS(timeout, 32);
    TO_RTS(timeout, 255);
    TO_RTS(max_rd_atomic, le32_to_cpu(c.max_qp_init_rd_atom) + 1);
    TO_RTS(max_rd_atomic, 255);
    bring_to(rc, RDMA_QPS_RTS);
#undef TO_RTS
#undef TO_RTR
#undef TO_INIT
#undef TRY
}

/* UCX asks for flow label 0xffffffff, others for a random PSN of 32 bits. */
static void test_wide_values_are_cut(void)
{
    const uint32_t to_rtr = transitions[2].rc.required;
    Qps q = qps_new();
    QRdmaQp *rc = q.qp[0];
    RdmaQpAttr attr = good_attr(rc, RDMA_QPS_INIT, RDMA_QPS_RTR);
    RdmaQpAttr got;

    bring_to(rc, RDMA_QPS_INIT);
    attr.ah_attr.flow_label = UINT32_MAX;
    attr.rq_psn = 0xab123456;
    attr.dest_qp_num = 0xcd000000 | rc->qpn;
    attr.min_rnr_timer = 0xe0 | 12;
    assert_ok(qrdma_modify_qp(rc, RDMA_QP_STATE | to_rtr, &attr));

    attr = good_attr(rc, RDMA_QPS_RTR, RDMA_QPS_RTS);
    attr.sq_psn = 0xff654321;
    attr.retry_cnt = 8;
    attr.rnr_retry = 255;
    assert_ok(qrdma_modify_qp(rc, RDMA_QP_STATE | transitions[3].rc.required,
                              &attr));

    assert_ok(qrdma_query_qp(rc, &got));
    g_assert_cmphex(got.ah_attr.flow_label, ==, 0xfffff);
    g_assert_cmphex(got.rq_psn, ==, 0x123456);
    g_assert_cmphex(got.sq_psn, ==, 0x654321);
    g_assert_cmphex(got.dest_qp_num, ==, rc->qpn);
    g_assert_cmpint(got.min_rnr_timer, ==, 12);
    g_assert_cmpint(got.retry_cnt, ==, 7);
    g_assert_cmpint(got.rnr_retry, ==, 7);
}

static void test_numbers_without_qp(void)
{
    QRdma *d = test_device();
    const uint32_t bad[] = {
        0, 1, 2, TEST_MAX_QP - 1, TEST_MAX_QP, TEST_MAX_QP + 1, 0xffffff,
        0x7fffffff, UINT32_MAX,
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        QRdmaQp qp = { .dev = d, .qpn = bad[i] };
        RdmaQpAttr attr;

        assert_status(qrdma_modify_qp_state(&qp, RDMA_QPS_ERR), NOENT);
        assert_status(qrdma_query_qp(&qp, &attr), NOENT);
    }
}

/* Other devices have these attributes. Bits that no device has are invalid. */
static void test_alternate_path_is_not_supported(void)
{
    static const struct {
        uint32_t bit;
        uint8_t status;
    } cases[] = {
        { RDMA_QP_ALT_PATH, VIRTIO_RDMA_S_NOTSUPP },
        { RDMA_QP_CAP, VIRTIO_RDMA_S_NOTSUPP },
        { 1u << 31, VIRTIO_RDMA_S_INVAL },
        { RDMA_QP_CAP | 1u << 31, VIRTIO_RDMA_S_NOTSUPP },
    };
    const Transition *to_rtr = &transitions[2];
    Qps q = qps_new();
    QRdmaQp *rc = q.qp[0];

    bring_to(rc, RDMA_QPS_INIT);
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_assert_cmpint(transit(rc, to_rtr, to_rtr->rc.required |
                                cases[i].bit), ==,
                        qrdma_status(cases[i].status));
        g_assert_cmpint(qrdma_qp_state(rc), ==, RDMA_QPS_INIT);
    }
    assert_ok(transit(rc, to_rtr, to_rtr->rc.required));
}

static void test_life_after_reset_is_a_new_one(void)
{
    Qps q = qps_new();

    for (int n = 0; n < ARRAY_SIZE(qp_types); n++) {
        RdmaQpAttr attr;

        bring_to(q.qp[n], RDMA_QPS_RTS);
        assert_ok(qrdma_modify_qp_state(q.qp[n], RDMA_QPS_RESET));
        assert_ok(qrdma_query_qp(q.qp[n], &attr));
        g_assert_cmpuint(attr.cap.max_send_wr, ==, 32);
        bring_to(q.qp[n], RDMA_QPS_RTS);
        assert_ok(qrdma_destroy_qp(q.qp[n]));
    }
}

const QRdmaTest qp_tests[] = {
    { "transitions-with-what-they-require", .run_case = test_transitions,
      .data = &(TryTransition *) { with_what_it_requires } },
    { "transitions-without-what-they-require", .run_case = test_transitions,
      .data = &(TryTransition *) { without_what_it_requires } },
    { "transitions-with-what-they-allow", .run_case = test_transitions,
      .data = &(TryTransition *) { with_what_it_allows } },
    { "transitions-with-what-they-do-not-allow", .run_case = test_transitions,
      .data = &(TryTransition *) { with_what_it_does_not_allow } },
    { "no-other-transition", test_no_other_transition },
    { "reset-and-err-from-everywhere", test_reset_and_err_from_everywhere },
    { "current-state-is-verified", test_current_state_is_verified },
    { "attributes-come-back", test_attributes_come_back },
    { "values-out-of-range", test_values_out_of_range },
    { "wide-values-are-cut", test_wide_values_are_cut },
    { "numbers-without-qp", test_numbers_without_qp },
    { "alternate-path-is-not-supported", test_alternate_path_is_not_supported },
    { "life-after-reset-is-a-new-one", test_life_after_reset_is_a_new_one },
    {}
};
