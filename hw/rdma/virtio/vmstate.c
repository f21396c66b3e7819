/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-rdma device: the layout of the stream, and the checks
 * that need all of it.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "vmstate.h"

/* The stream is refused: remove all that was loaded. */
static void forget_loaded(VirtIORdma *s)
{
    virtio_rdma_shadows_reset(s);
    rdma_hca_forget_loaded(&s->hca);
}

/* Shadows of pages of doorbells */

static uint32_t count_shadows(const VirtIORdma *s)
{
    uint32_t count = 0;

    for (uint32_t page = 0; page < s->doorbells; page++) {
        count += s->shadows[page].is_on;
    }
    return count;
}

static int put_shadows(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field, JSONWriter *vmdesc)
{
    const VirtIORdma *s = pv;

    qemu_put_be32(f, count_shadows(s));
    for (uint32_t page = 0; page < s->doorbells; page++) {
        if (s->shadows[page].is_on) {
            qemu_put_be32(f, page);
            qemu_put_be64(f, s->shadows[page].addr);
        }
    }
    return 0;
}

static bool get_shadow(QEMUFile *f, VirtIORdma *s)
{
    RdmaHcaRecord r = { "shadow of doorbells" };
    uint8_t raw[12];
    uint64_t addr;
    uint32_t page;

    if (qemu_get_buffer(f, raw, sizeof(raw)) != sizeof(raw)) {
        return false;
    }
    r.id = page = ldl_be_p(raw);
    addr = ldq_be_p(raw + 4);
    if (!rdma_hca_record_check(&r, page < s->doorbells &&
                               !s->shadows[page].is_on, "doorbell", page,
                               "a page without another shadow") ||
        !rdma_hca_record_check(&r, addr % RDMA_PAGE_SIZE == 0, "addr", addr,
                               "that of a page")) {
        return false;
    }
    virtio_rdma_shadow_load(s, page, addr);
    return true;
}

