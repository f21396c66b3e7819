/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands of the port and its GIDs.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "int.h"

int pvrdma_query_port(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdQueryPort *cmd = req;
    PvrdmaRspQueryPort *p = rsp;
    uint64_t counters[RDMA_NUM_COUNTERS];
    RdmaPortAttr attr = {};
    int ret;

    if (!rdma_hca_check_port(cmd->port)) {
        return -EINVAL;
    }
    ret = rdma_hca_port_query(&s->hca, &attr);
    rdma_hca_counters_get(&s->hca, counters);
    p->state = cpu_to_le32(attr.state);
    p->max_mtu = cpu_to_le32(attr.max_mtu);
    p->active_mtu = cpu_to_le32(attr.active_mtu);
    p->gid_tbl_len = cpu_to_le32(s->hca.limits.gid_table_len);
    p->max_msg_sz = cpu_to_le32(attr.max_msg_sz);
    p->bad_pkey = cpu_to_le32(MIN(counters[RDMA_COUNTER_BAD_PKEY],
                                  UINT32_MAX));
    p->qkey_viol = cpu_to_le32(MIN(counters[RDMA_COUNTER_BAD_QKEY],
                                   UINT32_MAX));
    p->pkey_tbl_len = cpu_to_le16(1);
    p->width = attr.active_width;
    p->speed = MIN(attr.active_speed, UINT8_MAX);
    p->phys_state = attr.state == RDMA_PORT_ACTIVE ? PVRDMA_PHYS_LINK_UP
                                                   : PVRDMA_PHYS_DISABLED;
    return ret;
}

int pvrdma_query_pkey(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdQueryPort *cmd = req;
    PvrdmaRspQueryPkey *p = rsp;

    if (!rdma_hca_check_port(cmd->port) ||
        !rdma_hca_check_range("index", cmd->index, 0, 0)) {
        return -EINVAL;
    }
    p->pkey = cpu_to_le16(RDMA_DEFAULT_PKEY);
    return 0;
}

/* Drivers name no VLAN: what they give for it is a constant. */
int pvrdma_create_bind(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdCreateBind *cmd = req;

    if (!rdma_hca_check_range("gid_type", cmd->gid_type,
                              PVRDMA_GID_TYPE_ROCE_V2,
                              PVRDMA_GID_TYPE_ROCE_V2)) {
        return -ENOTSUP;
    }
    return rdma_hca_gid_add(&s->hca, le32_to_cpu(cmd->index), cmd->gid,
                            RDMA_NO_VLAN);
}

int pvrdma_destroy_bind(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdDestroyBind *cmd = req;

    return rdma_hca_gid_del(&s->hca, le32_to_cpu(cmd->index));
}
