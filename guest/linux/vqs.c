// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The virtqueues of the device: their number, and the purpose of each.
 */
#include <linux/slab.h>

#include "device.h"

/* The number of virtqueues */
static u32 vrdma_vqs_count(const struct vrdma_dev *dev)
{
	u32 n = VIRTIO_RDMA_NUM_VQS(dev->num_cq, dev->num_vq_qp);

	if (!virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_EVENTS))
		return n;
	return n + 1 + dev->num_vq_srq;
}

static bool vrdma_vq_is_event(const struct vrdma_dev *dev, u32 i)
{
	return i == VIRTIO_RDMA_EVENT_VQ(dev->num_cq, dev->num_vq_qp);
}

/* Work queues need no callback, so they take no interrupt vector. */
static struct vrdma_vq_info vrdma_vq_role(const struct vrdma_dev *dev, u32 i)
{
	u32 first_sq = VIRTIO_RDMA_SQ_VQ(dev->num_cq, 0);

	if (i == VIRTIO_RDMA_CTRL_VQ)
		return (struct vrdma_vq_info){ "control", vrdma_ctrl_callback };
	if (i < VIRTIO_RDMA_CQ_VQ(dev->num_eqs))
		return (struct vrdma_vq_info){ "eq", vrdma_eq_callback };
	if (i < first_sq)
		return (struct vrdma_vq_info){ "cq", dev->direct_cq ?
					       NULL : vrdma_cq_callback };
	if (vrdma_vq_is_event(dev, i))
		return (struct vrdma_vq_info){ "events", vrdma_event_callback };
	if (i > VIRTIO_RDMA_EVENT_VQ(dev->num_cq, dev->num_vq_qp))
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

int vrdma_vqs_init(struct vrdma_dev *dev)
{
	u32 n, i;
	int ret;

	if (!dev->num_cq || dev->num_cq > VRDMA_MAX_QUEUES ||
	    dev->num_vq_qp < VRDMA_QPN_FIRST ||
	    dev->num_vq_qp > VRDMA_MAX_QUEUES ||
	    dev->num_vq_srq > VRDMA_MAX_QUEUES) {
		dev_err(&dev->vdev->dev,
			"%u CQs, %u QPs and %u SRQs: at least 1, %u and 0, at most %u of each\n",
			dev->num_cq, dev->num_vq_qp, dev->num_vq_srq,
			VRDMA_QPN_FIRST, VRDMA_MAX_QUEUES);
		return -EINVAL;
	}
	n = vrdma_vqs_count(dev);

	dev->vqs = kvcalloc(n, sizeof(*dev->vqs), GFP_KERNEL);
	dev->qps = kvcalloc(dev->num_qp, sizeof(*dev->qps), GFP_KERNEL);
	dev->qps_busy = bitmap_zalloc(dev->num_qp, GFP_KERNEL);
	/* Processes that map their CQs do not poll by POLL_CQ. */
	if (!dev->mapped_cq || dev->direct_cq)
		dev->qp_numbers = kvcalloc(dev->num_qp,
					   sizeof(*dev->qp_numbers),
					   GFP_KERNEL);
	ret = vrdma_cqs_alloc(dev);
	if (!dev->vqs || !dev->qps || !dev->qps_busy ||
	    ((!dev->mapped_cq || dev->direct_cq) && !dev->qp_numbers))
		ret = -ENOMEM;
	if (ret)
		goto err;
	for (i = 0; dev->qp_numbers && i < dev->num_qp; i++)
		dev->qp_numbers[i].qp_num = i;
	ret = vrdma_vqs_find(dev, n);
	if (ret)
		goto err;

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
	vrdma_cqs_init(dev);
	if (!dev->cq_deep && !dev->direct_cq)
		dev->attr.max_cqe = min_t(u32, dev->attr.max_cqe,
					  dev->ring_max);
	if (!dev->doorbells)
		dev->attr.max_qp_wr = min_t(u32, dev->attr.max_qp_wr,
					    dev->ring_max);
	dev->attr.max_cq = dev->direct_cq ? dev->num_direct_cq - dev->num_eqs
					  : dev->num_cq;
	dev->attr.max_qp = dev->num_qp - VRDMA_QPN_FIRST;
	ret = vrdma_srqs_init(dev);
	if (!ret)
		return 0;
	dev->vdev->config->del_vqs(dev->vdev);
err:
	kvfree(dev->qp_numbers);
	bitmap_free(dev->qps_busy);
	kvfree(dev->qps);
	vrdma_cqs_free(dev);
	kvfree(dev->vqs);
	return ret;
}

/* After a device reset. */
void vrdma_vqs_free(struct vrdma_dev *dev)
{
	u32 i;

	vrdma_ctrl_free(dev);
	for (i = 1; i < vrdma_vqs_count(dev); i++)
		vrdma_vq_empty(dev->vqs[i]);
	/* The kernel warns if an interrupt is freed with its hint. */
	for (i = 0; i < dev->num_eqs; i++)
		virtqueue_set_affinity(dev->vqs[VIRTIO_RDMA_CQ_VQ(i)], NULL);
	dev->vdev->config->del_vqs(dev->vdev);
	vrdma_bufs_free(dev);
	vrdma_cqs_free(dev);
	vrdma_srqs_free(dev);
	kfree(dev->events.bufs);
	kvfree(dev->qp_numbers);
	bitmap_free(dev->qps_busy);
	kvfree(dev->qps);
	kvfree(dev->vqs);
}

/* Virtqueues are created at their maximum size: resize them to the idle one. */
int vrdma_vqs_reset(struct vrdma_dev *dev)
{
	u32 n = vrdma_vqs_count(dev);
	int ret = 0;
	u32 i;

	if (!dev->ring_reset)
		return 0;
	vrdma_vqs_lock(dev);
	for (i = 1; i < n && !ret; i++) {
		if (!vrdma_vq_is_event(dev, i))
			ret = vrdma_vq_reset(dev, dev->vqs[i]);
	}
	vrdma_vqs_unlock(dev);
	return ret;
}
