/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct CQs and event queues, as a driver has them.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/host-utils.h"
#include "virtio-rdma.h"

#define SLOT sizeof(struct virtio_rdma_direct_cqe)
#define COUNTER(cq, field) \
    ((cq)->counters + offsetof(struct virtio_rdma_direct_cq_page, field))

static void write_word(QRdma *d, uint64_t addr, uint32_t value)
{
    uint32_t le = cpu_to_le32(value);

    qrdma_write(d, addr, &le, sizeof(le));
}

uint64_t qrdma_direct_cq_alloc(QRdma *d, uint8_t depth_shift,
                               uint32_t *npages, uint64_t *mem)
{
    *npages = 1 + DIV_ROUND_UP((uint64_t)SLOT << depth_shift, 4096);
    return qrdma_direct_alloc(d, *npages, mem);
}

static void use_memory(QRdmaCq *cq, uint8_t depth_shift, uint64_t mem)
{
    cq->depth = 1u << depth_shift;
    cq->counters = mem;
    cq->buf = mem + 4096;
}

void qrdma_direct_cq_init(QRdmaCq *cq, struct virtio_rdma_create_cq_req *req)
{
    uint8_t shift = ctz32(pow2ceil(cq->cqe));
    uint32_t npages;
    uint64_t mem;

    req->flags = cpu_to_le32(VIRTIO_RDMA_CQ_DIRECT);
    req->eqn = cpu_to_le32(cq->eq ? cq->eq->eqn : VIRTIO_RDMA_EQN_NONE);
    req->queue_pages = cpu_to_le64(qrdma_direct_cq_alloc(cq->dev, shift,
                                                         &npages, &mem));
    req->queue_npages = cpu_to_le32(npages);
    req->depth_shift = shift;
    use_memory(cq, shift, mem);
}

QRdmaCq *qrdma_create_direct_cq(QRdma *d, uint32_t cqe, QRdmaEq *eq)
{
    QRdmaCq *cq = qrdma_own(d, sizeof(*cq));
    struct virtio_rdma_create_cq_req req = { .cqe = cpu_to_le32(cqe) };
    struct virtio_rdma_cqn rsp = {};

    cq->dev = d;
    cq->cqe = cqe;
    cq->eq = eq;
    qrdma_direct_cq_init(cq, &req);
    assert_ok(qrdma_call(d, CREATE_CQ, &req, &rsp));
    cq->cqn = le32_to_cpu(rsp.cqn);
    return cq;
}

uint8_t qrdma_resize_direct_cq(QRdmaCq *cq, uint32_t cqe)
{
    QRdma *d = cq->dev;
    uint32_t consumer = cq->consumed;
    uint8_t shift = ctz32(pow2ceil(cqe));
    struct virtio_rdma_resize_cq_req req = {
        .cqn = cpu_to_le32(cq->cqn),
        .cqe = cpu_to_le32(cqe),
        .depth_shift = shift,
    };
    QRdmaCq old = *cq;
    uint32_t npages;
    uint64_t mem;
    uint8_t status;

    req.queue_pages = cpu_to_le64(qrdma_direct_cq_alloc(d, shift, &npages,
                                                        &mem));
    req.queue_npages = cpu_to_le32(npages);
    use_memory(cq, shift, mem);
    write_word(d, COUNTER(cq, consumer), consumer);
    write_word(d, COUNTER(cq, arm), cq->arm);
    status = qrdma_call_void(d, RESIZE_CQ, &req);
    if (status != VIRTIO_RDMA_S_OK) {
        *cq = old;
        return status;
    }
    /* CQEs that were not consumed move to the new memory. */
    for (uint32_t n = consumer; n - consumer < old.depth; n++) {
        struct virtio_rdma_direct_cqe cqe_n;

        qrdma_read(d, old.buf + (n % old.depth) * SLOT, &cqe_n, SLOT);
        if (le32_to_cpu(cqe_n.number) != n + 1) {
            break;
        }
        qrdma_write(d, cq->buf + (n % cq->depth) * SLOT, &cqe_n, SLOT);
    }
    return status;
}

void qrdma_direct_cq_set_consumer(QRdmaCq *cq, uint32_t value)
{
    write_word(cq->dev, COUNTER(cq, consumer), value);
}

