// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The virtio driver, and the registration with the RDMA core.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/swiotlb.h>
#include <linux/virtio_ids.h>
#include <net/addrconf.h>
#include <rdma/ib_user_verbs.h>

#include "device.h"

/*
 * The RDMA core joins adjacent pages up to this size, and larger pages make
 * smaller page tables.
 */
#define VRDMA_MAX_SEGMENT	SZ_2G

static const struct ib_device_ops vrdma_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = VIRTIO_RDMA_UABI_VERSION,

	.add_gid = vrdma_add_gid,
	.alloc_mr = vrdma_alloc_mr,
	.alloc_pd = vrdma_alloc_pd,
	.alloc_ucontext = vrdma_alloc_ucontext,
	.create_ah = vrdma_create_ah,
	.create_user_ah = vrdma_create_ah,
	.create_cq = vrdma_create_cq,
	.create_qp = vrdma_create_qp,
	.dealloc_pd = vrdma_dealloc_pd,
	.dealloc_ucontext = vrdma_dealloc_ucontext,
	.del_gid = vrdma_del_gid,
	.dereg_mr = vrdma_dereg_mr,
	.destroy_ah = vrdma_destroy_ah,
	.destroy_cq = vrdma_destroy_cq,
	.destroy_qp = vrdma_destroy_qp,
	.device_group = &vrdma_sysfs_group,
	.disassociate_ucontext = vrdma_disassociate_ucontext,
	.get_dev_fw_str = vrdma_get_dev_fw_str,
	.get_dma_mr = vrdma_get_dma_mr,
	.get_link_layer = vrdma_get_link_layer,
	.get_port_immutable = vrdma_get_port_immutable,
	.map_mr_sg = vrdma_map_mr_sg,
	.mmap = vrdma_mmap,
	.mmap_free = vrdma_mmap_free,
	.modify_qp = vrdma_modify_qp,
	.poll_cq = vrdma_poll_cq,
	.post_recv = vrdma_post_recv,
	.post_send = vrdma_post_send,
	.query_ah = vrdma_query_ah,
	.query_device = vrdma_query_device,
	.query_pkey = vrdma_query_pkey,
	.query_port = vrdma_query_port,
	.query_qp = vrdma_query_qp,
	.query_ucontext = vrdma_query_ucontext,
	.reg_user_mr = vrdma_reg_user_mr,
	.reg_user_mr_dmabuf = vrdma_reg_user_mr_dmabuf,
	.req_notify_cq = vrdma_req_notify_cq,
	.rereg_user_mr = vrdma_rereg_user_mr,
	.vrdma_resize_cq_op = vrdma_resize_cq,
	VRDMA_USER_CQ_OP(vrdma_create_cq)
	VRDMA_PORT_EVENT_OP

	INIT_RDMA_OBJ_SIZE(ib_ah, vrdma_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, vrdma_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, vrdma_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, vrdma_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, vrdma_ucontext, ibucontext),
};

static void vrdma_ibdev_init(struct vrdma_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ib_set_device_ops(ibdev, &vrdma_ops);
	ibdev->driver_def = vrdma_uapi_defs;
	if (dev->num_srq)
		ib_set_device_ops(ibdev, &vrdma_srq_ops);
	if (dev->attr.max_mw)
		ib_set_device_ops(ibdev, &vrdma_mw_ops);
	if (dev->attr.max_mcast_grp)
		ib_set_device_ops(ibdev, &vrdma_mcast_ops);
	vrdma_counters_init(dev);
	vrdma_stats_init(dev);
	ibdev->node_type = RDMA_NODE_IB_CA;
	strscpy(ibdev->node_desc, "virtio-rdma", sizeof(ibdev->node_desc));
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->num_eqs ?:
				  min(num_possible_cpus(), dev->num_cq);
	/* Programs look for the PCI function of an adapter in sysfs. */
	ibdev->dev.parent = dev_is_pci(dev->dma_dev) ? dev->dma_dev
						     : &dev->vdev->dev;
	if (dev->attr.sys_image_guid)
		ibdev->node_guid = dev->attr.sys_image_guid;
	else if (dev->have_mac)
		addrconf_addr_eui48((u8 *)&ibdev->node_guid, dev->mac);
	else
		get_random_bytes(&ibdev->node_guid, sizeof(ibdev->node_guid));
	/*
	 * A process without direct queues posts, polls and arms by these. With
	 * them it resizes CQs and, without a page of doorbells, posts.
	 */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_SRQ_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_POLL_CQ) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ) |
				  BIT_ULL(IB_USER_VERBS_CMD_RESIZE_CQ);
}

