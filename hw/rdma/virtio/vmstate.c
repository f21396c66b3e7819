/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: the layout of the stream.
 *
 * The stream has a list of plain records for each kind of object, and then the
 * state of the backend.
 */
#include "qemu/osdep.h"
#include "system/rdma-vmstate.h"
#include "vmstate.h"

/* The state of the backend is part of the state of the device. */

static int get_backend(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field)
{
    VirtIORdma *s = pv;
    int ret = rdma_vmstate_load(f, s->hca.bc->vmsd, s->hca.backend);

    if (ret) {
        virtio_rdma_forget_loaded(s);
    }
    return ret;
}

static int put_backend(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field, JSONWriter *vmdesc)
{
    VirtIORdma *s = pv;

    return rdma_vmstate_save(f, s->hca.bc->vmsd, s->hca.backend, vmdesc);
}

static const VMStateInfo vmstate_info_backend = {
    .name = "rdma backend",
    .get = get_backend,
    .put = put_backend,
};

static bool backend_migrates(void *opaque)
{
    return VIRTIO_RDMA(opaque)->hca.bc->vmsd;
}

static const VMStateDescription vmstate_backend = {
    .name = "virtio-rdma-device/backend",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = backend_migrates,
    .fields = (const VMStateField[]) {
        {
            .name = "backend",
            .info = &vmstate_info_backend,
            .flags = VMS_SINGLE,
        },
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_pd = {
    .name = "virtio-rdma/pd",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(pdn, SavedPd),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_backlog_cqe = {
    .name = "virtio-rdma/backlog-cqe",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(qpn, VirtIORdmaCqe),
        VMSTATE_UINT8(solicited, VirtIORdmaCqe),
        VMSTATE_BUFFER(bytes, VirtIORdmaCqe),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_event = {
    .name = "virtio-rdma/event",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(type, SavedEvent),
        VMSTATE_UINT32(id, SavedEvent),
        VMSTATE_END_OF_LIST()
    },
};

static bool cq_is_direct(void *opaque)
{
    return ((SavedCq *)opaque)->pages;
}

static const VMStateDescription vmstate_direct_cq = {
    .name = "virtio-rdma/cq/direct",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = cq_is_direct,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(depth_shift, SavedCq),
        VMSTATE_UINT32(npages, SavedCq),
        VMSTATE_VALIDATE("no more pages than a CQ has",
                         virtio_rdma_saved_valid_direct_cq),
        VMSTATE_VARRAY_UINT32_ALLOC(pages, SavedCq, npages, 1,
                                    vmstate_info_uint64, uint64_t),
        VMSTATE_UINT32(produced, SavedCq),
        VMSTATE_UINT32(consumed, SavedCq),
        VMSTATE_UINT32(fired, SavedCq),
        VMSTATE_UINT32(eqn, SavedCq),
        VMSTATE_BOOL(event_waits, SavedCq),
        VMSTATE_END_OF_LIST()
    },
};

static bool cq_is_eq(void *opaque)
{
    return ((SavedCq *)opaque)->is_eq;
}

static const VMStateDescription vmstate_eq = {
    .name = "virtio-rdma/cq/events",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = cq_is_eq,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(is_eq, SavedCq),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_cq = {
    .name = "virtio-rdma/cq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cqn, SavedCq),
        VMSTATE_UINT32(cqe, SavedCq),
        VMSTATE_UINT8(arm, SavedCq),
        VMSTATE_BOOL(error, SavedCq),
        VMSTATE_UINT32(n_backlog, SavedCq),
        VMSTATE_VALIDATE("depth and backlog within their limits",
                         virtio_rdma_saved_valid_cq),
        {
            .name = "backlog",
            .version_id = 1,
            .vmsd = &vmstate_backlog_cqe,
            .num_offset = offsetof(SavedCq, n_backlog),
            .size = sizeof(VirtIORdmaCqe),
            .flags = VMS_STRUCT | VMS_VARRAY_UINT32 | VMS_POINTER | VMS_ALLOC,
            .offset = offsetof(SavedCq, backlog),
        },
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_direct_cq,
        &vmstate_eq,
        NULL
    },
};

static const VMStateDescription vmstate_mr = {
    .name = "virtio-rdma/mr",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(mrn, SavedMr),
        VMSTATE_UINT32(pdn, SavedMr),
        VMSTATE_UINT32(type, SavedMr),
        VMSTATE_UINT32(key, SavedMr),
        VMSTATE_UINT32(rkey, SavedMr),
        VMSTATE_UINT32(npages, SavedMr),
        VMSTATE_UINT32(pending, SavedMr),
        VMSTATE_UINT32(max_pages, SavedMr),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_mw = {
    .name = "virtio-rdma/mw",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(mwn, SavedMw),
        VMSTATE_UINT32(pdn, SavedMw),
        VMSTATE_UINT32(type, SavedMw),
        VMSTATE_UINT32(rkey, SavedMw),
        VMSTATE_END_OF_LIST()
    },
};

static bool srq_is_direct(void *opaque)
{
    return ((SavedSrq *)opaque)->direct.pages;
}

static const VMStateDescription vmstate_direct_srq = {
    .name = "virtio-rdma/srq/direct",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = srq_is_direct,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(direct.queue.depth_shift, SavedSrq),
        VMSTATE_UINT8(direct.queue.slot_shift, SavedSrq),
        VMSTATE_UINT16(direct.queue.doorbell, SavedSrq),
        VMSTATE_UINT32(direct.queue.pages.npages, SavedSrq),
        VMSTATE_VALIDATE("no more pages than an SRQ has",
                         virtio_rdma_saved_valid_direct_srq),
        VMSTATE_VARRAY_UINT32_ALLOC(direct.pages, SavedSrq,
                                    direct.queue.pages.npages, 1,
                                    vmstate_info_uint64, uint64_t),
        VMSTATE_UINT32(direct.taken, SavedSrq),
        VMSTATE_BOOL(direct.broken, SavedSrq),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_srq = {
    .name = "virtio-rdma/srq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(srqn, SavedSrq),
        VMSTATE_UINT32(pdn, SavedSrq),
        VMSTATE_UINT32(max_wr, SavedSrq),
        VMSTATE_UINT32(max_sge, SavedSrq),
        VMSTATE_BOOL(error, SavedSrq),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_direct_srq,
        NULL
    },
};

static const VMStateDescription vmstate_inflight = {
    .name = "virtio-rdma/inflight",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT16(index, RdmaHcaInflight),
        VMSTATE_UINT16(ndescs, RdmaHcaInflight),
        VMSTATE_UINT16(npages, RdmaHcaInflight),
        VMSTATE_UINT32(mrn, RdmaHcaInflight),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_wq = {
    .name = "virtio-rdma/wq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(stale, SavedWq),
        VMSTATE_UINT32(count, SavedWq),
        VMSTATE_VALIDATE("no more WQEs than a queue holds",
                         virtio_rdma_saved_valid_wq),
        VIRTIO_RDMA_RECORDS(inflight, count, vmstate_inflight, SavedWq,
                            RdmaHcaInflight, VMS_ALLOC),
        VMSTATE_END_OF_LIST()
    },
};

static bool qp_is_direct(void *opaque)
{
    return ((SavedQp *)opaque)->direct.pages;
}

static const VMStateDescription vmstate_direct = {
    .name = "virtio-rdma/qp/direct",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = qp_is_direct,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(direct.queues.sq_depth_shift, SavedQp),
        VMSTATE_UINT8(direct.queues.sq_slot_shift, SavedQp),
        VMSTATE_UINT8(direct.queues.rq_depth_shift, SavedQp),
        VMSTATE_UINT8(direct.queues.rq_slot_shift, SavedQp),
        VMSTATE_UINT16(direct.queues.doorbell, SavedQp),
        VMSTATE_UINT32(direct.queues.pages.npages, SavedQp),
        VMSTATE_VALIDATE("no more pages than queues have",
                         virtio_rdma_saved_valid_direct),
        VMSTATE_VARRAY_UINT32_ALLOC(direct.pages, SavedQp,
                                    direct.queues.pages.npages, 1,
                                    vmstate_info_uint64, uint64_t),
        VMSTATE_UINT32(direct.sq_taken, SavedQp),
        VMSTATE_UINT32(direct.rq_taken, SavedQp),
        VMSTATE_BOOL(direct.broken, SavedQp),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_qp = {
    .name = "virtio-rdma/qp",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(qpn, SavedQp),
        VMSTATE_UINT32(pdn, SavedQp),
        VMSTATE_UINT32(type, SavedQp),
        VMSTATE_UINT32(send_cqn, SavedQp),
        VMSTATE_UINT32(recv_cqn, SavedQp),
        VMSTATE_UINT32(srqn, SavedQp),
        VMSTATE_BOOL(has_srq, SavedQp),
        VMSTATE_BOOL(block_mcast_loopback, SavedQp),
        VMSTATE_BOOL(sq_sig_all, SavedQp),
        VMSTATE_UNUSED(1),
        VMSTATE_UINT32(cap.max_send_wr, SavedQp),
        VMSTATE_UINT32(cap.max_recv_wr, SavedQp),
        VMSTATE_UINT32(cap.max_send_sge, SavedQp),
        VMSTATE_UINT32(cap.max_recv_sge, SavedQp),
        VMSTATE_UINT32(cap.max_inline_data, SavedQp),
        VMSTATE_STRUCT(sq, SavedQp, 1, vmstate_wq, SavedWq),
        VMSTATE_STRUCT(rq, SavedQp, 1, vmstate_wq, SavedWq),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_direct,
        NULL
    },
};

#define SAVED_LIST(field, num, vmsd, type) \
    VIRTIO_RDMA_RECORDS(field, num, vmsd, VirtIORdmaSaved, type, 0)

static const VMStateDescription vmstate_counts = {
    .name = "virtio-rdma/counts",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = virtio_rdma_saved_counts_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(n_pds, VirtIORdmaSaved),
        VMSTATE_UINT32(n_cqs, VirtIORdmaSaved),
        VMSTATE_UINT32(n_mrs, VirtIORdmaSaved),
        VMSTATE_UINT32(n_mws, VirtIORdmaSaved),
        VMSTATE_UINT32(n_srqs, VirtIORdmaSaved),
        VMSTATE_UINT32(n_qps, VirtIORdmaSaved),
        VMSTATE_UINT32(n_stale_vqs, VirtIORdmaSaved),
        VMSTATE_UINT32(n_events, VirtIORdmaSaved),
        VMSTATE_UINT32(next_pdn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_cqn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_mrn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_srqn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_qpn, VirtIORdmaSaved),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_objects = {
    .name = "virtio-rdma/objects",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = virtio_rdma_saved_objects_post_load,
    .fields = (const VMStateField[]) {
        SAVED_LIST(pds, n_pds, vmstate_pd, SavedPd),
        SAVED_LIST(cqs, n_cqs, vmstate_cq, SavedCq),
        SAVED_LIST(mrs, n_mrs, vmstate_mr, SavedMr),
        SAVED_LIST(mws, n_mws, vmstate_mw, SavedMw),
        SAVED_LIST(srqs, n_srqs, vmstate_srq, SavedSrq),
        SAVED_LIST(qps, n_qps, vmstate_qp, SavedQp),
        VMSTATE_VARRAY_UINT32(stale_vqs, VirtIORdmaSaved, n_stale_vqs, 1,
                              vmstate_info_uint32, uint32_t),
        SAVED_LIST(events, n_events, vmstate_event, SavedEvent),
        VMSTATE_BOOL(port_active, VirtIORdmaSaved),
        VMSTATE_UINT64_ARRAY(counters, VirtIORdmaSaved,
                             VIRTIO_RDMA_NUM_COUNTERS),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_shadow = {
    .name = "virtio-rdma/shadow",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(doorbell, SavedShadow),
        VMSTATE_UINT64(addr, SavedShadow),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_shadow_list = {
    .name = "virtio-rdma/shadows",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = virtio_rdma_saved_shadows_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(n_shadows, VirtIORdmaSaved),
        VMSTATE_VALIDATE("no more shadows than pages of doorbells",
                         virtio_rdma_saved_valid_shadows),
        VIRTIO_RDMA_RECORDS(shadows, n_shadows, vmstate_shadow, VirtIORdmaSaved,
                            SavedShadow, VMS_ALLOC),
        VMSTATE_END_OF_LIST()
    },
};

static bool has_shadows(void *opaque)
{
    return VIRTIO_RDMA(opaque)->saved->n_shadows;
}

static const VMStateDescription vmstate_shadows = {
    .name = "virtio-rdma-device/shadows",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = has_shadows,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_shadow_list,
                               VirtIORdmaSaved),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_virtio_rdma_device = {
    .name = "virtio-rdma-device",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = virtio_rdma_saved_pre_save,
    .post_save = virtio_rdma_saved_post_save,
    .pre_load = virtio_rdma_saved_pre_load,
    .post_load = virtio_rdma_saved_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_counts,
                               VirtIORdmaSaved),
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_objects,
                               VirtIORdmaSaved),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_backend,
        &vmstate_shadows,
        &vmstate_virtio_rdma_qp_counters,
        NULL
    },
};
