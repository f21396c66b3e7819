/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pair-model.h"

Pair pair;

static const RdmaQpType types[PAIR_QPS] = {
    [PAIR_RC] = RDMA_QPT_RC,
    [PAIR_RC_SRQ] = RDMA_QPT_RC,
    [PAIR_RC_LITTLE] = RDMA_QPT_RC,
    [PAIR_UC] = RDMA_QPT_UC,
    [PAIR_UC_SRQ] = RDMA_QPT_UC,
    [PAIR_UD] = RDMA_QPT_UD,
    [PAIR_UD_SRQ] = RDMA_QPT_UD,
    [PAIR_RC_SELF] = RDMA_QPT_RC,
    [PAIR_RC_SELF_PEER] = RDMA_QPT_RC,
};

RdmaQpType pair_type(unsigned slot)
{
    return types[slot];
}

bool pair_is_rc(unsigned slot)
{
    return types[slot] == RDMA_QPT_RC;
}

bool pair_is_ud(unsigned slot)
{
    return types[slot] == RDMA_QPT_UD;
}

bool pair_uses_srq(unsigned slot)
{
    return slot == PAIR_RC_SRQ || slot == PAIR_UC_SRQ || slot == PAIR_UD_SRQ;
}

unsigned pair_peer_slot(unsigned slot)
{
    return slot == PAIR_RC_SELF ? PAIR_RC_SELF_PEER :
           slot == PAIR_RC_SELF_PEER ? PAIR_RC_SELF : slot;
}

PairNode *pair_peer(PairNode *p, unsigned slot)
{
    return pair_peer_slot(slot) == slot ? &pair.node[!p->side] : p;
}

static unsigned slot_of(uint32_t qpn)
{
    MUST(qpn >= PAIR_QPN(0) && qpn < PAIR_QPN(PAIR_QPS));
    return qpn - PAIR_QPN(0);
}

uint64_t pair_outstanding(const PairNode *p, unsigned slot, RdmaQueue queue)
{
    const PairQueue *q = &p->qp[slot].q[queue];

    return q->posted - q->retired;
}

static PairNode *pair_of(void *opaque)
{
    LinkNode *n = opaque;

    return &pair.node[n - pair.l->node];
}

/* Memory */

/* Neighbours of a page belong to other regions. */
static uint64_t page_of(unsigned slot, unsigned i)
{
    return LINK_DMA_BASE + RDMA_PAGE_SIZE * (uint64_t)(1 + i * PAIR_MRS +
                                                       (slot + i) % PAIR_MRS);
}

uint64_t *pair_mr_pages(const PairNode *p, unsigned slot, unsigned npages)
{
    uint64_t *pages = g_new(uint64_t, npages);
    unsigned i;

    for (i = 0; i < npages; i++) {
        pages[i] = page_of(slot, i);
    }
    return pages;
}

/* The region of a DMA address, and the offset in it; or -1. */
static int mr_at(uint64_t addr, uint64_t *offset)
{
    uint64_t page = (addr - LINK_DMA_BASE) / RDMA_PAGE_SIZE - 1;
    unsigned i = page / PAIR_MRS;
    unsigned slot = (page % PAIR_MRS + PAIR_MRS - i % PAIR_MRS) % PAIR_MRS;
    uint64_t byte = i * (uint64_t)RDMA_PAGE_SIZE + addr % RDMA_PAGE_SIZE;

    if (addr < LINK_DMA_BASE + RDMA_PAGE_SIZE || i >= PAIR_MR_PAGES ||
        byte < PAIR_IOVA(slot) % RDMA_PAGE_SIZE) {
        return -1;
    }
    *offset = byte - PAIR_IOVA(slot) % RDMA_PAGE_SIZE;
    return *offset < PAIR_MR_LEN ? (int)slot : -1;
}

/*
 * Does any QP or peer of the engine have the rights @need to @len bytes at
 * @addr?
 */
