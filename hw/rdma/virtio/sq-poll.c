/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Polling of direct SQs: a driver that keeps posting need not ring.
 *
 * A doorbell costs an exit of the vCPU and a turn of the backend. If older
 * sends are in flight, more doorbells are likely. The device then leaves the
 * queue awake and polls it: when the QP has a turn (RDMA_NEXT_LATER), and when
 * a timer fires after POLL_INTERVAL_NS. In between the main loop sleeps,
 * because the vCPU may need its processor to post.
 *
 * A send may wait for the timer. Programs that post each request after a reply
 * are faster with doorbells. So the device stops polling a queue that has too
 * few sends in an interval. It starts again after some more doorbells, about
 * twice as many after each failure.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "trace.h"
#include "queue.h"

#define POLL_INTERVAL_NS (40 * SCALE_US)
/* Fewer sends than this make an interval a poor one. */
#define MIN_SENDS 4
/*
 * Poor intervals in a row that end polling. The first may be short, as all
 * queues share a timer. A thread with higher priority, such as the main loop of
 * a peer, may keep the vCPU off its processor for another interval.
 */
#define MAX_POOR 2
/* The most doorbells after which the device polls again */
#define MAX_BACKOFF 63

static VirtIORdmaPoll *poll_of(VirtIORdmaQp *qp)
{
    return &qp->sq.slots.poll;
}

static void start_interval(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaPoll *poll = poll_of(qp);

    poll->start = qp->sq.slots.taken;
    if (QTAILQ_EMPTY(&s->polled_sqs)) {
        s->poll_at = qemu_clock_get_ns(QEMU_CLOCK_REALTIME) + POLL_INTERVAL_NS;
        timer_mod_ns(s->poll_timer, s->poll_at);
    }
    QTAILQ_INSERT_TAIL(&s->polled_sqs, poll, next);
}

/*
 * Are more sends likely after this doorbell? Sends of RC are in flight until
 * the peer has acknowledged them, so a program that waits for replies has none
 * at its doorbells. Sends of other types complete at once, so the time since
 * the last doorbell decides.
 */
static bool expects_more(VirtIORdmaQp *qp)
{
    int64_t now, before = poll_of(qp)->rung_at;

    if (qp->core.init.qp_type == RDMA_QPT_RC) {
        return qp->core.sq.count;
    }
    now = get_clock();
    poll_of(qp)->rung_at = now;
    return now - before < VIRTIO_RDMA_IN_A_ROW_NS;
}

void virtio_rdma_sq_poll_rang(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaPoll *poll = poll_of(qp);

    if (poll->is_on || !expects_more(qp)) {
        return;
    }
    if (poll->skip) {
        poll->skip--;
        return;
    }
    trace_virtio_rdma_sq_poll(s, qp->core.init.qpn, true);
    poll->is_on = true;
    poll->poor = 0;
    poll->until = virtio_rdma_poll_end(s);
    start_interval(s, qp);
}

bool virtio_rdma_sq_poll_continues(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaPoll *poll = poll_of(qp);
    uint32_t sends = qp->sq.slots.taken - poll->start;

    if (!poll->is_on || QTAILQ_IN_USE(poll, next)) {
        return poll->is_on;
    }
    if (sends) {
        poll->until = virtio_rdma_poll_end(s);
    }
    if (sends >= MIN_SENDS) {
        poll->poor = 0;
        poll->backoff = 0;
    } else if (!virtio_rdma_polls_until(poll->until) &&
               ++poll->poor == MAX_POOR) {
        trace_virtio_rdma_sq_poll(s, qp->core.init.qpn, false);
        poll->is_on = false;
        poll->backoff = MIN(2 * poll->backoff + 1, MAX_BACKOFF);
        poll->skip = poll->backoff;
        return false;
    }
    start_interval(s, qp);
    return true;
}

void virtio_rdma_sq_poll_end(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaPoll *poll = poll_of(qp);

    if (QTAILQ_IN_USE(poll, next)) {
        QTAILQ_REMOVE(&s->polled_sqs, poll, next);
    }
}

void virtio_rdma_sq_polls_run(VirtIORdma *s)
{
    VirtIORdmaPoll *poll;

    if (QTAILQ_EMPTY(&s->polled_sqs) ||
        qemu_clock_get_ns(QEMU_CLOCK_REALTIME) < s->poll_at) {
        return;
    }
    while ((poll = QTAILQ_FIRST(&s->polled_sqs))) {
        VirtIORdmaQp *qp = container_of(poll, VirtIORdmaQp, sq.slots.poll);

        QTAILQ_REMOVE(&s->polled_sqs, poll, next);
        rdma_hca_wq_mark(&s->hca, &qp->core.sq);
    }
}

static void poll_now(void *opaque)
{
    VirtIORdma *s = opaque;

    rdma_hca_work_run(&s->hca);
}

void virtio_rdma_sq_polls_init(VirtIORdma *s)
{
    QTAILQ_INIT(&s->polled_sqs);
    /* The main loop rounds timers of its AioContext to milliseconds. */
    s->poll_timer = s->hca.ctx
                    ? aio_timer_new(s->hca.ctx, QEMU_CLOCK_REALTIME, SCALE_NS,
                                    poll_now, s)
                    : timer_new_ns(QEMU_CLOCK_REALTIME, poll_now, s);
}

void virtio_rdma_sq_polls_stop(VirtIORdma *s)
{
    timer_del(s->poll_timer);
}

void virtio_rdma_sq_polls_free(VirtIORdma *s)
{
    g_clear_pointer(&s->poll_timer, timer_free);
}
