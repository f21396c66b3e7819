// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared receive queues that the device reads in memory, as it does the queues
 * of direct.c. It copies WQEs when it wants to, and nobody is told of it: a slot
 * is free when one of the requests has completed, whichever that is.
 */
#include <linux/io.h>
#include <linux/log2.h>

#include "queue.h"

static u32 vrdma_srq_bell(const struct vrdma_srq *srq)
{
	return VIRTIO_RDMA_DOORBELL_SRQ | srq->srqn;
}

/* Post by a command, see vrdma_direct_ring(). */
int vrdma_srq_direct_ring(struct vrdma_srq *srq)
{
	return vrdma_direct_ring(srq->wq.dev, srq->doorbell,
				 vrdma_srq_bell(srq));
}

/*
 * Give the SRQ its memory: a slot for each entry of a request, of which the
 * kernel has more than the device has WQEs.
 */
static int vrdma_srq_direct_alloc(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	u32 slots = roundup_pow_of_two(srq->user ? srq->wq.max_wr
						 : srq->wq.num_requests);
	u32 shift = vrdma_recv_slot_shift(srq->wq.max_sge);
	struct vrdma_area *area;

	area = vrdma_area_alloc(dev, 1 + vrdma_ring_pages(slots, shift));
	if (IS_ERR(area))
		return PTR_ERR(area);
	vrdma_ring_init(&srq->wq.ring, area->buf, 1, slots, shift);
	srq->direct = area;
	return 0;
}

static int vrdma_srq_direct_create_cmd(struct vrdma_dev *dev,
				       struct vrdma_srq *srq, u32 doorbell)
{
	struct virtio_rdma_create_srq_req req = {
		.pdn = cpu_to_le32(to_vpd(srq->ibsrq.pd)->pdn),
		.max_wr = cpu_to_le32(srq->wq.max_wr),
		.max_sge = cpu_to_le32(srq->wq.max_sge),
		.flags = cpu_to_le32(VIRTIO_RDMA_SRQ_DIRECT),
		.queue_npages = cpu_to_le32(srq->direct->buf->npages),
		.depth_shift = ilog2(vrdma_ring_slots(&srq->wq.ring)),
		.slot_shift = srq->wq.ring.shift,
		.doorbell = cpu_to_le16(doorbell),
	};
	struct virtio_rdma_srqn rsp;
	struct vrdma_table table;
	int ret;

	ret = vrdma_area_table(dev, srq->direct, &table);
	if (ret)
		return ret;
	req.queue_pages = cpu_to_le64(table.pages);
	req.queue_levels = table.levels;
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_SRQ, &req, &rsp);
	vrdma_table_free(dev, &table);
	if (ret)
		return ret;
	srq->srqn = le32_to_cpu(rsp.srqn);
	if (srq->srqn >= dev->num_srq || dev->srqs[srq->srqn]) {
		/* Nobody could destroy it: the device has to let go. */
		vrdma_broken(dev, "SRQ %u: the number is not free", srq->srqn);
		vrdma_wait_stopped(dev);
		return -EPROTO;
	}
	return 0;
}

/* The kernel is about to post to it. */
static void vrdma_srq_direct_start(struct vrdma_srq *srq)
{
	struct virtio_rdma_direct_srq_page *page =
		page_address(srq->direct->buf->pages[0]);

	srq->wq.bell = (struct vrdma_bell) {
		.producer = &page->producer,
		.awake = &page->awake,
		.page = srq->doorbell,
		.number = vrdma_srq_bell(srq),
	};
}

int vrdma_srq_direct_create(struct vrdma_srq *srq, struct ib_udata *udata)
{
	u32 doorbell = srq->user ? vrdma_doorbell(udata) : 0;
	struct vrdma_dev *dev = srq->wq.dev;
	int ret = 0;

	if (!srq->user)
		ret = vrdma_requests_init_shared(dev, &srq->wq);
	if (ret)
		goto err;
	ret = vrdma_srq_direct_alloc(dev, srq);
	if (ret)
		goto err;
	srq->doorbell = dev->doorbells + doorbell * VIRTIO_RDMA_DOORBELL_SIZE;
	ret = vrdma_srq_direct_create_cmd(dev, srq, doorbell);
	if (ret) {
		vrdma_srq_direct_free(srq);
		return ret;
	}
	if (!srq->user)
		vrdma_srq_direct_start(srq);
	return 0;

err:
	vrdma_requests_free(&srq->wq);
	return ret;
}

/* The device does not have it any more, or never had. */
void vrdma_srq_direct_free(struct vrdma_srq *srq)
{
	vrdma_area_free(srq->wq.dev, srq->direct);
	srq->direct = NULL;
	vrdma_buf_put(srq->wq.ring.buf);
	vrdma_requests_free(&srq->wq);
}
