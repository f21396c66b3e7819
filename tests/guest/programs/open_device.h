/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_GUEST_OPEN_DEVICE_H
#define TESTS_GUEST_OPEN_DEVICE_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <string.h>

/* Open the device with this name. NULL if there is none, or if that fails. */
static inline struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    for (int i = 0; list && list[i]; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            return ibv_open_device(list[i]);
        }
    }
    return NULL;
}

#endif
