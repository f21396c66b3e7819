/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work queues: the way of a WQE from the guest's ring to the backend.
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
        (VirtIORdmaInflight) { elem->index, elem->ndescs };
    wq->count++;
}

static VirtIORdmaInflight *inflight_newest(VirtIORdmaWq *wq)
{
    return &wq->inflight[(wq->head + wq->count - 1) & INFLIGHT_MASK];
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

static bool get_sge_list(VirtIORdma *s, uint32_t max_sge, uint32_t num_sge,
                         size_t fixed, size_t len)
{
    if (num_sge > max_sge ||
        num_sge > (len - fixed) / s->codec->sge_size) {
        return false;
    }
    s->codec->get_sges(s->scratch->wqe + fixed, num_sge, s->scratch->sge);
    return true;
}

/*
 * Read the list that a REG_MR brings, and charge it to the WQE. As with other
 * things that are wrong with a REG_MR, the status is that of a memory
 * management operation error (IBTA 11.6.2).
 *
 * WQEs may be written by a process, which could have any address read, of
 * memory or of registers, if it could name the regions of others.
 */
static RdmaWcStatus get_reg_pages(VirtIORdma *s, const VirtIORdmaQp *qp,
                                  VirtIORdmaPages *pages,
                                  VirtIORdmaInflight *inflight,
                                  RdmaSendWr *wr)
{
    VirtIORdmaMr *mr = virtio_rdma_get_mr(s, wr->wr.reg.mrn);

    if (!mr || mr->pd != qp->pd || pages->npages > mr->max_pages ||
        virtio_rdma_check_pages(s, pages) ||
        virtio_rdma_charge_pages(s, pages->npages)) {
        return RDMA_WC_MW_BIND_ERR;
    }
    if (virtio_rdma_read_pages(s, pages, &wr->wr.reg.pages)) {
        s->mr_pages -= pages->npages;
        return RDMA_WC_MW_BIND_ERR;
    }
    inflight->npages = pages->npages;
    inflight->mrn = mr->mrn;
    wr->wr.reg.npages = pages->npages;
    wr->wr.reg.iova = pages->iova;
    wr->wr.reg.length = pages->length;
    return RDMA_WC_SUCCESS;
}

/* May the driver post it? What is no opcode at all, the backend knows. */
static bool opcode_negotiated(VirtIORdma *s, uint32_t opcode)
{
    switch (opcode) {
    case RDMA_WR_BIND_MW:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_MW);
    case RDMA_WR_FLUSH:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_FLUSH);
    case RDMA_WR_ATOMIC_WRITE:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_ATOMIC_WRITE);
    default:
        return true;
    }
}

/* An ATOMIC_WRITE brings 8 bytes whatever the QP was created with. */
static size_t inline_room(const VirtIORdmaWq *wq, uint32_t opcode)
{
    return opcode == RDMA_WR_ATOMIC_WRITE ? sizeof(uint64_t)
                                          : wq->max_inline;
}

