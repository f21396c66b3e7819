/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: checks, keys and the commands.
 */
#include "qemu/osdep.h"
#include "qemu/guest-random.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-object.h"

#define ACCESS_KNOWN (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                      RDMA_ACCESS_MW_BIND | RDMA_ACCESS_HINTS | \
                      RDMA_ACCESS_ON_DEMAND)
/* Flags that the backend is told; the others have no effect. */
#define ACCESS_EFFECTIVE (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                          RDMA_ACCESS_MW_BIND | RDMA_ACCESS_FLUSH_GLOBAL)
/* Flags that let peers access the region, so that it has an rkey. */
#define ACCESS_PEERS (RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH)

static int check_access(VirtIORdma *s, uint32_t access)
{
    uint32_t known = ACCESS_KNOWN;

    if (virtio_rdma_has(s, VIRTIO_RDMA_F_FLUSH)) {
        known |= RDMA_ACCESS_FLUSH;
    }
    if (!virtio_rdma_check_flags("access", access, known)) {
        return -EINVAL;
    }
    if (access & (RDMA_ACCESS_ON_DEMAND | RDMA_ACCESS_FLUSH_PERSISTENT)) {
        return -ENOTSUP;
    }
    /* Remote write and atomic need local write (IBTA 10.6.3.1). */
    if ((access & (RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_ATOMIC)) &&
        !(access & RDMA_ACCESS_LOCAL_WRITE)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: access 0x%x has remote "
                      "write or atomic without local write\n", access);
        return -EINVAL;
    }
    return 0;
}

uint32_t virtio_rdma_mr_new_key(uint32_t mrn)
{
    uint8_t low;

    qemu_guest_getrandom_nofail(&low, sizeof(low));
    return mrn << 8 | low;
}

RdmaHcaMr *virtio_rdma_mr_add(VirtIORdma *s, uint32_t mrn,
                              RdmaHcaPd *pd, uint32_t type)
{
    RdmaHcaMr *mr = g_new0(RdmaHcaMr, 1);

    mr->mrn = mrn;
    mr->type = type;
    mr->pd = pd;
    pd->users++;
    rdma_hca_table_set(&s->hca.mrs, mrn, mr);
    return mr;
}

void virtio_rdma_mr_remove(VirtIORdma *s, RdmaHcaMr *mr)
{
    rdma_hca_table_clear(&s->hca.mrs, mr->mrn);
    s->hca.mr_pages -= mr->npages + mr->pending;
    s->hca.n_mws -= mr->mw_type != 0;
    mr->pd->users--;
    g_free(mr);
}

static void put_mr(VirtIORdmaRsp *rsp, const RdmaHcaMr *mr)
{
    rsp->mr.mrn = mr->mrn;
    rsp->mr.lkey = mr->key;
    rsp->mr.rkey = mr->rkey;
}

/*
 * The backend has returned @ret for the list that @attr has, and that @pages
 * tells where to find; it does not count any more.
 */
static void give_back(VirtIORdma *s, int ret, RdmaMrAttr *attr,
                      const VirtIORdmaPages *pages)
{
    if (ret != -EINPROGRESS) {
        g_free(attr->pages);
    } else if (attr->npages) {
        virtio_rdma_pages_keep(s, pages);
    }
}

/* Make a region as @attr says, which gets number, keys, PD and pages here. */
static int create_mr(VirtIORdma *s, const VirtIORdmaReq *req,
                     VirtIORdmaRsp *rsp, RdmaMrAttr *attr,
                     const VirtIORdmaPages *pages)
{
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, req->mr.pdn);
    RdmaHcaMr *mr;
    int ret;

    if (!pd) {
        return -ENOENT;
    }
    if (s->hca.mrs.count - s->hca.n_mws >= s->hca.limits.max_mr ||
        !rdma_hca_table_find(&s->hca.mrs, &attr->mrn)) {
        return -ENOMEM;
    }
    attr->pdn = pd->pdn;
    attr->access = req->mr.access & ACCESS_EFFECTIVE;
    attr->lkey = virtio_rdma_mr_new_key(attr->mrn);
    /* REG_MR decides about the access that a fast registration grants. */
    if ((attr->access & ACCESS_PEERS) ||
        attr->type == RDMA_MR_FAST_REG) {
        attr->rkey = attr->lkey;
    }
    if (pages) {
        ret = virtio_rdma_pages_read_on(s, pages, &attr->pages);
        if (ret) {
            return ret;
        }
    }
    mr = virtio_rdma_mr_add(s, attr->mrn, pd, attr->type);
    mr->max_pages = attr->max_pages;
    mr->npages = attr->npages;
    trace_virtio_rdma_mr_create(s, mr->mrn, mr->type, attr->lkey,
                                attr->access, attr->iova, attr->length);
    ret = s->hca.bc->create_mr(s->hca.backend, attr);
    if (ret) {
        virtio_rdma_mr_remove(s, mr);
        if (ret == -EINPROGRESS) {
            rdma_hca_table_again(&s->hca.mrs, attr->mrn);
        }
        give_back(s, ret, attr, pages);
        return ret;
    }
    mr->key = attr->lkey;
    mr->rkey = attr->rkey;
    put_mr(rsp, mr);
    return 0;
}

