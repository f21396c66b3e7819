/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a pvrdma device: its registers, the shared region, contexts, and
 * the rings of queues. The core migrates objects, see hw/rdma/hca-vmstate.h.
 */
#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "hw/rdma/hca-vmstate.h"
#include "qemu/error-report.h"
#include "qemu/host-utils.h"
#include "system/rdma-vmstate.h"
#include "int.h"

QEMU_BUILD_BUG_ON(offsetof(PvrdmaCq, core));
QEMU_BUILD_BUG_ON(offsetof(PvrdmaSrq, core));
QEMU_BUILD_BUG_ON(offsetof(PvrdmaQp, core));
QEMU_BUILD_BUG_ON(sizeof(PvrdmaArm) != sizeof(uint32_t));

/* Checks of objects */

static bool check_size(const RdmaHcaRecord *r, const char *field,
                       uint32_t size)
{
    return rdma_hca_record_check(r, is_power_of_2(size), field, size,
                                 "a power of 2");
}

static bool check_pages(RdmaHca *hca, const RdmaHcaRecord *r,
                        const RdmaHcaExtents *pages, uint64_t needed)
{
    return rdma_hca_record_check(r, pages->npages >= needed, "pages",
                                 pages->npages, "as many as its queues need") &&
           rdma_hca_record_charge(hca, r, pages);
}

/* WQEs of a ring that wait, and WQEs that the device has taken */
static bool check_wq(const RdmaHcaRecord *r, const PvrdmaRing *ring)
{
    return rdma_hca_record_max(r, "WQEs that are posted",
                               ring->seen - ring->index, ring->size) &&
           rdma_hca_record_max(r, "WQEs that are not freed",
                               ring->index - ring->freed, ring->size);
}

/* Completion queues */

static const VMStateDescription vmstate_cq = {
    .name = "pvrdma/cq",
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_HCA_PAGES(pages, PvrdmaCq),
        VMSTATE_UINT32(ctx, PvrdmaCq),
        VMSTATE_RDMA_ENUM(arm, PvrdmaCq),
        VMSTATE_UINT32(ring.index, PvrdmaCq),
        VMSTATE_UINT32(ring.seen, PvrdmaCq),
        VMSTATE_BOOL(fired, PvrdmaCq),
        VMSTATE_END_OF_LIST()
    },
};

static bool load_cq(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    Pvrdma *s = pvrdma_of(hca);
    PvrdmaCq *cq = obj;
    uint32_t cqe = cq->core.cqe;
    bool fired = cq->fired;

    cq->fired = false;
    if (!rdma_hca_record_check(r, !cq->core.is_eq, "is_eq", 1, "0") ||
        !check_size(r, "cqe", cqe) ||
        !rdma_hca_record_check(r, pvrdma_has_context(s, cq->ctx), "ctx",
                               cq->ctx, "a context that exists") ||
        !rdma_hca_record_max(r, "arm", cq->arm, PVRDMA_ARM_NEXT) ||
        !rdma_hca_record_max(r, "CQEs that are not consumed",
                             cq->ring.index - cq->ring.seen, cqe) ||
        !check_pages(hca, r, &cq->pages, pvrdma_cq_pages(cqe))) {
        return false;
    }
    pvrdma_cq_start(cq);
    if (fired) {
        pvrdma_notify_fire(s, cq);
    }
    return true;
}

const RdmaHcaObjectOps pvrdma_cqs = {
    .size = sizeof(PvrdmaCq),
    .vmsd = &vmstate_cq,
    .load = load_cq,
    .free = pvrdma_cq_free,
};

/* Shared receive queues */

static const VMStateDescription vmstate_srq = {
    .name = "pvrdma/srq",
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_HCA_PAGES(pages, PvrdmaSrq),
        VMSTATE_UINT32(ring.index, PvrdmaSrq),
        VMSTATE_UINT32(ring.seen, PvrdmaSrq),
        VMSTATE_UINT32(ring.freed, PvrdmaSrq),
        VMSTATE_END_OF_LIST()
    },
};

static bool load_srq(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    PvrdmaSrq *srq = obj;
    const RdmaSrqAttr *attr = &srq->core.attr;

    if (!check_size(r, "max_wr", attr->max_wr) ||
        !check_pages(hca, r, &srq->pages, pvrdma_srq_pages(attr))) {
        return false;
    }
    pvrdma_srq_start(srq);
    return check_wq(r, &srq->ring);
}

const RdmaHcaObjectOps pvrdma_srqs = {
    .size = sizeof(PvrdmaSrq),
    .vmsd = &vmstate_srq,
    .load = load_srq,
    .free = pvrdma_srq_free,
};

/* Queue pairs */

