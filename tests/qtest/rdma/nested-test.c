/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest chooses the addresses that completions and interrupts are written to.
 * Such a write can reset or unplug the device at once, inside the work that
 * caused the write. It must not free memory that this work uses.
 *
 * The device is behind a root port, so that all of its configuration space
 * has addresses (ECAM). With ASan each of these tests found freed memory.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "rdma-test.h"

#define PORT_SLOT 4
#define PORT_DEVFN QPCI_DEVFN(PORT_SLOT, 0)
#define PEER_SLOT 5
#define DEVICE_DEVFN (1 << 8)

typedef struct Nested {
    QRdmaHost *host;
    TestPair t;
    uint64_t port_exp;              /* address of the port's PCIe capability */
    uint64_t device_exp;            /* address of the device's */
} Nested;

static uint64_t pcie_capability(QRdmaHost *host, int devfn)
{
    g_autofree QPCIDevice *dev = qpci_device_find(host->bus, devfn);
    uint8_t cap;

    g_assert_nonnull(dev);
    cap = qpci_find_capability(dev, PCI_CAP_ID_EXP, 0);
    g_assert_cmpuint(cap, !=, 0);
    return qrdma_ecam(devfn) + cap;
}

static Nested nested_new_with(const char *props, uint64_t features)
{
    Nested n = {};
    QRdma *d;

    n.host = qrdma_host_start_machine("q35",
        /* The port, and not ACPI, unplugs the device in its slot */
        "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off "
        "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "-device virtio-rdma-pci,netdev=n1,addr=5,max-qp=8,max-cq=4 "
        "-device pcie-root-port,id=rp0,addr=%d,chassis=1 "
        "-device virtio-rdma-pci,id=rdma0,bus=rp0,netdev=n0,max-qp=8,"
        "max-cq=4%s", PORT_SLOT, props);
    qrdma_enable_ecam(n.host, PORT_DEVFN);
    d = qrdma_open(n.host, DEVICE_DEVFN);
    if (strstr(props, "layout=demo")) {
        qrdma_use_demo(d);
    }
    qrdma_start(d, QRDMA_FEATURES | features, 0);
    n.t = test_pair_on(d, RDMA_QPT_RC, 20, NULL);
    n.port_exp = pcie_capability(n.host, PORT_DEVFN);
    n.device_exp = pcie_capability(n.host, DEVICE_DEVFN);
    return n;
}

static Nested nested_new(void)
{
    return nested_new_with("", 0);
}

/* The device may be gone, so free the test's objects without using it. */
static void nested_free(Nested *n)
{
    /* The process works: it answers and ends in order */
    qtest_qmp_assert_success(n->host->qts, "{'execute': 'query-status'}");
    qrdma_host_stop(n->host);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Nested, nested_free)

/* The next interrupt of @cq, which is armed, writes @data to @addr. */
static void aim_interrupt(Nested *n, QRdmaCq *cq, uint64_t addr,
                          uint32_t data)
{
    qrdma_ring_aim(cq->ring, addr, data);
    assert_ok(qrdma_req_notify_cq(cq, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION));
}

/*
 * Send messages to the device itself: the interrupt comes from inside the
 * engine.
 */
static void send_some(Nested *n, uint64_t wr_id, unsigned count)
{
    RdmaSge from = qrdma_sge(n->t.mr_a, 0, 3000);
    RdmaSge to = qrdma_sge(n->t.mr_b, 0, 3000);
    uint8_t wqe[QRDMA_WQE_ROOM];

    for (unsigned i = 0; i < count; i++) {
        qrdma_recv(n->t.b, wr_id, &to);
    }
    for (unsigned i = 0; i < count; i++) {
        RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, wr_id, &from);

        qrdma_post_raw(n->t.a, &n->t.a->sq, wqe,
                       qrdma_encode_send(n->t.a, &wr, wqe), 0,
                       i == count - 1);
    }
    for (int i = 0; i < 20; i++) {
        qtest_clock_step(n->host->qts, QRDMA_MS);
    }
}

/* Assert that the function was reset: it decodes no address any more. */
static void check_reset(Nested *n)
{
    g_assert_cmphex(qtest_readw(n->host->qts, qrdma_ecam(DEVICE_DEVFN) +
                                PCI_COMMAND), ==, 0);
}

/* Assert that the device is gone from the slot, and from QEMU. */
static void check_unplugged(Nested *n)
{
    g_assert_cmphex(qtest_readl(n->host->qts, qrdma_ecam(DEVICE_DEVFN)), ==,
                    0xffffffff);
    qtest_qmp_eventwait(n->host->qts, "DEVICE_DELETED");
}

static void test_interrupt_resets_the_function(void)
{
    for (int side = 0; side < 2; side++) {
        Nested n = nested_new();

        aim_interrupt(&n, side ? n.t.cq_a : n.t.cq_b,
                      n.device_exp + PCI_EXP_DEVCTL,
                      PCI_EXP_DEVCTL_BCR_FLR);
        send_some(&n, 1, 8);
        check_reset(&n);
        nested_free(&n);
    }
}

