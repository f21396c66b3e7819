/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that a driver or a process gives pvrdma: directories that do not fit,
 * that change, and that name no RAM; rings and messages in registers.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"
#include "standard-headers/linux/pci_regs.h"

static uint64_t bar_address(PvEnd *e, unsigned bar)
{
    return qpci_config_readl(e->dev->pci, PCI_BASE_ADDRESS_0 + 4 * bar) &
           PCI_BASE_ADDRESS_MEM_MASK;
}

static void write_to(PvPair *p, uint32_t status)
{
    pv_post(&p->a, RDMA_WR_RDMA_WRITE, 1, 8, &p->b.mr);
    pv_expect(&p->a, &p->a.scq, 1, status, RDMA_WC_RDMA_WRITE);
}

/* Lengths of regions, against the number of their pages */
static void test_bad_regions(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t dir = qpvrdma_dir(p.a.dev, 4).dir;
    const PvrdmaCmdCreateMr mrs[] = {
        { .length = 0, .nchunks = 0 },
        { .length = 0, .nchunks = 1 },
        { .length = 4096, .nchunks = 0 },
        { .length = 4096, .nchunks = 2 },
        { .length = 4097, .nchunks = 1 },
        { .start = 4095, .length = 2, .nchunks = 1 },
        { .start = 4095, .length = 4098, .nchunks = 2 },
        { .length = 4096, .nchunks = UINT32_MAX },
        { .length = UINT64_MAX, .nchunks = 4 },
        { .start = UINT64_MAX, .length = 2, .nchunks = 2 },
        { .start = UINT64_MAX - 4095, .length = 8192, .nchunks = 2 },
        { .length = (1ull << 30) + 1, .nchunks = PVRDMA_MAX_PAGES + 1 },
        { .length = 4096, .nchunks = 1, .access = RDMA_ACCESS_REMOTE_WRITE },
        { .length = 4096, .nchunks = 1, .access = 1u << 19 },
        { .length = 4096, .nchunks = 1, .flags = 3 },
        { .flags = PVRDMA_MR_FAST_REG, .nchunks = 0 },
        { .flags = PVRDMA_MR_FAST_REG, .nchunks = 129 },
        { .flags = PVRDMA_MR_FAST_REG, .nchunks = UINT32_MAX },
        { .flags = PVRDMA_MR_DMA, .access = PV_ACCESS },
        { .length = 4096, .nchunks = 1, .pd = 99 },
        { .length = 4096, .nchunks = 1, .pd = UINT32_MAX },
        { .length = 4096, .nchunks = 1, .dir = 8 },
        { .length = 4096, .nchunks = 1, .dir = UINT64_MAX - 4095 },
    };
    PvrdmaRspCreateMr rsp;

    for (size_t i = 0; i < ARRAY_SIZE(mrs); i++) {
        PvrdmaCmdCreateMr req = mrs[i];

        req.pd = req.pd ?: p.a.pd;
        req.dir = req.dir > RDMA_PAGE_SIZE ? req.dir : dir + req.dir;
        assert_fails(qpvrdma_call(p.a.dev, CREATE_MR, &req, &rsp));
    }
    write_to(&p, RDMA_WC_SUCCESS);
}

