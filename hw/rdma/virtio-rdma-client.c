/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device as the client of a backend: finding the backend, attaching to it,
 * and what it calls back.
 */
#include "qemu/osdep.h"
#include "hw/virtio/virtio-bus.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "system/address-spaces.h"
#include "virtio-rdma-device.h"

static void note_failed_completion(VirtIORdma *s, const RdmaWc *wc)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, wc->qp_num);

    if (qp) {
        rdma_hca_error_completed(&s->hca, qp, wc);
    }
}

static bool virtio_rdma_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                                 bool solicited)
{
    VirtIORdma *s = opaque;
    RdmaHcaCq *cq = rdma_hca_cq_get(&s->hca, cqn);

    if (!cq) {
        return false;
    }
    if (wc->status != RDMA_WC_SUCCESS) {
        note_failed_completion(s, wc);
    }
    return unlikely(s->hca.fault_points & RDMA_HCA_FAULT_AT_COMPLETE)
           ? rdma_hca_hold_complete(&s->hca, cq, wc, solicited)
           : rdma_hca_cq_complete(&s->hca, cq, wc, solicited);
}

static void virtio_rdma_retire(void *opaque, uint32_t qpn,
                               RdmaQueue queue, uint32_t count)
{
    VirtIORdma *s = opaque;
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, qpn);

    if (qp) {
        virtio_rdma_wq_retire(s, queue == RDMA_SQ ? &qp->sq : &qp->rq, count);
    }
}

static void virtio_rdma_event(void *opaque, const RdmaEvent *event)
{
    VirtIORdma *s = opaque;
    RdmaHcaQp *qp = NULL;
    RdmaHcaCq *cq = NULL;
    RdmaHcaSrq *srq;

    if (rdma_hca_event_of(event->type) == RDMA_HCA_EVENT_OF_QP) {
        qp = rdma_hca_table_get(&s->hca.qps, event->id);
    } else if (event->type == RDMA_EVENT_CQ_ERR) {
        cq = rdma_hca_cq_get(&s->hca, event->id);
    }
    if (cq) {
        /* It raises the event, once; no completion may follow that. */
        rdma_hca_cq_enter_error(&s->hca, cq);
        return;
    }
    if (qp) {
        rdma_hca_error_event(&s->hca, qp, event->type);
    }
    srq = event->type == RDMA_EVENT_SRQ_ERR
          ? rdma_hca_table_get(&s->hca.srqs, event->id) : NULL;
    if (srq) {
        /* Its QPs fail, too, and the event is raised then. */
        rdma_hca_wq_break(&s->hca, &srq->wq);
        return;
    }
    rdma_hca_event_raise(&s->hca, event->type, event->id);
}

static RdmaNext virtio_rdma_next_send(void *opaque, uint32_t qpn, bool flush,
                                      RdmaSendWr *wr)
{
    VirtIORdma *s = opaque;
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps, qpn);

    return qp && virtio_rdma_active(s) ? virtio_rdma_sq_next(s, qp, flush, wr)
                                       : RDMA_NEXT_NONE;
}

static void virtio_rdma_put_back_send(void *opaque, uint32_t qpn,
                                      const RdmaSendWr *wr)
{
    VirtIORdma *s = opaque;

    virtio_rdma_sq_put_back(s, rdma_hca_table_get(&s->hca.qps, qpn), wr);
}

/* The RQ or SRQ @id if the device may look there, or NULL */
static RdmaHcaWq *recv_queue(VirtIORdma *s, RdmaQueue queue, uint32_t id)
{
    RdmaHcaSrq *srq;
    RdmaHcaQp *qp;

    if (!virtio_rdma_active(s)) {
        return NULL;
    }
    if (queue == RDMA_SRQ) {
        srq = rdma_hca_table_get(&s->hca.srqs, id);
        return srq && !srq->error ? &srq->wq : NULL;
    }
    qp = rdma_hca_table_get(&s->hca.qps, id);
    return qp && !qp->srq ? &qp->rq : NULL;
}

static bool virtio_rdma_next_recv(void *opaque, RdmaQueue queue, uint32_t id,
                                  bool flush, RdmaRecvWr *wr)
{
    VirtIORdma *s = opaque;
    RdmaHcaWq *wq = recv_queue(s, queue, id);

    return wq && virtio_rdma_rq_next(s, wq, flush, wr);
}

static uint32_t virtio_rdma_recv_count(void *opaque, RdmaQueue queue,
                                       uint32_t id)
{
    VirtIORdma *s = opaque;
    RdmaHcaWq *wq = recv_queue(s, queue, id);

    return wq ? virtio_rdma_rq_count(s, wq) : 0;
}

