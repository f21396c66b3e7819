/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of the device: the backend's counters since the last device reset.
 * After migration they continue from the values of the source.
 */
#include "qemu/osdep.h"
#include "int.h"

static void read_backend(RdmaHca *hca, uint64_t *values)
{
    memset(values, 0, RDMA_NUM_COUNTERS * sizeof(*values));
    if (hca->bc->query_counters) {
        hca->bc->query_counters(hca->backend, RDMA_NO_QPN, values);
    }
}

int rdma_hca_counters_update(RdmaHca *hca)
{
    return hca->bc->update_counters
           ? hca->bc->update_counters(hca->backend) : 0;
}

void rdma_hca_counters_get(RdmaHca *hca, uint64_t *values)
{
    read_backend(hca, values);
    for (unsigned i = 0; i < RDMA_NUM_COUNTERS; i++) {
        values[i] -= hca->counters_base[i];
    }
}

int rdma_hca_counters_add_qp(RdmaHca *hca, uint32_t qpn, uint64_t *values)
{
    if (!rdma_hca_has_qp_counters(hca)) {
        return -ENOTSUP;
    }
    if (!rdma_hca_table_get(&hca->qps, qpn)) {
        rdma_hca_guest_error("counters of QP %u, which does not exist", qpn);
        return -ENOENT;
    }
    return hca->bc->query_counters(hca->backend, qpn, values);
}

void rdma_hca_counters_set(RdmaHca *hca, const uint64_t *values)
{
    read_backend(hca, hca->counters_base);
    for (unsigned i = 0; values && i < RDMA_NUM_COUNTERS; i++) {
        hca->counters_base[i] -= values[i];
    }
}
