/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures how long the main loop of a QEMU works between two waits, while it
 * holds the BQL. The preloaded library wraps ppoll() of libc, measures the CPU
 * time of QEMU's first thread, and stores the longest turn in the file that
 * TURN_METER names. It uses CPU time because on a busy machine any turn may
 * take long by the clock. A second number follows in the file: the longest turn
 * with its waits for locks, also for locks of the kernel. This one is measured
 * by the clock, minus the time in which the thread waited for a processor, if
 * the kernel reports that time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int Ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                  const sigset_t *mask);

#define CLOCKS 2

/* The longest turn by each clock, in ns. The reader sets both to 0. */
static volatile uint64_t *longest;
static uint64_t since[CLOCKS];
static int schedstat = -1;          /* of the thread */

static uint64_t now(clockid_t id)
{
    struct timespec at;

    clock_gettime(id, &at);
    return at.tv_sec * UINT64_C(1000000000) + at.tv_nsec;
}

/* ns that the thread was ready to run, but waited for a processor */
static uint64_t waited(void)
{
    char text[64] = "";
    uint64_t ran, ready;

    if (schedstat < 0 || pread(schedstat, text, sizeof(text) - 1, 0) <= 0 ||
        sscanf(text, "%" SCNu64 " %" SCNu64, &ran, &ready) != 2) {
        return 0;
    }
    return ready;
}

static uint64_t read_clock(int i)
{
    return i ? now(CLOCK_MONOTONIC) - waited() : now(CLOCK_THREAD_CPUTIME_ID);
}

static __attribute__((constructor)) void start(void)
{
    const char *path = getenv("TURN_METER");
    int fd = path ? open(path, O_RDWR) : -1;
    void *map;

    if (fd < 0) {
        return;
    }
    map = mmap(NULL, CLOCKS * sizeof(*longest), PROT_READ | PROT_WRITE,
               MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED) {
        longest = map;
        schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
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
    for (int i = 0; main_thread && i < CLOCKS && since[i]; i++) {
        uint64_t turn = read_clock(i) - since[i];

        if (turn > longest[i]) {
            longest[i] = turn;
        }
    }
    ret = real(fds, n, timeout, mask);
    for (int i = 0; main_thread && i < CLOCKS; i++) {
        since[i] = read_clock(i);
    }
    return ret;
}
