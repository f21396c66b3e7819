/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of refused imports and their reasons.
 *
 * The text of a refusal must let users find the field: it has its name, its
 * value and the limit. Each row changes a few fields of a valid image, as few
 * as one check requires without another check before it. Rows are in the order
 * of the checks.
 */
#ifndef ROCE_REFUSAL_H
#define ROCE_REFUSAL_H

#include <errno.h>
#include "roce-link.h"
#include "rdma/roce-state.h"

/* The objects of the engine of refusal_engine() */
#define PEER_QPN 3                  /* RC */
#define UD_QPN 4
#define OTHER_PD_QPN 5              /* RC */
#define USED_MRN 9                  /* allows windows, also to write */
#define DMA_MRN 10
#define READ_ONLY_MRN 11            /* allows windows */
#define NO_BIND_MRN 12
#define INVALID_MRN 13
#define OTHER_PD_MRN 14
#define OTHER_PDN 99
#define SRQN 1                      /* 2 SGEs */

/* A limit above the one of the engine */
#define BIG_WR (2 * ROCE_MAX_WR)

/* Where a change applies */
typedef enum Part {
    END,
    IMAGE,
    SEND,
    SEND_SGE,
    RECV,
    RES,
    PAGES,
    PENDING_PAGES,
} Part;

typedef struct Change {
    Part part;
    unsigned index;
    size_t offset;
    size_t size;
    uint64_t value;
} Change;

/*
 * One row. @text NULL: the image is accepted. The changes at @base, if any, are
 * made first.
 */
typedef struct Refusal {
    const char *text;
    Change changes[12];
    const Change *base;
} Refusal;

#define FIELD(part, index, type, field, value) \
    { part, index, offsetof(type, field), G_SIZEOF_MEMBER(type, field), value }

#define RWQE(index, field, value) FIELD(RECV, index, RoceRecvWqe, field, value)
#define PAGE(index, value) { PAGES, index, 0, sizeof(uint64_t), value }
#define PENDING_PAGE(index, value) \
    { PENDING_PAGES, index, 0, sizeof(uint64_t), value }

/* Make the changes of @r in the arrays that @parts has for each Part. */
void refusal_apply(const Refusal *r, void *const parts[]);
RoceEngine *refusal_engine(void);
/* Compare the result of an import with @r; frees @why. */
void refusal_check(const Refusal *r, int ret, char *why);

#endif /* ROCE_REFUSAL_H */
