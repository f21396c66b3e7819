/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Enumeration of objects by roce_next_*(), which an export uses.
 */
#include "rdma/roce-state.h"
#include "roce-link.h"

typedef bool Next(const RoceEngine *e, uint32_t *n);

/* Numbers at the ends of the bitmap's words, and the last number */
static const uint32_t mrns[] = { 1, 62, 63, 64, 128, 191, LINK_MAX_MR };
static const uint32_t mwns[] = { 2, 65, 127, 192, LINK_MAX_MR - 1 };
static const uint32_t qpns[] = { 2, 31, LINK_MAX_QP - 1 };
static const uint32_t srqns[] = { 0, LINK_MAX_SRQ - 1 };

static void expect(const RoceEngine *e, Next *next, const uint32_t *numbers,
                   size_t count)
{
    uint32_t n = 0;

    for (size_t i = 0; i < count; i++, n++) {
        g_assert_true(next(e, &n));
        g_assert_cmpuint(n, ==, numbers[i]);
    }
    g_assert_false(next(e, &n));
    n = UINT32_MAX;
    g_assert_false(next(e, &n));
}

static void expect_all(const RoceEngine *e, bool there)
{
    expect(e, roce_next_mr, mrns, there ? G_N_ELEMENTS(mrns) : 0);
    expect(e, roce_next_mw, mwns, there ? G_N_ELEMENTS(mwns) : 0);
    expect(e, roce_next_qp, qpns, there ? G_N_ELEMENTS(qpns) : 0);
    expect(e, roce_next_srq, srqns, there ? G_N_ELEMENTS(srqns) : 0);
}

static void create_all(RoceEngine *e)
{
    for (size_t i = 0; i < G_N_ELEMENTS(mrns); i++) {
        RdmaMrAttr attr = {
            .mrn = mrns[i], .type = RDMA_MR_DMA, .lkey = mrns[i] << 8,
        };

        g_assert_cmpint(roce_mr_create(e, &attr), ==, 0);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(mwns); i++) {
        RdmaMwAttr attr = {
            .mwn = mwns[i], .type = RDMA_MW_TYPE_2, .rkey = mwns[i] << 8,
        };

        g_assert_cmpint(roce_mw_create(e, &attr), ==, 0);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(qpns); i++) {
        RdmaQpInitAttr init = { .qpn = qpns[i], .qp_type = RDMA_QPT_RC };

        g_assert_cmpint(roce_qp_create(e, &init), ==, 0);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(srqns); i++) {
        RdmaSrqAttr attr = { .srqn = srqns[i], .max_wr = 1, .max_sge = 1 };

        g_assert_cmpint(roce_srq_create(e, &attr), ==, 0);
    }
}

static void test_by_number(void)
{
    static LinkNode node;
    RoceEngine *e = roce_new(&link_config, &link_ops, &node);

    expect_all(e, false);
    create_all(e);
    expect_all(e, true);
    roce_free(e);
}

static void test_skips_destroyed_objects(void)
{
    static LinkNode node;
    RoceEngine *e = roce_new(&link_config, &link_ops, &node);

    create_all(e);
    g_assert_cmpint(roce_mr_destroy(e, mrns[0]), ==, 0);
    g_assert_cmpint(roce_mw_destroy(e, mwns[0]), ==, 0);
    g_assert_cmpint(roce_qp_destroy(e, qpns[0]), ==, 0);
    g_assert_cmpint(roce_srq_destroy(e, srqns[0]), ==, 0);
    expect(e, roce_next_mr, mrns + 1, G_N_ELEMENTS(mrns) - 1);
    expect(e, roce_next_mw, mwns + 1, G_N_ELEMENTS(mwns) - 1);
    expect(e, roce_next_qp, qpns + 1, G_N_ELEMENTS(qpns) - 1);
    expect(e, roce_next_srq, srqns + 1, G_N_ELEMENTS(srqns) - 1);
    roce_free(e);
}

static void test_none_after_reset(void)
{
    static LinkNode node;
    RoceEngine *e = roce_new(&link_config, &link_ops, &node);

    create_all(e);
    roce_reset(e);
    expect_all(e, false);
    create_all(e);
    expect_all(e, true);
    roce_free(e);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/state-next/by-number", test_by_number);
    g_test_add_func("/roce/state-next/skips-destroyed-objects",
                    test_skips_destroyed_objects);
    g_test_add_func("/roce/state-next/none-after-reset",
                    test_none_after_reset);
    return g_test_run();
}
