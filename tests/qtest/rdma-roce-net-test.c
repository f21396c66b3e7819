/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-roce on a netdev of type dgram. The test holds the other end of the
 * netdev, and reads, forwards or keeps every frame.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "libqos/virtio-rdma.h"
#include "rdma/nic.h"
#include "rdma/wire.h"

#define DEVICE "virtio-rdma-pci,max-qp=4,max-cq=4,max-mr=8,max-pd=4"
#define NIC_MAC "52:54:00:aa:bb:0%d"
#define NIC_SLOT 3
#define RDMA_SLOT 4

#define GRH_LEN 40
#define UD_MR_SIZE (64 * 1024)

/* A machine with one port on a wire. */
typedef struct Node {
    Wire wire;
    QRdmaHost *host;
    QRdma *dev;
    QRdmaPd *pd;
    QRdmaMr *mr;
    QRdmaCq *scq;
    QRdmaCq *rcq;
    QRdmaQp *qp;
} Node;

/* Take the device in use and make a QP. */
static void node_setup(Node *n, int id)
{
    n->dev = qrdma_open(n->host, QPCI_DEVFN(RDMA_SLOT, 0));
    qrdma_start(n->dev, 0, 0);
    qrdma_setup_gids(n->dev, id);
    n->pd = qrdma_alloc_pd(n->dev);
    n->mr = qrdma_reg_mr(n->pd, 0x100000, UD_MR_SIZE,
                         RDMA_ACCESS_LOCAL_WRITE);
    n->scq = qrdma_create_cq(n->dev, 40);
    n->rcq = qrdma_create_cq(n->dev, 40);
    n->qp = qrdma_create_qp(n->pd, n->scq, n->rcq, RDMA_QPT_UD);
    qrdma_start_ud(n->qp, QRDMA_QKEY);
}

/* @nic: options of a NIC that shares the netdev, or NULL */
static Node node_start(int id, const char *nic, const char *extra)
{
    Node n = {};
    g_autofree char *nic_args = g_strdup("");

    wire_open(&n.wire);
    if (nic) {
        g_free(nic_args);
        nic_args = g_strdup_printf("-device virtio-net-pci,id=nic,netdev=n0,"
                                   "addr=%d,mac=" NIC_MAC "%s", NIC_SLOT, id,
                                   nic);
    }
    n.host = qrdma_host_start("-netdev %s,id=n0 %s -device " DEVICE
                              ",id=rdma,netdev=n0,addr=%d %s",
                              n.wire.netdev, nic_args, RDMA_SLOT, extra);
    node_setup(&n, id);
    return n;
}

static void node_stop(Node *n)
{
    qrdma_host_stop(n->host);
    wire_close(&n->wire);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Node, node_stop)

static QTestState *node_qts(Node *n)
{
    return n->host->qts;
}

static void node_post_send(Node *n, Node *to, uint64_t wr_id, uint32_t len)
{
    RdmaSge sge = qrdma_sge(n->mr, 0, len);

    qrdma_post(n->qp, qrdma_ud_wr(wr_id, &sge, to->qp, 1));
}

static void node_post_recv(Node *n, uint64_t wr_id)
{
    RdmaSge sge = qrdma_sge(n->mr, 0, 8192);

    qrdma_recv(n->qp, wr_id, &sge);
}

/* A frame that @from sends to @to, caught on the wire. */
static size_t node_catch(Node *from, Node *to, uint32_t len,
                         uint8_t frame[FRAME_MAX])
{
    size_t size;

    qrdma_mr_fill(from->mr, 0, len, 77);
    node_post_send(from, to, 1, len);
    qrdma_expect(from->scq, 1, RDMA_WC_SUCCESS);
    size = wire_recv(&from->wire, frame, SOON_MS);
    g_assert_cmpuint(size, >, len);
    return size;
}

