/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Outboxes: send frames to other ports.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "net/util.h"
#include "qemu/iov.h"
#include "rdma/roce.h"
#include "int.h"
#include "socket.h"
#include "../trace.h"

/* Frames to write before a sleeping receiver is woken */
#define WAKE_AFTER 8

/* A port that frames are sent to, or that could not be reached */
struct RoceShmOutbox {
    RdmaRoceShm *shm;
    MACAddr mac;
    uint64_t key;                   /* of @mac */
    int fd;                         /* -1: not connected */
    int64_t retry_at;               /* ms */
    RoceShmRing ring;               /* without a header: not usable yet */
    unsigned unwoken;               /* frames since the last wake-up check */
    QSIMPLEQ_ENTRY(RoceShmOutbox) to_wake;
    uint8_t *queued;                /* a frame that waits for room */
    size_t queued_len;
    bool queued_checked;
    int64_t waits_since;            /* ms */
    /*
     * ms for which the receiver may still block this port, as of @patience_at;
     * see ROCE_SHM_PATIENCE_MS
     */
    int64_t patience;
    int64_t patience_at;            /* ms */
    QEMUTimer *timer;               /* cuts the receiver off */
    bool gone;                      /* a last event may still come */
    bool waits;                     /* the event of @fd waits for the lock */
};

static void outbox_stop_wakeup(RoceShmOutbox *ob)
{
    if (ob->unwoken) {
        ob->unwoken = 0;
        QSIMPLEQ_REMOVE(&ob->shm->to_wake, ob, RoceShmOutbox, to_wake);
    }
}

/* Disconnect for a while. Returns whether a frame was queued. */
static bool outbox_disconnect(RoceShmOutbox *ob)
{
    bool was_queued = ob->queued_len;

    outbox_stop_wakeup(ob);
    rdma_roce_shm_close_socket(ob->shm, &ob->fd);
    rdma_roce_shm_ring_close(&ob->ring);
    timer_del(ob->timer);
    ob->queued_len = 0;
    ob->retry_at = rdma_roce_shm_now() + ROCE_SHM_RETRY_MS;
    return was_queued;
}

static void outbox_fail(RoceShmOutbox *ob, const char *why)
{
    RdmaRoceShm *shm = ob->shm;

    trace_rdma_roce_shm_left(shm, MAC_ARG(ob->mac.a), why);
    if (outbox_disconnect(ob)) {
        shm->ops->sent(shm->opaque);
    }
}

static void outbox_free_now(void *opaque)
{
    RoceShmOutbox *ob = opaque;

    timer_free(ob->timer);
    g_free(ob->queued);
    g_free(ob);
}

void rdma_roce_shm_outbox_free(void *opaque)
{
    RoceShmOutbox *ob = opaque;

    outbox_disconnect(ob);
    ob->gone = true;
    rdma_roce_shm_free_later(ob->shm, outbox_free_now, ob);
}

static void outbox_open_ring(RoceShmOutbox *ob)
{
    int memory = rdma_roce_shm_receive_welcome(ob->fd);
    int ret;

    if (memory < 0) {
        outbox_fail(ob, "has no welcome");
        return;
    }
    ret = rdma_roce_shm_ring_open(&ob->ring, memory);
    close(memory);
    if (ret < 0) {
        outbox_fail(ob, "has no good ring");
        return;
    }
    timer_del(ob->timer);
    ob->patience = ROCE_SHM_PATIENCE_MS;
    ob->patience_at = rdma_roce_shm_now();
    trace_rdma_roce_shm_reached(ob->shm, MAC_ARG(ob->mac.a));
}

static void outbox_wake(RoceShmOutbox *ob)
{
    outbox_stop_wakeup(ob);
    if (rdma_roce_shm_must_wake(&ob->ring)) {
        rdma_roce_shm_wake(ob->fd);
    }
}

static RoceShmPut outbox_put(RoceShmOutbox *ob, const struct iovec *iov,
                             int iovcnt, size_t size, bool checked)
{
    RoceShmPut ret = rdma_roce_shm_put(&ob->ring, iov, iovcnt, size, checked);

    if (ret != ROCE_SHM_PUT) {
        return ret;
    }
    ob->shm->tx_frames++;
    ob->shm->tx_size = size;
    if (!ob->unwoken++) {
        QSIMPLEQ_INSERT_TAIL(&ob->shm->to_wake, ob, to_wake);
    }
    if (ob->unwoken == WAKE_AFTER) {
        outbox_wake(ob);
    }
    return ret;
}

