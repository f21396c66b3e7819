/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QMP command query-rdma: select the devices and objects to report
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma.h"
#include "int.h"

/* Default of "max": objects of each kind */
#define DEFAULT_MAX 1024

static void unref(void *opaque)
{
    RdmaHca *hca = opaque;

    object_unref(hca->owner);
}

char *rdma_hca_name(RdmaHca *hca)
{
    DeviceState *dev = hca->dev;

    return dev->id ? g_strdup(dev->id) : object_get_canonical_path(OBJECT(dev));
}

static bool is_called(RdmaHca *hca, const char *name)
{
    DeviceState *dev = hca->dev;
    Object *obj = name[0] == '/' ? object_resolve_path(name, NULL) : NULL;

    return obj ? obj == OBJECT(dev) || obj == hca->owner
               : dev->id && !strcmp(dev->id, name);
}

GPtrArray *rdma_hca_find_all(const char *device, Error **errp)
{
    g_autoptr(GPtrArray) devices = g_ptr_array_new_with_free_func(unref);
    g_autoptr(GString) names = g_string_new(NULL);
    RdmaHca *hca;

    QTAILQ_FOREACH(hca, &rdma_hcas, next) {
        g_autofree char *name = rdma_hca_name(hca);

        g_string_append_printf(names, "%s'%s'", names->len ? ", " : "", name);
        if (!device || is_called(hca, device)) {
            object_ref(hca->owner);
            g_ptr_array_add(devices, hca);
        }
    }
    if (device && !devices->len) {
        error_setg(errp, "There is no RDMA device '%s': %s%s", device,
                   names->len ? "there is " : "the machine has none",
                   names->str);
        return NULL;
    }
    return g_steal_pointer(&devices);
}

RdmaHca *rdma_hca_find(const char *device, Error **errp)
{
    g_autoptr(GPtrArray) devices = rdma_hca_find_all(device, errp);

    return devices ? devices->pdata[0] : NULL;
}

static bool query_qp(RdmaHca *hca, uint32_t qpn, RdmaHcaQuery *query,
                     Error **errp)
{
    if (!rdma_hca_table_get(&hca->qps, qpn)) {
        g_autofree char *name = rdma_hca_name(hca);

        error_setg(errp, "RDMA device '%s' has no queue pair %u; those that it "
                   "has are listed with objects: ['qp']", name, qpn);
        return false;
    }
    *query = (RdmaHcaQuery) {
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
    g_autoptr(GPtrArray) devices = NULL;
    RdmaInfoList *list = NULL, **end = &list;
    RdmaHcaQuery query = {
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
        query.kinds[objects->value] = true;
    }
    devices = rdma_hca_find_all(device, errp);
    if (!devices ||
        (has_qpn && !query_qp(devices->pdata[0], qpn, &query, errp))) {
        return NULL;
    }
    for (unsigned i = 0; i < devices->len; i++) {
        RdmaHca *hca = devices->pdata[i];

        /* Leaving the previous device may have ended this one. */
        if (hca->backend) {
            QAPI_LIST_APPEND(end, rdma_hca_inspect(hca, &query));
        }
    }
    return list;
}
