// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion queues.
 *
 * The virtqueue of a CQ is full of empty slots, which the device fills in
 * order. Consuming a completion and taking its buffer from the virtqueue are
 * two things: the newest buffer stays in the used ring, since a virtqueue
 * whose used ring is empty drops the interrupt, and that may be on its way
 * while somebody polls. Only arming takes everything, so that the device
 * compares the next completion with an up-to-date used event index.
 *
 * A CQ that is as large as the virtqueue can spare no buffer, so there all are
 * taken, and who takes one from an armed CQ stands in for the interrupt. That
 * is unless the device keeps completions back that find no buffer
 * (VIRTIO_RDMA_F_CQ_DEEP); it asks to be notified of buffers then.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "vrdma.h"

#define CQE_SLOT_SHIFT 6
#define CQE_SLOT_SIZE BIT(CQE_SLOT_SHIFT)
/* In place of the QPN: nobody wants this completion any more. */
#define CQE_NO_QP cpu_to_le32(~0U)

static_assert(sizeof(struct virtio_rdma_cqe_ex) <= CQE_SLOT_SIZE);

static bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

static struct vrdma_dev *cq_dev(const struct vrdma_cq *cq)
{
	return to_vdev(cq->ibcq.device);
}

/* Give the device all slots that are consumed and off the used ring. */
static void refill(struct vrdma_ring *ring, u32 count)
{
	struct vrdma_dev *dev = ring->vq->vdev->priv;
	u32 end = before(count, ring->tail) ? count : ring->tail;
	bool any = false;

	end += vrdma_ring_slots(ring);
	while (before(ring->head, end)) {
		if (vrdma_ring_add(ring, 0, CQE_SLOT_SIZE, true))
			break;
		any = true;
	}
	if (any && dev->cq_deep)
		virtqueue_kick(ring->vq);
}

/* A process says so itself; only it suffers if that is wrong. */
static u32 consumed(struct vrdma_cq *cq)
{
	const struct virtio_rdma_cq_page *page;

	if (!cq->mapped)
		return cq->head;
	page = page_address(cq->ring->buf->pages[0]);
	/* Pairs with the process's release: its slots are empty by then. */
	return smp_load_acquire(&page->consumer);
}

/* Returns whether to stand in for the interrupt. */
static bool recycle(struct vrdma_cq *cq, u32 count)
{
	struct vrdma_ring *ring = cq->ring;
	u32 end = cq->full_size ? count : count - 1;
	u32 tail = ring->tail;

	while (before(ring->tail, end) && vrdma_ring_reap(ring))
		;
	refill(ring, count);
	return cq->full_size && ring->tail != tail;
}

/*
 * Is there a completion behind those consumed? The virtqueue counts in
 * 16 bits.
 */
static bool have_cqe(struct vrdma_cq *cq)
{
	return before(cq->head, cq->ring->tail) ||
	       virtqueue_poll(cq->ring->vq, (u16)cq->head);
}

/* How many completions there were, with those not consumed. */
static u32 produced(struct vrdma_cq *cq)
{
	u32 n = cq->ring->tail;

	while (virtqueue_poll(cq->ring->vq, (u16)n))
		n++;
	return n;
}

/* The next completion, or NULL. Takes the one before from the used ring. */
static const struct virtio_rdma_cqe_ex *next_cqe(struct vrdma_cq *cq)
{
	struct vrdma_ring *ring = cq->ring;

	if (!have_cqe(cq))
		return NULL;
	dma_rmb();
	if (before(ring->tail, cq->head)) {
		vrdma_ring_reap(ring);
		refill(ring, cq->head);
	}
	return vrdma_ring_slot(ring, cq->head);
}

/* What is told about a datagram besides the GRH. */
static void fill_datagram(const struct virtio_rdma_cqe_ex *ex, u32 flags,
			  struct ib_wc *wc)
{
	if (flags & VIRTIO_RDMA_WC_WITH_SMAC) {
		wc->wc_flags |= IB_WC_WITH_SMAC;
		memcpy(wc->smac, ex->smac, sizeof(wc->smac));
	}
	if (flags & VIRTIO_RDMA_WC_WITH_VLAN) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = le16_to_cpu(ex->vlan);
	}
	if (flags & VIRTIO_RDMA_WC_WITH_HDR_TYPE) {
		wc->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
		wc->network_hdr_type = ex->hdr_type == VIRTIO_RDMA_HDR_IPV4 ?
				       RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	}
}

