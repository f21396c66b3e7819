/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma client for tests: virtqueues, split and packed.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "virtio-rdma.h"
#include "standard-headers/linux/virtio_pci.h"
#include "standard-headers/linux/virtio_ring.h"

#define COMMON(field) offsetof(struct virtio_pci_common_cfg, field)

static uint16_t common_readw(QRdma *d, size_t field)
{
    return qpci_io_readw(d->pci->pdev, d->pci->bar,
                         d->pci->common_cfg_offset + field);
}

static void common_writew(QRdma *d, size_t field, uint16_t value)
{
    qpci_io_writew(d->pci->pdev, d->pci->bar,
                   d->pci->common_cfg_offset + field, value);
}

QRdmaRing *qrdma_ring(QRdma *d, uint32_t index)
{
    g_assert_cmpuint(index, <, d->n_rings);
    return &d->rings[index];
}

/*
 * Each queue has its own vector while there are enough. The last vector is for
 * events.
 */
static int vector_of(QRdmaRing *r)
{
    QRdma *d = r->dev;
    int vectors = d->msix_vectors;
    int n = r->pci.vq.index;

    if (n == VIRTIO_RDMA_EVENT_VQ(d->max_cq, d->max_qp)) {
        return vectors - 1;
    }
    /* vector 0 is for configuration changes */
    return n + 1 < vectors - 1 ? n + 1 : -1;
}

static void qrdma_ring_setup_irq(QRdmaRing *r)
{
    QRdma *d = r->dev;
    int vector;

    r->pci.msix_entry = -1;
    if (!d->pci->pdev->msix_enabled || d->dma_offset) {
        return;
    }
    vector = vector_of(r);
    r->pci.msix_data = 0x5244 << 16 | r->pci.vq.index;
    if (vector > 0) {
        qvirtqueue_pci_msix_setup(d->pci, &r->pci, &d->host->alloc, vector);
        g_array_append_val(d->mem, r->pci.msix_addr);
        qtest_writel(d->host->qts, r->pci.msix_addr, 0);
    }
}

void qrdma_ring_setup(QRdmaRing *r, uint16_t size)
{
    QRdma *d = r->dev;
    QVirtQueue *vq = &r->pci.vq;
    const QVirtioBus *bus = d->pci->vdev.bus;
    uint64_t avail_off;
    uint64_t used_off;

    g_assert_false(r->ready);
    bus->queue_select(&d->pci->vdev, vq->index);
    g_assert_cmpint(common_readw(d, COMMON(queue_enable)), ==, 0);
    vq->vdev = &d->pci->vdev;
    vq->size = MIN(size, common_readw(d, COMMON(queue_size)));
    g_assert_cmpint(vq->size, !=, 0);
    common_writew(d, COMMON(queue_size), vq->size);

    avail_off = vq->size * sizeof(struct vring_desc);
    used_off = ROUND_UP(avail_off + 6 + 2 * vq->size, 64);
    if (!r->mem) {
        r->mem_size = used_off + 6 + 8 * vq->size;
        r->mem = qrdma_alloc(d, r->mem_size);
        r->next = g_new(uint16_t, vq->size);
        r->fifo = g_new(uint16_t, vq->size);
    } else {
        g_assert_cmpuint(used_off + 6 + 8 * vq->size, <=, r->mem_size);
        qrdma_memset(d, r->mem, 0, r->mem_size);
    }
    vq->desc = r->mem;
    vq->avail = r->mem + avail_off;
    vq->used = r->mem + used_off;
    r->avail_idx = 0;
    r->used_idx = 0;
    r->packed = d->features & QRDMA_F(VIRTIO_F_RING_PACKED);
    r->used_at = 0;
    r->avail_lap = false;
    r->used_lap = false;
    r->nfree = vq->size;
    r->free_head = 0;
    for (uint32_t i = 0; i < vq->size; i++) {
        r->next[i] = i + 1;
    }

    /* the device's addresses */
    vq->desc += d->dma_offset;
    vq->avail += d->dma_offset;
    vq->used += d->dma_offset;
    bus->set_queue_address(&d->pci->vdev, vq);
    vq->desc -= d->dma_offset;
    vq->avail -= d->dma_offset;
    vq->used -= d->dma_offset;
    qrdma_ring_setup_irq(r);
    r->pci.notify_offset = d->pci->notify_cfg_offset +
        common_readw(d, COMMON(queue_notify_off)) *
        d->pci->notify_off_multiplier;
    common_writew(d, COMMON(queue_enable), 1);
    r->ready = true;
}

void qrdma_ring_reset(QRdmaRing *r)
{
    QRdma *d = r->dev;
    size_t reset = offsetof(struct virtio_pci_modern_common_cfg, queue_reset);

    d->pci->vdev.bus->queue_select(&d->pci->vdev, r->pci.vq.index);
    common_writew(d, reset, 1);
    qrdma_wait_until(d, common_readw(d, reset) == 0);
    g_assert_cmpint(common_readw(d, COMMON(queue_enable)), ==, 0);
    r->ready = false;
}

