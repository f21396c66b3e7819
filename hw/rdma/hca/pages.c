/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page lists: check, charge and read them. In guest memory they are flat lists
 * or trees of page tables.
 */
#include "qemu/osdep.h"
#include "int.h"

/* A page table is a page of 512 addresses of 8 bytes. */
#define TABLE_SHIFT 12
#define TABLE_SIZE (1u << TABLE_SHIFT)
#define INDEX_BITS 9
#define TABLE_ENTRIES (1u << INDEX_BITS)
#define MAX_LEVELS 3

int rdma_hca_pages_check_num(const RdmaHcaPages *p, uint64_t npages)
{
    if (!rdma_hca_check_range("npages", p->npages, npages, npages) ||
        !rdma_hca_check_range("levels", p->levels, 0, MAX_LEVELS) ||
        (p->levels &&
         !rdma_hca_check_range("npages", p->npages, 1,
                               1u << (p->levels * INDEX_BITS)))) {
        return -EINVAL;
    }
    return 0;
}

int rdma_hca_pages_check(RdmaHca *hca, RdmaHcaPages *p)
{
    uint64_t page_size, offset;

    if (!p->page_shift) {
        p->page_shift = RDMA_PAGE_SHIFT;
    }
    if (!rdma_hca_check_range("page_shift", p->page_shift, 0, 63) ||
        !rdma_hca_check_flags("1 << page_shift", 1ULL << p->page_shift,
                              RDMA_HCA_PAGE_SIZES)) {
        return -EINVAL;
    }
    page_size = 1ULL << p->page_shift;
    offset = p->iova & (page_size - 1);
    if (!rdma_hca_check_range("length", p->length, 1,
                              MIN(hca->limits.max_mr_size,
                                  UINT64_MAX - p->iova))) {
        return -EINVAL;
    }
    /* No overflow: max_mr_size is at most 2^40. */
    return rdma_hca_pages_check_num(p, DIV_ROUND_UP(offset + p->length,
                                                    page_size));
}

/* Read @n addresses at @addr, which must be aligned to 2^@shift bytes. */
static int read_entries(RdmaHca *hca, uint64_t addr, uint32_t n,
                        uint32_t shift, uint64_t *entries)
{
    uint64_t low = (1ULL << shift) - 1;

    if (!rdma_hca_read_addrs(rdma_hca_ram(hca), addr, n, entries)) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (entries[i] & low) {
            rdma_hca_guest_error("entry %u of the page table at 0x%" PRIx64
                                 " is not aligned to 2^%u: 0x%" PRIx64,
                                 i, addr, shift, entries[i]);
            return -EINVAL;
        }
    }
    return 0;
}

/*
 * The state of reading a page list, level by level. A flat list is read in
 * pieces of the size of a table.
 */
struct RdmaHcaWalk {
    RdmaHcaPages of;
    uint32_t level;                 /* of the tables being read; 0: flat list */
    uint32_t done;                  /* entries of this level that are read */
    uint64_t *tables;               /* of this level; NULL: the root */
    uint64_t *entries;              /* of this level */
    bool taken;                     /* read; the backend has the list */
};

static bool lists_are_equal(const RdmaHcaPages *a, const RdmaHcaPages *b)
{
    return a->iova == b->iova && a->length == b->length &&
           a->table == b->table && a->npages == b->npages &&
           a->page_shift == b->page_shift && a->levels == b->levels;
}

static int charge(RdmaHca *hca, uint32_t npages)
{
    uint64_t left = hca->max_mr_pages - hca->charged_pages;

    if (npages > left) {
        rdma_hca_guest_error("npages is %u, but %" PRIu64 " of %" PRIu64
                             " pages are left: destroy regions or queues, or "
                             "raise the property max-mr-pages", npages, left,
                             hca->max_mr_pages);
        return -ENOMEM;
    }
    hca->charged_pages += npages;
    return 0;
}

/* Start at the root table, or at the flat list, and charge its pages. */
static int walk_start(RdmaHca *hca, RdmaHcaWalk *w, const RdmaHcaPages *p)
{
    if (p->levels ? p->table & (TABLE_SIZE - 1)
                  : p->npages * sizeof(uint64_t) > UINT64_MAX - p->table) {
        return -EINVAL;
    }
    *w = (RdmaHcaWalk) { .of = *p, .level = p->levels };
    return charge(hca, p->npages);
}

static void walk_end(RdmaHca *hca, RdmaHcaWalk *w)
{
    hca->charged_pages -= w->of.npages;
    g_free(w->tables);
    rdma_backend_free(w->entries, w->done * sizeof(*w->entries));
}

