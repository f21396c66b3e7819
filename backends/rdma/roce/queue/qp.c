/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: creation, query and destruction.
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

static void init_sq(RoceQp *qp)
{
    const RdmaQpCap *cap = &qp->init.cap;

    qp->ssges_each = MAX(MAX(1, cap->max_send_sge),
                         sges_of_bytes(cap->max_inline_data));
}

/*
 * Allocate the SGEs of one receive WQE, of the QP's own queue or of its SRQ.
 * Returns false if there is no memory.
 */
static bool init_rq(RoceQp *qp)
{
    RdmaQpCap *cap = &qp->init.cap;
    uint32_t max_sge = cap->max_recv_sge;

    qp->recv_pdn = qp->init.pdn;
    if (qp->init.has_srq) {
        qp->srq = roce_srq_find(qp->e, qp->init.srqn);
        qp->recv_pdn = qp->srq->attr.pdn;
        cap->max_recv_wr = 0;
        cap->max_recv_sge = 0;
        max_sge = qp->srq->attr.max_sge;
    }
    qp->rsges = g_try_malloc0_n(MAX(1, max_sge), sizeof(*qp->rsges));
    return qp->rsges;
}

static void free_qp(RoceQp *qp)
{
    roce_ring_free(qp);
    g_free(qp->rsges);
    g_free(qp->resources);
    g_free(qp->dcqcn);
    g_free(qp);
}

int roce_qp_create(RoceEngine *e, const RdmaQpInitAttr *init)
{
    return roce_qp_create_for(e, init, 0);
}

int roce_qp_create_for(RoceEngine *e, const RdmaQpInitAttr *init,
                       uint32_t n_send)
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
    if (roce_qp_find(e, init->qpn)) {
        return -EEXIST;
    }

    qp = g_new0(RoceQp, 1);
    qp->e = e;
    qp->init = *init;
    qp->link.data = qp;
    qp->overdue_link.data = qp;

    qp->res_mask = roce_ring_size(e->config.max_rd_atomic) - 1;
    init_sq(qp);
    if (!init_rq(qp) || !roce_sq_reserve(qp, MAX(1, n_send)) ||
        (n_send && !roce_sargs_reserve(qp, 0))) {
        free_qp(qp);
        return -ENOMEM;
    }

    if (qp->srq) {
        qp->srq->refs++;
    }
    qp->send_cq = cq_get(e, init->send_cqn);
    qp->recv_cq = cq_get(e, init->recv_cqn);
    roce_qp_clear(qp);
    roce_table_set(&e->qps, init->qpn, qp);
    return 0;
}

static void free_pages(RoceQp *qp)
{
    uint32_t i;

    for (i = 0; i < qp->sq_size; i++) {
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
    g_clear_pointer(&qp->resources, g_free);
    memset(&qp->send_cursor, 0, sizeof(qp->send_cursor));
    memset(&qp->read_cursor, 0, sizeof(qp->read_cursor));
    memset(&qp->recv_cursor, 0, sizeof(qp->recv_cursor));
    qp->path_ok = false;
    qp->path_local = false;
    qp->path_serial = qp->e->gid_serial;
    qp->resp_turn = false;
    qp->last_explicit = false;
    qp->paused = false;
    qp->stalled_timeouts = 0;
    g_clear_pointer(&qp->dcqcn, g_free);
    qp->cnp_at = 0;
    qp->cnp_owed = false;
    qp->rate = 0;
    qp->credits = ROCE_CREDITS_UNLIMITED;
    qp->recv_takers = 0;
    qp->credit_wait = false;
    qp->msn = 0;
    qp->reports_credits = true;
    qp->credit_deadline = ROCE_NO_DEADLINE;
    qp->idle_start_refused = false;
    qp->recvs_since_credits = 0;
    qp->eager_turns = 0;
    qp->starved = false;
    qp->starved_deadline = ROCE_NO_DEADLINE;
    roce_sq_expect(qp);
    roce_rq_expect(qp);
    qp->has_more_work = false;
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
    roce_table_clear(&e->qps, qp->init.qpn);
    free_pages(qp);
    free_qp(qp);
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

RdmaQpAttr roce_qp_attr(const RoceQp *qp)
{
    RdmaQpAttr attr = qp->s.attr;

    attr.cur_qp_state = attr.qp_state;
    attr.cap = qp->init.cap;
    attr.sq_psn = qp->s.sq.end;
    attr.rq_psn = qp->s.resp.epsn;
    attr.sq_draining = attr.qp_state == RDMA_QPS_SQD && qp->s.sq.draining;
    return attr;
}

int roce_qp_query(RoceEngine *e, uint32_t qpn, RdmaQpAttr *attr)
{
    const RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp) {
        return -ENOENT;
    }
    *attr = roce_qp_attr(qp);
    return 0;
}

void roce_qp_find_path(RoceQp *qp)
{
    RoceEngine *e = qp->e;

    qp->path_serial = e->gid_serial;
    qp->path_ok = roce_path_init(e, &qp->s.attr.ah_attr, qp->init.qpn,
                                 qp->s.attr.dest_qp_num, &qp->path);
    qp->template.len = 0;
    if (e->dcqcn_line) {
        qp->path.traffic_class &= ~ROCE_ECN_MASK;
        qp->path.traffic_class |= ROCE_ECN_ECT0;
    }
    qp->path_local = qp->path_ok &&
                     roce_gid_is_own(e, qp->path.dgid, qp->path.vlan);
}
