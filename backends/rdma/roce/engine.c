/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's life cycle, its port and its GID table.
 */
#include <glib.h>
#include "roce-int.h"

/* What surrounds a payload in an IP packet at most: IPv6 to ICRC. */
#define MTU_OVERHEAD (ROCE_IPV6_LEN + ROCE_UDP_LEN + ROCE_BTH_LEN + \
                      ROCE_RETH_LEN + ROCE_IMM_LEN + ROCE_ICRC_LEN)
#define DEFAULT_LINK_MTU 1500

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

static gboolean own_gid_equal(gconstpointer a, gconstpointer b)
{
    const RoceGid *x = a, *y = b;

    return roce_gid_equal(x->gid, y->gid) && x->vlan == y->vlan;
}

RoceEngine *roce_new(const RoceConfig *config, const RoceOps *ops,
                     void *opaque)
{
    RoceEngine *e = g_new0(RoceEngine, 1);

    e->config = *config;
    e->ops = *ops;
    e->opaque = opaque;
    e->link_mtu = DEFAULT_LINK_MTU;
    e->link_up = true;
    e->gids = g_new0(RoceGid, config->gid_table_len);
    e->gid_valid = g_new0(bool, config->gid_table_len);
    e->gid_set = g_hash_table_new(roce_gid_hash, own_gid_equal);
    e->mcast = roce_mcast_table_new();
    e->mrs = g_new0(RoceMr *, (size_t)config->max_mr + 1);
    e->qps = g_new0(RoceQp *, config->max_qp);
    e->srqs = g_new0(RoceSrq *, config->max_srq);
    e->timers = g_new0(RoceQp *, (size_t)config->max_qp + 1);
    e->cqs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_queue_init(&e->active);
    g_queue_init(&e->parked);
    e->resume_at = ROCE_NO_DEADLINE;
    return e;
}

void roce_reset(RoceEngine *e)
{
    uint32_t i;

    for (i = 0; i < e->config.max_qp; i++) {
        if (e->qps[i]) {
            roce_qp_free(e->qps[i]);
        }
    }
    for (i = 0; i < e->config.max_srq; i++) {
        if (e->srqs[i]) {
            roce_srq_free(e->srqs[i]);
            e->srqs[i] = NULL;
        }
    }
    for (i = 1; i <= e->config.max_mr; i++) {
        if (e->mrs[i]) {
            roce_mr_free(e->mrs[i]);
            e->mrs[i] = NULL;
        }
    }
    e->mws_of_qps = 0;
    g_hash_table_remove_all(e->gid_set);
    memset(e->gid_valid, 0, e->config.gid_table_len * sizeof(bool));
    memset(e->gids, 0, e->config.gid_table_len * sizeof(RoceGid));
    memset(e->vlans, 0, sizeof(e->vlans));
    memset(&e->stats, 0, sizeof(e->stats));
    e->gid_serial++;
    e->out = false;
    e->out_completes = false;
    e->cq_failed = false;
    e->woken = false;
    e->resume_at = ROCE_NO_DEADLINE;
}

void roce_free(RoceEngine *e)
{
    if (!e) {
        return;
    }
    roce_reset(e);
    g_hash_table_destroy(e->cqs);
    g_hash_table_destroy(e->gid_set);
    g_hash_table_destroy(e->mcast);
    g_free(e->timers);
    g_free(e->srqs);
    g_free(e->qps);
    g_free(e->mrs);
    g_free(e->gid_valid);
    g_free(e->gids);
    g_free(e);
}

void roce_set_mac(RoceEngine *e, const uint8_t mac[RDMA_MAC_LEN])
{
    memcpy(e->mac, mac, RDMA_MAC_LEN);
    e->gid_serial++;
}

void roce_set_extensions(RoceEngine *e, uint32_t extensions)
{
    e->extensions = extensions;
}

void roce_set_link_mtu(RoceEngine *e, uint32_t mtu)
{
    e->link_mtu = mtu;
}

void roce_set_link(RoceEngine *e, bool up)
{
    e->link_up = up;
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

const RoceStats *roce_stats(const RoceEngine *e)
{
    return &e->stats;
}

/* Several entries may hold the same GID; the set has it once. */
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
        rdma_gid_is_multicast(gid) || vlan > ROCE_MAX_VLAN) {
        return -EINVAL;
    }
    g_hash_table_remove_all(e->gid_set);
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
    g_hash_table_remove_all(e->gid_set);
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

bool roce_is_ours(const RoceEngine *e, const uint8_t *frame, size_t len)
{
    uint8_t dgid[RDMA_GID_LEN];
    uint16_t vlan;

    if (!roce_peek(frame, len, dgid, &vlan)) {
        return false;
    }
    if (g_hash_table_size(e->mcast) && rdma_gid_is_multicast(dgid)) {
        return roce_mcast_find(e, dgid, vlan) != NULL;
    }
    return roce_gid_is_own(e, dgid, vlan);
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

void roce_wake(RoceEngine *e)
{
    if (!e->woken) {
        e->woken = true;
        e->ops.wake(e->opaque);
    }
}

void roce_settle(RoceEngine *e)
{
    uint32_t i;

    /* Flushing may make the next CQ fail */
    while (e->cq_failed) {
        e->cq_failed = false;
        for (i = 0; i < e->config.max_qp; i++) {
            RoceQp *qp = e->qps[i];

            if (qp && (qp->send_cq->dead || qp->recv_cq->dead) &&
                qp->s.attr.qp_state != RDMA_QPS_RESET &&
                qp->s.attr.qp_state != RDMA_QPS_ERR) {
                roce_qp_enter_err(qp);
                roce_qp_event(qp, RDMA_EVENT_QP_FATAL);
            }
        }
    }
}
