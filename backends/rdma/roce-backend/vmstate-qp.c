/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: queue pairs and shared receive queues.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "qemu/error-report.h"
#include "rdma/roce-state.h"
#include "vmstate.h"

QEMU_BUILD_BUG_ON(sizeof(RdmaQpType) != sizeof(uint32_t));

/* Counts */

#define SRQ "shared receive queue"
#define QP "queue pair"

static bool count_ok(const char *kind, uint32_t number, const char *what,
                     uint32_t count, uint64_t max)
{
    if (count > max) {
        error_report("rdma-roce: %s %u in the migration stream has %u %s, "
                     "and the limit is %" PRIu64, kind, number, count, what,
                     max);
        return false;
    }
    return true;
}

/* Shared receive queues */

typedef struct SavedSrq {
    RoceSrqImage image;
    const RdmaBackend *rb;          /* on load: its limits apply */
} SavedSrq;

/* On load, before memory is allocated for the queue */
static bool srq_counts_ok(void *opaque, int version_id)
{
    const SavedSrq *saved = opaque;
    const RoceSrqImage *image = &saved->image;
    const RdmaBackendLimits *max;
    uint32_t n = image->attr.srqn;

    if (!saved->rb) {
        return true;
    }
    max = &saved->rb->limits;
    return count_ok(SRQ, n, "receive WQEs", image->n_recv, 1) &&
           count_ok(SRQ, n, "receive SGEs", image->n_recv_sges,
                    (uint64_t)image->n_recv * max->max_srq_sge);
}

static const VMStateDescription vmstate_srq = {
    .name = "rdma-roce/srq",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(image.attr.srqn, SavedSrq),
        VMSTATE_UINT32(image.attr.pdn, SavedSrq),
        VMSTATE_UINT32(image.attr.max_wr, SavedSrq),
        VMSTATE_UINT32(image.attr.max_sge, SavedSrq),
        VMSTATE_UINT32(image.attr.limit, SavedSrq),
        VMSTATE_UINT32(image.n_recv, SavedSrq),
        VMSTATE_UINT32(image.n_recv_sges, SavedSrq),
        VMSTATE_VALIDATE("counts", srq_counts_ok),
        VMSTATE_VARRAY_UINT32_ALLOC(image.recv, SavedSrq, image.n_recv, 1,
                                    vmstate_info_roce_recv, RoceRecvWqe),
        VMSTATE_VARRAY_UINT32_ALLOC(image.recv_sges, SavedSrq,
                                    image.n_recv_sges, 1,
                                    vmstate_info_roce_sge, RdmaSge),
        VMSTATE_END_OF_LIST()
    },
};

static int put_srq(QEMUFile *f, RdmaBackend *rb, uint32_t srqn)
{
    SavedSrq saved = {};
    int ret = roce_export_srq(rdma_roce_engine(rb), srqn, &saved.image);

    if (!ret) {
        ret = rdma_vmstate_save(f, &vmstate_srq, &saved, NULL);
        roce_srq_image_clear(&saved.image);
    }
    return ret;
}

static int get_srq(QEMUFile *f, RdmaBackend *rb, uint32_t *n, char **why)
{
    RdmaSrqAttr max = {
        .max_wr = rb->limits.max_srq_wr,
        .max_sge = rb->limits.max_srq_sge,
    };
    SavedSrq saved = { .rb = rb };
    RoceSrqImage *image = &saved.image;
    const RdmaLoaded obj = { .type = RDMA_OBJECT_SRQ, .srq = &image->attr };
    int ret = rdma_vmstate_load(f, &vmstate_srq, &saved);

    if (!ret && !rb->client_ops->loaded(rb->client_opaque, &obj)) {
        error_report("rdma-roce: shared receive queue %u in the migration "
                     "stream (PD %u, max_wr %u, max_sge %u) is not the "
                     "device's", image->attr.srqn, image->attr.pdn,
                     image->attr.max_wr, image->attr.max_sge);
        ret = -EINVAL;
    }
    if (!ret) {
        *n = image->attr.srqn;
        ret = roce_import_srq(rdma_roce_engine(rb), image, &max, why);
    }
    roce_srq_image_clear(image);
    return ret;
}

