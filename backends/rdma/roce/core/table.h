/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of objects by number. A table is large and mostly empty. A bitmap of
 * the numbers in use makes iteration over all objects fast.
 */
#ifndef ROCE_TABLE_H
#define ROCE_TABLE_H

#include <glib.h>
#include <stdint.h>

typedef struct RoceTable {
    void **slot;
    gulong *used;                   /* a bit for each slot in use */
    uint32_t end;                   /* numbers are 0..end-1 */
    uint32_t count;                 /* numbers in use */
} RoceTable;

void roce_table_init(RoceTable *t, uint32_t end);
/* Free the arrays of the table, but not the objects. */
void roce_table_free(RoceTable *t);

/*
 * Add the object @obj with number @n, or remove the one with number @n. @n is
 * below the table's end, and is not in use (set) or in use (clear).
 */
void roce_table_set(RoceTable *t, uint32_t n, void *obj);
void roce_table_clear(RoceTable *t, uint32_t n);

/* The object with the number @n, or NULL; @n may have any value. */
static inline void *roce_table_get(const RoceTable *t, uint32_t n)
{
    return n < t->end ? t->slot[n] : NULL;
}

/*
 * Find the object with the lowest number that is at least *@n, and set *@n to
 * that number. Returns NULL if there is none.
 */
void *roce_table_next(const RoceTable *t, uint32_t *n);

/*
 * Run the loop body for each object @obj and its number @n. The body may remove
 * @obj from the table.
 */
#define ROCE_TABLE_FOREACH(t, n, obj)                                   \
    for (uint32_t n = 0;                                                \
         ((obj) = roce_table_next(t, &n)); n++)

#endif
