/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sending side of the requester of RC and UC: WQEs become request packets
 * (IBTA 9.7.3, 9.8.1).
 *
 * The send cursor (cur, cur_pkt, psn) moves over the WQEs. To retransmit,
 * roce_req_seek() moves the cursor back. Since WQEs keep their PSNs, the same
 * packets are sent again.
 */
#include <glib.h>
#include "transport/transport.h"

void roce_req_init(RoceQp *qp, uint32_t psn)
{
    RoceSqState *sq = &qp->s.sq;

    sq->una = psn;
    sq->psn = psn;
    sq->sent = psn;
    sq->end = psn;
    qp->ack_requested_psn = psn;
}

/*
 * The WQE at the send cursor has the error @status. It fails when all WQEs
 * before it are complete. Until then the QP sends nothing.
 */
static void fail_in_turn(RoceQp *qp, RoceSendWqe *wqe, RdmaWcStatus status)
{
    wqe->status = status;
    if (qp->s.sq.cur == qp->s.sq.cons) {
        roce_sq_fail(qp, status);
    }
}

static RdmaWcStatus run_local(RoceQp *qp, RoceSendWqe *wqe)
{
    uint32_t pdn = qp->init.pdn, qpn = qp->init.qpn, index = qp->s.sq.cur;
    const RoceSendArgs *args = roce_sargs(qp, index);
    RoceEngine *e = qp->e;
    bool ok;

    switch (wqe->opcode) {
    case RDMA_WR_REG_MR:
        ok = roce_mr_register(e, pdn, wqe, args, roce_spages(qp, index));
        break;
    case RDMA_WR_BIND_MW:
        ok = roce_mw_bind(e, pdn, qpn, wqe, args);
        break;
    default:
        ok = roce_mr_invalidate(e, pdn, qpn, wqe->invalidate_rkey, false);
        break;
    }
    /* IBTA 11.6.2 calls this status "memory management operation error". */
    return ok ? RDMA_WC_SUCCESS : RDMA_WC_MW_BIND_ERR;
}

static RdmaWcStatus check_memory(const RoceQp *qp, const RoceSendWqe *wqe)
{
    bool explicit = roce_opcode_needs_response(wqe->opcode);
    bool receives = roce_opcode_is_read(wqe->opcode) ||
                    roce_opcode_is_atomic(wqe->opcode);
    RoceSgList list = roce_send_sgl(qp, qp->s.sq.cur);

    if (explicit && !qp->s.attr.max_rd_atomic) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (!roce_sg_check(qp->e, &list,
                       receives ? RDMA_ACCESS_LOCAL_WRITE : 0)) {
        return RDMA_WC_LOC_PROT_ERR;
    }
    return RDMA_WC_SUCCESS;
}

/*
 * Start the WQE at the send cursor. Returns false if it must wait or has an
 * error. LOCAL_INV, REG_MR and BIND_MW are executed here, in order with the
 * packets of other WQEs. A WQE with a fence waits for earlier READs, ATOMICs
 * (IBTA 10.8.3.3), FLUSHes and ATOMIC WRITEs.
 */
static bool start_wqe(RoceQp *qp, RoceSendWqe *wqe, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;
    bool rd_atomic = roce_opcode_needs_response(wqe->opcode);
    bool takes_recv = qp->init.qp_type == RDMA_QPT_RC &&
                      roce_opcode_takes_recv(wqe->opcode);
    RdmaWcStatus status = wqe->status;
    uint32_t npsn;

    if (qp->s.attr.qp_state != RDMA_QPS_RTS) {
        return false;
    }
    if (status == RDMA_WC_SUCCESS) {
        if ((wqe->send_flags & RDMA_SEND_FENCE) && sq->rd_atomic) {
            return false;
        }
        status = check_memory(qp, wqe);
    }
    if (status != RDMA_WC_SUCCESS) {
        fail_in_turn(qp, wqe, status);
        return false;
    }

    if (roce_opcode_is_local(wqe->opcode)) {
        status = run_local(qp, wqe);
        if (status != RDMA_WC_SUCCESS) {
            fail_in_turn(qp, wqe, status);
            return false;
        }
        wqe->npsn = 0;
        wqe->done = true;
        sq->started++;
        return true;
    }

    npsn = roce_npsn(qp, wqe->length);
    if (takes_recv && !roce_credit_may_start(qp, now)) {
        return false;
    }
    if (psn_off(sq->end, sq->una) > ROCE_PSN_RANGE - npsn) {
        return false;
    }
    if (rd_atomic) {
        if (sq->rd_atomic >= qp->s.attr.max_rd_atomic) {
            return false;
        }
        sq->rd_atomic++;
        sq->rd_psns += npsn;
    }
    if (takes_recv) {
        roce_credit_message_started(qp);
    }
    roce_credit_request_sent(qp);
    wqe->first_psn = sq->end;
    wqe->npsn = npsn;
    sq->end = psn_add(sq->end, npsn);
    sq->started++;
    return true;
}

