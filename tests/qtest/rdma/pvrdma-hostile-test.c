/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drivers and processes that break the rules of pvrdma's ABI.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"

/* Commands and doorbells without a shared region, and before ACTIVATE */
static void test_too_early(void)
{
    g_autoptr(QPvrdma) d = pv_alone_new();

    for (int i = 0; i < 2; i++) {
        qpvrdma_write(d, PVRDMA_REG_REQUEST, 0);
        assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
        qpvrdma_ring_doorbell(d, 0, PVRDMA_UAR_QP, 1 | PVRDMA_UAR_QP_SEND);
        qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_UNQUIESCE);
        assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
        qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
        if (!i) {
            qpvrdma_set_dsr(d);
        }
    }
    /* RESET has dropped the region. */
    qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE);
    assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
}

/* The shared region, or an address in it, is outside of RAM. */
static void test_bad_region(void)
{
    g_autoptr(QPvrdma) d = pv_alone_new();
    static const size_t fields[] = {
        offsetof(PvrdmaDsr, request), offsetof(PvrdmaDsr, response),
        offsetof(PvrdmaDsr, events.dir), offsetof(PvrdmaDsr, completions.dir),
    };
    static const uint64_t bad[] = { 0x123, 0xfffffffffffff000 };

    for (size_t i = 0; i < ARRAY_SIZE(fields) * ARRAY_SIZE(bad); i++) {
        uint64_t at;

        qpvrdma_set_dsr(d);
        at = d->dsr + fields[i % ARRAY_SIZE(fields)];
        qtest_writeq(d->host->qts, at, bad[i / ARRAY_SIZE(fields)]);
        qpvrdma_write(d, PVRDMA_REG_DSR_HIGH, 0);
        qpvrdma_write(d, PVRDMA_REG_DSR_LOW, d->dsr);
        qpvrdma_write(d, PVRDMA_REG_DSR_HIGH, d->dsr >> 32);
        qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE);
        if (fields[i % ARRAY_SIZE(fields)] >= offsetof(PvrdmaDsr, events) ||
            bad[i / ARRAY_SIZE(fields)] % RDMA_PAGE_SIZE) {
            assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
        } else {
            /* The device checks the slots when a command comes. */
            qpvrdma_write(d, PVRDMA_REG_REQUEST, 0);
        }
    }
    qpvrdma_write(d, PVRDMA_REG_DSR_LOW, 0xfffff000);
    qpvrdma_write(d, PVRDMA_REG_DSR_HIGH, 0xffffffff);
    qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE);
    assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
}

static void test_unknown_commands(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    static const uint32_t cmds[] = {
        PVRDMA_CMD_RESIZE_CQ, PVRDMA_NUM_CMDS, 0x80000000, UINT32_MAX,
    };

    for (size_t i = 0; i < ARRAY_SIZE(cmds); i++) {
        PvrdmaCmdHandle req = {};

        assert_fails(qpvrdma_cmd(d, cmds[i], &req, sizeof(req), NULL, 0));
    }
    /* Objects that do not exist */
    for (uint32_t cmd = 0; cmd < PVRDMA_NUM_CMDS; cmd++) {
        PvrdmaCmdModifyQp req;

        if (cmd != PVRDMA_CMD_MODIFY_QP) {
            memset(&req, 0xff, sizeof(req));
            req.head.response = 0;
            assert_fails(qpvrdma_cmd(d, cmd, &req, sizeof(req), NULL, 0));
        }
    }
}

/* Sizes of a CQ, against its directory */
static void test_bad_cqs(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    QPvrdmaDir dir = qpvrdma_dir(d, 2);
    const PvrdmaCmdCreateCq cqs[] = {
        { .dir = dir.dir, .cqe = 0, .nchunks = 2 },
        { .dir = dir.dir, .cqe = 3, .nchunks = 2 },
        { .dir = dir.dir, .cqe = 65, .nchunks = 3 },
        { .dir = dir.dir, .cqe = 128, .nchunks = 2 },
        { .dir = dir.dir, .cqe = 64, .nchunks = 1 },
        { .dir = dir.dir, .cqe = 64, .nchunks = 0 },
        { .dir = dir.dir, .cqe = 64, .nchunks = PVRDMA_MAX_PAGES + 1 },
        { .dir = dir.dir, .cqe = 1u << 31, .nchunks = UINT32_MAX },
        { .dir = dir.dir + 8, .cqe = 64, .nchunks = 2 },
        { .dir = 0xfffffffffffff000, .cqe = 64, .nchunks = 2 },
        { .dir = dir.dir, .ctx = 3, .cqe = 64, .nchunks = 2 },
        { .dir = dir.dir, .ctx = UINT32_MAX, .cqe = 64, .nchunks = 2 },
    };
    PvrdmaRspCreateCq rsp;

    for (size_t i = 0; i < ARRAY_SIZE(cqs); i++) {
        PvrdmaCmdCreateCq req = cqs[i];

        assert_fails(qpvrdma_call(d, CREATE_CQ, &req, &rsp));
    }
}

