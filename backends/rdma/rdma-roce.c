/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RoCE backend: the RoCEv2 engine (rdma/roce.h) on a QEMU netdev.
 *
 * This file has the object, and when the engine works: by the virtual clock, a
 * timer, bottom halves, and what the netdev brings.
 */
#include "qemu/osdep.h"
#include "block/aio-wait.h"
#include "qapi/error.h"
#include "qemu/iov.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "qom/object_interfaces.h"
#include "system/rdma-backend.h"
#include "rdma/roce.h"
#include "rdma-roce-int.h"
#include "trace.h"

/*
 * What the engine does in one turn of the main loop (roce_work()): in all, and
 * with frames of the netdev. A stream brings a buffer full of short frames at
 * most, a datagram socket 32 frames, which is less, unless they are multicasts.
 */
#define ROCE_TURN_BUDGET (384 * 1024)
#define ROCE_RX_BUDGET (1536 * 1024)

/* Frames that came in while the engine was busy; more are dropped. */
#define ROCE_MAX_DEFERRED 1024
/* Frames that wait until the main loop sends them; more wait in the engine. */
#define ROCE_MAX_LEAVING 256

#define ROCE_MAX_RD_ATOMIC 16
#define ROCE_MAX_GIDS 256

/* The longest RC message (IBTA 9.7.8: 2^31 bytes). */
#define ROCE_MAX_MSG_SZ 0x80000000u

/* Nominal, as nothing paces the wire: 4X EDR, 100 Gb/s. */
#define ROCE_ACTIVE_WIDTH 2
#define ROCE_ACTIVE_SPEED 32

static int64_t roce_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* Work */

static uint64_t roce_turn_work(const RdmaRoce *r)
{
    return roce_work(r->engine) - r->work_before;
}

static void roce_rx_deferred(RdmaRoce *r, int64_t now)
{
    GByteArray *frame;

    while (roce_turn_work(r) < ROCE_TURN_BUDGET &&
           (frame = rdma_roce_frames_take(&r->deferred))) {
        roce_rx(r->engine, frame->data, frame->len, now);
        g_byte_array_unref(frame);
    }
}

/* Frames that come by memory; what is left comes in the next turn. */
static bool roce_shm_receive(void *opaque, const uint8_t *frame, size_t size,
                             bool checked)
{
    RdmaRoce *r = opaque;

    if (!checked) {
        roce_rx_unchecked(r->engine, frame, size, roce_now());
    } else if (roce_is_ours(r->engine, frame, MIN(size, ROCE_PEEK_LEN))) {
        roce_rx(r->engine, frame, size, roce_now());
    }
    /* The other half is for what is sent. */
    return roce_turn_work(r) < ROCE_TURN_BUDGET / 2;
}

/*
 * Send the frame in r->tx. False: it had to be queued, and nothing can be sent
 * until it is sent.
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
            /* The peer is gone since the frame was begun: it was for it. */
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

/* In the main loop: send what the iothread has left. */
static void roce_net_bh(void *opaque)
{
    RdmaRoce *r = opaque;
    bool was_full = rdma_roce_frames_full(&r->leaving);
    GByteArray *frame;

    rdma_roce_net_cork(r->net, true);
    while (!r->net_waits && (frame = rdma_roce_frames_take(&r->leaving))) {
        struct iovec iov = { .iov_base = frame->data, .iov_len = frame->len };

        r->net_waits = !rdma_roce_net_send(r->net, &iov, 1);
        g_byte_array_unref(frame);
    }
    rdma_roce_net_cork(r->net, false);
    if (was_full) {
        qemu_bh_schedule(r->bh);
    }
}

static void roce_update_blocked(RdmaRoce *r)
{
    roce_set_tx_blocked(r->engine, r->net_blocked || r->shm_blocked);
}