/* Is there a WQE at the send cursor? In RTS this may pull one. */
static bool has_wqe(RoceQp *qp)
{
    return qp->s.sq.cur != qp->s.sq.prod ||
           (qp->s.attr.qp_state == RDMA_QPS_RTS && roce_sq_pull(qp));
}

/*
 * The WQE of the next packet, which is started and has no error. NULL if there
 * is none that can send.
 */
static RoceSendWqe *next_wqe(RoceQp *qp, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;
    RoceSendWqe *wqe;

    for (unsigned n = 0; has_wqe(qp); n++) {
        if (n == ROCE_LOCAL_SLICE) {
            qp->has_more_work = true;
            return NULL;
        }
        wqe = roce_swqe(qp, sq->cur);
        if (sq->cur == sq->started && !start_wqe(qp, wqe, now)) {
            return NULL;
        }
        if (wqe->status != RDMA_WC_SUCCESS) {
            fail_in_turn(qp, wqe, wqe->status);
            return NULL;
        }
        if (wqe->npsn) {
            return wqe;
        }
        sq->cur++;
        roce_sq_reap(qp);
    }
    return NULL;
}

/*
 * May the next packet of @wqe be sent? SENDs and WRITEs wait while too many
 * packets are unacknowledged. READs and ATOMICs are limited by max_rd_atomic
 * instead.
 */
static bool window_open(const RoceQp *qp, const RoceSendWqe *wqe)
{
    const RoceSqState *sq = &qp->s.sq;

    return qp->init.qp_type != RDMA_QPT_RC ||
           roce_opcode_needs_response(wqe->opcode) ||
           psn_off(sq->psn, sq->una) < ROCE_WINDOW + sq->rd_psns;
}

static uint8_t send_operation(const RoceSendWqe *wqe, bool first, bool last)
{
    if (!last) {
        return first ? ROCE_SEND_FIRST : ROCE_SEND_MIDDLE;
    }
    switch (wqe->opcode) {
    case RDMA_WR_SEND_WITH_IMM:
        return first ? ROCE_SEND_ONLY_IMM : ROCE_SEND_LAST_IMM;
    case RDMA_WR_SEND_WITH_INV:
        return first ? ROCE_SEND_ONLY_INV : ROCE_SEND_LAST_INV;
    default:
        return first ? ROCE_SEND_ONLY : ROCE_SEND_LAST;
    }
}

static uint8_t write_operation(const RoceSendWqe *wqe, bool first, bool last)
{
    if (!last) {
        return first ? ROCE_WRITE_FIRST : ROCE_WRITE_MIDDLE;
    }
    if (wqe->opcode == RDMA_WR_RDMA_WRITE_WITH_IMM) {
        return first ? ROCE_WRITE_ONLY_IMM : ROCE_WRITE_LAST_IMM;
    }
    return first ? ROCE_WRITE_ONLY : ROCE_WRITE_LAST;
}

/*
 * Build the next packet of a SEND or WRITE. Returns false if its memory cannot
 * be accessed.
 */