int virtio_rdma_mr_get_dma(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    RdmaMrAttr attr = { .type = RDMA_MR_DMA };
    int ret = check_access(s, req->mr.access);

    if (ret) {
        return ret;
    }
    if (req->mr.access & ACCESS_PEERS) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: access 0x%x to all of "
                      "memory has remote rights, which are refused\n",
                      req->mr.access);
        return -EPERM;
    }
    return create_mr(s, req, rsp, &attr, NULL);
}

static int check_mem_mgt(VirtIORdma *s)
{
    if (virtio_rdma_mem_mgt(s)) {
        return 0;
    }
    qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: fast registration without "
                  "the capability MEM_MGT_EXTENSIONS\n");
    return -ENOTSUP;
}

int virtio_rdma_mr_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaMrAttr attr = {
        .type = RDMA_MR_FAST_REG,
        .max_pages = req->mr.max_num_sg,
    };
    int ret = check_mem_mgt(s);

    if (!ret) {
        ret = check_access(s, req->mr.access);
    }
    if (ret) {
        return ret;
    }
    if (!virtio_rdma_check_range("max_num_sg", attr.max_pages, 1,
                                 VIRTIO_RDMA_MAX_PAGE_LIST)) {
        return -EINVAL;
    }
    return create_mr(s, req, rsp, &attr, NULL);
}

/*
 * Check the translation of a request and put it into @attr; @p tells where its
 * page list is.
 */
static int user_pages(VirtIORdma *s, const VirtIORdmaReq *req,
                      RdmaMrAttr *attr, VirtIORdmaPages *p)
{
    uint64_t start = req->mr.start;
    int ret;

    *p = req->mr.pages;
    if (!virtio_rdma_has(s, VIRTIO_RDMA_F_MR_TABLES)) {
        p->page_shift = 0;
        p->levels = 0;
    }
    ret = virtio_rdma_pages_check(s, p);
    if (ret) {
        return ret;
    }
    if ((start ^ p->iova) & ((1ULL << p->page_shift) - 1) ||
        p->length > UINT64_MAX - start) {
        return -EINVAL;
    }
    attr->iova = p->iova;
    attr->length = p->length;
    attr->npages = p->npages;
    attr->page_shift = p->page_shift;
    return 0;
}

int virtio_rdma_mr_reg_user(VirtIORdma *s, const VirtIORdmaReq *req,
                            VirtIORdmaRsp *rsp)
{
    RdmaMrAttr attr = { .type = RDMA_MR_USER };
    VirtIORdmaPages pages;
    int ret = check_access(s, req->mr.access);

    if (!ret) {
        ret = user_pages(s, req, &attr, &pages);
    }
    if (ret) {
        return ret;
    }
    return create_mr(s, req, rsp, &attr, &pages);
}

