/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: remote access through memory windows.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "net-test.h"

#define LEN 20000
#define BINDABLE (NET_ACCESS_ALL | RDMA_ACCESS_MW_BIND)

typedef struct Pair {
    NetPair p;
    QRdmaMr *mr;                    /* of b: LEN bytes, for windows */
    QRdmaMw mw;
} Pair;

static Pair pair_new(NetKind kind, RdmaMwType type)
{
    Pair w = {
        .p = net_pair_new(net_shared(kind), RDMA_QPT_RC),
    };

    qrdma_connect(w.p.a.qp, w.p.b.qp, NULL);
    w.mr = qrdma_reg_mr(w.p.b.pd, 0x30000100, LEN, BINDABLE);
    assert_ok(qrdma_alloc_mw(w.p.b.pd, type, &w.mw));
    return w;
}

static void bind_mw(Pair *w, uint64_t offset, uint64_t length,
                    uint32_t access)
{
    RdmaSendWr wr = qrdma_bind_wr(&w->mw, w->mr, offset, length, access);

    qrdma_post_expect_wc(w->p.b.qp, wr, RDMA_WC_BIND_MW);
    w->mw.rkey = wr.wr.bind.new_rkey;
}

static void post(Pair *w, RdmaWrOpcode opcode, uint64_t addr, uint32_t len)
{
    RdmaSge sge = net_sge(&w->p.a, 0, len);
    RdmaSendWr wr = qrdma_wr(opcode, 7, &sge);

    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = w->mw.rkey;
    qrdma_post_send(w->p.a.qp, &wr);
}

static void test_each_operation(NetKind kind)
{
    for (RdmaMwType type = RDMA_MW_TYPE_1; type <= RDMA_MW_TYPE_2; type++) {
        Pair w = pair_new(kind, type);
        RdmaSge sge = net_sge(&w.p.a, 16384, 8);
        RdmaSendWr wr = qrdma_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, 9, &sge);
        uint64_t at = w.mr->iova + 4000, value = cpu_to_le64(40);

        bind_mw(&w, 4000, 12000, RDMA_ACCESS_REMOTE);
        qrdma_mr_fill(w.p.a.mr, 0, 12000, 5);
        post(&w, RDMA_WR_RDMA_WRITE, at, 12000);
        qrdma_expect(w.p.a.scq, 7, RDMA_WC_SUCCESS);
        qrdma_mr_check(w.mr, 4000, 12000, 5);
        qrdma_mr_fill(w.mr, 4000, 12000, 6);
        post(&w, RDMA_WR_RDMA_READ, at, 12000);
        qrdma_expect(w.p.a.scq, 7, RDMA_WC_SUCCESS);
        qrdma_mr_check(w.p.a.mr, 0, 12000, 6);

        qrdma_mr_write(w.mr, 8192 - 0x100, &value, 8);
        wr.wr.atomic.remote_addr = w.mr->iova + 8192 - 0x100;
        wr.wr.atomic.compare_add = 2;
        wr.wr.atomic.rkey = w.mw.rkey;
        qrdma_post_expect(w.p.a.qp, wr, RDMA_WC_SUCCESS);
        qrdma_mr_read(w.mr, 8192 - 0x100, &value, 8);
        g_assert_cmpuint(le64_to_cpu(value), ==, 42);
    }
}

static void test_ends_where_it_ends(NetKind kind)
{
    for (int i = 0; i < 4; i++) {
        Pair w = pair_new(kind, RDMA_MW_TYPE_2);
        uint64_t at = w.mr->iova + 4000;
        const struct {
            RdmaWrOpcode opcode;
            uint64_t addr;
            uint32_t len;
        } bad[] = {
            { RDMA_WR_RDMA_WRITE, at + 12000, 1 },
            { RDMA_WR_RDMA_WRITE, at + 1, 12000 },
            { RDMA_WR_RDMA_WRITE, at - 1, 1 },
            { RDMA_WR_RDMA_READ, at, 1 },
        };

        bind_mw(&w, 4000, 12000, RDMA_ACCESS_REMOTE_WRITE);
        qrdma_mr_fill(w.mr, 0, LEN, 9);
        post(&w, bad[i].opcode, bad[i].addr, bad[i].len);
        qrdma_expect(w.p.a.scq, 7, RDMA_WC_REM_ACCESS_ERR);
        /* the bytes around the window are unchanged */
        qrdma_mr_check(w.mr, 0, 4000, 9);
    }
}

