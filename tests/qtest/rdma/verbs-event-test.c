/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: events and completions of the host, also for objects that are
 * being destroyed, are destroyed, or never existed.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "verbs-test.h"

/* A number that no QP has */
#define STRANGER 0x7777

static void test_qp_events(void)
{
    static const struct {
        const char *name;
        RdmaEventType type;
    } events[] = {
        { "COMM_EST", RDMA_EVENT_COMM_EST },
        { "QP_REQ_ERR", RDMA_EVENT_QP_REQ_ERR },
        { "QP_ACCESS_ERR", RDMA_EVENT_QP_ACCESS_ERR },
        { "QP_FATAL", RDMA_EVENT_QP_FATAL },
    };
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
        fake_verbs_tell(v->fake, "event %s 0x%x", events[i].name,
                        p.b->wire_qpn);
        qrdma_expect_event(v->dev, events[i].type, p.b->qpn);
    }
}

static void test_cq_and_srq_events(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    QRdmaSrq *srq = qrdma_create_srq(pd, 8, 1);
    QRdmaCq *cq = qrdma_create_cq(v->dev, 8);

    fake_verbs_tell(v->fake, "event SRQ_LIMIT_REACHED 0x%x",
                    fake_verbs_newest(v->fake, "srq"));
    qrdma_expect_event(v->dev, RDMA_EVENT_SRQ_LIMIT_REACHED, srq->srqn);
    fake_verbs_tell(v->fake, "event SRQ_ERR 0x%x",
                    fake_verbs_newest(v->fake, "srq"));
    qrdma_expect_event(v->dev, RDMA_EVENT_SRQ_ERR, srq->srqn);
    fake_verbs_tell(v->fake, "event CQ_ERR 0x%x",
                    fake_verbs_newest(v->fake, "cq"));
    qrdma_expect_event(v->dev, RDMA_EVENT_CQ_ERR, cq->cqn);
}

static uint8_t port_state(Verbs *v)
{
    struct virtio_rdma_query_port_rsp port;

    assert_ok(qrdma_query_port(v->dev, 1, &port));
    return port.state;
}

static void test_port(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    g_assert_cmpint(port_state(v), ==, RDMA_PORT_ACTIVE);
    for (int i = 0; i < 3; i++) {
        verbs_check_works(&p, 2 * i + 1);
        fake_verbs_tell(v->fake, "port down");
        qrdma_expect_event(v->dev, RDMA_EVENT_PORT_ERR, 1);
        g_assert_cmpint(port_state(v), ==, RDMA_PORT_DOWN);
        /* work waits for the port */
        verbs_post_recv(&p, 2 * i + 2);
        verbs_post_send(&p, 2 * i + 2);
        qrdma_expect_none(p.cq_a);
        fake_verbs_tell(v->fake, "port up");
        qrdma_expect_event(v->dev, RDMA_EVENT_PORT_ACTIVE, 1);
        g_assert_cmpint(port_state(v), ==, RDMA_PORT_ACTIVE);
        qrdma_expect(p.cq_a, 2 * i + 2, RDMA_WC_SUCCESS);
        qrdma_expect(p.cq_b, 2 * i + 2, RDMA_WC_SUCCESS);
    }
}

/* The host's device reports an event of a QP that the guest destroys. */
static void test_event_of_a_qp_that_goes(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    struct virtio_rdma_qpn req = { .qpn = cpu_to_le32(p.b->qpn) };
    VerbsWaiting w;

    w = verbs_hold_cmd(v, "destroy_qp", VIRTIO_RDMA_CMD_DESTROY_QP, &req,
                       sizeof(req), 0);
    fake_verbs_tell(v->fake, "event QP_FATAL 0x%x", p.b->wire_qpn);
    assert_ok(verbs_release_cmd(&w));
    verbs_await_count(v, "qp", 1);
}

/* Completions of QPs that are destroyed, and of a QP that never existed. */
static void test_completions_of_unknown_qps(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint32_t gone = p.b->wire_qpn;
    uint32_t cq = fake_verbs_newest(v->fake, "cq");

    assert_ok(qrdma_destroy_qp(p.b));
    for (int i = 0; i < 3; i++) {
        fake_verbs_tell(v->fake, "wc 0x%x qp_num=0x%x wr_id=%d opcode=128",
                        cq, gone, i);
        fake_verbs_tell(v->fake, "wc 0x%x qp_num=0x%x wr_id=%d "
                        "status=WR_FLUSH_ERR", cq, gone, i);
        fake_verbs_tell(v->fake, "wc 0x%x qp_num=0x%x wr_id=%d", cq,
                        STRANGER, i);
    }
    qrdma_expect_none(p.cq_b);
}

