/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BTH opcodes: what a packet with a given opcode is, and which headers
 * it carries. Everything that depends on an opcode is looked up here.
 *
 * Sources: IBTA Vol 1 Release 1.4, 9.2.1 (opcodes) and 9.3 (extended
 * transport headers); Annex A19 (FLUSH, ATOMIC WRITE).
 */
#ifndef ROCE_OPCODE_H
#define ROCE_OPCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The upper three bits of an opcode select the transport. */
typedef enum RoceTransport {
    ROCE_RC = 0x00,
    ROCE_UC = 0x20,
    ROCE_UD = 0x60,
} RoceTransport;

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

#endif /* ROCE_OPCODE_H */
