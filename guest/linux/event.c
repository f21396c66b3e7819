// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asynchronous events.
 *
 * Event handlers are called under the lock that guards the tables of objects,
 * and an object leaves its table under this lock: no handler runs after the
 * object is destroyed. Before that the event virtqueue is drained, so an event
 * never goes to a new object that has the number of an old one.
 */
#include <linux/slab.h>

#include "queue.h"

/* Events that find no buffer wait in the device. */
#define EVENT_BUFS 64

static void vrdma_qp_event(struct vrdma_dev *dev, u32 qpn,
			   struct ib_event *event)
{
	struct vrdma_qp *qp = qpn < dev->num_qp ? dev->qps[qpn] : NULL;

	if (!qp || !qp->ibqp.event_handler)
		return;
	/* Users in the kernel expect none while they still create the QP. */
	if (!qp->user && READ_ONCE(qp->state) == IB_QPS_RESET)
		return;
	event->element.qp = &qp->ibqp;
	qp->ibqp.event_handler(event, qp->ibqp.qp_context);
}

static void vrdma_cq_event(struct vrdma_dev *dev, u32 cqn,
			   struct ib_event *event)
{
	struct vrdma_cq *cq = dev->form->find_cq(dev, cqn);

	if (cq && !vrdma_cq_is_user(cq)) {
		/* Pairs with the acquire in cq.c. */
		smp_store_release(&cq->failed, true);
		vrdma_wake(dev);
	}
	if (!cq || !cq->ibcq.event_handler)
		return;
	event->element.cq = &cq->ibcq;
	cq->ibcq.event_handler(event, cq->ibcq.cq_context);
}

static void vrdma_srq_event(struct vrdma_dev *dev, u32 srqn,
			    struct ib_event *event)
{
	struct vrdma_srq *srq = srqn < dev->num_srq ? dev->srqs[srqn] : NULL;

	if (!srq || !srq->ibsrq.event_handler)
		return;
	event->element.srq = &srq->ibsrq;
	srq->ibsrq.event_handler(event, srq->ibsrq.srq_context);
}

/* The numbers of events are the RDMA core's. */
static void vrdma_event_dispatch(struct vrdma_dev *dev, u32 type, u32 id)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = (enum ib_event_type)type,
	};

	switch (type) {
	case VIRTIO_RDMA_EVENT_CQ_ERR:
		vrdma_cq_event(dev, id, &event);
		break;
	case VIRTIO_RDMA_EVENT_QP_FATAL:
	case VIRTIO_RDMA_EVENT_QP_REQ_ERR:
	case VIRTIO_RDMA_EVENT_QP_ACCESS_ERR:
	case VIRTIO_RDMA_EVENT_COMM_EST:
	case VIRTIO_RDMA_EVENT_SQ_DRAINED:
	case VIRTIO_RDMA_EVENT_LAST_WQE_REACHED:
		vrdma_qp_event(dev, id, &event);
		break;
	case VIRTIO_RDMA_EVENT_SRQ_ERR:
	case VIRTIO_RDMA_EVENT_SRQ_LIMIT_REACHED:
		vrdma_srq_event(dev, id, &event);
		break;
	case VIRTIO_RDMA_EVENT_PORT_ACTIVE:
	case VIRTIO_RDMA_EVENT_PORT_ERR:
		/* The port's state depends on the NIC, too. */
		if (dev->registered)
			schedule_work(&dev->port_work);
		break;
	case VIRTIO_RDMA_EVENT_GID_CHANGE:
		/* The RDMA core forgets a GID that the device refuses. */
		WRITE_ONCE(dev->rescan, true);
		if (dev->registered)
			schedule_work(&dev->port_work);
		break;
	default:
		break;
	}
}

static void vrdma_event_add_buf(struct vrdma_events *events,
				struct virtio_rdma_event *buf)
{
	struct scatterlist sg;

	sg_init_one(&sg, buf, sizeof(*buf));
	virtqueue_add_inbuf(events->vq, &sg, 1, buf, GFP_ATOMIC);
}

/* Dispatch all events in the virtqueue. With the lock held. */
static void vrdma_event_drain(struct vrdma_dev *dev)
{
	struct vrdma_events *events = &dev->events;
	struct virtio_rdma_event *buf;
	bool any = false;
	unsigned int len;

	if (!events->bufs)
		return;
	while ((buf = virtqueue_get_buf(events->vq, &len))) {
		if (len >= sizeof(*buf))
			vrdma_event_dispatch(dev, le32_to_cpu(buf->type),
					     le32_to_cpu(buf->id));
		vrdma_event_add_buf(events, buf);
		any = true;
	}
	if (any)
		virtqueue_kick(events->vq);
}

void vrdma_event_callback(struct virtqueue *vq)
{
	struct vrdma_dev *dev = vq->vdev->priv;
	unsigned long flags;

	spin_lock_irqsave(&dev->events.lock, flags);
	vrdma_event_drain(dev);
	spin_unlock_irqrestore(&dev->events.lock, flags);
}

/*
 * An object that the device has destroyed leaves its table between
 * vrdma_events_lock() and vrdma_events_unlock().
 */
void vrdma_events_lock(struct vrdma_dev *dev)
	__acquires(&dev->events.lock)
{
	spin_lock_irq(&dev->events.lock);
	vrdma_event_drain(dev);
}

void vrdma_events_unlock(struct vrdma_dev *dev)
	__releases(&dev->events.lock)
{
	spin_unlock_irq(&dev->events.lock);
}

/* Add all buffers. The device must be ready. */
int vrdma_events_start(struct vrdma_dev *dev)
{
	struct vrdma_events *events = &dev->events;
	u32 i, n;

	n = min(virtqueue_get_vring_size(events->vq), EVENT_BUFS);
	events->bufs = kcalloc(n, sizeof(*events->bufs), GFP_KERNEL);
	if (!events->bufs)
		return -ENOMEM;
	spin_lock_irq(&events->lock);
	for (i = 0; i < n; i++)
		vrdma_event_add_buf(events, &events->bufs[i]);
	virtqueue_kick(events->vq);
	spin_unlock_irq(&events->lock);
	return 0;
}
