/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: receives from a shared receive queue.
 */
#include "qemu/osdep.h"
#include "net-test.h"

#define RNR_CODE 12
#define RNR_NS 640000
#define LEN 5000
#define SLOTS 12

/* QPs of device 0 send to QPs of device 1, which share a queue. */
typedef struct Fan {
    NetPair p;
    QRdmaSrq *srq;
    QRdmaQp *from[2];
    QRdmaQp *to[2];
} Fan;

static Fan fan_new(NetKind kind, RdmaQpType type, uint32_t max_wr)
{
    Fan f = { .p = net_pair_new(net_shared(kind), type) };
    QRdmaPath path = { .min_rnr_timer = RNR_CODE, .timeout = 20 };
    RdmaQpInitAttr init = {
        .qp_type = type,
        .has_srq = true,
        .cap = { .max_send_wr = 32, .max_send_sge = 4 },
    };

    f.srq = qrdma_create_srq(f.p.b.pd, max_wr, 4);
    init.srqn = f.srq->srqn;
    f.from[0] = f.p.a.qp;
    f.from[1] = qrdma_create_qp(f.p.a.pd, f.p.a.scq, f.p.a.rcq, type);
    for (int i = 0; i < 2; i++) {
        f.to[i] = qrdma_create_qp_attr(f.p.b.pd, f.p.b.scq, f.p.b.rcq, &init);
        qrdma_bring_up(f.from[i], f.to[i], &path);
    }
    qrdma_add_event_buffers(f.p.b.dev, 8);
    return f;
}

/* Offset of the buffer of receive @n */
static uint64_t slot(unsigned n)
{
    return n % SLOTS * 8192;
}

static void post_recv(Fan *f, unsigned n)
{
    RdmaSge sge = net_sge(&f->p.b, slot(n), 8192);

    qrdma_srq_recv(f->srq, n, &sge);
}

/* Post a receive without a kick. */
static void post_recv_unkicked(Fan *f, unsigned n)
{
    RdmaSge sge = net_sge(&f->p.b, slot(n), 8192);
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_recv(&(RdmaRecvWr) {
        .wr_id = n, .num_sge = 1, .sg_list = &sge,
    }, wqe);

    qrdma_post_wqe(f->srq->dev, &f->srq->wq, wqe, len, 0, false);
}

static void post_send(Fan *f, int which, RdmaWrOpcode opcode, unsigned n,
                      uint32_t len)
{
    RdmaSge sge = net_sge(&f->p.a, 0, len);
    RdmaSendWr wr = qrdma_wr(opcode, n, &sge);

    if (f->from[which]->type == RDMA_QPT_UD) {
        wr.wr.ud.remote_qpn = f->to[which]->wire_qpn;
        wr.wr.ud.remote_qkey = QRDMA_QKEY;
        wr.wr.ud.av = qrdma_av(f->p.b.dev, n % 2);
    } else if (opcode == RDMA_WR_RDMA_WRITE_WITH_IMM) {
        wr.wr.rdma.remote_addr = f->p.b.mr->iova + slot(n);
        wr.wr.rdma.rkey = f->p.b.mr->rkey;
    }
    memcpy(wr.ex.imm_data, &n, 4);
    qrdma_mr_fill(f->p.a.mr, 0, len, n);
    qrdma_post_send(f->from[which], &wr);
}

static void expect(Fan *f, int which, RdmaWrOpcode opcode, unsigned n,
                   uint32_t len)
{
    uint32_t grh = f->from[which]->type == RDMA_QPT_UD ? 40 : 0;
    bool imm = opcode != RDMA_WR_SEND;
    RdmaWc wc;

    qrdma_expect(f->p.a.scq, n, RDMA_WC_SUCCESS);
    qrdma_expect_wc(f->p.b.rcq, n, opcode == RDMA_WR_RDMA_WRITE_WITH_IMM ?
                    RDMA_WC_RECV_RDMA_WITH_IMM : RDMA_WC_RECV, &wc);
    g_assert_cmphex(wc.wc_flags & RDMA_WC_WITH_IMM, ==,
                    imm ? RDMA_WC_WITH_IMM : 0);
    if (imm) {
        g_assert_cmpmem(wc.ex.imm_data, 4, &n, 4);
    }
    g_assert_cmpuint(wc.qp_num, ==, f->to[which]->qpn);
    g_assert_cmpuint(wc.byte_len, ==, grh + len);
    qrdma_mr_check(f->p.b.mr, slot(n) + grh, len, n);
}

