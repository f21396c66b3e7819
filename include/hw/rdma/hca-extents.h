/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of a queue in guest memory, as runs of contiguous pages: a queue
 * that is contiguous takes one run, whatever its depth. The list takes at most
 * 8 bytes a page.
 */
#ifndef HW_RDMA_HCA_EXTENTS_H
#define HW_RDMA_HCA_EXTENTS_H

#include "hw/rdma/hca-types.h"

/* Contiguous pages */
typedef struct RdmaHcaExtent {
    uint64_t addr;
    uint32_t first;                 /* number in the list of the page @addr */
    uint32_t npages;
} RdmaHcaExtent;

/* A list of pages, in one of two forms. All zeros: there is no list. */
typedef struct RdmaHcaExtents {
    uint32_t npages;
    uint32_t count;                 /* of @runs */
    RdmaHcaExtent *runs;            /* in the order of the list; or NULL */
    uint64_t *pages;                /* each page, if runs would take more */
} RdmaHcaExtents;

/* The run that a queue has used last. The queue begins with page @base. */
typedef struct RdmaHcaCursor {
    const RdmaHcaExtents *in;
    uint64_t addr;                  /* of the run */
    uint32_t begin;                 /* offset of the run in the queue */
    uint32_t len;                   /* bytes of the run; 0: none was used */
    uint32_t base;
} RdmaHcaCursor;

/*
 * Make @x of the list @pages, and take it over. It has at least one page, and
 * less than 4 GiB.
 */
void rdma_hca_extents_init(RdmaHcaExtents *x, uint64_t *pages, uint32_t npages);
/* In pages.c: read a list for @x, as the functions of mr.c do. */
int rdma_hca_extents_read_on(RdmaHca *hca, const RdmaHcaPages *p,
                             RdmaHcaExtents *x);
/* Free the list, if there is one, and return the charge of its pages. */
void rdma_hca_extents_free(RdmaHca *hca, RdmaHcaExtents *x);
/* The address of the first page */
uint64_t rdma_hca_extents_first(const RdmaHcaExtents *x);
/* The addresses of all pages; NULL: no list. The caller frees the array. */
uint64_t *rdma_hca_extents_list(const RdmaHcaExtents *x);

/* Call before the first rdma_hca_cursor_at(). @x must stay where it is. */
void rdma_hca_cursor_init(RdmaHcaCursor *c, const RdmaHcaExtents *x,
                          uint32_t base);
/* For rdma_hca_cursor_at(): go to the run that has @offset. */
void rdma_hca_cursor_seek(RdmaHcaCursor *c, uint32_t offset);

/*
 * The address of byte @offset of the queue, valid until the end of the run,
 * which is that of a page
 */
static inline uint64_t rdma_hca_cursor_at(RdmaHcaCursor *c, uint32_t offset)
{
    if (unlikely(offset - c->begin >= c->len)) {
        rdma_hca_cursor_seek(c, offset);
    }
    return c->addr + (offset - c->begin);
}

/* After rdma_hca_cursor_at(): the bytes until the end of the run */
static inline uint32_t rdma_hca_cursor_left(const RdmaHcaCursor *c,
                                            uint32_t offset)
{
    return c->len - (offset - c->begin);
}

#endif
