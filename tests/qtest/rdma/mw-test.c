/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: memory windows.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define BINDABLE (TEST_ACCESS_ALL | RDMA_ACCESS_MW_BIND)
#define LEN 8192

/* A pair whose b has a region for windows. */
typedef struct Pair {
    TestPair t;
    QRdmaMr *mr;
} Pair;

static Pair pair_new(RdmaQpType type)
{
    Pair p = { .t = test_pair_on(test_device(), type, 64, NULL) };

    p.mr = qrdma_reg_mr(p.t.pd, 0x40000100, LEN, BINDABLE);
    return p;
}

/* Bind on b's side; the window gets the next key. */
static void bind_mw(Pair *p, QRdmaMw *mw, uint64_t offset, uint64_t length,
                    uint32_t access)
{
    RdmaSendWr wr = qrdma_bind_wr(mw, p->mr, offset, length, access);

    qrdma_post_expect_wc(p->t.b, wr, RDMA_WC_BIND_MW);
    mw->rkey = wr.wr.bind.new_rkey;
}

/* a uses a window of b. An access without permission ends the connection. */
static void try_access(Pair *p, RdmaWrOpcode opcode, uint64_t addr,
                       uint32_t len, uint32_t rkey, RdmaWcStatus status)
{
    RdmaSge sge = qrdma_sge(p->t.mr_a, 0, len);
    RdmaSendWr wr = qrdma_wr(opcode, 0xac, &sge);

    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = rkey;
    qrdma_post_expect(p->t.a, wr, status);
    if (status != RDMA_WC_SUCCESS) {
        test_reconnect(&p->t);
    }
}

static void test_driver_of_the_rfc(void)
{
    TestPair t = test_pair_on(test_rfc_device(), RDMA_QPT_RC, 64, NULL);
    QRdmaMw mw;
    RdmaSendWr wr;

    assert_status(qrdma_alloc_mw(t.pd, RDMA_MW_TYPE_1, &mw), ERR);
    assert_status(qrdma_dealloc_mw(&mw), ERR);
    wr = qrdma_bind_wr(&mw, t.mr_a, 0, 16, RDMA_ACCESS_REMOTE_READ);
    qrdma_post_expect(t.a, wr, RDMA_WC_LOC_QP_OP_ERR);
}

static void test_table_fills_and_empties(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    struct virtio_rdma_config c;
    QRdmaMw mw[TEST_MAX_MW], more;
    QRdmaMr *mr[TEST_MAX_MR];

    qrdma_get_config(d, &c);
    g_assert_cmpuint(le32_to_cpu(c.max_mw), ==, TEST_MAX_MW);
    g_assert_true(le64_to_cpu(c.device_cap_flags) &
                  VIRTIO_RDMA_CAP_MEM_WINDOW);
    g_assert_true(le64_to_cpu(c.device_cap_flags) &
                  VIRTIO_RDMA_CAP_MEM_WINDOW_TYPE_2B);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TEST_MAX_MW; i++) {
            assert_ok(qrdma_alloc_mw(pd, 1 + i % 2, &mw[i]));
        }
        assert_status(qrdma_alloc_mw(pd, RDMA_MW_TYPE_1, &more), NOMEM);
        /* windows do not count as regions, and have other numbers */
        for (int i = 0; i < TEST_MAX_MR; i++) {
            mr[i] = qrdma_get_dma_mr(pd, 0);
            for (int j = 0; j < TEST_MAX_MW; j++) {
                g_assert_cmpuint(mr[i]->mrn, !=, mw[j].mwn);
            }
        }
        for (int i = 0; i < TEST_MAX_MW; i++) {
            assert_ok(qrdma_dealloc_mw(&mw[i]));
            assert_status(qrdma_dealloc_mw(&mw[i]), NOENT);
        }
        /* regions do not count as windows */
        assert_status(qrdma_cmd(d, VIRTIO_RDMA_CMD_GET_DMA_MR,
                                &(uint64_t) { cpu_to_le64(pd->pdn) }, 8,
                                &(struct virtio_rdma_mr_rsp) {}, 12), NOMEM);
        for (int i = 0; i < TEST_MAX_MR; i++) {
            assert_ok(qrdma_dereg_mr(mr[i]));
        }
    }
    assert_ok(qrdma_dealloc_pd(pd));
}

