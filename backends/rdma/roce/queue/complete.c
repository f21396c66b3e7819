/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion of WQEs: retirement, completions, flushing, and the transition to
 * ERR (IBTA 10.3.1, 10.8.5, 10.10).
 */
#include <glib.h>
#include "queue/queue.h"

/* If @cq fails, roce_cq_fail_qps() moves its QPs to ERR later. */
static void complete(RoceQp *qp, RoceCq *cq, const RdmaWc *wc, bool solicited)
{
    RoceEngine *e = qp->e;

    if (cq->failed) {
        roce_cq_fail_later(e, qp->init.qpn);
    } else if (!e->consumer.complete(e->consumer_opaque, cq->cqn, wc,
                                     solicited)) {
        roce_trace_qp(qp, ROCE_TRACE_CQ_FAILED, 0, cq->cqn);
        cq->failed = true;
        /* Its last buffer may have had many descriptors, which cost time. */
        e->work += RDMA_QUEUE_BUDGET;
        roce_cq_fail_later(e, 0);
    }
}

void roce_sq_complete(RoceQp *qp, RdmaWcStatus status)
{
    RoceSqState *sq = &qp->s.sq;
    const RoceSendWqe *wqe = roce_swqe(qp, sq->cons);
    RoceEngine *e = qp->e;
    RdmaWc wc;

    if (wqe->npages) {
        g_clear_pointer(roce_spages(qp, sq->cons), g_free);
    }

    /* The cursors never precede the oldest WQE. */
    if (sq->cur == sq->cons) {
        sq->cur++;
        sq->cur_pkt = 0;
    }
    if (sq->started == sq->cons) {
        sq->started++;
    }
    sq->cons++;
    e->work += RDMA_WORK_WR;
    e->consumer.retire(e->consumer_opaque, qp->init.qpn, RDMA_SQ, 1);

    if (status == RDMA_WC_SUCCESS && !qp->init.sq_sig_all &&
        !(wqe->send_flags & RDMA_SEND_SIGNALED)) {
        return;
    }
    wc = (RdmaWc) {
        .wr_id = wqe->wr_id,
        .status = status,
        .opcode = rdma_wc_opcode(wqe->opcode),
        .byte_len = wqe->length,
        .qp_num = qp->init.qpn,
        .port_num = RDMA_PORT_NUM,
    };
    complete(qp, qp->send_cq, &wc, false);
}

void roce_sq_reap(RoceQp *qp)
{
    RoceSqState *sq = &qp->s.sq;

    while (sq->cons != sq->started && roce_swqe(qp, sq->cons)->done) {
        roce_sq_complete(qp, RDMA_WC_SUCCESS);
    }
    if (sq->draining) {
        roce_req_check_drained(qp);
    }
}

/* Reset the requester, so that all remaining WQEs are flushed. */
static void stop_sending(RoceQp *qp)
{
    RoceSqState *sq = &qp->s.sq;
    uint32_t index;

    /* Sends that the consumer holds are flushed as well. */
    roce_sq_expect(qp);
    for (index = sq->cons; index != sq->started; index++) {
        roce_swqe(qp, index)->done = false;
    }
    sq->cur = sq->cons;
    sq->cur_pkt = 0;
    sq->started = sq->cons;
    sq->una = sq->end;
    sq->psn = sq->end;
    sq->sent = sq->end;
    sq->rd_atomic = 0;
    sq->rd_psns = 0;
    qp->recv_takers = 0;
    qp->credit_wait = false;
    qp->credit_deadline = ROCE_NO_DEADLINE;
    qp->starved_deadline = ROCE_NO_DEADLINE;
}

void roce_sq_fail(RoceQp *qp, RdmaWcStatus status)
{
    roce_sq_complete(qp, status);
    if (qp->init.qp_type == RDMA_QPT_RC) {
        roce_qp_enter_err(qp);
    } else {
        /* The responder continues in SQE (IBTA 10.3.1.6). */
        roce_qp_set_state(qp, RDMA_QPS_SQE);
        qp->s.sq.draining = false;
        stop_sending(qp);
        roce_qp_flush(qp, &qp->e->flush_room);
    }
}

