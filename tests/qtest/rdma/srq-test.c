/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: shared receive queues.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_config.h"

static TestSrqPair pair_new(RdmaQpType type, uint32_t max_wr)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);

    qrdma_setup_gids(d, 1);
    return test_srq_pair(pd, qrdma_create_srq(pd, max_wr, 2), type);
}

static void post_recv(TestSrqPair *p, uint64_t wr_id)
{
    RdmaSge sge = test_srq_sge(p, wr_id);

    qrdma_srq_recv(p->srq, wr_id, &sge);
}

static void expect_state(QRdmaQp *qp, RdmaQpState state)
{
    g_assert_cmpint(qrdma_qp_state(qp), ==, state);
}

static void test_driver_of_the_rfc(void)
{
    QRdma *d = test_rfc_device();
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    RdmaQpInitAttr init = {
        .pdn = qrdma_alloc_pd(d)->pdn,
        .qp_type = RDMA_QPT_RC,
        .send_cqn = cq->cqn,
        .recv_cqn = cq->cqn,
        .has_srq = true,
    };
    uint32_t qpn;

    assert_status(qrdma_try_create_qp(d, &init, &qpn), ERR);
    init.has_srq = false;
    assert_ok(qrdma_try_create_qp(d, &init, &qpn));
}

static void test_table_fills_and_empties(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    RdmaSrqAttr attr = { .pdn = pd->pdn, .max_wr = 8, .max_sge = 1 };
    QRdmaSrq *srq[TEST_MAX_SRQ];
    uint32_t srqn;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TEST_MAX_SRQ; i++) {
            srq[i] = qrdma_create_srq(pd, 8, 1);
            for (int j = 0; j < i; j++) {
                g_assert_cmpuint(srq[i]->srqn, !=, srq[j]->srqn);
            }
        }
        assert_status(qrdma_try_create_srq(d, &attr, &srqn), NOMEM);
        for (int i = 0; i < TEST_MAX_SRQ; i++) {
            RdmaSrqAttr got;

            assert_ok(qrdma_destroy_srq(srq[i]));
            assert_status(qrdma_destroy_srq(srq[i]), NOENT);
            assert_status(qrdma_query_srq(srq[i], &got), NOENT);
            assert_status(qrdma_modify_srq(srq[i], 0), NOENT);
        }
    }
    assert_ok(qrdma_dealloc_pd(pd));
}

static void test_counts(void)
{
    QRdma *d = test_device();
    const RdmaSrqAttr good = {
        .pdn = qrdma_alloc_pd(d)->pdn, .max_wr = 8, .max_sge = 2, .limit = 3,
    };
    struct virtio_rdma_config c;
    RdmaSrqAttr attr;
    uint32_t max_sge, srqn;

#define TRY(field, value) \
    (attr = good, attr.field = (value), qrdma_try_create_srq(d, &attr, &srqn))

    qrdma_get_config(d, &c);
    max_sge = le32_to_cpu(c.max_srq_sge);
    g_assert_cmpuint(le32_to_cpu(c.max_srq_wr), ==, TEST_MAX_SRQ_WR);
    assert_status(TRY(max_wr, 0), INVAL);
    assert_status(TRY(max_wr, 2), INVAL);       /* less than the limit */
    assert_status(TRY(max_wr, TEST_MAX_SRQ_WR + 1), INVAL);
    assert_status(TRY(max_wr, 0x80000000), INVAL);
    assert_status(TRY(max_wr, UINT32_MAX), INVAL);
    assert_status(TRY(max_sge, max_sge + 1), INVAL);
    assert_status(TRY(max_sge, 0x80000000), INVAL);
    assert_status(TRY(max_sge, UINT32_MAX), INVAL);
    assert_status(TRY(limit, 9), INVAL);
    assert_status(TRY(limit, UINT32_MAX), INVAL);
    assert_ok(TRY(max_wr, 3));
    assert_status(TRY(max_wr, QRDMA_RING_SIZE + 1), INVAL);
    assert_ok(TRY(max_wr, QRDMA_RING_SIZE));
    assert_ok(TRY(max_sge, max_sge));
    assert_ok(TRY(max_sge, 0));
#undef TRY
}