int virtio_rdma_mr_rereg(VirtIORdma *s, const VirtIORdmaReq *req,
                         VirtIORdmaRsp *rsp)
{
    RdmaHcaMr *mr = rdma_hca_mr_get(&s->hca, req->mr.mrn);
    uint32_t flags = req->mr.flags;
    VirtIORdmaPages pages;
    RdmaMrAttr attr;
    int ret = 0;

    if (!mr) {
        return -ENOENT;
    }
    if (!flags || mr->type != RDMA_MR_USER ||
        !virtio_rdma_check_flags("flags", flags, RDMA_REREG_FLAGS)) {
        return -EINVAL;
    }
    attr = (RdmaMrAttr) {
        .mrn = mr->mrn,
        .type = mr->type,
        .pdn = mr->pd->pdn,
        .rkey = mr->rkey,
    };
    if (flags & RDMA_REREG_PD) {
        attr.pdn = req->mr.pdn;
        if (!rdma_hca_table_get(&s->hca.pds, attr.pdn)) {
            return -ENOENT;
        }
    }
    if (flags & RDMA_REREG_ACCESS) {
        ret = check_access(s, req->mr.access);
        attr.access = req->mr.access & ACCESS_EFFECTIVE;
        attr.rkey = attr.access & ACCESS_PEERS;
    }
    if (!ret && (flags & RDMA_REREG_TRANSLATION)) {
        ret = user_pages(s, req, &attr, &pages);
    }
    if (ret) {
        return ret;
    }
    attr.lkey = mr->key;
    /* Holders of the old key must not access other memory with it. */
    while ((flags & RDMA_REREG_TRANSLATION) && attr.lkey == mr->key) {
        attr.lkey = virtio_rdma_mr_new_key(mr->mrn);
    }
    attr.rkey = attr.rkey ? attr.lkey : 0;

    /* The old list stays until the backend has taken the new one. */
    if (attr.npages) {
        ret = virtio_rdma_pages_read_on(s, &pages, &attr.pages);
        if (ret) {
            return ret;
        }
    }
    trace_virtio_rdma_mr_rereg(s, mr->mrn, flags, attr.lkey);
    ret = s->hca.bc->modify_mr(s->hca.backend, flags, &attr);
    if (ret) {
        s->hca.mr_pages -= attr.npages;
        give_back(s, ret, &attr, &pages);
        return ret;
    }
    mr->key = attr.lkey;
    mr->rkey = attr.rkey;
    mr->pd->users--;
    mr->pd = rdma_hca_table_get(&s->hca.pds, attr.pdn);
    mr->pd->users++;
    if (attr.npages) {
        s->hca.mr_pages -= mr->npages;
        mr->npages = attr.npages;
    }
    put_mr(rsp, mr);
    return 0;
}

int virtio_rdma_mr_map_sg(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaMr *mr = rdma_hca_mr_get(&s->hca, req->map_mr.mrn);
    VirtIORdmaPages p = req->map_mr.pages;
    uint64_t *pages;
    uint32_t in_use;
    int ret = check_mem_mgt(s);

    if (ret) {
        return ret;
    }
    if (!mr) {
        return -ENOENT;
    }
    if (mr->type != RDMA_MR_FAST_REG ||
        !virtio_rdma_check_range("npages", p.npages, 0, mr->max_pages)) {
        return -EINVAL;
    }
    ret = virtio_rdma_pages_check(s, &p);
    if (!ret) {
        ret = virtio_rdma_pages_read_on(s, &p, &pages);
    }
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_mr_map(s, mr->mrn, p.iova, p.length);
    ret = s->hca.bc->map_mr(s->hca.backend, mr->mrn, p.iova, p.length, pages,
                            p.npages);
    if (ret) {
        s->hca.mr_pages -= p.npages;
        if (ret == -EINPROGRESS) {
            virtio_rdma_pages_keep(s, &p);
        } else {
            g_free(pages);
        }
        return ret;
    }
    /* The backend may use the pending list by now, or has dropped it. */
    in_use = MAX(mr->npages, mr->pending);
    s->hca.mr_pages -= mr->npages + mr->pending - in_use;
    mr->npages = in_use;
    mr->pending = p.npages;
    rsp->map_mr.npages = p.npages;
    return 0;
}

int virtio_rdma_mr_dereg(VirtIORdma *s, const VirtIORdmaReq *req,
                         VirtIORdmaRsp *rsp)
{
    RdmaHcaMr *mr = rdma_hca_mr_get(&s->hca, req->destroy.id);
    int ret;

    if (!mr) {
        return -ENOENT;
    }
    ret = s->hca.bc->destroy(s->hca.backend, RDMA_OBJECT_MR, mr->mrn);
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_mr_dereg(s, mr->mrn);
    virtio_rdma_mr_remove(s, mr);
    return 0;
}