/* All queues are kicked when a device that is not active becomes so. */
static bool virtio_rdma_recv_sleep(void *opaque, RdmaQueue queue, uint32_t id)
{
    VirtIORdma *s = opaque;
    RdmaHcaWq *wq = recv_queue(s, queue, id);

    return !wq || virtio_rdma_rq_sleep(s, wq);
}

static const RdmaBackendClientOps client_ops = {
    .consumer = {
        .complete = virtio_rdma_complete,
        .retire = virtio_rdma_retire,
        .event = virtio_rdma_event,
        .next_send = virtio_rdma_next_send,
        .put_back_send = virtio_rdma_put_back_send,
        .next_recv = virtio_rdma_next_recv,
        .recv_count = virtio_rdma_recv_count,
        .recv_sleep = virtio_rdma_recv_sleep,
    },
    .port_changed = virtio_rdma_port_changed,
    .resume = virtio_rdma_ctrl_resume,
    .flush = virtio_rdma_eqs_flush,
    .run_pending = virtio_rdma_run_pending,
    .gid_allowed = virtio_rdma_gid_allowed,
    .loaded = virtio_rdma_loaded,
};

static bool is_active(RdmaHca *hca)
{
    return virtio_rdma_active(virtio_rdma_of(hca));
}

static bool has_driver(RdmaHca *hca)
{
    return virtio_rdma_of(hca)->parent_obj.status & VIRTIO_CONFIG_S_DRIVER_OK;
}

static bool has_events(RdmaHca *hca)
{
    return virtio_rdma_has(virtio_rdma_of(hca), VIRTIO_RDMA_F_EVENTS) &&
           has_driver(hca);
}

static void event(RdmaHca *hca)
{
    VirtIORdma *s = virtio_rdma_of(hca);

    if (virtio_rdma_may_use_vqs(s)) {
        virtio_rdma_events_run(s);
    } else {
        s->sched_events = true;
        rdma_hca_bh_schedule(hca);
    }
}

static const RdmaHcaOps hca_ops = {
    .is_active = is_active,
    .has_driver = has_driver,
    .has_events = has_events,
    .event = event,
};

bool virtio_rdma_backend_get(VirtIORdma *s, Error **errp)
{
    const VirtIORdmaConf *conf = &s->conf;
    g_autofree char *mac = NULL;

    if (conf->netdev && conf->rdmadev) {
        error_setg(errp, "netdev and rdmadev exclude each other: the backend "
                   "that rdmadev names has a netdev of its own");
        return false;
    }
    if (!conf->netdev && !conf->rdmadev) {
        error_setg(errp, "the device needs either a netdev (a RoCEv2 backend "
                   "is made for it) or an rdmadev (the id of a backend)");
        return false;
    }
    if (conf->rdmadev) {
        if (!buffer_is_zero(&conf->mac, sizeof(conf->mac))) {
            error_setg(errp, "mac goes with netdev; with rdmadev, set it on "
                       "the backend");
            return false;
        }
        s->hca.backend = conf->rdmadev;
        s->hca.bc = RDMA_BACKEND_GET_CLASS(s->hca.backend);
        return true;
    }

    s->hca.backend = rdma_backend_new_roce(OBJECT(s), conf->netdev, errp);
    if (!s->hca.backend) {
        return false;
    }
    s->hca.own_backend = true;
    s->hca.bc = RDMA_BACKEND_GET_CLASS(s->hca.backend);
    if (!buffer_is_zero(&conf->mac, sizeof(conf->mac))) {
        mac = qemu_mac_strdup_printf(conf->mac.a);
        return object_property_set_str(OBJECT(s->hca.backend), "mac", mac,
                                       errp);
    }
    return true;
}

/* Those beyond max-vq-qp can only have direct queues. */
static uint32_t wanted_qps(const VirtIORdma *s)
{
    return virtio_rdma_may_be_direct(s)
           ? s->conf.max_qp : MIN(s->conf.max_qp, s->conf.max_vq_qp);
}

/* Likewise with max-vq-cq. */
static uint32_t wanted_cqs(const VirtIORdma *s)
{
    return virtio_rdma_offers(s, VIRTIO_RDMA_F_DIRECT_CQ)
           ? s->conf.max_cq : MIN(s->conf.max_cq, s->conf.max_vq_cq);
}

