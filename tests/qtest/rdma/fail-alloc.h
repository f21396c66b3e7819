/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU in which a test decides which allocation fails, of those that may
 * (g_try_malloc() and its kin): where a guest or a stream says how much memory
 * is wanted.
 *
 * The library is preloaded into QEMU, which finds the test's wish in memory
 * that both share.
 */
#ifndef TESTS_RDMA_FAIL_ALLOC_H
#define TESTS_RDMA_FAIL_ALLOC_H

#define FAIL_ALLOC_ENV "VIRTIO_RDMA_FAIL_ALLOC"

/* One process writes while the other one waits. */
typedef struct FailAlloc {
    uint32_t nth;                   /* of the following; 0: none fails */
    uint32_t seen;
    uint32_t failed;
} FailAlloc;

/* From here on QEMU processes that are started have the library. */
void fail_alloc_begin(void);
void fail_alloc_end(void);
/* The @nth allocation that the device tries from now on fails, once. */
void fail_alloc_arm(uint32_t nth);
/* None fails any more; was there one that did? */
bool fail_alloc_disarm(void);

#endif
