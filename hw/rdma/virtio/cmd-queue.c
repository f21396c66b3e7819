/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control commands of CQs, event queues, SRQs, QPs, multicast groups and pages
 * of doorbells. This file chooses the form and the number of an object; the
 * core checks the rest, and makes the object.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "trace.h"
#include "cmd.h"

static bool check_may_have_vq(VirtIORdma *s, const char *kind)
{
    if (s->hca.ctx) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: a %s has to be direct: "
                      "the device works in an iothread\n", kind);
    }
    return !s->hca.ctx;
}

/* @field: "flags" of CREATE_CQ or CREATE_SRQ, valid only with F_DIRECT */
static uint32_t direct_flags(VirtIORdma *s, uint32_t field)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT) ? le32_to_cpu(field) : 0;
}

/* Completion queues and event queues */

static int check_cqn(VirtIORdma *s, uint32_t cqn, const void *req)
{
    const struct virtio_rdma_create_cq_req *cmd = req;
    bool deep = virtio_rdma_is_v1(s) &&
                !(direct_flags(s, cmd->flags) & VIRTIO_RDMA_CQ_EVENTS);

    return virtio_rdma_vq_check(s, VIRTIO_RDMA_CQ_VQ(cqn),
                                deep ? 0 : le32_to_cpu(cmd->cqe));
}

static const VirtIORdmaCqOps *cq_ops_of(uint32_t flags)
{
    return flags & VIRTIO_RDMA_CQ_EVENTS ? &virtio_rdma_eq_ops :
           flags & VIRTIO_RDMA_CQ_DIRECT ? &virtio_rdma_cq_direct_ops
                                         : &virtio_rdma_cq_vq_ops;
}

static int check_cq(VirtIORdma *s, const struct virtio_rdma_create_cq_req *cmd,
                    uint32_t flags, VirtIORdmaCq **eq)
{
    uint32_t eqn = le32_to_cpu(cmd->eqn);

    if (!rdma_hca_check_flags("flags", flags, VIRTIO_RDMA_CQ_DIRECT |
                                              VIRTIO_RDMA_CQ_EVENTS)) {
        return -EINVAL;
    }
    if ((flags & VIRTIO_RDMA_CQ_DIRECT) && (flags & VIRTIO_RDMA_CQ_EVENTS)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: an event queue has a "
                      "virtqueue, it cannot be direct\n");
        return -EINVAL;
    }
    if ((flags & VIRTIO_RDMA_CQ_DIRECT) && eqn != VIRTIO_RDMA_EQN_NONE) {
        *eq = virtio_rdma_eq_get(s, eqn);
        if (!*eq) {
            return -ENOENT;
        }
    }
    return rdma_hca_check_range("cqe", le32_to_cpu(cmd->cqe), 1,
                                cq_ops_of(flags)->max_cqe(s)) &&
           (flags || check_may_have_vq(s, "CQ")) ? 0 : -EINVAL;
}

static int start_direct_cq(VirtIORdma *s, VirtIORdmaCq *cq,
                           const struct virtio_rdma_create_cq_req *cmd)
{
    RdmaHcaPages pages = VIRTIO_RDMA_QUEUE_PAGES(cmd);
    int ret;

    cq->depth_shift = cmd->depth_shift;
    ret = virtio_rdma_direct_cq_check(cq->core.cqe, cq->depth_shift, &pages) ?:
          rdma_hca_extents_read_on(&s->hca, &pages, &cq->pages);
    if (!ret) {
        virtio_rdma_direct_cq_start(cq);
    }
    return ret;
}

