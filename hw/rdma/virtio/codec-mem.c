/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write completions to guest memory. With F_VERSION_1 the status, or the number
 * of a slot, is written last, so that a driver that polls it never reads half a
 * completion.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/iov.h"
#include "qemu/rcu.h"
#include "codec.h"

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

bool virtio_rdma_codec_write_slot(const RdmaRam *ram, uint64_t addr,
                                  const uint8_t *cqe, uint32_t number)
{
    size_t size = sizeof(struct virtio_rdma_direct_cqe);
    size_t at = offsetof(struct virtio_rdma_direct_cqe, number);
    uint8_t *slot;

    RCU_READ_LOCK_GUARD();
    slot = rdma_hca_words_at(ram, addr, size, true);
    if (!slot) {
        return false;
    }
    memcpy(slot, cqe, VIRTIO_RDMA_CQE_ROOM);
    /* Pairs with the driver's acquire of the number. */
    qatomic_store_release((uint32_t *)(slot + at), cpu_to_le32(number));
    rdma_ram_written(ram, slot, size);
    return true;
}
