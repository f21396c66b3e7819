/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of WQEs: retirement, completions, flushing (IBTA 10.8.5, 10.10).
 */
#include <glib.h>
#include "roce-int.h"

/* A CQ that fails gets nothing more; its QPs follow in roce_settle(). */
static void complete(RoceQp *qp, RoceCq *cq, const RdmaWc *wc, bool solicited)
{
    RoceEngine *e = qp->e;

    if (cq->dead || !e->ops.complete(e->opaque, cq->cqn, wc, solicited)) {
        cq->dead = true;
        e->cq_failed = true;
    }
}

static RdmaWcOpcode send_wc_opcode(uint32_t opcode)
{
    switch (opcode) {
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
        return RDMA_WC_RDMA_WRITE;
    case RDMA_WR_RDMA_READ:
    case RDMA_WR_RDMA_READ_WITH_INV:
        return RDMA_WC_RDMA_READ;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
        return RDMA_WC_COMP_SWAP;
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        return RDMA_WC_FETCH_ADD;
    case RDMA_WR_FLUSH:
        return RDMA_WC_FLUSH;
    case RDMA_WR_ATOMIC_WRITE:
        return RDMA_WC_ATOMIC_WRITE;
    case RDMA_WR_LOCAL_INV:
        return RDMA_WC_LOCAL_INV;
    case RDMA_WR_REG_MR:
        return RDMA_WC_REG_MR;
    case RDMA_WR_BIND_MW:
        return RDMA_WC_BIND_MW;
    default:
        return RDMA_WC_SEND;
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

    /* The cursors never stand behind the oldest WQE */
    if (sq->cur == sq->cons) {
        sq->cur++;
        sq->cur_pkt = 0;
    }
    if (sq->started == sq->cons) {
        sq->started++;
    }
    sq->cons++;
    e->ops.retire(e->opaque, qp->init.qpn, ROCE_SQ, 1);

    if (status == RDMA_WC_SUCCESS && !qp->init.sq_sig_all &&
        !(wqe->send_flags & RDMA_SEND_SIGNALED)) {
        return;
    }
    wc = (RdmaWc) {
        .wr_id = wqe->wr_id,
        .status = status,
        .opcode = send_wc_opcode(wqe->opcode),
        .byte_len = wqe->length,
        .qp_num = qp->init.qpn,
        .port_num = 1,
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

void roce_sq_fail(RoceQp *qp, RdmaWcStatus status)
{
    roce_sq_complete(qp, status);
    if (qp->init.qp_type == RDMA_QPT_RC) {
        roce_qp_enter_err(qp);
    } else {
        /* Receiving goes on (IBTA 10.3.1.6) */
        qp->s.attr.qp_state = RDMA_QPS_SQE;
        qp->s.sq.draining = false;
        roce_sq_flush(qp);
    }
}

void roce_sq_flush(RoceQp *qp)
{
    RoceSqState *sq = &qp->s.sq;

    while (sq->cons != sq->prod) {
        roce_sq_complete(qp, RDMA_WC_WR_FLUSH_ERR);
    }
    sq->cur = sq->cons;
    sq->cur_pkt = 0;
    sq->started = sq->cons;
    sq->una = sq->end;
    sq->psn = sq->end;
    sq->sent = sq->end;
    sq->rd_atomic = 0;
    sq->rd_psns = 0;
}

void roce_rq_complete(RoceQp *qp, RdmaWc *wc, bool solicited)
{
    RoceRqState *rq = &qp->s.rq;
    RoceEngine *e = qp->e;

    wc->wr_id = roce_rwqe(qp, rq->cons)->wr_id;
    wc->qp_num = qp->init.qpn;
    wc->port_num = 1;
    rq->cons++;
    if (!qp->srq) {
        e->ops.retire(e->opaque, qp->init.qpn, ROCE_RQ, 1);
    }
    complete(qp, qp->recv_cq, wc, solicited);
}

void roce_rq_fail(RoceQp *qp, RdmaWcStatus status)
{
    RdmaWc wc = { .status = status, .opcode = RDMA_WC_RECV };

    roce_rq_complete(qp, &wc, false);
}

void roce_rq_flush(RoceQp *qp)
{
    while (qp->s.rq.cons != qp->s.rq.prod) {
        roce_rq_fail(qp, RDMA_WC_WR_FLUSH_ERR);
    }
}
