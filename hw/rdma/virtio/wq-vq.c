/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queues that are virtqueues: each WQE is a buffer, which the device
 * returns when the WQE is done
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "qemu/iov.h"
#include "qemu/rcu.h"
#include "wq.h"

static uint32_t depth(const RdmaHcaWq *wq)
{
    return VIRTQUEUE_MAX_SIZE;
}

/* RdmaHcaInflight.place: the index of an element, and its descriptors */
static uint32_t place_of(const VirtQueueElement *elem)
{
    return elem->index << 16 | elem->ndescs;
}

static VirtQueueElement elem_of(uint32_t place)
{
    return (VirtQueueElement) {
        .index = place >> 16,
        .ndescs = place & UINT16_MAX,
    };
}

static uint32_t ring_size(VirtIORdma *s, VirtQueue *vq)
{
    return virtio_queue_get_num(VIRTIO_DEVICE(s), virtio_get_queue_index(vq));
}

/*
 * The next element of @form, or NULL. The device is broken if the driver made
 * more descriptors available than the ring has, because returning the elements
 * would lead out of the ring. The index is checked, too, because in packed
 * rings the driver chooses it.
 */
static VirtQueueElement *pop(VirtIORdma *s, VirtIORdmaWq *form)
{
    uint32_t size = ring_size(s, form->vq);
    g_autofree VirtQueueElement *elem =
        virtqueue_pop(form->vq, sizeof(VirtQueueElement));

    if (!elem) {
        return NULL;
    }
    if (form->ndescs + elem->ndescs > size || elem->index >= size) {
        virtio_error(VIRTIO_DEVICE(s), "virtio-rdma: buffer %u of virtqueue %d "
                     "has %u descriptors, those that the device holds already "
                     "have %u, but the ring has %u entries", elem->index,
                     virtio_get_queue_index(form->vq), elem->ndescs,
                     form->ndescs, size);
        virtqueue_detach_element(form->vq, elem, 0);
        return NULL;
    }
    form->ndescs += elem->ndescs;
    return g_steal_pointer(&elem);
}

static bool check(RdmaHca *hca, RdmaHcaWq *wq)
{
    return virtio_rdma_ring_check(virtio_rdma_of(hca), virtio_rdma_wq(wq)->vq);
}

static bool take(RdmaHca *hca, RdmaHcaWq *wq, uint32_t *place)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaTaken *t = virtio_rdma_scratch_begin(s, wq);
    VirtQueueElement *elem = check(hca, wq) ? pop(s, virtio_rdma_wq(wq)) : NULL;

    if (!elem) {
        return false;
    }
    iov_to_buf(elem->out_sg, elem->out_num, 0, s->scratch->wqe,
               s->scratch->wqe_room);
    t->elem = elem;
    t->len = iov_size(elem->out_sg, elem->out_num);
    t->cost = rdma_vq_elem_work(elem);
    *place = place_of(elem);
    rdma_vq_unmap(VIRTIO_DEVICE(s), elem);
    return true;
}

static bool take_demo(RdmaHca *hca, RdmaHcaWq *wq, uint32_t *place)
{
    VirtIORdmaScratch *scratch = virtio_rdma_of(hca)->scratch;

    if (!take(hca, wq, place)) {
        return false;
    }
    if (wq->kind == RDMA_SQ) {
        scratch->send.len = virtio_rdma_demo_get_send(
            scratch->wqe, scratch->send.len, scratch->wqe_room);
    } else {
        scratch->recv.len = virtio_rdma_demo_get_recv(
            scratch->wqe, scratch->recv.len, scratch->wqe_room);
    }
    return true;
}

/* Only SQs put WQEs back. */
static void put_back(RdmaHca *hca, RdmaHcaWq *wq)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtQueueElement *elem = s->scratch->send.elem;

    virtio_rdma_wq(wq)->ndescs -= elem->ndescs;
    virtio_rdma_vq_unpop(s, virtio_rdma_wq(wq)->vq, elem);
}

