/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transport services: how a QP builds the packets that it sends, and how it
 * processes those that it receives. For RC and UC, the requester (req) and the
 * responder (resp) each have a file for each direction.
 *
 * A *_tx() function builds the next packet in @tx, and returns false if there
 * is none.
 */
#ifndef ROCE_TRANSPORT_H
#define ROCE_TRANSPORT_H

#include "queue/queue.h"

/* req-tx.c: RC and UC */
bool roce_req_tx(RoceQp *qp, int64_t now, RoceTx *tx);
/* The owner has sent the last packet of an unreliable WQE, which completes. */
void roce_req_sent(RoceQp *qp);
/* Start the requester with @psn as the first PSN. */
void roce_req_init(RoceQp *qp, uint32_t psn);

/* req-rx.c: packets that an RC requester receives */
void roce_req_rx(RoceQp *qp, const RocePacket *pkt, int64_t now);

/* req-retry.c: timeouts and retransmission of an RC requester */
/*
 * Run the timers that are due at @now. If the peer has not answered in time,
 * this only marks the QP as overdue.
 */
void roce_req_expire(RoceQp *qp, int64_t now);
/* Retry or fail if the peer should have answered at or before @heard. */
void roce_req_time_out(RoceQp *qp, int64_t now, int64_t heard);
/* Move the send cursor to @psn. */
void roce_req_seek(RoceQp *qp, uint32_t psn);
/* Start the ACK timer if anything is unacknowledged. */
void roce_req_start_timer(RoceQp *qp, int64_t now);
/*
 * The peer has not received the packet at una, or its response was lost. The
 * requester goes back once for each PSN sequence error, because packets in
 * flight cause further NAKs of the same PSN. If the retransmission is lost as
 * well, the ACK timer runs out.
 */
void roce_req_sequence_error(RoceQp *qp, int64_t now);
/* The peer refused the packet at una by an RNR NAK with this timer code. */
void roce_req_rnr_nak_received(RoceQp *qp, unsigned code, int64_t now);

/* End the wait after an RNR NAK, and send again. */
static inline void roce_req_end_rnr_wait(RoceQp *qp)
{
    qp->s.sq.rnr_deadline = ROCE_NO_DEADLINE;
    qp->s.sq.rnr_wait = false;
    roce_qp_schedule(qp);
}

/* The local ACK timeout for @code, which is not 0, in ns (IBTA 9.7.6.1.3) */
static inline int64_t roce_timeout_ns(uint8_t code)
{
    return INT64_C(4096) << code;
}

/* cnp.c: congestion notification of RC and UC */
/* @qp received a packet that a switch has marked. */
void roce_cnp_marked(RoceQp *qp, int64_t now);
/* Build the CNP that is due, unless the state of @qp does not allow it. */
bool roce_cnp_tx(RoceQp *qp, RoceTx *tx);
void roce_cnp_rx(RoceQp *qp, const RocePacket *pkt, int64_t now);

/* Plan an ACK of all PSNs up to epsn - 1. */
static inline void roce_resp_ack(RoceQp *qp)
{
    /* A NAK of epsn acknowledges the same packets. */
    if (qp->s.resp.ack_kind == ROCE_ACK_NONE) {
        qp->s.resp.ack_kind = ROCE_ACK_POSITIVE;
    }
    roce_qp_schedule(qp);
}

/* credit.c: end-to-end flow control of RC */
/* The AETH syndrome of an ACK or response that is built now */
uint8_t roce_credit_syndrome(RoceQp *qp, int64_t now);
/* The responder sends an RNR NAK. */
void roce_credit_rnr_nak_sent(RoceQp *qp);
/*
 * The requester of @qp starts a request. It may answer the message that used
 * the last receive of @qp.
 */
