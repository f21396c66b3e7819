/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The HCA as the client of its backend: how it finds and attaches to the
 * backend, and the callbacks of the backend.
 */
#include "qemu/osdep.h"
#include "migration/blocker.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/lockable.h"
#include "int.h"

static bool complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                     bool solicited)
{
    RdmaHca *hca = opaque;
    RdmaHcaCq *cq = rdma_hca_cq_get(hca, cqn);

    if (!cq) {
        return false;
    }
    if (wc->status != RDMA_WC_SUCCESS) {
        rdma_hca_error_note_completion(hca, wc);
    }
    return unlikely(hca->fault_points & RDMA_HCA_FAULT_AT_COMPLETE)
           ? rdma_hca_hold_complete(hca, cq, wc, solicited)
           : rdma_hca_cq_complete(hca, cq, wc, solicited);
}

static void retire(void *opaque, uint32_t qpn, RdmaQueue queue, uint32_t count)
{
    RdmaHca *hca = opaque;
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, qpn);

    if (qp) {
        rdma_hca_wq_retire(hca, queue == RDMA_SQ ? &qp->sq : &qp->rq, count);
    }
}

static void event(void *opaque, const RdmaEvent *event)
{
    RdmaHca *hca = opaque;
    RdmaHcaCq *cq = event->type == RDMA_EVENT_CQ_ERR
                    ? rdma_hca_cq_get(hca, event->id) : NULL;
    RdmaHcaSrq *srq = event->type == RDMA_EVENT_SRQ_ERR
                      ? rdma_hca_table_get(&hca->srqs, event->id) : NULL;

    if (cq) {
        /* This raises the event once; no completion may follow the event. */
        rdma_hca_cq_enter_error(hca, cq);
    } else if (srq) {
        /* The bottom half fails the SRQ and its QPs, and raises the event. */
        rdma_hca_wq_break(hca, &srq->wq);
    } else {
        rdma_hca_error_note_event(hca, event->type, event->id);
        rdma_hca_event_raise(hca, event->type, event->id);
    }
}

static RdmaNext next_send(void *opaque, uint32_t qpn, bool flush,
                          RdmaSendWr *wr)
{
    RdmaHca *hca = opaque;
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, qpn);

    return qp && rdma_hca_is_active(hca)
           ? rdma_hca_sq_next(hca, qp, flush, wr) : RDMA_NEXT_NONE;
}

static void put_back_send(void *opaque, uint32_t qpn, const RdmaSendWr *wr)
{
    RdmaHca *hca = opaque;
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, qpn);

    rdma_hca_fault_put_back(hca, qp);
    rdma_hca_sq_put_back(hca, qp, wr);
}

/* The RQ or SRQ @id; NULL if the device may not take WQEs from it */
static RdmaHcaWq *recv_queue(RdmaHca *hca, RdmaQueue queue, uint32_t id)
{
    RdmaHcaSrq *srq;
    RdmaHcaQp *qp;

    if (!rdma_hca_is_active(hca)) {
        return NULL;
    }
    if (queue == RDMA_SRQ) {
        srq = rdma_hca_table_get(&hca->srqs, id);
        return srq && !srq->error ? &srq->wq : NULL;
    }
    qp = rdma_hca_table_get(&hca->qps, id);
    return qp && !qp->srq ? &qp->rq : NULL;
}

static bool next_recv(void *opaque, RdmaQueue queue, uint32_t id, bool flush,
                      RdmaRecvWr *wr)
{
    RdmaHca *hca = opaque;
    RdmaHcaWq *wq = recv_queue(hca, queue, id);

    return wq && rdma_hca_rq_next(hca, wq, flush, wr);
}

static uint32_t recv_count(void *opaque, RdmaQueue queue, uint32_t id)
{
    RdmaHca *hca = opaque;
    RdmaHcaWq *wq = recv_queue(hca, queue, id);

    return wq ? rdma_hca_rq_count(hca, wq) : 0;
}

/*
 * True without a queue: when the device becomes active again, all queues are
 * kicked, so no WQE is missed.
 */
static bool recv_sleep(void *opaque, RdmaQueue queue, uint32_t id)
{
    RdmaHca *hca = opaque;
    RdmaHcaWq *wq = recv_queue(hca, queue, id);

    return !wq || rdma_hca_wq_sleep(hca, wq) != RDMA_NEXT_WR;
}

static void port_changed(void *opaque)
{
    rdma_hca_port_changed(opaque);
}

static void resume(void *opaque)
{
    RdmaHca *hca = opaque;

    hca->ops->resume(hca);
    qemu_bh_schedule(hca->bh);
}

static void flush(void *opaque)
{
    RdmaHca *hca = opaque;

    hca->ops->flush(hca);
}

static void run_pending(void *opaque, uint32_t pending)
{
    RdmaHca *hca = opaque;

    if (pending & RDMA_HCA_PENDING_BH) {
        qemu_bh_schedule(hca->bh);
    }
    if ((pending & RDMA_HCA_PENDING_WORK) && hca->work_bh) {
        qemu_bh_schedule(hca->work_bh);
    }
    if (pending & RDMA_HCA_PENDING_STOP) {
        /* A netdev on the stack may use the device until it ends. */
        rdma_hca_set_running(hca, false, false);
    }
    /* An iothread finds none of these bits, and must not read @unrealizing. */
    if (pending >= RDMA_HCA_PENDING_GUEST(0) && !hca->unrealizing) {
        hca->ops->run_pending(hca, pending);
    }
}

