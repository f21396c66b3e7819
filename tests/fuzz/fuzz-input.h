/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common parts of all fuzzers: the entry, and a reader for the input. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <glib.h>
#include "../../backends/rdma/roce/wire/wire.h"

/* The entry of a fuzzer; libFuzzer has no header for it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Input, taken from the front; zeroes when it is used up. */
typedef struct FuzzInput {
    const uint8_t *p;
    size_t left;
} FuzzInput;

uint8_t fuzz_u8(FuzzInput *in);
uint16_t fuzz_u16(FuzzInput *in);
uint32_t fuzz_u32(FuzzInput *in);
uint64_t fuzz_u64(FuzzInput *in);
/* @len bytes or what is left of them; sets *@got. */
const uint8_t *fuzz_bytes(FuzzInput *in, size_t len, size_t *got);

/* Make a frame pass the parser's checksum and the ICRC, if it can. */
void fuzz_fix_frame(uint8_t *frame, size_t len);

#endif /* FUZZ_INPUT_H */
