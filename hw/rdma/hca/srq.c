/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues: the objects. The path of a WQE to the backend is in
 * rq.c.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "int.h"

int rdma_hca_srq_check(RdmaHca *hca, const RdmaSrqAttr *attr)
{
    if (!rdma_hca_table_get(&hca->pds, attr->pdn)) {
        return -ENOENT;
    }
    return rdma_hca_check_range("max_wr", attr->max_wr, 1,
                                hca->limits.max_srq_wr) &&
           rdma_hca_check_range("max_sge", attr->max_sge, 0,
                                hca->limits.max_srq_sge) &&
           rdma_hca_check_range("limit", attr->limit, 0, attr->max_wr)
           ? 0 : -EINVAL;
}

void rdma_hca_srq_add(RdmaHca *hca, RdmaHcaSrq *srq)
{
    const RdmaSrqAttr *attr = &srq->attr;

    srq->pd = rdma_hca_table_get(&hca->pds, attr->pdn);
    srq->pd->users++;
    rdma_hca_wq_init(&srq->wq, RDMA_SRQ, attr->srqn, attr->max_sge, 0);
    rdma_hca_table_set(&hca->srqs, attr->srqn, srq);
}

void rdma_hca_srq_remove(RdmaHca *hca, RdmaHcaSrq *srq)
{
    rdma_hca_table_clear(&hca->srqs, srq->attr.srqn);
    rdma_hca_events_forget(hca, &hca->srqs, srq->attr.srqn);
    srq->pd->users--;
    g_free(srq->wq.inflight);
    hca->ops->srq->free(hca, srq);
}

int rdma_hca_srq_create(RdmaHca *hca, RdmaHcaSrq *srq)
{
    const RdmaSrqAttr attr = srq->attr;
    int ret;

    rdma_hca_srq_add(hca, srq);
    rdma_hca_pay_for_queues(hca);
    ret = hca->bc->create_srq(hca->backend, &attr);
    if (ret) {
        rdma_hca_srq_remove(hca, srq);
        rdma_hca_table_search_from(&hca->srqs, attr.srqn);
        return ret;
    }
    trace_rdma_hca_srq_create(hca->owner, attr.srqn, attr.pdn, attr.max_wr,
                              attr.max_sge);
    rdma_hca_wq_schedule(hca, &srq->wq);
    return 0;
}

int rdma_hca_srq_modify(RdmaHca *hca, uint32_t srqn, uint32_t limit)
{
    RdmaHcaSrq *srq = rdma_hca_table_get(&hca->srqs, srqn);

    if (!srq) {
        return -ENOENT;
    }
    return rdma_hca_check_range("limit", limit, 0, srq->attr.max_wr)
           ? hca->bc->set_srq_limit(hca->backend, srqn, limit) : -EINVAL;
}

int rdma_hca_srq_query(RdmaHca *hca, uint32_t srqn, RdmaSrqAttr *attr)
{
    RdmaHcaSrq *srq = rdma_hca_table_get(&hca->srqs, srqn);
    int ret = srq ? hca->bc->query_srq(hca->backend, srqn, attr) : -ENOENT;

    if (!ret) {
        attr->max_wr = srq->attr.max_wr;
        attr->max_sge = srq->attr.max_sge;
    }
    return ret;
}

int rdma_hca_srq_destroy(RdmaHca *hca, uint32_t srqn)
{
    RdmaHcaSrq *srq = rdma_hca_table_get(&hca->srqs, srqn);
    int ret = !srq ? -ENOENT : srq->users ? -EBUSY :
              hca->bc->destroy(hca->backend, RDMA_OBJECT_SRQ, srqn);

    if (ret) {
        return ret;
    }
    trace_rdma_hca_srq_destroy(hca->owner, srqn);
    rdma_hca_pay_for_queues(hca);
    rdma_hca_wq_destroy(hca, &srq->wq);
    rdma_hca_srq_remove(hca, srq);
    return 0;
}

/* WQEs that the driver has posted are lost. */
void rdma_hca_srq_fail(RdmaHca *hca, RdmaHcaSrq *srq)
{
    RdmaHcaQp *qp;

    if (srq->error) {
        return;
    }
    srq->error = true;
    rdma_hca_event_raise(hca, RDMA_EVENT_SRQ_ERR, srq->attr.srqn);
    if (!srq->users) {
        return;
    }
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        if (qp->srq == srq) {
            rdma_hca_qp_schedule(hca, qp);
        }
    }
}
