/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma-vhost-user: a virtio-rdma device for the guest of a vhost-user
 * front end.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "hw/virtio/vhost-user-server.h"
#include "hw/virtio/virtio-rdma.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "qom/object.h"
#include "system/rdma-series.h"

#define TYPE_VIRTIO_RDMA_VHOST_USER "virtio-rdma-vhost-user"
OBJECT_DECLARE_SIMPLE_TYPE(VirtIORdmaVhostUser, VIRTIO_RDMA_VHOST_USER)

struct VirtIORdmaVhostUser {
    VhostUserServer parent_obj;
    VirtIORdma vdev;
};

/*
 * Default limits. With the rings of commands and events, they use all rings
 * that the protocol can number.
 */
#define MAX_CQ 64
#define MAX_QP 80
#define MAX_SRQ 30
QEMU_BUILD_BUG_ON(1 + MAX_CQ + 2 * MAX_QP + 1 + MAX_SRQ != VUS_MAX_RINGS);

static void plug(VhostUserServer *s, Error **errp)
{
    VirtIORdmaVhostUser *dev = VIRTIO_RDMA_VHOST_USER(s);

    if (virtio_rdma_wants_demo(&dev->vdev)) {
        error_setg(errp, "layout=demo does not go with vhost-user, which "
                   "starts a device at DRIVER_OK: leave layout out, or use "
                   "virtio-rdma-pci");
        return;
    }
    vhost_user_server_plug(s, VIRTIO_DEVICE(&dev->vdev), errp);
}

/* QEMU's own check for blockers is that of the front end. */
static int pre_save(void *opaque)
{
    VirtIORdmaVhostUser *dev = opaque;
    Error *blocker = rdma_hca_migration_blocker(&dev->vdev.hca);

    if (blocker) {
        error_report("%s", error_get_pretty(blocker));
        return -EBUSY;
    }
    return 0;
}

static const VMStateDescription state = {
    .name = TYPE_VIRTIO_RDMA_VHOST_USER,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = pre_save,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(vdev, VirtIORdmaVhostUser, 1, vmstate_virtio_rdma_limits,
                       VirtIORdma),
        {
            .name = "virtio",
            .info = &virtio_vmstate_info,
            .flags = VMS_SINGLE,
            .offset = offsetof(VirtIORdmaVhostUser, vdev),
        },
        VMSTATE_END_OF_LIST()
    },
};

static void class_init(ObjectClass *klass, RdmaClassData data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);

    dc->desc = "RDMA adapter (RoCEv2) for a vhost-user front end";
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    VHOST_USER_SERVER_CLASS(klass)->plug = plug;
    VHOST_USER_SERVER_CLASS(klass)->state = &state;
}

static void instance_init(Object *obj)
{
    VirtIORdmaVhostUser *dev = VIRTIO_RDMA_VHOST_USER(obj);

    virtio_instance_init_common(obj, &dev->vdev, sizeof(dev->vdev),
                                TYPE_VIRTIO_RDMA);
    dev->vdev.conf.max_cq = MAX_CQ;
    dev->vdev.conf.max_qp = MAX_QP;
    dev->vdev.conf.max_srq = MAX_SRQ;
}

static const TypeInfo virtio_rdma_vhost_user_info = {
    .name = TYPE_VIRTIO_RDMA_VHOST_USER,
    .parent = TYPE_VHOST_USER_SERVER,
    .instance_size = sizeof(VirtIORdmaVhostUser),
    .instance_init = instance_init,
    .class_init = class_init,
};

static void virtio_rdma_vhost_user_register(void)
{
    type_register_static(&virtio_rdma_vhost_user_info);
}

type_init(virtio_rdma_vhost_user_register)