static void test_unknown_pd(void)
{
    QRdma *d = test_device();
    QRdmaPd *gone = qrdma_alloc_pd(d);
    const uint32_t bad[] = {
        0, gone->pdn, TEST_MAX_PD + 1, 0x80000000, UINT32_MAX,
    };
    uint32_t srqn;

    assert_ok(qrdma_dealloc_pd(gone));
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        RdmaSrqAttr attr = { .pdn = bad[i], .max_wr = 8 };

        assert_status(qrdma_try_create_srq(d, &attr, &srqn), NOENT);
    }
}

static void test_numbers_without_object(void)
{
    QRdma *d = test_device();
    const uint32_t bad[] = {
        0, 1, TEST_MAX_SRQ - 1, TEST_MAX_SRQ, 0x7fffffff, 0x80000000,
        UINT32_MAX,
    };
    RdmaSrqAttr got;

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        QRdmaSrq srq = { .dev = d, .srqn = bad[i] };

        assert_status(qrdma_modify_srq(&srq, 0), NOENT);
        assert_status(qrdma_query_srq(&srq, &got), NOENT);
        assert_status(qrdma_destroy(d, VIRTIO_RDMA_CMD_DESTROY_SRQ, bad[i]),
                      NOENT);
    }
}

static void test_query_and_modify(void)
{
    QRdma *d = test_device();
    RdmaSrqAttr attr = {
        .pdn = qrdma_alloc_pd(d)->pdn, .max_wr = 8, .max_sge = 2, .limit = 3,
    };
    QRdmaSrq srq = { .dev = d };
    RdmaSrqAttr got;

    assert_ok(qrdma_try_create_srq(d, &attr, &srq.srqn));
    assert_ok(qrdma_query_srq(&srq, &got));
    g_assert_cmpuint(got.max_wr, ==, 8);
    g_assert_cmpuint(got.max_sge, ==, 2);
    g_assert_cmpuint(got.limit, ==, 3);
    assert_status(qrdma_modify_srq(&srq, 9), INVAL);
    assert_status(qrdma_modify_srq(&srq, UINT32_MAX), INVAL);
    assert_ok(qrdma_query_srq(&srq, &got));
    g_assert_cmpuint(got.limit, ==, 3);
    assert_ok(qrdma_modify_srq(&srq, 0));
    assert_ok(qrdma_query_srq(&srq, &got));
    g_assert_cmpuint(got.limit, ==, 0);
}

static void test_destroy_in_every_wrong_order_is_busy(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaPd *qp_pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaSrq *srq = qrdma_create_srq(pd, 8, 1);
    RdmaQpInitAttr init = test_srq_init(srq, RDMA_QPT_RC);
    QRdmaQp *qp[2];

    /* the QP and the SRQ may have different PDs */
    qp[0] = qrdma_create_qp_attr(qp_pd, cq, cq, &init);
    qp[1] = qrdma_create_qp_attr(pd, cq, cq, &init);
    assert_status(qrdma_destroy_srq(srq), BUSY);
    assert_ok(qrdma_destroy_qp(qp[0]));
    assert_status(qrdma_destroy_srq(srq), BUSY);
    assert_ok(qrdma_destroy_qp(qp[1]));
    assert_status(qrdma_dealloc_pd(pd), BUSY);
    assert_ok(qrdma_destroy_srq(srq));
    assert_ok(qrdma_dealloc_pd(pd));
    assert_ok(qrdma_dealloc_pd(qp_pd));
}

