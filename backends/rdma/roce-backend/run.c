/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When the engine runs: in bottom halves, by a timer of the virtual clock, when
 * the netdev or shared memory has frames, and when a thread that has kicked
 * queues leaves the backend.
 */
#include "qemu/osdep.h"
#include "qemu/aio-wait.h"
#include "qemu/iov.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "system/rdma-backend.h"
#include "rdma/roce.h"
#include "rdma/work.h"
#include "int.h"
#include "../trace.h"

/*
 * Budgets that frames of the netdev may use in a turn. One read of a stream has
 * a buffer full of short frames. A datagram socket has 32 frames, which cost
 * less unless they are multicasts.
 */
#define RX_TURNS 4

/* A turn polls shared memory for this long, at most. */
#define ROCE_SHM_TURN_NS (50 * SCALE_US)

/*
 * Frames to keep that came in while the engine was busy; more are dropped. One
 * read of a stream may have 2500 of the shortest.
 */
#define ROCE_MAX_DEFERRED 2560
/* Frames to keep for the main loop to send; others wait in the engine. */
#define ROCE_MAX_LEAVING 256

int64_t rdma_roce_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* Work */

static uint64_t roce_turn_work(const RdmaRoce *r)
{
    return roce_work(r->engine) - r->work_before;
}

/* After a frame: may the turn handle another one? */
static bool roce_may_continue(const RdmaRoce *r)
{
    return roce_turn_work(r) < RDMA_TURN_BUDGET &&
           !rdma_backend_wanted(&r->parent_obj);
}

static void roce_rx_deferred(RdmaRoce *r, int64_t now)
{
    GByteArray *frame;

    if (roce_turn_work(r) >= RDMA_TURN_BUDGET) {
        return;
    }
    while ((frame = rdma_roce_frames_take(&r->deferred))) {
        roce_rx(r->engine, frame->data, frame->len, now);
        g_byte_array_unref(frame);
        if (!roce_may_continue(r)) {
            break;
        }
    }
}

/* A frame from shared memory. Stops when it is time to send. */
static bool roce_shm_receive(void *opaque, const uint8_t *frame, size_t size,
                             bool checked)
{
    RdmaRoce *r = opaque;

    if (!checked) {
        roce_rx_unchecked(r->engine, frame, size, rdma_roce_now());
    } else if (roce_is_ours(r->engine, frame, MIN(size, ROCE_PEEK_LEN))) {
        roce_rx(r->engine, frame, size, rdma_roce_now());
    }
    return roce_work(r->engine) < r->shm_rx_end &&
           !rdma_backend_wanted(&r->parent_obj);
}

/*
 * Send the frame in r->tx. False: it is queued, and no other frame can be sent
 * before it.
 */
static bool roce_send(RdmaRoce *r)
{
    if (r->shm) {
        switch (rdma_roce_shm_send(r->shm, r->tx.iov, r->tx.iovcnt,
                                   r->tx.size, r->tx.checked)) {
        case ROCE_SHM_SENT:
            return true;
        case ROCE_SHM_WAIT:
            r->shm_blocked = true;
            return false;
        case ROCE_SHM_NOT_THERE:
            break;
        }
        if (!r->tx.checked) {
            /* The receiver has gone since the engine made this frame. */
            return true;
        }
    }
    if (r->net_bh) {
        r->net_blocked = !rdma_roce_frames_put(&r->leaving, r->tx.iov,
                                               r->tx.iovcnt, 0);
        qemu_bh_schedule(r->net_bh);
    } else {
        r->net_blocked = !rdma_roce_net_send(r->net, r->tx.iov, r->tx.iovcnt);
    }
    return !r->net_blocked;
}

/* In the main loop: send frames for the iothread. */
static void roce_net_bh(void *opaque)
{
    RdmaRoce *r = opaque;
    unsigned left = ROCE_MAX_LEAVING;
    GByteArray *frame;

    rdma_roce_net_cork(r->net, true);
    while (left && !r->net_waits &&
           (frame = rdma_roce_frames_take(&r->leaving))) {
        struct iovec iov = { .iov_base = frame->data, .iov_len = frame->len };

        qatomic_set(&r->net_waits, !rdma_roce_net_send(r->net, &iov, 1));
        g_byte_array_unref(frame);
        left--;
    }
    rdma_roce_net_cork(r->net, false);
    if (!left) {
        /* The iothread may produce frames without end. */
        qemu_bh_schedule(r->net_bh);
    }
    if (rdma_roce_frames_room_again(&r->leaving)) {
        qemu_bh_schedule(r->bh);
    }
}

