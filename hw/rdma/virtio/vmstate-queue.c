/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: the forms of queues. The core has loaded
 * and checked its part of an object before that of this file.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "vmstate.h"

/* Only direct queues have pages in the stream. */
static bool is_direct(const RdmaHcaExtents *pages)
{
    return pages->npages;
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

static bool load_cq(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    VirtIORdmaCq *cq = obj;

    return is_direct(&cq->pages)
           ? virtio_rdma_direct_cq_load(virtio_rdma_of(hca), cq, r)
           : virtio_rdma_cq_load_vq(virtio_rdma_of(hca), cq, r);
}

const RdmaHcaObjectOps virtio_rdma_cqs = {
    .size = sizeof(VirtIORdmaCq),
    .vmsd = &vmstate_cq,
    .load = load_cq,
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
        if (cq->core.ops->direct && !load_eq_of(s, cq)) {
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
    VirtIORdmaSrq *srq = obj;

    return is_direct(&srq->pages)
           ? virtio_rdma_direct_srq_load(virtio_rdma_of(hca), srq, r)
           : virtio_rdma_srq_load_vq(virtio_rdma_of(hca), srq, r);
}

const RdmaHcaObjectOps virtio_rdma_srqs = {
    .size = sizeof(VirtIORdmaSrq),
    .vmsd = &vmstate_srq,
    .load = load_srq,
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

static bool load_qp(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    VirtIORdmaQp *qp = obj;

    return is_direct(&qp->pages)
           ? virtio_rdma_direct_qp_load(virtio_rdma_of(hca), qp, r)
           : virtio_rdma_qp_load_vqs(virtio_rdma_of(hca), qp, r);
}

const RdmaHcaObjectOps virtio_rdma_qps = {
    .size = sizeof(VirtIORdmaQp),
    .vmsd = &vmstate_qp,
    .load = load_qp,
    .free = virtio_rdma_qp_free,
};
