/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scatter/gather lists. Each access to memory checks the keys and translates
 * the addresses (IBTA 10.6.3), because a key may become invalid at any time.
 */
#include <glib.h>
#include "mem/mem.h"

static bool sg_walk(RoceSgCursor *c, const RoceSgList *list, uint32_t off)
{
    uint32_t left;

    if (c->index != list->index || c->off > off) {
        *c = (RoceSgCursor) { .index = list->index };
    }
    while (c->off < off) {
        if (c->sge >= list->n) {
            return false;
        }
        left = MIN(list->sges[c->sge].length - c->sge_off, off - c->off);
        c->off += left;
        c->sge_off += left;
        if (c->sge_off == list->sges[c->sge].length) {
            c->sge++;
            c->sge_off = 0;
        }
    }
    return true;
}

/*
 * Move @c to byte @off of the list. Returns false if that is beyond its end. If
 * packets arrive in order, @c is there already.
 */
static inline bool sg_seek(RoceSgCursor *c, const RoceSgList *list,
                           uint32_t off)
{
    return (c->index == list->index && c->off == off) || sg_walk(c, list, off);
}

/*
 * The SGE at @c; NULL at the end of the list. Reduces *@len to the bytes that
 * it has from there on.
 */
static inline const RdmaSge *sg_piece(RoceSgCursor *c, const RoceSgList *list,
                                      uint32_t *len)
{
    while (c->sge < list->n && c->sge_off == list->sges[c->sge].length) {
        c->sge++;
        c->sge_off = 0;
    }
    if (c->sge >= list->n) {
        return NULL;
    }
    *len = MIN(*len, list->sges[c->sge].length - c->sge_off);
    return &list->sges[c->sge];
}

static void sg_advance(RoceSgCursor *c, uint32_t len)
{
    c->sge_off += len;
    c->off += len;
}

bool roce_sg_check(const RoceEngine *e, const RoceSgList *list,
                   uint32_t access)
{
    uint32_t i;

    for (i = 0; i < list->n; i++) {
        if (list->sges[i].length &&
            !roce_mr_local(e, list->pdn, list->sges[i].lkey, access,
                           list->sges[i].addr, list->sges[i].length)) {
            return false;
        }
    }
    return true;
}

RdmaWcStatus roce_sg_scatter(RoceEngine *e, RoceSgCursor *c,
                             const RoceSgList *list, uint32_t off,
                             const uint8_t *buf, uint32_t len)
{
    if (!sg_seek(c, list, off)) {
        return RDMA_WC_LOC_LEN_ERR;
    }
    while (len) {
        uint32_t piece = len;
        const RdmaSge *sge = sg_piece(c, list, &piece);
        const RoceMr *mr;
        uint64_t addr;

        if (!sge) {
            return RDMA_WC_LOC_LEN_ERR;
        }
        addr = sge->addr + c->sge_off;
        mr = roce_mr_local(e, list->pdn, sge->lkey, RDMA_ACCESS_LOCAL_WRITE,
                           addr, piece);
        if (!mr || !roce_mr_write(e, mr, addr, buf, piece)) {
            return RDMA_WC_LOC_PROT_ERR;
        }
        sg_advance(c, piece);
        buf += piece;
        len -= piece;
    }
    return RDMA_WC_SUCCESS;
}

bool roce_sg_gather(RoceEngine *e, RoceSgCursor *c, const RoceSgList *list,
                    uint32_t off, uint32_t len, RoceTxFrame *frame)
{
    if (!sg_seek(c, list, off)) {
        return false;
    }
    while (len) {
        uint32_t piece = len;
        const RdmaSge *sge = sg_piece(c, list, &piece);
        const RoceMr *mr;
        uint64_t addr;

        if (!sge) {
            return false;
        }
        addr = sge->addr + c->sge_off;
        mr = roce_mr_local(e, list->pdn, sge->lkey, 0, addr, piece);
        if (!mr || !roce_frame_map(e, frame, mr, addr, piece)) {
            return false;
        }
        sg_advance(c, piece);
        len -= piece;
    }
    return true;
}