/* The frame in ob->queued starts to wait. */
static void outbox_begin_wait(RoceShmOutbox *ob)
{
    ob->waits_since = rdma_roce_shm_now();
    ob->patience = MIN(ROCE_SHM_PATIENCE_MS,
                       ob->patience +
                       (ob->waits_since - ob->patience_at) / 4);
    timer_mod(ob->timer, ob->waits_since + ob->patience);
}

static void outbox_end_wait(RoceShmOutbox *ob)
{
    ob->queued_len = 0;
    ob->patience_at = rdma_roce_shm_now();
    ob->patience -= MIN(ob->patience, ob->patience_at - ob->waits_since);
    timer_del(ob->timer);
    rdma_roce_shm_wait_room(&ob->ring, false);
}

/* There may be room. */
static void outbox_retry(RoceShmOutbox *ob)
{
    struct iovec iov = { .iov_base = ob->queued, .iov_len = ob->queued_len };

    if (!ob->queued_len) {
        return;
    }
    switch (outbox_put(ob, &iov, 1, ob->queued_len, ob->queued_checked)) {
    case ROCE_SHM_PUT:
        outbox_end_wait(ob);
        ob->shm->ops->sent(ob->shm->opaque);
        break;
    case ROCE_SHM_FULL:
        break;
    case ROCE_SHM_BROKEN:
        outbox_fail(ob, "broke the ring");
        break;
    }
}

/*
 * The receiver has had its time. It may have made room that this thread had no
 * time to notice: look before cutting it off.
 */
static void outbox_timed_out(RoceShmOutbox *ob)
{
    if (!ob->ring.header) {
        outbox_fail(ob, "has no welcome");
        return;
    }
    outbox_retry(ob);
    if (ob->queued_len) {
        outbox_fail(ob, "has no room");
    }
}

static void outbox_timer(void *opaque)
{
    RoceShmOutbox *ob = opaque;
    RdmaRoceShm *shm = ob->shm;

    if (!shm->ops->enter(shm->opaque)) {
        timer_mod(ob->timer, rdma_roce_shm_now() + 1);
        return;
    }
    if (!ob->gone && ob->fd >= 0 && !timer_pending(ob->timer)) {
        outbox_timed_out(ob);
    }
    shm->ops->leave(shm->opaque);
}

static void outbox_readable(void *opaque)
{
    RoceShmOutbox *ob = opaque;
    RdmaRoceShm *shm = ob->shm;

    if (!rdma_roce_shm_enter(shm, &ob->fd, &ob->waits)) {
        return;
    }
    if (ob->gone || ob->fd < 0) {
        /* Disconnected meanwhile. */
    } else if (!ob->ring.header) {
        outbox_open_ring(ob);
    } else if (!rdma_roce_shm_drain(ob->fd)) {
        outbox_fail(ob, "has ended");
    } else {
        outbox_retry(ob);
    }
    shm->ops->leave(shm->opaque);
}

void rdma_roce_shm_outbox_retry(RoceShmOutbox *ob)
{
    if (rdma_roce_shm_stop_waiting(&ob->waits) && ob->fd >= 0) {
        rdma_roce_shm_set_handler(ob->shm, ob->fd, outbox_readable, ob);
    }
}

static void outbox_connect(RoceShmOutbox *ob)
{
    g_autofree char *path = rdma_roce_shm_socket_path(ob->shm->dir, ob->mac.a);
    struct sockaddr_un un;

    rdma_roce_shm_set_address(&un, path);
    qatomic_set(&ob->fd, rdma_roce_shm_new_socket());
    if (ob->fd < 0 ||
        connect(ob->fd, (struct sockaddr *)&un, sizeof(un)) < 0) {
        outbox_disconnect(ob);
        return;
    }
    rdma_roce_shm_set_handler(ob->shm, ob->fd, outbox_readable, ob);
    timer_mod(ob->timer, rdma_roce_shm_now() + ROCE_SHM_RETRY_MS);
}

