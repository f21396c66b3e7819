/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operations of virtio-rdma, with virtqueues and with direct queues. */
#include "qemu/osdep.h"
#include "iface-test.h"
#include "net-test.h"

static NetEnd *end_of(IfaceEnd *e)
{
    return e->impl;
}

static void init_end(IfaceEnd *e, NetEnd *end)
{
    e->impl = end;
    e->host = end->dev->host;
    e->qpn = end->qp->qpn;
    e->mr = (IfaceMr) { end->mr->iova, end->mr->lkey, end->mr->rkey };
}

static void open_kind(IfacePair *p, NetKind kind, RdmaQpType type)
{
    NetPair *pair = g_new(NetPair, 1);

    *pair = net_pair(kind, type, NULL);
    p->impl = pair;
    init_end(&p->a, &pair->a);
    init_end(&p->b, &pair->b);
}

static void open_hub(IfacePair *p, RdmaQpType type)
{
    open_kind(p, NET_HUB, type);
}

static void open_direct(IfacePair *p, RdmaQpType type)
{
    open_kind(p, NET_DIRECT, type);
}

/* The devices are shared: the next test starts them again. */
static void close_pair(IfacePair *p)
{
    g_free(p->impl);
}

static void reconnect(IfacePair *p)
{
    qrdma_reconnect(end_of(&p->a)->qp, end_of(&p->b)->qp, NULL);
}

static void post_send(IfaceEnd *e, const RdmaSendWr *wr)
{
    qrdma_post_send(end_of(e)->qp, wr);
}

static void post_recv(IfaceEnd *e, const RdmaRecvWr *wr)
{
    qrdma_post_recv(end_of(e)->qp, wr);
}

static bool poll(IfaceEnd *e, bool recv, RdmaWc *wc)
{
    return qrdma_poll_cq(recv ? end_of(e)->rcq : end_of(e)->scq, wc);
}

static void modify_state(IfaceEnd *e, RdmaQpState state)
{
    g_assert_cmpint(qrdma_modify_qp_state(end_of(e)->qp, state), ==, 0);
}

static RdmaQpState state(IfaceEnd *e)
{
    return qrdma_qp_state(end_of(e)->qp);
}

static IfaceMr reg_mr(IfaceEnd *e, uint32_t access, bool other_pd)
{
    NetEnd *end = end_of(e);
    QRdmaMr *mr = qrdma_reg_mr(other_pd ? qrdma_alloc_pd(end->dev) : end->pd,
                               0x8000, 4096, access);

    return (IfaceMr) { mr->iova, mr->lkey, mr->rkey };
}

static void write_mr(IfaceEnd *e, uint64_t offset, const void *buf, size_t len)
{
    qrdma_mr_write(end_of(e)->mr, offset, buf, len);
}

static void read_mr(IfaceEnd *e, uint64_t offset, void *buf, size_t len)
{
    qrdma_mr_read(end_of(e)->mr, offset, buf, len);
}

static void address(IfaceEnd *e, IfaceEnd *to, RdmaSendWr *wr)
{
    wr->wr.ud.remote_qpn = end_of(to)->qp->wire_qpn;
    wr->wr.ud.remote_qkey = QRDMA_QKEY;
    wr->wr.ud.av = qrdma_av(end_of(to)->dev, 1);
}

#define OPERATIONS \
    .close = close_pair, \
    .reconnect = reconnect, \
    .post_send = post_send, \
    .post_recv = post_recv, \
    .poll = poll, \
    .modify_state = modify_state, \
    .state = state, \
    .reg_mr = reg_mr, \
    .write = write_mr, \
    .read = read_mr, \
    .address = address

const Iface iface_virtio = {
    .name = "virtio-rdma",
    .open = open_hub,
    OPERATIONS,
};

const Iface iface_virtio_direct = {
    .name = "virtio-rdma-direct",
    .open = open_direct,
    OPERATIONS,
};
