/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2 frames: parsing into structures in host byte order, and building from
 * these. The functions have no state of their own, call nothing back and may
 * run in any thread.
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
 * opcode.c: the kind and the headers of a packet by its opcode. All code that
 * depends on BTH opcodes uses this table.
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
/* The reserved bytes after the BTH of a CNP, which are 0 (A17.9.3) */
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

/*
 * The lower five bits of an opcode: the operation, with the same value in each
 * transport that has it
 */
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

/* Properties of an opcode: operation, position in the message, and headers */
enum {
    /* The operation: exactly one is set, of these or of the last three. */
    ROCE_OP_SEND = 1u << 0,
    ROCE_OP_WRITE = 1u << 1,
    ROCE_OP_READ_REQ = 1u << 2,
    ROCE_OP_ATOMIC = 1u << 3,
    ROCE_OP_READ_RESP = 1u << 4,
    ROCE_OP_ACK = 1u << 5,
    ROCE_OP_ATOMIC_ACK = 1u << 6,

    /* The position: exactly one is set. Messages of one packet are ONLY. */
    ROCE_OP_FIRST = 1u << 7,
    ROCE_OP_MIDDLE = 1u << 8,
    ROCE_OP_LAST = 1u << 9,
    ROCE_OP_ONLY = 1u << 10,

    /* Extended headers */
    ROCE_OP_RETH = 1u << 11,
    ROCE_OP_ATOMICETH = 1u << 12,
    ROCE_OP_AETH = 1u << 13,
    ROCE_OP_ATOMICACK = 1u << 14,
    ROCE_OP_DETH = 1u << 15,
    ROCE_OP_IMM = 1u << 16,
    ROCE_OP_IETH = 1u << 17,

    /* The packet may have a payload. */
    ROCE_OP_PAYLOAD = 1u << 18,

    /* Extended header */
    ROCE_OP_FETH = 1u << 19,

    /* Operations */
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

/* The properties of one opcode; all 0, hdr_len too, if it does not exist */
typedef struct RoceOpcodeInfo {
    uint32_t flags;                 /* ROCE_OP_* */
    uint8_t transport;              /* RoceTransport */
    uint8_t hdr_len;                /* BTH and extended headers, bytes */
    const char *name;
} RoceOpcodeInfo;

/* The table by BTH opcode. For an opcode of a frame, use roce_opcode_info(). */
extern const RoceOpcodeInfo roce_opcodes[256];

/* The entry of @opcode, or NULL if it is reserved, or one of RD or XRC */
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
/* The longest headers before a BTH */
#define ROCE_L4_MAX     (ROCE_ETH_LEN + ROCE_VLAN_LEN + ROCE_IPV6_LEN + \
                         ROCE_UDP_LEN)
/* The GRH before the payload in the buffer of a UD receiver (IBTA 11.4.1.2) */
#define ROCE_GRH_LEN    40

/* The hop limit of a path whose address vector has 0 */
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

/* ECN, in the low bits of traffic class and TOS (RFC 3168) */
#define ROCE_ECN_MASK 3
#define ROCE_ECN_ECT0 2             /* switches may mark the packet */
#define ROCE_ECN_CE   3             /* a switch has marked the packet */

/* FETH: placement types in bits 3:0, selectivity level in bits 5:4 (A19). */
#define ROCE_FETH_TYPE_MASK   0x0f
#define ROCE_FETH_LEVEL_SHIFT 4
#define ROCE_FETH_LEVEL_MASK  0x03

/* The addresses and other fields of a frame's Ethernet, IP and UDP headers */
typedef struct RocePath {
    uint8_t dmac[RDMA_MAC_LEN];
    uint8_t smac[RDMA_MAC_LEN];
    uint8_t sgid[RDMA_GID_LEN];     /* IPv4 mapped as ::ffff:a.b.c.d */
    uint8_t dgid[RDMA_GID_LEN];
    uint16_t vlan;                  /* 1..RDMA_MAX_VLAN, or RDMA_NO_VLAN */
    uint8_t pcp;                    /* 0..7, priority of the tag; no tag: 0 */
    bool is_ipv4;                   /* both GIDs are IPv4 */
    uint8_t traffic_class;          /* IPv4: TOS */
    uint8_t hop_limit;              /* IPv4: TTL */
    uint32_t flow_label;            /* 20 bits; IPv4: 0 */
    uint16_t udp_sport;
} RocePath;

/*
 * BTH and extended headers, in host byte order. The opcode decides which
 * extended headers are valid. Parsing sets the fields of the others to 0.
 */
