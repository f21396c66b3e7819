/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command slot: executes one command at a time.
 */
#include "qemu/osdep.h"
#include "qemu/aio.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "hw/core/cpu.h"
#include "trace.h"
#include "int.h"

/* A command that faults do not know */
#define NO_FAULTS RDMA_COMMAND__MAX
/* How long a thread that waits for a command sleeps */
#define WAIT_MS 1

/* What the driver does after it has read ERR */
typedef enum Kind {
    /* The driver waits for the interrupt of the reply. */
    WAIT,
    /* The driver goes on: the command has taken effect, or has failed. */
    SYNC,
    /* The driver frees the memory of the object, even if the command fails. */
    DESTROY,
} Kind;

typedef struct Command {
    const char *name;
    PvrdmaHandler *handler;
    Kind kind;
    RdmaCommand fault;
} Command;

#define COMMAND(cmd, kind, handler, fault) \
    [PVRDMA_CMD_##cmd] = { #cmd, handler, kind, fault }

static const Command commands[PVRDMA_NUM_CMDS] = {
    COMMAND(QUERY_PORT, WAIT, pvrdma_query_port, RDMA_COMMAND_QUERY_PORT),
    COMMAND(QUERY_PKEY, WAIT, pvrdma_query_pkey, RDMA_COMMAND_QUERY_PKEY),
    COMMAND(CREATE_PD, WAIT, pvrdma_create_pd, RDMA_COMMAND_CREATE_PD),
    COMMAND(DESTROY_PD, DESTROY, pvrdma_destroy_pd, RDMA_COMMAND_DESTROY_PD),
    COMMAND(CREATE_MR, WAIT, pvrdma_create_mr, RDMA_COMMAND_REG_USER_MR),
    COMMAND(DESTROY_MR, DESTROY, pvrdma_destroy_mr, RDMA_COMMAND_DEREG_MR),
    COMMAND(CREATE_CQ, WAIT, pvrdma_create_cq, RDMA_COMMAND_CREATE_CQ),
    COMMAND(RESIZE_CQ, WAIT, pvrdma_resize_cq, RDMA_COMMAND_RESIZE_CQ),
    COMMAND(DESTROY_CQ, DESTROY, pvrdma_destroy_cq, RDMA_COMMAND_DESTROY_CQ),
    COMMAND(CREATE_QP, WAIT, pvrdma_create_qp, RDMA_COMMAND_CREATE_QP),
    COMMAND(MODIFY_QP, WAIT, pvrdma_modify_qp, RDMA_COMMAND_MODIFY_QP),
    COMMAND(QUERY_QP, WAIT, pvrdma_query_qp, RDMA_COMMAND_QUERY_QP),
    COMMAND(DESTROY_QP, DESTROY, pvrdma_destroy_qp, RDMA_COMMAND_DESTROY_QP),
    COMMAND(CREATE_UC, WAIT, pvrdma_create_uc, NO_FAULTS),
    COMMAND(DESTROY_UC, DESTROY, pvrdma_destroy_uc, NO_FAULTS),
    COMMAND(CREATE_BIND, SYNC, pvrdma_create_bind, RDMA_COMMAND_ADD_GID),
    COMMAND(DESTROY_BIND, SYNC, pvrdma_destroy_bind, RDMA_COMMAND_DEL_GID),
    COMMAND(CREATE_SRQ, WAIT, pvrdma_create_srq, RDMA_COMMAND_CREATE_SRQ),
    COMMAND(MODIFY_SRQ, SYNC, pvrdma_modify_srq, RDMA_COMMAND_MODIFY_SRQ),
    COMMAND(QUERY_SRQ, WAIT, pvrdma_query_srq, RDMA_COMMAND_QUERY_SRQ),
    COMMAND(DESTROY_SRQ, DESTROY, pvrdma_destroy_srq, RDMA_COMMAND_DESTROY_SRQ),
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

/*
 * No fault delays a command that the driver does not wait for, because the vCPU
 * would stand still. An object is destroyed even if a fault strikes, because
 * the driver frees its memory. The fault then only sets ERR.
 */
static int execute(Pvrdma *s, const Command *command, void *rsp)
{
    int ret = command->fault == NO_FAULTS
              ? 0 : rdma_hca_command_begin(&s->hca, command->fault,
                                           s->cmd.again, qpn_of(s));

    s->cmd.again = true;
    if (ret == -EINPROGRESS && command->kind != WAIT) {
        ret = 0;
    }
    if (ret && command->kind == DESTROY) {
        s->cmd.fault = ret;
        ret = 0;
    }
    ret = ret ?: command->handler(s, &s->cmd.req, rsp);
    return ret == -EINPROGRESS ? ret : s->cmd.fault ?: ret;
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
    bool read_err = s->cmd.late && command->kind == WAIT;

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
    if (command->kind == WAIT) {
        pvrdma_interrupt(s, PVRDMA_VECTOR_RESPONSE);
    }
}

/* A command that reads a long page list continues in the next turn. */
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
    rdma_hca_turn_begin(&s->hca);
    if (command->kind == WAIT && !rdma_hca_turn_goes_on(&s->hca)) {
        rdma_hca_bh_schedule(&s->hca);
        return;
    }
    ret = execute(s, command, &rsp);
    if (ret == -EINPROGRESS) {
        s->cmd.waiting = !rdma_hca_pages_reading(&s->hca);
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
    rdma_hca_command_end(&s->hca);
    s->cmd.busy = false;
    s->cmd.again = false;
    s->cmd.late = false;
    s->cmd.waiting = false;
    s->cmd.fault = 0;
    s->cmd.drop = (PvrdmaDrop) {};
    s->cmd.ended++;
    qemu_cond_broadcast(&s->cmd.done);
}

bool pvrdma_cmd_load(Pvrdma *s)
{
    /* The source has tried the command, and the driver may have read ERR. */
    s->cmd.again = s->cmd.late = s->cmd.busy;
    return !s->cmd.busy || command_of(s);
}

static void run_inside(Pvrdma *s)
{
    rdma_hca_enter(&s->hca);
    pvrdma_cmd_run(s);
    rdma_hca_leave(&s->hca);
}

static int is_other_in_io(DeviceState *dev, void *opaque)
{
    return dev != opaque && dev->mem_reentrancy_guard.engaged_in_io ? -1 : 0;
}

/*
 * May this thread lend the BQL? Not if the DMA or interrupt of another device
 * has written REQUEST: a vCPU could unplug that device, which is on the stack.
 */
static bool may_lend_bql(Pvrdma *s)
{
    return current_cpu &&
           !qbus_walk_children(sysbus_get_default(), is_other_in_io, NULL,
                               NULL, NULL, DEVICE(s));
}

/*
 * The command must be done when this register access returns. A vCPU lends the
 * BQL to other threads while it waits. The reentrancy guard is off then,
 * because other vCPUs may access registers.
 *
 * This thread also runs the main loop's work for the command, because the main
 * loop may wait for this vCPU to stop, or for RCU readers such as this thread.
 * The device may be unplugged meanwhile.
 *
 * @ended: s->cmd.ended before the command. Another vCPU may have requested the
 * next command by now, which may take any time.
 */
static void wait_until_done(Pvrdma *s, uint32_t ended)
{
    MemReentrancyGuard *guard = &DEVICE(s)->mem_reentrancy_guard;
    bool was_engaged = guard->engaged_in_io;
    bool lend;

    if (s->cmd.ended != ended) {
        return;
    }
    lend = may_lend_bql(s);
    object_ref(OBJECT(s));
    guard->engaged_in_io = was_engaged && !lend;
    while (s->cmd.ended == ended) {
        if (lend) {
            qemu_cond_timedwait_bql(&s->cmd.done, WAIT_MS);
        } else {
            g_usleep(WAIT_MS * 1000);
        }
        aio_poll(qemu_get_aio_context(), false);
        if (s->cmd.ended == ended) {
            run_inside(s);
        }
    }
    guard->engaged_in_io = was_engaged;
    object_unref(OBJECT(s));
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
    uint32_t ended;
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
    ended = s->cmd.ended;
    ret = copy_request(s);
    s->err = -ret;
    if (!ret) {
        s->cmd.busy = true;
        pvrdma_cmd_run(s);
        s->cmd.late = true;
    }
    rdma_hca_leave(&s->hca);
    if (!ret && command_of(s)->kind != WAIT) {
        wait_until_done(s, ended);
    }
}
