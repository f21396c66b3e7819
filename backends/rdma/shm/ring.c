/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring of frames in shared memory.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/host-utils.h"
#include "qemu/iov.h"
#include "qemu/memfd.h"
#include "rdma/roce.h"
#include "ring.h"

/* Each field has a cache line of its own. */
struct RoceShmHeader {
    uint32_t head;                      /* sender: bytes written */
    uint32_t pad1[15];
    uint32_t waits;                     /* sender: wake it when there is room */
    uint32_t pad2[15];
    uint32_t tail;                      /* receiver: bytes read */
    uint32_t pad3[15];
    uint32_t awake;                     /* receiver: needs no wake-up */
};

/* Header of each frame, at a multiple of RECORD_ALIGN */
typedef struct RoceShmRecord {
    uint32_t size;                      /* of the frame, or RECORD_SKIP */
    uint32_t flags;
} RoceShmRecord;

#define DATA_OFFSET 4096
#define RECORD_ALIGN 64
#define RECORD_SKIP UINT32_MAX          /* the next one is at offset 0 */
#define RECORD_CHECKED 1                /* with an ICRC */

QEMU_BUILD_BUG_ON(sizeof(RoceShmHeader) > DATA_OFFSET);

static uint32_t record_len(size_t size)
{
    return ROUND_UP(sizeof(RoceShmRecord) + size, RECORD_ALIGN);
}

static int ring_map(RoceShmRing *ring, int fd, uint32_t size)
{
    void *mem = mmap(NULL, DATA_OFFSET + size, PROT_READ | PROT_WRITE,
                     MAP_SHARED, fd, 0);

    if (mem == MAP_FAILED) {
        return -errno;
    }
    *ring = (RoceShmRing) {
        .header = mem,
        .data = (uint8_t *)mem + DATA_OFFSET,
        .size = size,
    };
    return 0;
}

int rdma_roce_shm_ring_create(RoceShmRing *ring)
{
    int fd = qemu_memfd_create("rdma-roce", DATA_OFFSET + ROCE_SHM_RING_SIZE,
                               false, 0, F_SEAL_SHRINK | F_SEAL_GROW |
                               F_SEAL_SEAL, NULL);
    int ret;

    if (fd < 0) {
        return errno ? -errno : -ENOSYS;
    }
    ret = ring_map(ring, fd, ROCE_SHM_RING_SIZE);
    if (ret < 0) {
        close(fd);
        return ret;
    }
    return fd;
}

int rdma_roce_shm_ring_open(RoceShmRing *ring, int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;
    off_t size;

    /* A write to memory that has shrunk would end this process. */
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0) {
        return -EPROTO;
    }
    size = st.st_size - DATA_OFFSET;
    if (size < ROCE_SHM_RING_MIN || size > ROCE_SHM_RING_MAX ||
        !is_power_of_2(size)) {
        return -EPROTO;
    }
    return ring_map(ring, fd, size);
}

void rdma_roce_shm_ring_close(RoceShmRing *ring)
{
    if (ring->header) {
        munmap(ring->header, DATA_OFFSET + ring->size);
        ring->header = NULL;
    }
}

/* Bytes free for the sender, or -1 if the receiver's position is invalid */
static int64_t ring_room(RoceShmRing *ring, uint32_t wanted)
{
    uint32_t used = ring->pos - ring->theirs;

    if (ring->size - used < wanted) {
        ring->theirs = le32_to_cpu(qatomic_load_acquire(&ring->header->tail));
        used = ring->pos - ring->theirs;
        if (used > ring->size || used % RECORD_ALIGN) {
            return -1;
        }
    }
    return ring->size - used;
}

static RoceShmRecord *record_at(const RoceShmRing *ring, uint32_t pos)
{
    return (RoceShmRecord *)(ring->data + (pos & (ring->size - 1)));
}