static const VMStateDescription vmstate_qp = {
    .name = "pvrdma/qp",
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_HCA_PAGES(pages, PvrdmaQp),
        VMSTATE_UINT32(send_pages, PvrdmaQp),
        VMSTATE_UINT32(sq.index, PvrdmaQp),
        VMSTATE_UINT32(sq.seen, PvrdmaQp),
        VMSTATE_UINT32(sq.freed, PvrdmaQp),
        VMSTATE_UINT32(rq.index, PvrdmaQp),
        VMSTATE_UINT32(rq.seen, PvrdmaQp),
        VMSTATE_UINT32(rq.freed, PvrdmaQp),
        VMSTATE_BOOL(sq.stopped, PvrdmaQp),
        VMSTATE_BOOL(rq.stopped, PvrdmaQp),
        VMSTATE_END_OF_LIST()
    },
};

static bool load_qp(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    PvrdmaQp *qp = obj;
    const RdmaQpInitAttr *init = &qp->core.init;

    if (!check_size(r, "max_send_wr", init->cap.max_send_wr) ||
        (!init->has_srq &&
         !check_size(r, "max_recv_wr", init->cap.max_recv_wr)) ||
        !rdma_hca_record_check(r, qp->send_pages >= pvrdma_qp_send_pages(init),
                               "pages of the SQ", qp->send_pages,
                               "as many as it needs") ||
        !rdma_hca_record_check(r, pvrdma_qp_has_one_context(hca, init), "pdn",
                               init->pdn, "of the context of its CQs and its "
                               "SRQ") ||
        !check_pages(hca, r, &qp->pages,
                     pvrdma_qp_pages(init, qp->send_pages))) {
        return false;
    }
    pvrdma_qp_start(qp);
    return check_wq(r, &qp->sq) && (init->has_srq || check_wq(r, &qp->rq));
}

const RdmaHcaObjectOps pvrdma_qps = {
    .size = sizeof(PvrdmaQp),
    .vmsd = &vmstate_qp,
    .load = load_qp,
    .free = pvrdma_qp_free,
};

/* The device */

static int pre_load(void *opaque)
{
    pvrdma_reset(opaque);
    return 0;
}

static bool check_contexts(Pvrdma *s)
{
    RdmaHcaPd *pd;

    RDMA_HCA_FOREACH(&s->hca.pds, n, pd) {
        const RdmaHcaRecord r = { "PD", n };

        if (!rdma_hca_record_check(&r, pvrdma_has_context(s, pd->context),
                                   "context", pd->context, "one that exists")) {
            return false;
        }
    }
    return true;
}

static bool check_command(Pvrdma *s)
{
    bool ok = pvrdma_cmd_load(s);

    if (!ok) {
        error_report("pvrdma: the command in progress in the migration stream "
                     "has number %u, which the device does not know",
                     le32_to_cpu(s->cmd.req.head.cmd));
    }
    return ok;
}

static int post_load(void *opaque, int version_id)
{
    Pvrdma *s = opaque;

    if (!check_contexts(s) || !check_command(s)) {
        rdma_hca_forget_loaded(&s->hca);
        return -EINVAL;
    }
    pvrdma_notify_init(s);
    return 0;
}

const VMStateDescription vmstate_pvrdma = {
    .name = TYPE_PVRDMA,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = pre_load,
    .post_load = post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, Pvrdma),
        /*
         * No field that a guest chooses comes after a structure: QEMU takes
         * bytes there that look like a subsection for one.
         */
        VMSTATE_BOOL(active, Pvrdma),
        VMSTATE_MSIX(parent_obj, Pvrdma),
        VMSTATE_BOOL(cmd.busy, Pvrdma),
        VMSTATE_BUFFER(cmd.req.bytes, Pvrdma),
        VMSTATE_UINT32(dsr_low, Pvrdma),
        VMSTATE_UINT32(err, Pvrdma),
        VMSTATE_UINT32(icr, Pvrdma),
        VMSTATE_UINT32(imr, Pvrdma),
        VMSTATE_UINT64(dsr, Pvrdma),
        VMSTATE_UINT64(request, Pvrdma),
        VMSTATE_UINT64(response, Pvrdma),
        VMSTATE_UINT32(driver_version, Pvrdma),
        VMSTATE_UINT64(events.state, Pvrdma),
        VMSTATE_UINT64(events.elements, Pvrdma),
        VMSTATE_UINT32(events.index, Pvrdma),
        VMSTATE_UINT64(completions.state, Pvrdma),
        VMSTATE_UINT64(completions.elements, Pvrdma),
        VMSTATE_UINT32(completions.index, Pvrdma),
        {
            .name = "contexts",
            .info = &vmstate_info_bitmap,
            .size_offset = offsetof(Pvrdma, conf.max_uar),
            .flags = VMS_VBUFFER | VMS_POINTER,
            .offset = offsetof(Pvrdma, contexts),
        },
        VMSTATE_RDMA_HCA(hca, Pvrdma),
        VMSTATE_END_OF_LIST()
    },
};

/* Limits */

const VMStateDescription vmstate_pvrdma_limits = {
    .name = "pvrdma-early",
    .version_id = 1,
    .minimum_version_id = 1,
    .early_setup = true,
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_HCA_LIMITS(hca, Pvrdma),
        VMSTATE_RDMA_EQUAL("max-uar", conf.max_uar, Pvrdma),
        VMSTATE_END_OF_LIST()
    },
};
