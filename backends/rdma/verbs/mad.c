/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MADs of the connection manager: which ones the guest may send, and the header
 * of those that it receives.
 *
 * Only MADs of class CM pass: with other classes a guest could act as the host.
 * A request for a connection, or for another path of one, has the sender's
 * addresses in its data. The peer sends to these addresses, or passes them to
 * its program. The host does not check them.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "qemu/log.h"
#include "net/checksum.h"
#include "int.h"

/* Attributes and offsets of their fields (IBTA 12.6.5, 12.8.1, 12.11.1) */
#define ATTR_REQ 0x10
#define ATTR_SIDR_REQ 0x17
#define ATTR_LAP 0x19
#define SERVICE_ID 32
#define REQ_PRIMARY_GID 80
#define REQ_ALTERNATE_GID 124
#define REQ_PRIVATE_DATA 164
#define SIDR_REQ_PRIVATE_DATA 40
#define LAP_ALTERNATE_GID 48

/* Offsets in private data with IP addresses (IBTA A11.3) */
#define IP_VERSION 1                /* in the upper 4 bits */
#define IP_SOURCE 4

/* Is @id of an IP port (IBTA A11.2), or of Linux's port space for IPoIB? */
static bool is_ip_service(uint64_t id)
{
    return id >> 24 == 1 || id >> 16 == 2;
}

static bool is_own(RdmaVerbs *v, const uint8_t gid[RDMA_GID_LEN],
                   const char *what)
{
    char text[INET6_ADDRSTRLEN];

    if (verbs_gid_is_guests(v, gid)) {
        return true;
    }
    inet_ntop(AF_INET6, gid, text, sizeof(text));
    qemu_log_mask(LOG_GUEST_ERROR, "rdma-verbs: a request for a connection is "
                  "dropped: its %s %s is not a GID of the guest on the "
                  "host's port\n", what, text);
    return false;
}

/* Check the address of a path, which the peer sends to. */
static bool path_is_own(RdmaVerbs *v, const uint8_t gid[RDMA_GID_LEN],
                        const char *what)
{
    return buffer_is_zero(gid, RDMA_GID_LEN) || is_own(v, gid, what);
}

/* Check the IP address that the peer passes to its program. */
static bool ip_is_own(RdmaVerbs *v, const uint8_t *private_data)
{
    uint8_t gid[RDMA_GID_LEN] = { [10] = 0xff, [11] = 0xff };
    uint8_t version = private_data[IP_VERSION] >> 4;

    if (version == 4) {
        memcpy(gid + 12, private_data + IP_SOURCE + 12, 4);
    } else if (version == 6) {
        memcpy(gid, private_data + IP_SOURCE, RDMA_GID_LEN);
    } else {
        return true;
    }
    return is_own(v, gid, "source IP address");
}

/* Are the sender's addresses in @mad those of the guest? */
static bool addresses_are_own(RdmaVerbs *v, const uint8_t mad[VERBS_MAD_LEN])
{
    bool ip = is_ip_service(ldq_be_p(mad + SERVICE_ID));

    switch (lduw_be_p(mad + RDMA_MAD_ATTR)) {
    case ATTR_REQ:
        return path_is_own(v, mad + REQ_PRIMARY_GID, "primary GID") &&
               path_is_own(v, mad + REQ_ALTERNATE_GID, "alternate GID") &&
               (!ip || ip_is_own(v, mad + REQ_PRIVATE_DATA));
    case ATTR_SIDR_REQ:
        return !ip || ip_is_own(v, mad + SIDR_REQ_PRIVATE_DATA);
    case ATTR_LAP:
        return path_is_own(v, mad + LAP_ALTERNATE_GID, "alternate GID");
    default:
        return true;
    }
}

bool verbs_mad_may_send(RdmaVerbs *v, const VerbsMad *mad, uint64_t length)
{
    if (length == VERBS_MAD_LEN && mad->qpn == RDMA_QPN_GSI &&
        !rdma_gid_is_multicast(mad->ah.grh.dgid.raw) &&
        mad->data[1] == RDMA_MAD_CLASS_CM &&
        mad->data[2] == RDMA_MAD_CM_VERSION &&
        mad->data[3] == RDMA_MAD_METHOD_SEND) {
        return addresses_are_own(v, mad->data);
    }
    qemu_log_mask(LOG_GUEST_ERROR, "rdma-verbs: QP 1 sends nothing but MADs "
                  "of the connection manager (class 7 version 2 method 3) to "
                  "QP 1: %" PRIu64 " bytes for QP %u, class %u version %u "
                  "method %u, are dropped\n", length, mad->qpn,
                  mad->data[1], mad->data[2], mad->data[3]);
    return false;
}

/* The header of a received MAD (RoCEv2 annex, A17.4.5) */
#define IPV4_LEN 20
#define IP_PROTO_UDP 17

void verbs_mad_put_grh(uint8_t grh[VERBS_GRH_LEN], const VerbsMad *mad,
                       const uint8_t dgid[RDMA_GID_LEN])
{
    /* UDP header, BTH, DETH and ICRC are part of the IP packet */
    const uint16_t payload = 8 + 12 + 8 + VERBS_MAD_LEN + 4;
    const struct ibv_global_route *route = &mad->ah.grh;
    uint8_t *ip = grh + VERBS_GRH_LEN - IPV4_LEN;

    memset(grh, 0, VERBS_GRH_LEN);
    if (rdma_gid_is_ipv4(dgid)) {
        ip[0] = 0x45;
        ip[1] = route->traffic_class;
        stw_be_p(ip + 2, IPV4_LEN + payload);
        stw_be_p(ip + 6, 0x4000);   /* do not fragment */
        ip[8] = route->hop_limit;
        ip[9] = IP_PROTO_UDP;
        memcpy(ip + 12, route->dgid.raw + 12, 4);
        memcpy(ip + 16, dgid + 12, 4);
        stw_be_p(ip + 10, net_raw_checksum(ip, IPV4_LEN));
    } else {
        stl_be_p(grh, 6u << 28 | (uint32_t)route->traffic_class << 20 |
                      (route->flow_label & 0xfffff));
        stw_be_p(grh + 4, payload);
        grh[6] = IP_PROTO_UDP;
        grh[7] = route->hop_limit;
        memcpy(grh + 8, route->dgid.raw, RDMA_GID_LEN);
        memcpy(grh + 24, dgid, RDMA_GID_LEN);
    }
}
