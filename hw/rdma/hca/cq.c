/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues: the objects, and the path of a completion, which is the
 * same for all forms of CQs.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "int.h"

void rdma_hca_cq_remove(RdmaHca *hca, RdmaHcaCq *cq)
{
    rdma_hca_table_clear(&hca->cqs, cq->cqn);
    rdma_hca_events_forget(hca, &hca->cqs, cq->cqn);
    hca->ops->cq->free(hca, cq);
}

int rdma_hca_cq_create(RdmaHca *hca, RdmaHcaCq *cq)
{
    uint32_t cqn = cq->cqn;
    int ret;

    rdma_hca_table_set(&hca->cqs, cqn, cq);
    ret = hca->bc->create_cq && !cq->is_eq
          ? hca->bc->create_cq(hca->backend, cqn, cq->cqe) : 0;
    if (ret) {
        rdma_hca_cq_remove(hca, cq);
        rdma_hca_table_search_from(&hca->cqs, cqn);
        return ret;
    }
    trace_rdma_hca_cq_create(hca->owner, cqn, cq->cqe);
    return 0;
}

int rdma_hca_cq_resize(RdmaHca *hca, RdmaHcaCq *cq, uint32_t cqe)
{
    int ret = hca->bc->resize_cq
              ? hca->bc->resize_cq(hca->backend, cq->cqn, cqe) : 0;

    if (!ret) {
        trace_rdma_hca_cq_resize(hca->owner, cq->cqn, cq->cqe, cqe);
        cq->cqe = cqe;
    }
    return ret;
}

int rdma_hca_cq_destroy(RdmaHca *hca, uint32_t cqn)
{
    RdmaHcaCq *cq = rdma_hca_table_get(&hca->cqs, cqn);
    int ret = !cq ? -ENOENT : cq->users ? -EBUSY : cq->is_eq ? 0 :
              hca->bc->destroy(hca->backend, RDMA_OBJECT_CQ, cqn);

    if (ret) {
        return ret;
    }
    trace_rdma_hca_cq_destroy(hca->owner, cqn);
    if (cq->ops->destroyed) {
        cq->ops->destroyed(hca, cq);
    }
    rdma_hca_cq_remove(hca, cq);
    return 0;
}

void rdma_hca_cq_enter_error(RdmaHca *hca, RdmaHcaCq *cq)
{
    if (cq->error) {
        return;
    }
    cq->error = true;
    if (cq->ops->drop) {
        cq->ops->drop(hca, cq);
    }
    trace_rdma_hca_cq_error(hca->owner, cq->cqn);
    rdma_hca_event_raise(hca, RDMA_EVENT_CQ_ERR, cq->cqn);
}

bool rdma_hca_cq_complete(RdmaHca *hca, RdmaHcaCq *cq, const RdmaWc *wc,
                          bool solicited)
{
    if (cq->error) {
        return false;
    }
    if (!cq->ops->complete(hca, cq, wc, solicited)) {
        rdma_hca_cq_enter_error(hca, cq);
        return false;
    }
    trace_rdma_hca_cq_complete(hca->owner, cq->cqn, wc->qp_num, wc->wr_id,
                               wc->status, wc->opcode, wc->byte_len);
    return true;
}
