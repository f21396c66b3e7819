// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory regions.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "mem.h"

struct ib_mr *vrdma_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct vrdma_dev *dev = to_vdev(ibpd->device);
	struct virtio_rdma_get_dma_mr_req req = {
		.pdn = cpu_to_le32(to_vpd(ibpd)->pdn),
		.access = cpu_to_le32(access & VRDMA_ACCESS_MR),
	};
	struct virtio_rdma_mr_rsp rsp;
	struct vrdma_mr *mr;
	int ret;

	/* The device has no such region for remote access. */
	if (access & VRDMA_ACCESS_REMOTE)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_GET_DMA_MR, &req, &rsp);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	vrdma_mr_set_keys(dev, mr, &rsp);
	return &mr->ibmr;
}

/* Fill in the description of a user region. */
static void vrdma_mr_describe(struct virtio_rdma_reg_user_mr_req *req,
			      struct ib_pd *ibpd, int access, u64 length,
			      u64 iova, const struct vrdma_table *table)
{
	req->pdn = cpu_to_le32(to_vpd(ibpd)->pdn);
	req->access = cpu_to_le32(access & VRDMA_ACCESS_USER_MR);
	/* The device needs only the offset in the first page. */
	req->start = cpu_to_le64(iova);
	req->length = cpu_to_le64(length);
	req->virt_addr = cpu_to_le64(iova);
	req->pages = cpu_to_le64(table->pages);
	req->npages = cpu_to_le32(table->npages);
	req->page_shift = cpu_to_le32(table->page_shift);
	req->levels = cpu_to_le32(table->levels);
}

/* Takes @umem over, which may be an error pointer. */
static struct ib_mr *vrdma_mr_register(struct ib_pd *ibpd, struct ib_umem *umem,
				       u64 length, u64 virt_addr, int access)
{
	struct vrdma_dev *dev = to_vdev(ibpd->device);
	struct virtio_rdma_reg_user_mr_req req = {};
	struct virtio_rdma_mr_rsp rsp;
	struct vrdma_table table;
	struct vrdma_mr *mr;
	int ret;

	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr) {
		ret = -ENOMEM;
		goto err_umem;
	}
	mr->umem = umem;
	ret = vrdma_table_init(dev, &table, umem, virt_addr);
	if (ret)
		goto err_mr;
	vrdma_mr_describe(&req, ibpd, access, length, virt_addr, &table);
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_REG_USER_MR, &req, &rsp);
	vrdma_table_free(dev, &table);
	if (ret)
		goto err_mr;
	vrdma_mr_set_keys(dev, mr, &rsp);
	mr->ibmr.iova = virt_addr;
	mr->ibmr.length = length;
	mr->access = access;
	return &mr->ibmr;

err_mr:
	kfree(mr);
err_umem:
	ib_umem_release(umem);
	return ERR_PTR(ret);
}

static bool vrdma_mr_length_ok(const struct vrdma_dev *dev, u64 length)
{
	return length && length <= dev->attr.max_mr_size;
}

static struct ib_mr *vrdma_mr_register_va(struct ib_pd *ibpd, u64 start,
					  u64 length, u64 virt_addr, int access)
{
	if (!vrdma_mr_length_ok(to_vdev(ibpd->device), length))
		return ERR_PTR(-EINVAL);
	return vrdma_mr_register(ibpd, vrdma_umem_get(ibpd->device, start,
						      length, access),
				 length, virt_addr, access);
}

struct ib_mr *vrdma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 virt_addr, int access, VRDMA_DMAH_PARAM
				struct ib_udata *udata)
{
	return vrdma_mr_register_va(ibpd, start, length, virt_addr, access);
}

/*
 * The buffer is pinned, as the device has no page faults: its exporter does not
 * move it while the region exists.
 */
struct ib_mr *vrdma_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				       u64 length, u64 virt_addr, int fd,
				       int access, VRDMA_DMAH_PARAM
				       struct vrdma_reg_dmabuf_arg *arg)
{
	struct ib_umem_dmabuf *dmabuf;

