/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asynchronous events of the host's device. The guest gets those of its own
 * objects.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "int.h"
#include "../trace.h"

/* Events to read at once */
#define EVENT_BATCH 64

static void qp_event(RdmaVerbs *v, VerbsQp *qp, enum ibv_event_type type)
{
    if (verbs_get(v->qps, qp->init.qpn) != qp || qp->obj.destroying) {
        return;
    }
    if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
        type == IBV_EVENT_QP_ACCESS_ERR) {
        verbs_qp_set_state(v, qp, RDMA_QPS_ERR);
    }
    verbs_raise_event(v, (RdmaEventType)type, qp->init.qpn);
}

static void cq_event(RdmaVerbs *v, VerbsCq *cq)
{
    if (verbs_get_live(v->cqs, cq->obj.num) == cq) {
        verbs_cq_fail(v, cq->obj.num);
    }
}

static void srq_event(RdmaVerbs *v, VerbsSrq *srq, enum ibv_event_type type)
{
    if (verbs_get_live(v->srqs, srq->obj.num) == srq) {
        verbs_raise_event(v, (RdmaEventType)type, srq->obj.num);
    }
}

static void port_event(RdmaVerbs *v)
{
    if (verbs_dev_update_port(v)) {
        v->parent_obj.client_ops->port_changed(v->parent_obj.client_opaque);
    }
}

static void handle(RdmaVerbs *v, const struct ibv_async_event *e)
{
    trace_rdma_verbs_event(v, e->event_type,
                           ibv_event_type_str(e->event_type));
    switch (e->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        qp_event(v, e->element.qp->qp_context, e->event_type);
        break;
    case IBV_EVENT_CQ_ERR:
        cq_event(v, e->element.cq->cq_context);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        srq_event(v, e->element.srq->srq_context, e->event_type);
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        port_event(v);
        break;
    case IBV_EVENT_GID_CHANGE:
        port_event(v);
        verbs_gids_changed(v);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        qatomic_set(&v->dev.gone, true);
        port_event(v);
        verbs_qps_device_gone(v);
        break;
    default:
        break;
    }
}

static void async_read(void *opaque)
{
    RdmaVerbs *v = opaque;
    RdmaBackend *rb = &v->parent_obj;

    if (rdma_backend_busy(rb)) {
        /* In a nested event loop: verbs_events_resume() listens again. */
        rdma_backend_put_off(rb, VERBS_PENDING_EVENTS);
        qemu_set_fd_handler(v->dev.ctx->async_fd, NULL, NULL, NULL);
        return;
    }
    rdma_backend_enter(rb);
    for (int i = 0; i < EVENT_BATCH; i++) {
        struct ibv_async_event event;

        if (ibv_get_async_event(v->dev.ctx, &event)) {
            break;
        }
        handle(v, &event);
        /* The host destroys the object only after this. */
        ibv_ack_async_event(&event);
    }
    rdma_backend_leave(rb);
}

void verbs_events_resume(RdmaVerbs *v)
{
    qemu_set_fd_handler(v->dev.ctx->async_fd, async_read, NULL, v);
}

bool verbs_events_init(RdmaVerbs *v, Error **errp)
{
    if (!g_unix_set_fd_nonblocking(v->dev.ctx->async_fd, true, NULL)) {
        error_setg_errno(errp, errno, "cannot read events of RDMA device "
                         "'%s'", v->ibdev);
        return false;
    }
    qemu_set_fd_handler(v->dev.ctx->async_fd, async_read, NULL, v);
    return true;
}

void verbs_events_free(RdmaVerbs *v)
{
    qemu_set_fd_handler(v->dev.ctx->async_fd, NULL, NULL, NULL);
}
