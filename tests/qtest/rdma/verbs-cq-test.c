/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: cases of completion queues and shared receive queues that plain
 * traffic does not reach.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "verbs-test.h"

/* More completions than one turn of the main loop polls */
#define MANY 1200

static uint32_t depth(Verbs *v)
{
    g_autofree char *all = fake_verbs_ask(v->fake, "objects");
    g_autofree char *key = g_strdup_printf("cq number=0x%x ",
                                           fake_verbs_newest(v->fake, "cq"));
    const char *at = strstr(all, key);

    g_assert_nonnull(at);
    return g_ascii_strtoull(strstr(at, "cqe=") + 4, NULL, 10);
}

static void test_resize(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdmaCq *cq;

    qrdma_start(v->dev, 0, 0);
    cq = qrdma_create_cq(v->dev, 16);
    g_assert_cmpint(depth(v), ==, 16);
    assert_ok(qrdma_resize_cq(cq, 100, 0));
    g_assert_cmpint(depth(v), ==, 100);
    fake_verbs_tell(v->fake, "fail resize_cq ENOMEM");
    assert_status(qrdma_resize_cq(cq, 200, 0), NOMEM);
    /* The host's CQ keeps its entries. */
    fake_verbs_tell(v->fake, "fail resize_cq EOPNOTSUPP");
    assert_ok(qrdma_resize_cq(cq, 50, 0));
    g_assert_cmpint(depth(v), ==, 100);
    assert_status(qrdma_resize_cq(cq, 200, 0), NOTSUPP);
    g_assert_cmpint(depth(v), ==, 100);
}

/*
 * A direct CQ gets more CQEs than its new depth while the command waits for a
 * busy host. The command fails, and host and guest have the old depth.
 */
static void test_filled_before_resize(void)
{
    enum { OLD = 16, SHIFT = 2, NEW = 1 << SHIFT };
    g_autoptr(Verbs) v = verbs_new(NULL);
    struct virtio_rdma_reg_user_mr_req reg;
    struct virtio_rdma_resize_cq_req req = {
        .cqe = cpu_to_le32(NEW), .depth_shift = SHIFT,
    };
    uint32_t npages;
    uint64_t mem;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp;
    VerbsWaiting w;

    v->dev->direct = true;
    qrdma_start(v->dev, QRDMA_FEATURES | QRDMA_DIRECT, 0);
    qrdma_setup_gids(v->dev, 1);
    pd = qrdma_alloc_pd(v->dev);
    cq = qrdma_create_direct_cq(v->dev, OLD, NULL);
    qp = qrdma_create_loop(pd, cq, cq);
    /* The driver drops the command, and the host is still busy with it. */
    reg = verbs_reg_mr_req(pd);
    verbs_hold_cmd(v, "reg_mr_iova2", VIRTIO_RDMA_CMD_REG_USER_MR, &reg,
                   sizeof(reg), sizeof(struct virtio_rdma_mr_rsp));
    qrdma_ring_renew(qrdma_ring(v->dev, VIRTIO_RDMA_CTRL_VQ));
    req.cqn = cpu_to_le32(cq->cqn);
    req.queue_pages = cpu_to_le64(qrdma_direct_cq_alloc(v->dev, SHIFT,
                                                        &npages, &mem));
    req.queue_npages = cpu_to_le32(npages);
    w = verbs_send_cmd(v, VIRTIO_RDMA_CMD_RESIZE_CQ, &req, sizeof(req), 0);
    for (int i = 0; i < OLD; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, i, NULL));
    }
    qrdma_reap_all(v->dev, &qp->sq);
    g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
    assert_status(verbs_release_cmd(&w), INVAL);
    g_assert_cmpint(depth(v), ==, OLD);
    qrdma_expect_many(cq, 0, OLD, RDMA_WC_SUCCESS);
}

/* More completions at once than a turn takes: the rest comes in the next. */
static void test_many_at_once(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off");
    uint32_t cq;
    VerbsPair p;
    RdmaWc wc;

    qrdma_start(v->dev, 0, 0);
    qrdma_setup_gids(v->dev, 1);
    p.pd = qrdma_alloc_pd(v->dev);
    p.cq_a = qrdma_create_cq(v->dev, 2 * MANY);
    cq = fake_verbs_newest(v->fake, "cq");
    p.a = qrdma_create_loop(p.pd, p.cq_a, p.cq_a);
    /* Completions of no QP; the completion of the send comes after them */
    for (int i = 0; i < MANY; i++) {
        fake_verbs_tell(v->fake, "wc 0x%x wr_id=%d", cq, i);
    }
    qrdma_post(p.a, qrdma_wr(RDMA_WR_SEND, 99, NULL));
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_send") > 0);
    fake_verbs_tell(v->fake, "complete 0x%x send", p.a->wire_qpn);
    qrdma_wait_cq(p.cq_a, &wc);
    g_assert_cmpint(wc.wr_id, ==, 99);
    qrdma_expect_none(p.cq_a);
}

