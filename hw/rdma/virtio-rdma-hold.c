/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions that faults change or hold back.
 *
 * Those of one work queue stay in order (IBTA 10.8.5): after one that is held
 * back the others wait, too. When the work queue is flushed they are due, for
 * drivers wait for that. Without room for another one, the oldest of its work
 * queue is written.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "trace.h"
#include "virtio-rdma-queue.h"

/* Completions that one turn writes */
#define AT_ONCE 256

static bool is_recv(const RdmaWc *wc)
{
    return wc->opcode >= RDMA_WC_RECV;
}

/* The work queue that a completion is of; NULL: its QP is gone. */
static VirtIORdmaWq *queue_of(VirtIORdma *s, const RdmaWc *wc)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, wc->qp_num);

    if (!qp) {
        return NULL;
    }
    return is_recv(wc) ? &qp->rq : &qp->sq;
}

static void drop(VirtIORdma *s, VirtIORdmaWq *wq, VirtIORdmaHeld *held)
{
    VirtIORdmaCq *cq = virtio_rdma_cq_get(s, held->cqn);

    if (cq) {
        cq->n_held--;
        cq->n_reordered -= held->reorder;
    }
    QTAILQ_REMOVE(&wq->held, held, next_of_queue);
    QTAILQ_REMOVE(&s->faults->held, held, next);
    s->faults->n_held--;
    g_free(held);
}

/* Write it after all. False: as virtio_rdma_cq_complete(). */
static bool release(VirtIORdma *s, VirtIORdmaHeld *held)
{
    VirtIORdmaCq *cq = virtio_rdma_cq_get(s, held->cqn);
    RdmaWc wc = held->wc;
    bool solicited = held->solicited;

    drop(s, queue_of(s, &wc), held);
    trace_virtio_rdma_hold_release(s, wc.qp_num, wc.wr_id, wc.opcode);
    return !cq || virtio_rdma_cq_complete(s, cq, &wc, solicited);
}

/* Thousands may be held: virtio_rdma_hold_run() writes some in each turn. */
static void release_soon(VirtIORdma *s, VirtIORdmaWq *wq)
{
    VirtIORdmaHeld *held;

    QTAILQ_FOREACH_REVERSE(held, &wq->held, next_of_queue) {
        if (!held->until) {
            break;
        }
        held->until = 0;
    }
    virtio_rdma_bh_schedule(s);
}

/* One of @wq was written: what waits for that in other queues goes on. */
static void release_reordered(VirtIORdma *s, VirtIORdmaCq *cq,
                              const VirtIORdmaWq *wq)
{
    VirtIORdmaHeld *held;

    if (!cq->n_reordered) {
        return;
    }
    QTAILQ_FOREACH(held, &s->faults->held, next) {
        VirtIORdmaWq *its = queue_of(s, &held->wc);

        if (held->reorder && held->until && held->cqn == cq->cqn &&
            its != wq) {
            release_soon(s, its);
        }
    }
}

static void hold(VirtIORdma *s, VirtIORdmaCq *cq, const VirtIORdmaHeld *held)
{
    VirtIORdmaFaults *fs = s->faults;
    VirtIORdmaHeld *h = g_memdup2(held, sizeof(*held));

    QTAILQ_INSERT_TAIL(&fs->held, h, next);
    QTAILQ_INSERT_TAIL(&queue_of(s, &h->wc)->held, h, next_of_queue);
    fs->n_held++;
    cq->n_held++;
    cq->n_reordered += h->reorder;
    s->fault_points |= VIRTIO_RDMA_FAULT_AT_COMPLETE;
    timer_mod_anticipate_ns(fs->timer, held->until);
}

static bool overrun(VirtIORdma *s, VirtIORdmaCq *cq)
{
    virtio_rdma_cq_enter_error(s, cq);
    return false;
}

bool virtio_rdma_hold_complete(VirtIORdma *s, VirtIORdmaCq *cq,
                               const RdmaWc *wc, bool solicited)
{
    VirtIORdmaFaults *fs = s->faults;
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, wc->qp_num);
    VirtIORdmaWq *wq = queue_of(s, wc);
    const VirtIORdmaHeld *before = wq ? QTAILQ_LAST(&wq->held) : NULL;
    bool flushed = wc->status == RDMA_WC_WR_FLUSH_ERR;
    VirtIORdmaHeld held = {
        .wc = *wc,
        .cqn = cq->cqn,
        .solicited = solicited,
    };
    const VirtIORdmaFault *f = NULL;
    bool ok;

    if (!flushed && qp) {
        f = virtio_rdma_fault_complete(s, qp, wc);
    }
    if (f && f->kind == RDMA_FAULT_KIND_CQ_OVERRUN) {
        return overrun(s, cq);
    }
    if (flushed && before) {
        release_soon(s, wq);
    }
    if (cq->n_held >= cq->cqe || fs->n_held >= VIRTIO_RDMA_MAX_HELD) {
        if (before && !release(s, QTAILQ_FIRST(&wq->held))) {
            return false;
        }
        f = before ? f : NULL;
        before = wq ? QTAILQ_LAST(&wq->held) : NULL;
    }
    if (f || before) {
        held.until = before ? before->until : 0;
        if (f) {
            held.reorder = f->kind == RDMA_FAULT_KIND_COMPLETION_REORDER;
            held.until = MAX(held.until,
                             qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                             f->ms * (int64_t)SCALE_MS);
        }
        trace_virtio_rdma_hold(s, wc->qp_num, wc->wr_id, wc->opcode);
        hold(s, cq, &held);
        return !cq->error;
    }
    ok = virtio_rdma_cq_complete(s, cq, wc, solicited);
    release_reordered(s, cq, wq);
    return ok;
}

VirtIORdmaCq *virtio_rdma_hold_run(VirtIORdma *s)
{
    VirtIORdmaHeld *held, *next;
    uint32_t left = AT_ONCE;

    QTAILQ_FOREACH_SAFE(held, &s->faults->held, next, next) {
        VirtIORdmaCq *cq = virtio_rdma_cq_get(s, held->cqn);

        if (!virtio_rdma_fault_is_due(held->until)) {
            continue;
        }
        if (!left--) {
            virtio_rdma_bh_schedule(s);
            break;
        }
        if (!release(s, held)) {
            return cq;
        }
    }
    return NULL;
}

static void forget_queue(VirtIORdma *s, VirtIORdmaWq *wq)
{
    VirtIORdmaHeld *held, *next;

    QTAILQ_FOREACH_SAFE(held, &wq->held, next_of_queue, next) {
        drop(s, wq, held);
    }
}

void virtio_rdma_hold_forget_qp(VirtIORdma *s, VirtIORdmaQp *qp)
{
    if (QTAILQ_EMPTY(&qp->sq.held) && QTAILQ_EMPTY(&qp->rq.held)) {
        return;
    }
    /* For these, and for the look at the others that is next */
    rdma_work_pay(&s->ctrl_budget, s->faults->n_held * RDMA_WORK_ENTRY);
    forget_queue(s, &qp->sq);
    forget_queue(s, &qp->rq);
    virtio_rdma_faults_update(s);
}
