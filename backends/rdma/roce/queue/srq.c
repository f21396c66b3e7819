/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues (IBTA 10.2.9).
 *
 * A message pulls a WQE when it begins, and the WQE moves to the QP of the
 * message. From then on it is like any other receive WQE. If a datagram does
 * not fit into the WQE, the SRQ keeps the WQE for the next message of any QP.
 */
#include <glib.h>
#include "queue/queue.h"

RoceSrq *roce_srq_find(const RoceEngine *e, uint32_t srqn)
{
    return roce_table_get(&e->srqs, srqn);
}

int roce_srq_create(RoceEngine *e, const RdmaSrqAttr *attr)
{
    RoceSrq *srq;

    if (attr->srqn >= e->config.max_srq || !attr->max_wr ||
        attr->max_wr > ROCE_MAX_WR || attr->limit > attr->max_wr) {
        return -EINVAL;
    }
    if (roce_srq_find(e, attr->srqn)) {
        return -EEXIST;
    }
    srq = g_new0(RoceSrq, 1);
    srq->attr = *attr;
    srq->sges = g_try_new0(RdmaSge, MAX(1, attr->max_sge));
    if (!srq->sges) {
        roce_srq_free(srq);
        return -ENOMEM;
    }
    roce_table_set(&e->srqs, attr->srqn, srq);
    return 0;
}

void roce_srq_free(RoceSrq *srq)
{
    g_free(srq->sges);
    g_free(srq);
}

int roce_srq_destroy(RoceEngine *e, uint32_t srqn)
{
    RoceSrq *srq = roce_srq_find(e, srqn);

    if (!srq) {
        return -ENOENT;
    }
    if (srq->refs) {
        return -EBUSY;
    }
    roce_srq_free(srq);
    roce_table_clear(&e->srqs, srqn);
    return 0;
}

/*
 * Are there fewer WQEs than the limit? WQEs that the consumer holds count as
 * well; to pull all of a deep queue would take long.
 */
static bool is_below_limit(RoceEngine *e, const RoceSrq *srq)
{
    uint32_t limit = srq->attr.limit;
    uint32_t n = srq->has_wqe;

    return n < limit &&
           (!e->consumer.recv_count ||
            e->consumer.recv_count(e->consumer_opaque, RDMA_SRQ,
                                   srq->attr.srqn) < limit - n);
}

/* The event disarms the limit (IBTA 10.2.9.1). */
static void check_limit(RoceEngine *e, RoceSrq *srq)
{
    RdmaEvent event = {
        .type = RDMA_EVENT_SRQ_LIMIT_REACHED,
        .id = srq->attr.srqn,
    };

    if (is_below_limit(e, srq)) {
        srq->attr.limit = 0;
        e->consumer.event(e->consumer_opaque, &event);
    }
}

bool roce_srq_pull(RoceEngine *e, RoceSrq *srq)
{
    RdmaRecvWr wr = {};

    if (srq->has_wqe) {
        return true;
    }
    if (!e->consumer.next_recv ||
        !e->consumer.next_recv(e->consumer_opaque, RDMA_SRQ, srq->attr.srqn,
                               false, &wr)) {
        return false;
    }
    e->work += RDMA_WORK_WR + wr.cost;
    roce_recv_fill(&srq->wqe, srq->sges, srq->attr.max_sge, &wr);
    srq->has_wqe = true;
    return true;
}

int roce_srq_set_limit(RoceEngine *e, uint32_t srqn, uint32_t limit)
{
    RoceSrq *srq = roce_srq_find(e, srqn);

    if (!srq) {
        return -ENOENT;
    }
    if (limit > srq->attr.max_wr) {
        return -EINVAL;
    }
    srq->attr.limit = limit;
    check_limit(e, srq);
    return 0;
}

int roce_srq_query(const RoceEngine *e, uint32_t srqn, RdmaSrqAttr *attr)
{
    const RoceSrq *srq = roce_srq_find(e, srqn);

    if (!srq) {
        return -ENOENT;
    }
    *attr = srq->attr;
    return 0;
}

bool roce_srq_take(RoceQp *qp)
{
    RoceSrq *srq = qp->srq;

    if (!srq || !srq->has_wqe) {
        return false;
    }
    qp->rwqe = srq->wqe;
    if (srq->wqe.num_sge) {
        memcpy(qp->rsges, srq->sges, srq->wqe.num_sge * sizeof(RdmaSge));
    }
    qp->s.rq.prod++;
    srq->has_wqe = false;
    check_limit(qp->e, srq);
    return true;
}
