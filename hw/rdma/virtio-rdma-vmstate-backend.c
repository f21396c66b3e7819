/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: the objects that its backend has loaded,
 * against those that the device has.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "virtio-rdma-vmstate.h"

static bool loaded_qp(VirtIORdma *s, const RdmaQpInitAttr *init,
                      uint32_t nsend, uint32_t nrecv)
{
    const RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, init->qpn);

    s->saved->backend_qps++;
    return qp && qp->init.pdn == init->pdn &&
           qp->init.qp_type == init->qp_type &&
           qp->init.sq_sig_all == init->sq_sig_all &&
           qp->init.send_cqn == init->send_cqn &&
           qp->init.recv_cqn == init->recv_cqn &&
           qp->init.has_srq == init->has_srq &&
           qp->init.srqn == init->srqn &&
           qp->init.block_mcast_loopback == init->block_mcast_loopback &&
           qp->init.cap.max_send_wr == init->cap.max_send_wr &&
           qp->init.cap.max_recv_wr == init->cap.max_recv_wr &&
           qp->init.cap.max_send_sge == init->cap.max_send_sge &&
           qp->init.cap.max_recv_sge == init->cap.max_recv_sge &&
           qp->init.cap.max_inline_data == init->cap.max_inline_data &&
           nsend == qp->sq.count + qp->sq.stale &&
           nrecv == qp->rq.count + qp->rq.stale;
}

static bool loaded_mr(VirtIORdma *s, const RdmaMrAttr *attr, uint64_t npages)
{
    const RdmaHcaMr *mr = rdma_hca_mr_get(&s->hca, attr->mrn);

    s->saved->backend_mrs++;
    if (!mr || mr->pd->pdn != attr->pdn || mr->type != attr->type ||
        mr->max_pages != attr->max_pages) {
        return false;
    }
    /*
     * The backend's keys of a fast registration are those of the last REG_MR;
     * its pages may include those of a REG_MR that has not retired yet.
     */
    return attr->type == RDMA_MR_FAST_REG
           ? npages <= 2 * mr->max_pages
           : npages <= mr->npages && mr->key == attr->lkey &&
             mr->rkey == attr->rkey;
}

static bool loaded_mw(VirtIORdma *s, const RdmaMwAttr *attr)
{
    const RdmaHcaMr *mw = rdma_hca_table_get(&s->hca.mrs, attr->mwn);

    s->saved->backend_mws++;
    return mw && mw->mw_type == attr->type && mw->pd->pdn == attr->pdn;
}

static bool loaded_srq(VirtIORdma *s, const RdmaSrqAttr *attr)
{
    const RdmaHcaSrq *srq = rdma_hca_table_get(&s->hca.srqs, attr->srqn);

    s->saved->backend_srqs++;
    return srq && srq->attr.pdn == attr->pdn &&
           srq->attr.max_wr == attr->max_wr &&
           srq->attr.max_sge == attr->max_sge;
}

bool virtio_rdma_loaded(void *opaque, const RdmaLoaded *obj)
{
    VirtIORdma *s = opaque;

    switch (obj->type) {
    case RDMA_OBJECT_QP:
        return loaded_qp(s, obj->qp, obj->nsend, obj->nrecv);
    case RDMA_OBJECT_MR:
        return loaded_mr(s, obj->mr, obj->npages);
    case RDMA_OBJECT_MW:
        return loaded_mw(s, obj->mw);
    case RDMA_OBJECT_SRQ:
        return loaded_srq(s, obj->srq);
    default:
        return false;
    }
}

static bool check_count(const char *what, uint32_t ours, uint32_t backends)
{
    if (ours != backends) {
        error_report("virtio-rdma: in the migration stream the device has %u "
                     "%s, but its backend has %u", ours, what, backends);
    }
    return ours == backends;
}

int virtio_rdma_saved_post_load(void *opaque, int version_id)
{
    VirtIORdma *s = opaque;
    const VirtIORdmaSaved *v = s->saved;
    bool complete =
        check_count("QPs", s->hca.qps.count, v->backend_qps) &&
        check_count("MRs", s->hca.mrs.count - s->hca.n_mws, v->backend_mrs) &&
        check_count("windows", s->hca.n_mws, v->backend_mws) &&
        check_count("SRQs", s->hca.srqs.count, v->backend_srqs);

    rdma_hca_counters_set(&s->hca, v->counters);
    virtio_rdma_saved_free(s);
    return complete ? 0 : -EINVAL;
}
