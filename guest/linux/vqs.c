// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The virtqueues of the device: their number, and the purpose of each.
 */
#include <linux/slab.h>

#include "device.h"

static u32 vrdma_vqs_count(const struct vrdma_dev *dev)
{
	return VIRTIO_RDMA_SRQ_VQ(dev->num_vq_cq, dev->num_vq_qp,
				  dev->num_vq_srq);
}

static bool vrdma_vq_is_event(const struct vrdma_dev *dev, u32 i)
{
	return i == VIRTIO_RDMA_EVENT_VQ(dev->num_vq_cq, dev->num_vq_qp);
}

/* Work queues need no callback, so they take no interrupt vector. */
static struct vrdma_vq_info vrdma_vq_role(const struct vrdma_dev *dev, u32 i)
{
	u32 first_sq = VIRTIO_RDMA_SQ_VQ(dev->num_vq_cq, 0);
	u32 first_cq = VIRTIO_RDMA_CQ_VQ(0);

	if (i == VIRTIO_RDMA_CTRL_VQ)
		return (struct vrdma_vq_info){ "control", vrdma_ctrl_callback };
	if (i < first_sq)
		return (struct vrdma_vq_info){
			"cq", dev->form->cq_callback(dev, i - first_cq) };
	if (vrdma_vq_is_event(dev, i))
		return (struct vrdma_vq_info){ "events", vrdma_event_callback };
	if (i > VIRTIO_RDMA_EVENT_VQ(dev->num_vq_cq, dev->num_vq_qp))
		return (struct vrdma_vq_info){ "srq", NULL };
	return (struct vrdma_vq_info){ (i - first_sq) % 2 ? "rq" : "sq", NULL };
}

static int vrdma_vqs_find(struct vrdma_dev *dev, u32 n)
{
	struct vrdma_vq_info *info;
	int ret;
	u32 i;

	info = kvcalloc(n, sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		info[i] = vrdma_vq_role(dev, i);
	ret = vrdma_find_vqs(dev->vdev, n, dev->vqs, info);
	kvfree(info);
	return ret;
}

static void vrdma_vqs_free_tables(struct vrdma_dev *dev)
{
	dev->form->free(dev);
	kvfree(dev->srqs);
	kvfree(dev->qps);
	kvfree(dev->vqs);
}

static int vrdma_vqs_alloc_tables(struct vrdma_dev *dev, u32 n)
{
	dev->vqs = kvcalloc(n, sizeof(*dev->vqs), GFP_KERNEL);
	dev->qps = kvcalloc(dev->num_qp, sizeof(*dev->qps), GFP_KERNEL);
	dev->srqs = kvcalloc(max(dev->num_srq, 1U), sizeof(*dev->srqs),
			     GFP_KERNEL);
	if (!dev->vqs || !dev->qps || !dev->srqs)
		return -ENOMEM;
	return dev->form->alloc(dev);
}

int vrdma_vqs_init(struct vrdma_dev *dev)
{
	u32 n, i;
	int ret;

	if (!dev->num_vq_cq || dev->num_vq_cq > VRDMA_MAX_QUEUES ||
	    dev->num_vq_qp < VRDMA_QPN_FIRST ||
	    dev->num_vq_qp > VRDMA_MAX_QUEUES ||
	    dev->num_vq_srq > VRDMA_MAX_QUEUES) {
		dev_err(&dev->vdev->dev,
			"virtqueues for %u CQs, %u QPs and %u SRQs: expected at least 1, %u and 0, at most %u of each\n",
			dev->num_vq_cq, dev->num_vq_qp, dev->num_vq_srq,
			VRDMA_QPN_FIRST, VRDMA_MAX_QUEUES);
		return -EINVAL;
	}
	n = vrdma_vqs_count(dev);
	ret = vrdma_vqs_alloc_tables(dev, n);
	if (!ret)
		ret = vrdma_vqs_find(dev, n);
	if (ret) {
		vrdma_vqs_free_tables(dev);
		return ret;
	}
	dev->ctrl.vq = dev->vqs[VIRTIO_RDMA_CTRL_VQ];
	dev->ring_max = virtqueue_get_vring_size(dev->vqs[1]);
	for (i = 1; i < n; i++) {
		if (vrdma_vq_is_event(dev, i))
			dev->events.vq = dev->vqs[i];
		else
			dev->ring_max =
				min(dev->ring_max,
				    virtqueue_get_vring_size(dev->vqs[i]));
	}
	dev->form->init(dev);
	return 0;
}

/* After a device reset. */
void vrdma_vqs_free(struct vrdma_dev *dev)
{
	u32 i;

	vrdma_ctrl_free(dev);
	for (i = 1; i < vrdma_vqs_count(dev); i++) {
		vrdma_vq_empty(dev->vqs[i]);
		/* The kernel warns if an interrupt is freed with its hint. */
		virtqueue_set_affinity(dev->vqs[i], NULL);
	}
	dev->vdev->config->del_vqs(dev->vdev);
	kfree(dev->events.bufs);
	vrdma_vqs_free_tables(dev);
}

/* Virtqueues are created at their maximum size: give them the idle one. */
void vrdma_vqs_reset(struct vrdma_dev *dev)
{
	u32 i;

	vrdma_objects_lock(dev);
	for (i = 1; i < vrdma_vqs_count(dev); i++) {
		if (!vrdma_vq_is_event(dev, i))
			vrdma_vq_reset(dev, dev->vqs[i]);
	}
	vrdma_objects_unlock(dev);
}
