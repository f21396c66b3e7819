/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: connections come and go, and QEMU frees all of their
 * memory.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "net-test.h"

/* Connections until guest and test free their memory */
#define AT_ONCE 50
#define WARM_UP 2
#define MR_SIZE 8192

/* KiB by which the heap grows until it has no holes to speak of */
#define FILL 264

/* Make objects of this size until the heap has grown by FILL KiB. */
static void fill_heap_with(QTestState *qts, size_t size, uint64_t growth)
{
    g_autofree char *data = g_strnfill(size, 'x');
    uint64_t before = qrdma_private_memory(qts);
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("rdma-life-XXXXXX", &path, NULL);
    int n = 0;

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    g_assert_true(g_file_set_contents(path, data, size, NULL));
    do {
        for (int i = 0; i < 250; i++) {
            g_autofree char *id = g_strdup_printf("fill%zu-%d", size, n++);

            /* QMP reads commands byte by byte: data in them takes long */
            qtest_qmp_assert_success(qts,
                "{'execute': 'object-add', 'arguments': {"
                "'qom-type': 'secret', 'id': %s, 'file': %s}}", id, path);
        }
        g_assert_cmpint(n, <, 100000);
    } while (qrdma_private_memory(qts) < before + growth);
    unlink(path);
    g_test_message("%d objects of %zu bytes", n, size);
}

/*
 * Memory that was freed at QEMU's start would hide a leak. Fill it with objects
 * of many small blocks until the heap has to grow. Larger objects, still below
 * the mmap threshold of malloc(), fill most of it sooner.
 */
static void fill_heap(QTestState *qts)
{
    fill_heap_with(qts, 3000, 1);
    fill_heap_with(qts, 100, FILL);
}

static NetEnd end_new(QRdma *dev)
{
    NetEnd e = { .dev = dev };

    e.pd = qrdma_alloc_pd(dev);
    e.scq = qrdma_create_cq(dev, 8);
    e.rcq = qrdma_create_cq(dev, 8);
    e.qp = qrdma_create_qp(e.pd, e.scq, e.rcq, RDMA_QPT_RC);
    e.mr = qrdma_reg_mr(e.pd, NET_IOVA_1, MR_SIZE, NET_ACCESS_ALL);
    return e;
}

static void end_destroy(NetEnd *e)
{
    assert_ok(qrdma_destroy_qp(e->qp));
    assert_ok(qrdma_destroy_cq(e->scq));
    assert_ok(qrdma_destroy_cq(e->rcq));
    assert_ok(qrdma_dereg_mr(e->mr));
    assert_ok(qrdma_dealloc_pd(e->pd));
}

/*
 * Do a SEND, a WRITE and a READ. A receive is left when the QPs are destroyed.
 */
static void connect_once(Net *net)
{
    NetEnd a = end_new(net->dev[0]);
    NetEnd b = end_new(net->dev[1]);
    RdmaSge sge = net_sge(&a, 0, 2000);

    qrdma_connect(a.qp, b.qp, NULL);
    net_post_recv(&b, 1, 0, 2000);
    net_post_recv(&b, 2, 0, 2000);
    qrdma_post(a.qp, qrdma_wr(RDMA_WR_SEND, 1, &sge));
    qrdma_post(a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &sge, b.mr, 4000));
    qrdma_post(a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_READ, 3, &sge, b.mr, 4000));
    qrdma_expect_many(a.scq, 1, 3, RDMA_WC_SUCCESS);
    qrdma_expect_wc(b.rcq, 1, RDMA_WC_RECV, NULL);
    end_destroy(&a);
    end_destroy(&b);
}

