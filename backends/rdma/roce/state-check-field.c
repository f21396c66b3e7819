/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of single fields, and of page lists.
 */
#include <glib.h>
#include "state-check.h"

char *roce_check_max(const char *field, uint64_t value, uint64_t max)
{
    REFUSE_IF(value > max, "%s %" PRIu64 " exceeds %" PRIu64, field, value,
              max);
    return NULL;
}

char *roce_check_equal(const char *field, uint64_t value, uint64_t wanted)
{
    REFUSE_IF(value != wanted, "%s %" PRIu64 " is not %" PRIu64, field, value,
              wanted);
    return NULL;
}

char *roce_check_bool(const char *field, uint8_t value)
{
    REFUSE_IF(value > 1, "invalid boolean %u in field %s", value, field);
    return NULL;
}

char *roce_check_24_bits(const char *field, uint32_t value)
{
    REFUSE_IF(value > RDMA_24BIT_MASK, "%s 0x%x has more than 24 bits", field,
              value);
    return NULL;
}

char *roce_check_page_list(const RocePageList *list)
{
    const char *prefix = list->prefix;
    uint64_t size = UINT64_C(1) << list->shift;
    uint64_t offset = list->iova & (size - 1);
    uint64_t max = UINT64_MAX - 2 * size;
    uint64_t needed;
    uint32_t i;

    REFUSE_IF(!list->length, "%slength is 0", prefix);
    REFUSE_IF(list->length > UINT64_MAX - list->iova,
              "%slength %" PRIu64 " exceeds %" PRIu64 ", the limit from %siova "
              "0x%" PRIx64 " on", prefix, list->length,
              UINT64_MAX - list->iova, prefix, list->iova);
    REFUSE_IF(list->length > max, "%slength %" PRIu64 " exceeds %" PRIu64,
              prefix, list->length, max);
    needed = (offset + list->length + size - 1) >> list->shift;
    REFUSE_IF(list->npages != needed,
              "%snpages %u is not %" PRIu64 ", the pages of %" PRIu64
              " bytes that cover %slength %" PRIu64 " from %siova 0x%" PRIx64,
              prefix, list->npages, needed, size, prefix, list->length,
              prefix, list->iova);
    for (i = 0; i < list->npages; i++) {
        REFUSE_IF(list->pages[i] & (size - 1),
                  "%spages[%u] 0x%" PRIx64 " is not a multiple of the page "
                  "size %" PRIu64, prefix, i, list->pages[i], size);
    }
    return NULL;
}

char *roce_check_nth(const char *what, uint32_t index, char *why)
{
    g_autofree char *text = why;

    REFUSE_IF(text, "%s %u: %s", what, index, text);
    return NULL;
}

const char *roce_qp_type_name(uint32_t type)
{
    static const char *const names[] = {
        [RDMA_QPT_SMI] = "SMI",
        [RDMA_QPT_GSI] = "GSI",
        [RDMA_QPT_RC] = "RC",
        [RDMA_QPT_UC] = "UC",
        [RDMA_QPT_UD] = "UD",
    };

    return names[type];
}
