/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues: which message takes which WQE, the behaviour without a
 * WQE, and events.
 */
#include <errno.h>
#include <string.h>
#include "roce-link.h"
#include "rdma/roce-state.h"

#define SRQ_PDN 11                  /* not the PD of the QPs */
#define GRH 40
/* More bytes than are sent before the first acknowledgement */
#define LONG 40000

/* Two pairs of QPs. The QPs of node b use its SRQ. */
typedef struct Fix {
    LinkPair p;
    uint32_t aq[2];
    uint32_t bq[2];
    LinkMr *recv;                   /* of b, in the SRQ's PD */
} Fix;

static Fix fix_of(RdmaQpType type, uint32_t max_wr)
{
    LinkQpSpec spec = link_spec();
    Fix f = { .aq = { 2, 4 }, .bq = { 3, 5 } };

    spec.type = type;
    spec.mtu = RDMA_MTU_256;
    spec.min_rnr_timer = 5;
    f.p = (LinkPair) { .l = link_new(1), .aq = 2, .bq = 3 };
    f.p.a = &f.p.l->node[0];
    f.p.b = &f.p.l->node[1];
    link_srq(f.p.b, max_wr, SRQ_PDN);
    spec.srq[1] = true;
    link_connect(f.p.l, &spec);
    spec.qpn[0] = 4;
    spec.qpn[1] = 5;
    link_connect(f.p.l, &spec);
    f.p.amr = link_mr(f.p.a, LINK_PAIR_MEM, LINK_ALL_ACCESS);
    f.p.bmr = link_mr(f.p.b, LINK_PAIR_MEM, LINK_ALL_ACCESS);
    f.recv = link_mr_pd(f.p.b, LINK_PAIR_MEM, RDMA_ACCESS_LOCAL_WRITE,
                        SRQ_PDN);
    link_fill(f.p.amr, 1);
    return f;
}

static Fix fix_new(void)
{
    return fix_of(RDMA_QPT_RC, 8);
}

static void fix_free(Fix *f)
{
    link_mr_free(f->recv);
    link_pair_free(&f->p);
}

static void recv_wqe(Fix *f, uint64_t wr_id, size_t off, uint32_t len)
{
    link_post_srq_silently(f->p.b, wr_id, link_sge(f->recv, off, len));
}

/* The number of WQEs that no message has taken */
static unsigned waiting(Fix *f)
{
    RdmaInspection in;

    g_assert_cmpint(roce_inspect(f->p.b->e, RDMA_OBJECT_SRQ, LINK_SRQ, &in),
                    ==, 0);
    g_assert_cmpuint(in.srq.recvs, <=, 1);
    return in.srq.recvs + consumer_recvs(f->p.b->consumer, RDMA_SRQ, LINK_SRQ);
}

static void post(Fix *f, unsigned which, uint32_t opcode, uint64_t wr_id,
                 size_t off, uint32_t len)
{
    RdmaSge sge = link_sge(f->p.amr, off, len);
    RdmaSendWr wr = link_wr(opcode, wr_id, &sge);

    if (opcode == RDMA_WR_RDMA_WRITE_WITH_IMM) {
        wr.wr.rdma.remote_addr = f->p.bmr->attr.iova + off;
        wr.wr.rdma.rkey = f->p.bmr->attr.rkey;
    }
    link_post(f->p.a, f->aq[which], &wr);
}

/* QP @which of node b completes @wr_id. */
static RdmaWc expect_recv(Fix *f, unsigned which, uint64_t wr_id,
                          RdmaWcStatus status)
{
    LinkWc entry = link_wc(f->p.b);

    g_assert_cmpuint(entry.wc.wr_id, ==, wr_id);
    g_assert_cmpint(entry.wc.status, ==, status);
    g_assert_cmpuint(entry.wc.qp_num, ==, f->bq[which]);
    g_assert_cmpuint(entry.cqn, ==, LINK_RECV_CQ(f->bq[which]));
    return entry.wc;
}

static unsigned events_of(LinkNode *n, RdmaEventType type, uint32_t id)
{
    unsigned i, count = 0;

    for (i = 0; i < n->events->len; i++) {
        const RdmaEvent *event = &g_array_index(n->events, RdmaEvent, i);

        count += event->type == type && event->id == id;
    }
    return count;
}

