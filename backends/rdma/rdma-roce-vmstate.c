/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: its engine's objects, one after the other.
 *
 * The stream is not trusted. The engine checks every field of an object, the
 * device that it has such an object; what decides how much memory is
 * allocated is checked before.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "rdma/roce-state.h"
#include "rdma-roce-vmstate.h"

/* Enumerations have the size of an int, and the compilers agree. */
QEMU_BUILD_BUG_ON(sizeof(RdmaQpType) != sizeof(uint32_t));
QEMU_BUILD_BUG_ON(sizeof(RdmaMrType) != sizeof(uint32_t));

#define VMSTATE_ENUM(field_, state) {           \
    .name = #field_,                            \
    .info = &vmstate_info_uint32,               \
    .size = sizeof(uint32_t),                   \
    .flags = VMS_SINGLE,                        \
    .offset = offsetof(state, field_),          \
}

/* An array of structures whose memory is there already. */
#define VMSTATE_LIST(field_, num, state, vmsd_, type) {         \
    .name = #field_,                                            \
    .version_id = 1,                                            \
    .vmsd = &(vmsd_),                                           \
    .num_offset = vmstate_offset_value(state, num, uint32_t),   \
    .size = sizeof(type),                                       \
    .flags = VMS_STRUCT | VMS_VARRAY_UINT32 | VMS_POINTER,      \
    .offset = vmstate_offset_pointer(state, field_, type),      \
}

/* A list that is saved and loaded by functions of its own. */
#define VMSTATE_OBJECTS(name_, info_) {         \
    .name = name_,                              \
    .info = &(info_),                           \
    .flags = VMS_SINGLE,                        \
}

/* Memory regions */

static const VMStateDescription vmstate_mr = {
    .name = "rdma-roce/mr",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(attr.mrn, RoceMrImage),
        VMSTATE_UINT32(attr.pdn, RoceMrImage),
        VMSTATE_ENUM(attr.type, RoceMrImage),
        VMSTATE_UINT32(attr.access, RoceMrImage),
        VMSTATE_UINT32(attr.lkey, RoceMrImage),
        VMSTATE_UINT32(attr.rkey, RoceMrImage),
        VMSTATE_UINT64(attr.iova, RoceMrImage),
        VMSTATE_UINT64(attr.length, RoceMrImage),
        VMSTATE_UINT32(attr.npages, RoceMrImage),
        VMSTATE_UINT32(attr.max_pages, RoceMrImage),
        VMSTATE_UINT8(valid, RoceMrImage),
        VMSTATE_UINT8(pending, RoceMrImage),
        VMSTATE_UINT64(pending_iova, RoceMrImage),
        VMSTATE_UINT64(pending_length, RoceMrImage),
        VMSTATE_UINT32(pending_npages, RoceMrImage),
        VMSTATE_END_OF_LIST()
    },
};

/* Page lists may be long: they are not saved number by number. */
static void put_pages(QEMUFile *f, uint64_t *pages, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        pages[i] = cpu_to_be64(pages[i]);
    }
    qemu_put_buffer(f, (uint8_t *)pages, n * sizeof(*pages));
}

static uint64_t *get_pages(QEMUFile *f, uint32_t n)
{
    size_t size = n * sizeof(uint64_t);
    uint64_t *pages = g_new(uint64_t, n);

    if (qemu_get_buffer(f, (uint8_t *)pages, size) != size) {
        memset(pages, 0, size);
    }
    for (uint32_t i = 0; i < n; i++) {
        pages[i] = be64_to_cpu(pages[i]);
    }
    return pages;
}

static int put_mrs(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaBackend *rb = pv;
    RoceEngine *e = rdma_roce_engine(rb);
    RoceMrImage image;
    uint32_t count = 0;
    int ret;

    for (uint32_t n = 1; n <= rb->limits.max_mr; n++) {
        count += roce_has_mr(e, n);
    }
    qemu_put_be32(f, count);
    for (uint32_t n = 1; n <= rb->limits.max_mr; n++) {
        if (roce_export_mr(e, n, &image)) {
            continue;
        }
        ret = vmstate_save_state(f, &vmstate_mr, &image, NULL);
        if (!ret) {
            put_pages(f, image.attr.pages, image.attr.npages);
            put_pages(f, image.pending_pages, image.pending_npages);
        }
        roce_mr_image_clear(&image);
        if (ret) {
            return ret;
        }
    }
    return 0;
}

