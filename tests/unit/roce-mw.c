/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows: which accesses they allow, what binds and unbinds them, and
 * which changes of their regions they prevent.
 */
#include <errno.h>
#include "roce-window.h"

static void test_create(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_1);
    RoceEngine *e = f.p.b->e;
    RdmaMwAttr attr = { .mwn = 100, .pdn = 1, .type = RDMA_MW_TYPE_2,
                        .rkey = 100 << 8 };
    RdmaMrAttr mr = {
        .mrn = f.mwn, .type = RDMA_MR_FAST_REG, .lkey = f.rkey,
    };
    RdmaMwAttr bad = attr;

    bad.mwn = 0;
    g_assert_cmpint(roce_mw_create(e, &bad), ==, -EINVAL);
    bad.mwn = LINK_MAX_MR + 1;
    bad.rkey = bad.mwn << 8;
    g_assert_cmpint(roce_mw_create(e, &bad), ==, -EINVAL);
    bad.mwn = LINK_MAX_MR;
    bad.rkey = bad.mwn << 8;
    g_assert_cmpint(roce_mw_create(e, &bad), ==, 0);
    bad = attr;
    bad.rkey = 101 << 8;
    g_assert_cmpint(roce_mw_create(e, &bad), ==, -EINVAL);
    bad = attr;
    bad.type = 3;
    g_assert_cmpint(roce_mw_create(e, &bad), ==, -EINVAL);
    g_assert_cmpint(roce_mw_destroy(e, 100), ==, -ENOENT);
    g_assert_cmpint(roce_mw_create(e, &attr), ==, 0);
    g_assert_cmpint(roce_mw_create(e, &attr), ==, -EEXIST);

    /* Windows and MRs share their numbers. */
    attr.mwn = f.mr->attr.mrn;
    attr.rkey = attr.mwn << 8;
    g_assert_cmpint(roce_mw_create(e, &attr), ==, -EEXIST);
    g_assert_cmpint(roce_mw_destroy(e, f.mr->attr.mrn), ==, -ENOENT);
    g_assert_cmpint(roce_mr_create(e, &mr), ==, -EEXIST);
    g_assert_cmpint(roce_mr_destroy(e, f.mwn), ==, -ENOENT);
    g_assert_cmpint(roce_mr_map(e, f.mwn, 0, 1, NULL, 0), ==, -ENOENT);
    g_assert_cmpint(roce_mr_modify(e, RDMA_REREG_PD, &mr), ==, -ENOENT);
    g_assert_cmpint(roce_mw_destroy(e, 100), ==, 0);
    window_fix_free(&f);
}

static void check_access(WindowFix *f, uint64_t base, uint32_t off)
{
    uint64_t counter = 39;

    counter = GUINT64_TO_LE(counter);
    window_op(f, RDMA_WR_RDMA_WRITE, f->rkey, base, 3000, RDMA_WC_SUCCESS);
    g_assert_true(link_same(f->p.amr, 0, f->mr, off, 3000));
    window_op(f, RDMA_WR_RDMA_READ, f->rkey, base + 1000, 2000,
              RDMA_WC_SUCCESS);
    g_assert_true(link_same(f->p.amr, 0, f->mr, off + 1000, 2000));
    link_write(f->mr, off + 8, &counter, 8);
    window_op(f, RDMA_WR_ATOMIC_FETCH_AND_ADD, f->rkey, base + 8, 8,
              RDMA_WC_SUCCESS);
    link_read(f->mr, off + 8, &counter, 8);
    g_assert_cmpuint(GUINT64_FROM_LE(counter), ==, 42);

    /* From the first byte to the last */
    window_try(f, f->rkey, base, true);
    window_try(f, f->rkey, base + 3999, true);
    window_try(f, f->rkey, base - 1, false);
    window_try(f, f->rkey, base + 4000, false);
    window_op(f, RDMA_WR_RDMA_READ, f->rkey, base + 3990, 11,
              RDMA_WC_REM_ACCESS_ERR);
    window_reconnect(f);
}

/*
 * Both types work alike. The region begins at an odd address; ATOMICs need an
 * aligned one.
 */
static void test_access(gconstpointer data)
{
    WindowFix f = window_fix(GPOINTER_TO_UINT(data));
    uint32_t off = 8 - f.mr->attr.iova % 8 + 5000 / 8 * 8;

    window_try(&f, f.rkey, f.mr->attr.iova + off, false);
    window_bind(&f, off, 4000, RDMA_ACCESS_REMOTE);
    window_try(&f, f.rkey - 1, f.mr->attr.iova + off, false);
    check_access(&f, f.mr->attr.iova + off, off);
    window_fix_free(&f);
}

