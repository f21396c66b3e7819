/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decode WQEs. take() has copied the WQE to s->wqe; the result is a work
 * request of the core.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "int.h"

/*
 * Decode the SGEs after the @fixed bytes of a WQE of @len bytes. False if there
 * may not be so many.
 */
static bool get_sges(NetRoce *s, uint32_t max_sge, uint32_t num_sge,
                     size_t fixed, size_t len)
{
    size_t in_wqe = (len - fixed) / sizeof(NetRoceSge);

    if (!rdma_hca_check_range("num_sge", num_sge, 0, MIN(max_sge, in_wqe))) {
        return false;
    }
    net_roce_get_sges((NetRoceSge *)(s->wqe.bytes + fixed), num_sge,
                      s->hca.sge);
    return true;
}

/*
 * The address is copied here, so DESTROY_AH has no effect on a request that the
 * device has taken.
 */
static bool get_ud(NetRoce *s, const RdmaHcaQp *qp, const NetRoceSendWqe *wqe,
                   RdmaSendWr *wr)
{
    uint32_t n = le32_to_cpu(wqe->wr.ud.ah);
    NetRoceAv av;

    if (n >= s->n_ahs || s->ahs[n].pdn != qp->init.pdn) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: QP %u: address handle "
                      "%u %s\n", qp->init.qpn, n,
                      n < s->n_ahs && s->ahs[n].pdn ? "has another PD"
                                                    : "does not exist");
        return false;
    }
    memcpy(&av, s->ahs[n].bytes, sizeof(av));
    net_roce_get_av(&av, &wr->wr.ud.av);
    wr->wr.ud.remote_qpn = le32_to_cpu(wqe->wr.ud.remote_qpn) &
                           RDMA_24BIT_MASK;
    wr->wr.ud.remote_qkey = le32_to_cpu(wqe->wr.ud.remote_qkey);
    return true;
}

/*
 * The proposal's text allows inline data for SEND only, but its WQEs have room
 * for WRITE.
 */
static bool get_inline(const RdmaHcaWq *wq, const NetRoceSendWqe *wqe,
                       RdmaSendWr *wr)
{
    wr->inline_data = wqe->inline_data;
    return wr->opcode != RDMA_WR_RDMA_READ &&
           rdma_hca_check_range("inline_len", wr->inline_len, 0,
                                MIN(wq->max_inline, NET_ROCE_MAX_INLINE));
}

static bool get_send(NetRoce *s, RdmaHcaQp *qp, size_t len, RdmaSendWr *wr)
{
    const NetRoceSendWqe *wqe = &s->wqe.send;
    size_t fixed = sizeof(*wqe);

    net_roce_get_send(wqe, len, wr);
    if (len < fixed || wr->opcode > RDMA_WR_RDMA_READ ||
        !rdma_hca_check_flags("send_flags", wr->send_flags,
                              RDMA_SEND_FENCE | RDMA_SEND_SIGNALED |
                              RDMA_SEND_SOLICITED | RDMA_SEND_INLINE)) {
        return false;
    }
    if (rdma_qp_is_datagram(qp->init.qp_type)) {
        if (!get_ud(s, qp, wqe, wr)) {
            return false;
        }
    } else {
        wr->wr.rdma.remote_addr = le64_to_cpu(wqe->wr.rdma.remote_addr);
        wr->wr.rdma.rkey = le32_to_cpu(wqe->wr.rdma.rkey);
    }
    if (wr->send_flags & RDMA_SEND_INLINE) {
        return get_inline(&qp->sq, wqe, wr);
    }
    wr->sg_list = s->hca.sge;
    return get_sges(s, qp->sq.max_sge, wr->num_sge, fixed, len);
}

void net_roce_decode_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr)
{
    NetRoce *s = net_roce_of(hca);

    wr->cost = s->send.cost;
    if (!get_send(s, qp, s->send.len, wr)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: QP %u: bad send WQE "
                      "of %zu bytes (%zu or more): opcode %u flags 0x%x "
                      "num_sge %u\n", qp->init.qpn, s->send.len,
                      sizeof(NetRoceSendWqe), wr->opcode, wr->send_flags,
                      wr->num_sge);
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
        wr->num_sge = 0;
        wr->send_flags &= ~RDMA_SEND_INLINE;
    }
}

void net_roce_decode_recv(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr)
{
    NetRoce *s = net_roce_of(hca);
    const NetRoceRecvWqe *wqe = &s->wqe.recv;

    wr->wr_id = le64_to_cpu(wqe->wr_id);
    wr->num_sge = le32_to_cpu(wqe->num_sge);
    wr->cost = s->recv.cost;
    wr->sg_list = hca->sge;
    if (s->recv.len < sizeof(*wqe) ||
        !get_sges(s, wq->max_sge, wr->num_sge, sizeof(*wqe), s->recv.len)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: QP %u: bad receive "
                      "WQE of %zu bytes (%zu or more): num_sge %u\n", wq->id,
                      s->recv.len, sizeof(*wqe), wr->num_sge);
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
        wr->num_sge = 0;
    }
}
