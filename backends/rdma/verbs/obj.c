/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of the host: jobs create and destroy them, see VerbsKind.
 */
#include "qemu/osdep.h"
#include "int.h"

typedef struct ObjJob {
    VerbsJob job;
    const VerbsKind *kind;
    VerbsObj *obj;
} ObjJob;

/* Argument of create_take() */
typedef struct Created {
    uint32_t num;
    void *attr;
} Created;

static GHashTable *table_of(RdmaVerbs *v, const VerbsKind *kind)
{
    return *(GHashTable **)((char *)v + kind->table);
}

static ObjJob *job_new(const VerbsKind *kind, VerbsObj *obj)
{
    ObjJob *j = g_new0(ObjJob, 1);

    j->kind = kind;
    j->obj = obj;
    return j;
}

static int create_work(VerbsJob *job)
{
    ObjJob *j = container_of(job, ObjJob, job);

    errno = 0;
    return j->kind->create(job->v, j->obj);
}

static void create_undo(VerbsJob *job)
{
    ObjJob *j = container_of(job, ObjJob, job);

    j->kind->destroy(job->v, j->obj);
}

static void create_take(VerbsJob *job, void *out)
{
    ObjJob *j = container_of(job, ObjJob, job);
    VerbsObj *obj = g_steal_pointer(&j->obj);
    const Created *created = out;

    obj->num = created->num;
    verbs_put(table_of(job->v, j->kind), obj->num, obj);
    if (j->kind->created) {
        j->kind->created(job->v, obj, created->attr);
    }
}

static void create_free(VerbsJob *job)
{
    ObjJob *j = container_of(job, ObjJob, job);

    if (j->obj) {
        j->kind->free(job->v, j->obj);
    }
    g_free(j);
}

static const VerbsJobOps create_ops = {
    .work = create_work,
    .undo = create_undo,
    .take = create_take,
    .free = create_free,
};

bool verbs_obj_lookup(RdmaVerbs *v, const VerbsKind *kind, const void *key,
                      size_t key_len, uint32_t num, void *attr, int *ret)
{
    Created created = { num, attr };

    return verbs_job_lookup(v, kind, key, key_len, &created, ret);
}

int verbs_obj_create(RdmaVerbs *v, const VerbsKind *kind, void *obj,
                     const void *key, size_t key_len)
{
    return verbs_job_begin_as(v, &job_new(kind, obj)->job, &create_ops, kind,
                              key, key_len);
}

static int destroy_work(VerbsJob *job)
{
    ObjJob *j = container_of(job, ObjJob, job);

    return j->kind->destroy(job->v, j->obj);
}

static void destroy_done(VerbsJob *job)
{
    ObjJob *j = container_of(job, ObjJob, job);
    GHashTable *table = table_of(job->v, j->kind);
    VerbsObj *obj = j->obj;

    if (job->ret && verbs_get(table, obj->num) == obj) {
        obj->destroying = false;
        if (j->kind->destroy_failed) {
            j->kind->destroy_failed(job->v, obj);
        }
    } else if (!job->ret || !j->kind->has_events) {
        verbs_remove(table, obj->num, obj);
        j->kind->free(job->v, obj);
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
    return &job_new(kind, obj)->job;
}

int verbs_obj_destroy(RdmaVerbs *v, const VerbsKind *kind, uint32_t num)
{
    VerbsObj *obj = verbs_get(table_of(v, kind), num);
    int ret;

    if (verbs_job_lookup(v, &kind->destroy, &num, sizeof(num), NULL, &ret)) {
        return ret;
    }
    if (!obj) {
        return 0;
    }
    if (obj->destroying) {
        return verbs_job_await_others(v);
    }
    return verbs_job_begin_as(v, destroy_job(v, kind, obj), &destroy_ops,
                              &kind->destroy, &num, sizeof(num));
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
            verbs_job_start(v, destroy_job(v, kind, obj), &destroy_ops);
        }
    }
}
