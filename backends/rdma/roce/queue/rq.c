/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queues: what there is room for, and what a message finds there.
 */
#include <glib.h>
#include "queue/queue.h"

bool roce_recv_pull(RoceQp *qp)
{
    RoceEngine *e = qp->e;
    uint32_t index = qp->s.rq.prod;
    RdmaRecvWr wr = {};

    if (qp->s.rq.cons != index) {
        return true;
    }
    if (qp->srq) {
        return roce_srq_pull(e, qp->srq);
    }
    if (!qp->init.cap.max_recv_wr || !e->ops.pull_recv ||
        !e->ops.pull_recv(e->opaque, qp->init.qpn, &wr)) {
        return false;
    }
    e->work += ROCE_COST_COMPLETION;
    roce_recv_fill(roce_rwqe(qp, index), roce_rsges(qp, index),
                   qp->init.cap.max_recv_sge, &wr);
    qp->s.rq.prod++;
    /* Who waits for a receive gets the ACK of this message. */
    qp->starved = false;
    return true;
}

uint32_t roce_recv_room(const RoceEngine *e, uint32_t qpn)
{
    const RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp || qp->srq || qp->s.attr.qp_state == RDMA_QPS_RESET) {
        return 0;
    }
    return roce_queue_room(qp->init.cap.max_recv_wr, ROCE_RQ_DEPTH,
                           qp->s.rq.prod - qp->s.rq.cons);
}
