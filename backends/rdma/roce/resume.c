/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resumption: frames that came while the engine did not run are lost. Instead
 * of waiting for the timers of both ends, the requester retransmits at once,
 * and the responder has its peer do so.
 *
 * A lossy wire causes the same packets: a retransmission (IBTA 9.7.5.1.1
 * leaves the time to the requester), a NAK of the expected PSN, a response
 * that comes twice. A peer that missed nothing drops them as duplicates.
 */
#include <glib.h>
#include "roce-int.h"

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
 * If requests were lost, the peer has sent past epsn. If the response to the
 * last request was, the peer has not: it gets that again, and goes back if it
 * misses one before it (IBTA 9.7.5.1.3).
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
