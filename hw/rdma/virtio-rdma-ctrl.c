/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control queue: takes requests apart, runs them one after the other and
 * answers every one.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

#define PHYS_STATE_DISABLED 3
#define PHYS_STATE_LINK_UP  5
/* Connection management (CM) is supported. */
#define PORT_CAP_CM         (1u << 16)
#define MAX_VLAN            4094

static int query_port(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    RdmaPortAttr *attr = &c->rsp.port.attr;

    if (c->req.query_port.port != VIRTIO_RDMA_PORT) {
        return -EINVAL;
    }
    s->bc->query_port(s->backend, attr);
    c->rsp.port.gid_tbl_len = s->limits.gid_table_len;
    c->rsp.port.pkey_tbl_len = 1;
    c->rsp.port.port_cap_flags = PORT_CAP_CM;
    c->rsp.port.phys_state = attr->state == RDMA_PORT_ACTIVE
                             ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED;
    return 0;
}

static int query_pkey(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    if (c->req.query_pkey.port != VIRTIO_RDMA_PORT ||
        c->req.query_pkey.index != 0) {
        return -EINVAL;
    }
    c->rsp.query_pkey.pkey = RDMA_DEFAULT_PKEY;
    return 0;
}

static int add_gid(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    static const uint8_t zero[RDMA_GID_LEN];
    uint32_t index = c->req.gid.index;
    uint16_t vlan = RDMA_NO_VLAN;

    if (c->req.gid.port != VIRTIO_RDMA_PORT ||
        index >= s->limits.gid_table_len) {
        return -EINVAL;
    }
    if (!memcmp(c->req.gid.gid, zero, sizeof(zero))) {
        int ret = s->bc->del_gid(s->backend, index);

        return ret == -ENOENT ? 0 : ret;
    }
    if (c->req.gid.gid_type != VIRTIO_RDMA_GID_TYPE_ROCE_V2) {
        return -ENOTSUP;
    }
    if (virtio_rdma_has(s, VIRTIO_RDMA_F_GID_VLAN)) {
        vlan = c->req.gid.vlan;
    }
    if (vlan > MAX_VLAN) {
        return -EINVAL;
    }
    return s->bc->add_gid(s->backend, index, c->req.gid.gid, vlan);
}

static int del_gid(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    if (c->req.gid.port != VIRTIO_RDMA_PORT ||
        c->req.gid.index >= s->limits.gid_table_len) {
        return -EINVAL;
    }
    return s->bc->del_gid(s->backend, c->req.gid.index);
}

static int query_counters(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    if (c->req.query_port.port != VIRTIO_RDMA_PORT) {
        return -EINVAL;
    }
    virtio_rdma_get_counters(s, c->rsp.counters);
    return 0;
}

