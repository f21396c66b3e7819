// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Regions of the kernel's own, whose pages are mapped by a work request.
 *
 * With VIRTIO_RDMA_F_REG_PAGES the request brings the pages along: a list that
 * has to stay as it is until the device has taken the request. A user of
 * the region that gave an operation up may map it anew while the request of
 * the last mapping still waits in the send queue, so the lists take turns.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "vrdma.h"

#define LISTS 2

static size_t lists_size(const struct vrdma_dev *dev, const struct vrdma_mr *mr)
{
	return (dev->reg_pages ? LISTS : 1) * (size_t)mr->max_pages *
	       sizeof(*mr->pages);
}

static size_t list_start(const struct vrdma_mr *mr)
{
	return (size_t)mr->list * mr->max_pages;
}

struct ib_mr *vrdma_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg)
{
	struct vrdma_dev *dev = to_vdev(ibpd->device);
	/* The REG_MR work request narrows it down. */
	u32 access = IB_ACCESS_LOCAL_WRITE | VRDMA_ACCESS_REMOTE;
	struct virtio_rdma_create_mr_req req = {
		.pdn = cpu_to_le32(to_vpd(ibpd)->pdn),
		.max_num_sg = cpu_to_le32(max_num_sg),
	};
	struct virtio_rdma_mr_rsp rsp;
	struct vrdma_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > dev->attr.max_fast_reg_page_list_len)
		return ERR_PTR(-EINVAL);
	if (!vrdma_has_flush(dev))
		access &= ~VRDMA_ACCESS_FLUSH;
	req.access = cpu_to_le32(access);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_pages = max_num_sg;
	mr->pages = dma_alloc_coherent(dev->dma_dev, lists_size(dev, mr),
				       &mr->pages_dma, GFP_KERNEL);
	if (!mr->pages) {
		ret = -ENOMEM;
		goto err_mr;
	}
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_MR, &req, &rsp);
	if (ret)
		goto err_pages;
	vrdma_mr_set_keys(mr, &rsp);
	return &mr->ibmr;

err_pages:
	vrdma_free_page_lists(dev, mr);
err_mr:
	kfree(mr);
	return ERR_PTR(ret);
}

void vrdma_free_page_lists(struct vrdma_dev *dev, struct vrdma_mr *mr)
{
	if (mr->pages)
		dma_free_coherent(dev->dma_dev, lists_size(dev, mr), mr->pages,
				  mr->pages_dma);
}

static int set_page(struct ib_mr *ibmr, u64 addr)
{
	struct vrdma_mr *mr = to_vmr(ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->pages[list_start(mr) + mr->npages++] = cpu_to_le64(addr);
	return 0;
}

/*
 * The device learns of the mapping when it is to be registered: until then
 * users may change iova, and do.
 */
int vrdma_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset)
{
	struct vrdma_mr *mr = to_vmr(ibmr);

	if (!mr->pages || ibmr->page_size != VRDMA_PAGE_SIZE)
		return -EINVAL;
	mr->npages = 0;
	if (to_vdev(ibmr->device)->reg_pages)
		mr->list = (mr->list + 1) % LISTS;
	return ib_sg_to_pages(ibmr, sg, nents, offset, set_page);
}

static u64 list_dma(const struct vrdma_mr *mr)
{
	return mr->pages_dma + list_start(mr) * sizeof(*mr->pages);
}

static int map_by_command(struct vrdma_mr *mr)
{
	struct virtio_rdma_map_mr_sg_req req = {
		.mrn = cpu_to_le32(mr->mrn),
		.npages = cpu_to_le32(mr->npages),
		.start = cpu_to_le64(mr->ibmr.iova),
		.length = cpu_to_le64(mr->ibmr.length),
		.pages = cpu_to_le64(list_dma(mr)),
	};
	struct virtio_rdma_map_mr_sg_rsp rsp;

	return vrdma_ctrl(to_vdev(mr->ibmr.device), VIRTIO_RDMA_CMD_MAP_MR_SG,
			  &req, sizeof(req), &rsp, sizeof(rsp), VRDMA_ATOMIC);
}

/* May be called in atomic context. */
int vrdma_fill_reg_mr(const struct ib_reg_wr *wr,
		      struct virtio_rdma_sq_wqe *wqe)
{
	struct vrdma_mr *mr = to_vmr(wr->mr);

	wqe->wr.reg.mrn = cpu_to_le32(mr->mrn);
	wqe->wr.reg.key = cpu_to_le32(wr->key);
	wqe->wr.reg.access = cpu_to_le32(wr->access & VRDMA_ACCESS_MR);
	if (!to_vdev(wr->mr->device)->reg_pages)
		return map_by_command(mr);
	wqe->wr.reg.npages = cpu_to_le32(mr->npages);
	wqe->wr.reg.start = cpu_to_le64(mr->ibmr.iova);
	wqe->wr.reg.length = cpu_to_le64(mr->ibmr.length);
	wqe->wr.reg.pages = cpu_to_le64(list_dma(mr));
	return 0;
}
