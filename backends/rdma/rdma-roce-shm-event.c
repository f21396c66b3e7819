/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames by shared memory: events of sockets and timers, in the iothread or the
 * main loop.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "rdma-roce-shm-int.h"

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

void rdma_roce_shm_close_socket(RdmaRoceShm *shm, int *fd)
{
    if (*fd >= 0) {
        rdma_roce_shm_set_handler(shm, *fd, NULL, NULL);
        close(*fd);
        *fd = -1;
    }
}

void rdma_roce_shm_free_later(RdmaRoceShm *shm, QEMUBHFunc *free_it,
                              void *opaque)
{
    if (shm->ctx) {
        aio_bh_schedule_oneshot(shm->ctx, free_it, opaque);
    } else {
        free_it(opaque);
    }
}
