/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmission: round robin over the QPs that may have something to send. Each
 * sends a few packets in its turn, so that long messages do not starve short
 * ones. A QP whose next packet needs the wire while that is blocked waits in
 * another list. This file also runs the timers.
 */
#include <glib.h>
#include "roce-int.h"

/*
 * Build the next packet of @qp. CNPs and acknowledgements come first; responses
 * and requests alternate. Returns false if there is no packet.
 */
static bool qp_tx(RoceQp *qp, int64_t now, RoceTx *tx)
{
    uint32_t slice = ROCE_FLUSH_SLICE;

    roce_tx_begin(tx, qp->s.attr.dest_qp_num);
    tx->mcast = NULL;
    tx->waits = false;

    if (roce_qp_flushes(qp)) {
        roce_qp_flush(qp, &slice);
    }
    if (roce_is_ud(qp)) {
        return roce_ud_tx(qp, now, tx);
    }

    roce_qp_refresh_path(qp);
    tx->path = &qp->path;
    tx->template = &qp->template;
    tx->routed = qp->path_ok;
    tx->local = qp->path_local;
    tx->rate = qp->rate;

    tx->waits = roce_tx_must_wait(qp->e, tx);
    if (tx->waits) {
        return false;
    }
    if (qp->cnp_owed && roce_cnp_tx(qp, tx)) {
        return true;
    }
    if (roce_pace_pauses(qp, now)) {
        roce_pace_wait(qp);
        return roce_resp_has_ack(qp) && roce_resp_tx(qp, now, tx);
    }
    if (roce_resp_is_idle(qp)) {
        qp->resp_turn = true;
        return roce_req_tx(qp, now, tx);
    }
    if (roce_resp_has_ack(qp) || qp->resp_turn) {
        qp->resp_turn = false;
        return roce_resp_tx(qp, now, tx) || roce_req_tx(qp, now, tx);
    }
    qp->resp_turn = true;
    return roce_req_tx(qp, now, tx) || roce_resp_tx(qp, now, tx);
}

/* End the turn of @qp: move it to the tail of the active list. */
static void move_to_tail(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    qp->quantum = ROCE_QUANTUM;
    g_queue_unlink(&e->active, &qp->link);
    g_queue_push_tail_link(&e->active, &qp->link);
}

/* @qp has sent @len bytes of payload; this may end its turn. */
static void charge_turn(RoceQp *qp, uint32_t len)
{
    /* Short packets must use up the quantum, too. */
    len += ROCE_MAX_HDR;
    if (qp->quantum > len) {
        qp->quantum -= len;
        return;
    }
    move_to_tail(qp);
}

/* Deliver the packet @tx of @qp to QPs of this engine. */
static void loop_back(RoceQp *qp, RoceTx *tx, int64_t now)
{
    RoceEngine *e = qp->e;
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
        roce_qp_count(qp, loopback_frames);
        roce_deliver(e, &pkt, 0, now);
    }
}

/*
 * Prefetch the QP after the first one in the active list, whose turn comes
 * soon. This computes its address: next->data is not in the cache, either.
 */
static void prefetch_next(RoceEngine *e)
{
    const GList *next = e->active.head->next;

    if (next) {
        roce_qp_prefetch(e, (const RoceQp *)((const char *)next -
                                             offsetof(RoceQp, link)));
    }
}

bool roce_poll_tx(RoceEngine *e, int64_t now, RoceTxFrame *frame)
{
    uint64_t end = e->work + RDMA_TURN_BUDGET;
    ROCE_UNINITIALIZED RoceTx tx;
    bool to_wire, to_self;
    RoceQp *qp;

    tx.frame = frame;
    /* The owner calls until this returns false, so do not wake it. */
    e->woken = true;
    e->resume_at = ROCE_NO_DEADLINE;
    e->flush_room = ROCE_FLUSH_SLICE;
    while (e->active.head || e->cq_failed) {
        if (e->work >= end) {
            /* A deadline of @now makes the owner call again at once. */
            e->resume_at = now;
            e->woken = false;
            roce_wake(e);
            return false;
        }
        if (!e->active.head) {
            roce_cq_fail_marked(e);
            continue;
        }
        qp = e->active.head->data;
        prefetch_next(e);
        e->work += RDMA_WORK_POLL;
        if (!qp_tx(qp, now, &tx)) {
            if (roce_qp_flushes(qp) || qp->has_more_work) {
                qp->has_more_work = false;
                move_to_tail(qp);
            } else if (tx.waits) {
                roce_qp_block(qp);
            } else {
                roce_qp_unschedule(qp);
            }
            roce_cq_fail_qps(e);
            continue;
        }
        charge_turn(qp, tx.len);
        if (tx.rate && tx.routed) {
            roce_pace_sent(qp, &tx, now);
        }
        /* Without a link or a valid source GID, the packet is dropped. */
        to_wire = tx.routed && !tx.local && e->link_up;
        to_self = tx.routed &&
                  (tx.local || (tx.mcast && g_hash_table_size(e->mcast)));
        if (to_wire || to_self) {
            roce_frame_headers(&tx);
        }
        if (to_self) {
            loop_back(qp, &tx, now);
        }
        if (to_wire) {
            roce_frame_trailer(e, &tx);
            roce_qp_count(qp, tx_frames);
            roce_qp_add(qp, tx_bytes, frame->size);
            roce_cq_fail_qps(e);
            e->work += RDMA_WORK_WR + tx.len;
            e->stats.tx_mcast_frames += tx.mcast != NULL;
            e->frame_out = true;
            return true;
        }
        roce_tx_done(e, frame);
    }
    e->woken = false;
    return false;
}

void roce_tx_done(RoceEngine *e, RoceTxFrame *frame)
{
    RoceQp *qp;

    roce_frame_unmap(e, frame);
    e->frame_out = false;
    if (e->frame_out_completes) {
        e->frame_out_completes = false;
        qp = roce_qp_find(e, e->frame_out_qpn);
        if (qp) {
            roce_req_sent(qp);
        }
    }
    roce_cq_fail_qps(e);
}

/*
 * Run the timers of overdue QPs. If a QP fails here, it alone leaves the list
 * during the loop: QPs that share its CQ move to ERR after the loop.
 */
static void expire_overdue(RoceEngine *e, int64_t now, int64_t heard)
{
    GList *link, *next;

    for (link = e->overdue.head; link; link = next) {
        RoceQp *qp = link->data;
        int64_t when = roce_peer_deadline(qp);

        next = link->next;
        if (when > heard && when <= now) {
            continue;
        }
        roce_timer_clear_overdue(qp);
        if (when <= heard) {
            roce_req_time_out(qp, now, heard);
        } else {
            qp->stats.timeouts_late++;
            e->timeouts_late++;
        }
        when = roce_qp_deadline(qp);
        if (when != ROCE_NO_DEADLINE) {
            roce_timer_arm(qp, when);
        }
    }
}

void roce_expire(RoceEngine *e, int64_t now, int64_t heard)
{
    RoceQp *qp;

    while ((qp = roce_timer_due(e, now))) {
        if (roce_qp_deadline(qp) <= now) {
            roce_pace_expire(qp, now);
            roce_req_expire(qp, now);
        }
        roce_timer_restart(qp);
    }
    expire_overdue(e, now, heard);
    roce_cq_fail_qps(e);
}

bool roce_any_overdue(const RoceEngine *e)
{
    return e->overdue.head;
}

uint64_t roce_timeouts_late(const RoceEngine *e)
{
    return e->timeouts_late;
}
