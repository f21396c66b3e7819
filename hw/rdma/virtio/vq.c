/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The virtqueues of a virtio-rdma device: check the driver's rings, find a
 * virtqueue for a new object, and mark or rewind it when the object is gone
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "qemu/bitops.h"
#include "qemu/log.h"
#include "standard-headers/linux/virtio_ring.h"
#include "base.h"

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

/* virtqueue_unpop() would go back by only one descriptor in a packed ring. */
void virtio_rdma_vq_unpop(VirtIORdma *s, VirtQueue *vq,
                          VirtQueueElement *elem)
{
    rdma_vq_unmap(VIRTIO_DEVICE(s), elem);
    virtqueue_rewind(vq, elem->ndescs);
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

bool virtio_rdma_vq_check_loaded(const RdmaHcaRecord *r, bool served,
                                 const char *field, uint32_t max,
                                 uint8_t depth_shift)
{
    return rdma_hca_record_check(r, served, "virtqueues", 1,
                                 "0, because an iothread does not serve them: "
                                 "leave iothread out at the destination") &&
           rdma_hca_record_max(r, "depth_shift without pages", depth_shift,
                               0) &&
           rdma_hca_record_check(r, max, field, r->id, "direct") &&
           rdma_hca_record_max(r, field, r->id, max - 1);
}

void virtio_rdma_vq_abandon(VirtIORdma *s, uint32_t n)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    VirtQueue *vq = virtio_get_queue(vdev, n);

    if (s->is_demo) {
        rdma_vq_rewind(&s->hca, vdev, vq);
        s->vq_seen[n] = virtio_queue_get_last_avail_idx(vdev, n);
    } else if (virtio_queue_ready(vq)) {
        set_bit(n, s->stale_vqs);
    }
}
