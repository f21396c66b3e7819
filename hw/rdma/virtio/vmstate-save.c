/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: make records from objects.
 */
#include "qemu/osdep.h"
#include "vmstate.h"

void virtio_rdma_saved_free(VirtIORdma *s)
{
    VirtIORdmaSaved *v = s->saved;

    if (!v) {
        return;
    }
    for (uint32_t i = 0; v->qps && i < v->n_qps; i++) {
        g_free(v->qps[i].sq.inflight);
        g_free(v->qps[i].rq.inflight);
        g_free(v->qps[i].direct.pages);
    }
    for (uint32_t i = 0; v->cqs && i < v->n_cqs; i++) {
        g_free(v->cqs[i].backlog);
        g_free(v->cqs[i].pages);
    }
    for (uint32_t i = 0; v->srqs && i < v->n_srqs; i++) {
        g_free(v->srqs[i].direct.pages);
    }
    g_free(v->shadows);
    g_free(v->qp_counters);
    g_free(v->qps);
    g_free(v->srqs);
    g_free(v->mws);
    g_free(v->mrs);
    g_free(v->cqs);
    g_free(v->pds);
    g_free(v->stale_vqs);
    g_free(v->events);
    g_free(v);
    s->saved = NULL;
}

static void save_cq(SavedCq *v, VirtIORdmaCq *cq)
{
    v->cqn = cq->core.cqn;
    v->cqe = cq->core.cqe;
    v->arm = cq->arm;
    v->error = cq->core.error;
    /* VMSTATE_VALIDATE also checks records that are saved. */
    v->max_cqe = cq->core.cqe;
    v->n_backlog = cq->n_backlog;
    v->backlog = g_new(VirtIORdmaCqe, cq->n_backlog);
    for (uint32_t i = 0; i < cq->n_backlog; i++) {
        v->backlog[i] = *virtio_rdma_cq_backlog_at(cq, i);
    }
    v->is_eq = cq->core.is_eq;
    v->depth_shift = cq->depth_shift;
    v->npages = cq->npages;
    v->pages = g_memdup2(cq->pages, cq->npages * sizeof(*cq->pages));
    v->produced = cq->produced;
    v->consumed = cq->consumed;
    v->fired = cq->fired;
    v->eqn = cq->eq ? cq->eq->core.cqn : VIRTIO_RDMA_EQN_NONE;
    v->event_waits = cq->event_waits;
}

static void save_events(VirtIORdmaSaved *v, VirtIORdma *s)
{
    const RdmaEvent *event = NULL;

    v->events = g_new0(SavedEvent, rdma_hca_events_count(&s->hca));
    while ((event = rdma_hca_events_next(&s->hca, event))) {
        v->events[v->n_events++] = (SavedEvent) {
            .type = event->type,
            .id = event->id,
        };
    }
    v->port_active = s->hca.events.port_active;
}

static void save_wq(SavedWq *v, const RdmaHcaWq *wq)
{
    v->stale = wq->stale;
    v->count = wq->count;
    v->inflight = g_new(RdmaHcaInflight, wq->count);
    for (uint32_t i = 0; i < wq->count; i++) {
        v->inflight[i] = *rdma_hca_wq_inflight(wq, i);
    }
}

static void save_qp(SavedQp *v, const RdmaHcaQp *qp)
{
    const VirtIORdmaQp *forms = container_of(qp, VirtIORdmaQp, core);

    v->qpn = qp->init.qpn;
    v->pdn = qp->init.pdn;
    v->type = qp->init.qp_type;
    v->send_cqn = qp->init.send_cqn;
    v->recv_cqn = qp->init.recv_cqn;
    v->has_srq = qp->init.has_srq;
    v->srqn = qp->init.srqn;
    v->block_mcast_loopback = qp->init.block_mcast_loopback;
    v->sq_sig_all = qp->init.sq_sig_all;
    v->cap = qp->init.cap;
    save_wq(&v->sq, &qp->sq);
    save_wq(&v->rq, &qp->rq);
    v->direct = (SavedDirect) {
        .queues = forms->direct,
        .pages = g_memdup2(forms->pages, forms->direct.pages.npages *
                           sizeof(*forms->pages)),
        .sq_taken = forms->sq.slots.taken,
        .rq_taken = forms->rq.slots.taken,
        .broken = qp->sq.broken || qp->rq.broken,
    };
}

