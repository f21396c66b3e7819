/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port: its attributes and GIDs.
 */
#include "qemu/osdep.h"
#include "qemu/sockets.h"
#include "trace.h"
#include "int.h"

static bool check_index(RdmaHca *hca, uint32_t index)
{
    return rdma_hca_check_range("index", index, 0,
                                hca->limits.gid_table_len - 1);
}

bool rdma_hca_check_port(uint32_t port)
{
    return rdma_hca_check_range("port", port, RDMA_PORT_NUM, RDMA_PORT_NUM);
}

int rdma_hca_port_query(RdmaHca *hca, RdmaPortAttr *attr)
{
    int ret = rdma_hca_counters_update(hca);

    if (!ret) {
        rdma_hca_port_get(hca, attr);
    }
    return ret;
}

void rdma_hca_guid_from_mac(uint8_t guid[8], const uint8_t mac[RDMA_MAC_LEN])
{
    memcpy(guid, mac, 3);
    guid[0] ^= 2;
    guid[3] = 0xff;
    guid[4] = 0xfe;
    memcpy(guid + 5, mac + 3, 3);
}

static void refuse_gid(uint32_t index, const uint8_t gid[RDMA_GID_LEN])
{
    char text[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, gid, text, sizeof(text));
    rdma_hca_guest_error("GID %u: %s is not in allowed-gids", index, text);
}

int rdma_hca_gid_add(RdmaHca *hca, uint32_t index,
                     const uint8_t gid[RDMA_GID_LEN], uint16_t vlan)
{
    if (!check_index(hca, index) ||
        !rdma_hca_check_range("vlan", vlan, 0, RDMA_MAX_VLAN)) {
        return -EINVAL;
    }
    if (!rdma_hca_gid_allowed(hca, gid)) {
        refuse_gid(index, gid);
        return -EPERM;
    }
    return hca->bc->add_gid(hca->backend, index, gid, vlan);
}

int rdma_hca_gid_del(RdmaHca *hca, uint32_t index)
{
    return check_index(hca, index)
           ? hca->bc->destroy(hca->backend, RDMA_OBJECT_GID, index) : -EINVAL;
}

void rdma_hca_port_changed(RdmaHca *hca)
{
    RdmaPortAttr port = {};

    if (hca->unrealizing) {
        return;
    }
    hca->port_changed = !hca->ops->port_changed(hca);
    if (!hca->port_changed) {
        rdma_hca_port_get(hca, &port);
        trace_rdma_hca_port_changed(hca->owner, port.state, port.phys_mtu);
        rdma_hca_port_check(hca);
    }
}
