/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: the device as QEMU and the transport see it.
 */
#include "qemu/osdep.h"
#include "exec/address-spaces.h"
#include "hw/boards.h"
#include "hw/virtio/virtio-bus.h"
#include "migration/blocker.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

/* Pages that page lists may have in all even where the guest is small. */
#define MIN_MR_PAGES (8 * MiB)
/* How often each page of the guest may be in a page list, on average. */
#define MR_PAGES_FACTOR 4

/* An EUI-64 made of a MAC address (RFC 4291, appendix A). */
static void guid_from_mac(uint8_t guid[8], const uint8_t mac[RDMA_MAC_LEN])
{
    guid[0] = mac[0] ^ 2;
    guid[1] = mac[1];
    guid[2] = mac[2];
    guid[3] = 0xff;
    guid[4] = 0xfe;
    guid[5] = mac[3];
    guid[6] = mac[4];
    guid[7] = mac[5];
}

void virtio_rdma_update_config(VirtIORdma *s)
{
    RdmaPortAttr port = {};
    VirtIORdmaConfigData data = {
        .limits = &s->limits,
        .page_size_cap = RDMA_PAGE_SIZE,
        .max_page_list_len = VIRTIO_RDMA_MAX_PAGE_LIST,
    };

    s->bc->query_port(s->backend, &port);
    memcpy(s->conf.mac.a, port.mac, sizeof(port.mac));
    if (s->conf.sys_image_guid) {
        stq_be_p(data.sys_image_guid, s->conf.sys_image_guid);
    } else {
        guid_from_mac(data.sys_image_guid, port.mac);
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_MAC_MTU)) {
        memcpy(data.mac, port.mac, sizeof(data.mac));
        data.mtu = MIN(port.phys_mtu, UINT16_MAX);
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_MR_TABLES)) {
        data.mr_page_sizes = VIRTIO_RDMA_MR_PAGE_SIZES;
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_CQ_DEEP)) {
        data.max_cqe_deep = s->conf.max_cqe;
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_COUNTERS)) {
        data.num_counters = VIRTIO_RDMA_NUM_COUNTERS;
    }
    s->codec->put_config(s->config, &data);
}

/* Callbacks of the backend */

static VirtIORdmaQp *get_qp(VirtIORdma *s, uint32_t qpn)
{
    return virtio_rdma_table_get(&s->qps, qpn);
}

static void virtio_rdma_schedule_users(VirtIORdma *s, VirtIORdmaCq *cq)
{
    for (uint32_t n = s->qps.first; n < s->qps.end; n++) {
        VirtIORdmaQp *qp = get_qp(s, n);

        if (qp && (qp->send_cq == cq || qp->recv_cq == cq)) {
            virtio_rdma_schedule_qp(s, qp);
        }
    }
}

static bool virtio_rdma_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                                 bool solicited)
{
    VirtIORdma *s = opaque;
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, cqn);
    bool was, ok;

    if (!cq) {
        return false;
    }
    was = virtio_rdma_enter(s);
    ok = virtio_rdma_cq_complete(s, cq, wc, solicited);
    if (!ok) {
        /* They are about to enter ERR, where what is posted is flushed. */
        virtio_rdma_schedule_users(s, cq);
    }
    virtio_rdma_leave(s, was);
    return ok;
}

static void virtio_rdma_retire(void *opaque, uint32_t qpn,
                               RdmaBackendQueue queue, uint32_t count)
{
    VirtIORdma *s = opaque;
    VirtIORdmaQp *qp = get_qp(s, qpn);

    if (qp) {
        bool was = virtio_rdma_enter(s);

        virtio_rdma_wq_retire(s, qp, queue == RDMA_BACKEND_SQ ? &qp->sq
                                                              : &qp->rq,
                              count);
        virtio_rdma_leave(s, was);
    }
}

static void virtio_rdma_srq_room(void *opaque, uint32_t srqn)
{
    VirtIORdma *s = opaque;
    VirtIORdmaSrq *srq = virtio_rdma_table_get(&s->srqs, srqn);

    if (srq) {
        virtio_rdma_schedule_srq(s, srq);
    }
}

/*
 * Whoever is to send next may be kicked before the receives are looked at
 * that were posted, and kicked for, earlier.
 */
