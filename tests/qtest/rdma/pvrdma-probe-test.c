/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probe of a pvrdma device, as a driver does it.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "pvrdma-test.h"

/* The driver divides by these, or takes them as masks. */
static void test_caps(void)
{
    g_autoptr(QPvrdma) d = pv_alone_new();
    const uint8_t guid[] = { 0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 1 };

    g_assert_cmpint(qpvrdma_read(d, PVRDMA_REG_VERSION), ==,
                    PVRDMA_VERSION_WIDE_PFN);
    qpvrdma_start(d);
    g_assert_true(is_power_of_2(d->caps.max_qp_wr));
    g_assert_cmpint(d->caps.max_qp_wr, >=, 512);
    g_assert_true(is_power_of_2(d->caps.max_sge));
    g_assert_true(is_power_of_2(d->caps.max_cqe));
    g_assert_cmpint(d->caps.max_cqe, >=, 1024);
    g_assert_true(is_power_of_2(d->caps.max_srq_wr));
    g_assert_true(is_power_of_2(d->caps.max_uar));
    g_assert_cmpint(d->caps.max_qp, <=, 65535);
    g_assert_cmpint(d->caps.max_fast_reg_page_list_len, ==, 128);
    g_assert_cmpint(d->caps.phys_port_cnt, ==, 1);
    g_assert_cmpint(d->caps.atomic_ops, ==, 3);
    g_assert_cmpint(d->caps.bmme_flags, ==, 7);
    g_assert_cmpint(memcmp(d->caps.node_guid, guid, 8), ==, 0);
}

static void test_port(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    PvrdmaCmdQueryPort req = { .port = 1 };
    PvrdmaRspQueryPort port;
    PvrdmaRspQueryPkey pkey;

    assert_done(qpvrdma_call(d, QUERY_PORT, &req, &port));
    g_assert_cmpint(port.state, ==, RDMA_PORT_ACTIVE);
    g_assert_cmpint(port.phys_state, ==, PVRDMA_PHYS_LINK_UP);
    g_assert_cmpint(port.active_mtu, ==, RDMA_MTU_1024);
    g_assert_cmpint(port.gid_tbl_len, <=, d->caps.gid_tbl_len);
    assert_done(qpvrdma_call(d, QUERY_PKEY, &req, &pkey));
    g_assert_cmphex(pkey.pkey, ==, RDMA_DEFAULT_PKEY);
    /* No other port, and no other P_Key */
    req.index = 1;
    assert_fails(qpvrdma_call(d, QUERY_PKEY, &req, &pkey));
    req.port = 2;
    assert_fails(qpvrdma_call(d, QUERY_PORT, &req, &port));
}

/* The objects of the MAD layer, made while the driver registers the device */
static void test_gsi(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    uint32_t pd = qpvrdma_create_pd(d, 0);
    QPvrdmaMr mr = qpvrdma_get_dma_mr(d, pd);
    QPvrdmaCq cq = qpvrdma_create_cq(d, 0, 1024);
    PvrdmaCmdCreateQp req = {
        .pd = pd,
        .send_cq = cq.handle,
        .recv_cq = cq.handle,
        .max_send_wr = 128,
        .max_recv_wr = 512,
        .max_send_sge = 2,
        .max_recv_sge = 1,
        .qp_type = RDMA_QPT_GSI,
    };
    QPvrdmaQp qp = {};

    g_assert_cmpint(mr.lkey, !=, 0);
    assert_done(qpvrdma_try_create_qp(d, 0, &req, &qp));
    g_assert_cmpint(qp.qpn, ==, RDMA_QPN_GSI);
    /* There is an entry now. */
    req.dir = 0;
    assert_fails(qpvrdma_try_create_qp(d, 0, &req, &qp));
    assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_QP, RDMA_QPN_GSI));
    assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_CQ, cq.handle));
    assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_MR, mr.handle));
    assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_PD, pd));
}

/* A driver that comes after one that did not clean up, and after one */
static void test_again(void)
{
    QRdmaHost *host = pv_host_start("");
    QPvrdma *d = pv_start(host, 4);
    uint32_t pd = qpvrdma_create_pd(d, 0);

    qpvrdma_close(d);
    d = pv_start(host, 4);
    assert_fails(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_PD, pd));
    qpvrdma_write(d, PVRDMA_REG_IMR, 0xffffffff);
    qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
    qpvrdma_close(d);
    d = pv_start(host, 4);
    qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_UNQUIESCE);
    assert_done(qpvrdma_read(d, PVRDMA_REG_ERR));
    qpvrdma_close(d);
    qrdma_host_stop(host);
}

/* The driver of pvrdma would look for the NIC in function 0. */
static void test_function_0(void)
{
    QRdmaHost *host = qrdma_host_start("-netdev hubport,id=n0,hubid=0");

    qrdma_qmp_refused(host->qts, "{'execute': 'device_add', 'arguments': "
                      "{'driver': 'pvrdma', 'netdev': 'n0', 'addr': '6.0'}}",
                      "function 0");
    qrdma_host_stop(host);
}

/* The device would take addresses of the driver for those of memory. */
static void test_late_iommu(void)
{
    QRdmaHost *host;
    QPvrdma *d;

    if (!qtest_has_device("virtio-iommu-pci")) {
        g_test_skip("no virtio-iommu-pci");
        return;
    }
    host = qrdma_host_start("-netdev hubport,id=n0,hubid=0 "
                            "-device pvrdma,netdev=n0,addr=4.1,"
                            "mac=52:54:00:12:34:01 "
                            "-device virtio-iommu-pci,addr=6");
    d = qpvrdma_open(host, QPCI_DEVFN(4, 1));
    qpvrdma_set_dsr(d);
    g_assert_cmpint(d->caps.gid_types, ==, 0);
    qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE);
    assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
    qpvrdma_close(d);
    qrdma_host_stop(host);
}

const QRdmaTest pvrdma_probe_tests[] = {
    { "caps", test_caps },
    { "port", test_port },
    { "gsi", test_gsi },
    { "again", test_again },
    { "function-0", test_function_0 },
    { "late-iommu", test_late_iommu },
    { }
};