/* Likewise with max-vq-srq. */
static uint32_t wanted_srqs(const VirtIORdma *s)
{
    if (!virtio_rdma_offers(s, VIRTIO_RDMA_F_SRQ)) {
        return 0;
    }
    return virtio_rdma_may_be_direct_srq(s)
           ? s->conf.max_srq : MIN(s->conf.max_srq, s->conf.max_vq_srq);
}

/* What vdev->dma_as is set to, but only after realize. */
static AddressSpace *get_dma_as(VirtIODevice *vdev)
{
    BusState *qbus = qdev_get_parent_bus(DEVICE(vdev));
    VirtioBusClass *k = VIRTIO_BUS_GET_CLASS(qbus);

    if (virtio_host_has_feature(vdev, VIRTIO_F_IOMMU_PLATFORM) &&
        k->get_dma_as) {
        return k->get_dma_as(qbus->parent);
    }
    return &address_space_memory;
}

/*
 * The iothread may not wait for the BQL, which virtqueues may lead to (their
 * rings may be anywhere), and what an IOMMU has to do.
 */
static bool get_ctx(VirtIORdma *s, Error **errp)
{
    s->hca.ctx = NULL;
    if (!s->conf.iothread) {
        return true;
    }
    if (!virtio_rdma_may_be_direct(s) ||
        !virtio_rdma_offers(s, VIRTIO_RDMA_F_DIRECT_CQ)) {
        error_setg(errp, "iothread needs direct-qp=on and direct-cq=on, and no "
                   "modern-pio-notify: it does not serve virtqueues");
        return false;
    }
    if (get_dma_as(VIRTIO_DEVICE(s)) != &address_space_memory) {
        error_setg(errp, "iothread does not go with iommu_platform=on: leave "
                   "one of them out");
        return false;
    }
    s->hca.ctx = iothread_get_aio_context(s->conf.iothread);
    return true;
}

bool virtio_rdma_backend_attach(VirtIORdma *s, Error **errp)
{
    const VirtIORdmaConf *conf = &s->conf;

    s->hca.limits = (RdmaBackendLimits) {
        .max_qp = wanted_qps(s),
        .max_qp_wr = conf->queue_size,
        .max_qp_wr_direct = conf->max_qp_wr,
        .max_send_sge = conf->max_sge,
        .max_recv_sge = conf->max_sge,
        .max_inline_data = conf->max_inline,
        .max_cq = wanted_cqs(s),
        .max_cqe = conf->queue_size,
        .max_cqe_deep = conf->max_cqe,
        .max_mr = conf->max_mr,
        .max_pd = conf->max_pd,
        .max_mr_size = conf->max_mr_size,
        .max_rd_atomic = conf->max_rd_atomic,
        .gid_table_len = conf->gid_table_len,
        .max_srq = wanted_srqs(s),
        .max_srq_wr = conf->max_srq_wr,
        .max_srq_sge = conf->max_sge,
        .max_mw = virtio_rdma_offers(s, VIRTIO_RDMA_F_MW) ? conf->max_mw : 0,
        .max_reg_pages = virtio_rdma_offers(s, VIRTIO_RDMA_F_REG_PAGES)
                         ? VIRTIO_RDMA_MAX_PAGE_LIST : 0,
        .max_mcast_grp = conf->max_mcast_grp,
        .max_mcast_qp_attach = conf->max_mcast_qp_attach,
        .extensions = RDMA_EXT_FLUSH | RDMA_EXT_ATOMIC_WRITE,
        .any_gid = !conf->allowed_gids,
        .atomic_cap = RDMA_ATOMIC_GLOB,
        .device_cap_flags = VIRTIO_RDMA_CAP_BAD_PKEY_CNTR |
                            VIRTIO_RDMA_CAP_BAD_QKEY_CNTR |
                            VIRTIO_RDMA_CAP_SYS_IMAGE_GUID |
                            VIRTIO_RDMA_CAP_RC_RNR_NAK_GEN |
                            (conf->mem_mgt
                             ? VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS : 0),
    };
    rdma_hca_init(&s->hca, &hca_ops, OBJECT(s),
                  qdev_get_parent_bus(DEVICE(s))->parent);
    if (!get_ctx(s, errp) ||
        !rdma_backend_attach(s->hca.backend, &client_ops, s,
                             get_dma_as(VIRTIO_DEVICE(s)), s->hca.ctx,
                             &s->hca.limits,
                             errp)) {
        return false;
    }
    s->max_vq_qp = MIN(s->hca.limits.max_qp, conf->max_vq_qp);
    s->max_vq_cq = MIN(s->hca.limits.max_cq, conf->max_vq_cq);
    s->max_vq_srq = MIN(s->hca.limits.max_srq, conf->max_vq_srq);
    return true;
}
