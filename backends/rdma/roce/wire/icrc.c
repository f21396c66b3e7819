/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invariant CRC (IBTA Vol 1 Release 1.4, Annex A17.3.3).
 *
 * libdeflate's CRC32 is several times as fast as zlib's, which has to do where
 * libdeflate is missing.
 */
#include "wire/wire.h"

#ifdef ROCE_HAVE_LIBDEFLATE
#include <libdeflate.h>
#else
#include <zlib.h>
#endif

#define LRH_LEN 8
/*
 * A copy is made of what has fields to mask. It takes in what follows up to
 * this length, since a call of the CRC function costs more than the copy.
 */
#define COPY_MAX 192

uint32_t roce_icrc_add(uint32_t crc, const void *buf, size_t len)
{
#ifdef ROCE_HAVE_LIBDEFLATE
    return len ? libdeflate_crc32(crc, buf, len) : crc;
#else
    return len ? crc32(crc, buf, len) : crc;
#endif
}

/* Set what routers may change in the headers from the IP header on. */
static void mask_l3(uint8_t *ip, bool is_ipv4)
{
    uint8_t *udp = ip + (is_ipv4 ? ROCE_IPV4_LEN : ROCE_IPV6_LEN);

    if (is_ipv4) {
        ip[1] = 0xff;                   /* TOS */
        ip[8] = 0xff;                   /* TTL */
        memset(ip + 10, 0xff, 2);       /* header checksum */
    } else {
        ip[0] |= 0x0f;                  /* traffic class, flow label */
        memset(ip + 1, 0xff, 3);
        ip[7] = 0xff;                   /* hop limit */
    }
    memset(udp + 6, 0xff, 2);           /* checksum */
}

/* The CRC of headers from the IP header on, and of what follows them. */
static uint32_t icrc_from_l3(const uint8_t *l3, size_t hdr_len,
                             const uint8_t *data, size_t len, bool is_ipv4)
{
    uint8_t buf[LRH_LEN + COPY_MAX];
    uint8_t *ip = buf + LRH_LEN;
    uint8_t *udp = ip + (is_ipv4 ? ROCE_IPV4_LEN : ROCE_IPV6_LEN);
    size_t copied = hdr_len;
    uint32_t crc;

    memset(buf, 0xff, LRH_LEN);
    memcpy(ip, l3, hdr_len);
    if (len <= COPY_MAX - hdr_len) {
        memcpy(ip + hdr_len, data, len);
        copied += len;
        len = 0;
    }
    mask_l3(ip, is_ipv4);
    udp[ROCE_UDP_LEN + 4] = 0xff;       /* FECN, BECN, reserved */
    crc = roce_icrc_add(0, buf, LRH_LEN + copied);
    return roce_icrc_add(crc, data, len);
}

uint32_t roce_icrc_start(const uint8_t *hdr, size_t hdr_len, bool is_ipv4)
{
    size_t l2_len = roce_l2_len(hdr);

    return icrc_from_l3(hdr + l2_len, hdr_len - l2_len, hdr, 0, is_ipv4);
}

void roce_icrc_store(uint8_t dest[ROCE_ICRC_LEN], uint32_t crc)
{
    dest[0] = crc;
    dest[1] = crc >> 8;
    dest[2] = crc >> 16;
    dest[3] = crc >> 24;
}

/* Go on from @crc, which the headers have, to the end of the frame. */
static size_t make_trailer(uint32_t crc, const struct iovec *iov,
                           unsigned iovcnt, uint8_t trailer[ROCE_MAX_TRAILER])
{
    size_t payload_len = 0;
    unsigned i, pad;

    for (i = 0; i < iovcnt; i++) {
        crc = roce_icrc_add(crc, iov[i].iov_base, iov[i].iov_len);
        payload_len += iov[i].iov_len;
    }
    pad = roce_pad(payload_len);
    memset(trailer, 0, pad);
    crc = roce_icrc_add(crc, trailer, pad);
    roce_icrc_store(trailer + pad, crc);
    return pad + ROCE_ICRC_LEN;
}

size_t roce_icrc_trailer(const uint8_t *hdr, size_t hdr_len, bool is_ipv4,
                         const struct iovec *iov, unsigned iovcnt,
                         uint8_t trailer[ROCE_MAX_TRAILER])
{
    return make_trailer(roce_icrc_start(hdr, hdr_len, is_ipv4), iov, iovcnt,
                        trailer);
}

