/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control commands of protection domains, memory regions and windows.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "cmd.h"

/* The guest ABI has the numbers of rdma/verbs.h, so no conversion is needed. */
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_REREG_TRANSLATION != RDMA_REREG_TRANSLATION);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_REREG_PD != RDMA_REREG_PD);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_REREG_ACCESS != RDMA_REREG_ACCESS);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_MW_TYPE_1 != RDMA_MW_TYPE_1);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_MW_TYPE_2 != RDMA_MW_TYPE_2);

int virtio_rdma_pd_create(VirtIORdma *s, const void *req, void *rsp)
{
    struct virtio_rdma_pdn *p = rsp;
    uint32_t pdn = 0;
    int ret = rdma_hca_pd_create(&s->hca, &pdn);

    p->pdn = cpu_to_le32(pdn);
    return ret;
}

static void put_mr(struct virtio_rdma_mr_rsp *p, const RdmaMrAttr *attr)
{
    p->mrn = cpu_to_le32(attr->mrn);
    p->lkey = cpu_to_le32(attr->lkey);
    p->rkey = cpu_to_le32(attr->rkey);
}

static int create_mr(VirtIORdma *s, RdmaMrAttr *attr, RdmaHcaPages *pages,
                     void *rsp)
{
    int ret = rdma_hca_mr_create(&s->hca, attr, pages);

    put_mr(rsp, attr);
    return ret;
}

int virtio_rdma_mr_get_dma(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_get_dma_mr_req *cmd = req;
    RdmaMrAttr attr = {
        .type = RDMA_MR_DMA,
        .pdn = le32_to_cpu(cmd->pdn),
        .access = le32_to_cpu(cmd->access),
    };

    return create_mr(s, &attr, NULL, rsp);
}

int virtio_rdma_mr_create(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_create_mr_req *cmd = req;
    RdmaMrAttr attr = {
        .type = RDMA_MR_FAST_REG,
        .pdn = le32_to_cpu(cmd->pdn),
        .access = le32_to_cpu(cmd->access),
        .max_pages = le32_to_cpu(cmd->max_num_sg),
    };

    return create_mr(s, &attr, NULL, rsp);
}

/* Without F_VERSION_1 the layout decides whether a page list is a tree. */
static uint32_t levels_of(const VirtIORdma *s)
{
    return s->is_demo ? VIRTIO_RDMA_DEMO_LEVELS : 0;
}

/* Get the page list of @cmd, and check its start. The core checks the rest. */
static int get_pages(VirtIORdma *s,
                     const struct virtio_rdma_reg_user_mr_req *cmd,
                     RdmaHcaPages *p)
{
    uint64_t start = le64_to_cpu(cmd->start);
    uint32_t shift;

    *p = (RdmaHcaPages) {
        .iova = le64_to_cpu(cmd->virt_addr),
        .length = le64_to_cpu(cmd->length),
        .table = le64_to_cpu(cmd->pages),
        .npages = le32_to_cpu(cmd->npages),
        .levels = levels_of(s),
    };
    if (virtio_rdma_is_v1(s)) {
        p->page_shift = le32_to_cpu(cmd->page_shift);
        p->levels = le32_to_cpu(cmd->levels);
    }
    shift = MIN(p->page_shift ?: RDMA_PAGE_SHIFT, 63);
    return (start ^ p->iova) & ((1ULL << shift) - 1) ||
           p->length > UINT64_MAX - start ? -EINVAL : 0;
}

int virtio_rdma_mr_reg_user(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_reg_user_mr_req *cmd = req;
    RdmaMrAttr attr = {
        .type = RDMA_MR_USER,
        .pdn = le32_to_cpu(cmd->pdn),
        .access = le32_to_cpu(cmd->access),
    };
    RdmaHcaPages pages;

    return get_pages(s, cmd, &pages) ?: create_mr(s, &attr, &pages, rsp);
}

int virtio_rdma_mr_rereg(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_rereg_mr_req *cmd = req;
    uint32_t flags = le32_to_cpu(cmd->flags);
    RdmaMrAttr attr = {
        .mrn = le32_to_cpu(cmd->mrn),
        .pdn = le32_to_cpu(cmd->mr.pdn),
        .access = le32_to_cpu(cmd->mr.access),
    };
    RdmaHcaPages pages;
    int ret = flags & RDMA_REREG_TRANSLATION ? get_pages(s, &cmd->mr, &pages)
                                             : 0;

    if (!ret) {
        ret = rdma_hca_mr_rereg(&s->hca, flags, &attr, &pages);
    }
    put_mr(rsp, &attr);
    return ret;
}

int virtio_rdma_mr_map_sg(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_map_mr_sg_req *cmd = req;
    struct virtio_rdma_map_mr_sg_rsp *p = rsp;
    RdmaHcaPages pages = {
        .iova = le64_to_cpu(cmd->start),
        .length = le64_to_cpu(cmd->length),
        .table = le64_to_cpu(cmd->pages),
        .npages = le32_to_cpu(cmd->npages),
        .levels = levels_of(s),
    };

    p->npages = cmd->npages;
    return rdma_hca_mr_map(&s->hca, le32_to_cpu(cmd->mrn), &pages);
}

int virtio_rdma_mw_alloc(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_alloc_mw_req *cmd = req;
    struct virtio_rdma_alloc_mw_rsp *p = rsp;
    RdmaMwAttr attr = {
        .pdn = le32_to_cpu(cmd->pdn),
        .type = le32_to_cpu(cmd->type),
    };
    int ret = rdma_hca_mw_alloc(&s->hca, &attr);

    p->mwn = cpu_to_le32(attr.mwn);
    p->rkey = cpu_to_le32(attr.rkey);
    return ret;
}
