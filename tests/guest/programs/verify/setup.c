/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set-up of an rdma_verify run: the TCP connection, device, queues */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "verify.h"

static struct ibv_pd *pd;

bool tell(const void *data, size_t size)
{
    return send(peer_fd, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

bool hear(void *data, size_t size)
{
    return recv(peer_fd, data, size, MSG_WAITALL) == (ssize_t)size;
}

void connect_peer(const char *host, const char *port)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
        .ai_flags = host ? 0 : AI_PASSIVE,
    }, *info;
    int fd, one = 1, tries;

    if (!host) {
        hints.ai_family = AF_INET6;
    }
    if (getaddrinfo(host, port, &hints, &info)) {
        fail("cannot resolve %s", host);
    }
    if (host) {
        for (tries = 0; ; tries++) {
            fd = socket(info->ai_family, SOCK_STREAM, 0);
            if (!connect(fd, info->ai_addr, info->ai_addrlen)) {
                break;
            }
            close(fd);
            if (tries == 50) {
                fail("connect to %s: %s", host, strerror(errno));
            }
            usleep(100000);
        }
        peer_fd = fd;
    } else {
        fd = socket(info->ai_family, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, 1)) {
            fail("port %s: %s", port, strerror(errno));
        }
        peer_fd = accept(fd, NULL, NULL);
        close(fd);
    }
    freeaddrinfo(info);
}

void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int i;

    for (i = 0; list && list[i]; i++) {
        if (!name || !strcmp(name, ibv_get_device_name(list[i]))) {
            context = ibv_open_device(list[i]);
            break;
        }
    }
    if (!context) {
        fail("no device %s", name ? name : "at all");
    }
    ibv_free_device_list(list);
}

static enum ibv_mtu mtu_enum(uint32_t bytes)
{
    return bytes >= 4096 ? IBV_MTU_4096 : bytes >= 2048 ? IBV_MTU_2048 :
           bytes >= 1024 ? IBV_MTU_1024 : bytes >= 512 ? IBV_MTU_512 :
           IBV_MTU_256;
}

/* Requests of a queue pair, and the probe for the peer. */
static uint32_t send_room(void)
{
    return par.sq_depth + expect_break();
}

static void make_qp(uint32_t q)
{
    struct ibv_qp_init_attr init = {
        .send_cq = send_cq, .recv_cq = recv_cq, .qp_type = par.type,
        .cap = {
            .max_send_wr = send_room(), .max_recv_wr = par.rq_depth,
            .max_send_sge = par.pieces, .max_recv_sge = 1,
            .max_inline_data = par.inlined,
        },
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    int ret;

    pairs[q].qp = ibv_create_qp(pd, &init);
    if (!pairs[q].qp) {
        fail("ibv_create_qp: %s", strerror(errno));
    }
    mine.qpn[q] = pairs[q].qp->qp_num;
    mine.psn[q] = mix(par.seed + 2 * q + me) & 0xffffff;
    if (q == 0) {
        /* The sequence numbers wrap early in the run. */
        mine.psn[q] = 0xfffff0;
    }
    if (par.type == IBV_QPT_RC) {
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC;
    } else if (par.type == IBV_QPT_UC) {
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    }
    mask |= par.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    ret = ibv_modify_qp(pairs[q].qp, &attr, mask);
    if (ret) {
        fail("qp %u to INIT: %s", q, strerror(ret));
    }
}

static void connect_qp(uint32_t q, int gid_index,
                       const struct ibv_device_attr *limits)
{
    struct ibv_ah_attr ah = {
        .is_global = 1, .port_num = 1,
        .grh = { .dgid = theirs.gid, .sgid_index = gid_index,
                 .hop_limit = 64 },
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = mtu_enum(par.mtu),
        .dest_qp_num = theirs.qpn[q], .rq_psn = theirs.psn[q],
        .max_dest_rd_atomic = mine.rd_atomic,
        .min_rnr_timer = 1, .ah_attr = ah,
    };
    int mask = IBV_QP_STATE, ret;

    if (par.type != IBV_QPT_UD) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                IBV_QP_RQ_PSN;
    }
    if (par.type == IBV_QPT_RC) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    ret = ibv_modify_qp(pairs[q].qp, &attr, mask);
    if (ret) {
        fail("qp %u to RTR: %s", q, strerror(ret));
    }
    attr = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTS, .sq_psn = mine.psn[q],
        .timeout = par.ack_timeout,
        .retry_cnt = par.retries, .rnr_retry = 7,
        .max_rd_atomic = limits->max_qp_init_rd_atom < theirs.rd_atomic ?
                         limits->max_qp_init_rd_atom : theirs.rd_atomic,
    };
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (par.type == IBV_QPT_RC) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
    }
    ret = ibv_modify_qp(pairs[q].qp, &attr, mask);
    if (ret) {
        fail("qp %u to RTS: %s", q, strerror(ret));
    }
    if (par.type == IBV_QPT_UD) {
        pairs[q].ah = ibv_create_ah(pd, &ah);
        if (!pairs[q].ah) {
            fail("ibv_create_ah: %s", strerror(errno));
        }
    }
}

void set_up(int gid_index)
{
    struct ibv_device_attr limits;
    uint32_t q;

    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    if (!pd || !channel) {
        fail("cannot allocate PD or channel: %s", strerror(errno));
    }
    send_cq = ibv_create_cq(context, par.qps * send_room(), NULL, channel,
                            0);
    recv_cq = ibv_create_cq(context, par.qps * par.rq_depth, NULL, channel,
                            0);
    if (!send_cq || !recv_cq) {
        fail("ibv_create_cq: %s", strerror(errno));
    }
    make_memory(pd);
    if (ibv_query_gid(context, 1, gid_index, &mine.gid)) {
        fail("no GID %d", gid_index);
    }
    if (ibv_query_device(context, &limits)) {
        fail("ibv_query_device failed");
    }
    mine.rd_atomic = limits.max_qp_rd_atom;
    for (q = 0; q < par.qps; q++) {
        make_qp(q);
    }
    if (!tell(&mine, sizeof(mine)) || !hear(&theirs, sizeof(theirs))) {
        fail("lost the peer");
    }
    for (q = 0; q < par.qps; q++) {
        connect_qp(q, gid_index, &limits);
    }
}

void release(void)
{
    if (ibv_dereg_mr(send_mr) || ibv_dereg_mr(land_mr) ||
        ibv_dereg_mr(expose_mr) || ibv_destroy_comp_channel(channel) ||
        ibv_dealloc_pd(pd) || ibv_close_device(context)) {
        fail("releasing the device's objects: %s", strerror(errno));
    }
}
