/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: requests that a peer refuses, and the consequences.
 * More of these tests are in iface-error-test.c.
 */
#include "qemu/osdep.h"
#include "net-test.h"

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
    IfacePair pair = net_iface_pair(p);

    qrdma_post_send(p->a.qp, wr);
    qrdma_expect(p->a.scq, wr->wr_id, status);
    iface_expect_dead(&pair.a);
}

static void test_rights_of_the_queue_pair(NetKind kind)
{
    for (int i = 0; i < ARRAY_SIZE(net_access_cases); i++) {
        const NetAccessCase *c = &net_access_cases[i];
        QRdmaPath path = { .access = RDMA_ACCESS_REMOTE & ~c->needs };
        NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
        IfacePair pair = net_iface_pair(&p);
        RdmaSge sge = net_sge(&p.a, 0, 8);
        RdmaSendWr wr = iface_wr(c->opcode, 0xacc, &sge,
                                 &pair.b.mr, 0);

        guard_memory(&p);
        /* IBTA 9.7.4.1.4 leaves the choice */
        expect_refused(&p, &wr, RDMA_WC_REM_INV_REQ_ERR);
        check_memory(&p);
    }
}

static void test_dma_mr_is_not_for_peers(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_get_dma_mr(p.b.pd, RDMA_ACCESS_LOCAL_WRITE);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 0xacc, &sge);

    wr.wr.rdma.remote_addr = p.b.mr->pages[0];
    wr.wr.rdma.rkey = mr->lkey;
    guard_memory(&p);
    expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
    check_memory(&p);
}

/* After RESET the same two QPs work again. */
static void test_recovery_after_an_error(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    IfacePair pair = net_iface_pair(&p);
    RdmaSge sge = net_sge(&p.a, 0, 5000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0);

    for (int i = 0; i < 3; i++) {
        QRdmaPath path = { .psn_a = 1000 + i, .psn_b = 77 };

        wr.wr.rdma.rkey ^= 1;
        expect_refused(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
        iface_expect_dead(&pair.b);
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
    { "error/rights-of-the-queue-pair", test_rights_of_the_queue_pair },
    { "error/dma-mr-is-not-for-peers", test_dma_mr_is_not_for_peers },
    { "error/recovery", test_recovery_after_an_error },
    { "error/other-queue-pairs-are-not-affected",
      test_other_queue_pairs_are_not_affected },
    { "error/broken-device-takes-no-frames",
      test_broken_device_takes_no_frames },
    {}
};
