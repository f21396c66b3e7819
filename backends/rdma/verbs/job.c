/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The worker of the host ibverbs backend: a thread for calls to the host that
 * may take long. It does one job after the other, without the BQL.
 *
 * One thread does the jobs in the order in which they were started, so a PD is
 * freed after the objects in it. The control queue is serial anyway.
 *
 * A job of a command stays until the command asks for it. If another command or
 * a reset comes first, the worker undoes what the job has created.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "qemu/rcu.h"
#include "qemu/thread.h"
#include "int.h"
#include "../trace.h"

typedef QSIMPLEQ_HEAD(VerbsJobList, VerbsJob) VerbsJobList;

struct VerbsWorker {
    RdmaVerbs *v;
    QemuThread thread;
    QEMUBH *bh;
    QemuMutex lock;                 /* protects the rest */
    QemuCond cond;
    QemuCond idle;
    VerbsJobList todo;
    VerbsJobList done;
    bool busy;
    bool quit;
};

/*
 * Do a job. The caller holds the lock. A job that is finished comes again to be
 * undone. A job without undo() is done in any case, as the backend may have
 * forgotten its object.
 */
static void run_job(VerbsWorker *w, VerbsJob *job)
{
    bool undo = job->finished;

    if (!undo && job->cancelled && job->ops->undo) {
        job->ret = -ECANCELED;
    } else if (!undo) {
        qemu_mutex_unlock(&w->lock);
        job->ret = job->ops->work(job);
        qemu_mutex_lock(&w->lock);
        undo = job->cancelled && !job->ret && job->ops->undo;
    }
    job->finished = true;
    if (undo) {
        qemu_mutex_unlock(&w->lock);
        job->ops->undo(job);
        qemu_mutex_lock(&w->lock);
        job->ret = -ECANCELED;
    }
}

static void *worker_thread(void *opaque)
{
    VerbsWorker *w = opaque;

    rcu_register_thread();
    qemu_mutex_lock(&w->lock);
    while (!w->quit || !QSIMPLEQ_EMPTY(&w->todo)) {
        VerbsJob *job = QSIMPLEQ_FIRST(&w->todo);

        w->busy = job;
        if (!job) {
            qemu_cond_broadcast(&w->idle);
            qemu_cond_wait(&w->cond, &w->lock);
            continue;
        }
        QSIMPLEQ_REMOVE_HEAD(&w->todo, next);
        run_job(w, job);
        QSIMPLEQ_INSERT_TAIL(&w->done, job, next);
        qemu_bh_schedule(w->bh);
    }
    qemu_mutex_unlock(&w->lock);
    rcu_unregister_thread();
    return NULL;
}

static void job_free(VerbsJob *job)
{
    if (job->ops->free) {
        job->ops->free(job);
    }
    g_free(job);
}

/* Call done() of finished jobs. Returns whether there was one. */
static bool call_done(VerbsWorker *w)
{
    RdmaVerbs *v = w->v;
    VerbsJobList done = QSIMPLEQ_HEAD_INITIALIZER(done);
    VerbsJob *job;
    bool resume = false;
    bool any;

    qemu_mutex_lock(&w->lock);
    QSIMPLEQ_CONCAT(&done, &w->done);
    qemu_mutex_unlock(&w->lock);
    any = !QSIMPLEQ_EMPTY(&done);
    while ((job = QSIMPLEQ_FIRST(&done))) {
        QSIMPLEQ_REMOVE_HEAD(&done, next);
        if (!job->done_called && job->ops->done) {
            job->ops->done(job);
        }
        job->done_called = true;
        if (job == v->cmd) {
            resume = true;
        } else {
            job_free(job);
        }
    }
    if (resume && v->parent_obj.client_ops) {
        v->parent_obj.client_ops->resume(v->parent_obj.client_opaque);
    }
    return any;
}

static void worker_bh(void *opaque)
{
    VerbsWorker *w = opaque;
    RdmaBackend *rb = RDMA_BACKEND(w->v);

    if (rdma_backend_busy(rb)) {
        /* In a nested event loop: try again after it */
        qemu_bh_schedule_idle(w->bh);
        return;
    }
    rdma_backend_enter(rb);
    call_done(w);
    rdma_backend_leave(rb);
}

