/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-rdma: malformed work requests, and how they complete. */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

/* Start over with both QPs after an error, without a new device. */
static void pair_restart(TestPair *t)
{
    test_reset_pair(t);
    qrdma_reap(&t->a->sq);
    qrdma_reap(&t->a->rq);
    qrdma_reap(&t->b->sq);
    qrdma_reap(&t->b->rq);
    g_assert_cmpuint(t->a->sq.retired, ==, t->a->sq.posted);
    g_assert_cmpuint(t->b->rq.retired, ==, t->b->rq.posted);
    qrdma_bring_up(t->a, t->b, NULL);
}

/* Post a bad WR, and one after it: error and flush, in order. */
static void expect_wr_error(TestPair *t, RdmaSendWr wr, RdmaWcStatus status)
{
    RdmaWc wc;

    wr.wr_id = 0xbad;
    wr.send_flags |= RDMA_SEND_SIGNALED;
    qrdma_post_send(t->a, &wr);
    qrdma_wait_cq(t->cq_a, &wc);
    g_assert_cmphex(wc.wr_id, ==, 0xbad);
    g_assert_cmpint(wc.status, ==, status);
    g_assert_cmphex(wc.qp_num, ==, t->a->qpn);
    g_assert_cmpuint(qrdma_reap(&t->a->sq), ==, 1);
    qrdma_post_send(t->a, &(RdmaSendWr) {
        .wr_id = 0xbeef, .opcode = RDMA_WR_SEND,
    });
    qrdma_expect(t->cq_a, 0xbeef, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(qrdma_reap(&t->a->sq), ==, 1);
    pair_restart(t);
}

static void test_unknown_opcodes(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    const uint32_t bad[] = {
        10, 12, 13, 14, 0x1f, 0x21, 0x22, 0xf0, 0x100, 0x102, 0x7fffffff,
        0x80000002, UINT32_MAX,
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        expect_wr_error(&t, (RdmaSendWr) { .opcode = bad[i] },
                        RDMA_WC_LOC_QP_OP_ERR);
    }
}

static void test_unknown_flags(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);

    for (int bit = 5; bit < 32; bit++) {
        expect_wr_error(&t, (RdmaSendWr) {
            .opcode = RDMA_WR_SEND, .send_flags = 1u << bit,
        }, RDMA_WC_LOC_QP_OP_ERR);
    }
}

static void test_opcodes_that_uc_does_not_have(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_UC, NULL);
    const uint32_t bad[] = {
        RDMA_WR_RDMA_READ, RDMA_WR_ATOMIC_CMP_AND_SWP,
        RDMA_WR_ATOMIC_FETCH_AND_ADD, RDMA_WR_SEND_WITH_INV,
        RDMA_WR_RDMA_READ_WITH_INV, 99,
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        RdmaSge sge = qrdma_sge(t.mr_a, 0, 8);

        qrdma_post_send(t.a, &(RdmaSendWr) {
            .wr_id = i, .opcode = bad[i], .sg_list = &sge, .num_sge = 1,
        });
        qrdma_expect(t.cq_a, i, RDMA_WC_LOC_QP_OP_ERR);
        g_assert_cmpint(qrdma_qp_state(t.a), ==, RDMA_QPS_SQE);
        /* UC recovers */
        assert_ok(qrdma_modify_qp_state(t.a, RDMA_QPS_RTS));
    }
}

static void test_opcodes_that_ud_does_not_have(void)
{
    QRdma *d = test_device();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 16);
    const RdmaQpType types[] = { RDMA_QPT_UD, RDMA_QPT_GSI };
    const uint32_t bad[] = {
        RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_WRITE_WITH_IMM, RDMA_WR_RDMA_READ,
        RDMA_WR_ATOMIC_CMP_AND_SWP, RDMA_WR_ATOMIC_FETCH_AND_ADD,
        RDMA_WR_LOCAL_INV, RDMA_WR_SEND_WITH_INV,
        RDMA_WR_RDMA_READ_WITH_INV, RDMA_WR_REG_MR,
    };

    qrdma_setup_gids(d, 1);
    for (int n = 0; n < ARRAY_SIZE(types); n++) {
        QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, types[n]);

        qrdma_start_ud(qp, QRDMA_QKEY);
        for (int i = 0; i < ARRAY_SIZE(bad); i++) {
            qrdma_post_send(qp, &(RdmaSendWr) { .wr_id = i, .opcode = bad[i] });
            qrdma_expect(cq, i, RDMA_WC_LOC_QP_OP_ERR);
            g_assert_cmpint(qrdma_qp_state(qp), ==, RDMA_QPS_SQE);
            assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_RTS));
        }
    }
}