static void test_types_and_pds(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaPd gone = *qrdma_alloc_pd(d);
    const uint32_t bad_type[] = { 0, 3, 0x80000001, UINT32_MAX };
    const uint32_t bad_pd[] = { 0, gone.pdn, TEST_MAX_PD + 1, UINT32_MAX };
    QRdmaMw mw;

    assert_ok(qrdma_dealloc_pd(&gone));
    for (int i = 0; i < ARRAY_SIZE(bad_type); i++) {
        assert_status(qrdma_alloc_mw(pd, bad_type[i], &mw), INVAL);
    }
    for (int i = 0; i < ARRAY_SIZE(bad_pd); i++) {
        gone.pdn = bad_pd[i];
        assert_status(qrdma_alloc_mw(&gone, RDMA_MW_TYPE_1, &mw), NOENT);
    }
    assert_ok(qrdma_alloc_mw(pd, RDMA_MW_TYPE_1, &mw));
    assert_status(qrdma_dealloc_pd(pd), BUSY);
    assert_ok(qrdma_dealloc_mw(&mw));
    assert_ok(qrdma_dealloc_pd(pd));
}

/* A number is either of a region or of a window. */
static void test_numbers_of_the_other_kind(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *mr = qrdma_reg_mr(pd, 0x1000, 4096, BINDABLE);
    struct virtio_rdma_rereg_mr_req rereg = {
        .flags = cpu_to_le32(VIRTIO_RDMA_REREG_ACCESS),
    };
    const uint32_t bad[] = { 0, TEST_MAX_MR + TEST_MAX_MW + 1, 0x1000000,
                             0x80000000, UINT32_MAX };
    QRdmaMw mw;
    QRdmaMr as_mr = { .pd = pd };
    QRdmaMw as_mw = { .dev = d, .mwn = mr->mrn };

    assert_ok(qrdma_alloc_mw(pd, RDMA_MW_TYPE_2, &mw));
    as_mr.mrn = mw.mwn;
    rereg.mrn = cpu_to_le32(mw.mwn);
    assert_status(qrdma_dereg_mr(&as_mr), NOENT);
    assert_status(qrdma_map_mr_sg(&as_mr, 0x1000, 100), NOENT);
    assert_status(qrdma_cmd(d, VIRTIO_RDMA_CMD_REREG_MR, &rereg,
                            sizeof(rereg), &(struct virtio_rdma_mr_rsp) {},
                            12), NOENT);
    assert_status(qrdma_dealloc_mw(&as_mw), NOENT);
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        as_mw.mwn = bad[i];
        assert_status(qrdma_dealloc_mw(&as_mw), NOENT);
    }
    assert_ok(qrdma_dealloc_mw(&mw));
    assert_ok(qrdma_dereg_mr(mr));
}

static void test_access_through_a_window(void)
{
    for (RdmaMwType type = RDMA_MW_TYPE_1; type <= RDMA_MW_TYPE_2; type++) {
        Pair p = pair_new(RDMA_QPT_RC);
        uint64_t at = p.mr->iova + 1000;
        QRdmaMw mw;

        assert_ok(qrdma_alloc_mw(p.t.pd, type, &mw));
        /* a window gives no access until it is bound */
        try_access(&p, RDMA_WR_RDMA_WRITE, at, 100, mw.rkey,
                   RDMA_WC_REM_ACCESS_ERR);
        bind_mw(&p, &mw, 1000, 5000, RDMA_ACCESS_REMOTE_WRITE);
        qrdma_mr_fill(p.t.mr_a, 0, 5000, 3);
        try_access(&p, RDMA_WR_RDMA_WRITE, at, 5000, mw.rkey,
                   RDMA_WC_SUCCESS);
        qrdma_mr_check(p.mr, 1000, 5000, 3);
        try_access(&p, RDMA_WR_RDMA_WRITE, at + 4901, 100, mw.rkey,
                   RDMA_WC_REM_ACCESS_ERR);
        try_access(&p, RDMA_WR_RDMA_WRITE, at - 1, 100, mw.rkey,
                   RDMA_WC_REM_ACCESS_ERR);
        try_access(&p, RDMA_WR_RDMA_READ, at, 100, mw.rkey,
                   RDMA_WC_REM_ACCESS_ERR);
        try_access(&p, RDMA_WR_RDMA_WRITE, at, 100, mw.rkey ^ 1,
                   RDMA_WC_REM_ACCESS_ERR);
        try_access(&p, RDMA_WR_RDMA_WRITE, at + 4900, 100, mw.rkey,
                   RDMA_WC_SUCCESS);
    }
}

