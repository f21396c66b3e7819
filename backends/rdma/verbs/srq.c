/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues. Their work requests complete in any order. Each has a
 * slot, which is part of the wr_id that the host returns.
 */
#include "qemu/osdep.h"
#include "int.h"

static int host_create(RdmaVerbs *v, void *obj)
{
    VerbsSrq *srq = obj;
    struct ibv_srq_init_attr init = {
        .srq_context = srq,
        .attr = {
            .max_wr = srq->rq.max,
            .max_sge = MAX(srq->max_sge, 1),
        },
    };

    srq->srq = ibv_create_srq(srq->pd, &init);
    return verbs_create_result(srq->srq);
}

static int host_destroy(RdmaVerbs *v, void *obj)
{
    VerbsSrq *srq = obj;

    return verbs_dev_destroyed(v, ibv_destroy_srq(srq->srq));
}

static void created(RdmaVerbs *v, void *obj, void *attr)
{
    VerbsSrq *srq = obj;

    verbs_put(v->srqs_by_id, srq->id, srq);
}

static void srq_free(RdmaVerbs *v, void *obj)
{
    VerbsSrq *srq = obj;

    verbs_remove(v->srqs_by_id, srq->id, srq);
    verbs_wq_free(&srq->rq);
    g_free(srq->free);
    g_free(srq);
}

const VerbsKind verbs_srq_kind = {
    .table = offsetof(RdmaVerbs, srqs),
    .has_events = true,
    .create = host_create,
    .destroy = host_destroy,
    .created = created,
    .free = srq_free,
};

static VerbsSrq *srq_new(RdmaVerbs *v, uint32_t max_wr)
{
    VerbsSrq *srq = g_new0(VerbsSrq, 1);

    srq->id = ++v->next_id;
    srq->free = g_try_new(uint32_t, max_wr);
    if (!verbs_wq_init(&srq->rq, max_wr) || !srq->free) {
        srq_free(v, srq);
        return NULL;
    }
    for (uint32_t i = 0; i < max_wr; i++) {
        srq->free[i] = max_wr - 1 - i;
    }
    return srq;
}

static int create_srq(RdmaBackend *rb, const RdmaSrqAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsPd *pd = verbs_get_live(v->pds, attr->pdn);
    VerbsSrq *srq;
    int ret;

    if (verbs_obj_lookup(v, &verbs_srq_kind, NULL, &ret)) {
        return ret;
    }
    if (!pd) {
        return -ENOENT;
    }
    srq = srq_new(v, attr->max_wr);
    if (!srq) {
        return -ENOMEM;
    }
    srq->limit = attr->limit;
    srq->max_sge = attr->max_sge;
    srq->pd = pd->pd;
    return verbs_obj_create(v, &verbs_srq_kind, srq, attr->srqn);
}

static int limit_work(VerbsJob *job)
{
    VerbsSrq *srq = job->obj;
    struct ibv_srq_attr attr = { .srq_limit = job->arg };

    return -ibv_modify_srq(srq->srq, &attr, IBV_SRQ_LIMIT);
}

static void limit_done(VerbsJob *job)
{
    VerbsSrq *srq = job->obj;

    if (!job->ret) {
        srq->limit = 0;
    }
}

static const VerbsJobOps limit_ops = {
    .work = limit_work,
    .done = limit_done,
};

static int query_work(VerbsJob *job)
{
    VerbsSrq *srq = job->obj;
    struct ibv_srq_attr attr = {};
    int ret = ibv_query_srq(srq->srq, &attr);

    job->arg = attr.srq_limit;
    return -ret;
}

static void query_take(VerbsJob *job, void *out)
{
    VerbsSrq *srq = job->obj;
    RdmaSrqAttr *attr = out;

    attr->srqn = srq->obj.num;
    attr->limit = srq->limit ?: job->arg;
}

static const VerbsJobOps query_ops = {
    .work = query_work,
    .take = query_take,
};

/* A command with @ops for an SRQ: set its limit, or query it. */
static int command(RdmaBackend *rb, const VerbsJobOps *ops, uint32_t srqn,
                   uint32_t limit, RdmaSrqAttr *out)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsJob *job;
    int ret;

    job = verbs_job_command(v, ops, verbs_get_live(v->srqs, srqn), out, &ret);
    if (!job) {
        return ret;
    }
    job->arg = limit;
    return verbs_job_begin(job);
}

static int set_srq_limit(RdmaBackend *rb, uint32_t srqn, uint32_t limit)
{
    return command(rb, &limit_ops, srqn, limit, NULL);
}

static int query_srq(RdmaBackend *rb, uint32_t srqn, RdmaSrqAttr *attr)
{
    return command(rb, &query_ops, srqn, 0, attr);
}

uint32_t verbs_srq_room(const VerbsSrq *srq)
{
    return srq->failed ? 0 : srq->rq.max - srq->rq.count;
}

void verbs_srq_post(RdmaVerbs *v, VerbsSrq *srq, const RdmaRecvWr *wr)
{
    uint32_t slot = srq->free[srq->rq.max - srq->rq.count - 1];
    VerbsWqe *wqe = &srq->rq.wqe[slot];

    *wqe = (VerbsWqe) { .wr_id = wr->wr_id, .opcode = RDMA_WC_RECV };
    if (!verbs_post_recv_host(NULL, srq->srq, wqe, verbs_srq_wr_id(srq, slot),
                              wr)) {
        srq->failed = true;
        verbs_raise_event(v, RDMA_EVENT_SRQ_ERR, srq->obj.num);
        return;
    }
    wqe->posted = true;
    srq->rq.count++;
}

void verbs_srq_class_init(RdmaBackendClass *rbc)
{
    rbc->create_srq = create_srq;
    rbc->set_srq_limit = set_srq_limit;
    rbc->query_srq = query_srq;
}
