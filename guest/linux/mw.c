// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory windows. Processes bind them with work requests.
 */
#include "mem.h"

static int vrdma_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct virtio_rdma_alloc_mw_req req = {
		.pdn = cpu_to_le32(to_vpd(ibmw->pd)->pdn),
	};
	struct virtio_rdma_alloc_mw_rsp rsp;
	int ret;

	switch (ibmw->type) {
	case IB_MW_TYPE_1:
		req.type = cpu_to_le32(VIRTIO_RDMA_MW_TYPE_1);
		break;
	case IB_MW_TYPE_2:
		req.type = cpu_to_le32(VIRTIO_RDMA_MW_TYPE_2);
		break;
	default:
		return -EINVAL;
	}
	ret = vrdma_ctrl_ask(to_vdev(ibmw->device), VIRTIO_RDMA_CMD_ALLOC_MW,
			     &req, &rsp);
	if (ret)
		return ret;
	to_vmw(ibmw)->mwn = le32_to_cpu(rsp.mwn);
	ibmw->rkey = le32_to_cpu(rsp.rkey);
	return 0;
}

static int vrdma_dealloc_mw(struct ib_mw *ibmw)
{
	struct virtio_rdma_dealloc_mw_req req = {
		.mwn = cpu_to_le32(to_vmw(ibmw)->mwn),
	};

	return vrdma_ctrl_destroy(to_vdev(ibmw->device),
				  VIRTIO_RDMA_CMD_DEALLOC_MW, &req, true);
}

const struct ib_device_ops vrdma_mw_ops = {
	.alloc_mw = vrdma_alloc_mw,
	.dealloc_mw = vrdma_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, vrdma_mw, ibmw),
};
