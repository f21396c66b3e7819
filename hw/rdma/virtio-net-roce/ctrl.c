/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control queue: executes one command after the other and acknowledges
 * each. All classes except that of RoCE need features that are not offered.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "trace.h"
#include "int.h"

/* Bytes before the data of a request */
#define HEAD_SIZE 2

QEMU_BUILD_BUG_ON(offsetof(NetRoceRequest, data) % sizeof(uint64_t));
QEMU_BUILD_BUG_ON(sizeof(NetRoceModifyQp) > NET_ROCE_CMD_ROOM);
QEMU_BUILD_BUG_ON(sizeof(NetRoceDevice) > NET_ROCE_CMD_ROOM);

/*
 * Find the address of the list of @size bytes at byte @offset of the request.
 * It must be contiguous in memory, because the core reads it there. The driver
 * of the authors names only the bytes before the list, which then follows in
 * memory.
 */
static bool find_list(const VirtQueueElement *elem, size_t offset,
                      uint64_t size, uint64_t *addr)
{
    uint64_t left = 0;
    unsigned i = 0;

    while (i < elem->out_num && offset >= elem->out_sg[i].iov_len) {
        offset -= elem->out_sg[i++].iov_len;
    }
    if (i == elem->out_num) {
        *addr = elem->out_addr[i - 1] + elem->out_sg[i - 1].iov_len;
        return offset == 0;
    }
    *addr = elem->out_addr[i] + offset;
    left = elem->out_sg[i].iov_len - offset;
    for (i++; left < size && i < elem->out_num &&
         elem->out_addr[i] == *addr + left; i++) {
        left += elem->out_sg[i].iov_len;
    }
    return left >= size;
}

static bool get_list(const VirtQueueElement *elem, NetRoceRequest *req)
{
    const NetRoceRegUserMr *cmd = (const void *)req->data;
    uint64_t size = le32_to_cpu(cmd->npages) * (uint64_t)sizeof(uint64_t);

    if (!find_list(elem, HEAD_SIZE + sizeof(*cmd), size, &req->pages)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: REG_USER_MR has not "
                      "the %" PRIu64 " bytes of its pages in one piece\n",
                      size);
        return false;
    }
    return true;
}

static const NetRoceCommand *command_of(NetRoce *s, const NetRoceRequest *req)
{
    bool has_roce = virtio_vdev_has_feature(VIRTIO_DEVICE(s), NET_ROCE_F_ROCE);

    if (req->class != NET_ROCE_CLASS || !has_roce ||
        req->cmd >= NET_ROCE_NUM_CMDS) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: unknown command %u of "
                      "class %u: expected a command below %u, of class %u, "
                      "and that the driver has accepted feature bit %u (%s)\n",
                      req->cmd, req->class, NET_ROCE_NUM_CMDS, NET_ROCE_CLASS,
                      NET_ROCE_F_ROCE, has_roce ? "accepted" : "missing");
        return NULL;
    }
    return &net_roce_commands[req->cmd];
}

static int handle(NetRoce *s, const NetRoceCommand *c,
                  const NetRoceRequest *req, void *rsp)
{
    bool of_qp = req->cmd == NET_ROCE_CMD_MODIFY_QP ||
                 req->cmd == NET_ROCE_CMD_QUERY_QP ||
                 req->cmd == NET_ROCE_CMD_DESTROY_QP;
    uint32_t id = ldl_le_p(req->data);
    int ret = c->fault == RDMA_COMMAND__MAX ? 0 :
              rdma_hca_command_begin(&s->hca, c->fault, s->ctrl_pending,
                                     of_qp ? id : RDMA_NO_QPN);

    if (ret) {
        return ret;
    }
    return c->destroy ? c->destroy(&s->hca, id) : c->handler(s, req, rsp);
}

