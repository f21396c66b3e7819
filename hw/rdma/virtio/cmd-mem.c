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

static int create_mr(VirtIORdma *s, RdmaMrAttr *attr, RdmaHcaPages *pages,
                     VirtIORdmaRsp *rsp)
{
    int ret = rdma_hca_mr_create(&s->hca, attr, pages);

    put_mr(rsp, attr);
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

    return create_mr(s, &attr, NULL, rsp);
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

    return create_mr(s, &attr, NULL, rsp);
}

/* Get the page list of @req, and check @start. The core checks the rest. */
static int get_pages(VirtIORdma *s, const VirtIORdmaReq *req, RdmaHcaPages *p)
{
    uint64_t start = req->mr.start;
    uint32_t shift;

    *p = req->mr.pages;
    if (!virtio_rdma_is_v1(s)) {
        p->page_shift = 0;
        p->levels = 0;
    }
    shift = MIN(p->page_shift ?: RDMA_PAGE_SHIFT, 63);
    return (start ^ p->iova) & ((1ULL << shift) - 1) ||
           p->length > UINT64_MAX - start ? -EINVAL : 0;
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

    return get_pages(s, req, &pages) ?: create_mr(s, &attr, &pages, rsp);
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
    RdmaHcaPages pages;
    int ret = flags & RDMA_REREG_TRANSLATION ? get_pages(s, req, &pages) : 0;

    if (!ret) {
        ret = rdma_hca_mr_rereg(&s->hca, flags, &attr, &pages);
    }
    put_mr(rsp, &attr);
    return ret;
}

int virtio_rdma_mr_map_sg(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaPages pages = req->map_mr.pages;

    rsp->map_mr.npages = pages.npages;
    return rdma_hca_mr_map(&s->hca, req->map_mr.mrn, &pages);
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
