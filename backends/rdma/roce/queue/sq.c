/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send queues: work requests become WQEs. A request with invalid fields gets an
 * error status here, and completes with it in order (IBTA 10.8.3, 11.4.1).
 */
#include <glib.h>
#include "queue/queue.h"

/* Copy the SGEs or inline data to the slot of WQE @index. Sets the length. */
static RdmaWcStatus fill_payload(RoceQp *qp, uint32_t index,
                                 const RdmaSendWr *wr, RoceSendWqe *wqe)
{
    const RdmaQpCap *cap = &qp->init.cap;
    uint64_t length = 0;
    uint32_t i;

    if (wr->send_flags & RDMA_SEND_INLINE) {
        if (wr->opcode == RDMA_WR_ATOMIC_WRITE && !wr->num_sge) {
            /* fill_args() has copied the value. */
            return wr->inline_len == sizeof(uint64_t) ? RDMA_WC_SUCCESS
                                                      : RDMA_WC_LOC_LEN_ERR;
        }
        if (!roce_wr_info[wr->opcode].sends || wr->num_sge ||
            wr->inline_len > cap->max_inline_data) {
            return RDMA_WC_LOC_QP_OP_ERR;
        }
        if (wr->inline_len) {
            memcpy(roce_sinline(qp, index), wr->inline_data, wr->inline_len);
        }
        wqe->is_inline = true;
        wqe->length = wr->inline_len;
        return RDMA_WC_SUCCESS;
    }

    if (!roce_wr_info[wr->opcode].sends && !roce_wr_info[wr->opcode].receives) {
        return RDMA_WC_SUCCESS;
    }
    if (wr->num_sge > cap->max_send_sge) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    for (i = 0; i < wr->num_sge; i++) {
        length += wr->sg_list[i].length;
    }
    if (length > ROCE_MAX_MSG ||
        ((roce_opcode_is_atomic(wr->opcode) ||
          wr->opcode == RDMA_WR_ATOMIC_WRITE) &&
         length != sizeof(uint64_t))) {
        return RDMA_WC_LOC_LEN_ERR;
    }
    if (wr->num_sge) {
        memcpy(roce_ssges(qp, index), wr->sg_list,
               wr->num_sge * sizeof(RdmaSge));
    }
    wqe->num_sge = wr->num_sge;
    wqe->length = length;
    return RDMA_WC_SUCCESS;
}

static void fill_operands(const RdmaSendWr *wr, RoceSendWqe *wqe)
{
    switch (wr->opcode) {
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        wqe->remote_addr = wr->wr.atomic.remote_addr;
        wqe->rkey = wr->wr.atomic.rkey;
        break;
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
    case RDMA_WR_RDMA_READ:
    case RDMA_WR_RDMA_READ_WITH_INV:
    case RDMA_WR_ATOMIC_WRITE:
        wqe->remote_addr = wr->wr.rdma.remote_addr;
        wqe->rkey = wr->wr.rdma.rkey;
        break;
    case RDMA_WR_FLUSH:
        wqe->remote_addr = wr->wr.flush.remote_addr;
        wqe->rkey = wr->wr.flush.rkey;
        break;
    case RDMA_WR_REG_MR:
        wqe->rkey = wr->wr.reg.key;
        wqe->remote_addr = wr->wr.reg.iova;
        break;
    case RDMA_WR_BIND_MW:
        wqe->invalidate_rkey = wr->wr.bind.rkey;
        wqe->rkey = wr->wr.bind.new_rkey;
        wqe->remote_addr = wr->wr.bind.addr;
        break;
    default:
        break;
    }

    switch (wr->opcode) {
    case RDMA_WR_SEND_WITH_IMM:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
        memcpy(wqe->imm, wr->ex.imm_data, sizeof(wqe->imm));
        break;
    case RDMA_WR_SEND_WITH_INV:
    case RDMA_WR_RDMA_READ_WITH_INV:
    case RDMA_WR_LOCAL_INV:
        wqe->invalidate_rkey = wr->ex.invalidate_rkey;
        break;
    default:
        break;
    }
}

static void fill_args(const RoceQp *qp, const RdmaSendWr *wr,
                      RoceSendArgs *args)
{
    uint64_t value;

    if (roce_is_ud(qp)) {
        args->remote_qpn = wr->wr.ud.remote_qpn;
        args->remote_qkey = wr->wr.ud.remote_qkey;
        args->av = wr->wr.ud.av;
        return;
    }
    switch (wr->opcode) {
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        args->compare_add = wr->wr.atomic.compare_add;
        args->swap = wr->wr.atomic.swap;
        break;
    case RDMA_WR_ATOMIC_WRITE:
        if (wr->send_flags & RDMA_SEND_INLINE &&
            wr->inline_len == sizeof(value)) {
            memcpy(&value, wr->inline_data, sizeof(value));
            args->compare_add = GUINT64_FROM_LE(value);
        }
        break;
    case RDMA_WR_FLUSH:
        args->reg_length = wr->wr.flush.length;
        args->access = wr->wr.flush.type |
                       wr->wr.flush.level << ROCE_FETH_LEVEL_SHIFT;
        break;
    case RDMA_WR_REG_MR:
        args->mrn = wr->wr.reg.mrn;
        args->access = wr->wr.reg.access;
        args->reg_length = wr->wr.reg.length;
        break;
    case RDMA_WR_BIND_MW:
        args->lkey = wr->wr.bind.lkey;
        args->access = wr->wr.bind.access;
        args->reg_length = wr->wr.bind.length;
        break;
    default:
        break;
    }
}

