/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modify QP: which transitions there are, which attributes each must and may
 * bring, and what values they may have (IBTA 11.2.5.2, table 91).
 */
#include <glib.h>
#include "roce-int.h"

#define NUM_STATES (RDMA_QPS_ERR + 1)

/* The service types that the table tells apart. */
typedef enum QpService {
    SVC_RC,
    SVC_UC,
    SVC_UD,
    SVC_GSI,
    NUM_SERVICES,
} QpService;

typedef struct Transition {
    bool valid;
    uint32_t required[NUM_SERVICES];
    uint32_t optional[NUM_SERVICES];
} Transition;

#define A(name) RDMA_QP_##name

/* Optional attributes whose sets recur. */
#define CONNECTED_RTS (A(CUR_STATE) | A(ACCESS_FLAGS) | \
                       A(PATH_MIG_STATE) | A(RATE_LIMIT))
#define DATAGRAM_RTS  (A(CUR_STATE) | A(QKEY) | A(RATE_LIMIT))
#define TO_RTS { \
        [SVC_RC] = CONNECTED_RTS | A(MIN_RNR_TIMER), \
        [SVC_UC] = CONNECTED_RTS, \
        [SVC_UD] = DATAGRAM_RTS, \
        [SVC_GSI] = DATAGRAM_RTS, \
    }

/*
 * The alternate path is left out throughout: automatic path migration is an
 * optional feature (IBTA 17.2.8) that this engine does not have.
 */
static const Transition transitions[NUM_STATES][NUM_STATES] = {
    [RDMA_QPS_RESET] = {
        [RDMA_QPS_INIT] = {
            .valid = true,
            .required = {
                [SVC_RC] = A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
                [SVC_UC] = A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
                [SVC_UD] = A(PKEY_INDEX) | A(PORT) | A(QKEY),
                [SVC_GSI] = A(PKEY_INDEX) | A(QKEY),
            },
            .optional = {
                [SVC_GSI] = A(PORT),
            },
        },
    },
    [RDMA_QPS_INIT] = {
        [RDMA_QPS_INIT] = {
            .valid = true,
            .optional = {
                [SVC_RC] = A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
                [SVC_UC] = A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
                [SVC_UD] = A(PKEY_INDEX) | A(PORT) | A(QKEY),
                [SVC_GSI] = A(PKEY_INDEX) | A(QKEY),
            },
        },
        [RDMA_QPS_RTR] = {
            .valid = true,
            .required = {
                [SVC_RC] = A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) |
                           A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
                [SVC_UC] = A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN),
            },
            .optional = {
                [SVC_RC] = A(PKEY_INDEX) | A(ACCESS_FLAGS),
                [SVC_UC] = A(PKEY_INDEX) | A(ACCESS_FLAGS),
                [SVC_UD] = A(PKEY_INDEX) | A(QKEY),
                [SVC_GSI] = A(PKEY_INDEX) | A(QKEY),
            },
        },
    },
    [RDMA_QPS_RTR] = {
        [RDMA_QPS_RTS] = {
            .valid = true,
            .required = {
                [SVC_RC] = A(SQ_PSN) | A(TIMEOUT) | A(RETRY_CNT) |
                           A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC),
                [SVC_UC] = A(SQ_PSN),
                [SVC_UD] = A(SQ_PSN),
                [SVC_GSI] = A(SQ_PSN),
            },
            .optional = TO_RTS,
        },
    },
    [RDMA_QPS_RTS] = {
        [RDMA_QPS_RTS] = { .valid = true, .optional = TO_RTS },
        [RDMA_QPS_SQD] = {
            .valid = true,
            .optional = {
                [SVC_RC] = A(EN_SQD_ASYNC_NOTIFY),
                [SVC_UC] = A(EN_SQD_ASYNC_NOTIFY),
                [SVC_UD] = A(EN_SQD_ASYNC_NOTIFY),
                [SVC_GSI] = A(EN_SQD_ASYNC_NOTIFY),
            },
        },
    },
    [RDMA_QPS_SQD] = {
        [RDMA_QPS_RTS] = { .valid = true, .optional = TO_RTS },
        [RDMA_QPS_SQD] = {
            .valid = true,
            .optional = {
                [SVC_RC] = A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) |
                           A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC) |
                           A(MAX_DEST_RD_ATOMIC) | A(ACCESS_FLAGS) |
                           A(PKEY_INDEX) | A(MIN_RNR_TIMER) |
                           A(PATH_MIG_STATE),
                [SVC_UC] = A(AV) | A(ACCESS_FLAGS) | A(PKEY_INDEX) |
                           A(PATH_MIG_STATE),
                [SVC_UD] = A(PKEY_INDEX) | A(QKEY),
                [SVC_GSI] = A(PKEY_INDEX) | A(QKEY),
            },
        },
    },
    [RDMA_QPS_SQE] = {
        [RDMA_QPS_RTS] = {
            .valid = true,
            .optional = {
                [SVC_UC] = A(CUR_STATE) | A(ACCESS_FLAGS),
                [SVC_UD] = A(CUR_STATE) | A(QKEY),
                [SVC_GSI] = A(CUR_STATE) | A(QKEY),
            },
        },
    },
};

