/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP 1, for the connection manager of the guest.
 *
 * It has no QP of the host, because QP 1 of the port belongs to the host's
 * kernel.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "gsi.h"
#include "../trace.h"

/* Create and destroy */

typedef struct GsiJob {
    VerbsJob job;
    VerbsGsi *g;                    /* NULL: nothing to do */
    Error *err;
} GsiJob;

static int create_work(VerbsJob *job)
{
    GsiJob *j = container_of(job, GsiJob, job);

    j->g->umad = verbs_umad_open(job->v->ibdev, job->v->port_num, &j->err);
    return j->g->umad ? 0 : -ENOTSUP;
}

static void create_undo(VerbsJob *job)
{
    verbs_umad_close(container_of(job, GsiJob, job)->g->umad);
}

static void create_done(VerbsJob *job)
{
    GsiJob *j = container_of(job, GsiJob, job);
    RdmaVerbs *v = job->v;

    if (!j->err) {
        g_clear_pointer(&v->gsi_refusal, g_free);
    } else if (g_strcmp0(v->gsi_refusal, error_get_pretty(j->err))) {
        /* Warn once for each reason, as the guest may ask often. */
        g_free(v->gsi_refusal);
        v->gsi_refusal = g_strdup(error_get_pretty(j->err));
        warn_report("rdma-verbs: the guest has no RDMA CM: %s",
                    v->gsi_refusal);
    }
}

static void create_take(VerbsJob *job, void *out)
{
    VerbsGsi *g = g_steal_pointer(&container_of(job, GsiJob, job)->g);
    const RdmaQpInitAttr *init = out;

    g->init = *init;
    g->attr.port_num = RDMA_PORT_NUM;
    job->v->gsi = g;
    verbs_gsi_listen(job->v, g, true);
    trace_rdma_verbs_qp_create(job->v, RDMA_QPN_GSI, RDMA_QPN_GSI);
}

static void create_free(VerbsJob *job)
{
    GsiJob *j = container_of(job, GsiJob, job);

    error_free(j->err);
    g_free(j->g);
}

static const VerbsJobOps create_ops = {
    .work = create_work,
    .undo = create_undo,
    .done = create_done,
    .take = create_take,
    .free = create_free,
    .size = sizeof(GsiJob),
};

int verbs_gsi_create(RdmaVerbs *v, RdmaQpInitAttr *init)
{
    GsiJob *j;
    int ret;

    if (!v->cm) {
        return -ENOTSUP;
    }
    j = verbs_job_command(v, &create_ops, v, init, &ret);
    if (!j) {
        return ret;
    }
    j->g = g_new0(VerbsGsi, 1);
    return verbs_job_begin(&j->job);
}

static int destroy_work(VerbsJob *job)
{
    GsiJob *j = container_of(job, GsiJob, job);

    if (j->g) {
        verbs_umad_close(j->g->umad);
    }
    return 0;
}

static void destroy_done(VerbsJob *job)
{
    VerbsGsi *g = container_of(job, GsiJob, job)->g;

    if (g && job->v->gsi == g) {
        job->v->gsi = NULL;
    }
    g_free(g);
}

static const VerbsJobOps destroy_ops = {
    .work = destroy_work,
    .done = destroy_done,
    .size = sizeof(GsiJob),
};

/* Stop receiving, and make a job that closes QP 1. */
static GsiJob *destroy_job(RdmaVerbs *v)
{
    GsiJob *j = verbs_job_new(v, &destroy_ops, NULL);

    if (v->gsi && !v->gsi->destroying) {
        j->g = v->gsi;
        j->g->destroying = true;
        verbs_gsi_drop_wqes(j->g);
        verbs_gsi_listen(v, j->g, false);
    }
    return j;
}

int verbs_gsi_destroy(RdmaVerbs *v)
{
    int ret;

    if (verbs_job_lookup(v, &destroy_ops, NULL, NULL, &ret)) {
        return ret;
    }
    return verbs_job_begin(&destroy_job(v)->job);
}

void verbs_gsi_reset(RdmaVerbs *v)
{
    if (v->gsi) {
        verbs_job_start(&destroy_job(v)->job);
        v->gsi = NULL;
    }
}

/* State and attributes */

/* There is no SQD, as posted MADs are sent at once, and no pacing. */
static bool may_modify(RdmaVerbs *v, const VerbsGsi *g, uint8_t to,
                       uint32_t mask, const RdmaQpAttr *attr)
{
    uint8_t from = g->attr.qp_state;
    const RdmaQpLimits limits = {};
    RdmaQpRefusal r = { .from = from, .to = to };

    if (to == RDMA_QPS_SQD) {
        rdma_qp_refuse(&r, "qp_state", to, "is not for QP 1");
    } else if (mask & RDMA_QP_RATE_LIMIT) {
        rdma_qp_refuse(&r, "rate_limit", attr->rate_limit,
                       "is not for QP 1");
    } else if (rdma_qp_check_transition(RDMA_QPT_GSI, from, to, mask, &r) &&
               rdma_qp_check_values(&limits, from, mask, attr, &r)) {
        return true;
    }
    rdma_backend_qp_refused(&v->parent_obj, RDMA_QPN_GSI, &r);
    return false;
}

int verbs_gsi_modify(RdmaVerbs *v, uint32_t mask, const RdmaQpAttr *attr)
{
    VerbsGsi *g = v->gsi;
    RdmaQpState to;

    if (!g || g->destroying) {
        return -ENOENT;
    }
    to = mask & RDMA_QP_STATE ? attr->qp_state : g->attr.qp_state;
    if (!may_modify(v, g, to, mask, attr)) {
        return -EINVAL;
    }
    if (mask & RDMA_QP_QKEY) {
        g->attr.qkey = attr->qkey;
    }
    if (mask & RDMA_QP_SQ_PSN) {
        g->attr.sq_psn = attr->sq_psn & RDMA_24BIT_MASK;
    }
    if (to == RDMA_QPS_ERR) {
        verbs_gsi_enter_err(v, g);
    } else if (to == RDMA_QPS_RESET) {
        uint32_t nsend = g_queue_get_length(&g->sends);
        uint32_t nrecv = g_queue_get_length(&g->recvs);

        verbs_gsi_set_state(v, g, to);
        verbs_gsi_drop_wqes(g);
        verbs_retire(v, RDMA_QPN_GSI, RDMA_SQ, nsend);
        verbs_retire(v, RDMA_QPN_GSI, RDMA_RQ, nrecv);
    } else {
        verbs_gsi_set_state(v, g, to);
    }
    return 0;
}

int verbs_gsi_query(RdmaVerbs *v, RdmaQpAttr *attr)
{
    VerbsGsi *g = v->gsi;

    if (!g || g->destroying) {
        return -ENOENT;
    }
    *attr = g->attr;
    attr->cur_qp_state = attr->qp_state;
    return 0;
}

int verbs_gsi_fail(RdmaVerbs *v)
{
    if (!v->gsi || v->gsi->destroying) {
        return -ENOENT;
    }
    verbs_gsi_enter_err(v, v->gsi);
    return 0;
}

bool verbs_gsi_in_state(RdmaVerbs *v, RdmaQpState state)
{
    return v->gsi && v->gsi->attr.qp_state == state;
}
