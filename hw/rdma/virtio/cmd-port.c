/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Control commands of the port, its GIDs, and counters.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
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

int virtio_rdma_port_query(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_query_port_req *cmd = req;
    struct virtio_rdma_query_port_rsp *p = rsp;
    uint64_t counters[RDMA_NUM_COUNTERS];
    RdmaPortAttr attr = {};
    int ret;

    if (!rdma_hca_check_port(cmd->port)) {
        return -EINVAL;
    }
    ret = rdma_hca_port_query(&s->hca, &attr);
    rdma_hca_counters_get(&s->hca, counters);
    *p = (struct virtio_rdma_query_port_rsp) {
        .state = attr.state,
        .max_mtu = attr.max_mtu,
        .active_mtu = attr.active_mtu,
        .phys_mtu = cpu_to_le32(attr.phys_mtu),
        .gid_tbl_len = cpu_to_le32(s->hca.limits.gid_table_len),
        .port_cap_flags = cpu_to_le32(PORT_CAP_CM),
        .max_msg_sz = cpu_to_le32(attr.max_msg_sz),
        .bad_pkey_cntr = cpu_to_le32(MIN(counters[RDMA_COUNTER_BAD_PKEY],
                                         UINT32_MAX)),
        .qkey_viol_cntr = cpu_to_le32(MIN(counters[RDMA_COUNTER_BAD_QKEY],
                                          UINT32_MAX)),
        .pkey_tbl_len = cpu_to_le16(1),
        .active_width = attr.active_width,
        .active_speed = cpu_to_le16(attr.active_speed),
        .phys_state = attr.state == RDMA_PORT_ACTIVE ? PHYS_STATE_LINK_UP
                                                     : PHYS_STATE_DISABLED,
    };
    return ret;
}

int virtio_rdma_pkey_query(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_query_pkey_req *cmd = req;
    struct virtio_rdma_query_pkey_rsp *p = rsp;

    p->pkey = cpu_to_le16(RDMA_DEFAULT_PKEY);
    return rdma_hca_check_port(le32_to_cpu(cmd->port)) &&
           rdma_hca_check_range("index", le16_to_cpu(cmd->index), 0, 0)
           ? 0 : -EINVAL;
}

int virtio_rdma_gid_add(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_add_gid_req *cmd = req;
    uint16_t index = le16_to_cpu(cmd->index);
    int ret;

    if (!rdma_hca_check_port(le32_to_cpu(cmd->port_num))) {
        return -EINVAL;
    }
    if (buffer_is_zero(cmd->gid, sizeof(cmd->gid))) {
        ret = rdma_hca_gid_del(&s->hca, index);
        return ret == -ENOENT ? 0 : ret;
    }
    if (le32_to_cpu(cmd->gid_type) != VIRTIO_RDMA_GID_TYPE_ROCE_V2) {
        return -ENOTSUP;
    }
    return rdma_hca_gid_add(&s->hca, index, cmd->gid,
                            virtio_rdma_is_v1(s) ? le16_to_cpu(cmd->vlan)
                                                 : RDMA_NO_VLAN);
}

int virtio_rdma_gid_del(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_del_gid_req *cmd = req;

    return rdma_hca_check_port(le32_to_cpu(cmd->port_num))
           ? rdma_hca_gid_del(&s->hca, le16_to_cpu(cmd->index)) : -EINVAL;
}

static void put_counters(uint8_t *rsp, const uint64_t *counters)
{
    for (unsigned i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        stq_le_p(rsp + i * sizeof(*counters), counters[i]);
    }
}

int virtio_rdma_counters_query(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_query_counters_req *cmd = req;
    uint64_t counters[RDMA_NUM_COUNTERS];
    int ret;

    if (!rdma_hca_check_port(cmd->port)) {
        return -EINVAL;
    }
    ret = rdma_hca_counters_update(&s->hca);
    if (!ret) {
        rdma_hca_counters_get(&s->hca, counters);
        put_counters(rsp, counters);
    }
    return ret;
}

int virtio_rdma_qp_counters_query(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_query_qp_counters_req *cmd = req;
    uint64_t counters[RDMA_NUM_COUNTERS] = {};
    uint32_t n = le32_to_cpu(cmd->num_qps);

    if (!rdma_hca_check_range("num_qps", n, 1, VIRTIO_RDMA_MAX_COUNTER_QPS)) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (rdma_hca_counters_add_qp(&s->hca, le32_to_cpu(cmd->qpn[i]),
                                     counters)) {
            return -ENOENT;
        }
    }
    put_counters(rsp, counters);
    return 0;
}