/* The work begins in the doorbell, and the reset comes in the doorbell, too. */
static void test_interrupt_in_a_doorbell_resets_the_function(void)
{
    g_auto(Nested) n = nested_new_with("", QRDMA_DIRECT_QPS);

    aim_interrupt(&n, n.t.cq_a, n.device_exp + PCI_EXP_DEVCTL,
                  PCI_EXP_DEVCTL_BCR_FLR);
    send_some(&n, 1, 1);
    check_reset(&n);
}

/* A QP that writes to itself, with a direct CQ that has events */
static QRdmaQp *direct_loop(Nested *n, QRdmaEq *eq)
{
    QRdmaCq *cq = qrdma_create_direct_cq(n->t.dev, 64, eq);
    QRdmaQp *qp = qrdma_create_loop(n->t.pd, cq, cq);

    qrdma_arm_direct_cq(cq, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION);
    return qp;
}

static void write_some(QRdmaQp *qp, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, 0, NULL));
    }
    qrdma_settle(qp->dev);
}

static void test_events_reset_the_function(void)
{
    for (int direct = 0; direct < 2; direct++) {
        Nested n = nested_new_with("", QRDMA_DIRECT_CQS |
                                   (direct ? QRDMA_DIRECT_QPS
                                           : 0));
        QRdmaEq *eq = qrdma_create_eq(n.t.dev, 2);
        QRdmaQp *qp = direct_loop(&n, eq);

        qrdma_ring_aim(eq->ring, n.device_exp + PCI_EXP_DEVCTL,
                       PCI_EXP_DEVCTL_BCR_FLR);
        write_some(qp, 3);
        check_reset(&n);
        nested_free(&n);
    }
}

static void test_completion_resets_the_function(void)
{
    g_auto(Nested) n = nested_new();
    QRdmaCq *cq = n.t.cq_b;
    QRdmaDesc desc = {
        .addr = n.device_exp + PCI_EXP_DEVCTL, .len = 64, .write = true,
    };

    /* A buffer after those of the fixture */
    qrdma_ring_add(cq->ring, &desc, 1);
    send_some(&n, PCI_EXP_DEVCTL_BCR_FLR, 20);
    send_some(&n, PCI_EXP_DEVCTL_BCR_FLR, 4);
    check_reset(&n);
}

static void test_interrupt_unplugs_the_device(void)
{
    for (int side = 0; side < 2; side++) {
        Nested n = nested_new();

        aim_interrupt(&n, side ? n.t.cq_a : n.t.cq_b,
                      n.port_exp + PCI_EXP_SLTCTL,
                      PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF);
        send_some(&n, 1, 8);
        check_unplugged(&n);
        nested_free(&n);
    }
}

/* The interrupt comes from inside the delivery of a frame by the netdev. */
static void test_interrupt_at_a_frame_unplugs_the_device(void)
{
    g_auto(Nested) n = nested_new();
    QRdma *peer = qrdma_open(n.host, QPCI_DEVFN(PEER_SLOT, 0));
    RdmaSge to = qrdma_sge(n.t.mr_b, 0, 3000);
    RdmaSge from;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp;
    QRdmaMr *mr;

    qrdma_start(peer, 0, 0);
    qrdma_setup_gids(peer, 2);
    pd = qrdma_alloc_pd(peer);
    cq = qrdma_create_cq(peer, 20);
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    mr = qrdma_reg_mr(pd, TEST_IOVA_A, TEST_MR_SIZE, TEST_ACCESS_ALL);
    assert_ok(qrdma_modify_qp_state(n.t.b, RDMA_QPS_RESET));
    qrdma_connect(qp, n.t.b, NULL);
    from = qrdma_sge(mr, 0, 3000);

    for (int i = 0; i < 8; i++) {
        qrdma_recv(n.t.b, 0, &to);
    }
    aim_interrupt(&n, n.t.cq_b, n.port_exp + PCI_EXP_SLTCTL,
                  PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF);
    for (int i = 0; i < 8; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_SEND, 0, &from));
    }
    for (int i = 0; i < 20; i++) {
        qtest_clock_step(n.host->qts, QRDMA_MS);
    }
    check_unplugged(&n);
    /* The peer is alive */
    g_assert_cmphex(qrdma_device_status(peer) & VIRTIO_CONFIG_S_DRIVER_OK,
                    !=, 0);
}

/* Wait until QEMU has freed memory by RCU, which a failed device_add does. */
static void drain_rcu(QTestState *qts)
{
    qrdma_qmp_refused(qts, "{'execute': 'device_add', 'arguments': "
                      "{'driver': 'none-of-this-name'}}", "");
}

/*
 * A chain with a register of some device in it, which QEMU maps by a copy, and
 * an empty buffer, which QEMU refuses. QEMU must free the copy, or it aborts
 * when the device's address space ends.
 */