static void virtio_rdma_recv_empty(void *opaque, uint32_t qpn)
{
    VirtIORdma *s = opaque;
    VirtIORdmaQp *qp = get_qp(s, qpn);
    bool was;

    if (!qp || !virtio_rdma_active(s)) {
        return;
    }
    was = virtio_rdma_enter(s);
    if (qp->srq) {
        virtio_rdma_srq_run(s, qp->srq);
    } else {
        virtio_rdma_wq_run(s, qp, &qp->rq);
    }
    virtio_rdma_leave(s, was);
}

static void virtio_rdma_op_done(void *opaque, int ret)
{
    virtio_rdma_ctrl_op_done(opaque, ret);
}

static const RdmaBackendClientOps client_ops = {
    .complete = virtio_rdma_complete,
    .retire = virtio_rdma_retire,
    .event = virtio_rdma_backend_event,
    .srq_room = virtio_rdma_srq_room,
    .recv_empty = virtio_rdma_recv_empty,
    .port_changed = virtio_rdma_port_changed,
    .op_done = virtio_rdma_op_done,
    .loaded_qp = virtio_rdma_loaded_qp,
    .loaded_mr = virtio_rdma_loaded_mr,
    .loaded_srq = virtio_rdma_loaded_srq,
    .loaded_mw = virtio_rdma_loaded_mw,
};

/* Work */

/* Receives first: what is sent may come back here. */
static bool run_srqs(VirtIORdma *s)
{
    bool posted = false;

    if (!s->srqs.count) {
        return false;
    }
    for (uint32_t n = s->srqs.first; n < s->srqs.end; n++) {
        VirtIORdmaSrq *srq = virtio_rdma_table_get(&s->srqs, n);

        if (srq) {
            posted |= virtio_rdma_srq_run(s, srq);
        }
    }
    return posted;
}

static void run_qp(VirtIORdma *s, VirtIORdmaQp *qp, bool *posted)
{
    if (qp->to_err && !s->ctrl->pending) {
        virtio_rdma_fail_qp(s, qp);
    }
    /* Receives first: what is sent may come back here. */
    if (!qp->srq) {
        *posted |= virtio_rdma_wq_run(s, qp, &qp->rq);
    }
    *posted |= virtio_rdma_wq_run(s, qp, &qp->sq);
}

/* There are buffers for completions that are kept. */
static void flush_cq(VirtIORdma *s, VirtIORdmaCq *cq)
{
    if (!cq->error && !virtio_rdma_cq_flush(s, cq)) {
        virtio_rdma_fail_cq(s, cq);
    }
}

/* All of them; those without completions shall make no notifications. */
static void flush_cqs(VirtIORdma *s)
{
    s->rerun_cqs = false;
    for (uint32_t n = s->cqs.first; n < s->cqs.end; n++) {
        VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, n);

        if (cq) {
            flush_cq(s, cq);
        }
    }
}

/*
 * The backend stands still with the VM, and when the device is broken: to a
 * driver that then frees its memory, peers must not write. Has that changed?
 */
static bool update_running(VirtIORdma *s)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    bool running = vdev->vm_running && !vdev->broken;

    if (running == s->running) {
        return false;
    }
    s->running = running;
    trace_virtio_rdma_running(s, running);
    s->bc->set_running(s->backend, running);
    return true;
}

