/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layouts of hw/rdma/net-roce-abi.h: address vectors, attributes of queue
 * pairs, WQEs and completions.
 */
#include "qemu/osdep.h"
#include "int.h"

QEMU_BUILD_BUG_ON(sizeof(NetRoceConfig) != 32);
QEMU_BUILD_BUG_ON(sizeof(NetRoceDevice) != 128);
QEMU_BUILD_BUG_ON(sizeof(NetRocePort) != 32);
QEMU_BUILD_BUG_ON(sizeof(NetRoceRegUserMr) != 32);
QEMU_BUILD_BUG_ON(sizeof(NetRoceMr) != 12);
QEMU_BUILD_BUG_ON(sizeof(NetRoceCreateQp) != 56);
QEMU_BUILD_BUG_ON(sizeof(NetRoceModifyQp) != 128);
QEMU_BUILD_BUG_ON(sizeof(NetRoceQpAttr) != 120);
QEMU_BUILD_BUG_ON(sizeof(NetRoceCreateAh) != 48);
QEMU_BUILD_BUG_ON(sizeof(NetRoceAddGid) != 24);
QEMU_BUILD_BUG_ON(sizeof(NetRoceSge) != 16);
QEMU_BUILD_BUG_ON(sizeof(NetRoceSendWqe) != 576);
QEMU_BUILD_BUG_ON(offsetof(NetRoceSendWqe, n) != 560);
QEMU_BUILD_BUG_ON(sizeof(NetRoceRecvWqe) != 24);
QEMU_BUILD_BUG_ON(sizeof(NetRoceCqe) != 48);

/* The device has one port, and RoCEv2 packets always have a GRH. */
void net_roce_get_av(const NetRoceAv *p, RdmaAv *av)
{
    *av = (RdmaAv) {
        .sgid_index = p->sgid_index,
        .hop_limit = p->hop_limit,
        .traffic_class = p->traffic_class,
        .port_num = RDMA_PORT_NUM,
        .flow_label = le32_to_cpu(p->flow_label) & RDMA_FLOW_LABEL_MASK,
    };
    memcpy(av->dgid, p->dgid, sizeof(av->dgid));
    memcpy(av->dmac, p->dmac, sizeof(av->dmac));
}

static void put_av(NetRoceAv *p, const RdmaAv *av)
{
    memcpy(p->dgid, av->dgid, sizeof(p->dgid));
    memcpy(p->dmac, av->dmac, sizeof(p->dmac));
    p->flow_label = cpu_to_le32(av->flow_label);
    p->sgid_index = av->sgid_index;
    p->hop_limit = av->hop_limit;
    p->traffic_class = av->traffic_class;
}

static const uint32_t mask_bits[] = {
    RDMA_QP_STATE, RDMA_QP_CUR_STATE, RDMA_QP_ACCESS_FLAGS, RDMA_QP_QKEY,
    RDMA_QP_AV, RDMA_QP_PATH_MTU, RDMA_QP_TIMEOUT, RDMA_QP_RETRY_CNT,
    RDMA_QP_RNR_RETRY, RDMA_QP_RQ_PSN, RDMA_QP_MAX_QP_RD_ATOMIC,
    RDMA_QP_MIN_RNR_TIMER, RDMA_QP_SQ_PSN, RDMA_QP_MAX_DEST_RD_ATOMIC,
    RDMA_QP_CAP, RDMA_QP_DEST_QPN, RDMA_QP_RATE_LIMIT,
};

/*
 * The driver has no attributes for port and P_Key, which verbs require at the
 * transition to INIT.
 */
static uint32_t get_mask(uint32_t theirs, uint8_t qp_state)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(mask_bits); i++) {
        if (theirs & (1u << i)) {
            mask |= mask_bits[i];
        }
    }
    if ((mask & RDMA_QP_STATE) && qp_state == RDMA_QPS_INIT) {
        mask |= RDMA_QP_PORT | RDMA_QP_PKEY_INDEX;
    }
    return mask;
}

