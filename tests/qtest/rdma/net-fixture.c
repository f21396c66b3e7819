/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices on one link.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "net-test.h"

#define DEVICE "virtio-rdma-pci,max-qp=8,max-cq=6,max-mr=32,max-pd=8"

static Net *shared[NET_KINDS];
static bool (*wanted)(NetKind kind, const char *name);

static bool one_host(const Net *net)
{
    return net->kind == NET_HUB || net->kind == NET_DIRECT;
}

/* Both devices are on the host's device; links of netdevs are not used. */
static void start_verbs(Net *net, const char *extra)
{
    for (int i = 0; i < 2; i++) {
        net->host[i] = qrdma_host_start_shared(
            "-device " DEVICE ",rdmadev=v0,addr=4,id=d0 %s %s",
            one_host(net) ? "-device " DEVICE
                            ",rdmadev=v1,addr=5,id=d1" : "",
            extra);
        net->dev[i] = qrdma_open(net->host[i], QPCI_DEVFN(4, 0));
        if (one_host(net)) {
            net->host[1] = net->host[0];
            net->dev[1] = qrdma_open(net->host[0], QPCI_DEVFN(5, 0));
            break;
        }
    }
    net->dev[0]->direct = net->dev[1]->direct = net->kind == NET_DIRECT;
}

static void start_hub(Net *net, const char *extra)
{
    net->host[0] = qrdma_host_start_shared(
        "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "-device " DEVICE ",netdev=n0,addr=4,id=d0,"
        "mac=52:54:00:12:34:01 "
        "-device " DEVICE ",netdev=n1,addr=5,id=d1,"
        "mac=52:54:00:12:34:02 %s",
        extra);
    net->host[1] = net->host[0];
    net->dev[0] = qrdma_open(net->host[0], QPCI_DEVFN(4, 0));
    net->dev[1] = qrdma_open(net->host[1], QPCI_DEVFN(5, 0));
    net->dev[0]->direct = net->dev[1]->direct =
        net->kind == NET_DIRECT;
}

static void start_two(Net *net, const char *extra)
{
    for (int i = 0; i < 2; i++) {
        g_autofree char *netdev = NULL;

        if (net->kind == NET_STREAM) {
            netdev = g_strdup_printf(
                "stream,id=n0,server=%s,addr.type=unix,addr.path=%s/link",
                /* the server may not listen yet */
                i ? "off,reconnect-ms=50" : "on", net->dir);
        } else {
            netdev = g_strdup_printf(
                "dgram,id=n0,local.type=unix,local.path=%s/%d,"
                "remote.type=unix,remote.path=%s/%d",
                net->dir, i, net->dir, !i);
        }
        net->host[i] = qrdma_host_start_shared(
            "-netdev %s -device " DEVICE ",netdev=n0,addr=4,id=d0,"
            "mac=52:54:00:12:34:%02d %s", netdev, i + 1, extra);
        net->dev[i] = qrdma_open(net->host[i], QPCI_DEVFN(4, 0));
    }
    if (net->kind == NET_STREAM) {
        qtest_qmp_eventwait(net->host[0]->qts, "NETDEV_STREAM_CONNECTED");
    }
}

Net *net_new(NetKind kind, const char *extra)
{
    Net *net = g_new0(Net, 1);

    net->kind = kind;
    net->dir = g_dir_make_tmp("rdma-net-XXXXXX", NULL);
    g_assert_nonnull(net->dir);
    if (qrdma_ibdev()) {
        start_verbs(net, extra);
    } else if (one_host(net)) {
        start_hub(net, extra);
    } else {
        start_two(net, extra);
    }
    return net;
}

void net_free(Net *net)
{
    static const char *const names[] = { "link", "0", "1" };

    for (int i = 0; i < 2; i++) {
        if (net->host[i] && !(i && one_host(net))) {
            qrdma_host_stop(net->host[i]);
        }
    }
    for (int i = 0; i < ARRAY_SIZE(names); i++) {
        g_autofree char *path = g_build_filename(net->dir, names[i], NULL);

        g_unlink(path);
    }
    g_rmdir(net->dir);
    g_free(net->dir);
    g_free(net);
}

Net *net_shared(NetKind kind)
{
    if (!shared[kind]) {
        shared[kind] = net_new(kind, "");
    }
    return shared[kind];
}

void net_shared_quit(void)
{
    for (NetKind kind = 0; kind < NET_KINDS; kind++) {
        g_clear_pointer(&shared[kind], net_free);
    }
}

NetEnd net_end_new(QRdma *dev, RdmaQpType type, uint64_t iova,
                   uint32_t access)
{
    NetEnd e = { .dev = dev };

    e.pd = qrdma_alloc_pd(dev);
    e.scq = qrdma_create_cq(dev, 64);
    e.rcq = qrdma_create_cq(dev, 64);
    e.qp = qrdma_create_qp(e.pd, e.scq, e.rcq, type);
    e.mr = qrdma_reg_mr(e.pd, iova, NET_MR_SIZE, access);
    return e;
}

