/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: the forms of queues. The core has loaded
 * and checked its part of an object before that of this file.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "vmstate.h"

/*
 * Can the object have a virtqueue? @field: its number; @max: how many can;
 * @depth_shift: of slots, which it does not have
 */
static bool check_vq(const RdmaHcaRecord *r, const char *field, uint32_t max,
                     uint8_t depth_shift)
{
    return rdma_hca_record_max(r, "depth_shift without pages", depth_shift,
                               0) &&
           rdma_hca_record_check(r, max, field, r->id, "direct") &&
           rdma_hca_record_max(r, field, r->id, max - 1);
}

/* Can the device serve a virtqueue of an object other than an event queue? */
static bool check_served(VirtIORdma *s, const RdmaHcaRecord *r)
{
    return rdma_hca_record_check(r, !s->hca.ctx, "virtqueues", 1,
                                 "0, because an iothread does not serve them: "
                                 "leave iothread out at the destination");
}

/* Completion queues and event queues */

static int put_backlog(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field, JSONWriter *vmdesc)
{
    VirtIORdmaCq *cq = pv;

    qemu_put_be32(f, cq->n_backlog);
    for (uint32_t i = 0; i < cq->n_backlog; i++) {
        const VirtIORdmaCqe *cqe = virtio_rdma_cq_backlog_at(cq, i);

        qemu_put_be32(f, cqe->qpn);
        qemu_put_byte(f, cqe->solicited);
        qemu_put_buffer(f, cqe->bytes, sizeof(cqe->bytes));
    }
    return 0;
}

/* The backlog grows as it is read, so its size needs no check before. */
static int get_backlog(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field)
{
    VirtIORdmaCq *cq = pv;
    const RdmaHcaRecord r = { "CQ", cq->core.cqn };
    uint32_t count = qemu_get_be32(f);

    if (!rdma_hca_record_max(&r, "n_backlog", count, cq->core.cqe)) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        VirtIORdmaCqe cqe;

        cqe.qpn = qemu_get_be32(f);
        cqe.solicited = qemu_get_byte(f);
        if (qemu_get_buffer(f, cqe.bytes, sizeof(cqe.bytes)) !=
            sizeof(cqe.bytes)) {
            return -EIO;
        }
        if (!virtio_rdma_cq_backlog_add(cq, &cqe)) {
            return -ENOMEM;
        }
    }
    return 0;
}

static const VMStateInfo vmstate_info_backlog = {
    .name = "virtio-rdma backlog",
    .get = get_backlog,
    .put = put_backlog,
};

static const VMStateDescription vmstate_cq = {
    .name = "virtio-rdma/cq",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(arm, VirtIORdmaCq),
        VMSTATE_RDMA_PART("backlog", vmstate_info_backlog),
        /* Of a direct CQ */
        VMSTATE_UINT8(depth_shift, VirtIORdmaCq),
        VMSTATE_RDMA_HCA_PAGES(pages, VirtIORdmaCq),
        VMSTATE_UINT32(produced, VirtIORdmaCq),
        VMSTATE_UINT32(consumed, VirtIORdmaCq),
        VMSTATE_UINT32(fired, VirtIORdmaCq),
        VMSTATE_UINT32(eqn, VirtIORdmaCq),
        VMSTATE_BOOL(event_waits, VirtIORdmaCq),
        VMSTATE_END_OF_LIST()
    },
};

static bool load_direct_cq(VirtIORdma *s, VirtIORdmaCq *cq,
                           const RdmaHcaRecord *r)
{
    RdmaHcaPages list = { .npages = cq->pages.npages };

    if (!rdma_hca_record_check(r, !cq->core.is_eq, "events", 1,
                               "0 if direct") ||
        !rdma_hca_record_check(r, virtio_rdma_direct_cq_check(
                                   cq->core.cqe, cq->depth_shift, &list) == 0,
                               "pages", cq->pages.npages, "as many as it "
                               "has") ||
        !rdma_hca_record_max(r, "CQEs that are not consumed",
                             cq->produced - cq->consumed,
                             1u << cq->depth_shift) ||
        !rdma_hca_record_charge(&s->hca, r, &cq->pages)) {
        return false;
    }
    virtio_rdma_direct_cq_start(cq);
    return true;
}

static bool load_cq(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaCq *cq = obj;
    bool is_direct = cq->pages.npages;

    if (!rdma_hca_record_max(r, "arm", cq->arm, is_direct
                             ? VIRTIO_RDMA_ARM_NONE : VIRTIO_RDMA_ARM_NEXT) ||
        !rdma_hca_record_check(r, !cq->n_backlog ||
                               !(is_direct || cq->core.is_eq ||
                                 cq->core.error), "n_backlog", cq->n_backlog,
                               "0 in error, of a direct CQ, or of an event "
                               "queue")) {
        return false;
    }
    if (is_direct) {
        return load_direct_cq(s, cq, r);
    }
    if ((!cq->core.is_eq && !check_served(s, r)) ||
        !check_vq(r, "cqn, with a virtqueue", s->max_vq_cq,
                  cq->depth_shift)) {
        return false;
    }
    virtio_rdma_cq_use_vq(s, cq);
    return true;
}

static void inspect_cq(const void *obj, void *out)
{
    const VirtIORdmaCq *cq = obj;
    RdmaCqInfo *info = out;

    info->direct = cq->pages.npages;
    info->backlog = cq->n_backlog;
    info->has_eqn = cq->eq;
    info->eqn = cq->eq ? cq->eq->core.cqn : 0;
}

const RdmaHcaObjectOps virtio_rdma_cqs = {
    .size = sizeof(VirtIORdmaCq),
    .vmsd = &vmstate_cq,
    .load = load_cq,
    .inspect = inspect_cq,
    .free = virtio_rdma_cq_free,
};

