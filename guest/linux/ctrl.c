// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control virtqueue. A command is one descriptor chain with a request and
 * room for the response. Callers sleep when the response takes long. A device
 * that does not respond at all is broken.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "ctrl.h"

/* Longest request and response, with the command or status byte. */
#define REQ_ROOM (1 + sizeof(struct virtio_rdma_modify_qp_req))
#define RSP_ROOM (1 + VRDMA_MAX_COUNTERS * sizeof(__le64))

static_assert(sizeof(struct virtio_rdma_query_port_rsp) < RSP_ROOM);

/* Most responses come within this time: poll for as long before sleeping. */
#define POLL_NS (50 * NSEC_PER_USEC)
/*
 * Reading the device status takes longer than most commands, so read it at this
 * interval.
 */
#define STATUS_JIFFIES HZ
/* While the virtqueue is full: between two attempts */
#define FULL_US_MIN 20
#define FULL_US_MAX 200
/* The status of a device that was unplugged */
#define STATUS_GONE 0xff

static uint command_timeout = 60;
module_param(command_timeout, uint, 0644);
MODULE_PARM_DESC(command_timeout,
		 "Seconds after which a device that does not respond is broken");

struct vrdma_cmd {
	struct completion done;
	unsigned int len;		/* of the response */
	bool abandoned;			/* no one waits for the response */
	u8 req[REQ_ROOM] ____cacheline_aligned;
	u8 rsp[RSP_ROOM] ____cacheline_aligned;
};

static int vrdma_status_to_errno(u8 status)
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

/* Complete the commands that have a response. With ctrl->lock held. */
static void vrdma_ctrl_reap(struct vrdma_ctrl *ctrl)
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
		vrdma_ctrl_reap(ctrl);
	} while (ctrl->sleepers && !virtqueue_enable_cb(vq));
	spin_unlock_irqrestore(&ctrl->lock, flags);
}

/* Complete commands; returns whether @cmd has its response. */
static bool vrdma_ctrl_poll(struct vrdma_ctrl *ctrl, struct vrdma_cmd *cmd)
{
	unsigned long flags;
	bool done;

	spin_lock_irqsave(&ctrl->lock, flags);
	vrdma_ctrl_reap(ctrl);
	done = try_wait_for_completion(&cmd->done);
	spin_unlock_irqrestore(&ctrl->lock, flags);
	return done;
}

/*
 * Stop waiting for the response. Returns false if it has come after all, else
 * the command is freed when its buffer comes back.
 */
static bool vrdma_ctrl_abandon(struct vrdma_ctrl *ctrl, struct vrdma_cmd *cmd)
{
	unsigned long flags;
	bool done;

	spin_lock_irqsave(&ctrl->lock, flags);
	vrdma_ctrl_reap(ctrl);
	done = try_wait_for_completion(&cmd->done);
	cmd->abandoned = !done;
	spin_unlock_irqrestore(&ctrl->lock, flags);
	return !done;
}

/* Free the commands that were abandoned. After a device reset. */
void vrdma_ctrl_free(struct vrdma_dev *dev)
{
	void *cmd;

	while ((cmd = virtqueue_detach_unused_buf(dev->ctrl.vq)))
		kfree(cmd);
}

/* Seconds after which a device that does not react is broken; 0: never */
unsigned int vrdma_timeout(void)
{
	return READ_ONCE(command_timeout);
}

/* The device was unplugged. */
bool vrdma_is_gone(struct vrdma_dev *dev)
{
	return dev->vdev->config->get_status(dev->vdev) == STATUS_GONE;
}

/* Transports would wait forever for a device that was unplugged. */
void vrdma_reset(struct vrdma_dev *dev)
{
	if (!vrdma_is_gone(dev))
		virtio_reset_device(dev->vdev);
}

/* The device has found an error in its rings and stopped. */
bool vrdma_needs_reset(struct vrdma_dev *dev)
{
	return dev->vdev->config->get_status(dev->vdev) &
	       VIRTIO_CONFIG_S_NEEDS_RESET;
}

