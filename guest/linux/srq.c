// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared receive queues, of which those in srq_direct.c have no virtqueue.
 *
 * Others have a virtqueue with an entry for each WQE. A buffer returns when a
 * message takes its WQE.
 */
#include <linux/slab.h>

#include "queue.h"

/* SRQs need virtqueues that can be reset, to be used again by another SRQ. */
bool vrdma_srq_possible(struct virtio_device *vdev)
{
	/*
	 * The event virtqueue precedes those of SRQs, and transports cannot
	 * leave one out.
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
	attr->max_srq_wr = min_t(u32, attr->max_srq_wr,
				 dev->direct_srq ? VRDMA_SRQ_DEPTH_MAX :
						   dev->ring_max);
	return 0;
}

void vrdma_srqs_free(struct vrdma_dev *dev)
{
	bitmap_free(dev->srqs_busy);
	kvfree(dev->srqs);
}

static void vrdma_srq_set_entry(struct vrdma_dev *dev, u32 srqn,
				struct vrdma_srq *srq)
{
	vrdma_events_lock(dev);
	dev->srqs[srqn] = srq;
	vrdma_events_unlock(dev);
}

static int vrdma_srq_use_vq(struct vrdma_dev *dev, struct vrdma_srq *srq,
			    u32 srqn)
{
	srq->srqn = srqn;
	set_bit(srqn, dev->srqs_busy);
	srq->wq.ring.vq = dev->vqs[VIRTIO_RDMA_SRQ_VQ(dev->num_cq,
						      dev->num_vq_qp, srqn)];
	return vrdma_vq_prepare(dev, srq->wq.ring.vq, srq->wq.max_wr);
}

/* Without a reset the device may still access the slots: keep them. */
static void vrdma_srq_release_vq(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	vrdma_requests_free(&srq->wq);
	if (vrdma_vq_reset(dev, srq->wq.ring.vq)) {
		vrdma_buf_keep(dev, srq->wq.ring.buf);
		return;
	}
	vrdma_buf_put(srq->wq.ring.buf);
	clear_bit(srq->srqn, dev->srqs_busy);
}

/* @user: it may be in use, and then stays. */
static int vrdma_srq_destroy_cmd(struct vrdma_dev *dev, struct vrdma_srq *srq,
				 bool user)
{
	struct virtio_rdma_srqn req = { .srqn = cpu_to_le32(srq->srqn) };

	return vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_SRQ, &req,
				  user);
}

/* Have the device create the SRQ, after resizing its virtqueue. */
static int vrdma_srq_create_cmd(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	struct virtio_rdma_create_srq_req req = {
		.pdn = cpu_to_le32(to_vpd(srq->ibsrq.pd)->pdn),
		.max_wr = cpu_to_le32(srq->wq.max_wr),
		.max_sge = cpu_to_le32(srq->wq.max_sge),
	};
	struct virtio_rdma_srqn rsp;
	u32 wanted, srqn;
	int ret;

	wanted = find_first_zero_bit(dev->srqs_busy, dev->num_srq);
	if (wanted >= dev->num_srq)
		return -ENOMEM;
	ret = vrdma_srq_use_vq(dev, srq, wanted);
	if (ret)
		goto err;
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_SRQ, &req, &rsp);
	if (ret)
		goto err;
	srqn = le32_to_cpu(rsp.srqn);
	if (srqn == wanted)
		return 0;

	/* The device chose another number. */
	vrdma_srq_release_vq(dev, srq);
	if (srqn >= dev->num_srq || test_bit(srqn, dev->srqs_busy)) {
		/* A number whose slots are kept is free for the device. */
		if (srqn >= dev->num_srq || !dev->srqs[srqn])
			vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_DESTROY_SRQ, &rsp);
		return -EPROTO;
	}
	ret = vrdma_srq_use_vq(dev, srq, srqn);
	if (!ret)
		return 0;
	vrdma_srq_destroy_cmd(dev, srq, false);
err:
	vrdma_srq_release_vq(dev, srq);
	return ret;
}

/* The device does not have the SRQ any more, or never had. */
static void vrdma_srq_release(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	if (srq->direct)
		vrdma_srq_direct_free(srq);
	else
		vrdma_srq_release_vq(dev, srq);
}

