/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions, whatever the form of their CQ.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "hw/rdma/hca.h"

void rdma_hca_cq_enter_error(RdmaHca *hca, RdmaHcaCq *cq)
{
    if (cq->error) {
        return;
    }
    cq->error = true;
    if (cq->ops->drop) {
        cq->ops->drop(hca, cq);
    }
    trace_virtio_rdma_cq_error(hca->owner, cq->cqn);
    rdma_hca_event_raise(hca, RDMA_EVENT_CQ_ERR, cq->cqn);
}

bool rdma_hca_cq_complete(RdmaHca *hca, RdmaHcaCq *cq, const RdmaWc *wc,
                          bool solicited)
{
    if (cq->error) {
        return false;
    }
    if (!cq->ops->complete(hca, cq, wc, solicited)) {
        rdma_hca_cq_enter_error(hca, cq);
        return false;
    }
    trace_virtio_rdma_cq_complete(hca->owner, cq->cqn, wc->qp_num, wc->wr_id,
                                  wc->status, wc->opcode, wc->byte_len);
    return true;
}
