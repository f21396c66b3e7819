/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Regions with large pages, large regions, changed regions, and REG_MRs that
 * carry their page list.
 */
#include <errno.h>
#include <string.h>
#include "roce-link.h"
#include "rdma/roce-state.h"

#define MRN 200
#define KEY (MRN << 8 | 7)
#define MEM (24u << 20)             /* of a node */

/* Node b has a region whose pages are in no order and may repeat. */
typedef struct Fix {
    LinkPair p;
    RdmaMrAttr attr;
    uint64_t *pages;
} Fix;

static uint64_t *make_pages(uint8_t shift, uint32_t npages)
{
    uint32_t there = MEM >> shift;
    uint64_t *pages = g_new(uint64_t, npages);
    uint32_t i;

    for (i = 0; i < npages; i++) {
        pages[i] = LINK_DMA_BASE + ((uint64_t)(i * UINT64_C(5) % there)
                                    << shift);
    }
    return pages;
}

static uint32_t count_pages(uint64_t iova, uint64_t length, uint8_t shift)
{
    uint64_t size = UINT64_C(1) << shift;

    return (iova % size + length + size - 1) / size;
}

static Fix fix_new(uint8_t shift, uint64_t iova, uint64_t length)
{
    LinkQpSpec spec = link_spec();
    Fix f = { .p = link_pair(&spec) };

    f.attr = (RdmaMrAttr) {
        .mrn = MRN,
        .pdn = LINK_PDN,
        .type = RDMA_MR_USER,
        .access = LINK_ALL_ACCESS,
        .lkey = KEY,
        .rkey = KEY,
        .iova = iova,
        .length = length,
        .npages = count_pages(iova, length, shift),
        .page_shift = shift,
    };
    f.pages = make_pages(shift, f.attr.npages);
    f.attr.pages = make_pages(shift, f.attr.npages);
    g_assert_cmpint(roce_mr_create(f.p.b->e, &f.attr), ==, 0);
    link_fill(f.p.amr, shift);
    return f;
}

static void fix_free(Fix *f)
{
    roce_mr_destroy(f->p.b->e, MRN);
    g_free(f->pages);
    link_pair_free(&f->p);
}

/* Read bytes of the region from @off on, one by one. */
static void read_bytes(Fix *f, uint64_t off, uint8_t *buf, uint32_t len)
{
    uint64_t size = UINT64_C(1) << f->attr.page_shift;
    uint32_t i;

    for (i = 0; i < len; i++) {
        uint64_t at = f->attr.iova % size + off + i;

        buf[i] = f->p.b->mem[f->pages[at / size] + at % size -
                             LINK_DMA_BASE];
    }
}

static void post(Fix *f, uint32_t opcode, uint32_t key, uint64_t addr,
                 size_t local, uint32_t len)
{
    RdmaSge sge = link_sge(f->p.amr, local, len);
    RdmaSendWr wr = link_wr(opcode, 80, &sge);

    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = key;
    link_post(f->p.a, f->p.aq, &wr);
    g_assert_true(link_run(f->p.l, LINK_FOREVER));
}

/* Write a range, check memory, and read the range to another place. */
static void check_range(Fix *f, uint64_t off, uint32_t len)
{
    g_autofree uint8_t *got = g_malloc(len);
    g_autofree uint8_t *want = g_malloc(len);
    size_t from = off % 1000;

    post(f, RDMA_WR_RDMA_WRITE, KEY, f->attr.iova + off, from, len);
    link_expect(f->p.a, 80, RDMA_WC_SUCCESS);
    link_read(f->p.amr, from, want, len);
    read_bytes(f, off, got, len);
    g_assert_cmpmem(got, len, want, len);
    post(f, RDMA_WR_RDMA_READ, KEY, f->attr.iova + off, 60000, len);
    link_expect(f->p.a, 80, RDMA_WC_SUCCESS);
    g_assert_true(link_same(f->p.amr, from, f->p.amr, 60000, len));
}

