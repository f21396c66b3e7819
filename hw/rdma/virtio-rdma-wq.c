/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queues: the way of a WQE from the guest's ring to the backend.
 *
 * WQEs of SRQs are copied to the backend, and the buffers go back at once:
 * nothing of the virtqueue, or of the slots, waits for a message.
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

/*
 * Copy the WQE of @elem to the scratch buffer, or as much of it as fits, and at
 * least @fixed bytes. Returns the length of the WQE in guest memory.
 */
static size_t copy_wqe(VirtIORdma *s, const VirtQueueElement *elem,
                       size_t fixed)
{
    VirtIORdmaScratch *sc = s->scratch;

    pad(s, virtio_rdma_codec_read(elem, sc->wqe, sc->wqe_room), fixed);
    return iov_size(elem->out_sg, elem->out_num);
}

/* Take the next WQE of a direct queue, padded to @fixed bytes. */
static bool take_slot(VirtIORdma *s, VirtIORdmaSlots *slots, size_t fixed,
                      VirtIORdmaTaken *t, bool *broken)
{
    VirtIORdmaScratch *sc = s->scratch;

    t->elem = NULL;
    t->cost = VIRTIO_RDMA_COST_SLOT;
    if (*broken || !virtio_rdma_slots_take(s, slots, sc->wqe, sc->wqe_room,
                                           &t->len, broken)) {
        return false;
    }
    pad(s, t->len, fixed);
    return true;
}

