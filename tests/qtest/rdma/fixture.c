/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The virtio-rdma device that tests share.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

/* By layout: that of the specification, and that of the demo */
static QRdma *devices[2];
static bool use_demo;

static QRdma *device_get(void)
{
    QRdma *d = devices[use_demo];

    if (!d) {
        QRdmaHost *host = qrdma_host_start_shared(
            /* hubs take the frames that go out */
            "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
            "-device virtio-rdma-pci,id=rdma0,%s,addr=%d,"
            "max-qp=%d,max-cq=%d,max-mr=%d,max-pd=%d,gid-table-len=%d,"
            "max-mw=%d,max-srq=%d,max-srq-wr=%d,max-mcast-grp=%d%s",
            qrdma_ibdev() ? "rdmadev=v0" : "netdev=n0,mac=" TEST_MAC,
            TEST_SLOT, TEST_MAX_QP, TEST_MAX_CQ, TEST_MAX_MR, TEST_MAX_PD,
            TEST_GIDS, TEST_MAX_MW, TEST_MAX_SRQ, TEST_MAX_SRQ_WR,
            TEST_MAX_MCAST_GRP, use_demo ? ",layout=demo" : "");

        d = devices[use_demo] = qrdma_open(host, QPCI_DEVFN(TEST_SLOT, 0));
        if (use_demo) {
            qrdma_use_demo(d);
        }
    }
    return d;
}

static void run_on_demo(const void *data)
{
    const QRdmaTest *test = data;

    use_demo = true;
    if (test->run) {
        test->run();
    } else {
        test->run_case(test->data);
    }
    use_demo = false;
}

void test_add_layouts(const char *prefix, const QRdmaTest *tests)
{
    const char *group = strchr(prefix, '/');

    qrdma_add_tests(prefix, tests);
    /* The layout of the demo does not go with a host's device. */
    for (; tests->name && !qrdma_ibdev(); tests++) {
        g_autofree char *path = g_strconcat("virtio-rdma/demo", group,
                                            tests->name, NULL);

        if (!tests->not_demo) {
            qtest_add_data_func(path, tests, run_on_demo);
        }
    }
}

QRdma *test_device(void)
{
    QRdma *d = device_get();

    qrdma_start(d, 0, 0);
    return d;
}

QRdma *test_device_with(uint64_t features)
{
    QRdma *d = device_get();
    QVirtioDevice *vdev = &d->pci->vdev;

    features |= QRDMA_FEATURES;
    if (qrdma_ibdev()) {
        features &= qvirtio_get_features(vdev);
    }
    qrdma_start(d, features, 0);
    return d;
}

QRdma *test_rfc_device(void)
{
    QRdma *d = device_get();

    qrdma_start(d, QRDMA_RFC_FEATURES, 0);
    return d;
}

QRdma *test_device_reset(void)
{
    QRdma *d = device_get();

    qrdma_reset(d);
    return d;
}

void test_device_quit(void)
{
    for (int i = 0; i < ARRAY_SIZE(devices); i++) {
        if (devices[i]) {
            qrdma_host_stop(devices[i]->host);
            devices[i] = NULL;
        }
    }
}

QRdma *test_own_device(const char *fmt, ...)
{
    g_autofree char *options = NULL;
    va_list ap;

    va_start(ap, fmt);
    options = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return qrdma_open(qrdma_host_start_shared(
        "-netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,%s", TEST_SLOT, options),
        QPCI_DEVFN(TEST_SLOT, 0));
}

TestPair test_loopback_pair(RdmaQpType type, const QRdmaPath *path)
{
    return test_pair_on(test_device(), type, 64, path);
}

TestPair test_pair_on(QRdma *d, RdmaQpType type, uint32_t cqe,
                      const QRdmaPath *path)
{
    TestPair t = { .dev = d };

    qrdma_setup_gids(t.dev, 1);
    t.pd = qrdma_alloc_pd(t.dev);
    t.cq_a = qrdma_create_cq(t.dev, cqe);
    t.cq_b = qrdma_create_cq(t.dev, cqe);
    t.a = qrdma_create_qp(t.pd, t.cq_a, t.cq_a, type);
    t.b = qrdma_create_qp(t.pd, t.cq_b, t.cq_b, type);
    t.mr_a = qrdma_reg_mr(t.pd, TEST_IOVA_A, TEST_MR_SIZE, TEST_ACCESS_ALL);
    t.mr_b = qrdma_reg_mr(t.pd, TEST_IOVA_B, TEST_MR_SIZE, TEST_ACCESS_ALL);
    qrdma_connect(t.a, t.b, path);
    return t;
}

