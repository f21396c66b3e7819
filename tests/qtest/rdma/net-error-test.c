/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: requests that a peer refuses, and the consequences.
 */
#include "qemu/osdep.h"
#include "net-test.h"

/* Expect that the QP of @e is in ERR, and that posts are flushed. */
static void expect_dead(NetEnd *e)
{
    qrdma_wait_until(e->dev, qrdma_qp_state(e->qp) == RDMA_QPS_ERR);
    qrdma_post_send(e->qp, &(RdmaSendWr) {
        .wr_id = 0xf1, .opcode = RDMA_WR_SEND,
    });
    qrdma_expect(e->scq, 0xf1, RDMA_WC_WR_FLUSH_ERR);
    qrdma_recv(e->qp, 0xf2, NULL);
    qrdma_expect(e->rcq, 0xf2, RDMA_WC_WR_FLUSH_ERR);
}

/* The memory of b that a refused operation must not have touched. */
static void guard_memory(NetPair *p)
{
    qrdma_mr_fill(p->b.mr, 0, NET_MR_SIZE, 0x77);
}

static void check_memory(NetPair *p)
{
    qrdma_mr_check(p->b.mr, 0, NET_MR_SIZE, 0x77);
}

static void expect_refused(NetPair *p, const RdmaSendWr *wr,
                           RdmaWcStatus status)
{
    qrdma_post_send(p->a.qp, wr);
    qrdma_expect(p->a.scq, wr->wr_id, status);
    expect_dead(&p->a);
}

static RdmaSendWr access_wr(NetPair *p, const NetAccessCase *c, RdmaSge *sge,
                            uint64_t addr, uint32_t rkey)
{
    RdmaSendWr wr;

    *sge = net_sge(&p->a, 0, 8);
    wr = qrdma_wr(c->opcode, 0xacc, sge);
    if (c->needs == RDMA_ACCESS_REMOTE_ATOMIC) {
        wr.wr.atomic.remote_addr = addr;
        wr.wr.atomic.rkey = rkey;
    } else {
        wr.wr.rdma.remote_addr = addr;
        wr.wr.rdma.rkey = rkey;
    }
    return wr;
}

static void test_bad_remote_keys(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    const uint32_t spoil[] = { 1, 0x100, 0x80000000, 0 };

    for (int i = 0; i < ARRAY_SIZE(net_access_cases); i++) {
        const NetAccessCase *c = &net_access_cases[i];
        uint32_t rkey;
        RdmaSge sge;
        RdmaSendWr wr;

        p = net_pair(kind, RDMA_QPT_RC, NULL);
        rkey = spoil[i] ? p.b.mr->rkey ^ spoil[i] : 0;
        guard_memory(&p);
        wr = access_wr(&p, c, &sge, p.b.mr->iova, rkey);
        expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
        expect_dead(&p.b);
        check_memory(&p);
    }
}

static void test_remote_range(NetKind kind)
{
    const struct {
        int64_t offset;
        uint32_t length;
    } bad[] = {
        { -1, 8 }, { -8, 8 }, { NET_MR_SIZE - 7, 8 }, { NET_MR_SIZE, 1 },
        { NET_MR_SIZE - 4096, 8192 }, { -4096, 8192 },
        /* wraps */
        { -(int64_t)NET_IOVA_1 - 4, 8 },
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        for (int op = 0; op < 2; op++) {
            NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
            RdmaSge sge = net_sge(&p.a, 0, bad[i].length);
            RdmaSendWr wr = qrdma_rdma_wr(op ? RDMA_WR_RDMA_READ :
                                               RDMA_WR_RDMA_WRITE,
                                          1, &sge, p.b.mr, bad[i].offset);

            guard_memory(&p);
            expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
            check_memory(&p);
        }
    }
}

static void test_rights_of_the_region(NetKind kind)
{
    for (int i = 0; i < ARRAY_SIZE(net_access_cases); i++) {
        const NetAccessCase *c = &net_access_cases[i];
        NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
        QRdmaMr *mr = qrdma_reg_mr(p.b.pd, 0x8000, 64,
                                   NET_ACCESS_ALL & ~c->needs);
        RdmaSge sge;
        RdmaSendWr wr = access_wr(&p, c, &sge, mr->iova, mr->rkey);

        expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
    }
}

