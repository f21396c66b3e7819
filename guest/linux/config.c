// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device's configuration space: limits and capabilities.
 */
#include <linux/etherdevice.h>

#include "device.h"

#define config_get(dev, field) ({ \
	typeof_member(struct virtio_rdma_config, field) __v; \
	vrdma_config_bytes(dev, offsetof(struct virtio_rdma_config, field), \
			   &__v, sizeof(__v)); \
	__v; })
#define config_u16(dev, field) le16_to_cpu(config_get(dev, field))
#define config_u32(dev, field) le32_to_cpu(config_get(dev, field))
#define config_u64(dev, field) le64_to_cpu(config_get(dev, field))
/* The RDMA core has an int for most limits. */
#define config_int(dev, field) min_t(u32, config_u32(dev, field), INT_MAX)

/* Fields are not aligned, so they are read byte by byte. */
static void vrdma_config_bytes(struct vrdma_dev *dev, size_t offset, void *buf,
			       size_t len)
{
	u8 *to = buf;

	while (len--)
		dev->vdev->config->get(dev->vdev, offset++, to++, 1);
}

/*
 * Without doorbells QPs have virtqueues. So they do where the pages that a
 * process maps are not those of the device, or its counters and lengths are not
 * in little-endian.
 */
static void vrdma_config_doorbells(struct vrdma_dev *dev)
{
	struct virtio_shm_region shm;
	u32 num, depth;

	if (!PAGE_ALIGNED(VIRTIO_RDMA_DOORBELL_SIZE) ||
	    IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) ||
	    !virtio_get_shm_region(dev->vdev, &shm, VIRTIO_RDMA_SHM_DOORBELLS))
		return;
	num = min_t(u64, shm.len / VIRTIO_RDMA_DOORBELL_SIZE,
		    VRDMA_MAX_DOORBELLS);
	depth = min_t(u32, config_u32(dev, max_qp_wr_direct),
		      VRDMA_DIRECT_DEPTH_MAX);
	if (!num || depth < VRDMA_DEPTH_MIN)
		return;
	/* The kernel's, and all others: it rings for processes, by theirs. */
	dev->doorbells = ioremap(shm.addr, num * VIRTIO_RDMA_DOORBELL_SIZE);
	if (!dev->doorbells)
		return;
	dev->attr.max_qp_wr = depth;
	dev->num_qp = min(config_u32(dev, max_qp_direct), VRDMA_MAX_QUEUES);
	dev->num_qp = max(dev->num_qp, dev->num_vq_qp);
	dev->doorbells_phys = shm.addr;
	dev->num_doorbells = num;
	ida_init(&dev->doorbells_used);
}

/* Without event queues CQs have virtqueues, as where QPs have them. */
static void vrdma_config_direct_cqs(struct vrdma_dev *dev)
{
	u32 num = min(config_u32(dev, max_cq_direct), VRDMA_MAX_QUEUES);
	u32 depth = min_t(u32, config_u32(dev, max_cqe_direct),
			  VRDMA_CQ_DEPTH_MAX);
	u32 eqs = min3(num_online_cpus(), dev->num_cq, VRDMA_MAX_EQS);

	if (!PAGE_ALIGNED(VRDMA_PAGE_SIZE) ||
	    IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) || !eqs || num <= eqs ||
	    depth < VRDMA_DEPTH_MIN)
		return;
	dev->direct_cq = true;
	dev->num_eqs = eqs;
	dev->num_direct_cq = num;
	dev->attr.max_cqe = depth;
}

/* As QPs have no virtqueues then, SRQs need none. */
static void vrdma_config_direct_srqs(struct vrdma_dev *dev)
{
	u32 num = min(config_u32(dev, max_srq_direct), VRDMA_MAX_QUEUES);

	if (!dev->doorbells || num < dev->num_vq_srq)
		return;
	dev->direct_srq = true;
	dev->num_srq = num;
}

