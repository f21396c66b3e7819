/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions that faults change or hold back.
 *
 * Completions of one work queue stay in order (IBTA 10.8.5): after one that is
 * held back, later ones wait, too. When the work queue is flushed, all of them
 * are due, because drivers wait for the flush to end. If no more can be held
 * back, the oldest one of the work queue is written.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "trace.h"
#include "int.h"

/* The most completions that are held back at a time */
#define MAX_HELD 16384

/* The work queue of a completion; NULL: its QP is gone */
static RdmaHcaWq *queue_of(RdmaHca *hca, const RdmaWc *wc)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, wc->qp_num);

    return !qp ? NULL : wc->opcode >= RDMA_WC_RECV ? &qp->rq : &qp->sq;
}

static void drop(RdmaHca *hca, RdmaHcaWq *wq, RdmaHcaHeld *held)
{
    RdmaHcaCq *cq = rdma_hca_cq_get(hca, held->cqn);

    if (cq) {
        cq->n_held--;
        cq->n_reordered -= held->reorder;
    }
    QTAILQ_REMOVE(&wq->held, held, next_of_queue);
    QTAILQ_REMOVE(&hca->faults->held, held, next);
    hca->faults->n_held--;
    g_free(held);
}

static void set_due(RdmaHca *hca, RdmaHcaHeld *held)
{
    RdmaHcaCq *cq = rdma_hca_cq_get(hca, held->cqn);

    if (cq) {
        cq->n_reordered -= held->reorder;
    }
    held->reorder = false;
    held->until = 0;
}

/*
 * Make the held completions of @wq due. There may be thousands, so
 * rdma_hca_hold_run() writes some of them in each turn.
 */
static void release_soon(RdmaHca *hca, RdmaHcaWq *wq)
{
    RdmaHcaHeld *held;

    QTAILQ_FOREACH_REVERSE(held, &wq->held, next_of_queue) {
        if (!held->until) {
            break;
        }
        set_due(hca, held);
    }
    rdma_hca_bh_schedule(hca);
}

/*
 * Completions of @wq are about to be written to @cq: completions of other
 * queues that were to come after them are due, and rdma_hca_hold_run() writes
 * these later. This walks all held completions, so call it once for a @wq, not
 * for each completion.
 */
static void release_reordered(RdmaHca *hca, RdmaHcaCq *cq, const RdmaHcaWq *wq)
{
    RdmaHcaHeld *held;

    if (!cq || !cq->n_reordered) {
        return;
    }
    QTAILQ_FOREACH(held, &hca->faults->held, next) {
        if (held->reorder && held->cqn == cq->cqn &&
            queue_of(hca, &held->wc) != wq) {
            release_soon(hca, queue_of(hca, &held->wc));
        }
    }
}

/*
 * Write a held completion, or drop it if its CQ is gone or in error. False if
 * the CQ enters its error state.
 */
static bool release(RdmaHca *hca, RdmaHcaHeld *held)
{
    RdmaHcaCq *cq = rdma_hca_cq_get(hca, held->cqn);
    RdmaWc wc = held->wc;
    bool solicited = held->solicited;

    drop(hca, queue_of(hca, &wc), held);
    trace_rdma_hca_hold_release(hca->owner, wc.qp_num, wc.wr_id, wc.opcode);
    return !cq || cq->error ||
           rdma_hca_cq_complete(hca, cq, &wc, solicited);
}

static void hold(RdmaHca *hca, RdmaHcaCq *cq, const RdmaHcaHeld *held)
{
    RdmaHcaFaults *fs = hca->faults;
    RdmaHcaHeld *h = g_memdup2(held, sizeof(*held));

    QTAILQ_INSERT_TAIL(&fs->held, h, next);
    QTAILQ_INSERT_TAIL(&queue_of(hca, &h->wc)->held, h, next_of_queue);
    fs->n_held++;
    cq->n_held++;
    cq->n_reordered += h->reorder;
    hca->fault_points |= RDMA_HCA_FAULT_AT_COMPLETE;
    timer_mod_anticipate_ns(fs->timer, held->until);
}

