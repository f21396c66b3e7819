/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queues of all forms: take WQEs, keep those in flight, and retire them
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "int.h"

/* The first size of RdmaHcaWq.inflight */
#define MIN_INFLIGHT_ROOM 16

const char *rdma_hca_wq_owner(const RdmaHcaWq *wq)
{
    return wq->kind == RDMA_SRQ ? "SRQ" : "QP";
}

RdmaHcaInflight *rdma_hca_wq_inflight(const RdmaHcaWq *wq, uint32_t i)
{
    return &wq->inflight[(wq->head + i) & (wq->inflight_room - 1)];
}

static void inflight_grow(RdmaHcaWq *wq)
{
    uint32_t room = MAX(2 * wq->inflight_room, MIN_INFLIGHT_ROOM);
    RdmaHcaInflight *bigger = g_new(RdmaHcaInflight, room);

    for (uint32_t i = 0; i < wq->count; i++) {
        bigger[i] = *rdma_hca_wq_inflight(wq, i);
    }
    g_free(wq->inflight);
    wq->inflight = bigger;
    wq->inflight_room = room;
    wq->head = 0;
}

void rdma_hca_wq_push(RdmaHcaWq *wq, const RdmaHcaInflight *inflight)
{
    if (wq->count == wq->inflight_room) {
        inflight_grow(wq);
    }
    wq->count++;
    *rdma_hca_wq_inflight(wq, wq->count - 1) = *inflight;
}

RdmaHcaInflight *rdma_hca_wq_newest(RdmaHcaWq *wq)
{
    return rdma_hca_wq_inflight(wq, wq->count - 1);
}

bool rdma_hca_wq_take(RdmaHca *hca, RdmaHcaWq *wq)
{
    RdmaHcaInflight inflight = {};

    if (wq->broken || wq->count >= wq->ops->depth(wq) ||
        !wq->ops->take(hca, wq, &inflight.place)) {
        return false;
    }
    rdma_hca_wq_push(wq, &inflight);
    return true;
}

void rdma_hca_wq_put_back(RdmaHca *hca, RdmaHcaWq *wq)
{
    wq->count--;
    wq->ops->put_back(hca, wq);
}

bool rdma_hca_wq_check(RdmaHca *hca, RdmaHcaWq *wq)
{
    return !wq->broken && wq->ops->check(hca, wq);
}

RdmaNext rdma_hca_wq_sleep(RdmaHca *hca, RdmaHcaWq *wq)
{
    RdmaNext next = wq->broken ? RDMA_NEXT_NONE : wq->ops->sleep(hca, wq);

    /* A driver may post more WQEs than can be in flight: take them later. */
    return next == RDMA_NEXT_WR && wq->count >= wq->ops->depth(wq)
           ? RDMA_NEXT_NONE : next;
}

static void retire_oldest(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        rdma_hca_pages_charge_mr(hca, rdma_hca_wq_inflight(wq, i));
    }
    if (wq->ops->retire) {
        wq->ops->retire(hca, wq, count);
    }
    wq->head = (wq->head + count) & (wq->inflight_room - 1);
    wq->count -= count;
}

void rdma_hca_wq_retire(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count)
{
    uint32_t stale = MIN(count, wq->stale);

    trace_rdma_hca_wq_retire(hca->owner, wq->id, wq->kind, count);
    wq->stale -= stale;
    count = MIN(count - stale, wq->count);
    if (count) {
        retire_oldest(hca, wq, count);
    }
}

void rdma_hca_wq_drain(RdmaHca *hca, RdmaHcaWq *wq)
{
    uint32_t n = wq->count;

    if (!rdma_hca_is_active(hca)) {
        return;
    }
    if (n) {
        retire_oldest(hca, wq, n);
    }
    /* The backend has dropped the WQEs that it had. */
    wq->stale = 0;
    wq->ops->drain(hca, wq, n);
}

void rdma_hca_wq_destroy(RdmaHca *hca, RdmaHcaWq *wq)
{
    rdma_hca_wq_drain(hca, wq);
    if (wq->ops->destroyed) {
        wq->ops->destroyed(hca, wq);
    }
}

bool rdma_hca_wq_forget(RdmaHca *hca, RdmaHcaWq *wq)
{
    bool lost = wq->count != 0;

    for (uint32_t i = 0; i < wq->count; i++) {
        rdma_hca_pages_charge_mr(hca, rdma_hca_wq_inflight(wq, i));
    }
    wq->stale += wq->count;
    wq->count = 0;
    wq->head = 0;
    return lost;
}

void rdma_hca_wq_init(RdmaHcaWq *wq, RdmaQueue kind, uint32_t id,
                      uint32_t max_sge, uint32_t max_inline)
{
    wq->kind = kind;
    wq->id = id;
    wq->max_sge = max_sge;
    wq->max_inline = max_inline;
    QTAILQ_INIT(&wq->held);
}
