/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libroce: a RoCEv2 transport engine without I/O.
 *
 * The engine owns memory regions and queue pairs of one port. It has no
 * clock, no thread, no socket and no global state: its owner hands it work
 * requests, frames and the time, and takes frames, completions and the next
 * deadline out of it. Same input, same output.
 *
 *   in:  RdmaConsumerOps.next_send/next_recv, roce_kick(), roce_rx(),
 *        roce_expire(), control calls
 *   out: roce_poll_tx(), RdmaConsumerOps.complete/retire/event,
 *        roce_next_deadline()
 *
 * Context: an engine belongs to one thread; there are no locks. No engine
 * function may be called from inside a RoceOps callback.
 *
 * Time is in nanoseconds of one monotonic clock of the owner's choice.
 * Functions that can fail return 0 or a negative errno.
 *
 * Inside (backends/rdma/roce) there are layers, each a folder with one header.
 * A file includes and calls what is in its own folder or below, never above:
 *
 *   .          this API: kicks, transmission, reception, state
 *   transport  requester, responder and datagrams, by direction
 *   queue      QPs, SRQs, completion, pacing, multicast groups
 *   mem        regions, windows, scatter/gather lists, frames
 *   core       schedule, timers, GIDs and paths, work request tables
 *   wire       headers, opcodes and ICRC of frames
 *
 * Sources: IBTA Architecture Specification Vol 1 Release 1.4, chapters 9, 10
 * and 11, Annex A17 (RoCEv2), Annex A19 (memory placement extensions).
 */
#ifndef RDMA_ROCE_H
#define RDMA_ROCE_H

#include <stddef.h>
#include <sys/uio.h>
#include "rdma/consumer.h"
#include "rdma/inspect.h"
#include "rdma/qp-check.h"
#include "rdma/verbs.h"

/* UDP destination port of RoCEv2 (IANA; IBTA A17.9.2). */
#define ROCE_UDP_PORT 4791

/* Ethernet + IPv6 + UDP + the longest chain of IB headers, rounded up. */
#define ROCE_MAX_HDR 160
/* Pad (up to 3 bytes) and ICRC (4 bytes). */
#define ROCE_MAX_TRAILER 8
#define ROCE_MAX_PAYLOAD 4096
/* The longest frame, in bytes, that the engine makes or takes. */
#define ROCE_MAX_FRAME (ROCE_MAX_HDR + ROCE_MAX_PAYLOAD + ROCE_MAX_TRAILER)
#define ROCE_TX_MAX_IOV 64
/*
 * Bytes of a frame that tell whose it is: Ethernet header with a VLAN tag, IPv6
 * header and UDP ports.
 */
#define ROCE_PEEK_LEN 62

/* The largest pages of an MR: RdmaMrAttr.page_shift. */
#define ROCE_MAX_PAGE_SHIFT 40

/* The longest queue, in WQEs: more than any device offers. */
#define ROCE_MAX_WR (1u << 20)

/* Returned by roce_next_deadline() when no timer runs. */
#define ROCE_NO_DEADLINE INT64_MAX

typedef struct RoceEngine RoceEngine;

/* What RoceOps.trace tells of, and what the fields of RoceTrace say there. */
typedef enum RoceTraceType {
    /* The QP is in another state: @value (RdmaQpState); it was @old. */
    ROCE_TRACE_QP_STATE,
    /* The QP's next packet is for the wire, which is blocked. */
    ROCE_TRACE_TX_WAIT,
    /* A NAK or RNR NAK for @psn; @value is its AETH syndrome (IBTA 9.7.5.2). */
    ROCE_TRACE_NAK_SENT,
    ROCE_TRACE_NAK_RECEIVED,
    /* No ACK of @psn came in time; @value: retries that are left. */
    ROCE_TRACE_TIMEOUT,
    /* The requester goes back to @psn; @value: retries that are left. */
    ROCE_TRACE_RETRANSMIT,
    /* A packet with @psn for the QP is dropped: @why. Without QPN, 0. */
    ROCE_TRACE_RX_DROP,
    /* CQ @value takes no completions any more; that of the QP was the first. */
    ROCE_TRACE_CQ_FAILED,
    /* roce_qp_modify() fails: @refusal. */
    ROCE_TRACE_QP_REFUSED,
} RoceTraceType;

typedef struct RoceTrace {
    RoceTraceType type;
    uint32_t qpn;
    uint32_t psn;
    uint32_t value;
    uint32_t old;
    const char *why;                /* a constant text */
    const RdmaQpRefusal *refusal;
} RoceTrace;

