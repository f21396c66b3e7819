/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU whose system calls for datagrams are counted, and in which a test can
 * make one of them fail.
 *
 * The library is preloaded into QEMU, and shares memory with the test.
 */
#ifndef TESTS_RDMA_NET_CALLS_H
#define TESTS_RDMA_NET_CALLS_H

#define NET_CALLS_ENV "VIRTIO_RDMA_NET_CALLS"

/* One process writes while the other one waits. */
typedef struct NetCalls {
    uint32_t sends;                 /* sendmmsg() */
    uint32_t recvs;                 /* recvmmsg() calls with datagrams */
    uint32_t frames_sent;
    uint32_t frames_received;
    uint32_t fail_error;            /* an errno; 0: none fails */
    uint32_t fail_after;            /* frames that are sent before */
} NetCalls;

/* Preload the library into QEMU processes that are started from now on. */
NetCalls *net_calls_begin(void);
void net_calls_end(void);
/* Count from 0, and fail the call after @after frames with @error, once. */
void net_calls_reset(uint32_t after, uint32_t error);

#endif
