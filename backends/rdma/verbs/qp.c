/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: a QP of the guest is one of the host's.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/lockable.h"
#include "int.h"
#include "../trace.h"

/* Numbers of attributes, states and rights are those of libibverbs. */
QEMU_BUILD_BUG_ON((int)RDMA_QP_STATE != (int)IBV_QP_STATE);
QEMU_BUILD_BUG_ON((int)RDMA_QP_DEST_QPN != (int)IBV_QP_DEST_QPN);
QEMU_BUILD_BUG_ON((int)RDMA_QP_RATE_LIMIT != (int)IBV_QP_RATE_LIMIT);
QEMU_BUILD_BUG_ON((int)RDMA_QPS_ERR != (int)IBV_QPS_ERR);
QEMU_BUILD_BUG_ON((int)RDMA_ACCESS_HUGETLB != (int)IBV_ACCESS_HUGETLB);

typedef struct QpJob {
    VerbsJob job;
    VerbsQp *qp;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq;
    struct ibv_cq *recv_cq;
    struct ibv_srq *srq;
    struct ibv_qp_attr attr;        /* of MODIFY and QUERY */
    int mask;
    unsigned stops;                 /* VerbsQp.stops when it was begun */
    uint8_t state;                  /* VerbsQp.state likewise */
    bool sqe;                       /* the MODIFY comes in VerbsQp.sqe */
    RdmaQpAttr guest;               /* the MODIFY as the guest asked for it */
} QpJob;

/*
 * Work requests that all queue pairs may have at a time, up to 256 each of all
 * that there may be: QEMU has some 40 bytes for each, and the host's driver
 * what it needs.
 */
#define MAX_WR (4u << 20)

static uint32_t wr_of(const RdmaQpInitAttr *init)
{
    return init->cap.max_send_wr + init->cap.max_recv_wr;
}

static void qp_free(RdmaVerbs *v, VerbsQp *qp)
{
    if (qp) {
        v->n_wr -= wr_of(&qp->init);
        verbs_wq_free(&qp->sq);
        verbs_wq_free(&qp->rq);
        qemu_mutex_destroy(&qp->lock);
        g_array_free(qp->groups, true);
        g_free(qp);
    }
}

/* Create */

static enum ibv_qp_type host_type(RdmaQpType type)
{
    return type == RDMA_QPT_RC ? IBV_QPT_RC :
           type == RDMA_QPT_UC ? IBV_QPT_UC : IBV_QPT_UD;
}

static int create_work(VerbsJob *job)
{
    QpJob *j = container_of(job, QpJob, job);
    const RdmaQpInitAttr *init = &j->qp->init;
    struct ibv_qp_init_attr_ex host = {
        .qp_context = j->qp,
        .send_cq = j->send_cq,
        .recv_cq = j->recv_cq,
        .srq = j->srq,
        .cap = {
            .max_send_wr = MAX(init->cap.max_send_wr, 1),
            .max_recv_wr = j->srq ? 0 : MAX(init->cap.max_recv_wr, 1),
            .max_send_sge = MAX(init->cap.max_send_sge, 1),
            .max_recv_sge = j->srq ? 0 : MAX(init->cap.max_recv_sge, 1),
            .max_inline_data = init->cap.max_inline_data,
        },
        .qp_type = host_type(init->qp_type),
        .sq_sig_all = init->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = j->pd,
    };

    if (init->block_mcast_loopback) {
        host.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
        host.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    }
    j->qp->qp = ibv_create_qp_ex(j->pd->context, &host);
    return j->qp->qp ? 0 : -(errno ?: EIO);
}

static void create_undo(VerbsJob *job)
{
    ibv_destroy_qp(container_of(job, QpJob, job)->qp->qp);
}

