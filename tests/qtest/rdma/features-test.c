/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: feature bits that the device offers, and combinations that it
 * accepts from a driver
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define ALL_BITS (QRDMA_F(VIRTIO_RDMA_F_VERSION_1 + 1) - 1)
/* All features of the spec except F_HOST_NUMBERS */
#define OFFERED (QRDMA_F(VIRTIO_RDMA_F_VERSION_1) | \
                 QRDMA_F(VIRTIO_RDMA_F_DIRECT) | \
                 QRDMA_F(VIRTIO_RDMA_F_FLUSH) | \
                 QRDMA_F(VIRTIO_RDMA_F_ATOMIC_WRITE))
/* Drivers of version 0.9 accept any of these, with other meanings. */
#define BITS_0_9 (QRDMA_F(23) - 1)

static QRdma *plug(const char *props)
{
    return test_own_device("max-qp=8,max-cq=4,%s", props);
}

static void test_offered(void)
{
    QRdma *d = test_device_reset();
    uint64_t offered = qvirtio_get_features(&d->pci->vdev);

    g_assert_true(offered & QRDMA_F(VIRTIO_F_VERSION_1));
    g_assert_true(offered & QRDMA_F(VIRTIO_F_RING_RESET));
    g_assert_cmphex(offered & 0xffffff, ==, OFFERED);
}

/* The properties that turn bits off, and the bits that are left */
static void test_turned_off(void)
{
    static const struct {
        const char *props;
        uint64_t bits;
    } cases[] = {
        { "direct=on", OFFERED },
        { "direct=off", OFFERED & ~QRDMA_F(VIRTIO_RDMA_F_DIRECT) },
        { "version-1=off", 0 },
        { "version-1=off,direct=on", 0 },
    };

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        QRdma *d = plug(cases[i].props);
        TestPair t;

        g_assert_cmphex(qvirtio_get_features(&d->pci->vdev) & ALL_BITS, ==,
                        cases[i].bits);
        qrdma_start(d, QRDMA_RFC_FEATURES | cases[i].bits, 0);
        t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
        test_write(&t);
        qrdma_host_stop(d->host);
    }
}

/* Fields after the RFC's read as 0. */
static void test_config_of_the_rfc(void)
{
    QRdma *d = plug("version-1=off");
    struct virtio_rdma_config c, plain = {};

    qrdma_get_config(d, &c);
    g_assert_cmpuint(le32_to_cpu(c.max_inline_data), ==, 512);
    c.max_inline_data = 0;
    g_assert_cmpmem(c.mac, sizeof(c) - offsetof(typeof(c), mac), plain.mac,
                    sizeof(c) - offsetof(typeof(c), mac));
    g_assert_cmpuint(c.max_mw, ==, 0);
    g_assert_cmpuint(c.max_mcast_grp, ==, 0);
    g_assert_cmpuint(c.max_mcast_qp_attach, ==, 0);
    g_assert_cmpuint(c.max_total_mcast_qp_attach, ==, 0);
    qrdma_host_stop(d->host);
}

/* Does the device accept a driver with these features? */
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

/* All other bits add to version 1. */
static void test_bits_without_version_1(void)
{
    static const unsigned bits[] = {
        VIRTIO_RDMA_F_DIRECT, VIRTIO_RDMA_F_FLUSH, VIRTIO_RDMA_F_ATOMIC_WRITE,
    };
    QRdma *d = plug("direct=on");

    for (int i = 0; i < ARRAY_SIZE(bits); i++) {
        g_assert_false(takes_features(d, QRDMA_RFC_FEATURES |
                                         QRDMA_F(bits[i])));
        g_assert_true(takes_features(d, QRDMA_FEATURES | QRDMA_F(bits[i])));
    }
    qrdma_start(d, QRDMA_RFC_FEATURES, 0);
    qrdma_alloc_pd(d);
    qrdma_host_stop(d->host);
}

