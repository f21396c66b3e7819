/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows: binds and invalidations that fail, and invalid imported
 * state.
 */
#include <errno.h>
#include "roce-window.h"
#include "rdma/roce-state.h"

static void test_bad_invalidations(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_1);
    unsigned i;

    /* A window of type 1 cannot be invalidated. */
    window_bind(&f, 0, 1000, RDMA_ACCESS_REMOTE);
    window_inv(&f, f.p.b, f.p.bq, RDMA_WR_LOCAL_INV, f.rkey);
    link_expect(f.p.b, 60, RDMA_WC_MW_BIND_ERR);
    window_reconnect(&f);
    link_pair_recv(&f.p, 50, 0, 0);
    window_inv(&f, f.p.a, f.p.aq, RDMA_WR_SEND_WITH_INV, f.rkey);
    link_expect(f.p.a, 60, RDMA_WC_REM_ACCESS_ERR);
    window_reconnect(&f);
    window_try(&f, f.rkey, f.mr->attr.iova, true);
    window_fix_free(&f);

    /* A window that is not bound, another key, or one that another QP bound */
    for (i = 0; i < 3; i++) {
        f = window_fix(RDMA_MW_TYPE_2);
        window_connect_others(&f);
        if (i) {
            window_bind(&f, 0, 1000, RDMA_ACCESS_REMOTE);
        }
        window_inv(&f, f.p.b, i == 2 ? 5 : f.p.bq, RDMA_WR_LOCAL_INV, f.rkey ^
                   (i == 1));
        link_expect(f.p.b, 60, RDMA_WC_MW_BIND_ERR);
        window_reconnect(&f);
        if (i) {
            window_try(&f, f.rkey, f.mr->attr.iova, true);
        }
        window_fix_free(&f);
    }
}

typedef struct BadBind {
    const char *name;
    RdmaMwType type;                /* 0: both */
    void (*spoil)(WindowFix *f, RdmaSendWr *wr);
} BadBind;

static void spoil_key(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.rkey ^= 2;
}

static void spoil_window(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.rkey = 200 << 8;
}

static void spoil_window_pd(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.rkey = window_create(f->p.b, RDMA_MW_TYPE_1, LINK_PDN + 1);
    wr->wr.bind.new_rkey = wr->wr.bind.rkey;
}

static void spoil_region_as_window(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.rkey = f->p.bmr->attr.rkey;
    wr->wr.bind.new_rkey = wr->wr.bind.rkey;
}

static void spoil_new_key(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.new_rkey ^= 0x100;
}

static void spoil_lkey(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.lkey ^= 1;
}

static void spoil_region(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.lkey = 0xffffff00;
}

static void spoil_window_as_region(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.lkey = f->rkey;
}

static void spoil_region_pd(WindowFix *f, RdmaSendWr *wr)
{
    f->mr->attr.pdn = LINK_PDN + 1;
    g_assert_cmpint(roce_mr_modify(f->p.b->e, RDMA_REREG_PD, &f->mr->attr),
                    ==, 0);
}

static void spoil_region_rights(WindowFix *f, RdmaSendWr *wr)
{
    f->mr->attr.access = RDMA_ACCESS_LOCAL_WRITE;
    g_assert_cmpint(roce_mr_modify(f->p.b->e, RDMA_REREG_ACCESS,
                                   &f->mr->attr), ==, 0);
}

static void spoil_write_right(WindowFix *f, RdmaSendWr *wr)
{
    f->mr->attr.access = RDMA_ACCESS_MW_BIND;
    g_assert_cmpint(roce_mr_modify(f->p.b->e, RDMA_REREG_ACCESS,
                                   &f->mr->attr), ==, 0);
    wr->wr.bind.access = RDMA_ACCESS_REMOTE_WRITE;
}

static void spoil_atomic_right(WindowFix *f, RdmaSendWr *wr)
{
    spoil_write_right(f, wr);
    wr->wr.bind.access = RDMA_ACCESS_REMOTE_ATOMIC;
}

static void spoil_unknown_right(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.access |= RDMA_ACCESS_FLUSH_GLOBAL;
}

static void spoil_start(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.addr = f->mr->attr.iova - 1;
}

static void spoil_end(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.addr = f->mr->attr.iova + 1;
    wr->wr.bind.length = WINDOW_REGION;
}

