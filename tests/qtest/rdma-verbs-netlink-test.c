/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs with gid-mode=add: races that rdma/verbs-address-test.c does not
 * test, and hosts whose RDMA device makes addresses GIDs.
 *
 * With the double of libibverbs the net device is the loopback device of a
 * network namespace, where only the test makes addresses GIDs.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/sockets.h"
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include "qobject/qdict.h"
#include "rdma/verbs-test.h"

#define IPV4 "10.77.0.9"
#define IPV6 "fd00:77::9"
/* The host's index of a GID that a test made */
#define HOST_INDEX 5
#define LINK_LOCAL "fe80::77:9"
#define ALLOWED "10.0.0.0/8 fe80::/10 fd00:77::/64"

static void gid_of(const char *text, uint8_t gid[RDMA_GID_LEN])
{
    memset(gid, 0, RDMA_GID_LEN);
    if (inet_pton(AF_INET6, text, gid) != 1) {
        memset(gid + 10, 0xff, 2);
        g_assert_cmpint(inet_pton(AF_INET, text, gid + 12), ==, 1);
    }
}

/* Number of times the net device has this address, with any prefix */
static unsigned count_addresses(const char *text)
{
    struct ifaddrs *all;
    unsigned n = 0;

    g_assert_cmpint(getifaddrs(&all), ==, 0);
    for (struct ifaddrs *a = all; a; a = a->ifa_next) {
        char got[INET6_ADDRSTRLEN] = "";
        struct sockaddr *sa = a->ifa_addr;

        if (sa && sa->sa_family == AF_INET) {
            inet_ntop(AF_INET, &((struct sockaddr_in *)sa)->sin_addr, got,
                      sizeof(got));
        } else if (sa && sa->sa_family == AF_INET6) {
            inet_ntop(AF_INET6, &((struct sockaddr_in6 *)sa)->sin6_addr, got,
                      sizeof(got));
        }
        n += !strcmp(got, text);
    }
    freeifaddrs(all);
    return n;
}

#define await_addresses(d, text, n) \
    qrdma_wait_until((d), count_addresses(text) == (n))

static void start(Verbs *v)
{
    qrdma_start(v->dev, 0, 0);
    qrdma_setup_gids(v->dev, 1);
}

static Verbs *device_new(void)
{
    Verbs *v = verbs_host_adding(NULL);

    qtest_qmp_device_add(v->host->qts, "virtio-rdma-pci", "rdma0",
                         "{'rdmadev': 'r0', 'addr': '4', "
                         "'allowed-gids': '" ALLOWED "'}");
    v->dev = qrdma_open(v->host, QPCI_DEVFN(VERBS_SLOT, 0));
    start(v);
    return v;
}

static VerbsWaiting begin_add(Verbs *v, uint16_t index, const char *text)
{
    struct virtio_rdma_add_gid_req req = {
        .gid_type = cpu_to_le32(VIRTIO_RDMA_GID_TYPE_ROCE_V2),
        .index = cpu_to_le16(index),
        .port_num = cpu_to_le32(1),
    };

    gid_of(text, req.gid);
    return verbs_send_cmd(v, VIRTIO_RDMA_CMD_ADD_GID, &req, sizeof(req), 0);
}

/* Add an address, which the host makes a GID. */
static void add(Verbs *v, uint16_t index, const char *text)
{
    VerbsWaiting w = begin_add(v, index, text);

    await_addresses(v->dev, text, 1);
    fake_verbs_tell(v->fake, "gid %d %s", HOST_INDEX, text);
    assert_ok(verbs_await_status(&w));
}

/* Delete the host's GID, and wait until the address is gone. */
static void await_gone(Verbs *v, const char *text)
{
    fake_verbs_tell(v->fake, "gid %d none", HOST_INDEX);
    await_addresses(v->dev, text, 0);
}

static void set_address(const char *name, const char *text)
{
    struct ifreq req = {};
    struct sockaddr_in *in = (struct sockaddr_in *)&req.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    g_assert_cmpint(fd, >=, 0);
    g_strlcpy(req.ifr_name, name, sizeof(req.ifr_name));
    in->sin_family = AF_INET;
    g_assert_cmpint(inet_pton(AF_INET, text, &in->sin_addr), ==, 1);
    g_assert_cmpint(ioctl(fd, SIOCSIFADDR, &req), ==, 0);
    close(fd);
}

