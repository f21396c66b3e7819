/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring of frames in memory that two QEMUs of one host share: the receiver
 * makes it, one sender writes to it. docs/specs/virtio-rdma-shm.rst has the
 * layout.
 *
 * Neither trusts the other. Each keeps its own position and only compares it
 * with what the other one says; lengths are read once. What a frame holds may
 * change while it is looked at. The memory cannot shrink, as it is sealed.
 *
 * Context: a ring belongs to one thread on each side.
 */
#ifndef BACKENDS_RDMA_ROCE_SHM_RING_H
#define BACKENDS_RDMA_ROCE_SHM_RING_H

#include <sys/uio.h>

/* Bytes for frames in the rings that are made here, a power of two. */
#define ROCE_SHM_RING_SIZE (1u << 20)
/* Those that a receiver may have. */
#define ROCE_SHM_RING_MIN (64u << 10)
#define ROCE_SHM_RING_MAX (4u << 20)

typedef struct RoceShmHeader RoceShmHeader;

typedef struct RoceShmRing {
    RoceShmHeader *header;          /* NULL: there is no ring */
    uint8_t *data;
    uint32_t size;                  /* bytes of data */
    uint32_t pos;                   /* bytes written, or read, modulo 2^32 */
    uint32_t theirs;                /* sender: bytes read, as last seen */
    bool woken;                     /* sender: and not seen awake since, ... */
    uint32_t woken_for;             /* ... which was at this pos */
} RoceShmRing;

typedef enum RoceShmPut {
    ROCE_SHM_PUT,
    ROCE_SHM_FULL,
    ROCE_SHM_BROKEN,                /* the receiver has written nonsense */
} RoceShmPut;

/* The receiver's: make a ring. Returns its memory's descriptor, or -errno. */
int rdma_roce_shm_ring_create(RoceShmRing *ring);
/* The sender's: map the ring that @fd is. Returns 0 or -errno. */
int rdma_roce_shm_ring_open(RoceShmRing *ring, int fd);
void rdma_roce_shm_ring_close(RoceShmRing *ring);

/*
 * The sender's. Write the frame of @size bytes, at most ROCE_MAX_FRAME, that
 * lies in @iov; @checked: it has an ICRC.
 */
RoceShmPut rdma_roce_shm_put(RoceShmRing *ring, const struct iovec *iov,
                             int iovcnt, size_t size, bool checked);
/*
 * Is the receiver to be woken for what was written? It is not while it says
 * that it is awake, nor a second time before it has read what it was woken for.
 */
bool rdma_roce_shm_must_wake(RoceShmRing *ring);
/*
 * Have the receiver say when there is room, or not any more. There may be room
 * already: look once more.
 */
void rdma_roce_shm_wait_room(RoceShmRing *ring, bool wait);

/*
 * The receiver's. Find the oldest frame: 1, and @frame and @size, or 0 if
 * there is none, or -EPROTO if the sender has written nonsense. It is there
 * until rdma_roce_shm_take().
 */
int rdma_roce_shm_look(RoceShmRing *ring, const uint8_t **frame, size_t *size,
                       bool *checked);
void rdma_roce_shm_take(RoceShmRing *ring, size_t size);
/* Is there anything? */
bool rdma_roce_shm_any(const RoceShmRing *ring);
/* Let the sender have the room of what was taken. Does it wait for that? */
bool rdma_roce_shm_give_room(RoceShmRing *ring);
/* The sender need not wake the receiver, which is awake. */
void rdma_roce_shm_awake(RoceShmRing *ring);
/* From now on it has to; false: there is a frame, and it stays awake. */
bool rdma_roce_shm_sleep(RoceShmRing *ring);

#endif /* BACKENDS_RDMA_ROCE_SHM_RING_H */