static bool may(const PairNode *p, uint64_t addr, uint64_t len, uint32_t need)
{
    uint64_t off = 0;
    int slot = mr_at(addr, &off);
    const PairMr *mr;

    if (slot < 0) {
        return false;
    }
    mr = &p->mr[slot];
    if (!mr->key || off + len > PAIR_MR_LEN) {
        return false;
    }
    switch (slot) {
    case PAIR_MR_ALL:
        return true;
    case PAIR_MR_FAST:
        return mr->registered;
    case PAIR_MR_READ:
        return need == RDMA_ACCESS_REMOTE_READ;
    case PAIR_MR_WINDOW:
        return (mr->access & need) && off >= mr->lo && off + len <= mr->hi;
    default:
        return mr->access & need;
    }
}

static void *model_map(void *opaque, uint64_t addr, uint64_t *len, bool write)
{
    PairNode *p = pair_of(opaque);
    uint64_t at, n;

    p->work++;
    MUST(*len > 0);
    MUST(!p->deny_all && !(write && p->deny_write));
    for (at = addr; at < addr + *len; at += n) {
        n = MIN(addr + *len - at, RDMA_PAGE_SIZE - at % RDMA_PAGE_SIZE);
        MUST(may(p, at, n, write ? RDMA_ACCESS_REMOTE_WRITE
                                 : RDMA_ACCESS_REMOTE_READ));
    }
    return link_ops.map(opaque, addr, len, write);
}

static bool model_atomic(void *opaque, uint64_t addr, uint32_t opcode,
                         uint64_t compare_add, uint64_t swap, uint64_t *old)
{
    PairNode *p = pair_of(opaque);

    p->work++;
    MUST(!p->deny_all);
    MUST(may(p, addr, 8, opcode == RDMA_WR_ATOMIC_WRITE ?
             RDMA_ACCESS_REMOTE_WRITE : RDMA_ACCESS_REMOTE_ATOMIC));
    return link_ops.atomic(opaque, addr, opcode, compare_add, swap, old);
}

/* Completions */

/* Note an action that a callback asks for, which has to wait. */
static void want(PairNode *p)
{
    if (p->n_wanted < G_N_ELEMENTS(p->wanted) &&
        (uint8_t)g_rand_int(pair.l->rand) < pair.callbacks) {
        p->wanted[p->n_wanted++] = g_rand_int(pair.l->rand);
    }
}

static void model_retire(void *opaque, uint32_t qpn, RdmaQueue queue,
                         uint32_t count)
{
    PairNode *p = pair_of(opaque);
    unsigned slot = slot_of(qpn);
    PairQp *qp = &p->qp[slot];

    p->work++;
    MUST(qp->exists);
    MUST(!(queue == RDMA_RQ && pair_uses_srq(slot)));
    MUST(count <= qp->q[queue].posted - qp->q[queue].retired);
    qp->q[queue].retired += count;
    want(p);
    link_ops.consumer.retire(opaque, qpn, queue, count);
}

/* The messages of an RC connection arrive once, in order and whole. */
static void check_message(PairNode *p, unsigned slot, const RdmaWc *wc)
{
    PairQp *from = &pair_peer(p, slot)->qp[pair_peer_slot(slot)];
    PairStream *s = &from->out;
    uint32_t num;

    if (!pair.strict || !from->whole || pair_is_ud(slot)) {
        return;
    }
    if (wc->wc_flags & RDMA_WC_WITH_IMM) {
        memcpy(&num, wc->ex.imm_data, sizeof(num));
        MUST(num >> 24 == from->epoch);
        num &= 0xffffff;
        MUST(types[slot] == RDMA_QPT_RC ? num == s->seen : num >= s->seen);
        s->seen = num;
    } else if (types[slot] == RDMA_QPT_UC) {
        /* The completion does not show which message it is of */
        return;
    }
    MUST(s->seen < s->lens->len);
    MUST(wc->byte_len == g_array_index(s->lens, uint32_t, s->seen));
    s->seen++;
}

