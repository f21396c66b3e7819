/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters: those of the backend, counted from the last device reset. After
 * migration they go on from the values of the source.
 */
#include "qemu/osdep.h"
#include "virtio-rdma-core.h"

QEMU_BUILD_BUG_ON(VIRTIO_RDMA_NUM_COUNTERS > RDMA_BACKEND_MAX_COUNTERS);

static void read_backend(VirtIORdma *s, uint64_t *values)
{
    uint64_t all[RDMA_BACKEND_MAX_COUNTERS] = {};

    if (s->bc->query_counters) {
        s->bc->query_counters(s->backend, RDMA_NO_QPN, all);
    }
    memcpy(values, all, VIRTIO_RDMA_NUM_COUNTERS * sizeof(*values));
}

int virtio_rdma_counters_update(VirtIORdma *s)
{
    return s->bc->update_counters ? s->bc->update_counters(s->backend) : 0;
}

void virtio_rdma_counters_get(VirtIORdma *s, uint64_t *values)
{
    read_backend(s, values);
    for (unsigned i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        values[i] -= s->counters_base[i];
    }
}

void virtio_rdma_counters_set(VirtIORdma *s, const uint64_t *values)
{
    read_backend(s, s->counters_base);
    for (unsigned i = 0; values && i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        s->counters_base[i] -= values[i];
    }
}
