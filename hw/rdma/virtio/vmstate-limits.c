/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: has the destination the limits and
 * features of the source?
 *
 * They lead the stream, so that a destination that differs is found before the
 * guest is stopped.
 */
#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "qemu/error-report.h"
#include "vmstate.h"

typedef struct SavedLimits {
    VirtIORdma *parent;
    uint64_t features;              /* that the guest has taken */
    uint32_t max_qp;
    uint32_t max_qp_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;
    uint32_t max_cq;
    uint32_t max_cqe;
    uint32_t max_mr;
    uint32_t max_pd;
    uint64_t max_mr_size;
    uint32_t max_rd_atomic;
    uint32_t gid_table_len;
    uint8_t atomic_cap;
    uint64_t device_cap_flags;
    uint32_t max_srq;
    uint32_t max_srq_wr;
    uint32_t max_srq_sge;
    uint32_t max_mw;
    uint32_t max_mcast_grp;         /* 0: not offered */
    uint32_t max_mcast_qp_attach;
    uint32_t max_cqe_deep;          /* 0: not offered */
} SavedLimits;

/* max-cqe has no meaning without F_CQ_DEEP. */
static uint32_t max_cqe_deep(const VirtIORdma *s)
{
    return virtio_rdma_offers(s, VIRTIO_RDMA_F_CQ_DEEP)
           ? s->hca.limits.max_cqe_deep : 0;
}

static int save_limits(void *opaque)
{
    SavedLimits *v = opaque;
    VirtIORdma *s = v->parent;
    const RdmaBackendLimits *l = &s->hca.limits;

    *v = (SavedLimits) {
        .parent = s,
        .features = VIRTIO_DEVICE(s)->guest_features,
        .max_qp = s->max_vq_qp,
        .max_qp_wr = l->max_qp_wr,
        .max_send_sge = l->max_send_sge,
        .max_recv_sge = l->max_recv_sge,
        .max_inline_data = l->max_inline_data,
        .max_cq = s->max_vq_cq,
        .max_cqe = l->max_cqe,
        .max_mr = l->max_mr,
        .max_pd = l->max_pd,
        .max_mr_size = l->max_mr_size,
        .max_rd_atomic = l->max_rd_atomic,
        .gid_table_len = l->gid_table_len,
        .atomic_cap = l->atomic_cap,
        .device_cap_flags = l->device_cap_flags,
        .max_srq = s->max_vq_srq,
        .max_srq_wr = l->max_srq_wr,
        .max_srq_sge = l->max_srq_sge,
        .max_mw = l->max_mw,
        .max_mcast_grp = l->max_mcast_grp,
        .max_mcast_qp_attach = l->max_mcast_qp_attach,
        .max_cqe_deep = max_cqe_deep(s),
    };
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

/* A limit that is 0 if its feature is off */
static bool check_offer(const char *feature, const char *prop,
                        uint64_t theirs, uint64_t ours)
{
    if (!theirs != !ours) {
        g_autofree char *off = g_strdup_printf("off or %s=0", prop);

        error_report("virtio-rdma: the source has %s=%s, but this device has "
                     "%s=%s", feature, theirs ? "on" : off, feature,
                     ours ? "on" : off);
        return false;
    }
    return check_limit(prop, theirs, ours);
}

/*
 * The guest has read the limits, so they must not change. Those of SRQs and
 * windows count even if the guest does not use them: the first decide about the
 * number of virtqueues, the others about the numbers of regions.
 */
static bool check_limits(VirtIORdma *s, const SavedLimits *v)
{
    const RdmaBackendLimits *l = &s->hca.limits;

    return check_limit("max-vq-cq", v->max_cq, s->max_vq_cq) &&
           check_limit("max-vq-qp", v->max_qp, s->max_vq_qp) &&
           check_limit("max-mr", v->max_mr, l->max_mr) &&
           check_limit("max-pd", v->max_pd, l->max_pd) &&
           check_limit("max-mr-size", v->max_mr_size, l->max_mr_size) &&
           check_limit("queue-size", v->max_qp_wr, l->max_qp_wr) &&
           check_limit("queue-size", v->max_cqe, l->max_cqe) &&
           (!v->max_cqe_deep || !max_cqe_deep(s) ||
            check_limit("max-cqe", v->max_cqe_deep, max_cqe_deep(s))) &&
           check_limit("max-sge", v->max_send_sge, l->max_send_sge) &&
           check_limit("max-sge", v->max_recv_sge, l->max_recv_sge) &&
           check_limit("max-inline", v->max_inline_data,
                       l->max_inline_data) &&
           check_limit("max-rd-atomic", v->max_rd_atomic,
                       l->max_rd_atomic) &&
           check_limit("gid-table-len", v->gid_table_len,
                       l->gid_table_len) &&
           check_offer("srq", "max-vq-srq", v->max_srq, s->max_vq_srq) &&
           check_limit("max-srq-wr", v->max_srq_wr, l->max_srq_wr) &&
           check_limit("max-sge", v->max_srq_sge, l->max_srq_sge) &&
           check_offer("mw", "max-mw", v->max_mw, l->max_mw) &&
           (!v->max_mcast_grp || !l->max_mcast_grp ||
            (check_limit("max-mcast-grp", v->max_mcast_grp,
                         l->max_mcast_grp) &&
             check_limit("max-mcast-qp-attach", v->max_mcast_qp_attach,
                         l->max_mcast_qp_attach))) &&
           check_limit("atomic capability", v->atomic_cap, l->atomic_cap) &&
           check_limit("capabilities", v->device_cap_flags,
                       l->device_cap_flags);
}

/* The driver goes on to use the features that it accepted. */
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

    return check_features(v->parent, v->features) &&
           check_limits(v->parent, v) ? 0 : -EINVAL;
}

