/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of an engine's objects that another engine needs in order to go
 * on with them: fixed-width fields, cursors as indices. Whatever can be
 * worked out from these is kept elsewhere, and is made anew by the import.
 *
 * To move an engine: export GIDs, MRs, SRQs, QPs, windows and groups between
 * two calls into it, and import them, in this order, into one with the same
 * RoceConfig and a clock that goes on from the same value. Frames that are on
 * their way need not be taken along.
 *
 * Queue indices run freely modulo 2^32; a WQE lies in slot index & mask of
 * its ring. PSNs have 24 bits (IBTA 9.7.2).
 *
 * Sources: IBTA Vol 1 Release 1.4, chapter 9.7 (reliable service), 9.8
 * (unreliable service), 10.8 (work requests).
 */
#ifndef RDMA_ROCE_STATE_H
#define RDMA_ROCE_STATE_H

#include "rdma/roce.h"

/*
 * A send WQE: a cache line, as queue pairs by the thousand are in no cache. Its
 * scatter/gather list and its inline data lie in the arrays of the queue, at
 * the WQE's slot, and so do its RoceSendArgs.
 *
 * It is started when the send cursor reaches it for the first time; then it
 * has its PSNs: one per packet, for a READ one per response (IBTA 9.7.3.1).
 */
typedef struct RoceSendWqe {
    uint64_t wr_id;
    uint64_t remote_addr;           /* or the iova of a REG_MR or BIND_MW */
    uint32_t status;                /* RdmaWcStatus; not SUCCESS: is bad */
    uint32_t opcode;
    uint32_t send_flags;
    uint32_t num_sge;               /* 0 with inline data */
    uint32_t length;                /* bytes of the message */
    uint32_t rkey;                  /* or the new key of a REG_MR, BIND_MW */
    uint32_t invalidate_rkey;       /* or the old one of a BIND_MW */
    uint32_t npages;                /* REG_MR: pages that it brings */
    uint32_t first_psn;             /* when started */
    uint32_t npsn;                  /* when started; 0: sends nothing */
    uint8_t imm[4];
    uint8_t is_inline;
    uint8_t done;                   /* completes when it is the oldest */
} RoceSendWqe;

/* What datagrams and the opcodes named here need besides; else it is zero. */
typedef struct RoceSendArgs {
    uint64_t reg_length;            /* REG_MR, BIND_MW, FLUSH: bytes */
    uint64_t compare_add;           /* ATOMICs; what an ATOMIC_WRITE brings */
    uint64_t swap;                  /* CMP_AND_SWP */
    uint32_t lkey;                  /* BIND_MW: of the region */
    uint32_t mrn;                   /* REG_MR */
    uint32_t access;                /* REG_MR, BIND_MW; FLUSH: its FETH */
    uint32_t remote_qpn;            /* of a datagram, as the rest */
    uint32_t remote_qkey;
    RdmaAv av;
} RoceSendArgs;

typedef struct RoceRecvWqe {
    uint64_t wr_id;
    uint32_t status;                /* RdmaWcStatus; not SUCCESS: is bad */
    uint32_t num_sge;
} RoceRecvWqe;

/*
 * The send queue and its requester (IBTA 9.7.3). For the indices holds
 * cons <= cur <= started <= prod, modulo 2^32; for the PSNs
 * una <= psn <= sent <= end, modulo 2^24, within 2^23 of each other.
 */
typedef struct RoceSqState {
    uint32_t cons;                  /* oldest WQE that has not retired */
    uint32_t cur;                   /* the WQE to send from next */
    uint32_t cur_pkt;               /* PSNs of it that are sent */
    uint32_t started;               /* one past the newest started WQE */
    uint32_t prod;                  /* one past the newest WQE */
    uint32_t una;                   /* oldest unacknowledged PSN */
    uint32_t psn;                   /* PSN of the next packet */
    uint32_t sent;                  /* one past the highest PSN sent */
    uint32_t end;                   /* one past the highest PSN given out */
    uint32_t rd_atomic;             /* READs, ATOMICs, .. under way */
    uint32_t rd_psns;               /* PSNs that are still to come for them */
    uint32_t unrequested;           /* packets since the last AckReq */
    uint8_t retries;                /* left; IBTA 9.9.2.1 */
    uint8_t rnr_retries;            /* left */
    uint8_t seq_error_handled;            /* went back to una for it */
    uint8_t rnr_wait;               /* silent until rnr_deadline */
    uint8_t draining;               /* SQD, but not drained */
    int64_t ack_deadline;           /* ns, or ROCE_NO_DEADLINE */
    int64_t rnr_deadline;           /* ns, or ROCE_NO_DEADLINE */
    int64_t send_at;                /* ns, end of the pause after a packet */
} RoceSqState;

