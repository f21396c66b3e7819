/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspection of objects: which attributes are known in which state, and their
 * values.
 */
#include <errno.h>
#include <string.h>
#include "roce-link.h"
#include "roce-window.h"

#define A(name) RDMA_QP_##name

static RdmaInspection inspect(LinkNode *n, RdmaObjectType what, uint32_t id)
{
    RdmaInspection in;

    memset(&in, 0xff, sizeof(in));
    g_assert_cmpint(roce_inspect(n->e, what, id, &in), ==, 0);
    return in;
}

#define RTR_ATTRS (A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN))
#define RTS_ATTRS (A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | \
                   A(MAX_QP_RD_ATOMIC))

/* Attributes that only some QPs have, and the states in which they are known */
static void test_known_attributes(void)
{
    static const uint32_t some = RTR_ATTRS | RTS_ATTRS | A(SQ_PSN) |
                                 A(MAX_DEST_RD_ATOMIC) | A(RATE_LIMIT);
    static const struct {
        RdmaQpType type;
        uint32_t known[RDMA_QPS_RTS + 1];
    } cases[] = {
        { RDMA_QPT_RC,
          { 0, 0, RTR_ATTRS | A(MAX_DEST_RD_ATOMIC),
            RTR_ATTRS | RTS_ATTRS | A(MAX_DEST_RD_ATOMIC) | A(SQ_PSN) } },
        { RDMA_QPT_UC, { 0, 0, RTR_ATTRS, RTR_ATTRS | A(SQ_PSN) } },
        { RDMA_QPT_UD, { 0, 0, 0, A(SQ_PSN) } },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        LinkQpSpec spec = link_spec();
        RoceLink *l = link_new(1);
        LinkNode *n = &l->node[0];
        RdmaQpAttr attr = { .rate_limit = 1000 };
        uint32_t known;

        spec.type = cases[i].type;
        link_create(n, &spec, 0);
        for (unsigned state = RDMA_QPS_RESET; ; state++) {
            known = inspect(n, RDMA_OBJECT_QP, 2).qp.known;
            g_assert_cmphex(known & some, ==, cases[i].known[state]);
            g_assert_cmphex(known | some, ==, UINT32_MAX);
            if (state == RDMA_QPS_RTS) {
                break;
            }
            g_assert_cmpint(roce_qp_modify(n->e, 2, link_attr(
                l, &spec, 0, state + 1, &attr), &attr), ==, 0);
        }
        attr = (RdmaQpAttr) { .qp_state = RDMA_QPS_RTS, .rate_limit = 1000 };
        g_assert_cmpint(roce_qp_modify(n->e, 2, A(STATE) | A(RATE_LIMIT),
                                       &attr), ==, 0);
        known = inspect(n, RDMA_OBJECT_QP, 2).qp.known;
        g_assert_cmphex(known & some, ==,
                        cases[i].known[RDMA_QPS_RTS] | A(RATE_LIMIT));
        link_free(l);
    }
}

/*
 * A WRITE of three packets that gets no answer, and receives that the engine
 * has not pulled
 */
static void test_progress(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaQpInspection in;

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 3000);
    link_post_recv(p.a, p.aq, 2, link_sge(p.amr, 0, 8));
    link_post_recv(p.a, p.aq, 3, link_sge(p.amr, 0, 8));
    in = inspect(p.a, RDMA_OBJECT_QP, p.aq).qp;
    g_assert_cmpuint(in.sends, ==, 0);
    g_assert_cmpuint(in.recvs, ==, 0);
    g_assert_true(in.has_progress);
    g_assert_true(in.has_stats);
    g_assert_cmphex(in.una_psn, ==, spec.psn[0]);
    g_assert_cmphex(in.next_psn, ==, spec.psn[0]);
    p.b->stopped = true;
    link_run(p.l, LINK_MS);
    in = inspect(p.a, RDMA_OBJECT_QP, p.aq).qp;
    g_assert_cmpuint(in.sends, ==, 1);
    g_assert_cmphex(in.una_psn, ==, spec.psn[0]);
    g_assert_cmphex(in.next_psn, ==, spec.psn[0] + 3);
    g_assert_cmpuint(in.retries, ==, 7);
    g_assert_cmpuint(in.rnr_retries, ==, 7);
    g_assert_cmpuint(in.stats.tx_frames, ==, 3);
    g_assert_cmpint(in.attr.qp_state, ==, RDMA_QPS_RTS);
    link_run(p.l, 100 * LINK_MS);
    g_assert_cmpuint(inspect(p.a, RDMA_OBJECT_QP, p.aq).qp.retries, ==, 6);
    link_pair_free(&p);
}

