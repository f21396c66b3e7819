/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues: virtqueues whose events name direct CQs with completions
 *
 * When the backend is left, the device checks once for each CQ that got
 * completions whether the CQ is armed. So a batch of completions has one event
 * and one interrupt.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/iov.h"
#include "trace.h"
#include "queue.h"

void virtio_rdma_eq_attach(VirtIORdmaCq *cq, VirtIORdmaCq *eq)
{
    cq->eq = eq;
    cq->eqn = eq->core.cqn;
    eq->core.users++;
}

static void unschedule(VirtIORdma *s, VirtIORdmaCq *eq)
{
    if (QTAILQ_IN_USE(eq, next_eq)) {
        QTAILQ_REMOVE(&s->sched_eqs, eq, next_eq);
    }
}

static void drop_event(VirtIORdmaCq *cq)
{
    if (cq->event_waits) {
        cq->event_waits = false;
        QTAILQ_REMOVE(&cq->eq->events, cq, next_event);
    }
}

void virtio_rdma_eq_detach(VirtIORdma *s, VirtIORdmaCq *cq)
{
    if (QTAILQ_IN_USE(cq, next_completed)) {
        QTAILQ_REMOVE(&s->completed_cqs, cq, next_completed);
    }
    unschedule(s, cq);
    if (cq->eq) {
        drop_event(cq);
        cq->eq->core.users--;
        cq->eq = NULL;
    }
}

void virtio_rdma_eq_queue_event(VirtIORdmaCq *cq)
{
    if (!cq->event_waits) {
        cq->event_waits = true;
        QTAILQ_INSERT_TAIL(&cq->eq->events, cq, next_event);
    }
}

/* Write an event. False if there is no buffer, or the event queue fails. */
static bool push_event(VirtIORdma *s, VirtIORdmaCq *eq, uint32_t cqn,
                       uint32_t *budget)
{
    g_autofree VirtQueueElement *elem = NULL;
    struct virtio_rdma_cqn event = { .cqn = cpu_to_le32(cqn) };

    if (!virtio_rdma_cq_pop(s, eq, sizeof(event), budget, &elem)) {
        rdma_hca_cq_enter_error(&s->hca, &eq->core);
        return false;
    }
    if (!elem) {
        return false;
    }
    iov_from_buf(elem->in_sg, elem->in_num, 0, &event, sizeof(event));
    virtqueue_push(eq->vq, elem, sizeof(event));
    return true;
}

/* Write pending events while there are buffers and budget. */
static void run(VirtIORdma *s, VirtIORdmaCq *eq, uint32_t *budget)
{
    bool waiting = false;
    bool pushed = false;
    VirtIORdmaCq *cq;

    while (*budget && (cq = QTAILQ_FIRST(&eq->events))) {
        if (push_event(s, eq, cq->core.cqn, budget)) {
            trace_virtio_rdma_cq_notify(s, cq->core.cqn);
            drop_event(cq);
            pushed = true;
            waiting = false;
        } else if (!waiting && !eq->core.error) {
            /* Try once more: earlier buffers came without a notification. */
            virtio_queue_set_notification(eq->vq, 1);
            waiting = true;
        } else {
            break;
        }
    }
    if (!waiting) {
        virtio_queue_set_notification(eq->vq, 0);
    }
    if (!*budget && !QTAILQ_EMPTY(&eq->events)) {
        virtio_rdma_schedule(s, &s->sched_cqs);
    }
    if (pushed) {
        rdma_vq_notify(&s->notify, eq->vq);
    }
}

static uint32_t max_cqe(VirtIORdma *s)
{
    return VIRTQUEUE_MAX_SIZE;
}

static bool flush(VirtIORdma *s, VirtIORdmaCq *eq, uint32_t *budget)
{
    uint32_t slice = MIN(*budget, RDMA_QUEUE_BUDGET);
    uint32_t left = slice;

    run(s, eq, &left);
    *budget -= slice - left;
    return true;
}

static void drop(RdmaHca *hca, RdmaHcaCq *eq)
{
    VirtIORdmaCq *cq, *next;

    QTAILQ_FOREACH_SAFE(cq, &virtio_rdma_cq(eq)->events, next_event, next) {
        drop_event(cq);
    }
}

/* Completions and commands for CQs do not reach event queues. */
const VirtIORdmaCqOps virtio_rdma_eq_ops = {
    .core.drop = drop,
    .core.destroyed = virtio_rdma_cq_abandon_vq,
    .max_cqe = max_cqe,
    .flush = flush,
};

void virtio_rdma_eq_completed(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited)
{
    if (!cq->eq) {
        return;
    }
    cq->solicited |= solicited;
    if (!QTAILQ_IN_USE(cq, next_completed)) {
        QTAILQ_INSERT_TAIL(&s->completed_cqs, cq, next_completed);
    }
}

static void fire_if_armed(VirtIORdma *s, VirtIORdmaCq *cq)
{
    VirtIORdmaCq *eq = cq->eq;
    bool solicited = cq->solicited;
    /* Enough for more than one event, so that fewer events wait */
    uint32_t budget = RDMA_QUEUE_BUDGET / 8;

    cq->solicited = false;
    if (cq->core.error || eq->core.error || !virtio_rdma_active(s) ||
        !virtio_rdma_cq_ops(cq)->take_arm(s, cq, solicited)) {
        return;
    }
    virtio_rdma_eq_queue_event(cq);
    if (virtio_rdma_may_use_vqs(s)) {
        run(s, eq, &budget);
    } else if (!QTAILQ_IN_USE(eq, next_eq)) {
        QTAILQ_INSERT_TAIL(&s->sched_eqs, eq, next_eq);
        rdma_hca_bh_schedule(&s->hca);
    }
}

void virtio_rdma_eqs_run(VirtIORdma *s)
{
    uint32_t budget = RDMA_TURN_BUDGET;
    VirtIORdmaCq *eq;

    while (budget && (eq = QTAILQ_FIRST(&s->sched_eqs))) {
        unschedule(s, eq);
        if (!eq->core.error) {
            run(s, eq, &budget);
        }
    }
    if (!QTAILQ_EMPTY(&s->sched_eqs)) {
        rdma_hca_bh_schedule(&s->hca);
    }
}

void virtio_rdma_eqs_flush(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaCq *cq;

    if (!QTAILQ_EMPTY(&s->completed_cqs)) {
        /*
         * Pairs with the driver's barrier between arming and polling for CQEs:
         * either the driver sees the CQEs, or the device sees the arm request.
         */
        smp_mb();
    }
    while ((cq = QTAILQ_FIRST(&s->completed_cqs))) {
        QTAILQ_REMOVE(&s->completed_cqs, cq, next_completed);
        fire_if_armed(s, cq);
    }
    if (virtio_rdma_may_use_vqs(s)) {
        rdma_vq_notify_flush(&s->notify, &s->hca, VIRTIO_DEVICE(s));
        if (unlikely(s->parent_obj.broken && hca->running)) {
            rdma_hca_bh_schedule(hca);
        }
    }
}
