/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RoCE backend on a netdev.
 *
 * The backend always has a net client of type NIC. If it shares the netdev, the
 * link is one-way: the client's peer is the netdev, for sending, but the
 * netdev's peer is the guest's NIC.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/iov.h"
#include "qemu/queue.h"
#include "net/eth.h"
#include "net/filter.h"
#include "net/vhost_net.h"
#include "hw/core/qdev.h"
#include "system/rdma-backend.h"
#include "system/rdma-series.h"
#include "rdma/roce.h"
#include "netdev.h"
#include "../trace.h"

#define TYPE_FILTER_RDMA_ROCE "filter-rdma-roce"
OBJECT_DECLARE_SIMPLE_TYPE(FilterRdmaRoce, FILTER_RDMA_ROCE)

#define ROCE_MTU_ETHERNET 1500
#define ROCE_MTU_JUMBO 9000

struct FilterRdmaRoce {
    NetFilterState parent_obj;

    RdmaRoceNet *net;
};

OBJECT_DEFINE_SIMPLE_TYPE(FilterRdmaRoce, filter_rdma_roce, FILTER_RDMA_ROCE,
                          NETFILTER)

struct RdmaRoceNet {
    const RdmaRoceNetOps *ops;
    void *opaque;
    RdmaRoceNetConf user;
    bool has_mac;
    MACAddr mac;
    MACAddr nic_mac;                /* shared: the last one of the NIC */
    uint32_t link_mtu;

    NICState *nic;                  /* NULL once net_cleanup() took it */
    NICConf conf;
    MemReentrancyGuard guard;
    bool shared;
    FilterRdmaRoce *filter;         /* NULL if not shared, or removed */
    NetClientState *netdev;         /* NULL once it was removed */
    Notifier notifier;              /* of NIC and netdev */

    QLIST_ENTRY(RdmaRoceNet) next;
};

/*
 * A frame that the netdev has queued may outlive its sender. So roce_net_sent()
 * looks its argument up here and does not dereference it.
 */
static QLIST_HEAD(, RdmaRoceNet) roce_nets =
    QLIST_HEAD_INITIALIZER(roce_nets);

static NetClientState *roce_net_client(RdmaRoceNet *net)
{
    return net->nic ? qemu_get_queue(net->nic) : NULL;
}

/* The NIC that shares the netdev, or NULL */
static NetClientState *roce_net_partner(RdmaRoceNet *net)
{
    return net->shared && net->netdev ? net->netdev->peer : NULL;
}

static void roce_net_changed(RdmaRoceNet *net)
{
    net->ops->changed(net->opaque);
}

static void roce_net_notify(Notifier *notifier, void *data)
{
    RdmaRoceNet *net = container_of(notifier, RdmaRoceNet, notifier);

    if (data == net->netdev || data == roce_net_partner(net)) {
        roce_net_changed(net);
    }
}

/* Sending */

static void roce_net_sent(NetClientState *sender, ssize_t ret)
{
    RdmaRoceNet *net;

    QLIST_FOREACH(net, &roce_nets, next) {
        if (roce_net_client(net) == sender) {
            net->ops->sent(net->opaque);
            return;
        }
    }
}

bool rdma_roce_net_send(RdmaRoceNet *net, const struct iovec *iov, int iovcnt)
{
    static const uint8_t zeroes[ETH_ZLEN];
    NetClientState *nc = roce_net_client(net);
    struct iovec out[ROCE_TX_MAX_IOV + 2];
    size_t size = iov_size(iov, iovcnt);
    int n = 0;

    if (!nc || !nc->peer || iovcnt > ROCE_TX_MAX_IOV) {
        return true;
    }
    if (nc->peer->vnet_hdr_len) {
        assert(nc->peer->vnet_hdr_len <= sizeof(zeroes));
        out[n++] = (struct iovec) {
            .iov_base = (void *)zeroes,
            .iov_len = nc->peer->vnet_hdr_len,
        };
    }
    memcpy(&out[n], iov, iovcnt * sizeof(*iov));
    n += iovcnt;
    if (size < ETH_ZLEN && net_peer_needs_padding(nc)) {
        out[n++] = (struct iovec) {
            .iov_base = (void *)zeroes,
            .iov_len = ETH_ZLEN - size,
        };
    }
    return qemu_sendv_packet_async(nc, out, n, roce_net_sent) != 0;
}