static void ring_rewind(QRdmaRing *r)
{
    uint16_t size = r->pci.vq.size;

    g_assert_cmpuint(qrdma_ring_used_idx(r), ==, 0);
    qrdma_ring_set_avail_idx(r, 0);
    r->used_idx = 0;
    r->nfree = size;
    r->free_head = 0;
    for (uint32_t i = 0; i < size; i++) {
        r->next[i] = i + 1;
    }
}

void qrdma_ring_renew(QRdmaRing *r)
{
    uint16_t size = r->pci.vq.size;

    if (r->dev->demo) {
        ring_rewind(r);
    }
    if (r->dev->features & QRDMA_F(VIRTIO_F_RING_RESET)) {
        qrdma_ring_reset(r);
        qrdma_ring_setup(r, size);
    }
}

void qrdma_ring_set_desc(QRdmaRing *r, uint16_t i, uint64_t addr,
                         uint32_t len, uint16_t flags, uint16_t next)
{
    struct vring_desc desc = {
        .addr = cpu_to_le64(qrdma_dma(r->dev, addr)),
        .len = cpu_to_le32(len),
        .flags = cpu_to_le16(flags),
        .next = cpu_to_le16(next),
    };

    qrdma_write(r->dev, r->pci.vq.desc + i * sizeof(desc), &desc,
                sizeof(desc));
}

void qrdma_ring_set_avail(QRdmaRing *r, uint16_t slot, uint16_t head)
{
    uint16_t le = cpu_to_le16(head);

    qrdma_write(r->dev, r->pci.vq.avail + 4 + 2 * (slot % r->pci.vq.size), &le,
                sizeof(le));
}

void qrdma_ring_set_avail_idx(QRdmaRing *r, uint16_t idx)
{
    uint16_t le = cpu_to_le16(idx);

    r->avail_idx = idx;
    /* An iothread may poll the index. */
    smp_wmb();
    qrdma_write(r->dev, r->pci.vq.avail + 2, &le, sizeof(le));
}

/*
 * Packed rings. A lap around the ring inverts what the two flags mean; the
 * id of a buffer is its first position, and next[id] its length.
 */
#define PACKED_AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define PACKED_USED  (1u << VRING_PACKED_DESC_F_USED)

static uint16_t packed_avail_flags(bool odd_lap)
{
    return odd_lap ? PACKED_USED : PACKED_AVAIL;
}

static uint16_t packed_add(QRdmaRing *r, const QRdmaDesc *desc, unsigned n)
{
    uint16_t size = r->pci.vq.size;
    uint16_t head = r->free_head;

    /* the first descriptor last: its flags make all of them available */
    for (int i = n - 1; i >= 0; i--) {
        uint32_t at = head + i;
        bool lap = r->avail_lap ^ (at >= size);
        struct vring_packed_desc d = {
            .addr = cpu_to_le64(qrdma_dma(r->dev, desc[i].addr)),
            .len = cpu_to_le32(desc[i].len),
            .id = cpu_to_le16(head),
            .flags = cpu_to_le16(packed_avail_flags(lap) |
                                 (desc[i].write ? VRING_DESC_F_WRITE : 0) |
                                 (i + 1 < n ? VRING_DESC_F_NEXT : 0)),
        };

        qrdma_write(r->dev, r->pci.vq.desc + at % size * sizeof(d), &d,
                    sizeof(d));
    }
    r->avail_lap ^= head + n >= size;
    r->free_head = (head + n) % size;
    r->next[head] = n;
    r->nfree -= n;
    r->fifo[r->avail_idx % size] = head;
    r->avail_idx++;
    return head;
}

static bool packed_get(QRdmaRing *r, uint16_t *head, uint32_t *len)
{
    uint16_t size = r->pci.vq.size;
    struct vring_packed_desc d;
    uint16_t flags;

    if (r->used_idx == r->avail_idx) {
        return false;
    }
    qrdma_read(r->dev, r->pci.vq.desc + r->used_at * sizeof(d), &d,
               sizeof(d));
    flags = le16_to_cpu(d.flags) & (PACKED_AVAIL | PACKED_USED);
    if (flags != (r->used_lap ? 0 : PACKED_AVAIL | PACKED_USED)) {
        return false;
    }
    *head = le16_to_cpu(d.id);
    *len = le32_to_cpu(d.len);
    g_assert_cmpuint(*head, ==, r->fifo[r->used_idx % size]);
    r->used_idx++;
    r->used_lap ^= r->used_at + r->next[*head] >= size;
    r->used_at = (r->used_at + r->next[*head]) % size;
    r->nfree += r->next[*head];
    return true;
}

