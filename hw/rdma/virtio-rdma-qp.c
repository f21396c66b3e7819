/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs of a virtio-rdma device.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "trace.h"
#include "virtio-rdma-object.h"

#define QP_ATTR_MASK (RDMA_QP_STATE | RDMA_QP_CUR_STATE | \
                      RDMA_QP_EN_SQD_ASYNC_NOTIFY | RDMA_QP_ACCESS_FLAGS | \
                      RDMA_QP_PKEY_INDEX | RDMA_QP_PORT | RDMA_QP_QKEY | \
                      RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_TIMEOUT | \
                      RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY | \
                      RDMA_QP_RQ_PSN | RDMA_QP_MAX_QP_RD_ATOMIC | \
                      RDMA_QP_MIN_RNR_TIMER | RDMA_QP_SQ_PSN | \
                      RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_PATH_MIG_STATE | \
                      RDMA_QP_DEST_QPN | RDMA_QP_RATE_LIMIT)
/* Not supported: changing the size of queues, and alternate paths. */
#define QP_ATTR_UNSUPPORTED (RDMA_QP_CAP | RDMA_QP_ALT_PATH)

static uint32_t sq_vq(VirtIORdma *s, uint32_t qpn)
{
    return VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, qpn);
}

static uint32_t rq_vq(VirtIORdma *s, uint32_t qpn)
{
    return VIRTIO_RDMA_RQ_VQ(s->max_vq_cq, qpn);
}

void virtio_rdma_qp_use_vqs(VirtIORdma *s, RdmaHcaQp *qp)
{
    virtio_rdma_wq_use_vq(s, &qp->sq, sq_vq(s, qp->init.qpn));
    if (!qp->srq) {
        virtio_rdma_wq_use_vq(s, &qp->rq, rq_vq(s, qp->init.qpn));
    }
}

RdmaHcaQp *virtio_rdma_qp_add(VirtIORdma *s, const RdmaQpInitAttr *init,
                              RdmaHcaPd *pd, RdmaHcaCq *send_cq,
                              RdmaHcaCq *recv_cq, RdmaHcaSrq *srq)
{
    VirtIORdmaQp *forms = g_new0(VirtIORdmaQp, 1);
    RdmaHcaQp *qp = &forms->core;

    qp->init = *init;
    qp->pd = pd;
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    qp->srq = srq;
    qp->sq.opaque = &forms->sq;
    qp->rq.opaque = &forms->rq;
    if (srq) {
        srq->users++;
    }
    pd->users++;
    send_cq->users++;
    recv_cq->users++;
    virtio_rdma_wq_init(&qp->sq, RDMA_SQ, init->qpn, init->cap.max_send_sge,
                        init->cap.max_inline_data);
    virtio_rdma_wq_init(&qp->rq, RDMA_RQ, init->qpn, init->cap.max_recv_sge,
                        0);
    rdma_hca_table_set(&s->hca.qps, init->qpn, qp);
    return qp;
}

void virtio_rdma_qp_remove(VirtIORdma *s, RdmaHcaQp *qp)
{
    rdma_hca_table_clear(&s->hca.qps, qp->init.qpn);
    rdma_hca_events_forget(&s->hca, RDMA_HCA_EVENT_OF_QP, qp->init.qpn);
    virtio_rdma_cq_forget_qp(s, virtio_rdma_cq(qp->send_cq), qp->init.qpn);
    virtio_rdma_cq_forget_qp(s, virtio_rdma_cq(qp->recv_cq), qp->init.qpn);
    rdma_hca_hold_forget_qp(&s->hca, qp);
    qp->pd->users--;
    qp->send_cq->users--;
    qp->recv_cq->users--;
    if (qp->srq) {
        qp->srq->users--;
    }
    virtio_rdma_wq_forget(s, &qp->sq);
    virtio_rdma_direct_stop(s, virtio_rdma_qp(qp));
    g_free(qp->sq.inflight);
    g_free(qp->rq.inflight);
    g_free(virtio_rdma_qp(qp));
}

static int check_qpn(VirtIORdma *s, uint32_t qpn, const VirtIORdmaReq *req)
{
    const RdmaQpCap *cap = &req->create_qp.cap;
    int sq, rq;

    if (req->create_qp.flags & VIRTIO_RDMA_QP_DIRECT) {
        return 0;
    }
    sq = virtio_rdma_vq_check(s, sq_vq(s, qpn), cap->max_send_wr);
    rq = req->create_qp.flags & VIRTIO_RDMA_QP_SRQ
         ? 0
         : virtio_rdma_vq_check(s, rq_vq(s, qpn), cap->max_recv_wr);

    return sq == -ENOMEM ? sq : rq ? rq : sq;
}

