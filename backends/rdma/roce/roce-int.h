/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's inner interfaces.
 *
 * A call into the engine looks up the object, changes its state and puts its
 * QP on the list of active QPs; roce_poll_tx() serves that list. Completion
 * queues that fail are noted and dealt with at the end of the call
 * (roce_settle()), so that no code finds a QP in another state after it has
 * posted a completion.
 *
 * Sources: IBTA Vol 1 Release 1.4; chapters are named at the functions.
 */
#ifndef ROCE_INT_H
#define ROCE_INT_H

#include <errno.h>
#include <glib.h>
#include "rdma/roce.h"
#include "rdma/roce-state.h"
#include "wire.h"

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
/* Frames to itself that the engine delivers before it asks for a break. */
#define ROCE_LOOPBACK_BUDGET 256
/* VLANs are 1 to this */
#define ROCE_MAX_VLAN 4094
/* rnr_retry of a QP that never gives up (IBTA 9.9.2.1). */
#define ROCE_RNR_ENDLESS 7

typedef struct RoceMr {
    RdmaMrAttr attr;
    bool valid;
    /* RDMA_MR_FAST_REG: what the next REG_MR commits */
    bool pending;
    uint64_t pending_iova;
    uint64_t pending_length;
    uint64_t *pending_pages;
    uint32_t pending_npages;
    uint32_t windows;               /* bound to it */
    /*
     * A window, if not 0. It is valid while it is bound; attr tells what
     * peers may do with which addresses.
     */
    uint32_t mw_type;               /* RdmaMwType */
    uint32_t qpn;                   /* type 2: whose it is */
    struct RoceMr *region;          /* it is bound to, or NULL */
    uint64_t region_off;            /* from its addresses to the region's */
} RoceMr;

/* A GID, and the VLAN it belongs to. */
typedef struct RoceGid {
    uint8_t gid[RDMA_GID_LEN];
    uint16_t vlan;
} RoceGid;

/* A multicast group and its QPs, at least one. */
typedef struct RoceMcast {
    uint8_t gid[RDMA_GID_LEN];
    GPtrArray *qps;                 /* of RoceQp */
} RoceMcast;

/* What a window is bound to. */
typedef struct RoceMwBinding {
    uint64_t addr;                  /* in the region */
    uint64_t length;
    uint32_t access;
    uint32_t qpn;                   /* type 2 */
} RoceMwBinding;

/* A CQ that QPs use. */
typedef struct RoceCq {
    uint32_t cqn;
    uint32_t refs;
    bool dead;                      /* it failed; nothing is posted to it */
} RoceCq;

typedef struct RoceSrq {
    RdmaSrqAttr attr;
    RoceRecvWqe *wqes;
    RdmaSge *sges;                  /* attr.max_sge for each */
    uint32_t mask;
    uint32_t cons;
    uint32_t prod;
    uint32_t refs;                  /* QPs that use it */
} RoceSrq;

/* Where byte @off of the SGEs of WQE @index lies; saves walking the list. */
typedef struct RoceSgCursor {
    uint32_t index;
    uint32_t off;
    uint32_t sge;
    uint32_t sge_off;
} RoceSgCursor;

typedef struct RoceQp {
    RoceEngine *e;
    RdmaQpInitAttr init;
    RoceQpState s;

    RoceSendWqe *swqes;
    RdmaSge *ssges;                 /* cap.max_send_sge for each */
    uint8_t *sinline;               /* cap.max_inline_data for each */
    uint64_t **spages;              /* of REG_MR: npages, or NULL */
    uint32_t sq_mask;
    RoceRecvWqe *rwqes;
    RdmaSge *rsges;
    uint32_t rq_mask;
    RoceResource *resources;        /* at least config.max_rd_atomic */
    uint32_t res_mask;

    RoceCq *send_cq;
    RoceCq *recv_cq;
    RoceSrq *srq;                   /* or NULL */
    uint32_t recv_pdn;              /* PD of what receive WQEs name */

    /* derived from s.attr, the GID table and the link */
    RocePath path;
    uint32_t path_serial;           /* of the GID table it was made from */
    bool path_ok;
    bool path_local;
    uint32_t mtu;                   /* bytes */

    RoceSgCursor send_cursor;       /* of SENDs and WRITEs */
    RoceSgCursor read_cursor;       /* of READ responses coming in */
    RoceSgCursor recv_cursor;

    GList link;                     /* in one of e's lists; data is the QP */
    bool active;                    /* it is */
    bool parked;                    /* in e->parked, not e->active */
    bool paused;                    /* may not send before s.sq.send_at */
    uint32_t rate;                  /* kb/s, of s.attr; 0: no limit */
    bool resp_turn;                 /* READ responses go before requests */
    bool answered;                  /* the peer's last request, by a response
                                       of its own instead of an ACK */
    uint32_t quantum;               /* bytes left of this turn */

    uint32_t timer_slot;            /* in e->timers, from 1; 0: none */
    int64_t timer_key;              /* at or before its first deadline */
} RoceQp;