typedef struct RoceBth {
    uint8_t opcode;
    bool se;                        /* solicited event */
    bool migreq;
    bool ack_req;
    bool fecn;                      /* this packet met congestion */
    bool becn;                      /* packets to its sender met congestion */
    uint8_t pad;                    /* bytes, 0..3; roce_build() ignores it */
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
        uint64_t swap_add;          /* the operand to swap in or to add */
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
    uint32_t feth;                  /* see ROCE_FETH_* */
} RoceBth;

/*
 * The headers before the BTH that received frames of a flow have in common, if
 * they have the same length. The next such frame need not be parsed again.
 */
typedef struct RoceFlow {
    uint8_t hdr[ROCE_L4_MAX];       /* Ethernet to UDP */
    uint8_t len;                    /* bytes of hdr; 0: unused */
    uint8_t seen;                   /* frames, until icrc_diff is known */
    uint32_t icrc_diff;             /* see roce_icrc_ok() */
    RocePath path;
} RoceFlow;

/*
 * The headers before the BTH of the last frame that was built for a path. The
 * next frame has the same headers if it has the same length.
 */
typedef struct RoceTemplate {
    uint8_t hdr[ROCE_L4_MAX];       /* Ethernet to UDP */
    uint8_t len;                    /* bytes of hdr; 0: unused */
    bool icrc_known;                /* @icrc is valid */
    uint32_t icrc;                  /* of the headers before the BTH */
    /* The first 8 bytes of the BTH, which seldom change, and the ICRC so far */
    uint64_t bth;                   /* wire byte order */
    uint32_t icrc_bth;
} RoceTemplate;

/* The number of flows in a cache of roce_parse_flow(), a power of 2 */
#define ROCE_FLOWS 16

/*
 * A parsed frame. The frame may be in guest memory, where it may change at any
 * time. So the parser reads the headers from a copy in @hdr.
 */
typedef struct RocePacket {
    RocePath path;
    RoceBth bth;
    const RoceOpcodeInfo *info;     /* of bth.opcode */
    const uint8_t *l3;              /* the IP header, in @hdr */
    const uint8_t *bth_start;       /* the BTH as on the wire, in @hdr */
    RoceFlow *flow;                 /* the flow of the frame, or NULL */
    const uint8_t *payload;         /* in the frame, never NULL */
    uint32_t payload_len;           /* bytes, without pad and ICRC */
    uint8_t hdr[ROCE_MAX_HDR];
} RocePacket;

typedef enum RoceParse {
    ROCE_PARSE_OK,
    ROCE_PARSE_NOT_ROCE,            /* roce_peek() returns false */
    ROCE_PARSE_MALFORMED,           /* RoCEv2, but invalid */
} RoceParse;

/*
 * Parse @frame of @len bytes. Bytes after the IP packet (Ethernet padding) are
 * ignored. On ROCE_PARSE_OK all of @pkt is set, and:
 *
 * - roce_peek() returns true;
 * - IP and UDP lengths and the IPv4 header checksum are right;
 * - the opcode exists, its headers are complete, the BTH version is 0;
 * - payload plus pad is a multiple of 4 bytes, the payload has at most
 *   ROCE_MAX_PAYLOAD bytes, and 0 bytes if the opcode allows no payload;
 * - 4 bytes of ICRC follow, which this function does not check.
 *
 * Otherwise @pkt is undefined. The caller checks IP and MAC addresses, P_Key,
 * QPN, PSN and whether the length suits the message. The UDP checksum is
 * ignored, because the ICRC covers the same bytes. @frame must stay valid as
 * long as pkt->payload is used.
 */
RoceParse roce_parse(const uint8_t *frame, size_t len, RocePacket *pkt);

/*
 * Return the same as roce_parse(), but faster for a frame with the same headers
 * before the BTH as an earlier one. @flows is a cache that belongs to the
 * caller, who initializes it with zeroes.
 */
RoceParse roce_parse_flow(const uint8_t *frame, size_t len, RocePacket *pkt,
                          RoceFlow flows[ROCE_FLOWS]);

/*
 * Is this the beginning of a RoCEv2 frame? If so, sets @dgid and *@vlan. The
 * first ROCE_PEEK_LEN bytes suffice. These are not RoCEv2: fragments, IPv4
 * packets with options, IPv6 packets with extension headers or IPv4-mapped
 * addresses, frames with several tags or in the reserved VLAN 4095. A tag with
 * VLAN 0 has only a priority; the frame belongs to no VLAN.
 */
bool roce_peek(const uint8_t *frame, size_t len, uint8_t dgid[RDMA_GID_LEN],
               uint16_t *vlan);

/*
 * The bytes of the Ethernet header with its tag; @frame has 14 bytes or more.
 */
