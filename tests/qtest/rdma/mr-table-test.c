/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: registration with large pages and page tables of several levels,
 * and reregistration.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "rdma-test.h"

#define ENTRIES 512

typedef struct virtio_rdma_reg_user_mr_req RegReq;
typedef struct virtio_rdma_rereg_mr_req ReregReq;
typedef struct virtio_rdma_mr_rsp MrRsp;

/* A table whose entries from @first on are @value, @value + @step, ... */
static uint64_t new_table(QRdma *d, uint32_t n, uint64_t value, uint64_t step)
{
    uint64_t table = qrdma_alloc(d, MAX(n * 8, 4096));
    g_autofree uint64_t *le = g_new(uint64_t, n);

    for (uint32_t i = 0; i < n; i++) {
        le[i] = cpu_to_le64(value + i * step);
    }
    qrdma_write(d, table, le, n * 8);
    return table;
}

static RegReq new_req(QRdmaPd *pd, uint64_t table, uint64_t npages,
                      uint32_t shift, uint32_t levels)
{
    return (RegReq) {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(TEST_ACCESS_ALL),
        .length = cpu_to_le64(npages << (shift ?: 12)),
        .pages = cpu_to_le64(table),
        .npages = cpu_to_le32(npages),
        .page_shift = cpu_to_le32(shift),
        .levels = cpu_to_le32(levels),
    };
}

static uint8_t reg(QRdma *d, const RegReq *req, MrRsp *rsp)
{
    return qrdma_reg_user_mr(d, req, rsp);
}

static uint8_t dereg(QRdma *d, const MrRsp *rsp)
{
    return qrdma_cmd(d, VIRTIO_RDMA_CMD_DEREG_MR, &rsp->mrn, 4, NULL, 0);
}

static void check_good(QRdma *d, const RegReq *req)
{
    MrRsp rsp;

    assert_ok(reg(d, req, &rsp));
    assert_ok(dereg(d, &rsp));
}

/* A table that leads to itself */
static uint64_t new_circle(QRdma *d)
{
    uint64_t table = qrdma_alloc(d, 4096);

    for (int i = 0; i < ENTRIES; i++) {
        qtest_writeq(d->host->qts, table + i * 8, table);
    }
    return table;
}

static void test_page_sizes(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    struct virtio_rdma_config c;
    uint64_t sizes;

    qrdma_get_config(d, &c);
    sizes = le64_to_cpu(c.mr_page_sizes);
    g_assert_cmphex(sizes, ==, 0x7ffff000);
    for (uint32_t shift = 0; shift < 70; shift++) {
        uint64_t table = new_table(d, 2, 0, shift < 64 ? 1ull << shift : 0);
        RegReq req = new_req(pd, table, 1, shift < 40 ? shift : 0, 0);

        req.page_shift = cpu_to_le32(shift);
        if (shift == 0 || (shift < 64 && (sizes & (1ull << shift)))) {
            check_good(d, &req);
        } else {
            assert_status(reg(d, &req, NULL), INVAL);
        }
    }
    for (uint32_t bit = 6; bit < 32; bit++) {
        RegReq req = new_req(pd, new_table(d, 1, 0, 0), 1, 0, 0);

        req.page_shift = cpu_to_le32(12 | 1u << bit);
        assert_status(reg(d, &req, NULL), INVAL);
    }
}

/* To the RFC's REG_USER_MR these bytes are surplus. */
static void test_driver_of_the_rfc(void)
{
    QRdma *d = test_rfc_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    RegReq req = new_req(pd, new_table(d, 1, 0x1000, 0), 1, 0, 0);

    req.page_shift = cpu_to_le32(21);
    req.levels = cpu_to_le32(99);
    assert_ok(reg(d, &req, NULL));
}

