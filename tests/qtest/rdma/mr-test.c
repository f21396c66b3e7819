/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: registration of memory.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

/* A valid registration of two pages, which tests then spoil */
typedef struct Reg {
    QRdma *d;
    QRdmaPd *pd;
    uint64_t *pages;
    struct virtio_rdma_reg_user_mr_req req;
} Reg;

static Reg reg_new_with(uint64_t features)
{
    Reg r = { .d = test_device_with(features) };
    uint64_t table;

    r.pd = qrdma_alloc_pd(r.d);
    qrdma_alloc_pages(r.d, 2, &r.pages, &table);
    r.req.pdn = cpu_to_le32(r.pd->pdn);
    r.req.access = cpu_to_le32(TEST_ACCESS_ALL);
    r.req.start = cpu_to_le64(0x7f0000000800);
    r.req.virt_addr = cpu_to_le64(0x10000800);
    r.req.length = cpu_to_le64(4096);
    r.req.pages = cpu_to_le64(table);
    r.req.npages = cpu_to_le32(2);
    return r;
}

static Reg reg_new(void)
{
    return reg_new_with(0);
}

static uint8_t reg_try(Reg *r, struct virtio_rdma_mr_rsp *rsp)
{
    return qrdma_reg_user_mr(r->d, &r->req, rsp);
}

static void test_good_registration(void)
{
    Reg r = reg_new();

    assert_ok(reg_try(&r, NULL));
}

static void test_page_count_must_match_length(void)
{
    Reg r = reg_new();
    const uint32_t bad[] = { 0, 1, 3, 4, 0x10000, 0x7fffffff, UINT32_MAX };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        r.req.npages = cpu_to_le32(bad[i]);
        assert_status(reg_try(&r, NULL), INVAL);
    }
    r.req.npages = cpu_to_le32(2);
    r.req.length = cpu_to_le64(6144);
    assert_ok(reg_try(&r, NULL));
    r.req.length = cpu_to_le64(6145);
    assert_status(reg_try(&r, NULL), INVAL);
    r.req.length = cpu_to_le64(2049);
    assert_ok(reg_try(&r, NULL));
    r.req.length = cpu_to_le64(2048);
    assert_status(reg_try(&r, NULL), INVAL);
}

static void test_length_zero_is_invalid(void)
{
    Reg r = reg_new();

    r.req.length = 0;
    for (uint32_t n = 0; n <= 2; n++) {
        r.req.npages = cpu_to_le32(n);
        assert_status(reg_try(&r, NULL), INVAL);
    }
}

static void test_huge_lengths_are_invalid(void)
{
    Reg r = reg_new();
    const uint64_t lengths[] = {
        1ull << 63, (1ull << 63) + 4096, UINT64_MAX, UINT64_MAX - 2048,
        UINT64_MAX - 4095, 1ull << 44, (1ull << 44) + 4096, 1ull << 52,
    };
    const uint32_t npages[] = { 0, 1, 2, 0x7fffffff, UINT32_MAX };

    for (int i = 0; i < ARRAY_SIZE(lengths); i++) {
        for (int j = 0; j < ARRAY_SIZE(npages); j++) {
            r.req.length = cpu_to_le64(lengths[i]);
            r.req.npages = cpu_to_le32(npages[j]);
            assert_status(reg_try(&r, NULL), INVAL);
        }
    }
}

/* A consistent request above the limit that the device reports */
static void test_length_above_max_mr_size(void)
{
    Reg r = reg_new();
    struct virtio_rdma_config c;
    uint64_t max;

    qrdma_get_config(r.d, &c);
    max = le64_to_cpu(c.max_mr_size);
    g_assert_cmpuint(max / RDMA_PAGE_SIZE, <, UINT32_MAX);
    r.req.start = 0;
    r.req.virt_addr = 0;
    r.req.length = cpu_to_le64(max + 1);
    r.req.npages = cpu_to_le32(DIV_ROUND_UP(max + 1, RDMA_PAGE_SIZE));
    assert_status(reg_try(&r, NULL), INVAL);
}

static void test_addresses_must_not_wrap(void)
{
    Reg r = reg_new();

    r.req.start = cpu_to_le64(UINT64_MAX - 0x7ff);
    assert_status(reg_try(&r, NULL), INVAL);
    r = reg_new();
    r.req.virt_addr = cpu_to_le64(UINT64_MAX - 0x7ff);
    assert_status(reg_try(&r, NULL), INVAL);
}

static void test_offsets_in_page_must_agree(void)
{
    Reg r = reg_new();

    r.req.virt_addr = cpu_to_le64(0x10000801);
    assert_status(reg_try(&r, NULL), INVAL);
    r.req.virt_addr = cpu_to_le64(0x10000000);
    assert_status(reg_try(&r, NULL), INVAL);
}

