/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: a QP of the guest is one of the host's.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/lockable.h"
#include "int.h"
#include "../trace.h"

/* Attributes, states and access rights have the numbers of libibverbs. */
QEMU_BUILD_BUG_ON((int)RDMA_QP_STATE != (int)IBV_QP_STATE);
QEMU_BUILD_BUG_ON((int)RDMA_QP_DEST_QPN != (int)IBV_QP_DEST_QPN);
QEMU_BUILD_BUG_ON((int)RDMA_QP_RATE_LIMIT != (int)IBV_QP_RATE_LIMIT);
QEMU_BUILD_BUG_ON((int)RDMA_QPS_ERR != (int)IBV_QPS_ERR);
QEMU_BUILD_BUG_ON((int)RDMA_ACCESS_HUGETLB != (int)IBV_ACCESS_HUGETLB);

typedef struct QpJob {
    VerbsJob job;
    struct ibv_qp_attr attr;        /* of MODIFY and QUERY */
    int mask;
    unsigned stops;                 /* VerbsQp.stops when the job began */
    uint8_t state;                  /* VerbsQp.state likewise */
    bool sqe;                       /* MODIFY clears VerbsQp.sqe */
    RdmaQpAttr guest;               /* MODIFY with the guest's attributes */
} QpJob;

/*
 * Capacity of all queue pairs together, in work requests. With the maximum
 * number of queue pairs, each may have 256. QEMU needs some 40 bytes for each
 * work request, and the host's driver more.
 */
#define MAX_WR (4u << 20)

static uint32_t wr_of(const RdmaQpInitAttr *init)
{
    return init->cap.max_send_wr + init->cap.max_recv_wr;
}

static void qp_free(RdmaVerbs *v, void *obj)
{
    VerbsQp *qp = obj;

    verbs_remove(v->qps_by_wire, qp->init.wire_qpn, qp);
    verbs_remove(v->qps_by_id, qp->id, qp);
    verbs_wq_clear(&qp->sq);
    v->n_wr -= wr_of(&qp->init);
    verbs_wq_free(&qp->sq);
    verbs_wq_free(&qp->rq);
    verbs_gsi_free(qp->gsi);
    qemu_mutex_destroy(&qp->lock);
    g_array_free(qp->groups, true);
    g_free(qp);
}

/* Create and destroy */

static enum ibv_qp_type host_type(RdmaQpType type)
{
    return type == RDMA_QPT_RC ? IBV_QPT_RC :
           type == RDMA_QPT_UC ? IBV_QPT_UC : IBV_QPT_UD;
}

static int host_create(RdmaVerbs *v, void *obj)
{
    VerbsQp *qp = obj;
    const RdmaQpInitAttr *init = &qp->init;
    struct ibv_qp_init_attr_ex host = {
        .qp_context = qp,
        .send_cq = qp->send_cq,
        .recv_cq = qp->recv_cq,
        .srq = qp->srq,
        .cap = {
            .max_send_wr = MAX(init->cap.max_send_wr, 1),
            .max_recv_wr = qp->srq ? 0 : MAX(init->cap.max_recv_wr, 1),
            .max_send_sge = MAX(init->cap.max_send_sge, 1),
            .max_recv_sge = qp->srq ? 0 : MAX(init->cap.max_recv_sge, 1),
            .max_inline_data = init->cap.max_inline_data,
        },
        .qp_type = host_type(init->qp_type),
        .sq_sig_all = init->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = qp->pd,
    };

    if (qp->gsi) {
        return verbs_gsi_open(qp->gsi);
    }
    if (init->block_mcast_loopback) {
        host.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
        host.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    }
    qp->qp = ibv_create_qp_ex(qp->pd->context, &host);
    return verbs_create_result(qp->qp);
}

static int host_destroy(RdmaVerbs *v, void *obj)
{
    VerbsQp *qp = obj;
    int ret = verbs_mcast_leave_all(v, qp);

    if (qp->gsi) {
        verbs_gsi_close(qp->gsi);
        return 0;
    }
    QEMU_LOCK_GUARD(&qp->lock);
    ret = ret ?: verbs_dev_destroyed(v, ibv_destroy_qp(qp->qp));
    if (!ret) {
        qp->qp = NULL;
    }
    return ret;
}

