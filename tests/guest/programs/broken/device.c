// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device as the virtio core sees it.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "broken.h"

static ulong faults;
module_param(faults, ulong, 0644);
MODULE_PARM_DESC(faults, "What the device does wrong: bits of broken_fault");

static uint after;
module_param(after, uint, 0444);
MODULE_PARM_DESC(after, "Commands and work requests that it executes before");

static uint one_in = 1;
module_param(one_in, uint, 0444);
MODULE_PARM_DESC(one_in, "It does wrong in one of this many cases");

static ulong seed = 1;
module_param(seed, ulong, 0444);

static bool direct;
module_param(direct, bool, 0444);
MODULE_PARM_DESC(direct, "Queues are direct");

/* The test's guests have addresses of 40 bits, and 512 MiB of memory. */
#define DOORBELLS_PHYS BIT_ULL(39)
#define DOORBELLS 4

static struct broken_device *the_device;

u32 broken_random(struct broken_device *dev)
{
	/* A limit of some field, in many cases */
	switch (prandom_u32_state(&dev->rnd) % 4) {
	case 0:
		return prandom_u32_state(&dev->rnd) % 64;
	case 1:
		return BIT(prandom_u32_state(&dev->rnd) % 32) -
		       prandom_u32_state(&dev->rnd) % 2;
	default:
		return prandom_u32_state(&dev->rnd);
	}
}

bool broken_does(struct broken_device *dev, enum broken_fault fault)
{
	if (!(READ_ONCE(faults) & BIT(fault)))
		return false;
	if (fault >= BROKEN_NO_VQS)
		return true;
	/* A driver's thread may ask while the device's counts. */
	if (READ_ONCE(dev->done) < after)
		return false;
	/* These faults are states: they stay. */
	if (fault == BROKEN_GONE || fault == BROKEN_NEEDS_RESET ||
	    fault == BROKEN_SILENT || fault == BROKEN_ENDLESS)
		return true;
	return prandom_u32_state(&dev->rnd) % max(one_in, 1U) == 0;
}

static void broken_fill_config(struct virtio_rdma_config *config)
{
	config->phys_port_cnt = cpu_to_le32(1);
	config->max_mr_size = cpu_to_le64(BIT_ULL(40));
	config->page_size_cap = cpu_to_le64(PAGE_SIZE);
	config->max_qp = cpu_to_le32(BROKEN_QPS);
	config->max_qp_wr = cpu_to_le32(BROKEN_RING);
	config->device_cap_flags =
		cpu_to_le64(VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS);
	config->max_send_sge = cpu_to_le32(8);
	config->max_recv_sge = cpu_to_le32(8);
	config->max_sge_rd = cpu_to_le32(8);
	config->max_cq = cpu_to_le32(BROKEN_CQS);
	config->max_cqe = cpu_to_le32(BROKEN_RING);
	config->max_cqe_deep = cpu_to_le32(BROKEN_DIRECT_CQE);
	config->max_cq_direct = cpu_to_le32(BROKEN_ALL_CQS);
	config->max_qp_direct = cpu_to_le32(BROKEN_QPS);
	config->max_qp_wr_direct = cpu_to_le32(BROKEN_DIRECT_WR);
	config->max_mr = cpu_to_le32(1024);
	config->max_pd = cpu_to_le32(1024);
	config->max_qp_rd_atom = cpu_to_le32(16);
	config->max_res_rd_atom = cpu_to_le32(16);
	config->max_qp_init_rd_atom = cpu_to_le32(16);
	config->max_ah = cpu_to_le32(1024);
	config->max_fast_reg_page_list_len = cpu_to_le32(256);
	config->max_reg_pages = cpu_to_le32(256);
	config->max_pkeys = cpu_to_le16(1);
	config->max_inline_data = cpu_to_le32(64);
	config->max_srq = cpu_to_le32(BROKEN_SRQS);
	config->max_srq_wr = cpu_to_le32(1024);
	config->max_srq_sge = cpu_to_le32(8);
	config->num_counters = cpu_to_le32(VIRTIO_RDMA_NUM_COUNTERS);
	config->mr_page_sizes = cpu_to_le64(PAGE_SIZE);
}

static void broken_get(struct virtio_device *vdev, unsigned int offset,
		       void *buf, unsigned int len)
{
	struct broken_device *dev = to_broken(vdev);
	struct virtio_rdma_config config = {};
	u8 *bytes = (u8 *)&config;
	u32 i;

	broken_fill_config(&config);
	for (i = 0; i < sizeof(config); i++) {
		if (broken_does(dev, BROKEN_CONFIG_0))
			bytes[i] = 0;
		if (broken_does(dev, BROKEN_CONFIG_MAX) ||
		    broken_does(dev, BROKEN_GONE))
			bytes[i] = 0xff;
	}
	if (broken_does(dev, BROKEN_CONFIG_ANY))
		prandom_bytes_state(&dev->rnd, bytes, sizeof(config));
	memset(buf, 0xff, len);
	if (offset + len <= sizeof(config))
		memcpy(buf, bytes + offset, len);
}