static void node_expect(Node *n, uint64_t wr_id, uint32_t len)
{
    RdmaWc wc;

    qrdma_expect_wc(n->rcq, wr_id, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + len);
    qrdma_mr_check(n->mr, GRH_LEN, len, 77);
}

/* Let @from send to @to over the wires. */
static void node_exchange(Node *from, Node *to, uint32_t len)
{
    uint8_t frame[FRAME_MAX];
    size_t size;

    node_post_recv(to, 2);
    size = node_catch(from, to, len, frame);
    wire_send(&to->wire, frame, size);
    node_expect(to, 2, len);
}

static void node_assert_port(Node *n, bool up, RdmaMtu mtu)
{
    struct virtio_rdma_query_port_rsp port;

    assert_ok(qrdma_query_port(n->dev, 1, &port));
    g_assert_cmpint(port.state, ==, up ? RDMA_PORT_ACTIVE : RDMA_PORT_DOWN);
    g_assert_cmpint(port.active_mtu, ==, mtu);
}

static void set_link(Node *n, const char *name, bool up)
{
    qtest_qmp_assert_success(node_qts(n), "{'execute': 'set_link', "
                             "'arguments': {'name': %s, 'up': %i}}",
                             name, up);
}

/* Tests */

static void test_own(void)
{
    g_auto(Node) a = node_start(1, NULL, "");
    g_auto(Node) b = node_start(2, NULL, "");

    node_exchange(&a, &b, 0);
    node_exchange(&b, &a, 100);
    node_exchange(&a, &b, 4096);
    node_assert_port(&a, true, RDMA_MTU_4096);
}

static void test_shared(void)
{
    g_auto(Node) a = node_start(1, ",host_mtu=9000", "");
    g_auto(Node) b = node_start(2, "", "");
    uint8_t udp[FRAME_MAX], roce[FRAME_MAX], got[FRAME_MAX];
    size_t size;
    Nic nic;

    nic_start(&nic, a.host, NIC_SLOT);

    size = make_udp(udp, 1);
    wire_send(&a.wire, udp, size);
    node_exchange(&b, &a, 1000);
    g_assert_cmpmem(udp, size, got, nic_recv(&nic, got));

    size = make_udp(udp, 2);
    wire_send(&a.wire, udp, size);
    g_assert_cmpmem(udp, size, got, nic_recv(&nic, got));

    /* The NIC gets RoCE frames to GIDs of other devices */
    size = node_catch(&a, &b, 500, roce);
    wire_send(&a.wire, roce, size);
    g_assert_cmpmem(roce, size, got, nic_recv(&nic, got));

    nic_stop(&nic);
}

/*
 * The adapter claims a frame by its addresses and its UDP port. A frame that is
 * not plain RoCEv2 goes to the NIC, whatever its address.
 */
static void test_which_frames_are_claimed(void)
{
    enum { IP = 14, FLAGS = IP + 6, UDP_DPORT = IP + 20 + 2 };
    uint8_t frame[FRAME_MAX], other[FRAME_MAX], got[FRAME_MAX];
    g_auto(Node) a = node_start(1, ",host_mtu=9000", "");
    g_auto(Node) b = node_start(2, "", "");
    size_t size;
    Nic nic;

    nic_start(&nic, a.host, NIC_SLOT);
    size = node_catch(&b, &a, 500, frame);

    memcpy(other, frame, size);
    stw_be_p(other + UDP_DPORT, lduw_be_p(frame + UDP_DPORT) + 1);
    wire_send(&a.wire, other, size);
    g_assert_cmpmem(other, size, got, nic_recv(&nic, got));

    /* a fragment */
    memcpy(other, frame, size);
    other[FLAGS] |= 0x20;
    wire_send(&a.wire, other, size);
    g_assert_cmpmem(other, size, got, nic_recv(&nic, got));

    /* to another MAC address, as it may come on a hub */
    memcpy(other, frame, size);
    other[5] ^= 1;
    wire_send(&a.wire, other, size);
    g_assert_cmpmem(other, size, got, nic_recv(&nic, got));
    memset(other, 0xff, 6);
    wire_send(&a.wire, other, size);
    g_assert_cmpmem(other, size, got, nic_recv(&nic, got));

    /* with a wrong ICRC: it is dropped, and the NIC does not see it either */
    memcpy(other, frame, size);
    other[size - 1] ^= 1;
    node_post_recv(&a, 3);
    wire_send(&a.wire, other, size);
    wire_send(&a.wire, frame, size);
    node_expect(&a, 3, 500);
    size = make_udp(other, 3);
    wire_send(&a.wire, other, size);
    g_assert_cmpmem(other, size, got, nic_recv(&nic, got));

    nic_stop(&nic);
}

