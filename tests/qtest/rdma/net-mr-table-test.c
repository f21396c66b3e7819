/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: regions of large pages, regions from tables of
 * several levels, and reregistered regions.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "net-test.h"

#define ENTRIES 512

static NetPair pair_new(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);

    qrdma_connect(p.a.qp, p.b.qp, NULL);
    return p;
}

/* Write @entries to a tree of @levels levels of tables. Returns the root. */
static uint64_t make_tables(QRdma *d, uint64_t *entries, uint32_t n,
                            uint32_t levels)
{
    uint32_t ntables = levels ? DIV_ROUND_UP(n, ENTRIES) : 1;
    uint64_t mem = qrdma_alloc(d, levels ? ntables * 4096 : n * 8);
    g_autofree uint64_t *le = g_new(uint64_t, n);
    g_autofree uint64_t *tables = g_new(uint64_t, ntables);

    for (uint32_t i = 0; i < n; i++) {
        le[i] = cpu_to_le64(entries[i]);
    }
    if (levels < 2) {
        qrdma_write(d, mem, le, n * 8);
        return mem;
    }
    for (uint32_t i = 0; i < ntables; i++) {
        /* out of order */
        tables[i] = mem + (ntables - 1 - i) * 4096ull;
        qrdma_write(d, tables[i], le + i * ENTRIES,
                    MIN(n - i * ENTRIES, ENTRIES) * 8);
    }
    return make_tables(d, tables, ntables, levels - 1);
}

/*
 * The request for a region of pages of 2^@shift bytes, in reverse order; @mr
 * knows its memory by small pages.
 */
static struct virtio_rdma_reg_user_mr_req
make_region(QRdmaPd *pd, uint64_t iova, uint64_t length, uint32_t shift,
            uint32_t levels, QRdmaMr *mr)
{
    QRdma *d = pd->dev;
    uint64_t size = 1ull << shift;
    uint32_t npages = DIV_ROUND_UP((iova & (size - 1)) + length, size);
    uint32_t small = size / RDMA_PAGE_SIZE;
    uint64_t mem = ROUND_UP(qrdma_alloc(d, (npages + 1) * size - 4096), size);
    g_autofree uint64_t *pages = g_new(uint64_t, npages);
    uint64_t *at = qrdma_own(d, npages * small * sizeof(uint64_t));

    for (uint32_t i = 0; i < npages; i++) {
        pages[i] = mem + (npages - 1 - i) * size;
        for (uint32_t j = 0; j < small; j++) {
            at[i * small + j] = pages[i] + j * RDMA_PAGE_SIZE;
        }
    }
    *mr = (QRdmaMr) {
        .pd = pd,
        .mrn = mr->mrn,
        .iova = iova,
        .length = length,
        .pages = at + (iova & (size - 1)) / RDMA_PAGE_SIZE,
    };
    return (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(NET_ACCESS_ALL),
        .start = cpu_to_le64(iova),
        .length = cpu_to_le64(length),
        .virt_addr = cpu_to_le64(iova),
        .pages = cpu_to_le64(make_tables(d, pages, npages, levels)),
        .npages = cpu_to_le32(npages),
        .page_shift = cpu_to_le32(shift),
        .levels = cpu_to_le32(levels),
    };
}

static void take_keys(QRdmaMr *mr, const struct virtio_rdma_mr_rsp *rsp)
{
    mr->mrn = le32_to_cpu(rsp->mrn);
    mr->lkey = le32_to_cpu(rsp->lkey);
    mr->rkey = le32_to_cpu(rsp->rkey);
}

static QRdmaMr reg(QRdmaPd *pd, uint64_t iova, uint64_t length,
                   uint32_t shift, uint32_t levels)
{
    QRdmaMr mr = {};
    struct virtio_rdma_reg_user_mr_req req =
        make_region(pd, iova, length, shift, levels, &mr);
    struct virtio_rdma_mr_rsp rsp;

    assert_ok(qrdma_reg_user_mr(pd->dev, &req, &rsp));
    take_keys(&mr, &rsp);
    return mr;
}

