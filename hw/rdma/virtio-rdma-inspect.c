/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A look at a device and its objects from the host, for QMP.
 *
 * The device is entered for a few objects at a time, so that an iothread gets
 * on with its work. In between the objects stay what they are, for only a
 * thread with the BQL makes or destroys any; but what was put off until the
 * device is left may end them all.
 */
#include "qemu/osdep.h"
#include "net/net.h"
#include "qapi/qapi-types-rdma.h"
#include "qapi/util.h"
#include "qemu/bitops.h"
#include "virtio-rdma-device.h"

/* Objects that are looked at without leaving the device */
#define AT_ONCE 32

QEMU_BUILD_BUG_ON(sizeof(RdmaCounters) !=
                  VIRTIO_RDMA_NUM_COUNTERS * sizeof(uint64_t));
QEMU_BUILD_BUG_ON(offsetof(RdmaCounters, rx_mcast_packets) !=
                  VIRTIO_RDMA_RX_MCAST_PACKETS * sizeof(uint64_t));
QEMU_BUILD_BUG_ON((int)RDMA_QUEUE_PAIR_STATE_ERR != (int)RDMA_QPS_ERR);
QEMU_BUILD_BUG_ON((int)RDMA_QUEUE_PAIR_TYPE_UD != (int)RDMA_QPT_UD);
QEMU_BUILD_BUG_ON((int)RDMA_MEMORY_TYPE_FAST_REG != (int)RDMA_MR_FAST_REG);

/* The ends of the lists in an RdmaInfo */
typedef struct Ends {
    RdmaPdInfoList **pds;
    RdmaCqInfoList **cqs;
    RdmaSrqInfoList **srqs;
    RdmaQueuePairInfoList **qps;
    RdmaMrInfoList **mrs;
} Ends;

typedef void AddFunc(VirtIORdma *s, const void *obj, bool detail, Ends *ends);

static bool ask(VirtIORdma *s, RdmaObjectType what, uint32_t id,
                RdmaInspection *out)
{
    return s->bc->inspect(s->backend, what, id, out) == 0;
}

static RdmaMemoryAccessList *access_info(uint32_t access)
{
    static const uint32_t flags[] = {
        [RDMA_MEMORY_ACCESS_LOCAL_WRITE] = RDMA_ACCESS_LOCAL_WRITE,
        [RDMA_MEMORY_ACCESS_REMOTE_WRITE] = RDMA_ACCESS_REMOTE_WRITE,
        [RDMA_MEMORY_ACCESS_REMOTE_READ] = RDMA_ACCESS_REMOTE_READ,
        [RDMA_MEMORY_ACCESS_REMOTE_ATOMIC] = RDMA_ACCESS_REMOTE_ATOMIC,
        [RDMA_MEMORY_ACCESS_MW_BIND] = RDMA_ACCESS_MW_BIND,
        [RDMA_MEMORY_ACCESS_ZERO_BASED] = RDMA_ACCESS_ZERO_BASED,
        [RDMA_MEMORY_ACCESS_FLUSH_GLOBAL] = RDMA_ACCESS_FLUSH_GLOBAL,
    };
    RdmaMemoryAccessList *list = NULL, **end = &list;

    for (int i = 0; i < ARRAY_SIZE(flags); i++) {
        if (access & flags[i]) {
            QAPI_LIST_APPEND(end, i);
        }
    }
    return list;
}

static char *gid_info(const uint8_t gid[RDMA_GID_LEN])
{
    char text[INET6_ADDRSTRLEN];

    return g_strdup(inet_ntop(AF_INET6, gid, text, sizeof(text)));
}

/* Objects */

static void add_pd(VirtIORdma *s, const void *obj, bool detail, Ends *ends)
{
    const VirtIORdmaPd *pd = obj;
    RdmaPdInfo *info = g_new0(RdmaPdInfo, 1);

    info->pdn = pd->pdn;
    info->users = pd->users;
    QAPI_LIST_APPEND(ends->pds, info);
}

static void add_cq(VirtIORdma *s, const void *obj, bool detail, Ends *ends)
{
    const VirtIORdmaCq *cq = obj;
    RdmaCqInfo *info = g_new0(RdmaCqInfo, 1);

    info->cqn = cq->cqn;
    info->cqe = cq->cqe;
    info->users = cq->users;
    info->direct = cq->ops->is_direct;
    info->event_queue = cq->is_eq;
    info->has_eqn = cq->eq;
    info->eqn = cq->eq ? cq->eq->cqn : 0;
    info->backlog = cq->n_backlog;
    info->failed = cq->error;
    QAPI_LIST_APPEND(ends->cqs, info);
}

