/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translate work requests, completions and attributes of QPs between the guest
 * and the core.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "int.h"

QEMU_BUILD_BUG_ON(sizeof(PvrdmaDsr) != 280);
QEMU_BUILD_BUG_ON(sizeof(PvrdmaCmdModifyQp) != PVRDMA_CMD_ROOM);
QEMU_BUILD_BUG_ON(sizeof(PvrdmaRspQueryQp) != PVRDMA_RSP_ROOM);
QEMU_BUILD_BUG_ON(sizeof(PvrdmaSendWqe) != 80);
QEMU_BUILD_BUG_ON(sizeof(PvrdmaCqe) != 64);

/* PvrdmaAv: the traffic class in tclass_flow, the port in port_pd */
#define TCLASS_SHIFT 20
#define PORT_SHIFT 24

static void get_sges(const PvrdmaSge *p, uint32_t n, RdmaSge *sge)
{
    for (uint32_t i = 0; i < n; i++) {
        sge[i].addr = le64_to_cpu(p[i].addr);
        sge[i].length = le32_to_cpu(p[i].length);
        sge[i].lkey = le32_to_cpu(p[i].lkey);
    }
}

/*
 * Opcodes up to FETCH_AND_ADD have the numbers of libibverbs. A process may use
 * only these, because FAST_REG would register any page.
 */
static bool get_opcode(uint32_t opcode, bool kernel, uint32_t *result)
{
    *result = opcode;
    if (opcode <= RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        return true;
    }
    switch (opcode) {
    case PVRDMA_WR_SEND_WITH_INV:
        *result = RDMA_WR_SEND_WITH_INV;
        return kernel;
    case PVRDMA_WR_LOCAL_INV:
        *result = RDMA_WR_LOCAL_INV;
        return kernel;
    case PVRDMA_WR_FAST_REG:
        *result = RDMA_WR_REG_MR;
        return kernel;
    default:
        return false;
    }
}

static void get_ud(const PvrdmaSendWqe *wqe, RdmaSendWr *wr)
{
    const PvrdmaAv *p = &wqe->wr.ud.av;
    uint32_t tclass_flow = le32_to_cpu(p->tclass_flow);
    RdmaAv *av = &wr->wr.ud.av;

    wr->wr.ud.remote_qpn = le32_to_cpu(wqe->wr.ud.remote_qpn) &
                           RDMA_24BIT_MASK;
    wr->wr.ud.remote_qkey = le32_to_cpu(wqe->wr.ud.remote_qkey);
    memcpy(av->dgid, p->dgid, sizeof(av->dgid));
    memcpy(av->dmac, p->dmac, sizeof(av->dmac));
    av->sgid_index = p->gid_index;
    av->hop_limit = p->hop_limit;
    av->static_rate = p->static_rate;
    av->traffic_class = tclass_flow >> TCLASS_SHIFT;
    av->flow_label = tclass_flow & RDMA_FLOW_LABEL_MASK;
    av->port_num = le32_to_cpu(p->port_pd) >> PORT_SHIFT;
}

static void get_fast_reg(const PvrdmaSendWqe *wqe, RdmaSendWr *wr,
                         RdmaHcaPages *pages)
{
    wr->wr.reg.key = le32_to_cpu(wqe->wr.fast_reg.key);
    wr->wr.reg.mrn = wr->wr.reg.key >> 8;
    wr->wr.reg.access = le32_to_cpu(wqe->wr.fast_reg.access);
    *pages = (RdmaHcaPages) {
        .iova = le64_to_cpu(wqe->wr.fast_reg.iova),
        .length = le32_to_cpu(wqe->wr.fast_reg.length),
        .table = le64_to_cpu(wqe->wr.fast_reg.dir),
        .npages = le32_to_cpu(wqe->wr.fast_reg.npages),
        .page_shift = le32_to_cpu(wqe->wr.fast_reg.page_shift),
        .levels = PVRDMA_DIR_LEVELS,
    };
}

static void get_connected(const PvrdmaSendWqe *wqe, RdmaSendWr *wr,
                          RdmaHcaPages *pages)
{
    switch (wr->opcode) {
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
    case RDMA_WR_RDMA_READ:
        wr->wr.rdma.remote_addr = le64_to_cpu(wqe->wr.rdma.remote_addr);
        wr->wr.rdma.rkey = le32_to_cpu(wqe->wr.rdma.rkey);
        break;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        wr->wr.atomic.remote_addr = le64_to_cpu(wqe->wr.atomic.remote_addr);
        wr->wr.atomic.compare_add = le64_to_cpu(wqe->wr.atomic.compare_add);
        wr->wr.atomic.swap = le64_to_cpu(wqe->wr.atomic.swap);
        wr->wr.atomic.rkey = le32_to_cpu(wqe->wr.atomic.rkey);
        break;
    case RDMA_WR_REG_MR:
        get_fast_reg(wqe, wr, pages);
        break;
    }
}

