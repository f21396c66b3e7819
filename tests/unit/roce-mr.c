/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: creation, mapping and invalidation, and the accesses that
 * their keys allow in each state.
 */
#include <errno.h>
#include <string.h>
#include "rdma/roce-state.h"
#include "roce-link.h"

static void test_create(void)
{
    RoceLink *l = link_new(1);
    RoceEngine *e = l->node[0].e;
    RdmaMrAttr attr = {
        .mrn = 1, .type = RDMA_MR_DMA, .lkey = 1 << 8,
    };
    uint64_t *pages = g_new0(uint64_t, 1);

    /* Wrong numbers and keys */
    attr.mrn = 0;
    attr.lkey = 0;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, -EINVAL);
    attr.mrn = LINK_MAX_MR + 1;
    attr.lkey = attr.mrn << 8;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, -EINVAL);
    attr.mrn = 1;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, -EINVAL);
    attr.lkey = 1 << 8 | 9;
    attr.type = 77;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, -EINVAL);
    /* A DMA MR has no remote access and no pages. */
    attr.type = RDMA_MR_DMA;
    attr.rkey = attr.lkey;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, -EINVAL);
    attr.rkey = 0;
    attr.pages = pages;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, -EINVAL);
    /* A user MR needs pages. */
    attr.type = RDMA_MR_USER;
    attr.pages = NULL;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, -EINVAL);

    attr.type = RDMA_MR_DMA;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, 0);
    g_assert_cmpint(roce_mr_create(e, &attr), ==, -EEXIST);
    g_assert_cmpint(roce_mr_destroy(e, 1), ==, 0);
    g_assert_cmpint(roce_mr_destroy(e, 1), ==, -ENOENT);
    g_assert_cmpint(roce_mr_destroy(e, 0), ==, -ENOENT);
    g_assert_cmpint(roce_mr_destroy(e, UINT32_MAX), ==, -ENOENT);
    g_free(pages);
    link_free(l);
}

static void test_map(void)
{
    RoceLink *l = link_new(1);
    RoceEngine *e = l->node[0].e;
    RdmaMrAttr attr = {
        .mrn = 3, .type = RDMA_MR_FAST_REG, .lkey = 3 << 8, .max_pages = 2,
    };
    uint64_t *pages = g_new0(uint64_t, 3);

    g_assert_cmpint(roce_mr_create(e, &attr), ==, 0);
    attr.mrn = 4;
    attr.lkey = 4 << 8;
    attr.type = RDMA_MR_DMA;
    g_assert_cmpint(roce_mr_create(e, &attr), ==, 0);

    g_assert_cmpint(roce_mr_map(e, 5, 0, 4096, pages, 1), ==, -ENOENT);
    g_assert_cmpint(roce_mr_map(e, UINT32_MAX, 0, 4096, pages, 1), ==,
                    -ENOENT);
    g_assert_cmpint(roce_mr_map(e, 4, 0, 4096, pages, 1), ==, -EINVAL);
    g_assert_cmpint(roce_mr_map(e, 3, 0, 12288, pages, 3), ==, -E2BIG);
    g_assert_cmpint(roce_mr_map(e, 3, 0, 4096, pages, 1), ==, 0);
    /* The second mapping replaces the first, which is freed. */
    pages = g_new0(uint64_t, 2);
    g_assert_cmpint(roce_mr_map(e, 3, 0, 8192, pages, 2), ==, 0);
    link_free(l);
}