static NetPair pair_of(Net *net, RdmaQpType type, uint64_t features)
{
    NetPair p = { .net = net };
    struct virtio_rdma_query_port_rsp port;
    uint32_t access = NET_ACCESS_ALL;

    if (features & QRDMA_F(VIRTIO_RDMA_F_FLUSH)) {
        access |= RDMA_ACCESS_FLUSH_GLOBAL;
    }

    for (int i = 0; i < 2; i++) {
        qrdma_start(net->dev[i], features, 0);
        qrdma_setup_gids(net->dev[i], i + 1);
        qrdma_wait_until(net->dev[i],
                         qrdma_query_port(net->dev[i], 1, &port) == 0 &&
                         port.state == RDMA_PORT_ACTIVE);
    }
    p.mtu = port.active_mtu;
    p.a = net_end_new(net->dev[0], type, NET_IOVA_0, access);
    p.b = net_end_new(net->dev[1], type, NET_IOVA_1, access);
    return p;
}

NetPair net_pair_new_with(Net *net, RdmaQpType type, uint64_t features)
{
    return pair_of(net, type, QRDMA_FEATURES | features);
}

NetPair net_pair_new(Net *net, RdmaQpType type)
{
    return pair_of(net, type, QRDMA_FEATURES);
}

NetPair net_pair_rfc(Net *net, RdmaQpType type, uint64_t features)
{
    return pair_of(net, type, QRDMA_RFC_FEATURES | features);
}

NetPair net_pair(NetKind kind, RdmaQpType type, const QRdmaPath *path)
{
    NetPair p = net_pair_new(net_shared(kind), type);

    qrdma_bring_up(p.a.qp, p.b.qp, path);
    return p;
}

void net_clock_step(Net *net, int64_t ns)
{
    qtest_clock_step(net->host[0]->qts, ns);
    if (net->host[1] != net->host[0]) {
        qtest_clock_step(net->host[1]->qts, ns);
    }
}

RdmaSge net_sge(NetEnd *e, uint64_t offset, uint32_t len)
{
    return qrdma_sge(e->mr, offset, len);
}

void net_post_recv(NetEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len)
{
    RdmaSge sge = net_sge(e, offset, len);

    qrdma_post_recv(e->qp, &(RdmaRecvWr) {
        .wr_id = wr_id, .num_sge = 1, .sg_list = &sge,
    });
}

const NetAccessCase net_access_cases[] = {
    { RDMA_WR_RDMA_WRITE, RDMA_ACCESS_REMOTE_WRITE },
    { RDMA_WR_RDMA_READ, RDMA_ACCESS_REMOTE_READ },
    { RDMA_WR_ATOMIC_FETCH_AND_ADD, RDMA_ACCESS_REMOTE_ATOMIC },
    { RDMA_WR_ATOMIC_CMP_AND_SWP, RDMA_ACCESS_REMOTE_ATOMIC },
};

typedef struct NetCase {
    NetKind kind;
    const NetTest *test;
} NetCase;

static void run_case(const void *data)
{
    const NetCase *c = data;

    c->test->run(c->kind);
}

void net_choose(bool (*choose)(NetKind kind, const char *name))
{
    wanted = choose;
}

bool net_is_for(NetKind kind, NetWhere where, const char *name)
{
    bool one = kind == NET_HUB || kind == NET_DIRECT;

    if (where == (one ? NET_TWO_HOSTS : NET_ONE_HOST)) {
        return false;
    }
    /* On a device of the host, NET_DGRAM would be the same as NET_STREAM. */
    if (qrdma_ibdev() && (where == NET_NO_IBDEV || kind == NET_DGRAM)) {
        return false;
    }
    return !wanted || wanted(kind, name);
}

char *net_prefix(NetKind kind)
{
    static const char *const kinds[NET_KINDS] = {
        "hub", "direct", "stream", "dgram",
    };

    return g_strdup_printf("virtio-rdma-net/%s/", kinds[kind]);
}

void net_add_tests(const NetTest *tests)
{
    for (; tests->name; tests++) {
        for (NetKind kind = 0; kind < NET_KINDS; kind++) {
            g_autofree char *prefix = net_prefix(kind);
            g_autofree char *path = g_strconcat(prefix, tests->name, NULL);
            NetCase *c;

            if (net_is_for(kind, tests->where, tests->name)) {
                c = g_new(NetCase, 1);
                *c = (NetCase) { kind, tests };
                qtest_add_data_func_full(path, c, run_case, g_free);
            }
        }
    }
}
