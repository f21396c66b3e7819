/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: its objects become records.
 */
#include "qemu/osdep.h"
#include "virtio-rdma-vmstate.h"

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
    v->cqn = cq->cqn;
    v->cqe = cq->cqe;
    v->arm = cq->arm;
    v->error = cq->error;
    /* What is saved is validated, too */
    v->max_cqe = cq->cqe;
    v->n_backlog = cq->n_backlog;
    v->backlog = g_new(VirtIORdmaCqe, cq->n_backlog);
    for (uint32_t i = 0; i < cq->n_backlog; i++) {
        v->backlog[i] = *virtio_rdma_cq_backlog_at(cq, i);
    }
    v->is_eq = cq->is_eq;
    v->depth_shift = cq->depth_shift;
    v->npages = cq->npages;
    v->pages = g_memdup2(cq->pages, cq->npages * sizeof(*cq->pages));
    v->produced = cq->produced;
    v->consumed = cq->consumed;
    v->fired = cq->fired;
    v->eqn = cq->eq ? cq->eq->cqn : VIRTIO_RDMA_EQN_NONE;
    v->event_waits = cq->event_waits;
}

static void save_events(VirtIORdmaSaved *v, VirtIORdma *s)
{
    const RdmaEvent *event = NULL;

    v->events = g_new0(SavedEvent, virtio_rdma_events_count(s));
    while ((event = virtio_rdma_events_next(s, event))) {
        v->events[v->n_events++] = (SavedEvent) {
            .type = event->type,
            .id = event->id,
        };
    }
    v->port_active = virtio_rdma_port_was_active(s);
}

static void save_wq(SavedWq *v, const VirtIORdmaWq *wq)
{
    v->stale = wq->stale;
    v->count = wq->count;
    v->inflight = g_new(VirtIORdmaInflight, wq->count);
    for (uint32_t i = 0; i < wq->count; i++) {
        v->inflight[i] = *virtio_rdma_wq_inflight(wq, i);
    }
}

static void save_qp(SavedQp *v, const VirtIORdmaQp *qp)
{
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
        .queues = qp->direct,
        .pages = g_memdup2(qp->pages, qp->direct.pages.npages *
                                      sizeof(*qp->pages)),
        .sq_taken = qp->sq.slots.taken,
        .rq_taken = qp->rq.slots.taken,
        .broken = qp->sq.broken || qp->rq.broken,
    };
}

static void save_srq(SavedSrq *v, const VirtIORdmaSrq *srq)
{
    v->srqn = srq->attr.srqn;
    v->pdn = srq->attr.pdn;
    v->max_wr = srq->attr.max_wr;
    v->max_sge = srq->attr.max_sge;
    v->error = srq->error;
    v->direct = (SavedDirectSrq) {
        .queue = srq->direct,
        .pages = g_memdup2(srq->pages, srq->direct.pages.npages *
                                       sizeof(*srq->pages)),
        .taken = srq->wq.slots.taken,
        .broken = srq->wq.broken,
    };
}

static void save_mrs(VirtIORdmaSaved *v, VirtIORdma *s)
{
    VirtIORdmaMr *mr;

    v->mrs = g_new0(SavedMr, s->mrs.count - s->n_mws);
    v->mws = g_new0(SavedMw, s->n_mws);
    VIRTIO_RDMA_TABLE_FOREACH(&s->mrs, n, mr) {
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
    VirtIORdmaSrq *srq;
    VirtIORdmaCq *cq;
    VirtIORdmaPd *pd;
    VirtIORdmaQp *qp;

    virtio_rdma_saved_free(s);
    s->saved = v = g_new0(VirtIORdmaSaved, 1);
    v->dev = s;
    v->next_pdn = s->pds.next;
    v->next_cqn = s->cqs.next;
    v->next_mrn = s->mrs.next;
    v->next_srqn = s->srqs.next;
    v->next_qpn = s->qps.next;

    v->pds = g_new0(SavedPd, s->pds.count);
    VIRTIO_RDMA_TABLE_FOREACH(&s->pds, n, pd) {
        v->pds[v->n_pds++].pdn = pd->pdn;
    }
    v->cqs = g_new0(SavedCq, s->cqs.count);
    VIRTIO_RDMA_TABLE_FOREACH(&s->cqs, n, cq) {
        save_cq(&v->cqs[v->n_cqs++], cq);
    }
    save_mrs(v, s);
    v->srqs = g_new0(SavedSrq, s->srqs.count);
    VIRTIO_RDMA_TABLE_FOREACH(&s->srqs, n, srq) {
        save_srq(&v->srqs[v->n_srqs++], srq);
    }
    v->qps = g_new0(SavedQp, s->qps.count);
    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
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
    virtio_rdma_counters_get(s, v->counters);
    return 0;
}

int virtio_rdma_saved_post_save(void *opaque)
{
    virtio_rdma_saved_free(opaque);
    return 0;
}
