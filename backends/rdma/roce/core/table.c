/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of objects by number.
 */
#include "core/table.h"

#define BITS (8 * sizeof(gulong))

static size_t words(const RoceTable *t)
{
    return ((size_t)t->end + BITS - 1) / BITS;
}

void roce_table_init(RoceTable *t, uint32_t end)
{
    t->end = end;
    t->count = 0;
    t->slot = g_new0(void *, end);
    t->used = g_new0(gulong, words(t));
}

void roce_table_free(RoceTable *t)
{
    g_free(t->slot);
    g_free(t->used);
}

void roce_table_set(RoceTable *t, uint32_t n, void *obj)
{
    t->slot[n] = obj;
    t->used[n / BITS] |= 1ul << n % BITS;
    t->count++;
}

void roce_table_clear(RoceTable *t, uint32_t n)
{
    t->slot[n] = NULL;
    t->used[n / BITS] &= ~(1ul << n % BITS);
    t->count--;
}

void *roce_table_next(const RoceTable *t, uint32_t *n)
{
    size_t word = *n / BITS;
    gulong bits;

    if (!t->count || *n >= t->end) {
        return NULL;
    }
    bits = t->used[word] & ~0ul << *n % BITS;
    while (!bits) {
        if (++word == words(t)) {
            return NULL;
        }
        bits = t->used[word];
    }
    *n = word * BITS + __builtin_ctzl(bits);
    return t->slot[*n];
}