static void create_take(VerbsJob *job, void *out)
{
    RdmaVerbs *v = job->v;
    VerbsQp *qp = g_steal_pointer(&container_of(job, QpJob, job)->qp);
    RdmaQpInitAttr *init = out;

    qp->init.qpn = init->qpn;
    qp->init.wire_qpn = qp->qp->qp_num;
    init->wire_qpn = qp->qp->qp_num;
    verbs_put(v->qps, init->qpn, qp);
    verbs_put(v->qps_by_wire, init->wire_qpn, qp);
    verbs_qp_new_id(v, qp);
    trace_rdma_verbs_qp_create(v, init->qpn, init->wire_qpn);
}

static void create_free(VerbsJob *job)
{
    QpJob *j = container_of(job, QpJob, job);

    qp_free(job->v, j->qp);
    g_free(j);
}

static const VerbsJobOps create_ops = {
    .work = create_work,
    .undo = create_undo,
    .take = create_take,
    .free = create_free,
};

static int begin_create(RdmaVerbs *v, const RdmaQpInitAttr *init,
                        const void *key, size_t len)
{
    VerbsPd *pd = verbs_get_pd(v, init->pdn);
    VerbsCq *send_cq = verbs_get_cq(v, init->send_cqn);
    VerbsCq *recv_cq = verbs_get_cq(v, init->recv_cqn);
    VerbsSrq *srq = init->has_srq ? verbs_get_srq(v, init->srqn) : NULL;
    VerbsQp *qp;
    QpJob *j;

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
    qp->groups = g_array_new(false, false, sizeof(union ibv_gid));
    qemu_mutex_init(&qp->lock);
    qp->pd = pd->pd;
    if (!verbs_wq_init(&qp->sq, init->cap.max_send_wr) ||
        !verbs_wq_init(&qp->rq, init->cap.max_recv_wr)) {
        qp_free(v, qp);
        return -ENOMEM;
    }
    j = g_new0(QpJob, 1);
    j->qp = qp;
    j->pd = pd->pd;
    j->send_cq = send_cq->cq;
    j->recv_cq = recv_cq->cq;
    j->srq = srq ? srq->srq : NULL;
    return verbs_job_begin(v, &j->job, &create_ops, key, len);
}

static int create_qp(RdmaBackend *rb, RdmaQpInitAttr *init)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    const uint32_t key[] = {
        init->pdn, init->qp_type, init->sq_sig_all, init->send_cqn,
        init->recv_cqn, init->cap.max_send_wr, init->cap.max_recv_wr,
        init->cap.max_send_sge, init->cap.max_recv_sge,
        init->cap.max_inline_data, init->has_srq, init->srqn,
        init->block_mcast_loopback,
    };
    int ret;

    if (init->qp_type == RDMA_QPT_GSI) {
        return verbs_gsi_create(v, init);
    }
    if (verbs_job_ask(v, &create_ops, key, sizeof(key), init, &ret)) {
        return ret;
    }
    return begin_create(v, init, key, sizeof(key));
}

/* Modify */

