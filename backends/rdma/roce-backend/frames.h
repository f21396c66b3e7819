/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue of frames that wait for the next turn, or for another thread: netdevs
 * belong to the main loop, but the engine may belong to an iothread.
 *
 * Context: any thread.
 */
#ifndef BACKENDS_RDMA_ROCE_FRAMES_H
#define BACKENDS_RDMA_ROCE_FRAMES_H

#include "qemu/thread.h"

typedef struct RdmaRoceFrames {
    QemuMutex lock;
    GQueue queue;                   /* of GByteArray */
    unsigned max;
    unsigned count;
    bool was_full;
} RdmaRoceFrames;

/* A queue with room for @max frames */
void rdma_roce_frames_init(RdmaRoceFrames *f, unsigned max);
void rdma_roce_frames_destroy(RdmaRoceFrames *f);
/*
 * Append a copy of the frame in @iov, from @offset on, or drop the frame if the
 * queue is full. Returns whether there is room for one more.
 */
bool rdma_roce_frames_put(RdmaRoceFrames *f, const struct iovec *iov,
                          int iovcnt, size_t offset);
/* The oldest frame, for the caller to g_byte_array_unref(), or NULL */
GByteArray *rdma_roce_frames_take(RdmaRoceFrames *f);
void rdma_roce_frames_drop(RdmaRoceFrames *f);
/*
 * Is there room again after put() reported that there is none? True once for
 * each such report.
 */
bool rdma_roce_frames_room_again(RdmaRoceFrames *f);

/* A snapshot, if other threads put or take at the same time */
static inline bool rdma_roce_frames_empty(const RdmaRoceFrames *f)
{
    return !qatomic_read(&f->count);
}

static inline bool rdma_roce_frames_full(const RdmaRoceFrames *f)
{
    return qatomic_read(&f->count) >= f->max;
}

#endif
