// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Protection domains and address handles.
 */
#include <linux/bits.h>

#include "device.h"

#define SL_MASK GENMASK(3, 0)

int vrdma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct virtio_rdma_pdn rsp;
	int ret;

	ret = vrdma_ctrl(to_vdev(ibpd->device), VIRTIO_RDMA_CMD_CREATE_PD,
			 NULL, 0, &rsp, sizeof(rsp));
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
				  VIRTIO_RDMA_CMD_DESTROY_PD, &req, udata);
}

/* The device has no address handles: each WQE contains the address. */
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
			    (u32)(rdma_ah_get_sl(attr) & SL_MASK) <<
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
