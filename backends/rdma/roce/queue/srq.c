/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues (IBTA 10.2.9).
 *
 * A WQE goes over to a QP's own receive queue, which has one place, when a
 * message for that QP begins; from there on it is as any other receive WQE.
 */
#include <glib.h>
#include "queue/queue.h"

RoceSrq *roce_srq_find(const RoceEngine *e, uint32_t srqn)
{
    return roce_table_get(&e->srqs, srqn);
}

int roce_srq_create(RoceEngine *e, const RdmaSrqAttr *attr)
{
    uint32_t size;
    RoceSrq *srq;

    if (attr->srqn >= e->config.max_srq || !attr->max_wr ||
        attr->max_wr > ROCE_MAX_WR || attr->limit > attr->max_wr) {
        return -EINVAL;
    }
    if (roce_srq_find(e, attr->srqn)) {
        return -EEXIST;
    }
    size = roce_ring_size(attr->max_wr);
    srq = g_new0(RoceSrq, 1);
    srq->attr = *attr;
    srq->mask = size - 1;
    srq->wqes = g_try_new0(RoceRecvWqe, size);
    srq->sges = g_try_new0(RdmaSge, (gsize)size * MAX(1, attr->max_sge));
    if (!srq->wqes || !srq->sges) {
        roce_srq_free(e, srq);
        return -ENOMEM;
    }
    roce_table_set(&e->srqs, attr->srqn, srq);
    return 0;
}

void roce_srq_free(RoceEngine *e, RoceSrq *srq)
{
    size_t size = (size_t)srq->mask + 1;

    roce_free_large(e, srq->wqes, size * sizeof(*srq->wqes));
    roce_free_large(e, srq->sges, size * MAX(1, srq->attr.max_sge) *
                                  sizeof(*srq->sges));
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
    roce_srq_free(e, srq);
    roce_table_clear(&e->srqs, srqn);
    return 0;
}

/*
 * Are there fewer WQEs than the limit? What was posted counts wherever it is:
 * to copy all of a deep queue for that would take long.
 */
static bool is_below_limit(RoceEngine *e, const RoceSrq *srq)
{
    uint32_t limit = srq->attr.limit;
    uint32_t n = srq->prod - srq->cons;

    return n < limit &&
           (!e->ops.srq_count ||
            e->ops.srq_count(e->opaque, srq->attr.srqn) < limit - n);
}

/* IBTA 10.2.9.1: the event comes once, the next one needs another limit. */
static void check_limit(RoceEngine *e, RoceSrq *srq)
{
    RdmaEvent event = {
        .type = RDMA_EVENT_SRQ_LIMIT_REACHED,
        .id = srq->attr.srqn,
    };

    if (is_below_limit(e, srq)) {
        srq->attr.limit = 0;
        e->ops.event(e->opaque, &event);
    }
}

static void add_wqe(RoceSrq *srq, const RdmaRecvWr *wr)
{
    roce_recv_fill(roce_srq_wqe(srq, srq->prod),
                   roce_srq_sges(srq, srq->prod), srq->attr.max_sge, wr);
    srq->prod++;
}

bool roce_srq_pull(RoceEngine *e, RoceSrq *srq)
{
    RdmaRecvWr wr = {};

    if (srq->cons != srq->prod) {
        return true;
    }
    if (!e->ops.pull_srq_recv ||
        !e->ops.pull_srq_recv(e->opaque, srq->attr.srqn, &wr)) {
        return false;
    }
    e->work += ROCE_COST_COMPLETION;
    add_wqe(srq, &wr);
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

uint32_t roce_srq_room(const RoceEngine *e, uint32_t srqn)
{
    const RoceSrq *srq = roce_srq_find(e, srqn);

    return srq ? srq->attr.max_wr - (srq->prod - srq->cons) : 0;
}

int roce_post_srq_recv(RoceEngine *e, uint32_t srqn, const RdmaRecvWr *wr)
{
    RoceSrq *srq = roce_srq_find(e, srqn);

    if (!srq) {
        return -ENOENT;
    }
    if (!roce_srq_room(e, srqn)) {
        return -ENOSPC;
    }
    add_wqe(srq, wr);
    return 0;
}

bool roce_srq_take(RoceQp *qp)
{
    RoceEngine *e = qp->e;
    RoceSrq *srq = qp->srq;
    const RoceRecvWqe *wqe;
    bool full;

    if (!srq || srq->cons == srq->prod) {
        return false;
    }
    full = srq->prod - srq->cons == srq->attr.max_wr;
    wqe = roce_srq_wqe(srq, srq->cons);
    *roce_rwqe(qp, qp->s.rq.prod) = *wqe;
    if (wqe->num_sge) {
        memcpy(roce_rsges(qp, qp->s.rq.prod), roce_srq_sges(srq, srq->cons),
               wqe->num_sge * sizeof(RdmaSge));
    }
    qp->s.rq.prod++;
    srq->cons++;
    check_limit(e, srq);
    if (full) {
        e->ops.srq_room(e->opaque, srq->attr.srqn);
    }
    return true;
}
