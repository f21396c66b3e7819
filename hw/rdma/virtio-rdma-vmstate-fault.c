/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: faults, and what they have done so far.
 * Times are in virtual time, which migrates.
 */
#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "virtio-rdma-vmstate.h"

#define NO_FAULT UINT32_MAX
#define ALL_SELECTS (VIRTIO_RDMA_FAULT_QPN | VIRTIO_RDMA_FAULT_DGID | \
                     VIRTIO_RDMA_FAULT_DEST_QPN)

/* Saving */

static void save_held(SavedHeld *v, const VirtIORdmaHeld *held)
{
    const RdmaWc *wc = &held->wc;

    *v = (SavedHeld) {
        .cqn = held->cqn,
        .solicited = held->solicited,
        .reorder = held->reorder,
        .until = held->until,
        .wr_id = wc->wr_id,
        .status = wc->status,
        .opcode = wc->opcode,
        .vendor_err = wc->vendor_err,
        .byte_len = wc->byte_len,
        .qp_num = wc->qp_num,
        .src_qp = wc->src_qp,
        .wc_flags = wc->wc_flags,
        .pkey_index = wc->pkey_index,
        .sl = wc->sl,
        .port_num = wc->port_num,
        .vlan = wc->vlan,
        .hdr_type = wc->hdr_type,
    };
    memcpy(v->ex, &wc->ex, sizeof(v->ex));
    memcpy(v->smac, wc->smac, sizeof(v->smac));
}

static uint32_t index_of(const VirtIORdma *s, const VirtIORdmaFault *fault)
{
    const VirtIORdmaFault *f;
    uint32_t i = 0;

    QTAILQ_FOREACH(f, &s->faults->list, next) {
        if (f == fault) {
            return i;
        }
        i++;
    }
    return NO_FAULT;
}

void virtio_rdma_saved_faults_fill(VirtIORdmaSaved *v)
{
    VirtIORdma *s = v->dev;
    VirtIORdmaFaults *fs = s->faults;
    const VirtIORdmaFault *f;
    const VirtIORdmaHeld *held;
    const VirtIORdmaQp *qp;

    if (!fs) {
        return;
    }
    v->faults = g_new0(VirtIORdmaFault, fs->count);
    QTAILQ_FOREACH(f, &fs->list, next) {
        v->faults[v->n_faults++] = *f;
    }
    v->held = g_new0(SavedHeld, fs->n_held);
    QTAILQ_FOREACH(held, &fs->held, next) {
        save_held(&v->held[v->n_held++], held);
    }
    v->fault_qps = g_new0(SavedFaultQp, s->qps.count);
    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        if (qp->fault.held_back || qp->fault.passed) {
            v->fault_qps[v->n_fault_qps++] = (SavedFaultQp) {
                .qpn = n,
                .stuck = index_of(s, qp->fault.stuck),
                .fatal = qp->fault.fatal,
                .passed = qp->fault.passed,
                .until = qp->fault.until,
            };
        }
    }
    v->port_until = fs->port_until;
    v->command_until = fs->command_until;
}

void virtio_rdma_saved_faults_free(VirtIORdmaSaved *v)
{
    g_free(v->faults);
    g_free(v->held);
    g_free(v->fault_qps);
}

/* Loading */

static bool valid_counts(void *opaque, int version_id)
{
    const VirtIORdmaSaved *v = opaque;

    return v->n_faults <= VIRTIO_RDMA_MAX_FAULTS &&
           v->n_held <= VIRTIO_RDMA_MAX_HELD &&
           v->n_fault_qps <= v->dev->limits.max_qp;
}

static bool load_fault(VirtIORdma *s, const VirtIORdmaFault *v)
{
    Error *err = NULL;

    if (v->selects & ~ALL_SELECTS) {
        error_report("virtio-rdma: a fault in the migration stream selects by "
                     "0x%x, but the device knows 0x%x", v->selects,
                     ALL_SELECTS);
        return false;
    }
    if (!virtio_rdma_fault_check(s, v, &err)) {
        error_reportf_err(err, "virtio-rdma: a fault in the migration stream: "
                          "");
        return false;
    }
    virtio_rdma_fault_add(s, v);
    return true;
}

static VirtIORdmaFault *nth_fault(VirtIORdma *s, uint32_t i)
{
    VirtIORdmaFault *f;

    QTAILQ_FOREACH(f, &s->faults->list, next) {
        if (!i--) {
            return f;
        }
    }
    return NULL;
}

