/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU in which a test decides which allocation fails, of those that may fail
 * (g_try_malloc() and similar calls): a guest or a stream chooses their size.
 *
 * The library is preloaded into QEMU, and reads the test's request in memory
 * that both share.
 */
#ifndef TESTS_RDMA_FAIL_ALLOC_H
#define TESTS_RDMA_FAIL_ALLOC_H

#define FAIL_ALLOC_ENV "VIRTIO_RDMA_FAIL_ALLOC"

/* One process writes while the other one waits. */
typedef struct FailAlloc {
    uint32_t nth;                   /* allocation from now on; 0: none fails */
    uint32_t seen;
    uint32_t failed;
} FailAlloc;

/* Preload the library into QEMU processes that are started from now on. */
void fail_alloc_begin(void);
void fail_alloc_end(void);
/* Let the @nth allocation of the device from now on fail, once. */
void fail_alloc_arm(uint32_t nth);
/* Let no allocation fail any more. Did one fail? */
bool fail_alloc_disarm(void);

#endif
