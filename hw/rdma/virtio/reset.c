/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of the device status, resets of the device and of virtqueues, and the
 * end of the device: events that may remove objects.
 *
 * A write of the device itself may cause each of them, see
 * rdma_hca_enter(). Then the device stops at once (virtio_rdma_active()),
 * and the rest is deferred until no function on the stack uses the objects.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qemu/log.h"
#include "trace.h"
#include "device.h"

static void update_status(VirtIORdma *s, uint8_t status, bool restart)
{
    bool resume = virtio_rdma_running_update(s, status) && s->hca.running;

    s->had_driver |= !!(status & s->ready_status);
    if (resume || restart) {
        virtio_rdma_extensions_start(s);
        /* The device has ignored kicks while it was not active. */
        virtio_rdma_schedule(s, &s->sched_all);
    }
}

VirtIOSetStatusReturn virtio_rdma_set_status(VirtIODevice *vdev,
                                             uint8_t status)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    if (s->hca.backend && !s->hca.unrealizing &&
        rdma_hca_enter_or_put_off(&s->hca, VIRTIO_RDMA_PENDING_STATUS)) {
        update_status(s, status, status & ~vdev->status & s->ready_status);
        rdma_hca_leave(&s->hca);
    }
    return (VirtIOSetStatusReturn)0;
}

static void reset(VirtIORdma *s)
{
    trace_virtio_rdma_reset(s);
    s->had_driver = false;
    virtio_rdma_ctrl_forget(s);
    virtio_rdma_shadows_reset(s);
    rdma_hca_reset(&s->hca);
    memset(s->vq_seen, 0, sizeof(s->vq_seen));
    bitmap_zero(s->stale_vqs, VIRTIO_QUEUE_MAX);
    s->sched_all = false;
    s->sched_cqs = false;
    s->sched_events = false;
    rdma_vq_notify_reset(&s->notify);
    rdma_hca_forget_pending(&s->hca, VIRTIO_RDMA_PENDING_VQS);
    bitmap_zero(s->reset_vqs, VIRTIO_QUEUE_MAX);
}

void virtio_rdma_reset(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    if (rdma_hca_enter_or_put_off(&s->hca, VIRTIO_RDMA_PENDING_RESET)) {
        reset(s);
        rdma_hca_leave(&s->hca);
    }
}

static void reset_wq(VirtIORdma *s, RdmaHcaWq *wq)
{
    const char *owner = rdma_hca_wq_owner(wq);
    RdmaHcaQp *qp = wq->kind == RDMA_SRQ
                    ? NULL : rdma_hca_table_get(&s->hca.qps, wq->id);
    bool lost = virtio_rdma_wq_forget_vq(s, wq);

    if (qp && !lost && rdma_hca_qp_is_in(&s->hca, qp, RDMA_QPS_RESET)) {
        /* The driver has not used the queue yet, so nothing is lost. */
        return;
    }
    qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: virtqueue of %s %u was reset "
                  "before the %s was destroyed\n", owner, wq->id, owner);
    if (qp) {
        rdma_hca_qp_fail(&s->hca, qp);
    } else {
        rdma_hca_srq_fail(&s->hca, rdma_hca_table_get(&s->hca.srqs, wq->id));
    }
}

static void queue_reset(VirtIORdma *s, uint32_t n)
{
    RdmaHcaWq *wq = virtio_rdma_wq_of_vq(s, n);
    VirtIORdmaCq *cq = virtio_rdma_cq_of_vq(s, n);

    if (n < VIRTIO_QUEUE_MAX) {
        s->vq_seen[n] = 0;
        clear_bit(n, s->stale_vqs);
    }
    if (n == VIRTIO_RDMA_CTRL_VQ) {
        virtio_rdma_ctrl_forget(s);
    } else if (wq) {
        reset_wq(s, wq);
    } else if (cq && cq->core.users) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: virtqueue of %s %u was "
                      "reset while %u queues use it\n",
                      cq->core.is_eq ? "event queue" : "CQ", cq->core.cqn,
                      cq->core.users);
        rdma_hca_cq_fail(&s->hca, &cq->core);
    }
}

void virtio_rdma_queue_reset(VirtIODevice *vdev, uint32_t n)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    trace_virtio_rdma_queue_reset(s, n);
    if (rdma_hca_busy(&s->hca)) {
        if (n < VIRTIO_QUEUE_MAX) {
            set_bit(n, s->reset_vqs);
            rdma_hca_put_off(&s->hca, VIRTIO_RDMA_PENDING_VQS);
        }
        return;
    }
    rdma_hca_enter(&s->hca);
    queue_reset(s, n);
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_queue_enable(VirtIODevice *vdev, uint32_t n)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    RdmaHcaWq *wq = virtio_rdma_wq_of_vq(s, n);

    if (wq) {
        rdma_hca_wq_schedule(&s->hca, wq);
    } else if (virtio_rdma_cq_of_vq(s, n)) {
        virtio_rdma_schedule(s, &s->sched_cqs);
    } else if (n == VIRTIO_RDMA_EVENT_VQ(s->max_vq_cq, s->max_vq_qp)) {
        virtio_rdma_schedule(s, &s->sched_events);
    }
}

static void unrealize(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    vmstate_unregister(VMSTATE_IF(s), &vmstate_virtio_rdma_limits, s);
    rdma_hca_enter(&s->hca);
    virtio_rdma_sq_polls_stop(s);
    rdma_hca_leave(&s->hca);
    rdma_hca_detach(&s->hca);
    virtio_rdma_ctrl_forget(s);
    virtio_rdma_shadows_reset(s);
    rdma_hca_free(&s->hca);
    virtio_rdma_shadows_free(s);
    virtio_rdma_sq_polls_free(s);
    virtio_rdma_scratch_free(s);
    for (int n = virtio_get_num_queues(vdev) - 1; n >= 0; n--) {
        virtio_del_queue(vdev, n);
    }
    virtio_cleanup(vdev);
}

void virtio_rdma_unrealize(DeviceState *dev)
{
    rdma_hca_end(&VIRTIO_RDMA(dev)->hca, unrealize);
}

static void run_queue_resets(VirtIORdma *s)
{
    rdma_hca_enter(&s->hca);
    for (unsigned n = find_first_bit(s->reset_vqs, VIRTIO_QUEUE_MAX);
         n < VIRTIO_QUEUE_MAX;
         n = find_next_bit(s->reset_vqs, VIRTIO_QUEUE_MAX, n + 1)) {
        clear_bit(n, s->reset_vqs);
        queue_reset(s, n);
    }
    rdma_hca_leave(&s->hca);
}

static void run_status(VirtIORdma *s)
{
    uint8_t status = VIRTIO_DEVICE(s)->status;

    rdma_hca_enter(&s->hca);
    update_status(s, status, status & s->ready_status);
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_run_pending(RdmaHca *hca, uint32_t pending)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    if (pending & VIRTIO_RDMA_PENDING_RESET) {
        reset(s);
        pending &= ~VIRTIO_RDMA_PENDING_VQS;
    }
    /* Each of these may end the device, so do not use @s after it. */
    if (pending & VIRTIO_RDMA_PENDING_VQS) {
        rdma_hca_put_off(hca, pending & VIRTIO_RDMA_PENDING_STATUS);
        run_queue_resets(s);
    } else if (pending & VIRTIO_RDMA_PENDING_STATUS) {
        run_status(s);
    }
}
