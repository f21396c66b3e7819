/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspection of a device and its objects from the host, for query-rdma.
 *
 * This enters the device for a few objects at a time, so that an iothread can
 * work in between. Meanwhile no other thread creates or destroys objects,
 * because that needs the BQL. But when this leaves the device, deferred work
 * may reset the device, so each object is looked up again. Or it may end the
 * device: then hca->backend is NULL.
 */
#include "qemu/osdep.h"
#include "net/net.h"
#include "qapi/qapi-types-rdma.h"
#include "qapi/util.h"
#include "qemu/bitops.h"
#include "int.h"

/* Objects that are inspected without leaving the device */
#define OBJECTS_PER_ENTRY 32

QEMU_BUILD_BUG_ON(sizeof(RdmaCounters) !=
                  RDMA_NUM_COUNTERS * sizeof(uint64_t));
QEMU_BUILD_BUG_ON(offsetof(RdmaCounters, rx_mcast_packets) !=
                  RDMA_COUNTER_RX_MCAST_PACKETS * sizeof(uint64_t));
/* QAPI's and the backend's counters have the same order. */
QEMU_BUILD_BUG_ON(sizeof(RdmaQueuePairStats) != sizeof(RdmaQpStats));
QEMU_BUILD_BUG_ON(offsetof(RdmaQueuePairStats, timeouts_late) !=
                  offsetof(RdmaQpStats, timeouts_late));
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

typedef void AddFunc(RdmaHca *hca, const void *obj, bool detail, Ends *ends);

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

static void add_pd(RdmaHca *hca, const void *obj, bool detail, Ends *ends)
{
    const RdmaHcaPd *pd = obj;
    RdmaPdInfo *info = g_new0(RdmaPdInfo, 1);

    info->pdn = pd->pdn;
    info->users = pd->users;
    QAPI_LIST_APPEND(ends->pds, info);
}

static void add_cq(RdmaHca *hca, const void *obj, bool detail, Ends *ends)
{
    const RdmaHcaCq *cq = obj;
    RdmaCqInfo *info = g_new0(RdmaCqInfo, 1);

    info->cqn = cq->cqn;
    info->cqe = cq->cqe;
    info->users = cq->users;
    info->event_queue = cq->is_eq;
    info->failed = cq->error;
    info->direct = cq->ops->direct;
    if (cq->ops->inspect) {
        cq->ops->inspect(cq, info);
    }
    QAPI_LIST_APPEND(ends->cqs, info);
}

static void add_srq(RdmaHca *hca, const void *obj, bool detail, Ends *ends)
{
    const RdmaHcaSrq *srq = obj;
    RdmaInspection in;
    RdmaSrqInfo *info;

    if (hca->bc->inspect(hca->backend, RDMA_OBJECT_SRQ, srq->attr.srqn, &in)) {
        return;
    }
    info = g_new0(RdmaSrqInfo, 1);
    info->srqn = srq->attr.srqn;
    info->pdn = srq->pd->pdn;
    info->users = srq->users;
    info->max_wr = srq->attr.max_wr;
    info->max_sge = srq->attr.max_sge;
    info->recvs = in.srq.recvs;
    info->has_recvs_waiting = srq->wq.ops->count(hca, &srq->wq,
                                                 &info->recvs_waiting);
    info->has_limit = in.srq.has_limit;
    info->limit = in.srq.limit;
    info->failed = srq->error;
    info->direct = srq->wq.ops->direct;
    QAPI_LIST_APPEND(ends->srqs, info);
}