static void save_srq(SavedSrq *v, const RdmaHcaSrq *srq)
{
    const VirtIORdmaSrq *form = container_of(srq, VirtIORdmaSrq, core);

    v->srqn = srq->attr.srqn;
    v->pdn = srq->attr.pdn;
    v->max_wr = srq->attr.max_wr;
    v->max_sge = srq->attr.max_sge;
    v->error = srq->error;
    v->direct = (SavedDirectSrq) {
        .queue = form->direct,
        .pages = g_memdup2(form->pages, form->direct.pages.npages *
                           sizeof(*form->pages)),
        .taken = form->wq.slots.taken,
        .broken = srq->wq.broken,
    };
}

static void save_mrs(VirtIORdmaSaved *v, VirtIORdma *s)
{
    RdmaHcaMr *mr;

    v->mrs = g_new0(SavedMr, s->hca.mrs.count - s->hca.n_mws);
    v->mws = g_new0(SavedMw, s->hca.n_mws);
    RDMA_HCA_FOREACH(&s->hca.mrs, n, mr) {
        if (mr->mw_type) {
            v->mws[v->n_mws++] = (SavedMw) {
                .mwn = mr->mrn,
                .pdn = mr->pd->pdn,
                .type = mr->mw_type,
                .rkey = mr->rkey,
            };
        } else {
            v->mrs[v->n_mrs++] = (SavedMr) {
                .mrn = mr->mrn,
                .pdn = mr->pd->pdn,
                .type = mr->type,
                .key = mr->key,
                .rkey = mr->rkey,
                .npages = mr->npages,
                .pending = mr->pending,
                .max_pages = mr->max_pages,
            };
        }
    }
}

int virtio_rdma_saved_pre_save(void *opaque)
{
    VirtIORdma *s = opaque;
    VirtIORdmaSaved *v;
    RdmaHcaSrq *srq;
    RdmaHcaCq *cq;
    RdmaHcaPd *pd;
    RdmaHcaQp *qp;

    virtio_rdma_saved_free(s);
    s->saved = v = g_new0(VirtIORdmaSaved, 1);
    v->dev = s;
    v->next_pdn = s->hca.pds.next;
    v->next_cqn = s->hca.cqs.next;
    v->next_mrn = s->hca.mrs.next;
    v->next_srqn = s->hca.srqs.next;
    v->next_qpn = s->hca.qps.next;

    v->pds = g_new0(SavedPd, s->hca.pds.count);
    RDMA_HCA_FOREACH(&s->hca.pds, n, pd) {
        v->pds[v->n_pds++].pdn = pd->pdn;
    }
    v->cqs = g_new0(SavedCq, s->hca.cqs.count);
    RDMA_HCA_FOREACH(&s->hca.cqs, n, cq) {
        save_cq(&v->cqs[v->n_cqs++], virtio_rdma_cq(cq));
    }
    save_mrs(v, s);
    v->srqs = g_new0(SavedSrq, s->hca.srqs.count);
    RDMA_HCA_FOREACH(&s->hca.srqs, n, srq) {
        save_srq(&v->srqs[v->n_srqs++], srq);
    }
    v->qps = g_new0(SavedQp, s->hca.qps.count);
    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        save_qp(&v->qps[v->n_qps++], qp);
    }
    v->stale_vqs = g_new0(uint32_t, VIRTIO_QUEUE_MAX);
    for (uint32_t n = 0; n < VIRTIO_QUEUE_MAX; n++) {
        if (test_bit(n, s->stale_vqs)) {
            v->stale_vqs[v->n_stale_vqs++] = n;
        }
    }
    save_events(v, s);
    v->shadows = g_new0(SavedShadow, s->doorbells);
    for (uint32_t page = 0; page < s->doorbells; page++) {
        if (s->shadows[page].is_on) {
            v->shadows[v->n_shadows++] = (SavedShadow) {
                .doorbell = page,
                .addr = s->shadows[page].addr,
            };
        }
    }
    virtio_rdma_saved_counters_fill(v);
    rdma_hca_counters_get(&s->hca, v->counters);
    return 0;
}

int virtio_rdma_saved_post_save(void *opaque)
{
    virtio_rdma_saved_free(opaque);
    return 0;
}
