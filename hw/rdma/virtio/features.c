/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feature bits: what the device can offer with its backend.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "core.h"

static bool always(const VirtIORdma *s)
{
    return true;
}

static bool have_srqs(const VirtIORdma *s)
{
    return s->hca.bc->create_srq && s->hca.limits.max_srq &&
           s->hca.limits.max_srq_wr;
}

static bool have_mws(const VirtIORdma *s)
{
    return s->hca.bc->create_mw && s->hca.limits.max_mw;
}

static bool have_mcast(const VirtIORdma *s)
{
    return s->hca.bc->set_mcast && s->hca.limits.max_mcast_grp &&
           s->hca.limits.max_mcast_qp_attach;
}

static bool have_rereg(const VirtIORdma *s)
{
    return s->hca.bc->modify_mr;
}

static bool have_reg_pages(const VirtIORdma *s)
{
    return rdma_hca_has_mem_mgt(&s->hca) && s->hca.limits.max_reg_pages;
}

static bool have_host_numbers(const VirtIORdma *s)
{
    return s->hca.limits.host_numbers;
}

static bool have_flush(const VirtIORdma *s)
{
    return s->hca.bc->set_extensions &&
           (s->hca.limits.extensions & RDMA_EXT_FLUSH);
}

static bool have_atomic_write(const VirtIORdma *s)
{
    return s->hca.bc->set_extensions &&
           (s->hca.limits.extensions & RDMA_EXT_ATOMIC_WRITE);
}

static bool have_doorbells(const VirtIORdma *s)
{
    return s->doorbells;
}

static bool have_direct_srqs(const VirtIORdma *s)
{
    return have_srqs(s) && have_doorbells(s) &&
           virtio_rdma_offers(s, VIRTIO_RDMA_F_SRQ);
}

static bool have_shadows(const VirtIORdma *s)
{
    return have_doorbells(s) && virtio_rdma_offers(s, VIRTIO_RDMA_F_DIRECT_QP);
}

static bool have_counters(const VirtIORdma *s)
{
    return s->hca.bc->query_counters;
}

static bool have_qp_counters(const VirtIORdma *s)
{
    return s->hca.bc->set_qp_counters && have_counters(s) &&
           virtio_rdma_offers(s, VIRTIO_RDMA_F_COUNTERS);
}

/*
 * Whether a feature is possible depends on the methods of the backend and on
 * the limits that it set. A feature that is not listed is never offered.
 */
static bool (*const possible[VIRTIO_RDMA_F_MAX + 1])(const VirtIORdma *s) = {
    [VIRTIO_RDMA_F_EXT_STATUS] = always,
    [VIRTIO_RDMA_F_MAC_MTU] = always,
    [VIRTIO_RDMA_F_CQE_STATUS_LAST] = always,
    [VIRTIO_RDMA_F_EVENTS] = always,
    [VIRTIO_RDMA_F_SRQ] = have_srqs,
    [VIRTIO_RDMA_F_MW] = have_mws,
    [VIRTIO_RDMA_F_CQ_DEEP] = always,
    [VIRTIO_RDMA_F_CQ_RING_ARM] = always,
    [VIRTIO_RDMA_F_MCAST] = have_mcast,
    [VIRTIO_RDMA_F_CQE_EX] = always,
    [VIRTIO_RDMA_F_GID_VLAN] = always,
    [VIRTIO_RDMA_F_COUNTERS] = have_counters,
    [VIRTIO_RDMA_F_MR_TABLES] = always,
    [VIRTIO_RDMA_F_REG_PAGES] = have_reg_pages,
    [VIRTIO_RDMA_F_REREG_MR] = have_rereg,
    [VIRTIO_RDMA_F_FLUSH] = have_flush,
    [VIRTIO_RDMA_F_ATOMIC_WRITE] = have_atomic_write,
    [VIRTIO_RDMA_F_HOST_NUMBERS] = have_host_numbers,
    [VIRTIO_RDMA_F_DIRECT_QP] = have_doorbells,
    [VIRTIO_RDMA_F_DIRECT_CQ] = always,
    [VIRTIO_RDMA_F_DIRECT_SRQ] = have_direct_srqs,
    [VIRTIO_RDMA_F_SHADOW_DOORBELL] = have_shadows,
    [VIRTIO_RDMA_F_QP_COUNTERS] = have_qp_counters,
};

void virtio_rdma_features_restrict(VirtIORdma *s)
{
    RdmaBackendLimits *l = &s->hca.limits;

    /* The backend's decision, not the user's */
    s->rdma_features |= 1ULL << VIRTIO_RDMA_F_HOST_NUMBERS;
    for (unsigned bit = 0; bit <= VIRTIO_RDMA_F_MAX; bit++) {
        if (!possible[bit] || !possible[bit](s)) {
            s->rdma_features &= ~(1ULL << bit);
        }
    }
    if (!virtio_rdma_offers(s, VIRTIO_RDMA_F_SRQ)) {
        l->max_srq = l->max_srq_wr = l->max_srq_sge = 0;
        s->max_vq_srq = 0;
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_MW)) {
        l->device_cap_flags |= VIRTIO_RDMA_CAP_MEM_WINDOW |
                               VIRTIO_RDMA_CAP_MEM_WINDOW_TYPE_2B;
    } else {
        l->max_mw = 0;
    }
    if (!virtio_rdma_offers(s, VIRTIO_RDMA_F_MCAST)) {
        l->max_mcast_grp = l->max_mcast_qp_attach = 0;
    }
}

int virtio_rdma_validate_features(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_HOST_NUMBERS) &&
        !virtio_rdma_has(s, VIRTIO_RDMA_F_HOST_NUMBERS)) {
        warn_report_once("virtio-rdma: the driver in the guest is refused: "
                         "it does not know F_HOST_NUMBERS, which the backend "
                         "(%s) needs; install a newer driver, or use the "
                         "backend %s",
                         object_get_typename(OBJECT(s->hca.backend)),
                         TYPE_RDMA_BACKEND_DEFAULT);
        return -ENOTSUP;
    }
    if (s->hca.ctx && !(virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT_QP) &&
                        virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT_CQ))) {
        warn_report_once("virtio-rdma: the driver in the guest is refused: it "
                         "does not know direct queues, and others are not "
                         "served in an iothread; install a newer driver, or "
                         "leave iothread out");
        return -ENOTSUP;
    }
    return 0;
}

void virtio_rdma_extensions_start(VirtIORdma *s)
{
    uint32_t extensions = 0;

    if (virtio_rdma_has(s, VIRTIO_RDMA_F_FLUSH)) {
        extensions |= RDMA_EXT_FLUSH;
    }
    if (virtio_rdma_has(s, VIRTIO_RDMA_F_ATOMIC_WRITE)) {
        extensions |= RDMA_EXT_ATOMIC_WRITE;
    }
    rdma_hca_use_extensions(&s->hca, extensions);
}