const RoceObjectList rdma_roce_srqs =
    ROCE_OBJECT_LIST("shared receive queue", roce_next_srq, put_srq, get_srq);

/* Queue pairs */

typedef struct SavedQp {
    RoceQpImage image;
    const RdmaBackend *rb;          /* on load: its limits apply */
} SavedQp;

/* On load, before memory is allocated for the queues */
static bool qp_counts_ok(void *opaque, int version_id)
{
    const SavedQp *saved = opaque;
    const RoceQpImage *image = &saved->image;
    const RdmaBackendLimits *max;
    uint64_t n_send = image->n_send, n_recv = image->n_recv;
    uint32_t recv_sge, n = image->init.qpn;

    if (!saved->rb) {
        return true;
    }
    max = &saved->rb->limits;
    recv_sge = image->init.has_srq ? max->max_srq_sge : max->max_recv_sge;
    return count_ok(QP, n, "send WQEs", image->n_send,
                    max->max_qp_wr) &&
           count_ok(QP, n, "send SGEs", image->n_send_sges,
                    n_send * max->max_send_sge) &&
           count_ok(QP, n, "bytes of inline data", image->inline_len,
                    n_send * max->max_inline_data) &&
           count_ok(QP, n, "pages", image->n_pages,
                    n_send * max->max_reg_pages) &&
           count_ok(QP, n, "receive WQEs", image->n_recv, 1) &&
           count_ok(QP, n, "receive SGEs", image->n_recv_sges,
                    n_recv * recv_sge) &&
           count_ok(QP, n, "responder resources", image->n_res,
                    2 * max->max_rd_atomic);
}

