/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2 frames: taken apart into host-order structures, and put together
 * from them. These functions keep no state and call nothing back.
 *
 * A frame is Ethernet (at most one 802.1Q tag, no FCS), IPv4 without options
 * or IPv6 without extension headers, UDP, BTH, extended headers, payload,
 * pad, ICRC.
 *
 * Sources: IBTA Vol 1 Release 1.4, 9.2 (BTH), 9.3 (extended headers), Annex
 * A17 (RoCEv2), Annex A19 (FETH); RFC 791, RFC 8200, RFC 768; IEEE 802.1Q,
 * 9.6 (tags).
 */
#ifndef ROCE_WIRE_H
#define ROCE_WIRE_H

#include <string.h>
#include "rdma/roce.h"
#include "opcode.h"

/* Header sizes in bytes. */
#define ROCE_ETH_LEN    14
#define ROCE_VLAN_LEN   4
#define ROCE_IPV4_LEN   20
#define ROCE_IPV6_LEN   40
#define ROCE_UDP_LEN    8
#define ROCE_ICRC_LEN   4
/* What a UD receiver finds before the payload (IBTA 11.4.1.2). */
#define ROCE_GRH_LEN    40

/* Hop limit of a path whose address vector says 0. */
#define ROCE_DEFAULT_HOP_LIMIT 64

/* AETH syndrome: type in bits 6:5, value in bits 4:0 (IBTA 9.7.5.2.1). */
#define ROCE_AETH_TYPE_MASK   0x60
#define ROCE_AETH_VALUE_MASK  0x1f
#define ROCE_AETH_ACK         0x00
#define ROCE_AETH_RNR_NAK     0x20
#define ROCE_AETH_NAK         0x60
/* Value of an ACK whose sender does not use end-to-end credits. */
#define ROCE_AETH_NO_CREDITS  0x1f
/* Whole syndromes. */
#define ROCE_NAK_PSN_SEQUENCE   (ROCE_AETH_NAK | 0)
#define ROCE_NAK_INVALID_REQ    (ROCE_AETH_NAK | 1)
#define ROCE_NAK_REMOTE_ACCESS  (ROCE_AETH_NAK | 2)
#define ROCE_NAK_REMOTE_OP      (ROCE_AETH_NAK | 3)
#define ROCE_NAK_INVALID_RD     (ROCE_AETH_NAK | 4)

/* FETH: placement types in bits 3:0, selectivity level in bits 5:4 (A19). */
#define ROCE_FETH_TYPE_MASK   0x0f
#define ROCE_FETH_LEVEL_SHIFT 4
#define ROCE_FETH_LEVEL_MASK  0x03

/* Where a frame comes from and goes to: Ethernet, IP and UDP. */
typedef struct RocePath {
    uint8_t dmac[RDMA_MAC_LEN];
    uint8_t smac[RDMA_MAC_LEN];
    uint8_t sgid[RDMA_GID_LEN];     /* IPv4 mapped as ::ffff:a.b.c.d */
    uint8_t dgid[RDMA_GID_LEN];
    uint16_t vlan;                  /* 1..4094, or RDMA_NO_VLAN */
    uint8_t pcp;                    /* 0..7, priority of the tag; no tag: 0 */
    bool is_ipv4;                   /* both GIDs are IPv4, or neither is */
    uint8_t traffic_class;          /* IPv4: TOS */
    uint8_t hop_limit;              /* IPv4: TTL */
    uint32_t flow_label;            /* 20 bits; IPv4: none, 0 */
    uint16_t udp_sport;
} RocePath;

/*
 * BTH and extended headers. Which of the extended headers count is a matter
 * of the opcode; after parsing, the fields of the others are zero.
 */
typedef struct RoceBth {
    uint8_t opcode;
    bool se;                        /* solicited event */
    bool migreq;
    bool ack_req;
    uint8_t pad;                    /* 0..3; roce_build() makes its own */
    uint16_t pkey;
    uint32_t dqpn;
    uint32_t psn;

    struct {
        uint64_t va;
        uint32_t rkey;
        uint32_t len;               /* bytes of the whole message */
    } reth;
    struct {
        uint64_t va;
        uint64_t swap_add;          /* what to swap in, or to add */
        uint64_t compare;
        uint32_t rkey;
    } atomiceth;
    struct {
        uint8_t syndrome;
        uint32_t msn;
    } aeth;
    uint64_t atomic_ack;            /* the original value */
    struct {
        uint32_t qkey;
        uint32_t sqpn;
    } deth;
    uint8_t imm[4];                 /* network order, opaque */
    uint32_t ieth;                  /* rkey to invalidate */
    uint32_t feth;
} RoceBth;

