/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors of queue pairs, for people and programs on the host. The device keeps
 * the last error of each QP for query-rdma. (The guest learns of errors by
 * completions and events.)
 *
 * The main loop sends the QMP event, because an error may occur while the
 * backend works, or in the iothread.
 */
#include "qemu/osdep.h"
#include "qapi/qapi-events-rdma.h"
#include "qemu/timer.h"
#include "int.h"

/* The QAPI schema and the core have the numbers of libibverbs. */
QEMU_BUILD_BUG_ON((int)RDMA_COMPLETION_STATUS_WR_FLUSH_ERR !=
                  (int)RDMA_WC_WR_FLUSH_ERR);
QEMU_BUILD_BUG_ON((int)RDMA_COMPLETION_STATUS_RETRY_EXC_ERR !=
                  (int)RDMA_WC_RETRY_EXC_ERR);
QEMU_BUILD_BUG_ON((int)RDMA_COMPLETION_STATUS_GENERAL_ERR !=
                  (int)RDMA_WC_GENERAL_ERR);

static void note_error(RdmaHca *hca, uint32_t qpn, const RdmaHcaQpError *error)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, qpn);

    if (!qp) {
        return;
    }
    qp->error = *error;
    qp->error.at = qemu_clock_get_ns(QEMU_CLOCK_HOST);
    qp->n_errors++;
    hca->n_qp_errors++;
    hca->last_error = qp->error;
    hca->error_qpn = qpn;
    hca->error_unreported = true;
    rdma_hca_bh_schedule(hca);
}

void rdma_hca_error_note_completion(RdmaHca *hca, const RdmaWc *wc)
{
    if (wc->status != RDMA_WC_WR_FLUSH_ERR) {
        note_error(hca, wc->qp_num, &(RdmaHcaQpError) {
            .status = wc->status,
            .opcode = wc->opcode,
            .wr_id = wc->wr_id,
            .vendor_err = wc->vendor_err,
        });
    }
}

void rdma_hca_error_note_event(RdmaHca *hca, RdmaEventType type, uint32_t id)
{
    if (type == RDMA_EVENT_QP_FATAL || type == RDMA_EVENT_QP_REQ_ERR ||
        type == RDMA_EVENT_QP_ACCESS_ERR) {
        note_error(hca, id, &(RdmaHcaQpError) { .event = type });
    }
}

RdmaCompletionOpcode rdma_hca_error_opcode(uint8_t opcode)
{
    static const RdmaCompletionOpcode opcodes[] = {
        [RDMA_WC_SEND] = RDMA_COMPLETION_OPCODE_SEND,
        [RDMA_WC_RDMA_WRITE] = RDMA_COMPLETION_OPCODE_RDMA_WRITE,
        [RDMA_WC_RDMA_READ] = RDMA_COMPLETION_OPCODE_RDMA_READ,
        [RDMA_WC_COMP_SWAP] = RDMA_COMPLETION_OPCODE_COMP_SWAP,
        [RDMA_WC_FETCH_ADD] = RDMA_COMPLETION_OPCODE_FETCH_ADD,
        [RDMA_WC_BIND_MW] = RDMA_COMPLETION_OPCODE_BIND_MW,
        [RDMA_WC_LOCAL_INV] = RDMA_COMPLETION_OPCODE_LOCAL_INV,
        [RDMA_WC_REG_MR] = RDMA_COMPLETION_OPCODE_REG_MR,
        [RDMA_WC_FLUSH] = RDMA_COMPLETION_OPCODE_FLUSH,
        [RDMA_WC_ATOMIC_WRITE] = RDMA_COMPLETION_OPCODE_ATOMIC_WRITE,
        [RDMA_WC_RECV] = RDMA_COMPLETION_OPCODE_RECV,
        [RDMA_WC_RECV_RDMA_WITH_IMM] =
            RDMA_COMPLETION_OPCODE_RECV_RDMA_WITH_IMM,
    };

    return opcode < ARRAY_SIZE(opcodes) ? opcodes[opcode]
                                        : RDMA_COMPLETION_OPCODE_SEND;
}

static RdmaQueuePairEvent event_info(uint8_t event)
{
    return event == RDMA_EVENT_QP_REQ_ERR ? RDMA_QUEUE_PAIR_EVENT_REQ_ERR :
           event == RDMA_EVENT_QP_ACCESS_ERR ? RDMA_QUEUE_PAIR_EVENT_ACCESS_ERR
                                             : RDMA_QUEUE_PAIR_EVENT_FATAL;
}

RdmaQueuePairError *rdma_hca_error_info(const RdmaHcaQpError *error)
{
    RdmaQueuePairError *info = g_new0(RdmaQueuePairError, 1);

    info->time = error->at;
    if (error->status == RDMA_WC_SUCCESS) {
        info->source = RDMA_ERROR_SOURCE_EVENT;
        info->u.event.type = event_info(error->event);
        return info;
    }
    info->source = RDMA_ERROR_SOURCE_COMPLETION;
    info->u.completion.status = MIN(error->status, RDMA_WC_GENERAL_ERR);
    info->u.completion.opcode = rdma_hca_error_opcode(error->opcode);
    info->u.completion.wr_id = error->wr_id;
    info->u.completion.vendor_err = error->vendor_err;
    return info;
}

void rdma_hca_error_report(RdmaHca *hca)
{
    g_autoptr(RdmaQueuePairError) info = NULL;
    g_autofree char *path = NULL;
    DeviceState *dev;

    if (!hca->error_unreported) {
        return;
    }
    hca->error_unreported = false;
    dev = hca->dev;
    path = object_get_canonical_path(OBJECT(dev));
    info = rdma_hca_error_info(&hca->last_error);
    qapi_event_send_rdma_qp_error(dev->id, path, hca->error_qpn, info,
                                  hca->n_qp_errors);
}
