/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-net-roce: the NIC, as a driver without RoCE uses it. */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "net-roce-test.h"
#include "wire.h"
#include "standard-headers/linux/virtio_net.h"

#define NIC_FEATURES (1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_NET_F_MAC | \
                      1ull << VIRTIO_NET_F_MTU | \
                      1ull << VIRTIO_NET_F_STATUS | \
                      1ull << VIRTIO_NET_F_CTRL_VQ)

/* A device on a netdev whose other end the test has */
typedef struct Nic {
    Wire wire;
    QRdmaHost *host;
    QRoce *d;
} Nic;

static Nic nic_new(uint64_t features)
{
    Nic n;

    wire_open(&n.wire);
    n.host = qrdma_host_start("-netdev %s,id=n0 -device virtio-net-roce-pci,"
                              "netdev=n0,addr=4,id=d0,mac=52:54:00:12:34:01,"
                              "host_mtu=9000," NR_PROPS, n.wire.netdev);
    n.d = qroce_open(n.host, 4);
    qroce_start(n.d, features, true);
    return n;
}

static void nic_free(Nic *n)
{
    qroce_close(n->d);
    qrdma_host_stop(n->host);
    wire_close(&n->wire);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Nic, nic_free)

static QRoceRing *rx(Nic *n)
{
    return &n->d->rings[NET_ROCE_RX_VQ];
}

static QRoceRing *tx(Nic *n)
{
    return &n->d->rings[NET_ROCE_TX_VQ];
}

/* A frame that is not RoCE comes to the driver as it was sent. */
static void expect_frame(Nic *n, uint8_t tag)
{
    static const uint8_t hdr[NET_ROCE_HDR_SIZE] = { [10] = 1 };
    uint8_t frame[FRAME_MAX], got[FRAME_MAX];
    size_t size = make_udp(frame, tag);
    uint64_t at = 0;
    uint32_t len;

    qrdma_wait_until(n->d, (at = qroce_reap(n->d, rx(n), &len)));
    g_assert_cmpint(len, ==, sizeof(hdr) + size);
    qtest_memread(n->host->qts, at, got, len);
    g_assert_cmpmem(got, sizeof(hdr), hdr, sizeof(hdr));
    g_assert_cmpmem(got + sizeof(hdr), size, frame, size);
}

static void send_to_driver(Nic *n, uint8_t tag)
{
    uint8_t frame[FRAME_MAX];

    wire_send(&n->wire, frame, make_udp(frame, tag));
}

static void add_buffer(Nic *n, uint32_t size)
{
    qroce_post(n->d, rx(n), NULL, size, true);
}

static void send_to_wire(Nic *n, uint8_t tag)
{
    uint8_t bytes[FRAME_MAX] = {}, got[FRAME_MAX];
    size_t size = make_udp(bytes + NET_ROCE_HDR_SIZE, tag);

    qroce_post(n->d, tx(n), bytes, NET_ROCE_HDR_SIZE + size, false);
    g_assert_cmpint(wire_recv(&n->wire, got, SOON_MS), ==, size);
    g_assert_cmpmem(got, size, bytes + NET_ROCE_HDR_SIZE, size);
    qrdma_wait_until(n->d, qroce_in_device(n->d, tx(n)) == 0);
}

static void test_config(void)
{
    static const uint8_t mac[] = { 0x52, 0x54, 0, 0x12, 0x34, 1 };
    g_auto(Nic) n = nic_new(NIC_FEATURES);
    const NetRoceConfig *c = &n.d->config;

    g_assert_cmphex(qvirtio_get_features(&n.d->pci->vdev), ==,
                    NIC_FEATURES | 1ull << NET_ROCE_F_ROCE);
    g_assert_cmpmem(c->mac, sizeof(c->mac), mac, sizeof(mac));
    g_assert_cmpint(c->status, ==, NET_ROCE_LINK_UP);
    g_assert_cmpint(c->max_virtqueue_pairs, ==, 1);
    g_assert_cmpint(c->mtu, ==, 9000);
    g_assert_cmpint(c->max_rdma_qps, ==, NR_MAX_QP);
    g_assert_cmpint(c->max_rdma_cqs, ==, NR_MAX_CQ);
}

/* More frames than the rings have entries, with and without bit 55 */
static void test_frames(const void *data)
{
    g_auto(Nic) n = nic_new(NIC_FEATURES | (data ? QROCE_FEATURES : 0));

    for (int i = 0; i < 2 * NR_RING; i++) {
        add_buffer(&n, 1526);
        send_to_driver(&n, i);
        expect_frame(&n, i);
        send_to_wire(&n, i);
    }
}

