/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the device does when the driver kicks a virtqueue, and what its bottom
 * half does.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
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

/* @alone: see virtio_rdma_wq_ring(). */
static void kick(VirtIORdma *s, RdmaHcaWq *wq, bool alone)
{
    if (wq->kind == RDMA_SQ) {
        virtio_rdma_wq_ring(s, wq, alone);
    } else if (wq->kind == RDMA_SRQ && !virtio_rdma_wq_check(s, wq)) {
        /* Wrong counters are an error now, not with the next message. */
        return;
    } else {
        virtio_rdma_wq_wake(s, wq);
    }
    rdma_backend_kick(s->hca.backend, wq->kind, wq->id);
}

static void kick_or_fail_qp(VirtIORdma *s, RdmaHcaQp *qp)
{
    if (unlikely(qp->sq.broken || qp->rq.broken || qp->fault.fatal)) {
        qp->fault.fatal = false;
        virtio_rdma_qp_fail(s, qp);
    }
    if (!qp->srq) {
        kick(s, &qp->rq, false);
    }
    kick(s, &qp->sq, false);
}

static void kick_or_fail_srq(VirtIORdma *s, RdmaHcaSrq *srq)
{
    if (unlikely(srq->wq.broken)) {
        virtio_rdma_srq_fail(s, srq);
    } else {
        kick(s, &srq->wq, false);
    }
}

/*
 * Write the backlog of @cq, or events. If a CQ fails in that, so do its QPs.
 */
static void flush_cq(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget)
{
    if (!cq->core.error && !virtio_rdma_cq_flush(s, cq, budget)) {
        virtio_rdma_cq_fail(s, &cq->core);
    }
}

/*
 * Also CQs without a backlog, to turn their notifications off. The next turn
 * begins where this one ended.
 */
static void flush_cqs(VirtIORdma *s)
{
    uint32_t budget = RDMA_TURN_BUDGET;
    uint32_t n = s->next_flush;

    s->sched_cqs = false;
    for (uint32_t left = s->hca.cqs.count; left; left--) {
        RdmaHcaCq *cq;

        if (!budget) {
            virtio_rdma_cqs_schedule(s);
            break;
        }
        cq = rdma_hca_table_next(&s->hca.cqs, &n);
        if (!cq) {
            n = s->hca.cqs.first;
            cq = rdma_hca_table_next(&s->hca.cqs, &n);
        }
        n++;
        flush_cq(s, virtio_rdma_cq(cq), &budget);
    }
    s->next_flush = n;
}

static void restore_order(VirtIORdma *s)
{
    RdmaHcaQp *qp;

    s->restore_order = false;
    if (!virtio_rdma_has(s, VIRTIO_F_IN_ORDER)) {
        return;
    }
    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        virtio_rdma_wq_restore_order(s, &qp->sq);
        if (!qp->srq) {
            virtio_rdma_wq_restore_order(s, &qp->rq);
        }
    }
}

void virtio_rdma_port_changed(void *opaque)
{
    VirtIORdma *s = opaque;
    RdmaPortAttr port = {};

    if (s->hca.unrealizing) {
        return;
    }
    s->hca.port_changed = !VIRTIO_DEVICE(s)->vm_running;
    if (s->hca.port_changed) {
        return;
    }
    s->hca.bc->query_port(s->hca.backend, &port);
    trace_virtio_rdma_port_changed(s, port.state, port.phys_mtu);
    virtio_rdma_config_update(s);
    virtio_notify_config(VIRTIO_DEVICE(s));
    rdma_hca_port_check(&s->hca);
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

    if (vdev->vm_running && s->hca.port_changed) {
        virtio_rdma_port_changed(s);
    }
    if (running && s->restore_order) {
        restore_order(s);
        running = !vdev->broken;
        ready = running;
    }
    changed = running != s->hca.running;
    if (changed) {
        s->hca.running = running;
        trace_virtio_rdma_running(s, running);
        s->hca.bc->set_run_state(s->hca.backend, running ? RDMA_RUN_RUNNING
                                               : RDMA_RUN_STOPPED);
    }
    if (running) {
        s->hca.may_dma = true;
    } else if (!ready && s->hca.may_dma) {
        /* Maybe not before the VM has been stopped for a while */
        s->hca.may_dma = false;
        s->hca.bc->set_run_state(s->hca.backend, RDMA_RUN_NO_DMA);
    }
    return changed;
}

