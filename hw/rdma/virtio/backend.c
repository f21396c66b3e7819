/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attach to the backend with the limits of the properties, and the callbacks of
 * the core
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "system/address-spaces.h"
#include "device.h"

static bool is_active(RdmaHca *hca)
{
    return virtio_rdma_active(virtio_rdma_of(hca));
}

static bool has_driver(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    return s->parent_obj.status & s->ready_status;
}

/*
 * Events wait if DRIVER_OK is clear for a while. For example, a vhost-user
 * server clears it while the VM of its front end is paused.
 */
static bool has_events(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    /* An iothread must not read the status; it runs after @had_driver is set */
    return virtio_rdma_is_v1(s) && (s->had_driver || has_driver(hca));
}

static void event_pending(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    virtio_rdma_schedule(s, &s->sched_events);
}

static bool port_changed(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    if (!vdev->vm_running) {
        return false;
    }
    virtio_rdma_config_update(s);
    virtio_notify_config(vdev);
    /*
     * QEMU does not notify before DRIVER_OK. A driver that is back after a
     * pause of its VM is notified by the bottom half.
     */
    return !s->had_driver || (vdev->status & VIRTIO_CONFIG_S_DRIVER_OK);
}

/*
 * A virtio_error() during virtio_set_status() has set DEVICE_NEEDS_RESET, which
 * virtio_set_status() has overwritten.
 */
static void repeat_needs_reset(VirtIODevice *vdev)
{
    if (virtio_vdev_has_feature(vdev, VIRTIO_F_VERSION_1) &&
        !(vdev->status & VIRTIO_CONFIG_S_NEEDS_RESET)) {
        vdev->status |= VIRTIO_CONFIG_S_NEEDS_RESET;
        virtio_notify_config(vdev);
    }
}

static void update_running(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    if (unlikely(vdev->broken)) {
        repeat_needs_reset(vdev);
    }
    virtio_rdma_running_update(s, vdev->status);
}

static void resume(RdmaHca *hca)
{
    virtio_rdma_of(hca)->ctrl_waiting = false;
}

static void poll_doorbells(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    virtio_rdma_shadows_run(s);
    virtio_rdma_sq_polls_run(s);
}

static const RdmaHcaOps hca_ops = {
    .is_active = is_active,
    .has_driver = has_driver,
    .has_events = has_events,
    .event_pending = event_pending,
    .port_changed = port_changed,
    .decode_send = virtio_rdma_decode_send,
    .decode_recv = virtio_rdma_decode_recv,
    .cq = &virtio_rdma_cqs,
    .srq = &virtio_rdma_srqs,
    .qp = &virtio_rdma_qps,
    .update_running = update_running,
    .serve = virtio_rdma_serve,
    .poll_doorbells = poll_doorbells,
    .resume = resume,
    .flush = virtio_rdma_eqs_flush,
    .run_pending = virtio_rdma_run_pending,
};

/*
 * The iothread must not wait for the BQL. Virtqueues may need the BQL, because
 * their rings may be in any memory, and so may translations of an IOMMU.
 */
static bool get_ctx(VirtIORdma *s, Error **errp)
{
    s->hca.ctx = NULL;
    if (!s->conf.iothread) {
        return true;
    }
    if (!virtio_rdma_may_be_direct(s)) {
        error_setg(errp, "iothread needs direct=on, version-1=on and "
                   "layout=spec, and no modern-pio-notify: it does not serve "
                   "virtqueues");
        return false;
    }
    if (rdma_vq_dma_as(VIRTIO_DEVICE(s)) != &address_space_memory) {
        error_setg(errp, "iothread does not go with iommu_platform=on: leave "
                   "one of them out");
        return false;
    }
    s->hca.ctx = iothread_get_aio_context(s->conf.iothread);
    return true;
}

void virtio_rdma_hca_init(VirtIORdma *s)
{
    rdma_hca_init(&s->hca, &hca_ops, OBJECT(s),
                  qdev_get_parent_bus(DEVICE(s))->parent);
    s->hca.ring_size = s->conf.queue_size;
}

bool virtio_rdma_backend_attach(VirtIORdma *s, Error **errp)
{
    const VirtIORdmaConf *conf = &s->conf;
    bool v1 = virtio_rdma_offers(s, VIRTIO_RDMA_F_VERSION_1);

    s->hca.limits = (RdmaBackendLimits) {
        .max_qp = conf->max_qp,
        .max_qp_wr = conf->max_qp_wr,
        .max_send_sge = conf->max_sge,
        .max_recv_sge = conf->max_sge,
        .max_inline_data = conf->max_inline,
        .max_cq = conf->max_cq,
        .max_cqe = conf->max_cqe,
        .max_mr = conf->max_mr,
        .max_pd = conf->max_pd,
        .max_mr_size = VIRTIO_RDMA_MAX_MR_SIZE,
        .max_rd_atomic = conf->max_rd_atomic,
        .gid_table_len = conf->gid_table_len,
        .max_srq = v1 ? conf->max_srq : 0,
        .max_srq_wr = conf->max_srq_wr,
        .max_srq_sge = conf->max_sge,
        .max_mw = v1 ? conf->max_mw : 0,
        .max_reg_pages = v1 ? VIRTIO_RDMA_MAX_PAGE_LIST : 0,
        .max_mcast_grp = v1 ? conf->max_mcast_grp : 0,
        .max_mcast_qp_attach = v1 ? conf->max_mcast_grp : 0,
        .extensions = RDMA_EXT_FLUSH | RDMA_EXT_ATOMIC_WRITE,
        .any_gid = !conf->allowed_gids,
        .atomic_cap = RDMA_ATOMIC_GLOB,
        .device_cap_flags = VIRTIO_RDMA_CAP_BAD_PKEY_CNTR |
                            VIRTIO_RDMA_CAP_BAD_QKEY_CNTR |
                            VIRTIO_RDMA_CAP_SYS_IMAGE_GUID |
                            VIRTIO_RDMA_CAP_RC_RNR_NAK_GEN |
                            VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS,
    };
    if (!get_ctx(s, errp) ||
        !rdma_hca_attach(&s->hca, rdma_vq_dma_as(VIRTIO_DEVICE(s)), errp)) {
        return false;
    }
    s->max_vq_qp = MIN(s->hca.limits.max_qp, virtio_rdma_vq_qps(s));
    s->max_vq_cq = MIN(s->hca.limits.max_cq, virtio_rdma_vq_cqs(s));
    s->max_vq_srq = MIN(s->hca.limits.max_srq, virtio_rdma_vq_srqs(s));
    return true;
}
