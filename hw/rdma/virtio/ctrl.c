/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control queue: executes one command after the other and responds to each.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "ctrl.h"

typedef struct Command {
    const char *name;
    VirtIORdmaHandler *handler;
    /* Does a device of version 1 have the command? NULL: the RFC has it. */
    bool (*has)(VirtIORdma *s);
} Command;

static bool always(VirtIORdma *s)
{
    return true;
}

static bool has_srqs(VirtIORdma *s)
{
    return s->hca.limits.max_srq;
}

static bool has_mws(VirtIORdma *s)
{
    return s->hca.limits.max_mw;
}

static bool has_mcast(VirtIORdma *s)
{
    return s->hca.limits.max_mcast_grp;
}

static bool has_rereg(VirtIORdma *s)
{
    return s->hca.bc->modify_mr;
}

static bool has_counters(VirtIORdma *s)
{
    return s->hca.bc->query_counters;
}

static bool has_qp_counters(VirtIORdma *s)
{
    return has_counters(s) && s->hca.bc->set_qp_counters;
}

static bool has_shadows(VirtIORdma *s)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT);
}

#define CMD(cmd, ...) [VIRTIO_RDMA_CMD_##cmd] = { #cmd, __VA_ARGS__ }

static const Command commands[VIRTIO_RDMA_CMD_MAX + 1] = {
    CMD(QUERY_PORT, virtio_rdma_port_query),
    CMD(CREATE_CQ, virtio_rdma_cq_create),
    CMD(DESTROY_CQ, virtio_rdma_cq_destroy),
    CMD(CREATE_PD, virtio_rdma_pd_create),
    CMD(DESTROY_PD, virtio_rdma_pd_destroy),
    CMD(GET_DMA_MR, virtio_rdma_mr_get_dma),
    CMD(CREATE_MR, virtio_rdma_mr_create),
    CMD(MAP_MR_SG, virtio_rdma_mr_map_sg),
    CMD(REG_USER_MR, virtio_rdma_mr_reg_user),
    CMD(DEREG_MR, virtio_rdma_mr_dereg),
    CMD(CREATE_QP, virtio_rdma_qp_create),
    CMD(MODIFY_QP, virtio_rdma_qp_modify),
    CMD(QUERY_QP, virtio_rdma_qp_query),
    CMD(DESTROY_QP, virtio_rdma_qp_destroy),
    CMD(QUERY_PKEY, virtio_rdma_pkey_query),
    CMD(ADD_GID, virtio_rdma_gid_add),
    CMD(DEL_GID, virtio_rdma_gid_del),
    CMD(REQ_NOTIFY_CQ, virtio_rdma_cq_req_notify),
    CMD(CREATE_SRQ, virtio_rdma_srq_create, has_srqs),
    CMD(MODIFY_SRQ, virtio_rdma_srq_modify, has_srqs),
    CMD(QUERY_SRQ, virtio_rdma_srq_query, has_srqs),
    CMD(DESTROY_SRQ, virtio_rdma_srq_destroy, has_srqs),
    CMD(ALLOC_MW, virtio_rdma_mw_alloc, has_mws),
    CMD(DEALLOC_MW, virtio_rdma_mw_dealloc, has_mws),
    CMD(ATTACH_MCAST, virtio_rdma_mcast_attach, has_mcast),
    CMD(DETACH_MCAST, virtio_rdma_mcast_detach, has_mcast),
    CMD(REREG_MR, virtio_rdma_mr_rereg, has_rereg),
    CMD(RESIZE_CQ, virtio_rdma_cq_resize, always),
    CMD(QUERY_COUNTERS, virtio_rdma_counters_query, has_counters),
    CMD(SET_SHADOW, virtio_rdma_doorbell_set_shadow, has_shadows),
    CMD(QUERY_QP_COUNTERS, virtio_rdma_qp_counters_query, has_qp_counters),
};

QEMU_BUILD_BUG_ON((int)RDMA_COMMAND_QUERY_PORT + 1 !=
                  (int)VIRTIO_RDMA_CMD_QUERY_PORT);
