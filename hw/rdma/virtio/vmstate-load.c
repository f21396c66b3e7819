/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: make objects from records.
 *
 * The stream is not trusted, as the guest is not. Numbers, references and
 * limits are checked; pointers and counts of users are computed.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/error-report.h"
#include "vmstate.h"

int virtio_rdma_saved_pre_load(void *opaque)
{
    VirtIORdma *s = opaque;

    virtio_rdma_saved_free(s);
    s->saved = g_new0(VirtIORdmaSaved, 1);
    s->saved->dev = s;
    return 0;
}

bool virtio_rdma_saved_valid_wq(void *opaque, int version_id)
{
    const SavedWq *v = opaque;

    return v->count <= VIRTIO_RDMA_MAX_DEPTH &&
           v->stale <= VIRTIO_RDMA_MAX_DEPTH;
}

bool virtio_rdma_saved_valid_direct(void *opaque, int version_id)
{
    const SavedQp *v = opaque;
    uint32_t npages = v->direct.queues.pages.npages;

    return npages && npages <= VIRTIO_RDMA_MAX_DIRECT_PAGES;
}

bool virtio_rdma_saved_valid_direct_cq(void *opaque, int version_id)
{
    const SavedCq *v = opaque;

    return v->npages && v->npages <= VIRTIO_RDMA_MAX_DIRECT_CQ_PAGES;
}

bool virtio_rdma_saved_valid_direct_srq(void *opaque, int version_id)
{
    const SavedSrq *v = opaque;
    uint32_t npages = v->direct.queue.pages.npages;

    return npages && npages <= VIRTIO_RDMA_MAX_DIRECT_SRQ_PAGES;
}

/* Check the counts before memory is allocated for the records. */
int virtio_rdma_saved_counts_post_load(void *opaque, int version_id)
{
    VirtIORdmaSaved *v = opaque;
    const RdmaBackendLimits *l = &v->dev->hca.limits;

    const struct {
        const char *what;
        uint32_t count;
        uint32_t max;
    } counts[] = {
        { "PDs", v->n_pds, l->max_pd },
        { "CQs", v->n_cqs, l->max_cq },
        { "MRs", v->n_mrs, l->max_mr },
        { "windows", v->n_mws, l->max_mw },
        { "SRQs", v->n_srqs, l->max_srq },
        { "QPs", v->n_qps, l->max_qp },
        { "stale virtqueues", v->n_stale_vqs, VIRTIO_QUEUE_MAX },
        { "events", v->n_events, rdma_hca_events_max(&v->dev->hca) },
    };

    for (int i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i].count > counts[i].max) {
            error_report("virtio-rdma: %u %s in the migration stream, but "
                         "the device has at most %u", counts[i].count,
                         counts[i].what, counts[i].max);
            return -EINVAL;
        }
    }
    v->pds = g_new0(SavedPd, v->n_pds);
    v->cqs = g_new0(SavedCq, v->n_cqs);
    for (uint32_t i = 0; i < v->n_cqs; i++) {
        v->cqs[i].max_cqe = MAX(l->max_cqe, l->max_cqe_deep);
    }
    v->mrs = g_new0(SavedMr, v->n_mrs);
    v->mws = g_new0(SavedMw, v->n_mws);
    v->srqs = g_new0(SavedSrq, v->n_srqs);
    v->qps = g_new0(SavedQp, v->n_qps);
    v->stale_vqs = g_new0(uint32_t, v->n_stale_vqs);
    v->events = g_new0(SavedEvent, v->n_events);
    return 0;
}

/* A record for error messages: its kind, and the number of its object */
typedef struct Record {
    const char *kind;
    uint32_t id;
} Record;

/* If not @ok, report that the field of @r must be @must. Returns @ok. */
static bool check(const Record *r, bool ok, const char *field, uint64_t value,
                  const char *must)
{
    if (!ok) {
        error_report("virtio-rdma: %s %u in the migration stream has %s=%"
                     PRIu64 ", which must be %s", r->kind, r->id, field,
                     value, must);
    }
    return ok;
}

