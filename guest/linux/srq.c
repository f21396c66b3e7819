// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared receive queues. The device copies a WQE when a message takes it. With
 * a virtqueue its buffer then returns; with a direct SRQ the driver does not
 * learn of it.
 */
#include <linux/slab.h>

#include "queue.h"

static void vrdma_srq_set_entry(struct vrdma_dev *dev, u32 srqn,
				struct vrdma_srq *srq)
{
	vrdma_events_lock(dev);
	spin_lock(&dev->qps_lock);
	dev->srqs[srqn] = srq;
	spin_unlock(&dev->qps_lock);
	vrdma_events_unlock(dev);
}

/* @user: the command may fail, because the SRQ may be in use. */
static int vrdma_srq_destroy_cmd(struct vrdma_dev *dev, struct vrdma_srq *srq,
				 bool user)
{
	struct virtio_rdma_srqn req = { .srqn = cpu_to_le32(srq->srqn) };

	return vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_SRQ, &req,
				  user);
}

static void vrdma_srq_free(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	vrdma_requests_free(&srq->wq);
	vrdma_area_free(dev, srq->area);
	srq->area = NULL;
}

/*
 * Give the SRQ its memory: after a page of counters, a slot for each entry of a
 * request, of which the kernel has more than the device has WQEs.
 */
static int vrdma_srq_alloc(struct vrdma_dev *dev, struct vrdma_srq *srq)
{
	u32 shift = vrdma_recv_slot_shift(srq->wq.max_sge);
	struct vrdma_area *area;
	u32 slots;
	int ret;

	if (!srq->user) {
		ret = vrdma_requests_init_shared(dev, &srq->wq);
		if (ret)
			return ret;
	}
	slots = vrdma_slots(srq->user ? srq->wq.max_wr : srq->wq.num_requests);
	area = vrdma_area_alloc(dev, 1 + vrdma_slot_pages(slots, shift));
	if (IS_ERR(area))
		return PTR_ERR(area);
	srq->area = area;
	vrdma_ring_init(&srq->wq.ring, area->buf, VRDMA_PAGE_SIZE, slots,
			shift);
	return 0;
}

/* Have the device create the SRQ, and learn its number. */
static int vrdma_srq_create_cmd(struct vrdma_dev *dev, struct vrdma_srq *srq,
				struct ib_udata *udata)
{
	struct virtio_rdma_create_srq_req req = {
		.pdn = cpu_to_le32(to_vpd(srq->ibsrq.pd)->pdn),
		.max_wr = cpu_to_le32(srq->wq.max_wr),
		.max_sge = cpu_to_le32(srq->wq.max_sge),
	};
	struct virtio_rdma_srqn rsp;
	int ret;

	ret = dev->form->create_srq(srq, udata, &req, &rsp);
	if (ret)
		return ret;
	srq->srqn = le32_to_cpu(rsp.srqn);
	if (srq->srqn < dev->num_srq && !dev->srqs[srq->srqn]) {
		dev->form->start_srq(srq);
		return 0;
	}
	/* The number names another SRQ, so nothing can destroy it. */
	vrdma_broken(dev, "SRQ %u: the number is not free", srq->srqn);
	vrdma_wait_stopped(dev);
	return -EPROTO;
}

/* Let the process map the SRQ, and say how. */
static int vrdma_srq_map(struct vrdma_srq *srq, struct ib_udata *udata,
			 struct virtio_rdma_create_srq_resp *resp)
{
	struct vrdma_ring *ring = &srq->wq.ring;
	int ret;

	*resp = (struct virtio_rdma_create_srq_resp) {
		.mmap_size = ring->buf->npages << PAGE_SHIFT,
		.ring_offset = ring->offset,
		.slots = vrdma_ring_slots(ring),
		.slot_size = BIT(ring->shift),
		.srqn = srq->srqn,
	};
	srq->mmap = vrdma_mmap_insert(udata, srq->area->buf);
	if (IS_ERR(srq->mmap)) {
		ret = PTR_ERR(srq->mmap);
		srq->mmap = NULL;
		return ret;
	}
	resp->mmap_offset = rdma_user_mmap_get_offset(&srq->mmap->rdma);
	return 0;
}

/* @user: the command may fail, because the SRQ may be in use. */
static int vrdma_srq_end(struct vrdma_srq *srq, bool user)
{
	struct vrdma_dev *dev = srq->wq.dev;
	int ret;

	vrdma_objects_lock(dev);
	ret = vrdma_srq_destroy_cmd(dev, srq, user);
	if (!ret) {
		vrdma_srq_set_entry(dev, srq->srqn, NULL);
		vrdma_mmap_remove(srq->mmap);
		dev->form->free_srq(srq);
		vrdma_srq_free(dev, srq);
	}
	vrdma_objects_unlock(dev);
	return ret;
}

static int vrdma_create_srq(struct ib_srq *ibsrq,
			    struct ib_srq_init_attr *init,
			    struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibsrq->device);
	struct vrdma_srq *srq = to_vsrq(ibsrq);
	struct ib_srq_attr *attr = &init->attr;
	struct virtio_rdma_create_srq_resp resp;
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

	vrdma_objects_lock(dev);
	ret = vrdma_srq_alloc(dev, srq);
	if (!ret)
		ret = vrdma_srq_create_cmd(dev, srq, udata);
	if (ret)
		goto err;
	if (srq->user) {
		ret = vrdma_srq_map(srq, udata, &resp);
		if (ret)
			goto err_destroy;
	}
	attr->max_wr = srq->wq.max_wr;
	vrdma_srq_set_entry(dev, srq->srqn, srq);
	vrdma_objects_unlock(dev);
	if (!srq->user)
		return 0;
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (ret)
		vrdma_srq_end(srq, false);
	return ret;

err_destroy:
	vrdma_srq_destroy_cmd(dev, srq, false);
	dev->form->free_srq(srq);
err:
	vrdma_srq_free(dev, srq);
	vrdma_objects_unlock(dev);
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
	/* The limit counts only WQEs that the device knows of. */
	ret = srq->user ? srq->wq.dev->form->post_user(&srq->wq) : 0;
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
	struct vrdma_srq *srq = to_vsrq(ibsrq);

	return vrdma_srq_end(srq, srq->user);
}

static int vrdma_post_srq_recv(struct ib_srq *ibsrq,
			       const struct ib_recv_wr *wr,
			       const struct ib_recv_wr **bad_wr)
{
	struct vrdma_srq *srq = to_vsrq(ibsrq);

	if (srq->user) {
		*bad_wr = wr;
		return wr ? -EINVAL : srq->wq.dev->form->post_user(&srq->wq);
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
