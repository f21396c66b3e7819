/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest chooses the addresses that interrupts of pvrdma are written to. Such
 * a write can reset or unplug the device at once, inside the work that caused
 * the interrupt.
 *
 * The device is behind a root port, whose registers have addresses (ECAM).
 * With ASan the tests that unplug the device found freed memory.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "pvrdma-test.h"

#define PORT_DEVFN QPCI_DEVFN(4, 0)
#define DEVICE_DEVFN (1 << 8 | 1)

typedef struct Nested {
    QRdmaHost *host;
    QPvrdma *dev;
    uint64_t port;                  /* address of the port's configuration */
    uint64_t slot_control;          /* address of its register */
} Nested;

static Nested nested_new(void)
{
    Nested n = { .port = qrdma_ecam(PORT_DEVFN) };
    g_autofree QPCIDevice *port = NULL;
    uint8_t gid[RDMA_GID_LEN];

    n.host = qrdma_host_start_machine("q35",
        /* The port, and not ACPI, unplugs the devices in its slot */
        "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off "
        "-netdev hubport,id=n0,hubid=0 "
        "-device pcie-root-port,id=rp0,addr=4,chassis=1 "
        "-device vmxnet3,bus=rp0,netdev=n0,addr=0.0,multifunction=on,"
        "mac=52:54:00:12:34:01 "
        "-device pvrdma,bus=rp0,netdev=n0,addr=0.1,id=d0,max-uar=4");
    qrdma_enable_ecam(n.host, PORT_DEVFN);
    port = qpci_device_find(n.host->bus, PORT_DEVFN);
    n.slot_control = n.port + PCI_EXP_SLTCTL +
                     qpci_find_capability(port, PCI_CAP_ID_EXP, 0);
    n.dev = qpvrdma_open(n.host, DEVICE_DEVFN);
    qpvrdma_start(n.dev);
    qrdma_ipv4_gid(gid, 1);
    assert_done(qpvrdma_create_bind(n.dev, 0, gid));
    return n;
}

static void nested_free(Nested *n)
{
    /* The process works: it answers, and ends in order. */
    qtest_qmp_assert_success(n->host->qts, "{'execute': 'query-status'}");
    qpvrdma_close(n->dev);
    qrdma_host_stop(n->host);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Nested, nested_free)

/* Interrupts with @vector write @data to @addr from now on. */
static void aim(Nested *n, unsigned vector, uint64_t addr, uint32_t data)
{
    QPCIDevice *pci = n->dev->pci;
    uint64_t at = pci->msix_table_off + vector * PCI_MSIX_ENTRY_SIZE;

    qpci_io_writel(pci, pci->msix_table_bar, at + PCI_MSIX_ENTRY_LOWER_ADDR,
                   addr);
    qpci_io_writel(pci, pci->msix_table_bar, at + PCI_MSIX_ENTRY_UPPER_ADDR,
                   addr >> 32);
    qpci_io_writel(pci, pci->msix_table_bar, at + PCI_MSIX_ENTRY_DATA, data);
}

static void aim_at_power(Nested *n, unsigned vector)
{
    aim(n, vector, n->slot_control,
        PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF);
}

/* The device writes to itself, with an armed CQ. */
static void write_some(Nested *n)
{
    PvEnd e = pv_end_new(n->dev, 0, RDMA_QPT_RC);

    pv_end_init(&e);
    pv_end_connect(&e, &e);
    aim_at_power(n, PVRDMA_VECTOR_COMPLETION);
    pv_arm(&e, &e.scq);
    for (int i = 0; i < 8; i++) {
        pv_post(&e, RDMA_WR_RDMA_WRITE, i, 100, &e.mr);
    }
}

static void check_unplugged(Nested *n)
{
    for (int i = 0; i < 20; i++) {
        qtest_clock_step(n->host->qts, QRDMA_MS);
    }
    g_assert_cmphex(qtest_readl(n->host->qts, qrdma_ecam(DEVICE_DEVFN)), ==,
                    UINT32_MAX);
    qrdma_qmp_refused(n->host->qts, "{'execute': 'query-rdma', 'arguments': "
                      "{'device': 'd0'}}", "d0");
}

/* The interrupt comes inside the write of REQUEST. */
static void test_reply_unplugs(void)
{
    g_auto(Nested) n = nested_new();
    PvrdmaCmdHandle req = {};

    aim_at_power(&n, PVRDMA_VECTOR_RESPONSE);
    qpvrdma_begin(n.dev, CREATE_PD, &req);
    check_unplugged(&n);
}

static void test_completion_unplugs(void)
{
    g_auto(Nested) n = nested_new();

    write_some(&n);
    check_unplugged(&n);
}

/* The reply resets the bus: the device forgets its driver. */
static void test_reply_resets(void)
{
    g_auto(Nested) n = nested_new();
    PvrdmaCmdHandle req = {};

    aim(&n, PVRDMA_VECTOR_RESPONSE, n.port + PCI_INTERRUPT_LINE,
        PCI_BRIDGE_CTL_BUS_RESET << 16);
    qpvrdma_begin(n.dev, CREATE_PD, &req);
    g_assert_cmphex(qtest_readw(n.host->qts, qrdma_ecam(DEVICE_DEVFN) +
                                PCI_COMMAND), ==, 0);
}

const QRdmaTest pvrdma_nested_tests[] = {
    { "reply-unplugs", test_reply_unplugs },
    { "completion-unplugs", test_completion_unplugs },
    { "reply-resets", test_reply_resets },
    { }
};
