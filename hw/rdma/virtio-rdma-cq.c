/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues: from their creation to the way of a completion into the
 * guest's ring, and what waits where there is no room in it.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bitops.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

/* Completions to make room for when one has to be kept. */
#define MIN_KEPT_ROOM 64

typedef enum PushResult {
    PUSHED,
    NO_BUFFER,
    CQ_FAILED,
} PushResult;

uint32_t virtio_rdma_max_cqe(VirtIORdma *s)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_DEEP) ? s->conf.max_cqe
                                                     : s->limits.max_cqe;
}

static size_t cqe_size(VirtIORdma *s)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_CQE_EX) ? s->codec->cqe_ex_size
                                                    : s->codec->cqe_size;
}

/* Completions that are kept, oldest first */

static VirtIORdmaKeptCqe *kept_at(VirtIORdmaCq *cq, uint32_t i)
{
    return &cq->kept[(cq->kept_head + i) % cq->kept_room];
}

static void set_kept_room(VirtIORdmaCq *cq, uint32_t room)
{
    VirtIORdmaKeptCqe *kept = room ? g_new(VirtIORdmaKeptCqe, room) : NULL;

    for (uint32_t i = 0; i < cq->nkept; i++) {
        kept[i] = *kept_at(cq, i);
    }
    g_free(cq->kept);
    cq->kept = kept;
    cq->kept_head = 0;
    cq->kept_room = room;
}

bool virtio_rdma_cq_keep(VirtIORdmaCq *cq, const VirtIORdmaKeptCqe *cqe)
{
    if (cq->nkept >= cq->cqe) {
        return false;
    }
    if (cq->nkept == cq->kept_room) {
        set_kept_room(cq, MIN(MAX(2 * cq->kept_room, MIN_KEPT_ROOM),
                              MAX(cq->cqe, cq->nkept + 1)));
    }
    cq->nkept++;
    *kept_at(cq, cq->nkept - 1) = *cqe;
    return true;
}

const VirtIORdmaKeptCqe *virtio_rdma_cq_kept(VirtIORdmaCq *cq, uint32_t i)
{
    return kept_at(cq, i);
}

static void take_kept(VirtIORdmaCq *cq)
{
    cq->kept_head = (cq->kept_head + 1) % cq->kept_room;
    cq->nkept--;
    if (!cq->nkept) {
        set_kept_room(cq, 0);
    }
}

static void drop_kept(VirtIORdmaCq *cq)
{
    cq->nkept = 0;
    set_kept_room(cq, 0);
}

void virtio_rdma_cq_forget_qp(VirtIORdmaCq *cq, uint32_t qpn)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cq->nkept; i++) {
        VirtIORdmaKeptCqe *cqe = kept_at(cq, i);

        if (cqe->qpn != qpn) {
            *kept_at(cq, n++) = *cqe;
        }
    }
    cq->nkept = n;
    if (!n) {
        set_kept_room(cq, 0);
    }
}

/* The guest's ring */

/*
 * Write a CQE of @size bytes. With @status_last, the status byte is written
 * behind all others: a driver that polls it may then read the rest.
 */
static void write_cqe(VirtIORdma *s, const VirtQueueElement *elem,
                      const uint8_t *cqe, size_t size, bool status_last)
{
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

static PushResult push_cqe(VirtIORdma *s, VirtIORdmaCq *cq,
                           const VirtIORdmaKeptCqe *cqe)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    size_t size = cqe_size(s);
    g_autofree VirtQueueElement *elem = NULL;

    if (virtio_rdma_check_ring(s, cq->vq, &cq->seen)) {
        elem = virtqueue_pop(cq->vq, sizeof(VirtQueueElement));
    }
    if (vdev->broken) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u has a broken "
                      "ring\n", cq->cqn);
        return CQ_FAILED;
    }
    if (!elem) {
        return NO_BUFFER;
    }
    if (iov_size(elem->in_sg, elem->in_num) < size) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u: a buffer has "
                      "less than %zu writable bytes\n", cq->cqn, size);
        virtqueue_unpop(cq->vq, elem, 0);
        return CQ_FAILED;
    }
    write_cqe(s, elem, cqe->bytes, size,
              virtio_rdma_has(s, VIRTIO_RDMA_F_CQE_STATUS_LAST));
    virtqueue_push(cq->vq, elem, size);
    return PUSHED;
}

