/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device.
 *
 * The objects are saved as lists of plain records, the backend's state
 * behind them. What comes in is checked as if the guest had sent it: numbers,
 * references and limits; pointers and counts of users are made anew.
 */
#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "qemu/error-report.h"
#include "virtio-rdma-internal.h"

typedef struct SavedPd {
    uint32_t pdn;
} SavedPd;

typedef struct SavedCq {
    uint32_t cqn;
    uint32_t cqe;
    uint8_t arm;
    bool error;
} SavedCq;

typedef struct SavedMr {
    uint32_t mrn;
    uint32_t pdn;
    uint32_t type;
    uint32_t key;
    uint32_t rkey;
    uint32_t npages;
    uint32_t max_pages;
} SavedMr;

typedef struct SavedWq {
    uint32_t stale;
    uint32_t count;
    uint32_t *inflight;
} SavedWq;

typedef struct SavedQp {
    uint32_t qpn;
    uint32_t pdn;
    uint32_t type;
    uint32_t send_cqn;
    uint32_t recv_cqn;
    bool sq_sig_all;
    bool to_err;
    RdmaQpCap cap;
    SavedWq sq;
    SavedWq rq;
} SavedQp;

typedef struct SavedLimits {
    uint32_t max_qp;
    uint32_t max_qp_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;
    uint32_t max_cq;
    uint32_t max_cqe;
    uint32_t max_mr;
    uint32_t max_pd;
    uint64_t max_mr_size;
    uint32_t max_rd_atomic;
    uint32_t gid_table_len;
    uint8_t atomic_cap;
    uint64_t device_cap_flags;
} SavedLimits;

struct VirtIORdmaSaved {
    VirtIORdma *dev;
    SavedLimits limits;
    uint32_t n_pds;
    SavedPd *pds;
    uint32_t n_cqs;
    SavedCq *cqs;
    uint32_t n_mrs;
    SavedMr *mrs;
    uint32_t n_qps;
    SavedQp *qps;
    uint32_t next_pdn;
    uint32_t next_cqn;
    uint32_t next_mrn;
    uint32_t next_qpn;
    uint32_t n_stale_vqs;
    uint32_t *stale_vqs;
    /* Loading: what the backend has, too */
    uint32_t backend_mrs;
    uint32_t backend_qps;
};

void virtio_rdma_free_saved(VirtIORdma *s)
{
    VirtIORdmaSaved *v = s->saved;

    if (!v) {
        return;
    }
    for (uint32_t i = 0; v->qps && i < v->n_qps; i++) {
        g_free(v->qps[i].sq.inflight);
        g_free(v->qps[i].rq.inflight);
    }
    g_free(v->qps);
    g_free(v->mrs);
    g_free(v->cqs);
    g_free(v->pds);
    g_free(v->stale_vqs);
    g_free(v);
    s->saved = NULL;
}

/* Saving */

static void save_limits(SavedLimits *v, const RdmaBackendLimits *l)
{
    *v = (SavedLimits) {
        .max_qp = l->max_qp,
        .max_qp_wr = l->max_qp_wr,
        .max_send_sge = l->max_send_sge,
        .max_recv_sge = l->max_recv_sge,
        .max_inline_data = l->max_inline_data,
        .max_cq = l->max_cq,
        .max_cqe = l->max_cqe,
        .max_mr = l->max_mr,
        .max_pd = l->max_pd,
        .max_mr_size = l->max_mr_size,
        .max_rd_atomic = l->max_rd_atomic,
        .gid_table_len = l->gid_table_len,
        .atomic_cap = l->atomic_cap,
        .device_cap_flags = l->device_cap_flags,
    };
}

static void save_wq(SavedWq *v, const VirtIORdmaWq *wq)
{
    v->stale = wq->stale;
    v->count = wq->count;
    v->inflight = g_new(uint32_t, wq->count);
    for (uint32_t i = 0; i < wq->count; i++) {
        v->inflight[i] = wq->inflight[(wq->head + i) % VIRTQUEUE_MAX_SIZE];
    }
}

static void save_qp(SavedQp *v, const VirtIORdmaQp *qp)
{
    v->qpn = qp->init.qpn;
    v->pdn = qp->init.pdn;
    v->type = qp->init.qp_type;
    v->send_cqn = qp->init.send_cqn;
    v->recv_cqn = qp->init.recv_cqn;
    v->sq_sig_all = qp->init.sq_sig_all;
    v->to_err = qp->to_err;
    v->cap = qp->init.cap;
    save_wq(&v->sq, &qp->sq);
    save_wq(&v->rq, &qp->rq);
}

