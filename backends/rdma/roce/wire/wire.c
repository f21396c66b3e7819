/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2 frames: parsing and building of the headers.
 *
 * Header order (IBTA 9.2): RETH or DETH before ImmDt or IETH, AETH before
 * AtomicAckETH, FETH before RETH. Lengths are compared by subtraction, since a
 * sum could wrap.
 */
#include <glib.h>
#include "wire/wire.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define TCI_VLAN_MASK 0x0fff
#define TCI_PCP_SHIFT 13
#define VLAN_RESERVED 0x0fff
#define PROTO_UDP 17

#define IPV4_DF 0x4000
#define IPV4_MF 0x2000
#define IPV4_OFFSET_MASK 0x1fff

#define BTH_SE 0x80
#define BTH_MIGREQ 0x40
#define BTH_PAD_SHIFT 4
#define BTH_TVER_MASK 0x0f
#define BTH_ACK_REQ 0x80
#define BTH_FECN 0x80
#define BTH_BECN 0x40

static inline uint16_t get16(const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return GUINT16_FROM_BE(v);
}

static inline uint32_t get32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return GUINT32_FROM_BE(v);
}

static inline uint64_t get64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return GUINT64_FROM_BE(v);
}

static inline uint32_t get24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline void put16(uint8_t *p, uint16_t v)
{
    v = GUINT16_TO_BE(v);
    memcpy(p, &v, sizeof(v));
}

static inline void put32(uint8_t *p, uint32_t v)
{
    v = GUINT32_TO_BE(v);
    memcpy(p, &v, sizeof(v));
}

static inline void put64(uint8_t *p, uint64_t v)
{
    v = GUINT64_TO_BE(v);
    memcpy(p, &v, sizeof(v));
}

/* The Internet checksum of 16-bit words whose sum is @sum (RFC 1071) */
static uint16_t fold_checksum(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum += sum >> 16;
    return ~sum;
}

static uint32_t sum_words(uint32_t v)
{
    return (v >> 16) + (v & 0xffff);
}

/* The checksum of an IPv4 header without options; 0 if its own is right */
static uint16_t ipv4_checksum(const uint8_t *ip)
{
    return fold_checksum(sum_words(get32(ip)) + sum_words(get32(ip + 4)) +
                         sum_words(get32(ip + 8)) +
                         sum_words(get32(ip + 12)) +
                         sum_words(get32(ip + 16)));
}

/*
 * Are both addresses of an IPv6 packet valid as GIDs? IPv4-mapped addresses are
 * not: the packet would seem to come from an IPv4 peer.
 */
static bool ipv6_addresses_ok(const uint8_t *ip)
{
    return !rdma_gid_is_ipv4(ip + 8) && !rdma_gid_is_ipv4(ip + 24);
}

G_STATIC_ASSERT(ROCE_PEEK_LEN == ROCE_ETH_LEN + ROCE_VLAN_LEN +
                                 ROCE_IPV6_LEN + 4);

bool roce_peek(const uint8_t *frame, size_t len, uint8_t dgid[RDMA_GID_LEN],
               uint16_t *vlan)
{
    const uint8_t *ip;
    size_t l2_len;

    if (len < ROCE_ETH_LEN + ROCE_IPV4_LEN + 4) {
        return false;
    }
    l2_len = roce_l2_len(frame);
    *vlan = RDMA_NO_VLAN;
    if (l2_len != ROCE_ETH_LEN) {
        *vlan = get16(frame + ROCE_ETH_LEN) & TCI_VLAN_MASK;
        if (*vlan == VLAN_RESERVED || len - l2_len < ROCE_IPV4_LEN + 4) {
            return false;
        }
    }
    ip = frame + l2_len;
    len -= l2_len;

    switch (get16(ip - 2)) {
    case ETHERTYPE_IPV4:
        if (ip[0] != 0x45 || ip[9] != PROTO_UDP ||
            (get16(ip + 6) & (IPV4_MF | IPV4_OFFSET_MASK)) ||
            get16(ip + ROCE_IPV4_LEN + 2) != ROCE_UDP_PORT) {
            return false;
        }
        roce_gid_from_ipv4(dgid, ip + 16);
        return true;
    case ETHERTYPE_IPV6:
        if (len < ROCE_IPV6_LEN + 4 ||
            ip[0] >> 4 != 6 || ip[6] != PROTO_UDP ||
            get16(ip + ROCE_IPV6_LEN + 2) != ROCE_UDP_PORT ||
            !ipv6_addresses_ok(ip)) {
            return false;
        }
        memcpy(dgid, ip + 24, RDMA_GID_LEN);
        return true;
    default:
        return false;
    }
}

