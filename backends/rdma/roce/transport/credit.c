/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * End-to-end flow control of RC (IBTA 9.7.7.2): ACKs report the number of
 * receive WQEs (credits), and a requester starts no more messages that need a
 * receive than it has credits.
 *
 * Credits that run out. A responder of this engine that has reported 0 credits
 * sends another ACK when a receive is posted. A requester with more to send
 * waits for this ACK, for the time of an ACK timeout. If none arrives, the
 * responder may be another implementation, which sends no such ACK. From then
 * on the requester starts one message without credits when it is idle, as IBTA
 * 9.7.7.2.5 allows. The responder answers with an RNR NAK if it has no receive.
 *
 * Peers that alternate. Two peers that send each other one message at a time
 * often have a single receive each, which they post again before the next
 * message arrives. The extra ACK would double their packets. So a requester
 * that was idle starts one message without credits, until such a message gets
 * an RNR NAK. A responder delays the extra ACK by TURN_NS. It drops the ACK if
 * its QP starts a request and has a receive again. If the peer had to wait, the
 * ACK is not delayed for some turns (eager_turns).
 *
 * This state does not migrate. A requester that has received no credits yet
 * may start any number of messages.
 */
#include <glib.h>
#include "transport/transport.h"

/* How long a QP without an ACK timeout waits for credits, in ns */
#define DEFAULT_WAIT_NS INT64_C(100000000)
/* The delay of the extra ACK of a responder that had a single receive, in ns */
#define TURN_NS 2000000
/*
 * After a peer had to wait, the extra ACK is not delayed until the QP has
 * started this many requests.
 */
#define EAGER_TURNS 8

/*
 * Credits by code (IBTA table 46). The code that follows these means that the
 * responder does not use credits.
 */
static const uint16_t credits_of[ROCE_AETH_NO_CREDITS] = {
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
    16384, 24576, 32768,
};

/* The code of the largest number of credits that is not above @n */
static uint8_t credit_code(uint32_t n)
{
    unsigned k;

    if (n < 2) {
        return n;
    }
    /* Even codes are for powers of 2, odd ones for half as many more. */
    k = g_bit_storage(n) - 1;
    return MIN(2 * k + ((n >> (k - 1)) & 1), ROCE_AETH_NO_CREDITS - 1);
}

/* The responder */

/*
 * Does the responder of @qp report credits? With an SRQ it cannot, because
 * other QPs may take the WQEs.
 */
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

/*
 * Ask the consumer to kick when it posts the next receive. Returns false if
 * there is a receive already.
 */
static bool request_kick(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    qp->starved_deadline = ROCE_NO_DEADLINE;
    qp->starved = e->consumer.recv_sleep(e->consumer_opaque, RDMA_RQ,
                                         qp->init.qpn);
    return qp->starved;
}

/* Send an ACK with credits as soon as there is a receive. */
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
        /* A receive may have been posted after the RNR NAK was planned. */
        report_next_recv(qp);
    }
}

/*
 * An ACK will report 0 credits: plan the extra ACK for the next receive.
 * Returns false if there is a receive already.
 */
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

/* The requester */

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

/*
 * Limit the wait for credits by a timer, if no request is outstanding whose ACK
 * may report credits.
 */
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
        /* Messages in flight will use some of these credits. */
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

    /* An ACK with an older MSN may report receives that are used by now. */
    if (code == ROCE_AETH_NO_CREDITS || !code || bth->aeth.msn != qp->msn) {
        return;
    }
    qp->reports_credits = true;
    if (qp->s.sq.rnr_wait) {
        roce_req_end_rnr_wait(qp);
    } else if (!qp->credit_wait) {
        /* The responder posts receives before the requester needs them. */
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
