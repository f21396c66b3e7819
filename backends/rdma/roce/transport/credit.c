/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * End-to-end flow control of RC (IBTA 9.7.7.2): ACKs tell how many receive WQEs
 * there are, and a requester does not start more messages that need one.
 *
 * A responder like this one sends another ACK when a receive is posted behind
 * one without credits. A requester that has more to send waits for that, as
 * long as for a lost ACK. If none came, the responder may be of another kind:
 * from then on the requester starts one message without credits, as IBTA
 * 9.7.7.2.5 has it, which is refused with an RNR NAK if it comes too early.
 *
 * Who takes turns with its peer often has a single receive, which is posted
 * again before the next message is sent to it. So a requester that has been
 * idle starts one message, too, until that was refused, and the responder
 * leaves such a peer alone for a while, or until it answers, unless it had to
 * wait before.
 *
 * Nothing of this migrates. A requester that was not told of credits has as
 * many as it wants.
 */
#include <glib.h>
#include "transport/transport.h"

/* Of a QP without an ACK timeout, ns */
#define DEFAULT_WAIT_NS INT64_C(100000000)
/* Before a responder that had a single receive has the next one told of */
#define TURN_NS 2000000
/* A peer that had to wait for that is told at once, for so many answers. */
#define EAGER_TURNS 8

/* Credits by code; the last code says that they are not used. */
static const uint16_t credits_of[ROCE_AETH_NO_CREDITS] = {
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
    16384, 24576, 32768,
};

/* The code of @n, or of the next smaller number. */
static uint8_t credit_code(uint32_t n)
{
    uint8_t code = ROCE_AETH_NO_CREDITS - 1;

    while (credits_of[code] > n) {
        code--;
    }
    return code;
}

/* What a responder tells */

/* Messages of a QP with an SRQ take WQEs that others may take before. */
static bool has_credits(const RoceQp *qp)
{
    return !qp->srq && qp->init.cap.max_recv_wr && qp->e->consumer.recv_count;
}

static uint32_t count_recvs(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    return qp->s.rq.prod - qp->s.rq.cons +
           e->consumer.recv_count(e->consumer_opaque, RDMA_RQ, qp->init.qpn);
}

/* Have the next receive told of. False: there is one already. */
static bool request_kick(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    qp->starved_deadline = ROCE_NO_DEADLINE;
    qp->starved = e->consumer.recv_sleep(e->consumer_opaque, RDMA_RQ,
                                         qp->init.qpn);
    return qp->starved;
}

/* Tell the peer of the next receive as soon as there is one. */
static void report_next_recv(RoceQp *qp)
{
    if (count_recvs(qp) || !request_kick(qp)) {
        qp->starved = false;
        roce_resp_ack(qp);
    }
}

void roce_credit_rnr_nak_sent(RoceQp *qp)
{
    if (!has_credits(qp)) {
        return;
    }
    qp->eager_turns = EAGER_TURNS;
    if (!qp->starved) {
        /* One may have come between the RNR NAK and its sending. */
        report_next_recv(qp);
    }
}

/* The peer is to be told that there is no receive. False: there is one. */
static bool plan_recv_report(RoceQp *qp, int64_t now)
{
    if (qp->starved || qp->starved_deadline != ROCE_NO_DEADLINE) {
        return true;
    }
    if (qp->recvs_since_credits > 1 || qp->eager_turns) {
        return request_kick(qp);
    }
    qp->starved_deadline = now + TURN_NS;
    roce_timer_arm(qp, qp->starved_deadline);
    return true;
}

uint8_t roce_credit_syndrome(RoceQp *qp, int64_t now)
{
    uint8_t code;

    if (!has_credits(qp)) {
        return ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS;
    }
    code = credit_code(count_recvs(qp));
    if (!code && !plan_recv_report(qp, now)) {
        code = credit_code(count_recvs(qp));
    }
    if (code) {
        qp->recvs_since_credits = 0;
        qp->starved_deadline = ROCE_NO_DEADLINE;
    }
    return ROCE_AETH_ACK | code;
}

static bool may_send_ack(const RoceQp *qp)
{
    switch (qp->s.attr.qp_state) {
    case RDMA_QPS_RTR:
    case RDMA_QPS_RTS:
    case RDMA_QPS_SQD:
        return true;
    default:
        return false;
    }
}

