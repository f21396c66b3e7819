/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-rdma: reset, hot-plug and other changes to a device at work. */
#include "qemu/osdep.h"
#include <sys/resource.h>
#include "qobject/qdict.h"
#include "rdma-test.h"
#include "standard-headers/linux/pci_regs.h"
#include "standard-headers/linux/virtio_config.h"

#define PLUG_SLOT 5

static RdmaSendWr write_of(TestPair *t, RdmaSge *sge, uint64_t wr_id)
{
    return qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, wr_id, sge, t->mr_b, 0);
}

/* Check that data moves from a to b. */
static void check_works(TestPair *t, uint8_t seed)
{
    RdmaSge sge = qrdma_sge(t->mr_a, 0, 5000);
    RdmaSendWr wr = write_of(t, &sge, seed);

    qrdma_mr_fill(t->mr_a, 0, 5000, seed);
    qrdma_post_expect_wc(t->a, wr, RDMA_WC_RDMA_WRITE);
    qrdma_mr_check(t->mr_b, 0, 5000, seed);
}

/* Post WRs that stay outstanding, because the peer has no receives. */
static void keep_busy(TestPair *t)
{
    RdmaSge sge = qrdma_sge(t->mr_a, 0, 3000);

    for (int i = 0; i < 8; i++) {
        qrdma_recv(t->a, 0, &sge);
        qrdma_post(t->a, qrdma_wr(RDMA_WR_SEND, 0, &sge));
    }
}

static void test_reset_with_traffic_in_flight(void)
{
    for (int i = 0; i < 5; i++) {
        TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
        RdmaQpAttr attr;

        keep_busy(&t);
        assert_ok(qrdma_req_notify_cq(t.cq_a, 1));
        if (i % 2) {
            qrdma_clock_step(t.dev, QRDMA_MS);
        }
        qvirtio_reset(&t.dev->pci->vdev);
        qrdma_clock_step(t.dev, 1000 * QRDMA_MS);
        qrdma_start(t.dev, 0, 0);
        t.a = &(QRdmaQp) { .dev = t.dev, .qpn = 2 };
        assert_status(qrdma_query_qp(t.a, &attr), NOENT);
        t = test_loopback_pair(RDMA_QPT_RC, NULL);
        check_works(&t, i + 1);
    }
}

static void test_reset_destroys_everything(void)
{
    for (int i = 0; i < 3; i++) {
        QRdma *d = test_device();
        QRdmaPd *pd = qrdma_alloc_pd(d);
        QRdmaCq *cq = NULL;
        uint32_t pdn, cqn;

        for (int n = 1; n < TEST_MAX_PD; n++) {
            qrdma_alloc_pd(d);
        }
        for (int n = 0; n < TEST_MAX_CQ; n++) {
            cq = qrdma_create_cq(d, 8);
        }
        for (int n = 2; n < TEST_MAX_QP; n++) {
            qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
        }
        for (int n = 0; n < TEST_MAX_MR; n++) {
            qrdma_reg_mr(pd, 0x1000, 8192, TEST_ACCESS_ALL);
        }
        assert_status(qrdma_try_alloc_pd(d, &pdn), NOMEM);
        assert_status(qrdma_try_create_cq(d, 8, &cqn), NOMEM);
    }
}

static void test_destroy_qp_with_work_outstanding(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);

    keep_busy(&t);
    assert_ok(qrdma_destroy_qp(t.a));
    qrdma_clock_step(t.dev, 1000 * QRDMA_MS);
    qrdma_expect_none(t.cq_a);
    t.a = qrdma_create_qp(t.pd, t.cq_a, t.cq_a, RDMA_QPT_RC);
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_RESET));
    qrdma_connect(t.a, t.b, NULL);
    check_works(&t, 9);
}