/* Does a completion that was just written interrupt, if virtio permits? */
static bool fires(VirtIORdma *s, VirtIORdmaCq *cq, bool alerts)
{
    if (cq->arm == VIRTIO_RDMA_ARM_NONE ||
        (cq->arm == VIRTIO_RDMA_ARM_SOLICITED && !alerts)) {
        return false;
    }
    if (!virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_RING_ARM)) {
        cq->arm = VIRTIO_RDMA_ARM_NONE;
    }
    return true;
}

static void interrupt(VirtIORdma *s, VirtIORdmaCq *cq)
{
    trace_virtio_rdma_cq_notify(s, cq->cqn);
    virtio_notify(VIRTIO_DEVICE(s), cq->vq);
}

void virtio_rdma_cq_error(VirtIORdma *s, VirtIORdmaCq *cq)
{
    if (cq->error) {
        return;
    }
    cq->error = true;
    drop_kept(cq);
    trace_virtio_rdma_cq_error(s, cq->cqn);
    virtio_rdma_raise_event(s, RDMA_EVENT_CQ_ERR, cq->cqn);
}

bool virtio_rdma_cq_flush(VirtIORdma *s, VirtIORdmaCq *cq)
{
    uint32_t budget = VIRTQUEUE_MAX_SIZE;
    PushResult result = NO_BUFFER;
    bool waiting = false;
    bool fired = false;

    while (cq->nkept && budget) {
        const VirtIORdmaKeptCqe *cqe = kept_at(cq, 0);

        result = push_cqe(s, cq, cqe);
        if (result == PUSHED) {
            fired |= fires(s, cq, cqe->alerts);
            take_kept(cq);
            waiting = false;
            budget--;
        } else if (result == NO_BUFFER && !waiting) {
            /* Look again: a buffer that came before makes no notification. */
            virtio_queue_set_notification(cq->vq, 1);
            waiting = true;
        } else {
            break;
        }
    }
    if (fired) {
        interrupt(s, cq);
    }
    if (result == CQ_FAILED) {
        virtio_rdma_cq_error(s, cq);
        return false;
    }
    if (!cq->nkept) {
        virtio_queue_set_notification(cq->vq, 0);
    } else if (!budget) {
        s->rerun_cqs = true;
        qemu_bh_schedule(s->bh);
    }
    return true;
}

bool virtio_rdma_cq_complete(VirtIORdma *s, VirtIORdmaCq *cq,
                             const RdmaWc *wc, bool solicited)
{
    VirtIORdmaKeptCqe cqe = {
        .qpn = wc->qp_num,
        .alerts = solicited || wc->status != RDMA_WC_SUCCESS,
    };
    PushResult result = NO_BUFFER;

    if (cq->error || (cq->nkept && !virtio_rdma_cq_flush(s, cq))) {
        return false;
    }
    s->codec->put_cqe(cqe.bytes, wc,
                      virtio_rdma_has(s, VIRTIO_RDMA_F_CQE_EX));
    if (!cq->nkept) {
        result = push_cqe(s, cq, &cqe);
    }
    if (result == PUSHED) {
        trace_virtio_rdma_complete(s, cq->cqn, wc->qp_num, wc->wr_id,
                                   wc->status, wc->opcode, wc->byte_len);
        if (fires(s, cq, cqe.alerts)) {
            interrupt(s, cq);
        }
        return true;
    }
    if (result == NO_BUFFER && virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_DEEP) &&
        virtio_rdma_cq_keep(cq, &cqe)) {
        trace_virtio_rdma_keep(s, cq->cqn, wc->qp_num, wc->wr_id,
                               wc->status, cq->nkept);
        return virtio_rdma_cq_flush(s, cq);
    }
    if (result == NO_BUFFER) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u overruns: the "
                      "driver left no buffer for a completion\n", cq->cqn);
    }
    virtio_rdma_cq_error(s, cq);
    return false;
}

/* Objects and commands */

VirtIORdmaCq *virtio_rdma_add_cq(VirtIORdma *s, uint32_t cqn, uint32_t cqe)
{
    VirtIORdmaCq *cq = g_new0(VirtIORdmaCq, 1);

    cq->cqn = cqn;
    cq->cqe = cqe;
    cq->vq = virtio_get_queue(VIRTIO_DEVICE(s), VIRTIO_RDMA_CQ_VQ(cqn));
    cq->seen = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s),
                                               VIRTIO_RDMA_CQ_VQ(cqn));
    virtio_rdma_table_set(&s->cqs, cqn, cq);
    return cq;
}

