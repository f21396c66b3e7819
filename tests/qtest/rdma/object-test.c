/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: protection domains, completion queues and queue pairs come and
 * go, and depend on each other.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

/* Numbers that never name an object of a full table of @max entries. */
#define BAD_HANDLES(max) { (max) + 1, (max) + 2, 0x7fffffff, 0x80000000, \
                           UINT32_MAX }

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
    static const uint8_t commands[] = {
        VIRTIO_RDMA_CMD_DESTROY_PD, VIRTIO_RDMA_CMD_DESTROY_CQ,
        VIRTIO_RDMA_CMD_DESTROY_QP, VIRTIO_RDMA_CMD_DEREG_MR,
    };
    QRdma *d = test_device();
    const uint32_t bad[] = BAD_HANDLES(TEST_MAX_MR);

    for (int c = 0; c < ARRAY_SIZE(commands); c++) {
        for (int i = 0; i < ARRAY_SIZE(bad); i++) {
            assert_status(qrdma_destroy(d, commands[c], bad[i]), NOENT);
        }
        for (uint32_t n = 0; n <= TEST_MAX_MR + 1; n++) {
            assert_status(qrdma_destroy(d, commands[c], n), NOENT);
        }
    }
}

/* A number of an object of one kind does not name an object of another kind. */
static void test_numbers_of_other_kinds(void)
{
    static const uint8_t commands[] = {
        VIRTIO_RDMA_CMD_DESTROY_PD, VIRTIO_RDMA_CMD_DESTROY_CQ,
        VIRTIO_RDMA_CMD_DESTROY_QP, VIRTIO_RDMA_CMD_DEREG_MR,
        VIRTIO_RDMA_CMD_DESTROY_SRQ, VIRTIO_RDMA_CMD_DEALLOC_MW,
    };
    for (int kind = 0; kind < 3; kind++) {
        QRdma *d = test_device();
        QRdmaPd *pd = qrdma_alloc_pd(d);
        uint8_t own = VIRTIO_RDMA_CMD_DEREG_MR;

        assert_ok(qrdma_dealloc_pd(pd));
        if (kind == 0) {
            own = VIRTIO_RDMA_CMD_DESTROY_PD;
            for (int i = 0; i < TEST_MAX_PD; i++) {
                qrdma_alloc_pd(d);
            }
        } else if (kind == 1) {
            own = VIRTIO_RDMA_CMD_DESTROY_CQ;
            for (int i = 0; i < TEST_MAX_CQ; i++) {
                qrdma_create_cq(d, 8);
            }
        } else {
            pd = qrdma_alloc_pd(d);
            for (int i = 0; i < TEST_MAX_MR; i++) {
                qrdma_alloc_mr(pd, RDMA_ACCESS_LOCAL_WRITE, 1);
            }
        }
        for (int i = 0; i < ARRAY_SIZE(commands); i++) {
            for (uint32_t n = 0; commands[i] != own && n <= TEST_MAX_MR; n++) {
                if (kind == 2 && commands[i] == VIRTIO_RDMA_CMD_DESTROY_PD &&
                    n == pd->pdn) {
                    assert_status(qrdma_destroy(d, commands[i], n), BUSY);
                } else {
                    assert_status(qrdma_destroy(d, commands[i], n), NOENT);
                }
            }
        }
    }
}

/* The number of a destroyed object is as unknown as one that was never used. */
static void test_numbers_of_what_was_destroyed(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d), *old_pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8), *old_cq = qrdma_create_cq(d, 8);
    QRdmaSrq *srq = qrdma_create_srq(pd, 8, 1);
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    RdmaQpInitAttr init = usual_qp(pd, cq);
    RdmaSrqAttr srq_attr = { .pdn = old_pd->pdn, .max_wr = 8 };
    RdmaQpAttr attr;
    uint32_t n;

    assert_ok(qrdma_dealloc_pd(old_pd));
    assert_ok(qrdma_destroy_cq(old_cq));
    assert_ok(qrdma_destroy_srq(srq));
    assert_ok(qrdma_destroy_qp(qp));
    assert_status(qrdma_destroy_srq(srq), NOENT);
    assert_status(qrdma_destroy_qp(qp), NOENT);
    assert_status(qrdma_modify_qp_state(qp, RDMA_QPS_RESET), NOENT);
    assert_status(qrdma_query_qp(qp, &attr), NOENT);
    assert_status(qrdma_req_notify_cq(old_cq, 1), NOENT);
    assert_status(qrdma_resize_cq(old_cq, 8, 0), NOENT);
    assert_status(qrdma_modify_srq(srq, 0), NOENT);
    assert_status(qrdma_query_srq(srq, &srq_attr), NOENT);
    srq_attr.pdn = old_pd->pdn;
    assert_status(qrdma_try_create_srq(d, &srq_attr, &n), NOENT);
    init.has_srq = true;
    init.srqn = srq->srqn;
    assert_status(qrdma_try_create_qp(d, &init, &n), NOENT);
    init = usual_qp(old_pd, cq);
    assert_status(qrdma_try_create_qp(d, &init, &n), NOENT);
    init = usual_qp(pd, cq);
    init.send_cqn = old_cq->cqn;
    assert_status(qrdma_try_create_qp(d, &init, &n), NOENT);
    init = usual_qp(pd, cq);
    init.recv_cqn = old_cq->cqn;
    assert_status(qrdma_try_create_qp(d, &init, &n), NOENT);
    init = usual_qp(pd, cq);
    assert_ok(qrdma_try_create_qp(d, &init, &n));
}