static bool gid_allowed(void *opaque, const uint8_t gid[RDMA_GID_LEN])
{
    return rdma_hca_gid_allowed(opaque, gid);
}

static bool loaded(void *opaque, const RdmaLoaded *obj)
{
    return rdma_hca_loaded(opaque, obj);
}

static const RdmaBackendClientOps client_ops = {
    .consumer = {
        .complete = complete,
        .retire = retire,
        .event = event,
        .next_send = next_send,
        .put_back_send = put_back_send,
        .next_recv = next_recv,
        .recv_count = recv_count,
        .recv_sleep = recv_sleep,
    },
    .port_changed = port_changed,
    .resume = resume,
    .flush = flush,
    .run_pending = run_pending,
    .gid_allowed = gid_allowed,
    .loaded = loaded,
};

bool rdma_hca_backend_get(RdmaHca *hca, const char *netdev,
                          RdmaBackend *rdmadev, const MACAddr *mac,
                          Error **errp)
{
    bool has_mac = !buffer_is_zero(mac, sizeof(*mac));
    g_autofree char *text = qemu_mac_strdup_printf(mac->a);

    if (netdev && rdmadev) {
        error_setg(errp, "netdev and rdmadev exclude each other: the backend "
                   "that rdmadev names has a netdev of its own");
        return false;
    }
    if (!netdev && !rdmadev) {
        error_setg(errp, "the device needs either a netdev (a RoCEv2 backend "
                   "is made for it) or an rdmadev (the id of a backend)");
        return false;
    }
    if (rdmadev && has_mac) {
        error_setg(errp, "mac goes with netdev; with rdmadev, set it on the "
                   "backend");
        return false;
    }
    hca->own_backend = !rdmadev;
    hca->backend = rdmadev ?: rdma_backend_new_default(hca->owner, netdev,
                                                       errp);
    if (!hca->backend) {
        hca->own_backend = false;
        return false;
    }
    hca->bc = RDMA_BACKEND_GET_CLASS(hca->backend);
    return !has_mac ||
           object_property_set_str(OBJECT(hca->backend), "mac", text, errp);
}

static bool block_migration(RdmaHca *hca, Error **errp)
{
    if (hca->bc->vmsd) {
        return true;
    }
    error_setg(&hca->migration_blocker, "%s cannot be migrated: the state of "
               "its backend (%s) stays on this host; with the backend %s it "
               "can", object_get_typename(OBJECT(hca->dev)),
               rdma_hca_backend_type(hca), TYPE_RDMA_BACKEND_DEFAULT);
    return migrate_add_blocker(&hca->migration_blocker, errp) == 0;
}

/* Set limits to 0 if the backend lacks their method. */
static void restrict_limits(const RdmaBackendClass *bc, RdmaBackendLimits *l)
{
    if (!bc->create_srq || !l->max_srq || !l->max_srq_wr) {
        l->max_srq = l->max_srq_wr = l->max_srq_sge = 0;
    }
    if (!bc->create_mw) {
        l->max_mw = 0;
    }
    if (!bc->set_mcast || !l->max_mcast_grp || !l->max_mcast_qp_attach) {
        l->max_mcast_grp = l->max_mcast_qp_attach = 0;
    }
    if (!bc->set_extensions) {
        l->extensions = 0;
    }
}

bool rdma_hca_attach(RdmaHca *hca, AddressSpace *dma_as, Error **errp)
{
    if (!rdma_backend_attach(hca->backend, &client_ops, hca, dma_as,
                             hca->ctx, &hca->limits, errp)) {
        return false;
    }
    if (!block_migration(hca, errp)) {
        rdma_backend_detach(hca->backend);
        return false;
    }
    restrict_limits(hca->bc, &hca->limits);
    hca->backend->guard = &hca->dev->mem_reentrancy_guard;
    return true;
}

void rdma_hca_use_extensions(RdmaHca *hca, uint32_t extensions)
{
    hca->extensions = extensions;
    if (hca->bc->set_extensions) {
        hca->bc->set_extensions(hca->backend, extensions);
    }
}

void rdma_hca_detach(RdmaHca *hca)
{
    if (hca->work_bh) {
        /* The iothread may run, and schedule work_bh when it leaves. */
        WITH_QEMU_LOCK_GUARD(&hca->backend->lock) {
            qemu_bh_delete(hca->work_bh);
            hca->work_bh = NULL;
        }
    }
    rdma_backend_detach(hca->backend);
    migrate_del_blocker(&hca->migration_blocker);
    rdma_hca_backend_put(hca);
}

void rdma_hca_backend_put(RdmaHca *hca)
{
    if (hca->own_backend) {
        object_unparent(OBJECT(hca->backend));
    }
    hca->own_backend = false;
    hca->backend = NULL;
    hca->bc = NULL;
}