static void test_flags_of_create_qp(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaSrq *srq = qrdma_create_srq(pd, 8, 1);
    const uint32_t bad_srqn[] = {
        !srq->srqn, TEST_MAX_SRQ, 0x80000000, UINT32_MAX,
    };
    struct virtio_rdma_create_qp_req good = {
        .pdn = cpu_to_le32(pd->pdn),
        .qp_type = RDMA_QPT_RC,
        .send_cqn = cpu_to_le32(cq->cqn),
        .recv_cqn = cpu_to_le32(cq->cqn),
        .flags = cpu_to_le32(VIRTIO_RDMA_QP_SRQ),
        .srqn = cpu_to_le32(srq->srqn),
        /* these are ignored with an SRQ */
        .max_recv_wr = cpu_to_le32(UINT32_MAX),
        .max_recv_sge = cpu_to_le32(UINT32_MAX),
    };
    struct virtio_rdma_create_qp_req req;
    struct virtio_rdma_create_qp_rsp rsp;
    QRdmaQp qp = { .dev = d };
    RdmaQpAttr attr;

#define TRY() qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req), \
                        &rsp, qrdma_create_qp_rsp_size(d))
    req = good;
    req.flags |= cpu_to_le32(VIRTIO_RDMA_QP_DIRECT);
    assert_status(TRY(), NOTSUPP);
    for (int bit = 3; bit < 32; bit++) {
        req = good;
        req.flags |= cpu_to_le32(1u << bit);
        assert_status(TRY(), INVAL);
    }
    for (int i = 0; i < ARRAY_SIZE(bad_srqn); i++) {
        req = good;
        req.srqn = cpu_to_le32(bad_srqn[i]);
        assert_status(TRY(), NOENT);
    }
    req = good;
    req.qp_type = RDMA_QPT_GSI;
    assert_status(TRY(), INVAL);
    req = good;
    assert_ok(TRY());
    qp.qpn = le32_to_cpu(rsp.qpn);
    assert_ok(qrdma_query_qp(&qp, &attr));
    g_assert_cmpuint(attr.cap.max_recv_wr, ==, 0);
    g_assert_cmpuint(attr.cap.max_recv_sge, ==, 0);
#undef TRY
}

static void test_rq_of_a_qp_with_srq_need_not_be_set_up(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaSrq *srq = qrdma_create_srq(pd, 8, 1);
    RdmaQpInitAttr init = test_srq_init(srq, RDMA_QPT_RC);
    QRdmaQp *qp;

    for (uint32_t qpn = 2; qpn < d->max_qp; qpn++) {
        qrdma_ring_reset(qrdma_ring(d, VIRTIO_RDMA_RQ_VQ(d->max_cq, qpn)));
    }
    qp = qrdma_create_qp_attr(pd, cq, cq, &init);
    /* nor does it matter when the GID is added or deleted */
    qrdma_setup_gids(d, 1);
    qrdma_connect(qp, qp, NULL);
    qrdma_ring_setup(qp->rq.ring, QRDMA_RING_SIZE);
    qrdma_ring_kick(qp->rq.ring);
    qrdma_ring_reset(qp->rq.ring);
    expect_state(qp, RDMA_QPS_RTS);
    assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_RESET));
    /* but a QP without an SRQ needs it */
    init.has_srq = false;
    init.pdn = pd->pdn;
    init.send_cqn = init.recv_cqn = cq->cqn;
    init.srqn = 0;
    assert_status(qrdma_try_create_qp(d, &init, &(uint32_t) { 0 }), NOMEM);
}

static void test_traffic(const void *data)
{
    RdmaQpType type = GPOINTER_TO_INT(data);
    TestSrqPair p = pair_new(type, 32);

    for (int i = 0; i < 200; i++) {
        post_recv(&p, i);
        test_srq_transfer(&p, i);
    }
    qrdma_expect_none(p.cq_b);
}

static void test_buffers_come_back_when_taken(void)
{
    TestSrqPair p = pair_new(RDMA_QPT_RC, 8);

    for (int i = 0; i < 8; i++) {
        post_recv(&p, i);
    }
    qrdma_settle(p.dev);
    g_assert_cmpuint(qrdma_reap(&p.srq->wq), ==, 0);
    for (int i = 0; i < 8; i++) {
        test_srq_transfer(&p, i);
        g_assert_cmpuint(qrdma_reap(&p.srq->wq), ==, 1);
    }
}

