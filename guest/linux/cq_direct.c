// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion queues that the device writes to in memory, with a phase in each
 * slot, and that are armed there. A process that knows them maps this memory,
 * and needs the kernel for nothing but to sleep.
 */
#include <linux/log2.h>

#include "queue.h"

static_assert(sizeof(struct virtio_rdma_direct_cqe) == CQE_SLOT_SIZE);

/* The @n-th completion in these slots, or NULL if it is not there */
static struct virtio_rdma_direct_cqe *
vrdma_cq_direct_at(const struct vrdma_ring *slots, u32 n)
{
	struct virtio_rdma_direct_cqe *cqe = vrdma_ring_slot(slots, n);

	/* Pairs with the device's release of all that is before the number. */
	if (le32_to_cpu(virt_load_acquire(&cqe->number)) != n + 1)
		return NULL;
	return cqe;
}

bool vrdma_cq_direct_has_cqe(struct vrdma_cq *cq)
{
	return vrdma_cq_direct_at(cq->ring, cq->head);
}

/* For the kernel, or a process that does not map its CQ */
int vrdma_cq_direct_poll(struct vrdma_cq *cq, int num, struct ib_wc *wc,
			 bool dead)
{
	const struct virtio_rdma_direct_cqe *cqe;
	unsigned long flags;
	u32 start;
	int n = 0;

	spin_lock_irqsave(&cq->ring->lock, flags);
	/* A device that fills slots again too early is not followed for ever. */
	for (start = cq->head;
	     n < num && cq->head - start < vrdma_ring_slots(cq->ring) &&
	     (cqe = vrdma_cq_direct_at(cq->ring, cq->head)); cq->head++)
		n += vrdma_wc_take(cq, &cqe->ex, &wc[n]);
	if (dead && n < num)
		n += vrdma_flush_cq(cq, num - n, &wc[n]);
	if (cq->head != start)
		/* The device fills slots again behind the count. */
		virt_store_release(&vrdma_cq_page(cq)->consumer,
				   cpu_to_le32(cq->head));
	spin_unlock_irqrestore(&cq->ring->lock, flags);
	return n;
}

void vrdma_cq_direct_clean(struct vrdma_cq *cq, struct vrdma_qp *qp)
{
	struct virtio_rdma_direct_cqe *cqe;
	unsigned long flags;
	u32 n;

	spin_lock_irqsave(&cq->ring->lock, flags);
	for (n = cq->head; n - cq->head < vrdma_ring_slots(cq->ring) &&
	     (cqe = vrdma_cq_direct_at(cq->ring, n)); n++) {
		if (le32_to_cpu(cqe->ex.cqe.qp_num) == qp->qpn)
			vrdma_cqe_drop(qp, &cqe->ex.cqe);
	}
	spin_unlock_irqrestore(&cq->ring->lock, flags);
}

/* Returns whether there are completions, if that is asked for. */
int vrdma_cq_direct_notify(struct vrdma_cq *cq, u32 arm,
			   enum ib_cq_notify_flags flags)
{
	struct virtio_rdma_direct_cq_page *page;
	unsigned long irq;
	int ret = 0;
	u32 count;

	spin_lock_irqsave(&cq->ring->lock, irq);
	/* A request for any completion that had no event is still one. */
	if (cq->armed != VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION)
		cq->armed = arm;
	page = vrdma_cq_page(cq);
	count = (le32_to_cpu(page->arm) >> VIRTIO_RDMA_ARM_SHIFT) + 1;
	WRITE_ONCE(page->arm,
		   cpu_to_le32(count << VIRTIO_RDMA_ARM_SHIFT | cq->armed));
	/* Pairs with the device's barrier before it looks at the request. */
	virt_mb();
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		ret = vrdma_cq_direct_has_cqe(cq);
	spin_unlock_irqrestore(&cq->ring->lock, irq);
	return ret;
}

