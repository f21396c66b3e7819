/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtqueues of virtio devices on the HCA core: what the core needs of a queue,
 * and QEMU's virtqueues do not do.
 *
 * Context: that of the device's virtqueues, between rdma_hca_enter() and
 * rdma_hca_leave().
 */
#ifndef HW_RDMA_VIRTQUEUE_H
#define HW_RDMA_VIRTQUEUE_H

#include "hw/rdma/hca.h"
#include "hw/virtio/virtio.h"
#include "qemu/bitmap.h"

/* Virtqueues whose driver has to be notified of used buffers */
typedef struct RdmaVqNotify {
    bool any;
    DECLARE_BITMAP(vqs, VIRTIO_QUEUE_MAX);
} RdmaVqNotify;

/* The value of vdev->dma_as, which the bus sets only after realize */
AddressSpace *rdma_vq_dma_as(VirtIODevice *vdev);
/*
 * Notify the driver when the backend is left. Not at once, because an MSI
 * message may go to any address.
 */
void rdma_vq_notify(RdmaVqNotify *notify, VirtQueue *vq);
/* For RdmaHcaOps.flush(): send these notifications. */
void rdma_vq_notify_flush(RdmaVqNotify *notify, RdmaHca *hca,
                          VirtIODevice *vdev);
static inline void rdma_vq_notify_reset(RdmaVqNotify *notify)
{
    *notify = (RdmaVqNotify) {};
}

/* The extra work of popping @elem, if it has many descriptors; otherwise 0 */
uint32_t rdma_vq_elem_work(const VirtQueueElement *elem);
/* Unmap the buffers of @elem: the used ring needs none of them. */
void rdma_vq_unmap(VirtIODevice *vdev, VirtQueueElement *elem);
/*
 * Count the buffers that are available and were not popped. False if the ring
 * is not set up or not in RAM, or if the driver's index is wrong.
 */
bool rdma_vq_count(RdmaHca *hca, VirtIODevice *vdev, VirtQueue *vq,
                   uint32_t *n);
/*
 * Return all available buffers of @vq unread, after @n buffers were returned
 * without a notification. The current command pays.
 */
void rdma_vq_drain(RdmaHca *hca, VirtQueue *vq, uint32_t n,
                   RdmaVqNotify *notify);
/*
 * Let @vq start again at index 0, where a driver begins that does not reset the
 * virtqueue of an object that is gone.
 */
void rdma_vq_rewind(RdmaHca *hca, VirtIODevice *vdev, VirtQueue *vq);

/*
 * In post_load() of VirtioDeviceClass.vmsd: QEMU asserts next that no virtqueue
 * with an address is empty.
 */
bool rdma_vq_check_empty(VirtIODevice *vdev);
/*
 * In VirtioDeviceClass.post_load(): QEMU loads the sizes of virtqueues without
 * checks, and has arrays of VIRTQUEUE_MAX_SIZE. Not earlier, because QEMU loads
 * the sizes after a reset before that, which a refused stream must restore.
 */
bool rdma_vq_check_sizes(VirtIODevice *vdev);

/*
 * Virtqueues without an object, during a load. Until the driver has set its
 * available index of such a virtqueue to 0, virtio_load() would take the two
 * indices for an error of the driver, and break the device.
 */
typedef struct RdmaVqHidden {
    uint64_t descs[VIRTIO_QUEUE_MAX];
} RdmaVqHidden;

/* Before virtio_load() checks @n; only if the device is at index 0 there. */
void rdma_vq_hide(RdmaVqHidden *hidden, VirtIODevice *vdev, uint32_t n);
/* After virtio_load(), for all that were hidden */
void rdma_vq_show(RdmaVqHidden *hidden, VirtIODevice *vdev);

#endif
