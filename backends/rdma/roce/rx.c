/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reception: frames are checked and delivered to their QP (IBTA 9.6).
 */
#include <glib.h>
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

/* A connected QP accepts packets only from its peer (IBTA 9.6.1.2). */
static bool is_from_peer(RoceQp *qp, const RocePath *path)
{
    roce_qp_refresh_path(qp);
    return qp->path_ok &&
           memcmp(path->sgid, qp->path.dgid, RDMA_GID_LEN) == 0 &&
           memcmp(path->dgid, qp->path.sgid, RDMA_GID_LEN) == 0 &&
           path->vlan == qp->path.vlan;
}

/*
 * Is the destination MAC address that of the port, or a multicast one for a
 * multicast GID? Hubs, and switches that do not know a destination, send frames
 * to all ports. A port may also receive frames for an IP address that has moved
 * to another port.
 */
static bool is_to_port(const RoceEngine *e, const uint8_t dmac[RDMA_MAC_LEN],
                       const uint8_t dgid[RDMA_GID_LEN])
{
    if (rdma_gid_is_multicast(dgid)) {
        return dmac[0] & 1;
    }
    return memcmp(dmac, e->mac, RDMA_MAC_LEN) == 0 ||
           memcmp(dmac, e->nic_mac, RDMA_MAC_LEN) == 0;
}

/*
 * Does the P_Key match? Its top bit distinguishes full and limited members. The
 * port is a full member, which accepts both (IBTA 10.9.3).
 */
static bool pkey_ok(RoceEngine *e, const RocePacket *pkt)
{
    if ((pkt->bth.pkey ^ RDMA_DEFAULT_PKEY) & 0x7fff) {
        e->stats.bad_pkey++;
        roce_rx_drop(e, &pkt->bth, "wrong P_Key");
        return false;
    }
    return true;
}

/*
 * Deliver copies to the QPs of a group. A QP without a buffer, or with another
 * Q_Key, gets no copy; the other QPs still do (IBTA 9.6.1.3, 10.5.2). @from is
 * the QP of this engine that has sent the packet, or NULL.
 */
static void copy_to_group(RoceEngine *e, const RoceMcast *group,
                          const RocePacket *pkt, const RoceQp *from)
{
    bool blocked = from && from->init.block_mcast_loopback;
    guint i;

    for (i = 0; i < group->qps->len; i++) {
        RoceQp *qp = group->qps->pdata[i];

        e->work += RDMA_WORK_POLL;
        if (!(blocked && qp == from) && roce_state_receives(qp, true)) {
            e->work += RDMA_WORK_WR + pkt->payload_len;
            roce_ud_rx(qp, pkt);
        }
    }
    roce_cq_fail_qps(e);
}

/* QPs of this port get their copies when the packet is sent. */
void roce_deliver_copies(RoceEngine *e, const RocePacket *pkt, RoceQp *from)
{
    const RoceMcast *group = roce_mcast_find(e, pkt->path.dgid,
                                             pkt->path.vlan);

    if (!group || pkt->bth.dqpn != RDMA_QPN_MCAST) {
        return;
    }
    roce_qp_count(from, loopback_frames);
    copy_to_group(e, group, pkt, from);
}

/*
 * Receive a multicast frame. The network may return a frame that this port has
 * sent; it is dropped, because roce_deliver_copies() has delivered it.
 */
static void rx_multicast(RoceEngine *e, const RocePacket *pkt)
{
    const RoceMcast *group = roce_mcast_find(e, pkt->path.dgid,
                                             pkt->path.vlan);

    if (memcmp(pkt->path.smac, e->mac, RDMA_MAC_LEN) == 0) {
        roce_rx_drop(e, &pkt->bth, "a multicast of this port that came back");
        return;
    }
    if (!group || pkt->info->transport != ROCE_UD) {
        roce_rx_drop(e, &pkt->bth, "not a multicast to a group of this port");
        return;
    }
    if (!pkey_ok(e, pkt)) {
        return;
    }
    e->stats.rx_mcast_frames++;
    copy_to_group(e, group, pkt, NULL);
}

