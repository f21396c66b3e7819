/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queues and shared receive queues: WQEs for the backend
 *
 * An SRQ returns the entry of its ring when the backend takes the WQE, not when
 * the WQE completes.
 *
 * The driver need not ring while the backend finds WQEs. The device polls the
 * queue until the backend calls recv_sleep().
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "int.h"

bool rdma_hca_rq_next(RdmaHca *hca, RdmaHcaWq *wq, bool flush, RdmaRecvWr *wr)
{
    RdmaHcaQp *qp = wq->kind == RDMA_SRQ
                    ? NULL : container_of(wq, RdmaHcaQp, rq);

    if (!rdma_hca_wq_take(hca, wq)) {
        return false;
    }
    wq->ops->wake(hca, wq);
    *wr = (RdmaRecvWr) {};
    hca->ops->decode_recv(hca, wq, wr);
    trace_rdma_hca_wq_post(hca->owner, wq->id, wq->kind, wr->wr_id, wr->status);
    if (unlikely(hca->fault_points & RDMA_HCA_FAULT_AT_RECV) && !flush &&
        wr->status == RDMA_WC_SUCCESS) {
        rdma_hca_fault_recv(hca, qp, wr);
    }
    if (!qp) {
        rdma_hca_wq_retire(hca, wq, 1);
    }
    return true;
}

uint32_t rdma_hca_rq_count(RdmaHca *hca, RdmaHcaWq *wq)
{
    uint32_t n;

    if (wq->broken) {
        return 0;
    }
    if (!wq->ops->count(hca, wq, &n)) {
        n = rdma_hca_wq_sleep(hca, wq) == RDMA_NEXT_WR;
    }
    if (!n && wq->kind == RDMA_SRQ) {
        /* Wrong counters fail an SRQ at once, not at the next message. */
        rdma_hca_wq_check(hca, wq);
    }
    return MIN(n, wq->ops->depth(wq) - wq->count);
}
