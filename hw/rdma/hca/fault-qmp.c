/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The QMP commands about faults, and checks of a fault that the user adds: is
 * it possible, and does the device have room for it?
 */
#include "qemu/osdep.h"
#include "qapi/clone-visitor.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma-fault.h"
#include "qapi/qapi-visit-rdma-fault.h"
#include "qapi/util.h"
#include "qemu/id.h"
#include "qemu/sockets.h"
#include "int.h"

/* Characters of the longest ID of a fault */
#define MAX_ID_LEN 63
/* The most faults of a device */
#define MAX_FAULTS 64
#define MAX_DELAY_MS 600000

static bool check_id(RdmaHca *hca, const char *id, Error **errp)
{
    if (strlen(id) > MAX_ID_LEN || !id_wellformed(id)) {
        error_setg(errp, "id=\"%.64s\": expected 1 to %d letters, digits, "
                   "'-', '.' and '_', of which the first is a letter", id,
                   MAX_ID_LEN);
        return false;
    }
    if (rdma_hca_fault_find(hca, id)) {
        error_setg(errp, "The device has a fault '%s' already", id);
        return false;
    }
    if (hca->faults && hca->faults->count >= MAX_FAULTS) {
        error_setg(errp, "The device has %u faults, and there cannot be more",
                   MAX_FAULTS);
        return false;
    }
    return true;
}

static bool get_ms(const char *name, uint32_t ms, uint32_t max,
                   RdmaHcaFault *f, Error **errp)
{
    if (!ms || ms > max) {
        error_setg(errp, "%s=%u is out of range: it must be between 1 and %u "
                   "milliseconds", name, ms, max);
        return false;
    }
    f->ms = ms;
    return true;
}

static bool get_duration(bool has, uint32_t ms, RdmaHcaFault *f, Error **errp)
{
    if (has && !ms) {
        error_setg(errp, "duration=0: leave it out for a fault that stays "
                   "until it is removed");
        return false;
    }
    return !has || get_ms("duration", ms, RDMA_HCA_FAULT_MAX_DURATION_MS, f,
                          errp);
}

static bool get_time(RdmaHcaFault *f, Error **errp)
{
    const RdmaFault *spec = f->spec;

    switch (spec->kind) {
    case RDMA_FAULT_KIND_QP_STUCK:
        return get_duration(spec->u.qp_stuck.has_duration,
                            spec->u.qp_stuck.duration, f, errp);
    case RDMA_FAULT_KIND_PORT_DOWN:
        return get_duration(spec->u.port_down.has_duration,
                            spec->u.port_down.duration, f, errp);
    case RDMA_FAULT_KIND_COMPLETION_DELAY:
        return get_ms("delay", spec->u.completion_delay.delay, MAX_DELAY_MS, f,
                      errp);
    case RDMA_FAULT_KIND_COMPLETION_REORDER:
        return get_ms("delay", spec->u.completion_reorder.delay, MAX_DELAY_MS,
                      f, errp);
    case RDMA_FAULT_KIND_COMMAND_DELAY:
        return get_ms("delay", spec->u.command_delay.delay, MAX_DELAY_MS, f,
                      errp);
    default:
        return true;
    }
}

/* Fill in the defaults, too, which query-rdma-faults reports. */
static bool get_trigger(RdmaFaultTrigger *t, RdmaHcaFault *f, Error **errp)
{
    t->times = t->has_times ? t->times : 1;
    t->probability = t->has_probability ? t->probability : 1;
    t->seed = t->has_seed ? t->seed : 1;
    t->has_after = t->has_times = t->has_probability = t->has_seed = true;
    if (!(t->probability > 0 && t->probability <= 1)) {
        error_setg(errp, "probability=%g has to be more than 0 and at most 1",
                   t->probability);
        return false;
    }
    /* A probability below the resolution of random numbers is rounded up. */
    f->threshold = MAX(t->probability * RDMA_HCA_FAULT_ALWAYS, 1);
    f->random = t->seed;
    return true;
}

/* Get the GID of the text, which this replaces by the usual one. */
static bool get_dgid(char **text, uint8_t gid[RDMA_GID_LEN], Error **errp)
{
    static const uint8_t ipv4[RDMA_GID_LEN] = { [10] = 0xff, [11] = 0xff };
    char usual[INET6_ADDRSTRLEN];

    memcpy(gid, ipv4, RDMA_GID_LEN);
    if (inet_pton(AF_INET, *text, &gid[12]) != 1 &&
        inet_pton(AF_INET6, *text, gid) != 1) {
        error_setg(errp, "dgid=%s is neither a GID (an IPv6 address) nor an "
                   "IPv4 address", *text);
        return false;
    }
    g_free(*text);
    *text = g_strdup(inet_ntop(AF_INET6, gid, usual, sizeof(usual)));
    return true;
}

static bool check_qpn(RdmaHca *hca, bool has, uint32_t qpn, Error **errp)
{
    if (has && qpn >= hca->qps.end) {
        error_setg(errp, "qpn=%u: the device has queue pairs up to %u", qpn,
                   hca->qps.end - 1);
        return false;
    }
    return true;
}