/* While the VM stands still completions stay with the host. */
static void test_stopped_vm(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    unsigned calls;

    verbs_post_recv(&p, 1);
    verbs_post_recv(&p, 2);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'stop'}");
    calls = fake_verbs_calls(v->fake, "poll_cq");
    fake_verbs_tell(v->fake, "complete 0x%x recv", p.b->wire_qpn);
    qrdma_settle(v->dev);
    g_assert_cmpint(fake_verbs_calls(v->fake, "poll_cq"), ==, calls);
    qrdma_expect_none(p.cq_b);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'cont'}");
    qrdma_expect(p.cq_b, 1, RDMA_WC_SUCCESS);
    verbs_offer_send(&p, 2);
    qrdma_expect(p.cq_b, 2, RDMA_WC_SUCCESS);
}

/* The host cannot report completions any more; the machine goes on. */
static void test_host_does_not_arm(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    verbs_check_works(&p, 1);
    fake_verbs_tell(v->fake, "fail req_notify_cq EIO times 0");
    verbs_post_recv(&p, 2);
    verbs_offer_send(&p, 2);
    qrdma_expect(p.cq_a, 2, RDMA_WC_SUCCESS);
    qrdma_expect(p.cq_b, 2, RDMA_WC_SUCCESS);
    qrdma_expect_event(v->dev, RDMA_EVENT_CQ_ERR, p.cq_b->cqn);
    qrdma_expect_event(v->dev, RDMA_EVENT_QP_FATAL, p.b->qpn);
    fake_verbs_tell(v->fake, "forget req_notify_cq");
    verbs_restart(v);
    p = verbs_pair(v, RDMA_QPT_RC);
    verbs_check_works(&p, 3);
}

/* Shared receive queues */

/* The guest resets its device while an SRQ is made. */
static void test_srq_is_late(void)
{
    g_autoptr(Verbs) v = verbs_new("delay create_srq");
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    struct virtio_rdma_create_srq_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .max_wr = cpu_to_le32(8),
        .max_sge = cpu_to_le32(1),
    };

    verbs_send_cmd(v, VIRTIO_RDMA_CMD_CREATE_SRQ, &req, sizeof(req),
                   sizeof(struct virtio_rdma_srqn));
    fake_verbs_tell(v->fake, "await create_srq");
    qrdma_reset(v->dev);
    fake_verbs_tell(v->fake, "release");
    verbs_await_clean(v);
    verbs_restart(v);
}

typedef struct Shared {
    VerbsPair p;
    QRdmaSrq *srq;
} Shared;

/* b receives from an SRQ of four, with this limit. */
static Shared shared_limit(Verbs *v, uint32_t limit)
{
    Shared s = { .p = verbs_pair(v, RDMA_QPT_RC) };
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .has_srq = true,
        .cap = { .max_send_wr = 4, .max_send_sge = 1 },
    };

    s.srq = qrdma_create_srq_limit(s.p.pd, 4, 1, limit);
    init.srqn = s.srq->srqn;
    s.p.b = qrdma_create_qp_attr(s.p.pd, s.p.cq_b, s.p.cq_b, &init);
    assert_ok(qrdma_modify_qp_state(s.p.a, RDMA_QPS_RESET));
    qrdma_connect(s.p.a, s.p.b, NULL);
    return s;
}

static Shared shared_new(Verbs *v)
{
    return shared_limit(v, 0);
}

static void post_srq(Shared *s, uint64_t wr_id)
{
    RdmaSge sge = qrdma_sge(s->p.mr_b, 0, 8192);

    qrdma_srq_recv(s->srq, wr_id, &sge);
}

static uint32_t limit_of(Shared *s)
{
    RdmaSrqAttr attr;

    assert_ok(qrdma_query_srq(s->srq, &attr));
    return attr.limit;
}

/*
 * An SRQ is empty at creation. An event that the host sends at once for an SRQ
 * with a limit does not reach the guest. The guest gets an event when messages
 * take receives.
 */
static void test_srq_made_with_a_limit(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Shared s = shared_limit(v, 3);

    for (int i = 1; i <= 4; i++) {
        post_srq(&s, i);
    }
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_srq_recv") == 4);
    verbs_offer_send(&s.p, 1);
    qrdma_expect(s.p.cq_b, 1, RDMA_WC_SUCCESS);
    qrdma_expect_no_event(v->dev);
    g_assert_cmpuint(limit_of(&s), ==, 3);
    verbs_offer_send(&s.p, 2);
    qrdma_expect(s.p.cq_b, 2, RDMA_WC_SUCCESS);
    qrdma_expect_event(v->dev, RDMA_EVENT_SRQ_LIMIT_REACHED, s.srq->srqn);
    g_assert_cmpuint(limit_of(&s), ==, 0);
    verbs_offer_send(&s.p, 3);
    qrdma_expect(s.p.cq_b, 3, RDMA_WC_SUCCESS);
    qrdma_expect_no_event(v->dev);
}

