/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces of virtio devices that differ between the supported series of QEMU
 */
#ifndef HW_VIRTIO_VIRTIO_RDMA_SERIES_H
#define HW_VIRTIO_VIRTIO_RDMA_SERIES_H

#include "hw/virtio/virtio.h"

/* What VirtioDeviceClass.set_status() returns: void until 10.0, then int */
typedef typeof(((VirtioDeviceClass *)0)->set_status(NULL, 0))
    VirtIOSetStatusReturn;

#endif /* HW_VIRTIO_VIRTIO_RDMA_SERIES_H */
