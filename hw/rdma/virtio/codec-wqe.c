/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of docs/specs/virtio-rdma-work.rst: work queue elements and
 * completions.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "codec.h"

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

/* Fields that are copied */
QEMU_BUILD_BUG_ON(sizeof_field(struct virtio_rdma_av, dgid) != RDMA_GID_LEN);
QEMU_BUILD_BUG_ON(sizeof_field(struct virtio_rdma_av, dmac) != RDMA_MAC_LEN);
QEMU_BUILD_BUG_ON(sizeof_field(struct virtio_rdma_cqe_ex, smac) !=
                  RDMA_MAC_LEN);
QEMU_BUILD_BUG_ON(sizeof_field(struct virtio_rdma_sq_wqe, ex.imm_data) !=
                  sizeof_field(RdmaSendWr, ex.imm_data));
QEMU_BUILD_BUG_ON(sizeof_field(struct virtio_rdma_cqe, ex.imm_data) !=
                  sizeof_field(RdmaWc, ex.imm_data));

#define WC_FLAGS (RDMA_WC_GRH | RDMA_WC_WITH_IMM | RDMA_WC_WITH_INVALIDATE)
#define WC_FLAGS_EX (WC_FLAGS | RDMA_WC_WITH_SMAC | RDMA_WC_WITH_VLAN | \
                     RDMA_WC_WITH_HDR_TYPE)

static void get_ud(const struct virtio_rdma_sq_wqe *p, RdmaSendWr *wr)
{
    RdmaAv *av = &wr->wr.ud.av;
    const struct virtio_rdma_av *wire = &p->wr.ud.av;
    uint32_t label = le32_to_cpu(wire->sl_tclass_flowlabel);

    /* As in MODIFY_QP: use only the bits that the field has on the wire. */
    wr->wr.ud.remote_qpn = le32_to_cpu(p->wr.ud.remote_qpn) & RDMA_24BIT_MASK;
    wr->wr.ud.remote_qkey = le32_to_cpu(p->wr.ud.remote_qkey);
    memcpy(av->dgid, wire->dgid, sizeof(av->dgid));
    memcpy(av->dmac, wire->dmac, sizeof(av->dmac));
    av->sgid_index = wire->gid_index;
    av->hop_limit = wire->hop_limit;
    av->static_rate = wire->static_rate;
    av->traffic_class = label >> VIRTIO_RDMA_AV_TCLASS_SHIFT;
    av->sl = label >> VIRTIO_RDMA_AV_SL_SHIFT;
    av->flow_label = label & VIRTIO_RDMA_AV_FLOW_LABEL_MASK;
    /* Truncation could turn a wrong number into that of the port. */
    av->port_num = MIN(le32_to_cpu(wire->port), UINT8_MAX);
    av->ah_flags = 0;
}

void virtio_rdma_codec_get_send(const void *buf, bool ud, RdmaSendWr *wr,
                                RdmaHcaPages *pages)
{
    const struct virtio_rdma_sq_wqe *p = buf;

    wr->wr_id = le64_to_cpu(p->wr_id);
    wr->opcode = le32_to_cpu(p->opcode);
    wr->send_flags = le32_to_cpu(p->send_flags);
    wr->num_sge = le32_to_cpu(p->num_sge);

    switch (wr->opcode) {
    case RDMA_WR_LOCAL_INV:
    case RDMA_WR_SEND_WITH_INV:
    case RDMA_WR_RDMA_READ_WITH_INV:
        wr->ex.invalidate_rkey = le32_to_cpu(p->ex.invalidate_rkey);
        break;
    default:
        memcpy(wr->ex.imm_data, p->ex.imm_data, sizeof(wr->ex.imm_data));
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
        wr->wr.rdma.remote_addr = le64_to_cpu(p->wr.rdma.remote_addr);
        wr->wr.rdma.rkey = le32_to_cpu(p->wr.rdma.rkey);
        break;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        wr->wr.atomic.remote_addr = le64_to_cpu(p->wr.atomic.remote_addr);
        wr->wr.atomic.compare_add = le64_to_cpu(p->wr.atomic.compare_add);
        wr->wr.atomic.swap = le64_to_cpu(p->wr.atomic.swap);
        wr->wr.atomic.rkey = le32_to_cpu(p->wr.atomic.rkey);
        break;
    case RDMA_WR_FLUSH:
        wr->wr.flush.remote_addr = le64_to_cpu(p->wr.flush.remote_addr);
        wr->wr.flush.rkey = le32_to_cpu(p->wr.flush.rkey);
        wr->wr.flush.length = le32_to_cpu(p->wr.flush.length);
        wr->wr.flush.type = le32_to_cpu(p->wr.flush.type);
        wr->wr.flush.level = le32_to_cpu(p->wr.flush.level);
        break;
    case RDMA_WR_REG_MR:
        wr->wr.reg.mrn = le32_to_cpu(p->wr.reg.mrn);
        wr->wr.reg.key = le32_to_cpu(p->wr.reg.key);
        wr->wr.reg.access = le32_to_cpu(p->wr.reg.access);
        *pages = (RdmaHcaPages) {
            .iova = le64_to_cpu(p->wr.reg.start),
            .length = le64_to_cpu(p->wr.reg.length),
            .table = le64_to_cpu(p->wr.reg.pages),
            .npages = le32_to_cpu(p->wr.reg.npages),
        };
        break;
    case RDMA_WR_BIND_MW:
        wr->wr.bind.rkey = le32_to_cpu(p->wr.bind.rkey);
        wr->wr.bind.new_rkey = le32_to_cpu(p->wr.bind.new_rkey);
        wr->wr.bind.lkey = le32_to_cpu(p->wr.bind.lkey);
        wr->wr.bind.access = le32_to_cpu(p->wr.bind.access);
        wr->wr.bind.addr = le64_to_cpu(p->wr.bind.addr);
        wr->wr.bind.length = le64_to_cpu(p->wr.bind.length);
        break;
    }
}

