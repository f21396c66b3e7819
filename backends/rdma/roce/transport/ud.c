/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unreliable datagrams, and the GSI, a datagram QP with a well-known QPN and
 * Q_Key (IBTA 9.8.3, 10.2.5).
 */
#include <glib.h>
#include "transport/transport.h"

static uint32_t own_qkey(const RoceQp *qp)
{
    return qp->init.qp_type == RDMA_QPT_GSI ? RDMA_GSI_QKEY
                                            : qp->s.attr.qkey;
}

/* Advance the send cursor; a datagram that is not sent completes at once. */
static void finish_datagram(RoceQp *qp, bool sent)
{
    RoceSqState *sq = &qp->s.sq;

    sq->cur++;
    sq->started++;
    if (sent) {
        sq->una = sq->psn = sq->sent = sq->end = psn_add(sq->end, 1);
        qp->e->frame_out_qpn = qp->init.qpn;
        qp->e->frame_out_completes = true;
    } else {
        roce_swqe(qp, sq->cur - 1)->done = true;
        roce_sq_reap(qp);
    }
}

static RdmaWcStatus route_datagram(RoceQp *qp, const RoceSendWqe *wqe,
                                   RoceTx *tx)
{
    const RoceSendArgs *args = roce_sargs(qp, qp->s.sq.cur);
    RoceEngine *e = qp->e;

    if (wqe->status != RDMA_WC_SUCCESS) {
        return wqe->status;
    }
    if (!roce_path_init(e, &args->av, qp->init.qpn, args->remote_qpn,
                        &tx->ud_path)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    tx->path = &tx->ud_path;
    tx->template = NULL;
    tx->routed = true;
    if (rdma_gid_is_multicast(tx->ud_path.dgid)) {
        tx->local = false;
        tx->mcast = qp;
    } else {
        tx->local = roce_gid_is_own(e, tx->ud_path.dgid, tx->ud_path.vlan);
    }
    tx->rate = roce_pace_rate(qp, &args->av);
    return RDMA_WC_SUCCESS;
}

static RdmaWcStatus build_datagram(RoceQp *qp, const RoceSendWqe *wqe,
                                   RoceTx *tx)
{
    uint32_t index = qp->s.sq.cur;
    const RoceSendArgs *args = roce_sargs(qp, index);
    RoceSgList list = roce_send_sgl(qp, index);
    RoceEngine *e = qp->e;

    tx->len = wqe->length;
    tx->bth.opcode = ROCE_UD | (wqe->opcode == RDMA_WR_SEND_WITH_IMM ?
                                ROCE_SEND_ONLY_IMM : ROCE_SEND_ONLY);
    tx->bth.se = wqe->send_flags & RDMA_SEND_SOLICITED;
    tx->bth.dqpn = args->remote_qpn;
    tx->bth.psn = qp->s.sq.end;
    tx->bth.deth.sqpn = qp->init.qpn;
    tx->bth.deth.qkey = args->remote_qkey & RDMA_QKEY_CONTROLLED ?
                        own_qkey(qp) : args->remote_qkey;
    memcpy(tx->bth.imm, wqe->imm, sizeof(tx->bth.imm));

    if (wqe->is_inline) {
        roce_frame_copy(tx->frame, roce_sinline(qp, index), wqe->length);
    } else if (!roce_sg_gather(e, &qp->send_cursor, &list, 0, wqe->length,
                               tx->frame)) {
        roce_frame_unmap(e, tx->frame);
        return RDMA_WC_LOC_PROT_ERR;
    }
    return RDMA_WC_SUCCESS;
}

bool roce_ud_tx(RoceQp *qp, int64_t now, RoceTx *tx)
{
    RoceSqState *sq = &qp->s.sq;
    RdmaWcStatus status;

    for (unsigned n = 0; qp->s.attr.qp_state == RDMA_QPS_RTS &&
                         (sq->cur != sq->prod || roce_sq_pull(qp)); n++) {
        RoceSendWqe *wqe = roce_swqe(qp, sq->cur);

        if (n == ROCE_LOCAL_SLICE) {
            qp->has_more_work = true;
            return false;
        }

        /* A datagram above the port's MTU is dropped silently (C10-93.1.1). */
        if (wqe->status == RDMA_WC_SUCCESS &&
            wqe->length > rdma_mtu_bytes(roce_port_mtu(qp->e))) {
            finish_datagram(qp, false);
            continue;
        }
        if (roce_pace_pauses(qp, now)) {
            roce_pace_wait(qp);
            return false;
        }
        status = route_datagram(qp, wqe, tx);
        if (status == RDMA_WC_SUCCESS) {
            tx->waits = roce_tx_must_wait(qp->e, tx);
            if (tx->waits) {
                return false;
            }
            status = build_datagram(qp, wqe, tx);
        }
        if (status != RDMA_WC_SUCCESS) {
            roce_sq_fail(qp, status);
            return false;
        }
        finish_datagram(qp, true);
        return true;
    }
    return false;
}

/*
 * Get a receive WQE with room for @len bytes. If there is none, the datagram is
 * dropped; a WQE that is too short stays in the queue, or in the SRQ for other
 * QPs (IBTA 9.9.3, class D: an unreliable datagram's length error is silent).
 * So no sender can move the QP to ERR, or use up its buffers, with long
 * packets.
 */
static bool buffer_ready(RoceQp *qp, uint32_t len)
{
    const RoceSrq *srq = qp->srq;
    const RoceRecvWqe *wqe = srq ? &srq->wqe : &qp->rwqe;
    const RdmaSge *sges = srq ? srq->sges : qp->rsges;
    uint64_t room = 0;
    uint32_t i;

    if (!roce_recv_pull(qp)) {
        return false;
    }
    for (i = 0; i < wqe->num_sge; i++) {
        room += sges[i].length;
    }
    return (wqe->status != RDMA_WC_SUCCESS || len <= room) &&
           (!srq || roce_srq_take(qp));
}

void roce_ud_rx(RoceQp *qp, const RocePacket *pkt)
{
    RoceEngine *e = qp->e;
    uint32_t index = qp->s.rq.cons;
    uint32_t len = pkt->payload_len + ROCE_GRH_LEN;
    uint8_t grh[ROCE_GRH_LEN];
    RdmaWcStatus status;
    RoceSgList list;
    RdmaWc wc = {
        .opcode = RDMA_WC_RECV,
        .byte_len = len,
        .src_qp = pkt->bth.deth.sqpn,
        .wc_flags = RDMA_WC_GRH | RDMA_WC_WITH_SMAC | RDMA_WC_WITH_HDR_TYPE,
        .sl = pkt->path.pcp,
        .hdr_type = pkt->path.is_ipv4 ? RDMA_HDR_IPV4 : RDMA_HDR_IPV6,
    };

    if (pkt->bth.deth.qkey != own_qkey(qp)) {
        roce_qp_count(qp, bad_qkey);
        roce_rx_drop(e, &pkt->bth, "wrong Q_Key");
        return;
    }
    /* The caller has checked the group of a multicast. */
    if (pkt->bth.dqpn != RDMA_QPN_MCAST &&
        !roce_gid_is_own(e, pkt->path.dgid, pkt->path.vlan)) {
        roce_rx_drop(e, &pkt->bth, "not to a GID of this port");
        return;
    }
    if (!buffer_ready(qp, len)) {
        roce_rx_drop(e, &pkt->bth, "no receive WQE that is long enough");
        return;
    }

    list = roce_recv_sgl(qp, index);
    status = qp->rwqe.status;
    if (status == RDMA_WC_SUCCESS) {
        roce_grh(pkt, grh);
        status = roce_sg_scatter(e, &qp->recv_cursor, &list, 0, grh,
                                 sizeof(grh));
    }
    if (status == RDMA_WC_SUCCESS) {
        status = roce_sg_scatter(e, &qp->recv_cursor, &list, sizeof(grh),
                                 pkt->payload, pkt->payload_len);
    }
    if (status != RDMA_WC_SUCCESS) {
        roce_rq_fail(qp, status);
        roce_qp_enter_err(qp);
        return;
    }
    memcpy(wc.smac, pkt->path.smac, RDMA_MAC_LEN);
    if (pkt->path.vlan != RDMA_NO_VLAN) {
        wc.wc_flags |= RDMA_WC_WITH_VLAN;
        wc.vlan = pkt->path.vlan;
    }
    if (pkt->info->flags & ROCE_OP_IMM) {
        wc.wc_flags |= RDMA_WC_WITH_IMM;
        memcpy(wc.ex.imm_data, pkt->bth.imm, sizeof(wc.ex.imm_data));
    }
    roce_rq_complete(qp, &wc, pkt->bth.se);
}
