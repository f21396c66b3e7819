/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two engines on a simulated link, in virtual time.
 *
 * Each node has plain memory, in which the pages of a region are scattered, and
 * records completions, events and traces of its engine. The link delays frames.
 * Controlled by a seed, it also loses, doubles, reorders and corrupts them. The
 * same seed gives the same run.
 */
#ifndef ROCE_LINK_H
#define ROCE_LINK_H

#include <glib.h>
#include "rdma/roce.h"
#include "consumer.h"

#define LINK_MAX_QP 64
#define LINK_MAX_MR 256
#define LINK_MAX_RD_ATOMIC 16
#define LINK_MAX_SRQ 4
#define LINK_PDN 7
/* The extensions of all engines, unless link_set_extensions() changes them */
#define LINK_EXTENSIONS (RDMA_EXT_FLUSH | RDMA_EXT_ATOMIC_WRITE)
/* The CQs of the QP with number @qpn */
#define LINK_SEND_CQ(qpn) (2 * (qpn))
#define LINK_RECV_CQ(qpn) (2 * (qpn) + 1)
/* The SRQ of QPs whose LinkQpSpec has srq; link_srq() creates it. */
#define LINK_SRQ 2
/*
 * DMA addresses do not start at 0, so that a missing translation is detected.
 */
#define LINK_DMA_BASE UINT64_C(0x4000000000)
#define LINK_DELAY 10000            /* ns */
#define LINK_MS 1000000             /* ns */
#define LINK_FOREVER (3600 * INT64_C(1000000000))

typedef struct RoceLink RoceLink;
typedef struct LinkNode LinkNode;

typedef struct LinkWc {
    uint32_t cqn;
    bool solicited;
    RdmaWc wc;
} LinkWc;

struct LinkNode {
    RoceLink *link;
    RoceEngine *e;
    uint8_t mac[RDMA_MAC_LEN];
    uint8_t gid4[RDMA_GID_LEN];     /* GID index 0 */
    uint8_t gid6[RDMA_GID_LEN];     /* GID index 1 */
    uint8_t *mem;
    GArray *free_pages;             /* DMA addresses */
    uint32_t next_mrn;
    GQueue wcs;                     /* of LinkWc */
    GArray *events;                 /* of RdmaEvent */
    GArray *traces;                 /* of RoceTrace; NULL: not recorded */
    RdmaQpRefusal refusal;          /* the last one that was traced */
    uint32_t retired[LINK_MAX_QP][2];
    uint32_t completed;             /* calls of complete() */
    Consumer *consumer;
    RdmaNext empty_answer;               /* the answer of an empty send queue */
    unsigned next_send_calls;             /* calls of next_send() */
    bool recv_flush;                /* of the last call of next_recv() */
    unsigned hidden_recvs;                /* its next calls that find none */
    uint32_t kick_requests[LINK_MAX_QP];  /* calls of recv_sleep() */
    unsigned uncounted;             /* next recv_count() that return 0 */
    uint64_t cq_room[2 * LINK_MAX_QP];
    uint64_t hole;                  /* this page cannot be mapped */
    int maps;                       /* outstanding */
    unsigned atomics;               /* executed */
    unsigned map_calls;
    bool woken;
    uint32_t link_mtu;
    bool link_up;
    uint32_t extensions;            /* link_set_extensions() */
    bool stopped;                   /* does not run; frames to it are lost */
    int64_t heard;                  /* the latest time for roce_expire(), ns */
};

/* Faults of frames: how often of 10000, or how often they occurred */
typedef struct LinkFaults {
    unsigned loss;
    unsigned dup;
    unsigned reorder;
    unsigned corrupt;
} LinkFaults;

typedef struct LinkFrame {
    int64_t when;
    uint64_t serial;                /* of frames to this node */
    unsigned to;
    size_t len;
    uint8_t data[];
} LinkFrame;

struct RoceLink {
    LinkNode node[2];
    /* RoceOps of new engines of link_move(); link_ops at first */
    const RoceOps *ops;
    LinkFaults faults;
    LinkFaults faulty;                 /* number of faulty frames */
    uint64_t newest[2];             /* serial of the last one at each node */
    GRand *rand;
    int64_t now;
    GQueue frames;                  /* in flight, by time */
    uint64_t sent[2];               /* frames sent by each node */
    bool hold;                      /* do not take frames from poll_tx */
    unsigned moves;                 /* per 10000 steps: link_step() */
    /* Called for each frame; returns false to lose it. May be NULL. */
    bool (*filter)(RoceLink *l, unsigned from, const uint8_t *frame,
                   size_t len, void *opaque);
    void *filter_opaque;
};

/*
 * The configuration and functions of the engines, for tests that create others
 */
extern const RoceConfig link_config;
extern const RoceOps link_ops;

/*
 * Replace the engine of node @n: all state moves by export and import. Frames
 * in flight stay.
 */
void link_move(LinkNode *n);
/*
 * A frame was sent or received. @moves of 10000 times this replaces the engine
 * of a node. The environment variable ROCE_LINK_MOVES is the initial value of
 * @moves.
 */
void link_step(RoceLink *l);

/* A region of scattered pages */
typedef struct LinkMr {
    LinkNode *node;
    uint64_t *pages;
    RdmaMrAttr attr;                /* pages is not valid */
} LinkMr;

