/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration: the limits, which must be the same at the destination. The guest
 * has read them. Compare also limits that the driver does not use: numbers of
 * objects, and the PCI function, depend on them.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "migration/qemu-file-types.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"

typedef struct Limit {
    const char *prop;               /* for messages: the property, if any */
    size_t offset;
    size_t size;
    bool of_ring;                   /* at most RdmaHca.ring_size */
} Limit;

#define LIMIT(prop_, field, ...) {                                      \
    prop_, offsetof(RdmaBackendLimits, field),                          \
    sizeof_field(RdmaBackendLimits, field), ## __VA_ARGS__              \
}

/* In the order of the stream */
static const Limit limits[] = {
    LIMIT("max-cq", max_cq),
    LIMIT("max-qp", max_qp),
    LIMIT("max-mr", max_mr),
    LIMIT("max-pd", max_pd),
    LIMIT("max-qp-wr", max_qp_wr),
    LIMIT("queue-size", max_qp_wr, true),
    LIMIT("max-cqe", max_cqe),
    LIMIT("queue-size", max_cqe, true),
    LIMIT("max-sge", max_send_sge),
    LIMIT("max-sge", max_recv_sge),
    LIMIT("max-inline", max_inline_data),
    LIMIT("max-rd-atomic", max_rd_atomic),
    LIMIT("gid-table-len", gid_table_len),
    LIMIT("max-srq", max_srq),
    LIMIT("max-srq-wr", max_srq_wr),
    LIMIT("max-sge", max_srq_sge),
    LIMIT("max-mw", max_mw),
    LIMIT("max-mcast-grp", max_mcast_grp),
    LIMIT("max-mr-size", max_mr_size),
    LIMIT("atomic capability", atomic_cap),
    LIMIT("capabilities", device_cap_flags),
};

static uint64_t value_of(const RdmaHca *hca, const Limit *l)
{
    uint64_t value = ldn_he_p((const uint8_t *)&hca->limits + l->offset,
                              l->size);

    return l->of_ring ? MIN(value, hca->ring_size) : value;
}

static int put_limits(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field, JSONWriter *vmdesc)
{
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        qemu_put_be64(f, value_of(pv, &limits[i]));
    }
    return 0;
}

static int get_limits(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field)
{
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        uint64_t theirs = qemu_get_be64(f);
        uint64_t ours = value_of(pv, &limits[i]);

        if (theirs != ours) {
            error_report("rdma: the source has %s=%" PRIu64 ", but this device "
                         "has %" PRIu64, limits[i].prop, theirs, ours);
            return -EINVAL;
        }
    }
    return 0;
}

static int put_equal(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field, JSONWriter *vmdesc)
{
    uint64_t be = cpu_to_be64(ldn_he_p(pv, size));

    qemu_put_buffer(f, (uint8_t *)&be + sizeof(be) - size, size);
    return 0;
}

static int get_equal(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field)
{
    uint64_t theirs = 0, ours = ldn_he_p(pv, size);

    qemu_get_buffer(f, (uint8_t *)&theirs + sizeof(theirs) - size, size);
    theirs = be64_to_cpu(theirs);
    if (theirs != ours) {
        error_report("rdma: the source has %s=%" PRIu64 " (0x%" PRIx64 "), but "
                     "this device has %" PRIu64 " (0x%" PRIx64 ")",
                     field->name, theirs, theirs, ours, ours);
        return -EINVAL;
    }
    return 0;
}

const VMStateInfo vmstate_info_rdma_equal = {
    .name = "rdma equal",
    .get = get_equal,
    .put = put_equal,
};

const VMStateInfo vmstate_info_rdma_hca_limits = {
    .name = "rdma hca limits",
    .get = get_limits,
    .put = put_limits,
};
