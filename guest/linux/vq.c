// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queues that are virtqueues, for devices without VIRTIO_RDMA_F_DIRECT: their
 * VMM has no pages of doorbells. A process writes WQEs to mapped slots, and
 * calls the driver to make them available, to poll and to arm.
 *
 * The virtqueue of a CQ holds empty slots, and the device fills them in order.
 * Completions without a slot wait in the device, which is notified of new ones.
 * To consume a completion and to take its buffer off the used ring are
 * separate steps. The newest buffer is left in the used ring: virtio's core
 * ignores an interrupt when the used ring is empty, and the interrupt for this
 * buffer may arrive only after the CQ was polled. Only arming takes all
 * buffers, since the device compares the next completion with the used event
 * index, which has to be up to date then.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "queue.h"

/* Slots of a CQ */
#define CQ_SLOTS 256
/* Between two attempts of a thread to submit WQEs of a process */
#define RETRY_US_MIN 20
#define RETRY_US_MAX 200

static_assert(sizeof(struct virtio_rdma_cqe_ex) <= CQE_SLOT_SIZE);

static bool vrdma_cq_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/*
 * Add the buffers of all slots that are both consumed and off the used ring.
 * With the ring's lock held.
 */
static void vrdma_cq_refill(struct vrdma_cq *cq)
{
	struct vrdma_ring *ring = cq->ring;
	u32 end = vrdma_cq_before(cq->head, ring->tail) ? cq->head : ring->tail;
	u32 head = ring->head;

	end += vrdma_ring_slots(ring);
	while (vrdma_cq_before(ring->head, end) &&
	       !vrdma_ring_add(ring, 0, CQE_SLOT_SIZE, true))
		;
	if (ring->head != head)
		virtqueue_kick(ring->vq);
}

/*
 * Is there a completion that is not consumed? The index of a used ring has 16
 * bits.
 */
static bool vrdma_vq_has_cqe(struct vrdma_cq *cq)
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

/* The next completion, or NULL. With the ring's lock held. */
static const struct virtio_rdma_cqe_ex *vrdma_cq_next_cqe(struct vrdma_cq *cq)
{
	struct vrdma_ring *ring = cq->ring;

	if (!vrdma_vq_has_cqe(cq))
		return NULL;
	dma_rmb();
	/* The buffer of the one before is not the newest any more. */
	if (vrdma_cq_before(ring->tail, cq->head)) {
		vrdma_ring_reap(ring);
		vrdma_cq_refill(cq);
	}
	return vrdma_ring_slot(ring, cq->head);
}

/*
 * A limit for completions of QPs that are gone, which a poll drops: twice what
 * a CQ holds, because QPs may be destroyed during the poll.
 */
static u32 vrdma_cq_max_dropped(const struct vrdma_cq *cq)
{
	return 2 * (cq->ibcq.cqe + vrdma_ring_slots(cq->ring));
}

static int vrdma_vq_poll_cq(struct vrdma_cq *cq, int num, struct ib_wc *wc,
			    bool dead)
{
	u32 max_dropped = vrdma_cq_max_dropped(cq), dropped = 0;
	const struct virtio_rdma_cqe_ex *cqe;
	unsigned long flags;
	int n = 0;

	spin_lock_irqsave(&cq->ring->lock, flags);
	while (n < num && dropped <= max_dropped &&
	       (cqe = vrdma_cq_next_cqe(cq))) {
		if (vrdma_wc_take(cq, cqe, &wc[n])) {
			n++;
		} else {
			vrdma_wc_drop(cq, cqe);
			dropped++;
		}
		cq->head++;
	}
	if (dropped > max_dropped)
		vrdma_broken(vrdma_cq_dev(cq),
			     "CQ %u: more than %u completions without a QP",
			     cq->cqn, max_dropped);
	if (dead && n < num)
		n += vrdma_flush_cq(cq, num - n, &wc[n]);
	vrdma_cq_refill(cq);
	spin_unlock_irqrestore(&cq->ring->lock, flags);
	return n;
}

