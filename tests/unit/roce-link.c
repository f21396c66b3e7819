/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two engines on a simulated link.
 */
#include <stdlib.h>
#include <string.h>
#include "roce-link.h"

#define MEM_PAGES 6144
#define MEM_SIZE ((size_t)MEM_PAGES * RDMA_PAGE_SIZE)
/* map() ends at multiples of this, even if memory continues there. */
#define MAP_CHUNK 65536
#define NO_HOLE UINT64_MAX

static bool dma_ok(LinkNode *n, uint64_t addr, uint64_t len)
{
    return addr >= LINK_DMA_BASE && len <= MEM_SIZE &&
           addr - LINK_DMA_BASE <= MEM_SIZE - len &&
           (addr & ~(uint64_t)(RDMA_PAGE_SIZE - 1)) != n->hole;
}

static void *node_map(void *opaque, uint64_t addr, uint64_t *len, bool write)
{
    LinkNode *n = opaque;
    uint64_t room;

    g_assert_cmpuint(*len, >, 0);
    n->map_calls++;
    if (!dma_ok(n, addr, 1)) {
        return NULL;
    }
    room = MAP_CHUNK - addr % MAP_CHUNK;
    *len = MIN(*len, room);
    n->maps++;
    return n->mem + (addr - LINK_DMA_BASE);
}

static void node_unmap(void *opaque, void *host, uint64_t len, bool write,
                       uint64_t access_len)
{
    LinkNode *n = opaque;

    g_assert_cmpuint(access_len, <=, len);
    g_assert_true((uint8_t *)host >= n->mem);
    g_assert_true((uint8_t *)host + len <= n->mem + MEM_SIZE);
    n->maps--;
}

static bool node_atomic(void *opaque, uint64_t addr, uint32_t opcode,
                        uint64_t compare_add, uint64_t swap, uint64_t *old)
{
    LinkNode *n = opaque;
    uint64_t value;

    g_assert_cmpuint(addr % 8, ==, 0);
    if (!dma_ok(n, addr, 8)) {
        return false;
    }
    memcpy(&value, n->mem + (addr - LINK_DMA_BASE), 8);
    *old = value = GUINT64_FROM_LE(value);
    if (opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        value += compare_add;
    } else if (opcode == RDMA_WR_ATOMIC_WRITE) {
        value = compare_add;
    } else if (value == compare_add) {
        value = swap;
    }
    value = GUINT64_TO_LE(value);
    memcpy(n->mem + (addr - LINK_DMA_BASE), &value, 8);
    n->atomics++;
    return true;
}

static void node_retire(void *opaque, uint32_t qpn, RdmaQueue queue,
                        uint32_t count)
{
    LinkNode *n = opaque;

    g_assert_cmpuint(count, >, 0);
    n->retired[qpn][queue] += count;
}

static bool node_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                          bool solicited)
{
    LinkNode *n = opaque;
    LinkWc *entry;

    n->completed++;
    if (!n->cq_room[cqn]) {
        return false;
    }
    n->cq_room[cqn]--;
    entry = g_new(LinkWc, 1);
    *entry = (LinkWc) { .cqn = cqn, .solicited = solicited, .wc = *wc };
    g_queue_push_tail(&n->wcs, entry);
    return true;
}

static void node_event(void *opaque, const RdmaEvent *event)
{
    LinkNode *n = opaque;

    g_array_append_vals(n->events, event, 1);
}

static RdmaNext node_next_send(void *opaque, uint32_t qpn, bool flush,
                               RdmaSendWr *wr)
{
    LinkNode *n = opaque;

    n->next_send_calls++;
    return consumer_next_send(n->consumer, qpn, wr) ?: n->empty_answer;
}

static void node_put_back_send(void *opaque, uint32_t qpn,
                               const RdmaSendWr *wr)
{
    LinkNode *n = opaque;

    consumer_put_back_send(n->consumer, qpn);
}

static bool node_next_recv(void *opaque, RdmaQueue queue, uint32_t id,
                           bool flush, RdmaRecvWr *wr)
{
    LinkNode *n = opaque;

    n->recv_flush = flush;
    if (n->hidden_recvs) {
        n->hidden_recvs--;
        return false;
    }
    return consumer_next_recv(n->consumer, queue, id, wr);
}

