/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of what is refused when state is loaded, and why.
 *
 * Whoever is told why state was refused shall find the field: the text names
 * it, its value and the limit. An image that is let in is changed in a few
 * fields, as little as it takes to meet one check and none before it. The
 * tables are in the order of the checks.
 */
#ifndef ROCE_REFUSAL_H
#define ROCE_REFUSAL_H

#include <errno.h>
#include "roce-link.h"
#include "rdma/roce-state.h"

/* What the engine of refusal_engine() has before the image comes */
#define PEER_QPN 3                  /* RC */
#define UD_QPN 4
#define OTHER_PD_QPN 5              /* RC */
#define USED_MRN 9                  /* takes windows, also for writing */
#define DMA_MRN 10
#define READ_ONLY_MRN 11            /* takes windows */
#define NO_BIND_MRN 12
#define INVALID_MRN 13
#define OTHER_PD_MRN 14
#define OTHER_PDN 99
#define SRQN 1                      /* 2 SGEs */

/* A limit that is beyond the engine's own */
#define BIG_WR (2 * ROCE_MAX_WR)

/* Where a change is */
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

/* @text NULL: the image is let in. First come the changes at @base, if any. */
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
/* Compare what an import said with what @r says. */
void refusal_check(const Refusal *r, int ret, char *why);

#endif /* ROCE_REFUSAL_H */
