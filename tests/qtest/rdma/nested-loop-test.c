/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An interrupt is a write to an address that the guest chooses, and the
 * device found there may wait in an event loop of its own: a disk does when it
 * is reset. What is scheduled for the adapter runs in that loop, inside the
 * work that sent the interrupt.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_pci.h"

#define ADAPTER_SLOT 5
#define DISK_SLOT 6
#define MIB (1024 * 1024u)
/* Fewer turns of the engine than test_enqueue_long() of the control queue */
#define MESSAGE (16 * MIB)

typedef struct Disk {
    QRdmaHost *host;
    QVirtioPCIDevice *pci;
    QVirtQueue *vq;
} Disk;

/* A disk that has a request for a tenth of a second. */
static Disk disk_busy(QRdmaHost *host)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(DISK_SLOT, 0) };
    Disk disk = { host, virtio_pci_new(host->bus, &addr) };
    QVirtioDevice *vdev = &disk.pci->vdev;
    uint64_t req = guest_alloc(&host->alloc, 1024);
    uint32_t head;

    qvirtio_pci_device_enable(disk.pci);
    qvirtio_start_device(vdev);
    qvirtio_set_features(vdev, QRDMA_F(VIRTIO_F_VERSION_1));
    disk.vq = qvirtqueue_setup(vdev, &host->alloc, 0);
    qvirtio_set_driver_ok(vdev);
    qtest_memset(host->qts, req, 0, 1024);
    head = qvirtqueue_add(host->qts, disk.vq, req, 16, false, true);
    qvirtqueue_add(host->qts, disk.vq, req + 16, 512, true, true);
    qvirtqueue_add(host->qts, disk.vq, req + 528, 1, true, false);
    qvirtqueue_kick(host->qts, vdev, disk.vq, head);
    return disk;
}

static uint8_t disk_status(Disk *disk)
{
    QVirtioDevice *vdev = &disk->pci->vdev;

    return vdev->bus->get_status(vdev);
}

static void disk_close(Disk *disk)
{
    qvirtqueue_cleanup(disk->pci->vdev.bus, disk->vq, &disk->host->alloc);
    qvirtio_pci_destructor(&disk->pci->obj);
    g_free(disk->pci);
}

/* The next interrupt of @cq resets the disk. */
static void aim_at_disk(QRdmaCq *cq, Disk *disk)
{
    QPCIDevice *pdev = cq->dev->pci->pdev;
    uint64_t off = pdev->msix_table_off + cq->ring->pci.msix_entry * 16;
    uint64_t addr = disk->pci->bar.addr + disk->pci->common_cfg_offset +
                    VIRTIO_PCI_COMMON_STATUS;

    qpci_io_writel(pdev, pdev->msix_table_bar, off + PCI_MSIX_ENTRY_LOWER_ADDR,
                   addr);
    qpci_io_writel(pdev, pdev->msix_table_bar, off + PCI_MSIX_ENTRY_UPPER_ADDR,
                   addr >> 32);
    qpci_io_writel(pdev, pdev->msix_table_bar, off + PCI_MSIX_ENTRY_DATA, 0);
    assert_ok(qrdma_req_notify_cq(cq, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION));
}

/* A SEND of the pair to itself that takes many turns of the engine. */
static void send_long(TestPair *t, QRdmaMr *mr, uint64_t mem)
{
    RdmaSge sge = { qrdma_dma(t->dev, mem), MESSAGE, mr->lkey };

    qrdma_post_recv(t->b, &(RdmaRecvWr) { .num_sge = 1, .sg_list = &sge });
    qrdma_post_send(t->a, &(RdmaSendWr) {
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED,
        .num_sge = 1,
        .sg_list = &sge,
    });
}

static void destroy_qp_in_nested_loop(bool requester)
{
    QRdmaHost *host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 -blockdev null-co,node-name=slow,"
        "read-zeroes=on,latency-ns=100000000 "
        "-device virtio-blk-pci,drive=slow,addr=%d "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=8,max-cq=4",
        DISK_SLOT, ADAPTER_SLOT);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(ADAPTER_SLOT, 0));
    Disk disk = disk_busy(host);
    TestWaiting registered, destroyed;
    uint64_t mem;
    uint32_t qpn;
    uint16_t head;
    uint32_t len;
    QRdmaMr *mr;
    TestPair t;

    qrdma_start(d, QRDMA_FEATURES | QRDMA_F(VIRTIO_RDMA_F_MR_TABLES), 0);
    t = test_pair_on(d, RDMA_QPT_RC, 20, NULL);
    mr = qrdma_get_dma_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE);
    mem = qrdma_alloc(d, MESSAGE);
    aim_at_disk(requester ? t.cq_a : t.cq_b, &disk);
    qpn = cpu_to_le32(requester ? t.a->qpn : t.b->qpn);
    registered = test_enqueue_long(t.pd);
    destroyed = test_enqueue(d, VIRTIO_RDMA_CMD_DESTROY_QP, &qpn, sizeof(qpn),
                             0);

    send_long(&t, mr, mem);
    qrdma_ring_kick(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
    for (int i = 0; i < 2; i++) {
        qrdma_wait_until(d, qrdma_ring_get(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ),
                                           &head, &len));
    }
    assert_ok(test_status_of(&registered));
    assert_ok(test_status_of(&destroyed));
    g_assert_cmphex(disk_status(&disk), ==, 0);

    disk_close(&disk);
    qrdma_reset(d);
    qrdma_close(d);
    qrdma_host_stop(host);
}

static void test_destroy_qp_in_nested_loop(void)
{
    destroy_qp_in_nested_loop(false);
    destroy_qp_in_nested_loop(true);
}

void add_nested_loop_tests(void)
{
    qtest_add_func("/virtio-rdma/nested/destroy-qp-in-the-loop-of-a-disk",
                   test_destroy_qp_in_nested_loop);
}