/* The list of pages follows it in the stream. */
static const VMStateDescription vmstate_qp = {
    .name = "rdma-roce/qp",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(image.init.qpn, SavedQp),
        VMSTATE_UINT32(image.init.pdn, SavedQp),
        VMSTATE_RDMA_ENUM(image.init.qp_type, SavedQp),
        VMSTATE_BOOL(image.init.sq_sig_all, SavedQp),
        VMSTATE_UINT32(image.init.send_cqn, SavedQp),
        VMSTATE_UINT32(image.init.recv_cqn, SavedQp),
        VMSTATE_UINT32(image.init.cap.max_send_wr, SavedQp),
        VMSTATE_UINT32(image.init.cap.max_recv_wr, SavedQp),
        VMSTATE_UINT32(image.init.cap.max_send_sge, SavedQp),
        VMSTATE_UINT32(image.init.cap.max_recv_sge, SavedQp),
        VMSTATE_UINT32(image.init.cap.max_inline_data, SavedQp),
        VMSTATE_BOOL(image.init.has_srq, SavedQp),
        VMSTATE_UINT32(image.init.srqn, SavedQp),
        VMSTATE_BOOL(image.init.block_mcast_loopback, SavedQp),
        /* What MODIFY_QP sets: no alternate path, and caps do not change */
        VMSTATE_UINT8(image.s.attr.qp_state, SavedQp),
        VMSTATE_UINT8(image.s.attr.path_mtu, SavedQp),
        VMSTATE_UINT8(image.s.attr.path_mig_state, SavedQp),
        VMSTATE_UINT32(image.s.attr.qkey, SavedQp),
        VMSTATE_UINT32(image.s.attr.dest_qp_num, SavedQp),
        VMSTATE_UINT32(image.s.attr.qp_access_flags, SavedQp),
        VMSTATE_UINT16(image.s.attr.pkey_index, SavedQp),
        VMSTATE_UINT8(image.s.attr.en_sqd_async_notify, SavedQp),
        VMSTATE_UINT8(image.s.attr.max_rd_atomic, SavedQp),
        VMSTATE_UINT8(image.s.attr.max_dest_rd_atomic, SavedQp),
        VMSTATE_UINT8(image.s.attr.min_rnr_timer, SavedQp),
        VMSTATE_UINT8(image.s.attr.port_num, SavedQp),
        VMSTATE_UINT8(image.s.attr.timeout, SavedQp),
        VMSTATE_UINT8(image.s.attr.retry_cnt, SavedQp),
        VMSTATE_UINT8(image.s.attr.rnr_retry, SavedQp),
        VMSTATE_UINT32(image.s.attr.rate_limit, SavedQp),
        VMSTATE_BUFFER(image.s.attr.ah_attr.dgid, SavedQp),
        VMSTATE_BUFFER(image.s.attr.ah_attr.dmac, SavedQp),
        VMSTATE_UINT8(image.s.attr.ah_attr.sgid_index, SavedQp),
        VMSTATE_UINT8(image.s.attr.ah_attr.hop_limit, SavedQp),
        VMSTATE_UINT8(image.s.attr.ah_attr.traffic_class, SavedQp),
        VMSTATE_UINT8(image.s.attr.ah_attr.sl, SavedQp),
        VMSTATE_UINT8(image.s.attr.ah_attr.static_rate, SavedQp),
        VMSTATE_UINT8(image.s.attr.ah_attr.port_num, SavedQp),
        VMSTATE_UINT8(image.s.attr.ah_attr.ah_flags, SavedQp),
        VMSTATE_UINT32(image.s.attr.ah_attr.flow_label, SavedQp),
        VMSTATE_UINT32(image.s.sq.cons, SavedQp),
        VMSTATE_UINT32(image.s.sq.cur, SavedQp),
        VMSTATE_UINT32(image.s.sq.cur_pkt, SavedQp),
        VMSTATE_UINT32(image.s.sq.started, SavedQp),
        VMSTATE_UINT32(image.s.sq.prod, SavedQp),
        VMSTATE_UINT32(image.s.sq.una, SavedQp),
        VMSTATE_UINT32(image.s.sq.psn, SavedQp),
        VMSTATE_UINT32(image.s.sq.sent, SavedQp),
        VMSTATE_UINT32(image.s.sq.end, SavedQp),
        VMSTATE_UINT32(image.s.sq.rd_atomic, SavedQp),
        VMSTATE_UINT32(image.s.sq.rd_psns, SavedQp),
        VMSTATE_UINT32(image.s.sq.unrequested, SavedQp),
        VMSTATE_UINT8(image.s.sq.retries, SavedQp),
        VMSTATE_UINT8(image.s.sq.rnr_retries, SavedQp),
        VMSTATE_UINT8(image.s.sq.seq_error_handled, SavedQp),
        VMSTATE_UINT8(image.s.sq.rnr_wait, SavedQp),
        VMSTATE_UINT8(image.s.sq.draining, SavedQp),
        VMSTATE_INT64(image.s.sq.ack_deadline, SavedQp),
        VMSTATE_INT64(image.s.sq.rnr_deadline, SavedQp),
        VMSTATE_INT64(image.s.sq.send_at, SavedQp),
        VMSTATE_UINT32(image.s.rq.cons, SavedQp),
        VMSTATE_UINT32(image.s.rq.prod, SavedQp),
        VMSTATE_UINT32(image.s.resp.epsn, SavedQp),
        VMSTATE_UINT32(image.s.resp.msn, SavedQp),
        VMSTATE_UINT32(image.s.resp.op, SavedQp),
        VMSTATE_UINT32(image.s.resp.offset, SavedQp),
        VMSTATE_UINT64(image.s.resp.write_va, SavedQp),
        VMSTATE_UINT32(image.s.resp.write_rkey, SavedQp),
        VMSTATE_UINT32(image.s.resp.write_len, SavedQp),
        VMSTATE_UINT32(image.s.resp.res_prod, SavedQp),
        VMSTATE_UINT32(image.s.resp.res_out, SavedQp),
        VMSTATE_UINT32(image.s.resp.ack_kind, SavedQp),
        VMSTATE_UINT32(image.s.resp.ack_psn, SavedQp),
        VMSTATE_UINT8(image.s.resp.ack_syndrome, SavedQp),
        VMSTATE_UINT8(image.s.resp.nak_sent, SavedQp),
        VMSTATE_UINT8(image.s.resp.comm_est, SavedQp),
        VMSTATE_UINT8(image.s.resp.closing, SavedQp),
        VMSTATE_UINT8(image.send_cq_failed, SavedQp),
        VMSTATE_UINT8(image.recv_cq_failed, SavedQp),
        VMSTATE_UINT32(image.n_send, SavedQp),
        VMSTATE_UINT32(image.n_send_sges, SavedQp),
        VMSTATE_UINT32(image.inline_len, SavedQp),
        VMSTATE_UINT32(image.n_pages, SavedQp),
        VMSTATE_UINT32(image.n_recv, SavedQp),
        VMSTATE_UINT32(image.n_recv_sges, SavedQp),
        VMSTATE_UINT32(image.n_res, SavedQp),
        VMSTATE_VALIDATE("counts", qp_counts_ok),
        VMSTATE_VARRAY_UINT32_ALLOC(image.send, SavedQp, image.n_send, 1,
                                    vmstate_info_roce_send, RoceSendImage),
        VMSTATE_VARRAY_UINT32_ALLOC(image.send_sges, SavedQp,
                                    image.n_send_sges, 1,
                                    vmstate_info_roce_sge, RdmaSge),
        VMSTATE_VBUFFER_ALLOC_UINT32(image.inline_data, SavedQp, 1, NULL,
                                     image.inline_len),
        VMSTATE_VARRAY_UINT32_ALLOC(image.recv, SavedQp, image.n_recv, 1,
                                    vmstate_info_roce_recv, RoceRecvWqe),
        VMSTATE_VARRAY_UINT32_ALLOC(image.recv_sges, SavedQp,
                                    image.n_recv_sges, 1,
                                    vmstate_info_roce_sge, RdmaSge),
        VMSTATE_VARRAY_UINT32_ALLOC(image.res, SavedQp, image.n_res, 1,
                                    vmstate_info_roce_res, RoceResource),
        VMSTATE_END_OF_LIST()
    },
};

