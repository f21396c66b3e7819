/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: counters of queue pairs. They must not
 * decrease, because a guest with F_VERSION_1 can read them.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "system/rdma-vmstate.h"
#include "vmstate.h"

void virtio_rdma_saved_counters_fill(VirtIORdmaSaved *v)
{
    VirtIORdma *s = v->dev;
    RdmaHcaQp *qp;

    if (!virtio_rdma_is_v1(s) || !s->hca.bc->set_qp_counters) {
        return;
    }
    v->qp_counters = g_new0(SavedQpCounters, s->hca.qps.count);
    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        SavedQpCounters *c = &v->qp_counters[v->n_qp_counters];

        if (s->hca.bc->query_counters(s->hca.backend, n, c->values) == 0) {
            c->qpn = n;
            v->n_qp_counters++;
        }
    }
}

static bool valid_count(void *opaque, int version_id)
{
    const VirtIORdmaSaved *v = opaque;

    if (v->n_qp_counters > v->dev->hca.qps.count) {
        error_report("virtio-rdma: counters of %u QPs in the migration stream, "
                     "which has only %u QPs", v->n_qp_counters,
                     v->dev->hca.qps.count);
        return false;
    }
    return true;
}

/* The backend's state is earlier in the stream, so the backend has its QPs. */
static int post_load(void *opaque, int version_id)
{
    const VirtIORdmaSaved *v = opaque;
    VirtIORdma *s = v->dev;

    if (!s->hca.bc->set_qp_counters) {
        error_report("virtio-rdma: counters of QPs in the migration stream, "
                     "but the backend (%s) has none",
                     object_get_typename(OBJECT(s->hca.backend)));
        return -EINVAL;
    }
    for (uint32_t i = 0; i < v->n_qp_counters; i++) {
        const SavedQpCounters *c = &v->qp_counters[i];

        if (!rdma_hca_table_get(&s->hca.qps, c->qpn) ||
            s->hca.bc->set_qp_counters(s->hca.backend, c->qpn, c->values)) {
            error_report("virtio-rdma: counters of QP %u in the migration "
                         "stream, which has no such QP", c->qpn);
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateDescription vmstate_one = {
    .name = "virtio-rdma/qp-counters",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(qpn, SavedQpCounters),
        VMSTATE_UINT64_ARRAY(values, SavedQpCounters,
                             VIRTIO_RDMA_NUM_COUNTERS),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_list = {
    .name = "virtio-rdma/qp-counters-list",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(n_qp_counters, VirtIORdmaSaved),
        VMSTATE_VALIDATE("no more counters than queue pairs", valid_count),
        VIRTIO_RDMA_RECORDS(qp_counters, n_qp_counters, vmstate_one,
                            VirtIORdmaSaved, SavedQpCounters, VMS_ALLOC),
        VMSTATE_END_OF_LIST()
    },
};

static bool has_counters(void *opaque)
{
    return VIRTIO_RDMA(opaque)->saved->n_qp_counters;
}

const VMStateDescription vmstate_virtio_rdma_qp_counters = {
    .name = "virtio-rdma-device/qp-counters",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = has_counters,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(saved, VirtIORdma, vmstate_list,
                               VirtIORdmaSaved),
        VMSTATE_END_OF_LIST()
    },
};