static void spoil_wrap(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.length = UINT64_MAX;
}

static void spoil_zero_based_end(WindowFix *f, RdmaSendWr *wr)
{
    spoil_end(f, wr);
    wr->wr.bind.access |= RDMA_ACCESS_ZERO_BASED;
}

static void spoil_length(WindowFix *f, RdmaSendWr *wr)
{
    wr->wr.bind.length = 0;
}

static void spoil_dma_region(WindowFix *f, RdmaSendWr *wr)
{
    RdmaMrAttr attr = {
        .mrn = 99, .pdn = LINK_PDN, .type = RDMA_MR_DMA,
        .access = WINDOW_ACCESS, .lkey = 99 << 8, .length = UINT64_MAX,
    };

    g_assert_cmpint(roce_mr_create(f->p.b->e, &attr), ==, 0);
    wr->wr.bind.lkey = attr.lkey;
}

static void spoil_invalid_region(WindowFix *f, RdmaSendWr *wr)
{
    RdmaMrAttr attr = {
        .mrn = 99, .pdn = LINK_PDN, .type = RDMA_MR_FAST_REG,
        .access = WINDOW_ACCESS, .lkey = 99 << 8, .max_pages = 9,
    };

    g_assert_cmpint(roce_mr_create(f->p.b->e, &attr), ==, 0);
    wr->wr.bind.lkey = attr.lkey;
}

static const BadBind bad_binds[] = {
    { "key", RDMA_MW_TYPE_1, spoil_key },
    { "window", 0, spoil_window },
    { "window-pd", 0, spoil_window_pd },
    { "region-as-window", 0, spoil_region_as_window },
    { "new-key", 0, spoil_new_key },
    { "lkey", 0, spoil_lkey },
    { "region", 0, spoil_region },
    { "window-as-region", 0, spoil_window_as_region },
    { "region-pd", 0, spoil_region_pd },
    { "region-rights", 0, spoil_region_rights },
    { "write-right", 0, spoil_write_right },
    { "atomic-right", 0, spoil_atomic_right },
    { "unknown-right", 0, spoil_unknown_right },
    { "start", 0, spoil_start },
    { "end", 0, spoil_end },
    { "wrap", 0, spoil_wrap },
    { "zero-based-end", 0, spoil_zero_based_end },
    { "length", RDMA_MW_TYPE_2, spoil_length },
    { "dma-region", 0, spoil_dma_region },
    { "invalid-region", 0, spoil_invalid_region },
};

static void test_bad_bind(gconstpointer data)
{
    const BadBind *bad = data;
    RdmaMwType type;

    for (type = RDMA_MW_TYPE_1; type <= RDMA_MW_TYPE_2; type++) {
        WindowFix f = window_fix(type);
        RdmaSendWr wr;

        if (!bad->type || bad->type == type) {
            wr = window_bind_wr(&f, 0, 1000, RDMA_ACCESS_REMOTE);
            bad->spoil(&f, &wr);
            window_refuse_bind(&f, &wr);
            window_reconnect(&f);
            window_try(&f, f.rkey, f.mr->attr.iova, false);
            window_try(&f, window_next_key(&f), f.mr->attr.iova, false);
        }
        window_fix_free(&f);
    }
}

/* Imported state */

static void test_type_2_is_bound_by_its_index(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_2);
    RdmaSendWr wr;

    for (int i = 0; i < 3; i++) {
        wr = window_bind_wr(&f, 0, 1000, RDMA_ACCESS_REMOTE);
        wr.wr.bind.rkey = f.mwn << 8 | 0x55;
        link_post(f.p.b, f.p.bq, &wr);
        window_run(&f);
        link_expect(f.p.b, 70, RDMA_WC_SUCCESS);
        f.rkey = window_next_key(&f);
        window_try(&f, f.rkey, f.mr->attr.iova, true);
        window_inv(&f, f.p.b, f.p.bq, RDMA_WR_LOCAL_INV, f.rkey);
        link_expect(f.p.b, 60, RDMA_WC_SUCCESS);
    }
    window_fix_free(&f);
}

