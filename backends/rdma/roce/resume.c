/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resumption after a pause: frames that arrived while the engine did not run
 * are lost. Without waiting for timers, the requester retransmits, and the
 * responder makes its peer retransmit.
 *
 * The packets that this causes also occur on a lossy wire: retransmissions
 * (IBTA 9.7.5.1.1 leaves their time to the requester), a NAK of the expected
 * PSN, and repeated responses. A peer that has lost nothing drops them as
 * duplicates.
 */
#include <glib.h>
#include "roce-int.h"

/* The longest RNR NAK timer, 655.36 ms (IBTA 9.7.5.2.8) */
#define RNR_DELAY_MAX INT64_C(655360000)

/*
 * The clock of the new process may be behind the clock of the old process. Then
 * a deadline could be days away.
 */
static void limit_deadlines(RoceQp *qp, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if (sq->send_at > now) {
        sq->send_at = now;
        roce_timer_arm(qp, now);
    }
    if (sq->rnr_wait && sq->rnr_deadline > now + RNR_DELAY_MAX) {
        sq->rnr_deadline = now + RNR_DELAY_MAX;
        roce_timer_arm(qp, sq->rnr_deadline);
    }
}

static void resume_requester(RoceQp *qp, int64_t now)
{
    RoceSqState *sq = &qp->s.sq;

    if (sq->una == sq->sent || sq->rnr_wait) {
        return;
    }
    roce_qp_count(qp, retransmits);
    roce_trace_qp(qp, ROCE_TRACE_RETRANSMIT, sq->una, sq->retries);
    roce_req_seek(qp, sq->una);
    sq->unrequested = 0;
    sq->seq_error_handled = false;
    roce_req_start_timer(qp, now);
    roce_qp_schedule(qp);
}

/*
 * A NAK of epsn makes the peer go back if it has lost requests. If the last
 * request needs an explicit response, send the end of that response instead: it
 * may be lost, and a peer that has lost more of it goes back (IBTA 9.7.5.1.3).
 */
static void resume_responder(RoceQp *qp)
{
    RoceRespState *resp = &qp->s.resp;

    if (resp->closing || resp->ack_kind == ROCE_ACK_NEGATIVE) {
        return;
    }
    if (qp->last_explicit) {
        roce_resp_resend_last(qp);
    } else {
        roce_resp_nak(qp, ROCE_NAK_PSN_SEQUENCE, resp->epsn);
    }
}

void roce_resume(RoceEngine *e, int64_t now)
{
    RoceQp *qp;

    ROCE_TABLE_FOREACH(&e->qps, qpn, qp) {
        limit_deadlines(qp, now);
        if (qp->init.qp_type != RDMA_QPT_RC) {
            continue;
        }
        switch (qp->s.attr.qp_state) {
        case RDMA_QPS_RTS:
        case RDMA_QPS_SQD:
            resume_requester(qp, now);
            /* fall through */
        case RDMA_QPS_RTR:
            resume_responder(qp);
            break;
        default:
            break;
        }
    }
}