/*
 * Queues in memory need pages of doorbells. Their counters, which processes
 * read and write, are little-endian.
 */
static bool vrdma_direct_possible(struct virtio_device *vdev)
{
	struct virtio_shm_region shm;

	return !IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) &&
	       virtio_get_shm_region(vdev, &shm, VIRTIO_RDMA_SHM_DOORBELLS) &&
	       shm.len >= VIRTIO_RDMA_DOORBELL_SIZE;
}

static int vrdma_validate(struct virtio_device *vdev)
{
	struct device *parent = vdev->dev.parent;

	if (!virtio_has_feature(vdev, VIRTIO_F_VERSION_1)) {
		dev_err(&vdev->dev, "no VIRTIO_F_VERSION_1\n");
		return -ENODEV;
	}
	if (!virtio_has_feature(vdev, VIRTIO_RDMA_F_VERSION_1)) {
		dev_err(&vdev->dev,
			"no VIRTIO_RDMA_F_VERSION_1: set the device's property version-1=on, or update QEMU\n");
		return -ENODEV;
	}
	/*
	 * Regions are made of DMA addresses. A device that bypasses its IOMMU
	 * cannot use these.
	 */
	if (virtio_has_dma_quirk(vdev) && device_iommu_mapped(parent)) {
		dev_err(&vdev->dev,
			"behind an IOMMU, but without VIRTIO_F_ACCESS_PLATFORM: set the device's property iommu_platform=on\n");
		return -ENODEV;
	}
	/*
	 * Bounce buffers are copied when DMA begins and ends. But the driver
	 * and programs poll slots that the device has, and regions belong to
	 * peers for as long as they exist.
	 */
	if (is_swiotlb_force_bounce(parent)) {
		dev_err(&vdev->dev,
			"DMA takes bounce buffers (encrypted memory, or swiotlb=force)\n");
		return -ENODEV;
	}
	/* vq.c uses the index of the used ring, which split rings have. */
	__virtio_clear_bit(vdev, VIRTIO_F_RING_PACKED);
	if (!vrdma_direct_possible(vdev))
		__virtio_clear_bit(vdev, VIRTIO_RDMA_F_DIRECT);
	if (!VRDMA_CORE_HAS_FLUSH)
		__virtio_clear_bit(vdev, VIRTIO_RDMA_F_FLUSH);
	if (!VRDMA_CORE_HAS_ATOMIC_WRITE)
		__virtio_clear_bit(vdev, VIRTIO_RDMA_F_ATOMIC_WRITE);
	return 0;
}

/* The memory is the next kernel's (kexec): peers must not write to it. */
static void vrdma_shutdown(struct device *device)
{
	struct virtio_device *vdev = dev_to_virtio(device);

	virtio_break_device(vdev);
	virtio_synchronize_cbs(vdev);
	virtio_reset_device(vdev);
}