static int get_mr(QEMUFile *f, RdmaBackend *rb)
{
    RoceMrImage image = {};
    const char *why;
    int ret = vmstate_load_state(f, &vmstate_mr, &image, 1);

    if (ret) {
        return ret;
    }
    if (!rb->client_ops->loaded_mr(rb->client_opaque, &image.attr,
                                   (uint64_t)image.attr.npages +
                                   image.pending_npages)) {
        error_report("rdma-roce: memory region %u of the migration stream "
                     "is not the device's", image.attr.mrn);
        return -EINVAL;
    }
    image.attr.pages = get_pages(f, image.attr.npages);
    image.pending_pages = get_pages(f, image.pending_npages);
    ret = roce_import_mr(rdma_roce_engine(rb), &image, &why);
    if (ret) {
        error_report("rdma-roce: bad memory region %u in the migration "
                     "stream: %s", image.attr.mrn, why);
    }
    roce_mr_image_clear(&image);
    return ret;
}

static int get_mrs(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field)
{
    uint32_t count = qemu_get_be32(f);
    int ret = 0;

    /* One too many has a number that is in use */
    for (uint32_t i = 0; i < count && !ret; i++) {
        ret = get_mr(f, pv);
    }
    return ret;
}

static const VMStateInfo vmstate_info_mrs = {
    .name = "rdma-roce memory regions",
    .get = get_mrs,
    .put = put_mrs,
};

/* Queue pairs: parts that are structures of their own */