static int find_qpn(VirtIORdma *s, const VirtIORdmaReq *req, uint32_t *qpn)
{
    uint32_t end = req->create_qp.flags & VIRTIO_RDMA_QP_DIRECT
                   ? s->hca.qps.end : s->max_vq_qp;

    if (req->create_qp.qp_type != RDMA_QPT_GSI) {
        return virtio_rdma_vq_find_id(s, &s->hca.qps, RDMA_QPN_GSI + 1, end,
                                      check_qpn, req, qpn);
    }
    *qpn = RDMA_QPN_GSI;
    if (RDMA_QPN_GSI >= end) {
        return -ENOMEM;
    }
    if (rdma_hca_table_get(&s->hca.qps, RDMA_QPN_GSI)) {
        return -EBUSY;
    }
    return check_qpn(s, RDMA_QPN_GSI, req);
}

/* Check the flags of CREATE_QP, and look up the SRQ if it has one. */
static int check_flags(VirtIORdma *s, const VirtIORdmaReq *req,
                       RdmaHcaSrq **srq)
{
    uint32_t flags = req->create_qp.flags;
    uint8_t type = req->create_qp.qp_type;

    if (!virtio_rdma_check_flags("flags", flags,
                                 VIRTIO_RDMA_QP_SRQ |
                                 VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK |
                                 VIRTIO_RDMA_QP_DIRECT)) {
        return -EINVAL;
    }
    if (((flags & VIRTIO_RDMA_QP_SRQ) &&
         !virtio_rdma_has(s, VIRTIO_RDMA_F_SRQ)) ||
        ((flags & VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK) &&
         !virtio_rdma_has(s, VIRTIO_RDMA_F_MCAST)) ||
        ((flags & VIRTIO_RDMA_QP_DIRECT) &&
         !virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT_QP))) {
        return -ENOTSUP;
    }
    if ((flags & VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK) &&
        type != RDMA_QPT_UD) {
        return -EINVAL;
    }
    if (flags & VIRTIO_RDMA_QP_SRQ) {
        *srq = rdma_hca_table_get(&s->hca.srqs, req->create_qp.srqn);
        if (!*srq) {
            return -ENOENT;
        }
        if (type == RDMA_QPT_GSI || (*srq)->error) {
            return -EINVAL;
        }
    }
    return 0;
}

static bool check_cap(VirtIORdma *s, const RdmaQpCap *cap, bool direct)
{
    const RdmaBackendLimits *l = &s->hca.limits;
    uint32_t max_wr = direct ? l->max_qp_wr_direct : l->max_qp_wr;

    return virtio_rdma_check_range("max_send_wr", cap->max_send_wr, 0,
                                   max_wr) &&
           virtio_rdma_check_range("max_recv_wr", cap->max_recv_wr, 0,
                                   max_wr) &&
           virtio_rdma_check_range("max_send_sge", cap->max_send_sge, 0,
                                   l->max_send_sge) &&
           virtio_rdma_check_range("max_recv_sge", cap->max_recv_sge, 0,
                                   l->max_recv_sge) &&
           virtio_rdma_check_range("max_inline_data", cap->max_inline_data, 0,
                                   l->max_inline_data);
}

/* Add a QP, with what the driver says of its queues. */
static int add_qp(VirtIORdma *s, const VirtIORdmaReq *req,
                  const RdmaQpInitAttr *init, RdmaHcaPd *pd,
                  RdmaHcaCq *send_cq, RdmaHcaCq *recv_cq,
                  RdmaHcaSrq *srq, RdmaHcaQp **qp)
{
    VirtIORdmaDirectQp direct = req->create_qp.direct;
    uint64_t *pages = NULL;
    int ret;

    if (!(req->create_qp.flags & VIRTIO_RDMA_QP_DIRECT)) {
        if (!virtio_rdma_check_may_have_vq(s, "QP")) {
            return -EINVAL;
        }
        *qp = virtio_rdma_qp_add(s, init, pd, send_cq, recv_cq, srq);
        virtio_rdma_qp_use_vqs(s, *qp);
        return 0;
    }
    ret = virtio_rdma_direct_check(s, init, &direct);
    if (ret) {
        return ret;
    }
    ret = virtio_rdma_pages_read_on(s, &direct.pages, &pages);
    if (ret) {
        return ret;
    }
    *qp = virtio_rdma_qp_add(s, init, pd, send_cq, recv_cq, srq);
    virtio_rdma_direct_start(s, virtio_rdma_qp(*qp), &direct, pages);
    return 0;
}

