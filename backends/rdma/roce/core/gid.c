/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The GID table, and the paths from its entries to peers.
 */
#include <glib.h>
#include "core/core.h"

/*
 * The most bytes besides the payload in an IP packet with a payload of a full
 * MTU: from IPv6 header to ICRC
 */
#define MTU_OVERHEAD (ROCE_IPV6_LEN + ROCE_UDP_LEN + ROCE_BTH_LEN + \
                      ROCE_RETH_LEN + ROCE_IMM_LEN + ROCE_ICRC_LEN)

guint roce_gid_hash(gconstpointer key)
{
    uint64_t w[2];

    memcpy(w, key, sizeof(w));
    w[0] = (w[0] ^ w[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return w[0] >> 32;
}

gboolean roce_gid_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, RDMA_GID_LEN) == 0;
}

gboolean roce_gid_entry_equal(gconstpointer a, gconstpointer b)
{
    const RoceGid *x = a, *y = b;

    return roce_gid_equal(x->gid, y->gid) && x->vlan == y->vlan;
}

RdmaMtu roce_port_mtu(const RoceEngine *e)
{
    RdmaMtu mtu = RDMA_MTU_4096;

    while (mtu > RDMA_MTU_256 &&
           rdma_mtu_bytes(mtu) + MTU_OVERHEAD > e->link_mtu) {
        mtu--;
    }
    return mtu;
}

/*
 * Rebuild the data derived from the GID table. Several entries may hold the
 * same GID, which gid_set contains once.
 */
static void gids_changed(RoceEngine *e)
{
    uint32_t i;

    g_hash_table_remove_all(e->gid_set);
    memset(e->vlans, 0, sizeof(e->vlans));
    for (i = 0; i < e->config.gid_table_len; i++) {
        if (e->gid_valid[i]) {
            g_hash_table_add(e->gid_set, &e->gids[i]);
            e->vlans[e->gids[i].vlan / 8] |= 1 << e->gids[i].vlan % 8;
        }
    }
    e->gid_serial++;
}

int roce_add_gid(RoceEngine *e, uint32_t index,
                 const uint8_t gid[RDMA_GID_LEN], uint16_t vlan)
{
    if (index >= e->config.gid_table_len || roce_gid_is_zero(gid) ||
        rdma_gid_is_multicast(gid) || vlan > RDMA_MAX_VLAN) {
        return -EINVAL;
    }
    memcpy(e->gids[index].gid, gid, RDMA_GID_LEN);
    e->gids[index].vlan = vlan;
    e->gid_valid[index] = true;
    gids_changed(e);
    return 0;
}

int roce_del_gid(RoceEngine *e, uint32_t index)
{
    if (index >= e->config.gid_table_len) {
        return -EINVAL;
    }
    if (!e->gid_valid[index]) {
        return -ENOENT;
    }
    memset(&e->gids[index], 0, sizeof(RoceGid));
    e->gid_valid[index] = false;
    gids_changed(e);
    return 0;
}

bool roce_gid_is_own(const RoceEngine *e, const uint8_t gid[RDMA_GID_LEN],
                     uint16_t vlan)
{
    RoceGid key = { .vlan = vlan };

    memcpy(key.gid, gid, RDMA_GID_LEN);
    return g_hash_table_contains(e->gid_set, &key);
}

bool roce_path_init(const RoceEngine *e, const RdmaAv *av, uint32_t sqpn,
                    uint32_t dqpn, RocePath *path)
{
    if (av->sgid_index >= e->config.gid_table_len ||
        !e->gid_valid[av->sgid_index]) {
        return false;
    }
    memcpy(path->dmac, av->dmac, RDMA_MAC_LEN);
    memcpy(path->smac, e->mac, RDMA_MAC_LEN);
    memcpy(path->sgid, e->gids[av->sgid_index].gid, RDMA_GID_LEN);
    memcpy(path->dgid, av->dgid, RDMA_GID_LEN);
    path->is_ipv4 = rdma_gid_is_ipv4(path->sgid);
    if (path->is_ipv4 != rdma_gid_is_ipv4(path->dgid)) {
        return false;
    }
    path->vlan = e->gids[av->sgid_index].vlan;
    path->pcp = path->vlan == RDMA_NO_VLAN ? 0 : av->sl & 7;
    path->traffic_class = av->traffic_class;
    path->hop_limit = av->hop_limit;
    path->flow_label = path->is_ipv4 ? 0 : av->flow_label;
    path->udp_sport = roce_udp_sport(av->flow_label, sqpn, dqpn);
    return true;
}

bool roce_get_gid(const RoceEngine *e, uint32_t index,
                  uint8_t gid[RDMA_GID_LEN], uint16_t *vlan)
{
    if (index >= e->config.gid_table_len || !e->gid_valid[index]) {
        return false;
    }
    memcpy(gid, e->gids[index].gid, RDMA_GID_LEN);
    *vlan = e->gids[index].vlan;
    return true;
}
