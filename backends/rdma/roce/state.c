/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Export and import of objects (rdma/roce-state.h).
 */
#include <string.h>
#include <glib.h>
#include "roce-int.h"

void roce_import_stats(RoceEngine *e, const RoceStats *stats)
{
    e->stats = *stats;
}

int roce_export_qp_stats(const RoceEngine *e, uint32_t qpn, RdmaQpStats *stats)
{
    const RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp) {
        return -ENOENT;
    }
    *stats = qp->stats;
    return 0;
}

int roce_import_qp_stats(RoceEngine *e, uint32_t qpn, const RdmaQpStats *stats)
{
    RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp) {
        return -ENOENT;
    }
    qp->stats = *stats;
    return 0;
}

/* Memory regions */

bool roce_has_mr(const RoceEngine *e, uint32_t mrn)
{
    return roce_mr_find(e, mrn) != NULL;
}

/* Find the next MR or window; both are in the table of MRs. */
static bool next_mr(const RoceEngine *e, uint32_t *n, bool window)
{
    const RoceMr *mr;

    for (; (mr = roce_table_next(&e->mrs, n)); (*n)++) {
        if (!!mr->mw_type == window) {
            return true;
        }
    }
    return false;
}

bool roce_next_mr(const RoceEngine *e, uint32_t *mrn)
{
    return next_mr(e, mrn, false);
}

static uint64_t *copy_pages(const uint64_t *pages, uint32_t n)
{
    return n ? g_memdup2(pages, (gsize)n * sizeof(*pages)) : NULL;
}

int roce_export_mr(const RoceEngine *e, uint32_t mrn, RoceMrImage *image)
{
    const RoceMr *mr = roce_mr_find(e, mrn);

    if (!mr) {
        return -ENOENT;
    }
    *image = (RoceMrImage) { .attr = mr->attr, .valid = mr->valid };
    if (mr->valid) {
        image->attr.pages = copy_pages(mr->attr.pages, mr->attr.npages);
    } else {
        image->attr.pages = NULL;
        image->attr.npages = 0;
        image->attr.iova = 0;
        image->attr.length = 0;
    }
    if (mr->pending) {
        image->pending = true;
        image->pending_iova = mr->pending_iova;
        image->pending_length = mr->pending_length;
        image->pending_npages = mr->pending_npages;
        image->pending_pages = copy_pages(mr->pending_pages,
                                          mr->pending_npages);
    }
    return 0;
}

void roce_mr_image_clear(RoceMrImage *image)
{
    g_clear_pointer(&image->attr.pages, g_free);
    g_clear_pointer(&image->pending_pages, g_free);
}

int roce_import_mr(RoceEngine *e, const RoceMrImage *image, char **why)
{
    RoceMr *mr;

    *why = roce_check_mr(e, image);
    if (*why) {
        return -EINVAL;
    }
    mr = g_new0(RoceMr, 1);
    mr->attr = image->attr;
    mr->attr.pages = copy_pages(image->attr.pages, image->attr.npages);
    mr->valid = image->valid;
    if (image->pending) {
        mr->pending = true;
        mr->pending_iova = image->pending_iova;
        mr->pending_length = image->pending_length;
        mr->pending_npages = image->pending_npages;
        mr->pending_pages = copy_pages(image->pending_pages,
                                       image->pending_npages);
    }
    roce_table_set(&e->mrs, mr->attr.mrn, mr);
    return 0;
}

/* Memory windows */

bool roce_has_mw(const RoceEngine *e, uint32_t mwn)
{
    return roce_mw_find(e, mwn) != NULL;
}

bool roce_next_mw(const RoceEngine *e, uint32_t *mwn)
{
    return next_mr(e, mwn, true);
}

int roce_export_mw(const RoceEngine *e, uint32_t mwn, RoceMwImage *image)
{
    const RoceMr *mw = roce_mw_find(e, mwn);

    if (!mw) {
        return -ENOENT;
    }
    *image = (RoceMwImage) {
        .attr = {
            .mwn = mwn,
            .pdn = mw->attr.pdn,
            .type = mw->mw_type,
            .rkey = mw->attr.rkey,
        },
    };
    if (mw->region) {
        image->bound = true;
        image->mrn = mw->region->attr.mrn;
        image->qpn = mw->qpn;
        image->access = mw->attr.access;
        image->addr = mw->attr.iova + mw->region_off;
        image->length = mw->attr.length;
    }
    return 0;
}

int roce_import_mw(RoceEngine *e, const RoceMwImage *image, char **why)
{
    RoceMwBinding binding = {
        .addr = image->addr,
        .length = image->length,
        .access = image->access,
        .qpn = image->qpn,
    };

    *why = roce_check_mw(e, image);
    if (!*why && roce_mw_create(e, &image->attr)) {
        *why = roce_explain_mw(e, &image->attr);
    }
    if (*why) {
        return -EINVAL;
    }
    if (image->bound) {
        roce_mw_set(e, roce_mw_find(e, image->attr.mwn),
                    roce_mr_find(e, image->mrn), &binding);
    }
    return 0;
}

