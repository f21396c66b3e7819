/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control queue: executes one command after the other and responds to each.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "ctrl.h"

/* What a device must have for a command */
typedef enum Need {
    NEED_NOTHING,                   /* the command is one of the RFC's */
    NEED_V1,                        /* F_VERSION_1, like all values below */
    NEED_SRQS,
    NEED_MWS,
    NEED_MCAST,
    NEED_REREG,
    NEED_COUNTERS,
    NEED_QP_COUNTERS,
    NEED_DIRECT,
} Need;

typedef struct Command {
    const char *name;
    VirtIORdmaHandler *handler;     /* NULL: @destroy */
    /* Bytes without those of command and status */
    uint16_t req_min;               /* missing later bytes read as 0 */
    uint16_t rsp_size;              /* with less room the command fails */
    Need need;
    /* A verb for the object whose number is the request */
    int (*destroy)(RdmaHca *hca, uint32_t id);
} Command;

static bool has(VirtIORdma *s, Need need)
{
    switch (need) {
    case NEED_SRQS:
        return s->hca.limits.max_srq;
    case NEED_MWS:
        return s->hca.limits.max_mw;
    case NEED_MCAST:
        return s->hca.limits.max_mcast_grp;
    case NEED_REREG:
        return rdma_hca_has_rereg(&s->hca);
    case NEED_COUNTERS:
        return rdma_hca_has_counters(&s->hca);
    case NEED_QP_COUNTERS:
        return rdma_hca_has_qp_counters(&s->hca);
    case NEED_DIRECT:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_DIRECT);
    default:
        return true;
    }
}