/* A range beyond the ends is refused, and the QP moves to ERR. */
static void check_refused(Fix *f, uint64_t addr, uint32_t len)
{
    post(f, RDMA_WR_RDMA_WRITE, KEY, addr, 0, len);
    link_expect(f->p.a, 80, RDMA_WC_REM_ACCESS_ERR);
}

static void test_page_sizes(gconstpointer data)
{
    uint8_t shift = GPOINTER_TO_UINT(data);
    uint64_t size = UINT64_C(1) << shift;
    uint64_t iova = UINT64_C(0x7fff00000000) + 0x235;
    uint64_t length = 4 * size - 0x300;
    Fix f = fix_new(shift, iova, length);

    check_range(&f, 0, 5000);
    check_range(&f, size - 0x235 - 1, 2);
    check_range(&f, size - 3000, 6000);
    check_range(&f, 3 * size - 2999, 5001);
    check_range(&f, length - 1, 1);
    if (size < 50000) {
        check_range(&f, 0, length);
    }
    check_refused(&f, iova + length - 1, 2);
    fix_free(&f);
    f = fix_new(shift, iova, length);
    check_refused(&f, iova - 1, 1);
    fix_free(&f);
}

static void test_bad_page_sizes(void)
{
    static const uint8_t bad[] = { 1, 11, ROCE_MAX_PAGE_SHIFT + 1, 64, 255 };
    RoceLink *l = link_new(1);
    RdmaMrAttr attr = {
        .mrn = MRN, .pdn = LINK_PDN, .type = RDMA_MR_USER, .lkey = KEY,
        .length = 100, .npages = 1,
    };
    unsigned i;

    attr.pages = g_new0(uint64_t, 1);
    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        attr.page_shift = bad[i];
        g_assert_cmpint(roce_mr_create(l->node[0].e, &attr), ==, -EINVAL);
    }
    g_clear_pointer(&attr.pages, g_free);
    attr.type = RDMA_MR_FAST_REG;
    attr.page_shift = 13;
    g_assert_cmpint(roce_mr_create(l->node[0].e, &attr), ==, -EINVAL);
    attr.page_shift = 12;
    g_assert_cmpint(roce_mr_create(l->node[0].e, &attr), ==, 0);
    link_free(l);
}

/* Offsets have more than 32 bits. */
static void test_large_region(gconstpointer data)
{
    uint8_t shift = GPOINTER_TO_UINT(data);
    uint64_t length = (UINT64_C(4) << 30) + 3 * (UINT64_C(1) << shift) + 17;
    uint64_t iova = UINT64_C(0x100000000) + 0x123;
    Fix f = fix_new(shift, iova, length);
    RdmaSge sge;
    RdmaSendWr wr;

    check_range(&f, 0, 5000);
    check_range(&f, UINT32_MAX - 2000, 6000);
    check_range(&f, (UINT64_C(4) << 30) + 1, 5000);
    check_range(&f, length - 5000, 5000);

    /* The region also works as local memory. */
    sge = (RdmaSge) { iova + length - 3000, 3000, KEY };
    wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);
    wr.wr.rdma.remote_addr = f.p.amr->attr.iova + 70000;
    wr.wr.rdma.rkey = f.p.amr->attr.rkey;
    link_post(f.p.b, f.p.bq, &wr);
    g_assert_true(link_run(f.p.l, LINK_FOREVER));
    link_expect(f.p.b, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(f.p.amr, 62000, f.p.amr, 70000, 3000));
    check_refused(&f, iova + length - 10, 11);
    fix_free(&f);
}

/* A region at the end of the address space does not wrap. */
static void test_last_addresses(void)
{
    uint64_t length = 3 * RDMA_PAGE_SIZE - 1;
    Fix f = fix_new(RDMA_PAGE_SHIFT, UINT64_MAX - length, length);

    check_range(&f, 0, length);
    check_refused(&f, f.attr.iova + length - 1, 2);
    fix_free(&f);
}

/* Modification */

