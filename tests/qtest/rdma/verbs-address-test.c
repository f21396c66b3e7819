/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs with gid-mode=add: the guest's addresses are on the host's net
 * device as long as the guest has them. That device is "lo", in a network
 * namespace that QEMU and the test share; the test plays the host's RDMA
 * driver, for which an address becomes a GID.
 */
#include "qemu/osdep.h"
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include "qemu/bswap.h"
#include "verbs-test.h"

#define IPV4_AT 12
#define ENTRY 5
#define ALLOWED "10.0.0.0/8 fe80::/10 fd00::/8"

static const uint8_t gid_v4[RDMA_GID_LEN] = {
    [10] = 0xff, 0xff, 10, 7, 0, 1,
};
static const uint8_t gid_v6[RDMA_GID_LEN] = { 0xfd, [15] = 7 };

/* Is it an address of "lo"? */
static bool have(const uint8_t gid[RDMA_GID_LEN])
{
    struct ifaddrs *all, *a;
    bool found = false;

    g_assert_cmpint(getifaddrs(&all), ==, 0);
    for (a = all; a; a = a->ifa_next) {
        const void *at = NULL;

        if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && !gid[0]) {
            at = &((struct sockaddr_in *)a->ifa_addr)->sin_addr;
            found |= !memcmp(at, gid + IPV4_AT, 4);
        } else if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET6) {
            at = &((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr;
            found |= !memcmp(at, gid, RDMA_GID_LEN);
        }
    }
    freeifaddrs(all);
    return found;
}

static void await(Verbs *v, const uint8_t gid[RDMA_GID_LEN], bool there)
{
    qrdma_wait_until(v->dev, have(gid) == there);
}

static void start(Verbs *v)
{
    qrdma_start(v->dev, 0, 0);
    qrdma_add_event_buffers(v->dev, 8);
    qrdma_setup_gids(v->dev, 1);
}

/* NULL: this machine cannot run the test. */
static Verbs *verbs_adding(const char *script)
{
    Verbs *v = verbs_own_network() ? verbs_host_adding(script) : NULL;

    if (v) {
        qtest_qmp_device_add(v->host->qts, "virtio-rdma-pci", "rdma0",
                             "{'rdmadev': 'r0', 'addr': '4', "
                             "'allowed-gids': '" ALLOWED "'}");
        v->dev = qrdma_open(v->host, QPCI_DEVFN(VERBS_SLOT, 0));
        start(v);
    }
    return v;
}

static VerbsWaiting send_add(Verbs *v, uint16_t index,
                             const uint8_t gid[RDMA_GID_LEN])
{
    struct virtio_rdma_add_gid_req req = {
        .gid_type = cpu_to_le32(VIRTIO_RDMA_GID_TYPE_ROCE_V2),
        .index = cpu_to_le16(index),
        .port_num = cpu_to_le32(1),
    };

    memcpy(req.gid, gid, RDMA_GID_LEN);
    return verbs_send_cmd(v, VIRTIO_RDMA_CMD_ADD_GID, &req, sizeof(req), 0);
}

/* Add an address: it appears on "lo", and then the GID at @host_index. */
static void add(Verbs *v, uint16_t index, const uint8_t gid[RDMA_GID_LEN],
                int host_index, const char *text)
{
    VerbsWaiting w = send_add(v, index, gid);

    await(v, gid, true);
    g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
    fake_verbs_tell(v->fake, "gid %d %s", host_index, text);
    assert_ok(verbs_await_status(&w));
}

static void test_comes_and_goes(void)
{
    g_autoptr(Verbs) v = verbs_adding(NULL);

    if (!v) {
        return;
    }
    for (int round = 0; round < 2; round++) {
        g_assert_false(have(gid_v4));
        g_assert_false(have(gid_v6));
        add(v, ENTRY, gid_v4, 2, "10.7.0.1");
        add(v, ENTRY + 1, gid_v6, 3, "fd00::7");
        assert_ok(qrdma_del_gid(v->dev, ENTRY, 1));
        await(v, gid_v4, false);
        fake_verbs_tell(v->fake, "gid 2 none");
        assert_ok(qrdma_del_gid(v->dev, ENTRY + 1, 1));
        await(v, gid_v6, false);
        fake_verbs_tell(v->fake, "gid 3 none");
    }
}

