/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timeouts and retransmission of an RC requester: the ACK timer, PSN sequence
 * errors, and the wait after an RNR NAK (IBTA 9.7.5, 9.9.2).
 */
#include <glib.h>
#include "transport/transport.h"

/* RNR NAK delays by timer code, in units of 10 us (IBTA table 45) */
static const uint32_t rnr_delay[32] = {
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
    16384, 24576, 32768, 49152,
};

void roce_req_seek(RoceQp *qp, uint32_t psn)
{
    RoceSqState *sq = &qp->s.sq;
    uint32_t index;

    sq->psn = psn;
    /* Packets after @psn will be sent and request ACKs again. */
    qp->ack_requested_psn = psn;
    for (index = sq->cons; index != sq->started; index++) {
        const RoceSendWqe *wqe = roce_swqe(qp, index);
        uint32_t off = psn_off(psn, wqe->first_psn);

        if (wqe->npsn && off < wqe->npsn) {
            sq->cur = index;
            sq->cur_pkt = off;
            return;
        }
    }
    sq->cur = sq->started;
    sq->cur_pkt = 0;
}

/*
 * How long to wait for an ACK: the timeout of the QP; twice that after one
 * retry in a row, and four times after more. IBTA 9.7.6.1.3 allows up to four
 * times the timeout.
 *
 * A peer on a busy host may answer late, for longer than all retries would take
 * otherwise. Retries lengthen the wait to at most ROCE_BACKOFF_MAX_NS. A QP
 * whose timeout is longer always waits its timeout.
 */
static int64_t ack_wait_ns(const RoceQp *qp)
{
    const int64_t timeout = roce_timeout_ns(qp->s.attr.timeout);
    const int used = qp->s.attr.retry_cnt - qp->s.sq.retries;

    if (timeout >= ROCE_BACKOFF_MAX_NS) {
        return timeout;
    }
    return MIN(timeout << CLAMP(used, 0, 2), ROCE_BACKOFF_MAX_NS);
}

void roce_req_start_timer(RoceQp *qp, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if (sq->una == sq->sent || !qp->s.attr.timeout) {
        sq->ack_deadline = ROCE_NO_DEADLINE;
        return;
    }
    sq->ack_deadline = now + ack_wait_ns(qp);
    roce_timer_arm(qp, sq->ack_deadline);
}

/* Go back to una and use one retry, or fail if there is none left. */
static void retry(RoceQp *qp, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if (!sq->retries) {
        roce_sq_fail(qp, RDMA_WC_RETRY_EXC_ERR);
        return;
    }
    sq->retries--;
    qp->stalled_timeouts = 0;
    roce_qp_count(qp, retransmits);
    roce_trace_qp(qp, ROCE_TRACE_RETRANSMIT, sq->una, sq->retries);
    roce_req_seek(qp, sq->una);
    sq->unrequested = 0;
    roce_req_start_timer(qp, now);
    roce_qp_schedule(qp);
}

/*
 * Count a timeout at which the requester has sent nothing since it went back,
 * because its wire is blocked or its rate limit makes it pause. False: there
 * was a retransmission, or this is the ROCE_STALLED_TIMEOUTS-th in a row.
 *
 * The retry counter counts retransmissions (IBTA 9.9.2.1). So a stalled timeout
 * uses no retry, except every ROCE_STALLED_TIMEOUTS-th. If the wire stays
 * blocked, the QP fails with RETRY_EXC after
 * 1 + retry_cnt * ROCE_STALLED_TIMEOUTS timeouts.
 */
static bool count_stalled_timeout(RoceQp *qp)
{
    return qp->s.sq.psn == qp->s.sq.una &&
           ++qp->stalled_timeouts < ROCE_STALLED_TIMEOUTS;
}

void roce_req_sequence_error(RoceQp *qp, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if (!sq->seq_error_handled && !sq->rnr_wait) {
        sq->seq_error_handled = true;
        retry(qp, now);
    }
}

void roce_req_rnr_nak_received(RoceQp *qp, unsigned code, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if (sq->rnr_wait) {
        return;
    }
    roce_credit_rnr_nak_received(qp);
    if (qp->s.attr.rnr_retry != ROCE_RNR_ENDLESS) {
        if (!sq->rnr_retries) {
            roce_sq_fail(qp, RDMA_WC_RNR_RETRY_EXC_ERR);
            return;
        }
        sq->rnr_retries--;
    }
    roce_req_seek(qp, sq->una);
    sq->rnr_wait = true;
    sq->ack_deadline = ROCE_NO_DEADLINE;
    sq->rnr_deadline = now + rnr_delay[code] * INT64_C(10000);
    roce_timer_arm(qp, sq->rnr_deadline);
}

void roce_req_expire(RoceQp *qp, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if (sq->rnr_deadline <= now) {
        roce_req_end_rnr_wait(qp);
    }
    roce_credit_expire(qp, now);
    if (roce_peer_deadline(qp) <= now) {
        roce_timer_set_overdue(qp);
    }
}

void roce_req_time_out(RoceQp *qp, int64_t now, int64_t heard)
{
    RoceSqState *sq = &qp->s.sq;

    roce_credit_time_out(qp, heard);
    if (sq->ack_deadline <= heard) {
        sq->ack_deadline = ROCE_NO_DEADLINE;
        roce_qp_count(qp, timeouts);
        roce_trace_qp(qp, ROCE_TRACE_TIMEOUT, sq->una, sq->retries);
        if (count_stalled_timeout(qp)) {
            roce_req_start_timer(qp, now);
            return;
        }
        sq->seq_error_handled = false;
        retry(qp, now);
    }
}
