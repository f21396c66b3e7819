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
 * Map the pages of doorbells: the kernel has the first one, and rings by the
 * others for processes that cannot. A process maps pages of the kernel, each of
 * which has one or more of the device's.
 */
static int vrdma_config_doorbells(struct vrdma_dev *dev)
{
	struct virtio_shm_region shm;

	if (!virtio_get_shm_region(dev->vdev, &shm, VIRTIO_RDMA_SHM_DOORBELLS))
		return -ENODEV;
	shm.len = min_t(u64, shm.len, VRDMA_MAX_DOORBELLS * PAGE_SIZE);
	dev->doorbells = ioremap(shm.addr, shm.len);
	if (!dev->doorbells)
		return -ENOMEM;
	dev->doorbells_phys = shm.addr;
	if (PAGE_ALIGNED(shm.addr))
		dev->num_doorbells = shm.len / PAGE_SIZE;
	ida_init(&dev->doorbells_used);
	return 0;
}

static int vrdma_config_direct(struct vrdma_dev *dev)
{
	struct ib_device_attr *attr = &dev->attr;

	dev->form = &vrdma_direct_form;
	dev->num_eqs = min3(num_online_cpus(), dev->num_vq_cq, VRDMA_MAX_EQS);
	dev->num_cq = min(config_u32(dev, max_cq_direct), VRDMA_MAX_QUEUES);
	dev->num_qp = min(config_u32(dev, max_qp_direct), VRDMA_MAX_QUEUES);
	dev->num_srq = min(config_u32(dev, max_srq_direct), VRDMA_MAX_QUEUES);
	attr->max_qp_wr = min_t(u32, config_u32(dev, max_qp_wr_direct),
				VRDMA_QP_DEPTH_MAX);
	if (dev->num_cq <= dev->num_eqs || dev->num_qp < VRDMA_QPN_FIRST) {
		dev_err(&dev->vdev->dev,
			"%u direct CQs and %u direct QPs: expected more than %u and at least %u\n",
			dev->num_cq, dev->num_qp, dev->num_eqs,
			VRDMA_QPN_FIRST);
		return -EINVAL;
	}
	return vrdma_config_doorbells(dev);
}

/* An SRQ's virtqueue has to be reset before the next SRQ can use it. */
static int vrdma_config_vqs(struct vrdma_dev *dev)
{
	dev->form = &vrdma_vq_form;
	dev->num_cq = dev->num_vq_cq;
	dev->num_qp = dev->num_vq_qp;
	dev->num_srq = dev->ring_reset ? dev->num_vq_srq : 0;
	dev->attr.max_qp_wr = config_int(dev, max_qp_wr);
	return 0;
}

/* Limits of 0 say what the device has none of. */
static void vrdma_config_capabilities(struct vrdma_dev *dev)
{
	struct ib_device_attr *attr = &dev->attr;

	attr->device_cap_flags = config_u64(dev, device_cap_flags);
	/* The event is the driver's, see vrdma_port_work(). */
	attr->device_cap_flags |= IB_DEVICE_PORT_ACTIVE_EVENT;
	attr->max_mw = config_int(dev, max_mw);
	if (!attr->max_mw)
		attr->device_cap_flags &= ~(u64)(IB_DEVICE_MEM_WINDOW |
						 IB_DEVICE_MEM_WINDOW_TYPE_2B);
	attr->max_fast_reg_page_list_len =
		min_t(u32, config_u32(dev, max_reg_pages),
		      VRDMA_MAX_REG_PAGES) / VRDMA_PAGES_PER_PAGE;
	if (!attr->max_fast_reg_page_list_len)
		attr->device_cap_flags &= ~(u64)IB_DEVICE_MEM_MGT_EXTENSIONS;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_FLUSH))
		attr->device_cap_flags |= VRDMA_CAP_FLUSH;
	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_ATOMIC_WRITE))
		attr->device_cap_flags |= VRDMA_CAP_ATOMIC_WRITE;
	attr->max_mcast_grp = config_int(dev, max_mcast_grp);
	attr->max_mcast_qp_attach = config_int(dev, max_mcast_qp_attach);
	attr->max_total_mcast_qp_attach =
		config_int(dev, max_total_mcast_qp_attach);
	if (attr->max_mcast_grp)
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
	if (config_u32(dev, num_counters) <= VRDMA_MAX_COUNTERS)
		dev->num_counters = config_u32(dev, num_counters);
}