/* The receive queue; of a QP with an SRQ: at most one WQE, taken of that. */
typedef struct RoceRqState {
    uint32_t cons;
    uint32_t prod;
} RoceRqState;

typedef enum RoceResourceType {
    ROCE_RES_NONE,
    ROCE_RES_READ,
    ROCE_RES_ATOMIC,
    ROCE_RES_ATOMIC_WRITE,
    ROCE_RES_FLUSH,
} RoceResourceType;

/*
 * A responder resource: a READ or ATOMIC, or a FLUSH or ATOMIC WRITE, that
 * was taken, kept until as many newer ones came as the QP has resources, so
 * that its response can be sent again (IBTA 9.7.5.1.4 f.). The fields from
 * reply_va on describe the response in progress; a duplicate READ starts
 * another one, of the same range or of the rest of it.
 */
typedef struct RoceResource {
    uint64_t va;
    uint64_t result;                /* ATOMIC: the value before it */
    uint32_t type;                  /* RoceResourceType */
    uint32_t opcode;                /* ATOMIC: the request's; FLUSH: FETH */
    uint32_t rkey;
    uint32_t len;
    uint32_t psn;
    uint32_t npsn;
    uint32_t msn;
    uint8_t first;                  /* pending for the first time */
    uint8_t pending;
    uint64_t reply_va;
    uint32_t reply_len;
    uint32_t reply_off;             /* bytes that are sent */
    uint32_t reply_psn;             /* of the next packet */
} RoceResource;

/* What a responder owes its requester besides READ and ATOMIC responses. */
typedef enum RoceAckKind {
    ROCE_ACK_NONE,
    ROCE_ACK_POSITIVE,              /* of everything up to epsn - 1 */
    ROCE_ACK_NEGATIVE,              /* ack_syndrome, for ack_psn */
} RoceAckKind;

/*
 * The responder (IBTA 9.7.4 f.). Resources are numbered like WQEs: the last
 * max_dest_rd_atomic below res_prod count.
 */
typedef struct RoceRespState {
    uint32_t epsn;                  /* expected PSN */
    uint32_t msn;
    uint32_t op;                    /* ROCE_OP_SEND, _WRITE: amid one; or 0 */
    uint32_t offset;                /* bytes of that message received */
    uint64_t write_va;              /* of the WRITE under way */
    uint32_t write_rkey;
    uint32_t write_len;
    uint32_t res_prod;
    uint32_t res_out;               /* oldest resource that may be pending */
    uint32_t ack_kind;              /* RoceAckKind */
    uint32_t ack_psn;
    uint8_t ack_syndrome;
    uint8_t nak_sent;               /* for epsn; later packets are dropped */
    uint8_t comm_est;               /* event was sent */
    uint8_t closing;                /* ERR, but responses are still owed */
} RoceRespState;

/* @attr holds what modify set; its qp_state is the QP's state. */
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
 * A queue pair with its queues. WQEs are in order, the oldest (cons) first;
 * the SGEs, the inline data and the pages of all of them follow one another,
 * num_sge, (with is_inline) length and npages of each. Resources end with
 * number res_prod - 1.
 */
