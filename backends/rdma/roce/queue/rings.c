/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring of a QP's sends in flight. Most QPs use little of the depth that
 * they are created with. So the ring begins with one slot and grows on demand.
 */
#include <glib.h>
#include "queue/queue.h"

/* The slots of a ring that has grown for the first time */
#define SECOND_SIZE 4

/* The new size of a ring of @size slots that shall hold @n WQEs */
static uint32_t ring_size_for(uint32_t size, uint32_t n)
{
    if (n <= size) {
        return size;
    }
    return size ? roce_ring_size(MAX(n, SECOND_SIZE)) : roce_ring_size(n);
}

/*
 * Allocate @n WQEs, each aligned to a cache line. The caller frees *@block.
 * Returns NULL, with *@block NULL, if there is no memory.
 */
static RoceSendWqe *wqes_new(uint32_t n, void **block)
{
    const uintptr_t mask = ROCE_CACHE_LINE - 1;

    _Static_assert(sizeof(RoceSendWqe) == ROCE_CACHE_LINE, "not one line");
    *block = g_try_malloc0_n((size_t)n + 1, sizeof(RoceSendWqe));
    return (RoceSendWqe *)(((uintptr_t)*block + mask) & ~mask);
}

static RoceSendArgs *args_new(uint32_t n)
{
    return g_try_malloc0_n(n, sizeof(RoceSendArgs));
}

static bool grow_sq(RoceQp *qp, uint32_t size)
{
    const RoceSqState *sq = &qp->s.sq;
    void *block;
    RoceSendWqe *wqes = wqes_new(size, &block);
    RoceSendArgs *args = qp->sargs ? args_new(size) : NULL;
    RdmaSge *sges = g_try_malloc0_n(size, qp->ssges_each * sizeof(*sges));
    uint64_t **pages = g_try_malloc0_n(size, sizeof(*pages));
    uint32_t i;

    if (!wqes || (qp->sargs && !args) || !sges || !pages) {
        g_free(block);
        g_free(args);
        g_free(sges);
        g_free(pages);
        return false;
    }
    for (i = sq->cons; i != sq->prod; i++) {
        uint32_t to = i & (size - 1);

        wqes[to] = *roce_swqe(qp, i);
        if (args) {
            args[to] = *roce_sargs(qp, i);
        }
        memcpy(&sges[(size_t)to * qp->ssges_each], roce_ssges(qp, i),
               qp->ssges_each * sizeof(*sges));
        pages[to] = *roce_spages(qp, i);
    }
    g_free(qp->swqes_block);
    g_free(qp->sargs);
    g_free(qp->ssges);
    g_free(qp->spages);
    qp->swqes_block = block;
    qp->swqes = wqes;
    qp->sargs = args;
    qp->ssges = sges;
    qp->spages = pages;
    qp->sq_size = size;
    return true;
}

bool roce_sq_reserve(RoceQp *qp, uint32_t n)
{
    uint32_t size = ring_size_for(qp->sq_size, n);

    return size == qp->sq_size || grow_sq(qp, size);
}

RoceSendArgs *roce_sargs_reserve(RoceQp *qp, uint32_t index)
{
    if (!qp->sargs) {
        qp->sargs = args_new(qp->sq_size);
    }
    return roce_sargs(qp, index);
}

void roce_ring_free(RoceQp *qp)
{
    g_free(qp->swqes_block);
    g_free(qp->sargs);
    g_free(qp->ssges);
    g_free(qp->spages);
}
