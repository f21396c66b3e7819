/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Address handles. The kernel resolves the MAC address. The device knows no
 * address handles: each WQE contains the address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vrdma.h"

#define SL_MASK 0xf

struct ibv_ah *vrdma_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct vrdma_create_ah_resp resp = {};
	struct virtio_rdma_av *av;
	struct vrdma_ah *ah;
	int ret;

	if (!attr->is_global) {
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ret = ibv_cmd_create_ah(pd, &ah->ah, attr, &resp.ibv_resp,
				sizeof(resp));
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}

	av = &ah->av;
	av->port = htole32(attr->port_num);
	av->sl_tclass_flowlabel =
		htole32((attr->grh.flow_label &
			 VIRTIO_RDMA_AV_FLOW_LABEL_MASK) |
			(uint32_t)attr->grh.traffic_class <<
				VIRTIO_RDMA_AV_TCLASS_SHIFT |
			(uint32_t)(attr->sl & SL_MASK) <<
				VIRTIO_RDMA_AV_SL_SHIFT);
	memcpy(av->dgid, attr->grh.dgid.raw, sizeof(av->dgid));
	av->gid_index = attr->grh.sgid_index;
	av->static_rate = attr->static_rate;
	av->hop_limit = attr->grh.hop_limit;
	memcpy(av->dmac, resp.dmac, sizeof(av->dmac));
	return &ah->ah;
}

int vrdma_destroy_ah(struct ibv_ah *ah)
{
	int ret = ibv_cmd_destroy_ah(ah);

	if (!ret)
		free(to_vah(ah));
	return ret;
}