/*
 * The timer is only set to an earlier time. Acknowledgements postpone deadlines
 * all the time; to wake up once without need costs less than to set the timer
 * with each of them. What is due already is left to the bottom half: while the
 * virtual clock stands still, a timer set to @now would keep the main loop to
 * itself.
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

static void roce_run_engine(RdmaRoce *r)
{
    bool shm_done = true;
    int64_t now;

    RCU_READ_LOCK_GUARD();
    r->in_engine = true;
    if (r->net_bh) {
        r->net_blocked = rdma_roce_frames_full(&r->leaving);
    }
    now = roce_now();
    if (roce_next_deadline(r->engine) <= now) {
        roce_expire(r->engine, now);
    }
    roce_update_blocked(r);
    if (!r->net_bh) {
        rdma_roce_net_cork(r->net, true);
    }
    do {
        roce_rx_deferred(r, now);
        if (r->shm && roce_turn_work(r) < ROCE_TURN_BUDGET) {
            shm_done = rdma_roce_shm_receive(r->shm);
        }
        r->woken = false;
        while (roce_turn_work(r) < ROCE_TURN_BUDGET &&
               roce_poll_tx(r->engine, now, &r->tx)) {
            bool sent = roce_send(r);

            roce_tx_done(r->engine, &r->tx);
            if (!sent) {
                /* Until netdev or receiver say that it is sent */
                trace_rdma_roce_tx_blocked(r);
                roce_update_blocked(r);
            }
            if (!rdma_roce_frames_empty(&r->deferred)) {
                break;
            }
        }
    } while (roce_turn_work(r) < ROCE_TURN_BUDGET &&
             !rdma_roce_frames_empty(&r->deferred));
    if (!r->net_bh) {
        rdma_roce_net_cork(r->net, false);
    }
    if (r->shm) {
        rdma_roce_shm_flush(r->shm);
    }
    r->in_engine = false;
    /* The rest in the next turn */
    if (r->woken || !shm_done || roce_turn_work(r) >= ROCE_TURN_BUDGET) {
        qemu_bh_schedule(r->bh);
    }
    roce_arm_timer(r, now);
}

/* Let the engine send what it has, as far as the netdev takes it. */
static void roce_run(RdmaRoce *r)
{
    RdmaBackend *rb = RDMA_BACKEND(r);

    if (r->running && !r->in_engine) {
        if (roce_turn_work(r) >= ROCE_TURN_BUDGET) {
            qemu_bh_schedule(r->bh);
            return;
        }
        r->run_put_off = false;
        rdma_backend_enter(rb);
        roce_run_engine(r);
        rdma_backend_leave(rb);
    }
}

static bool roce_try_enter(RdmaRoce *r)
{
    RdmaBackend *rb = RDMA_BACKEND(r);

    if (!rdma_backend_try_enter(rb)) {
        return false;
    }
    if (!r->bh) {
        /* It was on its way when the device left. */
        rdma_backend_leave(rb);
        return false;
    }
    return true;
}

/*
 * From an event of the backend's loop, which may be a nested one. False: there
 * will be another one.
 */