bool pvrdma_get_send(const PvrdmaSendWqe *wqe, RdmaQpType type, bool kernel,
                     uint32_t max_sge, RdmaSge *sge, RdmaSendWr *wr,
                     RdmaHcaPages *pages)
{
    uint32_t opcode = le32_to_cpu(wqe->opcode);
    uint32_t num_sge = le32_to_cpu(wqe->num_sge);
    bool known = get_opcode(opcode, kernel, &wr->opcode);

    wr->wr_id = le64_to_cpu(wqe->wr_id);
    /* No WQE has inline data, so ignore the flag: the WQE has SGEs. */
    wr->send_flags = le32_to_cpu(wqe->send_flags) & RDMA_SEND_FLAGS &
                     ~(RDMA_SEND_INLINE | RDMA_SEND_IP_CSUM);
    if (wr->opcode == RDMA_WR_LOCAL_INV ||
        wr->opcode == RDMA_WR_SEND_WITH_INV) {
        wr->ex.invalidate_rkey = le32_to_cpu(wqe->ex.invalidate_rkey);
    } else {
        memcpy(wr->ex.imm_data, wqe->ex.imm_data, sizeof(wr->ex.imm_data));
    }
    if (rdma_qp_is_datagram(type)) {
        get_ud(wqe, wr);
    } else {
        get_connected(wqe, wr, pages);
    }
    if (!known ||
        !rdma_hca_check_range("num_sge", num_sge, 0, max_sge)) {
        return false;
    }
    /* In LOCAL_INV and FAST_REG the driver leaves old SGEs: ignore these. */
    if (wr->opcode != RDMA_WR_LOCAL_INV && wr->opcode != RDMA_WR_REG_MR) {
        wr->num_sge = num_sge;
        wr->sg_list = sge;
        get_sges(wqe->sge, num_sge, sge);
    }
    return true;
}

bool pvrdma_get_recv(const PvrdmaRecvWqe *wqe, uint32_t max_sge, RdmaSge *sge,
                     RdmaRecvWr *wr)
{
    uint32_t num_sge = le32_to_cpu(wqe->num_sge);

    wr->wr_id = le64_to_cpu(wqe->wr_id);
    if (!rdma_hca_check_range("num_sge", num_sge, 0, max_sge)) {
        return false;
    }
    wr->num_sge = num_sge;
    wr->sg_list = sge;
    get_sges(wqe->sge, num_sge, sge);
    return true;
}

/*
 * A provider passes flags to its process unchanged, but only the first two have
 * the same meaning there. Drivers do not copy the source MAC address and VLAN.
 */
static uint32_t wc_flags(const RdmaWc *wc, bool kernel)
{
    uint32_t flags = RDMA_WC_GRH | RDMA_WC_WITH_IMM;

    if (kernel) {
        flags |= RDMA_WC_WITH_INVALIDATE | RDMA_WC_WITH_HDR_TYPE;
    }
    return wc->wc_flags & flags;
}

void pvrdma_put_cqe(PvrdmaCqe *cqe, const RdmaWc *wc, bool kernel)
{
    uint32_t flags = wc_flags(wc, kernel);

    *cqe = (PvrdmaCqe) {
        .wr_id = cpu_to_le64(wc->wr_id),
        .qp = cpu_to_le64(wc->qp_num),
        .opcode = cpu_to_le32(wc->opcode == RDMA_WC_LOCAL_INV
                              ? PVRDMA_WC_LOCAL_INV : wc->opcode),
        .status = cpu_to_le32(wc->status),
        .byte_len = cpu_to_le32(wc->byte_len),
        .src_qp = cpu_to_le32(wc->src_qp),
        .wc_flags = cpu_to_le32(flags),
        .vendor_err = cpu_to_le32(wc->vendor_err),
        .pkey_index = cpu_to_le16(wc->pkey_index),
        .sl = wc->sl,
        .port_num = wc->port_num ?: RDMA_PORT_NUM,
    };
    if (flags & RDMA_WC_WITH_INVALIDATE) {
        cqe->ex.invalidate_rkey = cpu_to_le32(wc->ex.invalidate_rkey);
    } else {
        memcpy(cqe->ex.imm_data, wc->ex.imm_data, sizeof(cqe->ex.imm_data));
    }
    if (flags & RDMA_WC_WITH_HDR_TYPE) {
        cqe->hdr_type = wc->hdr_type == RDMA_HDR_IPV4 ? PVRDMA_HDR_IPV4
                                                      : PVRDMA_HDR_IPV6;
    }
}