/* Memory for so many completions, and the slots in it */
static struct vrdma_area *vrdma_cq_direct_alloc(struct vrdma_dev *dev, u32 cqe,
						struct vrdma_ring *slots)
{
	u32 depth = roundup_pow_of_two(max_t(u32, cqe, VRDMA_DEPTH_MIN));
	struct vrdma_area *area;

	area = vrdma_area_alloc(dev, 1 + vrdma_ring_pages(depth,
							  CQE_SLOT_SHIFT));
	if (!IS_ERR(area))
		vrdma_ring_init(slots, area->buf, 1, depth, CQE_SLOT_SHIFT);
	return area;
}

static void vrdma_cq_direct_free_area(struct vrdma_dev *dev,
				      struct vrdma_area *area,
				      struct vrdma_ring *slots)
{
	vrdma_buf_put(slots->buf);
	vrdma_area_free(dev, area);
}

/* Tell the process where its CQ is. */
static struct vrdma_mmap_entry *
vrdma_cq_direct_respond(const struct vrdma_ring *slots, struct ib_udata *udata)
{
	struct virtio_rdma_create_cq_resp resp = {
		.mmap_size = slots->buf->npages << PAGE_SHIFT,
		.ring_offset = slots->first_page << PAGE_SHIFT,
		.slots = vrdma_ring_slots(slots),
		.slot_size = CQE_SLOT_SIZE,
		.flags = VIRTIO_RDMA_CQ_RESP_DIRECT,
	};
	struct vrdma_mmap_entry *entry = vrdma_mmap_insert(udata, slots->buf);
	int ret;

	if (IS_ERR(entry))
		return entry;
	resp.mmap_offset = rdma_user_mmap_get_offset(&entry->rdma);
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (!ret)
		return entry;
	vrdma_mmap_remove(entry);
	return ERR_PTR(ret);
}

static int vrdma_cq_direct_create_cmd(struct vrdma_cq *cq, u32 eqn)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	struct virtio_rdma_create_cq_req req = {
		.cqe = cpu_to_le32(max_t(u32, cq->ibcq.cqe, VRDMA_DEPTH_MIN)),
		.flags = cpu_to_le32(VIRTIO_RDMA_CQ_DIRECT),
		.eqn = cpu_to_le32(eqn),
		.queue_npages = cpu_to_le32(cq->direct->buf->npages),
		.depth_shift = ilog2(vrdma_ring_slots(&cq->slots)),
	};
	struct virtio_rdma_cqn rsp;
	struct vrdma_table table;
	int ret;

	ret = vrdma_area_table(dev, cq->direct, &table);
	if (ret)
		return ret;
	req.queue_pages = cpu_to_le64(table.pages);
	req.queue_levels = table.levels;
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_CQ, &req, &rsp);
	vrdma_table_free(dev, &table);
	if (ret)
		return ret;
	cq->cqn = le32_to_cpu(rsp.cqn);
	if (cq->cqn < dev->num_eqs || cq->cqn >= dev->num_direct_cq ||
	    vrdma_eqs_find_cq(dev, cq->cqn)) {
		/* Nobody could destroy it: the device has to let go. */
		vrdma_broken(dev, "CQ %u: the number is not free", cq->cqn);
		vrdma_wait_stopped(dev);
		return -EPROTO;
	}
	return 0;
}

/* @mapped: a process polls and arms it in memory. */
int vrdma_cq_direct_create(struct vrdma_cq *cq, u32 vector, bool mapped,
			   struct ib_udata *udata)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	u32 eqn = vector % dev->num_eqs;
	struct virtio_rdma_cqn destroy;
	struct vrdma_area *area;
	int ret;

	area = vrdma_cq_direct_alloc(dev, cq->ibcq.cqe, &cq->slots);
	if (IS_ERR(area))
		return PTR_ERR(area);
	spin_lock_init(&cq->slots.lock);
	cq->direct = area;
	cq->ring = &cq->slots;
	cq->eq = &dev->eqs[eqn];
	cq->handler_lock = &cq->eq->lock;
	cq->mapped = mapped;
	ret = vrdma_cq_direct_create_cmd(cq, eqn);
	if (ret)
		goto err;
	if (mapped) {
		cq->mmap = vrdma_cq_direct_respond(&cq->slots, udata);
		ret = PTR_ERR_OR_ZERO(cq->mmap);
		if (ret)
			goto err_destroy;
	} else if (udata) {
		struct virtio_rdma_create_cq_resp resp = {};

		ret = vrdma_respond(udata, &resp, sizeof(resp));
		if (ret)
			goto err_destroy;
	}
	ret = vrdma_eq_add(cq->eq, cq);
	if (!ret)
		return 0;

	vrdma_mmap_remove(cq->mmap);
