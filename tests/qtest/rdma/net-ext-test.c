/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two virtio-rdma devices: feature bits for datagrams, VLANs and counters. */
#include "qemu/osdep.h"
#include "net-test.h"

#define GRH_LEN 40
#define LEN 100

#define EX_FLAGS (RDMA_WC_WITH_SMAC | RDMA_WC_WITH_VLAN | \
                  RDMA_WC_WITH_HDR_TYPE)

/* Send a datagram from @from to @to, and take only the sender's completion. */
static void datagram(NetEnd *from, NetEnd *to, uint8_t gid_index, uint8_t sl)
{
    RdmaSge sge = net_sge(from, 0, LEN);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, to->qp, gid_index);
    RdmaWc wc;

    wr.wr.ud.av.sl = sl;
    net_post_recv(to, 2, 0, GRH_LEN + LEN);
    qrdma_post_send(from->qp, &wr);
    qrdma_expect_wc(from->scq, 1, RDMA_WC_SEND, &wc);
    g_assert_cmphex(wc.wc_flags, ==, 0);
}

static void test_datagrams_tell_where_they_come_from(NetKind kind)
{
    static const uint8_t types[] = { RDMA_HDR_IPV6, RDMA_HDR_IPV4 };
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaWc wc;

    for (int i = 0; i < ARRAY_SIZE(types); i++) {
        datagram(&p.a, &p.b, i, 0);
        qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
        g_assert_cmphex(wc.wc_flags, ==, RDMA_WC_GRH | RDMA_WC_WITH_SMAC |
                                         RDMA_WC_WITH_HDR_TYPE);
        g_assert_cmpmem(wc.smac, RDMA_MAC_LEN, p.a.dev->mac, RDMA_MAC_LEN);
        g_assert_cmpint(wc.hdr_type, ==, types[i]);
        g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + LEN);
        g_assert_cmpuint(wc.src_qp, ==, p.a.qp->wire_qpn);
    }
}

/* The same for drivers of the RFC, which no device of the host serves */
static NetPair rfc_pair(NetKind kind)
{
    NetPair p = net_pair_rfc(net_shared(kind), RDMA_QPT_UD, 0);

    qrdma_bring_up(p.a.qp, p.b.qp, NULL);
    return p;
}

static void test_short_completions_tell_nothing_of_it(NetKind kind)
{
    NetPair p = rfc_pair(kind);
    RdmaWc wc;

    datagram(&p.a, &p.b, 0, 0);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
    g_assert_cmphex(wc.wc_flags, ==, RDMA_WC_GRH);
}

static void test_connections_tell_nothing_of_it(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    RdmaSge sge = net_sge(&p.a, 0, LEN);
    RdmaWc wc;

    qrdma_connect(p.a.qp, p.b.qp, NULL);
    net_post_recv(&p.b, 2, 0, LEN);
    qrdma_post(p.a.qp, qrdma_wr(RDMA_WR_SEND, 1, &sge));
    qrdma_expect_wc(p.a.scq, 1, RDMA_WC_SEND, &wc);
    g_assert_cmphex(wc.wc_flags & EX_FLAGS, ==, 0);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
    g_assert_cmphex(wc.wc_flags & EX_FLAGS, ==, 0);
}

static void set_vlan(NetEnd *e, uint16_t vlan)
{
    for (int i = 0; i < 2; i++) {
        assert_ok(qrdma_add_gid_vlan(e->dev, i, e->dev->gid[i], vlan));
    }
}

static void test_vlan(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    RdmaWc wc;

    set_vlan(&p.a, 4094);
    set_vlan(&p.b, 4094);
    for (int i = 0; i < 2; i++) {
        datagram(&p.a, &p.b, i, 5);
        qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
        g_assert_true(wc.wc_flags & RDMA_WC_WITH_VLAN);
        g_assert_cmpuint(wc.vlan, ==, 4094);
        g_assert_cmpuint(wc.sl, ==, 5);
        g_assert_cmpmem(wc.smac, RDMA_MAC_LEN, p.a.dev->mac, RDMA_MAC_LEN);
    }
}

static void test_vlans_are_apart(NetKind kind)
{
    static const uint16_t vlans[][2] = { { 7, 8 }, { 7, 0 }, { 0, 7 } };
    NetPair p;
    RdmaWc wc;

    for (int i = 0; i < ARRAY_SIZE(vlans); i++) {
        p = net_pair(kind, RDMA_QPT_UD, NULL);
        set_vlan(&p.a, vlans[i][0]);
        set_vlan(&p.b, vlans[i][1]);
        datagram(&p.a, &p.b, 0, 0);
        qrdma_expect_none(p.b.rcq);
        /* until both are in one VLAN */
        set_vlan(&p.a, 9);
        set_vlan(&p.b, 9);
        datagram(&p.a, &p.b, 0, 0);
        qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, &wc);
        g_assert_cmphex(wc.wc_flags & ~EX_FLAGS, ==, RDMA_WC_GRH);
    }
}

