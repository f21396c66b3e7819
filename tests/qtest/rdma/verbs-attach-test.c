/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: a device that the host cannot serve is refused with a clear
 * error, and leaves nothing behind.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "verbs-test.h"

#define FAKE "'ibdev': '" FAKE_IBVERBS_DEVICE "'"

static void test_no_such_device(void)
{
    g_autoptr(Verbs) v = verbs_host(NULL);

    verbs_refused(v, "'ibdev': 'mlx5_7'", "'mlx5_7'");
    verbs_refused(v, "'ibdev': 'mlx5_7'", "it has: " FAKE_IBVERBS_DEVICE);
    fake_verbs_tell(v->fake, "device gone");
    verbs_refused(v, FAKE, "none");
    fake_verbs_tell(v->fake, "device back");
    verbs_plug(v);
}

static void test_no_such_port(void)
{
    g_autoptr(Verbs) v = verbs_host(NULL);

    verbs_refused(v, FAKE ", 'port': 2", "no port 2");
    verbs_refused(v, FAKE ", 'port': 0", "no port 0");
}

static void test_infiniband_is_not_roce(void)
{
    g_autoptr(Verbs) v = verbs_host("link infiniband");

    verbs_refused(v, FAKE, "not RoCE");
    fake_verbs_tell(v->fake, "link ethernet");
    verbs_plug(v);
}

static void test_memory_that_is_not_shared(void)
{
    g_autoptr(Verbs) v = verbs_host_memory(NULL, false);

    verbs_refused(v, FAKE, "not shared");
    g_assert_cmpint(fake_verbs_calls(v->fake, "open_device"), ==, 0);
}

/* Memory of NUMA nodes belongs to the machine, too. */
static void check_nodes(bool shared)
{
    g_autofree char *args = g_strdup_printf(
        "-object memory-backend-memfd,id=m0,size=32M,share=on "
        "-object memory-backend-memfd,id=m1,size=32M,share=%s "
        "-numa node,memdev=m0 -numa node,memdev=m1 "
        "-object rdma-verbs,id=r0,ibdev=" FAKE_IBVERBS_DEVICE,
        shared ? "on" : "off");
    g_autoptr(Verbs) v = g_new0(Verbs, 1);

    v->fake = fake_verbs_new(VERBS_GIDS);
    v->host = qrdma_host_start("%s", args);
    fake_verbs_started(v->fake);
    if (shared) {
        VerbsPair p;

        verbs_plug(v);
        p = verbs_pair(v, RDMA_QPT_RC);
        verbs_check_works(&p, 1);
    } else {
        verbs_refused(v, FAKE, "not shared");
    }
}

static void test_numa_nodes(void)
{
    check_nodes(true);
    check_nodes(false);
}

static void test_iommu_of_the_guest(void)
{
    g_autoptr(Verbs) v = verbs_host(NULL);

    verbs_refused_with(v, FAKE, "'iommu_platform': true", "IOMMU");
}

static void check_property(Verbs *v, const char *name, const char *value,
                           bool ok)
{
    g_autofree char *set = g_strdup_printf(
        "{'execute': 'qom-set', 'arguments': {'path': '/objects/r0', "
        "'property': '%s', 'value': %s}}", name, value);
    QDict *rsp = qtest_qmp(v->host->qts, set, NULL);

    g_assert_cmpint(qdict_haskey(rsp, "error"), ==, !ok);
    qobject_unref(rsp);
    rsp = qtest_qmp(v->host->qts, "{'execute': 'qom-get', 'arguments': "
                    "{'path': '/objects/r0', 'property': %s}}", name);
    g_assert_true(qdict_haskey(rsp, "return"));
    qobject_unref(rsp);
}

static void test_properties_stay_while_in_use(void)
{
    static const char *const props[][2] = {
        { "ibdev", "'" FAKE_IBVERBS_DEVICE "'" }, { "port", "1" },
        { "gid-mode", "'match'" }, { "max-memory", "0" },
    };
    g_autoptr(Verbs) v = verbs_host(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(props); i++) {
        check_property(v, props[i][0], props[i][1], true);
    }
    verbs_plug(v);
    for (size_t i = 0; i < ARRAY_SIZE(props); i++) {
        check_property(v, props[i][0], props[i][1], false);
    }
}

/* Each verb that an attach needs may fail, with the errno in the message. */
static void test_verbs_that_fail(void)
{
    static const struct {
        const char *verb;
        const char *err;
        const char *text;
    } bad[] = {
        { "open_device", "EACCES", "Permission denied" },
        { "open_device", "EMFILE", "Too many open files" },
        { "query_device", "EIO", "Input/output error" },
        { "query_port", "EINVAL", "Invalid argument" },
        { "create_comp_channel", "ENOMEM", "Cannot allocate memory" },
    };
    g_autoptr(Verbs) v = verbs_host(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        fake_verbs_tell(v->fake, "fail %s %s", bad[i].verb, bad[i].err);
        verbs_refused(v, FAKE, bad[i].text);
    }
    verbs_plug(v);
}