/*
 * A parsed frame. The frame may lie in a guest's memory, where it changes at
 * any time: headers are read in a copy, which l3 and bth_start point into.
 */
typedef struct RocePacket {
    RocePath path;
    RoceBth bth;
    const RoceOpcodeInfo *info;     /* of bth.opcode */
    const uint8_t *l3;              /* IP header */
    const uint8_t *bth_start;       /* BTH as it stands on the wire */
    const uint8_t *payload;         /* in the frame, never NULL */
    uint32_t payload_len;           /* bytes, without pad and ICRC */
    uint8_t hdr[ROCE_MAX_HDR];
} RocePacket;

typedef enum RoceParse {
    ROCE_PARSE_OK,
    ROCE_PARSE_NOT_ROCE,            /* roce_peek() says no */
    ROCE_PARSE_MALFORMED,           /* meant to be RoCEv2, but broken */
} RoceParse;

/*
 * Take @frame of @len bytes apart. Bytes behind the IP packet (Ethernet
 * padding) are ignored. On ROCE_PARSE_OK all of @pkt is set, and:
 *
 * - roce_peek() says yes;
 * - IP and UDP lengths and the IPv4 header checksum are right;
 * - the opcode is known, its headers are complete, BTH version is 0;
 * - payload plus pad is a multiple of 4 bytes, the payload has at most
 *   ROCE_MAX_PAYLOAD bytes, and none where the opcode allows none;
 * - 4 bytes of ICRC follow, which this function does not look at.
 *
 * Otherwise @pkt is undefined. What IP addresses and MACs are there, and
 * whether pkey, QPN, PSN and lengths make sense, is left to the caller. The
 * UDP checksum is not looked at: the ICRC covers what it would.
 */
RoceParse roce_parse(const uint8_t *frame, size_t len, RocePacket *pkt);

/*
 * Is this the beginning of a RoCEv2 frame? Sets @dgid and *@vlan if so. The
 * first 62 bytes suffice to tell. Fragments, IPv4 packets with options, IPv6
 * packets with extension headers or with IPv4-mapped addresses are not
 * RoCEv2, nor are frames with several tags or in the reserved VLAN 4095. A
 * tag with VLAN 0 only tells a priority: such a frame is in no VLAN.
 */
bool roce_peek(const uint8_t *frame, size_t len, uint8_t dgid[RDMA_GID_LEN],
               uint16_t *vlan);

/* Bytes of Ethernet header, with its tag, of a frame of at least 14 bytes. */
static inline size_t roce_l2_len(const uint8_t *frame)
{
    return frame[12] == 0x81 && frame[13] == 0x00 ?
           ROCE_ETH_LEN + ROCE_VLAN_LEN : ROCE_ETH_LEN;
}

/* Pad bytes that follow a payload of @payload_len bytes. */
static inline unsigned roce_pad(size_t payload_len)
{
    return -payload_len & 3;
}

/* Bytes from the start of a frame without tag to the payload. */
static inline size_t roce_headers_len(bool is_ipv4, uint8_t opcode)
{
    return ROCE_ETH_LEN + (is_ipv4 ? ROCE_IPV4_LEN : ROCE_IPV6_LEN) +
           ROCE_UDP_LEN + roce_opcodes[opcode].hdr_len;
}

/*
 * Write all headers of a frame with @payload_len bytes of payload to @hdr,
 * which has room for ROCE_MAX_HDR bytes. Returns their length. @bth->opcode
 * must be known, @payload_len at most ROCE_MAX_PAYLOAD. IPv4 packets say
 * "don't fragment" and have ID 0 (RFC 6864); the UDP checksum is 0.
 */
size_t roce_build(uint8_t *hdr, const RocePath *path, const RoceBth *bth,
                  size_t payload_len);

/*
 * The 40 bytes in front of a received UD payload: the IPv6 header, or the
 * IPv4 header in the last 20 bytes behind zeroes (Annex A17.4.5.1).
 */
void roce_grh(const RocePacket *pkt, uint8_t grh[ROCE_GRH_LEN]);

/* The GID of an IPv4 address of 4 bytes in network order. */
void roce_gid_from_ipv4(uint8_t gid[RDMA_GID_LEN], const uint8_t ip[4]);

/* Is @gid the unspecified address of either IP version? */
bool roce_gid_is_zero(const uint8_t gid[RDMA_GID_LEN]);

/*
 * UDP source port of a flow, in the dynamic range 0xc000..0xffff: the same
 * for every packet of a QP (or UD destination), different between them, so
 * that routers and NICs can spread the load (Annex A17).
 */
uint16_t roce_udp_sport(uint32_t flow_label, uint32_t sqpn, uint32_t dqpn);

#endif /* ROCE_WIRE_H */
