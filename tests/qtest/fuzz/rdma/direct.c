/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: direct queues and CQs. A process owns
 * their counters, slots, doorbells and shadows, and may write anything there.
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

/* Room for CQs of two sizes, each with its list */
#define CQS (LISTS + FUZZ_QPS * 4096)
#define CQ_SHIFT 7
#define CQ_PAGES 6
#define CQ_SIZE (CQ_PAGES * 4096)
/* A shadow for each page of doorbells of QPs */
#define SHADOWS (CQS + 2 * CQ_SIZE)
/* The SRQ: a page of counters, slots like those of QPs, and its list */
#define SRQ (SHADOWS + FUZZ_QPS * 4096)
#define SRQ_PAGES (1 + QUEUE_SIZE / 4096)
#define SRQ_LIST (SRQ + SRQ_PAGES * 4096)
#define CQ_COUNTER(field) offsetof(struct virtio_rdma_direct_cq_page, field)

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

void fuzz_direct_describe_srq(struct virtio_rdma_create_srq_req *req)
{
    static const uint8_t zeroes[4096];

    QEMU_BUILD_BUG_ON(SRQ_LIST + 4096 > FUZZ_DATA);
    fuzz_write(SRQ, zeroes, sizeof(zeroes));
    fuzz_guest.posted_srq = 0;
    for (unsigned i = 0; i < SRQ_PAGES; i++) {
        fuzz_store(SRQ_LIST + 8 * i, SRQ + i * 4096, 8);
    }
    req->flags = cpu_to_le32(VIRTIO_RDMA_SRQ_DIRECT);
    req->queue_pages = cpu_to_le64(SRQ_LIST);
    req->queue_npages = cpu_to_le32(SRQ_PAGES);
    req->depth_shift = DEPTH_SHIFT;
    req->slot_shift = SLOT_SHIFT;
}

void fuzz_direct_post_srq(const void *wqe, size_t len)
{
    uint32_t n = fuzz_guest.posted_srq++;
    uint64_t slot = SRQ + 4096 + n % DEPTH * SLOT;

    fuzz_store(slot, len, 4);
    fuzz_write(slot + 4, wqe, MIN(len, SLOT - 4));
    fuzz_store(SRQ + offsetof(struct virtio_rdma_direct_srq_page, producer),
               n + 1, 4);
}

void fuzz_direct_ring_srq(void)
{
    ring(0, 0, VIRTIO_RDMA_DOORBELL_SRQ, 4);
}

/* Set the producer to any value, or change bytes of a slot. */
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
        /* Change the flag that the queue is awake. */
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

static uint64_t cq_page(unsigned place)
{
    return CQS + place * CQ_SIZE;
}

/* Write the list of pages of a CQ to its last page. */
static uint32_t list_cq(unsigned place, uint8_t shift)
{
    uint32_t npages = 1 + DIV_ROUND_UP(64u << shift, 4096);
    uint64_t list = cq_page(place) + (CQ_PAGES - 1) * 4096;

    QEMU_BUILD_BUG_ON(SHADOWS + FUZZ_QPS * 4096 > FUZZ_DATA);
    g_assert_cmpuint(npages, <, CQ_PAGES);
    for (unsigned i = 0; i < npages; i++) {
        fuzz_store(list + 8 * i, cq_page(place) + i * 4096, 8);
    }
    return npages;
}

void fuzz_direct_describe_cq(unsigned place,
                             struct virtio_rdma_create_cq_req *req)
{
    static const uint8_t zeroes[CQ_SIZE];

    fuzz_write(cq_page(place), zeroes, sizeof(zeroes));
    fuzz_guest.arms[place] = 0;
    req->flags = cpu_to_le32(VIRTIO_RDMA_CQ_DIRECT);
    req->eqn = cpu_to_le32(fuzz_guest.eqn);
    req->queue_npages = cpu_to_le32(list_cq(place, CQ_SHIFT));
    req->queue_pages = cpu_to_le64(cq_page(place) + (CQ_PAGES - 1) * 4096);
    req->depth_shift = CQ_SHIFT;
}

uint64_t fuzz_direct_cqe(unsigned place)
{
    return cq_page(place) + 4096;
}

static void arm(unsigned place, uint32_t value)
{
    fuzz_store(cq_page(place) + CQ_COUNTER(arm), value, 4);
}

static void arm_next(unsigned place, uint32_t flags)
{
    arm(place, ++fuzz_guest.arms[place] << VIRTIO_RDMA_ARM_SHIFT | flags);
}

