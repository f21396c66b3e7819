/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: queue pairs and shared receive queues.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "qemu/error-report.h"
#include "rdma/roce-state.h"
#include "rdma-roce-vmstate.h"

QEMU_BUILD_BUG_ON(sizeof(RdmaQpType) != sizeof(uint32_t));

/* Parts that are structures of their own */

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
        VMSTATE_BOOL(has_srq, RdmaQpInitAttr),
        VMSTATE_UINT32(srqn, RdmaQpInitAttr),
        VMSTATE_BOOL(block_mcast_loopback, RdmaQpInitAttr),
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
        VMSTATE_UINT32(rate_limit, RdmaQpAttr),
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
        VMSTATE_INT64(send_at, RoceSqState),
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
        VMSTATE_UINT64(reg_length, RoceSendWqe),
        VMSTATE_UINT64(compare_add, RoceSendWqe),
        VMSTATE_UINT64(swap, RoceSendWqe),
        VMSTATE_UINT32(status, RoceSendWqe),
        VMSTATE_UINT32(opcode, RoceSendWqe),
        VMSTATE_UINT32(send_flags, RoceSendWqe),
        VMSTATE_UINT32(num_sge, RoceSendWqe),
        VMSTATE_UINT32(length, RoceSendWqe),
        VMSTATE_UINT32(rkey, RoceSendWqe),
        VMSTATE_UINT32(invalidate_rkey, RoceSendWqe),
        VMSTATE_UINT32(lkey, RoceSendWqe),
        VMSTATE_UINT32(remote_qpn, RoceSendWqe),
        VMSTATE_UINT32(remote_qkey, RoceSendWqe),
        VMSTATE_UINT32(mrn, RoceSendWqe),
        VMSTATE_UINT32(access, RoceSendWqe),
        VMSTATE_UINT32(npages, RoceSendWqe),
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

/* Shared receive queues */

static const VMStateDescription vmstate_srq = {
    .name = "rdma-roce/srq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(attr.srqn, RoceSrqImage),
        VMSTATE_UINT32(attr.pdn, RoceSrqImage),
        VMSTATE_UINT32(attr.max_wr, RoceSrqImage),
        VMSTATE_UINT32(attr.max_sge, RoceSrqImage),
        VMSTATE_UINT32(attr.limit, RoceSrqImage),
        VMSTATE_UINT32(n_recv, RoceSrqImage),
        VMSTATE_UINT32(n_recv_sges, RoceSrqImage),
        VMSTATE_END_OF_LIST()
    },
};

static void put_recvs(QEMUFile *f, const RoceRecvWqe *recv, uint32_t n,
                      const RdmaSge *sges, uint32_t n_sges)
{
    rdma_roce_put_records(f, &vmstate_recv, recv, sizeof(*recv), n);
    rdma_roce_put_records(f, &vmstate_sge, sges, sizeof(*sges), n_sges);
}

static int get_recvs(QEMUFile *f, RoceRecvWqe *recv, uint32_t n,
                     RdmaSge *sges, uint32_t n_sges)
{
    return rdma_roce_get_records(f, &vmstate_recv, recv, sizeof(*recv), n) ?:
           rdma_roce_get_records(f, &vmstate_sge, sges, sizeof(*sges),
                                 n_sges);
}

static int put_srq(QEMUFile *f, RoceEngine *e, uint32_t srqn)
{
    RoceSrqImage image;
    int ret = roce_export_srq(e, srqn, &image);

    if (!ret) {
        rdma_roce_put_records(f, &vmstate_srq, &image, sizeof(image), 1);
        put_recvs(f, image.recv, image.n_recv, image.recv_sges,
                  image.n_recv_sges);
        roce_srq_image_clear(&image);
    }
    return ret;
}

static int put_srqs(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaBackend *rb = pv;

    return rdma_roce_put_objects(f, rb, rb->limits.max_srq, roce_has_srq,
                                 put_srq);
}

static int get_srq(QEMUFile *f, RdmaBackend *rb)
{
    RdmaSrqAttr max = {
        .max_wr = rb->limits.max_srq_wr,
        .max_sge = rb->limits.max_srq_sge,
    };
    RoceSrqImage image = {};
    const char *why;
    int ret = rdma_roce_get_records(f, &vmstate_srq, &image, sizeof(image),
                                    1);

    if (ret) {
        return ret;
    }
    if (image.n_recv > max.max_wr ||
        image.n_recv_sges > (uint64_t)image.n_recv * max.max_sge ||
        !rb->client_ops->loaded_srq(rb->client_opaque, &image.attr)) {
        error_report("rdma-roce: shared receive queue %u of the migration "
                     "stream is not the device's", image.attr.srqn);
        return -EINVAL;
    }
    image.recv = g_new0(RoceRecvWqe, image.n_recv);
    image.recv_sges = g_new0(RdmaSge, image.n_recv_sges);
    ret = get_recvs(f, image.recv, image.n_recv, image.recv_sges,
                    image.n_recv_sges);
    if (!ret) {
        ret = roce_import_srq(rdma_roce_engine(rb), &image, &max, &why);
        if (ret) {
            error_report("rdma-roce: bad shared receive queue %u in the "
                         "migration stream: %s", image.attr.srqn, why);
        }
    }
    roce_srq_image_clear(&image);
    return ret;
}

