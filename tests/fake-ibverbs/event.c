/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: descriptors that readers wait for, and
 * asynchronous events.
 */
#include "qemu/osdep.h"
#include <poll.h>
#include <sys/eventfd.h>
#include "internal.h"

typedef struct Event {
    struct ibv_async_event ibv;
    FakeObj *obj;                   /* NULL: port or device */
} Event;

bool fake_fifo_init(FakeFifo *fifo)
{
    g_queue_init(&fifo->items);
    fifo->fd = eventfd(0, EFD_CLOEXEC);
    return fifo->fd >= 0;
}

static void fifo_taken(FakeFifo *fifo)
{
    uint64_t value;

    if (g_queue_is_empty(&fifo->items) &&
        read(fifo->fd, &value, sizeof(value)) < 0) {
        abort();
    }
}

void fake_fifo_clear(FakeFifo *fifo, void (*done)(void *))
{
    void *item;

    while ((item = g_queue_pop_head(&fifo->items))) {
        if (done) {
            done(item);
        }
    }
    close(fifo->fd);
}

void fake_fifo_push(FakeFifo *fifo, void *item)
{
    uint64_t one = 1;

    g_queue_push_tail(&fifo->items, item);
    if (fifo->items.length == 1 &&
        write(fifo->fd, &one, sizeof(one)) < 0) {
        abort();
    }
}

void *fake_fifo_pop(FakeFifo *fifo)
{
    struct pollfd pfd = { .fd = fifo->fd, .events = POLLIN };
    void *item;

    while (g_queue_is_empty(&fifo->items)) {
        if (fcntl(fifo->fd, F_GETFL) & O_NONBLOCK) {
            errno = EAGAIN;
            return NULL;
        }
        fake_unlock();
        if (poll(&pfd, 1, -1) < 0 && errno != EINTR) {
            abort();
        }
        fake_lock();
    }
    item = g_queue_pop_head(&fifo->items);
    fifo_taken(fifo);
    return item;
}

void fake_fifo_remove(FakeFifo *fifo, void *item)
{
    if (g_queue_remove(&fifo->items, item)) {
        fifo_taken(fifo);
    }
}

static void event_push(FakeContext *ctx, enum ibv_event_type type,
                       FakeObj *obj)
{
    Event *event = g_new0(Event, 1);

    event->ibv.event_type = type;
    event->obj = obj;
    if (!obj) {
        event->ibv.element.port_num = 1;
    } else if (obj->kind == FAKE_QP) {
        event->ibv.element.qp = &((FakeQp *)obj)->ibv;
    } else if (obj->kind == FAKE_CQ) {
        event->ibv.element.cq = &((FakeCq *)obj)->ibv;
    } else {
        event->ibv.element.srq = &((FakeSrq *)obj)->ibv;
    }
    fake_fifo_push(&ctx->async, event);
}

void fake_event(enum ibv_event_type type, struct ibv_context *context,
                FakeObj *obj)
{
    GList *all;

    if (obj) {
        event_push(fake_context_of(context), type, obj);
        return;
    }
    all = fake_all(FAKE_CONTEXT);
    for (GList *l = all; l; l = l->next) {
        if (!((FakeContext *)l->data)->dead) {
            event_push(l->data, type, NULL);
        }
    }
    g_list_free(all);
}

void fake_event_flush(struct ibv_context *context, FakeObj *obj)
{
    FakeContext *ctx = fake_context_of(context);

    for (GList *l = ctx->async.items.head, *next; l; l = next) {
        Event *event = l->data;

        next = l->next;
        if (event->obj == obj) {
            fake_fifo_remove(&ctx->async, event);
            g_free(event);
        }
    }
    while (obj->reported != obj->acked) {
        fake_wait();
    }
}

int ibv_get_async_event(struct ibv_context *context,
                        struct ibv_async_event *ibv)
{
    int err = fake_begin("get_async_event");
    FakeContext *ctx = fake_context_of(context);
    Event *event = NULL;

    if (!err) {
        event = ctx->dead && g_queue_is_empty(&ctx->async.items) ?
            (errno = EIO, NULL) : fake_fifo_pop(&ctx->async);
        err = event ? 0 : errno;
    }
    if (event) {
        *ibv = event->ibv;
        if (event->obj) {
            event->obj->reported++;
        }
        g_free(event);
    }
    errno = fake_end(err == EAGAIN ? NULL : "get_async_event", err, "%s",
                     err ? "" : ibv_event_type_str(ibv->event_type));
    return err ? -1 : 0;
}

static FakeObj *object_of(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return &FAKE(FakeCq, event->element.cq)->obj;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return &FAKE(FakeQp, event->element.qp)->obj;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return &FAKE(FakeSrq, event->element.srq)->obj;
    default:
        return NULL;
    }
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    FakeObj *obj = object_of(event);

    fake_begin("ack_async_event");
    if (obj) {
        fake_check(obj, FAKE_KINDS);
        obj->acked++;
        fake_changed();
    }
    fake_end("ack_async_event", 0, "%s",
             ibv_event_type_str(event->event_type));
}
