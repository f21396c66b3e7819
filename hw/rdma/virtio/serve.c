/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The handlers of virtqueues, and the guest interface's part of the bottom half
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "device.h"

/* Write the backlog of a CQ, or events. If the CQ fails, its QPs fail, too. */
static void flush_cq(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget)
{
    if (!cq->core.error && !virtio_rdma_cq_ops(cq)->flush(s, cq, budget)) {
        rdma_hca_cq_fail(&s->hca, &cq->core);
    }
}

/*
 * Write the backlogs of all CQs. For a CQ without a backlog this disables
 * notifications. If the budget is used up, the next turn begins with the next
 * CQ.
 */
static void flush_cqs(VirtIORdma *s)
{
    uint32_t budget = RDMA_TURN_BUDGET;
    uint32_t n = s->next_flush;

    s->sched_cqs = false;
    for (uint32_t left = s->hca.cqs.count; left; left--) {
        VirtIORdmaCq *cq;

        if (!budget) {
            virtio_rdma_schedule(s, &s->sched_cqs);
            break;
        }
        cq = rdma_hca_table_next(&s->hca.cqs, &n);
        if (!cq) {
            n = s->hca.cqs.first;
            cq = rdma_hca_table_next(&s->hca.cqs, &n);
        }
        n++;
        flush_cq(s, cq, &budget);
    }
    s->next_flush = n;
}

bool virtio_rdma_running_update(VirtIORdma *s, uint8_t status)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    bool ready = !virtio_device_disabled(vdev) &&
                 (status & s->ready_status);
    bool running = vdev->vm_running && ready;

    if (running && s->restore_order) {
        s->restore_order = false;
        if (virtio_vdev_has_feature(vdev, VIRTIO_F_IN_ORDER)) {
            virtio_rdma_wqs_restore_order(s);
        }
        running = !vdev->broken;
        ready = running;
        if (!running) {
            rdma_hca_bh_schedule(&s->hca);
        }
    }
    return rdma_hca_set_running(&s->hca, running, ready);
}

void virtio_rdma_serve(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    if (s->sched_all || s->sched_cqs) {
        flush_cqs(s);
    }
    virtio_rdma_eqs_run(s);
    if (s->sched_events || s->sched_all) {
        virtio_rdma_events_run(s);
    }
    if (s->sched_all) {
        s->sched_all = false;
        rdma_hca_kick_all(hca);
    }
    virtio_rdma_ctrl_run(s);
}

void virtio_rdma_handle_ctrl(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    if (!virtio_rdma_active(s)) {
        if (!(vdev->status & s->ready_status)) {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: control commands "
                          "wait for %s\n", s->is_demo ? "FEATURES_OK"
                                                      : "DRIVER_OK");
        }
        return;
    }
    if (rdma_hca_enter_or_put_off(&s->hca, RDMA_HCA_PENDING_BH)) {
        virtio_rdma_ctrl_run(s);
        rdma_hca_leave(&s->hca);
    }
}

void virtio_rdma_handle_cq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaCq *cq = virtio_rdma_cq_of_vq(s, virtio_get_queue_index(vq));

    if (!cq || !virtio_rdma_active(s)) {
        return;
    }
    if (!rdma_hca_enter_to_kick(&s->hca)) {
        virtio_rdma_schedule(s, &s->sched_cqs);
        return;
    }
    flush_cq(s, cq, &s->hca.kick_budget);
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_handle_event(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    virtio_rdma_schedule(s, &s->sched_events);
}

void virtio_rdma_handle_wq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    RdmaHcaWq *wq = virtio_rdma_wq_of_vq(s, virtio_get_queue_index(vq));

    if (wq && virtio_rdma_active(s)) {
        rdma_hca_ring(&s->hca, wq);
    }
}