static int get_srqs(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field)
{
    return rdma_roce_get_objects(f, pv, get_srq);
}

const VMStateInfo vmstate_info_roce_srqs = {
    .name = "rdma-roce shared receive queues",
    .get = get_srqs,
    .put = put_srqs,
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
        VMSTATE_UINT32(n_pages, RoceQpImage),
        VMSTATE_UINT32(n_recv, RoceQpImage),
        VMSTATE_UINT32(n_recv_sges, RoceQpImage),
        VMSTATE_UINT32(n_res, RoceQpImage),
        VMSTATE_END_OF_LIST()
    },
};

static void put_queues(QEMUFile *f, const RoceQpImage *image)
{
    rdma_roce_put_records(f, &vmstate_send, image->send,
                          sizeof(*image->send), image->n_send);
    rdma_roce_put_records(f, &vmstate_sge, image->send_sges,
                          sizeof(*image->send_sges), image->n_send_sges);
    qemu_put_buffer(f, image->inline_data, image->inline_len);
    put_recvs(f, image->recv, image->n_recv, image->recv_sges,
              image->n_recv_sges);
    rdma_roce_put_records(f, &vmstate_res, image->res, sizeof(*image->res),
                          image->n_res);
    rdma_roce_put_pages(f, image->pages, image->n_pages);
}

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

static int put_qp(QEMUFile *f, RoceEngine *e, uint32_t qpn)
{
    RoceQpImage image;
    int ret = roce_export_qp(e, qpn, &image);

    if (!ret) {
        rdma_roce_put_records(f, &vmstate_qp, &image, sizeof(image), 1);
        put_queues(f, &image);
        roce_qp_image_clear(&image);
    }
    return ret;
}

static int put_qps(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaBackend *rb = pv;

    return rdma_roce_put_objects(f, rb, rb->limits.max_qp, roce_has_qp,
                                 put_qp);
}

/* Can a QP of this backend have so many? */
static bool counts_ok(const RoceQpImage *image, const RdmaBackend *rb)
{
    RdmaQpCap max = max_cap(rb);
    uint32_t max_recv_sge = image->init.has_srq ? rb->limits.max_srq_sge
                                                : max.max_recv_sge;

    return image->n_send <= max.max_send_wr &&
           image->n_send_sges <= (uint64_t)image->n_send * max.max_send_sge &&
           image->inline_len <=
           (uint64_t)image->n_send * max.max_inline_data &&
           image->n_pages <=
           (uint64_t)image->n_send * rb->limits.max_reg_pages &&
           image->n_recv <= max.max_recv_wr &&
           image->n_recv_sges <= (uint64_t)image->n_recv * max_recv_sge &&
           image->n_res <= 2 * rb->limits.max_rd_atomic;
}

static int get_queues(QEMUFile *f, RoceQpImage *image)
{
    int ret;

    image->send = g_new0(RoceSendWqe, image->n_send);
    image->send_sges = g_new0(RdmaSge, image->n_send_sges);
    image->inline_data = g_malloc0(image->inline_len);
    image->recv = g_new0(RoceRecvWqe, image->n_recv);
    image->recv_sges = g_new0(RdmaSge, image->n_recv_sges);
    image->res = g_new0(RoceResource, image->n_res);
    ret = rdma_roce_get_records(f, &vmstate_send, image->send,
                                sizeof(*image->send), image->n_send) ?:
          rdma_roce_get_records(f, &vmstate_sge, image->send_sges,
                                sizeof(*image->send_sges),
                                image->n_send_sges);
    if (ret) {
        return ret;
    }
    if (qemu_get_buffer(f, image->inline_data, image->inline_len) !=
        image->inline_len) {
        return -EIO;
    }
    return get_recvs(f, image->recv, image->n_recv, image->recv_sges,
                     image->n_recv_sges) ?:
           rdma_roce_get_records(f, &vmstate_res, image->res,
                                 sizeof(*image->res), image->n_res) ?:
           rdma_roce_get_pages(f, &image->pages, image->n_pages);
}

static int get_qp(QEMUFile *f, RdmaBackend *rb)
{
    RdmaQpCap max = max_cap(rb);
    RoceQpImage image = {};
    const char *why;
    int ret = rdma_roce_get_records(f, &vmstate_qp, &image, sizeof(image),
                                    1);

    if (ret) {
        return ret;
    }
    if (!counts_ok(&image, rb) ||
        !rb->client_ops->loaded_qp(rb->client_opaque, &image.init,
                                   image.n_send,
                                   image.init.has_srq ? 0 : image.n_recv)) {
        error_report("rdma-roce: queue pair %u of the migration stream is "
                     "not the device's", image.init.qpn);
        return -EINVAL;
    }
    ret = get_queues(f, &image);
    if (!ret) {
        ret = roce_import_qp(rdma_roce_engine(rb), &image, &max, &why);
        if (ret) {
            error_report("rdma-roce: bad queue pair %u in the migration "
                         "stream: %s", image.init.qpn, why);
        }
    }
    roce_qp_image_clear(&image);
    return ret;
}

static int get_qps(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field)
{
    return rdma_roce_get_objects(f, pv, get_qp);
}

const VMStateInfo vmstate_info_roce_qps = {
    .name = "rdma-roce queue pairs",
    .get = get_qps,
    .put = put_qps,
};
