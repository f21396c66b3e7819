/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's objects, and what every layer above does with them: QPs are
 * put on the list of those that may have something to send, have deadlines,
 * and find their paths.
 *
 * A call into the engine looks up the object, changes its state and puts its
 * QP on the list of active QPs; roce_poll_tx() serves that list.
 *
 * Sources: IBTA Vol 1 Release 1.4; chapters are named at the functions.
 */
#ifndef ROCE_CORE_H
#define ROCE_CORE_H

#include <errno.h>
#include <glib.h>
#include "rdma/roce.h"
#include "rdma/roce-state.h"
#include "rdma/work.h"
#include "core/table.h"
#include "wire/wire.h"

/* Request packets that may be unacknowledged, per QP. */
#define ROCE_WINDOW 128
/* An acknowledgement is asked for at least every so many packets. */
#define ROCE_ACK_INTERVAL 32
/* PSNs that may be outstanding (IBTA 9.7.1). */
#define ROCE_PSN_RANGE (1u << 23)
/* The longest message, in bytes (IBTA 9.7.4.1.7). */
#define ROCE_MAX_MSG (1u << 31)
/* Bytes that a QP may send before the next one has its turn. */
#define ROCE_QUANTUM 16384
/*
 * Sends that a QP has in flight, however many its consumer may post: enough to
 * fill the window. The others stay with the owner.
 */
#define ROCE_SQ_DEPTH 256
/* QPs that one call moves to ERR when their CQ fails. */
#define ROCE_CQ_FAIL_SLICE 32
/* WQEs of one QP that it flushes at a time. */
#define ROCE_FLUSH_SLICE 32
/* Timeouts in a row that use one retry while nothing is sent again. */
#define ROCE_STALLED_TIMEOUTS 16
/* WQEs of one QP that send nothing, and are executed at a time. */
#define ROCE_LOCAL_SLICE 32
/* rnr_retry of a QP that never gives up (IBTA 9.9.2.1). */
#define ROCE_RNR_ENDLESS 7
/* The peer has not told how many receive WQEs it has. */
#define ROCE_CREDITS_UNLIMITED UINT32_MAX

/*
 * A variable that is set before it is read, and too large to be cleared for
 * each packet, as -ftrivial-auto-var-init has it.
 */
#if g_macro__has_attribute(uninitialized)
#define ROCE_UNINITIALIZED __attribute__((uninitialized))
#else
#define ROCE_UNINITIALIZED
#endif

typedef struct RoceMr RoceMr;       /* mem/mem.h */
typedef struct RoceCq RoceCq;       /* queue/queue.h */
typedef struct RoceSrq RoceSrq;
typedef struct RoceDcqcn RoceDcqcn; /* queue/dcqcn.c */

/* A GID, and the VLAN it belongs to. */
typedef struct RoceGid {
    uint8_t gid[RDMA_GID_LEN];
    uint16_t vlan;
} RoceGid;

/* Where byte @off of the SGEs of WQE @index lies; saves walking the list. */
typedef struct RoceSgCursor {
    uint32_t index;
    uint32_t off;
    uint32_t sge;
    uint32_t sge_off;
} RoceSgCursor;

/*
 * What packets of any kind need is in front of ROCE_QP_COLD, as that is what
 * roce_qp_prefetch() fetches.
 */
