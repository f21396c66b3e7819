/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups. The backend has the list of their members, and removes a QP
 * that is destroyed.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-object.h"

static int check(VirtIORdma *s, const VirtIORdmaReq *req)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, req->mcast.qpn);

    if (!qp) {
        return -ENOENT;
    }
    if (!virtio_rdma_check_range("type of a QP of a multicast group",
                                 qp->init.qp_type, RDMA_QPT_UD,
                                 RDMA_QPT_UD)) {
        return -EINVAL;
    }
    if (!rdma_gid_is_multicast(req->mcast.gid)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: QP %u: GID 0x%016" PRIx64
                      "%016" PRIx64 " is not that of a multicast group\n",
                      qp->init.qpn, ldq_be_p(req->mcast.gid),
                      ldq_be_p(req->mcast.gid + 8));
        return -EINVAL;
    }
    return 0;
}

int virtio_rdma_mcast_attach(VirtIORdma *s, const VirtIORdmaReq *req,
                             VirtIORdmaRsp *rsp)
{
    int ret = check(s, req);

    if (!ret) {
        ret = s->hca.bc->set_mcast(s->hca.backend, req->mcast.qpn,
                                   req->mcast.gid, true);
        trace_virtio_rdma_mcast_attach(s, req->mcast.qpn, ret);
    }
    return ret;
}

int virtio_rdma_mcast_detach(VirtIORdma *s, const VirtIORdmaReq *req,
                             VirtIORdmaRsp *rsp)
{
    int ret = check(s, req);

    if (!ret) {
        ret = s->hca.bc->set_mcast(s->hca.backend, req->mcast.qpn,
                                   req->mcast.gid, false);
        trace_virtio_rdma_mcast_detach(s, req->mcast.qpn, ret);
    }
    return ret;
}