#define CMD(cmd, exec, finish) \
    [VIRTIO_RDMA_CMD_##cmd] = { #cmd, 0, exec, finish }
/* A command of a feature. */
#define CMD_OF(feature, cmd, exec, finish) \
    [VIRTIO_RDMA_CMD_##cmd] = { #cmd, 1ULL << VIRTIO_RDMA_F_##feature, exec, \
                                finish }

static const VirtIORdmaHandler handlers[VIRTIO_RDMA_CMD_MAX + 1] = {
    CMD(QUERY_PORT, query_port, NULL),
    CMD(CREATE_CQ, virtio_rdma_create_cq, virtio_rdma_create_cq_done),
    CMD(DESTROY_CQ, virtio_rdma_destroy_cq, virtio_rdma_destroy_cq_done),
    CMD(CREATE_PD, virtio_rdma_create_pd, virtio_rdma_create_pd_done),
    CMD(DESTROY_PD, virtio_rdma_destroy_pd, virtio_rdma_destroy_pd_done),
    CMD(GET_DMA_MR, virtio_rdma_get_dma_mr, virtio_rdma_create_mr_done),
    CMD(CREATE_MR, virtio_rdma_create_mr, virtio_rdma_create_mr_done),
    CMD(MAP_MR_SG, virtio_rdma_map_mr_sg, virtio_rdma_map_mr_sg_done),
    CMD(REG_USER_MR, virtio_rdma_reg_user_mr, virtio_rdma_create_mr_done),
    CMD(DEREG_MR, virtio_rdma_dereg_mr, virtio_rdma_dereg_mr_done),
    CMD(CREATE_QP, virtio_rdma_create_qp, virtio_rdma_create_qp_done),
    CMD(MODIFY_QP, virtio_rdma_modify_qp, virtio_rdma_modify_qp_done),
    CMD(QUERY_QP, virtio_rdma_query_qp, virtio_rdma_query_qp_done),
    CMD(DESTROY_QP, virtio_rdma_destroy_qp, virtio_rdma_destroy_qp_done),
    CMD(QUERY_PKEY, query_pkey, NULL),
    CMD(ADD_GID, add_gid, NULL),
    CMD(DEL_GID, del_gid, NULL),
    CMD(REQ_NOTIFY_CQ, virtio_rdma_req_notify_cq, NULL),
    CMD_OF(SRQ, CREATE_SRQ, virtio_rdma_create_srq,
           virtio_rdma_create_srq_done),
    CMD_OF(SRQ, MODIFY_SRQ, virtio_rdma_modify_srq, NULL),
    CMD_OF(SRQ, QUERY_SRQ, virtio_rdma_query_srq,
           virtio_rdma_query_srq_done),
    CMD_OF(SRQ, DESTROY_SRQ, virtio_rdma_destroy_srq,
           virtio_rdma_destroy_srq_done),
    CMD_OF(MW, ALLOC_MW, virtio_rdma_alloc_mw, virtio_rdma_alloc_mw_done),
    CMD_OF(MW, DEALLOC_MW, virtio_rdma_dealloc_mw,
           virtio_rdma_dealloc_mw_done),
    CMD_OF(MCAST, ATTACH_MCAST, virtio_rdma_attach_mcast, NULL),
    CMD_OF(MCAST, DETACH_MCAST, virtio_rdma_detach_mcast, NULL),
    CMD_OF(REREG_MR, REREG_MR, virtio_rdma_rereg_mr,
           virtio_rdma_rereg_mr_done),
    CMD_OF(CQ_DEEP, RESIZE_CQ, virtio_rdma_resize_cq, NULL),
    CMD_OF(COUNTERS, QUERY_COUNTERS, query_counters, NULL),
};

static uint8_t status_of(VirtIORdma *s, int ret)
{
    if (ret >= 0) {
        return VIRTIO_RDMA_S_OK;
    }
    if (!virtio_rdma_has(s, VIRTIO_RDMA_F_EXT_STATUS)) {
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
    return cmd <= VIRTIO_RDMA_CMD_MAX && handlers[cmd].name
           ? handlers[cmd].name : "unknown";
}

static bool have_cmd(VirtIORdma *s, uint8_t cmd)
{
    uint64_t features;

    if (cmd > VIRTIO_RDMA_CMD_MAX || !handlers[cmd].exec) {
        return false;
    }
    features = handlers[cmd].features;
    return (VIRTIO_DEVICE(s)->guest_features & features) == features;
}

/* Answer the command in c->elem, if anybody still waits for that. */
static void answer(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    uint8_t buf[1 + VIRTIO_RDMA_RSP_ROOM] = { status_of(s, ret) };
    size_t len = 1;

    trace_virtio_rdma_ctrl(s, cmd_name(c->cmd), ret, buf[0]);
    if (!c->elem) {
        return;
    }
    if (!ret) {
        s->codec->put_response(c->cmd, &buf[1], &c->rsp);
        len += s->codec->cmd[c->cmd].rsp_min;
    }
    /* Cut to the room that is there. */
    len = iov_from_buf(c->elem->in_sg, c->elem->in_num, 0, buf, len);
    virtqueue_push(c->vq, c->elem, len);
    virtio_notify(vdev, c->vq);
    g_free(c->elem);
    c->elem = NULL;
}

static void finish(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    const VirtIORdmaHandler *h = &handlers[c->cmd];

    if (h->finish) {
        h->finish(s, c, ret);
    }
    c->obj = NULL;
    c->pages = NULL;
    answer(s, c, ret);
}

/* Run the command in c->elem. */
static void execute(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    uint8_t buf[1 + VIRTIO_RDMA_REQ_ROOM] = {};
    const VirtIORdmaCmdLayout *layout;
    size_t room, len;
    int ret;

    len = iov_to_buf(c->elem->out_sg, c->elem->out_num, 0, buf, sizeof(buf));
    room = iov_size(c->elem->in_sg, c->elem->in_num);
    c->cmd = buf[0];

    if (room == 0) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: control command %u (%s) "
                      "has no room for an answer\n", c->cmd,
                      cmd_name(c->cmd));
        answer(s, c, -EINVAL);
        return;
    }
    if (len == 0) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: empty control command\n");
        answer(s, c, -EINVAL);
        return;
    }
    if (!have_cmd(s, c->cmd)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: no control command %u "
                      "(%s) without its feature\n", c->cmd,
                      cmd_name(c->cmd));
        answer(s, c, -ENOTSUP);
        return;
    }
    layout = &s->codec->cmd[c->cmd];
    if (len - 1 < layout->req_min || room - 1 < layout->rsp_min) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s has %zu request and "
                      "%zu response bytes, not %u and %u\n",
                      cmd_name(c->cmd), len - 1, room - 1, layout->req_min,
                      layout->rsp_min);
        answer(s, c, -EINVAL);
        return;
    }

    s->codec->get_request(c->cmd, &buf[1], &c->req);
    memset(&c->rsp, 0, sizeof(c->rsp));
    ret = handlers[c->cmd].exec(s, c);
    if (ret == -EINPROGRESS) {
        trace_virtio_rdma_ctrl_pending(s, cmd_name(c->cmd));
        c->pending = true;
        return;
    }
    finish(s, c, ret);
}

