/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Misuse of reliable connections by the client. Both ends have a receive
 * posted, whose completion shows whether the misuse broke the queue pair.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posts.h"

#define LEN 100
#define ROOM 4096
#define RECV 99         /* context of the receive that is posted */
#define WRONG 7         /* context of the wrong request */
#define SIGNALED IBV_SEND_SIGNALED

static const struct wish rc = { .ps = RDMA_PS_TCP };

struct trial {
    struct end e;
    struct area mine;   /* the client's own buffers, also for receives */
    struct area open;   /* the peer may write it */
    struct area shown;  /* the peer may read it */
    struct remote to, from;
};

static struct trial start(const struct wish *wish, bool receive)
{
    struct trial t = { .e = connect_ends(wish) };

    t.mine = new_area(&t.e, ROOM, rdma_reg_msgs);
    t.open = new_area(&t.e, ROOM, rdma_reg_write);
    t.shown = new_area(&t.e, ROOM, rdma_reg_read);
    if (receive) {
        must("rdma_post_recv",
             rdma_post_recv(t.e.id, context_of(RECV), t.mine.at, LEN,
                            t.mine.mr));
    }
    t.to = meet(&t.open);
    t.from = meet(&t.shown);
    return t;
}

static void end(struct trial *t)
{
    meet(NULL);
    check(&t->mine, "the client's memory, or what was received");
    check(&t->open, "what could have been written");
    check(&t->shown, "what could have been read");
    no_more(&t->e);
    free_area(&t->mine);
    free_area(&t->open);
    free_area(&t->shown);
    disconnect(&t->e);
}

/* The client's request completes like this, and breaks its queue pair. */
static void client_breaks(struct trial *t, enum ibv_wc_status status)
{
    get_send_error(&t->e, WRONG, status);
    get_recv_error(&t->e, RECV, IBV_WC_WR_FLUSH_ERR);
    /* Later requests are flushed. */
    must("rdma_post_send",
         rdma_post_send(t->e.id, context_of(8), t->mine.at, LEN, t->mine.mr,
                        0));
    get_send_error(&t->e, 8, IBV_WC_WR_FLUSH_ERR);
}

/* A message arrives at the other end: nothing is broken. */
static void still_works(struct trial *t)
{
    fill(&t->mine, 2000, LEN, client);
    due(&t->mine, 0, LEN, !client, 0);
    meet(NULL);
    must("rdma_post_send",
         rdma_post_send(t->e.id, context_of(9), t->mine.at + 2000, LEN,
                        t->mine.mr, SIGNALED));
    get_send(&t->e, 9, IBV_WC_SEND, LEN);
    get_recv(&t->e, RECV, LEN);
}

/* Neither a region nor inline: key 0, which is never valid */
void without_region(void)
{
    for (int i = 0; i < 2; i++) {
        struct trial t = start(&rc, true);

        if (client && i == 0) {
            must("rdma_post_send",
                 rdma_post_send(t.e.id, context_of(WRONG), t.mine.at, LEN,
                                NULL, SIGNALED));
        } else if (client) {
            must("rdma_post_write",
                 rdma_post_write(t.e.id, context_of(WRONG), t.mine.at, LEN,
                                 NULL, SIGNALED, t.to.addr, t.to.rkey));
        }
        if (client) {
            client_breaks(&t, IBV_WC_LOC_PROT_ERR);
        }
        end(&t);
    }
}

/* The server refuses, and its queue pair breaks, too. */
static void refused(struct trial *t)
{
    if (client) {
        client_breaks(t, IBV_WC_REM_ACCESS_ERR);
    } else {
        get_recv_error(&t->e, RECV, IBV_WC_WR_FLUSH_ERR);
    }
    end(t);
}

static void write_to(struct trial *t, uint64_t addr, uint32_t rkey)
{
    if (client) {
        must("rdma_post_write",
             rdma_post_write(t->e.id, context_of(WRONG), t->mine.at, LEN,
                             t->mine.mr, SIGNALED, addr, rkey));
    }
    refused(t);
}

static void read_from(struct trial *t, uint64_t addr, uint32_t rkey)
{
    if (client) {
        must("rdma_post_read",
             rdma_post_read(t->e.id, context_of(WRONG), t->mine.at, LEN,
                            t->mine.mr, SIGNALED, addr, rkey));
    }
    refused(t);
}

/* A key that does not exist, and keys that do not grant the access */
void wrong_key(void)
{
    struct trial t = start(&rc, true);

    write_to(&t, t.to.addr, t.to.rkey ^ 0xff);
    t = start(&rc, true);
    read_from(&t, t.from.addr, t.from.rkey ^ 0xff);
    t = start(&rc, true);
    write_to(&t, t.from.addr, t.from.rkey);
    t = start(&rc, true);
    read_from(&t, t.to.addr, t.to.rkey);
}

/* One byte beyond the region's end, or before its start */
void wrong_place(void)
{
    struct trial t = start(&rc, true);

    write_to(&t, t.to.addr + ROOM - LEN + 1, t.to.rkey);
    t = start(&rc, true);
    read_from(&t, t.from.addr - 1, t.from.rkey);
}

