/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory registration: checks, keys, and the page tables that are read from
 * guest memory.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/guest-random.h"
#include "qemu/log.h"
#include "system/dma.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

#define ACCESS_KNOWN (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                      RDMA_ACCESS_MW_BIND | RDMA_ACCESS_ZERO_BASED | \
                      RDMA_ACCESS_ON_DEMAND | RDMA_ACCESS_HUGETLB | \
                      RDMA_ACCESS_RELAXED_ORDERING)
/* What the backend is told: the others have no effect. */
#define ACCESS_EFFECTIVE (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                          RDMA_ACCESS_MW_BIND)

/* Entries of a page table that are read at a time. */
#define TABLE_CHUNK 512

static int check_access(uint32_t access)
{
    if (access & ~ACCESS_KNOWN) {
        return -EINVAL;
    }
    if (access & RDMA_ACCESS_ON_DEMAND) {
        return -ENOTSUP;
    }
    /* IBTA 10.6.3.1 */
    if ((access & (RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_ATOMIC)) &&
        !(access & RDMA_ACCESS_LOCAL_WRITE)) {
        return -EINVAL;
    }
    return 0;
}

/*
 * May a region of @length bytes at @iova have @npages pages? Nothing is
 * allocated for one that may not.
 */
static int check_range(VirtIORdma *s, uint64_t iova, uint64_t length,
                       uint32_t npages)
{
    uint64_t offset = iova & (RDMA_PAGE_SIZE - 1);

    if (length == 0 || length > s->limits.max_mr_size ||
        length > UINT64_MAX - iova) {
        return -EINVAL;
    }
    /* max_mr_size is far from where this could overflow. */
    if (npages != DIV_ROUND_UP(offset + length, RDMA_PAGE_SIZE)) {
        return -EINVAL;
    }
    return 0;
}

static int read_page_table(VirtIORdma *s, uint64_t addr, uint32_t npages,
                           uint64_t **table)
{
    AddressSpace *as = VIRTIO_DEVICE(s)->dma_as;
    uint64_t *pages;

    if (npages * sizeof(uint64_t) > UINT64_MAX - addr) {
        return -EINVAL;
    }
    if (npages > s->max_mr_pages - s->mr_pages) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %u more pages exceed "
                      "the %" PRIu64 " that all regions together may have\n",
                      npages, s->max_mr_pages);
        return -ENOMEM;
    }
    pages = g_try_new(uint64_t, npages);
    if (!pages) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < npages; i += TABLE_CHUNK) {
        uint32_t n = MIN(npages - i, TABLE_CHUNK);

        if (dma_memory_read(as, addr + i * sizeof(uint64_t), &pages[i],
                            n * sizeof(uint64_t), MEMTXATTRS_UNSPECIFIED)) {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: page table at 0x%"
                          PRIx64 " cannot be read\n", addr);
            g_free(pages);
            return -EINVAL;
        }
        for (uint32_t j = i; j < i + n; j++) {
            pages[j] = le64_to_cpu(pages[j]);
            if (pages[j] & (RDMA_PAGE_SIZE - 1)) {
                qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: entry %u of the "
                              "page table at 0x%" PRIx64 " is no page: 0x%"
                              PRIx64 "\n", j, addr, pages[j]);
                g_free(pages);
                return -EINVAL;
            }
        }
    }
    *table = pages;
    return 0;
}

/* The part of a key that tells a region from earlier ones of its number. */
static uint8_t random_key(void)
{
    uint8_t key;

    qemu_guest_getrandom_nofail(&key, sizeof(key));
    return key;
}

VirtIORdmaMr *virtio_rdma_add_mr(VirtIORdma *s, uint32_t mrn,
                                 VirtIORdmaPd *pd, uint32_t type)
{
    VirtIORdmaMr *mr = g_new0(VirtIORdmaMr, 1);

    mr->mrn = mrn;
    mr->type = type;
    mr->pd = pd;
    pd->users++;
    virtio_rdma_table_set(&s->mrs, mrn, mr);
    return mr;
}

void virtio_rdma_remove_mr(VirtIORdma *s, VirtIORdmaMr *mr)
{
    virtio_rdma_table_clear(&s->mrs, mr->mrn);
    s->mr_pages -= mr->npages;
    mr->pd->users--;
    g_free(mr);
}