static void created(RdmaVerbs *v, void *obj, void *attr)
{
    VerbsQp *qp = obj;
    RdmaQpInitAttr *init = attr;

    if (qp->gsi) {
        verbs_gsi_opened(qp->gsi);
    } else {
        qp->init.wire_qpn = init->wire_qpn = qp->qp->qp_num;
        verbs_put(v->qps_by_wire, init->wire_qpn, qp);
        verbs_qp_new_id(v, qp);
    }
    trace_rdma_verbs_qp_create(v, init->qpn, init->wire_qpn);
}

static void destroy_begins(RdmaVerbs *v, void *obj)
{
    VerbsQp *qp = obj;

    if (qp->gsi) {
        verbs_gsi_destroy_begins(qp->gsi);
    }
}

static void destroy_failed(RdmaVerbs *v, void *qp)
{
    verbs_wq_complete_local(v, qp);
    verbs_pull_qp(v, qp);
}

const VerbsKind verbs_qp_kind = {
    .table = offsetof(RdmaVerbs, qps),
    .has_events = true,
    .create = host_create,
    .destroy = host_destroy,
    .created = created,
    .destroy_begins = destroy_begins,
    .destroy_failed = destroy_failed,
    .free = qp_free,
};

static int begin_create(RdmaVerbs *v, const RdmaQpInitAttr *init)
{
    VerbsPd *pd = verbs_get_live(v->pds, init->pdn);
    VerbsCq *send_cq = verbs_get_live(v->cqs, init->send_cqn);
    VerbsCq *recv_cq = verbs_get_live(v->cqs, init->recv_cqn);
    VerbsSrq *srq = init->has_srq ? verbs_get_live(v->srqs, init->srqn) : NULL;
    VerbsQp *qp;

    if (!pd || !send_cq || !recv_cq || (init->has_srq && !srq)) {
        return -ENOENT;
    }
    if (wr_of(init) > MAX_WR - v->n_wr) {
        qemu_log_mask(LOG_GUEST_ERROR, "rdma-verbs: the guest's queue pairs "
                      "have %u work requests, and one with %u more is "
                      "refused: they may have %u in all\n", v->n_wr,
                      wr_of(init), MAX_WR);
        return -ENOMEM;
    }
    v->n_wr += wr_of(init);
    qp = g_new0(VerbsQp, 1);
    qp->init = *init;
    if (init->qp_type == RDMA_QPT_GSI) {
        qp->gsi = verbs_gsi_new(v, qp);
    }
    qp->groups = g_array_new(false, false, sizeof(union ibv_gid));
    qemu_mutex_init(&qp->lock);
    qp->pd = pd->pd;
    if (!verbs_wq_init(&qp->sq, init->cap.max_send_wr) ||
        !verbs_wq_init(&qp->rq, init->cap.max_recv_wr)) {
        qp_free(v, qp);
        return -ENOMEM;
    }
    qp->send_cq = send_cq->cq;
    qp->recv_cq = recv_cq->cq;
    qp->srq = srq ? srq->srq : NULL;
    return verbs_obj_create(v, &verbs_qp_kind, qp, init->qpn);
}

static int create_qp(RdmaBackend *rb, RdmaQpInitAttr *init)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    int ret;

    if (init->qp_type == RDMA_QPT_GSI && !v->cm) {
        return -ENOTSUP;
    }
    return verbs_obj_lookup(v, &verbs_qp_kind, init, &ret)
           ? ret : begin_create(v, init);
}

/* Modify */

static int host_attr(RdmaVerbs *v, uint32_t mask, const RdmaQpAttr *attr,
                     struct ibv_qp_attr *h)
{
    if ((mask & RDMA_QP_PORT) && attr->port_num != RDMA_PORT_NUM) {
        return -EINVAL;
    }
    if ((mask & RDMA_QP_QKEY) && attr->qkey == RDMA_GSI_QKEY) {
        /* Its datagrams would be MADs of any class to the peer's QP 1 */
        return -EPERM;
    }
    if ((mask & RDMA_QP_AV) && verbs_gid_path(v, &attr->ah_attr,
                                              &h->ah_attr)) {
        return -EINVAL;
    }
    if (mask & RDMA_QP_PORT) {
        h->port_num = v->port_num;
    }
#define COPY(bit, field)             \
    if (mask & RDMA_QP_##bit) {         \
        h->field = attr->field;         \
    }
    COPY(STATE, qp_state)
    COPY(CUR_STATE, cur_qp_state)
    COPY(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify)
    COPY(PKEY_INDEX, pkey_index)
    COPY(RQ_PSN, rq_psn)
    COPY(PATH_MIG_STATE, path_mig_state)
    VERBS_QP_NUMBERS(COPY)
#undef COPY
    return 0;
}