static void test_type_1_is_bound_again(void)
{
    Pair p = pair_new(RDMA_QPT_RC);
    QRdmaMw mw;
    uint32_t old;

    assert_ok(qrdma_alloc_mw(p.t.pd, RDMA_MW_TYPE_1, &mw));
    bind_mw(&p, &mw, 0, 100, RDMA_ACCESS_REMOTE_WRITE);
    old = mw.rkey;
    bind_mw(&p, &mw, 4000, 100, RDMA_ACCESS_REMOTE_READ);
    try_access(&p, RDMA_WR_RDMA_READ, p.mr->iova + 4000, 100, mw.rkey,
               RDMA_WC_SUCCESS);
    try_access(&p, RDMA_WR_RDMA_WRITE, p.mr->iova, 100, old,
               RDMA_WC_REM_ACCESS_ERR);
    try_access(&p, RDMA_WR_RDMA_WRITE, p.mr->iova, 100, mw.rkey,
               RDMA_WC_REM_ACCESS_ERR);
    /* length 0 unbinds */
    assert_status(qrdma_dereg_mr(p.mr), BUSY);
    bind_mw(&p, &mw, 4000, 0, 0);
    try_access(&p, RDMA_WR_RDMA_READ, p.mr->iova + 4000, 100, mw.rkey,
               RDMA_WC_REM_ACCESS_ERR);
    assert_ok(qrdma_dereg_mr(p.mr));
}

static void test_type_2_is_invalidated_first(void)
{
    Pair p = pair_new(RDMA_QPT_RC);
    RdmaSendWr wr;
    QRdmaMw mw;

    assert_ok(qrdma_alloc_mw(p.t.pd, RDMA_MW_TYPE_2, &mw));
    bind_mw(&p, &mw, 0, 100, RDMA_ACCESS_REMOTE_READ);
    qrdma_post_expect_wc(p.t.b, qrdma_invalidate_wr(0x10c, mw.rkey),
                         RDMA_WC_LOCAL_INV);
    bind_mw(&p, &mw, 50, 100, RDMA_ACCESS_REMOTE_READ);
    try_access(&p, RDMA_WR_RDMA_READ, p.mr->iova + 50, 100, mw.rkey,
               RDMA_WC_SUCCESS);
    /* the window is bound already */
    wr = qrdma_bind_wr(&mw, p.mr, 0, 100, RDMA_ACCESS_REMOTE_READ);
    qrdma_post_expect(p.t.b, wr, RDMA_WC_MW_BIND_ERR);
}

/* A region cannot change while windows are bound to it. */
static void test_bound_region_is_busy(void)
{
    Pair p = pair_new(RDMA_QPT_RC);
    struct virtio_rdma_rereg_mr_req rereg = {
        .mrn = cpu_to_le32(p.mr->mrn),
        .flags = cpu_to_le32(VIRTIO_RDMA_REREG_ACCESS),
    };
    struct virtio_rdma_mr_rsp rsp;
    QRdmaMw mw[2];

    for (int i = 0; i < 2; i++) {
        assert_ok(qrdma_alloc_mw(p.t.pd, 1 + i, &mw[i]));
        bind_mw(&p, &mw[i], 0, 100, RDMA_ACCESS_REMOTE_READ);
    }
    for (int i = 0; i < 2; i++) {
        assert_status(qrdma_dereg_mr(p.mr), BUSY);
        assert_status(qrdma_call(p.t.dev, REREG_MR, &rereg, &rsp), BUSY);
        try_access(&p, RDMA_WR_RDMA_READ, p.mr->iova, 100, mw[i].rkey,
                   RDMA_WC_SUCCESS);
        assert_ok(qrdma_dealloc_mw(&mw[i]));
        try_access(&p, RDMA_WR_RDMA_READ, p.mr->iova, 100, mw[i].rkey,
                   RDMA_WC_REM_ACCESS_ERR);
    }
    assert_ok(qrdma_call(p.t.dev, REREG_MR, &rereg, &rsp));
    assert_ok(qrdma_dereg_mr(p.mr));
}

