/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queues, shared ones too: what the backend takes from them.
 *
 * The backend has a copy of the WQE of an SRQ, whose buffer goes back at once:
 * nothing of the virtqueue, or of the slots, waits for a message.
 *
 * As long as it finds WQEs, the driver need not ring: the device looks by
 * itself, until the backend wants to be told of the next one.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-wq.h"

static void decode(VirtIORdma *s, const VirtIORdmaTaken *t, uint32_t max_sge,
                   const char *kind, uint32_t id, RdmaRecvWr *wr)
{
    size_t fixed = VIRTIO_RDMA_RECV_WQE_SIZE;

    *wr = (RdmaRecvWr) {};
    virtio_rdma_codec_get_recv(s->scratch->wqe, wr);
    if (t->len < fixed ||
        !virtio_rdma_wq_get_sges(s, max_sge, wr->num_sge, fixed, t->len)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: bad receive WQE "
                      "of %zu bytes (%zu or more): num_sge %u\n", kind, id,
                      t->len, fixed, wr->num_sge);
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
        wr->num_sge = 0;
    } else {
        wr->sg_list = s->scratch->sge;
    }
    wr->cost = t->cost;
}

/* The WQE that was taken meets its fault; @qp NULL: of an SRQ. */
static void strike(VirtIORdma *s, VirtIORdmaQp *qp, RdmaRecvWr *wr)
{
    if (unlikely(s->fault_points & VIRTIO_RDMA_FAULT_AT_RECV) &&
        wr->status == RDMA_WC_SUCCESS) {
        virtio_rdma_fault_recv(s, qp, wr, s->scratch->sge);
    }
}

bool virtio_rdma_rq_next(VirtIORdma *s, VirtIORdmaQp *qp, bool flush,
                         RdmaRecvWr *wr)
{
    VirtIORdmaWq *wq = &qp->rq;
    VirtIORdmaTaken t;

    if (wq->count >= virtio_rdma_wq_depth(wq)) {
        return false;
    }
    if (!virtio_rdma_wq_take(s, qp, wq, VIRTIO_RDMA_RECV_WQE_SIZE, &t)) {
        if (qp->broken) {
            virtio_rdma_qp_schedule(s, qp);
        }
        return false;
    }
    if (!t.elem) {
        virtio_rdma_slots_wake(s, &wq->slots);
    }
    decode(s, &t, wq->max_sge, "QP", qp->init.qpn, wr);
    trace_virtio_rdma_wq_post(s, qp->init.qpn, RDMA_RQ, wr->wr_id, wr->status);
    if (!flush) {
        strike(s, qp, wr);
    }
    g_free(t.elem);
    return true;
}

uint32_t virtio_rdma_rq_count(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaWq *wq = &qp->rq;
    uint32_t n = 0;

    if (!virtio_rdma_is_direct(wq)) {
        return virtio_rdma_ring_count(s, wq->vq, &n)
               ? n : !virtio_queue_empty(wq->vq);
    }
    return MIN(virtio_rdma_slots_count(s, &wq->slots),
               virtio_rdma_wq_depth(wq) - wq->count);
}

/* The driver rings for each buffer of a virtqueue. */
bool virtio_rdma_rq_sleep(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaWq *wq = &qp->rq;
    bool none;

    if (!virtio_rdma_is_direct(wq)) {
        return virtio_queue_empty(wq->vq);
    }
    none = virtio_rdma_slots_sleep(s, &wq->slots, &qp->broken);
    if (qp->broken) {
        virtio_rdma_qp_schedule(s, qp);
    }
    return none || qp->broken;
}

static bool srq_take(VirtIORdma *s, VirtIORdmaSrq *srq, VirtIORdmaTaken *t)
{
    VirtQueueElement *elem;

    if (!srq->vq) {
        return virtio_rdma_wq_take_slot(s, &srq->slots,
                                        VIRTIO_RDMA_RECV_WQE_SIZE, t,
                                        &srq->broken);
    }
    elem = virtio_rdma_ring_check(s, srq->vq, &srq->seen)
           ? virtqueue_pop(srq->vq, sizeof(VirtQueueElement)) : NULL;
    if (elem) {
        virtio_rdma_wq_copy(s, elem, VIRTIO_RDMA_RECV_WQE_SIZE, t);
    }
    return elem;
}

bool virtio_rdma_srq_next(VirtIORdma *s, VirtIORdmaSrq *srq, RdmaRecvWr *wr)
{
    VirtIORdmaTaken t;

    if (srq->error) {
        return false;
    }
    if (!srq_take(s, srq, &t)) {
        if (srq->broken) {
            virtio_rdma_srq_schedule(s, srq);
        }
        return false;
    }
    if (t.elem) {
        virtqueue_push(srq->vq, t.elem, 0);
        virtio_rdma_vq_notify(s, srq->vq);
        g_free(t.elem);
    } else {
        virtio_rdma_slots_wake(s, &srq->slots);
    }
    decode(s, &t, srq->attr.max_sge, "SRQ", srq->attr.srqn, wr);
    trace_virtio_rdma_srq_post(s, srq->attr.srqn, wr->wr_id, wr->status);
    strike(s, NULL, wr);
    return true;
}

bool virtio_rdma_srq_check(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    virtio_rdma_slots_look(s, &srq->slots, &srq->broken);
    if (srq->broken) {
        virtio_rdma_srq_schedule(s, srq);
    }
    return !srq->broken;
}

uint32_t virtio_rdma_srq_count(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    uint32_t n = 0;

    if (srq->error || srq->broken) {
        return 0;
    }
    if (!srq->vq) {
        return virtio_rdma_srq_check(s, srq)
               ? virtio_rdma_slots_count(s, &srq->slots) : 0;
    }
    return virtio_rdma_ring_count(s, srq->vq, &n)
           ? n : !virtio_queue_empty(srq->vq);
}

bool virtio_rdma_srq_sleep(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    bool none;

    if (srq->error || srq->broken) {
        return true;
    }
    if (srq->vq) {
        return virtio_queue_empty(srq->vq);
    }
    none = virtio_rdma_slots_sleep(s, &srq->slots, &srq->broken);
    if (srq->broken) {
        virtio_rdma_srq_schedule(s, srq);
    }
    return none || srq->broken;
}
