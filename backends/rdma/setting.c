/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties whose values are fields of an object
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "system/rdma-backend.h"
#include "system/rdma-setting.h"

static const char *const types[] = {
    [RDMA_SETTING_BOOL] = "bool",
    [RDMA_SETTING_STR] = "string",
    [RDMA_SETTING_UINT8] = "uint8",
    [RDMA_SETTING_UINT32] = "uint32",
    [RDMA_SETTING_SIZE] = "size",
    [RDMA_SETTING_COUNTER] = "uint64",
};

/* An input visitor sets @field, an output visitor reads it. */
static bool visit(Visitor *v, const RdmaSetting *s, void *field, Error **errp)
{
    switch (s->type) {
    case RDMA_SETTING_BOOL:
        return visit_type_bool(v, s->name, field, errp);
    case RDMA_SETTING_STR:
        return visit_type_str(v, s->name, field, errp);
    case RDMA_SETTING_UINT8:
        return visit_type_uint8(v, s->name, field, errp);
    case RDMA_SETTING_UINT32:
        return visit_type_uint32(v, s->name, field, errp);
    case RDMA_SETTING_SIZE:
        return visit_type_size(v, s->name, field, errp);
    case RDMA_SETTING_COUNTER:
        return visit_type_uint64(v, s->name, field, errp);
    }
    g_assert_not_reached();
}

static bool check_range(Object *obj, const RdmaSetting *s, uint32_t value,
                        Error **errp)
{
    if (!s->max || !value || (value >= s->min && value <= s->max)) {
        return true;
    }
    if (s->min) {
        error_setg(errp, "Property '%s.%s' is %u, and must be 0 or in the "
                   "range %u to %u", object_get_typename(obj), s->name, value,
                   s->min, s->max);
    } else {
        error_setg(errp, "Property '%s.%s' is %u, and must be at most %u",
                   object_get_typename(obj), s->name, value, s->max);
    }
    return false;
}

/* @opaque is the RdmaSetting, as in set_setting(). */
static void get_setting(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    const RdmaSetting *s = opaque;

    visit(v, s, (char *)obj + s->offset, errp);
}

static void set_setting(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    const RdmaSetting *s = opaque;
    void *field = (char *)obj + s->offset;
    uint32_t number;
    char *text;

    if (object_dynamic_cast(obj, TYPE_RDMA_BACKEND) &&
        !rdma_backend_may_set(obj, name, errp)) {
        return;
    }
    if (s->type == RDMA_SETTING_STR) {
        if (visit(v, s, &text, errp)) {
            g_free(*(char **)field);
            *(char **)field = text;
        }
    } else if (s->type == RDMA_SETTING_UINT32) {
        if (visit(v, s, &number, errp) && check_range(obj, s, number, errp)) {
            *(uint32_t *)field = number;
        }
    } else {
        visit(v, s, field, errp);
    }
}

void rdma_settings_add(ObjectClass *oc, const RdmaSetting *settings, size_t n)
{
    for (const RdmaSetting *s = settings; s < settings + n; s++) {
        object_class_property_add(oc, s->name, types[s->type], get_setting,
                                  s->type == RDMA_SETTING_COUNTER
                                  ? NULL : set_setting, NULL, (void *)s);
        object_class_property_set_description(oc, s->name, s->description);
    }
}
