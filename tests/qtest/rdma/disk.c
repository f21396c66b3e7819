/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk that an interrupt of an adapter resets.
 */
#include "qemu/osdep.h"
#include "disk.h"
#include "standard-headers/linux/virtio_pci.h"

TestDisk test_disk_open(QRdmaHost *host, int slot)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(slot, 0) };
    TestDisk disk = { host, virtio_pci_new(host->bus, &addr) };
    QVirtioDevice *vdev = &disk.pci->vdev;

    qvirtio_pci_device_enable(disk.pci);
    qvirtio_start_device(vdev);
    qvirtio_set_features(vdev, QRDMA_F(VIRTIO_F_VERSION_1));
    disk.vq = qvirtqueue_setup(vdev, &host->alloc, 0);
    qvirtio_set_driver_ok(vdev);
    return disk;
}

void test_disk_busy(TestDisk *disk)
{
    QTestState *qts = disk->host->qts;
    uint64_t req = guest_alloc(&disk->host->alloc, 1024);
    uint32_t head;

    qtest_memset(qts, req, 0, 1024);
    head = qvirtqueue_add(qts, disk->vq, req, 16, false, true);
    qvirtqueue_add(qts, disk->vq, req + 16, 512, true, true);
    qvirtqueue_add(qts, disk->vq, req + 528, 1, true, false);
    qvirtqueue_kick(qts, &disk->pci->vdev, disk->vq, head);
}

uint8_t test_disk_status(TestDisk *disk)
{
    QVirtioDevice *vdev = &disk->pci->vdev;

    return vdev->bus->get_status(vdev);
}

void test_disk_close(TestDisk *disk)
{
    qvirtqueue_cleanup(disk->pci->vdev.bus, disk->vq, &disk->host->alloc);
    qvirtio_pci_destructor(&disk->pci->obj);
    g_free(disk->pci);
}

void test_disk_aim(TestDisk *disk, QRdmaRing *ring)
{
    qrdma_ring_aim(ring, disk->pci->bar.addr + disk->pci->common_cfg_offset +
                         VIRTIO_PCI_COMMON_STATUS, 0);
}