static bool build_data(RoceQp *qp, const RoceSendWqe *wqe, RoceTx *tx)
{
    RoceSqState *sq = &qp->s.sq;
    uint32_t off = sq->cur_pkt * qp->mtu;
    bool first = sq->cur_pkt == 0;
    bool last = sq->cur_pkt == wqe->npsn - 1;
    RoceSgList list;

    tx->len = MIN(qp->mtu, wqe->length - off);
    switch (wqe->opcode) {
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
        tx->bth.opcode = write_operation(wqe, first, last);
        tx->bth.reth.va = first ? wqe->remote_addr : 0;
        tx->bth.reth.rkey = first ? wqe->rkey : 0;
        tx->bth.reth.len = first ? wqe->length : 0;
        break;
    default:
        tx->bth.opcode = send_operation(wqe, first, last);
        tx->bth.ieth = last ? wqe->invalidate_rkey : 0;
        break;
    }
    if (last) {
        tx->bth.se = wqe->send_flags & RDMA_SEND_SOLICITED;
        memcpy(tx->bth.imm, wqe->imm, sizeof(tx->bth.imm));
    }
    if (wqe->is_inline) {
        roce_frame_copy(tx->frame, roce_sinline(qp, sq->cur) + off, tx->len);
        return true;
    }
    list = roce_send_sgl(qp, sq->cur);
    return roce_sg_gather(qp->e, &qp->send_cursor, &list, off, tx->len,
                          tx->frame);
}

/* Build the request for a READ, or for the rest of one from the cursor on. */
static void build_read(RoceQp *qp, const RoceSendWqe *wqe, RoceTx *tx)
{
    uint32_t off = qp->s.sq.cur_pkt * qp->mtu;

    tx->bth.opcode = ROCE_READ_REQUEST;
    tx->bth.reth.va = wqe->remote_addr + off;
    tx->bth.reth.rkey = wqe->rkey;
    tx->bth.reth.len = wqe->length - off;
}

static void build_atomic(RoceQp *qp, const RoceSendWqe *wqe, RoceTx *tx)
{
    const RoceSendArgs *args = roce_sargs(qp, qp->s.sq.cur);
    bool swap = wqe->opcode == RDMA_WR_ATOMIC_CMP_AND_SWP;

    tx->bth.opcode = swap ? ROCE_COMPARE_SWAP : ROCE_FETCH_ADD;
    tx->bth.atomiceth.va = wqe->remote_addr;
    tx->bth.atomiceth.rkey = wqe->rkey;
    tx->bth.atomiceth.swap_add = swap ? args->swap : args->compare_add;
    tx->bth.atomiceth.compare = swap ? args->compare_add : 0;
}

static void build_flush(RoceQp *qp, const RoceSendWqe *wqe, RoceTx *tx)
{
    const RoceSendArgs *args = roce_sargs(qp, qp->s.sq.cur);

    tx->bth.opcode = ROCE_FLUSH;
    tx->bth.feth = args->access;
    tx->bth.reth.va = wqe->remote_addr;
    tx->bth.reth.rkey = wqe->rkey;
    tx->bth.reth.len = args->reg_length;
}

/*
 * Build an ATOMIC WRITE, whose value is in RoceSendArgs if length is 0, or in
 * memory. Returns false if that memory cannot be accessed.
 */
static bool build_atomic_write(RoceQp *qp, RoceSendWqe *wqe, RoceTx *tx)
{
    uint64_t value = GUINT64_TO_LE(roce_sargs(qp, qp->s.sq.cur)->compare_add);
    RoceSgList list;

    tx->bth.opcode = ROCE_ATOMIC_WRITE;
    tx->bth.reth.va = wqe->remote_addr;
    tx->bth.reth.rkey = wqe->rkey;
    tx->bth.reth.len = sizeof(value);
    tx->len = sizeof(value);
    if (!wqe->length) {
        roce_frame_copy(tx->frame, &value, sizeof(value));
        return true;
    }
    list = roce_send_sgl(qp, qp->s.sq.cur);
    return roce_sg_gather(qp->e, &qp->send_cursor, &list, 0, tx->len,
                          tx->frame);
}

/*
 * Build the next packet of the WQE at the send cursor. Returns false if its
 * memory cannot be accessed.
 */