static void add_mr(RdmaHca *hca, const void *obj, bool detail, Ends *ends)
{
    const RdmaHcaMr *mr = obj;
    RdmaInspection in;
    RdmaMrInfo *info;

    if (hca->bc->inspect(hca->backend, RDMA_OBJECT_MR, mr->mrn, &in)) {
        return;
    }
    info = g_new0(RdmaMrInfo, 1);
    info->mrn = mr->mrn;
    info->type = mr->mw_type == RDMA_MW_TYPE_1 ? RDMA_MEMORY_TYPE_MW_TYPE_1 :
                 mr->mw_type ? RDMA_MEMORY_TYPE_MW_TYPE_2
                             : (RdmaMemoryType)mr->type;
    info->pdn = mr->pdn;
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

static RdmaQueuePairProgress *progress_info(const RdmaQpInspection *in)
{
    RdmaQueuePairProgress *info = g_new0(RdmaQueuePairProgress, 1);

    info->una_psn = in->una_psn;
    info->next_psn = in->next_psn;
    info->retries = in->retries;
    info->rnr_retries = in->rnr_retries;
    return info;
}

/* Only connected QPs have attributes of a path. */
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

static RdmaQueuePairDetail *detail_info(RdmaHca *hca, const RdmaHcaQp *qp,
                                        const RdmaQpInspection *in)
{
    RdmaQueuePairDetail *info = g_new0(RdmaQueuePairDetail, 1);

    info->max_send_wr = qp->init.cap.max_send_wr;
    info->max_recv_wr = qp->init.cap.max_recv_wr;
    info->max_send_sge = qp->init.cap.max_send_sge;
    info->max_recv_sge = qp->init.cap.max_recv_sge;
    info->max_inline_data = qp->init.cap.max_inline_data;
    info->direct = qp->sq.ops->direct;
    if (!rdma_qp_is_datagram(qp->init.qp_type)) {
        add_path(info, in);
    }
    info->has_rate_limit = in->known & RDMA_QP_RATE_LIMIT;
    info->rate_limit = in->attr.rate_limit;
    if (in->has_progress) {
        info->progress = progress_info(in);
    }
    if (in->has_stats) {
        info->stats = g_memdup2(&in->stats, sizeof(in->stats));
    }
    return info;
}

static void add_waiting(RdmaHca *hca, const RdmaHcaQp *qp,
                        RdmaQueuePairInfo *info)
{
    info->has_sends_waiting = qp->sq.ops->count(hca, &qp->sq,
                                                &info->sends_waiting);
    if (!qp->srq) {
        info->has_recvs_waiting = qp->rq.ops->count(hca, &qp->rq,
                                                    &info->recvs_waiting);
    }
}

static void add_qp(RdmaHca *hca, const void *obj, bool detail, Ends *ends)
{
    const RdmaHcaQp *qp = obj;
    RdmaQueuePairInfo *info;
    RdmaInspection in;

    if (hca->bc->inspect(hca->backend, RDMA_OBJECT_QP, qp->init.qpn, &in)) {
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
    info->has_dest_qpn = !rdma_qp_is_datagram(qp->init.qp_type) &&
                         (in.qp.known & RDMA_QP_DEST_QPN);
    info->dest_qpn = in.qp.attr.dest_qp_num;
    info->has_sq_psn = in.qp.known & RDMA_QP_SQ_PSN;
    info->sq_psn = in.qp.attr.sq_psn;
    info->has_rq_psn = in.qp.known & RDMA_QP_RQ_PSN;
    info->rq_psn = in.qp.attr.rq_psn;
    info->sends = in.qp.sends;
    info->recvs = in.qp.recvs;
    info->errors = qp->n_errors;
    if (qp->n_errors) {
        info->last_error = rdma_hca_error_info(&qp->error);
    }
    if (detail) {
        add_waiting(hca, qp, info);
        info->detail = detail_info(hca, qp, &in.qp);
    }
    QAPI_LIST_APPEND(ends->qps, info);
}

static void add_all(RdmaHca *hca, const RdmaHcaTable *t,
                    const RdmaHcaQuery *query, AddFunc *add, Ends *ends)
{
    unsigned long id = query->first;
    uint32_t left = query->max;
    bool more = true;

    while (more && left && hca->backend) {
        rdma_hca_enter(hca);
        for (int i = 0; more && i < OBJECTS_PER_ENTRY && left; i++) {
            id = id < t->end ? find_next_bit(t->used, t->end, id) : t->end;
            more = id < t->end;
            if (more) {
                add(hca, t->slot[id++], query->detail, ends);
                left--;
            }
        }
        rdma_hca_leave(hca);
    }
}

static RdmaGidInfoList *gids_info(RdmaHca *hca, const RdmaHcaQuery *query)
{
    RdmaGidInfoList *list = NULL, **end = &list;
    uint32_t left = query->max;
    RdmaInspection in;

    rdma_hca_enter(hca);
    for (uint32_t i = query->first; i < hca->limits.gid_table_len && left;
         i++) {
        RdmaGidInfo *info;

        if (hca->bc->inspect(hca->backend, RDMA_OBJECT_GID, i, &in)) {
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
    rdma_hca_leave(hca);
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

static RdmaObjectCounts *counts_info(const RdmaHca *hca)
{
    const RdmaBackendLimits *l = &hca->limits;
    RdmaObjectCounts *info = g_new0(RdmaObjectCounts, 1);

    info->pd = count_info(hca->pds.count, l->max_pd);
    info->cq = count_info(hca->cqs.count, l->max_cq);
    info->srq = count_info(hca->srqs.count, l->max_srq);
    info->qp = count_info(hca->qps.count, l->max_qp);
    info->mr = count_info(hca->mrs.count - hca->n_mws, l->max_mr);
    info->mw = count_info(hca->n_mws, l->max_mw);
    return info;
}

static RdmaPortInfo *port_info(RdmaHca *hca)
{
    RdmaPortInfo *info = g_new0(RdmaPortInfo, 1);
    RdmaPortAttr port = {};

    rdma_hca_port_get(hca, &port);
    info->active = port.state == RDMA_PORT_ACTIVE;
    info->active_mtu = rdma_mtu_bytes(port.active_mtu);
    info->mac = qemu_mac_strdup_printf(port.mac);
    return info;
}

static RdmaBackendInfo *backend_info(RdmaHca *hca)
{
    RdmaBackendInfo *info = g_new0(RdmaBackendInfo, 1);

    info->type = g_strdup(rdma_hca_backend_type(hca));
    info->path = object_get_canonical_path(OBJECT(hca->backend));
    info->info = hca->bc->info_str(hca->backend);
    return info;
}

static RdmaInfo *device_info(RdmaHca *hca)
{
    DeviceState *dev = hca->dev;
    RdmaInfo *info = g_new0(RdmaInfo, 1);

    info->device = g_strdup(dev->id);
    info->path = object_get_canonical_path(OBJECT(dev));
    rdma_hca_enter(hca);
    info->driver = hca->ops->has_driver(hca);
    info->backend = backend_info(hca);
    info->port = port_info(hca);
    info->count = counts_info(hca);
    info->counters = g_new0(RdmaCounters, 1);
    rdma_hca_counters_get(hca, (uint64_t *)info->counters);
    info->qp_errors = hca->n_qp_errors;
    rdma_hca_leave(hca);
    return info;
}

RdmaInfo *rdma_hca_inspect(RdmaHca *hca, const RdmaHcaQuery *query)
{
    RdmaInfo *info = device_info(hca);
    const struct {
        const RdmaHcaTable *table;
        AddFunc *add;
        bool *has;
    } lists[] = {
        [RDMA_OBJECT_KIND_PD] = { &hca->pds, add_pd, &info->has_pds },
        [RDMA_OBJECT_KIND_CQ] = { &hca->cqs, add_cq, &info->has_cqs },
        [RDMA_OBJECT_KIND_SRQ] = { &hca->srqs, add_srq, &info->has_srqs },
        [RDMA_OBJECT_KIND_QP] = { &hca->qps, add_qp, &info->has_qps },
        [RDMA_OBJECT_KIND_MR] = { &hca->mrs, add_mr, &info->has_mrs },
    };
    Ends ends = {
        .pds = &info->pds,
        .cqs = &info->cqs,
        .srqs = &info->srqs,
        .qps = &info->qps,
        .mrs = &info->mrs,
    };

    for (int i = 0; i < ARRAY_SIZE(lists); i++) {
        if (query->kinds[i]) {
            *lists[i].has = true;
            add_all(hca, lists[i].table, query, lists[i].add, &ends);
        }
    }
    if (query->kinds[RDMA_OBJECT_KIND_GID] && hca->backend) {
        info->has_gids = true;
        info->gids = gids_info(hca, query);
    }
    return info;
}
