/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queues and completion queues: the way of a WQE from the guest's ring
 * to the backend, and of a completion back.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "qemu/rcu.h"
#include "system/dma.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

#define SEND_FLAGS (RDMA_SEND_FENCE | RDMA_SEND_SIGNALED | \
                    RDMA_SEND_SOLICITED | RDMA_SEND_INLINE | \
                    RDMA_SEND_IP_CSUM)

#define INFLIGHT_MASK (VIRTQUEUE_MAX_SIZE - 1)
QEMU_BUILD_BUG_ON(VIRTQUEUE_MAX_SIZE & INFLIGHT_MASK);

bool virtio_rdma_check_ring(VirtIORdma *s, VirtQueue *vq, uint16_t *seen)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    int n = virtio_get_queue_index(vq);
    uint16_t last, idx;

    if (virtio_vdev_has_feature(vdev, VIRTIO_F_RING_PACKED) ||
        !virtio_queue_ready(vq)) {
        return true;
    }
    last = virtio_queue_get_last_avail_idx(vdev, n);
    if ((int16_t)(last - *seen) < 0) {
        return true;
    }
    idx = address_space_lduw_le(vdev->dma_as,
                                virtio_queue_get_avail_addr(vdev, n) +
                                offsetof(struct vring_avail, idx),
                                MEMTXATTRS_UNSPECIFIED, NULL);
    if ((uint16_t)(idx - last) > virtio_queue_get_num(vdev, n)) {
        virtio_error(vdev, "virtio-rdma: avail index of virtqueue %d moves "
                     "from %u to %u", n, last, idx);
        return false;
    }
    *seen = idx;
    return true;
}

static void inflight_push(VirtIORdmaWq *wq, const VirtQueueElement *elem)
{
    wq->inflight[(wq->head + wq->count) & INFLIGHT_MASK] =
        elem->index | elem->ndescs << 16;
    wq->count++;
}

static VirtQueueElement inflight_elem(uint32_t packed)
{
    return (VirtQueueElement) {
        .index = packed & 0xffff,
        .ndescs = packed >> 16,
    };
}

/*
 * The buffer of @elem is not needed any more, only the element: from here on
 * it looks as if it had none.
 */
static void release_buffers(VirtIORdma *s, VirtQueueElement *elem)
{
    AddressSpace *as = VIRTIO_DEVICE(s)->dma_as;

    for (unsigned i = 0; i < elem->out_num; i++) {
        struct iovec *sg = &elem->out_sg[i];

        dma_memory_unmap(as, sg->iov_base, sg->iov_len,
                         DMA_DIRECTION_TO_DEVICE, sg->iov_len);
    }
    for (unsigned i = 0; i < elem->in_num; i++) {
        struct iovec *sg = &elem->in_sg[i];

        dma_memory_unmap(as, sg->iov_base, sg->iov_len,
                         DMA_DIRECTION_FROM_DEVICE, 0);
    }
    elem->out_num = 0;
    elem->in_num = 0;
}

/*
 * Copy the WQE of @elem to the scratch buffer. Returns its length as the
 * guest gave it; what exceeds the buffer is left out.
 */
static size_t copy_wqe(VirtIORdma *s, const VirtQueueElement *elem,
                       size_t fixed)
{
    VirtIORdmaScratch *sc = s->scratch;
    size_t len = iov_size(elem->out_sg, elem->out_num);
    size_t n = iov_to_buf(elem->out_sg, elem->out_num, 0, sc->wqe,
                          sc->wqe_room);

    if (n < fixed) {
        memset(sc->wqe + n, 0, fixed - n);
    }
    return len;
}

static bool get_sge_list(VirtIORdma *s, const VirtIORdmaWq *wq,
                         uint32_t num_sge, size_t fixed, size_t len)
{
    if (num_sge > wq->max_sge ||
        num_sge > (len - fixed) / s->codec->sge_size) {
        return false;
    }
    s->codec->get_sges(s->scratch->wqe + fixed, num_sge, s->scratch->sge);
    return true;
}