/*
 * The engine has pulled the receive of a message in progress, and no other one.
 */
static void test_receive(void)
{
    enum { LONG = 40000 };          /* more than a window of packets */
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.mtu = RDMA_MTU_256;
    p = link_pair(&spec);
    link_pair_recv(&p, 1, 0, LONG);
    link_pair_recv(&p, 2, 0, LONG);
    link_pair_post(&p, RDMA_WR_SEND, 3, 0, LONG);
    g_assert_cmpuint(inspect(p.b, RDMA_OBJECT_QP, p.bq).qp.recvs, ==, 0);
    /* Run until the first window of packets has arrived. */
    link_run(p.l, LINK_DELAY + 1);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(inspect(p.b, RDMA_OBJECT_QP, p.bq).qp.recvs, ==, 1);
    g_assert_cmpuint(consumer_recvs(p.b->consumer, RDMA_RQ, p.bq), ==, 1);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(inspect(p.b, RDMA_OBJECT_QP, p.bq).qp.recvs, ==, 0);
    link_pair_free(&p);
}

/* If a datagram does not fit into its receive, the SRQ keeps the receive. */
static void test_srq(void)
{
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkMr *mr = link_mr(n, 4096, LINK_ALL_ACCESS);
    LinkMr *from = link_mr(&l->node[1], 4096, LINK_ALL_ACCESS);
    RdmaSge sge = link_sge(from, 0, 100);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 4, &sge);
    LinkQpSpec spec = link_spec();
    RdmaSrqInspection in;

    spec.type = RDMA_QPT_UD;
    spec.srq[0] = true;
    link_srq(n, 8, LINK_PDN);
    link_connect(l, &spec);
    in = inspect(n, RDMA_OBJECT_SRQ, LINK_SRQ).srq;
    g_assert_cmpuint(in.recvs, ==, 0);
    g_assert_true(in.has_limit);
    g_assert_cmpuint(in.limit, ==, 0);
    link_post_srq_silently(n, 1, link_sge(mr, 0, 8));
    link_post_srq_silently(n, 2, link_sge(mr, 0, 8));
    link_post_srq_silently(n, 3, link_sge(mr, 0, 8));
    g_assert_cmpint(roce_srq_set_limit(n->e, LINK_SRQ, 2), ==, 0);
    in = inspect(n, RDMA_OBJECT_SRQ, LINK_SRQ).srq;
    g_assert_cmpuint(in.recvs, ==, 0);
    g_assert_cmpuint(in.limit, ==, 2);
    wr.wr.ud.remote_qpn = spec.qpn[0];
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(&l->node[1], n, false);
    link_post(&l->node[1], spec.qpn[1], &wr);
    g_assert_true(link_run(l, LINK_FOREVER));
    in = inspect(n, RDMA_OBJECT_SRQ, LINK_SRQ).srq;
    g_assert_cmpuint(in.recvs, ==, 1);
    g_assert_cmpuint(consumer_recvs(n->consumer, RDMA_SRQ, LINK_SRQ), ==, 2);
    g_assert_cmpuint(link_wcs(n), ==, 0);
    link_mr_free(from);
    link_mr_free(mr);
    link_free(l);
}