/*
 * The IP parsers continue after roce_peek(). At @ip are *@len bytes, an IP
 * packet and perhaps padding. The parsers set the IP fields of @path except
 * dgid and is_ipv4, and *@len to the length of the UDP datagram.
 */
static bool parse_ipv4(const uint8_t *ip, size_t *len, RocePath *path)
{
    uint16_t total = get16(ip + 2);

    if (total > *len || total < ROCE_IPV4_LEN || ipv4_checksum(ip) != 0) {
        return false;
    }
    path->traffic_class = ip[1];
    path->hop_limit = ip[8];
    path->flow_label = 0;
    roce_gid_from_ipv4(path->sgid, ip + 12);
    *len = total - ROCE_IPV4_LEN;
    return true;
}

static bool parse_ipv6(const uint8_t *ip, size_t *len, RocePath *path)
{
    uint32_t word = get32(ip);
    uint16_t payload = get16(ip + 4);

    if (payload > *len - ROCE_IPV6_LEN) {
        return false;
    }
    path->traffic_class = word >> 20;
    path->hop_limit = ip[7];
    path->flow_label = word & 0xfffff;
    memcpy(path->sgid, ip + 8, RDMA_GID_LEN);
    *len = payload;
    return true;
}

/* Do packets with this opcode have extended headers? */
static bool is_extended(const RoceOpcodeInfo *info)
{
    return info->hdr_len != ROCE_BTH_LEN;
}

/* @p has info->hdr_len bytes. */
static void parse_bth(const uint8_t *p, const RoceOpcodeInfo *info,
                      RoceBth *bth)
{
    bth->opcode = p[0];
    bth->se = p[1] & BTH_SE;
    bth->migreq = p[1] & BTH_MIGREQ;
    bth->pad = p[1] >> BTH_PAD_SHIFT & 3;
    bth->pkey = get16(p + 2);
    bth->fecn = p[4] & BTH_FECN;
    bth->becn = p[4] & BTH_BECN;
    bth->dqpn = get24(p + 5);
    bth->ack_req = p[8] & BTH_ACK_REQ;
    bth->psn = get24(p + 9);
    p += ROCE_BTH_LEN;

    memset(&bth->reth, 0, sizeof(bth->reth));
    memset(&bth->atomiceth, 0, sizeof(bth->atomiceth));
    memset(&bth->aeth, 0, sizeof(bth->aeth));
    memset(&bth->deth, 0, sizeof(bth->deth));
    memset(bth->imm, 0, sizeof(bth->imm));
    bth->atomic_ack = 0;
    bth->ieth = 0;
    bth->feth = 0;

    if (!is_extended(info)) {
        return;
    }
    if (info->flags & ROCE_OP_FETH) {
        bth->feth = get32(p);
        p += ROCE_FETH_LEN;
    }
    if (info->flags & ROCE_OP_RETH) {
        bth->reth.va = get64(p);
        bth->reth.rkey = get32(p + 8);
        bth->reth.len = get32(p + 12);
        p += ROCE_RETH_LEN;
    }
    if (info->flags & ROCE_OP_ATOMICETH) {
        bth->atomiceth.va = get64(p);
        bth->atomiceth.rkey = get32(p + 8);
        bth->atomiceth.swap_add = get64(p + 12);
        bth->atomiceth.compare = get64(p + 20);
        p += ROCE_ATOMICETH_LEN;
    }
    if (info->flags & ROCE_OP_DETH) {
        bth->deth.qkey = get32(p);
        bth->deth.sqpn = get24(p + 5);
        p += ROCE_DETH_LEN;
    }
    if (info->flags & ROCE_OP_AETH) {
        bth->aeth.syndrome = p[0];
        bth->aeth.msn = get24(p + 1);
        p += ROCE_AETH_LEN;
    }
    if (info->flags & ROCE_OP_ATOMICACK) {
        bth->atomic_ack = get64(p);
        p += ROCE_ATOMICACK_LEN;
    }
    if (info->flags & ROCE_OP_IMM) {
        memcpy(bth->imm, p, ROCE_IMM_LEN);
        p += ROCE_IMM_LEN;
    }
    if (info->flags & ROCE_OP_IETH) {
        bth->ieth = get32(p);
    }
}