static RdmaWcStatus decode_send(VirtIORdma *s, VirtIORdmaQp *qp,
                                size_t len, RdmaSendWr *wr)
{
    const VirtIORdmaWq *wq = &qp->sq;
    size_t fixed = s->codec->send_wqe_size;
    bool ud = qp->init.qp_type == RDMA_QPT_UD ||
              qp->init.qp_type == RDMA_QPT_GSI;

    s->codec->get_send(s->scratch->wqe, ud, wr);
    if (len < fixed || (wr->send_flags & ~SEND_FLAGS)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (wr->send_flags & RDMA_SEND_INLINE) {
        if (wr->num_sge) {
            return RDMA_WC_LOC_QP_OP_ERR;
        }
        if (len - fixed > wq->max_inline) {
            return RDMA_WC_LOC_QP_OP_ERR;
        }
        wr->inline_data = s->scratch->wqe + fixed;
        wr->inline_len = len - fixed;
        return RDMA_WC_SUCCESS;
    }
    if (!get_sge_list(s, wq, wr->num_sge, fixed, len)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    wr->sg_list = s->scratch->sge;
    return RDMA_WC_SUCCESS;
}

static int post_send(VirtIORdma *s, VirtIORdmaQp *qp,
                     const VirtQueueElement *elem)
{
    RdmaSendWr wr = {};
    size_t len = copy_wqe(s, elem, s->codec->send_wqe_size);

    wr.status = decode_send(s, qp, len, &wr);
    if (wr.status != RDMA_WC_SUCCESS) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: QP %u: bad send WQE of "
                      "%zu bytes: opcode %u flags 0x%x num_sge %u\n",
                      qp->init.qpn, len, wr.opcode, wr.send_flags,
                      wr.num_sge);
        wr.num_sge = 0;
        wr.send_flags &= ~RDMA_SEND_INLINE;
    }
    trace_virtio_rdma_post(s, qp->init.qpn, RDMA_BACKEND_SQ, wr.wr_id,
                           wr.status);
    return s->bc->post_send(s->backend, qp->init.qpn, &wr);
}

static int post_recv(VirtIORdma *s, VirtIORdmaQp *qp,
                     const VirtQueueElement *elem)
{
    RdmaRecvWr wr = {};
    size_t fixed = s->codec->recv_wqe_size;
    size_t len = copy_wqe(s, elem, fixed);

    s->codec->get_recv(s->scratch->wqe, &wr);
    if (len < fixed || !get_sge_list(s, &qp->rq, wr.num_sge, fixed, len)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: QP %u: bad receive WQE "
                      "of %zu bytes: num_sge %u\n", qp->init.qpn, len,
                      wr.num_sge);
        wr.status = RDMA_WC_LOC_QP_OP_ERR;
        wr.num_sge = 0;
    } else {
        wr.sg_list = s->scratch->sge;
    }
    trace_virtio_rdma_post(s, qp->init.qpn, RDMA_BACKEND_RQ, wr.wr_id,
                           wr.status);
    return s->bc->post_recv(s->backend, qp->init.qpn, &wr);
}

static uint32_t wq_room(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq)
{
    uint32_t room = wq->kind == RDMA_BACKEND_SQ
                    ? s->bc->send_room(s->backend, qp->init.qpn)
                    : s->bc->recv_room(s->backend, qp->init.qpn);

    return MIN(room, VIRTQUEUE_MAX_SIZE - wq->count);
}

bool virtio_rdma_wq_run(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq)
{
    int budget = VIRTQUEUE_MAX_SIZE;
    uint32_t room = 0;
    bool posted = false;

    wq->blocked = false;
    if (!virtio_rdma_check_ring(s, wq->vq, &wq->seen)) {
        return false;
    }
    for (;;) {
        g_autofree VirtQueueElement *elem = NULL;
        int ret;

        if (room == 0) {
            room = wq_room(s, qp, wq);
            if (room == 0) {
                wq->blocked = true;
                break;
            }
        }
        if (budget-- == 0) {
            /* WQEs that retire at once could keep this going for ever. */
            virtio_rdma_schedule_qp(s, qp);
            break;
        }
        elem = virtqueue_pop(wq->vq, sizeof(VirtQueueElement));
        if (!elem) {
            break;
        }
        /* Posting may retire it right away. */
        inflight_push(wq, elem);
        ret = wq->kind == RDMA_BACKEND_SQ ? post_send(s, qp, elem)
                                          : post_recv(s, qp, elem);
        release_buffers(s, elem);
        if (ret) {
            wq->count--;
            virtqueue_unpop(wq->vq, elem, 0);
            break;
        }
        posted = true;
        room--;
    }
    return posted;
}

static void push_oldest(VirtIORdma *s, VirtIORdmaWq *wq, uint32_t count)
{
    RCU_READ_LOCK_GUARD();

    for (uint32_t i = 0; i < count; i++) {
        VirtQueueElement elem =
            inflight_elem(wq->inflight[(wq->head + i) & INFLIGHT_MASK]);

        virtqueue_fill(wq->vq, &elem, 0, i);
    }
    virtqueue_flush(wq->vq, count);
    wq->head = (wq->head + count) & INFLIGHT_MASK;
    wq->count -= count;
}