/*
 * Changes to a WQE after it was copied have no effect: a datagram that is too
 * long is dropped, and leaves its WQE to the next one.
 */
static void test_wqe_is_read_once(void)
{
    TestSrqPair p = pair_new(RDMA_QPT_UD, 8);
    RdmaSge sge = test_srq_sge(&p, 1);

    sge.length = TEST_MSG + 40;
    qrdma_srq_recv(p.srq, 1, &sge);
    test_srq_send(&p, 1, TEST_MSG + 1);
    qrdma_expect(p.cq_a, 1, RDMA_WC_SUCCESS);
    qrdma_wait_until(p.dev, qrdma_reap(&p.srq->wq) == 1);
    qtest_memset(p.dev->host->qts, p.srq->wq.buf, 0xff, QRDMA_WQE_ROOM);
    test_srq_transfer(&p, 1);
}

static void test_wqes_from_before_the_srq_are_its(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);

    /* numbers go round: find the next one */
    for (uint32_t n = 0; n < TEST_MAX_SRQ; n++) {
        QRdmaWq wq = {
            .ring = qrdma_ring(d, VIRTIO_RDMA_SRQ_VQ(d->max_cq, d->max_qp,
                                                     n)),
            .buf = qrdma_alloc(d, QRDMA_RING_SIZE * QRDMA_WQE_ROOM),
        };
        struct virtio_rdma_rq_wqe wqe = {};
        QRdmaSrq *srq;

        qrdma_post_wqe(d, &wq, &wqe, sizeof(wqe), 0, true);
        qrdma_settle(d);
        g_assert_cmpuint(qrdma_reap(&wq), ==, 0);
        srq = qrdma_create_srq(pd, 8, 1);
        g_assert_cmpuint(srq->srqn, ==, n);
        assert_ok(qrdma_destroy(d, VIRTIO_RDMA_CMD_DESTROY_SRQ, n));
        g_assert_cmpuint(qrdma_reap(&wq), ==, 1);
    }
}

static void test_destroy_returns_what_is_left(void)
{
    TestSrqPair p = pair_new(RDMA_QPT_RC, 10);
    uint16_t used;

    for (int i = 0; i < 10; i++) {
        post_recv(&p, i);
    }
    test_srq_transfer(&p, 0);
    g_assert_cmpuint(qrdma_ring_used_idx(p.srq->wq.ring), ==, 1);
    assert_ok(qrdma_destroy_qp(p.b));
    assert_ok(qrdma_destroy(p.dev, VIRTIO_RDMA_CMD_DESTROY_SRQ, p.srq->srqn));
    used = qrdma_ring_used_idx(p.srq->wq.ring);
    g_assert_cmpuint(used, ==, 10);
}

static void test_number_needs_a_ring_that_was_reset(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    RdmaSrqAttr attr = { .pdn = pd->pdn, .max_wr = 8 };
    QRdmaSrq *srq[TEST_MAX_SRQ];
    uint32_t srqn;

    for (int i = 0; i < TEST_MAX_SRQ; i++) {
        srq[i] = qrdma_create_srq(pd, 8, 1);
    }
    assert_ok(qrdma_destroy(d, VIRTIO_RDMA_CMD_DESTROY_SRQ, srq[1]->srqn));
    assert_status(qrdma_try_create_srq(d, &attr, &srqn), NOMEM);
    qrdma_ring_reset(srq[1]->wq.ring);
    assert_status(qrdma_try_create_srq(d, &attr, &srqn), NOMEM);
    qrdma_ring_setup(srq[1]->wq.ring, QRDMA_RING_SIZE);
    assert_ok(qrdma_try_create_srq(d, &attr, &srqn));
    g_assert_cmpuint(srqn, ==, srq[1]->srqn);
}

