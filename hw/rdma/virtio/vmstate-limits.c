/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: check that the destination has the limits
 * and features of the source.
 *
 * They come first in the stream, so that migration to a device that differs
 * fails before the guest is stopped.
 */
#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "qemu/error-report.h"
#include "vmstate.h"

typedef struct SavedLimits {
    VirtIORdma *parent;
    uint64_t features;              /* that the guest has taken */
    uint32_t max_qp;
    uint32_t max_vq_qp;             /* of them with virtqueues */
    uint32_t max_qp_wr;
    uint32_t max_qp_wr_direct;      /* 0: direct queues are not offered */
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;
    uint32_t max_cq;
    uint32_t max_vq_cq;             /* of them with virtqueues */
    uint32_t max_cqe;
    uint32_t max_cqe_deep;          /* 0: version 1 is not offered */
    uint32_t max_mr;
    uint32_t max_pd;
    uint32_t max_rd_atomic;
    uint32_t gid_table_len;
    uint8_t atomic_cap;
    uint64_t device_cap_flags;
    uint32_t max_srq;
    uint32_t max_vq_srq;            /* of them with virtqueues */
    uint32_t max_srq_wr;
    uint32_t max_srq_sge;
    uint32_t max_mw;
    uint32_t max_mcast_grp;
} SavedLimits;

static SavedLimits limits_of(VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->hca.limits;

    return (SavedLimits) {
        .parent = s,
        .features = VIRTIO_DEVICE(s)->guest_features,
        .max_qp = l->max_qp,
        .max_vq_qp = s->max_vq_qp,
        .max_qp_wr = l->max_qp_wr,
        .max_qp_wr_direct = virtio_rdma_offers(s, VIRTIO_RDMA_F_DIRECT)
                            ? l->max_qp_wr_direct : 0,
        .max_send_sge = l->max_send_sge,
        .max_recv_sge = l->max_recv_sge,
        .max_inline_data = l->max_inline_data,
        .max_cq = l->max_cq,
        .max_vq_cq = s->max_vq_cq,
        .max_cqe = l->max_cqe,
        .max_cqe_deep = virtio_rdma_offers(s, VIRTIO_RDMA_F_VERSION_1)
                        ? l->max_cqe_deep : 0,
        .max_mr = l->max_mr,
        .max_pd = l->max_pd,
        .max_rd_atomic = l->max_rd_atomic,
        .gid_table_len = l->gid_table_len,
        .atomic_cap = l->atomic_cap,
        .device_cap_flags = l->device_cap_flags,
        .max_srq = l->max_srq,
        .max_vq_srq = s->max_vq_srq,
        .max_srq_wr = l->max_srq_wr,
        .max_srq_sge = l->max_srq_sge,
        .max_mw = l->max_mw,
        .max_mcast_grp = l->max_mcast_grp,
    };
}

static int save_limits(void *opaque)
{
    SavedLimits *v = opaque;

    *v = limits_of(v->parent);
    return 0;
}

static bool check_limit(const char *prop, uint64_t theirs, uint64_t ours)
{
    if (theirs != ours) {
        error_report("virtio-rdma: the source has %s=%" PRIu64 ", but this "
                     "device has %" PRIu64, prop, theirs, ours);
        return false;
    }
    return true;
}

/* An offered feature changes what the guest sees, even if it is not used. */
static bool check_offer(const char *feature, bool theirs, bool ours)
{
    if (theirs != ours) {
        error_report("virtio-rdma: the source has %s=%s, but this device has "
                     "%s=%s", feature, theirs ? "on" : "off", feature,
                     ours ? "on" : "off");
        return false;
    }
    return true;
}

/*
 * The guest has read the limits, so they must not change. This is also so for
 * limits that the guest does not use, because the number of virtqueues, the BAR
 * of doorbells and the numbers of objects depend on them.
 */
static bool check_limits(const SavedLimits *v, const SavedLimits *l)
{
    return check_offer("version-1", v->max_cqe_deep, l->max_cqe_deep) &&
           check_offer("direct", v->max_qp_wr_direct, l->max_qp_wr_direct) &&
           check_limit("max-cq", v->max_cq, l->max_cq) &&
           check_limit("max-cq with virtqueues", v->max_vq_cq, l->max_vq_cq) &&
           check_limit("max-qp", v->max_qp, l->max_qp) &&
           check_limit("max-qp with virtqueues", v->max_vq_qp, l->max_vq_qp) &&
           check_limit("max-mr", v->max_mr, l->max_mr) &&
           check_limit("max-pd", v->max_pd, l->max_pd) &&
           check_limit("queue-size", v->max_qp_wr, l->max_qp_wr) &&
           check_limit("queue-size", v->max_cqe, l->max_cqe) &&
           check_limit("max-cqe", v->max_cqe_deep, l->max_cqe_deep) &&
           check_limit("max-qp-wr", v->max_qp_wr_direct,
                       l->max_qp_wr_direct) &&
           check_limit("max-sge", v->max_send_sge, l->max_send_sge) &&
           check_limit("max-sge", v->max_recv_sge, l->max_recv_sge) &&
           check_limit("max-inline", v->max_inline_data,
                       l->max_inline_data) &&
           check_limit("max-rd-atomic", v->max_rd_atomic,
                       l->max_rd_atomic) &&
           check_limit("gid-table-len", v->gid_table_len,
                       l->gid_table_len) &&
           check_limit("max-srq", v->max_srq, l->max_srq) &&
           check_limit("max-srq with virtqueues", v->max_vq_srq,
                       l->max_vq_srq) &&
           check_limit("max-srq-wr", v->max_srq_wr, l->max_srq_wr) &&
           check_limit("max-sge", v->max_srq_sge, l->max_srq_sge) &&
           check_limit("max-mw", v->max_mw, l->max_mw) &&
           check_limit("max-mcast-grp", v->max_mcast_grp, l->max_mcast_grp) &&
           check_limit("atomic capability", v->atomic_cap, l->atomic_cap) &&
           check_limit("capabilities", v->device_cap_flags,
                       l->device_cap_flags);
}

