/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Callbacks of the engine, except those of its consumer, the device: access to
 * guest memory, wake-ups, and trace events.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "system/rdma-backend.h"
#include "rdma/roce.h"
#include "int.h"
#include "../trace.h"

/* The engine unmaps before it returns, and is called with RCU locked. */
static void *roce_op_map(void *opaque, uint64_t addr, uint64_t *len,
                         bool write)
{
    RdmaRoce *r = opaque;

    return rdma_ram_at(&r->parent_obj.ram, addr, len, write);
}

static void roce_op_unmap(void *opaque, void *host, uint64_t len, bool write,
                          uint64_t access_len)
{
    RdmaRoce *r = opaque;

    if (write && access_len) {
        rdma_ram_written(&r->parent_obj.ram, host, access_len);
    }
}

static bool roce_op_atomic(void *opaque, uint64_t addr, uint32_t opcode,
                           uint64_t compare_add, uint64_t swap, uint64_t *old)
{
    uint64_t len = sizeof(uint64_t);
    uint64_t seen, want, new;
    uint64_t *p;
    bool done = false;

    p = roce_op_map(opaque, addr, &len, true);
    if (!p) {
        return false;
    }
    if (len == sizeof(uint64_t) && QEMU_PTR_IS_ALIGNED(p, sizeof(*p))) {
        if (opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
            seen = qatomic_read__nocheck(p);
            do {
                want = seen;
                new = cpu_to_le64(le64_to_cpu(want) + compare_add);
                seen = qatomic_cmpxchg__nocheck(p, want, new);
            } while (seen != want);
        } else if (opcode == RDMA_WR_ATOMIC_WRITE) {
            seen = qatomic_xchg__nocheck(p, cpu_to_le64(compare_add));
        } else {
            seen = qatomic_cmpxchg__nocheck(p, cpu_to_le64(compare_add),
                                            cpu_to_le64(swap));
        }
        *old = le64_to_cpu(seen);
        done = true;
    }
    roce_op_unmap(opaque, p, len, true, done ? len : 0);
    return done;
}

static bool roce_op_unchecked(void *opaque, const uint8_t mac[RDMA_MAC_LEN])
{
    RdmaRoce *r = opaque;

    return r->shm && !r->shm_icrc && rdma_roce_shm_reaches(r->shm, mac);
}

static void roce_op_wake(void *opaque)
{
    RdmaRoce *r = opaque;

    if (r->in_engine) {
        /* The caller of the engine checks r->woken after return. */
        r->woken = true;
    } else {
        rdma_roce_run_soon(r);
    }
}

static void roce_op_trace(void *opaque, const RoceTrace *t)
{
    switch (t->type) {
    case ROCE_TRACE_QP_STATE:
        trace_rdma_roce_qp_state(opaque, t->qpn, rdma_qp_state_name(t->old),
                                 rdma_qp_state_name(t->value));
        break;
    case ROCE_TRACE_TX_WAIT:
        trace_rdma_roce_qp_waits(opaque, t->qpn);
        break;
    case ROCE_TRACE_NAK_SENT:
        trace_rdma_roce_nak_sent(opaque, t->qpn, t->psn, t->value);
        break;
    case ROCE_TRACE_NAK_RECEIVED:
        trace_rdma_roce_nak_received(opaque, t->qpn, t->psn, t->value);
        break;
    case ROCE_TRACE_TIMEOUT:
        trace_rdma_roce_timeout(opaque, t->qpn, t->psn, t->value);
        break;
    case ROCE_TRACE_RETRANSMIT:
        trace_rdma_roce_retransmit(opaque, t->qpn, t->psn, t->value);
        break;
    case ROCE_TRACE_RX_DROP:
        trace_rdma_roce_rx_drop(opaque, t->qpn, t->psn, t->why);
        break;
    case ROCE_TRACE_CQ_FAILED:
        trace_rdma_roce_cq_failed(opaque, t->value, t->qpn);
        break;
    case ROCE_TRACE_QP_REFUSED:
        rdma_backend_qp_refused(opaque, t->qpn, t->refusal);
        break;
    }
}

static void roce_op_free_large(void *opaque, void *mem, size_t size)
{
    rdma_backend_free(mem, size);
}

RoceOps rdma_roce_ops(const RdmaBackend *rb)
{
    return (RoceOps) {
        .map = roce_op_map,
        .unmap = roce_op_unmap,
        .atomic = roce_op_atomic,
        .unchecked = roce_op_unchecked,
        .wake = roce_op_wake,
        .trace = roce_op_trace,
        .free_large = roce_op_free_large,
        .consumer = rb->client_ops->consumer,
        .consumer_opaque = rb->client_opaque,
    };
}
