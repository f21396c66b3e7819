/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: the table of objects. Their numbers differ from
 * those of a guest.
 */
#include "qemu/osdep.h"
#include "internal.h"

typedef struct Numbers {
    const char *name;
    uint32_t first;
    uint32_t step;
} Numbers;

static const Numbers numbers[FAKE_KINDS] = {
    [FAKE_CONTEXT] = { "context", 1, 1 },
    [FAKE_PD] = { "pd", 0x300, 1 },
    [FAKE_MR] = { "mr", 0x400, 1 },
    [FAKE_MW] = { "mw", 0x50000, 1 },
    [FAKE_CHANNEL] = { "channel", 0x600, 1 },
    [FAKE_CQ] = { "cq", 0x700, 3 },
    [FAKE_SRQ] = { "srq", 0x800, 5 },
    [FAKE_QP] = { "qp", 0x1107, 7 },
    [FAKE_AH] = { "ah", 0x900, 1 },
    [FAKE_MCAST] = { "mcast", 0, 0 },
};

const char *fake_kind_name(FakeKind kind)
{
    return numbers[kind].name;
}

void *fake_new(FakeKind kind, size_t size)
{
    static uint32_t made[FAKE_KINDS];
    FakeObj *obj = g_malloc0(size);

    obj->kind = kind;
    obj->number = numbers[kind].first + made[kind]++ * numbers[kind].step;
    g_hash_table_add(fake.live, obj);
    fake.count[kind]++;
    return obj;
}

void fake_free(void *ptr)
{
    FakeObj *obj = ptr;

    g_hash_table_remove(fake.live, obj);
    if (!obj->dropped) {
        fake.count[obj->kind]--;
    }
    g_free(obj);
}

void fake_drop(FakeObj *obj)
{
    if (!obj->dropped) {
        obj->dropped = true;
        fake.count[obj->kind]--;
    }
}

void fake_check(const void *ptr, FakeKind kind)
{
    const FakeObj *obj = ptr;

    if (!g_hash_table_contains(fake.live, obj) ||
        (kind != FAKE_KINDS && obj->kind != kind)) {
        fprintf(stderr, "fake-ibverbs: a verb was given %p, which is not a %s, "
                "or was destroyed\n", ptr,
                kind == FAKE_KINDS ? "object" : fake_kind_name(kind));
        abort();
    }
}

static gint by_number(gconstpointer a, gconstpointer b)
{
    uint32_t x = ((const FakeObj *)a)->number;
    uint32_t y = ((const FakeObj *)b)->number;

    return x < y ? -1 : x > y;
}

GList *fake_all(FakeKind kind)
{
    GHashTableIter iter;
    GList *list = NULL;
    gpointer key;

    g_hash_table_iter_init(&iter, fake.live);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        if (((FakeObj *)key)->kind == kind) {
            list = g_list_insert_sorted(list, key, by_number);
        }
    }
    return list;
}

void *fake_find(FakeKind kind, uint32_t number)
{
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, fake.live);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        FakeObj *obj = key;

        if (obj->kind == kind && obj->number == number && !obj->dropped) {
            return obj;
        }
    }
    return NULL;
}

FakeContext *fake_context_of(struct ibv_context *context)
{
    FakeContext *ctx = container_of(context, FakeContext, v.context);

    fake_check(ctx, FAKE_CONTEXT);
    return ctx;
}

int fake_alive(struct ibv_context *context, int err)
{
    return fake_context_of(context)->dead ? EIO : err;
}

int fake_begin_on(const char *verb, const void *obj, FakeKind kind,
                  struct ibv_context *const *context)
{
    int err = fake_begin(verb);

    fake_check(obj, kind);
    return fake_alive(*context, err);
}

int fake_begin_destroy(const char *verb, const void *obj, FakeKind kind,
                       struct ibv_context *const *context)
{
    int err = fake_begin_on(verb, obj, kind, context);

    return !err && ((const FakeObj *)obj)->users ? EBUSY : err;
}

bool fake_full(FakeKind kind, int max)
{
    return max >= 0 && fake.count[kind] >= max;
}
