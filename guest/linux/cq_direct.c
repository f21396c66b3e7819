// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion queues that the device writes to in memory, with a phase in each
 * slot, and that are armed there. A process maps the memory of its CQ, and
 * needs the kernel only to sleep.
 */
#include <linux/log2.h>

#include "queue.h"

static_assert(sizeof(struct virtio_rdma_direct_cqe) == CQE_SLOT_SIZE);

/* The @n-th completion in these slots, or NULL if it is not there */
static struct virtio_rdma_direct_cqe *
vrdma_cq_direct_at(const struct vrdma_ring *slots, u32 n)
{
	struct virtio_rdma_direct_cqe *cqe = vrdma_ring_slot(slots, n);

	/* Pairs with the device's store-release of @number, its last write. */
	if (le32_to_cpu(virt_load_acquire(&cqe->number)) != n + 1)
		return NULL;
	return cqe;
}

bool vrdma_cq_direct_has_cqe(struct vrdma_cq *cq)
{
	return vrdma_cq_direct_at(cq->ring, cq->head);
}

int vrdma_cq_direct_poll(struct vrdma_cq *cq, int num, struct ib_wc *wc,
			 bool dead)
{
	const struct virtio_rdma_direct_cqe *cqe;
	unsigned long flags;
	u32 start;
	int n = 0;

	spin_lock_irqsave(&cq->ring->lock, flags);
	/* Bound the loop: a faulty device may refill slots too early. */
	for (start = cq->head;
	     n < num && cq->head - start < vrdma_ring_slots(cq->ring) &&
	     (cqe = vrdma_cq_direct_at(cq->ring, cq->head)); cq->head++)
		n += vrdma_wc_take(cq, &cqe->ex, &wc[n]);
	if (dead && n < num)
		n += vrdma_flush_cq(cq, num - n, &wc[n]);
	if (cq->head != start)
		/* Publish the count: the device may refill consumed slots. */
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

int vrdma_cq_direct_notify(struct vrdma_cq *cq, u32 arm,
			   enum ib_cq_notify_flags flags)
{
	struct virtio_rdma_direct_cq_page *page;
	unsigned long irq;
	int ret = 0;
	u32 count;

	spin_lock_irqsave(&cq->ring->lock, irq);
	/* A request for any completion stands until it has its event. */
	if (cq->armed != VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION)
		cq->armed = arm;
	page = vrdma_cq_page(cq);
	count = (le32_to_cpu(page->arm) >> VIRTIO_RDMA_ARM_SHIFT) + 1;
	WRITE_ONCE(page->arm,
		   cpu_to_le32(count << VIRTIO_RDMA_ARM_SHIFT | cq->armed));
	/* Pairs with the device's barrier before it reads the request. */
	virt_mb();
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		ret = vrdma_cq_direct_has_cqe(cq);
	spin_unlock_irqrestore(&cq->ring->lock, irq);
	return ret;
}

/* Allocate memory for @cqe completions, and describe its slots. */
static struct vrdma_area *vrdma_cq_direct_alloc(struct vrdma_dev *dev, u32 cqe,
						struct vrdma_ring *slots)
{
	u32 num = vrdma_slots(cqe);
	struct vrdma_area *area;

	area = vrdma_area_alloc(dev,
				1 + vrdma_slot_pages(num, CQE_SLOT_SHIFT));
	if (!IS_ERR(area))
		vrdma_ring_init(slots, area->buf, VRDMA_PAGE_SIZE, num,
				CQE_SLOT_SHIFT);
	return area;
}

/* Create the mapping of the CQ, and fill in the response that describes it. */
static struct vrdma_mmap_entry *
vrdma_cq_direct_map(struct vrdma_area *area, const struct vrdma_ring *slots,
		    struct ib_udata *udata,
		    struct virtio_rdma_create_cq_resp *resp)
{
	struct vrdma_mmap_entry *entry;

	*resp = (struct virtio_rdma_create_cq_resp) {
		.mmap_size = area->buf->npages << PAGE_SHIFT,
		.ring_offset = slots->offset,
		.slots = vrdma_ring_slots(slots),
		.slot_size = CQE_SLOT_SIZE,
	};
	entry = vrdma_mmap_insert(udata, area->buf);
	if (!IS_ERR(entry))
		resp->mmap_offset = rdma_user_mmap_get_offset(&entry->rdma);
	return entry;
}

static int vrdma_cq_direct_create_cmd(struct vrdma_cq *cq, u32 eqn)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	struct virtio_rdma_create_cq_req req = {
		.cqe = cpu_to_le32(max_t(u32, cq->ibcq.cqe, VRDMA_DEPTH_MIN)),
		.flags = cpu_to_le32(VIRTIO_RDMA_CQ_DIRECT),
		.eqn = cpu_to_le32(eqn),
		.queue_npages = cpu_to_le32(cq->area->npages),
		.depth_shift = ilog2(vrdma_ring_slots(&cq->slots)),
	};
	struct virtio_rdma_cqn rsp;
	struct vrdma_table table;
	int ret;

	ret = vrdma_area_table(dev, cq->area, &table);
	if (ret)
		return ret;
	req.queue_pages = cpu_to_le64(table.pages);
	req.queue_levels = table.levels;
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_CQ, &req, &rsp);
	vrdma_table_free(dev, &table);
	if (ret)
		return ret;
	cq->cqn = le32_to_cpu(rsp.cqn);
	if (cq->cqn < dev->num_eqs || cq->cqn >= dev->num_cq ||
	    vrdma_eqs_find_cq(dev, cq->cqn)) {
		/* An invalid or used number: the new CQ cannot be destroyed. */
		vrdma_broken(dev, "CQ %u: the number is not free", cq->cqn);
		vrdma_wait_stopped(dev);
		return -EPROTO;
	}
	return 0;
}