/* A region that is not mapped has only keys. */
static void check_mr(const RdmaMrInspection *in, const RdmaMrAttr *attr,
                     bool valid)
{
    g_assert_cmphex(in->lkey, ==, attr->lkey);
    g_assert_cmphex(in->rkey, ==, attr->rkey);
    g_assert_cmpint(in->valid, ==, valid);
    g_assert_cmphex(in->access, ==, valid ? attr->access : 0);
    g_assert_cmphex(in->iova, ==, valid ? attr->iova : 0);
    g_assert_cmpuint(in->length, ==, valid ? attr->length : 0);
}

static void test_regions(void)
{
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkMr *mr = link_mr(n, 10000, LINK_ALL_ACCESS);
    LinkMr *fast = link_fast_mr(n, 8192);
    RdmaMrInspection in = inspect(n, RDMA_OBJECT_MR, mr->attr.mrn).mr;

    check_mr(&in, &mr->attr, true);
    in = inspect(n, RDMA_OBJECT_MR, fast->attr.mrn).mr;
    check_mr(&in, &fast->attr, false);
    link_mr_free(mr);
    link_mr_free(fast);
    link_free(l);
}

static void test_windows(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_2);
    RdmaMrInspection in = inspect(f.p.b, RDMA_OBJECT_MR, f.mwn).mr;
    RdmaMrAttr want = { .rkey = f.rkey };

    check_mr(&in, &want, false);
    window_bind(&f, 100, 200, RDMA_ACCESS_REMOTE_READ);
    want.rkey = f.rkey;
    want.access = RDMA_ACCESS_REMOTE_READ;
    want.iova = f.mr->attr.iova + 100;
    want.length = 200;
    in = inspect(f.p.b, RDMA_OBJECT_MR, f.mwn).mr;
    check_mr(&in, &want, true);
    window_fix_free(&f);
}

static void test_gids(void)
{
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    RdmaGidInspection in = inspect(n, RDMA_OBJECT_GID, 1).gid;

    g_assert_cmpmem(in.gid, RDMA_GID_LEN, n->gid6, RDMA_GID_LEN);
    g_assert_cmpuint(in.vlan, ==, RDMA_NO_VLAN);
    g_assert_cmpint(roce_add_gid(n->e, 7, n->gid6, 12), ==, 0);
    g_assert_cmpuint(inspect(n, RDMA_OBJECT_GID, 7).gid.vlan, ==, 12);
    g_assert_cmpint(roce_add_gid(n->e, 8, n->gid6, 13), ==, -EINVAL);
    g_assert_cmpint(roce_del_gid(n->e, 8), ==, -EINVAL);
    link_free(l);
}

static void test_missing_objects(void)
{
    static const struct {
        unsigned what;
        uint32_t id;
        int error;
    } cases[] = {
        { RDMA_OBJECT_QP, 2, -ENOENT },
        { RDMA_OBJECT_QP, LINK_MAX_QP, -ENOENT },
        { RDMA_OBJECT_SRQ, LINK_SRQ, -ENOENT },
        { RDMA_OBJECT_SRQ, UINT32_MAX, -ENOENT },
        { RDMA_OBJECT_MR, 1, -ENOENT },
        { RDMA_OBJECT_MR, UINT32_MAX, -ENOENT },
        { RDMA_OBJECT_GID, 2, -ENOENT },
        { RDMA_OBJECT_GID, 8, -ENOENT },
        { RDMA_OBJECT_GID, UINT32_MAX, -ENOENT },
        { RDMA_OBJECT_PD, 0, -EINVAL },
    };
    RoceLink *l = link_new(1);
    RdmaInspection in;

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpint(roce_inspect(l->node[0].e, cases[i].what, cases[i].id,
                                     &in), ==, cases[i].error);
    }
    link_free(l);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/inspect/known-attributes", test_known_attributes);
    g_test_add_func("/roce/inspect/progress", test_progress);
    g_test_add_func("/roce/inspect/receive", test_receive);
    g_test_add_func("/roce/inspect/srq", test_srq);
    g_test_add_func("/roce/inspect/regions", test_regions);
    g_test_add_func("/roce/inspect/windows", test_windows);
    g_test_add_func("/roce/inspect/gids", test_gids);
    g_test_add_func("/roce/inspect/missing-objects", test_missing_objects);
    return g_test_run();
}