/*
 * Parse the headers from Ethernet to UDP of a frame of *@len bytes. Sets path,
 * l3 and bth_start of @pkt, and *@len to the bytes from the BTH to the ICRC,
 * without the ICRC.
 */
static RoceParse parse_path(size_t *len, RocePacket *pkt)
{
    const uint8_t *udp, *hdr = pkt->hdr;
    size_t l2_len, udp_len;
    bool ok;

    if (!roce_peek(hdr, *len, pkt->path.dgid, &pkt->path.vlan)) {
        return ROCE_PARSE_NOT_ROCE;
    }
    memcpy(pkt->path.dmac, hdr, RDMA_MAC_LEN);
    memcpy(pkt->path.smac, hdr + 6, RDMA_MAC_LEN);
    l2_len = roce_l2_len(hdr);
    pkt->path.pcp = l2_len == ROCE_ETH_LEN ? 0 :
                    hdr[ROCE_ETH_LEN] >> (TCI_PCP_SHIFT - 8);
    pkt->l3 = hdr + l2_len;
    pkt->path.is_ipv4 = get16(pkt->l3 - 2) == ETHERTYPE_IPV4;
    *len -= l2_len;

    if (pkt->path.is_ipv4) {
        ok = parse_ipv4(pkt->l3, len, &pkt->path);
        udp = pkt->l3 + ROCE_IPV4_LEN;
    } else {
        ok = parse_ipv6(pkt->l3, len, &pkt->path);
        udp = pkt->l3 + ROCE_IPV6_LEN;
    }
    if (!ok || *len < ROCE_UDP_LEN) {
        return ROCE_PARSE_MALFORMED;
    }

    udp_len = get16(udp + 4);
    if (udp_len != *len ||
        *len - ROCE_UDP_LEN < ROCE_BTH_LEN + ROCE_ICRC_LEN) {
        return ROCE_PARSE_MALFORMED;
    }
    pkt->path.udp_sport = get16(udp);
    *len -= ROCE_UDP_LEN + ROCE_ICRC_LEN;
    pkt->bth_start = udp + ROCE_UDP_LEN;
    return ROCE_PARSE_OK;
}

/* Parse the rest of a frame: @len bytes before the ICRC, at least a BTH. */
static RoceParse parse_transport(const uint8_t *frame, size_t len,
                                 RocePacket *pkt)
{
    const uint8_t *bth = pkt->bth_start;
    unsigned pad;

    pkt->info = roce_opcode_info(bth[0]);
    if (!pkt->info || (bth[1] & BTH_TVER_MASK) ||
        len < pkt->info->hdr_len) {
        return ROCE_PARSE_MALFORMED;
    }
    parse_bth(bth, pkt->info, &pkt->bth);
    len -= pkt->info->hdr_len;

    pad = pkt->bth.pad;
    if (len < pad || (len & 3) || len - pad > ROCE_MAX_PAYLOAD ||
        (len && !(pkt->info->flags & ROCE_OP_PAYLOAD))) {
        return ROCE_PARSE_MALFORMED;
    }
    pkt->payload = frame + (bth - pkt->hdr) + pkt->info->hdr_len;
    pkt->payload_len = len - pad;
    return ROCE_PARSE_OK;
}