static const VMStateDescription vmstate_cap = {
    .name = "rdma-roce/cap",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(max_send_wr, RdmaQpCap),
        VMSTATE_UINT32(max_recv_wr, RdmaQpCap),
        VMSTATE_UINT32(max_send_sge, RdmaQpCap),
        VMSTATE_UINT32(max_recv_sge, RdmaQpCap),
        VMSTATE_UINT32(max_inline_data, RdmaQpCap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_init_attr = {
    .name = "rdma-roce/init",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(qpn, RdmaQpInitAttr),
        VMSTATE_UINT32(pdn, RdmaQpInitAttr),
        VMSTATE_ENUM(qp_type, RdmaQpInitAttr),
        VMSTATE_BOOL(sq_sig_all, RdmaQpInitAttr),
        VMSTATE_UINT32(send_cqn, RdmaQpInitAttr),
        VMSTATE_UINT32(recv_cqn, RdmaQpInitAttr),
        VMSTATE_STRUCT(cap, RdmaQpInitAttr, 1, vmstate_cap, RdmaQpCap),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_av = {
    .name = "rdma-roce/av",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_BUFFER(dgid, RdmaAv),
        VMSTATE_BUFFER(dmac, RdmaAv),
        VMSTATE_UINT8(sgid_index, RdmaAv),
        VMSTATE_UINT8(hop_limit, RdmaAv),
        VMSTATE_UINT8(traffic_class, RdmaAv),
        VMSTATE_UINT8(sl, RdmaAv),
        VMSTATE_UINT8(static_rate, RdmaAv),
        VMSTATE_UINT8(port_num, RdmaAv),
        VMSTATE_UINT8(ah_flags, RdmaAv),
        VMSTATE_UINT32(flow_label, RdmaAv),
        VMSTATE_END_OF_LIST()
    },
};

/* What modify sets. There are no alternate paths, and caps do not change. */
static const VMStateDescription vmstate_attr = {
    .name = "rdma-roce/attr",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(qp_state, RdmaQpAttr),
        VMSTATE_UINT8(path_mtu, RdmaQpAttr),
        VMSTATE_UINT8(path_mig_state, RdmaQpAttr),
        VMSTATE_UINT32(qkey, RdmaQpAttr),
        VMSTATE_UINT32(dest_qp_num, RdmaQpAttr),
        VMSTATE_UINT32(qp_access_flags, RdmaQpAttr),
        VMSTATE_UINT16(pkey_index, RdmaQpAttr),
        VMSTATE_UINT8(en_sqd_async_notify, RdmaQpAttr),
        VMSTATE_UINT8(max_rd_atomic, RdmaQpAttr),
        VMSTATE_UINT8(max_dest_rd_atomic, RdmaQpAttr),
        VMSTATE_UINT8(min_rnr_timer, RdmaQpAttr),
        VMSTATE_UINT8(port_num, RdmaQpAttr),
        VMSTATE_UINT8(timeout, RdmaQpAttr),
        VMSTATE_UINT8(retry_cnt, RdmaQpAttr),
        VMSTATE_UINT8(rnr_retry, RdmaQpAttr),
        VMSTATE_STRUCT(ah_attr, RdmaQpAttr, 1, vmstate_av, RdmaAv),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_sq = {
    .name = "rdma-roce/sq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cons, RoceSqState),
        VMSTATE_UINT32(cur, RoceSqState),
        VMSTATE_UINT32(cur_pkt, RoceSqState),
        VMSTATE_UINT32(started, RoceSqState),
        VMSTATE_UINT32(prod, RoceSqState),
        VMSTATE_UINT32(una, RoceSqState),
        VMSTATE_UINT32(psn, RoceSqState),
        VMSTATE_UINT32(sent, RoceSqState),
        VMSTATE_UINT32(end, RoceSqState),
        VMSTATE_UINT32(rd_atomic, RoceSqState),
        VMSTATE_UINT32(rd_psns, RoceSqState),
        VMSTATE_UINT32(unrequested, RoceSqState),
        VMSTATE_UINT8(retries, RoceSqState),
        VMSTATE_UINT8(rnr_retries, RoceSqState),
        VMSTATE_UINT8(gap_handled, RoceSqState),
        VMSTATE_UINT8(rnr_wait, RoceSqState),
        VMSTATE_UINT8(draining, RoceSqState),
        VMSTATE_INT64(ack_deadline, RoceSqState),
        VMSTATE_INT64(rnr_deadline, RoceSqState),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_rq = {
    .name = "rdma-roce/rq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cons, RoceRqState),
        VMSTATE_UINT32(prod, RoceRqState),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_resp = {
    .name = "rdma-roce/resp",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(epsn, RoceRespState),
        VMSTATE_UINT32(msn, RoceRespState),
        VMSTATE_UINT32(op, RoceRespState),
        VMSTATE_UINT32(offset, RoceRespState),
        VMSTATE_UINT64(write_va, RoceRespState),
        VMSTATE_UINT32(write_rkey, RoceRespState),
        VMSTATE_UINT32(write_len, RoceRespState),
        VMSTATE_UINT32(res_prod, RoceRespState),
        VMSTATE_UINT32(res_out, RoceRespState),
        VMSTATE_UINT32(ack_kind, RoceRespState),
        VMSTATE_UINT32(ack_psn, RoceRespState),
        VMSTATE_UINT8(ack_syndrome, RoceRespState),
        VMSTATE_UINT8(nak_sent, RoceRespState),
        VMSTATE_UINT8(comm_est, RoceRespState),
        VMSTATE_UINT8(closing, RoceRespState),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_sge = {
    .name = "rdma-roce/sge",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(addr, RdmaSge),
        VMSTATE_UINT32(length, RdmaSge),
        VMSTATE_UINT32(lkey, RdmaSge),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_send = {
    .name = "rdma-roce/send",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(wr_id, RoceSendWqe),
        VMSTATE_UINT64(remote_addr, RoceSendWqe),
        VMSTATE_UINT64(compare_add, RoceSendWqe),
        VMSTATE_UINT64(swap, RoceSendWqe),
        VMSTATE_UINT32(status, RoceSendWqe),
        VMSTATE_UINT32(opcode, RoceSendWqe),
        VMSTATE_UINT32(send_flags, RoceSendWqe),
        VMSTATE_UINT32(num_sge, RoceSendWqe),
        VMSTATE_UINT32(length, RoceSendWqe),
        VMSTATE_UINT32(rkey, RoceSendWqe),
        VMSTATE_UINT32(invalidate_rkey, RoceSendWqe),
        VMSTATE_UINT32(remote_qpn, RoceSendWqe),
        VMSTATE_UINT32(remote_qkey, RoceSendWqe),
        VMSTATE_UINT32(mrn, RoceSendWqe),
        VMSTATE_UINT32(access, RoceSendWqe),
        VMSTATE_UINT32(first_psn, RoceSendWqe),
        VMSTATE_UINT32(npsn, RoceSendWqe),
        VMSTATE_BUFFER(imm, RoceSendWqe),
        VMSTATE_UINT8(is_inline, RoceSendWqe),
        VMSTATE_UINT8(done, RoceSendWqe),
        VMSTATE_STRUCT(av, RoceSendWqe, 1, vmstate_av, RdmaAv),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_recv = {
    .name = "rdma-roce/recv",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(wr_id, RoceRecvWqe),
        VMSTATE_UINT32(status, RoceRecvWqe),
        VMSTATE_UINT32(num_sge, RoceRecvWqe),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_res = {
    .name = "rdma-roce/res",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(va, RoceResource),
        VMSTATE_UINT64(result, RoceResource),
        VMSTATE_UINT32(type, RoceResource),
        VMSTATE_UINT32(opcode, RoceResource),
        VMSTATE_UINT32(rkey, RoceResource),
        VMSTATE_UINT32(len, RoceResource),
        VMSTATE_UINT32(psn, RoceResource),
        VMSTATE_UINT32(npsn, RoceResource),
        VMSTATE_UINT32(msn, RoceResource),
        VMSTATE_UINT8(first, RoceResource),
        VMSTATE_UINT8(pending, RoceResource),
        VMSTATE_UINT64(reply_va, RoceResource),
        VMSTATE_UINT32(reply_len, RoceResource),
        VMSTATE_UINT32(reply_off, RoceResource),
        VMSTATE_UINT32(reply_psn, RoceResource),
        VMSTATE_END_OF_LIST()
    },
};

/* Queue pairs */

/* What comes first says how much follows. */
static const VMStateDescription vmstate_qp = {
    .name = "rdma-roce/qp",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(init, RoceQpImage, 1, vmstate_init_attr,
                       RdmaQpInitAttr),
        VMSTATE_STRUCT(s.attr, RoceQpImage, 1, vmstate_attr, RdmaQpAttr),
        VMSTATE_STRUCT(s.sq, RoceQpImage, 1, vmstate_sq, RoceSqState),
        VMSTATE_STRUCT(s.rq, RoceQpImage, 1, vmstate_rq, RoceRqState),
        VMSTATE_STRUCT(s.resp, RoceQpImage, 1, vmstate_resp, RoceRespState),
        VMSTATE_UINT8(send_cq_dead, RoceQpImage),
        VMSTATE_UINT8(recv_cq_dead, RoceQpImage),
        VMSTATE_UINT32(n_send, RoceQpImage),
        VMSTATE_UINT32(n_send_sges, RoceQpImage),
        VMSTATE_UINT32(inline_len, RoceQpImage),
        VMSTATE_UINT32(n_recv, RoceQpImage),
        VMSTATE_UINT32(n_recv_sges, RoceQpImage),
        VMSTATE_UINT32(n_res, RoceQpImage),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_queues = {
    .name = "rdma-roce/queues",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_LIST(send, n_send, RoceQpImage, vmstate_send, RoceSendWqe),
        VMSTATE_LIST(send_sges, n_send_sges, RoceQpImage, vmstate_sge,
                     RdmaSge),
        VMSTATE_VBUFFER_UINT32(inline_data, RoceQpImage, 1, NULL,
                               inline_len),
        VMSTATE_LIST(recv, n_recv, RoceQpImage, vmstate_recv, RoceRecvWqe),
        VMSTATE_LIST(recv_sges, n_recv_sges, RoceQpImage, vmstate_sge,
                     RdmaSge),
        VMSTATE_LIST(res, n_res, RoceQpImage, vmstate_res, RoceResource),
        VMSTATE_END_OF_LIST()
    },
};

static RdmaQpCap max_cap(const RdmaBackend *rb)
{
    return (RdmaQpCap) {
        .max_send_wr = rb->limits.max_qp_wr,
        .max_recv_wr = rb->limits.max_qp_wr,
        .max_send_sge = rb->limits.max_send_sge,
        .max_recv_sge = rb->limits.max_recv_sge,
        .max_inline_data = rb->limits.max_inline_data,
    };
}

static int put_qps(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaBackend *rb = pv;
    RoceEngine *e = rdma_roce_engine(rb);
    uint32_t count = 0;
    RoceQpImage image;
    int ret;

    for (uint32_t n = 0; n < rb->limits.max_qp; n++) {
        count += roce_has_qp(e, n);
    }
    qemu_put_be32(f, count);
    for (uint32_t n = 0; n < rb->limits.max_qp; n++) {
        if (!roce_has_qp(e, n)) {
            continue;
        }
        ret = roce_export_qp(e, n, &image);
        if (ret) {
            return ret;
        }
        ret = vmstate_save_state(f, &vmstate_qp, &image, NULL);
        if (!ret) {
            ret = vmstate_save_state(f, &vmstate_queues, &image, NULL);
        }
        roce_qp_image_clear(&image);
        if (ret) {
            return ret;
        }
    }
    return 0;
}

/* Can a QP of this backend have so many? */
static bool counts_ok(const RoceQpImage *image, const RdmaBackend *rb)
{
    RdmaQpCap max = max_cap(rb);

    return image->n_send <= max.max_send_wr &&
           image->n_send_sges <= (uint64_t)image->n_send * max.max_send_sge &&
           image->inline_len <=
           (uint64_t)image->n_send * max.max_inline_data &&
           image->n_recv <= max.max_recv_wr &&
           image->n_recv_sges <= (uint64_t)image->n_recv * max.max_recv_sge &&
           image->n_res <= 2 * rb->limits.max_rd_atomic;
}

static int get_queues(QEMUFile *f, RdmaBackend *rb, RoceQpImage *image)
{
    RdmaQpCap max = max_cap(rb);
    const char *why;
    int ret;

    image->send = g_new0(RoceSendWqe, image->n_send);
    image->send_sges = g_new0(RdmaSge, image->n_send_sges);
    image->inline_data = g_malloc0(image->inline_len);
    image->recv = g_new0(RoceRecvWqe, image->n_recv);
    image->recv_sges = g_new0(RdmaSge, image->n_recv_sges);
    image->res = g_new0(RoceResource, image->n_res);
    ret = vmstate_load_state(f, &vmstate_queues, image, 1);
    if (!ret) {
        ret = roce_import_qp(rdma_roce_engine(rb), image, &max, &why);
        if (ret) {
            error_report("rdma-roce: bad queue pair %u in the migration "
                         "stream: %s", image->init.qpn, why);
        }
    }
    roce_qp_image_clear(image);
    return ret;
}

static int get_qp(QEMUFile *f, RdmaBackend *rb)
{
    RoceQpImage image = {};
    int ret = vmstate_load_state(f, &vmstate_qp, &image, 1);

    if (ret) {
        return ret;
    }
    if (!counts_ok(&image, rb) ||
        !rb->client_ops->loaded_qp(rb->client_opaque, &image.init,
                                   image.n_send, image.n_recv)) {
        error_report("rdma-roce: queue pair %u of the migration stream is "
                     "not the device's", image.init.qpn);
        return -EINVAL;
    }
    return get_queues(f, rb, &image);
}

static int get_qps(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field)
{
    uint32_t count = qemu_get_be32(f);
    int ret = 0;

    for (uint32_t i = 0; i < count && !ret; i++) {
        ret = get_qp(f, pv);
    }
    return ret;
}

static const VMStateInfo vmstate_info_qps = {
    .name = "rdma-roce queue pairs",
    .get = get_qps,
    .put = put_qps,
};

/* GIDs */

static int put_gids(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaBackend *rb = pv;
    RoceEngine *e = rdma_roce_engine(rb);
    uint8_t gid[RDMA_GID_LEN];
    uint32_t count = 0;

    for (uint32_t n = 0; n < rb->limits.gid_table_len; n++) {
        count += roce_get_gid(e, n, gid);
    }
    qemu_put_be32(f, count);
    for (uint32_t n = 0; n < rb->limits.gid_table_len; n++) {
        if (roce_get_gid(e, n, gid)) {
            qemu_put_be32(f, n);
            qemu_put_buffer(f, gid, sizeof(gid));
        }
    }
    return 0;
}

static int get_gids(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field)
{
    RdmaBackend *rb = pv;
    RoceEngine *e = rdma_roce_engine(rb);
    uint32_t count = qemu_get_be32(f);

    if (count > rb->limits.gid_table_len) {
        error_report("rdma-roce: %u GIDs in the migration stream, but "
                     "gid-table-len is %u", count, rb->limits.gid_table_len);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = qemu_get_be32(f);
        uint8_t gid[RDMA_GID_LEN];

        if (qemu_get_buffer(f, gid, sizeof(gid)) != sizeof(gid) ||
            roce_add_gid(e, index, gid, RDMA_NO_VLAN)) {
            error_report("rdma-roce: bad GID %u in the migration stream",
                         index);
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateInfo vmstate_info_gids = {
    .name = "rdma-roce GIDs",
    .get = get_gids,
    .put = put_gids,
};

/* Counters: the guest sees two of them, and none of them goes back. */

#define NUM_STATS (sizeof(RoceStats) / sizeof(uint64_t))

static int put_stats(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field, JSONWriter *vmdesc)
{
    const uint64_t *stats =
        (const uint64_t *)roce_stats(rdma_roce_engine(pv));

    qemu_put_be32(f, NUM_STATS);
    for (size_t i = 0; i < NUM_STATS; i++) {
        qemu_put_be64(f, stats[i]);
    }
    return 0;
}

static int get_stats(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field)
{
    uint32_t count = qemu_get_be32(f);
    union {
        RoceStats stats;
        uint64_t value[NUM_STATS];
    } u = {};

    /* Others may have fewer, and none that are not at the end */
    if (count > NUM_STATS) {
        error_report("rdma-roce: %u counters in the migration stream",
                     count);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        u.value[i] = qemu_get_be64(f);
    }
    roce_import_stats(rdma_roce_engine(pv), &u.stats);
    return 0;
}

static const VMStateInfo vmstate_info_stats = {
    .name = "rdma-roce counters",
    .get = get_stats,
    .put = put_stats,
};

static bool stats_needed(void *opaque)
{
    static const RoceStats none;

    return memcmp(roce_stats(rdma_roce_engine(opaque)), &none,
                  sizeof(none)) != 0;
}

static const VMStateDescription vmstate_stats = {
    .name = "rdma-roce/counters",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = stats_needed,
    .fields = (const VMStateField[]) {
        VMSTATE_OBJECTS("counters", vmstate_info_stats),
        VMSTATE_END_OF_LIST()
    },
};

static int roce_pre_load(void *opaque)
{
    roce_reset(rdma_roce_engine(opaque));
    return 0;
}

const VMStateDescription vmstate_rdma_roce = {
    .name = "rdma-roce",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = roce_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_OBJECTS("gids", vmstate_info_gids),
        VMSTATE_OBJECTS("mrs", vmstate_info_mrs),
        VMSTATE_OBJECTS("qps", vmstate_info_qps),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_stats,
        NULL
    },
};
