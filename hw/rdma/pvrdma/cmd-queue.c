/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands for CQs, SRQs and QPs: set up their rings in memory of the driver,
 * and call the core.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "int.h"

/* Each directory begins with the page of the indices. */
#define STATE_PAGE 1

static bool check_size(const char *field, uint32_t size, uint32_t max)
{
    if (!rdma_hca_check_range(field, size, 1, max)) {
        return false;
    }
    if (!is_power_of_2(size)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: %s is %u, not a power of 2\n",
                      field, size);
        return false;
    }
    return true;
}

/* Read a directory of @npages, of which @needed are used. */
static int read_pages(Pvrdma *s, uint64_t dir, uint32_t npages,
                      uint64_t needed, RdmaHcaExtents *pages)
{
    const RdmaHcaPages p = {
        .table = dir,
        .npages = npages,
        .page_shift = RDMA_PAGE_SHIFT,
        .levels = PVRDMA_DIR_LEVELS,
        .length = (uint64_t)npages << RDMA_PAGE_SHIFT,
    };
    int ret = rdma_hca_check_range("pages of a directory", npages, needed,
                                   PVRDMA_MAX_PAGES) ? 0 : -EINVAL;

    return ret ?: rdma_hca_extents_read_on(&s->hca, &p, pages);
}

/* Completion queues */

uint64_t pvrdma_cq_pages(uint32_t cqe)
{
    return STATE_PAGE + pvrdma_ring_pages(cqe, sizeof(PvrdmaCqe));
}

void pvrdma_cq_start(PvrdmaCq *cq)
{
    cq->core.ops = &pvrdma_cq_ops;
    pvrdma_ring_init(&cq->ring, &cq->pages, offsetof(PvrdmaStatePage, rx),
                     STATE_PAGE, cq->core.cqe, sizeof(PvrdmaCqe));
}

void pvrdma_cq_free(RdmaHca *hca, void *obj)
{
    PvrdmaCq *cq = obj;

    pvrdma_notify_forget(pvrdma_of(hca), cq);
    rdma_hca_extents_free(hca, &cq->pages);
    g_free(cq);
}

int pvrdma_create_cq(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdCreateCq *cmd = req;
    PvrdmaRspCreateCq *p = rsp;
    uint32_t cqe = le32_to_cpu(cmd->cqe);
    uint32_t ctx = le32_to_cpu(cmd->ctx);
    RdmaHcaExtents pages;
    uint32_t cqn;
    PvrdmaCq *cq;
    int ret;

    if (!check_size("cqe", cqe, s->hca.limits.max_cqe)) {
        return -EINVAL;
    }
    if (!pvrdma_has_context(s, ctx)) {
        return -ENOENT;
    }
    if (!rdma_hca_table_find(&s->hca.cqs, &cqn)) {
        return -ENOMEM;
    }
    ret = read_pages(s, le64_to_cpu(cmd->dir), le32_to_cpu(cmd->nchunks),
                     pvrdma_cq_pages(cqe), &pages);
    if (ret) {
        return ret;
    }
    cq = g_new0(PvrdmaCq, 1);
    cq->core.cqn = cqn;
    cq->core.cqe = cqe;
    cq->ctx = ctx;
    cq->pages = pages;
    pvrdma_cq_start(cq);
    p->handle = cpu_to_le32(cqn);
    p->cqe = cpu_to_le32(cqe);
    return rdma_hca_cq_create(&s->hca, &cq->core);
}

/* The command names no memory, so the ring stays: it may be large enough. */
int pvrdma_resize_cq(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdResizeCq *cmd = req;
    PvrdmaRspResizeCq *p = rsp;
    RdmaHcaCq *cq = rdma_hca_cq_get(&s->hca, le32_to_cpu(cmd->handle));

    if (!cq) {
        return -ENOENT;
    }
    if (!rdma_hca_check_range("cqe", le32_to_cpu(cmd->cqe), 1, cq->cqe)) {
        return -EINVAL;
    }
    p->cqe = cpu_to_le32(cq->cqe);
    return 0;
}

