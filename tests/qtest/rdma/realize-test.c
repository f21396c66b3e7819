/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: properties that cannot be met are refused in plain words, and
 * limits are as the properties say. features-test.c has the feature bits.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "rdma-test.h"

static QRdmaHost *host;

static void host_start(void)
{
    host = qrdma_host_start("-netdev hubport,id=n0,hubid=0 "
                            "-netdev hubport,id=n1,hubid=0 "
                            "-netdev hubport,id=n2,hubid=0 "
                            "-object rdma-roce,id=r0,netdev=n1 "
                            "-object rng-builtin,id=rng0 "
                            "-device virtio-rdma-pci,id=used,rdmadev=r0");
}

/* Plugging in a device with these properties fails, with @in_message. */
static void expect_refusal(const char *props, const char *in_message)
{
    g_autofree char *cmd = g_strdup_printf(
        "{'execute': 'device_add', 'arguments': "
        "{'driver': 'virtio-rdma-pci', 'id': 'bad'%s%s}}",
        *props ? ", " : "", props);

    qrdma_qmp_refused(host->qts, cmd, in_message);
}

static void test_backend_is_required_once(void)
{
    host_start();
    expect_refusal("", "netdev");
    expect_refusal("", "rdmadev");
    expect_refusal("'netdev': 'n0', 'rdmadev': 'r0'", "netdev");
    expect_refusal("'netdev': 'n0', 'rdmadev': 'r0'", "rdmadev");
    qrdma_host_stop(host);
}

static void test_backend_must_exist_and_be_free(void)
{
    host_start();
    expect_refusal("'netdev': 'nosuch'", "nosuch");
    expect_refusal("'rdmadev': 'nosuch'", "nosuch");
    expect_refusal("'rdmadev': 'rng0'", "rdma-backend");
    expect_refusal("'rdmadev': 'r0'", "in use");
    expect_refusal("'netdev': 'n1'", "n1");
    qrdma_host_stop(host);
}

static void test_values_out_of_range(void)
{
    static const struct {
        const char *name;
        const char *values[6];
    } bad[] = {
        { "max-qp", { "16385", "4294967295" } },
        { "max-cq", { "16385", "4294967295" } },
        { "max-mr", { "0", "16777215", "4294967295" } },
        { "max-pd", { "0", "4294967295" } },
        { "queue-size", { "0", "1", "3", "1000", "2048", "4294967295" } },
        { "max-qp-wr", { "0", "3", "32769", "4294967295" } },
        { "gid-table-len", { "0", "257", "4294967295" } },
        { "max-sge", { "0", "4294967295" } },
        { "max-rd-atomic", { "0", "256", "4294967295" } },
        { "max-inline", { "4294967295" } },
        { "max-cqe", { "0", "1048577", "4294967295" } },
        { "max-srq", { "16385", "4294967295" } },
        { "max-srq-wr", { "0", "65537", "4294967295" } },
        { "max-mw", { "16711679", "16777215", "4294967295" } },
        { "max-mcast-grp", { "16385", "4294967295" } },
    };

    host_start();
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        for (int j = 0; j < ARRAY_SIZE(bad[i].values); j++) {
            g_autofree char *props = NULL;

            if (bad[i].values[j]) {
                props = g_strdup_printf("'netdev': 'n0', '%s': %s",
                                        bad[i].name, bad[i].values[j]);
                expect_refusal(props, bad[i].name);
            }
        }
    }
    qrdma_host_stop(host);
}

static void test_allowed_gids(void)
{
    static const struct {
        const char *value;
        const char *text;
    } bad[] = {
        { "10.0.0", "'10.0.0' is neither an IPv4 nor an IPv6 address" },
        { "fe80::1 eth0", "'eth0' is neither" },
        { "/8", "'' is neither" },
        { "10.0.0.0/33", "prefix in '10.0.0.0/33' must be 0 to 32" },
        { "fe80::/129", "prefix in 'fe80::/129' must be 0 to 128" },
        { "fe80::/-1", "prefix in 'fe80::/-1'" },
        { "fe80::/", "prefix in 'fe80::/'" },
        { "fe80::/8/8", "prefix in 'fe80::/8/8'" },
    };

    host_start();
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        g_autofree char *props = g_strdup_printf(
            "'netdev': 'n0', 'allowed-gids': '%s'", bad[i].value);

        expect_refusal(props, bad[i].text);
    }
    qrdma_host_stop(host);
}

