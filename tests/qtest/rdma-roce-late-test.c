/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The number of turns of the main loop, and of the engine, that an overdue
 * request waits for its answer. The test links roce-backend/late.c, drives it
 * turn by turn, and has doubles of engine and device. It starts no QEMU.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "backends/rdma/roce-backend/int.h"

/* The values of roce-backend/late.c */
#define MAX_TURNS 96
#define QUIET_TURNS 2

/* The turns that have a frame */
typedef struct Pattern {
    const char *name;
    unsigned frames_until;          /* no frames from this turn on */
    unsigned every;                 /* until then, one in so many turns */
    unsigned turns;                 /* that the wait lasts */
} Pattern;

static const Pattern patterns[] = {
    { "none", 0, 1, QUIET_TURNS },
    { "one", 2, 1, 1 + QUIET_TURNS },
    { "ten", 11, 1, 10 + QUIET_TURNS },
    { "each-other", 21, 2, 20 + QUIET_TURNS },
    { "as-many-as-may-be", MAX_TURNS - QUIET_TURNS + 1, 1, MAX_TURNS },
    { "without-end", UINT_MAX, 1, MAX_TURNS },
    { "without-end-each-other", UINT_MAX, 2, MAX_TURNS },
};

typedef struct Late {
    RdmaRoce r;
    bool overdue;
    unsigned expired;               /* calls of roce_expire() */
    int64_t heard;                  /* argument of the last call */
    unsigned runs;                  /* of the engine's bottom half */
    unsigned entered;
} Late;

static Late *the_late;

/* Doubles */

int64_t roce_next_deadline(const RoceEngine *e)
{
    return ROCE_NO_DEADLINE;
}

bool roce_any_overdue(const RoceEngine *e)
{
    return the_late->overdue;
}

void roce_expire(RoceEngine *e, int64_t now, int64_t heard)
{
    the_late->expired++;
    the_late->heard = heard;
}

void rdma_backend_enter(RdmaBackend *rb)
{
    the_late->entered++;
}

void rdma_backend_leave(RdmaBackend *rb)
{
    the_late->entered--;
}

static void engine_bh(void *opaque)
{
    Late *l = opaque;

    l->runs++;
}

/* Tests */

static void late_start(Late *l)
{
    the_late = l;
    l->r.bh = qemu_bh_new(engine_bh, l);
    rdma_roce_late_begin(&l->r);
    l->overdue = true;
}

static void late_end(Late *l)
{
    rdma_roce_late_end(&l->r);
    qemu_bh_delete(l->r.bh);
    the_late = NULL;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Late, late_end)

static void late_expire(Late *l, bool took_all)
{
    rdma_roce_late_expire(&l->r, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL),
                          took_all);
}

/* Returns the number of turns that the wait lasts, with frames by @pattern. */
static unsigned turns_of_wait(Late *l, const Pattern *pattern)
{
    int64_t before = l->r.late.netdev_heard;
    unsigned turn;

    for (turn = 1; turn < 10 * MAX_TURNS; turn++) {
        g_assert_true(aio_poll(iohandler_get_aio_context(), false));
        if (l->r.late.netdev_heard != before) {
            return turn - 1;
        }
        if (turn < pattern->frames_until && turn % pattern->every == 0) {
            l->r.late.any_frame = true;
        }
    }
    g_assert_not_reached();
}

/* Twice: the second wait counts its own turns. */
static void test_waits_for_netdev(gconstpointer data)
{
    const Pattern *pattern = data;
    g_auto(Late) l = { };

    late_start(&l);
    for (unsigned i = 0; i < 2; i++) {
        late_expire(&l, true);
        g_assert_cmpint(l.heard, ==, l.r.late.heard);
        g_assert_cmpuint(turns_of_wait(&l, pattern), ==, pattern->turns);
        g_assert_cmpint(l.r.late.netdev_heard, ==, l.r.late.since);
        g_assert_cmpint(l.heard, <, l.r.late.since);
        g_assert_cmpuint(l.entered, ==, 0);

        /* The engine runs, and gets the time of the last frames. */
        g_assert_true(aio_poll(qemu_get_aio_context(), false));
        g_assert_cmpuint(l.runs, ==, i + 1);
        g_assert_false(aio_poll(iohandler_get_aio_context(), false));
        late_expire(&l, true);
        g_assert_cmpint(l.heard, ==, l.r.late.since);
        g_assert_cmpuint(l.expired, ==, 2 * (i + 1));
    }
}

/* Turns of the engine that leave frames in memory */
static void test_waits_for_memory(gconstpointer data)
{
    unsigned leaving = GPOINTER_TO_UINT(data);
    unsigned turns = MIN(leaving + 1, MAX_TURNS);
    g_auto(Late) l = { };

    late_start(&l);
    for (unsigned i = 0; i < 2; i++) {
        int64_t before = l.r.late.heard;

        late_expire(&l, true);
        turns_of_wait(&l, &patterns[0]);
        for (unsigned turn = 1; turn < turns; turn++) {
            late_expire(&l, false);
            g_assert_cmpint(l.heard, ==, before);
        }
        late_expire(&l, turns > leaving);
        g_assert_cmpint(l.heard, ==, l.r.late.netdev_heard);
    }
}

/* The timers of requests that are in time are not touched. */
static void test_nothing_is_due(void)
{
    g_auto(Late) l = { };

    late_start(&l);
    l.overdue = false;
    late_expire(&l, true);
    g_assert_cmpuint(l.expired, ==, 0);
    g_assert_false(aio_poll(iohandler_get_aio_context(), false));
}

/* After the clock went back, a later time of a frame does not count. */
static void test_clock_goes_back(void)
{
    g_auto(Late) l = { };
    int64_t heard;

    late_start(&l);
    late_expire(&l, true);
    turns_of_wait(&l, &patterns[0]);
    late_expire(&l, true);
    heard = l.heard;
    g_assert_cmpint(heard, ==, l.r.late.since);
    g_assert_true(aio_poll(qemu_get_aio_context(), false));

    rdma_roce_late_expire(&l.r, heard - 1, true);
    g_assert_cmpint(l.heard, <, heard - 1);
    g_assert_cmpuint(turns_of_wait(&l, &patterns[0]), ==, patterns[0].turns);
}

int main(int argc, char **argv)
{
    static const unsigned leaving[] = {
        0, 1, MAX_TURNS - 1, MAX_TURNS, 10 * MAX_TURNS,
    };

    g_test_init(&argc, &argv, NULL);
    qemu_init_main_loop(&error_abort);
    for (unsigned i = 0; i < ARRAY_SIZE(patterns); i++) {
        g_autofree char *path =
            g_strdup_printf("/rdma-roce-late/turns-with-frames/%s",
                            patterns[i].name);

        g_test_add_data_func(path, &patterns[i], test_waits_for_netdev);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(leaving); i++) {
        g_autofree char *path =
            g_strdup_printf("/rdma-roce-late/turns-that-leave-memory/%u",
                            leaving[i]);

        g_test_add_data_func(path, GUINT_TO_POINTER(leaving[i]),
                             test_waits_for_memory);
    }
    g_test_add_func("/rdma-roce-late/nothing-is-due", test_nothing_is_due);
    g_test_add_func("/rdma-roce-late/clock-goes-back", test_clock_goes_back);
    return g_test_run();
}
