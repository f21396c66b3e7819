/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: regions and windows, scatter/gather lists, and the frames
 * that are made of pieces of it.
 *
 * Keys are checked each time memory is touched (IBTA 10.6.3), for a key may
 * go at any time.
 */
#ifndef ROCE_MEM_H
#define ROCE_MEM_H

#include "core/core.h"

struct RoceMr {
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
};

/* What a window is bound to. */
typedef struct RoceMwBinding {
    uint64_t addr;                  /* in the region */
    uint64_t length;
    uint32_t access;
    uint32_t qpn;                   /* type 2 */
} RoceMwBinding;

/* The scatter/gather list of a WQE. */
typedef struct RoceSgList {
    const RdmaSge *sges;
    uint32_t n;
    uint32_t pdn;                   /* that its keys are of */
    uint32_t index;                 /* of the WQE: what a cursor is for */
} RoceSgList;

/* A packet in the making. */
typedef struct RoceTx {
    RoceTxFrame *frame;
    RoceBth bth;
    const RocePath *path;
    RocePath ud_path;
    RoceTemplate *template;         /* of @path, or NULL */
    bool routed;                    /* @path can be used */
    bool local;                     /* and leads back to this engine */
    RoceQp *mcast;                  /* sender of a multicast, or NULL */
    bool waits;                     /* no packet: the wire is blocked */
    uint32_t rate;                  /* kb/s it may be sent at; 0: no limit */
    uint32_t len;                   /* bytes of payload */
} RoceTx;

/* mr.c */
/* NULL if it is not there, or is a window. */
RoceMr *roce_mr_find(const RoceEngine *e, uint32_t mrn);
/* Are @npages pages of 2^@shift bytes those of @length bytes from @iova on? */
bool roce_mr_pages_ok(uint64_t iova, uint64_t length, uint32_t npages,
                      uint8_t shift);
/*
 * The MR of a key, if it is valid, in PD @pdn, grants @access and covers
 * [@addr, @addr + @len) (IBTA 10.6.3); else NULL. @len is not 0.
 */
RoceMr *roce_mr_local(const RoceEngine *e, uint32_t pdn, uint32_t lkey,
                      uint32_t access, uint64_t addr, uint32_t len);
/*
 * Likewise for the peer of QP @qpn, which is in PD @pdn, also through a
 * window: *@addr becomes the region's own address.
 */
RoceMr *roce_mr_remote(const RoceEngine *e, uint32_t pdn, uint32_t qpn,
                       uint32_t rkey, uint32_t access, uint64_t *addr,
                       uint32_t len);
/* Likewise, whatever the addresses; not through a window. */
bool roce_mr_grants(const RoceEngine *e, uint32_t pdn, uint32_t rkey,
                    uint32_t access);
/* The DMA address of @addr; cuts *@len to what follows it without a gap. */
uint64_t roce_mr_dma(const RoceMr *mr, uint64_t addr, uint64_t *len);
/* Copy to a range that was checked. False if memory is not there. */
bool roce_mr_write(RoceEngine *e, const RoceMr *mr, uint64_t addr,
                   const void *buf, size_t len);
void roce_mr_free(RoceEngine *e, RoceMr *mr);

/* mw.c */
/* The access flags that a window can have. */
#define ROCE_MW_ACCESS (RDMA_ACCESS_REMOTE | RDMA_ACCESS_ZERO_BASED)
/* NULL if it is not there, or is an MR. */
RoceMr *roce_mw_find(const RoceEngine *e, uint32_t mwn);
/* May a window be bound to @mr in this way? PDs are not compared. */
bool roce_mw_region_ok(const RoceMr *mr, const RoceMwBinding *b);
/* Bind a window that is not bound; the binding was checked. */
void roce_mw_set(RoceEngine *e, RoceMr *mw, RoceMr *mr,
                 const RoceMwBinding *b);
void roce_mw_unbind(RoceEngine *e, RoceMr *mw);
/* Unbind the windows of QP @qpn, which goes away. */
void roce_mw_unbind_qp(RoceEngine *e, uint32_t qpn);

/*
 * mem-wr.c: what a WQE of QP @qpn, which is in PD @pdn, does to regions and
 * windows. False if it cannot be done.
 */
/* REG_MR (IBTA 10.6.5). Takes *@pages if the WQE brings some. */
bool roce_mr_register(RoceEngine *e, uint32_t pdn, RoceSendWqe *wqe,
                      const RoceSendArgs *args, uint64_t **pages);
/* Invalidation; @remote: by a peer, so that @key is an rkey. */
bool roce_mr_invalidate(RoceEngine *e, uint32_t pdn, uint32_t qpn,
                        uint32_t key, bool remote);
/* BIND_MW (IBTA 11.4.1.1). */
bool roce_mw_bind(RoceEngine *e, uint32_t pdn, uint32_t qpn,
                  const RoceSendWqe *wqe, const RoceSendArgs *args);

/* sg.c */
/* Are all SGEs good for @access? */
bool roce_sg_check(const RoceEngine *e, const RoceSgList *list,
                   uint32_t access);
/*
 * Copy @len bytes to byte @off of the list. LOC_LEN_ERR if the list is
 * shorter, LOC_PROT_ERR if the memory may not or cannot be written.
 */
RdmaWcStatus roce_sg_scatter(RoceEngine *e, RoceSgCursor *c,
                             const RoceSgList *list, uint32_t off,
                             const uint8_t *buf, uint32_t len);
/* Put @len bytes from byte @off of the list into @frame; false: LOC_PROT. */
bool roce_sg_gather(RoceEngine *e, RoceSgCursor *c, const RoceSgList *list,
                    uint32_t off, uint32_t len, RoceTxFrame *frame);

/* frame.c */
/* Append @len bytes of a checked range of @mr; false if not mappable. */
bool roce_frame_map(RoceEngine *e, RoceTxFrame *frame, const RoceMr *mr,
                    uint64_t addr, uint32_t len);
/* Append a copy, which outlives the WQE; it must be the only piece. */
void roce_frame_copy(RoceTxFrame *frame, const void *data, uint32_t len);
void roce_frame_unmap(RoceEngine *e, RoceTxFrame *frame);
/* Put the headers in front, and then pad and ICRC behind. */
void roce_frame_headers(RoceTx *tx);
void roce_frame_trailer(RoceEngine *e, RoceTx *tx);

/*
 * Begin an empty packet, of whose BTH opcode and PSN are missing, and what the
 * opcode's extended headers have; undo removes what was put into one whose
 * remaining parts are missing, since the QP may have something else to send.
 */
static inline void roce_tx_begin(RoceTx *tx, uint32_t dqpn)
{
    tx->frame->iovcnt = 1;
    tx->frame->size = 0;
    tx->frame->nmaps = 0;
    tx->bth.se = false;
    tx->bth.migreq = false;
    tx->bth.ack_req = false;
    tx->bth.fecn = false;
    tx->bth.becn = false;
    tx->bth.pkey = RDMA_DEFAULT_PKEY;
    tx->bth.dqpn = dqpn;
    tx->len = 0;
}
void roce_tx_undo(RoceEngine *e, RoceTx *tx);
/* Would the packet go out, and cannot? */
static inline bool roce_tx_must_wait(const RoceEngine *e, const RoceTx *tx)
{
    return e->tx_blocked && tx->routed && !tx->local && e->link_up;
}

#endif /* ROCE_MEM_H */
