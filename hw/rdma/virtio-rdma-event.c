/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asynchronous events: what the backend and the device have to say, and the
 * event virtqueue that takes it to the driver.
 *
 * Events that find no buffer wait in a list, each (type, id) once. The list
 * is as long as there are objects at most: an object that is destroyed takes
 * its events along.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

/* Types of events that an object can have, at most. */
#define MAX_EVENTS 8

typedef struct VirtIORdmaEvent {
    uint64_t key;                   /* what the table finds it by */
    RdmaEvent event;
    QTAILQ_ENTRY(VirtIORdmaEvent) next;
} VirtIORdmaEvent;

struct VirtIORdmaEvents {
    VirtQueue *vq;                  /* NULL: events are not offered */
    uint16_t seen;                  /* for virtio_rdma_check_ring() */
    QTAILQ_HEAD(, VirtIORdmaEvent) pending;
    GHashTable *by_key;
    bool port_active;               /* as the driver has been told */
};

static uint64_t event_key(const RdmaEvent *event)
{
    return (uint64_t)event->type << 32 | event->id;
}

/* The kind of object that the id of an event names. */
static VirtIORdmaEventOf event_of(RdmaEventType type)
{
    switch (type) {
    case RDMA_EVENT_CQ_ERR:
        return VIRTIO_RDMA_EVENT_OF_CQ;
    case RDMA_EVENT_QP_FATAL:
    case RDMA_EVENT_QP_REQ_ERR:
    case RDMA_EVENT_QP_ACCESS_ERR:
    case RDMA_EVENT_COMM_EST:
    case RDMA_EVENT_SQ_DRAINED:
    case RDMA_EVENT_LAST_WQE_REACHED:
        return VIRTIO_RDMA_EVENT_OF_QP;
    case RDMA_EVENT_SRQ_ERR:
    case RDMA_EVENT_SRQ_LIMIT_REACHED:
        return VIRTIO_RDMA_EVENT_OF_SRQ;
    case RDMA_EVENT_PORT_ACTIVE:
    case RDMA_EVENT_PORT_ERR:
        return VIRTIO_RDMA_EVENT_OF_PORT;
    default:
        return VIRTIO_RDMA_EVENT_OF_NONE;
    }
}

/* Is it an event of the ABI, about an object that exists? */
static bool is_valid(VirtIORdma *s, const RdmaEvent *event)
{
    switch (event_of(event->type)) {
    case VIRTIO_RDMA_EVENT_OF_CQ:
        return virtio_rdma_table_get(&s->cqs, event->id);
    case VIRTIO_RDMA_EVENT_OF_QP:
        return virtio_rdma_table_get(&s->qps, event->id);
    case VIRTIO_RDMA_EVENT_OF_SRQ:
        return virtio_rdma_table_get(&s->srqs, event->id);
    case VIRTIO_RDMA_EVENT_OF_PORT:
        return event->id == VIRTIO_RDMA_PORT;
    default:
        return false;
    }
}

static void drop_event(VirtIORdmaEvents *e, VirtIORdmaEvent *p)
{
    g_hash_table_remove(e->by_key, &p->key);
    QTAILQ_REMOVE(&e->pending, p, next);
    g_free(p);
}

/* Puts the event at the end, also if it waits already: the order is right. */
static void add_event(VirtIORdmaEvents *e, const RdmaEvent *event)
{
    uint64_t key = event_key(event);
    VirtIORdmaEvent *p = g_hash_table_lookup(e->by_key, &key);

    if (p) {
        QTAILQ_REMOVE(&e->pending, p, next);
    } else {
        p = g_new0(VirtIORdmaEvent, 1);
        p->key = key;
        p->event = *event;
        g_hash_table_insert(e->by_key, &p->key, p);
    }
    QTAILQ_INSERT_TAIL(&e->pending, p, next);
}

/*
 * Write @event to a buffer of the driver. False if there is none. @used: a
 * buffer went back.
 */
static bool push_event(VirtIORdma *s, const RdmaEvent *event, bool *used)
{
    VirtIORdmaEvents *e = s->events;
    uint8_t buf[VIRTIO_RDMA_EVENT_ROOM];
    size_t size = s->codec->event_size;

    s->codec->put_event(buf, event);
    for (int budget = VIRTQUEUE_MAX_SIZE; budget; budget--) {
        g_autofree VirtQueueElement *elem = NULL;
        bool fits;

        if (!virtio_rdma_check_ring(s, e->vq, &e->seen)) {
            return false;
        }
        elem = virtqueue_pop(e->vq, sizeof(VirtQueueElement));
        if (!elem) {
            return false;
        }
        fits = iov_size(elem->in_sg, elem->in_num) >= size;
        if (fits) {
            iov_from_buf(elem->in_sg, elem->in_num, 0, buf, size);
        } else {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: a buffer for events "
                          "has less than %zu writable bytes\n", size);
        }
        virtqueue_push(e->vq, elem, fits ? size : 0);
        *used = true;
        if (fits) {
            return true;
        }
    }
    return false;
}

void virtio_rdma_run_events(VirtIORdma *s)
{
    VirtIORdmaEvents *e = s->events;
    VirtIORdmaEvent *p;
    bool used = false;
    bool was;

    if (!e->vq || QTAILQ_EMPTY(&e->pending) || !virtio_rdma_active(s)) {
        return;
    }
    was = virtio_rdma_enter(s);
    while ((p = QTAILQ_FIRST(&e->pending)) && push_event(s, &p->event, &used)) {
        drop_event(e, p);
    }
    if (used) {
        virtio_notify(VIRTIO_DEVICE(s), e->vq);
    }
    virtio_rdma_leave(s, was);
}