static void assert_mac(Node *n, const uint8_t *mac)
{
    g_assert_cmpmem(n->dev->mac, RDMA_MAC_LEN, mac, RDMA_MAC_LEN);
}

static void test_mtu_and_mac_are_the_nics(void)
{
    static const uint8_t mac[] = { 0x52, 0x54, 0x00, 0xaa, 0xbb, 0x01 };
    uint8_t frame[FRAME_MAX];
    Node peer = node_start(2, NULL, "");
    Node n = node_start(1, ",host_mtu=9000", "");

    node_assert_port(&n, true, RDMA_MTU_4096);
    assert_mac(&n, mac);
    node_catch(&n, &peer, 10, frame);
    g_assert_cmpmem(frame + 6, 6, mac, 6);
    node_stop(&n);

    n = node_start(1, ",host_mtu=2300", "");
    node_assert_port(&n, true, RDMA_MTU_2048);
    node_stop(&n);

    n = node_start(1, "", "");
    node_assert_port(&n, true, RDMA_MTU_1024);
    node_stop(&n);
    node_stop(&peer);
}

static void check_link(Node *n, Node *peer, const char *name)
{
    uint8_t frame[FRAME_MAX];
    RdmaMtu mtu = RDMA_MTU_4096;
    size_t size;

    set_link(n, name, false);
    node_assert_port(n, false, mtu);
    /* in */
    node_post_recv(n, 5);
    size = node_catch(peer, n, 64, frame);
    wire_send(&n->wire, frame, size);
    /* out */
    node_post_send(n, peer, 6, 64);
    qrdma_expect(n->scq, 6, RDMA_WC_SUCCESS);
    g_assert_cmpuint(wire_recv(&n->wire, frame, NEVER_MS), ==, 0);
    qrdma_expect_none(n->rcq);

    set_link(n, name, true);
    node_assert_port(n, true, mtu);
    node_catch(n, peer, 64, frame);
    size = node_catch(peer, n, 32, frame);
    wire_send(&n->wire, frame, size);
    node_expect(n, 5, 32);
}

static void test_link_follows_netdev_and_nic(void)
{
    g_auto(Node) shared = node_start(1, ",host_mtu=9000", "");
    g_auto(Node) own = node_start(2, NULL, "");

    check_link(&shared, &own, "n0");
    check_link(&shared, &own, "nic");
    check_link(&own, &shared, "n0");
}

static void check_netdev_del(const char *nic)
{
    uint8_t frame[FRAME_MAX];
    g_auto(Node) peer = node_start(2, NULL, "");
    g_auto(Node) n = node_start(1, nic, "");
    RdmaMtu mtu = RDMA_MTU_4096;

    node_assert_port(&n, true, mtu);
    qtest_qmp_assert_success(node_qts(&n), "{'execute': 'netdev_del', "
                             "'arguments': {'id': 'n0'}}");
    node_assert_port(&n, false, mtu);
    node_post_send(&n, &peer, 1, 64);
    g_assert_cmpuint(wire_recv(&n.wire, frame, NEVER_MS), ==, 0);
    qrdma_reset(n.dev);
}

