/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: queue pairs and their states. Attributes that a
 * transition needs or allows are those of IBTA 11.2.5.2.
 */
#include "qemu/osdep.h"
#include "internal.h"

#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)
#define RTR_MAY (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RTS_MAY_UC (IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | \
                    IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define RTS_MAY_RC (RTS_MAY_UC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MAY_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define SQD_MAY_RC (IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | \
                    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
                    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | \
                    IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | \
                    IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | \
                    IBV_QP_PATH_MIG_STATE)

typedef struct Transition {
    enum ibv_qp_state from;
    enum ibv_qp_state to;
    int must[3];                    /* RC, UC, UD; -1: not for this type */
    int may[3];
} Transition;

static const Transition transitions[] = {
    { IBV_QPS_RESET, IBV_QPS_INIT,
      { INIT_CONNECTED, INIT_CONNECTED, INIT_UD }, { 0, 0, 0 } },
    { IBV_QPS_INIT, IBV_QPS_INIT, { 0, 0, 0 },
      { INIT_CONNECTED, INIT_CONNECTED, INIT_UD } },
    { IBV_QPS_INIT, IBV_QPS_RTR, { RTR_RC, RTR_UC, 0 },
      { RTR_MAY, RTR_MAY, IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
    { IBV_QPS_RTR, IBV_QPS_RTS, { RTS_RC, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN },
      { RTS_MAY_RC, RTS_MAY_UC, RTS_MAY_UD } },
    { IBV_QPS_RTS, IBV_QPS_RTS, { 0, 0, 0 },
      { RTS_MAY_RC, RTS_MAY_UC, RTS_MAY_UD } },
    { IBV_QPS_RTS, IBV_QPS_SQD, { 0, 0, 0 },
      { IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY,
        IBV_QP_EN_SQD_ASYNC_NOTIFY } },
    { IBV_QPS_SQD, IBV_QPS_RTS, { 0, 0, 0 },
      { RTS_MAY_RC, RTS_MAY_UC, RTS_MAY_UD } },
    { IBV_QPS_SQD, IBV_QPS_SQD, { 0, 0, 0 },
      { SQD_MAY_RC, IBV_QP_AV | RTR_MAY | IBV_QP_PATH_MIG_STATE,
        IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
    { IBV_QPS_SQE, IBV_QPS_RTS, { -1, 0, 0 },
      { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, RTS_MAY_UD } },
};

static bool transition_ok(enum ibv_qp_type type, enum ibv_qp_state from,
                          enum ibv_qp_state to, int mask)
{
    int t = type - IBV_QPT_RC;

    mask &= ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
        return !(mask & ~IBV_QP_CUR_STATE);
    }
    for (size_t i = 0; i < ARRAY_SIZE(transitions); i++) {
        const Transition *tr = &transitions[i];

        if (tr->from == from && tr->to == to && tr->must[t] >= 0) {
            return (mask & tr->must[t]) == tr->must[t] &&
                   !(mask & ~(tr->must[t] | tr->may[t]));
        }
    }
    return false;
}

/* Real drivers cut such values off, log an error in the kernel, or use them. */
static bool too_wide(const struct ibv_qp_attr *attr, int mask)
{
    return ((mask & IBV_QP_AV) && attr->ah_attr.grh.flow_label >> 20) ||
           ((mask & IBV_QP_DEST_QPN) && attr->dest_qp_num >> 24) ||
           ((mask & IBV_QP_RQ_PSN) && attr->rq_psn >> 24) ||
           ((mask & IBV_QP_SQ_PSN) && attr->sq_psn >> 24) ||
           ((mask & IBV_QP_TIMEOUT) && attr->timeout > 31) ||
           ((mask & IBV_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31) ||
           ((mask & IBV_QP_RETRY_CNT) && attr->retry_cnt > 7) ||
           ((mask & IBV_QP_RNR_RETRY) && attr->rnr_retry > 7);
}

static int check_attr(const struct ibv_qp_attr *attr, int mask)
{
    if (too_wide(attr, mask) ||
        ((mask & IBV_QP_PORT) && attr->port_num != 1) ||
        ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index) ||
        ((mask & IBV_QP_PATH_MTU) &&
         (attr->path_mtu < IBV_MTU_256 ||
          attr->path_mtu > fake.port.active_mtu)) ||
        ((mask & IBV_QP_AV) &&
         (!attr->ah_attr.is_global || attr->ah_attr.port_num != 1 ||
          !fake_gid_set(attr->ah_attr.grh.sgid_index))) ||
        ((mask & IBV_QP_MAX_QP_RD_ATOMIC) &&
         attr->max_rd_atomic > fake.attr.max_qp_init_rd_atom) ||
        ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
         attr->max_dest_rd_atomic > fake.attr.max_qp_rd_atom)) {
        return -EINVAL;
    }
    return 0;
}

static void take_attr(struct ibv_qp_attr *to, const struct ibv_qp_attr *from,
                      int mask)
{
#define TAKE(bit, field) do { \
    if (mask & (bit)) { \
        to->field = from->field; \
    } \
} while (0)
    TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    TAKE(IBV_QP_PKEY_INDEX, pkey_index);
    TAKE(IBV_QP_PORT, port_num);
    TAKE(IBV_QP_QKEY, qkey);
    TAKE(IBV_QP_AV, ah_attr);
    TAKE(IBV_QP_PATH_MTU, path_mtu);
    TAKE(IBV_QP_TIMEOUT, timeout);
    TAKE(IBV_QP_RETRY_CNT, retry_cnt);
    TAKE(IBV_QP_RNR_RETRY, rnr_retry);
    TAKE(IBV_QP_RQ_PSN, rq_psn);
    TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(IBV_QP_SQ_PSN, sq_psn);
    TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    TAKE(IBV_QP_DEST_QPN, dest_qp_num);
#undef TAKE
}

static void drop_work(FakeQp *qp)
{
    g_queue_clear_full(&qp->sq, fake_send_free);
    g_queue_clear_full(&qp->rq, g_free);
    qp->send.freed = qp->send.posted;
    qp->recv.freed = qp->recv.posted;
    fake_cq_forget(FAKE(FakeCq, qp->ibv.send_cq), qp);
    fake_cq_forget(FAKE(FakeCq, qp->ibv.recv_cq), qp);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *ibv_pd,
                             struct ibv_qp_init_attr *init)
{
    int err = fake_begin("create_qp");
    FakePd *pd = FAKE(FakePd, ibv_pd);
    FakeQp *qp = NULL;

    fake_check(pd, FAKE_PD);
    fake_check(FAKE(FakeCq, init->send_cq), FAKE_CQ);
    fake_check(FAKE(FakeCq, init->recv_cq), FAKE_CQ);
    if (init->srq) {
        fake_check(FAKE(FakeSrq, init->srq), FAKE_SRQ);
    }
    err = fake_alive(ibv_pd->context, err);
    if (!err && (init->qp_type < IBV_QPT_RC || init->qp_type > IBV_QPT_UD)) {
        err = EOPNOTSUPP;
    }
    if (!err && (init->cap.max_send_wr > fake.attr.max_qp_wr ||
                 init->cap.max_recv_wr > fake.attr.max_qp_wr ||
                 init->cap.max_send_sge > fake.attr.max_sge ||
                 init->cap.max_recv_sge > fake.attr.max_sge ||
                 init->cap.max_inline_data > 512)) {
        err = EINVAL;
    }
    if (!err && fake_full(FAKE_QP, fake.attr.max_qp)) {
        err = ENOMEM;
    }
    if (!err) {
        qp = fake_new(FAKE_QP, sizeof(*qp));
        pd->obj.users++;
        FAKE(FakeCq, init->send_cq)->obj.users++;
        FAKE(FakeCq, init->recv_cq)->obj.users++;
        if (init->srq) {
            FAKE(FakeSrq, init->srq)->obj.users++;
            init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
        }
        g_queue_init(&qp->sq);
        g_queue_init(&qp->rq);
        qp->groups = g_array_new(false, false, sizeof(union ibv_gid));
        qp->init = *init;
        qp->attr.cap = init->cap;
        qp->send.max = init->cap.max_send_wr;
        qp->recv.max = init->cap.max_recv_wr;
        qp->ibv.context = ibv_pd->context;
        qp->ibv.qp_context = init->qp_context;
        qp->ibv.pd = ibv_pd;
        qp->ibv.send_cq = init->send_cq;
        qp->ibv.recv_cq = init->recv_cq;
        qp->ibv.srq = init->srq;
        qp->ibv.handle = qp->obj.number + 0x100000;
        qp->ibv.qp_num = qp->obj.number;
        qp->ibv.qp_type = init->qp_type;
    }
    return fake_end_ptr("create_qp", err, err ? NULL : &qp->ibv,
                        "qp=0x%x type=%d", qp ? qp->obj.number : 0,
                        init->qp_type);
}

/* Called for attributes that ibv_create_qp() cannot express. */
struct ibv_qp *fake_create_qp_ex(struct ibv_context *context,
                                 struct ibv_qp_init_attr_ex *init)
{
    struct ibv_qp *qp;

    if ((init->comp_mask & ~(IBV_QP_INIT_ATTR_PD |
                             IBV_QP_INIT_ATTR_CREATE_FLAGS)) ||
        ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
         (init->create_flags & ~IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    qp = ibv_create_qp(init->pd, (struct ibv_qp_init_attr *)init);
    if (qp) {
        FAKE(FakeQp, qp)->deaf =
            init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
            init->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    }
    return qp;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    int err = fake_begin("modify_qp");
    FakeQp *qp = FAKE(FakeQp, ibv);
    enum ibv_qp_state from, to;

    fake_check(qp, FAKE_QP);
    from = qp->attr.qp_state;
    to = mask & IBV_QP_STATE ? attr->qp_state : from;
    err = fake_alive(ibv->context, err);
    if (!err && ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)) {
        err = EINVAL;
    }
    if (!err && !transition_ok(ibv->qp_type, from, to, mask)) {
        err = EINVAL;
    }
    if (!err) {
        err = -check_attr(attr, mask);
    }
    if (!err) {
        take_attr(&qp->attr, attr, mask);
        if (to == IBV_QPS_RESET) {
            drop_work(qp);
            memset(&qp->attr, 0, sizeof(qp->attr));
            qp->attr.cap = qp->init.cap;
        } else if (to == IBV_QPS_ERR) {
            fake_qp_error(qp);
        }
        qp->attr.qp_state = qp->attr.cur_qp_state = to;
        ibv->state = to;
        if (from == IBV_QPS_RTS && to == IBV_QPS_SQD &&
            (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
            attr->en_sqd_async_notify) {
            fake_event(IBV_EVENT_SQ_DRAINED, ibv->context, &qp->obj);
        }
        fake_run();
    }
    return fake_end("modify_qp", err, "qp=0x%x %d->%d mask=0x%x",
                    qp->obj.number, from, to, mask);
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    FakeQp *qp = FAKE(FakeQp, ibv);
    int err = fake_begin_on("query_qp", qp, FAKE_QP, &ibv->context);

    if (!err) {
        *attr = qp->attr;
        *init = qp->init;
    }
    return fake_end("query_qp", err, "qp=0x%x", qp->obj.number);
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
    FakeQp *qp = FAKE(FakeQp, ibv);
    int err = fake_begin_destroy("destroy_qp", qp, FAKE_QP, &ibv->context);
    uint32_t number;

    number = qp->obj.number;
    if (!err) {
        fake_event_flush(ibv->context, &qp->obj);
        drop_work(qp);
        fake_unbind_qp(qp);
        g_array_free(qp->groups, true);
        FAKE(FakePd, ibv->pd)->obj.users--;
        FAKE(FakeCq, ibv->send_cq)->obj.users--;
        FAKE(FakeCq, ibv->recv_cq)->obj.users--;
        if (ibv->srq) {
            FAKE(FakeSrq, ibv->srq)->obj.users--;
        }
        fake_free(qp);
    }
    return fake_end("destroy_qp", err, "qp=0x%x", number);
}
