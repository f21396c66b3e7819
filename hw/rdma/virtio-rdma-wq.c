/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queues of QPs: what is in flight, from the guest's ring and back to it.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "qemu/rcu.h"
#include "trace.h"
#include "virtio-rdma-wq.h"

/* WQEs in flight that a queue has room for at first */
#define MIN_INFLIGHT_ROOM 16

VirtIORdmaInflight *virtio_rdma_wq_inflight(const VirtIORdmaWq *wq, uint32_t i)
{
    return &wq->inflight[(wq->head + i) & (wq->inflight_room - 1)];
}

static void inflight_grow(VirtIORdmaWq *wq)
{
    uint32_t room = MAX(2 * wq->inflight_room, MIN_INFLIGHT_ROOM);
    VirtIORdmaInflight *more = g_new(VirtIORdmaInflight, room);

    for (uint32_t i = 0; i < wq->count; i++) {
        more[i] = *virtio_rdma_wq_inflight(wq, i);
    }
    g_free(wq->inflight);
    wq->inflight = more;
    wq->inflight_room = room;
    wq->head = 0;
}

void virtio_rdma_wq_push(VirtIORdmaWq *wq, const VirtIORdmaInflight *inflight)
{
    if (wq->count == wq->inflight_room) {
        inflight_grow(wq);
    }
    wq->count++;
    wq->ndescs += inflight->ndescs;
    *virtio_rdma_wq_inflight(wq, wq->count - 1) = *inflight;
}

VirtIORdmaInflight *virtio_rdma_wq_newest(VirtIORdmaWq *wq)
{
    return virtio_rdma_wq_inflight(wq, wq->count - 1);
}

/*
 * The next element of @wq, or NULL. The device is broken if the driver made
 * more descriptors available than the ring has: to return the elements would
 * lead out of the ring. In packed rings the driver chooses ids, too.
 */
static VirtQueueElement *wq_pop(VirtIORdma *s, VirtIORdmaWq *wq)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    int n = virtio_get_queue_index(wq->vq);
    uint32_t size = virtio_queue_get_num(vdev, n);
    g_autofree VirtQueueElement *elem =
        virtqueue_pop(wq->vq, sizeof(VirtQueueElement));

    if (!elem) {
        return NULL;
    }
    if (wq->ndescs + elem->ndescs > size || elem->index >= size) {
        virtio_error(vdev, "virtio-rdma: buffer %u of virtqueue %d has %u "
                     "descriptors, those that the device holds already have "
                     "%u, but the ring has %u entries", elem->index, n,
                     elem->ndescs, wq->ndescs, size);
        virtqueue_detach_element(wq->vq, elem, 0);
        return NULL;
    }
    return g_steal_pointer(&elem);
}

static void pad(VirtIORdma *s, size_t n, size_t fixed)
{
    if (n < fixed) {
        memset(s->scratch->wqe + n, 0, fixed - n);
    }
}

void virtio_rdma_wq_copy(VirtIORdma *s, VirtQueueElement *elem, size_t fixed,
                         VirtIORdmaTaken *t)
{
    VirtIORdmaScratch *sc = s->scratch;

    pad(s, virtio_rdma_codec_read(elem, sc->wqe, sc->wqe_room), fixed);
    t->elem = elem;
    t->len = iov_size(elem->out_sg, elem->out_num);
    t->cost = virtio_rdma_elem_bytes(elem);
}

bool virtio_rdma_wq_take_slot(VirtIORdma *s, VirtIORdmaSlots *slots,
                              size_t fixed, VirtIORdmaTaken *t, bool *broken)
{
    VirtIORdmaScratch *sc = s->scratch;

    *t = (VirtIORdmaTaken) {};
    if (*broken || !virtio_rdma_slots_take(s, slots, sc->wqe, sc->wqe_room,
                                           &t->len, broken)) {
        return false;
    }
    pad(s, t->len, fixed);
    return true;
}

uint32_t virtio_rdma_wq_depth(const VirtIORdmaWq *wq)
{
    return virtio_rdma_is_direct(wq) ? wq->slots.depth : VIRTQUEUE_MAX_SIZE;
}

bool virtio_rdma_wq_take(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq,
                         size_t fixed, VirtIORdmaTaken *t)
{
    VirtIORdmaInflight inflight = {};
    VirtQueueElement *elem;

    if (virtio_rdma_is_direct(wq)) {
        if (!virtio_rdma_wq_take_slot(s, &wq->slots, fixed, t, &qp->broken)) {
            return false;
        }
    } else {
        elem = virtio_rdma_ring_check(s, wq->vq, &wq->seen) ? wq_pop(s, wq)
                                                            : NULL;
        if (!elem) {
            return false;
        }
        virtio_rdma_wq_copy(s, elem, fixed, t);
        inflight.index = elem->index;
        inflight.ndescs = elem->ndescs;
        virtio_rdma_vq_unmap(s, elem);
    }
    virtio_rdma_wq_push(wq, &inflight);
    return true;
}

