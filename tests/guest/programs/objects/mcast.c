/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Multicast without a connection manager. Arguments begin with the group. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "objects.h"

#define GRH_BYTES 40
#define LEN 1000
#define MESSAGES 20
#define MCAST_QPN 0xffffff

struct member {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct memory in, out;
};

static union ibv_gid group(char **args)
{
    union ibv_gid gid;

    if (!args[0] || inet_pton(AF_INET6, args[0], gid.raw) != 1) {
        fail("which group?");
    }
    return gid;
}

static void receive(struct member *m, int n)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)m->in.at + n * (GRH_BYTES + LEN),
        .length = GRH_BYTES + LEN,
        .lkey = m->in.mr->lkey,
    };
    struct ibv_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 };
    struct ibv_recv_wr *bad;

    if (ibv_post_recv(m->qp, &wr, &bad)) {
        fail("ibv_post_recv failed");
    }
}

static struct member new_member(uint32_t create_flags)
{
    struct member m = {
        .cq = new_cq(2 * MESSAGES),
        .in = new_memory(MESSAGES * (GRH_BYTES + LEN),
                         IBV_ACCESS_LOCAL_WRITE),
        .out = new_memory(LEN, 0),
    };
    int n;

    m.qp = new_qp(IBV_QPT_UD, m.cq, NULL, create_flags);
    start_ud(m.qp);
    for (n = 0; n < MESSAGES; n++) {
        receive(&m, n);
    }
    return m;
}

static void join(struct member *m, const union ibv_gid *gid)
{
    int ret = ibv_attach_mcast(m->qp, gid, 0);

    if (ret) {
        fail("ibv_attach_mcast: %s", strerror(ret));
    }
}

static void leave(struct member *m, const union ibv_gid *gid)
{
    int ret = ibv_detach_mcast(m->qp, gid, 0);

    if (ret) {
        fail("ibv_detach_mcast: %s", strerror(ret));
    }
}

static void send_to(struct member *m, const union ibv_gid *gid, int n)
{
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {
            .dgid = *gid, .sgid_index = dev.gid_index, .hop_limit = 1,
        },
    };
    struct ibv_ah *ah = ibv_create_ah(dev.pd, &attr);
    struct ibv_sge sge = {
        .addr = (uintptr_t)m->out.at, .length = LEN, .lkey = m->out.mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = 0x1000,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .imm_data = htobe32(n),
        .sg_list = &sge,
        .num_sge = 1,
        .wr.ud = { .ah = ah, .remote_qpn = MCAST_QPN, .remote_qkey = QKEY },
    };
    struct ibv_wc wc;

    if (!ah) {
        fail("ibv_create_ah: %s", strerror(errno));
    }
    fill(m->out.at, LEN, n);
    post(m->qp, &wr);
    /* The sender's own copy may arrive first. */
    while (next_wc(m->cq, &wc, 20000) && wc.wr_id != 0x1000) {
        receive(m, wc.wr_id);
    }
    if (wc.wr_id != 0x1000 || wc.status) {
        fail("the datagram is not sent: %s", ibv_wc_status_str(wc.status));
    }
    ibv_destroy_ah(ah);
}

static void received(struct member *m, uint32_t n)
{
    struct ibv_wc wc;

    if (!next_wc(m->cq, &wc, 20000)) {
        fail("datagram %u does not come", n);
    }
    if (wc.status || be32toh(wc.imm_data) != n ||
        wc.byte_len != GRH_BYTES + LEN || !(wc.wc_flags & IBV_WC_GRH) ||
        !filled(m->in.at + wc.wr_id * (GRH_BYTES + LEN) + GRH_BYTES, LEN,
                n)) {
        fail("datagram %u is damaged, or is another one: %s, %u", n,
             ibv_wc_status_str(wc.status), be32toh(wc.imm_data));
    }
    receive(m, wc.wr_id);
}

/* Each member on this device gets one copy, and no other QP does. */
void mcast_loopback(char **args)
{
    union ibv_gid gid = group(args), other = gid;
    struct member a = new_member(0), b = new_member(0), c = new_member(0);
    struct member sender = new_member(0);
    uint32_t n;

    other.raw[15] ^= 1;
    join(&a, &gid);
    join(&b, &gid);
    join(&b, &other);
    join(&c, &other);
    for (n = 0; n < 40; n++) {
        send_to(&sender, &gid, n);
        received(&a, n);
        received(&b, n);
    }
    send_to(&sender, &other, n);
    received(&b, n);
    received(&c, n);
    expect_none(a.cq);
    expect_none(b.cq);
    expect_none(c.cq);
}

/* A queue pair that blocks its own copies still gets those of others. */
void mcast_block(char **args)
{
    union ibv_gid gid = group(args);
    struct member a = new_member(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
    struct member b = new_member(0);

    join(&a, &gid);
    join(&b, &gid);
    send_to(&a, &gid, 1);
    received(&b, 1);
    expect_none(a.cq);
    send_to(&b, &gid, 2);
    received(&a, 2);
}

/* A QP that has left the group, or is destroyed, gets no more messages. */
void mcast_detach(char **args)
{
    union ibv_gid gid = group(args);
    struct member a = new_member(0), b = new_member(0), sender = new_member(0);

    join(&a, &gid);
    join(&a, &gid);
    join(&b, &gid);
    send_to(&sender, &gid, 1);
    received(&a, 1);
    received(&b, 1);
    leave(&a, &gid);
    send_to(&sender, &gid, 2);
    received(&b, 2);
    expect_none(a.cq);
    if (!ibv_detach_mcast(a.qp, &gid, 0)) {
        fail("left twice");
    }
    leave(&b, &gid);
    if (ibv_destroy_qp(b.qp)) {
        fail("ibv_destroy_qp failed");
    }
    send_to(&sender, &gid, 3);
}

void mcast_receive(char **args)
{
    union ibv_gid gid = group(args);
    struct member m = new_member(0);
    uint32_t n;

    join(&m, &gid);
    printf("joined\n");
    for (n = 0; n < MESSAGES; n++) {
        received(&m, n);
    }
}

void mcast_send(char **args)
{
    union ibv_gid gid = group(args);
    struct member m = new_member(0);
    uint32_t n;

    for (n = 0; n < MESSAGES; n++) {
        send_to(&m, &gid, n);
    }
}
