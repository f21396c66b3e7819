// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared receive queues. The device copies WQEs as it gets them, so slots
 * come back long before their messages, and an SRQ may be deeper than its
 * virtqueue: what finds no room there waits in its slots. The device has to
 * take WQEs until it has as many as the SRQ is deep, so that takes no
 * longer than copying what is in the virtqueue: whoever may sleep waits for it,
 * and for others there is a work item. An interrupt would take a vector for
 * each SRQ, which guests have better use for.
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "vrdma.h"

#define FEED_JIFFIES	1		/* between two looks at the virtqueue */
#define WAIT_JIFFIES	(5 * HZ)	/* before the work item goes on */

/* A virtqueue serves another SRQ only after it was reset. */
bool vrdma_srq_possible(struct virtio_device *vdev)
{
	/*
	 * The queue of events comes before those of SRQs, and transports
	 * cannot leave one out.
	 */
	return virtio_has_feature(vdev, VIRTIO_RDMA_F_EVENTS) &&
	       virtio_has_feature(vdev, VIRTIO_RDMA_F_CQE_STATUS_LAST) &&
	       virtio_has_feature(vdev, VIRTIO_F_RING_RESET);
}

int vrdma_srqs_init(struct vrdma_dev *dev)
{
	struct ib_device_attr *attr = &dev->attr;

	if (!dev->num_srq)
		return 0;
	dev->srqs = kvcalloc(dev->num_srq, sizeof(*dev->srqs), GFP_KERNEL);
	dev->srqs_busy = bitmap_zalloc(dev->num_srq, GFP_KERNEL);
	if (!dev->srqs || !dev->srqs_busy) {
		vrdma_srqs_free(dev);
		return -ENOMEM;
	}
	attr->max_srq = dev->num_srq;
	attr->max_srq_wr = min_t(u32, attr->max_srq_wr, VRDMA_SRQ_DEPTH_MAX);
	return 0;
}

void vrdma_srqs_free(struct vrdma_dev *dev)
{
	bitmap_free(dev->srqs_busy);
	kvfree(dev->srqs);
}

/* With the events locked. */
void vrdma_srq_event(struct vrdma_dev *dev, u32 srqn, struct ib_event *event)
{
	struct vrdma_srq *srq = srqn < dev->num_srq ? dev->srqs[srqn] : NULL;

	if (!srq || !srq->ibsrq.event_handler)
		return;
	event->element.srq = &srq->ibsrq;
	srq->ibsrq.event_handler(event, srq->ibsrq.srq_context);
}

static void set_entry(struct vrdma_dev *dev, u32 srqn, struct vrdma_srq *srq)
{
	vrdma_events_lock(dev);
	dev->srqs[srqn] = srq;
	vrdma_events_unlock(dev);
}

static int use_vq(struct vrdma_dev *dev, struct vrdma_srq *srq, u32 srqn)
{
	srq->srqn = srqn;
	set_bit(srqn, dev->srqs_busy);
	srq->wq.ring.vq = dev->vqs[VIRTIO_RDMA_SRQ_VQ(dev->num_cq,
						      dev->num_qp, srqn)];
	return vrdma_vq_grow(dev, srq->wq.ring.vq,
			     min(srq->wq.max_wr, dev->ring_max));
}

/* What the device may still look at is never freed. */
static void drop_vq(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	if (vrdma_vq_park(dev, srq->wq.ring.vq))
		return;
	vrdma_buf_put(srq->wq.ring.buf);
	clear_bit(srq->srqn, dev->srqs_busy);
}

static int destroy(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	struct virtio_rdma_srqn req = { .srqn = cpu_to_le32(srq->srqn) };

	return vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_SRQ, &req);
}

