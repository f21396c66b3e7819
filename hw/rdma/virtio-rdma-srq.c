/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues of a virtio-rdma device: the objects and their
 * commands. The way of a WQE to the backend is in virtio-rdma-rq.c.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "trace.h"
#include "virtio-rdma-object.h"

RdmaHcaSrq *virtio_rdma_srq_add(VirtIORdma *s, const RdmaSrqAttr *attr,
                                RdmaHcaPd *pd)
{
    VirtIORdmaSrq *form = g_new0(VirtIORdmaSrq, 1);
    RdmaHcaSrq *srq = &form->core;

    srq->attr = *attr;
    srq->pd = pd;
    srq->wq.opaque = &form->wq;
    pd->users++;
    virtio_rdma_wq_init(&srq->wq, RDMA_SRQ, attr->srqn, attr->max_sge, 0);
    rdma_hca_table_set(&s->hca.srqs, attr->srqn, srq);
    return srq;
}

void virtio_rdma_srq_use_vq(VirtIORdma *s, RdmaHcaSrq *srq)
{
    virtio_rdma_wq_use_vq(s, &srq->wq, virtio_rdma_srq_vq(s, srq->attr.srqn));
}

void virtio_rdma_srq_remove(VirtIORdma *s, RdmaHcaSrq *srq)
{
    rdma_hca_table_clear(&s->hca.srqs, srq->attr.srqn);
    rdma_hca_events_forget(&s->hca, RDMA_HCA_EVENT_OF_SRQ, srq->attr.srqn);
    srq->pd->users--;
    virtio_rdma_direct_srq_stop(s, virtio_rdma_srq(srq));
    g_free(srq->wq.inflight);
    g_free(virtio_rdma_srq(srq));
}

/* Without the feature these fields have no meaning. */
static uint32_t flags_of(VirtIORdma *s, const VirtIORdmaReq *req)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT_SRQ) ? req->create_srq.flags
                                                        : 0;
}

/* WQEs wait in the ring, until messages take them. */
static int check_srqn(VirtIORdma *s, uint32_t srqn, const VirtIORdmaReq *req)
{
    if (flags_of(s, req) & VIRTIO_RDMA_SRQ_DIRECT) {
        return 0;
    }
    return virtio_rdma_vq_check(s, virtio_rdma_srq_vq(s, srqn),
                                req->create_srq.attr.max_wr);
}

/* Add an SRQ, with what the driver says of its queue. */
static int add_srq(VirtIORdma *s, const VirtIORdmaReq *req,
                   const RdmaSrqAttr *attr, RdmaHcaPd *pd,
                   RdmaHcaSrq **srq)
{
    VirtIORdmaDirectSrq direct = req->create_srq.direct;
    uint64_t *pages = NULL;
    int ret;

    if (!(flags_of(s, req) & VIRTIO_RDMA_SRQ_DIRECT)) {
        if (!virtio_rdma_check_may_have_vq(s, "SRQ")) {
            return -EINVAL;
        }
        *srq = virtio_rdma_srq_add(s, attr, pd);
        virtio_rdma_srq_use_vq(s, *srq);
        return 0;
    }
    ret = virtio_rdma_direct_srq_check(s, attr, &direct);
    if (ret) {
        return ret;
    }
    ret = virtio_rdma_pages_read_on(s, &direct.pages, &pages);
    if (ret) {
        return ret;
    }
    *srq = virtio_rdma_srq_add(s, attr, pd);
    virtio_rdma_direct_srq_start(s, virtio_rdma_srq(*srq), &direct, pages);
    return 0;
}

