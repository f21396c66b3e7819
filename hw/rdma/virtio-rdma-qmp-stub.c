/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * query-rdma of a QEMU that has no RDMA devices
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma.h"

RdmaInfoList *qmp_query_rdma(const char *device, bool has_objects,
                             RdmaObjectKindList *objects, bool has_qpn,
                             uint32_t qpn, bool has_detail, bool detail,
                             bool has_first, uint32_t first, bool has_max,
                             uint32_t max, Error **errp)
{
    if (device) {
        error_setg(errp, "There is no RDMA device '%s': this QEMU has none",
                   device);
    }
    return NULL;
}
