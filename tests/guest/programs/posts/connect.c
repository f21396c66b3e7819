/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two ends: QPs that RDMA CM connects, and a TCP connection for their
 * synchronization. TCP survives the QPs that a case breaks.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "posts.h"

#define TCP_PORT "18515"
#define CM_PORT "7471"
#define DEPTH 16
#define SGES 3
#define INLINE 96

static int peer = -1;

struct step {
    struct remote remote;
    uint32_t number;
};

void meet_first(void)
{
    struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST,
    }, *info;
    int on = 1, fd;

    if (getaddrinfo(server_address, TCP_PORT, &hints, &info)) {
        fail("no address %s", server_address);
    }
    fd = socket(info->ai_family, SOCK_STREAM, 0);
    if (client) {
        must("connect", connect(fd, info->ai_addr, info->ai_addrlen));
        peer = fd;
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        must("bind", bind(fd, info->ai_addr, info->ai_addrlen));
        must("listen", listen(fd, 1));
        peer = accept(fd, NULL, NULL);
        close(fd);
    }
    freeaddrinfo(info);
}

struct remote meet(const struct area *area)
{
    static uint32_t number;
    struct step mine = { .number = ++number }, its;

    if (area) {
        mine.remote.addr = (uintptr_t)area->at;
        mine.remote.rkey = area->mr->rkey;
    }
    if (send(peer, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine) ||
        recv(peer, &its, sizeof(its), MSG_WAITALL) != sizeof(its)) {
        fail("lost the peer at step %u", number);
    }
    if (its.number != number) {
        fail("the peer is at step %u, not %u", its.number, number);
    }
    return its.remote;
}

static void make_qp(struct end *e, const struct wish *wish)
{
    struct ibv_qp_init_attr init = {
        .qp_type = wish->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
        .sq_sig_all = wish->signal_all,
        .cap = {
            .max_send_wr = DEPTH,
            .max_recv_wr = DEPTH,
            .max_send_sge = SGES,
            .max_recv_sge = SGES,
            .max_inline_data = INLINE,
        },
    };
    struct ibv_srq_init_attr srq = {
        .attr = { .max_wr = DEPTH, .max_sge = SGES },
    };
    struct ibv_qp_attr attr;

    if (wish->srq) {
        must("rdma_create_srq", rdma_create_srq(e->id, NULL, &srq));
    }
    must("rdma_create_qp", rdma_create_qp(e->id, NULL, &init));
    if (ibv_query_qp(e->id->qp, &attr, IBV_QP_CAP, &init)) {
        fail("ibv_query_qp");
    }
    e->cap = init.cap;
    if (e->cap.max_inline_data < INLINE || e->cap.max_send_sge < SGES) {
        fail("%u bytes inline and %u SGEs, asked for %u and %u",
             e->cap.max_inline_data, e->cap.max_send_sge, INLINE, SGES);
    }
}

struct end connect_ends(const struct wish *wish)
{
    struct rdma_addrinfo hints = {
        .ai_flags = client ? 0 : RAI_PASSIVE,
        .ai_port_space = wish->ps,
        .ai_qp_type = wish->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
    }, *info;
    struct rdma_conn_param param = {
        .responder_resources = 4,
        .initiator_depth = 4,
        .retry_count = 7,
        .rnr_retry_count = wish->no_rnr_retry ? 0 : 7,
    };
    struct rdma_cm_id *listener;
    struct end e;

    must("rdma_getaddrinfo",
         rdma_getaddrinfo(server_address, CM_PORT, &hints, &info));
    if (client) {
        meet(NULL);
        must("rdma_create_ep", rdma_create_ep(&e.id, info, NULL, NULL));
        make_qp(&e, wish);
        must("rdma_connect", rdma_connect(e.id, &param));
    } else {
        must("rdma_create_ep", rdma_create_ep(&listener, info, NULL, NULL));
        must("rdma_listen", rdma_listen(listener, 1));
        meet(NULL);
        must("rdma_get_request", rdma_get_request(listener, &e.id));
        make_qp(&e, wish);
        param.qp_num = e.id->qp->qp_num;
        must("rdma_accept", rdma_accept(e.id, &param));
        /*
         * The listener is destroyed only after its requests are acknowledged.
         * For UD rdma_accept() acknowledges since rdma-core 56.
         */
        if (e.id->event) {
            must("rdma_ack_cm_event", rdma_ack_cm_event(e.id->event));
            e.id->event = NULL;
        }
        rdma_destroy_ep(listener);
    }
    rdma_freeaddrinfo(info);
    return e;
}

void disconnect(struct end *e)
{
    meet(NULL);
    if (e->id->ps == RDMA_PS_TCP) {
        /* The other end's disconnection may have come before this call. */
        rdma_disconnect(e->id);
    }
    rdma_destroy_ep(e->id);
}