static QpService qp_service(const RoceQp *qp)
{
    switch (qp->init.qp_type) {
    case RDMA_QPT_RC:
        return SVC_RC;
    case RDMA_QPT_UC:
        return SVC_UC;
    case RDMA_QPT_GSI:
        return SVC_GSI;
    default:
        return SVC_UD;
    }
}

static bool transition_ok(const RoceQp *qp, uint8_t from, uint8_t to,
                          uint32_t mask)
{
    QpService svc = qp_service(qp);
    const Transition *t;

    mask &= ~A(STATE);
    if (to == RDMA_QPS_RESET || to == RDMA_QPS_ERR) {
        /* From everywhere, but a QP in RESET has nothing that could fail */
        return !mask && !(from == RDMA_QPS_RESET && to == RDMA_QPS_ERR);
    }
    t = &transitions[from][to];
    return t->valid && (mask & t->required[svc]) == t->required[svc] &&
           !(mask & ~(t->required[svc] | t->optional[svc]));
}

static bool path_ok(const RoceQp *qp, const RdmaAv *av)
{
    RocePath path;

    return av->port_num == RDMA_PORT_NUM && av->flow_label <= 0xfffff &&
           roce_path_init(qp->e, av, qp->init.qpn, 0, &path) &&
           !roce_gid_is_zero(av->dgid) && !rdma_gid_is_multicast(av->dgid);
}

static bool values_ok(const RoceQp *qp, uint32_t mask, const RdmaQpAttr *attr)
{
    const RoceConfig *config = &qp->e->config;

    return !((mask & A(CUR_STATE) &&
              attr->cur_qp_state != qp->s.attr.qp_state) ||
             (mask & A(PKEY_INDEX) && attr->pkey_index != 0) ||
             (mask & A(PORT) && attr->port_num != RDMA_PORT_NUM) ||
             (mask & A(PATH_MIG_STATE) &&
              attr->path_mig_state != RDMA_MIG_MIGRATED) ||
             (mask & A(PATH_MTU) &&
              (attr->path_mtu < RDMA_MTU_256 ||
               attr->path_mtu > roce_port_mtu(qp->e))) ||
             (mask & A(DEST_QPN) && attr->dest_qp_num > RDMA_24BIT_MASK) ||
             (mask & A(TIMEOUT) && attr->timeout > 31) ||
             (mask & A(RETRY_CNT) && attr->retry_cnt > 7) ||
             (mask & A(RNR_RETRY) && attr->rnr_retry > 7) ||
             (mask & A(MIN_RNR_TIMER) && attr->min_rnr_timer > 31) ||
             (mask & A(MAX_QP_RD_ATOMIC) &&
              attr->max_rd_atomic > config->max_rd_atomic) ||
             (mask & A(MAX_DEST_RD_ATOMIC) &&
              attr->max_dest_rd_atomic > config->max_rd_atomic) ||
             (mask & A(AV) && !path_ok(qp, &attr->ah_attr)));
}

