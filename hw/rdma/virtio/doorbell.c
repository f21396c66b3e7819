/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The handler of doorbells of direct queues
 */
#include "qemu/osdep.h"
#include "trace.h"
#include "device.h"

/*
 * The vCPU thread sends at once, because the main loop may sleep. If more sends
 * are likely, the device polls for them: for sends of several QPs the shadow,
 * which costs less than polling each queue, and otherwise the queue.
 */
static void ring_direct_qp(VirtIORdma *s, VirtIORdmaQp *vqp)
{
    RdmaHcaQp *qp = &vqp->core;

    if (!rdma_hca_enter_to_kick(&s->hca)) {
        rdma_hca_qp_schedule(&s->hca, qp);
        return;
    }
    if (!virtio_rdma_shadow_rang(s, vqp->doorbell, qp->init.qpn)) {
        virtio_rdma_sq_poll_rang(s, vqp);
    }
    rdma_work_pay(&s->hca.kick_budget, RDMA_WORK_POLL);
    if (!qp->srq) {
        rdma_hca_kick_if_asleep(&s->hca, &qp->rq);
    }
    rdma_hca_kick(&s->hca, &qp->sq);
    /* This may end the QP and the device, so do not use them after it. */
    rdma_hca_leave(&s->hca);
}

void virtio_rdma_doorbell(VirtIORdma *s, uint32_t page, uint32_t value)
{
    uint32_t id = value & ~VIRTIO_RDMA_DOORBELL_SRQ;
    bool is_srq = value & VIRTIO_RDMA_DOORBELL_SRQ;
    /* A process that rings for a queue of another one has no effect. */
    VirtIORdmaQp *qp = is_srq ? NULL : virtio_rdma_direct_qp_at(s, page, id);
    VirtIORdmaSrq *srq = is_srq ? virtio_rdma_direct_srq_at(s, page, id)
                                : NULL;

    if (!virtio_rdma_active(s) || (!qp && !srq)) {
        return;
    }
    trace_virtio_rdma_doorbell(s, page, is_srq, id);
    if (qp) {
        ring_direct_qp(s, qp);
    } else {
        rdma_hca_ring(&s->hca, &srq->core.wq);
    }
}
