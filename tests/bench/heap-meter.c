/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts the bytes that a process has allocated, with the allocator's header of
 * each block. The preloaded library wraps malloc() and its relatives of glibc,
 * and keeps the count in the file that HEAP_METER names.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's own, which do not call each other by the names below */
__typeof__(malloc) __libc_malloc;
__typeof__(calloc) __libc_calloc;
__typeof__(realloc) __libc_realloc;
__typeof__(memalign) __libc_memalign;
__typeof__(free) __libc_free;

static uint64_t not_shared;
static uint64_t *bytes = &not_shared;

static __attribute__((constructor)) void start(void)
{
    const char *path = getenv("HEAP_METER");
    int fd = path ? open(path, O_RDWR) : -1;
    uint64_t *map;

    if (fd < 0) {
        return;
    }
    map = mmap(NULL, sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED) {
        *map = *bytes;
        bytes = map;
    }
}

static uint64_t size_of(void *mem)
{
    return mem ? malloc_usable_size(mem) + sizeof(size_t) : 0;
}

static void count(uint64_t n)
{
    __atomic_fetch_add(bytes, n, __ATOMIC_RELAXED);
}

static void *counted(void *mem)
{
    count(size_of(mem));
    return mem;
}

void *malloc(size_t size)
{
    return counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return counted(__libc_calloc(n, size));
}

void *realloc(void *mem, size_t size)
{
    uint64_t before = size_of(mem);
    void *now = __libc_realloc(mem, size);

    if (now || !size) {
        count(size_of(now) - before);
    }
    return now;
}

void free(void *mem)
{
    count(-size_of(mem));
    __libc_free(mem);
}

void *memalign(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **mem, size_t alignment, size_t size)
{
    *mem = memalign(alignment, size);
    return *mem ? 0 : errno;
}
