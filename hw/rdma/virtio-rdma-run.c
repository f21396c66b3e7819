/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the device does when the driver kicks a virtqueue, and what its bottom
 * half does.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "trace.h"
#include "virtio-rdma-device.h"

/*
 * Doorbells that follow each other so fast are those of one who posts in a row.
 * Answers of peers take longer, but for those in this guest.
 */
#define RING_IN_A_ROW_NS (25 * SCALE_US)

/* Let the backend work on what was posted. */
static void run_backend(VirtIORdma *s, bool posted)
{
    if (posted) {
        s->bc->run(s->backend);
    }
}

/*
 * Tell the backend of sends. A direct queue that has had @rescan_after of them
 * when it is empty is looked at again in the next turn.
 */
static void kick(VirtIORdma *s, VirtIORdmaQp *qp, uint32_t rescan_after)
{
    qp->sq.slots.rescan_after = rescan_after;
    qp->sq.slots.rung = true;
    s->bc->kick(s->backend, qp->init.qpn);
}

static void run_qp(VirtIORdma *s, VirtIORdmaQp *qp, uint32_t *budget)
{
    if (unlikely(qp->fault.fatal)) {
        qp->fault.fatal = false;
        virtio_rdma_qp_fail(s, qp);
    }
    /* Before sends: a message may be for a QP of this device. */
    if (!qp->srq) {
        virtio_rdma_rq_run(s, qp, budget);
    }
    kick(s, qp, virtio_rdma_sq_rescan_threshold(s, qp));
    if (qp->broken) {
        virtio_rdma_qp_fail(s, qp);
    }
}

/*
 * Write the backlog of @cq, or events. If a CQ fails in that, so do its QPs.
 */
static void flush_cq(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget)
{
    if (cq->error || !cq->vq) {
        return;
    }
    if (cq->is_eq) {
        virtio_rdma_eq_run(s, cq);
    } else if (!virtio_rdma_cq_flush(s, cq, budget)) {
        virtio_rdma_cq_fail(s, cq);
    }
}

/*
 * Also CQs without a backlog, to turn their notifications off. The next turn
 * begins where this one ended.
 */
static void flush_cqs(VirtIORdma *s)
{
    uint32_t budget = VIRTIO_RDMA_CQ_BUDGET;
    uint32_t n = s->next_flush;

    s->sched_cqs = false;
    for (uint32_t left = s->cqs.count; left; left--) {
        VirtIORdmaCq *cq;

        if (!budget) {
            virtio_rdma_cqs_schedule(s);
            break;
        }
        cq = virtio_rdma_table_next(&s->cqs, &n);
        if (!cq) {
            n = s->cqs.first;
            cq = virtio_rdma_table_next(&s->cqs, &n);
        }
        n++;
        flush_cq(s, cq, &budget);
    }
    s->next_flush = n;
}

static void restore_order(VirtIORdma *s)
{
    VirtIORdmaQp *qp;

    s->restore_order = false;
    if (!virtio_rdma_has(s, VIRTIO_F_IN_ORDER)) {
        return;
    }
    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        virtio_rdma_wq_restore_order(s, &qp->sq);
        if (!qp->srq) {
            virtio_rdma_wq_restore_order(s, &qp->rq);
        }
    }
}

/*
 * A driver may free its memory when the device is broken or may not be bus
 * master, and who comes after it when DRIVER_OK is not set any more: peers must
 * not write there.
 */
bool virtio_rdma_running_update(VirtIORdma *s, uint8_t status)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    bool ready = !virtio_device_disabled(vdev) &&
                 (status & VIRTIO_CONFIG_S_DRIVER_OK);
    bool running = vdev->vm_running && ready;
    bool changed;

    if (vdev->vm_running && s->port_put_off) {
        virtio_rdma_port_changed(s);
    }
    if (running && s->restore_order) {
        restore_order(s);
        running = !vdev->broken;
        ready = running;
    }
    changed = running != s->running;
    if (changed) {
        s->running = running;
        trace_virtio_rdma_running(s, running);
        s->bc->set_running(s->backend, running);
    }
    if (running) {
        s->may_dma = true;
    } else if (!ready && s->may_dma) {
        /* Maybe not before the VM has been stopped for a while */
        s->may_dma = false;
        if (s->bc->stop_dma) {
            s->bc->stop_dma(s->backend);
        }
    }
    return changed;
}

static bool run_srq(VirtIORdma *s, VirtIORdmaSrq *srq, uint32_t *budget)
{
    bool posted = virtio_rdma_srq_run(s, srq, budget);

    if (srq->broken) {
        virtio_rdma_srq_fail(s, srq);
    }
    return posted;
}