/* A completion of a QP that has posted nothing. */
static void test_completion_of_nothing(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint32_t cq = fake_verbs_newest(v->fake, "cq");

    fake_verbs_tell(v->fake, "wc 0x%x qp_num=0x%x wr_id=0xffffffffffffffff",
                    cq, p.b->wire_qpn);
    fake_verbs_tell(v->fake, "wc 0x%x qp_num=0x%x wr_id=12345 opcode=128",
                    cq, p.b->wire_qpn);
    qrdma_expect_none(p.cq_b);
    verbs_check_works(&p, 1);
}

/*
 * A QP is destroyed while completions of it wait in the host's CQ. They are
 * dropped, also if another QP has its number on the wire by then.
 */
static void test_completions_outlive_their_qp(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off");
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint32_t wire_qpn = p.b->wire_qpn;
    uint32_t cq = fake_verbs_newest(v->fake, "cq");
    g_autofree char *log = NULL;
    g_auto(GStrv) lines = NULL;
    QRdmaQp *again;
    int n = 0;

    for (int i = 1; i <= 10; i++) {
        verbs_post_recv(&p, i);
    }
    log = fake_verbs_ask(v->fake, "log");
    assert_ok(qrdma_destroy_qp(p.b));
    again = qrdma_create_qp(p.pd, p.cq_b, p.cq_b, RDMA_QPT_RC);
    assert_ok(qrdma_modify_init(again, 0));
    p.b = again;
    verbs_post_recv(&p, 1);
    /* repeat the completions of the old QP */
    lines = g_strsplit(log, "\n", -1);
    for (int i = 0; lines[i]; i++) {
        char *id = strstr(lines[i], "wr_id=");

        if (g_str_has_prefix(lines[i], "post_recv ok")) {
            fake_verbs_tell(v->fake, "wc 0x%x qp_num=0x%x opcode=128 %s", cq,
                            n % 2 ? wire_qpn : again->wire_qpn, id);
            n++;
        }
    }
    g_assert_cmpint(n, ==, 10);
    qrdma_expect_none(p.cq_b);
}

/* While the VM stands still nothing is written to its memory. */
static void test_completions_wait_for_the_vm(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off");
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    RdmaWc wc;

    verbs_post_send(&p, 1);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'stop'}");
    fake_verbs_tell(v->fake, "complete 0x%x send", p.a->wire_qpn);
    qrdma_settle(v->dev);
    g_assert_false(qrdma_poll_cq(p.cq_a, &wc));
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'cont'}");
    qrdma_expect(p.cq_a, 1, RDMA_WC_SUCCESS);
}

/* Events wait, too: the driver gets them when it runs again. */
static void test_events_wait_for_the_vm(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    QRdmaSrq *srq = qrdma_create_srq(p.pd, 8, 1);
    RdmaEvent event;

    verbs_post_recv(&p, 1);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'stop'}");
    fake_verbs_tell(v->fake, "event SRQ_LIMIT_REACHED 0x%x",
                    fake_verbs_newest(v->fake, "srq"));
    fake_verbs_tell(v->fake, "event CQ_ERR 0x%x",
                    fake_verbs_newest(v->fake, "cq"));
    qrdma_settle(v->dev);
    g_assert_false(qrdma_poll_event(v->dev, &event));
    qrdma_expect_none(p.cq_b);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'cont'}");
    qrdma_expect_event(v->dev, RDMA_EVENT_SRQ_LIMIT_REACHED, srq->srqn);
    qrdma_expect_event(v->dev, RDMA_EVENT_CQ_ERR, p.cq_b->cqn);
    qrdma_expect_event(v->dev, RDMA_EVENT_QP_FATAL, p.b->qpn);
    qrdma_expect_none(p.cq_b);
}

/* The host's device goes away while the machine is stopped. */
static void test_device_gone_in_a_stopped_vm(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    RdmaEvent event;

    verbs_post_recv(&p, 1);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'stop'}");
    fake_verbs_tell(v->fake, "device gone");
    qrdma_settle(v->dev);
    g_assert_false(qrdma_poll_event(v->dev, &event));
    qrdma_expect_none(p.cq_b);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'cont'}");
    do {
        qrdma_wait_until(v->dev, qrdma_poll_event(v->dev, &event));
    } while (event.type != RDMA_EVENT_QP_FATAL);
    qrdma_expect(p.cq_b, 1, RDMA_WC_WR_FLUSH_ERR);
    fake_verbs_tell(v->fake, "device back");
    verbs_restart(v);
    p = verbs_pair(v, RDMA_QPT_RC);
    verbs_check_works(&p, 2);
}

