/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control commands of CQs, event queues, SRQs, QPs and multicast groups. This
 * file chooses the form and the number of an object; the core checks the rest,
 * and makes the object.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "cmd.h"

static bool check_may_have_vq(VirtIORdma *s, const char *kind)
{
    if (s->hca.ctx) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: a %s has to be direct: "
                      "the device works in an iothread\n", kind);
    }
    return !s->hca.ctx;
}

/* Without the feature these fields have no meaning. */
static uint32_t cq_flags(VirtIORdma *s, const VirtIORdmaReq *req)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT) ? req->create_cq.flags : 0;
}

static int check_cqn(VirtIORdma *s, uint32_t cqn, const VirtIORdmaReq *req)
{
    bool deep = virtio_rdma_is_v1(s) &&
                !(cq_flags(s, req) & VIRTIO_RDMA_CQ_EVENTS);

    if (cq_flags(s, req) & VIRTIO_RDMA_CQ_DIRECT) {
        return 0;
    }
    return virtio_rdma_vq_check(s, VIRTIO_RDMA_CQ_VQ(cqn),
                                deep ? 0 : req->create_cq.cqe);
}

static int check_cq_flags(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaCq **eq)
{
    uint32_t flags = cq_flags(s, req);
    uint32_t eqn = req->create_cq.eqn;

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
    return 0;
}

static const VirtIORdmaCqOps *cq_ops_of(uint32_t flags)
{
    return flags & VIRTIO_RDMA_CQ_EVENTS ? &virtio_rdma_eq_ops :
           flags & VIRTIO_RDMA_CQ_DIRECT ? &virtio_rdma_cq_slots_ops
                                         : &virtio_rdma_cq_vq_ops;
}

static int add_cq(VirtIORdma *s, const VirtIORdmaReq *req, uint32_t cqn,
                  VirtIORdmaCq *eq, VirtIORdmaCq **cq)
{
    uint32_t cqe = req->create_cq.cqe;
    bool events = cq_flags(s, req) & VIRTIO_RDMA_CQ_EVENTS;
    VirtIORdmaDirectCq direct = req->create_cq.direct;
    RdmaHcaExtents pages;
    int ret;

    if (!(cq_flags(s, req) & VIRTIO_RDMA_CQ_DIRECT)) {
        if (!events && !check_may_have_vq(s, "CQ")) {
            return -EINVAL;
        }
        *cq = virtio_rdma_cq_add(s, cqn, cqe);
        (*cq)->core.is_eq = events;
        virtio_rdma_cq_start_vq(s, *cq);
        return 0;
    }
    ret = virtio_rdma_direct_cq_check(cqe, &direct);
    if (!ret) {
        ret = rdma_hca_extents_read_on(&s->hca, &direct.pages, &pages);
    }
    if (ret) {
        return ret;
    }
    *cq = virtio_rdma_cq_add(s, cqn, cqe);
    (*cq)->pages = pages;
    virtio_rdma_direct_cq_start(*cq, &direct);
    if (eq) {
        virtio_rdma_eq_attach(*cq, eq);
    }
    return 0;
}

int virtio_rdma_cq_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    uint32_t flags = cq_flags(s, req);
    VirtIORdmaCq *eq = NULL;
    VirtIORdmaCq *cq;
    uint32_t cqn;
    int ret = check_cq_flags(s, req, &eq);

    if (ret) {
        return ret;
    }
    if (!rdma_hca_check_range("cqe", req->create_cq.cqe, 1,
                              cq_ops_of(flags)->max_cqe(s))) {
        return -EINVAL;
    }
    ret = virtio_rdma_vq_find_id(s, &s->hca.cqs, s->hca.cqs.first,
                                 flags & VIRTIO_RDMA_CQ_DIRECT ? s->hca.cqs.end
                                                               : s->max_vq_cq,
                                 check_cqn, req, &cqn);
    if (!ret) {
        ret = add_cq(s, req, cqn, eq, &cq);
    }
    if (ret) {
        return ret;
    }
    rsp->create.id = cqn;
    return rdma_hca_cq_create(&s->hca, &cq->core);
}

int virtio_rdma_cq_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    return rdma_hca_cq_destroy(&s->hca, req->destroy.id);
}

int virtio_rdma_cq_resize(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaCq *core = rdma_hca_cq_get(&s->hca, req->resize_cq.cqn);
    VirtIORdmaCq *cq = core ? virtio_rdma_cq(core) : NULL;

    if (!cq) {
        return -ENOENT;
    }
    return rdma_hca_check_range("cqe", req->resize_cq.cqe, 1,
                                virtio_rdma_cq_ops(cq)->max_cqe(s))
           ? virtio_rdma_cq_ops(cq)->resize(s, cq, req) : -EINVAL;
}