int virtio_rdma_cq_create(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_create_cq_req *cmd = req;
    struct virtio_rdma_cqn *p = rsp;
    uint32_t flags = direct_flags(s, cmd->flags);
    RdmaHcaTable *t = &s->hca.cqs;
    g_autofree VirtIORdmaCq *cq = g_new0(VirtIORdmaCq, 1);
    VirtIORdmaCq *eq = NULL;
    int ret = check_cq(s, cmd, flags, &eq);

    if (ret) {
        return ret;
    }
    cq->core.cqe = le32_to_cpu(cmd->cqe);
    cq->core.is_eq = flags & VIRTIO_RDMA_CQ_EVENTS;
    cq->eqn = VIRTIO_RDMA_EQN_NONE;
    if (flags & VIRTIO_RDMA_CQ_DIRECT) {
        ret = !rdma_hca_table_find(t, &cq->core.cqn)
              ? -ENOMEM : start_direct_cq(s, cq, cmd);
    } else {
        ret = virtio_rdma_vq_find_id(s, t, t->first, s->max_vq_cq, check_cqn,
                                     cmd, &cq->core.cqn);
    }
    if (ret) {
        return ret;
    }
    if (!(flags & VIRTIO_RDMA_CQ_DIRECT)) {
        virtio_rdma_cq_start_vq(s, cq);
    } else if (eq) {
        virtio_rdma_eq_attach(cq, eq);
    }
    p->cqn = cpu_to_le32(cq->core.cqn);
    return rdma_hca_cq_create(&s->hca, &g_steal_pointer(&cq)->core);
}

int virtio_rdma_cq_resize(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_resize_cq_req *cmd = req;
    RdmaHcaCq *core = rdma_hca_cq_get(&s->hca, le32_to_cpu(cmd->cqn));
    VirtIORdmaCq *cq = core ? virtio_rdma_cq(core) : NULL;

    if (!cq) {
        return -ENOENT;
    }
    return rdma_hca_check_range("cqe", le32_to_cpu(cmd->cqe), 1,
                                virtio_rdma_cq_ops(cq)->max_cqe(s))
           ? virtio_rdma_cq_ops(cq)->resize(s, cq, cmd) : -EINVAL;
}

int virtio_rdma_cq_req_notify(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_req_notify_cq_req *cmd = req;
    RdmaHcaCq *core = rdma_hca_cq_get(&s->hca, le32_to_cpu(cmd->cqn));
    VirtIORdmaCq *cq = core ? virtio_rdma_cq(core) : NULL;
    uint32_t flags = le32_to_cpu(cmd->flags);

    if (!cq) {
        return -ENOENT;
    }
    if (!flags ||
        !rdma_hca_check_flags("flags", flags,
                              VIRTIO_RDMA_NOTIFY_SOLICITED |
                              VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION)) {
        return -EINVAL;
    }
    return virtio_rdma_cq_ops(cq)->arm(
        s, cq, flags & VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
               ? VIRTIO_RDMA_ARM_NEXT : VIRTIO_RDMA_ARM_SOLICITED);
}

/* Shared receive queues */

/* The ring must hold max_wr WQEs, which wait there for messages. */
static int check_srqn(VirtIORdma *s, uint32_t srqn, const void *req)
{
    const struct virtio_rdma_create_srq_req *cmd = req;

    return virtio_rdma_vq_check(s, virtio_rdma_srq_vq(s, srqn),
                                le32_to_cpu(cmd->max_wr));
}

static int start_direct_srq(VirtIORdma *s, VirtIORdmaSrq *srq,
                            const struct virtio_rdma_create_srq_req *cmd)
{
    RdmaHcaPages pages = VIRTIO_RDMA_QUEUE_PAGES(cmd);
    int ret;

    srq->wq.depth_shift = cmd->depth_shift;
    srq->wq.slot_shift = cmd->slot_shift;
    srq->doorbell = le16_to_cpu(cmd->doorbell);
    ret = virtio_rdma_direct_srq_check(s, srq, &pages) ?:
          rdma_hca_extents_read_on(&s->hca, &pages, &srq->pages);
    if (!ret) {
        virtio_rdma_direct_srq_start(srq);
    }
    return ret;
}