static bool check_max(const Record *r, const char *field, uint64_t value,
                      uint64_t max)
{
    if (value > max) {
        error_report("virtio-rdma: %s %u in the migration stream has %s=%"
                     PRIu64 ", but at most %" PRIu64 " is possible", r->kind,
                     r->id, field, value, max);
    }
    return value <= max;
}

/* Is the number of @r a free number of the table? */
static bool check_id(const Record *r, const RdmaHcaTable *t)
{
    return check(r, r->id >= t->first && r->id < t->end && !t->slot[r->id],
                 "number", r->id, "free and one that the device has");
}

static bool load_pd(VirtIORdma *s, const SavedPd *v)
{
    const Record r = { "PD", v->pdn };

    if (!check_id(&r, &s->hca.pds)) {
        return false;
    }
    rdma_hca_pd_add(&s->hca, v->pdn);
    return true;
}

/* Check before memory is allocated for the backlog. */
bool virtio_rdma_saved_valid_cq(void *opaque, int version_id)
{
    const SavedCq *v = opaque;
    const Record r = { "CQ", v->cqn };

    return check_max(&r, "cqe", v->cqe, v->max_cqe) &&
           check_max(&r, "n_backlog", v->n_backlog, v->cqe);
}

/* Whether pages are RAM is checked at each use, not here. */
static bool check_pages(const Record *r, const VirtIORdma *s,
                        const uint64_t *pages, uint32_t npages)
{
    if (!check_max(r, "pages of its queues", npages,
                   s->hca.max_mr_pages - s->hca.mr_pages)) {
        return false;
    }
    for (uint32_t i = 0; i < npages; i++) {
        if (!check(r, pages[i] % RDMA_PAGE_SIZE == 0, "address of a page",
                   pages[i], "aligned")) {
            return false;
        }
    }
    return true;
}

static bool load_direct_cq(VirtIORdma *s, const Record *r, VirtIORdmaCq *cq,
                           SavedCq *v)
{
    VirtIORdmaDirectCq direct = {
        .pages.npages = v->npages,
        .depth_shift = v->depth_shift,
    };

    if (!check(r, virtio_rdma_direct_cq_check(v->cqe, &direct) == 0,
               "pages", v->npages, "as many as it has") ||
        !check_max(r, "arm", v->arm, VIRTIO_RDMA_ARM_NONE) ||
        !check_max(r, "n_backlog", v->n_backlog, 0) ||
        !check_max(r, "CQEs that are not consumed",
                   v->produced - v->consumed, 1u << v->depth_shift) ||
        !check_pages(r, s, v->pages, v->npages)) {
        return false;
    }
    s->hca.mr_pages += v->npages;
    virtio_rdma_direct_cq_start(s, cq, &direct, g_steal_pointer(&v->pages));
    cq->produced = v->produced;
    cq->consumed = v->consumed;
    cq->fired = v->fired;
    return true;
}

/* Attach a CQ to its event queue. Call when all event queues are loaded. */
static bool load_eq(VirtIORdma *s, const SavedCq *v)
{
    const Record r = { "CQ", v->cqn };
    RdmaHcaCq *cq = rdma_hca_table_get(&s->hca.cqs, v->cqn);
    VirtIORdmaCq *eq = virtio_rdma_eq_get(s, v->eqn);

    if (!v->npages || v->eqn == VIRTIO_RDMA_EQN_NONE) {
        return check_max(&r, "event_waits", v->event_waits, 0);
    }
    if (!check(&r, eq, "eqn", v->eqn, "an event queue") ||
        !check(&r, !v->event_waits || !eq->core.error, "event_waits", 1,
               "0 of an event queue in error")) {
        return false;
    }
    virtio_rdma_eq_attach(virtio_rdma_cq(cq), eq);
    if (v->event_waits) {
        virtio_rdma_eq_add(virtio_rdma_cq(cq));
    }
    return true;
}

