/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: creation, query, destruction, and the queues' tails.
 */
#include <glib.h>
#include "queue/queue.h"


static RoceCq *cq_get(RoceEngine *e, uint32_t cqn)
{
    RoceCq *cq = g_hash_table_lookup(e->cqs, GUINT_TO_POINTER(cqn));

    if (!cq) {
        cq = g_new0(RoceCq, 1);
        cq->cqn = cqn;
        g_hash_table_insert(e->cqs, GUINT_TO_POINTER(cqn), cq);
    }
    cq->refs++;
    return cq;
}

static void cq_put(RoceEngine *e, RoceCq *cq)
{
    if (--cq->refs == 0) {
        g_hash_table_remove(e->cqs, GUINT_TO_POINTER(cq->cqn));
    }
}

static uint32_t sges_of_bytes(uint32_t n)
{
    return n ? (n - 1) / sizeof(RdmaSge) + 1 : 0;
}

static bool create_sq(RoceQp *qp, uint32_t n)
{
    const RdmaQpCap *cap = &qp->init.cap;
    uint32_t size = roce_ring_size(MAX(n, MIN(cap->max_send_wr,
                                              ROCE_SQ_DEPTH)));

    qp->ssges_each = MAX(MAX(1, cap->max_send_sge),
                         sges_of_bytes(cap->max_inline_data));
    qp->sq_mask = size - 1;
    qp->swqes = g_try_new0(RoceSendWqe, size);
    qp->ssges = g_try_new0(RdmaSge, (gsize)size * qp->ssges_each);
    qp->spages = g_try_new0(uint64_t *, size);
    return qp->swqes && qp->ssges && qp->spages;
}

/* An SRQ's WQEs come to a ring of one place, with as many elements. */
static bool create_rq(RoceQp *qp, uint32_t n)
{
    RdmaQpCap *cap = &qp->init.cap;
    uint32_t max_sge = cap->max_recv_sge;
    uint32_t size = roce_ring_size(MAX(n, MIN(cap->max_recv_wr,
                                              ROCE_RQ_DEPTH)));

    qp->recv_pdn = qp->init.pdn;
    if (qp->init.has_srq) {
        qp->srq = roce_srq_find(qp->e, qp->init.srqn);
        qp->recv_pdn = qp->srq->attr.pdn;
        cap->max_recv_wr = 0;
        cap->max_recv_sge = 0;
        max_sge = qp->srq->attr.max_sge;
        size = 1;
    }
    qp->rq_mask = size - 1;
    qp->rwqes = g_try_new0(RoceRecvWqe, size);
    qp->rsges = g_try_new0(RdmaSge, (gsize)size * MAX(1, max_sge));
    return qp->rwqes && qp->rsges;
}

static void free_queues(RoceQp *qp)
{
    g_free(qp->swqes);
    g_free(qp->ssges);
    g_free(qp->spages);
    g_free(qp->rwqes);
    g_free(qp->rsges);
    g_free(qp->resources);
    g_free(qp);
}

int roce_qp_create(RoceEngine *e, const RdmaQpInitAttr *init)
{
    return roce_qp_create_for(e, init, 0, 0);
}

int roce_qp_create_for(RoceEngine *e, const RdmaQpInitAttr *init,
                       uint32_t n_send, uint32_t n_recv)
{
    const RdmaQpCap *cap = &init->cap;
    RoceQp *qp;

    switch (init->qp_type) {
    case RDMA_QPT_GSI:
        if (init->qpn != RDMA_QPN_GSI) {
            return -EINVAL;
        }
        break;
    case RDMA_QPT_RC:
    case RDMA_QPT_UC:
    case RDMA_QPT_UD:
        if (init->qpn == RDMA_QPN_SMI || init->qpn == RDMA_QPN_GSI) {
            return -EINVAL;
        }
        break;
    default:
        return -EINVAL;
    }
    if (init->qpn >= e->config.max_qp ||
        cap->max_send_wr > ROCE_MAX_WR ||
        (!init->has_srq && cap->max_recv_wr > ROCE_MAX_WR)) {
        return -EINVAL;
    }
    if (init->has_srq && (init->qp_type == RDMA_QPT_GSI ||
                          !roce_srq_find(e, init->srqn))) {
        return -EINVAL;
    }
    if (e->qps[init->qpn]) {
        return -EEXIST;
    }

    qp = g_new0(RoceQp, 1);
    qp->e = e;
    qp->init = *init;
    qp->link.data = qp;

    qp->res_mask = roce_ring_size(e->config.max_rd_atomic) - 1;
    qp->resources = g_try_new0(RoceResource, qp->res_mask + 1);
    if (!qp->resources || !create_sq(qp, n_send) || !create_rq(qp, n_recv)) {
        free_queues(qp);
        return -ENOMEM;
    }

    if (qp->srq) {
        qp->srq->refs++;
    }
    qp->send_cq = cq_get(e, init->send_cqn);
    qp->recv_cq = cq_get(e, init->recv_cqn);
    roce_qp_clear(qp);
    e->qps[init->qpn] = qp;
    return 0;
}

