/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: the objects, and their failure
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "int.h"

#define QP_ATTR_MASK (RDMA_QP_STATE | RDMA_QP_CUR_STATE | \
                      RDMA_QP_EN_SQD_ASYNC_NOTIFY | RDMA_QP_ACCESS_FLAGS | \
                      RDMA_QP_PKEY_INDEX | RDMA_QP_PORT | RDMA_QP_QKEY | \
                      RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_TIMEOUT | \
                      RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY | \
                      RDMA_QP_RQ_PSN | RDMA_QP_MAX_QP_RD_ATOMIC | \
                      RDMA_QP_MIN_RNR_TIMER | RDMA_QP_SQ_PSN | \
                      RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_PATH_MIG_STATE | \
                      RDMA_QP_DEST_QPN | RDMA_QP_RATE_LIMIT)
/* Not supported: changing the size of queues, and alternate paths. */
#define QP_ATTR_UNSUPPORTED (RDMA_QP_CAP | RDMA_QP_ALT_PATH)

static int check_cap(RdmaHca *hca, const RdmaQpCap *cap, uint32_t max_wr)
{
    const RdmaBackendLimits *l = &hca->limits;

    return rdma_hca_check_range("max_send_wr", cap->max_send_wr, 0, max_wr) &&
           rdma_hca_check_range("max_recv_wr", cap->max_recv_wr, 0, max_wr) &&
           rdma_hca_check_range("max_send_sge", cap->max_send_sge, 0,
                                l->max_send_sge) &&
           rdma_hca_check_range("max_recv_sge", cap->max_recv_sge, 0,
                                l->max_recv_sge) &&
           rdma_hca_check_range("max_inline_data", cap->max_inline_data, 0,
                                l->max_inline_data) ? 0 : -EINVAL;
}

static int check_srq(RdmaHca *hca, RdmaQpInitAttr *init)
{
    RdmaHcaSrq *srq;

    if (!init->has_srq) {
        return 0;
    }
    srq = rdma_hca_table_get(&hca->srqs, init->srqn);
    if (!srq) {
        return -ENOENT;
    }
    init->cap.max_recv_wr = 0;
    init->cap.max_recv_sge = 0;
    return init->qp_type == RDMA_QPT_GSI || srq->error ? -EINVAL : 0;
}

int rdma_hca_qp_check(RdmaHca *hca, RdmaQpInitAttr *init, uint32_t max_wr)
{
    switch (init->qp_type) {
    case RDMA_QPT_GSI:
    case RDMA_QPT_RC:
    case RDMA_QPT_UC:
    case RDMA_QPT_UD:
        break;
    default:
        return -ENOTSUP;
    }
    if (!rdma_hca_table_get(&hca->pds, init->pdn) ||
        !rdma_hca_cq_get(hca, init->send_cqn) ||
        !rdma_hca_cq_get(hca, init->recv_cqn)) {
        return -ENOENT;
    }
    if (init->block_mcast_loopback && init->qp_type != RDMA_QPT_UD) {
        return -EINVAL;
    }
    return check_srq(hca, init) ?: check_cap(hca, &init->cap, max_wr);
}

int rdma_hca_qp_find(RdmaHca *hca, RdmaQpType type, uint32_t *qpn)
{
    RdmaHcaTable *t = &hca->qps;

    if (type == RDMA_QPT_GSI) {
        *qpn = RDMA_QPN_GSI;
        return RDMA_QPN_GSI >= t->end ? -ENOMEM :
               rdma_hca_table_get(t, RDMA_QPN_GSI) ? -EBUSY : 0;
    }
    if (rdma_hca_table_find(t, qpn) && *qpn == RDMA_QPN_GSI) {
        /* The number is reserved for the GSI even if there is no GSI. */
        rdma_hca_table_search_from(t, RDMA_QPN_GSI + 1);
    }
    return rdma_hca_table_find(t, qpn) && *qpn != RDMA_QPN_GSI ? 0 : -ENOMEM;
}

void rdma_hca_qp_add(RdmaHca *hca, RdmaHcaQp *qp)
{
    const RdmaQpInitAttr *init = &qp->init;
    const RdmaQpCap *cap = &init->cap;

    qp->pd = rdma_hca_table_get(&hca->pds, init->pdn);
    qp->send_cq = rdma_hca_cq_get(hca, init->send_cqn);
    qp->recv_cq = rdma_hca_cq_get(hca, init->recv_cqn);
    qp->pd->users++;
    qp->send_cq->users++;
    qp->recv_cq->users++;
    if (init->has_srq) {
        qp->srq = rdma_hca_table_get(&hca->srqs, init->srqn);
        qp->srq->users++;
    }
    rdma_hca_wq_init(&qp->sq, RDMA_SQ, init->qpn, cap->max_send_sge,
                     cap->max_inline_data);
    rdma_hca_wq_init(&qp->rq, RDMA_RQ, init->qpn, cap->max_recv_sge, 0);
    rdma_hca_table_set(&hca->qps, init->qpn, qp);
}