/*
 * What the engine needs from its owner. All of them are mandatory, unless it
 * says else. @opaque is the pointer given to roce_new().
 */
typedef struct RoceOps {
    /*
     * Map *@len bytes of guest memory at DMA address @addr for the device to
     * read (@write false) or write. Returns a host pointer and sets *@len to
     * the bytes that are really contiguous there (at least 1), or NULL if
     * nothing can be mapped at @addr.
     */
    void *(*map)(void *opaque, uint64_t addr, uint64_t *len, bool write);
    /*
     * Undo map(); the first @access_len bytes were really written (marks
     * them dirty) when @write.
     */
    void (*unmap)(void *opaque, void *host, uint64_t len, bool write,
                  uint64_t access_len);
    /*
     * Execute a 64-bit atomic on guest memory at DMA address @addr, which is
     * 8-byte aligned: compare @compare_add and swap in @swap, or add
     * @compare_add when @opcode is RDMA_WR_ATOMIC_FETCH_AND_ADD, or store it
     * when it is RDMA_WR_ATOMIC_WRITE. The guest's CPUs see it whole; operands
     * are host values of the guest's little-endian memory. Sets *@old.
     * Returns false if @addr cannot be accessed.
     */
    bool (*atomic)(void *opaque, uint64_t addr, uint32_t opcode,
                   uint64_t compare_add, uint64_t swap, uint64_t *old);
    /*
     * Its consumer. next_send and next_recv may be NULL: there are no WRs.
     * @consumer_opaque NULL: @opaque is the consumer's, too.
     */
    RdmaConsumerOps consumer;
    void *consumer_opaque;
    /*
     * Does the next frame to this MAC address go where nothing can spoil it?
     * Then its ICRC is left out: the field is 0. May be NULL.
     */
    bool (*unchecked)(void *opaque, const uint8_t mac[RDMA_MAC_LEN]);
    /*
     * There is something to transmit, or the next deadline changed, since
     * the engine last ran dry. The owner shall call roce_poll_tx() and
     * roce_next_deadline() soon, but not from inside this callback.
     */
    void (*wake)(void *opaque);
    /*
     * Something rare happened that explains what a QP does, for those who look
     * for the reason. @trace is valid during the call. May be NULL.
     */
    void (*trace)(void *opaque, const RoceTrace *trace);
    /*
     * Free memory of GLib that may be large: the list of a region, which was
     * given to the engine. May be NULL: then it is g_free().
     */
    void (*free_large)(void *opaque, void *mem, size_t size);
} RoceOps;

/* Limits that size the engine's tables; all at least 1. */
typedef struct RoceConfig {
    uint32_t max_qp;                /* QPNs are below this */
    uint32_t max_mr;                /* mrns and mwns are 1..max_mr */
    uint32_t gid_table_len;         /* 1..256 */
    uint32_t max_rd_atomic;         /* per QP, as initiator and as target */
    uint32_t max_srq;               /* srqns are below this; may be 0 */
    uint32_t max_mcast_grp;         /* multicast groups; may be 0 */
    uint32_t max_mcast_qp_attach;   /* QPs per group */
} RoceConfig;

/*
 * Counters since roce_new() or roce_reset(); frames, unless it says else. In
 * the order of the guest ABI: new ones come at the end.
 */
typedef struct RoceStats {
    uint64_t tx_frames;
    uint64_t tx_bytes;
    uint64_t rx_frames;
    uint64_t rx_bytes;
    uint64_t loopback_frames;
    uint64_t rx_icrc_errors;
    uint64_t rx_malformed;
    uint64_t rx_dropped;            /* no such QP, wrong state, peer, pkey.. */
    uint64_t rx_duplicates;
    uint64_t rx_out_of_sequence;
    uint64_t retransmits;           /* go-back-N restarts */
    uint64_t timeouts;
    uint64_t rnr_naks_sent;
    uint64_t rnr_naks_received;
    uint64_t naks_sent;
    uint64_t naks_received;
    uint64_t bad_pkey;
    uint64_t bad_qkey;
    uint64_t tx_mcast_frames;
    uint64_t rx_mcast_frames;
} RoceStats;

/* What there was of congestion since roce_new() or roce_reset(); frames. */
typedef struct RoceEcnStats {
    uint64_t marked;                /* received with a mark (CE) */
    uint64_t cnps_sent;
    uint64_t cnps_received;
} RoceEcnStats;