/*
 * Schedule fatal_work: the device seems to be dead, or is dead and got more
 * work requests. May be called in atomic context.
 */
void vrdma_fatal(struct vrdma_dev *dev)
{
	schedule_work(&dev->fatal_work);
}

/*
 * Schedule wake_work: a CQ has failed, and its queue pairs may have requests to
 * flush. May be called in atomic context.
 */
void vrdma_wake(struct vrdma_dev *dev)
{
	schedule_work(&dev->wake_work);
}

/*
 * The device did what no device may do: log @format, reset the device, and do
 * not use it any more. May be called in atomic context.
 */
void vrdma_broken(struct vrdma_dev *dev, const char *format, ...)
{
	struct va_format text = { .fmt = format };
	va_list args;

	if (test_and_set_bit(0, &dev->broken))
		return;
	va_start(args, format);
	text.va = &args;
	dev_err(&dev->vdev->dev, "broken device: %pV\n", &text);
	va_end(args);
	vrdma_fatal(dev);
}

/*
 * Wait until a dead device accesses no memory any more. Callers on workqueues
 * for memory reclaim, such as NVMe's, must not flush fatal_work instead.
 */
void vrdma_wait_stopped(struct vrdma_dev *dev)
{
	if (!completion_done(&dev->stopped))
		vrdma_fatal(dev);
	wait_for_completion(&dev->stopped);
}

/*
 * Does a command wait in vain, as the device has failed or does not respond?
 * @seconds counts the calls, about one for each second of waiting.
 */
static bool vrdma_ctrl_has_failed(struct vrdma_dev *dev, u8 command,
				  uint *seconds)
{
	uint limit = vrdma_timeout();

	if (virtqueue_is_broken(dev->ctrl.vq) || vrdma_needs_reset(dev))
		return true;
	if (++*seconds < limit || !limit)
		return false;
	vrdma_broken(dev, "no response to command %u in %u s", command, limit);
	return true;
}

/* Users cannot handle a failure of a command that ends something. */
static bool vrdma_ctrl_must_succeed(u8 command)
{
	switch (command) {
	case VIRTIO_RDMA_CMD_DESTROY_CQ:
	case VIRTIO_RDMA_CMD_DESTROY_PD:
	case VIRTIO_RDMA_CMD_DEREG_MR:
	case VIRTIO_RDMA_CMD_MODIFY_QP:
	case VIRTIO_RDMA_CMD_DESTROY_QP:
	case VIRTIO_RDMA_CMD_DEL_GID:
	case VIRTIO_RDMA_CMD_DESTROY_SRQ:
	case VIRTIO_RDMA_CMD_DEALLOC_MW:
	case VIRTIO_RDMA_CMD_DETACH_MCAST:
	case VIRTIO_RDMA_CMD_SET_SHADOW:
		return true;
	default:
		return false;
	}
}

static int vrdma_ctrl_submit(struct vrdma_dev *dev, struct vrdma_cmd *cmd,
			     size_t req_len, size_t rsp_len)
{
	struct scatterlist out, in, *sgs[] = { &out, &in };
	unsigned long check = jiffies + STATUS_JIFFIES;
	struct vrdma_ctrl *ctrl = &dev->ctrl;
	unsigned long flags;
	uint seconds = 0;
	bool notify;
	int ret;

	sg_init_one(&out, cmd->req, req_len);
	sg_init_one(&in, cmd->rsp, rsp_len);

	for (;;) {
		spin_lock_irqsave(&ctrl->lock, flags);
		ret = virtqueue_add_sgs(ctrl->vq, sgs, 1, 1, cmd, GFP_ATOMIC);
		if (!ret)
			break;
		vrdma_ctrl_reap(ctrl);
		spin_unlock_irqrestore(&ctrl->lock, flags);
		if (virtqueue_is_broken(ctrl->vq))
			return -EIO;
		if (ret == -ENOMEM && vrdma_ctrl_must_succeed(cmd->req[0]))
			seconds = 0;	/* not the device's fault */
		else if (ret != -ENOSPC)
			return ret;
		usleep_range(FULL_US_MIN, FULL_US_MAX);
		if (time_before(jiffies, check))
			continue;
		if (vrdma_ctrl_has_failed(dev, cmd->req[0], &seconds))
			return -EIO;
		check = jiffies + STATUS_JIFFIES;
	}
	notify = virtqueue_kick_prepare(ctrl->vq);
	spin_unlock_irqrestore(&ctrl->lock, flags);

	/* A virtqueue that cannot be notified is marked broken. */
	if (notify)
		virtqueue_notify(ctrl->vq);
	return 0;
}

