// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completions of a dead device or CQ. Users in the kernel wait for the
 * completions of all work requests before they release the device. So polling a
 * CQ returns, after the completions that the device has written, a flush error
 * for each work request that the device has not completed. Requests posted
 * later are flushed, too: to drain a QP, users post one and wait for it.
 *
 * If only a CQ has failed, the device goes on. So only those QPs are flushed
 * that the user has moved to the error state: the device accesses their memory
 * no more.
 */
#include "queue.h"

/*
 * With a CQ that has failed, the device returns buffers of silent requests
 * without executing them, such as the one by which the RDMA core drains a QP.
 */
static const struct vrdma_request *vrdma_flush_oldest(struct vrdma_wq *wq)
{
	return vrdma_request_oldest(wq, READ_ONCE(wq->cq->failed) ?
				    wq->completed : wq->ring.tail);
}

/*
 * Flush at most @num work requests. With @wc NULL returns only whether there
 * are any.
 */
static int vrdma_flush_wq(struct vrdma_qp *qp, struct vrdma_wq *wq, bool recv,
			  int num, struct ib_wc *wc)
{
	struct vrdma_ring *ring = &wq->ring;
	bool dead = READ_ONCE(wq->dev->dead);
	const struct vrdma_request *request;
	int n = 0;

	spin_lock(&ring->lock);
	/* A thread that moves it out of this state then takes the lock. */
	if (!dead && READ_ONCE(qp->state) != IB_QPS_ERR) {
		spin_unlock(&ring->lock);
		return 0;
	}
	vrdma_wq_reap(wq);
	/* From here on tail counts flushed work requests, not used buffers. */
	if (dead)
		wq->flushing = true;
	request = vrdma_flush_oldest(wq);
	if (!wc)
		n = request ? 1 : 0;
	for (; wc && n < num && request; n++) {
		memset(&wc[n], 0, sizeof(wc[n]));
		wc[n].wr_id = request->wr_id;
		wc[n].status = IB_WC_WR_FLUSH_ERR;
		wc[n].opcode = recv ? IB_WC_RECV : IB_WC_SEND;
		wc[n].qp = &qp->ibqp;
		wq->completed++;
		if (dead && (s32)(wq->completed - ring->tail) > 0)
			ring->tail = wq->completed;
		request = vrdma_flush_oldest(wq);
	}
	spin_unlock(&ring->lock);
	return n;
}

/*
 * Flush at most @num work requests of all queues that complete to @cq. Returns
 * how many. With the lock of the CQ's ring held, and after all completions of
 * the device were consumed.
 */
int vrdma_flush_cq(struct vrdma_cq *cq, int num, struct ib_wc *wc)
{
	struct vrdma_dev *dev = to_vdev(cq->ibcq.device);
	unsigned long flags;
	int n = 0;
	u32 i;

	/* vrdma_cq_renew() may have replaced it since the caller looked. */
	if (!READ_ONCE(dev->dead) && !READ_ONCE(cq->failed))
		return 0;
	/* QPs with other CQs may be destroyed meanwhile. */
	spin_lock_irqsave(&dev->qps_lock, flags);
	for (i = 0; i < dev->num_qp && n < num; i++) {
		struct vrdma_qp *qp = dev->qps[i];

		if (!qp || qp->user)
			continue;
		if (qp->ibqp.send_cq == &cq->ibcq)
			n += vrdma_flush_wq(qp, &qp->sq, false, num - n,
					    wc ? wc + n : NULL);
		if (n < num && qp->ibqp.recv_cq == &cq->ibcq && !qp->ibqp.srq)
			n += vrdma_flush_wq(qp, &qp->rq, true, num - n,
					    wc ? wc + n : NULL);
	}
	spin_unlock_irqrestore(&dev->qps_lock, flags);
	return n;
}