static void test_reset_qp_returns_all_buffers_without_completions(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);

    keep_busy(&t);
    assert_ok(qrdma_modify_qp_state(t.a, RDMA_QPS_RESET));
    qrdma_expect_none(t.cq_a);
    qrdma_reap(&t.a->sq);
    qrdma_reap(&t.a->rq);
    g_assert_cmpuint(t.a->sq.retired, ==, 8);
    g_assert_cmpuint(t.a->rq.retired, ==, 8);
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_RESET));
    qrdma_connect(t.a, t.b, NULL);
    check_works(&t, 9);
}

static void test_err_flushes_in_order(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QRdmaCq *recv_cq = qrdma_create_cq(t.dev, 64);
    QRdmaQp *qp = qrdma_create_qp(t.pd, t.cq_a, recv_cq, RDMA_QPT_RC);

    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_RESET));
    qrdma_connect(qp, t.b, NULL);
    for (int i = 0; i < 8; i++) {
        qrdma_recv(qp, 100 + i, NULL);
        /* unsignalled sends complete too when they are flushed */
        qrdma_post_send(qp, &(RdmaSendWr) {
            .wr_id = i, .opcode = RDMA_WR_SEND,
        });
    }
    qrdma_settle(t.dev);
    assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_ERR));
    for (int i = 0; i < 8; i++) {
        qrdma_expect(t.cq_a, i, RDMA_WC_WR_FLUSH_ERR);
        qrdma_expect(recv_cq, 100 + i, RDMA_WC_WR_FLUSH_ERR);
    }
    qrdma_recv(qp, 200, NULL);
    qrdma_expect(recv_cq, 200, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(t.cq_a);
}

/* A driver does this first when it thinks that a device runs wild. */
static void test_bus_master_off_with_traffic_in_flight(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QPCIDevice *pdev = t.dev->pci->pdev;
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 5000);
    RdmaSendWr wr = write_of(&t, &sge, 1);
    uint16_t cmd;

    keep_busy(&t);
    cmd = qpci_config_readw(pdev, PCI_COMMAND);
    qpci_config_writew(pdev, PCI_COMMAND, cmd & ~PCI_COMMAND_MASTER);
    qrdma_post_send(t.a, &wr);
    qrdma_clock_step(t.dev, 100 * QRDMA_MS);
    qrdma_settle(t.dev);
    qpci_config_writew(pdev, PCI_COMMAND, cmd);
    t = test_loopback_pair(RDMA_QPT_RC, NULL);
    check_works(&t, 3);
}

/*
 * Without DRIVER_OK the device serves no virtqueue. After DRIVER_OK it serves
 * all buffers that were made available meanwhile, in order.
 */
static void test_virtqueues_wait(const void *data)
{
    bool bus_master = GPOINTER_TO_INT(data);
    TestPair t = test_pair_on(test_device(), RDMA_QPT_RC, 64, NULL);
    QVirtioDevice *vdev = &t.dev->pci->vdev;
    QPCIDevice *pdev = t.dev->pci->pdev;
    QRdmaRing *ctrl = qrdma_ring(t.dev, VIRTIO_RDMA_CTRL_VQ);
    uint8_t status = qrdma_device_status(t.dev);
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 5000);
    RdmaSendWr wr = write_of(&t, &sge, 1);
    const uint8_t create_pd = VIRTIO_RDMA_CMD_CREATE_PD;
    QRdmaDesc desc[2] = {
        { t.dev->ctrl_req, 1, false },
        { t.dev->ctrl_rsp, 5, true },
    };
    uint16_t cmd = qpci_config_readw(pdev, PCI_COMMAND);
    uint16_t answered, head;
    uint32_t len;

    qrdma_mr_fill(t.mr_a, 0, 5000, 7);
    if (bus_master) {
        qpci_config_writew(pdev, PCI_COMMAND, cmd & ~PCI_COMMAND_MASTER);
    } else {
        vdev->bus->set_status(vdev, status & ~VIRTIO_CONFIG_S_DRIVER_OK);
    }
    g_assert_cmphex(qrdma_device_status(t.dev), ==,
                    status & ~VIRTIO_CONFIG_S_DRIVER_OK);

    answered = qrdma_ring_used_idx(ctrl);
    qrdma_write(t.dev, t.dev->ctrl_req, &create_pd, 1);
    qrdma_ring_add(ctrl, desc, 2);
    qrdma_ring_kick(ctrl);
    qrdma_post_send(t.a, &wr);
    qrdma_settle(t.dev);
    g_assert_cmpuint(qrdma_ring_used_idx(ctrl), ==, answered);
    qrdma_expect_none(t.cq_a);

    if (bus_master) {
        qpci_config_writew(pdev, PCI_COMMAND, cmd);
        qrdma_settle(t.dev);
        g_assert_cmpuint(qrdma_ring_used_idx(ctrl), ==, answered);
    }
    vdev->bus->set_status(vdev, status);
    qrdma_wait_until(t.dev, qrdma_ring_get(ctrl, &head, &len));
    g_assert_cmpuint(len, ==, 5);
    g_assert_cmpuint(qtest_readb(t.dev->host->qts, t.dev->ctrl_rsp), ==,
                     VIRTIO_RDMA_S_OK);
    qrdma_expect_wc(t.cq_a, 1, RDMA_WC_RDMA_WRITE, NULL);
    qrdma_mr_check(t.mr_b, 0, 5000, 7);
    g_assert_cmpint(qrdma_qp_state(t.b), ==, RDMA_QPS_RTS);
    check_works(&t, 8);
}