static void test_bad_srqs(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    const PvrdmaCmdCreateSrq srqs[] = {
        { .max_wr = 24 },
        { .max_wr = UINT32_MAX },
        { .max_wr = 1u << 31, .nchunks = PVRDMA_MAX_PAGES },
        { .max_wr = 16, .max_sge = 129, .nchunks = 3 },
        { .max_wr = 16, .max_sge = UINT32_MAX, .nchunks = 3 },
        { .max_wr = 1024, .max_sge = 2, .nchunks = 3 },
        { .max_wr = 16, .max_sge = 2, .nchunks = 1 },
        { .max_wr = 16, .max_sge = 2, .nchunks = UINT32_MAX },
        { .max_wr = 16, .max_sge = 2, .nchunks = 3, .limit = 17 },
        { .max_wr = 16, .max_sge = 2, .nchunks = 3, .srq_type = 1 },
        { .max_wr = 16, .max_sge = 2, .nchunks = 3, .pd = 99 },
        { .max_wr = 16, .max_sge = 2, .nchunks = 3, .dir = 0x1008 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(srqs); i++) {
        PvrdmaCmdCreateSrq req = srqs[i];
        PvrdmaRspHandle rsp;

        req.dir = req.dir ?: qpvrdma_dir(p.a.dev, 3).dir;
        req.pd = req.pd ?: p.a.pd;
        assert_fails(qpvrdma_call(p.a.dev, CREATE_SRQ, &req, &rsp));
    }
}

/* Entries of a directory that cannot be addresses of pages of RAM */
static void test_bad_entries(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QTestState *qts = p.host->qts;
    const uint64_t bad[] = {
        1, 0xfff, 0xfffffffffffff000, bar_address(&p.a, PVRDMA_BAR_REGS),
        bar_address(&p.a, PVRDMA_BAR_UAR), 0xf0000000,
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        for (int level = 0; level < 2; level++) {
            QPvrdmaDir dir = qpvrdma_dir(p.a.dev, 2);
            uint64_t at = level ? qtest_readq(qts, dir.dir) : dir.dir;
            PvrdmaCmdCreateCq cq = {
                .dir = dir.dir, .cqe = 64, .nchunks = 2,
            };
            PvrdmaRspCreateCq rsp;
            uint32_t err;

            qtest_writeq(qts, at, bad[i]);
            err = qpvrdma_call(p.a.dev, CREATE_CQ, &cq, &rsp);
            /* The device finds a page that is not RAM when it uses it. */
            if (!level || bad[i] % RDMA_PAGE_SIZE) {
                g_assert_cmpint(err, !=, 0);
            }
        }
    }
    write_to(&p, RDMA_WC_SUCCESS);
}

/* A directory that names itself as table and as pages */
static void test_own_page(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t dir = qpvrdma_dir(p.a.dev, 1).dir;
    PvrdmaCmdCreateMr req = {
        .length = 512 * RDMA_PAGE_SIZE,
        .dir = dir,
        .pd = p.a.pd,
        .access = PV_ACCESS,
        .nchunks = 512,
    };
    PvrdmaRspCreateMr rsp;

    for (int i = 0; i < 512; i++) {
        qtest_writeq(p.host->qts, dir + 8 * i, dir);
    }
    assert_done(qpvrdma_call(p.a.dev, CREATE_MR, &req, &rsp));
}

/* The device has copied the directories of its rings and regions. */
static void test_rewritten_later(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t table = qtest_readq(p.host->qts, p.b.mr.dir.dir);

    qtest_memset(p.host->qts, p.b.mr.dir.dir, 0xff, RDMA_PAGE_SIZE);
    qtest_memset(p.host->qts, table, 0xff, RDMA_PAGE_SIZE);
    pv_fill(&p.a, 0, 8, 9);
    write_to(&p, RDMA_WC_SUCCESS);
    pv_assert_filled(&p.b, 0, 8, 9);
}

/* A QP whose ring or whose indices lie in a register of the device */
static void test_rings_in_registers(void)
{
    for (uint32_t page = 0; page < 3; page++) {
        g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
        QPvrdmaDir dir = qpvrdma_dir(p.a.dev, 3);
        PvrdmaCmdCreateQp req = {
            .dir = dir.dir,
            .pd = p.a.pd,
            .send_cq = p.a.scq.handle,
            .recv_cq = p.a.rcq.handle,
            .qp_type = RDMA_QPT_RC,
        };
        uint64_t table = qtest_readq(p.host->qts, dir.dir);

        qtest_writeq(p.host->qts, table + 8 * page,
                     bar_address(&p.a, PVRDMA_BAR_UAR));
        assert_done(qpvrdma_try_create_qp(p.a.dev, 0, &req, &p.a.qp));
        pv_end_init(&p.a);
        pv_end_connect(&p.a, &p.b);
        qtest_writel(p.host->qts, dir.mem, 1);
        qtest_writel(p.host->qts, dir.mem + sizeof(PvrdmaRingState), 1);
        qpvrdma_ring_doorbell(p.a.dev, 0, PVRDMA_UAR_QP, p.a.qp.handle |
                              PVRDMA_UAR_QP_SEND | PVRDMA_UAR_QP_RECV);
        if (page < 2) {
            qrdma_wait_until(p.a.dev, pv_is_in_err(&p.a));
        }
        qpvrdma_create_pd(p.a.dev, 0);
    }
}

/* A CQ whose ring lies in a register: it fails, with the QPs that use it. */
static void test_cq_in_registers(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdmaDir dir = qpvrdma_dir(p.a.dev, 2);
    PvrdmaCmdCreateCq req = { .dir = dir.dir, .cqe = 64, .nchunks = 2 };
    PvrdmaRspCreateCq rsp;
    QPvrdmaCq cq;

    qtest_writeq(p.host->qts, qtest_readq(p.host->qts, dir.dir) + 8,
                 bar_address(&p.b, PVRDMA_BAR_UAR));
    assert_done(qpvrdma_call(p.b.dev, CREATE_CQ, &req, &rsp));
    cq = (QPvrdmaCq) { .handle = rsp.handle };
    p.b.qp = qpvrdma_create_qp(p.b.dev, 0, p.b.pd, &p.b.scq, &cq, RDMA_QPT_RC);
    p.a.qp = qpvrdma_create_qp(p.a.dev, 0, p.a.pd, &p.a.scq, &p.a.rcq,
                               RDMA_QPT_RC);
    pv_connect(&p.a, &p.b);
    pv_recv(&p.b, 1, 0, 8);
    pv_post(&p.a, RDMA_WR_SEND, 0, 8, NULL);
    qrdma_wait_until(p.b.dev, pv_is_in_err(&p.b));
    pv_expect_event(p.b.dev, RDMA_EVENT_CQ_ERR, cq.handle);
}

/* Tails of RQs and SRQs out of range */
static void test_bad_recv_tails(void)
{
    static const uint32_t tails[] = { 17, 32, UINT32_MAX };

    for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
        g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
        PvrdmaCmdCreateSrq create = { .pd = p.b.pd };
        QPvrdmaSrq srq;

        qtest_writel(p.host->qts, p.a.qp.rq.state, tails[i]);
        qpvrdma_ring_doorbell(p.a.dev, 3, PVRDMA_UAR_QP,
                              p.a.qp.handle | PVRDMA_UAR_QP_RECV);
        qpvrdma_post_send(p.b.dev, &p.b.qp,
                          &(PvrdmaSendWqe) { .opcode = RDMA_WR_SEND }, NULL);
        qrdma_wait_until(p.a.dev, pv_is_in_err(&p.a));

        assert_done(qpvrdma_try_create_srq(p.b.dev, 3, &create, &srq));
        qtest_writel(p.host->qts, srq.ring.state, tails[i]);
        qpvrdma_ring_doorbell(p.b.dev, 3, PVRDMA_UAR_SRQ,
                              srq.handle | PVRDMA_UAR_SRQ_RECV);
        pv_expect_event(p.b.dev, RDMA_EVENT_SRQ_ERR, srq.handle);
    }
}