void roce_credit_request_sent(RoceQp *qp)
{
    if (qp->eager_turns) {
        qp->eager_turns--;
    }
    if (qp->starved_deadline != ROCE_NO_DEADLINE && count_recvs(qp)) {
        qp->starved_deadline = ROCE_NO_DEADLINE;
        qp->recvs_since_credits = 0;
    }
}

void roce_credit_recv_posted(RoceQp *qp)
{
    if (qp->starved && may_send_ack(qp)) {
        report_next_recv(qp);
    }
}

static void expire_starved(RoceQp *qp)
{
    qp->starved_deadline = ROCE_NO_DEADLINE;
    if (!may_send_ack(qp)) {
        return;
    }
    qp->eager_turns = EAGER_TURNS;
    report_next_recv(qp);
}

/* What a requester makes of it */

static bool is_idle(const RoceQp *qp)
{
    return qp->s.sq.una == qp->s.sq.end;
}

void roce_credit_message_started(RoceQp *qp)
{
    qp->recv_takers++;
    if (qp->credits && qp->credits != ROCE_CREDITS_UNLIMITED) {
        qp->credits--;
    }
}

static void end_credit_wait(RoceQp *qp)
{
    qp->credit_wait = false;
    qp->credit_deadline = ROCE_NO_DEADLINE;
    roce_qp_schedule(qp);
}

/* The ACK of what is on its way may bring credits; so there is none. */
static void start_credit_timer_if_idle(RoceQp *qp, int64_t now)
{
    uint8_t timeout = qp->s.attr.timeout;

    if (!is_idle(qp)) {
        return;
    }
    if (!qp->reports_credits) {
        end_credit_wait(qp);
    } else if (qp->credit_deadline == ROCE_NO_DEADLINE) {
        qp->credit_deadline = now + (timeout ? roce_timeout_ns(timeout)
                                             : DEFAULT_WAIT_NS);
        roce_timer_arm(qp, qp->credit_deadline);
    }
}

bool roce_credit_may_start(RoceQp *qp, int64_t now)
{
    if (qp->credits ||
        (is_idle(qp) && (!qp->reports_credits ||
                         (!qp->credit_wait && !qp->idle_start_refused)))) {
        return true;
    }
    qp->credit_wait = true;
    start_credit_timer_if_idle(qp, now);
    return false;
}

void roce_credit_ack_received(RoceQp *qp, const RoceBth *bth, int64_t now)
{
    uint8_t code = bth->aeth.syndrome & ROCE_AETH_VALUE_MASK;
    uint32_t n;

    qp->msn = bth->aeth.msn;
    if (code == ROCE_AETH_NO_CREDITS) {
        qp->credits = ROCE_CREDITS_UNLIMITED;
    } else {
        /* Messages on their way will take some of them */
        n = credits_of[code];
        qp->credits = n > qp->recv_takers ? n - qp->recv_takers : 0;
    }
    if (qp->credit_wait && qp->credits) {
        end_credit_wait(qp);
    } else if (qp->credit_wait) {
        start_credit_timer_if_idle(qp, now);
    }
}

void roce_credit_old_ack_received(RoceQp *qp, const RoceBth *bth, int64_t now)
{
    uint8_t code = bth->aeth.syndrome & ROCE_AETH_VALUE_MASK;

    /* An old one may tell of receives that are used up. */
    if (code == ROCE_AETH_NO_CREDITS || !code || bth->aeth.msn != qp->msn) {
        return;
    }
    qp->reports_credits = true;
    if (qp->s.sq.rnr_wait) {
        roce_req_end_rnr_wait(qp);
    } else if (!qp->credit_wait) {
        /* The receiver is ahead. */
        qp->idle_start_refused = false;
    }
    roce_credit_ack_received(qp, bth, now);
}

void roce_credit_rnr_nak_received(RoceQp *qp)
{
    qp->idle_start_refused = true;
}

void roce_credit_expire(RoceQp *qp, int64_t now)
{
    if (qp->starved_deadline <= now) {
        expire_starved(qp);
    }
}

void roce_credit_time_out(RoceQp *qp, int64_t heard)
{
    if (qp->credit_deadline <= heard) {
        qp->reports_credits = false;
        end_credit_wait(qp);
    }
}

void roce_credit_import(RoceQp *qp)
{
    const RoceSqState *sq = &qp->s.sq;
    uint32_t index;

    for (index = sq->cons; index != sq->started; index++) {
        const RoceSendWqe *wqe = roce_swqe(qp, index);

        qp->recv_takers += !wqe->done && roce_opcode_takes_recv(wqe->opcode);
    }
}
