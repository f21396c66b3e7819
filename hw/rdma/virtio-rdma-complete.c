/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions: written to a slot or a buffer of the driver, or added to the
 * backlog of their CQ while there is no buffer.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-queue.h"

/* A backlog grows by so many completions, without a copy of the others. */
#define BACKLOG_BLOCK 64

/* What one completion may spend on those that wait, besides itself. */
#define COMPLETE_BUDGET 256

typedef enum PushResult {
    PUSHED,
    NO_BUFFER,
    CQ_FAILED,
} PushResult;

static size_t cqe_size(VirtIORdma *s)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_CQE_EX) ? VIRTIO_RDMA_CQE_EX_SIZE
                                                    : VIRTIO_RDMA_CQE_SIZE;
}

/* The backlog, oldest first */

static VirtIORdmaCqe *backlog_at(VirtIORdmaCq *cq, uint32_t i)
{
    VirtIORdmaCqe *block;

    i += cq->backlog_head;
    block = g_ptr_array_index(cq->backlog, i / BACKLOG_BLOCK);
    return &block[i % BACKLOG_BLOCK];
}

/* Shorten the backlog to @n. */
static void backlog_set_count(VirtIORdmaCq *cq, uint32_t n)
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

    if (cq->n_backlog >= cq->cqe) {
        return false;
    }
    if (!cq->backlog) {
        cq->backlog = g_ptr_array_new_with_free_func(g_free);
    }
    if (cq->backlog_head + cq->n_backlog ==
        cq->backlog->len * BACKLOG_BLOCK) {
        /* The guest chooses how much memory that is. */
        block = g_try_new(VirtIORdmaCqe, BACKLOG_BLOCK);
        if (!block) {
            return false;
        }
        g_ptr_array_add(cq->backlog, block);
    }
    cq->n_backlog++;
    *backlog_at(cq, cq->n_backlog - 1) = *cqe;
    return true;
}

const VirtIORdmaCqe *virtio_rdma_cq_backlog_at(VirtIORdmaCq *cq, uint32_t i)
{
    return backlog_at(cq, i);
}

static void backlog_take(VirtIORdmaCq *cq)
{
    if (++cq->backlog_head == BACKLOG_BLOCK) {
        g_ptr_array_remove_index(cq->backlog, 0);
        cq->backlog_head = 0;
    }
    backlog_set_count(cq, cq->n_backlog - 1);
}

void virtio_rdma_cq_forget_qp(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t qpn)
{
    uint32_t n = 0;

    virtio_rdma_pay(&s->ctrl_budget, cq->n_backlog);
    for (uint32_t i = 0; i < cq->n_backlog; i++) {
        VirtIORdmaCqe *cqe = backlog_at(cq, i);

        if (cqe->qpn == qpn) {
            continue;
        }
        if (i != n) {
            *backlog_at(cq, n) = *cqe;
        }
        n++;
    }
    backlog_set_count(cq, n);
}

/* The guest's ring */

static PushResult push_cqe(VirtIORdma *s, VirtIORdmaCq *cq,
                           const VirtIORdmaCqe *cqe, uint32_t *budget)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    size_t size = cqe_size(s);
    size_t room;
    g_autofree VirtQueueElement *elem = NULL;

    if (virtio_rdma_ring_check(s, cq->vq, &cq->seen)) {
        elem = virtqueue_pop(cq->vq, sizeof(VirtQueueElement));
    }
    if (vdev->broken) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u: the device is "
                      "broken, see the error before\n", cq->cqn);
        return CQ_FAILED;
    }
    if (!elem) {
        return NO_BUFFER;
    }
    virtio_rdma_pay(budget, virtio_rdma_elem_cost(elem));
    virtio_rdma_charge_elem(s, elem);
    room = iov_size(elem->in_sg, elem->in_num);
    if (room < size) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u: a buffer has %zu "
                      "writable bytes, less than the %zu of a CQE\n",
                      cq->cqn, room, size);
        virtqueue_unpop(cq->vq, elem, 0);
        return CQ_FAILED;
    }
    virtio_rdma_codec_write_cqe(elem, cqe->bytes, size,
                                virtio_rdma_has(s,
                                                VIRTIO_RDMA_F_CQE_STATUS_LAST));
    virtqueue_push(cq->vq, elem, size);
    return PUSHED;
}

/* Is the driver notified of the completion just written, if it wants to be? */
static bool fires(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited)
{
    if (cq->arm == VIRTIO_RDMA_ARM_NONE ||
        (cq->arm == VIRTIO_RDMA_ARM_SOLICITED && !solicited)) {
        return false;
    }
    if (!virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_RING_ARM)) {
        cq->arm = VIRTIO_RDMA_ARM_NONE;
    }
    return true;
}