static void test_one_device_for_a_backend(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);

    qrdma_qmp_refused(v->host->qts, "{'execute': 'device_add', "
                      "'arguments': {'driver': 'virtio-rdma-pci', "
                      "'id': 'bad', 'rdmadev': 'r0'}}", "");
    g_assert_cmpint(fake_verbs_count(v->fake, "context"), ==, 1);
}

static void test_two_backends_on_one_host_device(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);

    qtest_qmp_assert_success(v->host->qts, "{'execute': 'object-add', "
                             "'arguments': {'qom-type': 'rdma-verbs', "
                             "'id': 'r1', " FAKE "}}");
    qtest_qmp_device_add(v->host->qts, "virtio-rdma-pci", "rdma1",
                         "{'rdmadev': 'r1', 'addr': '5'}");
    g_assert_cmpint(fake_verbs_count(v->fake, "context"), ==, 2);
    qpci_unplug_acpi_device_test(v->host->qts, "rdma1", 5);
    g_assert_cmpint(fake_verbs_count(v->fake, "context"), ==, 1);
}

/* The device has the limits of the host if these are lower than its own. */
static void test_limits(void)
{
    g_autoptr(Verbs) v =
        verbs_new("attr max_mr 7; attr max_cqe 99; attr max_pd 3");
    struct virtio_rdma_config config;

    qrdma_get_config(v->dev, &config);
    g_assert_cmpint(le32_to_cpu(config.max_mr), ==, 7);
    g_assert_cmpint(le32_to_cpu(config.max_cqe), ==, 99);
    g_assert_cmpint(le32_to_cpu(config.max_pd), ==, 3);
}

static char *get_info(Verbs *v)
{
    QDict *rsp = qtest_qmp(v->host->qts, "{'execute': 'qom-get', 'arguments': "
                           "{'path': '/objects/r0', 'property': 'info'}}");
    char *info = g_strdup(qdict_get_str(rsp, "return"));

    qobject_unref(rsp);
    return info;
}

static void test_info(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    g_autofree char *none = get_info(v);
    g_autofree char *one = NULL;

    g_assert_cmpstr(none, ==, FAKE_IBVERBS_DEVICE " port 1, up; QPs 0, CQs 0, "
                    "SRQs 0, MRs and MWs 0");
    qrdma_create_cq(v->dev, 4);
    one = get_info(v);
    g_assert_cmpstr(one, ==, FAKE_IBVERBS_DEVICE " port 1, up; QPs 0, CQs 1, "
                    "SRQs 0, MRs and MWs 0");
}

static void test_a_driver_without_host_numbers(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QVirtioDevice *vdev = &v->dev->pci->vdev;

    qrdma_reset(v->dev);
    qvirtio_set_acknowledge(vdev);
    qvirtio_set_driver(vdev);
    vdev->bus->set_features(vdev, QRDMA_FEATURES);
    vdev->bus->set_status(vdev, qrdma_device_status(v->dev) |
                          VIRTIO_CONFIG_S_FEATURES_OK);
    g_assert_cmphex(qrdma_device_status(v->dev) &
                    VIRTIO_CONFIG_S_FEATURES_OK, ==, 0);
    verbs_restart(v);
}

static void test_device_of_the_rfc(void)
{
    g_autoptr(Verbs) v = verbs_host(NULL);

    verbs_refused_with(v, FAKE, "'version-1': false",
                       "version-1=off does not go with the backend");
    verbs_refused_with(v, FAKE, "'layout': 'demo'",
                       "layout=demo does not go with the backend");
}

const QRdmaTest verbs_attach_tests[] = {
    { "no-such-device", test_no_such_device },
    { "no-such-port", test_no_such_port },
    { "infiniband-is-not-roce", test_infiniband_is_not_roce },
    { "memory-that-is-not-shared", test_memory_that_is_not_shared },
    { "numa-nodes", test_numa_nodes },
    { "iommu-of-the-guest", test_iommu_of_the_guest },
    { "properties-stay-while-in-use", test_properties_stay_while_in_use },
    { "verbs-that-fail", test_verbs_that_fail },
    { "one-device-for-a-backend", test_one_device_for_a_backend },
    { "two-backends-on-one-host-device", test_two_backends_on_one_host_device },
    { "limits-of-the-host", test_limits },
    { "info", test_info },
    { "a-driver-without-host-numbers", test_a_driver_without_host_numbers },
    { "device-of-the-rfc", test_device_of_the_rfc },
    {}
};
