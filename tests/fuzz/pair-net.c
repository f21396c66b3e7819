/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pair.h"

#define MAX_FRAMES 256

typedef struct Flying {
    unsigned to;
    size_t len;
    uint8_t data[ROCE_MAX_FRAME];
} Flying;

GPtrArray *pair_flying;
FuzzInput pair_in;

/* Do the actions that callbacks of @p have asked for. */
static void do_wanted(PairNode *p)
{
    unsigned n;

    for (n = 0; n < p->n_wanted; n++) {
        uint8_t what = p->wanted[n];

        pair_change(p, what, what >> 4);
    }
    p->n_wanted = 0;
}

void pair_done(PairNode *p, uint32_t max_work)
{
    pair_leave(p, max_work);
    do_wanted(p);
}

/* The network */

static void send_frame(unsigned to, const uint8_t *data, size_t len)
{
    Flying *f;

    if (pair_flying->len < MAX_FRAMES) {
        f = g_new(Flying, 1);
        f->to = to;
        f->len = len;
        memcpy(f->data, data, len);
        g_ptr_array_add(pair_flying, f);
    }
}

static void check_frame(const uint8_t *frame, size_t len)
{
    RocePacket pkt;

    MUST(roce_parse(frame, len, &pkt) == ROCE_PARSE_OK);
    MUST(roce_icrc_ok(&pkt));
}

/* Let a node send its frames, at most @max. */
unsigned pair_transmit(PairNode *p, unsigned max)
{
    static RoceTxFrame tx;
    uint8_t data[ROCE_MAX_FRAME];
    unsigned n, i;
    bool got = true;
    size_t len;

    for (n = 0; got && n < max; n++) {
        pair_enter(p);
        got = roce_poll_tx(p->n->e, pair.l->now, &tx);
        for (len = 0, i = 0; got && i < tx.iovcnt; i++) {
            MUST(tx.iov[i].iov_len <= sizeof(data) - len);
            memcpy(data + len, tx.iov[i].iov_base, tx.iov[i].iov_len);
            len += tx.iov[i].iov_len;
        }
        if (got) {
            MUST(len == tx.size && !p->blocked);
            check_frame(data, len);
            send_frame(!p->side, data, len);
            roce_tx_done(p->n->e, &tx);
        }
        MUST(p->n->maps == 0);
        pair_done(p, TX_WORK);
    }
    return n;
}

/* Limit the rights of the receiver's QP for this frame, whatever it says. */
static void limit_rights(PairNode *p, const uint8_t *frame, size_t len)
{
    RocePacket pkt;
    RdmaQpAttr attr;
    unsigned slot;

    if (roce_parse(frame, len, &pkt) != ROCE_PARSE_OK ||
        pkt.bth.dqpn == RDMA_QPN_MCAST) {
        return;
    }
    if (!roce_icrc_ok(&pkt) ||
        roce_qp_query(p->n->e, pkt.bth.dqpn, &attr) < 0 ||
        attr.qp_state == RDMA_QPS_RESET || attr.qp_state == RDMA_QPS_INIT ||
        attr.qp_state == RDMA_QPS_ERR) {
        p->deny_all = true;
        return;
    }
    slot = pkt.bth.dqpn - PAIR_QPN(0);
    p->deny_write = (pkt.info->flags & ROCE_OP_WRITE) &&
                    !(p->qp[slot].access & RDMA_ACCESS_REMOTE_WRITE);
}

void pair_receive(unsigned to, const uint8_t *data, size_t len)
{
    PairNode *p = &pair.node[to];
    /* A buffer of the exact size, for the sanitizer */
    g_autofree uint8_t *exact = g_memdup2(data, len);

    pair_enter(p);
    limit_rights(p, exact, len);
    roce_rx(p->n->e, exact, len, pair.l->now);
    pair_done(p, RX_WORK);
}

static void deliver(unsigned index)
{
    Flying *f = g_ptr_array_steal_index(pair_flying, index);

    pair.l->now += 1000;
    pair_receive(f->to, f->data, f->len);
    g_free(f);
}

static void expire(void)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        PairNode *p = &pair.node[i];

        pair_enter(p);
        roce_expire(p->n->e, pair.l->now, pair.l->now);
        pair_done(p, RX_WORK);
    }
}

/* Send and deliver in order, @n times at most; false: nothing to do. */
bool pair_run(unsigned n)
{
    bool any = false;

    while (n--) {
        unsigned sent = pair_transmit(&pair.node[0], 1 + n % 4);

        sent += pair_transmit(&pair.node[1], 1 + n % 3);
        if (pair_flying->len) {
            deliver(0);
            any = true;
        } else if (sent <= 2) {
            break;
        }
    }
    return any;
}

/* Spoil a frame, and make its checksums right again. */
static void mangle(Flying *f)
{
    unsigned n = 1 + fuzz_u8(&pair_in) % 3;
    size_t ip = roce_l2_len(f->data);

    pair.strict = false;
    while (n--) {
        uint8_t sel = fuzz_u8(&pair_in), with = fuzz_u8(&pair_in);
        /* Mostly BTH and what follows; IPv4 is the more likely */
        size_t at = sel < 0xc0 ? ip + 28 + sel % 48 : sel % 0x40;

        if (at < f->len) {
            f->data[at] ^= with;
        }
    }
    fuzz_fix_frame(f->data, f->len);
}

void pair_run_badly(unsigned n)
{
    while (n-- && (pair_flying->len || pair_run(1))) {
        uint8_t what = fuzz_u8(&pair_in);
        unsigned index;
        Flying *f;

        /* Callbacks may have frames lost, too */
        pair_transmit(&pair.node[n & 1], 4);
        if (!pair_flying->len) {
            continue;
        }
        index = (what >> 3) % pair_flying->len;
        f = pair_flying->pdata[index];
        switch (what & 7) {
        case 0:
        case 1:
            g_free(g_ptr_array_steal_index(pair_flying, index));
            break;
        case 2:
            send_frame(f->to, f->data, f->len);
            break;
        case 3:
            mangle(f);
            deliver(index);
            break;
        case 4:
            /* The ICRC stays wrong: the frame must have no effect */
            f->data[f->len / 2] ^= 1;
            deliver(index);
            break;
        case 5:
            g_free(g_ptr_array_steal_index(pair_flying, 0));
            break;
        default:
            deliver(index);
            break;
        }
    }
}

bool pair_pass_time(int64_t most)
{
    int64_t next = MIN(roce_next_deadline(pair.node[0].n->e),
                       roce_next_deadline(pair.node[1].n->e));

    if (next == ROCE_NO_DEADLINE) {
        return false;
    }
    pair.l->now = MAX(pair.l->now, MIN(next, pair.l->now + most));
    expire();
    return true;
}

/* Frames to and from QPs that are created again are lost. */
void pair_lose_frames(uint32_t qpn)
{
    RocePacket pkt;
    unsigned i = 0;

    while (i < pair_flying->len) {
        Flying *f = pair_flying->pdata[i];

        if (roce_parse(f->data, f->len, &pkt) == ROCE_PARSE_OK &&
            pkt.bth.dqpn == qpn) {
            g_free(g_ptr_array_steal_index(pair_flying, i));
        } else {
            i++;
        }
    }
}
