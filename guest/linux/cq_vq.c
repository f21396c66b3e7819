// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion queues that have a virtqueue.
 *
 * The virtqueue of a CQ holds empty slots, and the device fills them in order.
 * To consume a completion and to take its buffer off the used ring are
 * separate steps. The newest buffer is left in the used ring: virtio's core
 * ignores an interrupt when the used ring is empty, and the interrupt for this
 * buffer may arrive only after the CQ was polled. Only arming takes all
 * buffers, since the device compares the next completion with the used event
 * index, which has to be up to date then.
 *
 * A CQ that is as deep as its virtqueue cannot leave a buffer there. All are
 * taken, and whoever takes one from an armed CQ calls the completion handler
 * itself, in place of the interrupt. No CQ needs this with
 * VIRTIO_RDMA_F_CQ_DEEP: completions without a buffer are pending in the
 * device, which is notified of new buffers.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "queue.h"

static_assert(sizeof(struct virtio_rdma_cqe_ex) <= CQE_SLOT_SIZE);

static bool vrdma_cq_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/*
 * Add the buffers of all slots that are both consumed, as counted by @count,
 * and off the used ring. With the ring's lock held.
 */
static void vrdma_cq_refill(struct vrdma_ring *ring, u32 count)
{
	struct vrdma_dev *dev = ring->vq->vdev->priv;
	u32 end = vrdma_cq_before(count, ring->tail) ? count : ring->tail;
	bool any = false;

	end += vrdma_ring_slots(ring);
	while (vrdma_cq_before(ring->head, end)) {
		if (vrdma_ring_add(ring, 0, CQE_SLOT_SIZE, true))
			break;
		any = true;
	}
	if (any && dev->cq_deep)
		virtqueue_kick(ring->vq);
}

/*
 * The number of completions consumed. A process reports this number itself; a
 * wrong one breaks only its own CQ.
 */
static u32 vrdma_cq_consumed(struct vrdma_cq *cq)
{
	const struct virtio_rdma_cq_page *page;

	if (!cq->mapped)
		return cq->head;
	page = page_address(cq->ring->buf->pages[0]);
	/* Pairs with the process's release after it has emptied the slots. */
	return smp_load_acquire(&page->consumer);
}

/*
 * Give consumed slots back to the device. Returns whether the caller has to
 * call vrdma_cq_callback(), because it may have taken the buffer that an
 * interrupt is about. With the ring's lock held.
 */
static bool vrdma_cq_recycle(struct vrdma_cq *cq, u32 count)
{
	struct vrdma_ring *ring = cq->ring;
	u32 end = cq->full_size ? count : count - 1;
	u32 tail = ring->tail;

	while (vrdma_cq_before(ring->tail, end) && vrdma_ring_reap(ring))
		;
	vrdma_cq_refill(ring, count);
	return cq->full_size && ring->tail != tail;
}

/*
 * Is there a completion that is not consumed? The index of a used ring has 16
 * bits.
 */
bool vrdma_cq_vq_has_cqe(struct vrdma_cq *cq)
{
	return vrdma_cq_before(cq->head, cq->ring->tail) ||
	       virtqueue_poll(cq->ring->vq, (u16)cq->head);
}

/*
 * The number of completions produced, whether consumed or not: of those in the
 * used ring there are no more than slots.
 */
static u32 vrdma_cq_produced(struct vrdma_cq *cq)
{
	struct vrdma_ring *ring = cq->ring;
	u32 n = ring->tail;

	while (n - ring->tail < vrdma_ring_slots(ring) &&
	       virtqueue_poll(ring->vq, (u16)n))
		n++;
	return n;
}

/*
 * The next completion, or NULL. Takes the buffer of the one before off the used
 * ring.
 */
static const struct virtio_rdma_cqe_ex *vrdma_cq_next_cqe(struct vrdma_cq *cq)
{
	struct vrdma_ring *ring = cq->ring;

	if (!vrdma_cq_vq_has_cqe(cq))
		return NULL;
	dma_rmb();
	if (vrdma_cq_before(ring->tail, cq->head)) {
		vrdma_ring_reap(ring);
		vrdma_cq_refill(ring, cq->head);
	}
	return vrdma_ring_slot(ring, cq->head);
}

