/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The backlog of a CQ: completions that wait for a buffer of the driver, oldest
 * first.
 */
#include "qemu/osdep.h"
#include "queue.h"

/* A backlog grows by blocks of completions, so that none has to be copied. */
#define BACKLOG_BLOCK 64

VirtIORdmaCqe *virtio_rdma_cq_backlog_at(VirtIORdmaCq *cq, uint32_t i)
{
    VirtIORdmaCqe *block;

    i += cq->backlog_head;
    block = g_ptr_array_index(cq->backlog, i / BACKLOG_BLOCK);
    return &block[i % BACKLOG_BLOCK];
}

/* Shorten the backlog to @n. */
static void set_count(VirtIORdmaCq *cq, uint32_t n)
{
    uint32_t blocks = DIV_ROUND_UP(cq->backlog_head + n, BACKLOG_BLOCK);

    cq->n_backlog = n;
    if (!n) {
        g_clear_pointer(&cq->backlog, g_ptr_array_unref);
        cq->backlog_head = 0;
    } else if (blocks < cq->backlog->len) {
        g_ptr_array_set_size(cq->backlog, blocks);
    }
}

bool virtio_rdma_cq_backlog_add(VirtIORdmaCq *cq, const VirtIORdmaCqe *cqe)
{
    VirtIORdmaCqe *block;

    if (cq->n_backlog >= cq->core.cqe) {
        return false;
    }
    if (!cq->backlog) {
        cq->backlog = g_ptr_array_new_with_free_func(g_free);
    }
    if (cq->backlog_head + cq->n_backlog ==
        cq->backlog->len * BACKLOG_BLOCK) {
        /* The guest chooses the number of blocks: a failure must not abort. */
        block = g_try_new(VirtIORdmaCqe, BACKLOG_BLOCK);
        if (!block) {
            return false;
        }
        g_ptr_array_add(cq->backlog, block);
    }
    cq->n_backlog++;
    *virtio_rdma_cq_backlog_at(cq, cq->n_backlog - 1) = *cqe;
    return true;
}

void virtio_rdma_cq_backlog_clear(VirtIORdmaCq *cq)
{
    set_count(cq, 0);
}

void virtio_rdma_cq_backlog_take(VirtIORdmaCq *cq)
{
    if (++cq->backlog_head == BACKLOG_BLOCK) {
        g_ptr_array_remove_index(cq->backlog, 0);
        cq->backlog_head = 0;
    }
    set_count(cq, cq->n_backlog - 1);
}

/*
 * Does the driver need the completion to learn which WQE of an SRQ is done? It
 * cannot tell from the SRQ's used ring, because WQEs complete in any order.
 */
static bool holds_srq_wqe(const VirtIORdmaCqe *cqe, const RdmaHcaQp *qp)
{
    return qp->srq && virtio_rdma_codec_cqe_is_recv(cqe->bytes);
}

void virtio_rdma_cq_forget_qp(RdmaHca *hca, RdmaHcaCq *core,
                              const RdmaHcaQp *qp)
{
    VirtIORdmaCq *cq = virtio_rdma_cq(core);
    uint32_t n = 0;

    rdma_work_pay(&hca->cmd_budget, cq->n_backlog * RDMA_WORK_ENTRY);
    for (uint32_t i = 0; i < cq->n_backlog; i++) {
        VirtIORdmaCqe *cqe = virtio_rdma_cq_backlog_at(cq, i);

        if (cqe->qpn == qp->init.qpn) {
            if (!holds_srq_wqe(cqe, qp)) {
                continue;
            }
            cqe->qpn = VIRTIO_RDMA_CQE_QPN_NONE;
            virtio_rdma_codec_set_cqe_qpn(cqe->bytes, cqe->qpn);
        }
        if (i != n) {
            *virtio_rdma_cq_backlog_at(cq, n) = *cqe;
        }
        n++;
    }
    set_count(cq, n);
}
