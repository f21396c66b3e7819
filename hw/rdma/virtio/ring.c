/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtqueues in general: check the driver's rings, find a virtqueue for a new
 * object, and mark it when the object is gone
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/log.h"
#include "standard-headers/linux/virtio_ring.h"
#include "system/dma.h"
#include "base.h"

/* Each descriptor of an element beyond these costs RDMA_WORK_POLL. */
#define USUAL_DESCS 4
/*
 * A drain stops after these. A ring has fewer descriptors, but indirect tables
 * can have more.
 */
#define DRAIN_DESCS (4 * VIRTQUEUE_MAX_SIZE)

bool virtio_rdma_ring_check(VirtIORdma *s, VirtQueue *vq)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    int n = virtio_get_queue_index(vq);
    uint16_t last, idx;

    if (virtio_vdev_has_feature(vdev, VIRTIO_F_RING_PACKED) ||
        !virtio_queue_ready(vq)) {
        return true;
    }
    last = virtio_queue_get_last_avail_idx(vdev, n);
    if ((int16_t)(last - s->vq_seen[n]) < 0) {
        return true;
    }
    idx = address_space_lduw_le(vdev->dma_as,
                                virtio_queue_get_avail_addr(vdev, n) +
                                offsetof(struct vring_avail, idx),
                                MEMTXATTRS_UNSPECIFIED, NULL);
    if ((uint16_t)(idx - last) > virtio_queue_get_num(vdev, n)) {
        virtio_error(vdev, "virtio-rdma: avail index of virtqueue %d moves "
                     "from %u to %u", n, last, idx);
        return false;
    }
    s->vq_seen[n] = idx;
    return true;
}

/*
 * Count the available buffers of a packed ring (virtio 1.2, 2.8.1): a
 * descriptor is available if its flag AVAIL equals the wrap counter, and USED
 * does not. The last descriptor of a buffer has no flag NEXT.
 */
static bool count_packed(VirtIORdma *s, int index, uint32_t *n)
{
    VirtIODevice *vdev = &s->parent_obj;
    uint32_t size = virtio_queue_get_num(vdev, index);
    unsigned last = virtio_queue_get_last_avail_idx(vdev, index);
    g_autofree struct vring_packed_desc *ring =
        g_new(struct vring_packed_desc, size);
    uint32_t at = last & 0x7fff;
    bool wrap = last & 0x8000;

    if (!rdma_hca_read_ram(rdma_hca_ram(&s->hca),
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

bool virtio_rdma_ring_count(VirtIORdma *s, VirtQueue *vq, uint32_t *n)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    int index = virtio_get_queue_index(vq);
    uint16_t idx;

    if (!virtio_queue_ready(vq)) {
        return false;
    }
    if (virtio_vdev_has_feature(vdev, VIRTIO_F_RING_PACKED)) {
        return count_packed(s, index, n);
    }
    if (!rdma_hca_read_ram(rdma_hca_ram(&s->hca),
                           virtio_queue_get_avail_addr(vdev, index) +
                           offsetof(struct vring_avail, idx),
                           &idx, sizeof(idx))) {
        return false;
    }
    idx = le16_to_cpu(idx) - virtio_queue_get_last_avail_idx(vdev, index);
    *n = idx;
    return idx <= virtio_queue_get_num(vdev, index);
}

uint32_t virtio_rdma_elem_work(const VirtQueueElement *elem)
{
    unsigned ndescs = elem->out_num + elem->in_num;

    return ndescs > USUAL_DESCS ? (ndescs - USUAL_DESCS) * RDMA_WORK_POLL : 0;
}

void virtio_rdma_vq_unmap(VirtIORdma *s, VirtQueueElement *elem)
{
    AddressSpace *as = s->parent_obj.dma_as;

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

/* virtqueue_unpop() would go back by only one descriptor in a packed ring. */
void virtio_rdma_vq_unpop(VirtIORdma *s, VirtQueue *vq,
                          VirtQueueElement *elem)
{
    virtio_rdma_vq_unmap(s, elem);
    virtqueue_rewind(vq, elem->ndescs);
}

void virtio_rdma_vq_notify(VirtIORdma *s, VirtQueue *vq)
{
    set_bit(virtio_get_queue_index(vq), s->notify_vqs);
    s->notify = true;
}

void virtio_rdma_vqs_flush(VirtIORdma *s)
{
    VirtIODevice *vdev = &s->parent_obj;

    if (!s->notify) {
        return;
    }
    s->notify = false;
    for (unsigned n = find_first_bit(s->notify_vqs, VIRTIO_QUEUE_MAX);
         n < VIRTIO_QUEUE_MAX;
         n = find_next_bit(s->notify_vqs, VIRTIO_QUEUE_MAX, n + 1)) {
        clear_bit(n, s->notify_vqs);
        /* A notification may cause a reset of the device. */
        if (!virtio_rdma_active(s)) {
            continue;
        }
        virtio_notify(vdev, virtio_get_queue(vdev, n));
    }
}

void virtio_rdma_ring_drain(VirtIORdma *s, VirtQueue *vq, uint32_t n)
{
    int index = virtio_get_queue_index(vq);
    uint32_t ndescs = 0;

    rdma_work_pay(&s->hca.cmd_budget, n * RDMA_WORK_WR);
    while (n < VIRTQUEUE_MAX_SIZE && ndescs < DRAIN_DESCS) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(vq, sizeof(VirtQueueElement));

        if (!elem) {
            break;
        }
        ndescs += elem->out_num + elem->in_num;
        rdma_work_pay(&s->hca.cmd_budget,
                      RDMA_WORK_WR + virtio_rdma_elem_work(elem));
        virtqueue_push(vq, elem, 0);
        n++;
    }
    s->vq_seen[index] = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s),
                                                        index);
    if (n) {
        virtio_rdma_vq_notify(s, vq);
    }
}

