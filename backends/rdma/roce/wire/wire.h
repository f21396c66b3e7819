/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2 frames: taken apart into host-order structures, and put together
 * from them. These functions keep no state and call nothing back.
 *
 * A frame is Ethernet (at most one 802.1Q tag, no FCS), IPv4 without options
 * or IPv6 without extension headers, UDP, BTH, extended headers, payload,
 * pad, ICRC.
 *
 * Sources: IBTA Vol 1 Release 1.4, 7.8.1 (ICRC), 9.2 (BTH), 9.2.1 (opcodes),
 * 9.3 (extended headers), Annex A17 (RoCEv2), Annex A19 (FLUSH, ATOMIC
 * WRITE); RFC 791, RFC 8200, RFC 768; IEEE 802.1Q, 9.6 (tags).
 */
#ifndef ROCE_WIRE_H
#define ROCE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "rdma/roce.h"

/*
 * opcode.c: what a packet with a given opcode is, and which headers it
 * carries. Everything that depends on an opcode is looked up here.
 */

/* Header sizes in bytes (IBTA 9.2, 9.3). */
#define ROCE_BTH_LEN        12
#define ROCE_RETH_LEN       16
#define ROCE_ATOMICETH_LEN  28
#define ROCE_AETH_LEN       4
#define ROCE_ATOMICACK_LEN  8
#define ROCE_DETH_LEN       8
#define ROCE_IMM_LEN        4
#define ROCE_IETH_LEN       4
#define ROCE_FETH_LEN       4
/* Behind the BTH of a CNP: reserved, 0 (A17.9.3). */
#define ROCE_CNP_LEN        16

/* The upper three bits of an opcode select the transport. */
typedef enum RoceTransport {
    ROCE_RC = 0x00,
    ROCE_UC = 0x20,
    ROCE_UD = 0x60,
    ROCE_CNP = 0x80,
} RoceTransport;

/* Congestion notification packet (A17.9.3) */
#define ROCE_CNP_OPCODE (ROCE_CNP | 1)

/* The lower five bits, the same in every transport that has the operation. */
typedef enum RoceOperation {
    ROCE_SEND_FIRST = 0x00,
    ROCE_SEND_MIDDLE = 0x01,
    ROCE_SEND_LAST = 0x02,
    ROCE_SEND_LAST_IMM = 0x03,
    ROCE_SEND_ONLY = 0x04,
    ROCE_SEND_ONLY_IMM = 0x05,
    ROCE_WRITE_FIRST = 0x06,
    ROCE_WRITE_MIDDLE = 0x07,
    ROCE_WRITE_LAST = 0x08,
    ROCE_WRITE_LAST_IMM = 0x09,
    ROCE_WRITE_ONLY = 0x0a,
    ROCE_WRITE_ONLY_IMM = 0x0b,
    ROCE_READ_REQUEST = 0x0c,
    ROCE_READ_RESP_FIRST = 0x0d,
    ROCE_READ_RESP_MIDDLE = 0x0e,
    ROCE_READ_RESP_LAST = 0x0f,
    ROCE_READ_RESP_ONLY = 0x10,
    ROCE_ACKNOWLEDGE = 0x11,
    ROCE_ATOMIC_ACKNOWLEDGE = 0x12,
    ROCE_COMPARE_SWAP = 0x13,
    ROCE_FETCH_ADD = 0x14,
    ROCE_SEND_LAST_INV = 0x16,
    ROCE_SEND_ONLY_INV = 0x17,
    ROCE_FLUSH = 0x1c,
    ROCE_ATOMIC_WRITE = 0x1d,
} RoceOperation;

/* What a packet is, where it stands in its message, and what it carries. */
enum {
    /* Operation; exactly one is set, of these or the last two. */
    ROCE_OP_SEND = 1u << 0,
    ROCE_OP_WRITE = 1u << 1,
    ROCE_OP_READ_REQ = 1u << 2,
    ROCE_OP_ATOMIC = 1u << 3,
    ROCE_OP_READ_RESP = 1u << 4,
    ROCE_OP_ACK = 1u << 5,
    ROCE_OP_ATOMIC_ACK = 1u << 6,

    /* Position; exactly one is set. Whatever has one packet is ONLY. */
    ROCE_OP_FIRST = 1u << 7,
    ROCE_OP_MIDDLE = 1u << 8,
    ROCE_OP_LAST = 1u << 9,
    ROCE_OP_ONLY = 1u << 10,

    /* Extended headers. */
    ROCE_OP_RETH = 1u << 11,
    ROCE_OP_ATOMICETH = 1u << 12,
    ROCE_OP_AETH = 1u << 13,
    ROCE_OP_ATOMICACK = 1u << 14,
    ROCE_OP_DETH = 1u << 15,
    ROCE_OP_IMM = 1u << 16,
    ROCE_OP_IETH = 1u << 17,

    /* May have a payload. */
    ROCE_OP_PAYLOAD = 1u << 18,

    ROCE_OP_FETH = 1u << 19,

    ROCE_OP_FLUSH = 1u << 20,
    ROCE_OP_ATOMIC_WRITE = 1u << 21,
    ROCE_OP_CNP = 1u << 22,
};

#define ROCE_OP_REQUEST  (ROCE_OP_SEND | ROCE_OP_WRITE | ROCE_OP_READ_REQ | \
                          ROCE_OP_ATOMIC | ROCE_OP_FLUSH | \
                          ROCE_OP_ATOMIC_WRITE)
#define ROCE_OP_RESPONSE (ROCE_OP_READ_RESP | ROCE_OP_ACK | \
                          ROCE_OP_ATOMIC_ACK)
