/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two connected QPs that send each other random requests.
 */
#include <string.h>
#include "roce-flow.h"

#define NOPS 48
#define SLICE 5184
#define COUNTER_OFF (NOPS * SLICE)
#define RECV_DEPTH 6

typedef struct Op {
    uint32_t opcode;
    uint32_t len;
    bool signalled;
} Op;

/* One direction of the traffic: @from posts the requests. */
typedef struct Flow {
    LinkNode *from;
    LinkNode *to;
    uint32_t from_qpn;
    uint32_t to_qpn;
    LinkMr *local;                  /* SGEs of the requests */
    LinkMr *remote;                 /* targets of WRITE, READ, ATOMIC */
    uint32_t rkey;                  /* of @remote, or of a window on it */
    uint64_t base;                  /* the first address that @rkey allows */
    uint32_t mwn;
    LinkMr *recv;
    Op ops[NOPS];
    unsigned posted;
    unsigned completed;
    unsigned recv_posted;
    unsigned received;
    bool srq;
    uint64_t added;
} Flow;

static const uint32_t opcodes[] = {
    RDMA_WR_SEND, RDMA_WR_SEND_WITH_IMM, RDMA_WR_RDMA_WRITE,
    RDMA_WR_RDMA_WRITE_WITH_IMM, RDMA_WR_RDMA_READ,
    RDMA_WR_ATOMIC_FETCH_AND_ADD, RDMA_WR_ATOMIC_CMP_AND_SWP,
    RDMA_WR_ATOMIC_WRITE, RDMA_WR_FLUSH,
};

static bool op_is_atomic(const Op *op)
{
    return op->opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD ||
           op->opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
           op->opcode == RDMA_WR_ATOMIC_WRITE;
}