static bool load_cq(VirtIORdma *s, SavedCq *v)
{
    const Record r = { "CQ", v->cqn };
    VirtIORdmaCq *cq;

    if (!check_id(&r, &s->hca.cqs) ||
        !check(&r, v->cqe != 0, "cqe", v->cqe, "more") ||
        !check_max(&r, "arm", v->arm, VIRTIO_RDMA_ARM_NEXT) ||
        !check(&r, !v->error || !v->n_backlog, "n_backlog", v->n_backlog,
               "0 in error")) {
        return false;
    }
    if (!v->pages &&
        !check_max(&r, "cqn, with a virtqueue", v->cqn, s->max_vq_cq - 1)) {
        return false;
    }
    cq = virtio_rdma_cq_add(s, v->cqn, v->cqe);
    cq->arm = v->arm;
    cq->core.error = v->error;
    cq->core.is_eq = v->is_eq;
    if (v->pages) {
        return check(&r, !v->is_eq, "events", v->is_eq, "0 if direct") &&
               load_direct_cq(s, &r, cq, v);
    }
    virtio_rdma_cq_use_vq(s, cq);
    if (v->is_eq) {
        return check_max(&r, "n_backlog", v->n_backlog, 0);
    }
    for (uint32_t i = 0; i < v->n_backlog; i++) {
        virtio_rdma_cq_backlog_add(cq, &v->backlog[i]);
    }
    return true;
}

static bool load_mr(VirtIORdma *s, const SavedMr *v)
{
    const Record r = { "MR", v->mrn };
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, v->pdn);
    bool fast_reg = v->type == RDMA_MR_FAST_REG;
    RdmaHcaMr *mr;

    if (!check_id(&r, &s->hca.mrs) ||
        !check(&r, pd, "pdn", v->pdn, "a PD") ||
        !check_max(&r, "type", v->type, RDMA_MR_FAST_REG) ||
        !check(&r, v->key >> 8 == v->mrn, "key", v->key, "its number << 8") ||
        !check(&r, !v->rkey || v->rkey == v->key, "rkey", v->rkey,
               "0 or the key") ||
        !check_max(&r, "max_pages", v->max_pages,
                   fast_reg ? VIRTIO_RDMA_MAX_PAGE_LIST : 0) ||
        !check_max(&r, "pending", v->pending, v->max_pages) ||
        (fast_reg && !check_max(&r, "npages", v->npages, v->max_pages)) ||
        !check_max(&r, "npages", v->npages,
                   s->hca.max_mr_pages - s->hca.mr_pages) ||
        !check_max(&r, "pending", v->pending,
                   s->hca.max_mr_pages - s->hca.mr_pages - v->npages)) {
        return false;
    }
    mr = rdma_hca_mr_add(&s->hca, v->mrn, pd, v->type);
    mr->key = v->key;
    mr->rkey = v->rkey;
    mr->npages = v->npages;
    mr->pending = v->pending;
    mr->max_pages = v->max_pages;
    s->hca.mr_pages += v->npages + v->pending;
    return true;
}

static bool load_mw(VirtIORdma *s, const SavedMw *v)
{
    const Record r = { "window", v->mwn };
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, v->pdn);
    RdmaMwAttr attr = {
        .mwn = v->mwn,
        .pdn = v->pdn,
        .type = v->type,
        .rkey = v->rkey,
    };

    if (!check_id(&r, &s->hca.mrs) ||
        !check(&r, pd, "pdn", v->pdn, "a PD") ||
        !check(&r, v->rkey >> 8 == v->mwn, "rkey", v->rkey,
               "its number << 8") ||
        !check(&r, v->type == RDMA_MW_TYPE_1 || v->type == RDMA_MW_TYPE_2,
               "type", v->type, "1 or 2")) {
        return false;
    }
    rdma_hca_mw_add(&s->hca, &attr);
    return true;
}