static void test_cqe_counts(void)
{
    QRdma *d = test_device_reset();
    const uint32_t bad[] = { 0, 1025, 65536, 0x7fffffff, UINT32_MAX };
    uint32_t cqn;

    qrdma_start(d, QRDMA_RFC_FEATURES, 1024);
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_status(qrdma_try_create_cq(d, bad[i], &cqn), ERR);
    }
    assert_ok(qrdma_try_create_cq(d, 1, &cqn));
    assert_ok(qrdma_try_create_cq(d, 1024, &cqn));
}

static void test_cqe_within_ring_of_driver(void)
{
    QRdma *d = test_device_reset();
    uint32_t cqn;

    qrdma_start(d, QRDMA_RFC_FEATURES, 32);
    assert_status(qrdma_try_create_cq(d, 33, &cqn), ERR);
    assert_status(qrdma_try_create_cq(d, 1024, &cqn), ERR);
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
        assert_ok(qrdma_destroy(d, VIRTIO_RDMA_CMD_DESTROY_QP, qpn));
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
        init.qp_type = bad[i];
        assert_status(qrdma_try_create_qp(d, &init, &qpn), NOTSUPP);
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
    struct virtio_rdma_create_qp_rsp rsp;
    size_t size = qrdma_create_qp_rsp_size(d);

    for (int sig = 2; sig < 256; sig = sig * 3 + 1) {
        req.sq_sig_type = sig;
        assert_status(qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_QP,
                                &req, sizeof(req), &rsp, size), INVAL);
    }
    req.sq_sig_type = VIRTIO_RDMA_SIGNAL_ALL_WR;
    assert_ok(qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req),
                        &rsp, size));
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
 * Old buffers of one CQ must not serve the next CQ. So a queue that was reset
 * is used before one that was not, whatever their order.
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
            assert_ok(qrdma_destroy(d, VIRTIO_RDMA_CMD_DESTROY_CQ, cq[i]->cqn));
        }
        qrdma_ring_reset(cq[which]->ring);
        qrdma_ring_setup(cq[which]->ring, QRDMA_RING_SIZE);
        assert_ok(qrdma_try_create_cq(d, 8, &cqn));
        g_assert_cmpuint(cqn, ==, cq[which]->cqn);
        qrdma_start(d, 0, 0);
    }
}

static void renew_rings(QRdma *d, uint32_t qpn)
{
    qrdma_ring_renew(qrdma_ring(d, VIRTIO_RDMA_SQ_VQ(d->max_cq, qpn)));
    qrdma_ring_renew(qrdma_ring(d, VIRTIO_RDMA_RQ_VQ(d->max_cq, qpn)));
}

/*
 * A freed number is reused last, so that a stale reference to the old object
 * does not reach a new one.
 */
static void test_numbers_are_handed_out_round_robin(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    RdmaQpInitAttr init = usual_qp(pd, cq);
    uint32_t qpn, cqn;

    g_assert_cmpuint(cq->cqn, ==, 0);
    for (uint32_t i = 1; i < 2 * TEST_MAX_CQ; i++) {
        uint32_t want = i % TEST_MAX_CQ;

        if (want == 0) {
            /* is in use: the next one is taken */
            continue;
        }
        assert_ok(qrdma_try_create_cq(d, 8, &cqn));
        g_assert_cmpuint(cqn, ==, want);
        assert_ok(qrdma_destroy(d, VIRTIO_RDMA_CMD_DESTROY_CQ, cqn));
        qrdma_ring_renew(qrdma_ring(d, VIRTIO_RDMA_CQ_VQ(cqn)));
    }
    for (uint32_t i = 0, first = 0; i < 2 * TEST_MAX_QP; i++) {
        assert_ok(qrdma_try_create_qp(d, &init, &qpn));
        first = i ? first : qpn;
        g_assert_cmpuint(qpn, ==, 2 + (first - 2 + i) % (TEST_MAX_QP - 2));
        assert_ok(qrdma_destroy(d, VIRTIO_RDMA_CMD_DESTROY_QP, qpn));
        renew_rings(d, qpn);
    }

    /* after a reset from the first one */
    qrdma_start(d, 0, 0);
    cq = qrdma_create_cq(d, 8);
    g_assert_cmpuint(cq->cqn, ==, 0);
}

