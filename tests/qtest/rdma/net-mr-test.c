/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: fast registration and invalidation.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "net-test.h"

static RdmaSendWr reg_wr(QRdmaMr *mr, uint32_t key, uint32_t access)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_REG_MR, 0x1e6, NULL);

    wr.wr.reg.mrn = mr->mrn;
    wr.wr.reg.key = key;
    wr.wr.reg.access = access;
    return wr;
}

/* MAP_MR_SG and REG_MR with the next key. */
static void fast_register(NetEnd *e, QRdmaMr *mr, uint64_t iova,
                          uint64_t length, uint32_t access)
{
    uint32_t key = (mr->lkey & ~0xffu) | ((mr->lkey + 1) & 0xff);
    RdmaSendWr wr = reg_wr(mr, key, access);

    assert_ok(qrdma_map_mr_sg(mr, iova, length));
    qrdma_post_expect_wc(e->qp, wr, RDMA_WC_REG_MR);
    mr->lkey = key;
    mr->rkey = key;
}

static void invalidate(NetEnd *e, uint32_t key)
{
    qrdma_post_expect_wc(e->qp, qrdma_invalidate_wr(0x10c, key),
                         RDMA_WC_LOCAL_INV);
}

/* Assert that the peer can write to @mr, or cannot, as @works says. */
static void try_remote_write(NetPair *p, QRdmaMr *mr, bool works)
{
    RdmaSge sge = net_sge(&p->a, 0, 3000);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge);

    wr.wr.rdma.remote_addr = mr->iova;
    wr.wr.rdma.rkey = mr->rkey;
    qrdma_mr_fill(p->a.mr, 0, 3000, 0x42);
    qrdma_post_send(p->a.qp, &wr);
    if (works) {
        qrdma_expect_wc(p->a.scq, 1, RDMA_WC_RDMA_WRITE, NULL);
        qrdma_mr_check(mr, 0, 3000, 0x42);
    } else {
        qrdma_expect(p->a.scq, 1, RDMA_WC_REM_ACCESS_ERR);
    }
}

static void test_fast_registration(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_alloc_mr(p.b.pd, NET_ACCESS_ALL, 16);

    for (int i = 0; i < 5; i++) {
        fast_register(&p.b, mr, 0x7000100 + i * 0x10000, 3000,
                      NET_ACCESS_ALL);
        try_remote_write(&p, mr, true);
        invalidate(&p.b, mr->rkey);
    }
    try_remote_write(&p, mr, false);
}

static void test_fast_mr_as_local_memory(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_alloc_mr(p.a.pd, NET_ACCESS_ALL, 16);
    RdmaSge sge;
    RdmaSendWr wr;

    /* registration, use and invalidation in one go: the queue is ordered */
    assert_ok(qrdma_map_mr_sg(mr, 0x7000ffd, 9000));
    wr = reg_wr(mr, mr->lkey, RDMA_ACCESS_LOCAL_WRITE);
    qrdma_mr_fill(mr, 0, 9000, 7);
    qrdma_post_send(p.a.qp, &wr);
    sge = qrdma_sge(mr, 0, 9000);
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &sge, p.b.mr, 11);
    qrdma_post_send(p.a.qp, &wr);
    wr = qrdma_invalidate_wr(3, mr->lkey);
    wr.send_flags |= RDMA_SEND_FENCE;
    qrdma_expect_wc(p.a.scq, 0x1e6, RDMA_WC_REG_MR, NULL);
    qrdma_expect_wc(p.a.scq, 2, RDMA_WC_RDMA_WRITE, NULL);
    qrdma_mr_check(p.b.mr, 11, 9000, 7);
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_LOCAL_INV);
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 4, &sge, p.b.mr, 11);
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_LOC_PROT_ERR);
}

