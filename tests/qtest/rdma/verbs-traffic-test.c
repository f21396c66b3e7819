/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: work requests go to the host and completions come back, also
 * where the host refuses them.
 */
#include "qemu/osdep.h"
#include "verbs-test.h"

static void test_messages(const void *data)
{
    RdmaQpType type = GPOINTER_TO_INT(data);
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, type);

    for (int i = 0; i < 100; i++) {
        verbs_check_works(&p, i + 1);
    }
}

/* Numbers on the wire are the host's, far from the guest's numbers. */
static void test_numbers(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    RdmaWc wc;

    g_assert_cmphex(p.a->wire_qpn, >, 0x1000);
    g_assert_cmphex(p.mr_a->lkey, !=, p.mr_a->rkey);
    g_assert_cmphex(p.mr_a->lkey >> 24, ==, 0x5a);
    g_assert_cmphex(p.mr_a->rkey >> 24, ==, 0xa5);
    verbs_post_recv(&p, 1);
    verbs_post_send(&p, 2);
    qrdma_wait_cq(p.cq_b, &wc);
    /* the local QP has the device's number */
    g_assert_cmphex(wc.qp_num, ==, p.b->qpn);
}

static RdmaSendWr rdma_wr(VerbsPair *p, RdmaWrOpcode opcode, RdmaSge *sge,
                          uint64_t offset)
{
    return qrdma_rdma_wr(opcode, 7, sge, p->mr_b, offset);
}

static void test_write_and_read(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    RdmaSge sge = qrdma_sge(p.mr_a, 4000, 10000);
    RdmaSendWr wr = rdma_wr(&p, RDMA_WR_RDMA_WRITE, &sge, 3);

    qrdma_mr_fill(p.mr_a, 4000, 10000, 5);
    qrdma_post_expect(p.a, wr, RDMA_WC_SUCCESS);
    qrdma_mr_check(p.mr_b, 3, 10000, 5);

    qrdma_mr_fill(p.mr_b, 3, 10000, 6);
    wr.opcode = RDMA_WR_RDMA_READ;
    qrdma_post_expect(p.a, wr, RDMA_WC_SUCCESS);
    qrdma_mr_check(p.mr_a, 4000, 10000, 6);
}

/* The guest gets the errors of the host's completions. */
static void test_status_of_completions(void)
{
    static const struct {
        const char *name;
        RdmaWcStatus status;
    } errors[] = {
        { "LOC_LEN_ERR", RDMA_WC_LOC_LEN_ERR },
        { "LOC_QP_OP_ERR", RDMA_WC_LOC_QP_OP_ERR },
        { "LOC_PROT_ERR", RDMA_WC_LOC_PROT_ERR },
        { "WR_FLUSH_ERR", RDMA_WC_WR_FLUSH_ERR },
        { "MW_BIND_ERR", RDMA_WC_MW_BIND_ERR },
        { "REM_INV_REQ_ERR", RDMA_WC_REM_INV_REQ_ERR },
        { "REM_ACCESS_ERR", RDMA_WC_REM_ACCESS_ERR },
        { "REM_OP_ERR", RDMA_WC_REM_OP_ERR },
        { "RETRY_EXC_ERR", RDMA_WC_RETRY_EXC_ERR },
        { "RNR_RETRY_EXC_ERR", RDMA_WC_RNR_RETRY_EXC_ERR },
        { "GENERAL_ERR", RDMA_WC_GENERAL_ERR },
    };
    g_autoptr(Verbs) v = verbs_new("auto off");

    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        VerbsPair p;

        verbs_restart(v);
        p = verbs_pair(v, RDMA_QPT_RC);
        verbs_post_send(&p, 1);
        verbs_post_send(&p, 2);
        verbs_post_send(&p, 3);
        fake_verbs_tell(v->fake, "complete 0x%x send", p.a->wire_qpn);
        fake_verbs_tell(v->fake, "complete 0x%x send %s",
                        p.a->wire_qpn, errors[i].name);
        qrdma_expect(p.cq_a, 1, RDMA_WC_SUCCESS);
        qrdma_expect(p.cq_a, 2, errors[i].status);
        qrdma_expect(p.cq_a, 3, RDMA_WC_WR_FLUSH_ERR);
        qrdma_expect_none(p.cq_a);
    }
}

/*
 * A WR that the host refuses fails in its turn: earlier WRs end first, and all
 * later WRs are flushed.
 */
