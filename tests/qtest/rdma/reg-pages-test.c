/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: REG_MR work requests that carry the mapping.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define MAX_PAGES 8
#define WR_ID 0x1e6

/* A pair whose b has a region to register, and a list of its pages. */
typedef struct Pair {
    TestPair t;
    QRdmaMr *mr;
    uint64_t *pages;
    uint64_t list;
} Pair;

static Pair pair_on(QRdma *d)
{
    Pair p = { .t = test_pair_on(d, RDMA_QPT_RC, 64, NULL) };

    p.mr = qrdma_alloc_mr(p.t.pd, TEST_ACCESS_ALL, MAX_PAGES);
    qrdma_alloc_pages(p.t.dev, MAX_PAGES, &p.pages, &p.list);
    return p;
}

static Pair pair_new(void)
{
    return pair_on(test_device());
}

static RdmaSendWr reg_wr(QRdmaMr *mr, uint64_t iova, uint64_t length,
                         uint32_t npages)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_REG_MR, WR_ID, NULL);

    wr.wr.reg.mrn = mr->mrn;
    wr.wr.reg.key = mr->lkey;
    wr.wr.reg.access = TEST_ACCESS_ALL;
    wr.wr.reg.iova = iova;
    wr.wr.reg.length = length;
    wr.wr.reg.npages = npages;
    return wr;
}

static void expect_refusal(Pair *p, const RdmaSendWr *wr, uint64_t list)
{
    qrdma_post_reg_pages(p->t.b, wr, list);
    qrdma_expect(p->t.cq_b, WR_ID, RDMA_WC_MW_BIND_ERR);
    test_reconnect(&p->t);
}

/* a writes @len bytes to the region of b, which has pages @at onwards. */
static void write_through(Pair *p, uint64_t iova, uint32_t len, int at)
{
    RdmaSge sge = qrdma_sge(p->t.mr_a, 0, len);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 7, &sge);
    QRdmaMr view = {
        .pd = p->t.pd, .iova = iova, .length = len, .pages = p->pages + at,
    };

    qrdma_mr_fill(p->t.mr_a, 0, len, at + len);
    wr.wr.rdma.remote_addr = iova;
    wr.wr.rdma.rkey = p->mr->lkey;
    qrdma_post_expect(p->t.a, wr, RDMA_WC_SUCCESS);
    qrdma_mr_check(&view, 0, len, at + len);
}

static void invalidate(Pair *p)
{
    qrdma_post_expect(p->t.b, qrdma_invalidate_wr(0x10c, p->mr->lkey),
                      RDMA_WC_SUCCESS);
}

static void test_registers_what_it_carries(void)
{
    Pair p = pair_new();

    for (int i = 0; i < MAX_PAGES - 2; i++) {
        uint64_t iova = 0x50000000 + i * 0x10000 + 100;
        RdmaSendWr wr = reg_wr(p.mr, iova, 8000, 2);

        qrdma_post_reg_pages(p.t.b, &wr, p.list + i * 8);
        qrdma_expect_wc(p.t.cq_b, WR_ID, RDMA_WC_REG_MR, NULL);
        write_through(&p, iova, 8000, i);
        invalidate(&p);
    }
}

/* The driver may reuse the list as soon as it has the buffer of the WQE. */
static void test_list_is_read_once(void)
{
    Pair p = pair_new();
    RdmaSendWr wr = reg_wr(p.mr, 0x50000000, 8192, 2);

    qrdma_post_reg_pages(p.t.b, &wr, p.list);
    qrdma_expect(p.t.cq_b, WR_ID, RDMA_WC_SUCCESS);
    qtest_memset(p.t.dev->host->qts, p.list, 0xff, 8 * MAX_PAGES);
    write_through(&p, 0x50000000, 8192, 0);
}

/* The RFC's REG_MR does not have these fields, so they are ignored. */
static void test_driver_of_the_rfc(void)
{
    Pair p = pair_on(test_rfc_device());
    RdmaSendWr wr = reg_wr(p.mr, 0x50000000, 8192, 2);

    expect_refusal(&p, &wr, p.list);
    assert_ok(qrdma_map_mr_sg(p.mr, 0x60000000, 8192));
    wr.wr.reg.npages = UINT32_MAX;
    qrdma_post_reg_pages(p.t.b, &wr, 1);
    qrdma_expect(p.t.cq_b, WR_ID, RDMA_WC_SUCCESS);
    p.pages = p.mr->pages;
    write_through(&p, 0x60000000, 8192, 0);
}

