/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-net-roce-pci: the PCI function of a virtio-net-roce device.
 */
#include "qemu/osdep.h"
#include "hw/core/qdev-properties.h"
#include "hw/virtio/virtio-pci-power.h"
#include "hw/virtio/virtio-pci.h"
#include "qemu/module.h"
#include "system/rdma-series.h"
#include "int.h"

#define TYPE_NET_ROCE_PCI "virtio-net-roce-pci"
OBJECT_DECLARE_SIMPLE_TYPE(NetRocePCI, NET_ROCE_PCI)

struct NetRocePCI {
    VirtIOPCIProxy parent_obj;
    NetRoce vdev;
    PCIConfigWriteFunc *virtio_config_write;
};

static const Property properties[] = {
    DEFINE_PROP_UINT32("vectors", VirtIOPCIProxy, nvectors,
                       DEV_NVECTORS_UNSPECIFIED),
};

static void config_write(PCIDevice *pci_dev, uint32_t address, uint32_t val,
                         int len)
{
    NET_ROCE_PCI(pci_dev)->virtio_config_write(pci_dev, address, val, len);
    virtio_pci_stop_without_dma(VIRTIO_PCI(pci_dev),
                                VIRTIO_CONFIG_S_DRIVER_OK |
                                VIRTIO_CONFIG_S_FEATURES_OK);
}

static void pci_realize(VirtIOPCIProxy *vpci_dev, Error **errp)
{
    NetRocePCI *dev = NET_ROCE_PCI(vpci_dev);

    virtio_pci_force_virtio_1(vpci_dev);
    if (vpci_dev->nvectors == DEV_NVECTORS_UNSPECIFIED) {
        /* CQs, the first three virtqueues, and changes of configuration */
        vpci_dev->nvectors = NET_ROCE_CQ_VQ(dev->vdev.conf.max_cq) + 1;
    }
    if (!qdev_realize(DEVICE(&dev->vdev), BUS(&vpci_dev->bus), errp)) {
        return;
    }
    /* Refuse a migration stream with another pin: pci_set_irq() asserts. */
    vpci_dev->pci_dev.cmask[PCI_INTERRUPT_PIN] = 0xff;
    dev->virtio_config_write = vpci_dev->pci_dev.config_write;
    vpci_dev->pci_dev.config_write = config_write;
}

static void class_init(ObjectClass *klass, RdmaClassData data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    VirtioPCIClass *vpc = VIRTIO_PCI_CLASS(klass);

    vpc->realize = pci_realize;
    pc->revision = VIRTIO_PCI_ABI_VERSION;
    pc->class_id = PCI_CLASS_NETWORK_ETHERNET;
    dc->desc = "NIC with an RDMA adapter (RoCEv2), a proposal of 2022";
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    device_class_set_props(dc, properties);
}

static void instance_init(Object *obj)
{
    NetRocePCI *dev = NET_ROCE_PCI(obj);

    virtio_instance_init_common(obj, &dev->vdev, sizeof(dev->vdev),
                                TYPE_NET_ROCE);
}

static const VirtioPCIDeviceTypeInfo net_roce_pci_info = {
    .generic_name = TYPE_NET_ROCE_PCI,
    .instance_size = sizeof(NetRocePCI),
    .instance_init = instance_init,
    .class_init = class_init,
};

static void register_types(void)
{
    virtio_pci_types_register(&net_roce_pci_info);
}

type_init(register_types)
