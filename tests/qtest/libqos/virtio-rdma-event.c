/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma client for tests: asynchronous events.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "virtio-rdma.h"

#define EVENT_SIZE sizeof(struct virtio_rdma_event)

static QRdmaRing *event_ring(QRdma *d)
{
    return qrdma_ring(d, VIRTIO_RDMA_EVENT_VQ(d->max_cq, d->max_qp));
}

void qrdma_add_event_buffers(QRdma *d, unsigned n)
{
    QRdmaRing *ring = event_ring(d);

    if (!d->event_buf) {
        d->event_buf = qrdma_alloc(d, ring->pci.vq.size * EVENT_SIZE);
    }
    for (unsigned i = 0; i < n; i++) {
        QRdmaDesc desc = {
            d->event_buf + ring->free_head * EVENT_SIZE, EVENT_SIZE, true,
        };

        qrdma_ring_add(ring, &desc, 1);
    }
    qrdma_ring_kick(ring);
}

bool qrdma_poll_event(QRdma *d, RdmaEvent *event)
{
    struct virtio_rdma_event e;
    uint16_t head;
    uint32_t len;

    if (!qrdma_ring_get(event_ring(d), &head, &len)) {
        return false;
    }
    g_assert_cmpuint(len, ==, EVENT_SIZE);
    qrdma_read(d, d->event_buf + head * EVENT_SIZE, &e, EVENT_SIZE);
    *event = (RdmaEvent) {
        .type = le32_to_cpu(e.type), .id = le32_to_cpu(e.id),
    };
    return true;
}

void qrdma_expect_event(QRdma *d, RdmaEventType type, uint32_t id)
{
    RdmaEvent event;

    qrdma_wait_until(d, qrdma_poll_event(d, &event));
    g_assert_cmpint(event.type, ==, type);
    g_assert_cmpuint(event.id, ==, id);
}

void qrdma_expect_no_event(QRdma *d)
{
    RdmaEvent event;

    qrdma_settle(d);
    g_assert_false(qrdma_poll_event(d, &event));
}