static uint32_t node_recv_count(void *opaque, RdmaQueue queue, uint32_t id)
{
    LinkNode *n = opaque;

    if (n->uncounted) {
        n->uncounted--;
        return 0;
    }
    return consumer_recvs(n->consumer, queue, id);
}

static bool node_recv_sleep(void *opaque, RdmaQueue queue, uint32_t id)
{
    LinkNode *n = opaque;

    n->kick_requests[id]++;
    return !consumer_recvs(n->consumer, queue, id);
}

static void node_trace(void *opaque, const RoceTrace *trace)
{
    LinkNode *n = opaque;

    if (trace->refusal) {
        n->refusal = *trace->refusal;
    }
    if (n->traces) {
        g_array_append_vals(n->traces, trace, 1);
    }
}

static void node_wake(void *opaque)
{
    LinkNode *n = opaque;

    n->woken = true;
}

const RoceOps link_ops = {
    .map = node_map,
    .unmap = node_unmap,
    .atomic = node_atomic,
    .consumer = {
        .retire = node_retire,
        .complete = node_complete,
        .event = node_event,
        .next_send = node_next_send,
        .put_back_send = node_put_back_send,
        .next_recv = node_next_recv,
        .recv_count = node_recv_count,
        .recv_sleep = node_recv_sleep,
    },
    .wake = node_wake,
    .trace = node_trace,
};

const RoceConfig link_config = {
    .max_qp = LINK_MAX_QP,
    .max_mr = LINK_MAX_MR,
    .gid_table_len = 8,
    .max_rd_atomic = LINK_MAX_RD_ATOMIC,
    .max_srq = LINK_MAX_SRQ,
    .max_mcast_grp = 4,
    .max_mcast_qp_attach = 6,
};

void link_set_mtu(LinkNode *n, uint32_t mtu)
{
    n->link_mtu = mtu;
    roce_set_link_mtu(n->e, mtu);
}

void link_set_extensions(LinkNode *n, uint32_t extensions)
{
    n->extensions = extensions;
    roce_set_extensions(n->e, extensions);
}

void link_set_up(LinkNode *n, bool up)
{
    n->link_up = up;
    roce_set_link(n->e, up);
}

static void node_init(RoceLink *l, unsigned side)
{
    static const uint8_t gid4[RDMA_GID_LEN] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1
    };
    static const uint8_t gid6[RDMA_GID_LEN] = {
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0, 0, 1
    };
    static const uint8_t mac[RDMA_MAC_LEN] = { 0x52, 0x54, 0, 0, 0, 1 };
    LinkNode *n = &l->node[side];
    unsigned i;

    n->link = l;
    n->heard = ROCE_NO_DEADLINE;
    n->e = roce_new(&link_config, l->ops, n);
    link_set_extensions(n, LINK_EXTENSIONS);
    memcpy(n->mac, mac, sizeof(mac));
    memcpy(n->gid4, gid4, sizeof(gid4));
    memcpy(n->gid6, gid6, sizeof(gid6));
    n->mac[5] += side;
    n->gid4[15] += side;
    n->gid6[15] += side;
    roce_set_mac(n->e, n->mac);
    link_set_mtu(n, 4200);
    link_set_up(n, true);
    g_assert_cmpint(roce_add_gid(n->e, 0, n->gid4, RDMA_NO_VLAN), ==, 0);
    g_assert_cmpint(roce_add_gid(n->e, 1, n->gid6, RDMA_NO_VLAN), ==, 0);

    n->mem = g_malloc0(MEM_SIZE);
    n->hole = NO_HOLE;
    n->next_mrn = 1;
    n->events = g_array_new(FALSE, FALSE, sizeof(RdmaEvent));
    g_queue_init(&n->wcs);
    n->consumer = consumer_new();
    for (i = 0; i < G_N_ELEMENTS(n->cq_room); i++) {
        n->cq_room[i] = UINT64_MAX;
    }
    /* Runs of 1 to 4 neighbouring pages, in no order */
    n->free_pages = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (i = 0; i < MEM_PAGES; i++) {
        uint64_t page = (uint64_t)i * 1021 * 4 % MEM_PAGES;
        uint64_t addr;

        page = (page + i / (MEM_PAGES / 4)) % MEM_PAGES;
        addr = LINK_DMA_BASE + page * RDMA_PAGE_SIZE;
        g_array_append_val(n->free_pages, addr);
    }
}