void fuzz_direct_arm(unsigned place)
{
    arm_next(place, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION);
}

static void resize(unsigned place, uint8_t shift, uint32_t cqe)
{
    struct virtio_rdma_resize_cq_req req = {
        .cqn = cpu_to_le32(fuzz_guest.cqn[place]),
        .cqe = cpu_to_le32(cqe),
        .queue_pages = cpu_to_le64(cq_page(place) + (CQ_PAGES - 1) * 4096),
        .queue_npages = cpu_to_le32(list_cq(place, shift)),
        .depth_shift = shift,
    };

    fuzz_command(VIRTIO_RDMA_CMD_RESIZE_CQ, &req, sizeof(req), NULL, 0);
}

/* Set the consumer to any value, arm the CQ, or resize it. */
void fuzz_op_cq(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    unsigned place = sel & 1;
    uint64_t consumer = cq_page(place) + CQ_COUNTER(consumer);
    uint32_t value;

    switch (sel >> 1 & 3) {
    case 0:
        value = sel & 0x10 ? in_u32(in) : fuzz_load(consumer, 4) + in_u8(in);
        fuzz_store(consumer, value, 4);
        break;
    case 1:
        if (sel & 0x10) {
            arm(place, in_u32(in));
        } else {
            arm_next(place, sel >> 6);
        }
        break;
    case 2:
        resize(place, sel >> 3 & 7, 1 + in_u8(in) % 160);
        break;
    case 3:
        fuzz_store(fuzz_direct_cqe(place) + in_u16(in) % 0x2000, in_u64(in),
                   8);
        break;
    }
    if (sel & 0x20) {
        fuzz_send_messages(1 + (sel >> 6), sel);
    }
}

static uint64_t shadow_of(unsigned place)
{
    return SHADOWS + place * 4096;
}

static void set_shadow(unsigned place, FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    struct virtio_rdma_set_shadow_req req = {
        .doorbell = cpu_to_le16(sel & 1 ? in_u16(in) % 300 : place),
        .flags = cpu_to_le16(sel & 2 ? in_u16(in) : VIRTIO_RDMA_SHADOW_ON),
        .addr = cpu_to_le64(sel & 4 ? in_u64(in) & -4096 : shadow_of(place)),
    };

    if (sel & 8) {
        /* Memory that other objects use, too */
        req.addr = cpu_to_le64(FUZZ_RINGS + in_u16(in) % 1024 * 4096ull);
    }
    fuzz_command(VIRTIO_RDMA_CMD_SET_SHADOW, &req, sizeof(req), NULL, 0);
}

static void mark(unsigned place, uint32_t qpn)
{
    uint64_t word = shadow_of(place) +
        offsetof(struct virtio_rdma_shadow_page, marked[qpn / 32]);
    uint64_t summary = shadow_of(place) +
        offsetof(struct virtio_rdma_shadow_page, summary[qpn / 1024]);

    fuzz_store(word, fuzz_load(word, 4) | 1u << qpn % 32, 4);
    fuzz_store(summary, fuzz_load(summary, 4) | 1u << qpn / 32 % 32, 4);
}

/* After doorbells in a row the device reads marks. */
static void wake(unsigned place)
{
    for (int i = 0; i < 3; i++) {
        fuzz_store(FUZZ_DOORBELLS + place * VIRTIO_RDMA_DOORBELL_SIZE,
                   fuzz_guest.qpn[place], 4);
    }
    fuzz_settle();
}

/* Set a shadow for a page, or change its words, and ring. */
void fuzz_op_shadow(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    unsigned place = (sel & 0x7) % FUZZ_QPS;
    uint64_t shadow = shadow_of(place);

    switch (sel >> 3 & 3) {
    case 0:
        set_shadow(place, in);
        break;
    case 1:
        mark(place, sel & 0x20 ? in_u16(in) % (VIRTIO_RDMA_SHADOW_WORDS * 32)
                               : fuzz_guest.qpn[in_u8(in) % FUZZ_QPS] %
                                 (VIRTIO_RDMA_SHADOW_WORDS * 32));
        break;
    case 2:
        fuzz_store(shadow + in_u16(in) % (4096 - 8), in_u64(in), 8);
        break;
    case 3:
        for (unsigned i = 8; i < 4096; i += 8) {
            fuzz_store(shadow + i, sel & 0x20 ? ~0ull : in_u8(in), 8);
        }
        break;
    }
    if (!(sel & 0x80)) {
        wake(place);
    }
}