static void test_netdev_del_takes_the_port_down(void)
{
    check_netdev_del(NULL);
    check_netdev_del(",host_mtu=9000");
}

static void test_nic_unplug_and_plug(void)
{
    static const uint8_t mac[] = { 0x52, 0x54, 0x00, 0xaa, 0xbb, 0x09 };
    uint8_t frame[FRAME_MAX];
    g_auto(Node) peer = node_start(2, NULL, "");
    g_auto(Node) n = node_start(1, ",host_mtu=9000", "");

    qpci_unplug_acpi_device_test(node_qts(&n), "nic", NIC_SLOT);
    node_assert_port(&n, false, RDMA_MTU_4096);
    qtest_qmp_device_add(node_qts(&n), "virtio-net-pci", "nic2",
                         "{'netdev': 'n0', 'addr': '5', 'host_mtu': 2300, "
                         "'mac': '52:54:00:aa:bb:09'}");
    node_assert_port(&n, true, RDMA_MTU_2048);
    node_catch(&n, &peer, 10, frame);
    g_assert_cmpmem(frame + 6, 6, mac, 6);
    node_exchange(&n, &peer, 1000);
    memcpy(n.dev->mac, mac, sizeof(mac));
    node_exchange(&peer, &n, 1000);
}

/*
 * A port with its own MAC address takes frames to that of the NIC, too: peers
 * learn the NIC's MAC address by ARP.
 */
static void test_mac_beside_that_of_the_nic(void)
{
    static const uint8_t mac[] = { 0x52, 0x54, 0x00, 0xaa, 0xbb, 0x77 };
    uint8_t frame[FRAME_MAX];
    g_auto(Node) peer = node_start(2, NULL, "");
    g_auto(Node) n = node_start(1, "", "-global virtio-rdma-device.mac="
                                       "52:54:00:aa:bb:77");

    assert_mac(&n, mac);
    node_catch(&n, &peer, 10, frame);
    g_assert_cmpmem(frame + 6, 6, mac, 6);
    node_exchange(&peer, &n, 100);
    n.dev->mac[5] = 1;
    node_exchange(&peer, &n, 200);
}

/* No frame is dropped, and no frame overtakes another. */
static void check_back_pressure(const char *nic)
{
    const unsigned count = 32, rounds = 8;
    uint8_t frame[FRAME_MAX];
    uint32_t psn = 0;
    g_auto(Node) peer = node_start(2, NULL, "");
    g_auto(Node) n = node_start(1, nic, "");

    for (unsigned r = 0; r < rounds; r++) {
        for (unsigned i = 0; i < count; i++) {
            node_post_send(&n, &peer, i, 4096);
        }
        qrdma_settle(n.dev);
        for (unsigned i = 0; i < count; i++) {
            size_t size = wire_recv(&n.wire, frame, SOON_MS);
            uint32_t got = ldl_be_p(frame + 14 + 20 + 8 + 8) & 0xffffff;

            g_assert_cmpuint(size, >, 4096);
            g_assert(got == psn || (!r && !i));
            psn = (got + 1) & 0xffffff;
            qrdma_expect(n.scq, i, RDMA_WC_SUCCESS);
        }
    }
    g_assert_cmpuint(wire_recv(&n.wire, frame, NEVER_MS), ==, 0);
}

static void test_back_pressure(void)
{
    check_back_pressure(NULL);
    check_back_pressure(",host_mtu=9000");
}