static void run(Fix *f)
{
    g_assert_true(link_run(f->p.l, LINK_FOREVER));
}

/* QPs with an SRQ never retire receive WQEs. */
static void check_not_retired(Fix *f)
{
    g_assert_cmpuint(f->p.b->retired[f->bq[0]][RDMA_RQ], ==, 0);
    g_assert_cmpuint(f->p.b->retired[f->bq[1]][RDMA_RQ], ==, 0);
}

static void test_create(void)
{
    RoceLink *l = link_new(1);
    RoceEngine *e = l->node[0].e;
    RdmaSrqAttr attr = { .srqn = 1, .pdn = 7, .max_wr = 3, .max_sge = 2,
                         .limit = 3 };
    RdmaSrqAttr bad = attr, got;

    bad.srqn = LINK_MAX_SRQ;
    g_assert_cmpint(roce_srq_create(e, &bad), ==, -EINVAL);
    bad = attr;
    bad.max_wr = 0;
    g_assert_cmpint(roce_srq_create(e, &bad), ==, -EINVAL);
    bad.max_wr = ROCE_MAX_WR + 1;
    g_assert_cmpint(roce_srq_create(e, &bad), ==, -EINVAL);
    bad = attr;
    bad.limit = 4;
    g_assert_cmpint(roce_srq_create(e, &bad), ==, -EINVAL);

    g_assert_cmpint(roce_srq_query(e, 1, &got), ==, -ENOENT);
    g_assert_cmpint(roce_srq_set_limit(e, 1, 1), ==, -ENOENT);
    g_assert_cmpint(roce_srq_destroy(e, 1), ==, -ENOENT);
    g_assert_cmpint(roce_srq_create(e, &attr), ==, 0);
    g_assert_cmpint(roce_srq_create(e, &attr), ==, -EEXIST);
    g_assert_cmpint(roce_srq_query(e, 1, &got), ==, 0);
    g_assert_cmpmem(&got, sizeof(got), &attr, sizeof(attr));
    g_assert_cmpint(roce_srq_set_limit(e, 1, 4), ==, -EINVAL);
    /* roce_srq_create() with a limit raises no event. */
    g_assert_cmpuint(l->node[0].events->len, ==, 0);
    g_assert_cmpint(roce_srq_destroy(e, 1), ==, 0);
    g_assert_cmpint(roce_srq_create(e, &attr), ==, 0);
    roce_reset(e);
    g_assert_cmpint(roce_srq_query(e, 1, &got), ==, -ENOENT);
    link_free(l);
}

static void test_qp_has_no_queue_of_its_own(void)
{
    Fix f = fix_new();
    RoceEngine *e = f.p.b->e;
    RdmaQpInitAttr init = {
        .qpn = 9, .pdn = LINK_PDN, .qp_type = RDMA_QPT_UD, .has_srq = true,
        .srqn = LINK_SRQ, .cap = { 1, 1, 1, 1, 0 },
    };
    RdmaQpAttr attr;

    g_assert_cmpint(roce_qp_query(e, f.bq[0], &attr), ==, 0);
    g_assert_cmpuint(attr.cap.max_recv_wr, ==, 0);
    g_assert_cmpuint(attr.cap.max_recv_sge, ==, 0);

    g_assert_cmpint(roce_srq_destroy(e, LINK_SRQ), ==, -EBUSY);
    init.srqn = 1;
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EINVAL);
    init.srqn = LINK_SRQ;
    init.qp_type = RDMA_QPT_GSI;
    init.qpn = RDMA_QPN_GSI;
    g_assert_cmpint(roce_qp_create(e, &init), ==, -EINVAL);
    g_assert_cmpint(roce_qp_destroy(e, f.bq[0]), ==, 0);
    g_assert_cmpint(roce_srq_destroy(e, LINK_SRQ), ==, -EBUSY);
    g_assert_cmpint(roce_qp_destroy(e, f.bq[1]), ==, 0);
    g_assert_cmpint(roce_srq_destroy(e, LINK_SRQ), ==, 0);
    fix_free(&f);
}

