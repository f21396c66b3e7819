/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of receive queues, shared and of queue pairs.
 */
#include <glib.h>
#include "state-check.h"

static char *check_recv_wqe(const RoceRecvWqe *wqe, uint32_t max_sge)
{
    REFUSE_ABOVE(wqe, status, RDMA_WC_GENERAL_ERR);
    REFUSE_ABOVE(wqe, num_sge, max_sge);
    return NULL;
}

static char *check_recv_wqes(const RoceRecvWqe *wqes, uint32_t n,
                             uint32_t max_sge, uint32_t n_sges)
{
    uint64_t sges = 0;
    uint32_t i;

    for (i = 0; i < n; i++) {
        REFUSE_AS(roce_check_nth("receive request", i,
                                 check_recv_wqe(&wqes[i], max_sge)));
        sges += wqes[i].num_sge;
    }
    REFUSE_IF(sges != n_sges, "n_recv_sges %u is not %" PRIu64
              ", the sum of num_sge", n_sges, sges);
    return NULL;
}

char *roce_check_srq(const RoceSrqImage *image, const RdmaSrqAttr *max)
{
    const RdmaSrqAttr *attr = &image->attr;

    REFUSE_ABOVE(attr, max_wr, max->max_wr);
    REFUSE_ABOVE(attr, max_sge, max->max_sge);
    REFUSE_IF(image->n_recv > 1, "n_recv %u exceeds 1", image->n_recv);
    return check_recv_wqes(image->recv, image->n_recv, attr->max_sge,
                           image->n_recv_sges);
}

char *roce_explain_srq(const RoceEngine *e, const RdmaSrqAttr *attr)
{
    REFUSE_IF(attr->srqn >= e->config.max_srq,
              "srqn %u is not below %u", attr->srqn, e->config.max_srq);
    REFUSE_IF(!attr->max_wr, "max_wr is 0");
    REFUSE_ABOVE(attr, max_wr, ROCE_MAX_WR);
    REFUSE_IF(attr->limit > attr->max_wr, "limit %u exceeds max_wr %u",
              attr->limit, attr->max_wr);
    REFUSE_IF(roce_srq_find(e, attr->srqn), "srqn %u is in use", attr->srqn);
    return g_strdup_printf("no memory for a queue with max_wr %u and max_sge "
                           "%u", attr->max_wr, attr->max_sge);
}

/* A connected QP may have taken one WQE from its SRQ. */
char *roce_check_rq(const RoceEngine *e, const RoceQpImage *image)
{
    const RoceRqState *rq = &image->s.rq;
    const RdmaQpCap *cap = &image->init.cap;
    uint32_t n = rq->prod - rq->cons;
    uint32_t max_wr = MIN(cap->max_recv_wr, 1);
    uint32_t max_sge = cap->max_recv_sge;

    if (image->init.has_srq) {
        const RoceSrq *srq = roce_srq_find(e, image->init.srqn);

        REFUSE_IF(!srq, "srqn %u is not a shared receive queue",
                  image->init.srqn);
        REFUSE_IF(max_wr, "max_recv_wr %u is not 0, but there is an SRQ",
                  cap->max_recv_wr);
        REFUSE_IF(max_sge, "max_recv_sge %u is not 0, but there is an SRQ",
                  max_sge);
        max_sge = srq->attr.max_sge;
        max_wr = has_path(image);
    }
    REFUSE_IF(n > max_wr, "receive queue from cons %u to prod %u has %u "
              "requests, which exceeds %u", rq->cons, rq->prod, n, max_wr);
    REFUSE_IF(n != image->n_recv, "n_recv %u is not %u, the requests from "
              "cons %u to prod %u", image->n_recv, n, rq->cons, rq->prod);
    REFUSE_IF(n && image->s.attr.qp_state == RDMA_QPS_RESET,
              "n_recv %u is not 0 in state RESET", n);
    return check_recv_wqes(image->recv, n, max_sge, image->n_recv_sges);
}
