/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QMP commands about faults: conversion between the QAPI types of the user
 * and the faults of the device.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma-fault.h"
#include "qapi/util.h"
#include "qemu/cutils.h"
#include "qemu/sockets.h"
#include "int.h"

/* From the user */

static uint8_t opcode_from(RdmaCompletionOpcode opcode)
{
    static const uint8_t opcodes[RDMA_COMPLETION_OPCODE__MAX] = {
        [RDMA_COMPLETION_OPCODE_SEND] = RDMA_WC_SEND,
        [RDMA_COMPLETION_OPCODE_RDMA_WRITE] = RDMA_WC_RDMA_WRITE,
        [RDMA_COMPLETION_OPCODE_RDMA_READ] = RDMA_WC_RDMA_READ,
        [RDMA_COMPLETION_OPCODE_COMP_SWAP] = RDMA_WC_COMP_SWAP,
        [RDMA_COMPLETION_OPCODE_FETCH_ADD] = RDMA_WC_FETCH_ADD,
        [RDMA_COMPLETION_OPCODE_BIND_MW] = RDMA_WC_BIND_MW,
        [RDMA_COMPLETION_OPCODE_LOCAL_INV] = RDMA_WC_LOCAL_INV,
        [RDMA_COMPLETION_OPCODE_REG_MR] = RDMA_WC_REG_MR,
        [RDMA_COMPLETION_OPCODE_FLUSH] = RDMA_WC_FLUSH,
        [RDMA_COMPLETION_OPCODE_ATOMIC_WRITE] = RDMA_WC_ATOMIC_WRITE,
        [RDMA_COMPLETION_OPCODE_RECV] = RDMA_WC_RECV,
        [RDMA_COMPLETION_OPCODE_RECV_RDMA_WITH_IMM] =
            RDMA_WC_RECV_RDMA_WITH_IMM,
    };

    return opcodes[opcode];
}

static bool get_gid(const char *text, uint8_t gid[RDMA_GID_LEN], Error **errp)
{
    static const uint8_t ipv4[RDMA_GID_LEN] = { [10] = 0xff, [11] = 0xff };

    memcpy(gid, ipv4, RDMA_GID_LEN);
    if (inet_pton(AF_INET, text, &gid[12]) == 1 ||
        inet_pton(AF_INET6, text, gid) == 1) {
        return true;
    }
    error_setg(errp, "dgid=%s is neither a GID (an IPv6 address) nor an IPv4 "
               "address", text);
    return false;
}

static bool get_trigger(const RdmaFaultTrigger *from, RdmaHcaFault *f,
                        Error **errp)
{
    double probability = from->has_probability ? from->probability : 1;

    f->after = from->after;
    f->times = from->has_times ? from->times : 1;
    f->seed = from->has_seed ? from->seed : 1;
    f->random = f->seed;
    if (!(probability > 0 && probability <= 1)) {
        error_setg(errp, "probability=%g has to be more than 0 and at most 1",
                   probability);
        return false;
    }
    /* A probability below the resolution of random numbers is rounded up. */
    f->probability = MAX(probability * RDMA_HCA_FAULT_ALWAYS, 1);
    return true;
}

static bool get_work(const RdmaFaultWork *from, RdmaHcaFault *f, Error **errp)
{
    f->opcode = from->has_opcode ? opcode_from(from->opcode)
                                 : RDMA_HCA_FAULT_ANY;
    if (from->has_qpn) {
        f->selects |= RDMA_HCA_FAULT_QPN;
        f->qpn = from->qpn;
    }
    if (from->has_dest_qpn) {
        f->selects |= RDMA_HCA_FAULT_DEST_QPN;
        f->dest_qpn = from->dest_qpn;
    }
    if (from->dgid) {
        f->selects |= RDMA_HCA_FAULT_DGID;
        if (!get_gid(from->dgid, f->dgid, errp)) {
            return false;
        }
    }
    return get_trigger(qapi_RdmaFaultWork_base(from), f, errp);
}

static bool get_command(const RdmaFaultCommand *from, RdmaHcaFault *f,
                        Error **errp)
{
    f->command = from->has_command ? from->command : RDMA_HCA_FAULT_ANY;
    if (from->has_qpn) {
        f->selects |= RDMA_HCA_FAULT_QPN;
        f->qpn = from->qpn;
    }
    return get_trigger(qapi_RdmaFaultCommand_base(from), f, errp);
}

/* In a fault 0 means no duration; a user gets that by leaving it out only. */
static bool get_duration(bool has, uint32_t ms, RdmaHcaFault *f, Error **errp)
{
    if (has && !ms) {
        error_setg(errp, "duration=0: leave it out for a fault that stays "
                   "until it is removed");
        return false;
    }
    f->ms = ms;
    return true;
}

