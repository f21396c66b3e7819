/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An owner for an engine in tests: memory of its own, completions kept in
 * order, nothing done behind the test's back.
 */
#ifndef WIRE_HOST_H
#define WIRE_HOST_H

#include <glib.h>
#include "rdma/roce.h"
#include "consumer.h"

/* DMA address of the first byte of a host's memory. */
#define WIRE_HOST_BASE UINT64_C(0x40000000)

typedef struct WireWc {
    uint32_t cqn;
    bool solicited;
    RdmaWc wc;
} WireWc;

typedef struct WireHost {
    RoceEngine *engine;
    uint8_t *mem;
    uint64_t size;                  /* bytes, a multiple of pages */
    uint64_t used;
    bool scattered;                 /* no mapping crosses a page */
    uint64_t maps;                  /* not yet undone */
    bool cq_broken;                 /* complete() refuses */

    GArray *wcs;                    /* of WireWc */
    GArray *events;                 /* of RdmaEvent */
    uint64_t (*retired)[2];         /* by QPN and RdmaQueue */
    uint32_t max_qp;
    Consumer *consumer;
} WireHost;

WireHost *wire_host_new(const RoceConfig *config, uint64_t size);
void wire_host_free(WireHost *h);

/* DMA address of @npages fresh zeroed pages; ends the test if none are left. */
uint64_t wire_host_alloc(WireHost *h, uint32_t npages);
/* The memory at DMA address @addr. */
void *wire_host_ptr(WireHost *h, uint64_t addr);

/*
 * A region that covers @length bytes at @iova, on fresh pages which lie
 * backwards in memory. @key is used as lkey and rkey. Returns the DMA address
 * of the first page; wire_host_region_copy() finds its way from there.
 */
uint64_t wire_host_add_region(WireHost *h, uint32_t key, uint32_t pdn,
                              uint32_t access, uint64_t iova,
                              uint64_t length);
/* Copy @len bytes at @offset behind iova out of a region, or into it. */
void wire_host_region_copy(WireHost *h, uint64_t first_page, uint64_t iova,
                           uint64_t offset, void *buf, uint64_t len,
                           bool to_region);

#endif /* WIRE_HOST_H */
