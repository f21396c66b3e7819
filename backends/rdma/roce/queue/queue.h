/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queues: queue pairs and shared receive queues, the completion of their WQEs,
 * pacing, and multicast groups.
 *
 * If a completion queue fails, it is marked. Its QPs move to ERR at the end of
 * the call into the engine (roce_cq_fail_qps()), so that no QP changes its
 * state while a completion is posted.
 */
#ifndef ROCE_QUEUE_H
#define ROCE_QUEUE_H

#include "mem/mem.h"

/* A multicast group, which has at least one QP */
typedef struct RoceMcast {
    uint8_t gid[RDMA_GID_LEN];
    GPtrArray *qps;                 /* of RoceQp */
} RoceMcast;

/* A CQ that QPs use */
struct RoceCq {
    uint32_t cqn;
    uint32_t refs;                  /* send and receive queues that use it */
    bool failed;                    /* accepts no completions */
};

struct RoceSrq {
    RdmaSrqAttr attr;
    bool has_wqe;                   /* @wqe was pulled and is not used yet */
    RoceRecvWqe wqe;
    RdmaSge *sges;                  /* the SGEs of @wqe */
    uint32_t refs;                  /* QPs that use the SRQ */
};

/* The scatter/gather list of a WQE in the send or receive queue */
static inline RoceSgList roce_send_sgl(const RoceQp *qp, uint32_t index)
{
    return (RoceSgList) {
        .sges = roce_ssges(qp, index),
        .n = roce_swqe(qp, index)->num_sge,
        .pdn = qp->init.pdn,
        .index = index,
    };
}

static inline RoceSgList roce_recv_sgl(const RoceQp *qp, uint32_t index)
{
    return (RoceSgList) {
        .sges = qp->rsges,
        .n = qp->rwqe.num_sge,
        .pdn = qp->recv_pdn,
        .index = index,
    };
}

/* qp.c */
/* roce_qp_create() with memory for @n_send sends at once */
int roce_qp_create_for(RoceEngine *e, const RdmaQpInitAttr *init,
                       uint32_t n_send);
/* Derive the path of @qp; the second function, only if it may have changed. */
void roce_qp_find_path(RoceQp *qp);
static inline void roce_qp_refresh_path(RoceQp *qp)
{
    if (G_UNLIKELY(qp->path_serial != qp->e->gid_serial)) {
        roce_qp_find_path(qp);
    }
}
void roce_qp_free(RoceQp *qp);
/* Restore the state of a new QP. The counters stay. */
void roce_qp_clear(RoceQp *qp);
/* The current attributes, as QUERY_QP returns them */
RdmaQpAttr roce_qp_attr(const RoceQp *qp);

/* rings.c */
/*
 * Make room for @n send WQEs in all. Returns false if there is no memory. WQEs
 * then wait until older ones complete; the ring has one slot at least.
 */
bool roce_sq_reserve(RoceQp *qp, uint32_t n);
/*
 * The RoceSendArgs of the WQE @index. The first call allocates them for all
 * slots, since most QPs need none. Returns NULL if there is no memory.
 */
RoceSendArgs *roce_sargs_reserve(RoceQp *qp, uint32_t index);
void roce_ring_free(RoceQp *qp);

/* sq.c */
/*
 * Pull the consumer's next send and append it as the newest WQE, which is
 * executed in RTS, and flushed in SQE and ERR. Returns false if there is no
 * send, or no room for it.
 */
bool roce_sq_pull(RoceQp *qp);

/* complete.c */
/* Complete and retire the oldest send WQE with @status. */
void roce_sq_complete(RoceQp *qp, RdmaWcStatus status);
/* Complete and retire the oldest send WQEs, as far as they are done. */
void roce_sq_reap(RoceQp *qp);
/*
 * Complete the oldest send WQE with an error. A QP of RC moves to ERR, others
 * to SQE (IBTA 10.10.2).
 */
void roce_sq_fail(RoceQp *qp, RdmaWcStatus status);
/*
 * Complete and retire the oldest receive WQE. This sets wr_id, qp_num and
 * port_num of @wc; the caller has set the rest.
 */
