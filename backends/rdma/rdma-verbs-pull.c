/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send queues of the guest: what they have is pulled, up to the room that the
 * host's queue has, after a kick and whenever there is room again.
 */
#include "qemu/osdep.h"
#include "rdma-verbs-int.h"

/* Work requests that are pulled in one turn of the main loop */
#define PULL_BUDGET 512

static void kick(RdmaBackend *rb, uint32_t qpn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsSends *sends = verbs_sends(v, qpn);

    if (sends) {
        sends->more = true;
        g_hash_table_add(v->pulls, GUINT_TO_POINTER(qpn));
    }
}

/* Pull until the guest has no more, or the host no room. */
static void pull(RdmaVerbs *v, uint32_t qpn, uint32_t *budget)
{
    const RdmaBackendClientOps *ops = v->parent_obj.client_ops;
    void *opaque = v->parent_obj.client_opaque;
    VerbsSends *sends;

    while ((sends = verbs_sends(v, qpn)) && sends->more &&
           verbs_send_room(v, qpn)) {
        RdmaSendWr wr;

        if (!*budget) {
            verbs_pull_soon(v, qpn);
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
            verbs_pull_soon(v, qpn);
            return;
        case RDMA_NEXT_NONE:
            sends->more = false;
            return;
        }
    }
}

void verbs_pull_run(RdmaVerbs *v)
{
    g_autoptr(GHashTable) now = NULL;
    uint32_t budget = PULL_BUDGET;
    GHashTableIter iter;
    void *qpn;

    if (!v->running || !g_hash_table_size(v->pulls)) {
        return;
    }
    /* What comes from here on is the next turn's. */
    now = g_steal_pointer(&v->pulls);
    v->pulls = g_hash_table_new(NULL, NULL);
    g_hash_table_iter_init(&iter, now);
    while (g_hash_table_iter_next(&iter, &qpn, NULL)) {
        pull(v, GPOINTER_TO_UINT(qpn), &budget);
    }
}

static void run(RdmaBackend *rb)
{
    verbs_pull_run(RDMA_BACKEND_VERBS(rb));
}

void verbs_pull_class_init(RdmaBackendClass *rbc)
{
    rbc->kick = kick;
    rbc->run = run;
}