static void test_modify(void)
{
    Fix f = fix_new(RDMA_PAGE_SHIFT, 0x10000, 3 * RDMA_PAGE_SIZE);
    RoceEngine *e = f.p.b->e;
    RdmaMrAttr new = {
        .mrn = MRN,
        .pdn = LINK_PDN + 1,
        .type = RDMA_MR_USER,
        .access = RDMA_ACCESS_REMOTE_READ,
        .lkey = KEY + 1,
        .rkey = KEY + 1,
        .iova = 0x700000123,
        .length = 50000,
        .npages = 1,
        .page_shift = 16,
    };

    new.pages = make_pages(16, 1);
    new.pages[0] = LINK_DMA_BASE + 0x30000;
    g_assert_cmpint(roce_mr_modify(e, RDMA_REREG_TRANSLATION, &new), ==, 0);
    f.attr = new;
    f.pages[0] = LINK_DMA_BASE + 0x30000;
    post(&f, RDMA_WR_RDMA_WRITE, KEY + 1, new.iova + 40000, 0, 10000);
    link_expect(f.p.a, 80, RDMA_WC_SUCCESS);
    post(&f, RDMA_WR_RDMA_READ, KEY + 1, new.iova + 40000, 60000, 10000);
    link_expect(f.p.a, 80, RDMA_WC_SUCCESS);
    g_assert_true(link_same(f.p.amr, 0, f.p.amr, 60000, 10000));

    e = f.p.b->e;
    new.lkey = new.rkey = KEY + 2;
    g_assert_cmpint(roce_mr_modify(e, RDMA_REREG_ACCESS, &new), ==, 0);
    post(&f, RDMA_WR_RDMA_READ, KEY + 2, new.iova, 0, 10000);
    link_expect(f.p.a, 80, RDMA_WC_SUCCESS);
    post(&f, RDMA_WR_RDMA_WRITE, KEY + 2, new.iova, 0, 100);
    link_expect(f.p.a, 80, RDMA_WC_REM_ACCESS_ERR);
    fix_free(&f);
}

/* After a change, the old key, another PD, and missing remote access fail. */
static void test_modify_takes_away(void)
{
    unsigned i;

    for (i = 0; i < 3; i++) {
        Fix f = fix_new(RDMA_PAGE_SHIFT, 0x10000, RDMA_PAGE_SIZE);
        RdmaMrAttr new = f.attr;

        new.lkey = KEY + 1;
        new.rkey = i == 2 ? 0 : KEY + 1;
        new.pdn = LINK_PDN + (i == 1);
        new.access = RDMA_ACCESS_LOCAL_WRITE;
        g_assert_cmpint(roce_mr_modify(f.p.b->e, i == 2 ? RDMA_REREG_ACCESS
                                                        : RDMA_REREG_PD,
                                       &new), ==, 0);
        post(&f, RDMA_WR_RDMA_READ, i == 0 ? KEY : KEY + 1, 0x10000, 0, 100);
        link_expect(f.p.a, 80, RDMA_WC_REM_ACCESS_ERR);
        fix_free(&f);
    }
}

static void test_bad_modifications(void)
{
    Fix f = fix_new(RDMA_PAGE_SHIFT, 0x10000, RDMA_PAGE_SIZE);
    LinkMr *fast = link_fast_mr(f.p.b, RDMA_PAGE_SIZE);
    RoceEngine *e = f.p.b->e;
    RdmaMrAttr bad;

#define REFUSE(mask, change, ret) do {                          \
        bad = f.attr;                                           \
        bad.pages = NULL;                                       \
        change;                                                 \
        g_assert_cmpint(roce_mr_modify(e, mask, &bad), ==, ret);  \
    } while (0)

    REFUSE(0, (void)0, -EINVAL);
    REFUSE(8, (void)0, -EINVAL);
    REFUSE(RDMA_REREG_PD, bad.lkey += 0x100, -EINVAL);
    REFUSE(RDMA_REREG_PD, bad.rkey += 0x100, -EINVAL);
    REFUSE(RDMA_REREG_PD, bad.mrn = MRN + 1, -ENOENT);
    REFUSE(RDMA_REREG_PD, bad.mrn = UINT32_MAX, -ENOENT);
    REFUSE(RDMA_REREG_PD, (bad.mrn = fast->attr.mrn,
                           bad.lkey = bad.rkey = fast->attr.lkey), -EINVAL);
    REFUSE(RDMA_REREG_TRANSLATION, (void)0, -EINVAL);
    REFUSE(RDMA_REREG_TRANSLATION, (bad.pages = f.pages, bad.npages = 0),
           -EINVAL);
    REFUSE(RDMA_REREG_TRANSLATION, (bad.pages = f.pages, bad.page_shift = 9),
           -EINVAL);
