/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "device" of the virtio-rdma device: what QEMU, the transport and the
 * backend call.
 */
#ifndef HW_RDMA_VIRTIO_RDMA_DEVICE_H
#define HW_RDMA_VIRTIO_RDMA_DEVICE_H

#include "virtio-rdma-vmstate.h"

/* virtio-rdma-run.c: work on virtqueues */

/*
 * The backend runs while the VM does, @status has DRIVER_OK, and the device is
 * neither broken nor kept from bus mastering: tell it if that has changed, and
 * return whether it has.
 */
bool virtio_rdma_running_update(VirtIORdma *s, uint8_t status);
/* Of RdmaBackendClientOps */
void virtio_rdma_port_changed(void *opaque);
/* The bottom half, and with an iothread that one's part of it */
void virtio_rdma_bh(void *opaque);
void virtio_rdma_work_bh(void *opaque);
/* The handlers of the virtqueues */
void virtio_rdma_handle_ctrl(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_cq(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_wq(VirtIODevice *vdev, VirtQueue *vq);
void virtio_rdma_handle_event(VirtIODevice *vdev, VirtQueue *vq);

/* virtio-rdma-reset.c: what takes objects away */

/* What the class has set_status() return: an int in 10.2, nothing in 10.0 */
typedef typeof(((VirtioDeviceClass *)0)->set_status(NULL, 0)) VirtIORdmaStatus;
/* Of VirtioDeviceClass */
VirtIORdmaStatus virtio_rdma_set_status(VirtIODevice *vdev, uint8_t status);
void virtio_rdma_reset(VirtIODevice *vdev);
void virtio_rdma_queue_reset(VirtIODevice *vdev, uint32_t n);
void virtio_rdma_queue_enable(VirtIODevice *vdev, uint32_t n);
void virtio_rdma_unrealize(DeviceState *dev);
/* Of RdmaBackendClientOps: what was put off */
void virtio_rdma_run_pending(void *opaque, uint32_t pending);
/* Let the backend go. */
void virtio_rdma_backend_put(VirtIORdma *s);

/* virtio-rdma-client.c: the backend */

/* Find the backend that the properties name, or make one. */
bool virtio_rdma_backend_get(VirtIORdma *s, Error **errp);
/* Attach to it; afterwards s->hca.limits are those of device and backend. */
bool virtio_rdma_backend_attach(VirtIORdma *s, Error **errp);

#endif
