/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How to free CQs, SRQs and QPs of the guest interface, which embed those of
 * the core
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

void virtio_rdma_srq_free(RdmaHca *hca, void *obj)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaSrq *srq = obj;

    virtio_rdma_srq_set_notifier(s, srq->core.attr.srqn, false);
    rdma_hca_extents_free(hca, &srq->pages);
    g_free(srq);
}

void virtio_rdma_qp_free(RdmaHca *hca, void *obj)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaQp *qp = obj;

    virtio_rdma_sq_poll_end(s, qp);
    virtio_rdma_qp_set_notifiers(s, qp->core.init.qpn, false);
    rdma_hca_extents_free(hca, &qp->pages);
    g_free(qp);
}