static void get_ah(const PvrdmaAh *p, RdmaAv *av)
{
    memcpy(av->dgid, p->dgid, sizeof(av->dgid));
    memcpy(av->dmac, p->dmac, sizeof(av->dmac));
    av->sgid_index = p->sgid_index;
    av->hop_limit = p->hop_limit;
    av->traffic_class = p->traffic_class;
    av->sl = p->sl;
    av->static_rate = p->static_rate;
    av->port_num = p->port_num;
    av->ah_flags = p->ah_flags;
    av->flow_label = le32_to_cpu(p->flow_label);
}

static void put_ah(PvrdmaAh *p, const RdmaAv *av)
{
    memcpy(p->dgid, av->dgid, sizeof(p->dgid));
    memcpy(p->dmac, av->dmac, sizeof(p->dmac));
    p->sgid_index = av->sgid_index;
    p->hop_limit = av->hop_limit;
    p->traffic_class = av->traffic_class;
    p->sl = av->sl;
    p->static_rate = av->static_rate;
    p->port_num = av->port_num;
    p->ah_flags = av->ah_flags;
    p->flow_label = cpu_to_le32(av->flow_label);
}

/* A wrong number must not become a right one: the core has 8 bits for it. */
static uint8_t get_small(uint32_t value)
{
    return MIN(le32_to_cpu(value), UINT8_MAX);
}

void pvrdma_get_qp_attr(const PvrdmaQpAttr *p, RdmaQpAttr *attr)
{
    *attr = (RdmaQpAttr) {
        .qp_state = get_small(p->qp_state),
        .cur_qp_state = get_small(p->cur_qp_state),
        .path_mtu = get_small(p->path_mtu),
        .path_mig_state = get_small(p->path_mig_state),
        .qkey = le32_to_cpu(p->qkey),
        .rq_psn = le32_to_cpu(p->rq_psn),
        .sq_psn = le32_to_cpu(p->sq_psn),
        .dest_qp_num = le32_to_cpu(p->dest_qp_num),
        .qp_access_flags = le32_to_cpu(p->access),
        .pkey_index = le16_to_cpu(p->pkey_index),
        .en_sqd_async_notify = p->en_sqd_async_notify,
        .max_rd_atomic = p->max_rd_atomic,
        .max_dest_rd_atomic = p->max_dest_rd_atomic,
        .min_rnr_timer = p->min_rnr_timer,
        .port_num = p->port_num,
        .timeout = p->timeout,
        .retry_cnt = p->retry_cnt,
        .rnr_retry = p->rnr_retry,
    };
    get_ah(&p->ah, &attr->ah_attr);
}

void pvrdma_put_qp_attr(PvrdmaQpAttr *p, const RdmaQpAttr *attr)
{
    const RdmaQpCap *cap = &attr->cap;

    *p = (PvrdmaQpAttr) {
        .qp_state = cpu_to_le32(attr->qp_state),
        .cur_qp_state = cpu_to_le32(attr->cur_qp_state),
        .path_mtu = cpu_to_le32(attr->path_mtu),
        .path_mig_state = cpu_to_le32(attr->path_mig_state),
        .qkey = cpu_to_le32(attr->qkey),
        .rq_psn = cpu_to_le32(attr->rq_psn),
        .sq_psn = cpu_to_le32(attr->sq_psn),
        .dest_qp_num = cpu_to_le32(attr->dest_qp_num),
        .access = cpu_to_le32(attr->qp_access_flags),
        .pkey_index = cpu_to_le16(attr->pkey_index),
        .en_sqd_async_notify = attr->en_sqd_async_notify,
        .sq_draining = attr->sq_draining,
        .max_rd_atomic = attr->max_rd_atomic,
        .max_dest_rd_atomic = attr->max_dest_rd_atomic,
        .min_rnr_timer = attr->min_rnr_timer,
        .port_num = attr->port_num,
        .timeout = attr->timeout,
        .retry_cnt = attr->retry_cnt,
        .rnr_retry = attr->rnr_retry,
        .max_send_wr = cpu_to_le32(cap->max_send_wr),
        .max_recv_wr = cpu_to_le32(cap->max_recv_wr),
        .max_send_sge = cpu_to_le32(cap->max_send_sge),
        .max_recv_sge = cpu_to_le32(cap->max_recv_sge),
        .max_inline_data = cpu_to_le32(cap->max_inline_data),
    };
    put_ah(&p->ah, &attr->ah_attr);
}