static void check_send(PairNode *p, unsigned slot, uint64_t num,
                       const RdmaWc *wc)
{
    PairQp *qp = &p->qp[slot];
    PairQueue *q = &qp->q[RDMA_SQ];
    const PairWqe *wqe;

    for (; q->next < num; q->next++) {
        /* Only unsignalled requests that succeeded have no completion */
        MUST(!qp->failed);
        wqe = &g_array_index(q->wqes, PairWqe, q->next);
        MUST(!wqe->signaled && !wqe->stale);
    }
    wqe = &g_array_index(q->wqes, PairWqe, num);
    if (wc->status != RDMA_WC_SUCCESS) {
        qp->failed = true;
        return;
    }
    MUST(!qp->failed);
    MUST(wqe->signaled);
    MUST(!wqe->stale);
    p->added[slot] += wqe->atomic;
    if (wqe->invalidates && p->mr[PAIR_MR_FAST].key &&
        p->mr[PAIR_MR_FAST].registrations == wqe->registrations) {
        p->mr[PAIR_MR_FAST].registered = false;
    }
}

static bool model_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                           bool solicited)
{
    PairNode *p = pair_of(opaque);
    unsigned slot = slot_of(wc->qp_num);
    bool recv = wc->wr_id & PAIR_ID_RECV;
    uint64_t num = wc->wr_id & PAIR_ID_NUM;
    PairQueue *q = &p->qp[slot].q[recv];

    p->work++;
    MUST(p->qp[slot].exists);
    MUST(cqn == (recv ? LINK_RECV_CQ(wc->qp_num) : LINK_SEND_CQ(wc->qp_num)));
    MUST(!g_hash_table_contains(p->bad_cqs, GUINT_TO_POINTER(cqn)));
    MUST(wc->status <= RDMA_WC_GENERAL_ERR);
    MUST(!(wc->wr_id & PAIR_ID_SRQ) == !(recv && pair_uses_srq(slot)));
    if (wc->wr_id & PAIR_ID_SRQ) {
        MUST(g_hash_table_remove(p->srq_ids, GSIZE_TO_POINTER(num + 1)));
    } else {
        MUST(num >= q->next && num < q->retired);
        if (recv) {
            MUST(num == q->next);
        } else {
            check_send(p, slot, num, wc);
        }
        q->next = num + 1;
    }
    if (wc->status == RDMA_WC_SUCCESS) {
        MUST(!(wc->opcode & RDMA_WC_RECV) == !recv);
        if (recv) {
            check_message(p, slot, wc);
        }
    }
    want(p);
    if (!link_ops.consumer.complete(opaque, cqn, wc, solicited)) {
        g_hash_table_add(p->bad_cqs, GUINT_TO_POINTER(cqn));
        return false;
    }
    return true;
}

static void model_event(void *opaque, const RdmaEvent *event)
{
    PairNode *p = pair_of(opaque);

    p->work++;
    if (event->type == RDMA_EVENT_SRQ_LIMIT_REACHED) {
        MUST(p->has_srq && event->id == LINK_SRQ);
    } else {
        MUST(p->qp[slot_of(event->id)].exists);
    }
    want(p);
}

static RdmaNext model_next_send(void *opaque, uint32_t qpn, bool flush,
                                RdmaSendWr *wr)
{
    PairNode *p = pair_of(opaque);

    MUST(p->qp[slot_of(qpn)].exists);
    p->work++;
    return link_ops.consumer.next_send(opaque, qpn, flush, wr);
}

/* The engine must ask only for receives of existing queues. */
static void check_queue(PairNode *p, RdmaQueue queue, uint32_t id)
{
    if (queue == RDMA_SRQ) {
        MUST(p->has_srq && id == LINK_SRQ);
    } else {
        MUST(p->qp[slot_of(id)].exists && !pair_uses_srq(slot_of(id)));
    }
    p->work++;
}

static bool model_next_recv(void *opaque, RdmaQueue queue, uint32_t id,
                            bool flush, RdmaRecvWr *wr)
{
    PairNode *p = pair_of(opaque);

    check_queue(p, queue, id);
    /* The engine has no other receive, or that would be the next. */
    MUST(queue == RDMA_SRQ || pair_outstanding(p, slot_of(id), RDMA_RQ) ==
                              consumer_recvs(p->n->consumer, queue, id));
    want(p);
    return link_ops.consumer.next_recv(opaque, queue, id, flush, wr);
}