/* A blocked wire delays neither loopback nor flushes. */
static void check_loopback_while_blocked(const char *nic)
{
    const unsigned count = 32;
    uint8_t frame[FRAME_MAX];
    g_auto(Node) peer = node_start(2, NULL, "");
    g_auto(Node) n = node_start(1, nic, "");
    Node self;

    self = n;
    self.scq = qrdma_create_cq(n.dev, 40);
    self.rcq = qrdma_create_cq(n.dev, 40);
    self.qp = qrdma_create_qp(n.pd, self.scq, self.rcq, RDMA_QPT_UD);
    qrdma_start_ud(self.qp, QRDMA_QKEY);

    for (unsigned i = 0; i < count; i++) {
        node_post_send(&n, &peer, i, 4096);
    }
    qrdma_settle(n.dev);
    node_post_recv(&self, 50);
    node_post_send(&self, &self, 51, 64);
    qrdma_expect(self.scq, 51, RDMA_WC_SUCCESS);
    qrdma_expect(self.rcq, 50, RDMA_WC_SUCCESS);
    node_post_recv(&self, 52);
    assert_ok(qrdma_modify_qp_state(self.qp, RDMA_QPS_ERR));
    qrdma_expect(self.rcq, 52, RDMA_WC_WR_FLUSH_ERR);
    node_post_send(&self, &peer, 53, 64);
    qrdma_expect(self.scq, 53, RDMA_WC_WR_FLUSH_ERR);

    for (unsigned i = 0; i < count; i++) {
        g_assert_cmpuint(wire_recv(&n.wire, frame, SOON_MS), >, 4096);
        qrdma_expect(n.scq, i, RDMA_WC_SUCCESS);
    }
}

static void test_loopback_while_blocked(void)
{
    check_loopback_while_blocked(NULL);
    check_loopback_while_blocked(",host_mtu=9000");
}

/* In the machine's time: a frame of 4 KiB takes 34 ms at 1 Mb/s. */
static void test_rate_limit(void)
{
    RdmaQpAttr attr = { .rate_limit = 1000 };
    uint8_t frame[FRAME_MAX];
    g_auto(Node) peer = node_start(2, NULL, "");
    g_auto(Node) n = node_start(1, NULL, "");

    assert_ok(qrdma_modify_qp(n.qp, RDMA_QP_RATE_LIMIT, &attr));
    for (int i = 0; i < 4; i++) {
        node_post_send(&n, &peer, i, 4096);
    }
    for (int i = 0; i < 3; i++) {
        g_assert_cmpuint(wire_recv(&n.wire, frame, SOON_MS), >, 4096);
        qrdma_expect(n.scq, i, RDMA_WC_SUCCESS);
        g_assert_cmpuint(wire_recv(&n.wire, frame, NEVER_MS), ==, 0);
        qrdma_expect_none(n.scq);
        qrdma_clock_step(n.dev, 35 * 1000000);
    }
    g_assert_cmpuint(wire_recv(&n.wire, frame, SOON_MS), >, 4096);
    qrdma_expect(n.scq, 3, RDMA_WC_SUCCESS);
}

/*
 * Frames that the netdev has taken are sent. The next device starts without
 * them.
 */
static void check_unplug(const char *nic)
{
    uint8_t frame[FRAME_MAX];
    g_auto(Node) peer = node_start(2, NULL, "");
    g_auto(Node) n = node_start(1, nic, "");

    for (int i = 0; i < 32; i++) {
        node_post_send(&n, &peer, i, 4096);
    }
    qrdma_settle(n.dev);
    qrdma_close(n.dev);
    qpci_unplug_acpi_device_test(node_qts(&n), "rdma", RDMA_SLOT);
    do {
        while (wire_recv(&n.wire, frame, 0)) {
            continue;
        }
        /* QEMU may send more, now that there is room. */
        qrdma_host_settle(n.host);
    } while (wire_recv(&n.wire, frame, 0));
    qtest_qmp_device_add(node_qts(&n), "virtio-rdma-pci", "rdma2",
                         "{'netdev': 'n0', 'addr': %s, 'max-qp': 4, "
                         "'max-cq': 4}", stringify(RDMA_SLOT));
    node_setup(&n, 1);
    node_exchange(&n, &peer, 4096);
    node_exchange(&peer, &n, 4096);
}