static void test_two_qps_share(NetKind kind)
{
    Fan f = fan_new(kind, RDMA_QPT_RC, 8);

    for (unsigned n = 0; n < 40; n++) {
        /* alternate, and sometimes send twice */
        int which = n % 3 % 2;
        RdmaWrOpcode opcode = n % 2 ? RDMA_WR_SEND : RDMA_WR_SEND_WITH_IMM;

        post_recv(&f, n);
        post_send(&f, which, opcode, n, LEN + n);
        expect(&f, which, opcode, n, LEN + n);
    }
}

static void test_datagrams(NetKind kind)
{
    Fan f = fan_new(kind, RDMA_QPT_UD, 8);

    for (unsigned n = 0; n < 20; n++) {
        post_recv(&f, n);
        post_send(&f, n % 2, RDMA_WR_SEND, n, 900 + n);
        expect(&f, n % 2, RDMA_WR_SEND, n, 900 + n);
    }
    /* with none left a datagram is lost, and nothing else happens */
    post_send(&f, 0, RDMA_WR_SEND, 50, 8);
    qrdma_expect(f.p.a.scq, 50, RDMA_WC_SUCCESS);
    qrdma_settle(f.p.b.dev);
    post_recv(&f, 51);
    post_send(&f, 1, RDMA_WR_SEND, 51, 8);
    expect(&f, 1, RDMA_WR_SEND, 51, 8);
}

static void test_write_with_immediate_data(NetKind kind)
{
    Fan f = fan_new(kind, RDMA_QPT_RC, 8);

    for (unsigned n = 0; n < 10; n++) {
        post_recv(&f, n);
        post_send(&f, n % 2, RDMA_WR_RDMA_WRITE_WITH_IMM, n, LEN);
        expect(&f, n % 2, RDMA_WR_RDMA_WRITE_WITH_IMM, n, LEN);
    }
}

/* The sender waits until the other side has posted. */
static void test_empty_queue_is_not_ready(NetKind kind)
{
    Fan f = fan_new(kind, RDMA_QPT_RC, 8);
    RdmaWc wc;

    for (unsigned n = 0; n < 5; n++) {
        post_send(&f, n % 2, RDMA_WR_SEND, n, LEN);
        qrdma_expect_none(f.p.a.scq);
        net_clock_step(f.p.net, 2 * RNR_NS);
        qrdma_expect_none(f.p.a.scq);
        post_recv(&f, n);
        for (int i = 0; i < 100 && !qrdma_poll_cq(f.p.a.scq, &wc); i++) {
            net_clock_step(f.p.net, RNR_NS);
            qrdma_settle(f.p.a.dev);
        }
        g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
        qrdma_expect_wc(f.p.b.rcq, n, RDMA_WC_RECV, &wc);
        qrdma_mr_check(f.p.b.mr, slot(n), LEN, n);
    }
}

/* See test_ud_finds_receives_without_a_kick(). */
static void test_finds_receives_without_a_kick(NetKind kind)
{
    static const RdmaQpType types[] = { RDMA_QPT_RC, RDMA_QPT_UD };

    for (int i = 0; i < ARRAY_SIZE(types); i++) {
        Fan f = fan_new(kind, types[i], 8);

        for (unsigned n = 0; n < 3; n++) {
            post_recv_unkicked(&f, n);
            post_send(&f, n % 2, RDMA_WR_SEND, n, 1000);
            expect(&f, n % 2, RDMA_WR_SEND, n, 1000);
        }
    }
}

static void test_limit_event(NetKind kind)
{
    Fan f = fan_new(kind, RDMA_QPT_RC, 8);
    QRdma *d = f.p.b.dev;
    RdmaSrqAttr attr;

    for (unsigned n = 0; n < 8; n++) {
        post_recv(&f, n);
    }
    assert_ok(qrdma_modify_srq(f.srq, 7));
    for (unsigned n = 0; n < 8; n++) {
        qrdma_expect_no_event(d);
        post_send(&f, n % 2, RDMA_WR_SEND, n, 100);
        expect(&f, n % 2, RDMA_WR_SEND, n, 100);
        if (n == 1) {
            /* six are left: one event, and the limit is disarmed */
            qrdma_expect_event(d, RDMA_EVENT_SRQ_LIMIT_REACHED, f.srq->srqn);
            assert_ok(qrdma_query_srq(f.srq, &attr));
            g_assert_cmpuint(attr.limit, ==, 0);
        }
    }
    /* armed while the count is below the limit already */
    assert_ok(qrdma_modify_srq(f.srq, 3));
    qrdma_expect_event(d, RDMA_EVENT_SRQ_LIMIT_REACHED, f.srq->srqn);
    qrdma_expect_no_event(d);
}