static void test_host_refuses_a_send(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off");
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    verbs_post_recv(&p, 1);
    verbs_post_send(&p, 1);
    fake_verbs_tell(v->fake, "fail post_send ENOMEM");
    verbs_post_send(&p, 2);
    verbs_post_send(&p, 3);
    fake_verbs_tell(v->fake, "auto on");
    qrdma_expect(p.cq_a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpint(qrdma_expect_error(p.cq_a, 2), !=, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p.cq_a, 3, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(p.cq_a);
}

/* The message that takes a bad WR breaks the QP, not an earlier message. */
static void test_host_refuses_a_recv(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    verbs_post_recv(&p, 1);
    fake_verbs_tell(v->fake, "fail post_recv ENOMEM");
    verbs_post_recv(&p, 2);
    verbs_post_recv(&p, 3);
    verbs_post_send(&p, 1);
    qrdma_expect(p.cq_b, 1, RDMA_WC_SUCCESS);
    qrdma_expect_none(p.cq_b);
    verbs_post_send(&p, 2);
    g_assert_cmpint(qrdma_expect_error(p.cq_b, 2), !=, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p.cq_b, 3, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(p.cq_b);
}

/*
 * The host refuses even a substitute for the bad WR: the QP is in error at
 * once.
 */
static void test_host_refuses_all_posts(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    verbs_post_recv(&p, 1);
    fake_verbs_tell(v->fake, "fail post_recv EINVAL times 0");
    fake_verbs_tell(v->fake, "fail post_send EINVAL times 0");
    verbs_post_recv(&p, 2);
    for (int i = 1; i <= 2; i++) {
        qrdma_expect_error(p.cq_b, i);
    }
    verbs_offer_send(&p, 4);
    verbs_offer_send(&p, 5);
    for (int i = 4; i <= 5; i++) {
        qrdma_expect_error(p.cq_a, i);
    }
}

/*
 * An address handle is made when it is needed. If no peer is found, the
 * datagram is lost, as it would be on the wire. An impossible address is an
 * error.
 */
static void check_refused_address(const char *err, RdmaWcStatus status)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    fake_verbs_tell(v->fake, "fail create_ah %s", err);
    verbs_offer_send(&p, 1);
    qrdma_expect(p.cq_a, 1, status);
    qrdma_expect_none(p.cq_a);
}

static void test_host_refuses_an_address(void)
{
    static const char *lost[] = {
        "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "ENODATA", "EAGAIN",
    };
    static const char *bad[] = { "EINVAL", "ENOMEM", "EIO", "EPERM" };

    for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
        check_refused_address(lost[i], RDMA_WC_SUCCESS);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        check_refused_address(bad[i], RDMA_WC_LOC_QP_OP_ERR);
    }
}

/* Datagrams after one whose address is late keep their order. */
static void test_late_address(void)
{
    g_autoptr(Verbs) v = verbs_new("delay create_ah");
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    verbs_post_recv(&p, 1);
    verbs_post_recv(&p, 2);
    verbs_offer_send(&p, 1);
    verbs_offer_send(&p, 2);
    fake_verbs_tell(v->fake, "await create_ah");
    qrdma_expect_none(p.cq_a);
    fake_verbs_tell(v->fake, "release");
    for (int i = 1; i <= 2; i++) {
        qrdma_expect(p.cq_a, i, RDMA_WC_SUCCESS);
        qrdma_expect(p.cq_b, i, RDMA_WC_SUCCESS);
    }
}

/* The guest resets its device while an address is late. */
static void test_reset_while_an_address_is_late(void)
{
    g_autoptr(Verbs) v = verbs_new("delay create_ah");
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    verbs_offer_send(&p, 1);
    fake_verbs_tell(v->fake, "await create_ah");
    qrdma_reset(v->dev);
    fake_verbs_tell(v->fake, "release");
    verbs_await_clean(v);
    verbs_restart(v);
    p = verbs_pair(v, RDMA_QPT_UD);
    verbs_post_recv(&p, 2);
    verbs_offer_send(&p, 2);
    qrdma_expect(p.cq_b, 2, RDMA_WC_SUCCESS);
}

/* A CQ that cannot be read any more is in error, and so are its QPs. */
static void test_poll_fails(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off");
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    verbs_post_recv(&p, 1);
    verbs_post_recv(&p, 2);
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_recv") == 2);
    fake_verbs_tell(v->fake, "fail poll_cq EIO");
    fake_verbs_tell(v->fake, "complete 0x%x recv", p.b->wire_qpn);
    qrdma_expect_event(v->dev, RDMA_EVENT_CQ_ERR, p.cq_b->cqn);
    qrdma_expect_event(v->dev, RDMA_EVENT_QP_FATAL, p.b->qpn);
    qrdma_expect_none(p.cq_b);
    g_assert_cmpint(qrdma_qp_state(p.b), ==, RDMA_QPS_ERR);
    g_assert_cmpint(qrdma_qp_state(p.a), ==, RDMA_QPS_RTS);
    fake_verbs_tell(v->fake, "auto on");
    verbs_restart(v);
    p = verbs_pair(v, RDMA_QPT_RC);
    verbs_check_works(&p, 3);
}

const QRdmaTest verbs_traffic_tests[] = {
    { "rc", .run_case = test_messages, .data = GINT_TO_POINTER(RDMA_QPT_RC) },
    { "uc", .run_case = test_messages, .data = GINT_TO_POINTER(RDMA_QPT_UC) },
    { "ud", .run_case = test_messages, .data = GINT_TO_POINTER(RDMA_QPT_UD) },
    { "numbers-are-the-hosts", test_numbers },
    { "write-and-read", test_write_and_read },
    { "status-of-completions", test_status_of_completions },
    { "host-refuses-a-send", test_host_refuses_a_send },
    { "host-refuses-a-recv", test_host_refuses_a_recv },
    { "host-refuses-all-posts", test_host_refuses_all_posts },
    { "host-refuses-an-address", test_host_refuses_an_address },
    { "late-address", test_late_address },
    { "reset-while-an-address-is-late", test_reset_while_an_address_is_late },
    { "poll-fails", test_poll_fails },
    {}
};