static void cq_forget(RdmaHca *hca, RdmaHcaCq *cq, const RdmaHcaQp *qp)
{
    if (cq->ops->forget_qp) {
        cq->ops->forget_qp(hca, cq, qp);
    }
}

/* Drop completions of the QP that were not written yet. */
static void forget_completions(RdmaHca *hca, RdmaHcaQp *qp)
{
    cq_forget(hca, qp->send_cq, qp);
    cq_forget(hca, qp->recv_cq, qp);
    rdma_hca_hold_forget_qp(hca, qp);
}

void rdma_hca_qp_remove(RdmaHca *hca, RdmaHcaQp *qp)
{
    rdma_hca_table_clear(&hca->qps, qp->init.qpn);
    rdma_hca_events_forget(hca, &hca->qps, qp->init.qpn);
    forget_completions(hca, qp);
    qp->pd->users--;
    qp->send_cq->users--;
    qp->recv_cq->users--;
    if (qp->srq) {
        qp->srq->users--;
    }
    rdma_hca_wq_forget(hca, &qp->sq);
    g_free(qp->sq.inflight);
    g_free(qp->rq.inflight);
    hca->ops->qp->free(hca, qp);
}

int rdma_hca_qp_create(RdmaHca *hca, RdmaHcaQp *qp)
{
    RdmaQpInitAttr init = qp->init;
    int ret;

    rdma_hca_qp_add(hca, qp);
    rdma_hca_pay_for_queues(hca);
    init.wire_qpn = init.qpn;
    ret = hca->bc->create_qp(hca->backend, &init);
    if (ret) {
        rdma_hca_qp_remove(hca, qp);
        rdma_hca_table_search_from(&hca->qps, init.qpn);
        return ret;
    }
    qp->init = init;
    trace_rdma_hca_qp_create(hca->owner, init.qpn, init.qp_type, init.pdn,
                             init.send_cqn, init.recv_cqn);
    rdma_hca_qp_schedule(hca, qp);
    return 0;
}

/* Checks that do not depend on the state of the QP */
static int check_modify(RdmaHca *hca, const RdmaHcaQp *qp, uint32_t mask,
                        const RdmaQpAttr *attr)
{
    RdmaQpRefusal r = {
        .from = RDMA_QPS_UNKNOWN,
        .to = RDMA_QPS_UNKNOWN,
    };
    uint32_t unsupported = mask & QP_ATTR_UNSUPPORTED;
    uint32_t bad = unsupported ?: mask & ~QP_ATTR_MASK;

    if (bad) {
        rdma_qp_refuse(&r, rdma_qp_attr_name(bad & -bad), mask,
                       "is not supported in attr_mask");
    } else if (!(mask & RDMA_QP_STATE) ||
               rdma_qp_check_state(attr->qp_state, &r)) {
        return 0;
    }
    rdma_backend_qp_refused(hca->backend, qp->init.qpn, &r);
    return unsupported ? -ENOTSUP : -EINVAL;
}

/*
 * Programs are used to devices that read no more bits than a field has on the
 * wire. A number of retries that is too large becomes the largest, as with RDMA
 * CM: masked, it could become 0.
 */
static RdmaQpAttr mask_wire_fields(const RdmaQpAttr *attr)
{
    RdmaQpAttr a = *attr;

    a.rq_psn &= RDMA_24BIT_MASK;
    a.sq_psn &= RDMA_24BIT_MASK;
    a.dest_qp_num &= RDMA_24BIT_MASK;
    a.ah_attr.flow_label &= RDMA_FLOW_LABEL_MASK;
    a.min_rnr_timer &= RDMA_RNR_TIMER_MASK;
    a.retry_cnt = MIN(a.retry_cnt, RDMA_MAX_RETRIES);
    a.rnr_retry = MIN(a.rnr_retry, RDMA_MAX_RETRIES);
    return a;
}

static void drain(RdmaHca *hca, RdmaHcaQp *qp)
{
    rdma_hca_wq_drain(hca, &qp->sq);
    if (!qp->srq) {
        rdma_hca_wq_drain(hca, &qp->rq);
    }
}

/*
 * The driver resets or destroys the QP, but needs held receives to learn which
 * WQEs of the SRQ are done.
 */
