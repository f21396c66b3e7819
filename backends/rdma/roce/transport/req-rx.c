/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The receiving side of an RC requester: acknowledgements and responses (IBTA
 * 9.7.5).
 */
#include <glib.h>
#include "transport/transport.h"

/* The peer has acknowledged packets, so that una has advanced. */
static void progress(RoceQp *qp, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    qp->stalled_timeouts = 0;
    sq->seq_error_handled = false;
    sq->retries = qp->s.attr.retry_cnt;
    sq->rnr_retries = qp->s.attr.rnr_retry;
    if (!sq->rnr_wait) {
        roce_req_start_timer(qp, now);
    }
    /*
     * This acknowledges packets that were sent before the requester went back.
     * Do not send them again.
     */
    if (psn_off(sq->psn, sq->una) > ROCE_PSN_RANGE) {
        roce_req_seek(qp, sq->una);
    }
    roce_sq_reap(qp);
    if (sq->cur != sq->prod || qp->more_sends) {
        roce_qp_schedule(qp);
    }
}

/*
 * The peer has acknowledged all packets before @psn. WQEs that need an explicit
 * response are not acknowledged by this, so that una stops at the first one
 * (IBTA 9.7.5.1.3).
 */
static void ack_up_to(RoceQp *qp, uint32_t psn, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;
    uint32_t old = sq->una;
    uint32_t index;

    for (index = sq->cons; index != sq->started; index++) {
        RoceSendWqe *wqe = roce_swqe(qp, index);
        uint32_t acked;

        if (wqe->done) {
            continue;
        }
        if (roce_opcode_needs_response(wqe->opcode)) {
            break;
        }
        /* @psn is in [una, sent], and una is a PSN of this WQE. */
        acked = psn_off(psn, sq->una);
        if (acked < psn_off(psn_add(wqe->first_psn, wqe->npsn), sq->una)) {
            sq->una = psn;
            break;
        }
        sq->una = psn_add(wqe->first_psn, wqe->npsn);
        wqe->done = true;
        qp->recv_takers -= roce_opcode_takes_recv(wqe->opcode);
        if (sq->una == psn) {
            break;
        }
    }
    if (sq->una != old) {
        progress(qp, now);
    }
}

static void rx_nak(RoceQp *qp, const RoceBth *bth, int64_t now)
{
    switch (bth->aeth.syndrome) {
    case ROCE_NAK_PSN_SEQUENCE:
        roce_req_sequence_error(qp, now);
        break;
    case ROCE_NAK_INVALID_REQ:
        roce_sq_fail(qp, RDMA_WC_REM_INV_REQ_ERR);
        break;
    case ROCE_NAK_REMOTE_ACCESS:
        roce_sq_fail(qp, RDMA_WC_REM_ACCESS_ERR);
        break;
    case ROCE_NAK_REMOTE_OP:
        roce_sq_fail(qp, RDMA_WC_REM_OP_ERR);
        break;
    default:
        /* The code is reserved, or one of reliable datagrams. */
        roce_rx_drop(qp->e, bth, "NAK with a reserved code");
        break;
    }
}

static void rx_ack(RoceQp *qp, const RoceBth *bth, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;
    uint8_t syndrome = bth->aeth.syndrome;
    uint8_t type = syndrome & ROCE_AETH_TYPE_MASK;

    if ((syndrome & ~(ROCE_AETH_TYPE_MASK | ROCE_AETH_VALUE_MASK)) ||
        (type != ROCE_AETH_ACK && type != ROCE_AETH_RNR_NAK &&
         type != ROCE_AETH_NAK)) {
        roce_rx_drop(qp->e, bth, "ACK with a reserved syndrome");
        return;
    }
    if (type == ROCE_AETH_ACK) {
        ack_up_to(qp, psn_add(bth->psn, 1), now);
        if (sq->una != psn_add(bth->psn, 1)) {
            roce_req_sequence_error(qp, now);
        }
        roce_credit_ack_received(qp, bth, now);
        return;
    }

    qp->msn = bth->aeth.msn;
    if (type == ROCE_AETH_RNR_NAK) {
        roce_qp_count(qp, rnr_naks_received);
    } else {
        roce_qp_count(qp, naks_received);
    }
    roce_trace_qp(qp, ROCE_TRACE_NAK_RECEIVED, bth->psn, syndrome);
    ack_up_to(qp, bth->psn, now);
    if (sq->una != bth->psn) {
        roce_req_sequence_error(qp, now);
    } else if (type == ROCE_AETH_RNR_NAK) {
        roce_req_rnr_nak_received(qp, syndrome & ROCE_AETH_VALUE_MASK, now);
    } else {
        rx_nak(qp, bth, now);
    }
}

/* The response to the oldest WQE is complete. */
static void response_complete(RoceQp *qp, RoceSendWqe *wqe, int64_t now)
{
    qp->s.sq.rd_atomic--;
    wqe->done = true;
    if (wqe->opcode == RDMA_WR_RDMA_READ_WITH_INV &&
        !roce_mr_invalidate(qp->e, qp->init.pdn, qp->init.qpn,
                            wqe->invalidate_rkey, false)) {
        roce_sq_fail(qp, RDMA_WC_MW_BIND_ERR);
        return;
    }
    progress(qp, now);
}

