/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pulling work requests from the guest's queues, as many as the host's queues
 * have room for, after a kick and when there is room again.
 */
#include "qemu/osdep.h"
#include "rdma/work.h"
#include "int.h"

/* QPs and SRQs to serve in one turn */
#define TURN_QUEUES 128

/*
 * Pull until the guest has no more sends, or the host no room. Returns whether
 * to ask the queue in the next turn.
 */
static bool pull_sends(RdmaVerbs *v, VerbsQp *qp, uint32_t *budget)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;
    void *opaque = v->parent_obj.client_opaque;
    uint32_t qpn = qp->init.qpn;

    while (qp->sq.may_have_work && verbs_send_room(qp)) {
        RdmaSendWr wr;

        if (!*budget) {
            return true;
        }
        switch (ops->next_send(opaque, qpn, verbs_send_flushes(qp), &wr)) {
        case RDMA_NEXT_WR:
            rdma_work_pay(budget, RDMA_WORK_WR + wr.cost);
            if (verbs_post_send(v, qp, &wr)) {
                /* verbs_pull_soon() will add the queue again. */
                ops->put_back_send(opaque, qpn, &wr);
                return false;
            }
            break;
        case RDMA_NEXT_LATER:
            return false;
        case RDMA_NEXT_NONE:
            qp->sq.may_have_work = false;
            return false;
        }
    }
    return false;
}

/*
 * The same for receives of @srq, or of @qp if that is NULL. A queue that had
 * some is asked again in the next turn, so that a guest that keeps posting
 * rings the doorbell only once.
 */
static bool pull_recvs(RdmaVerbs *v, VerbsQp *qp, VerbsSrq *srq,
                       uint32_t *budget)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;
    void *opaque = v->parent_obj.client_opaque;
    RdmaQueue queue = srq ? RDMA_SRQ : RDMA_RQ;
    uint32_t id = srq ? srq->obj.num : qp->init.qpn;
    VerbsWq *wq = srq ? &srq->rq : &qp->rq;
    bool found = false;

    while (wq->may_have_work &&
           (srq ? verbs_srq_room(srq) : verbs_recv_room(qp))) {
        RdmaRecvWr wr;

        if (!*budget) {
            return true;
        }
        if (ops->next_recv(opaque, queue, id, !srq && verbs_recv_flushes(qp),
                           &wr)) {
            rdma_work_pay(budget, RDMA_WORK_WR + wr.cost);
            if (srq) {
                verbs_srq_post(v, srq, &wr);
            } else {
                verbs_post_recv(v, qp, &wr);
            }
            found = true;
        } else if (found) {
            return true;
        } else {
            rdma_work_pay(budget, RDMA_WORK_POLL);
            wq->may_have_work = !ops->recv_sleep(opaque, queue, id);
        }
    }
    return false;
}

/* Take the budget of one queue from that of the turn. */
static uint32_t take_slice(uint32_t *budget)
{
    uint32_t slice = MIN(*budget, RDMA_QUEUE_BUDGET);

    *budget -= slice;
    return slice;
}

void verbs_pull_run(RdmaBackend *rb)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    struct {
        uint32_t key;
        VerbsQp *qp;                /* if both are NULL, it is gone */
        VerbsSrq *srq;
        bool again;
    } turn[TURN_QUEUES], *t;
    uint32_t recvs = RDMA_TURN_BUDGET, sends = RDMA_TURN_BUDGET, slice;
    unsigned n = 0;

    if (!v->running) {
        return;
    }
    while (n < TURN_QUEUES && !g_queue_is_empty(&v->pull_order)) {
        void *key = g_queue_pop_head(&v->pull_order);

        g_hash_table_remove(v->pulls, key);
        t = &turn[n++];
        t->key = GPOINTER_TO_UINT(key);
        t->qp = verbs_get(v->qps, t->key);
        t->srq = verbs_get_live(v->srqs, t->key ^ VERBS_SRQ_KEY);
        t->again = false;
    }
    /* Receives first, as sends may be for a QP of this device. */
    for (t = turn; t < turn + n; t++) {
        if (t->qp || t->srq) {
            slice = take_slice(&recvs);
            t->again = pull_recvs(v, t->qp, t->srq, &slice);
            recvs += slice;
        }
    }
    for (t = turn; t < turn + n; t++) {
        if (t->qp) {
            slice = take_slice(&sends);
            t->again |= pull_sends(v, t->qp, &slice);
            sends += slice;
        }
    }
    for (t = turn; t < turn + n; t++) {
        if (t->again) {
            verbs_pull_again(v, t->key);
        }
    }
    if (!g_queue_is_empty(&v->pull_order)) {
        qemu_bh_schedule(v->cq_bh);
    }
}