static void test_number_of_queues_is_limited(void)
{
    host_start();
    /* Without direct queues 1 + N + 2 M + 1 + S, of which QEMU has 1024 */
    expect_refusal("'netdev': 'n0', 'direct': false, 'max-qp': 512, "
                   "'max-cq': 16", "max-qp=512");
    expect_refusal("'netdev': 'n0', 'direct': false, 'max-qp': 4096",
                   "max-qp=4096");
    expect_refusal("'netdev': 'n0', 'direct': false, 'max-cq': 8192",
                   "max-cq=8192");
    expect_refusal("'netdev': 'n0', 'direct': false, 'max-qp': 8, "
                   "'max-cq': 1008", "max-cq=1008");
    expect_refusal("'netdev': 'n0', 'direct': false, 'max-qp': 8, "
                   "'max-srq': 1000", "max-srq=1000");
    expect_refusal("'netdev': 'n0', 'direct': false, 'max-qp': 16384, "
                   "'max-cq': 16384", "1024");
    expect_refusal("'netdev': 'n0', 'direct': false, 'max-qp': 500, "
                   "'max-cq': 23, 'max-srq': 0", "1025");
    expect_refusal("'netdev': 'n0', 'version-1': false, 'max-qp': 500, "
                   "'max-cq': 24", "1025");
    expect_refusal("'netdev': 'n0', 'modern-pio-notify': true, 'max-qp': 512",
                   "max-qp=512");
    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "good",
                         "{'netdev': 'n0', 'direct': false, 'max-qp': 468, "
                         "'max-cq': 22}");
    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "rfc",
                         "{'netdev': 'n2', 'version-1': false, 'max-qp': 500, "
                         "'max-cq': 23}");
    qrdma_host_stop(host);
}

static void test_refused_device_leaves_the_netdev_free(void)
{
    host_start();
    for (int i = 0; i < 3; i++) {
        expect_refusal("'netdev': 'n0', 'queue-size': 3", "queue-size");
        expect_refusal("'netdev': 'n0', 'direct': false, 'max-qp': 512",
                       "max-qp=512");
        expect_refusal("'netdev': 'n0', 'rdmadev': 'r0'", "rdmadev");
    }
    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "good",
                         "{'netdev': 'n0', 'queue-size': 256}");
    qrdma_host_stop(host);
}

static void test_smallest_and_largest_device(void)
{
    QRdma *d;
    uint32_t cqn;

    host_start();
    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "small",
                         "{'netdev': 'n0', 'addr': '5', 'max-qp': 3, "
                         "'max-cq': 1, 'max-mr': 1, 'max-pd': 1, "
                         "'queue-size': 2, 'gid-table-len': 1}");
    d = qrdma_open(host, QPCI_DEVFN(5, 0));
    qrdma_start(d, 0, 0);
    qrdma_create_qp_attr(qrdma_alloc_pd(d), qrdma_create_cq(d, 2),
                         &(QRdmaCq) {}, &(RdmaQpInitAttr) {
                             .qp_type = RDMA_QPT_RC,
                             .cap = { 2, 2, 1, 1, 0 },
                         });
    assert_status(qrdma_try_create_cq(d, 2, &cqn), NOMEM);
    qrdma_close(d);

    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "large",
                         "{'netdev': 'n2', 'addr': '6', 'max-qp': 16384, "
                         "'max-cq': 16384, 'max-srq': 16384, "
                         "'queue-size': 1024, 'gid-table-len': 256}");
    d = qrdma_open(host, QPCI_DEVFN(6, 0));
    qrdma_host_stop(host);
}

