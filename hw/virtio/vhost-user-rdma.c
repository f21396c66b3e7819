/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user-rdma: a virtio-rdma device that another process serves, such as a
 * QEMU with vhost-user-server.
 *
 * QEMU's base class starts and stops the rings. After the end of the server, it
 * aborts when the guest uses the device, and cannot connect again. So this file
 * has its own handlers of the connection.
 */
#include "qemu/osdep.h"
#include "hw/core/qdev-properties.h"
#include "hw/virtio/vhost-user-rdma.h"
#include "hw/virtio/virtio-bus.h"
#include "hw/virtio/virtio-rdma-series.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "standard-headers/linux/vhost_types.h"
#include "standard-headers/linux/virtio_rdma.h"
#include "system/rdma-series.h"
#include "system/rdma-vmstate.h"

/* Limits of the protocol: ring indices of eight bits, bytes of a message */
#define MAX_RINGS 256
#define CONFIG_SIZE 256

typedef struct VHostUserRdmaClass {
    VHostUserBaseClass parent_class;

    VirtIOSetStatusReturn (*parent_set_status)(VirtIODevice *vdev,
                                               uint8_t status);
    uint64_t (*parent_get_features)(VirtIODevice *vdev, uint64_t features,
                                    Error **errp);
    void (*parent_get_config)(VirtIODevice *vdev, uint8_t *config);
    void (*parent_unrealize)(DeviceState *dev);
} VHostUserRdmaClass;

DECLARE_CLASS_CHECKERS(VHostUserRdmaClass, VHOST_USER_RDMA,
                       TYPE_VHOST_USER_RDMA)

static void on_event(void *opaque, QEMUChrEvent event);

static int on_config_change(struct vhost_dev *dev)
{
    /* @dev has no virtio device unless vhost runs. */
    virtio_notify_config(VIRTIO_DEVICE(container_of(dev, VHostUserBase,
                                                    vhost_dev)));
    return 0;
}

static const VhostDevConfigOps config_ops = {
    .vhost_dev_config_notifier = on_config_change,
};

static void set_handlers(VHostUserBase *vub)
{
    qemu_chr_fe_set_handlers(&vub->chardev, NULL, NULL, on_event, NULL, vub,
                             NULL, true);
}

static void clear_handlers(VHostUserBase *vub)
{
    qemu_chr_fe_set_handlers(&vub->chardev, NULL, NULL, NULL, NULL, NULL, NULL,
                             false);
}

static void close_bh(void *opaque)
{
    VHostUserRdma *s = opaque;
    VHostUserBase *vub = &s->parent_obj;
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    /* vhost_dev_cleanup() clears the pointer without freeing the array. */
    struct vhost_virtqueue *vqs = vub->vhost_dev.vqs;

    if (s->loading) {
        return;
    }
    s->closed = false;
    if (vub->connected) {
        VHOST_USER_RDMA_GET_CLASS(vdev)->parent_set_status(vdev, 0);
        vub->connected = false;
        vhost_dev_cleanup(&vub->vhost_dev);
        g_free(vqs);
        if (vdev->status & VIRTIO_CONFIG_S_DRIVER_OK) {
            virtio_error(vdev, "vhost-user-rdma: the server has disconnected: "
                         "start it again, then reset the device");
        }
    }
    set_handlers(vub);
}

/* The caller may be a function that sends a message to the server. */
static void on_close(VHostUserRdma *s)
{
    clear_handlers(&s->parent_obj);
    s->closed = true;
    qemu_bh_schedule(s->close_bh);
}

/* The base class sets up vhost_dev only when it is realized. */
static void on_open(VHostUserBase *vub)
{
    Error *err = NULL;
    struct vhost_virtqueue *vqs;

    if (vub->connected) {
        return;
    }
    vqs = g_new0(struct vhost_virtqueue, vub->num_vqs);
    vub->vhost_dev.nvqs = vub->num_vqs;
    vub->vhost_dev.vqs = vqs;
    if (vhost_dev_init(&vub->vhost_dev, &vub->vhost_user,
                       VHOST_BACKEND_TYPE_USER, 0, &err) < 0) {
        error_report_err(err);
        g_free(vqs);
        qemu_chr_fe_disconnect(&vub->chardev);
        return;
    }
    vub->connected = true;
    vhost_dev_set_config_notifier(&vub->vhost_dev, &config_ops);
}

static void on_event(void *opaque, QEMUChrEvent event)
{
    VHostUserBase *vub = opaque;

    if (event == CHR_EVENT_OPENED) {
        on_open(vub);
    } else if (event == CHR_EVENT_CLOSED) {
        on_close(VHOST_USER_RDMA(vub));
    }
}

/* QEMU passes a reset on to the server only if this function exists. */
static struct vhost_dev *get_vhost(VirtIODevice *vdev)
{
    return &VHOST_USER_BASE(vdev)->vhost_dev;
}

