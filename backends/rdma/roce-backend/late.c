/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timeouts of requests whose answers are read late. Timers fire in time, but a
 * turn of the main loop reads only part of a netdev's frames, and a stalled
 * loop reads none. So an overdue request waits until the engine has all frames
 * that came in by then: first those of the netdev, until some turns of the main
 * loop bring no frame, then deferred frames and those in shared memory. The
 * number of turns is limited in both cases, so a flood of frames cannot prevent
 * timeouts.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "int.h"

/*
 * Turns of the main loop without a frame that are needed: the first turn may
 * have polled before the count started, and the next may read after the bottom
 * half.
 */
#define LATE_QUIET_TURNS 2
/*
 * Limit of turns with frames, and of turns of the engine. With 64 KiB each they
 * read as much as a TCP socket holds by default (tcp_rmem).
 */
#define LATE_MAX_TURNS 96

/* In the main loop's own context, so nested loops do not count as turns. */
static void roce_late_bh(void *opaque)
{
    RdmaRoce *r = opaque;
    RdmaRoceLate *late = &r->late;

    if (!late->turns) {
        late->since = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
        late->quiet = 0;
    } else if (!late->any_frame) {
        late->quiet++;
    } else {
        late->quiet = 0;
    }
    late->any_frame = false;
    if (late->quiet < LATE_QUIET_TURNS && late->turns < LATE_MAX_TURNS) {
        late->turns++;
        qemu_bh_schedule(late->bh);
        return;
    }
    late->turns = 0;
    rdma_backend_enter(&r->parent_obj);
    late->netdev_heard = late->since;
    rdma_backend_leave(&r->parent_obj);
    qemu_bh_schedule(r->bh);
}

void rdma_roce_late_expire(RdmaRoce *r, int64_t now, bool took_all)
{
    RdmaRoceLate *late = &r->late;

    if (late->heard > now) {
        /* A loaded snapshot has set the clock back. */
        late->heard = late->netdev_heard = 0;
    }
    if (late->heard != late->netdev_heard &&
        (took_all || ++late->engine_turns >= LATE_MAX_TURNS)) {
        late->heard = late->netdev_heard;
        late->engine_turns = 0;
    }
    if (roce_next_deadline(r->engine) > now && !roce_any_overdue(r->engine)) {
        return;
    }
    roce_expire(r->engine, now, late->heard);
    if (roce_any_overdue(r->engine) && late->heard == late->netdev_heard) {
        qemu_bh_schedule(late->bh);
    }
}

void rdma_roce_late_begin(RdmaRoce *r)
{
    r->late = (RdmaRoceLate) {
        .bh = aio_bh_new(iohandler_get_aio_context(), roce_late_bh, r),
    };
}

void rdma_roce_late_end(RdmaRoce *r)
{
    g_clear_pointer(&r->late.bh, qemu_bh_delete);
}