static void test_stop_and_cont(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QTestState *qts = t.dev->host->qts;
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 5000);
    RdmaSendWr wr = write_of(&t, &sge, 1);
    uint8_t wqe[QRDMA_WQE_ROOM];

    keep_busy(&t);
    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    qrdma_settle(t.dev);
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    /* sends from before the stop are still there */
    for (int i = 0; i < 8; i++) {
        RdmaSge to = qrdma_sge(t.mr_b, 0, 3000);

        qrdma_recv(t.b, 0, &to);
    }
    qrdma_clock_step(t.dev, 100 * QRDMA_MS);
    for (int i = 0; i < 8; i++) {
        qrdma_expect_wc(t.cq_a, 0, RDMA_WC_SEND, NULL);
    }
    qrdma_post_raw(t.a, &t.a->sq, wqe, qrdma_encode_send(t.a, &wr, wqe), 0,
                   true);
    qrdma_expect_wc(t.cq_a, 1, RDMA_WC_RDMA_WRITE, NULL);
}

static void test_link_state_reaches_the_port(void)
{
    QRdma *d = test_device();
    QTestState *qts = d->host->qts;
    struct virtio_rdma_query_port_rsp p;

    qvirtio_pci_set_msix_configuration_vector(d->pci, &d->host->alloc, 0);
    g_array_append_val(d->mem, d->pci->config_msix_addr);
    qtest_writel(qts, d->pci->config_msix_addr, 0);
    qtest_qmp_assert_success(qts, "{'execute': 'set_link', "
                             "'arguments': {'name': 'n0', 'up': false}}");
    qvirtio_wait_config_isr(&d->pci->vdev, 5 * G_USEC_PER_SEC);
    assert_ok(qrdma_query_port(d, 1, &p));
    g_assert_cmpuint(p.state, ==, RDMA_PORT_DOWN);
    g_assert_cmpuint(p.phys_state, ==, 3);
    qtest_qmp_assert_success(qts, "{'execute': 'set_link', "
                             "'arguments': {'name': 'n0', 'up': true}}");
    qvirtio_wait_config_isr(&d->pci->vdev, 5 * G_USEC_PER_SEC);
    assert_ok(qrdma_query_port(d, 1, &p));
    g_assert_cmpuint(p.state, ==, RDMA_PORT_ACTIVE);
}

/* A pair on a device that was just plugged into the shared machine. */
static TestPair plugged_pair(QRdma *d)
{
    qrdma_start(d, 0, 0);
    return test_pair_on(d, RDMA_QPT_RC, 64, NULL);
}

