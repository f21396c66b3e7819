/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: properties that cannot be met are refused in plain words.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
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

/* Plugging in a device with these properties fails, and it says so. */
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
        { "max-qp", { "0", "16385", "4294967295" } },
        { "max-vq-qp", { "0", "16385", "4294967295" } },
        { "max-cq", { "0", "16385", "4294967295" } },
        { "max-vq-cq", { "0", "16385", "4294967295" } },
        { "max-mr", { "0", "16777215", "4294967295" } },
        { "max-pd", { "0", "4294967295" } },
        { "max-mr-size", { "0", "4095", "18446744073709551615" } },
        { "queue-size", { "0", "1", "3", "1000", "2048", "4294967295" } },
        { "max-qp-wr", { "0", "3", "32769", "4294967295" } },
        { "gid-table-len", { "0", "257", "4294967295" } },
        { "max-sge", { "0", "4294967295" } },
        { "max-rd-atomic", { "0", "256", "4294967295" } },
        { "max-inline", { "4294967295" } },
        { "max-cqe", { "0", "1048577", "4294967295" } },
        { "max-srq", { "16385", "4294967295" } },
        { "max-vq-srq", { "16385", "4294967295" } },
        { "max-srq-wr", { "0", "65537", "4294967295" } },
        { "max-mw", { "16711679", "16777215", "4294967295" } },
        { "max-mcast-grp", { "16385", "4294967295" } },
        { "max-mcast-qp-attach", { "16385", "4294967295" } },
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
    /* 1 + N + 2 M + 1 + S queues, of which QEMU has 1024 */
    expect_refusal("'netdev': 'n0', 'max-vq-qp': 512, 'max-cq': 16",
                   "max-vq-qp");
    expect_refusal("'netdev': 'n0', 'max-qp': 8, 'max-vq-cq': 1008",
                   "max-vq-cq");
    expect_refusal("'netdev': 'n0', 'max-qp': 8, 'max-srq': 1000, "
                   "'max-vq-srq': 1000", "max-vq-srq");
    expect_refusal("'netdev': 'n0', 'max-vq-qp': 16384, 'max-cq': 16384",
                   "1024");
    expect_refusal("'netdev': 'n0', 'max-vq-qp': 500, 'max-cq': 23, "
                   "'max-srq': 0", "1025");
    /* Without direct queues all need them. */
    expect_refusal("'netdev': 'n0', 'direct-srq': false, 'max-srq': 65",
                   "max-vq-srq");
    expect_refusal("'netdev': 'n0', 'direct-qp': false, 'max-srq': 65",
                   "max-vq-srq");
    expect_refusal("'netdev': 'n0', 'direct-cq': false, 'max-cq': 129",
                   "max-vq-cq");
    expect_refusal("'netdev': 'n0', 'direct-qp': false, 'max-qp': 129",
                   "max-vq-qp");
    expect_refusal("'netdev': 'n0', 'modern-pio-notify': true, 'max-qp': 129",
                   "max-vq-qp");
    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "good",
                         "{'netdev': 'n0', 'max-vq-qp': 468, 'max-cq': 22}");
    qrdma_host_stop(host);
}

static void test_refused_device_leaves_the_netdev_free(void)
{
    host_start();
    for (int i = 0; i < 3; i++) {
        expect_refusal("'netdev': 'n0', 'queue-size': 3", "queue-size");
        expect_refusal("'netdev': 'n0', 'max-vq-qp': 512", "max-vq-qp");
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
                         "'max-vq-qp': 256, "
                         "'max-cq': 16384, 'max-vq-cq': 511, "
                         "'queue-size': 1024, "
                         "'events': false, 'srq': false, "
                         "'gid-table-len': 256}");
    d = qrdma_open(host, QPCI_DEVFN(6, 0));
    qrdma_host_stop(host);
}

static const char *const features[] = {
    "ext-status", "mac-mtu", "cqe-status-last", "events", "srq", "mw",
    "cq-deep", "cq-ring-arm", "mcast", "cqe-ex", "gid-vlan", "counters",
    "mr-tables", "reg-pages", "rereg-mr", "flush", "atomic-write",
};

