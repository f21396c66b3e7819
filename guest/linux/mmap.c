// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * User contexts, and what a process maps: the slots of its queues, and a page
 * of doorbells. Pages of slots are counted by references, so a mapping may
 * outlive its queue; the device has let go of them by then.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "ring.h"

int vrdma_respond(struct ib_udata *udata, const void *resp, size_t len)
{
	return ib_copy_to_udata(udata, (void *)resp, min(len, udata->outlen));
}

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

/* Make @buf available for mmap(). */
struct vrdma_mmap_entry *vrdma_mmap_insert(struct ib_udata *udata,
					   struct vrdma_buf *buf)
{
	struct vrdma_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct vrdma_ucontext,
					  ibucontext);
	struct vrdma_mmap_entry *entry;
	int ret;

	if (!ucontext)
		return ERR_PTR(-EINVAL);
	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return ERR_PTR(-ENOMEM);
	kref_get(&buf->ref);
	entry->buf = buf;
	ret = rdma_user_mmap_entry_insert(&ucontext->ibucontext, &entry->rdma,
					  (size_t)buf->npages << PAGE_SHIFT);
	if (ret) {
		vrdma_buf_put(buf);
		kfree(entry);
		return ERR_PTR(ret);
	}
	return entry;
}

void vrdma_mmap_remove(struct vrdma_mmap_entry *entry)
{
	if (entry)
		rdma_user_mmap_entry_remove(&entry->rdma);
}

void vrdma_mmap_free(struct rdma_user_mmap_entry *rdma)
{
	struct vrdma_mmap_entry *entry =
		container_of(rdma, struct vrdma_mmap_entry, rdma);

	vrdma_buf_put(entry->buf);
	kfree(entry);
}

int vrdma_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma;
	struct vrdma_mmap_entry *entry;
	int ret;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	/* Checks that the entry is of this context and has this size. */
	rdma = rdma_user_mmap_entry_get(ibucontext, vma);
	if (!rdma)
		return -EINVAL;
	entry = container_of(rdma, struct vrdma_mmap_entry, rdma);
	if (entry->buf)
		ret = vm_map_pages_zero(vma, entry->buf->pages,
					entry->buf->npages);
	else
		ret = rdma_user_mmap_io(ibucontext, vma, entry->pfn, PAGE_SIZE,
					pgprot_noncached(vma->vm_page_prot),
					rdma);
	rdma_user_mmap_entry_put(rdma);
	return ret;
}