/*
 * Numbers that peers see begin at a random value: QPNs and keys of one guest
 * tell nothing about those of another.
 */
static void test_numbers_that_peers_see_begin_anywhere(void)
{
    uint32_t qpns = 0, mrns = 0, low = 0;

    for (int i = 0; i < 40; i++) {
        QRdma *d = test_device();
        QRdmaPd *pd = qrdma_alloc_pd(d);
        RdmaQpInitAttr init = usual_qp(pd, qrdma_create_cq(d, 8));
        QRdmaMr *mr = qrdma_reg_mr(pd, 0, 4096, TEST_ACCESS_ALL);
        uint32_t qpn;

        assert_ok(qrdma_try_create_qp(d, &init, &qpn));
        g_assert_cmpuint(qpn, <, TEST_MAX_QP);
        g_assert_cmpuint(mr->mrn, <=, TEST_MAX_MR + TEST_MAX_MW);
        g_assert_cmphex(mr->rkey >> 8, ==, mr->mrn);
        qpns |= 1u << qpn;
        mrns |= 1u << mr->mrn;
        low |= 1u << (mr->rkey & 31);
    }
    g_assert_cmpuint(ctpop32(qpns), >, 2);
    g_assert_cmpuint(ctpop32(mrns), >, 3);
    g_assert_cmpuint(ctpop32(low), >, 3);
}

/*
 * A driver with rings of several sizes gets a queue pair whose rings are
 * large enough, as long as there is one.
 */
static void test_rings_that_cannot_serve_are_passed_over(void)
{
    QRdma *d = test_device();
    RdmaQpInitAttr init = usual_qp(qrdma_alloc_pd(d), qrdma_create_cq(d, 8));
    QRdmaRing *ring;
    uint32_t qpn;

    /* QP 3 has a small RQ, QP 5 has no SQ, all others have 64 entries */
    ring = qrdma_ring(d, VIRTIO_RDMA_RQ_VQ(d->max_cq, 3));
    qrdma_ring_reset(ring);
    qrdma_ring_setup(ring, 16);
    qrdma_ring_reset(qrdma_ring(d, VIRTIO_RDMA_SQ_VQ(d->max_cq, 5)));

    init.cap.max_recv_wr = 17;
    for (uint32_t i = 2; i < TEST_MAX_QP - 2; i++) {
        assert_ok(qrdma_try_create_qp(d, &init, &qpn));
        g_assert_cmpuint(qpn, !=, 3);
        g_assert_cmpuint(qpn, !=, 5);
    }
    /* of the other two one is too small, and one is not set up */
    assert_status(qrdma_try_create_qp(d, &init, &qpn), INVAL);
    init.cap.max_recv_wr = 16;
    assert_ok(qrdma_try_create_qp(d, &init, &qpn));
    g_assert_cmpuint(qpn, ==, 3);
    assert_status(qrdma_try_create_qp(d, &init, &qpn), NOMEM);
}

const QRdmaTest object_tests[] = {
    { "pd-table-fills-and-empties", test_pd_table_fills_and_empties },
    { "cq-table-fills-and-empties", test_cq_table_fills_and_empties },
    { "qp-table-fills-and-empties", test_qp_table_fills_and_empties },
    { "numbers-without-object", test_numbers_without_object },
    { "numbers-of-other-kinds", test_numbers_of_other_kinds },
    { "numbers-of-what-was-destroyed", test_numbers_of_what_was_destroyed,
      .not_demo = true },
    { "cqe-counts", test_cqe_counts },
    { "cqe-within-ring-of-driver", test_cqe_within_ring_of_driver },
    { "wr-within-ring-of-driver", test_wr_within_ring_of_driver },
    { "qp-counts", test_qp_counts,
      .not_demo = true },
    { "qp-types", test_qp_types },
    { "sq-sig-type-is-checked", test_sq_sig_type_is_checked },
    { "one-gsi-qp-with-number-1", test_one_gsi_qp_with_number_1 },
    { "qp-of-unknown-pd-or-cq", test_qp_of_unknown_pd_or_cq },
    { "failed-create-leaves-nothing-busy",
      test_failed_create_leaves_nothing_busy },
    { "destroy-in-every-wrong-order-is-busy",
      test_destroy_in_every_wrong_order_is_busy },
    { "number-whose-ring-was-reset-first",
      test_number_whose_ring_was_reset_comes_first,
      .not_demo = true },
    { "numbers-that-peers-see-begin-anywhere",
      test_numbers_that_peers_see_begin_anywhere },
    { "numbers-are-handed-out-round-robin",
      test_numbers_are_handed_out_round_robin },
    { "unfit-rings-are-passed-over",
      test_rings_that_cannot_serve_are_passed_over,
      .not_demo = true },
    {}
};
