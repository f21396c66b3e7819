/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user-rdma: a virtio-rdma device that another process serves
 */
#ifndef HW_VIRTIO_VHOST_USER_RDMA_H
#define HW_VIRTIO_VHOST_USER_RDMA_H

#include "hw/virtio/vhost-user-base.h"
#include "qom/object.h"

#define TYPE_VHOST_USER_RDMA "vhost-user-rdma"
OBJECT_DECLARE_SIMPLE_TYPE(VHostUserRdma, VHOST_USER_RDMA)

struct VHostUserRdma {
    VHostUserBase parent_obj;
    QEMUBH *close_bh;               /* cleans up after the server has closed */
    QEMUBH *no_server_bh;           /* a driver has found no server */
    bool closed;                    /* until @close_bh has run */
    bool loading;                   /* the state of the server */
};

#endif
