/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All objects of a virtio-rdma device: their tables, and that device reset
 * removes them.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "virtio-rdma-object.h"

/* Peers see these numbers: those of a guest say nothing about another one's. */
static void scatter(VirtIORdma *s)
{
    rdma_hca_table_scatter(&s->hca.mrs);
    rdma_hca_table_scatter(&s->hca.qps);
}

void virtio_rdma_objects_init(VirtIORdma *s)
{
    QTAILQ_INIT(&s->completed_cqs);
    QTAILQ_INIT(&s->sched_eqs);
    virtio_rdma_shadows_init(s);
    rdma_hca_table_init(&s->hca.pds, 1, s->hca.limits.max_pd + 1);
    rdma_hca_table_init(&s->hca.cqs, 0, s->hca.limits.max_cq);
    rdma_hca_table_init(&s->hca.mrs, 1,
                        s->hca.limits.max_mr + s->hca.limits.max_mw + 1);
    rdma_hca_table_init(&s->hca.srqs, 0, s->hca.limits.max_srq);
    rdma_hca_table_init(&s->hca.qps, RDMA_QPN_GSI, s->hca.limits.max_qp);
    scatter(s);
}

static void remove_cqs(VirtIORdma *s, bool eqs)
{
    RdmaHcaCq *cq;

    RDMA_HCA_FOREACH(&s->hca.cqs, n, cq) {
        if (cq->is_eq == eqs) {
            virtio_rdma_cq_remove(s, virtio_rdma_cq(cq));
        }
    }
}

void virtio_rdma_objects_reset(VirtIORdma *s)
{
    RdmaHcaSrq *srq;
    RdmaHcaMr *mr;
    RdmaHcaPd *pd;
    RdmaHcaQp *qp;

    virtio_rdma_shadows_reset(s);
    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        virtio_rdma_qp_remove(s, qp);
        virtio_rdma_qp_set_notifiers(s, n, false);
    }
    RDMA_HCA_FOREACH(&s->hca.mrs, n, mr) {
        virtio_rdma_mr_remove(s, mr);
    }
    RDMA_HCA_FOREACH(&s->hca.srqs, n, srq) {
        virtio_rdma_srq_remove(s, srq);
        virtio_rdma_srq_set_notifier(s, n, false);
    }
    remove_cqs(s, false);
    remove_cqs(s, true);
    RDMA_HCA_FOREACH(&s->hca.pds, n, pd) {
        virtio_rdma_pd_remove(s, pd);
    }
    s->hca.mr_pages = 0;
    s->hca.pds.next = s->hca.pds.first;
    s->hca.cqs.next = s->hca.cqs.first;
    s->hca.srqs.next = s->hca.srqs.first;
    scatter(s);
    bitmap_zero(s->stale_vqs, VIRTIO_QUEUE_MAX);
}

void virtio_rdma_objects_free(VirtIORdma *s)
{
    virtio_rdma_objects_reset(s);
    rdma_hca_table_free(&s->hca.qps);
    rdma_hca_table_free(&s->hca.srqs);
    rdma_hca_table_free(&s->hca.mrs);
    rdma_hca_table_free(&s->hca.cqs);
    rdma_hca_table_free(&s->hca.pds);
    virtio_rdma_shadows_free(s);
}
