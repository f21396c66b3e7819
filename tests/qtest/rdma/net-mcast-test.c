/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: multicast groups.
 */
#include "qemu/osdep.h"
#include "net-test.h"

#define GRH_LEN 40
#define LEN 700

static const uint8_t groups[2][RDMA_GID_LEN] = {
    { 0xff, 0x0e, [14] = 0x12, 0x34 },
    { [10] = 0xff, 0xff, 239, 1, 2, 3 },
};

static void address(RdmaSendWr *wr, NetEnd *from, int ip, uint32_t qkey)
{
    wr->wr.ud.remote_qpn = RDMA_QPN_MCAST;
    wr->wr.ud.remote_qkey = qkey;
    wr->wr.ud.av = qrdma_av(from->dev, ip);
    memcpy(wr->wr.ud.av.dgid, groups[ip], RDMA_GID_LEN);
    /* RFC 2464, 7 and RFC 1112, 6.4 */
    memcpy(wr->wr.ud.av.dmac,
           ip ? (uint8_t[]) { 0x01, 0x00, 0x5e, 1, 2, 3 }
              : (uint8_t[]) { 0x33, 0x33, 0, 0, 0x12, 0x34 }, RDMA_MAC_LEN);
}

static void send_to(NetEnd *from, int ip, uint64_t wr_id, uint32_t qkey)
{
    RdmaSge sge = net_sge(from, 0, LEN);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, wr_id, &sge);

    address(&wr, from, ip, qkey);
    qrdma_mr_fill(from->mr, 0, LEN, wr_id);
    qrdma_post_expect(from->qp, wr, RDMA_WC_SUCCESS);
}

static void expect_at(NetEnd *to, NetEnd *from, uint64_t wr_id, uint8_t seed)
{
    RdmaWc wc;

    qrdma_expect_wc(to->rcq, wr_id, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + LEN);
    g_assert_cmpuint(wc.src_qp, ==, from->qp->wire_qpn);
    qrdma_mr_check(to->mr, 8192 + GRH_LEN, LEN, seed);
}

static void test_reaches_attached_qps(NetKind kind)
{
    for (int ip = 0; ip < 2; ip++) {
        NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);

        net_post_recv(&p.b, 1, 8192, GRH_LEN + LEN);
        send_to(&p.a, ip, 10, QRDMA_QKEY);
        qrdma_expect_none(p.b.rcq);
        assert_ok(qrdma_attach_mcast(p.b.qp, groups[ip]));
        /*
         * the QP must not get messages of the other group, or with another
         * Q_Key
         */
        send_to(&p.a, !ip, 11, QRDMA_QKEY);
        send_to(&p.a, ip, 12, QRDMA_QKEY + 1);
        qrdma_expect_none(p.b.rcq);
        send_to(&p.a, ip, 13, QRDMA_QKEY);
        expect_at(&p.b, &p.a, 1, 13);
        assert_ok(qrdma_detach_mcast(p.b.qp, groups[ip]));
        net_post_recv(&p.b, 2, 8192, GRH_LEN + LEN);
        send_to(&p.a, ip, 14, QRDMA_QKEY);
        qrdma_expect_none(p.b.rcq);
    }
}

/* Copies go to several QPs of each side; the sender's own is one of them. */
static void test_reaches_all_qps_of_both_sides(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    NetEnd end[3] = { p.a, p.b, p.b };

    end[2].rcq = qrdma_create_cq(p.b.dev, 8);
    end[2].qp = qrdma_create_qp(p.b.pd, p.b.scq, end[2].rcq, RDMA_QPT_UD);
    end[2].mr = qrdma_reg_mr(p.b.pd, 0x60000000, NET_MR_SIZE, NET_ACCESS_ALL);
    qrdma_start_ud(end[2].qp, QRDMA_QKEY);
    for (int i = 0; i < 3; i++) {
        assert_ok(qrdma_attach_mcast(end[i].qp, groups[1]));
    }
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++) {
            net_post_recv(&end[i], round, 8192, GRH_LEN + LEN);
        }
        send_to(&end[round % 3], 1, 50 + round, QRDMA_QKEY);
        for (int i = 0; i < 3; i++) {
            expect_at(&end[i], &end[round % 3], round, 50 + round);
        }
    }
}

