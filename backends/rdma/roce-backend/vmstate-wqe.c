/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: elements of queues.
 *
 * Guest and peers choose most of these bytes. VMState looks for a subsection
 * behind each structure (VMS_STRUCT), so a guest could write the name of one
 * there, and its migration would fail. Behind a field there is no such search:
 * an element is a single field, whose VMStateInfo knows its members.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "rdma/roce-state.h"
#include "vmstate.h"

static void put_av(QEMUFile *f, const RdmaAv *av)
{
    qemu_put_buffer(f, av->dgid, sizeof(av->dgid));
    qemu_put_buffer(f, av->dmac, sizeof(av->dmac));
    qemu_put_byte(f, av->sgid_index);
    qemu_put_byte(f, av->hop_limit);
    qemu_put_byte(f, av->traffic_class);
    qemu_put_byte(f, av->sl);
    qemu_put_byte(f, av->static_rate);
    qemu_put_byte(f, av->port_num);
    qemu_put_byte(f, av->ah_flags);
    qemu_put_be32(f, av->flow_label);
}

static void get_av(QEMUFile *f, RdmaAv *av)
{
    qemu_get_buffer(f, av->dgid, sizeof(av->dgid));
    qemu_get_buffer(f, av->dmac, sizeof(av->dmac));
    av->sgid_index = qemu_get_byte(f);
    av->hop_limit = qemu_get_byte(f);
    av->traffic_class = qemu_get_byte(f);
    av->sl = qemu_get_byte(f);
    av->static_rate = qemu_get_byte(f);
    av->port_num = qemu_get_byte(f);
    av->ah_flags = qemu_get_byte(f);
    av->flow_label = qemu_get_be32(f);
}

static int put_send(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field, JSONWriter *vmdesc)
{
    const RoceSendImage *send = pv;
    const RoceSendWqe *wqe = &send->wqe;
    const RoceSendArgs *args = &send->args;

    qemu_put_be64(f, wqe->wr_id);
    qemu_put_be64(f, wqe->remote_addr);
    qemu_put_be64(f, args->reg_length);
    qemu_put_be64(f, args->compare_add);
    qemu_put_be64(f, args->swap);
    qemu_put_be32(f, wqe->status);
    qemu_put_be32(f, wqe->opcode);
    qemu_put_be32(f, wqe->send_flags);
    qemu_put_be32(f, wqe->num_sge);
    qemu_put_be32(f, wqe->length);
    qemu_put_be32(f, wqe->rkey);
    qemu_put_be32(f, wqe->invalidate_rkey);
    qemu_put_be32(f, args->lkey);
    qemu_put_be32(f, args->remote_qpn);
    qemu_put_be32(f, args->remote_qkey);
    qemu_put_be32(f, args->mrn);
    qemu_put_be32(f, args->access);
    qemu_put_be32(f, wqe->npages);
    qemu_put_be32(f, wqe->first_psn);
    qemu_put_be32(f, wqe->npsn);
    qemu_put_buffer(f, wqe->imm, sizeof(wqe->imm));
    qemu_put_byte(f, wqe->is_inline);
    qemu_put_byte(f, wqe->done);
    put_av(f, &args->av);
    return 0;
}

/* At the stream's end numbers are 0, and the caller finds the file's error. */
static int get_send(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field)
{
    RoceSendImage *send = pv;
    RoceSendWqe *wqe = &send->wqe;
    RoceSendArgs *args = &send->args;

    wqe->wr_id = qemu_get_be64(f);
    wqe->remote_addr = qemu_get_be64(f);
    args->reg_length = qemu_get_be64(f);
    args->compare_add = qemu_get_be64(f);
    args->swap = qemu_get_be64(f);
    wqe->status = qemu_get_be32(f);
    wqe->opcode = qemu_get_be32(f);
    wqe->send_flags = qemu_get_be32(f);
    wqe->num_sge = qemu_get_be32(f);
    wqe->length = qemu_get_be32(f);
    wqe->rkey = qemu_get_be32(f);
    wqe->invalidate_rkey = qemu_get_be32(f);
    args->lkey = qemu_get_be32(f);
    args->remote_qpn = qemu_get_be32(f);
    args->remote_qkey = qemu_get_be32(f);
    args->mrn = qemu_get_be32(f);
    args->access = qemu_get_be32(f);
    wqe->npages = qemu_get_be32(f);
    wqe->first_psn = qemu_get_be32(f);
    wqe->npsn = qemu_get_be32(f);
    qemu_get_buffer(f, wqe->imm, sizeof(wqe->imm));
    wqe->is_inline = qemu_get_byte(f);
    wqe->done = qemu_get_byte(f);
    get_av(f, &args->av);
    return 0;
}

