/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queues of the guest: what they have is pulled, up to the room that the
 * host's queues have, after a kick and whenever there is room again.
 */
#include "qemu/osdep.h"
#include "rdma-verbs-int.h"

/* Work requests that are pulled in one turn of the main loop */
#define PULL_BUDGET 512

/* Pull until the guest has no more, or the host no room. */
static void pull_sends(RdmaVerbs *v, uint32_t qpn, uint32_t *budget)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;
    void *opaque = v->parent_obj.client_opaque;
    bool *more;

    while ((more = verbs_more_of(v, RDMA_SQ, qpn)) && *more &&
           verbs_send_room(v, qpn)) {
        RdmaSendWr wr;

        if (!*budget) {
            verbs_pull_soon(v, RDMA_SQ, qpn);
            return;
        }
        --*budget;
        switch (ops->next_send(opaque, qpn, verbs_send_flushes(v, qpn), &wr)) {
        case RDMA_NEXT_WR:
            if (verbs_post_send(v, qpn, &wr)) {
                /* verbs_pull_soon() will come. */
                ops->put_back_send(opaque, qpn, &wr);
                return;
            }
            break;
        case RDMA_NEXT_LATER:
            verbs_pull_soon(v, RDMA_SQ, qpn);
            return;
        case RDMA_NEXT_NONE:
            *more = false;
            return;
        }
    }
}

/*
 * Likewise receives. A queue that had any is asked once more in the next turn,
 * so that a guest which posts in a row has to ring once.
 */
static void pull_recvs(RdmaVerbs *v, RdmaQueue queue, uint32_t id,
                       uint32_t *budget)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;
    void *opaque = v->parent_obj.client_opaque;
    bool found = false;
    bool *more;

    while ((more = verbs_more_of(v, queue, id)) && *more &&
           verbs_recv_room(v, queue, id)) {
        RdmaRecvWr wr;

        if (!*budget) {
            verbs_pull_soon(v, queue, id);
            return;
        }
        --*budget;
        if (ops->next_recv(opaque, queue, id, verbs_recv_flushes(v, queue, id),
                           &wr)) {
            verbs_post_recv(v, queue, id, &wr);
            found = true;
        } else if (found) {
            verbs_pull_soon(v, queue, id);
            return;
        } else if (ops->recv_sleep(opaque, queue, id)) {
            *more = false;
        }
    }
}

void verbs_pull_run(RdmaVerbs *v)
{
    g_autoptr(GHashTable) now = NULL;
    uint32_t budget = PULL_BUDGET;
    GHashTableIter iter;
    void *key;

    if (!v->running || !g_hash_table_size(v->pulls)) {
        return;
    }
    /* What comes from here on is the next turn's. */
    now = g_steal_pointer(&v->pulls);
    v->pulls = g_hash_table_new(NULL, NULL);
    /* Receives first: sends may be for a QP of this device. */
    g_hash_table_iter_init(&iter, now);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        uint32_t n = GPOINTER_TO_UINT(key);

        pull_recvs(v, n & VERBS_SRQ_KEY ? RDMA_SRQ : RDMA_RQ,
                   n & ~VERBS_SRQ_KEY, &budget);
    }
    g_hash_table_iter_init(&iter, now);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        uint32_t n = GPOINTER_TO_UINT(key);

        if (!(n & VERBS_SRQ_KEY)) {
            pull_sends(v, n, &budget);
        }
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