RoceLink *link_new(uint32_t seed)
{
    const char *moves = g_getenv("ROCE_LINK_MOVES");
    RoceLink *l = g_new0(RoceLink, 1);

    l->ops = &link_ops;
    l->moves = moves ? atoi(moves) : 0;
    l->rand = g_rand_new_with_seed(seed);
    l->now = 1;
    g_queue_init(&l->frames);
    node_init(l, 0);
    node_init(l, 1);
    return l;
}

void link_free(RoceLink *l)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        LinkNode *n = &l->node[i];

        g_assert_cmpint(n->maps, ==, 0);
        roce_free(n->e);
        consumer_free(n->consumer);
        g_queue_clear_full(&n->wcs, g_free);
        g_array_free(n->events, TRUE);
        g_array_free(n->free_pages, TRUE);
        g_free(n->mem);
    }
    g_queue_clear_full(&l->frames, g_free);
    g_rand_free(l->rand);
    g_free(l);
}

/* Frames */

static bool chance(RoceLink *l, unsigned per_10000)
{
    return per_10000 &&
           (unsigned)g_rand_int_range(l->rand, 0, 10000) < per_10000;
}

static void enqueue(RoceLink *l, unsigned to, const void *data, size_t len)
{
    LinkFrame *f = g_malloc(sizeof(*f) + len);
    GList *pos = l->frames.tail;

    f->when = l->now + LINK_DELAY;
    f->serial = l->sent[!to];
    f->to = to;
    f->len = len;
    memcpy(f->data, data, len);
    if (chance(l, l->faults.reorder)) {
        f->when += g_rand_int_range(l->rand, 0, 10 * LINK_DELAY);
    }
    if (chance(l, l->faults.corrupt)) {
        f->data[g_rand_int_range(l->rand, 0, len)] ^=
            1 << g_rand_int_range(l->rand, 0, 8);
        l->faulty.corrupt += memcmp(f->data, data, len) != 0;
    }
    /* After frames of the same time */
    while (pos && ((LinkFrame *)pos->data)->when > f->when) {
        pos = pos->prev;
    }
    if (pos) {
        g_queue_insert_after(&l->frames, pos, f);
    } else {
        g_queue_push_head(&l->frames, f);
    }
}

void link_inject(RoceLink *l, unsigned to, const void *data, size_t len)
{
    roce_rx(l->node[to].e, data, len, l->now);
    link_pump(l);
}

static void transmit(RoceLink *l, unsigned from, const RoceTxFrame *frame)
{
    uint8_t data[ROCE_MAX_FRAME];
    size_t len = 0;
    unsigned i;

    for (i = 0; i < frame->iovcnt; i++) {
        g_assert_cmpuint(frame->iov[i].iov_len, <=, sizeof(data) - len);
        memcpy(data + len, frame->iov[i].iov_base, frame->iov[i].iov_len);
        len += frame->iov[i].iov_len;
    }
    g_assert_cmpuint(len, ==, frame->size);
    l->sent[from]++;
    /* A multicast may have no receiver. */
    g_assert_true((data[0] & 1) ||
                  roce_is_ours(l->node[!from].e, data, len));

    if (l->filter && !l->filter(l, from, data, len, l->filter_opaque)) {
        return;
    }
    if (chance(l, l->faults.loss)) {
        l->faulty.loss++;
        return;
    }
    enqueue(l, !from, data, len);
    if (chance(l, l->faults.dup)) {
        enqueue(l, !from, data, len);
        l->faulty.dup++;
    }
}

static void pump(RoceLink *l, unsigned from)
{
    static RoceTxFrame frame;
    LinkNode *n = &l->node[from];

    while (!n->stopped) {
        n->woken = false;
        while (roce_poll_tx(n->e, l->now, &frame)) {
            transmit(l, from, &frame);
            roce_tx_done(n->e, &frame);
            link_step(l);
        }
        g_assert_cmpint(n->maps, ==, 0);
        if (!n->woken) {
            break;
        }
    }
}

void link_pump(RoceLink *l)
{
    if (l->hold) {
        return;
    }
    do {
        pump(l, 0);
        pump(l, 1);
        /* link_step() may have replaced the first engine. */
    } while (l->node[0].woken && !l->node[0].stopped);
}

