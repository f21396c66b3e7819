/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: virtio's and PCI's options, and DMA through an IOMMU.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_iommu.h"

#define SLOT 5
#define IOMMU_SLOT 3
#define RAM_SIZE (64 * 1024 * 1024)
/* Where the device finds RAM. */
#define IOVA_BASE 0x100000000ull
/* All features of this device */
#define ALL_RDMA_FEATURES (QRDMA_F(VIRTIO_RDMA_F_VERSION_1) | \
                           QRDMA_F(VIRTIO_RDMA_F_DIRECT) | \
                           QRDMA_F(VIRTIO_RDMA_F_FLUSH) | \
                           QRDMA_F(VIRTIO_RDMA_F_ATOMIC_WRITE))

static TestPair pair_on(QRdma *d, uint64_t features)
{
    qrdma_start(d, features, 0);
    return test_pair_on(d, RDMA_QPT_RC, 20, NULL);
}

/* Enough messages to go around the rings, with completions on both sides. */
static void check_messages(TestPair *t, int n)
{
    RdmaWc wc;

    for (int i = 0; i < n; i++) {
        RdmaSge from[3], to[2];
        uint32_t len = 300 + i * 50;
        RdmaSendWr wr = {
            .wr_id = i,
            .opcode = RDMA_WR_SEND,
            .send_flags = i % 3 ? RDMA_SEND_SIGNALED : 0,
            .sg_list = from,
            .num_sge = 3,
        };
        uint8_t wqe[QRDMA_WQE_ROOM];

        from[0] = qrdma_sge(t->mr_a, 5, 100);
        from[1] = qrdma_sge(t->mr_a, 105, 100);
        from[2] = qrdma_sge(t->mr_a, 205, len - 200);
        to[0] = qrdma_sge(t->mr_b, 7, 250);
        to[1] = qrdma_sge(t->mr_b, 257, len);
        qrdma_mr_fill(t->mr_a, 5, len, i);
        qrdma_post_recv(t->b, &(RdmaRecvWr) {
            .wr_id = 1000 + i, .num_sge = 2, .sg_list = to,
        });
        /* one descriptor, and several */
        qrdma_post_raw(t->a, &t->a->sq, wqe,
                       qrdma_encode_send(t->a, &wr, wqe),
                       i % 4 ? 0 : 50, true);
        qrdma_expect_wc(t->cq_b, 1000 + i, RDMA_WC_RECV, &wc);
        g_assert_cmpuint(wc.byte_len, ==, len);
        qrdma_mr_check(t->mr_b, 7, len, i);
        if (wr.send_flags) {
            qrdma_expect_wc(t->cq_a, i, RDMA_WC_SEND, &wc);
        }
    }
    qrdma_reap_all(t->dev, &t->a->sq);
}

/* The same with buffers of an SRQ, which come back in another order. */
static void check_shared(TestPair *t, int n)
{
    QRdmaSrq *srq = qrdma_create_srq(t->pd, 5, 1);
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .has_srq = true,
        .srqn = srq->srqn,
        .cap = { .max_send_wr = 1 },
    };
    QRdmaQp *from = qrdma_create_qp(t->pd, t->cq_a, t->cq_a, RDMA_QPT_RC);
    QRdmaQp *to = qrdma_create_qp_attr(t->pd, t->cq_b, t->cq_b, &init);
    int posted = 0;

    qrdma_connect(from, to, NULL);
    for (int i = 0; i < n; i++) {
        RdmaSge src = qrdma_sge(t->mr_a, 0, 1000);
        RdmaSge dst = qrdma_sge(t->mr_b, 0, 1000);

        while (posted < MIN(n, i + 10)) {
            qrdma_srq_recv(srq, posted++, &dst);
        }
        qrdma_mr_fill(t->mr_a, 0, 1000, i);
        qrdma_post(from, qrdma_wr(RDMA_WR_SEND, i, &src));
        qrdma_expect_wc(t->cq_b, i, RDMA_WC_RECV, NULL);
        qrdma_expect_wc(t->cq_a, i, RDMA_WC_SEND, NULL);
        qrdma_mr_check(t->mr_b, 0, 1000, i);
    }
    qrdma_wait_until(t->dev, (qrdma_reap(&srq->wq), srq->wq.retired == n));
    qrdma_wait_until(t->dev, (qrdma_reap(&from->sq), from->sq.retired == n));
    assert_ok(qrdma_destroy_qp(to));
    assert_ok(qrdma_destroy_qp(from));
    assert_ok(qrdma_destroy_srq(srq));
}

typedef struct Flavour {
    const char *name;
    const char *props;
    uint64_t features;              /* besides the usual ones */
    uint64_t without;
} Flavour;

