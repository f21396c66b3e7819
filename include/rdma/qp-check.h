/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of MODIFY_QP (IBTA 11.2.5.2, table 91): which attributes a
 * transition requires and allows, which values they may have, and which
 * attribute is the reason of a refusal.
 *
 * The functions keep no state and may run in any thread. They do not need a QP
 * of the engine, so that backends without the engine use them, too. Nothing
 * here depends on QEMU.
 */
#ifndef RDMA_QP_CHECK_H
#define RDMA_QP_CHECK_H

#include "rdma/verbs.h"

typedef enum RdmaQpRefusalType {
    /* @value is outside @min … @max. */
    RDMA_QP_REFUSED_RANGE,
    /*
     * @value, the attribute mask, lacks @attr. @min is the mask that the
     * transition requires, @max the one that it allows.
     */
    RDMA_QP_REFUSED_MISSING,
    /* @value, the attribute mask, has @attr, which @max does not allow. */
    RDMA_QP_REFUSED_EXTRA,
    /* @value is wrong for another reason: @why. */
    RDMA_QP_REFUSED_VALUE,
} RdmaQpRefusalType;

/* A state that the caller does not know, or that does not exist */
#define RDMA_QPS_UNKNOWN 0xff

/* The first wrong attribute of a refused MODIFY_QP */
typedef struct RdmaQpRefusal {
    RdmaQpRefusalType type;
    uint8_t from;                   /* RdmaQpState, or RDMA_QPS_UNKNOWN */
    uint8_t to;                     /* the same */
    const char *attr;               /* its name in libibverbs, a constant */
    const char *why;                /* a constant text, or NULL */
    uint64_t value;
    uint64_t min;
    uint64_t max;
} RdmaQpRefusal;

/* The limits of the device that values are checked against */
typedef struct RdmaQpLimits {
    uint32_t max_rd_atomic;         /* per QP, as initiator and as target */
    uint8_t path_mtu;               /* the largest RdmaMtu of the port */
} RdmaQpLimits;

/*
 * The name that libibverbs gives to the attribute @bit, one of RDMA_QP_*. The
 * result is a constant; an unknown bit is named "attr_mask".
 */
const char *rdma_qp_attr_name(uint32_t bit);

/*
 * The checks below return false if they refuse a value, and fill in @r except
 * from and to, which the caller sets.
 */

/* Is @state one of RdmaQpState? */
bool rdma_qp_check_state(uint8_t state, RdmaQpRefusal *r);
/*
 * May a QP of @type go from state @from to state @to with the attributes in
 * @mask (RDMA_QP_*)? Both states may have any value.
 */
bool rdma_qp_check_transition(RdmaQpType type, uint8_t from, uint8_t to,
                              uint32_t mask, RdmaQpRefusal *r);

/*
 * Does each attribute of @attr that @mask selects have a valid value for a QP
 * in state @from? Of the address vector this checks only what needs no GID
 * table.
 */
bool rdma_qp_check_values(const RdmaQpLimits *limits, uint8_t from,
                          uint32_t mask, const RdmaQpAttr *attr,
                          RdmaQpRefusal *r);

/*
 * Set @r, except from and to, to RDMA_QP_REFUSED_VALUE. @attr is a constant
 * text, and @why lives as long as @r is used. Returns false, so that checks can
 * return the result.
 */
bool rdma_qp_refuse(RdmaQpRefusal *r, const char *attr, uint64_t value,
                    const char *why);

#endif /* RDMA_QP_CHECK_H */