/* A message keeps the WQE that it took, whatever arrives in between. */
static void test_messages_take_wqes_as_they_begin(void)
{
    Fix f = fix_new();
    unsigned i;

    for (i = 0; i < 3; i++) {
        recv_wqe(&f, 50 + i, i * LONG, LONG);
    }
    post(&f, 0, RDMA_WR_SEND, 1, 0, LONG);
    link_pump(f.p.l);
    post(&f, 1, RDMA_WR_SEND, 2, 40000, 100);
    post(&f, 1, RDMA_WR_SEND_WITH_IMM, 3, 50000, 200);
    run(&f);

    g_assert_cmpuint(expect_recv(&f, 1, 51, RDMA_WC_SUCCESS).byte_len, ==,
                     100);
    g_assert_cmpuint(expect_recv(&f, 1, 52, RDMA_WC_SUCCESS).wc_flags, ==,
                     RDMA_WC_WITH_IMM);
    g_assert_cmpuint(expect_recv(&f, 0, 50, RDMA_WC_SUCCESS).byte_len, ==,
                     LONG);
    g_assert_true(link_same(f.p.amr, 0, f.recv, 0, LONG));
    g_assert_true(link_same(f.p.amr, 40000, f.recv, LONG, 100));
    g_assert_true(link_same(f.p.amr, 50000, f.recv, 2 * LONG, 200));
    g_assert_cmpuint(waiting(&f), ==, 0);
    check_not_retired(&f);
    fix_free(&f);
}

static void test_empty_answers_rnr_nak(void)
{
    Fix f = fix_new();

    post(&f, 0, RDMA_WR_SEND, 1, 0, 3000);
    link_run(f.p.l, LINK_MS);
    g_assert_cmpuint(roce_stats(f.p.b->e)->rnr_naks_sent, >=, 1);
    g_assert_cmpuint(link_wcs(f.p.a), ==, 0);
    recv_wqe(&f, 50, 0, 3000);
    run(&f);
    expect_recv(&f, 0, 50, RDMA_WC_SUCCESS);
    link_expect(f.p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(f.p.amr, 0, f.recv, 0, 3000));
    fix_free(&f);
}

/* A WRITE takes a WQE only when its immediate data arrives. */
static void test_write_with_imm_takes_one_at_its_end(void)
{
    Fix f = fix_new();
    RdmaWc wc;

    post(&f, 0, RDMA_WR_RDMA_WRITE_WITH_IMM, 1, 0, 5000);
    link_run(f.p.l, LINK_MS);
    g_assert_true(link_same(f.p.amr, 0, f.p.bmr, 0, 4096));
    g_assert_cmpuint(roce_stats(f.p.b->e)->rnr_naks_sent, >=, 1);
    recv_wqe(&f, 50, 0, 0);
    run(&f);
    wc = expect_recv(&f, 0, 50, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==, RDMA_WC_RECV_RDMA_WITH_IMM);
    g_assert_cmpuint(wc.byte_len, ==, 5000);
    g_assert_true(link_same(f.p.amr, 0, f.p.bmr, 0, 5000));
    fix_free(&f);
}

static void test_limit_event_comes_once(void)
{
    Fix f = fix_new();
    RdmaSrqAttr attr;
    unsigned i;

    for (i = 0; i < 6; i++) {
        recv_wqe(&f, 50 + i, 0, 100);
    }
    g_assert_cmpint(roce_srq_set_limit(f.p.b->e, LINK_SRQ, 4), ==, 0);
    for (i = 0; i < 2; i++) {
        post(&f, i, RDMA_WR_SEND, 1, 0, 10);
        run(&f);
    }
    g_assert_cmpuint(f.p.b->events->len, ==, 0);
    g_assert_cmpint(roce_srq_query(f.p.b->e, LINK_SRQ, &attr), ==, 0);
    g_assert_cmpuint(attr.limit, ==, 4);
    for (i = 0; i < 2; i++) {
        post(&f, i, RDMA_WR_SEND, 1, 0, 10);
        run(&f);
        g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_SRQ_LIMIT_REACHED,
                                   LINK_SRQ), ==, 1);
        g_assert_cmpint(roce_srq_query(f.p.b->e, LINK_SRQ, &attr), ==, 0);
        g_assert_cmpuint(attr.limit, ==, 0);
    }
    /* Two WQEs are left, so the event is raised at once. */
    g_assert_cmpint(roce_srq_set_limit(f.p.b->e, LINK_SRQ, 2), ==, 0);
    g_assert_cmpuint(f.p.b->events->len, ==, 1);
    g_assert_cmpint(roce_srq_set_limit(f.p.b->e, LINK_SRQ, 3), ==, 0);
    g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_SRQ_LIMIT_REACHED,
                               LINK_SRQ), ==, 2);
    g_assert_cmpuint(f.p.b->events->len, ==, 2);
    fix_free(&f);
}

