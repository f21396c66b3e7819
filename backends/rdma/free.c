/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Freeing large memory takes the kernel milliseconds. So its pages are given
 * back in slices, one in each turn of the main loop.
 */
#include "qemu/osdep.h"
#include "qemu/aio.h"
#include "qemu/madvise.h"
#include "qemu/main-loop.h"
#include "qemu/queue.h"
#include "qemu/units.h"
#include "system/rdma-backend.h"

#define SLICE (1 * MiB)
/* Smaller memory is freed at once. */
#define SMALL (64 * KiB)
/* See rdma_backend_frees_much(). */
#define MUCH (16 * MiB)

typedef struct Garbage {
    void *mem;
    uintptr_t at;                   /* pages before this are given back */
    uintptr_t end;
    QSIMPLEQ_ENTRY(Garbage) next;
} Garbage;

/* Under the BQL */
static QSIMPLEQ_HEAD(, Garbage) garbage = QSIMPLEQ_HEAD_INITIALIZER(garbage);
static size_t left_to_free;         /* bytes of the list */

static void free_slice(void *opaque)
{
    size_t left = SLICE;

    while (left && !QSIMPLEQ_EMPTY(&garbage)) {
        Garbage *g = QSIMPLEQ_FIRST(&garbage);
        size_t n = MIN(left, g->end - g->at);

        qemu_madvise((void *)g->at, n, QEMU_MADV_DONTNEED);
        g->at += n;
        left -= n;
        left_to_free -= n;
        if (g->at == g->end) {
            QSIMPLEQ_REMOVE_HEAD(&garbage, next);
            g_free(g->mem);
            g_free(g);
        }
    }
    if (!QSIMPLEQ_EMPTY(&garbage)) {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), free_slice, NULL);
    }
}

static void add_garbage(void *opaque)
{
    Garbage *g = opaque;

    if (QSIMPLEQ_EMPTY(&garbage)) {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), free_slice, NULL);
    }
    QSIMPLEQ_INSERT_TAIL(&garbage, g, next);
    left_to_free += g->end - g->at;
}

bool rdma_backend_frees_much(void)
{
    return left_to_free >= MUCH;
}

void rdma_backend_free(void *mem, size_t size)
{
    size_t page = qemu_real_host_page_size();
    Garbage *g;

    if (!mem || size < MAX(SMALL, 2 * page)) {
        g_free(mem);
        return;
    }
    g = g_new(Garbage, 1);
    g->mem = mem;
    g->at = ROUND_UP((uintptr_t)mem, page);
    g->end = ROUND_DOWN((uintptr_t)mem + size, page);
    if (bql_locked()) {
        add_garbage(g);
    } else {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), add_garbage, g);
    }
}