static void add_netdev(QTestState *qts)
{
    qtest_qmp_assert_success(qts, "{'execute': 'netdev_add', 'arguments': "
                             "{'type': 'hubport', 'id': 'hp', 'hubid': 5}}");
}

static void del_netdev(QTestState *qts)
{
    qtest_qmp_assert_success(qts, "{'execute': 'netdev_del', 'arguments': "
                             "{'id': 'hp'}}");
}

/* @backend: the property of the device that names it */
static TestPair plug(QRdmaHost *host, const char *backend)
{
    g_autofree char *args = g_strdup_printf(
        "{%s, 'addr': '5', 'max-qp': 8, 'max-cq': 4}", backend);

    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "plugged", args, NULL);
    return plugged_pair(qrdma_open(host, QPCI_DEVFN(PLUG_SLOT, 0)));
}

static void unplug(QRdma *d)
{
    qpci_unplug_acpi_device_test(d->host->qts, "plugged", PLUG_SLOT);
    qrdma_close(d);
}

static void test_hotplug_and_unplug_while_traffic_runs(void)
{
    QRdmaHost *host = test_device()->host;
    QTestState *qts = host->qts;

    add_netdev(qts);
    for (int i = 0; i < 3; i++) {
        TestPair t = plug(host, "'netdev': 'hp'");

        check_works(&t, i + 1);
        keep_busy(&t);
        qpci_unplug_acpi_device_test(qts, "plugged", PLUG_SLOT);
        qrdma_clock_step(test_device(), 100 * QRDMA_MS);
        qrdma_close(t.dev);
    }
    del_netdev(qts);
}

static void test_hotplug_of_backend_objects(void)
{
    QRdmaHost *host = test_device()->host;
    QTestState *qts = host->qts;

    add_netdev(qts);
    for (int i = 0; i < 2; i++) {
        TestPair t;

        qtest_qmp_assert_success(qts, "{'execute': 'object-add', "
            "'arguments': {'qom-type': 'rdma-roce', 'id': 'r0', "
            "'netdev': 'hp'}}");
        t = plug(host, "'rdmadev': 'r0'");
        check_works(&t, i + 1);
        /* not while the object is in use */
        qrdma_qmp_refused(qts, "{'execute': 'object-del', "
                          "'arguments': {'id': 'r0'}}", "");
        unplug(t.dev);
        qtest_qmp_assert_success(qts, "{'execute': 'object-del', "
                                 "'arguments': {'id': 'r0'}}");
    }
    del_netdev(qts);
}

static void check_netdev_goes_away(bool back)
{
    QRdmaHost *host = test_device()->host;
    QTestState *qts = host->qts;
    struct virtio_rdma_query_port_rsp p;
    QRdma *d;
    TestPair t;

    add_netdev(qts);
    t = plug(host, "'netdev': 'hp'");
    d = t.dev;
    keep_busy(&t);
    del_netdev(qts);
    qrdma_settle(d);
    assert_ok(qrdma_query_port(d, 1, &p));
    g_assert_cmpuint(p.state, ==, RDMA_PORT_DOWN);
    if (back) {
        /* This netdev is a new one, for the next device. */
        add_netdev(qts);
        qrdma_settle(d);
        assert_ok(qrdma_query_port(d, 1, &p));
        g_assert_cmpuint(p.state, ==, RDMA_PORT_DOWN);
    }
    unplug(d);
}

static void test_netdev_goes_away_under_the_device(void)
{
    check_netdev_goes_away(false);
}

static void test_netdev_goes_away_and_comes_back(void)
{
    QTestState *qts = test_device()->host->qts;

    /* The second round needs resources that the first one must have freed */
    for (int i = 0; i < 2; i++) {
        check_netdev_goes_away(true);
        del_netdev(qts);
    }
}

static void test_system_reset(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=5,max-qp=8,max-cq=4");
    QRdma *d = qrdma_open(host, QPCI_DEVFN(PLUG_SLOT, 0));
    TestPair t = plugged_pair(d);

    keep_busy(&t);
    qtest_system_reset(host->qts);
    qrdma_close(d);
    d = qrdma_open(host, QPCI_DEVFN(PLUG_SLOT, 0));
    t = plugged_pair(d);
    check_works(&t, 1);
}

