/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Execution of work requests that change memory objects: REG_MR, LOCAL_INV and
 * the other invalidations, and BIND_MW (IBTA 10.6.5, 10.6.7, 11.4.1.1).
 */
#include <glib.h>
#include "mem/mem.h"

/* Flags of regions that programs also pass for windows; they have no effect. */
#define WINDOW_IGNORED (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_RELAXED_ORDERING)

/* Remote writes and atomics require local write access (IBTA 10.6.3.1). */
static bool access_ok(const RoceEngine *e, uint32_t access)
{
    uint32_t known = RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE |
                     RDMA_ACCESS_MW_BIND | RDMA_ACCESS_HINTS;

    if (roce_opcode_enabled(e, RDMA_WR_FLUSH)) {
        known |= RDMA_ACCESS_FLUSH_GLOBAL;
    }
    return !(access & ~known) &&
           (!(access & (RDMA_ACCESS_REMOTE_WRITE |
                        RDMA_ACCESS_REMOTE_ATOMIC)) ||
            (access & RDMA_ACCESS_LOCAL_WRITE));
}

bool roce_mr_register(RoceEngine *e, uint32_t pdn, RoceSendWqe *wqe,
                      const RoceSendArgs *args, uint64_t **pages)
{
    RoceMr *mr = roce_mr_find(e, args->mrn);
    RdmaMrAttr *attr;

    if (!mr || mr->attr.type != RDMA_MR_FAST_REG ||
        mr->attr.pdn != pdn || mr->valid ||
        wqe->rkey >> 8 != args->mrn || !access_ok(e, args->access) ||
        (wqe->npages ? wqe->npages > mr->attr.max_pages ||
                       !roce_mr_pages_ok(wqe->remote_addr, args->reg_length,
                                         wqe->npages, RDMA_PAGE_SHIFT)
                     : !mr->pending)) {
        return false;
    }
    attr = &mr->attr;
    g_free(attr->pages);
    if (wqe->npages) {
        g_clear_pointer(&mr->pending_pages, g_free);
        attr->pages = g_steal_pointer(pages);
        attr->npages = wqe->npages;
        attr->iova = wqe->remote_addr;
        attr->length = args->reg_length;
        wqe->npages = 0;
    } else {
        attr->pages = g_steal_pointer(&mr->pending_pages);
        attr->npages = mr->pending_npages;
        attr->iova = mr->pending_iova;
        attr->length = mr->pending_length;
    }
    attr->access = args->access;
    attr->lkey = wqe->rkey;
    attr->rkey = args->access & (RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH) ?
                 wqe->rkey : 0;
    mr->pending = false;
    mr->valid = true;
    return true;
}

bool roce_mr_invalidate(RoceEngine *e, uint32_t pdn, uint32_t qpn,
                        uint32_t key, bool remote)
{
    uint32_t mrn = key >> 8;
    RoceMr *mr = roce_table_get(&e->mrs, mrn);

    if (!mr || !mr->valid || mr->attr.pdn != pdn) {
        return false;
    }
    if (mr->mw_type) {
        if (mr->mw_type != RDMA_MW_TYPE_2 || mr->attr.rkey != key ||
            mr->qpn != qpn) {
            return false;
        }
        roce_mw_unbind(e, mr);
        return true;
    }
    if (mr->attr.type != RDMA_MR_FAST_REG || mr->windows ||
        (remote ? mr->attr.rkey : mr->attr.lkey) != key) {
        return false;
    }
    mr->valid = false;
    return true;
}

/*
 * A window of type 1 may be bound again at any time, and a length of 0 unbinds
 * it. A window of type 2 must be invalidated before it can be bound again (IBTA
 * 10.6.7.2.2 f.). The consumer chooses the key of type 2, so its old key need
 * not match.
 */
bool roce_mw_bind(RoceEngine *e, uint32_t pdn, uint32_t qpn,
                  const RoceSendWqe *wqe, const RoceSendArgs *args)
{
    RoceMr *mw = roce_mw_find(e, wqe->invalidate_rkey >> 8);
    RoceMr *mr = roce_mr_find(e, args->lkey >> 8);
    RoceMwBinding b = {
        .access = args->access & ~WINDOW_IGNORED,
        .addr = wqe->remote_addr,
        .length = args->reg_length,
    };

    if (!mw || (mw->mw_type == RDMA_MW_TYPE_1 &&
                mw->attr.rkey != wqe->invalidate_rkey) ||
        mw->attr.pdn != pdn || wqe->rkey >> 8 != mw->attr.mrn) {
        return false;
    }
    if (mw->mw_type == RDMA_MW_TYPE_2) {
        if (mw->region) {
            return false;
        }
        b.qpn = qpn;
    } else if (!b.length) {
        roce_mw_unbind(e, mw);
        mw->attr.rkey = wqe->rkey;
        return true;
    }
    if (!roce_mw_region_ok(mr, &b) || mr->attr.lkey != args->lkey ||
        mr->attr.pdn != pdn) {
        return false;
    }
    roce_mw_unbind(e, mw);
    roce_mw_set(e, mw, mr, &b);
    mw->attr.rkey = wqe->rkey;
    return true;
}