static void deliver_connected(RoceQp *qp, const RocePacket *pkt, bool request,
                              int64_t now)
{
    if (pkt->info->flags & ROCE_OP_CNP) {
        roce_cnp_rx(qp, pkt, now);
        return;
    }
    if ((pkt->path.traffic_class & ROCE_ECN_MASK) == ROCE_ECN_CE) {
        roce_cnp_marked(qp, now);
    }
    if (request) {
        roce_resp_rx(qp, pkt);
    } else {
        roce_req_rx(qp, pkt, now);
    }
}

/* Count a frame of @size bytes for @qp; rx() has counted it for the engine. */
static void count_rx(RoceQp *qp, size_t size)
{
    if (size) {
        qp->stats.rx_frames++;
        qp->stats.rx_bytes += size;
    }
}

void roce_deliver(RoceEngine *e, const RocePacket *pkt, size_t size,
                  int64_t now)
{
    RoceQp *qp = roce_qp_find(e, pkt->bth.dqpn);
    bool request = pkt->info->flags & ROCE_OP_REQUEST;

    e->work += RDMA_WORK_WR + pkt->payload_len;
    if (!qp) {
        roce_rx_drop(e, &pkt->bth, "no such QP");
        return;
    }
    roce_qp_prefetch(e, qp);
    if (pkt->info->transport != qp_transport(qp) &&
        (roce_is_ud(qp) || !(pkt->info->flags & ROCE_OP_CNP))) {
        roce_rx_drop(e, &pkt->bth, "QP is of another type");
        return;
    }
    if (!roce_state_receives(qp, request)) {
        roce_rx_drop(e, &pkt->bth, "QP does not receive in its state");
        return;
    }
    if (!pkey_ok(e, pkt)) {
        return;
    }
    if (roce_is_ud(qp)) {
        count_rx(qp, size);
        roce_ud_rx(qp, pkt);
    } else if (!is_from_peer(qp, &pkt->path)) {
        roce_rx_drop(e, &pkt->bth, "not from the QP's peer");
    } else {
        count_rx(qp, size);
        deliver_connected(qp, pkt, request, now);
    }
    roce_cq_fail_qps(e);
}

/* Is @dgid one of the port's GIDs, or a group that a QP has joined? */
static bool is_own(const RoceEngine *e, const uint8_t dgid[RDMA_GID_LEN],
                   uint16_t vlan)
{
    if (g_hash_table_size(e->mcast) && rdma_gid_is_multicast(dgid)) {
        return roce_mcast_find(e, dgid, vlan) != NULL;
    }
    return roce_gid_is_own(e, dgid, vlan);
}

static void rx(RoceEngine *e, const uint8_t *frame, size_t len, bool checked,
               int64_t now)
{
    ROCE_UNINITIALIZED RocePacket pkt;

    e->stats.rx_frames++;
    e->stats.rx_bytes += len;
    if (!e->link_up) {
        roce_rx_drop(e, NULL, "link is down");
        return;
    }
    if (roce_parse_flow(frame, len, &pkt, e->flows) != ROCE_PARSE_OK) {
        e->stats.rx_malformed++;
        roce_trace_drop(e, NULL, "malformed");
        return;
    }
    if (checked && !roce_icrc_ok(&pkt)) {
        e->stats.rx_icrc_errors++;
        roce_trace_drop(e, &pkt.bth, "wrong ICRC");
        return;
    }
    if (!is_to_port(e, pkt.path.dmac, pkt.path.dgid)) {
        roce_rx_drop(e, &pkt.bth, "to another MAC address");
        return;
    }
    if (!checked && !is_own(e, pkt.path.dgid, pkt.path.vlan)) {
        roce_rx_drop(e, &pkt.bth, "to another GID");
        return;
    }
    if (pkt.bth.dqpn == RDMA_QPN_MCAST) {
        rx_multicast(e, &pkt);
    } else {
        roce_deliver(e, &pkt, len, now);
    }
}

void roce_rx(RoceEngine *e, const uint8_t *frame, size_t len, int64_t now)
{
    rx(e, frame, len, true, now);
}

void roce_rx_unchecked(RoceEngine *e, const uint8_t *frame, size_t len,
                       int64_t now)
{
    rx(e, frame, len, false, now);
}

bool roce_is_ours(const RoceEngine *e, const uint8_t *frame, size_t len)
{
    uint8_t dgid[RDMA_GID_LEN];
    uint16_t vlan;

    if (!roce_peek(frame, len, dgid, &vlan) || !is_to_port(e, frame, dgid)) {
        return false;
    }
    return is_own(e, dgid, vlan);
}
