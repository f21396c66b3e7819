// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device's end of the virtqueues. Without VIRTIO_F_ACCESS_PLATFORM
 * descriptors have physical addresses.
 */
#include <linux/io.h>

#include "broken.h"

static bool broken_is_sane(const struct broken_buf *buf)
{
	return buf->out || buf->in;
}

bool broken_take(struct broken_vq *bvq, struct broken_buf *buf)
{
	const struct vring *vring;
	u32 i, n;

	if (!bvq->vq || !bvq->enabled)
		return false;
	vring = virtqueue_get_vring(bvq->vq);
	if (bvq->avail == le16_to_cpu(READ_ONCE(vring->avail->idx)))
		return false;
	virtio_rmb(true);
	memset(buf, 0, sizeof(*buf));
	i = le16_to_cpu(vring->avail->ring[bvq->avail++ % vring->num]);
	buf->head = i;
	for (n = 0; n < 2; n++) {
		const struct vring_desc *desc = &vring->desc[i % vring->num];
		void *data = phys_to_virt(le64_to_cpu(desc->addr));

		if (le16_to_cpu(desc->flags) & VRING_DESC_F_WRITE) {
			buf->in = data;
			buf->in_len = le32_to_cpu(desc->len);
		} else {
			buf->out = data;
			buf->out_len = le32_to_cpu(desc->len);
		}
		if (!(le16_to_cpu(desc->flags) & VRING_DESC_F_NEXT))
			break;
		i = le16_to_cpu(desc->next);
	}
	return broken_is_sane(buf);
}

/*
 * With BROKEN_ENDLESS, the device does nothing else with the virtqueue of a CQ
 * but fill each buffer as soon as it is there, also during the driver's poll.
 */
bool broken_is_endless(struct broken_device *dev, u32 cqn)
{
	return cqn < BROKEN_CQS && broken_does(dev, BROKEN_ENDLESS) &&
	       dev->cqs[cqn].exists && !dev->cqs[cqn].page &&
	       !dev->cqs[cqn].events;
}

/* Fill all buffers of a CQ with completions of no QP, without an interrupt. */
void broken_fill(struct broken_device *dev, u32 cqn)
{
	struct broken_vq *bvq = &dev->vqs[VIRTIO_RDMA_CQ_VQ(cqn)];
	const struct vring *vring = virtqueue_get_vring(bvq->vq);
	struct virtio_rdma_cqe cqe = {
		.qp_num = cpu_to_le32(VIRTIO_RDMA_CQE_QPN_NONE),
	};
	struct vring_used_elem *elem;
	struct broken_buf buf;
	unsigned long flags;

	spin_lock_irqsave(&dev->endless, flags);
	while (broken_take(bvq, &buf)) {
		if (buf.in && buf.in_len >= sizeof(cqe))
			memcpy(buf.in, &cqe, sizeof(cqe));
		elem = &vring->used->ring[bvq->used++ % vring->num];
		elem->id = cpu_to_le32(buf.head);
		elem->len = cpu_to_le32(buf.in_len);
	}
	virtio_wmb(true);
	WRITE_ONCE(vring->used->idx, cpu_to_le16(bvq->used));
	spin_unlock_irqrestore(&dev->endless, flags);
}

static void broken_fill_all(struct broken_device *dev)
{
	u32 cqn;

	for (cqn = 0; cqn < BROKEN_CQS; cqn++) {
		if (!broken_is_endless(dev, cqn))
			continue;
		broken_fill(dev, cqn);
		local_bh_disable();
		vring_interrupt(0, dev->vqs[VIRTIO_RDMA_CQ_VQ(cqn)].vq);
		local_bh_enable();
	}
}

void broken_return(struct broken_device *dev, struct broken_vq *bvq, u32 head,
		   u32 len)
{
	const struct vring *vring = virtqueue_get_vring(bvq->vq);
	struct vring_used_elem *elem =
		&vring->used->ring[bvq->used++ % vring->num];

	if (broken_does(dev, BROKEN_USED_ID))
		head = broken_random(dev);
	if (broken_does(dev, BROKEN_USED_IDX))
		bvq->used += broken_random(dev);
	elem->id = cpu_to_le32(head);
	elem->len = cpu_to_le32(len);
	virtio_wmb(true);
	WRITE_ONCE(vring->used->idx, cpu_to_le16(bvq->used));
	local_bh_disable();
	vring_interrupt(0, bvq->vq);
	local_bh_enable();
}

static void broken_change_cqe(struct broken_device *dev, u8 *bytes)
{
	u32 n, value;

	for (n = 1 + broken_random(dev) % 4; n; n--) {
		value = broken_random(dev);
		memcpy(bytes + broken_random(dev) %
		       (sizeof(struct virtio_rdma_cqe) - sizeof(value)),
		       &value, sizeof(value));
	}
}

