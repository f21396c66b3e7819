/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: records become objects.
 *
 * What comes in is checked as if the guest had sent it: numbers, references
 * and limits; pointers and counts of users are made anew.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/error-report.h"
#include "virtio-rdma-vmstate.h"

int virtio_rdma_pre_load(void *opaque)
{
    VirtIORdma *s = opaque;

    virtio_rdma_free_saved(s);
    s->saved = g_new0(VirtIORdmaSaved, 1);
    s->saved->dev = s;
    return 0;
}

bool virtio_rdma_valid_wq(void *opaque, int version_id)
{
    const SavedWq *v = opaque;

    return v->count <= VIRTQUEUE_MAX_SIZE && v->stale <= VIRTQUEUE_MAX_SIZE;
}

bool virtio_rdma_valid_cq(void *opaque, int version_id)
{
    const SavedCq *v = opaque;

    return v->cqe <= VIRTIO_RDMA_MAX_CQE && v->nkept <= v->cqe;
}

/* Nothing is allocated for more objects than there may be. */
int virtio_rdma_counts_post_load(void *opaque, int version_id)
{
    VirtIORdmaSaved *v = opaque;
    const RdmaBackendLimits *l = &v->dev->limits;

    if (v->n_pds > l->max_pd || v->n_cqs > l->max_cq ||
        v->n_mrs > l->max_mr || v->n_mws > l->max_mw ||
        v->n_srqs > l->max_srq || v->n_qps > l->max_qp ||
        v->n_stale_vqs > VIRTIO_QUEUE_MAX ||
        v->n_events > virtio_rdma_max_events(v->dev)) {
        error_report("virtio-rdma: more objects in the migration stream than "
                     "the device can have");
        return -EINVAL;
    }
    v->pds = g_new0(SavedPd, v->n_pds);
    v->cqs = g_new0(SavedCq, v->n_cqs);
    v->mrs = g_new0(SavedMr, v->n_mrs);
    v->mws = g_new0(SavedMw, v->n_mws);
    v->srqs = g_new0(SavedSrq, v->n_srqs);
    v->qps = g_new0(SavedQp, v->n_qps);
    v->stale_vqs = g_new0(uint32_t, v->n_stale_vqs);
    v->events = g_new0(SavedEvent, v->n_events);
    return 0;
}

static bool free_id(const VirtIORdmaTable *t, uint32_t id)
{
    return id >= t->first && id < t->end && !t->slot[id];
}

static bool load_pd(VirtIORdma *s, const SavedPd *v)
{
    if (!free_id(&s->pds, v->pdn)) {
        return false;
    }
    virtio_rdma_add_pd(s, v->pdn);
    return true;
}

static bool load_cq(VirtIORdma *s, const SavedCq *v)
{
    VirtIORdmaCq *cq;

    if (!free_id(&s->cqs, v->cqn) || v->cqe == 0 ||
        v->cqe > MAX(s->limits.max_cqe, s->conf.max_cqe) ||
        v->arm > VIRTIO_RDMA_ARM_NEXT || (v->error && v->nkept)) {
        return false;
    }
    cq = virtio_rdma_add_cq(s, v->cqn, v->cqe);
    cq->arm = v->arm;
    cq->error = v->error;
    for (uint32_t i = 0; i < v->nkept; i++) {
        virtio_rdma_cq_keep(cq, &v->kept[i]);
    }
    return true;
}

static bool load_mr(VirtIORdma *s, const SavedMr *v)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, v->pdn);
    VirtIORdmaMr *mr;

    if (!pd || !free_id(&s->mrs, v->mrn) || v->type > RDMA_MR_FAST_REG ||
        v->key >> 8 != v->mrn || (v->rkey && v->rkey != v->key) ||
        v->max_pages > VIRTIO_RDMA_MAX_PAGE_LIST ||
        (v->type == RDMA_MR_FAST_REG
         ? v->npages > v->max_pages || v->pending > v->max_pages
         : v->max_pages || v->pending) ||
        v->npages > s->max_mr_pages - s->mr_pages ||
        v->pending > s->max_mr_pages - s->mr_pages - v->npages) {
        return false;
    }
    mr = virtio_rdma_add_mr(s, v->mrn, pd, v->type);
    mr->key = v->key;
    mr->rkey = v->rkey;
    mr->npages = v->npages;
    mr->pending = v->pending;
    mr->max_pages = v->max_pages;
    s->mr_pages += v->npages + v->pending;
    return true;
}

static bool load_mw(VirtIORdma *s, const SavedMw *v)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, v->pdn);
    RdmaMwAttr attr = {
        .mwn = v->mwn,
        .pdn = v->pdn,
        .type = v->type,
        .rkey = v->rkey,
    };

    if (!pd || !free_id(&s->mrs, v->mwn) || v->rkey >> 8 != v->mwn ||
        (v->type != RDMA_MW_TYPE_1 && v->type != RDMA_MW_TYPE_2)) {
        return false;
    }
    virtio_rdma_add_mw(s, &attr, pd);
    return true;
}