void virtio_rdma_remove_cq(VirtIORdma *s, VirtIORdmaCq *cq)
{
    virtio_rdma_table_clear(&s->cqs, cq->cqn);
    virtio_rdma_forget_events(s, VIRTIO_RDMA_EVENT_OF_CQ, cq->cqn);
    g_free(cq->kept);
    g_free(cq);
}

static int check_cqn(VirtIORdma *s, uint32_t cqn, const VirtIORdmaReq *req)
{
    uint32_t size = virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_DEEP)
                    ? 0 : req->create_cq.cqe;

    return virtio_rdma_check_vq(s, VIRTIO_RDMA_CQ_VQ(cqn), size);
}

int virtio_rdma_create_cq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    uint32_t cqe = c->req.create_cq.cqe;
    VirtIORdmaCq *cq;
    uint32_t cqn;
    int ret;

    if (cqe == 0 || cqe > virtio_rdma_max_cqe(s)) {
        return -EINVAL;
    }
    ret = virtio_rdma_find_with_vqs(s, &s->cqs, s->cqs.first, s->cqs.end,
                                    check_cqn, &c->req, &cqn);
    if (ret) {
        return ret;
    }
    clear_bit(VIRTIO_RDMA_CQ_VQ(cqn), s->stale_vqs);
    cq = virtio_rdma_add_cq(s, cqn, cqe);
    if (virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_RING_ARM)) {
        cq->arm = VIRTIO_RDMA_ARM_NEXT;
    }
    c->obj = cq;
    return s->bc->create_cq ? s->bc->create_cq(s->backend, cqn, cqe) : 0;
}

void virtio_rdma_create_cq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaCq *cq = c->obj;

    if (!ret) {
        trace_virtio_rdma_create_cq(s, cq->cqn, cq->cqe);
        c->rsp.create.id = cq->cqn;
        /* It is looked at when there is a completion to report. */
        virtio_queue_set_notification(cq->vq, 0);
    } else if (cq) {
        virtio_rdma_remove_cq(s, cq);
    }
}

int virtio_rdma_destroy_cq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, c->req.destroy.id);

    if (!cq) {
        return -ENOENT;
    }
    if (cq->users) {
        return -EBUSY;
    }
    c->obj = cq;
    return s->bc->destroy_cq ? s->bc->destroy_cq(s->backend, cq->cqn) : 0;
}

void virtio_rdma_destroy_cq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaCq *cq = c->obj;

    if (!ret) {
        trace_virtio_rdma_destroy_cq(s, cq->cqn);
        virtio_rdma_abandon_vq(s, VIRTIO_RDMA_CQ_VQ(cq->cqn));
        virtio_rdma_remove_cq(s, cq);
    }
}

int virtio_rdma_resize_cq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, c->req.resize_cq.cqn);
    uint32_t cqe = c->req.resize_cq.cqe;
    uint32_t used = c->req.resize_cq.used;

    if (!cq) {
        return -ENOENT;
    }
    if (cqe == 0 || cqe > virtio_rdma_max_cqe(s) || used > cqe ||
        cq->nkept > cqe - used) {
        return -EINVAL;
    }
    trace_virtio_rdma_resize_cq(s, cq->cqn, cq->cqe, cqe);
    cq->cqe = cqe;
    return 0;
}

int virtio_rdma_req_notify_cq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, c->req.notify.cqn);
    uint32_t flags = c->req.notify.flags;
    VirtIORdmaArm arm;

    if (!cq) {
        return -ENOENT;
    }
    if (!flags || (flags & ~(VIRTIO_RDMA_NOTIFY_SOLICITED |
                             VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION))) {
        return -EINVAL;
    }
    arm = flags & VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
          ? VIRTIO_RDMA_ARM_NEXT : VIRTIO_RDMA_ARM_SOLICITED;
    if (virtio_rdma_has(s, VIRTIO_RDMA_F_CQ_RING_ARM)) {
        cq->arm = arm;
    } else {
        cq->arm = MAX(cq->arm, arm);
    }
    trace_virtio_rdma_arm_cq(s, cq->cqn, cq->arm);
    return 0;
}
