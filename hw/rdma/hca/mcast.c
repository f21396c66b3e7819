/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups. The backend has the lists of their members, and removes a
 * QP from them when the QP is destroyed.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "trace.h"
#include "int.h"

int rdma_hca_mcast_set(RdmaHca *hca, uint32_t qpn,
                       const uint8_t gid[RDMA_GID_LEN], bool attach)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, qpn);
    int ret;

    if (!hca->limits.max_mcast_grp) {
        return -ENOTSUP;
    }
    if (!qp) {
        return -ENOENT;
    }
    if (!rdma_hca_check_range("type of a QP of a multicast group",
                              qp->init.qp_type, RDMA_QPT_UD, RDMA_QPT_UD)) {
        return -EINVAL;
    }
    if (!rdma_gid_is_multicast(gid)) {
        rdma_hca_guest_error("QP %u: GID 0x%016" PRIx64 "%016" PRIx64 " is not "
                             "that of a multicast group", qpn, ldq_be_p(gid),
                             ldq_be_p(gid + 8));
        return -EINVAL;
    }
    ret = hca->bc->set_mcast(hca->backend, qpn, gid, attach);
    if (attach) {
        trace_rdma_hca_mcast_attach(hca->owner, qpn, ret);
    } else {
        trace_rdma_hca_mcast_detach(hca->owner, qpn, ret);
    }
    return ret;
}