static void add_srq(VirtIORdma *s, const void *obj, bool detail, Ends *ends)
{
    const VirtIORdmaSrq *srq = obj;
    RdmaInspection in;
    RdmaSrqInfo *info;

    if (!ask(s, RDMA_OBJECT_SRQ, srq->attr.srqn, &in)) {
        return;
    }
    info = g_new0(RdmaSrqInfo, 1);
    info->srqn = srq->attr.srqn;
    info->pdn = srq->pd->pdn;
    info->users = srq->users;
    info->max_wr = srq->attr.max_wr;
    info->max_sge = srq->attr.max_sge;
    info->recvs = in.srq.recvs;
    info->has_recvs_waiting = virtio_rdma_wq_count(s, &srq->wq,
                                                   &info->recvs_waiting);
    info->has_limit = in.srq.has_limit;
    info->limit = in.srq.limit;
    info->direct = virtio_rdma_wq_is_direct(&srq->wq);
    info->failed = srq->error;
    QAPI_LIST_APPEND(ends->srqs, info);
}

static void add_mr(VirtIORdma *s, const void *obj, bool detail, Ends *ends)
{
    const VirtIORdmaMr *mr = obj;
    RdmaInspection in;
    RdmaMrInfo *info;

    if (!ask(s, RDMA_OBJECT_MR, mr->mrn, &in)) {
        return;
    }
    info = g_new0(RdmaMrInfo, 1);
    info->mrn = mr->mrn;
    info->type = mr->mw_type == RDMA_MW_TYPE_1 ? RDMA_MEMORY_TYPE_MW_TYPE_1 :
                 mr->mw_type ? RDMA_MEMORY_TYPE_MW_TYPE_2
                             : (RdmaMemoryType)mr->type;
    info->pdn = mr->pd->pdn;
    info->lkey = in.mr.lkey;
    info->rkey = in.mr.rkey;
    info->valid = in.mr.valid;
    info->has_iova = in.mr.valid;
    info->iova = in.mr.iova;
    info->has_length = in.mr.valid;
    info->length = in.mr.length;
    if (detail && in.mr.valid) {
        info->has_access = true;
        info->access = access_info(in.mr.access);
    }
    QAPI_LIST_APPEND(ends->mrs, info);
}

static RdmaQueuePairStats *stats_info(const RdmaQpStats *stats)
{
    RdmaQueuePairStats *info = g_new0(RdmaQueuePairStats, 1);

    info->tx_packets = stats->tx_frames;
    info->tx_bytes = stats->tx_bytes;
    info->rx_packets = stats->rx_frames;
    info->rx_bytes = stats->rx_bytes;
    info->loopback_packets = stats->loopback_frames;
    info->retransmits = stats->retransmits;
    info->timeouts = stats->timeouts;
    info->timeouts_late = stats->timeouts_late;
    info->rnr_naks_sent = stats->rnr_naks_sent;
    info->rnr_naks_received = stats->rnr_naks_received;
    info->naks_sent = stats->naks_sent;
    info->naks_received = stats->naks_received;
    info->rx_duplicates = stats->rx_duplicates;
    info->rx_out_of_sequence = stats->rx_out_of_sequence;
    info->bad_qkey = stats->bad_qkey;
    return info;
}

static RdmaQueuePairProgress *progress_info(const RdmaQpInspection *in)
{
    RdmaQueuePairProgress *info = g_new0(RdmaQueuePairProgress, 1);

    info->una_psn = in->una_psn;
    info->next_psn = in->next_psn;
    info->retries = in->retries;
    info->rnr_retries = in->rnr_retries;
    return info;
}

/* One that has no peer has no attributes of a path. */
static void add_path(RdmaQueuePairDetail *info, const RdmaQpInspection *in)
{
    const RdmaQpAttr *attr = &in->attr;

    info->has_path_mtu = (in->known & RDMA_QP_PATH_MTU) && attr->path_mtu;
    if (info->has_path_mtu) {
        info->path_mtu = rdma_mtu_bytes(attr->path_mtu);
    }
    if (in->known & RDMA_QP_AV) {
        info->has_sgid_index = true;
        info->sgid_index = attr->ah_attr.sgid_index;
        info->dgid = gid_info(attr->ah_attr.dgid);
    }
    info->has_timeout = in->known & RDMA_QP_TIMEOUT;
    info->timeout = attr->timeout;
    info->has_retry_cnt = in->known & RDMA_QP_RETRY_CNT;
    info->retry_cnt = attr->retry_cnt;
    info->has_rnr_retry = in->known & RDMA_QP_RNR_RETRY;
    info->rnr_retry = attr->rnr_retry;
    info->has_max_rd_atomic = in->known & RDMA_QP_MAX_QP_RD_ATOMIC;
    info->max_rd_atomic = attr->max_rd_atomic;
    info->has_max_dest_rd_atomic = in->known & RDMA_QP_MAX_DEST_RD_ATOMIC;
    info->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    info->has_access = in->known & RDMA_QP_ACCESS_FLAGS;
    if (info->has_access) {
        info->access = access_info(attr->qp_access_flags);
    }
}

