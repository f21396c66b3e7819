/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work: how long things take, and how much of it one turn of the main loop
 * does. Until a turn ends, vCPUs that access a register of any device, the
 * monitor, and other devices wait for the BQL.
 *
 * The unit is a byte that is copied. All else counts as the bytes that can be
 * copied in about the same time. A budget is an upper bound, except for the
 * last thing that is paid from it.
 */
#ifndef RDMA_WORK_H
#define RDMA_WORK_H

#include <stdint.h>

/* Read an entry of a page list */
#define RDMA_WORK_ENTRY 32
/* Look at a queue that may be empty, or at a descriptor */
#define RDMA_WORK_LOOK 128
/* A work request, a completion, or a packet, without its payload */
#define RDMA_WORK_WR 1024
/* A command of the control queue; one that makes or frees a queue: eight */
#define RDMA_WORK_COMMAND (8 * 1024)

/* One turn of the device, and of its backend */
#define RDMA_TURN_BUDGET (384 * 1024)
/* One queue in a turn, so that queues take turns */
#define RDMA_QUEUE_BUDGET (64 * 1024)

static inline void rdma_work_pay(uint32_t *budget, uint32_t work)
{
    *budget -= *budget < work ? *budget : work;
}

#endif