static RdmaWcStatus fill_wqe(RoceQp *qp, uint32_t index,
                             const RdmaSendWr *wr, RoceSendWqe *wqe)
{
    RoceSendArgs *args;

    if (wr->status != RDMA_WC_SUCCESS) {
        return wr->status;
    }
    if (!roce_opcode_ok(qp->init.qp_type, wr->opcode) ||
        !roce_opcode_enabled(qp->e, wr->opcode) ||
        (wr->send_flags & ~RDMA_SEND_FLAGS)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (wr->opcode == RDMA_WR_FLUSH &&
        !roce_flush_ok(wr->wr.flush.type, wr->wr.flush.level)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (roce_is_ud(qp) && wr->wr.ud.remote_qpn > RDMA_24BIT_MASK) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    fill_operands(wr, wqe);
    if (roce_is_ud(qp) || roce_wr_info[wr->opcode].has_args) {
        args = roce_sargs_reserve(qp, index);
        if (!args) {
            return RDMA_WC_GENERAL_ERR;
        }
        fill_args(qp, wr, args);
    }
    return fill_payload(qp, index, wr, wqe);
}

/*
 * Take over the page list of a REG_MR that carries its mapping. On UD the WR
 * has an address vector instead, whatever its opcode is.
 */
static void take_pages(RoceQp *qp, uint32_t index, const RdmaSendWr *wr,
                       RoceSendWqe *wqe)
{
    if (wr->status != RDMA_WC_SUCCESS || wr->opcode != RDMA_WR_REG_MR ||
        roce_is_ud(qp) || !wr->wr.reg.npages) {
        return;
    }
    if (wqe->status == RDMA_WC_SUCCESS) {
        wqe->npages = wr->wr.reg.npages;
        *roce_spages(qp, index) = wr->wr.reg.pages;
    } else {
        g_free(wr->wr.reg.pages);
    }
}

/* The number of WQEs that the send queue can still take */
static uint32_t room_left(const RoceQp *qp)
{
    uint32_t max = MIN(qp->init.cap.max_send_wr, ROCE_SQ_DEPTH);
    uint32_t n = qp->s.sq.prod - qp->s.sq.cons;

    return n < max ? max - n : 0;
}

/* Make memory for one more WQE; room_left() is not 0. */
static bool reserve_one_more(RoceQp *qp)
{
    return roce_sq_reserve(qp, qp->s.sq.prod - qp->s.sq.cons + 1);
}

static void add_wqe(RoceQp *qp, const RdmaSendWr *wr)
{
    uint32_t index = qp->s.sq.prod;
    RoceSendWqe *wqe = roce_swqe(qp, index);
    RoceSendArgs *args = roce_sargs(qp, index);

    memset(wqe, 0, sizeof(*wqe));
    if (args) {
        memset(args, 0, sizeof(*args));
    }
    wqe->wr_id = wr->wr_id;
    wqe->opcode = wr->opcode;
    wqe->send_flags = wr->send_flags;
    wqe->status = fill_wqe(qp, index, wr, wqe);
    take_pages(qp, index, wr, wqe);
    qp->s.sq.prod++;
}

bool roce_sq_pull(RoceQp *qp)
{
    RoceEngine *e = qp->e;
    RdmaSendWr wr = {};

    if (!qp->more_sends || !room_left(qp)) {
        return false;
    }
    switch (e->consumer.next_send(e->consumer_opaque, qp->init.qpn,
                                  qp->s.attr.qp_state != RDMA_QPS_RTS, &wr)) {
    case RDMA_NEXT_WR:
        e->work += wr.cost;
        if (!reserve_one_more(qp)) {
            /* No memory: try again when an older WQE has completed. */
            e->consumer.put_back_send(e->consumer_opaque, qp->init.qpn, &wr);
            return false;
        }
        add_wqe(qp, &wr);
        return true;
    case RDMA_NEXT_LATER:
        if (qp->s.attr.qp_state == RDMA_QPS_RTS) {
            return false;
        }
        /* Flushing is done. */
        break;
    case RDMA_NEXT_NONE:
        break;
    }
    qp->more_sends = false;
    return false;
}