static void post_reg(LinkPair *p, LinkMr *mr, uint32_t key, uint32_t access)
{
    RdmaSendWr wr = link_wr(RDMA_WR_REG_MR, 7, NULL);

    wr.wr.reg.mrn = mr->attr.mrn;
    wr.wr.reg.key = key;
    wr.wr.reg.access = access;
    link_post(p->b, p->bq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    g_assert_cmpint(link_expect(p->b, 7, RDMA_WC_SUCCESS).opcode, ==,
                    RDMA_WC_REG_MR);
}

static void post_inv(LinkPair *p, uint32_t key)
{
    RdmaSendWr wr = link_wr(RDMA_WR_LOCAL_INV, 8, NULL);

    wr.ex.invalidate_rkey = key;
    link_post(p->b, p->bq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    g_assert_cmpint(link_expect(p->b, 8, RDMA_WC_SUCCESS).opcode, ==,
                    RDMA_WC_LOCAL_INV);
}

/* A WRITE to the region succeeds, or fails and the QPs are connected again. */
static void try_write(LinkMr *mr, LinkPair *p, uint32_t rkey, bool ok)
{
    RdmaSge sge = link_sge(p->amr, 0, 6000);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);
    LinkQpSpec spec = link_spec();
    unsigned side, s;

    link_fill(p->amr, rkey);
    wr.wr.rdma.remote_addr = mr->attr.iova + 50;
    wr.wr.rdma.rkey = rkey;
    link_post(p->a, p->aq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    if (ok) {
        link_expect(p->a, 1, RDMA_WC_SUCCESS);
        g_assert_true(link_same(p->amr, 0, mr, 50, 6000));
        return;
    }
    link_expect(p->a, 1, RDMA_WC_REM_ACCESS_ERR);
    for (side = 0; side < 2; side++) {
        link_modify(&p->l->node[side], spec.qpn[side], RDMA_QPS_RESET);
        for (s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
            RdmaQpAttr attr;
            uint32_t mask = link_attr(p->l, &spec, side, s, &attr);

            g_assert_cmpint(roce_qp_modify(p->l->node[side].e,
                                           spec.qpn[side], mask, &attr), ==, 0);
        }
    }
}

static void test_fast_registration(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    LinkMr *mr = link_fast_mr(p.b, 8192);
    uint32_t key = mr->attr.lkey;

    /* A region that is only created, or only mapped, is not valid. */
    try_write(mr, &p, key, false);
    link_mr_map(mr);
    try_write(mr, &p, key, false);
    post_reg(&p, mr, key, LINK_ALL_ACCESS);
    try_write(mr, &p, key, true);
    try_write(mr, &p, key ^ 1, false);

    /*
     * Invalidation takes effect at once. The region needs a new mapping and
     * key.
     */
    post_inv(&p, key);
    try_write(mr, &p, key, false);
    link_mr_map(mr);
    try_write(mr, &p, key, false);
    post_reg(&p, mr, key ^ 0xff, LINK_ALL_ACCESS);
    try_write(mr, &p, key, false);
    try_write(mr, &p, key ^ 0xff, true);

    /* Without remote access, the region has no rkey. */
    post_inv(&p, key ^ 0xff);
    link_mr_map(mr);
    post_reg(&p, mr, key, RDMA_ACCESS_LOCAL_WRITE);
    try_write(mr, &p, key, false);
    post_inv(&p, key);

    link_mr_free(mr);
    link_pair_free(&p);
}

/* One chain of WRs, as kernel modules post it */
static void test_register_use_invalidate_in_one_chain(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    LinkMr *mr = link_fast_mr(p.a, 8192);
    RdmaSendWr reg = link_wr(RDMA_WR_REG_MR, 1, NULL);
    RdmaSge sge = link_sge(mr, 10, 5000);
    RdmaSendWr write = link_wr(RDMA_WR_RDMA_WRITE, 2, &sge);
    RdmaSendWr inv = link_wr(RDMA_WR_LOCAL_INV, 3, NULL);

    link_mr_map(mr);
    link_fill(mr, 3);
    reg.wr.reg.mrn = mr->attr.mrn;
    reg.wr.reg.key = mr->attr.lkey;
    reg.wr.reg.access = 0;
    write.wr.rdma.remote_addr = p.bmr->attr.iova;
    write.wr.rdma.rkey = p.bmr->attr.rkey;
    inv.ex.invalidate_rkey = mr->attr.lkey;
    link_post(p.a, p.aq, &reg);
    link_post(p.a, p.aq, &write);
    link_post(p.a, p.aq, &inv);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_expect(p.a, 3, RDMA_WC_SUCCESS);
    g_assert_true(link_same(mr, 10, p.bmr, 0, 5000));
    link_mr_map(mr);
    link_mr_free(mr);
    link_pair_free(&p);
}

/* A queue pair of one PD cannot invalidate a region of another PD. */
static void test_other_pd_does_not_invalidate(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    LinkMr *mr = link_fast_mr(p.b, 8192);
    RdmaSendWr inv = link_wr(RDMA_WR_LOCAL_INV, 3, NULL);
    uint32_t mrn = mr->attr.mrn;
    g_autofree char *why = NULL;
    RoceMrImage image;

    link_mr_map(mr);
    post_reg(&p, mr, mr->attr.lkey, LINK_ALL_ACCESS);
    g_assert_cmpint(roce_export_mr(p.b->e, mrn, &image), ==, 0);
    g_assert_cmpint(roce_mr_destroy(p.b->e, mrn), ==, 0);
    image.attr.pdn = LINK_PDN + 1;
    g_assert_cmpint(roce_import_mr(p.b->e, &image, &why), ==, 0);
    roce_mr_image_clear(&image);

    inv.ex.invalidate_rkey = mr->attr.lkey;
    link_post(p.b, p.bq, &inv);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 3, RDMA_WC_MW_BIND_ERR);
    g_assert_cmpint(roce_export_mr(p.b->e, mrn, &image), ==, 0);
    g_assert_true(image.valid);
    roce_mr_image_clear(&image);
    link_mr_free(mr);
    link_pair_free(&p);
}

/* One chain that invalidates and registers again, as kernel modules post it */
static void test_mapped_again_while_valid(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    LinkMr *mr = link_fast_mr(p.b, 8192);
    uint32_t key = mr->attr.lkey;
    RdmaSendWr reg = link_wr(RDMA_WR_REG_MR, 9, NULL);

    link_mr_map(mr);
    post_reg(&p, mr, key, LINK_ALL_ACCESS);
    link_mr_map(mr);
    try_write(mr, &p, key, true);
    post_inv(&p, key);
    post_reg(&p, mr, key ^ 1, LINK_ALL_ACCESS);
    try_write(mr, &p, key ^ 1, true);

    link_mr_map(mr);
    reg.wr.reg.mrn = mr->attr.mrn;
    reg.wr.reg.key = key;
    reg.wr.reg.access = LINK_ALL_ACCESS;
    link_post(p.b, p.bq, &reg);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 9, RDMA_WC_MW_BIND_ERR);
    link_mr_free(mr);
    link_pair_free(&p);
}