static void test_small_rings_are_not_taken(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    RdmaSrqAttr attr = { .pdn = pd->pdn, .max_wr = 32 };
    uint32_t srqn;

    for (uint32_t n = 0; n < TEST_MAX_SRQ; n++) {
        QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_SRQ_VQ(d->max_cq,
                                                           d->max_qp, n));

        qrdma_ring_reset(ring);
        qrdma_ring_setup(ring, n == 2 ? 32 : 4);
    }
    assert_ok(qrdma_try_create_srq(d, &attr, &srqn));
    g_assert_cmpuint(srqn, ==, 2);
    assert_status(qrdma_try_create_srq(d, &attr, &srqn), INVAL);
    attr.max_wr = 5;
    assert_status(qrdma_try_create_srq(d, &attr, &srqn), INVAL);
    attr.max_wr = 4;
    assert_ok(qrdma_try_create_srq(d, &attr, &srqn));
}

/* A send may come back at once, before the SRQ's notification. */
static void test_receives_are_found_before_sends(void)
{
    TestSrqPair p = pair_new(RDMA_QPT_UD, 8);

    for (int i = 0; i < 20; i++) {
        RdmaSge sge = test_srq_sge(&p, i);
        RdmaRecvWr wr = { .wr_id = i, .num_sge = 1, .sg_list = &sge };
        uint8_t wqe[QRDMA_WQE_ROOM];
        size_t len = qrdma_encode_recv(&wr, wqe);

        qrdma_post_wqe(p.dev, &p.srq->wq, wqe, len, 0, false);
        test_srq_transfer(&p, i);
    }
}

/* A malformed WQE completes in error when a message takes it. */
static void test_bad_wqes(void)
{
    RdmaSge sge[3];
    struct virtio_rdma_rq_wqe wqe = { .wr_id = cpu_to_le64(77) };
    const uint32_t num_sge[] = { 1, 3, 0x10000000, 0x80000000, UINT32_MAX };

    for (int i = 0; i <= ARRAY_SIZE(num_sge); i++) {
        TestSrqPair p = pair_new(RDMA_QPT_RC, 8);
        size_t len = sizeof(wqe);
        RdmaSendWr wr = { .wr_id = 1, .opcode = RDMA_WR_SEND };

        wqe.num_sge = cpu_to_le32(i ? num_sge[i - 1] : 0);
        if (i == 0) {
            len--;
        } else if (num_sge[i - 1] == 3) {
            /* more SGEs than the SRQ takes, but all are present */
            for (int j = 0; j < ARRAY_SIZE(sge); j++) {
                sge[j] = qrdma_sge(p.mr, 0, 100);
            }
            qrdma_post_srq_recv(p.srq, &(RdmaRecvWr) {
                .wr_id = 77, .num_sge = 3, .sg_list = sge,
            });
            len = 0;
        }
        if (len) {
            qrdma_post_wqe(p.dev, &p.srq->wq, &wqe, len, 0, true);
        }
        qrdma_post_send(p.a, &wr);
        qrdma_expect(p.cq_b, 77, RDMA_WC_LOC_QP_OP_ERR);
        expect_state(p.b, RDMA_QPS_ERR);
        /* another QP can go on with the SRQ */
        post_recv(&p, 5);
        qrdma_reconnect(p.a, p.b, NULL);
        for (RdmaWc wc; qrdma_poll_cq(p.cq_a, &wc); ) {
            /* of the failed send */
        }
        test_srq_transfer(&p, 5);
    }
}

