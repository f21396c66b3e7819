// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control virtqueue: one command is one chain, and the device answers
 * each. Callers that may sleep do so when the answer takes long; others spin.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "vrdma.h"

/* Longest request and response, with the command or status byte. */
#define REQ_ROOM (1 + sizeof(struct virtio_rdma_modify_qp_req))
#define RSP_ROOM (1 + VRDMA_MAX_COUNTERS * sizeof(__le64))

static_assert(sizeof(struct virtio_rdma_query_port_rsp) < RSP_ROOM);

/* Most answers come within this time. */
#define SPIN_NS (50 * NSEC_PER_USEC)
/* After so many looks, some milliseconds, something may be wrong. */
#define SPINS_PER_STATUS 65536

struct vrdma_cmd {
	struct completion done;
	unsigned int len;		/* of the response */
	bool abandoned;			/* nobody waits for the answer */
	u8 req[REQ_ROOM] ____cacheline_aligned;
	u8 rsp[RSP_ROOM] ____cacheline_aligned;
};

static int status_to_errno(u8 status)
{
	switch (status) {
	case VIRTIO_RDMA_S_OK:
		return 0;
	case VIRTIO_RDMA_S_NOMEM:
		return -ENOMEM;
	case VIRTIO_RDMA_S_BUSY:
		return -EBUSY;
	case VIRTIO_RDMA_S_NOENT:
		return -ENOENT;
	case VIRTIO_RDMA_S_PERM:
		return -EPERM;
	case VIRTIO_RDMA_S_NOTSUPP:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

/* Hand out the answers that are there. With ctrl->lock held. */
static void reap(struct vrdma_ctrl *ctrl)
{
	struct vrdma_cmd *cmd;
	unsigned int len;

	while ((cmd = virtqueue_get_buf(ctrl->vq, &len))) {
		cmd->len = len;
		if (cmd->abandoned)
			kfree(cmd);
		else
			complete(&cmd->done);
	}
}

void vrdma_ctrl_callback(struct virtqueue *vq)
{
	struct vrdma_dev *dev = vq->vdev->priv;
	struct vrdma_ctrl *ctrl = &dev->ctrl;
	unsigned long flags;

	spin_lock_irqsave(&ctrl->lock, flags);
	do {
		virtqueue_disable_cb(vq);
		reap(ctrl);
	} while (ctrl->sleepers && !virtqueue_enable_cb(vq));
	spin_unlock_irqrestore(&ctrl->lock, flags);
}

/* Look for answers; is the one to @cmd there? */
static bool look(struct vrdma_ctrl *ctrl, struct vrdma_cmd *cmd)
{
	unsigned long flags;
	bool done;

	spin_lock_irqsave(&ctrl->lock, flags);
	reap(ctrl);
	done = try_wait_for_completion(&cmd->done);
	spin_unlock_irqrestore(&ctrl->lock, flags);
	return done;
}

/*
 * Wait no longer, unless the answer has come: the command stays with the
 * virtqueue.
 */
static bool abandon(struct vrdma_ctrl *ctrl, struct vrdma_cmd *cmd)
{
	unsigned long flags;
	bool done;

	spin_lock_irqsave(&ctrl->lock, flags);
	reap(ctrl);
	done = try_wait_for_completion(&cmd->done);
	cmd->abandoned = !done;
	spin_unlock_irqrestore(&ctrl->lock, flags);
	return !done;
}

/* After a device reset: the commands that were abandoned. */
void vrdma_ctrl_free(struct vrdma_dev *dev)
{
	void *cmd;

	while ((cmd = virtqueue_detach_unused_buf(dev->ctrl.vq)))
		kfree(cmd);
}

/* A device that has found its rings broken answers no more. */
bool vrdma_needs_reset(struct vrdma_dev *dev)
{
	return dev->vdev->config->get_status(dev->vdev) &
	       VIRTIO_CONFIG_S_NEEDS_RESET;
}

/*
 * Look whether the device is there still, from time to time: to ask for the
 * status takes longer than most answers. @n counts the calls.
 */
static bool given_up(struct vrdma_dev *dev, u32 *n)
{
	return virtqueue_is_broken(dev->ctrl.vq) ||
	       (++*n % SPINS_PER_STATUS == 0 && vrdma_needs_reset(dev));
}

static int submit(struct vrdma_dev *dev, struct vrdma_cmd *cmd,
		  size_t req_len, size_t rsp_len)
{
	struct scatterlist out, in, *sgs[] = { &out, &in };
	struct vrdma_ctrl *ctrl = &dev->ctrl;
	unsigned long flags;
	u32 n = 0;
	bool notify;
	int ret;

	sg_init_one(&out, cmd->req, req_len);
	sg_init_one(&in, cmd->rsp, rsp_len);

	for (;;) {
		spin_lock_irqsave(&ctrl->lock, flags);
		ret = virtqueue_add_sgs(ctrl->vq, sgs, 1, 1, cmd, GFP_ATOMIC);
		if (!ret)
			break;
		reap(ctrl);
		spin_unlock_irqrestore(&ctrl->lock, flags);
		if (given_up(dev, &n)) {
			if (!READ_ONCE(dev->dead))
				vrdma_fatal(dev);
			return -EIO;
		}
		if (ret != -ENOSPC)
			return ret;
		cpu_relax();
	}
	notify = virtqueue_kick_prepare(ctrl->vq);
	spin_unlock_irqrestore(&ctrl->lock, flags);

	/* A queue that cannot be notified is broken from then on. */
	if (notify)
		virtqueue_notify(ctrl->vq);
	return 0;
}

/* Returns false if there will be no answer. */
static bool spin(struct vrdma_dev *dev, struct vrdma_cmd *cmd)
{
	u32 n = 0;

	while (!look(&dev->ctrl, cmd)) {
		if (given_up(dev, &n))
			return false;
		cpu_relax();
	}
	return true;
}

static bool sleep(struct vrdma_dev *dev, struct vrdma_cmd *cmd)
{
	ktime_t end = ktime_add_ns(ktime_get(), SPIN_NS);
	struct vrdma_ctrl *ctrl = &dev->ctrl;
	bool done;

	do {
		if (look(ctrl, cmd))
			return true;
		cpu_relax();
	} while (ktime_before(ktime_get(), end));

	spin_lock_irq(&ctrl->lock);
	ctrl->sleepers++;
	while (!virtqueue_enable_cb(ctrl->vq))
		reap(ctrl);
	spin_unlock_irq(&ctrl->lock);

	/* A device that vanishes does not say so: look from time to time. */
	while (!(done = wait_for_completion_timeout(&cmd->done, HZ))) {
		done = look(ctrl, cmd);
		if (done || virtqueue_is_broken(ctrl->vq) ||
		    vrdma_needs_reset(dev))
			break;
	}

	spin_lock_irq(&ctrl->lock);
	ctrl->sleepers--;
	spin_unlock_irq(&ctrl->lock);
	return done;
}

/*
 * Execute a command. Returns 0 when the device did it and gave the whole
 * response, -EIO when the device is gone, else its error.
 */
int vrdma_ctrl(struct vrdma_dev *dev, enum virtio_rdma_cmd command,
	       const void *req, size_t req_len, void *rsp, size_t rsp_len,
	       enum vrdma_context context)
{
	struct vrdma_cmd *cmd;
	int ret;

	if (WARN_ON_ONCE(req_len >= REQ_ROOM || rsp_len >= RSP_ROOM))
		return -EINVAL;

	cmd = kmalloc(sizeof(*cmd),
		      context == VRDMA_ATOMIC ? GFP_ATOMIC : GFP_KERNEL);
	if (!cmd)
		return -ENOMEM;
	init_completion(&cmd->done);
	cmd->len = 0;
	cmd->req[0] = command;
	if (req_len)
		memcpy(&cmd->req[1], req, req_len);
	cmd->rsp[0] = VIRTIO_RDMA_S_ERR;

	ret = submit(dev, cmd, 1 + req_len, 1 + rsp_len);
	if (ret)
		goto out;
	if (!(context == VRDMA_ATOMIC ? spin(dev, cmd) : sleep(dev, cmd)) &&
	    abandon(&dev->ctrl, cmd)) {
		vrdma_fatal(dev);
		return -EIO;
	}
	ret = status_to_errno(cmd->rsp[0]);
	if (!ret && cmd->len < 1 + rsp_len)
		ret = -EPROTO;
	if (!ret && rsp_len)
		memcpy(rsp, &cmd->rsp[1], rsp_len);
out:
	kfree(cmd);
	return ret;
}
