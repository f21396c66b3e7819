// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slots, and virtqueues whose buffers are slots: their ring sizes, and adding
 * and taking buffers.
 */
#include <linux/log2.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ring.h"

/*
 * Virtqueues that are not in use have this ring size, which is too small for
 * any object: the device, which chooses a virtqueue by its ring size, takes the
 * one that was prepared.
 */
#define RING_IDLE 2
#define RING_MIN 16

struct vrdma_buf *vrdma_buf_alloc(u32 npages)
{
	struct vrdma_buf *buf;

	/*
	 * The pages count for the memory cgroup of the process, not as memory
	 * that it has locked: RLIMIT_MEMLOCK is about pages of its own.
	 */
	buf = kvzalloc(struct_size(buf, pages, npages), GFP_KERNEL_ACCOUNT);
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

static void vrdma_buf_free(struct kref *ref)
{
	struct vrdma_buf *buf = container_of(ref, struct vrdma_buf, ref);
	u32 i;

	/* Pages that a process still maps are freed when it unmaps them. */
	for (i = 0; i < buf->npages; i++)
		put_page(buf->pages[i]);
	kvfree(buf);
}

void vrdma_buf_put(struct vrdma_buf *buf)
{
	if (buf)
		kref_put(&buf->ref, vrdma_buf_free);
}

/* The slots of a virtqueue are freed or used again after its reset. */
static void vrdma_vq_recycle(struct virtqueue *vq, void *data)
{
}

/* Take all buffers back from a device that was reset or is dead. */
void vrdma_vq_empty(struct virtqueue *vq)
{
	while (virtqueue_detach_unused_buf(vq))
		;
}

static void vrdma_vq_recycle_done(struct virtqueue *vq)
{
}

/*
 * Storage reconnects under this lock. So allocations of its holder must not
 * wait for reclaim, which writes to that storage. The holder must not access
 * memory of a process either: a page of it may be on that storage, or come from
 * a process that never answers.
 */
void vrdma_objects_lock(struct vrdma_dev *dev)
	__acquires(&dev->objects_lock)
{
	mutex_lock(&dev->objects_lock);
	dev->objects_noio = memalloc_noio_save();
}

void vrdma_objects_unlock(struct vrdma_dev *dev)
	__releases(&dev->objects_lock)
{
	memalloc_noio_restore(dev->objects_noio);
	mutex_unlock(&dev->objects_lock);
}

/* Transports wait forever for the reset of a virtqueue of such a device. */
static bool vrdma_vq_is_gone(struct vrdma_dev *dev)
{
	bool gone = vrdma_is_gone(dev);

	/* Transports select a virtqueue in one register and use others then. */
	lockdep_assert_held(&dev->objects_lock);

	if (gone)
		vrdma_fatal(dev);
	return gone;
}

static int vrdma_vq_resize(struct virtqueue *vq, u32 num)
{
	return vrdma_virtqueue_resize(vq, num, vrdma_vq_recycle,
				      vrdma_vq_recycle_done);
}

/* Give a virtqueue that is not in use a ring of at least @depth entries. */
int vrdma_vq_prepare(struct vrdma_dev *dev, struct virtqueue *vq, u32 depth)
{
	if (depth > dev->ring_max)
		return -EINVAL;
	if (virtqueue_is_broken(vq) || vrdma_is_dead(dev) ||
	    vrdma_vq_is_gone(dev))
		return -EIO;
	if (!dev->ring_reset)
		return 0;
	depth = max_t(u32, roundup_pow_of_two(depth), RING_MIN);
	return vrdma_vq_resize(vq, min(depth, dev->ring_max));
}

/*
 * Take all buffers back from the device, and give the virtqueue its idle size.
 * Returns false if the device cannot reset virtqueues: it still has them.
 */
bool vrdma_vq_reset(struct vrdma_dev *dev, struct virtqueue *vq)
{
	int ret;

	if (!vrdma_is_dead(dev) && !vrdma_vq_is_gone(dev)) {
		if (!dev->ring_reset)
			return false;
		ret = vrdma_vq_resize(vq, RING_IDLE);
		/* Without memory for another ring, it was still reset. */
		if (!ret || ret == -ENOMEM)
			return true;
		vrdma_broken(dev, "virtqueue %u is not reset: error %d",
			     vq->index, ret);
	}
	vrdma_wait_stopped(dev);
	vrdma_vq_empty(vq);
	return true;
}

/* A completion vector is a CPU: the interrupt is bound to it. */
void vrdma_vq_set_vector(struct virtqueue *vq, int vector)
{
	unsigned int cpu = cpumask_local_spread(vector, NUMA_NO_NODE);

	virtqueue_set_affinity(vq, cpumask_of(cpu));
}

void vrdma_ring_init(struct vrdma_ring *ring, const struct vrdma_buf *buf,
		     u32 offset, u32 slots, u32 shift)
{
	ring->buf = buf;
	ring->offset = offset;
	ring->shift = shift;
	ring->mask = slots - 1;
	ring->head = 0;
	ring->tail = 0;
}

/* Add the next slot, from @offset on, as a buffer. */
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

/*
 * Take the oldest buffer off the used ring, if it is there, and the number of
 * bytes that the device wrote to it.
 */
bool vrdma_ring_take(struct vrdma_ring *ring, unsigned int *len)
{
	struct vrdma_dev *dev = ring->vq->vdev->priv;
	void *slot = virtqueue_get_buf(ring->vq, len);

	if (slot && slot == vrdma_ring_slot(ring, ring->tail)) {
		ring->tail++;
		return true;
	}
	/* virtio's core marks a virtqueue with impossible entries as broken. */
	if (slot || (virtqueue_is_broken(ring->vq) && !vrdma_is_dead(dev)))
		vrdma_broken(dev, "virtqueue %u: an invalid buffer, or one out of order",
			     ring->vq->index);
	return false;
}
