/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who sends next: round robin over the QPs that may have something to send,
 * a few packets each, so that long messages do not starve short ones. QPs
 * that come to a packet for the wire while it is blocked are parked.
 */
#include <glib.h>
#include "roce-int.h"

void roce_qp_kick(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    if (!qp->active) {
        qp->active = true;
        qp->quantum = ROCE_QUANTUM;
        g_queue_push_tail_link(&e->active, &qp->link);
    } else if (qp->parked) {
        /* It may have come to something else */
        qp->parked = false;
        g_queue_unlink(&e->parked, &qp->link);
        g_queue_push_tail_link(&e->active, &qp->link);
    }
    roce_wake(e);
}

void roce_qp_unlink(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    if (qp->active) {
        g_queue_unlink(qp->parked ? &e->parked : &e->active, &qp->link);
        qp->active = false;
        qp->parked = false;
    }
}

static void park(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    qp->parked = true;
    g_queue_unlink(&e->active, &qp->link);
    g_queue_push_tail_link(&e->parked, &qp->link);
}

void roce_set_tx_blocked(RoceEngine *e, bool blocked)
{
    GList *link;

    e->tx_blocked = blocked;
    if (blocked) {
        return;
    }
    while ((link = g_queue_pop_tail_link(&e->parked))) {
        ((RoceQp *)link->data)->parked = false;
        g_queue_push_head_link(&e->active, link);
    }
    if (!g_queue_is_empty(&e->active)) {
        roce_wake(e);
    }
}

bool roce_tx_must_wait(const RoceQp *qp, RoceTx *tx)
{
    const RoceEngine *e = qp->e;

    tx->waits = e->tx_blocked && tx->routed && !tx->local && e->link_up;
    return tx->waits;
}

void roce_tx_begin(const RoceQp *qp, RoceTx *tx)
{
    roce_frame_begin(tx->frame);
    tx->bth = (RoceBth) {
        .pkey = RDMA_DEFAULT_PKEY,
        .dqpn = qp->s.attr.dest_qp_num,
    };
    tx->len = 0;
}

void roce_tx_undo(const RoceQp *qp, RoceTx *tx)
{
    roce_frame_unmap(qp->e, tx->frame);
    roce_tx_begin(qp, tx);
}

/* The QP's next packet: acknowledgements first, the rest in turns. */
static bool qp_tx(RoceQp *qp, int64_t now, RoceTx *tx)
{
    roce_tx_begin(qp, tx);
    tx->mcast = NULL;
    tx->waits = false;

    switch (qp->s.attr.qp_state) {
    case RDMA_QPS_SQE:
        roce_sq_flush(qp);
        break;
    case RDMA_QPS_ERR:
        roce_sq_flush(qp);
        roce_rq_flush(qp);
        break;
    default:
        break;
    }
    if (roce_is_ud(qp)) {
        return roce_ud_tx(qp, now, tx);
    }

    roce_qp_refresh_path(qp);
    tx->path = &qp->path;
    tx->routed = qp->path_ok;
    tx->local = qp->path_local;
    tx->rate = qp->rate;

    if (roce_tx_must_wait(qp, tx)) {
        return false;
    }
    if (roce_pace_pauses(qp, now)) {
        roce_pace_wait(qp);
        return roce_resp_has_ack(qp) && roce_resp_tx(qp, tx);
    }
    if (roce_resp_has_ack(qp) || qp->resp_turn) {
        qp->resp_turn = false;
        return roce_resp_tx(qp, tx) || roce_req_tx(qp, now, tx);
    }
    qp->resp_turn = true;
    return roce_req_tx(qp, now, tx) || roce_resp_tx(qp, tx);
}

/* Round robin: @qp has sent @len bytes. */
static void end_turn(RoceQp *qp, uint32_t len)
{
    RoceEngine *e = qp->e;

    /* Short packets cost, too */
    len += ROCE_MAX_HDR;
    if (qp->quantum > len) {
        qp->quantum -= len;
        return;
    }
    qp->quantum = ROCE_QUANTUM;
    g_queue_unlink(&e->active, &qp->link);
    g_queue_push_tail_link(&e->active, &qp->link);
}

/* The destination is, or may be among others, the engine itself. */
static void loop_back(RoceEngine *e, RoceTx *tx, int64_t now)
{
    RoceTxFrame *frame = tx->frame;
    RocePacket pkt = {
        .path = *tx->path,
        .bth = tx->bth,
        .info = &roce_opcodes[tx->bth.opcode],
        .l3 = frame->hdr + roce_l2_len(frame->hdr),
        .payload = e->gather,
        .payload_len = tx->len,
    };
    size_t off = 0;
    unsigned i;

    pkt.bth_start = frame->hdr + frame->iov[0].iov_len - pkt.info->hdr_len;
    if (frame->iovcnt == 2) {
        pkt.payload = frame->iov[1].iov_base;
    } else {
        for (i = 1; i < frame->iovcnt; i++) {
            g_assert(frame->iov[i].iov_len <= sizeof(e->gather) - off);
            memcpy(e->gather + off, frame->iov[i].iov_base,
                   frame->iov[i].iov_len);
            off += frame->iov[i].iov_len;
        }
    }
    if (tx->mcast) {
        roce_deliver_copies(e, &pkt, tx->mcast);
    } else {
        e->stats.loopback_frames++;
        roce_deliver(e, &pkt, now);
    }
}

bool roce_poll_tx(RoceEngine *e, int64_t now, RoceTxFrame *frame)
{
    unsigned budget = ROCE_LOOPBACK_BUDGET;
    RoceTx tx = { .frame = frame };
    bool to_wire, to_self;
    RoceQp *qp;

    /* The owner goes on until there is nothing: no need to tell it */
    e->woken = true;
    e->resume_at = ROCE_NO_DEADLINE;
    while (!g_queue_is_empty(&e->active)) {
        qp = e->active.head->data;
        if (!qp_tx(qp, now, &tx)) {
            if (tx.waits) {
                park(qp);
            } else {
                roce_qp_unlink(qp);
            }
            roce_settle(e);
            continue;
        }
        end_turn(qp, tx.len);
        if (tx.rate && tx.routed) {
            roce_pace_sent(qp, &tx, now);
        }
        /* Without a link, or with its GID gone, a QP talks to the void */
        to_wire = tx.routed && !tx.local && e->link_up;
        to_self = tx.routed &&
                  (tx.local || (tx.mcast && g_hash_table_size(e->mcast)));
        if (to_wire || to_self) {
            roce_frame_headers(&tx);
        }
        if (to_self) {
            loop_back(e, &tx, now);
        }
        if (to_wire) {
            roce_frame_trailer(&tx);
            roce_settle(e);
            e->stats.tx_frames++;
            e->stats.tx_bytes += frame->size;
            e->stats.tx_mcast_frames += tx.mcast != NULL;
            e->out = true;
            return true;
        }
        roce_tx_done(e, frame);
        if (--budget == 0) {
            /* An owner that sleeps until the deadline comes back at once */
            e->resume_at = now;
            e->woken = false;
            roce_wake(e);
            return false;
        }
    }
    e->woken = false;
    return false;
}

void roce_tx_done(RoceEngine *e, RoceTxFrame *frame)
{
    RoceQp *qp;

    roce_frame_unmap(e, frame);
    e->out = false;
    if (e->out_completes) {
        e->out_completes = false;
        qp = roce_qp_find(e, e->out_qpn);
        if (qp) {
            roce_req_sent(qp);
        }
    }
    roce_settle(e);
}
