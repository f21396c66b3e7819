/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: multicast groups of one device.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

static const uint8_t group6[RDMA_GID_LEN] = { 0xff, 0x0e, [15] = 1 };
static const uint8_t group4[RDMA_GID_LEN] = {
    [10] = 0xff, 0xff, 239, 1, 2, 3,
};

static QRdma *start(void)
{
    QRdma *d = test_device();

    qrdma_setup_gids(d, 1);
    return d;
}

static QRdmaQp *new_ud(QRdmaPd *pd, QRdmaCq *cq)
{
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_UD);

    qrdma_start_ud(qp, QRDMA_QKEY);
    return qp;
}

static void test_driver_of_the_rfc(void)
{
    QRdma *d = test_rfc_device();
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_UD);
    RdmaQpInitAttr init = {
        .pdn = pd->pdn,
        .qp_type = RDMA_QPT_UD,
        .send_cqn = cq->cqn,
        .recv_cqn = cq->cqn,
        .block_mcast_loopback = true,
    };
    uint32_t qpn;

    assert_status(qrdma_attach_mcast(qp, group6), ERR);
    assert_status(qrdma_detach_mcast(qp, group6), ERR);
    assert_status(qrdma_try_create_qp(d, &init, &qpn), ERR);
}

static void test_block_loopback_is_for_ud(void)
{
    QRdma *d = start();
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    RdmaQpInitAttr init = {
        .pdn = qrdma_alloc_pd(d)->pdn,
        .send_cqn = cq->cqn,
        .recv_cqn = cq->cqn,
        .block_mcast_loopback = true,
    };
    const RdmaQpType bad[] = { RDMA_QPT_RC, RDMA_QPT_UC, RDMA_QPT_GSI };
    uint32_t qpn;

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        init.qp_type = bad[i];
        assert_status(qrdma_try_create_qp(d, &init, &qpn), INVAL);
    }
    init.qp_type = RDMA_QPT_UD;
    assert_ok(qrdma_try_create_qp(d, &init, &qpn));
}

static void test_only_multicast_addresses(void)
{
    QRdma *d = start();
    QRdmaQp *qp = new_ud(qrdma_alloc_pd(d), qrdma_create_cq(d, 8));
    const uint8_t bad[][RDMA_GID_LEN] = {
        { 0 },
        { 0xfe, 0x80, [15] = 1 },
        { 0xfe, 0xff, [15] = 1 },
        { [10] = 0xff, 0xff, 10, 0, 0, 1 },
        { [10] = 0xff, 0xff, 223, 255, 255, 255 },
        { [10] = 0xff, 0xff, 240, 0, 0, 1 },
        { [10] = 0xff, 0xff, 255, 255, 255, 255 },
        { [12] = 239, 1, 2, 3 },
    };
    const uint8_t good[][RDMA_GID_LEN] = {
        { 0xff },
        { [10] = 0xff, 0xff, 224 },
        { [10] = 0xff, 0xff, 239, 255, 255, 255 },
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_status(qrdma_attach_mcast(qp, bad[i]), INVAL);
        assert_status(qrdma_detach_mcast(qp, bad[i]), INVAL);
    }
    for (int i = 0; i < ARRAY_SIZE(good); i++) {
        assert_ok(qrdma_attach_mcast(qp, good[i]));
    }
}

static void test_only_ud_qps(void)
{
    QRdma *d = start();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaQp *gone = new_ud(pd, cq);
    const RdmaQpType types[] = { RDMA_QPT_RC, RDMA_QPT_UC, RDMA_QPT_GSI };
    const uint32_t bad[] = {
        0, 1, gone->qpn, TEST_MAX_QP, RDMA_QPN_MCAST, 0x80000000, UINT32_MAX,
    };

    assert_ok(qrdma_destroy_qp(gone));
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        QRdmaQp qp = { .dev = d, .qpn = bad[i] };

        assert_status(qrdma_attach_mcast(&qp, group6), NOENT);
        assert_status(qrdma_detach_mcast(&qp, group6), NOENT);
    }
    for (int i = 0; i < ARRAY_SIZE(types); i++) {
        QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, types[i]);

        assert_status(qrdma_attach_mcast(qp, group6), INVAL);
        assert_status(qrdma_detach_mcast(qp, group6), INVAL);
    }
}

static void test_attach_and_detach_once(void)
{
    QRdma *d = start();
    QRdmaQp *qp = new_ud(qrdma_alloc_pd(d), qrdma_create_cq(d, 8));

    for (int i = 0; i < 3; i++) {
        g_assert_cmpint(qrdma_detach_mcast(qp, group6), !=,
                        VIRTIO_RDMA_S_OK);
        assert_ok(qrdma_attach_mcast(qp, group6));
        g_assert_cmpint(qrdma_attach_mcast(qp, group6), !=,
                        VIRTIO_RDMA_S_OK);
        g_assert_cmpint(qrdma_detach_mcast(qp, group4), !=,
                        VIRTIO_RDMA_S_OK);
        assert_ok(qrdma_attach_mcast(qp, group4));
        assert_ok(qrdma_detach_mcast(qp, group6));
        assert_ok(qrdma_detach_mcast(qp, group4));
    }
}