static void test_connections_leave_nothing(NetKind kind)
{
    const int rounds = g_test_slow() ? 6 : 3;
    uint64_t before = 0, after;
    QTestState *qts;
    Net *net;

    /* Large blocks leave no holes in the heap. */
    g_setenv("MALLOC_MMAP_THRESHOLD_", "4096", true);
    net = net_new(kind, "");
    g_unsetenv("MALLOC_MMAP_THRESHOLD_");
    qts = net->host[0]->qts;
    for (int round = 0; round < WARM_UP + rounds; round++) {
        NetPair p;

        if (round == WARM_UP) {
            fill_heap(qts);
            before = qrdma_private_memory(qts);
        }
        p = net_pair_new(net, RDMA_QPT_RC);
        for (int i = 0; i < AT_ONCE; i++) {
            connect_once(p.net);
        }
    }
    after = qrdma_private_memory(qts);
    g_test_message("private memory of QEMU: %" PRIu64 " KiB, was %" PRIu64,
                   after, before);
#ifndef QEMU_SANITIZE_ADDRESS
    /*
     * A sanitizer keeps what is freed, and looks for leaks by itself. 1 KiB for
     * each connection is not a leak, because brk() has steps.
     */
    g_assert_cmpuint(after, <, before + rounds * AT_ONCE);
#endif
    net_free(net);
}

/*
 * When the driver has left without a reset, other software owns the memory. The
 * peer retries until the device is back. With a device of the host it gives up,
 * because the QP was moved to ERR there.
 */
static void check_peer_is_kept_out(NetKind kind, bool bus_master)
{
    const QRdmaPath path = {
        .timeout = 14,
        /* rxe takes 7, the usual one, for "without end" */
        .retry_cnt = qrdma_ibdev() ? 2 : 0,
    };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    QVirtioDevice *vdev = &p.b.dev->pci->vdev;
    QPCIDevice *pdev = p.b.dev->pci->pdev;
    uint16_t cmd = qpci_config_readw(pdev, PCI_COMMAND);
    uint8_t status = qrdma_device_status(p.b.dev);
    RdmaSge sge = net_sge(&p.a, 0, 3000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 4000);

    qrdma_mr_fill(p.a.mr, 0, 3000, 1);
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_SUCCESS);
    qrdma_mr_check(p.b.mr, 4000, 3000, 1);

    if (bus_master) {
        qpci_config_writew(pdev, PCI_COMMAND, cmd & ~PCI_COMMAND_MASTER);
    } else {
        vdev->bus->set_status(vdev, status & ~VIRTIO_CONFIG_S_DRIVER_OK);
    }
    qrdma_mr_fill(p.a.mr, 0, 3000, 2);
    qrdma_post_send(p.a.qp, &wr);
    qrdma_settle(p.a.dev);
    net_clock_step(p.net, 100 * QRDMA_MS);
    qrdma_settle(p.b.dev);
    if (!qrdma_ibdev()) {
        qrdma_expect_none(p.a.scq);
    }
    qrdma_mr_check(p.b.mr, 4000, 3000, 1);

    qpci_config_writew(pdev, PCI_COMMAND, cmd);
    vdev->bus->set_status(vdev, status);
    net_clock_step(p.net, 100 * QRDMA_MS);
    if (qrdma_ibdev()) {
        qrdma_expect(p.a.scq, 1, RDMA_WC_RETRY_EXC_ERR);
        g_assert_cmpint(qrdma_qp_state(p.b.qp), ==, RDMA_QPS_ERR);
        qrdma_mr_check(p.b.mr, 4000, 3000, 1);
        return;
    }
    qrdma_expect(p.a.scq, 1, RDMA_WC_SUCCESS);
    qrdma_mr_check(p.b.mr, 4000, 3000, 2);
}

static void test_peer_is_kept_out_without_driver_ok(NetKind kind)
{
    check_peer_is_kept_out(kind, false);
}

static void test_peer_is_kept_out_without_bus_mastering(NetKind kind)
{
    check_peer_is_kept_out(kind, true);
}

const NetTest net_life_tests[] = {
    { "life/peer-is-kept-out-without-driver-ok",
      test_peer_is_kept_out_without_driver_ok },
    { "life/peer-is-kept-out-without-bus-mastering",
      test_peer_is_kept_out_without_bus_mastering },
    { "life/connections-leave-nothing",
      test_connections_leave_nothing, NET_ONE_HOST },
    {}
};
