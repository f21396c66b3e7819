/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: connected queue pairs. Tests of iface-*.c are those
 * of operations.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "net-test.h"

/* Lengths around the places where packets end, for a path MTU in bytes. */
#define LENGTHS(mtu) { 0, 1, 2, 3, 4, (mtu) - 1, (mtu), (mtu) + 1, \
                       2 * (mtu), 2 * (mtu) + 1, 5 * (mtu) + 17, 50000 }
#define N_LENGTHS 12

static void test_each_path_mtu(NetKind kind)
{
    RdmaMtu max = net_pair_new(net_shared(kind), RDMA_QPT_RC).mtu;

    for (RdmaMtu mtu = RDMA_MTU_256; mtu <= max; mtu++) {
        const uint32_t lengths[N_LENGTHS] = LENGTHS(rdma_mtu_bytes(mtu));
        QRdmaPath path = { .mtu = mtu, .gid_index = mtu % 2 };
        NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
        IfacePair pair = net_iface_pair(&p);

        for (int i = 0; i < ARRAY_SIZE(lengths); i += 2) {
            iface_send_one(&pair, RDMA_WR_SEND, lengths[i], i);
        }
    }
}

static void test_atomics_are_executed_once_each(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    uint64_t sum;

    for (int i = 0; i < 24; i++) {
        RdmaSge sge = net_sge(&p.a, i * 8, 8);
        RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, i, &sge,
                                      p.b.mr, 0);

        wr.wr.atomic.compare_add = 1;
        qrdma_post_send(p.a.qp, &wr);
    }
    for (int i = 0; i < 24; i++) {
        qrdma_expect_wc(p.a.scq, i, RDMA_WC_FETCH_ADD, NULL);
        qrdma_mr_read(p.a.mr, i * 8, &sum, 8);
        g_assert_cmphex(le64_to_cpu(sum), ==, i);
    }
    qrdma_mr_read(p.b.mr, 0, &sum, 8);
    g_assert_cmphex(le64_to_cpu(sum), ==, 24);
}

static void test_inline(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    uint8_t data[128], got[128];
    RdmaWc wc;

    for (int len = 0; len <= 128; len += 16) {
        RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, len, NULL, p.b.mr,
                                      64);

        memset(data, len + 1, sizeof(data));
        wr.send_flags |= RDMA_SEND_INLINE;
        wr.inline_data = data;
        wr.inline_len = len;
        qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_RDMA_WRITE);
        qrdma_mr_read(p.b.mr, 64, got, len);
        g_assert_cmpmem(data, len, got, len);

        wr.opcode = RDMA_WR_SEND;
        net_post_recv(&p.b, 7, 500, 128);
        qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_SEND);
        qrdma_expect_wc(p.b.rcq, 7, RDMA_WC_RECV, &wc);
        g_assert_cmpuint(wc.byte_len, ==, len);
        qrdma_mr_read(p.b.mr, 500, got, len);
        g_assert_cmpmem(data, len, got, len);
    }
}

static void test_gather_and_scatter(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    RdmaSge from[4], to[4];
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, from);
    const uint32_t out[4] = { 1, 4000, 0, 1999 };
    const uint32_t in[4] = { 2999, 1, 0, 3000 };
    uint64_t at = 0;
    RdmaWc wc;

    qrdma_mr_fill(p.a.mr, 0, 6000, 5);
    for (int i = 0; i < 4; i++) {
        from[i] = net_sge(&p.a, at, out[i]);
        at += out[i];
    }
    at = 0;
    for (int i = 0; i < 4; i++) {
        to[i] = net_sge(&p.b, 50 + at, in[i]);
        at += in[i];
    }
    wr.num_sge = 4;
    qrdma_post_recv(p.b.qp, &(RdmaRecvWr) { 2, .num_sge = 4, .sg_list = to });
    qrdma_post_send(p.a.qp, &wr);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, 6000);
    qrdma_mr_check(p.b.mr, 50, 6000, 5);
    qrdma_expect_wc(p.a.scq, 1, RDMA_WC_SEND, &wc);
    /* READ scatters too */
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_READ, 3, from, p.b.mr, 50);
    wr.num_sge = 4;
    qrdma_mr_fill(p.b.mr, 50, 6000, 6);
    qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_RDMA_READ);
    qrdma_mr_check(p.a.mr, 0, 6000, 6);
}