/*
 * Arm by virtio's interrupt suppression: the first completion after those in
 * the used ring raises an interrupt. With the ring's lock held.
 */
static void vrdma_cq_arm(struct vrdma_cq *cq)
{
	struct vrdma_ring *ring = cq->ring;
	unsigned int seen;

	/*
	 * Completions that the device added before it could see the new event
	 * index raise no interrupt: take them and set the index again.
	 */
	do {
		vrdma_ring_reap_all(ring);
		seen = virtqueue_enable_cb_prepare(ring->vq);
	} while (virtqueue_poll(ring->vq, seen));
	cq->armed = cq->device_flags;
	cq->armed_at = ring->tail;
}

/*
 * Tell the device which completions of a process's CQ may raise interrupts. A
 * command takes as long as the host takes, so it comes before the ring is
 * locked. The CQs of the kernel, which cannot wait for it, are armed for any.
 */
static int vrdma_cq_select(struct vrdma_cq *cq, u32 arm)
{
	struct virtio_rdma_req_notify_cq_req req = {
		.cqn = cpu_to_le32(cq->cqn),
		.flags = cpu_to_le32(arm),
	};
	struct vrdma_ring *ring = cq->ring;
	bool needed;
	int ret;

	lockdep_assert_held(&cq->notify_lock);

	/* A request for any completion includes solicited ones. */
	spin_lock_irq(&ring->lock);
	needed = cq->device_flags != arm &&
		 cq->armed != VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION;
	spin_unlock_irq(&ring->lock);
	if (!needed)
		return 0;
	ret = vrdma_ctrl_do(vrdma_cq_dev(cq), VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ,
			    &req);
	if (ret)
		return ret;
	spin_lock_irq(&ring->lock);
	cq->device_flags = arm;
	spin_unlock_irq(&ring->lock);
	return 0;
}

static int vrdma_cq_request(struct vrdma_cq *cq, enum ib_cq_notify_flags flags)
{
	struct vrdma_ring *ring = cq->ring;
	unsigned long irq;
	int ret = 0;

	spin_lock_irqsave(&ring->lock, irq);
	if (!cq->armed) {
		vrdma_cq_arm(cq);
	} else {
		/*
		 * An interrupt may be on its way. It would be ignored if its
		 * buffer left the used ring, so arm again only when it has
		 * come.
		 */
		cq->armed = cq->device_flags;
		cq->rearm_at = vrdma_cq_produced(cq);
		cq->rearm = cq->rearm_at != cq->armed_at;
	}
	vrdma_cq_refill(cq);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		ret = vrdma_vq_has_cqe(cq);
	spin_unlock_irqrestore(&ring->lock, irq);
	return ret;
}

static int vrdma_vq_notify_cq(struct vrdma_cq *cq, u32 arm,
			      enum ib_cq_notify_flags flags)
{
	int ret;

	if (!vrdma_cq_is_user(cq))
		return vrdma_cq_request(cq, flags);
	mutex_lock(&cq->notify_lock);
	ret = vrdma_cq_select(cq, arm);
	if (!ret)
		ret = vrdma_cq_request(cq, flags);
	mutex_unlock(&cq->notify_lock);
	return ret;
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
			vrdma_cq_arm(cq);
			vrdma_cq_refill(cq);
			if (cq->armed_at != cq->rearm_at) {
				events = 2;
				cq->armed = 0;
			}
		}
		if (!cq->armed)
			virtqueue_disable_cb(cq->ring->vq);
	}
	spin_unlock(&cq->ring->lock);
	return events;
}

