/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Posted work requests and their completion.
 *
 * The host completes sends in order, and only signaled ones; each completion
 * also ends all sends before it. It completes each receive, with an SRQ in any
 * order.
 *
 * Some work requests are local, that is, never posted to the host: those of a
 * QP in ERR, because not every device flushes late posts, and those that the
 * host refuses. A local one completes when all before it have. If those are not
 * signaled, the host does not report their end. The QP then goes to ERR, and
 * the host flushes a marker that is posted after them.
 */
#include "qemu/osdep.h"
#include "int.h"
#include "../trace.h"

#define SEQ_MASK 0x3fffffffu
#define WR_ID_RECV 1u
#define WR_ID_MARK (1u << 31)

bool verbs_wq_init(VerbsWq *wq, uint32_t max)
{
    *wq = (VerbsWq) { .max = max, .size = pow2ceil(MAX(max, 1)) };
    wq->wqe = g_try_new0(VerbsWqe, wq->size);
    return wq->wqe;
}

static VerbsWqe *wqe_at(VerbsWq *wq, uint32_t seq)
{
    return &wq->wqe[seq & (wq->size - 1)];
}

static void pop(VerbsWq *wq, uint32_t n)
{
    while (n--) {
        VerbsWqe *wqe = wqe_at(wq, wq->head);

        verbs_ah_put(wqe->ah);
        wqe->ah = NULL;
        wq->head = (wq->head + 1) & SEQ_MASK;
        wq->count--;
    }
}

void verbs_wq_clear(VerbsWq *wq)
{
    pop(wq, wq->count);
}

void verbs_wq_free(VerbsWq *wq)
{
    g_free(wq->wqe);
    *wq = (VerbsWq) { };
}

static uint32_t next_seq(const VerbsWq *wq)
{
    return (wq->head + wq->count) & SEQ_MASK;
}

VerbsWqe *verbs_wq_next(VerbsWq *wq)
{
    VerbsWqe *wqe = wqe_at(wq, next_seq(wq));

    *wqe = (VerbsWqe) { };
    return wqe;
}

void verbs_wq_push(VerbsWq *wq)
{
    wq->newest_posted = next_seq(wq);
    wq->count++;
}

VerbsWqe *verbs_wq_newest(VerbsWq *wq)
{
    return wqe_at(wq, next_seq(wq) - 1);
}

/* The number of work requests up to @seq; 0 if that is gone */
static uint32_t count_to(const VerbsWq *wq, uint32_t seq)
{
    uint32_t n = ((seq - wq->head) & SEQ_MASK) + 1;

    return n <= wq->count ? n : 0;
}

VerbsWqe *verbs_wq_unreported(VerbsWq *wq)
{
    VerbsWqe *wqe = wqe_at(wq, wq->newest_posted);

    return count_to(wq, wq->newest_posted) && !wqe->local && wqe->unsignaled
           ? wqe : NULL;
}

void verbs_wq_push_local(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue,
                         RdmaWcStatus status)
{
    VerbsWq *wq = queue == RDMA_SQ ? &qp->sq : &qp->rq;
    VerbsWqe *wqe = wqe_at(wq, next_seq(wq));

    if (queue == RDMA_SQ && !qp->gsi && verbs_wq_unreported(wq)) {
        qp->mark_wanted = true;
        qp->mark = wq->newest_posted;
    }
    wqe->local = true;
    wqe->status = status;
    wq->count++;
    verbs_wq_complete_local(v, qp);
}

void verbs_wq_clear_sq(VerbsQp *qp)
{
    verbs_wq_clear(&qp->sq);
    qp->mark_wanted = false;
    qp->sqe = false;
}

uint64_t verbs_wq_next_wr_id(const VerbsQp *qp, RdmaQueue queue)
{
    const VerbsWq *wq = queue == RDMA_SQ ? &qp->sq : &qp->rq;

    return (uint64_t)qp->id << 32 | next_seq(wq) << 1 |
           (queue == RDMA_RQ ? WR_ID_RECV : 0);
}

uint64_t verbs_srq_wr_id(const VerbsSrq *srq, uint32_t slot)
{
    return (uint64_t)srq->id << 32 | slot << 1 | WR_ID_RECV;
}

void verbs_qp_new_id(RdmaVerbs *v, VerbsQp *qp)
{
    verbs_remove(v->qps_by_id, qp->id, qp);
    qp->id = ++v->next_id;
    verbs_put(v->qps_by_id, qp->id, qp);
}

