/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QMP command query-rdma: which devices and objects it asks for.
 */
#include "qemu/osdep.h"
#include "hw/sysbus.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma.h"
#include "virtio-rdma-device.h"

/* Of each kind, if the command does not say */
#define DEFAULT_MAX 1024

static int add_device(DeviceState *dev, void *opaque)
{
    GPtrArray *devices = opaque;

    if (object_dynamic_cast(OBJECT(dev), TYPE_VIRTIO_RDMA) && dev->realized &&
        VIRTIO_RDMA(dev)->backend) {
        g_ptr_array_add(devices, object_ref(OBJECT(dev)));
    }
    return 0;
}

GPtrArray *virtio_rdma_find_all(void)
{
    GPtrArray *devices = g_ptr_array_new_with_free_func(
        (GDestroyNotify)object_unref);

    qbus_walk_children(sysbus_get_default(), add_device, NULL, NULL, NULL,
                       devices);
    return devices;
}

char *virtio_rdma_name(VirtIORdma *s)
{
    DeviceState *dev = virtio_rdma_transport(s);

    return dev->id ? g_strdup(dev->id) : object_get_canonical_path(OBJECT(dev));
}

static bool is_called(VirtIORdma *s, const char *name)
{
    DeviceState *dev = virtio_rdma_transport(s);
    Object *obj = name[0] == '/' ? object_resolve_path(name, NULL) : NULL;

    return obj ? obj == OBJECT(dev) || obj == OBJECT(s)
               : dev->id && !strcmp(dev->id, name);
}

static VirtIORdma *find_device(GPtrArray *devices, const char *name,
                               Error **errp)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (unsigned i = 0; i < devices->len; i++) {
        VirtIORdma *s = devices->pdata[i];
        g_autofree char *its_name = virtio_rdma_name(s);

        if (is_called(s, name)) {
            return s;
        }
        g_string_append_printf(names, "%s'%s'", i ? ", " : "", its_name);
    }
    error_setg(errp, "There is no RDMA device '%s': %s%s", name,
               names->len ? "there is " : "the machine has none", names->str);
    return NULL;
}

VirtIORdma *virtio_rdma_find(const char *name, Error **errp)
{
    g_autoptr(GPtrArray) devices = virtio_rdma_find_all();

    return find_device(devices, name, errp);
}

static bool look_at_qp(VirtIORdma *s, uint32_t qpn, VirtIORdmaLook *look,
                       Error **errp)
{
    if (!virtio_rdma_table_get(&s->qps, qpn)) {
        g_autofree char *name = virtio_rdma_name(s);

        error_setg(errp, "RDMA device '%s' has no queue pair %u; those that it "
                   "has are listed with objects: ['qp']", name, qpn);
        return false;
    }
    *look = (VirtIORdmaLook) {
        .kinds[RDMA_OBJECT_KIND_QP] = true,
        .detail = true,
        .first = qpn,
        .max = 1,
    };
    return true;
}

RdmaInfoList *qmp_query_rdma(const char *device, bool has_objects,
                             RdmaObjectKindList *objects, bool has_qpn,
                             uint32_t qpn, bool has_detail, bool detail,
                             bool has_first, uint32_t first, bool has_max,
                             uint32_t max, Error **errp)
{
    g_autoptr(GPtrArray) devices = virtio_rdma_find_all();
    RdmaInfoList *list = NULL, **end = &list;
    VirtIORdma *only = NULL;
    VirtIORdmaLook look = {
        .detail = detail,
        .first = first,
        .max = has_max ? max : DEFAULT_MAX,
    };

    if (has_qpn && (!device || has_objects || has_first || has_max)) {
        error_setg(errp, device ? "qpn excludes objects, first and max"
                                : "qpn needs device: the numbers of queue "
                                  "pairs belong to a device");
        return NULL;
    }
    for (; objects; objects = objects->next) {
        look.kinds[objects->value] = true;
    }
    if (device) {
        only = find_device(devices, device, errp);
        if (!only || (has_qpn && !look_at_qp(only, qpn, &look, errp))) {
            return NULL;
        }
    }
    for (unsigned i = 0; i < devices->len; i++) {
        VirtIORdma *s = devices->pdata[i];

        /* What was put off until one was left may have been its end */
        if ((!only || s == only) && s->backend) {
            QAPI_LIST_APPEND(end, virtio_rdma_inspect(s, &look));
        }
    }
    return list;
}