int vrdma_cq_vq_poll(struct vrdma_cq *cq, int num, struct ib_wc *wc, bool dead)
{
	const struct virtio_rdma_cqe_ex *cqe;
	unsigned long flags;
	bool notify;
	int n = 0;

	spin_lock_irqsave(&cq->ring->lock, flags);
	if (!cq->mapped) {
		while (n < num && (cqe = vrdma_cq_next_cqe(cq))) {
			if (vrdma_wc_take(cq, cqe, &wc[n]))
				n++;
			cq->head++;
		}
		if (dead && n < num)
			n += vrdma_flush_cq(cq, num - n, &wc[n]);
	}
	notify = vrdma_cq_recycle(cq, vrdma_cq_consumed(cq));
	spin_unlock_irqrestore(&cq->ring->lock, flags);
	if (notify)
		vrdma_cq_callback(cq->ring->vq);
	return n;
}

void vrdma_cq_vq_clean(struct vrdma_cq *cq, struct vrdma_qp *qp)
{
	struct vrdma_ring *ring = cq->ring;
	unsigned long flags;
	bool notify;
	u32 i, tail;

	spin_lock_irqsave(&ring->lock, flags);
	tail = ring->tail;
	while (vrdma_ring_reap(ring))
		;
	for (i = cq->head; vrdma_cq_before(i, ring->tail); i++) {
		struct virtio_rdma_cqe *cqe = vrdma_ring_slot(ring, i);

		if (le32_to_cpu(cqe->qp_num) == qp->qpn)
			vrdma_cqe_drop(qp, cqe);
	}
	vrdma_cq_refill(ring, cq->head);
	notify = ring->tail != tail;
	spin_unlock_irqrestore(&ring->lock, flags);
	if (notify)
		vrdma_cq_callback(ring->vq);
}

/*
 * Arm by virtio's interrupt suppression: the first completion after those in
 * the used ring raises an interrupt. With the ring's lock held.
 */
static void vrdma_cq_arm_ring(struct vrdma_cq *cq)
{
	struct vrdma_ring *ring = cq->ring;
	unsigned int seen;

	/*
	 * Completions that the device added before it could see the new event
	 * index raise no interrupt: take them and set the index again.
	 */
	do {
		while (vrdma_ring_reap(ring))
			;
		seen = virtqueue_enable_cb_prepare(ring->vq);
	} while (virtqueue_poll(ring->vq, seen));
	cq->armed = cq->device_flags;
	cq->armed_at = ring->tail;
	vrdma_cq_refill(ring, vrdma_cq_consumed(cq));
}

static int vrdma_cq_arm_cmd(struct vrdma_cq *cq, u32 arm)
{
	struct virtio_rdma_req_notify_cq_req req = {
		.cqn = cpu_to_le32(cq->cqn),
		.flags = cpu_to_le32(arm),
	};

	return vrdma_ctrl_do(vrdma_cq_dev(cq), VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ,
			     &req);
}

/*
 * Does the device have to learn which completions @arm is about? A request for
 * any completion includes solicited ones. With the ring's lock held.
 */
static bool vrdma_cq_needs_arm_cmd(struct vrdma_cq *cq, u32 arm)
{
	return cq->device_flags != arm &&
	       cq->armed != VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION;
}

/*
 * Send the command for a process's CQ, which takes as long as the host takes,
 * before the ring is locked.
 */
static int vrdma_cq_arm_user(struct vrdma_cq *cq, u32 arm)
{
	struct vrdma_ring *ring = cq->ring;
	bool needed;
	int ret;

	lockdep_assert_held(&cq->notify_lock);

	spin_lock_irq(&ring->lock);
	needed = vrdma_cq_needs_arm_cmd(cq, arm);
	spin_unlock_irq(&ring->lock);
	if (!needed)
		return 0;
	ret = vrdma_cq_arm_cmd(cq, arm);
	if (ret)
		return ret;
	spin_lock_irq(&ring->lock);
	cq->device_flags = arm;
	spin_unlock_irq(&ring->lock);
	return 0;
}