static int64_t next_time(RoceLink *l)
{
    LinkFrame *f = g_queue_peek_head(&l->frames);
    int64_t when = f ? f->when : ROCE_NO_DEADLINE;
    unsigned i;

    for (i = 0; i < 2; i++) {
        if (!l->node[i].stopped) {
            when = MIN(when, roce_next_deadline(l->node[i].e));
        }
    }
    return when;
}

static void expire(RoceLink *l)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        if (!l->node[i].stopped) {
            roce_expire(l->node[i].e, l->now,
                        MIN(l->now, l->node[i].heard));
        }
    }
}

/* Deliver a frame. Frames that were sent later may have arrived before. */
static void deliver_frame(RoceLink *l, LinkFrame *f)
{
    if (f->serial < l->newest[f->to]) {
        l->faulty.reorder++;
    }
    l->newest[f->to] = MAX(l->newest[f->to], f->serial);
    if (!l->node[f->to].stopped) {
        roce_rx(l->node[f->to].e, f->data, f->len, l->now);
    }
    g_free(f);
    link_step(l);
}

bool link_run(RoceLink *l, int64_t ns)
{
    int64_t end = l->now + ns;
    LinkFrame *f;

    for (;;) {
        link_pump(l);
        if (next_time(l) == ROCE_NO_DEADLINE) {
            return true;
        }
        if (next_time(l) > end) {
            l->now = end;
            return false;
        }
        l->now = MAX(l->now, next_time(l));
        expire(l);
        while ((f = g_queue_peek_head(&l->frames)) && f->when <= l->now) {
            g_queue_pop_head(&l->frames);
            deliver_frame(l, f);
        }
    }
}

/* Queue pairs */

LinkQpSpec link_spec(void)
{
    return (LinkQpSpec) {
        .type = RDMA_QPT_RC,
        .qpn = { 2, 3 },
        .mtu = RDMA_MTU_1024,
        .psn = { 0xfffff0, 0x123456 },
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .rd_atomic = { 4, 4 },
        .dest_rd_atomic = { 4, 4 },
        .access = LINK_ALL_ACCESS,
        .cap = {
            .max_send_wr = 64,
            .max_recv_wr = 64,
            .max_send_sge = 80,
            .max_recv_sge = 80,
            .max_inline_data = 3000,
        },
    };
}

RdmaAv link_av(LinkNode *from, LinkNode *to, bool ipv6)
{
    RdmaAv av = { .sgid_index = ipv6, .hop_limit = 64, .port_num = 1 };

    memcpy(av.dmac, to->mac, sizeof(av.dmac));
    memcpy(av.dgid, ipv6 ? to->gid6 : to->gid4, sizeof(av.dgid));
    return av;
}

uint32_t link_attr(RoceLink *l, const LinkQpSpec *spec, unsigned side,
                   RdmaQpState to, RdmaQpAttr *attr)
{
    bool rc = spec->type == RDMA_QPT_RC;
    bool connected = rc || spec->type == RDMA_QPT_UC;

    *attr = (RdmaQpAttr) {
        .qp_state = to,
        .port_num = 1,
        .qkey = spec->type == RDMA_QPT_GSI ? RDMA_GSI_QKEY : 0x1234,
        .qp_access_flags = spec->access,
        .path_mtu = spec->mtu,
        .dest_qp_num = spec->qpn[!side],
        .sq_psn = spec->psn[side],
        .rq_psn = spec->psn[!side],
        .max_rd_atomic = spec->rd_atomic[side],
        .max_dest_rd_atomic = spec->dest_rd_atomic[side],
        .min_rnr_timer = spec->min_rnr_timer,
        .timeout = spec->timeout,
        .retry_cnt = spec->retry_cnt,
        .rnr_retry = spec->rnr_retry,
        .ah_attr = link_av(&l->node[side], &l->node[!side], spec->ipv6),
    };
    switch (to) {
    case RDMA_QPS_INIT:
        return RDMA_QP_STATE | RDMA_QP_PKEY_INDEX |
               (spec->type == RDMA_QPT_GSI ? 0 : RDMA_QP_PORT) |
               (connected ? RDMA_QP_ACCESS_FLAGS : RDMA_QP_QKEY);
    case RDMA_QPS_RTR:
        return RDMA_QP_STATE |
               (connected ? RDMA_QP_AV | RDMA_QP_PATH_MTU |
                            RDMA_QP_DEST_QPN | RDMA_QP_RQ_PSN : 0) |
               (rc ? RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_MIN_RNR_TIMER : 0);
    case RDMA_QPS_RTS:
        return RDMA_QP_STATE | RDMA_QP_SQ_PSN |
               (rc ? RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT |
                     RDMA_QP_RNR_RETRY | RDMA_QP_MAX_QP_RD_ATOMIC : 0);
    default:
        return RDMA_QP_STATE;
    }
}

