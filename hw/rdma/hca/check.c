/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of properties that the user sets, and of fields that the driver sets.
 * A wrong property sets an error. A wrong field is logged as a guest error,
 * with its name and its limit.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/host-utils.h"
#include "int.h"

bool rdma_hca_check_props(const RdmaHcaProp *props, size_t n, Error **errp)
{
    for (const RdmaHcaProp *p = props; p < props + n; p++) {
        if (p->value < p->min || p->value > p->max) {
            error_setg(errp, "%s=%" PRIu64 " is out of range: it must be "
                       "between %" PRIu64 " and %" PRIu64, p->name, p->value,
                       p->min, p->max);
            return false;
        }
        if (p->is_power && !is_power_of_2(p->value)) {
            error_setg(errp, "%s=%" PRIu64 " is not a power of 2", p->name,
                       p->value);
            return false;
        }
    }
    return true;
}

void rdma_hca_describe_props(ObjectClass *klass, const RdmaHcaPropText *texts,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        object_class_property_set_description(klass, texts[i].name,
                                              texts[i].text);
    }
}

bool rdma_hca_check_range(const char *field, uint64_t value, uint64_t min,
                          uint64_t max)
{
    if (value >= min && value <= max) {
        return true;
    }
    rdma_hca_guest_error("%s is %" PRIu64 ", not %" PRIu64 " to %" PRIu64,
                         field, value, min, max);
    return false;
}

bool rdma_hca_check_flags(const char *field, uint64_t value, uint64_t known)
{
    if (!(value & ~known)) {
        return true;
    }
    rdma_hca_guest_error("%s 0x%" PRIx64 " has unknown flags: known are 0x%"
                         PRIx64, field, value, known);
    return false;
}