/* With the ring's lock held. */
static void vrdma_cq_notify_by_ring(struct vrdma_cq *cq)
{
	/*
	 * A CQ may be armed for more completions than requested: a process's,
	 * if it raises an interrupt after vrdma_cq_arm_user(), and the
	 * kernel's, which cannot wait for a command.
	 */
	if (!cq->armed) {
		vrdma_cq_arm_ring(cq);
		return;
	}
	/*
	 * The CQ is still armed, so an interrupt may be on its way. It would be
	 * ignored if its buffer left the used ring, so arm again only when it
	 * has come.
	 */
	cq->armed = cq->device_flags;
	cq->rearm_at = vrdma_cq_produced(cq);
	cq->rearm = cq->rearm_at != cq->armed_at;
	vrdma_cq_refill(cq->ring, vrdma_cq_consumed(cq));
}

int vrdma_cq_vq_notify(struct vrdma_cq *cq, u32 arm,
		       enum ib_cq_notify_flags flags)
{
	struct vrdma_ring *ring = cq->ring;
	bool by_ring = vrdma_cq_dev(cq)->cq_ring_arm;
	unsigned long irq;
	int ret = 0;

	if (by_ring && vrdma_cq_is_user(cq)) {
		ret = vrdma_cq_arm_user(cq, arm);
		if (ret)
			return ret;
	}
	spin_lock_irqsave(&ring->lock, irq);
	if (by_ring) {
		vrdma_cq_notify_by_ring(cq);
	} else {
		while (vrdma_ring_reap(ring))
			;
		vrdma_cq_refill(ring, vrdma_cq_consumed(cq));
		cq->armed = arm;
		cq->armed_at = vrdma_cq_produced(cq);
	}
	spin_unlock_irqrestore(&ring->lock, irq);

