/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: FLUSH and ATOMIC WRITE.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "net-test.h"

#define F_FLUSH QRDMA_F(VIRTIO_RDMA_F_FLUSH)
#define F_ATOMIC_WRITE QRDMA_F(VIRTIO_RDMA_F_ATOMIC_WRITE)
#define BOTH (F_FLUSH | F_ATOMIC_WRITE)
/* An offset whose address is a multiple of 8 on both sides */
#define AT 4096

/* A pair whose drivers took @features, and whose QPs grant all they can. */
static NetPair pair_new(NetKind kind, uint64_t features)
{
    QRdmaPath path = {
        .access = RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH_GLOBAL,
    };
    NetPair p = net_pair_new_with(net_shared(kind), RDMA_QPT_RC, features);

    qrdma_connect(p.a.qp, p.b.qp, &path);
    return p;
}

static RdmaSendWr flush_wr(NetPair *p, uint32_t type, uint32_t level)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_FLUSH, 5, NULL);

    wr.wr.flush.remote_addr = p->b.mr->iova + 7;
    wr.wr.flush.rkey = p->b.mr->rkey;
    wr.wr.flush.length = 5000;
    wr.wr.flush.type = type;
    wr.wr.flush.level = level;
    return wr;
}

static RdmaSendWr atomic_write_wr(NetPair *p, const uint8_t *value,
                                  uint32_t len)
{
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_ATOMIC_WRITE, 6, NULL, p->b.mr, AT);

    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = value;
    wr.inline_len = len;
    return wr;
}

static void check_value(NetPair *p, const char *value)
{
    uint8_t seen[8];

    qrdma_mr_read(p->b.mr, AT, seen, 8);
    g_assert_cmpmem(seen, 8, value, 8);
}

static void test_flush(NetKind kind)
{
    NetPair p = pair_new(kind, F_FLUSH);
    RdmaWc wc;

    for (uint32_t level = RDMA_FLUSH_RANGE; level <= RDMA_FLUSH_MR; level++) {
        RdmaSge sge = net_sge(&p.a, 0, 60000);
        RdmaSendWr write = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 4, &sge, p.b.mr,
                                         7);
        RdmaSendWr wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, level);

        write.send_flags = 0;
        qrdma_mr_fill(p.a.mr, 0, 60000, level);
        qrdma_post_send(p.a.qp, &write);
        qrdma_post_send(p.a.qp, &wr);
        qrdma_expect_wc(p.a.scq, 5, RDMA_WC_FLUSH, &wc);
        g_assert_cmpuint(wc.qp_num, ==, p.a.qp->qpn);
        qrdma_mr_check(p.b.mr, 7, 60000, level);
    }
    qrdma_expect_none(p.b.rcq);
}

static void test_atomic_write(NetKind kind)
{
    NetPair p = pair_new(kind, F_ATOMIC_WRITE);
    RdmaSge sge = net_sge(&p.a, 3, 8);
    RdmaSendWr wr = atomic_write_wr(&p, (const uint8_t *)"in place", 8);

    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_ATOMIC_WRITE);
    check_value(&p, "in place");

    qrdma_mr_write(p.a.mr, 3, "gathered", 8);
    wr = qrdma_rdma_wr(RDMA_WR_ATOMIC_WRITE, 6, &sge, p.b.mr, AT);
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_ATOMIC_WRITE);
    check_value(&p, "gathered");
    qrdma_expect_none(p.b.rcq);
}

/* 8 bytes fit inline into any QP. */
static void test_atomic_write_without_inline_room(NetKind kind)
{
    NetPair p = net_pair_new_with(net_shared(kind), RDMA_QPT_RC,
                                  F_ATOMIC_WRITE);
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
                 .max_recv_sge = 1 },
    };
    RdmaSendWr wr = atomic_write_wr(&p, (const uint8_t *)"no room.", 8);

    p.a.qp = qrdma_create_qp_attr(p.a.pd, p.a.scq, p.a.rcq, &init);
    qrdma_connect(p.a.qp, p.b.qp, NULL);
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_SUCCESS);
    check_value(&p, "no room.");
    wr.opcode = RDMA_WR_RDMA_WRITE;
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_LOC_QP_OP_ERR);
}

