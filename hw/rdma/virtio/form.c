/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CQs, SRQs and QPs of the guest interface, which embed those of the core:
 * allocate and free them
 */
#include "qemu/osdep.h"
#include "queue.h"

void virtio_rdma_cq_init(VirtIORdmaCq *cq)
{
    QTAILQ_INIT(&cq->events);
}

VirtIORdmaCq *virtio_rdma_cq_add(VirtIORdma *s, uint32_t cqn, uint32_t cqe)
{
    VirtIORdmaCq *cq = g_new0(VirtIORdmaCq, 1);

    virtio_rdma_cq_init(cq);
    cq->eqn = VIRTIO_RDMA_EQN_NONE;
    cq->core.cqn = cqn;
    cq->core.cqe = cqe;
    rdma_hca_cq_add(&s->hca, &cq->core);
    return cq;
}

void virtio_rdma_cq_free(RdmaHca *hca, void *obj)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaCq *cq = obj;

    virtio_rdma_eq_detach(s, cq);
    rdma_hca_extents_free(hca, &cq->pages);
    g_clear_pointer(&cq->backlog, g_ptr_array_unref);
    g_free(cq);
}

void virtio_rdma_srq_init(VirtIORdmaSrq *srq)
{
    srq->core.wq.opaque = &srq->wq;
}

VirtIORdmaSrq *virtio_rdma_srq_add(VirtIORdma *s, const RdmaSrqAttr *attr)
{
    VirtIORdmaSrq *srq = g_new0(VirtIORdmaSrq, 1);

    virtio_rdma_srq_init(srq);
    srq->core.attr = *attr;
    rdma_hca_srq_add(&s->hca, &srq->core);
    return srq;
}

void virtio_rdma_srq_use_vq(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    virtio_rdma_wq_use_vq(s, &srq->core.wq,
                          virtio_rdma_srq_vq(s, srq->core.attr.srqn));
}

void virtio_rdma_srq_free(RdmaHca *hca, void *obj)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaSrq *srq = obj;

    virtio_rdma_srq_set_notifier(s, srq->core.attr.srqn, false);
    rdma_hca_extents_free(hca, &srq->pages);
    g_free(srq);
}

void virtio_rdma_qp_init(VirtIORdmaQp *qp)
{
    qp->core.sq.opaque = &qp->sq;
    qp->core.rq.opaque = &qp->rq;
}

VirtIORdmaQp *virtio_rdma_qp_add(VirtIORdma *s, const RdmaQpInitAttr *init)
{
    VirtIORdmaQp *qp = g_new0(VirtIORdmaQp, 1);

    virtio_rdma_qp_init(qp);
    qp->core.init = *init;
    rdma_hca_qp_add(&s->hca, &qp->core);
    return qp;
}

void virtio_rdma_qp_use_vqs(VirtIORdma *s, VirtIORdmaQp *qp)
{
    uint32_t qpn = qp->core.init.qpn;

    virtio_rdma_wq_use_vq(s, &qp->core.sq,
                          VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, qpn));
    if (!qp->core.srq) {
        virtio_rdma_wq_use_vq(s, &qp->core.rq,
                              VIRTIO_RDMA_RQ_VQ(s->max_vq_cq, qpn));
    }
}

void virtio_rdma_qp_free(RdmaHca *hca, void *obj)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaQp *qp = obj;

    virtio_rdma_qp_set_notifiers(s, qp->core.init.qpn, false);
    rdma_hca_extents_free(hca, &qp->pages);
    g_free(qp);
}
