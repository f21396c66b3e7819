/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows of a virtio-rdma device. They share their numbers with the
 * memory regions. Only the backend knows what they are bound to.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "virtio-rdma-object.h"

RdmaHcaMr *virtio_rdma_mw_add(VirtIORdma *s, const RdmaMwAttr *attr,
                              RdmaHcaPd *pd)
{
    RdmaHcaMr *mw = virtio_rdma_mr_add(s, attr->mwn, pd, 0);

    mw->mw_type = attr->type;
    mw->rkey = attr->rkey;
    s->hca.n_mws++;
    return mw;
}

int virtio_rdma_mw_alloc(VirtIORdma *s, const VirtIORdmaReq *req,
                         VirtIORdmaRsp *rsp)
{
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, req->alloc_mw.pdn);
    RdmaMwAttr attr = {
        .pdn = req->alloc_mw.pdn,
        .type = req->alloc_mw.type,
    };
    RdmaHcaMr *mw;
    int ret;

    if (!pd) {
        return -ENOENT;
    }
    if (!virtio_rdma_check_range("type", req->alloc_mw.type, RDMA_MW_TYPE_1,
                                 RDMA_MW_TYPE_2)) {
        return -EINVAL;
    }
    if (s->hca.n_mws >= s->hca.limits.max_mw ||
        !rdma_hca_table_find(&s->hca.mrs, &attr.mwn)) {
        return -ENOMEM;
    }
    attr.rkey = virtio_rdma_mr_new_key(attr.mwn);
    mw = virtio_rdma_mw_add(s, &attr, pd);
    ret = s->hca.bc->create_mw(s->hca.backend, &attr);
    if (ret) {
        virtio_rdma_mr_remove(s, mw);
        if (ret == -EINPROGRESS) {
            rdma_hca_table_again(&s->hca.mrs, attr.mwn);
        }
        return ret;
    }
    mw->rkey = attr.rkey;
    trace_virtio_rdma_mw_alloc(s, attr.mwn, attr.type, attr.rkey);
    rsp->mw.mwn = attr.mwn;
    rsp->mw.rkey = attr.rkey;
    return 0;
}

int virtio_rdma_mw_dealloc(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    RdmaHcaMr *mw = rdma_hca_table_get(&s->hca.mrs, req->destroy.id);
    int ret;

    if (!mw || !mw->mw_type) {
        return -ENOENT;
    }
    ret = s->hca.bc->destroy(s->hca.backend, RDMA_OBJECT_MW, mw->mrn);
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_mw_dealloc(s, mw->mrn);
    virtio_rdma_mr_remove(s, mw);
    return 0;
}