static void test_no_pages_means_map_mr_sg(void)
{
    Pair p = pair_new();
    RdmaSendWr wr = reg_wr(p.mr, 0x50000000, 8192, 0);

    expect_refusal(&p, &wr, p.list);
    assert_ok(qrdma_map_mr_sg(p.mr, 0x60000000, 8192));
    qrdma_post_reg_pages(p.t.b, &wr, 1);
    qrdma_expect(p.t.cq_b, WR_ID, RDMA_WC_SUCCESS);
    p.pages = p.mr->pages;
    write_through(&p, 0x60000000, 8192, 0);
}

static void test_bad_mappings(void)
{
    Pair p = pair_new();
    const RdmaSendWr good = reg_wr(p.mr, 0x50000800, 8192, 3);
    const uint32_t bad_npages[] = {
        1, 2, 4, MAX_PAGES + 1, 1024, 1025, 0x80000000, UINT32_MAX,
    };
    const uint64_t bad_length[] = {
        0, 4096, 12288, 1ull << 44, 1ull << 63, UINT64_MAX,
    };
    const uint64_t bad_list[] = {
        0xfed00000, 0x100000000000, 1ull << 52, UINT64_MAX - 7,
        64 * 1024 * 1024 - 8,
    };
    RdmaSendWr wr;
    uint64_t page;

    for (int i = 0; i < ARRAY_SIZE(bad_npages); i++) {
        wr = good;
        wr.wr.reg.npages = bad_npages[i];
        expect_refusal(&p, &wr, p.list);
    }
    for (int i = 0; i < ARRAY_SIZE(bad_length); i++) {
        wr = good;
        wr.wr.reg.length = bad_length[i];
        expect_refusal(&p, &wr, p.list);
    }
    wr = good;
    wr.wr.reg.iova = UINT64_MAX - 0x7ff;
    expect_refusal(&p, &wr, p.list);
    for (int i = 0; i < ARRAY_SIZE(bad_list); i++) {
        expect_refusal(&p, &good, bad_list[i]);
    }
    /* as many pages as the length needs, but more than the region takes */
    wr = reg_wr(p.mr, 0, (MAX_PAGES + 1) * 4096, MAX_PAGES + 1);
    expect_refusal(&p, &wr, p.list);
    page = cpu_to_le64(p.pages[2] + 8);
    qrdma_write(p.t.dev, p.list + 16, &page, 8);
    expect_refusal(&p, &good, p.list);
    /* bytes after the last page do not matter */
    wr = reg_wr(p.mr, 0x50000000, 8192, 2);
    qrdma_post_reg_pages(p.t.b, &wr, p.list);
    qrdma_expect(p.t.cq_b, WR_ID, RDMA_WC_SUCCESS);
}

static void test_bad_regions(void)
{
    Pair p = pair_new();
    QRdmaMr *foreign = qrdma_alloc_mr(qrdma_alloc_pd(p.t.dev),
                                      TEST_ACCESS_ALL, MAX_PAGES);
    QRdmaMr *gone = qrdma_alloc_mr(p.t.pd, TEST_ACCESS_ALL, MAX_PAGES);
    const QRdmaMr bad[] = {
        *foreign, *gone, *p.t.mr_a,
        *qrdma_get_dma_mr(p.t.pd, RDMA_ACCESS_LOCAL_WRITE),
        { .mrn = 0 }, { .mrn = 0x1000000 },
        { .mrn = UINT32_MAX, .lkey = UINT32_MAX },
    };
    RdmaSendWr wr;

    assert_ok(qrdma_dereg_mr(gone));
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        wr = reg_wr((QRdmaMr *)&bad[i], 0x50000000, 8192, 2);
        expect_refusal(&p, &wr, p.list);
    }
    wr = reg_wr(p.mr, 0x50000000, 8192, 2);
    wr.wr.reg.key ^= 0x100;
    expect_refusal(&p, &wr, p.list);
    wr = reg_wr(p.mr, 0x50000000, 8192, 2);
    wr.wr.reg.access = RDMA_ACCESS_REMOTE_WRITE;
    expect_refusal(&p, &wr, p.list);
    wr = reg_wr(p.mr, 0x50000000, 8192, 2);
    qrdma_post_reg_pages(p.t.b, &wr, p.list);
    qrdma_expect(p.t.cq_b, WR_ID, RDMA_WC_SUCCESS);
    /* the region is valid already */
    expect_refusal(&p, &wr, p.list);
}