static void test_vlan_numbers(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    QRdma *d = p.a.dev;
    static const uint16_t bad[] = { 4095, 4096, 0x8001, UINT16_MAX };
    static const uint16_t good[] = { 1, 100, 4094, 0 };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_status(qrdma_add_gid_vlan(d, 0, d->gid[0], bad[i]), INVAL);
    }
    for (int i = 0; i < ARRAY_SIZE(good); i++) {
        assert_ok(qrdma_add_gid_vlan(d, 0, d->gid[0], good[i]));
    }
    /* a request that ends before the VLAN field has no VLAN, like the RFC's */
    assert_ok(qrdma_add_gid_vlan(d, 0, d->gid[0], 5));
    assert_ok(qrdma_add_gid(d, 0, d->gid[0]));
    datagram(&p.a, &p.b, 0, 0);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, NULL);
}

/* The RFC's ADD_GID has no VLAN, so any value is ignored. */
static void test_vlan_for_a_driver_of_the_rfc(NetKind kind)
{
    NetPair p = rfc_pair(kind);

    set_vlan(&p.a, 4095);
    set_vlan(&p.a, 77);
    datagram(&p.a, &p.b, 0, 0);
    qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, NULL);
}

static void test_counters(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    uint64_t a[VIRTIO_RDMA_NUM_COUNTERS], b[VIRTIO_RDMA_NUM_COUNTERS];
    uint64_t frame = 14 + 40 + 8 + 12 + 8 + LEN + 4;

    g_assert_cmpuint(qrdma_config_le32(p.a.dev, num_counters), ==,
                     VIRTIO_RDMA_NUM_COUNTERS);
    assert_ok(qrdma_query_counters(p.a.dev, 1, a));
    for (int i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        g_assert_cmpuint(a[i], ==, 0);
    }
    for (int i = 0; i < 3; i++) {
        datagram(&p.a, &p.b, 0, 0);
        qrdma_expect_wc(p.b.rcq, 2, RDMA_WC_RECV, NULL);
    }
    /* a datagram to itself, and one with a wrong Q_Key */
    datagram(&p.a, &p.a, 0, 0);
    qrdma_expect_wc(p.a.rcq, 2, RDMA_WC_RECV, NULL);
    assert_ok(qrdma_modify_qp(p.b.qp, RDMA_QP_STATE | RDMA_QP_QKEY,
                              &(RdmaQpAttr) {
                                  .qp_state = RDMA_QPS_RTS,
                                  .qkey = QRDMA_QKEY + 1,
                              }));
    datagram(&p.a, &p.b, 0, 0);
    qrdma_expect_none(p.b.rcq);
    assert_ok(qrdma_query_counters(p.a.dev, 1, a));
    assert_ok(qrdma_query_counters(p.b.dev, 1, b));
    g_assert_cmpuint(a[VIRTIO_RDMA_TX_PACKETS], ==, 4);
    g_assert_cmpuint(a[VIRTIO_RDMA_TX_BYTES], ==, 4 * frame);
    g_assert_cmpuint(a[VIRTIO_RDMA_LOOPBACK_PACKETS], ==, 1);
    g_assert_cmpuint(b[VIRTIO_RDMA_RX_PACKETS], ==, 4);
    g_assert_cmpuint(b[VIRTIO_RDMA_RX_BYTES], ==, 4 * frame);
    g_assert_cmpuint(b[VIRTIO_RDMA_BAD_QKEY], ==, 1);
    g_assert_cmpuint(b[VIRTIO_RDMA_TX_PACKETS], ==, 0);
    /* device reset sets the counters to 0 */
    qrdma_start(p.b.dev, 0, 0);
    assert_ok(qrdma_query_counters(p.b.dev, 1, b));
    for (int i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        g_assert_cmpuint(b[i], ==, 0);
    }
}

static void test_counters_of_port_1(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_UD, NULL);
    uint64_t values[VIRTIO_RDMA_NUM_COUNTERS];

    assert_status(qrdma_query_counters(p.a.dev, 0, values), INVAL);
    assert_status(qrdma_query_counters(p.a.dev, 2, values), INVAL);
}

const NetTest net_ext_tests[] = {
    { "cqe-ex/datagrams-tell-where-they-come-from",
      test_datagrams_tell_where_they_come_from },
    { "cqe-ex/short-completions-tell-nothing-of-it",
      test_short_completions_tell_nothing_of_it, NET_NO_IBDEV },
    { "cqe-ex/connections-tell-nothing-of-it",
      test_connections_tell_nothing_of_it },
    { "vlan/on-the-wire", test_vlan },
    { "vlan/are-apart", test_vlans_are_apart },
    { "vlan/numbers", test_vlan_numbers },
    { "vlan/driver-of-the-rfc", test_vlan_for_a_driver_of_the_rfc,
      NET_NO_IBDEV },
    /* Both devices have the counters of one port of the host. */
    { "counters/frames", test_counters, NET_NO_IBDEV },
    { "counters/port", test_counters_of_port_1 },
    {}
};
