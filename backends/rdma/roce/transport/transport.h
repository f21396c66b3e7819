/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transport services: what a QP sends, and what it does with the packets
 * that it receives. Each side of RC and UC has a file by direction: req is
 * the requester, resp the responder.
 */
#ifndef ROCE_TRANSPORT_H
#define ROCE_TRANSPORT_H

#include "queue/queue.h"

/* req-tx.c: RC and UC */
bool roce_req_tx(RoceQp *qp, int64_t now, RoceTx *tx);
/* The last packet of an unreliable WQE was handed to the link. */
void roce_req_sent(RoceQp *qp);
/* Drop the retransmission state; @psn is where a new RTS starts. */
void roce_req_init(RoceQp *qp, uint32_t psn);

/* req-rx.c: what comes back to an RC requester */
void roce_req_rx(RoceQp *qp, const RocePacket *pkt, int64_t now);
/* Deadlines at or before @now: of the peer only notes that it is overdue. */
void roce_req_expire(RoceQp *qp, int64_t now);
/* The peer has not answered in time, if that was at or before @heard. */
void roce_req_time_out(RoceQp *qp, int64_t now, int64_t heard);
/* Put the send cursor on @psn. */
void roce_req_seek(RoceQp *qp, uint32_t psn);
/* Start the ACK timer if anything is unacknowledged. */
void roce_req_start_timer(RoceQp *qp, int64_t now);

/* The receiver is ready. */
static inline void roce_req_end_rnr_wait(RoceQp *qp)
{
    qp->s.sq.rnr_deadline = ROCE_NO_DEADLINE;
    qp->s.sq.rnr_wait = false;
    roce_qp_schedule(qp);
}

/* The local ACK timeout of a code that is not 0, ns (IBTA 9.7.6.1.3). */
static inline int64_t roce_timeout_ns(uint8_t code)
{
    return INT64_C(4096) << code;
}

/* cnp.c: congestion notification; RC and UC */
/* A packet came with a mark. */
void roce_cnp_marked(RoceQp *qp, int64_t now);
/* Send the CNP that is owed, unless the QP has left the state for it. */
bool roce_cnp_tx(RoceQp *qp, RoceTx *tx);
void roce_cnp_rx(RoceQp *qp, const RocePacket *pkt, int64_t now);

/* Owe an ACK of everything up to epsn - 1. */
static inline void roce_resp_ack(RoceQp *qp)
{
    /* A NAK of epsn acknowledges the same packets */
    if (qp->s.resp.ack_kind == ROCE_ACK_NONE) {
        qp->s.resp.ack_kind = ROCE_ACK_POSITIVE;
    }
    roce_qp_schedule(qp);
}

/* credit.c: end-to-end flow control of RC */
/* The syndrome of an ACK that is sent now. */
uint8_t roce_credit_syndrome(RoceQp *qp, int64_t now);
/* An RNR NAK is sent. */
void roce_credit_rnr_nak_sent(RoceQp *qp);
/* @qp sends a request, which may be the answer to what took its receive. */
void roce_credit_request_sent(RoceQp *qp);
/* A receive may have been posted. */
void roce_credit_recv_posted(RoceQp *qp);
/* May a message that takes a receive WQE of the peer be started? */
bool roce_credit_may_start(RoceQp *qp, int64_t now);
/* It is started. */
void roce_credit_message_started(RoceQp *qp);
/* The peer has acknowledged by @bth; what that completes is done. */
void roce_credit_ack_received(RoceQp *qp, const RoceBth *bth, int64_t now);
/* Likewise with what was acknowledged before. */
void roce_credit_old_ack_received(RoceQp *qp, const RoceBth *bth, int64_t now);
/* The peer has sent an RNR NAK. */
void roce_credit_rnr_nak_received(RoceQp *qp);
/* A responder that starved looks for receives. */
void roce_credit_expire(RoceQp *qp, int64_t now);
/* A requester waits for credits no longer than until @heard. */
void roce_credit_time_out(RoceQp *qp, int64_t heard);
/* Count what was on its way when @qp was exported. */
void roce_credit_import(RoceQp *qp);

/* resp-rx.c: RC and UC */
void roce_resp_rx(RoceQp *qp, const RocePacket *pkt);

/* resp-tx.c: what a responder sends */
/* Owe a NAK; what comes before @psn comes again is dropped. */
void roce_resp_nak(RoceQp *qp, uint8_t syndrome, uint32_t psn);
/*
 * A request that moves the QP to ERR (IBTA 9.9.3.1): at once, but responses
 * that are owed, and then a NAK, are still sent. The second form raises an
 * event besides, for errors that no completion tells of. A QP that is in ERR
 * already, as it cannot send a response it owes, only changes its NAK.
 */
void roce_resp_fatal(RoceQp *qp, uint8_t syndrome, uint32_t psn);
void roce_resp_fatal_event(RoceQp *qp, uint8_t syndrome, uint32_t psn);
bool roce_resp_tx(RoceQp *qp, int64_t now, RoceTx *tx);

/* The MR that the peer of @qp may access so, see roce_mr_remote(). */
static inline RoceMr *roce_resp_mr(const RoceQp *qp, uint32_t rkey,
                                   uint32_t access, uint64_t *addr,
                                   uint32_t len)
{
    return roce_mr_remote(qp->e, qp->init.pdn, qp->init.qpn, rkey, access,
                          addr, len);
}

/* resp-res.c: requests that need an explicit response */
/* A new request: false if it is refused, then @syndrome says how. */
bool roce_resp_read(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
bool roce_resp_atomic(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
bool roce_resp_atomic_write(RoceQp *qp, const RocePacket *pkt,
                            uint8_t *syndrome);
bool roce_resp_flush(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
/*
 * Respond to a duplicate request of one of these kinds again (IBTA 9.7.5.1.4
 * f.); what is no duplicate of a resource is dropped.
 */
void roce_resp_replay(RoceQp *qp, const RocePacket *pkt);
/* Have memory for the resources of @qp. */
void roce_resp_reserve(RoceQp *qp);
/* Is the response of a resource not complete? */
bool roce_resp_pending(const RoceQp *qp);
/* Is there neither a response nor an ACK that may be due? */
static inline bool roce_resp_is_idle(const RoceQp *qp)
{
    return qp->s.resp.ack_kind == ROCE_ACK_NONE &&
           qp->s.resp.res_out == qp->s.resp.res_prod;
}
/* Is an ACK or NAK the next thing to send? */
static inline bool roce_resp_has_ack(const RoceQp *qp)
{
    return qp->s.resp.ack_kind != ROCE_ACK_NONE && !roce_resp_pending(qp);
}
/* Go on to the oldest resource of that kind; NULL if there is none. */
RoceResource *roce_resp_next(RoceQp *qp);
/* Send the end of the response to the last request again. */
void roce_resp_resend_last(RoceQp *qp);
/* The PSN of the next ACK: the last request that an ACK may acknowledge. */
uint32_t roce_resp_last_acked(const RoceQp *qp);
/* Work out qp->last_explicit from the resources. */
void roce_resp_find_last(RoceQp *qp);

/* ud.c: UD and GSI */
bool roce_ud_tx(RoceQp *qp, int64_t now, RoceTx *tx);
void roce_ud_rx(RoceQp *qp, const RocePacket *pkt);

#endif /* ROCE_TRANSPORT_H */
