/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work: estimates of how long operations take, and budgets for one turn of the
 * main loop. Until a turn ends, the BQL is held: vCPUs that access a register
 * of any device, the monitor, and other devices wait.
 *
 * The unit is one copied byte. Every other operation counts as the number of
 * bytes that can be copied in about the same time. A turn may exceed its budget
 * by the last operation that it pays for.
 */
#ifndef RDMA_WORK_H
#define RDMA_WORK_H

#include <stdint.h>

/* Read an entry of a page list */
#define RDMA_WORK_ENTRY 32
/* Poll a queue that may be empty, or read a descriptor */
#define RDMA_WORK_POLL 128
/* Process a work request, a completion, or a packet without its payload */
#define RDMA_WORK_WR 1024
/*
 * Run a command of the driver. A command that creates or destroys a QP or SRQ
 * costs eight times as much in addition.
 */
#define RDMA_WORK_COMMAND (8 * 1024)

/*
 * The budget of one kind of work in a turn. docs/devel/virtio-rdma-device.rst
 * lists the kinds.
 */
#define RDMA_TURN_BUDGET (384 * 1024)
/* The budget of one queue in a turn, so that queues alternate */
#define RDMA_QUEUE_BUDGET (64 * 1024)

/* Subtract @work from *@budget, down to 0. */
static inline void rdma_work_pay(uint32_t *budget, uint32_t work)
{
    *budget -= *budget < work ? *budget : work;
}

#endif