void test_write(TestPair *t)
{
    RdmaSge sge = qrdma_sge(t->mr_a, 0, 5000);

    qrdma_mr_fill(t->mr_a, 0, 5000, 7);
    qrdma_post_expect(t->a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 4, &sge, t->mr_b,
                                          0), RDMA_WC_SUCCESS);
    qrdma_mr_check(t->mr_b, 0, 5000, 7);
}

void test_renew_cq_b(TestPair *t)
{
    uint32_t cqn = t->cq_b->cqn;

    assert_ok(qrdma_destroy_qp(t->b));
    assert_ok(qrdma_destroy_cq(t->cq_b));
    do {
        t->cq_b = qrdma_create_cq(t->dev, 16);
    } while (t->cq_b->cqn != cqn);
    t->b = qrdma_create_qp(t->pd, t->cq_b, t->cq_b, RDMA_QPT_RC);
    assert_ok(qrdma_modify_qp_state(t->a, RDMA_QPS_RESET));
    qrdma_connect(t->a, t->b, NULL);
}

void test_reset_pair(TestPair *t)
{
    RdmaWc wc;

    assert_ok(qrdma_modify_qp_state(t->a, RDMA_QPS_RESET));
    assert_ok(qrdma_modify_qp_state(t->b, RDMA_QPS_RESET));
    while (qrdma_poll_cq(t->cq_a, &wc) || qrdma_poll_cq(t->cq_b, &wc)) {
        continue;
    }
}

void test_reconnect(TestPair *t)
{
    test_reset_pair(t);
    qrdma_connect(t->a, t->b, NULL);
}

RdmaQpInitAttr test_srq_init(const QRdmaSrq *srq, RdmaQpType type)
{
    return (RdmaQpInitAttr) {
        .qp_type = type,
        .has_srq = true,
        .srqn = srq->srqn,
        .cap = {
            .max_send_wr = MIN(32, srq->dev->ring_size),
            .max_send_sge = 4,
        },
    };
}

TestSrqPair test_srq_pair(QRdmaPd *pd, QRdmaSrq *srq, RdmaQpType type)
{
    TestSrqPair p = { .dev = pd->dev, .pd = pd, .srq = srq };
    RdmaQpInitAttr init = test_srq_init(srq, type);

    p.cq_a = qrdma_create_cq(p.dev, 64);
    p.cq_b = qrdma_create_cq(p.dev, 64);
    p.a = qrdma_create_qp(pd, p.cq_a, p.cq_a, type);
    p.b = qrdma_create_qp_attr(pd, p.cq_b, p.cq_b, &init);
    p.mr = qrdma_reg_mr(pd, TEST_IOVA_A, TEST_MR_SIZE, TEST_ACCESS_ALL);
    qrdma_bring_up(p.a, p.b, NULL);
    return p;
}

static uint64_t recv_at(uint64_t wr_id)
{
    return TEST_MR_SIZE / 2 + wr_id % 128 * 256;
}

RdmaSge test_srq_sge(TestSrqPair *p, uint64_t wr_id)
{
    return qrdma_sge(p->mr, recv_at(wr_id), 256);
}

void test_srq_send(TestSrqPair *p, uint64_t wr_id, uint32_t len)
{
    RdmaSge sge = qrdma_sge(p->mr, 0, len);

    qrdma_mr_fill(p->mr, 0, TEST_MSG, wr_id);
    qrdma_post(p->a, p->a->type == RDMA_QPT_UD ?
                     qrdma_ud_wr(wr_id, &sge, p->b, 0) :
                     qrdma_wr(RDMA_WR_SEND, wr_id, &sge));
}

void test_srq_transfer(TestSrqPair *p, uint64_t wr_id)
{
    uint32_t grh = p->a->type == RDMA_QPT_UD ? 40 : 0;
    RdmaWc wc;

    test_srq_send(p, wr_id, TEST_MSG);
    qrdma_expect(p->cq_a, wr_id, RDMA_WC_SUCCESS);
    qrdma_expect_wc(p->cq_b, wr_id, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, grh + TEST_MSG);
    g_assert_cmpuint(wc.qp_num, ==, p->b->qpn);
    qrdma_mr_check(p->mr, recv_at(wr_id) + grh, TEST_MSG, wr_id);
}