	if (!by_ring && vrdma_cq_is_user(cq))
		ret = vrdma_cq_arm_cmd(cq, arm);
	else if (!by_ring)
		schedule_work(&cq->arm_work);
	if (ret || !(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return ret;

	spin_lock_irqsave(&ring->lock, irq);
	ret = vrdma_cq_vq_has_cqe(cq);
	spin_unlock_irqrestore(&ring->lock, irq);
	return ret;
}

/*
 * Arm the CQ of a user in the kernel by a command. The user took it for armed
 * before, so completions since then call the handler as well.
 */
static void vrdma_cq_arm_work(struct work_struct *work)
{
	struct vrdma_cq *cq = container_of(work, struct vrdma_cq, arm_work);
	struct vrdma_ring *ring = cq->ring;
	bool missed;
	u32 arm;

	spin_lock_irq(&ring->lock);
	arm = cq->armed;
	spin_unlock_irq(&ring->lock);
	/* A dead device has its CQs polled by fatal_work. */
	if (!arm || vrdma_cq_arm_cmd(cq, arm))
		return;
	spin_lock_irq(&ring->lock);
	missed = cq->armed && vrdma_cq_produced(cq) != cq->armed_at;
	spin_unlock_irq(&ring->lock);
	if (missed)
		vrdma_cq_callback(ring->vq);
}

/* Handle an interrupt. Returns how often to call the completion handler. */
static int vrdma_cq_take_events(struct vrdma_cq *cq)
{
	int events = 0;

	spin_lock(&cq->ring->lock);
	/* Without arming, an interrupt was for another queue that shares it. */
	if (cq->armed) {
		events = 1;
		cq->armed = 0;
		if (cq->rearm) {
			cq->rearm = false;
			vrdma_cq_arm_ring(cq);
			if (cq->armed_at != cq->rearm_at) {
				events = 2;
				cq->armed = 0;
			}
		}
		if (!cq->armed && vrdma_cq_dev(cq)->cq_ring_arm)
			virtqueue_disable_cb(cq->ring->vq);
	}
	spin_unlock(&cq->ring->lock);
	return events;
}

void vrdma_cq_callback(struct virtqueue *vq)
{
	struct vrdma_dev *dev = vq->vdev->priv;
	struct vrdma_cq_slot *slot = &dev->cqs[vq->index -
					       VIRTIO_RDMA_CQ_VQ(0)];
	struct vrdma_cq *cq;
	unsigned long flags;
	int events;

	spin_lock_irqsave(&slot->lock, flags);
	cq = slot->cq;
	for (events = cq ? vrdma_cq_take_events(cq) : 0; events; events--)
		vrdma_cq_handle(cq);
	spin_unlock_irqrestore(&slot->lock, flags);
}

/* With a dead device */
void vrdma_cq_vqs_wake(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_cq; i++) {
		struct vrdma_cq_slot *slot = &dev->cqs[i];

		spin_lock_irq(&slot->lock);
		if (slot->cq)
			vrdma_cq_wake(slot->cq);
		spin_unlock_irq(&slot->lock);
	}
}

/* A completion virtqueue that is not in use, and its number */
static struct vrdma_cq_slot *vrdma_cq_find_free(struct vrdma_dev *dev, u32 *cqn)
{
	for (*cqn = 0; *cqn < dev->num_cq; ++*cqn) {
		struct vrdma_cq_slot *slot = &dev->cqs[*cqn];

		if (!slot->cq && !virtqueue_is_broken(slot->ring.vq))
			return slot;
	}
	return NULL;
}

/*
 * A virtqueue that cannot be reset keeps its slots for the next CQ: the device
 * still has their addresses.
 */
static int vrdma_cq_reuse_slots(struct vrdma_cq_slot *slot)
{
	struct vrdma_ring *ring = &slot->ring;
	u32 slots = virtqueue_get_vring_size(ring->vq);
	struct vrdma_buf *buf;

	if (!ring->buf) {
		buf = vrdma_buf_alloc(vrdma_ring_pages(slots, CQE_SLOT_SHIFT));
		if (!buf)
			return -ENOMEM;
		vrdma_ring_init(ring, buf, 0, slots, CQE_SLOT_SHIFT);
		vrdma_buf_put(buf);
	}
	/* Completions that the last CQ left */
	while (vrdma_ring_reap(ring))
		;
	return 0;
}

static int vrdma_cq_alloc_slots(struct vrdma_cq_slot *slot, bool mapped)
{
	struct vrdma_ring *ring = &slot->ring;
	u32 slots = virtqueue_get_vring_size(ring->vq);
	struct vrdma_buf *buf;
	u32 i;

	buf = vrdma_buf_alloc(mapped + vrdma_ring_pages(slots,
							CQE_SLOT_SHIFT));
	if (!buf)
		return -ENOMEM;
	vrdma_ring_init(ring, buf, mapped, slots, CQE_SLOT_SHIFT);
	vrdma_buf_put(buf);
	for (i = 0; i < slots; i++) {
		struct virtio_rdma_cqe *cqe = vrdma_ring_slot(ring, i);

		cqe->status = VIRTIO_RDMA_CQE_EMPTY;
	}
	return 0;
}

static void vrdma_cq_free_slots(struct vrdma_dev *dev,
				struct vrdma_cq_slot *slot)
{
	/* Without a reset the device may still write to the slots. */
	if (vrdma_vq_reset(dev, slot->ring.vq))
		return;
	vrdma_buf_put(slot->ring.buf);
	slot->ring.buf = NULL;
}

static int vrdma_cq_prepare_vq(struct vrdma_dev *dev,
			       struct vrdma_cq_slot *slot, u32 depth)
{
	/*
	 * If the reset for the last CQ failed, it has to succeed now: a resize
	 * to the size that the ring has would do without one.
	 */
	if (dev->ring_reset && slot->ring.buf) {
		vrdma_cq_free_slots(dev, slot);
		if (slot->ring.buf)
			return -EIO;
	}
	return vrdma_vq_prepare(dev, slot->ring.vq, depth);
}

static int vrdma_cq_respond(struct vrdma_cq *cq, struct ib_udata *udata)
{
	struct vrdma_ring *ring = cq->ring;
	struct virtio_rdma_create_cq_resp resp = {};

	if (cq->mapped) {
		cq->mmap = vrdma_mmap_insert(udata, ring->buf);
		if (IS_ERR(cq->mmap))
			return PTR_ERR(cq->mmap);
		resp.mmap_offset = rdma_user_mmap_get_offset(&cq->mmap->rdma);
		resp.mmap_size = ring->buf->npages << PAGE_SHIFT;
		resp.ring_offset = ring->first_page << PAGE_SHIFT;
		resp.slots = vrdma_ring_slots(ring);
		resp.slot_size = CQE_SLOT_SIZE;
		if (vrdma_cq_dev(cq)->cq_deep)
			resp.slack = resp.slots / 2;
		else if (cq->ibcq.cqe < resp.slots)
			resp.slack = resp.slots - 1 - cq->ibcq.cqe;
	}
	return vrdma_respond(udata, &resp, sizeof(resp));
}

static u32 vrdma_cq_ring_depth(const struct vrdma_dev *dev, u32 cqe,
			       bool mapped)
{
	/*
	 * The newest buffer stays in the used ring, so one more is needed. With
	 * twice as many a process returns slots half a ring at a time.
	 */
	u32 depth = mapped ? max(cqe, 2 * cqe) : cqe + 1;

	/* The CQ may grow later, and so many slots fit in one page anyway. */
	if (dev->cq_deep)
		depth = max_t(u32, depth, PAGE_SIZE >> CQE_SLOT_SHIFT);
	return min(depth, dev->ring_max);
}

int vrdma_cq_vq_create(struct vrdma_cq *cq, int vector, struct ib_udata *udata)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	u32 cqe = max_t(u32, cq->ibcq.cqe, VRDMA_DEPTH_MIN);
	__le32 req = cpu_to_le32(cqe);
	struct virtio_rdma_cqn rsp;
	struct vrdma_cq_slot *slot;
	u32 depth, cqn;
	int ret;