/* Take over what @mask selects; everything is checked. */
static void apply(RoceQp *qp, uint32_t mask, const RdmaQpAttr *attr)
{
    RdmaQpAttr *a = &qp->s.attr;

    if (mask & A(PKEY_INDEX)) {
        a->pkey_index = attr->pkey_index;
    }
    if (mask & A(PORT)) {
        a->port_num = attr->port_num;
    }
    if (mask & A(ACCESS_FLAGS)) {
        a->qp_access_flags = attr->qp_access_flags;
    }
    if (mask & A(QKEY)) {
        a->qkey = attr->qkey;
    }
    if (mask & A(PATH_MTU)) {
        a->path_mtu = attr->path_mtu;
        qp->mtu = rdma_mtu_bytes(attr->path_mtu);
    }
    if (mask & A(PATH_MIG_STATE)) {
        a->path_mig_state = attr->path_mig_state;
    }
    if (mask & A(DEST_QPN)) {
        a->dest_qp_num = attr->dest_qp_num;
    }
    if (mask & A(AV)) {
        a->ah_attr = attr->ah_attr;
    }
    if (mask & (A(DEST_QPN) | A(AV))) {
        qp->path_serial = qp->e->gid_serial - 1;
        roce_qp_refresh_path(qp);
    }
    if (mask & A(RATE_LIMIT)) {
        a->rate_limit = attr->rate_limit;
    }
    if (mask & (A(RATE_LIMIT) | A(AV))) {
        roce_pace_update(qp);
    }
    if (mask & A(RQ_PSN)) {
        /* Software passes random numbers and expects 24 bits of them */
        qp->s.resp.epsn = attr->rq_psn & RDMA_24BIT_MASK;
    }
    if (mask & A(SQ_PSN)) {
        roce_req_init(qp, attr->sq_psn & RDMA_24BIT_MASK);
    }
    if (mask & A(TIMEOUT)) {
        a->timeout = attr->timeout;
    }
    if (mask & A(RETRY_CNT)) {
        a->retry_cnt = attr->retry_cnt;
        qp->s.sq.retries = attr->retry_cnt;
    }
    if (mask & A(RNR_RETRY)) {
        a->rnr_retry = attr->rnr_retry;
        qp->s.sq.rnr_retries = attr->rnr_retry;
    }
    if (mask & A(MIN_RNR_TIMER)) {
        a->min_rnr_timer = attr->min_rnr_timer;
    }
    if (mask & A(MAX_QP_RD_ATOMIC)) {
        a->max_rd_atomic = attr->max_rd_atomic;
    }
    if (mask & A(MAX_DEST_RD_ATOMIC)) {
        a->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    }
}

static void enter_reset(RoceQp *qp)
{
    RoceEngine *e = qp->e;
    uint32_t nsq = qp->s.sq.prod - qp->s.sq.cons;
    uint32_t nrq = qp->s.rq.prod - qp->s.rq.cons;

    roce_qp_set_state(qp, RDMA_QPS_RESET);
    roce_qp_clear(qp);
    if (nsq) {
        e->ops.retire(e->opaque, qp->init.qpn, RDMA_SQ, nsq);
    }
    if (nrq && !qp->srq) {
        e->ops.retire(e->opaque, qp->init.qpn, RDMA_RQ, nrq);
    }
}

int roce_qp_modify(RoceEngine *e, uint32_t qpn, uint32_t attr_mask,
                   const RdmaQpAttr *attr)
{
    RoceQp *qp = roce_qp_find(e, qpn);
    uint8_t from, to;

    if (!qp) {
        return -ENOENT;
    }
    from = qp->s.attr.qp_state;
    to = attr_mask & A(STATE) ? attr->qp_state : from;
    if (to >= NUM_STATES || !transition_ok(qp, from, to, attr_mask) ||
        !values_ok(qp, attr_mask, attr)) {
        return -EINVAL;
    }

    switch (to) {
    case RDMA_QPS_RESET:
        enter_reset(qp);
        return 0;
    case RDMA_QPS_ERR:
        if (from != RDMA_QPS_ERR) {
            roce_qp_enter_err(qp);
        }
        break;
    case RDMA_QPS_SQD:
        apply(qp, attr_mask, attr);
        roce_qp_set_state(qp, to);
        if (from != RDMA_QPS_SQD) {
            /* Whoever wants to be told says so each time */
            qp->s.attr.en_sqd_async_notify =
                attr_mask & A(EN_SQD_ASYNC_NOTIFY) &&
                attr->en_sqd_async_notify;
            qp->s.sq.draining = true;
            roce_req_check_drained(qp);
        }
        break;
    default:
        if (from == RDMA_QPS_SQE) {
            /* What was posted before is flushed, not sent */
            uint32_t room = UINT32_MAX;

            roce_qp_flush(qp, &room);
        }
        apply(qp, attr_mask, attr);
        roce_qp_set_state(qp, to);
        qp->s.sq.draining = false;
        roce_qp_schedule(qp);
        break;
    }
    /* A QP on a CQ that failed before */
    if (to != RDMA_QPS_INIT && (qp->send_cq->failed || qp->recv_cq->failed)) {
        e->cq_failed = true;
    }
    roce_cq_fail_qps(e);
    return 0;
}

#undef A
