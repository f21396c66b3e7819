/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: regions and windows, scatter/gather lists, and frames that
 * consist of pieces of guest memory.
 *
 * Keys are checked at each access to memory (IBTA 10.6.3), because a key may
 * become invalid at any time.
 */
#ifndef ROCE_MEM_H
#define ROCE_MEM_H

#include "core/core.h"

struct RoceMr {
    RdmaMrAttr attr;
    bool valid;                     /* a window: bound */
    /* RDMA_MR_FAST_REG: the mapping that the next REG_MR commits */
    bool pending;
    uint64_t pending_iova;
    uint64_t pending_length;        /* bytes */
    uint64_t *pending_pages;
    uint32_t pending_npages;
    uint32_t windows;               /* number of windows bound to it */
    /*
     * If @mw_type is not 0, this is a window. @attr then has the addresses and
     * the access flags of the binding.
     */
    uint32_t mw_type;               /* RdmaMwType */
    uint32_t qpn;                   /* type 2: the QP that bound it */
    struct RoceMr *region;          /* the region it is bound to, or NULL */
    uint64_t region_off;            /* add it to get the region's address */
};

/* The parameters of a window's binding to a region */
typedef struct RoceMwBinding {
    uint64_t addr;                  /* in the region */
    uint64_t length;                /* bytes */
    uint32_t access;                /* RDMA_ACCESS_* */
    uint32_t qpn;                   /* type 2 */
} RoceMwBinding;

/* The scatter/gather list of a WQE. */
typedef struct RoceSgList {
    const RdmaSge *sges;
    uint32_t n;
    uint32_t pdn;                   /* the PD of its keys */
    uint32_t index;                 /* of the WQE, which a cursor belongs to */
} RoceSgList;

/* The packet that is being built */
typedef struct RoceTx {
    RoceTxFrame *frame;
    RoceBth bth;
    const RocePath *path;
    RocePath ud_path;               /* of a datagram; @path points to it */
    RoceTemplate *template;         /* of @path, or NULL */
    bool routed;                    /* @path is valid */
    bool local;                     /* @path leads to this engine */
    RoceQp *mcast;                  /* sender of a multicast, or NULL */
    bool waits;                     /* no packet: the wire is blocked */
    uint32_t rate;                  /* kb/s; 0: no limit */
    uint32_t len;                   /* bytes of payload */
} RoceTx;

/* mr.c */
/* The MR with number @mrn. NULL if there is none, or it is a window. */
RoceMr *roce_mr_find(const RoceEngine *e, uint32_t mrn);
/*
 * Do @length bytes from @iova on lie in exactly @npages pages of 2^@shift
 * bytes? False if @length is 0 or the range wraps.
 */
bool roce_mr_pages_ok(uint64_t iova, uint64_t length, uint32_t npages,
                      uint8_t shift);
/*
 * The MR of @lkey, if it is valid, belongs to PD @pdn, grants @access and
 * covers [@addr, @addr + @len) (IBTA 10.6.3); otherwise NULL. @len is not 0.
 */
RoceMr *roce_mr_local(const RoceEngine *e, uint32_t pdn, uint32_t lkey,
                      uint32_t access, uint64_t addr, uint32_t len);
/*
 * The same for @rkey and the peer of QP @qpn, which belongs to PD @pdn. The key
 * may be that of a window; *@addr then becomes the address in the region.
 */
RoceMr *roce_mr_remote(const RoceEngine *e, uint32_t pdn, uint32_t qpn,
                       uint32_t rkey, uint32_t access, uint64_t *addr,
                       uint32_t len);
/* Does @rkey, not that of a window, grant @access in PD @pdn at all? */
bool roce_mr_grants(const RoceEngine *e, uint32_t pdn, uint32_t rkey,
                    uint32_t access);
/*
 * The DMA address of @addr in @mr. Reduces *@len to the number of bytes that
 * follow without a gap.
 */
uint64_t roce_mr_dma(const RoceMr *mr, uint64_t addr, uint64_t *len);
/*
 * Copy @len bytes to a range of @mr that was checked. Returns false if there is
 * no memory at its DMA address.
 */
bool roce_mr_write(RoceEngine *e, const RoceMr *mr, uint64_t addr,
                   const void *buf, size_t len);
