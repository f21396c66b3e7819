/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of docs/specs/virtio-rdma-work.rst: work queue elements,
 * completions and events.
 */
#include "qemu/osdep.h"
#include "codec-field.h"

QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_sq_wqe) > VIRTIO_RDMA_WQE_ROOM);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_cqe_ex) > VIRTIO_RDMA_CQE_ROOM);

/* The guest ABI has the numbers of rdma/verbs.h, so no conversion is needed. */
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_FLUSH_GLOBAL != RDMA_FLUSH_GLOBAL);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_FLUSH_PERSISTENT != RDMA_FLUSH_PERSISTENT);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_FLUSH_RANGE != RDMA_FLUSH_RANGE);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_FLUSH_MR != RDMA_FLUSH_MR);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_WC_GRH != RDMA_WC_GRH);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_WC_WITH_IMM != RDMA_WC_WITH_IMM);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_WC_WITH_INVALIDATE != RDMA_WC_WITH_INVALIDATE);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_WC_WITH_SMAC != RDMA_WC_WITH_SMAC);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_WC_WITH_VLAN != RDMA_WC_WITH_VLAN);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_WC_WITH_HDR_TYPE != RDMA_WC_WITH_HDR_TYPE);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_HDR_IPV4 != RDMA_HDR_IPV4);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_HDR_IPV6 != RDMA_HDR_IPV6);

#define WC_FLAGS (RDMA_WC_GRH | RDMA_WC_WITH_IMM | RDMA_WC_WITH_INVALIDATE)
#define WC_FLAGS_EX (WC_FLAGS | RDMA_WC_WITH_SMAC | RDMA_WC_WITH_VLAN | \
                     RDMA_WC_WITH_HDR_TYPE)

static void get_ud(const uint8_t *p, RdmaSendWr *wr)
{
    RdmaAv *av = &wr->wr.ud.av;
    const uint8_t *avp = AT(p, virtio_rdma_sq_wqe, wr.ud.av);
    uint32_t label = GET32(avp, virtio_rdma_av, sl_tclass_flowlabel);

    /* As in MODIFY_QP: use only the bits that the field has on the wire. */
    wr->wr.ud.remote_qpn = GET32(p, virtio_rdma_sq_wqe, wr.ud.remote_qpn) &
                           RDMA_24BIT_MASK;
    wr->wr.ud.remote_qkey = GET32(p, virtio_rdma_sq_wqe, wr.ud.remote_qkey);
    GET_BYTES(av->dgid, avp, virtio_rdma_av, dgid);
    GET_BYTES(av->dmac, avp, virtio_rdma_av, dmac);
    av->sgid_index = GET8(avp, virtio_rdma_av, gid_index);
    av->hop_limit = GET8(avp, virtio_rdma_av, hop_limit);
    av->static_rate = GET8(avp, virtio_rdma_av, static_rate);
    av->traffic_class = label >> VIRTIO_RDMA_AV_TCLASS_SHIFT;
    av->sl = label >> VIRTIO_RDMA_AV_SL_SHIFT;
    av->flow_label = label & VIRTIO_RDMA_AV_FLOW_LABEL_MASK;
    /* Truncation could turn a wrong number into that of the port. */
    av->port_num = MIN(GET32(avp, virtio_rdma_av, port), UINT8_MAX);
    av->ah_flags = 0;
}

void virtio_rdma_codec_get_send(const uint8_t *p, bool ud, RdmaSendWr *wr,
                                RdmaHcaPages *pages)
{
    wr->wr_id = GET64(p, virtio_rdma_sq_wqe, wr_id);
    wr->opcode = GET32(p, virtio_rdma_sq_wqe, opcode);
    wr->send_flags = GET32(p, virtio_rdma_sq_wqe, send_flags);
    wr->num_sge = GET32(p, virtio_rdma_sq_wqe, num_sge);

    switch (wr->opcode) {
    case RDMA_WR_LOCAL_INV:
    case RDMA_WR_SEND_WITH_INV:
    case RDMA_WR_RDMA_READ_WITH_INV:
        wr->ex.invalidate_rkey = GET32(p, virtio_rdma_sq_wqe,
                                       ex.invalidate_rkey);
        break;
    default:
        GET_BYTES(wr->ex.imm_data, p, virtio_rdma_sq_wqe, ex.imm_data);
        break;
    }

    if (ud) {
        get_ud(p, wr);
        return;
    }

    switch (wr->opcode) {
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
    case RDMA_WR_RDMA_READ:
    case RDMA_WR_RDMA_READ_WITH_INV:
    case RDMA_WR_ATOMIC_WRITE:
        wr->wr.rdma.remote_addr = GET64(p, virtio_rdma_sq_wqe,
                                        wr.rdma.remote_addr);
        wr->wr.rdma.rkey = GET32(p, virtio_rdma_sq_wqe, wr.rdma.rkey);
        break;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        wr->wr.atomic.remote_addr = GET64(p, virtio_rdma_sq_wqe,
                                          wr.atomic.remote_addr);
        wr->wr.atomic.compare_add = GET64(p, virtio_rdma_sq_wqe,
                                          wr.atomic.compare_add);
        wr->wr.atomic.swap = GET64(p, virtio_rdma_sq_wqe, wr.atomic.swap);
        wr->wr.atomic.rkey = GET32(p, virtio_rdma_sq_wqe, wr.atomic.rkey);
        break;
    case RDMA_WR_FLUSH:
        wr->wr.flush.remote_addr = GET64(p, virtio_rdma_sq_wqe,
                                         wr.flush.remote_addr);
        wr->wr.flush.rkey = GET32(p, virtio_rdma_sq_wqe, wr.flush.rkey);
        wr->wr.flush.length = GET32(p, virtio_rdma_sq_wqe, wr.flush.length);
        wr->wr.flush.type = GET32(p, virtio_rdma_sq_wqe, wr.flush.type);
        wr->wr.flush.level = GET32(p, virtio_rdma_sq_wqe, wr.flush.level);
        break;
    case RDMA_WR_REG_MR:
        wr->wr.reg.mrn = GET32(p, virtio_rdma_sq_wqe, wr.reg.mrn);
        wr->wr.reg.key = GET32(p, virtio_rdma_sq_wqe, wr.reg.key);
        wr->wr.reg.access = GET32(p, virtio_rdma_sq_wqe, wr.reg.access);
        *pages = (RdmaHcaPages) {
            .iova = GET64(p, virtio_rdma_sq_wqe, wr.reg.start),
            .length = GET64(p, virtio_rdma_sq_wqe, wr.reg.length),
            .table = GET64(p, virtio_rdma_sq_wqe, wr.reg.pages),
            .npages = GET32(p, virtio_rdma_sq_wqe, wr.reg.npages),
        };
        break;
    case RDMA_WR_BIND_MW:
        wr->wr.bind.rkey = GET32(p, virtio_rdma_sq_wqe, wr.bind.rkey);
        wr->wr.bind.new_rkey = GET32(p, virtio_rdma_sq_wqe, wr.bind.new_rkey);
        wr->wr.bind.lkey = GET32(p, virtio_rdma_sq_wqe, wr.bind.lkey);
        wr->wr.bind.access = GET32(p, virtio_rdma_sq_wqe, wr.bind.access);
        wr->wr.bind.addr = GET64(p, virtio_rdma_sq_wqe, wr.bind.addr);
        wr->wr.bind.length = GET64(p, virtio_rdma_sq_wqe, wr.bind.length);
        break;
    }
}

