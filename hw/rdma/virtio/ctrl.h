/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "ctrl" of the virtio-rdma device: the control queue, and the table of
 * commands with their handlers.
 */
#ifndef HW_RDMA_VIRTIO_CTRL_H
#define HW_RDMA_VIRTIO_CTRL_H

#include "cmd.h"

/* Execute the commands that are in the control queue. */
void virtio_rdma_ctrl_run(VirtIORdma *s);
/* The command in progress has ended or was dropped. */
void virtio_rdma_ctrl_forget(VirtIORdma *s);

#endif
