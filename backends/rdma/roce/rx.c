/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes in: frames are checked and given to their QP (IBTA 9.6).
 */
#include <glib.h>
#include "icrc.h"
#include "roce-int.h"

static RoceTransport qp_transport(const RoceQp *qp)
{
    switch (qp->init.qp_type) {
    case RDMA_QPT_RC:
        return ROCE_RC;
    case RDMA_QPT_UC:
        return ROCE_UC;
    default:
        return ROCE_UD;
    }
}

static bool state_receives(const RoceQp *qp, bool request)
{
    switch (qp->s.attr.qp_state) {
    case RDMA_QPS_RTR:
        return request;
    case RDMA_QPS_RTS:
    case RDMA_QPS_SQD:
    case RDMA_QPS_SQE:
        return true;
    default:
        return false;
    }
}

/* A connected QP hears its peer only (IBTA 9.6.1.2). */
static bool from_peer(RoceQp *qp, const RocePath *path)
{
    roce_qp_refresh_path(qp);
    return qp->path_ok &&
           memcmp(path->sgid, qp->path.dgid, RDMA_GID_LEN) == 0 &&
           memcmp(path->dgid, qp->path.sgid, RDMA_GID_LEN) == 0 &&
           path->vlan == qp->path.vlan;
}

/* The top bit says full or limited member; we are full (IBTA 10.9.3). */
static bool pkey_ok(RoceEngine *e, const RocePacket *pkt)
{
    if ((pkt->bth.pkey ^ RDMA_DEFAULT_PKEY) & 0x7fff) {
        e->stats.bad_pkey++;
        e->stats.rx_dropped++;
        return false;
    }
    return true;
}

void roce_deliver_copies(RoceEngine *e, const RocePacket *pkt,
                         const RoceQp *from)
{
    const RoceMcast *group = roce_mcast_find(e, pkt->path.dgid,
                                             pkt->path.vlan);
    guint i;

    if (!group || pkt->bth.dqpn != RDMA_QPN_MCAST) {
        return;
    }
    e->stats.loopback_frames++;
    for (i = 0; i < group->qps->len; i++) {
        RoceQp *qp = group->qps->pdata[i];

        if ((qp != from || !qp->init.block_mcast_loopback) &&
            state_receives(qp, true)) {
            roce_ud_rx(qp, pkt);
        }
    }
    roce_settle(e);
}

/*
 * Each QP of the group gets its copy, or not: no buffer or a wrong Q_Key is
 * one QP's own matter (IBTA 9.6.1.3, 10.5.2). The network may bring back what
 * this port sent; its QPs had their copies then.
 */
static void rx_multicast(RoceEngine *e, const RocePacket *pkt)
{
    const RoceMcast *group = roce_mcast_find(e, pkt->path.dgid,
                                             pkt->path.vlan);
    guint i;

    if (!group || pkt->info->transport != ROCE_UD ||
        memcmp(pkt->path.smac, e->mac, RDMA_MAC_LEN) == 0) {
        e->stats.rx_dropped++;
        return;
    }
    if (!pkey_ok(e, pkt)) {
        return;
    }
    e->stats.rx_mcast_frames++;
    for (i = 0; i < group->qps->len; i++) {
        RoceQp *qp = group->qps->pdata[i];

        if (state_receives(qp, true)) {
            roce_ud_rx(qp, pkt);
        }
    }
    roce_settle(e);
}

void roce_deliver(RoceEngine *e, const RocePacket *pkt, int64_t now)
{
    RoceQp *qp = roce_qp_find(e, pkt->bth.dqpn);
    bool request = pkt->info->flags & ROCE_OP_REQUEST;

    if (!qp || pkt->info->transport != qp_transport(qp) ||
        !state_receives(qp, request)) {
        e->stats.rx_dropped++;
        return;
    }
    if (!pkey_ok(e, pkt)) {
        return;
    }
    if (roce_is_ud(qp)) {
        roce_ud_rx(qp, pkt);
    } else if (!from_peer(qp, &pkt->path)) {
        e->stats.rx_dropped++;
    } else if (request) {
        roce_resp_rx(qp, pkt);
    } else {
        roce_req_rx(qp, pkt, now);
    }
    roce_settle(e);
}

void roce_rx(RoceEngine *e, const uint8_t *frame, size_t len, int64_t now)
{
    RocePacket pkt;

    e->stats.rx_frames++;
    e->stats.rx_bytes += len;
    if (!e->link_up) {
        e->stats.rx_dropped++;
        return;
    }
    if (roce_parse(frame, len, &pkt) != ROCE_PARSE_OK) {
        e->stats.rx_malformed++;
        return;
    }
    if (!roce_icrc_ok(&pkt)) {
        e->stats.rx_icrc_errors++;
        return;
    }
    if (pkt.bth.dqpn == RDMA_QPN_MCAST) {
        rx_multicast(e, &pkt);
    } else {
        roce_deliver(e, &pkt, now);
    }
}