/* What comes before the BTH has not been in an ICRC yet. */
static void template_icrc(RoceTemplate *t)
{
    uint8_t buf[LRH_LEN + ROCE_L4_MAX];
    size_t l2_len = roce_l2_len(t->hdr);

    memset(buf, 0xff, LRH_LEN);
    memcpy(buf + LRH_LEN, t->hdr + l2_len, t->len - l2_len);
    mask_l3(buf + LRH_LEN, buf[LRH_LEN] >> 4 == 4);
    t->icrc = roce_icrc_add(0, buf, LRH_LEN + t->len - l2_len);
    t->icrc_known = true;
}

/* The ICRC of headers that begin like @t. */
static uint32_t icrc_of_headers(const uint8_t *hdr, size_t hdr_len,
                                RoceTemplate *t)
{
    const uint8_t *p = hdr + t->len;
    bool known = t->icrc_known;
    uint64_t bth;

    memcpy(&bth, p, sizeof(bth));
    if (!known) {
        template_icrc(t);
    }
    if (!known || t->bth != bth) {
        t->bth = bth;
        t->icrc_bth = roce_icrc_bth(t->icrc, p);
    }
    return roce_icrc_words(t->icrc_bth, p + sizeof(bth),
                           hdr_len - t->len - sizeof(bth));
}

size_t roce_icrc_trailer_next(const uint8_t *hdr, size_t hdr_len,
                              RoceTemplate *t, const struct iovec *iov,
                              unsigned iovcnt,
                              uint8_t trailer[ROCE_MAX_TRAILER])
{
    return make_trailer(icrc_of_headers(hdr, hdr_len, t), iov, iovcnt,
                        trailer);
}

/*
 * What is in front of the BTH stays out of the one pass over a frame of a
 * known flow but for this, with which a BTH has the length that CRC functions
 * like best.
 */
#define BTH_PREFIX_LEN 4
/* Frames of a flow before that is worth while: it costs two passes to begin. */
#define FLOW_MIN_FRAMES 8

/* Of a frame whose payload and pad are zeroes: see roce_icrc_ok(). */
static uint32_t icrc_diff(const RocePacket *pkt, size_t hdr_len, size_t len)
{
    static const uint8_t zeroes[ROCE_MAX_PAYLOAD + ROCE_MAX_TRAILER];
    uint32_t crc = roce_icrc_add(0, pkt->bth_start - BTH_PREFIX_LEN,
                                 BTH_PREFIX_LEN + pkt->info->hdr_len);

    return roce_icrc_add(crc, zeroes, len) ^
           icrc_from_l3(pkt->l3, hdr_len, zeroes, len, pkt->path.is_ipv4);
}

/*
 * A CRC is linear: if it is made of a frame as it is, without what is in front
 * of the BTH, it differs from the ICRC by the same in all frames that have the
 * same there, and the same length, whatever follows. The reserved byte of the
 * BTH has to be 0 in all of them, as it is in those that met no congestion.
 *
 * This pass reads the frame again, not the copy of its headers. Whoever can
 * change a frame meanwhile can make an ICRC, too.
 */
bool roce_icrc_ok(const RocePacket *pkt)
{
    size_t hdr_len = pkt->bth_start - pkt->l3 + pkt->info->hdr_len;
    size_t len = pkt->payload_len + pkt->bth.pad;
    size_t pass = BTH_PREFIX_LEN + pkt->info->hdr_len;
    RoceFlow *flow = pkt->bth_start[4] == 0 ? pkt->flow : NULL;
    uint8_t want[ROCE_ICRC_LEN];
    uint32_t crc;

    if (flow && flow->seen < FLOW_MIN_FRAMES &&
        ++flow->seen == FLOW_MIN_FRAMES) {
        flow->icrc_diff = icrc_diff(pkt, hdr_len, len);
    }
    if (flow && flow->seen == FLOW_MIN_FRAMES) {
        crc = roce_icrc_add(0, pkt->payload - pass, pass + len) ^
              flow->icrc_diff;
    } else {
        crc = icrc_from_l3(pkt->l3, hdr_len, pkt->payload, len,
                           pkt->path.is_ipv4);
    }
    roce_icrc_store(want, crc);
    return memcmp(want, pkt->payload + len, ROCE_ICRC_LEN) == 0;
}
