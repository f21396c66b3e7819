/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of sockets and timers, in the iothread or the main loop
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "int.h"

int64_t rdma_roce_shm_now(void)
{
    return qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

QEMUTimer *rdma_roce_shm_timer_new(RdmaRoceShm *shm, QEMUTimerCB *cb,
                                   void *opaque)
{
    return shm->ctx ? aio_timer_new(shm->ctx, QEMU_CLOCK_REALTIME, SCALE_MS,
                                    cb, opaque)
                    : timer_new_ms(QEMU_CLOCK_REALTIME, cb, opaque);
}

void rdma_roce_shm_set_handler(RdmaRoceShm *shm, int fd, IOHandler *readable,
                               void *opaque)
{
    if (shm->ctx) {
        aio_set_fd_handler(shm->ctx, fd, readable, NULL, NULL, NULL, opaque);
    } else {
        qemu_set_fd_handler(fd, readable, NULL, opaque);
    }
}

static void close_now(void *opaque)
{
    close(GPOINTER_TO_INT(opaque));
}

void rdma_roce_shm_close_socket(RdmaRoceShm *shm, int *fd)
{
    if (*fd >= 0) {
        rdma_roce_shm_set_handler(shm, *fd, NULL, NULL);
        rdma_roce_shm_free_later(shm, close_now, GINT_TO_POINTER(*fd));
        qatomic_set(fd, -1);
    }
}

void rdma_roce_shm_free_later(RdmaRoceShm *shm, QEMUBHFunc *free_now,
                              void *opaque)
{
    if (shm->ctx) {
        aio_bh_schedule_oneshot(shm->ctx, free_now, opaque);
    } else {
        free_now(opaque);
    }
}

bool rdma_roce_shm_enter(RdmaRoceShm *shm, const int *fd, bool *waits)
{
    int open_fd;

    if (shm->ops->enter(shm->opaque)) {
        return true;
    }
    /* The thread that has entered may close it, but only after this handler. */
    open_fd = qatomic_read(fd);
    if (open_fd >= 0) {
        rdma_roce_shm_set_handler(shm, open_fd, NULL, NULL);
    }
    *waits = true;
    shm->any_waits = true;
    return false;
}

bool rdma_roce_shm_stop_waiting(bool *waits)
{
    bool was = *waits;

    *waits = false;
    return was;
}