static void test_unplug_after_a_refused_chain(void)
{
    /* With this option the device has its own address space. */
    g_auto(Nested) n = nested_new_with(",iommu_platform=on",
                                       QRDMA_F(VIRTIO_F_IOMMU_PLATFORM));
    QRdmaRing *ring = qrdma_ring(n.t.dev, VIRTIO_RDMA_CTRL_VQ);
    QRdmaDesc chain[] = { { .addr = n.device_exp, .len = 4 }, { .len = 0 } };

    qrdma_ring_add(ring, chain, ARRAY_SIZE(chain));
    qrdma_ring_kick(ring);
    qrdma_wait_until(n.t.dev, qrdma_needs_reset(n.t.dev));
    qtest_writew(n.host->qts, n.port_exp + PCI_EXP_SLTCTL,
                 PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF);
    check_unplugged(&n);
    drain_rcu(n.host->qts);
}

typedef struct {
    bool low_power;                 /* D3, or else without bus mastering */
    const char *props;
} NoMemory;

static void allow_memory(Nested *n, const NoMemory *how, bool allowed)
{
    QPCIDevice *pdev = n->t.dev->pci->pdev;
    uint8_t pm = qpci_find_capability(pdev, PCI_CAP_ID_PM, 0);
    uint16_t command = qpci_config_readw(pdev, PCI_COMMAND);

    g_assert_cmpuint(pm, !=, 0);
    if (how->low_power) {
        qpci_config_writew(pdev, pm + PCI_PM_CTRL, allowed ? 0 : 3);
    } else {
        qpci_config_writew(pdev, PCI_COMMAND,
                           allowed ? command | PCI_COMMAND_MASTER
                                   : command & ~PCI_COMMAND_MASTER);
    }
}

/*
 * The peer does not answer, so the device has an error completion to write. It
 * must wait until the device may access memory, and has its driver again.
 */
static void test_no_memory_access(const void *data)
{
    const NoMemory *how = data;
    g_auto(Nested) n = nested_new_with(how->props, 0);
    QVirtioDevice *vdev = &n.t.dev->pci->vdev;
    uint8_t status = qrdma_device_status(n.t.dev);
    RdmaSge sge = qrdma_sge(n.t.mr_a, 0, 100);

    assert_ok(qrdma_modify_qp_state(n.t.b, RDMA_QPS_RESET));
    qrdma_post(n.t.a, qrdma_wr(RDMA_WR_SEND, 1, &sge));
    qrdma_settle(n.t.dev);
    allow_memory(&n, how, false);
    qtest_clock_step(n.host->qts, 10000 * QRDMA_MS);
    qrdma_expect_none(n.t.cq_a);

    allow_memory(&n, how, true);
    g_assert_cmphex(qrdma_device_status(n.t.dev), ==,
                    status & ~(VIRTIO_CONFIG_S_DRIVER_OK |
                               (n.t.dev->demo ? VIRTIO_CONFIG_S_FEATURES_OK
                                              : 0)));
    qtest_clock_step(n.host->qts, 10000 * QRDMA_MS);
    qrdma_expect_none(n.t.cq_a);
    vdev->bus->set_status(vdev, status);
    for (int i = 0; i < 100; i++) {
        qtest_clock_step(n.host->qts, 100 * QRDMA_MS);
    }
    qrdma_expect(n.t.cq_a, 1, RDMA_WC_RETRY_EXC_ERR);
}

const QRdmaTest nested_tests[] = {
    { "power/no-memory-access-in-d3",
      .run_case = test_no_memory_access,
      .data = &(NoMemory) { true, "" } },
    { "power/no-memory-access-in-d3-with-demo",
      .run_case = test_no_memory_access,
      .data = &(NoMemory) { true, ",layout=demo,mac=" TEST_MAC } },
    { "power/no-memory-access-without-bus-master",
      .run_case = test_no_memory_access,
      .data = &(NoMemory) { false, "" } },
    { "power/no-memory-access-without-bus-master-with-demo",
      .run_case = test_no_memory_access,
      .data = &(NoMemory) { false, ",layout=demo,mac=" TEST_MAC } },
    { "nested/unplug-after-a-refused-chain",
      test_unplug_after_a_refused_chain },
    { "nested/interrupt-at-a-frame-unplugs-the-device",
      test_interrupt_at_a_frame_unplugs_the_device },
    { "nested/interrupt-resets-the-function",
      test_interrupt_resets_the_function },
    { "nested/interrupt-in-a-doorbell-resets-the-function",
      test_interrupt_in_a_doorbell_resets_the_function },
    { "nested/events-reset-the-function", test_events_reset_the_function },
    { "nested/completion-resets-the-function",
      test_completion_resets_the_function },
    { "nested/interrupt-unplugs-the-device",
      test_interrupt_unplugs_the_device },
    {}
};
