/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: checks, keys and the commands.
 */
#include "qemu/osdep.h"
#include "qemu/guest-random.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

#define ACCESS_KNOWN (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                      RDMA_ACCESS_MW_BIND | RDMA_ACCESS_ZERO_BASED | \
                      RDMA_ACCESS_ON_DEMAND | RDMA_ACCESS_HUGETLB | \
                      RDMA_ACCESS_RELAXED_ORDERING)
/* What the backend is told: the others have no effect. */
#define ACCESS_EFFECTIVE (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                          RDMA_ACCESS_MW_BIND | RDMA_ACCESS_FLUSH_GLOBAL)
/* With these peers need a key. */
#define ACCESS_PEERS (RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH)

#define REREG_KNOWN (VIRTIO_RDMA_REREG_TRANSLATION | VIRTIO_RDMA_REREG_PD | \
                     VIRTIO_RDMA_REREG_ACCESS)

QEMU_BUILD_BUG_ON(VIRTIO_RDMA_REREG_TRANSLATION != RDMA_REREG_TRANSLATION ||
                  VIRTIO_RDMA_REREG_PD != RDMA_REREG_PD ||
                  VIRTIO_RDMA_REREG_ACCESS != RDMA_REREG_ACCESS);

static int check_access(VirtIORdma *s, uint32_t access)
{
    uint32_t known = ACCESS_KNOWN;

    if (virtio_rdma_has(s, VIRTIO_RDMA_F_FLUSH)) {
        known |= RDMA_ACCESS_FLUSH;
    }
    if (access & ~known) {
        return -EINVAL;
    }
    if (access & (RDMA_ACCESS_ON_DEMAND | RDMA_ACCESS_FLUSH_PERSISTENT)) {
        return -ENOTSUP;
    }
    /* IBTA 10.6.3.1 */
    if ((access & (RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_ATOMIC)) &&
        !(access & RDMA_ACCESS_LOCAL_WRITE)) {
        return -EINVAL;
    }
    return 0;
}

uint32_t virtio_rdma_new_key(uint32_t mrn)
{
    uint8_t low;

    qemu_guest_getrandom_nofail(&low, sizeof(low));
    return mrn << 8 | low;
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
    s->mr_pages -= mr->npages + mr->pending;
    s->n_mws -= mr->mw_type != 0;
    mr->pd->users--;
    g_free(mr);
}

/*
 * Make a region of what @attr says, and of @pages if it has any: it gets its
 * number.
 */
static int create_mr(VirtIORdma *s, VirtIORdmaCtrl *c, RdmaMrAttr *attr,
                     const VirtIORdmaPages *pages)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, c->req.mr.pdn);
    VirtIORdmaMr *mr;
    int ret;

    if (!pd) {
        return -ENOENT;
    }
    if (s->mrs.count - s->n_mws >= s->limits.max_mr ||
        !virtio_rdma_table_find(&s->mrs, &attr->mrn)) {
        return -ENOMEM;
    }
    attr->pdn = pd->pdn;
    attr->access = c->req.mr.access & ACCESS_EFFECTIVE;
    attr->lkey = virtio_rdma_new_key(attr->mrn);
    /* Which rights a fast registration grants is decided by REG_MR. */
    if ((attr->access & ACCESS_PEERS) ||
        attr->type == RDMA_MR_FAST_REG) {
        attr->rkey = attr->lkey;
    }
    if (pages) {
        ret = virtio_rdma_charge_pages(s, attr->npages);
        if (ret) {
            return ret;
        }
        ret = virtio_rdma_read_pages(s, pages, &attr->pages);
        if (ret) {
            s->mr_pages -= attr->npages;
            return ret;
        }
    }
    mr = virtio_rdma_add_mr(s, attr->mrn, pd, attr->type);
    mr->key = attr->lkey;
    mr->rkey = attr->rkey;
    mr->max_pages = attr->max_pages;
    mr->npages = attr->npages;
    c->obj = mr;
    c->pages = attr->pages;
    trace_virtio_rdma_create_mr(s, mr->mrn, mr->type, mr->key, attr->access,
                                attr->iova, attr->length);
    return s->bc->create_mr(s->backend, attr);
}

int virtio_rdma_get_dma_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    RdmaMrAttr attr = { .type = RDMA_MR_DMA };
    int ret = check_access(s, c->req.mr.access);

    if (ret) {
        return ret;
    }
    if (c->req.mr.access & ACCESS_PEERS) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: remote access to all of "
                      "memory was asked for and is refused\n");
        return -EPERM;
    }
    return create_mr(s, c, &attr, NULL);
}

int virtio_rdma_create_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    RdmaMrAttr attr = {
        .type = RDMA_MR_FAST_REG,
        .max_pages = c->req.mr.max_num_sg,
    };
    int ret = check_access(s, c->req.mr.access);

    if (ret) {
        return ret;
    }
    if (attr.max_pages == 0 || attr.max_pages > VIRTIO_RDMA_MAX_PAGE_LIST) {
        return -EINVAL;
    }
    return create_mr(s, c, &attr, NULL);
}