void roce_credit_request_sent(RoceQp *qp);
/* The consumer may have posted a receive to @qp. */
void roce_credit_recv_posted(RoceQp *qp);
/* May @qp start a message that takes a receive WQE of the peer? */
bool roce_credit_may_start(RoceQp *qp, int64_t now);
/* @qp has started such a message. */
void roce_credit_message_started(RoceQp *qp);
/* @bth is a new ACK or response. The WQEs that it acknowledges are done. */
void roce_credit_ack_received(RoceQp *qp, const RoceBth *bth, int64_t now);
/* @bth is an ACK of PSNs that were acknowledged before. */
void roce_credit_old_ack_received(RoceQp *qp, const RoceBth *bth, int64_t now);
/* The requester has received an RNR NAK. */
void roce_credit_rnr_nak_received(RoceQp *qp);
/* If starved_deadline is due, the responder checks for receives. */
void roce_credit_expire(RoceQp *qp, int64_t now);
/* End the wait for credits if its deadline is at or before @heard. */
void roce_credit_time_out(RoceQp *qp, int64_t heard);
/* Derive RoceQp.recv_takers of an imported QP. */
void roce_credit_import(RoceQp *qp);

/* resp-rx.c: requests that an RC or UC responder receives */
void roce_resp_rx(RoceQp *qp, const RocePacket *pkt);

/* resp-tx.c: packets that an RC responder sends */
/* Plan a NAK of @psn. Later packets are dropped until @psn arrives. */
void roce_resp_nak(RoceQp *qp, uint8_t syndrome, uint32_t psn);
/*
 * A request has an error that moves the QP to ERR (IBTA 9.9.3.1). The QP moves
 * at once, but still sends the responses that are due, and after them a NAK. If
 * the QP is in ERR already, because it cannot send a due response, only its NAK
 * changes. The second function also raises an event; callers use it for errors
 * that no completion reports.
 */
void roce_resp_fatal(RoceQp *qp, uint8_t syndrome, uint32_t psn);
void roce_resp_fatal_event(RoceQp *qp, uint8_t syndrome, uint32_t psn);
bool roce_resp_tx(RoceQp *qp, int64_t now, RoceTx *tx);

/* roce_mr_remote() for the peer of @qp */
static inline RoceMr *roce_resp_mr(const RoceQp *qp, uint32_t rkey,
                                   uint32_t access, uint64_t *addr,
                                   uint32_t len)
{
    return roce_mr_remote(qp->e, qp->init.pdn, qp->init.qpn, rkey, access,
                          addr, len);
}

/* resp-res.c: requests that need an explicit response */
/*
 * Execute a new request and plan its response. Returns false if the request is
 * refused with the NAK *@syndrome.
 */
bool roce_resp_read(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
bool roce_resp_atomic(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
bool roce_resp_atomic_write(RoceQp *qp, const RocePacket *pkt,
                            uint8_t *syndrome);
bool roce_resp_flush(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
/*
 * Send the response to a duplicate request again (IBTA 9.7.5.1.4 f.). A request
 * that does not match a resource is dropped.
 */
void roce_resp_replay(RoceQp *qp, const RocePacket *pkt);
/* Allocate the resources of @qp, unless it has them. */
void roce_resp_reserve(RoceQp *qp);
/* Is a response due? */
bool roce_resp_pending(const RoceQp *qp);
/* Is certainly neither a response nor an ACK due? */
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
/* The oldest resource whose response is due, or NULL. Moves res_out to it. */
RoceResource *roce_resp_next(RoceQp *qp);
/* Send the last packet of the response to the last request again. */
void roce_resp_resend_last(RoceQp *qp);
/* The PSN for the next ACK: of the last request that an ACK may acknowledge */
uint32_t roce_resp_last_acked(const RoceQp *qp);
/* Derive RoceQp.last_explicit of an imported QP from its resources. */
void roce_resp_find_last(RoceQp *qp);

/* ud.c: UD and GSI */
bool roce_ud_tx(RoceQp *qp, int64_t now, RoceTx *tx);
void roce_ud_rx(RoceQp *qp, const RocePacket *pkt);

#endif /* ROCE_TRANSPORT_H */