/*
 * The timer is only set to an earlier time. Each acknowledgement postpones a
 * deadline. An unnecessary wake-up costs less than setting the timer each time.
 * The bottom half handles deadlines that are due: while the virtual clock
 * stands still, a timer set to @now would monopolize the main loop.
 */
static void roce_arm_timer(RdmaRoce *r, int64_t now)
{
    int64_t deadline = roce_next_deadline(r->engine);

    if (deadline <= now) {
        qemu_bh_schedule(r->bh);
    } else if (deadline < r->armed) {
        r->armed = deadline;
        timer_mod_ns(r->timer, deadline);
    }
}

/* Send frames of the engine within the turn's budget. */
static void roce_transmit(RdmaRoce *r, int64_t now)
{
    r->woken = false;
    while (roce_turn_work(r) < RDMA_TURN_BUDGET &&
           roce_poll_tx(r->engine, now, &r->tx)) {
        bool sent = roce_send(r);

        roce_tx_done(r->engine, &r->tx);
        if (!sent) {
            /* Wait until the netdev or the receiver reports that it is sent. */
            trace_rdma_roce_tx_blocked(r);
            roce_set_tx_blocked(r->engine, true);
        }
        if (!rdma_roce_frames_empty(&r->deferred) ||
            rdma_backend_wanted(&r->parent_obj)) {
            break;
        }
    }
}

/*
 * Returns whether work is left for the next turn. @shm_budget: see
 * rdma_roce_shm_receive().
 */
static bool roce_work_through(RdmaRoce *r, int64_t now, uint32_t *shm_budget)
{
    bool shm_done = !r->shm;

    if (!r->net_bh) {
        rdma_roce_net_cork(r->net, true);
    }
    do {
        roce_rx_deferred(r, now);
        if (r->shm && roce_turn_work(r) < RDMA_TURN_BUDGET) {
            /* The other half is for sending. */
            r->shm_rx_end = roce_work(r->engine) + RDMA_TURN_BUDGET / 2;
            shm_done = rdma_roce_shm_receive(r->shm, shm_budget);
        }
        rdma_roce_late_expire(r, now, shm_done &&
                              rdma_roce_frames_empty(&r->deferred));
        roce_transmit(r, now);
    } while (roce_may_continue(r) &&
             ((!shm_done && *shm_budget) ||
              !rdma_roce_frames_empty(&r->deferred)));
    if (!r->net_bh) {
        rdma_roce_net_cork(r->net, false);
    }
    if (r->shm) {
        rdma_roce_shm_flush(r->shm);
    }
    return r->woken || !shm_done || !roce_may_continue(r);
}

static void roce_run_engine(RdmaRoce *r)
{
    int64_t until = r->shm ? get_clock() + ROCE_SHM_TURN_NS : 0;
    uint32_t shm_budget = RDMA_TURN_BUDGET;
    int64_t now;
    bool more;

    RCU_READ_LOCK_GUARD();
    r->in_engine = true;
    if (r->net_bh) {
        r->net_blocked = rdma_roce_frames_full(&r->leaving) ||
                         qatomic_read(&r->net_waits);
    }
    now = rdma_roce_now();
    roce_set_tx_blocked(r->engine, r->net_blocked || r->shm_blocked);
    do {
        more = roce_work_through(r, now, &shm_budget);
    } while (!more && r->shm &&
             rdma_roce_shm_idle(r->shm, roce_waits_for_acks(r->engine),
                                until));
    r->in_engine = false;
    if (more) {
        qemu_bh_schedule(r->bh);
    }
    roce_arm_timer(r, now);
}

void rdma_roce_run(RdmaBackend *rb)
{
    RdmaRoce *r = container_of(rb, RdmaRoce, parent_obj);

    if (r->running && !r->in_engine) {
        if (roce_turn_work(r) >= RDMA_TURN_BUDGET) {
            qemu_bh_schedule(r->bh);
            return;
        }
        if (!rb->ctx) {
            /* With an iothread keep it: roce_bh() may have deferred itself. */
            rdma_backend_forget_pending(rb, ROCE_PENDING_RUN);
        }
        rdma_backend_enter(rb);
        roce_run_engine(r);
        rdma_backend_leave(rb);
    }
}

void rdma_roce_run_soon(RdmaRoce *r)
{
    if (rdma_backend_busy(&r->parent_obj)) {
        rdma_backend_put_off(&r->parent_obj, ROCE_PENDING_RUN);
    } else if (r->bh) {
        qemu_bh_schedule(r->bh);
    }
}