/* Replace all IPv4 addresses of "lo" by this one. */
static void set_ipv4(const uint8_t address[4])
{
    struct ifreq ifr = { .ifr_name = "lo" };
    struct sockaddr_in *sin = (struct sockaddr_in *)&ifr.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    sin->sin_family = AF_INET;
    memcpy(&sin->sin_addr, address, 4);
    g_assert_cmpint(ioctl(fd, SIOCSIFADDR, &ifr), ==, 0);
    close(fd);
}

static const uint8_t no_ipv4[4];

/* The host keeps its own addresses. */
static void test_was_there_before(void)
{
    Verbs *v = verbs_adding(NULL);
    VerbsWaiting w;

    if (!v) {
        return;
    }
    set_ipv4(gid_v4 + IPV4_AT);
    /* The GID comes later */
    w = send_add(v, ENTRY, gid_v4);
    qrdma_settle(v->dev);
    g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
    fake_verbs_tell(v->fake, "gid 2 10.7.0.1");
    assert_ok(verbs_await_status(&w));
    assert_ok(qrdma_del_gid(v->dev, ENTRY, 1));
    verbs_free(v);
    g_assert_true(have(gid_v4));
    set_ipv4(no_ipv4);
}

/* The host deletes the address, and the guest asks for it again. */
static void test_added_again(void)
{
    g_autoptr(Verbs) v = verbs_adding(NULL);

    if (!v) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        add(v, ENTRY, gid_v4, 2, "10.7.0.1");
        /* Jobs after this one are done */
        assert_ok(qrdma_add_gid(v->dev, ENTRY, gid_v4));
        g_assert_true(have(gid_v4));
        if (!i) {
            set_ipv4(no_ipv4);
            fake_verbs_tell(v->fake, "gid 2 none");
        }
    }
    assert_ok(qrdma_del_gid(v->dev, ENTRY, 1));
    await(v, gid_v4, false);
}

static void test_two_entries(void)
{
    g_autoptr(Verbs) v = verbs_adding(NULL);

    if (!v) {
        return;
    }
    add(v, ENTRY, gid_v6, 2, "fd00::7");
    assert_ok(qrdma_add_gid(v->dev, ENTRY, gid_v6));
    assert_ok(qrdma_add_gid(v->dev, ENTRY + 1, gid_v6));
    assert_ok(qrdma_del_gid(v->dev, ENTRY, 1));
    qrdma_settle(v->dev);
    g_assert_true(have(gid_v6));
    assert_ok(qrdma_del_gid(v->dev, ENTRY + 1, 1));
    await(v, gid_v6, false);
}

/* An entry gets another GID. A reset and unplugging delete all addresses. */
static void test_replaced_reset_and_unplugged(void)
{
    Verbs *v = verbs_adding(NULL);

    if (!v) {
        return;
    }
    add(v, ENTRY, gid_v6, 2, "fd00::7");
    add(v, ENTRY, gid_v4, 3, "10.7.0.1");
    await(v, gid_v6, false);
    qrdma_reset(v->dev);
    await(v, gid_v4, false);
    fake_verbs_tell(v->fake, "gid 2 none");
    fake_verbs_tell(v->fake, "gid 3 none");
    start(v);
    add(v, ENTRY, gid_v4, 2, "10.7.0.1");
    verbs_free(v);
    g_assert_false(have(gid_v4));
}

static void test_qemu_exits(void)
{
    Verbs *v = verbs_adding(NULL);

    if (!v) {
        return;
    }
    add(v, ENTRY, gid_v4, 2, "10.7.0.1");
    qrdma_host_stop(v->host);
    g_assert_false(have(gid_v4));
    fake_verbs_free(v->fake);
    g_free(v);
}