/* Shared receive queues */

static RdmaSge *copy_sges(const RdmaSge *sges, uint32_t n)
{
    return n ? g_memdup2(sges, (gsize)n * sizeof(*sges)) : NULL;
}

bool roce_has_srq(const RoceEngine *e, uint32_t srqn)
{
    return roce_srq_find(e, srqn) != NULL;
}

bool roce_next_srq(const RoceEngine *e, uint32_t *srqn)
{
    return roce_table_next(&e->srqs, srqn) != NULL;
}

int roce_export_srq(const RoceEngine *e, uint32_t srqn, RoceSrqImage *image)
{
    const RoceSrq *srq = roce_srq_find(e, srqn);

    if (!srq) {
        return -ENOENT;
    }
    *image = (RoceSrqImage) { .attr = srq->attr };
    if (srq->has_wqe) {
        image->n_recv = 1;
        image->n_recv_sges = srq->wqe.num_sge;
        image->recv = g_memdup2(&srq->wqe, sizeof(srq->wqe));
        image->recv_sges = copy_sges(srq->sges, srq->wqe.num_sge);
    }
    return 0;
}

void roce_srq_image_clear(RoceSrqImage *image)
{
    g_clear_pointer(&image->recv, g_free);
    g_clear_pointer(&image->recv_sges, g_free);
}

int roce_import_srq(RoceEngine *e, const RoceSrqImage *image,
                    const RdmaSrqAttr *max, char **why)
{
    RoceSrq *srq;

    *why = roce_check_srq(image, max);
    if (!*why && roce_srq_create(e, &image->attr)) {
        *why = roce_explain_srq(e, &image->attr);
    }
    if (*why) {
        return -EINVAL;
    }
    srq = roce_srq_find(e, image->attr.srqn);
    if (image->n_recv) {
        srq->has_wqe = true;
        srq->wqe = image->recv[0];
        if (image->n_recv_sges) {
            memcpy(srq->sges, image->recv_sges,
                   image->n_recv_sges * sizeof(RdmaSge));
        }
    }
    return 0;
}

/* Queue pairs */

bool roce_has_qp(const RoceEngine *e, uint32_t qpn)
{
    return roce_qp_find(e, qpn) != NULL;
}

bool roce_next_qp(const RoceEngine *e, uint32_t *qpn)
{
    return roce_table_next(&e->qps, qpn) != NULL;
}

static uint32_t inline_size(const RoceSendWqe *wqe)
{
    return wqe->is_inline ? wqe->length : 0;
}

static void export_send(const RoceQp *qp, RoceQpImage *image)
{
    const RoceSqState *sq = &qp->s.sq;
    uint64_t *pages;
    RdmaSge *sge;
    uint8_t *data;
    uint32_t i;

    image->n_send = sq->prod - sq->cons;
    for (i = sq->cons; i != sq->prod; i++) {
        image->n_send_sges += roce_swqe(qp, i)->num_sge;
        image->inline_len += inline_size(roce_swqe(qp, i));
        image->n_pages += roce_swqe(qp, i)->npages;
    }
    image->send = g_new0(RoceSendImage, image->n_send);
    image->send_sges = sge = g_new(RdmaSge, image->n_send_sges);
    image->inline_data = data = g_malloc(image->inline_len);
    image->pages = pages = g_new(uint64_t, image->n_pages);
    for (i = sq->cons; i != sq->prod; i++) {
        const RoceSendWqe *wqe = roce_swqe(qp, i);
        const RoceSendArgs *args = roce_sargs(qp, i);
        uint32_t n = inline_size(wqe);

        image->send[i - sq->cons].wqe = *wqe;
        if (args) {
            image->send[i - sq->cons].args = *args;
        }
        if (wqe->num_sge) {
            memcpy(sge, roce_ssges(qp, i), wqe->num_sge * sizeof(*sge));
            sge += wqe->num_sge;
        }
        if (n) {
            memcpy(data, roce_sinline(qp, i), n);
            data += n;
        }
        if (wqe->npages) {
            memcpy(pages, *roce_spages(qp, i),
                   wqe->npages * sizeof(*pages));
            pages += wqe->npages;
        }
    }
}

static void export_recv(const RoceQp *qp, RoceQpImage *image)
{
    image->n_recv = qp->s.rq.prod - qp->s.rq.cons;
    if (image->n_recv) {
        image->n_recv_sges = qp->rwqe.num_sge;
        image->recv = g_memdup2(&qp->rwqe, sizeof(qp->rwqe));
        image->recv_sges = copy_sges(qp->rsges, qp->rwqe.num_sge);
    }
}

