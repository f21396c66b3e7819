/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RoCE backend on a netdev.
 *
 * If the netdev has a NIC, the backend shares the netdev with it: a net filter
 * at the end of the netdev's chain offers each incoming frame to the backend
 * before the NIC gets it. Otherwise the backend is the netdev's NIC. In both
 * cases frames leave through the netdev's queue, so they pass its filters and
 * keep their order with the NIC's frames.
 *
 * Context: functions are called, and call back, under the BQL.
 */
#ifndef BACKENDS_RDMA_ROCE_NET_H
#define BACKENDS_RDMA_ROCE_NET_H

#include "net/net.h"

/* Range of the "mtu" property; with 0 the netdev decides. */
#define RDMA_ROCE_MTU_MIN 576
#define RDMA_ROCE_MTU_MAX 65535

typedef struct RdmaRoceNet RdmaRoceNet;

typedef struct RdmaRoceNetOps {
    /*
     * A frame came in. It starts @offset bytes into @iov, after the vnet
     * header. Returns true if the backend takes it, false if it is for the NIC.
     */
    bool (*receive)(void *opaque, const struct iovec *iov, int iovcnt,
                    size_t offset);
    /*
     * Frames received from now on, until @cork is false, came together, so the
     * backend should answer them together. Ends in the same turn of the main
     * loop.
     */
    void (*cork)(void *opaque, bool cork);
    /* The frame that rdma_roce_net_send() has queued is sent. */
    void (*sent)(void *opaque);
    /* The result of rdma_roce_net_port() may have changed. */
    void (*changed)(void *opaque);
} RdmaRoceNetOps;

/*
 * The user's settings; with zeroes the netdev decides. What it points to lasts
 * as long as the RdmaRoceNet.
 */
typedef struct RdmaRoceNetConf {
    Object *owner;                  /* parent of the filter, model of the NIC */
    const char *netdev_id;
    uint32_t mtu;                   /* bytes of IP packet */
    MACAddr mac;
} RdmaRoceNetConf;

typedef struct RdmaRoceNetPort {
    bool link_up;
    uint32_t mtu;                   /* bytes of IP packet */
    MACAddr mac;
    MACAddr nic_mac;                /* of the NIC beside it, or @mac */
} RdmaRoceNetPort;

/* NULL and @errp if there is no such netdev, or it cannot be used. */
RdmaRoceNet *rdma_roce_net_new(const RdmaRoceNetConf *conf,
                               const RdmaRoceNetOps *ops, void *opaque,
                               Error **errp);
void rdma_roce_net_free(RdmaRoceNet *net);

void rdma_roce_net_port(RdmaRoceNet *net, RdmaRoceNetPort *port);
/* Only link_up of rdma_roce_net_port(), which also searches all devices. */
bool rdma_roce_net_link_up(RdmaRoceNet *net);

/*
 * Send the Ethernet frame in @iov. Returns false if the netdev has queued it:
 * send no other frame until ops->sent(). May call ops->receive() if a receiver
 * in this QEMU answers at once.
 */
bool rdma_roce_net_send(RdmaRoceNet *net, const struct iovec *iov,
                        int iovcnt);
/* Frames sent until @cork is false may leave together then. */
void rdma_roce_net_cork(RdmaRoceNet *net, bool cork);

#endif /* BACKENDS_RDMA_ROCE_NET_H */
