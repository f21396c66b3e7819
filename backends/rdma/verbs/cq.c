/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protection domains, and completion queues: they tell the main loop through
 * one channel that there are completions, and are polled in turns.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "rdma/work.h"
#include "int.h"
#include "../trace.h"

/* Completions that are taken at once */
#define POLL_BATCH 16
/* Events of the channel that are read at once */
#define EVENT_BATCH 64

/* Polling */

static void queue_ready(RdmaVerbs *v, VerbsCq *cq)
{
    if (!cq->ready) {
        cq->ready = true;
        QTAILQ_INSERT_TAIL(&v->ready_cqs, cq, next);
    }
}

void verbs_cq_schedule(RdmaVerbs *v, VerbsCq *cq)
{
    queue_ready(v, cq);
    if (v->running) {
        qemu_bh_schedule(v->cq_bh);
    }
}

static void unready(RdmaVerbs *v, VerbsCq *cq)
{
    if (cq->ready) {
        cq->ready = false;
        QTAILQ_REMOVE(&v->ready_cqs, cq, next);
    }
}

/* Nothing will come of it any more. */
static bool broken(RdmaVerbs *v, VerbsCq *cq)
{
    trace_rdma_verbs_cq_broken(v, cq->cqn);
    verbs_cq_fail(v, cq->cqn);
    return false;
}

/*
 * One batch. False when the CQ is empty, and armed: it is looked at once more
 * then, as a completion may have come before that.
 */
static bool poll_cq(RdmaVerbs *v, VerbsCq *cq, uint32_t *budget)
{
    struct ibv_wc wc[POLL_BATCH];
    int n = ibv_poll_cq(cq->cq, POLL_BATCH, wc);

    if (n < 0) {
        return broken(v, cq);
    }
    for (int i = 0; i < n; i++) {
        verbs_wq_complete(v, &wc[i]);
    }
    rdma_work_pay(budget, n * RDMA_WORK_WR);
    if (n) {
        return true;
    }
    if (cq->armed) {
        return false;
    }
    if (ibv_req_notify_cq(cq->cq, 0)) {
        return broken(v, cq);
    }
    cq->armed = true;
    return true;
}

static void run_ready(RdmaVerbs *v)
{
    uint32_t budget = RDMA_TURN_BUDGET;
    VerbsCq *cq;

    while (budget && (cq = QTAILQ_FIRST(&v->ready_cqs))) {
        unready(v, cq);
        if (poll_cq(v, cq, &budget)) {
            queue_ready(v, cq);
        }
    }
    if (!QTAILQ_EMPTY(&v->ready_cqs)) {
        qemu_bh_schedule(v->cq_bh);
    }
}

static void cq_bh(void *opaque)
{
    RdmaVerbs *v = opaque;
    RdmaBackend *rb = &v->parent_obj;

    if (!v->running) {
        return;
    }
    if (rdma_backend_busy(rb)) {
        rdma_backend_put_off(rb, VERBS_PENDING_CQS);
        return;
    }
    rdma_backend_enter(rb);
    run_ready(v);
    verbs_pull_run(v);
    rdma_backend_leave(rb);
}

static void channel_read(void *opaque)
{
    RdmaVerbs *v = opaque;

    for (int i = 0; i < EVENT_BATCH; i++) {
        struct ibv_cq *host;
        VerbsCq *cq;
        void *context;

        if (ibv_get_cq_event(v->channel, &host, &context)) {
            break;
        }
        cq = context;
        /* Else a job is about to destroy it; the event keeps it until then */
        if (verbs_get_cq(v, cq->cqn) == cq) {
            cq->armed = false;
            queue_ready(v, cq);
        }
        ibv_ack_cq_events(host, 1);
    }
    cq_bh(v);
}

void verbs_cqs_set_running(RdmaVerbs *v, bool running)
{
    qemu_set_fd_handler(v->channel->fd, running ? channel_read : NULL, NULL,
                        v);
    if (running) {
        GHashTableIter iter;
        VerbsCq *cq;
        VerbsQp *qp;

        g_hash_table_iter_init(&iter, v->cqs);
        while (g_hash_table_iter_next(&iter, NULL, (void **)&cq)) {
            if (!cq->dead) {
                queue_ready(v, cq);
            }
        }
        g_hash_table_iter_init(&iter, v->qps);
        while (g_hash_table_iter_next(&iter, NULL, (void **)&qp)) {
            verbs_wq_run_local(v, qp);
        }
        qemu_bh_schedule(v->cq_bh);
    }
}

/* Commands for CQs */