bool virtio_rdma_wq_take(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq,
                    size_t fixed, VirtIORdmaTaken *t)
{
    VirtIORdmaInflight inflight = {};

    if (virtio_rdma_is_direct(wq)) {
        if (!take_slot(s, &wq->slots, fixed, t, &qp->broken)) {
            return false;
        }
    } else {
        t->elem = wq_pop(s, wq);
        if (!t->elem) {
            return false;
        }
        t->cost = virtio_rdma_elem_cost(t->elem);
        t->len = copy_wqe(s, t->elem, fixed);
        inflight.index = t->elem->index;
        inflight.ndescs = t->elem->ndescs;
        virtio_rdma_vq_unmap(s, t->elem);
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

static void decode_recv(VirtIORdma *s, size_t len, uint32_t max_sge,
                        const char *kind, uint32_t id, RdmaRecvWr *wr)
{
    size_t fixed = VIRTIO_RDMA_RECV_WQE_SIZE;

    virtio_rdma_codec_get_recv(s->scratch->wqe, wr);
    if (len < fixed ||
        !virtio_rdma_wq_get_sges(s, max_sge, wr->num_sge, fixed, len)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: bad receive WQE "
                      "of %zu bytes (%zu or more): num_sge %u\n", kind, id,
                      len, fixed, wr->num_sge);
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
        wr->num_sge = 0;
    } else {
        wr->sg_list = s->scratch->sge;
    }
}

static void take_recv(VirtIORdma *s, VirtIORdmaQp *qp, size_t len,
                      RdmaRecvWr *wr)
{
    decode_recv(s, len, qp->rq.max_sge, "QP", qp->init.qpn, wr);
    trace_virtio_rdma_wq_post(s, qp->init.qpn, RDMA_RQ, wr->wr_id,
                              wr->status);
}

static void take_srq_recv(VirtIORdma *s, VirtIORdmaSrq *srq, size_t len,
                          RdmaRecvWr *wr)
{
    decode_recv(s, len, srq->attr.max_sge, "SRQ", srq->attr.srqn, wr);
    trace_virtio_rdma_srq_post(s, srq->attr.srqn, wr->wr_id, wr->status);
    if (unlikely(s->fault_points & VIRTIO_RDMA_FAULT_AT_RECV) &&
        wr->status == RDMA_WC_SUCCESS) {
        virtio_rdma_fault_recv(s, NULL, wr, s->scratch->sge);
    }
}

/* May a fault strike what is posted now? In ERR it is flushed anyway. */
static bool may_fail(VirtIORdma *s, VirtIORdmaQp *qp, RdmaWcStatus status)
{
    return status == RDMA_WC_SUCCESS &&
           !virtio_rdma_qp_is_in(s, qp, RDMA_QPS_ERR);
}

static int post_recv(VirtIORdma *s, VirtIORdmaQp *qp, size_t len)
{
    RdmaRecvWr wr = {};

    take_recv(s, qp, len, &wr);
    if (unlikely(s->fault_points & VIRTIO_RDMA_FAULT_AT_RECV) &&
        may_fail(s, qp, wr.status)) {
        virtio_rdma_fault_recv(s, qp, &wr, s->scratch->sge);
    }
    return s->bc->post_recv(s->backend, qp->init.qpn, &wr);
}

static int post_srq_recv(VirtIORdma *s, VirtIORdmaSrq *srq, size_t len)
{
    RdmaRecvWr wr = {};

    take_srq_recv(s, srq, len, &wr);
    return s->bc->post_srq_recv(s->backend, srq->attr.srqn, &wr);
}

static uint32_t wq_depth(const VirtIORdmaWq *wq)
{
    return virtio_rdma_is_direct(wq) ? wq->slots.depth : VIRTQUEUE_MAX_SIZE;
}

/*
 * Does the backend ask for receives when it needs them? Then no one has to ring
 * for them. In ERR it needs none, but they are to be flushed.
 */
static bool is_pulled(VirtIORdma *s, VirtIORdmaQp *qp)
{
    return s->limits.pulls_recv && !qp->rq.watched &&
           !virtio_rdma_qp_is_in(s, qp, RDMA_QPS_ERR);
}

/*
 * Sleep if the look ended with an @empty queue that is not to be looked at
 * @again. If it was not awake the driver rings for what has come since.
 */
static void rq_looked(VirtIORdma *s, VirtIORdmaQp *qp, bool empty, bool again)
{
    VirtIORdmaSlots *slots = &qp->rq.slots;
    bool pulled = is_pulled(s, qp);

    if (!empty || pulled || again) {
        virtio_rdma_slots_wake(s, slots);
    } else if (slots->is_awake || slots->in_doubt) {
        again = !virtio_rdma_slots_sleep(s, slots, &qp->broken);
    }
    if (empty && again && !pulled) {
        virtio_rdma_qp_schedule(s, qp);
    }
}

bool virtio_rdma_rq_run(VirtIORdma *s, VirtIORdmaQp *qp, uint32_t *budget)
{
    VirtIORdmaWq *wq = &qp->rq;
    uint32_t slice = MIN(*budget, VIRTIO_RDMA_QUEUE_BUDGET);
    uint32_t left = slice, room = 0, posted = 0;
    bool empty = false;

    wq->blocked = false;
    if (!virtio_rdma_is_direct(wq) &&
        !virtio_rdma_ring_check(s, wq->vq, &wq->seen)) {
        return false;
    }
    for (;;) {
        VirtIORdmaTaken t;
        int ret;

        if (room == 0) {
            room = MIN(s->bc->recv_room(s->backend, qp->init.qpn),
                       wq_depth(wq) - wq->count);
            if (room == 0) {
                wq->blocked = true;
                break;
            }
        }
        if (left == 0) {
            virtio_rdma_qp_schedule(s, qp);
            break;
        }
        /* In flight before it is posted, which may retire it */
        if (!virtio_rdma_wq_take(s, qp, wq, VIRTIO_RDMA_RECV_WQE_SIZE, &t)) {
            empty = true;
            break;
        }
        virtio_rdma_pay(&left, t.cost);
        ret = post_recv(s, qp, t.len);
        if (ret) {
            virtio_rdma_wq_untake(s, wq, &t);
            wq->blocked = true;
        }
        g_free(t.elem);
        if (ret) {
            break;
        }
        wq->watched = false;
        posted++;
        room--;
    }
    if (virtio_rdma_is_direct(wq) && !qp->broken) {
        rq_looked(s, qp, empty, posted);
    }
    *budget -= slice - left;
    return posted;
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
    if (wq->blocked) {
        virtio_rdma_qp_schedule(s, qp);
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
    wq->watched = false;
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
    wq->watched = false;
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

/* May the device look for WQEs of @srq? */
static bool srq_look(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    if (srq->error || srq->broken) {
        return false;
    }
    return !srq->vq || virtio_rdma_ring_check(s, srq->vq, &srq->seen);
}

static bool srq_take(VirtIORdma *s, VirtIORdmaSrq *srq, VirtIORdmaTaken *t)
{
    if (!srq->vq) {
        return take_slot(s, &srq->slots, VIRTIO_RDMA_RECV_WQE_SIZE, t,
                         &srq->broken);
    }
    t->elem = virtqueue_pop(srq->vq, sizeof(VirtQueueElement));
    if (!t->elem) {
        return false;
    }
    t->cost = virtio_rdma_elem_cost(t->elem);
    t->len = copy_wqe(s, t->elem, VIRTIO_RDMA_RECV_WQE_SIZE);
    return true;
}

/* The backend has the WQE: a slot is free by now, a buffer is from here on. */
static void srq_taken(VirtIORdma *s, VirtIORdmaSrq *srq, VirtIORdmaTaken *t)
{
    if (t->elem) {
        virtqueue_push(srq->vq, t->elem, 0);
        virtio_rdma_vq_notify(s, srq->vq);
        g_free(t->elem);
    }
}

/* Without room it does not take it; who rings has the device try again. */
static void srq_untake(VirtIORdma *s, VirtIORdmaSrq *srq, VirtIORdmaTaken *t)
{
    if (t->elem) {
        virtio_rdma_vq_unpop(s, srq->vq, t->elem);
        g_free(t->elem);
    } else {
        virtio_rdma_slots_untake(&srq->slots);
        virtio_rdma_slots_sleep(s, &srq->slots, &srq->broken);
    }
}

/* As wq_empty(). An SRQ is pulled for its limit, too. */
static void srq_empty(VirtIORdma *s, VirtIORdmaSrq *srq, bool posted)
{
    if (!srq->vq && !srq->broken && !s->limits.pulls_recv &&
        (posted || !virtio_rdma_slots_sleep(s, &srq->slots, &srq->broken))) {
        virtio_rdma_srq_schedule(s, srq);
    }
}

bool virtio_rdma_srq_run(VirtIORdma *s, VirtIORdmaSrq *srq, uint32_t *budget)
{
    uint32_t slice = MIN(*budget, VIRTIO_RDMA_QUEUE_BUDGET);
    uint32_t left = slice;
    uint32_t room = 0;
    bool posted = false;

    if (!srq_look(s, srq)) {
        return false;
    }
    if (!srq->vq) {
        virtio_rdma_slots_wake(s, &srq->slots);
    }
    for (;;) {
        VirtIORdmaTaken t;

        if (room == 0) {
            /* The backend calls srq_room() of its client when it has room. */
            room = s->bc->srq_room(s->backend, srq->attr.srqn);
            if (room == 0) {
                break;
            }
        }
        if (left == 0) {
            virtio_rdma_srq_schedule(s, srq);
            break;
        }
        if (!srq_take(s, srq, &t)) {
            srq_empty(s, srq, posted);
            break;
        }
        virtio_rdma_pay(&left, t.cost);
        if (post_srq_recv(s, srq, t.len)) {
            srq_untake(s, srq, &t);
            break;
        }
        srq_taken(s, srq, &t);
        posted = true;
        room--;
    }
    *budget -= slice - left;
    return posted;
}

bool virtio_rdma_rq_pull(VirtIORdma *s, VirtIORdmaQp *qp, RdmaRecvWr *wr)
{
    VirtIORdmaWq *wq = &qp->rq;
    VirtIORdmaTaken t;

    if (wq->count >= wq_depth(wq) ||
        (wq->vq && !virtio_rdma_ring_check(s, wq->vq, &wq->seen))) {
        return false;
    }
    if (!virtio_rdma_wq_take(s, qp, wq, VIRTIO_RDMA_RECV_WQE_SIZE, &t)) {
        if (qp->broken) {
            virtio_rdma_qp_schedule(s, qp);
        }
        return false;
    }
    if (t.elem) {
        virtio_rdma_charge_elem(s, t.elem);
    }
    wq->watched = false;
    take_recv(s, qp, t.len, wr);
    if (unlikely(s->fault_points & VIRTIO_RDMA_FAULT_AT_RECV) &&
        wr->status == RDMA_WC_SUCCESS) {
        virtio_rdma_fault_recv(s, qp, wr, s->scratch->sge);
    }
    g_free(t.elem);
    return true;
}

uint32_t virtio_rdma_rq_count(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaWq *wq = &qp->rq;

    if (!virtio_rdma_is_direct(wq)) {
        return !virtio_queue_empty(wq->vq);
    }
    return MIN(virtio_rdma_slots_count(s, &wq->slots),
               wq_depth(wq) - wq->count);
}

void virtio_rdma_rq_watch(VirtIORdma *s, VirtIORdmaQp *qp)
{
    VirtIORdmaWq *wq = &qp->rq;

    wq->watched = true;
    /* Of a virtqueue the device is always told. */
    if (!virtio_rdma_is_direct(wq)
        ? !virtio_queue_empty(wq->vq)
        : !virtio_rdma_slots_sleep(s, &wq->slots, &qp->broken) || qp->broken) {
        virtio_rdma_qp_schedule(s, qp);
    }
}

bool virtio_rdma_srq_pull(VirtIORdma *s, VirtIORdmaSrq *srq, RdmaRecvWr *wr)
{
    VirtIORdmaTaken t;

    if (!srq_look(s, srq)) {
        return false;
    }
    if (!srq_take(s, srq, &t)) {
        if (srq->broken) {
            virtio_rdma_srq_schedule(s, srq);
        }
        return false;
    }
    if (t.elem) {
        virtio_rdma_charge_elem(s, t.elem);
    }
    take_srq_recv(s, srq, t.len, wr);
    srq_taken(s, srq, &t);
    return true;
}
