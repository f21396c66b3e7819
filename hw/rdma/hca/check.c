/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of fields that the driver sets. A wrong value is logged as a guest
 * error, with the name and the limit of the field.
 */
#include "qemu/osdep.h"
#include "int.h"

bool rdma_hca_check_range(const char *field, uint64_t value, uint64_t min,
                          uint64_t max)
{
    if (value >= min && value <= max) {
        return true;
    }
    rdma_hca_guest_error("%s is %" PRIu64 ", not %" PRIu64 " to %" PRIu64,
                         field, value, min, max);
    return false;
}

bool rdma_hca_check_flags(const char *field, uint64_t value, uint64_t known)
{
    if (!(value & ~known)) {
        return true;
    }
    rdma_hca_guest_error("%s 0x%" PRIx64 " has unknown flags: known are 0x%"
                         PRIx64, field, value, known);
    return false;
}