/*
 * The bytes that copy_headers() copies: at least the longest headers. A
 * constant lets the compiler avoid a call of memcpy().
 */
#define COPY_LEN 112
G_STATIC_ASSERT(ROCE_L4_MAX + ROCE_BTH_LEN + ROCE_ATOMICETH_LEN <= COPY_LEN &&
                COPY_LEN <= ROCE_MAX_HDR);

static void copy_headers(const uint8_t *frame, size_t len, RocePacket *pkt)
{
    if (len >= COPY_LEN) {
        memcpy(pkt->hdr, frame, COPY_LEN);
    } else {
        memcpy(pkt->hdr, frame, len);
    }
}

RoceParse roce_parse(const uint8_t *frame, size_t len, RocePacket *pkt)
{
    RoceParse result;

    if (len < ROCE_ETH_LEN) {
        return ROCE_PARSE_NOT_ROCE;
    }
    copy_headers(frame, len, pkt);
    pkt->flow = NULL;
    result = parse_path(&len, pkt);
    return result == ROCE_PARSE_OK ? parse_transport(frame, len, pkt) : result;
}

/* The bits in which 8 bytes at @a and @b differ */
static inline uint64_t diff8(const uint8_t *a, const uint8_t *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x ^ y;
}

/* Does @hdr begin with the headers of @flow, which have at least 42 bytes? */
static bool flow_has(const RoceFlow *flow, const uint8_t *hdr)
{
    const uint8_t *h = flow->hdr;
    size_t last = flow->len - 8, i;
    uint64_t diff = diff8(h, hdr) | diff8(h + 8, hdr + 8) |
                    diff8(h + 16, hdr + 16) | diff8(h + 24, hdr + 24) |
                    diff8(h + last, hdr + last);

    for (i = 32; i < last; i += 8) {
        diff |= diff8(h + i, hdr + i);
    }
    return diff == 0;
}

/* The low byte of the UDP source port, in frames of IPv4 without a tag */
#define SPORT_LOW (ROCE_ETH_LEN + ROCE_IPV4_LEN + 1)

RoceParse roce_parse_flow(const uint8_t *frame, size_t len, RocePacket *pkt,
                          RoceFlow flows[ROCE_FLOWS])
{
    RoceParse result;
    size_t udp_len;
    RoceFlow *flow;

    /* The cache does not help with shorter frames. */
    if (len < ROCE_PEEK_LEN) {
        return roce_parse(frame, len, pkt);
    }
    copy_headers(frame, len, pkt);
    /* A RETH or AETH changes the length, so use it to select the flow. */
    flow = &flows[(len >> 4 ^ len >> 2 ^ pkt->hdr[SPORT_LOW]) &
                  (ROCE_FLOWS - 1)];
    if (flow->len && len > flow->len && flow_has(flow, pkt->hdr)) {
        pkt->bth_start = pkt->hdr + flow->len;
        udp_len = get16(pkt->bth_start - 4);
        if (udp_len - ROCE_UDP_LEN <= len - flow->len) {
            pkt->flow = flow;
            pkt->path = flow->path;
            pkt->l3 = pkt->hdr + roce_l2_len(pkt->hdr);
            return parse_transport(frame, udp_len - ROCE_UDP_LEN -
                                   ROCE_ICRC_LEN, pkt);
        }
    }

    pkt->flow = NULL;
    result = parse_path(&len, pkt);
    if (result != ROCE_PARSE_OK) {
        return result;
    }
    flow->len = pkt->bth_start - pkt->hdr;
    memcpy(flow->hdr, pkt->hdr, sizeof(flow->hdr));
    flow->seen = 0;
    flow->path = pkt->path;
    return parse_transport(frame, len, pkt);
}