static void test_page_addresses_must_be_aligned(void)
{
    Reg r = reg_new();
    const uint64_t bad[] = { 1, 8, 0x800, 0xfff };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        uint64_t page = cpu_to_le64(r.pages[1] + bad[i]);

        qrdma_write(r.d, le64_to_cpu(r.req.pages) + 8, &page, sizeof(page));
        assert_status(reg_try(&r, NULL), INVAL);
    }
}

static void test_page_table_outside_ram(void)
{
    Reg r = reg_new();
    const uint64_t bad[] = {
        0xfed00000,                 /* the HPET's registers */
        0x100000000000, 1ull << 52, UINT64_MAX - 15, UINT64_MAX - 7,
        64 * 1024 * 1024 - 8,       /* half of it beyond the end of RAM */
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        r.req.pages = cpu_to_le64(bad[i]);
        g_assert_cmpint(reg_try(&r, NULL), !=, VIRTIO_RDMA_S_OK);
    }
    r = reg_new();
    assert_ok(reg_try(&r, NULL));
}

static void test_access_flags(void)
{
    Reg r = reg_new();
    struct virtio_rdma_mr_rsp rsp;
    const uint32_t bad[] = {
        1u << 8, 1u << 19, 1u << 21, 1u << 31, UINT32_MAX,
        /* remote write and atomics need local write (IBTA 10.6.3.1) */
        RDMA_ACCESS_REMOTE_WRITE, RDMA_ACCESS_REMOTE_ATOMIC,
        RDMA_ACCESS_REMOTE_ATOMIC | RDMA_ACCESS_REMOTE_READ,
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        r.req.access = cpu_to_le32(bad[i]);
        assert_status(reg_try(&r, NULL), INVAL);
    }
    r.req.access = cpu_to_le32(0);
    assert_ok(reg_try(&r, &rsp));
    g_assert_cmphex(le32_to_cpu(rsp.rkey), ==, 0);
    r.req.access = cpu_to_le32(RDMA_ACCESS_REMOTE_READ |
                               RDMA_ACCESS_RELAXED_ORDERING);
    assert_ok(reg_try(&r, &rsp));
    g_assert_cmphex(le32_to_cpu(rsp.rkey) >> 8, ==, le32_to_cpu(rsp.mrn));
}

/*
 * A peer may have the right to flush memory that it can neither read nor write.
 */
static void test_flush_access(void)
{
    const uint64_t features[] = { 0, QRDMA_F(VIRTIO_RDMA_F_FLUSH) };

    for (int i = 0; i < 2; i++) {
        Reg r = reg_new_with(features[i]);
        struct virtio_rdma_get_dma_mr_req dma = {
            .pdn = r.req.pdn, .access = cpu_to_le32(RDMA_ACCESS_FLUSH_GLOBAL),
        };
        struct virtio_rdma_mr_rsp rsp;

        r.req.access = cpu_to_le32(RDMA_ACCESS_FLUSH_GLOBAL);
        g_assert_cmpint(reg_try(&r, &rsp), ==,
                        i ? VIRTIO_RDMA_S_OK : VIRTIO_RDMA_S_INVAL);
        if (i) {
            g_assert_cmphex(le32_to_cpu(rsp.rkey), !=, 0);
            g_assert_cmphex(rsp.rkey, ==, rsp.lkey);
        }
        r.req.access = cpu_to_le32(RDMA_ACCESS_FLUSH_PERSISTENT);
        g_assert_cmpint(reg_try(&r, NULL), ==,
                        i ? VIRTIO_RDMA_S_NOTSUPP : VIRTIO_RDMA_S_INVAL);
        g_assert_cmpint(qrdma_call(r.d, GET_DMA_MR, &dma, &rsp), ==,
                        i ? VIRTIO_RDMA_S_PERM : VIRTIO_RDMA_S_INVAL);
    }
}

static void test_unknown_pd(void)
{
    Reg r = reg_new();
    const uint32_t bad[] = { TEST_MAX_PD + 1, 0x7fffffff, UINT32_MAX };
    struct virtio_rdma_mr_rsp rsp;

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        struct virtio_rdma_create_mr_req create = {
            .pdn = cpu_to_le32(bad[i]), .max_num_sg = cpu_to_le32(4),
        };

        r.req.pdn = cpu_to_le32(bad[i]);
        assert_status(reg_try(&r, NULL), NOENT);
        /* GET_DMA_MR's request is the start of CREATE_MR's */
        assert_status(qrdma_cmd(r.d, VIRTIO_RDMA_CMD_GET_DMA_MR, &create, 8,
                                &rsp, sizeof(rsp)), NOENT);
        assert_status(qrdma_call(r.d, CREATE_MR, &create, &rsp), NOENT);
    }
}