static void vrdma_vq_cq_callback(struct virtqueue *vq)
{
	struct vrdma_dev *dev = vq->vdev->priv;
	struct vrdma_vq_cq *slot =
		&dev->vq_cqs[vq->index - VIRTIO_RDMA_CQ_VQ(0)];
	struct vrdma_cq *cq;
	unsigned long flags;
	int events;

	spin_lock_irqsave(&slot->lock, flags);
	cq = slot->cq;
	for (events = cq ? vrdma_cq_take_events(cq) : 0; events; events--)
		vrdma_cq_handle(cq);
	spin_unlock_irqrestore(&slot->lock, flags);
}

static void vrdma_vq_clean_cq(struct vrdma_cq *cq, struct vrdma_qp *qp)
{
	struct vrdma_ring *ring = cq->ring;
	unsigned long flags;
	u32 i, tail;

	spin_lock_irqsave(&ring->lock, flags);
	tail = ring->tail;
	vrdma_ring_reap_all(ring);
	for (i = cq->head; vrdma_cq_before(i, ring->tail); i++) {
		struct virtio_rdma_cqe *cqe = vrdma_ring_slot(ring, i);

		if (le32_to_cpu(cqe->qp_num) == qp->qpn)
			vrdma_cqe_drop(qp, cqe);
	}
	vrdma_cq_refill(cq);
	tail -= ring->tail;
	spin_unlock_irqrestore(&ring->lock, flags);
	/* The interrupt of what was taken may be ignored. */
	if (tail)
		vrdma_vq_cq_callback(ring->vq);
}

static struct vrdma_cq *vrdma_vq_find_cq(struct vrdma_dev *dev, u32 cqn)
{
	return cqn < dev->num_cq ? dev->vq_cqs[cqn].cq : NULL;
}

static void vrdma_vq_wake_cqs(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_cq; i++) {
		struct vrdma_vq_cq *slot = &dev->vq_cqs[i];

		spin_lock_irq(&slot->lock);
		if (slot->cq)
			vrdma_cq_wake(slot->cq);
		spin_unlock_irq(&slot->lock);
	}
}

/*
 * Give a completion virtqueue its slots. One that cannot be reset has kept
 * those of the last CQ: the device still has their addresses.
 */
static int vrdma_cq_take_vq(struct vrdma_dev *dev, struct vrdma_vq_cq *slot)
{
	struct vrdma_ring *ring = &slot->ring;
	u32 slots = min_t(u32, CQ_SLOTS, dev->ring_max);
	int ret;

	if (slot->buf) {
		/* Completions that the last CQ left */
		vrdma_ring_reap_all(ring);
		return 0;
	}
	ret = vrdma_vq_prepare(dev, ring->vq, slots);
	if (ret)
		return ret;
	slot->buf = vrdma_buf_alloc(DIV_ROUND_UP(slots * CQE_SLOT_SIZE,
						 PAGE_SIZE));
	if (!slot->buf)
		return -ENOMEM;
	vrdma_ring_init(ring, slot->buf, 0, slots, CQE_SLOT_SHIFT);
	return 0;
}

static void vrdma_cq_leave_vq(struct vrdma_dev *dev, struct vrdma_vq_cq *slot)
{
	if (!vrdma_vq_reset(dev, slot->ring.vq))
		return;
	vrdma_buf_put(slot->buf);
	slot->buf = NULL;
}

static void vrdma_cq_set_entry(struct vrdma_dev *dev, struct vrdma_vq_cq *slot,
			       struct vrdma_cq *cq)
{
	vrdma_events_lock(dev);
	spin_lock(&slot->lock);
	slot->cq = cq;
	spin_unlock(&slot->lock);
	vrdma_events_unlock(dev);
}