/* Sets @rsp and *@rsp_len if this returns 0. */
static int execute(NetRoce *s, const VirtQueueElement *elem, void *rsp,
                   size_t *rsp_len)
{
    NetRoceRequest req = {};
    const NetRoceCommand *c;
    size_t room = iov_size(elem->in_sg, elem->in_num);
    size_t len = iov_to_buf(elem->out_sg, elem->out_num, HEAD_SIZE, req.data,
                            sizeof(req.data));
    int ret;

    if (iov_to_buf(elem->out_sg, elem->out_num, 0, &req, HEAD_SIZE) <
        HEAD_SIZE || !room) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: a command without "
                      "class and number, or without room for the reply\n");
        return -EINVAL;
    }
    c = command_of(s, &req);
    if (!c) {
        return -ENOTSUP;
    }
    s->has_roce = true;
    if (len < c->req_size || room - 1 < c->rsp_size) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: %s has %zu bytes of "
                      "data and %zu for the reply, less than %u or %u\n",
                      c->name, len, room - 1, c->req_size, c->rsp_size);
        return -EINVAL;
    }
    if (req.cmd == NET_ROCE_CMD_REG_USER_MR && !get_list(elem, &req)) {
        return -EINVAL;
    }
    /* Surplus bytes have no meaning. */
    memset(req.data + c->req_size, 0, sizeof(req.data) - c->req_size);
    if (s->ctrl_pending && memcmp(s->ctrl_pending, &req, sizeof(req))) {
        /* The driver has changed the request in its memory: start again. */
        net_roce_ctrl_forget(s);
    }
    ret = handle(s, c, &req, rsp);
    trace_net_roce_ctrl(s, c->name, ret);
    if (ret == -EINPROGRESS && !s->ctrl_pending) {
        s->ctrl_pending = g_memdup2(&req, sizeof(req));
    }
    *rsp_len = c->rsp_size;
    return ret;
}

/* A command that failed has a reply of just one byte. */
static void reply(NetRoce *s, VirtQueue *vq, const VirtQueueElement *elem,
                  int ret, uint8_t *rsp, size_t rsp_len)
{
    size_t len;

    rsp[0] = ret ? NET_ROCE_ACK_ERR : NET_ROCE_ACK_OK;
    len = iov_from_buf(elem->in_sg, elem->in_num, 0, rsp,
                       ret ? 1 : 1 + rsp_len);
    virtqueue_push(vq, elem, len);
    rdma_vq_notify(&s->notify, vq);
}

/*
 * A turn ends when its budget is used up, and the bottom half starts the next
 * one. A command in progress goes back to its ring, so that it has no state to
 * migrate. Commands also wait while much memory of destroyed objects is not
 * freed yet.
 */
void net_roce_ctrl_run(NetRoce *s)
{
    VirtQueue *vq = net_roce_vq(s, NET_ROCE_CTRL_VQ);

    if (s->ctrl_waiting) {
        return;
    }
    rdma_hca_turn_begin(&s->hca);
    while (rdma_hca_turn_goes_on(&s->hca)) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(vq, sizeof(VirtQueueElement));
        /* Aligned after the byte of the acknowledgement */
        uint64_t buf[1 + NET_ROCE_CMD_ROOM / sizeof(uint64_t)] = {};
        size_t rsp_len = 0;
        int ret;

        if (!elem) {
            return;
        }
        ret = execute(s, elem, &buf[1], &rsp_len);
        if (ret == -EINPROGRESS) {
            virtqueue_unpop(vq, elem, 0);
            if (rdma_hca_pages_reading(&s->hca)) {
                break;
            }
            s->ctrl_waiting = true;
            return;
        }
        net_roce_ctrl_forget(s);
        rdma_work_pay(&s->hca.cmd_budget, RDMA_WORK_COMMAND);
        reply(s, vq, elem, ret, (uint8_t *)&buf[1] - 1, rsp_len);
    }
    rdma_hca_bh_schedule(&s->hca);
}

void net_roce_ctrl_forget(NetRoce *s)
{
    rdma_hca_command_end(&s->hca);
    g_clear_pointer(&s->ctrl_pending, g_free);
    s->ctrl_waiting = false;
}