static void test_bad_qps(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    const PvrdmaCmdCreateQp base = {
        .pd = p.a.pd,
        .send_cq = p.a.scq.handle,
        .recv_cq = p.a.rcq.handle,
        .qp_type = RDMA_QPT_RC,
    };
    PvrdmaCmdCreateQp qps[11];
    PvrdmaRspCreateQp rsp;

    for (size_t i = 0; i < ARRAY_SIZE(qps); i++) {
        qps[i] = base;
    }
    qps[0].max_send_wr = 24;
    qps[1].max_recv_wr = 1u << 31;
    qps[2].max_send_sge = 129;
    qps[3].max_recv_sge = 129;
    qps[4].total_chunks = 2;        /* no page for the RQ */
    qps[5].send_chunks = 20;        /* more than the total */
    qps[6].qp_type = RDMA_QPT_UC;
    qps[7].qp_type = 200;
    qps[8].pd = 77;
    qps[9].recv_cq = 77;
    for (size_t i = 0; i < ARRAY_SIZE(qps); i++) {
        PvrdmaCmdCreateQp req = qps[i];

        req.dir = qpvrdma_dir(p.a.dev, 3).dir;
        req.total_chunks = req.total_chunks ?: 3;
        req.send_chunks = req.send_chunks ?: 1;
        req.max_send_wr = req.max_send_wr ?: 16;
        req.max_recv_wr = req.max_recv_wr ?: 16;
        req.max_send_sge = req.max_send_sge ?: 2;
        req.max_recv_sge = req.max_recv_sge ?: 2;
        /* The last case is valid. */
        g_assert_cmpint(!qpvrdma_call(p.a.dev, CREATE_QP, &req, &rsp), ==,
                        i == ARRAY_SIZE(qps) - 1);
    }
}

/* Tails out of range break the queue: its QP fails, and the driver is told. */
static void test_bad_tails(void)
{
    static const uint32_t tails[] = { 17, 31, 32, 0x80000000, UINT32_MAX };

    for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
        g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);

        qtest_writel(p.host->qts, p.a.qp.sq.state, tails[i]);
        qpvrdma_ring_doorbell(p.a.dev, 3, PVRDMA_UAR_QP,
                              p.a.qp.handle | PVRDMA_UAR_QP_SEND);
        qrdma_wait_until(p.a.dev, pv_is_in_err(&p.a));
        pv_expect_event(p.a.dev, RDMA_EVENT_QP_FATAL, p.a.qp.handle);
    }
}

static void test_bad_num_sge(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    PvrdmaSendWqe wqe = { .wr_id = 9, .num_sge = 3, .opcode = RDMA_WR_SEND };
    PvrdmaSge sge[3] = {};

    qpvrdma_post_send(p.a.dev, &p.a.qp, &wqe, sge);
    pv_expect(&p.a, &p.a.scq, 9, RDMA_WC_LOC_QP_OP_ERR, 0);
}

/* The device finds an invalid head of a CQ when the CQ seems to be full. */
static void test_bad_cq_head(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    PvrdmaCqe cqe;

    qtest_writel(p.host->qts, p.b.rcq.ring.state +
                 offsetof(PvrdmaRingState, head), 1000);
    for (uint32_t i = 0; i < p.b.rcq.ring.size + 1; i++) {
        pv_recv(&p.b, i, 0, 8);
        pv_post(&p.a, RDMA_WR_SEND, 0, 8, NULL);
        if (i < p.b.rcq.ring.size) {
            cqe = qpvrdma_wait_cq(p.a.dev, &p.a.scq);
            g_assert_cmpint(cqe.status, ==, RDMA_WC_SUCCESS);
        }
    }
    qrdma_wait_until(p.b.dev, pv_is_in_err(&p.b));
}

