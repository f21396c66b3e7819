/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues of a virtio-rdma device, and event queues, which share
 * their numbers and commands: the objects.
 * What becomes of a completion is in virtio-rdma-complete.c.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-object.h"

VirtIORdmaCq *virtio_rdma_cq_add(VirtIORdma *s, uint32_t cqn, uint32_t cqe)
{
    VirtIORdmaCq *cq = g_new0(VirtIORdmaCq, 1);

    cq->core.cqn = cqn;
    cq->core.cqe = cqe;
    QTAILQ_INIT(&cq->events);
    rdma_hca_table_set(&s->hca.cqs, cqn, &cq->core);
    return cq;
}

void virtio_rdma_cq_remove(VirtIORdma *s, VirtIORdmaCq *cq)
{
    rdma_hca_table_clear(&s->hca.cqs, cq->core.cqn);
    rdma_hca_events_forget(&s->hca, RDMA_HCA_EVENT_OF_CQ, cq->core.cqn);
    virtio_rdma_eq_detach(s, cq);
    virtio_rdma_direct_cq_stop(s, cq);
    g_clear_pointer(&cq->backlog, g_ptr_array_unref);
    g_free(cq);
}

static uint32_t flags_of(VirtIORdma *s, const VirtIORdmaReq *req)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT_CQ) ? req->create_cq.flags
                                                       : 0;
}

static int check_cqn(VirtIORdma *s, uint32_t cqn, const VirtIORdmaReq *req)
{
    bool deep = virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_DEEP) &&
                !(flags_of(s, req) & VIRTIO_RDMA_CQ_EVENTS);

    if (flags_of(s, req) & VIRTIO_RDMA_CQ_DIRECT) {
        return 0;
    }
    return virtio_rdma_vq_check(s, VIRTIO_RDMA_CQ_VQ(cqn),
                                deep ? 0 : req->create_cq.cqe);
}

/* Without the feature these fields have no meaning. */
static int check_flags(VirtIORdma *s, const VirtIORdmaReq *req,
                       VirtIORdmaCq **eq)
{
    uint32_t flags = flags_of(s, req);
    uint32_t eqn = req->create_cq.eqn;

    if (!virtio_rdma_check_flags("flags", flags, VIRTIO_RDMA_CQ_DIRECT |
                                                 VIRTIO_RDMA_CQ_EVENTS)) {
        return -EINVAL;
    }
    if ((flags & VIRTIO_RDMA_CQ_DIRECT) && (flags & VIRTIO_RDMA_CQ_EVENTS)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: an event queue has a "
                      "virtqueue, it cannot be direct\n");
        return -EINVAL;
    }
    if ((flags & VIRTIO_RDMA_CQ_DIRECT) && eqn != VIRTIO_RDMA_EQN_NONE) {
        *eq = virtio_rdma_eq_get(s, eqn);
        if (!*eq) {
            return -ENOENT;
        }
    }
    return 0;
}

static const VirtIORdmaCqOps *ops_of(uint32_t flags)
{
    return flags & VIRTIO_RDMA_CQ_EVENTS ? &virtio_rdma_eq_ops :
           flags & VIRTIO_RDMA_CQ_DIRECT ? &virtio_rdma_cq_slots_ops
                                         : &virtio_rdma_cq_vq_ops;
}

static int add_cq(VirtIORdma *s, const VirtIORdmaReq *req, uint32_t cqn,
                  VirtIORdmaCq *eq, VirtIORdmaCq **cq)
{
    uint32_t cqe = req->create_cq.cqe;
    VirtIORdmaDirectCq direct = req->create_cq.direct;
    uint64_t *pages = NULL;
    int ret;

    if (!(flags_of(s, req) & VIRTIO_RDMA_CQ_DIRECT)) {
        if (!(flags_of(s, req) & VIRTIO_RDMA_CQ_EVENTS) &&
            !virtio_rdma_check_may_have_vq(s, "CQ")) {
            return -EINVAL;
        }
        *cq = virtio_rdma_cq_add(s, cqn, cqe);
        (*cq)->core.is_eq = flags_of(s, req) & VIRTIO_RDMA_CQ_EVENTS;
        virtio_rdma_cq_start_vq(s, *cq);
        return 0;
    }
    ret = virtio_rdma_direct_cq_check(cqe, &direct);
    if (ret) {
        return ret;
    }
    ret = virtio_rdma_pages_read_on(s, &direct.pages, &pages);
    if (ret) {
        return ret;
    }
    *cq = virtio_rdma_cq_add(s, cqn, cqe);
    virtio_rdma_direct_cq_start(s, *cq, &direct, pages);
    if (eq) {
        virtio_rdma_eq_attach(*cq, eq);
    }
    return 0;
}

