/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames by shared memory: who they come from.
 */
#include "qemu/osdep.h"
#include "rdma-roce-shm-int.h"
#include "rdma-roce-shm-socket.h"
#include "trace.h"

/* Bytes of records received at once, whatever the engine makes of them */
#define RECEIVE_MAX (128 * 1024)

void rdma_roce_shm_inbox_free(void *opaque)
{
    RoceShmInbox *ib = opaque;

    rdma_roce_shm_close_socket(ib->shm, &ib->fd);
    rdma_roce_shm_ring_close(&ib->ring);
    ib->gone = true;
    rdma_roce_shm_free_later(ib->shm, g_free, ib);
}

static void inbox_readable(void *opaque)
{
    RoceShmInbox *ib = opaque;
    RdmaRoceShm *shm = ib->shm;

    if (!shm->ops->enter(shm->opaque)) {
        return;
    }
    if (!ib->gone) {
        if (ib->fd >= 0 && !rdma_roce_shm_drain(ib->fd)) {
            /* What it has written is read first. */
            rdma_roce_shm_close_socket(shm, &ib->fd);
        }
        rdma_roce_shm_awake(&ib->ring);
        shm->ops->ready(shm->opaque);
    }
    shm->ops->leave(shm->opaque);
}

/*
 * Returns -EAGAIN if there may be more, 0 if not, or -EPROTO. @budget: bytes of
 * records that may be received.
 */
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
               (ret = rdma_roce_shm_look(&ib->ring, &frame, &size,
                                         &checked)) > 0) {
            shm->rx_frames++;
            more = shm->ops->receive(shm->opaque, frame, size, checked);
            rdma_roce_shm_take(&ib->ring, size);
            batch = ib->ring.pos - begin;
            more = more && batch < *budget;
        }
        *budget -= MIN(*budget, batch);
        if (batch && rdma_roce_shm_give_room(&ib->ring) && ib->fd >= 0) {
            rdma_roce_shm_wake(ib->fd);
        }
        if (!more) {
            return -EAGAIN;
        }
        if (ret < 0) {
            return ret;
        }
    } while (ret > 0 || !rdma_roce_shm_sleep(&ib->ring));
    return 0;
}

bool rdma_roce_shm_receive(RdmaRoceShm *shm)
{
    unsigned todo = shm->inboxes->len;
    uint32_t budget = RECEIVE_MAX;

    while (todo--) {
        RoceShmInbox *ib;
        int ret;

        shm->next = shm->next < shm->inboxes->len ? shm->next : 0;
        ib = shm->inboxes->pdata[shm->next];
        ret = inbox_receive(ib, &budget);
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
