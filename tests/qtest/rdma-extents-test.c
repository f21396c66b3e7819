/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of a queue as runs of contiguous pages. The test links
 * hw/rdma/hca/extents.c, and starts no QEMU.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca.h"

#define START 0x123456000ull
#define MAX_PAGES 2049

/* Returns the number of a page in memory, for page @i of the list. */
typedef uint64_t Order(uint64_t i);

typedef struct Shape {
    const char *name;
    uint64_t start;                 /* address of page 0 in memory */
    uint32_t npages;
    Order *order;
    uint32_t runs;                  /* 0: the list stays as it is */
} Shape;

static uint64_t in_order(uint64_t i)
{
    return i;
}

static uint64_t reverse(uint64_t i)
{
    return MAX_PAGES - i;
}

static uint64_t same(uint64_t i)
{
    return 0;
}

static uint64_t pairs(uint64_t i)
{
    return i ^ 2;
}

/* One page alone, and then two: 0, 2, 3, 5, 7, 8 and so on */
static uint64_t one_and_two(uint64_t i)
{
    return i / 3 * 5 + (i % 3 ? i % 3 + 1 : 0);
}

/* 512 pages, as large pages of the guest have them */
static uint64_t large_pages(uint64_t i)
{
    return i ^ 512;
}

/* Only the page of counters is elsewhere. */
static uint64_t first_apart(uint64_t i)
{
    return i ? i : MAX_PAGES;
}

static const Shape shapes[] = {
    { "one-page", START, 1, in_order, 0 },
    { "two-pages", START, 2, in_order, 1 },
    { "two-pages-apart", START, 2, reverse, 0 },
    { "contiguous", START, MAX_PAGES, in_order, 1 },
    { "first-apart", START, MAX_PAGES, first_apart, 2 },
    { "large-pages", START, MAX_PAGES, large_pages, 5 },
    { "pairs", START, 2048, pairs, 1024 },
    { "one-and-two", START, 2048, one_and_two, 0 },
    { "reverse", START, MAX_PAGES, reverse, 0 },
    { "the-same-page", START, MAX_PAGES, same, 0 },
    { "from-0", 0, MAX_PAGES, in_order, 1 },
    { "past-the-last-address", -4096ull, 16, in_order, 1 },
};

static uint64_t page_at(const Shape *shape, uint32_t i)
{
    return shape->start + shape->order(i) * RDMA_PAGE_SIZE;
}

/* Doubles: memory that can be used up, and the number of bytes freed */
static bool no_memory;
static size_t freed;

gpointer g_try_malloc_n(gsize n, gsize size)
{
    return no_memory ? NULL : g_malloc_n(n, size);
}

void rdma_backend_free(void *mem, size_t size)
{
    freed += mem ? size : 0;
    g_free(mem);
}

static RdmaHcaExtents extents_of(const Shape *shape)
{
    uint64_t *pages = g_new(uint64_t, shape->npages);
    RdmaHcaExtents x;

    for (uint32_t i = 0; i < shape->npages; i++) {
        pages[i] = page_at(shape, i);
    }
    rdma_hca_extents_init(&x, pages, shape->npages);
    return x;
}

static void expect_at(const Shape *shape, RdmaHcaCursor *c, uint32_t base,
                      uint32_t offset)
{
    uint32_t page = base + offset / RDMA_PAGE_SIZE;

    g_assert_cmphex(rdma_hca_cursor_at(c, offset), ==,
                    page_at(shape, page) + offset % RDMA_PAGE_SIZE);
}

/* The run goes on to the end of a page, and at most to that of the list. */
static void expect_left(const Shape *shape, const RdmaHcaCursor *c,
                        uint32_t base, uint32_t offset)
{
    uint32_t left = rdma_hca_cursor_left(c, offset);
    uint32_t page = base + offset / RDMA_PAGE_SIZE;
    uint32_t end = base + (offset + left) / RDMA_PAGE_SIZE;

    g_assert_cmpuint((offset + left) % RDMA_PAGE_SIZE, ==, 0);
    g_assert_cmpuint(end, >, page);
    g_assert_cmpuint(end, <=, shape->npages);
    g_assert_cmphex(page_at(shape, end - 1), ==,
                    page_at(shape, page) +
                    (end - 1 - page) * (uint64_t)RDMA_PAGE_SIZE);
}

