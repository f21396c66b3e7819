/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feature bits: which the device can offer with its transport and its backend,
 * and which the driver has to accept
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "base.h"

const char *virtio_rdma_feature_name(unsigned bit)
{
    static const char *const names[VIRTIO_RDMA_F_MAX + 1] = {
        [VIRTIO_RDMA_F_VERSION_1] = "version-1",
        [VIRTIO_RDMA_F_DIRECT] = "direct",
        [VIRTIO_RDMA_F_HOST_NUMBERS] = "numbers of a host adapter",
        [VIRTIO_RDMA_F_FLUSH] = "FLUSH",
        [VIRTIO_RDMA_F_ATOMIC_WRITE] = "ATOMIC WRITE",
    };

    return bit <= VIRTIO_RDMA_F_MAX && names[bit] ? names[bit] : "a feature";
}

/* Features without a property: the device offers them if the backend can. */
static uint64_t backend_features(const VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->hca.limits;
    uint64_t features = 0;

    if (l->host_numbers) {
        features |= 1ULL << VIRTIO_RDMA_F_HOST_NUMBERS;
    }
    if (l->extensions & RDMA_EXT_FLUSH) {
        features |= 1ULL << VIRTIO_RDMA_F_FLUSH;
    }
    if (l->extensions & RDMA_EXT_ATOMIC_WRITE) {
        features |= 1ULL << VIRTIO_RDMA_F_ATOMIC_WRITE;
    }
    return features;
}

/* Flags and limits that follow from others */
static void complete_limits(VirtIORdma *s)
{
    RdmaBackendLimits *l = &s->hca.limits;

    if (l->max_mw) {
        l->device_cap_flags |= VIRTIO_RDMA_CAP_MEM_WINDOW |
                               VIRTIO_RDMA_CAP_MEM_WINDOW_TYPE_2B;
    }
    if (!rdma_hca_has_mem_mgt(&s->hca)) {
        l->max_reg_pages = 0;
    }
}

void virtio_rdma_layout_init(VirtIORdma *s)
{
    s->is_demo = virtio_rdma_wants_demo(s);
    s->ready_status = s->is_demo ? VIRTIO_CONFIG_S_FEATURES_OK
                                 : VIRTIO_CONFIG_S_DRIVER_OK;
    if (s->is_demo) {
        s->rdma_features = 0;
    }
}

uint64_t virtio_rdma_features(const VirtIORdma *s, uint64_t features)
{
    /* Others would change the rings, which processes read with this layout. */
    const uint64_t of_demo = 1ULL << VIRTIO_F_VERSION_1 |
                             1ULL << VIRTIO_F_IOMMU_PLATFORM;

    return s->is_demo ? features & of_demo : features | s->rdma_features;
}

bool virtio_rdma_features_restrict(VirtIORdma *s, Error **errp)
{
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_VERSION_1)) {
        s->rdma_features |= backend_features(s);
    } else if (s->hca.limits.host_numbers) {
        error_setg(errp, "%s does not go with the backend %s, whose keys and "
                   "QPNs a driver without version 1 cannot use: leave %s, or "
                   "use the backend %s",
                   s->is_demo ? "layout=demo" : "version-1=off",
                   rdma_hca_backend_type(&s->hca),
                   s->is_demo ? "layout out" : "version-1 on",
                   TYPE_RDMA_BACKEND_DEFAULT);
        return false;
    }
    if (!virtio_rdma_may_be_direct(s)) {
        s->rdma_features &= ~(1ULL << VIRTIO_RDMA_F_DIRECT);
    }
    complete_limits(s);
    return true;
}

int virtio_rdma_validate_features(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    for (unsigned bit = 0; bit <= VIRTIO_RDMA_F_MAX; bit++) {
        if (virtio_vdev_has_feature(vdev, bit) && !virtio_rdma_has(s, bit)) {
            warn_report_once("virtio-rdma: the driver in the guest is refused: "
                             "it accepted %s (feature bit %u) without "
                             "version-1 (feature bit %u), as drivers of "
                             "version 0.9 do; install a newer driver",
                             virtio_rdma_feature_name(bit), bit,
                             VIRTIO_RDMA_F_VERSION_1);
            return -ENOTSUP;
        }
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_HOST_NUMBERS) &&
        !virtio_rdma_has(s, VIRTIO_RDMA_F_HOST_NUMBERS)) {
        warn_report_once("virtio-rdma: the driver in the guest is refused: "
                         "it does not know F_HOST_NUMBERS, which the backend "
                         "(%s) needs; install a newer driver, or use the "
                         "backend %s",
                         rdma_hca_backend_type(&s->hca),
                         TYPE_RDMA_BACKEND_DEFAULT);
        return -ENOTSUP;
    }
    if (s->hca.ctx && !virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT)) {
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
