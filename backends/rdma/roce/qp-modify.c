/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modify QP. The rules for transitions and attributes are in core/qp-check.c.
 */
#include <glib.h>
#include "rdma/qp-check.h"
#include "roce-int.h"

#define A(name) RDMA_QP_##name

static bool path_ok(const RoceQp *qp, const RdmaAv *av, RdmaQpRefusal *r)
{
    RocePath path;

    if (av->sgid_index >= qp->e->config.gid_table_len ||
        !qp->e->gid_valid[av->sgid_index]) {
        return rdma_qp_refuse(r, "ah_attr.grh.sgid_index", av->sgid_index,
                              "is not an entry of the GID table");
    }
    return roce_path_init(qp->e, av, qp->init.qpn, 0, &path) ||
           rdma_qp_refuse(r, "ah_attr.grh.sgid_index", av->sgid_index,
                          "is a GID of another IP version than "
                          "ah_attr.grh.dgid");
}

static bool may_modify(const RoceQp *qp, uint8_t to, uint32_t mask,
                       const RdmaQpAttr *attr)
{
    const RdmaQpLimits limits = {
        .max_rd_atomic = qp->e->config.max_rd_atomic,
        .path_mtu = roce_port_mtu(qp->e),
    };
    uint8_t from = qp->s.attr.qp_state;
    RdmaQpRefusal r = { .from = from, .to = to };

    if (rdma_qp_check_transition(qp->init.qp_type, from, to, mask, &r) &&
        rdma_qp_check_values(&limits, from, mask, attr, &r) &&
        (!(mask & A(AV)) || path_ok(qp, &attr->ah_attr, &r))) {
        return true;
    }
    roce_trace_refused(qp, &r);
    return false;
}

/* Set the attributes that @mask selects. All values were checked. */
static void apply(RoceQp *qp, uint32_t mask, const RdmaQpAttr *attr)
{
    RdmaQpAttr *a = &qp->s.attr;

    if (mask & A(PKEY_INDEX)) {
        a->pkey_index = attr->pkey_index;
    }
    if (mask & A(PORT)) {
        a->port_num = attr->port_num;
    }
    if (mask & A(ACCESS_FLAGS)) {
        a->qp_access_flags = attr->qp_access_flags;
    }
    if (mask & A(QKEY)) {
        a->qkey = attr->qkey;
    }
    if (mask & A(PATH_MTU)) {
        a->path_mtu = attr->path_mtu;
        qp->mtu = rdma_mtu_bytes(attr->path_mtu);
    }
    if (mask & A(PATH_MIG_STATE)) {
        a->path_mig_state = attr->path_mig_state;
    }
    if (mask & A(DEST_QPN)) {
        a->dest_qp_num = attr->dest_qp_num;
    }
    if (mask & A(AV)) {
        a->ah_attr = attr->ah_attr;
    }
    if (mask & (A(DEST_QPN) | A(AV))) {
        roce_qp_find_path(qp);
    }
    if (mask & A(RATE_LIMIT)) {
        a->rate_limit = attr->rate_limit;
    }
    if (mask & (A(RATE_LIMIT) | A(AV))) {
        roce_pace_update(qp);
    }
    if (mask & A(RQ_PSN)) {
        /* Programs pass random 32-bit numbers; only 24 bits count. */
        qp->s.resp.epsn = attr->rq_psn & RDMA_24BIT_MASK;
    }
    if (mask & A(SQ_PSN)) {
        roce_req_init(qp, attr->sq_psn & RDMA_24BIT_MASK);
    }
    if (mask & A(TIMEOUT)) {
        a->timeout = attr->timeout;
    }
    if (mask & A(RETRY_CNT)) {
        a->retry_cnt = attr->retry_cnt;
        qp->s.sq.retries = attr->retry_cnt;
    }
    if (mask & A(RNR_RETRY)) {
        a->rnr_retry = attr->rnr_retry;
        qp->s.sq.rnr_retries = attr->rnr_retry;
    }
    if (mask & A(MIN_RNR_TIMER)) {
        a->min_rnr_timer = attr->min_rnr_timer;
    }
    if (mask & A(MAX_QP_RD_ATOMIC)) {
        a->max_rd_atomic = attr->max_rd_atomic;
    }
    if (mask & A(MAX_DEST_RD_ATOMIC)) {
        a->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    }
}

static void enter_reset(RoceQp *qp)
{
    RoceEngine *e = qp->e;
    uint32_t nsq = qp->s.sq.prod - qp->s.sq.cons;
    uint32_t nrq = qp->s.rq.prod - qp->s.rq.cons;

    roce_qp_set_state(qp, RDMA_QPS_RESET);
    roce_qp_clear(qp);
    if (nsq) {
        e->consumer.retire(e->consumer_opaque, qp->init.qpn, RDMA_SQ, nsq);
    }
    if (nrq && !qp->srq) {
        e->consumer.retire(e->consumer_opaque, qp->init.qpn, RDMA_RQ, nrq);
    }
}

/*
 * Flush the sends that were posted in SQE instead of sending them (IBTA
 * 10.3.1.6). This does the work of one turn at most, because the owner may hold
 * a lock during the call. Sends beyond that are executed in RTS.
 */
static void flush_posted(RoceQp *qp)
{
    uint64_t end = qp->e->work + RDMA_TURN_BUDGET;

    /* The consumer may have sends for which it has not kicked. */
    roce_sq_expect(qp);
    while (roce_sq_flushes(qp) && qp->e->work < end) {
        uint32_t room = ROCE_FLUSH_SLICE;

        roce_qp_flush(qp, &room);
    }
}

int roce_qp_modify(RoceEngine *e, uint32_t qpn, uint32_t attr_mask,
                   const RdmaQpAttr *attr)
{
    RoceQp *qp = roce_qp_find(e, qpn);
    uint8_t from, to;

    if (!qp) {
        return -ENOENT;
    }
    from = qp->s.attr.qp_state;
    to = attr_mask & A(STATE) ? attr->qp_state : from;
    if (!may_modify(qp, to, attr_mask, attr)) {
        return -EINVAL;
    }

    switch (to) {
    case RDMA_QPS_RESET:
        enter_reset(qp);
        return 0;
    case RDMA_QPS_ERR:
        if (from != RDMA_QPS_ERR) {
            roce_qp_enter_err(qp);
        }
        break;
    case RDMA_QPS_SQD:
        apply(qp, attr_mask, attr);
        roce_qp_set_state(qp, to);
        if (from != RDMA_QPS_SQD) {
            /* The event is requested by each transition to SQD separately. */
            qp->s.attr.en_sqd_async_notify =
                attr_mask & A(EN_SQD_ASYNC_NOTIFY) &&
                attr->en_sqd_async_notify;
            qp->s.sq.draining = true;
            roce_req_check_drained(qp);
        }
        break;
    default:
        if (from == RDMA_QPS_SQE) {
            flush_posted(qp);
        }
        apply(qp, attr_mask, attr);
        roce_qp_set_state(qp, to);
        qp->s.sq.draining = false;
        roce_qp_schedule(qp);
        break;
    }
    /* A QP in RESET, whose CQ has failed, fails when it leaves INIT. */
    if (to != RDMA_QPS_INIT && (qp->send_cq->failed || qp->recv_cq->failed)) {
        roce_cq_fail_later(e, qpn);
    }
    roce_cq_fail_qps(e);
    return 0;
}

#undef A