/* One READ or WRITE of a between two regions. */
static void transfer(NetPair *p, RdmaWrOpcode opcode, QRdmaMr *local,
                     uint64_t local_at, uint64_t remote_addr, uint32_t rkey,
                     uint32_t len, RdmaWcStatus status)
{
    RdmaSge sge = qrdma_sge(local, local_at, len);
    RdmaSendWr wr = qrdma_wr(opcode, 5, &sge);

    wr.wr.rdma.remote_addr = remote_addr;
    wr.wr.rdma.rkey = rkey;
    qrdma_post_expect(p->a.qp, wr, status);
}

static void test_large_pages(NetKind kind)
{
    NetPair p = pair_new(kind);
    const uint64_t len = 5 * MiB;
    QRdmaMr from = reg(p.a.pd, 0x7f0000000000 + 1234567, len, 21, 0);
    QRdmaMr to = reg(p.b.pd, 0x100000000 + 99, len, 21, 1);

    qrdma_mr_fill(&from, 0, len, 1);
    transfer(&p, RDMA_WR_RDMA_WRITE, &from, 0, to.iova, to.rkey, len,
             RDMA_WC_SUCCESS);
    qrdma_mr_check(&to, 0, len, 1);
    /* across the border of pages */
    qrdma_mr_fill(&to, 2 * MiB - 3000, 9000, 2);
    transfer(&p, RDMA_WR_RDMA_READ, &from, 777, to.iova + 2 * MiB - 3000,
             to.rkey, 9000, RDMA_WC_SUCCESS);
    qrdma_mr_check(&from, 777, 9000, 2);
    transfer(&p, RDMA_WR_RDMA_WRITE, &from, 0, to.iova + len - 99, to.rkey,
             100, RDMA_WC_REM_ACCESS_ERR);
}

static void test_page_sizes(NetKind kind)
{
    for (uint32_t shift = 12; shift <= 20; shift += 2) {
        NetPair p = pair_new(kind);
        const uint64_t len = 700000;
        QRdmaMr from = reg(p.a.pd, 0x12345678, len, shift, 2);
        QRdmaMr to = reg(p.b.pd, 0x7f00000fffff, len, shift, 0);

        qrdma_mr_fill(&from, 0, len, shift);
        transfer(&p, RDMA_WR_RDMA_WRITE, &from, 0, to.iova, to.rkey, len,
                 RDMA_WC_SUCCESS);
        qrdma_mr_check(&to, 0, len, shift);
    }
}

static void test_levels(NetKind kind)
{
    for (uint32_t levels = 0; levels <= 3; levels++) {
        NetPair p = pair_new(kind);
        const uint64_t len = (levels == 1 ? 511 : 1300) * 4096;
        QRdmaMr from = reg(p.a.pd, 0x12345678, len, 12, levels);
        QRdmaMr to = reg(p.b.pd, 0x7f0000000fff, len, 12, levels);

        qrdma_mr_fill(&from, 0, len, levels);
        transfer(&p, RDMA_WR_RDMA_WRITE, &from, 0, to.iova, to.rkey, len,
                 RDMA_WC_SUCCESS);
        qrdma_mr_check(&to, 0, len, levels);
    }
}

static void rereg(QRdmaMr *mr, uint32_t flags,
                  const struct virtio_rdma_reg_user_mr_req *to)
{
    struct virtio_rdma_rereg_mr_req req = {
        .mrn = cpu_to_le32(mr->mrn), .flags = cpu_to_le32(flags), .mr = *to,
    };
    struct virtio_rdma_mr_rsp rsp;

    assert_ok(qrdma_call(mr->pd->dev, REREG_MR, &req, &rsp));
    take_keys(mr, &rsp);
}

