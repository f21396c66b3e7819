/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies between guest memory and buffers of the host. What is checked later is
 * the copy, which the guest cannot change.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "qemu/rcu.h"
#include "system/dma.h"
#include "codec.h"

size_t virtio_rdma_codec_read(const VirtQueueElement *elem, void *buf,
                              size_t room)
{
    return iov_to_buf(elem->out_sg, elem->out_num, 0, buf, room);
}

size_t virtio_rdma_codec_write(const VirtQueueElement *elem, const void *buf,
                               size_t len)
{
    return iov_from_buf(elem->in_sg, elem->in_num, 0, buf, len);
}

void virtio_rdma_codec_write_cqe(const VirtQueueElement *elem,
                                 const uint8_t *cqe, size_t size,
                                 bool status_last)
{
    size_t at = offsetof(struct virtio_rdma_cqe, status);

    if (!status_last) {
        iov_from_buf(elem->in_sg, elem->in_num, 0, cqe, size);
        return;
    }
    if (elem->in_sg[0].iov_len >= size) {
        uint8_t *dst = elem->in_sg[0].iov_base;

        memcpy(dst, cqe, at);
        memcpy(dst + at + 1, cqe + at + 1, size - at - 1);
        qatomic_store_release(dst + at, cqe[at]);
        return;
    }
    iov_from_buf(elem->in_sg, elem->in_num, 0, cqe, at);
    iov_from_buf(elem->in_sg, elem->in_num, at + 1, cqe + at + 1,
                 size - at - 1);
    /* Pairs with the driver's acquire of the status byte. */
    smp_wmb();
    iov_from_buf(elem->in_sg, elem->in_num, at, cqe + at, 1);
}

bool virtio_rdma_codec_read_ram(AddressSpace *as, uint64_t addr, void *buf,
                                size_t len)
{
    RCU_READ_LOCK_GUARD();

    while (len) {
        hwaddr part = len;
        hwaddr at;
        MemoryRegion *mr = address_space_translate(as, addr, &at, &part, false,
                                                   MEMTXATTRS_UNSPECIFIED);

        if (!part || !memory_access_is_direct(mr, false,
                                              MEMTXATTRS_UNSPECIFIED)) {
            return false;
        }
        memcpy(buf, (uint8_t *)memory_region_get_ram_ptr(mr) + at, part);
        buf += part;
        addr += part;
        len -= part;
    }
    return true;
}

bool virtio_rdma_codec_read_addrs(AddressSpace *as, uint64_t addr, uint32_t n,
                                  uint64_t *addrs)
{
    if (!virtio_rdma_codec_read_ram(as, addr, addrs, n * sizeof(*addrs))) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: page table at 0x%"
                      PRIx64 " is not RAM\n", addr);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        addrs[i] = le64_to_cpu(addrs[i]);
    }
    return true;
}

/*
 * The host's address of @len bytes of RAM in one piece, for as long as RCU is
 * locked. NULL if it is something else: no access may have effects.
 */
static void *ram_at(AddressSpace *as, uint64_t addr, hwaddr len, bool is_write,
                    MemoryRegion **mr)
{
    hwaddr part = len;
    hwaddr at;

    *mr = address_space_translate(as, addr, &at, &part, is_write,
                                  MEMTXATTRS_UNSPECIFIED);
    if (part != len ||
        !memory_access_is_direct(*mr, is_write, MEMTXATTRS_UNSPECIFIED)) {
        return NULL;
    }
    return (uint8_t *)memory_region_get_ram_ptr(*mr) + at;
}

static uint32_t *word_at(AddressSpace *as, uint64_t addr, bool is_write,
                         MemoryRegion **mr)
{
    uint32_t *word = ram_at(as, addr, sizeof(*word), is_write, mr);

    return QEMU_PTR_IS_ALIGNED(word, sizeof(*word)) ? word : NULL;
}

/* Migration and TCG have to know. */
static void written(AddressSpace *as, MemoryRegion *mr, void *mem, hwaddr len)
{
    /* Which is what this has been mapped by, if it had been */
    memory_region_ref(mr);
    address_space_unmap(as, mem, len, true, len);
}

bool virtio_rdma_codec_load_word(AddressSpace *as, uint64_t addr,
                                 uint32_t *value)
{
    MemoryRegion *mr;
    uint32_t *word;

    RCU_READ_LOCK_GUARD();
    word = word_at(as, addr, false, &mr);
    if (!word) {
        return false;
    }
    *value = le32_to_cpu(qatomic_read(word));
    /* Pairs with the driver's release: what it wrote before is there. */
    smp_rmb();
    return true;
}

bool virtio_rdma_codec_store_word(AddressSpace *as, uint64_t addr,
                                  uint32_t value)
{
    MemoryRegion *mr;
    uint32_t *word;

    RCU_READ_LOCK_GUARD();
    word = word_at(as, addr, true, &mr);
    if (!word) {
        return false;
    }
    qatomic_set(word, cpu_to_le32(value));
    written(as, mr, word, sizeof(*word));
    return true;
}

bool virtio_rdma_codec_take_bits(AddressSpace *as, uint64_t addr,
                                 uint32_t *bits)
{
    MemoryRegion *mr;
    uint32_t *word;

    RCU_READ_LOCK_GUARD();
    word = word_at(as, addr, true, &mr);
    if (!word) {
        return false;
    }
    /* Pairs with the driver's release: what it wrote before is there. */
    *bits = le32_to_cpu(qatomic_xchg(word, 0));
    written(as, mr, word, sizeof(*word));
    return true;
}

bool virtio_rdma_codec_write_slot(AddressSpace *as, uint64_t addr,
                                  const uint8_t *cqe, uint32_t number)
{
    size_t size = sizeof(struct virtio_rdma_direct_cqe);
    size_t at = offsetof(struct virtio_rdma_direct_cqe, number);
    MemoryRegion *mr;
    uint8_t *slot;

    RCU_READ_LOCK_GUARD();
    slot = ram_at(as, addr, size, true, &mr);
    if (!slot || !QEMU_PTR_IS_ALIGNED(slot, sizeof(number))) {
        return false;
    }
    memcpy(slot, cqe, VIRTIO_RDMA_CQE_ROOM);
    /* Pairs with the driver's acquire of the number. */
    qatomic_store_release((uint32_t *)(slot + at), cpu_to_le32(number));
    written(as, mr, slot, size);
    return true;
}
