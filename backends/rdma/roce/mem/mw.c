/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows of type 1 and 2B (IBTA 10.6.7).
 *
 * A window is an entry of the MR table without pages. Remote access through it
 * uses the pages of the region that it is bound to.
 */
#include <glib.h>
#include "mem/mem.h"

RoceMr *roce_mw_find(const RoceEngine *e, uint32_t mwn)
{
    RoceMr *mw = roce_table_get(&e->mrs, mwn);

    return mw && mw->mw_type ? mw : NULL;
}

int roce_mw_create(RoceEngine *e, const RdmaMwAttr *attr)
{
    RoceMr *mw;

    if (attr->mwn < 1 || attr->mwn > e->config.max_mr ||
        attr->rkey >> 8 != attr->mwn ||
        (attr->type != RDMA_MW_TYPE_1 && attr->type != RDMA_MW_TYPE_2)) {
        return -EINVAL;
    }
    if (roce_table_get(&e->mrs, attr->mwn)) {
        return -EEXIST;
    }
    mw = g_new0(RoceMr, 1);
    mw->mw_type = attr->type;
    mw->attr.type = RDMA_MR_USER;
    mw->attr.mrn = attr->mwn;
    mw->attr.pdn = attr->pdn;
    mw->attr.rkey = attr->rkey;
    roce_table_set(&e->mrs, attr->mwn, mw);
    return 0;
}

void roce_mw_unbind(RoceEngine *e, RoceMr *mw)
{
    if (!mw->region) {
        return;
    }
    mw->region->windows--;
    mw->region = NULL;
    mw->valid = false;
    if (mw->mw_type == RDMA_MW_TYPE_2) {
        e->mws_of_qps--;
    }
}

int roce_mw_destroy(RoceEngine *e, uint32_t mwn)
{
    RoceMr *mw = roce_mw_find(e, mwn);

    if (!mw) {
        return -ENOENT;
    }
    roce_mw_unbind(e, mw);
    roce_table_clear(&e->mrs, mwn);
    roce_mr_free(e, mw);
    return 0;
}

bool roce_mw_region_ok(const RoceMr *mr, const RoceMwBinding *b)
{
    bool writes = b->access & (RDMA_ACCESS_REMOTE_WRITE |
                               RDMA_ACCESS_REMOTE_ATOMIC);

    return !(b->access & ~ROCE_MW_ACCESS) &&
           mr && mr->valid && mr->attr.type != RDMA_MR_DMA &&
           (mr->attr.access & RDMA_ACCESS_MW_BIND) &&
           (!writes || (mr->attr.access & RDMA_ACCESS_LOCAL_WRITE)) &&
           b->length && b->length <= mr->attr.length &&
           b->addr >= mr->attr.iova &&
           b->addr - mr->attr.iova <= mr->attr.length - b->length;
}

void roce_mw_set(RoceEngine *e, RoceMr *mw, RoceMr *mr,
                 const RoceMwBinding *b)
{
    bool zero_based = b->access & RDMA_ACCESS_ZERO_BASED;

    mw->region = mr;
    mw->region_off = zero_based ? b->addr : 0;
    mw->valid = true;
    mw->qpn = b->qpn;
    mw->attr.access = b->access;
    mw->attr.iova = zero_based ? 0 : b->addr;
    mw->attr.length = b->length;
    mr->windows++;
    if (mw->mw_type == RDMA_MW_TYPE_2) {
        e->mws_of_qps++;
    }
}

void roce_mw_unbind_qp(RoceEngine *e, uint32_t qpn)
{
    RoceMr *mw;

    if (!e->mws_of_qps) {
        return;
    }
    ROCE_TABLE_FOREACH(&e->mrs, mwn, mw) {
        if (mw->mw_type == RDMA_MW_TYPE_2 && mw->qpn == qpn) {
            roce_mw_unbind(e, mw);
        }
    }
}
