/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues of pvrdma, which processes have; and events.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"

#define MAX_WR 16
#define LEN 64
#define SET_LINK(up) "{'execute': 'set_link', 'arguments': " \
                     "{'name': 'n0', 'up': " up "}}"

static void post(PvEnd *e, QPvrdmaSrq *srq, uint64_t wr_id)
{
    PvrdmaSge sge = pv_sge(e, 0, LEN);

    qpvrdma_post_srq_recv(e->dev, srq, wr_id, &sge);
}

/* The QP of b has an SRQ. */
static PvPair pair_with_srq(QPvrdmaSrq *srq)
{
    PvPair p = { .host = pv_host_start("") };
    PvrdmaCmdCreateQp req = { .qp_type = RDMA_QPT_RC, .is_srq = 1 };
    PvrdmaCmdCreateSrq create = { .max_wr = MAX_WR, .max_sge = 1 };

    p.a = pv_end_new(pv_start(p.host, 4), 3, RDMA_QPT_RC);
    p.b = pv_end_new(pv_start(p.host, 5), 3, RDMA_QPT_RC);
    create.pd = p.b.pd;
    assert_done(qpvrdma_try_create_srq(p.b.dev, 3, &create, srq));
    req.pd = p.b.pd;
    req.send_cq = p.b.scq.handle;
    req.recv_cq = p.b.rcq.handle;
    req.srq = srq->handle;
    assert_done(qpvrdma_try_create_qp(p.b.dev, 3, &req, &p.b.qp));
    pv_connect(&p.a, &p.b);
    return p;
}

static void send_to(PvPair *p, uint64_t wr_id)
{
    pv_post(&p->a, RDMA_WR_SEND, 0, LEN, NULL);
    pv_expect(&p->a, &p->a.scq, 0, RDMA_WC_SUCCESS, RDMA_WC_SEND);
    pv_expect(&p->b, &p->b.rcq, wr_id, RDMA_WC_SUCCESS, RDMA_WC_RECV);
}

static void test_receive(void)
{
    QPvrdmaSrq srq;
    g_auto(PvPair) p = pair_with_srq(&srq);

    for (uint64_t i = 0; i < 2 * MAX_WR + 3; i++) {
        post(&p.b, &srq, i);
        send_to(&p, i);
    }
}

/* An SRQ that is destroyed makes room for another one. */
static void test_too_many(void)
{
    g_autoptr(QPvrdma) d = pv_start(
        pv_host_start("-global pvrdma.max-srq=2"), 4);
    PvrdmaCmdCreateSrq create = { .max_wr = MAX_WR, .max_sge = 1 };
    QPvrdmaSrq srq;

    qpvrdma_create_uc(d, 3);
    create.pd = qpvrdma_create_pd(d, 3);
    for (int i = 0; i < 4; i++) {
        PvrdmaCmdCreateSrq req = create;

        if (i == 2) {
            assert_fails(qpvrdma_try_create_srq(d, 3, &req, &srq));
            assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_SRQ, srq.handle));
        } else {
            assert_done(qpvrdma_try_create_srq(d, 3, &req, &srq));
        }
    }
}

static void test_limit(void)
{
    QPvrdmaSrq srq;
    g_auto(PvPair) p = pair_with_srq(&srq);
    PvrdmaCmdModifySrq req = {
        .handle = srq.handle, .mask = PVRDMA_SRQ_LIMIT, .limit = 2,
    };
    PvrdmaCmdHandle query = { .handle = srq.handle };
    PvrdmaRspQuerySrq rsp;

    for (uint64_t i = 0; i < 2; i++) {
        post(&p.b, &srq, i);
    }
    assert_done(qpvrdma_cmd(p.b.dev, PVRDMA_CMD_MODIFY_SRQ, &req, sizeof(req),
                            NULL, 0));
    assert_done(qpvrdma_call(p.b.dev, QUERY_SRQ, &query, &rsp));
    g_assert_cmpint(rsp.limit, ==, 2);
    g_assert_cmpint(rsp.max_wr, ==, MAX_WR);
    send_to(&p, 0);
    pv_expect_event(p.b.dev, RDMA_EVENT_SRQ_LIMIT_REACHED, srq.handle);
    qrdma_wait_until(p.b.dev, qpvrdma_interrupted(p.b.dev,
                                                  PVRDMA_VECTOR_EVENT));
}

/* The port follows the link of the netdev. */
static void test_port_event(void)
{
    g_autoptr(QPvrdma) d = pv_alone();

    qtest_qmp_assert_success(d->host->qts, SET_LINK("false"));
    pv_expect_event(d, RDMA_EVENT_PORT_ERR, 1);
}

/* An event waits while IMR masks its vector. */
static void test_masked_event(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    PvrdmaEvent event;

    qpvrdma_write(d, PVRDMA_REG_IMR, 0xffffffff);
    qtest_qmp_assert_success(d->host->qts, SET_LINK("false"));
    qrdma_host_settle(d->host);
    g_assert_false(qpvrdma_ring_pop(d, &d->events, &event));
    qpvrdma_write(d, PVRDMA_REG_IMR, 0);
    pv_expect_event(d, RDMA_EVENT_PORT_ERR, 1);
}

/* The ring of events behaves as one of 512 entries, not of 1536. */
static void test_event_laps(void)
{
    g_autoptr(QPvrdma) d = pv_alone();

    g_assert_cmpint(d->events.size, ==, 512);
    for (int i = 0; i < 1030; i++) {
        qtest_qmp_assert_success(d->host->qts, i % 2 ? SET_LINK("true")
                                                     : SET_LINK("false"));
        pv_expect_event(d, i % 2 ? RDMA_EVENT_PORT_ACTIVE
                                 : RDMA_EVENT_PORT_ERR, 1);
    }
}

const QRdmaTest pvrdma_srq_tests[] = {
    { "receive", test_receive },
    { "too-many", test_too_many },
    { "limit", test_limit },
    { "port-event", test_port_event },
    { "masked-event", test_masked_event },
    { "event-laps", test_event_laps },
    { }
};
