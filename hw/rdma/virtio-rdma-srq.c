/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues. Their WQEs are copied to the backend, and the
 * buffers go back at once: nothing of the virtqueue waits for a message.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

#define SRQ_RING_MIN 16

VirtIORdmaSrq *virtio_rdma_srq_of_vq(VirtIORdma *s, uint32_t n)
{
    uint32_t first = virtio_rdma_srq_vq(s, 0);

    return n < first ? NULL : virtio_rdma_table_get(&s->srqs, n - first);
}

VirtIORdmaSrq *virtio_rdma_add_srq(VirtIORdma *s, const RdmaSrqAttr *attr,
                                   VirtIORdmaPd *pd)
{
    VirtIORdmaSrq *srq = g_new0(VirtIORdmaSrq, 1);
    uint32_t n = virtio_rdma_srq_vq(s, attr->srqn);

    srq->attr = *attr;
    srq->pd = pd;
    pd->users++;
    srq->vq = virtio_get_queue(VIRTIO_DEVICE(s), n);
    srq->seen = virtio_queue_get_last_avail_idx(VIRTIO_DEVICE(s), n);
    virtio_rdma_table_set(&s->srqs, attr->srqn, srq);
    return srq;
}

void virtio_rdma_remove_srq(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    virtio_rdma_table_clear(&s->srqs, srq->attr.srqn);
    virtio_rdma_forget_events(s, VIRTIO_RDMA_EVENT_OF_SRQ, srq->attr.srqn);
    if (srq->queued) {
        QTAILQ_REMOVE(&s->rerun_srqs, srq, next);
    }
    srq->pd->users--;
    g_free(srq);
}

void virtio_rdma_schedule_srq(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    if (!srq->queued) {
        srq->queued = true;
        QTAILQ_INSERT_TAIL(&s->rerun_srqs, srq, next);
    }
    qemu_bh_schedule(s->bh);
}

/*
 * The ring need not hold all WQEs at once, as buffers come back when copied.
 * But one that is this small is not meant for the SRQ.
 */
static int check_srqn(VirtIORdma *s, uint32_t srqn, const VirtIORdmaReq *req)
{
    return virtio_rdma_check_vq(s, virtio_rdma_srq_vq(s, srqn),
                                MIN(req->srq.max_wr, SRQ_RING_MIN));
}

int virtio_rdma_create_srq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    RdmaSrqAttr *attr = &c->req.srq;
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, attr->pdn);
    int ret;

    if (!pd) {
        return -ENOENT;
    }
    if (attr->max_wr == 0 || attr->max_wr > s->limits.max_srq_wr ||
        attr->max_sge > s->limits.max_srq_sge ||
        attr->limit > attr->max_wr) {
        return -EINVAL;
    }
    ret = virtio_rdma_find_with_vqs(s, &s->srqs, s->srqs.first, s->srqs.end,
                                    check_srqn, &c->req, &attr->srqn);
    if (ret) {
        return ret;
    }
    clear_bit(virtio_rdma_srq_vq(s, attr->srqn), s->stale_vqs);
    c->obj = virtio_rdma_add_srq(s, attr, pd);
    return s->bc->create_srq(s->backend, attr);
}

void virtio_rdma_create_srq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaSrq *srq = c->obj;

    if (!ret) {
        trace_virtio_rdma_create_srq(s, srq->attr.srqn, srq->attr.pdn,
                                     srq->attr.max_wr, srq->attr.max_sge);
        c->rsp.create.id = srq->attr.srqn;
        virtio_rdma_notify_srq(s, srq->attr.srqn, true);
        virtio_rdma_schedule_srq(s, srq);
    } else if (srq) {
        virtio_rdma_remove_srq(s, srq);
    }
}

int virtio_rdma_modify_srq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaSrq *srq = virtio_rdma_table_get(&s->srqs, c->req.srq.srqn);

    if (!srq) {
        return -ENOENT;
    }
    if (c->req.srq.limit > srq->attr.max_wr) {
        return -EINVAL;
    }
    /* What was posted before counts; its notification may come later. */
    virtio_rdma_srq_run(s, srq);
    return s->bc->set_srq_limit(s->backend, srq->attr.srqn,
                                c->req.srq.limit);
}

int virtio_rdma_query_srq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaSrq *srq = virtio_rdma_table_get(&s->srqs, c->req.srq.srqn);

    if (!srq) {
        return -ENOENT;
    }
    c->obj = srq;
    return s->bc->query_srq(s->backend, srq->attr.srqn,
                            &c->rsp.query_srq.attr);
}

void virtio_rdma_query_srq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaSrq *srq = c->obj;

    if (!ret) {
        c->rsp.query_srq.attr.max_wr = srq->attr.max_wr;
        c->rsp.query_srq.attr.max_sge = srq->attr.max_sge;
    }
}

int virtio_rdma_destroy_srq(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaSrq *srq = virtio_rdma_table_get(&s->srqs, c->req.destroy.id);

    if (!srq) {
        return -ENOENT;
    }
    if (srq->users) {
        return -EBUSY;
    }
    c->obj = srq;
    return s->bc->destroy_srq(s->backend, srq->attr.srqn);
}

void virtio_rdma_destroy_srq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaSrq *srq = c->obj;
    uint32_t srqn;

    if (ret) {
        return;
    }
    srqn = srq->attr.srqn;
    trace_virtio_rdma_destroy_srq(s, srqn);
    virtio_rdma_vq_drain(s, srq->vq);
    virtio_rdma_abandon_vq(s, virtio_rdma_srq_vq(s, srqn));
    virtio_rdma_remove_srq(s, srq);
    virtio_rdma_notify_srq(s, srqn, false);
}

/* The virtqueue was reset: what the driver had put there is lost. */
void virtio_rdma_fail_srq(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: virtqueue of SRQ %u was "
                  "reset under it\n", srq->attr.srqn);
    srq->seen = 0;
    if (srq->error) {
        return;
    }
    srq->error = true;
    virtio_rdma_raise_event(s, RDMA_EVENT_SRQ_ERR, srq->attr.srqn);
    for (uint32_t n = s->qps.first; n < s->qps.end && srq->users; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp && qp->srq == srq) {
            virtio_rdma_fail_qp(s, qp);
        }
    }
}

bool virtio_rdma_srq_run(VirtIORdma *s, VirtIORdmaSrq *srq)
{
    int budget = VIRTQUEUE_MAX_SIZE;
    uint32_t room = 0;
    bool posted = false;

    if (srq->error || !virtio_rdma_check_ring(s, srq->vq, &srq->seen)) {
        return false;
    }
    for (;;) {
        g_autofree VirtQueueElement *elem = NULL;

        if (room == 0) {
            /* With none left, srq_room() of the client calls again. */
            room = s->bc->srq_room(s->backend, srq->attr.srqn);
            if (room == 0) {
                break;
            }
        }
        if (budget-- == 0) {
            virtio_rdma_schedule_srq(s, srq);
            break;
        }
        elem = virtqueue_pop(srq->vq, sizeof(VirtQueueElement));
        if (!elem) {
            break;
        }
        if (virtio_rdma_post_srq_recv(s, srq, elem)) {
            virtqueue_unpop(srq->vq, elem, 0);
            break;
        }
        virtqueue_push(srq->vq, elem, 0);
        posted = true;
        room--;
    }
    if (posted) {
        virtio_notify(VIRTIO_DEVICE(s), srq->vq);
    }
    return posted;
}
