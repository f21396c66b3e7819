// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attributes in sysfs that programs expect of every adapter: ibstat prints
 * them, and node_exporter ignores an adapter that lacks one.
 */
#include "device.h"

static struct vrdma_dev *vrdma_of(struct device *device)
{
	return rdma_device_to_drv_device(device, struct vrdma_dev, ibdev);
}

static ssize_t vrdma_hca_type_show(struct device *device,
				   struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "virtio-rdma\n");
}

static struct device_attribute vrdma_hca_type =
	__ATTR(hca_type, 0444, vrdma_hca_type_show, NULL);

static ssize_t vrdma_hw_rev_show(struct device *device,
				 struct device_attribute *attr, char *buf)
{
	struct vrdma_dev *dev = vrdma_of(device);

	return sysfs_emit(buf, "%x\n", dev->attr.hw_ver);
}

static struct device_attribute vrdma_hw_rev =
	__ATTR(hw_rev, 0444, vrdma_hw_rev_show, NULL);

/* The identity of the virtio device: vendor and device in hexadecimal */
static ssize_t vrdma_board_id_show(struct device *device,
				   struct device_attribute *attr, char *buf)
{
	struct vrdma_dev *dev = vrdma_of(device);

	return sysfs_emit(buf, "virtio:%04x:%04x\n", dev->vdev->id.vendor,
			  dev->vdev->id.device);
}

static struct device_attribute vrdma_board_id =
	__ATTR(board_id, 0444, vrdma_board_id_show, NULL);

static struct attribute *vrdma_attributes[] = {
	&vrdma_hca_type.attr,
	&vrdma_hw_rev.attr,
	&vrdma_board_id.attr,
	NULL,
};

const struct attribute_group vrdma_sysfs_group = {
	.attrs = vrdma_attributes,
};