#undef REFUSE
    /* The region is unchanged. */
    check_range(&f, 0, RDMA_PAGE_SIZE);
    link_mr_free(fast);
    fix_free(&f);
}

/* REG_MR with pages */

static RdmaSendWr reg_wr(const LinkMr *mr, uint32_t key, uint32_t npages)
{
    RdmaSendWr wr = link_wr(RDMA_WR_REG_MR, 70, NULL);

    wr.wr.reg.mrn = mr->attr.mrn;
    wr.wr.reg.key = key;
    wr.wr.reg.access = LINK_ALL_ACCESS;
    wr.wr.reg.iova = mr->attr.iova;
    wr.wr.reg.length = mr->attr.length;
    wr.wr.reg.npages = npages;
    if (npages) {
        wr.wr.reg.pages = g_new0(uint64_t, npages);
        memcpy(wr.wr.reg.pages, mr->pages,
               MIN(npages, mr->attr.npages) * sizeof(uint64_t));
    }
    return wr;
}

static RdmaSendWr inv_wr(uint32_t key)
{
    RdmaSendWr wr = link_wr(RDMA_WR_LOCAL_INV, 60, NULL);

    wr.ex.invalidate_rkey = key;
    return wr;
}

static LinkPair reg_pair(RdmaQpType type)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.type = type;
    spec.cap.max_send_wr = 8;
    p = link_pair(&spec);
    link_fill(p.amr, 3);
    return p;
}

static void try_key(LinkPair *p, LinkMr *mr, uint32_t key, uint32_t off)
{
    RdmaSge sge = link_sge(p->amr, off, mr->attr.length);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 80, &sge);

    wr.wr.rdma.remote_addr = mr->attr.iova;
    wr.wr.rdma.rkey = key;
    link_post(p->a, p->aq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    link_expect(p->a, 80, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p->amr, off, mr, 0, mr->attr.length));
}

static void test_registration_with_pages(gconstpointer data)
{
    LinkPair p = reg_pair(GPOINTER_TO_UINT(data));
    LinkMr *mr = link_fast_mr(p.b, 20000);
    LinkMr *other = link_fast_mr(p.b, 20000);
    uint32_t key = mr->attr.lkey;
    RdmaSendWr wr;
    unsigned i;

    /* A mapping of roce_mr_map() is ignored and freed. */
    other->attr.mrn = mr->attr.mrn;
    link_mr_map(other);
    for (i = 0; i < 4; i++, key ^= 1) {
        wr = reg_wr(mr, key, mr->attr.npages);
        link_post(p.b, p.bq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        g_assert_cmpint(link_expect(p.b, 70, RDMA_WC_SUCCESS).opcode, ==,
                        RDMA_WC_REG_MR);
        try_key(&p, mr, key, i * 777);
        wr = inv_wr(key);
        link_post(p.b, p.bq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.b, 60, RDMA_WC_SUCCESS);
    }
    wr = reg_wr(mr, key, 0);
    link_post(p.b, p.bq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 70, RDMA_WC_MW_BIND_ERR);
    link_mr_free(mr);
    link_mr_free(other);
    link_pair_free(&p);
}

/* As storage drivers do, all WRs are posted at once. */
static void test_chain_of_registrations(void)
{
    LinkPair p = reg_pair(RDMA_QPT_RC);
    LinkMr *mr[2] = { link_fast_mr(p.b, 20000), link_fast_mr(p.b, 20000) };
    uint32_t key = mr[0]->attr.lkey;
    unsigned i;

    mr[1]->attr.mrn = mr[0]->attr.mrn;
    for (i = 0; i < 3; i++) {
        RdmaSendWr wr = reg_wr(mr[i & 1], key ^ i, mr[0]->attr.npages);

        link_post(p.b, p.bq, &wr);
        wr = inv_wr(key ^ i);
        if (i < 2) {
            link_post(p.b, p.bq, &wr);
        }
    }
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 0; i < 3; i++) {
        link_expect(p.b, 70, RDMA_WC_SUCCESS);
        if (i < 2) {
            link_expect(p.b, 60, RDMA_WC_SUCCESS);
        }
    }
    try_key(&p, mr[0], key ^ 2, 0);
    link_mr_free(mr[0]);
    link_mr_free(mr[1]);
    link_pair_free(&p);
}