static void virtio_rdma_bh(void *opaque)
{
    VirtIORdma *s = opaque;
    VirtIORdmaSrq *srq, *last_srq;
    VirtIORdmaQp *qp, *last_qp;
    bool posted = false;
    bool was;

    update_running(s);
    if (!virtio_rdma_active(s)) {
        return;
    }
    was = virtio_rdma_enter(s);
    if (s->rerun_all || s->rerun_cqs) {
        flush_cqs(s);
    }
    if (s->rerun_all) {
        s->rerun_all = false;
        for (uint32_t n = s->srqs.first; n < s->srqs.end; n++) {
            srq = virtio_rdma_table_get(&s->srqs, n);
            if (srq) {
                virtio_rdma_schedule_srq(s, srq);
            }
        }
        virtio_rdma_run_events(s);
        for (uint32_t n = s->qps.first; n < s->qps.end; n++) {
            qp = get_qp(s, n);
            if (qp) {
                virtio_rdma_schedule_qp(s, qp);
            }
        }
    }
    virtio_rdma_ctrl_run(s);

    /* Whoever asks for another turn meanwhile gets it next time. */
    last_srq = QTAILQ_LAST(&s->rerun_srqs);
    for (bool more = last_srq; more;) {
        srq = QTAILQ_FIRST(&s->rerun_srqs);
        more = srq != last_srq;
        QTAILQ_REMOVE(&s->rerun_srqs, srq, next);
        srq->queued = false;
        posted |= virtio_rdma_srq_run(s, srq);
    }
    last_qp = QTAILQ_LAST(&s->rerun);
    for (bool more = last_qp; more;) {
        qp = QTAILQ_FIRST(&s->rerun);
        more = qp != last_qp;
        QTAILQ_REMOVE(&s->rerun, qp, next);
        qp->queued = false;
        run_qp(s, qp, &posted);
    }
    if (posted) {
        s->bc->kick(s->backend);
    }
    virtio_rdma_leave(s, was);
}

void virtio_rdma_schedule_qp(VirtIORdma *s, VirtIORdmaQp *qp)
{
    if (!qp->queued) {
        qp->queued = true;
        QTAILQ_INSERT_TAIL(&s->rerun, qp, next);
    }
    qemu_bh_schedule(s->bh);
}

static void virtio_rdma_handle_ctrl(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    bool was;

    if (!virtio_rdma_active(s)) {
        if (!(vdev->status & VIRTIO_CONFIG_S_DRIVER_OK)) {
            qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: control commands "
                          "wait for DRIVER_OK\n");
        }
        return;
    }
    was = virtio_rdma_enter(s);
    virtio_rdma_ctrl_run(s);
    virtio_rdma_leave(s, was);
}

static void virtio_rdma_handle_cq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs,
                                             virtio_get_queue_index(vq) -
                                             VIRTIO_RDMA_CQ_VQ(0));
    bool was;

    if (!cq || !cq->nkept || !virtio_rdma_active(s)) {
        return;
    }
    was = virtio_rdma_enter(s);
    flush_cq(s, cq);
    virtio_rdma_leave(s, was);
}

/* The QP that has a work queue at virtqueue @n, or NULL. */
static VirtIORdmaQp *qp_of_vq(VirtIORdma *s, uint32_t n, VirtIORdmaWq **wq)
{
    uint32_t first = VIRTIO_RDMA_SQ_VQ(s->limits.max_cq, 0);
    VirtIORdmaQp *qp;

    if (n < first) {
        return NULL;
    }
    qp = get_qp(s, (n - first) / 2);
    if (!qp || ((n - first) % 2 && qp->srq)) {
        return NULL;
    }
    *wq = (n - first) % 2 ? &qp->rq : &qp->sq;
    return qp;
}

static void virtio_rdma_handle_wq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaWq *wq = NULL;
    VirtIORdmaQp *qp = qp_of_vq(s, virtio_get_queue_index(vq), &wq);
    bool posted = false;
    bool was;

    if (!qp || !virtio_rdma_active(s)) {
        return;
    }
    was = virtio_rdma_enter(s);
    if (wq == &qp->sq) {
        posted = run_srqs(s);
    }
    posted |= virtio_rdma_wq_run(s, qp, wq);
    if (posted) {
        s->bc->kick(s->backend);
    }
    virtio_rdma_leave(s, was);
}

static void virtio_rdma_handle_event(VirtIODevice *vdev, VirtQueue *vq)
{
    virtio_rdma_run_events(VIRTIO_RDMA(vdev));
}

static void virtio_rdma_handle_srq(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaSrq *srq = virtio_rdma_srq_of_vq(s, virtio_get_queue_index(vq));
    bool was;

    if (!srq || !virtio_rdma_active(s)) {
        return;
    }
    was = virtio_rdma_enter(s);
    if (virtio_rdma_srq_run(s, srq)) {
        s->bc->kick(s->backend);
    }
    virtio_rdma_leave(s, was);
}

/* What the transport calls */