void virtio_rdma_ctrl_run(VirtIORdma *s)
{
    VirtIORdmaCtrl *c = s->ctrl;
    int budget = VIRTQUEUE_MAX_SIZE;

    if (c->done) {
        c->done = false;
        c->pending = false;
        if (c->cmd) {
            finish(s, c, c->ret);
            c->cmd = 0;
        }
    }
    if (!virtio_rdma_check_ring(s, c->vq, &c->seen)) {
        return;
    }
    while (!c->pending) {
        c->elem = virtqueue_pop(c->vq, sizeof(VirtQueueElement));
        if (!c->elem) {
            return;
        }
        execute(s, c);
        if (!c->pending) {
            c->cmd = 0;
        }
        if (--budget == 0) {
            /* Leave the rest to the bottom half: others want to run, too. */
            qemu_bh_schedule(s->bh);
            return;
        }
    }
}

void virtio_rdma_ctrl_op_done(VirtIORdma *s, int ret)
{
    VirtIORdmaCtrl *c = s->ctrl;

    if (c->pending && !c->done) {
        c->done = true;
        c->ret = ret;
        qemu_bh_schedule(s->bh);
    }
}

void virtio_rdma_ctrl_drop(VirtIORdma *s)
{
    VirtIORdmaCtrl *c = s->ctrl;

    if (c->elem) {
        virtqueue_detach_element(c->vq, c->elem, 0);
        g_free(c->elem);
        c->elem = NULL;
    }
    c->seen = 0;
}

void virtio_rdma_ctrl_reset(VirtIORdma *s)
{
    VirtIORdmaCtrl *c = s->ctrl;

    virtio_rdma_ctrl_drop(s);
    if (c->pending) {
        g_free(c->pages);
    }
    c->pages = NULL;
    c->obj = NULL;
    c->cmd = 0;
    c->pending = false;
    c->done = false;
}

void virtio_rdma_ctrl_init(VirtIORdma *s)
{
    s->ctrl = g_new0(VirtIORdmaCtrl, 1);
    s->ctrl->vq = virtio_get_queue(VIRTIO_DEVICE(s), VIRTIO_RDMA_CTRL_VQ);
}

void virtio_rdma_ctrl_free(VirtIORdma *s)
{
    virtio_rdma_ctrl_reset(s);
    g_free(s->ctrl);
    s->ctrl = NULL;
}