typedef struct RoceQp {
    RoceEngine *e;
    RdmaQpInitAttr init;

    GList link;                     /* in one of e's lists; data is the QP */
    GList overdue_link;             /* in e->overdue, if @overdue */
    bool active;                    /* in one of e's lists */
    bool blocked;                   /* in e->blocked, not e->active */
    bool postponed;                 /* in e->postponed, not e->active */
    bool more_sends;                /* the consumer may have sends */
    bool more_recvs;                /* ERR: it may have receives to flush */
    bool rescan_sends;              /* ask for sends in the next turn */
    bool has_more_work;             /* used up its turn without a packet */
    bool overdue;                   /* the peer has not answered in time */
    bool paused;                    /* may not send before s.sq.send_at */
    bool resp_turn;                 /* READ responses go before requests */
    bool last_explicit;             /* the last request accepted needs a */
                                    /* response; an ACK does not suffice */
    bool cnp_owed;                  /* a CNP is due */
    uint32_t rate;                  /* kb/s, lowest limit; 0: no limit */
    uint32_t quantum;               /* bytes left in this turn */
    uint32_t mtu;                   /* bytes, of s.attr.path_mtu */

    /* The rings of the send queue, which grow on demand: queue/rings.c */
    RoceSendWqe *swqes;
    RoceSendArgs *sargs;            /* or NULL */
    RdmaSge *ssges;                 /* SGEs or inline data of each slot */
    uint32_t ssges_each;            /* elements of ssges per slot */
    uint32_t sq_size;               /* slots, a power of 2 */
    RoceCq *send_cq;

    RoceQpState s;

    RoceSgCursor send_cursor;       /* of SENDs and WRITEs */
    uint8_t stalled_timeouts;       /* in a row, without a packet sent */
    uint32_t ack_requested_psn;     /* one past the last packet with AckReq, */
                                    /* or una */
    RoceDcqcn *dcqcn;               /* NULL: sends at the line rate */

    /*
     * transport/credit.c, requester. Only messages that take a receive WQE of
     * the peer count.
     */
    uint32_t credits;               /* messages that may still start */
    uint32_t recv_takers;           /* messages started and not done */
    int64_t credit_deadline;        /* ns, or ROCE_NO_DEADLINE */
    uint32_t msn;                   /* of the peer's last AETH */
    bool credit_wait;               /* waits until the peer has credits */
    bool reports_credits;           /* the peer ACKs again once it has some */
    bool idle_start_refused;        /* a start without credits got RNR NAK */
    /* transport/credit.c, responder */
    bool starved;                   /* the consumer shall kick the next WQE */
    uint8_t eager_turns;            /* report the next WQE without delay */
    uint32_t recvs_since_credits;   /* WQEs used since an ACK with credits */
    int64_t starved_deadline;       /* ns, or ROCE_NO_DEADLINE: time to */
                                    /* check for a WQE */

    int64_t timer_key;              /* at or before the first deadline */
    uint32_t timer_slot;            /* in e->timers, from 1; 0: none */

    /* Derived from s.attr, the GID table and the link, as @path is */
    uint32_t path_serial;           /* e->gid_serial when it was derived */
    bool path_ok;                   /* @path is valid */
    bool path_local;                /* @path leads to this engine */
    RoceTemplate template;          /* of frames on @path */

    RdmaQpStats stats;              /* since the QP was created */

    RocePath path;

    RoceRecvWqe rwqe;               /* the receive WQE that a message uses */
    RdmaSge *rsges;                 /* the SGEs of @rwqe */
    void *swqes_block;              /* the allocation that contains @swqes */
    uint64_t **spages;              /* REG_MR: page list of each slot */
    RoceResource *resources;        /* NULL until the first one */
    uint32_t res_mask;              /* slots - 1; at least max_rd_atomic */

    RoceCq *recv_cq;
    RoceSrq *srq;                   /* or NULL */
    uint32_t recv_pdn;              /* the PD of keys in receive WQEs */
    RoceSgCursor read_cursor;       /* of READ responses received */
    RoceSgCursor recv_cursor;       /* of SENDs received */

    int64_t cnp_at;                 /* ns, earliest time of the next CNP */
} RoceQp;

#define ROCE_QP_COLD offsetof(RoceQp, path)

struct RoceEngine {
    RoceConfig config;
    RoceOps ops;
    RdmaConsumerOps consumer;       /* of @ops */
    void *consumer_opaque;
    void *opaque;

    uint8_t mac[RDMA_MAC_LEN];
    uint8_t nic_mac[RDMA_MAC_LEN];  /* frames to it are taken, too */
    uint32_t link_mtu;
    bool link_up;
    uint32_t extensions;            /* RDMA_EXT_* */
    uint32_t dcqcn_line;            /* kb/s of the line; 0: no DCQCN */

    RoceGid *gids;
    bool *gid_valid;
    GHashTable *gid_set;            /* the valid GIDs, each once */
    uint8_t vlans[512];             /* one bit for each VLAN with a GID */
    uint32_t gid_serial;            /* changes with every path change */