int net_roce_get_qp_attr(const NetRoceModifyQp *p, RdmaQpAttr *attr,
                         uint32_t *mask)
{
    uint32_t theirs = le32_to_cpu(p->attr_mask);

    *attr = (RdmaQpAttr) {
        .qp_state = p->qp_state,
        .cur_qp_state = p->cur_qp_state,
        .path_mtu = p->path_mtu,
        .max_rd_atomic = p->max_rd_atomic,
        .max_dest_rd_atomic = p->max_dest_rd_atomic,
        .min_rnr_timer = p->min_rnr_timer,
        .timeout = p->timeout,
        .retry_cnt = p->retry_cnt,
        .rnr_retry = p->rnr_retry,
        .qkey = le32_to_cpu(p->qkey),
        .rq_psn = le32_to_cpu(p->rq_psn),
        .sq_psn = le32_to_cpu(p->sq_psn),
        .dest_qp_num = le32_to_cpu(p->dest_qp_num),
        .qp_access_flags = le32_to_cpu(p->qp_access_flags),
        .rate_limit = le32_to_cpu(p->rate_limit),
        .port_num = RDMA_PORT_NUM,
    };
    net_roce_get_av(&p->av, &attr->ah_attr);
    *mask = get_mask(theirs, p->qp_state);
    if (!rdma_hca_check_flags("attr_mask", theirs,
                              (1u << ARRAY_SIZE(mask_bits)) - 1) ||
        ((*mask & RDMA_QP_ACCESS_FLAGS) &&
         !rdma_hca_check_flags("qp_access_flags", attr->qp_access_flags,
                               NET_ROCE_ACCESS))) {
        return -EINVAL;
    }
    return 0;
}

void net_roce_put_qp_attr(NetRoceQpAttr *p, const RdmaQpAttr *attr)
{
    *p = (NetRoceQpAttr) {
        .qp_state = attr->qp_state,
        .path_mtu = attr->path_mtu,
        .sq_draining = attr->sq_draining,
        .max_rd_atomic = attr->max_rd_atomic,
        .max_dest_rd_atomic = attr->max_dest_rd_atomic,
        .min_rnr_timer = attr->min_rnr_timer,
        .timeout = attr->timeout,
        .retry_cnt = attr->retry_cnt,
        .rnr_retry = attr->rnr_retry,
        .qkey = cpu_to_le32(attr->qkey),
        .rq_psn = cpu_to_le32(attr->rq_psn),
        .sq_psn = cpu_to_le32(attr->sq_psn),
        .dest_qp_num = cpu_to_le32(attr->dest_qp_num),
        .qp_access_flags = cpu_to_le32(attr->qp_access_flags),
        .rate_limit = cpu_to_le32(attr->rate_limit),
        .cap.max_send_wr = cpu_to_le32(attr->cap.max_send_wr),
        .cap.max_recv_wr = cpu_to_le32(attr->cap.max_recv_wr),
        .cap.max_send_sge = cpu_to_le32(attr->cap.max_send_sge),
        .cap.max_recv_sge = cpu_to_le32(attr->cap.max_recv_sge),
        .cap.max_inline_data = cpu_to_le32(attr->cap.max_inline_data),
    };
    put_av(&p->av, &attr->ah_attr);
}

/*
 * NET_ROCE_SEND_COMBINED does not say which flags the driver means, so the
 * strongest ones count. The length shows whether there is inline data, because
 * only a WQE without inline data has SGEs.
 */
static uint32_t get_flags(const NetRoceSendWqe *p, size_t len)
{
    if (p->send_flags != NET_ROCE_SEND_COMBINED) {
        return p->send_flags;
    }
    return RDMA_SEND_FENCE | RDMA_SEND_SIGNALED | RDMA_SEND_SOLICITED |
           (len == sizeof(*p) ? RDMA_SEND_INLINE : 0);
}

void net_roce_get_send(const NetRoceSendWqe *p, size_t len, RdmaSendWr *wr)
{
    wr->wr_id = le64_to_cpu(p->wr_id);
    wr->opcode = p->opcode;
    wr->send_flags = get_flags(p, len);
    memcpy(wr->ex.imm_data, p->imm_data, sizeof(wr->ex.imm_data));
    if (wr->send_flags & RDMA_SEND_INLINE) {
        wr->inline_len = le16_to_cpu(p->n.inline_len);
    } else {
        wr->num_sge = le32_to_cpu(p->n.num_sge);
    }
}