static bool get_work(RdmaHca *hca, RdmaHcaFault *f, Error **errp)
{
    RdmaFaultKind kind = f->spec->kind;
    RdmaFaultWork *work = rdma_hca_fault_work(f);

    if (work->dgid && !get_dgid(&work->dgid, f->dgid, errp)) {
        return false;
    }
    if (work->has_opcode && !rdma_hca_fault_can_strike(kind, work->opcode)) {
        error_setg(errp, "opcode=%s: a request of this opcode cannot have a "
                   "fault of kind '%s'",
                   RdmaCompletionOpcode_str(work->opcode),
                   RdmaFaultKind_str(kind));
        return false;
    }
    if (work->dest_qpn > RDMA_24BIT_MASK) {
        error_setg(errp, "dest-qpn=%u: the number of a queue pair has 24 bits",
                   work->dest_qpn);
        return false;
    }
    if (kind == RDMA_FAULT_KIND_COMPLETION_ERROR &&
        f->spec->u.completion_error.status ==
        RDMA_COMPLETION_STATUS_SUCCESS) {
        error_setg(errp, "status must be the status of an error");
        return false;
    }
    return check_qpn(hca, work->has_qpn, work->qpn, errp) &&
           get_trigger(qapi_RdmaFaultWork_base(work), f, errp);
}

static bool get_command(RdmaHca *hca, RdmaHcaFault *f, Error **errp)
{
    RdmaFaultCommand *c = rdma_hca_fault_command(f);

    if (c->has_qpn && !(c->has_command &&
                        (c->command == RDMA_COMMAND_MODIFY_QP ||
                         c->command == RDMA_COMMAND_QUERY_QP ||
                         c->command == RDMA_COMMAND_DESTROY_QP))) {
        error_setg(errp, "qpn needs command to be modify-qp, query-qp or "
                   "destroy-qp: others do not name a queue pair");
        return false;
    }
    return check_qpn(hca, c->has_qpn, c->qpn, errp) &&
           get_trigger(qapi_RdmaFaultCommand_base(c), f, errp);
}

static bool check_port(RdmaHca *hca, Error **errp)
{
    const RdmaHcaFault *other;

    if (!hca->bc->set_port) {
        error_setg(errp, "The backend %s cannot take its port down: it is a "
                   "port of the host",
                   rdma_hca_backend_type(hca));
        return false;
    }
    if (!hca->faults) {
        return true;
    }
    QTAILQ_FOREACH(other, &hca->faults->list, next) {
        if (other->spec->kind == RDMA_FAULT_KIND_PORT_DOWN) {
            error_setg(errp, "The device has the fault '%s', which takes the "
                       "port down: remove it first", other->spec->id);
            return false;
        }
    }
    return true;
}

static bool get_fault(RdmaHca *hca, RdmaHcaFault *f, Error **errp)
{
    if (!check_id(hca, f->spec->id, errp) || !get_time(f, errp)) {
        return false;
    }
    switch (f->spec->kind) {
    case RDMA_FAULT_KIND_PORT_DOWN:
        return check_port(hca, errp);
    case RDMA_FAULT_KIND_COMMAND_ERROR:
    case RDMA_FAULT_KIND_COMMAND_DELAY:
        return get_command(hca, f, errp);
    default:
        return get_work(hca, f, errp);
    }
}

void qmp_rdma_fault_add(RdmaFault *arg, Error **errp)
{
    RdmaHca *hca = rdma_hca_find(arg->device, errp);
    RdmaHcaFault *f;

    if (!hca) {
        return;
    }
    f = g_new0(RdmaHcaFault, 1);
    f->spec = QAPI_CLONE(RdmaFault, arg);
    g_free(f->spec->device);
    f->spec->device = rdma_hca_name(hca);
    rdma_hca_enter(hca);
    if (!get_fault(hca, f, errp) || !rdma_hca_fault_add(hca, f, errp)) {
        rdma_hca_fault_free(f);
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
        error_setg(errp, "RDMA device '%s' has no fault '%.64s': "
                   "query-rdma-faults lists its faults", device, id);
    } else if (hca->faults) {
        QTAILQ_FOREACH_SAFE(f, &hca->faults->list, next, next) {
            rdma_hca_fault_remove(hca, f);
        }
    }
    rdma_hca_leave(hca);
}

static RdmaFaultInfoList **append_faults(RdmaHca *hca, RdmaFaultInfoList **end)
{
    const RdmaHcaFault *f;

    QTAILQ_FOREACH(f, &hca->faults->list, next) {
        RdmaFaultInfo *info = g_new0(RdmaFaultInfo, 1);

        info->fault = QAPI_CLONE(RdmaFault, f->spec);
        info->matches = f->matches;
        info->hits = f->hits;
        info->active = rdma_hca_fault_is_active(hca, f);
        QAPI_LIST_APPEND(end, info);
    }
    return end;
}

RdmaFaultInfoList *qmp_query_rdma_faults(const char *device, Error **errp)
{
    g_autoptr(GPtrArray) devices = rdma_hca_find_all(device, errp);
    RdmaFaultInfoList *list = NULL, **end = &list;

    for (unsigned i = 0; devices && i < devices->len; i++) {
        RdmaHca *hca = devices->pdata[i];

        if (!hca->faults) {
            continue;
        }
        rdma_hca_enter(hca);
        end = append_faults(hca, end);
        rdma_hca_leave(hca);
    }
    return list;
}