static int vrdma_vq_create_cq(struct vrdma_cq *cq, u32 vector,
			      struct ib_udata *udata,
			      struct virtio_rdma_create_cq_resp *resp)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	__le32 req = cpu_to_le32(max_t(u32, cq->ibcq.cqe, VRDMA_DEPTH_MIN));
	struct vrdma_vq_cq *slot;
	struct virtio_rdma_cqn rsp;
	int ret;

	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_CQ, &req, &rsp);
	if (ret)
		return ret;
	cq->cqn = le32_to_cpu(rsp.cqn);
	if (cq->cqn >= dev->num_cq || dev->vq_cqs[cq->cqn].cq) {
		vrdma_broken(dev, "CQ %u: the number is not free", cq->cqn);
		return -EPROTO;
	}
	slot = &dev->vq_cqs[cq->cqn];
	ret = vrdma_cq_take_vq(dev, slot);
	if (ret) {
		vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_CQ, &rsp,
				   false);
		vrdma_cq_leave_vq(dev, slot);
		return ret;
	}
	cq->ring = &slot->ring;
	cq->handler_lock = &slot->lock;
	cq->device_flags = VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION;
	cq->head = slot->ring.tail;
	virtqueue_disable_cb(slot->ring.vq);
	vrdma_vq_set_vector(slot->ring.vq, vector);
	spin_lock_irq(&slot->ring.lock);
	vrdma_cq_refill(cq);
	spin_unlock_irq(&slot->ring.lock);
	vrdma_cq_set_entry(dev, slot, cq);
	return 0;
}

static void vrdma_vq_free_cq(struct vrdma_cq *cq)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	struct vrdma_vq_cq *slot = &dev->vq_cqs[cq->cqn];

	vrdma_cq_set_entry(dev, slot, NULL);
	/* The kernel warns if the interrupt is freed with its hint. */
	virtqueue_set_affinity(slot->ring.vq, NULL);
	vrdma_cq_leave_vq(dev, slot);
}

/* One that has failed stays so until it is destroyed. */
static int vrdma_vq_renew_cq(struct vrdma_cq *cq)
{
	return 0;
}

/* The number of completions in the virtqueue that are not consumed */
static u32 vrdma_cq_unconsumed(struct vrdma_cq *cq)
{
	u32 n;

	spin_lock_irq(&cq->ring->lock);
	n = vrdma_cq_produced(cq);
	n = vrdma_cq_before(cq->head, n) ? n - cq->head : 0;
	spin_unlock_irq(&cq->ring->lock);
	return n;
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

static int vrdma_vq_resize_cq(struct vrdma_cq *cq, u32 cqe,
			      struct ib_udata *udata)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	int ret;

	vrdma_objects_lock(dev);
	ret = vrdma_cq_resize_cmd(cq, cqe, vrdma_cq_unconsumed(cq));
	if (!ret && vrdma_cq_unconsumed(cq) > cqe) {
		/*
		 * Completions that arrived meanwhile do not fit: undo the
		 * resize.
		 */
		vrdma_cq_resize_cmd(cq, cq->ibcq.cqe, 0);
		ret = -EINVAL;
	}
	if (!ret)
		cq->ibcq.cqe = cqe;
	vrdma_objects_unlock(dev);
	return ret;
}

/*
 * A number that is not in use, or dev->num_qp if there is none. It is a random
 * one: peers should not guess the next.
 */
static u32 vrdma_vq_find_qpn(struct vrdma_dev *dev, u8 type)
{
	u32 num = dev->num_qp - VRDMA_QPN_FIRST;
	u32 start = num ? get_random_u32() % num : 0;
	u32 i, qpn;

	if (type == IB_QPT_GSI)
		return dev->qps[VRDMA_QPN_GSI] ? dev->num_qp : VRDMA_QPN_GSI;
	for (i = 0; i < num; i++) {
		qpn = VRDMA_QPN_FIRST + (start + i) % num;
		if (!dev->qps[qpn])
			return qpn;
	}
	return dev->num_qp;
}

static void vrdma_vq_use_qpn(struct vrdma_dev *dev, struct vrdma_qp *qp,
			     u32 qpn)
{
	qp->sq.ring.vq = dev->vqs[VIRTIO_RDMA_SQ_VQ(dev->num_vq_cq, qpn)];
	qp->rq.ring.vq = dev->vqs[VIRTIO_RDMA_RQ_VQ(dev->num_vq_cq, qpn)];
}

