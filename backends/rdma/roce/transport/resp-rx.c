/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The receiving side of the responder of RC and UC: the execution of request
 * packets (IBTA 9.7.4, 9.7.5, 9.8.2).
 */
#include <glib.h>
#include "transport/transport.h"

/* The result of a request packet */
typedef enum Verdict {
    ACCEPTED,
    NOT_READY,                      /* RC: RNR NAK; UC: dropped */
    /* RC: a NAK with this code; UC: dropped */
    INVALID,
    NO_ACCESS,
    NO_MEMORY,
    /* The receive WQE has the error and completes with it. */
    RECV_TOO_SHORT,
    RECV_BAD,
} Verdict;

/*
 * Does the payload have a valid length? First and middle packets are full.
 * Others are not longer than that, and only an ONLY packet may be empty.
 */
static bool length_ok(const RoceQp *qp, const RocePacket *pkt)
{
    if (pkt->info->flags & (ROCE_OP_FIRST | ROCE_OP_MIDDLE)) {
        return pkt->payload_len == qp->mtu;
    }
    return pkt->payload_len <= qp->mtu &&
           (pkt->payload_len || (pkt->info->flags & ROCE_OP_ONLY));
}

/* Get a receive WQE for this message into the QP's own queue. */
static bool take_recv(RoceQp *qp)
{
    return roce_recv_pull(qp) &&
           (qp->s.rq.cons != qp->s.rq.prod || roce_srq_take(qp));
}

static void complete_recv(RoceQp *qp, const RocePacket *pkt,
                          RdmaWcOpcode opcode, uint32_t byte_len)
{
    RdmaWc wc = {
        .status = RDMA_WC_SUCCESS,
        .opcode = opcode,
        .byte_len = byte_len,
        .src_qp = qp->s.attr.dest_qp_num,
        .sl = qp->s.attr.ah_attr.sl,
    };

    if (pkt->info->flags & ROCE_OP_IMM) {
        wc.wc_flags |= RDMA_WC_WITH_IMM;
        memcpy(wc.ex.imm_data, pkt->bth.imm, sizeof(wc.ex.imm_data));
    }
    if (pkt->info->flags & ROCE_OP_IETH) {
        wc.wc_flags |= RDMA_WC_WITH_INVALIDATE;
        wc.ex.invalidate_rkey = pkt->bth.ieth;
    }
    roce_rq_complete(qp, &wc, pkt->bth.se);
}

/*
 * Execute a packet of a SEND. The receive WQE is retired with the last packet
 * only. If an unreliable message breaks off, the next message uses the WQE.
 */
static Verdict rx_send(RoceQp *qp, const RocePacket *pkt)
{
    RoceRespState *resp = &qp->s.resp;
    uint32_t flags = pkt->info->flags;
    uint32_t index = qp->s.rq.cons;
    RdmaWcStatus status;
    RoceRecvWqe *wqe;
    RoceSgList list;

    if (!length_ok(qp, pkt)) {
        return INVALID;
    }
    if (!take_recv(qp)) {
        return NOT_READY;
    }
    wqe = &qp->rwqe;
    if (wqe->status != RDMA_WC_SUCCESS) {
        return RECV_BAD;
    }
    if (flags & ROCE_OP_STARTS) {
        resp->offset = 0;
    }
    if (pkt->payload_len > ROCE_MAX_MSG - resp->offset) {
        return INVALID;
    }
    list = roce_recv_sgl(qp, index);
    status = roce_sg_scatter(qp->e, &qp->recv_cursor, &list, resp->offset,
                             pkt->payload, pkt->payload_len);
    if (status != RDMA_WC_SUCCESS) {
        wqe->status = status;
        return status == RDMA_WC_LOC_LEN_ERR ? RECV_TOO_SHORT : RECV_BAD;
    }
    if ((flags & ROCE_OP_IETH) &&
        !roce_mr_invalidate(qp->e, qp->init.pdn, qp->init.qpn,
                            pkt->bth.ieth, true)) {
        return NO_ACCESS;
    }
    resp->offset += pkt->payload_len;
    if (flags & ROCE_OP_ENDS) {
        complete_recv(qp, pkt, RDMA_WC_RECV, resp->offset);
    }
    return ACCEPTED;
}

/*
 * Begin a WRITE. Sets *@mr and *@va to the region and the address that it
 * writes to; *@mr stays unchanged if the WRITE is empty.
 */