static uint64_t piece_address(const RdmaHcaWalk *w)
{
    if (!w->level) {
        return w->of.table + w->done * sizeof(uint64_t);
    }
    return w->tables ? w->tables[w->done / TABLE_ENTRIES] : w->of.table;
}

/* Read on. -EINPROGRESS when *@budget is used up. */
static int walk_read(RdmaHca *hca, RdmaHcaWalk *w, uint32_t *budget)
{
    for (;;) {
        /* Of a page's index in the list: bits that select from lower tables */
        uint32_t bits_below = w->level > 1 ? (w->level - 1) * INDEX_BITS : 0;
        uint32_t shift = bits_below ? TABLE_SHIFT : w->of.page_shift;
        uint32_t n;

        /* rdma_hca_pages_check_num() has checked both. */
        assert(w->level <= MAX_LEVELS);
        n = DIV_ROUND_UP(w->of.npages, 1u << bits_below);
        assert(n);
        if (!w->entries) {
            w->entries = g_try_new(uint64_t, n);
            if (!w->entries) {
                return -ENOMEM;
            }
            w->done = 0;
        }
        while (w->done < n) {
            uint32_t piece = MIN(n - w->done, TABLE_ENTRIES);
            int ret;

            if (!*budget) {
                return -EINPROGRESS;
            }
            ret = read_entries(hca, piece_address(w), piece, shift,
                               &w->entries[w->done]);
            if (ret) {
                return ret;
            }
            w->done += piece;
            rdma_work_pay(budget, piece * RDMA_WORK_ENTRY);
        }
        if (!bits_below) {
            return 0;
        }
        g_free(w->tables);
        w->tables = g_steal_pointer(&w->entries);
        w->level--;
    }
}

/* The caller takes over the list and its charge. */
static uint64_t *walk_take(RdmaHcaWalk *w)
{
    g_free(w->tables);
    return g_steal_pointer(&w->entries);
}

int rdma_hca_pages_read(RdmaHca *hca, const RdmaHcaPages *p, uint64_t **pages)
{
    uint32_t budget = UINT32_MAX;
    RdmaHcaWalk w;
    int ret = walk_start(hca, &w, p);

    if (ret) {
        return ret;
    }
    ret = walk_read(hca, &w, &budget);
    if (ret) {
        walk_end(hca, &w);
        return ret;
    }
    *pages = walk_take(&w);
    return 0;
}

int rdma_hca_pages_read_on(RdmaHca *hca, const RdmaHcaPages *p,
                           uint64_t **pages)
{
    int ret;

    if (hca->walk && !lists_are_equal(&hca->walk->of, p)) {
        /* The driver has changed the command in its memory: start again. */
        rdma_hca_pages_drop(hca);
    }
    if (!hca->walk) {
        g_autofree RdmaHcaWalk *w = g_new(RdmaHcaWalk, 1);

        ret = walk_start(hca, w, p);
        if (ret) {
            return ret;
        }
        hca->walk = g_steal_pointer(&w);
    }
    ret = hca->walk->taken ? 0 : walk_read(hca, hca->walk, &hca->cmd_budget);
    if (ret == 0) {
        *pages = walk_take(hca->walk);
        g_free(hca->walk);
        hca->walk = NULL;
    } else if (ret != -EINPROGRESS) {
        rdma_hca_pages_drop(hca);
    }
    return ret;
}

int rdma_hca_extents_read_on(RdmaHca *hca, const RdmaHcaPages *p,
                             RdmaHcaExtents *x)
{
    uint64_t *pages;
    int ret = rdma_hca_pages_read_on(hca, p, &pages);

    if (!ret) {
        rdma_hca_extents_init(x, pages, p->npages);
    }
    return ret;
}

bool rdma_hca_pages_reading(const RdmaHca *hca)
{
    return hca->walk && !hca->walk->taken;
}

void rdma_hca_pages_finish(RdmaHca *hca, int ret, uint64_t *pages,
                           const RdmaHcaPages *p)
{
    if (ret == -EINPROGRESS) {
        /*
         * The backend has taken the list, and is not done with the command.
         * Charge the list until then. rdma_hca_pages_read_on() returns NULL for
         * it when the command is executed again.
         */
        assert(!hca->walk);
        hca->walk = g_new(RdmaHcaWalk, 1);
        *hca->walk = (RdmaHcaWalk) { .of = *p, .taken = true };
        hca->charged_pages += p->npages;
    } else if (ret) {
        rdma_backend_free(pages, p->npages * sizeof(*pages));
    }
}

void rdma_hca_pages_drop(RdmaHca *hca)
{
    if (hca->walk) {
        walk_end(hca, hca->walk);
        g_free(hca->walk);
        hca->walk = NULL;
    }
}
