// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rdma_hostile DEVICE SECONDS [SEED]: as a user without rights, start processes
 * that misuse an RDMA device, and kill them during that.
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../open_device.h"
#include "hostile.h"

#define NOBODY 65534
#define AT_ONCE 3
/*
 * How long a process may run after it has opened the device, and how long the
 * opening may take
 */
#define LIFE_US_MIN 5000
#define LIFE_US_MAX 1200000
#define OPEN_US_MAX 10000000
/* More time for a machine that is very busy */
#define SLOW_SECONDS 40

struct hostile_counts *counts;

static struct ibv_context *context;
static uint64_t process_seed;

/* xorshift64* */
uint32_t rng_next(struct rng *rng)
{
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return rng->state * 0x2545f4914f6cdd1dULL >> 32;
}

uint32_t rng_below(struct rng *rng, uint32_t limit)
{
    return rng_next(rng) % limit;
}

bool rng_one_in(struct rng *rng, uint32_t n)
{
    return rng_below(rng, n) == 0;
}

uint32_t rng_word(struct rng *rng)
{
    uint32_t bit = 1U << rng_below(rng, 32);

    switch (rng_below(rng, 5)) {
    case 0:
        return bit;
    case 1:
        return bit - 1;
    case 2:
        return -bit;
    case 3:
        return rng_below(rng, 256);
    default:
        return rng_next(rng);
    }
}

/* Never 0, where the generator would stay */
static uint64_t mix(uint64_t seed, uint64_t n)
{
    return ((seed + 1) * 0x9e3779b97f4a7c15ULL ^ n * 0xd1342543de82ef95ULL) | 1;
}

static void *replay_thread(void *arg)
{
    struct rng rng = { .state = mix(process_seed, (uintptr_t)arg) };

    for (;;) {
        if (rng_one_in(&rng, 4)) {
            commands_write(&rng);
        } else {
            commands_replay(&rng);
        }
    }
    return NULL;
}

static void *map_thread(void *arg)
{
    struct rng rng = { .state = mix(process_seed, (uintptr_t)arg) };

    for (;;) {
        maps_attack(&rng, context->cmd_fd);
        if (rng_one_in(&rng, 4)) {
            maps_scribble(&rng);
        }
    }
    return NULL;
}

/* Each kind of process leaves out some of the threads. */
static void attack(const char *device, uint64_t seed)
{
    struct rng rng = { .state = mix(seed, 0) };
    bool replays = !rng_one_in(&rng, 4);
    bool maps = !rng_one_in(&rng, 4);
    pthread_t thread;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    process_seed = seed;
    context = open_device(device);
    if (!context) {
        /* The previous process may still hold all of the objects. */
        _exit(1);
    }
    atomic_fetch_add(&counts->opened, 1);
    commands_start(context->cmd_fd, mix(seed, 1));
    for (uintptr_t i = 2; replays && i < 4; i++) {
        pthread_create(&thread, NULL, replay_thread, (void *)i);
    }
    if (maps) {
        pthread_create(&thread, NULL, map_thread, (void *)4);
    }
    user_run(&rng, context);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static bool has_worked(void)
{
    return counts->accepted && counts->mappings && counts->posts;
}

static int parse(const char *text, uint64_t *value)
{
    unsigned long long number;
    char more;

    if (sscanf(text, "%llu%c", &number, &more) != 1) {
        return -1;
    }
    *value = number;
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t seconds, seed = time(NULL), started = 0, opened = 0;
    struct rng rng;
    double end;

    if (argc < 3 || argc > 4 || parse(argv[2], &seconds) ||
        (argc > 3 && parse(argv[3], &seed))) {
        fprintf(stderr, "usage: %s DEVICE SECONDS [SEED]\n", argv[0]);
        return 2;
    }
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)) {
        perror("setuid");
        return 2;
    }
    counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    rng.state = mix(seed, 0);
    end = now() + seconds;
    while (now() < end || (!has_worked() && now() < end + SLOW_SECONDS)) {
        pid_t pids[AT_ONCE];

        for (int i = 0; i < AT_ONCE; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                attack(argv[1], mix(seed, ++started));
            }
            started++;
        }
        opened += AT_ONCE;
        for (int us = 0; counts->opened < opened && us < OPEN_US_MAX;
             us += 1000) {
            usleep(1000);
        }
        opened = counts->opened;
        for (int i = 0; i < AT_ONCE; i++) {
            usleep(LIFE_US_MIN +
                   rng_below(&rng, (LIFE_US_MAX - LIFE_US_MIN) / AT_ONCE));
            kill(pids[i], SIGKILL);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            waitpid(pids[i], NULL, 0);
        }
    }
    printf("%llu processes: %lu commands, %lu writes, %lu of both accepted; "
           "%lu mappings, %lu posts\n", (unsigned long long)started,
           counts->commands, counts->writes, counts->accepted,
           counts->mappings, counts->posts);
    return has_worked() ? 0 : 1;
}