static bool load_srq(VirtIORdma *s, const SavedSrq *v)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, v->pdn);
    RdmaSrqAttr attr = {
        .srqn = v->srqn,
        .pdn = v->pdn,
        .max_wr = v->max_wr,
        .max_sge = v->max_sge,
    };

    if (!pd || !free_id(&s->srqs, v->srqn) || v->max_wr == 0 ||
        v->max_wr > s->limits.max_srq_wr ||
        v->max_sge > s->limits.max_srq_sge) {
        return false;
    }
    virtio_rdma_add_srq(s, &attr, pd)->error = v->error;
    return true;
}

static bool load_wq(VirtIORdma *s, VirtIORdmaWq *wq, const SavedWq *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        const VirtIORdmaInflight *inflight = &v->inflight[i];

        if (inflight->index >= VIRTQUEUE_MAX_SIZE ||
            inflight->ndescs == 0 ||
            inflight->ndescs > VIRTQUEUE_MAX_SIZE ||
            inflight->npages > s->max_mr_pages - s->mr_pages ||
            (wq->kind != RDMA_BACKEND_SQ && inflight->npages)) {
            return false;
        }
        s->mr_pages += inflight->npages;
        wq->inflight[i] = *inflight;
        wq->count++;
    }
    wq->stale = v->stale;
    return true;
}

static bool load_qp(VirtIORdma *s, const SavedQp *v)
{
    const RdmaBackendLimits *l = &s->limits;
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, v->pdn);
    VirtIORdmaCq *send_cq = virtio_rdma_table_get(&s->cqs, v->send_cqn);
    VirtIORdmaCq *recv_cq = virtio_rdma_table_get(&s->cqs, v->recv_cqn);
    VirtIORdmaSrq *srq = v->has_srq
                         ? virtio_rdma_table_get(&s->srqs, v->srqn) : NULL;
    RdmaQpInitAttr init = {
        .qpn = v->qpn,
        .pdn = v->pdn,
        .qp_type = v->type,
        .sq_sig_all = v->sq_sig_all,
        .send_cqn = v->send_cqn,
        .recv_cqn = v->recv_cqn,
        .cap = v->cap,
        .has_srq = v->has_srq,
        .srqn = v->srqn,
        .block_mcast_loopback = v->block_mcast_loopback,
    };
    VirtIORdmaQp *qp;

    if (!pd || !send_cq || !recv_cq || !free_id(&s->qps, v->qpn) ||
        v->type < RDMA_QPT_GSI || v->type > RDMA_QPT_UD ||
        (v->type == RDMA_QPT_GSI) != (v->qpn == RDMA_QPN_GSI) ||
        v->cap.max_send_wr > l->max_qp_wr ||
        v->cap.max_recv_wr > l->max_qp_wr ||
        v->cap.max_send_sge > l->max_send_sge ||
        v->cap.max_recv_sge > l->max_recv_sge ||
        v->cap.max_inline_data > l->max_inline_data) {
        return false;
    }
    if (v->has_srq ? !srq || v->type == RDMA_QPT_GSI || v->cap.max_recv_wr ||
                     v->cap.max_recv_sge || v->rq.count || v->rq.stale
                   : v->srqn != 0) {
        return false;
    }
    if (v->block_mcast_loopback && v->type != RDMA_QPT_UD) {
        return false;
    }
    qp = virtio_rdma_add_qp(s, &init, pd, send_cq, recv_cq, srq);
    qp->to_err = v->to_err;
    return load_wq(s, &qp->sq, &v->sq) && load_wq(s, &qp->rq, &v->rq);
}

static bool load_event(VirtIORdma *s, const SavedEvent *v)
{
    return virtio_rdma_load_event(s, &(RdmaEvent) {
        .type = v->type,
        .id = v->id,
    });
}

static bool load_next(VirtIORdmaTable *t, uint32_t next)
{
    t->next = next;
    return (next >= t->first && next < t->end) ||
           (t->first == t->end && next == t->first);
}