static uint64_t virtio_rdma_get_features(VirtIODevice *vdev,
                                         uint64_t features, Error **errp)
{
    return features | VIRTIO_RDMA(vdev)->rdma_features;
}

static void virtio_rdma_get_config(VirtIODevice *vdev, uint8_t *config)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    memcpy(config, s->config, s->codec->config_size);
}

static void virtio_rdma_set_status(VirtIODevice *vdev, uint8_t status)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    bool resume = update_running(s) && s->running;

    if ((status & VIRTIO_CONFIG_S_DRIVER_OK) &&
        (resume || !(vdev->status & VIRTIO_CONFIG_S_DRIVER_OK))) {
        virtio_rdma_start_extensions(s);
        /* Kicks were ignored until now. */
        s->rerun_all = true;
        qemu_bh_schedule(s->bh);
    }
}

static void virtio_rdma_reset(VirtIODevice *vdev)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);

    trace_virtio_rdma_reset(s);
    s->bc->reset(s->backend);
    virtio_rdma_ctrl_reset(s);
    virtio_rdma_events_reset(s);
    virtio_rdma_objects_reset(s);
    virtio_rdma_set_counters(s, NULL);
    s->rerun_all = false;
    s->rerun_cqs = false;
    qemu_bh_cancel(s->bh);
}

static bool is_event_vq(VirtIORdma *s, uint32_t n)
{
    return n == VIRTIO_RDMA_EVENT_VQ(s->limits.max_cq, s->limits.max_qp);
}

static void reset_wq(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq)
{
    bool lost = virtio_rdma_wq_forget(s, wq);

    if (!lost && !s->ctrl->pending &&
        virtio_rdma_qp_is_in(s, qp, RDMA_QPS_RESET)) {
        /* It was not used yet. */
        return;
    }
    qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: virtqueue of QP %u was reset "
                  "under it\n", qp->init.qpn);
    virtio_rdma_fail_qp(s, qp);
}

static void virtio_rdma_queue_reset(VirtIODevice *vdev, uint32_t n)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaWq *wq = NULL;
    VirtIORdmaQp *qp = qp_of_vq(s, n, &wq);
    VirtIORdmaSrq *srq = virtio_rdma_srq_of_vq(s, n);
    VirtIORdmaCq *cq = NULL;
    bool was = virtio_rdma_enter(s);

    trace_virtio_rdma_queue_reset(s, n);
    if (n == VIRTIO_RDMA_CTRL_VQ) {
        virtio_rdma_ctrl_drop(s);
    } else if (is_event_vq(s, n)) {
        virtio_rdma_reset_event_queue(s);
    } else if (n <= s->limits.max_cq) {
        cq = virtio_rdma_table_get(&s->cqs, n - VIRTIO_RDMA_CQ_VQ(0));
    }
    if (n < VIRTIO_QUEUE_MAX) {
        clear_bit(n, s->stale_vqs);
    }
    if (qp) {
        reset_wq(s, qp, wq);
    } else if (srq) {
        virtio_rdma_fail_srq(s, srq);
    } else if (cq) {
        cq->seen = 0;
    }
    if (cq && cq->users) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: virtqueue of CQ %u was "
                      "reset under it\n", cq->cqn);
        virtio_rdma_fail_cq(s, cq);
    }
    virtio_rdma_leave(s, was);
}

static void virtio_rdma_queue_enable(VirtIODevice *vdev, uint32_t n)
{
    VirtIORdma *s = VIRTIO_RDMA(vdev);
    VirtIORdmaWq *wq = NULL;
    VirtIORdmaQp *qp = qp_of_vq(s, n, &wq);

    if (qp) {
        virtio_rdma_schedule_qp(s, qp);
    } else if (n >= VIRTIO_RDMA_CQ_VQ(0) && n <= s->limits.max_cq) {
        s->rerun_cqs = true;
        qemu_bh_schedule(s->bh);
    } else if (is_event_vq(s, n)) {
        virtio_rdma_run_events(s);
    }
}

/* Realize */