/* The mapping waits for REG_MR, and REG_MR for the end of the old one. */
static void test_a_valid_mr_is_mapped_but_not_registered(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_alloc_mr(p.b.pd, NET_ACCESS_ALL, 16);
    QRdmaMr old;
    RdmaSendWr wr;

    fast_register(&p.b, mr, 0x7000100, 3000, NET_ACCESS_ALL);
    old = *mr;
    assert_ok(qrdma_map_mr_sg(mr, 0x9000200, 3000));
    try_remote_write(&p, &old, true);
    invalidate(&p.b, mr->rkey);
    wr = reg_wr(mr, mr->lkey, NET_ACCESS_ALL);
    qrdma_post_expect(p.b.qp, wr, RDMA_WC_SUCCESS);
    try_remote_write(&p, mr, true);

    assert_ok(qrdma_map_mr_sg(mr, 0x7000100, 3000));
    qrdma_post_expect(p.b.qp, wr, RDMA_WC_MW_BIND_ERR);
}

static void test_reg_mr_rules(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    NetPair other = p;
    QRdmaMr *mr = qrdma_alloc_mr(p.b.pd, NET_ACCESS_ALL, 16);
    QRdmaMr *foreign = qrdma_alloc_mr(qrdma_alloc_pd(p.b.dev),
                                      NET_ACCESS_ALL, 16);
    struct {
        RdmaSendWr wr;
        const char *what;
    } bad[] = {
        { reg_wr(mr, mr->lkey, NET_ACCESS_ALL), "without MAP_MR_SG" },
        { reg_wr(p.b.mr, p.b.mr->lkey, NET_ACCESS_ALL), "a user region" },
        { reg_wr(foreign, foreign->lkey, NET_ACCESS_ALL), "of another PD" },
        { reg_wr(mr, mr->lkey ^ 0x100, NET_ACCESS_ALL), "upper key bits" },
        { reg_wr(mr, mr->lkey, RDMA_ACCESS_REMOTE_WRITE),
          "remote without local write" },
        { reg_wr(&(QRdmaMr) { .mrn = 0 }, 0, 0), "mrn 0" },
        { reg_wr(&(QRdmaMr) { .mrn = 0xffffff }, 0xffffff00, 0), "no mrn" },
        { reg_wr(&(QRdmaMr) { .mrn = UINT32_MAX }, UINT32_MAX, 0), "big" },
    };

    assert_ok(qrdma_map_mr_sg(foreign, 0x1000, 100));
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        QRdmaQp *qp = qrdma_create_qp(p.b.pd, p.b.scq, p.b.rcq, RDMA_QPT_RC);

        g_test_message("%s", bad[i].what);
        if (i == 3) {
            assert_ok(qrdma_map_mr_sg(mr, 0x1000, 100));
        }
        qrdma_connect(qp, qp, NULL);
        qrdma_post_send(qp, &bad[i].wr);
        g_assert_cmpint(qrdma_expect_error(p.b.scq, 0x1e6), !=,
                        RDMA_WC_WR_FLUSH_ERR);
        assert_ok(qrdma_destroy_qp(qp));
    }
    /* the region works in spite of these requests */
    other.b.qp = qrdma_create_loop(p.b.pd, p.b.scq, p.b.rcq);
    fast_register(&other.b, mr, 0x7000100, 3000, NET_ACCESS_ALL);
    try_remote_write(&p, mr, true);
}

static void test_send_with_invalidate(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_alloc_mr(p.b.pd, NET_ACCESS_ALL, 16);
    RdmaSge sge = net_sge(&p.a, 0, 2000);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND_WITH_INV, 5, &sge);
    RdmaWc wc;

    fast_register(&p.b, mr, 0x7000100, 3000, NET_ACCESS_ALL);
    try_remote_write(&p, mr, true);
    net_post_recv(&p.b, 6, 0, 2000);
    wr.ex.invalidate_rkey = mr->rkey;
    qrdma_post_send(p.a.qp, &wr);
    qrdma_expect_wc(p.b.rcq, 6, RDMA_WC_RECV, &wc);
    g_assert_cmphex(wc.wc_flags, ==, RDMA_WC_WITH_INVALIDATE);
    g_assert_cmphex(wc.ex.invalidate_rkey, ==, mr->rkey);
    qrdma_expect_wc(p.a.scq, 5, RDMA_WC_SEND, &wc);
    try_remote_write(&p, mr, false);
}

