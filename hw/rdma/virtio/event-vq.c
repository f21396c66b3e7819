/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event virtqueue for asynchronous events. Without a buffer events stay
 * pending.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "queue.h"

/*
 * Write @event to a buffer of the driver. False without a buffer or budget.
 * Sets *@used if a buffer was returned, which may have been too small.
 */
static bool push_event(VirtIORdma *s, const RdmaEvent *event, bool *used,
                       uint32_t *budget)
{
    const struct virtio_rdma_event bytes = {
        .type = cpu_to_le32(event->type),
        .id = cpu_to_le32(event->id),
    };
    size_t size = sizeof(bytes);

    while (*budget) {
        g_autofree VirtQueueElement *elem = NULL;
        size_t room;
        bool fits;

        if (!virtio_rdma_ring_check(s, s->event_vq)) {
            return false;
        }
        elem = virtqueue_pop(s->event_vq, sizeof(VirtQueueElement));
        if (!elem) {
            return false;
        }
        rdma_work_pay(budget, RDMA_WORK_WR + rdma_vq_elem_work(elem));
        room = iov_size(elem->in_sg, elem->in_num);
        fits = room >= size;
        if (fits) {
            iov_from_buf(elem->in_sg, elem->in_num, 0, &bytes, size);
        } else {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: a buffer for events "
                          "has %zu writable bytes, less than %zu\n", room,
                          size);
        }
        virtqueue_push(s->event_vq, elem, fits ? size : 0);
        *used = true;
        if (fits) {
            return true;
        }
    }
    return false;
}

void virtio_rdma_events_run(VirtIORdma *s)
{
    uint32_t budget = RDMA_TURN_BUDGET;
    const RdmaEvent *event;
    bool used = false;

    s->sched_events = false;
    if (!s->event_vq) {
        return;
    }
    while ((event = rdma_hca_events_next(&s->hca, NULL)) &&
           push_event(s, event, &used, &budget)) {
        rdma_hca_event_done(&s->hca, event);
    }
    if (!budget) {
        virtio_rdma_schedule(s, &s->sched_events);
    }
    if (used) {
        rdma_vq_notify(&s->notify, s->event_vq);
    }
}