static bool roce_enter_event(RdmaRoce *r)
{
    if (rdma_backend_busy(RDMA_BACKEND(r))) {
        r->run_put_off = true;
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
    roce_begin_turn(r);
    /* It would begin this turn once more */
    qemu_bh_cancel(r->turn);
    if (!timer_pending(r->timer)) {
        /* It fired while somebody else was here */
        r->armed = ROCE_NO_DEADLINE;
    }
    roce_run(r);
    rdma_backend_leave(RDMA_BACKEND(r));
}

/*
 * The next turn of the main loop begins. As an idle bottom half it may run with
 * the next event, and does not make the main loop poll.
 */
static void roce_turn_bh(void *opaque)
{
    RdmaRoce *r = opaque;

    if (roce_enter_event(r)) {
        roce_begin_turn(r);
        rdma_backend_leave(RDMA_BACKEND(r));
    }
}

static void roce_timer(void *opaque)
{
    RdmaRoce *r = opaque;

    if (roce_enter_event(r)) {
        r->armed = ROCE_NO_DEADLINE;
        roce_run(r);
        rdma_backend_leave(RDMA_BACKEND(r));
    }
}

/* What the netdev calls */

/*
 * Frames that come together enter the backend once. False: it is busy with
 * something else, maybe with one of these frames.
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
    r->rx_time = roce_now();
    r->woken = false;
    return true;
}

/*
 * Respond to the frames that came first at once, and to those that follow in
 * the same turn of the main loop together.
 */
static void roce_rx_leave(RdmaRoce *r)
{
    if (!r->ran_on_rx) {
        r->ran_on_rx = true;
        roce_run(r);
    } else if (r->woken) {
        qemu_bh_schedule(r->bh);
    }
    qemu_bh_schedule_idle(r->turn);
    r->rx_entered = false;
    rdma_backend_leave(&r->parent_obj);
}

static void roce_net_cork(void *opaque, bool cork)
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

static bool roce_net_receive(void *opaque, const struct iovec *iov,
                             int iovcnt, size_t offset)
{
    RdmaRoce *r = opaque;
    uint8_t head[ROCE_PEEK_LEN];
    const uint8_t *frame;
    size_t size = iov_size(iov, iovcnt);
    size_t peek;
    bool over;

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
    over = roce_turn_work(r) >= ROCE_RX_BUDGET ||
           !rdma_roce_frames_empty(&r->deferred);
    if (over || !roce_rx_enter(r)) {
        /*
         * A receiver in this QEMU sent it while the netdev delivered ours, or
         * it is the next turn's.
         */
        rdma_roce_frames_put(&r->deferred, iov, iovcnt, offset);
        if (rdma_backend_busy(&r->parent_obj)) {
            r->run_put_off = true;
        } else {
            qemu_bh_schedule(r->bh);
        }
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

/* Go on with what was blocked. */
static void roce_run_soon(RdmaRoce *r)
{
    if (rdma_backend_busy(RDMA_BACKEND(r))) {
        r->run_put_off = true;
    } else {
        qemu_bh_schedule(r->bh);
    }
}

static void roce_net_sent(void *opaque)
{
    RdmaRoce *r = opaque;

    if (r->net_bh) {
        r->net_waits = false;
        qemu_bh_schedule(r->net_bh);
        return;
    }
    r->net_blocked = false;
    roce_run_soon(r);
}

/* What memory brings */

static void roce_shm_ready(void *opaque)
{
    RdmaRoce *r = opaque;

    qemu_bh_schedule_idle(r->turn);
    if (RDMA_BACKEND(r)->busy > 1) {
        /* In a nested event loop */
        r->run_put_off = true;
    } else {
        roce_run(r);
    }
}

static bool roce_shm_enter(void *opaque)
{
    return roce_try_enter(opaque);
}

static void roce_shm_leave(void *opaque)
{
    rdma_backend_leave(opaque);
}

static void roce_shm_sent(void *opaque)
{
    RdmaRoce *r = opaque;

    r->shm_blocked = false;
    roce_run_soon(r);
}

static const RdmaRoceShmOps roce_shm_ops = {
    .enter = roce_shm_enter,
    .leave = roce_shm_leave,
    .ready = roce_shm_ready,
    .receive = roce_shm_receive,
    .sent = roce_shm_sent,
};

/* Others find the port by its addresses while its VM runs. */
static void roce_update_shm(RdmaRoce *r)
{
    if (!r->shm) {
        return;
    }
    if (r->running && r->port.link_up) {
        rdma_roce_shm_open(r->shm, &r->port.mac, &r->port.nic_mac);
    } else {
        rdma_roce_shm_close(r->shm);
    }
    /* A frame that waited for room is gone. */
    r->shm_blocked = false;
}

static bool roce_update_port(RdmaRoce *r)
{
    RdmaRoceNetPort old = r->port;
    bool moved = false;

    rdma_roce_net_port(r->net, &r->port);
    if (memcmp(&old.mac, &r->port.mac, sizeof(old.mac)) ||
        memcmp(&old.nic_mac, &r->port.nic_mac, sizeof(old.nic_mac))) {
        roce_set_mac(r->engine, r->port.mac.a);
        roce_set_nic_mac(r->engine, r->port.nic_mac.a);
        moved = true;
    }
    if (moved || old.link_up != r->port.link_up) {
        roce_update_shm(r);
    }
    if (old.link_up == r->port.link_up && old.mtu == r->port.mtu &&
        !memcmp(&old.mac, &r->port.mac, sizeof(old.mac))) {
        return false;
    }
    trace_rdma_roce_port(r, r->port.link_up, r->port.mtu);
    roce_set_link_mtu(r->engine, r->port.mtu);
    roce_set_link(r->engine, r->port.link_up);
    return true;
}

static void roce_net_changed(void *opaque)
{
    RdmaRoce *r = opaque;
    RdmaBackend *rb = RDMA_BACKEND(r);

    if (!r->engine || !r->net || !r->bh) {
        return;
    }
    if (rdma_backend_busy(rb)) {
        r->changed_put_off = true;
        return;
    }
    rdma_backend_enter(rb);
    if (roce_update_port(r)) {
        /* Frames that the netdev had queued may have been dropped. */
        r->net_blocked = false;
        r->net_waits = false;
        qemu_bh_schedule(r->net_bh ?: r->bh);
        qemu_bh_schedule(r->bh);
        rb->client_ops->port_changed(rb->client_opaque);
    }
    rdma_backend_leave(rb);
}

static const RdmaRoceNetOps roce_net_ops = {
    .receive = roce_net_receive,
    .cork = roce_net_cork,
    .sent = roce_net_sent,
    .changed = roce_net_changed,
};

/* Class methods */

static bool rdma_roce_attach(RdmaBackend *rb, Error **errp)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);
    RdmaRoceNetConf conf = {
        .owner = OBJECT(r),
        .netdev_id = r->netdev_id,
        .name = object_get_canonical_path_component(OBJECT(r)),
        .mtu = r->mtu,
        .mac = r->mac,
    };
    RoceConfig config;

    rb->limits.max_rd_atomic = MIN(rb->limits.max_rd_atomic,
                                   ROCE_MAX_RD_ATOMIC);
    rb->limits.gid_table_len = MIN(rb->limits.gid_table_len, ROCE_MAX_GIDS);
    rb->limits.max_srq_wr = MIN(rb->limits.max_srq_wr, ROCE_MAX_WR);
    rb->limits.extensions &= RDMA_EXT_FLUSH | RDMA_EXT_ATOMIC_WRITE;
    rb->limits.atomic_cap = MIN(rb->limits.atomic_cap, RDMA_ATOMIC_GLOB);
    rb->limits.pulls_recv = true;

    r->net = rdma_roce_net_new(&conf, &roce_net_ops, r, errp);
    if (!r->net) {
        return false;
    }
    config = (RoceConfig) {
        .max_qp = rb->limits.max_qp,
        .max_mr = rdma_roce_max_mrn(rb),
        .gid_table_len = rb->limits.gid_table_len,
        .max_rd_atomic = rb->limits.max_rd_atomic,
        .max_srq = rb->limits.max_srq,
        .max_mcast_grp = rb->limits.max_mcast_grp,
        .max_mcast_qp_attach = rb->limits.max_mcast_qp_attach,
    };
    r->engine = roce_new(&config, &rdma_roce_ops, r);
    roce_set_dcqcn(r->engine, r->dcqcn_rate * 1000);
    if (r->shm_dir) {
        r->shm = rdma_roce_shm_new(r->shm_dir, rb->ctx, &roce_shm_ops, r);
    }
    rdma_roce_frames_init(&r->deferred, ROCE_MAX_DEFERRED);
    rdma_roce_frames_init(&r->leaving, ROCE_MAX_LEAVING);
    if (rb->ctx) {
        r->bh = aio_bh_new(rb->ctx, roce_bh, r);
        r->turn = aio_bh_new(rb->ctx, roce_turn_bh, r);
        r->timer = aio_timer_new(rb->ctx, QEMU_CLOCK_VIRTUAL, SCALE_NS,
                                 roce_timer, r);
        r->net_bh = qemu_bh_new(roce_net_bh, r);
    } else {
        r->bh = qemu_bh_new(roce_bh, r);
        r->turn = qemu_bh_new(roce_turn_bh, r);
        r->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, roce_timer, r);
    }
    r->armed = ROCE_NO_DEADLINE;
    r->running = false;
    r->in_engine = false;
    r->net_blocked = false;
    r->net_waits = false;
    r->shm_blocked = false;
    r->ran_on_rx = false;
    r->rx_corked = false;
    r->port = (RdmaRoceNetPort) { };
    roce_update_port(r);
    return true;
}