static void write_held_srq_recvs(RdmaHca *hca, RdmaHcaQp *qp)
{
    if (qp->srq && !rdma_hca_hold_write_recvs(hca, qp)) {
        rdma_hca_cq_fail(hca, qp->recv_cq);
    }
}

int rdma_hca_qp_modify(RdmaHca *hca, uint32_t qpn, uint32_t mask,
                       const RdmaQpAttr *wanted)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, qpn);
    const RdmaQpAttr attr = mask_wire_fields(wanted);
    int ret = !qp ? -ENOENT : check_modify(hca, qp, mask, &attr) ?:
              hca->bc->modify_qp(hca->backend, qpn, mask, &attr);

    if (ret) {
        return ret;
    }
    trace_rdma_hca_qp_modify(hca->owner, qpn, mask,
                             mask & RDMA_QP_STATE ? attr.qp_state : -1);
    if ((mask & RDMA_QP_STATE) && attr.qp_state == RDMA_QPS_RESET) {
        drain(hca, qp);
        qp->sq.broken = qp->rq.broken = false;
        write_held_srq_recvs(hca, qp);
        /* The driver removes only completions that it has received. */
        forget_completions(hca, qp);
        rdma_hca_fault_forget_qp(qp);
    }
    rdma_hca_qp_schedule(hca, qp);
    return 0;
}

int rdma_hca_qp_query(RdmaHca *hca, uint32_t qpn, RdmaQpAttr *attr)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, qpn);
    int ret = qp ? hca->bc->query_qp(hca->backend, qpn, attr) : -ENOENT;

    if (!ret) {
        attr->cap = qp->init.cap;
    }
    return ret;
}

int rdma_hca_qp_destroy(RdmaHca *hca, uint32_t qpn)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, qpn);
    int ret = !qp ? -ENOENT :
              hca->bc->destroy(hca->backend, RDMA_OBJECT_QP, qpn);

    if (ret) {
        return ret;
    }
    trace_rdma_hca_qp_destroy(hca->owner, qpn);
    rdma_hca_pay_for_queues(hca);
    if (hca->n_mws) {
        /* The backend searches for windows that the QP has bound. */
        rdma_work_pay(&hca->cmd_budget, hca->mrs.end / 8 * RDMA_WORK_ENTRY);
    }
    write_held_srq_recvs(hca, qp);
    rdma_hca_wq_destroy(hca, &qp->sq);
    if (!qp->srq) {
        rdma_hca_wq_destroy(hca, &qp->rq);
    }
    rdma_hca_qp_remove(hca, qp);
    return 0;
}

bool rdma_hca_qp_is_in(RdmaHca *hca, RdmaHcaQp *qp, RdmaQpState state)
{
    RdmaQpAttr attr = {};

    if (hca->bc->qp_in_state) {
        return hca->bc->qp_in_state(hca->backend, qp->init.qpn, state);
    }
    return hca->bc->query_qp(hca->backend, qp->init.qpn, &attr) == 0 &&
           attr.qp_state == state;
}

void rdma_hca_qp_fail(RdmaHca *hca, RdmaHcaQp *qp)
{
    const RdmaQpAttr attr = { .qp_state = RDMA_QPS_ERR };
    int ret;

    if (rdma_hca_qp_is_in(hca, qp, RDMA_QPS_ERR) ||
        rdma_hca_qp_is_in(hca, qp, RDMA_QPS_RESET)) {
        /*
         * In ERR the driver knows: it moved the QP to ERR, or received an
         * event. A QP in RESET fails when it leaves that state.
         */
        return;
    }
    ret = hca->bc->fail_qp
          ? hca->bc->fail_qp(hca->backend, qp->init.qpn)
          : hca->bc->modify_qp(hca->backend, qp->init.qpn, RDMA_QP_STATE,
                               &attr);
    trace_rdma_hca_qp_fail(hca->owner, qp->init.qpn, ret);
    if (ret == 0) {
        rdma_hca_error_note_event(hca, RDMA_EVENT_QP_FATAL, qp->init.qpn);
        rdma_hca_event_raise(hca, RDMA_EVENT_QP_FATAL, qp->init.qpn);
    }
}

void rdma_hca_cq_fail(RdmaHca *hca, RdmaHcaCq *cq)
{
    RdmaHcaQp *qp;

    rdma_hca_cq_enter_error(hca, cq);
    if (!cq->users) {
        return;
    }
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        if (qp->send_cq == cq || qp->recv_cq == cq) {
            rdma_hca_qp_schedule(hca, qp);
        }
    }
}
