/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: protection domains, completion queues and queue pairs come
 * and go; who depends on whom.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

/* Numbers that never name an object of a full table of @max entries. */
#define BAD_HANDLES(max) { (max) + 1, (max) + 2, 0x7fffffff, 0x80000000, \
                           UINT32_MAX }

static uint8_t destroy(QRdma *d, uint8_t cmd, uint32_t handle)
{
    uint32_t le = cpu_to_le32(handle);

    return qrdma_cmd(d, cmd, &le, sizeof(le), NULL, 0);
}

static RdmaQpInitAttr usual_qp(QRdmaPd *pd, QRdmaCq *cq)
{
    return (RdmaQpInitAttr) {
        .pdn = pd->pdn,
        .qp_type = RDMA_QPT_RC,
        .send_cqn = cq->cqn,
        .recv_cqn = cq->cqn,
        .cap = { 8, 8, 1, 1, 0 },
    };
}

static void test_pd_table_fills_and_empties(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd[TEST_MAX_PD];
    uint32_t pdn;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TEST_MAX_PD; i++) {
            pd[i] = qrdma_alloc_pd(d);
            for (int j = 0; j < i; j++) {
                g_assert_cmpuint(pd[i]->pdn, !=, pd[j]->pdn);
            }
        }
        assert_status(qrdma_try_alloc_pd(d, &pdn), NOMEM);
        for (int i = 0; i < TEST_MAX_PD; i++) {
            assert_ok(qrdma_dealloc_pd(pd[i]));
            assert_status(qrdma_dealloc_pd(pd[i]), NOENT);
        }
    }
}

static void test_cq_table_fills_and_empties(void)
{
    QRdma *d = test_device();
    QRdmaCq *cq[TEST_MAX_CQ];
    uint32_t cqn;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TEST_MAX_CQ; i++) {
            cq[i] = qrdma_create_cq(d, 8);
            for (int j = 0; j < i; j++) {
                g_assert_cmpuint(cq[i]->cqn, !=, cq[j]->cqn);
            }
        }
        assert_status(qrdma_try_create_cq(d, 8, &cqn), NOMEM);
        for (int i = 0; i < TEST_MAX_CQ; i++) {
            assert_ok(qrdma_destroy_cq(cq[i]));
            assert_status(qrdma_destroy_cq(cq[i]), NOENT);
        }
    }
}

static void test_qp_table_fills_and_empties(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaQp *qp[TEST_MAX_QP - 2];
    RdmaQpInitAttr init = usual_qp(pd, cq);
    uint32_t qpn;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < ARRAY_SIZE(qp); i++) {
            qp[i] = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
            for (int j = 0; j < i; j++) {
                g_assert_cmpuint(qp[i]->qpn, !=, qp[j]->qpn);
            }
        }
        assert_status(qrdma_try_create_qp(d, &init, &qpn), NOMEM);
        for (int i = 0; i < ARRAY_SIZE(qp); i++) {
            assert_ok(qrdma_destroy_qp(qp[i]));
            assert_status(qrdma_destroy_qp(qp[i]), NOENT);
        }
    }
}

static void test_numbers_without_object(void)
{
    QRdma *d = test_device();
    const uint32_t bad[] = BAD_HANDLES(TEST_MAX_MR);

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_status(destroy(d, VIRTIO_RDMA_CMD_DESTROY_PD, bad[i]), NOENT);
        assert_status(destroy(d, VIRTIO_RDMA_CMD_DESTROY_CQ, bad[i]), NOENT);
        assert_status(destroy(d, VIRTIO_RDMA_CMD_DESTROY_QP, bad[i]), NOENT);
        assert_status(destroy(d, VIRTIO_RDMA_CMD_DEREG_MR, bad[i]), NOENT);
    }
    for (uint32_t n = 0; n <= TEST_MAX_MR + 1; n++) {
        assert_status(destroy(d, VIRTIO_RDMA_CMD_DESTROY_PD, n), NOENT);
        assert_status(destroy(d, VIRTIO_RDMA_CMD_DESTROY_CQ, n), NOENT);
        assert_status(destroy(d, VIRTIO_RDMA_CMD_DESTROY_QP, n), NOENT);
        assert_status(destroy(d, VIRTIO_RDMA_CMD_DEREG_MR, n), NOENT);
    }
}

