/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Datagrams. The client speaks first, the server answers the sender. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posts.h"

#define ROOM 2048

static const struct wish ud = { .ps = RDMA_PS_UDP };

/* The address of a peer */
struct there {
    struct ibv_ah *ah;
    uint32_t qpn;
};

/*
 * The client learns the server's address from the connection manager's reply.
 */
static struct there server_of(struct end *e)
{
    struct rdma_ud_param *param;
    struct there t;

    if (!e->id->event || e->id->event->event != RDMA_CM_EVENT_ESTABLISHED) {
        fail("no reply of the connection manager");
    }
    param = &e->id->event->param.ud;
    if (param->qkey != RDMA_UDP_QKEY) {
        fail("the server's Q_Key is 0x%x, not 0x%x", param->qkey,
             RDMA_UDP_QKEY);
    }
    t.ah = ibv_create_ah(e->id->pd, &param->ah_attr);
    t.qpn = param->qp_num;
    if (!t.ah) {
        fail("ibv_create_ah: %s", strerror(errno));
    }
    return t;
}

/* The server learns the client's address from its datagram. */
static struct there sender_of(struct end *e, struct ibv_wc *wc, void *grh)
{
    struct there t = {
        .ah = ibv_create_ah_from_wc(e->id->pd, wc, grh, e->id->port_num),
        .qpn = wc->src_qp,
    };

    if (!t.ah) {
        fail("ibv_create_ah_from_wc: %s", strerror(errno));
    }
    return t;
}

/*
 * The GRH area holds the IP header of the packet. An IPv4 header is in the last
 * 20 bytes, and the bytes before it are undefined. Only the addresses are
 * known.
 */
static void due_grh(struct end *e, struct area *a, size_t offset)
{
    struct sockaddr *from = rdma_get_peer_addr(e->id);
    struct sockaddr *to = rdma_get_local_addr(e->id);
    uint8_t *image = a->image + offset;

    memcpy(image, a->at + offset, GRH_BYTES);
    if (to->sa_family == AF_INET) {
        memcpy(image + 32, &((struct sockaddr_in *)from)->sin_addr, 4);
        memcpy(image + 36, &((struct sockaddr_in *)to)->sin_addr, 4);
    } else {
        memcpy(image + 8, &((struct sockaddr_in6 *)from)->sin6_addr, 16);
        memcpy(image + 24, &((struct sockaddr_in6 *)to)->sin6_addr, 16);
    }
}

/* How to post a datagram */
struct manner {
    const uint32_t *lengths;
    uint32_t count;
    bool inlined;
    bool quiet;         /* only the last one is signalled */
};

static void send_all(struct end *e, struct area *from, struct there *t,
                     const struct manner *m)
{
    uint8_t data[ROOM];
    uint32_t i;

    for (i = 0; i < m->count; i++) {
        bool signalled = !m->quiet || i == m->count - 1;
        int flags = (signalled ? IBV_SEND_SIGNALED : 0) |
                    (m->inlined ? IBV_SEND_INLINE : 0);
        uint8_t *at = from->at + i * ROOM;

        if (m->inlined) {
            memcpy(data, at, m->lengths[i]);
            at = data;
        }
        must("rdma_post_ud_send",
             rdma_post_ud_send(e->id, context_of(50 + i), at, m->lengths[i],
                               m->inlined ? NULL : from->mr, flags, t->ah,
                               t->qpn));
        memset(data, 0, sizeof(data));
    }
    for (i = m->quiet ? m->count - 1 : 0; i < m->count; i++) {
        get_send(e, 50 + i, IBV_WC_SEND, m->lengths[i]);
    }
}

static struct ibv_wc receive_all(struct end *e, struct area *to,
                                 const struct manner *m)
{
    struct ibv_wc wc = {};

    for (uint32_t i = 0; i < m->count; i++) {
        wc = get_recv(e, i, m->lengths[i] + GRH_BYTES);
        due_grh(e, to, i * ROOM);
    }
    return wc;
}

static void datagrams_of(const struct manner *m)
{
    struct end e = connect_ends(&ud);
    struct area from = new_area(&e, m->count * ROOM, rdma_reg_msgs);
    struct area to = new_area(&e, m->count * ROOM, rdma_reg_msgs);
    struct there t;
    struct ibv_wc wc;
    uint32_t i;

    for (i = 0; i < m->count; i++) {
        must("rdma_post_recv",
             rdma_post_recv(e.id, context_of(i), to.at + i * ROOM,
                            m->lengths[i] + GRH_BYTES, to.mr));
        fill(&from, i * ROOM, m->lengths[i], 100 * client + i);
        due(&to, i * ROOM + GRH_BYTES, m->lengths[i], 100 * !client + i, 0);
    }
    meet(NULL);
    if (client) {
        t = server_of(&e);
        send_all(&e, &from, &t, m);
        wc = receive_all(&e, &to, m);
        if (wc.src_qp != t.qpn) {
            fail("a datagram of queue pair %u, not %u", wc.src_qp, t.qpn);
        }
    } else {
        wc = receive_all(&e, &to, m);
        t = sender_of(&e, &wc, to.at + (m->count - 1) * ROOM);
        send_all(&e, &from, &t, m);
    }
    check(&to, "what was received");
    check(&from, "what was sent");
    meet(NULL);
    no_more(&e);
    must("ibv_destroy_ah", ibv_destroy_ah(t.ah));
    free_area(&from);
    free_area(&to);
    disconnect(&e);
}

void datagrams(void)
{
    static const uint32_t lengths[] = { 1, 0, 61, 1000, 1024 };

    datagrams_of(&(struct manner){ lengths, 5, false, false });
}

void datagrams_inline(void)
{
    static const uint32_t lengths[] = { 1, 61, 96 };

    datagrams_of(&(struct manner){ lengths, 3, true, false });
}

void datagrams_unsignalled(void)
{
    static const uint32_t lengths[] = { 5, 6, 7, 8, 9, 10, 11, 12 };

    datagrams_of(&(struct manner){ lengths, 8, false, true });
}

/*
 * Without a region and not inline: nothing leaves, and the end is an error. A
 * UD queue pair goes to SQE then, so its receives stay; rxe flushes them.
 */
void datagram_without_region(void)
{
    struct end e = connect_ends(&ud);
    struct area to = new_area(&e, ROOM, rdma_reg_msgs);
    struct there t;

    must("rdma_post_recv",
         rdma_post_recv(e.id, context_of(1), to.at, ROOM, to.mr));
    meet(NULL);
    if (client) {
        t = server_of(&e);
        must("rdma_post_ud_send",
             rdma_post_ud_send(e.id, context_of(2), to.at, 64, NULL,
                               IBV_SEND_SIGNALED, t.ah, t.qpn));
        get_send_error(&e, 2, IBV_WC_LOC_PROT_ERR);
        if (is_rxe(&e)) {
            get_recv_error(&e, 1, IBV_WC_WR_FLUSH_ERR);
        }
        must("ibv_destroy_ah", ibv_destroy_ah(t.ah));
    }
    meet(NULL);
    check(&to, "where nothing was to arrive");
    no_more(&e);
    free_area(&to);
    disconnect(&e);
}
