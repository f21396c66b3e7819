// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queue pairs whose queues the device reads in memory. A process maps the
 * slots, the page of counters in front of them, and a page of doorbells, and
 * then needs the kernel neither to post nor to poll. The kernel's own queue
 * pairs are of the same kind.
 *
 * The device knows the pages of a QP until it is destroyed. It checks what a
 * process counts; a doorbell of one process has no effect on QPs of another.
 */
#include <linux/io.h>
#include <linux/log2.h>

#include "queue.h"

/*
 * Post by a command: for processes that have no page of doorbells, could not
 * map it, or do not know of it
 */
int vrdma_direct_ring(struct vrdma_dev *dev, void __iomem *doorbell, u32 number)
{
	if (vrdma_is_dead(dev))
		return -EIO;
	writel(number, doorbell);
	return 0;
}

/* Fill in the head of the next slot, whose WQE has @len bytes. */
void vrdma_direct_put(struct vrdma_wq *wq, u32 len)
{
	struct virtio_rdma_direct_slot *slot =
		vrdma_ring_slot(&wq->ring, wq->ring.head++);

	slot->length = cpu_to_le32(len);
}

/*
 * Have the device see the slots that were put. Returns whether it is to be
 * notified. With the ring's lock held.
 */
bool vrdma_direct_publish(struct vrdma_wq *wq)
{
	/* The device reads slots behind the count. */
	virt_store_release(wq->bell.producer, cpu_to_le32(wq->ring.head));
	/* Pairs with the device's barrier before it looks for the last time. */
	virt_mb();
	return !READ_ONCE(*wq->bell.awake);
}

void vrdma_direct_notify(struct vrdma_wq *wq)
{
	writel(wq->bell.number, wq->bell.page);
}

static u32 vrdma_direct_depth(u32 max_wr)
{
	return roundup_pow_of_two(max_t(u32, max_wr, VRDMA_DEPTH_MIN));
}

/*
 * Give the QP its memory, with slots of the sizes that its rings name, and have
 * @req describe it.
 */
int vrdma_direct_init(struct vrdma_dev *dev, struct vrdma_qp *qp,
		      const struct ib_qp_cap *cap, u32 doorbell,
		      struct virtio_rdma_create_qp_req *req)
{
	u32 sq_slots = vrdma_direct_depth(cap->max_send_wr);
	u32 rq_slots = qp->ibqp.srq ? 0 : vrdma_direct_depth(cap->max_recv_wr);
	u32 sq_shift = qp->sq.ring.shift;
	u32 rq_shift = qp->rq.ring.shift;
	u32 sq_pages = vrdma_ring_pages(sq_slots, sq_shift);
	u32 npages = 1 + sq_pages + vrdma_ring_pages(rq_slots, rq_shift);
	struct vrdma_area *area = vrdma_area_alloc(dev, npages);

	if (IS_ERR(area))
		return PTR_ERR(area);
	vrdma_ring_init(&qp->sq.ring, area->buf, 1, sq_slots, sq_shift);
	if (rq_slots)
		vrdma_ring_init(&qp->rq.ring, area->buf, 1 + sq_pages,
				rq_slots, rq_shift);
	qp->doorbell = dev->doorbells + doorbell * VIRTIO_RDMA_DOORBELL_SIZE;
	qp->direct = area;
	req->queue_npages = cpu_to_le32(npages);
	req->sq_depth_shift = ilog2(sq_slots);
	req->sq_slot_shift = sq_shift;
	req->rq_depth_shift = rq_slots ? ilog2(rq_slots) : 0;
	req->rq_slot_shift = rq_shift;
	req->doorbell = cpu_to_le16(doorbell);
	return 0;
}

/* The device does not have the QP any more, or never had. */
void vrdma_direct_free(struct vrdma_dev *dev, struct vrdma_qp *qp)
{
	vrdma_area_free(dev, qp->direct);
	qp->direct = NULL;
	vrdma_buf_put(qp->sq.ring.buf);
	vrdma_buf_put(qp->rq.ring.buf);
}

/* CREATE_QP, with a table of the pages that exists during the command only */
int vrdma_direct_create_cmd(struct vrdma_dev *dev, struct vrdma_qp *qp,
			    struct virtio_rdma_create_qp_req *req,
			    struct virtio_rdma_create_qp_rsp *rsp)
{
	struct vrdma_table table;
	int ret;

	ret = vrdma_area_table(dev, qp->direct, &table);
	if (ret)
		return ret;
	req->queue_pages = cpu_to_le64(table.pages);
	req->queue_levels = table.levels;
	ret = vrdma_ctrl(dev, VIRTIO_RDMA_CMD_CREATE_QP, req, sizeof(*req), rsp,
			 dev->host_numbers ? sizeof(*rsp) : sizeof(rsp->qpn));
	vrdma_table_free(dev, &table);
	return ret;
}

/* The kernel is about to post to a QP that the device has created. */
void vrdma_direct_start(struct vrdma_qp *qp)
{
	struct virtio_rdma_direct_page *page =
		page_address(qp->direct->buf->pages[0]);
	const struct vrdma_bell bell = {
		.page = qp->doorbell,
		.number = qp->qpn,
	};

	qp->sq.bell = bell;
	qp->sq.bell.producer = &page->sq_producer;
	qp->sq.bell.awake = &page->sq_awake;
	if (qp->ibqp.srq)
		return;
	qp->rq.bell = bell;
	qp->rq.bell.producer = &page->rq_producer;
	qp->rq.bell.awake = &page->rq_awake;
}