static inline size_t roce_l2_len(const uint8_t *frame)
{
    return frame[12] == 0x81 && frame[13] == 0x00 ?
           ROCE_ETH_LEN + ROCE_VLAN_LEN : ROCE_ETH_LEN;
}

/* The number of pad bytes after a payload of @payload_len bytes */
static inline unsigned roce_pad(size_t payload_len)
{
    return -payload_len & 3;
}

/* The bytes of all headers of a frame without a tag */
static inline size_t roce_headers_len(bool is_ipv4, uint8_t opcode)
{
    return ROCE_ETH_LEN + (is_ipv4 ? ROCE_IPV4_LEN : ROCE_IPV6_LEN) +
           ROCE_UDP_LEN + roce_opcodes[opcode].hdr_len;
}

/*
 * Write all headers of a frame with @payload_len bytes of payload to @hdr,
 * which has room for ROCE_MAX_HDR bytes. Returns the length of the headers.
 * bth->opcode must exist, and @payload_len be at most ROCE_MAX_PAYLOAD. IPv4
 * packets have "don't fragment" set and ID 0 (RFC 6864). The UDP checksum is 0.
 */
size_t roce_build(uint8_t *hdr, const RocePath *path, const RoceBth *bth,
                  size_t payload_len);

/*
 * Write the same headers, but faster if the last frame had the same length. @t
 * is a cache that belongs to @path. If @path changes, the caller clears it.
 */
size_t roce_build_next(uint8_t *hdr, RoceTemplate *t, const RocePath *path,
                       const RoceBth *bth, size_t payload_len);

/*
 * Write the GRH of a received UD payload: the IPv6 header, or 20 zeroes and the
 * IPv4 header (Annex A17.4.5.1).
 */
void roce_grh(const RocePacket *pkt, uint8_t grh[ROCE_GRH_LEN]);

/* Write the GID of an IPv4 address, which has 4 bytes in network order. */
void roce_gid_from_ipv4(uint8_t gid[RDMA_GID_LEN], const uint8_t ip[4]);

/* Is @gid the unspecified address of either IP version? */
bool roce_gid_is_zero(const uint8_t gid[RDMA_GID_LEN]);

/*
 * The UDP source port of a flow, in the dynamic range 0xc000..0xffff. All
 * packets of a QP, or to a UD destination, have the same port. Different QPs
 * usually have different ports, so that routers and NICs can spread the load
 * (Annex A17).
 */
uint16_t roce_udp_sport(uint32_t flow_label, uint32_t sqpn, uint32_t dqpn);

/*
 * icrc.c: the invariant CRC. It is the CRC32 of 8 bytes of ones instead of an
 * LRH, and of the packet from the IP header to the pad. Fields that routers may
 * change count as ones (IBTA 7.8.1, A17.3.3).
 */

/*
 * The ICRC of the headers of a frame. @hdr and @hdr_len are what roce_build()
 * wrote and returned. roce_icrc_add() continues it over @len bytes of payload
 * or pad. Both return a complete CRC of the bytes so far.
 */
uint32_t roce_icrc_start(const uint8_t *hdr, size_t hdr_len, bool is_ipv4);
uint32_t roce_icrc_add(uint32_t crc, const void *buf, size_t len);

/* icrc-bth.c: continue @crc over the first 8 bytes of a BTH. */
uint32_t roce_icrc_bth(uint32_t crc, const uint8_t *bth);
/* Continue @crc over @len bytes, a multiple of 4, of BTH and other headers. */
uint32_t roce_icrc_words(uint32_t crc, const uint8_t *p, size_t len);

/* Write @crc in the byte order of the wire. */
void roce_icrc_store(uint8_t dest[ROCE_ICRC_LEN], uint32_t crc);

/*
 * Write pad and ICRC of a frame to @trailer and return their length in bytes.
 * @hdr is as for roce_icrc_start(). The payload is in @iovcnt pieces, which
 * have the length that was passed to roce_build().
 */
size_t roce_icrc_trailer(const uint8_t *hdr, size_t hdr_len, bool is_ipv4,
                         const struct iovec *iov, unsigned iovcnt,
                         uint8_t trailer[ROCE_MAX_TRAILER]);

/* The same for headers that roce_build_next() wrote with the same @t */
size_t roce_icrc_trailer_next(const uint8_t *hdr, size_t hdr_len,
                              RoceTemplate *t, const struct iovec *iov,
                              unsigned iovcnt,
                              uint8_t trailer[ROCE_MAX_TRAILER]);

/* Is the ICRC of a parsed frame right? */
bool roce_icrc_ok(const RocePacket *pkt);

#endif /* ROCE_WIRE_H */
