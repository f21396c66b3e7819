// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mappings of a process: the slots of its queues, and its doorbells. Pages
 * of slots are counted by references, so a mapping may outlive its queue; by
 * then the device accesses them no more.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "ring.h"

int vrdma_respond(struct ib_udata *udata, const void *resp, size_t len)
{
	return ib_copy_to_udata(udata, (void *)resp, min(len, udata->outlen));
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
