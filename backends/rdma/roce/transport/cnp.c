/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Congestion notification (IBTA A17.9): a QP that receives packets which a
 * switch has marked sends CNPs to the sender. A sender that receives CNPs
 * reduces its rate if DCQCN is enabled (queue/dcqcn.c).
 */
#include <glib.h>
#include "transport/transport.h"

/* The shortest time between two CNPs of a QP, in ns */
#define CNP_INTERVAL_NS 50000

void roce_cnp_marked(RoceQp *qp, int64_t now)
{
    qp->e->ecn.marked++;
    if (now >= qp->cnp_at) {
        qp->cnp_at = now + CNP_INTERVAL_NS;
        qp->cnp_owed = true;
        roce_qp_schedule(qp);
    }
}

bool roce_cnp_tx(RoceQp *qp, RoceTx *tx)
{
    qp->cnp_owed = false;
    if (!roce_state_receives(qp, true)) {
        return false;
    }
    tx->bth.opcode = ROCE_CNP_OPCODE;
    tx->bth.psn = 0;
    tx->bth.becn = true;
    qp->e->ecn.cnps_sent++;
    return true;
}

void roce_cnp_rx(RoceQp *qp, const RocePacket *pkt, int64_t now)
{
    if (!pkt->bth.becn) {
        roce_rx_drop(qp->e, &pkt->bth, "CNP without BECN");
        return;
    }
    qp->e->ecn.cnps_received++;
    roce_dcqcn_cut(qp, now);
    roce_pace_refresh(qp);
}