void rdma_roce_net_cork(RdmaRoceNet *net, bool cork)
{
    NetClientState *nc = roce_net_client(net);

    if (nc) {
        qemu_net_cork(nc, cork);
    }
}

/* The net client */

static ssize_t roce_nic_receive_iov(NetClientState *nc,
                                    const struct iovec *iov, int iovcnt)
{
    RdmaRoceNet *net = qemu_get_nic_opaque(nc);

    net->ops->receive(net->opaque, iov, iovcnt,
                      qemu_get_vnet_hdr_len(nc->peer));
    return iov_size(iov, iovcnt);
}

static void roce_nic_cork(NetClientState *nc, bool cork)
{
    RdmaRoceNet *net = qemu_get_nic_opaque(nc);

    net->ops->cork(net->opaque, cork);
}

static void roce_nic_link_status_changed(NetClientState *nc)
{
    roce_net_changed(qemu_get_nic_opaque(nc));
}

static void roce_nic_cleanup(NetClientState *nc)
{
    RdmaRoceNet *net = qemu_get_nic_opaque(nc);

    if (net->shared) {
        /* Keep the netdev's peer, which is the guest's NIC. */
        nc->peer = NULL;
    }
    net->nic = NULL;
}

static NetClientInfo roce_nic_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .receive_iov = roce_nic_receive_iov,
    .cork = roce_nic_cork,
    .link_status_changed = roce_nic_link_status_changed,
    .cleanup = roce_nic_cleanup,
};

/* The filter */

/*
 * Filters that are added after this one must see RoCE frames, too. Move this
 * filter to the end of the chain, and pass the current frame to those that were
 * after it.
 */
static ssize_t filter_rdma_roce_to_tail(NetFilterState *nf,
                                        NetClientState *sender,
                                        unsigned flags,
                                        const struct iovec *iov, int iovcnt,
                                        NetPacketSent *sent_cb)
{
    NetFilterState *next = QTAILQ_NEXT(nf, next);
    ssize_t ret = 0;

    QTAILQ_REMOVE(&nf->netdev->filters, nf, next);
    QTAILQ_INSERT_TAIL(&nf->netdev->filters, nf, next);
    while (!ret && next && next != nf) {
        ret = qemu_netfilter_receive(next, NET_FILTER_DIRECTION_TX, sender,
                                     flags, iov, iovcnt, sent_cb);
        next = QTAILQ_NEXT(next, next);
    }
    return ret;
}

static ssize_t filter_rdma_roce_receive_iov(NetFilterState *nf,
                                            NetClientState *sender,
                                            unsigned flags,
                                            const struct iovec *iov,
                                            int iovcnt,
                                            NetPacketSent *sent_cb)
{
    /* A checked cast for each frame would be slow. */
    FilterRdmaRoce *f = container_of(nf, FilterRdmaRoce, parent_obj);
    size_t offset = 0;
    ssize_t ret;

    if (!f->net || sender != nf->netdev) {
        return 0;
    }
    if (QTAILQ_NEXT(nf, next)) {
        ret = filter_rdma_roce_to_tail(nf, sender, flags, iov, iovcnt,
                                       sent_cb);
        if (ret) {
            return ret;
        }
    }
    if (!(flags & QEMU_NET_PACKET_FLAG_RAW)) {
        offset = qemu_get_vnet_hdr_len(nf->netdev);
    }
    if (!f->net->ops->receive(f->net->opaque, iov, iovcnt, offset)) {
        return 0;
    }
    return iov_size(iov, iovcnt);
}

static void filter_rdma_roce_cork(NetFilterState *nf, bool cork)
{
    RdmaRoceNet *net = container_of(nf, FilterRdmaRoce, parent_obj)->net;

    if (net) {
        net->ops->cork(net->opaque, cork);
    }
}

