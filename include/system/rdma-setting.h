/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties whose values are fields of an object, described by a table.
 */
#ifndef SYSTEM_RDMA_SETTING_H
#define SYSTEM_RDMA_SETTING_H

#include "qom/object.h"

typedef enum RdmaSettingType {
    RDMA_SETTING_BOOL,              /* bool */
    RDMA_SETTING_STR,               /* char *, which the object frees */
    RDMA_SETTING_UINT8,             /* uint8_t */
    RDMA_SETTING_UINT32,            /* uint32_t */
    RDMA_SETTING_SIZE,              /* uint64_t, in bytes */
    RDMA_SETTING_COUNTER,           /* uint64_t, read-only */
} RdmaSettingType;

typedef struct RdmaSetting {
    const char *name;
    RdmaSettingType type;
    size_t offset;                  /* in the object */
    /* For UINT32: the range, in addition to 0. With @max 0, any number. */
    uint32_t min, max;
    const char *description;
} RdmaSetting;

/*
 * Add @n properties. The table @settings must live as long as the class.
 * Properties of an RdmaBackend cannot be set while a device uses the backend.
 */
void rdma_settings_add(ObjectClass *oc, const RdmaSetting *settings, size_t n);

#endif /* SYSTEM_RDMA_SETTING_H */
