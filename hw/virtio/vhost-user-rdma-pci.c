/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user-rdma-pci: the PCI function of a vhost-user-rdma device.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_ids.h"
#include "hw/core/qdev-properties.h"
#include "hw/virtio/vhost-user-rdma.h"
#include "hw/virtio/virtio-pci.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "qom/object.h"
#include "system/rdma-series.h"

#define TYPE_VHOST_USER_RDMA_PCI "vhost-user-rdma-pci"
OBJECT_DECLARE_SIMPLE_TYPE(VHostUserRdmaPCI, VHOST_USER_RDMA_PCI)

struct VHostUserRdmaPCI {
    VirtIOPCIProxy parent_obj;
    VHostUserRdma vdev;
};

static const Property properties[] = {
    DEFINE_PROP_UINT32("vectors", VirtIOPCIProxy, nvectors,
                       DEV_NVECTORS_UNSPECIFIED),
};

static void realize(VirtIOPCIProxy *vpci_dev, Error **errp)
{
    VHostUserRdmaPCI *dev = VHOST_USER_RDMA_PCI(vpci_dev);

    virtio_pci_force_virtio_1(vpci_dev);
    if (vpci_dev->nvectors == DEV_NVECTORS_UNSPECIFIED) {
        /* Only the server knows which rings interrupt: allow for all. */
        vpci_dev->nvectors = dev->vdev.parent_obj.num_vqs + 1;
    }
    qdev_realize(DEVICE(&dev->vdev), BUS(&vpci_dev->bus), errp);
}

static void class_init(ObjectClass *klass, RdmaClassData data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

    VIRTIO_PCI_CLASS(klass)->realize = realize;
    pc->revision = VIRTIO_PCI_ABI_VERSION;
    pc->class_id = PCI_CLASS_NETWORK_OTHER;
    dc->desc = "RDMA adapter (RoCEv2) of a vhost-user server";
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    device_class_set_props(dc, properties);
}

static void instance_init(Object *obj)
{
    VHostUserRdmaPCI *dev = VHOST_USER_RDMA_PCI(obj);

    virtio_instance_init_common(obj, &dev->vdev, sizeof(dev->vdev),
                                TYPE_VHOST_USER_RDMA);
}

static const VirtioPCIDeviceTypeInfo vhost_user_rdma_pci_info = {
    .generic_name = TYPE_VHOST_USER_RDMA_PCI,
    .instance_size = sizeof(VHostUserRdmaPCI),
    .instance_init = instance_init,
    .class_init = class_init,
};

static void vhost_user_rdma_pci_register(void)
{
    virtio_pci_types_register(&vhost_user_rdma_pci_info);
}

type_init(vhost_user_rdma_pci_register)