static void refuse(WindowFix *f, const RoceMwImage *image, const char *text)
{
    static const RdmaQpCap cap = { 64, 64, 80, 80, 3000 };
    RoceEngine *e = roce_new(&link_config, &link_ops, f->p.b);
    g_autofree char *why = NULL;
    RoceMrImage mr;
    RoceQpImage qp;
    uint32_t i;
    int ret;

    roce_set_link_mtu(e, 4200);
    for (i = 1; i < f->p.b->next_mrn; i++) {
        if (roce_export_mr(f->p.b->e, i, &mr) == 0) {
            g_assert_cmpint(roce_import_mr(e, &mr, &why), ==, 0);
            roce_mr_image_clear(&mr);
        }
    }
    g_assert_cmpint(roce_export_qp(f->p.b->e, f->p.bq, &qp), ==, 0);
    g_assert_cmpint(roce_import_qp(e, &qp, &cap, &why), ==, 0);
    roce_qp_image_clear(&qp);
    ret = roce_import_mw(e, image, &why);
    g_assert_cmpint(ret, ==, text ? -EINVAL : 0);
    g_assert_cmpstr(why, ==, text);
    roce_free(e);
}

static void test_refuse_bad_state(void)
{
    WindowFix f = window_fix(RDMA_MW_TYPE_2);
    RoceMwImage good, image;

    g_assert_cmpint(roce_export_mw(f.p.b->e, f.mr->attr.mrn, &good), ==,
                    -ENOENT);
    g_assert_cmpint(roce_export_mw(f.p.b->e, f.mwn, &good), ==, 0);
    refuse(&f, &good, NULL);
    good.addr = 1;
    refuse(&f, &good, "addr 0x1 is not 0, but the window is not bound");

    window_bind(&f, 100, 1000, RDMA_ACCESS_REMOTE | RDMA_ACCESS_ZERO_BASED);
    g_assert_cmpint(roce_export_mw(f.p.b->e, f.mwn, &good), ==, 0);
    g_assert_cmphex(good.addr, ==, f.mr->attr.iova + 100);
    refuse(&f, &good, NULL);

#define REFUSE(change, text) do {               \
        image = good;                           \
        change;                                 \
        refuse(&f, &image, text);               \
    } while (0)

    REFUSE(image.bound = 2, "invalid boolean 2 in field bound");
    REFUSE(image.attr.mwn = 0, "mwn 0 is not in 1..256");
    REFUSE(image.attr.rkey = 0x100, "rkey 0x100 is one of mwn 1, not of 3");
    REFUSE(image.attr.type = 3, "qpn 3 is not 0, but the type is 3, not 2");
    REFUSE((image.attr.type = 3, image.qpn = 0), "unknown type 3");
    REFUSE(image.attr.type = RDMA_MW_TYPE_1,
           "qpn 3 is not 0, but the type is 1, not 2");
    REFUSE(image.attr.pdn++, "window bound to MR 2 of PD 7, not of PD 8");
    REFUSE(image.mrn = image.attr.mwn, "mrn 3 is not a memory region");
    REFUSE(image.mrn = f.p.bmr->attr.mrn,
           "MR 1 has access 0x10f, without the right to bind windows (0x10)");
    REFUSE(image.access |= RDMA_ACCESS_LOCAL_WRITE,
           "access 0x2f has rights beyond 0x2e, those of a window");
    REFUSE(image.length = 0, "length of a bound window is 0");
    REFUSE(image.length = WINDOW_REGION,
           "addr 0x7f00200002f4 and length 65536 are not in MR 2 with iova "
           "0x7f0020000290 and length 65536");
    REFUSE(image.addr -= 101,
           "addr 0x7f002000028f and length 1000 are not in MR 2 with iova "
           "0x7f0020000290 and length 65536");
    REFUSE(image.qpn = 40, "qpn 40 is not a queue pair");
#undef REFUSE
    window_fix_free(&f);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/mw/bad-invalidations", test_bad_invalidations);
    for (i = 0; i < G_N_ELEMENTS(bad_binds); i++) {
        g_autofree char *path = g_strdup_printf("/roce/mw/bad-bind/%s",
                                                bad_binds[i].name);

        g_test_add_data_func(path, &bad_binds[i], test_bad_bind);
    }
    g_test_add_func("/roce/mw/type-2-is-bound-by-its-index",
                    test_type_2_is_bound_by_its_index);
    g_test_add_func("/roce/mw/refuse-bad-state", test_refuse_bad_state);
    return g_test_run();
}