/* An address that the host already had stays, whatever its prefix and label. */
static void test_host_keeps_its_own(void)
{
    VerbsWaiting w;
    unsigned looks;
    Verbs *v;

    if (!verbs_own_network()) {
        return;
    }
    set_address("lo:1", "10.66.0.9");
    v = device_new();
    looks = fake_verbs_calls(v->fake, "query_gid_table");
    w = begin_add(v, 2, "10.66.0.9");
    /* After the first query the backend adds the address */
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "query_gid_table") >
                             looks + 1);
    fake_verbs_tell(v->fake, "gid %d 10.66.0.9", HOST_INDEX);
    assert_ok(verbs_await_status(&w));
    g_assert_cmpint(count_addresses("10.66.0.9"), ==, 1);
    assert_ok(qrdma_del_gid(v->dev, 2, 1));
    qrdma_alloc_pd(v->dev);
    g_assert_cmpint(count_addresses("10.66.0.9"), ==, 1);
    verbs_free(v);
    g_assert_cmpint(count_addresses("10.66.0.9"), ==, 1);
    set_address("lo:1", "0.0.0.0");
}

static void test_exit_while_a_gid_is_added(void)
{
    Verbs *v;
    VerbsWaiting w;

    if (!verbs_own_network()) {
        return;
    }
    v = device_new();
    add(v, 2, IPV4);
    w = begin_add(v, 3, LINK_LOCAL);
    await_addresses(v->dev, LINK_LOCAL, 1);
    g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
    qrdma_host_stop(v->host);
    g_assert_cmpint(count_addresses(IPV4), ==, 0);
    g_assert_cmpint(count_addresses(LINK_LOCAL), ==, 0);
    fake_verbs_free(v->fake);
    g_free(v);
}

/*
 * The guest changes the command to another address before the first is there.
 */
static void test_command_changes(void)
{
    g_autoptr(Verbs) v = NULL;
    VerbsWaiting w;
    uint8_t other[RDMA_GID_LEN];

    if (!verbs_own_network()) {
        return;
    }
    v = device_new();
    w = begin_add(v, 2, IPV4);
    await_addresses(v->dev, IPV4, 1);
    gid_of(IPV6, other);
    /* The request is in the first half of the page, the answer in the second */
    qrdma_write(v->dev, w.cmd.req + 1, other, RDMA_GID_LEN);
    fake_verbs_tell(v->fake, "gid %d " IPV4, HOST_INDEX);
    await_addresses(v->dev, IPV6, 1);
    await_addresses(v->dev, IPV4, 0);
    fake_verbs_tell(v->fake, "gid %d " IPV6, HOST_INDEX);
    assert_ok(verbs_await_status(&w));
    assert_ok(qrdma_del_gid(v->dev, 2, 1));
    await_gone(v, IPV6);
}

/* Where the host has an RDMA device */

#define NET_IPV4 "10.78.0."
#define NET_IPV6 "fd00:78::"

typedef struct Host {
    QRdmaHost *qemu;
    QRdma *dev[2];
} Host;

/* Two devices, with addresses that end in 1 and 2. */
static Host on_host_start(void)
{
    Host h;

    h.qemu = qrdma_host_start(
        "-object rdma-verbs,id=a0,ibdev=%s,gid-mode=add "
        "-object rdma-verbs,id=a1,ibdev=%s,gid-mode=add "
        "-device virtio-rdma-pci,rdmadev=a0,addr=4,"
        "allowed-gids='" NET_IPV4 "0/24 " NET_IPV6 "/64' "
        "-device virtio-rdma-pci,rdmadev=a1,addr=5,"
        "allowed-gids='" NET_IPV4 "0/24 " NET_IPV6 "/64'",
        qrdma_ibdev(), qrdma_ibdev());
    for (int i = 0; i < 2; i++) {
        h.dev[i] = qrdma_open(h.qemu, QPCI_DEVFN(4 + i, 0));
        qrdma_start(h.dev[i],
                    QRDMA_FEATURES, 0);
    }
    return h;
}

static void on_host_addresses(Host *h, unsigned n)
{
    for (int i = 1; i <= 2; i++) {
        g_autofree char *v4 = g_strdup_printf(NET_IPV4 "%d", i);
        g_autofree char *v6 = g_strdup_printf(NET_IPV6 "%d", i);

        await_addresses(h->dev[0], v4, n);
        await_addresses(h->dev[0], v6, n);
    }
}

static void on_host_add(Host *h)
{
    for (int i = 0; i < 2; i++) {
        QRdma *d = h->dev[i];
        g_autofree char *v4 = g_strdup_printf(NET_IPV4 "%d", i + 1);
        g_autofree char *v6 = g_strdup_printf(NET_IPV6 "%d", i + 1);

        gid_of(v6, d->gid[0]);
        gid_of(v4, d->gid[1]);
        assert_ok(qrdma_add_gid(d, 0, d->gid[0]));
        assert_ok(qrdma_add_gid(d, 1, d->gid[1]));
    }
    on_host_addresses(h, 1);
}

