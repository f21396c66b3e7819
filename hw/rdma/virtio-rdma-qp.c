/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs of a virtio-rdma device.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

#define QP_ATTR_MASK (RDMA_QP_STATE | RDMA_QP_CUR_STATE | \
                      RDMA_QP_EN_SQD_ASYNC_NOTIFY | RDMA_QP_ACCESS_FLAGS | \
                      RDMA_QP_PKEY_INDEX | RDMA_QP_PORT | RDMA_QP_QKEY | \
                      RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_TIMEOUT | \
                      RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY | \
                      RDMA_QP_RQ_PSN | RDMA_QP_MAX_QP_RD_ATOMIC | \
                      RDMA_QP_MIN_RNR_TIMER | RDMA_QP_SQ_PSN | \
                      RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_PATH_MIG_STATE | \
                      RDMA_QP_DEST_QPN | RDMA_QP_RATE_LIMIT)
/* Known, and not possible: resizing and alternate paths. */
#define QP_ATTR_UNSUPPORTED (RDMA_QP_CAP | RDMA_QP_ALT_PATH)

static uint32_t sq_vq(VirtIORdma *s, uint32_t qpn)
{
    return VIRTIO_RDMA_SQ_VQ(s->limits.max_cq, qpn);
}

static uint32_t rq_vq(VirtIORdma *s, uint32_t qpn)
{
    return VIRTIO_RDMA_RQ_VQ(s->limits.max_cq, qpn);
}

static void init_wq(VirtIORdma *s, VirtIORdmaWq *wq, RdmaBackendQueue kind,
                    uint32_t vq, uint32_t max_sge, uint32_t max_inline)
{
    wq->vq = virtio_get_queue(VIRTIO_DEVICE(s), vq);
    wq->seen = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s), vq);
    wq->kind = kind;
    wq->max_sge = max_sge;
    wq->max_inline = max_inline;
}

VirtIORdmaQp *virtio_rdma_add_qp(VirtIORdma *s, const RdmaQpInitAttr *init,
                                 VirtIORdmaPd *pd, VirtIORdmaCq *send_cq,
                                 VirtIORdmaCq *recv_cq, VirtIORdmaSrq *srq)
{
    VirtIORdmaQp *qp = g_new0(VirtIORdmaQp, 1);

    qp->init = *init;
    qp->pd = pd;
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    qp->srq = srq;
    if (srq) {
        srq->users++;
    }
    pd->users++;
    send_cq->users++;
    recv_cq->users++;
    init_wq(s, &qp->sq, RDMA_BACKEND_SQ, sq_vq(s, init->qpn),
            init->cap.max_send_sge, init->cap.max_inline_data);
    init_wq(s, &qp->rq, RDMA_BACKEND_RQ, rq_vq(s, init->qpn),
            init->cap.max_recv_sge, 0);
    virtio_rdma_table_set(&s->qps, init->qpn, qp);
    return qp;
}

void virtio_rdma_remove_qp(VirtIORdma *s, VirtIORdmaQp *qp)
{
    virtio_rdma_table_clear(&s->qps, qp->init.qpn);
    virtio_rdma_forget_events(s, VIRTIO_RDMA_EVENT_OF_QP, qp->init.qpn);
    virtio_rdma_cq_forget_qp(qp->send_cq, qp->init.qpn);
    virtio_rdma_cq_forget_qp(qp->recv_cq, qp->init.qpn);
    if (qp->queued) {
        QTAILQ_REMOVE(&s->rerun, qp, next);
    }
    qp->pd->users--;
    qp->send_cq->users--;
    qp->recv_cq->users--;
    if (qp->srq) {
        qp->srq->users--;
    }
    virtio_rdma_wq_forget(s, &qp->sq);
    g_free(qp);
}

static int check_qpn(VirtIORdma *s, uint32_t qpn, const VirtIORdmaReq *req)
{
    const RdmaQpCap *cap = &req->create_qp.cap;
    int sq = virtio_rdma_check_vq(s, sq_vq(s, qpn), cap->max_send_wr);
    int rq = req->create_qp.flags & VIRTIO_RDMA_QP_SRQ
             ? 0
             : virtio_rdma_check_vq(s, rq_vq(s, qpn), cap->max_recv_wr);

    return sq == -ENOMEM ? sq : rq ? rq : sq;
}

static int find_qpn(VirtIORdma *s, const VirtIORdmaReq *req, uint32_t *qpn)
{
    if (req->create_qp.qp_type != RDMA_QPT_GSI) {
        return virtio_rdma_find_with_vqs(s, &s->qps, RDMA_QPN_GSI + 1,
                                         s->qps.end, check_qpn, req, qpn);
    }
    *qpn = RDMA_QPN_GSI;
    if (RDMA_QPN_GSI >= s->qps.end) {
        return -ENOMEM;
    }
    if (virtio_rdma_table_get(&s->qps, RDMA_QPN_GSI)) {
        return -EBUSY;
    }
    return check_qpn(s, RDMA_QPN_GSI, req);
}

