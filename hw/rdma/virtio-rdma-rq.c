/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queues, shared ones too: what the backend takes from them.
 *
 * A WQE of an SRQ is the backend's as soon as it is taken: nothing of the
 * virtqueue, or of the slots, waits for a message.
 *
 * As long as the backend finds WQEs, the driver need not ring: the device looks
 * by itself, until the backend wants to be told of the next one.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-wq.h"

static void decode(VirtIORdma *s, const RdmaHcaWq *wq,
                   const VirtIORdmaTaken *t, RdmaRecvWr *wr)
{
    size_t fixed = VIRTIO_RDMA_RECV_WQE_SIZE;

    *wr = (RdmaRecvWr) {};
    virtio_rdma_codec_get_recv(s->scratch->wqe, wr);
    if (t->len < fixed ||
        !virtio_rdma_wq_get_sges(s, wq->max_sge, wr->num_sge, fixed, t->len)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: bad receive WQE "
                      "of %zu bytes (%zu or more): num_sge %u\n",
                      wq->kind == RDMA_SRQ ? "SRQ" : "QP", wq->id, t->len,
                      fixed, wr->num_sge);
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
        wr->num_sge = 0;
    } else {
        wr->sg_list = s->scratch->sge;
    }
    wr->cost = t->cost;
}

bool virtio_rdma_rq_next(VirtIORdma *s, RdmaHcaWq *wq, bool flush,
                         RdmaRecvWr *wr)
{
    RdmaHcaQp *qp = wq->kind == RDMA_SRQ
                       ? NULL : container_of(wq, RdmaHcaQp, rq);
    VirtIORdmaTaken t;

    if (!virtio_rdma_wq_take(s, wq, VIRTIO_RDMA_RECV_WQE_SIZE, &t)) {
        return false;
    }
    virtio_rdma_wq_wake(s, wq);
    decode(s, wq, &t, wr);
    trace_virtio_rdma_wq_post(s, wq->id, wq->kind, wr->wr_id, wr->status);
    if (unlikely(s->hca.fault_points & RDMA_HCA_FAULT_AT_RECV) && !flush &&
        wr->status == RDMA_WC_SUCCESS) {
        rdma_hca_fault_recv(&s->hca, qp, wr, s->scratch->sge);
    }
    g_free(t.elem);
    if (!qp) {
        virtio_rdma_wq_retire(s, wq, 1);
    }
    return true;
}

uint32_t virtio_rdma_rq_count(VirtIORdma *s, RdmaHcaWq *wq)
{
    uint32_t n;

    if (wq->broken) {
        return 0;
    }
    if (!wq->ops->count(&s->hca, wq, &n)) {
        n = virtio_rdma_wq_sleep(s, wq) == RDMA_NEXT_WR;
    }
    if (!n && wq->kind == RDMA_SRQ) {
        /* Wrong counters fail an SRQ now, not with the next message. */
        virtio_rdma_wq_check(s, wq);
    }
    return MIN(n, virtio_rdma_wq_depth(wq) - wq->count);
}

bool virtio_rdma_rq_sleep(VirtIORdma *s, RdmaHcaWq *wq)
{
    return virtio_rdma_wq_sleep(s, wq) != RDMA_NEXT_WR;
}
