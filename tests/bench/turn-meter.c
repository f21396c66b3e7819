/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures how long the main loop of a QEMU works between two waits, while it
 * holds the BQL. Preloaded, it stands between QEMU and ppoll() of libc, counts
 * the CPU time of the thread that QEMU started with, and keeps the longest in
 * the file that TURN_METER names. CPU time, since on a busy machine any turn
 * may take long by the clock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int Ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                  const sigset_t *mask);

/* In the file; the reader sets it to 0. */
static volatile uint64_t *longest;
static uint64_t since;

static uint64_t cpu_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static __attribute__((constructor)) void start(void)
{
    const char *path = getenv("TURN_METER");
    int fd = path ? open(path, O_RDWR) : -1;
    void *map;

    if (fd < 0) {
        return;
    }
    map = mmap(NULL, sizeof(*longest), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
               0);
    close(fd);
    if (map != MAP_FAILED) {
        longest = map;
    }
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
          const sigset_t *mask)
{
    static Ppoll *real;
    bool main_thread = longest && gettid() == getpid();
    int ret;

    if (!real) {
        real = (Ppoll *)dlsym(RTLD_NEXT, "ppoll");
    }
    if (main_thread && since && cpu_time() - since > *longest) {
        *longest = cpu_time() - since;
    }
    ret = real(fds, n, timeout, mask);
    if (main_thread) {
        since = cpu_time();
    }
    return ret;
}
