/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: the port, its P_Key table and its GID table.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/sockets.h"
#include "rdma-test.h"

static const uint8_t gid_v4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t gid_v6[16] = { 0xfe, 0x80, [15] = 1 };
static const uint8_t gid_zero[16];

static void test_query_port(void)
{
    QRdma *d = test_device();
    struct virtio_rdma_query_port_rsp p;

    assert_ok(qrdma_query_port(d, 1, &p));
    g_assert_cmpuint(p.state, ==, RDMA_PORT_ACTIVE);
    g_assert_cmpuint(p.phys_state, ==, 5);
    g_assert_cmpuint(p.max_mtu, ==, RDMA_MTU_4096);
    g_assert_cmpuint(p.active_mtu, >=, RDMA_MTU_256);
    g_assert_cmpuint(p.active_mtu, <=, p.max_mtu);
    g_assert_cmpuint(rdma_mtu_bytes(p.active_mtu), <,
                     le32_to_cpu(p.phys_mtu));
    g_assert_cmpuint(le32_to_cpu(p.gid_tbl_len), ==, TEST_GIDS);
    g_assert_cmpuint(le16_to_cpu(p.pkey_tbl_len), ==, 1);
    g_assert_cmphex(le32_to_cpu(p.port_cap_flags), ==, 1 << 16);
    g_assert_cmpuint(le32_to_cpu(p.max_msg_sz), ==, 1u << 31);
    g_assert_cmpuint(le32_to_cpu(p.bad_pkey_cntr), ==, 0);
    g_assert_cmpuint(le32_to_cpu(p.qkey_viol_cntr), ==, 0);
    g_assert_cmpuint(p.active_width, !=, 0);
    g_assert_cmpuint(le16_to_cpu(p.active_speed), !=, 0);
}

static void test_only_port_1(void)
{
    QRdma *d = test_device();
    struct virtio_rdma_query_port_rsp p;
    uint16_t pkey;

    assert_status(qrdma_query_port(d, 0, &p), INVAL);
    for (int port = 2; port < 256; port++) {
        assert_status(qrdma_query_port(d, port, &p), INVAL);
    }
    assert_status(qrdma_query_pkey(d, 0, 0, &pkey), INVAL);
    assert_status(qrdma_query_pkey(d, 2, 0, &pkey), INVAL);
    assert_status(qrdma_query_pkey(d, 0x101, 0, &pkey), INVAL);
    assert_status(qrdma_query_pkey(d, UINT32_MAX, 0, &pkey), INVAL);
    assert_status(qrdma_add_gid_full(d, 0, gid_v6, 2, 0), INVAL);
    assert_status(qrdma_add_gid_full(d, 0, gid_v6, 2, 2), INVAL);
    assert_status(qrdma_add_gid_full(d, 0, gid_v6, 2, 0x101), INVAL);
    assert_ok(qrdma_add_gid(d, 0, gid_v6));
    assert_status(qrdma_del_gid(d, 0, 0), INVAL);
    assert_status(qrdma_del_gid(d, 0, 2), INVAL);
    assert_ok(qrdma_del_gid(d, 0, 1));
}

static void test_one_pkey(void)
{
    QRdma *d = test_device();
    uint16_t pkey;

    assert_ok(qrdma_query_pkey(d, 1, 0, &pkey));
    g_assert_cmphex(pkey, ==, 0xffff);
    assert_status(qrdma_query_pkey(d, 1, 1, &pkey), INVAL);
    assert_status(qrdma_query_pkey(d, 1, 0xffff, &pkey), INVAL);
}

static void test_gid_index_range(void)
{
    QRdma *d = test_device();
    const uint16_t bad[] = { TEST_GIDS, TEST_GIDS + 1, 256, 0x8000, 0xffff };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_status(qrdma_add_gid(d, bad[i], gid_v4), INVAL);
        assert_status(qrdma_add_gid(d, bad[i], gid_zero), INVAL);
        assert_status(qrdma_del_gid(d, bad[i], 1), INVAL);
    }
    assert_ok(qrdma_add_gid(d, TEST_GIDS - 1, gid_v4));
    assert_ok(qrdma_del_gid(d, TEST_GIDS - 1, 1));
}

static void test_only_roce_v2_gids(void)
{
    QRdma *d = test_device();
    const uint32_t bad[] = { 0, 1, 3, 0x102, UINT32_MAX };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_status(qrdma_add_gid_full(d, 0, gid_v4, bad[i], 1), NOTSUPP);
    }
}

static void test_delete_gid_twice(void)
{
    QRdma *d = test_device();

    assert_status(qrdma_del_gid(d, 0, 1), NOENT);
    assert_ok(qrdma_add_gid(d, 0, gid_v6));
    assert_ok(qrdma_del_gid(d, 0, 1));
    assert_status(qrdma_del_gid(d, 0, 1), NOENT);
}

static void test_zero_gid_deletes(void)
{
    QRdma *d = test_device();

    assert_ok(qrdma_add_gid(d, 2, gid_v6));
    assert_ok(qrdma_add_gid(d, 2, gid_zero));
    assert_status(qrdma_del_gid(d, 2, 1), NOENT);
}

