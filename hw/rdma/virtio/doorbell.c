/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command that gives a page of doorbells a shadow
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "trace.h"
#include "cmd.h"

int virtio_rdma_doorbell_set_shadow(VirtIORdma *s, const void *req, void *rsp)
{
    const struct virtio_rdma_set_shadow_req *cmd = req;
    uint16_t page = le16_to_cpu(cmd->doorbell);
    uint16_t flags = le16_to_cpu(cmd->flags);
    uint64_t addr = le64_to_cpu(cmd->addr);
    int ret = 0;

    if (!rdma_hca_check_range("doorbell", page, 0, s->doorbells - 1) ||
        !rdma_hca_check_flags("flags", flags, VIRTIO_RDMA_SHADOW_ON) ||
        !rdma_hca_check_range("offset of addr in its page",
                              addr & (RDMA_PAGE_SIZE - 1), 0, 0)) {
        ret = -EINVAL;
    } else if (flags & VIRTIO_RDMA_SHADOW_ON) {
        ret = virtio_rdma_shadow_set(s, page, addr);
    } else {
        virtio_rdma_shadow_drop(s, page);
    }
    trace_virtio_rdma_doorbell_set_shadow(s, page,
                                          flags & VIRTIO_RDMA_SHADOW_ON, addr,
                                          ret);
    return ret;
}