static void test_table_fills_and_empties(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *mr[TEST_MAX_MR];
    struct virtio_rdma_get_dma_mr_req req = { .pdn = cpu_to_le32(pd->pdn) };
    struct virtio_rdma_mr_rsp rsp;
    uint32_t old_lkey[TEST_MAX_MR] = {};
    int same = 0;

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < TEST_MAX_MR; i++) {
            mr[i] = i % 2 ? qrdma_get_dma_mr(pd, 0) :
                            qrdma_reg_mr(pd, 0x5000, 10, TEST_ACCESS_ALL);
            for (int j = 0; j < i; j++) {
                g_assert_cmpuint(mr[i]->mrn, !=, mr[j]->mrn);
            }
        }
        assert_status(qrdma_call(d, GET_DMA_MR, &req, &rsp), NOMEM);
        for (int i = 0; i < TEST_MAX_MR; i++) {
            same += mr[i]->lkey == old_lkey[mr[i]->mrn % TEST_MAX_MR];
            old_lkey[mr[i]->mrn % TEST_MAX_MR] = mr[i]->lkey;
            assert_ok(qrdma_dereg_mr(mr[i]));
            assert_status(qrdma_dereg_mr(mr[i]), NOENT);
        }
    }
    /* keys vary from one registration to the next */
    g_assert_cmpint(same, <, 3 * TEST_MAX_MR / 4);
}

static void test_dma_mr_never_grants_remote_access(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    struct virtio_rdma_mr_rsp rsp;

    for (uint32_t bit = RDMA_ACCESS_REMOTE_WRITE;
         bit <= RDMA_ACCESS_REMOTE_ATOMIC; bit <<= 1) {
        struct virtio_rdma_get_dma_mr_req req = {
            .pdn = cpu_to_le32(pd->pdn),
            .access = cpu_to_le32(bit | RDMA_ACCESS_LOCAL_WRITE),
        };
        assert_status(qrdma_call(d, GET_DMA_MR, &req, &rsp), PERM);
    }
    g_assert_cmphex(qrdma_get_dma_mr(pd, RDMA_ACCESS_LOCAL_WRITE)->rkey, ==,
                    0);
}

static void test_fast_mr_counts(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    struct virtio_rdma_config c;
    struct virtio_rdma_mr_rsp rsp;
    uint32_t max;

    qrdma_get_config(d, &c);
    max = le32_to_cpu(c.max_fast_reg_page_list_len);
    for (int i = 0; i < 4; i++) {
        const uint32_t bad[] = { 0, max + 1, 0x80000000, UINT32_MAX };
        struct virtio_rdma_create_mr_req req = {
            .pdn = cpu_to_le32(pd->pdn),
            .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
            .max_num_sg = cpu_to_le32(bad[i]),
        };

        assert_status(qrdma_call(d, CREATE_MR, &req, &rsp), INVAL);
    }
    qrdma_alloc_mr(pd, RDMA_ACCESS_LOCAL_WRITE, 1);
    qrdma_alloc_mr(pd, RDMA_ACCESS_LOCAL_WRITE, max);
}

static void test_map_is_for_fast_mrs_only(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *user = qrdma_reg_mr(pd, 0x5000, 10, 0);
    QRdmaMr *dma = qrdma_get_dma_mr(pd, 0);
    QRdmaMr *gone = qrdma_alloc_mr(pd, 0, 4);

    g_assert_cmpint(qrdma_map_mr_sg(user, 0x5000, 10), !=, VIRTIO_RDMA_S_OK);
    g_assert_cmpint(qrdma_map_mr_sg(dma, 0x5000, 10), !=, VIRTIO_RDMA_S_OK);
    assert_ok(qrdma_dereg_mr(gone));
    assert_status(qrdma_map_mr_sg(gone, 0x5000, 10), NOENT);
    gone->mrn = 0;
    assert_status(qrdma_map_mr_sg(gone, 0x5000, 10), NOENT);
    gone->mrn = UINT32_MAX;
    assert_status(qrdma_map_mr_sg(gone, 0x5000, 10), NOENT);
}

static void test_map_within_size_of_mr(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *mr = qrdma_alloc_mr(pd, TEST_ACCESS_ALL, 4);

    assert_ok(qrdma_map_mr_sg(mr, 0x10800, 3 * 4096));
    assert_ok(qrdma_map_mr_sg(mr, 0x10000, 4 * 4096));
    g_assert_cmpint(qrdma_map_mr_sg(mr, 0x10000, 4 * 4096 + 1), !=,
                    VIRTIO_RDMA_S_OK);
    g_assert_cmpint(qrdma_map_mr_sg(mr, 0x10001, 4 * 4096), !=,
                    VIRTIO_RDMA_S_OK);
}

