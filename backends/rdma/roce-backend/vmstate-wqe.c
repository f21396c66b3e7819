/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: elements of queues.
 *
 * Guest and peers choose most of these bytes. VMState looks for a subsection
 * after each structure (VMS_STRUCT). A guest could write the name of one there,
 * and its migration would fail. There is no such search after a field, so an
 * element is a single field, whose VMStateInfo knows its members.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "rdma/roce-state.h"
#include "vmstate.h"

/* A member of an element: a big-endian number in the stream, or bytes */
typedef struct Member {
    uint8_t size;                   /* 0: the end of the list */
    bool is_bytes;
    uint16_t offset;
} Member;

#define NUM(type, field) \
    { sizeof_field(type, field), false, offsetof(type, field) }
#define BYTES(type, field) \
    { sizeof_field(type, field), true, offsetof(type, field) }

/* In the order of the stream */

static const Member send_members[] = {
    NUM(RoceSendImage, wqe.wr_id),
    NUM(RoceSendImage, wqe.remote_addr),
    NUM(RoceSendImage, args.reg_length),
    NUM(RoceSendImage, args.compare_add),
    NUM(RoceSendImage, args.swap),
    NUM(RoceSendImage, wqe.status),
    NUM(RoceSendImage, wqe.opcode),
    NUM(RoceSendImage, wqe.send_flags),
    NUM(RoceSendImage, wqe.num_sge),
    NUM(RoceSendImage, wqe.length),
    NUM(RoceSendImage, wqe.rkey),
    NUM(RoceSendImage, wqe.invalidate_rkey),
    NUM(RoceSendImage, args.lkey),
    NUM(RoceSendImage, args.remote_qpn),
    NUM(RoceSendImage, args.remote_qkey),
    NUM(RoceSendImage, args.mrn),
    NUM(RoceSendImage, args.access),
    NUM(RoceSendImage, wqe.npages),
    NUM(RoceSendImage, wqe.first_psn),
    NUM(RoceSendImage, wqe.npsn),
    BYTES(RoceSendImage, wqe.imm),
    NUM(RoceSendImage, wqe.is_inline),
    NUM(RoceSendImage, wqe.done),
    BYTES(RoceSendImage, args.av.dgid),
    BYTES(RoceSendImage, args.av.dmac),
    NUM(RoceSendImage, args.av.sgid_index),
    NUM(RoceSendImage, args.av.hop_limit),
    NUM(RoceSendImage, args.av.traffic_class),
    NUM(RoceSendImage, args.av.sl),
    NUM(RoceSendImage, args.av.static_rate),
    NUM(RoceSendImage, args.av.port_num),
    NUM(RoceSendImage, args.av.ah_flags),
    NUM(RoceSendImage, args.av.flow_label),
    { }
};

static const Member recv_members[] = {
    NUM(RoceRecvWqe, wr_id),
    NUM(RoceRecvWqe, status),
    NUM(RoceRecvWqe, num_sge),
    { }
};

static const Member sge_members[] = {
    NUM(RdmaSge, addr),
    NUM(RdmaSge, length),
    NUM(RdmaSge, lkey),
    { }
};

static const Member res_members[] = {
    NUM(RoceResource, va),
    NUM(RoceResource, result),
    NUM(RoceResource, type),
    NUM(RoceResource, opcode),
    NUM(RoceResource, rkey),
    NUM(RoceResource, len),
    NUM(RoceResource, psn),
    NUM(RoceResource, npsn),
    NUM(RoceResource, msn),
    NUM(RoceResource, first),
    NUM(RoceResource, pending),
    NUM(RoceResource, reply_va),
    NUM(RoceResource, reply_len),
    NUM(RoceResource, reply_off),
    NUM(RoceResource, reply_psn),
    { }
};

static int put_members(QEMUFile *f, const void *pv, const Member *m)
{
    for (; m->size; m++) {
        const void *p = (const uint8_t *)pv + m->offset;

        if (m->is_bytes) {
            qemu_put_buffer(f, p, m->size);
        } else if (m->size == sizeof(uint64_t)) {
            qemu_put_be64(f, *(const uint64_t *)p);
        } else if (m->size == sizeof(uint32_t)) {
            qemu_put_be32(f, *(const uint32_t *)p);
        } else {
            qemu_put_byte(f, *(const uint8_t *)p);
        }
    }
    return 0;
}

/* At the end of the stream numbers are 0; the caller finds the file's error. */
static int get_members(QEMUFile *f, void *pv, const Member *m)
{
    for (; m->size; m++) {
        void *p = (uint8_t *)pv + m->offset;

        if (m->is_bytes) {
            qemu_get_buffer(f, p, m->size);
        } else if (m->size == sizeof(uint64_t)) {
            *(uint64_t *)p = qemu_get_be64(f);
        } else if (m->size == sizeof(uint32_t)) {
            *(uint32_t *)p = qemu_get_be32(f);
        } else {
            *(uint8_t *)p = qemu_get_byte(f);
        }
    }
    return 0;
}

#define ELEMENT(kind, name_)                                                \
static int put_##kind(QEMUFile *f, void *pv, size_t size,                   \
                      const VMStateField *field, JSONWriter *vmdesc)        \
{                                                                           \
    return put_members(f, pv, kind##_members);                              \
}                                                                           \
                                                                            \
static int get_##kind(QEMUFile *f, void *pv, size_t size,                   \
                      const VMStateField *field)                            \
{                                                                           \
    return get_members(f, pv, kind##_members);                              \
}                                                                           \
                                                                            \
const VMStateInfo vmstate_info_roce_##kind = {                              \
    .name = name_,                                                          \
    .get = get_##kind,                                                      \
    .put = put_##kind,                                                      \
};

ELEMENT(send, "rdma-roce send WQE")
ELEMENT(recv, "rdma-roce receive WQE")
ELEMENT(sge, "rdma-roce SGE")
ELEMENT(res, "rdma-roce responder resource")
