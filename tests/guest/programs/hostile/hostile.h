/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma_hostile: processes that misuse uverbs and the memory of their queues.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sum of what all processes did, in shared memory */
struct hostile_counts {
    atomic_ulong opened;
    atomic_ulong commands;
    atomic_ulong accepted;
    atomic_ulong writes;
    atomic_ulong mappings;
    atomic_ulong posts;
};

extern struct hostile_counts *counts;

/* Each thread has a generator of its own. */
struct rng {
    uint64_t state;
};

uint32_t rng_next(struct rng *rng);
/* A value below @limit, which is not 0 */
uint32_t rng_below(struct rng *rng, uint32_t limit);
bool rng_one_in(struct rng *rng, uint32_t n);
/* A number that is often a limit of something */
uint32_t rng_word(struct rng *rng);

/* commands.c: system calls on the file of the device */
void commands_start(int fd, uint64_t seed);
void commands_replay(struct rng *rng);
void commands_write(struct rng *rng);

/* maps.c: mappings of that file */
void maps_note(void *address, size_t size, off_t offset);
void maps_scribble(struct rng *rng);
void maps_attack(struct rng *rng, int fd);

/* user.c: the program that uses the device, in a loop */
void user_run(struct rng *rng, struct ibv_context *context);

#endif /* HOSTILE_H */
