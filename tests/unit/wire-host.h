/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An owner of an engine for tests. It has its own memory, records completions
 * in order, and does nothing without a call of the test.
 */
#ifndef WIRE_HOST_H
#define WIRE_HOST_H

#include <glib.h>
#include "rdma/roce.h"
#include "consumer.h"

/* The DMA address of the first byte of a host's memory */
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
    uint64_t maps;                  /* mappings in use */
    bool cq_broken;                 /* complete() returns false */

    GArray *wcs;                    /* of WireWc */
    GArray *events;                 /* of RdmaEvent */
    uint64_t (*retired)[2];         /* by QPN and RdmaQueue */
    uint32_t max_qp;
    Consumer *consumer;
} WireHost;

WireHost *wire_host_new(const RoceConfig *config, uint64_t size);
void wire_host_free(WireHost *h);

/*
 * Allocate @npages zeroed pages; returns their DMA address. Fails the test if
 * there are too few.
 */
uint64_t wire_host_alloc(WireHost *h, uint32_t npages);
/* The memory at DMA address @addr */
void *wire_host_ptr(WireHost *h, uint64_t addr);

/*
 * Add a region that covers @length bytes at @iova, on new pages in reverse
 * order. @key is its lkey and rkey. Returns the DMA address of the first page,
 * which wire_host_region_copy() needs.
 */
uint64_t wire_host_add_region(WireHost *h, uint32_t key, uint32_t pdn,
                              uint32_t access, uint64_t iova,
                              uint64_t length);
/* Copy @len bytes from or to a region, @offset bytes after @iova. */
void wire_host_region_copy(WireHost *h, uint64_t first_page, uint64_t iova,
                           uint64_t offset, void *buf, uint64_t len,
                           bool to_region);

#endif /* WIRE_HOST_H */