/*
 * A frame on its way out: an Ethernet frame without FCS, in @iovcnt pieces.
 * The pieces point into guest memory and into the RoceTxFrame itself, which
 * therefore must not be moved between roce_poll_tx() and roce_tx_done().
 */
typedef struct RoceTxFrame {
    struct iovec iov[ROCE_TX_MAX_IOV];
    unsigned iovcnt;
    size_t size;                    /* bytes in all */
    bool checked;                   /* the ICRC is there */
    /* private to the engine */
    uint8_t hdr[ROCE_MAX_HDR];
    uint8_t trailer[ROCE_MAX_TRAILER];
    uint8_t bounce[ROCE_MAX_PAYLOAD];
    unsigned nmaps;
    struct {
        void *host;
        uint64_t len;
    } maps[ROCE_TX_MAX_IOV];
} RoceTxFrame;

/*
 * Make an engine. @config and @ops are copied. Its link is up and has an MTU
 * of 1500 until its owner says otherwise. Never fails (memory exhaustion
 * aborts, as GLib does).
 */
RoceEngine *roce_new(const RoceConfig *config, const RoceOps *ops,
                     void *opaque);
/* Free the engine with all its objects; only free_large() is called back. */
void roce_free(RoceEngine *e);
/* Destroy all objects and forget the GIDs, silently; keeps MACs and MTU. */
void roce_reset(RoceEngine *e);

/*
 * MAC address of the port: source of its frames, and destination of the unicast
 * frames that it takes; multicast frames come to a multicast MAC.
 */
void roce_set_mac(RoceEngine *e, const uint8_t mac[RDMA_MAC_LEN]);
/* Take frames to @mac, too: that of a NIC which has the port's IP addresses. */
void roce_set_nic_mac(RoceEngine *e, const uint8_t mac[RDMA_MAC_LEN]);
/*
 * MTU of the link below, in bytes of IP packet; decides the largest RoCE MTU
 * (roce_port_mtu()). Existing QPs keep their path MTU.
 */
void roce_set_link_mtu(RoceEngine *e, uint32_t mtu);
/* While the link is down nothing is transmitted and frames are dropped. */
void roce_set_link(RoceEngine *e, bool up);
RdmaMtu roce_port_mtu(const RoceEngine *e);
const RoceStats *roce_stats(const RoceEngine *e);

/*
 * Which of RDMA_EXT_* the engine's QPs have from now on; none until its owner
 * says so. A WR of another one completes with LOC_QP_OP_ERR, a peer's request
 * is invalid. Not changed by roce_reset().
 */
void roce_set_extensions(RoceEngine *e, uint32_t extensions);

/*
 * DCQCN: frames of RC and UC QPs ask for marks in place of losses (ECT(0), RFC
 * 3168), and QPs whose peers tell of marks by CNPs (IBTA A17.9) send more
 * slowly, at first at most at @line_rate, in kb/s. 0, at first: CNPs have no
 * effect, and who gets marks sends CNPs anyway. Not changed by roce_reset().
 */
void roce_set_dcqcn(RoceEngine *e, uint32_t line_rate);
const RoceEcnStats *roce_ecn_stats(const RoceEngine *e);

/*
 * GID table. Entries are RoCE v2 GIDs: IPv6 addresses, or IPv4 addresses
 * mapped as ::ffff:a.b.c.d. Frames from a GID with a @vlan carry an 802.1Q
 * tag, with the SL's low 3 bits as priority (IBTA A17.9.1.1), and such a GID
 * takes only frames with that tag. Errors: -EINVAL (index, VLAN), -ENOENT
 * (delete of an empty entry).
 */
int roce_add_gid(RoceEngine *e, uint32_t index,
                 const uint8_t gid[RDMA_GID_LEN], uint16_t vlan);
int roce_del_gid(RoceEngine *e, uint32_t index);

/*
 * Memory regions. roce_mr_create() takes over attr->pages (g_free()d by the
 * engine) when it returns 0. roce_mr_map() stores the pending mapping of a
 * fast-registration MR, taking over @pages likewise; a REG_MR WR commits it.
 * Only user MRs have pages of another size than 4096 bytes. A page list has as
 * many pages as @length bytes, at least 1, from @iova on lie in; that they are
 * aligned is the owner's concern. Errors: -EINVAL (mrn, type, page size,
 * length, number of pages), -EEXIST, -ENOENT, -EBUSY (destruction of one that
 * windows are bound to), -E2BIG (more pages than max_pages).
 */