const VMStateInfo vmstate_info_roce_send = {
    .name = "rdma-roce send WQE",
    .get = get_send,
    .put = put_send,
};

static int put_recv(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field, JSONWriter *vmdesc)
{
    const RoceRecvWqe *wqe = pv;

    qemu_put_be64(f, wqe->wr_id);
    qemu_put_be32(f, wqe->status);
    qemu_put_be32(f, wqe->num_sge);
    return 0;
}

static int get_recv(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field)
{
    RoceRecvWqe *wqe = pv;

    wqe->wr_id = qemu_get_be64(f);
    wqe->status = qemu_get_be32(f);
    wqe->num_sge = qemu_get_be32(f);
    return 0;
}

const VMStateInfo vmstate_info_roce_recv = {
    .name = "rdma-roce receive WQE",
    .get = get_recv,
    .put = put_recv,
};

static int put_sge(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field, JSONWriter *vmdesc)
{
    const RdmaSge *sge = pv;

    qemu_put_be64(f, sge->addr);
    qemu_put_be32(f, sge->length);
    qemu_put_be32(f, sge->lkey);
    return 0;
}

static int get_sge(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field)
{
    RdmaSge *sge = pv;

    sge->addr = qemu_get_be64(f);
    sge->length = qemu_get_be32(f);
    sge->lkey = qemu_get_be32(f);
    return 0;
}

const VMStateInfo vmstate_info_roce_sge = {
    .name = "rdma-roce SGE",
    .get = get_sge,
    .put = put_sge,
};

static int put_res(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field, JSONWriter *vmdesc)
{
    const RoceResource *r = pv;

    qemu_put_be64(f, r->va);
    qemu_put_be64(f, r->result);
    qemu_put_be32(f, r->type);
    qemu_put_be32(f, r->opcode);
    qemu_put_be32(f, r->rkey);
    qemu_put_be32(f, r->len);
    qemu_put_be32(f, r->psn);
    qemu_put_be32(f, r->npsn);
    qemu_put_be32(f, r->msn);
    qemu_put_byte(f, r->first);
    qemu_put_byte(f, r->pending);
    qemu_put_be64(f, r->reply_va);
    qemu_put_be32(f, r->reply_len);
    qemu_put_be32(f, r->reply_off);
    qemu_put_be32(f, r->reply_psn);
    return 0;
}

static int get_res(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field)
{
    RoceResource *r = pv;

    r->va = qemu_get_be64(f);
    r->result = qemu_get_be64(f);
    r->type = qemu_get_be32(f);
    r->opcode = qemu_get_be32(f);
    r->rkey = qemu_get_be32(f);
    r->len = qemu_get_be32(f);
    r->psn = qemu_get_be32(f);
    r->npsn = qemu_get_be32(f);
    r->msn = qemu_get_be32(f);
    r->first = qemu_get_byte(f);
    r->pending = qemu_get_byte(f);
    r->reply_va = qemu_get_be64(f);
    r->reply_len = qemu_get_be32(f);
    r->reply_off = qemu_get_be32(f);
    r->reply_psn = qemu_get_be32(f);
    return 0;
}

const VMStateInfo vmstate_info_roce_res = {
    .name = "rdma-roce responder resource",
    .get = get_res,
    .put = put_res,
};
