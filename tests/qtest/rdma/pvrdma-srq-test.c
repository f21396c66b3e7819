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
    g_assert_cmpint(qpvrdma_try_create_srq(p.b.dev, 3, &create, srq), ==, 0);
    req.pd = p.b.pd;
    req.send_cq = p.b.scq.handle;
    req.recv_cq = p.b.rcq.handle;
    req.srq = srq->handle;
    g_assert_cmpint(qpvrdma_try_create_qp(p.b.dev, 3, &req, &p.b.qp), ==, 0);
    pv_end_init(&p.a);
    pv_end_init(&p.b);
    pv_end_connect(&p.a, &p.b);
    pv_end_connect(&p.b, &p.a);
    return p;
}

static void send_to(PvPair *p, uint64_t wr_id)
{
    PvrdmaSge sge = pv_sge(&p->a, 0, LEN);

    qpvrdma_post_send(p->a.dev, &p->a.qp,
                      &(PvrdmaSendWqe) {
                          .num_sge = 1,
                          .opcode = RDMA_WR_SEND,
                      }, &sge);
    pv_expect(&p->b, &p->b.rcq, wr_id, RDMA_WC_SUCCESS, RDMA_WC_RECV);
}

static void test_receive(void)
{
    QPvrdmaSrq srq;
    PvPair p = pair_with_srq(&srq);

    for (uint64_t i = 0; i < 2 * MAX_WR + 3; i++) {
        post(&p.b, &srq, i);
        send_to(&p, i);
    }
    pv_pair_free(&p);
}

static bool next_event(PvEnd *e, PvrdmaEvent *event)
{
    return qpvrdma_ring_pop(e->dev, &e->dev->events, event);
}

static void test_limit(void)
{
    QPvrdmaSrq srq;
    PvPair p = pair_with_srq(&srq);
    PvrdmaCmdModifySrq req = {
        .handle = srq.handle, .mask = PVRDMA_SRQ_LIMIT, .limit = 2,
    };
    PvrdmaCmdHandle query = { .handle = srq.handle };
    PvrdmaRspQuerySrq rsp;
    PvrdmaEvent event;

    for (uint64_t i = 0; i < 2; i++) {
        post(&p.b, &srq, i);
    }
    g_assert_cmpint(qpvrdma_cmd(p.b.dev, PVRDMA_CMD_MODIFY_SRQ, &req,
                                sizeof(req), NULL, 0), ==, 0);
    g_assert_cmpint(qpvrdma_cmd(p.b.dev, PVRDMA_CMD_QUERY_SRQ, &query,
                                sizeof(query), &rsp, sizeof(rsp)), ==, 0);
    g_assert_cmpint(rsp.limit, ==, 2);
    g_assert_cmpint(rsp.max_wr, ==, MAX_WR);
    send_to(&p, 0);
    qrdma_wait_until(p.b.dev, next_event(&p.b, &event));
    g_assert_cmpint(event.type, ==, RDMA_EVENT_SRQ_LIMIT_REACHED);
    g_assert_cmpint(event.info, ==, srq.handle);
    qrdma_wait_until(p.b.dev, qpvrdma_interrupted(p.b.dev,
                                                  PVRDMA_VECTOR_EVENT));
    pv_pair_free(&p);
}

/* The port follows the link of the netdev. */
static void test_port_event(void)
{
    QRdmaHost *host = pv_host_start("");
    PvEnd e = { .dev = pv_start(host, 4) };
    PvrdmaEvent event;

    qtest_qmp_assert_success(host->qts, SET_LINK("false"));
    qrdma_wait_until(e.dev, next_event(&e, &event));
    g_assert_cmpint(event.type, ==, RDMA_EVENT_PORT_ERR);
    g_assert_cmpint(event.info, ==, 1);
    qpvrdma_close(e.dev);
    qrdma_host_stop(host);
}

/* The ring of events behaves as one of 512 entries, not of 1536. */
static void test_event_laps(void)
{
    QRdmaHost *host = pv_host_start("");
    PvEnd e = { .dev = pv_start(host, 4) };
    PvrdmaEvent event;

    g_assert_cmpint(e.dev->events.size, ==, 512);
    for (int i = 0; i < 1030; i++) {
        qtest_qmp_assert_success(host->qts, i % 2 ? SET_LINK("true")
                                                  : SET_LINK("false"));
        qrdma_wait_until(e.dev, next_event(&e, &event));
        g_assert_cmpint(event.type, ==, i % 2 ? RDMA_EVENT_PORT_ACTIVE
                                              : RDMA_EVENT_PORT_ERR);
    }
    qpvrdma_close(e.dev);
    qrdma_host_stop(host);
}

const QRdmaTest pvrdma_srq_tests[] = {
    { "receive", test_receive },
    { "limit", test_limit },
    { "port-event", test_port_event },
    { "event-laps", test_event_laps },
    { }
};