static void test_blocked_loopback(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_UD,
        .cap = { 8, 8, 1, 1, 0 },
        .block_mcast_loopback = true,
    };
    NetEnd deaf = p.a;

    deaf.qp = qrdma_create_qp_attr(p.a.pd, p.a.scq, p.a.rcq, &init);
    qrdma_start_ud(deaf.qp, QRDMA_QKEY);
    assert_ok(qrdma_attach_mcast(deaf.qp, groups[0]));
    assert_ok(qrdma_attach_mcast(p.b.qp, groups[0]));
    net_post_recv(&deaf, 1, 8192, GRH_LEN + LEN);
    net_post_recv(&p.b, 2, 8192, GRH_LEN + LEN);
    send_to(&deaf, 0, 3, QRDMA_QKEY);
    expect_at(&p.b, &deaf, 2, 3);
    qrdma_expect_none(deaf.rcq);
    /* the QP gets messages of other senders */
    send_to(&p.b, 0, 4, QRDMA_QKEY);
    expect_at(&deaf, &p.b, 1, 4);
}

/* A datagram that finds no buffer is lost for that QP alone. */
static void test_qp_without_buffer(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);

    assert_ok(qrdma_attach_mcast(p.a.qp, groups[0]));
    assert_ok(qrdma_attach_mcast(p.b.qp, groups[0]));
    net_post_recv(&p.b, 2, 8192, GRH_LEN + LEN);
    send_to(&p.a, 0, 3, QRDMA_QKEY);
    expect_at(&p.b, &p.a, 2, 3);
    qrdma_expect_none(p.a.rcq);
}

#define MANY QRDMA_RING_SIZE
#define MEMBERS 6
#define LONG 4000

/* More copies than fit in a turn of the main loop: the rest comes later. */
static void test_many_copies(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_UD);
    QRdmaCq *rcq = qrdma_create_cq(p.b.dev, MANY * MEMBERS);
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_UD,
        .cap = { 1, MANY, 1, 1, 0 },
    };
    RdmaQpInitAttr sender = {
        .qp_type = RDMA_QPT_UD,
        .cap = { MANY, 1, 1, 1, 0 },
    };
    RdmaSge sge = net_sge(&p.a, 0, LONG);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND_WITH_IMM, 0, &sge);
    uint32_t next[64] = {};
    uint8_t wqe[QRDMA_WQE_ROOM];
    QRdmaQp *from;
    RdmaWc wc;

    assert_ok(qrdma_destroy_qp(p.b.qp));
    for (int m = 0; m < MEMBERS; m++) {
        NetEnd end = p.b;

        end.qp = qrdma_create_qp_attr(p.b.pd, rcq, rcq, &init);
        qrdma_start_ud(end.qp, QRDMA_QKEY);
        assert_ok(qrdma_attach_mcast(end.qp, groups[0]));
        for (int i = 0; i < MANY; i++) {
            net_post_recv(&end, i, 8192, GRH_LEN + LONG);
        }
    }
    assert_ok(qrdma_destroy_qp(p.a.qp));
    from = qrdma_create_qp_attr(p.a.pd, p.a.scq, p.a.scq, &sender);
    qrdma_start_ud(from, QRDMA_QKEY);
    address(&wr, &p.a, 0, QRDMA_QKEY);
    for (uint32_t i = 0; i < MANY; i++) {
        memcpy(wr.ex.imm_data, &i, sizeof(i));
        qrdma_post_raw(from, &from->sq, wqe, qrdma_encode_send(from, &wr, wqe),
                       0, i == MANY - 1);
    }
    for (int i = 0; i < MANY * MEMBERS; i++) {
        uint32_t imm;

        qrdma_wait_cq(rcq, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
        memcpy(&imm, wc.ex.imm_data, sizeof(imm));
        g_assert_cmpuint(wc.qp_num, <, ARRAY_SIZE(next));
        g_assert_cmpuint(imm, ==, next[wc.qp_num]++);
    }
}

const NetTest net_mcast_tests[] = {
    { "mcast/reaches-attached-qps", test_reaches_attached_qps },
    { "mcast/reaches-all-qps-of-both-sides",
      test_reaches_all_qps_of_both_sides },
    { "mcast/blocked-loopback", test_blocked_loopback },
    { "mcast/qp-without-buffer", test_qp_without_buffer },
    { "mcast/many-copies", test_many_copies },
    {}
};