/* Report why MODIFY failed. The host returns only an errno: find the reason. */
static void report_refusal(RdmaVerbs *v, const VerbsQp *qp, uint32_t mask,
                           const RdmaQpAttr *attr, int ret)
{
    const RdmaQpLimits limits = {
        .max_rd_atomic = v->parent_obj.limits.max_rd_atomic,
        .path_mtu = v->dev.port.active_mtu,
    };
    uint8_t from = qp->sqe ? RDMA_QPS_SQE : qp->state;
    RdmaQpRefusal r = {
        .from = from,
        .to = mask & RDMA_QP_STATE ? attr->qp_state : from,
    };
    g_autofree char *why = NULL;

    if (rdma_qp_check_transition(qp->init.qp_type, r.from, r.to, mask, &r) &&
        rdma_qp_check_values(&limits, from, mask, attr, &r)) {
        if ((mask & RDMA_QP_AV) &&
            verbs_gid_host_index(v, attr->ah_attr.sgid_index) < 0) {
            rdma_qp_refuse(&r, "ah_attr.grh.sgid_index",
                           attr->ah_attr.sgid_index,
                           "is not an entry of the GID table");
        } else if ((mask & RDMA_QP_QKEY) && attr->qkey == RDMA_GSI_QKEY) {
            rdma_qp_refuse(&r, "qkey", attr->qkey, "is for QP 1 only");
        } else {
            why = g_strdup_printf("is refused by the host's device: %s",
                                  strerror(-ret));
            rdma_qp_refuse(&r, "attr_mask", mask, why);
        }
    }
    rdma_backend_qp_refused(&v->parent_obj, qp->init.qpn, &r);
}

static int modify_work(VerbsJob *job)
{
    QpJob *j = container_of(job, QpJob, job);
    VerbsQp *qp = job->obj;
    int ret;

    QEMU_LOCK_GUARD(&qp->lock);
    if (j->stops != qp->stops) {
        /* The QP was stopped after the job began. Leave it in ERR. */
        return -EINVAL;
    }
    ret = -ibv_modify_qp(qp->qp, &j->attr, j->mask);
    if (!ret && (j->mask & IBV_QP_STATE)) {
        qp->host_state = j->attr.qp_state;
    }
    return ret;
}

/* Did the QP enter ERR by itself after @j began? */
static bool has_erred(const QpJob *j)
{
    const VerbsQp *qp = j->job.obj;

    return qp->state == RDMA_QPS_ERR && j->state != RDMA_QPS_ERR;
}

static bool stops_work(const QpJob *j)
{
    return (j->mask & IBV_QP_STATE) && (j->attr.qp_state == IBV_QPS_ERR ||
                                        j->attr.qp_state == IBV_QPS_RESET);
}

/* Adopt the attributes that the host has accepted. */
static void apply_modify(VerbsJob *job)
{
    QpJob *j = container_of(job, QpJob, job);
    VerbsQp *qp = job->obj;

    if (job->ret && j->stops == qp->stops) {
        report_refusal(job->v, qp, j->mask, &j->guest, job->ret);
    }
    if (job->ret || qp->obj.destroying) {
        return;
    }
    verbs_qp_note(qp, j->mask, &j->guest);
    if (!(j->mask & IBV_QP_STATE) ||
        (j->stops != qp->stops && j->attr.qp_state != IBV_QPS_RESET)) {
        return;
    }
    trace_rdma_verbs_qp_state(job->v, qp->init.qpn, qp->state,
                              j->attr.qp_state);
    if (j->attr.qp_state == IBV_QPS_RESET) {
        /* Completions of earlier work requests are ignored. */
        verbs_wq_clear_sq(qp);
        verbs_wq_clear(&qp->rq);
        verbs_qp_new_id(job->v, qp);
        qp->failed = qp->failing;
    }
    if (j->sqe || j->attr.qp_state == IBV_QPS_ERR) {
        qp->sqe = false;
    }
    if (j->attr.qp_state == IBV_QPS_RESET ||
        !(qp->failed || has_erred(j))) {
        qp->state = j->attr.qp_state;
    }
    verbs_wq_complete_local(job->v, qp);
}