#define LOAD_ALL(s, v, what, n, load)                                   \
    for (uint32_t i_ = 0; i_ < (v)->n; i_++) {                          \
        if (!load(s, &(v)->what[i_])) {                                 \
            error_report("virtio-rdma: bad record %u of "               \
                         #what " in the migration stream", i_);         \
            return -EINVAL;                                             \
        }                                                               \
    }

int virtio_rdma_objects_post_load(void *opaque, int version_id)
{
    const VirtIORdmaSaved *v = opaque;
    VirtIORdma *s = v->dev;

    virtio_rdma_objects_reset(s);
    LOAD_ALL(s, v, pds, n_pds, load_pd);
    LOAD_ALL(s, v, cqs, n_cqs, load_cq);
    LOAD_ALL(s, v, mrs, n_mrs, load_mr);
    LOAD_ALL(s, v, mws, n_mws, load_mw);
    LOAD_ALL(s, v, srqs, n_srqs, load_srq);
    LOAD_ALL(s, v, qps, n_qps, load_qp);
    LOAD_ALL(s, v, events, n_events, load_event);
    virtio_rdma_load_port(s, v->port_active);
    for (uint32_t i = 0; i < v->n_stale_vqs; i++) {
        if (v->stale_vqs[i] >= VIRTIO_QUEUE_MAX) {
            error_report("virtio-rdma: bad virtqueue number in the "
                         "migration stream");
            return -EINVAL;
        }
        set_bit(v->stale_vqs[i], s->stale_vqs);
    }
    if (!load_next(&s->pds, v->next_pdn) ||
        !load_next(&s->cqs, v->next_cqn) ||
        !load_next(&s->mrs, v->next_mrn) ||
        !load_next(&s->srqs, v->next_srqn) ||
        !load_next(&s->qps, v->next_qpn)) {
        error_report("virtio-rdma: bad object number in the migration "
                     "stream");
        return -EINVAL;
    }
    return 0;
}

bool virtio_rdma_loaded_qp(void *opaque, const RdmaQpInitAttr *init,
                           uint32_t nsend, uint32_t nrecv)
{
    VirtIORdma *s = opaque;
    const VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, init->qpn);

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

bool virtio_rdma_loaded_mr(void *opaque, const RdmaMrAttr *attr,
                           uint64_t npages)
{
    VirtIORdma *s = opaque;
    const VirtIORdmaMr *mr = virtio_rdma_get_mr(s, attr->mrn);

    s->saved->backend_mrs++;
    if (!mr || mr->pd->pdn != attr->pdn || mr->type != attr->type ||
        mr->max_pages != attr->max_pages) {
        return false;
    }
    /*
     * A fast registration has the keys of the last REG_MR, and perhaps the
     * list of one that has not retired yet.
     */
    return attr->type == RDMA_MR_FAST_REG
           ? npages <= 2 * mr->max_pages
           : npages <= mr->npages && mr->key == attr->lkey &&
             mr->rkey == attr->rkey;
}

bool virtio_rdma_loaded_mw(void *opaque, const RdmaMwAttr *attr)
{
    VirtIORdma *s = opaque;
    const VirtIORdmaMr *mw = virtio_rdma_table_get(&s->mrs, attr->mwn);

    s->saved->backend_mws++;
    return mw && mw->mw_type == attr->type && mw->pd->pdn == attr->pdn;
}

bool virtio_rdma_loaded_srq(void *opaque, const RdmaSrqAttr *attr)
{
    VirtIORdma *s = opaque;
    const VirtIORdmaSrq *srq = virtio_rdma_table_get(&s->srqs, attr->srqn);

    s->saved->backend_srqs++;
    return srq && srq->attr.pdn == attr->pdn &&
           srq->attr.max_wr == attr->max_wr &&
           srq->attr.max_sge == attr->max_sge;
}

int virtio_rdma_device_post_load(void *opaque, int version_id)
{
    VirtIORdma *s = opaque;
    bool complete = s->saved->backend_qps == s->qps.count &&
                    s->saved->backend_mrs == s->mrs.count - s->n_mws &&
                    s->saved->backend_mws == s->n_mws &&
                    s->saved->backend_srqs == s->srqs.count;

    virtio_rdma_set_counters(s, s->saved->counters);
    virtio_rdma_free_saved(s);
    if (!complete) {
        error_report("virtio-rdma: device and backend do not have the same "
                     "objects in the migration stream");
        return -EINVAL;
    }
    return 0;
}

/* What there is only with a feature; they are loaded last. */
static bool check_features(VirtIORdma *s)
{
    const struct {
        const char *what;
        uint32_t count;
        unsigned feature;
    } objects[] = {
        { "events", virtio_rdma_count_events(s), VIRTIO_RDMA_F_EVENTS },
        { "shared receive queues", s->srqs.count, VIRTIO_RDMA_F_SRQ },
        { "memory windows", s->n_mws, VIRTIO_RDMA_F_MW },
    };

    for (int i = 0; i < ARRAY_SIZE(objects); i++) {
        if (objects[i].count && !virtio_rdma_has(s, objects[i].feature)) {
            error_report("virtio-rdma: %s in the migration stream, but the "
                         "driver did not accept %s", objects[i].what,
                         virtio_rdma_feature_name(objects[i].feature));
            return false;
        }
    }
    for (uint32_t n = s->cqs.first; n < s->cqs.end; n++) {
        VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, n);

        if (cq && (cq->cqe > virtio_rdma_max_cqe(s) ||
                   (cq->nkept &&
                    !virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_DEEP)))) {
            error_report("virtio-rdma: CQ %u in the migration stream is too "
                         "deep", n);
            return false;
        }
    }
    return true;
}

int virtio_rdma_post_load(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    if (!check_features(s)) {
        return -EINVAL;
    }
    s->ctrl->seen = virtio_queue_get_last_avail_idx(vdev,
                                                    VIRTIO_RDMA_CTRL_VQ);
    /* The port is the one of this side. */
    virtio_rdma_update_config(s);
    virtio_rdma_check_port(s);
    for (uint32_t n = s->qps.first; n < s->qps.end; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp && qp->to_err) {
            virtio_rdma_schedule_qp(s, qp);
        }
    }
    return 0;
}