static bool load_direct_srq(VirtIORdma *s, const Record *r, VirtIORdmaSrq *srq,
                            SavedDirectSrq *v)
{
    VirtIORdmaDirectSrq direct = v->queue;

    if (!check(r, virtio_rdma_direct_srq_check(s, &srq->core.attr,
                                               &direct) == 0,
               "pages of its queue", direct.pages.npages, "as many as it "
               "has") ||
        !check_pages(r, s, v->pages, direct.pages.npages)) {
        return false;
    }
    s->hca.mr_pages += direct.pages.npages;
    virtio_rdma_direct_srq_start(s, srq, &direct, g_steal_pointer(&v->pages));
    srq->wq.slots.taken = v->taken;
    srq->wq.slots.seen = v->taken;
    srq->core.wq.broken = v->broken;
    return true;
}

static bool load_srq(VirtIORdma *s, SavedSrq *v)
{
    const Record r = { "SRQ", v->srqn };
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, v->pdn);
    RdmaSrqAttr attr = {
        .srqn = v->srqn,
        .pdn = v->pdn,
        .max_wr = v->max_wr,
        .max_sge = v->max_sge,
    };
    VirtIORdmaSrq *srq;

    if (!check_id(&r, &s->hca.srqs) ||
        !check(&r, pd, "pdn", v->pdn, "a PD") ||
        !check(&r, v->max_wr != 0, "max_wr", v->max_wr, "more") ||
        !check_max(&r, "max_wr", v->max_wr, s->hca.limits.max_srq_wr) ||
        !check_max(&r, "max_sge", v->max_sge, s->hca.limits.max_srq_sge)) {
        return false;
    }
    if (!v->direct.pages &&
        !check(&r, v->srqn < s->max_vq_srq, "srqn", v->srqn, "one with a "
               "virtqueue")) {
        return false;
    }
    srq = virtio_rdma_srq_add(s, &attr);
    srq->core.error = v->error;
    if (v->direct.pages) {
        return load_direct_srq(s, &r, srq, &v->direct);
    }
    virtio_rdma_srq_use_vq(s, srq);
    return true;
}

static bool load_wq(VirtIORdma *s, const Record *r, RdmaHcaWq *wq,
                    const SavedWq *v)
{
    uint32_t depth = wq->ops->depth(wq);

    if (!check_max(r, "WQEs in flight", v->count, depth)) {
        return false;
    }
    for (uint32_t i = 0; i < v->count; i++) {
        const RdmaHcaInflight *inflight = &v->inflight[i];

        if (!check_max(r, "npages", inflight->npages,
                       wq->kind != RDMA_SQ ? 0 :
                       s->hca.max_mr_pages - s->hca.mr_pages)) {
            return false;
        }
        s->hca.mr_pages += inflight->npages;
        rdma_hca_wq_push(wq, inflight);
    }
    wq->stale = v->stale;
    return true;
}

static bool load_direct(VirtIORdma *s, const Record *r, VirtIORdmaQp *qp,
                        SavedDirect *v)
{
    VirtIORdmaDirectQp direct = v->queues;

    if (!check(r, virtio_rdma_direct_check(s, &qp->core.init, &direct) == 0,
               "pages of its queues", direct.pages.npages, "as many as they "
               "have") ||
        !check_pages(r, s, v->pages, direct.pages.npages)) {
        return false;
    }
    s->hca.mr_pages += direct.pages.npages;
    virtio_rdma_direct_start(s, qp, &direct, g_steal_pointer(&v->pages));
    qp->sq.slots.taken = v->sq_taken;
    qp->sq.slots.seen = v->sq_taken;
    qp->rq.slots.taken = v->rq_taken;
    qp->rq.slots.seen = v->rq_taken;
    qp->core.sq.broken = qp->core.rq.broken = v->broken;
    return true;
}

static bool check_cap(const VirtIORdma *s, const Record *r,
                      const RdmaQpCap *cap, bool direct)
{
    const RdmaBackendLimits *l = &s->hca.limits;
    uint32_t max_wr = direct ? l->max_qp_wr_direct : l->max_qp_wr;

    return check_max(r, "max_send_wr", cap->max_send_wr, max_wr) &&
           check_max(r, "max_recv_wr", cap->max_recv_wr, max_wr) &&
           check_max(r, "max_send_sge", cap->max_send_sge,
                     l->max_send_sge) &&
           check_max(r, "max_recv_sge", cap->max_recv_sge,
                     l->max_recv_sge) &&
           check_max(r, "max_inline_data", cap->max_inline_data,
                     l->max_inline_data);
}