/* LeakSanitizer checks that the page lists are freed. */
static void test_pages_of_failed_registrations(void)
{
    LinkPair p = reg_pair(RDMA_QPT_RC);
    LinkMr *mr = link_fast_mr(p.b, 20000);
    RdmaSendWr wr = reg_wr(mr, mr->attr.lkey, mr->attr.npages + 1);

    link_post(p.b, p.bq, &wr);
    wr = reg_wr(mr, mr->attr.lkey, mr->attr.npages);
    link_post(p.b, p.bq, &wr);
    wr = reg_wr(mr, mr->attr.lkey, mr->attr.npages);
    wr.send_flags |= RDMA_SEND_INLINE;
    link_post(p.b, p.bq, &wr);
    /* The engine does not take over the pages of an undecodable WR. */
    wr.status = RDMA_WC_LOC_QP_OP_ERR;
    wr.wr.reg.pages = mr->pages;
    link_post(p.b, p.bq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 70, RDMA_WC_MW_BIND_ERR);
    link_expect(p.b, 70, RDMA_WC_WR_FLUSH_ERR);
    link_expect(p.b, 70, RDMA_WC_WR_FLUSH_ERR);
    link_expect(p.b, 70, RDMA_WC_WR_FLUSH_ERR);
    /* In ERR, it takes them over. */
    wr = reg_wr(mr, mr->attr.lkey, mr->attr.npages);
    link_post(p.b, p.bq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 70, RDMA_WC_WR_FLUSH_ERR);
    link_mr_free(mr);
    link_pair_free(&p);

}

/* On UD, such WRs have an address vector instead of pages. */
static void test_no_pages_on_ud(void)
{
    LinkPair p = reg_pair(RDMA_QPT_UD);
    RdmaSendWr wr = link_wr(RDMA_WR_REG_MR, 70, NULL);

    memset(&wr.wr, 0xa5, sizeof(wr.wr));
    link_post(p.b, p.bq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 70, RDMA_WC_LOC_QP_OP_ERR);
    link_pair_free(&p);
}

/* REG_MRs wait for a READ until RESET or destruction drops them. */
static void test_pages_of_waiting_registrations(gconstpointer data)
{
    bool destroy = GPOINTER_TO_UINT(data);
    LinkPair p = reg_pair(RDMA_QPT_RC);
    LinkMr *mr = link_fast_mr(p.b, 20000);
    RdmaSge sge = link_sge(p.bmr, 0, 1000);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_READ, 1, &sge);
    unsigned i;

    p.a->stopped = true;
    wr.wr.rdma.remote_addr = p.amr->attr.iova;
    wr.wr.rdma.rkey = p.amr->attr.rkey;
    link_post(p.b, p.bq, &wr);
    for (i = 0; i < 7; i++) {
        wr = reg_wr(mr, mr->attr.lkey, mr->attr.npages);
        wr.send_flags |= RDMA_SEND_FENCE;
        link_post(p.b, p.bq, &wr);
    }
    link_run(p.l, LINK_DELAY);
    link_move(p.b);
    if (destroy) {
        g_assert_cmpint(roce_qp_destroy(p.b->e, p.bq), ==, 0);
    } else {
        link_modify(p.b, p.bq, RDMA_QPS_RESET);
        /*
         * The READ and the next registration are retired; others were not
         * pulled.
         */
        g_assert_cmpuint(p.b->retired[p.bq][RDMA_SQ], ==, 2);
    }
    link_mr_free(mr);
    link_pair_free(&p);
}

