/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many points during traffic at which a side is saved and loaded again, and
 * snapshots that the test has tampered with.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "migrate-test.h"
#include "migrate-walk.h"

/*
 * Rounds of traffic if the environment has no MIGRATE_POINTS, or no
 * MIGRATE_PROCESSES, when another process takes over
 */
#define ROUNDS 40
#define PROCESS_ROUNDS 3
#define MAX_MOVES 3

/* Mutants if the environment has no MIGRATE_MUTANTS */
#define MUTANTS 150
#define MAX_CHANGES 3
#define REACH (1 << 20)

static void travel_round(Walk *t, void (*move)(Walk *t, int side))
{
    bool late_receivers = g_rand_boolean(t->rng);
    unsigned moves = g_rand_int_range(t->rng, 1, MAX_MOVES + 1);

    walk_post(t, !late_receivers);
    while (moves--) {
        int who = g_rand_int_range(t->rng, 0, 3);

        walk_pump(t, g_rand_int_range(t->rng, 0, WALK_FRAMES));
        for (int i = 0; i < 2; i++) {
            if (who != !i) {
                move(t, i);
            }
            walk_renew(&t->side[i]);
        }
        if (g_rand_boolean(t->rng)) {
            net_clock_step(&t->net, WALK_TIMEOUT_NS);
        }
        walk_collect(t);
    }
    if (late_receivers) {
        walk_post_receives(t);
    }
    walk_finish(t);
}

static void travel(unsigned rounds, void (*move)(Walk *t, int side))
{
    uint32_t seed = g_test_rand_int();
    Walk *t;

    g_test_message("seed %u", seed);
    t = walk_new(seed);
    for (unsigned i = 0; i < rounds; i++) {
        travel_round(t, move);
    }
    g_test_message("%u moves; %u requests with windows, %u and %u with "
                   "regions registered by REG_MR and REREG_MR", t->moves,
                   t->used[WAY_WINDOW], t->used[WAY_FAST],
                   t->used[WAY_RENEWED]);
    walk_free(t);
}

static void test_points(void)
{
    travel(trip_number("MIGRATE_POINTS", ROUNDS), walk_move);
}

static void test_processes(void)
{
    travel(trip_number("MIGRATE_PROCESSES", PROCESS_ROUNDS),
           walk_move_process);
}

/* Position of the device's and its backend's state in a snapshot */
typedef struct Part {
    off_t start;
    size_t size;
    uint8_t *bytes;
} Part;

static Part find_state(int fd)
{
    /* One PD, its number and context, and the next number; then three CQs */
    static const uint32_t counts[] = { 1, 1, 0, 2, 3 };
    static const char backend[] = "rdma-hca/backend";
    static const char end[] = "virtio/";
    uint8_t first[sizeof(counts)];
    g_autofree uint8_t *data = NULL;
    off_t size = lseek(fd, 0, SEEK_END);
    uint8_t *found, *name, *behind;
    Part part = {};

    for (int i = 0; i < ARRAY_SIZE(counts); i++) {
        stl_be_p(first + 4 * i, counts[i]);
    }
    data = g_malloc(size);
    g_assert_cmpint(pread(fd, data, size, 0), ==, size);
    name = memmem(data, size, backend, strlen(backend));
    g_assert_nonnull(name);
    found = memmem(data, name - data, first, sizeof(first));
    while (found) {
        part.start = found - data;
        found = memmem(found + 1, name - found - 1, first, sizeof(first));
    }
    g_assert_cmpint(part.start, >, 0);
    behind = memmem(name, data + size - name, end, strlen(end));
    g_assert_nonnull(behind);
    /* In front of a subsection's name are its length and a mark. */
    part.size = behind - 2 - (data + part.start);
    g_assert_cmpuint(part.size, <, REACH);
    part.bytes = g_memdup2(data + part.start, part.size);
    return part;
}

static void change(GRand *rng, uint8_t *bytes, size_t size)
{
    static const uint32_t values[] = {
        0, 1, 2, 3, 7, 8, 0xff, 0x100, 0xffff, 0xffffff, 0x7fffffff,
        0x80000000, 0xfffffffe, 0xffffffff,
    };
    size_t at = g_rand_int_range(rng, 0, size - 4);

    switch (g_rand_int_range(rng, 0, 4)) {
    case 0:
        bytes[at] ^= 1 << g_rand_int_range(rng, 0, 8);
        break;
    case 1:
        bytes[at] = g_rand_int(rng);
        break;
    case 2:
        stl_be_p(bytes + at,
                 values[g_rand_int_range(rng, 0, ARRAY_SIZE(values))]);
        break;
    default:
        stl_be_p(bytes + at, ldl_be_p(bytes + at) +
                 g_rand_int_range(rng, -2, 3));
        break;
    }
}

/*
 * Whatever a snapshot holds, QEMU loads or refuses it, and still loads a good
 * snapshot afterwards.
 */
static void test_mutants(void)
{
    unsigned mutants = trip_number("MIGRATE_MUTANTS", MUTANTS), refused = 0;
    uint32_t seed = g_test_rand_int();
    Walk *t;
    Part part;

    g_test_message("seed %u", seed);
    t = walk_new(seed);
    walk_post(t, true);
    walk_pump(t, WALK_FRAMES);
    walk_collect(t);
    walk_qmp(t, 0, "stop");
    walk_hmp(t, 0, "savevm s");
    part = find_state(t->image[0]);
    for (unsigned i = 0; i < mutants; i++) {
        g_autofree uint8_t *mutant = g_memdup2(part.bytes, part.size);
        g_autofree char *said = NULL;

        for (int n = g_rand_int_range(t->rng, 1, MAX_CHANGES + 1); n; n--) {
            change(t->rng, mutant, part.size);
        }
        g_assert_cmpint(pwrite(t->image[0], mutant, part.size, part.start),
                        ==, part.size);
        said = walk_try_hmp(t, 0, "loadvm s");
        if (*said) {
            refused++;
        } else {
            walk_qmp(t, 0, "cont");
            qtest_clock_step(t->net.host[0]->qts, WALK_TIMEOUT_NS);
            walk_qmp(t, 0, "stop");
        }
    }
    g_test_message("%zu bytes, %u of %u mutants refused", part.size, refused,
                   mutants);
    g_assert_cmpint(pwrite(t->image[0], part.bytes, part.size, part.start),
                    ==, part.size);
    walk_hmp(t, 0, "loadvm s");
    g_assert_cmpuint(refused, >, mutants / 4);
    g_free(part.bytes);
    walk_qmp(t, 0, "cont");
    walk_free(t);
}

const QRdmaTest migrate_points_tests[] = {
    { "points", test_points },
    { "processes", test_processes },
    { "mutants", test_mutants },
    {}
};
