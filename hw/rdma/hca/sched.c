/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Schedule the bottom halves, and queues for them to serve.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/main-loop.h"
#include "int.h"

/* Schedule @bh. While the backend is busy, note this by the bit @pending. */
static void schedule(RdmaHca *hca, QEMUBH *bh, uint32_t pending)
{
    if (rdma_hca_busy(hca)) {
        rdma_backend_put_off(hca->backend, pending);
    } else {
        qemu_bh_schedule(bh);
    }
}

void rdma_hca_bh_schedule(RdmaHca *hca)
{
    schedule(hca, hca->bh, RDMA_HCA_PENDING_BH);
}

void rdma_hca_work_schedule(RdmaHca *hca)
{
    if (hca->ctx) {
        schedule(hca, hca->work_bh, RDMA_HCA_PENDING_WORK);
    } else {
        rdma_hca_bh_schedule(hca);
    }
}

void rdma_hca_wq_mark(RdmaHca *hca, const RdmaHcaWq *wq)
{
    uint32_t bit = wq->kind == RDMA_SRQ ? hca->qps.end + wq->id : wq->id;

    set_bit_atomic(bit, hca->kicks);
    qatomic_set_mb(&hca->any_kicks, true);
}

void rdma_hca_wq_schedule(RdmaHca *hca, const RdmaHcaWq *wq)
{
    rdma_hca_wq_mark(hca, wq);
    rdma_hca_work_schedule(hca);
}

void rdma_hca_qp_schedule(RdmaHca *hca, RdmaHcaQp *qp)
{
    rdma_hca_wq_schedule(hca, &qp->sq);
}

void rdma_hca_wq_break(RdmaHca *hca, RdmaHcaWq *wq)
{
    wq->broken = true;
    rdma_hca_wq_schedule(hca, wq);
}
