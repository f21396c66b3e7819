// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Virtqueues whose buffers are slots of memory of our own: the sizes of the
 * virtqueues, the memory, and buffers on their way to the device and back.
 */
#include <linux/log2.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "vrdma.h"

struct vrdma_buf *vrdma_buf_alloc(u32 npages)
{
	struct vrdma_buf *buf;

	buf = kvzalloc(struct_size(buf, pages, npages), GFP_KERNEL);
	if (!buf)
		return NULL;
	kref_init(&buf->ref);
	for (; buf->npages < npages; buf->npages++) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

		if (!page) {
			vrdma_buf_put(buf);
			return NULL;
		}
		buf->pages[buf->npages] = page;
	}
	return buf;
}

static void buf_free(struct kref *ref)
{
	struct vrdma_buf *buf = container_of(ref, struct vrdma_buf, ref);
	u32 i;

	/* Pages that a process still maps live on until it unmaps them. */
	for (i = 0; i < buf->npages; i++)
		put_page(buf->pages[i]);
	kvfree(buf);
}

void vrdma_buf_put(struct vrdma_buf *buf)
{
	if (buf)
		kref_put(&buf->ref, buf_free);
}

/* The slots of a virtqueue that is reset hold nothing to keep. */
static void vq_forget(struct virtqueue *vq, void *data)
{
}

/* Take back, and unmap, what a device that is reset or gone had. */
void vrdma_vq_empty(struct virtqueue *vq)
{
	while (virtqueue_detach_unused_buf(vq))
		;
}

#ifdef VRDMA_RESIZE_DONE
static void vq_forgotten(struct virtqueue *vq)
{
}

#define vq_resize(vq, num) virtqueue_resize(vq, num, vq_forget, vq_forgotten)
#else
#define vq_resize(vq, num) virtqueue_resize(vq, num, vq_forget)
#endif

/*
 * Give a virtqueue an empty ring of at least @depth entries. The transport
 * selects a queue before it programs it, so vq_lock keeps others away.
 */
int vrdma_vq_grow(struct vrdma_dev *dev, struct virtqueue *vq, u32 depth)
{
	int ret;

	lockdep_assert_held(&dev->vq_lock);

	if (depth > dev->ring_max)
		return -EINVAL;
	if (virtqueue_is_broken(vq) || vrdma_is_dead(dev))
		return -EIO;
	if (!dev->ring_reset)
		return 0;
	depth = max_t(u32, roundup_pow_of_two(depth), VRDMA_RING_MIN);
	depth = min(depth, dev->ring_max);
	ret = vq_resize(vq, depth);
	/* Some kernels keep quiet about a ring that stayed as it was. */
	if (!ret && virtqueue_get_vring_size(vq) < depth)
		ret = -ENOMEM;
	return ret;
}

/*
 * Reset a virtqueue: the device forgets what is in it. Returns an error when
 * that is not possible.
 */
int vrdma_vq_park(struct vrdma_dev *dev, struct virtqueue *vq)
{
	int ret;

	lockdep_assert_held(&dev->vq_lock);

	if (vrdma_is_dead(dev)) {
		vrdma_vq_empty(vq);
		return 0;
	}
	if (virtqueue_is_broken(vq))
		return -EIO;
	if (!dev->ring_reset)
		return -EOPNOTSUPP;
	ret = vq_resize(vq, VRDMA_RING_PARKED);
	/* Without memory for another ring it has its old one, reset. */
	return ret == -ENOMEM ? 0 : ret;
}

/* Slots do not cross pages: their size is a power of two. */
u32 vrdma_ring_pages(u32 slots, u32 shift)
{
	return DIV_ROUND_UP((u64)slots << shift, PAGE_SIZE);
}

void vrdma_ring_init(struct vrdma_ring *ring, struct vrdma_buf *buf,
		     u32 first_page, u32 slots, u32 shift)
{
	kref_get(&buf->ref);
	ring->buf = buf;
	ring->first_page = first_page;
	ring->shift = shift;
	ring->mask = slots - 1;
	ring->head = 0;
	ring->tail = 0;
}

/* Give the next slot, or the part of it from @offset on, to the device. */
int vrdma_ring_add(struct vrdma_ring *ring, u32 offset, u32 len, bool in)
{
	void *slot = vrdma_ring_slot(ring, ring->head);
	struct scatterlist sg;
	int ret;

	sg_init_one(&sg, slot + offset, len);
	if (in)
		ret = virtqueue_add_inbuf(ring->vq, &sg, 1, slot, GFP_ATOMIC);
	else
		ret = virtqueue_add_outbuf(ring->vq, &sg, 1, slot, GFP_ATOMIC);
	if (!ret)
		ring->head++;
	return ret;
}

/* Take the oldest buffer back, if the device is done with it. */
bool vrdma_ring_reap(struct vrdma_ring *ring)
{
	unsigned int len;
	void *slot = virtqueue_get_buf(ring->vq, &len);

	if (!slot)
		return false;
	WARN_ON_ONCE(slot != vrdma_ring_slot(ring, ring->tail));
	ring->tail++;
	return true;
}