static void retire(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count)
{
    VirtIORdmaWq *form = virtio_rdma_wq(wq);

    RCU_READ_LOCK_GUARD();

    for (uint32_t i = 0; i < count; i++) {
        VirtQueueElement elem = elem_of(rdma_hca_wq_inflight(wq, i)->place);

        virtqueue_fill(form->vq, &elem, 0, i);
        form->ndescs -= elem.ndescs;
    }
    virtqueue_flush(form->vq, count);
    rdma_vq_notify(&virtio_rdma_of(hca)->notify, form->vq);
}

static bool count(RdmaHca *hca, const RdmaHcaWq *wq, uint32_t *n)
{
    return rdma_vq_count(hca, VIRTIO_DEVICE(virtio_rdma_of(hca)),
                         virtio_rdma_wq(wq)->vq, n);
}

/* The virtqueue's event index tells the driver when to kick. */
static bool wake(RdmaHca *hca, RdmaHcaWq *wq)
{
    return true;
}

static RdmaNext go_to_sleep(RdmaHca *hca, RdmaHcaWq *wq)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    /*
     * Pairs with the driver's barrier between the avail index and the event
     * index that the last pop wrote (virtio 1.2, 2.7.10).
     */
    smp_mb();
    return s->parent_obj.broken || virtio_queue_empty(virtio_rdma_wq(wq)->vq)
           ? RDMA_NEXT_NONE : RDMA_NEXT_WR;
}

static void drain(RdmaHca *hca, RdmaHcaWq *wq, uint32_t n)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtQueue *vq = virtio_rdma_wq(wq)->vq;
    int index = virtio_get_queue_index(vq);

    rdma_vq_drain(hca, vq, n, &s->notify);
    s->vq_seen[index] = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s),
                                                        index);
}

static bool load(RdmaHca *hca, RdmaHcaWq *wq, uint32_t place,
                 const RdmaHcaRecord *r)
{
    VirtIORdmaWq *form = virtio_rdma_wq(wq);
    uint32_t size = ring_size(virtio_rdma_of(hca), form->vq);
    VirtQueueElement elem = elem_of(place);

    form->ndescs += elem.ndescs;
    return rdma_hca_record_check(r, elem.index < size, "index", elem.index,
                                 "less than its ring") &&
           rdma_hca_record_check(r, elem.ndescs, "ndescs", elem.ndescs,
                                 "more") &&
           rdma_hca_record_max(r, "ndescs of all WQEs", form->ndescs, size);
}

static void destroyed(RdmaHca *hca, RdmaHcaWq *wq)
{
    virtio_rdma_vq_abandon(virtio_rdma_of(hca),
                           virtio_get_queue_index(virtio_rdma_wq(wq)->vq));
}

#define VQ_OPS(take_op) {       \
    .depth = depth,             \
    .take = take_op,            \
    .put_back = put_back,       \
    .retire = retire,           \
    .count = count,             \
    .check = check,             \
    .wake = wake,               \
    .sleep = go_to_sleep,       \
    .drain = drain,             \
    .destroyed = destroyed,     \
    .load = load,               \
}

static const RdmaHcaWqOps vq_ops = VQ_OPS(take);
static const RdmaHcaWqOps demo_ops = VQ_OPS(take_demo);

static void use_vq(VirtIORdma *s, RdmaHcaWq *wq, VirtIORdmaWq *form,
                   uint32_t n)
{
    wq->ops = s->is_demo ? &demo_ops : &vq_ops;
    wq->opaque = form;
    form->vq = virtio_rdma_vq_use(s, n);
}

void virtio_rdma_srq_use_vq(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    use_vq(s, &srq->core.wq, &srq->wq,
           virtio_rdma_srq_vq(s, srq->core.attr.srqn));
}