/* What is of virtqueues, but for work queues */
static void run_virtqueues(VirtIORdma *s)
{
    VirtIORdmaSrq *srq;
    VirtIORdmaQp *qp;

    if (s->sched_all || s->sched_cqs) {
        flush_cqs(s);
    }
    virtio_rdma_eqs_run(s);
    if (s->sched_events) {
        s->sched_events = false;
        virtio_rdma_events_run(s);
    }
    if (s->sched_all) {
        s->sched_all = false;
        VIRTIO_RDMA_TABLE_FOREACH(&s->srqs, n, srq) {
            virtio_rdma_srq_schedule(s, srq);
        }
        virtio_rdma_events_run(s);
        VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
            virtio_rdma_qp_schedule(s, qp);
        }
    }
    virtio_rdma_ctrl_run(s);
}

/* What is of work queues: with an iothread they have no virtqueues. */
static void run_queues(VirtIORdma *s)
{
    VirtIORdmaSrq *srq, *last_srq;
    VirtIORdmaQp *qp, *last_qp;
    uint32_t mark_budget = VIRTIO_RDMA_MARK_BUDGET;
    uint32_t budget = VIRTIO_RDMA_WQ_BUDGET;
    bool posted = false;

    virtio_rdma_take_rung(s);
    virtio_rdma_shadows_run(s, &mark_budget);

    /*
     * What is scheduled from here on waits for the next run, and so does what
     * is over budget.
     */
    last_srq = QTAILQ_LAST(&s->sched_srqs);
    for (bool more = last_srq; more && budget;) {
        srq = QTAILQ_FIRST(&s->sched_srqs);
        more = srq != last_srq && !rdma_backend_wanted(s->backend);
        QTAILQ_REMOVE(&s->sched_srqs, srq, next);
        srq->scheduled = false;
        posted |= run_srq(s, srq, &budget);
    }
    last_qp = QTAILQ_LAST(&s->sched_qps);
    for (bool more = last_qp; more && budget;) {
        qp = QTAILQ_FIRST(&s->sched_qps);
        more = qp != last_qp && !rdma_backend_wanted(s->backend);
        QTAILQ_REMOVE(&s->sched_qps, qp, next);
        qp->scheduled = false;
        virtio_rdma_pay(&budget, VIRTIO_RDMA_COST_LOOK);
        run_qp(s, qp, &budget);
        posted = true;
    }
    if (!QTAILQ_EMPTY(&s->sched_srqs) || !QTAILQ_EMPTY(&s->sched_qps)) {
        virtio_rdma_work_schedule(s);
    }
    run_backend(s, posted);
}

/* What faults have put off, and is due now */
static void run_faults(VirtIORdma *s)
{
    VirtIORdmaCq *failed;

    while (virtio_rdma_active(s) && (failed = virtio_rdma_hold_run(s))) {
        virtio_rdma_cq_fail(s, failed);
    }
    virtio_rdma_faults_expire(s);
    if (s->faults->command_until &&
        virtio_rdma_fault_is_due(s->faults->command_until)) {
        s->ctrl_waiting = false;
    }
}

void virtio_rdma_bh(void *opaque)
{
    VirtIORdma *s = opaque;

    if (s->unrealizing) {
        return;
    }
    if (!s->ctx) {
        /* Who has used up the budget of a turn has scheduled this. */
        s->kick_budget = VIRTIO_RDMA_KICK_BUDGET;
    }
    if (virtio_rdma_busy(s)) {
        /* Another device waits in an event loop of its own */
        s->bh_put_off = true;
        return;
    }
    virtio_rdma_enter(s);
    virtio_rdma_error_tell(s);
    virtio_rdma_running_update(s, VIRTIO_DEVICE(s)->status);
    if (unlikely(s->faults)) {
        run_faults(s);
    }
    if (virtio_rdma_active(s)) {
        run_virtqueues(s);
        if (!s->ctx) {
            run_queues(s);
        }
    }
    virtio_rdma_leave(s);
}

void virtio_rdma_work_bh(void *opaque)
{
    VirtIORdma *s = opaque;

    if (!rdma_backend_try_enter(s->backend)) {
        return;
    }
    s->kick_budget = VIRTIO_RDMA_KICK_BUDGET;
    if (virtio_rdma_active(s)) {
        run_queues(s);
    }
    virtio_rdma_leave(s);
}

void virtio_rdma_handle_ctrl(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    if (!virtio_rdma_active(s)) {
        if (!(vdev->status & VIRTIO_CONFIG_S_DRIVER_OK)) {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: control commands "
                          "wait for DRIVER_OK\n");
        }
        return;
    }
    if (virtio_rdma_busy(s)) {
        s->bh_put_off = true;
        return;
    }
    virtio_rdma_enter(s);
    virtio_rdma_ctrl_run(s);
    virtio_rdma_leave(s);
}