int virtio_rdma_qp_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, req->create_qp.pdn);
    RdmaHcaCq *send_cq = rdma_hca_cq_get(&s->hca, req->create_qp.send_cqn);
    RdmaHcaCq *recv_cq = rdma_hca_cq_get(&s->hca, req->create_qp.recv_cqn);
    RdmaQpInitAttr init = {
        .pdn = req->create_qp.pdn,
        .qp_type = req->create_qp.qp_type,
        .sq_sig_all = req->create_qp.sq_sig_type ==
                      VIRTIO_RDMA_SIGNAL_ALL_WR,
        .send_cqn = req->create_qp.send_cqn,
        .recv_cqn = req->create_qp.recv_cqn,
        .cap = req->create_qp.cap,
        .block_mcast_loopback = req->create_qp.flags &
                                VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK,
    };
    RdmaHcaSrq *srq = NULL;
    RdmaHcaQp *qp;
    int ret;

    switch (req->create_qp.qp_type) {
    case RDMA_QPT_GSI:
    case RDMA_QPT_RC:
    case RDMA_QPT_UC:
    case RDMA_QPT_UD:
        break;
    default:
        return -ENOTSUP;
    }
    if (!pd || !send_cq || !recv_cq) {
        return -ENOENT;
    }
    ret = check_flags(s, req, &srq);
    if (ret) {
        return ret;
    }
    if (srq) {
        init.has_srq = true;
        init.srqn = srq->attr.srqn;
        init.cap.max_recv_wr = 0;
        init.cap.max_recv_sge = 0;
    }
    if (!virtio_rdma_check_range("sq_sig_type", req->create_qp.sq_sig_type,
                                 VIRTIO_RDMA_SIGNAL_ALL_WR,
                                 VIRTIO_RDMA_SIGNAL_REQ_WR) ||
        !check_cap(s, &init.cap,
                   req->create_qp.flags & VIRTIO_RDMA_QP_DIRECT)) {
        return -EINVAL;
    }
    ret = find_qpn(s, req, &init.qpn);
    if (ret) {
        return ret;
    }
    ret = add_qp(s, req, &init, pd, send_cq, recv_cq, srq, &qp);
    if (ret) {
        return ret;
    }
    rdma_work_pay(&s->hca.cmd_budget, 8 * RDMA_WORK_COMMAND);
    init.wire_qpn = init.qpn;
    ret = s->hca.bc->create_qp(s->hca.backend, &init);
    if (ret) {
        virtio_rdma_qp_remove(s, qp);
        if (ret == -EINPROGRESS) {
            rdma_hca_table_again(&s->hca.qps, init.qpn);
        }
        return ret;
    }
    qp->init = init;
    trace_virtio_rdma_qp_create(s, init.qpn, init.qp_type, init.pdn,
                                init.send_cqn, init.recv_cqn);
    virtio_rdma_qp_set_notifiers(s, init.qpn, true);
    rdma_hca_qp_schedule(&s->hca, qp);
    rsp->create.id = init.qpn;
    rsp->create.wire_qpn = init.wire_qpn;
    return 0;
}

static void drain(VirtIORdma *s, RdmaHcaQp *qp)
{
    virtio_rdma_wq_drain(s, &qp->sq);
    if (!qp->srq) {
        virtio_rdma_wq_drain(s, &qp->rq);
    }
}

/* What can be told without the state of the QP */
static int check_modify(VirtIORdma *s, const RdmaHcaQp *qp, uint32_t mask,
                        const RdmaQpAttr *attr)
{
    RdmaQpRefusal r = {
        .from = RDMA_QPS_UNKNOWN,
        .to = RDMA_QPS_UNKNOWN,
    };
    uint32_t unsupported = mask & QP_ATTR_UNSUPPORTED;
    uint32_t bad = unsupported ?: mask & ~QP_ATTR_MASK;

    if (bad) {
        rdma_qp_refuse(&r, rdma_qp_attr_name(bad & -bad), mask,
                       "is not supported in attr_mask");
    } else if (!(mask & RDMA_QP_STATE) ||
               rdma_qp_check_state(attr->qp_state, &r)) {
        return 0;
    }
    rdma_backend_qp_refused(s->hca.backend, qp->init.qpn, &r);
    return unsupported ? -ENOTSUP : -EINVAL;
}

/*
 * Programs are used to devices that look at no more bits than a field has on
 * the wire. A number of retries that is too large becomes the largest, as with
 * RDMA CM: cut off, it could become none.
 */