static void test_cqe_counts(void)
{
    QRdma *d = test_device_reset();
    const uint32_t bad[] = { 0, 1025, 65536, 0x7fffffff, UINT32_MAX };
    uint32_t cqn;

    qrdma_start(d, 0, 1024);
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_status(qrdma_try_create_cq(d, bad[i], &cqn), INVAL);
    }
    assert_ok(qrdma_try_create_cq(d, 1, &cqn));
    assert_ok(qrdma_try_create_cq(d, 1024, &cqn));
}

static void test_cqe_within_ring_of_driver(void)
{
    QRdma *d = test_device_reset();
    uint32_t cqn;

    qrdma_start(d, 0, 32);
    assert_status(qrdma_try_create_cq(d, 33, &cqn), INVAL);
    assert_status(qrdma_try_create_cq(d, 1024, &cqn), INVAL);
    assert_ok(qrdma_try_create_cq(d, 32, &cqn));
}

static void test_wr_within_ring_of_driver(void)
{
    QRdma *d = test_device_reset();
    RdmaQpInitAttr init;
    uint32_t qpn;

    qrdma_start(d, 0, 32);
    init = usual_qp(qrdma_alloc_pd(d), qrdma_create_cq(d, 8));
    init.cap.max_send_wr = 33;
    assert_status(qrdma_try_create_qp(d, &init, &qpn), INVAL);
    init.cap.max_send_wr = 32;
    init.cap.max_recv_wr = 33;
    assert_status(qrdma_try_create_qp(d, &init, &qpn), INVAL);
    init.cap.max_recv_wr = 32;
    assert_ok(qrdma_try_create_qp(d, &init, &qpn));
}

static void test_qp_counts(void)
{
    QRdma *d = test_device();
    struct virtio_rdma_config c;
    RdmaQpInitAttr init = usual_qp(qrdma_alloc_pd(d), qrdma_create_cq(d, 8));
    struct {
        uint32_t *count;
        uint32_t max;
    } counts[5];
    uint32_t qpn;

    qrdma_get_config(d, &c);
    counts[0].count = &init.cap.max_send_wr;
    counts[0].max = QRDMA_RING_SIZE;
    counts[1].count = &init.cap.max_recv_wr;
    counts[1].max = QRDMA_RING_SIZE;
    counts[2].count = &init.cap.max_send_sge;
    counts[2].max = le32_to_cpu(c.max_send_sge);
    counts[3].count = &init.cap.max_recv_sge;
    counts[3].max = le32_to_cpu(c.max_recv_sge);
    counts[4].count = &init.cap.max_inline_data;
    counts[4].max = le32_to_cpu(c.max_inline_data);
    for (int i = 0; i < ARRAY_SIZE(counts); i++) {
        uint32_t good = *counts[i].count;
        const uint32_t bad[] = {
            counts[i].max + 1, 0x7fffffff, 0x80000000, UINT32_MAX,
        };

        for (int j = 0; j < ARRAY_SIZE(bad); j++) {
            *counts[i].count = bad[j];
            assert_status(qrdma_try_create_qp(d, &init, &qpn), INVAL);
        }
        *counts[i].count = counts[i].max;
        assert_ok(qrdma_try_create_qp(d, &init, &qpn));
        assert_ok(destroy(d, VIRTIO_RDMA_CMD_DESTROY_QP, qpn));
        qrdma_ring_reset(qrdma_ring(d, VIRTIO_RDMA_SQ_VQ(d->max_cq, qpn)));
        qrdma_ring_setup(qrdma_ring(d, VIRTIO_RDMA_SQ_VQ(d->max_cq, qpn)),
                         QRDMA_RING_SIZE);
        qrdma_ring_reset(qrdma_ring(d, VIRTIO_RDMA_RQ_VQ(d->max_cq, qpn)));
        qrdma_ring_setup(qrdma_ring(d, VIRTIO_RDMA_RQ_VQ(d->max_cq, qpn)),
                         QRDMA_RING_SIZE);
        *counts[i].count = good;
    }
}