static bool load_eq_of(VirtIORdma *s, VirtIORdmaCq *cq)
{
    const RdmaHcaRecord r = { "CQ", cq->core.cqn };
    VirtIORdmaCq *eq = virtio_rdma_eq_get(s, cq->eqn);
    bool waits = cq->event_waits;

    cq->event_waits = false;
    if (cq->eqn == VIRTIO_RDMA_EQN_NONE) {
        return rdma_hca_record_max(&r, "event_waits", waits, 0);
    }
    if (!rdma_hca_record_check(&r, eq, "eqn", cq->eqn, "an event queue") ||
        !rdma_hca_record_check(&r, !waits || !eq->core.error, "event_waits", 1,
                               "0 of an event queue in error")) {
        return false;
    }
    virtio_rdma_eq_attach(cq, eq);
    if (waits) {
        virtio_rdma_eq_queue_event(cq);
    }
    return true;
}

bool virtio_rdma_eqs_load(VirtIORdma *s)
{
    VirtIORdmaCq *cq;

    RDMA_HCA_FOREACH(&s->hca.cqs, n, cq) {
        if (cq->pages.npages && !load_eq_of(s, cq)) {
            return false;
        }
    }
    return true;
}

/* Shared receive queues */

static const VMStateDescription vmstate_srq = {
    .name = "virtio-rdma/srq",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(wq.depth_shift, VirtIORdmaSrq),
        VMSTATE_UINT8(wq.slot_shift, VirtIORdmaSrq),
        VMSTATE_UINT16(doorbell, VirtIORdmaSrq),
        VMSTATE_RDMA_HCA_PAGES(pages, VirtIORdmaSrq),
        VMSTATE_UINT32(wq.slots.taken, VirtIORdmaSrq),
        VMSTATE_END_OF_LIST()
    },
};

static bool load_srq(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaSrq *srq = obj;
    RdmaHcaPages list = { .npages = srq->pages.npages };

    if (!srq->pages.npages) {
        if (!check_served(s, r) ||
            !check_vq(r, "srqn, with a virtqueue", s->max_vq_srq,
                      srq->wq.depth_shift)) {
            return false;
        }
        virtio_rdma_srq_use_vq(s, srq);
        return true;
    }
    if (!rdma_hca_record_check(r, virtio_rdma_direct_srq_check(s, srq, &list) ==
                               0, "pages of its queue", list.npages,
                               "as many as it has") ||
        !rdma_hca_record_charge(hca, r, &srq->pages)) {
        return false;
    }
    virtio_rdma_direct_srq_start(srq);
    return true;
}

static void inspect_srq(const void *obj, void *info)
{
    const VirtIORdmaSrq *srq = obj;

    ((RdmaSrqInfo *)info)->direct = srq->pages.npages;
}

const RdmaHcaObjectOps virtio_rdma_srqs = {
    .size = sizeof(VirtIORdmaSrq),
    .vmsd = &vmstate_srq,
    .load = load_srq,
    .inspect = inspect_srq,
    .free = virtio_rdma_srq_free,
};

/* Queue pairs */

static const VMStateDescription vmstate_qp = {
    .name = "virtio-rdma/qp",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(sq.depth_shift, VirtIORdmaQp),
        VMSTATE_UINT8(sq.slot_shift, VirtIORdmaQp),
        VMSTATE_UINT8(rq.depth_shift, VirtIORdmaQp),
        VMSTATE_UINT8(rq.slot_shift, VirtIORdmaQp),
        VMSTATE_UINT16(doorbell, VirtIORdmaQp),
        VMSTATE_RDMA_HCA_PAGES(pages, VirtIORdmaQp),
        VMSTATE_UINT32(sq.slots.taken, VirtIORdmaQp),
        VMSTATE_UINT32(rq.slots.taken, VirtIORdmaQp),
        VMSTATE_END_OF_LIST()
    },
};

static bool load_direct_qp(VirtIORdma *s, VirtIORdmaQp *qp,
                           const RdmaHcaRecord *r)
{
    RdmaHcaPages list = { .npages = qp->pages.npages };

    if (!rdma_hca_record_check(r, virtio_rdma_direct_qp_check(s, qp, &list) ==
                               0, "pages of its queues", list.npages,
                               "as many as they have") ||
        !rdma_hca_record_charge(&s->hca, r, &qp->pages)) {
        return false;
    }
    virtio_rdma_direct_qp_start(qp);
    return true;
}

static bool load_qp(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaQp *qp = obj;
    const RdmaQpCap *cap = &qp->core.init.cap;

    if (qp->pages.npages) {
        return load_direct_qp(s, qp, r);
    }
    if (!rdma_hca_record_max(r, "max_send_wr", cap->max_send_wr,
                             hca->ring_size) ||
        !rdma_hca_record_max(r, "max_recv_wr", cap->max_recv_wr,
                             hca->ring_size) ||
        !check_served(s, r) ||
        !check_vq(r, "qpn, with virtqueues", s->max_vq_qp,
                  qp->sq.depth_shift)) {
        return false;
    }
    virtio_rdma_qp_use_vqs(s, qp);
    return true;
}

static void inspect_qp(const void *obj, void *info)
{
    const VirtIORdmaQp *qp = obj;

    ((RdmaQueuePairDetail *)info)->direct = qp->pages.npages;
}

const RdmaHcaObjectOps virtio_rdma_qps = {
    .size = sizeof(VirtIORdmaQp),
    .vmsd = &vmstate_qp,
    .load = load_qp,
    .inspect = inspect_qp,
    .free = virtio_rdma_qp_free,
};
