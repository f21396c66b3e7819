/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration: the core's part of the stream. It has the objects, the events, the
 * state of the backend, and counters.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "migration/qemu-file-types.h"
#include "qemu/error-report.h"
#include "int.h"

/*
 * Enter the device: an iothread may work in the backend. A reset may raise an
 * event of the port, which the source has raised, too.
 */
void rdma_hca_forget_loaded(RdmaHca *hca)
{
    const RdmaEvent *event;

    rdma_hca_enter(hca);
    rdma_hca_reset(hca);
    while ((event = rdma_hca_events_next(hca, NULL))) {
        rdma_hca_event_done(hca, event);
    }
    rdma_hca_leave(hca);
}

Error *rdma_hca_migration_blocker(const RdmaHca *hca)
{
    if (hca->migration_blocker) {
        return hca->migration_blocker;
    }
    return hca->faults ? hca->faults->blocker : NULL;
}

/* Events */

static int put_events(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field, JSONWriter *vmdesc)
{
    const RdmaEvent *event = NULL;

    qemu_put_be32(f, rdma_hca_events_count(pv));
    while ((event = rdma_hca_events_next(pv, event))) {
        qemu_put_be32(f, event->type);
        qemu_put_be32(f, event->id);
    }
    return 0;
}

static int get_events(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field)
{
    RdmaHca *hca = pv;
    uint32_t count = qemu_get_be32(f);

    for (uint32_t i = 0; i < count; i++) {
        RdmaEvent event;

        event.type = qemu_get_be32(f);
        event.id = qemu_get_be32(f);
        if (!rdma_hca_event_load(hca, &event)) {
            error_report("rdma: an event in the migration stream has type=%u, "
                         "id=%u, which must be of an object, and come once",
                         event.type, event.id);
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateInfo vmstate_info_events = {
    .name = "rdma hca events",
    .get = get_events,
    .put = put_events,
};

/* The backend */

static int put_backend(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaHca *hca = pv;

    return rdma_vmstate_save(f, hca->bc->vmsd, hca->backend, vmdesc);
}

static int get_backend(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field)
{
    RdmaHca *hca = pv;

    if (!hca->bc->vmsd) {
        error_report("rdma: the backend of this device (%s) does not migrate; "
                     "with the backend %s it does",
                     rdma_hca_backend_type(hca),
                     TYPE_RDMA_BACKEND_DEFAULT);
        return -EINVAL;
    }
    return rdma_vmstate_load(f, hca->bc->vmsd, hca->backend);
}

static const VMStateInfo vmstate_info_backend = {
    .name = "rdma backend",
    .get = get_backend,
    .put = put_backend,
};

/*
 * Counters of the device, and of QPs. They must not decrease, because the guest
 * can read them. Loading them needs the backend with its QPs.
 */

static void put_values(QEMUFile *f, const uint64_t *values)
{
    for (int i = 0; i < RDMA_NUM_COUNTERS; i++) {
        qemu_put_be64(f, values[i]);
    }
}

static bool get_qp_values(RdmaHca *hca, uint32_t qpn, uint64_t *values)
{
    memset(values, 0, RDMA_NUM_COUNTERS * sizeof(*values));
    return hca->bc->set_qp_counters &&
           hca->bc->query_counters(hca->backend, qpn, values) == 0;
}

static int put_counters(QEMUFile *f, void *pv, size_t size,
                        const VMStateField *field, JSONWriter *vmdesc)
{
    uint64_t values[RDMA_NUM_COUNTERS];
    RdmaHca *hca = pv;
    uint32_t count = 0;
    RdmaHcaQp *qp;

    qemu_put_be32(f, RDMA_NUM_COUNTERS);
    rdma_hca_counters_get(hca, values);
    put_values(f, values);
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        count += get_qp_values(hca, n, values);
    }
    qemu_put_be32(f, count);
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        if (get_qp_values(hca, n, values)) {
            qemu_put_be32(f, n);
            put_values(f, values);
        }
    }
    return 0;
}

/* An older QEMU may have fewer: new counters are added at the end. */
static void get_values(QEMUFile *f, uint32_t num, uint64_t *values)
{
    for (uint32_t i = 0; i < RDMA_NUM_COUNTERS; i++) {
        values[i] = i < num ? qemu_get_be64(f) : 0;
    }
}

static int get_counters(QEMUFile *f, void *pv, size_t size,
                        const VMStateField *field)
{
    uint64_t values[RDMA_NUM_COUNTERS];
    RdmaHca *hca = pv;
    uint32_t num = qemu_get_be32(f);
    uint32_t count;

    if (num > RDMA_NUM_COUNTERS) {
        error_report("rdma: %u counters in the migration stream, but there "
                     "are only %u", num, RDMA_NUM_COUNTERS);
        return -EINVAL;
    }
    get_values(f, num, values);
    rdma_hca_counters_set(hca, values);
    count = qemu_get_be32(f);
    if (count > hca->qps.count) {
        error_report("rdma: counters of %u QPs in the migration stream, which "
                     "has only %u QPs", count, hca->qps.count);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t qpn = qemu_get_be32(f);

        get_values(f, num, values);
        if (!hca->bc->set_qp_counters ||
            !rdma_hca_table_get(&hca->qps, qpn) ||
            hca->bc->set_qp_counters(hca->backend, qpn, values)) {
            error_report("rdma: counters of QP %u in the migration stream, "
                         "which has no such QP, or its backend (%s) counts "
                         "nothing", qpn,
                         rdma_hca_backend_type(hca));
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateInfo vmstate_info_counters = {
    .name = "rdma hca counters",
    .get = get_counters,
    .put = put_counters,
};

/* All parts */

static const VMStateDescription vmstate_backend = {
    .name = "rdma-hca/backend",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_PART("backend", vmstate_info_backend),
        VMSTATE_RDMA_PART("counters", vmstate_info_counters),
        VMSTATE_END_OF_LIST()
    },
};

static int pre_load(void *opaque)
{
    RdmaHca *hca = opaque;

    rdma_hca_forget_loaded(hca);
    memset(hca->loaded, 0, sizeof(hca->loaded));
    return 0;
}

static int post_load(void *opaque, int version_id)
{
    RdmaHca *hca = opaque;

    /* The port of the destination may differ from that of the source. */
    hca->port_changed = true;
    return rdma_hca_load_end(hca) ? 0 : -EINVAL;
}

static const VMStateDescription vmstate_hca = {
    .name = "rdma-hca",
    .pre_load = pre_load,
    .post_load = post_load,
    .fields = (const VMStateField[]) {
        {
            .name = "objects",
            .vmsd = &vmstate_rdma_hca_objects,
            .size = sizeof(RdmaHca),
            .flags = VMS_STRUCT,
        },
        VMSTATE_RDMA_PART("events", vmstate_info_events),
        VMSTATE_BOOL(events.port_active, RdmaHca),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_backend,
        NULL
    },
};

static int put_hca(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field, JSONWriter *vmdesc)
{
    return rdma_vmstate_save(f, &vmstate_hca, pv, vmdesc);
}

static int get_hca(QEMUFile *f, void *pv, size_t size,
                   const VMStateField *field)
{
    int ret = rdma_vmstate_load(f, &vmstate_hca, pv);

    if (ret) {
        rdma_hca_forget_loaded(pv);
    }
    return ret;
}

const VMStateInfo vmstate_info_rdma_hca = {
    .name = "rdma hca",
    .get = get_hca,
    .put = put_hca,
};