	if (!vrdma_mr_length_ok(to_vdev(ibpd->device), length))
		return ERR_PTR(-EINVAL);
	dmabuf = ib_umem_dmabuf_get_pinned(ibpd->device, offset, length, fd,
					   access);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	return vrdma_mr_register(ibpd, &dmabuf->umem, length, virt_addr,
				 access);
}

/* Change a region in place. Without @umem it keeps its memory. */
static int vrdma_mr_rereg_cmd(struct vrdma_mr *mr, int flags,
			      struct ib_umem *umem, u64 virt_addr, int access,
			      struct ib_pd *ibpd)
{
	struct vrdma_dev *dev = to_vdev(mr->ibmr.device);
	struct virtio_rdma_rereg_mr_req req = {
		.mrn = cpu_to_le32(mr->mrn),
	};
	struct vrdma_table table = {};
	struct virtio_rdma_mr_rsp rsp;
	u32 changes = 0;
	int ret;

	if (umem) {
		changes |= VIRTIO_RDMA_REREG_TRANSLATION;
		ret = vrdma_table_init(dev, &table, umem, virt_addr);
		if (ret)
			return ret;
	}
	if (flags & IB_MR_REREG_PD)
		changes |= VIRTIO_RDMA_REREG_PD;
	if (flags & IB_MR_REREG_ACCESS)
		changes |= VIRTIO_RDMA_REREG_ACCESS;
	req.flags = cpu_to_le32(changes);
	vrdma_mr_describe(&req.mr, ibpd, access, umem ? umem->length : 0,
			  virt_addr, &table);
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_REREG_MR, &req, &rsp);
	if (umem)
		vrdma_table_free(dev, &table);
	if (!ret)
		vrdma_mr_set_keys(dev, mr, &rsp);
	return ret;
}

/*
 * For a device that cannot change regions, register another one: the RDMA core
 * then deregisters the old one.
 */
struct ib_mr *vrdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 virt_addr, int access,
				  struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibmr->device);
	struct vrdma_mr *mr = to_vmr(ibmr);
	struct ib_umem *umem = NULL;
	bool is_dmabuf, repin;
	int ret;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_TRANS)) {
		start = mr->umem->address;
		length = mr->umem->length;
		virt_addr = ibmr->iova;
	}
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!vrdma_mr_length_ok(dev, length))
		return ERR_PTR(-EINVAL);
	/* Memory that was pinned for reading must be pinned again to write. */
	repin = flags & IB_MR_REREG_TRANS ||
		(ib_access_writable(access) && !mr->umem->writable);
	/* A DMA buffer is not at an address. */
	is_dmabuf = mr->umem->is_dmabuf && !(flags & IB_MR_REREG_TRANS);
	if (repin && is_dmabuf)
		return ERR_PTR(-EOPNOTSUPP);
	if (repin) {
		umem = vrdma_umem_get(ibmr->device, start, length, access);
		if (IS_ERR(umem))
			return ERR_CAST(umem);
	}
	ret = vrdma_mr_rereg_cmd(mr, flags, umem, virt_addr, access, ibpd);
	if (ret) {
		ib_umem_release(umem);
		return ret == -EOPNOTSUPP && !is_dmabuf ?
		       vrdma_mr_register_va(ibpd, start, length, virt_addr,
					    access) : ERR_PTR(ret);
	}
	if (umem) {
		ib_umem_release(mr->umem);
		mr->umem = umem;
	}
	mr->access = access;
	return NULL;
}

int vrdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibmr->device);
	struct vrdma_mr *mr = to_vmr(ibmr);
	struct virtio_rdma_dereg_mr_req req = {
		.mrn = cpu_to_le32(mr->mrn),
	};
	int ret;

	ret = vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DEREG_MR, &req,
				 udata);
	if (ret)
		return ret;
	vrdma_page_lists_free(dev, mr);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}
