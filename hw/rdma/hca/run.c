/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kicks and bottom halves: serve work queues that have work, and fail broken
 * ones
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/main-loop.h"
#include "trace.h"
#include "int.h"

void rdma_hca_kick(RdmaHca *hca, RdmaHcaWq *wq)
{
    if (wq->kind == RDMA_SQ) {
        if (wq->ops->ring) {
            wq->ops->ring(hca, wq);
        }
    } else if (wq->kind == RDMA_SRQ && !rdma_hca_wq_check(hca, wq)) {
        /* Wrong counters fail an SRQ at once, not at the next message. */
        return;
    } else {
        wq->ops->wake(hca, wq);
    }
    rdma_backend_kick(hca->backend, wq->kind, wq->id);
}

void rdma_hca_kick_if_asleep(RdmaHca *hca, RdmaHcaWq *rq)
{
    if (rq->ops->wake(hca, rq)) {
        rdma_backend_kick(hca->backend, rq->kind, rq->id);
    }
}

static bool qp_has_failed(const RdmaHcaQp *qp)
{
    return qp->sq.broken || qp->rq.broken || qp->fault.fatal ||
           qp->send_cq->error || qp->recv_cq->error ||
           (qp->srq && qp->srq->error);
}

static void kick_or_fail_qp(RdmaHca *hca, RdmaHcaQp *qp, uint32_t *budget)
{
    if (unlikely(qp_has_failed(qp))) {
        qp->fault.fatal = false;
        rdma_hca_qp_fail(hca, qp);
        rdma_work_pay(budget, RDMA_WORK_WR);
    }
    if (!qp->srq) {
        rdma_hca_kick(hca, &qp->rq);
    }
    rdma_hca_kick(hca, &qp->sq);
}

static void kick_or_fail_srq(RdmaHca *hca, RdmaHcaSrq *srq, uint32_t *budget)
{
    if (unlikely(srq->wq.broken)) {
        if (!srq->error) {
            /* Pay for the search of its QPs. */
            rdma_work_pay(budget, hca->qps.count * RDMA_WORK_ENTRY);
        }
        rdma_hca_srq_fail(hca, srq);
    } else {
        rdma_hca_kick(hca, &srq->wq);
    }
}

/* Serve the QP or SRQ of bit @bit of RdmaHca.kicks, unless it is gone. */
static void run_kick(RdmaHca *hca, uint32_t bit, uint32_t *budget)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, bit);
    RdmaHcaSrq *srq = bit < hca->qps.end ? NULL :
                      rdma_hca_table_get(&hca->srqs, bit - hca->qps.end);

    clear_bit_atomic(bit, hca->kicks);
    if (qp) {
        kick_or_fail_qp(hca, qp, budget);
    } else if (srq) {
        kick_or_fail_srq(hca, srq, budget);
    }
}

/* Serve bits @from to @to - 1. False: the next turn goes on at next_kick. */
static bool run_kicks_of(RdmaHca *hca, uint32_t from, uint32_t to,
                         uint32_t *budget)
{
    for (uint32_t bit = find_next_bit(hca->kicks, to, from); bit < to;
         bit = find_next_bit(hca->kicks, to, bit + 1)) {
        if (!*budget) {
            hca->next_kick = bit;
            return false;
        }
        run_kick(hca, bit, budget);
        rdma_work_pay(budget, RDMA_WORK_POLL);
        if (rdma_backend_wanted(hca->backend)) {
            *budget = 0;
        }
    }
    return true;
}

/* Serve all scheduled queues, each at most once. */
static void run_kicks(RdmaHca *hca)
{
    uint32_t end = hca->qps.end + hca->srqs.end;
    uint32_t budget = RDMA_TURN_BUDGET;
    uint32_t from = hca->next_kick;

    if (!qatomic_xchg(&hca->any_kicks, false)) {
        return;
    }
    if (!run_kicks_of(hca, from, end, &budget) ||
        !run_kicks_of(hca, 0, from, &budget)) {
        qatomic_set(&hca->any_kicks, true);
        rdma_hca_work_schedule(hca);
    }
}

bool rdma_hca_enter_to_kick(RdmaHca *hca)
{
    if (rdma_hca_busy(hca) || !rdma_backend_enter_if_free(hca->backend)) {
        return false;
    }
    if (hca->kick_budget) {
        return true;
    }
    rdma_backend_leave(hca->backend);
    return false;
}