static void modify_done(VerbsJob *job)
{
    QpJob *j = container_of(job, QpJob, job);
    VerbsQp *qp = job->obj;

    apply_modify(job);
    if (stops_work(j)) {
        qp->stopping--;
        if (!qp->obj.destroying) {
            verbs_pull_qp(job->v, qp);
        }
    }
}

/* Leave SQE, which only the guest's QP is in: the host's QP is in RTS. */
static bool leave_sqe(QpJob *j)
{
    if (j->mask & IBV_QP_STATE && j->attr.qp_state != IBV_QPS_RTS &&
        j->attr.qp_state != IBV_QPS_ERR && j->attr.qp_state != IBV_QPS_RESET) {
        return false;
    }
    if (j->mask & IBV_QP_CUR_STATE) {
        if (j->attr.cur_qp_state != IBV_QPS_SQE) {
            return false;
        }
        j->attr.cur_qp_state = IBV_QPS_RTS;
    }
    j->sqe = j->mask & IBV_QP_STATE;
    return true;
}

static const VerbsJobOps modify_ops = {
    .work = modify_work,
    .done = modify_done,
    .size = sizeof(QpJob),
};

static int modify_qp(RdmaBackend *rb, uint32_t qpn, uint32_t mask,
                     const RdmaQpAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get_live(v->qps, qpn);
    QpJob *j;
    int ret;

    if (qp && qp->gsi) {
        return verbs_gsi_modify(qp->gsi, mask, attr);
    }
    j = verbs_job_command(v, &modify_ops, qp, NULL, &ret);
    if (!j) {
        return ret;
    }
    j->mask = mask;
    j->stops = qp->stops;
    j->guest = *attr;
    j->state = qp->state;
    ret = host_attr(v, mask, attr, &j->attr);
    if (!ret && qp->sqe && !leave_sqe(j)) {
        ret = -EINVAL;
    }
    if (ret) {
        report_refusal(v, qp, mask, attr, ret);
        g_free(j);
        return ret;
    }
    if (stops_work(j)) {
        qp->stopping++;
    }
    return verbs_job_begin(&j->job);
}

static int fail_qp(RdmaBackend *rb, uint32_t qpn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get_live(v->qps, qpn);

    if (!qp) {
        return -ENOENT;
    }
    verbs_qp_fail(v, qp);
    return 0;
}

static bool qp_in_state(RdmaBackend *rb, uint32_t qpn, RdmaQpState state)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get(v->qps, qpn);

    return qp && (qp->state == state ||
                  (state == RDMA_QPS_ERR && qp->failed));
}

/* Query */

#define QUERY_MASK (IBV_QP_STATE | IBV_QP_CUR_STATE | \
                    IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | \
                    IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | \
                    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | \
                    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | \
                    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | \
                    IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | \
                    IBV_QP_PATH_MIG_STATE | IBV_QP_DEST_QPN)

static int query_work(VerbsJob *job)
{
    QpJob *j = container_of(job, QpJob, job);
    VerbsQp *qp = job->obj;
    struct ibv_qp_init_attr init;

    return -ibv_query_qp(qp->qp, &j->attr, QUERY_MASK, &init);
}

