/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands. This file finds the virtqueues of an object; the core checks
 * the rest, and makes the object. The core has no address handles, so they are
 * here.
 */
#include "qemu/osdep.h"
#include "int.h"

/* 4.096 us << 15, as hardware adapters report */
#define CA_ACK_DELAY 15
#define HW_VERSION 1

static uint32_t id_of(const NetRoceRequest *req)
{
    return le32_to_cpu(((const NetRoceId *)req->data)->id);
}

/* Device, port and GIDs */

static int query_device(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const RdmaBackendLimits *l = &s->hca.limits;

    *(NetRoceDevice *)rsp = (NetRoceDevice) {
        .device_cap_flags = cpu_to_le64(NET_ROCE_CAP_RC_RNR_NAK_GEN),
        .max_mr_size = cpu_to_le64(l->max_mr_size),
        .page_size_cap = cpu_to_le64(RDMA_PAGE_SIZE),
        .hw_ver = cpu_to_le32(HW_VERSION),
        .max_qp_wr = cpu_to_le32(rdma_hca_ring_depth(&s->hca, l->max_qp_wr)),
        .max_send_sge = cpu_to_le32(l->max_send_sge),
        .max_recv_sge = cpu_to_le32(l->max_recv_sge),
        .max_sge_rd = cpu_to_le32(l->max_send_sge),
        .max_cqe = cpu_to_le32(rdma_hca_ring_depth(&s->hca, l->max_cqe)),
        .max_mr = cpu_to_le32(l->max_mr),
        .max_pd = cpu_to_le32(l->max_pd),
        .max_qp_rd_atom = cpu_to_le32(l->max_rd_atomic),
        .max_qp_init_rd_atom = cpu_to_le32(l->max_rd_atomic),
        .max_ah = cpu_to_le32(NET_ROCE_MAX_AH),
        .local_ca_ack_delay = CA_ACK_DELAY,
    };
    return 0;
}

static int query_port(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    RdmaPortAttr attr = {};
    int ret = rdma_hca_port_query(&s->hca, &attr);

    *(NetRocePort *)rsp = (NetRocePort) {
        .gid_tbl_len = cpu_to_le32(s->hca.limits.gid_table_len),
        .max_msg_sz = cpu_to_le32(attr.max_msg_sz),
    };
    return ret;
}

static int add_gid(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceAddGid *cmd = (const void *)req->data;

    return rdma_hca_gid_add(&s->hca, le16_to_cpu(cmd->index), cmd->gid,
                            RDMA_NO_VLAN);
}

static int del_gid(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceDelGid *cmd = (const void *)req->data;

    return rdma_hca_gid_del(&s->hca, le16_to_cpu(cmd->index));
}

/* Protection domains and regions */

static int create_pd(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    uint32_t pdn = 0;
    int ret = rdma_hca_pd_create(&s->hca, &pdn);

    ((NetRoceId *)rsp)->id = cpu_to_le32(pdn);
    return ret;
}

static int create_mr(NetRoce *s, RdmaMrAttr *attr, RdmaHcaPages *pages,
                     NetRoceMr *rsp)
{
    int ret = rdma_hca_check_flags("access", attr->access, NET_ROCE_ACCESS)
              ? rdma_hca_mr_create(&s->hca, attr, pages) : -EINVAL;

    rsp->mrn = cpu_to_le32(attr->mrn);
    rsp->lkey = cpu_to_le32(attr->lkey);
    rsp->rkey = cpu_to_le32(attr->rkey);
    return ret;
}

static int get_dma_mr(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceGetDmaMr *cmd = (const void *)req->data;
    RdmaMrAttr attr = {
        .type = RDMA_MR_DMA,
        .pdn = le32_to_cpu(cmd->pdn),
        .access = le32_to_cpu(cmd->access),
    };

    return create_mr(s, &attr, NULL, rsp);
}

static int reg_user_mr(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceRegUserMr *cmd = (const void *)req->data;
    RdmaMrAttr attr = {
        .type = RDMA_MR_USER,
        .pdn = le32_to_cpu(cmd->pdn),
        .access = le32_to_cpu(cmd->access),
    };
    RdmaHcaPages pages = {
        .iova = le64_to_cpu(cmd->virt_addr),
        .length = le64_to_cpu(cmd->length),
        .table = req->pages,
        .npages = le32_to_cpu(cmd->npages),
    };

    return create_mr(s, &attr, &pages, rsp);
}

/* Completion queues */

