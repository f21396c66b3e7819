/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables: the objects of one kind by their numbers.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qemu/guest-random.h"
#include "int.h"

void rdma_hca_table_init(RdmaHcaTable *t, uint32_t first, uint32_t end)
{
    t->first = first;
    t->end = MAX(first, end);
    t->next = first;
    t->count = 0;
    t->slot = g_new0(void *, t->end);
    t->used = bitmap_new(t->end);
}

void rdma_hca_table_free(RdmaHcaTable *t)
{
    g_free(t->slot);
    g_free(t->used);
    memset(t, 0, sizeof(*t));
}

void rdma_hca_table_scatter(RdmaHcaTable *t)
{
    uint32_t n;

    qemu_guest_getrandom_nofail(&n, sizeof(n));
    t->next = t->first + (t->end > t->first ? n % (t->end - t->first) : 0);
}

/*
 * Numbers are given round robin. A peer or process that still uses the number
 * of a destroyed object gets an error, and does not reach another object.
 */
bool rdma_hca_table_find(RdmaHcaTable *t, uint32_t *id)
{
    unsigned long n = find_next_zero_bit(t->used, t->end, t->next);

    if (n >= t->end) {
        n = find_next_zero_bit(t->used, t->end, t->first);
    }
    if (n >= t->end) {
        return false;
    }
    *id = n;
    return true;
}

void rdma_hca_table_set(RdmaHcaTable *t, uint32_t id, void *obj)
{
    t->slot[id] = obj;
    set_bit(id, t->used);
    t->count++;
    t->next = id + 1 < t->end ? id + 1 : t->first;
}

void rdma_hca_table_clear(RdmaHcaTable *t, uint32_t id)
{
    t->slot[id] = NULL;
    clear_bit(id, t->used);
    t->count--;
}

void rdma_hca_table_search_from(RdmaHcaTable *t, uint32_t id)
{
    t->next = id;
}

void *rdma_hca_table_next(const RdmaHcaTable *t, uint32_t *id)
{
    if (!t->count) {
        return NULL;
    }
    *id = find_next_bit(t->used, t->end, *id);
    return rdma_hca_table_get(t, *id);
}