/* The rules for pages of 4096 bytes hold for each page size. */
static void test_large_pages_are_checked_alike(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint64_t table = new_table(d, 3, 0, 2 * MiB);
    RegReq good = new_req(pd, table, 2, 21, 0);
    RegReq req;

#define TRY(change) (req = good, req.change, reg(d, &req, NULL))
    good.start = cpu_to_le64(1 * MiB);
    good.virt_addr = cpu_to_le64(1 * GiB + 1 * MiB);
    good.length = cpu_to_le64(2 * MiB);
    assert_ok(TRY(pdn = good.pdn));
    assert_ok(TRY(length = cpu_to_le64(3 * MiB)));
    assert_ok(TRY(length = cpu_to_le64(1 * MiB + 1)));
    assert_status(TRY(length = cpu_to_le64(1 * MiB)), INVAL);
    assert_status(TRY(length = cpu_to_le64(3 * MiB + 1)), INVAL);
    assert_status(TRY(length = 0), INVAL);
    assert_status(TRY(length = cpu_to_le64(1ull << 63)), INVAL);
    assert_status(TRY(length = cpu_to_le64(UINT64_MAX)), INVAL);
    assert_status(TRY(npages = 0), INVAL);
    assert_status(TRY(npages = cpu_to_le32(1)), INVAL);
    assert_status(TRY(npages = cpu_to_le32(3)), INVAL);
    assert_status(TRY(npages = cpu_to_le32(512)), INVAL);
    assert_status(TRY(npages = cpu_to_le32(UINT32_MAX)), INVAL);
    /* the same offset in a small page is not enough */
    assert_status(TRY(start = cpu_to_le64(1 * MiB + 4096)), INVAL);
    assert_status(TRY(virt_addr = cpu_to_le64(1 * GiB)), INVAL);
    assert_status(TRY(start = cpu_to_le64(UINT64_MAX - 1 * MiB + 1)), INVAL);
#undef TRY

    qrdma_write(d, table + 8, &(uint64_t) { cpu_to_le64(2 * MiB + 4096) }, 8);
    assert_status(reg(d, &good, NULL), INVAL);
}

static void test_level_counts(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    const uint32_t bad[] = { 4, 5, 0x7fffffff, 0x80000000, UINT32_MAX };
    uint64_t table = new_table(d, 1, 0x1000, 0);
    RegReq req = new_req(pd, table, 1, 12, 0);

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        req.levels = cpu_to_le32(bad[i]);
        assert_status(reg(d, &req, NULL), INVAL);
    }
    /* each level of tables above a table of pages */
    for (uint32_t levels = 1; levels <= 3; levels++) {
        req.pages = cpu_to_le64(table);
        req.levels = cpu_to_le32(levels);
        check_good(d, &req);
        table = new_table(d, 1, table, 0);
    }
}

/* One table holds 512 pages, and two levels reach 512 times that. */
static void test_more_pages_than_the_levels_reach(void)
{
    static const struct {
        uint32_t npages;
        uint32_t levels;
        bool reached;
    } cases[] = {
        { ENTRIES, 1, true }, { ENTRIES + 1, 1, false },
        { ENTRIES + 1, 2, true }, { ENTRIES * ENTRIES, 2, true },
        { ENTRIES * ENTRIES + 1, 2, false }, { UINT32_MAX, 1, false },
        { UINT32_MAX, 3, false },
    };
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint64_t pages = new_table(d, ENTRIES + 8, 0, 4096);
    uint64_t root = new_table(d, ENTRIES, pages, 0);

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        RegReq req = new_req(pd, root, cases[i].npages, 12, cases[i].levels);

        g_test_message("case %d", i);
        if (cases[i].levels == 1) {
            req.pages = cpu_to_le64(pages);
        }
        if (cases[i].reached) {
            check_good(d, &req);
        } else {
            assert_status(reg(d, &req, NULL), INVAL);
        }
    }
}

static void test_tables_must_be_aligned(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint64_t pages = new_table(d, 1024, 0, 4096);
    uint64_t root = new_table(d, 2, pages, 4096);
    const uint64_t bad[] = { 1, 8, 2048, 4095 };
    RegReq req;

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        uint64_t le = cpu_to_le64(pages + 4096 + bad[i]);

        /* a list of one level may lie anywhere */
        req = new_req(pd, pages + bad[i], 1, 12, 1);
        assert_status(reg(d, &req, NULL), INVAL);
        req = new_req(pd, root + bad[i], 1, 12, 2);
        assert_status(reg(d, &req, NULL), INVAL);
        qrdma_write(d, root + 8, &le, 8);
        req = new_req(pd, root, ENTRIES + 1, 12, 2);
        assert_status(reg(d, &req, NULL), INVAL);
        /* the device does not read entries after the last page */
        req = new_req(pd, root, ENTRIES, 12, 2);
        assert_ok(reg(d, &req, NULL));
    }
}