static const Flavour flavours[] = {
    { "ioeventfd-off", "ioeventfd=off" },
    { "page-per-vq", "page-per-vq=on" },
    { "no-msix", "vectors=0" },
    { "two-vectors", "vectors=2" },
    { "no-ring-reset", "queue_reset=off", 0,
      QRDMA_F(VIRTIO_F_RING_RESET) },
    { "no-event-idx-no-indirect", "event_idx=off,indirect_desc=off" },
    { "packed", "packed=on", QRDMA_F(VIRTIO_F_RING_PACKED) },
    { "packed-without-ioeventfd", "packed=on,ioeventfd=off",
      QRDMA_F(VIRTIO_F_RING_PACKED) },
    { "in-order", "in_order=on", QRDMA_F(VIRTIO_F_IN_ORDER) },
    { "packed-in-order", "packed=on,in_order=on",
      QRDMA_F(VIRTIO_F_RING_PACKED) | QRDMA_F(VIRTIO_F_IN_ORDER) },
    { "all-features", "in_order=on", ALL_RDMA_FEATURES |
      QRDMA_F(VIRTIO_RING_F_EVENT_IDX) | QRDMA_F(VIRTIO_F_IN_ORDER) },
    { "all-features-packed", "packed=on", ALL_RDMA_FEATURES |
      QRDMA_F(VIRTIO_RING_F_EVENT_IDX) | QRDMA_F(VIRTIO_F_RING_PACKED) },
    { "no-version-1", "version-1=off", 0, ALL_RDMA_FEATURES },
};

static void test_flavour(const void *data)
{
    const Flavour *f = data;
    uint64_t features = (QRDMA_FEATURES | f->features) & ~f->without;
    QRdma *d = test_own_device("max-qp=8,max-cq=4,%s", f->props);

    g_assert_cmphex(qvirtio_get_features(&d->pci->vdev) & f->without, ==, 0);
    for (int round = 0; round < 2; round++) {
        TestPair t = pair_on(d, features);

        check_messages(&t, 100);
        if (qrdma_has(d, QRDMA_F(VIRTIO_RDMA_F_VERSION_1))) {
            check_shared(&t, 150);
        }
        /* numbers of queue pairs are used again */
        for (int i = 0; i < 10; i++) {
            assert_ok(qrdma_destroy_qp(t.a));
            t.a = qrdma_create_qp(t.pd, t.cq_a, t.cq_a, RDMA_QPT_RC);
            assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_RESET));
            qrdma_connect(t.a, t.b, NULL);
            check_messages(&t, 4);
        }
    }
    qrdma_host_stop(d->host);
}

/* The IOMMU of a guest, as far as these tests need it */
typedef struct Iommu {
    QRdmaHost *host;
    QVirtioPCIDevice *pci;
    QVirtQueue *vq;
} Iommu;

static Iommu iommu_open(QRdmaHost *host)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(IOMMU_SLOT, 0) };
    Iommu m = { .host = host, .pci = virtio_pci_new(host->bus, &addr) };
    QVirtioDevice *vdev = &m.pci->vdev;

    qvirtio_pci_device_enable(m.pci);
    qvirtio_reset(vdev);
    qvirtio_set_acknowledge(vdev);
    qvirtio_set_driver(vdev);
    qvirtio_set_features(vdev, QRDMA_F(VIRTIO_F_VERSION_1) |
                               QRDMA_F(VIRTIO_IOMMU_F_MAP_UNMAP));
    m.vq = qvirtqueue_setup(vdev, &host->alloc, 0);
    qvirtio_set_driver_ok(vdev);
    return m;
}

static void iommu_request(Iommu *m, const void *req, size_t len)
{
    QTestState *qts = m->host->qts;
    size_t tail = sizeof(struct virtio_iommu_req_tail);
    uint64_t buf = guest_alloc(&m->host->alloc, 4096);
    uint32_t head;

    qtest_bufwrite(qts, buf, req, len);
    qtest_writeb(qts, buf + 2048, 0xff);
    head = qvirtqueue_add(qts, m->vq, buf, len - tail, false, true);
    qvirtqueue_add(qts, m->vq, buf + 2048, tail, true, false);
    qvirtqueue_kick(qts, &m->pci->vdev, m->vq, head);
    qvirtio_wait_used_elem(qts, &m->pci->vdev, m->vq, head, NULL,
                           10 * G_USEC_PER_SEC);
    g_assert_cmpint(qtest_readb(qts, buf + 2048), ==, VIRTIO_IOMMU_S_OK);
    guest_free(&m->host->alloc, buf);
}

