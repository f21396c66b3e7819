/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects of a node, in the engine and in the model. */
#include <errno.h>
#include "pair-model.h"

void pair_mr_create(PairNode *p, unsigned slot, uint32_t access)
{
    bool fast = slot == PAIR_MR_FAST;
    RdmaMrAttr attr = {
        .mrn = slot + 1,
        .pdn = slot == PAIR_MR_OTHER_PD ? LINK_PDN + 1 : LINK_PDN,
        .type = fast ? RDMA_MR_FAST_REG : RDMA_MR_USER,
        .iova = fast ? 0 : PAIR_IOVA(slot),
        .length = fast ? 0 : PAIR_MR_LEN,
        .max_pages = fast ? PAIR_MR_PAGES : 0,
        .npages = fast ? 0 : PAIR_MR_PAGES,
    };
    PairMr *mr = &p->mr[slot];

    if (mr->key) {
        return;
    }
    attr.lkey = attr.mrn << 8 | (g_rand_int(pair.l->rand) & 0x7f);
    attr.rkey = attr.lkey;
    *mr = (PairMr) {
        .key = attr.lkey,
        /* Older invalidations do not count */
        .registrations = mr->registrations + 1,
    };
    switch (slot) {
    case PAIR_MR_ALL:
        attr.access = LINK_ALL_ACCESS | RDMA_ACCESS_MW_BIND;
        break;
    case PAIR_MR_CHANGING:
        mr->access = access & RDMA_ACCESS_REMOTE;
        attr.access = mr->access | RDMA_ACCESS_LOCAL_WRITE;
        break;
    case PAIR_MR_READ:
        attr.access = RDMA_ACCESS_REMOTE_READ;
        break;
    case PAIR_MR_LOCAL:
        attr.access = RDMA_ACCESS_LOCAL_WRITE;
        break;
    case PAIR_MR_WINDOW:
        mr->lo = PAIR_MR_LEN;
        attr.access = RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_MW_BIND;
        break;
    case PAIR_MR_OTHER_PD:
        attr.access = LINK_ALL_ACCESS;
        break;
    case PAIR_MR_COUNTERS:
        mr->access = RDMA_ACCESS_REMOTE_ATOMIC;
        attr.access = RDMA_ACCESS_LOCAL_WRITE | mr->access;
        break;
    }
    if (!fast) {
        attr.pages = pair_mr_pages(p, slot, PAIR_MR_PAGES);
    }
    MUST(roce_mr_create(p->n->e, &attr) == 0);
}

void pair_mr_modify(PairNode *p, unsigned slot, uint32_t access)
{
    PairMr *mr = &p->mr[slot];
    RdmaMrAttr attr = {
        .mrn = slot + 1, .lkey = mr->key, .rkey = mr->key,
        .access = RDMA_ACCESS_LOCAL_WRITE | (access & RDMA_ACCESS_REMOTE),
    };

    if (mr->key && slot == PAIR_MR_CHANGING &&
        roce_mr_modify(p->n->e, RDMA_REREG_ACCESS, &attr) == 0) {
        mr->access = access & RDMA_ACCESS_REMOTE;
    }
}

void pair_mr_destroy(PairNode *p, unsigned slot)
{
    int ret = roce_mr_destroy(p->n->e, slot + 1);

    MUST(p->mr[slot].key ? ret == 0 || ret == -EBUSY : ret == -ENOENT);
    if (ret == 0) {
        p->mr[slot].key = 0;
    }
}

void pair_mw_create(PairNode *p, unsigned i)
{
    RdmaMwAttr attr = {
        .mwn = PAIR_MWN(i),
        .pdn = LINK_PDN,
        .type = i ? RDMA_MW_TYPE_2 : RDMA_MW_TYPE_1,
        .rkey = PAIR_MWN(i) << 8 | (g_rand_int(pair.l->rand) & 0x7f),
    };

    if (!p->mw_key[i]) {
        MUST(roce_mw_create(p->n->e, &attr) == 0);
        p->mw_key[i] = attr.rkey;
    }
}

void pair_mw_destroy(PairNode *p, unsigned i)
{
    MUST(roce_mw_destroy(p->n->e, PAIR_MWN(i)) ==
         (p->mw_key[i] ? 0 : -ENOENT));
    p->mw_key[i] = 0;
    if (!p->mw_key[!i]) {
        /*
         * No window is bound to the region any more, whatever WQEs are under
         * way
         */
        p->mr[PAIR_MR_WINDOW].lo = PAIR_MR_LEN;
        p->mr[PAIR_MR_WINDOW].hi = 0;
        p->mr[PAIR_MR_WINDOW].access = 0;
    }
}