/* Some numbers differ from one kernel to the next. */
static enum ib_wc_opcode wc_opcode(u8 opcode)
{
	switch (opcode) {
	case VIRTIO_RDMA_CQE_OP_REG_MR:
		return IB_WC_REG_MR;
#ifdef VRDMA_FLUSH
	case VIRTIO_RDMA_CQE_OP_FLUSH:
		return IB_WC_FLUSH;
#endif
#ifdef VRDMA_ATOMIC_WRITE
	case VIRTIO_RDMA_CQE_OP_ATOMIC_WRITE:
		return IB_WC_ATOMIC_WRITE;
#endif
	default:
		return opcode;
	}
}

/* Returns false if it is the completion of a QP that is no more. */
static bool fill_wc(struct vrdma_dev *dev, const struct virtio_rdma_cqe_ex *ex,
		    struct ib_wc *wc)
{
	const struct virtio_rdma_cqe *cqe = &ex->cqe;
	u32 qpn = le32_to_cpu(cqe->qp_num);
	u32 flags = le32_to_cpu(cqe->wc_flags);
	struct vrdma_qp *qp;

	qp = qpn < dev->num_qp ? READ_ONCE(dev->qps[qpn]) : NULL;
	if (!qp)
		return false;

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = le64_to_cpu(cqe->wr_id);
	wc->status = cqe->status;
	wc->opcode = wc_opcode(cqe->opcode);
	wc->vendor_err = le32_to_cpu(cqe->vendor_err);
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	wc->qp = &qp->ibqp;
	if (flags & VIRTIO_RDMA_WC_GRH)
		wc->wc_flags |= IB_WC_GRH;
	if (flags & VIRTIO_RDMA_WC_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		memcpy(&wc->ex.imm_data, cqe->ex.imm_data,
		       sizeof(wc->ex.imm_data));
	} else if (flags & VIRTIO_RDMA_WC_WITH_INVALIDATE) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->ex.invalidate_rkey);
	}
	wc->src_qp = le32_to_cpu(cqe->src_qp);
	wc->pkey_index = le16_to_cpu(cqe->pkey_index);
	wc->sl = cqe->sl;
	wc->port_num = cqe->port_num;
	fill_datagram(ex, flags, wc);
	return true;
}

int vrdma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct vrdma_cq *cq = to_vcq(ibcq);
	/* Pairs with the release: if so, what the device reported is there. */
	bool dead = smp_load_acquire(&dev->dead);
	const struct virtio_rdma_cqe_ex *cqe;
	unsigned long flags;
	bool stand_in;
	int n = 0;

	spin_lock_irqsave(&cq->ring->lock, flags);
	if (!cq->mapped) {
		while (n < num && (cqe = next_cqe(cq))) {
			if (fill_wc(dev, cqe, &wc[n]))
				n++;
			cq->head++;
		}
		if (dead && n < num)
			n += vrdma_flush(cq, num - n, &wc[n]);
	}
	stand_in = recycle(cq, consumed(cq));
	spin_unlock_irqrestore(&cq->ring->lock, flags);
	if (stand_in)
		vrdma_cq_callback(cq->ring->vq);
	return n;
}

/* A QP is gone, or was reset: drop its completions. */
void vrdma_cq_clean(struct vrdma_cq *cq, u32 qpn)
{
	struct vrdma_ring *ring = cq->ring;
	unsigned long flags;
	bool stand_in;
	u32 i, tail;

	/* A process does this itself. */
	if (cq->mapped)
		return;
	spin_lock_irqsave(&ring->lock, flags);
	tail = ring->tail;
	while (vrdma_ring_reap(ring))
		;
	for (i = cq->head; before(i, ring->tail); i++) {
		struct virtio_rdma_cqe *cqe = vrdma_ring_slot(ring, i);

		if (le32_to_cpu(cqe->qp_num) == qpn)
			cqe->qp_num = CQE_NO_QP;
	}
	refill(ring, cq->head);
	stand_in = ring->tail != tail;
	spin_unlock_irqrestore(&ring->lock, flags);
	if (stand_in)
		vrdma_cq_callback(ring->vq);
}