static void test_default_limits(void)
{
    static const struct {
        const char *props;
        uint32_t max_qp, max_qp_direct, max_cq, max_cq_direct;
    } cases[] = {
        { "direct=on", 128, 4096, 128, 8192 },
        { "direct=off", 128, 0, 128, 0 },
        { "version-1=off", 128, 0, 128, 0 },
        { "direct=off,max-qp=200,max-cq=200", 200, 0, 200, 0 },
    };

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        QRdma *d = test_own_device("id=rdma,%s", cases[i].props);
        struct virtio_rdma_config c;

        qrdma_get_config(d, &c);
        g_assert_cmpuint(le32_to_cpu(c.max_qp), ==, cases[i].max_qp);
        g_assert_cmpuint(le32_to_cpu(c.max_qp_direct), ==,
                         cases[i].max_qp_direct);
        g_assert_cmpuint(le32_to_cpu(c.max_cq), ==, cases[i].max_cq);
        g_assert_cmpuint(le32_to_cpu(c.max_cq_direct), ==,
                         cases[i].max_cq_direct);
        g_assert_cmpuint(qrdma_qom_get(d->host->qts,
                                       "/machine/peripheral/rdma", "vectors"),
                         ==, cases[i].max_cq + 3);
        qrdma_host_stop(d->host);
    }
}

static QList *list_properties(const char *type)
{
    g_autoptr(QDict) rsp = qtest_qmp(host->qts,
        "{'execute': 'device-list-properties', 'arguments': "
        "{'typename': %s}}", type);

    return qobject_ref(qdict_get_qlist(rsp, "return"));
}

static bool has_property(const QList *properties, const char *name)
{
    const QListEntry *e;

    QLIST_FOREACH_ENTRY(properties, e) {
        QDict *p = qobject_to(QDict, qlist_entry_obj(e));

        if (g_str_equal(qdict_get_str(p, "name"), name)) {
            return true;
        }
    }
    return false;
}

/* By -device virtio-rdma-pci,help and by info qtree */
static void test_properties_are_listed(void)
{
    g_autoptr(QList) ours = NULL, common = NULL;
    g_autofree char *tree = NULL;
    const QListEntry *e;

    host_start();
    ours = list_properties("virtio-rdma-pci");
    common = list_properties("virtio-rng-pci");
    tree = qtest_hmp(host->qts, "info qtree");
    g_assert_true(has_property(ours, "version-1"));
    g_assert_true(has_property(ours, "direct"));
    QLIST_FOREACH_ENTRY(ours, e) {
        QDict *p = qobject_to(QDict, qlist_entry_obj(e));
        const char *name = qdict_get_str(p, "name");
        g_autofree char *line = g_strdup_printf(" %s = ", name);

        if (!has_property(common, name)) {
            const char *text = qdict_get_try_str(p, "description");

            g_test_message("%s: %s", name, text);
            g_assert_true(text && *text);
            /* QEMU shows no links in the tree */
            g_assert_true(strstr(tree, line) ||
                          g_str_has_prefix(qdict_get_str(p, "type"),
                                           "link<"));
        }
    }
    qrdma_host_stop(host);
}

