/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Correct use of reliable connections. Both ends do the same at once. */
#include <stdio.h>
#include <string.h>
#include "posts.h"

#define GAP 61
#define ROOM 70000

static const struct wish rc = { .ps = RDMA_PS_TCP };

static const uint32_t lengths[] = { 1, 61, 0, 1024, 1025, 4096, 65537 };
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* The client's seeds differ from the server's. */
static uint32_t seed(bool of_client, uint32_t n)
{
    return 100 * of_client + n;
}

/* Messages of all lengths in each direction, several times. */
static void talk(const struct wish *wish)
{
    struct end e = connect_ends(wish);
    struct area from = new_area(&e, N_LENGTHS * ROOM, rdma_reg_msgs);
    struct area to = new_area(&e, N_LENGTHS * ROOM, rdma_reg_msgs);
    uint32_t i, round, n = 0;

    for (round = 0; round < 3; round++, n += N_LENGTHS) {
        for (i = 0; i < N_LENGTHS; i++) {
            must("rdma_post_recv",
                 rdma_post_recv(e.id, context_of(n + i), to.at + i * ROOM,
                                lengths[i] + GAP, to.mr));
            due(&to, i * ROOM, lengths[i], seed(!client, n + i), 0);
            fill(&from, i * ROOM, lengths[i], seed(client, n + i));
        }
        if (fault == FAULT_BYTE) {
            from.at[4 * ROOM + 1000] ^= 1;
        }
        meet(NULL);
        for (i = 0; i < N_LENGTHS; i++) {
            bool wrong = i == 3 && round == 1;

            must("rdma_post_send",
                 rdma_post_send(e.id,
                                context_of(n + i +
                                           (wrong &&
                                            fault == FAULT_CONTEXT)),
                                from.at + i * ROOM,
                                lengths[i] -
                                (wrong && fault == FAULT_LENGTH),
                                from.mr, IBV_SEND_SIGNALED));
        }
        for (i = 0; i < N_LENGTHS; i++) {
            get_send(&e, n + i, IBV_WC_SEND, lengths[i]);
            get_recv(&e, n + i, lengths[i]);
        }
        no_more(&e);
        check(&to, "what was received");
        if (fault != FAULT_BYTE) {
            check(&from, "what was sent");
        }
    }
    meet(NULL);
    no_more(&e);
    free_area(&from);
    free_area(&to);
    disconnect(&e);
}

void exchange_messages(void)
{
    talk(&rc);
}

void shared_queue(void)
{
    talk(&(struct wish){ .ps = RDMA_PS_TCP, .srq = true });
}

/* Three pieces of the message, in another order and at odd addresses. */
struct pieces {
    uint32_t offset[3];
    uint32_t size[3];
};

static const struct pieces gather[] = {
    { { 5000, 11, 9000 }, { 100, 1, 4000 } },
    { { 1, 20001, 7000 }, { 3000, 5000, 2001 } },
    { { 900, 300, 600 }, { 7, 8, 9 } },
};
static const struct pieces scatter[] = {
    { { 30, 9000, 300 }, { 7, 3094, 1000 } },
    { { 30000, 3, 15000 }, { 1, 10001, 300 } },
    { { 64, 32, 128 }, { 2, 3, 40 } },
};
#define N_PIECES (sizeof(gather) / sizeof(gather[0]))
#define PIECES_ROOM 40000

static uint32_t total(const struct pieces *p)
{
    return p->size[0] + p->size[1] + p->size[2];
}

static void sges_of(struct ibv_sge *sge, const struct area *a, size_t base,
                    const struct pieces *p)
{
    for (int i = 0; i < 3; i++) {
        sge[i] = sge_of(a, base + p->offset[i], p->size[i]);
    }
}

/* The message, spread over the pieces */
static void fill_pieces(struct area *a, size_t base, const struct pieces *p,
                        uint32_t s)
{
    uint32_t from = 0;

    for (int i = 0; i < 3; i++) {
        due(a, base + p->offset[i], p->size[i], s, from);
        memcpy(a->at + base + p->offset[i], a->image + base + p->offset[i],
               p->size[i]);
        from += p->size[i];
    }
}

/* The destination of the bytes of a message with this length */
static void due_pieces(struct area *a, size_t base, const struct pieces *p,
                       uint32_t len, uint32_t s)
{
    uint32_t from = 0;

    for (int i = 0; i < 3 && from < len; i++) {
        uint32_t size = p->size[i] < len - from ? p->size[i] : len - from;

        due(a, base + p->offset[i], size, s, from);
        from += size;
    }
}

void exchange_vectors(void)
{
    struct end e = connect_ends(&rc);
    struct area from = new_area(&e, N_PIECES * PIECES_ROOM, rdma_reg_msgs);
    struct area to = new_area(&e, N_PIECES * PIECES_ROOM, rdma_reg_msgs);
    struct ibv_sge sge[3];
    uint32_t i;

    for (i = 0; i < N_PIECES; i++) {
        sges_of(sge, &to, i * PIECES_ROOM, &scatter[i]);
        must("rdma_post_recvv",
             rdma_post_recvv(e.id, context_of(i), sge, 3));
        due_pieces(&to, i * PIECES_ROOM, &scatter[i], total(&gather[i]),
                   seed(!client, i));
        fill_pieces(&from, i * PIECES_ROOM, &gather[i], seed(client, i));
    }
    meet(NULL);
    for (i = 0; i < N_PIECES; i++) {
        sges_of(sge, &from, i * PIECES_ROOM, &gather[i]);
        must("rdma_post_sendv",
             rdma_post_sendv(e.id, context_of(50 + i), sge, 3,
                             IBV_SEND_SIGNALED));
    }
    for (i = 0; i < N_PIECES; i++) {
        get_send(&e, 50 + i, IBV_WC_SEND, total(&gather[i]));
        get_recv(&e, i, total(&gather[i]));
    }
    check(&to, "what was received");
    check(&from, "what was sent");
    meet(NULL);
    no_more(&e);
    free_area(&from);
    free_area(&to);
    disconnect(&e);
}