static void rx_read_response(RoceQp *qp, RoceSendWqe *wqe,
                             const RocePacket *pkt, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;
    uint32_t k = psn_off(sq->una, wqe->first_psn);
    uint32_t off = k * qp->mtu;
    bool last = k == wqe->npsn - 1;
    RdmaWcStatus status;
    RoceSgList list;

    if (!roce_opcode_is_read(wqe->opcode) ||
        !(pkt->info->flags & (last ? ROCE_OP_ENDS
                                   : ROCE_OP_FIRST | ROCE_OP_MIDDLE)) ||
        pkt->payload_len != (last ? wqe->length - off : qp->mtu)) {
        roce_sq_fail(qp, RDMA_WC_BAD_RESP_ERR);
        return;
    }
    list = roce_send_sgl(qp, sq->cons);
    status = roce_sg_scatter(qp->e, &qp->read_cursor, &list, off,
                             pkt->payload, pkt->payload_len);
    if (status != RDMA_WC_SUCCESS) {
        roce_sq_fail(qp, status);
        return;
    }
    sq->una = psn_add(sq->una, 1);
    sq->rd_psns--;
    if (last) {
        response_complete(qp, wqe, now);
    } else {
        progress(qp, now);
    }
}

/*
 * The response to a FLUSH or ATOMIC WRITE: a READ response without data (A19)
 */
static void rx_placement_response(RoceQp *qp, RoceSendWqe *wqe,
                                  const RocePacket *pkt, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if (!(pkt->info->flags & ROCE_OP_ONLY) || pkt->payload_len) {
        roce_sq_fail(qp, RDMA_WC_BAD_RESP_ERR);
        return;
    }
    sq->una = psn_add(sq->una, 1);
    sq->rd_psns--;
    response_complete(qp, wqe, now);
}

static void rx_atomic_response(RoceQp *qp, RoceSendWqe *wqe,
                               const RocePacket *pkt, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;
    uint64_t result = GUINT64_TO_LE(pkt->bth.atomic_ack);
    RdmaWcStatus status;
    RoceSgList list;

    if (!roce_opcode_is_atomic(wqe->opcode)) {
        roce_sq_fail(qp, RDMA_WC_BAD_RESP_ERR);
        return;
    }
    list = roce_send_sgl(qp, sq->cons);
    status = roce_sg_scatter(qp->e, &qp->read_cursor, &list, 0,
                             (uint8_t *)&result, sizeof(result));
    if (status != RDMA_WC_SUCCESS) {
        roce_sq_fail(qp, status);
        return;
    }
    sq->una = psn_add(sq->una, 1);
    sq->rd_psns--;
    response_complete(qp, wqe, now);
}

/* The WQE that una is a PSN of: the oldest one that is not done */
static RoceSendWqe *oldest_wqe(RoceQp *qp)
{
    return roce_swqe(qp, qp->s.sq.cons);
}

static void rx_response(RoceQp *qp, const RocePacket *pkt, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if ((pkt->info->flags & ROCE_OP_AETH) &&
        (pkt->bth.aeth.syndrome & ~ROCE_AETH_VALUE_MASK) != ROCE_AETH_ACK) {
        roce_rx_drop(qp->e, &pkt->bth, "response with a reserved syndrome");
        return;
    }
    ack_up_to(qp, pkt->bth.psn, now);
    if (sq->una != pkt->bth.psn) {
        roce_req_sequence_error(qp, now);
    } else if (!(pkt->info->flags & ROCE_OP_READ_RESP)) {
        rx_atomic_response(qp, oldest_wqe(qp), pkt, now);
    } else if (roce_opcode_is_placement(oldest_wqe(qp)->opcode)) {
        rx_placement_response(qp, oldest_wqe(qp), pkt, now);
    } else {
        rx_read_response(qp, oldest_wqe(qp), pkt, now);
    }
    if (pkt->info->flags & ROCE_OP_AETH) {
        roce_credit_ack_received(qp, &pkt->bth, now);
    }
}

void roce_req_rx(RoceQp *qp, const RocePacket *pkt, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    /* Duplicates and late packets (IBTA 9.7.5.1.2) */
    if (psn_off(pkt->bth.psn, sq->una) >= psn_off(sq->sent, sq->una)) {
        roce_qp_count(qp, rx_duplicates);
        if ((pkt->info->flags & ROCE_OP_ACK) &&
            !(pkt->bth.aeth.syndrome & ~ROCE_AETH_VALUE_MASK)) {
            roce_credit_old_ack_received(qp, &pkt->bth, now);
        }
        return;
    }
    qp->e->window_closed = false;
    if (pkt->info->flags & ROCE_OP_ACK) {
        rx_ack(qp, &pkt->bth, now);
    } else {
        rx_response(qp, pkt, now);
    }
}