/* With an SRQ a QP has no receive queue. */
static bool check_srq(const Record *r, const SavedQp *v,
                      const RdmaHcaSrq *srq)
{
    if (!v->has_srq) {
        return check_max(r, "srqn", v->srqn, 0);
    }
    return check(r, srq, "srqn", v->srqn, "an SRQ") &&
           check(r, v->type != RDMA_QPT_GSI, "has_srq", 1, "0 of the GSI") &&
           check_max(r, "max_recv_wr", v->cap.max_recv_wr, 0) &&
           check_max(r, "max_recv_sge", v->cap.max_recv_sge, 0) &&
           check_max(r, "rq.count", v->rq.count, 0) &&
           check_max(r, "rq.stale", v->rq.stale, 0);
}

static bool load_qp(VirtIORdma *s, SavedQp *v)
{
    const Record r = { "QP", v->qpn };
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, v->pdn);
    RdmaHcaCq *send_cq = rdma_hca_cq_get(&s->hca, v->send_cqn);
    RdmaHcaCq *recv_cq = rdma_hca_cq_get(&s->hca, v->recv_cqn);
    RdmaHcaSrq *srq = v->has_srq
                         ? rdma_hca_table_get(&s->hca.srqs, v->srqn) : NULL;
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

    if (!check_id(&r, &s->hca.qps) ||
        !check(&r, pd, "pdn", v->pdn, "a PD") ||
        !check(&r, send_cq, "send_cqn", v->send_cqn, "a CQ") ||
        !check(&r, recv_cq, "recv_cqn", v->recv_cqn, "a CQ") ||
        !check(&r, v->type >= RDMA_QPT_GSI && v->type <= RDMA_QPT_UD &&
               (v->type == RDMA_QPT_GSI) == (v->qpn == RDMA_QPN_GSI),
               "type", v->type, "one of its number") ||
        !check_cap(s, &r, &v->cap, v->direct.pages) || !check_srq(&r, v, srq) ||
        !check(&r, !v->block_mcast_loopback || v->type == RDMA_QPT_UD,
               "block_mcast_loopback", v->block_mcast_loopback,
               "0 except for UD")) {
        return false;
    }
    if (!v->direct.pages &&
        !check_max(&r, "qpn, with virtqueues", v->qpn, s->max_vq_qp - 1)) {
        return false;
    }
    qp = virtio_rdma_qp_add(s, &init);
    if (!v->direct.pages) {
        virtio_rdma_qp_use_vqs(s, qp);
    } else if (!load_direct(s, &r, qp, &v->direct)) {
        return false;
    }
    return load_wq(s, &r, &qp->core.sq, &v->sq) &&
           (srq || load_wq(s, &r, &qp->core.rq, &v->rq));
}

static bool load_event(VirtIORdma *s, const SavedEvent *v)
{
    const RdmaEvent event = { .type = v->type, .id = v->id };

    if (!rdma_hca_event_load(&s->hca, &event)) {
        error_report("virtio-rdma: an event in the migration stream has type="
                     "%u, id=%u, which must be of an object, and come once",
                     v->type, v->id);
        return false;
    }
    return true;
}

static bool load_next(RdmaHcaTable *t, const char *field, uint32_t next)
{
    bool ok = (next >= t->first && next < t->end) ||
              (t->first == t->end && next == t->first);

    if (!ok) {
        error_report("virtio-rdma: %s=%u in the migration stream, but the "
                     "device has numbers from %u up to %u", field, next,
                     t->first, t->end);
    }
    t->next = next;
    return ok;
}

bool virtio_rdma_saved_valid_shadows(void *opaque, int version_id)
{
    const VirtIORdmaSaved *v = opaque;

    return v->n_shadows <= v->dev->doorbells;
}

