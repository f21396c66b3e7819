/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues of a virtio-rdma device: the objects and their commands.
 * What becomes of a completion is in virtio-rdma-complete.c.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "trace.h"
#include "virtio-rdma-object.h"

uint32_t virtio_rdma_cq_max_cqe(VirtIORdma *s)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_DEEP) ? s->limits.max_cqe_deep
                                                     : s->limits.max_cqe;
}

VirtIORdmaCq *virtio_rdma_cq_add(VirtIORdma *s, uint32_t cqn, uint32_t cqe)
{
    VirtIORdmaCq *cq = g_new0(VirtIORdmaCq, 1);

    cq->cqn = cqn;
    cq->cqe = cqe;
    cq->vq = virtio_get_queue(VIRTIO_DEVICE(s), VIRTIO_RDMA_CQ_VQ(cqn));
    cq->seen = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s),
                                               VIRTIO_RDMA_CQ_VQ(cqn));
    virtio_rdma_table_set(&s->cqs, cqn, cq);
    return cq;
}

void virtio_rdma_cq_remove(VirtIORdma *s, VirtIORdmaCq *cq)
{
    virtio_rdma_table_clear(&s->cqs, cq->cqn);
    virtio_rdma_events_forget(s, VIRTIO_RDMA_EVENT_OF_CQ, cq->cqn);
    g_free(cq->backlog);
    g_free(cq);
}

static int check_cqn(VirtIORdma *s, uint32_t cqn, const VirtIORdmaReq *req)
{
    uint32_t size = virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_DEEP)
                    ? 0 : req->create_cq.cqe;

    return virtio_rdma_vq_check(s, VIRTIO_RDMA_CQ_VQ(cqn), size);
}

int virtio_rdma_cq_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    uint32_t cqe = req->create_cq.cqe;
    VirtIORdmaCq *cq;
    uint32_t cqn;
    int ret;

    if (!virtio_rdma_check_range("cqe", cqe, 1, virtio_rdma_cq_max_cqe(s))) {
        return -EINVAL;
    }
    ret = virtio_rdma_vq_find_id(s, &s->cqs, s->cqs.first, s->cqs.end,
                                 check_cqn, req, &cqn);
    if (ret) {
        return ret;
    }
    clear_bit(VIRTIO_RDMA_CQ_VQ(cqn), s->stale_vqs);
    cq = virtio_rdma_cq_add(s, cqn, cqe);
    ret = s->bc->create_cq ? s->bc->create_cq(s->backend, cqn, cqe) : 0;
    if (ret) {
        virtio_rdma_cq_remove(s, cq);
        if (ret == -EINPROGRESS) {
            virtio_rdma_table_again(&s->cqs, cqn);
        }
        return ret;
    }
    if (virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_RING_ARM)) {
        cq->arm = VIRTIO_RDMA_ARM_NEXT;
    }
    trace_virtio_rdma_cq_create(s, cqn, cqe);
    /* Buffers are popped when there is a completion, not when they come. */
    virtio_queue_set_notification(cq->vq, 0);
    rsp->create.id = cqn;
    return 0;
}

int virtio_rdma_cq_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, req->destroy.id);
    int ret;

    if (!cq) {
        return -ENOENT;
    }
    if (cq->users) {
        return -EBUSY;
    }
    ret = s->bc->destroy_cq ? s->bc->destroy_cq(s->backend, cq->cqn) : 0;
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_cq_destroy(s, cq->cqn);
    virtio_rdma_vq_abandon(s, VIRTIO_RDMA_CQ_VQ(cq->cqn));
    virtio_rdma_cq_remove(s, cq);
    return 0;
}

int virtio_rdma_cq_resize(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, req->resize_cq.cqn);
    uint32_t cqe = req->resize_cq.cqe;
    uint32_t used = req->resize_cq.used;
    int ret;

    if (!cq) {
        return -ENOENT;
    }
    if (!virtio_rdma_check_range("cqe", cqe, 1, virtio_rdma_cq_max_cqe(s)) ||
        !virtio_rdma_check_range("used", used, 0, cqe)) {
        return -EINVAL;
    }
    /* What has come since it was begun is too late to be an obstacle */
    if (!s->ctrl_pending &&
        !virtio_rdma_check_range("backlog", cq->n_backlog, 0, cqe - used)) {
        return -EINVAL;
    }
    ret = s->bc->resize_cq ? s->bc->resize_cq(s->backend, cq->cqn, cqe) : 0;
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_cq_resize(s, cq->cqn, cq->cqe, cqe);
    cq->cqe = cqe;
    return 0;
}

int virtio_rdma_cq_req_notify(VirtIORdma *s, const VirtIORdmaReq *req,
                              VirtIORdmaRsp *rsp)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, req->notify.cqn);
    uint32_t flags = req->notify.flags;
    VirtIORdmaArm arm;

    if (!cq) {
        return -ENOENT;
    }
    if (!flags ||
        !virtio_rdma_check_flags("flags", flags,
                                 VIRTIO_RDMA_NOTIFY_SOLICITED |
                                 VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION)) {
        return -EINVAL;
    }
    arm = flags & VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
          ? VIRTIO_RDMA_ARM_NEXT : VIRTIO_RDMA_ARM_SOLICITED;
    if (virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_RING_ARM)) {
        cq->arm = arm;
    } else {
        cq->arm = MAX(cq->arm, arm);
    }
    trace_virtio_rdma_cq_arm(s, cq->cqn, cq->arm);
    return 0;
}
