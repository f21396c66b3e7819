/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: direct queues. Their counters, slots and
 * doorbells are a process's, which may write there whatever it likes.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-fuzz.h"

#define DEPTH_SHIFT 5
#define DEPTH (1u << DEPTH_SHIFT)
#define SLOT_SHIFT 9
#define SLOT (1u << SLOT_SHIFT)
#define QUEUE_SIZE (DEPTH * SLOT)
#define QP_SIZE (4096 + 2 * QUEUE_SIZE)
#define QP_PAGES (QP_SIZE / 4096)
#define LISTS (FUZZ_QUEUES + FUZZ_QPS * QP_SIZE)

#define COUNTER(field) offsetof(struct virtio_rdma_direct_page, field)

static uint64_t counters(unsigned place)
{
    return FUZZ_QUEUES + place * QP_SIZE;
}

static uint64_t slot_of(unsigned place, bool recv, uint32_t n)
{
    return counters(place) + 4096 + (recv ? QUEUE_SIZE : 0) +
           n % DEPTH * SLOT;
}

static uint64_t producer(unsigned place, bool recv)
{
    return counters(place) + (recv ? COUNTER(rq_producer)
                                   : COUNTER(sq_producer));
}

void fuzz_direct_describe(unsigned place, bool has_srq,
                          struct virtio_rdma_create_qp_req *req)
{
    static const uint8_t zeroes[4096];
    uint64_t list = LISTS + place * 4096;

    QEMU_BUILD_BUG_ON(LISTS + FUZZ_QPS * 4096 > FUZZ_DATA);
    fuzz_write(counters(place), zeroes, sizeof(zeroes));
    fuzz_guest.posted[place][false] = fuzz_guest.posted[place][true] = 0;
    for (unsigned i = 0; i < QP_PAGES; i++) {
        fuzz_store(list + 8 * i, counters(place) + i * 4096, 8);
    }
    req->flags |= cpu_to_le32(VIRTIO_RDMA_QP_DIRECT);
    req->queue_pages = cpu_to_le64(list);
    req->queue_npages = cpu_to_le32(1 + QUEUE_SIZE / 4096 *
                                        (has_srq ? 1 : 2));
    req->sq_depth_shift = req->rq_depth_shift = DEPTH_SHIFT;
    req->sq_slot_shift = req->rq_slot_shift = SLOT_SHIFT;
    req->doorbell = cpu_to_le16(place);
}

void fuzz_direct_post(unsigned place, bool recv, const void *wqe, size_t len)
{
    uint32_t n = fuzz_guest.posted[place][recv]++;
    uint64_t slot = slot_of(place, recv, n);

    fuzz_store(slot, len, 4);
    fuzz_write(slot + 4, wqe, MIN(len, SLOT - 4));
    fuzz_store(producer(place, recv), n + 1, 4);
}

static void ring(uint32_t page, uint32_t offset, uint32_t value, unsigned size)
{
    fuzz_store(FUZZ_DOORBELLS + page * VIRTIO_RDMA_DOORBELL_SIZE + offset,
               value, size);
    fuzz_settle();
}

void fuzz_direct_ring(unsigned place)
{
    ring(place, 0, fuzz_guest.qpn[place], 4);
}

/* The producer goes anywhere, or a slot gets other bytes. */
void fuzz_op_counter(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    unsigned place = (sel & 0x7) % FUZZ_QPS;
    bool recv = sel & 0x8;
    uint32_t n = fuzz_guest.posted[place][recv];

    if (sel & 0x10) {
        uint64_t slot = slot_of(place, recv, n + in_u8(in));

        fuzz_store(slot, sel & 0x20 ? in_u32(in) : in_u8(in), 4);
        fuzz_store(slot + in_u16(in) % (SLOT - 8), in_u64(in), 8);
    } else {
        n = sel & 0x20 ? in_u32(in) : n + in_u8(in) % (2 * DEPTH);
        fuzz_guest.posted[place][recv] = n;
        fuzz_store(producer(place, recv), n, 4);
    }
    if (sel & 0x40) {
        /* Says that it is awake, or asleep, when it is not */
        fuzz_store(counters(place) + (recv ? COUNTER(rq_awake)
                                           : COUNTER(sq_awake)),
                   in_u32(in), 4);
    }
    if (!(sel & 0x80)) {
        fuzz_direct_ring(place);
    }
}

void fuzz_op_doorbell(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint32_t page = sel & 0x10 ? in_u16(in) % 300 : sel % 8;
    uint32_t value = sel & 0x20 ? in_u32(in) : in_u8(in) % 16;

    ring(page, sel & 0x40 ? in_u16(in) % 4096 : 0, value,
         1u << (sel & 0x80 ? in_u8(in) % 4 : 2));
}
