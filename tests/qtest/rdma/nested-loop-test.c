/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An interrupt is a write to an address that the guest chooses, and the device
 * found there may wait in an event loop of its own: a disk does when it is
 * reset. Bottom halves and timers of the adapter run in that loop, inside the
 * work that sent the interrupt.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "disk.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_pci.h"

#define ADAPTER_SLOT 5
#define DISK_SLOT 6
#define MIB (1024 * 1024u)
/*
 * Fewer turns of the engine than qrdma_enqueue_long() needs of the control
 * queue
 */
#define MESSAGE (16 * MIB)

/* A SEND of the pair to itself that takes many turns of the engine. */
static void send_long(TestPair *t, QRdmaMr *mr, uint64_t mem)
{
    RdmaSge sge = { qrdma_dma(t->dev, mem), MESSAGE, mr->lkey };

    qrdma_recv(t->b, 0, &sge);
    qrdma_post(t->a, qrdma_wr(RDMA_WR_SEND, 0, &sge));
}

static void destroy_qp_in_nested_loop(bool requester)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 " TEST_DISK(DISK_SLOT, "100000000") " "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=8,max-cq=4",
        ADAPTER_SLOT);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(ADAPTER_SLOT, 0));
    TestDisk disk = test_disk_open(host, DISK_SLOT);
    QRdmaWaiting registered, destroyed;
    uint64_t mem;
    uint32_t qpn;
    QRdmaMr *mr;
    TestPair t;

    qrdma_start(d, 0, 0);
    t = test_pair_on(d, RDMA_QPT_RC, 20, NULL);
    mr = qrdma_get_dma_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE);
    mem = qrdma_alloc(d, MESSAGE);
    test_disk_aim(&disk, (requester ? t.cq_a : t.cq_b)->ring);
    assert_ok(qrdma_req_notify_cq(requester ? t.cq_a : t.cq_b,
                                  VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION));
    qpn = cpu_to_le32(requester ? t.a->qpn : t.b->qpn);
    registered = qrdma_enqueue_long(t.pd);
    destroyed = qrdma_enqueue(d, VIRTIO_RDMA_CMD_DESTROY_QP, &qpn, sizeof(qpn),
                              0);

    test_disk_busy(&disk);
    send_long(&t, mr, mem);
    qrdma_ring_kick(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
    qrdma_reap_commands(d, 2);
    assert_ok(qrdma_status_of(&registered));
    assert_ok(qrdma_status_of(&destroyed));
    g_assert_cmphex(test_disk_status(&disk), ==, 0);

    test_disk_close(&disk);
    qrdma_reset(d);
}

static void test_destroy_qp_in_nested_loop(void)
{
    destroy_qp_in_nested_loop(false);
    destroy_qp_in_nested_loop(true);
}

/*
 * A query from the host has no side effects. Here the ring of a queue lies in a
 * register of the disk that clears an interrupt when it is read.
 */
static void test_query_reads_no_register(void)
{
    QRdmaHost *host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 " TEST_DISK(DISK_SLOT, "1000000") " "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=8,max-cq=4",
        ADAPTER_SLOT);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(ADAPTER_SLOT, 0));
    TestDisk disk = test_disk_open(host, DISK_SLOT);
    uint64_t isr = disk.pci->bar.addr + disk.pci->isr_cfg_offset;
    QVirtQueue *vq;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp;

    qrdma_start(d, 0, 16);
    pd = qrdma_alloc_pd(d);
    cq = qrdma_create_cq(d, 8);
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    vq = &qp->rq.ring->pci.vq;
    qrdma_ring_reset(qp->rq.ring);
    d->pci->vdev.bus->queue_select(&d->pci->vdev, vq->index);
    vq->avail = isr;
    d->pci->vdev.bus->set_queue_address(&d->pci->vdev, vq);
    qpci_io_writew(d->pci->pdev, d->pci->bar, d->pci->common_cfg_offset +
                   offsetof(struct virtio_pci_common_cfg, queue_enable), 1);
    qrdma_settle(d);
    test_disk_busy(&disk);
    g_usleep(300000);
    qrdma_settle(d);
    qtest_qmp_assert_success(host->qts, "{'execute': 'stop'}");
    qtest_qmp_assert_success(host->qts, "{'execute': 'query-rdma', "
                             "'arguments': {'objects': ['qp'], "
                             "'detail': true}}");
    qtest_qmp_assert_success(host->qts, "{'execute': 'cont'}");
    g_assert_cmphex(qpci_io_readb(disk.pci->pdev, disk.pci->bar,
                                  disk.pci->isr_cfg_offset), ==, 1);
    test_disk_close(&disk);
    qrdma_reset(d);
    qrdma_close(d);
    qrdma_host_stop(host);
}

const QRdmaTest nested_loop_tests[] = {
    { "query-reads-no-register", test_query_reads_no_register },
    { "destroy-qp-in-the-loop-of-a-disk", test_destroy_qp_in_nested_loop },
    {}
};
