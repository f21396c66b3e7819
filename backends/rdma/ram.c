/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest RAM at host addresses that are kept until the memory map changes.
 *
 * Readers, such as the iothread, take only RCU's lock. A table does not change
 * after it is published. It holds references to its memory regions. It is freed
 * under the BQL, because that may free RAM that was unplugged.
 */
#include "qemu/osdep.h"
#include "qemu/rcu.h"
#include "system/memory_cached.h"
#include "system/rdma-ram.h"
#include "system/xen.h"

/* RAM in one piece, on both sides */
typedef struct RamRange {
    uint64_t addr;
    MemoryRegionCache cache;
} RamRange;

struct RdmaRamTable {
    struct rcu_head rcu;
    uint32_t n;
    RamRange *ranges;               /* the largest first */
};

static const RdmaRamTable no_table;

static const RdmaRamTable *get_table(const RdmaRam *ram)
{
    return qatomic_rcu_read(&ram->table) ?: &no_table;
}

typedef struct Scan {
    AddressSpace *as;
    GArray *ranges;
} Scan;

static bool add_range(Int128 start, Int128 len, const MemoryRegion *mr,
                      hwaddr offset, void *opaque)
{
    Scan *scan = opaque;
    RamRange range = { .addr = int128_get64(start) };

    /* Xen maps RAM in small pieces, so that all of it cannot stay mapped. */
    if (!mr->ram || xen_enabled()) {
        return false;
    }
    address_space_cache_init(&range.cache, scan->as, range.addr,
                             int128_get64(len), true);
    if (range.cache.ptr) {
        g_array_append_val(scan->ranges, range);
    } else {
        /* ROM, or memory of a device of the host */
        address_space_cache_destroy(&range.cache);
    }
    return false;
}

static int compare_sizes(gconstpointer a, gconstpointer b)
{
    const RamRange *x = a;
    const RamRange *y = b;

    return (x->cache.len < y->cache.len) - (x->cache.len > y->cache.len);
}

static void table_free(RdmaRamTable *table)
{
    for (uint32_t i = 0; i < table->n; i++) {
        address_space_cache_destroy(&table->ranges[i].cache);
    }
    g_free(table->ranges);
    g_free(table);
}

static void set_table(RdmaRam *ram, RdmaRamTable *table)
{
    RdmaRamTable *old = ram->table;

    qatomic_rcu_set(&ram->table, table);
    if (old) {
        call_rcu(old, table_free, rcu);
    }
}

/*
 * The memory map may have changed. The BQL has been held since then, so the
 * memory in the old table still exists.
 */
static void on_commit(MemoryListener *listener)
{
    RdmaRam *ram = container_of(listener, RdmaRam, listener);
    RdmaRamTable *table = g_new0(RdmaRamTable, 1);
    Scan scan = { ram->as, g_array_new(false, false, sizeof(RamRange)) };

    flatview_for_each_range(address_space_to_flatview(ram->as), add_range,
                            &scan);
    g_array_sort(scan.ranges, compare_sizes);
    table->n = scan.ranges->len;
    table->ranges = (RamRange *)g_array_free(scan.ranges, false);
    set_table(ram, table);
}

void rdma_ram_init(RdmaRam *ram, AddressSpace *as)
{
    ram->as = as;
    ram->listener = (MemoryListener) {
        .name = "rdma-ram",
        .commit = on_commit,
    };
    memory_listener_register(&ram->listener, as);
}

void rdma_ram_cleanup(RdmaRam *ram)
{
    memory_listener_unregister(&ram->listener);
    set_table(ram, NULL);
}

/* Find memory that is not in the table, such as memory behind an IOMMU. */
static G_GNUC_NO_INLINE
void *translate(AddressSpace *as, uint64_t addr, uint64_t *len, bool is_write)
{
    hwaddr part = *len;
    hwaddr offset;
    MemoryRegion *mr;

    /*
     * Do not use dma_memory_map(): outside of RAM it reads or writes a bounce
     * buffer. A register may act when it is read, and may belong to this
     * device, which is in the middle of its work.
     */
    mr = address_space_translate(as, addr, &offset, &part, is_write,
                                 MEMTXATTRS_UNSPECIFIED);
    if (!part || !memory_access_is_direct(mr, is_write,
                                          MEMTXATTRS_UNSPECIFIED)) {
        return NULL;
    }
    *len = part;
    return (uint8_t *)memory_region_get_ram_ptr(mr) + offset;
}

void *rdma_ram_at(const RdmaRam *ram, uint64_t addr, uint64_t *len,
                  bool is_write)
{
    const RdmaRamTable *table = get_table(ram);

    for (uint32_t i = 0; i < table->n; i++) {
        const RamRange *range = &table->ranges[i];
        uint64_t offset = addr - range->addr;

        if (offset < range->cache.len) {
            *len = MIN(*len, range->cache.len - offset);
            return (uint8_t *)range->cache.ptr + offset;
        }
    }
    return translate(ram->as, addr, len, is_write);
}

void rdma_ram_written(const RdmaRam *ram, void *host, uint64_t len)
{
    const RdmaRamTable *table = get_table(ram);
    MemoryRegion *mr;
    ram_addr_t offset;

    for (uint32_t i = 0; i < table->n; i++) {
        RamRange *range = &table->ranges[i];
        uintptr_t at = (uintptr_t)host - (uintptr_t)range->cache.ptr;

        if (at < range->cache.len) {
            address_space_cache_invalidate(&range->cache, at, len);
            return;
        }
    }
    mr = memory_region_from_host(host, &offset);
    if (mr) {
        /* Have QEMU mark the memory as written, as it does for mappings. */
        memory_region_ref(mr);
        address_space_unmap(ram->as, host, len, true, len);
    }
}
