/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups: the QPs that get copies of datagrams to an address (IBTA
 * 10.5.2). The engine does not join groups in the network.
 */
#include <string.h>
#include <glib.h>
#include "queue/queue.h"

static void mcast_free(gpointer data)
{
    RoceMcast *group = data;

    g_ptr_array_free(group->qps, TRUE);
    g_free(group);
}

GHashTable *roce_mcast_table_new(void)
{
    return g_hash_table_new_full(roce_gid_hash, roce_gid_equal, NULL,
                                 mcast_free);
}

const RoceMcast *roce_mcast_find(const RoceEngine *e,
                                 const uint8_t gid[RDMA_GID_LEN],
                                 uint16_t vlan)
{
    if (vlan != RDMA_NO_VLAN && !(e->vlans[vlan / 8] & 1 << vlan % 8)) {
        return NULL;
    }
    return g_hash_table_lookup(e->mcast, gid);
}

static int find_ud(const RoceEngine *e, uint32_t qpn, RoceQp **qp)
{
    *qp = roce_qp_find(e, qpn);
    if (!*qp) {
        return -ENOENT;
    }
    return (*qp)->init.qp_type == RDMA_QPT_UD ? 0 : -EINVAL;
}

int roce_mcast_attach(RoceEngine *e, uint32_t qpn,
                      const uint8_t gid[RDMA_GID_LEN])
{
    RoceMcast *group;
    RoceQp *qp;
    int ret = find_ud(e, qpn, &qp);

    if (ret) {
        return ret;
    }
    if (!rdma_gid_is_multicast(gid)) {
        return -EINVAL;
    }
    group = g_hash_table_lookup(e->mcast, gid);
    if (group && g_ptr_array_find(group->qps, qp, NULL)) {
        return -EINVAL;
    }
    if ((group ? group->qps->len : 0) >= e->config.max_mcast_qp_attach ||
        (!group && g_hash_table_size(e->mcast) >= e->config.max_mcast_grp)) {
        return -ENOSPC;
    }
    if (!group) {
        group = g_new0(RoceMcast, 1);
        memcpy(group->gid, gid, RDMA_GID_LEN);
        group->qps = g_ptr_array_new();
        g_hash_table_insert(e->mcast, group->gid, group);
    }
    g_ptr_array_add(group->qps, qp);
    return 0;
}

int roce_mcast_detach(RoceEngine *e, uint32_t qpn,
                      const uint8_t gid[RDMA_GID_LEN])
{
    RoceMcast *group;
    RoceQp *qp;
    int ret = find_ud(e, qpn, &qp);

    if (ret) {
        return ret;
    }
    group = g_hash_table_lookup(e->mcast, gid);
    if (!group || !g_ptr_array_remove(group->qps, qp)) {
        return -EINVAL;
    }
    if (!group->qps->len) {
        g_hash_table_remove(e->mcast, gid);
    }
    return 0;
}

static gboolean leave(gpointer key G_GNUC_UNUSED, gpointer value,
                      gpointer qp)
{
    RoceMcast *group = value;

    g_ptr_array_remove(group->qps, qp);
    return !group->qps->len;
}

void roce_mcast_leave_all(RoceQp *qp)
{
    g_hash_table_foreach_remove(qp->e->mcast, leave, qp);
}

uint32_t roce_get_mcast(const RoceEngine *e, uint32_t qpn,
                        uint8_t (*gids)[RDMA_GID_LEN], uint32_t max)
{
    const RoceQp *qp = roce_qp_find(e, qpn);
    GHashTableIter iter;
    gpointer value;
    uint32_t n = 0;

    g_hash_table_iter_init(&iter, e->mcast);
    while (n < max && g_hash_table_iter_next(&iter, NULL, &value)) {
        const RoceMcast *group = value;

        if (qp && g_ptr_array_find(group->qps, qp, NULL)) {
            memcpy(gids[n++], group->gid, RDMA_GID_LEN);
        }
    }
    return n;
}
