// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asynchronous events.
 *
 * Handlers are called with the lock held under which objects leave their
 * tables, so none runs once its object is destroyed. A number serves again
 * only after the events about its last owner were taken from the virtqueue.
 */
#include <linux/slab.h>

#include "vrdma.h"

/* The device keeps events that find no buffer. */
#define EVENT_BUFS 64

static void qp_event(struct vrdma_dev *dev, u32 qpn, struct ib_event *event)
{
	struct vrdma_qp *qp = qpn < dev->num_qp ? dev->qps[qpn] : NULL;

	if (!qp || !qp->ibqp.event_handler)
		return;
	event->element.qp = &qp->ibqp;
	qp->ibqp.event_handler(event, qp->ibqp.qp_context);
}

static void cq_event(struct vrdma_dev *dev, u32 cqn, struct ib_event *event)
{
	struct vrdma_cq *cq = cqn < dev->num_cq ? dev->cqs[cqn].cq : NULL;

	if (!cq || !cq->ibcq.event_handler)
		return;
	event->element.cq = &cq->ibcq;
	cq->ibcq.event_handler(event, cq->ibcq.cq_context);
}

/* The numbers of events are those of the RDMA core. */
static void dispatch(struct vrdma_dev *dev, u32 type, u32 id)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = (enum ib_event_type)type,
	};

	switch (type) {
	case VIRTIO_RDMA_EVENT_CQ_ERR:
		cq_event(dev, id, &event);
		break;
	case VIRTIO_RDMA_EVENT_QP_FATAL:
	case VIRTIO_RDMA_EVENT_QP_REQ_ERR:
	case VIRTIO_RDMA_EVENT_QP_ACCESS_ERR:
	case VIRTIO_RDMA_EVENT_COMM_EST:
	case VIRTIO_RDMA_EVENT_SQ_DRAINED:
	case VIRTIO_RDMA_EVENT_LAST_WQE_REACHED:
		qp_event(dev, id, &event);
		break;
	case VIRTIO_RDMA_EVENT_SRQ_ERR:
	case VIRTIO_RDMA_EVENT_SRQ_LIMIT_REACHED:
		vrdma_srq_event(dev, id, &event);
		break;
	case VIRTIO_RDMA_EVENT_PORT_ACTIVE:
	case VIRTIO_RDMA_EVENT_PORT_ERR:
		/* The state of the NIC counts as well. */
		if (dev->registered)
			schedule_work(&dev->port_work);
		break;
	default:
		break;
	}
}

static void add_buf(struct vrdma_events *events, struct virtio_rdma_event *buf)
{
	struct scatterlist sg;

	sg_init_one(&sg, buf, sizeof(*buf));
	virtqueue_add_inbuf(events->vq, &sg, 1, buf, GFP_ATOMIC);
}

/* Dispatch what is there. With the lock held. */
static void drain(struct vrdma_dev *dev)
{
	struct vrdma_events *events = &dev->events;
	struct virtio_rdma_event *buf;
	bool any = false;
	unsigned int len;

	if (!events->bufs)
		return;
	while ((buf = virtqueue_get_buf(events->vq, &len))) {
		if (len >= sizeof(*buf))
			dispatch(dev, le32_to_cpu(buf->type),
				 le32_to_cpu(buf->id));
		add_buf(events, buf);
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
	drain(dev);
	spin_unlock_irqrestore(&dev->events.lock, flags);
}

/*
 * Whoever takes an object out of its table, once the device has destroyed it,
 * does so between these two.
 */
void vrdma_events_lock(struct vrdma_dev *dev)
	__acquires(&dev->events.lock)
{
	spin_lock_irq(&dev->events.lock);
	drain(dev);
}

void vrdma_events_unlock(struct vrdma_dev *dev)
	__releases(&dev->events.lock)
{
	spin_unlock_irq(&dev->events.lock);
}

/* Give the device buffers, when it is ready. */
int vrdma_events_start(struct vrdma_dev *dev)
{
	struct vrdma_events *events = &dev->events;
	u32 i, n;

	if (!events->vq)
		return 0;
	n = min(virtqueue_get_vring_size(events->vq), EVENT_BUFS);
	events->bufs = kcalloc(n, sizeof(*events->bufs), GFP_KERNEL);
	if (!events->bufs)
		return -ENOMEM;
	spin_lock_irq(&events->lock);
	for (i = 0; i < n; i++)
		add_buf(events, &events->bufs[i]);
	virtqueue_kick(events->vq);
	spin_unlock_irq(&events->lock);
	return 0;
}