static void guest_attr(const VerbsQp *qp, const struct ibv_qp_attr *h,
                       RdmaQpAttr *attr)
{
    *attr = (RdmaQpAttr) {
        .qp_state = h->qp_state,
        .cur_qp_state = h->cur_qp_state,
        .path_mtu = h->path_mtu,
        .path_mig_state = h->path_mig_state,
        .qkey = h->qkey,
        .rq_psn = h->rq_psn,
        .sq_psn = h->sq_psn,
        .dest_qp_num = h->dest_qp_num,
        .qp_access_flags = h->qp_access_flags,
        .pkey_index = h->pkey_index,
        .en_sqd_async_notify = h->en_sqd_async_notify,
        .sq_draining = h->sq_draining,
        .max_rd_atomic = h->max_rd_atomic,
        .max_dest_rd_atomic = h->max_dest_rd_atomic,
        .min_rnr_timer = h->min_rnr_timer,
        .port_num = h->port_num ? RDMA_PORT_NUM : 0,
        .timeout = h->timeout,
        .retry_cnt = h->retry_cnt,
        .rnr_retry = h->rnr_retry,
        .rate_limit = h->rate_limit,
        /* With the guest's GID index and its MAC address */
        .ah_attr = qp->set_attr.ah_attr,
    };
    if (qp->sqe && h->qp_state == IBV_QPS_RTS) {
        attr->qp_state = RDMA_QPS_SQE;
        attr->cur_qp_state = RDMA_QPS_SQE;
    }
}

static void query_take(VerbsJob *job, void *out)
{
    QpJob *j = container_of(job, QpJob, job);
    VerbsQp *qp = job->obj;
    RdmaQpAttr *attr = out;

    guest_attr(qp, &j->attr, attr);
    if (qp->failed || has_erred(j)) {
        attr->qp_state = RDMA_QPS_ERR;
        attr->cur_qp_state = RDMA_QPS_ERR;
    }
    verbs_qp_set_state(job->v, qp, attr->qp_state);
}

static const VerbsJobOps query_ops = {
    .work = query_work,
    .take = query_take,
    .size = sizeof(QpJob),
};

static int query_qp(RdmaBackend *rb, uint32_t qpn, RdmaQpAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get_live(v->qps, qpn);
    QpJob *j;
    int ret;

    if (qp && qp->gsi) {
        verbs_gsi_query(qp->gsi, attr);
        return 0;
    }
    j = verbs_job_command(v, &query_ops, qp, attr, &ret);
    if (!j) {
        return ret;
    }
    j->state = qp->state;
    return verbs_job_begin(&j->job);
}

void verbs_qps_device_gone(RdmaVerbs *v)
{
    GHashTableIter iter;
    VerbsQp *qp;

    g_hash_table_iter_init(&iter, v->qps);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&qp)) {
        if (qp->gsi) {
            verbs_qp_fail_with_event(v, qp);
            continue;
        }
        verbs_qp_fail(v, qp);
        verbs_wq_flush(v, qp);
        verbs_raise_event(v, RDMA_EVENT_QP_FATAL, qp->init.qpn);
    }
}

static void stop_qp(gpointer key, gpointer value, gpointer opaque)
{
    VerbsQp *qp = value;
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    QEMU_LOCK_GUARD(&qp->lock);
    /* A MODIFY in progress must not move it to another state. */
    qp->stops++;
    if (qp->qp && qp->host_state != IBV_QPS_RESET &&
        qp->host_state != IBV_QPS_ERR) {
        ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
        qp->host_state = IBV_QPS_ERR;
        qp->state = RDMA_QPS_ERR;
        qp->sqe = false;
    }
}

void verbs_qps_stop(RdmaVerbs *v)
{
    g_hash_table_foreach(v->qps, stop_qp, NULL);
}

void verbs_qps_reset(RdmaVerbs *v)
{
    GHashTableIter iter;
    VerbsQp *qp;

    /* Stop all before jobs destroy any, which would slow the host down. */
    verbs_qps_stop(v);
    g_hash_table_remove_all(v->qps_by_wire);
    g_hash_table_remove_all(v->qps_by_id);
    g_hash_table_iter_init(&iter, v->qps);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&qp)) {
        verbs_wq_clear(&qp->sq);
    }
    verbs_objs_reset(v, &verbs_qp_kind);
}

void verbs_qp_class_init(RdmaBackendClass *rbc)
{
    rbc->create_qp = create_qp;
    rbc->modify_qp = modify_qp;
    rbc->fail_qp = fail_qp;
    rbc->qp_in_state = qp_in_state;
    rbc->query_qp = query_qp;
}