/* A process rings, and arms, objects of another process. */
static void test_foreign_doorbells(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    PvrdmaCqe cqe;

    qpvrdma_ring_doorbell(p.a.dev, 4, PVRDMA_UAR_CQ,
                          p.a.scq.handle | PVRDMA_UAR_CQ_ARM);
    p.a.qp.page = 4;
    pv_recv(&p.b, 1, 0, 8);
    pv_post(&p.a, RDMA_WR_SEND, 0, 8, NULL);
    g_assert_false(pv_is_in_err(&p.a));
    g_assert_false(qpvrdma_poll_cq(p.a.dev, &p.a.scq, &cqe));
    qpvrdma_ring_doorbell(p.a.dev, 3, PVRDMA_UAR_QP,
                          p.a.qp.handle | PVRDMA_UAR_QP_SEND);
    pv_expect(&p.a, &p.a.scq, 0, RDMA_WC_SUCCESS, RDMA_WC_SEND);
    g_assert_false(qpvrdma_interrupted(p.a.dev, PVRDMA_VECTOR_COMPLETION));
}

/* The driver has freed the memory of a CQ that a QP uses. */
static void test_destroy_in_use(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    assert_fails(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_CQ,
                                 p.a.rcq.handle));
    g_assert_true(pv_is_in_err(&p.a));
    pv_recv(&p.a, 1, 0, 8);
    g_assert_cmpint(qtest_readl(p.host->qts, p.a.rcq.ring.state), ==, 0);
    /* The objects of a PD go with it. */
    assert_done(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_PD, p.a.pd));
    assert_fails(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_QP,
                                 p.a.qp.handle));
    assert_done(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_CQ,
                                p.a.rcq.handle));
}

/* Objects whose creation was interrupted: nothing else destroys them. */
static void test_destroy_context(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);

    assert_done(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_UC, 3));
    assert_fails(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_QP,
                                 p.a.qp.handle));
    assert_fails(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_CQ,
                                 p.a.scq.handle));
    assert_fails(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_UC, 3));
    qpvrdma_create_uc(p.a.dev, 3);
}

/* Each offset and width, of registers and doorbells */
static void test_all_offsets(void)
{
    QRdmaHost *host = pv_host_start("");
    QPvrdma *d = pv_start(host, 4);

    for (uint64_t at = 0; at < 64; at++) {
        qpci_io_writeb(d->pci, d->uar, at, 0xff);
        qpci_io_writew(d->pci, d->uar, at, 0xffff);
        qpci_io_writeq(d->pci, d->uar, at & ~7, UINT64_MAX);
        qpci_io_readq(d->pci, d->uar, at & ~7);
        qpci_io_readb(d->pci, d->regs, at);
        qpci_io_readw(d->pci, d->regs, at);
        qpci_io_readq(d->pci, d->regs, at & ~7);
        qpci_io_writeb(d->pci, d->regs, at, 0xff);
        qpci_io_writew(d->pci, d->regs, at, 0xffff);
        qpci_io_writeq(d->pci, d->regs, at & ~7, UINT64_MAX);
        qpci_io_writel(d->pci, d->uar, at & ~3, UINT32_MAX);
        qpci_io_writel(d->pci, d->regs, at & ~3, UINT32_MAX);
        qpci_io_readl(d->pci, d->regs, at & ~3);
    }
    qpvrdma_close(d);
    d = pv_start(host, 4);
    qpvrdma_close(d);
    qrdma_host_stop(host);
}

const QRdmaTest pvrdma_hostile_tests[] = {
    { "too-early", test_too_early },
    { "bad-region", test_bad_region },
    { "unknown-commands", test_unknown_commands },
    { "bad-cqs", test_bad_cqs },
    { "bad-qps", test_bad_qps },
    { "bad-tails", test_bad_tails },
    { "bad-num-sge", test_bad_num_sge },
    { "bad-cq-head", test_bad_cq_head },
    { "foreign-doorbells", test_foreign_doorbells },
    { "destroy-in-use", test_destroy_in_use },
    { "destroy-context", test_destroy_context },
    { "all-offsets", test_all_offsets },
    { }
};