/* Also called when the netdev is removed, which removes its filters. */
static void filter_rdma_roce_finalize(Object *obj)
{
    RdmaRoceNet *net = FILTER_RDMA_ROCE(obj)->net;

    if (net) {
        NetClientState *nc = roce_net_client(net);

        trace_rdma_roce_net_removed(net->user.netdev_id);
        if (nc) {
            nc->peer = NULL;
        }
        net->netdev = NULL;
        net->filter = NULL;
        roce_net_changed(net);
    }
}

static void filter_rdma_roce_init(Object *obj)
{
}

static void filter_rdma_roce_class_init(ObjectClass *oc, RdmaClassData data)
{
    NetFilterClass *nfc = NETFILTER_CLASS(oc);

    nfc->receive_iov = filter_rdma_roce_receive_iov;
    nfc->cork = filter_rdma_roce_cork;
}

/* The port */

typedef struct FindHostMtu {
    const char *netdev_id;
    uint32_t mtu;
} FindHostMtu;

static int roce_net_find_host_mtu(Object *obj, void *opaque)
{
    FindHostMtu *find = opaque;
    g_autofree char *id = NULL;

    if (!object_dynamic_cast(obj, TYPE_DEVICE) ||
        !object_property_find(obj, "host_mtu") ||
        !object_property_find(obj, "netdev")) {
        return 0;
    }
    id = object_property_get_str(obj, "netdev", NULL);
    if (g_strcmp0(id, find->netdev_id)) {
        return 0;
    }
    find->mtu = object_property_get_uint(obj, "host_mtu", NULL);
    return find->mtu != 0;
}

static uint32_t roce_net_mtu(RdmaRoceNet *net)
{
    FindHostMtu find = { .netdev_id = net->user.netdev_id };

    if (net->user.mtu) {
        return net->user.mtu;
    }
    if (net->shared) {
        object_child_foreach_recursive(object_get_root(),
                                       roce_net_find_host_mtu, &find);
        return find.mtu ? find.mtu : ROCE_MTU_ETHERNET;
    }
    switch (net->netdev ? net->netdev->info->type : NET_CLIENT_DRIVER_NONE) {
    case NET_CLIENT_DRIVER_SOCKET:
    case NET_CLIENT_DRIVER_STREAM:
    case NET_CLIENT_DRIVER_DGRAM:
    case NET_CLIENT_DRIVER_HUBPORT:
        /* These have no MTU: the size of QEMU's buffers is the limit. */
        return ROCE_MTU_JUMBO;
    default:
        return ROCE_MTU_ETHERNET;
    }
}

/* The NIC's MAC address, which the guest may have changed */
static MACAddr roce_net_nic_mac(NetClientState *nic)
{
    return buffer_is_zero(&nic->macaddr, sizeof(nic->macaddr)) ?
           qemu_get_nic(nic)->conf->macaddr : nic->macaddr;
}

bool rdma_roce_net_link_up(RdmaRoceNet *net)
{
    NetClientState *nc = roce_net_client(net);
    NetClientState *partner = roce_net_partner(net);

    return nc && nc->peer && !nc->link_down && !nc->peer->link_down &&
           (!net->shared || (partner && !partner->link_down));
}

void rdma_roce_net_port(RdmaRoceNet *net, RdmaRoceNetPort *port)
{
    NetClientState *partner = roce_net_partner(net);

    port->link_up = rdma_roce_net_link_up(net);
    if (partner && partner->info->type == NET_CLIENT_DRIVER_NIC) {
        net->nic_mac = roce_net_nic_mac(partner);
        if (!net->has_mac) {
            net->mac = net->nic_mac;
        }
    }
    /*
     * Keep the last MTU if the NIC has gone: the devices to ask may be in the
     * middle of an unplug.
     */
    if (partner || !net->shared) {
        net->link_mtu = roce_net_mtu(net);
    }
    port->mac = net->mac;
    port->nic_mac = net->shared ? net->nic_mac : net->mac;
    port->mtu = net->link_mtu;
}

/* Attach and detach */

