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

/* Completions that the first backlog of a CQ has room for. */
#define MIN_BACKLOG_ROOM 64

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
    return &cq->backlog[(cq->backlog_head + i) % cq->backlog_room];
}

/* False without memory: the guest chooses how much it is. */
static bool backlog_set_room(VirtIORdmaCq *cq, uint32_t room)
{
    VirtIORdmaCqe *backlog = room ? g_try_new(VirtIORdmaCqe, room) : NULL;

    if (room && !backlog) {
        return false;
    }
    for (uint32_t i = 0; i < cq->n_backlog; i++) {
        backlog[i] = *backlog_at(cq, i);
    }
    g_free(cq->backlog);
    cq->backlog = backlog;
    cq->backlog_head = 0;
    cq->backlog_room = room;
    return true;
}

bool virtio_rdma_cq_backlog_add(VirtIORdmaCq *cq, const VirtIORdmaCqe *cqe)
{
    if (cq->n_backlog >= cq->cqe) {
        return false;
    }
    if (cq->n_backlog == cq->backlog_room &&
        !backlog_set_room(cq, MIN(MAX(2 * cq->backlog_room, MIN_BACKLOG_ROOM),
                                  MAX(cq->cqe, cq->n_backlog + 1)))) {
        return false;
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
    cq->backlog_head = (cq->backlog_head + 1) % cq->backlog_room;
    cq->n_backlog--;
    if (!cq->n_backlog) {
        backlog_set_room(cq, 0);
    }
}

static void backlog_drop(VirtIORdmaCq *cq)
{
    cq->n_backlog = 0;
    backlog_set_room(cq, 0);
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
    cq->n_backlog = n;
    if (!n) {
        backlog_set_room(cq, 0);
    }
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
    backlog_drop(cq);
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