static void test_qp_types(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    RdmaQpInitAttr init = usual_qp(pd, cq);
    const int bad[] = { RDMA_QPT_SMI, 5, 6, 8, 9, 0x7f, 0x80, 0xff };
    uint32_t qpn;

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        uint8_t status;

        init.qp_type = bad[i];
        status = qrdma_try_create_qp(d, &init, &qpn);
        g_assert_true(status == VIRTIO_RDMA_S_NOTSUPP ||
                      status == VIRTIO_RDMA_S_INVAL);
    }
    qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    qrdma_create_qp(pd, cq, cq, RDMA_QPT_UC);
    qrdma_create_qp(pd, cq, cq, RDMA_QPT_UD);
}

static void test_sq_sig_type_is_checked(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    struct virtio_rdma_create_qp_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .qp_type = RDMA_QPT_RC,
        .max_send_wr = cpu_to_le32(1),
        .max_recv_wr = cpu_to_le32(1),
        .send_cqn = cpu_to_le32(cq->cqn),
        .recv_cqn = cpu_to_le32(cq->cqn),
    };
    struct virtio_rdma_qpn rsp;

    for (int sig = 2; sig < 256; sig = sig * 3 + 1) {
        req.sq_sig_type = sig;
        assert_status(qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_QP,
                                &req, sizeof(req), &rsp, sizeof(rsp)), INVAL);
    }
    req.sq_sig_type = VIRTIO_RDMA_SIGNAL_ALL_WR;
    assert_ok(qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req),
                        &rsp, sizeof(rsp)));
}

static void test_one_gsi_qp_with_number_1(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    RdmaQpInitAttr init = usual_qp(pd, cq);
    QRdmaQp *gsi;
    uint32_t qpn;

    gsi = qrdma_create_qp(pd, cq, cq, RDMA_QPT_GSI);
    g_assert_cmpuint(gsi->qpn, ==, 1);
    init.qp_type = RDMA_QPT_GSI;
    assert_status(qrdma_try_create_qp(d, &init, &qpn), BUSY);
    assert_ok(qrdma_destroy_qp(gsi));
    assert_ok(qrdma_try_create_qp(d, &init, &qpn));
    g_assert_cmpuint(qpn, ==, 1);
}

static void test_qp_of_unknown_pd_or_cq(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    const uint32_t bad[] = BAD_HANDLES(TEST_MAX_QP);
    RdmaQpInitAttr init;
    uint32_t qpn;

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        init = usual_qp(pd, cq);
        init.pdn = bad[i];
        assert_status(qrdma_try_create_qp(d, &init, &qpn), NOENT);
        init = usual_qp(pd, cq);
        init.send_cqn = bad[i];
        assert_status(qrdma_try_create_qp(d, &init, &qpn), NOENT);
        init = usual_qp(pd, cq);
        init.recv_cqn = bad[i];
        assert_status(qrdma_try_create_qp(d, &init, &qpn), NOENT);
    }
}

static void test_failed_create_leaves_nothing_busy(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    RdmaQpInitAttr init = usual_qp(pd, cq);
    uint32_t qpn;

    init.cap.max_send_wr = UINT32_MAX;
    assert_status(qrdma_try_create_qp(d, &init, &qpn), INVAL);
    init = usual_qp(pd, cq);
    init.recv_cqn = 1234;
    assert_status(qrdma_try_create_qp(d, &init, &qpn), NOENT);
    assert_ok(qrdma_destroy_cq(cq));
    assert_ok(qrdma_dealloc_pd(pd));
}