static void test_invalidate_of_a_bad_key_is_refused(NetKind kind)
{
    for (int i = 0; i < 4; i++) {
        NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
        const uint32_t keys[] = {
            0, UINT32_MAX, p.b.mr->rkey ^ 1, 0x00777700,
        };
        RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND_WITH_INV, 5, NULL);

        net_post_recv(&p.b, 6, 0, 2000);
        wr.ex.invalidate_rkey = keys[i];
        qrdma_post_send(p.a.qp, &wr);
        qrdma_expect_error(p.a.scq, 5);
    }
}

static void test_read_with_invalidate(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_alloc_mr(p.a.pd, NET_ACCESS_ALL, 16);
    RdmaSge sge;
    RdmaSendWr wr;

    fast_register(&p.a, mr, 0x7000100, 3000, NET_ACCESS_ALL);
    sge = qrdma_sge(mr, 0, 3000);
    qrdma_mr_fill(p.b.mr, 0, 3000, 0x19);
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_READ_WITH_INV, 8, &sge, p.b.mr, 0);
    wr.ex.invalidate_rkey = mr->lkey;
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_RDMA_READ);
    qrdma_mr_check(mr, 0, 3000, 0x19);
    /* the key is dead now */
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_READ, 9, &sge, p.b.mr, 0);
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_LOC_PROT_ERR);
}

static void test_deregistered_key_is_dead(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_reg_mr(p.b.pd, 0x5000, 3000, NET_ACCESS_ALL);

    try_remote_write(&p, mr, true);
    assert_ok(qrdma_dereg_mr(mr));
    try_remote_write(&p, mr, false);
}

/* The driver may reuse the table after the command is answered. */
static void test_page_table_is_read_once(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_reg_mr(p.b.pd, 0x5000, 20000, NET_ACCESS_ALL);

    qtest_memset(p.b.dev->host->qts, mr->table, 0xff, mr->npages * 8);
    try_remote_write(&p, mr, true);
}

/* A peer that accesses a page that is not RAM reaches no registers. */
static void test_page_that_is_not_ram(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    const uint64_t pages[] = { 0xfee00000, 1ull << 40, 0xfffffffffffff000 };
    uint64_t *page, table;
    struct virtio_rdma_mr_rsp rsp;
    struct virtio_rdma_reg_user_mr_req req = {
        .access = cpu_to_le32(NET_ACCESS_ALL),
        .length = cpu_to_le64(4096),
        .npages = cpu_to_le32(1),
    };
    uint8_t status;

    for (int i = 0; i < ARRAY_SIZE(pages); i++) {
        uint64_t le = cpu_to_le64(pages[i]);
        RdmaSge sge;
        RdmaSendWr wr;

        p = net_pair(kind, RDMA_QPT_RC, NULL);
        qrdma_alloc_pages(p.b.dev, 1, &page, &table);
        qrdma_write(p.b.dev, table, &le, 8);
        req.pdn = cpu_to_le32(p.b.pd->pdn);
        req.pages = cpu_to_le64(table);
        status = qrdma_reg_user_mr(p.b.dev, &req, &rsp);
        if (status != VIRTIO_RDMA_S_OK) {
            continue;
        }
        sge = net_sge(&p.a, 0, 64);
        wr = qrdma_wr(i % 2 ? RDMA_WR_RDMA_READ : RDMA_WR_RDMA_WRITE, 1, &sge);
        wr.wr.rdma.rkey = le32_to_cpu(rsp.rkey);
        qrdma_post_send(p.a.qp, &wr);
        qrdma_expect_error(p.a.scq, 1);
    }
}

const NetTest net_mr_tests[] = {
    { "mr/fast-registration", test_fast_registration },
    { "mr/fast-mr-as-local-memory", test_fast_mr_as_local_memory },
    { "mr/a-valid-mr-is-mapped-but-not-registered",
      test_a_valid_mr_is_mapped_but_not_registered },
    { "mr/reg-mr-rules", test_reg_mr_rules },
    { "mr/send-with-invalidate", test_send_with_invalidate },
    { "mr/invalidate-of-a-bad-key-is-refused",
      test_invalidate_of_a_bad_key_is_refused },
    { "mr/read-with-invalidate", test_read_with_invalidate },
    { "mr/deregistered-key-is-dead", test_deregistered_key_is_dead },
    { "mr/page-table-is-read-once", test_page_table_is_read_once },
    { "mr/page-that-is-not-ram", test_page_that_is_not_ram },
    {}
};
