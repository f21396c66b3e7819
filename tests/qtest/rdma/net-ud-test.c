/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: datagrams and the GSI.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "net-test.h"

#define GRH_LEN 40
#define GRH_NEXT_UDP 17

static void ud_send(NetPair *p, uint32_t len, uint8_t gid_index, uint8_t seed,
                    bool imm)
{
    RdmaSge sge = net_sge(&p->a, 11, len);
    RdmaSendWr wr = qrdma_ud_wr(seed, &sge, p->b.qp, gid_index);
    RdmaWc wc;

    if (imm) {
        wr.opcode = RDMA_WR_SEND_WITH_IMM;
        memset(wr.ex.imm_data, seed, 4);
    }
    qrdma_mr_fill(p->a.mr, 11, len, seed);
    qtest_memset(p->b.dev->host->qts, p->b.mr->pages[0], 0xcc, 4096);
    net_post_recv(&p->b, 100 + seed, 0, GRH_LEN + len);
    qrdma_post_expect_wc(p->a.qp, wr, RDMA_WC_SEND);
    qrdma_expect_wc(p->b.rcq, 100 + seed, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + len);
    g_assert_cmpuint(wc.src_qp, ==, p->a.qp->wire_qpn);
    g_assert_cmpuint(wc.qp_num, ==, p->b.qp->qpn);
    g_assert_cmpuint(wc.port_num, ==, 1);
    g_assert_cmpuint(wc.pkey_index, ==, 0);
    g_assert_cmphex(wc.wc_flags & (RDMA_WC_GRH | RDMA_WC_WITH_IMM |
                                   RDMA_WC_WITH_INVALIDATE), ==,
                    RDMA_WC_GRH | (imm ? RDMA_WC_WITH_IMM : 0));
    if (imm) {
        g_assert_cmpint(wc.ex.imm_data[0], ==, seed);
    }
    qrdma_mr_check(p->b.mr, GRH_LEN, len, seed);
}

/* @payload: with the immediate data */
static void check_ipv6_header(NetPair *p, uint32_t payload)
{
    uint8_t grh[GRH_LEN];

    qrdma_mr_read(p->b.mr, 0, grh, sizeof(grh));
    g_assert_cmphex(grh[0] >> 4, ==, 6);
    /* traffic class 0x20, flow label 0x12345 */
    g_assert_cmphex(ldl_be_p(grh) & 0x0fffffff, ==, 0x02012345);
    /* UDP, BTH, DETH, padded payload, ICRC */
    g_assert_cmpuint(lduw_be_p(grh + 4), ==,
                     8 + 12 + 8 + ROUND_UP(payload, 4) + 4);
    g_assert_cmpuint(grh[6], ==, GRH_NEXT_UDP);
    g_assert_cmpuint(grh[7], ==, 64);
    g_assert_cmpmem(grh + 8, 16, p->a.dev->gid[0], 16);
    g_assert_cmpmem(grh + 24, 16, p->b.dev->gid[0], 16);
}

static void check_ipv4_header(NetPair *p, uint32_t payload)
{
    static const uint8_t zero[20];
    uint8_t grh[GRH_LEN];

    qrdma_mr_read(p->b.mr, 0, grh, sizeof(grh));
    g_assert_cmpmem(grh, 20, zero, 20);
    g_assert_cmphex(grh[20], ==, 0x45);
    g_assert_cmphex(grh[21], ==, 0x20);
    g_assert_cmpuint(lduw_be_p(grh + 22), ==,
                     20 + 8 + 12 + 8 + ROUND_UP(payload, 4) + 4);
    g_assert_cmpuint(grh[28], ==, 64);
    g_assert_cmpuint(grh[29], ==, GRH_NEXT_UDP);
    g_assert_cmpmem(grh + 32, 4, p->a.dev->gid[1] + 12, 4);
    g_assert_cmpmem(grh + 36, 4, p->b.dev->gid[1] + 12, 4);
}

static void test_ud(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    uint32_t mtu = rdma_mtu_bytes(p.mtu);
    const uint32_t lengths[] = { 0, 1, 2, 3, 4, 255, 256, mtu - 1, mtu };

    for (int i = 0; i < ARRAY_SIZE(lengths); i++) {
        ud_send(&p, lengths[i], 0, i, i % 2);
        check_ipv6_header(&p, lengths[i] + (i % 2 ? 4 : 0));
        ud_send(&p, lengths[i], 1, i + 20, !(i % 2));
        check_ipv4_header(&p, lengths[i] + (i % 2 ? 0 : 4));
    }
}