	INIT_WORK(&cq->arm_work, vrdma_cq_arm_work);
	cq->mapped = udata && dev->mapped_cq;
	depth = vrdma_cq_ring_depth(dev, cqe, cq->mapped);

	slot = vrdma_cq_find_free(dev, &cqn);
	if (!slot)
		return -ENOMEM;
	ret = vrdma_cq_prepare_vq(dev, slot, depth);
	if (ret)
		goto err_park;
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_CQ, &req, &rsp);
	if (ret)
		goto err_park;
	cq->cqn = le32_to_cpu(rsp.cqn);
	if (cq->cqn != cqn) {
		/* The device chose another number. */
		vrdma_cq_free_slots(dev, slot);
		if (cq->cqn >= dev->num_cq || dev->cqs[cq->cqn].cq) {
			if (cq->cqn >= dev->num_cq)
				vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_DESTROY_CQ,
					      &rsp);
			return -EPROTO;
		}
		slot = &dev->cqs[cq->cqn];
		ret = vrdma_cq_prepare_vq(dev, slot, depth);
		if (ret)
			goto err_destroy;
	}
	cq->ring = &slot->ring;
	cq->handler_lock = &slot->lock;
	ret = dev->ring_reset ? vrdma_cq_alloc_slots(slot, cq->mapped)
			      : vrdma_cq_reuse_slots(slot);
	if (ret)
		goto err_destroy;
	if (udata) {
		ret = vrdma_cq_respond(cq, udata);
		if (ret)
			goto err_mmap;
	}

	cq->full_size = !dev->cq_deep && cqe == vrdma_ring_slots(&slot->ring);
	cq->device_flags = VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION;
	if (dev->cq_ring_arm)
		virtqueue_disable_cb(slot->ring.vq);
	cq->head = slot->ring.tail;
	vrdma_vq_set_vector(slot->ring.vq, vector);
	spin_lock_irq(&slot->ring.lock);
	vrdma_cq_refill(&slot->ring, slot->ring.tail);
	spin_unlock_irq(&slot->ring.lock);
	spin_lock_irq(&slot->lock);
	slot->cq = cq;
	spin_unlock_irq(&slot->lock);
	return 0;

