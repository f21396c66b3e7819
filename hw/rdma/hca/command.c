/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns of the main loop in which commands of the driver are executed.
 */
#include "qemu/osdep.h"
#include "int.h"

void rdma_hca_turn_begin(RdmaHca *hca)
{
    hca->cmd_budget = RDMA_TURN_BUDGET;
}

bool rdma_hca_turn_goes_on(const RdmaHca *hca)
{
    return hca->cmd_budget && !rdma_backend_frees_much();
}

void rdma_hca_command_end(RdmaHca *hca)
{
    rdma_hca_pages_drop(hca);
    rdma_hca_fault_command_end(hca);
    if (hca->bc && hca->bc->abandon) {
        hca->bc->abandon(hca->backend);
    }
}