/* On failure, too, vrdma_config_free() has to follow. */
int vrdma_config_read(struct vrdma_dev *dev)
{
	struct ib_device_attr *attr = &dev->attr;
	u32 sge_room = VRDMA_PAGE_SIZE - sizeof(struct virtio_rdma_wqe_slot) -
		       sizeof(struct virtio_rdma_sq_wqe);
	u32 max_sge = sge_room / sizeof(struct virtio_rdma_sge);
	int ret;

	vrdma_config_bytes(dev,
			   offsetof(struct virtio_rdma_config, sys_image_guid),
			   &attr->sys_image_guid, sizeof(attr->sys_image_guid));
	attr->vendor_id = config_u32(dev, vendor_id);
	attr->vendor_part_id = config_u32(dev, vendor_part_id);
	attr->hw_ver = config_u32(dev, hw_ver);
	attr->fw_ver = attr->hw_ver;
	attr->max_mr_size = min(config_u64(dev, max_mr_size),
				vrdma_table_max_size());
	dev->mr_page_sizes = VRDMA_PAGE_SIZE |
			     (config_u64(dev, mr_page_sizes) &
			      ~(u64)(VRDMA_PAGE_SIZE - 1));
	attr->page_size_cap = dev->mr_page_sizes;
	attr->max_send_sge = min(config_u32(dev, max_send_sge), max_sge);
	attr->max_recv_sge = min(config_u32(dev, max_recv_sge), max_sge);
	attr->max_sge_rd = min(config_u32(dev, max_sge_rd), max_sge);
	attr->max_srq_sge = min(config_u32(dev, max_srq_sge), max_sge);
	attr->max_srq_wr = min_t(u32, config_u32(dev, max_srq_wr),
				 VRDMA_SRQ_DEPTH_MAX);
	attr->max_cqe = min_t(u32, config_u32(dev, max_cqe_deep),
			      VRDMA_CQ_DEPTH_MAX);
	attr->max_mr = config_int(dev, max_mr);
	attr->max_pd = config_int(dev, max_pd);
	attr->max_qp_rd_atom = config_int(dev, max_qp_rd_atom);
	attr->max_res_rd_atom = config_int(dev, max_res_rd_atom);
	attr->max_qp_init_rd_atom = config_int(dev, max_qp_init_rd_atom);
	/* UCX 1.13 takes IB_ATOMIC_GLOB, which is more, for none at all. */
	attr->atomic_cap = min_t(u8, config_get(dev, atomic_cap),
				 IB_ATOMIC_HCA);
	attr->max_ah = config_int(dev, max_ah);
	attr->max_pkeys = config_u16(dev, max_pkeys);
	attr->local_ca_ack_delay = config_get(dev, local_ca_ack_delay);
	dev->max_inline = min(config_u32(dev, max_inline_data), sge_room);
	vrdma_config_bytes(dev, offsetof(struct virtio_rdma_config, mac),
			   dev->mac, sizeof(dev->mac));
	dev->have_mac = is_valid_ether_addr(dev->mac);
	dev->host_numbers = virtio_has_feature(dev->vdev,
					       VIRTIO_RDMA_F_HOST_NUMBERS);
	dev->ring_reset = virtio_has_feature(dev->vdev, VIRTIO_F_RING_RESET);
	vrdma_config_capabilities(dev);

	dev->num_vq_cq = config_u32(dev, max_cq);
	dev->num_vq_qp = config_u32(dev, max_qp);
	dev->num_vq_srq = config_u32(dev, max_srq);
	ret = virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_DIRECT) ?
	      vrdma_config_direct(dev) : vrdma_config_vqs(dev);
	attr->max_cq = dev->num_cq - dev->num_eqs;
	attr->max_qp = dev->num_qp - VRDMA_QPN_FIRST;
	attr->max_srq = dev->num_srq;
	return ret;
}

void vrdma_config_free(struct vrdma_dev *dev)
{
	if (dev->doorbells)
		iounmap(dev->doorbells);
}
