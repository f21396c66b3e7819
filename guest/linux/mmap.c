// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * User contexts, and the memory that a process maps: the slots of its queues.
 * The pages are counted by references, so a mapping may outlive its queue; the
 * device has returned the pages by then.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "ring.h"

int vrdma_respond(struct ib_udata *udata, const void *resp, size_t len)
{
	return ib_copy_to_udata(udata, (void *)resp, min(len, udata->outlen));
}

int vrdma_alloc_ucontext(struct ib_ucontext *ibucontext,
			 struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibucontext->device);
	struct virtio_rdma_alloc_ucontext_resp resp = {
		.max_qp = dev->num_qp,
	};

	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MW))
		resp.flags |= VIRTIO_RDMA_UCTX_MW;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_FLUSH))
		resp.flags |= VIRTIO_RDMA_UCTX_FLUSH;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_ATOMIC_WRITE))
		resp.flags |= VIRTIO_RDMA_UCTX_ATOMIC_WRITE;
	if (dev->host_numbers)
		resp.flags |= VIRTIO_RDMA_UCTX_HOST_NUMBERS;
	if (dev->mapped_cq) {
		resp.flags |= VIRTIO_RDMA_UCTX_MAPPED_CQ;
		if (dev->cqe_ex)
			resp.flags |= VIRTIO_RDMA_UCTX_CQE_EX;
	}
	return vrdma_respond(udata, &resp, sizeof(resp));
}

void vrdma_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
}

/* With this op the RDMA core can remove the device while files are open. */
void vrdma_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
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
	struct vrdma_buf *buf;
	int ret;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	/* Checks that the entry is of this context and has this size. */
	rdma = rdma_user_mmap_entry_get(ibucontext, vma);
	if (!rdma)
		return -EINVAL;
	buf = container_of(rdma, struct vrdma_mmap_entry, rdma)->buf;
	ret = vm_map_pages_zero(vma, buf->pages, buf->npages);
	rdma_user_mmap_entry_put(rdma);
	return ret;
}