static Verdict begin_write(RoceQp *qp, const RocePacket *pkt,
                           const RoceMr **mr, uint64_t *va)
{
    RoceRespState *resp = &qp->s.resp;
    const RoceBth *bth = &pkt->bth;

    if (!(qp->s.attr.qp_access_flags & RDMA_ACCESS_REMOTE_WRITE) ||
        bth->reth.len > ROCE_MAX_MSG) {
        return INVALID;
    }
    /* The key of an empty WRITE is not checked (IBTA 9.7.4.1.5). */
    if (bth->reth.len) {
        *va = bth->reth.va;
        *mr = roce_resp_mr(qp, bth->reth.rkey, RDMA_ACCESS_REMOTE_WRITE, va,
                           bth->reth.len);
        if (!*mr) {
            return NO_ACCESS;
        }
    }
    resp->offset = 0;
    resp->write_va = bth->reth.va;
    resp->write_rkey = bth->reth.rkey;
    resp->write_len = bth->reth.len;
    return ACCEPTED;
}

/*
 * Execute a packet of a WRITE, whose length must be that of its RETH (IBTA
 * 9.7.4.1.7).
 */
static Verdict rx_write(RoceQp *qp, const RocePacket *pkt)
{
    RoceRespState *resp = &qp->s.resp;
    uint32_t flags = pkt->info->flags;
    uint32_t len = pkt->payload_len;
    const RoceMr *mr = NULL;
    Verdict verdict;
    uint32_t left;
    uint64_t va = 0;

    if (!length_ok(qp, pkt)) {
        return INVALID;
    }
    if (flags & ROCE_OP_STARTS) {
        verdict = begin_write(qp, pkt, &mr, &va);
        if (verdict != ACCEPTED) {
            return verdict;
        }
    }
    left = resp->write_len - resp->offset;
    if (flags & ROCE_OP_ENDS ? len != left : len >= left) {
        return INVALID;
    }
    if (flags & ROCE_OP_IMM) {
        if (!take_recv(qp)) {
            return NOT_READY;
        }
        if (qp->rwqe.status != RDMA_WC_SUCCESS) {
            return RECV_BAD;
        }
    }
    if (len) {
        if (!mr) {
            va = resp->write_va + resp->offset;
            mr = roce_resp_mr(qp, resp->write_rkey, RDMA_ACCESS_REMOTE_WRITE,
                              &va, len);
        }
        if (!mr) {
            return NO_ACCESS;
        }
        if (!roce_mr_write(qp->e, mr, va, pkt->payload, len)) {
            return NO_MEMORY;
        }
    }
    resp->offset += len;
    if (flags & ROCE_OP_IMM) {
        complete_recv(qp, pkt, RDMA_WC_RECV_RDMA_WITH_IMM, resp->write_len);
    }
    return ACCEPTED;
}

/* Does the packet continue the message in progress (IBTA 9.7.4.1.2)? */
static bool sequence_ok(const RoceQp *qp, uint32_t flags)
{
    uint32_t op = qp->s.resp.op;

    return flags & ROCE_OP_STARTS ? !op : (flags & op) != 0;
}

static void message_part_done(RoceQp *qp, const RocePacket *pkt)
{
    RoceRespState *resp = &qp->s.resp;

    resp->epsn = psn_add(resp->epsn, 1);
    if (pkt->info->flags & ROCE_OP_ENDS) {
        resp->op = 0;
        resp->msn = psn_add(resp->msn, 1);
    } else {
        resp->op = pkt->info->flags & (ROCE_OP_SEND | ROCE_OP_WRITE);
    }
    if (pkt->bth.ack_req) {
        roce_resp_ack(qp);
    }
}

static void refuse_rc(RoceQp *qp, Verdict verdict)
{
    RoceRespState *resp = &qp->s.resp;

    switch (verdict) {
    case NOT_READY:
        roce_resp_nak(qp, ROCE_AETH_RNR_NAK | qp->s.attr.min_rnr_timer,
                      resp->epsn);
        break;
    case NO_ACCESS:
        roce_resp_fatal_event(qp, ROCE_NAK_REMOTE_ACCESS, resp->epsn);
        break;
    case NO_MEMORY:
        roce_resp_fatal_event(qp, ROCE_NAK_REMOTE_OP, resp->epsn);
        break;
    case RECV_TOO_SHORT:
        roce_rq_fail(qp, RDMA_WC_LOC_LEN_ERR);
        roce_resp_fatal(qp, ROCE_NAK_INVALID_REQ, resp->epsn);
        break;
    case RECV_BAD:
        roce_rq_fail(qp, qp->rwqe.status);
        roce_resp_fatal(qp, ROCE_NAK_REMOTE_OP, resp->epsn);
        break;
    default:
        roce_resp_fatal_event(qp, ROCE_NAK_INVALID_REQ, resp->epsn);
        break;
    }
}

#define EXPLICIT_REQUEST (ROCE_OP_READ_REQ | ROCE_OP_ATOMIC | \
                          ROCE_OP_FLUSH | ROCE_OP_ATOMIC_WRITE)

/*
 * Execute a request that needs an explicit response. Returns false if it is
 * refused with the NAK *@syndrome.
 */