static RdmaQpAttr narrowed(const RdmaQpAttr *attr)
{
    RdmaQpAttr a = *attr;

    a.rq_psn &= RDMA_24BIT_MASK;
    a.sq_psn &= RDMA_24BIT_MASK;
    a.dest_qp_num &= RDMA_24BIT_MASK;
    a.ah_attr.flow_label &= RDMA_FLOW_LABEL_MASK;
    a.min_rnr_timer &= RDMA_RNR_TIMER_MASK;
    a.retry_cnt = MIN(a.retry_cnt, RDMA_MAX_RETRIES);
    a.rnr_retry = MIN(a.rnr_retry, RDMA_MAX_RETRIES);
    return a;
}

int virtio_rdma_qp_modify(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, req->qp.qpn);
    uint32_t mask = req->qp.attr_mask;
    const RdmaQpAttr attr = narrowed(&req->qp.attr);
    int ret;

    if (!qp) {
        return -ENOENT;
    }
    ret = check_modify(s, qp, mask, &attr);
    if (ret) {
        return ret;
    }
    ret = s->hca.bc->modify_qp(s->hca.backend, qp->init.qpn, mask, &attr);
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_qp_modify(s, qp->init.qpn, mask,
                                mask & RDMA_QP_STATE ? attr.qp_state : -1);
    if ((mask & RDMA_QP_STATE) && attr.qp_state == RDMA_QPS_RESET) {
        drain(s, qp);
        qp->sq.broken = qp->rq.broken = false;
        /* The driver removes only the completions that it has been given. */
        virtio_rdma_cq_forget_qp(s, virtio_rdma_cq(qp->send_cq), qp->init.qpn);
        virtio_rdma_cq_forget_qp(s, virtio_rdma_cq(qp->recv_cq), qp->init.qpn);
        rdma_hca_hold_forget_qp(&s->hca, qp);
        rdma_hca_fault_forget_qp(qp);
    }
    rdma_hca_qp_schedule(&s->hca, qp);
    return 0;
}

int virtio_rdma_qp_query(VirtIORdma *s, const VirtIORdmaReq *req,
                         VirtIORdmaRsp *rsp)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, req->qp.qpn);
    int ret;

    if (!qp) {
        return -ENOENT;
    }
    ret = s->hca.bc->query_qp(s->hca.backend, qp->init.qpn,
                              &rsp->query_qp.attr);
    if (ret) {
        return ret;
    }
    rsp->query_qp.attr.cap = qp->init.cap;
    return 0;
}

int virtio_rdma_qp_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    uint32_t qpn = req->destroy.id;
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, qpn);
    int ret;

    if (!qp) {
        return -ENOENT;
    }
    ret = s->hca.bc->destroy(s->hca.backend, RDMA_OBJECT_QP, qpn);
    if (ret) {
        return ret;
    }
    trace_virtio_rdma_qp_destroy(s, qpn);
    rdma_work_pay(&s->hca.cmd_budget, 8 * RDMA_WORK_COMMAND);
    if (s->hca.n_mws) {
        /* The backend looks for those that the QP has bound */
        rdma_work_pay(&s->hca.cmd_budget, s->hca.mrs.end / 8 * RDMA_WORK_ENTRY);
    }
    drain(s, qp);
    virtio_rdma_wq_destroyed(s, &qp->sq);
    if (!qp->srq) {
        virtio_rdma_wq_destroyed(s, &qp->rq);
    }
    virtio_rdma_qp_remove(s, qp);
    virtio_rdma_qp_set_notifiers(s, qpn, false);
    return 0;
}

void virtio_rdma_qp_fail(VirtIORdma *s, RdmaHcaQp *qp)
{
    const RdmaQpAttr attr = { .qp_state = RDMA_QPS_ERR };
    int ret;

    if (virtio_rdma_qp_is_in(s, qp, RDMA_QPS_ERR)) {
        /* The driver knows: it asked for that, or an event told. */
        return;
    }
    ret = s->hca.bc->fail_qp
          ? s->hca.bc->fail_qp(s->hca.backend, qp->init.qpn)
          : s->hca.bc->modify_qp(s->hca.backend, qp->init.qpn, RDMA_QP_STATE,
                                 &attr);
    trace_virtio_rdma_qp_fail(s, qp->init.qpn, ret);
    if (ret == 0) {
        rdma_hca_error_event(&s->hca, qp, RDMA_EVENT_QP_FATAL);
        rdma_hca_event_raise(&s->hca, RDMA_EVENT_QP_FATAL, qp->init.qpn);
    }
}

void virtio_rdma_cq_fail(VirtIORdma *s, RdmaHcaCq *cq)
{
    RdmaHcaQp *qp;

    rdma_hca_cq_enter_error(&s->hca, cq);
    if (!cq->users) {
        return;
    }
    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        if (qp->send_cq == cq || qp->recv_cq == cq) {
            virtio_rdma_qp_fail(s, qp);
        }
    }
}