static int start_vq_srq(VirtIORdma *s, VirtIORdmaSrq *srq,
                        const struct virtio_rdma_create_srq_req *cmd)
{
    RdmaHcaTable *t = &s->hca.srqs;
    int ret = !check_may_have_vq(s, "SRQ") ? -EINVAL :
              virtio_rdma_vq_find_id(s, t, t->first, s->max_vq_srq, check_srqn,
                                     cmd, &srq->core.attr.srqn);

    if (!ret) {
        virtio_rdma_srq_use_vq(s, srq);
    }
    return ret;
}

int virtio_rdma_srq_create(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_create_srq_req *cmd = req;
    struct virtio_rdma_srqn *p = rsp;
    uint32_t flags = direct_flags(s, cmd->flags);
    g_autofree VirtIORdmaSrq *srq = g_new0(VirtIORdmaSrq, 1);
    RdmaSrqAttr *attr = &srq->core.attr;
    uint32_t srqn;
    int ret;

    attr->pdn = le32_to_cpu(cmd->pdn);
    attr->max_wr = le32_to_cpu(cmd->max_wr);
    attr->max_sge = le32_to_cpu(cmd->max_sge);
    attr->limit = le32_to_cpu(cmd->limit);
    if (!rdma_hca_check_flags("flags", flags, VIRTIO_RDMA_SRQ_DIRECT)) {
        return -EINVAL;
    }
    ret = rdma_hca_srq_check(&s->hca, attr);
    if (ret) {
        return ret;
    }
    if (!(flags & VIRTIO_RDMA_SRQ_DIRECT)) {
        ret = start_vq_srq(s, srq, cmd);
    } else if (rdma_hca_table_find(&s->hca.srqs, &attr->srqn)) {
        ret = start_direct_srq(s, srq, cmd);
    } else {
        ret = -ENOMEM;
    }
    if (ret) {
        return ret;
    }
    srqn = attr->srqn;
    ret = rdma_hca_srq_create(&s->hca, &g_steal_pointer(&srq)->core);
    if (!ret) {
        virtio_rdma_srq_set_notifier(s, srqn, true);
        p->srqn = cpu_to_le32(srqn);
    }
    return ret;
}

int virtio_rdma_srq_modify(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_modify_srq_req *cmd = req;

    return rdma_hca_srq_modify(&s->hca, le32_to_cpu(cmd->srqn),
                               le32_to_cpu(cmd->limit));
}

int virtio_rdma_srq_query(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_srqn *cmd = req;
    struct virtio_rdma_query_srq_rsp *p = rsp;
    RdmaSrqAttr attr = {};
    int ret = rdma_hca_srq_query(&s->hca, le32_to_cpu(cmd->srqn), &attr);

    p->max_wr = cpu_to_le32(attr.max_wr);
    p->max_sge = cpu_to_le32(attr.max_sge);
    p->limit = cpu_to_le32(attr.limit);
    return ret;
}

/* Queue pairs */

static int check_qpn(VirtIORdma *s, uint32_t qpn, const void *req)
{
    const struct virtio_rdma_create_qp_req *cmd = req;
    int sq = virtio_rdma_vq_check(s, VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, qpn),
                                  le32_to_cpu(cmd->max_send_wr));
    int rq = le32_to_cpu(cmd->flags) & VIRTIO_RDMA_QP_SRQ ? 0 :
             virtio_rdma_vq_check(s, VIRTIO_RDMA_RQ_VQ(s->max_vq_cq, qpn),
                                  le32_to_cpu(cmd->max_recv_wr));

    return sq == -ENOMEM ? sq : rq ?: sq;
}

