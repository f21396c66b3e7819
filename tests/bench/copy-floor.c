/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What guests of one host cannot be faster than: a copy from the memory of one
 * to that of another, and the way to another process that has to wake up.
 *
 *     copy-floor SIZE...
 *
 * prints "copy SIZE RATE" for each, in bytes/us, and "hop TIME" in us. Both
 * memories are files of memory that are mapped shared, as QEMU maps those of
 * guests; each copy is between the same two places, as a benchmark's are.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COPY_BYTES (1ull << 30)
#define HOPS 20000

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now_us(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e6 + at.tv_nsec / 1e3;
}

static void *memory_of_a_guest(size_t size)
{
    int fd = memfd_create("guest", MFD_CLOEXEC);
    void *mem;

    if (fd < 0 || ftruncate(fd, size) < 0) {
        die("memfd_create");
    }
    mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mem == MAP_FAILED) {
        die("mmap");
    }
    close(fd);
    memset(mem, 1, size);
    return mem;
}

static void copy(size_t size)
{
    uint8_t *from = memory_of_a_guest(size);
    uint8_t *to = memory_of_a_guest(size);
    uint64_t count = COPY_BYTES / size;
    double began = now_us();

    for (uint64_t i = 0; i < count; i++) {
        memcpy(to, from, size);
        /* Each copy is one that somebody may look at. */
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    printf("copy %zu %.0f\n", size, count * size / (now_us() - began));
    munmap(from, size);
    munmap(to, size);
}

static void pass(int fd, bool give)
{
    uint64_t one = 1;

    if ((give ? write(fd, &one, sizeof(one))
              : read(fd, &one, sizeof(one))) != sizeof(one)) {
        die("eventfd");
    }
}

static void hop(void)
{
    int there = eventfd(0, EFD_CLOEXEC), back = eventfd(0, EFD_CLOEXEC);
    double began;
    pid_t other;

    if (there < 0 || back < 0) {
        die("eventfd");
    }
    other = fork();
    if (other < 0) {
        die("fork");
    }
    if (!other) {
        for (int i = 0; i < HOPS; i++) {
            pass(there, false);
            pass(back, true);
        }
        _exit(0);
    }
    began = now_us();
    for (int i = 0; i < HOPS; i++) {
        pass(there, true);
        pass(back, false);
    }
    printf("hop %.2f\n", (now_us() - began) / (2.0 * HOPS));
    waitpid(other, NULL, 0);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t size = 0;

        if (sscanf(argv[i], "%zu", &size) != 1 || !size || size > COPY_BYTES) {
            fprintf(stderr, "copy-floor: %s: sizes are 1 to %" PRIu64
                    " bytes\n", argv[i], (uint64_t)COPY_BYTES);
            return 1;
        }
        copy(size);
    }
    hop();
    return 0;
}