static bool roce_try_enter(void *opaque)
{
    RdmaRoce *r = opaque;
    RdmaBackend *rb = &r->parent_obj;

    if (!rdma_backend_try_enter(rb, ROCE_PENDING_RUN)) {
        return false;
    }
    if (!r->bh) {
        /* The event was in progress when the device left. */
        rdma_backend_leave(rb);
        return false;
    }
    return true;
}

/*
 * Enter in an event of the backend's event loop, which may be a nested one.
 * False: the bottom half will run again.
 */
static bool roce_enter_event(RdmaRoce *r)
{
    if (rdma_backend_busy(&r->parent_obj)) {
        rdma_backend_put_off(&r->parent_obj, ROCE_PENDING_RUN);
        return false;
    }
    return roce_try_enter(r);
}

static void roce_begin_turn(RdmaRoce *r)
{
    r->ran_on_rx = false;
    r->work_before = roce_work(r->engine);
}

static void roce_bh(void *opaque)
{
    RdmaRoce *r = opaque;

    if (!roce_enter_event(r)) {
        return;
    }
    if (r->shm) {
        rdma_roce_shm_retry(r->shm);
    }
    roce_begin_turn(r);
    /* roce_turn_bh() would start the turn a second time. */
    qemu_bh_cancel(r->turn);
    if (!timer_pending(r->timer)) {
        /* The timer fired while another thread had entered. */
        r->armed = ROCE_NO_DEADLINE;
    }
    rdma_roce_run(&r->parent_obj);
    rdma_backend_leave(&r->parent_obj);
}

/*
 * Start the next turn. This is an idle bottom half: it runs with the next
 * event, and does not keep the main loop from sleeping.
 */
static void roce_turn_bh(void *opaque)
{
    RdmaRoce *r = opaque;

    if (roce_enter_event(r)) {
        roce_begin_turn(r);
        rdma_backend_leave(&r->parent_obj);
    }
}

static void roce_timer(void *opaque)
{
    RdmaRoce *r = opaque;

    if (roce_enter_event(r)) {
        r->armed = ROCE_NO_DEADLINE;
        rdma_roce_run(&r->parent_obj);
        rdma_backend_leave(&r->parent_obj);
    }
}

/* Callbacks of the netdev */

/*
 * Enter once for all frames that come together. False: this thread is busy with
 * other work of the backend, perhaps with one of these frames.
 */
static bool roce_rx_enter(RdmaRoce *r)
{
    RdmaBackend *rb = &r->parent_obj;

    if (r->rx_entered) {
        return !r->in_engine && rb->busy == 1;
    }
    if (rdma_backend_busy(rb)) {
        return false;
    }
    rdma_backend_enter(rb);
    r->rx_entered = true;
    r->rx_time = rdma_roce_now();
    r->woken = false;
    return true;
}

/*
 * Respond at once to the first frames of a turn of the main loop. The bottom
 * half responds to later ones together.
 */
static void roce_rx_leave(RdmaRoce *r)
{
    if (!r->ran_on_rx) {
        r->ran_on_rx = true;
        rdma_roce_run(&r->parent_obj);
    } else if (r->woken) {
        qemu_bh_schedule(r->bh);
    }
    qemu_bh_schedule_idle(r->turn);
    r->rx_entered = false;
    rdma_backend_leave(&r->parent_obj);
}

void rdma_roce_on_cork(void *opaque, bool cork)
{
    RdmaRoce *r = opaque;

    r->rx_corked = cork;
    if (!cork && r->rx_entered) {
        roce_rx_leave(r);
    } else if (!cork && r->bh && r->parent_obj.ctx &&
               !rdma_roce_frames_empty(&r->deferred)) {
        qemu_bh_schedule(r->bh);
    }
}

