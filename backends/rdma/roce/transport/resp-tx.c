/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sending side of an RC responder: explicit responses in the order of the
 * requests, and after them one acknowledgement of all later requests (IBTA
 * 9.7.5.1: responses are ordered, ACKs may be coalesced).
 */
#include <glib.h>
#include "transport/transport.h"

void roce_resp_nak(RoceQp *qp, uint8_t syndrome, uint32_t psn)
{
    RoceRespState *resp = &qp->s.resp;

    resp->ack_kind = ROCE_ACK_NEGATIVE;
    resp->ack_syndrome = syndrome;
    resp->ack_psn = psn;
    resp->nak_sent = true;
    roce_qp_schedule(qp);
}

void roce_resp_fatal(RoceQp *qp, uint8_t syndrome, uint32_t psn)
{
    qp->s.resp.closing = true;
    if (qp->s.attr.qp_state != RDMA_QPS_ERR) {
        roce_qp_enter_err(qp);
    }
    roce_resp_nak(qp, syndrome, psn);
}

void roce_resp_fatal_event(RoceQp *qp, uint8_t syndrome, uint32_t psn)
{
    bool told = qp->s.attr.qp_state == RDMA_QPS_ERR;

    roce_resp_fatal(qp, syndrome, psn);
    if (told) {
        return;
    }
    switch (syndrome) {
    case ROCE_NAK_REMOTE_ACCESS:
        roce_qp_event(qp, RDMA_EVENT_QP_ACCESS_ERR);
        break;
    case ROCE_NAK_INVALID_REQ:
        roce_qp_event(qp, RDMA_EVENT_QP_REQ_ERR);
        break;
    default:
        roce_qp_event(qp, RDMA_EVENT_QP_FATAL);
        break;
    }
}

static bool can_respond(const RoceQp *qp)
{
    switch (qp->s.attr.qp_state) {
    case RDMA_QPS_RTR:
    case RDMA_QPS_RTS:
    case RDMA_QPS_SQD:
        return true;
    case RDMA_QPS_ERR:
        return qp->s.resp.closing;
    default:
        return false;
    }
}

/*
 * Build the next packet of a READ response. Returns false if its memory cannot
 * be accessed.
 */
static bool build_read_response(RoceQp *qp, int64_t now, RoceResource *r,
                                RoceTx *tx)
{
    uint32_t n = MIN(qp->mtu, r->reply_len - r->reply_off);
    bool first = r->reply_off == 0;
    bool last = n == r->reply_len - r->reply_off;
    uint64_t va = r->reply_va + r->reply_off;
    uint8_t nak = ROCE_NAK_REMOTE_ACCESS;
    const RoceMr *mr;

    if (n) {
        mr = roce_resp_mr(qp, r->rkey, RDMA_ACCESS_REMOTE_READ, &va, n);
        if (mr && !roce_frame_map(qp->e, tx->frame, mr, va, n)) {
            mr = NULL;
            nak = ROCE_NAK_REMOTE_OP;
        }
        if (!mr) {
            roce_tx_undo(qp->e, tx);
            if (!r->first) {
                /*
                 * The request was a late duplicate: the requester already has
                 * the response, and has since invalidated the region.
                 */
                r->pending = false;
                return false;
            }
            /* After an error, later requests must get no response. */
            qp->s.resp.res_out = qp->s.resp.res_prod;
            roce_resp_fatal_event(qp, nak, r->reply_psn);
            return false;
        }
    }

    if (first) {
        tx->bth.opcode = last ? ROCE_READ_RESP_ONLY : ROCE_READ_RESP_FIRST;
    } else {
        tx->bth.opcode = last ? ROCE_READ_RESP_LAST : ROCE_READ_RESP_MIDDLE;
    }
    tx->len = n;
    tx->bth.psn = r->reply_psn;
    if (first || last) {
        tx->bth.aeth.syndrome = roce_credit_syndrome(qp, now);
        tx->bth.aeth.msn = r->msn;
    }
    r->reply_off += n;
    r->reply_psn = psn_add(r->reply_psn, 1);
    if (last) {
        r->pending = false;
        r->first = false;
    }
    return true;
}

/*
 * Build the response to an atomic, or to a FLUSH or ATOMIC WRITE, which is a
 * READ response without data (A19).
 */
static void build_short_response(RoceQp *qp, int64_t now, RoceResource *r,
                                 RoceTx *tx)
{
    tx->bth.opcode = r->type == ROCE_RES_ATOMIC ? ROCE_ATOMIC_ACKNOWLEDGE
                                                : ROCE_READ_RESP_ONLY;
    tx->bth.psn = r->psn;
    tx->bth.aeth.syndrome = roce_credit_syndrome(qp, now);
    tx->bth.aeth.msn = r->msn;
    tx->bth.atomic_ack = r->result;
    r->pending = false;
    r->first = false;
}

static void build_ack(RoceQp *qp, int64_t now, RoceTx *tx)
{
    RoceRespState *resp = &qp->s.resp;
    bool not_ready = false;

    tx->bth.opcode = ROCE_ACKNOWLEDGE;
    tx->bth.aeth.msn = resp->msn;
    if (resp->ack_kind == ROCE_ACK_POSITIVE) {
        tx->bth.psn = roce_resp_last_acked(qp);
        tx->bth.aeth.syndrome = roce_credit_syndrome(qp, now);
    } else {
        tx->bth.psn = resp->ack_psn;
        tx->bth.aeth.syndrome = resp->ack_syndrome;
        if ((resp->ack_syndrome & ROCE_AETH_TYPE_MASK) ==
            ROCE_AETH_RNR_NAK) {
            roce_qp_count(qp, rnr_naks_sent);
            not_ready = true;
        } else {
            roce_qp_count(qp, naks_sent);
        }
        roce_trace_qp(qp, ROCE_TRACE_NAK_SENT, resp->ack_psn,
                      resp->ack_syndrome);
    }
    resp->ack_kind = ROCE_ACK_NONE;
    resp->closing = false;
    if (not_ready) {
        roce_credit_rnr_nak_sent(qp);
    }
}

bool roce_resp_tx(RoceQp *qp, int64_t now, RoceTx *tx)
{
    RoceResource *r;

    if (!can_respond(qp)) {
        return false;
    }
    while ((r = roce_resp_next(qp))) {
        switch (r->type) {
        case ROCE_RES_ATOMIC:
        case ROCE_RES_ATOMIC_WRITE:
        case ROCE_RES_FLUSH:
            build_short_response(qp, now, r, tx);
            return true;
        default:
            if (build_read_response(qp, now, r, tx)) {
                return true;
            }
            break;
        }
    }
    if (qp->s.resp.ack_kind == ROCE_ACK_NONE) {
        return false;
    }
    build_ack(qp, now, tx);
    return true;
}