err_mmap:
	if (!IS_ERR(cq->mmap))
		vrdma_mmap_remove(cq->mmap);
err_destroy:
	vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_DESTROY_CQ, &rsp);
err_park:
	vrdma_cq_free_slots(dev, slot);
	return ret;
}

/* The device has destroyed it. */
void vrdma_cq_vq_free(struct vrdma_cq *cq)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	struct vrdma_cq_slot *slot = &dev->cqs[cq->cqn];

	vrdma_events_lock(dev);
	spin_lock(&slot->lock);
	slot->cq = NULL;
	spin_unlock(&slot->lock);
	vrdma_events_unlock(dev);
	cancel_work_sync(&cq->arm_work);
	vrdma_mmap_remove(cq->mmap);
	/* The kernel warns if the interrupt is freed with its hint. */
	virtqueue_set_affinity(slot->ring.vq, NULL);
	vrdma_cq_free_slots(dev, slot);
}

static int vrdma_cq_resize_cmd(struct vrdma_cq *cq, u32 cqe, u32 used)
{
	struct virtio_rdma_resize_cq_req req = {
		.cqn = cpu_to_le32(cq->cqn),
		.cqe = cpu_to_le32(cqe),
		.used = cpu_to_le32(used),
	};

	return vrdma_ctrl(vrdma_cq_dev(cq), VIRTIO_RDMA_CMD_RESIZE_CQ, &req,
			  offsetofend(struct virtio_rdma_resize_cq_req, used),
			  NULL, 0);
}

/* The number of completions in the virtqueue that are not consumed. */
static u32 vrdma_cq_unconsumed(struct vrdma_cq *cq)
{
	u32 count, end;

	spin_lock_irq(&cq->ring->lock);
	count = vrdma_cq_consumed(cq);
	end = vrdma_cq_produced(cq);
	spin_unlock_irq(&cq->ring->lock);
	return vrdma_cq_before(count, end) ? end - count : 0;
}

int vrdma_cq_vq_resize(struct vrdma_cq *cq, u32 cqe)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	int ret;

	vrdma_vqs_lock(dev);
	ret = vrdma_cq_resize_cmd(cq, cqe, vrdma_cq_unconsumed(cq));
	if (!ret && vrdma_cq_unconsumed(cq) > cqe) {
		/* More completions have arrived than then fit: undo it. */
		vrdma_cq_resize_cmd(cq, cq->ibcq.cqe, 0);
		ret = -EINVAL;
	}
	if (!ret)
		cq->ibcq.cqe = cqe;
	vrdma_vqs_unlock(dev);
	return ret;
}

int vrdma_cq_vqs_alloc(struct vrdma_dev *dev)
{
	u32 i;

	dev->cqs = kvcalloc(dev->num_cq, sizeof(*dev->cqs), GFP_KERNEL);
	if (!dev->cqs)
		return -ENOMEM;
	for (i = 0; i < dev->num_cq; i++) {
		spin_lock_init(&dev->cqs[i].lock);
		spin_lock_init(&dev->cqs[i].ring.lock);
	}
	return 0;
}

/* The device's virtqueues are known. */
void vrdma_cq_vqs_init(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_cq; i++)
		dev->cqs[i].ring.vq = dev->vqs[VIRTIO_RDMA_CQ_VQ(i)];
}

/* After a device reset. */
void vrdma_cq_vqs_free(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; dev->cqs && i < dev->num_cq; i++)
		vrdma_buf_put(dev->cqs[i].ring.buf);
	kvfree(dev->cqs);
}
