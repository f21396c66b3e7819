/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory windows of a virtio-rdma device. They are numbered with the memory
 * regions; what they are bound to is known to the backend alone.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

VirtIORdmaMr *virtio_rdma_add_mw(VirtIORdma *s, const RdmaMwAttr *attr,
                                 VirtIORdmaPd *pd)
{
    VirtIORdmaMr *mw = virtio_rdma_add_mr(s, attr->mwn, pd, 0);

    mw->mw_type = attr->type;
    mw->rkey = attr->rkey;
    s->n_mws++;
    return mw;
}

int virtio_rdma_alloc_mw(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, c->req.alloc_mw.pdn);
    RdmaMwAttr attr = {
        .pdn = c->req.alloc_mw.pdn,
        .type = c->req.alloc_mw.type,
    };

    if (!pd) {
        return -ENOENT;
    }
    switch (c->req.alloc_mw.type) {
    case VIRTIO_RDMA_MW_TYPE_1:
    case VIRTIO_RDMA_MW_TYPE_2:
        break;
    default:
        return -EINVAL;
    }
    if (s->n_mws >= s->limits.max_mw ||
        !virtio_rdma_table_find(&s->mrs, &attr.mwn)) {
        return -ENOMEM;
    }
    attr.rkey = virtio_rdma_new_key(attr.mwn);
    c->obj = virtio_rdma_add_mw(s, &attr, pd);
    return s->bc->create_mw(s->backend, &attr);
}

void virtio_rdma_alloc_mw_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaMr *mw = c->obj;

    if (!ret) {
        trace_virtio_rdma_alloc_mw(s, mw->mrn, mw->mw_type, mw->rkey);
        c->rsp.mw.mwn = mw->mrn;
        c->rsp.mw.rkey = mw->rkey;
    } else if (mw) {
        virtio_rdma_remove_mr(s, mw);
    }
}

int virtio_rdma_dealloc_mw(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaMr *mw = virtio_rdma_table_get(&s->mrs, c->req.destroy.id);

    if (!mw || !mw->mw_type) {
        return -ENOENT;
    }
    c->obj = mw;
    return s->bc->destroy_mw(s->backend, mw->mrn);
}

void virtio_rdma_dealloc_mw_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    if (!ret) {
        trace_virtio_rdma_dealloc_mw(s, ((VirtIORdmaMr *)c->obj)->mrn);
        virtio_rdma_remove_mr(s, c->obj);
    }
}
