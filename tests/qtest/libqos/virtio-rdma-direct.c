/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct queues, as a driver has them.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/host-utils.h"
#include "virtio-rdma.h"

#define DEPTH (1u << QRDMA_DIRECT_DEPTH_SHIFT)
#define SLOT (1u << QRDMA_DIRECT_SLOT_SHIFT)
#define QUEUE_PAGES (DEPTH * SLOT / 4096)
#define DOORBELL_BAR 2

uint64_t qrdma_direct_alloc(QRdma *d, uint32_t npages, uint64_t *mem)
{
    g_autofree uint64_t *pages = g_new(uint64_t, npages);

    *mem = qrdma_alloc(d, npages * 4096ull);
    for (uint32_t i = 0; i < npages; i++) {
        pages[i] = *mem + i * 4096ull;
    }
    return qrdma_dma(d, qrdma_write_pages(d, pages, npages));
}

void qrdma_direct_init(QRdmaQp *qp, bool has_srq,
                       struct virtio_rdma_create_qp_req *req)
{
    uint32_t npages = 1 + QUEUE_PAGES * (has_srq ? 1 : 2);
    uint64_t mem;

    req->queue_pages = cpu_to_le64(qrdma_direct_alloc(qp->dev, npages, &mem));
    qp->sq.depth = qp->rq.depth = DEPTH;
    qp->sq.slot = qp->rq.slot = SLOT;
    qp->sq.counters = mem + offsetof(struct virtio_rdma_direct_page,
                                     sq_producer);
    qp->sq.buf = mem + 4096;
    qp->rq.counters = mem + offsetof(struct virtio_rdma_direct_page,
                                     rq_producer);
    qp->rq.buf = qp->sq.buf + QUEUE_PAGES * 4096ull;
    req->flags |= cpu_to_le32(VIRTIO_RDMA_QP_DIRECT);
    req->queue_npages = cpu_to_le32(npages);
    req->sq_depth_shift = req->rq_depth_shift = QRDMA_DIRECT_DEPTH_SHIFT;
    req->sq_slot_shift = req->rq_slot_shift = QRDMA_DIRECT_SLOT_SHIFT;
    req->doorbell = cpu_to_le16(QRDMA_DIRECT_DOORBELL);
}

void qrdma_direct_srq_init(QRdmaSrq *srq,
                           struct virtio_rdma_create_srq_req *req)
{
    uint32_t len = sizeof(struct virtio_rdma_direct_slot) +
                   sizeof(struct virtio_rdma_rq_wqe) +
                   le32_to_cpu(req->max_sge) * sizeof(struct virtio_rdma_sge);
    QRdmaWq *wq = &srq->wq;
    uint32_t npages;

    wq->depth = MAX(DEPTH, pow2ceil(le32_to_cpu(req->max_wr)));
    wq->slot = MAX(32, pow2ceil(len));
    npages = 1 + DIV_ROUND_UP((uint64_t)wq->depth * wq->slot, 4096);
    req->flags = cpu_to_le32(VIRTIO_RDMA_SRQ_DIRECT);
    req->queue_pages = cpu_to_le64(qrdma_direct_alloc(srq->dev, npages,
                                                      &wq->counters));
    req->queue_npages = cpu_to_le32(npages);
    req->depth_shift = ctz32(wq->depth);
    req->slot_shift = ctz32(wq->slot);
    req->doorbell = cpu_to_le16(QRDMA_DIRECT_DOORBELL);
    wq->buf = wq->counters + 4096;
}

static void map_doorbells(QRdma *d)
{
    if (!d->has_doorbells) {
        d->doorbells = qpci_iomap(d->pci->pdev, DOORBELL_BAR, NULL);
        d->has_doorbells = true;
    }
}

static void set_bit_at(QRdma *d, uint64_t words, uint32_t n)
{
    uint64_t at = words + n / 32 * 4;

    qtest_writel(d->host->qts, at,
                 qtest_readl(d->host->qts, at) | 1u << n % 32);
}

void qrdma_shadow_mark(QRdma *d, uint64_t shadow, uint32_t qpn)
{
    set_bit_at(d, shadow + offsetof(struct virtio_rdma_shadow_page, marked),
               qpn);
    set_bit_at(d, shadow + offsetof(struct virtio_rdma_shadow_page, summary),
               qpn / 32);
}

void qrdma_doorbell(QRdma *d, uint32_t page, uint32_t value)
{
    map_doorbells(d);
    qpci_io_writel(d->pci->pdev, d->doorbells,
                   page * VIRTIO_RDMA_DOORBELL_SIZE, value);
}

void qrdma_doorbell_in_a_row(QRdma *d, uint32_t page, const uint32_t value[2],
                             unsigned n)
{
    g_autofree uint32_t *le = g_new(uint32_t, n);

    for (unsigned i = 0; i < n; i++) {
        le[i] = cpu_to_le32(value[i % 2]);
    }
    map_doorbells(d);
    qpci_memwrite(d->pci->pdev, d->doorbells, page * VIRTIO_RDMA_DOORBELL_SIZE,
                  le, n * sizeof(*le));
}

uint8_t qrdma_set_shadow(QRdma *d, uint16_t page, uint64_t addr)
{
    struct virtio_rdma_set_shadow_req req = {
        .doorbell = cpu_to_le16(page),
        .flags = cpu_to_le16(addr ? VIRTIO_RDMA_SHADOW_ON : 0),
        .addr = cpu_to_le64(addr ? qrdma_dma(d, addr) : 0),
    };

    return qrdma_call_void(d, SET_SHADOW, &req);
}

bool qrdma_direct_awake(QRdma *d, const QRdmaWq *wq)
{
    return qrdma_load_word(d, wq->counters +
                           offsetof(struct virtio_rdma_direct_page, sq_awake));
}

void qrdma_direct_set_producer(QRdma *d, const QRdmaWq *wq, uint32_t value)
{
    uint32_t le = cpu_to_le32(value);

    qrdma_write(d, wq->counters, &le, sizeof(le));
}

void qrdma_direct_post(QRdma *d, QRdmaWq *wq, const void *wqe, size_t len)
{
    uint64_t slot = wq->buf + (wq->posted % wq->depth) * (uint64_t)wq->slot;
    uint32_t le = cpu_to_le32(len);

    g_assert_cmpuint(sizeof(le) + len, <=, wq->slot);
    qrdma_write(d, slot, &le, sizeof(le));
    qrdma_write(d, slot + sizeof(le), wqe, len);
    /* Pairs with the device's barrier after it has read the producer */
    smp_wmb();
    qrdma_direct_set_producer(d, wq, ++wq->posted);
}