/*
 * Arm by virtio's interrupt suppression, so that the completion behind all that
 * are there interrupts. With the ring's lock held.
 */
static void arm_ring(struct vrdma_cq *cq)
{
	struct vrdma_ring *ring = cq->ring;
	unsigned int seen;

	/* What comes before the device can know was found just so. */
	do {
		while (vrdma_ring_reap(ring))
			;
		seen = virtqueue_enable_cb_prepare(ring->vq);
	} while (virtqueue_poll(ring->vq, seen));
	cq->armed = cq->choice;
	cq->armed_at = ring->tail;
	refill(ring, consumed(cq));
}

static int req_notify(struct vrdma_cq *cq, u32 what)
{
	struct virtio_rdma_req_notify_cq_req req = {
		.cqn = cpu_to_le32(cq->cqn),
		.flags = cpu_to_le32(what),
	};

	return vrdma_ctrl(cq_dev(cq), VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ, &req,
			  sizeof(req), NULL, 0, VRDMA_ATOMIC);
}

/* With the ring's lock held. */
static int request_by_ring(struct vrdma_cq *cq, u32 what)
{
	int ret;

	/* Of two requests the broader one counts. */
	if (cq->choice != what &&
	    cq->armed != VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION) {
		ret = req_notify(cq, what);
		if (ret)
			return ret;
		cq->choice = what;
	}
	if (!cq->armed) {
		arm_ring(cq);
		return 0;
	}
	/*
	 * Still armed, so an interrupt may be on its way; to take
	 * its completion from the used ring would make it go unheard.
	 */
	cq->armed = cq->choice;
	cq->rearm_at = produced(cq);
	cq->rearm = cq->rearm_at != cq->armed_at;
	refill(cq->ring, consumed(cq));
	return 0;
}

