/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtqueues of virtio devices on the HCA core.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "hw/rdma/virtqueue.h"
#include "hw/virtio/virtio-bus.h"
#include "qemu/bitops.h"
#include "rdma/work.h"
#include "standard-headers/linux/virtio_ring.h"
#include "system/address-spaces.h"
#include "system/dma.h"

/* Each descriptor of an element beyond these costs RDMA_WORK_POLL. */
#define USUAL_DESCS 4
/*
 * A drain stops after these. A ring has fewer descriptors, but indirect tables
 * can have more.
 */
#define DRAIN_DESCS (4 * VIRTQUEUE_MAX_SIZE)

AddressSpace *rdma_vq_dma_as(VirtIODevice *vdev)
{
    BusState *qbus = qdev_get_parent_bus(DEVICE(vdev));
    VirtioBusClass *k = VIRTIO_BUS_GET_CLASS(qbus);

    return virtio_host_has_feature(vdev, VIRTIO_F_IOMMU_PLATFORM) &&
           k->get_dma_as ? k->get_dma_as(qbus->parent) : &address_space_memory;
}

void rdma_vq_notify(RdmaVqNotify *notify, VirtQueue *vq)
{
    set_bit(virtio_get_queue_index(vq), notify->vqs);
    notify->any = true;
}

void rdma_vq_notify_flush(RdmaVqNotify *notify, RdmaHca *hca,
                          VirtIODevice *vdev)
{
    if (!notify->any) {
        return;
    }
    notify->any = false;
    for (unsigned n = find_first_bit(notify->vqs, VIRTIO_QUEUE_MAX);
         n < VIRTIO_QUEUE_MAX;
         n = find_next_bit(notify->vqs, VIRTIO_QUEUE_MAX, n + 1)) {
        clear_bit(n, notify->vqs);
        /* A notification may cause a reset of the device. */
        if (rdma_hca_is_active(hca)) {
            virtio_notify(vdev, virtio_get_queue(vdev, n));
        }
    }
}

uint32_t rdma_vq_elem_work(const VirtQueueElement *elem)
{
    unsigned ndescs = elem->out_num + elem->in_num;

    return ndescs > USUAL_DESCS ? (ndescs - USUAL_DESCS) * RDMA_WORK_POLL : 0;
}

void rdma_vq_unmap(VirtIODevice *vdev, VirtQueueElement *elem)
{
    AddressSpace *as = vdev->dma_as;

    for (unsigned i = 0; i < elem->out_num; i++) {
        struct iovec *sg = &elem->out_sg[i];

        dma_memory_unmap(as, sg->iov_base, sg->iov_len,
                         DMA_DIRECTION_TO_DEVICE, sg->iov_len);
    }
    for (unsigned i = 0; i < elem->in_num; i++) {
        struct iovec *sg = &elem->in_sg[i];

        dma_memory_unmap(as, sg->iov_base, sg->iov_len,
                         DMA_DIRECTION_FROM_DEVICE, 0);
    }
    elem->out_num = 0;
    elem->in_num = 0;
}

/*
 * Count the available buffers of a packed ring (virtio 1.2, 2.8.1): a
 * descriptor is available if its flag AVAIL equals the wrap counter, and USED
 * does not. The last descriptor of a buffer has no flag NEXT.
 */
static bool count_packed(RdmaHca *hca, VirtIODevice *vdev, int index,
                         uint32_t *n)
{
    uint32_t size = virtio_queue_get_num(vdev, index);
    unsigned last = virtio_queue_get_last_avail_idx(vdev, index);
    g_autofree struct vring_packed_desc *ring =
        g_new(struct vring_packed_desc, size);
    uint32_t at = last & 0x7fff;
    bool wrap = last & 0x8000;

    if (!rdma_hca_read_ram(rdma_hca_ram(hca),
                           virtio_queue_get_desc_addr(vdev, index),
                           ring, size * sizeof(*ring))) {
        return false;
    }
    *n = 0;
    for (uint32_t i = 0; i < size && at < size; i++) {
        uint16_t flags = le16_to_cpu(ring[at].flags);

        if (!(flags & 1 << VRING_PACKED_DESC_F_AVAIL) == wrap ||
            !(flags & 1 << VRING_PACKED_DESC_F_USED) != wrap) {
            break;
        }
        *n += !(flags & VRING_DESC_F_NEXT);
        if (++at == size) {
            at = 0;
            wrap = !wrap;
        }
    }
    return true;
}

