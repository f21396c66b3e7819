/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CQs with a virtqueue: each CQE uses a buffer of the driver. Without a buffer
 * the CQE waits in the backlog of its CQ.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "qemu/bswap.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "queue.h"

typedef enum PushResult {
    PUSHED,
    NO_BUFFER,
    CQ_FAILED,
} PushResult;

static uint32_t max_cqe(VirtIORdma *s)
{
    uint32_t max = s->hca.limits.max_cqe;

    return virtio_rdma_is_v1(s) ? max : rdma_hca_ring_depth(&s->hca, max);
}

static size_t cqe_size(VirtIORdma *s)
{
    return virtio_rdma_is_v1(s) ? VIRTIO_RDMA_CQE_EX_SIZE
                                : VIRTIO_RDMA_CQE_SIZE;
}

bool virtio_rdma_cq_pop(VirtIORdma *s, VirtIORdmaCq *cq, size_t size,
                        uint32_t *budget, VirtQueueElement **elem)
{
    const char *kind = cq->core.is_eq ? "event queue" : "CQ";
    VirtQueueElement *e = virtio_rdma_ring_check(s, cq->vq)
                          ? virtqueue_pop(cq->vq, sizeof(*e)) : NULL;
    size_t room;

    *elem = e;
    if (!e) {
        return true;
    }
    rdma_work_pay(budget, RDMA_WORK_WR);
    room = iov_size(e->in_sg, e->in_num);
    if (e->in_num + e->out_num > VIRTIO_RDMA_MAX_BUF_DESCS) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: a buffer has %u "
                      "descriptors, but may have %u\n", kind, cq->core.cqn,
                      e->in_num + e->out_num, VIRTIO_RDMA_MAX_BUF_DESCS);
    } else if (room < size) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: a buffer has %zu "
                      "writable bytes, less than %zu\n", kind, cq->core.cqn,
                      room, size);
    } else {
        return true;
    }
    virtio_rdma_vq_unpop(s, cq->vq, e);
    return false;
}

static PushResult push_cqe(VirtIORdma *s, VirtIORdmaCq *cq,
                           const VirtIORdmaCqe *cqe, size_t size,
                           uint32_t *budget)
{
    g_autofree VirtQueueElement *elem = NULL;
    bool ok = virtio_rdma_cq_pop(s, cq, size, budget, &elem);

    if (VIRTIO_DEVICE(s)->broken) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u: the device is "
                      "broken, see the previous error\n", cq->core.cqn);
        return CQ_FAILED;
    }
    if (!ok) {
        return CQ_FAILED;
    }
    if (!elem) {
        return NO_BUFFER;
    }
    virtio_rdma_codec_write_cqe(elem, cqe->bytes, size, virtio_rdma_is_v1(s));
    virtqueue_push(cq->vq, elem, size);
    return PUSHED;
}

/*
 * Returns whether the driver has armed the CQ for the completion just written.
 * Without F_VERSION_1 this consumes the arm request. Whether the driver gets an
 * interrupt also depends on the virtqueue.
 */
static bool take_vq_arm(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited)
{
    if (cq->arm == VIRTIO_RDMA_ARM_NONE ||
        (cq->arm == VIRTIO_RDMA_ARM_SOLICITED && !solicited)) {
        return false;
    }
    if (!virtio_rdma_is_v1(s)) {
        cq->arm = VIRTIO_RDMA_ARM_NONE;
    }
    return true;
}

static void interrupt(VirtIORdma *s, VirtIORdmaCq *cq)
{
    trace_virtio_rdma_cq_notify(s, cq->core.cqn);
    rdma_vq_notify(&s->notify, cq->vq);
}

