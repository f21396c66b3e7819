/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kicks: the consumer has posted work requests to a queue.
 */
#include <glib.h>
#include "roce-int.h"

static void kick_sq(RoceQp *qp)
{
    roce_sq_expect(qp);
    switch (qp->s.attr.qp_state) {
    case RDMA_QPS_RTS:
    case RDMA_QPS_SQE:
    case RDMA_QPS_ERR:
        roce_qp_schedule(qp);
        break;
    default:
        break;
    }
}

static void kick_rq(RoceQp *qp)
{
    if (qp->s.attr.qp_state == RDMA_QPS_ERR) {
        roce_rq_expect(qp);
        roce_qp_schedule(qp);
    }
    roce_credit_recv_posted(qp);
}

void roce_kick(RoceEngine *e, RdmaQueue queue, uint32_t id)
{
    RoceQp *qp = queue == RDMA_SRQ ? NULL : roce_qp_find(e, id);

    if (!qp) {
        return;
    }
    if (queue == RDMA_SQ) {
        kick_sq(qp);
    } else {
        kick_rq(qp);
    }
}
