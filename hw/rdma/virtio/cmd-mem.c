/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control commands of protection domains, memory regions and windows.
 */
#include "qemu/osdep.h"
#include "cmd.h"

int virtio_rdma_pd_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    return rdma_hca_pd_create(&s->hca, &rsp->create.id);
}

int virtio_rdma_pd_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    return rdma_hca_pd_destroy(&s->hca, req->destroy.id);
}

static void put_mr(VirtIORdmaRsp *rsp, const RdmaMrAttr *attr)
{
    rsp->mr.mrn = attr->mrn;
    rsp->mr.lkey = attr->lkey;
    rsp->mr.rkey = attr->rkey;
}

/* A region without a list of pages */
static int create_mr(VirtIORdma *s, RdmaMrAttr *attr, VirtIORdmaRsp *rsp)
{
    int ret = rdma_hca_mr_check(&s->hca, attr);

    if (!ret) {
        ret = rdma_hca_mr_create(&s->hca, attr);
    }
    if (!ret) {
        put_mr(rsp, attr);
    }
    return ret;
}

int virtio_rdma_mr_get_dma(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    RdmaMrAttr attr = {
        .type = RDMA_MR_DMA,
        .pdn = req->mr.pdn,
        .access = req->mr.access,
    };

    return create_mr(s, &attr, rsp);
}

int virtio_rdma_mr_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaMrAttr attr = {
        .type = RDMA_MR_FAST_REG,
        .pdn = req->mr.pdn,
        .access = req->mr.access,
        .max_pages = req->mr.max_num_sg,
    };

    return create_mr(s, &attr, rsp);
}

/*
 * Check the translation of a request, and set @attr and its page list @p, which
 * the caller reads.
 */
static int user_pages(VirtIORdma *s, const VirtIORdmaReq *req,
                      RdmaMrAttr *attr, RdmaHcaPages *p)
{
    uint64_t start = req->mr.start;
    int ret;

    *p = req->mr.pages;
    if (!virtio_rdma_is_v1(s)) {
        p->page_shift = 0;
        p->levels = 0;
    }
    ret = rdma_hca_pages_check(&s->hca, p);
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
    RdmaMrAttr attr = {
        .type = RDMA_MR_USER,
        .pdn = req->mr.pdn,
        .access = req->mr.access,
    };
    RdmaHcaPages pages;
    int ret = rdma_hca_mr_check(&s->hca, &attr);

    if (!ret) {
        ret = user_pages(s, req, &attr, &pages);
    }
    if (!ret) {
        ret = rdma_hca_pages_read_on(&s->hca, &pages, &attr.pages);
    }
    if (ret) {
        return ret;
    }
    ret = rdma_hca_mr_create(&s->hca, &attr);
    rdma_hca_pages_give_back(&s->hca, ret, attr.pages, &pages);
    if (!ret) {
        put_mr(rsp, &attr);
    }
    return ret;
}

int virtio_rdma_mr_rereg(VirtIORdma *s, const VirtIORdmaReq *req,
                         VirtIORdmaRsp *rsp)
{
    uint32_t flags = req->mr.flags;
    RdmaMrAttr attr = {
        .mrn = req->mr.mrn,
        .pdn = req->mr.pdn,
        .access = req->mr.access,
    };
    RdmaHcaPages pages = {};
    int ret = rdma_hca_mr_check_rereg(&s->hca, flags, &attr);

    if (!ret && (flags & RDMA_REREG_TRANSLATION)) {
        ret = user_pages(s, req, &attr, &pages);
        if (!ret) {
            ret = rdma_hca_pages_read_on(&s->hca, &pages, &attr.pages);
        }
    }
    if (ret) {
        return ret;
    }
    ret = rdma_hca_mr_rereg(&s->hca, flags, &attr);
    rdma_hca_pages_give_back(&s->hca, ret, attr.pages, &pages);
    if (!ret) {
        put_mr(rsp, &attr);
    }
    return ret;
}

int virtio_rdma_mr_map_sg(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaPages p = req->map_mr.pages;
    uint64_t *pages;
    int ret = rdma_hca_mr_check_map(&s->hca, req->map_mr.mrn, p.npages);

    if (!ret) {
        ret = rdma_hca_pages_check(&s->hca, &p);
    }
    if (!ret) {
        ret = rdma_hca_pages_read_on(&s->hca, &p, &pages);
    }
    if (ret) {
        return ret;
    }
    ret = rdma_hca_mr_map(&s->hca, req->map_mr.mrn, p.iova, p.length, pages,
                          p.npages);
    rdma_hca_pages_give_back(&s->hca, ret, pages, &p);
    rsp->map_mr.npages = p.npages;
    return ret;
}

int virtio_rdma_mr_dereg(VirtIORdma *s, const VirtIORdmaReq *req,
                         VirtIORdmaRsp *rsp)
{
    return rdma_hca_mr_dereg(&s->hca, req->destroy.id);
}

int virtio_rdma_mw_alloc(VirtIORdma *s, const VirtIORdmaReq *req,
                         VirtIORdmaRsp *rsp)
{
    RdmaMwAttr attr = {
        .pdn = req->alloc_mw.pdn,
        .type = req->alloc_mw.type,
    };
    int ret = rdma_hca_mw_alloc(&s->hca, &attr);

    rsp->mw.mwn = attr.mwn;
    rsp->mw.rkey = attr.rkey;
    return ret;
}

int virtio_rdma_mw_dealloc(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    return rdma_hca_mw_dealloc(&s->hca, req->destroy.id);
}