/*
 * Host notifiers of queues are file descriptors. The device works without them.
 */
static void test_out_of_file_descriptors(void)
{
    QRdma *d = test_own_device("max-qp=8,max-cq=4");
    struct rlimit limit, none;
    unsigned before, full;
    QRdmaSrq *srq;
    TestPair t;
    QRdmaQp *qp;

    qrdma_start(d, 0, 0);
    t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
    before = qrdma_open_files(d->host->qts);
    qp = qrdma_create_qp(t.pd, t.cq_a, t.cq_a, RDMA_QPT_RC);
    srq = qrdma_create_srq(t.pd, 8, 1);
    g_assert_cmpuint(qrdma_open_files(d->host->qts), ==, before + 3);

    g_assert_cmpint(prlimit(qtest_pid(d->host->qts), RLIMIT_NOFILE, NULL,
                            &limit), ==, 0);
    none = limit;
    none.rlim_cur = before + 3;
    g_assert_cmpint(prlimit(qtest_pid(d->host->qts), RLIMIT_NOFILE, &none,
                            NULL), ==, 0);
    assert_ok(qrdma_destroy_qp(t.a));
    for (int i = 0; i < 3; i++) {
        t.a = qrdma_create_qp(t.pd, t.cq_a, t.cq_a, RDMA_QPT_RC);
    }
    assert_ok(qrdma_modify_qp_state(t.b, RDMA_QPS_RESET));
    qrdma_connect(t.a, t.b, NULL);
    check_works(&t, 1);

    /* queues that have a descriptor give it back */
    full = qrdma_open_files(d->host->qts);
    assert_ok(qrdma_destroy_qp(qp));
    assert_ok(qrdma_destroy_srq(srq));
    g_assert_cmpuint(qrdma_open_files(d->host->qts), ==, full - 3);
    check_works(&t, 2);

    /* the device tries again for a new driver */
    g_assert_cmpint(prlimit(qtest_pid(d->host->qts), RLIMIT_NOFILE, &limit,
                            NULL), ==, 0);
    t = plugged_pair(d);
    g_assert_cmpuint(qrdma_open_files(d->host->qts), ==, before);
    check_works(&t, 3);
    qrdma_host_stop(d->host);
}

const QRdmaTest lifecycle_tests[] = {
    { "out-of-file-descriptors", test_out_of_file_descriptors },
    { "reset-with-traffic-in-flight", test_reset_with_traffic_in_flight },
    { "reset-destroys-everything", test_reset_destroys_everything },
    { "destroy-qp-with-work-outstanding",
      test_destroy_qp_with_work_outstanding },
    { "reset-qp-returns-all-buffers",
      test_reset_qp_returns_all_buffers_without_completions },
    { "err-flushes-in-order", test_err_flushes_in_order },
    { "virtqueues-wait-for-driver-ok", .run_case = test_virtqueues_wait,
      .data = GINT_TO_POINTER(false) },
    { "bus-mastering-off-takes-driver-ok-away",
      .run_case = test_virtqueues_wait, .data = GINT_TO_POINTER(true) },
    { "bus-master-off-with-traffic-in-flight",
      test_bus_master_off_with_traffic_in_flight },
    { "stop-and-cont", test_stop_and_cont },
    { "link-state-reaches-the-port", test_link_state_reaches_the_port },
    { "hotplug-and-unplug-while-traffic-runs",
      test_hotplug_and_unplug_while_traffic_runs },
    { "hotplug-of-backend-objects", test_hotplug_of_backend_objects },
    { "netdev-goes-away-under-the-device",
      test_netdev_goes_away_under_the_device },
    { "netdev-goes-away-and-comes-back", test_netdev_goes_away_and_comes_back },
    { "system-reset", test_system_reset },
    {}
};