void link_create(LinkNode *n, const LinkQpSpec *spec, unsigned side)
{
    RdmaQpInitAttr init = {
        .qpn = spec->qpn[side],
        .pdn = LINK_PDN,
        .qp_type = spec->type,
        .sq_sig_all = spec->sig_all,
        .send_cqn = LINK_SEND_CQ(spec->qpn[side]),
        .recv_cqn = LINK_RECV_CQ(spec->qpn[side]),
        .cap = spec->cap,
        .has_srq = spec->srq[side],
        .srqn = LINK_SRQ,
    };

    g_assert_cmpint(roce_qp_create(n->e, &init), ==, 0);
}

void link_connect(RoceLink *l, const LinkQpSpec *spec)
{
    RdmaQpAttr attr;
    unsigned side, state;
    uint32_t mask;

    for (side = 0; side < 2; side++) {
        LinkNode *n = &l->node[side];

        link_create(n, spec, side);
        for (state = RDMA_QPS_INIT; state <= RDMA_QPS_RTS; state++) {
            mask = link_attr(l, spec, side, state, &attr);
            g_assert_cmpint(roce_qp_modify(n->e, spec->qpn[side], mask, &attr),
                            ==, 0);
        }
    }
}

void link_modify(LinkNode *n, uint32_t qpn, RdmaQpState to)
{
    RdmaQpAttr attr = { .qp_state = to, .en_sqd_async_notify = 1 };
    uint32_t mask = RDMA_QP_STATE;

    if (to == RDMA_QPS_SQD) {
        mask |= RDMA_QP_EN_SQD_ASYNC_NOTIFY;
    }
    g_assert_cmpint(roce_qp_modify(n->e, qpn, mask, &attr),
                    ==, 0);
}

RdmaQpState link_state(LinkNode *n, uint32_t qpn)
{
    RdmaQpAttr attr;

    g_assert_cmpint(roce_qp_query(n->e, qpn, &attr), ==, 0);
    return attr.qp_state;
}

/* Work requests */

RdmaSge link_sge(LinkMr *mr, size_t off, uint32_t len)
{
    return (RdmaSge) {
        .addr = mr->attr.iova + off,
        .length = len,
        .lkey = mr->attr.lkey,
    };
}

void link_post_recv_silently(LinkNode *n, uint32_t qpn, uint64_t wr_id,
                             RdmaSge sge)
{
    RdmaRecvWr wr = { .wr_id = wr_id, .num_sge = 1, .sg_list = &sge };

    consumer_post_recv(n->consumer, qpn, &wr);
}

void link_post_recv(LinkNode *n, uint32_t qpn, uint64_t wr_id, RdmaSge sge)
{
    link_post_recv_silently(n, qpn, wr_id, sge);
    roce_kick(n->e, RDMA_RQ, qpn);
}

void link_post_srq_silently(LinkNode *n, uint64_t wr_id, RdmaSge sge)
{
    RdmaRecvWr wr = { .wr_id = wr_id, .num_sge = 1, .sg_list = &sge };

    consumer_post_srq_recv(n->consumer, LINK_SRQ, &wr);
}

void link_srq(LinkNode *n, uint32_t max_wr, uint32_t pdn)
{
    RdmaSrqAttr attr = {
        .srqn = LINK_SRQ,
        .pdn = pdn,
        .max_wr = max_wr,
        .max_sge = 4,
    };

    g_assert_cmpint(roce_srq_create(n->e, &attr), ==, 0);
}

