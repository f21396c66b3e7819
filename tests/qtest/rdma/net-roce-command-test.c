/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-net-roce: commands, and what QMP says of their objects. */
#include "qemu/osdep.h"
#include "net-roce-test.h"
#include "qobject/qdict.h"

static void test_query(void)
{
    g_autoptr(QRoce) d = nr_alone();
    NetRoceDevice device;
    NetRocePort port;

    assert_ack(qroce_cmd(d, NET_ROCE_CMD_QUERY_DEVICE, NULL, 0, &device,
                         sizeof(device)));
    g_assert_cmpint(device.device_cap_flags, ==, NET_ROCE_CAP_RC_RNR_NAK_GEN);
    g_assert_cmpint(device.page_size_cap, ==, RDMA_PAGE_SIZE);
    g_assert_cmpint(device.max_qp_wr, ==, NR_RING);
    g_assert_cmpint(device.max_cqe, ==, NR_RING);
    g_assert_cmpint(device.max_send_sge, ==, 32);
    g_assert_cmpint(device.max_mr, ==, 4096);
    g_assert_cmpint(device.max_pd, ==, 1024);
    g_assert_cmpint(device.max_qp_rd_atom, ==, 16);
    g_assert_cmpint(device.max_ah, ==, 1024);
    for (size_t i = 0; i < ARRAY_SIZE(device.reserved); i++) {
        g_assert_cmpint(device.reserved[i], ==, 0);
    }
    assert_ack(qroce_cmd(d, NET_ROCE_CMD_QUERY_PORT, NULL, 0, &port,
                         sizeof(port)));
    g_assert_cmpint(port.gid_tbl_len, ==, 128);
    g_assert_cmphex(port.max_msg_sz, ==, 0x80000000);
}

static void test_query_qp(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);
    NetRoceQpAttr attr = qroce_query_qp(p.a.dev, p.a.qp.qpn);
    NrPeer peer = nr_peer(&p.b);

    g_assert_cmpint(attr.qp_state, ==, RDMA_QPS_RTS);
    g_assert_cmpint(attr.path_mtu, ==, RDMA_MTU_1024);
    g_assert_cmpint(attr.max_rd_atomic, ==, 4);
    g_assert_cmpint(attr.max_dest_rd_atomic, ==, 4);
    g_assert_cmpint(attr.min_rnr_timer, ==, 12);
    g_assert_cmpint(attr.timeout, ==, 14);
    g_assert_cmpint(attr.retry_cnt, ==, 7);
    g_assert_cmpint(attr.rnr_retry, ==, 7);
    g_assert_cmpint(attr.dest_qp_num, ==, peer.qpn);
    g_assert_cmphex(attr.qp_access_flags, ==, NET_ROCE_ACCESS);
    g_assert_cmpint(attr.cap.max_send_wr, ==, 16);
    g_assert_cmpint(attr.cap.max_recv_sge, ==, QROCE_SGES);
    g_assert_cmpint(attr.cap.max_inline_data, ==, NET_ROCE_MAX_INLINE);
    g_assert_cmpint(attr.av.hop_limit, ==, 64);
    g_assert_cmpmem(attr.av.dgid, sizeof(peer.gid), peer.gid,
                    sizeof(peer.gid));
    g_assert_cmpmem(attr.av.dmac, sizeof(peer.mac), peer.mac,
                    sizeof(peer.mac));
}

/* All states that the driver can ask for */
static void test_states(void)
{
    static const RdmaQpState states[] = {
        RDMA_QPS_SQD, RDMA_QPS_RTS, RDMA_QPS_ERR, RDMA_QPS_RESET,
    };
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        nr_modify_state(&p.a, states[i]);
        g_assert_cmpint(qroce_query_qp(p.a.dev, p.a.qp.qpn).qp_state, ==,
                        states[i]);
    }
    assert_refused(qroce_modify_qp(p.a.dev, p.a.qp.qpn, NET_ROCE_QP_STATE,
                                   &(NetRoceModifyQp) {
                                       .qp_state = RDMA_QPS_RTS,
                                   }));
}

/*
 * The authors' driver names the first 32 bytes of REG_USER_MR; the list of
 * pages follows in memory.
 */
