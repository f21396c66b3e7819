/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames that wait: for the next turn, or for another thread. Netdevs are the
 * main loop's, the engine may be an iothread's.
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

/* There is room for @max frames. */
void rdma_roce_frames_init(RdmaRoceFrames *f, unsigned max);
void rdma_roce_frames_destroy(RdmaRoceFrames *f);
/*
 * Copy the frame in @iov, from @offset on; without room it is dropped. Returns
 * whether there is room for one more.
 */
bool rdma_roce_frames_put(RdmaRoceFrames *f, const struct iovec *iov,
                          int iovcnt, size_t offset);
/* The oldest one, which the caller frees by g_byte_array_unref(), or NULL. */
GByteArray *rdma_roce_frames_take(RdmaRoceFrames *f);
void rdma_roce_frames_drop(RdmaRoceFrames *f);
/*
 * Is there room again, for who was told that there is none? True once for each
 * time that it was.
 */
bool rdma_roce_frames_room_again(RdmaRoceFrames *f);

/* As it is now, or was a moment ago, if other threads put or take. */
static inline bool rdma_roce_frames_empty(const RdmaRoceFrames *f)
{
    return !qatomic_read(&f->count);
}

static inline bool rdma_roce_frames_full(const RdmaRoceFrames *f)
{
    return qatomic_read(&f->count) >= f->max;
}

#endif