static void test_ud_longer_than_the_mtu_is_not_sent(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    uint32_t mtu = rdma_mtu_bytes(p.mtu);
    RdmaSge sge = net_sge(&p.a, 0, mtu + 1);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);
    RdmaWc wc;

    net_post_recv(&p.b, 2, 0, 2 * mtu);
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    /* the next one arrives first */
    sge.length = 8;
    wr.wr_id = 3;
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + 8);
}

static void test_ud_inline(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSendWr wr = qrdma_ud_wr(1, NULL, p.b.qp, 0);
    uint8_t data[100], got[100];
    RdmaWc wc;

    memset(data, 0x6b, sizeof(data));
    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = data;
    wr.inline_len = sizeof(data);
    net_post_recv(&p.b, 2, 0, 200);
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + sizeof(data));
    qrdma_mr_read(p.b.mr, GRH_LEN, got, sizeof(got));
    g_assert_cmpmem(data, sizeof(data), got, sizeof(got));
}

static void test_wrong_qkey_is_dropped_and_counted(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);
    struct virtio_rdma_query_port_rsp port;
    RdmaWc wc;

    net_post_recv(&p.b, 2, 0, 100);
    wr.wr.ud.remote_qkey = QRDMA_QKEY + 1;
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    wr.wr_id = 3;
    wr.wr.ud.remote_qkey = QRDMA_QKEY;
    sge.length = 4;
    qrdma_post_send(p.a.qp, &wr);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + 4);
    assert_ok(qrdma_query_port(p.b.dev, 1, &port));
    g_assert_cmpuint(le32_to_cpu(port.qkey_viol_cntr), ==, 1);
}

static void test_qkey_with_bit_31_is_the_qps_own(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);

    net_post_recv(&p.b, 2, 0, 100);
    wr.wr.ud.remote_qkey = 0x80000000 | 0x5555;
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, NULL);
}

/* IBTA 9.8.3.1: datagrams have no NAK. */
static void test_ud_without_receive_buffer_is_dropped(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);

    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    qrdma_settle(p.b.dev);
    net_post_recv(&p.b, 2, 0, 100);
    qrdma_expect_none(p.b.rcq);
    qrdma_post_send(p.a.qp, &wr);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, NULL);
}

/*
 * The device may process a send before receives that were posted first, because
 * each queue has its own notification.
 */
static void test_ud_finds_receives_without_a_kick(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSge src = net_sge(&p.a, 0, 100);
    RdmaSge dst = net_sge(&p.b, 0, GRH_LEN + 100);
    uint8_t wqe[QRDMA_WQE_ROOM];

    for (int i = 0; i < 3; i++) {
        size_t len = qrdma_encode_recv(&(RdmaRecvWr) {
            .wr_id = 10 + i, .num_sge = 1, .sg_list = &dst,
        }, wqe);

        qrdma_mr_fill(p.a.mr, 0, 100, i);
        qrdma_post_raw(p.b.qp, &p.b.qp->rq, wqe, len, 0, false);
        qrdma_post_expect_wc(p.a.qp, qrdma_ud_wr(i, &src, p.b.qp, 0),
                             RDMA_WC_SEND);
        qrdma_expect_wc(p.b.rcq, 10 + i, RDMA_WC_RECV, NULL);
        qrdma_mr_check(p.b.mr, GRH_LEN, 100, i);
    }
}

static void test_ud_to_a_missing_qp(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    const uint32_t qpns[] = {
        0, 1, p.b.qp->wire_qpn ^ 1, 8, 1000, 0xfffffe, 0xffffff,
    };
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);

    net_post_recv(&p.b, 2, 0, 100);
    for (int i = 0; i < ARRAY_SIZE(qpns); i++) {
        wr.wr.ud.remote_qpn = qpns[i];
        qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    }
    qrdma_expect_none(p.b.rcq);
}

/* A QPN has 24 bits: higher bits do not get to the wire. */
static void test_ud_to_a_wide_qpn(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);

    net_post_recv(&p.b, 2, 0, 100);
    wr.wr.ud.remote_qpn |= 0xab000000;
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, NULL);
}

