/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modify QP: the transitions, the attributes that each requires and allows, and
 * the values that these may have (IBTA 11.2.5.2, table 91).
 */
#include <glib.h>
#include "rdma/qp-check.h"
#include "core/core.h"

#define NUM_STATES (RDMA_QPS_ERR + 1)

/* The service types that table 91 distinguishes */
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

/* Sets of optional attributes that several transitions share */
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
 * The attributes of the alternate path are not in this table: the engine does
 * not support automatic path migration, which is optional (IBTA 17.2.8).
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

#undef TO_RTS
#undef DATAGRAM_RTS
#undef CONNECTED_RTS

static QpService service_of(RdmaQpType type)
{
    switch (type) {
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

const char *rdma_qp_attr_name(uint32_t bit)
{
    switch (bit) {
    case A(STATE):
        return "qp_state";
    case A(CUR_STATE):
        return "cur_qp_state";
    case A(EN_SQD_ASYNC_NOTIFY):
        return "en_sqd_async_notify";
    case A(ACCESS_FLAGS):
        return "qp_access_flags";
    case A(PKEY_INDEX):
        return "pkey_index";
    case A(PORT):
        return "port_num";
    case A(QKEY):
        return "qkey";
    case A(AV):
        return "ah_attr";
    case A(PATH_MTU):
        return "path_mtu";
    case A(TIMEOUT):
        return "timeout";
    case A(RETRY_CNT):
        return "retry_cnt";
    case A(RNR_RETRY):
        return "rnr_retry";
    case A(RQ_PSN):
        return "rq_psn";
    case A(MAX_QP_RD_ATOMIC):
        return "max_rd_atomic";
    case A(ALT_PATH):
        return "alt_ah_attr";
    case A(MIN_RNR_TIMER):
        return "min_rnr_timer";
    case A(SQ_PSN):
        return "sq_psn";
    case A(MAX_DEST_RD_ATOMIC):
        return "max_dest_rd_atomic";
    case A(PATH_MIG_STATE):
        return "path_mig_state";
    case A(CAP):
        return "cap";
    case A(DEST_QPN):
        return "dest_qp_num";
    case A(RATE_LIMIT):
        return "rate_limit";
    default:
        return "attr_mask";
    }
}

bool rdma_qp_refuse(RdmaQpRefusal *r, const char *attr, uint64_t value,
                    const char *why)
{
    r->type = RDMA_QP_REFUSED_VALUE;
    r->attr = attr;
    r->why = why;
    r->value = value;
    r->min = 0;
    r->max = 0;
    return false;
}

static bool refuse_mask(RdmaQpRefusal *r, RdmaQpRefusalType type,
                        uint32_t bits, uint32_t mask, uint32_t required,
                        uint32_t allowed)
{
    /* Name the attribute of the lowest bit. */
    rdma_qp_refuse(r, rdma_qp_attr_name(bits & -bits), mask, NULL);
    r->type = type;
    r->min = required;
    r->max = allowed;
    return false;
}

static bool in_range(RdmaQpRefusal *r, const char *attr, uint64_t value,
                     uint64_t min, uint64_t max)
{
    if (value >= min && value <= max) {
        return true;
    }
    rdma_qp_refuse(r, attr, value, NULL);
    r->type = RDMA_QP_REFUSED_RANGE;
    r->min = min;
    r->max = max;
    return false;
}

bool rdma_qp_check_state(uint8_t state, RdmaQpRefusal *r)
{
    return in_range(r, rdma_qp_attr_name(A(STATE)), state, RDMA_QPS_RESET,
                    RDMA_QPS_ERR);
}

bool rdma_qp_check_transition(RdmaQpType type, uint8_t from, uint8_t to,
                              uint32_t mask, RdmaQpRefusal *r)
{
    QpService svc = service_of(type);
    uint32_t required = 0, allowed = A(STATE);

    if (!in_range(r, "cur_qp_state", from, RDMA_QPS_RESET, RDMA_QPS_ERR) ||
        !rdma_qp_check_state(to, r)) {
        return false;
    }
    if (to == RDMA_QPS_RESET || to == RDMA_QPS_ERR) {
        /* Every state except RESET, which has no work, may go to ERR. */
        if (from == RDMA_QPS_RESET && to == RDMA_QPS_ERR) {
            return rdma_qp_refuse(r, "qp_state", to, "cannot follow");
        }
    } else if (transitions[from][to].valid) {
        required = transitions[from][to].required[svc];
        allowed |= required | transitions[from][to].optional[svc];
    } else {
        return rdma_qp_refuse(r, "qp_state", to, "cannot follow");
    }
    if (required & ~mask) {
        return refuse_mask(r, RDMA_QP_REFUSED_MISSING, required & ~mask, mask,
                           required, allowed);
    }
    if (mask & ~allowed) {
        return refuse_mask(r, RDMA_QP_REFUSED_EXTRA, mask & ~allowed, mask,
                           required, allowed);
    }
    return true;
}

static bool check_av(const RdmaAv *av, RdmaQpRefusal *r)
{
    static const uint8_t none[RDMA_GID_LEN];

    if (!in_range(r, "ah_attr.port_num", av->port_num, RDMA_PORT_NUM,
                  RDMA_PORT_NUM) ||
        !in_range(r, "ah_attr.grh.flow_label", av->flow_label, 0,
                  RDMA_FLOW_LABEL_MASK)) {
        return false;
    }
    if (!memcmp(av->dgid, none, sizeof(none))) {
        return rdma_qp_refuse(r, "ah_attr.grh.dgid", 0, "is the zero address");
    }
    if (rdma_gid_is_multicast(av->dgid)) {
        return rdma_qp_refuse(r, "ah_attr.grh.dgid", av->dgid[0],
                              "is a multicast address");
    }
    return true;
}

bool rdma_qp_check_values(const RdmaQpLimits *limits, uint8_t from,
                          uint32_t mask, const RdmaQpAttr *attr,
                          RdmaQpRefusal *r)
{
#define VALUE_OK(bit, field, min, max) \
    (!(mask & A(bit)) || in_range(r, rdma_qp_attr_name(A(bit)), attr->field, \
                                  min, max))
    return VALUE_OK(CUR_STATE, cur_qp_state, from, from) &&
           VALUE_OK(PKEY_INDEX, pkey_index, 0, 0) &&
           VALUE_OK(PORT, port_num, RDMA_PORT_NUM, RDMA_PORT_NUM) &&
           VALUE_OK(PATH_MIG_STATE, path_mig_state, RDMA_MIG_MIGRATED,
                    RDMA_MIG_MIGRATED) &&
           VALUE_OK(PATH_MTU, path_mtu, RDMA_MTU_256, limits->path_mtu) &&
           VALUE_OK(DEST_QPN, dest_qp_num, 0, RDMA_24BIT_MASK) &&
           VALUE_OK(TIMEOUT, timeout, 0, RDMA_MAX_TIMEOUT) &&
           VALUE_OK(RETRY_CNT, retry_cnt, 0, RDMA_MAX_RETRIES) &&
           VALUE_OK(RNR_RETRY, rnr_retry, 0, RDMA_MAX_RETRIES) &&
           VALUE_OK(MIN_RNR_TIMER, min_rnr_timer, 0, RDMA_RNR_TIMER_MASK) &&
           VALUE_OK(MAX_QP_RD_ATOMIC, max_rd_atomic, 0,
                    limits->max_rd_atomic) &&
           VALUE_OK(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 0,
                    limits->max_rd_atomic) &&
           (!(mask & A(AV)) || check_av(&attr->ah_attr, r));
#undef VALUE_OK
}

#undef A