static bool get_backend(VirtIORdma *s, Error **errp)
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
        s->backend = conf->rdmadev;
        s->bc = RDMA_BACKEND_GET_CLASS(s->backend);
        return true;
    }

    s->backend = rdma_backend_new_roce(OBJECT(s), conf->netdev, errp);
    if (!s->backend) {
        return false;
    }
    s->own_backend = true;
    s->bc = RDMA_BACKEND_GET_CLASS(s->backend);
    if (!buffer_is_zero(&conf->mac, sizeof(conf->mac))) {
        mac = qemu_mac_strdup_printf(conf->mac.a);
        return object_property_set_str(OBJECT(s->backend), "mac", mac, errp);
    }
    return true;
}

static void put_backend(VirtIORdma *s)
{
    if (s->own_backend) {
        object_unparent(OBJECT(s->backend));
    }
    s->own_backend = false;
    s->backend = NULL;
    s->bc = NULL;
}

/* Where vdev->dma_as will point to: it is set only after realize. */
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

static bool attach_backend(VirtIORdma *s, Error **errp)
{
    const VirtIORdmaConf *conf = &s->conf;

    s->limits = (RdmaBackendLimits) {
        .max_qp = conf->max_qp,
        .max_qp_wr = conf->queue_size,
        .max_send_sge = conf->max_sge,
        .max_recv_sge = conf->max_sge,
        .max_inline_data = conf->max_inline,
        .max_cq = conf->max_cq,
        .max_cqe = conf->queue_size,
        .max_mr = conf->max_mr,
        .max_pd = conf->max_pd,
        .max_mr_size = conf->max_mr_size,
        .max_rd_atomic = conf->max_rd_atomic,
        .gid_table_len = conf->gid_table_len,
        .max_srq = virtio_rdma_offers(s, VIRTIO_RDMA_F_SRQ) ? conf->max_srq
                                                            : 0,
        .max_srq_wr = conf->max_srq_wr,
        .max_srq_sge = conf->max_sge,
        .max_mw = virtio_rdma_offers(s, VIRTIO_RDMA_F_MW) ? conf->max_mw : 0,
        .max_reg_pages = virtio_rdma_offers(s, VIRTIO_RDMA_F_REG_PAGES)
                         ? VIRTIO_RDMA_MAX_PAGE_LIST : 0,
        .max_mcast_grp = conf->max_mcast_grp,
        .max_mcast_qp_attach = conf->max_mcast_qp_attach,
        .extensions = RDMA_EXT_FLUSH | RDMA_EXT_ATOMIC_WRITE,
        .atomic_cap = VIRTIO_RDMA_ATOMIC_GLOB,
        .device_cap_flags = VIRTIO_RDMA_CAP_BAD_PKEY_CNTR |
                            VIRTIO_RDMA_CAP_BAD_QKEY_CNTR |
                            VIRTIO_RDMA_CAP_SYS_IMAGE_GUID |
                            VIRTIO_RDMA_CAP_RC_RNR_NAK_GEN |
                            VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS,
    };
    return rdma_backend_attach(s->backend, &client_ops, s,
                               get_dma_as(VIRTIO_DEVICE(s)), &s->limits,
                               errp);
}

static bool block_migration(VirtIORdma *s, Error **errp)
{
    if (s->bc->vmsd) {
        return true;
    }
    error_setg(&s->migration_blocker, "virtio-rdma cannot be migrated: the "
               "state of its backend (%s) does not migrate",
               object_get_typename(OBJECT(s->backend)));
    return migrate_add_blocker(&s->migration_blocker, errp) == 0;
}

static void add_queues(VirtIORdma *s)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);
    uint32_t size = s->conf.queue_size;

    virtio_add_queue(vdev, size, virtio_rdma_handle_ctrl);
    for (uint32_t n = 0; n < s->limits.max_cq; n++) {
        virtio_add_queue(vdev, size, virtio_rdma_handle_cq);
    }
    for (uint32_t n = 0; n < s->limits.max_qp; n++) {
        virtio_add_queue(vdev, size, virtio_rdma_handle_wq);
        virtio_add_queue(vdev, size, virtio_rdma_handle_wq);
    }
    /* Behind a hole QEMU would see no virtqueues. */
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_EVENTS) || s->limits.max_srq) {
        virtio_add_queue(vdev, size, virtio_rdma_handle_event);
    }
    for (uint32_t n = 0; n < s->limits.max_srq; n++) {
        virtio_add_queue(vdev, size, virtio_rdma_handle_srq);
    }
}

