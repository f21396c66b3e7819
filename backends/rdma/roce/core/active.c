/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of QPs that may have something to send, and those that wait for
 * the wire.
 */
#include <glib.h>
#include "core/core.h"

void roce_wake(RoceEngine *e)
{
    if (!e->woken) {
        e->woken = true;
        e->ops.wake(e->opaque);
    }
}

void roce_qp_schedule(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    if (!qp->active) {
        qp->active = true;
        qp->quantum = ROCE_QUANTUM;
        g_queue_push_tail_link(&e->active, &qp->link);
    } else if (qp->blocked) {
        /* Its next packet may be another one by now */
        qp->blocked = false;
        g_queue_unlink(&e->blocked, &qp->link);
        g_queue_push_tail_link(&e->active, &qp->link);
    }
    roce_wake(e);
}

void roce_qp_unschedule(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    if (qp->active) {
        g_queue_unlink(qp->blocked ? &e->blocked : &e->active, &qp->link);
        qp->active = false;
        qp->blocked = false;
    }
}

void roce_qp_block(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    roce_trace_qp(qp, ROCE_TRACE_TX_WAIT, 0, 0);
    qp->blocked = true;
    g_queue_unlink(&e->active, &qp->link);
    g_queue_push_tail_link(&e->blocked, &qp->link);
}

void roce_set_tx_blocked(RoceEngine *e, bool blocked)
{
    GList *link;

    e->tx_blocked = blocked;
    if (blocked) {
        return;
    }
    while ((link = g_queue_pop_tail_link(&e->blocked))) {
        ((RoceQp *)link->data)->blocked = false;
        g_queue_push_head_link(&e->active, link);
    }
    if (!g_queue_is_empty(&e->active)) {
        roce_wake(e);
    }
}