static void no_server_bh(void *opaque)
{
    VirtIODevice *vdev = opaque;

    /* A server that has connected meanwhile has not started the device. */
    if (!vhost_dev_is_started(get_vhost(vdev)) && !vdev->broken &&
        (vdev->status & VIRTIO_CONFIG_S_DRIVER_OK)) {
        virtio_error(vdev, "vhost-user-rdma: no server is connected: start "
                     "it, then reset the device");
    }
}

static VirtIOSetStatusReturn set_status(VirtIODevice *vdev, uint8_t status)
{
    if (!VHOST_USER_BASE(vdev)->connected) {
        if (status & VIRTIO_CONFIG_S_DRIVER_OK) {
            /* virtio_set_status() sets the status only after this function. */
            qemu_bh_schedule(VHOST_USER_RDMA(vdev)->no_server_bh);
        }
        return (VirtIOSetStatusReturn)0;
    }
    return VHOST_USER_RDMA_GET_CLASS(vdev)->parent_set_status(vdev, status);
}

static uint64_t get_features(VirtIODevice *vdev, uint64_t features,
                             Error **errp)
{
    /* QEMU uses this feature itself, for migration. */
    return VHOST_USER_RDMA_GET_CLASS(vdev)->parent_get_features(
        vdev, features, errp) & ~(1ULL << VHOST_F_LOG_ALL);
}

static void get_config(VirtIODevice *vdev, uint8_t *config)
{
    if (VHOST_USER_BASE(vdev)->connected) {
        VHOST_USER_RDMA_GET_CLASS(vdev)->parent_get_config(vdev, config);
    }
}

static void set_config(VirtIODevice *vdev, const uint8_t *config)
{
    /* Nothing in the configuration can be written. */
}

/* The server's ring @n, or NULL. The guest may choose any number. */
static struct vhost_virtqueue *get_ring(struct vhost_dev *hdev, uint32_t n)
{
    return vhost_dev_is_started(hdev) && n < hdev->nvqs ? &hdev->vqs[n] : NULL;
}

/* With ring-reset=on, the server takes the stop of one ring for its reset. */
static void queue_reset(VirtIODevice *vdev, uint32_t n)
{
    struct vhost_dev *hdev = get_vhost(vdev);
    struct vhost_virtqueue *vq = get_ring(hdev, n);

    /* QEMU sets the address when it starts a ring, and never clears it. */
    if (vq && vq->desc_phys) {
        vhost_virtqueue_stop(hdev, vdev, vq, n);
        vq->desc_phys = 0;
    }
}

static void queue_enable(VirtIODevice *vdev, uint32_t n)
{
    struct vhost_dev *hdev = get_vhost(vdev);
    struct vhost_virtqueue *vq = get_ring(hdev, n);

    if (vq && vq->desc_phys) {
        /* The ring runs. Take back the size and addresses of this write. */
        virtio_queue_set_num(vdev, n, vq->num);
        virtio_queue_set_rings(vdev, n, vq->desc_phys, vq->avail_phys,
                               vq->used_phys);
    } else if (vq && vhost_virtqueue_start(hdev, vdev, vq, n) < 0) {
        vq->desc_phys = 0;
        /* vhost_dev_stop() stops all rings that have an address. */
        virtio_queue_set_rings(vdev, n, 0, 0, 0);
        error_report("vhost-user-rdma: cannot start virtqueue %u", n);
    }
}

static void realize(DeviceState *dev, Error **errp)
{
    VHostUserBase *vub = VHOST_USER_BASE(dev);
    VHostUserRdma *s = VHOST_USER_RDMA(dev);
    Error *err = NULL;

    if (vub->num_vqs < 1 || vub->num_vqs > MAX_RINGS) {
        error_setg(errp, "num_vqs=%u is out of range: it must be between 1 and "
                   "%d", vub->num_vqs, MAX_RINGS);
        return;
    }
    if (vub->vq_size < 2 || vub->vq_size > VIRTQUEUE_MAX_SIZE ||
        !is_power_of_2(vub->vq_size)) {
        error_setg(errp, "vq_size=%u: expected a power of 2, from 2 to %d",
                   vub->vq_size, VIRTQUEUE_MAX_SIZE);
        return;
    }
    /* With reconnect-ms=, the chardev may not be connected yet. */
    if (vub->chardev.chr &&
        qemu_chr_fe_wait_connected(&vub->chardev, errp) < 0) {
        return;
    }
    vub->virtio_id = VIRTIO_ID_RDMA;
    vub->config_size = CONFIG_SIZE;
    VHOST_USER_BASE_GET_CLASS(dev)->parent_realize(dev, &err);
    if (err) {
        error_propagate(errp, err);
        return;
    }
    s->close_bh = qemu_bh_new_guarded(close_bh, dev,
                                      &dev->mem_reentrancy_guard);
    s->no_server_bh = qemu_bh_new_guarded(no_server_bh, dev,
                                          &dev->mem_reentrancy_guard);
    set_handlers(vub);
}

