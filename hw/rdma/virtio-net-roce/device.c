/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-net-roce: the device as QEMU, the transport and the core see it.
 */
#include "qemu/osdep.h"
#include "hw/virtio/virtio-rdma-series.h"
#include "qemu/module.h"
#include "standard-headers/linux/virtio_ids.h"
#include "standard-headers/linux/virtio_net.h"
#include "system/rdma-series.h"
#include "trace.h"
#include "int.h"

#define MAX_MR 4096
#define MAX_MR_SIZE (1ull << 40)
#define MAX_PD 1024
#define MAX_RD_ATOMIC 16
#define GID_TABLE_LEN 128

/* Virtqueues */

/* Buffers for frames and completions are popped when one is needed. */
static void handle_nothing(VirtIODevice *vdev, VirtQueue *vq)
{
}

static void handle_tx(VirtIODevice *vdev, VirtQueue *vq)
{
    net_roce_nic_kick(NET_ROCE(vdev));
}

static void handle_ctrl(VirtIODevice *vdev, VirtQueue *vq)
{
    NetRoce *s = NET_ROCE(vdev);

    if (net_roce_is_active(s) &&
        rdma_hca_enter_or_put_off(&s->hca, RDMA_HCA_PENDING_BH)) {
        net_roce_ctrl_run(s);
        rdma_hca_leave(&s->hca);
    }
}

static void handle_wq(VirtIODevice *vdev, VirtQueue *vq)
{
    NetRoce *s = NET_ROCE(vdev);
    uint32_t n = virtio_get_queue_index(vq) - NET_ROCE_SQ_VQ(s->max_cq, 0);
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, n / 2);

    if (qp && net_roce_is_active(s)) {
        rdma_hca_ring(&s->hca, n % 2 ? &qp->rq : &qp->sq);
    }
}

/* Status and resets */

/* Kicks that came while the device was not active were ignored. */
static void kick_all(NetRoce *s)
{
    rdma_hca_kick_all(&s->hca);
    rdma_hca_bh_schedule(&s->hca);
    net_roce_nic_kick(s);
}

/* @status: the new one */
static bool update_running(NetRoce *s, uint8_t status)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    bool ready = !virtio_device_disabled(vdev) &&
                 (status & VIRTIO_CONFIG_S_FEATURES_OK);

    return rdma_hca_set_running(&s->hca, vdev->vm_running && ready, ready);
}

static void update_status(NetRoce *s, uint8_t status, uint8_t added)
{
    bool resumed = update_running(s, status) && s->hca.running;

    if (resumed || (added & (VIRTIO_CONFIG_S_FEATURES_OK |
                             VIRTIO_CONFIG_S_DRIVER_OK))) {
        kick_all(s);
    }
}

static VirtIOSetStatusReturn set_status(VirtIODevice *vdev, uint8_t status)
{
    NetRoce *s = NET_ROCE(vdev);

    if (s->hca.backend && !s->hca.unrealizing &&
        rdma_hca_enter_or_put_off(&s->hca, NET_ROCE_PENDING_STATUS)) {
        update_status(s, status, status & ~vdev->status);
        rdma_hca_leave(&s->hca);
    }
    return (VirtIOSetStatusReturn)0;
}

static void reset(NetRoce *s)
{
    trace_net_roce_reset(s);
    net_roce_ctrl_forget(s);
    net_roce_ahs_reset(s);
    rdma_hca_reset(&s->hca);
    net_roce_nic_reset(s);
    s->has_roce = false;
    s->notify_config = false;
    rdma_vq_notify_reset(&s->notify);
}

static void net_roce_reset(VirtIODevice *vdev)
{
    NetRoce *s = NET_ROCE(vdev);

    if (rdma_hca_enter_or_put_off(&s->hca, NET_ROCE_PENDING_RESET)) {
        reset(s);
        rdma_hca_leave(&s->hca);
    }
}

/* Callbacks of the core */

static bool is_active(RdmaHca *hca)
{
    return net_roce_is_active(net_roce_of(hca));
}

/* A driver that has accepted bit 55 may mean GUEST_USO6 by it. */
static bool has_driver(RdmaHca *hca)
{
    return net_roce_of(hca)->has_roce;
}

