/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct queues, as a driver has them.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "virtio-rdma.h"

#define DEPTH (1u << QRDMA_DIRECT_DEPTH_SHIFT)
#define SLOT (1u << QRDMA_DIRECT_SLOT_SHIFT)
#define QUEUE_PAGES (DEPTH * SLOT / 4096)
#define DOORBELL_BAR 2

void qrdma_direct_init(QRdmaQp *qp, bool has_srq,
                       struct virtio_rdma_create_qp_req *req)
{
    QRdma *d = qp->dev;
    uint32_t npages = 1 + QUEUE_PAGES * (has_srq ? 1 : 2);
    uint64_t mem = qrdma_alloc(d, (uint64_t)npages * 4096);
    uint64_t list = qrdma_alloc(d, npages * sizeof(uint64_t));

    for (uint32_t i = 0; i < npages; i++) {
        uint64_t page = cpu_to_le64(qrdma_dma(d, mem + i * 4096ull));

        qrdma_write(d, list + i * sizeof(page), &page, sizeof(page));
    }
    qp->sq.counters = mem + offsetof(struct virtio_rdma_direct_page,
                                     sq_producer);
    qp->sq.buf = mem + 4096;
    qp->rq.counters = mem + offsetof(struct virtio_rdma_direct_page,
                                     rq_producer);
    qp->rq.buf = qp->sq.buf + QUEUE_PAGES * 4096ull;
    req->flags |= cpu_to_le32(VIRTIO_RDMA_QP_DIRECT);
    req->queue_pages = cpu_to_le64(qrdma_dma(d, list));
    req->queue_npages = cpu_to_le32(npages);
    req->sq_depth_shift = req->rq_depth_shift = QRDMA_DIRECT_DEPTH_SHIFT;
    req->sq_slot_shift = req->rq_slot_shift = QRDMA_DIRECT_SLOT_SHIFT;
    req->doorbell = cpu_to_le16(QRDMA_DIRECT_DOORBELL);
}

void qrdma_doorbell(QRdma *d, uint32_t page, uint32_t value)
{
    if (!d->has_doorbells) {
        d->doorbells = qpci_iomap(d->pci->pdev, DOORBELL_BAR, NULL);
        d->has_doorbells = true;
    }
    qpci_io_writel(d->pci->pdev, d->doorbells,
                   page * VIRTIO_RDMA_DOORBELL_SIZE, value);
}

bool qrdma_direct_awake(QRdma *d, const QRdmaWq *wq)
{
    return qtest_readl(d->host->qts, wq->counters +
                       offsetof(struct virtio_rdma_direct_page, sq_awake));
}

void qrdma_direct_set_producer(QRdma *d, const QRdmaWq *wq, uint32_t value)
{
    uint32_t le = cpu_to_le32(value);

    qrdma_write(d, wq->counters, &le, sizeof(le));
}

void qrdma_direct_post(QRdma *d, QRdmaWq *wq, const void *wqe, size_t len)
{
    uint64_t slot = wq->buf + (wq->posted % DEPTH) * (uint64_t)SLOT;
    uint32_t le = cpu_to_le32(len);

    qrdma_write(d, slot, &le, sizeof(le));
    qrdma_write(d, slot + sizeof(le), wqe, len);
    qrdma_direct_set_producer(d, wq, ++wq->posted);
}
