// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fast registration: regions of the kernel that a REG_MR work request maps.
 *
 * The request has the address of a page list, which must not change until the
 * device has executed the request. But a user that gave up an operation may map
 * the region again while the request for the last mapping is still in the send
 * queue. So a region has two page lists, which are used in turn.
 *
 * Users count in pages of the kernel, or in pages of 4 KiB. Lists have the
 * latter, which are the device's, and room for as many as the former need.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "mem.h"

#define LISTS 2

static size_t vrdma_page_lists_size(const struct vrdma_mr *mr)
{
	return LISTS * (size_t)mr->max_pages * sizeof(*mr->pages);
}

static size_t vrdma_page_list_start(const struct vrdma_mr *mr)
{
	return (size_t)mr->list * mr->max_pages;
}

struct ib_mr *vrdma_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg)
{
	struct vrdma_dev *dev = to_vdev(ibpd->device);
	u32 max_pages = max_num_sg * VRDMA_PAGES_PER_PAGE;
	/* The broadest access: each REG_MR request chooses its own. */
	u32 access = IB_ACCESS_LOCAL_WRITE | VRDMA_ACCESS_REMOTE;
	struct virtio_rdma_create_mr_req req = {
		.pdn = cpu_to_le32(to_vpd(ibpd)->pdn),
		.max_num_sg = cpu_to_le32(max_pages),
	};
	struct virtio_rdma_mr_rsp rsp;
	struct vrdma_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > dev->attr.max_fast_reg_page_list_len)
		return ERR_PTR(-EINVAL);
	if (!virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_FLUSH))
		access &= ~VRDMA_ACCESS_FLUSH;
	req.access = cpu_to_le32(access);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_pages = max_pages;
	mr->pages = dma_alloc_coherent(dev->dma_dev,
				       vrdma_page_lists_size(mr),
				       &mr->pages_dma, GFP_KERNEL);
	if (!mr->pages) {
		ret = -ENOMEM;
		goto err_mr;
	}
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_MR, &req, &rsp);
	if (ret)
		goto err_pages;
	vrdma_mr_set_keys(dev, mr, &rsp);
	return &mr->ibmr;

err_pages:
	vrdma_page_lists_free(dev, mr);
err_mr:
	kfree(mr);
	return ERR_PTR(ret);
}

void vrdma_page_lists_free(struct vrdma_dev *dev, struct vrdma_mr *mr)
{
	if (mr->pages)
		dma_free_coherent(dev->dma_dev, vrdma_page_lists_size(mr),
				  mr->pages, mr->pages_dma);
}

static int vrdma_mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct vrdma_mr *mr = to_vmr(ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->pages[vrdma_page_list_start(mr) + mr->npages++] = cpu_to_le64(addr);
	return 0;
}

/*
 * The device gets the mapping with the REG_MR request. Users change iova until
 * then.
 */
int vrdma_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset)
{
	struct vrdma_mr *mr = to_vmr(ibmr);
	u32 page_size = ibmr->page_size;
	int ret;

	if (!mr->pages ||
	    (page_size != VRDMA_PAGE_SIZE && page_size != PAGE_SIZE))
		return -EINVAL;
	mr->npages = 0;
	mr->list = (mr->list + 1) % LISTS;
	ibmr->page_size = VRDMA_PAGE_SIZE;
	ret = ib_sg_to_pages(ibmr, sg, nents, offset, vrdma_mr_set_page);
	ibmr->page_size = page_size;
	return ret;
}

static u64 vrdma_page_list_dma(const struct vrdma_mr *mr)
{
	return mr->pages_dma + vrdma_page_list_start(mr) * sizeof(*mr->pages);
}

void vrdma_wqe_fill_reg_mr(const struct ib_reg_wr *wr,
			   struct virtio_rdma_sq_wqe *wqe)
{
	struct vrdma_mr *mr = to_vmr(wr->mr);

	wqe->wr.reg.mrn = cpu_to_le32(mr->mrn);
	wqe->wr.reg.key = cpu_to_le32(wr->key);
	wqe->wr.reg.access = cpu_to_le32(wr->access & VRDMA_ACCESS_MR);
	wqe->wr.reg.npages = cpu_to_le32(mr->npages);
	wqe->wr.reg.start = cpu_to_le64(mr->ibmr.iova);
	wqe->wr.reg.length = cpu_to_le64(mr->ibmr.length);
	wqe->wr.reg.pages = cpu_to_le64(vrdma_page_list_dma(mr));
}