/* Moving a QP to ERR */

void verbs_qp_set_state(RdmaVerbs *v, VerbsQp *qp, RdmaQpState state)
{
    if (state == RDMA_QPS_ERR) {
        qp->sqe = false;
    }
    if (qp->state != state) {
        qp->state = state;
        verbs_pull_qp(v, qp);
    }
}

static void flush_queue(VerbsWq *wq)
{
    for (uint32_t i = 0; i < wq->count; i++) {
        VerbsWqe *wqe = wqe_at(wq, wq->head + i);

        if (!wqe->local) {
            wqe->local = true;
            wqe->status = RDMA_WC_WR_FLUSH_ERR;
        }
    }
}

static int fail_work(VerbsJob *job)
{
    VerbsQp *qp = job->obj;
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    return -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
}

static void fail_done(VerbsJob *job)
{
    VerbsQp *qp = job->obj;

    trace_rdma_verbs_qp_failed(job->v, qp->init.qpn, job->ret);
    qp->failing = false;
    if (qp->obj.destroying) {
        return;
    }
    verbs_qp_set_state(job->v, qp, RDMA_QPS_ERR);
    verbs_wq_complete_local(job->v, qp);
    verbs_pull_qp(job->v, qp);
}

static const VerbsJobOps fail_ops = {
    .work = fail_work,
    .done = fail_done,
};

void verbs_qp_fail(RdmaVerbs *v, VerbsQp *qp)
{
    if (qp->failed || qp->obj.destroying) {
        return;
    }
    if (qp->gsi) {
        /* Sends complete with their own status. */
        flush_queue(&qp->rq);
        verbs_qp_set_state(v, qp, RDMA_QPS_ERR);
        verbs_wq_complete_local(v, qp);
        return;
    }
    qp->failed = true;
    qp->failing = true;
    verbs_job_start(verbs_job_new(v, &fail_ops, qp));
}

void verbs_qp_fail_with_event(RdmaVerbs *v, VerbsQp *qp)
{
    if (!qp->failed && !qp->obj.destroying && qp->state != RDMA_QPS_ERR) {
        verbs_qp_fail(v, qp);
        verbs_raise_event(v, RDMA_EVENT_QP_FATAL, qp->init.qpn);
    }
}

void verbs_cq_fail(RdmaVerbs *v, uint32_t cqn)
{
    VerbsCq *cq = verbs_get_live(v->cqs, cqn);
    GHashTableIter iter;
    VerbsQp *qp;

    if (!cq || cq->failed) {
        return;
    }
    cq->failed = true;
    verbs_raise_event(v, RDMA_EVENT_CQ_ERR, cqn);
    g_hash_table_iter_init(&iter, v->qps);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&qp)) {
        /* The device fails a QP in RESET when the QP leaves that state. */
        if ((qp->init.send_cqn == cqn || qp->init.recv_cqn == cqn) &&
            qp->state != RDMA_QPS_RESET) {
            verbs_qp_fail_with_event(v, qp);
        }
    }
}

/* Completions */

static void deliver(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue,
                    const RdmaWc *wc)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;
    uint32_t cqn = queue == RDMA_SQ ? qp->init.send_cqn : qp->init.recv_cqn;

    /* The host does not report which receives were solicited. */
    if (!ops->complete(v->parent_obj.client_opaque, cqn, wc,
                       queue == RDMA_RQ)) {
        verbs_cq_fail(v, cqn);
        /* The QP may be newer than the failure. */
        verbs_qp_fail_with_event(v, qp);
    }
}

static void retire_to(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue, uint32_t n)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;

    pop(queue == RDMA_SQ ? &qp->sq : &qp->rq, n);
    ops->retire(v->parent_obj.client_opaque, qp->init.qpn, queue, n);
    verbs_pull_soon(v, queue, qp->init.qpn);
}

/* Complete the oldest work request if it is local. */
static bool complete_one_local(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue)
{
    VerbsWq *wq = queue == RDMA_SQ ? &qp->sq : &qp->rq;
    VerbsWqe wqe;
    RdmaWc wc;

    if (!wq->count || !wqe_at(wq, wq->head)->local) {
        return false;
    }
    wqe = *wqe_at(wq, wq->head);
    retire_to(v, qp, queue, 1);
    if (queue == RDMA_SQ && wqe.status != RDMA_WC_SUCCESS && qp->sqe) {
        verbs_qp_set_state(v, qp, RDMA_QPS_SQE);
    }
    if (!wqe.unsignaled || wqe.status != RDMA_WC_SUCCESS) {
        wc = (RdmaWc) {
            .wr_id = wqe.wr_id,
            .status = wqe.status,
            .opcode = wqe.opcode,
            .qp_num = qp->init.qpn,
            .port_num = RDMA_PORT_NUM,
        };
        deliver(v, qp, queue, &wc);
    }
    return true;
}

