// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mappings of the device's file. The program overwrites the memory of queues in
 * use. It unmaps parts of mappings, moves them, and keeps them after a fork and
 * after the end of the queue.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

#define PAGE 4096
/* Bytes at the start of a mapping with its counters, or a summary */
#define COUNTERS 256
#define NOTES 32
#define MAX_PAGES 64
/* The driver's offsets start here, page by page. */
#define OFFSETS 64

static struct {
    uint8_t *address;
    size_t size;
    off_t offset;
} notes[NOTES];
static atomic_uint num_notes;

/* A mapping that libibverbs made. Call before another thread uses it. */
void maps_note(void *address, size_t size, off_t offset)
{
    uint32_t n = num_notes;

    if (n < NOTES) {
        notes[n].address = address;
        notes[n].size = size;
        notes[n].offset = offset;
        num_notes = n + 1;
    }
}

/* volatile: the device and other threads access the memory concurrently */
static void scribble(struct rng *rng, volatile uint32_t *words, size_t size)
{
    for (int i = 0; i < 8; i++) {
        uint32_t at = rng_below(rng, size / sizeof(*words));

        words[at] = rng_one_in(rng, 2) ? rng_word(rng)
                                       : words[at] + 1 - rng_below(rng, 3);
    }
}

/*
 * Overwrite the slots of a queue, the counters before them, and doorbells with
 * their shadow. The mapping may be gone: the write then kills the process,
 * which is one of the intended ends.
 */
void maps_scribble(struct rng *rng)
{
    uint32_t n = num_notes;
    uint32_t i;

    if (!n) {
        return;
    }
    i = rng_below(rng, n);
    /* Half of the time near the start, which has the counters */
    scribble(rng, (void *)notes[i].address,
             rng_one_in(rng, 2) ? COUNTERS : notes[i].size);
}

/* Fork a child that keeps a mapping for some time, without the file. */
static void inherit(struct rng *rng, uint8_t *map, size_t size)
{
    pid_t pid = syscall(SYS_fork);

    if (pid == 0) {
        struct rng own = { .state = rng_next(rng) };

        signal(SIGSEGV, SIG_DFL);
        for (uint32_t n = rng_below(rng, 200); n; n--) {
            scribble(&own, (void *)map, size);
            usleep(500);
        }
        _exit(0);
    }
    /* No one waits for the child: some outlive this process. */
}

static void cut(struct rng *rng, uint8_t *map, uint32_t pages)
{
    uint32_t from = rng_below(rng, pages);
    uint32_t len = 1 + rng_below(rng, pages - from);
    uint8_t *at = map + (size_t)from * PAGE;
    void *moved;

    switch (rng_below(rng, 6)) {
    case 0:
        munmap(at, (size_t)len * PAGE);
        break;
    case 1:
        mprotect(at, (size_t)len * PAGE, rng_below(rng, 8));
        break;
    case 2:
        /* Grow the mapping, which must not reach further memory. */
        moved = mremap(at, (size_t)len * PAGE,
                       (size_t)(1 + rng_below(rng, MAX_PAGES)) * PAGE,
                       rng_one_in(rng, 4) ? 0 : MREMAP_MAYMOVE);
        if (moved != MAP_FAILED && rng_one_in(rng, 2)) {
            munmap(moved, PAGE);
        }
        break;
    case 3:
        madvise(at, (size_t)len * PAGE, rng_below(rng, 26));
        break;
    case 4:
        mlock(at, (size_t)len * PAGE);
        break;
    default:
        remap_file_pages(at, (size_t)len * PAGE, 0, rng_below(rng, OFFSETS),
                         0);
        break;
    }
}

/*
 * Map something: memory of a queue once more, or a range that must be refused.
 */
void maps_attack(struct rng *rng, int fd)
{
    uint32_t n = num_notes;
    uint32_t pages = 1 + rng_below(rng, rng_one_in(rng, 4) ? MAX_PAGES : 8);
    off_t offset = (off_t)rng_below(rng, OFFSETS) * PAGE;
    int flags = rng_one_in(rng, 8) ? MAP_PRIVATE : MAP_SHARED;
    uint8_t *map;

    if (n && rng_one_in(rng, 2)) {
        uint32_t i = rng_below(rng, n);

        offset = notes[i].offset;
        if (!rng_one_in(rng, 4)) {
            pages = notes[i].size / PAGE;
        }
    }
    if (rng_one_in(rng, 16)) {
        offset = ((off_t)rng_next(rng) << 20) & ~(off_t)(PAGE - 1);
    }
    map = (void *)syscall(SYS_mmap, NULL, (size_t)pages * PAGE,
                          1 + rng_below(rng, 7), flags, fd, offset);
    if (map == MAP_FAILED) {
        return;
    }
    atomic_fetch_add(&counts->mappings, 1);
    if (rng_one_in(rng, 16)) {
        inherit(rng, map, (size_t)pages * PAGE);
    }
    cut(rng, map, pages);
    if (!rng_one_in(rng, 4)) {
        munmap(map, (size_t)pages * PAGE);
    }
}