static bool rx_explicit_request(RoceQp *qp, const RocePacket *pkt,
                                uint8_t *syndrome)
{
    switch (pkt->info->flags & EXPLICIT_REQUEST) {
    case ROCE_OP_READ_REQ:
        return roce_resp_read(qp, &pkt->bth, syndrome);
    case ROCE_OP_ATOMIC:
        return roce_resp_atomic(qp, &pkt->bth, syndrome);
    case ROCE_OP_FLUSH:
        return roce_resp_flush(qp, &pkt->bth, syndrome);
    default:
        return roce_resp_atomic_write(qp, pkt, syndrome);
    }
}

static void rx_rc_in_order(RoceQp *qp, const RocePacket *pkt)
{
    RoceRespState *resp = &qp->s.resp;
    uint32_t flags = pkt->info->flags;
    uint8_t syndrome;
    Verdict verdict;

    /* The expected packet has arrived, so a NAK of it is obsolete. */
    resp->nak_sent = false;
    if (resp->ack_kind == ROCE_ACK_NEGATIVE) {
        resp->ack_kind = ROCE_ACK_NONE;
    }

    if (!sequence_ok(qp, flags)) {
        refuse_rc(qp, INVALID);
        return;
    }
    if (flags & EXPLICIT_REQUEST) {
        if (!rx_explicit_request(qp, pkt, &syndrome)) {
            roce_resp_fatal_event(qp, syndrome, resp->epsn);
        }
        return;
    }

    verdict = flags & ROCE_OP_SEND ? rx_send(qp, pkt) : rx_write(qp, pkt);
    if (verdict == ACCEPTED) {
        qp->last_explicit = false;
        message_part_done(qp, pkt);
    } else {
        refuse_rc(qp, verdict);
    }
}

static void rx_rc(RoceQp *qp, const RocePacket *pkt)
{
    RoceRespState *resp = &qp->s.resp;
    uint32_t off = psn_off(pkt->bth.psn, resp->epsn);

    if (off == 0) {
        rx_rc_in_order(qp, pkt);
    } else if (off < ROCE_PSN_RANGE) {
        roce_qp_count(qp, rx_out_of_sequence);
        roce_trace_drop(qp->e, &pkt->bth, "not the expected PSN");
        if (!resp->nak_sent) {
            roce_resp_nak(qp, ROCE_NAK_PSN_SEQUENCE, resp->epsn);
        }
    } else {
        roce_qp_count(qp, rx_duplicates);
        if (pkt->info->flags & (ROCE_OP_SEND | ROCE_OP_WRITE)) {
            roce_resp_ack(qp);
        } else {
            roce_resp_replay(qp, pkt);
        }
    }
}

/*
 * Receive a packet of UC. After a gap, all packets up to the next one that
 * begins a message are dropped silently (IBTA 9.8.2.2). Data that the
 * incomplete message has written stays. If the receive buffer is too short, the
 * message is dropped as well. If the buffer may not be written to, the receive
 * WQE completes with an error and the QP moves to ERR (IBTA 9.9.3).
 */
static void rx_uc(RoceQp *qp, const RocePacket *pkt)
{
    RoceRespState *resp = &qp->s.resp;
    uint32_t flags = pkt->info->flags;
    Verdict verdict = INVALID;

    if (pkt->bth.psn != resp->epsn) {
        roce_qp_count(qp, rx_out_of_sequence);
        resp->epsn = pkt->bth.psn;
        resp->op = 0;
    } else if (flags & ROCE_OP_STARTS) {
        resp->op = 0;
    }

    if (sequence_ok(qp, flags)) {
        verdict = flags & ROCE_OP_SEND ? rx_send(qp, pkt) : rx_write(qp, pkt);
    }
    switch (verdict) {
    case ACCEPTED:
        message_part_done(qp, pkt);
        return;
    case RECV_TOO_SHORT:
        qp->rwqe.status = RDMA_WC_SUCCESS;
        break;
    case RECV_BAD:
        roce_rq_fail(qp, qp->rwqe.status);
        roce_qp_enter_err(qp);
        return;
    default:
        break;
    }
    roce_rx_drop(qp->e, &pkt->bth, "unreliable message refused");
    resp->epsn = psn_add(resp->epsn, 1);
    resp->op = 0;
}

void roce_resp_rx(RoceQp *qp, const RocePacket *pkt)
{
    RoceRespState *resp = &qp->s.resp;

    /* A request in RTR shows that the peer is in RTS (IBTA 11.6.3.2). */
    if (qp->s.attr.qp_state == RDMA_QPS_RTR && !resp->comm_est) {
        resp->comm_est = true;
        roce_qp_event(qp, RDMA_EVENT_COMM_EST);
    }
    if (qp->init.qp_type == RDMA_QPT_RC) {
        rx_rc(qp, pkt);
    } else {
        rx_uc(qp, pkt);
    }
}
