/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtqueues whose buffers are slots in the driver's memory, and the mapping of
 * these slots into processes.
 */
#ifndef VRDMA_RING_H
#define VRDMA_RING_H

#include <linux/kref.h>
#include <linux/mm.h>

#include "ctrl.h"

/*
 * Virtqueues that are not in use are resized to this ring size, which is too
 * small for any object. A device that chooses a virtqueue by its ring size
 * then takes the one that was prepared.
 */
#define VRDMA_RING_IDLE	2
#define VRDMA_DEPTH_MIN		4
#define VRDMA_RING_MIN		16

/* Pages of slots, which a process may map */
struct vrdma_buf {
	struct kref ref;
	struct list_head kept;		/* see vrdma_buf_keep() */
	u32 npages;
	struct page *pages[];
};

/*
 * A virtqueue with its slots. The counters are free-running, and the n-th
 * buffer is slot n & mask: the device takes and returns buffers in order. Of a
 * direct queue it has only the slots, see direct.c.
 */
struct vrdma_ring {
	spinlock_t lock;		/* of the virtqueue and the counters */
	struct virtqueue *vq;		/* NULL: of a direct queue */
	struct vrdma_buf *buf;
	u32 first_page;			/* of the slots in buf */
	u32 shift;			/* log2 of the slot size */
	u32 mask;			/* number of slots - 1 */
	u32 head;			/* buffers added */
	u32 tail;			/* buffers taken back */
};

struct vrdma_ucontext {
	struct ib_ucontext ibucontext;
	u32 doorbell;			/* number of its page; 0: none */
	struct vrdma_mmap_entry *mmap;	/* of that page */
	struct vrdma_area *shadow;	/* of that page; NULL: none */
	struct vrdma_mmap_entry *shadow_mmap;
	struct virtio_rdma_alloc_ucontext_resp resp;
};

struct vrdma_mmap_entry {
	struct rdma_user_mmap_entry rdma;
	struct vrdma_buf *buf;		/* NULL: a page of doorbells */
	unsigned long pfn;
};

/* ring.c */
void vrdma_vqs_lock(struct vrdma_dev *dev);
void vrdma_vqs_unlock(struct vrdma_dev *dev);
struct vrdma_buf *vrdma_buf_alloc(u32 npages);
void vrdma_buf_put(struct vrdma_buf *buf);
void vrdma_buf_keep(struct vrdma_dev *dev, struct vrdma_buf *buf);
void vrdma_bufs_free(struct vrdma_dev *dev);
void vrdma_vq_empty(struct virtqueue *vq);
int vrdma_vq_prepare(struct vrdma_dev *dev, struct virtqueue *vq, u32 depth);
int vrdma_vq_reset(struct vrdma_dev *dev, struct virtqueue *vq);
void vrdma_vq_set_vector(struct virtqueue *vq, int vector);
u32 vrdma_ring_pages(u32 slots, u32 shift);
void vrdma_ring_init(struct vrdma_ring *ring, struct vrdma_buf *buf,
		     u32 first_page, u32 slots, u32 shift);
int vrdma_ring_add(struct vrdma_ring *ring, u32 offset, u32 len, bool in);
bool vrdma_ring_take(struct vrdma_ring *ring, unsigned int *len);

static inline bool vrdma_ring_reap(struct vrdma_ring *ring)
{
	unsigned int len;

	return vrdma_ring_take(ring, &len);
}

static inline u32 vrdma_ring_slots(const struct vrdma_ring *ring)
{
	return ring->mask + 1;
}

static inline void *vrdma_ring_slot(const struct vrdma_ring *ring, u32 n)
{
	size_t at = (size_t)(n & ring->mask) << ring->shift;

	return page_address(ring->buf->pages[ring->first_page +
					     (at >> PAGE_SHIFT)]) +
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
