// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queues in memory that the device reads and writes by itself. A process maps
 * the slots of its queues, the page of counters before them and a page of
 * doorbells: it needs the kernel neither to post nor to poll. The kernel's own
 * queues are of the same kind.
 *
 * The device may access the pages of a queue until it has destroyed it. It
 * checks what a process counts, and a doorbell of one process has no effect on
 * queues of another.
 */
#include <linux/io.h>
#include <linux/log2.h>

#include "queue.h"

/*
 * Slots are free when their requests have completed. Those of an SRQ complete
 * in any order. But an SRQ has as many slots as entries of requests, so the
 * next slot is free whenever an entry is.
 */
static void vrdma_direct_reap(struct vrdma_wq *wq)
{
	wq->ring.tail = wq->unused ? wq->posted : wq->completed;
}

static int vrdma_direct_put(struct vrdma_wq *wq, u32 len)
{
	struct virtio_rdma_direct_slot *slot =
		vrdma_ring_slot(&wq->ring, wq->ring.head++);

	slot->length = cpu_to_le32(len);
	return 0;
}

static bool vrdma_direct_publish(struct vrdma_wq *wq)
{
	/* The device reads slots after the count. */
	virt_store_release(wq->bell.producer, cpu_to_le32(wq->ring.head));
	/* Pairs with the device's barrier before its last look at the count. */
	virt_mb();
	return !READ_ONCE(*wq->bell.awake);
}

static void vrdma_direct_notify(struct vrdma_wq *wq)
{
	writel(wq->bell.number, wq->bell.page);
}

/* For a process that has no page of doorbells, or could not map it */
static int vrdma_direct_post_user(struct vrdma_wq *wq)
{
	if (vrdma_is_dead(wq->dev))
		return -EIO;
	vrdma_direct_notify(wq);
	return 0;
}

static void __iomem *vrdma_direct_page(struct vrdma_dev *dev, u32 doorbell)
{
	return dev->doorbells + doorbell * VIRTIO_RDMA_DOORBELL_SIZE;
}

static int vrdma_direct_create_qp(struct vrdma_qp *qp, struct ib_udata *udata,
				  struct virtio_rdma_create_qp_req *req,
				  struct virtio_rdma_create_qp_rsp *rsp)
{
	struct vrdma_dev *dev = qp->sq.dev;
	u32 doorbell = vrdma_doorbell(udata);
	struct vrdma_table table;
	int ret;

	ret = vrdma_area_table(dev, qp->area, &table);
	if (ret)
		return ret;
	req->flags |= cpu_to_le32(VIRTIO_RDMA_QP_DIRECT);
	req->queue_pages = cpu_to_le64(table.pages);
	req->queue_npages = cpu_to_le32(qp->area->npages);
	req->queue_levels = table.levels;
	req->sq_depth_shift = ilog2(vrdma_ring_slots(&qp->sq.ring));
	req->sq_slot_shift = qp->sq.ring.shift;
	if (!qp->ibqp.srq) {
		req->rq_depth_shift = ilog2(vrdma_ring_slots(&qp->rq.ring));
		req->rq_slot_shift = qp->rq.ring.shift;
	}
	req->doorbell = cpu_to_le16(doorbell);
	qp->sq.bell.page = vrdma_direct_page(dev, doorbell);
	ret = vrdma_ctrl(dev, VIRTIO_RDMA_CMD_CREATE_QP, req, sizeof(*req), rsp,
			 dev->host_numbers ? sizeof(*rsp) : sizeof(rsp->qpn));
	vrdma_table_free(dev, &table);
	return ret;
}

static void vrdma_direct_start_qp(struct vrdma_qp *qp)
{
	struct virtio_rdma_direct_page *page =
		page_address(qp->area->buf->pages[0]);

	qp->sq.bell.number = qp->qpn;
	qp->rq.bell = qp->sq.bell;
	qp->sq.bell.producer = &page->sq_producer;
	qp->sq.bell.awake = &page->sq_awake;
	qp->rq.bell.producer = &page->rq_producer;
	qp->rq.bell.awake = &page->rq_awake;
}

