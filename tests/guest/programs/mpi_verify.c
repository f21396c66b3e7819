/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An MPI program whose ranks check each byte that they get.
 *
 * mpi_verify CASE:BYTES:ROUNDS...
 *
 * After each case rank 0 prints "CASE: fine" if all ranks found what they had
 * to find.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static long wrong;

static void check(bool fine, const char *format, ...)
{
    va_list args;

    /* One mistake often causes many similar ones. */
    if (fine || wrong++ > 5) {
        return;
    }
    fprintf(stderr, "rank %d: ", rank);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* The bytes of a message differ for each pair of ranks and each round. */
static uint8_t byte_of(int from, int to, int round, size_t at)
{
    uint32_t x = at * 2654435761u ^ (from * 40503u + to * 9973u + round * 131u);

    return x ^ x >> 11 ^ x >> 23;
}

static void fill(uint8_t *to_send, size_t bytes, int to, int round)
{
    for (size_t i = 0; i < bytes; i++) {
        to_send[i] = byte_of(rank, to, round, i);
    }
}

static void compare(const uint8_t *got, size_t bytes, int from, int to,
                    int round)
{
    for (size_t i = 0; i < bytes; i++) {
        uint8_t want = byte_of(from, to, round, i);

        check(got[i] == want,
              "round %d, from rank %d to %d: byte %zu is 0x%x, not 0x%x", round,
              from, to, i, got[i], want);
    }
}

static uint8_t *memory(size_t bytes)
{
    uint8_t *p = calloc(1, bytes);

    if (!p) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

/* Messages of one byte up to BYTES travel around the ring of ranks. */
static void ring(size_t bytes, int rounds)
{
    int right = (rank + 1) % ranks;
    int left = (rank + ranks - 1) % ranks;
    uint8_t *out = memory(bytes);
    uint8_t *in = memory(bytes);

    for (int round = 0; round < rounds; round++) {
        for (size_t size = 1; size <= bytes; size *= 4) {
            int got;
            MPI_Status status;

            fill(out, size, right, round);
            memset(in, 0xee, size);
            MPI_Sendrecv(out, size, MPI_BYTE, right, round, in, size, MPI_BYTE,
                         left, round, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &got);
            check(got == (int)size, "%d bytes of %zu", got, size);
            compare(in, size, left, rank, round);
        }
    }
    free(in);
    free(out);
}

static void all_to_all(size_t bytes, int rounds)
{
    uint8_t *out = memory(bytes * ranks);
    uint8_t *in = memory(bytes * ranks);

    for (int round = 0; round < rounds; round++) {
        for (int to = 0; to < ranks; to++) {
            fill(out + to * bytes, bytes, to, round);
        }
        memset(in, 0xee, bytes * ranks);
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE,
                     MPI_COMM_WORLD);
        for (int from = 0; from < ranks; from++) {
            compare(in + from * bytes, bytes, from, rank, round);
        }
    }
    free(in);
    free(out);
}

static void allreduce(size_t bytes, int rounds)
{
    uint8_t *mine = memory(bytes);
    uint8_t *all = memory(bytes);

    for (int round = 0; round < rounds; round++) {
        fill(mine, bytes, 0, round);
        MPI_Allreduce(mine, all, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
        for (size_t i = 0; i < bytes; i++) {
            uint8_t want = 0;

            for (int from = 0; from < ranks; from++) {
                want ^= byte_of(from, 0, round, i);
            }
            check(all[i] == want, "round %d: byte %zu is 0x%x, not 0x%x", round,
                  i, all[i], want);
        }
    }
    free(all);
    free(mine);
}

/* Each rank has a slot for each other rank, which writes and reads it. */
static void puts_and_gets(size_t bytes, int rounds)
{
    uint8_t *slots;
    uint8_t *out = memory(bytes * ranks);
    MPI_Win window;

    MPI_Win_allocate(bytes * ranks, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &slots,
                     &window);
    for (int round = 0; round < rounds; round++) {
        MPI_Win_fence(0, window);
        for (int to = 0; to < ranks; to++) {
            fill(out + to * bytes, bytes, to, round);
            MPI_Put(out + to * bytes, bytes, MPI_BYTE, to, rank * bytes, bytes,
                    MPI_BYTE, window);
        }
        MPI_Win_fence(0, window);
        for (int from = 0; from < ranks; from++) {
            compare(slots + from * bytes, bytes, from, rank, round);
        }
        memset(out, 0xee, bytes * ranks);
        MPI_Win_fence(0, window);
        for (int to = 0; to < ranks; to++) {
            MPI_Get(out + to * bytes, bytes, MPI_BYTE, to, rank * bytes, bytes,
                    MPI_BYTE, window);
        }
        MPI_Win_fence(0, window);
        for (int to = 0; to < ranks; to++) {
            compare(out + to * bytes, bytes, rank, to, round);
        }
    }
    MPI_Win_free(&window);
    free(out);
}

/* All ranks draw tickets from one counter: each ticket is drawn once. */
static void draw_tickets(int64_t *counters, MPI_Win window, int rounds)
{
    const int64_t one = 1;
    int64_t total = (int64_t)rounds * ranks;
    int *drawn = (int *)memory(total * sizeof(*drawn));
    int *all = (int *)memory(total * sizeof(*all));
    int64_t last = -1;

    MPI_Win_lock_all(0, window);
    for (int i = 0; i < rounds; i++) {
        int64_t ticket = -1;

        MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, ranks - 1, 0, MPI_SUM,
                         window);
        MPI_Win_flush(ranks - 1, window);
        check(ticket > last && ticket < total, "ticket %ld after %ld of %ld",
              (long)ticket, (long)last, (long)total);
        last = ticket;
        if (ticket >= 0 && ticket < total) {
            drawn[ticket]++;
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Allreduce(drawn, all, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int64_t i = 0; i < total; i++) {
        check(all[i] == 1, "ticket %ld was drawn %d times", (long)i, all[i]);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    check(counters[0] == (rank == ranks - 1 ? total : 0), "the counter is %ld",
          (long)counters[0]);
    MPI_Win_unlock(rank, window);
    free(all);
    free(drawn);
}

/* All ranks raise the second counter of rank 0, by compare and swap. */
static void count_by_swaps(int64_t *counters, MPI_Win window, int rounds)
{
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < rounds; i++) {
        int64_t seen = 0, found = -1, next;

        while (true) {
            next = seen + rank + 1;
            MPI_Compare_and_swap(&next, &seen, &found, MPI_INT64_T, 0, 1,
                                 window);
            MPI_Win_flush(0, window);
            if (found == seen) {
                break;
            }
            seen = found;
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    check(counters[1] ==
          (rank ? 0 : (int64_t)rounds * ranks * (ranks + 1) / 2),
          "the sum is %ld", (long)counters[1]);
    MPI_Win_unlock(rank, window);
}

static void atomics(size_t bytes, int rounds)
{
    int64_t *counters;
    MPI_Win window;

    (void)bytes;
    MPI_Win_allocate(2 * sizeof(*counters), sizeof(*counters), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &counters, &window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    counters[0] = counters[1] = 0;
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    draw_tickets(counters, window, rounds);
    count_by_swaps(counters, window, rounds);
    MPI_Win_free(&window);
}

static const struct {
    const char *name;
    void (*run)(size_t bytes, int rounds);
} cases[] = {
    { "ring", ring },
    { "alltoall", all_to_all },
    { "allreduce", allreduce },
    { "put-get", puts_and_gets },
    { "atomics", atomics },
};

/* Run a case. Return the number of mistakes of all ranks. */
static long run(const char *argument)
{
    long everyones = 0;
    double began = MPI_Wtime(), took;
    char name[16];
    size_t bytes;
    int rounds;

    wrong = 1;
    if (sscanf(argument, "%15[^:]:%zu:%d", name, &bytes, &rounds) == 3) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            if (strcmp(name, cases[i].name) == 0) {
                wrong = 0;
                cases[i].run(bytes, rounds);
            }
        }
    }
    MPI_Allreduce(&wrong, &everyones, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    took = MPI_Wtime();
    took -= began;
    if (!rank) {
        printf("%s: %s, %d ranks, %.3f s\n", argument,
               everyones ? "wrong" : "fine", ranks, took);
    }
    return everyones;
}

int main(int argc, char **argv)
{
    long mistakes = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i++) {
        mistakes += run(argv[i]);
    }
    MPI_Finalize();
    return argc < 2 || mistakes;
}
