/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of a fault that the user adds: is it possible, and does the device
 * have room for it?
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/id.h"
#include "int.h"

static bool is_recv(uint8_t opcode)
{
    return opcode == RDMA_WC_RECV || opcode == RDMA_WC_RECV_RDMA_WITH_IMM;
}

/* Does a request of this opcode name memory by an lkey? */
static bool has_lkey(uint8_t opcode)
{
    switch (opcode) {
    case RDMA_WC_SEND:
    case RDMA_WC_RDMA_WRITE:
    case RDMA_WC_RDMA_READ:
    case RDMA_WC_COMP_SWAP:
    case RDMA_WC_FETCH_ADD:
    case RDMA_WC_ATOMIC_WRITE:
    case RDMA_WC_RECV:
        return true;
    default:
        return false;
    }
}

/* Does a request of this opcode name memory of the peer by an rkey? */
static bool has_rkey(uint8_t opcode)
{
    switch (opcode) {
    case RDMA_WC_RDMA_WRITE:
    case RDMA_WC_RDMA_READ:
    case RDMA_WC_COMP_SWAP:
    case RDMA_WC_FETCH_ADD:
    case RDMA_WC_ATOMIC_WRITE:
    case RDMA_WC_FLUSH:
        return true;
    default:
        return false;
    }
}

static bool is_opcode(uint8_t opcode)
{
    return has_lkey(opcode) || has_rkey(opcode) || is_recv(opcode) ||
           opcode == RDMA_WC_BIND_MW || opcode == RDMA_WC_LOCAL_INV ||
           opcode == RDMA_WC_REG_MR;
}

bool rdma_hca_fault_can_strike(uint8_t kind, uint8_t opcode)
{
    switch (kind) {
    case RDMA_FAULT_KIND_COMPLETION_ERROR:
        return opcode != RDMA_WC_RECV_RDMA_WITH_IMM;
    case RDMA_FAULT_KIND_LOCAL_ACCESS:
        return has_lkey(opcode);
    case RDMA_FAULT_KIND_REMOTE_ACCESS:
        return has_rkey(opcode);
    case RDMA_FAULT_KIND_QP_FATAL:
    case RDMA_FAULT_KIND_QP_STUCK:
        return !is_recv(opcode);
    default:
        return true;
    }
}

static bool check_work(RdmaHca *hca, const RdmaHcaFault *f, Error **errp)
{
    if (f->opcode != RDMA_HCA_FAULT_ANY &&
        (!is_opcode(f->opcode) ||
         !rdma_hca_fault_can_strike(f->kind, f->opcode))) {
        error_setg(errp, "opcode=%s: a request of this opcode cannot have a "
                   "fault of kind '%s'", is_opcode(f->opcode)
                   ? RdmaCompletionOpcode_str(
                         rdma_hca_error_opcode(f->opcode))
                   : "unknown", RdmaFaultKind_str(f->kind));
        return false;
    }
    if ((f->selects & RDMA_HCA_FAULT_QPN) && f->qpn >= hca->qps.end) {
        error_setg(errp, "qpn=%u: the device has queue pairs up to %u",
                   f->qpn, hca->qps.end - 1);
        return false;
    }
    if (f->dest_qpn > RDMA_24BIT_MASK) {
        error_setg(errp, "dest-qpn=%u: the number of a queue pair has 24 bits",
                   f->dest_qpn);
        return false;
    }
    if (f->kind == RDMA_FAULT_KIND_COMPLETION_ERROR &&
        (f->status == RDMA_WC_SUCCESS || f->status > RDMA_WC_GENERAL_ERR)) {
        error_setg(errp, "status must be the status of an error");
        return false;
    }
    return true;
}

