// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For LD_PRELOAD: the page of doorbells, which is mapped for writing only,
 * cannot be mapped. libibverbs then posts by system calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

typedef void *Mmap(void *, size_t, int, int, int, off_t);

static void *map(const char *name, void *addr, size_t len, int prot, int flags,
                 int fd, off_t offset)
{
    Mmap *real = (Mmap *)dlsym(RTLD_NEXT, name);

    if (fd >= 0 && prot == PROT_WRITE) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real(addr, len, prot, flags, fd, offset);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    return map("mmap", addr, len, prot, flags, fd, offset);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    return map("mmap64", addr, len, prot, flags, fd, offset);
}