static uint32_t model_recv_count(void *opaque, RdmaQueue queue, uint32_t id)
{
    check_queue(pair_of(opaque), queue, id);
    return link_ops.consumer.recv_count(opaque, queue, id);
}

static bool model_recv_sleep(void *opaque, RdmaQueue queue, uint32_t id)
{
    check_queue(pair_of(opaque), queue, id);
    return link_ops.consumer.recv_sleep(opaque, queue, id);
}

void pair_enter(PairNode *p)
{
    p->work = 0;
}

void pair_leave(PairNode *p, uint32_t max_work)
{
    LinkWc *wc;

    p->deny_write = false;
    p->deny_all = false;
    MUST(p->work <= max_work);
    while ((wc = g_queue_pop_head(&p->n->wcs))) {
        g_free(wc);
    }
}

/* Work */

/* Does the WR make the peer complete a receive? */
static bool is_message(const RdmaSendWr *wr)
{
    return wr->opcode == RDMA_WR_SEND ||
           wr->opcode == RDMA_WR_SEND_WITH_IMM ||
           wr->opcode == RDMA_WR_SEND_WITH_INV ||
           wr->opcode == RDMA_WR_RDMA_WRITE_WITH_IMM;
}

static void add_message(PairQp *qp, RdmaSendWr *wr)
{
    uint32_t len = wr->inline_len, i;
    uint32_t num = qp->out.lens->len | (uint32_t)qp->epoch << 24;

    for (i = 0; i < wr->num_sge; i++) {
        len += wr->sg_list[i].length;
    }
    g_array_append_val(qp->out.lens, len);
    if (wr->opcode != RDMA_WR_SEND_WITH_INV) {
        memcpy(wr->ex.imm_data, &num, sizeof(num));
    }
}

/* A datagram may be dropped unseen, and zero bytes need no key. */
static bool names_stale_key(unsigned slot, const RdmaSendWr *wr)
{
    bool any = wr->inline_len, stale = false;
    uint32_t i;

    for (i = 0; i < wr->num_sge; i++) {
        any |= wr->sg_list[i].length;
        stale |= wr->sg_list[i].length &&
                 (wr->sg_list[i].lkey & PAIR_KEY_STALE);
    }
    if (!any || types[slot] != RDMA_QPT_RC) {
        return false;
    }
    switch (wr->opcode) {
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
    case RDMA_WR_RDMA_READ:
        return stale || (wr->wr.rdma.rkey & PAIR_KEY_STALE);
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        return wr->wr.atomic.rkey & PAIR_KEY_STALE;
    case RDMA_WR_SEND:
    case RDMA_WR_SEND_WITH_IMM:
        return stale;
    default:
        return false;
    }
}

/* May the consumer post there? */
static bool has_room(const PairNode *p, unsigned slot, RdmaQueue queue)
{
    RdmaQpAttr attr;

    if (!p->qp[slot].exists) {
        return false;
    }
    MUST(roce_qp_query(p->n->e, PAIR_QPN(slot), &attr) == 0);
    switch (attr.qp_state) {
    case RDMA_QPS_RESET:
        return false;
    case RDMA_QPS_INIT:
    case RDMA_QPS_RTR:
        if (queue == RDMA_SQ) {
            return false;
        }
        break;
    default:
        break;
    }
    return pair_outstanding(p, slot, queue) <
           (queue == RDMA_SQ ? attr.cap.max_send_wr : attr.cap.max_recv_wr);
}