static int create_cq(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    uint32_t cqe = id_of(req);
    NetRoceCq *cq;
    uint32_t cqn;
    int ret;

    if (!rdma_hca_check_range("cqe", cqe, 1,
                              rdma_hca_ring_depth(&s->hca,
                                                  s->hca.limits.max_cqe))) {
        return -EINVAL;
    }
    if (!rdma_hca_table_find(&s->hca.cqs, &cqn)) {
        return -ENOMEM;
    }
    ret = net_roce_vq_check(s, NET_ROCE_CQ_VQ(cqn), cqe);
    if (ret) {
        return ret;
    }
    cq = g_new0(NetRoceCq, 1);
    cq->core.cqn = cqn;
    cq->core.cqe = cqe;
    net_roce_cq_start(s, cq);
    /* Buffers are popped when one is needed, not when they come. */
    virtio_queue_set_notification(cq->vq, 0);
    ((NetRoceId *)rsp)->id = cpu_to_le32(cqn);
    return rdma_hca_cq_create(&s->hca, &cq->core);
}

static int req_notify_cq(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceReqNotifyCq *cmd = (const void *)req->data;
    RdmaHcaCq *core = rdma_hca_cq_get(&s->hca, le32_to_cpu(cmd->cqn));
    uint32_t flags = le32_to_cpu(cmd->flags);

    if (!core) {
        return -ENOENT;
    }
    if (!flags || !rdma_hca_check_flags("flags", flags,
                                        NET_ROCE_NOTIFY_SOLICITED |
                                        NET_ROCE_NOTIFY_NEXT)) {
        return -EINVAL;
    }
    net_roce_cq(core)->arm = MAX(net_roce_cq(core)->arm,
                                 flags & NET_ROCE_NOTIFY_NEXT
                                 ? NET_ROCE_ARM_NEXT : NET_ROCE_ARM_SOLICITED);
    return 0;
}

/* Queue pairs */

static int check_qp(NetRoce *s, const NetRoceCreateQp *cmd,
                    RdmaQpInitAttr *init)
{
    int ret = rdma_hca_qp_check(&s->hca, init,
                                rdma_hca_ring_depth(&s->hca,
                                                    s->hca.limits.max_qp_wr));

    if (!ret && !rdma_hca_check_range("sq_sig_all", cmd->sq_sig_all, 0, 1)) {
        ret = -EINVAL;
    }
    if (!ret) {
        ret = rdma_hca_qp_find(&s->hca, init->qp_type, &init->qpn);
    }
    if (!ret) {
        ret = net_roce_vq_check(s, NET_ROCE_SQ_VQ(s->max_cq, init->qpn),
                                init->cap.max_send_wr);
    }
    return ret ?: net_roce_vq_check(s, NET_ROCE_RQ_VQ(s->max_cq, init->qpn),
                                    init->cap.max_recv_wr);
}

static int create_qp(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceCreateQp *cmd = (const void *)req->data;
    RdmaQpInitAttr init = {
        .pdn = le32_to_cpu(cmd->pdn),
        .qp_type = cmd->qp_type,
        .sq_sig_all = cmd->sq_sig_all,
        .send_cqn = le32_to_cpu(cmd->send_cqn),
        .recv_cqn = le32_to_cpu(cmd->recv_cqn),
        .cap.max_send_wr = le32_to_cpu(cmd->cap.max_send_wr),
        .cap.max_recv_wr = le32_to_cpu(cmd->cap.max_recv_wr),
        .cap.max_send_sge = le32_to_cpu(cmd->cap.max_send_sge),
        .cap.max_recv_sge = le32_to_cpu(cmd->cap.max_recv_sge),
        .cap.max_inline_data = le32_to_cpu(cmd->cap.max_inline_data),
    };
    int ret = check_qp(s, cmd, &init);
    RdmaHcaQp *qp;

    if (ret) {
        return ret;
    }
    qp = g_new0(RdmaHcaQp, 1);
    qp->init = init;
    net_roce_qp_start(s, qp);
    ((NetRoceId *)rsp)->id = cpu_to_le32(init.qpn);
    return rdma_hca_qp_create(&s->hca, qp);
}

static int modify_qp(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceModifyQp *cmd = (const void *)req->data;
    RdmaQpAttr attr;
    uint32_t mask;
    int ret = net_roce_get_qp_attr(cmd, &attr, &mask);

    return ret ?: rdma_hca_qp_modify(&s->hca, le32_to_cpu(cmd->qpn), mask,
                                     &attr);
}

