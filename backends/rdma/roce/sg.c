/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scatter/gather lists: keys are checked and addresses translated each time
 * memory is touched (IBTA 10.6.3), for a key may go at any time.
 */
#include <glib.h>
#include "roce-int.h"

/* Put @c on byte @off of the list; false if that is behind its end. */
static bool sg_seek(RoceSgCursor *c, uint32_t index, const RdmaSge *sges,
                    uint32_t n, uint32_t off)
{
    uint32_t left;

    if (c->index != index || c->off > off) {
        *c = (RoceSgCursor) { .index = index };
    }
    while (c->off < off) {
        if (c->sge >= n) {
            return false;
        }
        left = MIN(sges[c->sge].length - c->sge_off, off - c->off);
        c->off += left;
        c->sge_off += left;
        if (c->sge_off == sges[c->sge].length) {
            c->sge++;
            c->sge_off = 0;
        }
    }
    return true;
}

/* The next piece of at most @len bytes; NULL at the end of the list. */
static const RdmaSge *sg_piece(RoceSgCursor *c, const RdmaSge *sges,
                               uint32_t n, uint32_t *len)
{
    while (c->sge < n && c->sge_off == sges[c->sge].length) {
        c->sge++;
        c->sge_off = 0;
    }
    if (c->sge >= n) {
        return NULL;
    }
    *len = MIN(*len, sges[c->sge].length - c->sge_off);
    return &sges[c->sge];
}

static void sg_advance(RoceSgCursor *c, uint32_t len)
{
    c->sge_off += len;
    c->off += len;
}

bool roce_sg_check(const RoceQp *qp, const RdmaSge *sges, uint32_t n,
                   uint32_t access)
{
    uint32_t i;

    for (i = 0; i < n; i++) {
        if (sges[i].length &&
            !roce_mr_local(qp->e, qp->init.pdn, sges[i].lkey, access,
                           sges[i].addr, sges[i].length)) {
            return false;
        }
    }
    return true;
}

RdmaWcStatus roce_sg_scatter(RoceQp *qp, uint32_t pdn, RoceSgCursor *c,
                             uint32_t index, const RdmaSge *sges, uint32_t n,
                             uint32_t off, const uint8_t *buf, uint32_t len)
{
    if (!sg_seek(c, index, sges, n, off)) {
        return RDMA_WC_LOC_LEN_ERR;
    }
    while (len) {
        uint32_t piece = len;
        const RdmaSge *sge = sg_piece(c, sges, n, &piece);
        const RoceMr *mr;
        uint64_t addr;

        if (!sge) {
            return RDMA_WC_LOC_LEN_ERR;
        }
        addr = sge->addr + c->sge_off;
        mr = roce_mr_local(qp->e, pdn, sge->lkey, RDMA_ACCESS_LOCAL_WRITE,
                           addr, piece);
        if (!mr || !roce_mr_write(qp->e, mr, addr, buf, piece)) {
            return RDMA_WC_LOC_PROT_ERR;
        }
        sg_advance(c, piece);
        buf += piece;
        len -= piece;
    }
    return RDMA_WC_SUCCESS;
}

bool roce_sg_gather(RoceQp *qp, RoceSgCursor *c, uint32_t index,
                    const RdmaSge *sges, uint32_t n, uint32_t off,
                    uint32_t len, RoceTxFrame *frame)
{
    if (!sg_seek(c, index, sges, n, off)) {
        return false;
    }
    while (len) {
        uint32_t piece = len;
        const RdmaSge *sge = sg_piece(c, sges, n, &piece);
        const RoceMr *mr;
        uint64_t addr;

        if (!sge) {
            return false;
        }
        addr = sge->addr + c->sge_off;
        mr = roce_mr_local(qp->e, qp->init.pdn, sge->lkey, 0, addr, piece);
        if (!mr || !roce_frame_map(qp->e, frame, mr, addr, piece)) {
            return false;
        }
        sg_advance(c, piece);
        len -= piece;
    }
    return true;
}