#define COUNTERS_SIZE (VIRTIO_RDMA_NUM_COUNTERS * sizeof(uint64_t))
#define SIZE(name) sizeof(struct virtio_rdma_##name)
/* The fields of a request up to @field */
#define UNTIL(name, field) offsetof(struct virtio_rdma_##name, field)
#define CMD(cmd, ...) [VIRTIO_RDMA_CMD_##cmd] = { #cmd, __VA_ARGS__ }
#define DESTROY(cmd, verb, ...) \
    CMD(cmd, .req_min = sizeof(uint32_t), .destroy = verb, ## __VA_ARGS__)

static const Command commands[VIRTIO_RDMA_CMD_MAX + 1] = {
    CMD(QUERY_PORT, virtio_rdma_port_query, SIZE(query_port_req),
        SIZE(query_port_rsp)),
    CMD(CREATE_CQ, virtio_rdma_cq_create, UNTIL(create_cq_req, flags),
        SIZE(cqn)),
    DESTROY(DESTROY_CQ, rdma_hca_cq_destroy),
    CMD(CREATE_PD, virtio_rdma_pd_create, 0, SIZE(pdn)),
    DESTROY(DESTROY_PD, rdma_hca_pd_destroy),
    CMD(GET_DMA_MR, virtio_rdma_mr_get_dma, SIZE(get_dma_mr_req),
        SIZE(mr_rsp)),
    CMD(CREATE_MR, virtio_rdma_mr_create, SIZE(create_mr_req), SIZE(mr_rsp)),
    CMD(MAP_MR_SG, virtio_rdma_mr_map_sg, SIZE(map_mr_sg_req),
        SIZE(map_mr_sg_rsp)),
    CMD(REG_USER_MR, virtio_rdma_mr_reg_user,
        UNTIL(reg_user_mr_req, page_shift), SIZE(mr_rsp)),
    DESTROY(DEREG_MR, rdma_hca_mr_dereg),
    CMD(CREATE_QP, virtio_rdma_qp_create, SIZE(create_qp_req), SIZE(qpn)),
    CMD(MODIFY_QP, virtio_rdma_qp_modify, SIZE(modify_qp_req)),
    CMD(QUERY_QP, virtio_rdma_qp_query, SIZE(query_qp_req), SIZE(qp_attr)),
    DESTROY(DESTROY_QP, rdma_hca_qp_destroy),
    CMD(QUERY_PKEY, virtio_rdma_pkey_query, SIZE(query_pkey_req),
        SIZE(query_pkey_rsp)),
    CMD(ADD_GID, virtio_rdma_gid_add, UNTIL(add_gid_req, vlan)),
    CMD(DEL_GID, virtio_rdma_gid_del, SIZE(del_gid_req)),
    CMD(REQ_NOTIFY_CQ, virtio_rdma_cq_req_notify, SIZE(req_notify_cq_req)),
    CMD(CREATE_SRQ, virtio_rdma_srq_create, UNTIL(create_srq_req, flags),
        SIZE(srqn), NEED_SRQS),
    CMD(MODIFY_SRQ, virtio_rdma_srq_modify, SIZE(modify_srq_req), 0,
        NEED_SRQS),
    CMD(QUERY_SRQ, virtio_rdma_srq_query, SIZE(srqn), SIZE(query_srq_rsp),
        NEED_SRQS),
    DESTROY(DESTROY_SRQ, rdma_hca_srq_destroy, .need = NEED_SRQS),
    CMD(ALLOC_MW, virtio_rdma_mw_alloc, SIZE(alloc_mw_req),
        SIZE(alloc_mw_rsp), NEED_MWS),
    DESTROY(DEALLOC_MW, rdma_hca_mw_dealloc, .need = NEED_MWS),
    CMD(RESIZE_CQ, virtio_rdma_cq_resize, UNTIL(resize_cq_req, queue_pages), 0,
        NEED_V1),
    CMD(ATTACH_MCAST, virtio_rdma_mcast_attach, SIZE(mcast_req), 0,
        NEED_MCAST),
    CMD(DETACH_MCAST, virtio_rdma_mcast_detach, SIZE(mcast_req), 0,
        NEED_MCAST),
    CMD(QUERY_COUNTERS, virtio_rdma_counters_query, SIZE(query_counters_req),
        COUNTERS_SIZE, NEED_COUNTERS),
    CMD(REREG_MR, virtio_rdma_mr_rereg, UNTIL(rereg_mr_req, mr.page_shift),
        SIZE(mr_rsp), NEED_REREG),
    CMD(SET_SHADOW, virtio_rdma_doorbell_set_shadow, SIZE(set_shadow_req), 0,
        NEED_DIRECT),
    CMD(QUERY_QP_COUNTERS, virtio_rdma_qp_counters_query,
        UNTIL(query_qp_counters_req, qpn[1]), COUNTERS_SIZE, NEED_QP_COUNTERS),
};

QEMU_BUILD_BUG_ON(SIZE(modify_qp_req) > VIRTIO_RDMA_REQ_ROOM);
QEMU_BUILD_BUG_ON(SIZE(query_qp_counters_req) > VIRTIO_RDMA_REQ_ROOM);
QEMU_BUILD_BUG_ON(SIZE(query_port_rsp) > VIRTIO_RDMA_RSP_ROOM);
QEMU_BUILD_BUG_ON(COUNTERS_SIZE > VIRTIO_RDMA_RSP_ROOM);
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
    if (cmd > VIRTIO_RDMA_CMD_MAX || !commands[cmd].name) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: unknown control command "
                      "%u: the last one is %u\n", cmd, VIRTIO_RDMA_CMD_MAX);
        return false;
    }
    if (commands[cmd].need && !virtio_rdma_is_v1(s)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s from a driver that did "
                      "not accept F_VERSION_1\n", commands[cmd].name);
        return false;
    }
    if (!has(s, commands[cmd].need)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s: %s\n",
                      commands[cmd].name, commands[cmd].need == NEED_DIRECT ?
                      "the driver did not accept F_DIRECT" :
                      "this device does not have the command");
        return false;
    }
    return true;
}

/* Mandatory bytes of a request besides the command */
static size_t req_min(VirtIORdma *s, uint8_t cmd)
{
    size_t min = commands[cmd].req_min;

    return s->is_demo ? virtio_rdma_demo_request_min(cmd, min) : min;
}