/* The slots of a user SRQ follow a page with its counter. */
static int vrdma_srq_alloc_slots(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	u32 slots = virtqueue_get_vring_size(srq->wq.ring.vq);
	u32 shift = vrdma_recv_slot_shift(srq->wq.max_sge);
	u32 first = srq->user;
	struct vrdma_buf *buf;

	buf = vrdma_buf_alloc(first + vrdma_ring_pages(slots, shift));
	if (!buf)
		return -ENOMEM;
	vrdma_ring_init(&srq->wq.ring, buf, first, slots, shift);
	if (srq->user) {
		struct virtio_rdma_srq_page *page = page_address(buf->pages[0]);

		srq->producer = &page->producer;
	}
	vrdma_buf_put(buf);
	return srq->user ? 0 : vrdma_requests_init_shared(dev, &srq->wq);
}

static int vrdma_srq_create_vq(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	int ret;

	ret = vrdma_srq_create_cmd(dev, srq);
	if (ret)
		return ret;
	ret = vrdma_srq_alloc_slots(dev, srq);
	if (ret) {
		vrdma_srq_destroy_cmd(dev, srq, false);
		vrdma_srq_release_vq(dev, srq);
	}
	return ret;
}

static int vrdma_srq_respond(struct vrdma_srq *srq, struct ib_udata *udata)
{
	struct vrdma_ring *ring = &srq->wq.ring;
	struct virtio_rdma_create_srq_resp resp = {
		.mmap_size = ring->buf->npages << PAGE_SHIFT,
		.ring_offset = ring->first_page << PAGE_SHIFT,
		.slots = vrdma_ring_slots(ring),
		.slot_size = 1U << ring->shift,
		.srqn = srq->srqn,
		.flags = srq->direct ? VIRTIO_RDMA_SRQ_RESP_DIRECT : 0,
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
	/* ibv_create_srq(3): its limit is irrelevant, so it may be anything. */
	if (!attr->max_wr || attr->max_wr > dev->attr.max_srq_wr ||
	    attr->max_sge > dev->attr.max_srq_sge)
		return -EINVAL;

	spin_lock_init(&srq->wq.ring.lock);
	srq->wq.dev = dev;
	srq->user = !!udata;
	srq->wq.max_wr = max_t(u32, attr->max_wr, VRDMA_DEPTH_MIN);
	srq->wq.max_sge = attr->max_sge;

	vrdma_vqs_lock(dev);
	ret = dev->direct_srq ? vrdma_srq_direct_create(srq, udata)
			      : vrdma_srq_create_vq(dev, srq);
	if (ret)
		goto err_unlock;
	if (srq->user) {
		ret = vrdma_srq_respond(srq, udata);
		if (ret)
			goto err_destroy;
	}
	attr->max_wr = srq->wq.max_wr;
	vrdma_srq_set_entry(dev, srq->srqn, srq);
	vrdma_vqs_unlock(dev);
	return 0;

err_destroy:
	vrdma_srq_destroy_cmd(dev, srq, false);
	vrdma_srq_release(dev, srq);
err_unlock:
	vrdma_vqs_unlock(dev);
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

	/* An SRQ cannot be resized. */
	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->wq.max_wr)
		return -EINVAL;
	/* The limit counts only WQEs that the device has, or finds in slots. */
	ret = srq->user && !srq->direct ?
	      vrdma_wq_submit_user(&srq->wq, srq->producer) : 0;
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

	vrdma_vqs_lock(dev);
	ret = vrdma_srq_destroy_cmd(dev, srq, srq->user);
	if (!ret) {
		vrdma_srq_set_entry(dev, srq->srqn, NULL);
		vrdma_mmap_remove(srq->mmap);
		vrdma_srq_release(dev, srq);
	}
	vrdma_vqs_unlock(dev);
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
		if (wr)
			return -EINVAL;
		return srq->direct ?
		       vrdma_srq_direct_ring(srq) :
		       vrdma_wq_submit_user(&srq->wq, srq->producer);
	}
	return vrdma_wq_post_recv(&srq->wq, wr, bad_wr);
}

const struct ib_device_ops vrdma_srq_ops = {
	.create_srq = vrdma_create_srq,
	.destroy_srq = vrdma_destroy_srq,
	.modify_srq = vrdma_modify_srq,
	.post_srq_recv = vrdma_post_srq_recv,
	.query_srq = vrdma_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, vrdma_srq, ibsrq),
};
