/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What MODIFY_QP may bring (IBTA 11.2.5.2, table 91), and which attribute is
 * to blame when it is refused. Nothing here depends on a QP of the engine:
 * backends without one use it, too.
 */
#ifndef RDMA_QP_CHECK_H
#define RDMA_QP_CHECK_H

#include "rdma/verbs.h"

typedef enum RdmaQpRefusalType {
    /* @value is not one of @min … @max. */
    RDMA_QP_REFUSED_RANGE,
    /* @value, the mask, lacks it; the transition requires the mask @min. */
    RDMA_QP_REFUSED_MISSING,
    /* @value, the mask, has it; the transition allows the mask @max. */
    RDMA_QP_REFUSED_EXTRA,
    /* @value is wrong for another reason: @why. */
    RDMA_QP_REFUSED_VALUE,
} RdmaQpRefusalType;

/* A state that is not known, or is none. */
#define RDMA_QPS_UNKNOWN 0xff

/* Why a MODIFY_QP is refused: the first attribute that is wrong. */
typedef struct RdmaQpRefusal {
    RdmaQpRefusalType type;
    uint8_t from;                   /* RdmaQpState, or RDMA_QPS_UNKNOWN */
    uint8_t to;
    const char *attr;               /* its name in libibverbs, a constant */
    const char *why;                /* a text, or NULL */
    uint64_t value;
    uint64_t min;
    uint64_t max;
} RdmaQpRefusal;

/* What the limits of some attributes depend on. */
typedef struct RdmaQpLimits {
    uint32_t max_rd_atomic;         /* as initiator and as target */
    uint8_t path_mtu;               /* RdmaMtu of the port */
} RdmaQpLimits;

/* The name of an attribute in libibverbs, by one bit of the mask. */
const char *rdma_qp_attr_name(uint32_t bit);

/* These fill in @r when they return false, but for the states there. */
bool rdma_qp_check_state(uint8_t state, RdmaQpRefusal *r);
/*
 * May a QP of @type go from @from to @to with the attributes in @mask? States
 * may have any value.
 */
bool rdma_qp_check_transition(RdmaQpType type, uint8_t from, uint8_t to,
                              uint32_t mask, RdmaQpRefusal *r);

/*
 * Has each attribute in @mask a value that it may have, for a QP in state
 * @from? Of the path only what no GID table is needed for.
 */
bool rdma_qp_check_values(const RdmaQpLimits *limits, uint8_t from,
                          uint32_t mask, const RdmaQpAttr *attr,
                          RdmaQpRefusal *r);

/* Sets @r, but for the states, to RDMA_QP_REFUSED_VALUE; returns false. */
bool rdma_qp_refuse(RdmaQpRefusal *r, const char *attr, uint64_t value,
                    const char *why);

#endif /* RDMA_QP_CHECK_H */