static bool flush(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget)
{
    uint32_t slice = MIN(*budget, RDMA_QUEUE_BUDGET);
    uint32_t left = slice;
    PushResult result = NO_BUFFER;
    bool waiting = false;
    bool fired = false;

    while (cq->n_backlog && left) {
        const VirtIORdmaCqe *cqe = virtio_rdma_cq_backlog_at(cq, 0);

        result = push_cqe(s, cq, cqe, cqe_size(s), &left);
        if (result == PUSHED) {
            fired |= take_vq_arm(s, cq, cqe->solicited);
            virtio_rdma_cq_backlog_take(cq);
            waiting = false;
        } else if (result == NO_BUFFER && !waiting) {
            /* Try once more: earlier buffers came without a notification. */
            virtio_queue_set_notification(cq->vq, 1);
            waiting = true;
        } else {
            break;
        }
    }
    *budget -= slice - left;
    if (fired) {
        interrupt(s, cq);
    }
    if (result == CQ_FAILED) {
        return false;
    }
    if (!cq->n_backlog) {
        virtio_queue_set_notification(cq->vq, 0);
    } else if (!left) {
        virtio_rdma_schedule(s, &s->sched_cqs);
    }
    return true;
}

/* Write @cqe, of @size bytes, or add it to the backlog. */
static bool post(VirtIORdma *s, VirtIORdmaCq *cq, const VirtIORdmaCqe *cqe,
                 size_t size)
{
    uint32_t max_backlog = virtio_rdma_is_v1(s) ? cq->core.cqe : 0;
    PushResult result = NO_BUFFER;
    /* Enough for more than one completion, so that the backlog gets shorter */
    uint32_t budget = RDMA_QUEUE_BUDGET / 8;

    if (cq->n_backlog && !flush(s, cq, &budget)) {
        return false;
    }
    if (!cq->n_backlog) {
        result = push_cqe(s, cq, cqe, size, &budget);
    }
    if (result == PUSHED) {
        if (take_vq_arm(s, cq, cqe->solicited)) {
            interrupt(s, cq);
        }
        return true;
    }
    if (result == NO_BUFFER && max_backlog &&
        virtio_rdma_cq_backlog_add(cq, cqe)) {
        trace_virtio_rdma_cq_backlog(s, cq->core.cqn, cqe->qpn, cq->n_backlog);
        return flush(s, cq, &budget);
    }
    if (result == NO_BUFFER) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u overruns: no "
                      "buffer for a completion, and %u of %u in the backlog\n",
                      cq->core.cqn, cq->n_backlog, max_backlog);
    }
    return false;
}

static bool complete(RdmaHca *hca, RdmaHcaCq *core, const RdmaWc *wc,
                     bool solicited)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaCqe cqe = virtio_rdma_cqe(s, wc, solicited);

    return post(s, virtio_rdma_cq(core), &cqe, cqe_size(s));
}

/* This layout has no F_VERSION_1, so no completion waits in the backlog. */
static bool complete_demo(RdmaHca *hca, RdmaHcaCq *core, const RdmaWc *wc,
                          bool solicited)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaCqe cqe = virtio_rdma_cqe(s, wc, solicited);

    virtio_rdma_demo_put_cqe(cqe.bytes);
    return post(s, virtio_rdma_cq(core), &cqe, VIRTIO_RDMA_DEMO_CQE_SIZE);
}

static int arm(VirtIORdma *s, VirtIORdmaCq *cq, VirtIORdmaArm type)
{
    if (virtio_rdma_is_v1(s)) {
        cq->arm = type;
    } else {
        cq->arm = MAX(cq->arm, type);
    }
    trace_virtio_rdma_cq_arm(s, cq->core.cqn, cq->arm);
    return 0;
}

static int resize(VirtIORdma *s, VirtIORdmaCq *cq,
                  const struct virtio_rdma_resize_cq_req *cmd)
{
    uint32_t cqe = le32_to_cpu(cmd->cqe);
    uint32_t used = le32_to_cpu(cmd->used);

    if (!rdma_hca_check_range("used", used, 0, cqe) ||
        !rdma_hca_check_range("backlog", cq->n_backlog, 0, cqe - used)) {
        return -EINVAL;
    }
    return rdma_hca_cq_resize(&s->hca, &cq->core, cqe);
}