bool rdma_vq_count(RdmaHca *hca, VirtIODevice *vdev, VirtQueue *vq,
                   uint32_t *n)
{
    int index = virtio_get_queue_index(vq);
    uint16_t idx;

    if (!virtio_queue_ready(vq)) {
        return false;
    }
    if (virtio_vdev_has_feature(vdev, VIRTIO_F_RING_PACKED)) {
        return count_packed(hca, vdev, index, n);
    }
    if (!rdma_hca_read_ram(rdma_hca_ram(hca),
                           virtio_queue_get_avail_addr(vdev, index) +
                           offsetof(struct vring_avail, idx),
                           &idx, sizeof(idx))) {
        return false;
    }
    idx = le16_to_cpu(idx) - virtio_queue_get_last_avail_idx(vdev, index);
    *n = idx;
    return idx <= virtio_queue_get_num(vdev, index);
}

void rdma_vq_drain(RdmaHca *hca, VirtQueue *vq, uint32_t n,
                   RdmaVqNotify *notify)
{
    uint32_t ndescs = 0;

    rdma_work_pay(&hca->cmd_budget, n * RDMA_WORK_WR);
    while (n < VIRTQUEUE_MAX_SIZE && ndescs < DRAIN_DESCS) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(vq, sizeof(VirtQueueElement));

        if (!elem) {
            break;
        }
        ndescs += elem->out_num + elem->in_num;
        rdma_work_pay(&hca->cmd_budget, RDMA_WORK_WR + rdma_vq_elem_work(elem));
        virtqueue_push(vq, elem, 0);
        n++;
    }
    if (n) {
        rdma_vq_notify(notify, vq);
    }
}

void rdma_vq_rewind(RdmaHca *hca, VirtIODevice *vdev, VirtQueue *vq)
{
    const MemTxAttrs only_ram = { .memory = true };
    const uint16_t idx = 0;
    int n = virtio_get_queue_index(vq);

    if (!rdma_hca_is_active(hca) || !virtio_queue_ready(vq)) {
        return;
    }
    address_space_write(vdev->dma_as, virtio_queue_get_used_addr(vdev, n) +
                        offsetof(struct vring_used, idx), only_ram, &idx,
                        sizeof(idx));
    virtio_queue_set_last_avail_idx(vdev, n, 0);
    virtio_queue_update_used_idx(vdev, n);
    virtio_queue_invalidate_signalled_used(vdev, n);
}

bool rdma_vq_check_empty(VirtIODevice *vdev)
{
    for (int n = 0; n < VIRTIO_QUEUE_MAX; n++) {
        const RdmaHcaRecord r = { "virtqueue", n };

        if (!rdma_hca_record_check(&r, virtio_queue_get_num(vdev, n) ||
                                   !virtio_queue_get_desc_addr(vdev, n),
                                   "size", 0, "1 or more")) {
            return false;
        }
    }
    return true;
}

bool rdma_vq_check_sizes(VirtIODevice *vdev)
{
    for (int n = 0; n < VIRTIO_QUEUE_MAX; n++) {
        const RdmaHcaRecord r = { "virtqueue", n };

        if (!rdma_hca_record_max(&r, "size",
                                 (uint32_t)virtio_queue_get_num(vdev, n),
                                 VIRTQUEUE_MAX_SIZE)) {
            return false;
        }
    }
    return true;
}

void rdma_vq_hide(RdmaVqHidden *hidden, VirtIODevice *vdev, uint32_t n)
{
    if (!virtio_queue_get_last_avail_idx(vdev, n)) {
        hidden->descs[n] = virtio_queue_get_desc_addr(vdev, n);
        virtio_queue_set_rings(vdev, n, 0, 0, 0);
    }
}

void rdma_vq_show(RdmaVqHidden *hidden, VirtIODevice *vdev)
{
    for (uint32_t n = 0; n < VIRTIO_QUEUE_MAX; n++) {
        if (hidden->descs[n]) {
            virtio_queue_set_rings(vdev, n, hidden->descs[n],
                                   virtio_queue_get_avail_addr(vdev, n),
                                   virtio_queue_get_used_addr(vdev, n));
            virtio_queue_set_last_avail_idx(vdev, n, 0);
            virtio_queue_update_used_idx(vdev, n);
        }
    }
    *hidden = (RdmaVqHidden) {};
}
