/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Posting work requests of the guest to the host.
 */
#include "qemu/osdep.h"
#include "int.h"
#include "../trace.h"

/* Opcodes, flags, status codes and SGEs are those of libibverbs. */
QEMU_BUILD_BUG_ON((int)RDMA_WR_SEND_WITH_INV != (int)IBV_WR_SEND_WITH_INV);
QEMU_BUILD_BUG_ON((int)RDMA_SEND_INLINE != (int)IBV_SEND_INLINE);
QEMU_BUILD_BUG_ON((int)RDMA_WC_WR_FLUSH_ERR != (int)IBV_WC_WR_FLUSH_ERR);
QEMU_BUILD_BUG_ON((int)RDMA_WC_GENERAL_ERR != (int)IBV_WC_GENERAL_ERR);
QEMU_BUILD_BUG_ON(sizeof(RdmaSge) != sizeof(struct ibv_sge));
QEMU_BUILD_BUG_ON(offsetof(RdmaSge, addr) != offsetof(struct ibv_sge, addr));
QEMU_BUILD_BUG_ON(offsetof(RdmaSge, length) !=
                  offsetof(struct ibv_sge, length));
QEMU_BUILD_BUG_ON(offsetof(RdmaSge, lkey) != offsetof(struct ibv_sge, lkey));

/*
 * There is no room while a job moves the QP to ERR or RESET: the host's QP may
 * be there already. Not every device flushes posts in ERR or refuses those in
 * RESET.
 */
static uint32_t wq_room(const VerbsQp *qp, const VerbsWq *wq)
{
    return qp->failing || qp->stopping || qp->obj.destroying
           ? 0 : wq->max - wq->count;
}

uint32_t verbs_send_room(const VerbsQp *qp)
{
    return qp->state >= RDMA_QPS_RTS &&
           (!qp->gsi || verbs_gsi_may_send(qp->gsi)) ? wq_room(qp, &qp->sq) : 0;
}

uint32_t verbs_recv_room(const VerbsQp *qp)
{
    /* For QP 1, an arriving MAD pulls its receive. */
    RdmaQpState from = qp->gsi ? RDMA_QPS_ERR : RDMA_QPS_INIT;

    return qp->state >= from ? wq_room(qp, &qp->rq) : 0;
}

bool verbs_send_flushes(const VerbsQp *qp)
{
    return verbs_recv_flushes(qp) || qp->sqe;
}

bool verbs_recv_flushes(const VerbsQp *qp)
{
    return qp->failed || qp->state == RDMA_QPS_ERR;
}

/* Not every library of the host checks the opcode. */
static bool has_opcode(RdmaQpType type, uint32_t opcode)
{
    switch (opcode) {
    case RDMA_WR_SEND:
    case RDMA_WR_SEND_WITH_IMM:
        return true;
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
    case RDMA_WR_LOCAL_INV:
    case RDMA_WR_BIND_MW:
        return type == RDMA_QPT_RC || type == RDMA_QPT_UC;
    case RDMA_WR_RDMA_READ:
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
    case RDMA_WR_SEND_WITH_INV:
        return type == RDMA_QPT_RC;
    default:
        /* libibverbs has no such work request. */
        return false;
    }
}

static bool sends_data(uint32_t opcode)
{
    RdmaWcOpcode op = rdma_wc_opcode(opcode);

    return op == RDMA_WC_SEND || op == RDMA_WC_RDMA_WRITE;
}

/* The request names the window and the region by their keys. */
static RdmaWcStatus fill_bind(RdmaVerbs *v, const RdmaSendWr *wr,
                              struct ibv_send_wr *h)
{
    VerbsMr *mw = verbs_get(v->mws_by_key, wr->wr.bind.rkey >> 8);
    VerbsMr *mr = verbs_get(v->mrs_by_key, wr->wr.bind.lkey);