static void test_signal_all(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .sq_sig_all = true,
        .cap = { 8, 8, 1, 1, 0 },
    };
    QRdmaQp *qp = qrdma_create_qp_attr(p.a.pd, p.a.scq, p.a.rcq, &init);
    RdmaSge sge = net_sge(&p.a, 0, 64);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 0, &sge, p.b.mr, 0);

    qrdma_connect(qp, p.b.qp, NULL);
    wr.send_flags = 0;
    for (int i = 0; i < 6; i++) {
        wr.wr_id = i;
        qrdma_post_expect_wc(qp, wr, RDMA_WC_RDMA_WRITE);
    }
}

static void test_fence_waits_for_reads(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 20000);
    RdmaSendWr wr;

    for (int i = 0; i < 5; i++) {
        qrdma_mr_fill(p.b.mr, 0, 20000, i);
        /* read the bytes, and write them back to another place */
        wr = qrdma_rdma_wr(RDMA_WR_RDMA_READ, 1, &sge, p.b.mr, 0);
        qrdma_post_send(p.a.qp, &wr);
        wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &sge, p.b.mr, 40000);
        wr.send_flags |= RDMA_SEND_FENCE;
        qrdma_post_send(p.a.qp, &wr);
        qrdma_expect_wc(p.a.scq, 1, RDMA_WC_RDMA_READ, NULL);
        qrdma_expect_wc(p.a.scq, 2, RDMA_WC_RDMA_WRITE, NULL);
        qrdma_mr_check(p.b.mr, 40000, 20000, i);
    }
}

static void test_both_ways_at_once(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    NetEnd *end[2] = { &p.a, &p.b };

    for (int e = 0; e < 2; e++) {
        for (int i = 0; i < 10; i++) {
            net_post_recv(end[e], i, 60000 + i * 3000, 3000);
            qrdma_mr_fill(end[e]->mr, i * 3000, 3000, 100 * e + i);
        }
    }
    for (int i = 0; i < 10; i++) {
        for (int e = 0; e < 2; e++) {
            RdmaSge sge = net_sge(end[e], i * 3000, 3000);

            qrdma_post(end[e]->qp, qrdma_wr(RDMA_WR_SEND, i, &sge));
        }
    }
    for (int i = 0; i < 10; i++) {
        for (int e = 0; e < 2; e++) {
            qrdma_expect_wc(end[e]->rcq, i, RDMA_WC_RECV, NULL);
            qrdma_expect_wc(end[e]->scq, i, RDMA_WC_SEND, NULL);
            qrdma_mr_check(end[e]->mr, 60000 + i * 3000, 3000,
                           100 * !e + i);
        }
    }
}

static void test_long_run_wraps_rings_and_psns(NetKind kind)
{
    QRdmaPath path = { .psn_a = 0xfffff0, .psn_b = 0xffffff };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    RdmaWc wc;

    for (int i = 0; i < 200; i += 8) {
        /*
         * All receives come first: the responder delays the report of a single
         * one, and the clock stands still.
         */
        for (int n = i; n < i + 8; n++) {
            net_post_recv(&p.b, n, n % 8 * 3000, 3000);
        }
        for (int n = i; n < i + 8; n++) {
            RdmaSge sge = net_sge(&p.a, n * 7 % 5000, n * 13 % 3000);

            qrdma_post(p.a.qp, qrdma_wr(RDMA_WR_SEND, n, &sge));
        }
        for (int n = i; n < i + 8; n++) {
            qrdma_expect_wc(p.b.rcq, n, RDMA_WC_RECV, &wc);
            g_assert_cmpuint(wc.byte_len, ==, n * 13 % 3000);
            qrdma_expect_wc(p.a.scq, n, RDMA_WC_SEND, &wc);
        }
    }
}