static void test_rights_of_the_queue_pair(NetKind kind)
{
    for (int i = 0; i < ARRAY_SIZE(net_access_cases); i++) {
        const NetAccessCase *c = &net_access_cases[i];
        QRdmaPath path = { .access = RDMA_ACCESS_REMOTE & ~c->needs };
        NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
        RdmaSge sge;
        RdmaSendWr wr = access_wr(&p, c, &sge, p.b.mr->iova, p.b.mr->rkey);

        guard_memory(&p);
        /* IBTA 9.7.4.1.4 leaves the choice */
        expect_refused(&p, &wr, RDMA_WC_REM_INV_REQ_ERR);
        check_memory(&p);
    }
}

static void test_region_of_another_pd(NetKind kind)
{
    for (int i = 0; i < ARRAY_SIZE(net_access_cases); i++) {
        NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
        QRdmaMr *mr = qrdma_reg_mr(qrdma_alloc_pd(p.b.dev), 0x8000, 64,
                                   NET_ACCESS_ALL);
        RdmaSge sge;
        RdmaSendWr wr = access_wr(&p, &net_access_cases[i], &sge, mr->iova,
                                  mr->rkey);

        expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
    }
}

static void test_dma_mr_is_not_for_peers(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_get_dma_mr(p.b.pd, RDMA_ACCESS_LOCAL_WRITE);
    RdmaSge sge;
    RdmaSendWr wr = access_wr(&p, &net_access_cases[0], &sge, p.b.mr->pages[0],
                              mr->lkey);

    guard_memory(&p);
    expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
    check_memory(&p);
}

static void test_unaligned_atomics(NetKind kind)
{
    for (int off = 1; off < 8; off++) {
        NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
        RdmaSge sge;
        RdmaSendWr wr = access_wr(&p, &net_access_cases[2 + off % 2], &sge,
                                  p.b.mr->iova + off, p.b.mr->rkey);

        guard_memory(&p);
        expect_refused(&p, &wr, RDMA_WC_REM_INV_REQ_ERR);
        check_memory(&p);
    }
}

static void test_receive_buffer_too_small(NetKind kind)
{
    const uint32_t lengths[] = { 1, 1000, 1025, 5000 };

    for (int i = 0; i < ARRAY_SIZE(lengths); i++) {
        NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
        RdmaSge sge = net_sge(&p.a, 0, lengths[i]);

        net_post_recv(&p.b, 2, 0, lengths[i] - 1);
        qrdma_post(p.a.qp, qrdma_wr(RDMA_WR_SEND, 1, &sge));
        qrdma_expect(p.b.rcq, 2, RDMA_WC_LOC_LEN_ERR);
        qrdma_expect(p.a.scq, 1, RDMA_WC_REM_INV_REQ_ERR);
        expect_dead(&p.a);
        expect_dead(&p.b);
    }
}

static void test_flush_is_in_order_and_complete(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr bad = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0);
    RdmaSendWr good = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 0, &sge, p.b.mr, 0);

    bad.wr.rdma.rkey ^= 1;
    good.send_flags = 0;
    for (int i = 0; i < 6; i++) {
        net_post_recv(&p.a, 50 + i, 0, 8);
        net_post_recv(&p.b, 60 + i, 0, 8);
    }
    good.wr_id = 0;
    qrdma_post_send(p.a.qp, &good);
    qrdma_post_send(p.a.qp, &bad);
    for (int i = 2; i < 10; i++) {
        good.wr_id = i;
        qrdma_post_send(p.a.qp, &good);
    }
    qrdma_expect(p.a.scq, 1, RDMA_WC_REM_ACCESS_ERR);
    for (int i = 2; i < 10; i++) {
        qrdma_expect(p.a.scq, i, RDMA_WC_WR_FLUSH_ERR);
    }
    for (int i = 0; i < 6; i++) {
        qrdma_expect(p.a.rcq, 50 + i, RDMA_WC_WR_FLUSH_ERR);
        qrdma_expect(p.b.rcq, 60 + i, RDMA_WC_WR_FLUSH_ERR);
    }
    qrdma_reap(&p.a.qp->sq);
    qrdma_reap(&p.a.qp->rq);
    g_assert_cmpuint(p.a.qp->sq.retired, ==, 10);
    g_assert_cmpuint(p.a.qp->rq.retired, ==, 6);
}

