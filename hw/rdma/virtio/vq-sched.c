/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Schedule work of the bottom half, except that of work queues.
 */
#include "qemu/osdep.h"
#include "queue.h"

void virtio_rdma_cqs_schedule(VirtIORdma *s)
{
    s->sched_cqs = true;
    rdma_hca_bh_schedule(&s->hca);
}

void virtio_rdma_events_schedule(VirtIORdma *s)
{
    s->sched_events = true;
    rdma_hca_bh_schedule(&s->hca);
}

void virtio_rdma_all_schedule(VirtIORdma *s)
{
    s->sched_all = true;
    rdma_hca_bh_schedule(&s->hca);
}