/* Keys of the WQEs are of the SRQ's PD, not of the QP's. */
static void test_keys_are_of_the_pd_of_the_srq(void)
{
    QRdma *d = test_device();
    QRdmaPd *qp_pd = qrdma_alloc_pd(d);
    QRdmaPd *srq_pd = qrdma_alloc_pd(d);
    QRdmaCq *cq_a = qrdma_create_cq(d, 8);
    QRdmaCq *cq_b = qrdma_create_cq(d, 8);
    QRdmaSrq *srq = qrdma_create_srq(srq_pd, 8, 1);
    RdmaQpInitAttr init = test_srq_init(srq, RDMA_QPT_RC);
    QRdmaQp *a = qrdma_create_qp(qp_pd, cq_a, cq_a, RDMA_QPT_RC);
    QRdmaQp *b = qrdma_create_qp_attr(qp_pd, cq_b, cq_b, &init);
    QRdmaMr *mr[2] = {
        qrdma_reg_mr(srq_pd, 0x1000, 4096, TEST_ACCESS_ALL),
        qrdma_reg_mr(qp_pd, 0x1000, 4096, TEST_ACCESS_ALL),
    };
    RdmaSendWr wr = {
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED | RDMA_SEND_INLINE,
        .inline_data = (const uint8_t *)"hello",
        .inline_len = 5,
    };

    qrdma_setup_gids(d, 1);
    qrdma_connect(a, b, NULL);
    for (int i = 0; i < 2; i++) {
        RdmaSge sge = qrdma_sge(mr[i], 0, 100);

        qrdma_srq_recv(srq, i, &sge);
        wr.wr_id = i;
        qrdma_post_send(a, &wr);
        qrdma_expect(cq_b, i, i ? RDMA_WC_LOC_PROT_ERR : RDMA_WC_SUCCESS);
    }
}

static void test_ring_reset_under_a_live_srq(void)
{
    TestSrqPair p = pair_new(RDMA_QPT_RC, 8);
    RdmaQpInitAttr init = test_srq_init(p.srq, RDMA_QPT_RC);
    QRdmaQp *idle = qrdma_create_qp_attr(p.pd, p.cq_b, p.cq_b, &init);
    RdmaSrqAttr got;
    uint32_t qpn;

    post_recv(&p, 1);
    qrdma_ring_reset(p.srq->wq.ring);
    qrdma_settle(p.dev);
    expect_state(p.b, RDMA_QPS_ERR);
    expect_state(p.a, RDMA_QPS_RTS);
    assert_ok(qrdma_query_srq(p.srq, &got));

    /* a QP in RESET fails when it leaves that state */
    expect_state(idle, RDMA_QPS_RESET);
    assert_ok(qrdma_modify_init(idle, 0));
    qrdma_settle(p.dev);
    expect_state(idle, RDMA_QPS_ERR);

    /* no QP can use it any more */
    init.pdn = p.pd->pdn;
    init.send_cqn = init.recv_cqn = p.cq_b->cqn;
    assert_status(qrdma_try_create_qp(p.dev, &init, &qpn), INVAL);

    /* the SRQ takes no more WQEs */
    qrdma_ring_setup(p.srq->wq.ring, QRDMA_RING_SIZE);
    p.srq->wq.posted = p.srq->wq.retired = 0;
    post_recv(&p, 2);
    qrdma_settle(p.dev);
    g_assert_cmpuint(qrdma_reap(&p.srq->wq), ==, 0);

    /* and can be destroyed and created again */
    assert_status(qrdma_destroy_srq(p.srq), BUSY);
    assert_ok(qrdma_destroy_qp(p.b));
    assert_ok(qrdma_destroy_qp(idle));
    assert_ok(qrdma_destroy_srq(p.srq));
    for (int i = 0; i < TEST_MAX_SRQ; i++) {
        qrdma_create_srq(p.pd, 8, 1);
    }
}

static void test_broken_ring_stops_the_device(void)
{
    TestSrqPair p = pair_new(RDMA_QPT_RC, 8);

    qrdma_ring_set_avail_idx(p.srq->wq.ring, QRDMA_RING_SIZE + 1);
    qrdma_post_send(p.a, &(RdmaSendWr) { .opcode = RDMA_WR_SEND });
    qrdma_wait_until(p.dev, qrdma_needs_reset(p.dev));
    p = pair_new(RDMA_QPT_RC, 8);
    post_recv(&p, 1);
    test_srq_transfer(&p, 1);
}

