/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: copies to and from buffers of the host, and atomic access to
 * words. The device checks the copies, which the guest cannot change.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/rcu.h"
#include "int.h"

bool rdma_hca_read_ram(const RdmaRam *ram, uint64_t addr, void *buf, size_t len)
{
    RCU_READ_LOCK_GUARD();

    while (len) {
        uint64_t part = len;
        const void *mem = rdma_ram_at(ram, addr, &part, false);

        if (!mem) {
            return false;
        }
        memcpy(buf, mem, part);
        buf += part;
        addr += part;
        len -= part;
    }
    return true;
}

bool rdma_hca_write_ram(const RdmaRam *ram, uint64_t addr, const void *buf,
                        uint64_t len)
{
    uint64_t part = len;
    void *mem;

    RCU_READ_LOCK_GUARD();
    mem = rdma_ram_at(ram, addr, &part, true);
    if (!mem || part != len) {
        return false;
    }
    memcpy(mem, buf, len);
    rdma_ram_written(ram, mem, len);
    return true;
}

bool rdma_hca_read_addrs(const RdmaRam *ram, uint64_t addr, uint32_t n,
                         uint64_t *addrs)
{
    if (!rdma_hca_read_ram(ram, addr, addrs, n * sizeof(*addrs))) {
        rdma_hca_guest_error("page table at 0x%" PRIx64 " is not RAM", addr);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        addrs[i] = le64_to_cpu(addrs[i]);
    }
    return true;
}

void *rdma_hca_words_at(const RdmaRam *ram, uint64_t addr, uint64_t len,
                        bool is_write)
{
    uint64_t part = len;
    void *mem = rdma_ram_at(ram, addr, &part, is_write);

    return part == len && QEMU_PTR_IS_ALIGNED(mem, sizeof(uint32_t)) ? mem
                                                                     : NULL;
}

bool rdma_hca_load_word(const RdmaRam *ram, uint64_t addr, uint32_t *value)
{
    const uint32_t *word;

    RCU_READ_LOCK_GUARD();
    word = rdma_hca_words_at(ram, addr, sizeof(*word), false);
    if (!word) {
        return false;
    }
    *value = le32_to_cpu(qatomic_read(word));
    /* Pairs with the driver's release: its earlier writes are visible. */
    smp_rmb();
    return true;
}

bool rdma_hca_store_word(const RdmaRam *ram, uint64_t addr, uint32_t value)
{
    uint32_t *word;

    RCU_READ_LOCK_GUARD();
    word = rdma_hca_words_at(ram, addr, sizeof(*word), true);
    if (!word) {
        return false;
    }
    qatomic_set(word, cpu_to_le32(value));
    rdma_ram_written(ram, word, sizeof(*word));
    return true;
}

bool rdma_hca_take_bits(const RdmaRam *ram, uint64_t addr, uint32_t *bits)
{
    uint32_t *word;

    RCU_READ_LOCK_GUARD();
    word = rdma_hca_words_at(ram, addr, sizeof(*word), true);
    if (!word) {
        return false;
    }
    /* Pairs with the driver's release: its earlier writes are visible. */
    *bits = le32_to_cpu(qatomic_xchg(word, 0));
    rdma_ram_written(ram, word, sizeof(*word));
    return true;
}
