/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of an engine's objects that another engine needs to continue with
 * them, for migration. Structures named *State live in the engine; those named
 * *Image are what an export produces and an import reads. Fields have a fixed
 * width and are in host byte order; cursors are indices. State that can be
 * derived from these fields is not exported; the import derives it.
 *
 * To move an engine, export its GIDs, MRs, SRQs, QPs, windows and multicast
 * groups between two calls into it. Import them in this order into an engine
 * with the same RoceConfig. Its clock continues from the same value. Frames in
 * flight may be lost.
 *
 * Context: as for rdma/roce.h. The functions here call no RoceOps except wake.
 *
 * Queue indices count up modulo 2^32. The WQE with an index is in slot
 * index & mask of its ring. PSNs have 24 bits (IBTA 9.7.2).
 *
 * Sources: IBTA Vol 1 Release 1.4, chapter 9.7 (reliable service), 9.8
 * (unreliable service), 10.8 (work requests).
 */
#ifndef RDMA_ROCE_STATE_H
#define RDMA_ROCE_STATE_H

#include "rdma/roce.h"

/*
 * A send WQE. It has the size of a cache line, because thousands of queue pairs
 * do not fit into the cache. Its scatter/gather list, its inline data and its
 * RoceSendArgs are in other arrays of the queue, at the same slot.
 *
 * A WQE is started when the send cursor reaches it for the first time. It then
 * gets its PSNs: one per packet, or for a READ one per response packet (IBTA
 * 9.7.3.1).
 */
typedef struct RoceSendWqe {
    uint64_t wr_id;
    uint64_t remote_addr;           /* REG_MR, BIND_MW: the iova */
    uint32_t status;                /* RdmaWcStatus to fail with, or SUCCESS */
    uint32_t opcode;                /* RdmaWrOpcode */
    uint32_t send_flags;            /* RDMA_SEND_* */
    uint32_t num_sge;               /* 0 with inline data */
    uint32_t length;                /* bytes of the message */
    uint32_t rkey;                  /* REG_MR, BIND_MW: the new key */
    uint32_t invalidate_rkey;       /* BIND_MW: the old key */
    uint32_t npages;                /* REG_MR: pages that the WR carries */
    uint32_t first_psn;             /* once started */
    uint32_t npsn;                  /* once started; 0: sends no packet */
    uint8_t imm[4];                 /* network order, opaque */
    uint8_t is_inline;
    uint8_t done;                   /* completes once it is the oldest */
} RoceSendWqe;

/*
 * Operands of datagrams and of some opcodes. A field is 0 if the opcode does
 * not use it.
 */
typedef struct RoceSendArgs {
    uint64_t reg_length;            /* REG_MR, BIND_MW, FLUSH: bytes */
    uint64_t compare_add;           /* ATOMICs; ATOMIC_WRITE: inline value */
    uint64_t swap;                  /* CMP_AND_SWP */
    uint32_t lkey;                  /* BIND_MW: of the region */
    uint32_t mrn;                   /* REG_MR */
    uint32_t access;                /* REG_MR, BIND_MW; FLUSH: its FETH */
    /* Datagrams */
    uint32_t remote_qpn;
    uint32_t remote_qkey;
    RdmaAv av;
} RoceSendArgs;

typedef struct RoceRecvWqe {
    uint64_t wr_id;
    uint32_t status;                /* RdmaWcStatus to fail with, or SUCCESS */
    uint32_t num_sge;
} RoceRecvWqe;

/*
 * The send queue and its requester (IBTA 9.7.3).
 *
 * Invariants: cons <= cur <= started <= prod (indices, modulo 2^32), and
 * una <= psn <= sent <= end (PSNs, modulo 2^24, within 2^23 of each other).
 */
typedef struct RoceSqState {
    uint32_t cons;                  /* oldest WQE that is not retired */
    uint32_t cur;                   /* send cursor: the WQE to send next */
    uint32_t cur_pkt;               /* PSNs of that WQE before the cursor */
    uint32_t started;               /* one past the newest started WQE */
    uint32_t prod;                  /* one past the newest WQE */
    uint32_t una;                   /* oldest unacknowledged PSN */
    uint32_t psn;                   /* PSN of the next packet */
    uint32_t sent;                  /* one past the highest PSN sent */
    uint32_t end;                   /* one past the highest PSN given out */
    uint32_t rd_atomic;             /* outstanding READs, ATOMICs and so on */
    uint32_t rd_psns;               /* PSNs of responses they wait for */
    uint32_t unrequested;           /* packets since the last AckReq */
    uint8_t retries;                /* left (IBTA 9.9.2.1) */
    uint8_t rnr_retries;            /* left */
    uint8_t seq_error_handled;      /* went back to una for it */
    uint8_t rnr_wait;               /* sends nothing until rnr_deadline */
    uint8_t draining;               /* in SQD, WQEs still in progress */
    int64_t ack_deadline;           /* ns, or ROCE_NO_DEADLINE */
    int64_t rnr_deadline;           /* ns, or ROCE_NO_DEADLINE */
    int64_t send_at;                /* ns; pacing: the next packet's time */
} RoceSqState;