/* Imported state */

static void refuse_qp(Fix *f, const RoceQpImage *image, const char *text)
{
    static const RdmaQpCap cap = { 64, 64, 80, 80, 3000 };
    RoceEngine *e = roce_new(&link_config, &link_ops, f->p.b);
    g_autofree char *why = NULL;
    int ret;

    roce_set_link_mtu(e, 4200);
    ret = roce_import_qp(e, image, &cap, &why);
    g_assert_cmpint(ret, ==, text ? -EINVAL : 0);
    g_assert_cmpstr(why, ==, text);
    roce_free(e);
}

static void test_refuse_bad_registration(void)
{
    Fix f = fix_new(RDMA_PAGE_SHIFT, 0, 100);
    LinkMr *mr = link_fast_mr(f.p.b, 20000);
    RdmaSendWr wr = reg_wr(mr, mr->attr.lkey, mr->attr.npages);
    RdmaSendWr read = link_wr(RDMA_WR_RDMA_READ, 1, NULL);
    RoceQpImage image;
    uint64_t page;

    /* The registration waits for the READ, which gets no answer. */
    wr.send_flags |= RDMA_SEND_FENCE;
    f.p.a->stopped = true;
    link_post(f.p.b, f.p.bq, &read);
    link_post(f.p.b, f.p.bq, &wr);
    link_pump(f.p.l);
    g_assert_cmpint(roce_export_qp(f.p.b->e, f.p.bq, &image), ==, 0);
    g_assert_cmpuint(image.n_pages, ==, mr->attr.npages);
    refuse_qp(&f, &image, NULL);

    image.n_pages--;
    refuse_qp(&f, &image, "n_pages 5 is not 6, the sum of npages");
    image.send[1].wqe.npages--;
    refuse_qp(&f, &image, "send request 1: REG_MR npages 5 is not 6, the "
              "pages of 4096 bytes that cover REG_MR length 20000 from "
              "REG_MR iova 0x7f0020000290");
    image.n_pages++;
    refuse_qp(&f, &image, "n_pages 6 is not 5, the sum of npages");
    image.send[1].wqe.npages++;
    page = image.pages[0];
    image.pages[0] = 0x5001;
    refuse_qp(&f, &image, "send request 1: REG_MR pages[0] 0x5001 is not a "
              "multiple of the page size 4096");
    image.pages[0] = page;
    image.send[1].args.reg_length += RDMA_PAGE_SIZE;
    refuse_qp(&f, &image, "send request 1: REG_MR npages 6 is not 7, the "
              "pages of 4096 bytes that cover REG_MR length 24096 from "
              "REG_MR iova 0x7f0020000290");
    image.send[1].args.reg_length = UINT64_MAX;
    refuse_qp(&f, &image, "send request 1: REG_MR length "
              "18446744073709551615 exceeds 18446604435195952495, the limit "
              "from REG_MR iova 0x7f0020000290 on");
    image.send[1].args.reg_length = 20000;
    image.send[1].wqe.opcode = RDMA_WR_LOCAL_INV;
    refuse_qp(&f, &image, "send request 1: npages 6 is not 0, but opcode 7 "
              "is not REG_MR");
    image.send[1].wqe.opcode = RDMA_WR_REG_MR;
    refuse_qp(&f, &image, NULL);
    roce_qp_image_clear(&image);
    link_mr_free(mr);
    fix_free(&f);
}

