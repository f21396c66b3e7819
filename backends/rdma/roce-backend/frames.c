/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue of frames that wait.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/lockable.h"
#include "frames.h"

void rdma_roce_frames_init(RdmaRoceFrames *f, unsigned max)
{
    qemu_mutex_init(&f->lock);
    g_queue_init(&f->queue);
    f->max = max;
    f->count = 0;
    f->was_full = false;
}

void rdma_roce_frames_destroy(RdmaRoceFrames *f)
{
    rdma_roce_frames_drop(f);
    qemu_mutex_destroy(&f->lock);
}

bool rdma_roce_frames_put(RdmaRoceFrames *f, const struct iovec *iov,
                          int iovcnt, size_t offset)
{
    size_t size = iov_size(iov, iovcnt) - offset;
    GByteArray *copy;

    if (rdma_roce_frames_full(f)) {
        return false;
    }
    copy = g_byte_array_sized_new(size);
    g_byte_array_set_size(copy, size);
    iov_to_buf(iov, iovcnt, offset, copy->data, size);

    QEMU_LOCK_GUARD(&f->lock);
    g_queue_push_tail(&f->queue, copy);
    qatomic_set(&f->count, f->queue.length);
    f->was_full |= f->queue.length == f->max;
    return f->queue.length < f->max;
}

GByteArray *rdma_roce_frames_take(RdmaRoceFrames *f)
{
    GByteArray *frame;

    if (rdma_roce_frames_empty(f)) {
        return NULL;
    }
    QEMU_LOCK_GUARD(&f->lock);
    frame = g_queue_pop_head(&f->queue);
    qatomic_set(&f->count, f->queue.length);
    return frame;
}

bool rdma_roce_frames_room_again(RdmaRoceFrames *f)
{
    bool again;

    QEMU_LOCK_GUARD(&f->lock);
    again = f->was_full && f->queue.length < f->max;
    if (again) {
        f->was_full = false;
    }
    return again;
}

void rdma_roce_frames_drop(RdmaRoceFrames *f)
{
    GByteArray *frame;

    while ((frame = rdma_roce_frames_take(f))) {
        g_byte_array_unref(frame);
    }
}