/* The receive queue. With an SRQ: the WQE that the QP took from it, if any. */
typedef struct RoceRqState {
    uint32_t cons;                  /* oldest WQE that is not retired */
    uint32_t prod;                  /* one past the newest WQE */
} RoceRqState;

typedef enum RoceResourceType {
    ROCE_RES_NONE,
    ROCE_RES_READ,
    ROCE_RES_ATOMIC,
    ROCE_RES_ATOMIC_WRITE,
    ROCE_RES_FLUSH,
} RoceResourceType;

/*
 * A responder resource: a READ, ATOMIC, FLUSH or ATOMIC WRITE that was
 * executed. The responder keeps it to repeat the response for a duplicate
 * request (IBTA 9.7.5.1.4 f.), until it has accepted max_dest_rd_atomic newer
 * ones. The fields from reply_va on describe the response to send. A duplicate
 * READ sets them for the range that it asks for: the same or its end.
 */
typedef struct RoceResource {
    uint64_t va;                    /* address in the request */
    uint64_t result;                /* ATOMIC: the previous value */
    uint32_t type;                  /* RoceResourceType */
    uint32_t opcode;                /* ATOMIC: the request's; FLUSH: FETH */
    uint32_t rkey;
    uint32_t len;                   /* READ, FLUSH: bytes */
    uint32_t psn;                   /* of the request */
    uint32_t npsn;                  /* packets of the response */
    uint32_t msn;
    uint8_t first;                  /* its first response is not complete */
    uint8_t pending;                /* it has a response to send */
    uint64_t reply_va;
    uint32_t reply_len;             /* bytes */
    uint32_t reply_off;             /* bytes that were sent */
    uint32_t reply_psn;             /* of the next packet */
} RoceResource;

/* The ACK or NAK that a responder has to send after the pending responses */
typedef enum RoceAckKind {
    ROCE_ACK_NONE,
    ROCE_ACK_POSITIVE,              /* of all PSNs up to epsn - 1 */
    ROCE_ACK_NEGATIVE,              /* ack_syndrome, for ack_psn */
} RoceAckKind;

/*
 * The responder (IBTA 9.7.4 f.). Resources have indices like WQEs. The last
 * max_dest_rd_atomic ones below res_prod are valid.
 */
typedef struct RoceRespState {
    uint32_t epsn;                  /* expected PSN */
    uint32_t msn;
    uint32_t op;                    /* ROCE_OP_SEND or _WRITE of an */
                                    /* incomplete message, or 0 */
    uint32_t offset;                /* bytes of that message received */
    uint64_t write_va;              /* of the incomplete WRITE */
    uint32_t write_rkey;
    uint32_t write_len;             /* bytes of the whole WRITE */
    uint32_t res_prod;              /* one past the newest resource */
    uint32_t res_out;               /* oldest resource that may be pending */
    uint32_t ack_kind;              /* RoceAckKind */
    uint32_t ack_psn;
    uint8_t ack_syndrome;
    uint8_t nak_sent;               /* for epsn; is not repeated */
    uint8_t comm_est;               /* the event COMM_EST was raised */
    uint8_t closing;                /* in ERR, responses or a NAK to send */
} RoceRespState;

/* The state of a QP. attr.qp_state is the QP's state in the sense of IBTA. */
typedef struct RoceQpState {
    RoceSqState sq;
    RoceRqState rq;
    RoceRespState resp;
    RdmaQpAttr attr;
} RoceQpState;

typedef struct RoceSendImage {
    RoceSendWqe wqe;
    RoceSendArgs args;
} RoceSendImage;

/*
 * A queue pair with its queues. WQEs are in order, the oldest (cons) first.
 * send_sges has num_sge elements for each send WQE, inline_data has length
 * bytes for each one with is_inline, and pages has npages elements for each
 * one, in the order of the WQEs. The last resource has the index res_prod - 1.
 */
typedef struct RoceQpImage {
    RdmaQpInitAttr init;
    RoceQpState s;
    uint8_t send_cq_failed;         /* the CQ accepts no completions */
    uint8_t recv_cq_failed;
    uint32_t n_send;
    uint32_t n_send_sges;
    uint32_t inline_len;            /* bytes */
    uint32_t n_pages;
    uint32_t n_recv;                /* 0 or 1 */
    uint32_t n_recv_sges;
    uint32_t n_res;
    RoceSendImage *send;
    RdmaSge *send_sges;
    uint8_t *inline_data;
    uint64_t *pages;
    RoceRecvWqe *recv;
    RdmaSge *recv_sges;
    RoceResource *res;
} RoceQpImage;