static void virtio_rdma_realize(DeviceState *dev, Error **errp)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    VirtIORdma *s = VIRTIO_RDMA(dev);
    BusState *qbus = qdev_get_parent_bus(dev);

    if (!virtio_rdma_check_conf(s, errp)) {
        return;
    }
    if (!get_backend(s, errp) || !attach_backend(s, errp)) {
        put_backend(s);
        return;
    }
    if (!block_migration(s, errp)) {
        rdma_backend_detach(s->backend);
        put_backend(s);
        return;
    }

    virtio_rdma_settle_features(s);
    s->codec = &virtio_rdma_codec_packed;
    s->guard = &qbus->parent->mem_reentrancy_guard;
    s->config = g_malloc0(s->codec->config_size);
    s->max_mr_pages = MAX(MIN_MR_PAGES,
                          MR_PAGES_FACTOR * (current_machine->maxram_size >>
                                             RDMA_PAGE_SHIFT));
    virtio_init(vdev, VIRTIO_ID_RDMA, s->codec->config_size);
    add_queues(s);
    virtio_rdma_events_init(s);
    virtio_rdma_objects_init(s);
    virtio_rdma_ctrl_init(s);
    virtio_rdma_wq_init(s);
    s->bh = virtio_bh_new_guarded(dev, virtio_rdma_bh, s);
    virtio_rdma_update_config(s);
    virtio_rdma_set_counters(s, NULL);
    virtio_rdma_register_early(s);
    s->running = vdev->vm_running;
    s->bc->set_running(s->backend, s->running);
    trace_virtio_rdma_realize(s, s->limits.max_cq, s->limits.max_qp,
                              virtio_get_num_queues(vdev));
}

static void virtio_rdma_unrealize(DeviceState *dev)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    VirtIORdma *s = VIRTIO_RDMA(dev);

    virtio_rdma_unregister_early(s);
    rdma_backend_detach(s->backend);
    put_backend(s);
    migrate_del_blocker(&s->migration_blocker);
    virtio_rdma_ctrl_free(s);
    virtio_rdma_objects_free(s);
    virtio_rdma_events_free(s);
    virtio_rdma_wq_free(s);
    virtio_rdma_free_saved(s);
    qemu_bh_delete(s->bh);
    s->bh = NULL;
    for (int n = virtio_get_num_queues(vdev) - 1; n >= 0; n--) {
        virtio_del_queue(vdev, n);
    }
    virtio_cleanup(vdev);
    g_free(s->config);
    s->config = NULL;
}

static const VMStateDescription vmstate_virtio_rdma = {
    .name = "virtio-rdma",
    .minimum_version_id = 1,
    .version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_VIRTIO_DEVICE,
        VMSTATE_END_OF_LIST()
    },
};

static void virtio_rdma_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    VirtioDeviceClass *vdc = VIRTIO_DEVICE_CLASS(klass);

    virtio_rdma_class_props(klass);
    dc->vmsd = &vmstate_virtio_rdma;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    vdc->realize = virtio_rdma_realize;
    vdc->unrealize = virtio_rdma_unrealize;
    vdc->get_features = virtio_rdma_get_features;
    vdc->get_config = virtio_rdma_get_config;
    vdc->set_status = virtio_rdma_set_status;
    vdc->reset = virtio_rdma_reset;
    vdc->vmsd = &vmstate_virtio_rdma_device;
    vdc->post_load = virtio_rdma_post_load;
    vdc->queue_reset = virtio_rdma_queue_reset;
    vdc->queue_enable = virtio_rdma_queue_enable;
    vdc->start_ioeventfd = virtio_rdma_start_ioeventfd;
    vdc->stop_ioeventfd = virtio_rdma_stop_ioeventfd;
}

static const TypeInfo virtio_rdma_info = {
    .name = TYPE_VIRTIO_RDMA,
    .parent = TYPE_VIRTIO_DEVICE,
    .instance_size = sizeof(VirtIORdma),
    .class_init = virtio_rdma_class_init,
};

static void virtio_rdma_register_types(void)
{
    type_register_static(&virtio_rdma_info);
}

type_init(virtio_rdma_register_types)
