/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma-pci: the PCI function of a virtio-rdma device.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_ids.h"
#include "hw/qdev-properties.h"
#include "hw/virtio/virtio-pci.h"
#include "hw/virtio/virtio-rdma.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "qom/object.h"

#define TYPE_VIRTIO_RDMA_PCI "virtio-rdma-pci"
OBJECT_DECLARE_SIMPLE_TYPE(VirtIORdmaPCI, VIRTIO_RDMA_PCI)

struct VirtIORdmaPCI {
    VirtIOPCIProxy parent_obj;
    VirtIORdma vdev;
};

/* One vector per CQ, but not more than guests are ready to allocate. */
#define MAX_DEFAULT_CQ_VECTORS 256

static const Property virtio_rdma_pci_properties[] = {
    DEFINE_PROP_BIT("ioeventfd", VirtIOPCIProxy, flags,
                    VIRTIO_PCI_FLAG_USE_IOEVENTFD_BIT, true),
    DEFINE_PROP_UINT32("vectors", VirtIOPCIProxy, nvectors,
                       DEV_NVECTORS_UNSPECIFIED),
};

static void virtio_rdma_pci_realize(VirtIOPCIProxy *vpci_dev, Error **errp)
{
    VirtIORdmaPCI *dev = VIRTIO_RDMA_PCI(vpci_dev);

    if (vpci_dev->nvectors == DEV_NVECTORS_UNSPECIFIED) {
        vpci_dev->nvectors = MIN(dev->vdev.conf.max_cq,
                                 MAX_DEFAULT_CQ_VECTORS)
                             + 1 /* control queue */
                             + 1 /* events */
                             + 1 /* configuration changes */;
    }

    virtio_pci_force_virtio_1(vpci_dev);
    qdev_realize(DEVICE(&dev->vdev), BUS(&vpci_dev->bus), errp);
}

static void virtio_rdma_pci_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    VirtioPCIClass *vpc = VIRTIO_PCI_CLASS(klass);

    vpc->realize = virtio_rdma_pci_realize;
    pc->revision = VIRTIO_PCI_ABI_VERSION;
    pc->class_id = PCI_CLASS_NETWORK_OTHER;
    dc->desc = "RDMA adapter (RoCEv2)";
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    device_class_set_props(dc, virtio_rdma_pci_properties);
}

static void virtio_rdma_pci_instance_init(Object *obj)
{
    VirtIORdmaPCI *dev = VIRTIO_RDMA_PCI(obj);

    virtio_instance_init_common(obj, &dev->vdev, sizeof(dev->vdev),
                                TYPE_VIRTIO_RDMA);
}

static const VirtioPCIDeviceTypeInfo virtio_rdma_pci_info = {
    .generic_name = TYPE_VIRTIO_RDMA_PCI,
    .instance_size = sizeof(VirtIORdmaPCI),
    .instance_init = virtio_rdma_pci_instance_init,
    .class_init = virtio_rdma_pci_class_init,
};

static void virtio_rdma_pci_register(void)
{
    virtio_pci_types_register(&virtio_rdma_pci_info);
}

type_init(virtio_rdma_pci_register)