/* After migration the driver still uses the features that it accepted. */
static bool check_features(VirtIORdma *s, uint64_t features)
{
    for (unsigned bit = 0; bit <= VIRTIO_RDMA_F_MAX; bit++) {
        if ((features & (1ULL << bit)) && !virtio_rdma_offers(s, bit)) {
            error_report("virtio-rdma: the guest uses %s, which this device "
                         "does not offer", virtio_rdma_feature_name(bit));
            return false;
        }
    }
    return true;
}

static int limits_post_load(void *opaque, int version_id)
{
    const SavedLimits *v = opaque;
    SavedLimits ours = limits_of(v->parent);

    return check_limits(v, &ours) && check_features(v->parent, v->features)
           ? 0 : -EINVAL;
}

static const VMStateDescription vmstate_limits = {
    .name = "virtio-rdma/limits",
    .pre_save = save_limits,
    .post_load = limits_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(features, SavedLimits),
        VMSTATE_UINT32(max_qp, SavedLimits),
        VMSTATE_UINT32(max_vq_qp, SavedLimits),
        VMSTATE_UINT32(max_qp_wr, SavedLimits),
        VMSTATE_UINT32(max_qp_wr_direct, SavedLimits),
        VMSTATE_UINT32(max_send_sge, SavedLimits),
        VMSTATE_UINT32(max_recv_sge, SavedLimits),
        VMSTATE_UINT32(max_inline_data, SavedLimits),
        VMSTATE_UINT32(max_cq, SavedLimits),
        VMSTATE_UINT32(max_vq_cq, SavedLimits),
        VMSTATE_UINT32(max_cqe, SavedLimits),
        VMSTATE_UINT32(max_cqe_deep, SavedLimits),
        VMSTATE_UINT32(max_mr, SavedLimits),
        VMSTATE_UINT32(max_pd, SavedLimits),
        VMSTATE_UINT32(max_rd_atomic, SavedLimits),
        VMSTATE_UINT32(gid_table_len, SavedLimits),
        VMSTATE_UINT8(atomic_cap, SavedLimits),
        VMSTATE_UINT64(device_cap_flags, SavedLimits),
        VMSTATE_UINT32(max_srq, SavedLimits),
        VMSTATE_UINT32(max_vq_srq, SavedLimits),
        VMSTATE_UINT32(max_srq_wr, SavedLimits),
        VMSTATE_UINT32(max_srq_sge, SavedLimits),
        VMSTATE_UINT32(max_mw, SavedLimits),
        VMSTATE_UINT32(max_mcast_grp, SavedLimits),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_early = {
    .name = "virtio-rdma-early",
    .version_id = 1,
    .minimum_version_id = 1,
    .early_setup = true,
    .fields = (const VMStateField[]) {
        VMSTATE_WITH_TMP(VirtIORdma, SavedLimits, vmstate_limits),
        VMSTATE_END_OF_LIST()
    },
};

void virtio_rdma_limits_register(VirtIORdma *s)
{
    vmstate_register_any(VMSTATE_IF(s), &vmstate_early, s);
}

void virtio_rdma_limits_unregister(VirtIORdma *s)
{
    vmstate_unregister(VMSTATE_IF(s), &vmstate_early, s);
}

bool virtio_rdma_saved_suits_iothread(const VirtIORdmaSaved *v)
{
    uint32_t virtqueues = 0;

    for (uint32_t i = 0; i < v->n_cqs; i++) {
        virtqueues += !v->cqs[i].pages && !v->cqs[i].is_eq;
    }
    for (uint32_t i = 0; i < v->n_srqs; i++) {
        virtqueues += !v->srqs[i].direct.pages;
    }
    for (uint32_t i = 0; i < v->n_qps; i++) {
        virtqueues += !v->qps[i].direct.pages;
    }
    if (v->dev->hca.ctx && virtqueues) {
        error_report("virtio-rdma: the guest has %u QPs, CQs and SRQs with "
                     "virtqueues, which an iothread does not serve: leave "
                     "iothread out at the destination", virtqueues);
        return false;
    }
    return true;
}
