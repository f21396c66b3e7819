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
static bool pull_sends(RdmaVerbs *v, uint32_t qpn, uint32_t *budget)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;
    void *opaque = v->parent_obj.client_opaque;
    bool *flag;

    while ((flag = verbs_work_flag(v, RDMA_SQ, qpn)) && *flag &&
           verbs_send_room(v, qpn)) {
        RdmaSendWr wr;

        if (!*budget) {
            return true;
        }
        switch (ops->next_send(opaque, qpn, verbs_send_flushes(v, qpn), &wr)) {
        case RDMA_NEXT_WR:
            rdma_work_pay(budget, RDMA_WORK_WR + wr.cost);
            if (verbs_post_send(v, qpn, &wr)) {
                /* verbs_pull_soon() will add the queue again. */
                ops->put_back_send(opaque, qpn, &wr);
                return false;
            }
            break;
        case RDMA_NEXT_LATER:
            return true;
        case RDMA_NEXT_NONE:
            *flag = false;
            return false;
        }
    }
    return false;
}

/*
 * The same for receives. A queue that had some is asked again in the next turn,
 * so that a guest that keeps posting rings the doorbell only once.
 */
static bool pull_recvs(RdmaVerbs *v, RdmaQueue queue, uint32_t id,
                       uint32_t *budget)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;
    void *opaque = v->parent_obj.client_opaque;
    bool found = false;
    bool *flag;

    while ((flag = verbs_work_flag(v, queue, id)) && *flag &&
           verbs_recv_room(v, queue, id)) {
        RdmaRecvWr wr;

        if (!*budget) {
            return true;
        }
        if (ops->next_recv(opaque, queue, id, verbs_recv_flushes(v, queue, id),
                           &wr)) {
            rdma_work_pay(budget, RDMA_WORK_WR + wr.cost);
            verbs_post_recv(v, queue, id, &wr);
            found = true;
        } else if (found) {
            return true;
        } else {
            rdma_work_pay(budget, RDMA_WORK_POLL);
            *flag = !ops->recv_sleep(opaque, queue, id);
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

void verbs_pull_run(RdmaVerbs *v)
{
    struct {
        uint32_t key;
        bool again;
    } turn[TURN_QUEUES];
    uint32_t recvs = RDMA_TURN_BUDGET, sends = RDMA_TURN_BUDGET, slice;
    unsigned n = 0;

    if (!v->running) {
        return;
    }
    while (n < TURN_QUEUES && !g_queue_is_empty(&v->pull_order)) {
        void *key = g_queue_pop_head(&v->pull_order);

        g_hash_table_remove(v->pulls, key);
        turn[n++].key = GPOINTER_TO_UINT(key);
    }
    /* Receives first, as sends may be for a QP of this device. */
    for (unsigned i = 0; i < n; i++) {
        uint32_t key = turn[i].key;

        slice = take_slice(&recvs);
        turn[i].again = pull_recvs(v, key & VERBS_SRQ_KEY ? RDMA_SRQ : RDMA_RQ,
                                   key & ~VERBS_SRQ_KEY, &slice);
        recvs += slice;
    }
    for (unsigned i = 0; i < n; i++) {
        if (!(turn[i].key & VERBS_SRQ_KEY)) {
            slice = take_slice(&sends);
            turn[i].again |= pull_sends(v, turn[i].key, &slice);
            sends += slice;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        if (turn[i].again) {
            verbs_pull_again(v, turn[i].key);
        }
    }
    if (!g_queue_is_empty(&v->pull_order)) {
        qemu_bh_schedule(v->cq_bh);
    }
}

static void run(RdmaBackend *rb)
{
    verbs_pull_run(RDMA_BACKEND_VERBS(rb));
}

void verbs_pull_class_init(RdmaBackendClass *rbc)
{
    rbc->run = run;
}