/* Wait for the response. Returns false if there will be none. */
static bool vrdma_ctrl_wait(struct vrdma_dev *dev, struct vrdma_cmd *cmd)
{
	ktime_t end = ktime_add_ns(ktime_get(), POLL_NS);
	struct vrdma_ctrl *ctrl = &dev->ctrl;
	uint seconds = 0;
	bool done;

	do {
		if (vrdma_ctrl_poll(ctrl, cmd))
			return true;
		cpu_relax();
	} while (ktime_before(ktime_get(), end));

	spin_lock_irq(&ctrl->lock);
	ctrl->sleepers++;
	while (!virtqueue_enable_cb(ctrl->vq))
		vrdma_ctrl_reap(ctrl);
	spin_unlock_irq(&ctrl->lock);

	/* A device that was unplugged raises no interrupt: poll its status. */
	while (!(done = wait_for_completion_timeout(&cmd->done,
						    STATUS_JIFFIES))) {
		done = vrdma_ctrl_poll(ctrl, cmd);
		if (done || vrdma_ctrl_has_failed(dev, cmd->req[0], &seconds))
			break;
	}

	spin_lock_irq(&ctrl->lock);
	ctrl->sleepers--;
	spin_unlock_irq(&ctrl->lock);
	return done;
}

/*
 * Execute a command. Returns 0 if it succeeded and the response is complete,
 * -EIO if the device is dead, -EPROTO if the response is too short, -ENOMEM if
 * the request cannot be queued, else the error that the device reported. With
 * -EIO the device has been reset: users free what it had access to when they
 * learn that it is dead.
 */
int vrdma_ctrl(struct vrdma_dev *dev, enum virtio_rdma_cmd command,
	       const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	struct vrdma_cmd *cmd;
	int ret;

	if (WARN_ON_ONCE(req_len >= REQ_ROOM || rsp_len >= RSP_ROOM))
		return -EINVAL;

	/* See vrdma_ctrl_must_succeed(). */
	cmd = kmalloc(sizeof(*cmd), GFP_KERNEL | __GFP_NOFAIL);
	init_completion(&cmd->done);
	cmd->len = 0;
	cmd->abandoned = false;
	cmd->req[0] = command;
	if (req_len)
		memcpy(&cmd->req[1], req, req_len);
	cmd->rsp[0] = VIRTIO_RDMA_S_ERR;

	ret = vrdma_ctrl_submit(dev, cmd, 1 + req_len, 1 + rsp_len);
	if (ret)
		goto out;
	if (!vrdma_ctrl_wait(dev, cmd) && vrdma_ctrl_abandon(&dev->ctrl, cmd)) {
		vrdma_wait_stopped(dev);
		return -EIO;
	}
	ret = vrdma_status_to_errno(cmd->rsp[0]);
	if (!ret && cmd->len < 1 + rsp_len)
		ret = -EPROTO;
	if (!ret && rsp_len)
		memcpy(rsp, &cmd->rsp[1], rsp_len);
out:
	kfree(cmd);
	if (ret == -EIO)
		vrdma_wait_stopped(dev);
	return ret;
}

/* The result of a command that ends the use of an object: @ret or 0 */
int vrdma_ctrl_ended(struct vrdma_dev *dev, enum virtio_rdma_cmd command,
		     int ret, bool user)
{
	if (!ret || ret == -EIO)
		return 0;
	if (user)
		return ret;
	vrdma_broken(dev, "command %u, which ends the use of an object, fails: error %d",
		     command, ret);
	vrdma_wait_stopped(dev);
	return 0;
}
