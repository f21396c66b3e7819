/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: check that the destination has the limits
 * and features of the source, on which the numbers of virtqueues depend, too.
 *
 * They come first in the stream, so that migration to a device that differs
 * fails before the guest is stopped.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "qemu/error-report.h"
#include "vmstate.h"

/*
 * Features that a destination must offer just as the source does, because the
 * guest sees them in configuration space even if its driver does not use them
 */
static const unsigned seen_features[] = {
    VIRTIO_RDMA_F_VERSION_1, VIRTIO_RDMA_F_DIRECT,
};

/*
 * A bit beside the features in the stream: the source has the layout of the
 * demo. Streams of devices without the property do not have it.
 */
#define STREAM_DEMO (1ULL << 63)

static int put_features(QEMUFile *f, void *pv, size_t size,
                        const VMStateField *field, JSONWriter *vmdesc)
{
    VirtIORdma *s = pv;

    qemu_put_be64(f, VIRTIO_DEVICE(s)->guest_features);
    qemu_put_be64(f, s->rdma_features | (s->is_demo ? STREAM_DEMO : 0));
    return 0;
}

static int get_features(QEMUFile *f, void *pv, size_t size,
                        const VMStateField *field)
{
    VirtIORdma *s = pv;
    uint64_t accepted = qemu_get_be64(f);
    uint64_t offered = qemu_get_be64(f);
    bool is_demo = offered & STREAM_DEMO;
    uint64_t differ = offered ^ s->rdma_features;

    if (is_demo != s->is_demo) {
        error_report("virtio-rdma: the source has layout=%s, but this device "
                     "has layout=%s", is_demo ? VIRTIO_RDMA_LAYOUT_DEMO
                                              : VIRTIO_RDMA_LAYOUT_SPEC,
                     s->is_demo ? VIRTIO_RDMA_LAYOUT_DEMO
                                : VIRTIO_RDMA_LAYOUT_SPEC);
        return -EINVAL;
    }
    for (int i = 0; i < ARRAY_SIZE(seen_features); i++) {
        const char *name = virtio_rdma_feature_name(seen_features[i]);
        bool offers = virtio_rdma_offers(s, seen_features[i]);

        if (differ & (1ULL << seen_features[i])) {
            error_report("virtio-rdma: the source has %s=%s, but this device "
                         "has %s=%s", name, offers ? "off" : "on", name,
                         offers ? "on" : "off");
            return -EINVAL;
        }
    }
    /* After migration the driver still uses the features that it accepted. */
    for (unsigned bit = 0; bit <= VIRTIO_RDMA_F_MAX; bit++) {
        if ((accepted & (1ULL << bit)) && !virtio_rdma_offers(s, bit)) {
            error_report("virtio-rdma: the guest uses %s (feature bit %u), "
                         "which this device does not offer",
                         virtio_rdma_feature_name(bit), bit);
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateInfo vmstate_info_features = {
    .name = "virtio-rdma features",
    .get = get_features,
    .put = put_features,
};

const VMStateDescription vmstate_virtio_rdma_limits = {
    .name = "virtio-rdma-early",
    .version_id = 1,
    .minimum_version_id = 1,
    .early_setup = true,
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_PART("features", vmstate_info_features),
        VMSTATE_RDMA_HCA_LIMITS(hca, VirtIORdma),
        VMSTATE_END_OF_LIST()
    },
};