/* The tests of rdma-core pass local write access. */
static void test_flags_without_effect(gconstpointer data)
{
    WindowFix f = window_fix(GPOINTER_TO_UINT(data));
    uint32_t off = 8 - f.mr->attr.iova % 8 + 5000 / 8 * 8;

    window_bind(&f, off, 4000, RDMA_ACCESS_REMOTE | RDMA_ACCESS_LOCAL_WRITE |
                RDMA_ACCESS_RELAXED_ORDERING);
    check_access(&f, f.mr->attr.iova + off, off);
    window_fix_free(&f);
}

/* Addresses are relative to the start of the window. */
static void test_zero_based(gconstpointer data)
{
    WindowFix f = window_fix(GPOINTER_TO_UINT(data));
    uint32_t off = 8 - f.mr->attr.iova % 8 + 6000 / 8 * 8;

    window_bind(&f, off, 4000, RDMA_ACCESS_REMOTE | RDMA_ACCESS_ZERO_BASED);
    window_try(&f, f.rkey, f.mr->attr.iova + off, false);
    check_access(&f, 0, off);
    window_fix_free(&f);
}

static void test_rights(void)
{
    static const uint32_t opcodes[] = {
        RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ, RDMA_WR_ATOMIC_FETCH_AND_ADD,
    };
    static const uint32_t rights[] = {
        RDMA_ACCESS_REMOTE_WRITE, RDMA_ACCESS_REMOTE_READ,
        RDMA_ACCESS_REMOTE_ATOMIC,
    };
    unsigned given, used;

    for (given = 0; given < 3; given++) {
        WindowFix f = window_fix(RDMA_MW_TYPE_1);

        window_bind(&f, 0, WINDOW_REGION, rights[given]);
        for (used = 0; used < 3; used++) {
            window_op(&f, opcodes[used], f.rkey, (f.mr->attr.iova + 7) &
                      ~UINT64_C(7), 8, used == given ? RDMA_WC_SUCCESS :
                      RDMA_WC_REM_ACCESS_ERR);
            window_reconnect(&f);
        }
        /* The rkey does not allow local access. */
        f.p.bmr->attr.lkey = f.rkey;
        link_pair_recv(&f.p, 50, 0, 100);
        link_pair_post(&f.p, RDMA_WR_SEND, 1, 0, 100);
        window_run(&f);
        link_expect(f.p.b, 50, RDMA_WC_LOC_PROT_ERR);
        window_fix_free(&f);
    }
}

static void test_type_1_is_bound_again(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_1);
    uint64_t iova = f.mr->attr.iova;
    uint32_t old;

    window_bind(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    old = f.rkey;
    window_bind(&f, 2000, 1000, RDMA_ACCESS_REMOTE);
    window_try(&f, old, iova, false);
    window_try(&f, old, iova + 2000, false);
    window_try(&f, f.rkey, iova, false);
    window_try(&f, f.rkey, iova + 2000, true);
    g_assert_cmpint(roce_mr_destroy(f.p.b->e, f.mr->attr.mrn), ==, -EBUSY);

    /* A length of 0 unbinds, whatever the other fields are. */
    f.mr->attr.lkey ^= 0x1000;
    window_bind(&f, 99999999, 0, RDMA_ACCESS_REMOTE);
    f.mr->attr.lkey ^= 0x1000;
    window_try(&f, f.rkey, iova + 2000, false);
    window_bind(&f, 2000, 1000, RDMA_ACCESS_REMOTE);
    window_try(&f, f.rkey, iova + 2000, true);
    window_fix_free(&f);
}

