/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libroce: a RoCEv2 transport engine without I/O.
 *
 * The engine holds the memory regions and queue pairs of one port. It has no
 * clock, no thread, no socket and no global state. Its owner passes work
 * requests, frames and the time to it, and gets frames, completions and the
 * next deadline from it. The same input gives the same output.
 *
 *   in:  RdmaConsumerOps.next_send/next_recv, roce_kick(), roce_rx(),
 *        roce_expire(), control calls
 *   out: roce_poll_tx(), RdmaConsumerOps.complete/retire/event,
 *        roce_next_deadline()
 *
 * Context: one thread at a time may call into an engine; the engine takes no
 * locks. A RoceOps callback runs inside such a call, in the same thread, and
 * must not call any function of the engine except roce_inspect(). Other threads
 * may call roce_is_ours() and roce_port_mtu() while no control call runs.
 *
 * Times (@now and deadlines) are nanoseconds of one monotonic clock that the
 * owner chooses. Functions that can fail return 0 or a negative errno. Values
 * are in host byte order, except GIDs, MAC addresses and immediate data.
 *
 * The engine consists of layers, each a folder of backends/rdma/roce with one
 * header for the folders above it. A file includes and calls only its own
 * folder and those below:
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

/* Bytes: Ethernet, IPv6, UDP and the longest chain of IB headers, rounded up */
#define ROCE_MAX_HDR 160
/* Bytes: pad (up to 3) and ICRC (4), rounded up */
#define ROCE_MAX_TRAILER 8
/* Bytes: the largest path MTU (IBTA 9.4) */
#define ROCE_MAX_PAYLOAD 4096
/* The longest frame, in bytes, that the engine sends or accepts */
#define ROCE_MAX_FRAME (ROCE_MAX_HDR + ROCE_MAX_PAYLOAD + ROCE_MAX_TRAILER)
/* The most pieces of a RoceTxFrame, with headers and trailer */
#define ROCE_TX_MAX_IOV 64
/*
 * The bytes of a frame that roce_is_ours() needs: Ethernet header with a VLAN
 * tag, IPv6 header and UDP ports
 */
#define ROCE_PEEK_LEN 62

/* The limit of RdmaMrAttr.page_shift: pages of 1 TiB */
#define ROCE_MAX_PAGE_SHIFT 40

/* The longest queue, in WQEs: more than any device offers. */
#define ROCE_MAX_WR (1u << 20)

/* Returned by roce_next_deadline() when no timer runs. */
#define ROCE_NO_DEADLINE INT64_MAX

typedef struct RoceEngine RoceEngine;

/* The events that RoceOps.trace reports, and how they use RoceTrace's fields */
typedef enum RoceTraceType {
    /* The state of the QP changed from @old to @value (RdmaQpState). */
    ROCE_TRACE_QP_STATE,
    /* The QP waits: its next packet needs the wire, which is blocked. */
    ROCE_TRACE_TX_WAIT,
    /* A NAK or RNR NAK for @psn; @value is its AETH syndrome (IBTA 9.7.5.2). */
    ROCE_TRACE_NAK_SENT,
    ROCE_TRACE_NAK_RECEIVED,
    /* No ACK of @psn arrived in time; @value is the number of retries left. */
    ROCE_TRACE_TIMEOUT,
    /* The requester goes back to @psn; @value is the number of retries left. */
    ROCE_TRACE_RETRANSMIT,
    /* A packet was dropped for @why; @qpn and @psn are 0 if unknown. */
    ROCE_TRACE_RX_DROP,
    /* CQ @value failed when @qpn posted a completion to it. */
    ROCE_TRACE_CQ_FAILED,
    /* roce_qp_modify() failed for the reason @refusal. */
    ROCE_TRACE_QP_REFUSED,
} RoceTraceType;

/* One event. Fields that the event does not use are 0 or NULL. */
typedef struct RoceTrace {
    RoceTraceType type;
    uint32_t qpn;
    uint32_t psn;
    uint32_t value;
    uint32_t old;
    const char *why;                /* a constant text */
    const RdmaQpRefusal *refusal;   /* valid during the call */
} RoceTrace;

