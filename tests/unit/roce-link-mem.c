/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of the nodes of the simulated link: regions with scattered pages.
 */
#include <string.h>
#include "roce-link.h"

#define IOVA_BASE UINT64_C(0x7f0000000000)

static LinkMr *mr_alloc(LinkNode *n, size_t len)
{
    LinkMr *mr = g_new0(LinkMr, 1);
    unsigned i;

    mr->node = n;
    mr->attr.mrn = n->next_mrn++;
    mr->attr.pdn = LINK_PDN;
    mr->attr.lkey = mr->attr.mrn << 8 | 0x5a;
    /* An odd offset in the first page */
    mr->attr.iova = IOVA_BASE + (uint64_t)mr->attr.mrn * 0x10000000 +
                    mr->attr.mrn * 328 % RDMA_PAGE_SIZE;
    mr->attr.length = len;
    mr->attr.npages = (mr->attr.iova % RDMA_PAGE_SIZE + len +
                       RDMA_PAGE_SIZE - 1) / RDMA_PAGE_SIZE;
    mr->pages = g_new(uint64_t, mr->attr.npages);
    g_assert_cmpuint(mr->attr.npages, <=, n->free_pages->len);
    for (i = 0; i < mr->attr.npages; i++) {
        mr->pages[i] = g_array_index(n->free_pages, uint64_t,
                                     n->free_pages->len - 1);
        g_array_set_size(n->free_pages, n->free_pages->len - 1);
    }
    return mr;
}

static uint64_t *pages_copy(LinkMr *mr)
{
    uint64_t *copy = g_new(uint64_t, mr->attr.npages);

    memcpy(copy, mr->pages, mr->attr.npages * sizeof(*copy));
    return copy;
}

LinkMr *link_mr_pd(LinkNode *n, size_t len, uint32_t access, uint32_t pdn)
{
    LinkMr *mr = mr_alloc(n, len);

    mr->attr.type = RDMA_MR_USER;
    mr->attr.access = access;
    mr->attr.pdn = pdn;
    mr->attr.rkey = access & (RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH) ?
                    mr->attr.lkey : 0;
    mr->attr.pages = pages_copy(mr);
    g_assert_cmpint(roce_mr_create(n->e, &mr->attr), ==, 0);
    return mr;
}

LinkMr *link_mr(LinkNode *n, size_t len, uint32_t access)
{
    return link_mr_pd(n, len, access, LINK_PDN);
}

LinkMr *link_fast_mr(LinkNode *n, size_t len)
{
    LinkMr *mr = mr_alloc(n, len);
    RdmaMrAttr attr = {
        .mrn = mr->attr.mrn,
        .pdn = LINK_PDN,
        .type = RDMA_MR_FAST_REG,
        .lkey = mr->attr.lkey,
        .max_pages = mr->attr.npages,
    };

    g_assert_cmpint(roce_mr_create(n->e, &attr), ==, 0);
    return mr;
}

void link_mr_map(LinkMr *mr)
{
    g_assert_cmpint(roce_mr_map(mr->node->e, mr->attr.mrn, mr->attr.iova,
                                mr->attr.length, pages_copy(mr),
                                mr->attr.npages), ==, 0);
}

void link_mr_free(LinkMr *mr)
{
    g_array_append_vals(mr->node->free_pages, mr->pages, mr->attr.npages);
    roce_mr_destroy(mr->node->e, mr->attr.mrn);
    g_free(mr->pages);
    g_free(mr);
}

uint64_t link_dma(LinkMr *mr, size_t off)
{
    off += mr->attr.iova % RDMA_PAGE_SIZE;
    return mr->pages[off / RDMA_PAGE_SIZE] + off % RDMA_PAGE_SIZE;
}

/* The memory at @off. Reduces *@len to the rest of its page. */
static uint8_t *mr_host(LinkMr *mr, size_t off, size_t *len)
{
    uint64_t dma = link_dma(mr, off);
    size_t left = RDMA_PAGE_SIZE - dma % RDMA_PAGE_SIZE;

    *len = MIN(*len, left);
    return mr->node->mem + (dma - LINK_DMA_BASE);
}

void link_write(LinkMr *mr, size_t off, const void *buf, size_t len)
{
    const uint8_t *p = buf;

    while (len) {
        size_t n = len;
        uint8_t *host = mr_host(mr, off, &n);

        memcpy(host, p, n);
        p += n;
        off += n;
        len -= n;
    }
}

void link_read(LinkMr *mr, size_t off, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len) {
        size_t n = len;
        uint8_t *host = mr_host(mr, off, &n);

        memcpy(p, host, n);
        p += n;
        off += n;
        len -= n;
    }
}

void link_fill(LinkMr *mr, uint32_t seed)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    size_t off;

    for (off = 0; off < mr->attr.length; off += sizeof(x)) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        link_write(mr, off, &x, MIN(sizeof(x), mr->attr.length - off));
    }
}

void link_set(LinkMr *mr, uint8_t byte)
{
    size_t off = 0, n;

    while (off < mr->attr.length) {
        uint8_t *host;

        n = mr->attr.length - off;
        host = mr_host(mr, off, &n);
        memset(host, byte, n);
        off += n;
    }
}

bool link_same(LinkMr *a, size_t aoff, LinkMr *b, size_t boff, size_t len)
{
    g_autofree uint8_t *abuf = g_malloc(len);
    g_autofree uint8_t *bbuf = g_malloc(len);

    link_read(a, aoff, abuf, len);
    link_read(b, boff, bbuf, len);
    return len == 0 || memcmp(abuf, bbuf, len) == 0;
}
