// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event queues, which name the direct CQs that have completions.
 *
 * There is one for each CPU, up to VRDMA_MAX_EQS, with a virtqueue and an
 * interrupt of its own. CQs share it. Its buffers come back with the numbers of
 * CQs. Handlers are called under the lock of the event queue. A CQ leaves it
 * under this lock, after its events were handled. So no handler of a CQ that
 * was destroyed runs, and the next CQ with its number gets none of its events.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "queue.h"

/* Events that find no buffer wait in the device. */
#define EQ_BUFS 128
#define EQ_BUF_SHIFT ilog2(sizeof(struct virtio_rdma_cqn))

static_assert(EQ_BUFS << EQ_BUF_SHIFT <= VRDMA_PAGE_SIZE);

int vrdma_eqs_alloc(struct vrdma_dev *dev)
{
	u32 i;

	dev->eqs = kcalloc(dev->num_eqs, sizeof(*dev->eqs), GFP_KERNEL);
	if (!dev->eqs)
		return -ENOMEM;
	for (i = 0; i < dev->num_eqs; i++) {
		spin_lock_init(&dev->eqs[i].lock);
		xa_init_flags(&dev->eqs[i].cqs, XA_FLAGS_LOCK_IRQ);
	}
	return 0;
}

/* The virtqueues exist: event queue i has that of CQ i. */
void vrdma_eqs_init(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->num_eqs; i++)
		dev->eqs[i].ring.vq = dev->vqs[VIRTIO_RDMA_CQ_VQ(i)];
}

/* After a device reset. */
void vrdma_eqs_free(struct vrdma_dev *dev)
{
	u32 i;

	for (i = 0; dev->eqs && i < dev->num_eqs; i++) {
		vrdma_buf_put(dev->eqs[i].buf);
		xa_destroy(&dev->eqs[i].cqs);
	}
	kfree(dev->eqs);
}

/*
 * Consume an event of @cq, if a request for it is due. True: call the handler.
 * A request has one event at most, and requests are counted where the device
 * reads them. A flag is not enough: when the event is handled, there may be
 * another request, whose event is to come.
 */
static bool vrdma_eq_take_event(struct vrdma_cq *cq)
{
	u32 requests;
	bool due;

	spin_lock(&cq->ring->lock);
	requests = le32_to_cpu(READ_ONCE(vrdma_cq_page(cq)->arm)) >>
		   VIRTIO_RDMA_ARM_SHIFT;
	due = (requests - cq->events) << VIRTIO_RDMA_ARM_SHIFT;
	if (due) {
		cq->events++;
		cq->armed = 0;
	}
	spin_unlock(&cq->ring->lock);
	return due;
}

/* Add all buffers that the device does not have. With the lock held. */
static void vrdma_eq_fill(struct vrdma_eq *eq)
{
	struct vrdma_ring *ring = &eq->ring;
	u32 head = ring->head;

	while (ring->head - ring->tail < vrdma_ring_slots(ring) &&
	       !vrdma_ring_add(ring, 0, sizeof(struct virtio_rdma_cqn), true))
		;
	if (ring->head != head)
		virtqueue_kick(ring->vq);
}

/*
 * Handle the events that have come. Buffers go back when all are handled, so
 * that this ends whatever the device does. With the lock held.
 */
static void vrdma_eq_drain(struct vrdma_eq *eq)
{
	struct vrdma_ring *ring = &eq->ring;
	const struct virtio_rdma_cqn *event;
	struct vrdma_cq *cq;
	unsigned int len;

	if (!ring->buf)
		return;
	while (vrdma_ring_take(ring, &len)) {
		if (len != sizeof(*event)) {
			vrdma_broken(ring->vq->vdev->priv,
				     "virtqueue %u: expected an event of %zu bytes, got %u",
				     ring->vq->index, sizeof(*event), len);
			return;
		}
		event = vrdma_ring_slot(ring, ring->tail - 1);
		cq = xa_load(&eq->cqs, le32_to_cpu(READ_ONCE(event->cqn)));
		if (cq && vrdma_eq_take_event(cq))
			vrdma_cq_handle(cq);
	}
	vrdma_eq_fill(eq);
}

