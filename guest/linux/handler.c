// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion handlers of CQs.
 */
#include "queue.h"

/*
 * Call the completion handler, under its lock. The RDMA core's handler queues
 * work that is in the CQ, and the core waits for that work before it destroys
 * the CQ: once the last queue pair is gone, nothing may queue it any more.
 */
void vrdma_cq_handle(struct vrdma_cq *cq)
{
	if (!vrdma_cq_is_user(cq) && !cq->num_wqs)
		cq->notify_missed = true;
	else if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/*
 * The device or the CQ is dead: call the handler of a user in the kernel, who
 * then polls and finds flushed requests.
 */
void vrdma_cq_wake(struct vrdma_cq *cq)
{
	if (!READ_ONCE(vrdma_cq_dev(cq)->dead) && !READ_ONCE(cq->failed))
		return;
	if (!vrdma_cq_is_user(cq) && READ_ONCE(cq->notify_requested))
		vrdma_cq_handle(cq);
}

/* A queue pair has @cq from now on, for one of its queues. */
void vrdma_cq_attach(struct vrdma_cq *cq)
{
	spin_lock_irq(cq->handler_lock);
	cq->num_wqs++;
	if (cq->notify_missed) {
		cq->notify_missed = false;
		vrdma_cq_handle(cq);
	}
	spin_unlock_irq(cq->handler_lock);
}

void vrdma_cq_detach(struct vrdma_cq *cq)
{
	spin_lock_irq(cq->handler_lock);
	cq->num_wqs--;
	spin_unlock_irq(cq->handler_lock);
}
