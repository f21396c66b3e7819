/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP 1, for the connection manager of the guest.
 *
 * It is in the table of QPs, but has no QP of the host, because QP 1 of the
 * port belongs to the host's kernel.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "gsi.h"
#include "../trace.h"

/* Create and destroy */

VerbsGsi *verbs_gsi_new(RdmaVerbs *v, VerbsQp *qp)
{
    VerbsGsi *g = g_new0(VerbsGsi, 1);

    g->v = v;
    g->qp = qp;
    return g;
}

int verbs_gsi_open(VerbsGsi *g)
{
    g->umad = verbs_umad_open(g->v->ibdev, g->v->port_num, &g->err);
    return g->umad ? 0 : -ENOTSUP;
}

void verbs_gsi_destroy_begins(VerbsGsi *g)
{
    verbs_gsi_drop_wqes(g);
    verbs_gsi_listen(g, false);
}

void verbs_gsi_close(VerbsGsi *g)
{
    verbs_umad_close(g->umad);
}

void verbs_gsi_opened(VerbsGsi *g)
{
    g_clear_pointer(&g->v->gsi_refusal, g_free);
    verbs_gsi_listen(g, true);
}

/* Warn once for each reason, as the guest may ask often. */
static void warn_refused(RdmaVerbs *v, const Error *err)
{
    if (g_strcmp0(v->gsi_refusal, error_get_pretty(err))) {
        g_free(v->gsi_refusal);
        v->gsi_refusal = g_strdup(error_get_pretty(err));
        warn_report("rdma-verbs: the guest has no RDMA CM: %s",
                    v->gsi_refusal);
    }
}

void verbs_gsi_free(VerbsGsi *g)
{
    if (g && g->err) {
        warn_refused(g->v, g->err);
        error_free(g->err);
    }
    if (g) {
        g_free(g->recv_sge);
    }
    g_free(g);
}

/* State and attributes */

/* There is no SQD, as posted MADs are sent at once, and no pacing. */
static bool may_modify(VerbsGsi *g, uint8_t from, uint8_t to, uint32_t mask,
                       const RdmaQpAttr *attr)
{
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
    rdma_backend_qp_refused(&g->v->parent_obj, RDMA_QPN_GSI, &r);
    return false;
}

int verbs_gsi_modify(VerbsGsi *g, uint32_t mask, const RdmaQpAttr *attr)
{
    VerbsQp *qp = g->qp;
    RdmaQpState from = verbs_qp_state(qp);
    RdmaQpState to = mask & RDMA_QP_STATE ? attr->qp_state : from;

    if (!may_modify(g, from, to, mask, attr)) {
        return -EINVAL;
    }
    verbs_qp_note(qp, mask, attr);
    if (!(mask & RDMA_QP_STATE)) {
        return 0;
    }
    trace_rdma_verbs_qp_state(g->v, RDMA_QPN_GSI, from, to);
    qp->sqe = false;
    if (to == RDMA_QPS_ERR) {
        verbs_qp_fail(g->v, qp);
        return 0;
    }
    qp->state = to;
    if (to == RDMA_QPS_RESET) {
        verbs_gsi_drop_wqes(g);
    }
    return 0;
}

void verbs_gsi_query(const VerbsGsi *g, RdmaQpAttr *attr)
{
    *attr = g->qp->set_attr;
    attr->qp_state = verbs_qp_state(g->qp);
    attr->cur_qp_state = attr->qp_state;
    attr->sq_psn &= RDMA_24BIT_MASK;
    attr->port_num = RDMA_PORT_NUM;
}
