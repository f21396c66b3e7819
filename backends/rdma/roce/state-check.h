/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is the state of an object one that an engine can reach? An image comes from
 * outside and every field is checked, so that the code behind needs no checks
 * of its own. What the files of these checks, one for each object, have for
 * each other.
 *
 * A check returns NULL, or a text for g_free() that names the field, its value
 * and the limit, or what the field disagrees with. Requests and resources are
 * numbered from 0, the oldest, pages from 0.
 */
#ifndef ROCE_STATE_CHECK_H
#define ROCE_STATE_CHECK_H

#include <inttypes.h>
#include "roce-int.h"

/* The text is made only if the object is refused. */
#define REFUSE_IF(condition, ...)                       \
    do {                                                \
        if (condition) {                                \
            return g_strdup_printf(__VA_ARGS__);        \
        }                                               \
    } while (0)

/* Refuse the object if another check does. */
#define REFUSE_AS(check)                \
    do {                                \
        char *why_ = (check);           \
        if (why_) {                     \
            return why_;                \
        }                               \
    } while (0)

/* The same for one field of @s, with the name that it has in the code. */
#define REFUSE_ABOVE(s, field, max) \
    REFUSE_AS(roce_check_max(#field, (s)->field, max))
#define REFUSE_UNLESS(s, field, value) \
    REFUSE_AS(roce_check_equal(#field, (s)->field, value))
#define REFUSE_NOT_BOOL(s, field) \
    REFUSE_AS(roce_check_bool(#field, (s)->field))
#define REFUSE_NOT_24_BITS(s, field) \
    REFUSE_AS(roce_check_24_bits(#field, (s)->field))

/* Does the QP have a path, so that its MTU and address vector count? */
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

/* A page list, and the names of its fields in texts begin with @prefix. */
typedef struct RocePageList {
    const char *prefix;
    uint64_t iova;
    uint64_t length;
    const uint64_t *pages;
    uint32_t npages;
    uint8_t shift;
} RocePageList;

/* state-check-field.c */
char *roce_check_max(const char *field, uint64_t value, uint64_t max);
char *roce_check_equal(const char *field, uint64_t value, uint64_t wanted);
char *roce_check_bool(const char *field, uint8_t value);
char *roce_check_24_bits(const char *field, uint32_t value);
/* Does the list cover its bytes, with no page too many? */
char *roce_check_page_list(const RocePageList *list);
/* @why, which is taken over, is about number @index of @what. */
char *roce_check_nth(const char *what, uint32_t index, char *why);
/* The name of a valid RdmaQpType. */
const char *roce_qp_type_name(uint32_t type);

/* state-check-rq.c: the receive queue */
char *roce_check_rq(const RoceEngine *e, const RoceQpImage *image);

/* state-check-sq.c: the send queue and its requester */
char *roce_check_sq(const RoceQpImage *image);

/* state-check-resp.c: the responder and its resources */
char *roce_check_resp(const RoceQpImage *image);
char *roce_check_resources(const RoceEngine *e, const RoceQpImage *image);

#endif /* ROCE_STATE_CHECK_H */