QEMU_BUILD_BUG_ON((int)RDMA_COMMAND_RESIZE_CQ + 1 !=
                  (int)VIRTIO_RDMA_CMD_RESIZE_CQ);
QEMU_BUILD_BUG_ON((int)RDMA_COMMAND__MAX != VIRTIO_RDMA_CMD_MAX);

static uint8_t status_of(VirtIORdma *s, int ret)
{
    if (ret >= 0) {
        return VIRTIO_RDMA_S_OK;
    }
    if (!virtio_rdma_is_v1(s)) {
        return VIRTIO_RDMA_S_ERR;
    }
    switch (-ret) {
    case EINVAL:
    case ERANGE:
    case E2BIG:
    case EFAULT:
        return VIRTIO_RDMA_S_INVAL;
    case ENOMEM:
    case ENOSPC:
        return VIRTIO_RDMA_S_NOMEM;
    case EBUSY:
    case EEXIST:
        return VIRTIO_RDMA_S_BUSY;
    case ENOENT:
        return VIRTIO_RDMA_S_NOENT;
    case EPERM:
    case EACCES:
        return VIRTIO_RDMA_S_PERM;
    case ENOSYS:
    case ENOTSUP:
        return VIRTIO_RDMA_S_NOTSUPP;
    default:
        return VIRTIO_RDMA_S_ERR;
    }
}

static const char *cmd_name(uint8_t cmd)
{
    return cmd <= VIRTIO_RDMA_CMD_MAX && commands[cmd].name
           ? commands[cmd].name : "unknown";
}

static bool have_cmd(VirtIORdma *s, uint8_t cmd)
{
    if (cmd > VIRTIO_RDMA_CMD_MAX || !commands[cmd].handler) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: unknown control command "
                      "%u: the last one is %u\n", cmd, VIRTIO_RDMA_CMD_MAX);
        return false;
    }
    if (commands[cmd].has && !virtio_rdma_is_v1(s)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s from a driver that did "
                      "not accept F_VERSION_1\n", commands[cmd].name);
        return false;
    }
    if (commands[cmd].has && !commands[cmd].has(s)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s: the device does not "
                      "have the command, or only with F_DIRECT\n",
                      commands[cmd].name);
        return false;
    }
    return true;
}

/* Bytes of a response besides the status */
static size_t rsp_size(VirtIORdma *s, uint8_t cmd)
{
    const VirtIORdmaCmdLayout *layout = &virtio_rdma_codec_cmds[cmd];

    return layout->rsp_host && virtio_rdma_has(s, VIRTIO_RDMA_F_HOST_NUMBERS)
           ? layout->rsp_host : layout->rsp_min;
}

/* The QP that a command is about, or RDMA_NO_QPN */
static uint32_t qpn_of(uint8_t cmd, const VirtIORdmaReq *req)
{
    switch (cmd) {
    case VIRTIO_RDMA_CMD_MODIFY_QP:
    case VIRTIO_RDMA_CMD_QUERY_QP:
        return req->qp.qpn;
    case VIRTIO_RDMA_CMD_DESTROY_QP:
        return req->destroy.id;
    default:
        return RDMA_NO_QPN;
    }
}

static int handle(VirtIORdma *s, uint8_t cmd, const VirtIORdmaReq *req,
                  VirtIORdmaRsp *rsp)
{
    int ret = rdma_hca_command_begin(&s->hca, cmd - 1, s->ctrl_pending,
                                     qpn_of(cmd, req));

    return ret ?: commands[cmd].handler(s, req, rsp);
}