static void test_unplug_with_frames_queued(void)
{
    check_unplug(NULL);
    check_unplug(",host_mtu=9000");
}

static void test_stopped_vm_takes_no_frames(void)
{
    uint8_t frame[FRAME_MAX];
    g_auto(Node) peer = node_start(2, NULL, "");
    g_auto(Node) n = node_start(1, ",host_mtu=9000", "");
    uint8_t before[128], after[128];
    size_t size;

    node_post_recv(&n, 3);
    size = node_catch(&peer, &n, 64, frame);
    qrdma_mr_read(n.mr, 0, before, sizeof(before));
    qtest_qmp_assert_success(node_qts(&n), "{'execute': 'stop'}");
    wire_send(&n.wire, frame, size);
    /* The monitor answers in the same loop that takes frames. */
    for (int i = 0; i < 10; i++) {
        g_usleep(1000);
        qtest_qmp_assert_success(node_qts(&n), "{'execute': 'query-status'}");
    }
    qrdma_mr_read(n.mr, 0, after, sizeof(after));
    g_assert_cmpmem(before, sizeof(before), after, sizeof(after));
    qtest_qmp_assert_success(node_qts(&n), "{'execute': 'cont'}");
    qrdma_expect_none(n.rcq);
    wire_send(&n.wire, frame, size);
    node_expect(&n, 3, 64);
}

static size_t pcap_count(const char *path)
{
    g_autofree char *data = NULL;
    size_t len, count = 0;

    g_assert_true(g_file_get_contents(path, &data, &len, NULL));
    for (size_t pos = 24; pos + 16 <= len; count++) {
        pos += 16 + ldl_he_p(data + pos + 8);
    }
    return count;
}

/* In any order of filter-dump and the device */
static void test_filter_dump_sees_both_directions(void)
{
    static const char *const nics[] = { NULL, ",host_mtu=9000" };

    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < ARRAY_SIZE(nics); i++) {
            g_autofree char *path = NULL;
            g_autofree char *args = g_strdup("");
            Node peer = node_start(2, NULL, "");
            Node n;

            path = g_strdup_printf("%s/pcap", peer.wire.dir);
            if (!late) {
                g_free(args);
                args = g_strdup_printf("-object filter-dump,id=d0,netdev=n0,"
                                       "file=%s", path);
            }
            n = node_start(1, nics[i], args);
            if (late) {
                qtest_qmp_assert_success(node_qts(&n),
                    "{'execute': 'object-add', 'arguments': {'id': 'd0', "
                    "'qom-type': 'filter-dump', 'netdev': 'n0', "
                    "'file': %s}}", path);
            }
            node_exchange(&n, &peer, 100);
            node_exchange(&peer, &n, 100);
            node_exchange(&peer, &n, 200);
            g_assert_cmpuint(pcap_count(path), ==, 3);
            node_stop(&n);
            unlink(path);
            node_stop(&peer);
        }
    }
}

static void check_info(QTestState *qts, const char *want)
{
    QDict *rsp = qtest_qmp(qts, "{'execute': 'qom-get', 'arguments': "
                           "{'path': '/objects/r0', 'property': 'info'}}");

    g_assert_cmpstr(qdict_get_str(rsp, "return"), ==, want);
    qobject_unref(rsp);
}

static void test_info(void)
{
    g_auto(Node) n = node_start(1, NULL,
                                "-netdev hubport,id=h0,hubid=0 "
                                "-object rdma-roce,id=r0,netdev=h0,"
                                "mac=52:54:00:01:02:03");

    check_info(node_qts(&n), "no device uses it");
    qtest_qmp_device_add(node_qts(&n), "virtio-rdma-pci", "d1",
                         "{'rdmadev': 'r0', 'addr': '6'}");
    check_info(node_qts(&n), "netdev h0, 52:54:00:01:02:03, up");
}

