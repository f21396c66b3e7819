/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the RoCE backend sits on a netdev.
 *
 * Two ways. If the netdev has a NIC, the netdev is shared with it: a net
 * filter at the end of the netdev's chain offers every frame that comes in to
 * the backend before the NIC gets it. If it has none, the backend is the
 * netdev's NIC itself. Frames go out through the netdev's queue in both
 * cases, so that they pass its filters and keep their order with the NIC's.
 *
 * Context: everything here is called, and calls back, under the BQL.
 */
#ifndef BACKENDS_RDMA_ROCE_NET_H
#define BACKENDS_RDMA_ROCE_NET_H

#include "net/net.h"

/* Range of the "mtu" property; 0 leaves the choice to the netdev. */
#define RDMA_ROCE_MTU_MIN 576
#define RDMA_ROCE_MTU_MAX 65535

typedef struct RdmaRoceNet RdmaRoceNet;

typedef struct RdmaRoceNetOps {
    /*
     * A frame came in; it starts @offset bytes into @iov (behind the vnet
     * header). Returns true if it was taken, false if it is the NIC's.
     */
    bool (*receive)(void *opaque, const struct iovec *iov, int iovcnt,
                    size_t offset);
    /*
     * Frames that come in from now on, until @cork is false, came together and
     * are best answered together. Not across turns of the main loop.
     */
    void (*cork)(void *opaque, bool cork);
    /* The frame that rdma_roce_net_send() had to queue is gone. */
    void (*sent)(void *opaque);
    /* What rdma_roce_net_port() tells may have changed. */
    void (*changed)(void *opaque);
} RdmaRoceNetOps;

/* What the user asks for; zeroes leave the choice to the netdev. */
typedef struct RdmaRoceNetConf {
    Object *owner;                  /* parent of the filter */
    const char *netdev_id;
    const char *name;               /* of the net client, or NULL */
    uint32_t mtu;                   /* bytes of IP packet */
    MACAddr mac;
} RdmaRoceNetConf;

typedef struct RdmaRoceNetPort {
    bool link_up;
    uint32_t mtu;                   /* bytes of IP packet */
    MACAddr mac;
    MACAddr nic_mac;                /* of the NIC beside it, or @mac */
} RdmaRoceNetPort;

/* NULL and @errp if the netdev is not there or cannot be used. */
RdmaRoceNet *rdma_roce_net_new(const RdmaRoceNetConf *conf,
                               const RdmaRoceNetOps *ops, void *opaque,
                               Error **errp);
void rdma_roce_net_free(RdmaRoceNet *net);

void rdma_roce_net_port(RdmaRoceNet *net, RdmaRoceNetPort *port);

/*
 * Send the Ethernet frame in @iov. Returns false if it had to be queued:
 * then nothing more should be sent until ops->sent() was called. May call
 * ops->receive() when something in this QEMU answers at once.
 */
bool rdma_roce_net_send(RdmaRoceNet *net, const struct iovec *iov,
                        int iovcnt);
/* What is sent until it is uncorked may go out together then. */
void rdma_roce_net_cork(RdmaRoceNet *net, bool cork);

#endif /* BACKENDS_RDMA_ROCE_NET_H */
