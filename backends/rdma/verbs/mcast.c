/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups. The host does not destroy a QP that is in a group. All
 * users of the host's device share its groups, so the limits of the adapter
 * apply to each guest.
 *
 * Attach, detach and destroy are jobs, so only the worker uses lists of groups.
 */
#include "qemu/osdep.h"
#include "int.h"

typedef struct McastJob {
    VerbsJob job;
    union ibv_gid gid;
} McastJob;

/* Worker */

static int find_group(const VerbsQp *qp, const union ibv_gid *gid)
{
    for (guint i = 0; i < qp->groups->len; i++) {
        if (!memcmp(&g_array_index(qp->groups, union ibv_gid, i), gid,
                    sizeof(*gid))) {
            return i;
        }
    }
    return -1;
}

static unsigned count_members(RdmaVerbs *v, const union ibv_gid *gid)
{
    g_autoptr(GBytes) key = g_bytes_new(gid, sizeof(*gid));

    return GPOINTER_TO_UINT(g_hash_table_lookup(v->groups, key));
}

static void set_members(RdmaVerbs *v, const union ibv_gid *gid, unsigned n)
{
    g_autoptr(GBytes) key = g_bytes_new(gid, sizeof(*gid));

    if (n) {
        g_hash_table_insert(v->groups, g_steal_pointer(&key),
                            GUINT_TO_POINTER(n));
    } else {
        g_hash_table_remove(v->groups, key);
    }
}

static int attach_work(VerbsJob *job)
{
    McastJob *j = container_of(job, McastJob, job);
    const RdmaBackendLimits *l = &job->v->parent_obj.limits;
    VerbsQp *qp = job->obj;
    unsigned n = count_members(job->v, &j->gid);
    int ret;

    if (find_group(qp, &j->gid) >= 0) {
        return -EINVAL;
    }
    if (n ? n >= l->max_mcast_qp_attach
          : g_hash_table_size(job->v->groups) >= l->max_mcast_grp) {
        return -ENOMEM;
    }
    ret = -ibv_attach_mcast(qp->qp, &j->gid, 0);
    if (!ret) {
        g_array_append_val(qp->groups, j->gid);
        set_members(job->v, &j->gid, n + 1);
    }
    return ret;
}

static int leave_group(RdmaVerbs *v, VerbsQp *qp, int i)
{
    union ibv_gid gid = g_array_index(qp->groups, union ibv_gid, i);
    int ret = verbs_dev_destroyed(v, ibv_detach_mcast(qp->qp, &gid, 0));

    if (!ret) {
        g_array_remove_index_fast(qp->groups, i);
        set_members(v, &gid, count_members(v, &gid) - 1);
    }
    return ret;
}

static int detach_work(VerbsJob *job)
{
    McastJob *j = container_of(job, McastJob, job);
    int i = find_group(job->obj, &j->gid);

    return i < 0 ? -EINVAL : leave_group(job->v, job->obj, i);
}

static void attach_undo(VerbsJob *job)
{
    detach_work(job);
}

static const VerbsJobOps attach_ops = {
    .work = attach_work,
    .undo = attach_undo,
    .size = sizeof(McastJob),
};

static const VerbsJobOps detach_ops = {
    .work = detach_work,
    .size = sizeof(McastJob),
};

int verbs_mcast_leave_all(RdmaVerbs *v, VerbsQp *qp)
{
    int ret = 0;

    while (!ret && qp->groups->len) {
        ret = leave_group(v, qp, qp->groups->len - 1);
    }
    return ret;
}

int verbs_set_mcast(RdmaBackend *rb, uint32_t qpn,
                    const uint8_t gid[RDMA_GID_LEN], bool attach)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    McastJob *j;
    int ret;

    j = verbs_job_command(v, attach ? &attach_ops : &detach_ops,
                          verbs_get_live(v->qps, qpn), NULL, &ret);
    if (!j) {
        return ret;
    }
    memcpy(j->gid.raw, gid, RDMA_GID_LEN);
    return verbs_job_begin(&j->job);
}