static bool broken_raise(struct broken_device *dev, u32 eqn, u32 cqn)
{
	struct broken_vq *bvq = &dev->vqs[VIRTIO_RDMA_CQ_VQ(eqn % BROKEN_CQS)];
	struct virtio_rdma_cqn event = { .cqn = cpu_to_le32(cqn) };
	struct broken_buf buf;

	if (eqn >= BROKEN_CQS || !dev->cqs[eqn].events)
		return true;
	if (!broken_take(bvq, &buf))
		return false;
	if (buf.in && buf.in_len >= sizeof(event))
		memcpy(buf.in, &event, sizeof(event));
	broken_return(dev, bvq, buf.head, broken_does(dev, BROKEN_SHORT) ?
		      broken_random(dev) % 8 : sizeof(event));
	return true;
}

static void broken_push_direct(struct broken_device *dev, u32 cqn,
			       const struct virtio_rdma_cqe *cqe)
{
	struct broken_cq *cq = &dev->cqs[cqn];
	u32 at = cq->produced & cq->mask;
	struct virtio_rdma_direct_cqe *slot =
		&cq->slots[at / BROKEN_CQES_PER_PAGE][at % BROKEN_CQES_PER_PAGE];
	u32 arm;

	/* Overruns are not part of the test. */
	if (cq->produced - le32_to_cpu(READ_ONCE(cq->page->consumer)) >
	    cq->mask)
		return;
	slot->ex.cqe = *cqe;
	/* Pairs with the driver's acquire. */
	smp_store_release(&slot->number, cpu_to_le32(++cq->produced));
	/* Pairs with the driver's barrier after it has armed. */
	smp_mb();
	arm = le32_to_cpu(READ_ONCE(cq->page->arm));
	if (arm == cq->arm || !(arm & VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION))
		return;
	cq->arm = arm;
	cq->pending = !broken_raise(dev, cq->eqn, cqn);
}

/* Raise events that waited for a buffer. */
static void broken_raise_pending(struct broken_device *dev)
{
	u32 cqn;

	for (cqn = 0; cqn < BROKEN_ALL_CQS; cqn++) {
		struct broken_cq *cq = &dev->cqs[cqn];

		if (cq->exists && cq->pending)
			cq->pending = !broken_raise(dev, cq->eqn, cqn);
	}
}

static void broken_push(struct broken_device *dev, u32 cqn,
			const struct virtio_rdma_cqe *cqe)
{
	struct virtio_rdma_cqe copy = *cqe;
	struct broken_vq *bvq;
	struct broken_buf buf;

	if (cqn >= BROKEN_ALL_CQS || !dev->cqs[cqn].exists ||
	    dev->cqs[cqn].events)
		return;
	if (dev->cqs[cqn].page) {
		if (broken_does(dev, BROKEN_CQE))
			broken_change_cqe(dev, (u8 *)&copy);
		broken_push_direct(dev, cqn, &copy);
		dev->last = *cqe;
		dev->last_cqn = cqn;
		return;
	}
	if (cqn >= BROKEN_CQS || broken_is_endless(dev, cqn))
		return;
	bvq = &dev->vqs[VIRTIO_RDMA_CQ_VQ(cqn)];
	if (!broken_take(bvq, &buf))
		return;
	if (broken_does(dev, BROKEN_CQE))
		broken_change_cqe(dev, (u8 *)&copy);
	if (buf.in && buf.in_len >= sizeof(copy)) {
		memset(buf.in, 0, buf.in_len);
		memcpy(buf.in, &copy, sizeof(copy));
	}
	broken_return(dev, bvq, buf.head, buf.in_len);
	dev->last = *cqe;
	dev->last_cqn = cqn;
}

static void broken_complete(struct broken_device *dev, u32 qpn, bool recv,
			    __le64 wr_id, u8 opcode, u8 status)
{
	struct broken_qp *qp = &dev->qps[qpn];
	struct virtio_rdma_cqe cqe = {
		.wr_id = wr_id,
		.status = status,
		.opcode = opcode,
		.qp_num = cpu_to_le32(qpn),
		.port_num = 1,
	};

	if (recv)
		cqe.wc_flags = cpu_to_le32(VIRTIO_RDMA_WC_GRH);
	broken_push(dev, recv ? qp->recv_cqn : qp->send_cqn, &cqe);
}

/* The next WQE of a direct queue, or NULL */
static void *broken_take_slot(struct broken_qp *qp, struct broken_wq *wq)
{
	u32 at = (wq->taken & wq->mask) << wq->shift;
	u8 *page = qp->pages[wq->first_page + at / BROKEN_PAGE];

	/* Pairs with the driver's release. */
	if (smp_load_acquire(wq->producer) == cpu_to_le32(wq->taken))
		return NULL;
	wq->taken++;
	return page + at % BROKEN_PAGE + sizeof(struct virtio_rdma_direct_slot);
}