static void test_short_wqes(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    RdmaSge sge[2] = { qrdma_sge(t.mr_a, 0, 4), qrdma_sge(t.mr_a, 4, 4) };
    RdmaSendWr wr = {
        .wr_id = 0xabc,
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED,
        .sg_list = sge,
        .num_sge = 2,
    };
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t full = qrdma_encode_send(t.a, &wr, wqe);
    RdmaWc wc;

    g_assert_cmpuint(full, ==, 75 + 32);
    for (size_t len = 1; len < full; len++) {
        qrdma_post_raw(t.a, &t.a->sq, wqe, len, 0, true);
        qrdma_wait_cq(t.cq_a, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_LOC_QP_OP_ERR);
        if (len >= 20) {
            g_assert_cmphex(wc.wr_id, ==, 0xabc);
        }
        pair_restart(&t);
    }
}

static void test_wqe_without_readable_bytes(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    RdmaWc wc;

    qrdma_ring_add(t.a->sq.ring,
                   &(QRdmaDesc) { t.dev->ctrl_rsp, 128, true }, 1);
    t.a->sq.posted++;
    qrdma_ring_kick(t.a->sq.ring);
    qrdma_wait_cq(t.cq_a, &wc);
    g_assert_cmpint(wc.status, ==, RDMA_WC_LOC_QP_OP_ERR);
    g_assert_cmpuint(qrdma_reap(&t.a->sq), ==, 1);
}

static void test_num_sge_against_length_and_limit(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    const uint32_t bad[] = {
        5, 6, 32, 255, 256, 0x10000000, 0x10000001, 0x0fffffff, 0x7fffffff,
        0x80000000, UINT32_MAX,
    };
    RdmaSge sge[16];
    uint8_t wqe[QRDMA_WQE_ROOM] = {};
    RdmaWc wc;

    for (int i = 0; i < ARRAY_SIZE(sge); i++) {
        sge[i] = qrdma_sge(t.mr_a, 16 * i, 4);
    }
    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        RdmaSendWr wr = {
            .wr_id = 0xabc,
            .opcode = RDMA_WR_SEND,
            .sg_list = sge,
            .num_sge = 16,
        };
        uint32_t num_sge = cpu_to_le32(bad[i]);
        size_t len = qrdma_encode_send(t.a, &wr, wqe);

        memcpy(wqe, &num_sge, sizeof(num_sge));
        qrdma_post_raw(t.a, &t.a->sq, wqe, len, 0, true);
        qrdma_wait_cq(t.cq_a, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_LOC_QP_OP_ERR);
        g_assert_cmphex(wc.wr_id, ==, 0xabc);
        pair_restart(&t);
    }
}

static void test_bad_receive_wqes(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    const uint32_t counts[] = { 1, 4, 5, 0x10000000, UINT32_MAX };
    const size_t short_lengths[] = { 1, 4, 11 };

    for (int i = 0; i < ARRAY_SIZE(counts) + ARRAY_SIZE(short_lengths); i++) {
        struct virtio_rdma_rq_wqe wqe = { .wr_id = cpu_to_le64(0x77) };
        size_t len = sizeof(wqe);
        RdmaWc wc;

        if (i < ARRAY_SIZE(counts)) {
            wqe.num_sge = cpu_to_le32(counts[i]);
        } else {
            len = short_lengths[i - ARRAY_SIZE(counts)];
        }
        qrdma_post_raw(t.b, &t.b->rq, &wqe, len, 0, true);
        qrdma_post(t.a, qrdma_wr(RDMA_WR_SEND, 0, NULL));
        qrdma_wait_cq(t.cq_b, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_LOC_QP_OP_ERR);
        if (len == sizeof(wqe)) {
            g_assert_cmphex(wc.wr_id, ==, 0x77);
        }
        qrdma_wait_cq(t.cq_a, &wc);
        g_assert_cmpint(wc.status, !=, RDMA_WC_SUCCESS);
        pair_restart(&t);
    }
}