static void roce_nothing(void *opaque)
{
}

static void rdma_roce_detach(RdmaBackend *rb)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    WITH_QEMU_LOCK_GUARD(&rb->lock) {
        r->running = false;
        r->run_put_off = false;
        qemu_bh_delete(r->bh);
        r->bh = NULL;
        qemu_bh_delete(r->turn);
        r->turn = NULL;
        timer_del(r->timer);
        if (r->shm) {
            rdma_roce_shm_close(r->shm);
        }
    }
    if (rb->ctx) {
        qemu_bh_delete(r->net_bh);
        r->net_bh = NULL;
        /* What has begun there ends. */
        aio_wait_bh_oneshot(rb->ctx, roce_nothing, NULL);
    }
    rdma_roce_shm_free(r->shm);
    r->shm = NULL;
    rdma_roce_net_free(r->net);
    r->net = NULL;
    timer_free(r->timer);
    r->timer = NULL;
    roce_free(r->engine);
    r->engine = NULL;
    rdma_roce_frames_destroy(&r->deferred);
    rdma_roce_frames_destroy(&r->leaving);
}

static void rdma_roce_retry(RdmaBackend *rb)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    if (r->bh) {
        qemu_bh_schedule(r->bh);
    }
}

static void rdma_roce_idle(RdmaBackend *rb)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    if (r->run_put_off) {
        r->run_put_off = false;
        qemu_bh_schedule(r->bh);
    }
    if (r->changed_put_off) {
        r->changed_put_off = false;
        roce_net_changed(r);
    }
}