/* The driver's head of a ring of the device is invalid: entries are kept. */
static void test_bad_device_heads(void)
{
    static const uint32_t heads[] = { 0x800, 0x80000000, UINT32_MAX };
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t head = p.a.dev->completions.state +
                    offsetof(PvrdmaRingState, head);
    uint32_t handle;

    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        qtest_writel(p.host->qts, head, heads[i]);
        pv_arm(&p.a, &p.a.scq);
        write_to(&p, RDMA_WC_SUCCESS);
        qtest_clock_step(p.host->qts, 20 * QRDMA_MS);
        g_assert_false(qpvrdma_interrupted(p.a.dev,
                                           PVRDMA_VECTOR_COMPLETION));
    }
    qtest_writel(p.host->qts, head, 0);
    qtest_clock_step(p.host->qts, 20 * QRDMA_MS);
    qrdma_wait_until(p.a.dev, qpvrdma_ring_pop(p.a.dev, &p.a.dev->completions,
                                               &handle));
    g_assert_cmpint(handle, ==, p.a.scq.handle);
}

/* A ring of the device needs a page of indices, and one of elements. */
static void test_bad_device_rings(void)
{
    g_autoptr(QPvrdma) d = pv_alone_new();
    static const uint32_t counts[] = { 0, 1, 3, 5, UINT32_MAX };

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        qpvrdma_set_dsr(d);
        qtest_writel(d->host->qts, d->dsr +
                     offsetof(PvrdmaDsr, events.num_pages), counts[i]);
        qpvrdma_write(d, PVRDMA_REG_DSR_LOW, d->dsr);
        qpvrdma_write(d, PVRDMA_REG_DSR_HIGH, d->dsr >> 32);
        qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE);
        assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
    }
}

/* Interrupts, replies and regions of the device in its own registers */
static void test_own_registers(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdma *d = p.a.dev;
    uint64_t regs = bar_address(&p.a, PVRDMA_BAR_REGS);
    const uint64_t targets[] = {
        regs + PVRDMA_REG_REQUEST, regs + PVRDMA_REG_CTL,
        regs + PVRDMA_REG_DSR_HIGH, bar_address(&p.a, PVRDMA_BAR_UAR),
        bar_address(&p.a, PVRDMA_BAR_MSIX),
    };
    PvrdmaCmdHandle req = {};

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        for (unsigned v = 0; v < PVRDMA_NUM_VECTORS; v++) {
            qpci_io_writel(d->pci, d->pci->msix_table_bar,
                           d->pci->msix_table_off + v * PCI_MSIX_ENTRY_SIZE +
                           PCI_MSIX_ENTRY_LOWER_ADDR, targets[i]);
            qpci_io_writel(d->pci, d->pci->msix_table_bar,
                           d->pci->msix_table_off + v * PCI_MSIX_ENTRY_SIZE +
                           PCI_MSIX_ENTRY_DATA, PVRDMA_CTL_RESET);
        }
        pv_arm(&p.a, &p.a.scq);
        write_to(&p, RDMA_WC_SUCCESS);
        assert_done(qpvrdma_begin(d, CREATE_PD, &req));
    }
}

const QRdmaTest pvrdma_pages_tests[] = {
    { "bad-regions", test_bad_regions },
    { "bad-srqs", test_bad_srqs },
    { "bad-entries", test_bad_entries },
    { "own-page", test_own_page },
    { "rewritten-later", test_rewritten_later },
    { "rings-in-registers", test_rings_in_registers },
    { "cq-in-registers", test_cq_in_registers },
    { "bad-recv-tails", test_bad_recv_tails },
    { "bad-device-heads", test_bad_device_heads },
    { "bad-device-rings", test_bad_device_rings },
    { "own-registers", test_own_registers },
    { }
};