static void test_refuse_bad_page_size(void)
{
    Fix f = fix_new(16, 0x12345, 100000);
    RoceEngine *e = roce_new(&link_config, &link_ops, NULL);
    RoceMrImage image;
    uint64_t page;
    char *why;

#define REFUSE(change, undo, text) do {                                 \
        change;                                                         \
        g_assert_cmpint(roce_import_mr(e, &image, &why), ==, -EINVAL);  \
        g_assert_cmpstr(why, ==, text);                                 \
        g_free(why);                                                    \
        undo;                                                           \
    } while (0)

    g_assert_cmpint(roce_export_mr(f.p.b->e, MRN, &image), ==, 0);
    g_assert_cmpuint(image.attr.page_shift, ==, 16);
    page = image.attr.pages[1];
    REFUSE(image.attr.page_shift = 11, image.attr.page_shift = 16,
           "page_shift 11 is not in 12..40, the limits of type 1");
    REFUSE(image.attr.page_shift = ROCE_MAX_PAGE_SHIFT + 1,
           image.attr.page_shift = 16,
           "page_shift 41 is not in 12..40, the limits of type 1");
    REFUSE(image.attr.page_shift = 15, image.attr.page_shift = 16,
           "npages 2 is not 4, the pages of 32768 bytes that cover length "
           "100000 from iova 0x12345");
    REFUSE(image.attr.pages[1] = 0x51000, image.attr.pages[1] = page,
           "pages[1] 0x51000 is not a multiple of the page size 65536");
    REFUSE(image.attr.type = RDMA_MR_FAST_REG, image.attr.type = RDMA_MR_USER,
           "page_shift 16 is not in 12..12, the limits of type 2");
    g_assert_cmpint(roce_import_mr(e, &image, &why), ==, 0);
#undef REFUSE
    roce_mr_image_clear(&image);
    roce_free(e);
    fix_free(&f);
}

static void add_with(const char *name, unsigned value,
                     void (*test)(gconstpointer))
{
    g_autofree char *path = g_strdup_printf("/roce/mr/%s-%u", name, value);

    g_test_add_data_func(path, GUINT_TO_POINTER(value), test);
}

/* Neighbouring pages are mapped by one call. */
static void test_adjoining_pages(void)
{
    enum { PAGES = 4, MTU = 1024 };
    Fix f = fix_new(RDMA_PAGE_SHIFT, 0x30000, PAGES * RDMA_PAGE_SIZE);
    unsigned i, maps;

    g_assert_cmpint(roce_mr_destroy(f.p.b->e, MRN), ==, 0);
    f.attr.pages = g_new(uint64_t, f.attr.npages);
    for (i = 0; i < f.attr.npages; i++) {
        f.pages[i] = LINK_DMA_BASE + (i + 1) * RDMA_PAGE_SIZE;
        f.attr.pages[i] = f.pages[i];
    }
    g_assert_cmpint(roce_mr_create(f.p.b->e, &f.attr), ==, 0);
    maps = f.p.b->map_calls;
    post(&f, RDMA_WR_RDMA_WRITE, KEY, f.attr.iova + 500, 0, 8 * MTU);
    link_expect(f.p.a, 80, RDMA_WC_SUCCESS);
    g_assert_cmpuint(f.p.b->map_calls - maps, ==, 8);
    check_range(&f, 500, 8 * MTU);
    fix_free(&f);
}

/* Each function that accepts a page list checks it in the same way. */
typedef struct ListCase {
    const char *name;
    uint64_t iova;
    uint64_t length;
    uint32_t npages;
    bool ok;
} ListCase;

static const ListCase list_cases[] = {
    { "a-byte", 0x1000, 1, 1, true },
    { "bytes-of-two-pages", 0x1fff, 2, 2, true },
    { "last-page", UINT64_MAX - 4095, 4095, 1, true },
    { "no-length", 0x1000, 0, 1, false },
    { "no-length-within-a-page", 0x1001, 0, 1, false },
    { "no-length-no-pages", 0x1000, 0, 0, false },
    { "too-few-pages", 0x1fff, 2, 1, false },
    { "too-many-pages", 0x1000, 4096, 2, false },
    { "wraps", UINT64_MAX - 4095, 4096, 1, false },
    { "all-addresses", 0, UINT64_MAX, 1, false },
    { "all-but-a-page", 0, UINT64_MAX - 4095, 0, false },
};

static void check_taken(int ret, bool ok, uint64_t *pages)
{
    g_assert_cmpint(ret, ==, ok ? 0 : -EINVAL);
    if (!ok) {
        g_free(pages);
    }
}