/* Make a region of what @attr says and has room for: it gets its number. */
static int create_mr(VirtIORdma *s, VirtIORdmaCtrl *c, RdmaMrAttr *attr)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, c->req.mr.pdn);
    VirtIORdmaMr *mr;

    if (!pd) {
        return -ENOENT;
    }
    if (!virtio_rdma_table_find(&s->mrs, &attr->mrn)) {
        return -ENOMEM;
    }
    attr->pdn = pd->pdn;
    attr->access = c->req.mr.access & ACCESS_EFFECTIVE;
    attr->lkey = attr->mrn << 8 | random_key();
    /* Which rights a fast registration grants is decided by REG_MR. */
    if ((attr->access & RDMA_ACCESS_REMOTE) ||
        attr->type == RDMA_MR_FAST_REG) {
        attr->rkey = attr->lkey;
    }
    if (attr->npages) {
        int ret = read_page_table(s, c->req.mr.pages, attr->npages,
                                  &attr->pages);

        if (ret) {
            return ret;
        }
    }
    mr = virtio_rdma_add_mr(s, attr->mrn, pd, attr->type);
    mr->key = attr->lkey;
    mr->rkey = attr->rkey;
    mr->npages = attr->npages;
    mr->max_pages = attr->max_pages;
    s->mr_pages += attr->npages;
    c->obj = mr;
    c->pages = attr->pages;
    trace_virtio_rdma_create_mr(s, mr->mrn, mr->type, mr->key, attr->access,
                                attr->iova, attr->length);
    return s->bc->create_mr(s->backend, attr);
}

int virtio_rdma_get_dma_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    RdmaMrAttr attr = { .type = RDMA_MR_DMA };
    int ret = check_access(c->req.mr.access);

    if (ret) {
        return ret;
    }
    if (c->req.mr.access & RDMA_ACCESS_REMOTE) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: remote access to all of "
                      "memory was asked for and is refused\n");
        return -EPERM;
    }
    return create_mr(s, c, &attr);
}

int virtio_rdma_create_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    RdmaMrAttr attr = {
        .type = RDMA_MR_FAST_REG,
        .max_pages = c->req.mr.max_num_sg,
    };
    int ret = check_access(c->req.mr.access);

    if (ret) {
        return ret;
    }
    if (attr.max_pages == 0 || attr.max_pages > VIRTIO_RDMA_MAX_PAGE_LIST) {
        return -EINVAL;
    }
    return create_mr(s, c, &attr);
}

int virtio_rdma_reg_user_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    RdmaMrAttr attr = {
        .type = RDMA_MR_USER,
        .iova = c->req.mr.virt_addr,
        .length = c->req.mr.length,
        .npages = c->req.mr.npages,
    };
    uint64_t start = c->req.mr.start;
    int ret = check_access(c->req.mr.access);

    if (!ret) {
        ret = check_range(s, attr.iova, attr.length, attr.npages);
    }
    if (ret) {
        return ret;
    }
    if ((start ^ attr.iova) & (RDMA_PAGE_SIZE - 1) ||
        attr.length > UINT64_MAX - start) {
        return -EINVAL;
    }
    return create_mr(s, c, &attr);
}

void virtio_rdma_create_mr_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaMr *mr = c->obj;

    if (!ret) {
        c->rsp.mr.mrn = mr->mrn;
        c->rsp.mr.lkey = mr->key;
        c->rsp.mr.rkey = mr->rkey;
    } else if (mr) {
        virtio_rdma_remove_mr(s, mr);
        g_free(c->pages);
    }
}

int virtio_rdma_map_mr_sg(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaMr *mr = virtio_rdma_table_get(&s->mrs, c->req.map_mr.mrn);
    uint64_t iova = c->req.map_mr.start;
    uint64_t length = c->req.map_mr.length;
    uint32_t npages = c->req.map_mr.npages;
    int ret;

    if (!mr) {
        return -ENOENT;
    }
    if (mr->type != RDMA_MR_FAST_REG || npages > mr->max_pages) {
        return -EINVAL;
    }
    ret = check_range(s, iova, length, npages);
    if (!ret) {
        ret = read_page_table(s, c->req.map_mr.pages, npages, &c->pages);
    }
    if (ret) {
        return ret;
    }
    c->obj = mr;
    trace_virtio_rdma_map_mr(s, mr->mrn, iova, length);
    return s->bc->map_mr(s->backend, mr->mrn, iova, length, c->pages, npages);
}

void virtio_rdma_map_mr_sg_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaMr *mr = c->obj;

    if (!ret) {
        s->mr_pages += c->req.map_mr.npages;
        s->mr_pages -= mr->npages;
        mr->npages = c->req.map_mr.npages;
        c->rsp.map_mr.npages = mr->npages;
    } else {
        g_free(c->pages);
    }
}

int virtio_rdma_dereg_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaMr *mr = virtio_rdma_table_get(&s->mrs, c->req.destroy.id);

    if (!mr) {
        return -ENOENT;
    }
    c->obj = mr;
    return s->bc->destroy_mr(s->backend, mr->mrn);
}

void virtio_rdma_dereg_mr_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    if (!ret) {
        trace_virtio_rdma_dereg_mr(s, ((VirtIORdmaMr *)c->obj)->mrn);
        virtio_rdma_remove_mr(s, c->obj);
    }
}
