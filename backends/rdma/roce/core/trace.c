/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace events, which explain the behaviour of QPs (RoceOps.trace).
 */
#include <glib.h>
#include "core/core.h"

static void trace(const RoceEngine *e, RoceTrace t)
{
    if (e->ops.trace) {
        e->ops.trace(e->opaque, &t);
    }
}

void roce_trace_qp(const RoceQp *qp, RoceTraceType type, uint32_t psn,
                   uint32_t value)
{
    trace(qp->e, (RoceTrace) {
        .type = type,
        .qpn = qp->init.qpn,
        .psn = psn,
        .value = value,
    });
}

void roce_trace_refused(const RoceQp *qp, const RdmaQpRefusal *refusal)
{
    trace(qp->e, (RoceTrace) {
        .type = ROCE_TRACE_QP_REFUSED,
        .qpn = qp->init.qpn,
        .refusal = refusal,
    });
}

void roce_trace_drop(const RoceEngine *e, const RoceBth *bth, const char *why)
{
    trace(e, (RoceTrace) {
        .type = ROCE_TRACE_RX_DROP,
        .qpn = bth ? bth->dqpn : 0,
        .psn = bth ? bth->psn : 0,
        .why = why,
    });
}

void roce_rx_drop(RoceEngine *e, const RoceBth *bth, const char *why)
{
    e->stats.rx_dropped++;
    roce_trace_drop(e, bth, why);
}

void roce_qp_set_state(RoceQp *qp, RdmaQpState state)
{
    uint8_t old = qp->s.attr.qp_state;

    qp->s.attr.qp_state = state;
    if (old != state) {
        trace(qp->e, (RoceTrace) {
            .type = ROCE_TRACE_QP_STATE,
            .qpn = qp->init.qpn,
            .value = state,
            .old = old,
        });
    }
}
