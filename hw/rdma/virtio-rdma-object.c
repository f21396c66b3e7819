/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of a virtio-rdma device: protection domains, completion queues and
 * queue pairs, the tables that hold them, and who uses whom.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

#define QP_ATTR_MASK (RDMA_QP_STATE | RDMA_QP_CUR_STATE | \
                      RDMA_QP_EN_SQD_ASYNC_NOTIFY | RDMA_QP_ACCESS_FLAGS | \
                      RDMA_QP_PKEY_INDEX | RDMA_QP_PORT | RDMA_QP_QKEY | \
                      RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_TIMEOUT | \
                      RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY | \
                      RDMA_QP_RQ_PSN | RDMA_QP_MAX_QP_RD_ATOMIC | \
                      RDMA_QP_MIN_RNR_TIMER | RDMA_QP_SQ_PSN | \
                      RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_PATH_MIG_STATE | \
                      RDMA_QP_DEST_QPN | RDMA_QP_RATE_LIMIT)
/* Known, and not possible: resizing and alternate paths. */
#define QP_ATTR_UNSUPPORTED (RDMA_QP_CAP | RDMA_QP_ALT_PATH)

/* The backend's method, or success if it has no use for it. */
#define BACKEND_OPT(s, method, ...) \
    ((s)->bc->method ? (s)->bc->method((s)->backend, __VA_ARGS__) : 0)

void virtio_rdma_table_init(VirtIORdmaTable *t, uint32_t first, uint32_t end)
{
    t->first = first;
    t->end = MAX(first, end);
    t->next = first;
    t->count = 0;
    t->slot = g_new0(void *, t->end);
    t->used = bitmap_new(t->end);
}

void virtio_rdma_table_free(VirtIORdmaTable *t)
{
    g_free(t->slot);
    g_free(t->used);
    memset(t, 0, sizeof(*t));
}

/*
 * Numbers go round, so that one which was freed does not come back at once:
 * what still names the old object fails instead of hitting the new one.
 */
bool virtio_rdma_table_find(VirtIORdmaTable *t, uint32_t *id)
{
    unsigned long n = find_next_zero_bit(t->used, t->end, t->next);

    if (n >= t->end) {
        n = find_next_zero_bit(t->used, t->end, t->first);
    }
    if (n >= t->end) {
        return false;
    }
    *id = n;
    return true;
}

void virtio_rdma_table_set(VirtIORdmaTable *t, uint32_t id, void *obj)
{
    t->slot[id] = obj;
    set_bit(id, t->used);
    t->count++;
    t->next = id + 1 < t->end ? id + 1 : t->first;
}

void virtio_rdma_table_clear(VirtIORdmaTable *t, uint32_t id)
{
    t->slot[id] = NULL;
    clear_bit(id, t->used);
    t->count--;
}

static uint32_t sq_vq(VirtIORdma *s, uint32_t qpn)
{
    return VIRTIO_RDMA_SQ_VQ(s->limits.max_cq, qpn);
}

static uint32_t rq_vq(VirtIORdma *s, uint32_t qpn)
{
    return VIRTIO_RDMA_RQ_VQ(s->limits.max_cq, qpn);
}

/*
 * Can virtqueue @n serve a new object that needs @size entries? -ENOMEM if
 * it is not set up, or was not reset after its last owner; -EINVAL if the
 * driver made its ring too small.
 */
static int check_vq(VirtIORdma *s, uint32_t n, uint32_t size)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    if (!virtio_queue_ready(virtio_get_queue(vdev, n)) ||
        (test_bit(n, s->stale_vqs) &&
         virtio_vdev_has_feature(vdev, VIRTIO_F_RING_RESET))) {
        return -ENOMEM;
    }
    return virtio_queue_get_num(vdev, n) < size ? -EINVAL : 0;
}

/*
 * Find a number in @first..@end-1 that is free and whose virtqueues can serve
 * an object, which @check tells. Fails as the best of the free ones does.
 */
