/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: keys, ranges, and the way from there to DMA addresses
 * (IBTA 10.6).
 */
#include <glib.h>
#include "roce-int.h"

int roce_mr_create(RoceEngine *e, const RdmaMrAttr *attr)
{
    RoceMr *mr;

    if (attr->mrn < 1 || attr->mrn > e->config.max_mr ||
        attr->lkey >> 8 != attr->mrn) {
        return -EINVAL;
    }
    switch (attr->type) {
    case RDMA_MR_DMA:
        if (attr->pages || attr->rkey) {
            return -EINVAL;
        }
        break;
    case RDMA_MR_USER:
        if (!attr->pages || !attr->npages) {
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
    if (e->mrs[attr->mrn]) {
        return -EEXIST;
    }

    mr = g_new0(RoceMr, 1);
    mr->attr = *attr;
    mr->valid = attr->type != RDMA_MR_FAST_REG;
    e->mrs[attr->mrn] = mr;
    return 0;
}

int roce_mr_map(RoceEngine *e, uint32_t mrn, uint64_t iova, uint64_t length,
                uint64_t *pages, uint32_t npages)
{
    RoceMr *mr = mrn <= e->config.max_mr ? e->mrs[mrn] : NULL;

    if (!mr) {
        return -ENOENT;
    }
    if (mr->attr.type != RDMA_MR_FAST_REG) {
        return -EINVAL;
    }
    if (npages > mr->attr.max_pages) {
        return -E2BIG;
    }
    g_free(mr->pending_pages);
    mr->pending = true;
    mr->pending_iova = iova;
    mr->pending_length = length;
    mr->pending_pages = pages;
    mr->pending_npages = npages;
    return 0;
}

void roce_mr_free(RoceMr *mr)
{
    g_free(mr->attr.pages);
    g_free(mr->pending_pages);
    g_free(mr);
}

int roce_mr_destroy(RoceEngine *e, uint32_t mrn)
{
    if (mrn > e->config.max_mr || !e->mrs[mrn]) {
        return -ENOENT;
    }
    roce_mr_free(e->mrs[mrn]);
    e->mrs[mrn] = NULL;
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
    RoceMr *mr = mrn <= e->config.max_mr ? e->mrs[mrn] : NULL;

    if (!mr || !mr->valid || mr->attr.lkey != lkey || mr->attr.pdn != pdn ||
        (mr->attr.access & access) != access || !mr_covers(mr, addr, len)) {
        return NULL;
    }
    return mr;
}

RoceMr *roce_mr_remote(const RoceEngine *e, uint32_t pdn, uint32_t rkey,
                       uint32_t access, uint64_t addr, uint32_t len)
{
    uint32_t mrn = rkey >> 8;
    RoceMr *mr = mrn <= e->config.max_mr ? e->mrs[mrn] : NULL;

    /* An MR without remote access has rkey 0, which names no mrn */
    if (!mr || !mr->valid || mr->attr.rkey != rkey || mr->attr.pdn != pdn ||
        mr->attr.type == RDMA_MR_DMA ||
        (mr->attr.access & access) != access || !mr_covers(mr, addr, len)) {
        return NULL;
    }
    return mr;
}

uint64_t roce_mr_dma(const RoceMr *mr, uint64_t addr, uint64_t *len)
{
    const RdmaMrAttr *attr = &mr->attr;
    uint64_t off, page, run;

    if (attr->type == RDMA_MR_DMA) {
        return addr;
    }
    off = addr - attr->iova + attr->iova % RDMA_PAGE_SIZE;
    page = off >> RDMA_PAGE_SHIFT;
    off %= RDMA_PAGE_SIZE;
    addr = attr->pages[page] + off;

    run = RDMA_PAGE_SIZE - off;
    while (run < *len && page + 1 < attr->npages &&
           attr->pages[page + 1] == attr->pages[page] + RDMA_PAGE_SIZE) {
        page++;
        run += RDMA_PAGE_SIZE;
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
        /* With a QP that talks to itself, both may be the same memory */
        memmove(host, p, n);
        e->ops.unmap(e->opaque, host, n, true, n);
        addr += n;
        p += n;
        len -= n;
    }
    return true;
}

bool roce_mr_register(RoceEngine *e, uint32_t pdn, uint32_t mrn, uint32_t key,
                      uint32_t access)
{
    RoceMr *mr = mrn <= e->config.max_mr ? e->mrs[mrn] : NULL;
    RdmaMrAttr *attr;

    if (!mr || mr->attr.type != RDMA_MR_FAST_REG || mr->attr.pdn != pdn ||
        mr->valid || !mr->pending || key >> 8 != mrn) {
        return false;
    }
    /* Remote writes and atomics write locally as well (IBTA 10.6.3.1) */
    if ((access & (RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_ATOMIC)) &&
        !(access & RDMA_ACCESS_LOCAL_WRITE)) {
        return false;
    }
    attr = &mr->attr;
    g_free(attr->pages);
    attr->pages = g_steal_pointer(&mr->pending_pages);
    attr->npages = mr->pending_npages;
    attr->iova = mr->pending_iova;
    attr->length = mr->pending_length;
    attr->access = access;
    attr->lkey = key;
    attr->rkey = access & RDMA_ACCESS_REMOTE ? key : 0;
    mr->pending = false;
    mr->valid = true;
    return true;
}

bool roce_mr_invalidate(RoceEngine *e, uint32_t pdn, uint32_t key,
                        bool remote)
{
    uint32_t mrn = key >> 8;
    RoceMr *mr = mrn <= e->config.max_mr ? e->mrs[mrn] : NULL;

    if (!mr || mr->attr.type != RDMA_MR_FAST_REG || !mr->valid ||
        mr->attr.pdn != pdn ||
        (remote ? mr->attr.rkey : mr->attr.lkey) != key) {
        return false;
    }
    mr->valid = false;
    return true;
}