static void test_type_2_is_of_its_qp(gconstpointer data)
{
    RdmaMwType type = GPOINTER_TO_UINT(data);
    WindowFix f = window_fix(type);

    window_connect_others(&f);
    window_bind(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    f.p.aq = 4;
    window_op(&f, RDMA_WR_RDMA_WRITE, f.rkey, f.mr->attr.iova, 1, type ==
              RDMA_MW_TYPE_1 ? RDMA_WC_SUCCESS : RDMA_WC_REM_ACCESS_ERR);
    f.p.aq = 2;
    window_try(&f, f.rkey, f.mr->attr.iova, true);

    /* A window of type 2 is unbound when its QP is destroyed; type 1 is not. */
    g_assert_cmpint(roce_qp_destroy(f.p.b->e, f.p.bq), ==, 0);
    g_assert_cmpint(roce_mr_destroy(f.p.b->e, f.mr->attr.mrn), ==,
                    type == RDMA_MW_TYPE_1 ? -EBUSY : 0);
    window_fix_free(&f);
}

static void test_type_2_is_invalidated_before_it_is_bound_again(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_2);
    uint64_t iova = f.mr->attr.iova;
    RdmaSendWr wr;
    RdmaWc wc;

    window_bind(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    window_inv(&f, f.p.b, f.p.bq, RDMA_WR_LOCAL_INV, f.rkey);
    link_expect(f.p.b, 60, RDMA_WC_SUCCESS);
    window_try(&f, f.rkey, iova, false);
    window_bind(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    window_try(&f, f.rkey, iova, true);

    /* Invalidation by the peer */
    link_pair_recv(&f.p, 50, 0, 0);
    window_inv(&f, f.p.a, f.p.aq, RDMA_WR_SEND_WITH_INV, f.rkey);
    link_expect(f.p.a, 60, RDMA_WC_SUCCESS);
    wc = link_expect(f.p.b, 50, RDMA_WC_SUCCESS);
    g_assert_cmpuint(wc.wc_flags, ==, RDMA_WC_WITH_INVALIDATE);
    g_assert_cmphex(wc.ex.invalidate_rkey, ==, f.rkey);
    window_try(&f, f.rkey, iova, false);
    window_bind(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    window_try(&f, f.rkey, iova, true);

    wr = window_bind_wr(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    window_refuse_bind(&f, &wr);
    window_reconnect(&f);
    window_try(&f, f.rkey, iova, true);
    window_fix_free(&f);
}

/* BIND_MW, LOCAL_INV and other messages take effect in order. */
static void test_chain(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_2);
    RdmaSendWr wr;
    unsigned i;

    for (i = 0; i < 5; i++) {
        wr = window_bind_wr(&f, i * 1000, 1000, RDMA_ACCESS_REMOTE);
        wr.send_flags = 0;
        link_post(f.p.b, f.p.bq, &wr);
        f.rkey = window_next_key(&f);
        wr = link_wr(RDMA_WR_LOCAL_INV, 60 + i, NULL);
        wr.ex.invalidate_rkey = f.rkey;
        link_post(f.p.b, f.p.bq, &wr);
    }
    wr = window_bind_wr(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    link_post(f.p.b, f.p.bq, &wr);
    f.rkey = window_next_key(&f);
    window_run(&f);
    for (i = 0; i < 5; i++) {
        g_assert_cmpint(link_expect(f.p.b, 60 + i, RDMA_WC_SUCCESS).opcode,
                        ==, RDMA_WC_LOCAL_INV);
    }
    link_expect(f.p.b, 70, RDMA_WC_SUCCESS);
    window_try(&f, f.rkey, f.mr->attr.iova, true);
    window_fix_free(&f);
}

/* Remote reads do not require local write access. */
static void test_read_window_of_a_read_only_region(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_1);

    f.mr->attr.access = RDMA_ACCESS_MW_BIND;
    g_assert_cmpint(roce_mr_modify(f.p.b->e, RDMA_REREG_ACCESS,
                                   &f.mr->attr), ==, 0);
    window_bind(&f, 0, WINDOW_REGION, RDMA_ACCESS_REMOTE_READ);
    window_op(&f, RDMA_WR_RDMA_READ, f.rkey, f.mr->attr.iova, WINDOW_REGION,
              RDMA_WC_SUCCESS);
    window_fix_free(&f);
}

static void test_bound_region_stays_as_it_is(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_1);
    RoceEngine *e = f.p.b->e;

    window_bind(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    g_assert_cmpint(roce_mr_destroy(e, f.mr->attr.mrn), ==, -EBUSY);
    g_assert_cmpint(roce_mr_modify(e, RDMA_REREG_PD, &f.mr->attr), ==,
                    -EBUSY);
    window_try(&f, f.rkey, f.mr->attr.iova, true);
    /* Destruction of the window unbinds it from the region. */
    e = f.p.b->e;
    g_assert_cmpint(roce_mw_destroy(e, f.mwn), ==, 0);
    g_assert_cmpint(roce_mr_modify(e, RDMA_REREG_PD, &f.mr->attr), ==, 0);
    g_assert_cmpint(roce_mr_destroy(e, f.mr->attr.mrn), ==, 0);
    window_try(&f, f.rkey, f.mr->attr.iova, false);
    window_fix_free(&f);
}

static void test_bound_fast_region_is_not_invalidated(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_2);
    LinkMr *fast = link_fast_mr(f.p.b, 8192);
    RdmaSendWr wr = link_wr(RDMA_WR_REG_MR, 9, NULL);

    link_mr_map(fast);
    wr.wr.reg.mrn = fast->attr.mrn;
    wr.wr.reg.key = fast->attr.lkey;
    wr.wr.reg.access = WINDOW_ACCESS | RDMA_ACCESS_REMOTE_READ;
    link_post(f.p.b, f.p.bq, &wr);
    wr = window_bind_wr(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    wr.wr.bind.lkey = fast->attr.lkey;
    wr.wr.bind.addr = fast->attr.iova;
    link_post(f.p.b, f.p.bq, &wr);
    f.rkey = window_next_key(&f);
    window_run(&f);
    link_expect(f.p.b, 9, RDMA_WC_SUCCESS);
    link_expect(f.p.b, 70, RDMA_WC_SUCCESS);
    window_try(&f, f.rkey, fast->attr.iova, true);

    window_inv(&f, f.p.b, f.p.bq, RDMA_WR_LOCAL_INV, fast->attr.lkey);
    link_expect(f.p.b, 60, RDMA_WC_MW_BIND_ERR);
    window_reconnect(&f);
    link_pair_recv(&f.p, 50, 0, 0);
    window_inv(&f, f.p.a, f.p.aq, RDMA_WR_SEND_WITH_INV, fast->attr.lkey);
    link_expect(f.p.a, 60, RDMA_WC_REM_ACCESS_ERR);
    window_reconnect(&f);
    window_try(&f, f.rkey, fast->attr.iova, true);

    window_inv(&f, f.p.b, f.p.bq, RDMA_WR_LOCAL_INV, f.rkey);
    link_expect(f.p.b, 60, RDMA_WC_SUCCESS);
    window_inv(&f, f.p.b, f.p.bq, RDMA_WR_LOCAL_INV, fast->attr.lkey);
    link_expect(f.p.b, 60, RDMA_WC_SUCCESS);
    link_mr_free(fast);
    window_fix_free(&f);
}

/* The WRITE is longer than the window of packets. The rest finds no window. */
static void test_gone_during_a_write(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_1);

    window_bind(&f, 0, WINDOW_REGION, RDMA_ACCESS_REMOTE);
    window_post(&f, RDMA_WR_RDMA_WRITE, f.rkey, f.mr->attr.iova, WINDOW_REGION);
    link_run(f.p.l, LINK_DELAY + 1);
    g_assert_true(link_same(f.p.amr, 0, f.mr, 0, WINDOW_REGION / 2));
    g_assert_cmpint(roce_mw_destroy(f.p.b->e, f.mwn), ==, 0);
    window_run(&f);
    link_expect(f.p.a, 80, RDMA_WC_REM_ACCESS_ERR);
    g_assert_false(link_same(f.p.amr, 0, f.mr, 0, WINDOW_REGION));
    window_fix_free(&f);
}

/* The READ was accepted, and its response was not sent yet. */
static void test_gone_before_a_read_is_answered(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_1);

    window_bind(&f, 0, WINDOW_REGION, RDMA_ACCESS_REMOTE);
    window_post(&f, RDMA_WR_RDMA_READ, f.rkey, f.mr->attr.iova, WINDOW_REGION);
    link_pump(f.p.l);
    f.p.l->hold = true;
    link_run(f.p.l, LINK_DELAY + 1);
    g_assert_cmpint(roce_mw_destroy(f.p.b->e, f.mwn), ==, 0);
    f.p.l->hold = false;
    window_run(&f);
    link_expect(f.p.a, 80, RDMA_WC_REM_ACCESS_ERR);
    g_assert_cmpuint(link_events(f.p.b, RDMA_EVENT_QP_ACCESS_ERR), ==, 1);
    window_fix_free(&f);
}

static void test_uc(void)
{
    WindowFix f = window_fix_of(RDMA_QPT_UC, RDMA_MW_TYPE_2);
    RdmaSendWr wr;

    window_bind(&f, 100, 4000, RDMA_ACCESS_REMOTE_WRITE);
    window_op(&f, RDMA_WR_RDMA_WRITE, f.rkey, f.mr->attr.iova + 100, 4000,
              RDMA_WC_SUCCESS);
    g_assert_true(link_same(f.p.amr, 0, f.mr, 100, 4000));
    /* A second bind fails. The QP moves to SQE and still receives. */
    wr = window_bind_wr(&f, 0, 1000, RDMA_ACCESS_REMOTE_WRITE);
    link_post(f.p.b, f.p.bq, &wr);
    window_run(&f);
    link_expect(f.p.b, 70, RDMA_WC_MW_BIND_ERR);
    g_assert_cmpint(link_state(f.p.b, f.p.bq), ==, RDMA_QPS_SQE);
    window_fix_free(&f);
}

static void test_not_on_ud(void)
{
    WindowFix f = window_fix_of(RDMA_QPT_UD, RDMA_MW_TYPE_1);
    RdmaSendWr wr = window_bind_wr(&f, 0, 1000, RDMA_ACCESS_REMOTE);

    link_post(f.p.b, f.p.bq, &wr);
    window_run(&f);
    link_expect(f.p.b, 70, RDMA_WC_LOC_QP_OP_ERR);
    window_fix_free(&f);
}

/* A bind waits for an earlier message, which arrives after retries. */
static void test_bad_link(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_2);
    unsigned i;

    f.p.l->faults = (LinkFaults) { 500, 500, 500, 500 };
    for (i = 0; i < 50; i++) {
        uint32_t off = i * 100, len = 3000 + i;

        link_fill(f.p.amr, i);
        window_bind(&f, off, len, RDMA_ACCESS_REMOTE | (i & 1 ?
                                                        RDMA_ACCESS_ZERO_BASED
                                                        : 0));
        window_post(&f, RDMA_WR_RDMA_WRITE, f.rkey,
                    i & 1 ? 0 : f.mr->attr.iova + off, len);
        window_post(&f, RDMA_WR_RDMA_READ, f.rkey,
                    i & 1 ? 9 : f.mr->attr.iova + off + 9, len - 9);
        window_run(&f);
        link_expect(f.p.a, 80, RDMA_WC_SUCCESS);
        link_expect(f.p.a, 80, RDMA_WC_SUCCESS);
        g_assert_true(link_same(f.p.amr, 0, f.mr, off + 9, len - 9));
        link_pair_recv(&f.p, 50, 0, 0);
        window_inv(&f, f.p.a, f.p.aq, RDMA_WR_SEND_WITH_INV, f.rkey);
        link_expect(f.p.a, 60, RDMA_WC_SUCCESS);
        link_expect(f.p.b, 50, RDMA_WC_SUCCESS);
    }
    link_assert_faults(&f.p.l->faults, &f.p.l->faulty);
    window_fix_free(&f);
}