static int find_vq_qpn(VirtIORdma *s,
                       const struct virtio_rdma_create_qp_req *cmd,
                       uint32_t *qpn)
{
    if (cmd->qp_type != RDMA_QPT_GSI) {
        return virtio_rdma_vq_find_id(s, &s->hca.qps, RDMA_QPN_GSI + 1,
                                      s->max_vq_qp, check_qpn, cmd, qpn);
    }
    if (RDMA_QPN_GSI >= s->max_vq_qp) {
        return -ENOMEM;
    }
    return rdma_hca_qp_find(&s->hca, RDMA_QPT_GSI, qpn) ?:
           check_qpn(s, *qpn, cmd);
}

static int check_qp_flags(VirtIORdma *s, uint32_t flags)
{
    if (!rdma_hca_check_flags("flags", flags,
                              VIRTIO_RDMA_QP_SRQ |
                              VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK |
                              VIRTIO_RDMA_QP_DIRECT)) {
        return -EINVAL;
    }
    if (((flags & (VIRTIO_RDMA_QP_SRQ | VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK)) &&
         !virtio_rdma_is_v1(s)) ||
        ((flags & VIRTIO_RDMA_QP_SRQ) && !s->hca.limits.max_srq) ||
        ((flags & VIRTIO_RDMA_QP_DIRECT) &&
         !virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT))) {
        return -ENOTSUP;
    }
    return 0;
}

static int check_qp(VirtIORdma *s, uint32_t flags, uint8_t sq_sig_type,
                    RdmaQpInitAttr *init)
{
    uint32_t max_wr = s->hca.limits.max_qp_wr;
    int ret;

    if (!(flags & VIRTIO_RDMA_QP_DIRECT)) {
        max_wr = rdma_hca_ring_depth(&s->hca, max_wr);
    }
    ret = check_qp_flags(s, flags) ?: rdma_hca_qp_check(&s->hca, init, max_wr);
    if (!ret && !rdma_hca_check_range("sq_sig_type", sq_sig_type,
                                      VIRTIO_RDMA_SIGNAL_ALL_WR,
                                      VIRTIO_RDMA_SIGNAL_REQ_WR)) {
        ret = -EINVAL;
    }
    return ret;
}

static int start_direct_qp(VirtIORdma *s, VirtIORdmaQp *qp,
                           const struct virtio_rdma_create_qp_req *cmd)
{
    RdmaHcaPages pages = VIRTIO_RDMA_QUEUE_PAGES(cmd);
    int ret;

    qp->sq.depth_shift = cmd->sq_depth_shift;
    qp->sq.slot_shift = cmd->sq_slot_shift;
    qp->rq.depth_shift = cmd->rq_depth_shift;
    qp->rq.slot_shift = cmd->rq_slot_shift;
    qp->doorbell = le16_to_cpu(cmd->doorbell);
    ret = rdma_hca_qp_find(&s->hca, cmd->qp_type, &qp->core.init.qpn) ?:
          virtio_rdma_direct_qp_check(s, qp, &pages) ?:
          rdma_hca_extents_read_on(&s->hca, &pages, &qp->pages);
    if (!ret) {
        virtio_rdma_direct_qp_start(qp);
    }
    return ret;
}

static int start_vq_qp(VirtIORdma *s, VirtIORdmaQp *qp,
                       const struct virtio_rdma_create_qp_req *cmd)
{
    int ret = !check_may_have_vq(s, "QP") ? -EINVAL :
              find_vq_qpn(s, cmd, &qp->core.init.qpn);

    if (!ret) {
        virtio_rdma_qp_use_vqs(s, qp);
    }
    return ret;
}