static void test_groups_and_their_qps_are_limited(void)
{
    QRdma *d = start();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaQp *qp[TEST_MAX_MCAST_GRP + 1];
    uint8_t gid[RDMA_GID_LEN];

    for (int i = 0; i < ARRAY_SIZE(qp); i++) {
        qp[i] = new_ud(pd, cq);
    }
    memcpy(gid, group6, sizeof(gid));
    for (int round = 0; round < 3; round++) {
        for (int g = 0; g < TEST_MAX_MCAST_GRP; g++) {
            gid[15] = g;
            for (int i = 0; i < TEST_MAX_MCAST_GRP; i++) {
                assert_ok(qrdma_attach_mcast(qp[i], gid));
            }
            assert_status(qrdma_attach_mcast(qp[TEST_MAX_MCAST_GRP], gid),
                          NOMEM);
        }
        gid[15] = TEST_MAX_MCAST_GRP;
        assert_status(qrdma_attach_mcast(qp[TEST_MAX_MCAST_GRP], gid),
                      NOMEM);
        /* QPs leave their groups in the end */
        for (int i = 0; i < TEST_MAX_MCAST_GRP; i++) {
            assert_ok(qrdma_destroy_qp(qp[i]));
            qp[i] = new_ud(pd, cq);
        }
    }
}

static void send_to(QRdmaQp *qp, const uint8_t *gid, uint64_t wr_id)
{
    RdmaSendWr wr = {
        .wr_id = wr_id,
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED | RDMA_SEND_INLINE,
        .inline_data = (const uint8_t *)"to all",
        .inline_len = 6,
    };

    wr.wr.ud.remote_qpn = RDMA_QPN_MCAST;
    wr.wr.ud.remote_qkey = QRDMA_QKEY;
    wr.wr.ud.av = qrdma_av(qp->dev, gid == group4);
    memcpy(wr.wr.ud.av.dgid, gid, RDMA_GID_LEN);
    qrdma_post_expect(qp, wr, RDMA_WC_SUCCESS);
}

static void post_recv(QRdmaQp *qp, QRdmaMr *mr, uint64_t wr_id)
{
    RdmaSge sge = qrdma_sge(mr, 128 * wr_id, 128);

    qrdma_recv(qp, wr_id, &sge);
}

static void test_loopback(const void *data)
{
    const uint8_t *gid = data;
    QRdma *d = start();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *scq = qrdma_create_cq(d, 8);
    QRdmaCq *rcq[3];
    QRdmaQp *qp[3];
    QRdmaMr *mr = qrdma_reg_mr(pd, 0x1000, 4096, TEST_ACCESS_ALL);
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_UD,
        .cap = { 8, 8, 1, 1, 64 },
    };
    RdmaWc wc;

    for (int i = 0; i < 3; i++) {
        /* the first does not get its own messages */
        init.block_mcast_loopback = i == 0;
        rcq[i] = qrdma_create_cq(d, 8);
        qp[i] = qrdma_create_qp_attr(pd, scq, rcq[i], &init);
        qrdma_start_ud(qp[i], QRDMA_QKEY);
        post_recv(qp[i], mr, i);
        post_recv(qp[i], mr, 10 + i);
    }
    assert_ok(qrdma_attach_mcast(qp[0], gid));
    assert_ok(qrdma_attach_mcast(qp[1], gid));

    send_to(qp[0], gid, 20);
    qrdma_expect_wc(rcq[1], 1, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, 40 + 6);
    g_assert_cmpuint(wc.src_qp, ==, qp[0]->wire_qpn);
    qrdma_expect_none(rcq[0]);
    qrdma_expect_none(rcq[2]);

    /* the sender need not be in the group */
    send_to(qp[2], gid, 21);
    qrdma_expect_wc(rcq[0], 0, RDMA_WC_RECV, &wc);
    qrdma_expect_wc(rcq[1], 11, RDMA_WC_RECV, &wc);
    qrdma_expect_none(rcq[2]);

    assert_ok(qrdma_detach_mcast(qp[0], gid));
    post_recv(qp[1], mr, 15);
    send_to(qp[2], gid, 22);
    qrdma_expect_wc(rcq[1], 15, RDMA_WC_RECV, &wc);
    qrdma_expect_none(rcq[0]);
}

const QRdmaTest mcast_tests[] = {
    { "driver-of-the-rfc", test_driver_of_the_rfc },
    { "block-loopback-is-for-ud", test_block_loopback_is_for_ud },
    { "only-multicast-addresses", test_only_multicast_addresses },
    { "only-ud-qps", test_only_ud_qps },
    { "attach-and-detach-once", test_attach_and_detach_once },
    { "groups-and-their-qps-are-limited",
      test_groups_and_their_qps_are_limited },
    { "loopback-ipv6", .run_case = test_loopback, .data = group6 },
    { "loopback-ipv4", .run_case = test_loopback, .data = group4 },
    {}
};