/* WQEs in the virtqueue are posted, whether the device has seen them or not. */
static void test_limit_counts_receives_without_a_kick(NetKind kind)
{
    Fan f = fan_new(kind, RDMA_QPT_RC, 8);
    QRdma *d = f.p.b.dev;
    RdmaSrqAttr attr;

    for (unsigned n = 0; n < 4; n++) {
        post_recv_unkicked(&f, n);
    }
    assert_ok(qrdma_modify_srq(f.srq, 4));
    for (unsigned n = 0; n < 5; n++) {
        qrdma_expect_no_event(d);
        assert_ok(qrdma_query_srq(f.srq, &attr));
        g_assert_cmpuint(attr.limit, ==, 4);
        if (n < 4) {
            post_recv_unkicked(&f, 4 + n);
        }
        post_send(&f, n % 2, RDMA_WR_SEND, n, 100);
        expect(&f, n % 2, RDMA_WR_SEND, n, 100);
    }
    qrdma_expect_event(d, RDMA_EVENT_SRQ_LIMIT_REACHED, f.srq->srqn);
}

static void test_last_wqe_event(NetKind kind)
{
    Fan f = fan_new(kind, RDMA_QPT_RC, 8);

    post_recv(&f, 0);
    post_recv(&f, 1);
    post_send(&f, 0, RDMA_WR_SEND, 0, 100);
    expect(&f, 0, RDMA_WR_SEND, 0, 100);
    assert_ok(qrdma_modify_qp_state(f.to[0], RDMA_QPS_ERR));
    qrdma_expect_event(f.p.b.dev, RDMA_EVENT_LAST_WQE_REACHED,
                       f.to[0]->qpn);
    /* the SRQ is not flushed: the other QP goes on */
    qrdma_expect_none(f.p.b.rcq);
    post_send(&f, 1, RDMA_WR_SEND, 1, 100);
    expect(&f, 1, RDMA_WR_SEND, 1, 100);
    qrdma_expect_no_event(f.p.b.dev);
}

/* Break a rule for the queue of an SRQ that is in use. */
static void spoil(QRdmaSrq *srq)
{
    if (srq->wq.ring) {
        qrdma_ring_reset(srq->wq.ring);
        return;
    }
    qrdma_direct_set_producer(srq->dev, &srq->wq,
                              srq->wq.posted + srq->wq.depth + 1);
    qrdma_doorbell(srq->dev, QRDMA_DIRECT_DOORBELL, srq->wq.bell);
}

/* The SRQ and each of its QPs are in error, and take no more WQEs. */
static void test_spoilt_queue_is_an_event(NetKind kind)
{
    Fan f = fan_new(kind, RDMA_QPT_RC, 8);
    QRdma *d = f.p.b.dev;
    RdmaEvent event;
    unsigned fatal = 0, last = 0;

    spoil(f.srq);
    qrdma_expect_event(d, RDMA_EVENT_SRQ_ERR, f.srq->srqn);
    for (int i = 0; i < 4; i++) {
        qrdma_wait_until(d, qrdma_poll_event(d, &event));
        if (event.type == RDMA_EVENT_QP_FATAL) {
            fatal |= 1u << event.id;
        } else {
            g_assert_cmpint(event.type, ==, RDMA_EVENT_LAST_WQE_REACHED);
            last |= 1u << event.id;
        }
    }
    g_assert_cmphex(fatal, ==, 1u << f.to[0]->qpn | 1u << f.to[1]->qpn);
    g_assert_cmphex(last, ==, fatal);
    qrdma_expect_no_event(d);
}

const NetTest net_srq_tests[] = {
    { "srq/two-qps-share", test_two_qps_share },
    { "srq/datagrams", test_datagrams },
    { "srq/write-with-immediate-data", test_write_with_immediate_data },
    { "srq/finds-receives-without-a-kick", test_finds_receives_without_a_kick },
    { "srq/empty-queue-is-not-ready", test_empty_queue_is_not_ready },
    { "srq/limit-event", test_limit_event },
    { "srq/limit-counts-receives-without-a-kick",
      test_limit_counts_receives_without_a_kick },
    { "srq/last-wqe-event", test_last_wqe_event },
    { "srq/spoilt-queue-is-an-event", test_spoilt_queue_is_an_event },
    {}
};