typedef struct RoceQpImage {
    RdmaQpInitAttr init;
    RoceQpState s;
    uint8_t send_cq_failed;           /* the CQ failed */
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

/* A shared receive queue; its WQE as in RoceQpImage. */
typedef struct RoceSrqImage {
    RdmaSrqAttr attr;
    uint32_t n_recv;                /* 0 or 1 */
    uint32_t n_recv_sges;
    RoceRecvWqe *recv;
    RdmaSge *recv_sges;
} RoceSrqImage;

/*
 * A memory region. @attr.pages is NULL where nothing can be reached through
 * the region. Page lists are g_free()d by roce_mr_image_clear().
 */
typedef struct RoceMrImage {
    RdmaMrAttr attr;
    uint8_t valid;
    uint8_t pending;                /* roce_mr_map() was called: what it took */
    uint64_t pending_iova;
    uint64_t pending_length;        /* bytes */
    uint32_t pending_npages;
    uint64_t *pending_pages;
} RoceMrImage;

/* A memory window, and with @bound what it is bound to; otherwise zeroes. */
typedef struct RoceMwImage {
    RdmaMwAttr attr;                /* rkey: as it is now */
    uint8_t bound;
    uint32_t mrn;
    uint32_t qpn;                   /* type 2: that bound it */
    uint32_t access;
    uint64_t addr;                  /* in the region */
    uint64_t length;                /* bytes */
} RoceMwImage;

/* The GID at @index and its VLAN, if there is one. */
bool roce_get_gid(const RoceEngine *e, uint32_t index,
                  uint8_t gid[RDMA_GID_LEN], uint16_t *vlan);

/*
 * The multicast groups of a QP, up to @max of them, in no order. Returns how
 * many. roce_mcast_attach() takes them to another engine, behind the QPs.
 */
uint32_t roce_get_mcast(const RoceEngine *e, uint32_t qpn,
                        uint8_t (*gids)[RDMA_GID_LEN], uint32_t max);

bool roce_has_mr(const RoceEngine *e, uint32_t mrn);
bool roce_has_mw(const RoceEngine *e, uint32_t mwn);
bool roce_has_srq(const RoceEngine *e, uint32_t srqn);
bool roce_has_qp(const RoceEngine *e, uint32_t qpn);

/*
 * Find the first object from a number on, which becomes that object's; false
 * if there is none.
 */
bool roce_next_mr(const RoceEngine *e, uint32_t *mrn);
bool roce_next_mw(const RoceEngine *e, uint32_t *mwn);
bool roce_next_srq(const RoceEngine *e, uint32_t *srqn);
bool roce_next_qp(const RoceEngine *e, uint32_t *qpn);

/*
 * Copy an object to @image, which the caller clears in the end. Errors:
 * -ENOENT, -EBUSY (a frame is out between roce_poll_tx() and roce_tx_done()).
 */
int roce_export_mr(const RoceEngine *e, uint32_t mrn, RoceMrImage *image);
int roce_export_mw(const RoceEngine *e, uint32_t mwn, RoceMwImage *image);
int roce_export_srq(const RoceEngine *e, uint32_t srqn, RoceSrqImage *image);
int roce_export_qp(const RoceEngine *e, uint32_t qpn, RoceQpImage *image);
/* Free what the image points to; all of it was made by g_malloc(). */
void roce_mr_image_clear(RoceMrImage *image);
void roce_srq_image_clear(RoceSrqImage *image);
void roce_qp_image_clear(RoceQpImage *image);

/*
 * Make an object as @image says, which may come from anywhere: every field is
 * checked, and on failure (-EINVAL) nothing was made and *@why is a text that
 * names the field, its value and the limit: the caller g_free()s it. It is
 * NULL on success. The arrays of the image must be as long as their counts
 * say; @max bounds what the queues may be created with. Does not touch memory
 * and calls nothing back but RoceOps.wake.
 */
int roce_import_mr(RoceEngine *e, const RoceMrImage *image, char **why);
int roce_import_mw(RoceEngine *e, const RoceMwImage *image, char **why);
int roce_import_srq(RoceEngine *e, const RoceSrqImage *image,
                    const RdmaSrqAttr *max, char **why);
int roce_import_qp(RoceEngine *e, const RoceQpImage *image,
                   const RdmaQpCap *max, char **why);
void roce_import_stats(RoceEngine *e, const RoceStats *stats);
/* What a QP has counted is not in its image, either: -ENOENT. */
int roce_export_qp_stats(const RoceEngine *e, uint32_t qpn, RdmaQpStats *stats);
int roce_import_qp_stats(RoceEngine *e, uint32_t qpn, const RdmaQpStats *stats);

#endif /* RDMA_ROCE_STATE_H */