int roce_mr_create(RoceEngine *e, const RdmaMrAttr *attr);
int roce_mr_map(RoceEngine *e, uint32_t mrn, uint64_t iova, uint64_t length,
                uint64_t *pages, uint32_t npages);
int roce_mr_destroy(RoceEngine *e, uint32_t mrn);
/*
 * Change what @mask (RDMA_REREG_*) says of a user MR; @attr brings the new
 * values, and keys in any case. Takes over attr->pages when it returns 0
 * and @mask has RDMA_REREG_TRANSLATION. Errors: -EINVAL (mask, type, keys, page
 * size, length, number of pages), -ENOENT, -EBUSY (windows are bound to it).
 */
int roce_mr_modify(RoceEngine *e, uint32_t mask, const RdmaMrAttr *attr);

/*
 * Memory windows (IBTA 10.6.7); a BIND_MW WR binds them, and one that fails
 * completes with MW_BIND_ERR. A window of type 2 is unbound by LOCAL_INV or a
 * peer's SEND_WITH_INV on the QP that bound it, or when that is destroyed.
 * Peers name addresses of the region, or with RDMA_ACCESS_ZERO_BASED offsets
 * from where the window begins. While windows are bound to an MR it can be
 * neither destroyed nor modified nor invalidated (IBTA 10.6.7.2.6). Errors:
 * -EINVAL (mwn, type), -EEXIST, -ENOENT.
 */
int roce_mw_create(RoceEngine *e, const RdmaMwAttr *attr);
int roce_mw_destroy(RoceEngine *e, uint32_t mwn);

/*
 * Queue pairs. roce_qp_modify() checks the transition and its attributes
 * against IBTA 11.2.5.2 (table 91) for the QP's type and changes nothing
 * when it fails (-EINVAL); RoceOps.trace is told why. Entering RESET retires
 * every WQE without a completion; entering ERR flushes: a few WQEs at once, and
 * the others when roce_poll_tx() is called. roce_qp_destroy() drops the WQEs
 * without retiring them. Errors of roce_qp_create(): -EINVAL (type, qpn,
 * depths, SRQ), -EEXIST, -ENOMEM.
 */
int roce_qp_create(RoceEngine *e, const RdmaQpInitAttr *init);
int roce_qp_modify(RoceEngine *e, uint32_t qpn, uint32_t attr_mask,
                   const RdmaQpAttr *attr);
int roce_qp_query(RoceEngine *e, uint32_t qpn, RdmaQpAttr *attr);
int roce_qp_destroy(RoceEngine *e, uint32_t qpn);

/*
 * Shared receive queues. Errors: -EEXIST, -EINVAL (srqn, attributes, a limit
 * above max_wr), -ENOENT, -ENOMEM, -EBUSY (destroy while a QP uses it). A QP
 * (not the GSI) with an SRQ has no receive queue of its own: its
 * cap.max_recv_wr and _sge are 0 whatever it is created with, and nothing can
 * be posted there.
 *
 * A message takes the oldest WQE when its first packet comes, a WRITE with
 * immediate data when its last one does; an RC QP that finds none sends
 * an RNR NAK. From then on the WQE is the QP's, and the consumer's retire() is
 * not called for it. On ERR the one that a QP holds is flushed, and
 * LAST_WQE_REACHED says that there are no more to come (IBTA 10.2.9.5);
 * RESET and destruction drop it. A UC message that breaks off leaves its WQE
 * to the QP's next one.
 *
 * Keys in the WQEs are of the SRQ's PD, whatever that of the QP is.
 *
 * A limit above the number of WQEs that are there raises the event at once
 * when it is set, but not when the SRQ is created with it.
 */
int roce_srq_create(RoceEngine *e, const RdmaSrqAttr *attr);
int roce_srq_set_limit(RoceEngine *e, uint32_t srqn, uint32_t limit);
int roce_srq_query(const RoceEngine *e, uint32_t srqn, RdmaSrqAttr *attr);
int roce_srq_destroy(RoceEngine *e, uint32_t srqn);

/*
 * Multicast (IBTA 10.5.2): a UD QP gets a copy of what is sent to @gid, an
 * IPv6 multicast address or an IPv4 one mapped as ::ffff:a.b.c.d. Errors:
 * -EINVAL (not multicast, not a UD QP, attached already or not), -ENOENT
 * (QP), -ENOSPC (groups, or QPs of one group). A QP that is destroyed leaves
 * its groups.
 */