int virtio_rdma_qp_create(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_create_qp_req *cmd = req;
    struct virtio_rdma_create_qp_rsp *p = rsp;
    uint32_t flags = le32_to_cpu(cmd->flags);
    VirtIORdmaQp *qp = g_new0(VirtIORdmaQp, 1);
    RdmaQpInitAttr *init = &qp->core.init;
    int ret;

    *init = (RdmaQpInitAttr) {
        .pdn = le32_to_cpu(cmd->pdn),
        .qp_type = cmd->qp_type,
        .sq_sig_all = cmd->sq_sig_type == VIRTIO_RDMA_SIGNAL_ALL_WR,
        .send_cqn = le32_to_cpu(cmd->send_cqn),
        .recv_cqn = le32_to_cpu(cmd->recv_cqn),
        .has_srq = flags & VIRTIO_RDMA_QP_SRQ,
        .srqn = flags & VIRTIO_RDMA_QP_SRQ ? le32_to_cpu(cmd->srqn) : 0,
        .cap.max_send_wr = le32_to_cpu(cmd->max_send_wr),
        .cap.max_recv_wr = le32_to_cpu(cmd->max_recv_wr),
        .cap.max_send_sge = le32_to_cpu(cmd->max_send_sge),
        .cap.max_recv_sge = le32_to_cpu(cmd->max_recv_sge),
        .cap.max_inline_data = le32_to_cpu(cmd->max_inline_data),
        .block_mcast_loopback = flags & VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK,
    };
    ret = check_qp(s, flags, cmd->sq_sig_type, init);
    if (!ret) {
        ret = flags & VIRTIO_RDMA_QP_DIRECT ? start_direct_qp(s, qp, cmd)
                                            : start_vq_qp(s, qp, cmd);
    }
    if (ret) {
        g_free(qp);
        return ret;
    }
    ret = rdma_hca_qp_create(&s->hca, &qp->core);
    if (!ret) {
        virtio_rdma_qp_set_notifiers(s, init->qpn, true);
        p->qpn = cpu_to_le32(init->qpn);
        p->wire_qpn = cpu_to_le32(init->wire_qpn);
    }
    return ret;
}

int virtio_rdma_qp_modify(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_modify_qp_req *cmd = req;
    RdmaQpAttr attr;

    virtio_rdma_codec_get_qp_attr(&cmd->attr, &attr);
    return rdma_hca_qp_modify(&s->hca, le32_to_cpu(cmd->qpn),
                              le32_to_cpu(cmd->attr_mask), &attr);
}

int virtio_rdma_qp_query(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_query_qp_req *cmd = req;
    RdmaQpAttr attr = {};
    int ret = rdma_hca_qp_query(&s->hca, le32_to_cpu(cmd->qpn), &attr);

    virtio_rdma_codec_put_qp_attr(rsp, &attr);
    return ret;
}

/* Multicast groups */

int virtio_rdma_mcast_attach(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_mcast_req *cmd = req;

    return rdma_hca_mcast_set(&s->hca, le32_to_cpu(cmd->qpn), cmd->gid, true);
}

int virtio_rdma_mcast_detach(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_mcast_req *cmd = req;

    return rdma_hca_mcast_set(&s->hca, le32_to_cpu(cmd->qpn), cmd->gid, false);
}

/* Pages of doorbells */

int virtio_rdma_doorbell_set_shadow(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_set_shadow_req *cmd = req;
    uint16_t page = le16_to_cpu(cmd->doorbell);
    uint16_t flags = le16_to_cpu(cmd->flags);
    uint64_t addr = le64_to_cpu(cmd->addr);
    int ret = 0;

    if (!rdma_hca_check_range("doorbell", page, 0, s->doorbells - 1) ||
        !rdma_hca_check_flags("flags", flags, VIRTIO_RDMA_SHADOW_ON) ||
        !rdma_hca_check_range("offset of addr in its page",
                              addr & (RDMA_PAGE_SIZE - 1), 0, 0)) {
        ret = -EINVAL;
    } else if (flags & VIRTIO_RDMA_SHADOW_ON) {
        ret = virtio_rdma_shadow_set(s, page, addr);
    } else {
        virtio_rdma_shadow_drop(s, page);
    }
    trace_virtio_rdma_doorbell_set_shadow(s, page,
                                          flags & VIRTIO_RDMA_SHADOW_ON, addr,
                                          ret);
    return ret;
}
