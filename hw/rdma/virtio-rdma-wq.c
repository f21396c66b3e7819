/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queues, whatever their form: WQEs that are taken, in flight, and done.
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "virtio-rdma-wq.h"

static const VirtIORdmaWqOps *ops_of(const RdmaHcaWq *wq)
{
    return container_of(wq->ops, VirtIORdmaWqOps, core);
}

/* WQEs in flight that a queue has room for at first */
#define MIN_INFLIGHT_ROOM 16

RdmaHcaInflight *virtio_rdma_wq_inflight(const RdmaHcaWq *wq, uint32_t i)
{
    return &wq->inflight[(wq->head + i) & (wq->inflight_room - 1)];
}

static void inflight_grow(RdmaHcaWq *wq)
{
    uint32_t room = MAX(2 * wq->inflight_room, MIN_INFLIGHT_ROOM);
    RdmaHcaInflight *more = g_new(RdmaHcaInflight, room);

    for (uint32_t i = 0; i < wq->count; i++) {
        more[i] = *virtio_rdma_wq_inflight(wq, i);
    }
    g_free(wq->inflight);
    wq->inflight = more;
    wq->inflight_room = room;
    wq->head = 0;
}

void virtio_rdma_wq_push(RdmaHcaWq *wq, const RdmaHcaInflight *inflight)
{
    if (wq->count == wq->inflight_room) {
        inflight_grow(wq);
    }
    wq->count++;
    wq->ndescs += inflight->ndescs;
    *virtio_rdma_wq_inflight(wq, wq->count - 1) = *inflight;
}

RdmaHcaInflight *virtio_rdma_wq_newest(RdmaHcaWq *wq)
{
    return virtio_rdma_wq_inflight(wq, wq->count - 1);
}

static void pad(VirtIORdma *s, size_t n, size_t fixed)
{
    if (n < fixed) {
        memset(s->scratch->wqe + n, 0, fixed - n);
    }
}

bool virtio_rdma_wq_take(VirtIORdma *s, RdmaHcaWq *wq, size_t fixed,
                         VirtIORdmaTaken *t)
{
    RdmaHcaInflight inflight = {};

    *t = (VirtIORdmaTaken) {};
    if (wq->broken || wq->count >= virtio_rdma_wq_depth(wq) ||
        !ops_of(wq)->take(s, wq, t, &inflight)) {
        return false;
    }
    pad(s, t->len, fixed);
    virtio_rdma_wq_push(wq, &inflight);
    return true;
}

void virtio_rdma_wq_put_back(VirtIORdma *s, RdmaHcaWq *wq,
                             VirtIORdmaTaken *t)
{
    wq->ndescs -= virtio_rdma_wq_newest(wq)->ndescs;
    wq->count--;
    ops_of(wq)->put_back(s, wq, t);
}

bool virtio_rdma_wq_ring_size(VirtIORdma *s, const RdmaHcaWq *wq,
                              uint32_t *size)
{
    bool ring = ops_of(wq)->ring_size;

    *size = ring ? ops_of(wq)->ring_size(s, wq) : 0;
    return ring;
}

uint32_t virtio_rdma_wq_depth(const RdmaHcaWq *wq)
{
    return ops_of(wq)->depth(wq);
}

bool virtio_rdma_wq_check(VirtIORdma *s, RdmaHcaWq *wq)
{
    return !wq->broken && ops_of(wq)->check(s, wq);
}

void virtio_rdma_wq_ring(VirtIORdma *s, RdmaHcaWq *wq, bool alone)
{
    if (ops_of(wq)->ring) {
        ops_of(wq)->ring(s, wq, alone);
    }
}

bool virtio_rdma_wq_wake(VirtIORdma *s, RdmaHcaWq *wq)
{
    return ops_of(wq)->wake(s, wq);
}

RdmaNext virtio_rdma_wq_sleep(VirtIORdma *s, RdmaHcaWq *wq)
{
    RdmaNext next = wq->broken ? RDMA_NEXT_NONE : ops_of(wq)->sleep(s, wq);

    /* A driver may have posted more than the queue holds. */
    return next == RDMA_NEXT_WR && wq->count >= virtio_rdma_wq_depth(wq)
           ? RDMA_NEXT_NONE : next;
}