static void test_inline_rules(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 8);
    uint8_t data[256] = {};
    const uint32_t not_inline[] = {
        RDMA_WR_RDMA_READ, RDMA_WR_ATOMIC_CMP_AND_SWP,
        RDMA_WR_ATOMIC_FETCH_AND_ADD, RDMA_WR_LOCAL_INV, RDMA_WR_REG_MR,
        RDMA_WR_RDMA_READ_WITH_INV,
    };

    /* one byte more than the QP's max_inline_data */
    expect_wr_error(&t, (RdmaSendWr) {
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_INLINE,
        .inline_data = data,
        .inline_len = 129,
    }, RDMA_WC_LOC_QP_OP_ERR);
    /* SGEs and inline data exclude each other */
    expect_wr_error(&t, (RdmaSendWr) {
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_INLINE,
        .inline_data = data,
        .inline_len = 64,
        .sg_list = &sge,
        .num_sge = 1,
    }, RDMA_WC_LOC_QP_OP_ERR);
    for (int i = 0; i < ARRAY_SIZE(not_inline); i++) {
        expect_wr_error(&t, (RdmaSendWr) {
            .opcode = not_inline[i],
            .send_flags = RDMA_SEND_INLINE,
            .inline_data = data,
            .inline_len = 8,
        }, RDMA_WC_LOC_QP_OP_ERR);
    }
}

static RdmaSendWr send_of(RdmaSge *sge)
{
    return (RdmaSendWr) {
        .opcode = RDMA_WR_SEND, .sg_list = sge, .num_sge = 1,
    };
}

static void test_bad_local_keys(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QRdmaMr *other_pd = qrdma_reg_mr(qrdma_alloc_pd(t.dev), TEST_IOVA_A,
                                     TEST_MR_SIZE, TEST_ACCESS_ALL);
    QRdmaMr *unmapped = qrdma_alloc_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE, 4);
    QRdmaMr *gone = qrdma_reg_mr(t.pd, TEST_IOVA_A, 4096, 0);
    RdmaSge good = qrdma_sge(t.mr_a, 0, 8);
    const uint32_t keys[] = {
        0, 1, 0xff, t.mr_a->lkey ^ 1, t.mr_a->lkey ^ 0x80,
        t.mr_a->lkey ^ 0x80000000, other_pd->lkey, unmapped->lkey, gone->lkey,
        (TEST_MAX_MR + 1) << 8, UINT32_MAX, 0xffffff00,
    };

    assert_ok(qrdma_dereg_mr(gone));
    for (int i = 0; i < ARRAY_SIZE(keys); i++) {
        RdmaSge sge = good;

        sge.lkey = keys[i];
        expect_wr_error(&t, send_of(&sge), RDMA_WC_LOC_PROT_ERR);
    }
}

static void test_local_addresses_out_of_range(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    const struct {
        uint64_t addr;
        uint32_t length;
    } bad[] = {
        { TEST_IOVA_A - 1, 8 },
        { TEST_IOVA_A - 8, 8 },
        { TEST_IOVA_A + TEST_MR_SIZE - 7, 8 },
        { TEST_IOVA_A + TEST_MR_SIZE, 1 },
        { TEST_IOVA_A + TEST_MR_SIZE + 4096, 1 },
        { TEST_IOVA_A, TEST_MR_SIZE + 1 },
        { TEST_IOVA_A + 8, 0x7fffffff },
        { 0, 8 },
        { UINT64_MAX, 1 },
        { UINT64_MAX - 3, 8 },
        { UINT64_MAX - 0xffff, 0x20000 },
    };

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        RdmaSge sge = {
            .addr = bad[i].addr, .length = bad[i].length, .lkey = t.mr_a->lkey,
        };

        expect_wr_error(&t, send_of(&sge), RDMA_WC_LOC_PROT_ERR);
    }
}

static void test_read_into_read_only_memory(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QRdmaMr *ro = qrdma_reg_mr(t.pd, 0x5000, 4096, RDMA_ACCESS_REMOTE_READ);
    RdmaSge sge = qrdma_sge(ro, 0, 8);

    expect_wr_error(&t, (RdmaSendWr) {
        .opcode = RDMA_WR_RDMA_READ,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.rdma = { t.mr_b->iova, t.mr_b->rkey },
    }, RDMA_WC_LOC_PROT_ERR);
    expect_wr_error(&t, (RdmaSendWr) {
        .opcode = RDMA_WR_ATOMIC_FETCH_AND_ADD,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.atomic = { t.mr_b->iova, 1, 0, t.mr_b->rkey },
    }, RDMA_WC_LOC_PROT_ERR);
}