/* The host's device does not make the address a GID, or cannot be queried. */
static void test_does_not_become_a_gid(void)
{
    g_autoptr(Verbs) v = verbs_adding(NULL);
    VerbsWaiting w;

    if (!v) {
        return;
    }
    w = send_add(v, ENTRY, gid_v4);
    await(v, gid_v4, true);
    g_assert_cmpint(verbs_await_status(&w), !=, VIRTIO_RDMA_S_OK);
    g_assert_false(have(gid_v4));

    w = send_add(v, ENTRY, gid_v4);
    await(v, gid_v4, true);
    fake_verbs_tell(v->fake, "fail query_gid_table EIO");
    assert_status(verbs_await_status(&w), ERR);
    g_assert_false(have(gid_v4));
}

/* No command waits for the address any more. */
static void test_reset_meanwhile(void)
{
    g_autoptr(Verbs) v = verbs_adding(NULL);

    if (!v) {
        return;
    }
    send_add(v, ENTRY, gid_v4);
    await(v, gid_v4, true);
    qrdma_reset(v->dev);
    await(v, gid_v4, false);
    start(v);
    add(v, ENTRY, gid_v4, 2, "10.7.0.1");
}

static void test_without_a_net_device(void)
{
    g_autoptr(Verbs) v = verbs_adding(
        "gid 0 fe80::5054:ff:fe12:3401 ifindex 99; gid 1 10.0.0.1 ifindex 99");

    if (!v) {
        return;
    }
    assert_status(qrdma_add_gid(v->dev, ENTRY, gid_v4), PERM);
}

static void test_without_a_vlan_device(void)
{
    g_autoptr(Verbs) v = verbs_adding(NULL);

    if (!v) {
        return;
    }
    assert_status(qrdma_add_gid_vlan(v->dev, ENTRY, gid_v4, 7), PERM);
    g_assert_false(have(gid_v4));
}

static void test_not_allowed_by_the_device(void)
{
    static const uint8_t other[RDMA_GID_LEN] = {
        [10] = 0xff, 0xff, 192, 0, 2, 1,
    };
    g_autoptr(Verbs) v = verbs_adding(NULL);

    if (!v) {
        return;
    }
    assert_status(qrdma_add_gid(v->dev, ENTRY, other), PERM);
    g_assert_false(have(other));
}

static void test_needs_permission(void)
{
    const char *qemu = g_getenv("QTEST_QEMU_BINARY");
    g_autofree char *was = g_strdup(qemu);
    g_autofree char *less =
        g_strdup_printf("setpriv --bounding-set -net_admin %s", qemu);
    g_autoptr(Verbs) v = NULL;

    if (!verbs_own_network() ||
        system("setpriv --bounding-set -net_admin true")) {
        g_test_skip("no setpriv, or it may not drop CAP_NET_ADMIN");
        return;
    }
    g_setenv("QTEST_QEMU_BINARY", less, true);
    v = verbs_host_adding(NULL);
    g_setenv("QTEST_QEMU_BINARY", was, true);
    verbs_refused_with(v, "'ibdev': '" FAKE_IBVERBS_DEVICE "', "
                       "'gid-mode': 'add'", "'allowed-gids': '" ALLOWED "'",
                       "permission to change the addresses");
}

const QRdmaTest verbs_address_tests[] = {
    { "comes-and-goes", test_comes_and_goes },
    { "was-there-before", test_was_there_before },
    { "added-again", test_added_again },
    { "two-entries", test_two_entries },
    { "replaced-reset-and-unplugged", test_replaced_reset_and_unplugged },
    { "qemu-exits", test_qemu_exits },
    { "does-not-become-a-gid", test_does_not_become_a_gid },
    { "reset-meanwhile", test_reset_meanwhile },
    { "without-a-net-device", test_without_a_net_device },
    { "without-a-vlan-device", test_without_a_vlan_device },
    { "not-allowed-by-the-device", test_not_allowed_by_the_device },
    { "needs-permission", test_needs_permission },
    {}
};
