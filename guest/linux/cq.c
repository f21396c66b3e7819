// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion queues, whether they have a virtqueue or not.
 */
#include "queue.h"

int vrdma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	/* Pairs with the release in fatal.c, after the last completion. */
	bool dead = smp_load_acquire(&to_vdev(ibcq->device)->dead);

	return vrdma_cq_vq_poll(to_vcq(ibcq), num, wc, dead);
}

static bool vrdma_cq_has_cqe(struct vrdma_cq *cq)
{
	return vrdma_cq_vq_has_cqe(cq);
}

/* For users in the kernel, who may not have polled for long */
bool vrdma_cq_is_empty(struct vrdma_cq *cq)
{
	unsigned long flags;
	bool empty;

	spin_lock_irqsave(&cq->ring->lock, flags);
	empty = !vrdma_cq_has_cqe(cq);
	spin_unlock_irqrestore(&cq->ring->lock, flags);
	return empty;
}

/* Drop the completions of a QP that was destroyed or reset. */
void vrdma_cq_clean(struct vrdma_cq *cq, struct vrdma_qp *qp)
{
	/* The process drops them itself. */
	if (!cq->mapped)
		vrdma_cq_vq_clean(cq, qp);
}

/*
 * A dead device raises no interrupts. Returns whether the CQ has to be polled;
 * later work requests schedule vrdma_fatal_work(), which calls the handler.
 */
static int vrdma_cq_notify_dead(struct vrdma_cq *cq,
				enum ib_cq_notify_flags flags)
{
	unsigned long irq;
	int ret;

	if (cq->mapped || !(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return 0;
	spin_lock_irqsave(&cq->ring->lock, irq);
	ret = vrdma_cq_has_cqe(cq) || vrdma_flush_cq(cq, 1, NULL);
	spin_unlock_irqrestore(&cq->ring->lock, irq);
	return ret;
}

static int vrdma_cq_notify(struct vrdma_cq *cq, enum ib_cq_notify_flags flags)
{
	u32 arm = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
		  VIRTIO_RDMA_NOTIFY_SOLICITED :
		  VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION;

	WRITE_ONCE(cq->notify_requested, true);
	/* Pairs with the release in fatal.c, after the last completion. */
	if (smp_load_acquire(&vrdma_cq_dev(cq)->dead))
		return vrdma_cq_notify_dead(cq, flags);
	return vrdma_cq_vq_notify(cq, arm, flags);
}

int vrdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct vrdma_cq *cq = to_vcq(ibcq);
	int ret;

	if (!vrdma_cq_is_user(cq))
		return vrdma_cq_notify(cq, flags);
	mutex_lock(&cq->notify_lock);
	ret = vrdma_cq_notify(cq, flags);
	mutex_unlock(&cq->notify_lock);
	return ret;
}

/*
 * The device is dead: have the kernel's CQs polled. Processes get an
 * asynchronous event instead.
 */
void vrdma_cqs_wake(struct vrdma_dev *dev)
{
	vrdma_cq_vqs_wake(dev);
}

int vrdma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct vrdma_create_cq_arg *arg)
{
	struct ib_udata *udata = vrdma_create_cq_udata(arg);
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct vrdma_cq *cq = to_vcq(ibcq);
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > dev->attr.max_cqe)
		return -EINVAL;
	mutex_init(&cq->notify_lock);
	ibcq->cqe = attr->cqe;
	vrdma_vqs_lock(dev);
	ret = vrdma_cq_vq_create(cq, attr->comp_vector, udata);
	vrdma_vqs_unlock(dev);
	return ret;
}

int vrdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct vrdma_cq *cq = to_vcq(ibcq);
	struct virtio_rdma_cqn req = { .cqn = cpu_to_le32(cq->cqn) };
	int ret;

	vrdma_vqs_lock(dev);
	ret = vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_CQ, &req,
				 udata);
	if (!ret)
		vrdma_cq_vq_free(cq);
	vrdma_vqs_unlock(dev);
	return ret;
}

int vrdma_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);

	if (!dev->cq_deep)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > dev->attr.max_cqe)
		return -EINVAL;
	return vrdma_cq_vq_resize(to_vcq(ibcq), cqe);
}

int vrdma_cqs_alloc(struct vrdma_dev *dev)
{
	return vrdma_cq_vqs_alloc(dev);
}

/* The device's virtqueues are known. */
void vrdma_cqs_init(struct vrdma_dev *dev)
{
	vrdma_cq_vqs_init(dev);
}

/* After a device reset. */
void vrdma_cqs_free(struct vrdma_dev *dev)
{
	vrdma_cq_vqs_free(dev);
}