void virtio_rdma_handle_cq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaCq *cq = virtio_rdma_cq_of_vq(s, virtio_get_queue_index(vq));

    if (!cq || !virtio_rdma_active(s)) {
        return;
    }
    if (virtio_rdma_busy(s)) {
        virtio_rdma_cqs_schedule(s);
        return;
    }
    virtio_rdma_enter(s);
    if (cq->is_eq ? QTAILQ_EMPTY(&cq->events) : !cq->n_backlog) {
        /* The driver gives buffers before they are needed. */
    } else if (s->kick_budget) {
        flush_cq(s, cq, &s->kick_budget);
    } else {
        virtio_rdma_cqs_schedule(s);
    }
    virtio_rdma_leave(s);
}

void virtio_rdma_handle_wq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaWq *wq = NULL;
    VirtIORdmaQp *qp = virtio_rdma_qp_of_vq(s, virtio_get_queue_index(vq),
                                            &wq);

    if (!qp || !virtio_rdma_active(s)) {
        return;
    }
    if (virtio_rdma_busy(s) || !s->kick_budget) {
        virtio_rdma_qp_schedule(s, qp);
        return;
    }
    virtio_rdma_enter(s);
    if (wq->kind == RDMA_SQ) {
        virtio_rdma_pay(&s->kick_budget, VIRTIO_RDMA_COST_LOOK);
        kick(s, qp, 1);
        run_backend(s, true);
    } else {
        run_backend(s, virtio_rdma_rq_run(s, qp, &s->kick_budget));
    }
    virtio_rdma_leave(s);
}

void virtio_rdma_handle_event(VirtIODevice *vdev, VirtQueue *vq)
{
    virtio_rdma_events_run(VIRTIO_RDMA(vdev));
}

/* Serve a doorbell at once, unless that is the bottom half's? */
static bool enter_to_kick(VirtIORdma *s)
{
    if (virtio_rdma_busy(s) || !rdma_backend_enter_if_free(s->backend)) {
        return false;
    }
    if (s->kick_budget) {
        return true;
    }
    virtio_rdma_leave(s);
    return false;
}

/* The driver says that there are WQEs. */
static void kick_srq(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    bool posted;

    if (!enter_to_kick(s)) {
        virtio_rdma_srq_ring(s, srq);
        return;
    }
    posted = virtio_rdma_srq_run(s, srq, &s->kick_budget);
    if (srq->broken) {
        virtio_rdma_srq_schedule(s, srq);
    }
    run_backend(s, posted);
    virtio_rdma_leave(s);
}

void virtio_rdma_handle_srq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaSrq *srq = virtio_rdma_srq_of_vq(s, virtio_get_queue_index(vq));

    if (srq && virtio_rdma_active(s)) {
        kick_srq(s, srq);
    }
}

/* It is rung now: was it a moment ago? */
static bool in_a_row(int64_t *rung_at)
{
    int64_t now = get_clock();
    int64_t before = *rung_at;

    *rung_at = now;
    return now - before < RING_IN_A_ROW_NS;
}

/*
 * The first sends at once, as the main loop may sleep; receives, and sends that
 * follow in a row, are its work, beside the vCPU. Sends go before receives so,
 * which is right only if the backend pulls these.
 */
static void kick_direct_qp(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaSlots *slots = &qp->sq.slots;
    uint32_t before = slots->taken;

    if (!s->limits.pulls_recv || !enter_to_kick(s)) {
        virtio_rdma_qp_ring(s, qp);
        return;
    }
    if (in_a_row(&s->shadows[qp->direct.doorbell].rung_at)) {
        virtio_rdma_shadow_wake(s, qp->direct.doorbell);
    }
    virtio_rdma_pay(&s->kick_budget, VIRTIO_RDMA_COST_LOOK);
    kick(s, qp, in_a_row(&qp->rung_at) || qp->sq.count ? 1 : UINT32_MAX);
    run_backend(s, true);
    if (slots->rung) {
        /* The backend asks for what is there when it can. */
        virtio_rdma_slots_wake(s, slots);
    }
    if (slots->taken == before || qp->broken) {
        virtio_rdma_qp_schedule(s, qp);
    }
    /* What it writes may be the end of the QP, and of the device. */
    virtio_rdma_leave(s);
}

void virtio_rdma_doorbell(VirtIORdma *s, uint32_t page, uint32_t value)
{
    bool is_srq = value & VIRTIO_RDMA_DOORBELL_SRQ;
    VirtIORdmaQp *qp = is_srq ? NULL : virtio_rdma_table_get(&s->qps, value);
    VirtIORdmaSrq *srq = is_srq
                         ? virtio_rdma_table_get(&s->srqs, value &
                                                 ~VIRTIO_RDMA_DOORBELL_SRQ)
                         : NULL;

    if (!virtio_rdma_active(s)) {
        return;
    }
    /* A process that rings for a queue of another one has no effect. */
    if (qp && qp->pages && qp->direct.doorbell == page) {
        trace_virtio_rdma_doorbell(s, page, value);
        kick_direct_qp(s, qp);
    } else if (srq && srq->pages && srq->direct.doorbell == page) {
        trace_virtio_rdma_doorbell(s, page, value);
        kick_srq(s, srq);
    }
}
