/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the bottom half has to look at.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
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

void virtio_rdma_work_schedule(VirtIORdma *s)
{
    if (!s->ctx) {
        virtio_rdma_bh_schedule(s);
    } else if (virtio_rdma_busy(s)) {
        s->work_put_off = true;
    } else {
        qemu_bh_schedule(s->work_bh);
    }
}

void virtio_rdma_qp_schedule(VirtIORdma *s, VirtIORdmaQp *qp)
{
    if (!qp->scheduled) {
        qp->scheduled = true;
        QTAILQ_INSERT_TAIL(&s->sched_qps, qp, next);
    }
    virtio_rdma_work_schedule(s);
}

void virtio_rdma_cq_schedule_qps(VirtIORdma *s, VirtIORdmaCq *cq)
{
    VirtIORdmaQp *qp;

    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        if (qp->send_cq == cq || qp->recv_cq == cq) {
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
    virtio_rdma_work_schedule(s);
}

static void ring(VirtIORdma *s, uint32_t bit)
{
    set_bit_atomic(bit, s->rung);
    qatomic_set_mb(&s->any_rung, true);
    qemu_bh_schedule(s->work_bh);
}

void virtio_rdma_qp_ring(VirtIORdma *s, VirtIORdmaQp *qp)
{
    if (s->ctx) {
        ring(s, qp->init.qpn);
    } else {
        virtio_rdma_qp_schedule(s, qp);
    }
}

void virtio_rdma_srq_ring(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    if (s->ctx) {
        ring(s, s->qps.end + srq->attr.srqn);
    } else {
        virtio_rdma_srq_schedule(s, srq);
    }
}

static void take(VirtIORdma *s, uint32_t bit)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, bit);
    VirtIORdmaSrq *srq = bit < s->qps.end ? NULL :
                         virtio_rdma_table_get(&s->srqs, bit - s->qps.end);

    /* It may be gone since. */
    if (qp) {
        virtio_rdma_qp_schedule(s, qp);
    } else if (srq) {
        virtio_rdma_srq_schedule(s, srq);
    }
}

void virtio_rdma_take_rung(VirtIORdma *s)
{
    unsigned n = s->ctx ? BITS_TO_LONGS(s->qps.end + s->srqs.end) : 0;

    if (!n || !qatomic_xchg(&s->any_rung, false)) {
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned long bits = qatomic_read(&s->rung[i]);

        for (bits = bits ? qatomic_xchg(&s->rung[i], 0) : 0; bits;
             bits &= bits - 1) {
            take(s, i * BITS_PER_LONG + ctzl(bits));
        }
    }
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
