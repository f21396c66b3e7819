/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "device" of the virtio-rdma device: what QEMU, the transport and the
 * backend call.
 */
#ifndef HW_RDMA_VIRTIO_DEVICE_H
#define HW_RDMA_VIRTIO_DEVICE_H

#include "vmstate.h"

/* serve.c: virtqueues and doorbells */

/*
 * The backend runs while the VM does, @status has DRIVER_OK, and the device is
 * neither broken nor kept from bus mastering: tell the core, and return whether
 * that has changed.
 */
bool virtio_rdma_running_update(VirtIORdma *s, uint8_t status);
/* Of RdmaHcaOps: serve all virtqueues except work queues. */
void virtio_rdma_serve(VirtIORdma *s);
/* The handlers of the virtqueues */
void virtio_rdma_handle_ctrl(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_cq(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_wq(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_event(VirtIODevice *vdev, VirtQueue *vq);

/* reset.c: what takes objects away */

/* What the class has set_status() return: an int in 10.2, nothing in 10.0 */
typedef typeof(((VirtioDeviceClass *)0)->set_status(NULL, 0)) VirtIORdmaStatus;
/* Of VirtioDeviceClass */
VirtIORdmaStatus virtio_rdma_set_status(VirtIODevice *vdev, uint8_t status);
void virtio_rdma_reset(VirtIODevice *vdev);
void virtio_rdma_queue_reset(VirtIODevice *vdev, uint32_t n);
void virtio_rdma_queue_enable(VirtIODevice *vdev, uint32_t n);
void virtio_rdma_unrealize(DeviceState *dev);
/* Of RdmaHcaOps: what was put off */
void virtio_rdma_run_pending(VirtIORdma *s, uint32_t pending);

/* backend.c: the backend, and what the core calls */

void virtio_rdma_hca_init(VirtIORdma *s);
/* Attach to it; afterwards s->hca.limits are those of device and backend. */
bool virtio_rdma_backend_attach(VirtIORdma *s, Error **errp);

#endif