/*
 * The functions of the owner that the engine calls. Every one is mandatory
 * unless its comment says otherwise. roce_new() sets @opaque.
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
     * Undo map() with the same @host, @len and @write. With @write, the first
     * @access_len bytes were written; the owner marks them dirty.
     */
    void (*unmap)(void *opaque, void *host, uint64_t len, bool write,
                  uint64_t access_len);
    /*
     * Execute a 64-bit atomic operation on guest memory at DMA address @addr,
     * which is 8-byte aligned. The operation depends on @opcode:
     *
     * RDMA_WR_ATOMIC_CMP_AND_SWP   if memory is @compare_add, store @swap
     * RDMA_WR_ATOMIC_FETCH_AND_ADD add @compare_add
     * RDMA_WR_ATOMIC_WRITE         store @compare_add
     *
     * It is atomic towards the guest's CPUs. The operands are in host byte
     * order, guest memory is little-endian. Sets *@old to the previous value.
     * Returns false if @addr cannot be accessed.
     */
    bool (*atomic)(void *opaque, uint64_t addr, uint32_t opcode,
                   uint64_t compare_add, uint64_t swap, uint64_t *old);
    /*
     * The consumer whose work queues the engine pulls from. next_send and
     * next_recv may be NULL if the consumer posts no WRs.
     */
    RdmaConsumerOps consumer;
    /* The @opaque of these functions; NULL: the one given to roce_new() */
    void *consumer_opaque;
    /*
     * Does the next frame to this MAC address take a path that cannot corrupt
     * it? If so, the engine leaves its ICRC out (the field is 0). May be NULL.
     */
    bool (*unchecked)(void *opaque, const uint8_t mac[RDMA_MAC_LEN]);
    /*
     * The engine has something to transmit, or its next deadline changed, for
     * the first time since roce_poll_tx() last returned false. The owner shall
     * call roce_poll_tx() and roce_next_deadline() soon, but not from inside
     * this callback.
     */
    void (*wake)(void *opaque);
    /*
     * Report a rare event that explains the behaviour of a QP. @trace is valid
     * during the call. May be NULL.
     */
    void (*trace)(void *opaque, const RoceTrace *trace);
    /*
     * Free @mem, the page list of @size bytes of a region that is destroyed or
     * registered again. Freeing it may take long. May be NULL; the engine then
     * calls g_free(), as for other lists.
     */
    void (*free_large)(void *opaque, void *mem, size_t size);
} RoceOps;

/* The limits that size the engine's tables; at least 1 unless noted */
typedef struct RoceConfig {
    uint32_t max_qp;                /* QPNs are below this */
    uint32_t max_mr;                /* mrns and mwns are in 1..max_mr */
    uint32_t gid_table_len;         /* 1..256 */
    uint32_t max_rd_atomic;         /* per QP, as initiator and as target */
    uint32_t max_srq;               /* srqns are below this; may be 0 */
    uint32_t max_mcast_grp;         /* multicast groups; may be 0 */
    uint32_t max_mcast_qp_attach;   /* QPs per group */
} RoceConfig;

/*
 * Counters since roce_new() or roce_reset(), of frames unless noted. They are
 * in the order of RdmaCounter, which has their meanings.
 */