int virtio_rdma_saved_shadows_post_load(void *opaque, int version_id)
{
    const VirtIORdmaSaved *v = opaque;
    VirtIORdma *s = v->dev;

    for (uint32_t i = 0; i < v->n_shadows; i++) {
        uint32_t page = v->shadows[i].doorbell;
        uint64_t addr = v->shadows[i].addr;
        const Record r = { "shadow of doorbells", page };

        if (!check(&r, page < s->doorbells && !s->shadows[page].is_on,
                   "doorbell", page, "a page without another shadow") ||
            !check(&r, addr % RDMA_PAGE_SIZE == 0, "addr", addr,
                   "that of a page")) {
            return -EINVAL;
        }
        virtio_rdma_shadow_load(s, page, addr);
    }
    return 0;
}

#define LOAD_ALL(s, v, what, n, load)                                   \
    for (uint32_t i_ = 0; i_ < (v)->n; i_++) {                          \
        if (!load(s, &(v)->what[i_])) {                                 \
            return -EINVAL;                                             \
        }                                                               \
    }

static int load_objects(VirtIORdma *s, const VirtIORdmaSaved *v)
{
    if (!virtio_rdma_saved_suits_iothread(v)) {
        return -EINVAL;
    }
    LOAD_ALL(s, v, pds, n_pds, load_pd);
    LOAD_ALL(s, v, cqs, n_cqs, load_cq);
    LOAD_ALL(s, v, cqs, n_cqs, load_eq);
    LOAD_ALL(s, v, mrs, n_mrs, load_mr);
    LOAD_ALL(s, v, mws, n_mws, load_mw);
    LOAD_ALL(s, v, srqs, n_srqs, load_srq);
    LOAD_ALL(s, v, qps, n_qps, load_qp);
    LOAD_ALL(s, v, events, n_events, load_event);
    s->hca.events.port_active = v->port_active;
    virtio_rdma_events_load(s);
    for (uint32_t i = 0; i < v->n_stale_vqs; i++) {
        if (v->stale_vqs[i] >= VIRTIO_QUEUE_MAX) {
            error_report("virtio-rdma: stale virtqueue %u in the migration "
                         "stream, but the last one is %u", v->stale_vqs[i],
                         VIRTIO_QUEUE_MAX - 1);
            return -EINVAL;
        }
        set_bit(v->stale_vqs[i], s->stale_vqs);
    }
    if (!load_next(&s->hca.pds, "next_pdn", v->next_pdn) ||
        !load_next(&s->hca.cqs, "next_cqn", v->next_cqn) ||
        !load_next(&s->hca.mrs, "next_mrn", v->next_mrn) ||
        !load_next(&s->hca.srqs, "next_srqn", v->next_srqn) ||
        !load_next(&s->hca.qps, "next_qpn", v->next_qpn)) {
        return -EINVAL;
    }
    return 0;
}

/* Enter the device: an iothread may work in the backend. */
void virtio_rdma_forget_loaded(VirtIORdma *s)
{
    rdma_hca_enter(&s->hca);
    rdma_hca_reset(&s->hca);
    virtio_rdma_objects_reset(s);
    rdma_hca_leave(&s->hca);
}

int virtio_rdma_saved_objects_post_load(void *opaque, int version_id)
{
    const VirtIORdmaSaved *v = opaque;
    int ret;

    virtio_rdma_objects_reset(v->dev);
    ret = load_objects(v->dev, v);
    if (ret) {
        virtio_rdma_forget_loaded(v->dev);
    }
    rdma_hca_load_begin(&v->dev->hca);
    return ret;
}

static uint32_t count_direct_cqs(VirtIORdma *s)
{
    const RdmaHcaCq *cq;
    uint32_t count = 0;

    RDMA_HCA_FOREACH(&s->hca.cqs, n, cq) {
        count += cq->ops->is_direct || cq->is_eq;
    }
    return count;
}

static uint32_t count_direct(VirtIORdma *s)
{
    const RdmaHcaQp *qp;
    uint32_t count = 0;

    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        count += qp->sq.ops->is_direct;
    }
    return count;
}

static uint32_t count_direct_srqs(VirtIORdma *s)
{
    const RdmaHcaSrq *srq;
    uint32_t count = 0;

    RDMA_HCA_FOREACH(&s->hca.srqs, n, srq) {
        count += srq->wq.ops->is_direct;
    }
    return count;
}

