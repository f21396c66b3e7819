/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pacing: the rate limit of a QP and the static rate of a path (IBTA 9.11.1).
 *
 * After each packet, the QP pauses for as long as the packet takes at its rate.
 * Acknowledgements neither wait for the pause nor extend it.
 */
#include <glib.h>
#include "queue/queue.h"

/* The most time that a QP may make up after it was late */
#define BURST_NS 1000000

#define GBPS(n) ((uint32_t)((n) * 1000000))

/*
 * Static rates by code (IBTA 15.2.5.16 and its later extensions), in kb/s.
 * Codes without a value do not limit the rate: they are unknown, or not below
 * the rate of the port.
 */
static const uint32_t static_rates[] = {
    [2] = GBPS(2.5),
    [3] = GBPS(10),
    [4] = GBPS(30),
    [5] = GBPS(5),
    [6] = GBPS(20),
    [7] = GBPS(40),
    [8] = GBPS(60),
    [9] = GBPS(80),
    [11] = GBPS(14),
    [12] = GBPS(56),
    [15] = GBPS(25),
    [19] = GBPS(28),
    [20] = GBPS(50),
};

/* The lower of two rates, of which 0 means no limit */
static uint32_t min_rate(uint32_t a, uint32_t b)
{
    return a && b ? MIN(a, b) : a | b;
}

uint32_t roce_pace_rate(const RoceQp *qp, const RdmaAv *av)
{
    uint32_t limit = qp->s.attr.rate_limit;
    uint32_t rate = av->static_rate < G_N_ELEMENTS(static_rates) ?
                    static_rates[av->static_rate] : 0;

    return min_rate(limit, rate);
}

void roce_pace_refresh(RoceQp *qp)
{
    qp->rate = min_rate(roce_pace_rate(qp, &qp->s.attr.ah_attr),
                        roce_dcqcn_rate(qp));
}

void roce_pace_update(RoceQp *qp)
{
    roce_pace_refresh(qp);
    qp->s.sq.send_at = 0;
    if (qp->paused) {
        qp->paused = false;
        roce_qp_schedule(qp);
    }
}

void roce_pace_sent(RoceQp *qp, const RoceTx *tx, int64_t now)
{
    const RoceOpcodeInfo *info = &roce_opcodes[tx->bth.opcode];
    uint64_t bits;

    if (!(info->flags & (ROCE_OP_REQUEST | ROCE_OP_READ_RESP))) {
        return;
    }
    bits = 8 * (roce_headers_len(tx->path->is_ipv4, tx->bth.opcode) +
                tx->len + ROCE_ICRC_LEN);
    qp->s.sq.send_at = MAX(qp->s.sq.send_at, now - BURST_NS) +
                       bits * 1000000 / tx->rate;
    if (qp->dcqcn) {
        roce_dcqcn_sent(qp, bits / 8, now);
        roce_pace_refresh(qp);
    }
}

void roce_pace_wait(RoceQp *qp)
{
    qp->paused = true;
    roce_timer_arm(qp, qp->s.sq.send_at);
}

void roce_pace_expire(RoceQp *qp, int64_t now)
{
    if (qp->paused && qp->s.sq.send_at <= now) {
        qp->paused = false;
        roce_qp_schedule(qp);
    }
}