/* A frame without a buffer is lost, and so is one that is too long for it. */
static void test_no_room(void)
{
    g_auto(Nic) n = nic_new(NIC_FEATURES);

    send_to_driver(&n, 1);
    qrdma_host_settle(n.host);
    add_buffer(&n, 90 + NET_ROCE_HDR_SIZE - 1);
    send_to_driver(&n, 2);
    qrdma_host_settle(n.host);
    g_assert_cmpint(qroce_in_device(n.d, rx(&n)), ==, 1);
    qvirtio_reset(&n.d->pci->vdev);
    qroce_start(n.d, NIC_FEATURES, true);
    add_buffer(&n, 90 + NET_ROCE_HDR_SIZE);
    send_to_driver(&n, 3);
    expect_frame(&n, 3);
}

/* Frames of the driver that are too short go nowhere, and come back. */
static void test_bad_frames(void)
{
    static const size_t sizes[] = { 1, 11, 12, 25 };
    g_auto(Nic) n = nic_new(NIC_FEATURES);
    uint8_t got[FRAME_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        qroce_post(n.d, tx(&n), NULL, sizes[i], false);
        qrdma_wait_until(n.d, qroce_in_device(n.d, tx(&n)) == 0);
    }
    g_assert_cmpint(wire_recv(&n.wire, got, NEVER_MS), ==, 0);
    send_to_wire(&n, 5);
}

static void set_link(Nic *n, bool up)
{
    qtest_qmp_assert_success(n->host->qts, "{'execute': 'set_link', "
                             "'arguments': {'name': 'n0', 'up': %i}}", up);
}

static void test_link(void)
{
    g_auto(Nic) n = nic_new(NIC_FEATURES);

    set_link(&n, false);
    g_assert_cmpint(qroce_config(n.d).status, ==, 0);
    n.d->pci->vdev.bus->wait_config_isr_status(&n.d->pci->vdev,
                                               qrdma_patience());
    set_link(&n, true);
    g_assert_cmpint(qroce_config(n.d).status, ==, NET_ROCE_LINK_UP);
    send_to_wire(&n, 1);
}

/* Other classes, and that of RoCE without bit 55, are refused. */
static void test_classes(void)
{
    g_auto(Nic) n = nic_new(NIC_FEATURES);

    for (int class = 0; class < 256; class++) {
        QRoceCmd c = { .class = class, .rsp_room = 64 };

        assert_refused(qroce_cmd_raw(n.d, &c));
        g_assert_cmpint(c.used_len, ==, 1);
    }
    send_to_wire(&n, 1);
}

static void test_stopped(void)
{
    g_auto(Nic) n = nic_new(NIC_FEATURES);

    add_buffer(&n, 1526);
    qtest_qmp_assert_success(n.host->qts, "{'execute': 'stop'}");
    qtest_qmp_assert_success(n.host->qts, "{'execute': 'cont'}");
    send_to_driver(&n, 7);
    expect_frame(&n, 7);
    send_to_wire(&n, 8);
}

/* The driver must negotiate again before the device accesses memory. */
static void test_no_bus_master(void)
{
    g_auto(Nic) n = nic_new(NIC_FEATURES);
    QPCIDevice *pdev = n.d->pci->pdev;
    QVirtioDevice *vdev = &n.d->pci->vdev;
    uint16_t command = qpci_config_readw(pdev, PCI_COMMAND);

    g_assert_true(vdev->bus->get_status(vdev) & VIRTIO_CONFIG_S_FEATURES_OK);
    qpci_config_writew(pdev, PCI_COMMAND, command & ~PCI_COMMAND_MASTER);
    qpci_config_writew(pdev, PCI_COMMAND, command);
    g_assert_cmphex(vdev->bus->get_status(vdev), ==,
                    VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER);
}

/* Neither a NIC nor a port of RoCE can have a multicast address. */
static void test_bad_mac(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0");

    qrdma_qmp_refused(host->qts, "{'execute': 'device_add', 'arguments': "
                      "{'driver': 'virtio-net-roce-pci', 'netdev': 'n0', "
                      "'mac': '01:00:5e:00:00:01'}}",
                      "mac=01:00:5e:00:00:01 is a multicast address");
}

const QRdmaTest net_roce_nic_tests[] = {
    { "config", test_config },
    { "frames", .run_case = test_frames, .data = GUINT_TO_POINTER(0) },
    { "frames-with-bit-55", .run_case = test_frames,
      .data = GUINT_TO_POINTER(1) },
    { "no-room", test_no_room },
    { "bad-frames", test_bad_frames },
    { "link", test_link },
    { "classes", test_classes },
    { "stopped", test_stopped },
    { "no-bus-master", test_no_bus_master },
    { "bad-mac", test_bad_mac },
    { }
};