static void test_bad_binds(void)
{
    Pair p = pair_new(RDMA_QPT_RC);
    QRdmaMr *plain = p.t.mr_b;
    QRdmaMr *dma = qrdma_get_dma_mr(p.t.pd, RDMA_ACCESS_MW_BIND);
    QRdmaMr *read_only = qrdma_reg_mr(p.t.pd, 0x1000, 4096,
                                      RDMA_ACCESS_MW_BIND);
    QRdmaPd *other = qrdma_alloc_pd(p.t.dev);
    QRdmaMr *foreign = qrdma_reg_mr(other, 0x1000, 4096, BINDABLE);
    const uint32_t rd = RDMA_ACCESS_REMOTE_READ;
    QRdmaMw mw, foreign_mw, gone;
    RdmaSendWr bad[15];

    assert_ok(qrdma_alloc_mw(p.t.pd, RDMA_MW_TYPE_1, &gone));
    assert_ok(qrdma_dealloc_mw(&gone));
    assert_ok(qrdma_alloc_mw(p.t.pd, RDMA_MW_TYPE_1, &mw));
    assert_ok(qrdma_alloc_mw(other, RDMA_MW_TYPE_1, &foreign_mw));
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        bad[i] = qrdma_bind_wr(&mw, p.mr, 0, 100, rd);
    }
    bad[0] = qrdma_bind_wr(&mw, plain, 0, 100, rd);
    bad[1] = qrdma_bind_wr(&mw, dma, 0, 100, rd);
    bad[2] = qrdma_bind_wr(&mw, foreign, 0, 100, rd);
    bad[3] = qrdma_bind_wr(&foreign_mw, p.mr, 0, 100, rd);
    bad[4] = qrdma_bind_wr(&gone, p.mr, 0, 100, rd);
    bad[5] = qrdma_bind_wr(&mw, read_only, 0, 100, RDMA_ACCESS_REMOTE_WRITE);
    bad[6].wr.bind.lkey ^= 1;
    bad[7].wr.bind.rkey ^= 1;
    bad[8].wr.bind.new_rkey ^= 0x100;
    bad[9].wr.bind.length = LEN + 1;
    bad[10].wr.bind.length = UINT64_MAX;
    bad[11].wr.bind.addr--;
    bad[12].wr.bind.addr = UINT64_MAX - 50;
    bad[13].wr.bind.rkey = bad[13].wr.bind.new_rkey = UINT32_MAX;
    bad[14].wr.bind.lkey = 0;
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        g_test_message("case %d", i);
        qrdma_post_expect(p.t.b, bad[i], RDMA_WC_MW_BIND_ERR);
        test_reconnect(&p.t);
    }
    bind_mw(&p, &mw, 0, 100, rd);
}

/* UD has no such operation. */
static void test_bind_is_for_connections(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_UD);
    RdmaSendWr wr = { .wr_id = 5, .opcode = RDMA_WR_BIND_MW };

    qrdma_setup_gids(d, 1);
    qrdma_start_ud(qp, QRDMA_QKEY);
    qrdma_post_expect(qp, wr, RDMA_WC_LOC_QP_OP_ERR);
}

const QRdmaTest mw_tests[] = {
    { "driver-of-the-rfc", test_driver_of_the_rfc },
    { "table-fills-and-empties", test_table_fills_and_empties },
    { "types-and-pds", test_types_and_pds },
    { "numbers-of-the-other-kind", test_numbers_of_the_other_kind },
    { "access-through-a-window", test_access_through_a_window },
    { "type-1-is-bound-again", test_type_1_is_bound_again },
    { "type-2-is-invalidated-first", test_type_2_is_invalidated_first },
    { "bound-region-is-busy", test_bound_region_is_busy },
    { "bad-binds", test_bad_binds },
    { "bind-is-for-connections", test_bind_is_for_connections },
    {}
};