static u8 broken_get_status(struct virtio_device *vdev)
{
	struct broken_device *dev = to_broken(vdev);

	/* After a removal the virtio core would warn about any driver. */
	if (broken_does(dev, BROKEN_GONE))
		return dev->num_vqs ? 0xff : 0;
	if (dev->status && broken_does(dev, BROKEN_NEEDS_RESET))
		return dev->status | VIRTIO_CONFIG_S_NEEDS_RESET;
	return dev->status;
}

static void broken_set_status(struct virtio_device *vdev, u8 status)
{
	to_broken(vdev)->status = status;
}

static void broken_reset(struct virtio_device *vdev)
{
	struct broken_device *dev = to_broken(vdev);
	u32 i;

	/* PCI's transport would wait forever. */
	WARN_ON(broken_get_status(vdev) == 0xff);
	mutex_lock(&dev->lock);
	dev->status = 0;
	for (i = 0; i < dev->num_vqs; i++)
		dev->vqs[i].enabled = false;
	memset(dev->qps, 0, sizeof(dev->qps));
	memset(dev->cqs, 0, sizeof(dev->cqs));
	memset(dev->srqs, 0, sizeof(dev->srqs));
	mutex_unlock(&dev->lock);
}

static bool broken_notify(struct virtqueue *vq)
{
	struct broken_device *dev = to_broken(vq->vdev);
	u32 cqn = vq->index - VIRTIO_RDMA_CQ_VQ(0);

	if (broken_is_endless(dev, cqn))
		broken_fill(dev, cqn);
	atomic_set(&dev->kicked, 1);
	wake_up(&dev->wait);
	return true;
}

static void broken_del_vqs(struct virtio_device *vdev)
{
	struct broken_device *dev = to_broken(vdev);
	u32 i;

	mutex_lock(&dev->lock);
	for (i = 0; i < dev->num_vqs; i++) {
		vring_del_virtqueue(dev->vqs[i].vq);
		memset(&dev->vqs[i], 0, sizeof(dev->vqs[i]));
	}
	dev->num_vqs = 0;
	mutex_unlock(&dev->lock);
}

static int broken_make_vqs(struct broken_device *dev, unsigned int n,
			   struct virtqueue *vqs[])
{
	if (n > BROKEN_VQS || broken_does(dev, BROKEN_NO_VQS))
		return -ENOENT;
	dev->num_vqs = 0;
	return 0;
}

static int broken_make_vq(struct broken_device *dev, u32 i,
			  struct virtqueue *vqs[], const char *name,
			  vq_callback_t *callback)
{
	vqs[i] = vring_create_virtqueue(i, BROKEN_RING, PAGE_SIZE, &dev->vdev,
					true, true, false, broken_notify,
					callback, name);
	if (!vqs[i])
		return -ENOMEM;
	vqs[i]->num_max = BROKEN_RING;
	dev->vqs[i] = (struct broken_vq){ .vq = vqs[i], .enabled = true };
	dev->num_vqs = i + 1;
	return 0;
}

#ifdef HAVE_VIRTQUEUE_INFO
static int broken_find_vqs(struct virtio_device *vdev, unsigned int n,
			   struct virtqueue *vqs[],
			   struct virtqueue_info info[],
			   struct irq_affinity *affinity)
#define NAME(i) info[i].name
#define CALLBACK(i) info[i].callback
#else
static int broken_find_vqs(struct virtio_device *vdev, unsigned int n,
			   struct virtqueue *vqs[], vq_callback_t *callbacks[],
			   const char * const names[], const bool *ctx,
			   struct irq_affinity *affinity)
#define NAME(i) names[i]
#define CALLBACK(i) callbacks[i]
#endif
{
	struct broken_device *dev = to_broken(vdev);
	int ret = broken_make_vqs(dev, n, vqs);
	u32 i;

	for (i = 0; i < n && !ret; i++)
		ret = broken_make_vq(dev, i, vqs, NAME(i), CALLBACK(i));
	if (ret)
		broken_del_vqs(vdev);
	return ret;
}

static int broken_disable_vq(struct virtqueue *vq)
{
	struct broken_device *dev = to_broken(vq->vdev);
	struct broken_vq *bvq = &dev->vqs[vq->index];
	int ret = 0;

	/* PCI's transport would wait forever. */
	WARN_ON(broken_get_status(vq->vdev) == 0xff);
	mutex_lock(&dev->lock);
	if (broken_does(dev, BROKEN_NO_VQ_RESET))
		ret = -EIO;
	else
		bvq->enabled = false;
	mutex_unlock(&dev->lock);
	return ret;
}