/* Check the translation that a request brings, and put it into @attr. */
static int user_pages(VirtIORdma *s, VirtIORdmaCtrl *c, RdmaMrAttr *attr)
{
    VirtIORdmaPages *p = &c->req.mr.pages;
    uint64_t start = c->req.mr.start;
    int ret;

    if (!virtio_rdma_has(s, VIRTIO_RDMA_F_MR_TABLES)) {
        p->page_shift = 0;
        p->levels = 0;
    }
    ret = virtio_rdma_check_pages(s, p);
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

int virtio_rdma_reg_user_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    RdmaMrAttr attr = { .type = RDMA_MR_USER };
    int ret = check_access(s, c->req.mr.access);

    if (!ret) {
        ret = user_pages(s, c, &attr);
    }
    if (ret) {
        return ret;
    }
    return create_mr(s, c, &attr, &c->req.mr.pages);
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

int virtio_rdma_rereg_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaMr *mr = virtio_rdma_get_mr(s, c->req.mr.mrn);
    uint32_t flags = c->req.mr.flags;
    RdmaMrAttr *attr = &c->attr;
    int ret = 0;

    if (!mr) {
        return -ENOENT;
    }
    if (!flags || (flags & ~REREG_KNOWN) || mr->type != RDMA_MR_USER) {
        return -EINVAL;
    }
    *attr = (RdmaMrAttr) {
        .mrn = mr->mrn,
        .type = mr->type,
        .pdn = mr->pd->pdn,
        .rkey = mr->rkey,
    };
    if (flags & VIRTIO_RDMA_REREG_PD) {
        attr->pdn = c->req.mr.pdn;
        if (!virtio_rdma_table_get(&s->pds, attr->pdn)) {
            return -ENOENT;
        }
    }
    if (flags & VIRTIO_RDMA_REREG_ACCESS) {
        ret = check_access(s, c->req.mr.access);
        attr->access = c->req.mr.access & ACCESS_EFFECTIVE;
        attr->rkey = attr->access & ACCESS_PEERS;
    }
    if (!ret && (flags & VIRTIO_RDMA_REREG_TRANSLATION)) {
        ret = user_pages(s, c, attr);
    }
    if (ret) {
        return ret;
    }
    attr->lkey = mr->key;
    /* Who holds a key shall not reach other memory by it. */
    while ((flags & VIRTIO_RDMA_REREG_TRANSLATION) && attr->lkey == mr->key) {
        attr->lkey = virtio_rdma_new_key(mr->mrn);
    }
    attr->rkey = attr->rkey ? attr->lkey : 0;

    /* Old and new list exist together until the backend has decided. */
    ret = virtio_rdma_charge_pages(s, attr->npages);
    if (ret) {
        return ret;
    }
    if (attr->npages) {
        ret = virtio_rdma_read_pages(s, &c->req.mr.pages, &attr->pages);
        if (ret) {
            s->mr_pages -= attr->npages;
            return ret;
        }
    }
    c->obj = mr;
    c->pages = attr->pages;
    trace_virtio_rdma_rereg_mr(s, mr->mrn, flags, attr->lkey);
    return s->bc->modify_mr(s->backend, flags, attr);
}

void virtio_rdma_rereg_mr_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaMr *mr = c->obj;
    const RdmaMrAttr *attr = &c->attr;

    if (!mr) {
        return;
    }
    if (ret) {
        s->mr_pages -= attr->npages;
        g_free(c->pages);
        return;
    }
    mr->key = attr->lkey;
    mr->rkey = attr->rkey;
    mr->pd->users--;
    mr->pd = virtio_rdma_table_get(&s->pds, attr->pdn);
    mr->pd->users++;
    if (attr->npages) {
        s->mr_pages -= mr->npages;
        mr->npages = attr->npages;
    }
    c->rsp.mr.mrn = mr->mrn;
    c->rsp.mr.lkey = mr->key;
    c->rsp.mr.rkey = mr->rkey;
}

int virtio_rdma_map_mr_sg(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaMr *mr = virtio_rdma_get_mr(s, c->req.map_mr.mrn);
    VirtIORdmaPages *p = &c->req.map_mr.pages;
    int ret;

    if (!mr) {
        return -ENOENT;
    }
    if (mr->type != RDMA_MR_FAST_REG || p->npages > mr->max_pages) {
        return -EINVAL;
    }
    ret = virtio_rdma_check_pages(s, p);
    if (!ret) {
        ret = virtio_rdma_charge_pages(s, p->npages);
    }
    if (ret) {
        return ret;
    }
    ret = virtio_rdma_read_pages(s, p, &c->pages);
    if (ret) {
        s->mr_pages -= p->npages;
        return ret;
    }
    c->obj = mr;
    trace_virtio_rdma_map_mr(s, mr->mrn, p->iova, p->length);
    return s->bc->map_mr(s->backend, mr->mrn, p->iova, p->length, c->pages,
                         p->npages);
}

void virtio_rdma_map_mr_sg_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaMr *mr = c->obj;
    uint32_t npages = c->req.map_mr.pages.npages;
    uint32_t in_use;

    if (!mr) {
        return;
    }
    if (ret) {
        s->mr_pages -= npages;
        g_free(c->pages);
        return;
    }
    /* What was pending may be in use by now, or it is gone. */
    in_use = MAX(mr->npages, mr->pending);
    s->mr_pages -= mr->npages + mr->pending - in_use;
    mr->npages = in_use;
    mr->pending = npages;
    c->rsp.map_mr.npages = npages;
}

int virtio_rdma_dereg_mr(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaMr *mr = virtio_rdma_get_mr(s, c->req.destroy.id);

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
