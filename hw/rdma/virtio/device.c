/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: the device as QEMU and the transport see it.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "system/rdma-series.h"
#include "trace.h"
#include "device.h"

/* Called by the transport */

static uint64_t virtio_rdma_get_features(VirtIODevice *vdev,
                                         uint64_t features, Error **errp)
{
    return virtio_rdma_features(VIRTIO_RDMA(vdev), features);
}

static void virtio_rdma_get_config(VirtIODevice *vdev, uint8_t *config)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    memcpy(config, &s->config, sizeof(s->config));
    if (s->is_demo) {
        virtio_rdma_demo_put_config(config);
    }
}

/* Realize */

static void add_queues(VirtIORdma *s)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    uint32_t size = s->conf.queue_size;

    virtio_add_queue(vdev, size, virtio_rdma_handle_ctrl);
    for (uint32_t n = 0; n < s->max_vq_cq; n++) {
        virtio_add_queue(vdev, size, virtio_rdma_handle_cq);
    }
    for (uint32_t n = 0; n < s->max_vq_qp; n++) {
        virtio_add_queue(vdev, size, virtio_rdma_handle_wq);
        virtio_add_queue(vdev, size, virtio_rdma_handle_wq);
    }
    s->event_vq = virtio_rdma_offers(s, VIRTIO_RDMA_F_VERSION_1)
                  ? virtio_add_queue(vdev, size, virtio_rdma_handle_event)
                  : NULL;
    for (uint32_t n = 0; n < s->max_vq_srq; n++) {
        virtio_add_queue(vdev, size, virtio_rdma_handle_wq);
    }
}

static void virtio_rdma_realize(DeviceState *dev, Error **errp)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    VirtIORdma *s = VIRTIO_RDMA(dev);

    virtio_rdma_layout_init(s);
    virtio_rdma_conf_set_defaults(s);
    if (!virtio_rdma_conf_check(s, errp)) {
        return;
    }
    virtio_rdma_hca_init(s);
    if (!rdma_hca_backend_get(&s->hca, s->conf.netdev, s->conf.rdmadev,
                              &s->conf.mac, errp) ||
        !virtio_rdma_backend_attach(s, errp)) {
        rdma_hca_backend_put(&s->hca);
        return;
    }
    if (!virtio_rdma_features_restrict(s, errp)) {
        rdma_hca_detach(&s->hca);
        return;
    }

    s->hca.max_mr_pages = s->conf.max_mr_pages;
    virtio_init(vdev, VIRTIO_ID_RDMA, s->is_demo
                ? VIRTIO_RDMA_DEMO_CONFIG_SIZE : sizeof(s->config));
    add_queues(s);
    QTAILQ_INIT(&s->completed_cqs);
    QTAILQ_INIT(&s->sched_eqs);
    virtio_rdma_shadows_init(s);
    virtio_rdma_sq_polls_init(s);
    virtio_rdma_scratch_init(s);
    rdma_hca_start(&s->hca);
    virtio_rdma_config_update(s);
    vmstate_register_any(VMSTATE_IF(s), &vmstate_virtio_rdma_limits, s);
    trace_virtio_rdma_realize(s, s->hca.limits.max_cq, s->hca.limits.max_qp,
                              virtio_get_num_queues(vdev));
}

static const VMStateDescription vmstate_virtio_rdma = {
    .name = "virtio-rdma",
    .minimum_version_id = 1,
    .version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_VIRTIO_DEVICE,
        VMSTATE_END_OF_LIST()
    },
};

static void virtio_rdma_class_init(ObjectClass *klass, RdmaClassData data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    VirtioDeviceClass *vdc = VIRTIO_DEVICE_CLASS(klass);

    virtio_rdma_props_init(klass);
    dc->vmsd = &vmstate_virtio_rdma;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    vdc->realize = virtio_rdma_realize;
    vdc->unrealize = virtio_rdma_unrealize;
    vdc->get_features = virtio_rdma_get_features;
    vdc->validate_features = virtio_rdma_validate_features;
    vdc->get_config = virtio_rdma_get_config;
    vdc->set_status = virtio_rdma_set_status;
    vdc->reset = virtio_rdma_reset;
    vdc->vmsd = &vmstate_virtio_rdma_device;
    vdc->post_load = virtio_rdma_post_load;
    vdc->queue_reset = virtio_rdma_queue_reset;
    vdc->queue_enable = virtio_rdma_queue_enable;
    vdc->start_ioeventfd = virtio_rdma_ioeventfd_start;
    vdc->stop_ioeventfd = virtio_rdma_ioeventfd_stop;
}

static void virtio_rdma_finalize(Object *obj)
{
    rdma_hca_gids_free(&VIRTIO_RDMA(obj)->hca);
}

static const TypeInfo virtio_rdma_info = {
    .name = TYPE_VIRTIO_RDMA,
    .parent = TYPE_VIRTIO_DEVICE,
    .instance_size = sizeof(VirtIORdma),
    .instance_finalize = virtio_rdma_finalize,
    .class_init = virtio_rdma_class_init,
};

static void virtio_rdma_register_types(void)
{
    type_register_static(&virtio_rdma_info);
}

type_init(virtio_rdma_register_types)