uint16_t qrdma_ring_add(QRdmaRing *r, const QRdmaDesc *desc, unsigned n)
{
    uint16_t head = r->free_head;
    uint16_t at = head;

    g_assert_true(r->ready);
    g_assert_cmpuint(n, >, 0);
    g_assert_cmpuint(n, <=, r->nfree);
    if (r->packed) {
        return packed_add(r, desc, n);
    }
    for (unsigned i = 0; i < n; i++) {
        uint16_t flags = desc[i].write ? VRING_DESC_F_WRITE : 0;
        uint16_t next = r->next[at];

        if (i + 1 < n) {
            flags |= VRING_DESC_F_NEXT;
        } else {
            /* ends the chain for qrdma_ring_get() */
            r->next[at] = r->pci.vq.size;
        }
        qrdma_ring_set_desc(r, at, desc[i].addr, desc[i].len, flags, next);
        at = next;
    }
    r->free_head = at;
    r->nfree -= n;
    r->fifo[r->avail_idx % r->pci.vq.size] = head;
    qrdma_ring_set_avail(r, r->avail_idx, head);
    qrdma_ring_set_avail_idx(r, r->avail_idx + 1);
    return head;
}

void qrdma_ring_kick(QRdmaRing *r)
{
    r->dev->pci->vdev.bus->virtqueue_kick(&r->dev->pci->vdev, &r->pci.vq);
}

static bool passes(uint16_t event, uint16_t now, uint16_t old)
{
    return (uint16_t)(now - event - 1) < (uint16_t)(now - old);
}

bool qrdma_ring_wants_kick(QRdmaRing *r, uint16_t old)
{
    QTestState *qts = r->dev->host->qts;
    uint64_t used = r->pci.vq.used;
    uint16_t size = r->pci.vq.size;
    uint16_t event, flags;
    bool lap;

    if (!r->packed) {
        if (r->dev->features & QRDMA_F(VIRTIO_RING_F_EVENT_IDX)) {
            return passes(qtest_readw(qts, used + 4 + 8 * size),
                          r->avail_idx, old);
        }
        return !(qtest_readw(qts, used) & VRING_USED_F_NO_NOTIFY);
    }
    event = qtest_readw(qts, used);
    flags = qtest_readw(qts, used + 2);
    if (flags != VRING_PACKED_EVENT_FLAG_DESC) {
        return flags == VRING_PACKED_EVENT_FLAG_ENABLE;
    }
    /* a position and its lap; all of these buffers have one descriptor */
    lap = !(event >> VRING_PACKED_EVENT_F_WRAP_CTR);
    event &= (1 << VRING_PACKED_EVENT_F_WRAP_CTR) - 1;
    if (lap != r->avail_lap) {
        event -= size;
    }
    return passes(event, r->free_head,
                  r->free_head - (uint16_t)(r->avail_idx - old));
}

uint16_t qrdma_ring_used_idx(QRdmaRing *r)
{
    return qtest_readw(r->dev->host->qts, r->pci.vq.used + 2);
}

bool qrdma_ring_get(QRdmaRing *r, uint16_t *head, uint32_t *len)
{
    struct vring_used_elem elem;
    uint16_t used;
    uint32_t id;
    uint16_t last;

    if (r->packed) {
        return packed_get(r, head, len);
    }
    used = qrdma_ring_used_idx(r);
    /* the device never returns more than it was given */
    g_assert_cmpuint((uint16_t)(used - r->used_idx), <=,
                     (uint16_t)(r->avail_idx - r->used_idx));
    if (used == r->used_idx) {
        return false;
    }
    qrdma_read(r->dev, r->pci.vq.used + 4 +
               r->used_idx % r->pci.vq.size * sizeof(elem),
               &elem, sizeof(elem));
    id = le32_to_cpu(elem.id);
    /* all queues of this device are used in order */
    g_assert_cmpuint(id, ==, r->fifo[r->used_idx % r->pci.vq.size]);
    r->used_idx++;

    last = id;
    r->nfree++;
    while (r->next[last] != r->pci.vq.size) {
        last = r->next[last];
        r->nfree++;
    }
    r->next[last] = r->free_head;
    r->free_head = id;
    *head = id;
    *len = le32_to_cpu(elem.len);
    return true;
}

bool qrdma_ring_irq(QRdmaRing *r)
{
    return r->dev->pci->vdev.bus->get_queue_isr_status(&r->dev->pci->vdev,
                                                       &r->pci.vq);
}

void qrdma_ring_aim(const QRdmaRing *r, uint64_t addr, uint32_t data)
{
    QPCIDevice *pdev = r->dev->pci->pdev;
    uint64_t at = pdev->msix_table_off +
                  r->pci.msix_entry * PCI_MSIX_ENTRY_SIZE;

    qpci_io_writel(pdev, pdev->msix_table_bar, at + PCI_MSIX_ENTRY_LOWER_ADDR,
                   addr);
    qpci_io_writel(pdev, pdev->msix_table_bar, at + PCI_MSIX_ENTRY_UPPER_ADDR,
                   addr >> 32);
    qpci_io_writel(pdev, pdev->msix_table_bar, at + PCI_MSIX_ENTRY_DATA, data);
}