/* There are no interrupts any more: whoever posts has the CQ polled. */
static int request_of_dead(struct vrdma_cq *cq, enum ib_cq_notify_flags flags)
{
	unsigned long irq;
	int ret;

	if (cq->mapped || !(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return 0;
	spin_lock_irqsave(&cq->ring->lock, irq);
	ret = have_cqe(cq) || vrdma_flush(cq, 1, NULL);
	spin_unlock_irqrestore(&cq->ring->lock, irq);
	return ret;
}

int vrdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct vrdma_cq *cq = to_vcq(ibcq);
	struct vrdma_ring *ring = cq->ring;
	bool by_ring = cq_dev(cq)->cq_ring_arm;
	unsigned long irq;
	int ret = 0;
	u32 what;

	WRITE_ONCE(cq->asked, true);
	/* Pairs with the release: what the device reported is there. */
	if (smp_load_acquire(&cq_dev(cq)->dead))
		return request_of_dead(cq, flags);
	what = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
	       VIRTIO_RDMA_NOTIFY_SOLICITED :
	       VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION;

	spin_lock_irqsave(&ring->lock, irq);
	if (by_ring) {
		ret = request_by_ring(cq, what);
	} else {
		while (vrdma_ring_reap(ring))
			;
		refill(ring, consumed(cq));
		cq->armed = what;
	}
	spin_unlock_irqrestore(&ring->lock, irq);

	if (!by_ring)
		ret = req_notify(cq, what);
	if (ret || !(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return ret;

	spin_lock_irqsave(&ring->lock, irq);
	ret = have_cqe(cq);
	spin_unlock_irqrestore(&ring->lock, irq);
	return ret;
}

/* The CQ has interrupted. Returns the number of events that are due. */
static int take_events(struct vrdma_cq *cq)
{
	int events = 0;

	spin_lock(&cq->ring->lock);
	/* With a shared interrupt it may be about another queue. */
	if (cq->armed) {
		events = 1;
		cq->armed = 0;
		if (cq->rearm) {
			cq->rearm = false;
			arm_ring(cq);
			if (cq->armed_at != cq->rearm_at) {
				events = 2;
				cq->armed = 0;
			}
		}
		if (!cq->armed && cq_dev(cq)->cq_ring_arm)
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
	for (events = cq ? take_events(cq) : 0; events; events--) {
		if (cq->ibcq.comp_handler)
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	}
	spin_unlock_irqrestore(&slot->lock, flags);
}

/* A completion virtqueue to use for the next CQ, and its number. */
static struct vrdma_cq_slot *free_slot(struct vrdma_dev *dev, u32 *cqn)
{
	for (*cqn = 0; *cqn < dev->num_cq; ++*cqn) {
		struct vrdma_cq_slot *slot = &dev->cqs[*cqn];

		if (!slot->cq && !virtqueue_is_broken(slot->ring.vq))
			return slot;
	}
	return NULL;
}

/* The slots of a virtqueue that cannot be reset stay with it. */
static int keep_slots(struct vrdma_cq_slot *slot)
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
	/* Completions nobody took. */
	while (vrdma_ring_reap(ring))
		;
	return 0;
}

static int make_slots(struct vrdma_cq_slot *slot, bool mapped)
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

static void drop_slots(struct vrdma_dev *dev, struct vrdma_cq_slot *slot)
{
	/* While the device may write to the slots they must stay. */
	if (vrdma_vq_park(dev, slot->ring.vq))
		return;
	vrdma_buf_put(slot->ring.buf);
	slot->ring.buf = NULL;
}

/* A completion vector is a CPU. */
static void set_vector(struct vrdma_cq_slot *slot, int vector)
{
	unsigned int cpu = cpumask_local_spread(vector, NUMA_NO_NODE);

	virtqueue_set_affinity(slot->ring.vq, cpumask_of(cpu));
}

static int respond(struct vrdma_cq *cq, struct ib_udata *udata)
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
		if (cq_dev(cq)->cq_deep)
			resp.slack = resp.slots / 2;
		else if (cq->ibcq.cqe < resp.slots)
			resp.slack = resp.slots - 1 - cq->ibcq.cqe;
	}
	return vrdma_respond(udata, &resp, sizeof(resp));
}

static u32 ring_depth(const struct vrdma_dev *dev, u32 cqe, bool mapped)
{
	/* One slot lags behind; more let a process recycle in batches. */
	u32 depth = mapped ? max(cqe, 2 * cqe) : cqe + 1;

	/* It may be resized, and this many take one page. */
	if (dev->cq_deep)
		depth = max_t(u32, depth, PAGE_SIZE >> CQE_SLOT_SHIFT);
	return min(depth, dev->ring_max);
}

int vrdma_do_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	u32 cqe = max_t(u32, attr->cqe, VRDMA_DEPTH_MIN);
	struct virtio_rdma_create_cq_req req = { .cqe = cpu_to_le32(cqe) };
	struct vrdma_cq *cq = to_vcq(ibcq);
	struct virtio_rdma_cqn rsp;
	struct vrdma_cq_slot *slot;
	u32 depth, cqn;
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > dev->attr.max_cqe)
		return -EINVAL;
	cq->mapped = udata && dev->mapped_cq;
	ibcq->cqe = attr->cqe;
	depth = ring_depth(dev, cqe, cq->mapped);

	mutex_lock(&dev->vq_lock);
	slot = free_slot(dev, &cqn);
	if (!slot) {
		ret = -ENOMEM;
		goto err_unlock;
	}
	ret = vrdma_vq_grow(dev, slot->ring.vq, depth);
	if (ret)
		goto err_park;
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_CQ, &req, &rsp);
	if (ret)
		goto err_park;
	cq->cqn = le32_to_cpu(rsp.cqn);
	if (cq->cqn != cqn) {
		/* The device chose another number. */
		drop_slots(dev, slot);
		if (cq->cqn >= dev->num_cq || dev->cqs[cq->cqn].cq) {
			ret = -EPROTO;
			goto err_unlock;
		}
		slot = &dev->cqs[cq->cqn];
		ret = vrdma_vq_grow(dev, slot->ring.vq, depth);
		if (ret)
			goto err_destroy;
	}
	cq->ring = &slot->ring;
	ret = dev->ring_reset ? make_slots(slot, cq->mapped)
			      : keep_slots(slot);
	if (ret)
		goto err_destroy;
	if (udata) {
		ret = respond(cq, udata);
		if (ret)
			goto err_mmap;
	}

	cq->full_size = !dev->cq_deep && cqe == vrdma_ring_slots(&slot->ring);
	cq->choice = VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION;
	if (dev->cq_ring_arm)
		virtqueue_disable_cb(slot->ring.vq);
	cq->head = slot->ring.tail;
	set_vector(slot, attr->comp_vector);
	spin_lock_irq(&slot->ring.lock);
	refill(&slot->ring, slot->ring.tail);
	spin_unlock_irq(&slot->ring.lock);
	spin_lock_irq(&slot->lock);
	slot->cq = cq;
	spin_unlock_irq(&slot->lock);
	mutex_unlock(&dev->vq_lock);
	return 0;