    if (!mw) {
        return RDMA_WC_MW_BIND_ERR;
    }
    if (!mr && !wr->wr.bind.length) {
        /* Not every library accepts no region: take that of the last bind. */
        mr = verbs_get(v->mrs_by_key, mw->bound_lkey);
    }
    /* The poster chooses only the last 8 bits of the key. */
    if (!mr || (wr->wr.bind.rkey ^ wr->wr.bind.new_rkey) >> 8) {
        return RDMA_WC_MW_BIND_ERR;
    }
    mw->bound_lkey = mr->mr->lkey;
    h->bind_mw.mw = mw->mw;
    h->bind_mw.rkey = wr->wr.bind.new_rkey;
    h->bind_mw.bind_info = (struct ibv_mw_bind_info) {
        .mr = mr->mr,
        .addr = wr->wr.bind.addr,
        .length = wr->wr.bind.length,
        .mw_access_flags = wr->wr.bind.access,
    };
    return RDMA_WC_SUCCESS;
}

/*
 * ibv_bind_mw(), for windows of type 1, derives the new key from mw->rkey. That
 * is wrong after a failed bind, so it is set to the guest's key.
 */
static int bind_type_1(VerbsQp *qp, const RdmaSendWr *wr,
                       const struct ibv_send_wr *h)
{
    struct ibv_mw *mw = h->bind_mw.mw;
    struct ibv_mw_bind bind = {
        .wr_id = h->wr_id,
        .send_flags = h->send_flags,
        .bind_info = h->bind_mw.bind_info,
    };
    uint32_t old_rkey = mw->rkey;
    int ret;

    if (wr->wr.bind.new_rkey != ibv_inc_rkey(wr->wr.bind.rkey)) {
        return -EINVAL;
    }
    mw->rkey = wr->wr.bind.rkey;
    ret = -ibv_bind_mw(qp->qp, mw, &bind);
    if (ret) {
        mw->rkey = old_rkey;
    }
    return ret;
}

/* Fill in the fields that depend on the opcode. */
static RdmaWcStatus fill_opcode(RdmaVerbs *v, const RdmaSendWr *wr,
                                struct ibv_send_wr *h)
{
    switch (wr->opcode) {
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_READ:
        h->wr.rdma.remote_addr = wr->wr.rdma.remote_addr;
        h->wr.rdma.rkey = wr->wr.rdma.rkey;
        return RDMA_WC_SUCCESS;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        h->wr.atomic.remote_addr = wr->wr.atomic.remote_addr;
        h->wr.atomic.compare_add = wr->wr.atomic.compare_add;
        h->wr.atomic.swap = wr->wr.atomic.swap;
        h->wr.atomic.rkey = wr->wr.atomic.rkey;
        return RDMA_WC_SUCCESS;
    case RDMA_WR_BIND_MW:
        return fill_bind(v, wr, h);
    default:
        return RDMA_WC_SUCCESS;
    }
}