/* Only what @mask names is set, so that two can be compared as bytes. */
static int host_attr(RdmaVerbs *v, uint32_t mask, const RdmaQpAttr *attr,
                     struct ibv_qp_attr *h)
{
    memset(h, 0, sizeof(*h));
    if (mask & RDMA_QP_STATE) {
        h->qp_state = (enum ibv_qp_state)attr->qp_state;
    }
    if (mask & RDMA_QP_CUR_STATE) {
        h->cur_qp_state = (enum ibv_qp_state)attr->cur_qp_state;
    }
    if (mask & RDMA_QP_EN_SQD_ASYNC_NOTIFY) {
        h->en_sqd_async_notify = attr->en_sqd_async_notify;
    }
    if (mask & RDMA_QP_ACCESS_FLAGS) {
        h->qp_access_flags = attr->qp_access_flags;
    }
    if (mask & RDMA_QP_PKEY_INDEX) {
        h->pkey_index = attr->pkey_index;
    }
    if (mask & RDMA_QP_PORT) {
        if (attr->port_num != RDMA_PORT_NUM) {
            return -EINVAL;
        }
        h->port_num = v->port_num;
    }
    if (mask & RDMA_QP_QKEY) {
        if (attr->qkey == RDMA_GSI_QKEY) {
            /* Its datagrams would be MADs of any class to the peer's QP 1 */
            return -EPERM;
        }
        h->qkey = attr->qkey;
    }
    if ((mask & RDMA_QP_AV) && verbs_gid_path(v, &attr->ah_attr,
                                              &h->ah_attr)) {
        return -EINVAL;
    }
    if (mask & RDMA_QP_PATH_MTU) {
        h->path_mtu = (enum ibv_mtu)attr->path_mtu;
    }
    if (mask & RDMA_QP_TIMEOUT) {
        h->timeout = attr->timeout;
    }
    if (mask & RDMA_QP_RETRY_CNT) {
        h->retry_cnt = attr->retry_cnt;
    }
    if (mask & RDMA_QP_RNR_RETRY) {
        h->rnr_retry = attr->rnr_retry;
    }
    if (mask & RDMA_QP_RQ_PSN) {
        h->rq_psn = attr->rq_psn;
    }
    if (mask & RDMA_QP_MAX_QP_RD_ATOMIC) {
        h->max_rd_atomic = attr->max_rd_atomic;
    }
    if (mask & RDMA_QP_MIN_RNR_TIMER) {
        h->min_rnr_timer = attr->min_rnr_timer;
    }
    if (mask & RDMA_QP_SQ_PSN) {
        h->sq_psn = attr->sq_psn;
    }
    if (mask & RDMA_QP_MAX_DEST_RD_ATOMIC) {
        h->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    }
    if (mask & RDMA_QP_PATH_MIG_STATE) {
        h->path_mig_state = (enum ibv_mig_state)attr->path_mig_state;
    }
    if (mask & RDMA_QP_DEST_QPN) {
        h->dest_qp_num = attr->dest_qp_num;
    }
    if (mask & RDMA_QP_RATE_LIMIT) {
        h->rate_limit = attr->rate_limit;
    }
    return 0;
}

/* What the host has against it is only known as an errno: guess the reason. */
static void refused(RdmaVerbs *v, const VerbsQp *qp, uint32_t mask,
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
    VerbsQp *qp = j->qp;
    int ret;

    QEMU_LOCK_GUARD(&qp->lock);
    if (j->stops != qp->stops) {
        /* It was begun before, and would bring the QP back */
        return -EINVAL;
    }
    ret = -ibv_modify_qp(qp->qp, &j->attr, j->mask);
    if (!ret && (j->mask & IBV_QP_STATE)) {
        qp->host_state = j->attr.qp_state;
    }
    return ret;
}

/* Has the host told of an error that its answer to @j may not know of? */
static bool has_erred(const QpJob *j)
{
    return j->qp->state == RDMA_QPS_ERR && j->state != RDMA_QPS_ERR;
}

static bool to_err(const QpJob *j)
{
    return (j->mask & IBV_QP_STATE) && j->attr.qp_state == IBV_QPS_ERR;
}

static void modified(VerbsJob *job)
{
    QpJob *j = container_of(job, QpJob, job);
    VerbsQp *qp = j->qp;

    if (job->ret && j->stops == qp->stops) {
        refused(job->v, qp, j->mask, &j->guest, job->ret);
    }
    if (job->ret || qp->dead) {
        return;
    }
    verbs_qp_note(qp, j->mask, &j->guest);
    if (j->mask & IBV_QP_AV) {
        qp->av = j->guest.ah_attr;
    }
    if (j->mask & IBV_QP_QKEY) {
        qp->qkey = j->attr.qkey;
    }
    if (!(j->mask & IBV_QP_STATE) ||
        (j->stops != qp->stops && j->attr.qp_state != IBV_QPS_RESET)) {
        return;
    }
    trace_rdma_verbs_qp_state(job->v, qp->init.qpn, qp->state,
                              j->attr.qp_state);
    if (j->attr.qp_state == IBV_QPS_RESET) {
        /* Completions of before are nobody's */
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
    verbs_wq_run_local(job->v, qp);
}

static void modify_done(VerbsJob *job)
{
    QpJob *j = container_of(job, QpJob, job);
    VerbsQp *qp = j->qp;

    modified(job);
    if (to_err(j)) {
        qp->erring--;
        if (!qp->dead) {
            verbs_pull_qp(job->v, qp);
        }
    }
}

/* From SQE, which the host knows nothing of: its QP is in RTS. */
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
};

