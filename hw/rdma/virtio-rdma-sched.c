/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the bottom half has to look at.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/main-loop.h"
#include "virtio-rdma-queue.h"

void virtio_rdma_bh_schedule(VirtIORdma *s)
{
    if (virtio_rdma_busy(s)) {
        rdma_backend_put_off(s->backend, VIRTIO_RDMA_PENDING_BH);
    } else {
        qemu_bh_schedule(s->bh);
    }
}

void virtio_rdma_work_schedule(VirtIORdma *s)
{
    if (!s->ctx) {
        virtio_rdma_bh_schedule(s);
    } else if (virtio_rdma_busy(s)) {
        rdma_backend_put_off(s->backend, VIRTIO_RDMA_PENDING_WORK);
    } else {
        qemu_bh_schedule(s->work_bh);
    }
}

void virtio_rdma_wq_schedule(VirtIORdma *s, const VirtIORdmaWq *wq)
{
    uint32_t bit = wq->kind == RDMA_SRQ ? s->qps.end + wq->id : wq->id;

    set_bit_atomic(bit, s->kicks);
    qatomic_set_mb(&s->any_kicks, true);
    virtio_rdma_work_schedule(s);
}

void virtio_rdma_qp_schedule(VirtIORdma *s, VirtIORdmaQp *qp)
{
    virtio_rdma_wq_schedule(s, &qp->sq);
}

void virtio_rdma_srq_schedule(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    virtio_rdma_wq_schedule(s, &srq->wq);
}

void virtio_rdma_wq_break(VirtIORdma *s, VirtIORdmaWq *wq)
{
    wq->broken = true;
    virtio_rdma_wq_schedule(s, wq);
}

void virtio_rdma_cqs_schedule(VirtIORdma *s)
{
    s->sched_cqs = true;
    virtio_rdma_bh_schedule(s);
}

void virtio_rdma_all_schedule(VirtIORdma *s)
{
    s->sched_all = true;
    virtio_rdma_bh_schedule(s);
}