/* What is of virtqueues, but for work queues */
static void run_virtqueues(VirtIORdma *s)
{
    RdmaHcaSrq *srq;
    RdmaHcaQp *qp;

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
        RDMA_HCA_FOREACH(&s->hca.srqs, n, srq) {
            rdma_hca_srq_schedule(&s->hca, srq);
        }
        virtio_rdma_events_run(s);
        RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
            rdma_hca_qp_schedule(&s->hca, qp);
        }
    }
    virtio_rdma_ctrl_run(s);
}

/* The queue is gone if there is none with this bit of RdmaHca.kicks. */
static void run_kick(VirtIORdma *s, uint32_t bit)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, bit);
    RdmaHcaSrq *srq = bit < s->hca.qps.end ? NULL :
                         rdma_hca_table_get(&s->hca.srqs, bit - s->hca.qps.end);

    clear_bit_atomic(bit, s->hca.kicks);
    if (qp) {
        kick_or_fail_qp(s, qp);
    } else if (srq) {
        kick_or_fail_srq(s, srq);
    }
}

/* Those of bits @from to @to - 1. False: the next turn goes on there. */
static bool run_kicks_of(VirtIORdma *s, uint32_t from, uint32_t to,
                         uint32_t *budget)
{
    for (uint32_t bit = find_next_bit(s->hca.kicks, to, from); bit < to;
         bit = find_next_bit(s->hca.kicks, to, bit + 1)) {
        if (!*budget) {
            s->hca.next_kick = bit;
            return false;
        }
        run_kick(s, bit);
        rdma_work_pay(budget, RDMA_WORK_LOOK);
        if (rdma_backend_wanted(s->hca.backend)) {
            *budget = 0;
        }
    }
    return true;
}

/* Kick queues, each once at most. */
static void run_kicks(VirtIORdma *s)
{
    uint32_t end = s->hca.qps.end + s->hca.srqs.end;
    uint32_t budget = RDMA_TURN_BUDGET;
    uint32_t from = s->hca.next_kick;

    if (!qatomic_xchg(&s->hca.any_kicks, false)) {
        return;
    }
    if (!run_kicks_of(s, from, end, &budget) ||
        !run_kicks_of(s, 0, from, &budget)) {
        qatomic_set(&s->hca.any_kicks, true);
        rdma_hca_work_schedule(&s->hca);
    }
}

/* Serve work queues: with an iothread they have no virtqueues. */
static void run_queues(VirtIORdma *s)
{
    uint32_t mark_budget = RDMA_TURN_BUDGET;

    virtio_rdma_shadows_run(s, &mark_budget);
    run_kicks(s);
}

/* What faults have put off, and is due now */
static void run_faults(VirtIORdma *s)
{
    RdmaHcaCq *failed;

    while (virtio_rdma_active(s) && (failed = rdma_hca_hold_run(&s->hca))) {
        virtio_rdma_cq_fail(s, failed);
    }
    rdma_hca_faults_expire(&s->hca);
    if (s->hca.faults->command_until &&
        rdma_hca_fault_is_due(s->hca.faults->command_until)) {
        s->ctrl_waiting = false;
    }
}

