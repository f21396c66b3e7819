/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deadlines: a binary heap of the QPs that have one.
 *
 * The key of a QP in the heap may be earlier than its first deadline, but never
 * later. So progress, which postpones deadlines with every packet, need not
 * touch the heap. At the time of the key, roce_expire() checks the QP and puts
 * it back with its current first deadline as key.
 *
 * If a peer seems not to have answered in time, its answer may be in a queue
 * that the owner has not read. Such a QP is overdue. The overdue list keeps it
 * until the owner has passed all frames that arrived before the deadline
 * (roce_expire()).
 */
#include <glib.h>
#include "core/core.h"

int64_t roce_peer_deadline(const RoceQp *qp)
{
    return MIN(qp->s.sq.ack_deadline, qp->credit_deadline);
}

int64_t roce_qp_deadline(const RoceQp *qp)
{
    int64_t when = MIN(qp->s.sq.rnr_deadline, qp->starved_deadline);

    if (!qp->overdue) {
        when = MIN(when, roce_peer_deadline(qp));
    }
    return qp->paused ? MIN(when, qp->s.sq.send_at) : when;
}

static void heap_put(RoceEngine *e, uint32_t slot, RoceQp *qp)
{
    e->timers[slot] = qp;
    qp->timer_slot = slot;
}

static void sift_up(RoceEngine *e, RoceQp *qp)
{
    uint32_t slot = qp->timer_slot;

    while (slot > 1 && e->timers[slot / 2]->timer_key > qp->timer_key) {
        heap_put(e, slot, e->timers[slot / 2]);
        slot /= 2;
    }
    heap_put(e, slot, qp);
}

static void sift_down(RoceEngine *e, RoceQp *qp)
{
    uint32_t slot = qp->timer_slot;

    for (;;) {
        uint32_t child = slot * 2;

        if (child > e->ntimers) {
            break;
        }
        if (child < e->ntimers &&
            e->timers[child + 1]->timer_key < e->timers[child]->timer_key) {
            child++;
        }
        if (e->timers[child]->timer_key >= qp->timer_key) {
            break;
        }
        heap_put(e, slot, e->timers[child]);
        slot = child;
    }
    heap_put(e, slot, qp);
}

void roce_timer_arm(RoceQp *qp, int64_t when)
{
    RoceEngine *e = qp->e;

    if (!qp->timer_slot) {
        e->ntimers++;
        qp->timer_key = when;
        heap_put(e, e->ntimers, qp);
    } else if (when < qp->timer_key) {
        qp->timer_key = when;
    } else {
        return;
    }
    sift_up(e, qp);
    if (qp->timer_slot == 1) {
        roce_wake(e);
    }
}

static void heap_remove(RoceQp *qp)
{
    RoceEngine *e = qp->e;
    uint32_t slot = qp->timer_slot;
    RoceQp *last;

    if (!slot) {
        return;
    }
    qp->timer_slot = 0;
    last = e->timers[e->ntimers--];
    if (last != qp) {
        heap_put(e, slot, last);
        sift_up(e, last);
        sift_down(e, last);
    }
}

void roce_timer_remove(RoceQp *qp)
{
    heap_remove(qp);
    roce_timer_clear_overdue(qp);
}

void roce_timer_set_overdue(RoceQp *qp)
{
    if (!qp->overdue) {
        qp->overdue = true;
        g_queue_push_tail_link(&qp->e->overdue, &qp->overdue_link);
    }
}

void roce_timer_clear_overdue(RoceQp *qp)
{
    if (qp->overdue) {
        qp->overdue = false;
        g_queue_unlink(&qp->e->overdue, &qp->overdue_link);
    }
}

RoceQp *roce_timer_due(const RoceEngine *e, int64_t now)
{
    return e->ntimers && e->timers[1]->timer_key <= now ? e->timers[1] : NULL;
}

void roce_timer_restart(RoceQp *qp)
{
    if (!qp->timer_slot) {
        return;
    }
    if (roce_qp_deadline(qp) == ROCE_NO_DEADLINE) {
        heap_remove(qp);
    } else {
        qp->timer_key = roce_qp_deadline(qp);
        sift_down(qp->e, qp);
    }
}

int64_t roce_next_deadline(const RoceEngine *e)
{
    int64_t first = e->ntimers ? e->timers[1]->timer_key : ROCE_NO_DEADLINE;

    return MIN(first, e->resume_at);
}