static void test_registration_for_unknown_access(void)
{
    static const uint32_t bad[] = {
        RDMA_ACCESS_FLUSH_PERSISTENT, RDMA_ACCESS_ON_DEMAND, 1u << 31,
        RDMA_ACCESS_FLUSH_GLOBAL,
    };
    LinkQpSpec spec = link_spec();
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        LinkPair p = link_pair(&spec);
        LinkMr *mr = link_fast_mr(p.b, 8192);
        RdmaSendWr reg = link_wr(RDMA_WR_REG_MR, 9, NULL);

        link_set_extensions(p.b, 0);
        link_mr_map(mr);
        reg.wr.reg.mrn = mr->attr.mrn;
        reg.wr.reg.key = mr->attr.lkey;
        reg.wr.reg.access = RDMA_ACCESS_LOCAL_WRITE | bad[i];
        link_post(p.b, p.bq, &reg);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.b, 9, RDMA_WC_MW_BIND_ERR);
        link_mr_free(mr);
        link_pair_free(&p);
    }
}

/* The region of a kernel module for all memory, by DMA address */
static void test_dma_mr(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaMrAttr attr = {
        .type = RDMA_MR_DMA, .mrn = 200, .pdn = LINK_PDN,
        .lkey = 200 << 8 | 4, .access = RDMA_ACCESS_LOCAL_WRITE,
    };
    RdmaSge from, to;
    RdmaSendWr wr;

    g_assert_cmpint(roce_mr_create(p.a->e, &attr), ==, 0);
    g_assert_cmpint(roce_mr_create(p.b->e, &attr), ==, 0);
    from = (RdmaSge) { link_dma(p.amr, 4096), 700, attr.lkey };
    to = (RdmaSge) { link_dma(p.bmr, 4096), 700, attr.lkey };
    wr = link_wr(RDMA_WR_SEND, 1, &from);
    link_fill(p.amr, 1);
    link_post_recv(p.b, p.bq, 50, to);
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 4096, p.bmr, 4096, 700));

    /* Addresses that wrap, or have no memory */
    from.addr = UINT64_MAX - 10;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_LOC_PROT_ERR);
    link_pair_free(&p);
}

/* The last byte of a region is accessible, the next one is not. */
static void test_edges(void)
{
    LinkQpSpec spec = link_spec();
    uint32_t len;

    for (len = 1; len <= 3; len++) {
        LinkPair p = link_pair(&spec);
        RdmaSge sge = link_sge(p.amr, LINK_PAIR_MEM - 2, len);
        RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);

        wr.wr.rdma.remote_addr = p.bmr->attr.iova + LINK_PAIR_MEM - 2;
        wr.wr.rdma.rkey = p.bmr->attr.rkey;
        link_post(p.a, p.aq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, len <= 2 ? RDMA_WC_SUCCESS
                                     : RDMA_WC_LOC_PROT_ERR);
        link_pair_free(&p);
    }
}

/* Empty transfers access no memory and need no key (IBTA 9.7.4.1.5). */
static void test_empty_transfers_need_no_key(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSge sge = { 0x1234, 0, 0xdead };
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);

    wr.wr.rdma.remote_addr = 12345;
    wr.wr.rdma.rkey = 0x99999;
    link_post(p.a, p.aq, &wr);
    wr.opcode = RDMA_WR_RDMA_READ;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/mr/create", test_create);
    g_test_add_func("/roce/mr/map", test_map);
    g_test_add_func("/roce/mr/fast-registration", test_fast_registration);
    g_test_add_func("/roce/mr/registration-for-unknown-access",
                    test_registration_for_unknown_access);
    g_test_add_func("/roce/mr/mapped-again-while-valid",
                    test_mapped_again_while_valid);
    g_test_add_func("/roce/mr/other-pd-does-not-invalidate",
                    test_other_pd_does_not_invalidate);
    g_test_add_func("/roce/mr/register-use-invalidate-in-one-chain",
                    test_register_use_invalidate_in_one_chain);
    g_test_add_func("/roce/mr/dma-mr", test_dma_mr);
    g_test_add_func("/roce/mr/edges", test_edges);
    g_test_add_func("/roce/mr/empty-transfers-need-no-key",
                    test_empty_transfers_need_no_key);
    return g_test_run();
}
