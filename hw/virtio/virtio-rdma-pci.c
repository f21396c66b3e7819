/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma-pci: the PCI function of a virtio-rdma device.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_ids.h"
#include "hw/core/qdev-properties.h"
#include "hw/virtio/virtio-pci-power.h"
#include "hw/virtio/virtio-pci.h"
#include "hw/virtio/virtio-rdma.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "qom/object.h"
#include "system/rdma-series.h"

#define TYPE_VIRTIO_RDMA_PCI "virtio-rdma-pci"
OBJECT_DECLARE_SIMPLE_TYPE(VirtIORdmaPCI, VIRTIO_RDMA_PCI)

struct VirtIORdmaPCI {
    VirtIOPCIProxy parent_obj;
    VirtIORdma vdev;
    PCIConfigWriteFunc *virtio_config_write;
    MemoryRegion doorbells;
};

/* Each CQ gets a vector, but guests do not allocate more than this for CQs. */
#define MAX_DEFAULT_CQ_VECTORS 256

/*
 * Doorbells have a BAR of their own, so that a driver can map single pages to
 * processes. A driver finds the BAR by virtio's shared memory capability. The
 * notification region does not do, because the kernel's virtqueues have their
 * places there, too. modern-pio-notify also uses BAR 2, so a device has only
 * one of the two.
 */
#define DOORBELL_BAR 2
#define DOORBELL_PAGES 256

static const Property virtio_rdma_pci_properties[] = {
    DEFINE_PROP_BIT("ioeventfd", VirtIOPCIProxy, flags,
                    VIRTIO_PCI_FLAG_USE_IOEVENTFD_BIT, true),
    DEFINE_PROP_UINT32("vectors", VirtIOPCIProxy, nvectors,
                       DEV_NVECTORS_UNSPECIFIED),
};

static void virtio_rdma_pci_config_write(PCIDevice *pci_dev, uint32_t address,
                                         uint32_t val, int len)
{
    VirtIORdmaPCI *dev = VIRTIO_RDMA_PCI(pci_dev);

    dev->virtio_config_write(pci_dev, address, val, len);
    /* An earlier bit of the status may have made the device active. */
    virtio_pci_stop_without_dma(VIRTIO_PCI(pci_dev),
                                VIRTIO_CONFIG_S_DRIVER_OK |
                                dev->vdev.ready_status);
}

static uint64_t doorbell_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void doorbell_write(void *opaque, hwaddr addr, uint64_t value,
                           unsigned size)
{
    VirtIORdmaPCI *dev = opaque;

    virtio_rdma_doorbell(&dev->vdev, addr / VIRTIO_RDMA_DOORBELL_SIZE, value);
}

static const MemoryRegionOps doorbell_ops = {
    .read = doorbell_read,
    .write = doorbell_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 4 },
};

static bool wants_doorbells(const VirtIOPCIProxy *vpci_dev,
                            const VirtIORdma *s)
{
    uint64_t needs = 1ULL << VIRTIO_RDMA_F_VERSION_1 |
                     1ULL << VIRTIO_RDMA_F_DIRECT;

    return !virtio_rdma_wants_demo(s) && (s->rdma_features & needs) == needs &&
           !(vpci_dev->flags & VIRTIO_PCI_FLAG_MODERN_PIO_NOTIFY);
}

static void add_doorbells(VirtIORdmaPCI *dev)
{
    VirtIOPCIProxy *vpci_dev = VIRTIO_PCI(dev);
    uint64_t size = DOORBELL_PAGES * VIRTIO_RDMA_DOORBELL_SIZE;

    memory_region_init_io(&dev->doorbells, OBJECT(dev), &doorbell_ops, dev,
                          "virtio-rdma-doorbells", size);
    pci_register_bar(&vpci_dev->pci_dev, DOORBELL_BAR,
                     PCI_BASE_ADDRESS_SPACE_MEMORY, &dev->doorbells);
    virtio_pci_add_shm_cap(vpci_dev, DOORBELL_BAR, 0, size,
                           VIRTIO_RDMA_SHM_DOORBELLS);
    dev->vdev.doorbells = DOORBELL_PAGES;
}

static void virtio_rdma_pci_realize(VirtIOPCIProxy *vpci_dev, Error **errp)
{
    VirtIORdmaPCI *dev = VIRTIO_RDMA_PCI(vpci_dev);

    virtio_pci_force_virtio_1(vpci_dev);
    if (wants_doorbells(vpci_dev, &dev->vdev)) {
        add_doorbells(dev);
    }
    virtio_rdma_conf_set_defaults(&dev->vdev);
    if (vpci_dev->nvectors == DEV_NVECTORS_UNSPECIFIED) {
        vpci_dev->nvectors = MIN(virtio_rdma_vq_cqs(&dev->vdev),
                                 MAX_DEFAULT_CQ_VECTORS)
                             + 1 /* control queue */
                             + 1 /* events */
                             + 1 /* configuration changes */;
    }
    if (!qdev_realize(DEVICE(&dev->vdev), BUS(&vpci_dev->bus), errp)) {
        return;
    }
    /* Refuse a migration stream with another pin: pci_set_irq() asserts. */
    vpci_dev->pci_dev.cmask[PCI_INTERRUPT_PIN] = 0xff;
    dev->virtio_config_write = vpci_dev->pci_dev.config_write;
    vpci_dev->pci_dev.config_write = virtio_rdma_pci_config_write;
}

static void virtio_rdma_pci_class_init(ObjectClass *klass, RdmaClassData data)
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
