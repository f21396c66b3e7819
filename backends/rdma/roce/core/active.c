/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lists of scheduled QPs: active, and blocked (wait for the wire).
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

/* The list that contains @qp, which is scheduled */
static GQueue *list_of(RoceQp *qp)
{
    return qp->blocked ? &qp->e->blocked : &qp->e->active;
}

static void move_to(RoceQp *qp, GQueue *list)
{
    g_queue_unlink(list_of(qp), &qp->link);
    g_queue_push_tail_link(list, &qp->link);
    qp->blocked = list == &qp->e->blocked;
}

void roce_qp_schedule(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    if (!qp->active) {
        qp->active = true;
        qp->quantum = ROCE_QUANTUM;
        g_queue_push_tail_link(&e->active, &qp->link);
    } else if (qp->blocked) {
        /* Its next packet may have changed and need not wait. */
        move_to(qp, &e->active);
    }
    roce_wake(e);
}

void roce_qp_unschedule(RoceQp *qp)
{
    if (qp->active) {
        g_queue_unlink(list_of(qp), &qp->link);
        qp->active = false;
        qp->blocked = false;
    }
}

void roce_qp_block(RoceQp *qp)
{
    roce_trace_qp(qp, ROCE_TRACE_TX_WAIT, 0, 0);
    move_to(qp, &qp->e->blocked);
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
