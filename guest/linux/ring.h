/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slots in the driver's memory, virtqueues whose buffers are slots, and the
 * mapping of slots into processes.
 */
#ifndef VRDMA_RING_H
#define VRDMA_RING_H

#include <linux/kref.h>
#include <linux/mm.h>

#include "ctrl.h"

/* Pages of slots, which a process may map */
struct vrdma_buf {
	struct kref ref;
	u32 npages;			/* of the kernel */
	struct page *pages[];
};

/*
 * Slots, and the virtqueue whose buffers they are, if any. The counters are
 * free-running, and the n-th buffer is slot n & mask: the device takes and
 * returns buffers in order.
 */
struct vrdma_ring {
	spinlock_t lock;		/* of the virtqueue and the counters */
	struct virtqueue *vq;
	const struct vrdma_buf *buf;
	u32 offset;			/* of the slots in buf */
	u32 shift;			/* log2 of the slot size */
	u32 mask;			/* number of slots - 1 */
	u32 head;			/* buffers added */
	u32 tail;			/* buffers taken back */
};

struct vrdma_ucontext {
	struct ib_ucontext ibucontext;
	u32 doorbell;			/* the device's number; 0: none */
	struct vrdma_mmap_entry *mmap;	/* of the doorbells */
	struct vrdma_area *shadow;	/* of the doorbells; NULL: none */
	struct vrdma_mmap_entry *shadow_mmap;
	struct virtio_rdma_alloc_ucontext_resp resp;
};

struct vrdma_mmap_entry {
	struct rdma_user_mmap_entry rdma;
	struct vrdma_buf *buf;		/* NULL: doorbells, at pfn */
	unsigned long pfn;
};

/* ring.c */
void vrdma_objects_lock(struct vrdma_dev *dev);
void vrdma_objects_unlock(struct vrdma_dev *dev);
struct vrdma_buf *vrdma_buf_alloc(u32 npages);
void vrdma_buf_put(struct vrdma_buf *buf);
void vrdma_vq_empty(struct virtqueue *vq);
int vrdma_vq_prepare(struct vrdma_dev *dev, struct virtqueue *vq, u32 depth);
bool vrdma_vq_reset(struct vrdma_dev *dev, struct virtqueue *vq);
void vrdma_vq_set_vector(struct virtqueue *vq, int vector);
void vrdma_ring_init(struct vrdma_ring *ring, const struct vrdma_buf *buf,
		     u32 offset, u32 slots, u32 shift);
int vrdma_ring_add(struct vrdma_ring *ring, u32 offset, u32 len, bool in);
bool vrdma_ring_take(struct vrdma_ring *ring, unsigned int *len);

static inline bool vrdma_ring_reap(struct vrdma_ring *ring)
{
	unsigned int len;

	return vrdma_ring_take(ring, &len);
}

static inline void vrdma_ring_reap_all(struct vrdma_ring *ring)
{
	while (vrdma_ring_reap(ring))
		;
}

static inline u32 vrdma_ring_slots(const struct vrdma_ring *ring)
{
	return ring->mask + 1;
}

/* The size of slots is a power of two, so none crosses a page. */
static inline void *vrdma_ring_slot(const struct vrdma_ring *ring, u32 n)
{
	size_t at = ring->offset + ((size_t)(n & ring->mask) << ring->shift);

	return page_address(ring->buf->pages[at >> PAGE_SHIFT]) +
	       offset_in_page(at);
}

/* mmap.c */
struct vrdma_mmap_entry *vrdma_mmap_insert(struct ib_udata *udata,
					   struct vrdma_buf *buf);
void vrdma_mmap_remove(struct vrdma_mmap_entry *entry);
void vrdma_mmap_free(struct rdma_user_mmap_entry *rdma);
int vrdma_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
int vrdma_respond(struct ib_udata *udata, const void *resp, size_t len);

#endif /* VRDMA_RING_H */