static void iommu_attach(Iommu *m)
{
    struct virtio_iommu_req_attach req = {
        .head.type = VIRTIO_IOMMU_T_ATTACH,
        .domain = cpu_to_le32(1),
        .endpoint = cpu_to_le32(QPCI_DEVFN(SLOT, 0)),
    };

    iommu_request(m, &req, sizeof(req));
}

static void iommu_map(Iommu *m)
{
    struct virtio_iommu_req_map req = {
        .head.type = VIRTIO_IOMMU_T_MAP,
        .domain = cpu_to_le32(1),
        .virt_start = cpu_to_le64(IOVA_BASE),
        .virt_end = cpu_to_le64(IOVA_BASE + RAM_SIZE - 1),
        .flags = cpu_to_le32(VIRTIO_IOMMU_MAP_F_READ |
                             VIRTIO_IOMMU_MAP_F_WRITE),
    };

    iommu_request(m, &req, sizeof(req));
}

static void iommu_unmap(Iommu *m)
{
    struct virtio_iommu_req_unmap req = {
        .head.type = VIRTIO_IOMMU_T_UNMAP,
        .domain = cpu_to_le32(1),
        .virt_start = cpu_to_le64(IOVA_BASE),
        .virt_end = cpu_to_le64(IOVA_BASE + RAM_SIZE - 1),
    };

    iommu_request(m, &req, sizeof(req));
}

#define IOMMU_FEATURES (QRDMA_FEATURES | \
                        QRDMA_F(VIRTIO_F_IOMMU_PLATFORM))

static QRdma *iommu_device(Iommu *m)
{
    QRdmaHost *host = qrdma_host_start_machine("q35",
        "-device virtio-iommu-pci,addr=%d -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=8,max-cq=4,"
        "iommu_platform=on", IOMMU_SLOT, SLOT);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(SLOT, 0));

    *m = iommu_open(host);
    iommu_attach(m);
    iommu_map(m);
    d->dma_offset = IOVA_BASE;
    return d;
}

static void iommu_close(Iommu *m, QRdma *d)
{
    qrdma_close(d);
    qvirtqueue_cleanup(m->pci->vdev.bus, m->vq, &m->host->alloc);
    qvirtio_pci_destructor(&m->pci->obj);
    g_free(m->pci);
    qrdma_host_stop(m->host);
}

static void test_all_addresses_go_through_the_iommu(void)
{
    Iommu m;
    QRdma *d = iommu_device(&m);
    TestPair t = pair_on(d, IOMMU_FEATURES);
    QRdmaMr *dma, *fast;
    RdmaSendWr wr;
    RdmaSge sge;

    check_messages(&t, 20);

    /* a DMA MR takes DMA addresses */
    dma = qrdma_get_dma_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE);
    sge = (RdmaSge) { qrdma_dma(d, t.mr_a->pages[3]), 4096, dma->lkey };
    qrdma_write(d, t.mr_a->pages[3], "through the IOMMU", 18);
    qrdma_post_expect_wc(t.a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 0, &sge, t.mr_b,
                                            0), RDMA_WC_RDMA_WRITE);
    {
        char got[18];

        qrdma_mr_read(t.mr_b, 0, got, sizeof(got));
        g_assert_cmpstr(got, ==, "through the IOMMU");
    }

    /* fast registration, and an atomic */
    fast = qrdma_alloc_mr(t.pd, TEST_ACCESS_ALL, 4);
    assert_ok(qrdma_map_mr_sg(fast, 0x9000, 8192));
    qrdma_post_send(t.a, &(RdmaSendWr) {
        .wr_id = 1,
        .opcode = RDMA_WR_REG_MR,
        .send_flags = RDMA_SEND_SIGNALED,
        .wr.reg = { fast->mrn, fast->lkey, TEST_ACCESS_ALL },
    });
    qrdma_expect_wc(t.cq_a, 1, RDMA_WC_REG_MR, NULL);
    sge = qrdma_sge(t.mr_a, 0, 8);
    wr = qrdma_rdma_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, 2, &sge, fast, 0);
    wr.wr.atomic.compare_add = 0x77;
    qrdma_post_expect_wc(t.a, wr, RDMA_WC_FETCH_ADD);
    g_assert_cmphex(qtest_readb(d->host->qts, fast->pages[0]), ==, 0x77);
    iommu_close(&m, d);
}

