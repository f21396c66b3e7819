/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtio-net NIC that receives, see nic.h.
 */
#include "qemu/osdep.h"
#include "libqos/virtio.h"
#include "rdma/nic.h"
#include "rdma/wire.h"
#include "standard-headers/linux/virtio_config.h"
#include "standard-headers/linux/virtio_net.h"

#define NIC_BUF_SIZE 2048
#define NIC_HDR sizeof(struct virtio_net_hdr_v1)

void nic_add_buffer(Nic *nic)
{
    uint64_t buf = guest_alloc(&nic->host->alloc, NIC_BUF_SIZE);
    uint32_t head = qvirtqueue_add(nic->host->qts, nic->rx, buf, NIC_BUF_SIZE,
                                   true, false);

    g_assert_cmpuint(head, ==, nic->bufs->len);
    g_array_append_val(nic->bufs, buf);
    qvirtqueue_kick(nic->host->qts, &nic->pci->vdev, nic->rx, head);
}

void nic_start(Nic *nic, QRdmaHost *host, int slot)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(slot, 0) };
    QVirtioDevice *vdev;

    *nic = (Nic) { .host = host };
    nic->bufs = g_array_new(false, false, sizeof(uint64_t));
    nic->pci = virtio_pci_new(host->bus, &addr);
    g_assert_nonnull(nic->pci);
    vdev = &nic->pci->vdev;
    qvirtio_pci_device_enable(nic->pci);
    qvirtio_start_device(vdev);
    qvirtio_set_features(vdev, 1ull << VIRTIO_F_VERSION_1);
    nic->rx = qvirtqueue_setup(vdev, &host->alloc, 0);
    qvirtio_set_driver_ok(vdev);
    for (int i = 0; i < NIC_BUFS; i++) {
        nic_add_buffer(nic);
    }
}

size_t nic_recv(Nic *nic, uint8_t *frame)
{
    gint64 end = g_get_monotonic_time() + SOON_MS * 1000;
    uint32_t id, len;

    while (!qvirtqueue_get_buf(nic->host->qts, nic->rx, &id, &len)) {
        if (g_get_monotonic_time() > end) {
            return 0;
        }
        g_usleep(100);
    }
    g_assert_cmpuint(id, <, nic->bufs->len);
    g_assert_cmpuint(len, >, NIC_HDR);
    qtest_memread(nic->host->qts,
                  g_array_index(nic->bufs, uint64_t, id) + NIC_HDR, frame,
                  len - NIC_HDR);
    return len - NIC_HDR;
}

void nic_stop(Nic *nic)
{
    QVirtioDevice *vdev = &nic->pci->vdev;

    qvirtio_reset(vdev);
    qvirtqueue_cleanup(vdev->bus, nic->rx, &nic->host->alloc);
    qvirtio_pci_device_disable(nic->pci);
    qvirtio_pci_destructor(&nic->pci->obj);
    g_free(nic->pci);
    g_array_unref(nic->bufs);
}