void roce_rq_complete(RoceQp *qp, RdmaWc *wc, bool solicited)
{
    RoceRqState *rq = &qp->s.rq;
    RoceEngine *e = qp->e;

    wc->wr_id = qp->rwqe.wr_id;
    wc->qp_num = qp->init.qpn;
    wc->port_num = RDMA_PORT_NUM;
    rq->cons++;
    qp->recvs_since_credits++;
    e->work += RDMA_WORK_WR;
    if (!qp->srq) {
        e->consumer.retire(e->consumer_opaque, qp->init.qpn, RDMA_RQ, 1);
    }
    complete(qp, qp->recv_cq, wc, solicited);
}

void roce_rq_fail(RoceQp *qp, RdmaWcStatus status)
{
    RdmaWc wc = { .status = status, .opcode = RDMA_WC_RECV };

    roce_rq_complete(qp, &wc, false);
}

void roce_qp_flush(RoceQp *qp, uint32_t *room)
{
    for (; *room && roce_sq_flushes(qp); --*room) {
        if (qp->s.sq.cons == qp->s.sq.prod && !roce_sq_pull(qp)) {
            break;
        }
        roce_sq_complete(qp, RDMA_WC_WR_FLUSH_ERR);
    }
    for (; *room && roce_rq_flushes(qp); --*room) {
        if (qp->s.rq.cons == qp->s.rq.prod && !roce_recv_pull(qp)) {
            break;
        }
        roce_rq_fail(qp, RDMA_WC_WR_FLUSH_ERR);
    }
    if (roce_qp_flushes(qp)) {
        roce_qp_schedule(qp);
    }
}

void roce_qp_event(RoceQp *qp, RdmaEventType type)
{
    RdmaEvent event = { .type = type, .id = qp->init.qpn };

    qp->e->consumer.event(qp->e->consumer_opaque, &event);
}

void roce_qp_enter_err(RoceQp *qp)
{
    RoceSqState *sq = &qp->s.sq;

    roce_qp_set_state(qp, RDMA_QPS_ERR);
    sq->rnr_wait = false;
    sq->draining = false;
    sq->ack_deadline = ROCE_NO_DEADLINE;
    sq->rnr_deadline = ROCE_NO_DEADLINE;
    qp->paused = false;
    roce_timer_remove(qp);
    if (!qp->s.resp.closing) {
        qp->s.resp.ack_kind = ROCE_ACK_NONE;
        qp->s.resp.res_out = qp->s.resp.res_prod;
    }
    stop_sending(qp);
    roce_rq_expect(qp);
    if (qp->srq) {
        /* The QP flushes only the WQE that it took (IBTA 10.2.9.5). */
        if (roce_rq_flushes(qp)) {
            roce_rq_fail(qp, RDMA_WC_WR_FLUSH_ERR);
        }
        roce_qp_event(qp, RDMA_EVENT_LAST_WQE_REACHED);
    }
    roce_qp_flush(qp, &qp->e->flush_room);
}

void roce_req_check_drained(RoceQp *qp)
{
    RoceSqState *sq = &qp->s.sq;

    if (sq->draining && sq->cons == sq->started) {
        sq->draining = false;
        if (qp->s.attr.en_sqd_async_notify) {
            roce_qp_event(qp, RDMA_EVENT_SQ_DRAINED);
        }
    }
}

void roce_cq_fail_marked(RoceEngine *e)
{
    uint32_t left = ROCE_CQ_FAIL_SLICE;
    RoceQp *qp;

    /* Flushing may make another CQ fail, which resets cq_fail_next. */
    while ((qp = roce_table_next(&e->qps, &e->cq_fail_next))) {
        if ((!qp->send_cq->failed && !qp->recv_cq->failed) ||
            qp->s.attr.qp_state == RDMA_QPS_RESET ||
            qp->s.attr.qp_state == RDMA_QPS_ERR) {
            e->cq_fail_next++;
            continue;
        }
        if (!left--) {
            roce_wake(e);
            return;
        }
        e->cq_fail_next++;
        e->work += RDMA_WORK_WR;
        roce_qp_enter_err(qp);
        roce_qp_event(qp, RDMA_EVENT_QP_FATAL);
    }
    e->cq_failed = false;
}