static const VMStateDescription vmstate_limits = {
    .name = "virtio-rdma/limits",
    .pre_save = save_limits,
    .post_load = limits_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(features, SavedLimits),
        VMSTATE_UINT32(max_qp, SavedLimits),
        VMSTATE_UINT32(max_qp_wr, SavedLimits),
        VMSTATE_UINT32(max_send_sge, SavedLimits),
        VMSTATE_UINT32(max_recv_sge, SavedLimits),
        VMSTATE_UINT32(max_inline_data, SavedLimits),
        VMSTATE_UINT32(max_cq, SavedLimits),
        VMSTATE_UINT32(max_cqe, SavedLimits),
        VMSTATE_UINT32(max_mr, SavedLimits),
        VMSTATE_UINT32(max_pd, SavedLimits),
        VMSTATE_UINT64(max_mr_size, SavedLimits),
        VMSTATE_UINT32(max_rd_atomic, SavedLimits),
        VMSTATE_UINT32(gid_table_len, SavedLimits),
        VMSTATE_UINT8(atomic_cap, SavedLimits),
        VMSTATE_UINT64(device_cap_flags, SavedLimits),
        VMSTATE_UINT32(max_srq, SavedLimits),
        VMSTATE_UINT32(max_srq_wr, SavedLimits),
        VMSTATE_UINT32(max_srq_sge, SavedLimits),
        VMSTATE_UINT32(max_mw, SavedLimits),
        VMSTATE_UINT32(max_mcast_grp, SavedLimits),
        VMSTATE_UINT32(max_mcast_qp_attach, SavedLimits),
        VMSTATE_UINT32(max_cqe_deep, SavedLimits),
        VMSTATE_END_OF_LIST()
    },
};

static bool has_direct_qp(void *opaque)
{
    return virtio_rdma_offers(opaque, VIRTIO_RDMA_F_DIRECT_QP);
}

static bool has_direct_cq(void *opaque)
{
    return virtio_rdma_offers(opaque, VIRTIO_RDMA_F_DIRECT_CQ);
}

static bool has_direct_srq(void *opaque)
{
    return virtio_rdma_offers(opaque, VIRTIO_RDMA_F_DIRECT_SRQ);
}

static VirtIORdmaDirectLimits direct_limits(VirtIORdma *s)
{
    VirtIORdmaDirectLimits limits = {};

    if (has_direct_qp(s)) {
        limits.max_qp = s->hca.limits.max_qp;
        limits.max_qp_wr = s->hca.limits.max_qp_wr_direct;
    }
    if (has_direct_cq(s)) {
        limits.max_cq = s->hca.limits.max_cq;
        limits.max_cqe = s->hca.limits.max_cqe_deep;
    }
    if (has_direct_srq(s)) {
        limits.max_srq = s->hca.limits.max_srq;
    }
    return limits;
}

static int early_pre_save(void *opaque)
{
    VirtIORdma *s = opaque;

    s->source = direct_limits(s);
    return 0;
}

static const VMStateDescription vmstate_early_direct = {
    .name = "virtio-rdma-early/direct",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = has_direct_qp,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(source.max_qp, VirtIORdma),
        VMSTATE_UINT32(source.max_qp_wr, VirtIORdma),
        VMSTATE_END_OF_LIST()
    },
};

/* No subsection's name may begin with that of another one. */
static const VMStateDescription vmstate_early_direct_cq = {
    .name = "virtio-rdma-early/cqs",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = has_direct_cq,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(source.max_cq, VirtIORdma),
        VMSTATE_UINT32(source.max_cqe, VirtIORdma),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_early_direct_srq = {
    .name = "virtio-rdma-early/srqs",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = has_direct_srq,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(source.max_srq, VirtIORdma),
        VMSTATE_END_OF_LIST()
    },
};

static int early_pre_load(void *opaque)
{
    VirtIORdma *s = opaque;

    s->source = (VirtIORdmaDirectLimits) {};
    return 0;
}

/*
 * The guest has seen whether there is a BAR of doorbells, and the numbers of
 * objects depend on it: both ends have these features, or none.
 */
static int early_post_load(void *opaque, int version_id)
{
    VirtIORdma *s = opaque;
    VirtIORdmaDirectLimits ours = direct_limits(s);

    return check_offer("direct-qp", "max-qp", s->source.max_qp, ours.max_qp) &&
           check_limit("max-qp-wr", s->source.max_qp_wr, ours.max_qp_wr) &&
           check_offer("direct-cq", "max-cq", s->source.max_cq, ours.max_cq) &&
           check_limit("max-cqe", s->source.max_cqe, ours.max_cqe) &&
           check_offer("direct-srq", "max-srq", s->source.max_srq,
                       ours.max_srq)
           ? 0 : -EINVAL;
}

static const VMStateDescription vmstate_early = {
    .name = "virtio-rdma-early",
    .version_id = 1,
    .minimum_version_id = 1,
    .early_setup = true,
    .pre_save = early_pre_save,
    .pre_load = early_pre_load,
    .post_load = early_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_WITH_TMP(VirtIORdma, SavedLimits, vmstate_limits),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_early_direct,
        &vmstate_early_direct_cq,
        &vmstate_early_direct_srq,
        NULL
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