static void test_refusals_say_why(void)
{
    static const char *const refused[][2] = {
        { "{'execute': 'device_add', 'arguments': {'driver': "
          "'virtio-rdma-pci', 'rdmadev': 'r0', 'addr': '7'}}",
          "RDMA backend 'r0' is already in use" },
        { "{'execute': 'object-del', 'arguments': {'id': 'r0'}}",
          "object 'r0' is in use" },
        { "{'execute': 'qom-set', 'arguments': {'path': '/objects/r0', "
          "'property': 'netdev', 'value': 'n0'}}",
          "cannot be set while a device uses" },
        { "{'execute': 'device_add', 'arguments': {'driver': "
          "'virtio-net-pci', 'netdev': 'later', 'addr': '8'}}",
          "in use" },
        { "{'execute': 'object-add', 'arguments': {'qom-type': 'rdma-roce', "
          "'id': 'r1'}}",
          "Parameter 'netdev' is required" },
        { "{'execute': 'object-add', 'arguments': {'qom-type': 'rdma-roce', "
          "'id': 'r1', 'netdev': 'h0', 'mtu': 100}}",
          "is 100, and must be 0 or in the range 576 to 65535" },
        { "{'execute': 'object-add', 'arguments': {'qom-type': 'rdma-roce', "
          "'id': 'r1', 'netdev': 'h0', 'mac': '33:33:00:00:00:01'}}",
          "takes a unicast MAC address" },
        { "{'execute': 'object-add', 'arguments': {'qom-type': "
          "'filter-impair', 'id': 'l1', 'netdev': 'h0', 'drop': 10001}}",
          "is 10001, and must be at most 10000" },
    };
    g_auto(Node) n = node_start(1, NULL,
                                "-object rdma-roce,id=r0,netdev=later "
                                "-netdev hubport,id=h0,hubid=0");
    QTestState *qts = node_qts(&n);

    qrdma_qmp_refused(qts, "{'execute': 'device_add', 'arguments': {'driver': "
                      "'virtio-rdma-pci', 'rdmadev': 'r0', 'addr': '6'}}",
                      "netdev 'later' not found");
    qtest_qmp_assert_success(qts, "{'execute': 'netdev_add', 'arguments': "
                             "{'type': 'hubport', 'id': 'later', "
                             "'hubid': 0}}");
    qtest_qmp_device_add(qts, "virtio-rdma-pci", "d1", "{'rdmadev': 'r0', "
                         "'addr': '6', 'max-qp': 4, 'max-cq': 4}");
    for (int i = 0; i < ARRAY_SIZE(refused); i++) {
        qrdma_qmp_refused(qts, refused[i][0], refused[i][1]);
    }
}

static const QRdmaTest roce_net_tests[] = {
    { "own", test_own },
    { "shared", test_shared },
    { "which-frames-are-claimed", test_which_frames_are_claimed },
    { "mtu-and-mac-are-the-nics", test_mtu_and_mac_are_the_nics },
    { "link-follows-netdev-and-nic", test_link_follows_netdev_and_nic },
    { "netdev-del-takes-the-port-down", test_netdev_del_takes_the_port_down },
    { "nic-unplug-and-plug", test_nic_unplug_and_plug },
    { "mac-beside-that-of-the-nic", test_mac_beside_that_of_the_nic },
    { "back-pressure", test_back_pressure },
    { "loopback-while-blocked", test_loopback_while_blocked },
    { "rate-limit", test_rate_limit },
    { "unplug-with-frames-queued", test_unplug_with_frames_queued },
    { "stopped-vm-takes-no-frames", test_stopped_vm_takes_no_frames },
    { "filter-dump-sees-both-directions",
      test_filter_dump_sees_both_directions },
    { "info", test_info },
    { "refusals-say-why", test_refusals_say_why },
    {}
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qrdma_add_tests("/rdma-roce-net/", roce_net_tests);
    return g_test_run();
}