err_destroy:
	destroy.cqn = cpu_to_le32(cq->cqn);
	vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_CQ, &destroy, false);
err:
	vrdma_cq_direct_free_area(dev, cq->direct, &cq->slots);
	return ret;
}

/* The device has destroyed it. */
void vrdma_cq_direct_free(struct vrdma_cq *cq)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);

	vrdma_events_lock(dev);
	vrdma_eq_remove(cq->eq, cq->cqn);
	vrdma_events_unlock(dev);
	vrdma_mmap_remove(cq->mmap);
	vrdma_cq_direct_free_area(dev, cq->direct, &cq->slots);
}

static void vrdma_cq_direct_clear(struct vrdma_cq *cq)
{
	const struct vrdma_buf *buf = cq->direct->buf;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&cq->ring->lock, flags);
	for (i = 0; i < buf->npages; i++)
		clear_page(page_address(buf->pages[i]));
	cq->head = 0;
	cq->armed = 0;
	cq->events = 0;
	spin_unlock_irqrestore(&cq->ring->lock, flags);
}

/*
 * The device gets a new CQ for one of the kernel that has failed, in the same
 * memory, which it has not written to since. No queue pair uses it.
 */
int vrdma_cq_direct_renew(struct vrdma_cq *cq)
{
	struct virtio_rdma_cqn old = { .cqn = cpu_to_le32(cq->cqn) }, new;
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	int ret;

	vrdma_cq_direct_clear(cq);
	ret = vrdma_cq_direct_create_cmd(cq, cq->eq - dev->eqs);
	new.cqn = cpu_to_le32(cq->cqn);
	if (!ret) {
		ret = vrdma_eq_add(cq->eq, cq);
		if (ret)
			vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_CQ,
					   &new, false);
	}
	if (ret) {
		cq->cqn = le32_to_cpu(old.cqn);
		return ret;
	}
	vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_CQ, &old, false);
	vrdma_events_lock(dev);
	vrdma_eq_remove(cq->eq, le32_to_cpu(old.cqn));
	vrdma_events_unlock(dev);
	/* Whoever polls it may be about to flush. */
	spin_lock_irq(&cq->ring->lock);
	WRITE_ONCE(cq->failed, false);
	spin_unlock_irq(&cq->ring->lock);
	if (READ_ONCE(cq->notify_requested))
		vrdma_cq_direct_notify(cq, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION,
				       0);
	return 0;
}

static int vrdma_cq_direct_resize_cmd(struct vrdma_cq *cq, u32 cqe,
				      const struct vrdma_area *area,
				      const struct vrdma_ring *slots)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	struct virtio_rdma_resize_cq_req req = {
		.cqn = cpu_to_le32(cq->cqn),
		.cqe = cpu_to_le32(cqe),
		.queue_npages = cpu_to_le32(area->buf->npages),
		.depth_shift = ilog2(vrdma_ring_slots(slots)),
	};
	struct vrdma_table table;
	int ret;

	ret = vrdma_area_table(dev, area, &table);
	if (ret)
		return ret;
	req.queue_pages = cpu_to_le64(table.pages);
	req.queue_levels = table.levels;
	ret = vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_RESIZE_CQ, &req);
	vrdma_table_free(dev, &table);
	return ret;
}