/* A shared receive queue, with the WQE that the engine has pulled, if any */
typedef struct RoceSrqImage {
    RdmaSrqAttr attr;
    uint32_t n_recv;                /* 0 or 1 */
    uint32_t n_recv_sges;
    RoceRecvWqe *recv;
    RdmaSge *recv_sges;
} RoceSrqImage;

/*
 * A memory region. @attr.pages is NULL for a DMA region and for one that is not
 * valid. roce_mr_image_clear() frees the page lists.
 */
typedef struct RoceMrImage {
    RdmaMrAttr attr;
    uint8_t valid;
    /* The mapping of roce_mr_map() that no REG_MR has committed yet */
    uint8_t pending;
    uint64_t pending_iova;
    uint64_t pending_length;        /* bytes */
    uint32_t pending_npages;
    uint64_t *pending_pages;
} RoceMrImage;

/* A memory window. If @bound is 0, the fields after it are 0. */
typedef struct RoceMwImage {
    RdmaMwAttr attr;                /* with the current rkey */
    uint8_t bound;
    uint32_t mrn;                   /* of the region */
    uint32_t qpn;                   /* type 2: of the QP that bound it */
    uint32_t access;
    uint64_t addr;                  /* in the region */
    uint64_t length;                /* bytes */
} RoceMwImage;

/* Get the GID at @index and its VLAN. Returns false if the entry is empty. */
bool roce_get_gid(const RoceEngine *e, uint32_t index,
                  uint8_t gid[RDMA_GID_LEN], uint16_t *vlan);

/*
 * Get up to @max multicast groups of a QP, in any order. Returns their number.
 * The import attaches them with roce_mcast_attach(), after the QPs.
 */
uint32_t roce_get_mcast(const RoceEngine *e, uint32_t qpn,
                        uint8_t (*gids)[RDMA_GID_LEN], uint32_t max);

bool roce_has_mr(const RoceEngine *e, uint32_t mrn);
bool roce_has_mw(const RoceEngine *e, uint32_t mwn);
bool roce_has_srq(const RoceEngine *e, uint32_t srqn);
bool roce_has_qp(const RoceEngine *e, uint32_t qpn);

/*
 * Find the object with the lowest number that is at least *@mrn (*@mwn and so
 * on), and set *@mrn to its number. Returns false if there is none.
 */
bool roce_next_mr(const RoceEngine *e, uint32_t *mrn);
bool roce_next_mw(const RoceEngine *e, uint32_t *mwn);
bool roce_next_srq(const RoceEngine *e, uint32_t *srqn);
bool roce_next_qp(const RoceEngine *e, uint32_t *qpn);

/*
 * Copy an object to @image. The caller clears the image with the function
 * below. Errors: -ENOENT; of a QP also -EBUSY, between a roce_poll_tx() that
 * returned a frame and its roce_tx_done().
 */
int roce_export_mr(const RoceEngine *e, uint32_t mrn, RoceMrImage *image);
int roce_export_mw(const RoceEngine *e, uint32_t mwn, RoceMwImage *image);
int roce_export_srq(const RoceEngine *e, uint32_t srqn, RoceSrqImage *image);
int roce_export_qp(const RoceEngine *e, uint32_t qpn, RoceQpImage *image);
/* Free the arrays of an image, which are g_malloc()ed. */
void roce_mr_image_clear(RoceMrImage *image);
void roce_srq_image_clear(RoceSrqImage *image);
void roce_qp_image_clear(RoceQpImage *image);

/*
 * Create the object that @image describes. The image may come from an untrusted
 * source: every field is checked. On failure (-EINVAL) the engine is unchanged
 * and *@why is a text that names the field, its value and the limit; the caller
 * g_free()s it. On success *@why is NULL. The arrays of the image must be as
 * long as its counts say. @image stays the caller's. @max limits the queues.
 * Does not access guest memory and calls only RoceOps.wake.
 */
int roce_import_mr(RoceEngine *e, const RoceMrImage *image, char **why);
int roce_import_mw(RoceEngine *e, const RoceMwImage *image, char **why);
int roce_import_srq(RoceEngine *e, const RoceSrqImage *image,
                    const RdmaSrqAttr *max, char **why);
int roce_import_qp(RoceEngine *e, const RoceQpImage *image,
                   const RdmaQpCap *max, char **why);
/* For tests, which replace an engine and go on to count. */
void roce_import_stats(RoceEngine *e, const RoceStats *stats);
/* The counters of a QP are not in its image. Errors: -ENOENT. */
int roce_export_qp_stats(const RoceEngine *e, uint32_t qpn, RdmaQpStats *stats);
int roce_import_qp_stats(RoceEngine *e, uint32_t qpn, const RdmaQpStats *stats);

#endif /* RDMA_ROCE_STATE_H */