void rdma_hca_ring(RdmaHca *hca, RdmaHcaWq *wq)
{
    if (!rdma_hca_enter_to_kick(hca)) {
        rdma_hca_wq_schedule(hca, wq);
        return;
    }
    rdma_work_pay(&hca->kick_budget, RDMA_WORK_POLL);
    rdma_hca_kick(hca, wq);
    rdma_hca_leave(hca);
}

void rdma_hca_kick_all(RdmaHca *hca)
{
    RdmaHcaSrq *srq;
    RdmaHcaQp *qp;

    RDMA_HCA_FOREACH(&hca->srqs, n, srq) {
        rdma_hca_wq_schedule(hca, &srq->wq);
    }
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        rdma_hca_qp_schedule(hca, qp);
    }
}

bool rdma_hca_set_running(RdmaHca *hca, bool running, bool ready)
{
    bool changed = running != hca->running;

    if (hca->port_changed) {
        rdma_hca_port_changed(hca);
    }
    if (changed) {
        hca->running = running;
        trace_rdma_hca_running(hca->owner, running);
        hca->bc->set_run_state(hca->backend, running ? RDMA_RUN_RUNNING
                                                     : RDMA_RUN_STOPPED);
    }
    if (running) {
        hca->may_dma = true;
    } else if (!ready && hca->may_dma) {
        /*
         * In a stopped VM @running is false already, so test @may_dma, not
         * @changed.
         */
        hca->may_dma = false;
        hca->bc->set_run_state(hca->backend, RDMA_RUN_NO_DMA);
    }
    return changed;
}

/* Continue work that faults have delayed and that is due. */
static void run_faults(RdmaHca *hca)
{
    RdmaHcaCq *failed;

    while (rdma_hca_is_active(hca) && (failed = rdma_hca_hold_run(hca))) {
        rdma_hca_cq_fail(hca, failed);
    }
    rdma_hca_faults_expire(hca);
    if (hca->faults->command_until &&
        rdma_hca_fault_is_due(hca->faults->command_until)) {
        hca->ops->resume(hca);
    }
}

/* Serve work queues. With an iothread these are direct queues only. */
static void run_queues(RdmaHca *hca)
{
    if (hca->ops->poll_doorbells) {
        hca->ops->poll_doorbells(hca);
    }
    run_kicks(hca);
}

static void hca_bh(void *opaque)
{
    RdmaHca *hca = opaque;

    if (hca->unrealizing) {
        return;
    }
    if (!hca->ctx) {
        /* A doorbell that found no budget left may have scheduled this. */
        hca->kick_budget = RDMA_TURN_BUDGET;
    }
    /* Busy: a caller on the stack runs a nested event loop. */
    if (!rdma_hca_enter_or_put_off(hca, RDMA_HCA_PENDING_BH)) {
        return;
    }
    rdma_hca_error_report(hca);
    hca->ops->update_running(hca);
    if (unlikely(hca->faults)) {
        run_faults(hca);
    }
    if (rdma_hca_is_active(hca)) {
        hca->ops->serve(hca);
        if (!hca->ctx) {
            run_queues(hca);
        }
    }
    rdma_hca_leave(hca);
}

/* The bottom half of work queues, in the iothread */
static void hca_work_bh(void *opaque)
{
    RdmaHca *hca = opaque;

    if (!rdma_backend_try_enter(hca->backend, RDMA_HCA_PENDING_WORK)) {
        return;
    }
    hca->kick_budget = RDMA_TURN_BUDGET;
    if (rdma_hca_is_active(hca)) {
        run_queues(hca);
    }
    rdma_hca_leave(hca);
}

void rdma_hca_work_run(RdmaHca *hca)
{
    if (hca->ctx) {
        hca_work_bh(hca);
    } else {
        hca_bh(hca);
    }
}

void rdma_hca_bhs_init(RdmaHca *hca)
{
    hca->kicks = bitmap_new(hca->qps.end + hca->srqs.end);
    hca->kick_budget = RDMA_TURN_BUDGET;
    hca->bh = qemu_bh_new_guarded(hca_bh, hca, &hca->dev->mem_reentrancy_guard);
    if (hca->ctx) {
        hca->work_bh = aio_bh_new(hca->ctx, hca_work_bh, hca);
    }
}

void rdma_hca_bhs_reset(RdmaHca *hca)
{
    hca->any_kicks = false;
    bitmap_zero(hca->kicks, hca->qps.end + hca->srqs.end);
    qemu_bh_cancel(hca->bh);
    if (hca->error_unreported) {
        rdma_hca_bh_schedule(hca);
    }
}

void rdma_hca_bhs_free(RdmaHca *hca)
{
    g_clear_pointer(&hca->kicks, g_free);
    g_clear_pointer(&hca->bh, qemu_bh_delete);
}
