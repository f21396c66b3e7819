/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtqueues as queues of the core: each WQE is a buffer, which the device
 * returns when the WQE is done, and each CQE uses a buffer of the driver.
 *
 * All rings are split ones without VIRTIO_F_IN_ORDER, because the device offers
 * no other layout. So the index of an element is all that has to be kept.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "qemu/rcu.h"
#include "int.h"

/*
 * The backend pays the same for each completion, so this bounds the time that a
 * completion takes.
 */
#define MAX_CQE_DESCS 16

/* Virtqueues in general */

/* An MSI message may go to any address, and so reset the device. */
void net_roce_vqs_flush(RdmaHca *hca)
{
    NetRoce *s = net_roce_of(hca);
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    if (s->notify_config && net_roce_is_active(s)) {
        s->notify_config = false;
        virtio_notify_config(vdev);
    }
    rdma_vq_notify_flush(&s->notify, hca, vdev);
}

int net_roce_vq_check(NetRoce *s, uint32_t n, uint32_t size)
{
    if (!virtio_queue_ready(net_roce_vq(s, n))) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: virtqueue %u of the "
                      "new object is not set up\n", n);
        return -ENOMEM;
    }
    return rdma_hca_check_range("depth of the queue", size, 0,
                                virtio_queue_get_num(VIRTIO_DEVICE(s), n))
           ? 0 : -EINVAL;
}

/*
 * The object of the virtqueue is gone. The proposal asks the driver to reset
 * the virtqueue, and has no means for that: the authors' driver starts again at
 * index 0. So set the used index to 0, and expect the available index at 0.
 */
static void rewind_ring(RdmaHca *hca, VirtQueue *vq)
{
    rdma_vq_rewind(hca, VIRTIO_DEVICE(net_roce_of(hca)), vq);
}

/* Work queues */

static VirtQueue *vq_of(const RdmaHcaWq *wq)
{
    return wq->opaque;
}

static uint32_t depth(const RdmaHcaWq *wq)
{
    return VIRTQUEUE_MAX_SIZE;
}

static bool take(RdmaHca *hca, RdmaHcaWq *wq, uint32_t *place)
{
    NetRoce *s = net_roce_of(hca);
    NetRoceTaken *t = wq->kind == RDMA_SQ ? &s->send : &s->recv;

    g_free(t->elem);
    t->elem = virtqueue_pop(vq_of(wq), sizeof(VirtQueueElement));
    if (!t->elem) {
        return false;
    }
    /* A WQE may be shorter than its fixed part: the rest reads as 0. */
    memset(&s->wqe, 0, sizeof(s->wqe));
    iov_to_buf(t->elem->out_sg, t->elem->out_num, 0, &s->wqe, sizeof(s->wqe));
    t->len = iov_size(t->elem->out_sg, t->elem->out_num);
    t->cost = rdma_vq_elem_work(t->elem);
    *place = t->elem->index;
    rdma_vq_unmap(VIRTIO_DEVICE(s), t->elem);
    return true;
}

/* Only SQs put WQEs back. */
static void put_back(RdmaHca *hca, RdmaHcaWq *wq)
{
    virtqueue_unpop(vq_of(wq), net_roce_of(hca)->send.elem, 0);
}

static void retire(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count)
{
    RCU_READ_LOCK_GUARD();

    for (uint32_t i = 0; i < count; i++) {
        const VirtQueueElement elem = {
            .index = rdma_hca_wq_inflight(wq, i)->place,
        };

        virtqueue_fill(vq_of(wq), &elem, 0, i);
    }
    virtqueue_flush(vq_of(wq), count);
    rdma_vq_notify(&net_roce_of(hca)->notify, vq_of(wq));
}

static bool count(RdmaHca *hca, const RdmaHcaWq *wq, uint32_t *n)
{
    return rdma_vq_count(hca, VIRTIO_DEVICE(net_roce_of(hca)), vq_of(wq), n);
}

/*
 * An available index that runs ahead only makes the device execute old WQEs
 * again, within its budgets.
 */
static bool check(RdmaHca *hca, RdmaHcaWq *wq)
{
    return true;
}

/* A driver always kicks, so there is nothing to tell it. */
static bool wake(RdmaHca *hca, RdmaHcaWq *wq)
{
    return true;
}

static RdmaNext go_to_sleep(RdmaHca *hca, RdmaHcaWq *wq)
{
    return VIRTIO_DEVICE(net_roce_of(hca))->broken ||
           virtio_queue_empty(vq_of(wq)) ? RDMA_NEXT_NONE : RDMA_NEXT_WR;
}

