/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invariant CRC (IBTA Vol 1 Release 1.4, Annex A17.3.3).
 *
 * The CRC32 of libdeflate is several times as fast as that of zlib, which is
 * the fallback without libdeflate.
 */
#include "wire/wire.h"

#ifdef ROCE_HAVE_LIBDEFLATE
#include <libdeflate.h>
#else
#include <zlib.h>
#endif

#define LRH_LEN 8
/*
 * The headers are copied to mask fields in the copy. If the payload fits into
 * this length as well, it is copied, too: that takes less time than another
 * call of the CRC function.
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

/* Set the fields that routers may change, in the IP and UDP headers at @ip. */
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

/*
 * The ICRC of @hdr_len bytes of headers at @l3, and of @len bytes of payload
 * and pad at @data
 */
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

/* Write pad and ICRC. @crc is the ICRC of the headers, @iov the payload. */
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

/* Compute the ICRC of the headers before the BTH. */
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

/* The ICRC of headers that begin with those of @t */
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
 * For a frame of a known flow, one CRC over the frame begins this many bytes
 * before the BTH. With them a BTH has 16 bytes, a length at which CRC functions
 * are fast.
 */
#define BTH_PREFIX_LEN 4
/* Frames of a flow before that pays: computing icrc_diff takes two CRCs. */
#define FLOW_MIN_FRAMES 8

/*
 * RoceFlow.icrc_diff of the flow of @pkt, which has @len bytes of payload and
 * pad. It does not depend on these bytes; here they are zeroes.
 */
static uint32_t icrc_diff(const RocePacket *pkt, size_t hdr_len, size_t len)
{
    static const uint8_t zeroes[ROCE_MAX_PAYLOAD + ROCE_MAX_TRAILER];
    uint32_t crc = roce_icrc_add(0, pkt->bth_start - BTH_PREFIX_LEN,
                                 BTH_PREFIX_LEN + pkt->info->hdr_len);

    return roce_icrc_add(crc, zeroes, len) ^
           icrc_from_l3(pkt->l3, hdr_len, zeroes, len, pkt->path.is_ipv4);
}

/*
 * For frames of a known flow, this computes one CRC from BTH_PREFIX_LEN bytes
 * before the BTH on, without a copy and without masking. A CRC is linear: all
 * frames that have the same headers before the BTH and the same length have the
 * same difference between this CRC and the ICRC. The byte of the BTH that is
 * masked must be 0 in all of them, as it is without congestion.
 *
 * This reads headers from the frame instead of the copy that was parsed.
 * Someone who can change the frame in between could also write a right ICRC.
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
