/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The set of queues of the guest that may have work requests, and for which the
 * host may have room. pull.c serves it.
 */
#include "qemu/osdep.h"
#include "int.h"

void verbs_pull_again(RdmaVerbs *v, uint32_t key)
{
    if (g_hash_table_add(v->pulls, GUINT_TO_POINTER(key))) {
        g_queue_push_tail(&v->pull_order, GUINT_TO_POINTER(key));
    }
}

static void add_queue(RdmaVerbs *v, RdmaQueue queue, uint32_t id)
{
    verbs_pull_again(v, queue == RDMA_SRQ ? id | VERBS_SRQ_KEY : id);
}

static VerbsWq *find_wq(RdmaVerbs *v, RdmaQueue queue, uint32_t id)
{
    VerbsSrq *srq;
    VerbsQp *qp;

    if (queue == RDMA_SRQ) {
        srq = verbs_get_live(v->srqs, id);
        return srq ? &srq->rq : NULL;
    }
    qp = verbs_get(v->qps, id);
    return !qp ? NULL : queue == RDMA_SQ ? &qp->sq : &qp->rq;
}

void verbs_kick(RdmaBackend *rb, RdmaQueue queue, uint32_t id)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsWq *wq = find_wq(v, queue, id);

    if (wq) {
        wq->may_have_work = true;
        add_queue(v, queue, id);
    }
}

void verbs_pull_soon(RdmaVerbs *v, RdmaQueue queue, uint32_t id)
{
    const VerbsWq *wq = find_wq(v, queue, id);

    if (wq && wq->may_have_work) {
        add_queue(v, queue, id);
        qemu_bh_schedule(v->cq_bh);
    }
}

void verbs_pull_qp(RdmaVerbs *v, VerbsQp *qp)
{
    /* The guest may have work requests to flush that it did not kick for. */
    qp->sq.may_have_work = true;
    qp->rq.may_have_work = !qp->init.has_srq;
    add_queue(v, RDMA_SQ, qp->init.qpn);
    qemu_bh_schedule(v->cq_bh);
}
