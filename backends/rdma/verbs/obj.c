/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of the host: jobs create and destroy them, see VerbsKind.
 */
#include "qemu/osdep.h"
#include "int.h"

static GHashTable *table_of(RdmaVerbs *v, const VerbsKind *kind)
{
    return *(GHashTable **)((char *)v + kind->table);
}

static VerbsJob *job_new(RdmaVerbs *v, const VerbsJobOps *ops,
                         const VerbsKind *kind, VerbsObj *obj)
{
    VerbsJob *job = verbs_job_new(v, ops, obj);

    job->kind = kind;
    return job;
}

static int create_work(VerbsJob *job)
{
    errno = 0;
    return job->kind->create(job->v, job->obj);
}

static void create_undo(VerbsJob *job)
{
    job->kind->destroy(job->v, job->obj);
}

static void create_take(VerbsJob *job, void *attr)
{
    VerbsObj *obj = g_steal_pointer(&job->obj);

    verbs_put(table_of(job->v, job->kind), obj->num, obj);
    if (job->kind->created) {
        job->kind->created(job->v, obj, attr);
    }
}

static void create_free(VerbsJob *job)
{
    if (job->obj) {
        job->kind->free(job->v, job->obj);
    }
}

static const VerbsJobOps create_ops = {
    .work = create_work,
    .undo = create_undo,
    .take = create_take,
    .free = create_free,
};

bool verbs_obj_lookup(RdmaVerbs *v, const VerbsKind *kind, void *attr,
                      int *ret)
{
    return verbs_job_lookup(v, &create_ops, kind, attr, ret);
}

int verbs_obj_create(RdmaVerbs *v, const VerbsKind *kind, void *obj,
                     uint32_t num)
{
    ((VerbsObj *)obj)->num = num;
    return verbs_job_begin(job_new(v, &create_ops, kind, obj));
}

static int destroy_work(VerbsJob *job)
{
    return job->kind->destroy(job->v, job->obj);
}

static void destroy_done(VerbsJob *job)
{
    const VerbsKind *kind = job->kind;
    GHashTable *table = table_of(job->v, kind);
    VerbsObj *obj = job->obj;

    if (job->ret && verbs_get(table, obj->num) == obj) {
        obj->destroying = false;
        if (kind->destroy_failed) {
            kind->destroy_failed(job->v, obj);
        }
    } else if (!job->ret || !kind->has_events) {
        verbs_remove(table, obj->num, obj);
        kind->free(job->v, obj);
    }
    /* Else a reset came meanwhile, and events of the host may still name it. */
}

static const VerbsJobOps destroy_ops = {
    .work = destroy_work,
    .done = destroy_done,
};

static VerbsJob *destroy_job(RdmaVerbs *v, const VerbsKind *kind,
                             VerbsObj *obj)
{
    obj->destroying = true;
    if (kind->destroy_begins) {
        kind->destroy_begins(v, obj);
    }
    return job_new(v, &destroy_ops, kind, obj);
}

static int await_work(VerbsJob *job)
{
    return 0;
}

static const VerbsJobOps await_ops = {
    .work = await_work,
};

int verbs_obj_destroy(RdmaVerbs *v, const VerbsKind *kind, uint32_t num)
{
    VerbsObj *obj = verbs_get(table_of(v, kind), num);
    int ret;

    if (verbs_job_lookup(v, &destroy_ops, kind, NULL, &ret)) {
        return ret;
    }
    if (!obj) {
        return 0;
    }
    if (obj->destroying) {
        /*
         * An abandoned command has a job for the destruction. Jobs are done in
         * order, so when the new job is done, the object is gone.
         */
        return verbs_job_begin(verbs_job_new(v, &await_ops, NULL));
    }
    return verbs_job_begin(destroy_job(v, kind, obj));
}

void verbs_objs_reset(RdmaVerbs *v, const VerbsKind *kind)
{
    GHashTableIter iter;
    VerbsObj *obj;

    g_hash_table_iter_init(&iter, table_of(v, kind));
    while (g_hash_table_iter_next(&iter, NULL, (void **)&obj)) {
        if (kind->is_kind && !kind->is_kind(obj)) {
            continue;
        }
        g_hash_table_iter_remove(&iter);
        /* A job of a command may be about to destroy it. */
        if (!obj->destroying) {
            verbs_job_start(destroy_job(v, kind, obj));
        }
    }
}
