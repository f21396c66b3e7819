/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QMP commands about RDMA devices in a QEMU without RDMA devices
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma.h"
#include "qapi/qapi-commands-rdma-fault.h"

static void set_error(const char *device, Error **errp)
{
    error_setg(errp, "There is no RDMA device '%s': this QEMU has none",
               device);
}

RdmaInfoList *qmp_query_rdma(const char *device, bool has_objects,
                             RdmaObjectKindList *objects, bool has_qpn,
                             uint32_t qpn, bool has_detail, bool detail,
                             bool has_first, uint32_t first, bool has_max,
                             uint32_t max, Error **errp)
{
    if (device) {
        set_error(device, errp);
    }
    return NULL;
}

void qmp_rdma_fault_add(RdmaFault *arg, Error **errp)
{
    set_error(arg->device, errp);
}

void qmp_rdma_fault_remove(const char *device, const char *id, Error **errp)
{
    set_error(device, errp);
}

RdmaFaultInfoList *qmp_query_rdma_faults(const char *device, Error **errp)
{
    if (device) {
        set_error(device, errp);
    }
    return NULL;
}