int virtio_rdma_cq_req_notify(VirtIORdma *s, const VirtIORdmaReq *req,
                              VirtIORdmaRsp *rsp)
{
    RdmaHcaCq *core = rdma_hca_cq_get(&s->hca, req->notify.cqn);
    VirtIORdmaCq *cq = core ? virtio_rdma_cq(core) : NULL;
    uint32_t flags = req->notify.flags;

    if (!cq) {
        return -ENOENT;
    }
    if (!virtio_rdma_cq_ops(cq)->arm) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u is a direct one, "
                      "which is armed in memory\n", cq->core.cqn);
        return -EINVAL;
    }
    if (!flags ||
        !rdma_hca_check_flags("flags", flags,
                              VIRTIO_RDMA_NOTIFY_SOLICITED |
                              VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION)) {
        return -EINVAL;
    }
    virtio_rdma_cq_ops(cq)->arm(s, cq,
                                flags & VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
                                ? VIRTIO_RDMA_ARM_NEXT
                                : VIRTIO_RDMA_ARM_SOLICITED);
    return 0;
}

/* Without the feature these fields have no meaning. */
static uint32_t srq_flags(VirtIORdma *s, const VirtIORdmaReq *req)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT) ? req->create_srq.flags : 0;
}

/* The ring must hold max_wr WQEs, which wait there for messages. */
static int check_srqn(VirtIORdma *s, uint32_t srqn, const VirtIORdmaReq *req)
{
    if (srq_flags(s, req) & VIRTIO_RDMA_SRQ_DIRECT) {
        return 0;
    }
    return virtio_rdma_vq_check(s, virtio_rdma_srq_vq(s, srqn),
                                req->create_srq.attr.max_wr);
}

static int add_srq(VirtIORdma *s, const VirtIORdmaReq *req,
                   const RdmaSrqAttr *attr, VirtIORdmaSrq **srq)
{
    VirtIORdmaDirectSrq direct = req->create_srq.direct;
    RdmaHcaExtents pages;
    int ret;

    if (!(srq_flags(s, req) & VIRTIO_RDMA_SRQ_DIRECT)) {
        if (!check_may_have_vq(s, "SRQ")) {
            return -EINVAL;
        }
        *srq = virtio_rdma_srq_add(s, attr);
        virtio_rdma_srq_use_vq(s, *srq);
        return 0;
    }
    ret = virtio_rdma_direct_srq_check(s, attr, &direct);
    if (!ret) {
        ret = rdma_hca_extents_read_on(&s->hca, &direct.pages, &pages);
    }
    if (ret) {
        return ret;
    }
    *srq = virtio_rdma_srq_add(s, attr);
    (*srq)->pages = pages;
    virtio_rdma_direct_srq_start(*srq, &direct);
    return 0;
}

int virtio_rdma_srq_create(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    uint32_t flags = srq_flags(s, req);
    RdmaSrqAttr attr = req->create_srq.attr;
    VirtIORdmaSrq *srq;
    int ret;

    if (!rdma_hca_check_flags("flags", flags, VIRTIO_RDMA_SRQ_DIRECT)) {
        return -EINVAL;
    }
    ret = rdma_hca_srq_check(&s->hca, &attr);
    if (!ret) {
        ret = virtio_rdma_vq_find_id(s, &s->hca.srqs, s->hca.srqs.first,
                                     flags & VIRTIO_RDMA_SRQ_DIRECT
                                     ? s->hca.srqs.end : s->max_vq_srq,
                                     check_srqn, req, &attr.srqn);
    }
    if (!ret) {
        ret = add_srq(s, req, &attr, &srq);
    }
    if (!ret) {
        ret = rdma_hca_srq_create(&s->hca, &srq->core);
    }
    if (ret) {
        return ret;
    }
    virtio_rdma_srq_set_notifier(s, attr.srqn, true);
    rsp->create.id = attr.srqn;
    return 0;
}

int virtio_rdma_srq_modify(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    return rdma_hca_srq_modify(&s->hca, req->srq.srqn, req->srq.limit);
}

int virtio_rdma_srq_query(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    return rdma_hca_srq_query(&s->hca, req->srq.srqn, &rsp->query_srq.attr);
}

int virtio_rdma_srq_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                            VirtIORdmaRsp *rsp)
{
    return rdma_hca_srq_destroy(&s->hca, req->destroy.id);
}

static int check_qpn(VirtIORdma *s, uint32_t qpn, const VirtIORdmaReq *req)
{
    const RdmaQpCap *cap = &req->create_qp.cap;
    int sq, rq;

    if (req->create_qp.flags & VIRTIO_RDMA_QP_DIRECT) {
        return 0;
    }
    sq = virtio_rdma_vq_check(s, VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, qpn),
                              cap->max_send_wr);
    rq = req->create_qp.flags & VIRTIO_RDMA_QP_SRQ
         ? 0
         : virtio_rdma_vq_check(s, VIRTIO_RDMA_RQ_VQ(s->max_vq_cq, qpn),
                                cap->max_recv_wr);

    return sq == -ENOMEM ? sq : rq ? rq : sq;
}