uint32_t virtio_rdma_codec_get_slot(const void *buf)
{
    const struct virtio_rdma_direct_slot *p = buf;

    return le32_to_cpu(p->length);
}

void virtio_rdma_codec_get_recv(const void *buf, RdmaRecvWr *wr)
{
    const struct virtio_rdma_rq_wqe *p = buf;

    wr->wr_id = le64_to_cpu(p->wr_id);
    wr->num_sge = le32_to_cpu(p->num_sge);
}

void virtio_rdma_codec_get_sges(const void *buf, uint32_t n, RdmaSge *sge)
{
    const struct virtio_rdma_sge *p = buf;

    for (uint32_t i = 0; i < n; i++) {
        sge[i].addr = le64_to_cpu(p[i].addr);
        sge[i].length = le32_to_cpu(p[i].length);
        sge[i].lkey = le32_to_cpu(p[i].lkey);
    }
}

void virtio_rdma_codec_put_cqe(void *buf, const RdmaWc *wc, bool ex)
{
    uint32_t flags = wc->wc_flags & (ex ? WC_FLAGS_EX : WC_FLAGS);
    struct virtio_rdma_cqe *p = buf;
    struct virtio_rdma_cqe_ex *px = buf;

    *p = (struct virtio_rdma_cqe) {
        .wr_id = cpu_to_le64(wc->wr_id),
        .status = wc->status,
        .opcode = wc->opcode,
        .vendor_err = cpu_to_le32(wc->vendor_err),
        .byte_len = cpu_to_le32(wc->byte_len),
        .qp_num = cpu_to_le32(wc->qp_num),
        .src_qp = cpu_to_le32(wc->src_qp),
        .wc_flags = cpu_to_le32(flags),
        .pkey_index = cpu_to_le16(wc->pkey_index),
        .sl = wc->sl,
        .port_num = wc->port_num,
    };
    if (flags & RDMA_WC_WITH_INVALIDATE) {
        p->ex.invalidate_rkey = cpu_to_le32(wc->ex.invalidate_rkey);
    } else {
        memcpy(p->ex.imm_data, wc->ex.imm_data, sizeof(p->ex.imm_data));
    }
    if (!ex) {
        return;
    }
    memset(buf + sizeof(*p), 0, sizeof(*px) - sizeof(*p));
    if (flags & RDMA_WC_WITH_SMAC) {
        memcpy(px->smac, wc->smac, sizeof(px->smac));
    }
    if (flags & RDMA_WC_WITH_VLAN) {
        px->vlan = cpu_to_le16(wc->vlan);
    }
    if (flags & RDMA_WC_WITH_HDR_TYPE) {
        px->hdr_type = wc->hdr_type;
    }
}

bool virtio_rdma_codec_cqe_is_recv(const void *buf)
{
    const struct virtio_rdma_cqe *p = buf;

    return p->opcode >= RDMA_WC_RECV;
}

void virtio_rdma_codec_set_cqe_qpn(void *buf, uint32_t qpn)
{
    struct virtio_rdma_cqe *p = buf;

    p->qp_num = cpu_to_le32(qpn);
}
