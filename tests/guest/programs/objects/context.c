/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contexts of objects, by which a program finds its own data for an event */
#include <errno.h>
#include <string.h>
#include "objects.h"

static int mine[5];

static void must_have(const char *what, const void *got, const void *wanted)
{
    if (got != wanted) {
        fail("%s has the context %p, not %p", what, got, wanted);
    }
}

static void qp_has(const char *what, struct ibv_qp *qp, const void *wanted)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    if (!qp) {
        fail("no QP of %s: %s", what, strerror(errno));
    }
    must_have(what, qp->qp_context, wanted);
    if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init)) {
        fail("ibv_query_qp: %s", strerror(errno));
    }
    must_have("what ibv_query_qp says", init.qp_context, wanted);
    if (ibv_destroy_qp(qp)) {
        fail("cannot destroy a QP");
    }
}

/* Each call that creates an object stores the context. */
void contexts(char **args)
{
    struct ibv_cq *cq = ibv_create_cq(dev.ctx, 4, &mine[0], NULL, 0);
    struct ibv_cq_init_attr_ex cq_init = { .cqe = 4, .cq_context = &mine[1] };
    struct ibv_cq_ex *cq_ex = ibv_create_cq_ex(dev.ctx, &cq_init);
    struct ibv_srq_init_attr srq_init = {
        .srq_context = &mine[2],
        .attr = { .max_wr = 4, .max_sge = 1 },
    };
    struct ibv_srq *srq = ibv_create_srq(dev.pd, &srq_init);
    struct ibv_qp_init_attr init = {
        .qp_context = &mine[3],
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { 4, 4, 1, 1, 0 },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_init_attr_ex init_ex = {
        .qp_context = &mine[4],
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { 4, 4, 1, 1, 0 },
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = dev.pd,
    };

    (void)args;
    if (!cq || !cq_ex || !srq) {
        fail("no CQ, or no SRQ: %s", strerror(errno));
    }
    must_have("ibv_create_cq", cq->cq_context, &mine[0]);
    must_have("ibv_create_cq_ex", cq_ex->cq_context, &mine[1]);
    must_have("ibv_create_srq", srq->srq_context, &mine[2]);
    qp_has("ibv_create_qp", ibv_create_qp(dev.pd, &init), &mine[3]);
    qp_has("ibv_create_qp_ex", ibv_create_qp_ex(dev.ctx, &init_ex), &mine[4]);
    if (ibv_destroy_srq(srq) || ibv_destroy_cq(cq) ||
        ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex))) {
        fail("cannot destroy a CQ or an SRQ");
    }
}
