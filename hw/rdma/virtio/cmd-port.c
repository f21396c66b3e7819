/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control commands of the port, its GIDs, and counters.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "cmd.h"

/* The guest ABI and the core have the same counters in the same order. */
QEMU_BUILD_BUG_ON((int)RDMA_NUM_COUNTERS != (int)VIRTIO_RDMA_NUM_COUNTERS);
QEMU_BUILD_BUG_ON((int)RDMA_COUNTER_RX_ICRC_ERRORS !=
                  (int)VIRTIO_RDMA_RX_ICRC_ERRORS);
QEMU_BUILD_BUG_ON((int)RDMA_COUNTER_RX_MCAST_PACKETS !=
                  (int)VIRTIO_RDMA_RX_MCAST_PACKETS);

#define PHYS_STATE_DISABLED 3
#define PHYS_STATE_LINK_UP  5
/* Connection management (CM) is supported. */
#define PORT_CAP_CM         (1u << 16)

int virtio_rdma_port_query(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    RdmaPortAttr *attr = &rsp->port.attr;
    uint64_t counters[RDMA_NUM_COUNTERS];
    int ret;

    if (!rdma_hca_check_port(req->query_port.port)) {
        return -EINVAL;
    }
    rsp->port.gid_tbl_len = s->hca.limits.gid_table_len;
    rsp->port.pkey_tbl_len = 1;
    rsp->port.port_cap_flags = PORT_CAP_CM;
    ret = rdma_hca_port_query(&s->hca, attr);
    rdma_hca_counters_get(&s->hca, counters);
    rsp->port.bad_pkey_cntr = MIN(counters[RDMA_COUNTER_BAD_PKEY], UINT32_MAX);
    rsp->port.qkey_viol_cntr = MIN(counters[RDMA_COUNTER_BAD_QKEY],
                                   UINT32_MAX);
    rsp->port.phys_state = attr->state == RDMA_PORT_ACTIVE
                           ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED;
    return ret;
}

int virtio_rdma_pkey_query(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    if (!rdma_hca_check_port(req->query_pkey.port) ||
        !rdma_hca_check_range("index", req->query_pkey.index, 0, 0)) {
        return -EINVAL;
    }
    rsp->query_pkey.pkey = RDMA_DEFAULT_PKEY;
    return 0;
}

int virtio_rdma_gid_add(VirtIORdma *s, const VirtIORdmaReq *req,
                        VirtIORdmaRsp *rsp)
{
    static const uint8_t zero[RDMA_GID_LEN];
    int ret;

    if (!rdma_hca_check_port(req->gid.port)) {
        return -EINVAL;
    }
    if (!memcmp(req->gid.gid, zero, sizeof(zero))) {
        ret = rdma_hca_gid_del(&s->hca, req->gid.index);
        return ret == -ENOENT ? 0 : ret;
    }
    if (req->gid.gid_type != VIRTIO_RDMA_GID_TYPE_ROCE_V2) {
        return -ENOTSUP;
    }
    return rdma_hca_gid_add(&s->hca, req->gid.index, req->gid.gid,
                            virtio_rdma_is_v1(s) ? req->gid.vlan
                                                 : RDMA_NO_VLAN);
}

int virtio_rdma_gid_del(VirtIORdma *s, const VirtIORdmaReq *req,
                        VirtIORdmaRsp *rsp)
{
    return rdma_hca_check_port(req->gid.port)
           ? rdma_hca_gid_del(&s->hca, req->gid.index) : -EINVAL;
}

int virtio_rdma_counters_query(VirtIORdma *s, const VirtIORdmaReq *req,
                               VirtIORdmaRsp *rsp)
{
    int ret;

    if (!rdma_hca_check_port(req->query_port.port)) {
        return -EINVAL;
    }
    ret = rdma_hca_counters_update(&s->hca);
    if (!ret) {
        rdma_hca_counters_get(&s->hca, rsp->counters);
    }
    return ret;
}

int virtio_rdma_qp_counters_query(VirtIORdma *s, const VirtIORdmaReq *req,
                                  VirtIORdmaRsp *rsp)
{
    uint32_t n = req->qp_counters.num_qps;

    if (!rdma_hca_check_range("num_qps", n, 1, VIRTIO_RDMA_MAX_COUNTER_QPS)) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t qpn = req->qp_counters.qpn[i];

        if (!rdma_hca_table_get(&s->hca.qps, qpn)) {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: counters of queue "
                          "pair %u, which does not exist\n", qpn);
            return -ENOENT;
        }
        if (s->hca.bc->query_counters(s->hca.backend, qpn, rsp->counters)) {
            return -ENOENT;
        }
    }
    return 0;
}