/* The flags of CREATE_QP, and the SRQ if there shall be one. */
static int check_flags(VirtIORdma *s, VirtIORdmaReq *req,
                       VirtIORdmaSrq **srq)
{
    uint32_t flags = req->create_qp.flags;
    uint8_t type = req->create_qp.qp_type;

    if (flags & ~(VIRTIO_RDMA_QP_SRQ | VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK)) {
        return -EINVAL;
    }
    if (((flags & VIRTIO_RDMA_QP_SRQ) &&
         !virtio_rdma_has(s, VIRTIO_RDMA_F_SRQ)) ||
        ((flags & VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK) &&
         !virtio_rdma_has(s, VIRTIO_RDMA_F_MCAST))) {
        return -ENOTSUP;
    }
    if ((flags & VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK) &&
        type != RDMA_QPT_UD) {
        return -EINVAL;
    }
    if (flags & VIRTIO_RDMA_QP_SRQ) {
        *srq = virtio_rdma_table_get(&s->srqs, req->create_qp.srqn);
        if (!*srq) {
            return -ENOENT;
        }
        if (type == RDMA_QPT_GSI || (*srq)->error) {
            return -EINVAL;
        }
        req->create_qp.cap.max_recv_wr = 0;
        req->create_qp.cap.max_recv_sge = 0;
    }
    return 0;
}

int virtio_rdma_create_qp(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, c->req.create_qp.pdn);
    VirtIORdmaCq *send_cq = virtio_rdma_table_get(&s->cqs,
                                                  c->req.create_qp.send_cqn);
    VirtIORdmaCq *recv_cq = virtio_rdma_table_get(&s->cqs,
                                                  c->req.create_qp.recv_cqn);
    const RdmaQpCap *cap = &c->req.create_qp.cap;
    const RdmaBackendLimits *l = &s->limits;
    RdmaQpInitAttr init = {
        .pdn = c->req.create_qp.pdn,
        .qp_type = c->req.create_qp.qp_type,
        .sq_sig_all = c->req.create_qp.sq_sig_type ==
                      VIRTIO_RDMA_SIGNAL_ALL_WR,
        .send_cqn = c->req.create_qp.send_cqn,
        .recv_cqn = c->req.create_qp.recv_cqn,
    };
    VirtIORdmaSrq *srq = NULL;
    int ret;

    switch (c->req.create_qp.qp_type) {
    case RDMA_QPT_GSI:
    case RDMA_QPT_RC:
    case RDMA_QPT_UC:
    case RDMA_QPT_UD:
        break;
    default:
        return -ENOTSUP;
    }
    if (!pd || !send_cq || !recv_cq) {
        return -ENOENT;
    }
    ret = check_flags(s, &c->req, &srq);
    if (ret) {
        return ret;
    }
    if (c->req.create_qp.sq_sig_type > VIRTIO_RDMA_SIGNAL_REQ_WR ||
        cap->max_send_wr > l->max_qp_wr || cap->max_recv_wr > l->max_qp_wr ||
        cap->max_send_sge > l->max_send_sge ||
        cap->max_recv_sge > l->max_recv_sge ||
        cap->max_inline_data > l->max_inline_data) {
        return -EINVAL;
    }
    ret = find_qpn(s, &c->req, &init.qpn);
    if (ret) {
        return ret;
    }
    clear_bit(sq_vq(s, init.qpn), s->stale_vqs);
    init.cap = *cap;
    init.block_mcast_loopback = c->req.create_qp.flags &
                                VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK;
    if (srq) {
        init.has_srq = true;
        init.srqn = srq->attr.srqn;
    } else {
        clear_bit(rq_vq(s, init.qpn), s->stale_vqs);
    }
    c->obj = virtio_rdma_add_qp(s, &init, pd, send_cq, recv_cq, srq);
    return s->bc->create_qp(s->backend, &init);
}

void virtio_rdma_create_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaQp *qp = c->obj;

    if (!ret) {
        trace_virtio_rdma_create_qp(s, qp->init.qpn, qp->init.qp_type,
                                    qp->init.pdn, qp->init.send_cqn,
                                    qp->init.recv_cqn);
        c->rsp.create.id = qp->init.qpn;
        virtio_rdma_notify_qp(s, qp->init.qpn, true);
        virtio_rdma_schedule_qp(s, qp);
    } else if (qp) {
        virtio_rdma_remove_qp(s, qp);
    }
}