uint32_t virtio_rdma_codec_get_slot(const uint8_t *buf)
{
    return GET32(buf, virtio_rdma_direct_slot, length);
}

void virtio_rdma_codec_get_recv(const uint8_t *p, RdmaRecvWr *wr)
{
    wr->wr_id = GET64(p, virtio_rdma_rq_wqe, wr_id);
    wr->num_sge = GET32(p, virtio_rdma_rq_wqe, num_sge);
}

void virtio_rdma_codec_get_sges(const uint8_t *p, uint32_t n, RdmaSge *sge)
{
    for (uint32_t i = 0; i < n; i++) {
        sge[i].addr = GET64(p, virtio_rdma_sge, addr);
        sge[i].length = GET32(p, virtio_rdma_sge, length);
        sge[i].lkey = GET32(p, virtio_rdma_sge, lkey);
        p += sizeof(struct virtio_rdma_sge);
    }
}

void virtio_rdma_codec_put_cqe(uint8_t *p, const RdmaWc *wc, bool ex)
{
    uint32_t flags = wc->wc_flags & (ex ? WC_FLAGS_EX : WC_FLAGS);

    PUT64(p, virtio_rdma_cqe, wr_id, wc->wr_id);
    PUT8(p, virtio_rdma_cqe, status, wc->status);
    PUT8(p, virtio_rdma_cqe, opcode, wc->opcode);
    PUT32(p, virtio_rdma_cqe, vendor_err, wc->vendor_err);
    PUT32(p, virtio_rdma_cqe, byte_len, wc->byte_len);
    if (wc->wc_flags & RDMA_WC_WITH_INVALIDATE) {
        PUT32(p, virtio_rdma_cqe, ex.invalidate_rkey, wc->ex.invalidate_rkey);
    } else {
        PUT_BYTES(p, virtio_rdma_cqe, ex.imm_data, wc->ex.imm_data);
    }
    PUT32(p, virtio_rdma_cqe, qp_num, wc->qp_num);
    PUT32(p, virtio_rdma_cqe, src_qp, wc->src_qp);
    PUT32(p, virtio_rdma_cqe, wc_flags, flags);
    PUT16(p, virtio_rdma_cqe, pkey_index, wc->pkey_index);
    PUT8(p, virtio_rdma_cqe, sl, wc->sl);
    PUT8(p, virtio_rdma_cqe, port_num, wc->port_num);
    if (!ex) {
        return;
    }
    memset(p + sizeof(struct virtio_rdma_cqe), 0,
           sizeof(struct virtio_rdma_cqe_ex) - sizeof(struct virtio_rdma_cqe));
    if (flags & RDMA_WC_WITH_SMAC) {
        PUT_BYTES(p, virtio_rdma_cqe_ex, smac, wc->smac);
    }
    if (flags & RDMA_WC_WITH_VLAN) {
        PUT16(p, virtio_rdma_cqe_ex, vlan, wc->vlan);
    }
    if (flags & RDMA_WC_WITH_HDR_TYPE) {
        PUT8(p, virtio_rdma_cqe_ex, hdr_type, wc->hdr_type);
    }
}

bool virtio_rdma_codec_cqe_is_recv(const uint8_t *p)
{
    return GET8(p, virtio_rdma_cqe, opcode) >= RDMA_WC_RECV;
}

void virtio_rdma_codec_set_cqe_qpn(uint8_t *p, uint32_t qpn)
{
    PUT32(p, virtio_rdma_cqe, qp_num, qpn);
}

void virtio_rdma_codec_put_cqn(uint8_t *p, uint32_t cqn)
{
    PUT32(p, virtio_rdma_cqn, cqn, cqn);
}

void virtio_rdma_codec_put_event(uint8_t *p, const RdmaEvent *event)
{
    PUT32(p, virtio_rdma_event, type, event->type);
    PUT32(p, virtio_rdma_event, id, event->id);
}
