/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The set of queues of the guest that may have work requests, and for which the
 * host may have room. pull.c serves it.
 */
#include "qemu/osdep.h"
#include "int.h"

bool *verbs_work_flag(RdmaVerbs *v, RdmaQueue queue, uint32_t id)
{
    VerbsSrq *srq;
    VerbsQp *qp;

    if (queue == RDMA_SRQ) {
        srq = verbs_get_live(v->srqs, id);
        return srq ? &srq->may_have_work : NULL;
    }
    qp = verbs_get(v->qps, id);
    return qp ? &qp->may_have_work[queue] : NULL;
}

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

static void kick(RdmaBackend *rb, RdmaQueue queue, uint32_t id)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    bool *flag = verbs_work_flag(v, queue, id);

    if (flag) {
        *flag = true;
        add_queue(v, queue, id);
    }
}

void verbs_pull_soon(RdmaVerbs *v, RdmaQueue queue, uint32_t id)
{
    const bool *flag = verbs_work_flag(v, queue, id);

    if (flag && *flag) {
        add_queue(v, queue, id);
        qemu_bh_schedule(v->cq_bh);
    }
}

void verbs_pull_qp(RdmaVerbs *v, VerbsQp *qp)
{
    /* The guest may have work requests to flush that it did not kick for. */
    qp->may_have_work[RDMA_SQ] = true;
    qp->may_have_work[RDMA_RQ] = !qp->init.has_srq;
    add_queue(v, RDMA_SQ, qp->init.qpn);
    qemu_bh_schedule(v->cq_bh);
}

void verbs_kick_class_init(RdmaBackendClass *rbc)
{
    rbc->kick = kick;
}