static void test_without_features(void)
{
    const uint64_t all = QRDMA_F(ARRAY_SIZE(features)) - 1;
    g_autoptr(GString) props = g_string_new("{'netdev': 'n0', 'addr': '5'");
    g_autoptr(QDict) args = NULL;
    QRdma *d;
    uint64_t offered;

    G_STATIC_ASSERT(ARRAY_SIZE(features) == VIRTIO_RDMA_F_ATOMIC_WRITE + 1);
    for (int i = 0; i < ARRAY_SIZE(features); i++) {
        g_string_append_printf(props, ", '%s': false", features[i]);
    }
    g_string_append(props, "}");
    host_start();
    args = qobject_to(QDict, qobject_from_json(props->str, &error_abort));
    qtest_qmp_device_add_qdict(host->qts, "virtio-rdma-pci", args);
    d = qrdma_open(host, QPCI_DEVFN(5, 0));
    offered = qvirtio_get_features(&d->pci->vdev);
    g_assert_cmphex(offered & (all | QRDMA_F(VIRTIO_F_VERSION_1)), ==,
                    QRDMA_F(VIRTIO_F_VERSION_1));
    qrdma_start(d, QRDMA_F(VIRTIO_F_VERSION_1), 0);
    qrdma_alloc_pd(d);
    qrdma_host_stop(host);
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
    for (int i = 0; i < ARRAY_SIZE(features); i++) {
        g_assert_true(has_property(ours, features[i]));
    }
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

/* What there may be none of is not offered, nor told of. */
static void test_limits_of_0_take_features_away(void)
{
    static const struct {
        const char *prop;
        uint64_t feature;
    } cases[] = {
        { "'max-srq': 0", QRDMA_F(VIRTIO_RDMA_F_SRQ) },
        { "'srq': false", QRDMA_F(VIRTIO_RDMA_F_SRQ) },
        { "'max-mw': 0", QRDMA_F(VIRTIO_RDMA_F_MW) },
        { "'mw': false", QRDMA_F(VIRTIO_RDMA_F_MW) },
        { "'max-mcast-grp': 0", QRDMA_F(VIRTIO_RDMA_F_MCAST) },
        { "'max-mcast-qp-attach': 0", QRDMA_F(VIRTIO_RDMA_F_MCAST) },
        { "'mcast': false", QRDMA_F(VIRTIO_RDMA_F_MCAST) },
        { "'mr-tables': false", QRDMA_F(VIRTIO_RDMA_F_MR_TABLES) },
        { "'reg-pages': false", QRDMA_F(VIRTIO_RDMA_F_REG_PAGES) },
        { "'mem-mgt': false", QRDMA_F(VIRTIO_RDMA_F_REG_PAGES) },
        { "'rereg-mr': false", QRDMA_F(VIRTIO_RDMA_F_REREG_MR) },
        { "'flush': false", QRDMA_F(VIRTIO_RDMA_F_FLUSH) },
        { "'atomic-write': false", QRDMA_F(VIRTIO_RDMA_F_ATOMIC_WRITE) },
    };
    const uint64_t all = (QRDMA_F(VIRTIO_RDMA_F_ATOMIC_WRITE) << 1) - 1;

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *props = g_strdup_printf(
            "{'id': 'rdma', 'netdev': 'n0', 'addr': '5', 'max-qp': 8, "
            "'max-cq': 4, %s}",
            cases[i].prop);
        g_autoptr(QDict) args = NULL;
        struct virtio_rdma_config c;
        bool srq = cases[i].feature != QRDMA_F(VIRTIO_RDMA_F_SRQ);
        bool mw = cases[i].feature != QRDMA_F(VIRTIO_RDMA_F_MW);
        bool mcast = cases[i].feature != QRDMA_F(VIRTIO_RDMA_F_MCAST);
        bool tables = cases[i].feature != QRDMA_F(VIRTIO_RDMA_F_MR_TABLES);
        bool mem_mgt = !strstr(cases[i].prop, "mem-mgt");
        QRdma *d;

        host_start();
        args = qobject_to(QDict, qobject_from_json(props, &error_abort));
        qtest_qmp_device_add_qdict(host->qts, "virtio-rdma-pci", args);
        d = qrdma_open(host, QPCI_DEVFN(5, 0));
        g_assert_cmphex(qvirtio_get_features(&d->pci->vdev) & all, ==,
                        all & ~cases[i].feature);
        qrdma_get_config(d, &c);
        g_assert_cmpint(c.max_srq != 0, ==, srq);
        g_assert_cmpint(c.max_srq_wr != 0, ==, srq);
        g_assert_cmpint(c.max_srq_sge != 0, ==, srq);
        g_assert_cmpint(c.max_mw != 0, ==, mw);
        g_assert_cmpint((le64_to_cpu(c.device_cap_flags) &
                         VIRTIO_RDMA_CAP_MEM_WINDOW) != 0, ==, mw);
        g_assert_cmpint(c.max_mcast_grp != 0, ==, mcast);
        g_assert_cmpint(c.max_mcast_qp_attach != 0, ==, mcast);
        g_assert_cmpint(c.max_total_mcast_qp_attach != 0, ==, mcast);
        g_assert_cmpint(c.mr_page_sizes != 0, ==, tables);
        g_assert_cmpint((le64_to_cpu(c.device_cap_flags) &
                         VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS) != 0, ==,
                        mem_mgt);
        g_assert_cmpint(c.max_fast_reg_page_list_len != 0, ==, mem_mgt);
        qrdma_start(d, QRDMA_FEATURES | (all & ~cases[i].feature &
                                         ~QRDMA_F(VIRTIO_RDMA_F_CQE_EX)), 0);
        qrdma_reg_mr(qrdma_alloc_pd(d), 0x1234, 100000, TEST_ACCESS_ALL);
        qrdma_host_stop(host);
    }
}