/* The memory of direct QPs and SRQs is all that they have. */
static void vrdma_direct_leave_qp(struct vrdma_qp *qp)
{
}

static void vrdma_direct_free_srq(struct vrdma_srq *srq)
{
}

static int vrdma_direct_create_srq(struct vrdma_srq *srq,
				   struct ib_udata *udata,
				   struct virtio_rdma_create_srq_req *req,
				   struct virtio_rdma_srqn *rsp)
{
	struct vrdma_dev *dev = srq->wq.dev;
	u32 doorbell = vrdma_doorbell(udata);
	struct vrdma_table table;
	int ret;

	ret = vrdma_area_table(dev, srq->area, &table);
	if (ret)
		return ret;
	req->flags = cpu_to_le32(VIRTIO_RDMA_SRQ_DIRECT);
	req->queue_pages = cpu_to_le64(table.pages);
	req->queue_npages = cpu_to_le32(srq->area->npages);
	req->queue_levels = table.levels;
	req->depth_shift = ilog2(vrdma_ring_slots(&srq->wq.ring));
	req->slot_shift = srq->wq.ring.shift;
	req->doorbell = cpu_to_le16(doorbell);
	srq->wq.bell.page = vrdma_direct_page(dev, doorbell);
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_SRQ, req, rsp);
	vrdma_table_free(dev, &table);
	return ret;
}

static void vrdma_direct_start_srq(struct vrdma_srq *srq)
{
	struct virtio_rdma_direct_srq_page *page =
		page_address(srq->area->buf->pages[0]);

	srq->wq.bell.number = VIRTIO_RDMA_DOORBELL_SRQ | srq->srqn;
	srq->wq.bell.producer = &page->producer;
	srq->wq.bell.awake = &page->awake;
}

/* Only event queues use virtqueues of CQs. */
static vq_callback_t *vrdma_direct_role(const struct vrdma_dev *dev, u32 i)
{
	return i < dev->num_eqs ? vrdma_eq_callback : NULL;
}

/* Nothing that the driver does can fail an event queue. */
static struct vrdma_cq *vrdma_direct_find_cq(struct vrdma_dev *dev, u32 cqn)
{
	if (cqn < dev->num_eqs)
		vrdma_broken(dev, "event queue %u has ended", cqn);
	return vrdma_eqs_find_cq(dev, cqn);
}

const struct vrdma_form vrdma_direct_form = {
	.cq_callback = vrdma_direct_role,
	.alloc = vrdma_eqs_alloc,
	.init = vrdma_eqs_init,
	.start = vrdma_eqs_start,
	.free = vrdma_eqs_free,
	.create_cq = vrdma_cq_direct_create,
	.free_cq = vrdma_cq_direct_free,
	.resize_cq = vrdma_cq_direct_resize,
	.renew_cq = vrdma_cq_direct_renew,
	.has_cqe = vrdma_cq_direct_has_cqe,
	.poll_cq = vrdma_cq_direct_poll,
	.clean_cq = vrdma_cq_direct_clean,
	.notify_cq = vrdma_cq_direct_notify,
	.find_cq = vrdma_direct_find_cq,
	.wake_cqs = vrdma_eqs_wake,
	.create_qp = vrdma_direct_create_qp,
	.create_srq = vrdma_direct_create_srq,
	.start_qp = vrdma_direct_start_qp,
	.start_srq = vrdma_direct_start_srq,
	.stop_qp = vrdma_direct_leave_qp,
	.free_qp = vrdma_direct_leave_qp,
	.free_srq = vrdma_direct_free_srq,
	.reap = vrdma_direct_reap,
	.put = vrdma_direct_put,
	.publish = vrdma_direct_publish,
	.notify = vrdma_direct_notify,
	.post_user = vrdma_direct_post_user,
};