static uint64_t mac_key(const uint8_t *mac)
{
    return (uint64_t)lduw_he_p(mac) << 32 | ldl_he_p(mac + 2);
}

static RoceShmOutbox *outbox_new(RdmaRoceShm *shm, const uint8_t *mac)
{
    RoceShmOutbox *ob = g_new0(RoceShmOutbox, 1);

    ob->shm = shm;
    ob->fd = -1;
    memcpy(ob->mac.a, mac, sizeof(ob->mac.a));
    ob->key = mac_key(mac);
    ob->timer = rdma_roce_shm_timer_new(shm, outbox_timer, ob);
    g_hash_table_insert(shm->outboxes, &ob->key, ob);
    return ob;
}

static gboolean is_stale(gpointer key, gpointer value, gpointer now)
{
    const RoceShmOutbox *ob = value;

    return ob->fd < 0 && ob->retry_at <= *(int64_t *)now;
}

/* Is there room for another outbox, after dropping stale ones? */
static bool outboxes_have_room(RdmaRoceShm *shm)
{
    int64_t now;

    if (g_hash_table_size(shm->outboxes) >= ROCE_SHM_MAX_PEERS) {
        now = rdma_roce_shm_now();
        g_hash_table_foreach_remove(shm->outboxes, is_stale, &now);
    }
    return g_hash_table_size(shm->outboxes) < ROCE_SHM_MAX_PEERS;
}

/* The outbox of a MAC address, or NULL if there are too many. */
static RoceShmOutbox *outbox_of(RdmaRoceShm *shm, const uint8_t *mac)
{
    const uint64_t key = mac_key(mac);

    if (!shm->last || shm->last->key != key) {
        shm->last = g_hash_table_lookup(shm->outboxes, &key);
        if (!shm->last && outboxes_have_room(shm)) {
            shm->last = outbox_new(shm, mac);
        }
    }
    return shm->last;
}

bool rdma_roce_shm_reaches(RdmaRoceShm *shm, const uint8_t *mac)
{
    RoceShmOutbox *ob;

    if (shm->fd < 0 || (mac[0] & 1)) {
        return false;
    }
    ob = outbox_of(shm, mac);
    if (!ob) {
        return false;
    }
    if (ob->fd < 0 && rdma_roce_shm_now() >= ob->retry_at) {
        outbox_connect(ob);
    }
    return ob->ring.header;
}

RdmaRoceShmSent rdma_roce_shm_send(RdmaRoceShm *shm, const struct iovec *iov,
                                   int iovcnt, size_t size, bool checked)
{
    const uint8_t *mac = iov[0].iov_base;
    RoceShmPut put;
    RoceShmOutbox *ob;

    if (iov[0].iov_len < sizeof(ob->mac.a) || size > ROCE_MAX_FRAME ||
        !rdma_roce_shm_reaches(shm, mac)) {
        return ROCE_SHM_NOT_THERE;
    }
    ob = outbox_of(shm, mac);
    assert(!ob->queued_len);
    put = outbox_put(ob, iov, iovcnt, size, checked);
    if (put == ROCE_SHM_FULL) {
        rdma_roce_shm_wait_room(&ob->ring, true);
        put = outbox_put(ob, iov, iovcnt, size, checked);
        if (put == ROCE_SHM_PUT) {
            rdma_roce_shm_wait_room(&ob->ring, false);
        }
    }
    switch (put) {
    case ROCE_SHM_PUT:
        return ROCE_SHM_SENT;
    case ROCE_SHM_BROKEN:
        outbox_fail(ob, "broke the ring");
        return ROCE_SHM_NOT_THERE;
    case ROCE_SHM_FULL:
        break;
    }
    if (!ob->queued) {
        ob->queued = g_malloc(ROCE_MAX_FRAME);
    }
    ob->queued_len = iov_to_buf(iov, iovcnt, 0, ob->queued, size);
    ob->queued_checked = checked;
    outbox_begin_wait(ob);
    return ROCE_SHM_WAIT;
}

void rdma_roce_shm_flush(RdmaRoceShm *shm)
{
    RoceShmOutbox *ob;

    while ((ob = QSIMPLEQ_FIRST(&shm->to_wake))) {
        outbox_wake(ob);
    }
}