static void test_receive_into_read_only_memory(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QRdmaMr *ro = qrdma_reg_mr(t.pd, 0x5000, 4096, 0);
    RdmaSge to = qrdma_sge(ro, 0, 64);
    RdmaSge from = qrdma_sge(t.mr_a, 0, 64);
    RdmaSendWr wr = send_of(&from);

    qrdma_mr_fill(t.mr_a, 0, 64, 1);
    qrdma_recv(t.b, 7, &to);
    qrdma_post_send(t.a, &wr);
    qrdma_expect(t.cq_b, 7, RDMA_WC_LOC_PROT_ERR);
    qrdma_expect(t.cq_a, 0, RDMA_WC_REM_OP_ERR);
    for (int i = 0; i < 64; i++) {
        uint8_t byte;

        qrdma_mr_read(ro, i, &byte, 1);
        g_assert_cmphex(byte, ==, 0);
    }
}

static void test_message_longer_than_2_gib(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QRdmaMr *dma = qrdma_get_dma_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE);
    RdmaSge sge[4];

    for (int i = 0; i < 4; i++) {
        sge[i] = (RdmaSge) { 0, UINT32_MAX, dma->lkey };
    }
    for (int n = 1; n <= 4; n++) {
        expect_wr_error(&t, (RdmaSendWr) {
            .opcode = RDMA_WR_SEND, .sg_list = sge, .num_sge = n,
        }, RDMA_WC_LOC_LEN_ERR);
    }
}

static void test_atomic_wants_8_bytes(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    const uint32_t lengths[] = { 0, 4, 7, 9, 16 };

    for (int i = 0; i < ARRAY_SIZE(lengths); i++) {
        RdmaSge sge = qrdma_sge(t.mr_a, 0, lengths[i]);

        qrdma_post_send(t.a, &(RdmaSendWr) {
            .wr_id = 5,
            .opcode = RDMA_WR_ATOMIC_FETCH_AND_ADD,
            .sg_list = &sge,
            .num_sge = 1,
            .wr.atomic = { t.mr_b->iova, 1, 0, t.mr_b->rkey },
        });
        qrdma_expect(t.cq_a, 5, RDMA_WC_LOC_LEN_ERR);
        pair_restart(&t);
    }
}

static void test_wqe_in_many_descriptors(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    const unsigned splits[] = { 3, 8, 12, 16, 74, 75, 76 };

    for (int i = 0; i < ARRAY_SIZE(splits); i++) {
        RdmaSge from = qrdma_sge(t.mr_a, 0, 100);
        RdmaSge to[2] = { qrdma_sge(t.mr_b, 0, 40),
                          qrdma_sge(t.mr_b, 40, 60) };
        RdmaSendWr wr = send_of(&from);
        RdmaRecvWr recv = { 9, .num_sge = 2, .sg_list = to };
        uint8_t wqe[QRDMA_WQE_ROOM];
        size_t len;
        RdmaWc wc;

        qrdma_mr_fill(t.mr_a, 0, 100, i);
        len = qrdma_encode_recv(&recv, wqe);
        qrdma_post_raw(t.b, &t.b->rq, wqe, len, MIN(splits[i], 7), true);
        wr.send_flags = RDMA_SEND_SIGNALED;
        wr.wr_id = i;
        len = qrdma_encode_send(t.a, &wr, wqe);
        qrdma_post_raw(t.a, &t.a->sq, wqe, len, splits[i], true);
        qrdma_expect_wc(t.cq_a, i, RDMA_WC_SEND, &wc);
        qrdma_expect_wc(t.cq_b, 9, RDMA_WC_RECV, &wc);
        g_assert_cmpuint(wc.byte_len, ==, 100);
        qrdma_mr_check(t.mr_b, 0, 100, i);
        g_assert_cmpuint(qrdma_reap(&t.a->sq), ==, 1);
        g_assert_cmpuint(qrdma_reap(&t.b->rq), ==, 1);
    }
}

