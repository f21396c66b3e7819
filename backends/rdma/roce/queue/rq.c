/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queues: messages pull receives from the consumer when they need them,
 * and a QP in ERR pulls all of them to flush them.
 */
#include <glib.h>
#include "queue/queue.h"

bool roce_recv_pull(RoceQp *qp)
{
    RoceEngine *e = qp->e;
    bool flush = qp->s.attr.qp_state == RDMA_QPS_ERR;
    RdmaRecvWr wr = {};

    if (qp->s.rq.cons != qp->s.rq.prod) {
        return true;
    }
    if (qp->srq) {
        return roce_srq_pull(e, qp->srq);
    }
    if (!qp->init.cap.max_recv_wr || !e->consumer.next_recv) {
        return false;
    }
    if (!e->consumer.next_recv(e->consumer_opaque, RDMA_RQ, qp->init.qpn, flush,
                               &wr)) {
        /* In ERR, flush a receive that is posted before recv_sleep(), too. */
        qp->more_recvs = flush && e->consumer.recv_sleep &&
                         !e->consumer.recv_sleep(e->consumer_opaque, RDMA_RQ,
                                                 qp->init.qpn);
        return false;
    }
    e->work += RDMA_WORK_WR + wr.cost;
    roce_recv_fill(&qp->rwqe, qp->rsges, qp->init.cap.max_recv_sge, &wr);
    qp->s.rq.prod++;
    /* The ACK of this message will report credits to a waiting peer. */
    qp->starved = false;
    return true;
}