/* Each end writes to the other's first area, and reads its second one. */
struct reach {
    struct end e;
    struct area local, written, source, read;
    struct remote to, from;
};

static struct reach reach_out(size_t size)
{
    struct reach r = { .e = connect_ends(&rc) };

    r.local = new_area(&r.e, size, rdma_reg_msgs);
    r.written = new_area(&r.e, size, rdma_reg_write);
    r.source = new_area(&r.e, size, rdma_reg_read);
    r.read = new_area(&r.e, size, rdma_reg_msgs);
    return r;
}

/* after the source has its contents */
static void tell_areas(struct reach *r)
{
    r->to = meet(&r->written);
    r->from = meet(&r->source);
}

static void finish(struct reach *r)
{
    check(&r->read, "what was read");
    check(&r->local, "what was written from");
    meet(NULL);
    /* The peer's WRITEs are done: it called meet() after their completions. */
    check(&r->written, "what was written");
    check(&r->source, "what was read from");
    no_more(&r->e);
    free_area(&r->local);
    free_area(&r->written);
    free_area(&r->source);
    free_area(&r->read);
    disconnect(&r->e);
}

void read_and_write(void)
{
    struct reach r = reach_out(N_LENGTHS * ROOM);
    uint32_t i;

    for (i = 0; i < N_LENGTHS; i++) {
        fill(&r.local, i * ROOM, lengths[i], seed(client, i));
        fill(&r.source, i * ROOM + 9, lengths[i], seed(client, 50 + i));
        due(&r.written, i * ROOM + 3, lengths[i], seed(!client, i), 0);
        due(&r.read, i * ROOM + 5, lengths[i], seed(!client, 50 + i), 0);
    }
    tell_areas(&r);
    for (i = 0; i < N_LENGTHS; i++) {
        if (fault == FAULT_OPCODE && i == 2) {
            must("rdma_post_read",
                 rdma_post_read(r.e.id, context_of(i), r.local.at + i * ROOM,
                                lengths[i], r.local.mr, IBV_SEND_SIGNALED,
                                r.from.addr + i * ROOM, r.from.rkey));
        } else {
            must("rdma_post_write",
                 rdma_post_write(r.e.id, context_of(i),
                                 r.local.at + i * ROOM, lengths[i],
                                 r.local.mr, IBV_SEND_SIGNALED,
                                 r.to.addr + i * ROOM + 3, r.to.rkey));
        }
        must("rdma_post_read",
             rdma_post_read(r.e.id, context_of(50 + i),
                            r.read.at + i * ROOM + 5, lengths[i], r.read.mr,
                            IBV_SEND_SIGNALED,
                            r.from.addr + i * ROOM + 9, r.from.rkey));
    }
    for (i = 0; i < N_LENGTHS; i++) {
        get_send(&r.e, i, IBV_WC_RDMA_WRITE, lengths[i]);
        get_send(&r.e, 50 + i, IBV_WC_RDMA_READ, lengths[i]);
    }
    finish(&r);
}

void read_and_write_vectors(void)
{
    struct reach r = reach_out(N_PIECES * PIECES_ROOM);
    struct ibv_sge sge[3];
    uint32_t i, base, len;

    for (i = 0; i < N_PIECES; i++) {
        base = i * PIECES_ROOM;
        fill_pieces(&r.local, base, &gather[i], seed(client, i));
        fill(&r.source, base + 9, total(&scatter[i]), seed(client, 50 + i));
        due(&r.written, base + 3, total(&gather[i]), seed(!client, i), 0);
        due_pieces(&r.read, base, &scatter[i], total(&scatter[i]),
                   seed(!client, 50 + i));
    }
    tell_areas(&r);
    for (i = 0; i < N_PIECES; i++) {
        base = i * PIECES_ROOM;
        sges_of(sge, &r.local, base, &gather[i]);
        must("rdma_post_writev",
             rdma_post_writev(r.e.id, context_of(i), sge, 3,
                              IBV_SEND_SIGNALED, r.to.addr + base + 3,
                              r.to.rkey));
        sges_of(sge, &r.read, base, &scatter[i]);
        must("rdma_post_readv",
             rdma_post_readv(r.e.id, context_of(50 + i), sge, 3,
                             IBV_SEND_SIGNALED, r.from.addr + base + 9,
                             r.from.rkey));
    }
    for (i = 0; i < N_PIECES; i++) {
        len = total(&scatter[i]);
        get_send(&r.e, i, IBV_WC_RDMA_WRITE, total(&gather[i]));
        get_send(&r.e, 50 + i, IBV_WC_RDMA_READ, len);
    }
    finish(&r);
}
