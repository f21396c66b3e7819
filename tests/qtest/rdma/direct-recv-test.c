/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: receive queues that the device reads in memory, and when they
 * need a doorbell.
 */
#include "qemu/osdep.h"
#include "rdma-test.h"

#define DIRECT QRDMA_DIRECT_QPS

static void ring(QRdmaQp *qp)
{
    qrdma_doorbell(qp->dev, QRDMA_DIRECT_DOORBELL, qp->qpn);
}

/* Both QPs have four receives, which no doorbell was rung for. */
static TestPair pair_with_receives(void)
{
    TestPair t = test_pair_on(test_device_with(DIRECT), RDMA_QPT_RC, 64, NULL);

    for (int i = 0; i < 2; i++) {
        QRdmaQp *qp = i ? t.b : t.a;

        g_assert_true(qrdma_direct_awake(t.dev, &qp->rq));
        for (uint64_t id = 1; id <= 4; id++) {
            qrdma_put_recv(qp->dev, &qp->rq, id, NULL);
        }
    }
    qrdma_settle(t.dev);
    return t;
}

/* The engine asks for receives when messages come. */
static void test_receives_need_no_doorbell(void)
{
    TestPair t = pair_with_receives();
    RdmaSendWr wr = { .opcode = RDMA_WR_SEND };

    for (int i = 1; i <= 4; i++) {
        g_assert_true(qrdma_direct_awake(t.dev, &t.b->rq));
        wr.wr_id = i;
        wr.send_flags = RDMA_SEND_SIGNALED;
        qrdma_post_expect(t.a, wr, RDMA_WC_SUCCESS);
        qrdma_expect(t.cq_b, i, RDMA_WC_SUCCESS);
    }
}

/* Post one send more than there are receives. */
static void post_five_sends(TestPair *t)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 0, NULL);

    for (int i = 1; i <= 5; i++) {
        wr.wr_id = i;
        qrdma_post_send(t->a, &wr);
    }
}

/* A message of the peer may wait for this receive. */
static void test_receive_after_the_last_one_is_rung_for(void)
{
    TestPair t = pair_with_receives();

    post_five_sends(&t);
    for (int i = 1; i <= 4; i++) {
        qrdma_expect(t.cq_a, i, RDMA_WC_SUCCESS);
        qrdma_expect(t.cq_b, i, RDMA_WC_SUCCESS);
    }
    g_assert_false(qrdma_direct_awake(t.dev, &t.b->rq));
    /* Also when the device has polled the QP since */
    qrdma_post_expect(t.b, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 100, NULL, t.mr_a,
                                         0), RDMA_WC_SUCCESS);
    ring(t.b);
    qrdma_settle(t.dev);
    g_assert_false(qrdma_direct_awake(t.dev, &t.b->rq));
    qrdma_put_recv(t.b->dev, &t.b->rq, 5, NULL);
    qrdma_expect_none(t.cq_b);
    ring(t.b);
    qrdma_expect(t.cq_b, 5, RDMA_WC_SUCCESS);
    qrdma_expect(t.cq_a, 5, RDMA_WC_SUCCESS);
}

/* No message waits for a receive any more. */
static void test_receives_need_no_doorbell_again(void)
{
    TestPair t = pair_with_receives();

    post_five_sends(&t);
    for (int i = 5; i <= 7; i++) {
        qrdma_put_recv(t.b->dev, &t.b->rq, i, NULL);
    }
    ring(t.b);
    for (int i = 1; i <= 5; i++) {
        qrdma_expect(t.cq_a, i, RDMA_WC_SUCCESS);
        qrdma_expect(t.cq_b, i, RDMA_WC_SUCCESS);
    }
    qrdma_settle(t.dev);
    g_assert_true(qrdma_direct_awake(t.dev, &t.b->rq));
}

/* After the QP has failed by itself, no message asks for receives any more. */
static void test_receives_are_flushed_without_a_doorbell(void)
{
    static const struct {
        uint32_t lkey, rkey;
        bool fails_a, fails_b;
    } cases[] = {
        { 0xbad00, 0, true, false },
        { 0, 0xbad00, true, true },
    };

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        TestPair t = pair_with_receives();
        RdmaSge sge = qrdma_sge(t.mr_a, 0, 64);
        RdmaSendWr wr = {
            .opcode = RDMA_WR_RDMA_WRITE,
            .sg_list = &sge,
            .num_sge = 1,
            .wr.rdma = { t.mr_b->iova, cases[i].rkey ?: t.mr_b->rkey },
        };
        RdmaWc wc;

        sge.lkey = cases[i].lkey ?: sge.lkey;
        qrdma_post_send(t.a, &wr);
        qrdma_wait_cq(t.cq_a, &wc);
        g_assert_cmpint(wc.status, ==, cases[i].rkey ? RDMA_WC_REM_ACCESS_ERR
                                                     : RDMA_WC_LOC_PROT_ERR);
        for (uint64_t id = 1; id <= 4; id++) {
            if (cases[i].fails_a) {
                qrdma_expect(t.cq_a, id, RDMA_WC_WR_FLUSH_ERR);
            }
            if (cases[i].fails_b) {
                qrdma_expect(t.cq_b, id, RDMA_WC_WR_FLUSH_ERR);
            }
        }
        qrdma_settle(t.dev);
        g_assert_false(qrdma_direct_awake(t.dev, &t.a->rq));
        g_assert_cmpint(qrdma_direct_awake(t.dev, &t.b->rq), ==,
                        !cases[i].fails_b);
        qrdma_put_recv(t.a->dev, &t.a->rq, 5, NULL);
        ring(t.a);
        qrdma_expect(t.cq_a, 5, RDMA_WC_WR_FLUSH_ERR);
    }
}

const QRdmaTest direct_recv_tests[] = {
    { "receives-need-no-doorbell", test_receives_need_no_doorbell },
    { "receive-after-the-last-one-is-rung-for",
      test_receive_after_the_last_one_is_rung_for },
    { "receives-need-no-doorbell-again", test_receives_need_no_doorbell_again },
    { "receives-are-flushed-without-a-doorbell",
      test_receives_are_flushed_without_a_doorbell },
    {}
};