static bool has_events(RdmaHca *hca)
{
    return false;
}

/* The driver takes the port's attributes from its NIC. */
static bool port_changed(RdmaHca *hca)
{
    return VIRTIO_DEVICE(net_roce_of(hca))->vm_running;
}

static void update_running_in_bh(RdmaHca *hca)
{
    NetRoce *s = net_roce_of(hca);

    update_running(s, VIRTIO_DEVICE(s)->status);
}

static void serve(RdmaHca *hca)
{
    net_roce_ctrl_run(net_roce_of(hca));
}

static void resume(RdmaHca *hca)
{
    net_roce_of(hca)->ctrl_waiting = false;
}

/* Only the last part leaves the device, which may end it. */
static void run_pending(RdmaHca *hca, uint32_t pending)
{
    NetRoce *s = net_roce_of(hca);
    uint8_t status = VIRTIO_DEVICE(s)->status;

    if (pending & NET_ROCE_PENDING_NIC) {
        net_roce_nic_kick(s);
    }
    if (pending & NET_ROCE_PENDING_RESET) {
        reset(s);
    }
    if (pending & NET_ROCE_PENDING_STATUS) {
        rdma_hca_enter(hca);
        update_status(s, status, status);
        rdma_hca_leave(hca);
    }
}

static const RdmaHcaOps hca_ops = {
    .is_active = is_active,
    .has_driver = has_driver,
    .has_events = has_events,
    .event_pending = rdma_hca_bh_schedule,
    .port_changed = port_changed,
    .decode_send = net_roce_decode_send,
    .decode_recv = net_roce_decode_recv,
    .cq = &net_roce_cqs,
    .qp = &net_roce_qps,
    .update_running = update_running_in_bh,
    .serve = serve,
    .resume = resume,
    .flush = net_roce_vqs_flush,
    .run_pending = run_pending,
};

/* Called by the transport */

/*
 * Offer no other transport feature: it would change the rings. Processes with
 * the authors' provider read the rings, and do not learn the features.
 */
static uint64_t get_features(VirtIODevice *vdev, uint64_t features,
                             Error **errp)
{
    return (features & (1ULL << VIRTIO_F_VERSION_1 |
                        1ULL << VIRTIO_F_IOMMU_PLATFORM)) |
           1ULL << VIRTIO_NET_F_MAC | 1ULL << VIRTIO_NET_F_MTU |
           1ULL << VIRTIO_NET_F_STATUS | 1ULL << VIRTIO_NET_F_CTRL_VQ |
           1ULL << NET_ROCE_F_ROCE;
}

static void get_config(VirtIODevice *vdev, uint8_t *config)
{
    NetRoce *s = NET_ROCE(vdev);
    NetRoceConfig c = {
        .status = cpu_to_le16(s->link_up ? NET_ROCE_LINK_UP : 0),
        .max_virtqueue_pairs = cpu_to_le16(1),
        .mtu = cpu_to_le16(s->conf.host_mtu),
        .max_rdma_qps = cpu_to_le32(s->max_qp),
        .max_rdma_cqs = cpu_to_le32(s->max_cq),
    };

    memcpy(c.mac, s->conf.nic.macaddr.a, sizeof(c.mac));
    memcpy(config, &c, sizeof(c));
}

/* Realize */

static bool attach(NetRoce *s, Error **errp)
{
    const NetRoceConf *conf = &s->conf;
    const MACAddr of_nic = {};

    s->hca.limits = (RdmaBackendLimits) {
        .max_qp = conf->max_qp,
        .max_qp_wr = conf->queue_size,
        .max_send_sge = NET_ROCE_MAX_SGE,
        .max_recv_sge = NET_ROCE_MAX_SGE,
        .max_inline_data = NET_ROCE_MAX_INLINE,
        .max_cq = conf->max_cq,
        .max_cqe = conf->queue_size,
        .max_mr = MAX_MR,
        .max_pd = MAX_PD,
        .max_mr_size = MAX_MR_SIZE,
        .max_rd_atomic = MAX_RD_ATOMIC,
        .gid_table_len = GID_TABLE_LEN,
        .any_gid = !conf->allowed_gids,
    };
    if (!rdma_hca_backend_get(&s->hca, conf->nic.peers.ncs[0]->name, NULL,
                              &of_nic, errp) ||
        !rdma_hca_attach(&s->hca, rdma_vq_dma_as(VIRTIO_DEVICE(s)), errp)) {
        rdma_hca_backend_put(&s->hca);
        return false;
    }
    s->max_qp = s->hca.limits.max_qp;
    s->max_cq = s->hca.limits.max_cq;
    return true;
}