/* A queue of the pages from @base on, read as a ring and at random */
static void read_queue(const Shape *shape, const RdmaHcaExtents *x,
                       uint32_t base)
{
    uint32_t len = (shape->npages - base) * RDMA_PAGE_SIZE;
    RdmaHcaCursor c;

    rdma_hca_cursor_init(&c, x, base);
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t at = 0; at < len; at += 2048) {
            expect_at(shape, &c, base, at);
            expect_left(shape, &c, base, at);
        }
    }
    for (uint32_t at = len; at; at -= 2048) {
        expect_at(shape, &c, base, at - 1);
    }
    for (unsigned i = 0; i < 10000; i++) {
        expect_at(shape, &c, base, g_test_rand_int_range(0, len));
    }
}

static void test_addresses(gconstpointer data)
{
    const Shape *shape = data;
    RdmaHcaExtents x = extents_of(shape);
    RdmaHca hca = { .charged_pages = shape->npages };

    g_assert_cmphex(rdma_hca_extents_first(&x), ==, page_at(shape, 0));
    for (uint32_t base = 0; base < shape->npages; base = 2 * base + 1) {
        read_queue(shape, &x, base);
    }
    rdma_hca_extents_free(&hca, &x);
}

static void test_list(gconstpointer data)
{
    const Shape *shape = data;
    RdmaHcaExtents x = extents_of(shape);
    g_autofree uint64_t *pages = rdma_hca_extents_list(&x);
    RdmaHca hca = { .charged_pages = shape->npages };

    for (uint32_t i = 0; i < shape->npages; i++) {
        g_assert_cmphex(pages[i], ==, page_at(shape, i));
    }
    rdma_hca_extents_free(&hca, &x);
}

/* At most 8 bytes a page, and all of it is freed. */
static void test_memory(gconstpointer data)
{
    const Shape *shape = data;
    size_t flat = shape->npages * sizeof(uint64_t);
    size_t small = shape->runs * sizeof(RdmaHcaExtent);
    RdmaHca hca = { .charged_pages = shape->npages + 7 };
    RdmaHcaExtents x;

    freed = 0;
    x = extents_of(shape);
    g_assert_cmpuint(x.npages, ==, shape->npages);
    g_assert_cmpuint(x.count, ==, shape->runs);
    g_assert_cmpuint(small, <=, flat);
    g_assert_cmpuint(freed, ==, shape->runs ? flat : 0);
    rdma_hca_extents_free(&hca, &x);
    g_assert_cmpuint(freed, ==, flat + small);
    g_assert_cmpuint(hca.charged_pages, ==, 7);
    g_assert_cmpuint(x.npages, ==, 0);
}

/* Without memory for runs the list stays as it was read. */
static void test_no_memory(void)
{
    const Shape *shape = &shapes[3];
    RdmaHca hca = { .charged_pages = shape->npages };
    RdmaHcaExtents x;

    g_assert_cmpuint(shape->runs, ==, 1);
    no_memory = true;
    x = extents_of(shape);
    no_memory = false;
    g_assert_cmpuint(x.count, ==, 0);
    read_queue(shape, &x, 1);
    rdma_hca_extents_free(&hca, &x);
    g_assert_cmpuint(hca.charged_pages, ==, 0);
}

/* Objects without a list are freed alike. */
static void test_no_list(void)
{
    RdmaHca hca = { .charged_pages = 7 };
    RdmaHcaExtents x = {};

    g_assert_null(rdma_hca_extents_list(&x));
    rdma_hca_extents_free(&hca, &x);
    g_assert_cmpuint(hca.charged_pages, ==, 7);
}

static void add(const char *test, const Shape *shape, GTestDataFunc func)
{
    g_autofree char *path = g_strdup_printf("/rdma/extents/%s/%s", test,
                                            shape->name);

    g_test_add_data_func(path, shape, func);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        add("addresses", &shapes[i], test_addresses);
        add("list", &shapes[i], test_list);
        add("memory", &shapes[i], test_memory);
    }
    g_test_add_func("/rdma/extents/no-memory", test_no_memory);
    g_test_add_func("/rdma/extents/no-list", test_no_list);
    return g_test_run();
}