static void test_ud_from_empty_gid_entry_fails(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 8);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);
    const uint8_t bad[] = { 2, 15, 16, 255 };
    RdmaWc wc;

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        wr.wr.ud.av.sgid_index = bad[i];
        qrdma_post_send(p.a.qp, &wr);
        qrdma_expect_error(p.a.scq, 1);
        g_assert_cmpint(qrdma_qp_state(p.a.qp), ==, RDMA_QPS_SQE);
        assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_RTS));
    }
    wr.wr.ud.av.sgid_index = 0;
    net_post_recv(&p.b, 2, 0, 100);
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
}

/*
 * IBTA 9.9.3, class D: the datagram is dropped without an error, so that no
 * stranger can break the QP. The buffer takes the next datagram that fits.
 */
static void test_ud_receive_buffer_too_small(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 100);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);
    RdmaWc wc;

    net_post_recv(&p.b, 2, 0, GRH_LEN + 99);
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    sge.length = 99;
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + 99);
    qrdma_expect_none(p.b.rcq);
}

static void test_one_qp_talks_to_many(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    NetEnd more[3];
    RdmaWc wc;

    for (int i = 0; i < 3; i++) {
        RdmaSge sge = net_sge(&p.a, i * 8, 8);
        RdmaSendWr wr;

        more[i] = p.b;
        more[i].qp = qrdma_create_qp(p.b.pd, p.b.scq, p.b.rcq, RDMA_QPT_UD);
        qrdma_start_ud(more[i].qp, QRDMA_QKEY);
        net_post_recv(&more[i], i, 100 * i, 100);
        wr = qrdma_ud_wr(i, &sge, more[i].qp, i % 2);
        qrdma_post_send(p.a.qp, &wr);
    }
    for (int i = 0; i < 3; i++) {
        qrdma_expect_wc(p.a.scq, i, RDMA_WC_SEND, &wc);
        qrdma_expect_wc(p.b.rcq, i, RDMA_WC_RECV, &wc);
        g_assert_cmpuint(wc.qp_num, ==, more[i].qp->qpn);
    }
}

/* A MAD there and one back, as connection managers do. */
static void test_gsi_exchange(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_GSI, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 256);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b.qp, 0);
    RdmaWc wc;

    g_assert_cmpuint(p.a.qp->qpn, ==, RDMA_QPN_GSI);
    for (int i = 0; i < 4; i++) {
        qrdma_mr_fill(p.a.mr, 0, 256, i);
        net_post_recv(&p.a, 10, 5000, 296);
        net_post_recv(&p.b, 2, 0, 296);
        sge = net_sge(&p.a, 0, 256);
        wr = qrdma_ud_wr(1, &sge, p.b.qp, i % 2);
        qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
        qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
        g_assert_cmpuint(wc.src_qp, ==, RDMA_QPN_GSI);
        g_assert_cmpuint(wc.byte_len, ==, 296);
        qrdma_mr_check(p.b.mr, GRH_LEN, 256, i);

        sge = net_sge(&p.b, GRH_LEN, 256);
        wr = qrdma_ud_wr(3, &sge, p.a.qp, i % 2);
        qrdma_post_expect_wc(p.b.qp, wr, RDMA_WC_SEND);
        qrdma_expect_wc(p.a.rcq, 10, RDMA_WC_RECV, &wc);
        qrdma_mr_check(p.a.mr, 5000 + GRH_LEN, 256, i);
    }
}

const NetTest net_ud_tests[] = {
    { "ud/sizes-and-grh", test_ud },
    { "ud/longer-than-the-mtu-is-not-sent",
      test_ud_longer_than_the_mtu_is_not_sent },
    { "ud/inline", test_ud_inline },
    { "ud/wrong-qkey-is-dropped-and-counted",
      test_wrong_qkey_is_dropped_and_counted },
    { "ud/qkey-with-bit-31-is-the-qps-own",
      test_qkey_with_bit_31_is_the_qps_own },
    { "ud/without-receive-buffer-is-dropped",
      test_ud_without_receive_buffer_is_dropped },
    { "ud/finds-receives-without-a-kick",
      test_ud_finds_receives_without_a_kick, NET_NO_IBDEV },
    { "ud/to-a-missing-qp", test_ud_to_a_missing_qp },
    { "ud/to-a-wide-qpn", test_ud_to_a_wide_qpn },
    { "ud/from-empty-gid-entry-fails", test_ud_from_empty_gid_entry_fails },
    { "ud/receive-buffer-too-small", test_ud_receive_buffer_too_small },
    { "ud/one-qp-talks-to-many", test_one_qp_talks_to_many },
    { "gsi/exchange", test_gsi_exchange },
    {}
};
