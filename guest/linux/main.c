// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finding the device, its virtqueues, and the registration with the RDMA core.
 */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/virtio_ids.h>
#include <net/addrconf.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "vrdma.h"

#define config_get(dev, field) ({ \
	typeof_member(struct virtio_rdma_config, field) __v; \
	config_bytes(dev, offsetof(struct virtio_rdma_config, field), &__v, \
		     sizeof(__v)); \
	__v; })
#define config_u16(dev, field) le16_to_cpu(config_get(dev, field))
#define config_u32(dev, field) le32_to_cpu(config_get(dev, field))
#define config_u64(dev, field) le64_to_cpu(config_get(dev, field))

/* Fields are not aligned. */
static void config_bytes(struct vrdma_dev *dev, size_t offset, void *buf,
			 size_t len)
{
	u8 *to = buf;

	while (len--)
		dev->vdev->config->get(dev->vdev, offset++, to++, 1);
}

#ifdef VRDMA_CREATE_CQ_ATTRS
static int vrdma_create_cq(struct ib_cq *ibcq,
			   const struct ib_cq_init_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	return vrdma_do_create_cq(ibcq, attr,
				  attrs ? &attrs->driver_udata : NULL);
}
#else
#define vrdma_create_cq vrdma_do_create_cq
#endif

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
	.reg_user_mr = vrdma_reg_user_mr,
	.req_notify_cq = vrdma_req_notify_cq,
	.rereg_user_mr = vrdma_rereg_user_mr,
	.resize_cq = vrdma_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, vrdma_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, vrdma_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, vrdma_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, vrdma_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, vrdma_ucontext, ibucontext),
};

static void read_config(struct vrdma_dev *dev)
{
	struct ib_device_attr *attr = &dev->attr;
	u32 sge_room = PAGE_SIZE - sizeof(struct virtio_rdma_wqe_slot) -
		       sizeof(struct virtio_rdma_sq_wqe);
	u32 max_sge = sge_room / sizeof(struct virtio_rdma_sge);

	config_bytes(dev, offsetof(struct virtio_rdma_config, sys_image_guid),
		     &attr->sys_image_guid, sizeof(attr->sys_image_guid));
	attr->vendor_id = config_u32(dev, vendor_id);
	attr->vendor_part_id = config_u32(dev, vendor_part_id);
	attr->hw_ver = config_u32(dev, hw_ver);
	attr->fw_ver = attr->hw_ver;
	attr->max_mr_size = min(config_u64(dev, max_mr_size),
				vrdma_table_reach(dev));
	dev->mr_page_sizes = VRDMA_PAGE_SIZE;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MR_TABLES))
		dev->mr_page_sizes |= config_u64(dev, mr_page_sizes);
	attr->page_size_cap = dev->mr_page_sizes;
	attr->max_qp_wr = config_u32(dev, max_qp_wr);
	attr->device_cap_flags = config_u64(dev, device_cap_flags);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MW))
		attr->max_mw = config_u32(dev, max_mw);
	else
		attr->device_cap_flags &= ~(u64)(IB_DEVICE_MEM_WINDOW |
						 IB_DEVICE_MEM_WINDOW_TYPE_2B);
#ifdef VRDMA_FLUSH
	if (vrdma_has_flush(dev))
		attr->device_cap_flags |= IB_DEVICE_FLUSH_GLOBAL;
#endif
#ifdef VRDMA_ATOMIC_WRITE
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_ATOMIC_WRITE))
		attr->device_cap_flags |= IB_DEVICE_ATOMIC_WRITE;