bool rdma_roce_on_receive(void *opaque, const struct iovec *iov, int iovcnt,
                          size_t offset)
{
    RdmaRoce *r = opaque;
    uint8_t head[ROCE_PEEK_LEN];
    const uint8_t *frame;
    size_t size = iov_size(iov, iovcnt);
    size_t peek;
    bool over;

    r->late.any_frame = true;
    if (!r->engine || size <= offset) {
        return false;
    }
    size -= offset;
    peek = MIN(size, sizeof(head));

    if (iov[0].iov_len >= offset + peek) {
        frame = (const uint8_t *)iov[0].iov_base + offset;
    } else {
        iov_to_buf(iov, iovcnt, offset, head, peek);
        frame = head;
    }
    if (!roce_is_ours(r->engine, frame, peek)) {
        return false;
    }
    trace_rdma_roce_rx(r, size);
    if (!r->running || size > ROCE_MAX_FRAME) {
        return true;
    }

    if (r->parent_obj.ctx) {
        rdma_roce_frames_put(&r->deferred, iov, iovcnt, offset);
        if (!r->rx_corked) {
            qemu_bh_schedule(r->bh);
        }
        return true;
    }
    over = roce_turn_work(r) >= RX_TURNS * RDMA_TURN_BUDGET ||
           !rdma_roce_frames_empty(&r->deferred);
    if (over || !roce_rx_enter(r)) {
        /*
         * A receiver in this QEMU has sent it during our send, or the budget of
         * the turn is used up.
         */
        rdma_roce_frames_put(&r->deferred, iov, iovcnt, offset);
        rdma_roce_run_soon(r);
        return true;
    }

    if (iov[0].iov_len < offset + size) {
        iov_to_buf(iov, iovcnt, offset, r->rx_buf, size);
        frame = r->rx_buf;
    }
    WITH_RCU_READ_LOCK_GUARD() {
        r->in_engine = true;
        roce_rx(r->engine, frame, size, r->rx_time);
        r->in_engine = false;
    }
    if (!r->rx_corked) {
        roce_rx_leave(r);
    }
    return true;
}

void rdma_roce_on_sent(void *opaque)
{
    RdmaRoce *r = opaque;

    if (r->net_bh) {
        qatomic_set(&r->net_waits, false);
        qemu_bh_schedule(r->net_bh);
        qemu_bh_schedule(r->bh);
        return;
    }
    r->net_blocked = false;
    rdma_roce_run_soon(r);
}

/* Callbacks of shared memory */

static void roce_shm_ready(void *opaque)
{
    RdmaRoce *r = opaque;

    qemu_bh_schedule_idle(r->turn);
    if (r->parent_obj.busy > 1) {
        /* In a nested event loop */
        rdma_backend_put_off(&r->parent_obj, ROCE_PENDING_RUN);
    } else {
        rdma_roce_run(&r->parent_obj);
    }
}

static void roce_shm_leave(void *opaque)
{
    rdma_backend_leave(opaque);
}

static void roce_shm_sent(void *opaque)
{
    RdmaRoce *r = opaque;

    r->shm_blocked = false;
    rdma_roce_run_soon(r);
}

const RdmaRoceShmOps rdma_roce_shm_ops = {
    .enter = roce_try_enter,
    .leave = roce_shm_leave,
    .ready = roce_shm_ready,
    .receive = roce_shm_receive,
    .sent = roce_shm_sent,
};

/* Start and stop */

void rdma_roce_run_begin(RdmaRoce *r)
{
    AioContext *iothread = r->parent_obj.ctx;
    AioContext *ctx = iothread ?: qemu_get_aio_context();

    rdma_roce_frames_init(&r->deferred, ROCE_MAX_DEFERRED);
    rdma_roce_frames_init(&r->leaving, ROCE_MAX_LEAVING);
    r->bh = aio_bh_new(ctx, roce_bh, r);
    r->turn = aio_bh_new(ctx, roce_turn_bh, r);
    if (iothread) {
        r->timer = aio_timer_new(ctx, QEMU_CLOCK_VIRTUAL, SCALE_NS,
                                 roce_timer, r);
        r->net_bh = qemu_bh_new(roce_net_bh, r);
    } else {
        r->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, roce_timer, r);
    }
    rdma_roce_late_begin(r);
    r->armed = ROCE_NO_DEADLINE;
}

static void roce_no_op(void *opaque)
{
}

void rdma_roce_run_end(RdmaRoce *r)
{
    RdmaBackend *rb = &r->parent_obj;

    WITH_QEMU_LOCK_GUARD(&rb->lock) {
        rdma_backend_forget_pending(rb, ROCE_PENDING_RUN);
        g_clear_pointer(&r->bh, qemu_bh_delete);
        g_clear_pointer(&r->turn, qemu_bh_delete);
        timer_del(r->timer);
    }
    rdma_roce_late_end(r);
    if (rb->ctx) {
        g_clear_pointer(&r->net_bh, qemu_bh_delete);
        /* Wait for running handlers. */
        aio_wait_bh_oneshot(rb->ctx, roce_no_op, NULL);
    }
    g_clear_pointer(&r->timer, timer_free);
    rdma_roce_frames_destroy(&r->deferred);
    rdma_roce_frames_destroy(&r->leaving);
}
