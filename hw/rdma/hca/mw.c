/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows. They are in the table of memory regions, so that numbers and
 * keys differ. Only the backend knows the region that a window is bound to.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "int.h"

int rdma_hca_mw_alloc(RdmaHca *hca, RdmaMwAttr *attr)
{
    RdmaHcaMr *mw;
    int ret;

    if (!rdma_hca_table_get(&hca->pds, attr->pdn)) {
        return -ENOENT;
    }
    if (!rdma_hca_check_range("type", attr->type, RDMA_MW_TYPE_1,
                              RDMA_MW_TYPE_2)) {
        return -EINVAL;
    }
    if (hca->n_mws >= hca->limits.max_mw ||
        !rdma_hca_table_find(&hca->mrs, &attr->mwn)) {
        return -ENOMEM;
    }
    attr->rkey = rdma_hca_mr_new_key(attr->mwn);
    mw = g_new0(RdmaHcaMr, 1);
    mw->mrn = attr->mwn;
    mw->pdn = attr->pdn;
    mw->mw_type = attr->type;
    rdma_hca_mr_add(hca, mw);
    ret = hca->bc->create_mw(hca->backend, attr);
    if (ret) {
        rdma_hca_mr_remove(hca, mw);
        rdma_hca_table_search_from(&hca->mrs, attr->mwn);
        return ret;
    }
    mw->rkey = attr->rkey;
    trace_rdma_hca_mw_alloc(hca->owner, attr->mwn, attr->type, attr->rkey);
    return 0;
}

int rdma_hca_mw_dealloc(RdmaHca *hca, uint32_t mwn)
{
    RdmaHcaMr *mw = rdma_hca_table_get(&hca->mrs, mwn);
    int ret = !mw || !mw->mw_type ? -ENOENT :
              hca->bc->destroy(hca->backend, RDMA_OBJECT_MW, mwn);

    if (!ret) {
        trace_rdma_hca_mw_dealloc(hca->owner, mwn);
        rdma_hca_mr_remove(hca, mw);
    }
    return ret;
}
