/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that a driver or a process gives pvrdma: directories that do not fit,
 * that change, and that name no RAM; rings and messages in registers.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"
#include "standard-headers/linux/pci_regs.h"

static bool is_in_err(PvEnd *e)
{
    PvrdmaQpAttr attr;

    qpvrdma_query_qp(e->dev, e->qp.handle, &attr);
    return attr.qp_state == RDMA_QPS_ERR;
}

static bool next_event(PvEnd *e, PvrdmaEvent *event)
{
    return qpvrdma_ring_pop(e->dev, &e->dev->events, event);
}

static uint64_t bar_address(PvEnd *e, unsigned bar)
{
    return qpci_config_readl(e->dev->pci, PCI_BASE_ADDRESS_0 + 4 * bar) &
           PCI_BASE_ADDRESS_MEM_MASK;
}

static void write_to(PvPair *p, uint32_t status)
{
    PvrdmaSge sge = pv_sge(&p->a, 0, 8);

    qpvrdma_post_send(p->a.dev, &p->a.qp,
                      &(PvrdmaSendWqe) {
                          .wr_id = 1,
                          .num_sge = 1,
                          .opcode = RDMA_WR_RDMA_WRITE,
                          .send_flags = RDMA_SEND_SIGNALED,
                          .wr.rdma = {
                              .remote_addr = p->b.mr.addr,
                              .rkey = p->b.mr.rkey,
                          },
                      }, &sge);
    pv_expect(&p->a, &p->a.scq, 1, status, RDMA_WC_RDMA_WRITE);
}

/* Lengths of regions, against the number of their pages */
static void test_bad_regions(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
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
        g_assert_cmpint(qpvrdma_cmd(p.a.dev, PVRDMA_CMD_CREATE_MR, &req,
                                    sizeof(req), &rsp, sizeof(rsp)), !=, 0);
    }
    write_to(&p, RDMA_WC_SUCCESS);
    pv_pair_free(&p);
}

static void test_bad_srqs(void)
{
    PvPair p = pv_pair_new(3, RDMA_QPT_RC);
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
        g_assert_cmpint(qpvrdma_cmd(p.a.dev, PVRDMA_CMD_CREATE_SRQ, &req,
                                    sizeof(req), &rsp, sizeof(rsp)), !=, 0);
    }
    pv_pair_free(&p);
}

/* Entries of a directory that cannot be addresses of pages of RAM */
static void test_bad_entries(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
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
            err = qpvrdma_cmd(p.a.dev, PVRDMA_CMD_CREATE_CQ, &cq, sizeof(cq),
                              &rsp, sizeof(rsp));
            /* The device finds a page that is not RAM when it uses it. */
            if (!level || bad[i] % RDMA_PAGE_SIZE) {
                g_assert_cmpint(err, !=, 0);
            }
        }
    }
    write_to(&p, RDMA_WC_SUCCESS);
    pv_pair_free(&p);
}

/* A directory that names itself as table and as pages */
static void test_own_page(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
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
    g_assert_cmpint(qpvrdma_cmd(p.a.dev, PVRDMA_CMD_CREATE_MR, &req,
                                sizeof(req), &rsp, sizeof(rsp)), ==, 0);
    pv_pair_free(&p);
}

/* The device has copied the directories of its rings and regions. */
static void test_rewritten_later(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t table = qtest_readq(p.host->qts, p.b.mr.dir.dir);

    qtest_memset(p.host->qts, p.b.mr.dir.dir, 0xff, RDMA_PAGE_SIZE);
    qtest_memset(p.host->qts, table, 0xff, RDMA_PAGE_SIZE);
    pv_fill(&p.a, 0, 8, 9);
    write_to(&p, RDMA_WC_SUCCESS);
    pv_assert_filled(&p.b, 0, 8, 9);
    pv_pair_free(&p);
}

/* A QP whose ring or whose indices lie in a register of the device */
static void test_rings_in_registers(void)
{
    for (uint32_t page = 0; page < 3; page++) {
        PvPair p = pv_pair_new(0, RDMA_QPT_RC);
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
        g_assert_cmpint(qpvrdma_try_create_qp(p.a.dev, 0, &req, &p.a.qp), ==,
                        0);
        pv_end_init(&p.a);
        pv_end_connect(&p.a, &p.b);
        qtest_writel(p.host->qts, dir.mem, 1);
        qtest_writel(p.host->qts, dir.mem + sizeof(PvrdmaRingState), 1);
        qpvrdma_ring_doorbell(p.a.dev, 0, PVRDMA_UAR_QP, p.a.qp.handle |
                              PVRDMA_UAR_QP_SEND | PVRDMA_UAR_QP_RECV);
        if (page < 2) {
            qrdma_wait_until(p.a.dev, is_in_err(&p.a));
        }
        qpvrdma_create_pd(p.a.dev, 0);
        pv_pair_free(&p);
    }
}