static bool is_connected(const VirtIORdmaQp *qp)
{
    return qp->init.qp_type == RDMA_QPT_RC || qp->init.qp_type == RDMA_QPT_UC;
}

static RdmaQueuePairDetail *detail_info(const VirtIORdmaQp *qp,
                                        const RdmaQpInspection *in)
{
    RdmaQueuePairDetail *info = g_new0(RdmaQueuePairDetail, 1);

    info->max_send_wr = qp->init.cap.max_send_wr;
    info->max_recv_wr = qp->init.cap.max_recv_wr;
    info->max_send_sge = qp->init.cap.max_send_sge;
    info->max_recv_sge = qp->init.cap.max_recv_sge;
    info->max_inline_data = qp->init.cap.max_inline_data;
    info->direct = virtio_rdma_wq_is_direct(&qp->sq);
    if (is_connected(qp)) {
        add_path(info, in);
    }
    info->has_rate_limit = in->known & RDMA_QP_RATE_LIMIT;
    info->rate_limit = in->attr.rate_limit;
    if (in->has_progress) {
        info->progress = progress_info(in);
    }
    if (in->has_stats) {
        info->stats = stats_info(&in->stats);
    }
    return info;
}

static void add_waiting(VirtIORdma *s, const VirtIORdmaQp *qp,
                        RdmaQueuePairInfo *info)
{
    info->has_sends_waiting = virtio_rdma_wq_count(s, &qp->sq,
                                                   &info->sends_waiting);
    if (!qp->srq) {
        info->has_recvs_waiting = virtio_rdma_wq_count(s, &qp->rq,
                                                       &info->recvs_waiting);
    }
}

static void add_qp(VirtIORdma *s, const void *obj, bool detail, Ends *ends)
{
    const VirtIORdmaQp *qp = obj;
    RdmaQueuePairInfo *info;
    RdmaInspection in;

    if (!ask(s, RDMA_OBJECT_QP, qp->init.qpn, &in)) {
        return;
    }
    info = g_new0(RdmaQueuePairInfo, 1);
    info->qpn = qp->init.qpn;
    info->has_wire_qpn = qp->init.wire_qpn != qp->init.qpn;
    info->wire_qpn = qp->init.wire_qpn;
    info->type = (RdmaQueuePairType)qp->init.qp_type;
    info->state = (RdmaQueuePairState)in.qp.attr.qp_state;
    info->pdn = qp->pd->pdn;
    info->send_cqn = qp->send_cq->cqn;
    info->recv_cqn = qp->recv_cq->cqn;
    info->has_srqn = qp->srq;
    info->srqn = qp->srq ? qp->srq->attr.srqn : 0;
    info->has_dest_qpn = is_connected(qp) && (in.qp.known & RDMA_QP_DEST_QPN);
    info->dest_qpn = in.qp.attr.dest_qp_num;
    info->has_sq_psn = in.qp.known & RDMA_QP_SQ_PSN;
    info->sq_psn = in.qp.attr.sq_psn;
    info->has_rq_psn = in.qp.known & RDMA_QP_RQ_PSN;
    info->rq_psn = in.qp.attr.rq_psn;
    info->sends = in.qp.sends;
    info->recvs = in.qp.recvs;
    info->errors = qp->n_errors;
    if (qp->n_errors) {
        info->last_error = virtio_rdma_error_info(&qp->error);
    }
    if (detail) {
        add_waiting(s, qp, info);
        info->detail = detail_info(qp, &in.qp);
    }
    QAPI_LIST_APPEND(ends->qps, info);
}

static void add_all(VirtIORdma *s, const VirtIORdmaTable *t,
                    const VirtIORdmaLook *look, AddFunc *add, Ends *ends)
{
    unsigned long id = look->first;
    uint32_t left = look->max;
    bool more = true;

    while (more && left && s->backend) {
        virtio_rdma_enter(s);
        for (int i = 0; more && i < AT_ONCE && left; i++) {
            id = id < t->end ? find_next_bit(t->used, t->end, id) : t->end;
            more = id < t->end;
            if (more) {
                add(s, t->slot[id++], look->detail, ends);
                left--;
            }
        }
        virtio_rdma_leave(s);
    }
}