/* In ERR a QP flushes the WQE of its incomplete message, and no other one. */
static void test_err_flushes_the_taken_wqe(void)
{
    Fix f = fix_new();

    recv_wqe(&f, 50, 0, LONG);
    recv_wqe(&f, 51, 0, LONG);
    post(&f, 0, RDMA_WR_SEND, 1, 0, LONG);
    link_run(f.p.l, LINK_DELAY + 1);
    g_assert_cmpuint(waiting(&f), ==, 1);
    link_modify(f.p.b, f.bq[0], RDMA_QPS_ERR);
    expect_recv(&f, 0, 50, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_LAST_WQE_REACHED, f.bq[0]),
                     ==, 1);
    link_run(f.p.l, LINK_MS);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    g_assert_cmpuint(waiting(&f), ==, 1);

    post(&f, 1, RDMA_WR_SEND, 2, 0, 100);
    link_run(f.p.l, LINK_MS);
    expect_recv(&f, 1, 51, RDMA_WC_SUCCESS);
    /* Another QP, which has taken no WQE */
    link_modify(f.p.b, f.bq[1], RDMA_QPS_ERR);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_LAST_WQE_REACHED, f.bq[1]),
                     ==, 1);
    link_modify(f.p.b, f.bq[1], RDMA_QPS_ERR);
    g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_LAST_WQE_REACHED, f.bq[1]),
                     ==, 1);
    check_not_retired(&f);
    fix_free(&f);
}

static void test_reset_and_destruction_drop_the_taken_wqe(void)
{
    Fix f = fix_new();
    unsigned i;

    for (i = 0; i < 2; i++) {
        recv_wqe(&f, 50 + i, 0, LONG);
        post(&f, i, RDMA_WR_SEND, 1, 0, LONG);
    }
    link_run(f.p.l, LINK_DELAY + 1);
    g_assert_cmpuint(waiting(&f), ==, 0);
    link_modify(f.p.b, f.bq[0], RDMA_QPS_RESET);
    g_assert_cmpint(roce_qp_destroy(f.p.b->e, f.bq[1]), ==, 0);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    g_assert_cmpuint(f.p.b->events->len, ==, 0);
    check_not_retired(&f);
    fix_free(&f);
}

static void test_keys_are_of_the_srqs_pd(void)
{
    Fix f = fix_new();

    link_post_srq_silently(f.p.b, 50, link_sge(f.p.bmr, 0, 100));
    post(&f, 0, RDMA_WR_SEND, 1, 0, 100);
    run(&f);
    expect_recv(&f, 0, 50, RDMA_WC_LOC_PROT_ERR);
    link_expect(f.p.a, 1, RDMA_WC_REM_OP_ERR);
    g_assert_cmpint(link_state(f.p.b, f.bq[0]), ==, RDMA_QPS_ERR);
    g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_LAST_WQE_REACHED, f.bq[0]),
                     ==, 1);
    fix_free(&f);
}

static void test_too_short(void)
{
    Fix f = fix_new();

    recv_wqe(&f, 50, 0, 1500);
    recv_wqe(&f, 51, 0, 1500);
    post(&f, 0, RDMA_WR_SEND, 1, 0, 1501);
    run(&f);
    expect_recv(&f, 0, 50, RDMA_WC_LOC_LEN_ERR);
    link_expect(f.p.a, 1, RDMA_WC_REM_INV_REQ_ERR);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    post(&f, 1, RDMA_WR_SEND, 1, 0, 1500);
    run(&f);
    expect_recv(&f, 1, 51, RDMA_WC_SUCCESS);
    fix_free(&f);
}