static void interrupt(VirtIORdma *s, VirtIORdmaCq *cq)
{
    trace_virtio_rdma_cq_notify(s, cq->cqn);
    virtio_rdma_vq_notify(s, cq->vq);
}

void virtio_rdma_cq_enter_error(VirtIORdma *s, VirtIORdmaCq *cq)
{
    if (cq->error) {
        return;
    }
    cq->error = true;
    backlog_set_count(cq, 0);
    trace_virtio_rdma_cq_error(s, cq->cqn);
    virtio_rdma_event_raise(s, RDMA_EVENT_CQ_ERR, cq->cqn);
}

bool virtio_rdma_cq_flush(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget)
{
    uint32_t slice = MIN(*budget, VIRTIO_RDMA_QUEUE_BUDGET);
    uint32_t left = slice;
    PushResult result = NO_BUFFER;
    bool waiting = false;
    bool fired = false;

    while (cq->n_backlog && left) {
        const VirtIORdmaCqe *cqe = backlog_at(cq, 0);

        result = push_cqe(s, cq, cqe, &left);
        if (result == PUSHED) {
            fired |= fires(s, cq, cqe->solicited);
            backlog_take(cq);
            waiting = false;
        } else if (result == NO_BUFFER && !waiting) {
            /* Look once more: of earlier buffers there is no notification. */
            virtio_queue_set_notification(cq->vq, 1);
            waiting = true;
        } else {
            break;
        }
    }
    *budget -= slice - left;
    if (fired) {
        interrupt(s, cq);
    }
    if (result == CQ_FAILED) {
        virtio_rdma_cq_enter_error(s, cq);
        return false;
    }
    if (!cq->n_backlog) {
        virtio_queue_set_notification(cq->vq, 0);
    } else if (!left) {
        virtio_rdma_cqs_schedule(s);
    }
    return true;
}

static void completed(VirtIORdma *s, const VirtIORdmaCq *cq,
                           const RdmaWc *wc)
{
    trace_virtio_rdma_cq_complete(s, cq->cqn, wc->qp_num, wc->wr_id,
                                  wc->status, wc->opcode, wc->byte_len);
}

static bool complete_direct(VirtIORdma *s, VirtIORdmaCq *cq, const RdmaWc *wc,
                            const VirtIORdmaCqe *cqe)
{
    if (!virtio_rdma_direct_cq_write(s, cq, cqe->bytes)) {
        virtio_rdma_cq_enter_error(s, cq);
        return false;
    }
    completed(s, cq, wc);
    virtio_rdma_eq_completed(s, cq, cqe->solicited);
    return true;
}

bool virtio_rdma_cq_complete(VirtIORdma *s, VirtIORdmaCq *cq,
                             const RdmaWc *wc, bool solicited)
{
    VirtIORdmaCqe cqe = {
        .qpn = wc->qp_num,
        .solicited = solicited || wc->status != RDMA_WC_SUCCESS,
    };
    uint32_t max_backlog =
        virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_DEEP) ? cq->cqe : 0;
    PushResult result = NO_BUFFER;
    /* More than one completion costs, so that the backlog becomes shorter */
    uint32_t budget = COMPLETE_BUDGET;

    if (cq->error || (cq->n_backlog && !virtio_rdma_cq_flush(s, cq, &budget))) {
        return false;
    }
    virtio_rdma_codec_put_cqe(cqe.bytes, wc,
                              virtio_rdma_has(s, VIRTIO_RDMA_F_CQE_EX));
    if (cq->pages) {
        return complete_direct(s, cq, wc, &cqe);
    }
    if (!cq->n_backlog) {
        result = push_cqe(s, cq, &cqe, &budget);
    }
    if (result == PUSHED) {
        completed(s, cq, wc);
        if (fires(s, cq, cqe.solicited)) {
            interrupt(s, cq);
        }
        return true;
    }
    if (result == NO_BUFFER && max_backlog &&
        virtio_rdma_cq_backlog_add(cq, &cqe)) {
        trace_virtio_rdma_cq_backlog(s, cq->cqn, wc->qp_num, wc->wr_id,
                                     wc->status, cq->n_backlog);
        return virtio_rdma_cq_flush(s, cq, &budget);
    }
    if (result == NO_BUFFER) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u overruns: no "
                      "buffer for a completion, and %u of %u in the backlog\n",
                      cq->cqn, cq->n_backlog, max_backlog);
    }
    virtio_rdma_cq_enter_error(s, cq);
    return false;
}
