/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers that are read late. Timers run when their time has come, but a turn
 * of the main loop reads only so much of a netdev, and none comes while the
 * loop is stalled. So a request that is overdue waits until what had come in
 * by then is in the engine: first what the netdev has, for which the main loop
 * goes on until some turns bring no frame, then what waits in this backend and
 * in shared memory. Both have an end, however many frames keep coming.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "int.h"

/*
 * Turns of the main loop without a frame: the first one may have polled before
 * it began to count, and the next one may read after the bottom half.
 */
#define LATE_QUIET_TURNS 2
/*
 * Turns with frames, and turns of the engine. 64 KiB each are as much as a TCP
 * socket holds by default (tcp_rmem).
 */
#define LATE_MAX_TURNS 96

/* In the main loop's own context, so that no nested loop counts as a turn. */
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
        /* A snapshot was loaded, whose clock is at an earlier time. */
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
    qemu_bh_delete(r->late.bh);
    r->late.bh = NULL;
}