static RdmaWcStatus decode_send(VirtIORdma *s, VirtIORdmaQp *qp,
                                size_t len, RdmaSendWr *wr,
                                VirtIORdmaInflight *inflight)
{
    VirtIORdmaPages pages = {};
    const VirtIORdmaWq *wq = &qp->sq;
    size_t fixed = s->codec->send_wqe_size;
    bool ud = qp->init.qp_type == RDMA_QPT_UD ||
              qp->init.qp_type == RDMA_QPT_GSI;

    s->codec->get_send(s->scratch->wqe, ud, wr, &pages);
    if (len < fixed || (wr->send_flags & ~SEND_FLAGS) ||
        !opcode_negotiated(s, wr->opcode)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (wr->send_flags & RDMA_SEND_INLINE) {
        if (wr->num_sge) {
            return RDMA_WC_LOC_QP_OP_ERR;
        }
        if (len - fixed > inline_room(wq, wr->opcode)) {
            return RDMA_WC_LOC_QP_OP_ERR;
        }
        wr->inline_data = s->scratch->wqe + fixed;
        wr->inline_len = len - fixed;
        return RDMA_WC_SUCCESS;
    }
    if (!get_sge_list(s, wq->max_sge, wr->num_sge, fixed, len)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    wr->sg_list = s->scratch->sge;
    if (wr->opcode == RDMA_WR_REG_MR && !ud && pages.npages &&
        virtio_rdma_has(s, VIRTIO_RDMA_F_REG_PAGES)) {
        return get_reg_pages(s, qp, &pages, inflight, wr);
    }
    return RDMA_WC_SUCCESS;
}

static int post_send(VirtIORdma *s, VirtIORdmaQp *qp,
                     const VirtQueueElement *elem)
{
    RdmaSendWr wr = {};
    VirtIORdmaInflight *inflight = inflight_newest(&qp->sq);
    size_t len = copy_wqe(s, elem, s->codec->send_wqe_size);
    int ret;

    wr.status = decode_send(s, qp, len, &wr, inflight);
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
    ret = s->bc->post_send(s->backend, qp->init.qpn, &wr);
    if (ret && inflight->npages) {
        s->mr_pages -= inflight->npages;
        g_free(wr.wr.reg.pages);
    }
    return ret;
}

static void decode_recv(VirtIORdma *s, const VirtQueueElement *elem,
                        uint32_t max_sge, const char *kind, uint32_t id,
                        RdmaRecvWr *wr)
{
    size_t fixed = s->codec->recv_wqe_size;
    size_t len = copy_wqe(s, elem, fixed);

    s->codec->get_recv(s->scratch->wqe, wr);
    if (len < fixed || !get_sge_list(s, max_sge, wr->num_sge, fixed, len)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: bad receive WQE "
                      "of %zu bytes: num_sge %u\n", kind, id, len,
                      wr->num_sge);
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
        wr->num_sge = 0;
    } else {
        wr->sg_list = s->scratch->sge;
    }
}

static int post_recv(VirtIORdma *s, VirtIORdmaQp *qp,
                     const VirtQueueElement *elem)
{
    RdmaRecvWr wr = {};

    decode_recv(s, elem, qp->rq.max_sge, "QP", qp->init.qpn, &wr);
    trace_virtio_rdma_post(s, qp->init.qpn, RDMA_BACKEND_RQ, wr.wr_id,
                           wr.status);
    return s->bc->post_recv(s->backend, qp->init.qpn, &wr);
}

int virtio_rdma_post_srq_recv(VirtIORdma *s, VirtIORdmaSrq *srq,
                              const VirtQueueElement *elem)
{
    RdmaRecvWr wr = {};

    decode_recv(s, elem, srq->attr.max_sge, "SRQ", srq->attr.srqn, &wr);
    trace_virtio_rdma_post_srq(s, srq->attr.srqn, wr.wr_id, wr.status);
    return s->bc->post_srq_recv(s->backend, srq->attr.srqn, &wr);
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
        const VirtIORdmaInflight *inflight =
            &wq->inflight[(wq->head + i) & INFLIGHT_MASK];
        VirtQueueElement elem = {
            .index = inflight->index,
            .ndescs = inflight->ndescs,
        };

        virtio_rdma_pass_pages(s, inflight);
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

static void drain(VirtIORdma *s, VirtQueue *vq, uint32_t n)
{
    while (n < VIRTQUEUE_MAX_SIZE) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(vq, sizeof(VirtQueueElement));

        if (!elem) {
            break;
        }
        virtqueue_push(vq, elem, 0);
        n++;
    }
    if (n) {
        virtio_notify(VIRTIO_DEVICE(s), vq);
    }
}

void virtio_rdma_vq_drain(VirtIORdma *s, VirtQueue *vq)
{
    if (virtio_rdma_active(s)) {
        drain(s, vq, 0);
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
    drain(s, wq->vq, n);
}

bool virtio_rdma_wq_forget(VirtIORdma *s, VirtIORdmaWq *wq)
{
    bool lost = wq->count != 0;

    for (uint32_t i = 0; i < wq->count; i++) {
        virtio_rdma_pass_pages(s, &wq->inflight[(wq->head + i) &
                                                INFLIGHT_MASK]);
    }
    wq->stale += wq->count;
    wq->count = 0;
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