    GHashTable *mcast;              /* group GID to RoceMcast */
    RoceTable mrs;                  /* by mrn; windows, too */
    uint32_t mws_of_qps;            /* bound windows of type 2 */
    RoceTable qps;                  /* by qpn */
    RoceTable srqs;                 /* by srqn */
    GHashTable *cqs;                /* cqn to RoceCq */

    /* A QP is in at most one of these lists. */
    GQueue active;                  /* may have something to send */
    GQueue blocked;                 /* wait for the wire */
    GQueue postponed;               /* wait for the next turn */
    bool tx_blocked;                /* see roce_set_tx_blocked() */
    bool window_closed;             /* see roce_waits_for_acks() */
    bool woken;                     /* the owner knows that it must poll */
    int64_t resume_at;              /* of a roce_poll_tx() that stopped early */
    const RoceQp *last_fetched_qp;  /* see roce_qp_prefetch() */
    bool cq_failed;                 /* roce_cq_fail_qps() has QPs to move */
    uint32_t cq_fail_next;          /* the lowest QPN of these QPs */
    uint64_t work;                  /* see rdma/work.h */
    uint32_t flush_room;            /* WQEs that may be flushed before the */
                                    /* next roce_poll_tx() */

    RoceQp **timers;                /* binary heap, from 1 */
    uint32_t ntimers;
    GQueue overdue;                 /* see roce_timer_overdue() */
    uint64_t timeouts_late;         /* see roce_timeouts_late() */

    /* The frame between roce_poll_tx() and roce_tx_done() */
    bool frame_out;
    uint32_t frame_out_qpn;
    bool frame_out_completes;       /* the last one of an unreliable WQE */

    RoceStats stats;
    RoceEcnStats ecn;
    RoceFlow flows[ROCE_FLOWS];     /* of received frames */
    uint8_t gather[ROCE_MAX_PAYLOAD]; /* payload of looped-back frames */
};

static inline RoceQp *roce_qp_find(const RoceEngine *e, uint32_t qpn)
{
    return roce_table_get(&e->qps, qpn);
}

#define ROCE_CACHE_LINE 64

/*
 * Have the cache fetch a QP's lines side by side, unless it was the last one
 * for which this was done: with many QPs, the others' lines have replaced them.
 */
static inline void roce_qp_prefetch(RoceEngine *e, const RoceQp *qp)
{
    const char *at = (const char *)qp;

    if (e->last_fetched_qp == qp) {
        return;
    }
    e->last_fetched_qp = qp;
    for (size_t i = 0; i < ROCE_QP_COLD; i += ROCE_CACHE_LINE) {
        __builtin_prefetch(at + i, 1);
    }
}

/* Count one or @n of what RoceStats and RdmaQpStats have, for engine and QP. */
#define roce_qp_add(qp, field, n) \
    ((void)((qp)->e->stats.field += (n), (qp)->stats.field += (n)))
#define roce_qp_count(qp, field) roce_qp_add(qp, field, 1)

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & RDMA_24BIT_MASK;
}

/* How far @psn lies behind @base, 0..2^24-1. */
static inline uint32_t psn_off(uint32_t psn, uint32_t base)
{
    return (psn - base) & RDMA_24BIT_MASK;
}

static inline RoceSendWqe *roce_swqe(const RoceQp *qp, uint32_t index)
{
    return &qp->swqes[index & (qp->sq_size - 1)];
}

/* NULL if no WQE of the queue has needed them yet. */
static inline RoceSendArgs *roce_sargs(const RoceQp *qp, uint32_t index)
{
    return qp->sargs ? &qp->sargs[index & (qp->sq_size - 1)] : NULL;
}

static inline RdmaSge *roce_ssges(const RoceQp *qp, uint32_t index)
{
    return qp->ssges + (size_t)(index & (qp->sq_size - 1)) * qp->ssges_each;
}

static inline uint8_t *roce_sinline(const RoceQp *qp, uint32_t index)
{
    return (uint8_t *)roce_ssges(qp, index);
}