static int device_pre_save(void *opaque)
{
    VirtIORdma *s = opaque;
    VirtIORdmaSaved *v;

    if (s->ctrl->pending) {
        error_report("virtio-rdma: a control command is in progress");
        return -EBUSY;
    }
    virtio_rdma_free_saved(s);
    s->saved = v = g_new0(VirtIORdmaSaved, 1);
    v->dev = s;
    save_limits(&v->limits, &s->limits);
    v->next_pdn = s->pds.next;
    v->next_cqn = s->cqs.next;
    v->next_mrn = s->mrs.next;
    v->next_qpn = s->qps.next;

    v->pds = g_new0(SavedPd, s->pds.count);
    for (uint32_t n = s->pds.first; n < s->pds.end; n++) {
        VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, n);

        if (pd) {
            v->pds[v->n_pds++].pdn = pd->pdn;
        }
    }
    v->cqs = g_new0(SavedCq, s->cqs.count);
    for (uint32_t n = s->cqs.first; n < s->cqs.end; n++) {
        VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, n);

        if (cq) {
            v->cqs[v->n_cqs++] = (SavedCq) {
                .cqn = cq->cqn,
                .cqe = cq->cqe,
                .arm = cq->arm,
                .error = cq->error,
            };
        }
    }
    v->mrs = g_new0(SavedMr, s->mrs.count);
    for (uint32_t n = s->mrs.first; n < s->mrs.end; n++) {
        VirtIORdmaMr *mr = virtio_rdma_table_get(&s->mrs, n);

        if (mr) {
            v->mrs[v->n_mrs++] = (SavedMr) {
                .mrn = mr->mrn,
                .pdn = mr->pd->pdn,
                .type = mr->type,
                .key = mr->key,
                .rkey = mr->rkey,
                .npages = mr->npages,
                .max_pages = mr->max_pages,
            };
        }
    }
    v->qps = g_new0(SavedQp, s->qps.count);
    for (uint32_t n = s->qps.first; n < s->qps.end; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp) {
            save_qp(&v->qps[v->n_qps++], qp);
        }
    }
    v->stale_vqs = g_new0(uint32_t, VIRTIO_QUEUE_MAX);
    for (uint32_t n = 0; n < VIRTIO_QUEUE_MAX; n++) {
        if (test_bit(n, s->stale_vqs)) {
            v->stale_vqs[v->n_stale_vqs++] = n;
        }
    }
    return 0;
}

static int device_post_save(void *opaque)
{
    virtio_rdma_free_saved(opaque);
    return 0;
}

/* Loading */

static int device_pre_load(void *opaque)
{
    VirtIORdma *s = opaque;

    virtio_rdma_free_saved(s);
    s->saved = g_new0(VirtIORdmaSaved, 1);
    s->saved->dev = s;
    return 0;
}

static bool valid_wq(void *opaque, int version_id)
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
static int counts_post_load(void *opaque, int version_id)
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

static int objects_post_load(void *opaque, int version_id)
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

static int device_post_load(void *opaque, int version_id)
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

/* The backend's state is a part of the device's. */

static int get_backend(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field)
{
    VirtIORdma *s = pv;

    return vmstate_load_state(f, s->bc->vmsd, s->backend,
                              s->bc->vmsd->version_id);
}

static int put_backend(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field, JSONWriter *vmdesc)
{
    VirtIORdma *s = pv;

    return vmstate_save_state(f, s->bc->vmsd, s->backend, vmdesc);
}

static const VMStateInfo vmstate_info_backend = {
    .name = "rdma backend",
    .get = get_backend,
    .put = put_backend,
};

static bool backend_migrates(void *opaque)
{
    return VIRTIO_RDMA(opaque)->bc->vmsd;
}

