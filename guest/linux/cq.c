// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion queues. Where completions are depends on the form of queues; one
 * that a process maps is polled and armed without the kernel.
 */
#include "queue.h"

static const struct vrdma_form *vrdma_cq_form(const struct vrdma_cq *cq)
{
	return vrdma_cq_dev(cq)->form;
}

/* Has the device written the last completion? */
static bool vrdma_cq_is_dead(struct vrdma_cq *cq)
{
	/* Pairs with the release in fatal.c, after the last completion. */
	if (smp_load_acquire(&vrdma_cq_dev(cq)->dead))
		return true;
	/* Pairs with the release in event.c, likewise. */
	return smp_load_acquire(&cq->failed);
}

int vrdma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct vrdma_cq *cq = to_vcq(ibcq);
	bool dead = vrdma_cq_is_dead(cq);

	return cq->mmap ? 0 : vrdma_cq_form(cq)->poll_cq(cq, num, wc, dead);
}

/* For users in the kernel, who may not have polled for long */
bool vrdma_cq_is_empty(struct vrdma_cq *cq)
{
	unsigned long flags;
	bool empty;

	spin_lock_irqsave(&cq->ring->lock, flags);
	empty = !vrdma_cq_form(cq)->has_cqe(cq);
	spin_unlock_irqrestore(&cq->ring->lock, flags);
	return empty;
}

/*
 * Called before a queue pair of the kernel uses a CQ. The RDMA core's pool
 * keeps a CQ that has failed, and gives it to the next connection.
 */
int vrdma_cq_renew(struct vrdma_cq *cq)
{
	lockdep_assert_held(&vrdma_cq_dev(cq)->objects_lock);

	if (!cq->failed || cq->num_wqs)
		return 0;
	return vrdma_cq_form(cq)->renew_cq(cq);
}

/* Drop the completions of a QP that was destroyed or reset. */
void vrdma_cq_clean(struct vrdma_cq *cq, struct vrdma_qp *qp)
{
	/* A process that maps the CQ drops them itself. */
	if (!cq->mmap)
		vrdma_cq_form(cq)->clean_cq(cq, qp);
}

/*
 * A dead device or CQ raises no interrupts. Returns whether it has to be
 * polled; later work requests schedule a work, which calls the handler.
 */
static int vrdma_cq_notify_dead(struct vrdma_cq *cq,
				enum ib_cq_notify_flags flags)
{
	unsigned long irq;
	int ret;

	if (!(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return 0;
	spin_lock_irqsave(&cq->ring->lock, irq);
	ret = vrdma_cq_form(cq)->has_cqe(cq) || vrdma_flush_cq(cq, 1, NULL);
	spin_unlock_irqrestore(&cq->ring->lock, irq);
	return ret;
}

int vrdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	u32 arm = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
		  VIRTIO_RDMA_NOTIFY_SOLICITED :
		  VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION;
	struct vrdma_cq *cq = to_vcq(ibcq);

	/* The process arms it in memory. */
	if (cq->mmap)
		return -EINVAL;
	WRITE_ONCE(cq->notify_requested, true);
	if (vrdma_cq_is_dead(cq))
		return vrdma_cq_notify_dead(cq, flags);
	return vrdma_cq_form(cq)->notify_cq(cq, arm, flags);
}

int vrdma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct vrdma_create_cq_arg *arg)
{
	struct ib_udata *udata = vrdma_create_cq_udata(arg);
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct vrdma_cq *cq = to_vcq(ibcq);
	struct virtio_rdma_create_cq_resp resp = {};
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > dev->attr.max_cqe)
		return -EINVAL;
	mutex_init(&cq->notify_lock);
	ibcq->cqe = attr->cqe;
	vrdma_objects_lock(dev);
	ret = dev->form->create_cq(cq, attr->comp_vector, udata, &resp);
	vrdma_objects_unlock(dev);
	if (ret || !udata)
		return ret;
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (ret)
		vrdma_destroy_cq(ibcq, NULL);
	return ret;
}

int vrdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct vrdma_cq *cq = to_vcq(ibcq);
	struct virtio_rdma_cqn req = { .cqn = cpu_to_le32(cq->cqn) };
	int ret;

	vrdma_objects_lock(dev);
	ret = vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_CQ, &req,
				 udata);
	if (!ret)
		dev->form->free_cq(cq);
	vrdma_objects_unlock(dev);
	return ret;
}

int vrdma_resize_cq(struct ib_cq *ibcq, vrdma_cqe_num cqe,
		    struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);

	if (cqe < 1 || cqe > dev->attr.max_cqe)
		return -EINVAL;
	return dev->form->resize_cq(to_vcq(ibcq), cqe, udata);
}