static void drain(RdmaHca *hca, RdmaHcaWq *wq, uint32_t n)
{
    rdma_vq_drain(hca, vq_of(wq), n, &net_roce_of(hca)->notify);
}

static void wq_destroyed(RdmaHca *hca, RdmaHcaWq *wq)
{
    rewind_ring(hca, vq_of(wq));
}

static bool load(RdmaHca *hca, RdmaHcaWq *wq, uint32_t place,
                 const RdmaHcaRecord *r)
{
    uint32_t size = virtio_queue_get_num(VIRTIO_DEVICE(net_roce_of(hca)),
                                         virtio_get_queue_index(vq_of(wq)));

    return rdma_hca_record_check(r, place < size, "index", place,
                                 "less than its ring");
}

static const RdmaHcaWqOps wq_ops = {
    .depth = depth,
    .take = take,
    .put_back = put_back,
    .retire = retire,
    .count = count,
    .check = check,
    .wake = wake,
    .sleep = go_to_sleep,
    .drain = drain,
    .destroyed = wq_destroyed,
    .load = load,
};

void net_roce_qp_start(NetRoce *s, RdmaHcaQp *qp)
{
    qp->sq.ops = &wq_ops;
    qp->sq.opaque = net_roce_vq(s, NET_ROCE_SQ_VQ(s->max_cq, qp->init.qpn));
    qp->rq.ops = &wq_ops;
    qp->rq.opaque = net_roce_vq(s, NET_ROCE_RQ_VQ(s->max_cq, qp->init.qpn));
}

/* Completion queues */

/* Can a CQE be written to @elem, a buffer of the driver, or NULL? */
static bool check_buffer(const NetRoceCq *cq, const VirtQueueElement *elem)
{
    size_t room = elem ? iov_size(elem->in_sg, elem->in_num) : 0;
    unsigned ndescs = elem ? elem->out_num + elem->in_num : 0;

    if (!elem) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: CQ %u overruns: the "
                      "driver has no buffer for a completion\n", cq->core.cqn);
    } else if (room < sizeof(NetRoceCqe) || ndescs > MAX_CQE_DESCS) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: CQ %u overruns: a "
                      "buffer has %zu writable bytes in %u descriptors, but "
                      "needs %zu bytes in at most %u\n", cq->core.cqn, room,
                      ndescs, sizeof(NetRoceCqe), MAX_CQE_DESCS);
    } else {
        return true;
    }
    return false;
}

static bool complete(RdmaHca *hca, RdmaHcaCq *core, const RdmaWc *wc,
                     bool solicited)
{
    NetRoce *s = net_roce_of(hca);
    NetRoceCq *cq = net_roce_cq(core);
    g_autofree VirtQueueElement *elem =
        virtqueue_pop(cq->vq, sizeof(VirtQueueElement));
    NetRoceCqe cqe;

    if (!check_buffer(cq, elem)) {
        if (elem) {
            virtqueue_unpop(cq->vq, elem, 0);
        }
        return false;
    }
    net_roce_put_cqe(&cqe, wc);
    iov_from_buf(elem->in_sg, elem->in_num, 0, &cqe, sizeof(cqe));
    virtqueue_push(cq->vq, elem, sizeof(cqe));
    if (cq->arm == NET_ROCE_ARM_NEXT ||
        (cq->arm == NET_ROCE_ARM_SOLICITED &&
         (solicited || wc->status != RDMA_WC_SUCCESS))) {
        cq->arm = NET_ROCE_ARM_NONE;
        rdma_vq_notify(&s->notify, cq->vq);
    }
    return true;
}

static void cq_destroyed(RdmaHca *hca, RdmaHcaCq *cq)
{
    rewind_ring(hca, net_roce_cq(cq)->vq);
}

static const RdmaHcaCqOps cq_ops = {
    .complete = complete,
    .destroyed = cq_destroyed,
};

void net_roce_cq_start(NetRoce *s, NetRoceCq *cq)
{
    cq->core.ops = &cq_ops;
    cq->vq = net_roce_vq(s, NET_ROCE_CQ_VQ(cq->core.cqn));
}

void net_roce_scratch_free(NetRoce *s)
{
    g_free(s->send.elem);
    g_free(s->recv.elem);
    s->send.elem = s->recv.elem = NULL;
}