/*
 * Take the buffers of a work queue back. A device that cannot reset virtqueues
 * has returned them when it moved the queue pair to RESET.
 */
static void vrdma_wq_release(struct vrdma_wq *wq)
{
	if (vrdma_vq_reset(wq->dev, wq->ring.vq) || !wq->ring.buf)
		return;
	vrdma_ring_reap_all(&wq->ring);
	if (wq->ring.head == wq->ring.tail)
		return;
	vrdma_broken(wq->dev, "virtqueue %u: buffers are not returned",
		     wq->ring.vq->index);
	vrdma_wait_stopped(wq->dev);
	vrdma_vq_empty(wq->ring.vq);
}

static void vrdma_vq_free_qp(struct vrdma_qp *qp)
{
	vrdma_wq_release(&qp->sq);
	vrdma_wq_release(&qp->rq);
}

/* The receive queue of a QP with an SRQ stays empty. */
static int vrdma_vq_prepare_qp(struct vrdma_dev *dev, struct vrdma_qp *qp)
{
	int ret = vrdma_vq_prepare(dev, qp->sq.ring.vq,
				   vrdma_slots(qp->sq.max_wr));

	if (ret || qp->ibqp.srq)
		return ret;
	return vrdma_vq_prepare(dev, qp->rq.ring.vq,
				vrdma_slots(qp->rq.max_wr));
}

static int vrdma_vq_create_qp(struct vrdma_qp *qp, struct ib_udata *udata,
			      struct virtio_rdma_create_qp_req *req,
			      struct virtio_rdma_create_qp_rsp *rsp)
{
	struct vrdma_dev *dev = qp->sq.dev;
	u32 wanted = vrdma_vq_find_qpn(dev, req->qp_type);
	int ret;

	if (wanted >= dev->num_qp)
		return -ENOMEM;
	vrdma_vq_use_qpn(dev, qp, wanted);
	ret = vrdma_vq_prepare_qp(dev, qp);
	if (!ret)
		ret = vrdma_ctrl(dev, VIRTIO_RDMA_CMD_CREATE_QP, req,
				 sizeof(*req), rsp, dev->host_numbers ?
				 sizeof(*rsp) : sizeof(rsp->qpn));
	if (ret || le32_to_cpu(rsp->qpn) != wanted)
		vrdma_vq_free_qp(qp);
	return ret;
}

/* A device may choose any number whose virtqueues are large enough. */
static void vrdma_wq_check(struct vrdma_wq *wq)
{
	u32 size = virtqueue_get_vring_size(wq->ring.vq);

	if (size < wq->max_wr)
		vrdma_broken(wq->dev,
			     "virtqueue %u: expected %u entries, got %u",
			     wq->ring.vq->index, wq->max_wr, size);
}

static void vrdma_vq_start_qp(struct vrdma_qp *qp)
{
	const struct virtio_rdma_qp_page *page =
		page_address(qp->area->buf->pages[0]);

	vrdma_vq_use_qpn(qp->sq.dev, qp, qp->qpn);
	vrdma_wq_check(&qp->sq);
	vrdma_wq_check(&qp->rq);
	qp->sq.user_producer = &page->sq_producer;
	qp->rq.user_producer = &page->rq_producer;
}

static void vrdma_vq_stop_qp(struct vrdma_qp *qp)
{
	struct virtio_rdma_modify_qp_req reset = {
		.qpn = cpu_to_le32(qp->qpn),
		.attr_mask = cpu_to_le32(IB_QP_STATE),
		.attr.qp_state = IB_QPS_RESET,
	};

	if (!qp->sq.dev->ring_reset)
		vrdma_ctrl_do(qp->sq.dev, VIRTIO_RDMA_CMD_MODIFY_QP, &reset);
}

