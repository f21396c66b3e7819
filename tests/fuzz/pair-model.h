/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two engines on a simulated link, and a model of each: the bytes that QPs and
 * peers may read and write, the outstanding WQEs, and the messages that a peer
 * must have received. The model sees every call out of an engine. A call that
 * it cannot explain ends in g_error().
 */
#ifndef PAIR_MODEL_H
#define PAIR_MODEL_H

#include "fuzz-input.h"
#include "rdma/roce-state.h"
#include "../unit/roce-link.h"

/*
 * Regions of a node, by slot, which is the mrn minus 1. Local work requests
 * name only some of them, so that a mapped address shows whose right was used.
 */
enum {
    PAIR_MR_ALL,                    /* all rights */
    PAIR_MR_CHANGING,               /* rights of peers change; never local */
    PAIR_MR_READ,                   /* only reading, both ways */
    PAIR_MR_LOCAL,                  /* no rights of peers; never local */
    PAIR_MR_FAST,                   /* REG_MR registers it */
    PAIR_MR_WINDOW,                 /* only through windows */
    PAIR_MR_OTHER_PD,
    PAIR_MR_COUNTERS,               /* only atomics of the peer */
    PAIR_MRS
};

#define PAIR_MR_PAGES 4
/* Bytes; both ends lie within a page, not at its border. */
#define PAIR_MR_LEN (PAIR_MR_PAGES * RDMA_PAGE_SIZE - 1024)
#define PAIR_IOVA(slot) (UINT64_C(0x100000) * ((slot) + 1) + 0x208)

/* Windows: of type 1 and 2 */
#define PAIR_MWS 2
#define PAIR_MWN(i) (20 + (i))

/* Queue pairs, by slot; a slot's QPs of both nodes are connected. */
enum {
    PAIR_RC,
    PAIR_RC_SRQ,
    PAIR_RC_LITTLE,                 /* few of everything */
    PAIR_UC,
    PAIR_UC_SRQ,
    PAIR_UD,
    PAIR_UD_SRQ,
    PAIR_RC_SELF,                   /* both QPs are on one node */
    PAIR_RC_SELF_PEER,
    PAIR_QPS
};
#define PAIR_QPN(slot) ((slot) + 2)
#define PAIR_SQ_WR 12
#define PAIR_RQ_WR 12
#define PAIR_SGE 6
#define PAIR_INLINE 64
#define PAIR_QKEY 0x1234

/* In wr_ids, above the number: */
#define PAIR_ID_RECV (UINT64_C(1) << 40)
#define PAIR_ID_SRQ  (UINT64_C(1) << 41)
#define PAIR_ID_NUM  (PAIR_ID_RECV - 1)

/* In a key: no object ever had this key. */
#define PAIR_KEY_STALE 0x80

typedef struct PairWqe {
    bool signaled;
    bool stale;                     /* names such a key: cannot succeed */
    bool invalidates;               /* PAIR_MR_FAST, after so many REG_MRs */
    uint32_t registrations;
    bool atomic;                    /* adds 1 to the counter of its slot */
} PairWqe;

/* A queue of a QP: WQEs have numbers in the order of posting. */
typedef struct PairQueue {
    uint64_t posted;
    uint64_t retired;
    uint64_t next;                  /* the first that can complete */
    GArray *wqes;                   /* of PairWqe, by number */
} PairQueue;

/* Messages on their way from a QP to that of the other node, in order. */
typedef struct PairStream {
    GArray *lens;                   /* bytes of each message, by number */
    uint64_t seen;                  /* the next one to be received */
} PairStream;

typedef struct PairQp {
    bool exists;
    bool failed;                    /* every send completes from now on */
    bool whole;                     /* both ends connected, none left since */
    uint32_t access;                /* qp_access_flags */
    PairQueue q[2];                 /* by RdmaQueue */
    PairStream out;
    uint8_t epoch;                  /* of the connection */
} PairQp;

