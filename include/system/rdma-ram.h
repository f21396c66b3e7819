/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest RAM as the DMA of a device reaches it.
 *
 * A translation of an address takes QEMU more instructions than most accesses.
 * Without an IOMMU in between it changes only with the memory map. So RdmaRam
 * keeps the host addresses of all RAM, and replaces them when the map changes.
 */
#ifndef SYSTEM_RDMA_RAM_H
#define SYSTEM_RDMA_RAM_H

#include "system/memory.h"

typedef struct RdmaRamTable RdmaRamTable;

typedef struct RdmaRam {
    AddressSpace *as;
    RdmaRamTable *table;            /* RCU; NULL: none is kept */
    MemoryListener listener;
} RdmaRam;

/* Under the BQL */
void rdma_ram_init(RdmaRam *ram, AddressSpace *as);
/*
 * Call before the address space is destroyed; a second call does nothing.
 * Accesses remain possible until then, but slow. Under the BQL.
 */
void rdma_ram_cleanup(RdmaRam *ram);
/*
 * Return the host's address of the RAM at DMA address @addr, and lower *@len to
 * its contiguous part. NULL if the address is not RAM, because access to a
 * register may have effects. In any thread; the result is valid while RCU is
 * locked.
 */
void *rdma_ram_at(const RdmaRam *ram, uint64_t addr, uint64_t *len,
                  bool is_write);
/* Mark @len bytes at such an address as written, for migration and TCG. */
void rdma_ram_written(const RdmaRam *ram, void *host, uint64_t len);

#endif /* SYSTEM_RDMA_RAM_H */