static void test_bad_wqe_fails_where_it_is_taken(void)
{
    Fix f = fix_new();
    RdmaSge sges[5] = { { 0 } };
    RdmaRecvWr wr = { .wr_id = 50, .num_sge = 5, .sg_list = sges };

    consumer_post_srq_recv(f.p.b->consumer, LINK_SRQ, &wr);
    wr = (RdmaRecvWr) { .wr_id = 51, .status = RDMA_WC_LOC_QP_OP_ERR };
    consumer_post_srq_recv(f.p.b->consumer, LINK_SRQ, &wr);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    post(&f, 1, RDMA_WR_SEND, 1, 0, 10);
    run(&f);
    expect_recv(&f, 1, 50, RDMA_WC_LOC_QP_OP_ERR);
    post(&f, 0, RDMA_WR_RDMA_WRITE_WITH_IMM, 1, 0, 10);
    run(&f);
    expect_recv(&f, 0, 51, RDMA_WC_LOC_QP_OP_ERR);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    fix_free(&f);
}

static void test_failed_cq(void)
{
    Fix f = fix_new();

    recv_wqe(&f, 50, 0, 100);
    f.p.b->cq_room[LINK_RECV_CQ(f.bq[0])] = 0;
    post(&f, 0, RDMA_WR_SEND, 1, 0, 10);
    run(&f);
    g_assert_cmpint(link_state(f.p.b, f.bq[0]), ==, RDMA_QPS_ERR);
    g_assert_cmpint(link_state(f.p.b, f.bq[1]), ==, RDMA_QPS_RTS);
    g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_LAST_WQE_REACHED, f.bq[0]),
                     ==, 1);
    g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_QP_FATAL, f.bq[0]), ==, 1);
    fix_free(&f);
}

/* UC */

static bool lose_second(RoceLink *l, unsigned from, const uint8_t *frame,
                        size_t len, void *opaque)
{
    return ++*(unsigned *)opaque != 2;
}

static void test_uc_message_that_breaks_off(void)
{
    Fix f = fix_of(RDMA_QPT_UC, 8);
    unsigned nth = 0;

    /* Without a WQE, the message is dropped. */
    post(&f, 0, RDMA_WR_SEND, 1, 0, 100);
    run(&f);
    link_expect(f.p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(f.p.b->events->len, ==, 0);

    recv_wqe(&f, 50, 0, 4000);
    recv_wqe(&f, 51, 8192, 4000);
    f.p.l->filter = lose_second;
    f.p.l->filter_opaque = &nth;
    post(&f, 0, RDMA_WR_SEND, 1, 0, 4000);
    run(&f);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    /* The other QP takes the next WQE; this one keeps its own. */
    post(&f, 1, RDMA_WR_SEND, 2, 4000, 3000);
    run(&f);
    expect_recv(&f, 1, 51, RDMA_WC_SUCCESS);
    g_assert_true(link_same(f.p.amr, 4000, f.recv, 8192, 3000));
    post(&f, 0, RDMA_WR_SEND_WITH_IMM, 3, 8000, 4000);
    run(&f);
    g_assert_cmpuint(expect_recv(&f, 0, 50, RDMA_WC_SUCCESS).byte_len, ==,
                     4000);
    g_assert_true(link_same(f.p.amr, 8000, f.recv, 0, 4000));
    fix_free(&f);
}

static void test_uc_too_short_stays(void)
{
    Fix f = fix_of(RDMA_QPT_UC, 8);

    recv_wqe(&f, 50, 0, 1100);
    post(&f, 0, RDMA_WR_SEND, 1, 0, 3000);
    post(&f, 0, RDMA_WR_SEND, 2, 3000, 1100);
    run(&f);
    expect_recv(&f, 0, 50, RDMA_WC_SUCCESS);
    g_assert_true(link_same(f.p.amr, 3000, f.recv, 0, 1100));
    g_assert_cmpint(link_state(f.p.b, f.bq[0]), ==, RDMA_QPS_RTS);
    fix_free(&f);
}

/* UD */

static void post_ud(Fix *f, unsigned which, uint64_t wr_id, size_t off,
                    uint32_t len)
{
    RdmaSge sge = link_sge(f->p.amr, off, len);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, wr_id, &sge);

    wr.wr.ud.remote_qpn = f->bq[which];
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(f->p.a, f->p.b, false);
    link_post(f->p.a, f->aq[which], &wr);
    run(f);
    link_expect(f->p.a, wr_id, RDMA_WC_SUCCESS);
}