/* A QP in ERR takes no WQE, and leaves the WQEs to other QPs. */
static void test_wqes_outlive_the_qp(void)
{
    TestSrqPair p = pair_new(RDMA_QPT_RC, 8);
    RdmaQpInitAttr init = test_srq_init(p.srq, RDMA_QPT_RC);

    for (int i = 0; i < 4; i++) {
        post_recv(&p, i);
    }
    test_srq_transfer(&p, 0);
    assert_ok(qrdma_modify_qp_state(p.b, RDMA_QPS_ERR));
    qrdma_expect_none(p.cq_b);
    assert_ok(qrdma_destroy_qp(p.b));
    assert_ok(qrdma_modify_qp_state(p.a, RDMA_QPS_RESET));
    p.b = qrdma_create_qp_attr(p.pd, p.cq_b, p.cq_b, &init);
    qrdma_connect(p.a, p.b, NULL);
    for (int i = 1; i < 4; i++) {
        test_srq_transfer(&p, i);
    }
}

/*
 * The end of a QP drops its pending completions, except receives from an SRQ:
 * these have no QP then.
 */
static void test_pending_receives_outlive_the_qp(const void *data)
{
    enum { RING = 8, RECEIVES = 20 };
    bool destroy = GPOINTER_TO_INT(data);
    QRdma *d = test_device_reset();
    TestSrqPair p;
    QRdmaPd *pd;
    uint32_t qpn;
    RdmaWc wc;

    qrdma_start(d, 0, RING);
    pd = qrdma_alloc_pd(d);
    qrdma_setup_gids(d, 1);
    p = test_srq_pair(pd, qrdma_create_srq(pd, RING, 2), RDMA_QPT_RC);
    qpn = p.b->qpn;
    p.cq_b->no_refill = true;
    for (int i = 0; i < RECEIVES; i++) {
        post_recv(&p, i);
        test_srq_send(&p, i, TEST_MSG);
        qrdma_expect(p.cq_a, i, RDMA_WC_SUCCESS);
        qrdma_reap_all(d, &p.a->sq);
        qrdma_reap_all(d, &p.srq->wq);
        /* a completion of the same QP that it may drop */
        qrdma_post(p.b, qrdma_wr(RDMA_WR_RDMA_WRITE, 100 + i, NULL));
        qrdma_reap_all(d, &p.b->sq);
    }
    if (destroy) {
        assert_ok(qrdma_destroy_qp(p.b));
    } else {
        assert_ok(qrdma_modify_qp_state(p.b, RDMA_QPS_RESET));
    }
    for (int i = 0; i < RING; i++) {
        qrdma_wait_cq(p.cq_b, &wc);
        g_assert_cmpuint(wc.qp_num, ==, qpn);
    }
    p.cq_b->no_refill = false;
    qrdma_refill_cq(p.cq_b, RING);
    for (int i = RING / 2; i < RECEIVES; i++) {
        qrdma_expect_wc(p.cq_b, i, RDMA_WC_RECV, &wc);
        g_assert_cmphex(wc.qp_num, ==, VIRTIO_RDMA_CQE_QPN_NONE);
    }
    qrdma_expect_none(p.cq_b);
}

/* The driver gets the completions even if a fault holds them back. */
static void test_held_receives_outlive_the_qp(const void *data)
{
    bool destroy = GPOINTER_TO_INT(data);
    TestSrqPair p = pair_new(RDMA_QPT_RC, 8);
    QTestState *qts = p.dev->host->qts;

    qtest_qmp_assert_success(qts, "{'execute': 'rdma-fault-add', 'arguments': "
                             "{'device': 'rdma0', 'id': 'f', 'kind': "
                             "'completion-delay', 'opcode': 'recv', "
                             "'delay': 10000, 'times': 0}}");
    for (int i = 0; i < 3; i++) {
        post_recv(&p, i);
        test_srq_send(&p, i, TEST_MSG);
        qrdma_expect(p.cq_a, i, RDMA_WC_SUCCESS);
    }
    qrdma_expect_none(p.cq_b);
    if (destroy) {
        assert_ok(qrdma_destroy_qp(p.b));
    } else {
        assert_ok(qrdma_modify_qp_state(p.b, RDMA_QPS_RESET));
    }
    for (int i = 0; i < 3; i++) {
        qrdma_expect(p.cq_b, i, RDMA_WC_SUCCESS);
    }
    qtest_qmp_assert_success(qts, "{'execute': 'rdma-fault-remove', "
                             "'arguments': {'device': 'rdma0', 'id': 'f'}}");
}

