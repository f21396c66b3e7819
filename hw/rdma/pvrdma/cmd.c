/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command slot: executes one command at a time.
 *
 * There are two kinds. After a prompt one the driver looks at ERR and goes on:
 * what it destroyed is gone then. After any other it looks at ERR, and waits
 * for the interrupt of the reply.
 */
#include "qemu/osdep.h"
#include "block/aio.h"
#include "hw/core/cpu.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "trace.h"
#include "int.h"

/* A command that faults do not know */
#define NO_FAULTS RDMA_COMMAND__MAX

typedef struct Command {
    const char *name;
    PvrdmaHandler *handler;
    bool prompt;
    RdmaCommand fault;
} Command;

#define WAIT(cmd, handler, fault) \
    [PVRDMA_CMD_##cmd] = { #cmd, handler, false, fault }
#define PROMPT(cmd, handler, fault) \
    [PVRDMA_CMD_##cmd] = { #cmd, handler, true, fault }

static const Command commands[PVRDMA_NUM_CMDS] = {
    WAIT(QUERY_PORT, pvrdma_query_port, RDMA_COMMAND_QUERY_PORT),
    WAIT(QUERY_PKEY, pvrdma_query_pkey, RDMA_COMMAND_QUERY_PKEY),
    WAIT(CREATE_PD, pvrdma_create_pd, RDMA_COMMAND_CREATE_PD),
    PROMPT(DESTROY_PD, pvrdma_destroy_pd, RDMA_COMMAND_DESTROY_PD),
    WAIT(CREATE_MR, pvrdma_create_mr, RDMA_COMMAND_REG_USER_MR),
    PROMPT(DESTROY_MR, pvrdma_destroy_mr, RDMA_COMMAND_DEREG_MR),
    WAIT(CREATE_CQ, pvrdma_create_cq, RDMA_COMMAND_CREATE_CQ),
    PROMPT(DESTROY_CQ, pvrdma_destroy_cq, RDMA_COMMAND_DESTROY_CQ),
    WAIT(CREATE_QP, pvrdma_create_qp, RDMA_COMMAND_CREATE_QP),
    WAIT(MODIFY_QP, pvrdma_modify_qp, RDMA_COMMAND_MODIFY_QP),
    WAIT(QUERY_QP, pvrdma_query_qp, RDMA_COMMAND_QUERY_QP),
    PROMPT(DESTROY_QP, pvrdma_destroy_qp, RDMA_COMMAND_DESTROY_QP),
    WAIT(CREATE_UC, pvrdma_create_uc, NO_FAULTS),
    PROMPT(DESTROY_UC, pvrdma_destroy_uc, NO_FAULTS),
    PROMPT(CREATE_BIND, pvrdma_create_bind, RDMA_COMMAND_ADD_GID),
    PROMPT(DESTROY_BIND, pvrdma_destroy_bind, RDMA_COMMAND_DEL_GID),
    WAIT(CREATE_SRQ, pvrdma_create_srq, RDMA_COMMAND_CREATE_SRQ),
    PROMPT(MODIFY_SRQ, pvrdma_modify_srq, RDMA_COMMAND_MODIFY_SRQ),
    WAIT(QUERY_SRQ, pvrdma_query_srq, RDMA_COMMAND_QUERY_SRQ),
    PROMPT(DESTROY_SRQ, pvrdma_destroy_srq, RDMA_COMMAND_DESTROY_SRQ),
};

static const Command *command_of(const Pvrdma *s)
{
    uint32_t cmd = le32_to_cpu(s->cmd.req.head.cmd);

    return cmd < PVRDMA_NUM_CMDS && commands[cmd].handler ? &commands[cmd]
                                                          : NULL;
}

/* The QP that a command is about, or RDMA_NO_QPN */
static uint32_t qpn_of(const Pvrdma *s)
{
    const PvrdmaCmdHandle *cmd = (const void *)&s->cmd.req;

    switch (le32_to_cpu(cmd->head.cmd)) {
    case PVRDMA_CMD_MODIFY_QP:
    case PVRDMA_CMD_QUERY_QP:
    case PVRDMA_CMD_DESTROY_QP:
        return le32_to_cpu(cmd->handle);
    default:
        return RDMA_NO_QPN;
    }
}

static int execute(Pvrdma *s, const Command *command, void *rsp)
{
    int ret = command->fault == NO_FAULTS
              ? 0 : rdma_hca_command_begin(&s->hca, command->fault,
                                           s->cmd.again, qpn_of(s));

    return ret ?: command->handler(s, &s->cmd.req, rsp);
}

/*
 * The driver checks err only in the reply of MODIFY_QP. Other commands fail by
 * ERR or, if the driver has read ERR, by a reply without PVRDMA_ACK.
 */
static void reply(Pvrdma *s, const Command *command, int ret,
                  PvrdmaRspHead *head)
{
    uint32_t cmd = le32_to_cpu(s->cmd.req.head.cmd);
    bool has_err = cmd == PVRDMA_CMD_MODIFY_QP;
    bool read_err = s->cmd.again && !command->prompt;

    head->response = s->cmd.req.head.response;
    if (!ret || has_err) {
        head->ack = cpu_to_le32(PVRDMA_ACK | cmd);
        head->err = MIN(-ret, UINT8_MAX);
    } else if (!read_err) {
        s->err = -ret;
        return;
    }
    if (!rdma_hca_write_ram(pvrdma_ram(s), s->response, head,
                            PVRDMA_RSP_ROOM)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: the page of replies at 0x%"
                      PRIx64 " is not in RAM\n", s->response);
    }
    if (!command->prompt) {
        pvrdma_interrupt(s, PVRDMA_VECTOR_RESPONSE);
    }
}

/*
 * A command that reads a long page list goes on in the next turn, as does one
 * that comes while much memory is left to be freed.
 */
void pvrdma_cmd_run(Pvrdma *s)
{
    union {
        PvrdmaRspHead head;
        uint8_t bytes[PVRDMA_RSP_ROOM];
    } rsp = {};
    const Command *command = command_of(s);
    int ret;

    if (!s->cmd.busy || s->cmd.waiting) {
        return;
    }
    s->hca.cmd_budget = RDMA_TURN_BUDGET;
    ret = rdma_backend_frees_much() ? -EINPROGRESS
                                    : execute(s, command, &rsp);
    if (ret == -EINPROGRESS) {
        s->cmd.again = true;
        s->cmd.waiting = !rdma_hca_pages_reading(&s->hca) &&
                         !rdma_backend_frees_much();
        if (!s->cmd.waiting) {
            rdma_hca_bh_schedule(&s->hca);
        }
        return;
    }
    trace_pvrdma_command(s, command->name, ret);
    reply(s, command, ret, &rsp.head);
    pvrdma_cmd_forget(s);
}

void pvrdma_cmd_forget(Pvrdma *s)
{
    rdma_hca_pages_drop(&s->hca);
    rdma_hca_command_end(&s->hca);
    s->cmd.busy = false;
    s->cmd.again = false;
    s->cmd.waiting = false;
    qemu_cond_broadcast(&s->cmd.done);
}

bool pvrdma_cmd_load(Pvrdma *s)
{
    /* The source has tried the command, and the driver has read ERR. */
    s->cmd.again = s->cmd.busy;
    return !s->cmd.busy || command_of(s);
}

/*
 * A prompt command has to be done when this register access is. A vCPU lets
 * others have the BQL meanwhile, and the registers.
 */
static void wait_until_done(Pvrdma *s)
{
    MemReentrancyGuard *guard = &DEVICE(s)->mem_reentrancy_guard;
    bool was_engaged = guard->engaged_in_io;

    guard->engaged_in_io = false;
    while (s->cmd.busy) {
        if (current_cpu) {
            qemu_cond_wait_bql(&s->cmd.done);
        } else {
            aio_poll(qemu_get_aio_context(), true);
        }
    }
    guard->engaged_in_io = was_engaged;
}

/* Copy the request: the slot is the driver's again when ERR has been read. */
static int copy_request(Pvrdma *s)
{
    if (!rdma_hca_read_ram(pvrdma_ram(s), s->request, &s->cmd.req,
                           sizeof(s->cmd.req))) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: the page of commands at 0x%"
                      PRIx64 " is not in RAM\n", s->request);
        return -EFAULT;
    }
    if (!command_of(s)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: unknown command %u\n",
                      le32_to_cpu(s->cmd.req.head.cmd));
        return -ENOTSUP;
    }
    return 0;
}

void pvrdma_cmd_request(Pvrdma *s)
{
    bool prompt;
    int ret;

    if (!pvrdma_is_active(s)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: a command before ACTIVATE, or "
                      "without bus mastering\n");
        s->err = EPERM;
        return;
    }
    rdma_hca_enter(&s->hca);
    /* The driver has given up waiting for the last one. */
    pvrdma_cmd_forget(s);
    ret = copy_request(s);
    s->err = -ret;
    if (ret) {
        rdma_hca_leave(&s->hca);
        return;
    }
    prompt = command_of(s)->prompt;
    s->cmd.busy = true;
    pvrdma_cmd_run(s);
    rdma_hca_leave(&s->hca);
    if (prompt) {
        wait_until_done(s);
    }
}