static void test_tables_outside_ram(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint64_t pages = new_table(d, ENTRIES, 0, 4096);
    const uint64_t bad[] = {
        0xfed00000, 0x100000000000, 1ull << 52, 0xfffffffffffff000,
        64 * MiB,
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        for (uint32_t levels = 1; levels <= 3; levels++) {
            uint64_t good = pages;
            RegReq req;

            /* the root is bad, then one further below */
            req = new_req(pd, bad[i], 1, 12, levels);
            assert_status(reg(d, &req, NULL), INVAL);
            for (uint32_t n = 1; n < levels; n++) {
                uint64_t root = new_table(d, 2, good, 0);
                uint64_t le = cpu_to_le64(bad[i]);

                qrdma_write(d, root + 8, &le, 8);
                req = new_req(pd, root, ENTRIES + 1, 12, 2);
                assert_status(reg(d, &req, NULL), INVAL);
                good = new_table(d, 1, root, 0);
            }
        }
    }
}

/* A tree of tables that lead to themselves is valid. */
static void test_tables_in_a_circle(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint64_t table = new_circle(d);
    RegReq req = new_req(pd, table, 1000000, 12, 3);

    check_good(d, &req);
}

/*
 * The lists of all regions together are limited, whichever command makes them.
 */
static void test_pages_of_all_regions_are_limited(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint64_t table = new_circle(d);
    const uint32_t npages = 3 * 1024 * 1024;
    RegReq req = new_req(pd, table, npages, 12, 3);
    ReregReq rereg = { .flags = cpu_to_le32(VIRTIO_RDMA_REREG_TRANSLATION) };
    MrRsp rsp[2];

    for (int round = 0; round < 2; round++) {
        assert_ok(reg(d, &req, &rsp[0]));
        assert_ok(reg(d, &req, &rsp[1]));
        assert_status(reg(d, &req, NULL), NOMEM);
        rereg.mrn = rsp[0].mrn;
        rereg.mr = req;
        assert_status(qrdma_cmd(d, VIRTIO_RDMA_CMD_REREG_MR, &rereg,
                                sizeof(rereg), &rsp[0], sizeof(rsp[0])),
                      NOMEM);
        for (int i = 0; i < 2; i++) {
            assert_ok(dereg(d, &rsp[i]));
        }
    }
}

static void test_mappings_count(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint64_t table = new_circle(d);
    RegReq req = new_req(pd, table, 8 * 1024 * 1024 - 1023, 12, 3);
    MrRsp rsp;
    QRdmaMr *mr;

    mr = qrdma_alloc_mr(pd, TEST_ACCESS_ALL, 1024);
    assert_ok(reg(d, &req, &rsp));
    assert_status(qrdma_map_mr_sg(mr, 0, 1024 * 4096), NOMEM);
    assert_ok(qrdma_map_mr_sg(mr, 0, 511 * 4096));
    /* the pages of the earlier mapping may be in use */
    assert_status(qrdma_map_mr_sg(mr, 0, 513 * 4096), NOMEM);
    assert_ok(qrdma_map_mr_sg(mr, 0, 512 * 4096));
    assert_status(qrdma_map_mr_sg(mr, 0, 1 * 4096), NOMEM);
    assert_ok(dereg(d, &rsp));
    assert_ok(qrdma_map_mr_sg(mr, 0, 1024 * 4096));
    assert_status(reg(d, &req, &rsp), NOMEM);
    assert_ok(qrdma_dereg_mr(mr));
    assert_ok(reg(d, &req, &rsp));
}

/* The test prints the time that this takes. */
static void test_a_gibibyte_of_pages_of_any_size(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    const uint32_t shifts[] = { 12, 21, 30 };

    for (int i = 0; i < ARRAY_SIZE(shifts); i++) {
        uint32_t npages = GiB >> shifts[i];
        uint64_t list = new_table(d, npages, 0, 1ull << shifts[i]);
        uint64_t root = new_table(d, DIV_ROUND_UP(npages, ENTRIES), list,
                                  4096);
        RegReq req[2] = {
            new_req(pd, list, npages, shifts[i], 0),
            new_req(pd, root, npages, shifts[i], 2),
        };

        for (int tree = 0; tree < 2; tree++) {
            gint64 began = g_get_monotonic_time();

            for (int n = 0; n < 20; n++) {
                check_good(d, &req[tree]);
            }
            g_test_message("pages of 2^%u, %s: %.0f us for registration and "
                           "deregistration", shifts[i],
                           tree ? "tree" : "list",
                           (g_get_monotonic_time() - began) / 20.0);
        }
    }
}