int main(int argc, char **argv)
{
    gconstpointer type1 = GUINT_TO_POINTER(RDMA_MW_TYPE_1);
    gconstpointer type2 = GUINT_TO_POINTER(RDMA_MW_TYPE_2);

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/mw/create", test_create);
    g_test_add_data_func("/roce/mw/access/type-1", type1, test_access);
    g_test_add_data_func("/roce/mw/access/type-2", type2, test_access);
    g_test_add_data_func("/roce/mw/flags-without-effect/type-1", type1,
                         test_flags_without_effect);
    g_test_add_data_func("/roce/mw/flags-without-effect/type-2", type2,
                         test_flags_without_effect);
    g_test_add_data_func("/roce/mw/zero-based/type-1", type1,
                         test_zero_based);
    g_test_add_data_func("/roce/mw/zero-based/type-2", type2,
                         test_zero_based);
    g_test_add_func("/roce/mw/rights", test_rights);
    g_test_add_func("/roce/mw/type-1-is-bound-again",
                    test_type_1_is_bound_again);
    g_test_add_data_func("/roce/mw/type-1-is-of-all-qps", type1,
                         test_type_2_is_of_its_qp);
    g_test_add_data_func("/roce/mw/type-2-is-of-its-qp", type2,
                         test_type_2_is_of_its_qp);
    g_test_add_func("/roce/mw/type-2-is-invalidated-before-it-is-bound-again",
                    test_type_2_is_invalidated_before_it_is_bound_again);
    g_test_add_func("/roce/mw/chain", test_chain);
    g_test_add_func("/roce/mw/read-window-of-a-read-only-region",
                    test_read_window_of_a_read_only_region);
    g_test_add_func("/roce/mw/bound-region-stays-as-it-is",
                    test_bound_region_stays_as_it_is);
    g_test_add_func("/roce/mw/bound-fast-region-is-not-invalidated",
                    test_bound_fast_region_is_not_invalidated);
    g_test_add_func("/roce/mw/gone-during-a-write", test_gone_during_a_write);
    g_test_add_func("/roce/mw/gone-before-a-read-is-answered",
                    test_gone_before_a_read_is_answered);
    g_test_add_func("/roce/mw/uc", test_uc);
    g_test_add_func("/roce/mw/not-on-ud", test_not_on_ud);
    g_test_add_func("/roce/mw/bad-link", test_bad_link);
    return g_test_run();
}