/*
 * Have new memory begin where the old one is now. Slots get the number of the
 * last completion consumed: the next with that one is 2^32 further.
 */
static u32 vrdma_cq_direct_begin(const struct vrdma_cq *cq,
				 const struct vrdma_area *area,
				 const struct vrdma_ring *slots)
{
	struct virtio_rdma_direct_cq_page *page =
		page_address(area->buf->pages[0]);
	struct virtio_rdma_direct_cqe *cqe;
	__le32 consumer;
	u32 n;

	consumer = READ_ONCE(vrdma_cq_page(cq)->consumer);
	page->consumer = consumer;
	page->arm = READ_ONCE(vrdma_cq_page(cq)->arm);
	for (n = 0; n < vrdma_ring_slots(slots); n++) {
		cqe = vrdma_ring_slot(slots, n);
		cqe->number = consumer;
	}
	return le32_to_cpu(consumer);
}

/* A process may write to the old slots, so @slots has to limit this. */
static void vrdma_cq_direct_copy(const struct vrdma_cq *cq, u32 consumer,
				 const struct vrdma_ring *slots)
{
	u32 most = min(vrdma_ring_slots(&cq->slots), vrdma_ring_slots(slots));
	struct virtio_rdma_direct_cqe *from, *to;
	u32 n;

	for (n = consumer; n - consumer < most &&
	     (from = vrdma_cq_direct_at(&cq->slots, n)); n++) {
		to = vrdma_ring_slot(slots, n);
		to->ex = from->ex;
		/* As the device would */
		virt_store_release(&to->number, cpu_to_le32(n + 1));
	}
}

/*
 * With notify_lock held: the CQ is not armed meanwhile, nor polled. Of mapped
 * ones the process sees to that.
 */
static int vrdma_cq_direct_move(struct vrdma_cq *cq, u32 cqe,
				struct ib_udata *udata)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	struct vrdma_mmap_entry *mmap = NULL;
	struct vrdma_ring slots = {};
	struct vrdma_area *area;
	u32 consumer;
	int ret;

	area = vrdma_cq_direct_alloc(dev, cqe, &slots);
	if (IS_ERR(area))
		return PTR_ERR(area);
	/* Nothing may fail once the device has the new memory. */
	if (cq->mapped) {
		mmap = vrdma_cq_direct_respond(&slots, udata);
		if (IS_ERR(mmap)) {
			ret = PTR_ERR(mmap);
			goto err;
		}
	}
	consumer = vrdma_cq_direct_begin(cq, area, &slots);
	ret = vrdma_cq_direct_resize_cmd(cq, cqe, area, &slots);
	if (ret) {
		vrdma_mmap_remove(mmap);
		goto err;
	}
	vrdma_cq_direct_copy(cq, consumer, &slots);
	spin_lock_irq(&cq->slots.lock);
	swap(cq->direct, area);
	swap(cq->slots.buf, slots.buf);
	swap(cq->slots.mask, slots.mask);
	swap(cq->mmap, mmap);
	cq->ibcq.cqe = cqe;
	spin_unlock_irq(&cq->slots.lock);
	vrdma_mmap_remove(mmap);
err:
	vrdma_cq_direct_free_area(dev, area, &slots);
	return ret;
}

int vrdma_cq_direct_resize(struct vrdma_cq *cq, u32 cqe, struct ib_udata *udata)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	int ret;

	/* Nothing keeps users in the kernel from polling meanwhile. */
	if (!vrdma_cq_is_user(cq))
		return -EOPNOTSUPP;
	if (cq->mapped &&
	    udata->outlen < sizeof(struct virtio_rdma_create_cq_resp))
		return -EINVAL;
	vrdma_vqs_lock(dev);
	mutex_lock(&cq->notify_lock);
	ret = vrdma_cq_direct_move(cq, cqe, udata);
	mutex_unlock(&cq->notify_lock);
	vrdma_vqs_unlock(dev);
	return ret;
}