void vrdma_config_read(struct vrdma_dev *dev)
{
	struct ib_device_attr *attr = &dev->attr;
	u32 sge_room = PAGE_SIZE - sizeof(struct virtio_rdma_wqe_slot) -
		       sizeof(struct virtio_rdma_sq_wqe);
	u32 max_sge = sge_room / sizeof(struct virtio_rdma_sge);

	vrdma_config_bytes(dev,
			   offsetof(struct virtio_rdma_config, sys_image_guid),
			   &attr->sys_image_guid, sizeof(attr->sys_image_guid));
	attr->vendor_id = config_u32(dev, vendor_id);
	attr->vendor_part_id = config_u32(dev, vendor_part_id);
	attr->hw_ver = config_u32(dev, hw_ver);
	attr->fw_ver = attr->hw_ver;
	attr->max_mr_size = min(config_u64(dev, max_mr_size),
				vrdma_table_max_size(dev));
	dev->mr_page_sizes = VRDMA_PAGE_SIZE;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MR_TABLES))
		dev->mr_page_sizes |= config_u64(dev, mr_page_sizes) &
				      ~(u64)(VRDMA_PAGE_SIZE - 1);
	attr->page_size_cap = dev->mr_page_sizes;
	attr->max_qp_wr = config_int(dev, max_qp_wr);
	attr->device_cap_flags = config_u64(dev, device_cap_flags);
	/* The event is the driver's, see vrdma_port_work(). */
	attr->device_cap_flags |= IB_DEVICE_PORT_ACTIVE_EVENT;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MW))
		attr->max_mw = config_int(dev, max_mw);
	else
		attr->device_cap_flags &= ~(u64)(IB_DEVICE_MEM_WINDOW |
						 IB_DEVICE_MEM_WINDOW_TYPE_2B);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_FLUSH))
		attr->device_cap_flags |= VRDMA_CAP_FLUSH;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_ATOMIC_WRITE))
		attr->device_cap_flags |= VRDMA_CAP_ATOMIC_WRITE;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MCAST)) {
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
		attr->max_mcast_grp = config_int(dev, max_mcast_grp);
		attr->max_mcast_qp_attach =
			config_int(dev, max_mcast_qp_attach);
		attr->max_total_mcast_qp_attach =
			config_int(dev, max_total_mcast_qp_attach);
	}
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_SRQ)) {
		dev->num_vq_srq = config_u32(dev, max_srq);
		dev->num_srq = dev->num_vq_srq;
		attr->max_srq_wr = config_int(dev, max_srq_wr);
		attr->max_srq_sge = min(config_u32(dev, max_srq_sge), max_sge);
	}
	attr->max_send_sge = min(config_u32(dev, max_send_sge), max_sge);
	attr->max_recv_sge = min(config_u32(dev, max_recv_sge), max_sge);
	attr->max_sge_rd = min(config_u32(dev, max_sge_rd), max_sge);
	dev->cq_deep = virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_CQ_DEEP);
	attr->max_cqe = min_t(u32, dev->cq_deep ? config_u32(dev, max_cqe_deep)
						: config_u32(dev, max_cqe),
			      INT_MAX);
	attr->max_mr = config_int(dev, max_mr);
	attr->max_pd = config_int(dev, max_pd);
	attr->max_qp_rd_atom = config_int(dev, max_qp_rd_atom);
	attr->max_res_rd_atom = config_int(dev, max_res_rd_atom);
	attr->max_qp_init_rd_atom = config_int(dev, max_qp_init_rd_atom);
	/* UCX 1.13 takes IB_ATOMIC_GLOB, which is more, for none at all. */
	attr->atomic_cap = min_t(u8, config_get(dev, atomic_cap),
				 IB_ATOMIC_HCA);
	attr->max_ah = config_int(dev, max_ah);
	attr->max_fast_reg_page_list_len =
		min_t(u32, config_u32(dev, max_fast_reg_page_list_len),
		      VRDMA_MAX_TABLE_PAGES) / VRDMA_PAGES_PER_PAGE;
	attr->max_pkeys = config_u16(dev, max_pkeys);
	attr->local_ca_ack_delay = config_get(dev, local_ca_ack_delay);

	dev->num_cq = config_u32(dev, max_cq);
	dev->num_vq_qp = config_u32(dev, max_qp);
	dev->num_qp = dev->num_vq_qp;
	dev->max_inline = min(config_u32(dev, max_inline_data), sge_room);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MAC_MTU)) {
		vrdma_config_bytes(dev,
				   offsetof(struct virtio_rdma_config, mac),
				   dev->mac, sizeof(dev->mac));
		dev->have_mac = is_valid_ether_addr(dev->mac);
	}
	dev->ring_reset = virtio_has_feature(dev->vdev, VIRTIO_F_RING_RESET);
	/*
	 * The device must not write to a page once the process that maps it
	 * has destroyed its CQ: that takes a reset of the CQ's virtqueue.
	 */
	dev->mapped_cq = dev->ring_reset &&
		virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_CQE_STATUS_LAST);
	dev->cq_ring_arm = virtio_has_feature(dev->vdev,
					      VIRTIO_RDMA_F_CQ_RING_ARM);
	dev->cqe_ex = virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_CQE_EX);
	dev->gid_vlan = virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_GID_VLAN);
	dev->host_numbers = virtio_has_feature(dev->vdev,
					       VIRTIO_RDMA_F_HOST_NUMBERS);
	/*
	 * Without this feature a mapping takes a command before the work
	 * request, and nobody may wait for its response where these are posted.
	 */
	dev->reg_pages = virtio_has_feature(dev->vdev,
					    VIRTIO_RDMA_F_REG_PAGES) &&
			 attr->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS;
	if (!dev->reg_pages) {
		attr->device_cap_flags &= ~(u64)IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->max_fast_reg_page_list_len = 0;
	}
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_DIRECT_QP))
		vrdma_config_doorbells(dev);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_DIRECT_CQ))
		vrdma_config_direct_cqs(dev);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_SRQ) &&
	    virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_DIRECT_SRQ))
		vrdma_config_direct_srqs(dev);
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_COUNTERS) &&
	    config_u32(dev, num_counters) <= VRDMA_MAX_COUNTERS)
		dev->num_counters = config_u32(dev, num_counters);
}

void vrdma_config_free(struct vrdma_dev *dev)
{
	if (dev->doorbells)
		iounmap(dev->doorbells);
}
