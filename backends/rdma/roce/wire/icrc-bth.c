/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CRC32 of the headers between UDP header and payload, by table.
 *
 * CRC libraries are fast on long buffers, which they load into vector
 * registers. A vector load from bytes that were just written by smaller stores
 * waits until all these stores have reached the cache. So this file loads 4
 * bytes at a time: no store of a header is smaller. Its table has 512 bytes.
 */
#include <glib.h>
#include "wire/wire.h"

/*
 * The changes of a CRC by the 16 values of four bits. The arguments are the
 * changes by each bit alone.
 */
#define ROW(a, b, c, d) { \
    0, (a), (b), (a) ^ (b), \
    (c), (a) ^ (c), (b) ^ (c), (a) ^ (b) ^ (c), \
    (d), (a) ^ (d), (b) ^ (d), (a) ^ (b) ^ (d), \
    (c) ^ (d), (a) ^ (c) ^ (d), (b) ^ (c) ^ (d), (a) ^ (b) ^ (c) ^ (d) }

/* By the position of the four bits in a word, lowest first */
static const uint32_t table[8][16] = {
    ROW(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef),
    ROW(0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b),
    ROW(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8),
    ROW(0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80),
    ROW(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08),
    ROW(0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b),
    ROW(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832),
    ROW(0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320),
};

static inline uint32_t get32_le(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return GUINT32_FROM_LE(v);
}

static inline uint32_t step(uint32_t state, uint32_t word)
{
    state ^= word;
    return table[0][state & 15] ^ table[1][state >> 4 & 15] ^
           table[2][state >> 8 & 15] ^ table[3][state >> 12 & 15] ^
           table[4][state >> 16 & 15] ^ table[5][state >> 20 & 15] ^
           table[6][state >> 24 & 15] ^ table[7][state >> 28];
}

uint32_t roce_icrc_bth(uint32_t crc, const uint8_t *bth)
{
    crc = step(~crc, get32_le(bth));
    /* The byte with FECN, BECN and reserved bits counts as ones. */
    return ~step(crc, get32_le(bth + 4) | 0xff);
}

uint32_t roce_icrc_words(uint32_t crc, const uint8_t *p, size_t len)
{
    size_t i;

    crc = ~crc;
    for (i = 0; i < len; i += 4) {
        crc = step(crc, get32_le(p + i));
    }
    return ~crc;
}
