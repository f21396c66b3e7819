/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asynchronous events of the backend and the device, and the event virtqueue.
 *
 * Events that find no buffer are pending in a list, each pair of type and id
 * once. They are dropped when their object is destroyed, so the length of the
 * list is bounded by the number of objects.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-queue.h"

/* An object has at most so many types of events. */
#define MAX_EVENTS 8

typedef struct VirtIORdmaEvent {
    uint64_t key;                   /* what the table finds it by */
    RdmaEvent event;
    QTAILQ_ENTRY(VirtIORdmaEvent) next;
} VirtIORdmaEvent;

struct VirtIORdmaEvents {
    VirtQueue *vq;                  /* NULL: events are not offered */
    uint16_t seen;                  /* for virtio_rdma_ring_check() */
    QTAILQ_HEAD(, VirtIORdmaEvent) pending;
    GHashTable *by_key;
    bool port_active;               /* as the driver has been told */
};

static uint64_t event_key(const RdmaEvent *event)
{
    return (uint64_t)event->type << 32 | event->id;
}

VirtIORdmaEventOf virtio_rdma_event_of(RdmaEventType type)
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
    case RDMA_EVENT_GID_CHANGE:
        return VIRTIO_RDMA_EVENT_OF_PORT;
    default:
        return VIRTIO_RDMA_EVENT_OF_NONE;
    }
}

