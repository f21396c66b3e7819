/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asynchronous events of the backend and the device.
 *
 * A list has the events that the driver has not received yet. Each pair of type
 * and id is there at most once, and the events of an object are dropped when it
 * is destroyed. So the number of objects bounds the length of the list.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "int.h"

struct RdmaHcaEvent {
    uint64_t key;                   /* of the hash table: type and id */
    RdmaEvent event;
    QTAILQ_ENTRY(RdmaHcaEvent) next;
};

static uint64_t event_key(const RdmaEvent *event)
{
    return (uint64_t)event->type << 32 | event->id;
}

/* The table of the objects that have events of this type, or NULL */
static const RdmaHcaTable *table_of(const RdmaHca *hca, RdmaEventType type)
{
    switch (type) {
    case RDMA_EVENT_CQ_ERR:
        return &hca->cqs;
    case RDMA_EVENT_QP_FATAL:
    case RDMA_EVENT_QP_REQ_ERR:
    case RDMA_EVENT_QP_ACCESS_ERR:
    case RDMA_EVENT_COMM_EST:
    case RDMA_EVENT_SQ_DRAINED:
    case RDMA_EVENT_LAST_WQE_REACHED:
        return &hca->qps;
    case RDMA_EVENT_SRQ_ERR:
    case RDMA_EVENT_SRQ_LIMIT_REACHED:
        return &hca->srqs;
    default:
        return NULL;
    }
}

/* Is the type known, and does its object exist? */
static bool is_valid(const RdmaHca *hca, const RdmaEvent *event)
{
    const RdmaHcaTable *t = table_of(hca, event->type);

    switch (event->type) {
    case RDMA_EVENT_PORT_ACTIVE:
    case RDMA_EVENT_PORT_ERR:
    case RDMA_EVENT_GID_CHANGE:
        return event->id == RDMA_PORT_NUM;
    default:
        return t && rdma_hca_table_get(t, event->id);
    }
}

static void drop_event(RdmaHcaEvents *e, RdmaHcaEvent *p)
{
    g_hash_table_remove(e->by_key, &p->key);
    QTAILQ_REMOVE(&e->pending, p, next);
    g_free(p);
}

static void drop_events(RdmaHcaEvents *e)
{
    RdmaHcaEvent *p, *next;

    QTAILQ_FOREACH_SAFE(p, &e->pending, next, next) {
        drop_event(e, p);
    }
}

/* Put the event at the end of the list. A pending one moves there. */
static void add_event(RdmaHcaEvents *e, const RdmaEvent *event)
{
    uint64_t key = event_key(event);
    RdmaHcaEvent *p = g_hash_table_lookup(e->by_key, &key);

    if (p) {
        QTAILQ_REMOVE(&e->pending, p, next);
    } else {
        p = g_new0(RdmaHcaEvent, 1);
        p->key = key;
        p->event = *event;
        g_hash_table_insert(e->by_key, &p->key, p);
    }
    QTAILQ_INSERT_TAIL(&e->pending, p, next);
}

void rdma_hca_event_raise(RdmaHca *hca, RdmaEventType type, uint32_t id)
{
    const RdmaEvent event = { .type = type, .id = id };

    trace_rdma_hca_event(hca->owner, type, id);
    if (hca->ops->has_events(hca) && is_valid(hca, &event)) {
        add_event(&hca->events, &event);
        hca->ops->event_pending(hca);
    }
}

void rdma_hca_event_done(RdmaHca *hca, const RdmaEvent *event)
{
    drop_event(&hca->events, container_of(event, RdmaHcaEvent, event));
}

void rdma_hca_events_forget(RdmaHca *hca, const RdmaHcaTable *t, uint32_t id)
{
    /* Thousands may be pending, so look up those that the object can have. */
    for (unsigned type = 0; type <= RDMA_EVENT_GID_CHANGE; type++) {
        RdmaEvent event = { .type = type, .id = id };
        uint64_t key = event_key(&event);
        RdmaHcaEvent *p = table_of(hca, type) == t
                          ? g_hash_table_lookup(hca->events.by_key, &key)
                          : NULL;

        if (p) {
            drop_event(&hca->events, p);
        }
    }
}

/* The port */

void rdma_hca_port_check(RdmaHca *hca)
{
    RdmaPortAttr port = {};
    bool active;

    rdma_hca_port_get(hca, &port);
    active = port.state == RDMA_PORT_ACTIVE;
    if (active != hca->events.port_active) {
        hca->events.port_active = active;
        rdma_hca_event_raise(hca, active ? RDMA_EVENT_PORT_ACTIVE
                                         : RDMA_EVENT_PORT_ERR,
                             RDMA_PORT_NUM);
    }
}

/* Migration */

uint32_t rdma_hca_events_count(RdmaHca *hca)
{
    return g_hash_table_size(hca->events.by_key);
}

const RdmaEvent *rdma_hca_events_next(RdmaHca *hca, const RdmaEvent *event)
{
    RdmaHcaEvent *p = event ? container_of(event, RdmaHcaEvent, event) : NULL;

    p = p ? QTAILQ_NEXT(p, next) : QTAILQ_FIRST(&hca->events.pending);
    return p ? &p->event : NULL;
}

bool rdma_hca_event_load(RdmaHca *hca, const RdmaEvent *event)
{
    uint64_t key = event_key(event);

    if (!is_valid(hca, event) ||
        g_hash_table_contains(hca->events.by_key, &key)) {
        return false;
    }
    add_event(&hca->events, event);
    return true;
}

/* Life of the list */

void rdma_hca_events_reset(RdmaHca *hca)
{
    drop_events(&hca->events);
    rdma_hca_port_check(hca);
}

void rdma_hca_events_init(RdmaHca *hca)
{
    QTAILQ_INIT(&hca->events.pending);
    hca->events.by_key = g_hash_table_new(g_int64_hash, g_int64_equal);
    rdma_hca_port_check(hca);
}

void rdma_hca_events_free(RdmaHca *hca)
{
    drop_events(&hca->events);
    g_hash_table_destroy(hca->events.by_key);
}