static int find_qpn(VirtIORdma *s, const VirtIORdmaReq *req, uint32_t *qpn)
{
    uint32_t end = req->create_qp.flags & VIRTIO_RDMA_QP_DIRECT
                   ? s->hca.qps.end : s->max_vq_qp;

    if (req->create_qp.qp_type != RDMA_QPT_GSI) {
        return virtio_rdma_vq_find_id(s, &s->hca.qps, RDMA_QPN_GSI + 1, end,
                                      check_qpn, req, qpn);
    }
    *qpn = RDMA_QPN_GSI;
    if (RDMA_QPN_GSI >= end) {
        return -ENOMEM;
    }
    if (rdma_hca_table_get(&s->hca.qps, RDMA_QPN_GSI)) {
        return -EBUSY;
    }
    return check_qpn(s, RDMA_QPN_GSI, req);
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

static int check_qp(VirtIORdma *s, const VirtIORdmaReq *req,
                    RdmaQpInitAttr *init)
{
    const RdmaBackendLimits *l = &s->hca.limits;
    uint32_t flags = req->create_qp.flags;
    int ret = check_qp_flags(s, flags);

    if (!ret) {
        ret = rdma_hca_qp_check(&s->hca, init,
                                flags & VIRTIO_RDMA_QP_DIRECT
                                ? l->max_qp_wr_direct : l->max_qp_wr);
    }
    if (!ret && !rdma_hca_check_range("sq_sig_type",
                                      req->create_qp.sq_sig_type,
                                      VIRTIO_RDMA_SIGNAL_ALL_WR,
                                      VIRTIO_RDMA_SIGNAL_REQ_WR)) {
        ret = -EINVAL;
    }
    return ret;
}

static int add_qp(VirtIORdma *s, const VirtIORdmaReq *req,
                  const RdmaQpInitAttr *init, VirtIORdmaQp **qp)
{
    VirtIORdmaDirectQp direct = req->create_qp.direct;
    RdmaHcaExtents pages;
    int ret;

    if (!(req->create_qp.flags & VIRTIO_RDMA_QP_DIRECT)) {
        if (!check_may_have_vq(s, "QP")) {
            return -EINVAL;
        }
        *qp = virtio_rdma_qp_add(s, init);
        virtio_rdma_qp_use_vqs(s, *qp);
        return 0;
    }
    ret = virtio_rdma_direct_qp_check(s, init, &direct);
    if (!ret) {
        ret = rdma_hca_extents_read_on(&s->hca, &direct.pages, &pages);
    }
    if (ret) {
        return ret;
    }
    *qp = virtio_rdma_qp_add(s, init);
    (*qp)->pages = pages;
    virtio_rdma_direct_qp_start(*qp, &direct);
    return 0;
}

int virtio_rdma_qp_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    uint32_t flags = req->create_qp.flags;
    RdmaQpInitAttr init = {
        .pdn = req->create_qp.pdn,
        .qp_type = req->create_qp.qp_type,
        .sq_sig_all = req->create_qp.sq_sig_type ==
                      VIRTIO_RDMA_SIGNAL_ALL_WR,
        .send_cqn = req->create_qp.send_cqn,
        .recv_cqn = req->create_qp.recv_cqn,
        .has_srq = flags & VIRTIO_RDMA_QP_SRQ,
        .srqn = flags & VIRTIO_RDMA_QP_SRQ ? req->create_qp.srqn : 0,
        .cap = req->create_qp.cap,
        .block_mcast_loopback = flags & VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK,
    };
    VirtIORdmaQp *qp;
    int ret = check_qp(s, req, &init);

    if (!ret) {
        ret = find_qpn(s, req, &init.qpn);
    }
    if (!ret) {
        ret = add_qp(s, req, &init, &qp);
    }
    if (!ret) {
        ret = rdma_hca_qp_create(&s->hca, &qp->core);
    }
    if (ret) {
        return ret;
    }
    virtio_rdma_qp_set_notifiers(s, init.qpn, true);
    rsp->create.id = init.qpn;
    rsp->create.wire_qpn = qp->core.init.wire_qpn;
    return 0;
}

int virtio_rdma_qp_modify(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    return rdma_hca_qp_modify(&s->hca, req->qp.qpn, req->qp.attr_mask,
                              &req->qp.attr);
}

int virtio_rdma_qp_query(VirtIORdma *s, const VirtIORdmaReq *req,
                         VirtIORdmaRsp *rsp)
{
    return rdma_hca_qp_query(&s->hca, req->qp.qpn, &rsp->query_qp.attr);
}

int virtio_rdma_qp_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    return rdma_hca_qp_destroy(&s->hca, req->destroy.id);
}

int virtio_rdma_mcast_attach(VirtIORdma *s, const VirtIORdmaReq *req,
                             VirtIORdmaRsp *rsp)
{
    return rdma_hca_mcast_set(&s->hca, req->mcast.qpn, req->mcast.gid, true);
}

int virtio_rdma_mcast_detach(VirtIORdma *s, const VirtIORdmaReq *req,
                             VirtIORdmaRsp *rsp)
{
    return rdma_hca_mcast_set(&s->hca, req->mcast.qpn, req->mcast.gid, false);
}