static void test_zero_based(NetKind kind)
{
    Pair w = pair_new(kind, RDMA_MW_TYPE_2);

    bind_mw(&w, 4000, 5000, RDMA_ACCESS_REMOTE_WRITE |
                            RDMA_ACCESS_ZERO_BASED);
    qrdma_mr_fill(w.p.a.mr, 0, 5000, 5);
    post(&w, RDMA_WR_RDMA_WRITE, 0, 5000);
    qrdma_expect(w.p.a.scq, 7, RDMA_WC_SUCCESS);
    qrdma_mr_check(w.mr, 4000, 5000, 5);
    post(&w, RDMA_WR_RDMA_WRITE, w.mr->iova + 4000, 8);
    qrdma_expect(w.p.a.scq, 7, RDMA_WC_REM_ACCESS_ERR);
}

/* The peer closes a window of type 2 when it is done with it. */
static void test_send_with_invalidate(NetKind kind)
{
    Pair w = pair_new(kind, RDMA_MW_TYPE_2);
    RdmaSge sge = net_sge(&w.p.a, 0, 100);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND_WITH_INV, 8, &sge);
    RdmaWc wc;

    for (int i = 0; i < 3; i++) {
        bind_mw(&w, 0, LEN, RDMA_ACCESS_REMOTE_WRITE);
        post(&w, RDMA_WR_RDMA_WRITE, w.mr->iova, 100);
        qrdma_expect(w.p.a.scq, 7, RDMA_WC_SUCCESS);
        net_post_recv(&w.p.b, i, 0, 100);
        wr.ex.invalidate_rkey = w.mw.rkey;
        qrdma_post_expect(w.p.a.qp, wr, RDMA_WC_SUCCESS);
        qrdma_expect_wc(w.p.b.rcq, i, RDMA_WC_RECV, &wc);
        g_assert_cmphex(wc.wc_flags, ==, RDMA_WC_WITH_INVALIDATE);
        g_assert_cmphex(wc.ex.invalidate_rkey, ==, w.mw.rkey);
        assert_ok(qrdma_dereg_mr(w.mr));
        w.mr = qrdma_reg_mr(w.p.b.pd, 0x30000100, LEN, BINDABLE);
    }
    post(&w, RDMA_WR_RDMA_WRITE, w.mr->iova, 100);
    qrdma_expect(w.p.a.scq, 7, RDMA_WC_REM_ACCESS_ERR);
}

/* Type 2 belongs to the QP that bound it, type 1 to all of its PD. */
static void test_from_another_qp(NetKind kind)
{
    for (RdmaMwType type = RDMA_MW_TYPE_1; type <= RDMA_MW_TYPE_2; type++) {
        Pair w = pair_new(kind, type);
        QRdmaQp *qp[2] = {
            qrdma_create_qp(w.p.a.pd, w.p.a.scq, w.p.a.rcq, RDMA_QPT_RC),
            qrdma_create_qp(w.p.b.pd, w.p.b.scq, w.p.b.rcq, RDMA_QPT_RC),
        };

        qrdma_connect(qp[0], qp[1], NULL);
        bind_mw(&w, 0, LEN, RDMA_ACCESS_REMOTE_WRITE);
        w.p.a.qp = qp[0];
        post(&w, RDMA_WR_RDMA_WRITE, w.mr->iova, 100);
        qrdma_expect(w.p.a.scq, 7, type == RDMA_MW_TYPE_1
                                   ? RDMA_WC_SUCCESS
                                   : RDMA_WC_REM_ACCESS_ERR);
    }
}

/* Freeing a window leaves its region unchanged. */
static void test_dealloc(NetKind kind)
{
    Pair w = pair_new(kind, RDMA_MW_TYPE_1);
    RdmaSge sge = net_sge(&w.p.a, 0, 100);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 5, &sge);

    bind_mw(&w, 0, LEN, RDMA_ACCESS_REMOTE_WRITE);
    assert_status(qrdma_dereg_mr(w.mr), BUSY);
    assert_ok(qrdma_dealloc_mw(&w.mw));
    wr.wr.rdma.remote_addr = w.mr->iova;
    wr.wr.rdma.rkey = w.mr->rkey;
    qrdma_post_expect(w.p.a.qp, wr, RDMA_WC_SUCCESS);
    post(&w, RDMA_WR_RDMA_WRITE, w.mr->iova, 100);
    qrdma_expect(w.p.a.scq, 7, RDMA_WC_REM_ACCESS_ERR);
    assert_ok(qrdma_dereg_mr(w.mr));
}

const NetTest net_mw_tests[] = {
    { "mw/each-operation", test_each_operation },
    { "mw/ends-where-it-ends", test_ends_where_it_ends },
    { "mw/zero-based", test_zero_based },
    { "mw/send-with-invalidate", test_send_with_invalidate },
    { "mw/from-another-qp", test_from_another_qp },
    { "mw/dealloc", test_dealloc },
    {}
};