static void test_device_reset_drops_them(void)
{
    TestSrqPair p = pair_new(RDMA_QPT_RC, 8);
    RdmaSrqAttr got;
    QRdmaSrq old;

    post_recv(&p, 1);
    old = *p.srq;
    p.dev = test_device();
    assert_status(qrdma_query_srq(&old, &got), NOENT);
    p = pair_new(RDMA_QPT_RC, 8);
    post_recv(&p, 9);
    test_srq_transfer(&p, 9);
}

const QRdmaTest srq_tests[] = {
    { "driver-of-the-rfc", test_driver_of_the_rfc },
    { "table-fills-and-empties", test_table_fills_and_empties },
    { "counts", test_counts },
    { "unknown-pd", test_unknown_pd },
    { "numbers-without-object", test_numbers_without_object },
    { "query-and-modify", test_query_and_modify },
    { "destroy-in-every-wrong-order-is-busy",
      test_destroy_in_every_wrong_order_is_busy },
    { "flags-of-create-qp", test_flags_of_create_qp },
    { "rq-of-a-qp-with-srq-need-not-be-set-up",
      test_rq_of_a_qp_with_srq_need_not_be_set_up },
    { "rc-traffic", .run_case = test_traffic,
      .data = GINT_TO_POINTER(RDMA_QPT_RC) },
    { "uc-traffic", .run_case = test_traffic,
      .data = GINT_TO_POINTER(RDMA_QPT_UC) },
    { "ud-traffic", .run_case = test_traffic,
      .data = GINT_TO_POINTER(RDMA_QPT_UD) },
    { "buffers-come-back-when-taken", test_buffers_come_back_when_taken },
    { "wqe-is-read-once", test_wqe_is_read_once },
    { "wqes-from-before-the-srq-are-its",
      test_wqes_from_before_the_srq_are_its },
    { "destroy-returns-what-is-left", test_destroy_returns_what_is_left },
    { "number-needs-a-ring-that-was-reset",
      test_number_needs_a_ring_that_was_reset },
    { "small-rings-are-not-taken", test_small_rings_are_not_taken },
    { "receives-are-found-before-sends", test_receives_are_found_before_sends },
    { "bad-wqes", test_bad_wqes },
    { "keys-are-of-the-pd-of-the-srq", test_keys_are_of_the_pd_of_the_srq },
    { "ring-reset-under-a-live-srq", test_ring_reset_under_a_live_srq },
    { "broken-ring-stops-the-device", test_broken_ring_stops_the_device },
    { "wqes-outlive-the-qp", test_wqes_outlive_the_qp },
    { "pending-receives-outlive-a-destroyed-qp",
      .run_case = test_pending_receives_outlive_the_qp,
      .data = GINT_TO_POINTER(true) },
    { "pending-receives-outlive-a-reset-qp",
      .run_case = test_pending_receives_outlive_the_qp,
      .data = GINT_TO_POINTER(false) },
    { "held-receives-outlive-a-destroyed-qp",
      .run_case = test_held_receives_outlive_the_qp,
      .data = GINT_TO_POINTER(true) },
    { "held-receives-outlive-a-reset-qp",
      .run_case = test_held_receives_outlive_the_qp,
      .data = GINT_TO_POINTER(false) },
    { "device-reset-drops-them", test_device_reset_drops_them },
    {}
};
