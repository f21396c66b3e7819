/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host notifiers (ioeventfd).
 *
 * A device has hundreds of virtqueues, and most are idle. So only the control
 * queue and the queues of existing QPs and SRQs get a notifier. For all others
 * a vCPU exits to QEMU, and the transport calls their handler.
 */
#include "qemu/osdep.h"
#include "hw/virtio/virtio-bus.h"
#include "qemu/main-loop.h"
#include "system/memory.h"
#include "queue.h"

static VirtioBusState *virtio_rdma_bus(VirtIORdma *s)
{
    return VIRTIO_BUS(qdev_get_parent_bus(DEVICE(s)));
}

static int assign_notifier(VirtIORdma *s, uint32_t n)
{
    VirtQueue *vq = virtio_get_queue(VIRTIO_DEVICE(s), n);
    EventNotifier *e = virtio_queue_get_host_notifier(vq);
    int ret = virtio_bus_set_host_notifier(virtio_rdma_bus(s), n, true);

    if (ret >= 0) {
        set_bit(n, s->notifiers);
        event_notifier_set_handler(e, virtio_queue_host_notifier_read);
        /* The driver may have kicked before the notifier was there. */
        event_notifier_set(e);
    }
    return ret;
}

static void deassign_notifiers(VirtIORdma *s, unsigned long first,
                               unsigned long end)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    unsigned long n;

    memory_region_transaction_begin();
    for (n = find_next_bit(s->notifiers, end, first); n < end;
         n = find_next_bit(s->notifiers, end, n + 1)) {
        VirtQueue *vq = virtio_get_queue(vdev, n);

        event_notifier_set_handler(virtio_queue_get_host_notifier(vq), NULL);
        virtio_bus_set_host_notifier(virtio_rdma_bus(s), n, false);
    }
    /* The transaction needs the notifiers open when it commits. */
    memory_region_transaction_commit();

    for (n = find_next_bit(s->notifiers, end, first); n < end;
         n = find_next_bit(s->notifiers, end, n + 1)) {
        clear_bit(n, s->notifiers);
        virtio_bus_cleanup_host_notifier(virtio_rdma_bus(s), n);
    }
}

/* Assign notifiers to those of virtqueues @first to @last that have a queue. */
static int assign_notifiers(VirtIORdma *s, uint32_t first, uint32_t last)
{
    int ret = 0;

    for (uint32_t n = first; n <= last && ret >= 0; n++) {
        if (virtio_rdma_wq_of_vq(s, n)) {
            ret = assign_notifier(s, n);
        }
    }
    return ret;
}

static void set_notifiers(VirtIORdma *s, uint32_t first, uint32_t last,
                          bool assign)
{
    if (!assign) {
        deassign_notifiers(s, first, last + 1);
        return;
    }
    if (!s->ioeventfd) {
        return;
    }
    memory_region_transaction_begin();
    if (assign_notifiers(s, first, last) < 0) {
        /* Out of file descriptors: later queues get no notifiers. */
        s->ioeventfd = false;
    }
    memory_region_transaction_commit();
}

void virtio_rdma_qp_set_notifiers(VirtIORdma *s, uint32_t qpn, bool assign)
{
    if (qpn < s->max_vq_qp) {
        set_notifiers(s, VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, qpn),
                      VIRTIO_RDMA_RQ_VQ(s->max_vq_cq, qpn), assign);
    }
}

void virtio_rdma_srq_set_notifier(VirtIORdma *s, uint32_t srqn, bool assign)
{
    uint32_t n = virtio_rdma_srq_vq(s, srqn);

    if (srqn < s->max_vq_srq) {
        set_notifiers(s, n, n, assign);
    }
}

int virtio_rdma_ioeventfd_start(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    int ret;

    memory_region_transaction_begin();
    ret = assign_notifier(s, VIRTIO_RDMA_CTRL_VQ);
    if (ret >= 0) {
        ret = assign_notifiers(s, VIRTIO_RDMA_SQ_VQ(s->max_vq_cq, 0),
                               virtio_get_num_queues(vdev) - 1);
    }
    memory_region_transaction_commit();
    if (ret < 0) {
        deassign_notifiers(s, 0, VIRTIO_QUEUE_MAX);
        return ret;
    }
    s->ioeventfd = true;
    return 0;
}

void virtio_rdma_ioeventfd_stop(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    s->ioeventfd = false;
    deassign_notifiers(s, 0, VIRTIO_QUEUE_MAX);
}