void roce_rq_complete(RoceQp *qp, RdmaWc *wc, bool solicited);
/* Complete the oldest receive WQE with an error. */
void roce_rq_fail(RoceQp *qp, RdmaWcStatus status);
/* Has the QP, in SQE or ERR, send or receive WQEs to flush? */
static inline bool roce_sq_flushes(const RoceQp *qp)
{
    return (qp->s.attr.qp_state == RDMA_QPS_ERR ||
            qp->s.attr.qp_state == RDMA_QPS_SQE) &&
           (qp->s.sq.cons != qp->s.sq.prod || qp->more_sends);
}
static inline bool roce_rq_flushes(const RoceQp *qp)
{
    return qp->s.attr.qp_state == RDMA_QPS_ERR &&
           (qp->s.rq.cons != qp->s.rq.prod || qp->more_recvs);
}
static inline bool roce_qp_flushes(const RoceQp *qp)
{
    return roce_sq_flushes(qp) || roce_rq_flushes(qp);
}
/*
 * Flush up to *@room of these WQEs, and subtract their number from *@room.
 * roce_poll_tx() flushes the others.
 */
void roce_qp_flush(RoceQp *qp, uint32_t *room);
/* If no WQE is in progress in SQD, end draining and raise SQ_DRAINED. */
void roce_req_check_drained(RoceQp *qp);
/* Move @qp to ERR, where all its WQEs are flushed (IBTA 10.3.1.7). */
void roce_qp_enter_err(RoceQp *qp);
void roce_qp_event(RoceQp *qp, RdmaEventType type);
/* Mark that QPs with failed CQs, from QPN @first on, must move to ERR. */
static inline void roce_cq_fail_later(RoceEngine *e, uint32_t first)
{
    e->cq_failed = true;
    e->cq_fail_next = MIN(e->cq_fail_next, first);
}
/*
 * Move up to ROCE_CQ_FAIL_SLICE QPs of failed CQs to ERR; roce_poll_tx() moves
 * the others. Every API function that may complete a WQE calls
 * roce_cq_fail_qps() last.
 */
void roce_cq_fail_marked(RoceEngine *e);
static inline void roce_cq_fail_qps(RoceEngine *e)
{
    if (G_UNLIKELY(e->cq_failed)) {
        roce_cq_fail_marked(e);
    }
}

/* rq.c */
/*
 * Pull a receive WQE from the consumer, unless the QP's own queue or its SRQ
 * holds one already. Returns false if the consumer has none.
 */
bool roce_recv_pull(RoceQp *qp);

/* srq.c */
RoceSrq *roce_srq_find(const RoceEngine *e, uint32_t srqn);
/*
 * Pull a WQE from the consumer, unless the SRQ holds one already. Returns false
 * if the consumer has none.
 */
bool roce_srq_pull(RoceEngine *e, RoceSrq *srq);
/*
 * Move the WQE that the QP's SRQ holds to the QP's receive queue, which is
 * empty. Returns false if the SRQ holds none, or there is no SRQ.
 */
bool roce_srq_take(RoceQp *qp);
void roce_srq_free(RoceSrq *srq);

/*
 * dcqcn.c: the rate that congestion control gives a QP. A change takes effect
 * with roce_pace_refresh().
 */
/* Reduce the rate: the peer has sent a CNP. */
void roce_dcqcn_cut(RoceQp *qp, int64_t now);
/* Raise the rate after @qp, which has a DCQCN state, has sent @bytes. */
void roce_dcqcn_sent(RoceQp *qp, uint32_t bytes, int64_t now);
/* The rate in kb/s; 0: the line rate */
uint32_t roce_dcqcn_rate(const RoceQp *qp);
/* Free the DCQCN state: @qp sends at the line rate again. */
void roce_dcqcn_end(RoceQp *qp);

/* pace.c */
/* The rate, in kb/s, of @qp on the path of @av, without DCQCN; 0: no limit */
uint32_t roce_pace_rate(const RoceQp *qp, const RdmaAv *av);
/* Apply a new rate limit or path, and end a pause of the previous rate. */
void roce_pace_update(RoceQp *qp);
/* Apply a new rate of DCQCN. */
void roce_pace_refresh(RoceQp *qp);
/* Start the pause after @tx, which has a rate and has been sent. */
void roce_pace_sent(RoceQp *qp, const RoceTx *tx, int64_t now);
static inline bool roce_pace_pauses(const RoceQp *qp, int64_t now)
{
    return now < qp->s.sq.send_at;
}
/* Schedule @qp when its pause ends: sets the timer. */
void roce_pace_wait(RoceQp *qp);
/* The timer is due: schedule @qp if its pause has ended. */
void roce_pace_expire(RoceQp *qp, int64_t now);

/* mcast.c */
GHashTable *roce_mcast_table_new(void);
/* The group of @gid; NULL if there is none, or the port is not in @vlan. */
const RoceMcast *roce_mcast_find(const RoceEngine *e,
                                 const uint8_t gid[RDMA_GID_LEN],
                                 uint16_t vlan);
void roce_mcast_leave_all(RoceQp *qp);

#endif /* ROCE_QUEUE_H */