typedef struct CqJob {
    VerbsJob job;
    VerbsCq *cq;
    uint32_t cqe;
} CqJob;

static int create_work(VerbsJob *job)
{
    CqJob *j = container_of(job, CqJob, job);
    RdmaVerbs *v = job->v;

    j->cq->cq = ibv_create_cq(v->dev.ctx, j->cqe, j->cq, v->channel, 0);
    return j->cq->cq ? 0 : -(errno ?: EIO);
}

static void create_undo(VerbsJob *job)
{
    ibv_destroy_cq(container_of(job, CqJob, job)->cq->cq);
}

static void create_take(VerbsJob *job, void *cqn)
{
    VerbsCq *cq = g_steal_pointer(&container_of(job, CqJob, job)->cq);

    cq->cqn = *(uint32_t *)cqn;
    verbs_put(job->v->cqs, cq->cqn, cq);
    verbs_cq_schedule(job->v, cq);
}

static void create_free(VerbsJob *job)
{
    CqJob *j = container_of(job, CqJob, job);

    g_free(j->cq);
    g_free(j);
}

static const VerbsJobOps create_ops = {
    .work = create_work,
    .undo = create_undo,
    .take = create_take,
    .free = create_free,
};

static int cq_create(RdmaBackend *rb, uint32_t cqn, uint32_t cqe)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    CqJob *j;
    int ret;

    if (verbs_job_ask(v, &create_ops, &cqe, sizeof(cqe), &cqn, &ret)) {
        return ret;
    }
    j = g_new0(CqJob, 1);
    j->cq = g_new0(VerbsCq, 1);
    j->cqe = cqe;
    return verbs_job_begin(v, &j->job, &create_ops, &cqe, sizeof(cqe));
}

static int destroy_work(VerbsJob *job)
{
    CqJob *j = container_of(job, CqJob, job);

    return verbs_dev_destroyed(job->v, ibv_destroy_cq(j->cq->cq));
}

static void destroy_done(VerbsJob *job)
{
    CqJob *j = container_of(job, CqJob, job);

    if (!job->ret) {
        unready(job->v, j->cq);
        verbs_drop(job->v->cqs, j->cq->cqn, j->cq);
        g_free(j->cq);
    } else {
        j->cq->dead = false;
    }
}

static const VerbsJobOps destroy_ops = {
    .work = destroy_work,
    .done = destroy_done,
};

int verbs_cq_destroy(RdmaBackend *rb, uint32_t cqn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsCq *cq = verbs_get(v->cqs, cqn);
    CqJob *j;
    int ret;

    if (verbs_job_ask(v, &destroy_ops, &cqn, sizeof(cqn), NULL, &ret)) {
        return ret;
    }
    if (!cq) {
        return 0;
    }
    if (cq->dead) {
        return verbs_job_await_others(v);
    }
    unready(v, cq);
    cq->dead = true;
    j = g_new0(CqJob, 1);
    j->cq = cq;
    return verbs_job_begin(v, &j->job, &destroy_ops, &cqn, sizeof(cqn));
}

static int resize_work(VerbsJob *job)
{
    CqJob *j = container_of(job, CqJob, job);
    int ret = ibv_resize_cq(j->cq->cq, j->cqe);

    /* A device that cannot has a CQ that may be deep enough. */
    if ((ret == ENOSYS || ret == EOPNOTSUPP) && j->cq->cq->cqe >= j->cqe) {
        ret = 0;
    }
    return -ret;
}

static const VerbsJobOps resize_ops = {
    .work = resize_work,
};

static int cq_resize(RdmaBackend *rb, uint32_t cqn, uint32_t cqe)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    const uint32_t key[] = { cqn, cqe };
    VerbsCq *cq = verbs_get_cq(v, cqn);
    CqJob *j;
    int ret;

    if (verbs_job_ask(v, &resize_ops, key, sizeof(key), NULL, &ret)) {
        return ret;
    }
    if (!cq) {
        return -ENOENT;
    }
    j = g_new0(CqJob, 1);
    j->cq = cq;
    j->cqe = cqe;
    return verbs_job_begin(v, &j->job, &resize_ops, key, sizeof(key));
}

/* Protection domains */

typedef struct PdJob {
    VerbsJob job;
    VerbsPd *pd;
} PdJob;

static int pd_create_work(VerbsJob *job)
{
    PdJob *j = container_of(job, PdJob, job);

    j->pd->pd = ibv_alloc_pd(job->v->dev.ctx);
    return j->pd->pd ? 0 : -(errno ?: EIO);
}