int vrdma_cq_direct_create(struct vrdma_cq *cq, u32 vector,
			   struct ib_udata *udata,
			   struct virtio_rdma_create_cq_resp *resp)
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
	cq->area = area;
	cq->ring = &cq->slots;
	cq->eq = &dev->eqs[eqn];
	cq->handler_lock = &cq->eq->lock;
	ret = vrdma_cq_direct_create_cmd(cq, eqn);
	if (ret)
		goto err;
	if (udata) {
		cq->mmap = vrdma_cq_direct_map(area, &cq->slots, udata, resp);
		ret = PTR_ERR_OR_ZERO(cq->mmap);
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
	vrdma_area_free(dev, area);
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
	vrdma_area_free(dev, cq->area);
}

static void vrdma_cq_direct_clear(struct vrdma_cq *cq)
{
	const struct vrdma_buf *buf = cq->area->buf;
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
 * Replace a failed kernel CQ, which no QP uses, by a new one in the same
 * memory. The device writes nothing to a failed CQ, so the memory can be
 * cleared first.
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
	/* Another thread that polls it may be about to flush. */
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
		.queue_npages = cpu_to_le32(area->npages),
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
 * Initialise new memory with the counts of the old. Slots get the number of the
 * last completion consumed: the next completion with that number is 2^32
 * further.
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

/* A process may write to the old slots at any time: @slots limit the copy. */
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
 * Move the CQ of a process, which neither polls nor arms it meanwhile. Users in
 * the kernel could not be kept from polling.
 */
int vrdma_cq_direct_resize(struct vrdma_cq *cq, u32 cqe, struct ib_udata *udata)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	struct virtio_rdma_create_cq_resp resp;
	struct vrdma_ring slots = {};
	struct vrdma_mmap_entry *mmap;
	struct vrdma_area *area;
	u32 consumer;
	int ret;

	if (!cq->mmap)
		return -EOPNOTSUPP;
	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	area = vrdma_cq_direct_alloc(dev, cqe, &slots);
	if (IS_ERR(area))
		return PTR_ERR(area);
	/* Nothing may fail once the device has the new memory. */
	mmap = vrdma_cq_direct_map(area, &slots, udata, &resp);
	ret = PTR_ERR_OR_ZERO(mmap);
	if (ret)
		goto out_area;
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (ret)
		goto out;
	vrdma_objects_lock(dev);
	consumer = vrdma_cq_direct_begin(cq, area, &slots);
	ret = vrdma_cq_direct_resize_cmd(cq, cqe, area, &slots);
	if (!ret) {
		vrdma_cq_direct_copy(cq, consumer, &slots);
		spin_lock_irq(&cq->slots.lock);
		swap(cq->area, area);
		swap(cq->slots.buf, slots.buf);
		swap(cq->slots.mask, slots.mask);
		swap(cq->mmap, mmap);
		cq->ibcq.cqe = cqe;
		spin_unlock_irq(&cq->slots.lock);
	}
	vrdma_objects_unlock(dev);
out:
	vrdma_mmap_remove(mmap);
out_area:
	vrdma_area_free(dev, area);
	return ret;
}