RdmaSendWr link_wr(uint32_t opcode, uint64_t wr_id, const RdmaSge *sge)
{
    return (RdmaSendWr) {
        .wr_id = wr_id,
        .opcode = opcode,
        .send_flags = RDMA_SEND_SIGNALED,
        .num_sge = sge ? 1 : 0,
        .sg_list = sge,
    };
}

uint32_t link_send_room(LinkNode *n, uint32_t qpn)
{
    RdmaInspection now;

    g_assert_cmpint(roce_inspect(n->e, RDMA_OBJECT_QP, qpn, &now), ==, 0);
    return now.qp.attr.cap.max_send_wr - now.qp.sends -
           consumer_sends(n->consumer, qpn);
}

void link_post_silently(LinkNode *n, uint32_t qpn, const RdmaSendWr *wr)
{
    g_assert_cmpuint(link_send_room(n, qpn), >, 0);
    consumer_post_send(n->consumer, qpn, wr);
}

void link_post(LinkNode *n, uint32_t qpn, const RdmaSendWr *wr)
{
    link_post_silently(n, qpn, wr);
    roce_kick(n->e, RDMA_SQ, qpn);
}

/* Pairs */

LinkPair link_pair(const LinkQpSpec *spec)
{
    LinkPair p = { .l = link_new(1), .aq = spec->qpn[0], .bq = spec->qpn[1] };

    p.a = &p.l->node[0];
    p.b = &p.l->node[1];
    link_connect(p.l, spec);
    p.amr = link_mr(p.a, LINK_PAIR_MEM, LINK_ALL_ACCESS);
    p.bmr = link_mr(p.b, LINK_PAIR_MEM, LINK_ALL_ACCESS);
    return p;
}

void link_pair_free(LinkPair *p)
{
    link_mr_free(p->amr);
    link_mr_free(p->bmr);
    link_free(p->l);
}

void link_pair_post(LinkPair *p, uint32_t opcode, uint64_t wr_id, size_t off,
                    uint32_t len)
{
    RdmaSge sge = link_sge(p->amr, off, len);
    RdmaSendWr wr = link_wr(opcode, wr_id, &sge);

    switch (opcode) {
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        wr.wr.atomic.remote_addr = p->bmr->attr.iova + off;
        wr.wr.atomic.rkey = p->bmr->attr.rkey;
        wr.wr.atomic.compare_add = 1;
        break;
    default:
        wr.wr.rdma.remote_addr = p->bmr->attr.iova + off;
        wr.wr.rdma.rkey = p->bmr->attr.rkey;
        break;
    }
    link_post(p->a, p->aq, &wr);
}

void link_pair_recv(LinkPair *p, uint64_t wr_id, size_t off, uint32_t len)
{
    link_post_recv(p->b, p->bq, wr_id, link_sge(p->bmr, off, len));
}

/* Results */

LinkWc link_wc(LinkNode *n)
{
    g_autofree LinkWc *entry = g_queue_pop_head(&n->wcs);

    g_assert_nonnull(entry);
    return *entry;
}

RdmaWc link_expect(LinkNode *n, uint64_t wr_id, RdmaWcStatus status)
{
    LinkWc entry = link_wc(n);

    g_assert_cmpuint(entry.wc.wr_id, ==, wr_id);
    g_assert_cmpint(entry.wc.status, ==, status);
    return entry.wc;
}

unsigned link_wcs(LinkNode *n)
{
    return g_queue_get_length(&n->wcs);
}

unsigned link_events(LinkNode *n, RdmaEventType type)
{
    unsigned i, count = 0;

    for (i = 0; i < n->events->len; i++) {
        count += g_array_index(n->events, RdmaEvent, i).type == type;
    }
    return count;
}

void link_add_faults(LinkFaults *sum, const LinkFaults *faulty)
{
    sum->loss += faulty->loss;
    sum->dup += faulty->dup;
    sum->reorder += faulty->reorder;
    sum->corrupt += faulty->corrupt;
}

void link_assert_faults(const LinkFaults *asked, const LinkFaults *faulty)
{
    g_assert_cmpuint(faulty->loss != 0, ==, asked->loss != 0);
    g_assert_cmpuint(faulty->dup != 0, ==, asked->dup != 0);
    g_assert_cmpuint(faulty->reorder != 0, ==, asked->reorder != 0);
    g_assert_cmpuint(faulty->corrupt != 0, ==, asked->corrupt != 0);
}