static int get_shadows(QEMUFile *f, void *pv, size_t size,
                       const VMStateField *field)
{
    VirtIORdma *s = pv;
    uint32_t count = qemu_get_be32(f);

    if (count > s->doorbells) {
        error_report("virtio-rdma: %u shadows of doorbells in the migration "
                     "stream, but the device has %u pages of doorbells", count,
                     s->doorbells);
        forget_loaded(s);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!get_shadow(f, s)) {
            forget_loaded(s);
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateInfo vmstate_info_shadows = {
    .name = "virtio-rdma shadows",
    .get = get_shadows,
    .put = put_shadows,
};

static bool has_shadows(void *opaque)
{
    return count_shadows(opaque);
}

static const VMStateDescription vmstate_shadows = {
    .name = "virtio-rdma-device/shadows",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = has_shadows,
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_PART("shadows", vmstate_info_shadows),
        VMSTATE_END_OF_LIST()
    },
};

static int pre_load(void *opaque)
{
    virtio_rdma_shadows_reset(opaque);
    return 0;
}

/* Only with this layout, virtqueues start again when their object is gone. */
static void hide_vqs_of_demo(VirtIORdma *s)
{
    uint32_t end = virtio_get_num_queues(VIRTIO_DEVICE(s));

    s->hidden = (RdmaVqHidden) {};
    for (uint32_t n = VIRTIO_RDMA_CQ_VQ(0); s->is_demo && n < end; n++) {
        if (!virtio_rdma_cq_of_vq(s, n) && !virtio_rdma_wq_of_vq(s, n)) {
            rdma_vq_hide(&s->hidden, VIRTIO_DEVICE(s), n);
        }
    }
}

static int post_load(void *opaque, int version_id)
{
    if (!rdma_vq_check_empty(VIRTIO_DEVICE(opaque)) ||
        !virtio_rdma_eqs_load(opaque)) {
        forget_loaded(opaque);
        return -EINVAL;
    }
    hide_vqs_of_demo(opaque);
    return 0;
}

const VMStateDescription vmstate_virtio_rdma_device = {
    .name = "virtio-rdma-device",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = pre_load,
    .post_load = post_load,
    .fields = (const VMStateField[]) {
        {
            .name = "stale_vqs",
            .info = &vmstate_info_bitmap,
            .size = VIRTIO_QUEUE_MAX,
            .flags = VMS_SINGLE,
            .offset = offsetof(VirtIORdma, stale_vqs),
        },
        VMSTATE_RDMA_HCA(hca, VirtIORdma),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_shadows,
        NULL
    },
};

static bool check_feature(VirtIORdma *s, const char *what, uint32_t count,
                          unsigned feature)
{
    if (count && !virtio_rdma_has(s, feature)) {
        error_report("virtio-rdma: %s in the migration stream, but the driver "
                     "did not accept %s", what,
                     virtio_rdma_feature_name(feature));
        return false;
    }
    return true;
}

/* Check that the driver accepted the features that its objects need. */
static bool check_features(VirtIORdma *s)
{
    uint32_t qps = 0, cqs = 0, srqs = 0;
    RdmaHcaSrq *srq;
    RdmaHcaCq *cq;
    RdmaHcaQp *qp;

    RDMA_HCA_FOREACH(&s->hca.qps, n, qp) {
        qps += qp->sq.ops->direct;
    }
    RDMA_HCA_FOREACH(&s->hca.cqs, n, cq) {
        cqs += cq->ops->direct || cq->is_eq;
    }
    RDMA_HCA_FOREACH(&s->hca.srqs, n, srq) {
        srqs += srq->wq.ops->direct;
    }
    return check_feature(s, "events", rdma_hca_events_count(&s->hca),
                         VIRTIO_RDMA_F_VERSION_1) &&
           check_feature(s, "shared receive queues", s->hca.srqs.count,
                         VIRTIO_RDMA_F_VERSION_1) &&
           check_feature(s, "memory windows", s->hca.n_mws,
                         VIRTIO_RDMA_F_VERSION_1) &&
           check_feature(s, "direct queue pairs", qps, VIRTIO_RDMA_F_DIRECT) &&
           check_feature(s, "direct completion queues or event queues", cqs,
                         VIRTIO_RDMA_F_DIRECT) &&
           check_feature(s, "direct shared receive queues", srqs,
                         VIRTIO_RDMA_F_DIRECT) &&
           check_feature(s, "shadows of doorbells", count_shadows(s),
                         VIRTIO_RDMA_F_DIRECT);
}

/* Check limits of CQs that depend on features. */
static bool check_cqs(VirtIORdma *s)
{
    VirtIORdmaCq *cq;

    RDMA_HCA_FOREACH(&s->hca.cqs, n, cq) {
        const RdmaHcaRecord r = { "CQ", n };

        if (!rdma_hca_record_max(&r, "cqe", cq->core.cqe,
                                 virtio_rdma_cq_ops(cq)->max_cqe(s)) ||
            !rdma_hca_record_max(&r, "n_backlog", cq->n_backlog,
                                 virtio_rdma_is_v1(s) ? cq->core.cqe : 0)) {
            return false;
        }
    }
    return true;
}

/*
 * QEMU loads the indices of a packed ring without checks, and uses them. An
 * index has 15 bits. Bit 15 here is the wrap counter: writing the value back
 * clears bit 15 of the index itself.
 */
static bool check_indices(VirtIODevice *vdev, int n, const RdmaHcaRecord *r)
{
    unsigned indices = virtio_queue_get_last_avail_idx(vdev, n);
    uint32_t max = virtio_queue_get_num(vdev, n) - 1;

    virtio_queue_set_last_avail_idx(vdev, n, indices);
    return rdma_hca_record_max(r, "last_avail_idx", indices & 0x7fff, max) &&
           rdma_hca_record_max(r, "used_idx", indices >> 16 & 0x7fff, max);
}

static bool check_rings(VirtIORdma *s)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    for (int n = 0; n < VIRTIO_QUEUE_MAX; n++) {
        const RdmaHcaRecord r = { "virtqueue", n };

        if (virtio_queue_get_num(vdev, n) &&
            virtio_vdev_has_feature(vdev, VIRTIO_F_RING_PACKED) &&
            !check_indices(vdev, n, &r)) {
            return false;
        }
        s->vq_seen[n] = virtio_queue_get_last_avail_idx(vdev, n);
    }
    return true;
}

int virtio_rdma_post_load(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    rdma_vq_show(&s->hidden, vdev);
    if (!check_features(s) || !check_cqs(s) || !rdma_vq_check_sizes(vdev) ||
        !check_rings(s)) {
        forget_loaded(s);
        return -EINVAL;
    }
    s->restore_order = true;
    /* DRIVER_OK may be clear for a while. */
    s->had_driver = vdev->status & VIRTIO_CONFIG_S_FEATURES_OK;
    return 0;
}
