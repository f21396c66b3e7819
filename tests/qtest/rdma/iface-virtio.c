/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations of virtio-rdma on each kind of link, with virtqueues and with
 * direct queues
 */
#include "qemu/osdep.h"
#include "iface-test.h"
#include "net-test.h"

static NetEnd *end_of(IfaceEnd *e)
{
    return e->impl;
}

static IfaceMr view(const QRdmaMr *mr)
{
    return (IfaceMr) { mr->iova, mr->length, mr->lkey, mr->rkey };
}

static IfaceEnd init_end(const Iface *iface, NetEnd *end)
{
    return (IfaceEnd) {
        .iface = iface,
        .impl = end,
        .host = end->dev->host,
        .qpn = end->qp->qpn,
        .mr = view(end->mr),
    };
}

IfacePair net_iface_pair(NetPair *pair)
{
    const Iface *iface = &iface_virtio[pair->net->kind];

    return (IfacePair) {
        .iface = iface,
        .impl = pair,
        .a = init_end(iface, &pair->a),
        .b = init_end(iface, &pair->b),
    };
}

static void open_pair(IfacePair *p, RdmaQpType type)
{
    NetKind kind = p->iface - iface_virtio;

    *p = net_iface_pair(g_memdup2(&(NetPair[1]) { net_pair(kind, type, NULL) },
                                  sizeof(NetPair)));
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

static uint32_t queued(IfaceEnd *e, bool recv)
{
    QRdmaWq *wq = recv ? &end_of(e)->qp->rq : &end_of(e)->qp->sq;

    qrdma_reap(wq);
    return wq->posted - wq->retired;
}

static IfaceMr reg_mr(IfaceEnd *e, uint32_t access, bool other_pd)
{
    NetEnd *end = end_of(e);
    QRdmaMr *mr = qrdma_reg_mr(other_pd ? qrdma_alloc_pd(end->dev) : end->pd,
                               0x8000, 4096, access);

    return view(mr);
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

#define OPERATIONS { \
    .open = open_pair, \
    .close = close_pair, \
    .reconnect = reconnect, \
    .post_send = post_send, \
    .post_recv = post_recv, \
    .poll = poll, \
    .modify_state = modify_state, \
    .state = state, \
    .queued = queued, \
    .reg_mr = reg_mr, \
    .write = write_mr, \
    .read = read_mr, \
    .address = address, \
}

const Iface iface_virtio[NET_KINDS] = {
    [NET_HUB] = OPERATIONS,
    [NET_DIRECT] = OPERATIONS,
    [NET_STREAM] = OPERATIONS,
    [NET_DGRAM] = OPERATIONS,
};

void net_add_iface_tests(const IfaceTest *tests)
{
    for (; tests->name; tests++) {
        for (NetKind kind = 0; kind < NET_KINDS; kind++) {
            g_autofree char *prefix = net_prefix(kind);

            if (net_is_for(kind, NET_ANYWHERE, tests->name)) {
                iface_add_test(prefix, &iface_virtio[kind], tests);
            }
        }
    }
}
