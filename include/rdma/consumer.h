/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The consumer of verbs (IBTA 10.1): who has the queues that work is pulled
 * from, and to whom completions and events go. The RoCE engine and backends
 * call it; a device model, or a test, implements it.
 *
 * Context: the thread that the engine, or backend, works in. No function calls
 * the engine or backend back, unless that says so.
 */
#ifndef RDMA_CONSUMER_H
#define RDMA_CONSUMER_H

#include "rdma/verbs.h"

/* The answer of a send queue that is asked for its next work request */
typedef enum RdmaNext {
    /* The queue is empty. The consumer kicks when it posts the next one. */
    RDMA_NEXT_NONE,
    /* Here it is; it counts as taken. */
    RDMA_NEXT_WR,
    /* There is none. Ask again in the next turn, for no one will tell. */
    RDMA_NEXT_LATER,
} RdmaNext;

/* @opaque is the consumer's own. All are mandatory, unless they say else. */
typedef struct RdmaConsumerOps {
    /*
     * Post @wc on CQ @cqn; @solicited: the message asked for a solicited event.
     * wc->qp_num is the QPN, wc->src_qp the number on the wire. Returns false
     * if that CQ is in error or full: the caller then moves all QPs that use
     * the CQ to ERR, and posts nothing to it any more.
     */
    bool (*complete)(void *opaque, uint32_t cqn, const RdmaWc *wc,
                     bool solicited);
    /*
     * The oldest @count WQEs of the queue are done. Comes before the complete()
     * of the last of them. Not for an SRQ, whose WQEs are done as soon as they
     * are taken.
     */
    void (*retire)(void *opaque, uint32_t qpn, RdmaQueue queue,
                   uint32_t count);
    /* An asynchronous event (IBTA 11.6.3) */
    void (*event)(void *opaque, const RdmaEvent *event);
    /*
     * QP @qpn may send: set *@wr to the next WR of its send queue, which counts
     * as taken; see RdmaNext. What it points to stays valid until the next call
     * of one of these functions. With @flush the WR completes without being
     * executed: only wr_id, opcode and send_flags count.
     */
    RdmaNext (*next_send)(void *opaque, uint32_t qpn, bool flush,
                          RdmaSendWr *wr);
    /* @wr, the last answer of next_send(), is the next one again. */
    void (*put_back_send)(void *opaque, uint32_t qpn, const RdmaSendWr *wr);
    /*
     * Likewise the next WR of RQ or SRQ @id, or return false if there is none.
     * With @flush only wr_id counts. That a receive is there may be told later
     * than of the send that is for it, or not at all: ask when a message needs
     * one, or post receives to a host before sends.
     */
    bool (*next_recv)(void *opaque, RdmaQueue queue, uint32_t id, bool flush,
                      RdmaRecvWr *wr);
    /*
     * How many WRs next_recv() would find; there may be more. The engine knows
     * by them the limit of an SRQ, and what it tells peers of credits (IBTA
     * 9.7.7.2). NULL: none, and no credits.
     */
    uint32_t (*recv_count)(void *opaque, RdmaQueue queue, uint32_t id);
    /*
     * The consumer shall kick when it posts the next receive to RQ or SRQ @id.
     * False: the queue has one already. Not NULL if recv_count is not.
     */
    bool (*recv_sleep)(void *opaque, RdmaQueue queue, uint32_t id);
} RdmaConsumerOps;

#endif /* RDMA_CONSUMER_H */