static void test_wqe_is_read_once(void)
{
    QRdmaPath path = { .min_rnr_timer = 12 };
    TestPair t = test_loopback_pair(RDMA_QPT_RC, &path);
    RdmaSge from = qrdma_sge(t.mr_a, 0, 64);
    RdmaSge to = qrdma_sge(t.mr_b, 0, 64);
    RdmaSendWr wr = send_of(&from);

    qrdma_mr_fill(t.mr_a, 0, 64, 3);
    wr.wr_id = 0x600d;
    wr.send_flags = RDMA_SEND_SIGNALED;
    qrdma_post_send(t.a, &wr);
    /* the send waits for a receive buffer */
    qrdma_expect_none(t.cq_a);
    qtest_memset(t.dev->host->qts, t.a->sq.buf, 0xff,
                 QRDMA_RING_SIZE * QRDMA_WQE_ROOM);
    qrdma_recv(t.b, 1, &to);
    qtest_memset(t.dev->host->qts, t.b->rq.buf, 0xff,
                 QRDMA_RING_SIZE * QRDMA_WQE_ROOM);
    /* RNR timer code 12: 0.64 ms */
    qrdma_clock_step(t.dev, 10 * QRDMA_MS);
    qrdma_expect_wc(t.cq_a, 0x600d, RDMA_WC_SEND, NULL);
    qrdma_expect_wc(t.cq_b, 1, RDMA_WC_RECV, NULL);
    qrdma_mr_check(t.mr_b, 0, 64, 3);
}

static void test_cq_overrun_is_an_error_of_its_qps_only(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QRdmaCq *small = qrdma_create_cq(t.dev, 2);
    QRdmaQp *qp = qrdma_create_qp(t.pd, small, t.cq_b, RDMA_QPT_RC);
    RdmaSge sge = qrdma_sge(t.mr_a, 0, 16);

    small->no_refill = true;
    qrdma_connect(qp, qp, NULL);
    for (int i = 0; i < 5; i++) {
        qrdma_post(qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, i, &sge, t.mr_b, 0));
    }
    qrdma_expect(small, 0, RDMA_WC_SUCCESS);
    qrdma_expect(small, 1, RDMA_WC_SUCCESS);
    qrdma_settle(t.dev);
    g_assert_cmpint(qrdma_qp_state(qp), ==, RDMA_QPS_ERR);
    /* the error is permanent: new buffers stay empty */
    qrdma_ring_add(small->ring, &(QRdmaDesc) { small->buf, 38, true }, 1);
    qrdma_ring_kick(small->ring);
    qrdma_expect_none(small);
    /* all of the WQEs come back nevertheless */
    qrdma_wait_until(t.dev, (qrdma_reap(&qp->sq), qp->sq.retired == 5));
    /* other queue pairs work */
    qrdma_post_expect_wc(t.a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 0x55, &sge,
                                            t.mr_b, 0), RDMA_WC_RDMA_WRITE);
    assert_ok(qrdma_destroy_qp(qp));
    assert_ok(qrdma_destroy_cq(small));
}

const QRdmaTest wqe_tests[] = {
    { "unknown-opcodes", test_unknown_opcodes },
    { "unknown-flags", test_unknown_flags },
    { "opcodes-that-uc-does-not-have", test_opcodes_that_uc_does_not_have },
    { "opcodes-that-ud-does-not-have", test_opcodes_that_ud_does_not_have },
    { "short", test_short_wqes },
    { "without-readable-bytes", test_wqe_without_readable_bytes },
    { "num-sge-against-length-and-limit",
      test_num_sge_against_length_and_limit },
    { "bad-receive-wqes", test_bad_receive_wqes },
    { "inline-rules", test_inline_rules,
      .not_demo = true },
    { "bad-local-keys", test_bad_local_keys },
    { "local-addresses-out-of-range", test_local_addresses_out_of_range },
    { "read-into-read-only-memory", test_read_into_read_only_memory },
    { "receive-into-read-only-memory", test_receive_into_read_only_memory },
    { "message-longer-than-2-gib", test_message_longer_than_2_gib },
    { "atomic-wants-8-bytes", test_atomic_wants_8_bytes },
    { "in-many-descriptors", test_wqe_in_many_descriptors },
    { "is-read-once", test_wqe_is_read_once },
    { "cq-overrun-is-an-error-of-its-qps-only",
      test_cq_overrun_is_an_error_of_its_qps_only },
    {}
};