int pvrdma_cq_drop(Pvrdma *s, uint32_t cqn)
{
    RdmaHcaCq *cq = rdma_hca_cq_get(&s->hca, cqn);

    if (cq && cq->users) {
        rdma_hca_cq_fail(&s->hca, cq);
    }
    return rdma_hca_cq_destroy(&s->hca, cqn);
}

int pvrdma_destroy_cq(Pvrdma *s, const void *req, void *rsp)
{
    return pvrdma_cq_drop(s, pvrdma_handle_of(req));
}

/* Shared receive queues */

uint64_t pvrdma_srq_pages(const RdmaSrqAttr *attr)
{
    return STATE_PAGE + pvrdma_ring_pages(attr->max_wr,
                                          pvrdma_recv_stride(attr->max_sge));
}

void pvrdma_srq_start(PvrdmaSrq *srq)
{
    const RdmaSrqAttr *attr = &srq->core.attr;

    srq->core.wq.ops = &pvrdma_wq_ops;
    srq->core.wq.opaque = &srq->ring;
    pvrdma_ring_init(&srq->ring, &srq->pages, offsetof(PvrdmaStatePage, rx),
                     STATE_PAGE, attr->max_wr,
                     pvrdma_recv_stride(attr->max_sge));
}

void pvrdma_srq_free(RdmaHca *hca, void *obj)
{
    PvrdmaSrq *srq = obj;

    rdma_hca_extents_free(hca, &srq->pages);
    g_free(srq);
}

int pvrdma_create_srq(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdCreateSrq *cmd = req;
    PvrdmaRspHandle *p = rsp;
    RdmaSrqAttr attr = {
        .pdn = le32_to_cpu(cmd->pd),
        .max_wr = le32_to_cpu(cmd->max_wr),
        .max_sge = le32_to_cpu(cmd->max_sge),
        .limit = le32_to_cpu(cmd->limit),
    };
    RdmaHcaExtents pages;
    PvrdmaSrq *srq;
    int ret = rdma_hca_srq_check(&s->hca, &attr);

    if (ret) {
        return ret;
    }
    if (cmd->srq_type) {
        return -ENOTSUP;
    }
    if (!check_size("max_wr", attr.max_wr, s->hca.limits.max_srq_wr)) {
        return -EINVAL;
    }
    if (!rdma_hca_table_find(&s->hca.srqs, &attr.srqn)) {
        return -ENOMEM;
    }
    ret = read_pages(s, le64_to_cpu(cmd->dir), le32_to_cpu(cmd->nchunks),
                     pvrdma_srq_pages(&attr), &pages);
    if (ret) {
        return ret;
    }
    srq = g_new0(PvrdmaSrq, 1);
    srq->pages = pages;
    srq->core.attr = attr;
    pvrdma_srq_start(srq);
    p->handle = cpu_to_le32(attr.srqn);
    return rdma_hca_srq_create(&s->hca, &srq->core);
}

int pvrdma_modify_srq(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdModifySrq *cmd = req;

    if (!rdma_hca_check_range("srq_attr_mask", le32_to_cpu(cmd->mask),
                              PVRDMA_SRQ_LIMIT, PVRDMA_SRQ_LIMIT)) {
        return -ENOTSUP;
    }
    return rdma_hca_srq_modify(&s->hca, le32_to_cpu(cmd->handle),
                               le32_to_cpu(cmd->limit));
}

int pvrdma_query_srq(Pvrdma *s, const void *req, void *rsp)
{
    uint32_t srqn = pvrdma_handle_of(req);
    PvrdmaRspQuerySrq *p = rsp;
    RdmaSrqAttr attr = {};
    int ret = rdma_hca_srq_query(&s->hca, srqn, &attr);

    p->max_wr = cpu_to_le32(attr.max_wr);
    p->max_sge = cpu_to_le32(attr.max_sge);
    p->limit = cpu_to_le32(attr.limit);
    return ret;
}

int pvrdma_srq_drop(Pvrdma *s, uint32_t srqn)
{
    RdmaHcaSrq *srq = rdma_hca_table_get(&s->hca.srqs, srqn);

    if (srq && srq->users) {
        rdma_hca_srq_fail(&s->hca, srq);
    }
    return rdma_hca_srq_destroy(&s->hca, srqn);
}

int pvrdma_destroy_srq(Pvrdma *s, const void *req, void *rsp)
{
    return pvrdma_srq_drop(s, pvrdma_handle_of(req));
}