/* A region can be as large as max_mr_size, and not a byte larger. */
static void test_huge_regions(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    const struct {
        uint64_t size;
        uint32_t shift;
        uint32_t levels;
    } cases[] = {
        { 4 * GiB, 12, 3 },
        { 16 * GiB, 12, 3 },
        { 256 * GiB, 21, 3 },
        { 1 * TiB, 30, 2 },
    };
    RegReq req;

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        /* One table at each level; the device does not read the pages. */
        uint64_t table = new_table(d, ENTRIES, 0, 1ull << cases[i].shift);

        for (uint32_t level = 1; level < cases[i].levels; level++) {
            table = new_table(d, ENTRIES, table, 0);
        }
        req = new_req(pd, table, cases[i].size >> cases[i].shift,
                      cases[i].shift, cases[i].levels);
        check_good(d, &req);
        req.length = cpu_to_le64(cases[i].size + 1);
        assert_status(reg(d, &req, NULL), INVAL);
    }
    req.length = cpu_to_le64(1 * TiB + 1);
    req.npages = cpu_to_le32(1025);
    assert_status(reg(d, &req, NULL), INVAL);
}

/* Reregistration */

static uint8_t rereg(QRdma *d, ReregReq *req, MrRsp *rsp)
{
    MrRsp dummy;

    return qrdma_cmd(d, VIRTIO_RDMA_CMD_REREG_MR, req, sizeof(*req),
                     rsp ?: &dummy, sizeof(dummy));
}

static void test_rereg_flags(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *mr = qrdma_reg_mr(pd, 0x5000, 10, 0);
    uint64_t *pages, table;
    ReregReq req = { .mrn = cpu_to_le32(mr->mrn) };
    MrRsp rsp, last = { .lkey = cpu_to_le32(mr->lkey) };

    qrdma_alloc_pages(d, 1, &pages, &table);
    req.mr = new_req(pd, table, 1, 0, 0);
    assert_status(rereg(d, &req, NULL), INVAL);
    for (int bit = 3; bit < 32; bit++) {
        req.flags = cpu_to_le32(1u << bit | VIRTIO_RDMA_REREG_PD);
        assert_status(rereg(d, &req, NULL), INVAL);
    }
    for (uint32_t flags = 1; flags < 8; flags++) {
        req.flags = cpu_to_le32(flags);
        assert_ok(rereg(d, &req, &rsp));
        g_assert_cmpuint(le32_to_cpu(rsp.mrn), ==, mr->mrn);
        g_assert_cmphex(le32_to_cpu(rsp.lkey) >> 8, ==, mr->mrn);
        /* the keys change when the memory changes */
        g_assert_cmpint(rsp.lkey != last.lkey, ==,
                        flags & VIRTIO_RDMA_REREG_TRANSLATION);
        g_assert_cmphex(rsp.rkey, ==,
                        flags >= VIRTIO_RDMA_REREG_ACCESS ? rsp.lkey : 0);
        last = rsp;
    }
}

static void test_rereg_is_for_user_mrs(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *gone = qrdma_reg_mr(pd, 0x5000, 10, 0);
    const uint32_t bad[] = {
        0, gone->mrn, TEST_MAX_MR + 1, 0xffffff, 0x80000000, UINT32_MAX,
    };
    ReregReq req = { .flags = cpu_to_le32(VIRTIO_RDMA_REREG_ACCESS) };

    assert_ok(qrdma_dereg_mr(gone));
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        req.mrn = cpu_to_le32(bad[i]);
        assert_status(rereg(d, &req, NULL), NOENT);
    }
    req.mrn = cpu_to_le32(qrdma_get_dma_mr(pd, 0)->mrn);
    assert_status(rereg(d, &req, NULL), INVAL);
    req.mrn = cpu_to_le32(qrdma_alloc_mr(pd, 0, 4)->mrn);
    assert_status(rereg(d, &req, NULL), INVAL);
}

