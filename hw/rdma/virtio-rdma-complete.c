/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions, whatever the form of their CQ.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "virtio-rdma-queue.h"

void virtio_rdma_cq_enter_error(VirtIORdma *s, VirtIORdmaCq *cq)
{
    if (cq->error) {
        return;
    }
    cq->error = true;
    virtio_rdma_cq_backlog_clear(cq);
    trace_virtio_rdma_cq_error(s, cq->cqn);
    virtio_rdma_event_raise(s, RDMA_EVENT_CQ_ERR, cq->cqn);
}

bool virtio_rdma_cq_flush(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget)
{
    if (cq->error) {
        return false;
    }
    if (cq->ops->flush && !cq->ops->flush(s, cq, budget)) {
        virtio_rdma_cq_enter_error(s, cq);
        return false;
    }
    return true;
}

bool virtio_rdma_cq_complete(VirtIORdma *s, VirtIORdmaCq *cq,
                             const RdmaWc *wc, bool solicited)
{
    VirtIORdmaCqe cqe = {
        .qpn = wc->qp_num,
        .solicited = solicited || wc->status != RDMA_WC_SUCCESS,
    };

    if (cq->error) {
        return false;
    }
    virtio_rdma_codec_put_cqe(cqe.bytes, wc,
                              virtio_rdma_has(s, VIRTIO_RDMA_F_CQE_EX));
    if (!cq->ops->complete(s, cq, &cqe)) {
        virtio_rdma_cq_enter_error(s, cq);
        return false;
    }
    trace_virtio_rdma_cq_complete(s, cq->cqn, wc->qp_num, wc->wr_id,
                                  wc->status, wc->opcode, wc->byte_len);
    return true;
}
