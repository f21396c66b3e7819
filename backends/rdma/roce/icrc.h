/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invariant CRC of RoCEv2 frames: CRC32 of eight bytes of ones in place
 * of an LRH, and of the packet from the IP header to the pad, with the
 * fields that routers may change taken as ones.
 *
 * Sources: IBTA Vol 1 Release 1.4, 7.8.1; Annex A17.3.3.
 */
#ifndef ROCE_ICRC_H
#define ROCE_ICRC_H

#include "wire.h"

/*
 * Start an ICRC over the headers of a frame; @hdr and @hdr_len are what
 * roce_build() wrote and returned. Go on with roce_icrc_add() for payload
 * and pad; the CRC is final after each step.
 */
uint32_t roce_icrc_start(const uint8_t *hdr, size_t hdr_len, bool is_ipv4);
uint32_t roce_icrc_add(uint32_t crc, const void *buf, size_t len);

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

/* Is the ICRC of a parsed frame right? */
bool roce_icrc_ok(const RocePacket *pkt);

#endif /* ROCE_ICRC_H */