/* Execute the command in @elem. Sets @rsp if this returns 0. */
static int execute(VirtIORdma *s, const VirtQueueElement *elem, uint8_t *cmd,
                   VirtIORdmaRsp *rsp)
{
    uint8_t buf[1 + VIRTIO_RDMA_REQ_ROOM] = {};
    const VirtIORdmaCmdLayout *layout;
    VirtIORdmaReq req;
    size_t room, len;
    int ret;

    len = virtio_rdma_codec_read(elem, buf, sizeof(buf));
    room = iov_size(elem->in_sg, elem->in_num);
    *cmd = buf[0];

    if (room == 0) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: control command %u (%s) "
                      "has no writable byte for the status\n", *cmd,
                      cmd_name(*cmd));
        return -EINVAL;
    }
    if (len == 0) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: empty control command\n");
        return -EINVAL;
    }
    if (!have_cmd(s, *cmd)) {
        return -ENOTSUP;
    }
    layout = &virtio_rdma_codec_cmds[*cmd];
    if (len - 1 < layout->req_min || room - 1 < rsp_size(s, *cmd)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s has %zu request and "
                      "%zu response bytes, less than %u or %zu\n",
                      cmd_name(*cmd), len - 1, room - 1, layout->req_min,
                      rsp_size(s, *cmd));
        return -EINVAL;
    }

    if (s->ctrl_pending && memcmp(s->ctrl_pending, buf, sizeof(buf))) {
        /* The driver has changed the request in its memory: start again. */
        virtio_rdma_ctrl_forget(s);
    }
    virtio_rdma_codec_get_request(*cmd, &buf[1], &req);
    ret = handle(s, *cmd, &req, rsp);
    if (ret == -EINPROGRESS && !s->ctrl_pending) {
        s->ctrl_pending = g_memdup2(buf, sizeof(buf));
    }
    return ret;
}

static void answer(VirtIORdma *s, VirtQueue *vq, const VirtQueueElement *elem,
                   uint8_t cmd, int ret, const VirtIORdmaRsp *rsp)
{
    uint8_t buf[1 + VIRTIO_RDMA_RSP_ROOM] = { status_of(s, ret) };
    size_t len = 1;

    trace_virtio_rdma_ctrl(s, cmd_name(cmd), ret, buf[0]);
    if (!ret) {
        virtio_rdma_codec_put_response(cmd, &buf[1], rsp);
        len += rsp_size(s, cmd);
    }
    /* A failed command may have room for less than the response. */
    len = virtio_rdma_codec_write(elem, buf, len);
    virtqueue_push(vq, elem, len);
    virtio_rdma_vq_notify(s, vq);
}

/*
 * A turn ends when its budget is used up; the bottom half starts the next one,
 * so that other work of the main loop can run. Commands and entries of page
 * tables are paid from the budget. A command with a longer page list is put
 * back and popped again in the next turn, so that a command in progress has no
 * state to migrate. A command that waits for the backend is popped again after
 * RdmaHcaOps.resume(). Commands also wait while much memory of destroyed
 * objects is not freed yet.
 */
void virtio_rdma_ctrl_run(VirtIORdma *s)
{
    VirtQueue *vq = virtio_get_queue(VIRTIO_DEVICE(s), VIRTIO_RDMA_CTRL_VQ);

    if (s->ctrl_waiting || !virtio_rdma_ring_check(s, vq, &s->ctrl_seen)) {
        return;
    }
    s->hca.cmd_budget = RDMA_TURN_BUDGET;
    while (s->hca.cmd_budget && !rdma_backend_frees_much()) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(vq, sizeof(VirtQueueElement));
        VirtIORdmaRsp rsp = {};
        uint8_t cmd;
        int ret;

        if (!elem) {
            return;
        }
        ret = execute(s, elem, &cmd, &rsp);
        if (ret == -EINPROGRESS) {
            virtio_rdma_vq_unpop(s, vq, elem);
            if (rdma_hca_pages_reading(&s->hca)) {
                break;
            }
            s->ctrl_waiting = true;
            return;
        }
        virtio_rdma_ctrl_forget(s);
        rdma_work_pay(&s->hca.cmd_budget, RDMA_WORK_COMMAND);
        answer(s, vq, elem, cmd, ret, &rsp);
    }
    qemu_bh_schedule(s->hca.bh);
}

void virtio_rdma_ctrl_forget(VirtIORdma *s)
{
    rdma_hca_pages_drop(&s->hca);
    rdma_hca_command_end(&s->hca);
    g_free(s->ctrl_pending);
    s->ctrl_pending = NULL;
    s->ctrl_waiting = false;
}

void virtio_rdma_ctrl_resume(VirtIORdma *s)
{
    s->ctrl_waiting = false;
}
