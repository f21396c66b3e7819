/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queues: queue pairs and shared receive queues, the completion of their
 * WQEs, how fast they may send, and the multicast groups they are in.
 *
 * A completion queue that fails is marked, and its QPs are moved to ERR at the
 * end of the call (roce_cq_fail_qps()), so that a QP never changes its state
 * while a completion is posted.
 */
#ifndef ROCE_QUEUE_H
#define ROCE_QUEUE_H

#include "mem/mem.h"

/* A multicast group and its QPs, at least one. */
typedef struct RoceMcast {
    uint8_t gid[RDMA_GID_LEN];
    GPtrArray *qps;                 /* of RoceQp */
} RoceMcast;

/* A CQ that QPs use. */
struct RoceCq {
    uint32_t cqn;
    uint32_t refs;
    bool failed;                    /* nothing is posted to it any more */
};

struct RoceSrq {
    RdmaSrqAttr attr;
    bool has_wqe;                   /* one, which a datagram did not fit in */
    RoceRecvWqe wqe;
    RdmaSge *sges;                  /* its list */
    uint32_t refs;                  /* QPs that use it */
};

/* The scatter/gather list of a WQE in the send or receive queue. */
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
/* roce_qp_create() with room for @n_send sends in flight. */
int roce_qp_create_for(RoceEngine *e, const RdmaQpInitAttr *init,
                       uint32_t n_send);
/* Find the path of @qp again if something on it has changed. */
void roce_qp_find_path(RoceQp *qp);
static inline void roce_qp_refresh_path(RoceQp *qp)
{
    if (G_UNLIKELY(qp->path_serial != qp->e->gid_serial)) {
        roce_qp_find_path(qp);
    }
}
void roce_qp_free(RoceQp *qp);
/* Set the QP back to what it was when it was created. */
void roce_qp_clear(RoceQp *qp);
/* Its attributes as they are now */
RdmaQpAttr roce_qp_attr(const RoceQp *qp);

/* rings.c */
/*
 * Have places for @n send WQEs, those that there are included. False without
 * the memory for that; a QP has one place at least, so WQEs wait for those
 * before them.
 */
bool roce_sq_reserve(RoceQp *qp, uint32_t n);
/*
 * The RoceSendArgs of slot @index; most QPs need none, so the first time this
 * makes them for each place. NULL without the memory for that.
 */
RoceSendArgs *roce_sargs_reserve(RoceQp *qp, uint32_t index);
void roce_ring_free(RoceQp *qp);

/* sq.c */
/*
 * Have the owner's next send as the newest WQE: to be executed in RTS, to be
 * flushed in SQE and ERR. False if there is none, or no room for it.
 */
bool roce_sq_pull(RoceQp *qp);

/* complete.c */
/* Complete and retire the oldest send WQE with @status. */
void roce_sq_complete(RoceQp *qp, RdmaWcStatus status);
/* Complete the oldest WQEs that are done. */
void roce_sq_reap(RoceQp *qp);
/* Fail the oldest send WQE; RC goes to ERR, others to SQE (IBTA 10.10.2). */
void roce_sq_fail(RoceQp *qp, RdmaWcStatus status);
/* Complete and retire the oldest receive WQE; @wc lacks what all have. */
void roce_rq_complete(RoceQp *qp, RdmaWc *wc, bool solicited);
void roce_rq_fail(RoceQp *qp, RdmaWcStatus status);
/* Are there WQEs that can only be flushed, as the state is SQE or ERR? */
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
 * Flush up to *@room of them, and count *@room down. Those that are left wait
 * for roce_poll_tx().
 */
void roce_qp_flush(RoceQp *qp, uint32_t *room);
/* End draining, and raise the event, if no WQE is in progress any more. */
void roce_req_check_drained(RoceQp *qp);
/* Move @qp to ERR, where all its WQEs are flushed (IBTA 10.3.1.7). */
void roce_qp_enter_err(RoceQp *qp);
void roce_qp_event(RoceQp *qp, RdmaEventType type);
/* QPs with failed CQs, from number @first on, are to go to ERR. */
static inline void roce_cq_fail_later(RoceEngine *e, uint32_t first)
{
    e->cq_failed = true;
    e->cq_fail_next = MIN(e->cq_fail_next, first);
}
/*
 * Move QPs of failed CQs to ERR, up to ROCE_CQ_FAIL_SLICE of them: the others
 * wait for roce_poll_tx(). Whatever API function may complete a WQE calls this
 * last.
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
 * Have a receive WQE for the QP, in its own queue or its SRQ, and pull one
 * from the owner if there is none. False if the owner has none, either.
 */
bool roce_recv_pull(RoceQp *qp);

/* srq.c */
RoceSrq *roce_srq_find(const RoceEngine *e, uint32_t srqn);
/* Pull a WQE from the owner unless the SRQ has one. False if there is none. */
bool roce_srq_pull(RoceEngine *e, RoceSrq *srq);
/*
 * Move the oldest WQE of the QP's SRQ to its receive queue, which is empty.
 * False if there is none, or no SRQ.
 */
bool roce_srq_take(RoceQp *qp);
void roce_srq_free(RoceSrq *srq);

/* dcqcn.c: what changes the rate; roce_pace_follow() has it take effect */
/* The peer tells of congestion. */
void roce_dcqcn_cut(RoceQp *qp, int64_t now);
/* @qp, which has a rate of DCQCN, has sent @bytes. */
void roce_dcqcn_sent(RoceQp *qp, uint32_t bytes, int64_t now);
/* kb/s; 0: that of the line */
uint32_t roce_dcqcn_rate(const RoceQp *qp);
/* Send at the rate of the line again. */
void roce_dcqcn_end(RoceQp *qp);

/* pace.c */
/* kb/s that @qp may send at on the path of @av; 0: no limit. */
uint32_t roce_pace_rate(const RoceQp *qp, const RdmaAv *av);
/* The rate limit or the path of @qp changed. */
void roce_pace_update(RoceQp *qp);
/* The rate that DCQCN gives @qp has changed. */
void roce_pace_refresh(RoceQp *qp);
/* @tx, which has a rate, is sent. */
void roce_pace_sent(RoceQp *qp, const RoceTx *tx, int64_t now);
static inline bool roce_pace_pauses(const RoceQp *qp, int64_t now)
{
    return now < qp->s.sq.send_at;
}
/* Look at @qp again when its pause is over. */
void roce_pace_wait(RoceQp *qp);
void roce_pace_expire(RoceQp *qp, int64_t now);

/* mcast.c */
GHashTable *roce_mcast_table_new(void);
/* The group of a GID, if there is one and the port is in @vlan. */
const RoceMcast *roce_mcast_find(const RoceEngine *e,
                                 const uint8_t gid[RDMA_GID_LEN],
                                 uint16_t vlan);
void roce_mcast_leave_all(RoceQp *qp);

#endif /* ROCE_QUEUE_H */