/* Create the SRQ at the device, on a virtqueue of the right size. */
static int create(struct vrdma_dev *dev, struct vrdma_srq *srq, u32 limit)
{
	struct virtio_rdma_create_srq_req req = {
		.pdn = cpu_to_le32(to_vpd(srq->ibsrq.pd)->pdn),
		.max_wr = cpu_to_le32(srq->wq.max_wr),
		.max_sge = cpu_to_le32(srq->wq.max_sge),
		.limit = cpu_to_le32(limit),
	};
	struct virtio_rdma_srqn rsp;
	u32 wanted, srqn;
	int ret;

	wanted = find_first_zero_bit(dev->srqs_busy, dev->num_srq);
	if (wanted >= dev->num_srq)
		return -ENOMEM;
	ret = use_vq(dev, srq, wanted);
	if (ret)
		goto err;
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_SRQ, &req, &rsp);
	if (ret)
		goto err;
	srqn = le32_to_cpu(rsp.srqn);
	if (srqn == wanted)
		return 0;

	/* The device chose another number. */
	drop_vq(dev, srq);
	if (srqn >= dev->num_srq || test_bit(srqn, dev->srqs_busy))
		return -EPROTO;
	ret = use_vq(dev, srq, srqn);
	if (!ret)
		return 0;
	destroy(dev, srq);
err:
	drop_vq(dev, srq);
	return ret;
}

/* The slots of a process begin with a page for its counter. */
static int make_slots(struct vrdma_srq *srq)
{
	u32 slots = max_t(u32, virtqueue_get_vring_size(srq->wq.ring.vq),
			  roundup_pow_of_two(srq->wq.max_wr));
	u32 shift = vrdma_recv_shift(srq->wq.max_sge);
	u32 first = srq->user;
	struct vrdma_buf *buf;

	buf = vrdma_buf_alloc(first + vrdma_ring_pages(slots, shift));
	if (!buf)
		return -ENOMEM;
	vrdma_ring_init(&srq->wq.ring, buf, first, slots, shift);
	if (srq->user) {
		struct virtio_rdma_srq_page *page = page_address(buf->pages[0]);

		srq->producer = &page->producer;
	} else {
		srq->producer = &srq->wq.posted;
	}
	vrdma_buf_put(buf);
	return 0;
}

/* Give the device what is in slots; -EAGAIN when it does not have all of it. */
static int give(struct vrdma_srq *srq)
{
	return vrdma_wq_give(&srq->wq, srq->producer);
}

static void feed_later(struct vrdma_srq *srq)
{
	schedule_delayed_work(&srq->feed, FEED_JIFFIES);
}

static void feed_work(struct work_struct *work)
{
	struct vrdma_srq *srq = container_of(work, struct vrdma_srq, feed.work);
	int ret = give(srq);

	/* Memory for the mapping of a slot may be back next time. */
	if (ret == -EAGAIN || ret == -ENOMEM)
		feed_later(srq);
}

/* Wait until the device has all that is in slots, but not for ever. */
static int give_all(struct vrdma_srq *srq)
{
	unsigned long end = jiffies + WAIT_JIFFIES;
	int ret;

	for (;;) {
		ret = give(srq);
		if (ret != -EAGAIN)
			return ret;
		if (time_after(jiffies, end) || fatal_signal_pending(current))
			break;
		usleep_range(20, 200);
	}
	feed_later(srq);
	return 0;
}

static int respond(struct vrdma_srq *srq, struct ib_udata *udata)
{
	struct vrdma_ring *ring = &srq->wq.ring;
	struct virtio_rdma_create_srq_resp resp = {
		.mmap_size = ring->buf->npages << PAGE_SHIFT,
		.ring_offset = ring->first_page << PAGE_SHIFT,
		.slots = vrdma_ring_slots(ring),
		.slot_size = 1U << ring->shift,
	};
	int ret;

	srq->mmap = vrdma_mmap_insert(udata, ring->buf);
	if (IS_ERR(srq->mmap)) {
		ret = PTR_ERR(srq->mmap);
		srq->mmap = NULL;
		return ret;
	}
	resp.mmap_offset = rdma_user_mmap_get_offset(&srq->mmap->rdma);
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (ret)
		vrdma_mmap_remove(srq->mmap);
	return ret;
}

