/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The qdev of vhost-user-server, and the virtio bus of its device. A subclass
 * contains the device.
 */
#include "qemu/osdep.h"
#include <sys/epoll.h>
#include "hw/core/qdev-properties.h"
#include "migration/qemu-file.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "system/rdma-series.h"
#include "server.h"

#define TYPE_VHOST_USER_SERVER_BUS "vhost-user-server-bus"

/* Offset of a be32, after the status, ISR, queue_sel and 32 features */
#define STATE_CONFIG_LEN 8

/* Kicks that one iteration of the main loop handles */
#define TURN_KICKS 16

static void on_kicks(void *opaque)
{
    VhostUserServer *s = opaque;
    struct epoll_event events[TURN_KICKS];
    int n = epoll_wait(s->kicks, events, TURN_KICKS, 0);

    /*
     * Execute messages first. The command that a kick announces may be about a
     * ring that the front end set up by messages without a reply.
     */
    vus_socket_run(s);
    /*
     * If these messages stop the device, no kick is lost: vus_ring_watch()
     * makes the epoll report the eventfd again, since its counter is not 0.
     */
    for (int i = 0; i < n && s->running; i++) {
        virtio_queue_notify(vus_vdev(s), events[i].data.u32);
    }
}

static void notify(DeviceState *dev, uint16_t vector)
{
    VhostUserServer *s = VHOST_USER_SERVER(dev);

    if (vector < s->num_rings) {
        vus_ring_call(s, vector);
    } else if (vector == VUS_CONFIG_VECTOR) {
        vus_socket_notify_config(s);
        if (vus_vdev(s)->broken) {
            vus_rings_fail(s);
        }
    }
}

static AddressSpace *get_dma_as(DeviceState *dev)
{
    return &VHOST_USER_SERVER(dev)->as;
}

static void device_plugged(DeviceState *dev, Error **errp)
{
    VhostUserServer *s = VHOST_USER_SERVER(dev);
    VirtIODevice *vdev = vus_vdev(s);
    int n = virtio_get_num_queues(vdev);

    if (n > VUS_MAX_RINGS) {
        error_setg(errp, "%s has %d virtqueues, but vhost-user supports at "
                   "most %d: lower the properties that add virtqueues",
                   object_get_typename(OBJECT(vdev)), n, VUS_MAX_RINGS);
        return;
    }
    s->num_rings = n;
    virtio_add_feature(&vdev->host_features, VIRTIO_F_VERSION_1);
    vus_socket_listen(s, errp);
}

static void device_unplugged(DeviceState *dev)
{
    vus_socket_close(VHOST_USER_SERVER(dev));
}

void vhost_user_server_plug(VhostUserServer *s, VirtIODevice *vdev,
                            Error **errp)
{
    /* This makes the device use get_dma_as(): the front end's guest memory. */
    virtio_add_feature(&vdev->host_features, VIRTIO_F_IOMMU_PLATFORM);
    qdev_realize(DEVICE(vdev), BUS(&s->bus), errp);
}

static void clear(VhostUserServer *s)
{
    qemu_set_fd_handler(s->kicks, NULL, NULL, NULL);
    close(s->kicks);
    address_space_destroy(&s->as);
}

static void realize(DeviceState *dev, Error **errp)
{
    ERRP_GUARD();
    VhostUserServer *s = VHOST_USER_SERVER(dev);

    if (!s->path) {
        error_setg(errp, "path= is missing: expected the path of the socket to "
                   "listen on");
        return;
    }
    if (!vus_memory_init(s, errp)) {
        return;
    }
    s->kicks = epoll_create1(EPOLL_CLOEXEC);
    if (s->kicks < 0) {
        error_setg_errno(errp, errno, "cannot create an epoll");
        return;
    }
    qemu_set_fd_handler(s->kicks, on_kicks, NULL, s);
    s->backend_fd = -1;
    s->state_fd = -1;
    vus_rings_init(s);
    memory_region_init(&s->root, OBJECT(s), "vhost-user-server", UINT64_MAX);
    address_space_init(&s->as, &s->root, "vhost-user-server");
    qbus_init(&s->bus, sizeof(s->bus), TYPE_VHOST_USER_SERVER_BUS, dev,
              "virtio-bus");
    VHOST_USER_SERVER_GET_CLASS(s)->plug(s, errp);
    if (*errp) {
        clear(s);
    }
}

static void unrealize(DeviceState *dev)
{
    clear(VHOST_USER_SERVER(dev));
}

static const Property properties[] = {
    DEFINE_PROP_STRING("path", VhostUserServer, path),
    DEFINE_PROP_BOOL("ring-reset", VhostUserServer, ring_reset, false),
};

static const VMStateDescription vmstate = {
    .name = TYPE_VHOST_USER_SERVER,
    .unmigratable = 1,
};

static void class_init(ObjectClass *klass, RdmaClassData data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);

    dc->realize = realize;
    dc->unrealize = unrealize;
    dc->vmsd = &vmstate;
    device_class_set_props(dc, properties);
    object_class_property_set_description(klass, "path",
        "path of the socket to listen on");
    object_class_property_set_description(klass, "ring-reset",
        "the front end stops one ring to reset it, as vhost-user-rdma-pci "
        "does");
    set_bit(DEVICE_CATEGORY_BRIDGE, dc->categories);
}

/*
 * QEMU calls this before it loads the state of a virtio device. It would read
 * a configuration of up to 4 GiB, byte by byte.
 */
static int check_config_len(DeviceState *dev, QEMUFile *f)
{
    VhostUserServer *s = VHOST_USER_SERVER(dev);
    size_t expected = vus_vdev(s)->config_len;
    uint8_t *data;
    uint32_t len;

    if (qemu_peek_buffer(f, &data, sizeof(len), STATE_CONFIG_LEN) !=
        sizeof(len)) {
        return -EINVAL;
    }
    len = ldl_be_p(data);
    if (len != expected) {
        error_report("%s: the state to load has a configuration of %u bytes, "
                     "not %zu", s->path, len, expected);
        return -EINVAL;
    }
    return 0;
}

static void bus_class_init(ObjectClass *klass, RdmaClassData data)
{
    VirtioBusClass *k = VIRTIO_BUS_CLASS(klass);

    BUS_CLASS(klass)->max_dev = 1;
    k->notify = notify;
    k->get_dma_as = get_dma_as;
    k->load_config = check_config_len;
    k->device_plugged = device_plugged;
    k->device_unplugged = device_unplugged;
}

static const TypeInfo types[] = {
    {
        .name = TYPE_VHOST_USER_SERVER_BUS,
        .parent = TYPE_VIRTIO_BUS,
        .instance_size = sizeof(VirtioBusState),
        .class_init = bus_class_init,
    }, {
        .name = TYPE_VHOST_USER_SERVER,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(VhostUserServer),
        .class_size = sizeof(VhostUserServerClass),
        .class_init = class_init,
        .abstract = true,
    },
};

DEFINE_TYPES(types)