static const VMStateDescription vmstate_backend = {
    .name = "virtio-rdma-device/backend",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = backend_migrates,
    .fields = (const VMStateField[]) {
        {
            .name = "backend",
            .info = &vmstate_info_backend,
            .flags = VMS_SINGLE,
        },
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_limits = {
    .name = "virtio-rdma/limits",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(max_qp, SavedLimits),
        VMSTATE_UINT32(max_qp_wr, SavedLimits),
        VMSTATE_UINT32(max_send_sge, SavedLimits),
        VMSTATE_UINT32(max_recv_sge, SavedLimits),
        VMSTATE_UINT32(max_inline_data, SavedLimits),
        VMSTATE_UINT32(max_cq, SavedLimits),
        VMSTATE_UINT32(max_cqe, SavedLimits),
        VMSTATE_UINT32(max_mr, SavedLimits),
        VMSTATE_UINT32(max_pd, SavedLimits),
        VMSTATE_UINT64(max_mr_size, SavedLimits),
        VMSTATE_UINT32(max_rd_atomic, SavedLimits),
        VMSTATE_UINT32(gid_table_len, SavedLimits),
        VMSTATE_UINT8(atomic_cap, SavedLimits),
        VMSTATE_UINT64(device_cap_flags, SavedLimits),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_pd = {
    .name = "virtio-rdma/pd",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(pdn, SavedPd),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_cq = {
    .name = "virtio-rdma/cq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cqn, SavedCq),
        VMSTATE_UINT32(cqe, SavedCq),
        VMSTATE_UINT8(arm, SavedCq),
        VMSTATE_BOOL(error, SavedCq),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_mr = {
    .name = "virtio-rdma/mr",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(mrn, SavedMr),
        VMSTATE_UINT32(pdn, SavedMr),
        VMSTATE_UINT32(type, SavedMr),
        VMSTATE_UINT32(key, SavedMr),
        VMSTATE_UINT32(rkey, SavedMr),
        VMSTATE_UINT32(npages, SavedMr),
        VMSTATE_UINT32(max_pages, SavedMr),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_wq = {
    .name = "virtio-rdma/wq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(stale, SavedWq),
        VMSTATE_UINT32(count, SavedWq),
        VMSTATE_VALIDATE("no more WQEs than a queue holds", valid_wq),
        VMSTATE_VARRAY_UINT32_ALLOC(inflight, SavedWq, count, 1,
                                    vmstate_info_uint32, uint32_t),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_qp = {
    .name = "virtio-rdma/qp",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(qpn, SavedQp),
        VMSTATE_UINT32(pdn, SavedQp),
        VMSTATE_UINT32(type, SavedQp),
        VMSTATE_UINT32(send_cqn, SavedQp),
        VMSTATE_UINT32(recv_cqn, SavedQp),
        VMSTATE_BOOL(sq_sig_all, SavedQp),
        VMSTATE_BOOL(to_err, SavedQp),
        VMSTATE_UINT32(cap.max_send_wr, SavedQp),
        VMSTATE_UINT32(cap.max_recv_wr, SavedQp),
        VMSTATE_UINT32(cap.max_send_sge, SavedQp),
        VMSTATE_UINT32(cap.max_recv_sge, SavedQp),
        VMSTATE_UINT32(cap.max_inline_data, SavedQp),
        VMSTATE_STRUCT(sq, SavedQp, 1, vmstate_wq, SavedWq),
        VMSTATE_STRUCT(rq, SavedQp, 1, vmstate_wq, SavedWq),
        VMSTATE_END_OF_LIST()
    },
};

#define SAVED_LIST(field, num, vmsd_, type) {                           \
    .name = #field,                                                     \
    .version_id = 1,                                                    \
    .vmsd = &(vmsd_),                                                   \
    .num_offset = offsetof(VirtIORdmaSaved, num),                       \
    .size = sizeof(type),                                               \
    .flags = VMS_STRUCT | VMS_VARRAY_UINT32 | VMS_POINTER,              \
    .offset = offsetof(VirtIORdmaSaved, field),                         \
}

static const VMStateDescription vmstate_counts = {
    .name = "virtio-rdma/counts",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = counts_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(n_pds, VirtIORdmaSaved),
        VMSTATE_UINT32(n_cqs, VirtIORdmaSaved),
        VMSTATE_UINT32(n_mrs, VirtIORdmaSaved),
        VMSTATE_UINT32(n_qps, VirtIORdmaSaved),
        VMSTATE_UINT32(n_stale_vqs, VirtIORdmaSaved),
        VMSTATE_UINT32(next_pdn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_cqn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_mrn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_qpn, VirtIORdmaSaved),
        VMSTATE_STRUCT(limits, VirtIORdmaSaved, 1, vmstate_limits,
                       SavedLimits),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_objects = {
    .name = "virtio-rdma/objects",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = objects_post_load,
    .fields = (const VMStateField[]) {
        SAVED_LIST(pds, n_pds, vmstate_pd, SavedPd),
        SAVED_LIST(cqs, n_cqs, vmstate_cq, SavedCq),
        SAVED_LIST(mrs, n_mrs, vmstate_mr, SavedMr),
        SAVED_LIST(qps, n_qps, vmstate_qp, SavedQp),
        VMSTATE_VARRAY_UINT32(stale_vqs, VirtIORdmaSaved, n_stale_vqs, 1,
                              vmstate_info_uint32, uint32_t),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_virtio_rdma_device = {
    .name = "virtio-rdma-device",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = device_pre_save,
    .post_save = device_post_save,
    .pre_load = device_pre_load,
    .post_load = device_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_counts,
                               VirtIORdmaSaved),
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_objects,
                               VirtIORdmaSaved),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_backend,
        NULL
    },
};