static int vrdma_probe(struct virtio_device *vdev)
{
	struct vrdma_dev *dev;
	int ret;

	dev = ib_alloc_device(vrdma_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->vdev = vdev;
	dev->dma_dev = vdev->dev.parent;
	dma_set_max_seg_size(dev->dma_dev, VRDMA_MAX_SEGMENT);
	vdev->priv = dev;
	spin_lock_init(&dev->ctrl.lock);
	spin_lock_init(&dev->events.lock);
	spin_lock_init(&dev->qps_lock);
	mutex_init(&dev->objects_lock);
	mutex_init(&dev->netdev_lock);
	INIT_WORK(&dev->port_work, vrdma_port_work);
	INIT_WORK(&dev->fatal_work, vrdma_fatal_work);
	INIT_WORK(&dev->wake_work, vrdma_wake_work);
	init_completion(&dev->stopped);

	/* The virtio core does the same in kernels whose bus has a shutdown. */
	if (!vdev->dev.bus->shutdown)
		vdev->dev.driver->shutdown = vrdma_shutdown;

	ret = vrdma_config_read(dev);
	if (!ret)
		ret = vrdma_vqs_init(dev);
	if (ret)
		goto err_dealloc;
	virtio_device_ready(vdev);
	vrdma_vqs_reset(dev);
	ret = vrdma_events_start(dev);
	if (ret)
		goto err_vqs;
	ret = dev->form->start(dev);
	if (ret)
		goto err_vqs;

	vrdma_ibdev_init(dev);
	ret = vrdma_netdev_init(dev);
	if (ret)
		goto err_vqs;
	ret = ib_register_device(&dev->ibdev, "vrdma%d", dev->dma_dev);
	if (ret)
		goto err_netdev;
	dev->registered = true;
	schedule_work(&dev->port_work);
	return 0;

err_netdev:
	vrdma_netdev_exit(dev);
err_vqs:
	vrdma_reset(dev);
	cancel_work_sync(&dev->fatal_work);
	cancel_work_sync(&dev->wake_work);
	vrdma_vqs_free(dev);
err_dealloc:
	vrdma_config_free(dev);
	ib_dealloc_device(&dev->ibdev);
	return ret;
}

static void vrdma_remove(struct virtio_device *vdev)
{
	struct vrdma_dev *dev = vdev->priv;

	vrdma_netdev_exit(dev);
	if (vrdma_is_dead(dev) || vrdma_needs_reset(dev))
		vrdma_fatal(dev);
	/*
	 * Before unregistering: fatal_work that already runs may dispatch
	 * IB_EVENT_DEVICE_FATAL.
	 */
	flush_work(&dev->fatal_work);
	ib_unregister_device(&dev->ibdev);
	/* After a reset no interrupt schedules any work. */
	vrdma_reset(dev);
	cancel_work_sync(&dev->port_work);
	cancel_work_sync(&dev->fatal_work);
	cancel_work_sync(&dev->wake_work);
	vrdma_vqs_free(dev);
	vrdma_config_free(dev);
	ib_dealloc_device(&dev->ibdev);
}

static void vrdma_config_changed(struct virtio_device *vdev)
{
	struct vrdma_dev *dev = vdev->priv;

	if (dev->registered)
		schedule_work(&dev->port_work);
}

#ifdef CONFIG_PM_SLEEP
/* The state of queue pairs and regions is in the device and would be lost. */
static int vrdma_freeze(struct virtio_device *vdev)
{
	dev_err(&vdev->dev,
		"sleep would lose all queue pairs and regions; unload virtio_rdma first\n");
	return -EBUSY;
}
#endif

static const struct virtio_device_id vrdma_id_table[] = {
	{ VIRTIO_ID_RDMA, VIRTIO_DEV_ANY_ID },
	{ }
};
MODULE_DEVICE_TABLE(virtio, vrdma_id_table);

static const unsigned int vrdma_features[] = {
	VIRTIO_RDMA_F_VERSION_1,
	VIRTIO_RDMA_F_DIRECT,
	VIRTIO_RDMA_F_HOST_NUMBERS,
	VIRTIO_RDMA_F_FLUSH,
	VIRTIO_RDMA_F_ATOMIC_WRITE,
};

static struct virtio_driver vrdma_driver = {
	.driver.name = KBUILD_MODNAME,
	.driver.owner = THIS_MODULE,
	.id_table = vrdma_id_table,
	.feature_table = vrdma_features,
	.feature_table_size = ARRAY_SIZE(vrdma_features),
	.validate = vrdma_validate,
	.probe = vrdma_probe,
	.remove = vrdma_remove,
	.config_changed = vrdma_config_changed,
#ifdef CONFIG_PM_SLEEP
	.freeze = vrdma_freeze,
#endif
};
module_virtio_driver(vrdma_driver);

MODULE_DESCRIPTION("Virtio RDMA adapter driver");
MODULE_VERSION(VRDMA_VERSION);
MODULE_LICENSE("GPL");