static bool load_fault_qp(VirtIORdma *s, const SavedFaultQp *v)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, v->qpn);
    const VirtIORdmaFault *f = NULL;

    if (!qp) {
        error_report("virtio-rdma: QP %u in the migration stream has met a "
                     "fault, but does not exist", v->qpn);
        return false;
    }
    if (v->stuck != NO_FAULT) {
        f = nth_fault(s, v->stuck);
        if (!f || f->kind != RDMA_FAULT_KIND_QP_STUCK || v->until <= 0) {
            error_report("virtio-rdma: QP %u in the migration stream is stuck "
                         "by fault %u until %" PRId64 ", which is none that "
                         "does that", v->qpn, v->stuck, v->until);
            return false;
        }
    }
    qp->fault = (VirtIORdmaQpFault) {
        .held_back = f || v->fatal,
        .fatal = v->fatal,
        .stuck = f,
        .until = v->until,
        .passed = v->passed,
    };
    return true;
}

static bool load_held(VirtIORdma *s, const SavedHeld *v)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, v->qp_num);
    VirtIORdmaCq *cq = virtio_rdma_cq_get(s, v->cqn);
    VirtIORdmaHeld held = {
        .cqn = v->cqn,
        .solicited = v->solicited,
        .reorder = v->reorder,
        .until = v->until,
        .wc = {
            .wr_id = v->wr_id,
            .status = v->status,
            .opcode = v->opcode,
            .vendor_err = v->vendor_err,
            .byte_len = v->byte_len,
            .qp_num = v->qp_num,
            .src_qp = v->src_qp,
            .wc_flags = v->wc_flags,
            .pkey_index = v->pkey_index,
            .sl = v->sl,
            .port_num = v->port_num,
            .vlan = v->vlan,
            .hdr_type = v->hdr_type,
        },
    };

    if (!qp || !cq || cq->n_held >= cq->cqe ||
        cq != (v->opcode >= RDMA_WC_RECV ? qp->recv_cq : qp->send_cq)) {
        error_report("virtio-rdma: a completion of QP %u in the migration "
                     "stream is held back from CQ %u, which has no room for "
                     "it or is not that of the QP", v->qp_num, v->cqn);
        return false;
    }
    if (v->status > RDMA_WC_GENERAL_ERR ||
        v->opcode > RDMA_WC_RECV_RDMA_WITH_IMM) {
        error_report("virtio-rdma: a completion of QP %u in the migration "
                     "stream has status %u and opcode %u, at most %u and %u "
                     "are possible", v->qp_num, v->status, v->opcode,
                     RDMA_WC_GENERAL_ERR, RDMA_WC_RECV_RDMA_WITH_IMM);
        return false;
    }
    memcpy(&held.wc.ex, v->ex, sizeof(v->ex));
    memcpy(held.wc.smac, v->smac, sizeof(v->smac));
    virtio_rdma_hold_add(s, cq, &held);
    return true;
}

static bool load_port(VirtIORdma *s, int64_t until)
{
    VirtIORdmaFault *f;

    if (!until) {
        return true;
    }
    QTAILQ_FOREACH(f, &s->faults->list, next) {
        if (f->kind == RDMA_FAULT_KIND_PORT_DOWN) {
            virtio_rdma_fault_start(s, f);
            s->faults->port_until = until;
            return true;
        }
    }
    error_report("virtio-rdma: the port in the migration stream is down until "
                 "%" PRId64 ", but there is no fault that does that", until);
    return false;
}

/* QPs and CQs are there. Faults that the destination had are no more. */
static int post_load(void *opaque, int version_id)
{
    const VirtIORdmaSaved *v = opaque;
    VirtIORdma *s = v->dev;
    VirtIORdmaFaults *fs = virtio_rdma_faults_get(s);
    VirtIORdmaFault *f, *next;

    QTAILQ_FOREACH_SAFE(f, &fs->list, next, next) {
        virtio_rdma_fault_remove(s, f);
    }
    for (uint32_t i = 0; i < v->n_faults; i++) {
        if (!load_fault(s, &v->faults[i])) {
            return -EINVAL;
        }
    }
    for (uint32_t i = 0; i < v->n_fault_qps; i++) {
        if (!load_fault_qp(s, &v->fault_qps[i])) {
            return -EINVAL;
        }
    }
    for (uint32_t i = 0; i < v->n_held; i++) {
        if (!load_held(s, &v->held[i])) {
            return -EINVAL;
        }
    }
    if (!load_port(s, v->port_until)) {
        return -EINVAL;
    }
    fs->command_until = v->command_until;
    virtio_rdma_faults_update(s);
    return 0;
}

