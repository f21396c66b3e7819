// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * User contexts. Each has a page of doorbells, as long as there are any.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "mem.h"

static struct vrdma_ucontext *to_vucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct vrdma_ucontext, ibucontext);
}

/*
 * A page of doorbells for a process, if there is one left. Otherwise it has the
 * kernel ring.
 */
static int vrdma_doorbell_alloc(struct vrdma_dev *dev,
				struct vrdma_ucontext *ucontext,
				struct virtio_rdma_alloc_ucontext_resp *resp)
{
	struct vrdma_mmap_entry *entry;
	int page, ret;

	if (dev->num_doorbells < 2)
		return 0;
	page = ida_alloc_range(&dev->doorbells_used, 1, dev->num_doorbells - 1,
			       GFP_KERNEL_ACCOUNT);
	if (page == -ENOSPC)
		return 0;
	if (page < 0)
		return page;
	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	ret = -ENOMEM;
	if (!entry)
		goto err;
	entry->pfn = PHYS_PFN(dev->doorbells_phys) + page;
	ret = rdma_user_mmap_entry_insert(&ucontext->ibucontext, &entry->rdma,
					  PAGE_SIZE);
	if (ret)
		goto err_free;
	ucontext->doorbell = page;
	ucontext->mmap = entry;
	resp->flags |= VIRTIO_RDMA_UCTX_DOORBELL;
	resp->doorbell_offset = rdma_user_mmap_get_offset(&entry->rdma);
	return 0;

err_free:
	kfree(entry);
err:
	ida_free(&dev->doorbells_used, page);
	return ret;
}

static void vrdma_doorbell_free(struct vrdma_dev *dev,
				struct vrdma_ucontext *ucontext)
{
	vrdma_mmap_remove(ucontext->mmap);
	if (ucontext->doorbell)
		ida_free(&dev->doorbells_used, ucontext->doorbell);
}

int vrdma_alloc_ucontext(struct ib_ucontext *ibucontext,
			 struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibucontext->device);
	struct vrdma_ucontext *ucontext = to_vucontext(ibucontext);
	struct virtio_rdma_alloc_ucontext_resp resp = {
		.max_qp = dev->num_qp,
	};
	int ret;

	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MW))
		resp.flags |= VIRTIO_RDMA_UCTX_MW;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_FLUSH))
		resp.flags |= VIRTIO_RDMA_UCTX_FLUSH;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_ATOMIC_WRITE))
		resp.flags |= VIRTIO_RDMA_UCTX_ATOMIC_WRITE;
	if (dev->host_numbers)
		resp.flags |= VIRTIO_RDMA_UCTX_HOST_NUMBERS;
	if (dev->mapped_cq || dev->direct_cq) {
		resp.flags |= VIRTIO_RDMA_UCTX_MAPPED_CQ;
		if (dev->cqe_ex)
			resp.flags |= VIRTIO_RDMA_UCTX_CQE_EX;
	}
	ret = vrdma_doorbell_alloc(dev, ucontext, &resp);
	if (ret)
		return ret;
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (ret)
		vrdma_doorbell_free(dev, ucontext);
	return ret;
}

void vrdma_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	vrdma_doorbell_free(to_vdev(ibucontext->device),
			    to_vucontext(ibucontext));
}

/* With this op the RDMA core can remove the device while files are open. */
void vrdma_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}

/* The page of doorbells of a process; 0: the kernel's */
u32 vrdma_doorbell(struct ib_udata *udata)
{
	struct vrdma_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct vrdma_ucontext,
					  ibucontext);

	return ucontext ? ucontext->doorbell : 0;
}