bool verbs_post_empty(VerbsQp *qp, uint64_t wr_id, VerbsAh *ah, bool poison)
{
    struct ibv_sge sge = { .length = 1 };
    struct ibv_send_wr *bad, h = {
        .wr_id = wr_id,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .sg_list = &sge,
        .num_sge = poison,
    };

    if (qp->init.qp_type == RDMA_QPT_UD) {
        h.wr.ud.ah = verbs_ah_host(ah);
    }
    return ibv_post_send(qp->qp, &h, &bad) == 0;
}

/*
 * The QP is in ERR: post a marker after the sends whose end the host does not
 * report. The host flushes the marker, and complete_mark() retires them.
 */
static void post_mark(VerbsQp *qp)
{
    VerbsWqe *wqe = wqe_at(&qp->sq, qp->mark);

    qp->mark_wanted = false;
    if (count_to(&qp->sq, qp->mark) && !wqe->local &&
        !verbs_post_empty(qp, (uint64_t)qp->id << 32 | WR_ID_MARK |
                              qp->mark << 1, wqe->ah, true)) {
        flush_queue(&qp->sq);
    }
}

void verbs_wq_complete_local(RdmaVerbs *v, VerbsQp *qp)
{
    if (!v->running || qp->obj.destroying) {
        return;
    }
    if (qp->mark_wanted && qp->state == RDMA_QPS_ERR && !qp->failing) {
        post_mark(qp);
    }
    while (complete_one_local(v, qp, RDMA_SQ)) {
        ;
    }
    while (complete_one_local(v, qp, RDMA_RQ)) {
        ;
    }
}

void verbs_wq_flush(RdmaVerbs *v, VerbsQp *qp)
{
    flush_queue(&qp->sq);
    flush_queue(&qp->rq);
    verbs_wq_complete_local(v, qp);
}

static uint32_t wc_flags(const VerbsQp *qp, const struct ibv_wc *host)
{
    uint32_t flags = 0;

    /* Only datagrams have a GRH, but some devices always set the flag. */
    if (qp->init.qp_type == RDMA_QPT_UD && host->wc_flags & IBV_WC_GRH) {
        flags |= RDMA_WC_GRH;
    }
    if (host->wc_flags & IBV_WC_WITH_IMM) {
        flags |= RDMA_WC_WITH_IMM;
    }
    /*
     * rxe sets the kernel's bit, which is IBV_WC_IP_CSUM_OK in user space and
     * has no meaning on connected QPs.
     */
    if (host->wc_flags & IBV_WC_WITH_INV ||
        (qp->init.qp_type == RDMA_QPT_RC &&
         host->wc_flags & IBV_WC_IP_CSUM_OK)) {
        flags |= RDMA_WC_WITH_INVALIDATE;
    }
    return flags;
}

/* Translate the host's completion of @wqe. */
static RdmaWc translate(const VerbsQp *qp, const VerbsWqe *wqe,
                        const struct ibv_wc *host)
{
    RdmaWc wc = {
        .wr_id = wqe->wr_id,
        .status = (RdmaWcStatus)host->status,
        .opcode = wqe->opcode,
        .vendor_err = host->vendor_err,
        .byte_len = host->byte_len,
        .qp_num = qp->init.qpn,
        .src_qp = host->src_qp,
        .pkey_index = host->pkey_index,
        .sl = host->sl,
        .port_num = RDMA_PORT_NUM,
    };

    /* Hosts differ in the status of a request without valid memory. */
    if (wqe->status != RDMA_WC_SUCCESS &&
        host->status != IBV_WC_WR_FLUSH_ERR) {
        wc.status = wqe->status;
    }
    if (host->status != IBV_WC_SUCCESS) {
        return wc;
    }
    wc.wc_flags = wc_flags(qp, host);
    if (wqe->opcode == RDMA_WC_RECV) {
        wc.opcode = host->opcode == IBV_WC_RECV_RDMA_WITH_IMM
                    ? RDMA_WC_RECV_RDMA_WITH_IMM : RDMA_WC_RECV;
    }
    /* Or the invalidated key, which is a member of the same union. */
    memcpy(wc.ex.imm_data, &host->imm_data, sizeof(wc.ex.imm_data));
    return wc;
}