static void free_pages(RoceQp *qp)
{
    uint32_t i;

    for (i = 0; i <= qp->sq_mask; i++) {
        g_clear_pointer(&qp->spages[i], g_free);
    }
}

void roce_qp_clear(RoceQp *qp)
{
    RoceSqState *sq = &qp->s.sq;

    free_pages(qp);
    memset(&qp->s, 0, sizeof(qp->s));
    sq->ack_deadline = ROCE_NO_DEADLINE;
    sq->rnr_deadline = ROCE_NO_DEADLINE;
    memset(qp->resources, 0, (qp->res_mask + 1) * sizeof(RoceResource));
    memset(&qp->send_cursor, 0, sizeof(qp->send_cursor));
    memset(&qp->read_cursor, 0, sizeof(qp->read_cursor));
    memset(&qp->recv_cursor, 0, sizeof(qp->recv_cursor));
    qp->path_ok = false;
    qp->path_local = false;
    qp->path_serial = qp->e->gid_serial;
    qp->resp_turn = false;
    qp->last_explicit = false;
    qp->paused = false;
    qp->rate = 0;
    roce_qp_unschedule(qp);
    roce_timer_remove(qp);
}

void roce_qp_free(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    roce_mw_unbind_qp(e, qp->init.qpn);
    roce_qp_unschedule(qp);
    roce_timer_remove(qp);
    roce_mcast_leave_all(qp);
    cq_put(e, qp->send_cq);
    cq_put(e, qp->recv_cq);
    if (qp->srq) {
        qp->srq->refs--;
    }
    e->qps[qp->init.qpn] = NULL;
    free_pages(qp);
    free_queues(qp);
}

int roce_qp_destroy(RoceEngine *e, uint32_t qpn)
{
    RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp) {
        return -ENOENT;
    }
    roce_qp_free(qp);
    return 0;
}

int roce_qp_query(RoceEngine *e, uint32_t qpn, RdmaQpAttr *attr)
{
    RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp) {
        return -ENOENT;
    }
    *attr = qp->s.attr;
    attr->cur_qp_state = attr->qp_state;
    attr->cap = qp->init.cap;
    attr->sq_psn = qp->s.sq.end;
    attr->rq_psn = qp->s.resp.epsn;
    attr->sq_draining = attr->qp_state == RDMA_QPS_SQD && qp->s.sq.draining;
    return 0;
}

void roce_qp_refresh_path(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    if (qp->path_serial == e->gid_serial) {
        return;
    }
    qp->path_serial = e->gid_serial;
    qp->path_ok = roce_path_init(e, &qp->s.attr.ah_attr, qp->init.qpn,
                                 qp->s.attr.dest_qp_num, &qp->path);
    qp->path_local = qp->path_ok &&
                     roce_gid_is_own(e, qp->path.dgid, qp->path.vlan);
}

uint32_t roce_send_room(const RoceEngine *e, uint32_t qpn)
{
    const RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp) {
        return 0;
    }
    switch (qp->s.attr.qp_state) {
    case RDMA_QPS_RESET:
    case RDMA_QPS_INIT:
    case RDMA_QPS_RTR:
        return 0;
    default:
        return roce_queue_room(qp->init.cap.max_send_wr, ROCE_SQ_DEPTH,
                               qp->s.sq.prod - qp->s.sq.cons);
    }
}