static void test_sqd_drains_and_holds(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    RdmaSge sge = net_sge(&p.a, 0, 5000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 0);
    RdmaQpAttr attr;

    qrdma_post_send(p.a.qp, &wr);
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_SQD));
    qrdma_expect_wc(p.a.scq, 1, RDMA_WC_RDMA_WRITE, NULL);
    qrdma_wait_until(p.a.dev, qrdma_query_qp(p.a.qp, &attr) == 0 &&
                              attr.sq_draining == 0);
    g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_SQD);
    wr.wr_id = 2;
    qrdma_post_send(p.a.qp, &wr);
    qrdma_expect_none(p.a.scq);
    /* receiving goes on */
    net_post_recv(&p.a, 3, 0, 100);
    wr = qrdma_wr(RDMA_WR_SEND, 4, NULL);
    qrdma_post_send(p.b.qp, &wr);
    qrdma_expect_wc(p.a.rcq, 3, RDMA_WC_RECV, NULL);
    qrdma_expect_wc(p.b.scq, 4, RDMA_WC_SEND, NULL);
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_RTS));
    qrdma_expect_wc(p.a.scq, 2, RDMA_WC_RDMA_WRITE, NULL);
}

static void test_uc(NetKind kind)
{
    for (int gid_index = 0; gid_index < 2; gid_index++) {
        QRdmaPath path = { .gid_index = gid_index };
        NetPair p = net_pair(kind, RDMA_QPT_UC, &path);
        IfacePair pair = net_iface_pair(&p);
        const uint32_t lengths[] = LENGTHS(1024);
        RdmaWc wc;

        for (int i = 0; i < ARRAY_SIZE(lengths); i++) {
            RdmaSge sge = net_sge(&p.a, 3, lengths[i]);
            RdmaSendWr wr;

            iface_send_one(&pair, RDMA_WR_SEND, lengths[i], i);
            iface_send_one(&pair, RDMA_WR_SEND_WITH_IMM, lengths[i], i);
            wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, p.b.mr, 901);
            qrdma_mr_fill(p.a.mr, 3, lengths[i], i + 1);
            qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_RDMA_WRITE);
            /* the next request is after this one on the wire */
            wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE_WITH_IMM, 2, &sge, p.b.mr,
                               60001);
            net_post_recv(&p.b, 3, 0, 0);
            qrdma_post_expect_wc(p.a.qp, wr, RDMA_WC_RDMA_WRITE);
            qrdma_expect_wc(p.b.rcq, 3, RDMA_WC_RECV_RDMA_WITH_IMM, &wc);
            g_assert_cmpuint(wc.byte_len, ==, lengths[i]);
            qrdma_mr_check(p.b.mr, 901, lengths[i], i + 1);
            qrdma_mr_check(p.b.mr, 60001, lengths[i], i + 1);
        }
    }
}

const NetTest net_rc_tests[] = {
    { "rc/each-path-mtu", test_each_path_mtu },
    { "rc/atomics-are-executed-once-each",
      test_atomics_are_executed_once_each },
    { "rc/inline", test_inline },
    { "rc/gather-and-scatter", test_gather_and_scatter },
    { "rc/signal-all", test_signal_all },
    { "rc/fence-waits-for-reads", test_fence_waits_for_reads },
    { "rc/both-ways-at-once", test_both_ways_at_once },
    { "rc/long-run-wraps-rings-and-psns", test_long_run_wraps_rings_and_psns },
    { "rc/sqd-drains-and-holds", test_sqd_drains_and_holds },
    { "uc/operations", test_uc },
    {}
};