bool virtio_rdma_wq_get_sges(VirtIORdma *s, uint32_t max_sge,
                             uint32_t num_sge, size_t fixed, size_t len)
{
    if (!virtio_rdma_check_range("num_sge", num_sge, 0,
                                 MIN(max_sge, (len - fixed) /
                                     VIRTIO_RDMA_SGE_SIZE))) {
        return false;
    }
    virtio_rdma_codec_get_sges(s->scratch->wqe + fixed, num_sge,
                               s->scratch->sge);
    return true;
}

void virtio_rdma_wq_restore_order(VirtIORdma *s, RdmaHcaWq *wq)
{
    if (ops_of(wq)->restore_order) {
        ops_of(wq)->restore_order(s, wq);
    }
}

void virtio_rdma_wq_destroyed(VirtIORdma *s, RdmaHcaWq *wq)
{
    if (ops_of(wq)->destroyed) {
        ops_of(wq)->destroyed(s, wq);
    }
}

static void push_oldest(VirtIORdma *s, RdmaHcaWq *wq, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        virtio_rdma_pages_pass(s, virtio_rdma_wq_inflight(wq, i));
    }
    if (ops_of(wq)->retire) {
        ops_of(wq)->retire(s, wq, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        wq->ndescs -= virtio_rdma_wq_inflight(wq, i)->ndescs;
    }
    wq->head = (wq->head + count) & (wq->inflight_room - 1);
    wq->count -= count;
}

void virtio_rdma_wq_retire(VirtIORdma *s, RdmaHcaWq *wq, uint32_t count)
{
    uint32_t stale = MIN(count, wq->stale);

    trace_virtio_rdma_wq_retire(s, wq->id, wq->kind, count);
    wq->stale -= stale;
    count = MIN(count - stale, wq->count);
    if (count) {
        push_oldest(s, wq, count);
    }
}

void virtio_rdma_wq_drain(VirtIORdma *s, RdmaHcaWq *wq)
{
    uint32_t n = wq->count;

    if (!virtio_rdma_active(s)) {
        return;
    }
    if (n) {
        push_oldest(s, wq, n);
    }
    /* The backend has dropped what it had. */
    wq->stale = 0;
    ops_of(wq)->drain(s, wq, n);
}

bool virtio_rdma_wq_forget(VirtIORdma *s, RdmaHcaWq *wq)
{
    bool lost = wq->count != 0;

    for (uint32_t i = 0; i < wq->count; i++) {
        virtio_rdma_pages_pass(s, virtio_rdma_wq_inflight(wq, i));
    }
    wq->stale += wq->count;
    wq->count = 0;
    wq->ndescs = 0;
    wq->head = 0;
    virtio_rdma_wq(wq)->seen = 0;
    return lost;
}

void virtio_rdma_wq_init(RdmaHcaWq *wq, RdmaQueue kind, uint32_t id,
                         uint32_t max_sge, uint32_t max_inline)
{
    wq->kind = kind;
    wq->id = id;
    wq->max_sge = max_sge;
    wq->max_inline = max_inline;
    QTAILQ_INIT(&wq->held);
}

void virtio_rdma_wqs_init(VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->hca.limits;
    uint32_t max_sge = MAX(MAX(l->max_send_sge, l->max_recv_sge),
                           l->max_srq_sge);

    s->scratch = g_new0(VirtIORdmaScratch, 1);
    s->scratch->wqe_room = VIRTIO_RDMA_WQE_ROOM +
                           MAX(max_sge * VIRTIO_RDMA_SGE_SIZE,
                               l->max_inline_data);
    s->scratch->wqe = g_malloc0(s->scratch->wqe_room);
    s->scratch->sge = g_new0(RdmaSge, MAX(max_sge, 1));
}

void virtio_rdma_wqs_free(VirtIORdma *s)
{
    g_free(s->scratch->last.elem);
    g_free(s->scratch->wqe);
    g_free(s->scratch->sge);
    g_free(s->scratch);
    s->scratch = NULL;
}