static void test_destroy_in_every_wrong_order_is_busy(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *send_cq = qrdma_create_cq(d, 8);
    QRdmaCq *recv_cq = qrdma_create_cq(d, 8);
    QRdmaQp *qp = qrdma_create_qp(pd, send_cq, recv_cq, RDMA_QPT_UD);
    QRdmaMr *user = qrdma_reg_mr(pd, 0x1000, 4096, 0);
    QRdmaMr *dma = qrdma_get_dma_mr(pd, 0);
    QRdmaMr *fast = qrdma_alloc_mr(pd, 0, 4);

    assert_status(qrdma_dealloc_pd(pd), BUSY);
    assert_status(qrdma_destroy_cq(send_cq), BUSY);
    assert_status(qrdma_destroy_cq(recv_cq), BUSY);
    assert_ok(qrdma_dereg_mr(user));
    assert_status(qrdma_dealloc_pd(pd), BUSY);
    assert_ok(qrdma_dereg_mr(dma));
    assert_status(qrdma_dealloc_pd(pd), BUSY);
    assert_ok(qrdma_dereg_mr(fast));
    assert_status(qrdma_dealloc_pd(pd), BUSY);
    assert_ok(qrdma_destroy_qp(qp));
    assert_ok(qrdma_destroy_cq(recv_cq));
    assert_ok(qrdma_destroy_cq(send_cq));
    assert_ok(qrdma_dealloc_pd(pd));
}

/*
 * Old buffers of one CQ shall not serve the next: a queue that was reset is
 * taken before one that was not, whatever their order.
 */
static void test_number_whose_ring_was_reset_comes_first(void)
{
    QRdma *d = test_device();

    for (int which = 0; which < 2; which++) {
        QRdmaCq *cq[2];
        uint32_t cqn;

        for (int i = 0; i < 2; i++) {
            cq[i] = qrdma_create_cq(d, 8);
        }
        for (int i = 2; i < TEST_MAX_CQ; i++) {
            assert_ok(qrdma_try_create_cq(d, 8, &cqn));
        }
        for (int i = 0; i < 2; i++) {
            assert_ok(destroy(d, VIRTIO_RDMA_CMD_DESTROY_CQ, cq[i]->cqn));
        }
        qrdma_ring_reset(cq[which]->ring);
        qrdma_ring_setup(cq[which]->ring, QRDMA_RING_SIZE);
        assert_ok(qrdma_try_create_cq(d, 8, &cqn));
        g_assert_cmpuint(cqn, ==, cq[which]->cqn);
        qrdma_start(d, 0, 0);
    }
}

void add_object_tests(void)
{
    qtest_add_func("virtio-rdma/object/pd-table-fills-and-empties",
                   test_pd_table_fills_and_empties);
    qtest_add_func("virtio-rdma/object/cq-table-fills-and-empties",
                   test_cq_table_fills_and_empties);
    qtest_add_func("virtio-rdma/object/qp-table-fills-and-empties",
                   test_qp_table_fills_and_empties);
    qtest_add_func("virtio-rdma/object/numbers-without-object",
                   test_numbers_without_object);
    qtest_add_func("virtio-rdma/object/cqe-counts", test_cqe_counts);
    qtest_add_func("virtio-rdma/object/cqe-within-ring-of-driver",
                   test_cqe_within_ring_of_driver);
    qtest_add_func("virtio-rdma/object/wr-within-ring-of-driver",
                   test_wr_within_ring_of_driver);
    qtest_add_func("virtio-rdma/object/qp-counts", test_qp_counts);
    qtest_add_func("virtio-rdma/object/qp-types", test_qp_types);
    qtest_add_func("virtio-rdma/object/sq-sig-type-is-checked",
                   test_sq_sig_type_is_checked);
    qtest_add_func("virtio-rdma/object/one-gsi-qp-with-number-1",
                   test_one_gsi_qp_with_number_1);
    qtest_add_func("virtio-rdma/object/qp-of-unknown-pd-or-cq",
                   test_qp_of_unknown_pd_or_cq);
    qtest_add_func("virtio-rdma/object/failed-create-leaves-nothing-busy",
                   test_failed_create_leaves_nothing_busy);
    qtest_add_func("virtio-rdma/object/destroy-in-every-wrong-order-is-busy",
                   test_destroy_in_every_wrong_order_is_busy);
    qtest_add_func("virtio-rdma/object/number-whose-ring-was-reset-first",
                   test_number_whose_ring_was_reset_comes_first);
}