static void test_short_reg_user_mr(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);
    uint64_t page = p.b.mr.mem & ~(uint64_t)(RDMA_PAGE_SIZE - 1);
    struct {
        NetRoceRegUserMr head;
        uint64_t pages[2];
    } req = {
        .head = {
            .pdn = p.b.pdn,
            .access = NET_ROCE_ACCESS,
            .virt_addr = 0x5000,
            .length = 2 * RDMA_PAGE_SIZE,
            .npages = 2,
        },
        /* in reverse order */
        .pages = { page + RDMA_PAGE_SIZE, page },
    };
    QRoceMr mr = { .iova = 0x5000 };
    QRoceCmd c = {
        .class = NET_ROCE_CLASS,
        .cmd = NET_ROCE_CMD_REG_USER_MR,
        .req = &req,
        .req_len = sizeof(req),
        .desc_len = sizeof(req.head),
        .rsp = &mr.nums,
        .rsp_room = sizeof(mr.nums),
    };
    uint8_t byte = 0x42;

    assert_ack(qroce_cmd_raw(p.b.dev, &c));
    qtest_memwrite(p.host->qts, p.a.mr.mem, &byte, 1);
    nr_post(&p.a, RDMA_WR_RDMA_WRITE, 1, 1, &mr);
    nr_expect_wc(&p.a, &p.a.scq, 1, NET_ROCE_WC_RDMA_WRITE);
    g_assert_cmphex(qtest_readb(p.host->qts, page + RDMA_PAGE_SIZE), ==, byte);
    /* In between there may be no end. */
    c.desc_len = sizeof(req.head) + 8;
    assert_refused(qroce_cmd_raw(p.b.dev, &c));
    g_assert_cmpint(c.used_len, ==, 1);
}

/* Commands and work come before DRIVER_OK, as from the authors' driver. */
static void test_before_driver_ok(void)
{
    g_autoptr(QRdmaHost) host = nr_host_start("");
    QRoce *d = qroce_open(host, 4);
    uint8_t gid[RDMA_GID_LEN];
    NrEnd e;

    qroce_start(d, QROCE_FEATURES, false);
    qrdma_ipv4_gid(gid, 1);
    assert_ack(qroce_add_gid(d, 0, gid));
    e = nr_end_new(d, RDMA_QPT_RC);
    nr_connect(&e, &e);
    nr_send_one(&e, &e, 1);
    qroce_driver_ok(d);
    nr_send_one(&e, &e, 2);
    qroce_close(d);
}

static void test_gids(void)
{
    g_autoptr(QRoce) d = nr_alone();
    uint8_t gid[RDMA_GID_LEN];
    NetRoceDelGid del = { 127 };

    qrdma_ipv4_gid(gid, 77);
    assert_ack(qroce_add_gid(d, 127, gid));
    assert_refused(qroce_add_gid(d, 128, gid));
    assert_refused(qroce_add_gid(d, 0xffff, gid));
    assert_ack(qroce_call_void(d, DEL_GID, &del));
    assert_refused(qroce_call_void(d, DEL_GID, &del));
    del.index = 128;
    assert_refused(qroce_call_void(d, DEL_GID, &del));
}

/* A driver uses RoCE after its first command, not when it accepts bit 55. */
static bool has_driver(QRoce *d)
{
    g_autoptr(QDict) info = qrdma_query(d->host->qts, "'device': 'd0'");

    return qdict_get_bool(info, "driver");
}

static void test_begin(void)
{
    g_autoptr(QRdmaHost) host = nr_host_start("");
    QRoce *d = qroce_open(host, 4);

    qroce_start(d, QROCE_FEATURES, true);
    g_assert_false(has_driver(d));
    qroce_create_pd(d);
    g_assert_true(has_driver(d));
    qvirtio_reset(&d->pci->vdev);
    g_assert_false(has_driver(d));
    qroce_close(d);
}

const QRdmaTest net_roce_command_tests[] = {
    { "query", test_query },
    { "query-qp", test_query_qp },
    { "states", test_states },
    { "short-reg-user-mr", test_short_reg_user_mr },
    { "before-driver-ok", test_before_driver_ok },
    { "gids", test_gids },
    { "begin", test_begin },
    { }
};