int virtio_rdma_modify_qp(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, c->req.qp.qpn);
    uint32_t mask = c->req.qp.attr_mask;
    const RdmaQpAttr *attr = &c->req.qp.attr;

    if (!qp) {
        return -ENOENT;
    }
    if (mask & QP_ATTR_UNSUPPORTED) {
        return -ENOTSUP;
    }
    if ((mask & ~QP_ATTR_MASK) ||
        ((mask & RDMA_QP_STATE) && attr->qp_state > RDMA_QPS_ERR)) {
        return -EINVAL;
    }
    c->obj = qp;
    return s->bc->modify_qp(s->backend, qp->init.qpn, mask, attr);
}

static void drain(VirtIORdma *s, VirtIORdmaQp *qp)
{
    virtio_rdma_wq_drain(s, &qp->sq);
    if (!qp->srq) {
        virtio_rdma_wq_drain(s, &qp->rq);
    }
}

void virtio_rdma_modify_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaQp *qp = c->obj;
    uint32_t mask = c->req.qp.attr_mask;

    if (ret) {
        return;
    }
    trace_virtio_rdma_modify_qp(s, qp->init.qpn, mask,
                                mask & RDMA_QP_STATE ? c->req.qp.attr.qp_state
                                                     : -1);
    if ((mask & RDMA_QP_STATE) && c->req.qp.attr.qp_state == RDMA_QPS_RESET) {
        drain(s, qp);
        /* The driver cannot clean its CQ of what it has not been given. */
        virtio_rdma_cq_forget_qp(qp->send_cq, qp->init.qpn);
        virtio_rdma_cq_forget_qp(qp->recv_cq, qp->init.qpn);
    }
    virtio_rdma_schedule_qp(s, qp);
}

int virtio_rdma_query_qp(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, c->req.qp.qpn);

    if (!qp) {
        return -ENOENT;
    }
    c->obj = qp;
    return s->bc->query_qp(s->backend, qp->init.qpn, &c->rsp.query_qp.attr);
}

void virtio_rdma_query_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaQp *qp = c->obj;

    if (!ret) {
        c->rsp.query_qp.attr.cap = qp->init.cap;
    }
}

int virtio_rdma_destroy_qp(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, c->req.destroy.id);

    if (!qp) {
        return -ENOENT;
    }
    c->obj = qp;
    return s->bc->destroy_qp(s->backend, qp->init.qpn);
}

void virtio_rdma_destroy_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaQp *qp = c->obj;
    uint32_t qpn;

    if (ret) {
        return;
    }
    qpn = qp->init.qpn;
    trace_virtio_rdma_destroy_qp(s, qpn);
    drain(s, qp);
    virtio_rdma_abandon_vq(s, sq_vq(s, qpn));
    if (!qp->srq) {
        virtio_rdma_abandon_vq(s, rq_vq(s, qpn));
    }
    virtio_rdma_remove_qp(s, qp);
    virtio_rdma_notify_qp(s, qpn, false);
}

bool virtio_rdma_qp_is_in(VirtIORdma *s, VirtIORdmaQp *qp, RdmaQpState state)
{
    RdmaQpAttr attr = {};

    return s->bc->query_qp(s->backend, qp->init.qpn, &attr) == 0 &&
           attr.qp_state == state;
}

void virtio_rdma_fail_qp(VirtIORdma *s, VirtIORdmaQp *qp)
{
    const RdmaQpAttr attr = { .qp_state = RDMA_QPS_ERR };
    int ret;

    if (s->ctrl->pending) {
        qp->to_err = true;
        virtio_rdma_schedule_qp(s, qp);
        return;
    }
    qp->to_err = false;
    if (virtio_rdma_qp_is_in(s, qp, RDMA_QPS_ERR)) {
        /* Whoever brought it there has told the driver. */
        return;
    }
    ret = s->bc->modify_qp(s->backend, qp->init.qpn, RDMA_QP_STATE, &attr);
    trace_virtio_rdma_fail_qp(s, qp->init.qpn, ret);
    if (ret == -EINPROGRESS) {
        s->ctrl->pending = true;
    }
    if (ret == 0 || ret == -EINPROGRESS) {
        virtio_rdma_raise_event(s, RDMA_EVENT_QP_FATAL, qp->init.qpn);
    }
    virtio_rdma_schedule_qp(s, qp);
}

void virtio_rdma_fail_cq(VirtIORdma *s, VirtIORdmaCq *cq)
{
    virtio_rdma_cq_error(s, cq);
    for (uint32_t n = s->qps.first; n < s->qps.end && cq->users; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp && (qp->send_cq == cq || qp->recv_cq == cq)) {
            virtio_rdma_fail_qp(s, qp);
        }
    }
}
