/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspection of objects (rdma/inspect.h).
 */
#include <glib.h>
#include "roce-int.h"

/* The attributes that have a value in the current state (IBTA 11.2.5.2) */
static uint32_t known_attrs(const RoceQp *qp)
{
    const RdmaQpAttr *attr = &qp->s.attr;
    bool connected = attr->path_mtu;
    uint32_t known = UINT32_MAX;

    if (!connected) {
        known &= ~(RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
                   RDMA_QP_RQ_PSN);
    }
    if (attr->qp_state <= RDMA_QPS_RTR || (!connected && !roce_is_ud(qp))) {
        known &= ~RDMA_QP_SQ_PSN;
        connected = false;
    }
    if (!connected || qp->init.qp_type != RDMA_QPT_RC) {
        known &= ~(RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY |
                   RDMA_QP_MAX_QP_RD_ATOMIC);
    }
    if (!attr->path_mtu || qp->init.qp_type != RDMA_QPT_RC) {
        known &= ~RDMA_QP_MAX_DEST_RD_ATOMIC;
    }
    if (!attr->rate_limit) {
        known &= ~RDMA_QP_RATE_LIMIT;
    }
    return known;
}

static int inspect_qp(const RoceEngine *e, uint32_t qpn, RdmaQpInspection *out)
{
    const RoceQp *qp = roce_qp_find(e, qpn);

    if (!qp) {
        return -ENOENT;
    }
    *out = (RdmaQpInspection) {
        .known = known_attrs(qp),
        .attr = roce_qp_attr(qp),
        .sends = qp->s.sq.prod - qp->s.sq.cons,
        .recvs = qp->s.rq.prod - qp->s.rq.cons,
        .has_progress = true,
        .una_psn = qp->s.sq.una,
        .next_psn = qp->s.sq.psn,
        .retries = qp->s.sq.retries,
        .rnr_retries = qp->s.sq.rnr_retries,
        .has_stats = true,
        .stats = qp->stats,
    };
    return 0;
}

static int inspect_srq(const RoceEngine *e, uint32_t srqn,
                       RdmaSrqInspection *out)
{
    const RoceSrq *srq = roce_srq_find(e, srqn);

    if (!srq) {
        return -ENOENT;
    }
    *out = (RdmaSrqInspection) {
        .recvs = srq->has_wqe,
        .has_limit = true,
        .limit = srq->attr.limit,
    };
    return 0;
}

static int inspect_mr(const RoceEngine *e, uint32_t mrn, RdmaMrInspection *out)
{
    const RoceMr *mr = roce_mr_find(e, mrn) ?: roce_mw_find(e, mrn);

    if (!mr) {
        return -ENOENT;
    }
    *out = (RdmaMrInspection) {
        .lkey = mr->attr.lkey,
        .rkey = mr->attr.rkey,
        .valid = mr->valid,
    };
    if (mr->valid) {
        out->access = mr->attr.access;
        out->iova = mr->attr.iova;
        out->length = mr->attr.length;
    }
    return 0;
}

static int inspect_gid(const RoceEngine *e, uint32_t index,
                       RdmaGidInspection *out)
{
    if (index >= e->config.gid_table_len || !e->gid_valid[index]) {
        return -ENOENT;
    }
    memcpy(out->gid, e->gids[index].gid, RDMA_GID_LEN);
    out->vlan = e->gids[index].vlan;
    return 0;
}

int roce_inspect(const RoceEngine *e, RdmaObjectType what, uint32_t id,
                 RdmaInspection *out)
{
    switch (what) {
    case RDMA_OBJECT_QP:
        return inspect_qp(e, id, &out->qp);
    case RDMA_OBJECT_SRQ:
        return inspect_srq(e, id, &out->srq);
    case RDMA_OBJECT_MR:
        return inspect_mr(e, id, &out->mr);
    case RDMA_OBJECT_GID:
        return inspect_gid(e, id, &out->gid);
    default:
        return -EINVAL;
    }
}