void net_roce_get_sges(const NetRoceSge *p, uint32_t n, RdmaSge *sge)
{
    for (uint32_t i = 0; i < n; i++) {
        sge[i] = (RdmaSge) {
            .addr = le64_to_cpu(p[i].addr),
            .length = le32_to_cpu(p[i].length),
            .lkey = le32_to_cpu(p[i].lkey),
        };
    }
}

static NetRoceWcStatus status_of(RdmaWcStatus status)
{
    /* Others, and those that only other services have: GENERAL_ERR */
    static const NetRoceWcStatus of[] = {
        [RDMA_WC_LOC_LEN_ERR] = NET_ROCE_WC_LOC_LEN_ERR,
        [RDMA_WC_LOC_QP_OP_ERR] = NET_ROCE_WC_LOC_QP_OP_ERR,
        [RDMA_WC_LOC_PROT_ERR] = NET_ROCE_WC_LOC_PROT_ERR,
        [RDMA_WC_WR_FLUSH_ERR] = NET_ROCE_WC_WR_FLUSH_ERR,
        [RDMA_WC_BAD_RESP_ERR] = NET_ROCE_WC_BAD_RESP_ERR,
        [RDMA_WC_LOC_ACCESS_ERR] = NET_ROCE_WC_LOC_ACCESS_ERR,
        [RDMA_WC_REM_INV_REQ_ERR] = NET_ROCE_WC_REM_INV_REQ_ERR,
        [RDMA_WC_REM_ACCESS_ERR] = NET_ROCE_WC_REM_ACCESS_ERR,
        [RDMA_WC_REM_OP_ERR] = NET_ROCE_WC_REM_OP_ERR,
        [RDMA_WC_RETRY_EXC_ERR] = NET_ROCE_WC_RETRY_EXC_ERR,
        [RDMA_WC_RNR_RETRY_EXC_ERR] = NET_ROCE_WC_RNR_RETRY_EXC_ERR,
        [RDMA_WC_REM_ABORT_ERR] = NET_ROCE_WC_REM_ABORT_ERR,
        [RDMA_WC_FATAL_ERR] = NET_ROCE_WC_FATAL_ERR,
        [RDMA_WC_RESP_TIMEOUT_ERR] = NET_ROCE_WC_RESP_TIMEOUT_ERR,
    };

    return status == RDMA_WC_SUCCESS ? NET_ROCE_WC_SUCCESS :
           status < ARRAY_SIZE(of) && of[status] ? of[status]
                                                 : NET_ROCE_WC_GENERAL_ERR;
}

/* Another opcode is that of a refused WR: report SEND. */
static NetRoceWcOpcode opcode_of(RdmaWcOpcode opcode)
{
    return opcode >= RDMA_WC_RECV ? opcode - RDMA_WC_RECV + NET_ROCE_WC_RECV :
           opcode <= RDMA_WC_RDMA_READ ? (NetRoceWcOpcode)opcode
                                       : NET_ROCE_WC_SEND;
}

void net_roce_put_cqe(NetRoceCqe *p, const RdmaWc *wc)
{
    *p = (NetRoceCqe) {
        .wr_id = cpu_to_le64(wc->wr_id),
        .status = status_of(wc->status),
        .opcode = opcode_of(wc->opcode),
        .vendor_err = cpu_to_le32(wc->vendor_err),
        .byte_len = cpu_to_le32(wc->byte_len),
        .qp_num = cpu_to_le32(wc->qp_num),
        .src_qp = cpu_to_le32(wc->src_qp),
        .wc_flags = cpu_to_le32(wc->wc_flags &
                                (RDMA_WC_GRH | RDMA_WC_WITH_IMM)),
    };
    if (wc->wc_flags & RDMA_WC_WITH_IMM) {
        memcpy(p->imm_data, wc->ex.imm_data, sizeof(p->imm_data));
    }
}
