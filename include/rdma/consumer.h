/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The consumer of verbs (IBTA 10.1): the owner of the work queues, and the
 * receiver of completions and events. The RoCE engine and the backends call
 * these functions. A device model or a test implements them.
 *
 * Context: the thread in which the engine or the backend runs. No function may
 * call back into the engine or the backend, except to inspect an object.
 */
#ifndef RDMA_CONSUMER_H
#define RDMA_CONSUMER_H

#include "rdma/verbs.h"

/* The answer of next_send() */
typedef enum RdmaNext {
    /*
     * The send queue is empty. The consumer kicks the queue when it posts the
     * next work request.
     */
    RDMA_NEXT_NONE,
    /* The work request is in *@wr and counts as taken. */
    RDMA_NEXT_WR,
    /*
     * The send queue is empty, but the consumer polls it, and will kick it soon
     * in any case. The caller also asks again when the QP has work of its own,
     * as after an acknowledgement.
     */
    RDMA_NEXT_LATER,
} RdmaNext;

/*
 * @opaque is the consumer's own pointer. Every function is mandatory unless its
 * comment says otherwise.
 */
typedef struct RdmaConsumerOps {
    /*
     * Post @wc on CQ @cqn. @solicited is true if the message asked for a
     * solicited event. wc->qp_num is the QPN of the device; wc->src_qp is a
     * number on the wire. Returns false if the CQ is in error or full. The
     * caller then moves all QPs of that CQ to ERR and posts nothing more to it.
     */
    bool (*complete)(void *opaque, uint32_t cqn, const RdmaWc *wc,
                     bool solicited);
    /*
     * The oldest @count WQEs of the queue are done. This call comes before the
     * complete() of the last of them. It never comes for an SRQ, whose WQEs are
     * done as soon as next_recv() returns them.
     */
    void (*retire)(void *opaque, uint32_t qpn, RdmaQueue queue,
                   uint32_t count);
    /* An asynchronous event (IBTA 11.6.3); @event is valid during the call. */
    void (*event)(void *opaque, const RdmaEvent *event);
    /*
     * QP @qpn may send. If its send queue has a WR, set *@wr to the oldest one
     * and take it off the queue; see RdmaNext. The lists and data that *@wr
     * points to belong to the consumer and stay valid until the next call of
     * any function in this struct; RdmaSendWr.wr.reg.pages alone changes
     * owner. With @flush the WR completes without being executed, so that only
     * wr_id, opcode and send_flags matter.
     */
    RdmaNext (*next_send)(void *opaque, uint32_t qpn, bool flush,
                          RdmaSendWr *wr);
    /*
     * Put @wr, which the last next_send() returned, back as the oldest WR of
     * the queue.
     */
    void (*put_back_send)(void *opaque, uint32_t qpn, const RdmaSendWr *wr);
    /*
     * Take the oldest WR of RQ or SRQ @id in the same way. Returns false if the
     * queue is empty. With @flush only wr_id matters. The consumer may learn of
     * a receive later than of the send that needs it, and need not kick for
     * receives. So the caller asks when a message arrives that needs a receive,
     * or posts receives to the host before it posts sends.
     */
    bool (*next_recv)(void *opaque, RdmaQueue queue, uint32_t id, bool flush,
                      RdmaRecvWr *wr);
    /*
     * A lower bound of how many WRs next_recv() would find. The engine compares
     * it with the limit of an SRQ, and reports it to peers as end-to-end
     * credits (IBTA 9.7.7.2). NULL: the count is 0 and peers get no credits.
     */
    uint32_t (*recv_count)(void *opaque, RdmaQueue queue, uint32_t id);
    /*
     * Ask the consumer to kick when it posts the next receive to RQ or SRQ
     * @id. Returns false if the queue has a receive already; no kick follows
     * then. May be NULL only if recv_count is NULL.
     */
    bool (*recv_sleep)(void *opaque, RdmaQueue queue, uint32_t id);
} RdmaConsumerOps;

#endif /* RDMA_CONSUMER_H */
