/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lower bounds for traffic between guests of one host: a copy from the memory
 * of one to that of another, and a wake-up of another process.
 *
 *     copy-floor SIZE...
 *
 * prints "copy SIZE RATE" for each SIZE, where one process has both memories,
 * "pass SIZE RATE", where each memory has its own process and the ring between
 * them is shared, both in bytes/us, and "hop TIME", a wake-up, in us. Memories
 * are shared mappings of memfds, as QEMU maps guest memory. Each copy is
 * between the same places, as in a benchmark.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
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
/* The values of rdma-roce: the ring, and the payload of a frame */
#define RING_SIZE (1u << 20)
#define PIECE 4096

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
        /* The compiler must not leave out a copy. */
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    printf("copy %zu %.0f\n", size, count * size / (now_us() - began));
    munmap(from, size);
    munmap(to, size);
}

/* Bytes written and bytes read so far, at the start of the ring */
typedef struct Positions {
    _Alignas(64) _Atomic uint64_t written;
    _Alignas(64) _Atomic uint64_t read;
} Positions;

/* Yield to the other process in case there are too few processors for both. */
static void wait_a_little(unsigned *waited)
{
    if (++*waited % 1000 == 0) {
        sched_yield();
    }
}

static void copy_in(Positions *at, uint8_t *ring, const uint8_t *from,
                    size_t size)
{
    unsigned waited = 0;

    for (uint64_t pos = 0; pos < COPY_BYTES; pos += PIECE) {
        while (pos + PIECE - atomic_load(&at->read) > RING_SIZE) {
            wait_a_little(&waited);
        }
        memcpy(ring + pos % RING_SIZE, from + pos % size, PIECE);
        atomic_store(&at->written, pos + PIECE);
    }
}

static void copy_out(Positions *at, const uint8_t *ring, uint8_t *to,
                     size_t size)
{
    unsigned waited = 0;

    for (uint64_t pos = 0; pos < COPY_BYTES; pos += PIECE) {
        while (atomic_load(&at->written) == pos) {
            wait_a_little(&waited);
        }
        memcpy(to + pos % size, ring + pos % RING_SIZE, PIECE);
        atomic_store(&at->read, pos + PIECE);
    }
}

/* Two processes that only copy, each on its own processor */
static void pass(size_t size)
{
    uint8_t *shared = memory_of_a_guest(PIECE + RING_SIZE);
    uint8_t *from = memory_of_a_guest(size);
    uint8_t *to = memory_of_a_guest(size);
    Positions *at = (Positions *)shared;
    double began;
    pid_t other;

    memset(at, 0, sizeof(*at));
    began = now_us();
    other = fork();
    if (other < 0) {
        die("fork");
    }
    if (!other) {
        copy_out(at, shared + PIECE, to, size);
        _exit(0);
    }
    copy_in(at, shared + PIECE, from, size);
    waitpid(other, NULL, 0);
    printf("pass %zu %.0f\n", size, COPY_BYTES / (now_us() - began));
    munmap(shared, PIECE + RING_SIZE);
    munmap(from, size);
    munmap(to, size);
}

static void give_or_take(int fd, bool give)
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
            give_or_take(there, false);
            give_or_take(back, true);
        }
        _exit(0);
    }
    began = now_us();
    for (int i = 0; i < HOPS; i++) {
        give_or_take(there, true);
        give_or_take(back, false);
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
        if (size % PIECE == 0) {
            pass(size);
        }
    }
    hop();
    return 0;
}
