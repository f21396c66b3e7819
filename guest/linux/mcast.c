// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Multicast groups. The RDMA connection manager has the NIC join a group, so
 * that the network forwards it; the device only delivers it to queue pairs.
 */
#include "queue.h"

static void vrdma_mcast_fill(struct virtio_rdma_mcast_req *req,
			     struct ib_qp *ibqp, const union ib_gid *gid)
{
	memset(req, 0, sizeof(*req));
	req->qpn = cpu_to_le32(to_vqp(ibqp)->qpn);
	memcpy(req->gid, gid->raw, sizeof(req->gid));
}

static int vrdma_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct virtio_rdma_mcast_req req;

	vrdma_mcast_fill(&req, ibqp, gid);
	return vrdma_ctrl_do(to_vdev(ibqp->device),
			     VIRTIO_RDMA_CMD_ATTACH_MCAST, &req);
}

static int vrdma_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct virtio_rdma_mcast_req req;

	vrdma_mcast_fill(&req, ibqp, gid);
	return vrdma_ctrl_destroy(to_vdev(ibqp->device),
				  VIRTIO_RDMA_CMD_DETACH_MCAST, &req, true);
}

const struct ib_device_ops vrdma_mcast_ops = {
	.attach_mcast = vrdma_attach_mcast,
	.detach_mcast = vrdma_detach_mcast,
};
