// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attributes of the device and its port, GIDs and P_Keys.
 */
#include <linux/if_vlan.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "device.h"

int vrdma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata)
{
	/* NULL when the RDMA core of Linux 7.3 asks for itself */
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	*attr = to_vdev(ibdev)->attr;
	return 0;
}

void vrdma_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u",
		 to_vdev(ibdev)->attr.hw_ver);
}

int vrdma_query_port(struct ib_device *ibdev, u32 port,
		     struct ib_port_attr *attr)
{
	struct virtio_rdma_query_port_req req = { .port = port };
	struct vrdma_dev *dev = to_vdev(ibdev);
	struct virtio_rdma_query_port_rsp rsp;
	bool up = false;
	int ret;

	ret = vrdma_ctrl_ask(dev, VIRTIO_RDMA_CMD_QUERY_PORT, &req, &rsp);
	if (ret)
		return ret;

	attr->state = rsp.state;
	attr->max_mtu = rsp.max_mtu;
	attr->active_mtu = rsp.active_mtu;
	attr->phys_mtu = le32_to_cpu(rsp.phys_mtu);
	attr->gid_tbl_len = min_t(u32, le32_to_cpu(rsp.gid_tbl_len),
				  VRDMA_MAX_GIDS);
	attr->ip_gids = true;
	attr->port_cap_flags = le32_to_cpu(rsp.port_cap_flags);
	attr->max_msg_sz = le32_to_cpu(rsp.max_msg_sz);
	attr->bad_pkey_cntr = le32_to_cpu(rsp.bad_pkey_cntr);
	attr->qkey_viol_cntr = le32_to_cpu(rsp.qkey_viol_cntr);
	attr->pkey_tbl_len = min_t(u16, le16_to_cpu(rsp.pkey_tbl_len),
				   VRDMA_MAX_PKEYS);
	attr->active_width = rsp.active_width;
	attr->active_speed = le16_to_cpu(rsp.active_speed);
	attr->phys_state = rsp.phys_state;
	attr->max_vl_num = 1;

	/* Without its NIC the port has no addresses, so it is down. */
	mutex_lock(&dev->netdev_lock);
	if (dev->netdev) {
		int mtu = iboe_get_mtu(READ_ONCE(dev->netdev->mtu));

		up = netif_running(dev->netdev) &&
		     netif_carrier_ok(dev->netdev);
		if (mtu)
			attr->active_mtu = min_t(int, attr->active_mtu, mtu);
	}
	mutex_unlock(&dev->netdev_lock);
	if (!up) {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	}
	return 0;
}

int vrdma_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr = {};
	int ret;

	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	ret = ib_query_port(ibdev, port, &attr);
	if (ret)
		return ret;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

enum rdma_link_layer vrdma_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

int vrdma_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	struct virtio_rdma_query_pkey_req req = {
		.port = cpu_to_le32(port),
		.index = cpu_to_le16(index),
	};
	struct virtio_rdma_query_pkey_rsp rsp;
	int ret;

	ret = vrdma_ctrl_ask(to_vdev(ibdev), VIRTIO_RDMA_CMD_QUERY_PKEY, &req,
			     &rsp);
	if (!ret)
		*pkey = le16_to_cpu(rsp.pkey);
	return ret;
}

int vrdma_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct virtio_rdma_add_gid_req req = {
		.gid_type = cpu_to_le32(VIRTIO_RDMA_GID_TYPE_ROCE_V2),
		.index = cpu_to_le16(attr->index),
		.port_num = cpu_to_le32(attr->port_num),
	};
	u16 vlan;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;
	/* A GID without a NIC has no VLAN. */
	if (!rdma_read_gid_l2_fields(attr, &vlan, NULL) && vlan < VLAN_N_VID)
		req.vlan = cpu_to_le16(vlan);
	memcpy(req.gid, attr->gid.raw, sizeof(req.gid));
	return vrdma_ctrl_do(to_vdev(attr->device), VIRTIO_RDMA_CMD_ADD_GID,
			     &req);
}

int vrdma_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct virtio_rdma_del_gid_req req = {
		.index = cpu_to_le16(attr->index),
		.port_num = cpu_to_le32(attr->port_num),
	};

	return vrdma_ctrl_destroy(to_vdev(attr->device),
				  VIRTIO_RDMA_CMD_DEL_GID, &req, true);
}