#endif
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MCAST)) {
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
		attr->max_mcast_grp = config_u32(dev, max_mcast_grp);
		attr->max_mcast_qp_attach =
			config_u32(dev, max_mcast_qp_attach);
		attr->max_total_mcast_qp_attach =
			config_u32(dev, max_total_mcast_qp_attach);
	}
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_SRQ)) {
		dev->num_srq = config_u32(dev, max_srq);
		attr->max_srq_wr = config_u32(dev, max_srq_wr);
		attr->max_srq_sge = min(config_u32(dev, max_srq_sge), max_sge);
	}
	attr->max_send_sge = min(config_u32(dev, max_send_sge), max_sge);
	attr->max_recv_sge = min(config_u32(dev, max_recv_sge), max_sge);
	attr->max_sge_rd = min(config_u32(dev, max_sge_rd), max_sge);
	dev->cq_deep = virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_CQ_DEEP);
	attr->max_cqe = min_t(u32, dev->cq_deep ? config_u32(dev, max_cqe_deep)
						: config_u32(dev, max_cqe),
			      INT_MAX);
	attr->max_mr = config_u32(dev, max_mr);
	attr->max_pd = config_u32(dev, max_pd);
	attr->max_qp_rd_atom = config_u32(dev, max_qp_rd_atom);
	attr->max_res_rd_atom = config_u32(dev, max_res_rd_atom);
	attr->max_qp_init_rd_atom = config_u32(dev, max_qp_init_rd_atom);
	attr->atomic_cap = config_get(dev, atomic_cap);
	attr->max_ah = config_u32(dev, max_ah);
	attr->max_fast_reg_page_list_len =
		min_t(u32, config_u32(dev, max_fast_reg_page_list_len),
		      VRDMA_MAX_TABLE_PAGES);
	attr->max_pkeys = config_u16(dev, max_pkeys);
	attr->local_ca_ack_delay = config_get(dev, local_ca_ack_delay);

	dev->num_cq = config_u32(dev, max_cq);
	dev->num_qp = config_u32(dev, max_qp);
	dev->max_inline = min(config_u32(dev, max_inline_data), sge_room);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MAC_MTU)) {
		config_bytes(dev, offsetof(struct virtio_rdma_config, mac),
			     dev->mac, sizeof(dev->mac));
		dev->have_mac = is_valid_ether_addr(dev->mac);
	}
	dev->ring_reset = virtio_has_feature(dev->vdev, VIRTIO_F_RING_RESET);
	/* A page that a process maps must not outlive its CQ in a virtqueue. */
	dev->mapped_cq = dev->ring_reset &&
		virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_CQE_STATUS_LAST);
	dev->cq_ring_arm = virtio_has_feature(dev->vdev,
					      VIRTIO_RDMA_F_CQ_RING_ARM);
	dev->cqe_ex = virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_CQE_EX);
	dev->gid_vlan = virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_GID_VLAN);
	dev->reg_pages = virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_REG_PAGES);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_COUNTERS) &&
	    config_u32(dev, num_counters) <= VRDMA_MAX_COUNTERS)
		dev->num_counters = config_u32(dev, num_counters);
}

/* How many virtqueues there are. */
static u32 num_vqs(const struct vrdma_dev *dev)
{
	u32 n = VIRTIO_RDMA_NUM_VQS(dev->num_cq, dev->num_qp);

	if (!virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_EVENTS))
		return n;
	return n + 1 + dev->num_srq;
}

static bool is_event_vq(const struct vrdma_dev *dev, u32 i)
{
	return i == VIRTIO_RDMA_EVENT_VQ(dev->num_cq, dev->num_qp);
}

struct vq_role {
	const char *name;
	vq_callback_t *callback;
};

/* Work queues have no callback and take no interrupt vector. */
static struct vq_role vq_role(const struct vrdma_dev *dev, u32 i)
{
	u32 first_sq = VIRTIO_RDMA_SQ_VQ(dev->num_cq, 0);

	if (i == VIRTIO_RDMA_CTRL_VQ)
		return (struct vq_role){ "control", vrdma_ctrl_callback };
	if (i < first_sq)
		return (struct vq_role){ "cq", vrdma_cq_callback };
	if (is_event_vq(dev, i))
		return (struct vq_role){ "events", vrdma_event_callback };
	if (i > VIRTIO_RDMA_EVENT_VQ(dev->num_cq, dev->num_qp))
		return (struct vq_role){ "srq", NULL };
	return (struct vq_role){ (i - first_sq) % 2 ? "rq" : "sq", NULL };
}

