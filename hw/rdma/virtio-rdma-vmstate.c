/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: what the stream looks like.
 *
 * The objects are saved as lists of plain records, the backend's state
 * behind them.
 */
#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "virtio-rdma-vmstate.h"

/* The backend's state is a part of the device's. */

static int get_backend(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field)
{
    VirtIORdma *s = pv;

    return vmstate_load_state(f, s->bc->vmsd, s->backend,
                              s->bc->vmsd->version_id);
}

static int put_backend(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field, JSONWriter *vmdesc)
{
    VirtIORdma *s = pv;

    return vmstate_save_state(f, s->bc->vmsd, s->backend, vmdesc);
}

static const VMStateInfo vmstate_info_backend = {
    .name = "rdma backend",
    .get = get_backend,
    .put = put_backend,
};

static bool backend_migrates(void *opaque)
{
    return VIRTIO_RDMA(opaque)->bc->vmsd;
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

static const VMStateDescription vmstate_limits = {
    .name = "virtio-rdma/limits",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(max_qp, SavedLimits),
        VMSTATE_UINT32(max_qp_wr, SavedLimits),
        VMSTATE_UINT32(max_send_sge, SavedLimits),
        VMSTATE_UINT32(max_recv_sge, SavedLimits),
        VMSTATE_UINT32(max_inline_data, SavedLimits),
        VMSTATE_UINT32(max_cq, SavedLimits),
        VMSTATE_UINT32(max_cqe, SavedLimits),
        VMSTATE_UINT32(max_mr, SavedLimits),
        VMSTATE_UINT32(max_pd, SavedLimits),
        VMSTATE_UINT64(max_mr_size, SavedLimits),
        VMSTATE_UINT32(max_rd_atomic, SavedLimits),
        VMSTATE_UINT32(gid_table_len, SavedLimits),
        VMSTATE_UINT8(atomic_cap, SavedLimits),
        VMSTATE_UINT64(device_cap_flags, SavedLimits),
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

static const VMStateDescription vmstate_cq = {
    .name = "virtio-rdma/cq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cqn, SavedCq),
        VMSTATE_UINT32(cqe, SavedCq),
        VMSTATE_UINT8(arm, SavedCq),
        VMSTATE_BOOL(error, SavedCq),
        VMSTATE_END_OF_LIST()
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
        VMSTATE_UINT32(max_pages, SavedMr),
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
        VMSTATE_VALIDATE("no more WQEs than a queue holds", virtio_rdma_valid_wq),
        VMSTATE_VARRAY_UINT32_ALLOC(inflight, SavedWq, count, 1,
                                    vmstate_info_uint32, uint32_t),
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
        VMSTATE_BOOL(sq_sig_all, SavedQp),
        VMSTATE_BOOL(to_err, SavedQp),
        VMSTATE_UINT32(cap.max_send_wr, SavedQp),
        VMSTATE_UINT32(cap.max_recv_wr, SavedQp),
        VMSTATE_UINT32(cap.max_send_sge, SavedQp),
        VMSTATE_UINT32(cap.max_recv_sge, SavedQp),
        VMSTATE_UINT32(cap.max_inline_data, SavedQp),
        VMSTATE_STRUCT(sq, SavedQp, 1, vmstate_wq, SavedWq),
        VMSTATE_STRUCT(rq, SavedQp, 1, vmstate_wq, SavedWq),
        VMSTATE_END_OF_LIST()
    },
};

#define SAVED_LIST(field, num, vmsd_, type) {                           \
    .name = #field,                                                     \
    .version_id = 1,                                                    \
    .vmsd = &(vmsd_),                                                   \
    .num_offset = offsetof(VirtIORdmaSaved, num),                       \
    .size = sizeof(type),                                               \
    .flags = VMS_STRUCT | VMS_VARRAY_UINT32 | VMS_POINTER,              \
    .offset = offsetof(VirtIORdmaSaved, field),                         \
}

static const VMStateDescription vmstate_counts = {
    .name = "virtio-rdma/counts",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = virtio_rdma_counts_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(n_pds, VirtIORdmaSaved),
        VMSTATE_UINT32(n_cqs, VirtIORdmaSaved),
        VMSTATE_UINT32(n_mrs, VirtIORdmaSaved),
        VMSTATE_UINT32(n_qps, VirtIORdmaSaved),
        VMSTATE_UINT32(n_stale_vqs, VirtIORdmaSaved),
        VMSTATE_UINT32(next_pdn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_cqn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_mrn, VirtIORdmaSaved),
        VMSTATE_UINT32(next_qpn, VirtIORdmaSaved),
        VMSTATE_STRUCT(limits, VirtIORdmaSaved, 1, vmstate_limits,
                       SavedLimits),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_objects = {
    .name = "virtio-rdma/objects",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = virtio_rdma_objects_post_load,
    .fields = (const VMStateField[]) {
        SAVED_LIST(pds, n_pds, vmstate_pd, SavedPd),
        SAVED_LIST(cqs, n_cqs, vmstate_cq, SavedCq),
        SAVED_LIST(mrs, n_mrs, vmstate_mr, SavedMr),
        SAVED_LIST(qps, n_qps, vmstate_qp, SavedQp),
        VMSTATE_VARRAY_UINT32(stale_vqs, VirtIORdmaSaved, n_stale_vqs, 1,
                              vmstate_info_uint32, uint32_t),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_virtio_rdma_device = {
    .name = "virtio-rdma-device",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = virtio_rdma_pre_save,
    .post_save = virtio_rdma_post_save,
    .pre_load = virtio_rdma_pre_load,
    .post_load = virtio_rdma_device_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_counts,
                               VirtIORdmaSaved),
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_objects,
                               VirtIORdmaSaved),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_backend,
        NULL
    },
};
