// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A device that is dead: it needs a reset, or it is gone. Nothing comes back
 * from it any more, but users of the kernel's own queue pairs wait for their
 * work requests before they let go of the device. So whoever polls a CQ finds,
 * behind the completions that the device wrote, one for each work request that
 * it kept: flushed. What is posted from then on is flushed as well, since that
 * is how queue pairs are drained.
 */
#include "vrdma.h"

/* What is read from a device that is not there */
#define STATUS_GONE 0xff

/*
 * Commands fail at once with the control virtqueue broken. The queues of CQs
 * and QPs can be read still, so that what the device did before counts.
 */
static void die(struct vrdma_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = VRDMA_PORT,
		.event = IB_EVENT_DEVICE_FATAL,
	};
	struct virtqueue *vq;

	dev_err(&dev->vdev->dev,
		"the device needs a reset: unbind and bind it\n");
	__virtqueue_break(dev->ctrl.vq);
	/*
	 * Nobody, peers included, has the device access memory that is freed
	 * once its work requests are flushed. One that is gone cannot be reset.
	 */
	if (dev->vdev->config->get_status(dev->vdev) != STATUS_GONE)
		virtio_reset_device(dev->vdev);
	virtio_device_for_each_vq(dev->vdev, vq) {
		if (vq == dev->ctrl.vq || vq == dev->events.vq)
			__virtqueue_break(vq);
		else
			__virtqueue_unbreak(vq);
	}
	/* Pairs with the acquire of those who flush. */
	smp_store_release(&dev->dead, true);
	if (READ_ONCE(dev->registered))
		ib_dispatch_event(&event);
}

/* Processes hear of the event; their CQs are their own affair. */
static void wake_cqs(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_cq; i++) {
		struct vrdma_cq_slot *slot = &dev->cqs[i];
		struct vrdma_cq *cq;

		spin_lock_irq(&slot->lock);
		cq = slot->cq;
		if (cq && !cq->ibcq.uobject && READ_ONCE(cq->asked) &&
		    cq->ibcq.comp_handler)
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
		spin_unlock_irq(&slot->lock);
	}
}

void vrdma_fatal_work(struct work_struct *work)
{
	struct vrdma_dev *dev = container_of(work, struct vrdma_dev,
					     fatal_work);

	if (!dev->dead)
		die(dev);
	wake_cqs(dev);
}

/*
 * The device seems to be dead, or something was posted since. May be called in
 * atomic context.
 */
void vrdma_fatal(struct vrdma_dev *dev)
{
	schedule_work(&dev->fatal_work);
}

static u64 wr_id(const struct vrdma_wq *wq, bool recv)
{
	const struct virtio_rdma_wqe_slot *slot =
		vrdma_ring_slot(&wq->ring, wq->ring.tail);
	const struct virtio_rdma_rq_wqe *rq = (const void *)slot->wqe;
	const struct virtio_rdma_sq_wqe *sq = (const void *)slot->wqe;

	return le64_to_cpu(recv ? rq->wr_id : sq->wr_id);
}

/* With @wc NULL it says only whether there is anything. */
static int flush_wq(struct vrdma_qp *qp, struct vrdma_wq *wq, bool recv,
		    int num, struct ib_wc *wc)
{
	struct vrdma_ring *ring = &wq->ring;
	int n = 0;

	spin_lock(&ring->lock);
	vrdma_wq_reap(wq);
	/* From here on the counters are no longer those of the virtqueue. */
	wq->flushing = true;
	if (!wc)
		n = ring->tail != ring->head;
	for (; wc && n < num && ring->tail != ring->head; ring->tail++, n++) {
		memset(&wc[n], 0, sizeof(wc[n]));
		wc[n].wr_id = wr_id(wq, recv);
		wc[n].status = IB_WC_WR_FLUSH_ERR;
		wc[n].opcode = recv ? IB_WC_RECV : IB_WC_SEND;
		wc[n].qp = &qp->ibqp;
	}
	spin_unlock(&ring->lock);
	return n;
}

/*
 * Flush into at most @num completions; returns how many. With the lock of the
 * CQ's ring held, and all completions of the device consumed.
 */
int vrdma_flush(struct vrdma_cq *cq, int num, struct ib_wc *wc)
{
	struct vrdma_dev *dev = to_vdev(cq->ibcq.device);
	int n = 0;
	u32 i;

	for (i = 0; i < dev->num_qp && n < num; i++) {
		struct vrdma_qp *qp = READ_ONCE(dev->qps[i]);

		if (!qp || qp->user)
			continue;
		if (qp->ibqp.send_cq == &cq->ibcq)
			n += flush_wq(qp, &qp->sq, false, num - n,
				      wc ? wc + n : NULL);
		if (n < num && qp->ibqp.recv_cq == &cq->ibcq && !qp->ibqp.srq)
			n += flush_wq(qp, &qp->rq, true, num - n,
				      wc ? wc + n : NULL);
	}
	return n;
}