static void test_map_checks_its_arguments(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *mr = qrdma_alloc_mr(pd, TEST_ACCESS_ALL, 4);
    struct virtio_rdma_map_mr_sg_req good = {
        .mrn = cpu_to_le32(mr->mrn),
        .npages = cpu_to_le32(2),
        .start = cpu_to_le64(0x10800),
        .length = cpu_to_le64(4096),
    };
    struct virtio_rdma_map_mr_sg_req req;
    struct virtio_rdma_map_mr_sg_rsp rsp;
    uint64_t *pages, table;

#define MAP(field, value) \
    (req = good, req.field = (value), \
     qrdma_cmd(d, VIRTIO_RDMA_CMD_MAP_MR_SG, &req, sizeof(req), &rsp, \
               sizeof(rsp)))

    qrdma_alloc_pages(d, 2, &pages, &table);
    good.pages = cpu_to_le64(table);
    assert_status(MAP(npages, 0), INVAL);
    assert_status(MAP(npages, cpu_to_le32(1)), INVAL);
    assert_status(MAP(npages, cpu_to_le32(3)), INVAL);
    assert_status(MAP(npages, cpu_to_le32(UINT32_MAX)), INVAL);
    assert_status(MAP(length, 0), INVAL);
    assert_status(MAP(length, cpu_to_le64(1ull << 63)), INVAL);
    assert_status(MAP(length, cpu_to_le64(UINT64_MAX)), INVAL);
    assert_status(MAP(start, cpu_to_le64(UINT64_MAX - 0x7ff)), INVAL);
    g_assert_cmpint(MAP(pages, cpu_to_le64(1ull << 52)), !=,
                    VIRTIO_RDMA_S_OK);
    assert_ok(MAP(npages, cpu_to_le32(2)));
#undef MAP
}

#define E1000_ICR 0xc0              /* causes of interrupts; reading clears */
#define E1000_ICS 0xc8              /* sets them */

/* An SGE that is refused because it leads to registers has no side effect. */
static void test_registers_are_not_read(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-device e1000,addr=6 -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=5,max-qp=8,max-cq=4");
    g_autofree QPCIDevice *nic = qpci_device_find(host->bus, QPCI_DEVFN(6, 0));
    QRdma *d = qrdma_open(host, QPCI_DEVFN(5, 0));
    TestPair t;
    QPCIBar bar;
    QRdmaMr *mr;
    RdmaSge sge;

    qrdma_start(d, 0, 0);
    t = test_pair_on(d, RDMA_QPT_RC, 20, NULL);
    mr = qrdma_get_dma_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE);
    qpci_device_enable(nic);
    bar = qpci_iomap(nic, 0, NULL);
    qpci_io_writel(nic, bar, E1000_ICS, 4);

    sge = (RdmaSge) { bar.addr + E1000_ICR, 4, mr->lkey };
    qrdma_post_expect(t.a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, t.mr_b,
                                         0), RDMA_WC_LOC_PROT_ERR);
    g_assert_cmphex(qpci_io_readl(nic, bar, E1000_ICR) & 4, ==, 4);
    g_assert_cmphex(qpci_io_readl(nic, bar, E1000_ICR) & 4, ==, 0);
}

const QRdmaTest mr_tests[] = {
    { "registers-are-not-read", test_registers_are_not_read,
      .not_demo = true },
    { "good-registration", test_good_registration },
    { "page-count-must-match-length", test_page_count_must_match_length },
    { "length-zero-is-invalid", test_length_zero_is_invalid },
    { "huge-lengths-are-invalid", test_huge_lengths_are_invalid },
    { "length-above-max-mr-size", test_length_above_max_mr_size },
    { "addresses-must-not-wrap", test_addresses_must_not_wrap },
    { "offsets-in-page-must-agree", test_offsets_in_page_must_agree },
    { "page-addresses-must-be-aligned", test_page_addresses_must_be_aligned,
      .not_demo = true },
    { "page-table-outside-ram", test_page_table_outside_ram },
    { "access-flags", test_access_flags },
    { "flush-access", test_flush_access,
      .not_demo = true },
    { "unknown-pd", test_unknown_pd },
    { "table-fills-and-empties", test_table_fills_and_empties },
    { "dma-mr-never-grants-remote-access",
      test_dma_mr_never_grants_remote_access },
    { "fast-mr-counts", test_fast_mr_counts },
    { "map-is-for-fast-mrs-only", test_map_is_for_fast_mrs_only },
    { "map-within-size-of-mr", test_map_within_size_of_mr },
    { "map-checks-its-arguments", test_map_checks_its_arguments },
    {}
};