static void pd_create_undo(VerbsJob *job)
{
    ibv_dealloc_pd(container_of(job, PdJob, job)->pd->pd);
}

static void pd_create_take(VerbsJob *job, void *pdn)
{
    VerbsPd *pd = g_steal_pointer(&container_of(job, PdJob, job)->pd);

    pd->pdn = *(uint32_t *)pdn;
    verbs_put(job->v->pds, pd->pdn, pd);
}

static void pd_create_free(VerbsJob *job)
{
    PdJob *j = container_of(job, PdJob, job);

    g_free(j->pd);
    g_free(j);
}

static const VerbsJobOps pd_create_ops = {
    .work = pd_create_work,
    .undo = pd_create_undo,
    .take = pd_create_take,
    .free = pd_create_free,
};

static int pd_create(RdmaBackend *rb, uint32_t pdn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    PdJob *j;
    int ret;

    if (verbs_job_ask(v, &pd_create_ops, "", 0, &pdn, &ret)) {
        return ret;
    }
    j = g_new0(PdJob, 1);
    j->pd = g_new0(VerbsPd, 1);
    return verbs_job_begin(v, &j->job, &pd_create_ops, "", 0);
}

static int pd_destroy_work(VerbsJob *job)
{
    PdJob *j = container_of(job, PdJob, job);

    return verbs_dev_destroyed(job->v, ibv_dealloc_pd(j->pd->pd));
}

static void pd_destroy_done(VerbsJob *job)
{
    PdJob *j = container_of(job, PdJob, job);

    if (!job->ret) {
        verbs_drop(job->v->pds, j->pd->pdn, j->pd);
        g_free(j->pd);
    } else {
        j->pd->dead = false;
    }
}

static const VerbsJobOps pd_destroy_ops = {
    .work = pd_destroy_work,
    .done = pd_destroy_done,
};

int verbs_pd_destroy(RdmaBackend *rb, uint32_t pdn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsPd *pd = verbs_get(v->pds, pdn);
    PdJob *j;
    int ret;

    if (verbs_job_ask(v, &pd_destroy_ops, &pdn, sizeof(pdn), NULL, &ret)) {
        return ret;
    }
    if (!pd) {
        return 0;
    }
    if (pd->dead) {
        return verbs_job_await_others(v);
    }
    verbs_ahs_drop(v, pd->pd);
    pd->dead = true;
    j = g_new0(PdJob, 1);
    j->pd = pd;
    return verbs_job_begin(v, &j->job, &pd_destroy_ops, &pdn, sizeof(pdn));
}

/* Made, reset and freed with the device */

void verbs_cqs_reset(RdmaVerbs *v)
{
    GHashTableIter iter;
    VerbsCq *cq;
    VerbsPd *pd;

    /* What a command destroys already is forgotten only */
    g_hash_table_iter_init(&iter, v->cqs);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&cq)) {
        unready(v, cq);
        g_hash_table_iter_remove(&iter);
        if (!cq->dead) {
            CqJob *j = g_new0(CqJob, 1);

            j->cq = cq;
            verbs_job_start(v, &j->job, &destroy_ops);
        }
    }
    g_hash_table_iter_init(&iter, v->pds);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&pd)) {
        g_hash_table_iter_remove(&iter);
        if (!pd->dead) {
            PdJob *j = g_new0(PdJob, 1);

            j->pd = pd;
            verbs_job_start(v, &j->job, &pd_destroy_ops);
        }
    }
}

bool verbs_cqs_init(RdmaVerbs *v, Error **errp)
{
    v->channel = ibv_create_comp_channel(v->dev.ctx);
    if (!v->channel) {
        error_setg_errno(errp, errno, "cannot make a completion channel of "
                         "RDMA device '%s'", v->ibdev);
        return false;
    }
    g_unix_set_fd_nonblocking(v->channel->fd, true, NULL);
    QTAILQ_INIT(&v->ready_cqs);
    v->cq_bh = qemu_bh_new(cq_bh, v);
    return true;
}

void verbs_cqs_free(RdmaVerbs *v)
{
    qemu_set_fd_handler(v->channel->fd, NULL, NULL, NULL);
    ibv_destroy_comp_channel(v->channel);
    v->channel = NULL;
    qemu_bh_delete(v->cq_bh);
    v->cq_bh = NULL;
}

void verbs_cq_class_init(RdmaBackendClass *rbc)
{
    rbc->create_pd = pd_create;
    rbc->create_cq = cq_create;
    rbc->resize_cq = cq_resize;
}