static void rdma_roce_reset(RdmaBackend *rb)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    roce_reset(r->engine);
    roce_set_extensions(r->engine, 0);
    rdma_roce_frames_drop(&r->deferred);
}

static void rdma_roce_set_running(RdmaBackend *rb, bool running)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    r->running = running;
    if (running) {
        roce_resume(r->engine, roce_now());
        qemu_bh_schedule(r->bh);
    } else {
        rdma_roce_frames_drop(&r->deferred);
    }
    roce_update_shm(r);
}

static char *rdma_roce_info_str(RdmaBackend *rb)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    return g_strdup_printf("netdev %s, " MAC_FMT ", %s", r->netdev_id,
                           MAC_ARG(r->port.mac.a),
                           r->port.link_up ? "up" : "down");
}

static void rdma_roce_query_port(RdmaBackend *rb, RdmaPortAttr *attr)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);
    const RoceStats *stats = roce_stats(r->engine);

    *attr = (RdmaPortAttr) {
        .state = r->port.link_up ? RDMA_PORT_ACTIVE : RDMA_PORT_DOWN,
        .max_mtu = RDMA_MTU_4096,
        .active_mtu = roce_port_mtu(r->engine),
        .phys_mtu = r->port.mtu,
        .max_msg_sz = ROCE_MAX_MSG_SZ,
        .bad_pkey_cntr = MIN(stats->bad_pkey, UINT32_MAX),
        .qkey_viol_cntr = MIN(stats->bad_qkey, UINT32_MAX),
        .active_width = ROCE_ACTIVE_WIDTH,
        .active_speed = ROCE_ACTIVE_SPEED,
    };
    memcpy(attr->mac, r->port.mac.a, sizeof(attr->mac));
}

/* Send at once, not from the bottom half: no delay for the first frame. */
static void rdma_roce_run_now(RdmaBackend *rb)
{
    roce_run(RDMA_BACKEND_ROCE(rb));
}

/* The object */

static void rdma_roce_complete(UserCreatable *uc, Error **errp)
{
    /* The netdev is looked up when a device attaches: it may come later. */
    if (!RDMA_BACKEND_ROCE(uc)->netdev_id) {
        error_setg(errp, "Parameter 'netdev' is required");
    }
}

static void rdma_roce_finalize(Object *obj)
{
    g_free(RDMA_BACKEND_ROCE(obj)->netdev_id);
    g_free(RDMA_BACKEND_ROCE(obj)->shm_dir);
}

static void rdma_roce_class_init(ObjectClass *oc, void *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);
    RdmaBackendClass *rbc = RDMA_BACKEND_CLASS(oc);

    ucc->complete = rdma_roce_complete;

    rbc->vmsd = &vmstate_rdma_roce;
    rbc->attach = rdma_roce_attach;
    rbc->detach = rdma_roce_detach;
    rbc->idle = rdma_roce_idle;
    rbc->retry = rdma_roce_retry;
    rbc->reset = rdma_roce_reset;
    rbc->set_running = rdma_roce_set_running;
    rbc->info_str = rdma_roce_info_str;
    rbc->query_port = rdma_roce_query_port;
    rbc->run = rdma_roce_run_now;
    rdma_roce_ctrl_class_init(rbc);

    rdma_roce_add_properties(oc);
}

static const TypeInfo rdma_roce_info = {
    .name = TYPE_RDMA_BACKEND_ROCE,
    .parent = TYPE_RDMA_BACKEND,
    .instance_size = sizeof(RdmaRoce),
    .instance_finalize = rdma_roce_finalize,
    .class_init = rdma_roce_class_init,
};

static void rdma_roce_register_types(void)
{
    type_register_static(&rdma_roce_info);
}

type_init(rdma_roce_register_types)