static void test_rereg_moves_the_pd(void)
{
    QRdma *d = test_device();
    QRdmaPd *from = qrdma_alloc_pd(d);
    QRdmaPd *to = qrdma_alloc_pd(d);
    QRdmaPd *gone = qrdma_alloc_pd(d);
    QRdmaMr *mr = qrdma_reg_mr(from, 0x5000, 10, 0);
    ReregReq req = {
        .mrn = cpu_to_le32(mr->mrn), .flags = cpu_to_le32(VIRTIO_RDMA_REREG_PD),
    };
    const uint32_t bad[] = { 0, gone->pdn, TEST_MAX_PD + 1, UINT32_MAX };

    assert_ok(qrdma_dealloc_pd(gone));
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        req.mr.pdn = cpu_to_le32(bad[i]);
        assert_status(rereg(d, &req, NULL), NOENT);
    }
    assert_status(qrdma_dealloc_pd(from), BUSY);
    req.mr.pdn = cpu_to_le32(to->pdn);
    assert_ok(rereg(d, &req, NULL));
    assert_ok(qrdma_dealloc_pd(from));
    assert_status(qrdma_dealloc_pd(to), BUSY);
    assert_ok(qrdma_dereg_mr(mr));
    assert_ok(qrdma_dealloc_pd(to));
}

/* Values of attributes that do not change are ignored; others are checked. */
static void test_rereg_checks_what_changes(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *mr = qrdma_reg_mr(pd, 0x5000, 10, 0);
    uint64_t *pages, table;
    ReregReq good = { .mrn = cpu_to_le32(mr->mrn) };
    ReregReq req;

#define TRY(what, change) \
    (req = good, req.flags = cpu_to_le32(VIRTIO_RDMA_REREG_##what), \
     req.mr.change, rereg(d, &req, NULL))
    qrdma_alloc_pages(d, 1, &pages, &table);
    good.mr = new_req(pd, table, 1, 0, 0);
    assert_ok(TRY(TRANSLATION, pdn = UINT32_MAX));
    assert_ok(TRY(TRANSLATION, access = UINT32_MAX));
    assert_ok(TRY(PD, access = UINT32_MAX));
    assert_ok(TRY(PD, npages = UINT32_MAX));
    assert_ok(TRY(ACCESS, length = UINT64_MAX));
    assert_status(TRY(ACCESS, access = cpu_to_le32(1u << 31)), INVAL);
    assert_status(TRY(ACCESS, access = cpu_to_le32(RDMA_ACCESS_ON_DEMAND)),
                  NOTSUPP);
    assert_status(TRY(ACCESS, access =
                      cpu_to_le32(RDMA_ACCESS_REMOTE_WRITE)), INVAL);
    assert_status(TRY(TRANSLATION, npages = 0), INVAL);
    assert_status(TRY(TRANSLATION, npages = cpu_to_le32(2)), INVAL);
    assert_status(TRY(TRANSLATION, npages = UINT32_MAX), INVAL);
    assert_status(TRY(TRANSLATION, length = 0), INVAL);
    assert_status(TRY(TRANSLATION, length = UINT64_MAX), INVAL);
    assert_status(TRY(TRANSLATION, page_shift = cpu_to_le32(11)), INVAL);
    assert_status(TRY(TRANSLATION, levels = cpu_to_le32(4)), INVAL);
    assert_status(TRY(TRANSLATION, pages = cpu_to_le64(1ull << 52)), INVAL);
    assert_status(TRY(TRANSLATION, start = cpu_to_le64(1)), INVAL);
    assert_ok(TRY(TRANSLATION, levels = cpu_to_le32(1)));
#undef TRY
}

const QRdmaTest mr_table_tests[] = {
    { "mr-table/page-sizes", test_page_sizes },
    { "mr-table/driver-of-the-rfc", test_driver_of_the_rfc },
    { "mr-table/large-pages-are-checked-alike",
      test_large_pages_are_checked_alike },
    { "mr-table/level-counts", test_level_counts },
    { "mr-table/more-pages-than-the-levels-reach",
      test_more_pages_than_the_levels_reach },
    { "mr-table/tables-must-be-aligned", test_tables_must_be_aligned },
    { "mr-table/tables-outside-ram", test_tables_outside_ram },
    { "mr-table/tables-in-a-circle", test_tables_in_a_circle },
    { "mr-table/pages-of-all-regions-are-limited",
      test_pages_of_all_regions_are_limited },
    { "mr-table/mappings-count", test_mappings_count },
    { "mr-table/a-gibibyte-of-pages-of-any-size",
      test_a_gibibyte_of_pages_of_any_size },
    { "mr-table/huge-regions", test_huge_regions },
    { "rereg/flags", test_rereg_flags },
    { "rereg/is-for-user-mrs", test_rereg_is_for_user_mrs },
    { "rereg/moves-the-pd", test_rereg_moves_the_pd },
    { "rereg/checks-what-changes", test_rereg_checks_what_changes },
    {}
};
