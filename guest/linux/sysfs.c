// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attributes in sysfs that programs expect of every adapter: ibstat prints
 * them, and node_exporter ignores an adapter that lacks one.
 */
#include "device.h"

static struct vrdma_dev *to_dev(struct device *device)
{
	return rdma_device_to_drv_device(device, struct vrdma_dev, ibdev);
}

static ssize_t hca_type_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "virtio-rdma\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *device,
			   struct device_attribute *attr, char *buf)
{
	struct vrdma_dev *dev = to_dev(device);

	return sysfs_emit(buf, "%x\n", dev->attr.hw_ver);
}
static DEVICE_ATTR_RO(hw_rev);

/* The identity of the virtio device: vendor and device in hexadecimal */
static ssize_t board_id_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	struct vrdma_dev *dev = to_dev(device);

	return sysfs_emit(buf, "virtio:%04x:%04x\n", dev->vdev->id.vendor,
			  dev->vdev->id.device);
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *vrdma_attributes[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	&dev_attr_board_id.attr,
	NULL,
};

const struct attribute_group vrdma_sysfs_group = {
	.attrs = vrdma_attributes,
};