void roce_mr_free(RoceEngine *e, RoceMr *mr);

/* mw.c */
/* The access flags that a window can have */
#define ROCE_MW_ACCESS (RDMA_ACCESS_REMOTE | RDMA_ACCESS_ZERO_BASED)
/* The window with number @mwn. NULL if there is none, or it is an MR. */
RoceMr *roce_mw_find(const RoceEngine *e, uint32_t mwn);
/*
 * Does @mr, which may be NULL, allow the binding @b? The caller compares the
 * PDs.
 */
bool roce_mw_region_ok(const RoceMr *mr, const RoceMwBinding *b);
/* Bind @mw, which is not bound, to @mr. roce_mw_region_ok() was true. */
void roce_mw_set(RoceEngine *e, RoceMr *mw, RoceMr *mr,
                 const RoceMwBinding *b);
void roce_mw_unbind(RoceEngine *e, RoceMr *mw);
/* Unbind the windows of QP @qpn, which is being destroyed. */
void roce_mw_unbind_qp(RoceEngine *e, uint32_t qpn);

/*
 * mem-wr.c: execute a WQE of QP @qpn, which belongs to PD @pdn, on regions and
 * windows. The functions return false if the WQE is invalid.
 */
/* REG_MR (IBTA 10.6.5). Takes over *@pages if the WQE carries a mapping. */
bool roce_mr_register(RoceEngine *e, uint32_t pdn, RoceSendWqe *wqe,
                      const RoceSendArgs *args, uint64_t **pages);
/*
 * Invalidate @key: the rkey of a type 2 window, or of a region its rkey if a
 * peer asks for it (@remote), else its lkey.
 */
bool roce_mr_invalidate(RoceEngine *e, uint32_t pdn, uint32_t qpn,
                        uint32_t key, bool remote);
/* BIND_MW (IBTA 11.4.1.1). */
bool roce_mw_bind(RoceEngine *e, uint32_t pdn, uint32_t qpn,
                  const RoceSendWqe *wqe, const RoceSendArgs *args);

/* sg.c */
/* Do the keys of all SGEs grant @access to their ranges? */
bool roce_sg_check(const RoceEngine *e, const RoceSgList *list,
                   uint32_t access);
/*
 * Copy @len bytes from @buf to the memory of the list, from byte @off on.
 * Returns LOC_LEN_ERR if the list is shorter, and LOC_PROT_ERR if a key does
 * not allow the access or there is no memory.
 */
RdmaWcStatus roce_sg_scatter(RoceEngine *e, RoceSgCursor *c,
                             const RoceSgList *list, uint32_t off,
                             const uint8_t *buf, uint32_t len);
/*
 * Append @len bytes from byte @off of the list to @frame. Returns false if the
 * WQE shall fail with LOC_PROT_ERR.
 */
bool roce_sg_gather(RoceEngine *e, RoceSgCursor *c, const RoceSgList *list,
                    uint32_t off, uint32_t len, RoceTxFrame *frame);

/* frame.c */
/*
 * Append @len bytes of a range of @mr that was checked. Returns false if there
 * is no memory at its DMA address.
 */
bool roce_frame_map(RoceEngine *e, RoceTxFrame *frame, const RoceMr *mr,
                    uint64_t addr, uint32_t len);
/*
 * Append a copy of @data as the only piece of payload. Unlike the WQE, the copy
 * stays valid until roce_tx_done().
 */
void roce_frame_copy(RoceTxFrame *frame, const void *data, uint32_t len);
void roce_frame_unmap(RoceEngine *e, RoceTxFrame *frame);
/* Write the headers, and after them pad and ICRC. The payload is complete. */
void roce_frame_headers(RoceTx *tx);
void roce_frame_trailer(RoceEngine *e, RoceTx *tx);

/*
 * Begin a packet without payload. The caller sets the opcode and PSN of the
 * BTH, and the fields of the opcode's extended headers. roce_tx_undo() removes
 * the payload of a packet that cannot be completed, so that the QP can build
 * another packet in its place.
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
/* Does the packet need the wire while that is blocked? */
static inline bool roce_tx_must_wait(const RoceEngine *e, const RoceTx *tx)
{
    return e->tx_blocked && tx->routed && !tx->local && e->link_up;
}

#endif /* ROCE_MEM_H */