static uint8_t *build_ipv4(uint8_t *p, const RocePath *path, size_t udp_len)
{
    uint8_t ttl = path->hop_limit ? path->hop_limit : ROCE_DEFAULT_HOP_LIMIT;
    uint32_t version_to_len = 0x45u << 24 | path->traffic_class << 16 |
                              (ROCE_IPV4_LEN + udp_len);
    uint32_t ttl_proto = ttl << 8 | PROTO_UDP;
    uint32_t src = get32(path->sgid + 12), dest = get32(path->dgid + 12);
    uint32_t sum = sum_words(version_to_len) + IPV4_DF + ttl_proto +
                   sum_words(src) + sum_words(dest);

    put32(p, version_to_len);
    put32(p + 4, IPV4_DF);              /* ID 0 */
    put32(p + 8, ttl_proto << 16 | fold_checksum(sum));
    put32(p + 12, src);
    put32(p + 16, dest);
    return p + ROCE_IPV4_LEN;
}

static uint8_t *build_ipv6(uint8_t *p, const RocePath *path, size_t udp_len)
{
    put32(p, 6u << 28 | (uint32_t)path->traffic_class << 20 |
             (path->flow_label & 0xfffff));
    put16(p + 4, udp_len);
    p[6] = PROTO_UDP;
    p[7] = path->hop_limit ? path->hop_limit : ROCE_DEFAULT_HOP_LIMIT;
    memcpy(p + 8, path->sgid, RDMA_GID_LEN);
    memcpy(p + 24, path->dgid, RDMA_GID_LEN);
    return p + ROCE_IPV6_LEN;
}

static uint8_t *build_bth(uint8_t *p, const RoceBth *bth,
                          const RoceOpcodeInfo *info, unsigned pad)
{
    uint32_t flags = (bth->se ? BTH_SE : 0) | (bth->migreq ? BTH_MIGREQ : 0) |
                     pad << BTH_PAD_SHIFT;
    uint32_t congestion = (bth->fecn ? BTH_FECN : 0) |
                          (bth->becn ? BTH_BECN : 0);
    uint32_t ack_req = bth->ack_req ? BTH_ACK_REQ : 0;

    /*
     * One store of 8 bytes: roce_icrc_trailer_next() loads the same 8 bytes,
     * which is fast only after a store of the same size.
     */
    put64(p, (uint64_t)((uint32_t)bth->opcode << 24 | flags << 16 |
                        bth->pkey) << 32 |
             congestion << 24 | (bth->dqpn & RDMA_24BIT_MASK));
    put32(p + 8, ack_req << 24 | (bth->psn & RDMA_24BIT_MASK));
    p += ROCE_BTH_LEN;

    if (!is_extended(info)) {
        return p;
    }
    if (info->flags & ROCE_OP_FETH) {
        put32(p, bth->feth);
        p += ROCE_FETH_LEN;
    }
    if (info->flags & ROCE_OP_RETH) {
        put64(p, bth->reth.va);
        put32(p + 8, bth->reth.rkey);
        put32(p + 12, bth->reth.len);
        p += ROCE_RETH_LEN;
    }
    if (info->flags & ROCE_OP_ATOMICETH) {
        put64(p, bth->atomiceth.va);
        put32(p + 8, bth->atomiceth.rkey);
        put64(p + 12, bth->atomiceth.swap_add);
        put64(p + 20, bth->atomiceth.compare);
        p += ROCE_ATOMICETH_LEN;
    }
    if (info->flags & ROCE_OP_DETH) {
        put32(p, bth->deth.qkey);
        put32(p + 4, bth->deth.sqpn & RDMA_24BIT_MASK);
        p += ROCE_DETH_LEN;
    }
    if (info->flags & ROCE_OP_AETH) {
        put32(p, (uint32_t)bth->aeth.syndrome << 24 |
                 (bth->aeth.msn & RDMA_24BIT_MASK));
        p += ROCE_AETH_LEN;
    }
    if (info->flags & ROCE_OP_ATOMICACK) {
        put64(p, bth->atomic_ack);
        p += ROCE_ATOMICACK_LEN;
    }
    if (info->flags & ROCE_OP_IMM) {
        memcpy(p, bth->imm, ROCE_IMM_LEN);
        p += ROCE_IMM_LEN;
    }
    if (info->flags & ROCE_OP_IETH) {
        put32(p, bth->ieth);
        p += ROCE_IETH_LEN;
    }
    if (info->flags & ROCE_OP_CNP) {
        memset(p, 0, ROCE_CNP_LEN);
        p += ROCE_CNP_LEN;
    }
    return p;
}