void verbs_worker_start(RdmaVerbs *v)
{
    VerbsWorker *w = g_new0(VerbsWorker, 1);

    w->v = v;
    w->bh = qemu_bh_new(worker_bh, w);
    qemu_mutex_init(&w->lock);
    qemu_cond_init(&w->cond);
    qemu_cond_init(&w->idle);
    QSIMPLEQ_INIT(&w->todo);
    QSIMPLEQ_INIT(&w->done);
    v->worker = w;
    qemu_thread_create(&w->thread, "rdma-verbs", worker_thread, w,
                       QEMU_THREAD_JOINABLE);
}

void verbs_worker_drain(RdmaVerbs *v)
{
    VerbsWorker *w = v->worker;

    QEMU_LOCK_GUARD(&w->lock);
    while (w->busy || !QSIMPLEQ_EMPTY(&w->todo)) {
        qemu_cond_wait(&w->idle, &w->lock);
    }
}

void verbs_worker_stop(RdmaVerbs *v)
{
    VerbsWorker *w = v->worker;

    verbs_job_abandon(v);
    /* A done() may start another job. */
    do {
        verbs_worker_drain(v);
    } while (call_done(w));
    qemu_mutex_lock(&w->lock);
    w->quit = true;
    qemu_cond_signal(&w->cond);
    qemu_mutex_unlock(&w->lock);
    qemu_thread_join(&w->thread);
    qemu_bh_delete(w->bh);
    qemu_cond_destroy(&w->cond);
    qemu_cond_destroy(&w->idle);
    qemu_mutex_destroy(&w->lock);
    g_free(w);
    v->worker = NULL;
}

static void enqueue(VerbsWorker *w, VerbsJob *job)
{
    QSIMPLEQ_INSERT_TAIL(&w->todo, job, next);
    qemu_cond_signal(&w->cond);
}

void *verbs_job_new(RdmaVerbs *v, const VerbsJobOps *ops, void *obj)
{
    VerbsJob *job = g_malloc0(ops->size ?: sizeof(*job));

    job->ops = ops;
    job->v = v;
    job->obj = obj;
    return job;
}

void verbs_job_start(VerbsJob *job)
{
    VerbsWorker *w = job->v->worker;

    QEMU_LOCK_GUARD(&w->lock);
    enqueue(w, job);
}

int verbs_job_begin(VerbsJob *job)
{
    assert(!job->v->cmd);
    job->v->cmd = job;
    verbs_job_start(job);
    return -EINPROGRESS;
}

bool verbs_job_lookup(RdmaVerbs *v, const VerbsJobOps *ops,
                      const VerbsKind *kind, void *out, int *ret)
{
    VerbsJob *job = v->cmd;

    if (!job) {
        return false;
    }
    if (job->ops != ops || job->kind != kind) {
        verbs_job_abandon(v);
        return false;
    }
    if (!job->done_called) {
        *ret = -EINPROGRESS;
        return true;
    }
    v->cmd = NULL;
    *ret = job->ret;
    if (!job->ret && job->ops->take) {
        job->ops->take(job, out);
    }
    job_free(job);
    return true;
}

void *verbs_job_command(RdmaVerbs *v, const VerbsJobOps *ops, void *obj,
                        void *out, int *ret)
{
    if (verbs_job_lookup(v, ops, NULL, out, ret)) {
        return NULL;
    }
    *ret = -ENOENT;
    return obj ? verbs_job_new(v, ops, obj) : NULL;
}

void verbs_job_cancel(RdmaVerbs *v, VerbsJob *job)
{
    VerbsWorker *w = v->worker;
    VerbsJob *p;

    QEMU_LOCK_GUARD(&w->lock);
    qatomic_set(&job->cancelled, true);
    QSIMPLEQ_FOREACH(p, &w->done, next) {
        if (p == job && !job->ret && job->ops->undo) {
            QSIMPLEQ_REMOVE(&w->done, job, VerbsJob, next);
            enqueue(w, job);
            break;
        }
    }
}

void verbs_job_abandon(RdmaVerbs *v)
{
    VerbsJob *job = v->cmd;

    if (!job) {
        return;
    }
    trace_rdma_verbs_job_abandon(v, job->done_called);
    v->cmd = NULL;
    if (!job->done_called) {
        verbs_job_cancel(v, job);
    } else if (!job->ret && job->ops->undo) {
        verbs_job_start(job);
    } else {
        job_free(job);
    }
}