typedef struct RoceStats {
    uint64_t tx_frames;
    uint64_t tx_bytes;
    uint64_t rx_frames;
    uint64_t rx_bytes;
    uint64_t loopback_frames;
    uint64_t rx_icrc_errors;
    uint64_t rx_malformed;
    uint64_t rx_dropped;            /* no such QP, wrong state or peer etc. */
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

/* Counters of congestion since roce_new() or roce_reset(), of frames */
typedef struct RoceEcnStats {
    uint64_t marked;                /* received with a mark (CE) */
    uint64_t cnps_sent;
    uint64_t cnps_received;
} RoceEcnStats;

/*
 * A frame to transmit: an Ethernet frame without FCS, in @iovcnt pieces. The
 * pieces point into guest memory and into the RoceTxFrame itself, which
 * therefore must not move between roce_poll_tx() and roce_tx_done(). The owner
 * allocates it and need not initialize it.
 */
typedef struct RoceTxFrame {
    struct iovec iov[ROCE_TX_MAX_IOV];
    unsigned iovcnt;
    size_t size;                    /* bytes of all pieces */
    bool checked;                   /* has an ICRC; see RoceOps.unchecked */
    /* Private to the engine */
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
 * Create an engine. @config and @ops are copied. Its link is up and has an MTU
 * of 1500 bytes until the owner changes that. Never fails: GLib aborts if there
 * is no memory.
 */
RoceEngine *roce_new(const RoceConfig *config, const RoceOps *ops,
                     void *opaque);
/*
 * Free the engine with all its objects. It calls only RoceOps.free_large().
 * @e may be NULL.
 */
void roce_free(RoceEngine *e);
/*
 * Destroy all objects and delete all GIDs, without completions or events. MAC
 * addresses and MTU stay.
 */
void roce_reset(RoceEngine *e);

/*
 * Set the MAC address of the port. It is the source of all frames that the port
 * sends, and the destination of the unicast frames that the port accepts.
 * Multicast frames have a multicast MAC address as destination. Also sets the
 * address of roce_set_nic_mac().
 */
void roce_set_mac(RoceEngine *e, const uint8_t mac[RDMA_MAC_LEN]);
/*
 * Accept frames to @mac as well: the address of a NIC that has the port's IP
 * addresses.
 */
void roce_set_nic_mac(RoceEngine *e, const uint8_t mac[RDMA_MAC_LEN]);
/*
 * Set the MTU of the link, in bytes of an IP packet. It determines the largest
 * path MTU, roce_port_mtu(). Existing QPs keep their path MTU.
 */
void roce_set_link_mtu(RoceEngine *e, uint32_t mtu);
/* While the link is down, the engine drops all frames to and from the wire. */
void roce_set_link(RoceEngine *e, bool up);
RdmaMtu roce_port_mtu(const RoceEngine *e);
/* The counters, which change while the engine runs. They belong to @e. */
const RoceStats *roce_stats(const RoceEngine *e);

/*
 * Set the optional operations (RDMA_EXT_*) that QPs support; none at first. A
 * WR with another optional operation completes with LOC_QP_OP_ERR, and such a
 * request of a peer is answered as invalid. roce_reset() does not change this.
 */
void roce_set_extensions(RoceEngine *e, uint32_t extensions);

/*
 * Enable DCQCN on a line of @line_rate kb/s; 0, the initial value, disables it.
 * If enabled, frames of RC and UC QPs ask switches to mark instead of drop
 * (ECT(0), RFC 3168), and a QP that receives CNPs (IBTA A17.9) reduces its
 * rate, starting from @line_rate. If disabled, received CNPs have no effect. A
 * QP that receives marked frames sends CNPs in either case. roce_reset() does
 * not change this.
 */
void roce_set_dcqcn(RoceEngine *e, uint32_t line_rate);
/* The counters of congestion, which belong to @e */
const RoceEcnStats *roce_ecn_stats(const RoceEngine *e);

/*
 * The GID table. Entries are RoCE v2 GIDs: IPv6 addresses, or IPv4 addresses
 * mapped as ::ffff:a.b.c.d. Frames from a GID with a @vlan carry an 802.1Q tag,
 * whose priority is the low 3 bits of the SL (IBTA A17.9.1.1). Such a GID
 * accepts only frames with that tag. roce_add_gid() replaces an entry. Errors:
 * -EINVAL (index, VLAN, or a GID that is zero or multicast), -ENOENT (deletion
 * of an empty entry).
 */
int roce_add_gid(RoceEngine *e, uint32_t index,
                 const uint8_t gid[RDMA_GID_LEN], uint16_t vlan);
int roce_del_gid(RoceEngine *e, uint32_t index);

/*
 * Memory regions. If roce_mr_create() returns 0, the engine takes over
 * attr->pages, which is memory of GLib. roce_mr_map() stores the pending
 * mapping of a fast-registration MR and takes over @pages in the same way; a
 * REG_MR WR commits the mapping. Only user MRs may have pages of another size
 * than 4096 bytes. A page list has exactly the pages that @length bytes, at
 * least 1, from @iova on lie in. The owner ensures that the addresses of the
 * pages are aligned. Errors: -EINVAL (mrn, type, page size, length, number of
 * pages), -EEXIST, -ENOENT, -EBUSY (destruction while windows are bound to the
 * region), -E2BIG (more pages than max_pages).
 */
int roce_mr_create(RoceEngine *e, const RdmaMrAttr *attr);
int roce_mr_map(RoceEngine *e, uint32_t mrn, uint64_t iova, uint64_t length,
                uint64_t *pages, uint32_t npages);
int roce_mr_destroy(RoceEngine *e, uint32_t mrn);
/*
 * Change the parts of a user MR that @mask (RDMA_REREG_*) selects. @attr has
 * the new values, and new keys in any case. If this returns 0 and @mask has
 * RDMA_REREG_TRANSLATION, the engine takes over attr->pages. Errors: -EINVAL
 * (mask, type, keys, page size, length, number of pages), -ENOENT, -EBUSY
 * (windows are bound to the region).
 */
int roce_mr_modify(RoceEngine *e, uint32_t mask, const RdmaMrAttr *attr);

/*
 * Memory windows (IBTA 10.6.7). A BIND_MW WR binds a window; if it fails, it
 * completes with MW_BIND_ERR. A window of type 2 is unbound by LOCAL_INV or by
 * a peer's SEND_WITH_INV on the QP that bound it, and when that QP is
 * destroyed. Peers use addresses of the region, or with RDMA_ACCESS_ZERO_BASED
 * offsets from the start of the window. An MR to which windows are bound cannot
 * be destroyed, modified or invalidated (IBTA 10.6.7.2.6). Errors: -EINVAL
 * (mwn, key, type), -EEXIST, -ENOENT.
 */
int roce_mw_create(RoceEngine *e, const RdmaMwAttr *attr);
int roce_mw_destroy(RoceEngine *e, uint32_t mwn);

/*
 * Queue pairs. All functions return -ENOENT if there is no such QP.
 *
 * roce_qp_create() copies @init. Errors: -EINVAL (type, qpn, depths, SRQ),
 * -EEXIST, -ENOMEM.
 *
 * roce_qp_modify() checks the transition and its attributes against IBTA
 * 11.2.5.2 (table 91) for the QP's type. If it fails (-EINVAL), the QP is
 * unchanged and RoceOps.trace gets the reason. A transition to RESET retires
 * all WQEs without completions. A transition to ERR flushes some WQEs at once;
 * roce_poll_tx() flushes the others.
 *
 * roce_qp_destroy() drops the WQEs without retiring them.
 */
int roce_qp_create(RoceEngine *e, const RdmaQpInitAttr *init);
int roce_qp_modify(RoceEngine *e, uint32_t qpn, uint32_t attr_mask,
                   const RdmaQpAttr *attr);
int roce_qp_query(RoceEngine *e, uint32_t qpn, RdmaQpAttr *attr);
int roce_qp_destroy(RoceEngine *e, uint32_t qpn);

/*
 * Shared receive queues (IBTA 10.2.9). Errors: -EEXIST, -EINVAL (srqn,
 * attributes, a limit above max_wr), -ENOENT, -ENOMEM, -EBUSY (destruction
 * while a QP uses the SRQ).
 *
 * A QP with an SRQ has no receive queue of its own: its cap.max_recv_wr and
 * cap.max_recv_sge become 0. The GSI cannot have an SRQ.
 *
 * A message takes the oldest WQE of the SRQ when its first packet arrives, a
 * WRITE with immediate data when its last packet does. An RC QP that finds no
 * WQE sends an RNR NAK. Once taken, the WQE belongs to the QP; the consumer's
 * retire() is not called for it. In ERR the QP flushes the WQE that it holds
 * and raises LAST_WQE_REACHED (IBTA 10.2.9.5). RESET and destruction of the QP
 * drop the WQE. If a UC message breaks off, the next message of the QP uses its
 * WQE.
 *
 * The keys in the WQEs belong to the PD of the SRQ, not to the PD of the QP.
 *
 * roce_srq_set_limit() raises SRQ_LIMIT_REACHED at once if the SRQ has fewer
 * WQEs than the limit; roce_srq_create() does not.
 */
int roce_srq_create(RoceEngine *e, const RdmaSrqAttr *attr);
int roce_srq_set_limit(RoceEngine *e, uint32_t srqn, uint32_t limit);
int roce_srq_query(const RoceEngine *e, uint32_t srqn, RdmaSrqAttr *attr);
int roce_srq_destroy(RoceEngine *e, uint32_t srqn);

/*
 * Multicast (IBTA 10.5.2): an attached UD QP gets a copy of each datagram to
 * @gid, an IPv6 multicast address, or an IPv4 one mapped as ::ffff:a.b.c.d. A
 * QP leaves its groups when it is destroyed. Errors: -EINVAL (@gid is not
 * multicast, the QP is not UD, or it is attached already, or not attached),
 * -ENOENT (QP), -ENOSPC (too many groups, or QPs in the group).
 */
int roce_mcast_attach(RoceEngine *e, uint32_t qpn,
                      const uint8_t gid[RDMA_GID_LEN]);
int roce_mcast_detach(RoceEngine *e, uint32_t qpn,
                      const uint8_t gid[RDMA_GID_LEN]);

/*
 * Read the state of an object into @out, for rdma/inspect.h. Changes nothing.
 * Errors: -ENOENT, -EINVAL (an object type that the engine does not have).
 */
int roce_inspect(const RoceEngine *e, RdmaObjectType what, uint32_t id,
                 RdmaInspection *out);

/*
 * The consumer has posted to @queue; the queue need not exist.
 *
 * RDMA_SQ: the engine calls next_send() when QP @id has its turn. After the
 * answer RDMA_NEXT_NONE it does not call next_send() again before a kick. After
 * RDMA_NEXT_LATER in RTS it does in each turn, but takes no turn for that.
 *
 * RDMA_RQ: the engine tells a peer that waits for a receive of QP @id. In ERR
 * it flushes the receive. In other cases messages pull receives when they need
 * them, so RDMA_SRQ has no effect.
 */
void roce_kick(RoceEngine *e, RdmaQueue queue, uint32_t id);

/*
 * Is this Ethernet frame RoCEv2, and is it addressed to the port's MAC address
 * and one of its GIDs, or to a multicast group that a QP has joined? @frame has
 * @len bytes; the first ROCE_PEEK_LEN bytes of a longer frame suffice.
 */
bool roce_is_ours(const RoceEngine *e, const uint8_t *frame, size_t len);
/*
 * Receive an Ethernet frame (without FCS) for which roce_is_ours() is true.
 * @frame is complete and contiguous, and the engine does not use it after this
 * returns. The engine counts a frame with an error, or reacts as IBTA 9.9
 * prescribes.
 */
void roce_rx(RoceEngine *e, const uint8_t *frame, size_t len, int64_t now);
/*
 * Receive a frame without an ICRC, for which roce_is_ours() need not be true.
 * @frame may lie in memory that others change during the call.
 */
void roce_rx_unchecked(RoceEngine *e, const uint8_t *frame, size_t len,
                       int64_t now);

/*
 * Get the next frame to transmit. Returns false if there is none. The owner
 * gives the frame back with roce_tx_done() before it calls any other function
 * of the engine.
 *
 * This call also delivers frames to the engine's own GIDs, and flushes WQEs of
 * QPs in ERR or SQE. After RDMA_TURN_BUDGET of such work it returns false
 * although there is more to do. It then calls RoceOps.wake, and
 * roce_next_deadline() is @now.
 */
bool roce_poll_tx(RoceEngine *e, int64_t now, RoceTxFrame *frame);
/*
 * Tell the engine whether the owner can send. While @blocked is true,
 * roce_poll_tx() returns no frame, but continues all other work. The call that
 * ends this state calls RoceOps.wake if a QP has waited. roce_reset() does not
 * change the state.
 */
void roce_set_tx_blocked(RoceEngine *e, bool blocked);
/*
 * Did a QP, since the last response arrived, have requests that must wait for
 * acknowledgements of others?
 */
bool roce_waits_for_acks(const RoceEngine *e);
/* Give back @frame; its memory is unmapped. */
void roce_tx_done(RoceEngine *e, RoceTxFrame *frame);
/*
 * The work that the engine has done since roce_new(), in the unit of
 * rdma/work.h. Owners that share their thread with others limit it.
 */
uint64_t roce_work(const RoceEngine *e);

/*
 * Run the timers that are due at @now; roce_poll_tx() may have frames after
 * that. The owner has passed all frames that arrived until @heard to roce_rx().
 * If an answer was due after @heard, it may have arrived unread: the request is
 * overdue, but does not time out yet.
 */
void roce_expire(RoceEngine *e, int64_t now, int64_t heard);
/*
 * Was a request overdue at the end of the last roce_expire()? If so, the owner
 * shall call roce_expire() again with a later @heard. roce_next_deadline() does
 * not include this.
 */
bool roce_any_overdue(const RoceEngine *e);
/* How often the answer of an overdue request had arrived, since the reset */
uint64_t roce_timeouts_late(const RoceEngine *e);
/*
 * Recover from a pause in which frames were lost, either here or in the engine
 * whose state was imported. RC connections retransmit at once, not when their
 * timers run out; roce_poll_tx() may have frames after that. This uses none of
 * their own retries, and one retry of a peer that has to go back.
 */
void roce_resume(RoceEngine *e, int64_t now);
/* The time of the next call of roce_expire(), or ROCE_NO_DEADLINE */
int64_t roce_next_deadline(const RoceEngine *e);

#endif /* RDMA_ROCE_H */