/* Queue pairs */

static void get_init(const PvrdmaCmdCreateQp *cmd, RdmaQpInitAttr *init)
{
    *init = (RdmaQpInitAttr) {
        .pdn = le32_to_cpu(cmd->pd),
        .qp_type = cmd->qp_type,
        .sq_sig_all = cmd->sq_sig_all,
        .send_cqn = le32_to_cpu(cmd->send_cq),
        .recv_cqn = le32_to_cpu(cmd->recv_cq),
        .has_srq = cmd->is_srq,
        .srqn = cmd->is_srq ? le32_to_cpu(cmd->srq) : 0,
        .cap.max_send_wr = le32_to_cpu(cmd->max_send_wr),
        .cap.max_recv_wr = le32_to_cpu(cmd->max_recv_wr),
        .cap.max_send_sge = le32_to_cpu(cmd->max_send_sge),
        .cap.max_recv_sge = le32_to_cpu(cmd->max_recv_sge),
    };
}

/* Objects end with their context, so processes do not share them. */
bool pvrdma_qp_has_one_context(RdmaHca *hca, const RdmaQpInitAttr *init)
{
    RdmaHcaPd *pd = rdma_hca_table_get(&hca->pds, init->pdn);
    RdmaHcaCq *scq = rdma_hca_cq_get(hca, init->send_cqn);
    RdmaHcaCq *rcq = rdma_hca_cq_get(hca, init->recv_cqn);
    RdmaHcaSrq *srq = init->has_srq ? rdma_hca_table_get(&hca->srqs,
                                                         init->srqn) : NULL;

    return pvrdma_cq(scq)->ctx == pd->context &&
           pvrdma_cq(rcq)->ctx == pd->context &&
           (!srq || srq->pd->context == pd->context);
}

static int check_qp(Pvrdma *s, RdmaQpInitAttr *init)
{
    const RdmaQpCap *cap = &init->cap;
    uint32_t max_wr = s->hca.limits.max_qp_wr;
    int ret;

    if (init->qp_type != RDMA_QPT_GSI && init->qp_type != RDMA_QPT_RC &&
        init->qp_type != RDMA_QPT_UD) {
        return -ENOTSUP;
    }
    if (!check_size("max_send_wr", cap->max_send_wr, max_wr) ||
        (!init->has_srq &&
         !check_size("max_recv_wr", cap->max_recv_wr, max_wr))) {
        return -EINVAL;
    }
    ret = rdma_hca_qp_check(&s->hca, init, max_wr);
    if (ret) {
        return ret;
    }
    if (!pvrdma_qp_has_one_context(&s->hca, init)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: a QP of PD %u uses a CQ or an "
                      "SRQ of another context\n", init->pdn);
        return -EPERM;
    }
    return rdma_hca_qp_find(&s->hca, init->qp_type, &init->qpn);
}

uint64_t pvrdma_qp_send_pages(const RdmaQpInitAttr *init)
{
    return pvrdma_ring_pages(init->cap.max_send_wr,
                             pvrdma_send_stride(init->cap.max_send_sge));
}

/* The SQ and, unless the QP has an SRQ, the RQ; each begins on its own page. */
uint64_t pvrdma_qp_pages(const RdmaQpInitAttr *init, uint32_t send_pages)
{
    uint64_t pages = STATE_PAGE + (uint64_t)send_pages;

    if (!init->has_srq) {
        pages += pvrdma_ring_pages(init->cap.max_recv_wr,
                                   pvrdma_recv_stride(init->cap.max_recv_sge));
    }
    return pages;
}

static int read_qp_pages(Pvrdma *s, const PvrdmaCmdCreateQp *cmd,
                         const RdmaQpInitAttr *init, RdmaHcaExtents *pages)
{
    uint32_t send_pages = le16_to_cpu(cmd->send_chunks);

    if (!rdma_hca_check_range("send_chunks", send_pages,
                              pvrdma_qp_send_pages(init), UINT16_MAX)) {
        return -EINVAL;
    }
    return read_pages(s, le64_to_cpu(cmd->dir),
                      le16_to_cpu(cmd->total_chunks),
                      pvrdma_qp_pages(init, send_pages), pages);
}

