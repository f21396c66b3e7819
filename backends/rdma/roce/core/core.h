/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's objects, and the functions on them that all layers above use:
 * the schedule of QPs, their deadlines and their paths.
 *
 * A call into the engine looks up an object, changes its state and puts its QP
 * on the active list if the QP may have something to send. roce_poll_tx()
 * serves that list.
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

/* The most unacknowledged request packets of a QP */
#define ROCE_WINDOW 128
/* A requester sets AckReq at least once in this many packets. */
#define ROCE_ACK_INTERVAL 32
/* PSNs that may be outstanding (IBTA 9.7.1). */
#define ROCE_PSN_RANGE (1u << 23)
/* The longest message, in bytes (IBTA 9.7.4.1.7). */
#define ROCE_MAX_MSG (1u << 31)
/* Bytes that a QP may send in its turn */
#define ROCE_QUANTUM 16384
/*
 * The most sends that a QP holds, whatever its max_send_wr is. They suffice to
 * fill the window. The others stay with the consumer.
 */
#define ROCE_SQ_DEPTH 256
/* QPs that one call moves to ERR after their CQ failed */
#define ROCE_CQ_FAIL_SLICE 32
/* WQEs that a QP flushes in its turn */
#define ROCE_FLUSH_SLICE 32
/* Consecutive timeouts that use one retry while the QP can send nothing */
#define ROCE_STALLED_TIMEOUTS 16
/* The longest wait for an ACK that retries lead to, in ns */
#define ROCE_BACKOFF_MAX_NS INT64_C(500000000)
/* WQEs without a packet that a QP executes in its turn */
#define ROCE_LOCAL_SLICE 32
/* The rnr_retry of a QP that retries without limit (IBTA 9.9.2.1) */
#define ROCE_RNR_ENDLESS 7
/* RoceQp.credits if the peer does not use credits (IBTA 9.7.7.2) */
#define ROCE_CREDITS_UNLIMITED UINT32_MAX

/*
 * For a large variable that is set before it is read. Without this, the option
 * -ftrivial-auto-var-init would clear it for each packet.
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

/*
 * The position of byte @off in the SGEs of WQE @index. Packets that continue a
 * message start from it and need not walk the list.
 */
typedef struct RoceSgCursor {
    uint32_t index;
    uint32_t off;                   /* bytes, from the start of the list */
    uint32_t sge;                   /* element */
    uint32_t sge_off;               /* bytes, in that element */
} RoceSgCursor;

/*
 * Fields that packets of every kind need come before ROCE_QP_COLD, because
 * roce_qp_prefetch() fetches only these.
 */
typedef struct RoceQp {
    RoceEngine *e;
    RdmaQpInitAttr init;

    GList link;                     /* in one of e's lists; data is the QP */
    GList overdue_link;             /* in e->overdue, if @overdue */
    bool active;                    /* in one of e's lists */
    bool blocked;                   /* in e->blocked, not e->active */
    bool more_sends;                /* the consumer may have sends */
    bool more_recvs;                /* ERR: it may have receives to flush */
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
    uint32_t res_mask;              /* slots - 1, for max_rd_atomic or more */

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
    uint8_t nic_mac[RDMA_MAC_LEN];  /* frames to it are accepted, too */
    uint32_t link_mtu;
    bool link_up;
    uint32_t extensions;            /* RDMA_EXT_* */
    uint32_t dcqcn_line;            /* kb/s of the line; 0: no DCQCN */

    RoceGid *gids;
    bool *gid_valid;
    GHashTable *gid_set;            /* the valid GIDs, each once */
    uint8_t vlans[512];             /* one bit for each VLAN with a GID */
    uint32_t gid_serial;            /* changes when any path may change */

    GHashTable *mcast;              /* group GID to RoceMcast */
    RoceTable mrs;                  /* MRs and windows, by mrn */
    uint32_t mws_of_qps;            /* number of bound type 2 windows */
    RoceTable qps;                  /* by qpn */
    RoceTable srqs;                 /* by srqn */
    GHashTable *cqs;                /* cqn to RoceCq */

    /* A QP is in at most one of these lists. */
    GQueue active;                  /* may have something to send */
    GQueue blocked;                 /* wait for the wire */
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
    GQueue overdue;                 /* see roce_timer_set_overdue() */
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
 * Fetch the cache lines of @qp concurrently. If it is the QP of the last call,
 * its lines are in the cache still; otherwise those of many other QPs may have
 * replaced them.
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

/*
 * Add @n, or 1, to @field, which both RoceStats and RdmaQpStats have: to the
 * counter of the engine and to that of the QP.
 */
#define roce_qp_add(qp, field, n) \
    ((void)((qp)->e->stats.field += (n), (qp)->stats.field += (n)))
#define roce_qp_count(qp, field) roce_qp_add(qp, field, 1)

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & RDMA_24BIT_MASK;
}

/* The distance from @base on to @psn, 0..2^24-1 */
static inline uint32_t psn_off(uint32_t psn, uint32_t base)
{
    return (psn - base) & RDMA_24BIT_MASK;
}

static inline RoceSendWqe *roce_swqe(const RoceQp *qp, uint32_t index)
{
    return &qp->swqes[index & (qp->sq_size - 1)];
}

/* NULL if no WQE of the queue has needed RoceSendArgs yet */
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

/* Let roce_sq_pull() ask the consumer for sends. */
static inline void roce_sq_expect(RoceQp *qp)
{
    qp->more_sends = qp->e->consumer.next_send && qp->init.cap.max_send_wr;
}

/*
 * Let a QP in ERR ask the consumer for receives to flush. In other states
 * messages ask for receives without this.
 */