static bool get_fault(const RdmaFault *from, RdmaHcaFault *f, Error **errp)
{
    static const RdmaFaultTrigger always;

    if (strlen(from->id) >= sizeof(f->id)) {
        error_setg(errp, "The ID of a fault has at most %zu characters",
                   sizeof(f->id) - 1);
        return false;
    }
    pstrcpy(f->id, sizeof(f->id), from->id);
    f->kind = from->kind;
    switch (from->kind) {
    case RDMA_FAULT_KIND_COMPLETION_ERROR:
        f->status = from->u.completion_error.status;
        return get_work(qapi_RdmaFaultCompletionError_base(
                            &from->u.completion_error), f, errp);
    case RDMA_FAULT_KIND_LOCAL_ACCESS:
        return get_work(&from->u.local_access, f, errp);
    case RDMA_FAULT_KIND_REMOTE_ACCESS:
        return get_work(&from->u.remote_access, f, errp);
    case RDMA_FAULT_KIND_QP_FATAL:
        return get_work(&from->u.qp_fatal, f, errp);
    case RDMA_FAULT_KIND_QP_STUCK:
        return get_duration(from->u.qp_stuck.has_duration,
                            from->u.qp_stuck.duration, f, errp) &&
               get_work(qapi_RdmaFaultStuck_base(&from->u.qp_stuck), f, errp);
    case RDMA_FAULT_KIND_CQ_OVERRUN:
        return get_work(&from->u.cq_overrun, f, errp);
    case RDMA_FAULT_KIND_COMPLETION_DELAY:
        f->ms = from->u.completion_delay.delay;
        return get_work(qapi_RdmaFaultDelay_base(&from->u.completion_delay),
                        f, errp);
    case RDMA_FAULT_KIND_COMPLETION_REORDER:
        f->ms = from->u.completion_reorder.delay;
        return get_work(qapi_RdmaFaultDelay_base(&from->u.completion_reorder),
                        f, errp);
    case RDMA_FAULT_KIND_COMMAND_ERROR:
        f->status = from->u.command_error.status;
        return get_command(qapi_RdmaFaultCommandError_base(
                               &from->u.command_error), f, errp);
    case RDMA_FAULT_KIND_COMMAND_DELAY:
        f->ms = from->u.command_delay.delay;
        return get_command(qapi_RdmaFaultCommandDelay_base(
                               &from->u.command_delay), f, errp);
    case RDMA_FAULT_KIND_PORT_DOWN:
        return get_duration(from->u.port_down.has_duration,
                            from->u.port_down.duration, f, errp) &&
               get_trigger(&always, f, errp);
    default:
        g_assert_not_reached();
    }
}

void qmp_rdma_fault_add(RdmaFault *arg, Error **errp)
{
    RdmaHca *hca = rdma_hca_find(arg->device, errp);
    RdmaHcaFault fault = {};

    if (!hca) {
        return;
    }
    rdma_hca_enter(hca);
    if (get_fault(arg, &fault, errp) &&
        rdma_hca_fault_check(hca, &fault, errp) &&
        rdma_hca_faults_block_migration(hca, errp)) {
        rdma_hca_fault_start(hca, rdma_hca_fault_add(hca, &fault));
    }
    rdma_hca_leave(hca);
}

void qmp_rdma_fault_remove(const char *device, const char *id, Error **errp)
{
    RdmaHca *hca = rdma_hca_find(device, errp);
    RdmaHcaFault *f, *next;

    if (!hca) {
        return;
    }
    rdma_hca_enter(hca);
    f = id ? rdma_hca_fault_find(hca, id) : NULL;
    if (f) {
        rdma_hca_fault_remove(hca, f);
    } else if (id) {
        error_setg(errp, "RDMA device '%s' has no fault '%s'; those that it "
                   "has are listed by query-rdma-faults", device, id);
    } else if (hca->faults) {
        QTAILQ_FOREACH_SAFE(f, &hca->faults->list, next, next) {
            rdma_hca_fault_remove(hca, f);
        }
    }
    rdma_hca_leave(hca);
}

/* To the user */

static void put_trigger(RdmaFaultTrigger *to, const RdmaHcaFault *f)
{
    to->has_after = to->has_times = true;
    to->after = f->after;
    to->times = f->times;
    to->has_probability = to->has_seed = true;
    to->probability = (double)f->probability / RDMA_HCA_FAULT_ALWAYS;
    to->seed = f->seed;
}