static void test_ud(void)
{
    Fix f = fix_of(RDMA_QPT_UD, 8);

    post_ud(&f, 0, 1, 0, 100);
    recv_wqe(&f, 50, 0, 99 + GRH);
    recv_wqe(&f, 51, 8192, 100 + GRH);
    /*
     * The datagram is one byte too long for the first WQE, which the SRQ keeps.
     */
    post_ud(&f, 0, 2, 0, 100);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    g_assert_cmpuint(waiting(&f), ==, 2);
    post_ud(&f, 1, 3, 0, 99);
    g_assert_cmpuint(expect_recv(&f, 1, 50, RDMA_WC_SUCCESS).byte_len, ==,
                     99 + GRH);
    g_assert_true(link_same(f.p.amr, 0, f.recv, GRH, 99));
    post_ud(&f, 0, 4, 200, 100);
    expect_recv(&f, 0, 51, RDMA_WC_SUCCESS);
    g_assert_true(link_same(f.p.amr, 200, f.recv, 8192 + GRH, 100));

    link_modify(f.p.b, f.bq[0], RDMA_QPS_ERR);
    g_assert_cmpuint(events_of(f.p.b, RDMA_EVENT_LAST_WQE_REACHED, f.bq[0]),
                     ==, 1);
    recv_wqe(&f, 52, 0, 200);
    post_ud(&f, 0, 5, 0, 10);
    g_assert_cmpuint(link_wcs(f.p.b), ==, 0);
    g_assert_cmpuint(waiting(&f), ==, 1);
    check_not_retired(&f);
    fix_free(&f);
}

/* Imported state */

static void refuse_srq(const RoceSrqImage *image, const char *text)
{
    static const RdmaSrqAttr most = { .max_wr = 8, .max_sge = 4 };
    RoceEngine *e = roce_new(&link_config, &link_ops, NULL);
    g_autofree char *why = NULL;
    int ret = roce_import_srq(e, image, &most, &why);

    g_assert_cmpint(ret, ==, text ? -EINVAL : 0);
    g_assert_cmpstr(why, ==, text);
    g_assert_true(roce_has_srq(e, image->attr.srqn) == !text);
    roce_free(e);
}

static void test_refuse_bad_srq(void)
{
    Fix f = fix_of(RDMA_QPT_UD, 8);
    RoceSrqImage good, image;

    /* If a datagram does not fit into a WQE, the SRQ keeps the WQE. */
    recv_wqe(&f, 50, 0, 100);
    post_ud(&f, 0, 1, 0, 100);
    g_assert_cmpint(roce_export_srq(f.p.b->e, 1, &good), ==, -ENOENT);
    g_assert_cmpint(roce_export_srq(f.p.b->e, LINK_SRQ, &good), ==, 0);
    refuse_srq(&good, NULL);

#define REFUSE(change, text) do {               \
        image = good;                           \
        change;                                 \
        refuse_srq(&image, text);               \
    } while (0)

    REFUSE(image.attr.max_wr = 9, "max_wr 9 exceeds 8");
    REFUSE(image.attr.max_sge = 5, "max_sge 5 exceeds 4");
    REFUSE(image.n_recv = 2, "n_recv 2 exceeds 1");
    REFUSE(image.attr.max_sge = 0,
           "receive request 0: num_sge 1 exceeds 0");
    REFUSE(image.n_recv = 0,
           "n_recv_sges 1 is not 0, the sum of num_sge");
    REFUSE(image.attr.limit = 9, "limit 9 exceeds max_wr 8");
    REFUSE(image.attr.srqn = LINK_MAX_SRQ, "srqn 4 is not below 4");
    good.recv[0].status = RDMA_WC_GENERAL_ERR + 1;
    refuse_srq(&good, "receive request 0: status 22 exceeds 21");
#undef REFUSE
    roce_srq_image_clear(&good);
    fix_free(&f);
}

