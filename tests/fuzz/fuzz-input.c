/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fuzz-input.h"

const uint8_t *fuzz_bytes(FuzzInput *in, size_t len, size_t *got)
{
    const uint8_t *p = in->p;

    *got = MIN(len, in->left);
    in->p += *got;
    in->left -= *got;
    return p;
}

static uint64_t take(FuzzInput *in, size_t len)
{
    size_t got, i;
    const uint8_t *p = fuzz_bytes(in, len, &got);
    uint64_t v = 0;

    for (i = 0; i < got; i++) {
        v |= (uint64_t)p[i] << 8 * i;
    }
    return v;
}

uint8_t fuzz_u8(FuzzInput *in)
{
    return take(in, 1);
}

uint16_t fuzz_u16(FuzzInput *in)
{
    return take(in, 2);
}

uint32_t fuzz_u32(FuzzInput *in)
{
    return take(in, 4);
}

uint64_t fuzz_u64(FuzzInput *in)
{
    return take(in, 8);
}

void fuzz_fix_frame(uint8_t *frame, size_t len)
{
    RocePacket pkt;
    uint32_t crc;
    uint8_t *ip;
    size_t hdr;

    if (len < ROCE_ETH_LEN + ROCE_VLAN_LEN + ROCE_IPV4_LEN) {
        return;
    }
    ip = frame + roce_l2_len(frame);
    if (ip[-2] == 0x08) {
        uint32_t sum = 0;
        unsigned i;

        ip[10] = ip[11] = 0;
        for (i = 0; i < ROCE_IPV4_LEN; i += 2) {
            sum += ip[i] << 8 | ip[i + 1];
        }
        sum = (sum & 0xffff) + (sum >> 16);
        sum += sum >> 16;
        ip[10] = ~sum >> 8;
        ip[11] = ~sum;
    }
    if (roce_parse(frame, len, &pkt) != ROCE_PARSE_OK) {
        return;
    }
    hdr = pkt.payload - frame;
    crc = roce_icrc_start(frame, hdr, pkt.path.is_ipv4);
    crc = roce_icrc_add(crc, pkt.payload, pkt.payload_len + pkt.bth.pad);
    roce_icrc_store(frame + hdr + pkt.payload_len + pkt.bth.pad, crc);
}
