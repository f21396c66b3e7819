/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: keys, ranges, and their translation to DMA addresses (IBTA
 * 10.6).
 */
#include <glib.h>
#include "mem/mem.h"

/* Only user MRs may have pages of another size than RDMA_PAGE_SIZE. */
static bool page_shift_ok(const RdmaMrAttr *attr)
{
    return attr->page_shift == 0 || attr->page_shift == RDMA_PAGE_SHIFT ||
           (attr->type == RDMA_MR_USER &&
            attr->page_shift > RDMA_PAGE_SHIFT &&
            attr->page_shift <= ROCE_MAX_PAGE_SHIFT);
}

bool roce_mr_pages_ok(uint64_t iova, uint64_t length, uint32_t npages,
                      uint8_t shift)
{
    uint64_t size = UINT64_C(1) << shift;

    return length && length <= UINT64_MAX - iova &&
           length <= UINT64_MAX - 2 * size &&
           npages == ((iova & (size - 1)) + length + size - 1) >> shift;
}

/* Does the page list of a user MR fit? page_shift_ok() was true. */
static bool user_pages_ok(const RdmaMrAttr *attr)
{
    return attr->pages &&
           roce_mr_pages_ok(attr->iova, attr->length, attr->npages,
                            MAX(attr->page_shift, RDMA_PAGE_SHIFT));
}

RoceMr *roce_mr_find(const RoceEngine *e, uint32_t mrn)
{
    RoceMr *mr = roce_table_get(&e->mrs, mrn);

    return mr && !mr->mw_type ? mr : NULL;
}

int roce_mr_create(RoceEngine *e, const RdmaMrAttr *attr)
{
    RoceMr *mr;

    if (attr->mrn < 1 || attr->mrn > e->config.max_mr ||
        attr->lkey >> 8 != attr->mrn || !page_shift_ok(attr)) {
        return -EINVAL;
    }
    switch (attr->type) {
    case RDMA_MR_DMA:
        if (attr->pages || attr->rkey) {
            return -EINVAL;
        }
        break;
    case RDMA_MR_USER:
        if (!user_pages_ok(attr)) {
            return -EINVAL;
        }
        break;
    case RDMA_MR_FAST_REG:
        if (attr->pages) {
            return -EINVAL;
        }
        break;
    default:
        return -EINVAL;
    }
    if (roce_table_get(&e->mrs, attr->mrn)) {
        return -EEXIST;
    }

    mr = g_new0(RoceMr, 1);
    mr->attr = *attr;
    mr->attr.page_shift = MAX(attr->page_shift, RDMA_PAGE_SHIFT);
    mr->valid = attr->type != RDMA_MR_FAST_REG;
    roce_table_set(&e->mrs, attr->mrn, mr);
    return 0;
}

int roce_mr_map(RoceEngine *e, uint32_t mrn, uint64_t iova, uint64_t length,
                uint64_t *pages, uint32_t npages)
{
    RoceMr *mr = roce_mr_find(e, mrn);

    if (!mr) {
        return -ENOENT;
    }
    if (mr->attr.type != RDMA_MR_FAST_REG) {
        return -EINVAL;
    }
    if (npages > mr->attr.max_pages) {
        return -E2BIG;
    }
    if (!roce_mr_pages_ok(iova, length, npages, RDMA_PAGE_SHIFT)) {
        return -EINVAL;
    }
    g_free(mr->pending_pages);
    mr->pending = true;
    mr->pending_iova = iova;
    mr->pending_length = length;
    mr->pending_pages = pages;
    mr->pending_npages = npages;
    return 0;
}

void roce_mr_free(RoceEngine *e, RoceMr *mr)
{
    roce_free_large(e, mr->attr.pages,
                    mr->attr.npages * sizeof(*mr->attr.pages));
    g_free(mr->pending_pages);
    g_free(mr);
}

int roce_mr_destroy(RoceEngine *e, uint32_t mrn)
{
    RoceMr *mr = roce_mr_find(e, mrn);

    if (!mr) {
        return -ENOENT;
    }
    if (mr->windows) {
        return -EBUSY;
    }
    roce_mr_free(e, mr);
    roce_table_clear(&e->mrs, mrn);
    return 0;
}

