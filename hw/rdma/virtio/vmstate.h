/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "vmstate" of the virtio-rdma device: migration. The core migrates
 * objects, see hw/rdma/hca-vmstate.h; this layer adds the forms of queues and
 * what else only the guest interface knows.
 */
#ifndef HW_RDMA_VIRTIO_VMSTATE_H
#define HW_RDMA_VIRTIO_VMSTATE_H

#include "ctrl.h"
#include "hw/rdma/hca-vmstate.h"

/* vmstate-queue.c: the forms of queues */

/* For RdmaHcaOps: CQs and event queues, SRQs, QPs */
extern const RdmaHcaObjectOps virtio_rdma_cqs;
extern const RdmaHcaObjectOps virtio_rdma_srqs;
extern const RdmaHcaObjectOps virtio_rdma_qps;
/* All CQs are loaded: attach them to their event queues. */
bool virtio_rdma_eqs_load(VirtIORdma *s);

/* vmstate.c: the stream */

extern const VMStateDescription vmstate_virtio_rdma_device;
/* VirtioDeviceClass.post_load(): features and virtqueues are loaded, too. */
int virtio_rdma_post_load(VirtIODevice *vdev);

#endif
