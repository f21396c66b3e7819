/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of one kind by number. Tables are large and mostly empty, so what
 * goes through all objects looks at a bit for each number, and at the slots of
 * those that are in use.
 */
#ifndef ROCE_TABLE_H
#define ROCE_TABLE_H

#include <glib.h>
#include <stdint.h>

typedef struct RoceTable {
    void **slot;
    gulong *used;                   /* a bit for each slot */
    uint32_t end;                   /* numbers are below it */
    uint32_t count;                 /* of those in use */
} RoceTable;

void roce_table_init(RoceTable *t, uint32_t end);
/* The objects are their owners'. */
void roce_table_free(RoceTable *t);

/* @n is below the table's end, and not in use (set) or in use (clear). */
void roce_table_set(RoceTable *t, uint32_t n, void *obj);
void roce_table_clear(RoceTable *t, uint32_t n);

/* The object with the number @n, which may be any, or NULL. */
static inline void *roce_table_get(const RoceTable *t, uint32_t n)
{
    return n < t->end ? t->slot[n] : NULL;
}

/* The first object from number @n on, which becomes its number, or NULL. */
void *roce_table_next(const RoceTable *t, uint32_t *n);

/* For each object @obj and its number @n; @obj may be taken away meanwhile. */
#define ROCE_TABLE_FOREACH(t, n, obj)                                   \
    for (uint32_t n = 0;                                                \
         ((obj) = roce_table_next(t, &n)); n++)

#endif
