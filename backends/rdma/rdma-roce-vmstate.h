/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: what its files share.
 */
#ifndef BACKENDS_RDMA_ROCE_VMSTATE_H
#define BACKENDS_RDMA_ROCE_VMSTATE_H

#include "migration/vmstate.h"
#include "rdma/roce.h"
#include "system/rdma-backend.h"

/* Of an RdmaBackend that a device is attached to. */
extern const VMStateDescription vmstate_rdma_roce;

/* The engine of @rb, an rdma-roce that a device is attached to. */
RoceEngine *rdma_roce_engine(RdmaBackend *rb);

#endif