static int modify_qp(RdmaBackend *rb, uint32_t qpn, uint32_t mask,
                     const RdmaQpAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get(v->qps, qpn);
    struct {
        struct ibv_qp_attr attr;
        uint32_t mask;
        uint32_t qpn;
    } key;
    QpJob *j;
    int ret;

    if (qpn == RDMA_QPN_GSI) {
        return verbs_gsi_modify(v, mask, attr);
    }
    memset(&key, 0, sizeof(key));
    key.mask = mask;
    key.qpn = qpn;
    ret = host_attr(v, mask, attr, &key.attr);
    if (ret) {
        if (qp) {
            refused(v, qp, mask, attr, ret);
        }
        return ret;
    }
    if (verbs_job_ask(v, &modify_ops, &key, sizeof(key), NULL, &ret)) {
        return ret;
    }
    if (!qp || qp->dead) {
        return -ENOENT;
    }
    j = g_new0(QpJob, 1);
    j->qp = qp;
    j->attr = key.attr;
    j->mask = mask;
    j->stops = qp->stops;
    j->guest = *attr;
    j->state = qp->state;
    if (qp->sqe && !leave_sqe(j)) {
        refused(v, qp, mask, attr, -EINVAL);
        g_free(j);
        return -EINVAL;
    }
    if (to_err(j)) {
        qp->erring++;
    }
    return verbs_job_begin(v, &j->job, &modify_ops, &key, sizeof(key));
}

static int fail_qp(RdmaBackend *rb, uint32_t qpn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get(v->qps, qpn);

    if (qpn == RDMA_QPN_GSI) {
        return verbs_gsi_fail(v);
    }
    if (!qp || qp->dead) {
        return -ENOENT;
    }
    verbs_qp_fail(v, qp);
    return 0;
}

static bool qp_in_state(RdmaBackend *rb, uint32_t qpn, RdmaQpState state)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get(v->qps, qpn);

    if (qpn == RDMA_QPN_GSI) {
        return verbs_gsi_in_state(v, state);
    }
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
    struct ibv_qp_init_attr init;

    return -ibv_query_qp(j->qp->qp, &j->attr, QUERY_MASK, &init);
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
        /* As the guest's GID table has it, and with its MAC address */
        .ah_attr = qp->av,
    };
    if (qp->sqe && h->qp_state == IBV_QPS_RTS) {
        attr->qp_state = RDMA_QPS_SQE;
        attr->cur_qp_state = RDMA_QPS_SQE;
    }
}

static void query_take(VerbsJob *job, void *out)
{
    QpJob *j = container_of(job, QpJob, job);
    RdmaQpAttr *attr = out;

    guest_attr(j->qp, &j->attr, attr);
    if (j->qp->failed || has_erred(j)) {
        attr->qp_state = RDMA_QPS_ERR;
        attr->cur_qp_state = RDMA_QPS_ERR;
    }
    j->qp->state = attr->qp_state;
}

static const VerbsJobOps query_ops = {
    .work = query_work,
    .take = query_take,
};

static int query_qp(RdmaBackend *rb, uint32_t qpn, RdmaQpAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get(v->qps, qpn);
    QpJob *j;
    int ret;

    if (qpn == RDMA_QPN_GSI) {
        return verbs_gsi_query(v, attr);
    }
    if (verbs_job_ask(v, &query_ops, &qpn, sizeof(qpn), attr, &ret)) {
        return ret;
    }
    if (!qp || qp->dead) {
        return -ENOENT;
    }
    j = g_new0(QpJob, 1);
    j->qp = qp;
    j->state = qp->state;
    return verbs_job_begin(v, &j->job, &query_ops, &qpn, sizeof(qpn));
}

/* Destroy */

