/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The NIC: frames of one pair of virtqueues, without offloads. The backend has
 * taken RoCE frames from the netdev before they come here.
 */
#include "qemu/osdep.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "net/eth.h"
#include "int.h"

/* Frames that the driver sends in one turn of the main loop */
#define TX_FRAMES 256

/* The driver uses the queues of the NIC after DRIVER_OK. */
static bool is_active(NetRoce *s)
{
    return net_roce_is_active(s) &&
           (s->parent_obj.status & VIRTIO_CONFIG_S_DRIVER_OK);
}

/* Frames for the driver */

static void put_frame(NetRoce *s, const struct iovec *iov, int iovcnt)
{
    static const uint8_t hdr[NET_ROCE_HDR_SIZE] = {
        [10] = 1,                   /* num_buffers */
    };
    VirtQueue *vq = net_roce_vq(s, NET_ROCE_RX_VQ);
    size_t size = sizeof(hdr) + iov_size(iov, iovcnt);
    g_autofree VirtQueueElement *elem =
        virtqueue_pop(vq, sizeof(VirtQueueElement));
    size_t at = sizeof(hdr);

    if (!elem) {
        return;
    }
    if (iov_size(elem->in_sg, elem->in_num) < size) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: a frame of %zu bytes "
                      "with its header does not fit into a buffer of %zu, and "
                      "is dropped\n", size,
                      iov_size(elem->in_sg, elem->in_num));
        virtqueue_unpop(vq, elem, 0);
        return;
    }
    iov_from_buf(elem->in_sg, elem->in_num, 0, hdr, sizeof(hdr));
    for (int i = 0; i < iovcnt; i++) {
        at += iov_from_buf(elem->in_sg, elem->in_num, at, iov[i].iov_base,
                           iov[i].iov_len);
    }
    virtqueue_push(vq, elem, size);
    rdma_vq_notify(&s->notify, vq);
}

/*
 * A frame without a buffer is dropped. If the netdev kept that frame until the
 * driver adds a buffer, later frames of RoCE would wait, too.
 */
static ssize_t receive_iov(NetClientState *nc, const struct iovec *iov,
                           int iovcnt)
{
    NetRoce *s = qemu_get_nic_opaque(nc);

    rdma_hca_enter(&s->hca);
    if (is_active(s) && virtio_queue_ready(net_roce_vq(s, NET_ROCE_RX_VQ))) {
        put_frame(s, iov, iovcnt);
    }
    rdma_hca_leave(&s->hca);
    return iov_size(iov, iovcnt);
}

/* Frames of the driver */

static void sent(NetClientState *nc, ssize_t len)
{
    NetRoce *s = qemu_get_nic_opaque(nc);

    s->tx_blocked = false;
    net_roce_nic_kick(s);
}

static void send_frame(NetRoce *s, const VirtQueueElement *elem)
{
    size_t size = iov_size(elem->out_sg, elem->out_num);

    if (size < NET_ROCE_HDR_SIZE + ETH_HLEN ||
        size - NET_ROCE_HDR_SIZE > NET_ROCE_FRAME_ROOM) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-net-roce: a frame of the driver "
                      "has %zu bytes with its header, but must have %u to "
                      "%u\n", size, NET_ROCE_HDR_SIZE + ETH_HLEN,
                      NET_ROCE_HDR_SIZE + NET_ROCE_FRAME_ROOM);
        return;
    }
    size -= NET_ROCE_HDR_SIZE;
    iov_to_buf(elem->out_sg, elem->out_num, NET_ROCE_HDR_SIZE, s->frame, size);
    s->tx_blocked = !qemu_send_packet_async(qemu_get_queue(s->nic), s->frame,
                                            size, sent);
}

static void send_frames(NetRoce *s)
{
    VirtQueue *vq = net_roce_vq(s, NET_ROCE_TX_VQ);
    unsigned n = 0;

    while (is_active(s) && !s->tx_blocked && n < TX_FRAMES) {
        g_autofree VirtQueueElement *elem =
            virtqueue_pop(vq, sizeof(VirtQueueElement));

        if (!elem) {
            break;
        }
        send_frame(s, elem);
        virtqueue_push(vq, elem, 0);
        n++;
    }
    if (n) {
        rdma_vq_notify(&s->notify, vq);
    }
    if (n == TX_FRAMES) {
        qemu_bh_schedule(s->nic_bh);
    }
}

/* The netdev may be on the stack: then frames wait for its outermost caller. */
static void nic_bh(void *opaque)
{
    NetRoce *s = opaque;

    if (!s->hca.unrealizing &&
        rdma_hca_enter_or_put_off(&s->hca, NET_ROCE_PENDING_NIC)) {
        send_frames(s);
        rdma_hca_leave(&s->hca);
    }
}

void net_roce_nic_kick(NetRoce *s)
{
    if (!s->hca.unrealizing) {
        qemu_bh_schedule(s->nic_bh);
    }
}

/* The link */

void net_roce_nic_check_link(NetRoce *s)
{
    bool up = !qemu_get_queue(s->nic)->link_down;

    if (s->link_up != up) {
        s->link_up = up;
        s->notify_config = true;
    }
}

static void link_status_changed(NetClientState *nc)
{
    NetRoce *s = qemu_get_nic_opaque(nc);

    rdma_hca_enter(&s->hca);
    net_roce_nic_check_link(s);
    rdma_hca_leave(&s->hca);
}

static NetClientInfo nic_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .receive_iov = receive_iov,
    .link_status_changed = link_status_changed,
};

void net_roce_nic_init(NetRoce *s)
{
    MemReentrancyGuard *guard = &s->hca.dev->mem_reentrancy_guard;

    qemu_macaddr_default_if_unset(&s->conf.nic.macaddr);
    s->nic = qemu_new_nic(&nic_info, &s->conf.nic,
                          object_get_typename(OBJECT(s)), s->hca.dev->id,
                          guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.nic.macaddr.a);
    s->mac = 0;
    for (unsigned i = 0; i < sizeof(s->conf.nic.macaddr); i++) {
        s->mac = s->mac << 8 | s->conf.nic.macaddr.a[i];
    }
    s->link_up = true;
    s->frame = g_malloc(NET_ROCE_FRAME_ROOM);
    s->nic_bh = qemu_bh_new_guarded(nic_bh, s, guard);
}

void net_roce_nic_free(NetRoce *s)
{
    /* This ends frames that the netdev has queued, which schedules the BH. */
    g_clear_pointer(&s->nic, qemu_del_nic);
    g_clear_pointer(&s->nic_bh, qemu_bh_delete);
    g_clear_pointer(&s->frame, g_free);
}

/* A frame that the netdev has queued is dropped: it was of the last driver. */
void net_roce_nic_reset(NetRoce *s)
{
    qemu_purge_queued_packets(qemu_get_queue(s->nic));
    qemu_bh_cancel(s->nic_bh);
    s->tx_blocked = false;
}