RoceShmPut rdma_roce_shm_put(RoceShmRing *ring, const struct iovec *iov,
                             int iovcnt, size_t size, bool checked)
{
    uint32_t to_end = ring->size - (ring->pos & (ring->size - 1));
    uint32_t need = record_len(size);
    uint32_t skip = need > to_end ? to_end : 0;
    int64_t room = ring_room(ring, skip + need);
    RoceShmRecord *record = record_at(ring, ring->pos);

    if (room < 0) {
        return ROCE_SHM_BROKEN;
    }
    if (room < skip + need) {
        return ROCE_SHM_FULL;
    }
    if (skip) {
        record->size = cpu_to_le32(RECORD_SKIP);
        record = record_at(ring, ring->pos + skip);
    }
    record->flags = cpu_to_le32(checked ? RECORD_CHECKED : 0);
    record->size = cpu_to_le32(iov_to_buf(iov, iovcnt, 0, record + 1, size));
    ring->pos += skip + need;
    qatomic_store_release(&ring->header->head, cpu_to_le32(ring->pos));
    return ROCE_SHM_PUT;
}

/*
 * Has the receiver not read the frames of the last wake-up yet? It will then
 * see later frames, too: it writes the tail before it reads the head again.
 */
static bool wakeup_is_unread(const RoceShmRing *ring)
{
    uint32_t tail = le32_to_cpu(qatomic_read(&ring->header->tail));

    return ring->woken && (int32_t)(ring->woken_for - tail) > 0;
}

bool rdma_roce_shm_must_wake(RoceShmRing *ring)
{
    /*
     * Write the head before reading these. Pairs with rdma_roce_shm_sleep() and
     * rdma_roce_shm_release_room().
     */
    smp_mb();
    if (qatomic_load_acquire(&ring->header->awake)) {
        ring->woken = false;
        return false;
    }
    if (wakeup_is_unread(ring)) {
        return false;
    }
    ring->woken = true;
    ring->woken_for = ring->pos;
    return true;
}

void rdma_roce_shm_wait_room(RoceShmRing *ring, bool wait)
{
    qatomic_set(&ring->header->waits, cpu_to_le32(wait));
    /* Before reading the tail. Pairs with rdma_roce_shm_release_room(). */
    smp_mb();
}

int rdma_roce_shm_peek(RoceShmRing *ring, const uint8_t **frame, size_t *size,
                       bool *checked)
{
    uint32_t head = le32_to_cpu(qatomic_load_acquire(&ring->header->head));
    uint32_t filled = head - ring->pos;
    uint32_t to_end = ring->size - (ring->pos & (ring->size - 1));
    RoceShmRecord *record = record_at(ring, ring->pos);
    uint32_t len;

    if (!filled) {
        return 0;
    }
    if (filled > ring->size || filled % RECORD_ALIGN) {
        return -EPROTO;
    }
    len = le32_to_cpu(qatomic_read(&record->size));
    if (len == RECORD_SKIP) {
        if (filled <= to_end) {
            return -EPROTO;
        }
        ring->pos += to_end;
        filled -= to_end;
        to_end = ring->size;
        record = record_at(ring, ring->pos);
        len = le32_to_cpu(qatomic_read(&record->size));
    }
    if (!len || len > ROCE_MAX_FRAME || record_len(len) > filled ||
        record_len(len) > to_end) {
        return -EPROTO;
    }
    *frame = (const uint8_t *)(record + 1);
    *size = len;
    *checked = le32_to_cpu(qatomic_read(&record->flags)) & RECORD_CHECKED;
    return 1;
}

void rdma_roce_shm_take(RoceShmRing *ring, size_t size)
{
    ring->pos += record_len(size);
}

bool rdma_roce_shm_has_frame(const RoceShmRing *ring)
{
    return le32_to_cpu(qatomic_read(&ring->header->head)) != ring->pos;
}

bool rdma_roce_shm_release_room(RoceShmRing *ring)
{
    qatomic_store_release(&ring->header->tail, cpu_to_le32(ring->pos));
    /*
     * Write the tail before reading @waits, and before the head is read again.
     * Pairs with rdma_roce_shm_wait_room() and rdma_roce_shm_must_wake().
     */
    smp_mb();
    return qatomic_read(&ring->header->waits);
}

void rdma_roce_shm_awake(RoceShmRing *ring)
{
    qatomic_set(&ring->header->awake, cpu_to_le32(1));
}

bool rdma_roce_shm_sleep(RoceShmRing *ring)
{
    qatomic_set(&ring->header->awake, 0);
    /* Before the head is read. Pairs with rdma_roce_shm_must_wake(). */
    smp_mb();
    if (!rdma_roce_shm_has_frame(ring)) {
        return true;
    }
    rdma_roce_shm_awake(ring);
    return false;
}