static int broken_enable_vq(struct virtqueue *vq)
{
	struct broken_device *dev = to_broken(vq->vdev);
	struct broken_vq *bvq = &dev->vqs[vq->index];

	mutex_lock(&dev->lock);
	bvq->avail = 0;
	bvq->used = 0;
	bvq->enabled = true;
	mutex_unlock(&dev->lock);
	return 0;
}

static u64 broken_get_features(struct virtio_device *vdev)
{
	return BIT_ULL(VIRTIO_F_VERSION_1) | BIT_ULL(VIRTIO_F_RING_RESET) |
	       BIT_ULL(VIRTIO_RDMA_F_VERSION_1) |
	       (direct ? BIT_ULL(VIRTIO_RDMA_F_DIRECT) : 0);
}

/*
 * Pages of doorbells at an address above all memory: no one reads a write to
 * them, and the device polls its queues anyway.
 */
static bool broken_get_shm(struct virtio_device *vdev,
			   struct virtio_shm_region *region, u8 id)
{
	if (id != VIRTIO_RDMA_SHM_DOORBELLS)
		return false;
	region->addr = DOORBELLS_PHYS;
	region->len = DOORBELLS * VIRTIO_RDMA_DOORBELL_SIZE;
	return true;
}

static int broken_finalize_features(struct virtio_device *vdev)
{
	vring_transport_features(vdev);
	/*
	 * vring_transport_features() clears this bit, whose rule is in PCI's
	 * transport.
	 */
	__virtio_set_bit(vdev, VIRTIO_F_RING_RESET);
	return 0;
}

static const char *broken_bus_name(struct virtio_device *vdev)
{
	return "broken";
}

static const struct virtio_config_ops broken_ops = {
	.get = broken_get,
	.get_status = broken_get_status,
	.set_status = broken_set_status,
	.reset = broken_reset,
	.find_vqs = broken_find_vqs,
	.del_vqs = broken_del_vqs,
	.get_features = broken_get_features,
	.get_shm_region = broken_get_shm,
	.finalize_features = broken_finalize_features,
	.bus_name = broken_bus_name,
	.disable_vq_and_reset = broken_disable_vq,
	.enable_vq_after_reset = broken_enable_vq,
};

static int broken_thread(void *data)
{
	struct broken_device *dev = data;

	while (!kthread_should_stop()) {
		wait_event_interruptible_timeout(dev->wait,
						 atomic_xchg(&dev->kicked, 0) ||
						 kthread_should_stop(), HZ / 50);
		mutex_lock(&dev->lock);
		if (dev->status & VIRTIO_CONFIG_S_DRIVER_OK &&
		    !broken_does(dev, BROKEN_GONE))
			broken_run(dev);
		mutex_unlock(&dev->lock);
	}
	return 0;
}

static void broken_release(struct device *device)
{
	kfree(to_broken(dev_to_virtio(device)));
}

static int __init broken_init(void)
{
	struct broken_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int ret;

	if (!dev)
		return -ENOMEM;
	mutex_init(&dev->lock);
	init_waitqueue_head(&dev->wait);
	spin_lock_init(&dev->endless);
	prandom_seed_state(&dev->rnd, seed);
	dev->parent = platform_device_register_simple("broken_device", -1,
						      NULL, 0);
	if (IS_ERR(dev->parent)) {
		ret = PTR_ERR(dev->parent);
		kfree(dev);
		return ret;
	}
	dma_coerce_mask_and_coherent(&dev->parent->dev, DMA_BIT_MASK(64));
	dev->vdev.id.device = VIRTIO_ID_RDMA;
	dev->vdev.config = &broken_ops;
	dev->vdev.dev.parent = &dev->parent->dev;
	dev->vdev.dev.release = broken_release;
	the_device = dev;
	ret = broken_user_init();
	if (ret)
		goto err_parent;
	dev->thread = kthread_run(broken_thread, dev, "broken_device");
	if (IS_ERR(dev->thread)) {
		ret = PTR_ERR(dev->thread);
		goto err_user;
	}
	ret = register_virtio_device(&dev->vdev);
	if (!ret)
		return 0;
	kthread_stop(dev->thread);
	platform_device_unregister(dev->parent);
	broken_user_exit();
	put_device(&dev->vdev.dev);
	return ret;

err_user:
	broken_user_exit();
err_parent:
	platform_device_unregister(dev->parent);
	kfree(dev);
	return ret;
}

static void __exit broken_exit(void)
{
	struct broken_device *dev = the_device;
	struct platform_device *parent = dev->parent;

	/* The device responds until the driver has released it. */
	device_release_driver(&dev->vdev.dev);
	kthread_stop(dev->thread);
	pr_info("broken_device: %u commands executed\n", dev->commands);
	unregister_virtio_device(&dev->vdev);
	platform_device_unregister(parent);
	broken_user_exit();
}

module_init(broken_init);
module_exit(broken_exit);

MODULE_DESCRIPTION("A virtio RDMA adapter that does wrong");
MODULE_LICENSE("GPL");
