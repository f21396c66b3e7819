/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Power management of PCI functions that access memory when a peer sends
 */
#ifndef HW_VIRTIO_PCI_POWER_H
#define HW_VIRTIO_PCI_POWER_H

#include "hw/virtio/virtio-pci.h"

/*
 * Call after a write to the configuration space, with the big QEMU lock.
 *
 * A PCI function that is not in D0 must not access memory (PCI Express 5.0,
 * 5.3.1), but messages of peers would cause that. So clear the bits @active of
 * the status, as QEMU clears DRIVER_OK when bus mastering is off. The device
 * then waits for the driver to set them again.
 */
static inline void virtio_pci_stop_in_low_power(VirtIOPCIProxy *proxy,
                                                uint8_t active)
{
    VirtIODevice *vdev = virtio_bus_get_device(&proxy->bus);
    const PCIDevice *pci_dev = &proxy->pci_dev;

    if ((pci_dev->cap_present & QEMU_PCI_CAP_PM) &&
        (pci_get_word(pci_dev->config + pci_dev->pm_cap + PCI_PM_CTRL) &
         PCI_PM_CTRL_STATE_MASK) && (vdev->status & active)) {
        virtio_bus_stop_ioeventfd(&proxy->bus);
        virtio_set_status(vdev, vdev->status & ~active);
    }
}

#endif
