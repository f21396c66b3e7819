/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work requests: which QP types support which opcode, and receive WQEs.
 */
#include <glib.h>
#include "core/core.h"

#define T(type) (1u << RDMA_QPT_##type)

const RoceWrInfo roce_wr_info[ROCE_WR_OPCODES] = {
    [RDMA_WR_RDMA_WRITE] = { T(RC) | T(UC), true },
    [RDMA_WR_RDMA_WRITE_WITH_IMM] = { T(RC) | T(UC), true },
    [RDMA_WR_SEND] = { T(RC) | T(UC) | T(UD) | T(GSI), true },
    [RDMA_WR_SEND_WITH_IMM] = { T(RC) | T(UC) | T(UD) | T(GSI), true },
    [RDMA_WR_SEND_WITH_INV] = { T(RC), true },
    [RDMA_WR_RDMA_READ] = { T(RC), false, true },
    [RDMA_WR_RDMA_READ_WITH_INV] = { T(RC), false, true },
    [RDMA_WR_ATOMIC_CMP_AND_SWP] = { T(RC), false, true, true },
    [RDMA_WR_ATOMIC_FETCH_AND_ADD] = { T(RC), false, true, true },
    [RDMA_WR_FLUSH] = { T(RC), .has_args = true },
    [RDMA_WR_ATOMIC_WRITE] = { T(RC), true, .has_args = true },
    [RDMA_WR_LOCAL_INV] = { T(RC) | T(UC) },
    [RDMA_WR_BIND_MW] = { T(RC) | T(UC), .has_args = true },
    [RDMA_WR_REG_MR] = { T(RC) | T(UC), .has_args = true },
};

#undef T

bool roce_opcode_ok(uint32_t qp_type, uint32_t opcode)
{
    return opcode < ROCE_WR_OPCODES &&
           (roce_wr_info[opcode].qp_types & 1u << qp_type);
}

bool roce_opcode_enabled(const RoceEngine *e, uint32_t opcode)
{
    switch (opcode) {
    case RDMA_WR_FLUSH:
        return e->extensions & RDMA_EXT_FLUSH;
    case RDMA_WR_ATOMIC_WRITE:
        return e->extensions & RDMA_EXT_ATOMIC_WRITE;
    default:
        return true;
    }
}

void roce_recv_fill(RoceRecvWqe *wqe, RdmaSge *sges, uint32_t max_sge,
                    const RdmaRecvWr *wr)
{
    *wqe = (RoceRecvWqe) { .wr_id = wr->wr_id, .status = wr->status };
    if (wr->status != RDMA_WC_SUCCESS) {
        return;
    }
    if (wr->num_sge > max_sge) {
        wqe->status = RDMA_WC_LOC_QP_OP_ERR;
    } else if (wr->num_sge) {
        wqe->num_sge = wr->num_sge;
        memcpy(sges, wr->sg_list, wr->num_sge * sizeof(RdmaSge));
    }
}
