/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the bottom half has to look at.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "virtio-rdma-queue.h"

void virtio_rdma_bh_schedule(VirtIORdma *s)
{
    if (virtio_rdma_busy(s)) {
        s->bh_put_off = true;
    } else {
        qemu_bh_schedule(s->bh);
    }
}

void virtio_rdma_qp_schedule(VirtIORdma *s, VirtIORdmaQp *qp)
{
    if (!qp->scheduled) {
        qp->scheduled = true;
        QTAILQ_INSERT_TAIL(&s->sched_qps, qp, next);
    }
    virtio_rdma_bh_schedule(s);
}

void virtio_rdma_cq_schedule_qps(VirtIORdma *s, VirtIORdmaCq *cq)
{
    for (uint32_t n = s->qps.first; n < s->qps.end; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp && (qp->send_cq == cq || qp->recv_cq == cq)) {
            virtio_rdma_qp_schedule(s, qp);
        }
    }
}

void virtio_rdma_srq_schedule(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    if (!srq->scheduled) {
        srq->scheduled = true;
        QTAILQ_INSERT_TAIL(&s->sched_srqs, srq, next);
    }
    virtio_rdma_bh_schedule(s);
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