err_mmap:
	if (!IS_ERR(cq->mmap))
		vrdma_mmap_remove(cq->mmap);
err_destroy:
	vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_DESTROY_CQ, &rsp);
err_park:
	drop_slots(dev, slot);
err_unlock:
	mutex_unlock(&dev->vq_lock);
	return ret;
}

int vrdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct vrdma_cq *cq = to_vcq(ibcq);
	struct virtio_rdma_cqn req = { .cqn = cpu_to_le32(cq->cqn) };
	struct vrdma_cq_slot *slot = &dev->cqs[cq->cqn];
	int ret;

	mutex_lock(&dev->vq_lock);
	ret = vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_CQ, &req);
	if (!ret) {
		vrdma_events_lock(dev);
		spin_lock(&slot->lock);
		slot->cq = NULL;
		spin_unlock(&slot->lock);
		vrdma_events_unlock(dev);
		vrdma_mmap_remove(cq->mmap);
		/* The hint must be gone when the interrupt is freed. */
		virtqueue_set_affinity(slot->ring.vq, NULL);
		drop_slots(dev, slot);
	}
	mutex_unlock(&dev->vq_lock);
	return ret;
}

static int resize(struct vrdma_cq *cq, u32 cqe, u32 used)
{
	struct virtio_rdma_resize_cq_req req = {
		.cqn = cpu_to_le32(cq->cqn),
		.cqe = cpu_to_le32(cqe),
		.used = cpu_to_le32(used),
	};

	return vrdma_ctrl_do(cq_dev(cq), VIRTIO_RDMA_CMD_RESIZE_CQ, &req);
}

/* Completions in the virtqueue that are not consumed. */
static u32 unconsumed(struct vrdma_cq *cq)
{
	u32 count, end;

	spin_lock_irq(&cq->ring->lock);
	count = consumed(cq);
	end = produced(cq);
	spin_unlock_irq(&cq->ring->lock);
	return before(count, end) ? end - count : 0;
}

int vrdma_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct vrdma_cq *cq = to_vcq(ibcq);
	int ret;

	if (!dev->cq_deep)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > dev->attr.max_cqe)
		return -EINVAL;

	mutex_lock(&dev->vq_lock);
	ret = resize(cq, cqe, unconsumed(cq));
	if (!ret && unconsumed(cq) > cqe) {
		/* Completions have come since they were counted. */
		resize(cq, ibcq->cqe, 0);
		ret = -EINVAL;
	}
	if (!ret)
		ibcq->cqe = cqe;
	mutex_unlock(&dev->vq_lock);
	return ret;
}

/* After a device reset. */
void vrdma_cqs_free(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_cq; i++)
		vrdma_buf_put(dev->cqs[i].ring.buf);
	kvfree(dev->cqs);
}