/* Bytes of a response besides the status */
static size_t rsp_size(VirtIORdma *s, uint8_t cmd)
{
    if (s->is_demo) {
        return virtio_rdma_demo_response_size(cmd, commands[cmd].rsp_size);
    }
    return cmd == VIRTIO_RDMA_CMD_CREATE_QP &&
           virtio_rdma_has(s, VIRTIO_RDMA_F_HOST_NUMBERS)
           ? SIZE(create_qp_rsp) : commands[cmd].rsp_size;
}

static int handle(VirtIORdma *s, uint8_t cmd, const void *req, void *rsp)
{
    const Command *c = &commands[cmd];
    /* The number of the object, if the request begins with it */
    uint32_t id = ldl_le_p(req);
    bool of_qp = cmd == VIRTIO_RDMA_CMD_MODIFY_QP ||
                 cmd == VIRTIO_RDMA_CMD_QUERY_QP ||
                 cmd == VIRTIO_RDMA_CMD_DESTROY_QP;
    int ret = rdma_hca_command_begin(&s->hca, cmd - 1, s->ctrl_pending,
                                     of_qp ? id : RDMA_NO_QPN);

    if (ret) {
        return ret;
    }
    return c->destroy ? c->destroy(&s->hca, id) : c->handler(s, req, rsp);
}

/* Execute the command in @elem. Sets @rsp if this returns 0. */
static int execute(VirtIORdma *s, const VirtQueueElement *elem, uint8_t *cmd,
                   uint8_t *rsp)
{
    uint8_t buf[1 + VIRTIO_RDMA_REQ_ROOM] = {};
    size_t room, len;
    int ret;

    len = iov_to_buf(elem->out_sg, elem->out_num, 0, buf, sizeof(buf));
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
    if (len - 1 < req_min(s, *cmd) || room - 1 < rsp_size(s, *cmd)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s: %zu request bytes "
                      "(need %zu), room for %zu response bytes (need %zu)\n",
                      cmd_name(*cmd), len - 1, req_min(s, *cmd), room - 1,
                      rsp_size(s, *cmd));
        return -EINVAL;
    }
    if (s->is_demo) {
        virtio_rdma_demo_get_request(*cmd, &buf[1]);
    }

    if (s->ctrl_pending && memcmp(s->ctrl_pending, buf, sizeof(buf))) {
        /* The driver has changed the request in its memory: start again. */
        virtio_rdma_ctrl_forget(s);
    }
    ret = handle(s, *cmd, &buf[1], rsp);
    if (ret == -EINPROGRESS && !s->ctrl_pending) {
        s->ctrl_pending = g_memdup2(buf, sizeof(buf));
    }
    return ret;
}

/* @buf: the response after the byte of the status */
static void answer(VirtIORdma *s, VirtQueue *vq, const VirtQueueElement *elem,
                   uint8_t cmd, int ret, uint8_t *buf)
{
    size_t len = ret ? 1 : 1 + rsp_size(s, cmd);

    if (s->is_demo && !ret) {
        virtio_rdma_demo_put_response(cmd, &buf[1]);
    }
    buf[0] = status_of(s, ret);
    trace_virtio_rdma_ctrl(s, cmd_name(cmd), ret, buf[0]);
    /* A failed command may have room for less than the response. */
    len = iov_from_buf(elem->in_sg, elem->in_num, 0, buf, len);
    virtqueue_push(vq, elem, len);
    rdma_vq_notify(&s->notify, vq);
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

    if (s->ctrl_waiting || !virtio_rdma_ring_check(s, vq)) {
        return;
    }
    rdma_hca_turn_begin(&s->hca);
    while (rdma_hca_turn_goes_on(&s->hca)) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(vq, sizeof(VirtQueueElement));
        uint8_t buf[1 + VIRTIO_RDMA_RSP_ROOM] = {};
        uint8_t cmd;
        int ret;

        if (!elem) {
            return;
        }
        ret = execute(s, elem, &cmd, &buf[1]);
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
        answer(s, vq, elem, cmd, ret, buf);
    }
    rdma_hca_bh_schedule(&s->hca);
}

void virtio_rdma_ctrl_forget(VirtIORdma *s)
{
    rdma_hca_command_end(&s->hca);
    g_free(s->ctrl_pending);
    s->ctrl_pending = NULL;
    s->ctrl_waiting = false;
}