/* Export the resources that were used since RESET. */
static void export_resources(const RoceQp *qp, RoceQpImage *image)
{
    uint32_t prod = qp->s.resp.res_prod;
    uint32_t size = qp->res_mask + 1;
    uint32_t n = 0, i;

    while (qp->resources && n < size &&
           qp->resources[(prod - n - 1) & qp->res_mask].type !=
           ROCE_RES_NONE) {
        n++;
    }
    image->n_res = n;
    image->res = g_new(RoceResource, n);
    for (i = 0; i < n; i++) {
        image->res[i] = qp->resources[(prod - n + i) & qp->res_mask];
    }
}

int roce_export_qp(const RoceEngine *e, uint32_t qpn, RoceQpImage *image)
{
    const RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp) {
        return -ENOENT;
    }
    if (e->frame_out) {
        return -EBUSY;
    }
    *image = (RoceQpImage) {
        .init = qp->init,
        .s = qp->s,
        .send_cq_failed = qp->send_cq->failed,
        .recv_cq_failed = qp->recv_cq->failed,
    };
    export_send(qp, image);
    export_recv(qp, image);
    export_resources(qp, image);
    return 0;
}

void roce_qp_image_clear(RoceQpImage *image)
{
    g_clear_pointer(&image->send, g_free);
    g_clear_pointer(&image->send_sges, g_free);
    g_clear_pointer(&image->inline_data, g_free);
    g_clear_pointer(&image->pages, g_free);
    g_clear_pointer(&image->recv, g_free);
    g_clear_pointer(&image->recv_sges, g_free);
    g_clear_pointer(&image->res, g_free);
}

static void import_send(RoceQp *qp, const RoceQpImage *image)
{
    const RdmaSge *sge = image->send_sges;
    const uint8_t *data = image->inline_data;
    const uint64_t *pages = image->pages;
    uint32_t i;

    for (i = 0; i < image->n_send; i++) {
        const RoceSendWqe *wqe = &image->send[i].wqe;
        uint32_t index = qp->s.sq.cons + i;
        uint32_t n = inline_size(wqe);

        *roce_swqe(qp, index) = *wqe;
        *roce_sargs(qp, index) = image->send[i].args;
        if (wqe->num_sge) {
            memcpy(roce_ssges(qp, index), sge, wqe->num_sge * sizeof(*sge));
            sge += wqe->num_sge;
        }
        if (n) {
            memcpy(roce_sinline(qp, index), data, n);
            data += n;
        }
        if (wqe->npages) {
            *roce_spages(qp, index) = copy_pages(pages, wqe->npages);
            pages += wqe->npages;
        }
    }
}

static void import_recv(RoceQp *qp, const RoceQpImage *image)
{
    if (image->n_recv) {
        qp->rwqe = image->recv[0];
    }
    if (image->n_recv_sges) {
        memcpy(qp->rsges, image->recv_sges,
               image->n_recv_sges * sizeof(RdmaSge));
    }
}

int roce_import_qp(RoceEngine *e, const RoceQpImage *image,
                   const RdmaQpCap *max, char **why)
{
    int64_t deadline;
    RoceQp *qp;
    uint32_t i;

    *why = roce_check_qp(e, image, max);
    if (!*why && roce_qp_create_for(e, &image->init, image->n_send)) {
        *why = roce_explain_qp(e, &image->init);
    }
    if (*why) {
        return -EINVAL;
    }
    qp = roce_qp_find(e, image->init.qpn);
    qp->s = image->s;
    qp->mtu = qp->s.attr.path_mtu ? rdma_mtu_bytes(qp->s.attr.path_mtu) : 0;
    qp->send_cq->failed |= image->send_cq_failed;
    qp->recv_cq->failed |= image->recv_cq_failed;
    if ((image->send_cq_failed || image->recv_cq_failed) &&
        qp->s.attr.qp_state != RDMA_QPS_INIT) {
        /* The exporting engine had not moved the QP to ERR yet. */
        roce_cq_fail_later(e, qp->init.qpn);
        roce_wake(e);
    }
    import_send(qp, image);
    if (qp->init.qp_type == RDMA_QPT_RC) {
        roce_credit_import(qp);
    }
    import_recv(qp, image);
    if (image->n_res) {
        roce_resp_reserve(qp);
    }
    for (i = 0; i < image->n_res; i++) {
        qp->resources[(qp->s.resp.res_prod - image->n_res + i) &
                      qp->res_mask] = image->res[i];
    }
    roce_resp_find_last(qp);

    qp->ack_requested_psn = qp->s.sq.una;
    qp->rate = roce_pace_rate(qp, &qp->s.attr.ah_attr);
    qp->path_serial = e->gid_serial - 1;
    deadline = MIN(qp->s.sq.ack_deadline, qp->s.sq.rnr_deadline);
    if (deadline != ROCE_NO_DEADLINE) {
        roce_timer_arm(qp, deadline);
    }
    if (qp->s.attr.qp_state != RDMA_QPS_RESET) {
        roce_qp_schedule(qp);
    }
    return 0;
}