static inline uint64_t **roce_spages(const RoceQp *qp, uint32_t index)
{
    return &qp->spages[index & (qp->sq_size - 1)];
}

/* The owner may have sends: roce_sq_pull() asks for them. */
static inline void roce_sq_expect(RoceQp *qp)
{
    qp->more_sends = qp->e->consumer.next_send && qp->init.cap.max_send_wr;
    qp->rescan_sends = false;
}

/* It may have receives, which only ERR looks for: messages ask anyway. */
static inline void roce_rq_expect(RoceQp *qp)
{
    qp->more_recvs = qp->e->consumer.next_recv && qp->init.cap.max_recv_wr;
}

static inline bool roce_is_ud(const RoceQp *qp)
{
    return qp->init.qp_type == RDMA_QPT_UD || qp->init.qp_type == RDMA_QPT_GSI;
}

/* Does a QP in its state take requests, or responses? */
static inline bool roce_state_receives(const RoceQp *qp, bool request)
{
    switch (qp->s.attr.qp_state) {
    case RDMA_QPS_RTR:
        return request;
    case RDMA_QPS_RTS:
    case RDMA_QPS_SQD:
    case RDMA_QPS_SQE:
        return true;
    default:
        return false;
    }
}

/* Places of a ring for @n WQEs: a power of 2. */
static inline uint32_t roce_ring_size(uint32_t n)
{
    uint32_t size = 1;

    while (size < n) {
        size *= 2;
    }
    return size;
}

/* Places that are free in a queue of @max WRs that holds @n of them. */
static inline uint32_t roce_queue_room(uint32_t max, uint32_t depth, uint32_t n)
{
    max = MIN(max, depth);
    return n < max ? max - n : 0;
}

/* Packets of a message of @len bytes (IBTA 9.7.3.1: an empty one has one). */
static inline uint32_t roce_packets(uint32_t len, uint32_t mtu)
{
    return len ? (len - 1) / mtu + 1 : 1;
}

static inline uint32_t roce_npsn(const RoceQp *qp, uint32_t len)
{
    return roce_packets(len, qp->mtu);
}

static inline bool roce_opcode_is_read(uint32_t opcode)
{
    return opcode == RDMA_WR_RDMA_READ ||
           opcode == RDMA_WR_RDMA_READ_WITH_INV;
}

static inline bool roce_opcode_is_atomic(uint32_t opcode)
{
    return opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
           opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD;
}

/* It has one packet, and an empty READ response (A19). */
static inline bool roce_opcode_is_placement(uint32_t opcode)
{
    return opcode == RDMA_WR_FLUSH || opcode == RDMA_WR_ATOMIC_WRITE;
}

/*
 * It needs an explicit response: no ACK and no response to another request
 * acknowledges it. Until then it takes a resource of the responder.
 */
static inline bool roce_opcode_needs_response(uint32_t opcode)
{
    return roce_opcode_is_read(opcode) || roce_opcode_is_atomic(opcode) ||
           roce_opcode_is_placement(opcode);
}

static inline bool roce_flush_ok(uint32_t type, uint32_t level)
{
    return type && !(type & ~(RDMA_FLUSH_GLOBAL | RDMA_FLUSH_PERSISTENT)) &&
           level <= RDMA_FLUSH_MR;
}

/* It takes a receive WQE of the peer. */
static inline bool roce_opcode_takes_recv(uint32_t opcode)
{
    return opcode == RDMA_WR_SEND || opcode == RDMA_WR_SEND_WITH_IMM ||
           opcode == RDMA_WR_SEND_WITH_INV ||
           opcode == RDMA_WR_RDMA_WRITE_WITH_IMM;
}

/* It changes MRs or windows and sends nothing. */
static inline bool roce_opcode_is_local(uint32_t opcode)
{
    return opcode == RDMA_WR_REG_MR || opcode == RDMA_WR_LOCAL_INV ||
           opcode == RDMA_WR_BIND_MW;
}

static inline void roce_free_large(const RoceEngine *e, void *mem, size_t size)
{
    if (mem && e->ops.free_large) {
        e->ops.free_large(e->opaque, mem, size);
    } else {
        g_free(mem);
    }
}