static bool check_command(RdmaHca *hca, const RdmaHcaFault *f, Error **errp)
{
    if (f->command != RDMA_HCA_FAULT_ANY && f->command >= RDMA_COMMAND__MAX) {
        error_setg(errp, "command=%u: the last one is %u", f->command,
                   RDMA_COMMAND__MAX - 1);
        return false;
    }
    if ((f->selects & RDMA_HCA_FAULT_QPN) &&
        f->command != RDMA_COMMAND_MODIFY_QP &&
        f->command != RDMA_COMMAND_QUERY_QP &&
        f->command != RDMA_COMMAND_DESTROY_QP) {
        error_setg(errp, "qpn needs command to be modify-qp, query-qp or "
                   "destroy-qp: others do not name a queue pair");
        return false;
    }
    if ((f->selects & RDMA_HCA_FAULT_QPN) && f->qpn >= hca->qps.end) {
        error_setg(errp, "qpn=%u: the device has queue pairs up to %u",
                   f->qpn, hca->qps.end - 1);
        return false;
    }
    if (f->kind == RDMA_FAULT_KIND_COMMAND_ERROR &&
        f->status >= RDMA_COMMAND_STATUS__MAX) {
        error_setg(errp, "status=%u is not a status of a command", f->status);
        return false;
    }
    return true;
}

static bool check_port(RdmaHca *hca, const RdmaHcaFault *f, Error **errp)
{
    if (!hca->bc->set_port) {
        error_setg(errp, "The backend %s cannot take its port down: it is a "
                   "port of the host",
                   object_get_typename(OBJECT(hca->backend)));
        return false;
    }
    if (hca->faults) {
        const RdmaHcaFault *other;

        QTAILQ_FOREACH(other, &hca->faults->list, next) {
            if (other->kind == RDMA_FAULT_KIND_PORT_DOWN) {
                error_setg(errp, "The device has the fault '%s', which takes "
                           "the port down: remove it first", other->id);
                return false;
            }
        }
    }
    return true;
}

static bool check_time(const RdmaHcaFault *f, Error **errp)
{
    bool has_delay = f->kind == RDMA_FAULT_KIND_COMPLETION_DELAY ||
                     f->kind == RDMA_FAULT_KIND_COMPLETION_REORDER ||
                     f->kind == RDMA_FAULT_KIND_COMMAND_DELAY;
    uint32_t max = has_delay ? RDMA_HCA_FAULT_MAX_DELAY_MS
                             : RDMA_HCA_FAULT_MAX_DURATION_MS;

    if (f->ms > max || (has_delay && !f->ms)) {
        error_setg(errp, "%s=%u is out of range: it must be between 1 and %u "
                   "milliseconds", has_delay ? "delay" : "duration", f->ms,
                   max);
        return false;
    }
    return true;
}

RdmaHcaFault *rdma_hca_fault_find(RdmaHca *hca, const char *id)
{
    RdmaHcaFault *f;

    if (hca->faults) {
        QTAILQ_FOREACH(f, &hca->faults->list, next) {
            if (!strcmp(f->id, id)) {
                return f;
            }
        }
    }
    return NULL;
}

bool rdma_hca_fault_check(RdmaHca *hca, const RdmaHcaFault *f, Error **errp)
{
    if (!memchr(f->id, 0, sizeof(f->id)) || !id_wellformed(f->id)) {
        error_setg(errp, "The ID of a fault has 1 to %d letters, digits, '-', "
                   "'.' and '_', and begins with a letter",
                   RDMA_HCA_FAULT_ID_ROOM - 1);
        return false;
    }
    if (rdma_hca_fault_find(hca, f->id)) {
        error_setg(errp, "The device has a fault '%s' already", f->id);
        return false;
    }
    if (hca->faults && hca->faults->count >= RDMA_HCA_MAX_FAULTS) {
        error_setg(errp, "The device has %u faults, and there cannot be more",
                   RDMA_HCA_MAX_FAULTS);
        return false;
    }
    if (f->kind >= RDMA_FAULT_KIND__MAX) {
        error_setg(errp, "kind=%u is not a kind of fault", f->kind);
        return false;
    }
    if (!f->probability || f->probability > RDMA_HCA_FAULT_ALWAYS) {
        error_setg(errp, "probability has to be more than 0 and at most 1; "
                   "the least is 2^-32");
        return false;
    }
    if (!check_time(f, errp)) {
        return false;
    }
    return f->kind == RDMA_FAULT_KIND_PORT_DOWN ? check_port(hca, f, errp) :
           rdma_hca_fault_is_of_command(f->kind) ? check_command(hca, f, errp)
                                      : check_work(hca, f, errp);
}