struct RoceEngine {
    RoceConfig config;
    RoceOps ops;
    void *opaque;

    uint8_t mac[RDMA_MAC_LEN];
    uint32_t link_mtu;
    bool link_up;
    uint32_t extensions;            /* RDMA_EXT_* */

    RoceGid *gids;
    bool *gid_valid;
    GHashTable *gid_set;            /* the valid GIDs, each once */
    uint8_t vlans[512];             /* one bit for each VLAN with a GID */
    uint32_t gid_serial;            /* changes with every path change */

    GHashTable *mcast;              /* group GID to RoceMcast */
    RoceMr **mrs;                   /* by mrn; windows, too */
    uint32_t mws_of_qps;            /* bound windows of type 2 */
    RoceQp **qps;                   /* by qpn */
    RoceSrq **srqs;                 /* by srqn */
    GHashTable *cqs;                /* cqn to RoceCq */

    GQueue active;
    GQueue parked;                  /* those that wait for the wire */
    bool tx_blocked;
    bool woken;                     /* the owner knows that it must poll */
    int64_t resume_at;              /* roce_poll_tx() took a break */
    bool cq_failed;                 /* roce_settle() has work */

    RoceQp **timers;                /* binary heap, from 1 */
    uint32_t ntimers;

    /* the one frame that is out between poll_tx and tx_done */
    bool out;
    uint32_t out_qpn;
    bool out_completes;             /* it is the last of an unreliable WQE */

    RoceStats stats;
    uint8_t gather[ROCE_MAX_PAYLOAD];
};

/* A packet in the making. */
typedef struct RoceTx {
    RoceTxFrame *frame;
    RoceBth bth;
    const RocePath *path;
    RocePath ud_path;
    bool routed;                    /* @path can be used */
    bool local;                     /* and leads back to this engine */
    const RoceQp *mcast;            /* of whom this is a multicast, or NULL */
    bool waits;                     /* no packet: the wire is blocked */
    uint32_t rate;                  /* kb/s it may be sent at; 0: no limit */
    uint32_t len;                   /* bytes of payload */
} RoceTx;

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
    return &qp->swqes[index & qp->sq_mask];
}

static inline RdmaSge *roce_ssges(const RoceQp *qp, uint32_t index)
{
    return qp->ssges + (size_t)(index & qp->sq_mask) *
                       qp->init.cap.max_send_sge;
}

static inline uint8_t *roce_sinline(const RoceQp *qp, uint32_t index)
{
    return qp->sinline + (size_t)(index & qp->sq_mask) *
                         qp->init.cap.max_inline_data;
}

static inline uint64_t **roce_spages(const RoceQp *qp, uint32_t index)
{
    return &qp->spages[index & qp->sq_mask];
}

static inline RoceRecvWqe *roce_rwqe(const RoceQp *qp, uint32_t index)
{
    return &qp->rwqes[index & qp->rq_mask];
}

static inline RdmaSge *roce_rsges(const RoceQp *qp, uint32_t index)
{
    return qp->rsges + (size_t)(index & qp->rq_mask) *
                       qp->init.cap.max_recv_sge;
}

static inline RoceRecvWqe *roce_srq_wqe(const RoceSrq *srq, uint32_t index)
{
    return &srq->wqes[index & srq->mask];
}

static inline RdmaSge *roce_srq_sges(const RoceSrq *srq, uint32_t index)
{
    return srq->sges + (size_t)(index & srq->mask) * srq->attr.max_sge;
}

