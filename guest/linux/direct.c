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
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "queue.h"

struct vrdma_direct {
	struct vrdma_buf *buf;
	void __iomem *doorbell;
	dma_addr_t dma[];		/* of its pages */
};

/*
 * Post by a command: for processes that have no page of doorbells, could not
 * map it, or do not know of it
 */
int vrdma_direct_ring(struct vrdma_qp *qp)
{
	struct vrdma_dev *dev = to_vdev(qp->ibqp.device);

	if (vrdma_is_dead(dev))
		return -EIO;
	writel(qp->qpn, qp->direct->doorbell);
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
	writel(wq->bell.qpn, wq->bell.page);
}

static void vrdma_direct_unmap(struct vrdma_dev *dev,
			       struct vrdma_direct *direct, u32 count)
{
	while (count--)
		dma_unmap_page(dev->dma_dev, direct->dma[count], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
}

static int vrdma_direct_map(struct vrdma_dev *dev, struct vrdma_direct *direct)
{
	u32 i;

	for (i = 0; i < direct->buf->npages; i++) {
		direct->dma[i] = dma_map_page(dev->dma_dev,
					      direct->buf->pages[i], 0,
					      PAGE_SIZE, DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dev->dma_dev, direct->dma[i])) {
			vrdma_direct_unmap(dev, direct, i);
			return -ENOMEM;
		}
	}
	return 0;
}

static struct vrdma_direct *vrdma_direct_alloc(struct vrdma_dev *dev,
					       u32 npages)
{
	struct vrdma_direct *direct;

	direct = kvzalloc(struct_size(direct, dma, npages), GFP_KERNEL_ACCOUNT);
	if (!direct)
		return ERR_PTR(-ENOMEM);
	direct->buf = vrdma_buf_alloc(npages);
	if (!direct->buf)
		goto err;
	if (vrdma_direct_map(dev, direct))
		goto err_buf;
	return direct;

err_buf:
	vrdma_buf_put(direct->buf);
err:
	kvfree(direct);
	return ERR_PTR(-ENOMEM);
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
	struct vrdma_direct *direct = vrdma_direct_alloc(dev, npages);

	if (IS_ERR(direct))
		return PTR_ERR(direct);
	vrdma_ring_init(&qp->sq.ring, direct->buf, 1, sq_slots, sq_shift);
	if (rq_slots)
		vrdma_ring_init(&qp->rq.ring, direct->buf, 1 + sq_pages,
				rq_slots, rq_shift);
	direct->doorbell = dev->doorbells +
			   doorbell * VIRTIO_RDMA_DOORBELL_SIZE;
	qp->direct = direct;
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
	struct vrdma_direct *direct = qp->direct;

	if (vrdma_is_dead(dev))
		vrdma_wait_stopped(dev);
	vrdma_direct_unmap(dev, direct, direct->buf->npages);
	vrdma_buf_put(qp->sq.ring.buf);
	vrdma_buf_put(qp->rq.ring.buf);
	vrdma_buf_put(direct->buf);
	kvfree(direct);
	qp->direct = NULL;
}

/* CREATE_QP, with a table of the pages that exists during the command only */
int vrdma_direct_create_cmd(struct vrdma_dev *dev, struct vrdma_qp *qp,
			    struct virtio_rdma_create_qp_req *req,
			    struct virtio_rdma_create_qp_rsp *rsp)
{
	struct vrdma_table table;
	int ret;

	ret = vrdma_table_init_list(dev, &table, qp->direct->dma,
				    qp->direct->buf->npages);
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
		.page = qp->direct->doorbell,
		.qpn = qp->qpn,
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