void virtio_rdma_raise_event(VirtIORdma *s, RdmaEventType type, uint32_t id)
{
    const RdmaEvent event = { .type = type, .id = id };

    trace_virtio_rdma_event(s, type, id);
    if (!virtio_rdma_has(s, VIRTIO_RDMA_F_EVENTS) ||
        !(VIRTIO_DEVICE(s)->status & VIRTIO_CONFIG_S_DRIVER_OK) ||
        !is_valid(s, &event)) {
        return;
    }
    add_event(s->events, &event);
    virtio_rdma_run_events(s);
}

void virtio_rdma_forget_events(VirtIORdma *s, VirtIORdmaEventOf of,
                               uint32_t id)
{
    VirtIORdmaEvent *p, *tmp;

    QTAILQ_FOREACH_SAFE(p, &s->events->pending, next, tmp) {
        if (p->event.id == id && event_of(p->event.type) == of) {
            drop_event(s->events, p);
        }
    }
}

void virtio_rdma_reset_event_queue(VirtIORdma *s)
{
    s->events->seen = 0;
}

/* Callbacks of the backend */

void virtio_rdma_backend_event(void *opaque, const RdmaEvent *event)
{
    VirtIORdma *s = opaque;
    VirtIORdmaQp *qp = NULL;

    if (event_of(event->type) == VIRTIO_RDMA_EVENT_OF_QP) {
        qp = virtio_rdma_table_get(&s->qps, event->id);
    }
    if (qp) {
        /* Its state may have changed, and what may be posted with it. */
        virtio_rdma_schedule_qp(s, qp);
    }
    virtio_rdma_raise_event(s, event->type, event->id);
}

void virtio_rdma_check_port(VirtIORdma *s)
{
    RdmaPortAttr port = {};
    bool active;

    s->bc->query_port(s->backend, &port);
    active = port.state == RDMA_PORT_ACTIVE;
    if (active != s->events->port_active) {
        s->events->port_active = active;
        virtio_rdma_raise_event(s, active ? RDMA_EVENT_PORT_ACTIVE
                                          : RDMA_EVENT_PORT_ERR,
                                VIRTIO_RDMA_PORT);
    }
}

void virtio_rdma_port_changed(void *opaque)
{
    VirtIORdma *s = opaque;
    RdmaPortAttr port = {};

    s->bc->query_port(s->backend, &port);
    trace_virtio_rdma_port_changed(s, port.state, port.phys_mtu);
    virtio_rdma_update_config(s);
    virtio_notify_config(VIRTIO_DEVICE(s));
    virtio_rdma_check_port(s);
}

/* Migration */

uint32_t virtio_rdma_max_events(VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->limits;

    return MAX_EVENTS * (l->max_qp + l->max_cq + l->max_srq + 1);
}

uint32_t virtio_rdma_count_events(VirtIORdma *s)
{
    return g_hash_table_size(s->events->by_key);
}

const RdmaEvent *virtio_rdma_next_event(VirtIORdma *s, const RdmaEvent *event)
{
    VirtIORdmaEvent *p = event ? container_of(event, VirtIORdmaEvent, event)
                               : NULL;

    p = p ? QTAILQ_NEXT(p, next) : QTAILQ_FIRST(&s->events->pending);
    return p ? &p->event : NULL;
}

bool virtio_rdma_load_event(VirtIORdma *s, const RdmaEvent *event)
{
    uint64_t key = event_key(event);

    if (!is_valid(s, event) ||
        g_hash_table_contains(s->events->by_key, &key)) {
        return false;
    }
    add_event(s->events, event);
    return true;
}

bool virtio_rdma_port_was_active(VirtIORdma *s)
{
    return s->events->port_active;
}

void virtio_rdma_load_port(VirtIORdma *s, bool active)
{
    VirtIORdmaEvents *e = s->events;

    e->port_active = active;
    if (e->vq) {
        e->seen = virtio_queue_get_last_avail_idx(
            VIRTIO_DEVICE(s), virtio_get_queue_index(e->vq));
    }
}

/* Life */

void virtio_rdma_events_reset(VirtIORdma *s)
{
    VirtIORdmaEvent *p;

    while ((p = QTAILQ_FIRST(&s->events->pending))) {
        drop_event(s->events, p);
    }
    s->events->seen = 0;
    virtio_rdma_check_port(s);
}

void virtio_rdma_events_init(VirtIORdma *s)
{
    VirtIORdmaEvents *e = g_new0(VirtIORdmaEvents, 1);

    QTAILQ_INIT(&e->pending);
    e->by_key = g_hash_table_new(g_int64_hash, g_int64_equal);
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_EVENTS)) {
        e->vq = virtio_get_queue(VIRTIO_DEVICE(s),
                                 VIRTIO_RDMA_EVENT_VQ(s->limits.max_cq,
                                                      s->limits.max_qp));
    }
    s->events = e;
    virtio_rdma_check_port(s);
}

void virtio_rdma_events_free(VirtIORdma *s)
{
    VirtIORdmaEvent *p;

    while ((p = QTAILQ_FIRST(&s->events->pending))) {
        drop_event(s->events, p);
    }
    g_hash_table_destroy(s->events->by_key);
    g_free(s->events);
    s->events = NULL;
}