static int find_vqs(struct vrdma_dev *dev, u32 n)
{
#ifdef VRDMA_VIRTQUEUE_INFO
	struct virtqueue_info *info;
#else
	vq_callback_t **callbacks;
	const char **names;
#endif
	int ret = -ENOMEM;
	u32 i;

#ifdef VRDMA_VIRTQUEUE_INFO
	info = kvcalloc(n, sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
#else
	callbacks = kvcalloc(n, sizeof(*callbacks), GFP_KERNEL);
	names = kvcalloc(n, sizeof(*names), GFP_KERNEL);
	if (!callbacks || !names)
		goto out;
#endif
	for (i = 0; i < n; i++) {
		struct vq_role role = vq_role(dev, i);

#ifdef VRDMA_VIRTQUEUE_INFO
		info[i].name = role.name;
		info[i].callback = role.callback;
#else
		names[i] = role.name;
		callbacks[i] = role.callback;
#endif
	}
#ifdef VRDMA_VIRTQUEUE_INFO
	ret = virtio_find_vqs(dev->vdev, n, dev->vqs, info, NULL);
	kvfree(info);
#else
	ret = virtio_find_vqs(dev->vdev, n, dev->vqs, callbacks, names, NULL);
out:
	kvfree(callbacks);
	kvfree(names);
#endif
	return ret;
}

static int init_vqs(struct vrdma_dev *dev)
{
	u32 n, i;
	int ret;

	if (!dev->num_cq || dev->num_cq > 16384 || dev->num_qp < 2 ||
	    dev->num_qp > 16384 || dev->num_srq > 16384)
		return -EINVAL;
	n = num_vqs(dev);

	dev->vqs = kvcalloc(n, sizeof(*dev->vqs), GFP_KERNEL);
	dev->cqs = kvcalloc(dev->num_cq, sizeof(*dev->cqs), GFP_KERNEL);
	dev->qps = kvcalloc(dev->num_qp, sizeof(*dev->qps), GFP_KERNEL);
	dev->qps_busy = bitmap_zalloc(dev->num_qp, GFP_KERNEL);
	if (!dev->vqs || !dev->cqs || !dev->qps || !dev->qps_busy) {
		ret = -ENOMEM;
		goto err;
	}
	ret = find_vqs(dev, n);
	if (ret)
		goto err;

	dev->ctrl.vq = dev->vqs[VIRTIO_RDMA_CTRL_VQ];
	dev->ring_max = virtqueue_get_vring_size(dev->vqs[1]);
	for (i = 1; i < n; i++) {
		if (is_event_vq(dev, i))
			dev->events.vq = dev->vqs[i];
		else
			dev->ring_max =
				min(dev->ring_max,
				    virtqueue_get_vring_size(dev->vqs[i]));
	}
	for (i = 0; i < dev->num_cq; i++) {
		spin_lock_init(&dev->cqs[i].lock);
		spin_lock_init(&dev->cqs[i].ring.lock);
		dev->cqs[i].ring.vq = dev->vqs[VIRTIO_RDMA_CQ_VQ(i)];
	}
	if (!dev->cq_deep)
		dev->attr.max_cqe = min_t(u32, dev->attr.max_cqe,
					  dev->ring_max);
	dev->attr.max_qp_wr = min_t(u32, dev->attr.max_qp_wr, dev->ring_max);
	dev->attr.max_cq = dev->num_cq;
	/* QP 0 does not exist, QP 1 is the GSI. */
	dev->attr.max_qp = dev->num_qp - 2;
	ret = vrdma_srqs_init(dev);
	if (!ret)
		return 0;
	dev->vdev->config->del_vqs(dev->vdev);
err:
	bitmap_free(dev->qps_busy);
	kvfree(dev->qps);
	kvfree(dev->cqs);
	kvfree(dev->vqs);
	return ret;
}

/* After a device reset. */
static void free_vqs(struct vrdma_dev *dev)
{
	u32 i;

	vrdma_ctrl_free(dev);
	for (i = 1; i < num_vqs(dev); i++)
		vrdma_vq_empty(dev->vqs[i]);
	dev->vdev->config->del_vqs(dev->vdev);
	vrdma_cqs_free(dev);
	vrdma_srqs_free(dev);
	kfree(dev->events.bufs);
	bitmap_free(dev->qps_busy);
	kvfree(dev->qps);
	kvfree(dev->vqs);
}

/* Virtqueues were made at their full size. */
static int park_vqs(struct vrdma_dev *dev)
{
	u32 n = num_vqs(dev);
	int ret = 0;
	u32 i;

	if (!dev->ring_reset)
		return 0;
	mutex_lock(&dev->vq_lock);
	for (i = 1; i < n && !ret; i++) {
		if (!is_event_vq(dev, i))
			ret = vrdma_vq_park(dev, dev->vqs[i]);
	}
	mutex_unlock(&dev->vq_lock);
	return ret;
}

static void init_ibdev(struct vrdma_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ib_set_device_ops(ibdev, &vrdma_ops);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_SRQ))
		ib_set_device_ops(ibdev, &vrdma_srq_ops);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MW))
		ib_set_device_ops(ibdev, &vrdma_mw_ops);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MCAST))
		ib_set_device_ops(ibdev, &vrdma_mcast_ops);
	vrdma_counters_init(dev);
	ibdev->node_type = RDMA_NODE_IB_CA;
	strscpy(ibdev->node_desc, "virtio-rdma", sizeof(ibdev->node_desc));
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = min(num_possible_cpus(), dev->num_cq);
	ibdev->dev.parent = &dev->vdev->dev;
	if (dev->attr.sys_image_guid)
		ibdev->node_guid = dev->attr.sys_image_guid;
	else if (dev->have_mac)
		addrconf_addr_eui48((u8 *)&ibdev->node_guid, dev->mac);
	else
		get_random_bytes(&ibdev->node_guid, sizeof(ibdev->node_guid));
	/* A process posts, polls and arms with these. */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_SRQ_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_POLL_CQ) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ) |
				  BIT_ULL(IB_USER_VERBS_CMD_RESIZE_CQ);
}