void virtio_rdma_wq_untake(VirtIORdma *s, VirtIORdmaWq *wq, VirtIORdmaTaken *t)
{
    wq->ndescs -= virtio_rdma_wq_newest(wq)->ndescs;
    wq->count--;
    if (t->elem) {
        virtio_rdma_vq_unpop(s, wq->vq, t->elem);
    } else {
        virtio_rdma_slots_untake(&wq->slots);
    }
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

void virtio_rdma_wq_restore_order(VirtIORdma *s, VirtIORdmaWq *wq)
{
    bool same;

    if (virtio_rdma_is_direct(wq)) {
        return;
    }
    same = virtqueue_rewind(wq->vq, wq->ndescs);
    for (uint32_t i = 0; same && i < wq->count; i++) {
        const VirtIORdmaInflight *inflight = virtio_rdma_wq_inflight(wq, i);
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(wq->vq, sizeof(VirtQueueElement));

        same = elem && elem->index == inflight->index &&
               elem->ndescs == inflight->ndescs;
        if (elem) {
            virtio_rdma_vq_unmap(s, elem);
        }
    }
    if (!same) {
        virtio_error(VIRTIO_DEVICE(s), "virtio-rdma: virtqueue %d does not "
                     "have the %u buffers any more that were in flight when "
                     "the VM migrated", virtio_get_queue_index(wq->vq),
                     wq->count);
    }
}

static void push_oldest(VirtIORdma *s, VirtIORdmaWq *wq, uint32_t count)
{
    RCU_READ_LOCK_GUARD();

    for (uint32_t i = 0; i < count; i++) {
        const VirtIORdmaInflight *inflight = virtio_rdma_wq_inflight(wq, i);
        VirtQueueElement elem = {
            .index = inflight->index,
            .ndescs = inflight->ndescs,
        };

        virtio_rdma_pages_pass(s, inflight);
        if (wq->vq) {
            virtqueue_fill(wq->vq, &elem, 0, i);
        }
        wq->ndescs -= inflight->ndescs;
    }
    if (wq->vq) {
        virtqueue_flush(wq->vq, count);
        virtio_rdma_vq_notify(s, wq->vq);
    }
    wq->head = (wq->head + count) & (wq->inflight_room - 1);
    wq->count -= count;
}

void virtio_rdma_wq_retire(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq,
                           uint32_t count)
{
    uint32_t stale = MIN(count, wq->stale);

    trace_virtio_rdma_wq_retire(s, qp->init.qpn, wq->kind, count);
    wq->stale -= stale;
    count = MIN(count - stale, wq->count);
    if (count) {
        push_oldest(s, wq, count);
    }
}

void virtio_rdma_wq_drain(VirtIORdma *s, VirtIORdmaWq *wq)
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
    if (virtio_rdma_is_direct(wq)) {
        virtio_rdma_slots_drain(s, &wq->slots);
    } else {
        virtio_rdma_ring_drain_after(s, wq->vq, n);
    }
}

bool virtio_rdma_wq_forget(VirtIORdma *s, VirtIORdmaWq *wq)
{
    bool lost = wq->count != 0;

    for (uint32_t i = 0; i < wq->count; i++) {
        virtio_rdma_pages_pass(s, virtio_rdma_wq_inflight(wq, i));
    }
    wq->stale += wq->count;
    wq->count = 0;
    wq->ndescs = 0;
    wq->head = 0;
    wq->seen = 0;
    return lost;
}

void virtio_rdma_wq_init(VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->limits;
    uint32_t max_sge = MAX(MAX(l->max_send_sge, l->max_recv_sge),
                           l->max_srq_sge);

    s->scratch = g_new0(VirtIORdmaScratch, 1);
    s->scratch->wqe_room = VIRTIO_RDMA_WQE_ROOM +
                           MAX(max_sge * VIRTIO_RDMA_SGE_SIZE,
                               l->max_inline_data);
    s->scratch->wqe = g_malloc0(s->scratch->wqe_room);
    s->scratch->sge = g_new0(RdmaSge, MAX(max_sge, 1));
}

void virtio_rdma_wq_free(VirtIORdma *s)
{
    g_free(s->scratch->last.elem);
    g_free(s->scratch->wqe);
    g_free(s->scratch->sge);
    g_free(s->scratch);
    s->scratch = NULL;
}