/* Write the headers from Ethernet to UDP. */
static uint8_t *build_path(uint8_t *p, const RocePath *path, size_t udp_len)
{
    memcpy(p, path->dmac, RDMA_MAC_LEN);
    memcpy(p + 6, path->smac, RDMA_MAC_LEN);
    p += 2 * RDMA_MAC_LEN;
    if (path->vlan != RDMA_NO_VLAN) {
        put16(p, ETHERTYPE_VLAN);
        put16(p + 2, path->pcp << TCI_PCP_SHIFT | path->vlan);
        p += ROCE_VLAN_LEN;
    }
    put16(p, path->is_ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
    p += 2;

    p = path->is_ipv4 ? build_ipv4(p, path, udp_len)
                      : build_ipv6(p, path, udp_len);

    put16(p, path->udp_sport);
    put16(p + 2, ROCE_UDP_PORT);
    put16(p + 4, udp_len);
    put16(p + 6, 0);
    return p + ROCE_UDP_LEN;
}

static size_t udp_len_of(const RoceBth *bth, size_t payload_len)
{
    return ROCE_UDP_LEN + roce_opcodes[bth->opcode].hdr_len + payload_len +
           roce_pad(payload_len) + ROCE_ICRC_LEN;
}

size_t roce_build(uint8_t *hdr, const RocePath *path, const RoceBth *bth,
                  size_t payload_len)
{
    uint8_t *p = build_path(hdr, path, udp_len_of(bth, payload_len));

    p = build_bth(p, bth, &roce_opcodes[bth->opcode], roce_pad(payload_len));
    return p - hdr;
}

size_t roce_build_next(uint8_t *hdr, RoceTemplate *t, const RocePath *path,
                       const RoceBth *bth, size_t payload_len)
{
    size_t udp_len = udp_len_of(bth, payload_len);
    uint8_t *p;

    if (!t->len || get16(t->hdr + t->len - 4) != udp_len) {
        t->len = build_path(t->hdr, path, udp_len) - t->hdr;
        t->icrc_known = false;
    }
    /* A constant length lets the compiler avoid a call of memcpy(). */
    memcpy(hdr, t->hdr, sizeof(t->hdr));
    p = build_bth(hdr + t->len, bth, &roce_opcodes[bth->opcode],
                  roce_pad(payload_len));
    return p - hdr;
}

void roce_grh(const RocePacket *pkt, uint8_t grh[ROCE_GRH_LEN])
{
    if (pkt->path.is_ipv4) {
        memset(grh, 0, ROCE_GRH_LEN - ROCE_IPV4_LEN);
        memcpy(grh + ROCE_GRH_LEN - ROCE_IPV4_LEN, pkt->l3, ROCE_IPV4_LEN);
    } else {
        memcpy(grh, pkt->l3, ROCE_IPV6_LEN);
    }
}

void roce_gid_from_ipv4(uint8_t gid[RDMA_GID_LEN], const uint8_t ip[4])
{
    memset(gid, 0, 10);
    memset(gid + 10, 0xff, 2);
    memcpy(gid + 12, ip, 4);
}

bool roce_gid_is_zero(const uint8_t gid[RDMA_GID_LEN])
{
    static const uint8_t zero[RDMA_GID_LEN];

    if (rdma_gid_is_ipv4(gid)) {
        return memcmp(gid + 12, zero, 4) == 0;
    }
    return memcmp(gid, zero, RDMA_GID_LEN) == 0;
}

uint16_t roce_udp_sport(uint32_t flow_label, uint32_t sqpn, uint32_t dqpn)
{
    /* Fibonacci hashing. Equal QPNs must not cancel each other out. */
    uint64_t key = ((uint64_t)sqpn << 32 | dqpn) ^ (uint64_t)flow_label << 20;

    key ^= key >> 29;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return 0xc000 | key >> 50;
}