void pvrdma_qp_start(PvrdmaQp *qp)
{
    const RdmaQpInitAttr *init = &qp->core.init;
    const RdmaQpCap *cap = &init->cap;

    qp->core.sq.ops = qp->core.rq.ops = &pvrdma_wq_ops;
    qp->core.sq.opaque = &qp->sq;
    qp->core.rq.opaque = &qp->rq;
    pvrdma_ring_init(&qp->sq, &qp->pages, offsetof(PvrdmaStatePage, tx),
                     STATE_PAGE, cap->max_send_wr,
                     pvrdma_send_stride(cap->max_send_sge));
    if (!init->has_srq) {
        pvrdma_ring_init(&qp->rq, &qp->pages, offsetof(PvrdmaStatePage, rx),
                         STATE_PAGE + qp->send_pages, cap->max_recv_wr,
                         pvrdma_recv_stride(cap->max_recv_sge));
    }
}

void pvrdma_qp_free(RdmaHca *hca, void *obj)
{
    PvrdmaQp *qp = obj;

    rdma_hca_extents_free(hca, &qp->pages);
    g_free(qp);
}

static PvrdmaQp *add_qp(Pvrdma *s, const PvrdmaCmdCreateQp *cmd,
                        const RdmaQpInitAttr *init,
                        const RdmaHcaExtents *pages)
{
    PvrdmaQp *qp = g_new0(PvrdmaQp, 1);

    qp->pages = *pages;
    qp->send_pages = le16_to_cpu(cmd->send_chunks);
    qp->sq.stopped = true;
    qp->rq.stopped = !init->has_srq;
    qp->core.init = *init;
    pvrdma_qp_start(qp);
    return qp;
}

int pvrdma_create_qp(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdCreateQp *cmd = req;
    PvrdmaRspCreateQp *p = rsp;
    RdmaQpInitAttr init;
    RdmaHcaExtents pages;
    PvrdmaQp *qp;
    int ret;

    get_init(cmd, &init);
    ret = check_qp(s, &init);
    if (!ret) {
        ret = read_qp_pages(s, cmd, &init, &pages);
    }
    if (ret) {
        return ret;
    }
    qp = add_qp(s, cmd, &init, &pages);
    ret = rdma_hca_qp_create(&s->hca, &qp->core);
    if (ret) {
        return ret;
    }
    p->qpn = cpu_to_le32(qp->core.init.wire_qpn);
    if (pvrdma_version(s) >= PVRDMA_VERSION_HANDLES) {
        p->handle = cpu_to_le32(init.qpn);
    }
    return 0;
}

int pvrdma_modify_qp(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdModifyQp *cmd = req;
    uint32_t qpn = le32_to_cpu(cmd->handle);
    uint32_t mask = le32_to_cpu(cmd->mask);
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, qpn);
    RdmaQpAttr attr;
    int ret;

    pvrdma_get_qp_attr(&cmd->attr, &attr);
    ret = rdma_hca_qp_modify(&s->hca, qpn, mask, &attr);
    if (!ret && (mask & RDMA_QP_STATE) && attr.qp_state != RDMA_QPS_RESET) {
        pvrdma_qp(qp)->sq.stopped = pvrdma_qp(qp)->rq.stopped = false;
    }
    return ret;
}

int pvrdma_query_qp(Pvrdma *s, const void *req, void *rsp)
{
    PvrdmaRspQueryQp *p = rsp;
    RdmaQpAttr attr = {};
    int ret = rdma_hca_qp_query(&s->hca, pvrdma_handle_of(req), &attr);

    if (!ret) {
        pvrdma_put_qp_attr(&p->attr, &attr);
    }
    return ret;
}

int pvrdma_qp_drop(Pvrdma *s, uint32_t qpn)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, qpn);
    int ret = rdma_hca_qp_destroy(&s->hca, qpn);

    if (ret && ret != -EINPROGRESS && qp) {
        pvrdma_qp(qp)->sq.stopped = pvrdma_qp(qp)->rq.stopped = true;
    }
    return ret;
}

int pvrdma_destroy_qp(Pvrdma *s, const void *req, void *rsp)
{
    return pvrdma_qp_drop(s, pvrdma_handle_of(req));
}
