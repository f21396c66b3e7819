/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of memory regions: what a driver may ask for, and the lists and
 * tables that are read from guest memory.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "system/dma.h"
#include "virtio-rdma-internal.h"

/* Page tables are pages of addresses, each of which has 8 bytes. */
#define TABLE_SHIFT 12
#define TABLE_SIZE (1u << TABLE_SHIFT)
#define INDEX_BITS 9
#define TABLE_ENTRIES (1u << INDEX_BITS)
#define MAX_LEVELS 3

int virtio_rdma_check_pages(VirtIORdma *s, VirtIORdmaPages *p)
{
    uint64_t page_size, offset;

    if (!p->page_shift) {
        p->page_shift = RDMA_PAGE_SHIFT;
    }
    if (p->page_shift > 63 ||
        !(VIRTIO_RDMA_MR_PAGE_SIZES & (1ULL << p->page_shift))) {
        return -EINVAL;
    }
    page_size = 1ULL << p->page_shift;
    offset = p->iova & (page_size - 1);
    if (p->length == 0 || p->length > s->limits.max_mr_size ||
        p->length > UINT64_MAX - p->iova) {
        return -EINVAL;
    }
    /* max_mr_size is far from where this could overflow. */
    if (p->npages != DIV_ROUND_UP(offset + p->length, page_size)) {
        return -EINVAL;
    }
    if (p->levels > MAX_LEVELS ||
        (p->levels && (p->npages - 1) >> (p->levels * INDEX_BITS))) {
        return -EINVAL;
    }
    return 0;
}

int virtio_rdma_charge_pages(VirtIORdma *s, uint32_t npages)
{
    if (npages > s->max_mr_pages - s->mr_pages) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %u more pages exceed "
                      "the %" PRIu64 " that all regions together may have\n",
                      npages, s->max_mr_pages);
        return -ENOMEM;
    }
    s->mr_pages += npages;
    return 0;
}

void virtio_rdma_pass_pages(VirtIORdma *s, const VirtIORdmaInflight *inflight)
{
    VirtIORdmaMr *mr;

    if (!inflight->npages) {
        return;
    }
    s->mr_pages -= inflight->npages;
    mr = virtio_rdma_get_mr(s, inflight->mrn);
    if (mr && mr->type == RDMA_MR_FAST_REG) {
        uint32_t npages = MAX(mr->npages, MIN(inflight->npages,
                                              mr->max_pages));

        s->mr_pages += npages - mr->npages;
        mr->npages = npages;
    }
}

/* Read @n addresses of things of 2^@shift bytes, which lie at @addr. */
static int read_entries(VirtIORdma *s, uint64_t addr, uint32_t n,
                        uint32_t shift, uint64_t *entries)
{
    uint64_t low = (1ULL << shift) - 1;

    if (dma_memory_read(VIRTIO_DEVICE(s)->dma_as, addr, entries,
                        n * sizeof(uint64_t), MEMTXATTRS_UNSPECIFIED)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: page table at 0x%"
                      PRIx64 " cannot be read\n", addr);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < n; i++) {
        entries[i] = le64_to_cpu(entries[i]);
        if (entries[i] & low) {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: entry %u of the "
                          "page table at 0x%" PRIx64 " is not aligned to "
                          "2^%u: 0x%" PRIx64 "\n", i, addr, shift,
                          entries[i]);
            return -EINVAL;
        }
    }
    return 0;
}

/* A list is read in pieces of the size of a table. */
static int read_list(VirtIORdma *s, const VirtIORdmaPages *p,
                     uint64_t *entries)
{
    int ret = 0;

    if (p->npages * sizeof(uint64_t) > UINT64_MAX - p->table) {
        return -EINVAL;
    }
    for (uint64_t i = 0; i < p->npages && !ret; i += TABLE_ENTRIES) {
        ret = read_entries(s, p->table + i * sizeof(uint64_t),
                           MIN(p->npages - i, TABLE_ENTRIES), p->page_shift,
                           &entries[i]);
    }
    return ret;
}

/* The @n entries of all tables at one level of the tree. */
static int read_level(VirtIORdma *s, const uint64_t *tables, uint32_t n,
                      uint32_t shift, uint64_t *entries)
{
    int ret = 0;

    for (uint64_t i = 0; i < n && !ret; i += TABLE_ENTRIES) {
        ret = read_entries(s, tables[i / TABLE_ENTRIES],
                           MIN(n - i, TABLE_ENTRIES), shift, &entries[i]);
    }
    return ret;
}

/* @entries has room for all pages; the tables above are less than that. */
static int read_tree(VirtIORdma *s, const VirtIORdmaPages *p,
                     uint64_t *entries)
{
    g_autofree uint64_t *tables = g_new(uint64_t, 1);

    if (p->table & (TABLE_SIZE - 1)) {
        return -EINVAL;
    }
    tables[0] = p->table;
    for (uint32_t level = p->levels; level > 1; level--) {
        uint32_t n = DIV_ROUND_UP(p->npages,
                                  1u << ((level - 1) * INDEX_BITS));
        g_autofree uint64_t *below = g_try_new(uint64_t, n);
        int ret;

        if (!below) {
            return -ENOMEM;
        }
        ret = read_level(s, tables, n, TABLE_SHIFT, below);
        if (ret) {
            return ret;
        }
        g_free(tables);
        tables = g_steal_pointer(&below);
    }
    return read_level(s, tables, p->npages, p->page_shift, entries);
}

int virtio_rdma_read_pages(VirtIORdma *s, const VirtIORdmaPages *p,
                           uint64_t **pages)
{
    g_autofree uint64_t *entries = g_try_new(uint64_t, p->npages);
    int ret;

    if (!entries) {
        return -ENOMEM;
    }
    ret = p->levels ? read_tree(s, p, entries) : read_list(s, p, entries);
    if (!ret) {
        *pages = g_steal_pointer(&entries);
    }
    return ret;
}