static void test_list_covers_length(gconstpointer data)
{
    const ListCase *c = data;
    LinkPair p = reg_pair(RDMA_QPT_RC);
    RoceEngine *e = p.a->e;
    LinkMr *fast = link_fast_mr(p.a, 8192);
    RdmaMrAttr attr = {
        .mrn = 100, .pdn = LINK_PDN, .type = RDMA_MR_USER, .lkey = 100 << 8,
        .iova = c->iova, .length = c->length, .npages = c->npages,
    };
    RdmaSendWr wr = reg_wr(fast, fast->attr.lkey, c->npages);

    attr.pages = g_new0(uint64_t, 2);
    check_taken(roce_mr_create(e, &attr), c->ok, attr.pages);
    if (!c->ok) {
        attr.pages = g_new0(uint64_t, 1);
        attr.npages = attr.length = 1;
        g_assert_cmpint(roce_mr_create(e, &attr), ==, 0);
    }
    attr.length = c->length;
    attr.npages = c->npages;
    attr.pages = g_new0(uint64_t, 2);
    check_taken(roce_mr_modify(e, RDMA_REREG_TRANSLATION, &attr), c->ok,
                attr.pages);

    wr.wr.reg.iova = c->iova;
    wr.wr.reg.length = c->length;
    link_post(p.a, p.aq, &wr);
    link_run(p.l, 0);
    link_expect(p.a, 70, c->ok ? RDMA_WC_SUCCESS : RDMA_WC_MW_BIND_ERR);

    attr.pages = g_new0(uint64_t, 2);
    check_taken(roce_mr_map(e, fast->attr.mrn, c->iova, c->length, attr.pages,
                            c->npages), c->ok, attr.pages);
    link_move(p.a);
    link_mr_free(fast);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_with("page-size", 12, test_page_sizes);
    add_with("page-size", 13, test_page_sizes);
    add_with("page-size", 16, test_page_sizes);
    add_with("page-size", 21, test_page_sizes);
    g_test_add_func("/roce/mr/bad-page-sizes", test_bad_page_sizes);
    add_with("large-region", 12, test_large_region);
    add_with("large-region", 21, test_large_region);
    for (unsigned i = 0; i < G_N_ELEMENTS(list_cases); i++) {
        g_autofree char *path =
            g_strdup_printf("/roce/mr/list-covers-length/%s",
                            list_cases[i].name);

        g_test_add_data_func(path, &list_cases[i], test_list_covers_length);
    }
    g_test_add_func("/roce/mr/last-addresses", test_last_addresses);
    g_test_add_func("/roce/mr/modify", test_modify);
    g_test_add_func("/roce/mr/modify-takes-away", test_modify_takes_away);
    g_test_add_func("/roce/mr/bad-modifications", test_bad_modifications);
    g_test_add_data_func("/roce/mr/registration-with-pages/rc",
                         GUINT_TO_POINTER(RDMA_QPT_RC),
                         test_registration_with_pages);
    g_test_add_data_func("/roce/mr/registration-with-pages/uc",
                         GUINT_TO_POINTER(RDMA_QPT_UC),
                         test_registration_with_pages);
    g_test_add_func("/roce/mr/chain-of-registrations",
                    test_chain_of_registrations);
    g_test_add_func("/roce/mr/pages-of-failed-registrations",
                    test_pages_of_failed_registrations);
    g_test_add_func("/roce/mr/no-pages-on-ud", test_no_pages_on_ud);
    g_test_add_data_func("/roce/mr/pages-of-waiting-registrations/reset",
                         GUINT_TO_POINTER(false),
                         test_pages_of_waiting_registrations);
    g_test_add_data_func("/roce/mr/pages-of-waiting-registrations/destroy",
                         GUINT_TO_POINTER(true),
                         test_pages_of_waiting_registrations);
    g_test_add_func("/roce/mr/refuse-bad-registration",
                    test_refuse_bad_registration);
    g_test_add_func("/roce/mr/refuse-bad-page-size",
                    test_refuse_bad_page_size);
    g_test_add_func("/roce/mr/adjoining-pages", test_adjoining_pages);
    return g_test_run();
}