void virtio_rdma_bh(void *opaque)
{
    VirtIORdma *s = opaque;

    if (s->hca.unrealizing) {
        return;
    }
    if (!s->hca.ctx) {
        /* Who has used up the budget of a turn has scheduled this. */
        s->hca.kick_budget = RDMA_TURN_BUDGET;
    }
    if (rdma_hca_busy(&s->hca)) {
        /* Another device waits in an event loop of its own */
        rdma_backend_put_off(s->hca.backend, RDMA_HCA_PENDING_BH);
        return;
    }
    rdma_hca_enter(&s->hca);
    rdma_hca_error_tell(&s->hca);
    virtio_rdma_running_update(s, VIRTIO_DEVICE(s)->status);
    if (unlikely(s->hca.faults)) {
        run_faults(s);
    }
    if (virtio_rdma_active(s)) {
        run_virtqueues(s);
        if (!s->hca.ctx) {
            run_queues(s);
        }
    }
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_work_bh(void *opaque)
{
    VirtIORdma *s = opaque;

    if (!rdma_backend_try_enter(s->hca.backend, RDMA_HCA_PENDING_WORK)) {
        return;
    }
    s->hca.kick_budget = RDMA_TURN_BUDGET;
    if (virtio_rdma_active(s)) {
        run_queues(s);
    }
    rdma_hca_leave(&s->hca);
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
    if (rdma_hca_busy(&s->hca)) {
        rdma_backend_put_off(s->hca.backend, RDMA_HCA_PENDING_BH);
        return;
    }
    rdma_hca_enter(&s->hca);
    virtio_rdma_ctrl_run(s);
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_handle_cq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaCq *cq = virtio_rdma_cq_of_vq(s, virtio_get_queue_index(vq));

    if (!cq || !virtio_rdma_active(s)) {
        return;
    }
    if (rdma_hca_busy(&s->hca)) {
        virtio_rdma_cqs_schedule(s);
        return;
    }
    rdma_hca_enter(&s->hca);
    if (s->hca.kick_budget) {
        flush_cq(s, cq, &s->hca.kick_budget);
    } else {
        virtio_rdma_cqs_schedule(s);
    }
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_handle_event(VirtIODevice *vdev, VirtQueue *vq)
{
    virtio_rdma_events_run(VIRTIO_RDMA(vdev));
}

/* Serve a doorbell at once, unless that is the bottom half's? */
static bool enter_to_kick(VirtIORdma *s)
{
    if (rdma_hca_busy(&s->hca) || !rdma_backend_enter_if_free(s->hca.backend)) {
        return false;
    }
    if (s->hca.kick_budget) {
        return true;
    }
    rdma_hca_leave(&s->hca);
    return false;
}

static void ring(VirtIORdma *s, RdmaHcaWq *wq)
{
    if (!enter_to_kick(s)) {
        rdma_hca_wq_schedule(&s->hca, wq);
        return;
    }
    rdma_work_pay(&s->hca.kick_budget, RDMA_WORK_LOOK);
    kick(s, wq, false);
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_handle_wq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    RdmaHcaWq *wq = virtio_rdma_wq_of_vq(s, virtio_get_queue_index(vq));

    if (wq && virtio_rdma_active(s)) {
        ring(s, wq);
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
 * The first sends at once, as the main loop may sleep; those that follow in a
 * row are its work, beside the vCPU.
 */
static void ring_direct_qp(VirtIORdma *s, VirtIORdmaQp *forms)
{
    RdmaHcaQp *qp = &forms->core;

    if (!enter_to_kick(s)) {
        rdma_hca_qp_schedule(&s->hca, qp);
        return;
    }
    if (in_a_row(&s->shadows[forms->direct.doorbell].rung_at)) {
        virtio_rdma_shadow_wake(s, forms->direct.doorbell);
    }
    rdma_work_pay(&s->hca.kick_budget, RDMA_WORK_LOOK);
    if (!qp->srq && virtio_rdma_wq_wake(s, &qp->rq)) {
        rdma_backend_kick(s->hca.backend, RDMA_RQ, qp->init.qpn);
    }
    kick(s, &qp->sq, !in_a_row(&forms->rung_at) && !qp->sq.count);
    /* What it writes may be the end of the QP, and of the device. */
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_doorbell(VirtIORdma *s, uint32_t page, uint32_t value)
{
    uint32_t id = value & ~VIRTIO_RDMA_DOORBELL_SRQ;
    bool is_srq = value & VIRTIO_RDMA_DOORBELL_SRQ;
    /* A process that rings for a queue of another one has no effect. */
    VirtIORdmaQp *qp = is_srq ? NULL : virtio_rdma_direct_qp_at(s, page, id);
    VirtIORdmaSrq *srq = is_srq ? virtio_rdma_direct_srq_at(s, page, id)
                                : NULL;

    if (!virtio_rdma_active(s) || (!qp && !srq)) {
        return;
    }
    trace_virtio_rdma_doorbell(s, page, value);
    if (qp) {
        ring_direct_qp(s, qp);
    } else {
        ring(s, &srq->core.wq);
    }
}