static bool roce_net_usable(const char *id, NetClientState *netdev,
                            int queues, Error **errp)
{
    RdmaRoceNet *net;

    if (queues < 1) {
        error_setg(errp, "netdev '%s' not found", id);
        error_append_hint(errp, "A -netdev with id=%s must come before the "
                          "RDMA device.\n", id);
        return false;
    }
    if (queues > 1) {
        error_setg(errp, "netdev '%s' has %d queues, and RoCE can use only 1",
                   id, queues);
        error_append_hint(errp, "Use queues=1 with -netdev id=%s.\n", id);
        return false;
    }
    if (get_vhost_net(netdev)) {
        error_setg(errp, "netdev '%s' uses vhost, whose frames bypass QEMU, so "
                   "RoCE cannot use it", id);
        error_append_hint(errp, "Use vhost=off with -netdev id=%s.\n", id);
        return false;
    }
    QLIST_FOREACH(net, &roce_nets, next) {
        if (net->netdev == netdev) {
            error_setg(errp, "netdev '%s' is in use by another RDMA device",
                       id);
            return false;
        }
    }
    if (netdev->peer && netdev->peer->info->type != NET_CLIENT_DRIVER_NIC) {
        error_setg(errp, "netdev '%s' is in use by '%s', which is not a NIC",
                   id, netdev->peer->name);
        return false;
    }
    return true;
}

static bool roce_net_share(RdmaRoceNet *net, Object *owner, Error **errp)
{
    /* The netdev unparents its filters when it is removed. */
    Object *obj = object_new_with_props(TYPE_FILTER_RDMA_ROCE, owner,
                                        "netfilter", errp,
                                        "netdev", net->user.netdev_id,
                                        "queue", "tx", NULL);

    if (obj) {
        net->filter = FILTER_RDMA_ROCE(obj);
        net->filter->net = net;
        net->shared = true;
    }
    return obj;
}

RdmaRoceNet *rdma_roce_net_new(const RdmaRoceNetConf *conf,
                               const RdmaRoceNetOps *ops, void *opaque,
                               Error **errp)
{
    ERRP_GUARD();
    NetClientState *netdev = NULL;
    NetClientState *nc;
    RdmaRoceNet *net;
    int queues;

    queues = qemu_find_net_clients_except(conf->netdev_id, &netdev,
                                          NET_CLIENT_DRIVER_NIC, 1);
    if (!roce_net_usable(conf->netdev_id, netdev, queues, errp)) {
        return NULL;
    }

    net = g_new0(RdmaRoceNet, 1);
    net->ops = ops;
    net->opaque = opaque;
    net->user = *conf;
    net->netdev = netdev;
    net->mac = conf->mac;
    net->has_mac = !buffer_is_zero(&conf->mac, sizeof(conf->mac));

    if (netdev->peer) {
        if (!roce_net_share(net, conf->owner, errp)) {
            g_free(net);
            return NULL;
        }
        net->nic_mac = roce_net_nic_mac(netdev->peer);
        if (!net->has_mac) {
            net->mac = net->nic_mac;
        }
    } else {
        net->conf.peers.ncs[0] = netdev;
        net->conf.peers.queues = 1;
    }
    /* Mark the address as used; qemu_del_nic() frees that in conf. */
    qemu_macaddr_default_if_unset(&net->mac);
    net->conf.macaddr = net->mac;
    net->nic = qemu_new_nic(&roce_nic_info, &net->conf,
                            object_get_typename(conf->owner),
                            object_get_canonical_path_component(conf->owner),
                            &net->guard, net);
    nc = roce_net_client(net);
    if (net->shared) {
        nc->peer = netdev;
    }
    qemu_format_nic_info_str(nc, net->mac.a);
    QLIST_INSERT_HEAD(&roce_nets, net, next);
    net->notifier.notify = roce_net_notify;
    qemu_add_net_client_notifier(&net->notifier);
    trace_rdma_roce_net_attach(net->user.netdev_id,
                               net->shared ? net->netdev->peer->name : "-",
                               net->netdev->vnet_hdr_len);
    return net;
}

void rdma_roce_net_free(RdmaRoceNet *net)
{
    notifier_remove(&net->notifier);
    QLIST_REMOVE(net, next);
    if (net->filter) {
        net->filter->net = NULL;
        object_unparent(OBJECT(net->filter));
    }
    if (net->nic) {
        qemu_del_nic(net->nic);
    }
    g_free(net);
}
