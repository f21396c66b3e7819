/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "device" of the virtio-rdma device: functions that QEMU, the transport
 * and the core call
 */
#ifndef HW_RDMA_VIRTIO_DEVICE_H
#define HW_RDMA_VIRTIO_DEVICE_H

#include "hw/virtio/virtio-rdma-series.h"
#include "vmstate.h"

/* serve.c: virtqueues */

/*
 * Tell the core whether the backend may run: the VM runs, @status has
 * DRIVER_OK, and the device is not broken and may be bus master. Returns
 * whether this has changed.
 */
bool virtio_rdma_running_update(VirtIORdma *s, uint8_t status);
/* For RdmaHcaOps.serve(): serve all virtqueues except work queues. */
void virtio_rdma_serve(RdmaHca *hca);
/* The handlers of the virtqueues */
void virtio_rdma_handle_ctrl(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_cq(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_wq(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_event(VirtIODevice *vdev, VirtQueue *vq);

/* reset.c: resets, and the end of the device */

/* For VirtioDeviceClass */
VirtIOSetStatusReturn virtio_rdma_set_status(VirtIODevice *vdev,
                                             uint8_t status);
void virtio_rdma_reset(VirtIODevice *vdev);
void virtio_rdma_queue_reset(VirtIODevice *vdev, uint32_t n);
void virtio_rdma_queue_enable(VirtIODevice *vdev, uint32_t n);
void virtio_rdma_unrealize(DeviceState *dev);
/* For RdmaHcaOps.run_pending(): do deferred work. May end the device. */
void virtio_rdma_run_pending(RdmaHca *hca, uint32_t pending);

/* backend.c: the backend, and callbacks of the core */

void virtio_rdma_hca_init(VirtIORdma *s);
/* Set s->hca.limits from properties, and lower them to those of the backend. */
bool virtio_rdma_backend_attach(VirtIORdma *s, Error **errp);

#endif