int virtio_rdma_srq_create(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    uint32_t flags = flags_of(s, req);
    RdmaSrqAttr attr = req->create_srq.attr;
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, attr.pdn);
    RdmaHcaSrq *srq;
    int ret;

    if (!pd) {
        return -ENOENT;
    }
    if (!virtio_rdma_check_flags("flags", flags, VIRTIO_RDMA_SRQ_DIRECT) ||
        !virtio_rdma_check_range("max_wr", attr.max_wr, 1,
                                 s->hca.limits.max_srq_wr) ||
        !virtio_rdma_check_range("max_sge", attr.max_sge, 0,
                                 s->hca.limits.max_srq_sge) ||
        !virtio_rdma_check_range("limit", attr.limit, 0, attr.max_wr)) {
        return -EINVAL;
    }
    ret = virtio_rdma_vq_find_id(s, &s->hca.srqs, s->hca.srqs.first,
                                 flags & VIRTIO_RDMA_SRQ_DIRECT
                                 ? s->hca.srqs.end : s->max_vq_srq,
                                 check_srqn, req, &attr.srqn);
    if (ret) {
        return ret;
    }
    ret = add_srq(s, req, &attr, pd, &srq);
    if (ret) {
        return ret;
    }
    rdma_work_pay(&s->hca.cmd_budget, 8 * RDMA_WORK_COMMAND);
    ret = s->hca.bc->create_srq(s->hca.backend, &attr);
    if (ret) {
        virtio_rdma_srq_remove(s, srq);
        if (ret == -EINPROGRESS) {
            rdma_hca_table_again(&s->hca.srqs, attr.srqn);
        }
        return ret;
    }
    trace_virtio_rdma_srq_create(s, attr.srqn, attr.pdn, attr.max_wr,
                                 attr.max_sge);
    virtio_rdma_srq_set_notifier(s, attr.srqn, true);
    rdma_hca_srq_schedule(&s->hca, srq);
    rsp->create.id = attr.srqn;
    return 0;
}

int virtio_rdma_srq_modify(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    RdmaHcaSrq *srq = rdma_hca_table_get(&s->hca.srqs, req->srq.srqn);

    if (!srq) {
        return -ENOENT;
    }
    if (!virtio_rdma_check_range("limit", req->srq.limit, 0,
                                 srq->attr.max_wr)) {
        return -EINVAL;
    }
    return s->hca.bc->set_srq_limit(s->hca.backend, srq->attr.srqn,
                                    req->srq.limit);
}

int virtio_rdma_srq_query(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaSrq *srq = rdma_hca_table_get(&s->hca.srqs, req->srq.srqn);
    int ret;

    if (!srq) {
        return -ENOENT;
    }
    ret = s->hca.bc->query_srq(s->hca.backend, srq->attr.srqn,
                               &rsp->query_srq.attr);
    if (ret) {
        return ret;
    }
    rsp->query_srq.attr.max_wr = srq->attr.max_wr;
    rsp->query_srq.attr.max_sge = srq->attr.max_sge;
    return 0;
}

int virtio_rdma_srq_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                            VirtIORdmaRsp *rsp)
{
    uint32_t srqn = req->destroy.id;
    RdmaHcaSrq *srq = rdma_hca_table_get(&s->hca.srqs, srqn);
    int ret;

    if (!srq) {
        return -ENOENT;
    }
    if (srq->users) {
        return -EBUSY;
    }
    ret = s->hca.bc->destroy(s->hca.backend, RDMA_OBJECT_SRQ, srqn);
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_srq_destroy(s, srqn);
    rdma_work_pay(&s->hca.cmd_budget, 8 * RDMA_WORK_COMMAND);
    virtio_rdma_wq_drain(s, &srq->wq);
    virtio_rdma_wq_destroyed(s, &srq->wq);
    virtio_rdma_srq_remove(s, srq);
    virtio_rdma_srq_set_notifier(s, srqn, false);
    return 0;
}

/* WQEs that the driver had put into its queue are lost. */
void virtio_rdma_srq_fail(VirtIORdma *s, RdmaHcaSrq *srq)
{
    RdmaHcaQp *qp;

    if (srq->error) {
        return;
    }
    srq->error = true;
    rdma_hca_event_raise(&s->hca, RDMA_EVENT_SRQ_ERR, srq->attr.srqn);
    if (!srq->users) {
        return;
    }
    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        if (qp->srq == srq) {
            virtio_rdma_qp_fail(s, qp);
        }
    }
}
