/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties of a virtio-net-roce device, and checks of their values.
 */
#include "qemu/osdep.h"
#include "hw/core/qdev-properties.h"
#include "net/eth.h"
#include "qapi/error.h"
#include "qemu/host-utils.h"
#include "int.h"

/* Every host accepts IPv4 packets of up to 576 bytes (RFC 791, 3.1). */
#define MIN_MTU 576
#define MIN_QUEUE_SIZE 64
/* The reserved pair 0, the GSI, and one more */
#define MIN_QP 3

static const Property properties[] = {
    DEFINE_NIC_PROPERTIES(NetRoce, conf.nic),
    DEFINE_PROP_UINT16("host_mtu", NetRoce, conf.host_mtu, 1500),
    DEFINE_PROP_UINT32("queue-size", NetRoce, conf.queue_size, 512),
    DEFINE_PROP_UINT32("max-qp", NetRoce, conf.max_qp, 64),
    DEFINE_PROP_UINT32("max-cq", NetRoce, conf.max_cq, 64),
    DEFINE_PROP_STRING("allowed-gids", NetRoce, conf.allowed_gids),
};

static const RdmaHcaPropText texts[] = {
    { "netdev", "ID of the netdev for all frames, also those of RoCEv2" },
    { "mac", "MAC address of the NIC, and of the port" },
    { "host_mtu", "MTU of the NIC in bytes of IP packet (576-65535)" },
    { "queue-size", "entries of a virtqueue, a power of 2 (64-1024)" },
    { "max-qp", "queue pairs, with the reserved two (3 or more; 3 + max-cq + "
                "2 * max-qp is at most 1024)" },
    { "max-cq", "completion queues (1 or more, see max-qp)" },
    { "allowed-gids", "addresses and prefixes that GIDs may be, separated by "
                      "spaces; by default all" },
};

bool net_roce_conf_check(NetRoce *s, Error **errp)
{
    const NetRoceConf *c = &s->conf;
    uint64_t queues = NET_ROCE_NUM_VQS((uint64_t)c->max_cq,
                                       (uint64_t)c->max_qp);
    g_autofree char *mac = qemu_mac_strdup_printf(c->nic.macaddr.a);

    if (!c->nic.peers.ncs[0]) {
        error_setg(errp, "the device needs a netdev, for a NIC and for RoCE");
    } else if (is_multicast_ether_addr(c->nic.macaddr.a)) {
        error_setg(errp, "mac=%s is a multicast address, but must be a unicast "
                   "one", mac);
    } else if (c->host_mtu < MIN_MTU) {
        error_setg(errp, "host_mtu=%u is out of range: it must be between %u "
                   "and %u", c->host_mtu, MIN_MTU, UINT16_MAX);
    } else if (!is_power_of_2(c->queue_size) ||
               c->queue_size < MIN_QUEUE_SIZE ||
               c->queue_size > VIRTQUEUE_MAX_SIZE) {
        error_setg(errp, "queue-size=%u must be a power of 2 between %u and %u",
                   c->queue_size, MIN_QUEUE_SIZE, VIRTQUEUE_MAX_SIZE);
    } else if (c->max_qp < MIN_QP || c->max_cq < 1) {
        error_setg(errp, "max-qp=%u must be at least %u, and max-cq=%u at "
                   "least 1", c->max_qp, MIN_QP, c->max_cq);
    } else if (queues > VIRTIO_QUEUE_MAX) {
        error_setg(errp, "max-cq=%u and max-qp=%u need %" PRIu64 " virtqueues "
                   "(3 + max-cq + 2 * max-qp), but a device has at most %d: "
                   "lower them", c->max_cq, c->max_qp, queues,
                   VIRTIO_QUEUE_MAX);
    } else {
        return rdma_hca_gids_parse(&s->hca, c->allowed_gids, errp);
    }
    return false;
}

void net_roce_props_init(ObjectClass *klass)
{
    device_class_set_props(DEVICE_CLASS(klass), properties);
    rdma_hca_describe_props(klass, texts, ARRAY_SIZE(texts));
}
