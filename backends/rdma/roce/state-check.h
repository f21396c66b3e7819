/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of images: is the state one that an engine can reach? An image comes
 * from an untrusted source. Every field is checked here, so that the rest of
 * the engine need not check it. This header has what the files of the checks,
 * one for each object, share.
 *
 * A check returns NULL if the object is valid. Otherwise it returns a text that
 * names the field, its value, and the limit or the field that it contradicts.
 * The caller frees the text with g_free(). Texts number requests, resources and
 * pages from 0; the oldest request or resource is 0.
 */
#ifndef ROCE_STATE_CHECK_H
#define ROCE_STATE_CHECK_H

#include <inttypes.h>
#include "roce-int.h"

/* Return a text, formatted as by printf(), if @condition is true. */
#define REFUSE_IF(condition, ...)                       \
    do {                                                \
        if (condition) {                                \
            return g_strdup_printf(__VA_ARGS__);        \
        }                                               \
    } while (0)

/* Return the text of another check, if that refuses the object. */
#define REFUSE_AS(check)                \
    do {                                \
        char *why_ = (check);           \
        if (why_) {                     \
            return why_;                \
        }                               \
    } while (0)

/* Checks of the field @field of @s, whose text has the name of the field */
#define REFUSE_ABOVE(s, field, max) \
    REFUSE_AS(roce_check_max(#field, (s)->field, max))
#define REFUSE_UNLESS(s, field, value) \
    REFUSE_AS(roce_check_equal(#field, (s)->field, value))
#define REFUSE_NOT_BOOL(s, field) \
    REFUSE_AS(roce_check_bool(#field, (s)->field))
#define REFUSE_NOT_24_BITS(s, field) \
    REFUSE_AS(roce_check_24_bits(#field, (s)->field))

/* Does the QP have a path, so that path_mtu and ah_attr are valid? */
static inline bool has_path(const RoceQpImage *image)
{
    switch (image->s.attr.qp_state) {
    case RDMA_QPS_RTR:
    case RDMA_QPS_RTS:
    case RDMA_QPS_SQD:
    case RDMA_QPS_SQE:
        return image->init.qp_type == RDMA_QPT_RC ||
               image->init.qp_type == RDMA_QPT_UC;
    default:
        return false;
    }
}

/* A page list. The texts name its fields with @prefix in front. */
typedef struct RocePageList {
    const char *prefix;
    uint64_t iova;
    uint64_t length;                /* bytes */
    const uint64_t *pages;          /* DMA addresses */
    uint32_t npages;
    uint8_t shift;                  /* pages have 2^shift bytes */
} RocePageList;

/* state-check-field.c */
char *roce_check_max(const char *field, uint64_t value, uint64_t max);
char *roce_check_equal(const char *field, uint64_t value, uint64_t wanted);
char *roce_check_bool(const char *field, uint8_t value);
char *roce_check_24_bits(const char *field, uint32_t value);
/* Does the list have exactly the pages that cover its bytes? */
char *roce_check_page_list(const RocePageList *list);
/*
 * Prefix the text @why, which may be NULL, with "@what @index: ". Takes over
 * @why.
 */
char *roce_check_nth(const char *what, uint32_t index, char *why);
/* The name of @type, a valid RdmaQpType; a constant */
const char *roce_qp_type_name(uint32_t type);

/* state-check-rq.c: the receive queue */
char *roce_check_rq(const RoceEngine *e, const RoceQpImage *image);

/* state-check-sq.c: the send queue and its requester */
char *roce_check_sq(const RoceQpImage *image);

/* state-check-resp.c: the responder and its resources */
char *roce_check_resp(const RoceQpImage *image);
char *roce_check_resources(const RoceEngine *e, const RoceQpImage *image);

#endif /* ROCE_STATE_CHECK_H */