static void add_queues(NetRoce *s)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    uint32_t size = s->conf.queue_size;

    virtio_add_queue(vdev, size, handle_nothing);
    virtio_add_queue(vdev, size, handle_tx);
    virtio_add_queue(vdev, size, handle_ctrl);
    for (uint32_t n = 0; n < s->max_cq; n++) {
        virtio_add_queue(vdev, size, handle_nothing);
    }
    for (uint32_t n = 0; n < 2 * s->max_qp; n++) {
        virtio_add_queue(vdev, size, handle_wq);
    }
}

static void realize(DeviceState *dev, Error **errp)
{
    NetRoce *s = NET_ROCE(dev);

    rdma_hca_init(&s->hca, &hca_ops, OBJECT(s),
                  qdev_get_parent_bus(dev)->parent);
    s->hca.ring_size = s->conf.queue_size;
    if (!net_roce_conf_check(s, errp)) {
        return;
    }
    /* First the NIC: the backend shares the netdev with it. */
    net_roce_nic_init(s);
    if (!attach(s, errp)) {
        net_roce_nic_free(s);
        return;
    }
    virtio_init(VIRTIO_DEVICE(s), VIRTIO_ID_NET, sizeof(NetRoceConfig));
    add_queues(s);
    s->ahs = g_new0(NetRoceAh, NET_ROCE_MAX_AH);
    rdma_hca_start(&s->hca);
    vmstate_register_any(VMSTATE_IF(s), &vmstate_net_roce_limits, s);
}

static void end(RdmaHca *hca)
{
    NetRoce *s = net_roce_of(hca);
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    vmstate_unregister(VMSTATE_IF(s), &vmstate_net_roce_limits, s);
    rdma_hca_detach(hca);
    net_roce_nic_free(s);
    net_roce_ctrl_forget(s);
    rdma_hca_free(hca);
    net_roce_scratch_free(s);
    g_free(s->ahs);
    for (int n = virtio_get_num_queues(vdev) - 1; n >= 0; n--) {
        virtio_del_queue(vdev, n);
    }
    virtio_cleanup(vdev);
}

static void unrealize(DeviceState *dev)
{
    rdma_hca_end(&NET_ROCE(dev)->hca, end);
}

static void finalize(Object *obj)
{
    rdma_hca_gids_free(&NET_ROCE(obj)->hca);
}

static const VMStateDescription vmstate_net_roce = {
    .name = "virtio-net-roce",
    .minimum_version_id = 1,
    .version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_VIRTIO_DEVICE,
        VMSTATE_END_OF_LIST()
    },
};

static void class_init(ObjectClass *klass, RdmaClassData data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    VirtioDeviceClass *vdc = VIRTIO_DEVICE_CLASS(klass);

    net_roce_props_init(klass);
    dc->vmsd = &vmstate_net_roce;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    vdc->realize = realize;
    vdc->unrealize = unrealize;
    vdc->get_features = get_features;
    vdc->get_config = get_config;
    vdc->set_status = set_status;
    vdc->reset = net_roce_reset;
    vdc->vmsd = &vmstate_net_roce_device;
    vdc->post_load = net_roce_post_load;
}

static const TypeInfo net_roce_info = {
    .name = TYPE_NET_ROCE,
    .parent = TYPE_VIRTIO_DEVICE,
    .instance_size = sizeof(NetRoce),
    .instance_finalize = finalize,
    .class_init = class_init,
};

static void register_types(void)
{
    type_register_static(&net_roce_info);
}

type_init(register_types)