/* Is it an event of the ABI, about an object that exists? */
static bool is_valid(VirtIORdma *s, const RdmaEvent *event)
{
    switch (virtio_rdma_event_of(event->type)) {
    case VIRTIO_RDMA_EVENT_OF_CQ:
        return virtio_rdma_table_get(&s->cqs, event->id);
    case VIRTIO_RDMA_EVENT_OF_QP:
        return virtio_rdma_table_get(&s->qps, event->id);
    case VIRTIO_RDMA_EVENT_OF_SRQ:
        return virtio_rdma_table_get(&s->srqs, event->id);
    case VIRTIO_RDMA_EVENT_OF_PORT:
        return event->id == RDMA_PORT_NUM;
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

static void drop_events(VirtIORdmaEvents *e)
{
    VirtIORdmaEvent *p, *next;

    QTAILQ_FOREACH_SAFE(p, &e->pending, next, next) {
        drop_event(e, p);
    }
}

/* Put the event at the end of the list, also if it is pending already. */
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
 * Write @event to a buffer of the driver. False if there is none. Sets *@used
 * if any buffer was returned.
 */
static bool push_event(VirtIORdma *s, const RdmaEvent *event, bool *used)
{
    VirtIORdmaEvents *e = s->events;
    uint8_t buf[VIRTIO_RDMA_EVENT_SIZE];
    size_t size = VIRTIO_RDMA_EVENT_SIZE;

    virtio_rdma_codec_put_event(buf, event);
    for (int left = VIRTQUEUE_MAX_SIZE; left; left--) {
        g_autofree VirtQueueElement *elem = NULL;
        size_t room;
        bool fits;

        if (!virtio_rdma_ring_check(s, e->vq, &e->seen)) {
            return false;
        }
        elem = virtqueue_pop(e->vq, sizeof(VirtQueueElement));
        if (!elem) {
            return false;
        }
        room = iov_size(elem->in_sg, elem->in_num);
        fits = room >= size;
        if (fits) {
            virtio_rdma_codec_write(elem, buf, size);
        } else {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: a buffer for events "
                          "has %zu writable bytes, less than %zu\n", room,
                          size);
        }
        virtqueue_push(e->vq, elem, fits ? size : 0);
        *used = true;
        if (fits) {
            return true;
        }
    }
    return false;
}

void virtio_rdma_events_run(VirtIORdma *s)
{
    VirtIORdmaEvents *e = s->events;
    VirtIORdmaEvent *p, *next;
    bool used = false;

    if (!e->vq || !virtio_rdma_active(s)) {
        return;
    }
    virtio_rdma_enter(s);
    QTAILQ_FOREACH_SAFE(p, &e->pending, next, next) {
        if (!push_event(s, &p->event, &used)) {
            break;
        }
        drop_event(e, p);
    }
    if (used) {
        virtio_rdma_vq_notify(s, e->vq);
    }
    virtio_rdma_leave(s);
}

void virtio_rdma_event_raise(VirtIORdma *s, RdmaEventType type, uint32_t id)
{
    const RdmaEvent event = { .type = type, .id = id };

    trace_virtio_rdma_event(s, type, id);
    if (!virtio_rdma_has(s, VIRTIO_RDMA_F_EVENTS) ||
        !(VIRTIO_DEVICE(s)->status & VIRTIO_CONFIG_S_DRIVER_OK) ||
        !is_valid(s, &event)) {
        return;
    }
    add_event(s->events, &event);
    if (virtio_rdma_may_use_vqs(s)) {
        virtio_rdma_events_run(s);
    } else {
        s->sched_events = true;
        virtio_rdma_bh_schedule(s);
    }
}

void virtio_rdma_events_forget(VirtIORdma *s, VirtIORdmaEventOf of,
                               uint32_t id)
{
    /* Thousands may be pending: look for those that the object can have. */
    for (unsigned type = 0; type <= RDMA_EVENT_GID_CHANGE; type++) {
        RdmaEvent event = { .type = type, .id = id };
        uint64_t key = event_key(&event);
        VirtIORdmaEvent *p = virtio_rdma_event_of(type) == of
                             ? g_hash_table_lookup(s->events->by_key, &key)
                             : NULL;

        if (p) {
            drop_event(s->events, p);
        }
    }
}

void virtio_rdma_events_reset_vq(VirtIORdma *s)
{
    s->events->seen = 0;
}

/* The port */

void virtio_rdma_port_check(VirtIORdma *s)
{
    RdmaPortAttr port = {};
    bool active;

    s->bc->query_port(s->backend, &port);
    active = port.state == RDMA_PORT_ACTIVE;
    if (active != s->events->port_active) {
        s->events->port_active = active;
        virtio_rdma_event_raise(s, active ? RDMA_EVENT_PORT_ACTIVE
                                          : RDMA_EVENT_PORT_ERR,
                                RDMA_PORT_NUM);
    }
}

void virtio_rdma_port_changed(void *opaque)
{
    VirtIORdma *s = opaque;
    RdmaPortAttr port = {};

    if (s->unrealizing) {
        return;
    }
    s->port_changed = !VIRTIO_DEVICE(s)->vm_running;
    if (s->port_changed) {
        return;
    }
    s->bc->query_port(s->backend, &port);
    trace_virtio_rdma_port_changed(s, port.state, port.phys_mtu);
    virtio_rdma_config_update(s);
    virtio_notify_config(VIRTIO_DEVICE(s));
    virtio_rdma_port_check(s);
}

/* Migration */

uint32_t virtio_rdma_events_max(VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->limits;

    return MAX_EVENTS * (l->max_qp + l->max_cq + l->max_srq + 1);
}

uint32_t virtio_rdma_events_count(VirtIORdma *s)
{
    return g_hash_table_size(s->events->by_key);
}

const RdmaEvent *virtio_rdma_events_next(VirtIORdma *s, const RdmaEvent *event)
{
    VirtIORdmaEvent *p = event ? container_of(event, VirtIORdmaEvent, event)
                               : NULL;

    p = p ? QTAILQ_NEXT(p, next) : QTAILQ_FIRST(&s->events->pending);
    return p ? &p->event : NULL;
}

bool virtio_rdma_event_load(VirtIORdma *s, const RdmaEvent *event)
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

void virtio_rdma_port_load(VirtIORdma *s, bool active)
{
    VirtIORdmaEvents *e = s->events;

    e->port_active = active;
    if (e->vq) {
        e->seen = virtio_queue_get_last_avail_idx(
            VIRTIO_DEVICE(s), virtio_get_queue_index(e->vq));
    }
}

/* Made, reset and freed with the device */

void virtio_rdma_events_reset(VirtIORdma *s)
{
    drop_events(s->events);
    s->events->seen = 0;
    virtio_rdma_port_check(s);
}

void virtio_rdma_events_init(VirtIORdma *s)
{
    VirtIORdmaEvents *e = g_new0(VirtIORdmaEvents, 1);

    QTAILQ_INIT(&e->pending);
    e->by_key = g_hash_table_new(g_int64_hash, g_int64_equal);
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_EVENTS)) {
        e->vq = virtio_get_queue(VIRTIO_DEVICE(s),
                                 VIRTIO_RDMA_EVENT_VQ(s->max_vq_cq,
                                                      s->max_vq_qp));
    }
    s->events = e;
    virtio_rdma_port_check(s);
}

void virtio_rdma_events_free(VirtIORdma *s)
{
    drop_events(s->events);
    g_hash_table_destroy(s->events->by_key);
    g_free(s->events);
    s->events = NULL;
}