/* The limit of creation is valid until another one is set. */
static void test_srq_gets_another_limit(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Shared s = shared_limit(v, 3);

    for (int i = 1; i <= 4; i++) {
        post_srq(&s, i);
    }
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_srq_recv") == 4);
    fake_verbs_tell(v->fake, "fail modify_srq EINVAL");
    assert_status(qrdma_modify_srq(s.srq, 2), INVAL);
    g_assert_cmpuint(limit_of(&s), ==, 3);
    assert_ok(qrdma_modify_srq(s.srq, 2));
    g_assert_cmpuint(limit_of(&s), ==, 2);
    for (int i = 1; i <= 2; i++) {
        verbs_offer_send(&s.p, i);
        qrdma_expect(s.p.cq_b, i, RDMA_WC_SUCCESS);
    }
    qrdma_expect_no_event(v->dev);
    verbs_offer_send(&s.p, 3);
    qrdma_expect_event(v->dev, RDMA_EVENT_SRQ_LIMIT_REACHED, s.srq->srqn);
}

/* A message that takes a receive which the host refused fails. */
static void test_host_refuses_a_receive_of_an_srq(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Shared s = shared_new(v);
    RdmaWc wc;

    post_srq(&s, 1);
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_srq_recv") == 1);
    fake_verbs_tell(v->fake, "fail post_srq_recv ENOMEM");
    post_srq(&s, 2);
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_srq_recv") == 3);
    verbs_offer_send(&s.p, 1);
    qrdma_expect(s.p.cq_b, 1, RDMA_WC_SUCCESS);
    qrdma_expect(s.p.cq_a, 1, RDMA_WC_SUCCESS);
    verbs_offer_send(&s.p, 2);
    qrdma_wait_cq(s.p.cq_b, &wc);
    g_assert_cmpint(wc.wr_id, ==, 2);
    g_assert_cmpint(wc.status, ==, RDMA_WC_LOC_QP_OP_ERR);
    qrdma_wait_cq(s.p.cq_a, &wc);
    g_assert_cmpint(wc.status, ==, RDMA_WC_REM_OP_ERR);
}

/* The host refuses all receives: the device and other QPs go on. */
static void test_host_refuses_all_receives_of_an_srq(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Shared s = shared_new(v);
    VerbsPair p;

    fake_verbs_tell(v->fake, "fail post_srq_recv EINVAL times 0");
    post_srq(&s, 1);
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_srq_recv") >= 2);
    fake_verbs_tell(v->fake, "forget post_srq_recv");
    p = verbs_pair(v, RDMA_QPT_RC);
    verbs_check_works(&p, 3);
}

/* The host completes a receive twice. */
static void test_receive_of_an_srq_completes_twice(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Shared s = shared_new(v);
    uint32_t cq = fake_verbs_newest(v->fake, "cq");
    g_autofree char *log = NULL;
    const char *wr_id;

    post_srq(&s, 1);
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_srq_recv") == 1);
    log = fake_verbs_ask(v->fake, "log");
    wr_id = strstr(strstr(log, "post_srq_recv ok"), "wr_id=");
    verbs_offer_send(&s.p, 1);
    qrdma_expect(s.p.cq_b, 1, RDMA_WC_SUCCESS);
    fake_verbs_tell(v->fake, "wc 0x%x qp_num=0x%x opcode=128 %.*s", cq,
                    s.p.b->wire_qpn, (int)strcspn(wr_id, "\n"), wr_id);
    qrdma_expect_none(s.p.cq_b);
    post_srq(&s, 2);
    verbs_offer_send(&s.p, 2);
    qrdma_expect(s.p.cq_b, 2, RDMA_WC_SUCCESS);
}

/* The engine does not fetch receives: the device takes them at a doorbell. */
static void test_direct_srq(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Shared s;

    v->dev->direct = true;
    verbs_restart(v);
    s = shared_new(v);
    qrdma_settle(v->dev);
    for (int i = 1; i <= 100; i++) {
        if (i % 3) {
            qrdma_settle(v->dev);
            g_assert_false(qrdma_direct_awake(v->dev, &s.srq->wq));
        }
        post_srq(&s, i);
        qrdma_wait_until(v->dev,
                         fake_verbs_calls(v->fake, "post_srq_recv") == i);
        verbs_offer_send(&s.p, i);
        qrdma_expect(s.p.cq_b, i, RDMA_WC_SUCCESS);
        qrdma_expect(s.p.cq_a, i, RDMA_WC_SUCCESS);
    }
}

const QRdmaTest verbs_cq_tests[] = {
    { "cq/resize", test_resize },
    { "cq/filled-before-resize", test_filled_before_resize },
    { "cq/many-at-once", test_many_at_once },
    { "cq/stopped-vm", test_stopped_vm },
    { "cq/host-does-not-arm", test_host_does_not_arm },
    { "srq/made-with-a-limit", test_srq_made_with_a_limit },
    { "srq/gets-another-limit", test_srq_gets_another_limit },
    { "srq/late-and-reset", test_srq_is_late },
    { "srq/host-refuses-a-receive", test_host_refuses_a_receive_of_an_srq },
    { "srq/host-refuses-all-receives",
      test_host_refuses_all_receives_of_an_srq },
    { "srq/direct", test_direct_srq },
    { "srq/receive-completes-twice", test_receive_of_an_srq_completes_twice },
    {}
};