/*
 * The host's device goes away: QPs are in error and raise events, commands
 * fail, and the guest may reset and unplug its device.
 */
static void test_device_gone(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    RdmaEvent event;
    uint32_t pdn;
    int fatal = 0;

    verbs_check_works(&p, 1);
    verbs_post_recv(&p, 2);
    fake_verbs_tell(v->fake, "device gone");
    while (fatal < 2) {
        qrdma_wait_until(v->dev, qrdma_poll_event(v->dev, &event));
        fatal += event.type == RDMA_EVENT_QP_FATAL;
    }
    /* posted receives are flushed, without the host */
    qrdma_expect(p.cq_b, 2, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpint(qrdma_try_alloc_pd(v->dev, &pdn), !=,
                    VIRTIO_RDMA_S_OK);
    /* a driver can clean up */
    assert_ok(qrdma_destroy_qp(p.a));
    assert_ok(qrdma_dereg_mr(p.mr_a));
    assert_ok(qrdma_destroy_cq(p.cq_a));
    qrdma_reset(v->dev);
    verbs_unplug(v);
    fake_verbs_tell(v->fake, "device back");
    verbs_plug(v);
    p = verbs_pair(v, RDMA_QPT_RC);
    verbs_check_works(&p, 3);
}

/* The first reset after the device has come back makes it work again. */
static void test_device_gone_and_back(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    RdmaEvent event;

    for (int i = 0; i < 3; i++) {
        VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

        verbs_check_works(&p, i + 1);
        fake_verbs_tell(v->fake, "device gone");
        do {
            qrdma_wait_until(v->dev, qrdma_poll_event(v->dev, &event));
        } while (event.type != RDMA_EVENT_QP_FATAL);
        if (i) {
            /* too early */
            qrdma_reset(v->dev);
        }
        fake_verbs_tell(v->fake, "device back");
        verbs_restart(v);
        g_assert_cmpint(fake_verbs_count(v->fake, "context"), ==, 1);
    }
}

/* The host's device goes in the middle of a command. */
static void test_device_gone_during_a_command(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    struct virtio_rdma_reg_user_mr_req req = verbs_reg_mr_req(pd);
    VerbsWaiting w;

    w = verbs_hold_cmd(v, "reg_mr_iova2", VIRTIO_RDMA_CMD_REG_USER_MR, &req,
                       sizeof(req), sizeof(struct virtio_rdma_mr_rsp));
    fake_verbs_tell(v->fake, "device gone");
    assert_status(verbs_release_cmd(&w), ERR);
    fake_verbs_tell(v->fake, "device back");
}

/* A QP of the host enters ERR by itself, and the guest gets an event. */
static void test_cq_overrun_of_the_host(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    fake_verbs_tell(v->fake, "event CQ_ERR 0x%x",
                    fake_verbs_newest(v->fake, "cq"));
    qrdma_expect_event(v->dev, RDMA_EVENT_CQ_ERR, p.cq_b->cqn);
    qrdma_expect_event(v->dev, RDMA_EVENT_QP_FATAL, p.b->qpn);
    verbs_restart(v);
}

const QRdmaTest verbs_event_tests[] = {
    { "qp", test_qp_events },
    { "cq-and-srq", test_cq_and_srq_events },
    { "port", test_port },
    { "of-a-qp-that-goes", test_event_of_a_qp_that_goes },
    { "completions-of-unknown-qps", test_completions_of_unknown_qps },
    { "completion-of-nothing", test_completion_of_nothing },
    { "completions-outlive-their-qp", test_completions_outlive_their_qp },
    { "completions-wait-for-the-vm", test_completions_wait_for_the_vm },
    { "events-wait-for-the-vm", test_events_wait_for_the_vm },
    { "device-gone-in-a-stopped-vm", test_device_gone_in_a_stopped_vm },
    { "cq-overrun-of-the-host", test_cq_overrun_of_the_host },
    { "device-gone", test_device_gone },
    { "device-gone-and-back", test_device_gone_and_back },
    { "device-gone-during-a-command", test_device_gone_during_a_command },
    {}
};
