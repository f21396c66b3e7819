/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stop PCI functions that must not access memory, although peers send
 */
#ifndef HW_VIRTIO_PCI_POWER_H
#define HW_VIRTIO_PCI_POWER_H

#include "hw/virtio/virtio-pci.h"

/*
 * Call after a write to the configuration space, with the big QEMU lock.
 *
 * A PCI function must not access memory if it is not in D0 (PCI Express 5.0,
 * 5.3.1), or if bus mastering is off (7.5.1.1.3), but messages of peers would
 * cause that. So clear the bits @active of the status in both cases. The device
 * then waits for the driver to set them again. QEMU itself only clears
 * DRIVER_OK, and only when bus mastering is turned off.
 */
static inline void virtio_pci_stop_without_dma(VirtIOPCIProxy *proxy,
                                               uint8_t active)
{
    VirtIODevice *vdev = virtio_bus_get_device(&proxy->bus);
    const PCIDevice *pci_dev = &proxy->pci_dev;
    bool low_power = (pci_dev->cap_present & QEMU_PCI_CAP_PM) &&
                     (pci_get_word(pci_dev->config + pci_dev->pm_cap +
                                   PCI_PM_CTRL) & PCI_PM_CTRL_STATE_MASK);
    bool bus_master = pci_get_word(pci_dev->config + PCI_COMMAND) &
                      PCI_COMMAND_MASTER;

    if ((low_power || !bus_master) && (vdev->status & active)) {
        virtio_bus_stop_ioeventfd(&proxy->bus);
        virtio_set_status(vdev, vdev->status & ~active);
    }
}

#endif
