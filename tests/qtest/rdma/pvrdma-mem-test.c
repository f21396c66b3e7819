/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of pvrdma: fast registration and invalidation, which only the kernel
 * may use.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"

#define LEN 6000

static QPvrdmaMr alloc_mr(PvEnd *e, uint32_t max_pages)
{
    PvrdmaCmdCreateMr req = {
        .pd = e->pd,
        .flags = PVRDMA_MR_FAST_REG,
        .nchunks = max_pages,
    };
    PvrdmaRspCreateMr rsp;

    assert_done(qpvrdma_call(e->dev, CREATE_MR, &req, &rsp));
    /* Consumers register with either of them. */
    g_assert_cmphex(rsp.lkey, ==, rsp.rkey);
    return (QPvrdmaMr) {
        .handle = rsp.handle,
        .lkey = rsp.lkey,
        .rkey = rsp.rkey,
    };
}

static PvrdmaSendWqe fast_reg(QPvrdmaMr *mr, const QPvrdmaDir *dir,
                              uint64_t iova)
{
    mr->addr = iova;
    mr->dir = *dir;
    return (PvrdmaSendWqe) {
        .wr_id = 70,
        .opcode = PVRDMA_WR_FAST_REG,
        .send_flags = RDMA_SEND_SIGNALED,
        .wr.fast_reg = {
            .iova = iova,
            .dir = dir->dir,
            .page_shift = RDMA_PAGE_SHIFT,
            .npages = dir->npages,
            .length = dir->npages * RDMA_PAGE_SIZE - iova % RDMA_PAGE_SIZE,
            .access = PV_ACCESS,
            .key = mr->rkey,
        },
    };
}

static void send_to(PvPair *p, uint32_t opcode, const QPvrdmaMr *mr,
                    uint32_t status)
{
    PvrdmaSge sge = pv_sge(&p->b, 0, LEN);

    qpvrdma_post_send(p->b.dev, &p->b.qp,
                      &(PvrdmaSendWqe) {
                          .wr_id = 80,
                          .num_sge = 1,
                          .opcode = opcode,
                          .send_flags = RDMA_SEND_SIGNALED,
                          .ex.invalidate_rkey = mr->rkey,
                          .wr.rdma = {
                              .remote_addr = mr->addr,
                              .rkey = mr->rkey,
                          },
                      }, &sge);
    pv_expect(&p->b, &p->b.scq, 80, status,
              opcode == RDMA_WR_RDMA_WRITE ? RDMA_WC_RDMA_WRITE
                                           : RDMA_WC_SEND);
}

static void test_fast_reg(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdmaMr mr = alloc_mr(&p.a, 8);
    QPvrdmaDir dir = qpvrdma_dir(p.a.dev, 4);
    PvrdmaSendWqe wqe = fast_reg(&mr, &dir, 0x10000123);
    PvEnd target = p.a;
    PvrdmaCqe cqe;
    PvrdmaSge room = pv_sge(&p.a, 0, LEN);

    qpvrdma_post_send(p.a.dev, &p.a.qp, &wqe, NULL);
    pv_expect(&p.a, &p.a.scq, 70, RDMA_WC_SUCCESS, RDMA_WC_REG_MR);
    /* The driver may reuse the directory. */
    qtest_memset(p.host->qts, dir.dir, 0xff, RDMA_PAGE_SIZE);
    pv_fill(&p.b, 0, LEN, 3);
    send_to(&p, RDMA_WR_RDMA_WRITE, &mr, RDMA_WC_SUCCESS);
    target.mr = mr;
    pv_assert_filled(&target, 0, LEN, 3);

    qpvrdma_post_recv(p.a.dev, &p.a.qp, 90, &room);
    send_to(&p, PVRDMA_WR_SEND_WITH_INV, &mr, RDMA_WC_SUCCESS);
    cqe = pv_expect(&p.a, &p.a.rcq, 90, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    g_assert_cmphex(cqe.wc_flags, ==, RDMA_WC_WITH_INVALIDATE);
    g_assert_cmphex(cqe.ex.invalidate_rkey, ==, mr.rkey);
    send_to(&p, RDMA_WR_RDMA_WRITE, &mr, RDMA_WC_REM_ACCESS_ERR);
}

static void test_local_inv(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdmaMr mr = alloc_mr(&p.a, 8);
    QPvrdmaDir dir = qpvrdma_dir(p.a.dev, 4);
    PvrdmaSendWqe wqe = fast_reg(&mr, &dir, 0x10000000);

    qpvrdma_post_send(p.a.dev, &p.a.qp, &wqe, NULL);
    pv_expect(&p.a, &p.a.scq, 70, RDMA_WC_SUCCESS, RDMA_WC_REG_MR);
    wqe = (PvrdmaSendWqe) {
        .wr_id = 71,
        .opcode = PVRDMA_WR_LOCAL_INV,
        .send_flags = RDMA_SEND_SIGNALED,
        .ex.invalidate_rkey = mr.rkey,
    };
    qpvrdma_post_send(p.a.dev, &p.a.qp, &wqe, NULL);
    pv_expect(&p.a, &p.a.scq, 71, RDMA_WC_SUCCESS, PVRDMA_WC_LOCAL_INV);
    send_to(&p, RDMA_WR_RDMA_WRITE, &mr, RDMA_WC_REM_ACCESS_ERR);
}

/* More pages than the region has, or than the length needs */
static void test_bad_fast_reg(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdmaMr mr = alloc_mr(&p.a, 4);
    QPvrdmaDir dir = qpvrdma_dir(p.a.dev, 5);
    PvrdmaSendWqe wqe = fast_reg(&mr, &dir, 0x10000000);

    qpvrdma_post_send(p.a.dev, &p.a.qp, &wqe, NULL);
    pv_expect(&p.a, &p.a.scq, 70, RDMA_WC_MW_BIND_ERR, 0);
}

/* A process could name any page. Its provider uses these fields otherwise. */
static void test_process_may_not(void)
{
    static const uint32_t opcodes[] = {
        PVRDMA_WR_SEND_WITH_INV, PVRDMA_WR_LOCAL_INV, PVRDMA_WR_FAST_REG, 7, 9,
        14, 15, UINT32_MAX,
    };
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);

    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        PvrdmaSendWqe wqe = {
            .wr_id = i,
            .opcode = opcodes[i],
            .send_flags = RDMA_SEND_SIGNALED,
        };

        /* Such a request breaks its QP. */
        p.a.qp = qpvrdma_create_qp(p.a.dev, 3, p.a.pd, &p.a.scq, &p.a.rcq,
                                   RDMA_QPT_RC);
        pv_end_init(&p.a);
        pv_end_connect(&p.a, &p.b);
        qpvrdma_post_send(p.a.dev, &p.a.qp, &wqe, NULL);
        pv_expect(&p.a, &p.a.scq, i, RDMA_WC_LOC_QP_OP_ERR, 0);
    }
}

static void test_process_regions(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    PvrdmaCmdCreateMr req = { .pd = p.a.pd, .access = 1, .nchunks = 4 };
    PvrdmaRspCreateMr rsp;

    for (req.flags = PVRDMA_MR_DMA; req.flags <= 3; req.flags++) {
        assert_fails(qpvrdma_call(p.a.dev, CREATE_MR, &req, &rsp));
    }
}

const QRdmaTest pvrdma_mem_tests[] = {
    { "fast-reg", test_fast_reg },
    { "local-inv", test_local_inv },
    { "bad-fast-reg", test_bad_fast_reg },
    { "process-may-not", test_process_may_not },
    { "process-regions", test_process_regions },
    { }
};