void virtio_rdma_cq_abandon_vq(RdmaHca *hca, RdmaHcaCq *cq)
{
    virtio_rdma_vq_abandon(virtio_rdma_of(hca), VIRTIO_RDMA_CQ_VQ(cq->cqn));
}

static void drop(RdmaHca *hca, RdmaHcaCq *cq)
{
    virtio_rdma_cq_backlog_clear(virtio_rdma_cq(cq));
}

static void inspect(const RdmaHcaCq *cq, RdmaCqInfo *info)
{
    info->backlog = virtio_rdma_cq(cq)->n_backlog;
}

#define VQ_OPS(complete_op) {                   \
    .core = {                                   \
        .complete = complete_op,                \
        .drop = drop,                           \
        .forget_qp = virtio_rdma_cq_forget_qp,  \
        .destroyed = virtio_rdma_cq_abandon_vq, \
        .inspect = inspect,                     \
    },                                          \
    .max_cqe = max_cqe,                         \
    .flush = flush,                             \
    .arm = arm,                                 \
    .resize = resize,                           \
}

const VirtIORdmaCqOps virtio_rdma_cq_vq_ops = VQ_OPS(complete);
static const VirtIORdmaCqOps demo_ops = VQ_OPS(complete_demo);

/* The form is the virtqueue of the number of the CQ or event queue. */
static void use_vq(VirtIORdma *s, VirtIORdmaCq *cq)
{
    cq->core.ops = cq->core.is_eq ? &virtio_rdma_eq_ops.core :
                   s->is_demo ? &demo_ops.core : &virtio_rdma_cq_vq_ops.core;
    QTAILQ_INIT(&cq->events);
    cq->vq = virtio_rdma_vq_use(s, VIRTIO_RDMA_CQ_VQ(cq->core.cqn));
}

void virtio_rdma_cq_start_vq(VirtIORdma *s, VirtIORdmaCq *cq)
{
    use_vq(s, cq);
    /* Buffers are popped when one is needed, not when they come. */
    virtio_queue_set_notification(cq->vq, 0);
    if (virtio_rdma_is_v1(s)) {
        cq->arm = VIRTIO_RDMA_ARM_NEXT;
    }
}

bool virtio_rdma_cq_load_vq(VirtIORdma *s, VirtIORdmaCq *cq,
                            const RdmaHcaRecord *r)
{
    if (!rdma_hca_record_max(r, "arm", cq->arm, VIRTIO_RDMA_ARM_NEXT) ||
        !rdma_hca_record_check(r, !cq->n_backlog ||
                               !(cq->core.is_eq || cq->core.error),
                               "n_backlog", cq->n_backlog,
                               "0 in error or of an event queue") ||
        !virtio_rdma_vq_check_loaded(r, cq->core.is_eq || !s->hca.ctx,
                                     "cqn, with a virtqueue", s->max_vq_cq,
                                     cq->depth_shift)) {
        return false;
    }
    use_vq(s, cq);
    return true;
}

VirtIORdmaCq *virtio_rdma_cq_of_vq(VirtIORdma *s, uint32_t n)
{
    VirtIORdmaCq *cq = n >= VIRTIO_RDMA_CQ_VQ(0) && n <= s->max_vq_cq
                       ? rdma_hca_table_get(&s->hca.cqs,
                                            n - VIRTIO_RDMA_CQ_VQ(0)) : NULL;

    return cq && cq->vq ? cq : NULL;
}

VirtIORdmaCqe virtio_rdma_cqe(VirtIORdma *s, const RdmaWc *wc, bool solicited)
{
    VirtIORdmaCqe cqe = {
        .qpn = wc->qp_num,
        .solicited = solicited || wc->status != RDMA_WC_SUCCESS,
    };

    virtio_rdma_codec_put_cqe(cqe.bytes, wc, virtio_rdma_is_v1(s));
    return cqe;
}
