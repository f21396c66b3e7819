/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions that faults change or hold back.
 *
 * Those of one work queue stay in order (IBTA 10.8.5): behind one that is held
 * back the others wait, too. When the work queue is flushed they come at once,
 * for drivers wait for that.
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

/* Are the completions of one work queue? */
static bool same_queue(const RdmaWc *a, const RdmaWc *b)
{
    return a->qp_num == b->qp_num && is_recv(a) == is_recv(b);
}

static VirtIORdmaHeld *newest_of(VirtIORdmaFaults *fs, const RdmaWc *wc)
{
    VirtIORdmaHeld *held;

    QTAILQ_FOREACH_REVERSE(held, &fs->held, next) {
        if (same_queue(&held->wc, wc)) {
            return held;
        }
    }
    return NULL;
}

static void drop(VirtIORdma *s, VirtIORdmaHeld *held)
{
    VirtIORdmaCq *cq = virtio_rdma_cq_get(s, held->cqn);

    if (cq) {
        cq->n_held--;
    }
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

    drop(s, held);
    trace_virtio_rdma_hold_release(s, wc.qp_num, wc.wr_id, wc.opcode);
    return !cq || virtio_rdma_cq_complete(s, cq, &wc, solicited);
}

/* All of the work queue of @wc */
static bool release_queue(VirtIORdma *s, const RdmaWc *wc)
{
    VirtIORdmaHeld *held, *next;
    bool ok = true;

    QTAILQ_FOREACH_SAFE(held, &s->faults->held, next, next) {
        if (same_queue(&held->wc, wc)) {
            ok &= release(s, held);
        }
    }
    return ok;
}

/* @wc was written: what waits for the next one of another queue goes on. */
static bool release_reordered(VirtIORdma *s, const VirtIORdmaCq *cq,
                              const RdmaWc *wc)
{
    VirtIORdmaHeld *held = QTAILQ_FIRST(&s->faults->held);
    bool ok = true;

    while (held) {
        if (held->reorder && held->cqn == cq->cqn &&
            !same_queue(&held->wc, wc)) {
            RdmaWc its = held->wc;

            ok &= release_queue(s, &its);
            held = QTAILQ_FIRST(&s->faults->held);
        } else {
            held = QTAILQ_NEXT(held, next);
        }
    }
    return ok;
}

void virtio_rdma_hold_add(VirtIORdma *s, VirtIORdmaCq *cq,
                          const VirtIORdmaHeld *held)
{
    VirtIORdmaFaults *fs = virtio_rdma_faults_get(s);
    VirtIORdmaHeld *h = g_memdup2(held, sizeof(*held));

    QTAILQ_INSERT_TAIL(&fs->held, h, next);
    fs->n_held++;
    cq->n_held++;
    s->fault_points |= VIRTIO_RDMA_FAULT_AT_COMPLETE;
    timer_mod_anticipate_ns(fs->timer, held->until);
}

/* What is held back of its work queue goes before it. */
static bool pass(VirtIORdma *s, VirtIORdmaCq *cq, const RdmaWc *wc,
                 bool solicited)
{
    bool had = s->faults->n_held;
    bool ok = release_queue(s, wc);

    ok &= virtio_rdma_cq_complete(s, cq, wc, solicited);
    ok &= release_reordered(s, cq, wc);
    if (had && !s->faults->n_held) {
        virtio_rdma_faults_update(s);
    }
    return ok;
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
    const VirtIORdmaHeld *before = newest_of(fs, wc);
    VirtIORdmaHeld held = {
        .wc = *wc,
        .cqn = cq->cqn,
        .solicited = solicited,
        .until = before ? before->until : 0,
    };
    const VirtIORdmaFault *f;

    if (wc->status == RDMA_WC_WR_FLUSH_ERR || !qp) {
        return pass(s, cq, wc, solicited);
    }
    f = virtio_rdma_fault_complete(s, qp, wc);
    if (f && f->kind == RDMA_FAULT_KIND_CQ_OVERRUN) {
        return overrun(s, cq);
    }
    if ((f || before) && cq->n_held < cq->cqe &&
        fs->n_held < VIRTIO_RDMA_MAX_HELD) {
        if (f) {
            held.reorder = f->kind == RDMA_FAULT_KIND_COMPLETION_REORDER;
            held.until = MAX(held.until,
                             qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                             f->ms * (int64_t)SCALE_MS);
        }
        trace_virtio_rdma_hold(s, wc->qp_num, wc->wr_id, wc->opcode);
        virtio_rdma_hold_add(s, cq, &held);
        return !cq->error;
    }
    /* There is no room to hold back more, or no need to. */
    return pass(s, cq, wc, solicited);
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

void virtio_rdma_hold_forget_qp(VirtIORdma *s, uint32_t qpn)
{
    VirtIORdmaHeld *held, *next;

    if (!s->faults) {
        return;
    }
    QTAILQ_FOREACH_SAFE(held, &s->faults->held, next, next) {
        if (held->wc.qp_num == qpn) {
            drop(s, held);
        }
    }
    virtio_rdma_faults_update(s);
}
