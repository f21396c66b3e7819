/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the RoCE backend share. @rb is an rdma-roce that a device
 * is attached to.
 */
#ifndef BACKENDS_RDMA_ROCE_INT_H
#define BACKENDS_RDMA_ROCE_INT_H

#include "migration/vmstate.h"
#include "rdma/roce.h"
#include "system/rdma-backend.h"

/* rdma-roce.c */
RoceEngine *rdma_roce_engine(RdmaBackend *rb);
/* The highest number of an MR or a window. */
uint32_t rdma_roce_max_mrn(const RdmaBackend *rb);
/* The engine's time. */
int64_t rdma_roce_now(void);

/* rdma-roce-ctrl.c: objects and work requests */
void rdma_roce_ctrl_class_init(RdmaBackendClass *rbc);

/* rdma-roce-vmstate.c */
extern const VMStateDescription vmstate_rdma_roce;

#endif
