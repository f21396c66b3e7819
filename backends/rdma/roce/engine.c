/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's life cycle and its port.
 */
#include <glib.h>
#include "roce-int.h"

#define DEFAULT_LINK_MTU 1500

RoceEngine *roce_new(const RoceConfig *config, const RoceOps *ops,
                     void *opaque)
{
    RoceEngine *e = g_new0(RoceEngine, 1);

    e->config = *config;
    e->ops = *ops;
    e->opaque = opaque;
    e->consumer = ops->consumer;
    e->consumer_opaque = ops->consumer_opaque ?: opaque;
    e->link_mtu = DEFAULT_LINK_MTU;
    e->link_up = true;
    e->gids = g_new0(RoceGid, config->gid_table_len);
    e->gid_valid = g_new0(bool, config->gid_table_len);
    e->gid_set = g_hash_table_new(roce_gid_hash, roce_gid_entry_equal);
    e->mcast = roce_mcast_table_new();
    roce_table_init(&e->mrs, config->max_mr + 1);
    roce_table_init(&e->qps, config->max_qp);
    roce_table_init(&e->srqs, config->max_srq);
    e->timers = g_new0(RoceQp *, (size_t)config->max_qp + 1);
    e->cqs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_queue_init(&e->active);
    g_queue_init(&e->blocked);
    g_queue_init(&e->overdue);
    e->resume_at = ROCE_NO_DEADLINE;
    e->flush_room = ROCE_FLUSH_SLICE;
    return e;
}

void roce_reset(RoceEngine *e)
{
    RoceSrq *srq;
    RoceMr *mr;
    RoceQp *qp;

    ROCE_TABLE_FOREACH(&e->qps, qpn, qp) {
        roce_qp_free(qp);
    }
    ROCE_TABLE_FOREACH(&e->srqs, srqn, srq) {
        roce_srq_free(srq);
        roce_table_clear(&e->srqs, srqn);
    }
    ROCE_TABLE_FOREACH(&e->mrs, mrn, mr) {
        roce_mr_free(e, mr);
        roce_table_clear(&e->mrs, mrn);
    }
    e->mws_of_qps = 0;
    g_hash_table_remove_all(e->gid_set);
    memset(e->gid_valid, 0, e->config.gid_table_len * sizeof(bool));
    memset(e->gids, 0, e->config.gid_table_len * sizeof(RoceGid));
    memset(e->vlans, 0, sizeof(e->vlans));
    memset(&e->stats, 0, sizeof(e->stats));
    memset(&e->ecn, 0, sizeof(e->ecn));
    e->timeouts_late = 0;
    e->gid_serial++;
    e->frame_out = false;
    e->frame_out_completes = false;
    e->cq_failed = false;
    e->woken = false;
    e->window_closed = false;
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
    roce_table_free(&e->srqs);
    roce_table_free(&e->qps);
    roce_table_free(&e->mrs);
    g_free(e->gid_valid);
    g_free(e->gids);
    g_free(e);
}

void roce_set_mac(RoceEngine *e, const uint8_t mac[RDMA_MAC_LEN])
{
    memcpy(e->mac, mac, RDMA_MAC_LEN);
    memcpy(e->nic_mac, mac, RDMA_MAC_LEN);
    e->gid_serial++;
}

void roce_set_nic_mac(RoceEngine *e, const uint8_t mac[RDMA_MAC_LEN])
{
    memcpy(e->nic_mac, mac, RDMA_MAC_LEN);
}

void roce_set_extensions(RoceEngine *e, uint32_t extensions)
{
    e->extensions = extensions;
}

void roce_set_dcqcn(RoceEngine *e, uint32_t line_rate)
{
    RoceQp *qp;

    e->dcqcn_line = line_rate;
    /* Paths have the ECN bits. */
    e->gid_serial++;
    ROCE_TABLE_FOREACH(&e->qps, qpn, qp) {
        roce_dcqcn_end(qp);
        roce_pace_refresh(qp);
    }
}

const RoceEcnStats *roce_ecn_stats(const RoceEngine *e)
{
    return &e->ecn;
}

void roce_set_link_mtu(RoceEngine *e, uint32_t mtu)
{
    e->link_mtu = mtu;
}

void roce_set_link(RoceEngine *e, bool up)
{
    e->link_up = up;
}

bool roce_waits_for_acks(const RoceEngine *e)
{
    return e->window_closed;
}

uint64_t roce_work(const RoceEngine *e)
{
    return e->work;
}

const RoceStats *roce_stats(const RoceEngine *e)
{
    return &e->stats;
}
