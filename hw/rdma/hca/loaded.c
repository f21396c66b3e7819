/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration: compare the objects that the backend loads with those that the
 * device has loaded. The device comes first in the stream.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "int.h"

static bool loaded_qp(RdmaHca *hca, const RdmaQpInitAttr *init,
                      uint32_t nsend, uint32_t nrecv)
{
    const RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, init->qpn);

    return qp && qp->init.pdn == init->pdn &&
           qp->init.qp_type == init->qp_type &&
           qp->init.sq_sig_all == init->sq_sig_all &&
           qp->init.send_cqn == init->send_cqn &&
           qp->init.recv_cqn == init->recv_cqn &&
           qp->init.has_srq == init->has_srq &&
           qp->init.srqn == init->srqn &&
           qp->init.block_mcast_loopback == init->block_mcast_loopback &&
           !memcmp(&qp->init.cap, &init->cap, sizeof(init->cap)) &&
           nsend == qp->sq.count + qp->sq.stale &&
           nrecv == qp->rq.count + qp->rq.stale;
}

static bool loaded_mr(RdmaHca *hca, const RdmaMrAttr *attr, uint64_t npages)
{
    const RdmaHcaMr *mr = rdma_hca_mr_get(hca, attr->mrn);

    if (!mr || mr->pdn != attr->pdn || mr->type != attr->type ||
        mr->max_pages != attr->max_pages) {
        return false;
    }
    /*
     * The backend has the keys of the last REG_MR, which the device does not
     * know. Its pages may include the list of a REG_MR that is still in flight.
     */
    return attr->type == RDMA_MR_FAST_REG
           ? npages <= 2 * mr->max_pages
           : npages <= mr->npages && mr->key == attr->lkey &&
             mr->rkey == attr->rkey;
}

static bool loaded_mw(RdmaHca *hca, const RdmaMwAttr *attr)
{
    const RdmaHcaMr *mw = rdma_hca_table_get(&hca->mrs, attr->mwn);

    return mw && mw->mw_type == attr->type && mw->pdn == attr->pdn;
}

static bool loaded_srq(RdmaHca *hca, const RdmaSrqAttr *attr)
{
    const RdmaHcaSrq *srq = rdma_hca_table_get(&hca->srqs, attr->srqn);

    return srq && srq->attr.pdn == attr->pdn &&
           srq->attr.max_wr == attr->max_wr &&
           srq->attr.max_sge == attr->max_sge;
}

bool rdma_hca_loaded(RdmaHca *hca, const RdmaLoaded *obj)
{
    hca->loaded[obj->type]++;
    switch (obj->type) {
    case RDMA_OBJECT_QP:
        return loaded_qp(hca, obj->qp, obj->nsend, obj->nrecv);
    case RDMA_OBJECT_MR:
        return loaded_mr(hca, obj->mr, obj->npages);
    case RDMA_OBJECT_MW:
        return loaded_mw(hca, obj->mw);
    case RDMA_OBJECT_SRQ:
        return loaded_srq(hca, obj->srq);
    default:
        return false;
    }
}

static bool check_count(const char *what, uint32_t ours, uint32_t backends)
{
    if (ours != backends) {
        error_report("rdma: in the migration stream the device has %u %s, but "
                     "its backend has %u", ours, what, backends);
    }
    return ours == backends;
}

bool rdma_hca_load_end(RdmaHca *hca)
{
    const uint32_t *n = hca->loaded;

    return check_count("QPs", hca->qps.count, n[RDMA_OBJECT_QP]) &&
           check_count("MRs", hca->mrs.count - hca->n_mws,
                       n[RDMA_OBJECT_MR]) &&
           check_count("windows", hca->n_mws, n[RDMA_OBJECT_MW]) &&
           check_count("SRQs", hca->srqs.count, n[RDMA_OBJECT_SRQ]);
}