int roce_mr_modify(RoceEngine *e, uint32_t mask, const RdmaMrAttr *attr)
{
    RoceMr *mr = roce_mr_find(e, attr->mrn);
    RdmaMrAttr *a;

    if (!mr) {
        return -ENOENT;
    }
    a = &mr->attr;
    if (a->type != RDMA_MR_USER || !mask || (mask & ~RDMA_REREG_FLAGS) ||
        attr->lkey >> 8 != a->mrn ||
        (attr->rkey && attr->rkey >> 8 != a->mrn)) {
        return -EINVAL;
    }
    if ((mask & RDMA_REREG_TRANSLATION) &&
        (attr->type != RDMA_MR_USER || !page_shift_ok(attr) ||
         !user_pages_ok(attr))) {
        return -EINVAL;
    }
    if (mr->windows) {
        return -EBUSY;
    }
    if (mask & RDMA_REREG_TRANSLATION) {
        roce_free_large(e, a->pages, a->npages * sizeof(*a->pages));
        a->pages = attr->pages;
        a->npages = attr->npages;
        a->page_shift = MAX(attr->page_shift, RDMA_PAGE_SHIFT);
        a->iova = attr->iova;
        a->length = attr->length;
    }
    if (mask & RDMA_REREG_PD) {
        a->pdn = attr->pdn;
    }
    if (mask & RDMA_REREG_ACCESS) {
        a->access = attr->access;
    }
    a->lkey = attr->lkey;
    a->rkey = attr->rkey;
    return 0;
}

static bool mr_covers(const RoceMr *mr, uint64_t addr, uint32_t len)
{
    if (mr->attr.type == RDMA_MR_DMA) {
        return len - 1 <= UINT64_MAX - addr;
    }
    return addr >= mr->attr.iova && len <= mr->attr.length &&
           addr - mr->attr.iova <= mr->attr.length - len;
}

RoceMr *roce_mr_local(const RoceEngine *e, uint32_t pdn, uint32_t lkey,
                      uint32_t access, uint64_t addr, uint32_t len)
{
    uint32_t mrn = lkey >> 8;
    RoceMr *mr = roce_table_get(&e->mrs, mrn);

    if (!mr || !mr->valid || mr->attr.lkey != lkey || mr->attr.pdn != pdn ||
        (mr->attr.access & access) != access || !mr_covers(mr, addr, len)) {
        return NULL;
    }
    return mr;
}

RoceMr *roce_mr_remote(const RoceEngine *e, uint32_t pdn, uint32_t qpn,
                       uint32_t rkey, uint32_t access, uint64_t *addr,
                       uint32_t len)
{
    uint32_t mrn = rkey >> 8;
    RoceMr *mr = roce_table_get(&e->mrs, mrn);

    /* rkey 0, of an MR without remote access, cannot match: mrns begin at 1. */
    if (!mr || !mr->valid || mr->attr.rkey != rkey || mr->attr.pdn != pdn ||
        (mr->attr.access & access) != access || !mr_covers(mr, *addr, len)) {
        return NULL;
    }
    if (mr->mw_type) {
        if (mr->mw_type == RDMA_MW_TYPE_2 && mr->qpn != qpn) {
            return NULL;
        }
        *addr += mr->region_off;
        return mr->region;
    }
    return mr->attr.type == RDMA_MR_DMA ? NULL : mr;
}

bool roce_mr_grants(const RoceEngine *e, uint32_t pdn, uint32_t rkey,
                    uint32_t access)
{
    const RoceMr *mr = roce_mr_find(e, rkey >> 8);

    return mr && mr->valid && mr->attr.type != RDMA_MR_DMA &&
           mr->attr.rkey == rkey && mr->attr.pdn == pdn &&
           (mr->attr.access & access) == access;
}

uint64_t roce_mr_dma(const RoceMr *mr, uint64_t addr, uint64_t *len)
{
    const RdmaMrAttr *attr = &mr->attr;
    uint64_t size, off, page, run;

    if (attr->type == RDMA_MR_DMA) {
        return addr;
    }
    size = UINT64_C(1) << attr->page_shift;
    off = addr - attr->iova + (attr->iova & (size - 1));
    page = off >> attr->page_shift;
    off &= size - 1;
    addr = attr->pages[page] + off;

    run = size - off;
    while (run < *len && page + 1 < attr->npages &&
           attr->pages[page + 1] == attr->pages[page] + size) {
        page++;
        run += size;
    }
    *len = MIN(*len, run);
    return addr;
}

bool roce_mr_write(RoceEngine *e, const RoceMr *mr, uint64_t addr,
                   const void *buf, size_t len)
{
    const uint8_t *p = buf;

    while (len) {
        uint64_t n = len;
        uint64_t dma = roce_mr_dma(mr, addr, &n);
        void *host = e->ops.map(e->opaque, dma, &n, true);

        if (!host) {
            return false;
        }
        /* If a QP sends to itself, the two ranges may overlap. */
        memmove(host, p, n);
        e->ops.unmap(e->opaque, host, n, true, n);
        addr += n;
        p += n;
        len -= n;
    }
    return true;
}