static struct virtqueue *vrdma_vq_of_srq(struct vrdma_dev *dev, u32 srqn)
{
	return dev->vqs[VIRTIO_RDMA_SRQ_VQ(dev->num_vq_cq, dev->num_vq_qp,
					   srqn)];
}

static int vrdma_vq_create_srq(struct vrdma_srq *srq, struct ib_udata *udata,
			       struct virtio_rdma_create_srq_req *req,
			       struct virtio_rdma_srqn *rsp)
{
	struct vrdma_dev *dev = srq->wq.dev;
	struct virtqueue *vq;
	u32 wanted = 0;
	int ret;

	while (wanted < dev->num_srq && dev->srqs[wanted])
		wanted++;
	if (wanted == dev->num_srq)
		return -ENOMEM;
	vq = vrdma_vq_of_srq(dev, wanted);
	ret = vrdma_vq_prepare(dev, vq, srq->wq.max_wr);
	if (!ret)
		ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_SRQ, req, rsp);
	if (ret || le32_to_cpu(rsp->srqn) != wanted)
		vrdma_vq_reset(dev, vq);
	return ret;
}

static void vrdma_vq_start_srq(struct vrdma_srq *srq)
{
	const struct virtio_rdma_srq_page *page =
		page_address(srq->area->buf->pages[0]);

	srq->wq.ring.vq = vrdma_vq_of_srq(srq->wq.dev, srq->srqn);
	vrdma_wq_check(&srq->wq);
	srq->wq.user_producer = &page->producer;
}

/* There are none where virtqueues cannot be reset: see config.c. */
static void vrdma_vq_free_srq(struct vrdma_srq *srq)
{
	vrdma_vq_reset(srq->wq.dev, srq->wq.ring.vq);
}

static void vrdma_vq_reap(struct vrdma_wq *wq)
{
	vrdma_ring_reap_all(&wq->ring);
}

static int vrdma_vq_put(struct vrdma_wq *wq, u32 len)
{
	return vrdma_ring_add(&wq->ring, WQE_SLOT_HEADER, len, false);
}

static bool vrdma_vq_publish(struct vrdma_wq *wq)
{
	return virtqueue_kick_prepare(wq->ring.vq);
}

static void vrdma_vq_notify(struct vrdma_wq *wq)
{
	virtqueue_notify(wq->ring.vq);
}

/* Submit the WQEs that a process has written. With the ring's lock held. */
static int vrdma_wq_submit_slots(struct vrdma_wq *wq)
{
	struct vrdma_ring *ring = &wq->ring;
	u32 room = BIT(ring->shift) - WQE_SLOT_HEADER;
	const struct virtio_rdma_wqe_slot *slot;
	u32 count;
	int ret = 0;

	/* Pairs with the process's release after it has written the WQEs. */
	count = smp_load_acquire(wq->user_producer) - ring->head;
	if (count > vrdma_ring_slots(ring) - (ring->head - ring->tail))
		return -EINVAL;
	while (count-- && !ret) {
		slot = vrdma_ring_slot(ring, ring->head);
		/* The device reports a WQE of the wrong length as an error. */
		ret = vrdma_vq_put(wq, clamp(READ_ONCE(slot->length), 1U,
					     room));
	}
	return ret == -ENOSPC ? -EIO : ret;
}

static int vrdma_wq_submit(struct vrdma_wq *wq)
{
	struct vrdma_ring *ring = &wq->ring;
	unsigned long flags;
	bool notify;
	int ret;

	if (vrdma_is_dead(wq->dev))
		return -EIO;
	spin_lock_irqsave(&ring->lock, flags);
	vrdma_vq_reap(wq);
	ret = vrdma_wq_submit_slots(wq);
	notify = vrdma_vq_publish(wq);
	spin_unlock_irqrestore(&ring->lock, flags);
	if (notify)
		vrdma_vq_notify(wq);
	return ret;
}