typedef struct PairMr {
    uint32_t key;                   /* 0: there is none */
    uint32_t access;                /* that peers have */
    uint64_t lo, hi;                /* window: offsets that were bound */
    bool registered;                /* fast: or may be */
    uint32_t registrations;         /* fast: REG_MRs posted */
} PairMr;

typedef struct PairNode {
    LinkNode *n;
    unsigned side;
    PairMr mr[PAIR_MRS];
    uint32_t mw_key[PAIR_MWS];      /* 0: there is none */
    PairQp qp[PAIR_QPS];
    bool has_srq;
    uint64_t srq_posted;
    GHashTable *srq_ids;            /* of WQEs that have not completed */
    GHashTable *bad_cqs;            /* that did not take a completion */
    bool blocked;
    uint64_t added[PAIR_QPS];       /* successful atomics of the slot */
    uint64_t tried[PAIR_QPS];
    uint32_t work;                  /* calls out, in this call into it */
    bool deny_write;                /* this call may not write memory */
    bool deny_all;                  /* nor map it */
    /* Actions that callbacks asked for: bytes for the fuzzer's choice */
    uint8_t wanted[8];
    unsigned n_wanted;
} PairNode;

typedef struct Pair {
    RoceLink *l;
    PairNode node[2];
    bool strict;                    /* no frame was forged */
    uint8_t callbacks;              /* how often callbacks want something */
} Pair;

extern Pair pair;

#define MUST(cond) do { \
        if (!(cond)) { \
            g_error("%s:%d: broken rule: %s", __FILE__, __LINE__, #cond); \
        } \
    } while (0)

void pair_new(uint32_t seed);
void pair_free(void);
RdmaQpType pair_type(unsigned slot);
bool pair_is_rc(unsigned slot);
bool pair_is_ud(unsigned slot);
bool pair_uses_srq(unsigned slot);
/* The slot of the other end, and the node that has it */
unsigned pair_peer_slot(unsigned slot);
PairNode *pair_peer(PairNode *p, unsigned slot);

/* Before and after each call into an engine. */
void pair_enter(PairNode *p);
void pair_leave(PairNode *p, uint32_t max_work);

/* Objects; nothing happens if they are there already, or not there. */
void pair_mr_create(PairNode *p, unsigned slot, uint32_t access);
void pair_mr_modify(PairNode *p, unsigned slot, uint32_t access);
void pair_mr_destroy(PairNode *p, unsigned slot);
/* The pages of a region, for a REG_MR; g_malloc()ed */
uint64_t *pair_mr_pages(const PairNode *p, unsigned slot, unsigned npages);
void pair_mw_create(PairNode *p, unsigned i);
void pair_mw_destroy(PairNode *p, unsigned i);
void pair_srq_create(PairNode *p);
void pair_srq_destroy(PairNode *p);
void pair_qp_create(PairNode *p, unsigned slot);
void pair_qp_destroy(PairNode *p, unsigned slot);
void pair_qp_reset(PairNode *p, unsigned slot);
/* Both ends are connected, and nothing is under way between them. */
void pair_qp_connected(PairNode *p, unsigned slot);
/* Destroy all objects at once, as a reset of the device does. */
void pair_reset(PairNode *p);
/* Move all objects to another engine, which goes on with them. */
void pair_move(PairNode *p);

/*
 * Post if there is room, to the SRQ if the QP has it; fills in wr_id. This
 * rings the engine for sends, but not for receives.
 */
void pair_post_send(PairNode *p, unsigned slot, RdmaSendWr *wr);
void pair_post_recv(PairNode *p, unsigned slot, RdmaRecvWr *wr);
/* WRs that have not retired */
uint64_t pair_outstanding(const PairNode *p, unsigned slot, RdmaQueue queue);

/* Check the rules that must hold between two calls. */
void pair_check(PairNode *p);
/* Check that every WQE has retired, and has completed if it must. */
void pair_check_done(PairNode *p, unsigned slot);
void pair_check_counters(void);

#endif /* PAIR_MODEL_H */
