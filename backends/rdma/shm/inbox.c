/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inboxes: receive frames from other ports.
 */
#include "qemu/osdep.h"
#include "qemu/processor.h"
#include "rdma/work.h"
#include "int.h"
#include "socket.h"
#include "../trace.h"

/* Polls without a frame before polling stops */
#define POLL_MISSES 3
/* A frame of at least this size is probably part of a long message. */
#define POLL_FRAME_MIN 512

void rdma_roce_shm_inbox_free(void *opaque)
{
    RoceShmInbox *ib = opaque;

    rdma_roce_shm_close_socket(ib->shm, &ib->fd);
    rdma_roce_shm_ring_close(&ib->ring);
    ib->gone = true;
    rdma_roce_shm_free_later(ib->shm, g_free, ib);
}

static void inbox_stay_awake(RoceShmInbox *ib)
{
    if (!ib->awake) {
        ib->awake = true;
        rdma_roce_shm_awake(&ib->ring);
    }
}

static void inbox_readable(void *opaque)
{
    RoceShmInbox *ib = opaque;
    RdmaRoceShm *shm = ib->shm;

    if (!rdma_roce_shm_enter(shm, &ib->fd, &ib->waits)) {
        return;
    }
    if (!ib->gone) {
        if (ib->fd >= 0 && !rdma_roce_shm_drain(ib->fd)) {
            /* The sender has ended. Its frames are still read. */
            rdma_roce_shm_close_socket(shm, &ib->fd);
        }
        if (shm->slept_at + shm->poll_max > get_clock()) {
            /* Polling would have been faster than sleeping. */
            shm->polls_left = POLL_MISSES;
        }
        inbox_stay_awake(ib);
        shm->ops->ready(shm->opaque);
    }
    shm->ops->leave(shm->opaque);
}

void rdma_roce_shm_inboxes_retry(RdmaRoceShm *shm)
{
    for (unsigned i = 0; i < shm->inboxes->len; i++) {
        RoceShmInbox *ib = shm->inboxes->pdata[i];

        if (rdma_roce_shm_stop_waiting(&ib->waits) && ib->fd >= 0) {
            rdma_roce_shm_set_handler(shm, ib->fd, inbox_readable, ib);
        }
    }
}

/* Returns -EAGAIN if there may be more, 0 if not, or -EPROTO. */
static int inbox_receive(RoceShmInbox *ib, uint32_t *budget)
{
    RdmaRoceShm *shm = ib->shm;
    const uint8_t *frame;
    size_t size;
    bool checked, more = true;
    int ret = 0;

    do {
        uint32_t begin = ib->ring.pos;
        uint32_t batch = 0;

        while (more && batch < ib->ring.size / 4 &&
               (ret = rdma_roce_shm_peek(&ib->ring, &frame, &size,
                                         &checked)) > 0) {
            shm->rx_frames++;
            shm->rx_size = size;
            more = shm->ops->receive(shm->opaque, frame, size, checked);
            rdma_roce_shm_take(&ib->ring, size);
            batch = ib->ring.pos - begin;
            *budget -= MIN(*budget, size + RDMA_WORK_POLL);
            more = more && *budget;
        }
        if (batch) {
            inbox_stay_awake(ib);
            if (rdma_roce_shm_release_room(&ib->ring) && ib->fd >= 0) {
                rdma_roce_shm_wake(ib->fd);
            }
        }
    } while (more && ret > 0);
    return more ? ret : -EAGAIN;
}

bool rdma_roce_shm_receive(RdmaRoceShm *shm, uint32_t *budget)
{
    unsigned todo = shm->inboxes->len;

    if (!*budget) {
        return false;
    }
    while (todo--) {
        RoceShmInbox *ib;
        int ret;

        shm->next = shm->next < shm->inboxes->len ? shm->next : 0;
        ib = shm->inboxes->pdata[shm->next];
        ret = inbox_receive(ib, budget);
        if (ret == -EAGAIN) {
            shm->next++;
            return false;
        }
        if (ret < 0 || ib->fd < 0) {
            trace_rdma_roce_shm_inbox(shm, false, ret);
            g_ptr_array_remove_index(shm->inboxes, shm->next);
        } else {
            shm->next++;
        }
    }
    return true;
}

static bool any_frames(const RdmaRoceShm *shm)
{
    for (unsigned i = 0; i < shm->inboxes->len; i++) {
        const RoceShmInbox *ib = shm->inboxes->pdata[i];

        if (rdma_roce_shm_has_frame(&ib->ring)) {
            return true;
        }
    }
    return false;
}

/* Poll for a while. @until: when the turn must end. */
static bool poll_inboxes(RdmaRoceShm *shm, int64_t until)
{
    int64_t now = get_clock();

    until = MIN(until, now + shm->poll_max);
    while (now < until) {
        if (any_frames(shm)) {
            shm->polls_left = POLL_MISSES;
            return true;
        }
        cpu_relax();
        now = get_clock();
    }
    shm->polls_left--;
    return false;
}

/*
 * Is polling likely to find frames? After short frames, such as
 * acknowledgements, a doorbell is more likely. Polling would delay it, unless
 * no frame can be sent.
 */
static bool may_poll(const RdmaRoceShm *shm, bool cannot_send)
{
    return shm->polls_left &&
           (shm->rx_size >= POLL_FRAME_MIN ||
            (cannot_send && shm->tx_size >= POLL_FRAME_MIN));
}

bool rdma_roce_shm_idle(RdmaRoceShm *shm, bool cannot_send, int64_t until)
{
    bool any = false;

    if (may_poll(shm, cannot_send) && poll_inboxes(shm, until)) {
        return true;
    }
    for (unsigned i = 0; i < shm->inboxes->len; i++) {
        RoceShmInbox *ib = shm->inboxes->pdata[i];

        if (ib->awake) {
            ib->awake = !rdma_roce_shm_sleep(&ib->ring);
            any |= ib->awake;
        }
    }
    shm->slept_at = get_clock();
    return any;
}

void rdma_roce_shm_inbox_new(RdmaRoceShm *shm, int fd)
{
    RoceShmInbox *ib;
    int memory;
    bool ok;

    if (shm->inboxes->len >= ROCE_SHM_MAX_PEERS) {
        close(fd);
        return;
    }
    ib = g_new0(RoceShmInbox, 1);
    ib->shm = shm;
    ib->fd = fd;
    memory = rdma_roce_shm_ring_create(&ib->ring);
    ok = memory >= 0 && rdma_roce_shm_send_welcome(fd, memory);
    if (memory >= 0) {
        close(memory);
    }
    trace_rdma_roce_shm_inbox(shm, ok, MIN(memory, 0));
    if (!ok) {
        rdma_roce_shm_inbox_free(ib);
        return;
    }
    g_ptr_array_add(shm->inboxes, ib);
    rdma_roce_shm_set_handler(shm, fd, inbox_readable, ib);
}