/*
 * A process cannot withdraw WQEs that it has published, and would post them a
 * second time after an error. So wait for memory, which DMA mappings of an
 * IOMMU need. This fails only if the device is dead, or the process miscounts
 * or is killed.
 */
static int vrdma_vq_post_user(struct vrdma_wq *wq)
{
	int ret;

	for (;;) {
		ret = vrdma_wq_submit(wq);
		if (ret != -ENOMEM || fatal_signal_pending(current))
			return ret;
		usleep_range(RETRY_US_MIN, RETRY_US_MAX);
	}
}

static vq_callback_t *vrdma_vq_role(const struct vrdma_dev *dev, u32 i)
{
	return vrdma_vq_cq_callback;
}

static int vrdma_vq_alloc(struct vrdma_dev *dev)
{
	u32 i;

	dev->vq_cqs = kvcalloc(dev->num_cq, sizeof(*dev->vq_cqs), GFP_KERNEL);
	dev->qp_numbers = kvcalloc(dev->num_qp + 1, sizeof(*dev->qp_numbers),
				   GFP_KERNEL);
	if (!dev->vq_cqs || !dev->qp_numbers)
		return -ENOMEM;
	for (i = 0; i < dev->num_cq; i++) {
		spin_lock_init(&dev->vq_cqs[i].lock);
		spin_lock_init(&dev->vq_cqs[i].ring.lock);
	}
	for (i = 0; i < dev->num_qp; i++)
		dev->qp_numbers[i].qp_num = i;
	dev->qp_numbers[dev->num_qp].qp_num = VIRTIO_RDMA_QPN_NONE;
	return 0;
}

static void vrdma_vq_init(struct vrdma_dev *dev)
{
	struct ib_device_attr *attr = &dev->attr;
	u32 i;

	for (i = 0; i < dev->num_cq; i++)
		dev->vq_cqs[i].ring.vq = dev->vqs[VIRTIO_RDMA_CQ_VQ(i)];
	attr->max_qp_wr = min_t(u32, attr->max_qp_wr, dev->ring_max);
	attr->max_srq_wr = min_t(u32, attr->max_srq_wr, dev->ring_max);
}

/* CQs have no virtqueue until they are created. */
static int vrdma_vq_start(struct vrdma_dev *dev)
{
	return 0;
}

static void vrdma_vq_free(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; dev->vq_cqs && i < dev->num_cq; i++)
		vrdma_buf_put(dev->vq_cqs[i].buf);
	kvfree(dev->vq_cqs);
	kvfree(dev->qp_numbers);
}

const struct vrdma_form vrdma_vq_form = {
	.cq_callback = vrdma_vq_role,
	.alloc = vrdma_vq_alloc,
	.init = vrdma_vq_init,
	.start = vrdma_vq_start,
	.free = vrdma_vq_free,
	.create_cq = vrdma_vq_create_cq,
	.free_cq = vrdma_vq_free_cq,
	.resize_cq = vrdma_vq_resize_cq,
	.renew_cq = vrdma_vq_renew_cq,
	.has_cqe = vrdma_vq_has_cqe,
	.poll_cq = vrdma_vq_poll_cq,
	.clean_cq = vrdma_vq_clean_cq,
	.notify_cq = vrdma_vq_notify_cq,
	.find_cq = vrdma_vq_find_cq,
	.wake_cqs = vrdma_vq_wake_cqs,
	.create_qp = vrdma_vq_create_qp,
	.create_srq = vrdma_vq_create_srq,
	.start_qp = vrdma_vq_start_qp,
	.start_srq = vrdma_vq_start_srq,
	.stop_qp = vrdma_vq_stop_qp,
	.free_qp = vrdma_vq_free_qp,
	.free_srq = vrdma_vq_free_srq,
	.reap = vrdma_vq_reap,
	.put = vrdma_vq_put,
	.publish = vrdma_vq_publish,
	.notify = vrdma_vq_notify,
	.post_user = vrdma_vq_post_user,
};