/* active.c */
/* Call RoceOps.wake, unless the owner has been woken already. */
void roce_wake(RoceEngine *e);
/* Have roce_poll_tx() look at @qp. */
void roce_qp_schedule(RoceQp *qp);
void roce_qp_unschedule(RoceQp *qp);
/* @qp, which is scheduled, waits for the wire. */
void roce_qp_block(RoceQp *qp);
/* @qp, which is scheduled, waits for the next turn. */
void roce_qp_postpone(RoceQp *qp);

/* timer.c */
/* @qp has a deadline at @when; earlier ones stay. */
void roce_timer_arm(RoceQp *qp, int64_t when);
void roce_timer_remove(RoceQp *qp);
/* The first deadline of @qp that the heap knows, or ROCE_NO_DEADLINE. */
int64_t roce_qp_deadline(const RoceQp *qp);
/* Until when the peer of @qp has to answer, or ROCE_NO_DEADLINE. */
int64_t roce_peer_deadline(const RoceQp *qp);
/*
 * The peer has not answered in time: its deadline leaves the heap, until
 * roce_timer_not_overdue() or roce_timer_remove().
 */
void roce_timer_set_overdue(RoceQp *qp);
void roce_timer_clear_overdue(RoceQp *qp);
/* The QP whose key comes first, if that has come; or NULL. */
RoceQp *roce_timer_due(const RoceEngine *e, int64_t now);
/*
 * @qp was looked at: its key becomes its first deadline. One without a key,
 * which a QP that failed meanwhile is, gets none.
 */
void roce_timer_restart(RoceQp *qp);

/* gid.c */
guint roce_gid_hash(gconstpointer gid);
gboolean roce_gid_equal(gconstpointer a, gconstpointer b);
gboolean roce_gid_entry_equal(gconstpointer a, gconstpointer b);
bool roce_gid_is_own(const RoceEngine *e, const uint8_t gid[RDMA_GID_LEN],
                     uint16_t vlan);
/*
 * The path of @av from QP @sqpn to QP @dqpn. False if its GID index is empty
 * or source and destination are of different IP versions.
 */
bool roce_path_init(const RoceEngine *e, const RdmaAv *av, uint32_t sqpn,
                    uint32_t dqpn, RocePath *path);

/* trace.c */
void roce_trace_qp(const RoceQp *qp, RoceTraceType type, uint32_t psn,
                   uint32_t value);
void roce_trace_refused(const RoceQp *qp, const RdmaQpRefusal *refusal);
/* A packet is dropped, for which another counter stands; @bth may be NULL. */
void roce_trace_drop(const RoceEngine *e, const RoceBth *bth,
                     const char *why);
/* A packet is dropped and counted; @bth is NULL if nothing is known of it. */
void roce_rx_drop(RoceEngine *e, const RoceBth *bth, const char *why);
/* Every change of state goes through this, so that it is traced. */
void roce_qp_set_state(RoceQp *qp, RdmaQpState state);

/* wr.c */

/* Make a WQE of @wr, with at most @max_sge elements. */
void roce_recv_fill(RoceRecvWqe *wqe, RdmaSge *sges, uint32_t max_sge,
                    const RdmaRecvWr *wr);

/* Which QP types take an opcode (IBTA table 94), and what its WR has. */
typedef struct RoceWrInfo {
    uint32_t qp_types;
    bool sends;                     /* payload leaves: may be inline */
    bool receives;                  /* data comes back into the SGEs */
    bool has_args;                  /* RoceSendArgs, as datagrams have */
} RoceWrInfo;

#define ROCE_WR_OPCODES (RDMA_WR_REG_MR + 1)
extern const RoceWrInfo roce_wr_info[ROCE_WR_OPCODES];

/* May requests with this opcode be sent and accepted (RDMA_EXT_*)? */
bool roce_opcode_enabled(const RoceEngine *e, uint32_t opcode);
/* Does a QP of this type take this opcode? */
bool roce_opcode_ok(uint32_t qp_type, uint32_t opcode);

#endif /* ROCE_CORE_H */