/* Leave room for @npages pages in what all regions may have together. */
static void use_up_pages(Pair *p, uint32_t npages)
{
    QRdma *d = p->t.dev;
    uint64_t table = qrdma_alloc(d, 4096);
    g_autofree uint64_t *le = g_new(uint64_t, 512);
    uint64_t used = p->t.mr_a->npages + p->t.mr_b->npages;
    uint64_t all = 8 * 1024 * 1024;
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(p->t.pd->pdn),
        .length = cpu_to_le64((all - used - npages) * 4096),
        .pages = cpu_to_le64(table),
        .npages = cpu_to_le32(all - used - npages),
        .levels = cpu_to_le32(3),
    };
    struct virtio_rdma_mr_rsp rsp;

    for (int i = 0; i < 512; i++) {
        le[i] = cpu_to_le64(table);
    }
    qrdma_write(d, table, le, 4096);
    assert_ok(qrdma_reg_user_mr(d, &req, &rsp));
}

/* The pages of a WQE are given back, however the WQE ends. */
static void test_pages_are_not_lost(void)
{
    Pair p = pair_new();
    RdmaSendWr wr = reg_wr(p.mr, 0x50000000, 8192, 2);
    QRdmaMr *foreign = qrdma_alloc_mr(qrdma_alloc_pd(p.t.dev),
                                      TEST_ACCESS_ALL, MAX_PAGES);
    RdmaSendWr foreign_wr = reg_wr(foreign, 0x50000000, 8192, 2);

    /* two for the region, and two for a WQE */
    use_up_pages(&p, 4);
    /* the list for a region of another PD is not read */
    expect_refusal(&p, &foreign_wr, p.list);
    for (int i = 0; i < 4; i++) {
        qrdma_post_reg_pages(p.t.b, &wr, p.list);
        qrdma_expect(p.t.cq_b, WR_ID, RDMA_WC_SUCCESS);
        /* flushed */
        assert_ok(qrdma_modify_qp_state(p.t.b, RDMA_QPS_ERR));
        qrdma_post_reg_pages(p.t.b, &wr, p.list);
        qrdma_expect(p.t.cq_b, WR_ID, RDMA_WC_WR_FLUSH_ERR);
        test_reconnect(&p.t);
        /* refused by the backend: the region is valid already */
        expect_refusal(&p, &wr, p.list);
        invalidate(&p);
        /* refused by the device */
        expect_refusal(&p, &wr, 1ull << 52);
        /* dropped with its QP, after a READ that gets no answer */
        assert_ok(qrdma_modify_qp_state(p.t.a, RDMA_QPS_RESET));
        qrdma_post(p.t.b, qrdma_wr(RDMA_WR_RDMA_READ, 0, NULL));
        wr.send_flags |= RDMA_SEND_FENCE;
        qrdma_post_reg_pages(p.t.b, &wr, p.list);
        qrdma_settle(p.t.dev);
        wr.send_flags &= ~RDMA_SEND_FENCE;
        if (i % 2) {
            assert_ok(qrdma_destroy_qp(p.t.b));
            p.t.b = qrdma_create_qp(p.t.pd, p.t.cq_b, p.t.cq_b, RDMA_QPT_RC);
            qrdma_connect(p.t.a, p.t.b, NULL);
        } else {
            test_reconnect(&p.t);
        }
    }
    wr = reg_wr(p.mr, 0x50000000, 3 * 4096, 3);
    expect_refusal(&p, &wr, p.list);
}

const QRdmaTest reg_pages_tests[] = {
    { "registers-what-it-carries", test_registers_what_it_carries },
    { "list-is-read-once", test_list_is_read_once },
    { "driver-of-the-rfc", test_driver_of_the_rfc },
    { "no-pages-means-map-mr-sg", test_no_pages_means_map_mr_sg },
    { "bad-mappings", test_bad_mappings },
    { "bad-regions", test_bad_regions },
    { "pages-are-not-lost", test_pages_are_not_lost },
    {}
};
