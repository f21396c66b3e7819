/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send queues: WQEs for the backend
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "int.h"

/*
 * Any error of a REG_MR completes as a memory management operation error (IBTA
 * 11.6.2).
 *
 * The region must be of the QP's PD: a process may write WQEs. If it could name
 * regions of other processes, the device would read any address for it.
 */
RdmaWcStatus rdma_hca_sq_read_reg(RdmaHca *hca, RdmaHcaQp *qp,
                                  RdmaHcaPages *p, RdmaSendWr *wr)
{
    RdmaHcaMr *mr = rdma_hca_mr_get(hca, wr->wr.reg.mrn);
    RdmaHcaInflight *inflight = rdma_hca_wq_newest(&qp->sq);

    if (!mr || mr->pd != qp->pd) {
        rdma_hca_guest_error("REG_MR of QP %u: %s MR %u", qp->init.qpn,
                             mr ? "another PD has" : "no", wr->wr.reg.mrn);
        return RDMA_WC_MW_BIND_ERR;
    }
    if (!rdma_hca_check_range("npages", p->npages, 0, mr->max_pages) ||
        rdma_hca_pages_check(hca, p) ||
        rdma_hca_pages_read(hca, p, &wr->wr.reg.pages)) {
        return RDMA_WC_MW_BIND_ERR;
    }
    inflight->npages = p->npages;
    inflight->mrn = mr->mrn;
    wr->wr.reg.npages = p->npages;
    wr->wr.reg.iova = p->iova;
    wr->wr.reg.length = p->length;
    return RDMA_WC_SUCCESS;
}

/* Free the list of a REG_MR that the backend does not take. */
static void drop_reg_pages(RdmaHca *hca, RdmaHcaInflight *inflight,
                           RdmaSendWr *wr)
{
    if (inflight->npages) {
        hca->charged_pages -= inflight->npages;
        inflight->npages = 0;
        g_clear_pointer(&wr->wr.reg.pages, g_free);
    }
}

/*
 * Apply a fault to the send: change it, or hold it back. Returns whether the
 * fault holds it back. Frees the list of a REG_MR that fails.
 */
static bool apply_send_fault(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr)
{
    bool held_back = wr->status == RDMA_WC_SUCCESS &&
                     !rdma_hca_fault_send(hca, qp, wr);

    if (wr->status != RDMA_WC_SUCCESS) {
        drop_reg_pages(hca, rdma_hca_wq_newest(&qp->sq), wr);
    }
    return held_back;
}

RdmaNext rdma_hca_sq_next(RdmaHca *hca, RdmaHcaQp *qp, bool flush,
                          RdmaSendWr *wr)
{
    RdmaNext next;

    if (unlikely(flush)) {
        /* The send that a fault has matched is flushed, not sent. */
        rdma_hca_fault_forget_qp(qp);
    } else if (unlikely(qp->fault.held_back)) {
        return RDMA_NEXT_NONE;
    }
    while (!rdma_hca_wq_take(hca, &qp->sq)) {
        next = rdma_hca_wq_sleep(hca, &qp->sq);
        if (next != RDMA_NEXT_WR) {
            return next;
        }
    }
    *wr = (RdmaSendWr) {};
    hca->ops->decode_send(hca, qp, wr);
    qp->fault.last_fault = NULL;
    if (unlikely(hca->fault_points & RDMA_HCA_FAULT_AT_SEND) && !flush &&
        apply_send_fault(hca, qp, wr)) {
        rdma_hca_sq_put_back(hca, qp, wr);
        return RDMA_NEXT_NONE;
    }
    trace_rdma_hca_wq_post(hca->owner, qp->init.qpn, RDMA_SQ, wr->wr_id,
                           wr->status);
    return RDMA_NEXT_WR;
}

void rdma_hca_sq_put_back(RdmaHca *hca, RdmaHcaQp *qp, const RdmaSendWr *wr)
{
    RdmaSendWr copy = *wr;

    drop_reg_pages(hca, rdma_hca_wq_newest(&qp->sq), &copy);
    rdma_hca_wq_put_back(hca, &qp->sq);
}