/* Check that the driver accepted the features that its objects need. */
static bool check_features(VirtIORdma *s)
{
    const struct {
        const char *what;
        uint32_t count;
        unsigned feature;
    } objects[] = {
        { "events", rdma_hca_events_count(&s->hca), VIRTIO_RDMA_F_VERSION_1 },
        { "shared receive queues", s->hca.srqs.count,
          VIRTIO_RDMA_F_VERSION_1 },
        { "memory windows", s->hca.n_mws, VIRTIO_RDMA_F_VERSION_1 },
        { "direct queue pairs", count_direct(s), VIRTIO_RDMA_F_DIRECT },
        { "direct completion queues or event queues", count_direct_cqs(s),
          VIRTIO_RDMA_F_DIRECT },
        { "direct shared receive queues", count_direct_srqs(s),
          VIRTIO_RDMA_F_DIRECT },
        { "shadows of doorbells", !QTAILQ_EMPTY(&s->awake_shadows),
          VIRTIO_RDMA_F_DIRECT },
    };
    RdmaHcaCq *cq;

    for (int i = 0; i < ARRAY_SIZE(objects); i++) {
        if (objects[i].count && !virtio_rdma_has(s, objects[i].feature)) {
            error_report("virtio-rdma: %s in the migration stream, but the "
                         "driver did not accept %s", objects[i].what,
                         virtio_rdma_feature_name(objects[i].feature));
            return false;
        }
    }
    RDMA_HCA_FOREACH(&s->hca.cqs, n, cq) {
        const Record r = { "CQ", n };

        const VirtIORdmaCq *form = virtio_rdma_cq(cq);

        if (!check_max(&r, "cqe", cq->cqe,
                       virtio_rdma_cq_ops(form)->max_cqe(s)) ||
            !check_max(&r, "n_backlog", form->n_backlog,
                       virtio_rdma_is_v1(s) ? cq->cqe : 0)) {
            return false;
        }
    }
    return true;
}

/* Check WQEs in flight against their ring, which is loaded after objects. */
static bool check_ring(VirtIORdma *s, const Record *r, const RdmaHcaWq *wq)
{
    bool ring = wq->ops->ring_size;
    uint32_t size = ring ? wq->ops->ring_size(&s->hca, wq) : 0;

    for (uint32_t i = 0; i < wq->count; i++) {
        const RdmaHcaInflight *inflight = rdma_hca_wq_inflight(wq, i);

        if (!check(r, inflight->index < (ring ? size : 1), "index",
                   inflight->index, "less than its ring") ||
            !check(r, !ring || inflight->ndescs, "ndescs", 0, "more")) {
            return false;
        }
    }
    return check_max(r, "ndescs of all WQEs", wq->ndescs, size);
}

static bool check_rings(VirtIORdma *s)
{
    const RdmaHcaQp *qp;

    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        const Record r = { "QP", n };

        if (!check_ring(s, &r, &qp->sq) ||
            (!qp->srq && !check_ring(s, &r, &qp->rq))) {
            return false;
        }
    }
    return true;
}

int virtio_rdma_post_load(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    if (!check_features(s) || !check_rings(s)) {
        virtio_rdma_forget_loaded(s);
        return -EINVAL;
    }
    s->restore_order = true;
    s->ctrl_seen = virtio_queue_get_last_avail_idx(vdev, VIRTIO_RDMA_CTRL_VQ);
    /* The port of the destination may differ from that of the source. */
    virtio_rdma_config_update(s);
    rdma_hca_port_check(&s->hca);
    return 0;
}

int virtio_rdma_saved_post_load(void *opaque, int version_id)
{
    VirtIORdma *s = opaque;
    bool complete = rdma_hca_load_end(&s->hca);

    rdma_hca_counters_set(&s->hca, s->saved->counters);
    virtio_rdma_saved_free(s);
    if (!complete) {
        virtio_rdma_forget_loaded(s);
        return -EINVAL;
    }
    return 0;
}