static void test_gid_is_replaced(void)
{
    QRdma *d = test_device();

    assert_ok(qrdma_add_gid(d, 0, gid_v6));
    assert_ok(qrdma_add_gid(d, 0, gid_v4));
    assert_ok(qrdma_del_gid(d, 0, 1));
    assert_status(qrdma_del_gid(d, 0, 1), NOENT);
}

static void test_path_with_empty_gid_entry_fails(void)
{
    QRdma *d = test_device();
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaQp *qp = qrdma_create_qp(qrdma_alloc_pd(d), cq, cq, RDMA_QPT_RC);
    QRdmaPath path = {
        .mtu = RDMA_MTU_1024, .timeout = 14, .min_rnr_timer = 12,
    };

    assert_ok(qrdma_modify_init(qp, 0));
    memcpy(d->gid[0], gid_v6, 16);
    assert_status(qrdma_modify_rtr(qp, qp, &path, 0), INVAL);
    assert_ok(qrdma_add_gid(d, 0, gid_v6));
    assert_ok(qrdma_modify_rtr(qp, qp, &path, 0));
}

static void test_reset_forgets_gids(void)
{
    QRdma *d = test_device();

    assert_ok(qrdma_add_gid(d, 0, gid_v6));
    qrdma_start(d, 0, 0);
    assert_status(qrdma_del_gid(d, 0, 1), NOENT);
}

static void check_allowed(QRdma *d, const char *address, bool allowed)
{
    static const uint8_t zero[RDMA_GID_LEN];
    uint8_t gid[RDMA_GID_LEN] = {};

    if (inet_pton(AF_INET6, address, gid) != 1) {
        memset(gid + 10, 0xff, 2);
        g_assert_cmpint(inet_pton(AF_INET, address, gid + 12), ==, 1);
    }
    g_assert_cmpint(qrdma_add_gid(d, 3, gid), ==,
                    allowed ? VIRTIO_RDMA_S_OK : VIRTIO_RDMA_S_PERM);
    /* The entry is as it was: deleting by a zero GID is always allowed */
    g_assert_cmpint(qrdma_del_gid(d, 3, 1), ==,
                    allowed ? VIRTIO_RDMA_S_OK : VIRTIO_RDMA_S_NOENT);
    assert_ok(qrdma_add_gid(d, 3, zero));
}

static QRdma *device_with(const char *props)
{
    QRdmaHost *host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=5,max-qp=8,max-cq=4%s", props);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(5, 0));

    qrdma_start(d, 0, 0);
    return d;
}

/* The user decides which addresses the guest may have. */
static void test_only_allowed_gids(void)
{
    QRdma *d = device_with(",allowed-gids='10.1.0.0/16 192.168.7.9  fe80::/10 "
                           "2001:db8::7 2001:db8:1:2::/63'");

    check_allowed(d, "10.1.0.1", true);
    check_allowed(d, "10.1.255.255", true);
    check_allowed(d, "10.2.0.1", false);
    check_allowed(d, "11.1.0.1", false);
    check_allowed(d, "192.168.7.9", true);
    check_allowed(d, "192.168.7.8", false);
    check_allowed(d, "fe80::5054:ff:fe12:3456", true);
    check_allowed(d, "febf::1", true);
    check_allowed(d, "fec0::1", false);
    check_allowed(d, "2001:db8::7", true);
    check_allowed(d, "2001:db8::6", false);
    check_allowed(d, "2001:db8:1:3::5", true);
    check_allowed(d, "2001:db8:1:4::5", false);
    /* an IPv6 prefix has IPv4 addresses only if it names them */
    check_allowed(d, "::10.1.0.1", false);
    qrdma_host_stop(d->host);

    d = device_with(",allowed-gids=");
    check_allowed(d, "10.1.0.1", false);
    qrdma_host_stop(d->host);

    d = device_with(",allowed-gids=0.0.0.0/0");
    check_allowed(d, "10.1.0.1", true);
    check_allowed(d, "fe80::1", false);
    qrdma_host_stop(d->host);

    d = device_with(",allowed-gids=::/0");
    check_allowed(d, "10.1.0.1", true);
    check_allowed(d, "fe80::1", true);
    qrdma_host_stop(d->host);
}

const QRdmaTest gid_tests[] = {
    { "gid/only-allowed-ones", test_only_allowed_gids,
      .not_demo = true },
    { "port/query-port", test_query_port },
    { "port/only-port-1", test_only_port_1 },
    { "port/one-pkey", test_one_pkey },
    { "gid/index-range", test_gid_index_range },
    { "gid/only-roce-v2", test_only_roce_v2_gids },
    { "gid/delete-twice", test_delete_gid_twice },
    { "gid/zero-gid-deletes", test_zero_gid_deletes },
    { "gid/is-replaced", test_gid_is_replaced },
    { "gid/path-with-empty-entry-fails", test_path_with_empty_gid_entry_fails },
    { "gid/reset-forgets", test_reset_forgets_gids },
    {}
};