/* The packet begins, or ends, a message. */
#define ROCE_OP_STARTS   (ROCE_OP_FIRST | ROCE_OP_ONLY)
#define ROCE_OP_ENDS     (ROCE_OP_LAST | ROCE_OP_ONLY)

/* One opcode; all zero (hdr_len 0) for one that does not exist. */
typedef struct RoceOpcodeInfo {
    uint32_t flags;                 /* ROCE_OP_* */
    uint8_t transport;              /* RoceTransport */
    uint8_t hdr_len;                /* BTH and extended headers, bytes */
    const char *name;
} RoceOpcodeInfo;

/* By BTH opcode. Use roce_opcode_info() for one that came from outside. */
extern const RoceOpcodeInfo roce_opcodes[256];

/* The entry of @opcode, or NULL if it is unknown, reserved or RD/XRC. */
static inline const RoceOpcodeInfo *roce_opcode_info(uint8_t opcode)
{
    const RoceOpcodeInfo *info = &roce_opcodes[opcode];

    return info->hdr_len ? info : NULL;
}

/* wire.c: headers */

/* Header sizes in bytes. */
#define ROCE_ETH_LEN    14
#define ROCE_VLAN_LEN   4
#define ROCE_IPV4_LEN   20
#define ROCE_IPV6_LEN   40
#define ROCE_UDP_LEN    8
#define ROCE_ICRC_LEN   4
/* All that is in front of a BTH, at most. */
#define ROCE_L4_MAX     (ROCE_ETH_LEN + ROCE_VLAN_LEN + ROCE_IPV6_LEN + \
                         ROCE_UDP_LEN)
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

/* ECN, in the low bits of traffic class and TOS (RFC 3168) */
#define ROCE_ECN_MASK 3
#define ROCE_ECN_ECT0 2             /* the sender heeds marks */
#define ROCE_ECN_CE   3             /* congestion experienced: a mark */

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
    bool fecn;                      /* it met congestion */
    bool becn;                      /* what goes the other way did */
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
 * What the frames of a flow begin with, as long as they are of one length:
 * what was found out about it needs no work in the next one.
 */
typedef struct RoceFlow {
    uint8_t hdr[ROCE_L4_MAX];       /* Ethernet to UDP */
    uint8_t len;                    /* bytes of hdr; 0: nothing is known */
    uint8_t seen;                   /* frames, before icrc_diff is known */
    uint32_t icrc_diff;             /* see roce_icrc_ok() */
    RocePath path;
} RoceFlow;

/*
 * What the last frame that was built for a path begins with; the next one
 * begins with the same if it has the same length.
 */
typedef struct RoceTemplate {
    uint8_t hdr[ROCE_L4_MAX];       /* Ethernet to UDP */
    uint8_t len;                    /* bytes of hdr; 0: there was none */
    bool icrc_known;
    uint32_t icrc;                  /* up to the BTH */
    /* and with the first half of that, which seldom changes, either */
    uint64_t bth;                   /* as it stands there */
    uint32_t icrc_bth;
} RoceTemplate;

/* Flows that are known at a time; a power of 2 */
#define ROCE_FLOWS 16

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
    RoceFlow *flow;                 /* it is of, or NULL */
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
 * Likewise, and with the same result, but faster for frames that begin as one
 * before them did. @flows belongs to the caller, and is all zero at first.
 */
RoceParse roce_parse_flow(const uint8_t *frame, size_t len, RocePacket *pkt,
                          RoceFlow flows[ROCE_FLOWS]);

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
 * Likewise, and with the same result, but faster if the last frame had the same
 * length. @t is of @path, and all zero when that is new.
 */
size_t roce_build_next(uint8_t *hdr, RoceTemplate *t, const RocePath *path,
                       const RoceBth *bth, size_t payload_len);

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

/*
 * icrc.c: the invariant CRC, a CRC32 of eight bytes of ones in place of an
 * LRH, and of the packet from the IP header to the pad, with the fields that
 * routers may change taken as ones (IBTA 7.8.1, A17.3.3).
 */

/*
 * Start an ICRC over the headers of a frame; @hdr and @hdr_len are what
 * roce_build() wrote and returned. Go on with roce_icrc_add() for payload
 * and pad; the CRC is final after each step.
 */
uint32_t roce_icrc_start(const uint8_t *hdr, size_t hdr_len, bool is_ipv4);
uint32_t roce_icrc_add(uint32_t crc, const void *buf, size_t len);

/* icrc-bth.c: go on over the first 8 bytes of a BTH. */
uint32_t roce_icrc_bth(uint32_t crc, const uint8_t *bth);
/* And over the others and the extended headers, @len bytes in words. */
uint32_t roce_icrc_words(uint32_t crc, const uint8_t *p, size_t len);

/* Write @crc as it stands behind the pad. */
void roce_icrc_store(uint8_t dest[ROCE_ICRC_LEN], uint32_t crc);

/*
 * Write pad and ICRC of a frame to @trailer and return their length, at most
 * ROCE_MAX_TRAILER. @hdr as for roce_icrc_start(); the payload lies in
 * @iovcnt pieces, which hold as many bytes as roce_build() was told.
 */
size_t roce_icrc_trailer(const uint8_t *hdr, size_t hdr_len, bool is_ipv4,
                         const struct iovec *iov, unsigned iovcnt,
                         uint8_t trailer[ROCE_MAX_TRAILER]);

/* Likewise, of what roce_build_next() wrote, with the same @t. */
size_t roce_icrc_trailer_next(const uint8_t *hdr, size_t hdr_len,
                              RoceTemplate *t, const struct iovec *iov,
                              unsigned iovcnt,
                              uint8_t trailer[ROCE_MAX_TRAILER]);

/* Is the ICRC of a parsed frame right? */
bool roce_icrc_ok(const RocePacket *pkt);

#endif /* ROCE_WIRE_H */