bool rdma_hca_hold_complete(RdmaHca *hca, RdmaHcaCq *cq,
                            const RdmaWc *wc, bool solicited)
{
    RdmaHcaFaults *fs = hca->faults;
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, wc->qp_num);
    RdmaHcaWq *wq = queue_of(hca, wc);
    const RdmaHcaHeld *last = wq ? QTAILQ_LAST(&wq->held) : NULL;
    bool flushed = wc->status == RDMA_WC_WR_FLUSH_ERR;
    RdmaHcaHeld held = {
        .wc = *wc,
        .cqn = cq->cqn,
        .solicited = solicited,
    };
    const RdmaHcaFault *f = NULL;

    if (!flushed && qp) {
        f = rdma_hca_fault_complete(hca, qp, wc);
    }
    if (f && f->spec->kind == RDMA_FAULT_KIND_CQ_OVERRUN) {
        rdma_hca_cq_enter_error(hca, cq);
        return false;
    }
    if (flushed && last) {
        release_soon(hca, wq);
    }
    if (cq->n_held >= cq->cqe || fs->n_held >= MAX_HELD) {
        release_reordered(hca, cq, wq);
        if (last && !release(hca, QTAILQ_FIRST(&wq->held))) {
            return false;
        }
        f = last ? f : NULL;
        last = wq ? QTAILQ_LAST(&wq->held) : NULL;
    }
    if (f || last) {
        held.until = last ? last->until : 0;
        if (f) {
            held.reorder = f->spec->kind == RDMA_FAULT_KIND_COMPLETION_REORDER;
            held.until = MAX(held.until,
                             qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                             f->ms * (int64_t)SCALE_MS);
        }
        trace_rdma_hca_hold(hca->owner, wc->qp_num, wc->wr_id, wc->opcode);
        hold(hca, cq, &held);
        return !cq->error;
    }
    release_reordered(hca, cq, wq);
    return rdma_hca_cq_complete(hca, cq, wc, solicited);
}

RdmaHcaCq *rdma_hca_hold_run(RdmaHca *hca)
{
    RdmaHcaHeld *held, *next;
    const RdmaHcaWq *last = NULL;
    uint32_t budget = RDMA_TURN_BUDGET;

    QTAILQ_FOREACH_SAFE(held, &hca->faults->held, next, next) {
        RdmaHcaCq *cq = rdma_hca_cq_get(hca, held->cqn);
        const RdmaHcaWq *wq = queue_of(hca, &held->wc);

        if (!rdma_hca_fault_is_due(held->until)) {
            continue;
        }
        if (!budget) {
            rdma_hca_bh_schedule(hca);
            break;
        }
        rdma_work_pay(&budget, RDMA_WORK_WR);
        if (wq != last) {
            release_reordered(hca, cq, wq);
            last = wq;
        }
        if (!release(hca, held)) {
            return cq;
        }
    }
    return NULL;
}

bool rdma_hca_hold_write_recvs(RdmaHca *hca, RdmaHcaQp *qp)
{
    RdmaHcaHeld *held = QTAILQ_FIRST(&qp->rq.held);
    bool ok = true;

    if (held) {
        release_reordered(hca, rdma_hca_cq_get(hca, held->cqn), &qp->rq);
    }
    while ((held = QTAILQ_FIRST(&qp->rq.held))) {
        rdma_work_pay(&hca->cmd_budget, RDMA_WORK_WR);
        ok &= release(hca, held);
    }
    return ok;
}

static void forget_queue(RdmaHca *hca, RdmaHcaWq *wq)
{
    RdmaHcaHeld *held, *next;

    QTAILQ_FOREACH_SAFE(held, &wq->held, next_of_queue, next) {
        drop(hca, wq, held);
    }
}

void rdma_hca_hold_forget_qp(RdmaHca *hca, RdmaHcaQp *qp)
{
    if (QTAILQ_EMPTY(&qp->sq.held) && QTAILQ_EMPTY(&qp->rq.held)) {
        return;
    }
    /* Pay for freeing these, and for rdma_hca_faults_update() over the rest. */
    rdma_work_pay(&hca->cmd_budget, hca->faults->n_held * RDMA_WORK_ENTRY);
    forget_queue(hca, &qp->sq);
    forget_queue(hca, &qp->rq);
    rdma_hca_faults_update(hca);
}