void pair_post_send(PairNode *p, unsigned slot, RdmaSendWr *wr)
{
    PairQp *qp = &p->qp[slot];
    PairQueue *q = &qp->q[RDMA_SQ];
    PairWqe wqe = {
        .signaled = wr->send_flags & RDMA_SEND_SIGNALED,
        .atomic = wr->opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD &&
                  wr->wr.atomic.remote_addr ==
                  PAIR_IOVA(PAIR_MR_COUNTERS) + 8 * slot,
    };
    uint64_t *pages = NULL;

    if (!pair_is_ud(slot) && wr->opcode == RDMA_WR_REG_MR) {
        pages = wr->wr.reg.pages;
    }
    if (!has_room(p, slot, RDMA_SQ)) {
        g_free(pages);
        return;
    }
    if (is_message(wr)) {
        add_message(qp, wr);
    }
    wqe.stale = names_stale_key(slot, wr);
    if (wr->opcode == RDMA_WR_REG_MR) {
        p->mr[PAIR_MR_FAST].registered = true;
        p->mr[PAIR_MR_FAST].registrations++;
    }
    wqe.invalidates = wr->opcode == RDMA_WR_LOCAL_INV &&
                      wr->ex.invalidate_rkey == p->mr[PAIR_MR_FAST].key;
    wqe.registrations = p->mr[PAIR_MR_FAST].registrations;
    p->tried[slot] += wqe.atomic;
    g_array_append_val(q->wqes, wqe);
    wr->wr_id = q->posted++;
    if (pair_is_ud(slot)) {
        consumer_post_datagram(p->n->consumer, PAIR_QPN(slot), wr);
    } else {
        consumer_post_send(p->n->consumer, PAIR_QPN(slot), wr);
    }
    roce_kick(p->n->e, RDMA_SQ, PAIR_QPN(slot));
}

void pair_post_recv(PairNode *p, unsigned slot, RdmaRecvWr *wr)
{
    PairQueue *q = &p->qp[slot].q[RDMA_RQ];
    PairWqe wqe = { .signaled = true };

    if (pair_uses_srq(slot)) {
        if (p->has_srq &&
            consumer_recvs(p->n->consumer, RDMA_SRQ, LINK_SRQ) < PAIR_RQ_WR) {
            g_hash_table_add(p->srq_ids, GSIZE_TO_POINTER(p->srq_posted + 1));
            wr->wr_id = p->srq_posted++ | PAIR_ID_RECV | PAIR_ID_SRQ;
            consumer_post_srq_recv(p->n->consumer, LINK_SRQ, wr);
        }
    } else if (has_room(p, slot, RDMA_RQ)) {
        g_array_append_val(q->wqes, wqe);
        wr->wr_id = q->posted++ | PAIR_ID_RECV;
        consumer_post_recv(p->n->consumer, PAIR_QPN(slot), wr);
    }
}

/* Checks */

/* WRs are with the consumer, in the engine, or retired. */
static void check_queues(const PairNode *p, unsigned slot)
{
    const Consumer *c = p->n->consumer;
    uint32_t max = slot == PAIR_RC_LITTLE ? 2 : PAIR_SQ_WR;
    uint64_t sends = pair_outstanding(p, slot, RDMA_SQ);
    uint64_t recvs = pair_outstanding(p, slot, RDMA_RQ);
    RdmaInspection now;

    MUST(roce_inspect(p->n->e, RDMA_OBJECT_QP, PAIR_QPN(slot), &now) == 0);
    MUST(sends <= max);
    MUST(sends == consumer_sends(c, PAIR_QPN(slot)) + now.qp.sends);
    MUST(now.qp.recvs <= 1);
    if (!pair_uses_srq(slot)) {
        MUST(recvs == now.qp.recvs +
                      consumer_recvs(c, RDMA_RQ, PAIR_QPN(slot)));
    }
}

static void check_srq(const PairNode *p)
{
    RdmaInspection now;

    MUST(roce_inspect(p->n->e, RDMA_OBJECT_SRQ, LINK_SRQ, &now) == 0);
    MUST(now.srq.recvs <= 1);
    MUST(now.srq.recvs + consumer_recvs(p->n->consumer, RDMA_SRQ, LINK_SRQ) <=
         g_hash_table_size(p->srq_ids));
}