VirtQueue *virtio_rdma_vq_use(VirtIORdma *s, uint32_t n)
{
    s->vq_seen[n] = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s), n);
    clear_bit(n, s->stale_vqs);
    return virtio_get_queue(VIRTIO_DEVICE(s), n);
}

int virtio_rdma_vq_check(VirtIORdma *s, uint32_t n, uint32_t size)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    if (!virtio_queue_ready(virtio_get_queue(vdev, n)) ||
        (test_bit(n, s->stale_vqs) &&
         virtio_vdev_has_feature(vdev, VIRTIO_F_RING_RESET))) {
        return -ENOMEM;
    }
    return virtio_queue_get_num(vdev, n) < size ? -EINVAL : 0;
}

int virtio_rdma_vq_find_id(VirtIORdma *s, RdmaHcaTable *t,
                           uint32_t first, uint32_t end,
                           VirtIORdmaCheckId *check, const void *req,
                           uint32_t *id)
{
    bool full = true;
    int ret = -ENOMEM;
    uint32_t next;

    if (first >= end) {
        return ret;
    }
    next = t->next < end ? MAX(t->next, first)
                         : first + (t->next - first) % (end - first);
    for (uint32_t i = first; i < end; i++) {
        uint32_t n = next++;

        if (next == end) {
            next = first;
        }
        if (!rdma_hca_table_get(t, n)) {
            int r = check(s, n, req);

            if (r == 0) {
                *id = n;
                return 0;
            }
            if (r == -EINVAL) {
                ret = r;
            }
            full = false;
        }
    }
    if (ret == -EINVAL) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: the rings of all free "
                      "virtqueues are too small for the object\n");
    } else if (!full) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: no free virtqueue is set "
                      "up, and was reset after its last use\n");
    }
    return ret;
}

void virtio_rdma_vq_abandon(VirtIORdma *s, uint32_t n)
{
    if (virtio_queue_ready(virtio_get_queue(VIRTIO_DEVICE(s), n))) {
        set_bit(n, s->stale_vqs);
    }
}

void virtio_rdma_vq_rewind(VirtIORdma *s, uint32_t n)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    const MemTxAttrs only_ram = { .memory = true };
    const uint16_t idx = 0;

    if (!virtio_rdma_active(s) ||
        !virtio_queue_ready(virtio_get_queue(vdev, n))) {
        return;
    }
    address_space_write(vdev->dma_as, virtio_queue_get_used_addr(vdev, n) +
                        offsetof(struct vring_used, idx), only_ram, &idx,
                        sizeof(idx));
    virtio_queue_set_last_avail_idx(vdev, n, 0);
    virtio_queue_update_used_idx(vdev, n);
    virtio_queue_invalidate_signalled_used(vdev, n);
    s->vq_seen[n] = 0;
}