void virtio_rdma_wq_retire(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq,
                           uint32_t count)
{
    uint32_t stale = MIN(count, wq->stale);

    trace_virtio_rdma_retire(s, qp->init.qpn, wq->kind, count);
    wq->stale -= stale;
    count = MIN(count - stale, wq->count);
    if (count) {
        push_oldest(s, wq, count);
        virtio_notify(VIRTIO_DEVICE(s), wq->vq);
    }
    if (wq->blocked) {
        virtio_rdma_schedule_qp(s, qp);
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
    while (n < VIRTQUEUE_MAX_SIZE) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(wq->vq, sizeof(VirtQueueElement));

        if (!elem) {
            break;
        }
        virtqueue_push(wq->vq, elem, 0);
        n++;
    }
    if (n) {
        virtio_notify(VIRTIO_DEVICE(s), wq->vq);
    }
}

bool virtio_rdma_wq_forget(VirtIORdmaWq *wq)
{
    bool lost = wq->count != 0;

    wq->stale += wq->count;
    wq->count = 0;
    wq->head = 0;
    wq->seen = 0;
    return lost;
}

/*
 * Write a CQE of @size bytes. With @status_last, the status byte is written
 * behind all others: a driver that polls it may then read the rest.
 */
static void write_cqe(VirtIORdma *s, const VirtQueueElement *elem,
                      const uint8_t *cqe, bool status_last)
{
    size_t size = s->codec->cqe_size;
    size_t at = s->codec->cqe_status_offset;

    if (!status_last) {
        iov_from_buf(elem->in_sg, elem->in_num, 0, cqe, size);
        return;
    }
    if (elem->in_sg[0].iov_len >= size) {
        uint8_t *dst = elem->in_sg[0].iov_base;

        memcpy(dst, cqe, at);
        memcpy(dst + at + 1, cqe + at + 1, size - at - 1);
        qatomic_store_release(dst + at, cqe[at]);
        return;
    }
    iov_from_buf(elem->in_sg, elem->in_num, 0, cqe, at);
    iov_from_buf(elem->in_sg, elem->in_num, at + 1, cqe + at + 1,
                 size - at - 1);
    /* Pairs with the driver's acquire of the status byte. */
    smp_wmb();
    iov_from_buf(elem->in_sg, elem->in_num, at, cqe + at, 1);
}

static bool push_cqe(VirtIORdma *s, VirtIORdmaCq *cq, const RdmaWc *wc)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    uint8_t cqe[VIRTIO_RDMA_CQE_ROOM];
    size_t size = s->codec->cqe_size;
    g_autofree VirtQueueElement *elem = NULL;

    if (virtio_rdma_check_ring(s, cq->vq, &cq->seen)) {
        elem = virtqueue_pop(cq->vq, sizeof(VirtQueueElement));
    }
    if (!elem) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u %s\n", cq->cqn,
                      vdev->broken ? "has a broken ring" : "overruns: the "
                      "driver left no buffer for a completion");
        return false;
    }
    if (iov_size(elem->in_sg, elem->in_num) < size) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u: a buffer has "
                      "less than %zu writable bytes\n", cq->cqn, size);
        virtqueue_unpop(cq->vq, elem, 0);
        return false;
    }
    s->codec->put_cqe(cqe, wc);
    write_cqe(s, elem, cqe,
              virtio_vdev_has_feature(vdev, VIRTIO_RDMA_F_CQE_STATUS_LAST));
    virtqueue_push(cq->vq, elem, size);
    return true;
}

bool virtio_rdma_cq_complete(VirtIORdma *s, VirtIORdmaCq *cq,
                             const RdmaWc *wc, bool solicited)
{
    if (cq->error) {
        return false;
    }
    if (!push_cqe(s, cq, wc)) {
        cq->error = true;
        trace_virtio_rdma_cq_error(s, cq->cqn);
        return false;
    }
    trace_virtio_rdma_complete(s, cq->cqn, wc->qp_num, wc->wr_id, wc->status,
                               wc->opcode, wc->byte_len);
    if (cq->arm == VIRTIO_RDMA_ARM_NEXT ||
        (cq->arm == VIRTIO_RDMA_ARM_SOLICITED &&
         (solicited || wc->status != RDMA_WC_SUCCESS))) {
        cq->arm = VIRTIO_RDMA_ARM_NONE;
        trace_virtio_rdma_cq_notify(s, cq->cqn);
        virtio_notify(VIRTIO_DEVICE(s), cq->vq);
    }
    return true;
}

void virtio_rdma_wq_init(VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->limits;
    uint32_t max_sge = MAX(l->max_send_sge, l->max_recv_sge);

    s->scratch = g_new0(VirtIORdmaScratch, 1);
    s->scratch->wqe_room = VIRTIO_RDMA_WQE_ROOM +
                           MAX(max_sge * s->codec->sge_size,
                               l->max_inline_data);
    s->scratch->wqe = g_malloc0(s->scratch->wqe_room);
    s->scratch->sge = g_new0(RdmaSge, MAX(max_sge, 1));
}

void virtio_rdma_wq_free(VirtIORdma *s)
{
    g_free(s->scratch->wqe);
    g_free(s->scratch->sge);
    g_free(s->scratch);
    s->scratch = NULL;
}