static void unrealize(DeviceState *dev)
{
    VHostUserRdma *s = VHOST_USER_RDMA(dev);

    /* The server may disconnect when the base class stops the device. */
    clear_handlers(VHOST_USER_BASE(dev));
    qemu_bh_delete(s->close_bh);
    qemu_bh_delete(s->no_server_bh);
    VHOST_USER_RDMA_GET_CLASS(dev)->parent_unrealize(dev);
}

static const Property properties[] = {
    DEFINE_PROP_CHR("chardev", VHostUserBase, chardev),
    DEFINE_PROP_UINT32("num_vqs", VHostUserBase, num_vqs, MAX_RINGS),
    DEFINE_PROP_UINT32("vq_size", VHostUserBase, vq_size, VIRTQUEUE_MAX_SIZE),
};

static bool can_migrate(VHostUserBase *vub)
{
    if (!vub->connected) {
        error_report("vhost-user-rdma: cannot migrate: the server, which has "
                     "the state of the adapter, is not connected: start it");
        return false;
    }
    if (!vhost_supports_device_state(&vub->vhost_dev)) {
        error_report("vhost-user-rdma: the server does not migrate the state "
                     "of the adapter (VHOST_USER_PROTOCOL_F_DEVICE_STATE)");
        return false;
    }
    return true;
}

static int put_server(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field, JSONWriter *vmdesc)
{
    VHostUserBase *vub = pv;
    Error *err = NULL;
    int ret;

    if (!can_migrate(vub)) {
        return -ENOTSUP;
    }
    ret = vhost_save_backend_state(&vub->vhost_dev, f, &err);
    if (ret < 0) {
        error_reportf_err(err, "vhost-user-rdma: cannot save the state of the "
                          "server: ");
    }
    return ret;
}

static int get_server(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field)
{
    VHostUserRdma *s = pv;
    struct vhost_dev *hdev = &s->parent_obj.vhost_dev;
    Error *err = NULL;
    int ret;

    if (!can_migrate(&s->parent_obj)) {
        return -ENOTSUP;
    }
    /* The main loop runs while the stream has no data. */
    s->loading = true;
    /* The server reads the rings. QEMU shares memory only at the start. */
    ret = hdev->vhost_ops->vhost_set_mem_table(hdev, hdev->mem);
    if (ret < 0) {
        error_setg_errno(&err, -ret, "cannot share the memory of the guest");
    } else {
        ret = vhost_load_backend_state(hdev, f, &err);
    }
    s->loading = false;
    if (s->closed) {
        qemu_bh_schedule(s->close_bh);
    }
    if (ret < 0) {
        error_reportf_err(err, "vhost-user-rdma: cannot load the state of the "
                          "server, whose log has the reason: ");
    }
    return ret;
}

static const VMStateInfo vmstate_info_server = {
    .name = "vhost-user-rdma server",
    .get = get_server,
    .put = put_server,
};

static const VMStateDescription vmstate = {
    .name = TYPE_VHOST_USER_RDMA,
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_VIRTIO_DEVICE,
        VMSTATE_RDMA_PART("server", vmstate_info_server),
        VMSTATE_END_OF_LIST()
    },
};

static void class_init(ObjectClass *klass, RdmaClassData data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    VirtioDeviceClass *vdc = VIRTIO_DEVICE_CLASS(klass);
    VHostUserBaseClass *vubc = VHOST_USER_BASE_CLASS(klass);
    VHostUserRdmaClass *c = VHOST_USER_RDMA_CLASS(klass);

    dc->vmsd = &vmstate;
    device_class_set_props(dc, properties);
    device_class_set_parent_realize(dc, realize, &vubc->parent_realize);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    c->parent_set_status = vdc->set_status;
    c->parent_get_features = vdc->get_features;
    c->parent_get_config = vdc->get_config;
    c->parent_unrealize = vdc->unrealize;
    vdc->unrealize = unrealize;
    vdc->set_status = set_status;
    vdc->get_features = get_features;
    vdc->get_config = get_config;
    vdc->set_config = set_config;
    vdc->get_vhost = get_vhost;
    vdc->queue_reset = queue_reset;
    vdc->queue_enable = queue_enable;
}

static const TypeInfo vhost_user_rdma_info = {
    .name = TYPE_VHOST_USER_RDMA,
    .parent = TYPE_VHOST_USER_BASE,
    .instance_size = sizeof(VHostUserRdma),
    .class_size = sizeof(VHostUserRdmaClass),
    .class_init = class_init,
};

static void vhost_user_rdma_register(void)
{
    type_register_static(&vhost_user_rdma_info);
}

type_init(vhost_user_rdma_register)
