// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The death of the device: it needs a reset, or was unplugged. flush.c makes
 * the completions that users wait for.
 */
#include "device.h"

/*
 * The control and event virtqueues are broken from now on, so commands fail at
 * once. Those of CQs and QPs are not: completions that the device has written
 * are still polled.
 */
static void vrdma_fatal_enter(struct vrdma_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = VRDMA_PORT,
		.event = IB_EVENT_DEVICE_FATAL,
	};
	struct virtqueue *vq;

	dev_err(&dev->vdev->dev,
		"the device needs a reset: unbind and bind it\n");
	__virtqueue_break(dev->ctrl.vq);
	/*
	 * Users free memory once their work requests are flushed: the device
	 * must not access it any more, not even for a peer.
	 */
	vrdma_reset(dev);
	virtio_device_for_each_vq(dev->vdev, vq) {
		if (vq == dev->ctrl.vq || vq == dev->events.vq)
			__virtqueue_break(vq);
		else
			__virtqueue_unbreak(vq);
	}
	/* Pairs with the acquires in cq.c. */
	smp_store_release(&dev->dead, true);
	complete_all(&dev->stopped);
	if (READ_ONCE(dev->registered))
		ib_dispatch_event(&event);
}

void vrdma_fatal_work(struct work_struct *work)
{
	struct vrdma_dev *dev = container_of(work, struct vrdma_dev,
					     fatal_work);

	if (!dev->dead)
		vrdma_fatal_enter(dev);
	dev->form->wake_cqs(dev);
}

void vrdma_wake_work(struct work_struct *work)
{
	struct vrdma_dev *dev = container_of(work, struct vrdma_dev, wake_work);

	dev->form->wake_cqs(dev);
}