void pair_check(PairNode *p)
{
    unsigned slot;

    MUST(p->n->maps == 0);
    MUST(roce_has_srq(p->n->e, LINK_SRQ) == p->has_srq);
    if (p->has_srq) {
        check_srq(p);
    }
    for (slot = 0; slot < PAIR_QPS; slot++) {
        const PairQp *qp = &p->qp[slot];

        MUST(roce_has_qp(p->n->e, PAIR_QPN(slot)) == qp->exists);
        if (qp->exists) {
            check_queues(p, slot);
        }
        /* Receives complete as they retire, unless their CQ has failed */
        MUST(qp->q[RDMA_RQ].next <= qp->q[RDMA_RQ].retired);
        MUST(qp->q[RDMA_RQ].next == qp->q[RDMA_RQ].retired ||
             g_hash_table_contains(p->bad_cqs, GUINT_TO_POINTER(
                                   LINK_RECV_CQ(PAIR_QPN(slot)))));
    }
}

void pair_check_done(PairNode *p, unsigned slot)
{
    PairQp *qp = &p->qp[slot];
    PairQueue *q = &qp->q[RDMA_SQ];

    MUST(q->retired == q->posted);
    if (g_hash_table_contains(p->bad_cqs, GUINT_TO_POINTER(
                              LINK_SEND_CQ(PAIR_QPN(slot))))) {
        return;
    }
    for (; q->next < q->posted; q->next++) {
        MUST(!qp->failed);
        MUST(!g_array_index(q->wqes, PairWqe, q->next).signaled);
    }
}

void pair_check_counters(void)
{
    unsigned side, slot;

    for (side = 0; side < 2; side++) {
        for (slot = 0; slot < PAIR_QPS; slot++) {
            PairNode *p = &pair.node[side], *peer = pair_peer(p, slot);
            uint64_t at = page_of(PAIR_MR_COUNTERS, 0) - LINK_DMA_BASE +
                          PAIR_IOVA(PAIR_MR_COUNTERS) % RDMA_PAGE_SIZE;
            uint64_t value;

            memcpy(&value, peer->n->mem + at + 8 * slot, sizeof(value));
            value = GUINT64_FROM_LE(value);
            MUST(!pair.strict || value >= p->added[slot]);
            MUST(!pair.strict || value <= p->tried[slot]);
        }
    }
}

/* The pair */

void pair_new(uint32_t seed)
{
    static RoceOps ops;
    unsigned side, slot, q;

    ops = link_ops;
    ops.map = model_map;
    ops.atomic = model_atomic;
    ops.consumer.retire = model_retire;
    ops.consumer.complete = model_complete;
    ops.consumer.event = model_event;
    ops.consumer.next_send = model_next_send;
    ops.consumer.next_recv = model_next_recv;
    ops.consumer.recv_count = model_recv_count;
    ops.consumer.recv_sleep = model_recv_sleep;
    memset(&pair, 0, sizeof(pair));
    pair.strict = true;
    pair.l = link_new(seed);
    pair.l->ops = &ops;
    for (side = 0; side < 2; side++) {
        PairNode *p = &pair.node[side];

        p->n = &pair.l->node[side];
        p->side = side;
        p->srq_ids = g_hash_table_new(NULL, NULL);
        p->bad_cqs = g_hash_table_new(NULL, NULL);
        for (slot = 0; slot < PAIR_QPS; slot++) {
            PairQp *qp = &p->qp[slot];

            for (q = 0; q < 2; q++) {
                qp->q[q].wqes = g_array_new(false, true, sizeof(PairWqe));
            }
            qp->out.lens = g_array_new(false, true, sizeof(uint32_t));
        }
        /* The engine that calls the model */
        pair_move(p);
    }
}

void pair_free(void)
{
    unsigned side, slot, q;

    for (side = 0; side < 2; side++) {
        PairNode *p = &pair.node[side];

        for (slot = 0; slot < PAIR_QPS; slot++) {
            for (q = 0; q < 2; q++) {
                g_array_unref(p->qp[slot].q[q].wqes);
            }
            g_array_unref(p->qp[slot].out.lens);
        }
        g_hash_table_unref(p->srq_ids);
        g_hash_table_unref(p->bad_cqs);
    }
    link_free(pair.l);
}