static void test_rereg_translation(NetKind kind)
{
    NetPair p = pair_new(kind);
    QRdmaMr mr = reg(p.b.pd, 0x5000, 9000, 12, 0);
    QRdmaMr old = mr;
    struct virtio_rdma_reg_user_mr_req req =
        make_region(p.b.pd, 0x9000123, 3 * MiB, 21, 1, &mr);

    rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, &req);
    qrdma_mr_fill(p.a.mr, 0, 100000, 3);
    transfer(&p, RDMA_WR_RDMA_WRITE, p.a.mr, 0, mr.iova + 2 * MiB - 5,
             mr.rkey, 100000, RDMA_WC_SUCCESS);
    qrdma_mr_check(&mr, 2 * MiB - 5, 100000, 3);
    transfer(&p, RDMA_WR_RDMA_WRITE, p.a.mr, 0, old.iova, old.rkey, 8,
             RDMA_WC_REM_ACCESS_ERR);
}

/* A request that fails leaves the region and its keys as they were. */
static void test_rereg_that_fails(NetKind kind)
{
    NetPair p = pair_new(kind);
    QRdmaMr mr = reg(p.b.pd, 0x5000, 9000, 12, 0);
    struct virtio_rdma_rereg_mr_req req = {
        .mrn = cpu_to_le32(mr.mrn), .flags = cpu_to_le32(7),
    };
    struct virtio_rdma_mr_rsp rsp;
    QRdmaMr dummy = {};

    req.mr = make_region(p.b.pd, 0x9000000, 9000, 12, 0, &dummy);
    req.mr.pages = cpu_to_le64(1ull << 52);
    assert_status(qrdma_call(p.b.dev, REREG_MR, &req, &rsp), INVAL);
    qrdma_mr_fill(p.a.mr, 0, 9000, 3);
    transfer(&p, RDMA_WR_RDMA_WRITE, p.a.mr, 0, mr.iova, mr.rkey, 9000,
             RDMA_WC_SUCCESS);
    qrdma_mr_check(&mr, 0, 9000, 3);
}

static void test_rereg_access(NetKind kind)
{
    NetPair p = pair_new(kind);
    QRdmaMr mr = reg(p.b.pd, 0x5000, 9000, 12, 0);
    struct virtio_rdma_reg_user_mr_req req = {
        .access = cpu_to_le32(RDMA_ACCESS_REMOTE_READ),
    };

    rereg(&mr, VIRTIO_RDMA_REREG_ACCESS, &req);
    transfer(&p, RDMA_WR_RDMA_READ, p.a.mr, 0, mr.iova, mr.rkey, 9000,
             RDMA_WC_SUCCESS);
    transfer(&p, RDMA_WR_RDMA_WRITE, p.a.mr, 0, mr.iova, mr.rkey, 9000,
             RDMA_WC_REM_ACCESS_ERR);
}

static void test_rereg_pd(NetKind kind)
{
    NetPair p = pair_new(kind);
    QRdmaMr mr = reg(p.b.pd, 0x5000, 9000, 12, 0);
    QRdmaPd *other = qrdma_alloc_pd(p.b.dev);
    struct virtio_rdma_reg_user_mr_req req = { .pdn = cpu_to_le32(other->pdn) };

    rereg(&mr, VIRTIO_RDMA_REREG_PD, &req);
    req.pdn = cpu_to_le32(p.b.pd->pdn);
    rereg(&mr, VIRTIO_RDMA_REREG_PD, &req);
    transfer(&p, RDMA_WR_RDMA_READ, p.a.mr, 0, mr.iova, mr.rkey, 9000,
             RDMA_WC_SUCCESS);
    req.pdn = cpu_to_le32(other->pdn);
    rereg(&mr, VIRTIO_RDMA_REREG_PD, &req);
    transfer(&p, RDMA_WR_RDMA_READ, p.a.mr, 0, mr.iova, mr.rkey, 9000,
             RDMA_WC_REM_ACCESS_ERR);
}

const NetTest net_mr_table_tests[] = {
    { "mr-table/large-pages", test_large_pages },
    { "mr-table/page-sizes", test_page_sizes },
    { "mr-table/levels", test_levels },
    { "rereg/translation", test_rereg_translation },
    { "rereg/that-fails", test_rereg_that_fails },
    { "rereg/access", test_rereg_access },
    { "rereg/pd", test_rereg_pd },
    {}
};