void virtio_rdma_qp_use_vqs(VirtIORdma *s, VirtIORdmaQp *qp)
{
    const RdmaQpInitAttr *init = &qp->core.init;

    use_vq(s, &qp->core.sq, &qp->sq,
           VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, init->qpn));
    if (!init->has_srq) {
        use_vq(s, &qp->core.rq, &qp->rq,
               VIRTIO_RDMA_RQ_VQ(s->max_vq_cq, init->qpn));
    }
}

bool virtio_rdma_srq_load_vq(VirtIORdma *s, VirtIORdmaSrq *srq,
                             const RdmaHcaRecord *r)
{
    if (!virtio_rdma_vq_check_loaded(r, !s->hca.ctx, "srqn, with a virtqueue",
                                     s->max_vq_srq, srq->wq.depth_shift)) {
        return false;
    }
    virtio_rdma_srq_use_vq(s, srq);
    return true;
}

bool virtio_rdma_qp_load_vqs(VirtIORdma *s, VirtIORdmaQp *qp,
                             const RdmaHcaRecord *r)
{
    const RdmaQpCap *cap = &qp->core.init.cap;

    if (!rdma_hca_record_max(r, "max_send_wr", cap->max_send_wr,
                             s->hca.ring_size) ||
        !rdma_hca_record_max(r, "max_recv_wr", cap->max_recv_wr,
                             s->hca.ring_size) ||
        !virtio_rdma_vq_check_loaded(r, !s->hca.ctx, "qpn, with virtqueues",
                                     s->max_vq_qp, qp->sq.depth_shift)) {
        return false;
    }
    virtio_rdma_qp_use_vqs(s, qp);
    return true;
}

bool virtio_rdma_wq_forget_vq(VirtIORdma *s, RdmaHcaWq *wq)
{
    virtio_rdma_wq(wq)->ndescs = 0;
    return rdma_hca_wq_forget(&s->hca, wq);
}

RdmaHcaWq *virtio_rdma_wq_of_vq(VirtIORdma *s, uint32_t n)
{
    uint32_t first_qp = VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, 0);
    uint32_t first_srq = virtio_rdma_srq_vq(s, 0);
    VirtIORdmaSrq *srq;
    VirtIORdmaQp *qp;

    if (n >= first_srq) {
        srq = rdma_hca_table_get(&s->hca.srqs, n - first_srq);
        return srq && srq->wq.vq ? &srq->core.wq : NULL;
    }
    if (n < first_qp || n >= first_qp + 2 * s->max_vq_qp) {
        return NULL;
    }
    qp = rdma_hca_table_get(&s->hca.qps, (n - first_qp) / 2);
    if (!qp) {
        return NULL;
    }
    if ((n - first_qp) % 2) {
        return qp->rq.vq ? &qp->core.rq : NULL;
    }
    return qp->sq.vq ? &qp->core.sq : NULL;
}

/* Have QEMU's virtqueue pop the buffers in flight again. False: error */
static bool restore_order(VirtIORdma *s, const RdmaHcaWq *wq)
{
    VirtQueue *vq = virtio_rdma_wq(wq)->vq;
    bool same = virtqueue_rewind(vq, virtio_rdma_wq(wq)->ndescs);

    for (uint32_t i = 0; same && i < wq->count; i++) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(vq, sizeof(VirtQueueElement));

        same = elem && place_of(elem) == rdma_hca_wq_inflight(wq, i)->place;
        if (elem) {
            rdma_vq_unmap(VIRTIO_DEVICE(s), elem);
        }
    }
    if (!same) {
        virtio_error(VIRTIO_DEVICE(s), "virtio-rdma: virtqueue %d does not "
                     "have the %u buffers any more that were in flight when "
                     "the VM migrated", virtio_get_queue_index(vq),
                     wq->count);
    }
    return same;
}

void virtio_rdma_wqs_restore_order(VirtIORdma *s)
{
    uint32_t first = VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, 0);

    for (uint32_t n = first; n < first + 2 * s->max_vq_qp; n++) {
        const RdmaHcaWq *wq = virtio_rdma_wq_of_vq(s, n);

        if (wq && !restore_order(s, wq)) {
            return;
        }
    }
}