static int find_with_vqs(VirtIORdma *s, VirtIORdmaTable *t, uint32_t first,
                         uint32_t end,
                         int (*check)(VirtIORdma *s, uint32_t id,
                                      const VirtIORdmaReq *req),
                         const VirtIORdmaReq *req, uint32_t *id)
{
    uint32_t next = t->next >= first && t->next < end ? t->next : first;
    bool full = true;
    int ret = -ENOMEM;

    for (uint32_t i = first; i < end; i++) {
        uint32_t n = next++;

        if (next == end) {
            next = first;
        }
        if (!virtio_rdma_table_get(t, n)) {
            int r = check(s, n, req);

            if (r == 0) {
                *id = n;
                return 0;
            }
            if (r == -EINVAL) {
                ret = r;
            }
            full = false;
        }
    }
    if (ret == -EINVAL) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: the rings of all free "
                      "virtqueues are too small for the object\n");
    } else if (!full) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: no free virtqueue is set "
                      "up, and was reset after its last use\n");
    }
    return ret;
}

/* Leave virtqueue @n behind: it must be reset before its next use. */
static void abandon_vq(VirtIORdma *s, uint32_t n)
{
    if (virtio_queue_ready(virtio_get_queue(VIRTIO_DEVICE(s), n))) {
        set_bit(n, s->stale_vqs);
    }
}

/* Protection domains */

VirtIORdmaPd *virtio_rdma_add_pd(VirtIORdma *s, uint32_t pdn)
{
    VirtIORdmaPd *pd = g_new0(VirtIORdmaPd, 1);

    pd->pdn = pdn;
    virtio_rdma_table_set(&s->pds, pdn, pd);
    return pd;
}

static void remove_pd(VirtIORdma *s, VirtIORdmaPd *pd)
{
    virtio_rdma_table_clear(&s->pds, pd->pdn);
    g_free(pd);
}

int virtio_rdma_create_pd(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    uint32_t pdn;

    if (!virtio_rdma_table_find(&s->pds, &pdn)) {
        return -ENOMEM;
    }
    c->obj = virtio_rdma_add_pd(s, pdn);
    return BACKEND_OPT(s, create_pd, pdn);
}

void virtio_rdma_create_pd_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaPd *pd = c->obj;

    if (!ret) {
        c->rsp.create.id = pd->pdn;
    } else if (pd) {
        remove_pd(s, pd);
    }
}

int virtio_rdma_destroy_pd(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, c->req.destroy.id);

    if (!pd) {
        return -ENOENT;
    }
    if (pd->users) {
        return -EBUSY;
    }
    c->obj = pd;
    return BACKEND_OPT(s, destroy_pd, pd->pdn);
}

void virtio_rdma_destroy_pd_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    if (!ret) {
        remove_pd(s, c->obj);
    }
}

/* Completion queues */

VirtIORdmaCq *virtio_rdma_add_cq(VirtIORdma *s, uint32_t cqn, uint32_t cqe)
{
    VirtIORdmaCq *cq = g_new0(VirtIORdmaCq, 1);

    cq->cqn = cqn;
    cq->cqe = cqe;
    cq->arm = VIRTIO_RDMA_ARM_NONE;
    cq->vq = virtio_get_queue(VIRTIO_DEVICE(s), VIRTIO_RDMA_CQ_VQ(cqn));
    cq->seen = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s),
                                               VIRTIO_RDMA_CQ_VQ(cqn));
    virtio_rdma_table_set(&s->cqs, cqn, cq);
    return cq;
}

static void remove_cq(VirtIORdma *s, VirtIORdmaCq *cq)
{
    virtio_rdma_table_clear(&s->cqs, cq->cqn);
    g_free(cq);
}

static int check_cqn(VirtIORdma *s, uint32_t cqn, const VirtIORdmaReq *req)
{
    return check_vq(s, VIRTIO_RDMA_CQ_VQ(cqn), req->create_cq.cqe);
}

int virtio_rdma_create_cq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    uint32_t cqe = c->req.create_cq.cqe;
    uint32_t cqn;
    int ret;

    if (cqe == 0 || cqe > s->limits.max_cqe) {
        return -EINVAL;
    }
    ret = find_with_vqs(s, &s->cqs, s->cqs.first, s->cqs.end, check_cqn,
                        &c->req, &cqn);
    if (ret) {
        return ret;
    }
    clear_bit(VIRTIO_RDMA_CQ_VQ(cqn), s->stale_vqs);
    c->obj = virtio_rdma_add_cq(s, cqn, cqe);
    return BACKEND_OPT(s, create_cq, cqn, cqe);
}