static void refuse_qp(Fix *f, const RoceQpImage *image, bool srq,
                      const char *text)
{
    static const RdmaSrqAttr most = { .max_wr = 8, .max_sge = 4 };
    static const RdmaQpCap cap = { 64, 64, 80, 80, 3000 };
    RoceEngine *e = roce_new(&link_config, &link_ops, f->p.b);
    g_autofree char *why = NULL;
    RoceSrqImage s;
    int ret;

    roce_set_link_mtu(e, 4200);
    if (srq) {
        g_assert_cmpint(roce_export_srq(f->p.b->e, LINK_SRQ, &s), ==, 0);
        g_assert_cmpint(roce_import_srq(e, &s, &most, &why), ==, 0);
        roce_srq_image_clear(&s);
    }
    ret = roce_import_qp(e, image, &cap, &why);
    g_assert_cmpint(ret, ==, text ? -EINVAL : 0);
    g_assert_cmpstr(why, ==, text);
    roce_free(e);
}

static void test_refuse_bad_qp(void)
{
    Fix f = fix_new();
    RoceQpImage image;

    /* During a message */
    recv_wqe(&f, 50, 0, LONG);
    post(&f, 0, RDMA_WR_SEND, 1, 0, LONG);
    link_run(f.p.l, LINK_DELAY + 1);
    g_assert_cmpint(roce_export_qp(f.p.b->e, f.bq[0], &image), ==, 0);
    g_assert_cmpuint(image.n_recv, ==, 1);
    refuse_qp(&f, &image, true, NULL);
    refuse_qp(&f, &image, false, "srqn 2 is not a shared receive queue");
    image.init.cap.max_recv_wr = 1;
    refuse_qp(&f, &image, true, "max_recv_wr 1 is not 0, but there is an SRQ");
    image.init.cap.max_recv_wr = 0;
    image.init.qp_type = RDMA_QPT_UD;
    refuse_qp(&f, &image, true, "receive queue from cons 0 to prod 1 has 1 "
              "requests, which exceeds 0");
    image.init.qp_type = RDMA_QPT_RC;
    image.init.has_srq = false;
    refuse_qp(&f, &image, true, "receive queue from cons 0 to prod 1 has 1 "
              "requests, which exceeds 0");
    image.init.has_srq = true;
    image.recv[0].num_sge = 5;
    refuse_qp(&f, &image, true, "receive request 0: num_sge 5 exceeds 4");
    roce_qp_image_clear(&image);
    fix_free(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/srq/create", test_create);
    g_test_add_func("/roce/srq/qp-has-no-queue-of-its-own",
                    test_qp_has_no_queue_of_its_own);
    g_test_add_func("/roce/srq/messages-take-wqes-as-they-begin",
                    test_messages_take_wqes_as_they_begin);
    g_test_add_func("/roce/srq/empty-answers-rnr-nak",
                    test_empty_answers_rnr_nak);
    g_test_add_func("/roce/srq/write-with-imm-takes-one-at-its-end",
                    test_write_with_imm_takes_one_at_its_end);
    g_test_add_func("/roce/srq/limit-event-comes-once",
                    test_limit_event_comes_once);
    g_test_add_func("/roce/srq/err-flushes-the-taken-wqe",
                    test_err_flushes_the_taken_wqe);
    g_test_add_func("/roce/srq/reset-and-destruction-drop-the-taken-wqe",
                    test_reset_and_destruction_drop_the_taken_wqe);
    g_test_add_func("/roce/srq/keys-are-of-the-srqs-pd",
                    test_keys_are_of_the_srqs_pd);
    g_test_add_func("/roce/srq/too-short", test_too_short);
    g_test_add_func("/roce/srq/bad-wqe-fails-where-it-is-taken",
                    test_bad_wqe_fails_where_it_is_taken);
    g_test_add_func("/roce/srq/failed-cq", test_failed_cq);
    g_test_add_func("/roce/srq/uc-message-that-breaks-off",
                    test_uc_message_that_breaks_off);
    g_test_add_func("/roce/srq/uc-too-short-stays", test_uc_too_short_stays);
    g_test_add_func("/roce/srq/ud", test_ud);
    g_test_add_func("/roce/srq/refuse-bad-srq", test_refuse_bad_srq);
    g_test_add_func("/roce/srq/refuse-bad-qp", test_refuse_bad_qp);
    return g_test_run();
}
