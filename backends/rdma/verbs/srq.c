/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues. Their work requests complete in any order, so each
 * has a slot, which the host returns with its completion.
 */
#include "qemu/osdep.h"
#include "int.h"

typedef struct SrqJob {
    VerbsJob job;
    VerbsSrq *srq;
    struct ibv_pd *pd;
    RdmaSrqAttr attr;
} SrqJob;

static void srq_free(VerbsSrq *srq)
{
    if (srq) {
        verbs_wq_free(&srq->rq);
        g_free(srq->free);
        g_free(srq);
    }
}

static int create_work(VerbsJob *job)
{
    SrqJob *j = container_of(job, SrqJob, job);
    struct ibv_srq_init_attr init = {
        .srq_context = j->srq,
        .attr = {
            .max_wr = j->attr.max_wr,
            .max_sge = MAX(j->attr.max_sge, 1),
        },
    };

    j->srq->srq = ibv_create_srq(j->pd, &init);
    return j->srq->srq ? 0 : -(errno ?: EIO);
}

static void create_undo(VerbsJob *job)
{
    ibv_destroy_srq(container_of(job, SrqJob, job)->srq->srq);
}

static void create_take(VerbsJob *job, void *srqn)
{
    VerbsSrq *srq = g_steal_pointer(&container_of(job, SrqJob, job)->srq);

    srq->srqn = *(uint32_t *)srqn;
    verbs_put(job->v->srqs, srq->srqn, srq);
    verbs_put(job->v->srqs_by_id, srq->id, srq);
}

static void create_free(VerbsJob *job)
{
    SrqJob *j = container_of(job, SrqJob, job);

    srq_free(j->srq);
    g_free(j);
}

static const VerbsJobOps create_ops = {
    .work = create_work,
    .undo = create_undo,
    .take = create_take,
    .free = create_free,
};

static VerbsSrq *srq_new(RdmaVerbs *v, uint32_t max_wr)
{
    VerbsSrq *srq = g_new0(VerbsSrq, 1);

    srq->id = ++v->next_id;
    srq->free = g_try_new(uint32_t, max_wr);
    if (!verbs_wq_init(&srq->rq, max_wr) || !srq->free) {
        srq_free(srq);
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
    VerbsPd *pd = verbs_get_pd(v, attr->pdn);
    const uint32_t key[] = { attr->pdn, attr->max_wr, attr->max_sge,
                             attr->limit };
    uint32_t srqn = attr->srqn;
    SrqJob *j;
    int ret;

    if (verbs_job_ask(v, &create_ops, key, sizeof(key), &srqn, &ret)) {
        return ret;
    }
    if (!pd) {
        return -ENOENT;
    }
    j = g_new0(SrqJob, 1);
    j->srq = srq_new(v, attr->max_wr);
    if (!j->srq) {
        g_free(j);
        return -ENOMEM;
    }
    j->srq->limit = attr->limit;
    j->pd = pd->pd;
    j->attr = *attr;
    return verbs_job_begin(v, &j->job, &create_ops, key, sizeof(key));
}

static int limit_work(VerbsJob *job)
{
    SrqJob *j = container_of(job, SrqJob, job);
    struct ibv_srq_attr attr = { .srq_limit = j->attr.limit };

    return -ibv_modify_srq(j->srq->srq, &attr, IBV_SRQ_LIMIT);
}

static void limit_done(VerbsJob *job)
{
    SrqJob *j = container_of(job, SrqJob, job);

    if (!job->ret) {
        j->srq->limit = 0;
    }
}

static const VerbsJobOps limit_ops = {
    .work = limit_work,
    .done = limit_done,
};

static int query_work(VerbsJob *job)
{
    SrqJob *j = container_of(job, SrqJob, job);
    struct ibv_srq_attr attr = {};
    int ret = ibv_query_srq(j->srq->srq, &attr);

    j->attr.limit = attr.srq_limit;
    return -ret;
}

static void query_take(VerbsJob *job, void *out)
{
    SrqJob *j = container_of(job, SrqJob, job);
    RdmaSrqAttr *attr = out;

    attr->srqn = j->srq->srqn;
    attr->limit = j->srq->limit ?: j->attr.limit;
}

static const VerbsJobOps query_ops = {
    .work = query_work,
    .take = query_take,
};

/* The command that @ops do for an SRQ: set its limit, or query it. */
static int command(RdmaBackend *rb, const VerbsJobOps *ops, uint32_t srqn,
                   uint32_t limit, RdmaSrqAttr *out)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsSrq *srq = verbs_get_srq(v, srqn);
    const uint32_t key[] = { srqn, limit };
    SrqJob *j;
    int ret;

    if (verbs_job_ask(v, ops, key, sizeof(key), out, &ret)) {
        return ret;
    }
    if (!srq) {
        return -ENOENT;
    }
    j = g_new0(SrqJob, 1);
    j->srq = srq;
    j->attr.limit = limit;
    return verbs_job_begin(v, &j->job, ops, key, sizeof(key));
}