/* The device reports limits of 0, and refuses the commands for such objects. */
static void test_limits_of_0(void)
{
    static const struct {
        const char *prop;
        uint8_t commands[4];
    } cases[] = {
        { "max-srq=0", { VIRTIO_RDMA_CMD_CREATE_SRQ,
                         VIRTIO_RDMA_CMD_MODIFY_SRQ,
                         VIRTIO_RDMA_CMD_QUERY_SRQ,
                         VIRTIO_RDMA_CMD_DESTROY_SRQ } },
        { "max-mw=0", { VIRTIO_RDMA_CMD_ALLOC_MW,
                        VIRTIO_RDMA_CMD_DEALLOC_MW } },
        { "max-mcast-grp=0", { VIRTIO_RDMA_CMD_ATTACH_MCAST,
                               VIRTIO_RDMA_CMD_DETACH_MCAST } },
    };

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        QRdma *d = test_own_device("max-qp=8,max-cq=4,%s", cases[i].prop);
        QRdmaMw mw = { .dev = d };
        struct virtio_rdma_config c;
        bool srq = i != 0, has_mw = i != 1, mcast = i != 2;
        TestPair t;

        qrdma_get_config(d, &c);
        g_assert_cmpint(c.max_srq != 0, ==, srq);
        g_assert_cmpint(c.max_srq_wr != 0, ==, srq);
        g_assert_cmpint(c.max_srq_sge != 0, ==, srq);
        g_assert_cmpint(c.max_srq_direct != 0, ==, srq);
        g_assert_cmpint(c.max_mw != 0, ==, has_mw);
        g_assert_cmpint((le64_to_cpu(c.device_cap_flags) &
                         VIRTIO_RDMA_CAP_MEM_WINDOW) != 0, ==, has_mw);
        g_assert_cmpint(c.max_mcast_grp != 0, ==, mcast);
        g_assert_cmpint(c.max_mcast_qp_attach != 0, ==, mcast);
        g_assert_cmpint(c.max_total_mcast_qp_attach != 0, ==, mcast);
        qrdma_start(d, 0, 0);
        for (int j = 0; j < ARRAY_SIZE(cases[i].commands); j++) {
            uint8_t req[64] = {}, rsp[64];

            if (cases[i].commands[j]) {
                assert_status(qrdma_cmd(d, cases[i].commands[j], req,
                                        sizeof(req), rsp, sizeof(rsp)),
                              NOTSUPP);
            }
        }
        t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
        test_write(&t);
        if (!srq) {
            RdmaQpInitAttr init = {
                .pdn = t.pd->pdn,
                .qp_type = RDMA_QPT_RC,
                .send_cqn = t.cq_a->cqn,
                .recv_cqn = t.cq_a->cqn,
                .has_srq = true,
            };
            uint32_t qpn;

            assert_status(qrdma_try_create_qp(d, &init, &qpn), NOTSUPP);
        }
        if (!has_mw) {
            qrdma_post_expect(t.a, qrdma_bind_wr(&mw, t.mr_a, 0, 16,
                                                 RDMA_ACCESS_REMOTE_READ),
                              RDMA_WC_LOC_QP_OP_ERR);
        }
        qrdma_host_stop(d->host);
    }
}

static void test_mac_comes_from_the_paired_nic(void)
{
    static const uint8_t mac[6] = { 0x52, 0x54, 0, 0xaa, 0xbb, 0xcc };
    QRdma *d;

    host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 "
        "-device virtio-net-pci,netdev=n0,addr=5.0,multifunction=on,"
        "mac=52:54:00:aa:bb:cc,host_mtu=4500 "
        "-device virtio-rdma-pci,netdev=n0,addr=5.1,max-qp=8,max-cq=4");
    d = qrdma_open(host, QPCI_DEVFN(5, 1));
    qrdma_start(d, 0, 0);
    g_assert_cmpmem(d->mac, 6, mac, 6);
    g_assert_cmpuint(qrdma_config_read(d, offsetof(struct virtio_rdma_config,
                                                   mtu), 2), ==, 4500);
    qrdma_host_stop(host);
}

const QRdmaTest realize_tests[] = {
    { "backend-is-required-once", test_backend_is_required_once },
    { "backend-must-exist-and-be-free", test_backend_must_exist_and_be_free },
    { "values-out-of-range", test_values_out_of_range },
    { "allowed-gids", test_allowed_gids },
    { "number-of-queues-is-limited", test_number_of_queues_is_limited },
    { "refused-device-leaves-netdev-free",
      test_refused_device_leaves_the_netdev_free },
    { "smallest-and-largest-device", test_smallest_and_largest_device },
    { "default-limits", test_default_limits },
    { "properties-are-listed", test_properties_are_listed },
    { "limits-of-0", test_limits_of_0 },
    { "mac-comes-from-the-paired-nic", test_mac_comes_from_the_paired_nic },
    {}
};