static inline bool roce_is_ud(const RoceQp *qp)
{
    return qp->init.qp_type == RDMA_QPT_UD || qp->init.qp_type == RDMA_QPT_GSI;
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

/* It has one packet, and an empty READ response for an answer (A19). */
static inline bool roce_opcode_is_placement(uint32_t opcode)
{
    return opcode == RDMA_WR_FLUSH || opcode == RDMA_WR_ATOMIC_WRITE;
}

/*
 * It takes a resource of the responder until its own response comes: no
 * other response and no ACK tells that it is done.
 */
static inline bool roce_opcode_is_answered(uint32_t opcode)
{
    return roce_opcode_is_read(opcode) || roce_opcode_is_atomic(opcode) ||
           roce_opcode_is_placement(opcode);
}

static inline bool roce_flush_ok(uint32_t type, uint32_t level)
{
    return type && !(type & ~(RDMA_FLUSH_GLOBAL | RDMA_FLUSH_PERSISTENT)) &&
           level <= RDMA_FLUSH_MR;
}

/* It changes MRs or windows and sends nothing. */
static inline bool roce_opcode_is_local(uint32_t opcode)
{
    return opcode == RDMA_WR_REG_MR || opcode == RDMA_WR_LOCAL_INV ||
           opcode == RDMA_WR_BIND_MW;
}

/* engine.c */
RoceQp *roce_qp_find(const RoceEngine *e, uint32_t qpn);
guint roce_gid_hash(gconstpointer gid);
gboolean roce_gid_equal(gconstpointer a, gconstpointer b);
bool roce_gid_is_own(const RoceEngine *e, const uint8_t gid[RDMA_GID_LEN],
                     uint16_t vlan);
/*
 * The path of @av from QP @sqpn to QP @dqpn. False if its GID index is empty
 * or source and destination are of different IP versions.
 */
bool roce_path_init(const RoceEngine *e, const RdmaAv *av, uint32_t sqpn,
                    uint32_t dqpn, RocePath *path);
/* Tell the owner, unless it knows, that there is something to do. */
void roce_wake(RoceEngine *e);
/* Move the QPs of failed CQs to ERR. Ends every call that may complete. */
void roce_settle(RoceEngine *e);

/* mr.c */
/* NULL if it is not there, or is a window. */
RoceMr *roce_mr_find(const RoceEngine *e, uint32_t mrn);
/*
 * The MR of a key, if it is valid, in PD @pdn, grants @access and covers
 * [@addr, @addr + @len) (IBTA 10.6.3); else NULL. @len is not 0.
 */
RoceMr *roce_mr_local(const RoceEngine *e, uint32_t pdn, uint32_t lkey,
                      uint32_t access, uint64_t addr, uint32_t len);
/*
 * Likewise for a peer of @qp, also through a window: @addr becomes the
 * region's own address.
 */
RoceMr *roce_mr_remote(const RoceQp *qp, uint32_t rkey, uint32_t access,
                       uint64_t *addr, uint32_t len);
/* Likewise, whatever the addresses; not through a window. */
bool roce_mr_grants(const RoceQp *qp, uint32_t rkey, uint32_t access);
/* The DMA address of @addr; cuts *@len to what follows it without a gap. */
uint64_t roce_mr_dma(const RoceMr *mr, uint64_t addr, uint64_t *len);
/* Copy to a range that was checked. False if memory is not there. */
bool roce_mr_write(RoceEngine *e, const RoceMr *mr, uint64_t addr,
                   const void *buf, size_t len);
/* The memory side of REG_MR and of the invalidating requests (IBTA 10.6.5). */
/* Takes *@pages if there are any. */
bool roce_mr_register(RoceQp *qp, RoceSendWqe *wqe, uint64_t **pages);
bool roce_mr_invalidate(RoceQp *qp, uint32_t key, bool remote);
void roce_mr_free(RoceMr *mr);

/* mw.c */
/* NULL if it is not there, or is an MR. */
RoceMr *roce_mw_find(const RoceEngine *e, uint32_t mwn);
/* May a window be bound so to @mr, which may be NULL? PDs do not count. */
bool roce_mw_region_ok(const RoceMr *mr, const RoceMwBinding *b);
/* Bind it, which is not bound, to what was found to be good. */
void roce_mw_set(RoceEngine *e, RoceMr *mw, RoceMr *mr,
                 const RoceMwBinding *b);
void roce_mw_unbind(RoceEngine *e, RoceMr *mw);
/* BIND_MW; false if it cannot be done (IBTA 11.4.1.1). */
bool roce_mw_bind(RoceQp *qp, const RoceSendWqe *wqe);
/* Unbind the windows of a QP that goes away. */
void roce_mw_forget_qp(RoceQp *qp);

/* post.c */
/* Is the engine told to send and answer what the opcode is part of? */
bool roce_opcode_enabled(const RoceEngine *e, uint32_t opcode);
/* Does a QP of this type take this opcode? */
bool roce_opcode_ok(uint32_t qp_type, uint32_t opcode);
/*
 * Is there a receive WQE for the QP, in its own queue or its SRQ? Asks the
 * owner for more before the answer is no.
 */
bool roce_recv_posted(RoceQp *qp);
/* Make a WQE of @wr, with at most @max_sge elements. */
void roce_recv_fill(RoceRecvWqe *wqe, RdmaSge *sges, uint32_t max_sge,
                    const RdmaRecvWr *wr);

/* srq.c */
RoceSrq *roce_srq_find(const RoceEngine *e, uint32_t srqn);
/*
 * Move the oldest WQE of the QP's SRQ to its receive queue, which is empty.
 * False if there is none, or no SRQ.
 */
bool roce_srq_take(RoceQp *qp);
void roce_srq_free(RoceSrq *srq);

/* state-check.c: NULL, or what is wrong with an image */
const char *roce_check_mr(const RoceEngine *e, const RoceMrImage *image);
const char *roce_check_mw(const RoceEngine *e, const RoceMwImage *image);
const char *roce_check_srq(const RoceSrqImage *image, const RdmaSrqAttr *max);
const char *roce_check_qp(const RoceEngine *e, const RoceQpImage *image,
                          const RdmaQpCap *max);

/* sg.c */
/* Are all SGEs good for @access? */
bool roce_sg_check(const RoceQp *qp, const RdmaSge *sges, uint32_t n,
                   uint32_t access);
/*
 * Copy @len bytes to byte @off of the list of WQE @index, whose keys are of
 * PD @pdn. LOC_LEN_ERR if the list is shorter, LOC_PROT_ERR if the memory may
 * not or cannot be written.
 */
RdmaWcStatus roce_sg_scatter(RoceQp *qp, uint32_t pdn, RoceSgCursor *c,
                             uint32_t index, const RdmaSge *sges, uint32_t n,
                             uint32_t off, const uint8_t *buf, uint32_t len);
/* Put @len bytes from byte @off of the list into @frame; false: LOC_PROT. */
bool roce_sg_gather(RoceQp *qp, RoceSgCursor *c, uint32_t index,
                    const RdmaSge *sges, uint32_t n, uint32_t off,
                    uint32_t len, RoceTxFrame *frame);

/* frame.c */
void roce_frame_begin(RoceTxFrame *frame);
/* Append @len bytes of a checked range of @mr; false if not mappable. */
bool roce_frame_map(RoceEngine *e, RoceTxFrame *frame, const RoceMr *mr,
                    uint64_t addr, uint32_t len);
/* Append a copy, which stays when the WQE goes; the only piece. */
void roce_frame_copy(RoceTxFrame *frame, const void *data, uint32_t len);
void roce_frame_unmap(RoceEngine *e, RoceTxFrame *frame);
/* Put the headers in front, and then pad and ICRC behind. */
void roce_frame_headers(RoceTx *tx);
void roce_frame_trailer(RoceTx *tx);

/* sched.c */
/* Put @qp on the list of QPs that roce_poll_tx() looks at. */
void roce_qp_kick(RoceQp *qp);
void roce_qp_unlink(RoceQp *qp);

/*
 * Nothing is in the packet yet; nothing of what was put there may stay when
 * the rest cannot be had, since the QP may have something else to send.
 */
void roce_tx_begin(const RoceQp *qp, RoceTx *tx);
void roce_tx_undo(const RoceQp *qp, RoceTx *tx);
/* Would the packet go out, and cannot? Then tx->waits is set. */
bool roce_tx_must_wait(const RoceQp *qp, RoceTx *tx);

/* pace.c */
/* kb/s that @qp may send at on the path of @av; 0: no limit. */
uint32_t roce_pace_rate(const RoceQp *qp, const RdmaAv *av);
/* The limits of @qp changed. */
void roce_pace_update(RoceQp *qp);
/* @tx, which has a rate, is sent. */
void roce_pace_sent(RoceQp *qp, const RoceTx *tx, int64_t now);
static inline bool roce_pace_pauses(const RoceQp *qp, int64_t now)
{
    return now < qp->s.sq.send_at;
}
/* Look at @qp again when its pause is over. */
void roce_pace_wait(RoceQp *qp);
void roce_pace_expire(RoceQp *qp, int64_t now);

/* timer.c */
/* @qp has a deadline at @when; earlier ones stay. */
void roce_timer_arm(RoceQp *qp, int64_t when);
void roce_timer_remove(RoceQp *qp);

/* qp.c */
void roce_qp_refresh_path(RoceQp *qp);
void roce_qp_free(RoceQp *qp);
/* Set all of the QP's state but its attributes back. */
void roce_qp_clear(RoceQp *qp);
/* IBTA 10.3.1.7: to ERR, everything outstanding is flushed. */
void roce_qp_enter_err(RoceQp *qp);
void roce_qp_event(RoceQp *qp, RdmaEventType type);

/* complete.c */
/* Complete and retire the oldest send WQE with @status. */
void roce_sq_complete(RoceQp *qp, RdmaWcStatus status);
/* Complete the oldest WQEs that are done. */
void roce_sq_reap(RoceQp *qp);
/* The oldest send WQE fails: IBTA 10.10.2, ERR or (unreliable) SQE. */
void roce_sq_fail(RoceQp *qp, RdmaWcStatus status);
/* Complete and retire the oldest receive WQE; @wc lacks what all have. */
void roce_rq_complete(RoceQp *qp, RdmaWc *wc, bool solicited);
void roce_rq_fail(RoceQp *qp, RdmaWcStatus status);
void roce_sq_flush(RoceQp *qp);
void roce_rq_flush(RoceQp *qp);

/* requester.c: RC and UC */
bool roce_req_tx(RoceQp *qp, int64_t now, RoceTx *tx);
/* The frame of an unreliable WQE's last packet has left. */
void roce_req_sent(RoceQp *qp);
/* Drop the retransmission state; @psn is where a new RTS starts. */
void roce_req_init(RoceQp *qp, uint32_t psn);
/* Is SQD drained by now? */
void roce_req_check_drained(RoceQp *qp);

/* ack.c: what comes back to an RC requester */
void roce_req_rx(RoceQp *qp, const RocePacket *pkt, int64_t now);
void roce_req_expire(RoceQp *qp, int64_t now);
/* Put the send cursor on @psn. */
void roce_req_seek(RoceQp *qp, uint32_t psn);
/* Wait for an answer from now on, if one is due. */
void roce_req_start_timer(RoceQp *qp, int64_t now);

/* responder.c: RC and UC */
void roce_resp_rx(RoceQp *qp, const RocePacket *pkt);

/* respond.c: what a responder sends */
/* Owe an ACK of everything up to epsn - 1. */
void roce_resp_ack(RoceQp *qp);
/* Owe a NAK; whatever comes until @psn comes again is dropped. */
void roce_resp_nak(RoceQp *qp, uint8_t syndrome, uint32_t psn);
/*
 * A request that ends the QP's life (IBTA 9.9.3.1): ERR at once, but what
 * was owed before is sent, and a NAK. Unless a completion tells of the
 * error, an event does. When what is owed cannot be sent, the QP is in ERR
 * already: then only the NAK changes.
 */
void roce_resp_fatal(RoceQp *qp, uint8_t syndrome, uint32_t psn);
void roce_resp_fatal_event(RoceQp *qp, uint8_t syndrome, uint32_t psn);
/* Is the next thing to send an acknowledgement? */
bool roce_resp_has_ack(RoceQp *qp);
bool roce_resp_tx(RoceQp *qp, RoceTx *tx);

/* resources.c: what a responder answers by more than an ACK */
/* A new request: false if it is refused, then @syndrome says how. */
bool roce_resp_read(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
bool roce_resp_atomic(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
bool roce_resp_atomic_write(RoceQp *qp, const RocePacket *pkt,
                            uint8_t *syndrome);
bool roce_resp_flush(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome);
/* Answer a duplicate again, if it is one (IBTA 9.7.5.1.4 f.). */
void roce_resp_replay(RoceQp *qp, const RocePacket *pkt);
/* The oldest resource whose answer is not complete, or NULL. */
RoceResource *roce_resp_pending(RoceQp *qp);
/* Send the end of the answer to the last request, which has one, again. */
void roce_resp_repeat_last(RoceQp *qp);
/* What the next ACK names: the last request that it may speak for. */
uint32_t roce_resp_last_acked(const RoceQp *qp);
/* Set qp->answered to what resources tell. */
void roce_resp_find_last(RoceQp *qp);

/* mcast.c */
GHashTable *roce_mcast_table_new(void);
/* The group of a GID, if there is one and the port is in @vlan. */
const RoceMcast *roce_mcast_find(const RoceEngine *e,
                                 const uint8_t gid[RDMA_GID_LEN],
                                 uint16_t vlan);
void roce_mcast_leave_all(RoceQp *qp);

/* ud.c: UD and GSI */
bool roce_ud_tx(RoceQp *qp, int64_t now, RoceTx *tx);
void roce_ud_rx(RoceQp *qp, const RocePacket *pkt);

/* rx.c */
/* Give a checked packet to the QP it is for. */
void roce_deliver(RoceEngine *e, const RocePacket *pkt, int64_t now);
/* Give the QPs of a group their copies of what QP @from sends to it. */
void roce_deliver_copies(RoceEngine *e, const RocePacket *pkt,
                         const RoceQp *from);

#endif /* ROCE_INT_H */