/* A message from the first device to the second one by these GIDs. */
static void on_host_send(Host *h, uint8_t gid_index)
{
    enum { LEN = 5000 };
    QRdmaPath path = { .gid_index = gid_index };
    RdmaRecvWr recv_wr = { .wr_id = 1, .num_sge = 1 };
    RdmaSendWr send_wr = {
        .wr_id = 2,
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED,
        .num_sge = 1,
    };
    QRdmaCq *cq[2];
    QRdmaQp *qp[2];
    QRdmaMr *mr[2];
    RdmaSge sge[2];

    for (int i = 0; i < 2; i++) {
        QRdmaPd *pd = qrdma_alloc_pd(h->dev[i]);

        cq[i] = qrdma_create_cq(h->dev[i], 8);
        qp[i] = qrdma_create_qp(pd, cq[i], cq[i], RDMA_QPT_RC);
        mr[i] = qrdma_reg_mr(pd, VERBS_IOVA_A, VERBS_MR_SIZE,
                             VERBS_ACCESS_ALL);
        sge[i] = qrdma_sge(mr[i], 100, LEN);
    }
    qrdma_connect(qp[0], qp[1], &path);
    recv_wr.sg_list = &sge[1];
    send_wr.sg_list = &sge[0];
    qrdma_mr_fill(mr[0], 100, LEN, gid_index + 1);
    qrdma_post_recv(qp[1], &recv_wr);
    qrdma_post_send(qp[0], &send_wr);
    qrdma_expect(cq[0], 2, RDMA_WC_SUCCESS);
    qrdma_expect(cq[1], 1, RDMA_WC_SUCCESS);
    qrdma_mr_check(mr[1], 100, LEN, gid_index + 1);
}

static void test_on_host(void)
{
    Host h;

    h = on_host_start();
    on_host_add(&h);
    on_host_send(&h, 0);
    on_host_send(&h, 1);
    for (int i = 0; i < 2; i++) {
        qrdma_start(h.dev[i], 0, 0);
    }
    on_host_addresses(&h, 0);
    /* The same again; the machine ends while the addresses are in use */
    on_host_add(&h);
    on_host_send(&h, 1);
    qrdma_host_stop(h.qemu);
    on_host_addresses(&h, 0);
}

/* A GID of a VLAN needs a net device of that VLAN on top of the port's. */
static void test_on_host_vlan(void)
{
    g_autofree char *add = NULL;
    uint8_t gid[RDMA_GID_LEN];
    QDict *rsp;
    Host h;

    h = on_host_start();
    gid_of(NET_IPV4 "7", gid);
    assert_status(qrdma_add_gid_vlan(h.dev[0], 3, gid, 7), PERM);
    rsp = qtest_qmp_eventwait_ref(h.qemu->qts, "RDMA_GID_STATUS_CHANGED");
    add = g_strdup_printf("ip link add link %s name vlan7 up type vlan id 7",
                          qdict_get_str(qdict_get_qdict(rsp, "data"),
                                        "netdev"));
    qobject_unref(rsp);
    if (system(add)) {
        g_test_skip("no VLAN device can be made");
    } else {
        assert_ok(qrdma_add_gid_vlan(h.dev[0], 3, gid, 7));
        g_assert_cmpint(count_addresses(NET_IPV4 "7"), ==, 1);
        assert_ok(qrdma_del_gid(h.dev[0], 3, 1));
        await_addresses(h.dev[0], NET_IPV4 "7", 0);
        g_assert_cmpint(system("ip link del vlan7"), ==, 0);
    }
    qrdma_host_stop(h.qemu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (qrdma_ibdev()) {
        qtest_add_func("/rdma-verbs-netlink/on-a-host/traffic", test_on_host);
        qtest_add_func("/rdma-verbs-netlink/on-a-host/vlan",
                       test_on_host_vlan);
        return g_test_run();
    }
    /* On the double of libibverbs */
    qtest_add_func("/rdma-verbs-netlink/host-keeps-its-own-by-any-label",
                   test_host_keeps_its_own);
    qtest_add_func("/rdma-verbs-netlink/exit-while-a-gid-is-added",
                   test_exit_while_a_gid_is_added);
    qtest_add_func("/rdma-verbs-netlink/command-changes",
                   test_command_changes);
    return g_test_run();
}