void pair_srq_create(PairNode *p)
{
    RdmaSrqAttr attr = {
        .srqn = LINK_SRQ, .pdn = LINK_PDN, .max_wr = PAIR_RQ_WR,
        .max_sge = PAIR_SGE, .limit = 2,
    };

    if (!p->has_srq) {
        MUST(roce_srq_create(p->n->e, &attr) == 0);
        p->has_srq = true;
    }
}

void pair_srq_destroy(PairNode *p)
{
    int ret = roce_srq_destroy(p->n->e, LINK_SRQ);

    MUST(p->has_srq ? ret == 0 || ret == -EBUSY : ret == -ENOENT);
    if (ret == 0) {
        p->has_srq = false;
        consumer_drop_srq(p->n->consumer, LINK_SRQ);
        g_hash_table_remove_all(p->srq_ids);
    }
}

static void forget_wqes(PairNode *p, unsigned slot)
{
    PairQp *qp = &p->qp[slot];
    unsigned q;

    for (q = 0; q < 2; q++) {
        qp->q[q].posted = 0;
        qp->q[q].retired = 0;
        qp->q[q].next = 0;
        g_array_set_size(qp->q[q].wqes, 0);
    }
    qp->failed = false;
    qp->whole = false;
    pair_peer(p, slot)->qp[pair_peer_slot(slot)].whole = false;
    g_array_set_size(qp->out.lens, 0);
    qp->out.seen = 0;
    consumer_drop_qp(p->n->consumer, PAIR_QPN(slot));
}

void pair_qp_create(PairNode *p, unsigned slot)
{
    bool little = slot == PAIR_RC_LITTLE;
    RdmaQpInitAttr init = {
        .qpn = PAIR_QPN(slot),
        .pdn = LINK_PDN,
        .qp_type = pair_type(slot),
        .send_cqn = LINK_SEND_CQ(PAIR_QPN(slot)),
        .recv_cqn = LINK_RECV_CQ(PAIR_QPN(slot)),
        .cap = { PAIR_SQ_WR, PAIR_RQ_WR, PAIR_SGE, PAIR_SGE, PAIR_INLINE },
        .has_srq = pair_uses_srq(slot),
        .srqn = LINK_SRQ,
    };

    if (p->qp[slot].exists || (init.has_srq && !p->has_srq)) {
        return;
    }
    if (little) {
        init.cap = (RdmaQpCap) { 2, 2, 2, 2, PAIR_INLINE };
    }
    /* A CQ that failed is created again after its last QP is gone */
    g_hash_table_remove(p->bad_cqs, GUINT_TO_POINTER(init.send_cqn));
    g_hash_table_remove(p->bad_cqs, GUINT_TO_POINTER(init.recv_cqn));
    p->n->cq_room[init.send_cqn] = UINT64_MAX;
    p->n->cq_room[init.recv_cqn] = UINT64_MAX;
    forget_wqes(p, slot);
    MUST(roce_qp_create(p->n->e, &init) == 0);
    p->qp[slot].exists = true;
}

void pair_qp_destroy(PairNode *p, unsigned slot)
{
    MUST(roce_qp_destroy(p->n->e, PAIR_QPN(slot)) ==
         (p->qp[slot].exists ? 0 : -ENOENT));
    p->qp[slot].exists = false;
    forget_wqes(p, slot);
}

void pair_qp_reset(PairNode *p, unsigned slot)
{
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_RESET };
    PairQp *qp = &p->qp[slot];

    if (!qp->exists) {
        return;
    }
    MUST(roce_qp_modify(p->n->e, PAIR_QPN(slot), RDMA_QP_STATE, &attr) == 0);
    /* All WQEs of the engine have retired. */
    MUST(pair_outstanding(p, slot, RDMA_SQ) ==
         consumer_sends(p->n->consumer, PAIR_QPN(slot)));
    MUST(pair_outstanding(p, slot, RDMA_RQ) ==
         consumer_recvs(p->n->consumer, RDMA_RQ, PAIR_QPN(slot)));
    forget_wqes(p, slot);
}

void pair_qp_connected(PairNode *p, unsigned slot)
{
    PairQp *qp = &p->qp[slot];

    qp->whole = true;
    qp->epoch++;
}

void pair_reset(PairNode *p)
{
    unsigned i;

    roce_reset(p->n->e);
    for (i = 0; i < PAIR_QPS; i++) {
        p->qp[i].exists = false;
        forget_wqes(p, i);
    }
    for (i = 0; i < PAIR_MRS; i++) {
        p->mr[i].key = 0;
    }
    for (i = 0; i < PAIR_MWS; i++) {
        p->mw_key[i] = 0;
    }
    p->has_srq = false;
    consumer_drop_srq(p->n->consumer, LINK_SRQ);
    g_hash_table_remove_all(p->srq_ids);
    MUST(roce_next_deadline(p->n->e) == ROCE_NO_DEADLINE);
}

void pair_move(PairNode *p)
{
    link_move(p->n);
    roce_set_tx_blocked(p->n->e, p->blocked);
}
