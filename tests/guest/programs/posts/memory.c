/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registered memory, and its expected contents */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posts.h"

#define POISON 0xa5

struct area new_area(struct end *e, size_t size,
                     struct ibv_mr *(*reg)(struct rdma_cm_id *, void *,
                                           size_t))
{
    struct area a = { .at = malloc(size), .image = malloc(size),
                      .size = size };

    if (!a.at || !a.image) {
        fail("out of memory");
    }
    memset(a.at, POISON, size);
    memset(a.image, POISON, size);
    a.mr = reg(e->id, a.at, size);
    if (!a.mr) {
        fail("registration of %zu bytes: %s", size, strerror(errno));
    }
    return a;
}

void free_area(struct area *a)
{
    must("rdma_dereg_mr", rdma_dereg_mr(a->mr));
    free(a->at);
    free(a->image);
}

static uint8_t byte_of(uint32_t seed, size_t i)
{
    return (i * 7 + seed * 29 + (i >> 8)) & 0xff;
}

void pattern(uint8_t *to, size_t size, uint32_t seed)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = byte_of(seed, i);
    }
}

void due(struct area *a, size_t offset, size_t size, uint32_t seed,
         size_t from)
{
    for (size_t i = 0; i < size; i++) {
        a->image[offset + i] = byte_of(seed, from + i);
    }
}

void fill(struct area *a, size_t offset, size_t size, uint32_t seed)
{
    pattern(a->at + offset, size, seed);
    due(a, offset, size, seed, 0);
}

void check(const struct area *a, const char *what)
{
    for (size_t i = 0; i < a->size; i++) {
        if (a->at[i] != a->image[i]) {
            fail("%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i,
                 a->size, a->at[i], a->image[i]);
        }
    }
}

struct ibv_sge sge_of(const struct area *a, size_t offset, uint32_t size)
{
    return (struct ibv_sge) {
        .addr = (uintptr_t)a->at + offset,
        .length = size,
        .lkey = a->mr->lkey,
    };
}
