/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring of frames in memory that two QEMUs of one host share. The receiver
 * creates it, and one sender writes to it. docs/specs/virtio-rdma-shm.rst has
 * the layout.
 *
 * The sides do not trust each other. Each keeps its own position and compares
 * it with that of the other side. Lengths are read once. The sender may change
 * a frame while the receiver reads it. The memory is sealed, so it cannot
 * shrink.
 *
 * Context: a ring belongs to one thread on each side.
 */
#ifndef BACKENDS_RDMA_ROCE_SHM_RING_H
#define BACKENDS_RDMA_ROCE_SHM_RING_H

#include <sys/uio.h>

/* Bytes for frames in a ring that this side creates: a power of two */
#define ROCE_SHM_RING_SIZE (1u << 20)
/* Bytes that a ring of another receiver may have */
#define ROCE_SHM_RING_MIN (64u << 10)
#define ROCE_SHM_RING_MAX (4u << 20)

typedef struct RoceShmHeader RoceShmHeader;

typedef struct RoceShmRing {
    RoceShmHeader *header;          /* NULL: there is no ring */
    uint8_t *data;
    uint32_t size;                  /* bytes of data */
    uint32_t pos;                   /* bytes written, or read, modulo 2^32 */
    uint32_t theirs;                /* sender: bytes read, as last seen */
    bool woken;                     /* sender: woke it, not seen awake since */
    uint32_t woken_for;             /* sender: @pos at that wake-up */
} RoceShmRing;

typedef enum RoceShmPut {
    ROCE_SHM_PUT,
    ROCE_SHM_FULL,
    ROCE_SHM_BROKEN,                /* the receiver's position is invalid */
} RoceShmPut;

/* Receiver: create a ring. Returns the descriptor of its memory, or -errno. */
int rdma_roce_shm_ring_create(RoceShmRing *ring);
/* Sender: map the ring in @fd. Returns 0 or -errno. */
int rdma_roce_shm_ring_open(RoceShmRing *ring, int fd);
void rdma_roce_shm_ring_close(RoceShmRing *ring);

/*
 * Sender: write the frame in @iov, of @size bytes, at most ROCE_MAX_FRAME.
 * @checked: it has an ICRC.
 */
RoceShmPut rdma_roce_shm_put(RoceShmRing *ring, const struct iovec *iov,
                             int iovcnt, size_t size, bool checked);
/*
 * Sender: must it wake the receiver for the frames that it wrote? No while the
 * receiver is awake, or has not read the frames of the last wake-up yet.
 */
bool rdma_roce_shm_must_wake(RoceShmRing *ring);
/*
 * Sender: ask the receiver for a wake-up when there is room, or stop asking.
 * There may be room already, so try once more.
 */
void rdma_roce_shm_wait_room(RoceShmRing *ring, bool wait);

/*
 * Receiver: find the oldest frame. Returns 1, 0 if there is none, or -EPROTO if
 * the sender's data is invalid. The frame stays until rdma_roce_shm_take().
 */
int rdma_roce_shm_peek(RoceShmRing *ring, const uint8_t **frame, size_t *size,
                       bool *checked);
void rdma_roce_shm_take(RoceShmRing *ring, size_t size);
/* Receiver: is there a frame? */
bool rdma_roce_shm_has_frame(const RoceShmRing *ring);
/* Receiver: give back the room of taken frames. Does the sender wait? */
bool rdma_roce_shm_release_room(RoceShmRing *ring);
/* Receiver: it is awake; the sender need not wake it. */
void rdma_roce_shm_awake(RoceShmRing *ring);
/* Receiver: the sender must wake it. False: a frame is there, stay awake. */
bool rdma_roce_shm_sleep(RoceShmRing *ring);

#endif /* BACKENDS_RDMA_ROCE_SHM_RING_H */