/* The pair of QPs that link_connect() creates */
typedef struct LinkQpSpec {
    RdmaQpType type;
    uint32_t qpn[2];
    RdmaMtu mtu;
    bool ipv6;
    bool sig_all;
    uint32_t psn[2];                /* the first PSN of each node */
    uint8_t timeout;
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint8_t min_rnr_timer;
    uint8_t rd_atomic[2];           /* of each node, as initiator */
    uint8_t dest_rd_atomic[2];      /* of each node, as target */
    uint32_t access;
    bool srq[2];                    /* each node's QP uses LINK_SRQ */
    RdmaQpCap cap;
} LinkQpSpec;

RoceLink *link_new(uint32_t seed);
/* Free the link; checks that no memory is mapped. */
void link_free(RoceLink *l);

/* An RC pair with QPNs 2 and 3, MTU 1024, all access, and unlimited retries */
LinkQpSpec link_spec(void);
/* Set properties of the link in the node's engine. */
void link_set_mtu(LinkNode *n, uint32_t mtu);
void link_set_up(LinkNode *n, bool up);
void link_set_extensions(LinkNode *n, uint32_t extensions);
void link_create(LinkNode *n, const LinkQpSpec *spec, unsigned side);
/* Create and connect QPs on both nodes, up to RTS. */
void link_connect(RoceLink *l, const LinkQpSpec *spec);
/* The attributes of a transition of node @side's QP; returns their mask */
uint32_t link_attr(RoceLink *l, const LinkQpSpec *spec, unsigned side,
                   RdmaQpState to, RdmaQpAttr *attr);
void link_modify(LinkNode *n, uint32_t qpn, RdmaQpState to);
RdmaQpState link_state(LinkNode *n, uint32_t qpn);
RdmaAv link_av(LinkNode *from, LinkNode *to, bool ipv6);

/* Send all frames that the engines have, once. */
void link_pump(RoceLink *l);
/*
 * Run until there is no frame and no timer, or for @ns. Returns false if there
 * is still one.
 */
bool link_run(RoceLink *l, int64_t ns);
/* Send a frame to node @to, or deliver it at once. */
void link_inject(RoceLink *l, unsigned to, const void *data, size_t len);

LinkMr *link_mr(LinkNode *n, size_t len, uint32_t access);
LinkMr *link_mr_pd(LinkNode *n, size_t len, uint32_t access, uint32_t pdn);
/* A fast-registration MR of up to @len bytes, whose pages are not mapped */
LinkMr *link_fast_mr(LinkNode *n, size_t len);
void link_mr_map(LinkMr *mr);
void link_mr_free(LinkMr *mr);
void link_write(LinkMr *mr, size_t off, const void *buf, size_t len);
void link_read(LinkMr *mr, size_t off, void *buf, size_t len);
void link_fill(LinkMr *mr, uint32_t seed);
void link_set(LinkMr *mr, uint8_t byte);
/* Are @len bytes equal? */
bool link_same(LinkMr *a, size_t aoff, LinkMr *b, size_t boff, size_t len);
uint64_t link_dma(LinkMr *mr, size_t off);

RdmaSge link_sge(LinkMr *mr, size_t off, uint32_t len);
/* Post a receive and kick. */
void link_post_recv(LinkNode *n, uint32_t qpn, uint64_t wr_id, RdmaSge sge);
/* Post a receive without a kick. */
void link_post_recv_silently(LinkNode *n, uint32_t qpn, uint64_t wr_id,
                             RdmaSge sge);
/* An SRQ with 4 SGEs per WQE */
void link_srq(LinkNode *n, uint32_t max_wr, uint32_t pdn);
void link_post_srq_silently(LinkNode *n, uint64_t wr_id, RdmaSge sge);
/* A signalled WR with one SGE */
RdmaSendWr link_wr(uint32_t opcode, uint64_t wr_id, const RdmaSge *sge);
/* Post a send and kick. Takes over the pages of a REG_MR. */
void link_post(LinkNode *n, uint32_t qpn, const RdmaSendWr *wr);
/* Post a send without a kick. */
void link_post_silently(LinkNode *n, uint32_t qpn, const RdmaSendWr *wr);
/* The number of sends that the consumer may still post */
uint32_t link_send_room(LinkNode *n, uint32_t qpn);
/* Two connected QPs, each with a region that grants all access */
typedef struct LinkPair {
    RoceLink *l;
    LinkNode *a;
    LinkNode *b;
    uint32_t aq;
    uint32_t bq;
    LinkMr *amr;
    LinkMr *bmr;
} LinkPair;

#define LINK_PAIR_MEM (128 * 1024)
#define LINK_ALL_ACCESS (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                         RDMA_ACCESS_FLUSH_GLOBAL)

LinkPair link_pair(const LinkQpSpec *spec);
void link_pair_free(LinkPair *p);
/* Post a WR from a to b, of @len bytes at the same offset in both regions. */
void link_pair_post(LinkPair *p, uint32_t opcode, uint64_t wr_id, size_t off,
                    uint32_t len);
void link_pair_recv(LinkPair *p, uint64_t wr_id, size_t off, uint32_t len);

/* Take the oldest completion of node @n; there must be one. */
LinkWc link_wc(LinkNode *n);
/* Take the oldest completion, check its wr_id and status, and return it. */
RdmaWc link_expect(LinkNode *n, uint64_t wr_id, RdmaWcStatus status);
unsigned link_wcs(LinkNode *n);
unsigned link_events(LinkNode *n, RdmaEventType type);

void link_add_faults(LinkFaults *sum, const LinkFaults *faulty);
/* Did each fault of @asked occur, and no other? */
void link_assert_faults(const LinkFaults *asked, const LinkFaults *faulty);

#endif /* ROCE_LINK_H */
