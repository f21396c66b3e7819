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

static bool check_limit(const char *prop, uint64_t theirs, uint64_t ours)
{
    if (theirs != ours) {
        error_report("virtio-rdma: the source has %s=%" PRIu64 ", but this "
                     "device has %" PRIu64, prop, theirs, ours);
        return false;
    }
    return true;
}

/* The guest knows the limits by heart: they may not change under it. */
static bool check_limits(VirtIORdma *s, const SavedLimits *v)
{
    const RdmaBackendLimits *l = &s->limits;

    return check_limit("max-cq", v->max_cq, l->max_cq) &&
           check_limit("max-qp", v->max_qp, l->max_qp) &&
           check_limit("max-mr", v->max_mr, l->max_mr) &&
           check_limit("max-pd", v->max_pd, l->max_pd) &&
           check_limit("max-mr-size", v->max_mr_size, l->max_mr_size) &&
           check_limit("queue-size", v->max_qp_wr, l->max_qp_wr) &&
           check_limit("queue-size", v->max_cqe, l->max_cqe) &&
           check_limit("max-sge", v->max_send_sge, l->max_send_sge) &&
           check_limit("max-sge", v->max_recv_sge, l->max_recv_sge) &&
           check_limit("max-inline", v->max_inline_data,
                       l->max_inline_data) &&
           check_limit("max-rd-atomic", v->max_rd_atomic,
                       l->max_rd_atomic) &&
           check_limit("gid-table-len", v->gid_table_len,
                       l->gid_table_len) &&
           check_limit("atomic capability", v->atomic_cap, l->atomic_cap) &&
           check_limit("capabilities", v->device_cap_flags,
                       l->device_cap_flags);
}

/* Nothing is allocated for more objects than there may be. */
int virtio_rdma_counts_post_load(void *opaque, int version_id)
{
    VirtIORdmaSaved *v = opaque;
    const RdmaBackendLimits *l = &v->dev->limits;

    if (!check_limits(v->dev, &v->limits)) {
        return -EINVAL;
    }
    if (v->n_pds > l->max_pd || v->n_cqs > l->max_cq ||
        v->n_mrs > l->max_mr || v->n_qps > l->max_qp ||
        v->n_stale_vqs > VIRTIO_QUEUE_MAX) {
        error_report("virtio-rdma: more objects in the migration stream than "
                     "the device can have");
        return -EINVAL;
    }
    v->pds = g_new0(SavedPd, v->n_pds);
    v->cqs = g_new0(SavedCq, v->n_cqs);
    v->mrs = g_new0(SavedMr, v->n_mrs);
    v->qps = g_new0(SavedQp, v->n_qps);
    v->stale_vqs = g_new0(uint32_t, v->n_stale_vqs);
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
        v->cqe > s->limits.max_cqe || v->arm > VIRTIO_RDMA_ARM_NEXT) {
        return false;
    }
    cq = virtio_rdma_add_cq(s, v->cqn, v->cqe);
    cq->arm = v->arm;
    cq->error = v->error;
    return true;
}

static bool load_mr(VirtIORdma *s, const SavedMr *v)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, v->pdn);
    VirtIORdmaMr *mr;

    if (!pd || !free_id(&s->mrs, v->mrn) || v->type > RDMA_MR_FAST_REG ||
        v->key >> 8 != v->mrn || (v->rkey && v->rkey != v->key) ||
        v->npages > s->max_mr_pages - s->mr_pages ||
        v->max_pages > VIRTIO_RDMA_MAX_PAGE_LIST) {
        return false;
    }
    mr = virtio_rdma_add_mr(s, v->mrn, pd, v->type);
    mr->key = v->key;
    mr->rkey = v->rkey;
    mr->npages = v->npages;
    mr->max_pages = v->max_pages;
    s->mr_pages += v->npages;
    return true;
}

static bool load_wq(VirtIORdmaWq *wq, const SavedWq *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        uint32_t index = v->inflight[i] & 0xffff;
        uint32_t ndescs = v->inflight[i] >> 16;

        if (index >= VIRTQUEUE_MAX_SIZE || ndescs == 0 ||
            ndescs > VIRTQUEUE_MAX_SIZE) {
            return false;
        }
        wq->inflight[i] = v->inflight[i];
    }
    wq->count = v->count;
    wq->stale = v->stale;
    return true;
}

static bool load_qp(VirtIORdma *s, const SavedQp *v)
{
    const RdmaBackendLimits *l = &s->limits;
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, v->pdn);
    VirtIORdmaCq *send_cq = virtio_rdma_table_get(&s->cqs, v->send_cqn);
    VirtIORdmaCq *recv_cq = virtio_rdma_table_get(&s->cqs, v->recv_cqn);
    RdmaQpInitAttr init = {
        .qpn = v->qpn,
        .pdn = v->pdn,
        .qp_type = v->type,
        .sq_sig_all = v->sq_sig_all,
        .send_cqn = v->send_cqn,
        .recv_cqn = v->recv_cqn,
        .cap = v->cap,
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
    qp = virtio_rdma_add_qp(s, &init, pd, send_cq, recv_cq);
    qp->to_err = v->to_err;
    return load_wq(&qp->sq, &v->sq) && load_wq(&qp->rq, &v->rq);
}

static bool load_next(VirtIORdmaTable *t, uint32_t next)
{
    t->next = next;
    return next >= t->first && next < t->end;
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
    LOAD_ALL(s, v, qps, n_qps, load_qp);
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
    const VirtIORdmaMr *mr = virtio_rdma_table_get(&s->mrs, attr->mrn);

    s->saved->backend_mrs++;
    /* The keys of a fast registration are those of the last REG_MR. */
    return mr && mr->pd->pdn == attr->pdn && mr->type == attr->type &&
           mr->max_pages == attr->max_pages && npages <= mr->npages &&
           (attr->type == RDMA_MR_FAST_REG ||
            (mr->key == attr->lkey && mr->rkey == attr->rkey));
}

int virtio_rdma_device_post_load(void *opaque, int version_id)
{
    VirtIORdma *s = opaque;
    bool complete = s->saved->backend_qps == s->qps.count &&
                    s->saved->backend_mrs == s->mrs.count;

    virtio_rdma_free_saved(s);
    if (!complete) {
        error_report("virtio-rdma: device and backend do not have the same "
                     "objects in the migration stream");
        return -EINVAL;
    }
    return 0;
}

int virtio_rdma_post_load(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    /* The port is the one of this side. */
    virtio_rdma_update_config(s);
    for (uint32_t n = s->qps.first; n < s->qps.end; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp && qp->to_err) {
            virtio_rdma_schedule_qp(s, qp);
        }
    }
    return 0;
}