/* The IOMMU translates the address of a page table and the addresses in it. */
static void test_page_tables_go_through_the_iommu(void)
{
    Iommu m;
    QRdma *d = iommu_device(&m);
    TestPair t = pair_on(d, IOMMU_FEATURES);
    QRdmaMr mr = { .pd = t.pd, .iova = 0x7000, .length = 3 * 4096 };
    uint64_t leaf = qrdma_alloc(d, 4096), root = qrdma_alloc(d, 4096);
    uint64_t list, le;
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(t.pd->pdn),
        .access = cpu_to_le32(TEST_ACCESS_ALL),
        .start = cpu_to_le64(mr.iova),
        .length = cpu_to_le64(mr.length),
        .virt_addr = cpu_to_le64(mr.iova),
        .npages = cpu_to_le32(3),
        .levels = cpu_to_le32(2),
    };
    struct virtio_rdma_mr_rsp rsp;
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 12000);

    check_shared(&t, 20);
    qrdma_alloc_pages(d, 3, &mr.pages, &list);
    for (int i = 0; i < 3; i++) {
        le = cpu_to_le64(qrdma_dma(d, mr.pages[i]));
        qrdma_write(d, leaf + i * 8, &le, 8);
    }
    /* physical addresses are not DMA addresses */
    le = cpu_to_le64(leaf);
    qrdma_write(d, root, &le, 8);
    req.pages = cpu_to_le64(qrdma_dma(d, root));
    assert_status(qrdma_reg_user_mr(d, &req, &rsp), INVAL);
    le = cpu_to_le64(qrdma_dma(d, leaf));
    qrdma_write(d, root, &le, 8);
    req.pages = cpu_to_le64(root);
    assert_status(qrdma_reg_user_mr(d, &req, &rsp), INVAL);
    req.pages = cpu_to_le64(qrdma_dma(d, root));
    assert_ok(qrdma_reg_user_mr(d, &req, &rsp));
    qrdma_mr_fill(t.mr_a, 0, 12000, 7);
    mr.rkey = le32_to_cpu(rsp.rkey);
    qrdma_post_expect(t.a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 3, &sge, &mr, 0),
                      RDMA_WC_SUCCESS);
    qrdma_mr_check(&mr, 0, 12000, 7);
    iommu_close(&m, d);
}

static void test_physical_addresses_are_not_taken(void)
{
    Iommu m;
    QRdma *d = iommu_device(&m);
    TestPair t = pair_on(d, IOMMU_FEATURES);
    QRdmaMr *dma = qrdma_get_dma_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE);
    RdmaSge sge = { t.mr_a->pages[3], 64, dma->lkey };

    qrdma_post_send(t.a, &(RdmaSendWr) {
        .opcode = RDMA_WR_RDMA_WRITE,
        .num_sge = 1,
        .sg_list = &sge,
        .wr.rdma = { t.mr_b->iova, t.mr_b->rkey },
    });
    qrdma_expect(t.cq_a, 0, RDMA_WC_LOC_PROT_ERR);
    iommu_close(&m, d);
}

/* All memory is taken away under traffic, rings included. */
static void test_unmap_under_traffic(void)
{
    Iommu m;
    QRdma *d = iommu_device(&m);

    for (int round = 0; round < 2; round++) {
        TestPair t = pair_on(d, IOMMU_FEATURES);
        RdmaSge sge = qrdma_sge(t.mr_a, 0, 20000);

        check_messages(&t, 5);
        for (int i = 0; i < 4; i++) {
            qrdma_post(t.a, qrdma_wr(RDMA_WR_SEND, 0, &sge));
        }
        iommu_unmap(&m);
        qrdma_ring_kick(t.a->sq.ring);
        qrdma_ring_kick(t.b->rq.ring);
        qrdma_ring_kick(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
        qrdma_clock_step(d, 100 * QRDMA_MS);
        qrdma_settle(d);
        iommu_map(&m);
        t = pair_on(d, IOMMU_FEATURES);
        check_messages(&t, 5);
    }
    iommu_close(&m, d);
}

static void test_no_iommu(void)
{
    g_test_skip("no virtio-iommu-pci");
}

void add_flavour_tests(void)
{
    static const QRdmaTest iommu_tests[] = {
        { "all-addresses-go-through-it",
          test_all_addresses_go_through_the_iommu },
        { "page-tables-go-through-it", test_page_tables_go_through_the_iommu },
        { "physical-addresses-are-not-taken",
          test_physical_addresses_are_not_taken },
        { "unmap-under-traffic", test_unmap_under_traffic },
    };
    bool has_iommu = qtest_has_device("virtio-iommu-pci");

    for (int i = 0; i < ARRAY_SIZE(flavours); i++) {
        g_autofree char *path = g_strdup_printf("virtio-rdma/flavour/%s",
                                                flavours[i].name);

        qtest_add_data_func(path, &flavours[i], test_flavour);
    }
    for (int i = 0; i < ARRAY_SIZE(iommu_tests); i++) {
        g_autofree char *path = g_strdup_printf("virtio-rdma/iommu/%s",
                                                iommu_tests[i].name);

        qtest_add_func(path, has_iommu ? iommu_tests[i].run : test_no_iommu);
    }
}
