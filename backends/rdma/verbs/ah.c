/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Address handles. Each datagram of the guest has its address, but the host
 * needs an object for it. Handles are cached as long as there is room. A job
 * creates them, because the system call may wait for a neighbour's address.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "int.h"
#include "../trace.h"

/*
 * Handles in the cache. If it is full, handles that no work request uses are
 * dropped; if there are none, a queue waits.
 */
#define MAX_AHS 1024

/* How long a failure is cached */
#define RETRY_MS 1000

typedef struct AhKey {
    struct ibv_pd *pd;
    struct ibv_ah_attr attr;
} AhKey;

struct VerbsAh {
    AhKey key;
    RdmaVerbs *v;
    struct ibv_ah *ah;              /* of the worker while @create_job is set */
    unsigned users;                 /* WQEs, the cache, and the job */
    VerbsJob *create_job;           /* in progress, or NULL */
    int error;                      /* of the last attempt, or 0 */
    int64_t retry_at;               /* ms, if creating it has failed */
    GArray *waiters;                /* of uint32_t: ids of QPs */
};

static guint ah_hash(gconstpointer key)
{
    const uint8_t *bytes = key;
    guint h = 5381;

    for (size_t i = 0; i < sizeof(AhKey); i++) {
        h = h * 33 + bytes[i];
    }
    return h;
}

static gboolean ah_equal(gconstpointer a, gconstpointer b)
{
    return !memcmp(a, b, sizeof(AhKey));
}

static void wake(RdmaVerbs *v, GArray *waiters)
{
    for (guint i = 0; i < waiters->len; i++) {
        VerbsQp *qp = verbs_get(v->qps_by_id,
                                g_array_index(waiters, uint32_t, i));

        if (qp) {
            verbs_pull_soon(v, RDMA_SQ, qp->init.qpn);
        }
    }
    g_array_set_size(waiters, 0);
}

/* Add @qp to @waiters. Kicks repeat the call, so it may be there already. */
static int await(VerbsQp *qp, GArray *waiters)
{
    for (guint i = 0; i < waiters->len; i++) {
        if (g_array_index(waiters, uint32_t, i) == qp->id) {
            return -EAGAIN;
        }
    }
    g_array_append_val(waiters, qp->id);
    return -EAGAIN;
}

static int destroy_work(VerbsJob *job)
{
    return verbs_dev_destroyed(job->v, ibv_destroy_ah(job->obj));
}

static const VerbsJobOps destroy_ops = {
    .work = destroy_work,
};

VerbsAh *verbs_ah_hold(VerbsAh *a)
{
    a->users++;
    return a;
}

void verbs_ah_put(VerbsAh *a)
{
    if (!a) {
        return;
    }
    if (--a->users) {
        if (a->users == 1) {
            wake(a->v, a->v->ah_waiters);
        }
        return;
    }
    if (a->ah) {
        verbs_job_start(verbs_job_new(a->v, &destroy_ops, a->ah));
    }
    g_array_free(a->waiters, true);
    g_free(a);
}

/*
 * Returns -EHOSTUNREACH if the host's kernel has no route or neighbour for the
 * address, or not now. Other errors are those of this host.
 */
static int create_error(int err)
{
    switch (err) {
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ETIMEDOUT:
    case ENODATA:
    case EAGAIN:
    case EINTR:
        return -EHOSTUNREACH;
    default:
        return -(err ?: EIO);
    }
}

static int create_work(VerbsJob *job)
{
    VerbsAh *a = job->obj;

    a->ah = ibv_create_ah(a->key.pd, &a->key.attr);
    return a->ah ? 0 : create_error(errno);
}

static void create_undo(VerbsJob *job)
{
    VerbsAh *a = job->obj;

    ibv_destroy_ah(g_steal_pointer(&a->ah));
}

static void create_done(VerbsJob *job)
{
    VerbsAh *a = job->obj;

    trace_rdma_verbs_ah_made(job->v, job->ret);
    a->create_job = NULL;
    a->error = job->ret;
    a->retry_at = qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + RETRY_MS;
    wake(job->v, a->waiters);
    verbs_ah_put(a);
}

static const VerbsJobOps create_ops = {
    .work = create_work,
    .undo = create_undo,
    .done = create_done,
};

static void start_create(RdmaVerbs *v, VerbsAh *a)
{
    a->create_job = verbs_job_new(v, &create_ops, verbs_ah_hold(a));
    verbs_job_start(a->create_job);
}

/* Does no work request or job use the handle? */
static gboolean is_idle(gpointer key, gpointer value, gpointer opaque)
{
    return ((VerbsAh *)value)->users == 1;
}

/* Is there room for one more, perhaps after dropping idle ones? */
static bool have_room(RdmaVerbs *v)
{
    unsigned max = MIN(MAX_AHS, MAX(v->dev.attr.max_ah, 1));

    if (g_hash_table_size(v->ahs) >= max) {
        g_hash_table_foreach_remove(v->ahs, is_idle, NULL);
    }
    return g_hash_table_size(v->ahs) < max;
}

int verbs_ah_get(RdmaVerbs *v, VerbsQp *qp, const RdmaAv *av, VerbsAh **ah)
{
    AhKey key;
    VerbsAh *a;

    memset(&key, 0, sizeof(key));
    key.pd = qp->pd;
    if (verbs_gid_path(v, av, &key.attr)) {
        return -EINVAL;
    }
    a = g_hash_table_lookup(v->ahs, &key);
    if (!a) {
        if (!have_room(v)) {
            return await(qp, v->ah_waiters);
        }
        a = g_new0(VerbsAh, 1);
        memcpy(&a->key, &key, sizeof(key));
        a->v = v;
        a->users = 1;
        a->waiters = g_array_new(false, false, sizeof(uint32_t));
        g_hash_table_insert(v->ahs, &a->key, a);
        start_create(v, a);
    } else if (!a->create_job && !a->ah &&
               qemu_clock_get_ms(QEMU_CLOCK_REALTIME) > a->retry_at) {
        start_create(v, a);
    }
    if (a->create_job) {
        return await(qp, a->waiters);
    }
    if (!a->ah) {
        return a->error;
    }
    *ah = verbs_ah_hold(a);
    return 0;
}

struct ibv_ah *verbs_ah_host(VerbsAh *a)
{
    return a->ah;
}

static gboolean is_of_pd(gpointer key, gpointer value, gpointer pd)
{
    VerbsAh *a = value;

    if (pd && a->key.pd != pd) {
        return false;
    }
    if (a->create_job) {
        verbs_job_cancel(a->v, a->create_job);
    }
    return true;
}

void verbs_ahs_drop(RdmaVerbs *v, struct ibv_pd *pd)
{
    g_hash_table_foreach_remove(v->ahs, is_of_pd, pd);
}

void verbs_ahs_init(RdmaVerbs *v)
{
    v->ahs = g_hash_table_new_full(ah_hash, ah_equal, NULL,
                                   (GDestroyNotify)verbs_ah_put);
    v->ah_waiters = g_array_new(false, false, sizeof(uint32_t));
}

void verbs_ahs_free(RdmaVerbs *v)
{
    g_clear_pointer(&v->ahs, g_hash_table_destroy);
    g_array_free(v->ah_waiters, true);
    v->ah_waiters = NULL;
}