int virtio_rdma_cq_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    uint32_t cqe = req->create_cq.cqe;
    uint32_t flags = flags_of(s, req);
    VirtIORdmaCq *eq = NULL;
    VirtIORdmaCq *cq;
    uint32_t cqn;
    int ret;

    ret = check_flags(s, req, &eq);
    if (ret) {
        return ret;
    }
    if (!virtio_rdma_check_range("cqe", cqe, 1, ops_of(flags)->max_cqe(s))) {
        return -EINVAL;
    }
    ret = virtio_rdma_vq_find_id(s, &s->hca.cqs, s->hca.cqs.first,
                                 flags & VIRTIO_RDMA_CQ_DIRECT ? s->hca.cqs.end
                                                               : s->max_vq_cq,
                                 check_cqn, req, &cqn);
    if (ret) {
        return ret;
    }
    ret = add_cq(s, req, cqn, eq, &cq);
    if (ret) {
        return ret;
    }
    ret = s->hca.bc->create_cq && !cq->core.is_eq
          ? s->hca.bc->create_cq(s->hca.backend, cqn, cqe) : 0;
    if (ret) {
        virtio_rdma_cq_remove(s, cq);
        if (ret == -EINPROGRESS) {
            rdma_hca_table_again(&s->hca.cqs, cqn);
        }
        return ret;
    }
    trace_virtio_rdma_cq_create(s, cqn, cqe);
    rsp->create.id = cqn;
    return 0;
}

int virtio_rdma_cq_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    RdmaHcaCq *core = rdma_hca_table_get(&s->hca.cqs, req->destroy.id);
    VirtIORdmaCq *cq = core ? virtio_rdma_cq(core) : NULL;
    int ret;

    if (!cq) {
        return -ENOENT;
    }
    if (cq->core.users) {
        return -EBUSY;
    }
    ret = cq->core.is_eq ? 0 : s->hca.bc->destroy(s->hca.backend,
                                                  RDMA_OBJECT_CQ,
                                                  cq->core.cqn);
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_cq_destroy(s, cq->core.cqn);
    if (virtio_rdma_cq_ops(cq)->destroyed) {
        virtio_rdma_cq_ops(cq)->destroyed(s, cq);
    }
    virtio_rdma_cq_remove(s, cq);
    return 0;
}

int virtio_rdma_cq_resize(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaCq *core = rdma_hca_cq_get(&s->hca, req->resize_cq.cqn);
    VirtIORdmaCq *cq = core ? virtio_rdma_cq(core) : NULL;
    uint32_t cqe = req->resize_cq.cqe;
    int ret;

    if (!cq) {
        return -ENOENT;
    }
    if (!virtio_rdma_check_range("cqe", cqe, 1,
                                 virtio_rdma_cq_ops(cq)->max_cqe(s))) {
        return -EINVAL;
    }
    ret = virtio_rdma_cq_ops(cq)->resize(s, cq, req);
    if (ret == 0) {
        trace_virtio_rdma_cq_resize(s, cq->core.cqn, cq->core.cqe, cqe);
        cq->core.cqe = cqe;
    }
    return ret;
}

int virtio_rdma_cq_req_notify(VirtIORdma *s, const VirtIORdmaReq *req,
                              VirtIORdmaRsp *rsp)
{
    RdmaHcaCq *core = rdma_hca_cq_get(&s->hca, req->notify.cqn);
    VirtIORdmaCq *cq = core ? virtio_rdma_cq(core) : NULL;
    uint32_t flags = req->notify.flags;

    if (!cq) {
        return -ENOENT;
    }
    if (!virtio_rdma_cq_ops(cq)->arm) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u is a direct one, "
                      "which is armed in memory\n", cq->core.cqn);
        return -EINVAL;
    }
    if (!flags ||
        !virtio_rdma_check_flags("flags", flags,
                                 VIRTIO_RDMA_NOTIFY_SOLICITED |
                                 VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION)) {
        return -EINVAL;
    }
    virtio_rdma_cq_ops(cq)->arm(s, cq,
                                flags & VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
                                ? VIRTIO_RDMA_ARM_NEXT
                                : VIRTIO_RDMA_ARM_SOLICITED);
    return 0;
}