static bool build(RoceQp *qp, RoceSendWqe *wqe, RoceTx *tx)
{
    switch (wqe->opcode) {
    case RDMA_WR_RDMA_READ:
    case RDMA_WR_RDMA_READ_WITH_INV:
        build_read(qp, wqe, tx);
        return true;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        build_atomic(qp, wqe, tx);
        return true;
    case RDMA_WR_FLUSH:
        build_flush(qp, wqe, tx);
        return true;
    case RDMA_WR_ATOMIC_WRITE:
        return build_atomic_write(qp, wqe, tx);
    default:
        return build_data(qp, wqe, tx);
    }
}

/* Has a packet requested an ACK that has not arrived? */
static bool ack_is_due(const RoceQp *qp)
{
    return psn_off(qp->ack_requested_psn, qp->s.sq.una) - 1 < ROCE_PSN_RANGE;
}

/*
 * Decide whether the next packet requests an ACK, and count packets that do
 * not. The last packet of a message does, and at least one in ROCE_ACK_INTERVAL
 * packets.
 *
 * Also request an ACK while none is due. The ACK timeout counts from a packet
 * that requests an ACK, and if many QPs share a slow wire, the next such packet
 * may be sent much later. A QP with a rate limit requests an ACK in each packet
 * for the same reason. A QP whose peer is in this engine does not need this.
 */
static bool decide_ack_req(RoceQp *qp, bool last)
{
    RoceSqState *sq = &qp->s.sq;

    if (last || qp->rate || (!qp->path_local && !ack_is_due(qp)) ||
        ++sq->unrequested >= ROCE_ACK_INTERVAL) {
        sq->unrequested = 0;
        return true;
    }
    return false;
}

bool roce_req_tx(RoceQp *qp, int64_t now, RoceTx *tx)
{
    RoceSqState *sq = &qp->s.sq;
    bool rc = qp->init.qp_type == RDMA_QPT_RC;
    RoceSendWqe *wqe;
    uint32_t npsn = 1;

    if ((qp->s.attr.qp_state != RDMA_QPS_RTS &&
         qp->s.attr.qp_state != RDMA_QPS_SQD) || sq->rnr_wait) {
        return false;
    }
    wqe = next_wqe(qp, now);
    if (!wqe) {
        return false;
    }
    if (!window_open(qp, wqe)) {
        qp->e->window_closed = true;
        return false;
    }

    if (roce_opcode_is_read(wqe->opcode)) {
        npsn = wqe->npsn - sq->cur_pkt;
    }
    if (!build(qp, wqe, tx)) {
        roce_tx_undo(qp->e, tx);
        fail_in_turn(qp, wqe, RDMA_WC_LOC_PROT_ERR);
        return false;
    }
    if (!rc) {
        tx->bth.opcode |= ROCE_UC;
    }
    tx->bth.psn = sq->psn;

    if (psn_off(sq->psn, sq->una) + npsn > psn_off(sq->sent, sq->una)) {
        sq->sent = psn_add(sq->psn, npsn);
    }
    sq->psn = psn_add(sq->psn, npsn);
    sq->cur_pkt += npsn;
    if (sq->cur_pkt == wqe->npsn) {
        sq->cur_pkt = 0;
        sq->cur++;
        if (!rc) {
            qp->e->frame_out_qpn = qp->init.qpn;
            qp->e->frame_out_completes = true;
        }
    }

    if (!rc) {
        sq->una = sq->psn;
        return true;
    }
    tx->bth.ack_req = decide_ack_req(qp, sq->cur_pkt == 0);
    /* If the timeout was 0 when an ACK was requested, start the timer now. */
    if (!ack_is_due(qp) || sq->ack_deadline == ROCE_NO_DEADLINE) {
        roce_req_start_timer(qp, now);
    }
    if (tx->bth.ack_req) {
        qp->ack_requested_psn = sq->psn;
    }
    return true;
}

void roce_req_sent(RoceQp *qp)
{
    RoceSqState *sq = &qp->s.sq;

    /* If the WQE was flushed since roce_poll_tx(), it is complete. */
    if (sq->cur != sq->cons) {
        roce_swqe(qp, sq->cur - 1)->done = true;
        roce_sq_reap(qp);
    }
}