/* A CQ whose ring lies in a register: it fails, with the QPs that use it. */
static void test_cq_in_registers(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdmaDir dir = qpvrdma_dir(p.a.dev, 2);
    PvrdmaCmdCreateCq req = { .dir = dir.dir, .cqe = 64, .nchunks = 2 };
    PvrdmaRspCreateCq rsp;
    PvrdmaSge sge = pv_sge(&p.b, 0, 8);
    PvrdmaEvent event;
    QPvrdmaCq cq;

    qtest_writeq(p.host->qts, qtest_readq(p.host->qts, dir.dir) + 8,
                 bar_address(&p.b, PVRDMA_BAR_UAR));
    g_assert_cmpint(qpvrdma_cmd(p.b.dev, PVRDMA_CMD_CREATE_CQ, &req,
                                sizeof(req), &rsp, sizeof(rsp)), ==, 0);
    cq = (QPvrdmaCq) { .handle = rsp.handle };
    p.b.qp = qpvrdma_create_qp(p.b.dev, 0, p.b.pd, &p.b.scq, &cq, RDMA_QPT_RC);
    pv_end_init(&p.b);
    p.a.qp = qpvrdma_create_qp(p.a.dev, 0, p.a.pd, &p.a.scq, &p.a.rcq,
                               RDMA_QPT_RC);
    pv_end_init(&p.a);
    pv_end_connect(&p.a, &p.b);
    pv_end_connect(&p.b, &p.a);
    qpvrdma_post_recv(p.b.dev, &p.b.qp, 1, &sge);
    sge = pv_sge(&p.a, 0, 8);
    qpvrdma_post_send(p.a.dev, &p.a.qp,
                      &(PvrdmaSendWqe) {
                          .num_sge = 1, .opcode = RDMA_WR_SEND,
                      }, &sge);
    qrdma_wait_until(p.b.dev, is_in_err(&p.b));
    qrdma_wait_until(p.b.dev, next_event(&p.b, &event));
    g_assert_cmpint(event.type, ==, RDMA_EVENT_CQ_ERR);
    g_assert_cmpint(event.info, ==, cq.handle);
    pv_pair_free(&p);
}

/* Tails of RQs and SRQs out of range */
static void test_bad_recv_tails(void)
{
    static const uint32_t tails[] = { 17, 32, UINT32_MAX };

    for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
        PvPair p = pv_pair_new(3, RDMA_QPT_RC);
        PvrdmaCmdCreateSrq create = { .pd = p.b.pd };
        QPvrdmaSrq srq;
        PvrdmaEvent event;

        qtest_writel(p.host->qts, p.a.qp.rq.state, tails[i]);
        qpvrdma_ring_doorbell(p.a.dev, 3, PVRDMA_UAR_QP,
                              p.a.qp.handle | PVRDMA_UAR_QP_RECV);
        qpvrdma_post_send(p.b.dev, &p.b.qp,
                          &(PvrdmaSendWqe) { .opcode = RDMA_WR_SEND }, NULL);
        qrdma_wait_until(p.a.dev, is_in_err(&p.a));

        g_assert_cmpint(qpvrdma_try_create_srq(p.b.dev, 3, &create, &srq), ==,
                        0);
        qtest_writel(p.host->qts, srq.ring.state, tails[i]);
        qpvrdma_ring_doorbell(p.b.dev, 3, PVRDMA_UAR_SRQ,
                              srq.handle | PVRDMA_UAR_SRQ_RECV);
        qrdma_wait_until(p.b.dev, next_event(&p.b, &event));
        g_assert_cmpint(event.type, ==, RDMA_EVENT_SRQ_ERR);
        g_assert_cmpint(event.info, ==, srq.handle);
        pv_pair_free(&p);
    }
}

/* The driver's head of a ring of the device is invalid: entries are kept. */
static void test_bad_device_heads(void)
{
    static const uint32_t heads[] = { 0x800, 0x80000000, UINT32_MAX };
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t head = p.a.dev->completions.state +
                    offsetof(PvrdmaRingState, head);
    uint32_t handle;

    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        qtest_writel(p.host->qts, head, heads[i]);
        qpvrdma_ring_doorbell(p.a.dev, 0, PVRDMA_UAR_CQ,
                              p.a.scq.handle | PVRDMA_UAR_CQ_ARM);
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
    pv_pair_free(&p);
}

/* A ring of the device needs a page of indices, and one of elements. */
static void test_bad_device_rings(void)
{
    QRdmaHost *host = pv_host_start("");
    QPvrdma *d = qpvrdma_open(host, QPCI_DEVFN(4, 1));
    static const uint32_t counts[] = { 0, 1, 3, 5, UINT32_MAX };

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        qpvrdma_set_dsr(d);
        qtest_writel(host->qts, d->dsr +
                     offsetof(PvrdmaDsr, events.num_pages), counts[i]);
        qpvrdma_write(d, PVRDMA_REG_DSR_LOW, d->dsr);
        qpvrdma_write(d, PVRDMA_REG_DSR_HIGH, d->dsr >> 32);
        qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE);
        g_assert_cmpint(qpvrdma_read(d, PVRDMA_REG_ERR), !=, 0);
    }
    qpvrdma_close(d);
    qrdma_host_stop(host);
}

/* Interrupts, replies and regions of the device in its own registers */
static void test_own_registers(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
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
        qpvrdma_ring_doorbell(d, 0, PVRDMA_UAR_CQ,
                              p.a.scq.handle | PVRDMA_UAR_CQ_ARM);
        write_to(&p, RDMA_WC_SUCCESS);
        g_assert_cmpint(qpvrdma_request(d, PVRDMA_CMD_CREATE_PD, &req,
                                        sizeof(req)), ==, 0);
    }
    pv_pair_free(&p);
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
