// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion queues, whether they have a virtqueue or not.
 */
#include "queue.h"

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
	int n;

	if (!cq->direct)
		return vrdma_cq_vq_poll(cq, num, wc, dead);
	if (!vrdma_cq_is_user(cq))
		return vrdma_cq_direct_poll(cq, num, wc, dead);
	if (cq->mapped)
		return 0;
	mutex_lock(&cq->notify_lock);
	n = vrdma_cq_direct_poll(cq, num, wc, dead);
	mutex_unlock(&cq->notify_lock);
	return n;
}

static bool vrdma_cq_has_cqe(struct vrdma_cq *cq)
{
	return cq->direct ? vrdma_cq_direct_has_cqe(cq)
			  : vrdma_cq_vq_has_cqe(cq);
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

/*
 * Before the first queue pair uses a CQ of the kernel. The RDMA core's pool
 * keeps one that has failed, and gives it to the next connection.
 */
int vrdma_cq_renew(struct vrdma_cq *cq)
{
	lockdep_assert_held(&vrdma_cq_dev(cq)->vq_lock);

	if (!cq->failed || !cq->direct || cq->num_wqs)
		return 0;
	return vrdma_cq_direct_renew(cq);
}

/* Drop the completions of a QP that was destroyed or reset. */
void vrdma_cq_clean(struct vrdma_cq *cq, struct vrdma_qp *qp)
{
	/* The process drops them itself. */
	if (cq->mapped)
		return;
	if (!cq->direct) {
		vrdma_cq_vq_clean(cq, qp);
		return;
	}
	/* Not while they move to other memory */
	if (vrdma_cq_is_user(cq))
		mutex_lock(&cq->notify_lock);
	vrdma_cq_direct_clean(cq, qp);
	if (vrdma_cq_is_user(cq))
		mutex_unlock(&cq->notify_lock);
}

/*
 * A dead device or CQ raises no interrupts. Returns whether it has to be polled;
 * later work requests schedule a work, which calls the handler.
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

	/* The process arms it in memory. */
	if (cq->direct && cq->mapped)
		return -EINVAL;
	WRITE_ONCE(cq->notify_requested, true);
	if (vrdma_cq_is_dead(cq))
		return vrdma_cq_notify_dead(cq, flags);
	return cq->direct ? vrdma_cq_direct_notify(cq, arm, flags)
			  : vrdma_cq_vq_notify(cq, arm, flags);
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
 * The device, or a CQ, is dead: have the kernel's CQs polled. Processes get an
 * asynchronous event instead.
 */
void vrdma_cqs_wake(struct vrdma_dev *dev)
{
	if (dev->direct_cq)
		vrdma_eqs_wake(dev);
	else
		vrdma_cq_vqs_wake(dev);
}

/* What the process knows of; older ones send nothing. */
static int vrdma_cq_get_request(struct ib_udata *udata,
				struct virtio_rdma_create_cq_cmd *cmd)
{
	int ret;

	memset(cmd, 0, sizeof(*cmd));
	if (!udata || !udata->inlen)
		return 0;
	ret = ib_copy_from_udata(cmd, udata, min(sizeof(*cmd), udata->inlen));
	if (ret)
		return ret;
	if (cmd->flags & ~VIRTIO_RDMA_CQ_CMD_DIRECT || cmd->reserved ||
	    (udata->inlen > sizeof(*cmd) &&
	     !ib_is_udata_cleared(udata, sizeof(*cmd),
				  udata->inlen - sizeof(*cmd))))
		return -EINVAL;
	return 0;
}

int vrdma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct vrdma_create_cq_arg *arg)
{
	struct ib_udata *udata = vrdma_create_cq_udata(arg);
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct virtio_rdma_create_cq_cmd cmd;
	struct vrdma_cq *cq = to_vcq(ibcq);
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > dev->attr.max_cqe)
		return -EINVAL;
	ret = vrdma_cq_get_request(udata, &cmd);
	if (ret)
		return ret;
	mutex_init(&cq->notify_lock);
	ibcq->cqe = attr->cqe;
	vrdma_vqs_lock(dev);
	if (dev->direct_cq)
		ret = vrdma_cq_direct_create(cq, attr->comp_vector, cmd.flags &
					     VIRTIO_RDMA_CQ_CMD_DIRECT, udata);
	else
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
	if (!ret && cq->direct)
		vrdma_cq_direct_free(cq);
	else if (!ret)
		vrdma_cq_vq_free(cq);
	vrdma_vqs_unlock(dev);
	return ret;
}

int vrdma_resize_cq(struct ib_cq *ibcq, vrdma_cqe_num cqe,
		    struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibcq->device);
	struct vrdma_cq *cq = to_vcq(ibcq);

	if (!dev->cq_deep)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > dev->attr.max_cqe)
		return -EINVAL;
	return cq->direct ? vrdma_cq_direct_resize(cq, cqe, udata)
			  : vrdma_cq_vq_resize(cq, cqe);
}

int vrdma_cqs_alloc(struct vrdma_dev *dev)
{
	return dev->direct_cq ? vrdma_eqs_alloc(dev) : vrdma_cq_vqs_alloc(dev);
}

/* The device's virtqueues are known. */
void vrdma_cqs_init(struct vrdma_dev *dev)
{
	if (dev->direct_cq)
		vrdma_eqs_init(dev);
	else
		vrdma_cq_vqs_init(dev);
}

/* After a device reset. */
void vrdma_cqs_free(struct vrdma_dev *dev)
{
	vrdma_eqs_free(dev);
	vrdma_cq_vqs_free(dev);
}