void virtio_rdma_create_cq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaCq *cq = c->obj;

    if (!ret) {
        trace_virtio_rdma_create_cq(s, cq->cqn, cq->cqe);
        c->rsp.create.id = cq->cqn;
    } else if (cq) {
        remove_cq(s, cq);
    }
}

int virtio_rdma_destroy_cq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, c->req.destroy.id);

    if (!cq) {
        return -ENOENT;
    }
    if (cq->users) {
        return -EBUSY;
    }
    c->obj = cq;
    return BACKEND_OPT(s, destroy_cq, cq->cqn);
}

void virtio_rdma_destroy_cq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaCq *cq = c->obj;

    if (!ret) {
        trace_virtio_rdma_destroy_cq(s, cq->cqn);
        abandon_vq(s, VIRTIO_RDMA_CQ_VQ(cq->cqn));
        remove_cq(s, cq);
    }
}

int virtio_rdma_req_notify_cq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, c->req.notify.cqn);
    uint32_t flags = c->req.notify.flags;

    if (!cq) {
        return -ENOENT;
    }
    if (!flags || (flags & ~(VIRTIO_RDMA_NOTIFY_SOLICITED |
                             VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION))) {
        return -EINVAL;
    }
    cq->arm = MAX(cq->arm, flags & VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
                           ? VIRTIO_RDMA_ARM_NEXT
                           : VIRTIO_RDMA_ARM_SOLICITED);
    trace_virtio_rdma_arm_cq(s, cq->cqn, cq->arm);
    return 0;
}

/* Queue pairs */

static void init_wq(VirtIORdma *s, VirtIORdmaWq *wq, RdmaBackendQueue kind,
                    uint32_t vq, uint32_t max_sge, uint32_t max_inline)
{
    wq->vq = virtio_get_queue(VIRTIO_DEVICE(s), vq);
    wq->seen = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s), vq);
    wq->kind = kind;
    wq->max_sge = max_sge;
    wq->max_inline = max_inline;
}

VirtIORdmaQp *virtio_rdma_add_qp(VirtIORdma *s, const RdmaQpInitAttr *init,
                                 VirtIORdmaPd *pd, VirtIORdmaCq *send_cq,
                                 VirtIORdmaCq *recv_cq)
{
    VirtIORdmaQp *qp = g_new0(VirtIORdmaQp, 1);

    qp->init = *init;
    qp->pd = pd;
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    pd->users++;
    send_cq->users++;
    recv_cq->users++;
    init_wq(s, &qp->sq, RDMA_BACKEND_SQ, sq_vq(s, init->qpn),
            init->cap.max_send_sge, init->cap.max_inline_data);
    init_wq(s, &qp->rq, RDMA_BACKEND_RQ, rq_vq(s, init->qpn),
            init->cap.max_recv_sge, 0);
    virtio_rdma_table_set(&s->qps, init->qpn, qp);
    return qp;
}

static void remove_qp(VirtIORdma *s, VirtIORdmaQp *qp)
{
    virtio_rdma_table_clear(&s->qps, qp->init.qpn);
    if (qp->queued) {
        QTAILQ_REMOVE(&s->rerun, qp, next);
    }
    qp->pd->users--;
    qp->send_cq->users--;
    qp->recv_cq->users--;
    g_free(qp);
}

static int check_qpn(VirtIORdma *s, uint32_t qpn, const VirtIORdmaReq *req)
{
    const RdmaQpCap *cap = &req->create_qp.cap;
    int sq = check_vq(s, sq_vq(s, qpn), cap->max_send_wr);
    int rq = check_vq(s, rq_vq(s, qpn), cap->max_recv_wr);

    return sq == -ENOMEM ? sq : rq ? rq : sq;
}

static int find_qpn(VirtIORdma *s, const VirtIORdmaReq *req, uint32_t *qpn)
{
    if (req->create_qp.qp_type != RDMA_QPT_GSI) {
        return find_with_vqs(s, &s->qps, RDMA_QPN_GSI + 1, s->qps.end,
                             check_qpn, req, qpn);
    }
    *qpn = RDMA_QPN_GSI;
    if (RDMA_QPN_GSI >= s->qps.end) {
        return -ENOMEM;
    }
    if (virtio_rdma_table_get(&s->qps, RDMA_QPN_GSI)) {
        return -EBUSY;
    }
    return check_qpn(s, RDMA_QPN_GSI, req);
}

