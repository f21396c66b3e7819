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
    virtio_rdma_table_scatter(&s->mrs);
    virtio_rdma_table_scatter(&s->qps);
}

void virtio_rdma_objects_init(VirtIORdma *s)
{
    QTAILQ_INIT(&s->completed_cqs);
    QTAILQ_INIT(&s->sched_eqs);
    virtio_rdma_shadows_init(s);
    virtio_rdma_table_init(&s->pds, 1, s->limits.max_pd + 1);
    virtio_rdma_table_init(&s->cqs, 0, s->limits.max_cq);
    virtio_rdma_table_init(&s->mrs, 1,
                           s->limits.max_mr + s->limits.max_mw + 1);
    virtio_rdma_table_init(&s->srqs, 0, s->limits.max_srq);
    virtio_rdma_table_init(&s->qps, RDMA_QPN_GSI, s->limits.max_qp);
    scatter(s);
}

static void remove_cqs(VirtIORdma *s, bool eqs)
{
    VirtIORdmaCq *cq;

    VIRTIO_RDMA_TABLE_FOREACH(&s->cqs, n, cq) {
        if (cq->is_eq == eqs) {
            virtio_rdma_cq_remove(s, cq);
        }
    }
}

void virtio_rdma_objects_reset(VirtIORdma *s)
{
    VirtIORdmaSrq *srq;
    VirtIORdmaMr *mr;
    VirtIORdmaPd *pd;
    VirtIORdmaQp *qp;

    virtio_rdma_shadows_reset(s);
    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        virtio_rdma_qp_remove(s, qp);
        virtio_rdma_qp_set_notifiers(s, n, false);
    }
    VIRTIO_RDMA_TABLE_FOREACH(&s->mrs, n, mr) {
        virtio_rdma_mr_remove(s, mr);
    }
    VIRTIO_RDMA_TABLE_FOREACH(&s->srqs, n, srq) {
        virtio_rdma_srq_remove(s, srq);
        virtio_rdma_srq_set_notifier(s, n, false);
    }
    remove_cqs(s, false);
    remove_cqs(s, true);
    VIRTIO_RDMA_TABLE_FOREACH(&s->pds, n, pd) {
        virtio_rdma_pd_remove(s, pd);
    }
    s->mr_pages = 0;
    s->pds.next = s->pds.first;
    s->cqs.next = s->cqs.first;
    s->srqs.next = s->srqs.first;
    scatter(s);
    bitmap_zero(s->stale_vqs, VIRTIO_QUEUE_MAX);
}

void virtio_rdma_objects_free(VirtIORdma *s)
{
    virtio_rdma_objects_reset(s);
    virtio_rdma_table_free(&s->qps);
    virtio_rdma_table_free(&s->srqs);
    virtio_rdma_table_free(&s->mrs);
    virtio_rdma_table_free(&s->cqs);
    virtio_rdma_table_free(&s->pds);
    virtio_rdma_shadows_free(s);
}