/* The next WQE of either form, or NULL. A buffer is returned at once. */
static const void *broken_take_wqe(struct broken_device *dev, u32 qpn,
				   bool recv)
{
	struct broken_qp *qp = &dev->qps[qpn];
	u32 vq = recv ? VIRTIO_RDMA_RQ_VQ(BROKEN_CQS, qpn)
		      : VIRTIO_RDMA_SQ_VQ(BROKEN_CQS, qpn);
	struct broken_buf buf;

	if (qp->num_pages)
		return broken_take_slot(qp, recv ? &qp->rq : &qp->sq);
	if (!broken_take(&dev->vqs[vq], &buf))
		return NULL;
	if (!broken_does(dev, BROKEN_KEEP))
		broken_return(dev, &dev->vqs[vq], buf.head, 0);
	return buf.out;
}

/* A receive, for a message without data or flushed */
static bool broken_recv(struct broken_device *dev, u32 qpn, u8 status)
{
	const struct virtio_rdma_rq_wqe *wqe = broken_take_wqe(dev, qpn, true);

	if (!wqe)
		return false;
	broken_complete(dev, qpn, true, wqe->wr_id, 128, status);
	return true;
}

static u8 broken_opcode(u32 wr)
{
	static const u8 opcodes[] = { 1, 1, 0, 0, 2, 3, 4 };

	return wr < ARRAY_SIZE(opcodes) ? opcodes[wr] : 0;
}

static bool broken_send(struct broken_device *dev, u32 qpn)
{
	const struct virtio_rdma_sq_wqe *wqe = broken_take_wqe(dev, qpn, false);
	bool flush = dev->qps[qpn].state == 6;
	__le64 wr_id;
	u32 opcode;
	bool signaled;

	if (!wqe)
		return false;
	wr_id = wqe->wr_id;
	opcode = le32_to_cpu(wqe->opcode);
	signaled = flush || dev->qps[qpn].all_signaled ||
		   le32_to_cpu(wqe->send_flags) & 2;
	dev->done++;
	if (!flush && (opcode == 2 || opcode == 3))
		broken_recv(dev, qpn, 0);
	if (signaled)
		broken_complete(dev, qpn, false, wr_id, broken_opcode(opcode),
				flush ? 5 : 0);
	return true;
}

void broken_flush_qp(struct broken_device *dev, u32 qpn)
{
	while (broken_send(dev, qpn))
		;
	while (broken_recv(dev, qpn, 5))
		;
}

static void broken_run_ctrl(struct broken_device *dev)
{
	struct broken_vq *ctrl = &dev->vqs[VIRTIO_RDMA_CTRL_VQ];
	struct broken_buf buf;

	while (!broken_does(dev, BROKEN_SILENT) && broken_take(ctrl, &buf)) {
		u32 len = broken_execute(dev, &buf);

		dev->done++;
		dev->commands++;
		broken_return(dev, ctrl, buf.head, len);
	}
}

/* Faults without a trigger */
static void broken_act(struct broken_device *dev)
{
	struct broken_vq *events =
		&dev->vqs[VIRTIO_RDMA_EVENT_VQ(BROKEN_CQS, BROKEN_QPS)];
	struct broken_buf buf;
	u32 qpn;

	if (broken_does(dev, BROKEN_EVENT) && broken_take(events, &buf)) {
		struct virtio_rdma_event *event = buf.in;

		event->type = cpu_to_le32(broken_random(dev) % 32);
		event->id = cpu_to_le32(broken_random(dev) % 32);
		broken_return(dev, events, buf.head, sizeof(*event));
	}
	if (broken_does(dev, BROKEN_EVENT))
		broken_raise(dev, broken_random(dev) % BROKEN_CQS,
			     broken_random(dev));
	broken_raise_pending(dev);
	broken_fill_all(dev);
	if (broken_does(dev, BROKEN_TWICE))
		broken_push(dev, dev->last_cqn, &dev->last);
	/* Receives of the kernel that no message uses */
	qpn = 1 + broken_random(dev) % (BROKEN_QPS - 1);
	if (broken_does(dev, BROKEN_CQE) && dev->qps[qpn].exists)
		broken_recv(dev, qpn, 0);
}

void broken_run(struct broken_device *dev)
{
	u32 qpn;

	if (!dev->num_vqs)
		return;
	broken_run_ctrl(dev);
	for (qpn = 1; qpn < BROKEN_QPS; qpn++) {
		if (!dev->qps[qpn].exists)
			continue;
		if (dev->qps[qpn].state == 6)
			broken_flush_qp(dev, qpn);
		else if (dev->qps[qpn].state >= 3)
			while (broken_send(dev, qpn))
				;
	}
	broken_act(dev);
}