int virtio_rdma_create_qp(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, c->req.create_qp.pdn);
    VirtIORdmaCq *send_cq = virtio_rdma_table_get(&s->cqs,
                                                  c->req.create_qp.send_cqn);
    VirtIORdmaCq *recv_cq = virtio_rdma_table_get(&s->cqs,
                                                  c->req.create_qp.recv_cqn);
    const RdmaQpCap *cap = &c->req.create_qp.cap;
    const RdmaBackendLimits *l = &s->limits;
    RdmaQpInitAttr init = {
        .pdn = c->req.create_qp.pdn,
        .qp_type = c->req.create_qp.qp_type,
        .sq_sig_all = c->req.create_qp.sq_sig_type ==
                      VIRTIO_RDMA_SIGNAL_ALL_WR,
        .send_cqn = c->req.create_qp.send_cqn,
        .recv_cqn = c->req.create_qp.recv_cqn,
        .cap = *cap,
    };
    int ret;

    switch (c->req.create_qp.qp_type) {
    case RDMA_QPT_GSI:
    case RDMA_QPT_RC:
    case RDMA_QPT_UC:
    case RDMA_QPT_UD:
        break;
    default:
        return -ENOTSUP;
    }
    if (!pd || !send_cq || !recv_cq) {
        return -ENOENT;
    }
    if (c->req.create_qp.sq_sig_type > VIRTIO_RDMA_SIGNAL_REQ_WR ||
        cap->max_send_wr > l->max_qp_wr || cap->max_recv_wr > l->max_qp_wr ||
        cap->max_send_sge > l->max_send_sge ||
        cap->max_recv_sge > l->max_recv_sge ||
        cap->max_inline_data > l->max_inline_data) {
        return -EINVAL;
    }
    ret = find_qpn(s, &c->req, &init.qpn);
    if (ret) {
        return ret;
    }
    clear_bit(sq_vq(s, init.qpn), s->stale_vqs);
    clear_bit(rq_vq(s, init.qpn), s->stale_vqs);
    c->obj = virtio_rdma_add_qp(s, &init, pd, send_cq, recv_cq);
    return s->bc->create_qp(s->backend, &init);
}

void virtio_rdma_create_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaQp *qp = c->obj;

    if (!ret) {
        trace_virtio_rdma_create_qp(s, qp->init.qpn, qp->init.qp_type,
                                    qp->init.pdn, qp->init.send_cqn,
                                    qp->init.recv_cqn);
        c->rsp.create.id = qp->init.qpn;
        virtio_rdma_notify_qp(s, qp->init.qpn, true);
        virtio_rdma_schedule_qp(s, qp);
    } else if (qp) {
        remove_qp(s, qp);
    }
}

int virtio_rdma_modify_qp(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, c->req.qp.qpn);
    uint32_t mask = c->req.qp.attr_mask;
    const RdmaQpAttr *attr = &c->req.qp.attr;

    if (!qp) {
        return -ENOENT;
    }
    if (mask & QP_ATTR_UNSUPPORTED) {
        return -ENOTSUP;
    }
    if ((mask & ~QP_ATTR_MASK) ||
        ((mask & RDMA_QP_STATE) && attr->qp_state > RDMA_QPS_ERR)) {
        return -EINVAL;
    }
    c->obj = qp;
    return s->bc->modify_qp(s->backend, qp->init.qpn, mask, attr);
}

void virtio_rdma_modify_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaQp *qp = c->obj;
    uint32_t mask = c->req.qp.attr_mask;

    if (ret) {
        return;
    }
    trace_virtio_rdma_modify_qp(s, qp->init.qpn, mask,
                                mask & RDMA_QP_STATE ? c->req.qp.attr.qp_state
                                                     : -1);
    if ((mask & RDMA_QP_STATE) && c->req.qp.attr.qp_state == RDMA_QPS_RESET) {
        virtio_rdma_wq_drain(s, &qp->sq);
        virtio_rdma_wq_drain(s, &qp->rq);
    }
    virtio_rdma_schedule_qp(s, qp);
}