/* In each list a piece with a wrong key follows a good piece. */
void wrong_local_key(void)
{
    struct trial t;
    struct ibv_sge sge[2];

    for (int i = 0; i < 3; i++) {
        t = start(&rc, true);
        sge[0] = sge_of(&t.mine, 0, 10);
        sge[1] = sge_of(&t.mine, 10, 10);
        sge[1].lkey ^= 0xff;
        if (client && i == 0) {
            must("rdma_post_sendv",
                 rdma_post_sendv(t.e.id, context_of(WRONG), sge, 2,
                                 SIGNALED));
        } else if (client && i == 1) {
            must("rdma_post_writev",
                 rdma_post_writev(t.e.id, context_of(WRONG), sge, 2, SIGNALED,
                                  t.to.addr, t.to.rkey));
        } else if (client) {
            must("rdma_post_readv",
                 rdma_post_readv(t.e.id, context_of(WRONG), sge, 2, SIGNALED,
                                 t.from.addr, t.from.rkey));
        }
        if (client) {
            client_breaks(&t, IBV_WC_LOC_PROT_ERR);
        }
        /* The device may have read the pieces before the wrong one. */
        memcpy(t.mine.image, t.mine.at, client && i == 2 ? 10 : 0);
        end(&t);
    }
    /* The server's receive is wrong. */
    t = start(&rc, false);
    if (client) {
        must("rdma_post_recv",
             rdma_post_recv(t.e.id, context_of(RECV), t.mine.at, LEN,
                            t.mine.mr));
    } else {
        sge[0] = sge_of(&t.mine, 0, 10);
        sge[1] = sge_of(&t.mine, 10, 100);
        sge[1].lkey ^= 0xff;
        must("rdma_post_recvv",
             rdma_post_recvv(t.e.id, context_of(RECV), sge, 2));
    }
    meet(NULL);
    if (client) {
        must("rdma_post_send",
             rdma_post_send(t.e.id, context_of(WRONG), t.mine.at, LEN,
                            t.mine.mr, SIGNALED));
        client_breaks(&t, IBV_WC_REM_OP_ERR);
    } else {
        get_recv_error(&t.e, RECV, IBV_WC_LOC_PROT_ERR);
        memcpy(t.mine.image, t.mine.at, 10);
    }
    end(&t);
}

/* The message is one byte longer than the receive. */
void long_message(void)
{
    struct trial t = start(&rc, true);

    if (client) {
        must("rdma_post_send",
             rdma_post_send(t.e.id, context_of(WRONG), t.mine.at, LEN + 1,
                            t.mine.mr, SIGNALED));
        client_breaks(&t, IBV_WC_REM_INV_REQ_ERR);
    } else {
        get_recv_error(&t.e, RECV, IBV_WC_LOC_LEN_ERR);
        /* The number of stored bytes is undefined. */
        memcpy(t.mine.image, t.mine.at, LEN);
    }
    end(&t);
}

/* The server has no receive, and the client does not retry. */
void no_receive(void)
{
    struct trial t = start(&(struct wish){ .ps = RDMA_PS_TCP,
                                           .no_rnr_retry = true }, client);

    if (client) {
        must("rdma_post_send",
             rdma_post_send(t.e.id, context_of(WRONG), t.mine.at, LEN,
                            t.mine.mr, SIGNALED));
        client_breaks(&t, IBV_WC_RNR_RETRY_EXC_ERR);
    }
    end(&t);
}

/* Each vectored form refuses one SGE more than the queue pair has. */
void many_sges(void)
{
    struct trial t = start(&rc, true);
    int send = t.e.cap.max_send_sge + 1, recv = t.e.cap.max_recv_sge + 1;
    int most = send > recv ? send : recv;
    struct ibv_sge *sge = calloc(most, sizeof(*sge));

    for (int i = 0; i < most; i++) {
        sge[i] = sge_of(&t.mine, i, 1);
    }
    must_fail("rdma_post_sendv",
              rdma_post_sendv(t.e.id, context_of(1), sge, send, SIGNALED),
              EINVAL);
    must_fail("rdma_post_writev",
              rdma_post_writev(t.e.id, context_of(2), sge, send, SIGNALED,
                               t.to.addr, t.to.rkey), EINVAL);
    must_fail("rdma_post_readv",
              rdma_post_readv(t.e.id, context_of(3), sge, send, SIGNALED,
                              t.from.addr, t.from.rkey), EINVAL);
    must_fail("rdma_post_recvv",
              rdma_post_recvv(t.e.id, context_of(4), sge, recv), EINVAL);
    free(sge);
    still_works(&t);
    end(&t);
}

/* One inline byte too many is refused. */
void long_inline(void)
{
    struct trial t = start(&rc, true);
    uint32_t len = t.e.cap.max_inline_data + 1;
    uint8_t *data = calloc(1, len);
    int expected = is_rxe(&t.e) ? EINVAL : ENOMEM;

    must_fail("rdma_post_send",
              rdma_post_send(t.e.id, context_of(1), data, len, NULL,
                             SIGNALED | IBV_SEND_INLINE), expected);
    must_fail("rdma_post_write",
              rdma_post_write(t.e.id, context_of(2), data, len, NULL,
                              SIGNALED | IBV_SEND_INLINE, t.to.addr,
                              t.to.rkey), expected);
    free(data);
    still_works(&t);
    end(&t);
}

/* A queue takes no more receives than it has room for. */
void full_queue(void)
{
    struct trial t = start(&rc, true);

    for (uint32_t i = 1; i < t.e.cap.max_recv_wr; i++) {
        must("rdma_post_recv",
             rdma_post_recv(t.e.id, context_of(1000 + i), t.open.at, LEN,
                            t.open.mr));
    }
    must_fail("rdma_post_recv",
              rdma_post_recv(t.e.id, context_of(1), t.open.at, LEN,
                             t.open.mr), ENOMEM);
    still_works(&t);
    meet(NULL);
    /* The used receive makes room for another one. */
    must("rdma_post_recv",
         rdma_post_recv(t.e.id, context_of(2000), t.open.at, LEN,
                        t.open.mr));
    end(&t);
}