static void put_work(RdmaFaultWork *to, const RdmaHcaFault *f)
{
    char text[INET6_ADDRSTRLEN];

    to->has_qpn = f->selects & RDMA_HCA_FAULT_QPN;
    to->qpn = f->qpn;
    to->has_opcode = f->opcode != RDMA_HCA_FAULT_ANY;
    to->opcode = rdma_hca_error_opcode(f->opcode);
    to->has_dest_qpn = f->selects & RDMA_HCA_FAULT_DEST_QPN;
    to->dest_qpn = f->dest_qpn;
    if (f->selects & RDMA_HCA_FAULT_DGID) {
        to->dgid = g_strdup(inet_ntop(AF_INET6, f->dgid, text, sizeof(text)));
    }
    put_trigger(qapi_RdmaFaultWork_base(to), f);
}

static void put_command(RdmaFaultCommand *to, const RdmaHcaFault *f)
{
    to->has_command = f->command != RDMA_HCA_FAULT_ANY;
    to->command = to->has_command ? f->command : 0;
    to->has_qpn = f->selects & RDMA_HCA_FAULT_QPN;
    to->qpn = f->qpn;
    put_trigger(qapi_RdmaFaultCommand_base(to), f);
}

static void put_fault(RdmaFault *to, const RdmaHcaFault *f)
{
    to->id = g_strdup(f->id);
    to->kind = f->kind;
    switch (to->kind) {
    case RDMA_FAULT_KIND_COMPLETION_ERROR:
        to->u.completion_error.status = f->status;
        put_work(qapi_RdmaFaultCompletionError_base(&to->u.completion_error),
                 f);
        break;
    case RDMA_FAULT_KIND_LOCAL_ACCESS:
        put_work(&to->u.local_access, f);
        break;
    case RDMA_FAULT_KIND_REMOTE_ACCESS:
        put_work(&to->u.remote_access, f);
        break;
    case RDMA_FAULT_KIND_QP_FATAL:
        put_work(&to->u.qp_fatal, f);
        break;
    case RDMA_FAULT_KIND_QP_STUCK:
        to->u.qp_stuck.has_duration = f->ms;
        to->u.qp_stuck.duration = f->ms;
        put_work(qapi_RdmaFaultStuck_base(&to->u.qp_stuck), f);
        break;
    case RDMA_FAULT_KIND_CQ_OVERRUN:
        put_work(&to->u.cq_overrun, f);
        break;
    case RDMA_FAULT_KIND_COMPLETION_DELAY:
        to->u.completion_delay.delay = f->ms;
        put_work(qapi_RdmaFaultDelay_base(&to->u.completion_delay), f);
        break;
    case RDMA_FAULT_KIND_COMPLETION_REORDER:
        to->u.completion_reorder.delay = f->ms;
        put_work(qapi_RdmaFaultDelay_base(&to->u.completion_reorder), f);
        break;
    case RDMA_FAULT_KIND_COMMAND_ERROR:
        to->u.command_error.status = f->status;
        put_command(qapi_RdmaFaultCommandError_base(&to->u.command_error), f);
        break;
    case RDMA_FAULT_KIND_COMMAND_DELAY:
        to->u.command_delay.delay = f->ms;
        put_command(qapi_RdmaFaultCommandDelay_base(&to->u.command_delay), f);
        break;
    case RDMA_FAULT_KIND_PORT_DOWN:
        to->u.port_down.has_duration = f->ms;
        to->u.port_down.duration = f->ms;
        break;
    default:
        g_assert_not_reached();
    }
}

static RdmaFaultInfoList **append_faults(RdmaHca *hca, RdmaFaultInfoList **end)
{
    const RdmaHcaFault *f;

    QTAILQ_FOREACH(f, &hca->faults->list, next) {
        RdmaFaultInfo *info = g_new0(RdmaFaultInfo, 1);

        info->fault = g_new0(RdmaFault, 1);
        info->fault->device = rdma_hca_name(hca);
        put_fault(info->fault, f);
        info->matches = f->matches;
        info->hits = f->hits;
        info->active = rdma_hca_fault_is_active(hca, f);
        QAPI_LIST_APPEND(end, info);
    }
    return end;
}

RdmaFaultInfoList *qmp_query_rdma_faults(const char *device, Error **errp)
{
    g_autoptr(GPtrArray) devices = rdma_hca_find_all();
    RdmaFaultInfoList *list = NULL, **end = &list;
    RdmaHca *only = NULL;

    if (device) {
        only = rdma_hca_find(device, errp);
        if (!only) {
            return NULL;
        }
    }
    for (unsigned i = 0; i < devices->len; i++) {
        RdmaHca *hca = devices->pdata[i];

        if ((only && hca != only) || !hca->faults) {
            continue;
        }
        rdma_hca_enter(hca);
        end = append_faults(hca, end);
        rdma_hca_leave(hca);
    }
    return list;
}
