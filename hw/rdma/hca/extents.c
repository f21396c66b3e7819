/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of a queue in guest memory, as runs of contiguous pages
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-extents.h"

/* A list with more runs than half its pages is smaller without them. */
#define PAGES_PER_RUN (sizeof(RdmaHcaExtent) / sizeof(uint64_t))

static bool starts_run(const uint64_t *pages, uint32_t i)
{
    return !i || pages[i] != pages[i - 1] + RDMA_PAGE_SIZE;
}

void rdma_hca_extents_init(RdmaHcaExtents *x, uint64_t *pages, uint32_t npages)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < npages; i++) {
        count += starts_run(pages, i);
    }
    *x = (RdmaHcaExtents) { .npages = npages };
    if (count <= npages / PAGES_PER_RUN) {
        x->runs = g_try_new(RdmaHcaExtent, count);
    }
    if (!x->runs) {
        /* Also if there is no memory for runs: the list can be used. */
        x->pages = pages;
        return;
    }
    for (uint32_t i = 0; i < npages; i++) {
        if (starts_run(pages, i)) {
            x->runs[x->count++] = (RdmaHcaExtent) {
                .addr = pages[i],
                .first = i,
            };
        }
        x->runs[x->count - 1].npages++;
    }
    rdma_backend_free(pages, npages * sizeof(*pages));
}

void rdma_hca_extents_free(RdmaHca *hca, RdmaHcaExtents *x)
{
    hca->charged_pages -= x->npages;
    rdma_backend_free(x->pages, x->npages * sizeof(*x->pages));
    rdma_backend_free(x->runs, x->count * sizeof(*x->runs));
    *x = (RdmaHcaExtents) {};
}

/* The run that has @page */
static RdmaHcaExtent find(const RdmaHcaExtents *x, uint32_t page)
{
    uint32_t low = 0, high = x->count;

    assert(page < x->npages);
    if (x->pages) {
        return (RdmaHcaExtent) { x->pages[page], page, 1 };
    }
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (x->runs[middle].first <= page) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return x->runs[low];
}

uint64_t rdma_hca_extents_first(const RdmaHcaExtents *x)
{
    return find(x, 0).addr;
}

uint64_t *rdma_hca_extents_list(const RdmaHcaExtents *x)
{
    uint64_t *pages = g_new(uint64_t, x->npages);
    RdmaHcaCursor c;

    rdma_hca_cursor_init(&c, x, 0);
    for (uint32_t i = 0; i < x->npages; i++) {
        pages[i] = rdma_hca_cursor_at(&c, i << RDMA_PAGE_SHIFT);
    }
    return pages;
}

void rdma_hca_cursor_init(RdmaHcaCursor *c, const RdmaHcaExtents *x,
                          uint32_t base)
{
    *c = (RdmaHcaCursor) { .in = x, .base = base };
}

void rdma_hca_cursor_seek(RdmaHcaCursor *c, uint32_t offset)
{
    RdmaHcaExtent run = find(c->in, c->base + (offset >> RDMA_PAGE_SHIFT));

    c->addr = run.addr;
    /* Modulo 2^32: the run can begin before the queue. */
    c->begin = (run.first - c->base) << RDMA_PAGE_SHIFT;
    c->len = run.npages << RDMA_PAGE_SHIFT;
}
