/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CQs, SRQs and QPs of the guest interface, which embed those of the core:
 * their virtqueues, and how to free them
 */
#include "qemu/osdep.h"
#include "queue.h"

void virtio_rdma_cq_free(RdmaHca *hca, void *obj)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaCq *cq = obj;

    virtio_rdma_eq_detach(s, cq);
    rdma_hca_extents_free(hca, &cq->pages);
    virtio_rdma_cq_backlog_clear(cq);
    g_free(cq);
}

void virtio_rdma_srq_use_vq(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    virtio_rdma_wq_use_vq(s, &srq->core.wq, &srq->wq,
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

void virtio_rdma_qp_use_vqs(VirtIORdma *s, VirtIORdmaQp *qp)
{
    const RdmaQpInitAttr *init = &qp->core.init;

    virtio_rdma_wq_use_vq(s, &qp->core.sq, &qp->sq,
                          VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, init->qpn));
    if (!init->has_srq) {
        virtio_rdma_wq_use_vq(s, &qp->core.rq, &qp->rq,
                              VIRTIO_RDMA_RQ_VQ(s->max_vq_cq, init->qpn));
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
