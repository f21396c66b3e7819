/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests that are inline or not signalled, of reliable connections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posts.h"

#define LEN 90
#define ROOM 256

static const struct wish rc = { .ps = RDMA_PS_TCP };

/*
 * Inline data needs no region, and its memory is free again when the call
 * returns. A quarter of the messages each: SEND and WRITE, plain and of three
 * pieces whose keys are not checked.
 */
void inline_data(void)
{
    const int flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    struct end e = connect_ends(&rc);
    struct area to = new_area(&e, 4 * ROOM, rdma_reg_write);
    uint8_t data[LEN];
    struct ibv_sge sge[3] = {
        { (uintptr_t)data, 1, 0xdead },
        { (uintptr_t)data + 1, 60, 0xbeef },
        { (uintptr_t)data + 61, LEN - 61, 0 },
    };
    struct remote peer;
    uint32_t i;

    for (i = 0; i < 4; i++) {
        due(&to, i * ROOM + 1, LEN, 100 * !client + i, 0);
    }
    for (i = 0; i < 2; i++) {
        must("rdma_post_recv",
             rdma_post_recv(e.id, context_of(50 + i), to.at + i * ROOM + 1,
                            LEN, to.mr));
    }
    peer = meet(&to);
    for (i = 0; i < 4; i++) {
        uint64_t at = peer.addr + i * ROOM + 1;

        pattern(data, LEN, 100 * client + i);
        if (i == 0) {
            must("rdma_post_send",
                 rdma_post_send(e.id, context_of(i), data, LEN, NULL, flags));
        } else if (i == 1) {
            must("rdma_post_sendv",
                 rdma_post_sendv(e.id, context_of(i), sge, 3, flags));
        } else if (i == 2) {
            must("rdma_post_write",
                 rdma_post_write(e.id, context_of(i), data, LEN, NULL, flags,
                                 at, peer.rkey));
        } else {
            must("rdma_post_writev",
                 rdma_post_writev(e.id, context_of(i), sge, 3, flags, at,
                                  peer.rkey));
        }
        memset(data, 0, LEN);
    }
    for (i = 0; i < 4; i++) {
        get_send(&e, i, i < 2 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE, LEN);
    }
    for (i = 0; i < 2; i++) {
        get_recv(&e, 50 + i, LEN);
    }
    meet(NULL);
    check(&to, "what came inline");
    no_more(&e);
    free_area(&to);
    disconnect(&e);
}

/*
 * Of eight requests, SENDs, WRITEs and READs in turn, only the last one is
 * signalled. There are more of them than the send queue holds at once.
 */
void unsignalled(void)
{
    enum { BATCH = 8, ROUNDS = 6 };
    struct end e = connect_ends(&rc);
    struct area from = new_area(&e, BATCH * ROOM, rdma_reg_read);
    struct area to = new_area(&e, BATCH * ROOM, rdma_reg_write);
    uint32_t round, i;
    struct remote sink, source;

    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < BATCH; i++) {
            uint32_t mine = 1000 * client + 10 * round + i;
            uint32_t its = 1000 * !client + 10 * round + i;

            if (i % 3 == 0) {
                must("rdma_post_recv",
                     rdma_post_recv(e.id, context_of(i), to.at + i * ROOM,
                                    LEN, to.mr));
            }
            fill(&from, i * ROOM, LEN, mine);
            due(&to, i * ROOM, LEN, its, 0);
        }
        sink = meet(&to);
        source = meet(&from);
        for (i = 0; i < BATCH; i++) {
            bool last = i == BATCH - 1;
            int flags = last || (fault == FAULT_SIGNAL && i == 4) ?
                        IBV_SEND_SIGNALED : 0;
            uint64_t far = i * ROOM;

            if (i % 3 == 0) {
                must("rdma_post_send",
                     rdma_post_send(e.id, context_of(i), from.at + far, LEN,
                                    from.mr, flags));
            } else if (i % 3 == 1) {
                must("rdma_post_write",
                     rdma_post_write(e.id, context_of(i), from.at + far, LEN,
                                     from.mr, flags, sink.addr + far,
                                     sink.rkey));
            } else {
                must("rdma_post_read",
                     rdma_post_read(e.id, context_of(i), to.at + far, LEN,
                                    to.mr, flags, source.addr + far,
                                    source.rkey));
            }
        }
        get_send(&e, BATCH - 1, IBV_WC_RDMA_WRITE, LEN);
        for (i = 0; i < BATCH; i += 3) {
            get_recv(&e, i, LEN);
        }
        meet(NULL);
        check(&to, "what arrived");
        check(&from, "what was sent");
        no_more(&e);
    }
    free_area(&from);
    free_area(&to);
    disconnect(&e);
}

/* On a queue pair that signals all requests, flags need not ask for it. */
void signal_all(void)
{
    enum { COUNT = 8 };
    struct wish wish = { .ps = RDMA_PS_TCP, .signal_all = true };
    struct end e = connect_ends(&wish);
    struct area from = new_area(&e, COUNT * ROOM, rdma_reg_msgs);
    struct area to = new_area(&e, COUNT * ROOM, rdma_reg_msgs);
    uint32_t i;

    for (i = 0; i < COUNT; i++) {
        must("rdma_post_recv",
             rdma_post_recv(e.id, context_of(i), to.at + i * ROOM, ROOM,
                            to.mr));
        fill(&from, i * ROOM, LEN, 100 * client + i);
        due(&to, i * ROOM, LEN, 100 * !client + i, 0);
    }
    meet(NULL);
    for (i = 0; i < COUNT; i++) {
        must("rdma_post_send",
             rdma_post_send(e.id, context_of(50 + i), from.at + i * ROOM,
                            LEN, from.mr, 0));
    }
    for (i = 0; i < COUNT; i++) {
        get_send(&e, 50 + i, IBV_WC_SEND, LEN);
        get_recv(&e, i, LEN);
    }
    check(&to, "what was received");
    meet(NULL);
    no_more(&e);
    free_area(&from);
    free_area(&to);
    disconnect(&e);
}