static RdmaGidInfoList *gids_info(VirtIORdma *s, const VirtIORdmaLook *look)
{
    RdmaGidInfoList *list = NULL, **end = &list;
    uint32_t left = look->max;
    RdmaInspection in;

    virtio_rdma_enter(s);
    for (uint32_t i = look->first; i < s->limits.gid_table_len && left; i++) {
        RdmaGidInfo *info;

        if (!ask(s, RDMA_OBJECT_GID, i, &in)) {
            continue;
        }
        info = g_new0(RdmaGidInfo, 1);
        info->index = i;
        info->gid = gid_info(in.gid.gid);
        info->has_vlan = in.gid.vlan != RDMA_NO_VLAN;
        info->vlan = in.gid.vlan;
        QAPI_LIST_APPEND(end, info);
        left--;
    }
    virtio_rdma_leave(s);
    return list;
}

/* The device */

static RdmaObjectCount *count_info(uint32_t used, uint32_t max)
{
    RdmaObjectCount *info = g_new0(RdmaObjectCount, 1);

    info->used = used;
    info->max = max;
    return info;
}

static RdmaObjectCounts *counts_info(const VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->limits;
    RdmaObjectCounts *info = g_new0(RdmaObjectCounts, 1);

    info->pd = count_info(s->pds.count, l->max_pd);
    info->cq = count_info(s->cqs.count, l->max_cq);
    info->srq = count_info(s->srqs.count, l->max_srq);
    info->qp = count_info(s->qps.count, l->max_qp);
    info->mr = count_info(s->mrs.count - s->n_mws, l->max_mr);
    info->mw = count_info(s->n_mws, l->max_mw);
    return info;
}

static RdmaPortInfo *port_info(VirtIORdma *s)
{
    RdmaPortInfo *info = g_new0(RdmaPortInfo, 1);
    RdmaPortAttr port = {};

    s->bc->query_port(s->backend, &port);
    info->active = port.state == RDMA_PORT_ACTIVE;
    info->active_mtu = rdma_mtu_bytes(port.active_mtu);
    info->mac = qemu_mac_strdup_printf(port.mac);
    return info;
}

static RdmaBackendInfo *backend_info(VirtIORdma *s)
{
    RdmaBackendInfo *info = g_new0(RdmaBackendInfo, 1);

    info->type = g_strdup(object_get_typename(OBJECT(s->backend)));
    info->path = object_get_canonical_path(OBJECT(s->backend));
    info->info = s->bc->info_str(s->backend);
    return info;
}

static RdmaInfo *device_info(VirtIORdma *s)
{
    DeviceState *dev = virtio_rdma_transport(s);
    RdmaInfo *info = g_new0(RdmaInfo, 1);

    info->device = g_strdup(dev->id);
    info->path = object_get_canonical_path(OBJECT(dev));
    virtio_rdma_enter(s);
    info->driver = VIRTIO_DEVICE(s)->status & VIRTIO_CONFIG_S_DRIVER_OK;
    info->backend = backend_info(s);
    info->port = port_info(s);
    info->count = counts_info(s);
    info->counters = g_new0(RdmaCounters, 1);
    virtio_rdma_counters_get(s, (uint64_t *)info->counters);
    info->qp_errors = s->n_qp_errors;
    virtio_rdma_leave(s);
    return info;
}

RdmaInfo *virtio_rdma_inspect(VirtIORdma *s, const VirtIORdmaLook *look)
{
    RdmaInfo *info = device_info(s);
    const struct {
        const VirtIORdmaTable *table;
        AddFunc *add;
        bool *has;
    } lists[] = {
        [RDMA_OBJECT_KIND_PD] = { &s->pds, add_pd, &info->has_pds },
        [RDMA_OBJECT_KIND_CQ] = { &s->cqs, add_cq, &info->has_cqs },
        [RDMA_OBJECT_KIND_SRQ] = { &s->srqs, add_srq, &info->has_srqs },
        [RDMA_OBJECT_KIND_QP] = { &s->qps, add_qp, &info->has_qps },
        [RDMA_OBJECT_KIND_MR] = { &s->mrs, add_mr, &info->has_mrs },
    };
    Ends ends = {
        .pds = &info->pds,
        .cqs = &info->cqs,
        .srqs = &info->srqs,
        .qps = &info->qps,
        .mrs = &info->mrs,
    };

    for (int i = 0; i < ARRAY_SIZE(lists); i++) {
        if (look->kinds[i]) {
            *lists[i].has = true;
            add_all(s, lists[i].table, look, lists[i].add, &ends);
        }
    }
    if (look->kinds[RDMA_OBJECT_KIND_GID] && s->backend) {
        info->has_gids = true;
        info->gids = gids_info(s, look);
    }
    return info;
}