/* The work request is refused, and the QP connected again. */
static void expect_wr_refused(TestPair *t, const RdmaSendWr *wr,
                              RdmaWcStatus status)
{
    qrdma_post_send(t->a, wr);
    qrdma_expect(t->cq_a, wr->wr_id, status);
    qrdma_reconnect(t->a, t->b, NULL);
}

static void check_write(TestPair *t)
{
    RdmaSge sge = qrdma_sge(t->mr_a, 0, 5000);

    qrdma_mr_fill(t->mr_a, 0, 5000, 7);
    qrdma_post_expect(t->a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 4, &sge, t->mr_b,
                                          0), RDMA_WC_SUCCESS);
    qrdma_mr_check(t->mr_b, 0, 5000, 7);
}

/* As a backend on a host adapter is; regions of other kinds stay. */
static void test_without_fast_registration(void)
{
    struct virtio_rdma_create_mr_req req = {
        .access = cpu_to_le32(TEST_ACCESS_ALL), .max_num_sg = cpu_to_le32(8),
    };
    RdmaSendWr wr = { .wr_id = 3, .send_flags = RDMA_SEND_SIGNALED };
    struct virtio_rdma_mr_rsp rsp;
    struct virtio_rdma_config c;
    QRdmaMr mapped;
    TestPair t;
    QRdma *d;

    host_start();
    qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "rdma",
                         "{'netdev': 'n0', 'addr': '5', 'max-qp': 8, "
                         "'max-cq': 4, 'mem-mgt': false}");
    d = qrdma_open(host, QPCI_DEVFN(5, 0));
    qrdma_get_config(d, &c);
    g_assert_cmphex(le64_to_cpu(c.device_cap_flags) &
                    VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS, ==, 0);
    g_assert_cmpuint(c.max_fast_reg_page_list_len, ==, 0);
    qrdma_start(d, QRDMA_FEATURES, 0);
    t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);

    req.pdn = cpu_to_le32(t.pd->pdn);
    assert_status(qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_MR, &req, sizeof(req),
                            &rsp, sizeof(rsp)), NOTSUPP);
    mapped = *t.mr_a;
    assert_status(qrdma_map_mr_sg(&mapped, TEST_IOVA_A, 4096), NOTSUPP);
    wr.opcode = RDMA_WR_REG_MR;
    wr.wr.reg.mrn = t.mr_a->mrn;
    wr.wr.reg.key = t.mr_a->lkey;
    expect_wr_refused(&t, &wr, RDMA_WC_LOC_QP_OP_ERR);
    wr.opcode = RDMA_WR_LOCAL_INV;
    wr.ex.invalidate_rkey = t.mr_a->rkey;
    expect_wr_refused(&t, &wr, RDMA_WC_MW_BIND_ERR);

    check_write(&t);
    g_assert_cmpuint(qrdma_get_dma_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE)->lkey,
                     !=, 0);
    qrdma_host_stop(host);
}

/* Is a driver served that takes these features? */
static bool takes_features(QRdma *d, uint64_t features)
{
    QVirtioDevice *vdev = &d->pci->vdev;
    uint8_t status = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;

    qrdma_reset(d);
    vdev->bus->set_status(vdev, status);
    vdev->bus->set_features(vdev, features);
    status |= VIRTIO_CONFIG_S_FEATURES_OK;
    vdev->bus->set_status(vdev, status);
    return vdev->bus->get_status(vdev) == status;
}

/*
 * A device that is behind an IOMMU, should there be one, says so, and serves
 * no driver that does not know (virtio 1.2, 6.2). flavour-test.c has an IOMMU.
 */
static void test_iommu_platform(void)
{
    const uint64_t bit = QRDMA_F(VIRTIO_F_IOMMU_PLATFORM);

    for (int on = 0; on < 2; on++) {
        TestPair t;
        QRdma *d;

        host_start();
        qtest_qmp_device_add(host->qts, "virtio-rdma-pci", "iommu",
                             "{'netdev': 'n0', 'addr': '5', 'max-qp': 8, "
                             "'max-cq': 4, 'iommu_platform': %i}", on);
        d = qrdma_open(host, QPCI_DEVFN(5, 0));
        g_assert_cmphex(qvirtio_get_features(&d->pci->vdev) & bit, ==,
                        on ? bit : 0);
        g_assert_cmpint(takes_features(d, QRDMA_FEATURES), ==, !on);
        qrdma_start(d, QRDMA_FEATURES | (on ? bit : 0), 0);
        t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
        check_write(&t);
        qrdma_host_stop(host);
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
    { "without-features", test_without_features },
    { "properties-are-listed", test_properties_are_listed },
    { "limits-of-0-take-features-away", test_limits_of_0_take_features_away },
    { "without-fast-registration", test_without_fast_registration },
    { "iommu-platform", test_iommu_platform },
    { "mac-comes-from-the-paired-nic", test_mac_comes_from_the_paired_nic },
    {}
};