/* The reply has room for all attributes, so the mask has no use. */
static int query_qp(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    RdmaQpAttr attr = {};
    int ret = rdma_hca_qp_query(&s->hca, id_of(req), &attr);

    net_roce_put_qp_attr(rsp, &attr);
    return ret;
}

/* Address handles */

static int create_ah(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceCreateAh *cmd = (const void *)req->data;
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, le32_to_cpu(cmd->pdn));
    uint32_t n = 0;

    if (!pd) {
        return -ENOENT;
    }
    if (!rdma_hca_check_range("sgid_index", cmd->av.sgid_index, 0,
                              s->hca.limits.gid_table_len - 1)) {
        return -EINVAL;
    }
    while (n < s->n_ahs && s->ahs[n].pdn) {
        n++;
    }
    if (n == NET_ROCE_MAX_AH) {
        return -ENOMEM;
    }
    s->n_ahs = MAX(s->n_ahs, n + 1);
    s->ahs[n].pdn = pd->pdn;
    memcpy(s->ahs[n].bytes, &cmd->av, sizeof(cmd->av));
    pd->users++;
    ((NetRoceId *)rsp)->id = cpu_to_le32(n);
    return 0;
}

static int destroy_ah(NetRoce *s, const NetRoceRequest *req, void *rsp)
{
    const NetRoceDestroyAh *cmd = (const void *)req->data;
    uint32_t pdn = le32_to_cpu(cmd->pdn);
    uint32_t n = le32_to_cpu(cmd->ah);
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, pdn);

    if (!pd || n >= s->n_ahs || s->ahs[n].pdn != pdn) {
        return -ENOENT;
    }
    s->ahs[n].pdn = 0;
    pd->users--;
    return 0;
}

void net_roce_ahs_reset(NetRoce *s)
{
    memset(s->ahs, 0, s->n_ahs * sizeof(*s->ahs));
    s->n_ahs = 0;
}

#define ID sizeof(NetRoceId)
#define COMMAND(cmd, req, rsp, ...) \
    [NET_ROCE_CMD_##cmd] = { #cmd, req, rsp, RDMA_COMMAND_##cmd, __VA_ARGS__ }
/* A command that faults do not know */
#define OTHER(cmd, req, rsp, handler) \
    [NET_ROCE_CMD_##cmd] = { #cmd, req, rsp, RDMA_COMMAND__MAX, handler }

const NetRoceCommand net_roce_commands[NET_ROCE_NUM_CMDS] = {
    OTHER(QUERY_DEVICE, 0, sizeof(NetRoceDevice), query_device),
    COMMAND(QUERY_PORT, 0, sizeof(NetRocePort), query_port),
    COMMAND(CREATE_CQ, ID, ID, create_cq),
    COMMAND(DESTROY_CQ, ID, 0, .destroy = rdma_hca_cq_destroy),
    COMMAND(CREATE_PD, 0, ID, create_pd),
    COMMAND(DESTROY_PD, ID, 0, .destroy = rdma_hca_pd_destroy),
    COMMAND(GET_DMA_MR, sizeof(NetRoceGetDmaMr), sizeof(NetRoceMr),
            get_dma_mr),
    COMMAND(REG_USER_MR, sizeof(NetRoceRegUserMr), sizeof(NetRoceMr),
            reg_user_mr),
    COMMAND(DEREG_MR, ID, 0, .destroy = rdma_hca_mr_dereg),
    COMMAND(CREATE_QP, sizeof(NetRoceCreateQp), ID, create_qp),
    COMMAND(MODIFY_QP, sizeof(NetRoceModifyQp), 0, modify_qp),
    COMMAND(QUERY_QP, sizeof(NetRoceQueryQp), sizeof(NetRoceQpAttr), query_qp),
    COMMAND(DESTROY_QP, ID, 0, .destroy = rdma_hca_qp_destroy),
    OTHER(CREATE_AH, sizeof(NetRoceCreateAh), ID, create_ah),
    OTHER(DESTROY_AH, sizeof(NetRoceDestroyAh), 0, destroy_ah),
    COMMAND(ADD_GID, sizeof(NetRoceAddGid), 0, add_gid),
    COMMAND(DEL_GID, sizeof(NetRoceDelGid), 0, del_gid),
    COMMAND(REQ_NOTIFY_CQ, sizeof(NetRoceReqNotifyCq), 0, req_notify_cq),
};
