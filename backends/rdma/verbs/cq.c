/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protection domains and completion queues. One channel reports completions of
 * all CQs to the main loop, which polls the CQs in turns.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "rdma/work.h"
#include "int.h"
#include "../trace.h"

/* Completions to poll at once */
#define POLL_BATCH 16
/* Events of the channel to read at once */
#define EVENT_BATCH 64

/* Polling */

static void queue_ready(RdmaVerbs *v, VerbsCq *cq)
{
    if (!QTAILQ_IN_USE(cq, next)) {
        QTAILQ_INSERT_TAIL(&v->ready_cqs, cq, next);
    }
}

static void remove_ready(RdmaVerbs *v, void *obj)
{
    VerbsCq *cq = obj;

    if (QTAILQ_IN_USE(cq, next)) {
        QTAILQ_REMOVE(&v->ready_cqs, cq, next);
    }
}

/* The CQ cannot be polled any more. */
static bool fail_polling(RdmaVerbs *v, VerbsCq *cq)
{
    trace_rdma_verbs_cq_broken(v, cq->obj.num);
    verbs_cq_fail(v, cq->obj.num);
    return false;
}

/*
 * Poll one batch, and arm the CQ if it is empty. A completion may precede the
 * arming, so the CQ is polled once more. Returns false if that poll finds
 * nothing, or if polling fails.
 */
static bool poll_cq(RdmaVerbs *v, VerbsCq *cq, uint32_t *budget)
{
    struct ibv_wc wc[POLL_BATCH];
    int n = ibv_poll_cq(cq->cq, POLL_BATCH, wc);

    if (n < 0) {
        return fail_polling(v, cq);
    }
    for (int i = 0; i < n; i++) {
        verbs_wq_complete(v, &wc[i]);
    }
    rdma_work_pay(budget, RDMA_WORK_POLL + n * RDMA_WORK_WR);
    if (n) {
        return true;
    }
    if (cq->armed) {
        return false;
    }
    if (ibv_req_notify_cq(cq->cq, 0)) {
        return fail_polling(v, cq);
    }
    cq->armed = true;
    return true;
}

static void run_ready(RdmaVerbs *v)
{
    uint32_t budget = RDMA_TURN_BUDGET;
    VerbsCq *cq;

    while (budget && (cq = QTAILQ_FIRST(&v->ready_cqs))) {
        remove_ready(v, cq);
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
    verbs_pull_run(rb);
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
        /* A job may be about to destroy it, which waits for the ack. */
        if (verbs_get_live(v->cqs, cq->obj.num) == cq) {
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
            if (!cq->obj.destroying) {
                queue_ready(v, cq);
            }
        }
        g_hash_table_iter_init(&iter, v->qps);
        while (g_hash_table_iter_next(&iter, NULL, (void **)&qp)) {
            verbs_wq_complete_local(v, qp);
        }
        qemu_bh_schedule(v->cq_bh);
    }
}

/* Commands for CQs */

static int host_create_cq(RdmaVerbs *v, void *obj)
{
    VerbsCq *cq = obj;

    cq->cq = ibv_create_cq(v->dev.ctx, cq->cqe, cq, v->channel, 0);
    return verbs_create_result(cq->cq);
}

static int host_destroy_cq(RdmaVerbs *v, void *obj)
{
    VerbsCq *cq = obj;

    return verbs_dev_destroyed(v, ibv_destroy_cq(cq->cq));
}

static void cq_created(RdmaVerbs *v, void *cq, void *attr)
{
    queue_ready(v, cq);
    if (v->running) {
        qemu_bh_schedule(v->cq_bh);
    }
}

static void obj_free(RdmaVerbs *v, void *obj)
{
    g_free(obj);
}

const VerbsKind verbs_cq_kind = {
    .table = offsetof(RdmaVerbs, cqs),
    .has_events = true,
    .create = host_create_cq,
    .destroy = host_destroy_cq,
    .created = cq_created,
    .destroy_begins = remove_ready,
    .free = obj_free,
};

static int create_cq(RdmaBackend *rb, uint32_t cqn, uint32_t cqe)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsCq *cq;
    int ret;

    if (verbs_obj_lookup(v, &verbs_cq_kind, NULL, &ret)) {
        return ret;
    }
    cq = g_new0(VerbsCq, 1);
    cq->cqe = cqe;
    return verbs_obj_create(v, &verbs_cq_kind, cq, cqn);
}

/*
 * The CQ never gets fewer entries: the device checks its own CQ again after
 * this, and keeps the old depth if completions that came meanwhile do not fit.
 */
static int resize_work(VerbsJob *job)
{
    VerbsCq *cq = job->obj;

    return cq->cq->cqe >= job->arg ? 0 : -ibv_resize_cq(cq->cq, job->arg);
}

static const VerbsJobOps resize_ops = {
    .work = resize_work,
};

static int resize_cq(RdmaBackend *rb, uint32_t cqn, uint32_t cqe)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsJob *job;
    int ret;

    job = verbs_job_command(v, &resize_ops, verbs_get_live(v->cqs, cqn), NULL,
                            &ret);
    if (!job) {
        return ret;
    }
    job->arg = cqe;
    return verbs_job_begin(job);
}

/* Protection domains */

static int host_alloc_pd(RdmaVerbs *v, void *obj)
{
    VerbsPd *pd = obj;

    pd->pd = ibv_alloc_pd(v->dev.ctx);
    return verbs_create_result(pd->pd);
}

static int host_dealloc_pd(RdmaVerbs *v, void *obj)
{
    VerbsPd *pd = obj;

    return verbs_dev_destroyed(v, ibv_dealloc_pd(pd->pd));
}

static void pd_destroy_begins(RdmaVerbs *v, void *obj)
{
    VerbsPd *pd = obj;

    verbs_ahs_drop(v, pd->pd);
}

const VerbsKind verbs_pd_kind = {
    .table = offsetof(RdmaVerbs, pds),
    .create = host_alloc_pd,
    .destroy = host_dealloc_pd,
    .destroy_begins = pd_destroy_begins,
    .free = obj_free,
};

static int create_pd(RdmaBackend *rb, uint32_t pdn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    int ret;

    if (verbs_obj_lookup(v, &verbs_pd_kind, NULL, &ret)) {
        return ret;
    }
    return verbs_obj_create(v, &verbs_pd_kind, g_new0(VerbsPd, 1), pdn);
}

/* The completion channel */

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
    g_clear_pointer(&v->channel, ibv_destroy_comp_channel);
    g_clear_pointer(&v->cq_bh, qemu_bh_delete);
}

void verbs_cq_class_init(RdmaBackendClass *rbc)
{
    rbc->create_pd = create_pd;
    rbc->create_cq = create_cq;
    rbc->resize_cq = resize_cq;
}