int roce_mcast_attach(RoceEngine *e, uint32_t qpn,
                      const uint8_t gid[RDMA_GID_LEN]);
int roce_mcast_detach(RoceEngine *e, uint32_t qpn,
                      const uint8_t gid[RDMA_GID_LEN]);

/*
 * Look at an object, which changes nothing: for people, see rdma/inspect.h.
 * What the engine knows of a QP is everything. Errors: -ENOENT.
 */
int roce_inspect(const RoceEngine *e, RdmaObjectType what, uint32_t id,
                 RdmaInspection *out);

/*
 * The consumer has posted to @queue. RDMA_SQ: ask for sends by its next_send()
 * when QP @id has its turn; a QP without such a call since the answer
 * RDMA_NEXT_NONE is taken for one that has nothing to send. RDMA_RQ:
 * peers that wait for a receive are told of it, and in ERR it is flushed. Other
 * messages ask by themselves, so that RDMA_SRQ has no effect. There may be no
 * such queue.
 */
void roce_kick(RoceEngine *e, RdmaQueue queue, uint32_t id);
/* A turn of the owner begins: ask again those that said RDMA_NEXT_LATER. */
void roce_rescan(RoceEngine *e);
/* Are there such queues? Then the owner takes another turn soon. */
bool roce_has_rescans(const RoceEngine *e);

/*
 * Is this Ethernet frame RoCEv2, addressed to the port's MAC and one of the
 * engine's GIDs (or to a multicast group it has joined)? @len bytes of it are
 * given; the first ROCE_PEEK_LEN of a longer frame are enough.
 */
bool roce_is_ours(const RoceEngine *e, const uint8_t *frame, size_t len);
/*
 * Take a received Ethernet frame (without FCS), whole and contiguous. The
 * engine is done with @frame when this returns. Whatever is wrong with it
 * ends in a counter, or in what IBTA 9.9 prescribes.
 */
void roce_rx(RoceEngine *e, const uint8_t *frame, size_t len, int64_t now);
/*
 * Likewise with a frame that is not checked by its ICRC, and of which
 * roce_is_ours() was not asked. It may change meanwhile.
 */
void roce_rx_unchecked(RoceEngine *e, const uint8_t *frame, size_t len,
                       int64_t now);

/*
 * Get the next frame to transmit, or false if there is none now. Frames to
 * the engine's own GIDs are delivered inside, and WQEs of QPs in ERR or SQE are
 * flushed. After much work of that kind it returns false though there is more,
 * with RoceOps.wake called and a deadline of now. Every frame got is given back
 * with roce_tx_done() before the next call into the engine.
 */
bool roce_poll_tx(RoceEngine *e, int64_t now, RoceTxFrame *frame);
/*
 * While the owner cannot send, roce_poll_tx() returns no frame, but goes on
 * with all that does not leave the engine. Calls RoceOps.wake when QPs have
 * waited for the end of it. Not reset by roce_reset().
 */
void roce_set_tx_blocked(RoceEngine *e, bool blocked);
/*
 * Does a QP have requests that wait until others are acknowledged? As far as it
 * is known since the last response came in.
 */
bool roce_waits_for_acks(const RoceEngine *e);
void roce_tx_done(RoceEngine *e, RoceTxFrame *frame);
/*
 * The work that the engine has done since roce_new(), see rdma/work.h. For
 * owners that share their thread with others.
 */
uint64_t roce_work(const RoceEngine *e);

/*
 * Run the timers that are due; then roce_poll_tx() may have frames. @heard: all
 * frames that had come in by then have been given to roce_rx(). A request whose
 * answer was due later than that is overdue, and does not time out yet.
 */
void roce_expire(RoceEngine *e, int64_t now, int64_t heard);
/*
 * Was a request overdue at the end of the last roce_expire()? The owner shall
 * call that again with a later @heard; roce_next_deadline() does not say so.
 */
bool roce_any_overdue(const RoceEngine *e);
/* How often a request was overdue and had its answer, unread. */
uint64_t roce_timeouts_late(const RoceEngine *e);
/*
 * Frames could not be taken for a while, here or by the engine whose state
 * was imported: have RC connections make up for that now, not when their
 * timers run out. Then roce_poll_tx() may have frames. Uses up no retries
 * here, and one of the peer's if it has to go back.
 */
void roce_resume(RoceEngine *e, int64_t now);
/* When roce_expire() must be called next, or ROCE_NO_DEADLINE. */
int64_t roce_next_deadline(const RoceEngine *e);

#endif /* RDMA_ROCE_H */