static bool op_uses_recv(const Op *op)
{
    return op->opcode == RDMA_WR_SEND ||
           op->opcode == RDMA_WR_SEND_WITH_IMM ||
           op->opcode == RDMA_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * Create a window of type 2 on all of the remote region, and bind it by a WR.
 */
static void bind_window(Flow *f, bool zero_based)
{
    RdmaMwAttr attr = {
        .mwn = f->to->next_mrn++,
        .pdn = LINK_PDN,
        .type = RDMA_MW_TYPE_2,
    };
    RdmaSendWr wr = link_wr(RDMA_WR_BIND_MW, 0, NULL);

    f->mwn = attr.mwn;
    attr.rkey = attr.mwn << 8;
    g_assert_cmpint(roce_mw_create(f->to->e, &attr), ==, 0);
    wr.send_flags = 0;
    wr.wr.bind.rkey = attr.rkey;
    wr.wr.bind.new_rkey = attr.rkey | 1;
    wr.wr.bind.lkey = f->remote->attr.lkey;
    wr.wr.bind.access = RDMA_ACCESS_REMOTE |
                        (zero_based ? RDMA_ACCESS_ZERO_BASED : 0);
    wr.wr.bind.addr = f->remote->attr.iova;
    wr.wr.bind.length = f->remote->attr.length;
    link_post(f->to, f->to_qpn, &wr);
    f->rkey = attr.rkey | 1;
    f->base = zero_based ? 0 : f->remote->attr.iova;
}

static void flow_init(Flow *f, RoceLink *l, unsigned side,
                      const LinkQpSpec *spec, uint32_t max_len)
{
    unsigned i;

    memset(f, 0, sizeof(*f));
    f->from = &l->node[side];
    f->to = &l->node[!side];
    f->from_qpn = spec->qpn[side];
    f->to_qpn = spec->qpn[!side];
    f->srq = spec->srq[!side];
    f->local = link_mr(f->from, COUNTER_OFF, RDMA_ACCESS_LOCAL_WRITE);
    f->remote = link_mr(f->to, COUNTER_OFF + 8,
                        LINK_ALL_ACCESS | RDMA_ACCESS_MW_BIND);
    f->rkey = f->remote->attr.rkey;
    f->base = f->remote->attr.iova;
    f->recv = link_mr(f->to, COUNTER_OFF, RDMA_ACCESS_LOCAL_WRITE);
    link_fill(f->local, 1 + side);
    link_fill(f->remote, 3 + side);
    link_write(f->remote, COUNTER_OFF, "\0\0\0\0\0\0\0\0", 8);
    for (i = 0; i < NOPS; i++) {
        Op *op = &f->ops[i];

        op->opcode = opcodes[g_rand_int_range(l->rand, 0,
                                              G_N_ELEMENTS(opcodes))];
        op->len = op_is_atomic(op) ? 8 :
                  g_rand_int_range(l->rand, 0, max_len + 1);
        op->signalled = i == NOPS - 1 || g_rand_int_range(l->rand, 0, 3);
    }
}

static void flow_free(Flow *f)
{
    if (f->mwn) {
        g_assert_cmpint(roce_mw_destroy(f->to->e, f->mwn), ==, 0);
    }
    link_mr_free(f->local);
    link_mr_free(f->remote);
    link_mr_free(f->recv);
}

static void post_op(Flow *f, unsigned i)
{
    const Op *op = &f->ops[i];
    RdmaSge sge = link_sge(f->local, i * SLICE, op->len);
    RdmaSendWr wr = link_wr(op->opcode, i, &sge);
    uint64_t value;

    wr.send_flags = op->signalled ? RDMA_SEND_SIGNALED : 0;
    memcpy(wr.ex.imm_data, &i, 4);
    switch (op->opcode) {
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        wr.wr.atomic.remote_addr = f->base + COUNTER_OFF;
        wr.wr.atomic.rkey = f->rkey;
        wr.wr.atomic.compare_add = i + 1;
        f->added += i + 1;
        break;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
        /* This doubles the counter if all earlier ATOMICs were right. */
        wr.wr.atomic.remote_addr = f->base + COUNTER_OFF;
        wr.wr.atomic.rkey = f->rkey;
        wr.wr.atomic.compare_add = f->added;
        wr.wr.atomic.swap = 2 * f->added;
        f->added *= 2;
        break;
    case RDMA_WR_ATOMIC_WRITE:
        wr.wr.rdma.remote_addr = f->base + COUNTER_OFF;
        wr.wr.rdma.rkey = f->rkey;
        f->added = i + 1;
        value = GUINT64_TO_LE(f->added);
        if (i % 2) {
            wr.num_sge = 0;
            wr.send_flags |= RDMA_SEND_INLINE;
            wr.inline_data = (uint8_t *)&value;
            wr.inline_len = sizeof(value);
        } else {
            link_write(f->local, (size_t)i * SLICE, &value, sizeof(value));
        }
        break;
    case RDMA_WR_FLUSH:
        wr.wr.flush.remote_addr = f->remote->attr.iova + i * SLICE;
        wr.wr.flush.rkey = f->remote->attr.rkey;
        wr.wr.flush.length = op->len;
        wr.wr.flush.type = RDMA_FLUSH_GLOBAL;
        wr.wr.flush.level = i % 2 ? RDMA_FLUSH_MR : RDMA_FLUSH_RANGE;
        break;
    default:
        wr.wr.rdma.remote_addr = f->base + i * SLICE;
        wr.wr.rdma.rkey = f->rkey;
        break;
    }
    link_post(f->from, f->from_qpn, &wr);
}

static void refill(Flow *f)
{
    while (f->posted < NOPS && link_send_room(f->from, f->from_qpn)) {
        post_op(f, f->posted++);
    }
    while (f->recv_posted - f->received < RECV_DEPTH) {
        unsigned i = f->recv_posted++;
        RdmaSge sge = link_sge(f->recv, i % NOPS * SLICE, SLICE);

        if (f->srq) {
            link_post_srq_silently(f->to, 1000 + i, sge);
        } else {
            link_post_recv(f->to, f->to_qpn, 1000 + i, sge);
        }
    }
}

/* The index of the next signalled op that is at least @i */
static unsigned next_signalled(const Flow *f, unsigned i)
{
    while (!f->ops[i].signalled) {
        i++;
    }
    return i;
}

static unsigned next_recv(const Flow *f, unsigned nth)
{
    unsigned i;

    for (i = 0; i < NOPS; i++) {
        if (op_uses_recv(&f->ops[i]) && nth-- == 0) {
            return i;
        }
    }
    g_assert_not_reached();
}

static void check_send_wc(Flow *f, const RdmaWc *wc)
{
    unsigned i = next_signalled(f, f->completed);

    g_assert_cmpint(wc->status, ==, RDMA_WC_SUCCESS);
    g_assert_cmpuint(wc->wr_id, ==, i);
    f->completed = i + 1;
}

static void check_recv_wc(Flow *f, const RdmaWc *wc)
{
    unsigned i = next_recv(f, f->received);
    const Op *op = &f->ops[i];
    bool send = op->opcode != RDMA_WR_RDMA_WRITE_WITH_IMM;

    g_assert_cmpint(wc->status, ==, RDMA_WC_SUCCESS);
    g_assert_cmpuint(wc->wr_id, ==, 1000 + f->received);
    g_assert_cmpuint(wc->byte_len, ==, op->len);
    g_assert_cmpint(wc->opcode, ==,
                    send ? RDMA_WC_RECV : RDMA_WC_RECV_RDMA_WITH_IMM);
    if (op->opcode != RDMA_WR_SEND) {
        g_assert_cmpmem(wc->ex.imm_data, 4, &i, 4);
    }
    if (send) {
        g_assert_true(link_same(f->local, (size_t)i * SLICE, f->recv,
                                (size_t)f->received * SLICE, op->len));
    }
    f->received++;
}

static void collect(Flow *flows, LinkNode *n)
{
    while (link_wcs(n)) {
        LinkWc entry = link_wc(n);
        Flow *out = flows[0].from == n ? &flows[0] : &flows[1];
        Flow *in = flows[0].from == n ? &flows[1] : &flows[0];

        if (entry.cqn == LINK_SEND_CQ(out->from_qpn)) {
            check_send_wc(out, &entry.wc);
        } else {
            check_recv_wc(in, &entry.wc);
        }
    }
}

/* Check the memory of READs and WRITEs, whose ranges do not overlap. */
static void check_memory(Flow *f)
{
    uint64_t value;
    unsigned i;

    for (i = 0; i < NOPS; i++) {
        const Op *op = &f->ops[i];

        if (op->opcode == RDMA_WR_RDMA_READ ||
            op->opcode == RDMA_WR_RDMA_WRITE ||
            op->opcode == RDMA_WR_RDMA_WRITE_WITH_IMM) {
            g_assert_true(link_same(f->local, (size_t)i * SLICE, f->remote,
                                    (size_t)i * SLICE, op->len));
        }
    }
    link_read(f->remote, COUNTER_OFF, &value, 8);
    g_assert_cmpuint(GUINT64_FROM_LE(value), ==, f->added);
}

static bool flow_done(const Flow *f)
{
    unsigned i, recvs = 0;

    for (i = 0; i < NOPS; i++) {
        recvs += op_uses_recv(&f->ops[i]);
    }
    return f->completed == NOPS && f->received == recvs;
}

void flow_exchange(const FlowSpec *fs)
{
    uint32_t seed = fs->seed;
    RoceLink *l = link_new(seed);
    LinkQpSpec spec = link_spec();
    unsigned rounds = 0;
    Flow flows[2];

    spec.mtu = fs->mtu;
    spec.ipv6 = seed & 1;
    spec.timeout = fs->timeout;
    spec.min_rnr_timer = 5;
    spec.cap.max_send_wr = 20;
    spec.rd_atomic[0] = 1 + seed % 4;
    spec.psn[0] = 0xffffff - seed % 32;
    spec.psn[1] = g_rand_int(l->rand) & 0xffffff;
    if (fs->srq) {
        spec.srq[0] = spec.srq[1] = true;
        link_srq(&l->node[0], RECV_DEPTH, LINK_PDN);
        link_srq(&l->node[1], RECV_DEPTH, LINK_PDN);
    }
    link_connect(l, &spec);
    l->faults = fs->faults;
    flow_init(&flows[0], l, 0, &spec, fs->max_len);
    flow_init(&flows[1], l, 1, &spec, fs->max_len);
    if (fs->windows) {
        bind_window(&flows[0], false);
        bind_window(&flows[1], true);
        /* Binding the windows takes no frame and no time. */
        link_pump(l);
    }

    while (!flow_done(&flows[0]) || !flow_done(&flows[1])) {
        refill(&flows[0]);
        refill(&flows[1]);
        link_run(l, fs->round);
        collect(flows, &l->node[0]);
        collect(flows, &l->node[1]);
        if (fs->disturb) {
            fs->disturb(l);
        }
        g_assert_cmpuint(rounds++, <, 1000000);
    }
    link_run(l, LINK_FOREVER);
    g_assert_cmpuint(link_wcs(&l->node[0]) + link_wcs(&l->node[1]), ==, 0);
    check_memory(&flows[0]);
    check_memory(&flows[1]);
    g_assert_cmpuint(l->node[0].retired[2][RDMA_SQ], ==,
                     NOPS + fs->windows);
    g_assert_cmpuint(l->node[1].retired[3][RDMA_SQ], ==,
                     NOPS + fs->windows);
    g_assert_cmpuint(l->node[0].retired[2][RDMA_RQ], ==,
                     fs->srq ? 0 : flows[1].received);
    g_assert_cmpuint(l->node[1].retired[3][RDMA_RQ], ==,
                     fs->srq ? 0 : flows[0].received);

    link_add_faults(fs->faulty, &l->faulty);
    flow_free(&flows[0]);
    flow_free(&flows[1]);
    link_free(l);
}
