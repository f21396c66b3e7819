/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command that gives a page of doorbells a shadow
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "cmd.h"

static int check(VirtIORdma *s, const VirtIORdmaReq *req)
{
    return rdma_hca_check_range("doorbell", req->set_shadow.doorbell, 0,
                                s->doorbells - 1) &&
           rdma_hca_check_flags("flags", req->set_shadow.flags,
                                VIRTIO_RDMA_SHADOW_ON) &&
           rdma_hca_check_range("offset of addr in its page",
                                req->set_shadow.addr & (RDMA_PAGE_SIZE - 1),
                                0, 0) ? 0 : -EINVAL;
}

int virtio_rdma_doorbell_set_shadow(VirtIORdma *s, const VirtIORdmaReq *req,
                                    VirtIORdmaRsp *rsp)
{
    bool on = req->set_shadow.flags & VIRTIO_RDMA_SHADOW_ON;
    int ret = check(s, req);

    if (!ret && on) {
        ret = virtio_rdma_shadow_set(s, req->set_shadow.doorbell,
                                     req->set_shadow.addr);
    } else if (!ret) {
        virtio_rdma_shadow_drop(s, req->set_shadow.doorbell);
    }
    trace_virtio_rdma_doorbell_set_shadow(s, req->set_shadow.doorbell, on,
                                          req->set_shadow.addr, ret);
    return ret;
}