static void note_failed_completion(RdmaVerbs *v, VerbsQp *qp, bool send,
                                   const struct ibv_wc *host,
                                   const RdmaWc *wc)
{
    if (wc->status == RDMA_WC_SUCCESS) {
        return;
    }
    trace_rdma_verbs_wc_error(v, qp->init.qpn, wc->wr_id, wc->status,
                              wc->vendor_err);
    if (host->status == IBV_WC_SUCCESS) {
        /* The WQE was bad, and the host has not noticed. */
        verbs_qp_fail(v, qp);
    } else if (qp->init.qp_type == RDMA_QPT_RC || !send) {
        verbs_qp_set_state(v, qp, RDMA_QPS_ERR);
    } else if (qp->state == RDMA_QPS_RTS) {
        verbs_qp_set_state(v, qp, RDMA_QPS_SQE);
    }
}

static void complete_srq_recv(RdmaVerbs *v, VerbsSrq *srq, uint32_t slot,
                              const struct ibv_wc *host)
{
    VerbsQp *qp = verbs_get(v->qps_by_wire, host->qp_num);
    VerbsWqe wqe;
    RdmaWc wc;

    if (slot >= srq->rq.max || !srq->rq.wqe[slot].posted) {
        return;
    }
    wqe = srq->rq.wqe[slot];
    srq->rq.wqe[slot].posted = false;
    srq->rq.count--;
    srq->free[srq->rq.max - srq->rq.count - 1] = slot;
    if (srq->rq.count < srq->limit) {
        srq->limit = 0;
        verbs_raise_event(v, RDMA_EVENT_SRQ_LIMIT_REACHED, srq->obj.num);
    }
    verbs_pull_soon(v, RDMA_SRQ, srq->obj.num);
    if (!qp || qp->obj.destroying) {
        return;
    }
    wc = translate(qp, &wqe, host);
    note_failed_completion(v, qp, false, host, &wc);
    deliver(v, qp, RDMA_RQ, &wc);
}

void verbs_wq_complete_oldest(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue,
                              const RdmaWc *wc)
{
    retire_to(v, qp, queue, 1);
    deliver(v, qp, queue, wc);
}

/* The host is done with all sends up to @seq. */
static void complete_mark(RdmaVerbs *v, VerbsQp *qp, uint32_t seq)
{
    uint32_t n = count_to(&qp->sq, seq);

    if (qp->obj.destroying) {
        return;
    }
    if (n) {
        retire_to(v, qp, RDMA_SQ, n);
    }
    verbs_wq_complete_local(v, qp);
}

static void complete_wq(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue,
                        uint32_t seq, const struct ibv_wc *host)
{
    VerbsWq *wq = queue == RDMA_SQ ? &qp->sq : &qp->rq;
    uint32_t n = count_to(wq, seq);
    VerbsWqe wqe;
    RdmaWc wc;

    if (qp->obj.destroying || !n) {
        return;
    }
    wqe = *wqe_at(wq, seq);
    retire_to(v, qp, queue, n);
    wc = translate(qp, &wqe, host);
    note_failed_completion(v, qp, queue == RDMA_SQ, host, &wc);
    deliver(v, qp, queue, &wc);
    verbs_wq_complete_local(v, qp);
}

void verbs_wq_complete(RdmaVerbs *v, const struct ibv_wc *host)
{
    uint32_t id = host->wr_id >> 32;
    uint32_t low = host->wr_id;
    VerbsQp *qp = verbs_get(v->qps_by_id, id);
    VerbsSrq *srq = verbs_get(v->srqs_by_id, id);

    if (srq) {
        complete_srq_recv(v, srq, low >> 1, host);
    } else if (qp && low & WR_ID_MARK) {
        complete_mark(v, qp, (low & ~WR_ID_MARK) >> 1);
    } else if (qp) {
        complete_wq(v, qp, low & WR_ID_RECV ? RDMA_RQ : RDMA_SQ, low >> 1,
                    host);
    } else {
        /* The QP was destroyed or reset since. */
        trace_rdma_verbs_wc_stale(v, host->qp_num);
    }
}
