// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device, port, GIDs, protection domains and address handles.
 */
#include <linux/if_vlan.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "vrdma.h"

int vrdma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata)
{
	if (udata->inlen || udata->outlen)
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
	attr->gid_tbl_len = le32_to_cpu(rsp.gid_tbl_len);
	attr->ip_gids = true;
	attr->port_cap_flags = le32_to_cpu(rsp.port_cap_flags);
	attr->max_msg_sz = le32_to_cpu(rsp.max_msg_sz);
	attr->bad_pkey_cntr = le32_to_cpu(rsp.bad_pkey_cntr);
	attr->qkey_viol_cntr = le32_to_cpu(rsp.qkey_viol_cntr);
	attr->pkey_tbl_len = le16_to_cpu(rsp.pkey_tbl_len);
	attr->active_width = rsp.active_width;
	attr->active_speed = le16_to_cpu(rsp.active_speed);
	attr->phys_state = rsp.phys_state;
	attr->max_vl_num = 1;

	/* The port is what its NIC is: without that it has no addresses. */
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
	struct vrdma_dev *dev = to_vdev(attr->device);
	u16 vlan;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;
	/* There are also GIDs without a NIC, to begin with. */
	if (!rdma_read_gid_l2_fields(attr, &vlan, NULL) &&
	    vlan < VLAN_N_VID) {
		if (!dev->gid_vlan)
			return -EOPNOTSUPP;
		req.vlan = cpu_to_le16(vlan);
	}
	memcpy(req.gid, attr->gid.raw, sizeof(req.gid));
	return vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_ADD_GID, &req);
}

int vrdma_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct virtio_rdma_del_gid_req req = {
		.index = cpu_to_le16(attr->index),
		.port_num = cpu_to_le32(attr->port_num),
	};

	return vrdma_ctrl_destroy(to_vdev(attr->device),
				  VIRTIO_RDMA_CMD_DEL_GID, &req);
}

int vrdma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct virtio_rdma_pdn rsp;
	int ret;

	ret = vrdma_ctrl(to_vdev(ibpd->device), VIRTIO_RDMA_CMD_CREATE_PD,
			 NULL, 0, &rsp, sizeof(rsp), VRDMA_MAY_SLEEP);
	if (!ret)
		to_vpd(ibpd)->pdn = le32_to_cpu(rsp.pdn);
	return ret;
}

int vrdma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct virtio_rdma_pdn req = {
		.pdn = cpu_to_le32(to_vpd(ibpd)->pdn),
	};

	return vrdma_ctrl_destroy(to_vdev(ibpd->device),
				  VIRTIO_RDMA_CMD_DESTROY_PD, &req);
}

/* Address handles are ours alone: the address goes into every WQE. */
int vrdma_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata)
{
	struct rdma_ah_attr *attr = init->ah_attr;
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	struct virtio_rdma_av *av = &to_vah(ibah)->av;
	struct virtio_rdma_create_ah_resp resp = {};

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE ||
	    !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return -EINVAL;

	av->port = cpu_to_le32(rdma_ah_get_port_num(attr));
	av->pdn = cpu_to_le32(to_vpd(ibah->pd)->pdn);
	av->sl_tclass_flowlabel =
		cpu_to_le32((grh->flow_label & VIRTIO_RDMA_AV_FLOW_LABEL_MASK) |
			    (u32)grh->traffic_class <<
				VIRTIO_RDMA_AV_TCLASS_SHIFT |
			    (u32)(rdma_ah_get_sl(attr) & 0xf) <<
				VIRTIO_RDMA_AV_SL_SHIFT);
	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	av->gid_index = grh->sgid_index;
	av->static_rate = rdma_ah_get_static_rate(attr);
	av->hop_limit = grh->hop_limit;
	memcpy(av->dmac, rdma_ah_retrieve_dmac(attr), sizeof(av->dmac));

	if (!udata)
		return 0;
	memcpy(resp.dmac, av->dmac, sizeof(resp.dmac));
	return vrdma_respond(udata, &resp, sizeof(resp));
}

int vrdma_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	const struct virtio_rdma_av *av = &to_vah(ibah)->av;
	u32 bits = le32_to_cpu(av->sl_tclass_flowlabel);

	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, le32_to_cpu(av->port));
	rdma_ah_set_sl(attr, bits >> VIRTIO_RDMA_AV_SL_SHIFT);
	rdma_ah_set_static_rate(attr, av->static_rate);
	rdma_ah_set_ah_flags(attr, IB_AH_GRH);
	rdma_ah_set_grh(attr, NULL, bits & VIRTIO_RDMA_AV_FLOW_LABEL_MASK,
			av->gid_index, av->hop_limit,
			bits >> VIRTIO_RDMA_AV_TCLASS_SHIFT);
	rdma_ah_set_dgid_raw(attr, (void *)av->dgid);
	memcpy(attr->roce.dmac, av->dmac, sizeof(av->dmac));
	return 0;
}

int vrdma_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