/* After RESET the same two QPs work again. */
static void test_recovery_after_an_error(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 5000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0);

    for (int i = 0; i < 3; i++) {
        QRdmaPath path = { .psn_a = 1000 + i, .psn_b = 77 };

        wr.wr.rdma.rkey ^= 1;
        expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
        expect_dead(&p.b);
        wr.wr.rdma.rkey ^= 1;
        qrdma_reconnect(p.a.qp, p.b.qp, &path);
        qrdma_mr_fill(p.a.mr, 0, 5000, i);
        qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_RDMA_WRITE);
        qrdma_mr_check(p.b.mr, 0, 5000, i);
    }
}

static void test_other_queue_pairs_are_not_affected(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaQp *a2 = qrdma_create_qp(p.a.pd, p.a.scq, p.a.rcq, RDMA_QPT_RC);
    QRdmaQp *b2 = qrdma_create_qp(p.b.pd, p.b.scq, p.b.rcq, RDMA_QPT_RC);
    RdmaSge sge = net_sge(&p.a, 0, 5000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0);

    qrdma_connect(a2, b2, NULL);
    wr.wr.rdma.rkey ^= 1;
    expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
    wr.wr.rdma.rkey ^= 1;
    qrdma_mr_fill(p.a.mr, 0, 5000, 0x5a);
    qrdma_post_expect_wc(a2, wr, RDMA_WC_RDMA_WRITE);
    qrdma_mr_check(p.b.mr, 0, 5000, 0x5a);
}

/* Peers cannot reach memory that the driver has freed meanwhile. */
static void test_broken_device_takes_no_frames(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaRing *ring = qrdma_ring(p.b.dev, VIRTIO_RDMA_CTRL_VQ);
    uint16_t size = ring->pci.vq.size;
    RdmaSge sge = net_sge(&p.a, 0, 1000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0);

    guard_memory(&p);
    qrdma_ring_set_avail(ring, ring->avail_idx % size, size);
    qrdma_ring_set_avail_idx(ring, ring->avail_idx + 1);
    qrdma_ring_kick(ring);
    qrdma_wait_until(p.b.dev, qrdma_needs_reset(p.b.dev));
    qrdma_settle(p.b.dev);
    qrdma_post_send(p.a.qp, &wr);
    qrdma_settle(p.a.dev);
    qrdma_settle(p.b.dev);
    if (!qrdma_ibdev()) {
        /* A QP of the host is in ERR, so the peer may have given up */
        qrdma_expect_none(p.a.scq);
    }
    check_memory(&p);

    /* A reset ends the error. */
    p = net_pair(kind, RDMA_QPT_RC, NULL);
    sge = net_sge(&p.a, 0, 1000);
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &sge, p.b.mr, 0);
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_SUCCESS);
}

const NetTest net_error_tests[] = {
    { "error/bad-remote-keys", test_bad_remote_keys },
    { "error/remote-range", test_remote_range },
    { "error/rights-of-the-region", test_rights_of_the_region },
    { "error/rights-of-the-queue-pair", test_rights_of_the_queue_pair },
    { "error/region-of-another-pd", test_region_of_another_pd },
    { "error/dma-mr-is-not-for-peers", test_dma_mr_is_not_for_peers },
    { "error/unaligned-atomics", test_unaligned_atomics },
    { "error/receive-buffer-too-small", test_receive_buffer_too_small },
    { "error/flush-is-in-order-and-complete",
      test_flush_is_in_order_and_complete },
    { "error/recovery", test_recovery_after_an_error },
    { "error/other-queue-pairs-are-not-affected",
      test_other_queue_pairs_are_not_affected },
    { "error/broken-device-takes-no-frames",
      test_broken_device_takes_no_frames },
    {}
};