/* Translate @wr for the host. Returns another status if the request is bad. */
static RdmaWcStatus translate_send(RdmaVerbs *v, VerbsQp *qp,
                                   const RdmaSendWr *wr, VerbsAh *ah,
                                   struct ibv_send_wr *h,
                                   struct ibv_sge *inline_sge)
{
    *h = (struct ibv_send_wr) {
        .wr_id = verbs_wq_next_wr_id(qp, RDMA_SQ),
        .opcode = (enum ibv_wr_opcode)wr->opcode,
        .send_flags = wr->send_flags,
        .sg_list = (struct ibv_sge *)wr->sg_list,
        .num_sge = wr->num_sge,
    };
    if (wr->status != RDMA_WC_SUCCESS) {
        return wr->status;
    }
    if (!has_opcode(qp->init.qp_type, wr->opcode)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (wr->send_flags & RDMA_SEND_INLINE) {
        if (!sends_data(wr->opcode)) {
            return RDMA_WC_LOC_QP_OP_ERR;
        }
        /* The library copies the data before it returns. */
        *inline_sge = (struct ibv_sge) {
            .addr = (uintptr_t)wr->inline_data,
            .length = wr->inline_len,
        };
        h->sg_list = inline_sge;
        h->num_sge = wr->inline_len ? 1 : 0;
    }
    /* Or the key to invalidate, which is a member of the same union. */
    memcpy(&h->imm_data, wr->ex.imm_data, sizeof(h->imm_data));
    if (qp->init.qp_type != RDMA_QPT_UD) {
        return fill_opcode(v, wr, h);
    }
    h->wr.ud.ah = verbs_ah_host(ah);
    h->wr.ud.remote_qpn = wr->wr.ud.remote_qpn;
    /* rxe does not know controlled Q_Keys. */
    h->wr.ud.remote_qkey = wr->wr.ud.remote_qkey & RDMA_QKEY_CONTROLLED
                           ? qp->set_attr.qkey : wr->wr.ud.remote_qkey;
    return RDMA_WC_SUCCESS;
}

static int post_host(VerbsQp *qp, const RdmaSendWr *wr, struct ibv_send_wr *h)
{
    struct ibv_send_wr *bad;
    int ret;

    if (wr->opcode == RDMA_WR_BIND_MW &&
        h->bind_mw.mw->type == IBV_MW_TYPE_1) {
        return bind_type_1(qp, wr, h);
    }
    ret = -ibv_post_send(qp->qp, h, &bad);
    if (!ret && wr->opcode == RDMA_WR_BIND_MW) {
        /* Type 2: the poster keeps the key for the next bind. */
        h->bind_mw.mw->rkey = wr->wr.bind.new_rkey;
    }
    return ret;
}

/*
 * No host has the address, so the datagram is lost. But its completion implies
 * that the sends before it are done. If the host does not report their end,
 * post an empty datagram to the address of the last one, but to no QP there.
 */
static void post_lost(RdmaVerbs *v, VerbsQp *qp, VerbsWqe *wqe)
{
    const VerbsWqe *last = verbs_wq_unreported(&qp->sq);

    if (!wqe->unsignaled && last &&
        verbs_post_empty(qp, verbs_wq_next_wr_id(qp, RDMA_SQ), last->ah,
                         false)) {
        wqe->ah = verbs_ah_hold(last->ah);
        verbs_wq_push(&qp->sq);
        return;
    }
    verbs_wq_push_local(v, qp, RDMA_SQ, RDMA_WC_SUCCESS);
}

/*
 * Fail a bad request. If the host reports the end of all sends before it, an
 * unreliable QP goes to SQE (IBTA 10.3.1), in which it still receives.
 * Otherwise the host fails a request without valid memory, in its turn. Such a
 * request cannot be posted to a UD QP, so that QP goes to ERR.
 */
static void post_bad(RdmaVerbs *v, VerbsQp *qp, VerbsWqe *wqe,
                     RdmaWcStatus status)
{
    if (qp->gsi || (qp->init.qp_type != RDMA_QPT_RC &&
                    !verbs_wq_unreported(&qp->sq))) {
        qp->sqe = true;
        verbs_wq_push_local(v, qp, RDMA_SQ, status);
        return;
    }
    wqe->status = status;
    if (qp->init.qp_type != RDMA_QPT_UD &&
        verbs_post_empty(qp, verbs_wq_next_wr_id(qp, RDMA_SQ), NULL, true)) {
        verbs_wq_push(&qp->sq);
        return;
    }
    verbs_qp_fail(v, qp);
    verbs_wq_push_local(v, qp, RDMA_SQ, status);
}

int verbs_post_send(RdmaVerbs *v, VerbsQp *qp, const RdmaSendWr *wr)
{
    bool flushed = verbs_send_flushes(qp);
    VerbsAh *ah = NULL;
    struct ibv_sge inline_sge;
    struct ibv_send_wr h;
    RdmaWcStatus status;
    VerbsWqe *wqe;
    int ret = 0;

    /* A bad request fails even if its datagram would be lost. */
    if (qp->init.qp_type == RDMA_QPT_UD && !flushed &&
        wr->status == RDMA_WC_SUCCESS && has_opcode(RDMA_QPT_UD, wr->opcode)) {
        ret = verbs_ah_get(v, qp, &wr->wr.ud.av, &ah);
        if (ret == -EAGAIN) {
            return ret;
        }
    }
    wqe = verbs_wq_next(&qp->sq);
    wqe->wr_id = wr->wr_id;
    wqe->opcode = rdma_wc_opcode(wr->opcode);
    wqe->ah = ah;
    wqe->unsignaled = !(wr->send_flags & RDMA_SEND_SIGNALED) &&
                      !qp->init.sq_sig_all;
    if (flushed) {
        verbs_wq_push_local(v, qp, RDMA_SQ, RDMA_WC_WR_FLUSH_ERR);
        return 0;
    }
    if (ret == -EHOSTUNREACH) {
        post_lost(v, qp, wqe);
        return 0;
    }
    if (qp->gsi) {
        status = verbs_gsi_post_send(qp->gsi, wqe, wr);
        if (status == RDMA_WC_SUCCESS) {
            return 0;
        }
        goto bad;
    }
    status = ret ? RDMA_WC_LOC_QP_OP_ERR
                 : translate_send(v, qp, wr, ah, &h, &inline_sge);
    if (status == RDMA_WC_SUCCESS) {
        ret = post_host(qp, wr, &h);
        if (!ret) {
            verbs_wq_push(&qp->sq);
            return 0;
        }
        status = wr->opcode == RDMA_WR_BIND_MW ? RDMA_WC_MW_BIND_ERR
                                               : RDMA_WC_LOC_QP_OP_ERR;
    }
bad:
    trace_rdma_verbs_bad_send(v, qp->init.qpn, wr->wr_id, wr->opcode, status,
                              ret);
    post_bad(v, qp, wqe, status);
    return 0;
}

bool verbs_post_recv_host(struct ibv_qp *qp, struct ibv_srq *srq,
                          VerbsWqe *wqe, uint64_t wr_id, const RdmaRecvWr *wr)
{
    struct ibv_sge poison = { .length = 1 };
    struct ibv_recv_wr *bad, h = {
        .wr_id = wr_id,
        .sg_list = (struct ibv_sge *)wr->sg_list,
        .num_sge = wr->num_sge,
    };

    wqe->status = wr->status;
    if (wr->status == RDMA_WC_SUCCESS) {
        if (!(srq ? ibv_post_srq_recv(srq, &h, &bad)
                  : ibv_post_recv(qp, &h, &bad))) {
            return true;
        }
        wqe->status = RDMA_WC_LOC_QP_OP_ERR;
    }
    h.sg_list = &poison;
    h.num_sge = 1;
    return !(srq ? ibv_post_srq_recv(srq, &h, &bad)
                 : ibv_post_recv(qp, &h, &bad));
}

void verbs_post_recv(RdmaVerbs *v, VerbsQp *qp, const RdmaRecvWr *wr)
{
    VerbsWqe *wqe = verbs_wq_next(&qp->rq);

    wqe->wr_id = wr->wr_id;
    wqe->opcode = RDMA_WC_RECV;
    if (verbs_recv_flushes(qp)) {
        verbs_wq_push_local(v, qp, RDMA_RQ, RDMA_WC_WR_FLUSH_ERR);
    } else if (verbs_post_recv_host(qp->qp, NULL, wqe,
                                    verbs_wq_next_wr_id(qp, RDMA_RQ), wr)) {
        verbs_wq_push(&qp->rq);
    } else {
        verbs_qp_fail(v, qp);
        verbs_wq_push_local(v, qp, RDMA_RQ, wqe->status);
    }
}