static int put_qp(QEMUFile *f, RdmaBackend *rb, uint32_t qpn)
{
    SavedQp saved = {};
    int ret = roce_export_qp(rdma_roce_engine(rb), qpn, &saved.image);

    if (!ret) {
        ret = rdma_vmstate_save(f, &vmstate_qp, &saved, NULL);
        rdma_roce_put_pages(f, saved.image.pages, saved.image.n_pages);
        roce_qp_image_clear(&saved.image);
    }
    return ret;
}

static int get_qp(QEMUFile *f, RdmaBackend *rb, uint32_t *n, char **why)
{
    RdmaQpCap max = {
        .max_send_wr = rb->limits.max_qp_wr,
        .max_recv_wr = rb->limits.max_qp_wr,
        .max_send_sge = rb->limits.max_send_sge,
        .max_recv_sge = rb->limits.max_recv_sge,
        .max_inline_data = rb->limits.max_inline_data,
    };
    SavedQp saved = { .rb = rb };
    RoceQpImage *image = &saved.image;
    RdmaLoaded obj = { .type = RDMA_OBJECT_QP, .qp = &image->init };
    int ret = rdma_vmstate_load(f, &vmstate_qp, &saved) ?:
              rdma_roce_get_pages(f, &image->pages, image->n_pages);

    obj.nsend = image->n_send;
    obj.nrecv = image->init.has_srq ? 0 : image->n_recv;
    if (!ret && !rb->client_ops->loaded(rb->client_opaque, &obj)) {
        error_report("rdma-roce: queue pair %u in the migration stream "
                     "(type %d, PD %u, CQs %u and %u, %u send and %u receive "
                     "WQEs) is not the device's", image->init.qpn,
                     image->init.qp_type, image->init.pdn,
                     image->init.send_cqn, image->init.recv_cqn,
                     image->n_send, image->n_recv);
        ret = -EINVAL;
    }
    if (!ret) {
        *n = image->init.qpn;
        ret = roce_import_qp(rdma_roce_engine(rb), image, &max, why);
    }
    roce_qp_image_clear(image);
    return ret;
}

const RoceObjectList rdma_roce_qps =
    ROCE_OBJECT_LIST("queue pair", roce_next_qp, put_qp, get_qp);