/* A driver that did not negotiate the feature has no such opcodes, */
static void test_not_negotiated_here(NetKind kind)
{
    NetPair p = pair_new(kind, F_ATOMIC_WRITE);
    RdmaSendWr wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_MR);

    qrdma_post_expect(p.a.qp, wr, RDMA_WC_LOC_QP_OP_ERR);

    p = pair_new(kind, F_FLUSH);
    wr = atomic_write_wr(&p, (const uint8_t *)"unheard!", 8);
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_LOC_QP_OP_ERR);
}

/* and refuses requests with them. */
static void test_not_negotiated_there(NetKind kind)
{
    Net *net = net_shared(kind);
    NetPair p = pair_new(kind, BOTH);
    RdmaSendWr wr = atomic_write_wr(&p, (const uint8_t *)"unheard!", 8);
    QRdmaPath path = {
        .access = RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH_GLOBAL,
    };

    for (int i = 0; i < 2; i++) {
        p = pair_new(kind, BOTH);
        /* Side b starts once more, without them */
        qrdma_start(net->dev[1], 0, 0);
        qrdma_setup_gids(net->dev[1], 2);
        p.b = net_end_new(net->dev[1], RDMA_QPT_RC, NET_IOVA_1,
                          NET_ACCESS_ALL);
        p.a.qp = qrdma_create_qp(p.a.pd, p.a.scq, p.a.rcq, RDMA_QPT_RC);
        qrdma_connect(p.a.qp, p.b.qp, &path);
        wr = i ? flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_MR)
               : atomic_write_wr(&p, (const uint8_t *)"unheard!", 8);
        qrdma_post_expect(p.a.qp, wr, RDMA_WC_REM_INV_REQ_ERR);
    }
}

/*
 * The device offers no persistence: neither persistent regions nor such a
 * FLUSH.
 */
static void test_persistence_is_refused(NetKind kind)
{
    NetPair p = pair_new(kind, BOTH);
    RdmaSendWr wr = flush_wr(&p, RDMA_FLUSH_GLOBAL | RDMA_FLUSH_PERSISTENT,
                             RDMA_FLUSH_MR);

    qrdma_post_expect(p.a.qp, wr, RDMA_WC_REM_ACCESS_ERR);
}

static void test_rights(NetKind kind)
{
    NetPair p = pair_new(kind, BOTH);
    RdmaSendWr wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE);
    QRdmaMr *only = qrdma_reg_mr(p.b.pd, 0x30000100, 20000,
                                 RDMA_ACCESS_FLUSH_GLOBAL);

    /* A region that may be flushed and nothing else has a key */
    g_assert_cmphex(only->rkey, !=, 0);
    wr.wr.flush.rkey = only->rkey;
    wr.wr.flush.remote_addr = only->iova;
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_SUCCESS);
    wr.wr.flush.length = 20001;
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_REM_ACCESS_ERR);

    p = pair_new(kind, BOTH);
    only = qrdma_reg_mr(p.b.pd, 0x30000100, 20000, NET_ACCESS_ALL);
    wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_MR);
    wr.wr.flush.rkey = only->rkey;
    qrdma_post_expect(p.a.qp, wr, RDMA_WC_REM_ACCESS_ERR);
}

static void test_bad_requests(NetKind kind)
{
    for (int i = 0; i < 5; i++) {
        NetPair p = pair_new(kind, BOTH);
        RdmaSendWr wr = i < 2 ?
            flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE) :
            atomic_write_wr(&p, (const uint8_t *)"sixteen bytes!!!", 8);
        RdmaWcStatus want = RDMA_WC_LOC_QP_OP_ERR;

        switch (i) {
        case 0:
            wr.wr.flush.type = 0;
            break;
        case 1:
            wr.wr.flush.level = 2;
            break;
        case 2:
            wr.inline_len = 16;
            break;
        case 3:
            wr.inline_len = 4;
            want = RDMA_WC_LOC_LEN_ERR;
            break;
        case 4:
            wr.wr.rdma.remote_addr += 4;
            want = RDMA_WC_REM_INV_REQ_ERR;
            break;
        }
        qrdma_post_expect(p.a.qp, wr, want);
    }
}

const NetTest net_placement_tests[] = {
    { "placement/flush", test_flush },
    { "placement/atomic-write", test_atomic_write },
    { "placement/atomic-write-without-inline-room",
      test_atomic_write_without_inline_room },
    { "placement/not-negotiated-here", test_not_negotiated_here },
    { "placement/not-negotiated-there", test_not_negotiated_there },
    { "placement/persistence-is-refused", test_persistence_is_refused },
    { "placement/rights", test_rights },
    { "placement/bad-requests", test_bad_requests },
    {}
};
