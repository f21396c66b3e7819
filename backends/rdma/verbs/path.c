/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Translation of paths: guest and host have different indices for a GID.
 */
#include "qemu/osdep.h"
#include "int.h"

int verbs_gid_host_index(RdmaVerbs *v, uint32_t index)
{
    if (index >= v->parent_obj.limits.gid_table_len ||
        !v->gids[index].used || v->gids[index].host_index == VERBS_NO_GID) {
        return -ENOENT;
    }
    return v->gids[index].host_index;
}

bool verbs_gid_of_host(RdmaVerbs *v, uint32_t host_index,
                       uint8_t gid[RDMA_GID_LEN], uint16_t *vlan)
{
    for (uint32_t i = 0; i < v->parent_obj.limits.gid_table_len; i++) {
        const VerbsGid *g = &v->gids[i];

        if (g->used && g->host_index == host_index) {
            memcpy(gid, g->key.gid, RDMA_GID_LEN);
            *vlan = g->key.vlan;
            return true;
        }
    }
    return false;
}

bool verbs_gid_is_guests(RdmaVerbs *v, const uint8_t gid[RDMA_GID_LEN])
{
    for (uint32_t i = 0; i < v->parent_obj.limits.gid_table_len; i++) {
        if (verbs_gid_host_index(v, i) >= 0 &&
            !memcmp(v->gids[i].key.gid, gid, RDMA_GID_LEN)) {
            return true;
        }
    }
    return false;
}

int verbs_gid_path(RdmaVerbs *v, const RdmaAv *av, struct ibv_ah_attr *ah)
{
    int index = verbs_gid_host_index(v, av->sgid_index);

    if (index < 0 || av->port_num != RDMA_PORT_NUM) {
        return -EINVAL;
    }
    ah->grh.flow_label = av->flow_label;
    ah->grh.sgid_index = index;
    ah->grh.hop_limit = av->hop_limit;
    ah->grh.traffic_class = av->traffic_class;
    memcpy(ah->grh.dgid.raw, av->dgid, RDMA_GID_LEN);
    ah->sl = av->sl;
    ah->static_rate = av->static_rate;
    ah->is_global = 1;
    ah->port_num = v->port_num;
    return 0;
}