void qrdma_arm_direct_cq(QRdmaCq *cq, uint32_t flags)
{
    cq->arm = ((cq->arm >> VIRTIO_RDMA_ARM_SHIFT) + 1)
              << VIRTIO_RDMA_ARM_SHIFT | flags;
    write_word(cq->dev, COUNTER(cq, arm), cq->arm);
}

bool qrdma_direct_cq_has_cqe(QRdmaCq *cq)
{
    struct virtio_rdma_direct_cqe slot;

    qrdma_read(cq->dev, cq->buf + (cq->consumed % cq->depth) * SLOT, &slot,
               SLOT);
    return le32_to_cpu(slot.number) == cq->consumed + 1;
}

bool qrdma_direct_cq_get(QRdmaCq *cq, struct virtio_rdma_cqe_ex *cqe)
{
    static const uint8_t zero[sizeof(((struct virtio_rdma_direct_cqe *)0)
                                     ->reserved)];
    struct virtio_rdma_direct_cqe slot;

    qrdma_read(cq->dev, cq->buf + (cq->consumed % cq->depth) * SLOT, &slot,
               SLOT);
    if (le32_to_cpu(slot.number) != cq->consumed + 1) {
        return false;
    }
    g_assert_cmpmem(slot.reserved, sizeof(zero), zero, sizeof(zero));
    *cqe = slot.ex;
    cq->consumed++;
    if (!cq->no_refill) {
        qrdma_direct_cq_set_consumer(cq, cq->consumed);
    }
    return true;
}

uint8_t qrdma_try_create_eq(QRdma *d, uint32_t cqe, uint32_t *eqn)
{
    struct virtio_rdma_create_cq_req req = {
        .cqe = cpu_to_le32(cqe), .flags = cpu_to_le32(VIRTIO_RDMA_CQ_EVENTS),
    };
    struct virtio_rdma_cqn rsp = {};
    uint8_t status = qrdma_call(d, CREATE_CQ, &req, &rsp);

    *eqn = le32_to_cpu(rsp.cqn);
    return status;
}

static void refill(QRdmaEq *eq, uint32_t n)
{
    uint16_t old = eq->ring->avail_idx;

    for (uint32_t i = 0; i < n; i++) {
        QRdmaDesc desc = {
            eq->buf + eq->ring->free_head * sizeof(struct virtio_rdma_cqn),
            sizeof(struct virtio_rdma_cqn), true,
        };

        qrdma_ring_add(eq->ring, &desc, 1);
    }
    if (qrdma_ring_wants_kick(eq->ring, old)) {
        qrdma_ring_kick(eq->ring);
    }
}

QRdmaEq *qrdma_create_eq(QRdma *d, uint32_t buffers)
{
    QRdmaEq *eq = qrdma_own(d, sizeof(*eq));

    eq->dev = d;
    assert_ok(qrdma_try_create_eq(d, MAX(buffers, 1), &eq->eqn));
    g_assert_cmpuint(eq->eqn, <, d->max_cq);
    eq->ring = qrdma_ring(d, VIRTIO_RDMA_CQ_VQ(eq->eqn));
    eq->buf = qrdma_alloc(d, eq->ring->pci.vq.size *
                             sizeof(struct virtio_rdma_cqn));
    refill(eq, buffers);
    return eq;
}

void qrdma_refill_eq(QRdmaEq *eq, uint32_t n)
{
    refill(eq, n);
}

bool qrdma_eq_get(QRdmaEq *eq, uint32_t *cqn)
{
    struct virtio_rdma_cqn event;
    uint16_t head;
    uint32_t len;

    if (!qrdma_ring_get(eq->ring, &head, &len)) {
        return false;
    }
    g_assert_cmpuint(len, ==, sizeof(event));
    qrdma_read(eq->dev, eq->buf + head * sizeof(event), &event, sizeof(event));
    *cqn = le32_to_cpu(event.cqn);
    return true;
}

uint8_t qrdma_destroy_eq(QRdmaEq *eq)
{
    struct virtio_rdma_cqn req = { .cqn = cpu_to_le32(eq->eqn) };
    uint8_t status = qrdma_call_void(eq->dev, DESTROY_CQ, &req);

    if (status == VIRTIO_RDMA_S_OK) {
        qrdma_ring_renew(eq->ring);
    }
    return status;
}