int virtio_rdma_query_qp(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, c->req.qp.qpn);

    if (!qp) {
        return -ENOENT;
    }
    c->obj = qp;
    return s->bc->query_qp(s->backend, qp->init.qpn, &c->rsp.query_qp.attr);
}

void virtio_rdma_query_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaQp *qp = c->obj;

    if (!ret) {
        c->rsp.query_qp.attr.cap = qp->init.cap;
    }
}

int virtio_rdma_destroy_qp(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, c->req.destroy.id);

    if (!qp) {
        return -ENOENT;
    }
    c->obj = qp;
    return s->bc->destroy_qp(s->backend, qp->init.qpn);
}

void virtio_rdma_destroy_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaQp *qp = c->obj;
    uint32_t qpn;

    if (ret) {
        return;
    }
    qpn = qp->init.qpn;
    trace_virtio_rdma_destroy_qp(s, qpn);
    virtio_rdma_wq_drain(s, &qp->sq);
    virtio_rdma_wq_drain(s, &qp->rq);
    abandon_vq(s, sq_vq(s, qpn));
    abandon_vq(s, rq_vq(s, qpn));
    remove_qp(s, qp);
    virtio_rdma_notify_qp(s, qpn, false);
}

void virtio_rdma_fail_qp(VirtIORdma *s, VirtIORdmaQp *qp)
{
    const RdmaQpAttr attr = { .qp_state = RDMA_QPS_ERR };
    int ret;

    if (s->ctrl->pending) {
        qp->to_err = true;
        virtio_rdma_schedule_qp(s, qp);
        return;
    }
    qp->to_err = false;
    ret = s->bc->modify_qp(s->backend, qp->init.qpn, RDMA_QP_STATE, &attr);
    trace_virtio_rdma_fail_qp(s, qp->init.qpn, ret);
    if (ret == -EINPROGRESS) {
        s->ctrl->pending = true;
    }
    virtio_rdma_schedule_qp(s, qp);
}

void virtio_rdma_fail_cq(VirtIORdma *s, VirtIORdmaCq *cq)
{
    cq->error = true;
    for (uint32_t n = s->qps.first; n < s->qps.end && cq->users; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp && (qp->send_cq == cq || qp->recv_cq == cq)) {
            virtio_rdma_fail_qp(s, qp);
        }
    }
}

void virtio_rdma_objects_init(VirtIORdma *s)
{
    QTAILQ_INIT(&s->rerun);
    virtio_rdma_table_init(&s->pds, 1, s->limits.max_pd + 1);
    virtio_rdma_table_init(&s->cqs, 0, s->limits.max_cq);
    virtio_rdma_table_init(&s->mrs, 1, s->limits.max_mr + 1);
    virtio_rdma_table_init(&s->qps, RDMA_QPN_GSI, s->limits.max_qp);
}

void virtio_rdma_objects_reset(VirtIORdma *s)
{
    for (uint32_t n = s->qps.first; n < s->qps.end && s->qps.count; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp) {
            remove_qp(s, qp);
            virtio_rdma_notify_qp(s, n, false);
        }
    }
    for (uint32_t n = s->mrs.first; n < s->mrs.end && s->mrs.count; n++) {
        VirtIORdmaMr *mr = virtio_rdma_table_get(&s->mrs, n);

        if (mr) {
            virtio_rdma_remove_mr(s, mr);
        }
    }
    for (uint32_t n = s->cqs.first; n < s->cqs.end && s->cqs.count; n++) {
        VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, n);

        if (cq) {
            remove_cq(s, cq);
        }
    }
    for (uint32_t n = s->pds.first; n < s->pds.end && s->pds.count; n++) {
        VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, n);

        if (pd) {
            remove_pd(s, pd);
        }
    }
    s->pds.next = s->pds.first;
    s->cqs.next = s->cqs.first;
    s->mrs.next = s->mrs.first;
    s->qps.next = s->qps.first;
    bitmap_zero(s->stale_vqs, VIRTIO_QUEUE_MAX);
}

void virtio_rdma_objects_free(VirtIORdma *s)
{
    virtio_rdma_objects_reset(s);
    virtio_rdma_table_free(&s->qps);
    virtio_rdma_table_free(&s->mrs);
    virtio_rdma_table_free(&s->cqs);
    virtio_rdma_table_free(&s->pds);
}