static int vrdma_create_srq(struct ib_srq *ibsrq,
			    struct ib_srq_init_attr *init,
			    struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibsrq->device);
	struct vrdma_srq *srq = to_vsrq(ibsrq);
	struct ib_srq_attr *attr = &init->attr;
	int ret;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > dev->attr.max_srq_wr ||
	    attr->max_sge > dev->attr.max_srq_sge ||
	    attr->srq_limit > attr->max_wr)
		return -EINVAL;

	spin_lock_init(&srq->wq.ring.lock);
	INIT_DELAYED_WORK(&srq->feed, feed_work);
	srq->user = !!udata;
	srq->wq.max_wr = max_t(u32, attr->max_wr, VRDMA_DEPTH_MIN);
	srq->wq.max_sge = attr->max_sge;

	mutex_lock(&dev->vq_lock);
	ret = create(dev, srq, attr->srq_limit);
	if (ret)
		goto err_unlock;
	ret = make_slots(srq);
	if (ret)
		goto err_destroy;
	if (srq->user) {
		ret = respond(srq, udata);
		if (ret)
			goto err_destroy;
	}
	attr->max_wr = srq->wq.max_wr;
	set_entry(dev, srq->srqn, srq);
	mutex_unlock(&dev->vq_lock);
	return 0;

err_destroy:
	destroy(dev, srq);
	drop_vq(dev, srq);
err_unlock:
	mutex_unlock(&dev->vq_lock);
	return ret;
}

static int vrdma_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			    enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct vrdma_srq *srq = to_vsrq(ibsrq);
	struct virtio_rdma_modify_srq_req req = {
		.srqn = cpu_to_le32(srq->srqn),
		.limit = cpu_to_le32(attr->srq_limit),
	};
	int ret;

	/* Its size does not change. */
	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->wq.max_wr)
		return -EINVAL;
	/* What the device does not know does not count for the limit. */
	ret = give_all(srq);
	if (ret)
		return ret;
	return vrdma_ctrl_do(to_vdev(ibsrq->device),
			     VIRTIO_RDMA_CMD_MODIFY_SRQ, &req);
}

static int vrdma_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct virtio_rdma_srqn req = {
		.srqn = cpu_to_le32(to_vsrq(ibsrq)->srqn),
	};
	struct virtio_rdma_query_srq_rsp rsp;
	int ret;

	ret = vrdma_ctrl_ask(to_vdev(ibsrq->device),
			     VIRTIO_RDMA_CMD_QUERY_SRQ, &req, &rsp);
	if (ret)
		return ret;
	attr->max_wr = le32_to_cpu(rsp.max_wr);
	attr->max_sge = le32_to_cpu(rsp.max_sge);
	attr->srq_limit = le32_to_cpu(rsp.limit);
	return 0;
}

static int vrdma_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibsrq->device);
	struct vrdma_srq *srq = to_vsrq(ibsrq);
	int ret;

	mutex_lock(&dev->vq_lock);
	ret = destroy(dev, srq);
	if (!ret) {
		set_entry(dev, srq->srqn, NULL);
		cancel_delayed_work_sync(&srq->feed);
		vrdma_mmap_remove(srq->mmap);
		drop_vq(dev, srq);
	}
	mutex_unlock(&dev->vq_lock);
	return ret;
}

static int vrdma_post_srq_recv(struct ib_srq *ibsrq,
			       const struct ib_recv_wr *wr,
			       const struct ib_recv_wr **bad_wr)
{
	struct vrdma_srq *srq = to_vsrq(ibsrq);
	int ret;

	if (srq->user) {
		*bad_wr = wr;
		return wr ? -EINVAL : give_all(srq);
	}
	ret = vrdma_wq_post_recv(&srq->wq, wr, bad_wr);
	if (READ_ONCE(srq->wq.posted) != READ_ONCE(srq->wq.ring.head))
		feed_later(srq);
	return ret;
}

const struct ib_device_ops vrdma_srq_ops = {
	.create_srq = vrdma_create_srq,
	.destroy_srq = vrdma_destroy_srq,
	.modify_srq = vrdma_modify_srq,
	.post_srq_recv = vrdma_post_srq_recv,
	.query_srq = vrdma_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, vrdma_srq, ibsrq),
};
