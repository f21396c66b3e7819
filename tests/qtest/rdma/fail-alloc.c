/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Allocations that fail on request. This library is preloaded into QEMU. Test
 * programs link to it, too, to choose the allocation that fails.
 */
#include "qemu/osdep.h"
#include <dlfcn.h>
#include "qemu/atomic.h"
#include "fail-alloc.h"

static FailAlloc *shared;
static char *path;

static FailAlloc *map(int fd)
{
    void *at = mmap(NULL, sizeof(FailAlloc), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* In QEMU */

static void __attribute__((constructor)) find_wish(void)
{
    const char *name = getenv(FAIL_ALLOC_ENV);
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;

    if (fd >= 0) {
        shared = map(fd);
        close(fd);
    }
}

static bool fails(void)
{
    uint32_t nth = shared ? qatomic_read(&shared->nth) : 0;

    if (!nth || qatomic_fetch_inc(&shared->seen) + 1 != nth) {
        return false;
    }
    qatomic_inc(&shared->failed);
    return true;
}

static bool too_many(gsize n, gsize size)
{
    return size && n > G_MAXSIZE / size;
}

/* GLib itself calls the C library's allocator. */

gpointer g_try_malloc(gsize size)
{
    return !size || fails() ? NULL : malloc(size);
}

gpointer g_try_malloc0(gsize size)
{
    return !size || fails() ? NULL : calloc(1, size);
}

gpointer g_try_malloc_n(gsize n, gsize size)
{
    return too_many(n, size) ? NULL : g_try_malloc(n * size);
}

gpointer g_try_malloc0_n(gsize n, gsize size)
{
    return too_many(n, size) ? NULL : g_try_malloc0(n * size);
}

/* In the test */

void fail_alloc_begin(void)
{
    const char *asan = getenv("ASAN_OPTIONS");
    g_autofree char *options = NULL;
    Dl_info info;
    int fd;

    if (!path) {
        fd = g_file_open_tmp("virtio-rdma-XXXXXX", &path, NULL);
        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(ftruncate(fd, sizeof(FailAlloc)), ==, 0);
        shared = map(fd);
        g_assert_nonnull(shared);
        close(fd);
    }
    /* ASan insists on being the first library without this option */
    options = g_strdup_printf("%s%sverify_asan_link_order=0", asan ?: "",
                              asan ? ":" : "");
    g_assert_cmpint(dladdr(fail_alloc_begin, &info), !=, 0);
    g_setenv("ASAN_OPTIONS", options, true);
    g_setenv("LD_PRELOAD", info.dli_fname, true);
    g_setenv(FAIL_ALLOC_ENV, path, true);
}

void fail_alloc_end(void)
{
    g_unsetenv("LD_PRELOAD");
    g_unsetenv(FAIL_ALLOC_ENV);
    unlink(path);
    g_clear_pointer(&path, g_free);
    munmap(shared, sizeof(*shared));
    shared = NULL;
}

void fail_alloc_arm(uint32_t nth)
{
    qatomic_set(&shared->seen, 0);
    qatomic_set(&shared->failed, 0);
    qatomic_set(&shared->nth, nth);
}

bool fail_alloc_disarm(void)
{
    qatomic_set(&shared->nth, 0);
    return qatomic_read(&shared->failed);
}
