// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * User contexts. Each owns a page of doorbells, as long as there are any, and a
 * shadow of it: memory in which the process marks QPs instead of ringing.
 *
 * A process maps pages of the kernel. One of 16 or 64 KiB has several of the
 * device's pages of doorbells, all of which the context owns. Its queues are
 * rung by the first of them, the number of which is @doorbell.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "mem.h"

#define UVERBS_MODULE_NAME virtio_rdma
#include <rdma/uverbs_named_ioctl.h>

/* Process and device share the page, with a bit for each QP. */
static_assert(sizeof(struct virtio_rdma_doorbell_shadow) ==
	      sizeof(struct virtio_rdma_shadow_page));
static_assert(offsetof(struct virtio_rdma_doorbell_shadow, summary) ==
	      offsetof(struct virtio_rdma_shadow_page, summary));
static_assert(offsetof(struct virtio_rdma_doorbell_shadow, marked) ==
	      offsetof(struct virtio_rdma_shadow_page, marked));
static_assert(sizeof(struct virtio_rdma_shadow_page) ==
	      VIRTIO_RDMA_SHADOW_MAP);
static_assert(VIRTIO_RDMA_SHADOW_WORDS * 32 >= VRDMA_MAX_QUEUES);

static struct vrdma_ucontext *to_vucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct vrdma_ucontext, ibucontext);
}

/*
 * Give a process a page of doorbells, if there is one left. Without one, the
 * kernel rings for it.
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
	ucontext->doorbell = page * VRDMA_PAGES_PER_PAGE;
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
		ida_free(&dev->doorbells_used,
			 ucontext->doorbell / VRDMA_PAGES_PER_PAGE);
}

static int vrdma_shadow_set(struct vrdma_dev *dev, u32 doorbell,
			    const struct vrdma_area *area)
{
	struct virtio_rdma_set_shadow_req req = {
		.doorbell = cpu_to_le16(doorbell),
		.flags = cpu_to_le16(VIRTIO_RDMA_SHADOW_ON),
		.addr = cpu_to_le64(area->dma[0]),
	};

	return vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_SET_SHADOW, &req);
}

/* A device that refuses this is broken: it would go on using the memory. */
static void vrdma_shadow_clear(struct vrdma_dev *dev, u32 doorbell)
{
	struct virtio_rdma_set_shadow_req req = {
		.doorbell = cpu_to_le16(doorbell),
	};

	vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_SET_SHADOW, &req, false);
}

/* Give the context a shadow of its page of doorbells, and map that. */
static int vrdma_shadow_alloc(struct vrdma_dev *dev,
			      struct vrdma_ucontext *ucontext,
			      struct ib_udata *udata,
			      struct virtio_rdma_alloc_ucontext_resp *resp)
{
	struct vrdma_mmap_entry *entry;
	struct vrdma_area *area;
	int ret;

	if (!ucontext->doorbell)
		return 0;
	area = vrdma_area_alloc(dev, 1);
	if (IS_ERR(area))
		return PTR_ERR(area);
	entry = vrdma_mmap_insert(udata, area->buf);
	if (IS_ERR(entry)) {
		ret = PTR_ERR(entry);
		goto err;
	}
	ret = vrdma_shadow_set(dev, ucontext->doorbell, area);
	if (ret) {
		vrdma_mmap_remove(entry);
		/* If the device refuses a shadow, the process rings. */
		if (ret != -ENOMEM)
			ret = 0;
		goto err;
	}
	ucontext->shadow = area;
	ucontext->shadow_mmap = entry;
	resp->flags |= VIRTIO_RDMA_UCTX_SHADOW;
	resp->shadow_offset = rdma_user_mmap_get_offset(&entry->rdma);
	return 0;

err:
	vrdma_area_free(dev, area);
	return ret;
}

static void vrdma_shadow_free(struct vrdma_dev *dev,
			      struct vrdma_ucontext *ucontext)
{
	if (!ucontext->shadow)
		return;
	vrdma_mmap_remove(ucontext->shadow_mmap);
	vrdma_shadow_clear(dev, ucontext->doorbell);
	vrdma_area_free(dev, ucontext->shadow);
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

	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_DIRECT))
		resp.flags |= VIRTIO_RDMA_UCTX_DIRECT;
	if (dev->attr.max_mw)
		resp.flags |= VIRTIO_RDMA_UCTX_MW;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_FLUSH))
		resp.flags |= VIRTIO_RDMA_UCTX_FLUSH;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_ATOMIC_WRITE))
		resp.flags |= VIRTIO_RDMA_UCTX_ATOMIC_WRITE;
	ret = vrdma_doorbell_alloc(dev, ucontext, &resp);
	if (ret)
		return ret;
	ret = vrdma_shadow_alloc(dev, ucontext, udata, &resp);
	if (ret)
		goto err_doorbell;
	ucontext->resp = resp;
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (!ret)
		return 0;
	vrdma_shadow_free(dev, ucontext);
err_doorbell:
	vrdma_doorbell_free(dev, ucontext);
	return ret;
}

/* For a process that got the file of another one, and shares its context */
int vrdma_query_ucontext(struct ib_ucontext *ibucontext,
			 struct uverbs_attr_bundle *attrs)
{
	struct vrdma_ucontext *ucontext = to_vucontext(ibucontext);

	return uverbs_copy_to_struct_or_zero(attrs,
			VIRTIO_RDMA_ATTR_QUERY_CONTEXT_RESP, &ucontext->resp,
			sizeof(ucontext->resp));
}

void vrdma_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	struct vrdma_dev *dev = to_vdev(ibucontext->device);
	struct vrdma_ucontext *ucontext = to_vucontext(ibucontext);

	/* The next process with this page must not have this one's shadow. */
	vrdma_shadow_free(dev, ucontext);
	vrdma_doorbell_free(dev, ucontext);
}

/* With this op the RDMA core can remove the device while files are open. */
void vrdma_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}

/* The number of a process's page of doorbells, or 0, the kernel's */
u32 vrdma_doorbell(struct ib_udata *udata)
{
	struct vrdma_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct vrdma_ucontext,
					  ibucontext);

	return ucontext ? ucontext->doorbell : 0;
}

#define QUERY_CONTEXT_SIZE \
	UVERBS_ATTR_STRUCT(struct virtio_rdma_alloc_ucontext_resp, \
			   shadow_offset)
#define QUERY_CONTEXT_ATTR \
	UVERBS_ATTR_PTR_OUT(VIRTIO_RDMA_ATTR_QUERY_CONTEXT_RESP, \
			    QUERY_CONTEXT_SIZE, UA_MANDATORY)

ADD_UVERBS_ATTRIBUTES_SIMPLE(vrdma_query_context, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT, QUERY_CONTEXT_ATTR);

const struct uapi_definition vrdma_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &vrdma_query_context),
	{},
};
