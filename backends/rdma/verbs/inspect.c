/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspection of objects without asking the host, which may take long. Of a QP
 * the backend knows its state and the attributes that the guest has set. On the
 * host, "rdma resource show qp" shows PSNs, by the number on the wire.
 */
#include "qemu/osdep.h"
#include "int.h"

void verbs_qp_note(VerbsQp *qp, uint32_t mask, const RdmaQpAttr *attr)
{
    RdmaQpAttr *to = &qp->set_attr;

    if ((mask & RDMA_QP_STATE) && attr->qp_state == RDMA_QPS_RESET) {
        qp->set_mask = 0;
        qp->set_attr = (RdmaQpAttr) { };
        return;
    }
    qp->set_mask |= mask;
#define NOTE(bit, field)                \
    if (mask & RDMA_QP_##bit) {         \
        to->field = attr->field;        \
    }
    NOTE(AV, ah_attr)
    VERBS_QP_NUMBERS(NOTE)
#undef NOTE
}

RdmaQpState verbs_qp_state(const VerbsQp *qp)
{
    return qp->failed ? RDMA_QPS_ERR : qp->sqe ? RDMA_QPS_SQE : qp->state;
}

static int inspect_qp(RdmaVerbs *v, uint32_t qpn, RdmaQpInspection *out)
{
    const VerbsQp *qp = verbs_get_live(v->qps, qpn);

    if (!qp) {
        return -ENOENT;
    }
    *out = (RdmaQpInspection) {
        .known = (qp->set_mask & ~(RDMA_QP_SQ_PSN | RDMA_QP_RQ_PSN)) |
                 RDMA_QP_STATE,
        .attr = qp->set_attr,
        .sends = qp->sq.count,
        .recvs = qp->rq.count,
    };
    out->attr.qp_state = verbs_qp_state(qp);
    return 0;
}

static int inspect_srq(RdmaVerbs *v, uint32_t srqn, RdmaSrqInspection *out)
{
    const VerbsSrq *srq = verbs_get_live(v->srqs, srqn);

    if (!srq) {
        return -ENOENT;
    }
    *out = (RdmaSrqInspection) { .recvs = srq->rq.count };
    return 0;
}

static int inspect_mr(RdmaVerbs *v, uint32_t mrn, RdmaMrInspection *out)
{
    const VerbsMr *mr = verbs_get_live(v->mrs, mrn);

    if (!mr) {
        return -ENOENT;
    }
    if (mr->mw) {
        /* Only the host knows what it is bound to. */
        *out = (RdmaMrInspection) { .rkey = mr->mw->rkey };
        return 0;
    }
    *out = (RdmaMrInspection) {
        .lkey = mr->mr ? mr->mr->lkey : mr->dma_key,
        .rkey = mr->mr ? mr->mr->rkey : 0,
        .valid = true,
        .access = mr->access,
        .iova = mr->iova,
        .length = mr->length,
    };
    return 0;
}

static int inspect_gid(RdmaVerbs *v, uint32_t index, RdmaGidInspection *out)
{
    const VerbsGid *gid;

    if (index >= v->parent_obj.limits.gid_table_len ||
        !v->gids[index].used) {
        return -ENOENT;
    }
    gid = &v->gids[index];
    memcpy(out->gid, gid->key.gid, RDMA_GID_LEN);
    out->vlan = gid->key.vlan;
    return 0;
}

int verbs_inspect(RdmaBackend *rb, RdmaObjectType what, uint32_t id,
                  RdmaInspection *out)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    switch (what) {
    case RDMA_OBJECT_QP:
        return inspect_qp(v, id, &out->qp);
    case RDMA_OBJECT_SRQ:
        return inspect_srq(v, id, &out->srq);
    case RDMA_OBJECT_MR:
        return inspect_mr(v, id, &out->mr);
    case RDMA_OBJECT_GID:
        return inspect_gid(v, id, &out->gid);
    default:
        return -EINVAL;
    }
}