static int vrdma_validate(struct virtio_device *vdev)
{
	struct device *parent = vdev->dev.parent;

	if (!virtio_has_feature(vdev, VIRTIO_F_VERSION_1)) {
		dev_err(&vdev->dev, "no VIRTIO_F_VERSION_1\n");
		return -ENODEV;
	}
	/*
	 * Addresses of regions are DMA addresses. Behind an IOMMU that
	 * the device bypasses there are none.
	 */
	if (virtio_has_dma_quirk(vdev) && device_iommu_mapped(parent)) {
		dev_err(&vdev->dev, "IOMMU, but no VIRTIO_F_ACCESS_PLATFORM\n");
		return -ENODEV;
	}
	/* Completions are looked for by the used index of a split ring. */
	__virtio_clear_bit(vdev, VIRTIO_F_RING_PACKED);
	if (!vrdma_srq_possible(vdev))
		__virtio_clear_bit(vdev, VIRTIO_RDMA_F_SRQ);
	return 0;
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
	/* What lies together in memory is found together. */
	dma_set_max_seg_size(dev->dma_dev, SZ_2G);
	vdev->priv = dev;
	spin_lock_init(&dev->ctrl.lock);
	spin_lock_init(&dev->events.lock);
	mutex_init(&dev->vq_lock);
	mutex_init(&dev->netdev_lock);
	INIT_WORK(&dev->port_work, vrdma_port_work);
	INIT_WORK(&dev->fatal_work, vrdma_fatal_work);

	read_config(dev);
	ret = init_vqs(dev);
	if (ret)
		goto err_dealloc;
	virtio_device_ready(vdev);
	ret = park_vqs(dev);
	if (ret)
		goto err_vqs;
	ret = vrdma_events_start(dev);
	if (ret)
		goto err_vqs;

	init_ibdev(dev);
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
	virtio_reset_device(vdev);
	cancel_work_sync(&dev->fatal_work);
	free_vqs(dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return ret;
}

static void vrdma_remove(struct virtio_device *vdev)
{
	struct vrdma_dev *dev = vdev->priv;

	vrdma_netdev_exit(dev);
	if (vrdma_is_dead(dev) || vrdma_needs_reset(dev))
		vrdma_fatal(dev);
	/* It tells a device that is registered of the event. */
	flush_work(&dev->fatal_work);
	ib_unregister_device(&dev->ibdev);
	/* No interrupt schedules work any more. */
	virtio_reset_device(vdev);
	cancel_work_sync(&dev->port_work);
	cancel_work_sync(&dev->fatal_work);
	free_vqs(dev);
	ib_dealloc_device(&dev->ibdev);
}

static void vrdma_config_changed(struct virtio_device *vdev)
{
	struct vrdma_dev *dev = vdev->priv;

	if (dev->registered)
		schedule_work(&dev->port_work);
}

#ifdef CONFIG_PM_SLEEP
/* Queue pairs and regions live in the device: it cannot be put to sleep. */
static int vrdma_freeze(struct virtio_device *vdev)
{
	dev_err(&vdev->dev,
		"sleep would lose all queue pairs and regions; unload virtio_rdma first\n");
	return -EBUSY;
}
#endif

static const struct virtio_device_id id_table[] = {
	{ VIRTIO_ID_RDMA, VIRTIO_DEV_ANY_ID },
	{ }
};
MODULE_DEVICE_TABLE(virtio, id_table);

static const unsigned int features[] = {
	VIRTIO_RDMA_F_EXT_STATUS,
	VIRTIO_RDMA_F_MAC_MTU,
	VIRTIO_RDMA_F_CQE_STATUS_LAST,
	VIRTIO_RDMA_F_EVENTS,
	VIRTIO_RDMA_F_SRQ,
	VIRTIO_RDMA_F_MW,
	VIRTIO_RDMA_F_MCAST,
	VIRTIO_RDMA_F_MR_TABLES,
	VIRTIO_RDMA_F_REREG_MR,
	VIRTIO_RDMA_F_CQ_DEEP,
	VIRTIO_RDMA_F_CQ_RING_ARM,
	VIRTIO_RDMA_F_CQE_EX,
	VIRTIO_RDMA_F_GID_VLAN,
	VIRTIO_RDMA_F_COUNTERS,
	VIRTIO_RDMA_F_REG_PAGES,
#ifdef VRDMA_FLUSH
	VIRTIO_RDMA_F_FLUSH,
#endif
#ifdef VRDMA_ATOMIC_WRITE
	VIRTIO_RDMA_F_ATOMIC_WRITE,
#endif
};

static struct virtio_driver vrdma_driver = {
	.driver.name = KBUILD_MODNAME,
	.driver.owner = THIS_MODULE,
	.id_table = id_table,
	.feature_table = features,
	.feature_table_size = ARRAY_SIZE(features),
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
MODULE_LICENSE("GPL");