/* The driver has the RFC's device if it knows none of the bits offered. */
static void test_driver_of_version_0_9(void)
{
    static const struct {
        const char *props;
        bool taken;
    } cases[] = {
        { "direct=on", false },
        { "direct=off", false },
        { "version-1=off", true },
    };

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        QRdma *d = plug(cases[i].props);
        uint64_t offered = qvirtio_get_features(&d->pci->vdev);

        g_assert_cmpint(takes_features(d, QRDMA_RFC_FEATURES |
                                          (offered & BITS_0_9)), ==,
                        cases[i].taken);
        qrdma_host_stop(d->host);
    }
}

/* Set other features although the device is in use. */
static void change_features(QRdma *d, uint64_t features)
{
    QVirtioDevice *vdev = &d->pci->vdev;
    uint8_t status = vdev->bus->get_status(vdev);

    vdev->bus->set_status(vdev, status & ~VIRTIO_CONFIG_S_FEATURES_OK);
    vdev->bus->set_features(vdev, features);
    g_assert_cmphex(vdev->bus->get_status(vdev), ==,
                    status & ~VIRTIO_CONFIG_S_FEATURES_OK);
}

/* Bits without version 1 have no effect on a driver that goes on. */
static void test_refused_driver_goes_on(void)
{
    const uint64_t others = OFFERED & ~QRDMA_F(VIRTIO_RDMA_F_VERSION_1);
    QRdma *d = plug("direct=on");
    struct virtio_rdma_create_qp_req req;
    struct virtio_rdma_create_qp_rsp rsp;
    TestPair t;

    qrdma_start(d, QRDMA_RFC_FEATURES, 0);
    change_features(d, QRDMA_RFC_FEATURES | others);
    t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
    test_write(&t);
    req = (struct virtio_rdma_create_qp_req) {
        .pdn = cpu_to_le32(t.pd->pdn),
        .qp_type = RDMA_QPT_RC,
        .send_cqn = cpu_to_le32(t.cq_a->cqn),
        .recv_cqn = cpu_to_le32(t.cq_a->cqn),
        .flags = cpu_to_le32(VIRTIO_RDMA_QP_DIRECT),
    };
    assert_status(qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req),
                            &rsp, sizeof(rsp.qpn)), ERR);
    assert_status(qrdma_set_shadow(d, 1, qrdma_alloc(d, 4096)), ERR);
    qrdma_post_expect(t.a, qrdma_wr(RDMA_WR_FLUSH, 5, NULL),
                      RDMA_WC_LOC_QP_OP_ERR);
    qrdma_host_stop(d->host);
}

/*
 * A device with iommu_platform offers ACCESS_PLATFORM, and refuses drivers that
 * do not accept it (virtio 1.2, 6.2). flavour-test.c has an IOMMU.
 */
static void test_iommu_platform(void)
{
    const uint64_t bit = QRDMA_F(VIRTIO_F_IOMMU_PLATFORM);

    for (int on = 0; on < 2; on++) {
        QRdma *d = plug(on ? "iommu_platform=on" : "iommu_platform=off");
        TestPair t;

        g_assert_cmphex(qvirtio_get_features(&d->pci->vdev) & bit, ==,
                        on ? bit : 0);
        g_assert_cmpint(takes_features(d, QRDMA_FEATURES), ==, !on);
        qrdma_start(d, QRDMA_FEATURES | (on ? bit : 0), 0);
        t = test_pair_on(d, RDMA_QPT_RC, 64, NULL);
        test_write(&t);
        qrdma_host_stop(d->host);
    }
}

const QRdmaTest features_tests[] = {
    { "offered", test_offered },
    { "turned-off", test_turned_off },
    { "config-of-the-rfc", test_config_of_the_rfc },
    { "bits-without-version-1", test_bits_without_version_1 },
    { "driver-of-version-0-9", test_driver_of_version_0_9 },
    { "refused-driver-goes-on", test_refused_driver_goes_on },
    { "iommu-platform", test_iommu_platform },
    {}
};
