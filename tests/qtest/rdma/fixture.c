/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The virtio-rdma device that tests share.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define ENTRIES 512
#define LONG_LIST (8 * 1024 * 1024 - 1023)

static QRdmaHost *host;
static QRdma *device;

static QRdma *device_get(void)
{
    if (!device) {
        host = qrdma_host_start(
            /* frames that go out have a place to go to */
            "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
            "-device virtio-rdma-pci,id=rdma0,%s,addr=%d,"
            "max-qp=%d,max-cq=%d,max-mr=%d,max-pd=%d,gid-table-len=%d,"
            "max-mw=%d,max-srq=%d,max-srq-wr=%d,max-mcast-grp=%d,"
            "max-mcast-qp-attach=%d",
            qrdma_ibdev() ? "rdmadev=v0" : "netdev=n0,mac=" TEST_MAC,
            TEST_SLOT, TEST_MAX_QP, TEST_MAX_CQ, TEST_MAX_MR, TEST_MAX_PD,
            TEST_GIDS, TEST_MAX_MW, TEST_MAX_SRQ, TEST_MAX_SRQ_WR,
            TEST_MAX_MCAST_GRP, TEST_MAX_MCAST_QPS);
        device = qrdma_open(host, QPCI_DEVFN(TEST_SLOT, 0));
    }
    return device;
}

QRdma *test_device(void)
{
    QRdma *d = device_get();

    qrdma_start(d, 0, 0);
    return d;
}

QRdma *test_device_with(uint64_t features)
{
    QRdma *d = device_get();
    QVirtioDevice *vdev = &d->pci->vdev;

    features |= QRDMA_FEATURES;
    if (qrdma_ibdev()) {
        features &= qvirtio_get_features(vdev);
    }
    qrdma_start(d, features, 0);
    return d;
}

QRdma *test_device_reset(void)
{
    QRdma *d = device_get();

    qrdma_reset(d);
    return d;
}

void test_device_quit(void)
{
    if (device) {
        qrdma_close(device);
        qrdma_host_stop(host);
        device = NULL;
    }
}

TestPair test_loopback_pair(RdmaQpType type, const QRdmaPath *path)
{
    return test_pair_on(test_device(), type, 64, path);
}

TestPair test_pair_on(QRdma *d, RdmaQpType type, uint32_t cqe,
                      const QRdmaPath *path)
{
    TestPair t = { .dev = d };

    qrdma_setup_gids(t.dev, 1);
    t.pd = qrdma_alloc_pd(t.dev);
    t.cq_a = qrdma_create_cq(t.dev, cqe);
    t.cq_b = qrdma_create_cq(t.dev, cqe);
    t.a = qrdma_create_qp(t.pd, t.cq_a, t.cq_a, type);
    t.b = qrdma_create_qp(t.pd, t.cq_b, t.cq_b, type);
    t.mr_a = qrdma_reg_mr(t.pd, TEST_IOVA_A, TEST_MR_SIZE, TEST_ACCESS_ALL);
    t.mr_b = qrdma_reg_mr(t.pd, TEST_IOVA_B, TEST_MR_SIZE, TEST_ACCESS_ALL);
    qrdma_connect(t.a, t.b, path);
    return t;
}

TestWaiting test_enqueue(QRdma *d, uint8_t cmd, const void *req, size_t len,
                         size_t rsp_len)
{
    uint64_t mem = qrdma_alloc(d, 4096);
    TestWaiting w = { d, mem + 2048 };
    QRdmaDesc desc[3] = {
        { mem, 1 }, { mem + 1, len }, { w.rsp, 1 + rsp_len, true },
    };

    qtest_writeb(d->host->qts, mem, cmd);
    qtest_writeb(d->host->qts, w.rsp, 0xff);
    qrdma_write(d, mem + 1, req, len);
    qrdma_ring_add(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ), desc, 3);
    return w;
}

uint8_t test_status_of(const TestWaiting *w)
{
    return qtest_readb(w->d->host->qts, w->rsp);
}

TestWaiting test_enqueue_long(QRdmaPd *pd)
{
    QRdma *d = pd->dev;
    uint64_t table = qrdma_alloc(d, 4096);
    uint64_t le[ENTRIES];
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .length = cpu_to_le64(LONG_LIST * 4096ull),
        .pages = cpu_to_le64(qrdma_dma(d, table)),
        .npages = cpu_to_le32(LONG_LIST),
        .levels = cpu_to_le32(3),
    };

    for (int i = 0; i < ENTRIES; i++) {
        le[i] = req.pages;
    }
    qrdma_write(d, table, le, sizeof(le));
    return test_enqueue(d, VIRTIO_RDMA_CMD_REG_USER_MR, &req, sizeof(req),
                        sizeof(struct virtio_rdma_mr_rsp));
}