void vrdma_eq_callback(struct virtqueue *vq)
{
	struct vrdma_dev *dev = vq->vdev->priv;
	struct vrdma_eq *eq = &dev->eqs[vq->index - VIRTIO_RDMA_CQ_VQ(0)];
	unsigned long flags;

	spin_lock_irqsave(&eq->lock, flags);
	vrdma_eq_drain(eq);
	spin_unlock_irqrestore(&eq->lock, flags);
}

/* After a reset the device takes the numbers from 0 on. */
static int vrdma_eq_create(struct vrdma_dev *dev, u32 eqn)
{
	u32 depth = min_t(u32, EQ_BUFS, dev->ring_max);
	struct virtio_rdma_create_cq_req req = {
		.cqe = cpu_to_le32(depth),
		.flags = cpu_to_le32(VIRTIO_RDMA_CQ_EVENTS),
		.eqn = cpu_to_le32(VIRTIO_RDMA_EQN_NONE),
	};
	struct vrdma_eq *eq = &dev->eqs[eqn];
	struct virtqueue *vq = eq->ring.vq;
	struct virtio_rdma_cqn rsp;
	int ret;

	ret = vrdma_vq_prepare(dev, vq, depth);
	if (ret)
		return ret;
	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_CREATE_CQ, &req, &rsp);
	if (ret)
		return ret;
	if (le32_to_cpu(rsp.cqn) != eqn)
		return -EPROTO;
	eq->buf = vrdma_buf_alloc(1);
	if (!eq->buf)
		return -ENOMEM;
	vrdma_vq_set_vector(vq, eqn);
	spin_lock_irq(&eq->lock);
	vrdma_ring_init(&eq->ring, eq->buf, 0, depth, EQ_BUF_SHIFT);
	vrdma_eq_fill(eq);
	spin_unlock_irq(&eq->lock);
	return 0;
}

/* Create the event queues. On failure the device is to be reset. */
int vrdma_eqs_start(struct vrdma_dev *dev)
{
	int ret = 0;
	u32 i;

	vrdma_objects_lock(dev);
	for (i = 0; i < dev->num_eqs && !ret; i++)
		ret = vrdma_eq_create(dev, i);
	vrdma_objects_unlock(dev);
	if (ret)
		dev_err(&dev->vdev->dev,
			"cannot create event queues: error %d\n", ret);
	return ret;
}

/*
 * The direct CQ with this number, or NULL. The caller holds either objects_lock
 * or the lock of events, so that the CQ is not destroyed meanwhile.
 */
struct vrdma_cq *vrdma_eqs_find_cq(struct vrdma_dev *dev, u32 cqn)
{
	struct vrdma_cq *cq = NULL;
	u32 i;

	for (i = 0; i < dev->num_eqs && !cq; i++)
		cq = xa_load(&dev->eqs[i].cqs, cqn);
	return cq;
}

/* From now on the handler of the CQ may be called. */
int vrdma_eq_add(struct vrdma_eq *eq, struct vrdma_cq *cq)
{
	lockdep_assert_held(&vrdma_cq_dev(cq)->objects_lock);

	return xa_insert_irq(&eq->cqs, cq->cqn, cq, GFP_KERNEL);
}

/*
 * The device has destroyed the CQ with this number, so its last events are in
 * the virtqueue. With objects_lock and the lock of events held.
 */
void vrdma_eq_remove(struct vrdma_eq *eq, u32 cqn)
{
	spin_lock(&eq->lock);
	vrdma_eq_drain(eq);
	xa_erase(&eq->cqs, cqn);
	spin_unlock(&eq->lock);
}

/* The device, or a CQ, is dead. */
void vrdma_eqs_wake(struct vrdma_dev *dev)
{
	struct vrdma_cq *cq;
	unsigned long cqn;
	u32 i;

	for (i = 0; i < dev->num_eqs; i++) {
		spin_lock_irq(&dev->eqs[i].lock);
		xa_for_each(&dev->eqs[i].cqs, cqn, cq)
			vrdma_cq_wake(cq);
		spin_unlock_irq(&dev->eqs[i].lock);
	}
}