static inline void roce_rq_expect(RoceQp *qp)
{
    qp->more_recvs = qp->e->consumer.next_recv && qp->init.cap.max_recv_wr;
}

static inline bool roce_is_ud(const RoceQp *qp)
{
    return rdma_qp_is_datagram(qp->init.qp_type);
}

/* Does @qp in its current state accept requests, or responses? */
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

/* The number of slots of a ring for @n WQEs: a power of 2 */
static inline uint32_t roce_ring_size(uint32_t n)
{
    uint32_t size = 1;

    while (size < n) {
        size *= 2;
    }
    return size;
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

/* Is @opcode a request of one packet with an empty READ response (A19)? */
static inline bool roce_opcode_is_placement(uint32_t opcode)
{
    return opcode == RDMA_WR_FLUSH || opcode == RDMA_WR_ATOMIC_WRITE;
}

/*
 * Does a request with @opcode need its own response, because neither an ACK nor
 * the response to another request acknowledges it? Until then it occupies a
 * resource of the responder.
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

/* Does a message with @opcode take a receive WQE of the peer? */
static inline bool roce_opcode_takes_recv(uint32_t opcode)
{
    return opcode == RDMA_WR_SEND || opcode == RDMA_WR_SEND_WITH_IMM ||
           opcode == RDMA_WR_SEND_WITH_INV ||
           opcode == RDMA_WR_RDMA_WRITE_WITH_IMM;
}

/* Does a WR with @opcode change MRs or windows, without sending a packet? */
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
/* Put @qp on the active list, which roce_poll_tx() serves. */
void roce_qp_schedule(RoceQp *qp);
void roce_qp_unschedule(RoceQp *qp);
/* Move @qp, which is scheduled, to the list that waits for the wire. */
void roce_qp_block(RoceQp *qp);

/* timer.c */
/* Add a deadline of @qp at @when, in ns. An earlier key in the heap stays. */
void roce_timer_arm(RoceQp *qp, int64_t when);
void roce_timer_remove(RoceQp *qp);
/* The first deadline of @qp that the heap tracks, or ROCE_NO_DEADLINE */
int64_t roce_qp_deadline(const RoceQp *qp);
/* The time until which the peer of @qp has to answer, or ROCE_NO_DEADLINE */
int64_t roce_peer_deadline(const RoceQp *qp);
/*
 * The peer has not answered in time: the heap ignores its deadline until
 * roce_timer_clear_overdue() or roce_timer_remove().
 */
void roce_timer_set_overdue(RoceQp *qp);
void roce_timer_clear_overdue(RoceQp *qp);
/* The QP with the first key, if that is at or before @now; or NULL */
RoceQp *roce_timer_due(const RoceEngine *e, int64_t now);
/*
 * Set the key of @qp, whose due timers have run, to its first deadline. A QP
 * without a key gets none; it may have failed when its timers ran.
 */
void roce_timer_restart(RoceQp *qp);

/* gid.c */
/* GIDs and RoceGids as keys of a GHashTable */
guint roce_gid_hash(gconstpointer gid);
gboolean roce_gid_equal(gconstpointer a, gconstpointer b);
gboolean roce_gid_entry_equal(gconstpointer a, gconstpointer b);
/* Does the GID table have an entry with @gid and @vlan? */
bool roce_gid_is_own(const RoceEngine *e, const uint8_t gid[RDMA_GID_LEN],
                     uint16_t vlan);
/*
 * Set @path to the path of @av from QP @sqpn to QP @dqpn. Returns false if the
 * source GID's entry is empty, or source and destination differ in IP version.
 */
bool roce_path_init(const RoceEngine *e, const RdmaAv *av, uint32_t sqpn,
                    uint32_t dqpn, RocePath *path);

/* trace.c */
void roce_trace_qp(const RoceQp *qp, RoceTraceType type, uint32_t psn,
                   uint32_t value);
void roce_trace_refused(const RoceQp *qp, const RdmaQpRefusal *refusal);
/*
 * Trace a dropped packet that another counter than rx_dropped counts. @bth is
 * NULL if the packet could not be parsed.
 */
void roce_trace_drop(const RoceEngine *e, const RoceBth *bth,
                     const char *why);
/* Trace a dropped packet and count it in rx_dropped. @bth may be NULL. */
void roce_rx_drop(RoceEngine *e, const RoceBth *bth, const char *why);
/* Set the state of @qp and trace it. All transitions use this function. */
void roce_qp_set_state(RoceQp *qp, RdmaQpState state);

/* wr.c */

/* Fill @wqe and @sges from @wr, which may have at most @max_sge SGEs. */
void roce_recv_fill(RoceRecvWqe *wqe, RdmaSge *sges, uint32_t max_sge,
                    const RdmaRecvWr *wr);

/* The QP types that support an opcode (IBTA table 94), and parts of its WR */
typedef struct RoceWrInfo {
    uint32_t qp_types;              /* a bit for each RdmaQpType */
    bool sends;                     /* has payload, which may be inline */
    bool receives;                  /* its response goes into the SGEs */
    bool has_args;                  /* needs RoceSendArgs on RC and UC */
} RoceWrInfo;

#define ROCE_WR_OPCODES (RDMA_WR_REG_MR + 1)
extern const RoceWrInfo roce_wr_info[ROCE_WR_OPCODES];

/* May QPs send and accept requests with this opcode (RDMA_EXT_*)? */
bool roce_opcode_enabled(const RoceEngine *e, uint32_t opcode);
/* Does a QP of this type support this opcode, an RdmaWrOpcode? */
bool roce_opcode_ok(uint32_t qp_type, uint32_t opcode);

#endif /* ROCE_CORE_H */