static int destroy_work(VerbsJob *job)
{
    VerbsQp *qp = container_of(job, QpJob, job)->qp;
    int ret = verbs_mcast_leave_all(job->v, qp);

    QEMU_LOCK_GUARD(&qp->lock);
    ret = ret ?: verbs_dev_destroyed(job->v, ibv_destroy_qp(qp->qp));
    if (!ret) {
        qp->qp = NULL;
    }
    return ret;
}

static void forget(RdmaVerbs *v, VerbsQp *qp)
{
    verbs_drop(v->qps, qp->init.qpn, qp);
    verbs_drop(v->qps_by_wire, qp->init.wire_qpn, qp);
    verbs_drop(v->qps_by_id, qp->id, qp);
}

static void destroy_done(VerbsJob *job)
{
    VerbsQp *qp = container_of(job, QpJob, job)->qp;

    if (!job->ret) {
        forget(job->v, qp);
        verbs_wq_clear(&qp->sq);
        qp_free(job->v, qp);
    } else if (verbs_get(job->v->qps, qp->init.qpn) == qp) {
        qp->dead = false;
        verbs_wq_run_local(job->v, qp);
        verbs_pull_qp(job->v, qp);
    }
    /* Else a reset came before: it is only the host's, which may name it */
}

static const VerbsJobOps destroy_ops = {
    .work = destroy_work,
    .done = destroy_done,
};

int verbs_qp_destroy(RdmaBackend *rb, uint32_t qpn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsQp *qp = verbs_get(v->qps, qpn);
    QpJob *j;
    int ret;

    if (qpn == RDMA_QPN_GSI) {
        return verbs_gsi_destroy(v);
    }
    if (verbs_job_ask(v, &destroy_ops, &qpn, sizeof(qpn), NULL, &ret)) {
        return ret;
    }
    if (!qp) {
        return 0;
    }
    if (qp->dead) {
        return verbs_job_await_others(v);
    }
    qp->dead = true;
    j = g_new0(QpJob, 1);
    j->qp = qp;
    return verbs_job_begin(v, &j->job, &destroy_ops, &qpn, sizeof(qpn));
}

void verbs_qps_device_gone(RdmaVerbs *v)
{
    RdmaBackend *rb = &v->parent_obj;
    GHashTableIter iter;
    VerbsQp *qp;

    g_hash_table_iter_init(&iter, v->qps);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&qp)) {
        const RdmaEvent event = { RDMA_EVENT_QP_FATAL, qp->init.qpn };

        verbs_qp_fail(v, qp);
        verbs_wq_flush(v, qp);
        rb->client_ops->consumer.event(rb->client_opaque, &event);
    }
    verbs_gsi_device_gone(v);
}

static void stop(VerbsQp *qp)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    QEMU_LOCK_GUARD(&qp->lock);
    /* What was begun and comes later does not bring it back */
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
    GHashTableIter iter;
    VerbsQp *qp;

    g_hash_table_iter_init(&iter, v->qps);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&qp)) {
        stop(qp);
    }
}

void verbs_qps_reset(RdmaVerbs *v)
{
    GHashTableIter iter;
    VerbsQp *qp;

    verbs_gsi_reset(v);
    /* All before the first is destroyed, which would slow the host down */
    verbs_qps_stop(v);
    g_hash_table_remove_all(v->qps_by_wire);
    g_hash_table_remove_all(v->qps_by_id);
    g_hash_table_iter_init(&iter, v->qps);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&qp)) {
        g_hash_table_iter_remove(&iter);
        verbs_wq_clear(&qp->sq);
        /* Else a command destroys it */
        if (!qp->dead) {
            QpJob *j = g_new0(QpJob, 1);

            j->qp = qp;
            qp->dead = true;
            verbs_job_start(v, &j->job, &destroy_ops);
        }
    }
}

void verbs_qp_class_init(RdmaBackendClass *rbc)
{
    rbc->create_qp = create_qp;
    rbc->modify_qp = modify_qp;
    rbc->fail_qp = fail_qp;
    rbc->qp_in_state = qp_in_state;
    rbc->query_qp = query_qp;
}