/* The stream */

static const VMStateDescription vmstate_fault = {
    .name = "virtio-rdma/fault",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_BUFFER_UNSAFE(id, VirtIORdmaFault, 0,
                              VIRTIO_RDMA_FAULT_ID_ROOM),
        VMSTATE_UINT8(kind, VirtIORdmaFault),
        VMSTATE_UINT8(status, VirtIORdmaFault),
        VMSTATE_UINT8(opcode, VirtIORdmaFault),
        VMSTATE_UINT8(command, VirtIORdmaFault),
        VMSTATE_UINT32(selects, VirtIORdmaFault),
        VMSTATE_UINT32(qpn, VirtIORdmaFault),
        VMSTATE_UINT32(dest_qpn, VirtIORdmaFault),
        VMSTATE_BUFFER(dgid, VirtIORdmaFault),
        VMSTATE_UINT64(after, VirtIORdmaFault),
        VMSTATE_UINT64(times, VirtIORdmaFault),
        VMSTATE_UINT64(probability, VirtIORdmaFault),
        VMSTATE_UINT64(seed, VirtIORdmaFault),
        VMSTATE_UINT64(random, VirtIORdmaFault),
        VMSTATE_UINT32(ms, VirtIORdmaFault),
        VMSTATE_UINT64(matches, VirtIORdmaFault),
        VMSTATE_UINT64(hits, VirtIORdmaFault),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_held = {
    .name = "virtio-rdma/held",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cqn, SavedHeld),
        VMSTATE_BOOL(solicited, SavedHeld),
        VMSTATE_BOOL(reorder, SavedHeld),
        VMSTATE_INT64(until, SavedHeld),
        VMSTATE_UINT64(wr_id, SavedHeld),
        VMSTATE_UINT8(status, SavedHeld),
        VMSTATE_UINT8(opcode, SavedHeld),
        VMSTATE_UINT32(vendor_err, SavedHeld),
        VMSTATE_UINT32(byte_len, SavedHeld),
        VMSTATE_BUFFER(ex, SavedHeld),
        VMSTATE_UINT32(qp_num, SavedHeld),
        VMSTATE_UINT32(src_qp, SavedHeld),
        VMSTATE_UINT32(wc_flags, SavedHeld),
        VMSTATE_UINT16(pkey_index, SavedHeld),
        VMSTATE_UINT8(sl, SavedHeld),
        VMSTATE_UINT8(port_num, SavedHeld),
        VMSTATE_BUFFER(smac, SavedHeld),
        VMSTATE_UINT16(vlan, SavedHeld),
        VMSTATE_UINT8(hdr_type, SavedHeld),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_fault_qp = {
    .name = "virtio-rdma/fault-qp",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(qpn, SavedFaultQp),
        VMSTATE_UINT32(stuck, SavedFaultQp),
        VMSTATE_BOOL(fatal, SavedFaultQp),
        VMSTATE_BOOL(passed, SavedFaultQp),
        VMSTATE_INT64(until, SavedFaultQp),
        VMSTATE_END_OF_LIST()
    },
};

#define LIST(field, num, vmsd, type) \
    VIRTIO_RDMA_RECORDS(field, num, vmsd, VirtIORdmaSaved, type, VMS_ALLOC)

static const VMStateDescription vmstate_fault_lists = {
    .name = "virtio-rdma/faults",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(n_faults, VirtIORdmaSaved),
        VMSTATE_UINT32(n_fault_qps, VirtIORdmaSaved),
        VMSTATE_UINT32(n_held, VirtIORdmaSaved),
        VMSTATE_VALIDATE("no more faults than a device has", valid_counts),
        LIST(faults, n_faults, vmstate_fault, VirtIORdmaFault),
        LIST(fault_qps, n_fault_qps, vmstate_fault_qp, SavedFaultQp),
        LIST(held, n_held, vmstate_held, SavedHeld),
        VMSTATE_INT64(port_until, VirtIORdmaSaved),
        VMSTATE_INT64(command_until, VirtIORdmaSaved),
        VMSTATE_END_OF_LIST()
    },
};

static bool has_faults(void *opaque)
{
    const VirtIORdmaSaved *v = VIRTIO_RDMA(opaque)->saved;

    return v->n_faults || v->n_held || v->n_fault_qps || v->command_until;
}

const VMStateDescription vmstate_virtio_rdma_faults = {
    .name = "virtio-rdma-device/faults",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = has_faults,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_fault_lists,
                               VirtIORdmaSaved),
        VMSTATE_END_OF_LIST()
    },
};
