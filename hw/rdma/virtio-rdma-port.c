/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port of a virtio-rdma device: its attributes, GIDs and counters, also of
 * queue pairs.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/sockets.h"
#include "virtio-rdma-object.h"

/* The guest ABI has the counters of the core, as they are. */
QEMU_BUILD_BUG_ON((int)RDMA_NUM_COUNTERS != (int)VIRTIO_RDMA_NUM_COUNTERS);
QEMU_BUILD_BUG_ON((int)RDMA_COUNTER_RX_ICRC_ERRORS !=
                  (int)VIRTIO_RDMA_RX_ICRC_ERRORS);
QEMU_BUILD_BUG_ON((int)RDMA_COUNTER_RX_MCAST_PACKETS !=
                  (int)VIRTIO_RDMA_RX_MCAST_PACKETS);

#define PHYS_STATE_DISABLED 3
#define PHYS_STATE_LINK_UP  5
/* Connection management (CM) is supported. */
#define PORT_CAP_CM         (1u << 16)

static bool check_port(uint32_t port)
{
    return virtio_rdma_check_range("port", port, RDMA_PORT_NUM,
                                   RDMA_PORT_NUM);
}

static bool check_index(VirtIORdma *s, uint32_t index)
{
    return virtio_rdma_check_range("index", index, 0,
                                   s->hca.limits.gid_table_len - 1);
}

int virtio_rdma_port_query(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    RdmaPortAttr *attr = &rsp->port.attr;
    int ret;

    if (!check_port(req->query_port.port)) {
        return -EINVAL;
    }
    ret = rdma_hca_counters_update(&s->hca);
    if (ret) {
        return ret;
    }
    s->hca.bc->query_port(s->hca.backend, attr);
    rsp->port.gid_tbl_len = s->hca.limits.gid_table_len;
    rsp->port.pkey_tbl_len = 1;
    rsp->port.port_cap_flags = PORT_CAP_CM;
    rsp->port.phys_state = attr->state == RDMA_PORT_ACTIVE
                             ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED;
    return 0;
}

int virtio_rdma_pkey_query(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    if (!check_port(req->query_pkey.port) ||
        !virtio_rdma_check_range("index", req->query_pkey.index, 0, 0)) {
        return -EINVAL;
    }
    rsp->query_pkey.pkey = RDMA_DEFAULT_PKEY;
    return 0;
}

static void refuse_gid(uint32_t index, const uint8_t gid[RDMA_GID_LEN])
{
    char text[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, gid, text, sizeof(text));
    qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: GID %u: %s is none of "
                  "allowed-gids\n", index, text);
}

int virtio_rdma_gid_add(VirtIORdma *s, const VirtIORdmaReq *req,
                        VirtIORdmaRsp *rsp)
{
    static const uint8_t zero[RDMA_GID_LEN];
    uint32_t index = req->gid.index;
    uint16_t vlan = RDMA_NO_VLAN;

    if (!check_port(req->gid.port) || !check_index(s, index)) {
        return -EINVAL;
    }
    if (!memcmp(req->gid.gid, zero, sizeof(zero))) {
        int ret = s->hca.bc->destroy(s->hca.backend, RDMA_OBJECT_GID, index);

        return ret == -ENOENT ? 0 : ret;
    }
    if (req->gid.gid_type != VIRTIO_RDMA_GID_TYPE_ROCE_V2) {
        return -ENOTSUP;
    }
    if (virtio_rdma_has(s, VIRTIO_RDMA_F_GID_VLAN)) {
        vlan = req->gid.vlan;
    }
    if (!virtio_rdma_check_range("vlan", vlan, 0, RDMA_MAX_VLAN)) {
        return -EINVAL;
    }
    if (!virtio_rdma_gid_allowed(s, req->gid.gid)) {
        refuse_gid(index, req->gid.gid);
        return -EPERM;
    }
    return s->hca.bc->add_gid(s->hca.backend, index, req->gid.gid, vlan);
}

int virtio_rdma_gid_del(VirtIORdma *s, const VirtIORdmaReq *req,
                        VirtIORdmaRsp *rsp)
{
    if (!check_port(req->gid.port) || !check_index(s, req->gid.index)) {
        return -EINVAL;
    }
    return s->hca.bc->destroy(s->hca.backend, RDMA_OBJECT_GID, req->gid.index);
}

int virtio_rdma_counters_query(VirtIORdma *s, const VirtIORdmaReq *req,
                               VirtIORdmaRsp *rsp)
{
    int ret;

    if (!check_port(req->query_port.port)) {
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

    if (!virtio_rdma_check_range("num_qps", n, 1,
                                 VIRTIO_RDMA_MAX_COUNTER_QPS)) {
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