static int set_srq_limit(RdmaBackend *rb, uint32_t srqn, uint32_t limit)
{
    return command(rb, &limit_ops, srqn, limit, NULL);
}

static int query_srq(RdmaBackend *rb, uint32_t srqn, RdmaSrqAttr *attr)
{
    return command(rb, &query_ops, srqn, 0, attr);
}

static int destroy_work(VerbsJob *job)
{
    SrqJob *j = container_of(job, SrqJob, job);

    return verbs_dev_destroyed(job->v, ibv_destroy_srq(j->srq->srq));
}

static void destroy_done(VerbsJob *job)
{
    VerbsSrq *srq = container_of(job, SrqJob, job)->srq;

    if (!job->ret) {
        verbs_drop(job->v->srqs, srq->srqn, srq);
        verbs_drop(job->v->srqs_by_id, srq->id, srq);
        srq_free(srq);
    } else {
        srq->dead = false;
    }
}

static const VerbsJobOps destroy_ops = {
    .work = destroy_work,
    .done = destroy_done,
};

int verbs_srq_destroy(RdmaBackend *rb, uint32_t srqn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsSrq *srq = verbs_get(v->srqs, srqn);
    SrqJob *j;
    int ret;

    if (verbs_job_ask(v, &destroy_ops, &srqn, sizeof(srqn), NULL, &ret)) {
        return ret;
    }
    if (!srq) {
        return 0;
    }
    if (srq->dead) {
        return verbs_job_await_others(v);
    }
    srq->dead = true;
    j = g_new0(SrqJob, 1);
    j->srq = srq;
    return verbs_job_begin(v, &j->job, &destroy_ops, &srqn, sizeof(srqn));
}

uint32_t verbs_srq_room(RdmaVerbs *v, uint32_t srqn)
{
    const VerbsSrq *srq = verbs_get_srq(v, srqn);

    return srq && !srq->failed ? srq->rq.max - srq->rq.count : 0;
}

/* The host refuses a receive, which nothing is wrong with any more. */
static void fail(RdmaVerbs *v, VerbsSrq *srq)
{
    const RdmaEvent event = { RDMA_EVENT_SRQ_ERR, srq->srqn };
    RdmaBackend *rb = &v->parent_obj;

    srq->failed = true;
    rb->client_ops->consumer.event(rb->client_opaque, &event);
}

void verbs_srq_post(RdmaVerbs *v, uint32_t srqn, const RdmaRecvWr *wr)
{
    VerbsSrq *srq = verbs_get_srq(v, srqn);
    uint32_t slot = srq->free[srq->rq.max - srq->rq.count - 1];
    struct ibv_sge poison = { .length = 1 };
    struct ibv_recv_wr host, *bad;

    srq->rq.wqe[slot] = (VerbsWqe) {
        .wr_id = wr->wr_id,
        .status = wr->status,
        .opcode = RDMA_WC_RECV,
    };
    host = (struct ibv_recv_wr) {
        .wr_id = verbs_srq_wr_id(srq, slot),
        .sg_list = (struct ibv_sge *)wr->sg_list,
        .num_sge = wr->num_sge,
    };
    if (wr->status != RDMA_WC_SUCCESS || ibv_post_srq_recv(srq->srq, &host,
                                                           &bad)) {
        /* A message that takes it shall fail: it names no memory. */
        srq->rq.wqe[slot].status = wr->status ?: RDMA_WC_LOC_QP_OP_ERR;
        host.sg_list = &poison;
        host.num_sge = 1;
        if (ibv_post_srq_recv(srq->srq, &host, &bad)) {
            fail(v, srq);
            return;
        }
    }
    srq->rq.wqe[slot].posted = true;
    srq->rq.count++;
}

void verbs_srqs_reset(RdmaVerbs *v)
{
    GHashTableIter iter;
    VerbsSrq *srq;

    g_hash_table_remove_all(v->srqs_by_id);
    g_hash_table_iter_init(&iter, v->srqs);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&srq)) {
        g_hash_table_iter_remove(&iter);
        if (!srq->dead) {
            SrqJob *j = g_new0(SrqJob, 1);

            j->srq = srq;
            verbs_job_start(v, &j->job, &destroy_ops);
        }
    }
}

void verbs_srq_class_init(RdmaBackendClass *rbc)
{
    rbc->create_srq = create_srq;
    rbc->set_srq_limit = set_srq_limit;
    rbc->query_srq = query_srq;
}
