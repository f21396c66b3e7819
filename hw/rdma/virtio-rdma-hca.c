/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All HCAs of the machine.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca.h"

RdmaHcas rdma_hcas = QTAILQ_HEAD_INITIALIZER(rdma_hcas);

void rdma_hca_init(RdmaHca *hca, const RdmaHcaOps *ops, Object *owner,
                   DeviceState *dev)
{
    hca->ops = ops;
    hca->owner = owner;
    hca->dev = dev;
}

void rdma_hca_add(RdmaHca *hca)
{
    QTAILQ_INSERT_TAIL(&rdma_hcas, hca, next);
}

void rdma_hca_remove(RdmaHca *hca)
{
    QTAILQ_REMOVE(&rdma_hcas, hca, next);
}
